/* Requests that only read: lists of plans, blobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/suggest.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/access.h"

/* A running plan's status is its run's: waiting shows at once. */
static void live_status(struct engine *engine, struct msg_plan_view *v)
{
    struct open_plan *p = open_plan_by_id(engine, v->plan_id);
    if (p != NULL) {
        v->status = str_from(plan_status_name(core_block_run(p->block)->status));
        v->dry_run = p->plan->dry_run;
    }
}

/* ---- plan.list ---- */
struct plan_page {
    struct engine *engine;
    struct arena *arena;
    struct msg_plan_view plans[100];
    uint32_t n, limit;
    uint64_t last_ix;
    uint32_t looked_at;
    struct str status; /* wanted of open plans: the journal knows of them only that they are open */
    bool more;
};

enum { LIST_LOOKS = 20000 };

static bool add_plan(const struct journal_plan *row, void *self)
{
    struct plan_page *page = self;
    struct msg_plan_view *v;
    char text[UUID_TEXT_LEN + 1];
    char iso[CLOCK_ISO_LEN + 1];

    if (page->n == page->limit || page->looked_at++ == LIST_LOOKS) {
        page->more = true;
        return false;
    }
    page->last_ix = row->ix;
    if (!access_sees(engine_who(page->engine), row->owner)) {
        return true;
    }
    v = &page->plans[page->n];
    *v = (struct msg_plan_view){.has = 0};
    uuid_format(row->plan_id, text);
    v->plan_id = arena_str(page->arena, str_from(text));
    v->session_id = arena_str(page->arena, row->session_id);
    v->query = arena_str(page->arena, row->goal);
    v->status = arena_str(page->arena, row->status);
    v->owner = arena_str(page->arena, access_owner_shown(row->owner));
    clock_iso(row->created_wall, iso);
    v->created_at = arena_str(page->arena, str_from(iso));
    if (row->ended_wall != 0) {
        clock_iso(row->ended_wall, iso);
        v->completed_at = arena_str(page->arena, str_from(iso));
    }
    live_status(page->engine, v);
    v->dry_run = v->dry_run || str_is(v->status, "planned");
    page->n += page->status.len == 0 || str_eq(v->status, page->status);
    return true;
}

/* "" is any status. A misspelt one would select nothing, which reads as "there is no such plan". */
static enum bt_code check_status(struct str status, struct bt_error *err)
{
    /* of an ended dry run, and of what was put aside at a start */
    static const char *const others[] = {"planned", "quarantined"};
    struct suggest near = suggest_start(status);

    for (int i = 0; i < PLAN_STATUS_COUNT; i++) {
        const struct str name = str_from(plan_status_name((enum plan_status)i));
        if (str_eq(status, name)) {
            return BT_OK;
        }
        suggest_offer(&near, name);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (status.len == 0 || str_is(status, others[i])) {
            return BT_OK;
        }
        suggest_offer(&near, str_from(others[i]));
    }
    return near.best.ptr != NULL
               ? err_set(err, BT_INVALID,
                         "status: \"%.*s\" is no status of a plan; did you mean \"%.*s\"?",
                         STR_ARG(status), STR_ARG(near.best))
               : err_set(err, BT_INVALID,
                         "status: \"%.*s\" is no status of a plan; expected pending, running, "
                         "waiting, completed, failed, cancelled, planned or quarantined",
                         STR_ARG(status));
}

/* The decimal digits that an earlier answer gave; "" begins at the newest. */
static enum bt_code read_cursor(struct str text, uint64_t *ret, struct bt_error *err)
{
    *ret = 0;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned digit = (unsigned char)text.ptr[i] - (unsigned)'0';
        if (digit > 9 || *ret > ((uint64_t)INT64_MAX - digit) / 10) {
            return err_set(err, BT_INVALID,
                           "cursor: expected the cursor of an earlier plan.list.ok, got \"%.*s\"",
                           STR_ARG(text));
        }
        *ret = *ret * 10 + digit;
    }
    return BT_OK;
}

/*
 * The first and the last id that begin with the text, in either case. False when no id does: it is
 * too long, or has another character than an id at its place.
 */
