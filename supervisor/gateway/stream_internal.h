/* Shared by stream.c (how events flow) and events.c (what was asked for). */
#ifndef GATEWAY_STREAM_INTERNAL_H
#define GATEWAY_STREAM_INTERNAL_H

#include "supervisor/gateway/ring.h"
#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/stream.h"

enum { STREAM_TYPES_MAX = 64, OUT_MAX = 16 * 1024 * 1024 };

enum stream_state { BEGINS, CATCHES_UP, FOLLOWS, FINISHES, ENDS };

/* What all streams of one sender follow. */
struct feed {
    struct ring ring;
    struct caller *of;
    uint32_t shard;
    uint32_t users, followers;
    struct call *call;
    msec again; /* not before */
    msec pause; /* before the next read; the next run sets `again` */
    bool lost;  /* the sender is not known to the daemon any more */
};

struct merged;

struct stream {
    struct stream *next, *prev;
    struct http *h;
    struct feed *feed;
    enum stream_state state;
    bool ndjson, from_now;
    const struct stream_view *view; /* NULL: events as they are */
    void *self;                     /* the view's */
    struct merged *merged;          /* it is the whole of all shards (merged.h) */
    struct stream *part_of;         /* it is of one shard, and its events go there */
    bool quiet;                     /* nothing is sent before the end: one answer */
    bool finishing;                 /* the view was told that it is over */
    bool held;                      /* the view takes no event now */
    bool holds; /* it did so once: then pages are small, for what follows is read again */
    char plan_text[65];
    bool plan_over;     /* plan_completed was passed on */
    bool plan_final;    /* the plan had ended when the stream began */
    uint64_t plan_last; /* its last event then */
    uint64_t next_seq;
    uint64_t after; /* what the client has; next_seq may be before it, for a view that learns */
    uint64_t place; /* in the ring */
    struct str plan_id;
    struct str types[STREAM_TYPES_MAX];
    uint32_t types_n;
    struct call *call;
    msec again, sent;
    struct buf out;
    size_t out_at;
    bool asleep; /* its connection is suspended in the middle of the answer */
};

/* Its connection goes on, when it is asleep. */
void stream_wake(struct stream *st);
/* NULL: out of memory. */
struct stream *stream_new(struct http *h, uint32_t shard);
/* The shard of the plan; 0 without a fleet of several. */
uint32_t stream_shard(const struct http *h, struct str plan_id);
/* Asks for the next page; when that fails at the beginning, the refusal is the answer. */
void stream_read_page(struct stream *st);
#endif
