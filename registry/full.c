/* Instances that have no place for more work, because other supervisors have their places. */
#include "protocol/base/assert.h"
#include "registry/registry_internal.h"

static void set_until(struct registry *r, struct instance_entry *entry, msec until)
{
    r->n_full += (until != 0 ? 1u : 0u) - (entry->full_until != 0 ? 1u : 0u);
    entry->full_until = until;
}

void registry_full(struct registry *r, uint32_t slot, msec now)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    registry_advance_time(r, now);
    if (entry->full_until > r->now) {
        return; /* of the same wait */
    }
    const msec longer = entry->full_ms + entry->full_ms / 2;
    entry->full_ms = entry->full_ms == 0             ? REGISTRY_FULL_MS
                     : longer < REGISTRY_FULL_MAX_MS ? longer
                                                     : REGISTRY_FULL_MAX_MS;
    set_until(r, entry, msec_add(r->now, entry->full_ms));
}

void registry_not_full(struct registry *r, uint32_t slot)
{
    if (registry_is_live(r, slot)) {
        set_until(r, &registry_instance_entries(r)[slot], 0);
        registry_instance_entries(r)[slot].full_ms = 0;
    }
}

uint32_t registry_full_due(struct registry *r, msec now)
{
    registry_advance_time(r, now);
    for (uint32_t slot = 0; r->n_full > 0 && slot < r->n_slots; slot++) {
        struct instance_entry *entry = &registry_instance_entries(r)[slot];
        if (entry->full_until != 0 && entry->full_until <= r->now) {
            set_until(r, entry, 0);
            return entry->agent;
        }
    }
    return REGISTRY_NONE;
}

msec registry_full_deadline(const struct registry *r)
{
    msec first = MSEC_NEVER;
    for (uint32_t slot = 0; r->n_full > 0 && slot < r->n_slots; slot++) {
        const msec until = registry_instance_entries(r)[slot].full_until;
        first = until != 0 && until < first ? until : first;
    }
    return first;
}
