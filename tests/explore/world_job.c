/* Planning and synthesis: what may be said about a plan's jobs, and the rules of their records,
 * by a second opinion. */
#include "protocol/base/assert.h"
#include "tests/explore/world.h"

static bool has_jobs(const struct world *w)
{
    return w->plans[0]->planning.pending || w->plans[0]->synthesis.agent_id.len > 0 ||
           world_may_undo(w);
}

/* ---- what may be said ---- */

struct sayings {
    struct world_event *at;
    uint32_t n;
};

static void add(struct sayings *s, enum world_kind kind, uint32_t step, uint32_t variant)
{
    s->at[s->n++] =
        (struct world_event){.kind = kind, .step = (uint8_t)step, .variant = (uint8_t)variant};
}

static void about_answer(const struct world *w, struct sayings *s)
{
    const struct plan *plan = world_plan(w);
    uint32_t failed = 0;
    add(s, WORLD_ANSWERED, 0, 0);
    add(s, WORLD_JOB_FAILED, 0, 0);
    add(s, WORLD_TEXT, 0, 0);
    add(s, WORLD_TEXT, 0, 1);
    for (uint32_t i = 0; i < plan->n_steps && plan->n_steps < WORLD_STEPS; i++) {
        const bool again =
            w->shadow->steps[i].status != STEP_COMPLETED && !plan->steps[i].superseded;
        if (again) {
            add(s, WORLD_RECTIFY, i, CHANGE_KEEP);
        }
        if (again && failed++ == 0) {
            add(s, WORLD_RECTIFY, i, CHANGE_STRANGER);
        }
    }
}

static void late(const struct world *w, struct sayings *s)
{
    const enum job_kind kind = w->at.job.kind;
    for (uint32_t i = 0; i < LATE_COUNT && has_jobs(w); i++) {
        const bool its = i == LATE_PLAN     ? kind == JOB_PLANNING
                         : i == LATE_UNDONE ? kind == JOB_COMPENSATION || !world_may_undo(w)
                                            : i != LATE_FAILURE && kind == JOB_SYNTHESIS;
        if (!its) {
            add(s, WORLD_JOB_LATE, 0, i);
        }
    }
}

uint32_t world_job_events(const struct world *w, struct world_event *ret)
{
    struct sayings s = {.at = ret};
    if (w->at.job.kind == JOB_PLANNING) {
        add(&s, WORLD_PLANNED, 0, 1);
        add(&s, WORLD_PLANNED, 0, 0);
        add(&s, WORLD_JOB_FAILED, 0, 0);
        add(&s, WORLD_JOB_FAILED, 0, 1);
    } else if (w->at.job.kind == JOB_SYNTHESIS) {
        about_answer(w, &s);
    }
    if (w->at.job.kind == JOB_COMPENSATION) {
        add(&s, WORLD_COMPENSATED, 0, 0);
        add(&s, WORLD_COMPENSATED, 0, 1);
    }
    if ((w->at.paused & 1u << PAUSE_PLANNING) != 0) {
        add(&s, WORLD_BRING, 0, DECISION_APPROVE);
        add(&s, WORLD_BRING, 0, DECISION_REJECT);
    }
    late(w, &s);
    return s.n;
}

/* ---- the shell's report ---- */

static void say_late(const struct world *w, struct flat_event *out, enum world_late what)
{
    static const enum core_event_type types[LATE_COUNT] = {
        [LATE_PLAN] = CORE_PLANNED,    [LATE_FAILURE] = CORE_JOB_FAILED,
        [LATE_TEXT] = CORE_JOB_TEXT,   [LATE_ANSWER] = CORE_SYNTHESIZED,
        [LATE_RECTIFY] = CORE_RECTIFY, [LATE_UNDONE] = CORE_COMPENSATED,
    };
    out->type = types[what];
    out->job = JOB_PLANNING;
    out->attempt = w->at.job.asked + 1u; /* of another question */
    out->plan = w->scenario->made != NULL ? w->plans[1] : w->plans[0];
    out->block = w->blocks[1 - w->at.block];
    out->result = (struct blob_ref){.id = 900, .len = 9};
}

