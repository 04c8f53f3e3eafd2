/* Rules about the jobs of a plan as a whole: their order, their number, their budget, and that the
 * plan ends with their outcome. Computed from the records alone. */
#include <string.h>

#include "supervisor/core/run/run_apply.h"
#include "tests/sim/sim.h"

static uint64_t tokens_of(const struct usage *u)
{
    return u->input_tokens + u->output_tokens;
}

static bool has_budget(const struct sim_plan *p, const struct usage *more)
{
    const struct plan *plan = sim_plan_now(p);
    return (plan->budget_tokens == 0 ||
            tokens_of(&p->spent) + tokens_of(more) < plan->budget_tokens) &&
           (plan->budget_micros == 0 ||
            p->spent.cost_micros + more->cost_micros < plan->budget_micros);
}

static void end_asking(struct sim_plan *p)
{
    p->asking.kind = JOB_NONE;
    p->asking.out = false;
    p->job.token = 0;
}

/* ---- planning ---- */

static void check_planning(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    const struct planning_policy *policy = &sim_plan_now(p)->planning;
    const struct core_event *ev = &s->turn->ev;
    if (rec->type == REC_PLANNING_STARTED) {
        SIM_RULE(policy->pending && !p->generated && !p->started, "planned without need");
        SIM_RULE(asking->kind == JOB_NONE && p->shadow->paused == 0, "planned out of turn");
        SIM_RULE(has_budget(p, &(struct usage){0}), "planned with nothing left");
        asking->kind = JOB_PLANNING;
        asking->asked = 1;
        return;
    }
    const bool invalid = ev->type == CORE_JOB_FAILED && CORE_EV(ev, job_failed)->invalid;
    const bool may = invalid && asking->asked <= policy->repairs && has_budget(p, &rec->usage);
    SIM_RULE(ev->type == CORE_JOB_FAILED && asking->kind == JOB_PLANNING &&
                 ev->attempt == asking->asked,
             "planning failed by itself");
    SIM_RULE(may == (rec->type == REC_PLANNING_RETRY), "asked again too often or too seldom");
    end_asking(p);
    if (may) {
        asking->kind = JOB_PLANNING;
        asking->asked++;
    } else {
        sometimes->on_invalid[policy->on_invalid]++;
    }
}

static void check_planned(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const enum core_event_type by = s->turn->ev.type;
    const bool pending = sim_plan_now(p)->planning.pending;
    SIM_RULE(pending == record_revises(rec), "generated without its steps");
    SIM_RULE(!pending || (by == CORE_PLANNED && p->asking.kind == JOB_PLANNING) ||
                 (by == CORE_DECIDE && p->asking.kind == JOB_NONE),
             "a plan out of nothing");
    end_asking(p);
}

/* ---- the answer ---- */

static bool wants_answer(const struct sim_plan *p, enum plan_status status,
                         enum plan_failure failure)
{
    const struct plan *plan = sim_plan_now(p);
    const struct run *run = p->shadow;
    return plan->synthesis.agent_id.len > 0 && p->started && !run->cancelling &&
           status != PLAN_CANCELLED && failure != PLAN_FAILURE_TIMEOUT;
}

static void check_synthesis(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    SIM_RULE(asking->kind == JOB_NONE && !asking->answered, "two answers at once");
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    SIM_RULE(wants_answer(p, end->status, end->failure) && has_budget(p, &(struct usage){0}),
             "an answer that nobody wants");
    for (uint32_t i = 0; i < sim_plan_now(p)->n_steps; i++) {
        SIM_RULE(!p->told[i].started || p->told[i].completed, "asked before its steps are over");
        p->told[i].completed = true; /* a step that has not begun never will */
    }
    asking->kind = JOB_SYNTHESIS;
    asking->failed = REC(rec, synthesis_started)->status == PLAN_FAILED;
    asking->failed_by = rec->step;
}

static void check_again(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    const struct plan *to = p->revisions[p->n_revisions];
    SIM_RULE(asking->kind == JOB_SYNTHESIS && s->turn->ev.type == CORE_RECTIFY,
             "tried again by itself");
    SIM_RULE(++asking->rectified <= sim_plan_now(p)->synthesis.max_retries,
             "tried again too often");
    asking->failed = asking->failed && asking->failed_by != STEP_NONE &&
                     !to->steps[asking->failed_by].superseded;
    asking->texts = 0;
    end_asking(p);
}

