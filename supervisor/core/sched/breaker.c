/* Circuit breakers. Results feed them, time asks for probes, and a breaker that closes starts
 * queued steps. registry/breaker.c decides when one opens and closes. */
#include "supervisor/core/sched/core_internal.h"

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