void world_job_translate(struct world *w, const struct world_event *ev, struct flat_event *out)
{
    const struct asking *asking = &w->at.job;
    if (ev->kind < WORLD_PLANNED || ev->kind > WORLD_COMPENSATED) {
        return;
    }
    out->step = STEP_NONE;
    out->job = asking->kind;
    out->attempt = asking->kind == JOB_PLANNING ? asking->asked : asking->rectified + 1u;
    out->usage.input_tokens = ev->kind == WORLD_BRING ? 0 : w->scenario->spends;
    out->text = STR_LIT("it did not work");
    switch ((unsigned)ev->kind) {
    case WORLD_PLANNED:
        out->type = CORE_PLANNED;
        world_bring(w, out, ev->variant);
        w->coming = ev->variant == 1 ? w->coming : NULL; /* a plan without steps */
        break;
    case WORLD_BRING:
        out->type = CORE_DECIDE;
        out->attempt = w->shadow->plan_review;
        world_bring(w, out, 1);
        break;
    case WORLD_JOB_FAILED:
        out->type = CORE_JOB_FAILED;
        out->invalid = ev->variant == 1;
        out->n = ev->variant;
        break;
    case WORLD_TEXT:
        out->type = CORE_JOB_TEXT;
        out->invalid = ev->variant == 1;
        break;
    case WORLD_COMPENSATED:
        out->type = CORE_COMPENSATED;
        out->ok = ev->variant == 0;
        break;
    case WORLD_ANSWERED:
        out->type = CORE_SYNTHESIZED;
        out->result = (struct blob_ref){.id = 800, .len = 8};
        break;
    case WORLD_RECTIFY: {
        const uint32_t plan = world_change(w, ev->variant, ev->step);
        ASSERT(plan != UINT32_MAX);
        out->type = CORE_RECTIFY;
        world_bring(w, out, plan);
        break;
    }
    default:
        say_late(w, out, ev->variant);
        break;
    }
}

bool world_job_said(const struct world *w)
{
    return w->doing.kind == WORLD_PLANNED || w->doing.kind == WORLD_JOB_FAILED ||
           w->doing.kind == WORLD_ANSWERED || w->doing.kind == WORLD_RECTIFY ||
           w->doing.kind == WORLD_COMPENSATED;
}

/* ---- the rules of planning ---- */

static void end_asking(struct world *w)
{
    w->at.job.kind = JOB_NONE;
    w->at.job.out = false;
}

static bool has_budget(const struct world *w, uint64_t more)
{
    const uint64_t budget = world_plan(w)->budget_tokens;
    return budget == 0 || w->at.spent + more < budget;
}

bool world_take_planned(struct world *w, const struct record *rec, const char **ret_why)
{
    const bool planner =
        w->doing.kind == WORLD_PLANNED && w->doing.variant == 1 && w->at.job.kind == JOB_PLANNING;
    const bool person = w->doing.kind == WORLD_BRING && w->at.job.may_plan;
    RULE(world_plan(w)->planning.pending == record_revises(rec), "generated without its steps");
    RULE(!record_revises(rec) || planner || person, "a plan out of nothing");
    RULE(w->at.paused == 0 && !w->at.begun, "a plan for one that has begun");
    w->at.job.may_plan = false;
    end_asking(w);
    return true;
}

static bool takes_repair(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    const struct planning_policy *policy = &world_plan(w)->planning;
    const bool invalid = w->doing.variant == 1;
    const bool may =
        invalid && asking->asked <= policy->repairs && has_budget(w, rec->usage.input_tokens);
    RULE(w->doing.kind == WORLD_JOB_FAILED && asking->kind == JOB_PLANNING,
         "planning failed by itself");
    RULE(rec->attempt == asking->asked, "another answer came to nothing");
    RULE(may == (rec->type == REC_PLANNING_RETRY), "asked again too often, or not often enough");
    end_asking(w);
    if (rec->type == REC_PLANNING_RETRY) {
        asking->kind = JOB_PLANNING;
        asking->asked++;
        return true;
    }
    RULE(REC(rec, planning_failed)->failure ==
             (invalid ? PLAN_FAILURE_INVALID_PLAN : PLAN_FAILURE_PLANNING),
         "failed for another reason");
    return true;
}