static void check_finished(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    const enum core_event_type by = s->turn->ev.type;
    SIM_RULE(!asking->answered, "answered twice");
    SIM_RULE(REC(rec, synthesis_finished)->ok == (by == CORE_SYNTHESIZED), "an answer by nobody");
    SIM_RULE(!REC(rec, synthesis_finished)->ok || REC(rec, synthesis_finished)->result.id ==
                                                      CORE_EV(&s->turn->ev, synthesized)->result.id,
             "another answer");
    SIM_RULE(asking->kind == JOB_NONE
                 ? !REC(rec, synthesis_finished)->ok && !has_budget(p, &(struct usage){0})
                 : REC(rec, synthesis_finished)->ok || by == CORE_JOB_FAILED || by == CORE_TICK,
             "given up by itself");
    asking->answered = true;
    asking->answer = REC(rec, synthesis_finished)->ok ? REC(rec, synthesis_finished)->result.id : 0;
    end_asking(p);
}

static void check_text(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    SIM_RULE(p->asking.kind == JOB_SYNTHESIS && s->turn->ev.type == CORE_JOB_TEXT,
             "a text by itself");
    SIM_RULE(REC(rec, text_delta)->n ==
                 (CORE_EV(&s->turn->ev, job_text)->restarts ? 0 : p->asking.texts),
             "texts are not numbered");
    p->asking.texts = (uint32_t)REC(rec, text_delta)->n + 1;
}

/* ---- undoing what it did ---- */

/* Something was done here that has a compensation, or may have been by a child plan. */
static bool wants_undo(const struct sim_plan *p, enum plan_status end)
{
    const struct plan *plan = sim_plan_now(p);
    bool something = false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct plan_step *about = &plan->steps[i];
        const struct run_step *is = &p->shadow->steps[i];
        const bool child = about->type == STEP_TYPE_PLAN && is->attempt > 0;
        const bool completed = is->status == STEP_COMPLETED && is->reason != REASON_REUSED;
        something |= about->undoes && p->told[i].started &&
                     ((completed && about->rules->compensate.ptr != NULL) || child);
    }
    return something && plan->undo != UNDO_NEVER &&
           (end == PLAN_FAILED || (end == PLAN_CANCELLED && plan->undo == UNDO_ALWAYS &&
                                   plan->child.kind == CHILD_OF_NONE));
}

static void check_undo(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    SIM_RULE(asking->kind == JOB_NONE || (asking->kind == JOB_SYNTHESIS && !asking->out),
             "undone while something else is asked");
    SIM_RULE(asking->undone == 0, "undone twice");
    SIM_RULE(wants_undo(p, end->status), "undone although nobody wants it");
    SIM_RULE(asking->answered || !wants_answer(p, end->status, end->failure),
             "undone before its answer is there");
    for (uint32_t i = 0; i < sim_plan_now(p)->n_steps; i++) {
        SIM_RULE(!p->told[i].started || p->told[i].completed, "undone before its steps are over");
        p->told[i].completed = true;
    }
    asking->kind = JOB_COMPENSATION;
    asking->failed = end->status == PLAN_FAILED;
    asking->failed_by = rec->step;
}

static void check_undone(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    SIM_RULE(p->asking.kind == JOB_COMPENSATION && s->turn->ev.type == CORE_COMPENSATED &&
                 CORE_EV(&s->turn->ev, compensated)->ok == REC(rec, compensated)->ok,
             "undone by nobody");
    p->asking.undone = REC(rec, compensated)->ok ? 1 : 2;
    end_asking(p);
}

void sim_check_undo(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    const struct record *rec = &(struct record){.step = STEP_NONE};
    if (p == NULL || p->over) {
        sim_fail(s, "asks to undo a plan that is over", 0, STEP_NONE);
        return;
    }
    SIM_RULE(p->asking.kind == JOB_COMPENSATION && !p->asking.out,
             "asks to undo nothing, or twice");
    p->asking.out = true;
}

/* ---- all ---- */

static void count_usage(struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    switch ((unsigned)rec->type) {
    case REC_PLANNING_RETRY:
    case REC_PLANNING_FAILED:
    case REC_PLAN_GENERATED:
        run_usage_add(&asking->planning, &rec->usage);
        break;
    case REC_REPLAN_FINISHED:
        run_usage_add(&asking->replanning, &rec->usage);
        break;
    case REC_RESULT_REJECTED:
        if (REC(rec, assigned)->phase == PHASE_REPLAN) {
            run_usage_add(&asking->replanning, &rec->usage);
        }
        break;
    case REC_SYNTHESIS_RETRY:
    case REC_SYNTHESIS_FINISHED:
        run_usage_add(&asking->synthesis, &rec->usage);
        break;
    default:
        break;
    }
}

