/* Records about a plan's jobs: planning and synthesis. */
#include "supervisor/core/run/run_apply.h"

#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/core/mutant.h"

bool run_apply_planning_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)rec;
    if (run->status != PLAN_PENDING || run->job != JOB_NONE || run->paused != 0 ||
        !plan->planning.pending) {
        return false;
    }
    run->job = JOB_PLANNING;
    run->asked = 1;
    return true;
}

static void add_planning(struct run *run, const struct record *rec)
{
    if (!MUTANT(PLANNING_FREE)) {
        run_usage_add(&run->usage, &rec->usage);
        run_usage_add(&run->planning_usage, &rec->usage);
    }
}

bool run_apply_planning_retry(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (run->job != JOB_PLANNING || run->asked == UINT8_MAX) {
        return false;
    }
    run->asked++;
    add_planning(run, rec);
    return true;
}

bool run_apply_planning_failed(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if (run->job != JOB_PLANNING) {
        return false;
    }
    run->job = JOB_NONE;
    add_planning(run, rec);
    return true;
}

/* ---- how the plan will end ---- */

static void keep_end(struct run_phases *phases, const struct record *rec)
{
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    const size_t n = utf8_cut(rec->text.ptr, rec->text.len, RUN_END_TEXT);
    phases->end_status = (uint8_t)end->status;
    phases->end_outcome = (uint8_t)end->outcome;
    phases->end_failure = (uint8_t)end->failure;
    phases->end_step = rec->step;
    if (n > 0) {
        memmove(phases->end_text, rec->text.ptr, n); /* the two may be the same text */
    }
    memset(phases->end_text + n, 0, RUN_END_TEXT - n);
    phases->end_text_n = (uint8_t)n;
}

static void forget_end(struct run_phases *phases)
{
    keep_end(phases, &(struct record){
                         REC_INIT(SYNTHESIS_STARTED, synthesis_started, .status = PLAN_PENDING),
                         .step = STEP_NONE});
}

/* The plan has started, nothing is under way, and its end is decided. */
bool run_apply_synthesis_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    (void)plan;
    if (run->status == PLAN_PENDING || run->phased == 0 || run->job != JOB_NONE ||
        run->active != 0 || run->cancelling || run->answered ||
        (unsigned)end->status >= PLAN_STATUS_COUNT || !plan_is_final(end->status) ||
        (unsigned)end->outcome >= PLAN_OUTCOME_COUNT ||
        (unsigned)end->failure >= PLAN_FAILURE_COUNT) {
        return false;
    }
    run_end_open_steps(run);
    run_void_signoff(run);
    run->job = JOB_SYNTHESIS;
    keep_end(run_phases_change(run), rec);
    return true;
}

bool run_apply_text_delta(struct run *run, const struct plan *plan, const struct record *rec)
{
    const uint64_t n = REC(rec, text_delta)->n;
    (void)plan;
    if (run->job != JOB_SYNTHESIS || (n != run->texts && n != 0) || n >= UINT32_MAX) {
        return false;
    }
    run->texts = (uint32_t)n + 1; /* 0: the text restarts */
    return true;
}

/* It always brings a revision, which run_revise applies. */
bool run_apply_synthesis_retry(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)run;
    (void)plan;
    (void)rec;
    return false;
}

/* Without SYNTHESIS_STARTED before it: the budget was spent. */
bool run_apply_synthesis_finished(struct run *run, const struct plan *plan,
                                  const struct record *rec)
{
    const struct rec_synthesis_finished *end = REC(rec, synthesis_finished);
    struct run_phases *phases = run_phases_change(run);
    (void)plan;
    if (run->status == PLAN_PENDING || phases == NULL || (run->job != JOB_SYNTHESIS && end->ok) ||
        run->active != 0 || run->answered) {
        return false;
    }
    run->job = JOB_NONE;
    run->answered = 1;
    phases->answer = end->ok ? end->result : (struct blob_ref){0};
    run_usage_add(&run->usage, &rec->usage);
    run_usage_add(&phases->synthesis, &rec->usage);
    return true;
}

/* ---- undoing what the plan did ---- */

/* Its end is decided and does not change any more. Neither its time nor a pause holds it up. */
bool run_apply_compensation_started(struct run *run, const struct plan *plan,
                                    const struct record *rec)
{
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    (void)plan;
    if (run->status == PLAN_PENDING || run->phased == 0 ||
        (run->job != JOB_NONE && run->job != JOB_SYNTHESIS) || /* that was cancelled */
        run->active != 0 || run->undone != 0 ||
        (end->status != PLAN_FAILED && end->status != PLAN_CANCELLED) ||
        (unsigned)end->outcome >= PLAN_OUTCOME_COUNT ||
        (unsigned)end->failure >= PLAN_FAILURE_COUNT) {
        return false;
    }
    run_end_open_steps(run);
    run_void_signoff(run);
    run->paused = 0;
    run->deadline = MSEC_NEVER;
    run->job = JOB_COMPENSATION;
    keep_end(run_phases_change(run), rec);
    return true;
}

bool run_apply_compensation_finished(struct run *run, const struct plan *plan,
                                     const struct record *rec)
{
    (void)plan;
    if (run->job != JOB_COMPENSATION) {
        return false;
    }
    run->job = JOB_NONE;
    run->undone = REC(rec, compensated)->ok ? 1 : 2;
    run_usage_add(&run->usage, &rec->usage);
    return true;
}

bool run_step_undoes(const struct run *run, const struct plan *plan, uint32_t step)
{
    const struct run_step *state = &run->steps[step];
    const struct plan_step *about = &plan->steps[step];
    if (!about->undoes || state->ended == 0) {
        return false; /* what an earlier plan did and this one reused has not begun here */
    }
    return state->status == STEP_COMPLETED
               ? about->rules->compensate.ptr != NULL || state->attempt > 0
               : about->type == STEP_TYPE_PLAN && state->attempt > 0;
}

uint32_t run_undo_order(const struct run *run, const struct plan *plan, uint32_t *ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        ret[i] = STEP_NONE;
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (run_step_undoes(run, plan, i)) {
            ret[run->n_steps - run->steps[i].ended] = i; /* the last one first */
        }
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (ret[i] != STEP_NONE) {
            ret[n++] = ret[i];
        }
    }
    return n;
}

bool run_job_revises(const struct run *run, const struct plan *from, const struct record *rec)
{
    if (rec->type == REC_PLAN_GENERATED) { /* from the planner, or from a person */
        return run->status == PLAN_PENDING && from->planning.pending && run->n_steps == 0 &&
               run->paused == 0;
    }
    if (rec->type == REC_SYNTHESIS_RETRY) {
        return run->job == JOB_SYNTHESIS && run->rectified < UINT8_MAX;
    }
    return run->job == JOB_NONE;
}

/* A failure of the plan stands while other steps are retried: then the plan still fails. */
void run_job_revised(struct run *next, const struct plan *to, const struct record *rec)
{
    if (rec->type == REC_PLAN_GENERATED) {
        run_usage_add(&next->planning_usage, &rec->usage);
    } else if (rec->type == REC_SYNTHESIS_RETRY) {
        struct run_phases *phases = run_phases_change(next);
        run_usage_add(&phases->synthesis, &rec->usage);
        next->rectified++;
        next->texts = 0;
        if (phases->end_step == STEP_NONE || to->steps[phases->end_step].superseded) {
            forget_end(phases);
        }
    }
    next->job = JOB_NONE;
}
