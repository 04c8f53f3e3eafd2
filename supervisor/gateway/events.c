/* What is asked for at the addresses of events: a stream by SSE or NDJSON, or one page. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/merged.h"
#include "supervisor/gateway/translate.h"

struct asked {
    bool page, ndjson, has_after;
    bool merged; /* events of all shards of a fleet of several: `after` is a vector */
    struct event_place vector[SHARDS_MAX];
    struct event_place after;
    uint64_t limit, wait_ms;
    struct str types[STREAM_TYPES_MAX];
    uint32_t types_n;
    struct str vocabulary; /* empty = Baton's own */
};

static struct str plan_of(const struct http *h)
{
    return h->params.n > 0 ? h->params.at[0].value : (struct str){NULL, 0};
}

static bool accepts(const struct http *h, const char *type)
{
    return h->heads.accept != NULL && strcasestr(h->heads.accept, type) != NULL;
}

/* The form by Accept; any is a stream for EventSource. */
static bool read_form(struct http *h, struct asked *a)
{
    a->ndjson = accepts(h, "application/x-ndjson") || accepts(h, "application/jsonl");
    a->page = !a->ndjson && accepts(h, "application/json");
    if (h->heads.accept == NULL || a->ndjson || a->page || accepts(h, "text/event-stream") ||
        accepts(h, "*/*") || accepts(h, "text/*")) {
        return true;
    }
    http_refuse(
        h, BT_INVALID, 406, "Accept",
        "expected text/event-stream, application/x-ndjson, or application/json for one page");
    return false;
}

static bool refuse_param(struct http *h, struct str name, const char *message)
{
    char field[FIELD_NAME_MAX + 1];
    char text[200];

    (void)snprintf(field, sizeof field, "%.*s", (int)(name.len < 40 ? name.len : 40), name.ptr);
    (void)snprintf(text, sizeof text, "%s (query): %s", field, message);
    http_refuse(h, BT_INVALID, 400, field, text);
    return false;
}

static bool take_vocabulary(struct http *h, const struct uri_param *p, struct asked *a)
{
    if (a->vocabulary.ptr != NULL) {
        return refuse_param(h, p->name, "it stands there twice: give it once");
    }
    a->vocabulary = p->value;
    return true;
}

static const char vector_form[] =
    "expected the id of the last event, a vector as S0=12;S1=40 with shards of this fleet, each "
    "perhaps with its eventId (S0=12:EVENTID), or 0";

/* What the reader has. NULL, or what would be right. */
static const char *read_place(const struct http *h, struct str text, struct asked *a)
{
    a->has_after = true;
    if (a->merged) {
        return merged_read_vector(text, upstream_shards(h->s->up), a->vector) ? NULL : vector_form;
    }
    return event_place_read(text, &a->after)
               ? NULL
               : "expected the id of the last event: its number, perhaps with its eventId "
                 "(12:EVENTID)";
}

static bool read_param(struct http *h, const struct uri_param *p, uint32_t *seen, struct asked *a)
{
    const struct {
        const char *name;
        uint64_t *value;
        uint64_t max;
        bool page;
    } numbers[] = {{"after", NULL, 0, false},
                   {"limit", &a->limit, LIMIT_EVENTS_READ, true},
                   {"waitMs", &a->wait_ms, 60000, true}};
    char text[96];

    if (str_is(p->name, "type")) {
        if (a->types_n == STREAM_TYPES_MAX) {
            return refuse_param(h, p->name, "at most 64 types");
        }
        a->types[a->types_n++] = p->value;
        return true;
    }
    if (str_is(p->name, "vocabulary")) {
        if (a->page || a->ndjson) {
            return refuse_param(h, p->name, "only for a stream (Accept: text/event-stream)");
        }
        return take_vocabulary(h, p, a);
    }
    for (uint32_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!str_is(p->name, numbers[i].name)) {
            continue;
        }
        if (numbers[i].page && !a->page) {
            return refuse_param(h, p->name, "only for a page (Accept: application/json)");
        }
        if ((*seen >> i & 1u) != 0) {
            return refuse_param(h, p->name, "it stands there twice: give it once");
        }
        *seen |= 1u << i;
        if (i == 0) {
            const char *wrong = read_place(h, p->value, a);
            return wrong == NULL || refuse_param(h, p->name, wrong);
        }
        (void)snprintf(text, sizeof text, "expected a number up to %llu",
                       (unsigned long long)numbers[i].max);
        return fields_number(p->value, numbers[i].max, numbers[i].value) ||
               refuse_param(h, p->name, text);
    }
    return refuse_param(h, p->name,
                        "there is no such field; there are after, type, limit, waitMs, "
                        "vocabulary");
}

