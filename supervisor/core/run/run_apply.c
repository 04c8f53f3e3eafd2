/* The rules: which record may change a run and how, and the records about the whole plan. A rule
 * checks first and changes after. Nothing else changes a run. */
#include "supervisor/core/run/run_apply.h"

#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"

bool run_apply_generated(struct run *run, const struct plan *plan, const struct record *rec)
{
    if (run->status != PLAN_PENDING || run->plan_seq != 0 || plan->planning.pending) {
        return false;
    }
    run_usage_add(&run->usage, &rec->usage);
    run_usage_add(&run->planning_usage, &rec->usage);
    return true;
}

bool run_apply_started(struct run *run, const struct plan *plan, const struct record *rec)
{
    if (run->status != PLAN_PENDING || run->paused != 0 || run->job != JOB_NONE) {
        return false;
    }
    run->status = PLAN_RUNNING;
    run->started = rec->now;
    run->deadline = plan->timeout_ms == 0 ? MSEC_NEVER : msec_add(rec->now, plan->timeout_ms);
    return true;
}

bool run_apply_modified(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    if ((unsigned)REC(rec, revision)->modify >= MODIFY_KIND_COUNT ||
        REC(rec, revision)->revision != run->revision + 1) {
        return false;
    }
    run_revised(run, REC(rec, revision)->modify == MODIFY_CONVERSATION_ONLY);
    return true;
}

bool run_apply_paused(struct run *run, const struct plan *plan, const struct record *rec)
{
    const struct rec_pause *pause = REC(rec, pause);
    const bool asks = pause->reason == PAUSE_SIGNOFF || pause->reason == PAUSE_PLANNING;
    (void)plan;
    if ((unsigned)pause->reason >= PAUSE_REASON_COUNT || (run->paused & 1u << pause->reason) != 0 ||
        (asks && !run_review_follows(run, pause->serial))) {
        return false;
    }
    run->paused |= (uint8_t)(1u << pause->reason);
    if (asks) {
        run->plan_review = ++run->reviews;
        run->review_deadline =
            pause->delay_ms == 0 ? MSEC_NEVER : msec_add(rec->now, pause->delay_ms);
    }
    return true;
}

bool run_apply_resumed(struct run *run, const struct plan *plan, const struct record *rec)
{
    const enum pause_reason reason = REC(rec, pause)->reason;
    if ((unsigned)reason >= PAUSE_REASON_COUNT || (run->paused & 1u << reason) == 0) {
        return false;
    }
    run->paused &= (uint8_t) ~(1u << reason);
    if (reason == PAUSE_REQUESTED) {
        run_renew_questions(run, plan, rec->now);
    }
    return true;
}

bool run_apply_voided(struct run *run, const struct plan *plan, const struct record *rec)
{
    const struct rec_pause *pause = REC(rec, pause);
    (void)plan;
    if (pause->reason != PAUSE_SIGNOFF || (run->paused & 1u << PAUSE_SIGNOFF) == 0 ||
        pause->serial != run->plan_review) {
        return false;
    }
    run_void_signoff(run);
    return true;
}

/* Attempts under way have the grace to stop; the plan's deadline no longer applies. */
bool run_apply_cancelling(struct run *run, const struct plan *plan, const struct record *rec)
{
    (void)plan;
    run->cancelling = 1;
    run->deadline = MSEC_NEVER; /* the grace is the new limit */
    run->review_deadline = MSEC_NEVER;
    for (uint32_t i = 0; run->active > 0 && i < run->n_steps; i++) {
        if (run->steps[i].status == STEP_IN_PROGRESS) {
            run->steps[i].deadline = msec_add(rec->now, REC(rec, timed)->delay_ms);
        }
    }
    return true;
}

bool run_apply_completed(struct run *run, const struct plan *plan, const struct record *rec)
{
    const struct rec_plan_completed *end = REC(rec, plan_completed);
    (void)plan;
    if (run->active != 0 || !plan_is_final(end->status) ||
        (unsigned)end->status >= PLAN_STATUS_COUNT ||
        (unsigned)end->outcome >= PLAN_OUTCOME_COUNT) {
        return false;
    }
    run_end_open_steps(run);
    run->status = (uint8_t)end->status;
    run->outcome = (uint8_t)end->outcome;
    run->job = JOB_NONE;
    run->paused = 0;
    run->deadline = MSEC_NEVER;
    run->review_deadline = MSEC_NEVER;
    return true;
}

enum scope { PLAN_ONLY, STEP_ONLY, EITHER };

