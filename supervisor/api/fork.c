/*
 * plan.retry and plan.fork: a new plan that takes over what an old one has completed. A large one
 * is made over cycles, and its rows are of one commit.
 */
#include <stdlib.h>

#include "supervisor/api/api_internal.h"
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

/* Whether the step may have been done although it has not completed. In a plan that has not ended,
 * or that was quarantined, so may every unsafe one that has begun. */
static bool may_be_done(const struct projection *s, uint32_t step)
{
    const struct msg_step_view *v = &s->view.steps[step];
    const enum step_status status = step_status_from_name(v->status);

    return v->outcome_unknown ||
           (s->plan->steps[step].rules->policy.effects == EFFECTS_UNSAFE && v->attempts > 0 &&
            status < STEP_STATUS_COUNT && !step_is_final(status));
}

/* The old plan's rows, in the arena: what has a result and need not be done again. */
static enum bt_code choose(const struct again *a, struct projection *s, struct arena *arena,
                           struct rerun_row **ret, struct bt_error *err)
{
    const struct plan *plan = s->plan;
    struct rerun_row *rows = arena_alloc(arena, (plan->n_steps + 1) * sizeof *rows);
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
        rows[i].doubt = !rows[i].reuse && !marks[i] && may_be_done(s, i);
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

/* ---- over cycles ---- */

enum {
    /* A plan of more steps takes a cycle for each stage. */
    LARGE_STEPS = 1000
};

/* What is still to be done. Nothing of the new plan is in the journal or seen before the last. */
enum stage { STAGE_CHOOSE, STAGE_MAKE, STAGE_START };

/* A plan that is made over cycles. All in it is its own, as the old plan may be deleted meanwhile.
 */
struct making {
    struct arena arena;
    struct again asked;
    uint64_t hash;
    enum stage next;
    bool is_later;      /* than in the cycle that looked for the key, for room and the old plan */
    bool is_made;       /* the submission is: an unplanned one */
    struct str plan_id; /* the old plan, as its rows name it */
    struct rerun_row *rows;
    uint32_t rows_n;
    struct buf document; /* for plan_read */
    struct submission made;
};

static void making_done(void *self)
{
    struct making *m = self;

    submission_done(&m->made);
    buf_done(&m->document);
    arena_done(&m->arena);
    free(m);
}

/* NULL when out of memory. */
static struct making *making_new(const struct again *a, uint64_t hash)
{
    struct making *m = calloc(1, sizeof *m);
    struct bt_error err;

    if (m == NULL) {
        return NULL;
    }
    buf_init(&m->document, LIMIT_STEP_BYTES);
    m->hash = hash;
    m->asked = (struct again){.answer = a->answer,
                              .plan_id = arena_str(&m->arena, a->plan_id),
                              .from_step = arena_str(&m->arena, a->from_step),
                              .session_id = arena_str(&m->arena, a->session_id),
                              .client_key = arena_str(&m->arena, a->client_key)};
    if (a->policy.ptr != NULL) {
        m->asked.policy = doc_copy(&m->arena, a->policy);
    }
    if (submission_init(&m->made, &err) != BT_OK || m->asked.plan_id.ptr == NULL ||
        m->asked.from_step.ptr == NULL || m->asked.session_id.ptr == NULL ||
        m->asked.client_key.ptr == NULL || (a->policy.ptr != NULL && m->asked.policy.ptr == NULL)) {
        making_done(m);
        return NULL;
    }
    return m;
}

static void refuse(struct engine *engine, struct request *rq, const struct bt_error *why)
{
    request_refuse(engine, rq, why, CLASS_NONE, 0, (struct doc){NULL, 0});
}

/* False after answering: the key has its plan, or there is no room. */
static bool may_make(struct engine *engine, struct request *rq, const struct making *m)
{
    char id[UUID_TEXT_LEN + 1];

    switch (submission_key_use(engine, rq, m->asked.client_key, m->hash, id)) {
    case KEY_REPEATED:
        answer_again(engine, rq, &m->asked, id, m->asked.plan_id, 0, true);
        return false;
    case KEY_REFUSED:
        return false;
    case KEY_NEW:
    default:
        return submission_may_start(engine, rq);
    }
}

/* What the new plan takes over, and its document; one that was never planned is made at once. */
static enum bt_code take_over(struct engine *engine, struct projection *s, struct making *m,
                              struct bt_error *err)
{
    enum bt_code code = choose(&m->asked, s, &m->arena, &m->rows, err);

