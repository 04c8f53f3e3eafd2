/* webhook.list, webhook.resend, webhook.test, hook.list: files that the gateway reads and writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "supervisor/api/api.h"
#include "supervisor/api/hooks/files.h"

enum { LIST_MAX = 100, SHOWN_HOOKS_MAX = 64, TOPICS_MAX = 16, STATUS_MAX = 999 };

static void refuse(struct engine *engine, struct request *rq, const struct bt_error *err)
{
    request_refuse(engine, rq, err, CLASS_NONE, 0, (struct doc){NULL, 0});
}

static const char *state_of(const struct engine *engine)
{
    return engine_options(engine)->state_dir;
}

static uint64_t number(struct doc d, const char *name)
{
    const struct doc v = doc_get(d, str_from(name));

    return v.ptr != NULL && doc_head(v).kind == DOC_UINT ? doc_head(v).u : 0;
}

/* At most max bytes of a text, in the arena. */
static struct str text(struct arena *arena, struct doc d, const char *name, size_t max)
{
    struct str s = doc_string(doc_get(d, str_from(name)));

    s.len = utf8_cut(s.ptr, s.len, max);
    return arena_str(arena, s);
}

/* "" = none. */
static struct str time_text(struct arena *arena, uint64_t wall_ms)
{
    char iso[CLOCK_ISO_LEN + 1];

    if (wall_ms == 0 || wall_ms > MSEC_NEVER / 2) {
        return (struct str){"", 0};
    }
    clock_iso(wall_ms, iso);
    return arena_str(arena, str_from(iso));
}

/* ---- webhook.list ---- */

static void put_topics(struct arena *arena, struct doc spec, struct msg_webhook_view *v)
{
    const struct doc list = doc_get(spec, STR_LIT("topics"));
    const struct doc_head head =
        list.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(list);
    const uint32_t n = head.kind != DOC_ARRAY ? 0 : head.n > TOPICS_MAX ? TOPICS_MAX : head.n;
    struct str *topics = arena_alloc(arena, (n + 1) * sizeof *topics);

    for (uint32_t i = 0; topics != NULL && i < n; i++) {
        const struct str s = doc_string(doc_at(list, i));
        topics[v->topics_n++] = arena_str(arena, s.len > 64 ? (struct str){s.ptr, 64} : s);
    }
    v->topics = topics;
}

static void put_progress(struct arena *arena, struct doc spec, struct doc at,
                         struct msg_webhook_view *v)
{
    const struct doc parked = doc_get(at, STR_LIT("parked"));
    const uint64_t from = number(spec, "fromSeq");
    const bool is_parked = parked.ptr != NULL && doc_head(parked).b;

    v->seq = from > 0 ? from - 1 : 0;
    if (at.ptr == NULL || number(at, "made") != number(spec, "made")) {
        v->status = STR_LIT("ok");
        return;
    }
    v->seq = number(at, "seq");
    v->tries = number(at, "tries");
    v->status = is_parked ? STR_LIT("parked") : v->tries > 0 ? STR_LIT("failing") : STR_LIT("ok");
    v->reason = text(arena, at, "why", 160);
    v->next_try =
        is_parked || v->tries == 0 ? (struct str){"", 0} : time_text(arena, number(at, "dueMs"));
    v->tested = number(at, "tested");
    v->test_status = number(at, "testStatus");
    v->test_status = v->test_status > STATUS_MAX ? 0 : v->test_status;
    v->test_reason = text(arena, at, "testWhy", 160);
    if (v->tested > 0) {
        msg_set(v, webhook_view, tested);
        msg_set(v, webhook_view, test_status);
    }
}

static void put_view(const char *state, const char *name, struct arena *arena,
                     struct msg_webhook_view *v)
{
    char path[128];
    struct buf spec, at;

