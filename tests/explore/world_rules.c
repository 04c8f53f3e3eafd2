/* The rules that every path must keep: of what goes out, and of every state between two events. */
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"

/* ---- requests ---- */

static bool may_go_out(const struct world *w, const struct core_cmd *cmd, const char **ret_why)
{
    const struct situation *at = &w->at;
    const uint32_t told = 1u << PAUSE_REQUESTED | 1u << PAUSE_SIGNOFF;
    const bool replan = cmd->phase == PHASE_REPLAN && at->replanning == cmd->step + 1;
    RULE(!at->over, "dispatched after the plan's end");
    RULE(cmd->step < w->shadow->n_steps && at->told[cmd->step].completed == 0,
         "dispatched after the step ended");
    RULE((at->paused & told) == 0, "dispatched while the plan is paused");
    RULE(!world_plan(w)->signoff || at->signed_off, "dispatched without a sign-off of the plan");
    RULE(at->job.kind == JOB_NONE, "dispatched while it is made or answered");
    RULE(!at->cancelling, "dispatched while the plan is cancelled");
    const uint64_t budget = world_plan(w)->budget_tokens;
    RULE(budget == 0 || at->spent < budget, "dispatched with nothing left");
    RULE(at->replanning == 0 || replan, "dispatched while the plan is replanned");
    RULE(!replan || at->now >= at->replan_at, "a replan was asked for before the pause was over");
    return true;
}

/* What an attempt may cost must fit beside what is spent and what others may cost. */
static bool fits_budget(const struct world *w, uint32_t step, const char **ret_why)
{
    const struct plan *plan = world_plan(w);
    uint64_t needs = w->at.spent;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct told *told = &w->at.told[i];
        const bool counts = i == step || (told->out && told->executions > 0);
        needs += counts ? plan->steps[i].rules->policy.estimate_tokens : 0;
    }
    RULE(plan->budget_tokens == 0 || needs <= plan->budget_tokens, "the budget is overspent");
    return true;
}

static bool attempt_goes_out(struct world *w, const struct core_cmd *cmd, uint32_t nth,
                             const char **ret_why)
{
    struct told *told = &w->at.told[cmd->step];
    const struct plan_step *about = &world_plan(w)->steps[cmd->step];
    RULE(nth > 0 && w->out.at[nth - 1].type == CMD_RECORD &&
             w->out.at[nth - 1].rec.step == cmd->step,
         "dispatched without a record before it");
    RULE(told->started == 1 && cmd->attempt == told->attempts, "another attempt than was recorded");
    RULE(about->rules->policy.effects != EFFECTS_UNSAFE || told->executions <= told->allowed,
         "an unsafe step runs again without a decision");
    RULE(cmd->attempt > 1 || told->handed || told->from == told->agent || w->at.plan != 0,
         "dispatched to another agent without a handoff");
    for (uint32_t i = 0; about->key != 0 && i < w->shadow->n_steps; i++) {
        const struct run_step *other = &w->shadow->steps[i];
        RULE(i == cmd->step || world_plan(w)->steps[i].key != about->key || other->attempt == 0 ||
                 !run_step_is_active(other->status),
             "two steps have a key with one place");
    }
    if (!fits_budget(w, cmd->step, ret_why)) {
        return false;
    }
    told->executions++;
    RULE(told->executions <= told->attempts, "more executions than journaled attempts");
    return true;
}

static uint32_t wanted_agent(const struct world *w, const struct core_cmd *cmd)
{
    const struct plan *plan = world_plan(w);
    switch (cmd->phase) {
    case PHASE_GATE:
        return plan->steps[cmd->step].rules->gate_agent;
    case PHASE_VERIFY:
        return plan->steps[cmd->step].rules->verify_agent;
    case PHASE_REPLAN:
        return plan->replan.agent;
    case PHASE_EXECUTE:
    case PHASE_SEARCH:
    case STEP_PHASE_COUNT:
        break;
    }
    return w->at.told[cmd->step].agent;
}

