/* What people change while a plan runs: pausing, resuming, skipping, cancelling a step, revising.
 */
#include "supervisor/api/api.h"

const char *request_why_not(const struct open_plan *p, const char *otherwise)
{
    const struct run *run = core_block_run(p->block);

    return run->status == PLAN_PENDING
               ? "the plan has not begun: it waits for its sign-off; decide the review with its id"
               : otherwise;
}

static struct str live_status(const struct open_plan *p)
{
    return str_from(plan_status_name(core_block_run(p->block)->status));
}

void on_plan_pause(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.type = CORE_PAUSE};
    struct msg_plan_pause_ok ok = {0};
    struct msg_plan_pause m;
    struct open_plan *p;

    p = request_read(engine, rq, MSG_plan_pause, &m) ? request_open_plan(engine, rq, m.plan_id)
                                                     : NULL;
    if (p == NULL) {
        return;
    }
    ev.text = m.reason;
    if (request_feed(engine, rq, p, &ev, request_why_not(p, NULL))) {
        ok.plan_id = str_from(p->id);
        ok.status = live_status(p);
        request_answer(engine, rq, MSG_plan_pause_ok, &ok);
    }
}

void on_plan_resume(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.type = CORE_RESUME};
    struct msg_plan_resume_ok ok = {0};
    struct msg_plan_resume m;
    struct open_plan *p;

    p = request_read(engine, rq, MSG_plan_resume, &m) ? request_open_plan(engine, rq, m.plan_id)
                                                      : NULL;
    if (p == NULL) {
        return;
    }
    ev.text = m.reason;
    if (request_feed(engine, rq, p, &ev, request_why_not(p, "the plan is not paused"))) {
        ok.plan_id = str_from(p->id);
        ok.status = live_status(p);
        request_answer(engine, rq, MSG_plan_resume_ok, &ok);
    }
}

/* ---- plan.modify ---- */

/* The steps that a modification names, as indexes. */
struct targets {
    struct arena arena;
    uint32_t *at;
    uint32_t n;
};

/* Numbers for people count from 1 (C09). */
static enum bt_code step_number(const struct plan *plan, const char *field, uint64_t number,
                                uint32_t *ret, struct bt_error *err)
{
    if (number == 0 || number > plan->n_steps) {
        return err_set(err, BT_INVALID, "%s: expected the number of a step, 1 to %u, got %llu",
                       field, plan->n_steps, (unsigned long long)number);
    }
    *ret = (uint32_t)number - 1;
    return BT_OK;
}

static enum bt_code step_named(const struct plan *plan, const char *field, struct str step_id,
                               uint32_t *ret, struct bt_error *err)
{
    *ret = plan_step_find(plan, step_id);
    return *ret == UINT32_MAX ? err_set(err, BT_NOT_FOUND, "%s: the plan has no step '%.*s'", field,
                                        STR_ARG(step_id))
                              : BT_OK;
}

/* One step: by its number, or by its id. */
static enum bt_code one_step(const struct plan *plan, const struct msg_plan_modify *m,
                             uint32_t *ret, struct bt_error *err)
{
    if (msg_has(m, plan_modify, target_step_number)) {
        return step_number(plan, "targetStepNumber", m->target_step_number, ret, err);
    }
    if (m->step_id.len > 0) {
        return step_named(plan, "stepId", m->step_id, ret, err);
    }
    return err_set(err, BT_INVALID,
                   "%.*s: expected targetStepNumber (the first step is 1) or stepId",
                   STR_ARG(m->kind));
}

/* A number of the list; whole floats are numbers, too (many languages send 2.0). */
static bool whole_number(struct doc value, uint64_t *ret)
{
    struct doc_head head = doc_head(value);

    if (head.kind == DOC_FLOAT && head.f >= 0 && head.f <= LIMIT_STEPS &&
        (double)(uint64_t)head.f == head.f) {
        head = (struct doc_head){.kind = DOC_UINT, .u = (uint64_t)head.f};
    }
    *ret = head.u;
    return head.kind == DOC_UINT;
}