    v->name = str_from(name);
    buf_init(&spec, json_doc_capacity(HOOK_FILE_MAX));
    buf_init(&at, json_doc_capacity(HOOK_FILE_MAX));
    (void)snprintf(path, sizeof path, "webhooks/%s.json", name);
    if (hook_file_read(state, path, &spec, NULL) != BT_OK) {
        v->status = STR_LIT("unreadable");
    } else {
        const struct doc d = doc_from_buf(&spec);
        struct doc progress = {.ptr = NULL};
        (void)snprintf(path, sizeof path, "webhooks/%s.at", name);
        if (hook_file_read(state, path, &at, NULL) == BT_OK) {
            progress = doc_from_buf(&at);
        }
        v->url = text(arena, d, "url", 2048);
        v->body = text(arena, d, "body", 16);
        v->plan_id = text(arena, d, "planId", 64);
        put_topics(arena, d, v);
        put_progress(arena, d, progress, v);
    }
    buf_done(&at);
    if (spec.at != NULL) {
        explicit_bzero(spec.at, spec.cap); /* a push notification has its credentials there */
    }
    buf_done(&spec);
}

static enum bt_code put_page(struct engine *engine, const struct msg_webhook_list *m,
                             struct arena *arena, struct msg_webhook_list_ok *ok,
                             struct bt_error *err)
{
    const uint32_t limit = m->limit == 0 ? LIST_MAX : (uint32_t)m->limit;
    struct hook_names *names = arena_alloc(arena, sizeof *names);
    char after[HOOK_NAME_MAX + 1];
    enum bt_code code;

    (void)snprintf(after, sizeof after, "%.*s", (int)m->after.len,
                   m->after.len > 0 ? m->after.ptr : "");
    ok->webhooks = arena_alloc(arena, limit * sizeof *ok->webhooks);
    if (names == NULL || ok->webhooks == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list");
    }
    code = hook_names_read(state_of(engine), names, err);
    for (uint32_t i = 0; code == BT_OK && i < names->n; i++) {
        const char *name = names->at[i];
        if (strcmp(name, after) <= 0) {
            continue;
        }
        if (ok->webhooks_n == limit) {
            ok->after = ok->webhooks[limit - 1].name;
            break;
        }
        put_view(state_of(engine), name, arena, &ok->webhooks[ok->webhooks_n++]);
    }
    return code;
}

void on_webhook_list(struct engine *engine, struct request *rq)
{
    struct msg_webhook_list_ok ok = {.has = 0};
    struct msg_webhook_list m;
    struct arena arena = {0};
    struct bt_error err;

    if (!request_read(engine, rq, MSG_webhook_list, &m)) {
        return;
    }
    if (put_page(engine, &m, &arena, &ok, &err) == BT_OK) {
        request_answer(engine, rq, MSG_webhook_list_ok, &ok);
    } else {
        refuse(engine, rq, &err);
    }
    arena_done(&arena);
}

/* ---- orders ---- */

/* from_seq: of a resend; NULL = a test. */
static enum bt_code order(struct engine *engine, const char *name, const uint64_t *from_seq,
                          uint64_t *ret_order, struct bt_error *err)
{
    char path[128];
    struct buf spec, value;
    struct doc d;
    enum bt_code code;

    buf_init(&spec, json_doc_capacity(HOOK_FILE_MAX));
    buf_init(&value, 256);
    (void)snprintf(path, sizeof path, "webhooks/%s.json", name);
    code = hook_file_read(state_of(engine), path, &spec, err);
    if (code == BT_NOT_FOUND) {
        code = err_set(err, BT_NOT_FOUND, "name: there is no webhook '%s'", name);
    }
    if (code == BT_OK) {
        uint64_t last;
        d = doc_from_buf(&spec);
        last =
            from_seq == NULL ? number(d, "test") : number(doc_get(d, STR_LIT("resend")), "order");
        *ret_order = engine_wall(engine) > last ? engine_wall(engine) : last + 1;
        if (from_seq != NULL) {
            doc_put_map(&value, 2);
            doc_put_cstr(&value, "order");
            doc_put_u64(&value, *ret_order);
            doc_put_cstr(&value, "fromSeq");
            doc_put_u64(&value, *from_seq);
        } else {
            doc_put_u64(&value, *ret_order);
        }
        code = hook_file_order(state_of(engine), name, d, from_seq == NULL ? "test" : "resend",
                               doc_from_buf(&value), err);
    }
    buf_done(&value);
    if (spec.at != NULL) {
        explicit_bzero(spec.at, spec.cap);
    }
    buf_done(&spec);
    return code;
}