/* A browser that comes back keeps the query: the header wins. */
static bool read_last(struct http *h, struct asked *a)
{
    const char *last = h->heads.last_event_id;
    const char *wrong;
    char text[256];

    if (last == NULL || last[0] == 0) {
        return true;
    }
    wrong = read_place(h, str_from(last), a);
    if (wrong != NULL) {
        (void)snprintf(text, sizeof text, "the header Last-Event-ID: %s", wrong);
        http_refuse(h, BT_INVALID, 400, "Last-Event-ID", text);
    }
    return wrong == NULL;
}

static bool read_asked(struct http *h, struct asked *a)
{
    uint32_t seen = 0;

    a->merged = plan_of(h).len == 0 && upstream_shards(h->s->up) > 1;
    if (!read_form(h, a)) {
        return false;
    }
    if (h->heads.idempotency_key != NULL || h->heads.if_match != NULL) {
        http_refuse(h, BT_INVALID, 400, "",
                    "the headers Idempotency-Key and If-Match have no meaning for events");
        return false;
    }
    for (uint32_t i = 0; i < h->uri.params_n; i++) {
        if (!read_param(h, &h->uri.params[i], &seen, a)) {
            return false;
        }
    }
    return read_last(h, a);
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    doc_put_cstr(out, name);
    doc_put_u64(out, value);
}

static void ask_page(struct http *h, const struct asked *a)
{
    const struct str plan = plan_of(h);
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .wait_ms = a->wait_ms,
                             .done = answer_take,
                             .self = h};
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 3u + (a->after.id[0] != 0) + (plan.len > 0) + (a->types_n > 0));
    put_number(&fields, "fromSeq", a->after.seq + 1);
    if (a->after.id[0] != 0) {
        doc_put_cstr(&fields, "afterEventId");
        doc_put_cstr(&fields, a->after.id);
    }
    put_number(&fields, "limit", a->limit);
    put_number(&fields, "waitMs", a->wait_ms);
    if (plan.len > 0) {
        doc_put_cstr(&fields, "planId");
        doc_put_str(&fields, plan);
    }
    if (a->types_n > 0) {
        doc_put_cstr(&fields, "types");
        doc_put_array(&fields, a->types_n);
        for (uint32_t i = 0; i < a->types_n; i++) {
            doc_put_str(&fields, a->types[i]);
        }
    }
    spec.fields = doc_from_buf(&fields);
    if (buf_check(&fields, &err) == BT_OK &&
        caller_call(h->caller, &spec, h->s->now, &h->call, &err) == BT_OK) {
        http_wait(h);
    } else {
        http_refuse(h, err.code, 0, "", err.msg);
    }
    buf_done(&fields);
}

/* ---- a stream ---- */

/* Whether the plan is over. What the client has is checked first, where that can be. */
static void on_plan(void *self, const struct reply *reply)
{
    struct stream *st = self;
    struct http *h = st->h;
    struct str status;

    st->call = NULL;
    if (!reply->ok) {
        http_problem(h, &reply->problem);
        http_ready(h);
        return;
    }
    status = doc_string(doc_get(reply->body, STR_LIT("status")));
    st->plan_last = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u;
    st->plan_final = str_is(status, "completed") || str_is(status, "failed") ||
                     str_is(status, "cancelled") || str_is(status, "planned") ||
                     str_is(status, "quarantined");
    if (st->checks || !stream_is_over(st)) {
        stream_read_page(st);
    }
}

