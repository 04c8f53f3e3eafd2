#include "supervisor/engine/submission.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/plan/pack.h"
#include "supervisor/plan/permit.h"

enum {
    PROBLEMS_MAX = 200,
    PROBLEM_BYTES = 1024, /* as messages.def has it */
    KEY_MAX = 256,        /* of a clientKey with its owner */
    RETRY_MS = 1000
};

enum bt_code submission_init(struct submission *d, struct bt_error *err)
{
    *d = (struct submission){0};
    buf_init(&d->normalised, LIMIT_STEP_BYTES);
    /* 100 KiB that mostly stay untouched. */
    d->problems.at = malloc(PROBLEMS_MAX * sizeof *d->problems.at);
    d->problems.cap = PROBLEMS_MAX;
    return d->problems.at == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan") : BT_OK;
}

void submission_done(struct submission *d)
{
    free(d->problems.at);
    buf_done(&d->normalised);
    open_plan_done(&d->plan);
    arena_done(&d->arena);
}

static enum bt_code plan_goal(struct engine *engine, const struct submit_request *w,
                              struct submission *d, struct bt_error *err)
{
    struct planner_request request = {.goal = w->goal,
                                      .registry = engine->registry,
                                      .permitted = plan_permitted_of(w->policy),
                                      .late_agents = plan_waits_for_agents(w->policy)};

    return planner_plan(&request, &d->arena, &d->planned, err);
}

/* Constraints and policies that only a planner with a model can keep to. */
static enum bt_code check_wishes(const struct submit_request *w, bool asks_agent,
                                 struct bt_error *err)
{
    struct str on_invalid = doc_string(doc_get(w->policy, STR_LIT("onInvalidPlan")));

    if (on_invalid.ptr == NULL) {
        on_invalid = doc_string(doc_get(w->policy, STR_LIT("on_invalid_plan")));
    }
    if (w->plan.ptr != NULL && w->n_constraints > 0 && !w->own) {
        return err_set(err, BT_INVALID,
                       "constraints are for a planner, and this plan is made already: leave them "
                       "out, or give the goal in words to a model planner (planner llm or agent)");
    }
    if (w->plan.ptr != NULL || asks_agent) {
        return BT_OK;
    }
    if (w->n_constraints > 0) {
        return err_set(
            err, BT_INVALID,
            "the keyword planner keeps to no constraints (\"%.*s\"): use a model planner "
            "(planner llm or agent), or give a plan",
            (int)utf8_cut(w->constraints[0].ptr, w->constraints[0].len, 80), w->constraints[0].ptr);
    }
    if (on_invalid.len > 0 && !str_is(on_invalid, "fail")) {
        return err_set(err, BT_INVALID,
                       "onInvalidPlan \"%.*s\" is for a model planner (planner llm or agent): the "
                       "keyword planner makes a plan at once, or refuses the goal",
                       (int)utf8_cut(on_invalid.ptr, on_invalid.len, 40), on_invalid.ptr);
    }
    return BT_OK;
}

/* The names of agents that are away count for a plan that waits for them. */
static enum bt_code recall_agents(struct engine *engine, const struct submit_request *w,
                                  struct bt_error *err)
{
    const bool waits = plan_waits_for_agents(w->policy) || plan_waits_for_agents(w->plan);

    return waits && engine->hooks.agents_recall != NULL ? engine->hooks.agents_recall(engine, err)
                                                        : BT_OK;
}

enum bt_code submission_make(struct engine *engine, const struct submit_request *w,
                             struct submission *d, struct bt_error *err)
{
    struct plan_request request = {.plan = w->plan,
                                   .policy = w->policy,
                                   .defaults = &engine->opt.defaults,
                                   .registry = engine->registry,
                                   .goal = w->goal,
                                   .session_id = w->session_id,
                                   .constraints = w->constraints,
                                   .n_constraints = w->n_constraints,
                                   .dry_run = w->dry_run,
                                   .own = w->own,
                                   .lenient = w->lenient,
                                   .settled = w->settled,
                                   .n_settled = w->n_settled,
                                   .child = w->child};
    struct planner_choice planner = {.asks_agent = false};
    enum bt_code code;

