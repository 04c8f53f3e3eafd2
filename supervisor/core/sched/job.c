/*
 * The jobs of a plan: planning before it runs, and synthesis of one answer when its steps are over.
 * A job is another run, of one step. The engine starts it (CMD_JOB) and reports its end.
 *
 *   PENDING --PLANNING_STARTED--> planning --PLANNED--> the plan's own life
 *                                  |  ^ `--invalid plan: PLANNING_RETRY
 *                                  |  `--a person approves: once more
 *                                  `--PLANNING_FAILED--> failed, a review, or an answer alone
 *   all steps over --SYNTHESIS_STARTED--> synthesis --SYNTHESIS_FINISHED--> ended
 *                                          `--SYNTHESIS_RETRY--> running again
 */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/fair.h"

static void emit_job(struct core *c, const struct core_run *entry, struct str text)
{
    struct core_cmd *cmd = core_emit(c, CMD_JOB);
    cmd->run = core_handle_of(c, entry);
    cmd->job = entry->run->job;
    cmd->attempt = entry->run->job == JOB_PLANNING ? entry->run->asked : entry->run->rectified + 1u;
    cmd->text = text;
}

/* ---- planning ---- */

void core_start_planning(struct core *c, struct core_run *entry)
{
    const struct planning_policy *policy = &entry->plan->planning;
    core_record(c, entry,
                (struct record){REC_INIT(PLANNING_STARTED, timed, .delay_ms = policy->timeout_ms),
                                .step = STEP_NONE, .attempt = 1, .agent = policy->agent});
    core_rearm(c, entry);
    emit_job(c, entry, STR_LIT(""));
}

static void take_plan(struct core *c, struct core_run *entry, const struct core_new_plan *next,
                      const struct usage *usage, struct str normalised)
{
    core_record_revision(
        c, entry,
        (struct record){REC_INIT(PLAN_GENERATED, revision, .revision = next->plan->revision,
                                 .result = next->document),
                        .step = STEP_NONE, .usage = *usage, .text = normalised},
        next);
    core_emit(c, CMD_REVISED)->run = core_handle_of(c, entry);
    core_plan_made(c, entry);
}

bool core_brings_plan(const struct core_run *entry, const struct core_new_plan *next)
{
    return next->plan != NULL && next->block != NULL && next->document.id != 0 &&
           next->plan->n_steps > 0 && !next->plan->planning.pending &&
           next->plan->revision == entry->run->revision &&
           next->plan->session == entry->plan->session;
}

void core_on_planned(struct core *c, const struct core_event *ev)
{
    const struct core_ev_planned *made = CORE_EV(ev, planned);
    struct core_run *entry = core_find_run(c, ev->run);
    if (entry == NULL || entry->run->job != JOB_PLANNING || !core_brings_plan(entry, &made->next)) {
        core_reject(c, ev, entry == NULL ? REJECT_UNKNOWN_RUN : REJECT_NOT_WAITING);
        return;
    }
    take_plan(c, entry, &made->next, &made->usage, ev->text);
}

static void await_decision(struct core *c, struct core_run *entry, struct str text)
{
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_PAUSED, pause, .reason = PAUSE_PLANNING,
                                         .delay_ms = entry->plan->signoff_timeout_ms,
                                         .serial = entry->run->reviews + 1),
                                .step = STEP_NONE, .text = text});
    core_rearm(c, entry);
}

/* M008: an answer to the goal, without any steps. */
static void answer_without_plan(struct core *c, struct core_run *entry, const struct plan_end *end)
{
    core_record(c, entry, (struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE});
    core_rearm(c, entry);
    core_end_plan(c, entry, end);
}

