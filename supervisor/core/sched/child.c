/*
 * Steps that a child plan does: maps, loops and sub-plans. The engine makes the child, and its end
 * is an event. An attempt, or another round of it, is a record before the child is asked for. A
 * child that the core no longer waits for is stopped, and its end counts for nothing.
 *
 * A child plan also does the calls that the agent of a step makes (STEP_CALLS). Its end is the end
 * of the turn: the agent gets the results in the next attempt.
 */
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/fair.h"

/* The budget is looked at again at the end of this event, where a plan may end. */
static void wait_for_budget(struct core *c, struct core_run *entry, uint32_t step, bool exceeded)
{
    core_budget_wait(c, entry, step);
    if (exceeded && !entry->woken) {
        entry->woken = true;
        c->woken[c->n_woken++] = (uint32_t)(entry - c->runs);
    }
}

static void emit_child(struct core *c, const struct core_run *entry, uint32_t step,
                       enum core_cmd_type type)
{
    struct core_cmd *cmd = core_emit(c, type);
    cmd->run = core_handle_of(c, entry);
    cmd->step = step;
    cmd->attempt = entry->run->steps[step].attempt;
    cmd->round = MUTANT(CHILD_WITHOUT_ROUND) ? 0 : entry->run->steps[step].round;
}

/* The calls of an agent begin when the plan goes on. */
static bool is_paused(const struct core_run *entry)
{
    return (entry->run->paused & 1u << PAUSE_REQUESTED) != 0 && !MUTANT(CALLS_WHILE_PAUSED);
}

void core_child_ask(struct core *c, struct core_run *entry, uint32_t step)
{
    core_link(c, entry, step, LIST_CHILD, false);
    core_set_due(c, entry, step, entry->run->steps[step].deadline);
    if (!run_step_calls(&entry->run->steps[step]) || !is_paused(entry)) {
        emit_child(c, entry, step, CMD_CHILD);
    }
}

void core_child_start(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    const enum budget_verdict budget = core_budget_check(entry, step);
    if (budget != BUDGET_FITS) {
        wait_for_budget(c, entry, step, budget == BUDGET_EXCEEDED);
        return;
    }
    core_unlink(c, entry, step);
    core_begin_without_attempt(c, entry, step);
    core_record(c, entry,
                (struct record){REC_INIT(STEP_CHILD, child, .round = state->round), .step = step,
                                .attempt = state->attempt + (state->rounded != 0 ? 0u : 1u),
                                .agent = state->agent});
    core_child_ask(c, entry, step);
}

void core_children_tell(struct core *c, struct core_run *entry, enum core_cmd_type type)
{
    const uint64_t first = core_list_of(c, entry, entry->children).head;
    for (uint64_t ref = MUTANT(CHILD_GOES_ON) ? REF_NONE : first; ref != REF_NONE;
         ref = entry->sched[(uint32_t)ref].next) {
        emit_child(c, entry, (uint32_t)ref, type);
        if (type == CMD_CHILD_RESUME && run_step_calls(&entry->run->steps[(uint32_t)ref])) {
            emit_child(c, entry, (uint32_t)ref, CMD_CHILD); /* it may not be there yet */
        }
    }
}

void core_child_over(struct core *c, struct core_run *entry, uint32_t step)
{
    const bool limit = entry->run->steps[step].limit <= c->now;
    const struct failure f = {
        .error_class = CLASS_TIMEOUT,
        .text = limit ? core_text_ms(c, "Step limit of ",
                                     entry->plan->steps[step].rules->policy.limit_ms, "ms reached")
                      : STR_LIT("Step execution timeout"),
        .retryable = !limit,
        .cancel = true};
    core_attempt_failed(c, entry, step, &f);
}

/* ---- what the engine reports ---- */

static bool is_nothing(const struct usage *u)
{
    return (u->input_tokens | u->output_tokens | u->cached_tokens | u->cost_micros) == 0;
}

/* A child that was stopped has ended: what it used was used. Once: of an attempt that was paid for
 * no more is counted. */
static void pay_stopped(struct core *c, struct core_run *entry, const struct core_event *ev,
                        enum core_reject why)
{
    const struct core_ev_child *child = CORE_EV(ev, child);
    if (entry == NULL || why == REJECT_NO_STEP || child->outcome == CHILD_PROGRESS ||
        is_nothing(&child->usage) || ev->attempt == 0) {
        return;
    }
    const struct run_step *state = &entry->run->steps[ev->step];
    const bool calls = entry->plan->steps[ev->step].type != STEP_TYPE_PLAN;
    /* The usage of the agent that made the calls is another one: it was paid for with them. */
    if (calls ? ev->attempt > state->turned
              : ev->attempt > state->attempt || run_attempt_is_paid(state, ev->attempt)) {
        return;
    }
    core_record(c, entry,
                (struct record){REC_INIT(RESULT_REJECTED, assigned, .phase = PHASE_EXECUTE),
                                .step = ev->step, .attempt = ev->attempt,
                                .agent = entry->run->steps[ev->step].agent, .usage = child->usage,
                                .text = str_from(core_reject_text(why))});
}

