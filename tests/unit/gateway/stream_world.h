/* The plan that a request follows (stream.h), in the hands of a test. Of one test program. */
#ifndef TESTS_GATEWAY_STREAM_WORLD_H
#define TESTS_GATEWAY_STREAM_WORLD_H

#include <stdio.h>
#include <string.h>

#include "supervisor/gateway/stream.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { TEXT_BYTES = 16384 };

struct stream {
    struct buf out;
    const struct stream_view *view;
    void *self;
    bool quiet, stopped, called, finished, refuses;
    uint64_t from;
    char plan[80];
    struct call_spec spec; /* of stream_call; its fields as JSON */
    char fields[512];
    struct http *h;
};
static struct stream follows;

void stream_attach(struct http *h, struct str plan_id, uint64_t from_seq,
                   const struct stream_view *view, void *self, bool quiet)
{
    follows.view = view;
    follows.h = h;
    follows.self = self;
    follows.quiet = quiet;
    follows.from = from_seq;
    (void)snprintf(follows.plan, sizeof follows.plan, "%.*s", STR_ARG(plan_id));
    h->stream = &follows;
    h->state = HTTP_WAITS;
}

void *stream_self(const struct stream *st)
{
    return st->self;
}

struct buf *stream_out(struct stream *st)
{
    return &st->out;
}

void stream_stop(struct stream *st)
{
    st->stopped = true;
}

void stream_finish(struct stream *st)
{
    st->finished = true;
}

bool stream_call(struct stream *st, const struct call_spec *spec)
{
    struct buf json;

    st->spec = *spec;
    buf_init(&json, TEXT_BYTES);
    assert_int_equal(doc_to_json(spec->fields, false, &json, NULL), BT_OK);
    (void)snprintf(st->fields, sizeof st->fields, "%s", buf_cstr(&json));
    buf_done(&json);
    return !st->refuses;
}

void stream_called(struct stream *st)
{
    st->called = true;
}

static inline char *quoted(const char *text)
{
    static char quotes[4][TEXT_BYTES];
    static int next;
    char *to = quotes[next++ % 4];

    (void)snprintf(to, TEXT_BYTES, "%s", text);
    for (char *c = to; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return to;
}

static inline void happens(const char *json)
{
    struct buf doc;

    buf_init(&doc, 4 * TEXT_BYTES);
    assert_int_equal(json_to_doc(str_from(quoted(json)), NULL, &doc, NULL), BT_OK);
    follows.view->event(&follows, doc_from_buf(&doc));
    buf_done(&doc);
}

/* The plan is over: what the view asks for, and its answer. */
static inline void ends_with(const char *json)
{
    struct buf doc;
    struct reply reply = {.ok = true};

    follows.view->over(&follows);
    assert_int_equal(follows.spec.type, MSG_plan_result);
    buf_init(&doc, 4 * TEXT_BYTES);
    assert_int_equal(json_to_doc(str_from(quoted(json)), NULL, &doc, NULL), BT_OK);
    reply.body = doc_from_buf(&doc);
    follows.spec.done(&follows, &reply);
    buf_done(&doc);
}

/* The request is gone, whole or not. */
static inline void stream_over(bool finished)
{
    if (follows.self != NULL) {
        follows.view->gone(&follows, finished);
    }
    buf_done(&follows.out);
    follows = (struct stream){.from = 0};
    buf_init(&follows.out, 1 << 20);
}
#endif