static void give_up_planning(struct core *c, struct core_run *entry, enum plan_failure failure,
                             struct str text, const struct usage *usage)
{
    const struct plan_end end = {.status = PLAN_FAILED,
                                 .outcome = OUTCOME_FAILED,
                                 .failure = failure,
                                 .step = STEP_NONE,
                                 .text = text};
    core_record(c, entry,
                (struct record){REC_INIT(PLANNING_FAILED, planning_failed, .failure = failure),
                                .step = STEP_NONE, .attempt = entry->run->asked, .usage = *usage,
                                .text = text});
    const enum on_invalid policy = entry->plan->planning.on_invalid;
    const bool answers = entry->plan->synthesis.agent_id.len > 0 && !entry->plan->dry_run;
    if (policy == ON_INVALID_INTERRUPT) {
        await_decision(c, entry, text);
    } else if (policy == ON_INVALID_SYNTHESIZE && answers) {
        answer_without_plan(c, entry, &end);
    } else {
        core_plan_finish(c, entry, &end, (struct blob_ref){0});
    }
}

void core_planning_decided(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    struct plan_end end = {.status = PLAN_CANCELLED,
                           .outcome = OUTCOME_FAILED,
                           .failure = PLAN_FAILURE_REJECTED,
                           .step = STEP_NONE,
                           .text = ev->text.len > 0 ? ev->text : STR_LIT("Rejected by a reviewer")};
    const struct core_ev_decide *decided = CORE_EV(ev, decide);
    if (decided->decision == DECISION_APPROVE && decided->next.plan != NULL) {
        take_plan(c, entry, &decided->next, &(struct usage){0}, STR_LIT(""));
        return;
    }
    if (decided->decision == DECISION_APPROVE && !core_budget_is_spent(entry, &(struct usage){0})) {
        core_start_planning(c, entry);
        return;
    }
    if (decided->decision == DECISION_APPROVE) {
        end.status = PLAN_FAILED;
        end.failure = PLAN_FAILURE_BUDGET;
        end.text = STR_LIT("Budget exceeded: nothing is left to ask for a plan");
    }
    core_plan_finish(c, entry, &end, (struct blob_ref){0});
}

static void planning_failed(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct core_ev_job_failed *failed = CORE_EV(ev, job_failed);
    if (!failed->invalid) {
        give_up_planning(c, entry, PLAN_FAILURE_PLANNING, ev->text, &failed->usage);
        return;
    }
    const bool enough =
        entry->run->asked > entry->plan->planning.repairs || entry->run->asked >= LIMIT_ATTEMPTS;
    if ((enough && !MUTANT(REPAIRS_UNLIMITED)) || core_budget_is_spent(entry, &failed->usage)) {
        give_up_planning(c, entry, PLAN_FAILURE_INVALID_PLAN, ev->text, &failed->usage);
        return;
    }
    core_record(c, entry,
                (struct record){REC_INIT(PLANNING_RETRY, planning_retry, .n = failed->n,
                                         .result = failed->result),
                                .step = STEP_NONE, .attempt = entry->run->asked,
                                .usage = failed->usage, .text = ev->text});
    emit_job(c, entry, ev->text);
}

/* ---- the answer ---- */

/* C21, M082: also for a single step, whose result is the answer only without a synthesizer. */
static bool wants_synthesis(const struct core_run *entry, const struct plan_end *end)
{
    const struct run *run = entry->run;
    const bool single = MUTANT(SINGLE_UNANSWERED) && run->n_steps - run->superseded == 1;
    const bool called_off =
        end->status == PLAN_CANCELLED || run->cancelling || end->failure == PLAN_FAILURE_TIMEOUT;
    return entry->plan->synthesis.agent_id.len > 0 && (!called_off || MUTANT(ANSWER_AFTER_END)) &&
           run->status != PLAN_PENDING && run->job == JOB_NONE &&
           (!run->answered || MUTANT(ANSWERED_TWICE)) && !single;
}