static enum bt_code listed_steps(const struct plan *plan, struct doc list, struct targets *ret,
                                 struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head = {.kind = DOC_NIL};

    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY || head.n == 0 ||
        head.n > plan->n_steps) {
        return err_set(err, BT_INVALID,
                       "stepsToSkip: expected a list of 1 to %u numbers of steps (the first step "
                       "is 1)",
                       plan->n_steps);
    }
    ret->at = arena_alloc(&ret->arena, head.n * sizeof *ret->at);
    if (ret->at == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u steps", head.n);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        uint64_t number;
        enum bt_code code;
        if (!whole_number(doc_skip(&c), &number)) {
            return err_set(err, BT_INVALID, "stepsToSkip[%u]: expected the number of a step", i);
        }
        code = step_number(plan, "stepsToSkip", number, &ret->at[ret->n++], err);
        if (code != BT_OK) {
            return code;
        }
    }
    return BT_OK;
}

static enum bt_code find_targets(const struct plan *plan, const struct msg_plan_modify *m,
                                 struct core_event *ev, struct targets *ret, struct bt_error *err)
{
    struct core_ev_modify *change = CORE_EV(ev, modify);
    enum bt_code code = BT_OK;

    if (change->kind == MODIFY_SKIP_TO_STEP) {
        return one_step(plan, m, &ev->step, err);
    }
    if (change->kind == MODIFY_SKIP_STEPS &&
        (m->steps_to_skip.ptr != NULL || m->step_id.len == 0)) {
        code = listed_steps(plan, m->steps_to_skip, ret, err);
    } else if (change->kind == MODIFY_SKIP_STEPS || change->kind == MODIFY_CANCEL_STEP) {
        ret->at = arena_alloc(&ret->arena, sizeof *ret->at);
        ret->n = 1;
        code = ret->at == NULL ? err_set(err, BT_NOMEM, "out of memory for a step")
                               : one_step(plan, m, ret->at, err);
    }
    change->steps = ret->at;
    change->n_steps = ret->n;
    return code;
}

static void answer_modified(struct engine *engine, struct request *rq, const struct open_plan *p,
                            uint32_t changed)
{
    struct msg_plan_modify_ok ok = {.plan_id = str_from(p->id),
                                    .revision = core_block_run(p->block)->revision,
                                    .changed = changed};

    msg_set(&ok, plan_modify_ok, changed);
    request_answer(engine, rq, MSG_plan_modify_ok, &ok);
}

/* The kinds that need no new plan. */
static void modify(struct engine *engine, struct request *rq, struct open_plan *p,
                   const struct msg_plan_modify *m, struct core_event *ev)
{
    const struct run *run = core_block_run(p->block);
    uint32_t open = run->open;
    struct targets targets = {.n = 0};
    struct bt_error err;

    if (find_targets(p->plan, m, ev, &targets, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
    } else if (request_feed(engine, rq, p, ev, request_why_not(p, NULL))) {
        answer_modified(engine, rq, p, open - run->open);
    }
    arena_done(&targets.arena);
}

void on_plan_modify(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.type = CORE_MODIFY, .step = STEP_NONE};
    struct core_ev_modify *change = CORE_EV(&ev, modify);
    struct msg_plan_modify m;
    struct open_plan *p;

    p = request_read(engine, rq, MSG_plan_modify, &m) ? request_open_plan(engine, rq, m.plan_id)
                                                      : NULL;
    if (p == NULL) {
        return;
    }
    change->kind = modify_kind_from_name(m.kind);
    ev.text = m.reasoning;
    change->expect = (uint32_t)m.expect_revision;
    if (change->kind == MODIFY_KIND_COUNT) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "kind: expected skip_to_step, skip_steps, conversation_only, insert, "
                            "replace or cancel_step, got '%.*s'",
                            STR_ARG(m.kind));
    } else if (change->expect != 0 &&
               change->expect != core_revision(engine_core(engine), p->run)) {
        /* Before the steps are looked up: their numbers and ids are those of the other revision. */
        request_refuse_revision(engine, rq, p);
    } else if (change->kind == MODIFY_INSERT || change->kind == MODIFY_REPLACE) {
        api_revise(engine, rq, p, &m, change->kind, change->expect);
    } else {
        modify(engine, rq, p, &m, &ev);
    }
}
