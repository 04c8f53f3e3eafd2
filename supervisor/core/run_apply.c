/* The only place that changes a run: one function per kind of record. Each checks first and changes
 * after. */
#include "protocol/base/assert.h"
#include "supervisor/core/run_internal.h"

static uint32_t *counter_of(struct run *run, enum step_status s)
{
    switch (s) {
    case STEP_READY:
        return &run->ready;
    case STEP_COMPLETED:
        return &run->completed;
    case STEP_FAILED:
        return &run->failed;
    case STEP_SKIPPED:
        return &run->skipped;
    case STEP_CANCELLED:
        return &run->cancelled;
    case STEP_WAITING:
        return &run->waiting;
    case STEP_PENDING:
    case STEP_IN_PROGRESS:
    case STEP_BACKOFF:
    case STEP_UNKNOWN:
    case STEP_STATUS_COUNT:
        break;
    }
    return NULL;
}

/* Moves a step; the caller has checked what else the record says. A step that leaves a status has
 * no deadline. */
static void step_move(struct run *run, struct run_step *step, enum step_status to)
{
    const enum step_status from = step->status;
    ASSERT(run_move_allowed(from, to));
    uint32_t *left = counter_of(run, from);
    uint32_t *entered = counter_of(run, to);
    if (left != NULL) {
        ASSERT(*left > 0);
        (*left)--;
    }
    if (entered != NULL) {
        (*entered)++;
    }
    run->active += run_step_is_active(to) ? 1 : 0;
    run->active -= run_step_is_active(from) ? 1 : 0;
    run->open -= step_is_final(to) ? 1 : 0;
    step->status = (uint8_t)to;
    step->deadline = MSEC_NEVER;
}

/* Tells the dependents of a step that has just ended. */
static void settle_dependents(struct run *run, const struct plan *plan, uint32_t ended)
{
    const bool failed = run_end_is_failure(plan, &run->steps[ended]);
    for (uint32_t i = 0; i < run_dependents(plan, ended); i++) {
        const uint32_t step = run_dependent(plan, ended, i);
        struct run_step *s = &run->steps[step];
        ASSERT(s->deps_open > 0);
        s->deps_open--;
        s->deps_failed += failed ? 1 : 0;
        s->last_dep = run->steps[ended].status == STEP_COMPLETED ? ended : s->last_dep;
        if (s->status == STEP_PENDING && run_step_can_start(run, plan, step)) {
            step_move(run, s, STEP_READY);
        }
    }
}

static msec attempt_deadline(const struct plan *plan, const struct record *rec)
{
    const msec timeout = plan->steps[rec->step].policy.timeout_ms;
    return timeout == 0 ? MSEC_NEVER : msec_add(rec->now, timeout);
}

static void give_attempt(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    step_move(run, step, STEP_IN_PROGRESS);
    step->attempt = (uint16_t)rec->attempt;
    step->instance = rec->instance;
    step->epoch = rec->epoch;
    step->deadline = attempt_deadline(plan, rec);
}

static bool is_current_attempt(const struct run *run, const struct record *rec)
{
    const struct run_step *step = &run->steps[rec->step];
    return (step->status == STEP_IN_PROGRESS || step->status == STEP_UNKNOWN) &&
           step->attempt == rec->attempt;
}

/* ---- one function per record ---- */

static bool apply_generated(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    (void)rec;
    return run->status == PLAN_PENDING && run->plan_seq == 0;
}

static bool apply_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    if (run->status != PLAN_PENDING) {
        return false;
    }
    run->status = PLAN_RUNNING;
    run->started = rec->now;
    run->deadline = plan->timeout_ms == 0 ? MSEC_NEVER : msec_add(rec->now, plan->timeout_ms);
    return true;
}

static bool apply_step_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    if (run->steps[rec->step].status != STEP_READY || rec->attempt != 1) {
        return false;
    }
    give_attempt(run, plan, rec);
    run->steps[rec->step].started = rec->now;
    run->current = rec->step;
    run->last_agent = plan->steps[rec->step].agent;
    return true;
}

static bool apply_assigned(struct run *run, const struct plan *plan, const struct record *rec)
{
    const struct run_step *step = &run->steps[rec->step];
    const bool next = step->status == STEP_BACKOFF && rec->attempt == step->attempt + 1u &&
                      rec->attempt <= UINT16_MAX;
    if (!next && !is_current_attempt(run, rec)) {
        return false;
    }
    give_attempt(run, plan, rec);
    return true;
}

static bool apply_handoff(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (run->steps[rec->step].status != STEP_IN_PROGRESS) {
        return false;
    }
    run->handoffs++;
    return true;
}

static bool apply_progress(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    return is_current_attempt(run, rec);
}

static bool apply_retry(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (!is_current_attempt(run, rec)) {
        return false;
    }
    struct run_step *step = &run->steps[rec->step];
    step_move(run, step, STEP_BACKOFF);
    step->deadline = msec_add(rec->now, rec->delay_ms);
    return true;
}

static bool apply_unknown(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (!is_current_attempt(run, rec)) {
        return false;
    }
    struct run_step *step = &run->steps[rec->step];
    step_move(run, step, STEP_UNKNOWN);
    step->deadline = msec_add(rec->now, rec->delay_ms);
    return true;
}

