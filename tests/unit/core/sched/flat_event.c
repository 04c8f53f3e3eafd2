#include "tests/unit/core/sched/flat_event.h"

static void fill_1(const struct flat_event *flat, struct core_event *ev)
{
    const struct core_new_plan next = {
        .plan = flat->plan, .block = flat->block, .document = flat->result};
    switch ((unsigned)core_ev_member(ev->type)) {
    case CORE_EV_submit:
        *CORE_EV(ev, submit) = (struct core_ev_submit){.plan = flat->plan, .block = flat->block};
        break;
    case CORE_EV_recover:
        *CORE_EV(ev, recover) = (struct core_ev_recover){.plan = flat->plan, .block = flat->block};
        break;
    case CORE_EV_modify:
        *CORE_EV(ev, modify) = (struct core_ev_modify){.kind = flat->modify,
                                                       .expect = flat->expect,
                                                       .steps = flat->steps,
                                                       .n_steps = flat->n_steps};
        break;
    case CORE_EV_revise:
        *CORE_EV(ev, revise) =
            (struct core_ev_revise){.kind = flat->modify, .expect = flat->expect, .next = next};
        break;
    case CORE_EV_registration:
        *CORE_EV(ev, registration) = (struct core_ev_registration){.agent = flat->agent,
                                                                   .capacity = flat->capacity,
                                                                   .pid = flat->pid,
                                                                   .spawned = flat->spawned,
                                                                   .process = flat->process};
        break;
    case CORE_EV_result:
        *CORE_EV(ev, result) = (struct core_ev_result){.outcome = flat->outcome,
                                                       .error_class = flat->error_class,
                                                       .retryable_given = flat->retryable_given,
                                                       .retryable = flat->retryable,
                                                       .passed = flat->passed,
                                                       .invalid = flat->invalid,
                                                       .agent = flat->agent,
                                                       .calls = flat->expect,
                                                       .retry_after_ms = flat->retry_after_ms,
                                                       .result = flat->result,
                                                       .usage = flat->usage,
                                                       .data = flat->data,
                                                       .next = next};
        break;
    default:
        break;
    }
}

static void fill_2(const struct flat_event *flat, struct core_event *ev)
{
    const struct core_new_plan next = {
        .plan = flat->plan, .block = flat->block, .document = flat->result};
    switch ((unsigned)core_ev_member(ev->type)) {
    case CORE_EV_lost:
        *CORE_EV(ev, lost) = (struct core_ev_lost){.sent = flat->sent};
        break;
    case CORE_EV_state:
        *CORE_EV(ev, state) =
            (struct core_ev_state){.running = flat->running, .never = flat->never};
        break;
    case CORE_EV_progress:
        *CORE_EV(ev, progress) =
            (struct core_ev_progress){.n = flat->n, .percent = flat->percent, .data = flat->data};
        break;
    case CORE_EV_decide:
        *CORE_EV(ev, decide) = (struct core_ev_decide){
            .decision = flat->decision, .result = flat->result, .next = next};
        break;
    case CORE_EV_child:
        *CORE_EV(ev, child) =
            (struct core_ev_child){.outcome = (enum child_outcome)(flat->n % CHILD_OUTCOME_COUNT),
                                   .round = flat->expect,
                                   .error_class = flat->error_class,
                                   .result = flat->result,
                                   .usage = flat->usage,
                                   .percent = flat->percent,
                                   .data = flat->data};
        break;
    case CORE_EV_condition:
        CORE_EV(ev, condition)->verdict = flat->invalid ? CONDITION_FAILED
                                          : flat->ok    ? CONDITION_TRUE
                                                        : CONDITION_FALSE;
        break;
    case CORE_EV_signal:
        *CORE_EV(ev, signal) =
            (struct core_ev_signal){.serial = (uint32_t)flat->n, .result = flat->result};
        break;
    case CORE_EV_probed:
        *CORE_EV(ev, probed) = (struct core_ev_probed){.ok = flat->ok};
        break;
    default:
        break;
    }
}

static void fill_3(const struct flat_event *flat, struct core_event *ev)
{
    const struct core_new_plan next = {
        .plan = flat->plan, .block = flat->block, .document = flat->result};
    switch ((unsigned)core_ev_member(ev->type)) {
    case CORE_EV_planned:
        *CORE_EV(ev, planned) = (struct core_ev_planned){.next = next, .usage = flat->usage};
        break;
    case CORE_EV_job_failed:
        *CORE_EV(ev, job_failed) = (struct core_ev_job_failed){.job = flat->job,
                                                               .invalid = flat->invalid,
                                                               .n = flat->n,
                                                               .result = flat->result,
                                                               .usage = flat->usage};
        break;
    case CORE_EV_job_text:
        *CORE_EV(ev, job_text) = (struct core_ev_job_text){.restarts = flat->invalid};
        break;
    case CORE_EV_synthesized:
        *CORE_EV(ev, synthesized) =
            (struct core_ev_synthesized){.result = flat->result, .usage = flat->usage};
        break;
    case CORE_EV_compensated:
        *CORE_EV(ev, compensated) = (struct core_ev_compensated){.ok = flat->ok,
                                                                 .done = (uint32_t)flat->n,
                                                                 .failed = flat->ok ? 0 : 1,
                                                                 .usage = flat->usage};
        break;
    case CORE_EV_stalled:
        CORE_EV(ev, stalled)->delay_ms = flat->retry_after_ms;
        break;
    case CORE_EV_process:
        *CORE_EV(ev, process) = (struct core_ev_process){.agent = flat->agent, .pid = flat->pid};
        break;
    default:
        break;
    }
}

struct core_event event_of_flat(const struct flat_event *flat)
{
    struct core_event ev = {.type = flat->type,
                            .step = flat->step,
                            .attempt = flat->attempt,
                            .phase = flat->phase,
                            .run = flat->run,
                            .now = flat->now,
                            .wall = flat->wall,
                            .slot = flat->slot,
                            .lane = flat->lane,
                            .epoch = flat->epoch,
                            .instance = flat->instance,
                            .text = flat->text};
    fill_1(flat, &ev);
    fill_2(flat, &ev);
    fill_3(flat, &ev);
    return ev;
}