    if ((w->goal.len > 0) == (w->plan.ptr != NULL) && w->goal.len == 0) {
        return err_set(err, BT_INVALID, "No plan to execute: expected a goal or a plan");
    }
    request.planner = w->planner.len > 0 ? w->planner : str_from(engine->opt.planner);
    if (w->plan.ptr == NULL) {
        code = planner_choose(request.planner, &planner, err);
        if (code != BT_OK) {
            return code;
        }
    }
    code = check_wishes(w, planner.asks_agent, err);
    code = code == BT_OK ? recall_agents(engine, w, err) : code;
    if (code != BT_OK) {
        return code;
    }
    if (planner.asks_agent) {
        return plan_read_pending(&request, &planner.agent, &d->arena, &d->made, &d->problems,
                                 &d->normalised, err);
    }
    request.planner = (struct str){NULL, 0};
    if (w->plan.ptr == NULL) {
        code = plan_goal(engine, w, d, err);
        if (code != BT_OK) {
            return code;
        }
        request.plan = d->planned.plan;
        request.planner = w->planner.len > 0 ? w->planner : str_from(engine->opt.planner);
    }
    return plan_read_request(&request, &d->arena, &d->made, &d->problems, &d->normalised, err);
}

bool submission_is_asked(struct engine *engine, struct str planner)
{
    struct planner_choice choice;
    const struct str name = planner.len > 0 ? planner : str_from(engine->opt.planner);

    return planner_choose(name, &choice, NULL) == BT_OK && choice.asks_agent;
}

uint32_t submission_problems(struct submission *d)
{
    d->problem_views = arena_alloc(&d->arena, (d->problems.n + d->planned.n_unrouted + 1) *
                                                  sizeof *d->problem_views);
    if (d->problem_views == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < d->problems.n; i++) {
        const struct problem *p = &d->problems.at[i];
        d->problem_views[i] = (struct msg_plan_problem){
            .severity = p->warning ? STR_LIT("warning") : STR_LIT("error"),
            .category = str_from(problem_category_name(p->category)),
            .step_id = str_from(p->step_id),
            .field = str_from(p->field),
            .message = str_from(p->message)};
        if (p->step != UINT32_MAX) {
            d->problem_views[i].step_index = p->step;
            msg_set(&d->problem_views[i], plan_problem, step_index);
        }
    }
    for (uint32_t i = 0; i < d->planned.n_unrouted; i++) {
        struct str text = d->planned.unrouted[i];
        text.len = utf8_cut(text.ptr, text.len, PROBLEM_BYTES);
        d->problem_views[d->problems.n + i] = (struct msg_plan_problem){
            .severity = STR_LIT("error"), .category = STR_LIT("unroutable"), .message = text};
    }
    return d->problems.n + d->planned.n_unrouted;
}

uint32_t submission_routes(struct submission *d)
{
    d->route_views = arena_alloc(&d->arena, (d->planned.n_routes + 1) * sizeof *d->route_views);
    for (uint32_t i = 0; d->route_views != NULL && i < d->planned.n_routes; i++) {
        const struct planner_route *r = &d->planned.routes[i];
        d->route_views[i] = (struct msg_plan_route){.step_id = r->step_id,
                                                    .agent_id = r->agent_id,
                                                    .skill = r->skill,
                                                    .score = r->score,
                                                    .why = r->why};
    }
    return d->route_views != NULL ? d->planned.n_routes : 0;
}

bool submission_lacks_only_agents(const struct submission *d)
{
    uint32_t missing = d->planned.n_unrouted;

    for (uint32_t i = 0; i < d->problems.n; i++) {
        const struct problem *p = &d->problems.at[i];
        if (!p->warning && p->category != PROBLEM_MISSING_AGENT &&
            p->category != PROBLEM_MISSING_SKILL) {
            return false;
        }
        missing += !p->warning;
    }
    return missing > 0;
}

bool submission_waits_for_agents(const struct engine *engine, const struct submission *d)
{
    return submission_lacks_only_agents(d) && journal_boot(engine->journal) > 1 &&
           engine->now - engine->started_mono < engine->opt.lease_ms;
}

void submission_refuse_new(struct engine *engine, struct request *rq, struct submission *d,
                           const struct bt_error *why)
{
    struct bt_error later;

    if (!submission_waits_for_agents(engine, d)) {
        submission_refuse(engine, rq, d, why);
        return;
    }
    (void)err_set(&later, BT_UNAVAILABLE,
                  "%.400s; the supervisor was started again %llu ms ago, and its agents may still "
                  "register: try again",
                  why->msg, (unsigned long long)(engine->now - engine->started_mono));
    request_refuse(engine, rq, &later, CLASS_NONE, RETRY_MS, (struct doc){NULL, 0});
}