bool core_synthesize(struct core *c, struct core_run *entry, const struct plan_end *end)
{
    const struct synthesis_policy *policy = &entry->plan->synthesis;
    if (!wants_synthesis(entry, end)) {
        return false;
    }
    if (core_budget_is_spent(entry, &(struct usage){0})) {
        core_record(c, entry,
                    (struct record){
                        .type = REC_SYNTHESIS_FINISHED,
                        .step = STEP_NONE,
                        .agent = policy->agent,
                        .text = STR_LIT("Budget exceeded: nothing is left to ask for an answer")});
        return false;
    }
    if ((entry->run->paused & 1u << PAUSE_REVIEW) !=
        0) { /* the reviews have ended with their steps */
        core_record(c, entry,
                    (struct record){REC_INIT(PLAN_RESUMED, pause, .reason = PAUSE_REVIEW),
                                    .step = STEP_NONE});
    }
    core_record(c, entry,
                (struct record){REC_INIT(SYNTHESIS_STARTED, synthesis_started,
                                         .status = end->status, .outcome = end->outcome,
                                         .failure = end->failure, .delay_ms = policy->timeout_ms),
                                .step = end->step, .agent = policy->agent, .text = end->text});
    core_rearm(c, entry);
    emit_job(c, entry, STR_LIT(""));
    return true;
}

/* The plan's end was decided before the synthesis. Without steps an answer alone is a partial
 * success. */
struct plan_end core_decided_end(const struct run *run)
{
    const struct run_phases *phases = run_phases(run);
    if (run->n_steps == 0 && phases->answer.id != 0) {
        return (struct plan_end){
            .status = PLAN_COMPLETED, .outcome = OUTCOME_PARTIAL, .step = STEP_NONE};
    }
    return (struct plan_end){.status = phases->end_status,
                             .outcome = phases->end_outcome,
                             .failure = phases->end_failure,
                             .step = phases->end_step,
                             .text = {phases->end_text, phases->end_text_n}};
}

bool core_end_stands(const struct core_run *entry, struct plan_end *ret)
{
    const struct run *run = entry->run;
    if (run_phases(run)->end_status == PLAN_FAILED && !MUTANT(END_FORGOTTEN)) {
        *ret = core_decided_end(run);
        return true;
    }
    for (uint32_t i = 0; run->rectified > 0 && i < run->n_steps && !MUTANT(END_FORGOTTEN); i++) {
        if (core_step_aborts(entry, i)) {
            *ret = (struct plan_end){.status = PLAN_FAILED,
                                     .outcome = OUTCOME_FAILED,
                                     .failure = PLAN_FAILURE_STEP,
                                     .step = i,
                                     .text = STR_LIT("A step failed and was not tried again")};
            return true;
        }
    }
    return false;
}

/* Emits SYNTHESIS_FINISHED and ends the plan as decided. */
static void finish(struct core *c, struct core_run *entry, struct record rec)
{
    rec.step = STEP_NONE;
    rec.agent = entry->plan->synthesis.agent;
    core_record(c, entry, rec);
    const struct plan_end end = core_decided_end(entry->run);
    core_plan_finish(c, entry, &end, REC(&rec, synthesis_finished)->result);
}

static void finish_without(struct core *c, struct core_run *entry, struct str why,
                           const struct usage *usage)
{
    finish(c, entry, (struct record){.type = REC_SYNTHESIS_FINISHED, .usage = *usage, .text = why});
}

void core_on_synthesized(struct core *c, const struct core_event *ev)
{
    const struct core_ev_synthesized *answer = CORE_EV(ev, synthesized);
    struct core_run *entry = core_find_run(c, ev->run);
    if (entry == NULL || entry->run->job != JOB_SYNTHESIS || answer->result.id == 0) {
        core_reject(c, ev, entry == NULL ? REJECT_UNKNOWN_RUN : REJECT_NOT_WAITING);
        return;
    }
    finish(c, entry,
           (struct record){REC_INIT(SYNTHESIS_FINISHED, synthesis_finished, .ok = true,
                                    .result = answer->result),
                           .usage = answer->usage});
}

void core_on_rectify(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    if (entry == NULL || entry->run->job != JOB_SYNTHESIS) {
        core_reject(c, ev, entry == NULL ? REJECT_UNKNOWN_RUN : REJECT_NOT_WAITING);
        return;
    }
    const struct core_ev_planned *made = CORE_EV(ev, planned);
    const struct core_new_plan *next = &made->next;
    const struct record rec = {.type = REC_SYNTHESIS_RETRY,
                               .step = STEP_NONE,
                               .agent = entry->plan->synthesis.agent,
                               .usage = made->usage,
                               .text = ev->text};
    const bool adds = next->plan != NULL && next->plan->n_steps > entry->plan->n_steps;
    const bool enough = entry->run->rectified >= entry->plan->synthesis.max_retries ||
                        entry->run->rectified >= LIMIT_ATTEMPTS;
    if ((enough && !MUTANT(RECTIFY_UNLIMITED)) || next->document.id == 0 || !adds ||
        entry->run->revision >= LIMIT_REVISIONS || !core_revise(c, entry, next, rec)) {
        core_reject(c, ev, REJECT_TOO_MUCH);
    }
}

