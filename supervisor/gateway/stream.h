/*
 * A plan that is followed for one request, in words of another protocol: a view makes of each event
 * what is sent, and of the end of the plan what remains. Sent as Server-Sent Events while it comes,
 * or (quiet) as one answer at the end. One thread.
 *
 *     stream_attach -> event, event, ... -> over -> stream_finish
 */
#ifndef GATEWAY_STREAM_H
#define GATEWAY_STREAM_H

#include "supervisor/gateway/http.h"
#include "supervisor/gateway/ring.h"

struct stream_view {
    /* An event of the plan, in order. */
    void (*event)(struct stream *st, struct doc event);
    /* The plan is over, stream_stop was called, or it cannot be read any more: asks for what it
     * needs, and calls stream_finish at last, perhaps at once. */
    void (*over)(struct stream *st);
    /* The request ends, perhaps before that (finished: it was answered whole). Frees self. */
    void (*gone)(struct stream *st, bool finished);
};

/* The request waits (http_wait) and has a caller. Takes self, also when it fails: then the request
 * is refused. */
void stream_attach(struct http *h, struct str plan_id, uint64_t from_seq,
                   const struct stream_view *view, void *self, bool quiet);
struct event_place;
/* The same, of a reader who has that event already, from the first one on: when the daemon has
 * another one of its number, the request is refused. */
void stream_attach_after(struct http *h, struct str plan_id, const struct event_place *after,
                         const struct stream_view *view, void *self);
void *stream_self(const struct stream *st);
struct http *stream_http(const struct stream *st);
struct str stream_plan(const struct stream *st);
uint64_t stream_next_seq(const struct stream *st);
/* The last event of the plan when the request came, if it had ended then; else 0. */
uint64_t stream_plan_last(const struct stream *st);
/* What is sent; a view appends. Quiet: the body of the answer. */
struct buf *stream_out(struct stream *st);
/* Appends the id of SSE of an event that the view has just got, without a line end. */
void stream_put_id(const struct stream *st, const struct event_place *at, struct buf *out);
/* No event before stream_go_on: what this one needs was asked for by stream_call. */
void stream_hold(struct stream *st);
void stream_go_on(struct stream *st);
/* No more events: over follows. */
void stream_stop(struct stream *st);
/* All is written. */
void stream_finish(struct stream *st);
/* A call whose `done` gets the stream as self; it is abandoned with the stream. False: it cannot be
 * made. */
bool stream_call(struct stream *st, const struct call_spec *spec);
/* For its `done`, before anything else. */
void stream_called(struct stream *st);
bool stream_is_quiet(const struct stream *st);
/* The streams of a server, for who looks for one: NULL begins, NULL ends. */
struct stream *stream_next(const struct server *s, const struct stream *before);
const struct stream_view *stream_view_of(const struct stream *st);
#endif
