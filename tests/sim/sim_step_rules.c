/* Rules about one step, checked before its record is applied: `was` is the state before. */
#include "tests/sim/sim.h"

/* Why a step can never begin, from the ends of what comes before it. */
static enum step_reason never(const struct sim_plan *p, uint32_t step)
{
    const struct plan *plan = sim_plan_now(p);
    const struct plan_step *about = &plan->steps[step];
    const bool loose = plan->chain || about->after_any_end;
    const uint32_t n = run_deps(plan, step);
    uint32_t open = 0;
    uint32_t bad = 0;
    uint32_t bypassed = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct run_step *d = &p->shadow->steps[run_dep(plan, step, i)];
        open += step_is_final(d->status) ? 0 : 1;
        bad += d->status == STEP_FAILED || d->status == STEP_CANCELLED ||
               (d->status == STEP_SKIPPED && d->reason == REASON_DEPENDENCY_FAILED);
        bypassed += d->status == STEP_SKIPPED && d->reason == REASON_CONDITION;
    }
    if (about->rules->policy.run_if == RUN_IF_FAILURE) {
        return n > 0 && open == 0 && bad == 0 ? REASON_CONDITION : REASON_NONE;
    }
    if (about->rules->policy.run_if == RUN_IF_ALWAYS || loose) {
        return REASON_NONE;
    }
    return bad > 0                  ? REASON_DEPENDENCY_FAILED
           : n > 0 && bypassed == n ? REASON_CONDITION
                                    : REASON_NONE;
}

/* G10: a step begins only after its dependencies are settled in its favour, and its condition. */
static void check_dependencies(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    for (uint32_t i = 0; i < run_deps(plan, rec->step); i++) {
        const uint32_t dep = run_dep(plan, rec->step, i);
        SIM_RULE(p->told[dep].completed, "started before a dependency was over");
    }
    SIM_RULE(never(p, rec->step) == REASON_NONE, "started although it never may");
    SIM_RULE(plan->steps[rec->step].rules->when.ptr == NULL ||
                 p->shadow->steps[rec->step].judged != 0,
             "started before the verdict about its condition");
}

static bool is_verdict(const struct sim *s, const struct record *rec,
                       enum condition_verdict verdict)
{
    const struct core_event *ev = &s->turn->ev;
    return ev->type == CORE_CONDITION && ev->step == rec->step &&
           CORE_EV(ev, condition)->verdict == verdict;
}

/* Skipped because of what comes before it, or by its condition. */
static void check_skipped(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const enum step_reason reason = REC(rec, step_completed)->reason;
    SIM_RULE(reason != REASON_DEPENDENCY_FAILED || never(p, rec->step) == reason,
             "skipped although no dependency failed");
    SIM_RULE(reason != REASON_CONDITION || never(p, rec->step) == reason ||
                 is_verdict(s, rec, CONDITION_FALSE),
             "skipped by no condition");
}

static void check_condition(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    SIM_RULE(is_verdict(s, rec, REC(rec, condition)->failed ? CONDITION_FAILED : CONDITION_TRUE),
             "a verdict that nobody gave");
    SIM_RULE(p->shadow->steps[rec->step].judged == 0, "a second verdict");
    SIM_RULE(p->shadow->paused == 0 || p->shadow->paused == 1u << PAUSE_REVIEW,
             "a verdict while the plan is on hold");
}

/* The first attempt comes after the gate and the person. */
static void check_first_attempt(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    const struct plan_step *about = &plan->steps[rec->step];
    const struct told *told = &p->told[rec->step];
    SIM_RULE(about->type != STEP_TYPE_REVIEW && about->type != STEP_TYPE_WAIT,
             "an attempt of a review, or of a wait");
    SIM_RULE((about->type == STEP_TYPE_PLAN) == (rec->type == REC_STEP_CHILD),
             "a child plan for an agent's step, or an agent for one of a child plan");
    SIM_RULE(about->rules->gate_with.len == 0 || run_deps(plan, rec->step) == 0 || told->gated,
             "an attempt before its gate let it pass");
    SIM_RULE(!about->rules->policy.requires_approval || told->approved,
             "an attempt before a person approved it");
    SIM_RULE(p->shadow->paused == 0 || p->shadow->paused == 1u << PAUSE_REVIEW,
             "an attempt while the plan is paused");
    SIM_RULE(p->shadow->replanning == 0, "an attempt while the plan is being replanned");
}

