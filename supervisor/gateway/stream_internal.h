/* Shared by stream.c (how events flow), feed.c (the one read for all), merged.c (all shards) and
 * events.c (what was asked for). */
#ifndef GATEWAY_STREAM_INTERNAL_H
#define GATEWAY_STREAM_INTERNAL_H

#include "supervisor/gateway/ring.h"
#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/stream.h"

enum {
    STREAM_TYPES_MAX = 64,
    OUT_MAX = 16 * 1024 * 1024,
    STREAM_AGAIN_MS = 250
}; /* after a read that failed */

enum stream_state { BEGINS, CATCHES_UP, FOLLOWS, FINISHES, ENDS };

/* An event that a reader has. */
struct event_place {
    uint64_t seq;
    char id[UUID_TEXT_LEN + 1]; /* its eventId; "" = not known */
};

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
    bool looks; /* the next read does not wait */
    /* Of a fleet, whose history may change: who answered last ("" = no fleet), and the eventId of
     * the event before ring.end. All that one leader answers is of one history. */
    char leader[UUID_TEXT_LEN + 1];
    char last_id[UUID_TEXT_LEN + 1];
    uint64_t changed; /* the history is another one from this event on; 0 = it is not */
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
    bool page;                      /* of a whole and its parts: one answer, which waits for no more
                                       than its first event */
    bool caught_up;                 /* of a part of a page: it has all that there was */
    bool quiet;                     /* nothing is sent before the end: one answer */
    bool finishing;                 /* the view was told that it is over */
    bool held;                      /* the view takes no event now */
    bool holds; /* it did so once: then pages are small, for what follows is read again */
    char plan_text[65];
    bool plan_over;     /* plan_completed was passed on */
    bool plan_final;    /* the plan had ended when the stream began */
    uint64_t plan_last; /* its last event then */
    uint64_t next_seq;
    struct event_place
        after;       /* what the client has; next_seq may be before it, for a view that learns */
    bool checks;     /* the next page tells whether the daemon has that event */
    bool looks_back; /* the next page tells the eventId of the event that it begins after */
    bool begins_now; /* it did */
    char leader[UUID_TEXT_LEN + 1];  /* who answered last; "" = no fleet */
    char last_id[UUID_TEXT_LEN + 1]; /* the eventId of the event before next_seq; "" = not known */
    uint64_t place;                  /* in the ring */
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
/* Appends the id of an event of SSE, without a line end: SEQ, of a fleet SEQ:EVENTID. */
void event_place_put(const struct event_place *p, struct buf *out);
/* Reads "12" or "12:EVENTID". False: it is neither. */
bool event_place_read(struct str text, struct event_place *ret);
/* A text of a document as a terminated one; longer ones are cut. */
void event_id_copy(struct str text, char ret[UUID_TEXT_LEN + 1]);
/* From which event on to read again, as a refusal with HISTORY_CHANGED says. */
uint64_t stream_changed_from(const struct problem *p);
/* An event for the view of the stream, as JSON. */
void stream_view_event(struct stream *st, struct str json);
/* Its reader has events that the daemon has not any more, from `from` on: says so, and ends. */
void stream_changed(struct stream *st, uint64_t from);
/* NULL: out of memory. */
struct stream *stream_new(struct http *h, uint32_t shard);
/* The shard of the plan; 0 without a fleet of several. */
uint32_t stream_shard(const struct http *h, struct str plan_id);
/* Asks for the next page; when that fails at the beginning, the refusal is the answer. */
void stream_read_page(struct stream *st);
/* The plan is over, and its reader has all of it: 204 tells a browser not to come again. */
bool stream_is_over(struct stream *st);

/* ---- feed.c ---- */

/* The one of the sender for this shard. NULL: out of memory. */
struct feed *feed_of(struct caller *c, uint32_t shard);
/* A stream does not use it any more. */
void feed_release(struct feed *f);
/* Whether the ring has all from the next one on: then the stream follows it. */
bool feed_join(struct stream *st, uint64_t last_seq);
/* Reads on, when it is time. */
void feed_read(struct feed *f, msec now);
#endif