bool world_take_planning(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    if (rec->type != REC_PLANNING_STARTED) {
        return takes_repair(w, rec, ret_why);
    }
    RULE(asking->kind == JOB_NONE && asking->may_plan && !w->at.generated && !w->at.begun,
         "planned out of turn");
    RULE(w->at.paused == 0 && !w->at.cancelling, "planned while it is on hold");
    RULE(has_budget(w, 0), "planned with nothing left");
    asking->kind = JOB_PLANNING;
    asking->asked = 1;
    asking->may_plan = false;
    return true;
}

/* ---- the rules of the answer ---- */

static bool wants_answer(const struct world *w, enum plan_failure failure)
{
    return world_plan(w)->synthesis.agent_id.len > 0 && w->at.begun && !w->at.cancelling &&
           failure != PLAN_FAILURE_TIMEOUT;
}

bool world_take_synthesis_started(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    RULE(asking->kind == JOB_NONE && !asking->answered, "two answers at once");
    RULE(wants_answer(w, REC(rec, synthesis_started)->failure) && has_budget(w, 0),
         "an answer that nobody wants");
    RULE((w->at.paused & 1u << PAUSE_REVIEW) == 0, "asks although it says that it waits");
    for (uint32_t i = 0; i < world_plan(w)->n_steps; i++) {
        struct told *told = &w->at.told[i];
        RULE(told->started == 0 || told->completed == 1, "asks before its steps are over");
        told->completed = 1; /* what has not begun never will */
        if (w->shadow->steps[i].status == STEP_FAILED) {
            asking->pardoned |= (uint8_t)(1u << i);
        }
    }
    RULE(REC(rec, synthesis_started)->status != PLAN_COMPLETED || !world_is_failed(w),
         "completed although a step fails it");
    RULE(asking->status != PLAN_FAILED || REC(rec, synthesis_started)->status == PLAN_FAILED,
         "what failed the plan is forgotten");
    asking->kind = JOB_SYNTHESIS;
    w->at.paused &= (uint8_t) ~(1u << PAUSE_SIGNOFF);
    asking->status = (uint8_t)REC(rec, synthesis_started)->status;
    asking->outcome = (uint8_t)REC(rec, synthesis_started)->outcome;
    asking->failure = (uint8_t)REC(rec, synthesis_started)->failure;
    asking->step = rec->step;
    return world_ended_rightly(w, rec, ret_why);
}

bool world_take_text(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    RULE(w->doing.kind == WORLD_TEXT && asking->kind == JOB_SYNTHESIS, "a text by itself");
    RULE(REC(rec, text_delta)->n == (w->doing.variant == 1 ? 0 : asking->texts),
         "texts are not numbered");
    asking->texts = (uint8_t)(REC(rec, text_delta)->n + 1);
    return true;
}

bool world_take_synthesis_ended(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    const struct plan *plan = world_plan(w);
    const bool late =
        plan->timeout_ms > 0 && w->at.now >= w->at.started_at + plan->timeout_ms && !asking->out;
    if (rec->type == REC_SYNTHESIS_RETRY) {
        RULE(w->doing.kind == WORLD_RECTIFY && asking->kind == JOB_SYNTHESIS,
             "tried again by itself");
        RULE(w->doing.variant != CHANGE_STRANGER, "tried again with a stranger");
        RULE(asking->rectified++ < plan->synthesis.max_retries, "tried again too often");
        if (asking->step == STEP_NONE || w->coming->steps[asking->step].superseded) {
            asking->status = asking->outcome = asking->failure = 0;
            asking->step = STEP_NONE;
        }
        asking->texts = 0;
        end_asking(w);
        return true;
    }
    RULE(!asking->answered, "answered twice");
    RULE(REC(rec, synthesis_finished)->ok == (w->doing.kind == WORLD_ANSWERED),
         "an answer by nobody");
    RULE(asking->kind != JOB_SYNTHESIS || REC(rec, synthesis_finished)->ok || late ||
             w->doing.kind == WORLD_JOB_FAILED,
         "given up by itself");
    RULE(asking->kind != JOB_NONE || (!REC(rec, synthesis_finished)->ok && !has_budget(w, 0)),
         "given up unasked");
    asking->answered = true;
    asking->ok = REC(rec, synthesis_finished)->ok;
    end_asking(w);
    return true;
}

