/* Giving a lane to a queued step: its records and the request. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/fair.h"

/* The agent that hands over to the step (C20). In a chain the agent of the last attempt; otherwise
 * the agent of the dependency that completed last. */
static uint32_t handed_over_by(const struct core_run *entry, uint32_t step)
{
    if (entry->plan->chain) {
        return entry->run->last_agent;
    }
    const uint32_t dep = entry->run->steps[step].last_dep;
    const uint32_t agent = dep == STEP_NONE ? AGENT_NONE : entry->run->steps[dep].agent;
    return agent == AGENT_NONE ? AGENT_SUPERVISOR : agent;
}

/* Records the attempt and its instance. A question is not recorded: it may be asked again. */
static void record_attempt(struct core *c, struct core_run *entry, uint32_t step,
                           const struct instance_view *to)
{
    const struct run_step *state = &entry->run->steps[step];
    const uint32_t from = handed_over_by(entry, step);
    struct record rec = {REC_INIT(STEP_ASSIGNED, assigned, .phase = state->phase,
                                  .instance = to->id, .process = to->process, .epoch = to->epoch),
                         .step = step, .attempt = state->attempt, .agent = state->agent};
    if (state->status == STEP_READY) {
        rec.type = REC_STEP_STARTED; /* it has the same member */
    }
    if (state->status == STEP_READY || state->status == STEP_BACKOFF) {
        rec.attempt++;
    }
    core_record(c, entry, rec);
    if (rec.attempt == 1 && (state->did & STEP_DID_HANDOFF) == 0 && from != state->agent) {
        core_record(c, entry,
                    (struct record){
                        REC_INIT(HANDOFF, handoff, .kind = HANDOFF_PLAN_STEP, .from_agent = from),
                        .step = step, .attempt = 1, .agent = state->agent});
    }
}

void core_dispatch(struct core *c, struct core_run *entry, uint32_t step, uint32_t slot)
{
    const struct run_step *state = &entry->run->steps[step];
    struct sched_step *sched = &entry->sched[step];
    struct instance_view to;
    const bool live = registry_instance_view(c->registry, slot, &to);
    ASSERT(live);
    core_unlink(c, entry, step);
    const uint32_t lane = registry_take(c->registry, slot);
    core_key_started(c, entry, step, to.agent);
    if (state->status != STEP_CHECKING) {
        record_attempt(c, entry, step, &to);
    }
    const uint32_t serial = run_step_serial(entry->run, step);
    const bool again = sched->serial == serial && sched->phase == state->phase;
    sched->unsent = again ? sched->unsent : 0;
    sched->serial = (uint16_t)serial;
    sched->phase = state->phase;
    sched->slot = slot;
    sched->epoch = to.epoch;
    sched->queued_at = sched->since;
    sched->since = c->now;
    sched->last_sign = c->now;
    sched->progress = 0;
    sched->adopted = false;
    entry->run->handoffs += MUTANT(RUN_BESIDE_APPLY) ? 1 : 0;
    core_link(c, entry, step, LIST_HELD, false);
    core_set_due(c, entry, step, core_held_due(c, entry, step));
    struct core_cmd *cmd = core_emit(c, CMD_DISPATCH);
    cmd->run = core_handle_of(c, entry);
    cmd->step = step;
    cmd->phase = state->phase;
    cmd->attempt = serial;
    cmd->slot = slot;
    cmd->epoch = to.epoch;
    cmd->lane = lane;
}