/* Attempts that are out and neither given up nor answered; questions. Each on its lane. */
static bool limits_hold(const struct world *w, uint32_t agent, const char **ret_why)
{
    uint32_t all = 0;
    uint32_t of_agent = 0;
    for (uint32_t i = 0; i < WORLD_BODIES; i++) {
        const struct request *req = &w->at.bodies[i].now;
        const struct run_step *state = &w->shadow->steps[req->step];
        const bool counts = req->out && state->phase == req->phase &&
                            run_step_serial(w->shadow, req->step) == req->attempt &&
                            (state->status == STEP_IN_PROGRESS || state->status == STEP_CHECKING);
        all += counts ? 1 : 0;
        of_agent += counts && world_agent(w, i) == agent ? 1 : 0;
    }
    const struct core_config *c = &w->config;
    RULE(c->in_flight == 0 || all <= c->in_flight, "more in flight than allowed");
    RULE(c->in_flight_session == 0 || all <= c->in_flight_session, "more of a session in flight");
    RULE(c->in_flight_agent == 0 || of_agent <= c->in_flight_agent, "more of an agent in flight");
    return true;
}

static bool take_dispatch(struct world *w, const struct core_cmd *cmd, uint32_t nth,
                          const char **ret_why)
{
    struct instance_view view;
    RULE(registry_instance_view(w->core->registry, cmd->slot, &view), "dispatched to nobody");
    struct body *b = &w->at.bodies[world_body_of(&view.id)];
    RULE(b->epoch == cmd->epoch && b->lane, "dispatched to a lane that is not up");
    RULE(!b->now.out, "dispatched over a lane that is in use");
    RULE(!view.draining, "dispatched to who is leaving");
    RULE(!view.full, "dispatched to who has no place");
    RULE(w->doing.kind != WORLD_BUSY || world_body_of(&view.id) != w->doing.body,
         "asked again at once who has no place");
    if (!may_go_out(w, cmd, ret_why)) {
        return false;
    }
    w->seen->phases[cmd->phase]++;
    if (cmd->phase > PHASE_SEARCH) {
        RULE(w->shadow->steps[cmd->step].ask == cmd->attempt, "a question of the past");
    } else if (!attempt_goes_out(w, cmd, nth, ret_why)) {
        return false;
    }
    RULE(view.agent == wanted_agent(w, cmd), "dispatched to another agent");
    b->now = (struct request){true,
                              (uint8_t)cmd->slot,
                              (uint8_t)cmd->lane,
                              (uint8_t)cmd->step,
                              (uint8_t)cmd->phase,
                              (uint16_t)cmd->attempt,
                              cmd->epoch};
    return limits_hold(w, view.agent, ret_why);
}

/* ---- the other commands ---- */

static void close_body(struct body *b)
{
    b->old = b->now.out ? b->now : b->old;
    *b = (struct body){.old = b->old, .process = b->process};
}

static bool take_command(struct world *w, const struct core_cmd *cmd, uint32_t nth,
                         const char **ret_why)
{
    struct instance_view view;
    const bool there = registry_instance_view(w->core->registry, cmd->slot, &view);
    struct body *b = there ? &w->at.bodies[world_body_of(&view.id)] : NULL;
    w->seen->commands[cmd->type]++;
    switch (cmd->type) {
    case CMD_RECORD:
        RULE(w->doing.kind != WORLD_BUSY ||
                 (cmd->rec.type != REC_STEP_RETRY && cmd->rec.type != REC_FALLBACK_USED),
             "an instance without a place used up an attempt");
        return world_take_record(w, &cmd->rec, ret_why);
    case CMD_DISPATCH:
        return take_dispatch(w, cmd, nth, ret_why);
    case CMD_REGISTERED:
        RULE(there, "registered nobody");
        b->epoch = cmd->epoch;
        break;
    case CMD_CLOSE:
        RULE(w->doing.kind != WORLD_SILENT_TICK || w->doing.variant == 0,
             "down for a silence that was none");
        for (uint32_t i = 0; i < WORLD_BODIES; i++) {
            if (w->at.bodies[i].epoch == cmd->epoch) { /* its lease is over */
                close_body(&w->at.bodies[i]);
            }
        }
        break;
    case CMD_KILL:
        RULE(there && b->epoch == cmd->epoch && w->at.cancelling, "killed without need");
        RULE(w->scenario->bodies[world_body_of(&view.id)] < 'a', "killed who is not ours");
        b->leaving = true;
        break;
    case CMD_PROBE:
        RULE(there && b->epoch == cmd->epoch, "pinged nobody");
        b->probed = true;
        break;
    case CMD_JOB:
    case CMD_JOB_STOP:
        return world_take_job(w, cmd, ret_why);
    case CMD_COMPENSATE:
        return world_take_compensate(w, ret_why);
    case CMD_RUN_DONE:
        RULE(w->at.over, "given back before its end");
        break;
    case CMD_REJECT:
        w->seen->rejects[cmd->reject]++;
        break;
    case CMD_CANCEL_STEP:
        RULE(there && view.epoch == cmd->epoch, "told to stop who is not there");
        break;
    case CMD_REVISED:
        RULE(w->coming != NULL, "revised by nothing");
        break;
    case CMD_CHILD:
    case CMD_CHILD_STOP:
    case CMD_CHILD_PAUSE:
    case CMD_CHILD_RESUME:
        return world_take_child_command(w, cmd, ret_why);
    case CMD_SIGNAL:
        return world_take_called(w, cmd, ret_why);
    case CMD_CONDITION:
        return world_take_condition_asked(w, cmd, ret_why);
    case CMD_QUERY:
        w->at.told[cmd->step].asked = w->at.told[cmd->step].adopted;
        break;
    case CORE_CMD_TYPE_COUNT:
        break;
    }
    return true;
}

