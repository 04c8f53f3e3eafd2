/* Requests that make and cancel plans. */
#include "supervisor/api/api.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/submission.h"
#include "supervisor/schedule/schedules.h"

#define CONTINUED "continued" /* the action of a turn: see was_continued */

/* ---- which requests are the same ---- */

static bool names_session(struct str key)
{
    return str_is(key, "sessionId") || str_is(key, "session_id");
}

/* Of the document's bytes without the session that it names, which *ret_session gets. */
static uint64_t hash_plan(struct doc plan, struct str *ret_session)
{
    struct doc_cursor c = doc_cursor(plan);
    struct doc_head map = {.kind = DOC_NIL};
    struct buf rest;
    uint32_t named = 0;
    uint64_t h;

    *ret_session = doc_string(doc_get(plan, STR_LIT("sessionId")));
    named += doc_get(plan, STR_LIT("sessionId")).ptr != NULL;
    named += doc_get(plan, STR_LIT("session_id")).ptr != NULL;
    if (named == 0 || !doc_next(&c, &map)) {
        return str_hash((struct str){(const char *)plan.ptr, plan.len});
    }
    if (ret_session->len == 0) {
        *ret_session = doc_string(doc_get(plan, STR_LIT("session_id")));
    }
    buf_init(&rest, plan.len + 16);
    doc_put_map(&rest, map.n - named);
    for (uint32_t i = 0; i < map.n; i++) {
        const struct doc key = doc_skip(&c);
        const struct doc value = doc_skip(&c);
        if (!names_session(doc_string(key))) {
            buf_add(&rest, key.ptr, key.len);
            buf_add(&rest, value.ptr, value.len);
        }
    }
    h = str_hash(buf_str(&rest)); /* without memory the request is another one */
    buf_done(&rest);
    return h;
}

/* The same wherever the session is named: in the request, which wins, or in the document. */
static uint64_t hash_body(const struct msg_plan_submit *m, struct str *ret_session)
{
    uint64_t h = str_hash(m->goal);

    h = h * 31 + hash_plan(m->plan, ret_session);
    *ret_session = m->session_id.len > 0 ? m->session_id : *ret_session;
    h = h * 31 + str_hash((struct str){(const char *)m->policy.ptr, m->policy.len});
    h = h * 31 + str_hash(m->planner) + (m->dry_run ? 1u : 0u) + (m->lenient ? 2u : 0u);
    for (uint32_t i = 0; i < m->constraints_n; i++) {
        h = h * 31 + str_hash(m->constraints[i]);
    }
    return (h * 31 + str_hash(*ret_session)) >> 1; /* SQLite's integers are signed */
}

static void answer_repeated(struct engine *engine, struct request *rq, const char *id)
{
    struct msg_plan_submit_ok ok = {
        .plan_id = str_from(id), .existing = true, .seq = journal_last_seq(engine_journal(engine))};

    request_answer(engine, rq, MSG_plan_submit_ok, &ok);
}

/* ---- a session has at most one plan that runs (M009, C25) ---- */

/* Whether the request is for what the open plan does: it is the plan's own request, or nothing but
 * its goal. */
static bool asks_for_same(struct engine *engine, const struct open_plan *p,
                          const struct msg_plan_submit *m, uint64_t body_hash)
{
    const bool goal_only = m->plan.ptr == NULL && m->policy.ptr == NULL && m->planner.len == 0 &&
                           m->constraints_n == 0;
    struct journal_plan row;

    if (core_block_run(p->block)->cancelling) {
        return false;
    }
    return (goal_only && str_eq(m->goal, p->plan->goal)) ||
           (journal_plan_by_id(engine_journal(engine), p->plan_id, &row, NULL) == BT_OK &&
            row.body_hash == body_hash);
}

static void refuse_second(struct engine *engine, struct request *rq, const struct open_plan *p)
{
    const bool ends = core_block_run(p->block)->cancelling;
    struct bt_error err;
    struct buf details;

    (void)err_set(&err, BT_CONFLICT,
                  ends ? "session '%.*s' has the plan %s, which is being cancelled: wait until it "
                         "has ended, or use another session"
                       : "session '%.*s' has the open plan %s: wait for it (baton status), cancel "
                         "it (baton cancel), or use another session",
                  STR_ARG(p->plan->session_id), p->id);
    buf_init(&details, 256);
    doc_put_map(&details, 1);
    doc_put_cstr(&details, "planId");
    doc_put_cstr(&details, p->id);
    request_refuse(engine, rq, &err, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
}

/* A request that an open plan continued has no plan of its own: its clientKey is kept as an ended
 * turn of the session that names the plan. True: it was repeated, and is answered. */
static bool was_continued(struct engine *engine, struct request *rq,
                          const struct msg_plan_submit *m, struct str session_id,
                          uint64_t body_hash)
{
    struct journal_turn t;
    struct bt_error err;
    char id[UUID_TEXT_LEN + 1];
    enum bt_code code =
        m->client_key.len == 0 || session_id.len == 0
            ? BT_NOT_FOUND
            : journal_turn_by_key(engine_journal(engine), session_id, m->client_key, &t, &err);

    if (code == BT_NOT_FOUND) {
        return false;
    }
    if (code == BT_OK && (t.body_hash != body_hash || !str_is(t.action, CONTINUED))) {
        code = err_set(&err, BT_CONFLICT, "clientKey '%.*s' was used for another request",
                       STR_ARG(m->client_key));
    }
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return true;
    }
    uuid_format(t.plan, id);
    answer_repeated(engine, rq, id);
    return true;
}