/* A child plan ended a step, or a round of it: the current one. */
static void check_child(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct loop_policy *loop = &sim_plan_now(p)->steps[rec->step].rules->loop;
    const struct core_event *ev = &s->turn->ev;
    const bool is = ev->type == CORE_CHILD && ev->step == rec->step &&
                    ev->attempt == was->attempt && CORE_EV(ev, child)->round == was->round;
    const bool again = is && CORE_EV(ev, child)->outcome == CHILD_AGAIN;
    SIM_RULE(is, "the end of another child plan");
    if (rec->type == REC_STEP_ROUND) {
        SIM_RULE(again && REC(rec, round)->n < loop->max, "a round too many");
        SIM_RULE(REC(rec, round)->delay_ms == loop->delay_ms, "another pause than the loop's");
    } else {
        SIM_RULE(CORE_EV(ev, child)->outcome == CHILD_COMPLETED ||
                     (again && loop->accept != 0 && was->round + 1 == loop->max),
                 "completed before the loop's condition held");
    }
}

/* A turn begins with an answer of its agent, and ends with the end of its child plan. */
static void check_turn(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct core_event *ev = &s->turn->ev;
    const bool its = ev->step == rec->step && ev->attempt == was->attempt;
    if (rec->type == REC_STEP_CALLS) {
        SIM_RULE(its && ev->type == CORE_RESULT &&
                     CORE_EV(ev, result)->outcome == STEP_OUTCOME_CALLS,
                 "calls that nobody makes");
        SIM_RULE(was->turns < LIMIT_TURNS && REC(rec, turn)->n == was->turns + 1 &&
                     was->turned != was->attempt,
                 "a turn too many");
        SIM_RULE(!p->shadow->cancelling, "calls of a plan that is cancelled");
    } else {
        SIM_RULE(its && ev->type == CORE_CHILD && was->turned == was->attempt &&
                     CORE_EV(ev, child)->outcome == CHILD_COMPLETED,
                 "the end of no turn");
    }
}

static void check_child_asked(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct loop_policy *loop = &sim_plan_now(p)->steps[rec->step].rules->loop;
    SIM_RULE(REC(rec, child)->round == 0 || REC(rec, child)->round < loop->max,
             "a round beyond the last");
    SIM_RULE(rec->attempt == was->attempt + (was->rounded != 0 ? 0u : 1u), "another attempt");
    SIM_RULE(was->deadline <= s->turn->ev.now || was->status != STEP_BACKOFF,
             "a round before the pause is over");
}

/* The sender of a result had that attempt. A result of an earlier attempt comes late, over its
 * lane. The recorded result is the one that came. */
static void check_result(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct core_event *ev = &s->turn->ev;
    if (sim_plan_now(p)->steps[rec->step].type == STEP_TYPE_PLAN) {
        check_child(s, p, rec);
        return;
    }
    SIM_RULE(ev->type == CORE_RESULT && ev->step == rec->step && ev->phase <= PHASE_SEARCH &&
                 CORE_EV(ev, result)->outcome == STEP_OUTCOME_COMPLETED,
             "completed by no result");
    SIM_RULE(ev->attempt == was->attempt || (ev->attempt < was->attempt && ev->lane != LANE_NONE),
             "completed by a result of another attempt");
    SIM_RULE(sim_was_sent(s, p, rec->step, PHASE_SEARCH, ev->attempt, s->turn->sender),
             "completed by an instance that did not have it");
    const uint64_t result = CORE_EV(ev, result)->result.id;
    SIM_RULE(flat_record(rec).result.id == result, "another result than the one that came");
    if (result < SIM_RESULT_OTHER && result > 0) {
        const struct exec *x = &s->execs[result - 1];
        SIM_RULE(&s->plans[x->plan] == p && x->step == rec->step && x->attempt == ev->attempt,
                 "the result of something else");
    }
    sometimes->late +=
        ev->attempt < was->attempt || was->status == STEP_BACKOFF || was->status == STEP_WAITING
            ? 1
            : 0;
}