/* from_seq as in `order`. False after refusing. */
static bool take_order(struct engine *engine, struct request *rq, struct str hook,
                       const uint64_t *from_seq, uint64_t *ret_order)
{
    char name[HOOK_NAME_MAX + 1];
    struct bt_error err;

    if (!hook_name_ok(hook)) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "name: expected 1 to 64 characters a-z 0-9 _ -");
        return false;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)hook.len, hook.ptr);
    if (order(engine, name, from_seq, ret_order, &err) != BT_OK) {
        refuse(engine, rq, &err);
        return false;
    }
    return true;
}

void on_webhook_resend(struct engine *engine, struct request *rq)
{
    struct msg_webhook_resend_ok ok = {.order = 0};
    struct msg_webhook_resend m;

    if (request_read(engine, rq, MSG_webhook_resend, &m) &&
        take_order(engine, rq, m.name, &m.from_seq, &ok.order)) {
        ok.name = m.name;
        request_answer(engine, rq, MSG_webhook_resend_ok, &ok);
    }
}

void on_webhook_test(struct engine *engine, struct request *rq)
{
    struct msg_webhook_test_ok ok = {.order = 0};
    struct msg_webhook_test m;

    if (request_read(engine, rq, MSG_webhook_test, &m) &&
        take_order(engine, rq, m.name, NULL, &ok.order)) {
        ok.name = m.name;
        request_answer(engine, rq, MSG_webhook_test_ok, &ok);
    }
}

/* ---- hook.list ---- */

static void put_hook(struct arena *arena, struct doc d, struct msg_hook_view *v)
{
    const uint64_t status = number(d, "lastStatus");

    v->name = text(arena, d, "name", HOOK_NAME_MAX);
    v->scheme = text(arena, d, "scheme", 16);
    v->started = number(d, "started");
    v->refused = number(d, "refused");
    v->last_at = time_text(arena, number(d, "lastMs"));
    v->last_status = status > STATUS_MAX ? 0 : status;
    v->last_plan_id = text(arena, d, "lastPlanId", 64);
    if (v->last_status > 0) {
        msg_set(v, hook_view, last_status);
    }
}

void on_hook_list(struct engine *engine, struct request *rq)
{
    struct msg_hook_list_ok ok = {.has = 0};
    struct msg_hook_list m;
    struct arena arena = {0};
    struct bt_error err;
    struct buf file;
    enum bt_code code;

    if (!request_read(engine, rq, MSG_hook_list, &m)) {
        return;
    }
    buf_init(&file, json_doc_capacity(HOOK_FILE_MAX));
    ok.hooks = arena_alloc(&arena, SHOWN_HOOKS_MAX * sizeof *ok.hooks);
    code = ok.hooks == NULL ? err_set(&err, BT_NOMEM, "out of memory for a list")
                            : hook_file_read(state_of(engine), "hooks.json", &file, &err);
    if (code == BT_OK) {
        const struct doc list = doc_get(doc_from_buf(&file), STR_LIT("hooks"));
        for (struct doc d = doc_at(list, 0); d.ptr != NULL && ok.hooks_n < SHOWN_HOOKS_MAX;
             d = doc_at(list, ok.hooks_n)) {
            put_hook(&arena, d, &ok.hooks[ok.hooks_n]);
            ok.hooks_n++;
        }
    }
    if (code == BT_OK || code == BT_NOT_FOUND) { /* no gateway has started with a file of hooks */
        request_answer(engine, rq, MSG_hook_list_ok, &ok);
    } else {
        refuse(engine, rq, &err);
    }
    buf_done(&file);
    arena_done(&arena);
}
