/* Instances and their lanes. */
#include "protocol/base/assert.h"
#include "registry/registry_internal.h"

/* ---- finding by id: open addressing, backward-shift deletion (Knuth, TAOCP 3, 6.4 R) ---- */

static uint32_t home(const struct registry *r, struct uuid id)
{
    return (uint32_t)str_hash((struct str){(const char *)id.b, sizeof id.b}) & r->instance_mask;
}

/* The index in the table where the id is, or would be put. */
static uint32_t place_of(const struct registry *r, struct uuid id)
{
    const uint32_t *table = registry_instance_table(r);
    uint32_t at = home(r, id);
    while (table[at] != REGISTRY_NONE && !uuid_eq(registry_instance_entries(r)[table[at]].id, id)) {
        at = (at + 1) & r->instance_mask;
    }
    return at;
}

static void forget_id(struct registry *r, struct uuid id)
{
    uint32_t *table = registry_instance_table(r);
    uint32_t hole = place_of(r, id);
    for (uint32_t at = (hole + 1) & r->instance_mask; table[at] != REGISTRY_NONE;
         at = (at + 1) & r->instance_mask) {
        const uint32_t h = home(r, registry_instance_entries(r)[table[at]].id);
        const uint32_t from_home = (at - h) & r->instance_mask;
        const uint32_t from_hole = (at - hole) & r->instance_mask;
        if (from_home >= from_hole) {
            table[hole] = table[at];
            hole = at;
        }
    }
    table[hole] = REGISTRY_NONE;
}

/* ---- the instances of one agent ---- */

static void agent_link(struct registry *r, uint32_t slot, uint32_t agent)
{
    struct instance_entry *rows = registry_instance_entries(r);
    struct agent_entry *of = &registry_agent_entries(r)[agent];
    rows[slot].agent = agent;
    rows[slot].agent_prev = REGISTRY_NONE;
    rows[slot].agent_next = of->first;
    if (of->first != REGISTRY_NONE) {
        rows[of->first].agent_prev = slot;
    }
    of->first = slot;
    of->instances++;
    of->absent_since = MSEC_NEVER;
}

static void agent_unlink(struct registry *r, uint32_t slot)
{
    struct instance_entry *rows = registry_instance_entries(r);
    const struct instance_entry *row = &rows[slot];
    struct agent_entry *of = &registry_agent_entries(r)[row->agent];
    if (row->agent_prev != REGISTRY_NONE) {
        rows[row->agent_prev].agent_next = row->agent_next;
    } else {
        of->first = row->agent_next;
    }
    if (row->agent_next != REGISTRY_NONE) {
        rows[row->agent_next].agent_prev = row->agent_prev;
    }
    of->instances--;
    if (of->instances == 0) {
        of->absent_since = r->now;
    }
}

/* ---- coming and going ---- */

/* Lowest first, so that the same history gives the same slots. */
static uint32_t free_slot(struct registry *r)
{
    for (uint32_t slot = 0; slot < r->n_slots; slot++) {
        if (registry_instance_entries(r)[slot].health == HEALTH_DEAD) {
            return slot;
        }
    }
    return r->n_slots < r->lim.instances ? r->n_slots++ : REGISTRY_NONE;
}

uint32_t registry_register(struct registry *r, uint32_t agent, struct uuid id, uint32_t capacity,
                           msec now)
{
    ASSERT(agent < r->n_agents);
    ASSERT(capacity >= 1 && capacity <= LIMIT_CAPACITY);
    registry_later(r, now);
    uint32_t slot = registry_instance(r, id);
    if (slot != REGISTRY_NONE) {
        registry_breaker_left(r, slot);
        agent_unlink(r, slot);
        registry_health_move(r, slot, HEALTH_DEAD);
    } else {
        slot = free_slot(r);
        if (slot == REGISTRY_NONE) {
            return REGISTRY_NONE;
        }
        registry_instance_table(r)[place_of(r, id)] = slot;
    }
    ASSERT(r->epoch < UINT64_MAX);
    struct instance_entry *row = &registry_instance_entries(r)[slot];
    *row = (struct instance_entry){.id = id,
                                   .epoch = ++r->epoch,
                                   .capacity = capacity,
                                   .broke_at = MSEC_NEVER,
                                   .past = row->past};
    agent_link(r, slot, agent);
    registry_health_move(r, slot, HEALTH_HEALTHY);
    return slot;
}

uint32_t registry_instance(const struct registry *r, struct uuid id)
{
    return registry_instance_table(r)[place_of(r, id)];
}

uint32_t registry_instances(const struct registry *r)
{
    return r->n_slots;
}

bool registry_instance_view(const struct registry *r, uint32_t slot, struct instance_view *ret)
{
    if (!registry_is_live(r, slot)) {
        return false;
    }
    const struct instance_entry *row = &registry_instance_entries(r)[slot];
    *ret = (struct instance_view){.agent = row->agent,
                                  .id = row->id,
                                  .epoch = row->epoch,
                                  .capacity = row->capacity,
                                  .lanes_up = registry_count_bits(row->lanes_up),
                                  .outstanding = registry_count_bits(row->lanes_taken),
                                  .control_up = row->control_up,
                                  .draining = row->draining,
                                  .health = row->health,
                                  .last_seen = row->last_seen,
                                  .breaker = registry_breaker_view(r, slot)};
    return true;
}

bool registry_is_current(const struct registry *r, uint32_t slot, uint64_t epoch)
{
    return registry_is_live(r, slot) && registry_instance_entries(r)[slot].epoch == epoch;
}

void registry_drain(struct registry *r, uint32_t slot)
{
    if (registry_is_live(r, slot)) {
        registry_instance_entries(r)[slot].draining = true;
    }
}

void registry_remove(struct registry *r, uint32_t slot, msec now)
{
    registry_later(r, now);
    if (!registry_is_live(r, slot)) {
        return;
    }
    forget_id(r, registry_instance_entries(r)[slot].id);
    registry_breaker_left(r, slot);
    agent_unlink(r, slot);
    registry_health_move(r, slot, HEALTH_DEAD);
}

/* ---- lanes ---- */

void registry_lane_set(struct registry *r, uint32_t slot, uint32_t lane, bool up)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *row = &registry_instance_entries(r)[slot];
    if (lane == REGISTRY_CONTROL_LANE) {
        row->control_up = up;
        return;
    }
    ASSERT(lane < row->capacity);
    const uint64_t bit = UINT64_C(1) << lane;
    row->lanes_up = up ? row->lanes_up | bit : row->lanes_up & ~bit;
}

uint32_t registry_take(struct registry *r, uint32_t slot)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *row = &registry_instance_entries(r)[slot];
    const uint64_t lanes = registry_free_lanes(row);
    ASSERT(lanes != 0);
    uint32_t lane = 0;
    while ((lanes >> lane & 1) == 0) {
        lane++;
    }
    row->lanes_taken |= UINT64_C(1) << lane;
    registry_breaker_taken(r, slot, lane);
    return lane;
}

void registry_release(struct registry *r, uint32_t slot, uint32_t lane)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *row = &registry_instance_entries(r)[slot];
    ASSERT(lane < row->capacity);
    row->lanes_taken &= ~(UINT64_C(1) << lane);
    registry_breaker_released(r, slot, lane);
}
