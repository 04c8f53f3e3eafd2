/* Requests that only read: plans, results, events, blobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/api/api.h"
#include "supervisor/query/projection.h"

/* Of one answer: beside an aggregated result of 3 MiB there is room for no more. */
enum { HANDOFFS_MAX = 1000 };

/* A running plan's status is its run's: waiting shows at once. */
static void live_status(struct engine *engine, struct msg_plan_view *v)
{
    struct open_plan *p = open_plan_by_id(engine, v->plan_id);
    if (p != NULL) {
        v->status = str_from(plan_status_name(core_block_run(p->block)->status));
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
    v = &page->plans[page->n];
    *v = (struct msg_plan_view){.has = 0};
    uuid_format(row->plan_id, text);
    v->plan_id = arena_str(page->arena, str_from(text));
    v->session_id = arena_str(page->arena, row->session_id);
    v->query = arena_str(page->arena, row->goal);
    v->status = arena_str(page->arena, row->status);
    clock_iso(row->created_wall, iso);
    v->created_at = arena_str(page->arena, str_from(iso));
    if (row->ended_wall != 0) {
        clock_iso(row->ended_wall, iso);
        v->completed_at = arena_str(page->arena, str_from(iso));
    }
    live_status(page->engine, v);
    page->n += page->status.len == 0 || str_eq(v->status, page->status);
    return true;
}

void on_plan_list(struct engine *engine, struct request *rq)
{
    struct plan_page *page = NULL;
    struct msg_plan_list_ok ok = {0};
    struct msg_plan_list m;
    struct arena arena = {0};
    char cursor[24];
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_list, &m)) {
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
    (void)snprintf(cursor, sizeof cursor, "%.*s", m.cursor.len > 20 ? 0 : (int)m.cursor.len,
                   m.cursor.ptr);
    if (journal_plans(engine_journal(engine), m.status, m.session_id, strtoull(cursor, NULL, 10),
                      UINT32_MAX, add_plan, page, &err) != BT_OK) {
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

/* ---- plan.result ---- */
static void answer_step_result(struct engine *engine, struct request *rq,
                               const struct msg_plan_result *m, struct projection *projection,
                               struct msg_plan_result_ok *ok)
{
    uint32_t ix = plan_step_find(projection->plan, m->step_id);
    struct bt_error err;

    if (ix == UINT32_MAX) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "the plan has no step '%.*s'",
                            STR_ARG(m->step_id));
        return;
    }
    if (engine_result_doc(engine, projection->steps[ix].result, &ok->result, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    ok->status = projection->view.steps[ix].status;
    ok->success = str_is(ok->status, "completed");
    ok->error = projection->view.steps[ix].error;
    request_answer(engine, rq, MSG_plan_result_ok, ok);
}

static void answer_plan_result(struct engine *engine, struct request *rq,
                               struct projection *projection, struct msg_plan_result_ok *ok)
{
    struct buf text;
    struct bt_error err;

    buf_init(&text, LIMIT_STEP_BYTES);
    if (projection->ended && engine_result_text(engine, projection->summary, LIMIT_RESULT_BYTES,
                                                &text, &ok->truncated, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        ok->aggregated_result = buf_str(&text);
        ok->handoffs = projection->handoffs;
        /* The rest are events: agent_handoff. */
        ok->handoffs_n =
            projection->handoffs_n < HANDOFFS_MAX ? projection->handoffs_n : HANDOFFS_MAX;
        ok->truncated =
            ok->truncated || projection->handoffs_cut || ok->handoffs_n < projection->handoffs_n;
        request_answer(engine, rq, MSG_plan_result_ok, ok);
    }
    buf_done(&text);
}

void on_plan_result(struct engine *engine, struct request *rq)
{
    struct msg_plan_result_ok ok = {0};
    struct msg_plan_result m;
    struct projection projection;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_result, &m)) {
        return;
    }
    if (projection_read(engine, m.plan_id, &projection, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        ok.plan_id = projection.view.plan_id;
        ok.status = projection.view.status;
        ok.outcome = projection.view.outcome;
        ok.success = str_is(ok.status, "completed");
        ok.error = projection.view.failure_reason;
        msg_set(&ok, plan_result_ok, success);
        if (m.step_id.len > 0) {
            answer_step_result(engine, rq, &m, &projection, &ok);
        } else {
            answer_plan_result(engine, rq, &projection, &ok);
        }
    }
    projection_done(&projection);
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
    if (journal_blob_get(engine_journal(engine), m.blob_id, &bytes, &err) != BT_OK) {
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
