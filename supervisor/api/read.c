/* Requests that only read: lists of plans, blobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/suggest.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/api/review_view.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/schedule_key.h"

static void count_live(const struct open_plan *p, struct msg_plan_counts *ret)
{
    const struct run *run = core_block_run(p->block);
    const uint32_t at_rest = run->waiting + run->sleeping;

    *ret = (struct msg_plan_counts){.total = run->n_steps - run->superseded,
                                    .completed = run->completed,
                                    .failed = run->failed,
                                    .skipped = run->skipped,
                                    .cancelled = run->cancelled,
                                    .superseded = run->superseded,
                                    .running = run->active > at_rest ? run->active - at_rest : 0,
                                    .waiting = run->waiting,
                                    .sleeping = run->sleeping};
}

/* What a running plan's run knows: its status, so that waiting shows at once, and how far it is. */
static void live_status(struct engine *engine, struct msg_plan_view *v)
{
    struct open_plan *p = open_plan_by_id(engine, v->plan_id);
    if (p != NULL) {
        v->status = str_from(plan_status_name(core_block_run(p->block)->status));
        v->dry_run = p->plan->dry_run;
        count_live(p, &v->counts);
        msg_set(v, plan_view, counts);
    }
}

/* Steps that a plan of their own does, and that plan waits for a person. */
static void count_inside(struct engine *engine, struct arena *arena, struct msg_plan_view *v)
{
    const struct open_plan *p = open_plan_by_id(engine, v->plan_id);
    const struct review_inside *inside =
        p == NULL || v->counts.running == 0 ? NULL : reviews_inside(engine, p, arena);

    for (uint32_t i = 0; inside != NULL && i < core_block_run(p->block)->n_steps; i++) {
        const bool waits = inside[i].plan != NULL && v->counts.running > 0;
        v->counts.running -= waits ? 1 : 0;
        v->counts.waiting += waits ? 1 : 0;
    }
}

/* ---- plan.list ---- */
struct plan_page {
    struct engine *engine;
    struct arena arena;
    struct msg_plan_list asked; /* its texts are in the arena */
    struct msg_plan_view plans[100];
    uint32_t n, limit;
    uint64_t last_ix; /* the plans before it are next; 0 = from the newest on */
    uint32_t looked_at;
    struct str status; /* wanted of open plans: the journal knows of them only that they are open */
    bool more;
    uint64_t until_ns; /* of this slice */
    uint32_t in_slice; /* plans looked at */
    bool stopped;      /* the slice is over */
};

enum { LIST_LOOKS = 20000, LOOKS_PER_SLICE = 32 /* at least */ };

/* The status, which is the run's while there is one, is what was asked for. */
static bool is_wanted(const struct plan_page *page, const struct journal_plan *row,
                      struct msg_plan_view *v)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(row->plan_id, text);
    v->plan_id = str_from(text);
    v->status = row->status;
    live_status(page->engine, v);
    return page->status.len == 0 || str_eq(v->status, page->status);
}

