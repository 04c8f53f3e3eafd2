/* The outcome of an execution, and its duration. */
#include "tests/sim/sim.h"

static void failure(struct sim *s, struct core_event *ev)
{
    static const enum err_class classes[] = {CLASS_TIMEOUT,
                                             CLASS_UNKNOWN,
                                             CLASS_VALIDATION_ERROR,
                                             CLASS_RATE_LIMITED,
                                             CLASS_PERMISSION_DENIED,
                                             CLASS_RESOURCE_NOT_FOUND,
                                             CLASS_TOOL_NOT_FOUND,
                                             CLASS_AGENT_CRASHED,
                                             CLASS_VERIFICATION_FAILED,
                                             CLASS_SERVICE_UNAVAILABLE,
                                             CLASS_RESOURCE_NOT_FOUND,
                                             CLASS_AGENT_UNAVAILABLE};
    CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(ev, result)->error_class =
        classes[sim_range(s, 0, sizeof classes / sizeof classes[0] - 1)];
    CORE_EV(ev, result)->retryable_given = sim_chance(s, 300);
    CORE_EV(ev, result)->retryable = sim_chance(s, 500);
    CORE_EV(ev, result)->retry_after_ms = sim_chance(s, 100) ? sim_range(s, 1, 500) : 0;
    ev->text = STR_LIT("it did not work");
}

static void attempt(struct sim *s, struct core_event *ev)
{
    const uint32_t agent = sim_range(s, 0, s->n_agents); /* one too many: no agent */
    if (sim_fault(s, FAULT_FAILURE)) {
        failure(s, ev);
    } else if (sim_fault(s, FAULT_NEEDS_PERSON)) {
        CORE_EV(ev, result)->outcome =
            sim_chance(s, 500) ? STEP_OUTCOME_NEEDS_APPROVAL : STEP_OUTCOME_NEEDS_INPUT;
        ev->text = STR_LIT("may I?");
    } else if (sim_chance(s, 60)) {
        CORE_EV(ev, result)->outcome = STEP_OUTCOME_CALLS;
        CORE_EV(ev, result)->calls = sim_range(s, 1, 3);
        CORE_EV(ev, result)->result = (struct blob_ref){.id = SIM_RESULT_OTHER + 1, .len = 1};
    } else if (sim_fault(s, FAULT_HANDOFF)) {
        CORE_EV(ev, result)->outcome = STEP_OUTCOME_HANDOFF;
        CORE_EV(ev, result)->agent = agent == s->n_agents ? AGENT_NONE : agent;
        ev->text = STR_LIT("it knows better");
    }
}

static void question(struct sim *s, struct exec *x)
{
    struct core_event *ev = &x->answer;
    CORE_EV(ev, result)->passed = true;
    if (sim_fault(s, FAULT_CHECK_ERROR)) {
        failure(s, ev);
        CORE_EV(ev, result)->invalid = x->phase == PHASE_REPLAN && sim_chance(s, 500);
    } else if (x->phase == PHASE_REPLAN) {
        x->bad_plan = sim_fault(s, FAULT_BAD_REVISION);
    } else if (sim_fault(s, FAULT_VERDICT_NO)) {
        CORE_EV(ev, result)->passed = false;
        ev->text = sim_chance(s, 500) ? STR_LIT("not enough") : (struct str){0};
    }
}

void sim_draw_answer(struct sim *s, struct exec *x)
{
    x->answer = (struct core_event){CORE_EV_INIT(RESULT, result,
                                                 .usage = {.input_tokens = sim_range(s, 0, 9),
                                                           .output_tokens = sim_range(s, 0, 2),
                                                           .cost_micros = sim_range(s, 0, 12)})};
    if (x->phase <= PHASE_SEARCH) {
        attempt(s, &x->answer);
    } else {
        question(s, x);
    }
}

msec sim_draw_duration(struct sim *s, const struct exec *x)
{
    const struct plan *plan = sim_plan_now(&s->plans[x->plan]);
    const struct step_policy *policy = &plan->steps[x->step].rules->policy;
    const msec timeout = x->phase <= PHASE_SEARCH   ? policy->timeout_ms
                         : x->phase == PHASE_REPLAN ? plan->replan.timeout_ms
                                                    : policy->check_timeout_ms;
    if (sim_fault(s, FAULT_HANG)) {
        return s->quiet - s->now + sim_range(s, 1, 3000);
    }
    if (timeout > 0 && sim_fault(s, FAULT_LATE)) {
        return timeout + sim_range(s, 0, sim_chance(s, 700) ? 150 : 1000);
    }
    if (sim_fault(s, FAULT_SLOW)) {
        return sim_range(s, 100, 1000);
    }
    return sim_range(s, 0, 40);
}
