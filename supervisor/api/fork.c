/* plan.retry and plan.fork: a new plan that takes over what an old one has completed. */
#include "supervisor/api/api.h"
#include "supervisor/api/rerun.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/submission.h"
#include "supervisor/plan/about.h"
#include "supervisor/query/projection.h"

/* What either request asks for. */
struct again {
    enum msg_type answer;
    struct str plan_id, from_step, session_id, client_key;
    struct doc policy;
};

static uint64_t hash_again(const struct again *a)
{
    uint64_t h = (uint64_t)a->answer;

    h = h * 31 + str_hash(a->plan_id);
    h = h * 31 + str_hash(a->from_step);
    h = h * 31 + str_hash(a->session_id);
    return (h * 31 + str_hash((struct str){(const char *)a->policy.ptr, a->policy.len})) >> 1;
}

static void answer_again(struct engine *engine, struct request *rq, const struct again *a,
                         const char *id, struct str parent, uint32_t reused, bool existing)
{
    if (a->answer == MSG_plan_retry_ok) {
        struct msg_plan_retry_ok ok = {.plan_id = str_from(id),
                                       .parent_plan_id = parent,
                                       .reused = reused,
                                       .existing = existing,
                                       .seq = journal_last_seq(engine_journal(engine))};
        msg_set(&ok, plan_retry_ok, reused);
        request_answer(engine, rq, MSG_plan_retry_ok, &ok);
    } else {
        struct msg_plan_fork_ok ok = {.plan_id = str_from(id),
                                      .parent_plan_id = parent,
                                      .reused = reused,
                                      .existing = existing,
                                      .seq = journal_last_seq(engine_journal(engine))};
        msg_set(&ok, plan_fork_ok, reused);
        request_answer(engine, rq, MSG_plan_fork_ok, &ok);
    }
}

/* A plan without steps was never planned: the goal is asked for once more. */
static bool is_unplanned(const struct again *a, const struct projection *s)
{
    return s->plan->planning.pending && s->plan->n_steps == 0 && a->from_step.len == 0;
}

/* The old plan's rows: what has a result and need not be done again. */
static enum bt_code choose(const struct again *a, struct projection *s, struct rerun_row **ret,
                           struct bt_error *err)
{
    const struct plan *plan = s->plan;
    struct rerun_row *rows = arena_alloc(&s->arena, (plan->n_steps + 1) * sizeof *rows);
    bool *marks = arena_alloc(&s->arena, plan->n_steps + 1);
    bool open = false;

    if (rows == NULL || marks == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
    }
    if (a->from_step.len > 0) {
        uint32_t from = plan_step_find(plan, a->from_step);
        if (from == UINT32_MAX || plan->steps[from].superseded) {
            return err_set(err, BT_NOT_FOUND, "fromStep: the plan has no step '%.*s'",
                           STR_ARG(a->from_step));
        }
        if (!rerun_mark(plan, from, &s->arena, marks)) {
            return err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
        }
    }
    for (uint32_t i = 0; i < plan->n_steps && s->view.compensation.status.len > 0; i++) {
        /* It was undone, so it is to be done again, with all that was done after it. */
        if (plan->steps[i].undoes && !marks[i] && !plan->steps[i].superseded &&
            s->view.steps[i].attempts > 0 && !rerun_mark(plan, i, &s->arena, marks)) {
            return err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
        }
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        bool done = str_is(s->view.steps[i].status, "completed");
        rows[i].superseded = plan->steps[i].superseded;
        rows[i].reuse = done && !marks[i] && !rows[i].superseded;
        rows[i].result = s->steps[i].result;
        open = open || (!rows[i].superseded && !rows[i].reuse);
    }
    *ret = rows;
    return open || is_unplanned(a, s)
               ? BT_OK
               : err_set(err, BT_CONFLICT,
                         "every step has completed; fromStep names the first one to run again "
                         "(baton fork PLAN --from STEP)");
}

static struct str *constraints_of(struct projection *s, struct doc list, uint32_t *ret_n)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head = {.n = 0};
    struct str *at;

    *ret_n = 0;
    if (list.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    at = arena_alloc(&s->arena, (head.n + 1) * sizeof *at);
    for (uint32_t i = 0, n = head.n; at != NULL && i < n; i++) {
        at[(*ret_n)++] = doc_string(doc_skip(&c));
    }
    return at;
}

static enum bt_code submission_unplanned(struct engine *engine, const struct again *a,
                                         struct projection *s, struct submission *d,
                                         struct bt_error *err)
{
    struct plan_about about;
    struct submit_request w = {.goal = s->plan->goal,
                               .session_id =
                                   a->session_id.len > 0 ? a->session_id : s->plan->session_id,
                               .planner = s->plan->planner,
                               .policy = doc_get(s->document, STR_LIT("policy")),
                               .dry_run = s->plan->dry_run};

