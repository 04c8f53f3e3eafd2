/* Who gets the work. */
#include "protocol/base/assert.h"
#include "registry/card.h"
#include "registry/registry_internal.h"

struct offer {
    uint32_t slot;
    uint32_t credits;
    uint32_t outstanding;
};

static bool better(const struct offer *a, const struct offer *b)
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
    const struct agent_entry *of = &registry_agent_entries(r)[agent];
    struct offer best = {.slot = REGISTRY_NONE};
    if (!of->enabled || !registry_breaker_lets_agent(r, agent)) {
        return REGISTRY_NONE;
    }
    const struct instance_entry *rows = registry_instance_entries(r);
    for (uint32_t slot = of->first; slot != REGISTRY_NONE; slot = rows[slot].agent_next) {
        const struct instance_entry *row = &rows[slot];
        if (row->health != HEALTH_HEALTHY || row->draining || registry_free_lanes(row) == 0 ||
            !registry_breaker_lets(r, slot)) {
            continue;
        }
        const struct offer offer = {.slot = slot,
                                    .credits = registry_count_bits(registry_free_lanes(row)),
                                    .outstanding = registry_count_bits(row->lanes_taken)};
        if (best.slot == REGISTRY_NONE || better(&offer, &best)) {
            best = offer;
        }
    }
    return best.slot;
}

uint32_t registry_agent_with_skill(const struct registry *r, struct str skill)
{
    uint32_t absent = REGISTRY_NONE;
    for (uint32_t agent = 0; agent < r->n_agents; agent++) {
        const struct agent_entry *row = &registry_agent_entries(r)[agent];
        if (!row->enabled || row->card == NULL || card_skill(row->card, skill) == UINT32_MAX) {
            continue;
        }
        if (row->instances > 0) {
            return agent;
        }
        absent = absent == REGISTRY_NONE ? agent : absent;
    }
    return absent;
}