/* G4: a result counts once, for the current attempt, and when it is to be verified then after that.
 */
static void check_completed(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct plan_step *about = &sim_plan_now(p)->steps[rec->step];
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct core_event *ev = &s->turn->ev;
    if (REC(rec, step_completed)->reason == REASON_REUSED) {
        SIM_RULE(ev->type == CORE_SUBMIT && !p->told[rec->step].started, "reused while it runs");
        return;
    }
    SIM_RULE(p->told[rec->step].started, "completed before it started");
    if (was->status == STEP_SLEEPING) {
        sim_check_wait(s, p, rec);
    } else if (was->status == STEP_CHECKING) {
        const bool passed =
            ev->type == CORE_RESULT && CORE_EV(ev, result)->passed && ev->phase == PHASE_VERIFY &&
            sim_was_sent(s, p, rec->step, PHASE_VERIFY, ev->attempt, s->turn->sender);
        SIM_RULE(was->phase == PHASE_VERIFY, "completed while something else was asked");
        SIM_RULE(REC(rec, step_completed)->result.id == was->result.id,
                 "another result than the verified one");
        SIM_RULE(passed || about->rules->policy.verify_open, "completed without being verified");
    } else if (was->status == STEP_WAITING && was->review == REVIEW_STEP) {
        SIM_RULE(ev->type == CORE_DECIDE && CORE_EV(ev, decide)->decision == DECISION_APPROVE &&
                     ev->step == rec->step,
                 "a review completed by nobody");
    } else {
        check_result(s, p, rec);
        SIM_RULE(about->rules->verify_with.len == 0 || p->shadow->cancelling,
                 "completed although it was to be verified");
    }
}

static void check_handoff(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    struct told *told = &p->told[rec->step];
    if (REC(rec, handoff)->kind == HANDOFF_BACK) {
        SIM_RULE(plan->handback && told->completed && told->hops > 0, "a handback for nothing");
        return;
    }
    SIM_RULE(!told->completed, "a handoff of a step that has ended");
    SIM_RULE(plan_agent_find(plan, rec->agent) != UINT32_MAX, "given to an agent not granted");
    if (REC(rec, handoff)->kind == HANDOFF_AGENT) {
        told->hops++;
        told->allowed++; /* the agent allowed another agent to run it */
        SIM_RULE(told->hops <= plan->max_handoffs, "handed over too often");
        SIM_RULE((told->visited & UINT64_C(1) << rec->agent) == 0, "handed over in a circle");
    }
    told->visited |= UINT64_C(1) << rec->agent;
}

static void check_retry(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct step_policy *policy = &sim_plan_now(p)->steps[rec->step].rules->policy;
    const struct core_event *ev = &s->turn->ev;
    const struct run_step *was = &p->shadow->steps[rec->step];
    struct told *told = &p->told[rec->step];
    told->retries += rec->attempt > told->retried ? 1 : 0; /* a late result may fail it again */
    told->retried = rec->attempt;
    SIM_RULE(told->retries <= policy->max_retries + told->granted, "retried too often");
    SIM_RULE((policy->no_retry & 1u << REC(rec, retry)->error_class) == 0,
             "a class that is never retried");
    SIM_RULE(ev->type != CORE_RESULT || ev->step != rec->step ||
                 CORE_EV(ev, result)->outcome != STEP_OUTCOME_FAILED ||
                 REC(rec, retry)->delay_ms >= CORE_EV(ev, result)->retry_after_ms ||
                 was->status == STEP_CHECKING,
             "the pause that the agent asked for is not kept");
    SIM_RULE(!REC(rec, retry)->asked || REC(rec, retry)->delay_ms <= sim_plan_now(p)->max_pause_ms,
             "a longer pause than the plan grants");
    if (ev->type == CORE_RESULT && CORE_EV(ev, result)->retryable_given &&
        CORE_EV(ev, result)->retryable) {
        told->allowed++; /* the agent itself allowed another run */
    }
}

