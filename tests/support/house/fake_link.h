/*
 * A link without sockets: what protocol/link/link.h promises, in memory, and both ends in the hands
 * of a test. It stands in front of the real library; url.c is the real one.
 */
#ifndef HOUSE_FAKE_LINK_H
#define HOUSE_FAKE_LINK_H

#include "protocol/base/buf.h"
#include "protocol/link/link.h"

enum { FAKE_LANES_MAX = 512, FAKE_ANSWERS_MAX = 4096, FAKE_FRAMES_MAX = 4096 };

struct link_lane {
    struct link *link;
    char url[272];
    void *owner;
    bool dials, up, retired;
    bool outstanding;
    struct buf sent; /* the last request */
};

struct fake_answer {
    uint64_t request;
    struct buf bytes;
};

struct fake_frame {
    char topic[128];
    struct buf body;
};

/* A request arrives, of this host or of another one. */
void fake_link_request(struct link *l, bool remote, uint64_t request, const void *bytes,
                       size_t len);
/* NULL: it was not answered yet. */
const struct buf *fake_link_answer_to(const struct link *l, uint64_t request);

/* That the last server was opened with, or the last publisher. */
const struct link_limits *fake_link_limits(const struct link *l, bool events);
uint32_t fake_link_lanes(const struct link *l);
struct link_lane *fake_link_lane(const struct link *l, uint32_t i);
void fake_lane_up(struct link_lane *lane);
/* The connection ends; a request on it is lost after it was sent, or before. */
void fake_lane_down(struct link_lane *lane, bool sent);
/* The connection ends, and another one is there, before the loss of the request on it is told
 * (link.h: in either order). */
void fake_lane_replaced(struct link_lane *lane, bool sent);
void fake_lane_answer(struct link_lane *lane, const void *bytes, size_t len);

/* Frames that are published from now on are not kept: a test of a large plan has too many. */
void fake_link_forget_frames(struct link *l);
uint32_t fake_link_frames(const struct link *l);
const struct fake_frame *fake_link_frame(const struct link *l, uint32_t i);
/* Where the server and the publisher of the last link listen. */
extern const char *const fake_control_url;
extern const char *const fake_events_url;
/* > 0: the code under test is in this link, whose memory is not the daemon's. */
extern int fake_link_inside;
#endif