static void ask_plan(struct stream *st)
{
    struct http *h = st->h;
    struct call_spec spec = {
        .type = MSG_plan_get, .answer = MSG_plan_view, .reads = true, .done = on_plan, .self = st};
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, 1024 + st->plan_id.len);
    doc_put_map(&fields, 1);
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, st->plan_id);
    spec.fields = doc_from_buf(&fields);
    if (buf_check(&fields, &err) != BT_OK ||
        caller_call(h->caller, &spec, h->s->now, &st->call, &err) != BT_OK) {
        http_refuse(h, err.code, 0, "", err.msg);
    }
    buf_done(&fields);
}

/* In other words: of a plan from its first event on, for the translator learns of it. */
static void translate(struct stream *st, const struct asked *a)
{
    st->self = translation_new(st->h, a->vocabulary, a->types, a->types_n, &a->after);
    st->view = st->self != NULL ? &translation_view : NULL;
    if (st->plan_id.len > 0) {
        st->next_seq = 1;
        st->last_id[0] = 0;
    }
}

void stream_begin(struct http *h)
{
    struct asked a = {.limit = 100};
    struct stream *st;

    if (!read_asked(h, &a)) {
        return;
    }
    if (a.page && !a.merged) {
        ask_page(h, &a);
        return;
    }
    st = stream_new(h, stream_shard(h, plan_of(h)));
    if (st == NULL) {
        http_refuse(h, BT_NOMEM, 0, "", "out of memory for a stream");
        return;
    }
    h->stream = st;
    st->ndjson = a.ndjson;
    st->plan_id = plan_of(h);
    st->from_now = st->plan_id.len == 0 && !a.has_after;
    st->after = a.after;
    st->next_seq = a.after.seq + 1;
    st->checks = !a.merged && a.after.id[0] != 0;
    memcpy(st->last_id, a.after.id, sizeof st->last_id);
    if (a.vocabulary.ptr != NULL) {
        translate(st, &a);
    } else {
        st->types_n = a.types_n;
        memcpy(st->types, a.types, sizeof a.types);
    }
    if (h->state == HTTP_READY) {
        return; /* refused */
    }
    if (a.merged && a.page) {
        merged_begin_page(st, a.vector, (uint32_t)a.limit, a.wait_ms);
    } else if (a.merged) {
        merged_begin(st, a.has_after ? a.vector : NULL);
    }
    if (a.merged) {
        if (h->state != HTTP_READY) {
            http_wait(h);
        }
        return;
    }
    if (st->plan_id.len > 0) {
        ask_plan(st);
    } else {
        stream_read_page(st);
    }
    if (st->call != NULL) {
        http_wait(h);
    }
}

/* ---- a task ---- */

/* Takes ?vocabulary= out of the query: the rest are fields of plan.submit. */
static bool read_words(struct http *h, struct asked *a)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->uri.params_n; i++) {
        const struct uri_param p = h->uri.params[i];
        if (!str_is(p.name, "vocabulary")) {
            h->uri.params[n++] = p;
        } else if (!take_vocabulary(h, &p, a)) {
            return false;
        }
    }
    h->uri.params_n = n;
    return true;
}

void task_begin(struct http *h)
{
    struct asked a = {.has_after = false};

    if (!read_form(h, &a) || !read_words(h, &a) || !read_last(h, &a)) {
        return;
    }
    if (a.page || a.ndjson) {
        http_refuse(h, BT_INVALID, 406, "Accept",
                    "expected text/event-stream; POST /v1/plans answers with JSON");
        return;
    }
    h->own = translation_new(h, a.vocabulary.ptr != NULL ? a.vocabulary : STR_LIT("ai-sdk"), NULL,
                             0, &a.after);
    if (h->own != NULL) {
        h->own_free = translation_free;
        http_ask(h);
    }
}