    plan_about_of(s->document, &about);
    w.constraints = constraints_of(s, about.constraints, &w.n_constraints);
    return w.constraints != NULL ? submission_make(engine, &w, d, err)
                                 : err_set(err, BT_NOMEM, "out of memory for a plan");
}

/* The new plan, read and checked against the agents of today. */
static enum bt_code submission_again(struct engine *engine, const struct again *a,
                                     struct projection *s, const struct rerun_row *rows,
                                     struct submission *d, struct bt_error *err)
{
    struct submit_request w = {.session_id = a->session_id, .policy = a->policy, .lenient = true};
    struct buf doc;
    enum bt_code code;

    if (is_unplanned(a, s)) {
        return submission_unplanned(engine, a, s, d, err);
    }
    w.settled = rerun_settled(rows, s->plan->n_steps, &s->arena, &w.n_settled);
    if (w.settled == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for what is reused");
    }
    buf_init(&doc, LIMIT_STEP_BYTES);
    code = rerun_document(s->document, &doc, err);
    if (code == BT_OK) {
        w.plan = doc_from_buf(&doc);
        code = submission_make(engine, &w, d, err);
    }
    buf_done(&doc);
    return code;
}

static void start_again(struct engine *engine, struct request *rq, const struct again *a,
                        uint64_t hash, struct projection *s)
{
    struct submission_start how = {.client_key = a->client_key,
                                   .body_hash = hash,
                                   .reuse_items = a->from_step.len ==
                                                  0 /* else it is asked for to be done again */};
    char id[UUID_TEXT_LEN + 1];
    struct rerun_row *rows = NULL;
    struct submission d;
    struct bt_error err;

    (void)uuid_parse(s->view.plan_id, &how.parent);
    if (submission_init(&d, &err) != BT_OK || choose(a, s, &rows, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (submission_again(engine, a, s, rows, &d, &err) != BT_OK) {
        submission_refuse(engine, rq, &d, &err);
    } else {
        how.reuse = rerun_reuse(d.made, rows, s->plan->n_steps, &s->arena, &how.n_reuse);
        if (how.reuse == NULL) {
            request_refuse_text(engine, rq, BT_NOMEM, "out of memory for what is reused");
        } else if (submission_start(engine, &how, &d, id, &err) == BT_OK) {
            answer_again(engine, rq, a, id, s->view.plan_id, how.n_reuse, false);
        } else if (!engine_has_failed(engine)) {
            request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        }
    }
    submission_done(&d);
}

static void do_again(struct engine *engine, struct request *rq, const struct again *a)
{
    uint64_t hash = hash_again(a);
    char id[UUID_TEXT_LEN + 1];
    struct projection s;
    struct plan_job job;
    struct bt_error err;

    switch (submission_key_use(engine, rq, a->client_key, hash, id)) {
    case KEY_REPEATED:
        answer_again(engine, rq, a, id, a->plan_id, 0, true);
        return;
    case KEY_REFUSED:
        return;
    case KEY_NEW:
    default:
        break;
    }
    if (!submission_may_start(engine, rq)) {
        return;
    }
    if (projection_read(engine, a->plan_id, &s, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        projection_done(&s);
        return;
    }
    plan_job_of(s.document, &job);
    if (!access_may_change(engine, rq, s.view.owner)) {
        projection_done(&s);
        return;
    }
    if (job.kind != JOB_NONE) {
        request_refuse_job(engine, rq, job.of);
    } else if (a->answer == MSG_plan_retry_ok && !s.ended) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the plan has not ended (%.*s): only an ended one can be retried",
                            STR_ARG(s.view.status));
    } else {
        start_again(engine, rq, a, hash, &s);
    }
    projection_done(&s);
}

void on_plan_retry(struct engine *engine, struct request *rq)
{
    struct msg_plan_retry m;

    if (request_read(engine, rq, MSG_plan_retry, &m) &&
        access_name_session(engine, rq, &m.session_id)) {
        do_again(engine, rq,
                 &(struct again){.answer = MSG_plan_retry_ok,
                                 .plan_id = m.plan_id,
                                 .from_step = m.from_step,
                                 .session_id = m.session_id,
                                 .client_key = m.client_key});
    }
}

void on_plan_fork(struct engine *engine, struct request *rq)
{
    struct msg_plan_fork m;

    if (request_read(engine, rq, MSG_plan_fork, &m) &&
        access_name_session(engine, rq, &m.session_id)) {
        do_again(engine, rq,
                 &(struct again){.answer = MSG_plan_fork_ok,
                                 .plan_id = m.plan_id,
                                 .from_step = m.from_step,
                                 .session_id = m.session_id,
                                 .client_key = m.client_key,
                                 .policy = m.policy});
    }
}