static bool apply_waiting(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (!is_current_attempt(run, rec) || (unsigned)rec->review >= REVIEW_KIND_COUNT) {
        return false;
    }
    struct run_step *step = &run->steps[rec->step];
    step_move(run, step, STEP_WAITING);
    step->review = (uint8_t)rec->review;
    return true;
}

static bool apply_decided(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    struct run_step *step = &run->steps[rec->step];
    if (step->status != STEP_WAITING || (unsigned)rec->decision >= DECISION_COUNT ||
        step->granted == UINT16_MAX) {
        return false;
    }
    if (rec->decision == DECISION_APPROVE) {
        step_move(run, step, STEP_BACKOFF);
        step->deadline = rec->now;
        step->granted++;
    }
    /* A rejection only says why the step's end, the next record, is a failure. */
    return true;
}

/* Agents say what they used: no sum of what they say may pass what a record can hold. */
static uint64_t add_capped(uint64_t a, uint64_t b)
{
    return a > INT64_MAX || b > INT64_MAX - a ? INT64_MAX : a + b;
}

static void add_usage(struct usage *sum, const struct usage *u)
{
    sum->input_tokens = add_capped(sum->input_tokens, u->input_tokens);
    sum->output_tokens = add_capped(sum->output_tokens, u->output_tokens);
    sum->cached_tokens = add_capped(sum->cached_tokens, u->cached_tokens);
    sum->cost_micros = add_capped(sum->cost_micros, u->cost_micros);
}

static bool apply_step_completed(struct run *run, const struct plan *plan, const struct record *rec)
{
    struct run_step *step = &run->steps[rec->step];
    if (!step_is_final(rec->status) || !run_move_allowed(step->status, rec->status) ||
        (unsigned)rec->reason >= STEP_REASON_COUNT || (unsigned)rec->error_class >= CLASS_COUNT) {
        return false;
    }
    step_move(run, step, rec->status);
    step->reason = (uint8_t)rec->reason;
    step->error_class = (uint8_t)rec->error_class;
    step->result = rec->result;
    add_usage(&run->usage, &rec->usage);
    run->last_done = rec->status == STEP_COMPLETED ? rec->step : run->last_done;
    settle_dependents(run, plan, rec->step);
    return true;
}

static bool apply_cancelling(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    (void)rec;
    run->cancelling = 1;
    return true;
}

static bool apply_completed(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (run->active != 0 || !plan_is_final(rec->plan_status) ||
        (unsigned)rec->plan_status >= PLAN_STATUS_COUNT ||
        (unsigned)rec->outcome >= PLAN_OUTCOME_COUNT) {
        return false;
    }
    for (uint32_t i = 0; run->open > 0 && i < run->n_steps; i++) {
        if (!step_is_final(run->steps[i].status)) {
            step_move(run, &run->steps[i], STEP_CANCELLED);
        }
    }
    run->status = (uint8_t)rec->plan_status;
    run->outcome = (uint8_t)rec->outcome;
    run->deadline = MSEC_NEVER;
    return true;
}

static const struct {
    bool (*apply)(struct run *, const struct plan *,
                  const struct record *); /* NULL: not about a run */
    bool about_step;
} rules[REC_COUNT] = {
    [REC_PLAN_GENERATED] = {apply_generated, false},
    [REC_PLAN_STARTED] = {apply_started, false},
    [REC_STEP_STARTED] = {apply_step_started, true},
    [REC_HANDOFF] = {apply_handoff, true},
    [REC_STEP_PROGRESS] = {apply_progress, true},
    [REC_STEP_RETRY] = {apply_retry, true},
    [REC_STEP_WAITING] = {apply_waiting, true},
    [REC_REVIEW_DECIDED] = {apply_decided, true},
    [REC_STEP_COMPLETED] = {apply_step_completed, true},
    [REC_PLAN_CANCELLING] = {apply_cancelling, false},
    [REC_PLAN_COMPLETED] = {apply_completed, false},
    [REC_STEP_ASSIGNED] = {apply_assigned, true},
    [REC_STEP_UNKNOWN] = {apply_unknown, true},
};

/* WAITING: everything that is under way waits for a person and nothing else may begin. */
static void derive_status(struct run *run, const struct plan *plan)
{
    if (plan_is_final(run->status) || run->status == PLAN_PENDING) {
        return;
    }
    const bool may_begin = run->ready > 0 && run->active < run_concurrency(plan);
    const bool waits = run->active > 0 && run->waiting == run->active && !may_begin;
    run->status = waits ? PLAN_WAITING : PLAN_RUNNING;
}

bool run_apply(struct run *run, const struct plan *plan, const struct record *rec)
{
    if ((unsigned)rec->type >= REC_COUNT || rules[rec->type].apply == NULL ||
        plan_is_final(run->status)) {
        return false;
    }
    if (rules[rec->type].about_step && (rec->step >= run->n_steps || run->status == PLAN_PENDING)) {
        return false;
    }
    if (!rules[rec->type].apply(run, plan, rec)) {
        return false;
    }
    derive_status(run, plan);
    run->plan_seq += record_is_public(rec->type) ? 1 : 0;
    return true;
}