static bool ids_of_prefix(struct str prefix, struct uuid *ret_first, struct uuid *ret_last)
{
    char first[] = "00000000-0000-0000-0000-000000000000";
    char last[] = "ffffffff-ffff-ffff-ffff-ffffffffffff";

    if (prefix.len > UUID_TEXT_LEN) {
        return false;
    }
    memcpy(first, prefix.ptr, prefix.len);
    memcpy(last, prefix.ptr, prefix.len);
    return uuid_parse((struct str){first, UUID_TEXT_LEN}, ret_first) &&
           uuid_parse((struct str){last, UUID_TEXT_LEN}, ret_last);
}

/* The plans of the request: those of a prefix, or of a status and a session. */
static enum bt_code list_plans(struct engine *engine, const struct msg_plan_list *m,
                               uint64_t before, struct plan_page *page, struct bt_error *err)
{
    struct uuid first;
    struct uuid last;

    if (m->id_prefix.len == 0) {
        return journal_plans(engine_journal(engine), m->status, m->session_id, before, UINT32_MAX,
                             add_plan, page, err);
    }
    if (m->status.len > 0 || m->session_id.len > 0 || m->cursor.len > 0) {
        return err_set(err, BT_INVALID,
                       "idPrefix: excludes status, sessionId and cursor; it selects by itself");
    }
    return ids_of_prefix(m->id_prefix, &first, &last)
               ? journal_plans_between(engine_journal(engine), first, last, UINT32_MAX, add_plan,
                                       page, err)
               : BT_OK;
}

void on_plan_list(struct engine *engine, struct request *rq)
{
    struct plan_page *page = NULL;
    struct msg_plan_list_ok ok = {0};
    struct msg_plan_list m;
    struct arena arena = {0};
    char cursor[24];
    uint64_t before = 0;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_list, &m)) {
        return;
    }
    if (check_status(m.status, &err) != BT_OK || read_cursor(m.cursor, &before, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    page = calloc(1, sizeof *page);
    if (page == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    page->engine = engine;
    page->arena = &arena;
    page->limit = m.limit == 0 ? 100 : (uint32_t)m.limit;
    if (str_is(m.status, "pending") || str_is(m.status, "running") || str_is(m.status, "waiting")) {
        page->status = m.status;
        m.status = STR_LIT("running");
    }
    if (list_plans(engine, &m, before, page, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        ok.plans = page->plans;
        ok.plans_n = page->n;
        (void)snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)page->last_ix);
        ok.cursor = page->more ? str_from(cursor) : (struct str){"", 0};
        request_answer(engine, rq, MSG_plan_list_ok, &ok);
    }
    arena_done(&arena);
    free(page);
}

/* ---- blob.get ---- */

/* A blob that no plan of the sender names is to it as if it was not there. */
static bool may_read_blob(struct engine *engine, uint64_t id, struct bt_error *err)
{
    const struct identity *who = engine_who(engine);
    bool owned = false;

    if (access_sees_all(who)) {
        return true;
    }
    if (journal_blob_owned(engine_journal(engine), id, access_owner(who), &owned, err) == BT_OK &&
        !owned) {
        (void)err_set(err, BT_NOT_FOUND, "no blob %llu in the journal", (unsigned long long)id);
    }
    return owned;
}

void on_blob_get(struct engine *engine, struct request *rq)
{
    struct msg_blob_get_ok ok = {0};
    struct msg_blob_get m;
    struct buf bytes;
    struct buf bin;
    struct bt_error err;
    size_t at;
    size_t n;

    if (!request_read(engine, rq, MSG_blob_get, &m)) {
        return;
    }
    buf_init(&bytes, LIMIT_STEP_BYTES);
    buf_init(&bin, LIMIT_STEP_BYTES);
    if (!may_read_blob(engine, m.blob_id, &err) ||
        journal_blob_get(engine_journal(engine), m.blob_id, &bytes, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        at = m.offset < bytes.len ? (size_t)m.offset : bytes.len;
        n = bytes.len - at;
        n = n > LIMIT_CONTROL_BYTES / 2 ? LIMIT_CONTROL_BYTES / 2 : n;
        n = m.limit != 0 && m.limit < n ? (size_t)m.limit : n;
        doc_put_bin(&bin, bytes.at == NULL ? (const uint8_t *)"" : bytes.at + at, n);
        ok.len = bytes.len;
        ok.bytes = doc_from_buf(&bin);
        request_answer(engine, rq, MSG_blob_get_ok, &ok);
    }
    buf_done(&bytes);
    buf_done(&bin);
}