void sim_check_asking(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    switch ((unsigned)rec->type) {
    case REC_PLANNING_STARTED:
    case REC_PLANNING_RETRY:
    case REC_PLANNING_FAILED:
        check_planning(s, p, rec);
        break;
    case REC_PLAN_GENERATED:
        check_planned(s, p, rec);
        break;
    case REC_SYNTHESIS_STARTED:
        check_synthesis(s, p, rec);
        break;
    case REC_TEXT_DELTA:
        check_text(s, p, rec);
        break;
    case REC_SYNTHESIS_RETRY:
        check_again(s, p, rec);
        break;
    case REC_SYNTHESIS_FINISHED:
        check_finished(s, p, rec);
        break;
    case REC_COMPENSATION_STARTED:
        check_undo(s, p, rec);
        break;
    case REC_COMPENSATION_FINISHED:
        check_undone(s, p, rec);
        break;
    case REC_PLAN_MODIFIED:
        SIM_RULE(p->asking.kind == JOB_NONE, "changed while it is made or answered");
        break;
    default:
        break;
    }
    count_usage(p, rec);
}

/* The step failed finally, and its policy fails the plan. */
static bool fails_plan(const struct sim_plan *p, uint32_t i)
{
    const struct plan_step *about = &sim_plan_now(p)->steps[i];
    const struct run_step *step = &p->shadow->steps[i];
    const enum on_failure say = about->rules->policy.on_failure;
    return step->status == STEP_FAILED && !about->superseded &&
           step->error_class != CLASS_VERIFICATION_FAILED &&
           (say == ON_FAILURE_ABORT || say == ON_FAILURE_RETRY || say == ON_FAILURE_ASK);
}

void sim_check_answered(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct asking *asking = &p->asking;
    const bool alone = p->shadow->n_steps == 0 && asking->answer != 0;
    SIM_RULE(!asking->out, "an errand goes on after the end");
    const struct rec_plan_completed *end = REC(rec, plan_completed);
    SIM_RULE(asking->answered || !wants_answer(p, end->status, end->failure),
             "ends without an answer");
    SIM_RULE(asking->undone != 0 || !wants_undo(p, end->status),
             "ends with work that is not undone");
    SIM_RULE(REC(rec, plan_completed)->result.id == asking->answer,
             "the answer is lost, or comes from nowhere");
    SIM_RULE(!asking->failed || REC(rec, plan_completed)->status != PLAN_COMPLETED || alone,
             "what failed the plan is forgotten");
    SIM_RULE(!alone || REC(rec, plan_completed)->outcome == OUTCOME_PARTIAL,
             "an answer alone is no success");
    for (uint32_t i = 0; i < p->shadow->n_steps; i++) {
        SIM_RULE(REC(rec, plan_completed)->status != PLAN_COMPLETED || !fails_plan(p, i),
                 "completed although a step fails it");
    }
    end_asking(p);
}

void sim_check_job(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    const struct record *rec = &(struct record){.step = STEP_NONE};
    if (p == NULL || p->over) {
        sim_fail(s, "an errand of a plan that is over", 0, STEP_NONE);
        return;
    }
    SIM_RULE(p->asking.kind == cmd->job && cmd->job != JOB_NONE, "asked for nothing");
    SIM_RULE(p->asking.out == (cmd->type == CMD_JOB_STOP), "asked, or told to stop, twice");
    SIM_RULE(cmd->type == CMD_JOB_STOP ||
                 cmd->attempt ==
                     (cmd->job == JOB_PLANNING ? p->asking.asked : p->asking.rectified + 1),
             "another question than was recorded");
    p->asking.out = cmd->type == CMD_JOB;
}

static bool same(const struct usage *a, const struct usage *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void sim_check_asked(struct sim *s, const struct sim_plan *p)
{
    const struct asking *asking = &p->asking;
    const struct run *run = p->shadow;
    const struct record *rec = &(struct record){.step = STEP_NONE};
    SIM_RULE(asking->out == (asking->kind != JOB_NONE), "asked, and nobody was told");
    SIM_RULE(run->undone == asking->undone, "undone or not");
    SIM_RULE(run->job == asking->kind && run->answered == asking->answered &&
                 run->rectified == asking->rectified && run->texts == asking->texts,
             "planning or synthesis");
    SIM_RULE(same(&run->planning_usage, &asking->planning) &&
                 same(&run_phases(run)->replanning, &asking->replanning) &&
                 same(&run_phases(run)->synthesis, &asking->synthesis),
             "what a phase used is not counted");
}