/* The answer to a question comes from the agent that was asked. An unavailable agent, a timeout and
 * a lost answer end the question, too. */
static void check_answered(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct core_event *ev = &s->turn->ev;
    if (ev->type != CORE_RESULT || ev->phase <= PHASE_SEARCH || was->status != STEP_CHECKING ||
        ev->step != rec->step || sim_plan_of(s, ev->run) != p) {
        return;
    }
    SIM_RULE(ev->phase == was->phase && ev->attempt == was->ask && ev->lane != LANE_NONE,
             "the answer to another question");
    SIM_RULE(sim_was_sent(s, p, rec->step, was->phase, was->ask, s->turn->sender),
             "answered by an instance that was not asked");
}

static void check_fallback(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct told *told = &p->told[rec->step];
    const uint64_t bit = rec->agent < 64 ? UINT64_C(1) << rec->agent : 0;
    const uint32_t once = 1u << REC(rec, fallback)->action;
    told->granted++;
    SIM_RULE(REC(rec, fallback)->action == FALLBACK_AGENT || (told->fell & once) == 0,
             "a fallback used twice");
    told->fell |= once;
    SIM_RULE(plan_agent_find(sim_plan_now(p), rec->agent) != UINT32_MAX,
             "a fallback to an agent not granted");
    SIM_RULE(REC(rec, fallback)->action != FALLBACK_AGENT || (told->visited & bit) == 0,
             "a fallback to an agent that has had it");
    told->visited |= bit;
}

static void check_started(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct told *told = &p->told[rec->step];
    SIM_RULE(!told->started, "a step started twice");
    SIM_RULE(rec->attempt == 1, "started with another attempt than the first");
    SIM_RULE(!sim_plan_now(p)->steps[rec->step].superseded, "a superseded step started");
    told->started = true;
    check_dependencies(s, p, rec);
}

/* Records about a step that has not begun, or has ended. */
static bool may_speak(const struct told *told, const struct record *rec)
{
    const bool open = told->started && !told->completed;
    if (rec->type == REC_RESULT_REJECTED) {
        return true;
    }
    if (rec->type == REC_HANDOFF && REC(rec, handoff)->kind == HANDOFF_BACK) {
        return told->completed;
    }
    if (rec->type == REC_REPLAN_FINISHED) { /* the superseded step has ended before */
        return told->started && told->completed == REC(rec, revision)->ok;
    }
    if (rec->type == REC_STEP_CONDITION || rec->type == REC_STEP_DOUBTED) {
        return !told->started && !told->completed;
    }
    if (rec->type == REC_STEP_STARTED || rec->type == REC_STEP_COMPLETED) {
        return !told->completed;
    }
    return open;
}

