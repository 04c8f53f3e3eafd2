/* Selection of the instance or agent for new work. */
#include "protocol/base/assert.h"
#include "registry/card.h"
#include "registry/registry_internal.h"

struct candidate {
    uint32_t slot;
    uint32_t credits;
    uint32_t outstanding;
};

static bool better(const struct candidate *a, const struct candidate *b)
{
    if (a->credits != b->credits) {
        return a->credits > b->credits;
    }
    if (a->outstanding != b->outstanding) {
        return a->outstanding < b->outstanding;
    }
    return a->slot < b->slot;
}

uint32_t registry_select(const struct registry *r, uint32_t agent)
{
    ASSERT(agent < r->n_agents);
    const struct agent_entry *owner = &registry_agent_entries(r)[agent];
    struct candidate best = {.slot = REGISTRY_NONE};
    if (!owner->enabled || !registry_breaker_allows_agent(r, agent)) {
        return REGISTRY_NONE;
    }
    const struct instance_entry *entries = registry_instance_entries(r);
    for (uint32_t slot = owner->first; slot != REGISTRY_NONE; slot = entries[slot].agent_next) {
        const struct instance_entry *entry = &entries[slot];
        if (entry->health != HEALTH_HEALTHY || entry->draining || entry->full_until != 0 ||
            registry_free_lanes(entry) == 0 || !registry_breaker_allows(r, slot)) {
            continue;
        }
        const struct candidate candidate = {.slot = slot,
                                            .credits =
                                                registry_count_bits(registry_free_lanes(entry)),
                                            .outstanding = registry_count_bits(entry->lanes_taken)};
        if (best.slot == REGISTRY_NONE || better(&candidate, &best)) {
            best = candidate;
        }
    }
    return best.slot;
}

uint32_t registry_agent_with_skill(const struct registry *r, struct str skill)
{
    uint32_t absent = REGISTRY_NONE;
    for (uint32_t agent = 0; agent < r->n_agents; agent++) {
        const struct agent_entry *entry = &registry_agent_entries(r)[agent];
        if (!entry->enabled || !entry->seen || entry->card == NULL ||
            card_skill(entry->card, skill) == UINT32_MAX) {
            continue;
        }
        if (entry->instances > 0) {
            return agent;
        }
        absent = absent == REGISTRY_NONE ? agent : absent;
    }
    return absent;
}
