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

enum { NAME_SHOWN = 40, TYPES_MAX = 64, ANSWER_MAX = 16 * 1024 * 1024 };

struct translation {
    struct bt_vocabulary *v;
    struct server *s;
    struct str types[TYPES_MAX];
    uint32_t types_n;
    uint64_t after;      /* events up to it are learned from, and not sent */
    uint64_t seen, told; /* the last event; the last id that was sent */
    struct buf held;     /* the event that waits for the document of its plan */
};

void translation_free(void *translation)
{
    struct translation *t = translation;

    t->s->translations--;
    bt_vocabulary_free(t->v);
    buf_done(&t->held);
    free(t);
}

struct translation *translation_new(struct http *h, struct str vocabulary, const struct str *types,
                                    uint32_t n, uint64_t after)
{
    struct translation *t;
    char name[NAME_SHOWN + 1];
    struct bt_error err;

    if (h->s->translations == TRANSLATIONS_MAX) {
        http_refuse(h, BT_BUSY, 0, "vocabulary",
                    "64 streams are translated at a time: come again, or read the events as they "
                    "are, without ?vocabulary=");
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
    t->s->translations++;
    t->after = t->told = after;
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

static void put_id(struct translation *t, struct buf *out)
{
    buf_printf(out, "id: %" PRIu64 "\n\n", t->seen);
    t->told = t->seen;
}

static void take(struct stream *st, struct doc event)
{
    struct translation *t = stream_self(st);
    struct buf *out = stream_out(st);
    struct bt_translated said;
    struct bt_error err;
    bool any = false;

    t->seen = doc_head(doc_get(event, STR_LIT("seq"))).u;
    if (bt_vocabulary_take(t->v, event.ptr, event.len, &err) != BT_OK) {
        log_warn("gateway.translate", "event %" PRIu64 ": %s", t->seen, err.msg);
    }
    while (t->seen > t->after && bt_vocabulary_next(t->v, &said)) {
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
        put_id(t, out);
    }
}

/* Without an answer the detail is missing, as for `baton events`. */
static void on_document(void *self, const struct reply *reply)
{
    struct stream *st = self;
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
    take(st, doc_from_buf(&t->held));
    buf_done(&t->held);
    stream_go_on(st);
}

/* False: it cannot be asked for. */
static bool ask_document(struct stream *st, struct doc event)
{
    struct translation *t = stream_self(st);
    struct call_spec spec = {.type = MSG_plan_get,
                             .answer = MSG_plan_view,
                             .reads = true,
                             .done = on_document,
                             .self = st};
    struct buf fields;
    bool asked = false;

    buf_init(&fields, 1024);
    doc_put_map(&fields, 3);
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, doc_string(doc_get(event, STR_LIT("planId"))));
    doc_put_cstr(&fields, "document");
    doc_put_bool(&fields, true);
    doc_put_cstr(&fields, "steps");
    doc_put_bool(&fields, false);
    buf_add(&t->held, event.ptr, event.len);
    spec.fields = doc_from_buf(&fields);
    if (buf_check(&fields, NULL) == BT_OK && buf_check(&t->held, NULL) == BT_OK) {
        asked = stream_call(st, &spec);
    }
    if (!asked) {
        buf_done(&t->held);
    }
    buf_done(&fields);
    return asked;
}

static void on_event(struct stream *st, struct doc event)
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

/* The id of the last event, also when that has become nothing: whoever comes again with it is told
 * that the plan is over. */
static void on_over(struct stream *st)
{
    struct translation *t = stream_self(st);
    const uint64_t last = stream_plan_last(st); /* plan_completed is not always the last */

    t->seen = last > t->seen ? last : t->seen;
    if (t->seen > t->told) {
        put_id(t, stream_out(st));
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
    stream_attach(h, plan_id, 1, &translation_view, t, false);
}