void submission_refuse(struct engine *engine, struct request *rq, struct submission *d,
                       const struct bt_error *why)
{
    struct msg_plan_lint_ok view = {.valid = false};
    struct msg_part part = {MSG_plan_lint_ok, &view};
    struct buf details;

    buf_init(&details, LIMIT_CONTROL_BYTES / 4);
    view.problems_n = submission_problems(d);
    view.problems = d->problem_views;
    if (view.problems_n == 0 || msg_write(&details, WIRE_MSGPACK, &part, 1, NULL) != BT_OK) {
        buf_clear(&details);
    }
    request_refuse(engine, rq, why, CLASS_VALIDATION_ERROR, 0,
                   details.len > 0 ? doc_from_buf(&details) : (struct doc){NULL, 0});
    buf_done(&details);
}

/* The plan of the key. BT_NOT_FOUND: it is new. BT_CONFLICT: it was deleted. */
static enum bt_code plan_of_key(struct engine *engine, struct str client_key,
                                struct journal_plan *ret, struct bt_error *err)
{
    char id[UUID_TEXT_LEN + 1];
    struct buf key;
    enum bt_code code;

    buf_init(&key, KEY_MAX);
    access_client_key(engine->who, client_key, &key);
    code = buf_check(&key, err);
    if (code == BT_OK) {
        code = journal_plan_by_key(engine->journal, buf_str(&key), ret, err);
    }
    if (code == BT_CONFLICT) {
        /* Not done a second time: its result cannot be had any more. */
        uuid_format(ret->plan_id, id);
        code = err_set(err, BT_CONFLICT,
                       "clientKey '%.*s' was used for a plan (%s) that was deleted; another plan "
                       "needs another key",
                       STR_ARG(client_key), id);
    }
    buf_done(&key);
    return code;
}

enum key_use submission_key_use(struct engine *engine, struct request *rq, struct str client_key,
                                uint64_t body_hash, char ret_id[UUID_TEXT_LEN + 1])
{
    struct journal_plan row;
    struct bt_error err;
    enum bt_code code =
        client_key.len == 0 ? BT_NOT_FOUND : plan_of_key(engine, client_key, &row, &err);

    if (code == BT_NOT_FOUND) {
        return KEY_NEW;
    }
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return KEY_REFUSED;
    }
    uuid_format(row.plan_id, ret_id);
    if (row.body_hash != body_hash) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "clientKey '%.*s' was used for another plan (%s)", STR_ARG(client_key),
                            ret_id);
        return KEY_REFUSED;
    }
    return KEY_REPEATED;
}

/* A job belongs to whom it is for, a plan of a session to the session's owner, any other to the
 * sender of the request. BT_CONFLICT: the session is another's. */
static enum bt_code choose_owner(struct engine *engine, const struct submission_start *how,
                                 const struct plan *plan, struct open_plan *io,
                                 struct bt_error *err)
{
    char owner[LIMIT_ID_BYTES + 1];
    bool known = false;
    enum bt_code code = BT_OK;

    if (how->job.len == 0) {
        code = access_take_session(engine, plan->session_id, err);
    }
    if (code == BT_OK && how->job.len == 0 && plan->session_id.len > 0) {
        code = access_session_owner(engine, plan->session_id, &known, owner, err);
    }
    if (code == BT_OK && !open_plan_own(io, how->job.len > 0 ? how->owner
                                            : known          ? str_from(owner)
                                                             : access_owner(engine->who))) {
        code = err_set(err, BT_NOMEM, "out of memory for a plan");
    }
    return code;
}

static enum bt_code add_row(struct engine *engine, const struct submission_start *how,
                            struct submission *d, struct bt_error *err)
{
    const struct plan *plan = d->made;
    struct journal_plan row = {.plan_id = d->plan.plan_id,
                               .body_hash = how->body_hash,
                               .session_id = plan->session_id,
                               .goal = plan->goal,
                               .doc = d->normalised.at,
                               .doc_len = d->normalised.len,
                               .created_wall = engine->wall,
                               .status = STR_LIT("running"),
                               .job = how->job,
                               .owner = open_plan_owner(&d->plan)};
    struct buf key;
    enum bt_code code;

    buf_init(&key, KEY_MAX);
    if (how->whole_key) {
        buf_add_str(&key, how->client_key);
    } else {
        access_client_key(engine->who, how->client_key, &key);
    }
    code = buf_check(&key, err);
    row.client_key = buf_str(&key);
    if (code == BT_OK) {
        code = journal_plan_add(engine->journal, &row, &d->plan.ix, err);
    }
    buf_done(&key);
    return code;
}

