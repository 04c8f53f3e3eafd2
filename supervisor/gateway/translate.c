/*
 * What an event becomes: "data: JSON" for each translated object, and one id, that of the event, at
 * the last of them. A client that is cut off between them has the id of the event before, and gets
 * all of them again; with an id at each it would miss the rest.
 */
#include "supervisor/gateway/translate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "baton/vocabulary.h"
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/gateway/json.h"
#include "supervisor/gateway/stream_internal.h"

enum {
    NAME_SHOWN = 40,
    TYPES_MAX = 64,
    ANSWER_MAX = 16 * 1024 * 1024,
    LEARN_EVENTS = 500, /* in a page */
    LEARN_PLANS = 1024  /* as many as a translator keeps: what it drops is not read again */
};

struct translation {
    struct translation *next, *prev; /* of the server */
    struct bt_vocabulary *v;
    struct server *s;
    const struct caller *of;
    struct str types[TYPES_MAX];
    uint32_t types_n;
    struct event_place after; /* events up to it are learned from, and not sent */
    struct event_place seen;  /* the last event */
    uint64_t told;            /* the last id that was sent */
    struct buf held;     /* the event that waits for what its plan was before, or its document */
    uint32_t learned;    /* plans that began before the stream */
    uint64_t learn_from; /* the next event of such a plan; 0 = none is read */
};

static void add(struct server *s, struct translation *t)
{
    t->next = s->translating;
    if (t->next != NULL) {
        t->next->prev = t;
    }
    s->translating = t;
    s->translations++;
}

void translation_free(void *translation)
{
    struct translation *t = translation;

    *(t->prev != NULL ? &t->prev->next : &t->s->translating) = t->next;
    if (t->next != NULL) {
        t->next->prev = t->prev;
    }
    t->s->translations--;
    bt_vocabulary_free(t->v);
    buf_done(&t->held);
    free(t);
}

/* Whether the sender has as many as are free: whoever comes later finds some, too. */
static bool has_its_share(const struct http *h)
{
    uint32_t own = 0;

    for (const struct translation *t = h->s->translating; t != NULL; t = t->next) {
        own += t->of == h->caller;
    }
    return own >= TRANSLATIONS_MAX - h->s->translations;
}

struct translation *translation_new(struct http *h, struct str vocabulary, const struct str *types,
                                    uint32_t n, const struct event_place *after)
{
    struct translation *t;
    char name[NAME_SHOWN + 1];
    struct bt_error err;

    if (has_its_share(h)) {
        http_refuse(h, BT_BUSY, 0, "vocabulary",
                    "64 streams are translated at a time, and a sender has at most as many as it "
                    "leaves to others: come again, or read the events as they are, without "
                    "?vocabulary=");
        return NULL;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL) {
        http_refuse(h, BT_NOMEM, 0, "", "out of memory for a translator");
        return NULL;
    }
    (void)snprintf(name, sizeof name, "%.*s",
                   (int)utf8_cut(vocabulary.ptr, vocabulary.len, NAME_SHOWN), vocabulary.ptr);
    if (bt_vocabulary_new(name, &t->v, &err) != BT_OK) {
        http_refuse(h, err.code, 0, "vocabulary", err.msg);
        free(t);
        return NULL;
    }
    t->s = h->s;
    t->of = h->caller;
    add(h->s, t);
    t->after = *after;
    t->told = after->seq;
    for (uint32_t i = 0; i < n && i < TYPES_MAX; i++) {
        t->types[t->types_n++] = types[i];
    }
    buf_init(&t->held, LIMIT_CONTROL_BYTES);
    return t;
}

static bool wanted(const struct translation *t, const char *type)
{
    bool found = t->types_n == 0;

    for (uint32_t i = 0; i < t->types_n && !found; i++) {
        found = str_is(t->types[i], type);
    }
    return found;
}

static void put_id(struct stream *st)
{
    struct translation *t = stream_self(st);
    struct buf *out = stream_out(st);

    buf_add_cstr(out, "id: ");
    stream_put_id(st, &t->seen, out);
    buf_add_cstr(out, "\n\n");
    t->told = t->seen.seq;
}

