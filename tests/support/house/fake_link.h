/*
 * A link without sockets: what protocol/link/link.h promises, in memory, and both ends in the hands
 * of a test. It stands in front of the real library; url.c is the real one.
 */
#ifndef HOUSE_FAKE_LINK_H
#define HOUSE_FAKE_LINK_H

#include "protocol/base/buf.h"
#include "protocol/link/link.h"

enum {
    FAKE_LANES_MAX = 512,
    FAKE_SERVERS_MAX = 160,
    FAKE_ANSWERS_MAX = 4096,
    FAKE_FRAMES_MAX = 4096,
    FAKE_TRUST_MAX = 64
};

struct link_server {
    struct link *link;
    char url[272];
    uint32_t contexts;
    struct link_limits limits;
    bool retired;
};

struct link_lane {
    struct link *link;
    char url[272];
    void *owner;
    bool dials, up, retired;
    bool outstanding;
    struct link_limits limits; /* of one that dials */
    enum bt_code refuses;      /* BT_OK: it sends */
    uint32_t hung_up;          /* how often its peer was hung up on */
    struct buf sent;           /* the last request */
};

struct fake_answer {
    uint64_t request;
    struct buf bytes;
};

struct fake_trust {
    uint32_t uids[FAKE_TRUST_MAX];
    uint32_t n;
};

struct fake_frame {
    char topic[128];
    struct buf body;
};

/* A request arrives, of this host or of another one. */
void fake_link_request(struct link *l, bool remote, uint64_t request, const void *bytes,
                       size_t len);
/* The same, on a connection of any server. */
void fake_server_request(struct link_server *s, uint32_t pipe, uint64_t request, const void *bytes,
                         size_t len);
/* In the order of their making; NULL: there are not so many. */
struct link_server *fake_link_server(struct link *l, uint32_t i);
/* New servers of any link fail with this; BT_OK = they do not. */
void fake_link_fail_servers(enum bt_code code);
/* The connection is gone, in any link; 0 = all are there. */
void fake_pipe_closed(uint32_t pipe);
/* As given to link_trust. */
const struct fake_trust *fake_link_trust(const struct link *l);
/* From now on link_fd is a descriptor, which is readable as link.h says. */
void fake_link_wakes(struct link *l);
/* The answers so far, in their order. */
uint32_t fake_link_answers(const struct link *l);
const struct fake_answer *fake_link_answer(const struct link *l, uint32_t i);
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
/* Its next requests are not sent; BT_OK: they are again. */
void fake_lane_refuse(struct link_lane *lane, enum bt_code code);

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
