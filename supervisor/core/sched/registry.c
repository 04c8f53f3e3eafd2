/* Instances that register, leave or fall silent. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

static bool is_current(struct core *c, const struct core_event *ev, struct instance_view *ret)
{
    if (!registry_is_current(c->registry, ev->slot, ev->epoch) ||
        !registry_instance_view(c->registry, ev->slot, ret)) {
        core_reject(c, ev, REJECT_STALE_EPOCH);
        return false;
    }
    return true;
}

static void record_instance(struct core *c, enum record_type type, const struct instance_view *of,
                            uint32_t pid, struct str text)
{
    struct record rec = {.type = type, .step = STEP_NONE, .agent = of->agent, .text = text};
    *REC(&rec, agent) = (struct rec_agent){
        .instance = of->id, .epoch = of->epoch, .capacity = of->capacity, .pid = pid};
    core_record(c, NULL, rec);
}

static void close_lanes(struct core *c, uint32_t slot, uint64_t epoch)
{
    struct core_cmd *cmd = core_emit(c, CMD_CLOSE);
    cmd->slot = slot;
    cmd->epoch = epoch;
}

/* Rechecks the queued steps of one agent. When the agent is unavailable they are due now; otherwise
 * at their deadline again. */
static void recheck_queue(struct core *c, struct core_run *entry, uint32_t agent)
{
    for (uint32_t i = 0; i < entry->plan->agents.n; i++) {
        const struct core_queue *queue = &core_queues(entry)[i];
        for (uint64_t ref = queue->agent == agent ? core_list_of(c, entry, queue->steps).head
                                                  : REF_NONE;
             ref != REF_NONE;) {
            const struct run_step *state;
            uint32_t step;
            (void)core_deref(c, ref, &step);
            ref = entry->sched[step].next;
            state = &entry->run->steps[step];
            if (core_agent_unavailable(c, entry, step)) {
                core_set_due(c, entry, step, c->now);
            } else if (state->status == STEP_CHECKING && state->deadline != MSEC_NEVER) {
                core_set_due(c, entry, step, state->deadline);
            }
        }
    }
}

/* After a change in the availability of an agent that gave up. */
static void recheck_runs(struct core *c, uint32_t agent)
{
    for (uint32_t i = 0; i < c->runs_made; i++) {
        if (c->runs[i].run != NULL) {
            recheck_queue(c, &c->runs[i], agent);
        }
    }
}

static void availability_changed(struct core *c, uint32_t agent)
{
    core_mark_dirty(c, agent); /* an instance that left may have had a breaker's trial */
    if (registry_agent_view(c->registry, agent).failure.len > 0) {
        recheck_runs(c, agent);
    }
}

void core_mark_alive(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (registry_is_current(c->registry, ev->slot, ev->epoch) &&
        registry_renew_lease(c->registry, ev->slot, c->now) &&
        registry_instance_view(c->registry, ev->slot, &view)) {
        core_mark_dirty(c, view.agent); /* it was suspect, and may get work again */
    }
}

void core_on_register(struct core *c, const struct core_event *ev)
{
    const struct core_ev_registration *reg = CORE_EV(ev, registration);
    struct instance_view view;
    uint32_t slot = registry_instance(c->registry, ev->instance);
    if (slot != REGISTRY_NONE && registry_instance_view(c->registry, slot, &view)) {
        if (view.agent != reg->agent) {
            core_reject(c, ev, REJECT_FOREIGN);
            return;
        }
        if (!uuid_eq(view.process, reg->process) && !MUTANT(PROCESS_REPLACED)) {
            core_reject(c, ev, REJECT_PROCESS);
            return;
        }
        close_lanes(c, slot, view.epoch);
    }
    slot = registry_register(c->registry, reg->agent, ev->instance, reg->capacity, c->now);
    if (slot == REGISTRY_NONE) {
        core_reject(c, ev, REJECT_TOO_MANY_INSTANCES);
        return;
    }
    registry_process(c->registry, slot, reg->process);
    const bool live = registry_instance_view(c->registry, slot, &view);
    ASSERT(live);
    core_instance_lost(
        c, slot); /* what the previous incarnation had; it is queried when the control lane is up */
    c->instances[slot].up_emitted = false;
    c->instances[slot].spawned = reg->spawned;
    availability_changed(c, reg->agent);
    record_instance(c, REC_AGENT_REGISTERED, &view, reg->pid, ev->text);
    struct core_cmd *cmd = core_emit(c, CMD_REGISTERED);
    cmd->slot = slot;
    cmd->epoch = view.epoch;
}

void core_on_seen(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (is_current(c, ev, &view)) {
        core_mark_alive(c, ev);
    }
}

void core_on_lane_up(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (!is_current(c, ev, &view)) {
        return;
    }
    core_mark_alive(c, ev);
    if (ev->lane == REGISTRY_CONTROL_LANE) {
        registry_lane_set(c->registry, ev->slot, ev->lane, true);
        registry_connections(c->registry, ev->slot, c->now);
        core_query_instance(c, ev->slot);
        return;
    }
    if (ev->lane >= view.capacity) {
        core_reject(c, ev, REJECT_FOREIGN);
        return;
    }
    registry_lane_set(c->registry, ev->slot, ev->lane, true);
    registry_connections(c->registry, ev->slot, c->now);
    if (!c->instances[ev->slot].up_emitted) {
        c->instances[ev->slot].up_emitted = true;
        record_instance(c, REC_AGENT_UP, &view, 0, (struct str){0});
    }
    if (!MUTANT(LOST_WAKE_UP)) {
        core_mark_dirty(c, view.agent);
    }
}