/* ---- between two events ---- */

static bool steps_moved_well(struct world *w, const char **ret_why)
{
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        struct told *told = &w->at.told[i];
        const struct run_step *state = &w->shadow->steps[i];
        RULE(!step_is_final(told->status) || told->status == state->status,
             "a final status changed");
        RULE(!told->started ==
                     (!step_is_final(state->status) && !run_step_is_active(state->status)) ||
                 step_is_final(state->status),
             "begun, but not told");
        told->status = state->status;
    }
    return true;
}

/* Who is back is asked for all that it may have; of who is gone for good nothing is awaited. */
static bool unknown_is_pursued(const struct world *w, const char **ret_why)
{
    bool control = w->doing.kind == WORLD_CONTROL_UP;
    uint32_t unknown = 0;
    uint32_t queries = 0;
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        const struct run_step *state = &w->shadow->steps[i];
        const struct core_run *row = core_find_run(w->core, w->at.handle);
        const bool adopted = w->at.told[i].adopted && state->status == STEP_IN_PROGRESS;
        unknown += row != NULL && (row->sched[i].list == LIST_UNKNOWN || adopted) &&
                   world_body_of(&state->instance) == w->doing.body;
    }
    for (uint32_t i = 0; i < w->out.n; i++) {
        queries += w->out.at[i].type == CMD_QUERY;
        control |= w->out.at[i].type == CMD_REGISTERED && w->doing.kind == WORLD_UP;
    }
    RULE(!control || queries == unknown, "an unknown outcome was not asked for");
    RULE(w->doing.kind != WORLD_NOT_LISTED || !w->at.bodies[w->doing.body].control || queries == 1,
         "what no heartbeat lists was not asked for");
    RULE(w->doing.kind != WORLD_GONE || unknown == 0, "the word of a dead instance is awaited");
    return true;
}

/* For an instance of its agent; a wait, or a step that any agent with its skill may do, has none.
 */
static bool waits_in_time(const struct world *w, uint32_t i, const char **ret_why)
{
    const struct situation *at = &w->at;
    const uint32_t agent = run_step_agent(w->shadow, world_plan(w), i);
    const struct run_step *state = &w->shadow->steps[i];
    const struct sched_step *sched = &core_find_run(w->core, at->handle)->sched[i];
    const struct step_policy *policy = &world_plan(w)->steps[i].rules->policy;
    const msec wait = policy->agent_wait_ms > 0 ? policy->agent_wait_ms : w->config.agent_wait_ms;
    msec since;

    if (sched->list != LIST_QUEUE || state->status == STEP_CHECKING ||
        agent >= registry_agents(w->core->registry)) {
        return true;
    }
    since = registry_agent_view(w->core->registry, agent).unreached_since;
    RULE(since == MSEC_NEVER || at->now < (since > sched->since ? since : sched->since) + wait,
         "a step waits for its agent for too long");
    return true;
}