static void take(struct stream *st, struct doc event)
{
    struct translation *t = stream_self(st);
    struct buf *out = stream_out(st);
    struct bt_translated said;
    struct bt_error err;
    bool any = false;

    t->seen.seq = doc_head(doc_get(event, STR_LIT("seq"))).u;
    if (st->leader[0] != 0) {
        event_id_copy(doc_string(doc_get(event, STR_LIT("eventId"))), t->seen.id);
    }
    if (bt_vocabulary_take(t->v, event.ptr, event.len, &err) != BT_OK) {
        log_warn("gateway.translate", "event %" PRIu64 ": %s", t->seen.seq, err.msg);
    }
    while (t->seen.seq > t->after.seq && bt_vocabulary_next(t->v, &said)) {
        if (wanted(t, said.type)) {
            buf_add_cstr(out, any ? "\ndata: " : "data: ");
            const size_t from = out->len;
            buf_add_cstr(out, said.json);
            json_tame(out, from);
            buf_add_cstr(out, "\n");
            any = true;
        }
    }
    if (any) {
        put_id(st);
    }
}

/* Without an answer the detail is missing, as for `baton events`. */
static void describe(struct stream *st, const struct reply *reply)
{
    struct translation *t = stream_self(st);
    struct bt_error err;
    struct buf json;

    stream_called(st);
    buf_init(&json, ANSWER_MAX);
    if (reply->ok && answer_body(reply->body, &json) == BT_OK &&
        bt_vocabulary_describe(t->v, buf_cstr(&json), &err) != BT_OK) {
        log_warn("gateway.translate", "the document of a plan: %s", err.msg);
    }
    buf_done(&json);
}

static void on_document(void *self, const struct reply *reply)
{
    struct stream *st = self;
    struct translation *t = stream_self(st);

    describe(st, reply);
    take(st, doc_from_buf(&t->held));
    buf_done(&t->held);
    stream_go_on(st);
}

/* Asks for the document of the event's plan. False: it cannot be asked for. */
static bool ask_plan(struct stream *st, struct doc event,
                     void (*done)(void *self, const struct reply *reply))
{
    struct call_spec spec = {
        .type = MSG_plan_get, .answer = MSG_plan_view, .reads = true, .done = done, .self = st};
    struct buf fields;
    bool asked;

    buf_init(&fields, 1024);
    doc_put_map(&fields, 3);
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, doc_string(doc_get(event, STR_LIT("planId"))));
    doc_put_cstr(&fields, "document");
    doc_put_bool(&fields, true);
    doc_put_cstr(&fields, "steps");
    doc_put_bool(&fields, false);
    spec.fields = doc_from_buf(&fields);
    asked = buf_check(&fields, NULL) == BT_OK && stream_call(st, &spec);
    buf_done(&fields);
    return asked;
}

static bool ask_document(struct stream *st, struct doc event)
{
    struct translation *t = stream_self(st);
    bool asked;

    buf_add(&t->held, event.ptr, event.len);
    asked = buf_check(&t->held, NULL) == BT_OK && ask_plan(st, event, on_document);
    if (!asked) {
        buf_done(&t->held);
    }
    return asked;
}

/* Takes the event, perhaps after its plan's document is here. */
static void proceed(struct stream *st, struct doc event)
{
    const struct translation *t = stream_self(st);
    const struct str type = doc_string(doc_get(event, STR_LIT("type")));
    char name[RING_TYPE_MAX + 1];

    (void)snprintf(name, sizeof name, "%.*s", (int)type.len, type.len > 0 ? type.ptr : "");
    if (bt_vocabulary_wants_plan(t->v, name) && ask_document(st, event)) {
        stream_hold(st);
        return;
    }
    take(st, event);
}

/* ---- a plan that began before the stream ---- */

static bool read_before(struct stream *st);

static void learn_page(struct translation *t, struct doc events, uint64_t before)
{
    struct doc_cursor at = doc_cursor(events);
    struct doc_head head;
    struct bt_error err;

    for (uint32_t i = doc_next(&at, &head) && head.kind == DOC_ARRAY ? head.n : 0; i > 0; i--) {
        const struct doc event = doc_skip(&at);
        if (doc_head(doc_get(event, STR_LIT("seq"))).u < before &&
            bt_vocabulary_learn(t->v, event.ptr, event.len, &err) != BT_OK) {
            log_warn("gateway.translate", "an event of before: %s", err.msg);
        }
    }
}