static const struct {
    run_rule *apply; /* NULL: the record is not about a run */
    enum scope scope;
} rules[REC_COUNT] = {
#define RULE_PLAN_ONLY(codec)                                                                      \
    {                                                                                              \
        run_apply_##codec, PLAN_ONLY                                                               \
    }
#define RULE_STEP_ONLY(codec)                                                                      \
    {                                                                                              \
        run_apply_##codec, STEP_ONLY                                                               \
    }
#define RULE_EITHER(codec)                                                                         \
    {                                                                                              \
        run_apply_##codec, EITHER                                                                  \
    }
#define RULE_NO_RUN(codec)                                                                         \
    {                                                                                              \
        NULL, PLAN_ONLY                                                                            \
    }
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    [REC_##name] = RULE_##scope(codec),
#include "supervisor/core/run/record.def"
};

static bool is_about_run(const struct run *run, const struct record *rec)
{
    if ((unsigned)rec->type >= REC_COUNT || plan_is_final(run->status) ||
        rules[rec->type].apply == NULL) {
        return false;
    }
    const enum scope scope = rules[rec->type].scope;
    const bool step = scope == STEP_ONLY || (scope == EITHER && rec->step != STEP_NONE);
    /* Before the plan starts, its steps only get what the plan before left of them. */
    const bool left =
        rec->type == REC_STEP_DOUBTED ||
        (rec->type == REC_STEP_COMPLETED && REC(rec, step_completed)->reason == REASON_REUSED);
    const bool early = run->status == PLAN_PENDING && scope == STEP_ONLY && !left;
    return !(step && rec->step >= run->n_steps) && !early;
}

bool run_apply(struct run *run, const struct plan *plan, const struct record *rec)
{
    if (!is_about_run(run, rec) || record_revises(rec) || !rules[rec->type].apply(run, plan, rec)) {
        return false;
    }
    run_derive_status(run, plan);
    run->plan_seq += record_is_public(rec->type) ? 1 : 0;
    return true;
}

/* ---- revisions ---- */

static bool keeps_rows(const struct plan *to, const struct run *run, const struct plan *from)
{
    if (to->n_steps < from->n_steps) {
        return false;
    }
    for (uint32_t i = 0; i < from->n_steps; i++) {
        const bool over = step_is_final(run->steps[i].status);
        if ((from->steps[i].superseded && !to->steps[i].superseded) ||
            (to->steps[i].superseded && !over)) {
            return false;
        }
    }
    return true;
}

/* Sets the step whose agent hands over to a step that has not begun (C20). When the last one to
 * complete is no dependency any more, the order before the revision is unknown: the last of them in
 * plan order is taken. */
static void reckon_last_dep(struct run *run, const struct plan *plan, uint32_t ix)
{
    uint32_t last = STEP_NONE;
    for (uint32_t i = 0; i < run_deps(plan, ix); i++) {
        const uint32_t dep = run_dep(plan, ix, i);
        if (run->steps[dep].status != STEP_COMPLETED) {
            continue;
        }
        if (dep == run->steps[ix].last_dep) {
            return;
        }
        last = last == STEP_NONE || dep > last ? dep : last;
    }
    run->steps[ix].last_dep = last;
}

/* Recounts the open and failed dependencies. A step that has not begun becomes ready or pending. */
static bool recount(struct run *run, const struct plan *plan, uint32_t ix)
{
    struct run_step *step = &run->steps[ix];
    step->deps_open = 0;
    step->deps_failed = 0;
    step->deps_skipped = 0;
    for (uint32_t i = 0; i < run_deps(plan, ix); i++) {
        const struct run_step *dep = &run->steps[run_dep(plan, ix, i)];
        step->deps_open += step_is_final(dep->status) ? 0 : 1;
        step->deps_failed +=
            step_is_final(dep->status) && run_end_is_failure(plan, dep, ix) ? 1 : 0;
        step->deps_skipped += run_end_is_bypass(plan, dep, ix) ? 1 : 0;
    }
    if (step->status == STEP_PENDING || step->status == STEP_READY) {
        reckon_last_dep(run, plan, ix);
        step->judged = 0; /* what comes before it may be something else now */
        step->status = run_step_can_start(run, plan, ix) ? STEP_READY : STEP_PENDING;
        return true;
    }
    return step_is_final(step->status) || run_step_can_start(run, plan, ix);
}

static void count_all(struct run *run, const struct plan *plan)
{
    run->open = run->ready = run->active = run->waiting = run->replanning = run->sleeping =
        run->placeless = 0;
    run->completed = run->failed = run->skipped = run->cancelled = run->superseded = 0;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (plan->steps[i].superseded) {
            run->superseded++;
        } else {
            run_step_count(run, &run->steps[i], true);
        }
    }
}

struct run *run_revise(void *mem, const struct plan *to, const struct run *run,
                       const struct plan *from, const struct record *rec)
{
    const uint32_t revision = run->revision + (rec->type == REC_PLAN_GENERATED ? 0 : 1);
    if (!is_about_run(run, rec) || !record_revises(rec) || to->revision != revision ||
        REC(rec, revision)->revision != revision || !run_job_revises(run, from, rec) ||
        !keeps_rows(to, run, from)) {
        return NULL;
    }
    struct run *next = run_init(mem, to);
    struct run_step *rows = next->steps;
    if (rec->type == REC_SYNTHESIS_RETRY && next->phased == 0) {
        return NULL;
    }
    const uint8_t phased = next->phased;
    const uint8_t own_texts = next->own_texts;
    memcpy(next, run, sizeof *run);
    memcpy(rows, run->steps, run->n_steps * sizeof *rows);
    next->n_steps = to->n_steps;
    next->phased = phased;
    next->own_texts = own_texts;
    if (phased != 0) {
        *run_phases_change(next) = *run_phases(run);
    }
    memcpy(run_own_texts(next), run_own_texts_of(run),
           (own_texts < run->own_texts ? own_texts : run->own_texts) * sizeof(struct run_own_text));
    if (rec->type != REC_PLAN_GENERATED) {
        run_revised(next, rec->type == REC_SYNTHESIS_RETRY);
    }
    for (uint32_t i = 0; i < to->n_steps; i++) {
        if (!recount(next, to, i)) {
            return NULL;
        }
        for (uint32_t k = 0; i >= run->n_steps && k < run->n_steps; k++) {
            /* A new step with an old id (C32) inherits the count of replans. */
            if (rows[k].replans > rows[i].replans && !MUTANT(REPLANS_FORGOTTEN) &&
                str_eq(to->steps[k].step_id, to->steps[i].step_id)) {
                rows[i].replans = rows[k].replans;
            }
        }
    }
    count_all(next, to);
    run_usage_add(&next->usage, &rec->usage);
    if (rec->type == REC_REPLAN_FINISHED) {
        run_spend_replan(next, &rec->usage);
    }
    run_job_revised(next, to, rec);
    run_derive_status(next, to);
    next->plan_seq += 1;
    return next;
}