bool world_answered_rightly(const struct world *w, const struct record *rec, const char **ret_why)
{
    const struct asking *asking = &w->at.job;
    const bool alone = world_plan(w)->n_steps == 0 && asking->ok;
    RULE(!asking->out, "an errand goes on after the end");
    RULE(asking->answered || !wants_answer(w, REC(rec, plan_completed)->failure),
         "ends without an answer");
    RULE((REC(rec, plan_completed)->result.id != 0) == asking->ok,
         "the answer is lost, or comes from nowhere");
    RULE(!alone || (REC(rec, plan_completed)->status == PLAN_COMPLETED &&
                    REC(rec, plan_completed)->outcome == OUTCOME_PARTIAL),
         "an answer alone is no success and no failure");
    RULE(REC(rec, plan_completed)->failure == PLAN_FAILURE_NONE ||
             REC(rec, plan_completed)->failure == PLAN_FAILURE_NOTHING_COMPLETED ||
             rec->text.len > 0,
         "fails without a sentence");
    RULE(asking->undone != 0 || !world_wants_undo(w, REC(rec, plan_completed)->status),
         "ends with work that is not undone");
    if (!alone && (asking->answered || asking->undone != 0) && asking->status != 0) {
        RULE(REC(rec, plan_completed)->status == asking->status &&
                 REC(rec, plan_completed)->outcome == asking->outcome &&
                 REC(rec, plan_completed)->failure == asking->failure && rec->step == asking->step,
             "ends otherwise than it was to");
        return true;
    }
    RULE(asking->status != PLAN_FAILED || REC(rec, plan_completed)->status != PLAN_COMPLETED ||
             alone,
         "what failed the plan is forgotten");
    RULE(REC(rec, plan_completed)->status != PLAN_COMPLETED || !world_is_failed(w),
         "completed although a step fails it");
    return world_ended_rightly(w, rec, ret_why);
}

/* ---- commands, and what must hold ---- */

bool world_take_job(struct world *w, const struct core_cmd *cmd, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    const struct plan *plan = world_plan(w);
    RULE(cmd->job == asking->kind && asking->kind != JOB_NONE, "asked for nothing");
    if (cmd->type == CMD_JOB) {
        RULE(!asking->out, "asked twice");
        RULE(cmd->attempt ==
                 (asking->kind == JOB_PLANNING ? asking->asked : asking->rectified + 1u),
             "another question than was recorded");
        asking->out = true;
        return true;
    }
    RULE(asking->out, "told to stop twice");
    RULE(w->at.cancelling ||
             (plan->timeout_ms > 0 && w->at.now >= w->at.started_at + plan->timeout_ms),
         "told to stop without need");
    asking->out = false;
    return true;
}

bool world_job_holds(const struct world *w, const char **ret_why)
{
    const struct asking *asking = &w->at.job;
    const struct run *run = w->shadow;
    const struct usage *parts[] = {&run->planning_usage, &run_phases(run)->synthesis,
                                   &run_phases(run)->replanning};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        sum += parts[i]->input_tokens;
    }
    RULE(asking->out == (asking->kind != JOB_NONE), "asked, and not under way");
    RULE(run->job == asking->kind && run->answered == asking->answered &&
             run->rectified == asking->rectified && run->texts == asking->texts,
         "planning or synthesis");
    RULE(run->job != JOB_PLANNING || run->asked == asking->asked, "how often it was asked");
    RULE(sum <= run->usage.input_tokens, "phases used more than the plan");
    RULE(run->undone == asking->undone, "undone or not");
    RULE(asking->kind == JOB_NONE || asking->kind == JOB_COMPENSATION || !w->at.cancelling,
         "asks although it is called off");
    return true;
}