/* Goes on with the event that waited. */
static void go_on(struct stream *st)
{
    struct translation *t = stream_self(st);
    struct buf event = t->held;

    buf_init(&t->held, LIMIT_CONTROL_BYTES);
    t->learn_from = 0;
    stream_go_on(st);
    proceed(st, doc_from_buf(&event));
    buf_done(&event);
}

static void on_before(void *self, const struct reply *reply)
{
    struct stream *st = self;
    struct translation *t = stream_self(st);
    const uint64_t held = doc_head(doc_get(doc_from_buf(&t->held), STR_LIT("seq"))).u;
    uint64_t next;

    stream_called(st);
    if (!reply->ok && err_code_retryable(reply->problem.code)) {
        stream_stop(st); /* it comes back with the id of the event before */
        stream_go_on(st);
        return;
    }
    next = reply->ok ? doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u : 0;
    if (reply->ok) {
        learn_page(t, doc_get(reply->body, STR_LIT("events")), held);
    }
    if (next > t->learn_from && next < held) {
        t->learn_from = next;
        if (read_before(st)) {
            return;
        }
    }
    go_on(st);
}

/* False: it cannot be asked for. */
static bool read_before(struct stream *st)
{
    struct translation *t = stream_self(st);
    const struct doc event = doc_from_buf(&t->held);
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .done = on_before,
                             .self = st};
    struct buf fields;
    bool asked;

    buf_init(&fields, 1024);
    doc_put_map(&fields, 3);
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, doc_string(doc_get(event, STR_LIT("planId"))));
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, t->learn_from);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, LEARN_EVENTS);
    spec.fields = doc_from_buf(&fields);
    asked = buf_check(&fields, NULL) == BT_OK && stream_call(st, &spec);
    buf_done(&fields);
    return asked;
}

static void on_described(void *self, const struct reply *reply)
{
    struct stream *st = self;

    describe(st, reply);
    if (!read_before(st)) {
        go_on(st);
    }
}

/* Whether the event waits until all that was before it in its plan is known: first the plan's
 * document, where one of its events would have wanted it. */
static bool learns(struct stream *st, struct doc event)
{
    struct translation *t = stream_self(st);

    if (t->learned == LEARN_PLANS || !bt_vocabulary_lacks(t->v, event.ptr, event.len)) {
        return false;
    }
    buf_add(&t->held, event.ptr, event.len);
    t->learned++;
    t->learn_from = 1;
    if (buf_check(&t->held, NULL) != BT_OK) {
        buf_done(&t->held);
        return false;
    }
    const bool wants = bt_vocabulary_wants_plan(t->v, "plan_generated") ||
                       bt_vocabulary_wants_plan(t->v, "replan_finished");
    if (wants ? ask_plan(st, event, on_described) : read_before(st)) {
        stream_hold(st);
        return true;
    }
    buf_done(&t->held);
    return false;
}

static void on_event(struct stream *st, struct doc event)
{
    if (!learns(st, event)) {
        proceed(st, event);
    }
}

/* The id of the last event, also when that has become nothing: whoever comes again with it is told
 * that the plan is over. */
static void on_over(struct stream *st)
{
    struct translation *t = stream_self(st);
    const uint64_t last = stream_plan_last(st); /* plan_completed is not always the last */

    if (last > t->seen.seq) {
        t->seen = (struct event_place){.seq = last};
    }
    if (t->seen.seq > t->told) {
        put_id(st);
    }
    stream_finish(st);
}

static void on_gone(struct stream *st, bool finished)
{
    (void)finished;
    translation_free(stream_self(st));
}

const struct stream_view translation_view = {on_event, on_over, on_gone};

void translation_attach(struct http *h, struct str plan_id)
{
    struct translation *t = h->own;

    h->own = NULL;
    stream_attach_after(h, plan_id, &t->after, &translation_view, t);
}