    m->plan_id = arena_str(&m->arena, s->view.plan_id);
    m->rows_n = s->plan->n_steps;
    if (code != BT_OK || m->plan_id.ptr == NULL) {
        return code != BT_OK ? code : err_set(err, BT_NOMEM, "out of memory for a plan");
    }
    m->is_made = is_unplanned(&m->asked, s);
    return m->is_made ? submission_unplanned(engine, &m->asked, s, &m->made, err)
                      : rerun_document(s->document, &m->document, err);
}

/* False after refusing. */
static bool read_old(struct engine *engine, struct request *rq, struct making *m)
{
    const struct again *a = &m->asked;
    struct projection s;
    struct plan_job job;
    struct bt_error err;
    bool ok = false;

    if (projection_read(engine, a->plan_id, &s, &err) != BT_OK) {
        refuse(engine, rq, &err);
        projection_done(&s);
        return false;
    }
    plan_job_of(s.document, &job);
    if (!access_may_change(engine, rq, s.view.owner)) {
        /* it was refused */
    } else if (job.kind != JOB_NONE) {
        request_refuse_job(engine, rq, job.of);
    } else if (a->answer == MSG_plan_retry_ok && !s.ended) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the plan has not ended (%.*s): only an ended one can be retried",
                            STR_ARG(s.view.status));
    } else {
        ok = take_over(engine, &s, m, &err) == BT_OK;
        if (!ok && m->is_made) {
            submission_refuse(engine, rq, &m->made, &err);
        } else if (!ok) {
            refuse(engine, rq, &err);
        }
    }
    projection_done(&s);
    return ok;
}

/* The new plan, read and checked against the agents of today. False after refusing. */
static bool make(struct engine *engine, struct request *rq, struct making *m)
{
    struct submit_request w = {.session_id = m->asked.session_id,
                               .policy = m->asked.policy,
                               .plan = doc_from_buf(&m->document),
                               .lenient = true};
    struct bt_error err;

    if (m->is_made) {
        return true;
    }
    w.settled = rerun_settled(m->rows, m->rows_n, &m->arena, &w.n_settled);
    if (w.settled == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for what is reused");
        return false;
    }
    m->is_made = submission_make(engine, &w, &m->made, &err) == BT_OK;
    if (!m->is_made) {
        submission_refuse(engine, rq, &m->made, &err);
    }
    return m->is_made;
}

static uint32_t count_reused(const struct making *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->rows_n; i++) {
        n += m->rows[i].reuse ? 1 : 0;
    }
    return n;
}

static void start(struct engine *engine, struct request *rq, struct making *m)
{
    struct submission_start how = {.client_key = m->asked.client_key,
                                   .body_hash = m->hash,
                                   .reuse_items = m->asked.from_step.len ==
                                                  0 /* else it is asked for to be done again */};
    struct journal_plan row;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;

    (void)uuid_parse(m->plan_id, &how.parent);
    if (m->is_later && !may_make(engine, rq, m)) {
        return;
    }
    if (m->is_later && request_plan_row(engine, m->plan_id, &row, &err) != BT_OK) {
        refuse(engine, rq, &err); /* it was deleted, and with it the results */
        return;
    }
    how.reuse = rerun_reuse(m->made.made, m->rows, m->rows_n, &m->arena, &how.n_reuse);
    if (how.reuse == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for what is reused");
    } else if (submission_start(engine, &how, &m->made, id, &err) == BT_OK) {
        answer_again(engine, rq, &m->asked, id, m->plan_id, count_reused(m), false);
    } else if (!engine_has_failed(engine)) {
        refuse(engine, rq, &err);
    }
}

/* The next stage. True: the request is answered. */
static bool do_stage(struct engine *engine, struct request *rq, struct making *m)
{
    switch (m->next) {
    case STAGE_CHOOSE:
        m->next = STAGE_MAKE;
        return !may_make(engine, rq, m) || !read_old(engine, rq, m);
    case STAGE_MAKE:
        m->next = STAGE_START;
        return !make(engine, rq, m);
    case STAGE_START:
    default:
        start(engine, rq, m);
        return true;
    }
}

static bool go_on(struct engine *engine, struct request *rq, void *self, uint64_t until_ns)
{
    struct making *m = self;

    (void)until_ns; /* a stage is not divided */
    m->is_later = m->next != STAGE_CHOOSE;
    do {
        if (do_stage(engine, rq, m)) {
            return true;
        }
    } while (m->rows_n <= LARGE_STEPS);
    return false;
}

static void do_again(struct engine *engine, struct request *rq, const struct again *a)
{
    struct making *m = making_new(a, hash_again(a));

    if (m == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a plan");
        return;
    }
    api_read_on(
        engine, rq,
        &(struct long_read){.state = m, .turn = TURN_READ, .go_on = go_on, .done = making_done});
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