void core_on_job_failed(struct core *c, const struct core_event *ev)
{
    const struct core_ev_job_failed *failed = CORE_EV(ev, job_failed);
    struct core_run *entry = core_find_run(c, ev->run);
    const bool waits =
        entry != NULL && entry->run->job != JOB_NONE && entry->run->job == (uint8_t)failed->job &&
        failed->job != JOB_COMPENSATION &&
        (failed->job != JOB_PLANNING || ev->attempt == entry->run->asked || MUTANT(STALE_PLANNER));
    if (!waits) {
        core_reject(c, ev, entry == NULL ? REJECT_UNKNOWN_RUN : REJECT_NOT_WAITING);
    } else if (failed->job == JOB_PLANNING) {
        planning_failed(c, entry, ev);
    } else {
        finish_without(c, entry, ev->text, &failed->usage);
    }
}

void core_on_job_text(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    if (entry == NULL || entry->run->job != JOB_SYNTHESIS) {
        core_reject(c, ev, entry == NULL ? REJECT_UNKNOWN_RUN : REJECT_NOT_WAITING);
        return;
    }
    const uint32_t n = CORE_EV(ev, job_text)->restarts ? 0 : entry->run->texts;
    if (n >= CORE_TEXTS_MAX) {
        core_reject(c, ev, REJECT_TOO_MUCH);
        return;
    }
    core_record(c, entry,
                (struct record){REC_INIT(TEXT_DELTA, text_delta, .n = n), .step = STEP_NONE,
                                .text = ev->text});
}

/* ---- time, cancelling, restarts ---- */

void core_job_stop(struct core *c, struct core_run *entry)
{
    if (entry->run->job != JOB_NONE && !MUTANT(JOB_GOES_ON)) {
        struct core_cmd *cmd = core_emit(c, CMD_JOB_STOP);
        cmd->run = core_handle_of(c, entry);
        cmd->job = entry->run->job;
    }
}

void core_synthesis_timeout(struct core *c, struct core_run *entry)
{
    core_job_stop(c, entry);
    finish_without(c, entry, core_text_timeout(c, entry->plan->timeout_ms), &(struct usage){0});
}

bool core_job_recover(struct core *c, struct core_run *entry)
{
    const struct run *run = entry->run;
    if (run->job != JOB_NONE) {
        core_rearm(c, entry);
        if (run->job == JOB_COMPENSATION && !MUTANT(UNDO_FORGOTTEN)) {
            core_undo_ask(c, entry);
        } else if (run->job != JOB_COMPENSATION && !MUTANT(JOB_FORGOTTEN)) {
            emit_job(c, entry, STR_LIT(""));
        }
        return true;
    }
    if (run->undone != 0 && !MUTANT(UNDONE_TWICE)) { /* the journal was cut before PLAN_COMPLETED */
        const struct plan_end end = core_decided_end(run);
        core_plan_finish(c, entry, &end, run_phases(run)->answer);
        return true;
    }
    if (run->answered && run_phases(run)->end_status != PLAN_PENDING &&
        !MUTANT(ANSWERED_TWICE)) { /* the journal was cut before PLAN_COMPLETED */
        const struct plan_end end = core_decided_end(run);
        core_plan_finish(c, entry, &end, run_phases(run)->answer);
        return true;
    }
    if (!entry->plan->planning.pending || run->status != PLAN_PENDING) {
        return false;
    }
    if (run->paused != 0) {
        core_rearm(c, entry); /* time while the supervisor was down counts */
    } else {
        core_start_planning(
            c,
            entry); /* the journal was cut before PLANNING_STARTED, or after the end of the job */
    }
    return true;
}