/* Time stands still until the core wants to be woken, so nothing may be overdue. */
static bool in_time(const struct world *w, uint32_t i, const char **ret_why)
{
    const struct situation *at = &w->at;
    const struct told *told = &at->told[i];
    const struct run_step *state = &w->shadow->steps[i];
    const struct step_policy *policy = &world_plan(w)->steps[i].rules->policy;
    const struct sched_step *sched = &core_find_run(w->core, at->handle)->sched[i];
    const msec sign = told->sign > told->sent ? told->sign : told->sent;
    const bool held = state->status == STEP_IN_PROGRESS && told->out && !at->cancelling;
    RULE(!held || policy->timeout_ms == 0 || at->now < told->clock + policy->timeout_ms,
         "an attempt outlives its timeout");
    RULE(!held || policy->idle_ms == 0 || at->now < sign + policy->idle_ms,
         "an attempt is silent for too long");
    RULE(!held || policy->limit_ms == 0 || at->now < told->begun - 1 + policy->limit_ms,
         "a step outlives its limit");
    RULE(state->status != STEP_WAITING || policy->approval_timeout_ms == 0 ||
             at->now < told->sent + policy->approval_timeout_ms,
         "a review outlives its timeout");
    RULE(sched->list != LIST_QUEUE || state->status == STEP_CHECKING ||
             policy->queue_timeout_ms == 0 || at->now < sched->since + policy->queue_timeout_ms,
         "a step queues for too long");
    return waits_in_time(w, i, ret_why);
}

bool world_step_fails_plan(const struct world *w, uint32_t i)
{
    const struct plan_step *about = &world_plan(w)->steps[i];
    const struct run_step *state = &w->shadow->steps[i];
    const enum on_failure say = about->rules->policy.on_failure;
    return state->status == STEP_FAILED && !about->superseded &&
           world_plan(w)->child.kind != CHILD_OF_UNDO && /* the others are undone all the same */
           state->error_class != CLASS_VERIFICATION_FAILED &&
           (say == ON_FAILURE_ABORT || say == ON_FAILURE_RETRY || say == ON_FAILURE_ASK);
}

bool world_is_failed(const struct world *w)
{
    bool failed = false;
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        failed |= world_step_fails_plan(w, i);
    }
    return failed;
}

/* Failed for good, and the plan does not end for it. */
static bool is_ignored(const struct world *w, uint32_t i)
{
    return world_step_fails_plan(w, i) && (w->at.job.pardoned & 1u << i) == 0;
}

/* C05: it says that it waits when all that is open waits for people. */
static bool waits(const struct world *w)
{
    const struct run *run = w->shadow;
    const uint32_t room = run_concurrency(world_plan(w));
    uint32_t active = 0;
    uint32_t waiting = 0;
    uint32_t asleep = 0;
    bool ready = false;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        active += run_step_is_active(run->steps[i].status) ? 1 : 0;
        waiting += run->steps[i].status == STEP_WAITING ? 1 : 0;
        asleep += run_step_is_active(run->steps[i].status) && world_plan(w)->steps[i].wait != NULL;
        ready |= run->steps[i].status == STEP_READY;
    }
    return active > 0 && active == waiting && !(ready && active - asleep < room);
}

/* A question without a deadline waits for its agent as long as it takes. */
static bool asks_for_ever(const struct world *w)
{
    bool asks = false;
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        const struct run_step *state = &w->shadow->steps[i];
        asks |= world_sleeps_for(w, i) != 0;
        asks |= state->status == STEP_CHECKING && state->deadline == MSEC_NEVER;
    }
    return asks;
}