/* False: the journal has failed. */
static bool keep_key(struct engine *engine, const struct msg_plan_submit *m,
                     const struct open_plan *p, uint64_t body_hash)
{
    const struct journal_turn t = {.turn_id = engine_new_id(engine),
                                   .session_id = p->plan->session_id,
                                   .client_key = m->client_key,
                                   .body_hash = body_hash,
                                   .started_wall = engine_wall(engine),
                                   .ended_wall = engine_wall(engine),
                                   .plan = p->plan_id,
                                   .action = STR_LIT(CONTINUED)};
    struct bt_error err;

    if (m->client_key.len == 0 || journal_turn_put(engine_journal(engine), &t, &err) == BT_OK) {
        return true;
    }
    engine_fail(engine, &err);
    return false;
}

/* True: the session's open plan answers the request, one way or the other. */
static bool session_is_taken(struct engine *engine, struct request *rq,
                             const struct msg_plan_submit *m, struct str session_id,
                             uint64_t body_hash)
{
    const struct open_plan *p =
        session_id.len == 0 || m->dry_run ? NULL : open_plan_running_in(engine, session_id);
    struct msg_plan_submit_ok ok = {.existing = true, .continued = true};

    if (p == NULL) {
        return false;
    }
    if (!asks_for_same(engine, p, m, body_hash)) {
        refuse_second(engine, rq, p);
        return true;
    }
    if (keep_key(engine, m, p, body_hash)) {
        ok.plan_id = str_from(p->id);
        ok.seq = journal_last_seq(engine_journal(engine));
        request_answer(engine, rq, MSG_plan_submit_ok, &ok);
    }
    return true;
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
                                     .dry_run = m->dry_run,
                                     .lenient = m->lenient};
    struct submission_start how = {.client_key = m->client_key, .body_hash = body_hash};
    struct msg_plan_submit_ok ok = {0};
    char id[UUID_TEXT_LEN + 1];
    struct submission d;
    struct bt_error err;

    if (submission_init(&d, &err) != BT_OK || submission_make(engine, &w, &d, &err) != BT_OK) {
        submission_refuse_new(engine, rq, &d, &err);
        submission_done(&d);
        return;
    }
    /* The document may name the session. */
    if (!access_may_take_session(engine, rq, d.made->session_id)) {
        submission_done(&d);
        return;
    }
    if (m->session_id.len == 0 && session_is_taken(engine, rq, m, d.made->session_id, body_hash)) {
        submission_done(&d);
        return;
    }
    if (!trace_read(m->traceparent, &how.trace)) {
        how.trace.span = 0;
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
    struct str session;
    uint64_t body_hash;

    if (!request_read(engine, rq, MSG_plan_submit, &m)) {
        return;
    }
    if (m.client_key.len >= sizeof SCHEDULE_KEYS - 1 &&
        memcmp(m.client_key.ptr, SCHEDULE_KEYS, sizeof SCHEDULE_KEYS - 1) == 0) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "clientKey: '" SCHEDULE_KEYS "...' is for the plans of schedules; use "
                            "another key, or schedule.trigger");
        return;
    }
    (void)hash_body(&m, &session);
    if (!access_name_session(engine, rq, &session) ||
        !access_may_take_session(engine, rq, session)) {
        return;
    }
    m.session_id = session; /* which wins over the document */
    body_hash = hash_body(&m, &session);
    switch (submission_key_use(engine, rq, m.client_key, body_hash, id)) {
    case KEY_REPEATED:
        answer_repeated(engine, rq, id);
        break;
    case KEY_NEW:
        if (!was_continued(engine, rq, &m, session, body_hash) &&
            !session_is_taken(engine, rq, &m, m.session_id, body_hash) &&
            submission_may_start(engine, rq)) {
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
    } else if (!access_may_change(engine, rq, row.owner)) {
        return;
    } else if (str_is(row.status, "cancelled")) {
        request_answer(engine, rq, MSG_plan_cancel_ok, &ok);
    } else {
        request_refuse_ended(engine, rq, &row);
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
    if (p == NULL || plan_is_final(core_block_run(p->block)->status) ||
        !access_sees(engine_who(engine), open_plan_owner(p))) {
        answer_cancelled(engine, rq, &m);
        return;
    }
    if (!access_may_change(engine, rq, open_plan_owner(p))) {
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
