/* A stream with a view: a plan that is followed for one request (stream.h). */
#include "supervisor/gateway/merged.h"

/* NULL after refusing. */
static struct stream *attach(struct http *h, struct str plan_id, const struct stream_view *view,
                             void *self)
{
    struct stream *st =
        plan_id.len < sizeof st->plan_text ? stream_new(h, stream_shard(h, plan_id)) : NULL;
    struct stream none = {.self = self, .h = h};

    if (st == NULL) {
        view->gone(&none, false);
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for a stream");
        http_ready(h);
        return NULL;
    }
    memcpy(st->plan_text, plan_id.ptr, plan_id.len);
    st->plan_id = (struct str){st->plan_text, plan_id.len};
    st->view = view;
    st->self = self;
    st->sent = h->s->now;
    h->stream = st;
    return st;
}

void stream_attach(struct http *h, struct str plan_id, uint64_t from_seq,
                   const struct stream_view *view, void *self, bool quiet)
{
    struct stream *st = attach(h, plan_id, view, self);

    if (st == NULL) {
        return;
    }
    st->quiet = quiet;
    st->next_seq = from_seq;
    st->state = CATCHES_UP;
    if (!quiet) {
        h->status = 200;
        h->type = "text/event-stream";
        h->state = HTTP_READY;
        http_ready(h);
    }
}

void stream_attach_after(struct http *h, struct str plan_id, const struct event_place *after,
                         const struct stream_view *view, void *self)
{
    struct stream *st;

    if (after->id[0] == 0) {
        stream_attach(h, plan_id, 1, view, self, false);
        return;
    }
    st = attach(h, plan_id, view, self);
    if (st != NULL) {
        st->next_seq = 1;
        st->after = *after;
        st->checks = true;
        stream_read_page(st);
    }
}

void *stream_self(const struct stream *st)
{
    return st->self;
}

struct http *stream_http(const struct stream *st)
{
    return st->h;
}

struct str stream_plan(const struct stream *st)
{
    return st->plan_id;
}

uint64_t stream_next_seq(const struct stream *st)
{
    return st->next_seq;
}

uint64_t stream_plan_last(const struct stream *st)
{
    return st->plan_final ? st->plan_last : 0;
}

struct buf *stream_out(struct stream *st)
{
    return &st->out;
}

const struct stream_view *stream_view_of(const struct stream *st)
{
    return st->view;
}

struct stream *stream_next(const struct server *s, const struct stream *before)
{
    return before == NULL ? s->streams : before->next;
}

void stream_put_id(const struct stream *st, const struct event_place *at, struct buf *out)
{
    if (st->merged != NULL) {
        merged_put_vector(st, out);
    } else {
        event_place_put(at, out);
    }
}

void stream_stop(struct stream *st)
{
    st->plan_over = true;
}

void stream_hold(struct stream *st)
{
    st->held = st->holds = true;
    if (st->merged != NULL) {
        merged_hold(st, true);
    }
}

void stream_go_on(struct stream *st)
{
    st->held = false;
    if (st->merged != NULL) {
        merged_hold(st, false);
    }
    stream_wake(st);
}

bool stream_is_quiet(const struct stream *st)
{
    return st->quiet;
}

bool stream_call(struct stream *st, const struct call_spec *spec)
{
    struct bt_error err;

    return caller_call(st->h->caller, spec, st->h->s->now, &st->call, &err) == BT_OK;
}

void stream_called(struct stream *st)
{
    st->call = NULL;
}

void stream_finish(struct stream *st)
{
    struct http *h = st->h;

    st->call = NULL;
    st->state = ENDS;
    if (!st->quiet) {
        stream_wake(st);
        return;
    }
    if (h->state == HTTP_WAITS) {
        h->status = 200;
        h->type = "application/json";
        h->state = HTTP_READY;
        buf_add(&h->out, st->out.at, st->out.len);
        buf_done(&st->out);
        http_ready(h);
    }
}