/* The step that waits for this child; the rejection is emitted when there is none. */
static struct core_run *awaited(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    enum core_reject why = REJECT_NONE;
    if (entry == NULL) {
        why = REJECT_UNKNOWN_RUN;
    } else if (ev->step >= entry->run->n_steps) {
        why = REJECT_NO_STEP;
    } else if (entry->sched[ev->step].list != LIST_CHILD) {
        why = REJECT_NOT_WAITING;
    } else if ((ev->attempt != entry->run->steps[ev->step].attempt ||
                CORE_EV(ev, child)->round != entry->run->steps[ev->step].round) &&
               !MUTANT(CHILD_STALE)) {
        why = REJECT_STALE_ATTEMPT;
    }
    if (why != REJECT_NONE) {
        pay_stopped(c, entry, ev, why);
        core_reject(c, ev, why);
        return NULL;
    }
    return entry;
}

static void progress(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct core_ev_child *child = CORE_EV(ev, child);
    core_record(c, entry,
                (struct record){REC_INIT(STEP_PROGRESS, progress, .n = child->n,
                                         .percent = child->percent, .data = child->data),
                                .step = ev->step, .attempt = ev->attempt,
                                .agent = entry->run->steps[ev->step].agent, .text = ev->text});
}

/* The condition asks for another round. */
static void again(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct core_ev_child *child = CORE_EV(ev, child);
    const struct loop_policy *loop = &entry->plan->steps[ev->step].rules->loop;
    const struct run_step *state = &entry->run->steps[ev->step];
    if (state->round + 1 >= loop->max && !MUTANT(LOOP_UNBOUNDED)) {
        if (loop->accept != 0) {
            core_accept(c, entry, ev->step, child->result, &child->usage, STOP_NONE);
            return;
        }
        const struct failure f = {
            .error_class = CLASS_LOOP_LIMIT,
            .text = core_text_count(c, "Not done after ", loop->max, " rounds: ", ev->text),
            .usage = child->usage};
        core_give_up(c, entry, ev->step, &f);
        return;
    }
    core_unlink(c, entry, ev->step);
    core_record(
        c, entry,
        (struct record){REC_INIT(STEP_ROUND, round, .n = state->round + 1, .result = child->result,
                                 .delay_ms = MUTANT(LOOP_AT_ONCE) ? 0 : loop->delay_ms),
                        .step = ev->step, .attempt = state->attempt, .agent = state->agent,
                        .usage = child->usage, .text = ev->text});
    if (loop->delay_ms > 0) {
        core_set_due(c, entry, ev->step, state->deadline);
    } else {
        core_continue(c, entry, ev->step);
    }
}

/* The calls are over: the agent is asked again, with their results. */
static void turn_over(struct core *c, struct core_run *entry, const struct core_event *ev)
{
    const struct core_ev_child *child = CORE_EV(ev, child);
    const struct run_step *state = &entry->run->steps[ev->step];
    core_unlink(c, entry, ev->step);
    core_record(
        c, entry,
        (struct record){REC_INIT(STEP_TURN, turn, .n = state->turns, .result = child->result),
                        .step = ev->step, .attempt = state->attempt, .agent = state->agent,
                        .usage = child->usage});
    core_continue(c, entry, ev->step);
}

void core_on_child(struct core *c, const struct core_event *ev)
{
    const struct core_ev_child *child = CORE_EV(ev, child);
    struct core_run *entry = awaited(c, ev);
    if (entry == NULL) {
        return;
    }
    const struct failure f = {.error_class = child->error_class,
                              .text = ev->text,
                              .retryable = child->outcome == CHILD_FAILED &&
                                           err_class_retryable(child->error_class),
                              .usage = child->usage};
    if (child->outcome == CHILD_PROGRESS) {
        progress(c, entry, ev);
    } else if (entry->run->cancelling) {
        core_stopped(c, entry, ev->step, STOP_ACKNOWLEDGED, &f);
    } else if (child->outcome == CHILD_COMPLETED && run_step_calls(&entry->run->steps[ev->step])) {
        turn_over(c, entry, ev);
    } else if (child->outcome == CHILD_COMPLETED) {
        core_accept(c, entry, ev->step, child->result, &child->usage, STOP_NONE);
    } else if (child->outcome == CHILD_AGAIN && entry->plan->steps[ev->step].rules->loop.max > 0) {
        again(c, entry, ev);
    } else {
        core_attempt_failed(c, entry, ev->step, &f);
    }
}