static bool plan_holds(const struct world *w, const char **ret_why)
{
    const struct situation *at = &w->at;
    const struct run *run = w->shadow;
    const struct plan *plan = world_plan(w);
    const bool other = (at->paused & ~(1u << PAUSE_REVIEW)) != 0;
    RULE(run->paused == at->paused && run->cancelling == at->cancelling, "paused, or cancelling");
    RULE(run->revision == at->revision && run->replans == at->replans &&
             run->fallbacks == at->fallbacks && (run->replanning > 0) == (at->replanning > 0),
         "revisions, replans or fallbacks");
    RULE(run->usage.input_tokens + run->usage.output_tokens == at->spent, "what was spent");
    RULE(core_find_run(w->core, at->handle)->run == core_block_run(w->blocks[at->block]),
         "the core uses another block");
    RULE(heap_min(&w->core->due) != MSEC_NEVER || run->waiting > 0 || at->paused != 0 ||
             asks_for_ever(w) || at->job.out ||
             core_find_run(w->core, at->handle)->conditions.n > 0 || world_child_out(w) ||
             core_find_run(w->core, at->handle)->held > 0,
         "nothing will ever happen to this plan");
    RULE(!at->begun || at->cancelling || other ||
             ((at->paused & 1u << PAUSE_REVIEW) != 0) == waits(w),
         "waits for people, and does not say so, or the other way round");
    RULE(!at->cancelling || at->job.kind == JOB_COMPENSATION || world_child_out(w) ||
             at->now < at->cancelled_at + w->config.cancel_grace_ms,
         "cancelled for longer than its grace");
    RULE(plan->timeout_ms == 0 || !at->begun || at->cancelling ||
             at->job.kind == JOB_COMPENSATION || at->now < at->started_at + plan->timeout_ms,
         "the plan outlives its timeout");
    if (!world_job_holds(w, ret_why) || !world_waits_hold(w, ret_why)) {
        return false;
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        RULE(!is_ignored(w, i), "a failure that ends the plan did not");
        if (!in_time(w, i, ret_why)) {
            return false;
        }
    }
    return true;
}

static bool take_commands(struct world *w, const char **ret_why)
{
    bool records = false;
    bool rejected = false;
    bool done = false;
    w->usage = 0;
    const bool was_over = w->at.over;
    const size_t bytes = run_bytes(w->shadow);
    memcpy(w->before, w->shadow, bytes);
    for (uint32_t i = 0; i < w->out.n; i++) {
        const struct core_cmd *cmd = &w->out.at[i];
        records = records || (cmd->type == CMD_RECORD && cmd->rec.run != 0);
        rejected = rejected || cmd->type == CMD_REJECT;
        done = done || cmd->type == CMD_RUN_DONE;
        if (!take_command(w, cmd, i, ret_why)) {
            return false;
        }
    }
    RULE(!rejected || records || memcmp(w->before, w->shadow, bytes) == 0,
         "a rejection changed the run");
    const bool said = w->doing.kind == WORLD_RESULT || w->doing.kind == WORLD_STRAY ||
                      w->doing.kind == WORLD_RESULT_OLD || world_job_said(w);
    const bool brings = w->doing.kind == WORLD_REVISE || w->doing.kind == WORLD_PLANNED ||
                        w->doing.kind == WORLD_BRING || w->doing.kind == WORLD_RECTIFY;
    /* What is rejected is paid for unless it was paid for before. */
    RULE(w->usage == (said && !rejected ? w->scenario->spends : 0) ||
             (said && w->usage == w->scenario->spends),
         "usage lost, or counted twice");
    RULE(done == (w->at.over && !was_over), "the plan was not given back at its end");
    RULE(!brings || rejected != (w->coming == world_plan(w)),
         "a revision was neither refused nor taken over");
    RULE(w->doing.kind != WORLD_JOB_LATE || (rejected && !records),
         "what nobody waits for was taken");
    return true;
}

bool world_take(struct world *w, const char **ret_why)
{
    if (!take_commands(w, ret_why)) {
        return false;
    }
    const struct run *live = core_block_run(w->blocks[w->at.block]);
    w->at.replanned = 0;
    RULE(memcmp(live, w->shadow, run_bytes(w->shadow)) == 0,
         "the replayed run differs from the live one");
    RULE(w->at.over == (core_run(w->core, w->at.handle, NULL) == NULL),
         "the core and the records disagree about the end");
    RULE(w->doing.kind != WORLD_TICK || core_deadline(w->core) > w->at.now,
         "left undone what is due");
    if (!w->at.over && !plan_holds(w, ret_why)) {
        return false;
    }
    return steps_moved_well(w, ret_why) && unknown_is_pursued(w, ret_why) &&
           run_invariant(w->shadow, world_plan(w), ret_why) && core_invariant(w->core, ret_why);
}
