/* Requests that make and cancel plans. */
#include "supervisor/api/api.h"
#include "supervisor/engine/submission.h"

static uint64_t hash_body(const struct msg_plan_submit *m)
{
    uint64_t h = str_hash(m->goal);

    h = h * 31 + str_hash((struct str){(const char *)m->plan.ptr, m->plan.len});
    h = h * 31 + str_hash((struct str){(const char *)m->policy.ptr, m->policy.len});
    h = h * 31 + str_hash(m->planner) + (m->dry_run ? 1u : 0u);
    for (uint32_t i = 0; i < m->constraints_n; i++) {
        h = h * 31 + str_hash(m->constraints[i]);
    }
    return (h * 31 + str_hash(m->session_id)) >> 1; /* SQLite's integers are signed */
}

static void answer_repeated(struct engine *engine, struct request *rq, const char *id)
{
    struct msg_plan_submit_ok ok = {
        .plan_id = str_from(id), .existing = true, .seq = journal_last_seq(engine_journal(engine))};

    request_answer(engine, rq, MSG_plan_submit_ok, &ok);
}

static void submit(struct engine *engine, struct request *rq, const struct msg_plan_submit *m,
                   uint64_t body_hash)
{
    const struct submit_request w = {.goal = m->goal,
                                     .session_id = m->session_id,
                                     .planner = m->planner,
                                     .plan = m->plan,
                                     .policy = m->policy,
                                     .constraints = m->constraints,
                                     .n_constraints = m->constraints_n,
                                     .dry_run = m->dry_run};
    const struct submission_start how = {.client_key = m->client_key, .body_hash = body_hash};
    struct msg_plan_submit_ok ok = {0};
    char id[UUID_TEXT_LEN + 1];
    struct submission d;
    struct bt_error err;

    if (submission_init(&d, &err) != BT_OK || submission_make(engine, &w, &d, &err) != BT_OK) {
        submission_refuse(engine, rq, &d, &err);
        submission_done(&d);
        return;
    }
    ok.problems_n = submission_problems(&d);
    ok.problems = d.problem_views;
    ok.routes_n = submission_routes(&d);
    ok.routes = d.route_views;
    if (submission_start(engine, &how, &d, id, &err) == BT_OK) {
        ok.plan_id = str_from(id);
        ok.seq = journal_last_seq(engine_journal(engine));
        if (request_try_answer(engine, rq, MSG_plan_submit_ok, &ok, &err) != BT_OK) {
            ok.problems_n = ok.routes_n =
                0; /* it was accepted: no remark of ours may turn that into a refusal */
            request_answer(engine, rq, MSG_plan_submit_ok, &ok);
        }
    } else if (!engine_has_failed(engine)) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
    submission_done(&d);
}

void on_plan_submit(struct engine *engine, struct request *rq)
{
    struct msg_plan_submit m;
    char id[UUID_TEXT_LEN + 1];
    uint64_t body_hash;

    if (!request_read(engine, rq, MSG_plan_submit, &m)) {
        return;
    }
    body_hash = hash_body(&m);
    switch (submission_key_use(engine, rq, m.client_key, body_hash, id)) {
    case KEY_REPEATED:
        answer_repeated(engine, rq, id);
        break;
    case KEY_NEW:
        if (submission_may_start(engine, rq)) {
            submit(engine, rq, &m, body_hash);
        }
        break;
    case KEY_REFUSED:
    default:
        break;
    }
}

/* Cancelling twice is cancelling once. */
static void answer_cancelled(struct engine *engine, struct request *rq,
                             const struct msg_plan_cancel *m)
{
    struct msg_plan_cancel_ok ok = {.plan_id = m->plan_id, .status = STR_LIT("cancelled")};
    struct journal_plan row;
    struct bt_error err;

    if (request_plan_row(engine, m->plan_id, &row, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (str_is(row.status, "cancelled")) {
        request_answer(engine, rq, MSG_plan_cancel_ok, &ok);
    } else {
        request_refuse_text(engine, rq, BT_CONFLICT, "the plan has ended (%.*s)",
                            STR_ARG(row.status));
    }
}

/* "cancelling" while attempts are out: agents are asked to stop and have the grace to answer. */
void on_plan_cancel(struct engine *engine, struct request *rq)
{
    struct msg_plan_cancel_ok ok = {.status = STR_LIT("cancelling")};
    struct core_event ev = {.type = CORE_CANCEL};
    struct msg_plan_cancel m;
    struct open_plan *p;

    if (!request_read(engine, rq, MSG_plan_cancel, &m)) {
        return;
    }
    p = open_plan_by_id(engine, m.plan_id);
    if (p == NULL || plan_is_final(core_block_run(p->block)->status)) {
        answer_cancelled(engine, rq, &m);
        return;
    }
    ev.text = m.reason;
    if (!core_block_run(p->block)->cancelling && !request_feed(engine, rq, p, &ev, NULL)) {
        return;
    }
    if (plan_is_final(core_block_run(p->block)->status)) {
        ok.status = STR_LIT("cancelled");
    }
    ok.plan_id = m.plan_id;
    request_answer(engine, rq, MSG_plan_cancel_ok, &ok);
}