void core_on_lane_down(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (!is_current(c, ev, &view)) {
        return;
    }
    if (ev->lane != REGISTRY_CONTROL_LANE && ev->lane >= view.capacity) {
        core_reject(c, ev, REJECT_FOREIGN);
        return;
    }
    /* A request that was on it is reported on its own, as LOST. */
    registry_lane_set(c->registry, ev->slot, ev->lane, false);
    if (!MUTANT(ENDED_UNSEEN)) {
        registry_connections(c->registry, ev->slot, c->now);
    }
}

void core_on_gone(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (!is_current(c, ev, &view)) {
        return;
    }
    record_instance(c, REC_AGENT_DOWN, &view, 0, ev->text);
    close_lanes(c, ev->slot, ev->epoch);
    if (c->instances[ev->slot].held.n > 0) {
        core_breaker_result(c, ev->slot, ev->epoch, CLASS_AGENT_CRASHED);
    }
    registry_remove(c->registry, ev->slot, c->now);
    availability_changed(c, view.agent);
    core_instance_gone(c, ev->slot, view.id, ev->text);
}

void core_on_drain(struct core *c, const struct core_event *ev)
{
    struct instance_view view;
    if (!is_current(c, ev, &view)) {
        return;
    }
    core_mark_alive(c, ev);
    if (!view.draining) {
        registry_drain(c->registry, ev->slot);
        record_instance(c, REC_AGENT_DRAINING, &view, 0, ev->text);
    }
}

void core_on_gave_up(struct core *c, const struct core_event *ev)
{
    const uint32_t agent = CORE_EV(ev, process)->agent;
    if (agent >= registry_agents(c->registry)) {
        core_reject(c, ev, REJECT_FOREIGN);
        return;
    }
    registry_agent_failed(c->registry, agent, ev->text);
    recheck_runs(c, agent);
}

void core_on_restarted(struct core *c, const struct core_event *ev)
{
    const struct core_ev_process *of = CORE_EV(ev, process);
    if (of->agent < registry_agents(c->registry) &&
        registry_agent_view(c->registry, of->agent).failure.len > 0) {
        registry_agent_failed(c->registry, of->agent, (struct str){"", 0});
        recheck_runs(c, of->agent);
    }
    core_record(
        c, NULL,
        (struct record){REC_INIT(AGENT_RESTARTED, agent, .instance = ev->instance, .pid = of->pid),
                        .step = STEP_NONE, .agent = of->agent, .text = ev->text});
}

void core_on_stalled(struct core *c, const struct core_event *ev)
{
    if (!MUTANT(STALL_IS_SILENCE)) {
        registry_excuse(c->registry, c->now, CORE_EV(ev, stalled)->delay_ms);
    }
}

/* An expired lease is not an end: attempts become unknown, and the instance may come back with
 * results. */
void core_expire_instances(struct core *c)
{
    enum health health = HEALTH_HEALTHY;
    for (;;) {
        const uint32_t slot = registry_expire(c->registry, c->now, &health);
        struct instance_view view;
        if (slot == REGISTRY_NONE) {
            return;
        }
        if (health != HEALTH_DEAD) {
            continue;
        }
        const bool live = registry_instance_view(c->registry, slot, &view);
        ASSERT(live);
        record_instance(c, REC_AGENT_DOWN, &view, 0,
                        view.ended ? STR_LIT("all its connections have ended")
                                   : STR_LIT("lease expired"));
        close_lanes(c, slot, view.epoch);
        registry_remove(c->registry, slot, c->now);
        availability_changed(c, view.agent);
        core_instance_lost(c, slot);
    }
}

/* ---- breakers: who keeps failing gets no work ---- */

static void wake(struct core *c, uint32_t agent)
{
    if (agent != REGISTRY_NONE) {
        core_mark_dirty(c, agent);
    }
}

void core_breaker_result(struct core *c, uint32_t slot, uint64_t epoch, enum err_class cls)
{
    wake(c, registry_breaker_result(c->registry, slot, epoch, cls, c->now));
}

void core_breaker_tick(struct core *c)
{
    for (;;) {
        struct instance_view of;
        const uint32_t slot = registry_breaker_due(c->registry, c->now);
        if (slot == REGISTRY_NONE || !registry_instance_view(c->registry, slot, &of)) {
            return;
        }
        struct core_cmd *cmd = core_emit(c, CMD_PROBE);
        cmd->slot = slot;
        cmd->epoch = of.epoch;
    }
}

void core_full_tick(struct core *c)
{
    for (uint32_t agent = registry_full_due(c->registry, c->now); agent != REGISTRY_NONE;
         agent = registry_full_due(c->registry, c->now)) {
        core_mark_dirty(c, agent);
    }
}

void core_on_probed(struct core *c, const struct core_event *ev)
{
    if (!registry_is_current(c->registry, ev->slot, ev->epoch)) {
        core_reject(c, ev, REJECT_STALE_EPOCH);
        return;
    }
    const bool ok = CORE_EV(ev, probed)->ok;
    if (ok) {
        core_mark_alive(c, ev);
    }
    wake(c, registry_breaker_probed(c->registry, ev->slot, ok, c->now));
}