static void keep_origin(const struct submission_start *how, struct open_plan *io)
{
    if (uuid_is_nil(how->parent) && how->trace.span == 0) {
        return;
    }
    open_plan_more_change(io)->origin =
        (struct plan_origin){.parent = how->parent,
                             .reuse = how->reuse_items ? how->parent : (struct uuid){{0}},
                             .trace = how->trace};
}

enum bt_code submission_start(struct engine *engine, const struct submission_start *how,
                              struct submission *d, char ret_id[UUID_TEXT_LEN + 1],
                              struct bt_error *err)
{
    struct plan *plan = d->made;
    struct core_event ev = {
        CORE_EV_INIT(SUBMIT, submit, .reuse = how->reuse, .n_reuse = how->n_reuse)};
    enum core_reject reject = REJECT_NONE;
    bool ok = true;
    enum bt_code code;

    code = plan_resolve(plan, engine->registry, engine->now, err);
    if (code == BT_OK) {
        code = choose_owner(engine, how, plan, &d->plan, err);
    }
    if (code != BT_OK) {
        return code;
    }
    d->plan.plan_id = engine_new_id(engine);
    uuid_format(d->plan.plan_id, ret_id);
    keep_origin(how, &d->plan);
    CORE_EV(&ev, submit)->plan = d->plan.plan = plan_pack(plan, &engine->shelf);
    CORE_EV(&ev, submit)->block = d->plan.block = open_plan_block(plan);
    if (ok && how->job.len > 0) {
        d->plan.job = job_of_document(doc_from_buf(&d->normalised), &ok);
    }
    if (d->plan.plan == NULL || d->plan.block == NULL || !ok) {
        return err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
    }
    code = rates_take(engine, d->plan.plan, err);
    if (code != BT_OK) {
        return code;
    }
    code = add_row(engine, how, d, err);
    if (code != BT_OK) {
        rates_drop(engine, d->plan.plan);
        if (code != BT_CONFLICT) {
            engine_fail(engine, err);
        }
        return code;
    }
    code = engine_submit(engine, &ev, &d->plan, doc_from_buf(&d->normalised), &reject, err);
    if (code == BT_OK && reject != REJECT_NONE) {
        /* The row of the plan is in the batch but no run is: this must not be committed. */
        code = err_set(err, BT_INTERNAL, "the core refused a plan that had a place: %s",
                       core_reject_text(reject));
    }
    if (code != BT_OK) {
        engine_fail(engine, err);
    }
    return code;
}

/* Runs that are neither taken nor kept for the one job that each open plan may still need. */
static uint32_t free_runs(const struct engine *engine)
{
    const uint32_t open = core_runs_open(engine->core);
    const uint32_t plans = open - engine->jobs; /* children may need jobs, too */
    const uint32_t used = open + (plans > engine->asking ? plans - engine->asking : 0);

    return used < engine->runs_max ? engine->runs_max - used : 0;
}

enum bt_code submission_room(struct engine *engine, struct bt_error *err)
{
    if (engine->draining) {
        return err_set(err, BT_UNAVAILABLE, "the supervisor is stopping and takes no new plans");
    }
    if (journal_storage_low(engine->journal)) {
        return engine_room_error(engine, false, err);
    }
    if (core_runs_open(engine->core) - engine->jobs - engine->children >= engine->opt.plans_max) {
        return err_set(err, BT_BUSY, "%u plans are open, the limit; try again later",
                       engine->opt.plans_max);
    }
    if (free_runs(engine) < 2) {
        return err_set(err, BT_BUSY,
                       "%u plans are open, and many questions of earlier ones are still being "
                       "stopped; try again later",
                       core_runs_open(engine->core) - engine->jobs);
    }
    return BT_OK;
}

enum bt_code submission_job_room(struct engine *engine, bool of_plan, struct bt_error *err)
{
    if (of_plan ? core_runs_open(engine->core) < engine->runs_max : free_runs(engine) > 0) {
        return BT_OK;
    }
    return err_set(err, BT_BUSY,
                   "too many plans and questions about plans are open; try again later");
}

bool submission_may_start(struct engine *engine, struct request *rq)
{
    struct quota_over over;
    struct bt_error err;

    if (access_plans_left(engine, access_owner(engine->who), &over, &err) != BT_OK) {
        access_refuse_quota(engine, rq, &err, &over);
        return false;
    }
    if (submission_room(engine, &err) != BT_OK) {
        const bool full = err.code == BT_UNAVAILABLE && !engine->draining;
        request_refuse(engine, rq, &err, CLASS_NONE, full ? engine_room_wait_ms() : 0,
                       (struct doc){NULL, 0});
        return false;
    }
    return true;
}