static void take_step(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct told *told = &p->told[rec->step];
    const struct run_step *was = &p->shadow->steps[rec->step];
    const bool approves =
        rec->type == REC_REVIEW_DECIDED && REC(rec, decided)->decision == DECISION_APPROVE;
    const bool open = !sim_plan_now(p)->steps[rec->step].rules->policy.gate_closed;
    if (rec->type == REC_STEP_STARTED) {
        check_started(s, p, rec);
    } else if (rec->type == REC_STEP_COMPLETED) {
        if (REC(rec, step_completed)->status == STEP_COMPLETED) {
            check_completed(s, p, rec);
        } else {
            check_skipped(s, p, rec);
        }
        told->completed = true;
    } else if (rec->type == REC_STEP_CONDITION) {
        check_condition(s, p, rec);
    } else if (rec->type == REC_STEP_ROUND) {
        check_child(s, p, rec);
    } else if (rec->type == REC_STEP_CALLS || rec->type == REC_STEP_TURN) {
        check_turn(s, p, rec);
        told->allowed += rec->type == REC_STEP_CALLS ? 1 : 0; /* it wants to be asked again */
    } else if (rec->type == REC_STEP_CHILD) {
        check_child_asked(s, p, rec);
        if (!s->failed && rec->attempt == 1 && was->attempt == 0) {
            check_first_attempt(s, p, rec);
        }
    } else if (rec->type == REC_STEP_CHECKING) {
        check_result(s, p, rec);
    } else if (rec->type == REC_STEP_RETRY) {
        check_retry(s, p, rec);
    } else if (rec->type == REC_HANDOFF) {
        check_handoff(s, p, rec);
    }
    told->gated =
        told->gated || rec->type == REC_GATE_PASSED || (rec->type == REC_GATE_ERROR && open);
    told->approved =
        told->approved ||
        (approves && (was->review == REVIEW_BEFORE || was->review == REVIEW_UNKNOWN_OUTCOME));
    told->allowed +=
        approves && (was->attempt > 0 || was->review == REVIEW_UNKNOWN_OUTCOME) ? 1 : 0;
    told->executions += rec->type == REC_STEP_DOUBTED ? 1 : 0; /* for the plan before */
    told->granted += approves ? 1 : 0;
    if (rec->type == REC_REVIEW_DECIDED && s->turn->ev.type == CORE_DECIDE) {
        SIM_RULE(s->turn->ev.step == rec->step && s->turn->ev.attempt == was->review_serial,
                 "a decision about another review");
    }
    if (rec->type == REC_FALLBACK_USED) {
        check_fallback(s, p, rec);
    }
    if (!s->failed && rec->type != REC_RESULT_REJECTED) {
        check_answered(s, p, rec);
    }
    const bool begins = rec->type == REC_STEP_STARTED && !uuid_is_nil(REC(rec, assigned)->instance);
    if (!s->failed && (begins || rec->type == REC_STEP_ASSIGNED)) {
        told->visited |= UINT64_C(1) << rec->agent;
        if (begins || (rec->attempt == 1 && was->attempt == 0)) {
            check_first_attempt(s, p, rec);
        }
    }
}

void sim_check_step(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const bool reused =
        rec->type == REC_STEP_COMPLETED && REC(rec, step_completed)->reason == REASON_REUSED;
    if (rec->type == REC_PLAN_MODIFIED) {
        return; /* the step is only its target */
    }
    SIM_RULE(p->started || reused || rec->type == REC_STEP_DOUBTED, "a step before plan_started");
    SIM_RULE(p->asking.kind == JOB_NONE || rec->type == REC_RESULT_REJECTED,
             "a step while the answer is being written");
    SIM_RULE(may_speak(&p->told[rec->step], rec), "a record about a step that has not begun or "
                                                  "has ended");
    take_step(s, p, rec);
}

/* G5: every execution is a journaled attempt, none runs twice, and unsafe steps run again only with
 * a permission. Questions only read: they may be asked again. */
void sim_check_execution(struct sim *s, const struct exec *x)
{
    const struct sim_plan *p = &s->plans[x->plan];
    struct told *told = &p->told[x->step];
    const struct record *rec = &(struct record){.step = x->step};
    const uint64_t bit = UINT64_C(1) << x->attempt % 64;
    sometimes->executions++;
    if (x->phase > PHASE_SEARCH) {
        SIM_RULE(x->attempt > 0 && x->attempt <= p->shadow->steps[x->step].ask,
                 "a question that is not journaled");
        return;
    }
    SIM_RULE(x->attempt > 0 && x->attempt < 128 && x->attempt <= p->shadow->steps[x->step].attempt,
             "an execution that is not journaled");
    SIM_RULE((told->executed[x->attempt / 64] & bit) == 0, "one attempt was executed twice");
    const bool unsafe = sim_plan_now(p)->steps[x->step].rules->policy.effects == EFFECTS_UNSAFE;
    SIM_RULE(!unsafe || told->executions <= told->allowed,
             "an unsafe step was executed again without a decision");
    told->executed[x->attempt / 64] |= bit;
    told->executions++;
}