static bool add_plan(const struct journal_plan *row, void *self)
{
    struct plan_page *page = self;
    struct msg_plan_view *v = &page->plans[page->n];
    char text[UUID_TEXT_LEN + 1];
    char iso[CLOCK_ISO_LEN + 1];

    if (page->n == page->limit || page->looked_at == LIST_LOOKS) {
        page->more = true;
        return false;
    }
    if (++page->in_slice % LOOKS_PER_SLICE == 0 && clock_mono_ns() > page->until_ns) {
        page->stopped = true; /* this one is looked at again */
        return false;
    }
    page->looked_at++;
    page->last_ix = row->ix;
    if (!access_sees(engine_who(page->engine), row->owner)) {
        return true;
    }
    *v = (struct msg_plan_view){.has = 0};
    if (!is_wanted(page, row, v)) {
        return true;
    }
    uuid_format(row->plan_id, text);
    v->plan_id = arena_str(&page->arena, str_from(text));
    v->session_id = arena_str(&page->arena, row->session_id);
    v->query = arena_str(&page->arena, row->goal);
    v->status = arena_str(&page->arena, v->status);
    v->owner = arena_str(&page->arena, access_owner_shown(row->owner));
    if (schedule_of_key(row->client_key, &v->schedule, &v->scheduled_for)) {
        v->schedule = arena_str(&page->arena, v->schedule);
        v->scheduled_for = arena_str(&page->arena, v->scheduled_for);
    }
    clock_iso(row->created_wall, iso);
    v->created_at = arena_str(&page->arena, str_from(iso));
    if (row->ended_wall != 0) {
        clock_iso(row->ended_wall, iso);
        v->completed_at = arena_str(&page->arena, str_from(iso));
    }
    v->dry_run = v->dry_run || str_is(v->status, "planned");
    count_inside(page->engine, &page->arena, v);
    page->n++;
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

/* The first and the last id that begin with the text, in either case, which has at most the length
 * of one. False when no id does: it has another character than an id at its place. */
static bool ids_of_prefix(struct str prefix, struct uuid *ret_first, struct uuid *ret_last)
{
    char first[] = "00000000-0000-0000-0000-000000000000";
    char last[] = "ffffffff-ffff-ffff-ffff-ffffffffffff";

    ASSERT(prefix.len <= UUID_TEXT_LEN); /* as its message has it */
    memcpy(first, prefix.ptr, prefix.len);
    memcpy(last, prefix.ptr, prefix.len);
    return uuid_parse((struct str){first, UUID_TEXT_LEN}, ret_first) &&
           uuid_parse((struct str){last, UUID_TEXT_LEN}, ret_last);
}

/* The plans of the request: those of a prefix, which are few, or of a status and a session. */
static enum bt_code list_plans(struct plan_page *page, struct bt_error *err)
{
    struct journal *journal = engine_journal(page->engine);
    const struct msg_plan_list *m = &page->asked;
    struct uuid first;
    struct uuid last;

    page->stopped = false;
    page->in_slice = 0;
    if (m->id_prefix.len == 0) {
        return journal_plans(journal, m->status, m->session_id, page->last_ix, UINT32_MAX, add_plan,
                             page, err);
    }
    page->until_ns = UINT64_MAX;
    return ids_of_prefix(m->id_prefix, &first, &last)
               ? journal_plans_between(journal, first, last, UINT32_MAX, add_plan, page, err)
               : BT_OK;
}

static bool go_on(struct engine *engine, struct request *rq, void *self, uint64_t until_ns)
{
    struct plan_page *page = self;
    struct msg_plan_list_ok ok = {0};
    struct bt_error err;
    char cursor[24];

    page->until_ns = until_ns;
    if (list_plans(page, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (page->stopped) {
        return false;
    } else {
        ok.plans = page->plans;
        ok.plans_n = page->n;
        (void)snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)page->last_ix);
        ok.cursor = page->more ? str_from(cursor) : (struct str){"", 0};
        request_answer(engine, rq, MSG_plan_list_ok, &ok);
    }
    return true;
}

static void page_done(void *self)
{
    struct plan_page *page = self;

    arena_done(&page->arena);
    free(page);
}

/* NULL when out of memory. */
static struct plan_page *page_new(struct engine *engine, const struct msg_plan_list *m,
                                  uint64_t before)
{
    struct plan_page *page = calloc(1, sizeof *page);

    if (page == NULL) {
        return NULL;
    }
    page->engine = engine;
    page->limit = m->limit == 0 ? 100 : (uint32_t)m->limit;
    page->last_ix = before;
    page->asked.id_prefix = arena_str(&page->arena, m->id_prefix);
    page->asked.session_id = arena_str(&page->arena, m->session_id);
    page->asked.status = arena_str(&page->arena, m->status);
    if (page->asked.id_prefix.ptr == NULL || page->asked.session_id.ptr == NULL ||
        page->asked.status.ptr == NULL) {
        page_done(page);
        return NULL;
    }
    if (str_is(m->status, "pending") || str_is(m->status, "running") ||
        str_is(m->status, "waiting")) {
        page->status = page->asked.status;
        page->asked.status = STR_LIT("running");
    }
    return page;
}

void on_plan_list(struct engine *engine, struct request *rq)
{
    struct plan_page *page = NULL;
    struct msg_plan_list m;
    uint64_t before = 0;
    struct bt_error err;
    enum bt_code code;

    if (!request_read(engine, rq, MSG_plan_list, &m) ||
        !access_name_session(engine, rq, &m.session_id)) {
        return;
    }
    code = check_status(m.status, &err);
    code = code == BT_OK ? read_cursor(m.cursor, &before, &err) : code;
    if (code == BT_OK && m.id_prefix.len > 0 &&
        (m.status.len > 0 || m.session_id.len > 0 || m.cursor.len > 0)) {
        code = err_set(&err, BT_INVALID,
                       "idPrefix: excludes status, sessionId and cursor; it selects by itself");
    }
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    page = page_new(engine, &m, before);
    if (page == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    api_read_on(
        engine, rq,
        &(struct long_read){.state = page, .turn = TURN_SCAN, .go_on = go_on, .done = page_done});
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
        if (buf_check(&bin, &err) != BT_OK) {
            request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        } else {
            request_answer(engine, rq, MSG_blob_get_ok, &ok);
        }
    }
    buf_done(&bytes);
    buf_done(&bin);
}
