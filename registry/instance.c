/* Instances and their lanes. */
#include "protocol/base/assert.h"
#include "registry/registry_internal.h"

/* ---- lookup by id: open addressing, backward-shift deletion (Knuth, TAOCP 3, 6.4 R) ---- */

static uint32_t home(const struct registry *r, struct uuid id)
{
    return (uint32_t)str_hash((struct str){(const char *)id.b, sizeof id.b}) & r->instance_mask;
}

/* Returns the index of the id in the table, or of the free place for it. */
static uint32_t place_of(const struct registry *r, struct uuid id)
{
    const uint32_t *table = registry_instance_table(r);
    uint32_t at = home(r, id);
    while (table[at] != REGISTRY_NONE && !uuid_eq(registry_instance_entries(r)[table[at]].id, id)) {
        at = (at + 1) & r->instance_mask;
    }
    return at;
}

static void remove_id(struct registry *r, struct uuid id)
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
    struct instance_entry *entries = registry_instance_entries(r);
    struct agent_entry *owner = &registry_agent_entries(r)[agent];
    entries[slot].agent = agent;
    entries[slot].agent_prev = REGISTRY_NONE;
    entries[slot].agent_next = owner->first;
    if (owner->first != REGISTRY_NONE) {
        entries[owner->first].agent_prev = slot;
    }
    owner->first = slot;
    owner->instances++;
    owner->absent_since = MSEC_NEVER;
}

static void set_reached(struct registry *r, uint32_t slot, bool reached)
{
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    struct agent_entry *owner = &registry_agent_entries(r)[entry->agent];
    if (entry->reached == reached) {
        return;
    }
    entry->reached = reached;
    owner->reached += reached ? 1u : UINT32_MAX;
    owner->unreached_since = owner->reached == 0 ? r->now : owner->unreached_since;
}

static void agent_unlink(struct registry *r, uint32_t slot)
{
    struct instance_entry *entries = registry_instance_entries(r);
    const struct instance_entry *entry = &entries[slot];
    struct agent_entry *owner = &registry_agent_entries(r)[entry->agent];
    if (entry->agent_prev != REGISTRY_NONE) {
        entries[entry->agent_prev].agent_next = entry->agent_next;
    } else {
        owner->first = entry->agent_next;
    }
    if (entry->agent_next != REGISTRY_NONE) {
        entries[entry->agent_next].agent_prev = entry->agent_prev;
    }
    set_reached(r, slot, false);
    owner->instances--;
    if (owner->instances == 0) {
        owner->absent_since = r->now;
        if (!owner->configured) {
            registry_note_absence(r);
        }
    }
    registry_not_full(r, slot);
}

/* ---- registration and removal ---- */

/* Uses the lowest free slot, so that the same history gives the same slots. */
static uint32_t free_slot(struct registry *r)
{
    for (; r->free_from < r->n_slots; r->free_from++) {
        if (registry_instance_entries(r)[r->free_from].health == HEALTH_DEAD) {
            return r->free_from;
        }
    }
    return r->n_slots < r->lim.instances ? r->n_slots++ : REGISTRY_NONE;
}

uint32_t registry_register(struct registry *r, uint32_t agent, struct uuid id, uint32_t capacity,
                           msec now)
{
    ASSERT(agent < r->n_agents);
    ASSERT(capacity >= 1 && capacity <= LIMIT_CAPACITY);
    registry_advance_time(r, now);
    uint32_t slot = registry_instance(r, id);
    if (slot != REGISTRY_NONE) {
        registry_breaker_end_incarnation(r, slot);
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
    registry_agent_entries(r)[agent].seen = true;
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    *entry = (struct instance_entry){.id = id,
                                     .epoch = ++r->epoch,
                                     .capacity = capacity,
                                     .lease_ms = r->lease_ms,
                                     .suspect_ms = r->suspect_ms,
                                     .connection_lost_at = MSEC_NEVER,
                                     .previous = entry->previous};
    agent_link(r, slot, agent);
    registry_health_move(r, slot, HEALTH_HEALTHY);
    registry_lease_choose(r);
    return slot;
}

void registry_process(struct registry *r, uint32_t slot, struct uuid process)
{
    ASSERT(registry_is_live(r, slot));
    registry_instance_entries(r)[slot].process = process;
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
    const struct instance_entry *entry = &registry_instance_entries(r)[slot];
    *ret = (struct instance_view){.agent = entry->agent,
                                  .id = entry->id,
                                  .process = entry->process,
                                  .epoch = entry->epoch,
                                  .capacity = entry->capacity,
                                  .lanes_up = registry_count_bits(entry->lanes_up),
                                  .outstanding = registry_count_bits(entry->lanes_taken),
                                  .control_up = entry->control_up,
                                  .draining = entry->draining,
                                  .health = entry->health,
                                  .last_seen = entry->last_seen,
                                  .ended = entry->ended,
                                  .full = entry->full_until != 0,
                                  .full_until = entry->full_until,
                                  .full_ms = entry->full_ms,
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
    registry_advance_time(r, now);
    if (!registry_is_live(r, slot)) {
        return;
    }
    remove_id(r, registry_instance_entries(r)[slot].id);
    registry_breaker_end_incarnation(r, slot);
    agent_unlink(r, slot);
    registry_health_move(r, slot, HEALTH_DEAD);
    r->free_from = slot < r->free_from ? slot : r->free_from;
    registry_lease_choose(r);
}

/* ---- lanes ---- */

void registry_lane_set(struct registry *r, uint32_t slot, uint32_t lane, bool up)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    if (lane == REGISTRY_CONTROL_LANE) {
        entry->control_up = up;
        return;
    }
    ASSERT(lane < entry->capacity);
    const uint64_t bit = UINT64_C(1) << lane;
    entry->lanes_up = up ? entry->lanes_up | bit : entry->lanes_up & ~bit;
}

void registry_ended_append(struct registry *r, uint32_t slot)
{
    struct instance_entry *entries = registry_instance_entries(r);
    entries[slot].ended = true;
    entries[slot].ended_at = r->now;
    entries[slot].ended_next = REGISTRY_NONE;
    entries[slot].ended_prev = r->ended_last;
    if (r->ended_last != REGISTRY_NONE) {
        entries[r->ended_last].ended_next = slot;
    } else {
        r->ended_first = slot;
    }
    r->ended_last = slot;
}

void registry_ended_unlink(struct registry *r, uint32_t slot)
{
    struct instance_entry *entries = registry_instance_entries(r);
    struct instance_entry *entry = &entries[slot];
    if (!entry->ended) {
        return;
    }
    if (entry->ended_prev != REGISTRY_NONE) {
        entries[entry->ended_prev].ended_next = entry->ended_next;
    } else {
        r->ended_first = entry->ended_next;
    }
    if (entry->ended_next != REGISTRY_NONE) {
        entries[entry->ended_next].ended_prev = entry->ended_prev;
    } else {
        r->ended_last = entry->ended_prev;
    }
    entry->ended = false;
}

void registry_connections(struct registry *r, uint32_t slot, msec now)
{
    ASSERT(registry_is_live(r, slot));
    const struct instance_entry *entry = &registry_instance_entries(r)[slot];
    registry_advance_time(r, now);
    set_reached(r, slot, entry->lanes_up != 0);
    if (entry->lanes_up != 0 || entry->control_up) {
        registry_ended_unlink(r, slot);
    } else if (!entry->ended && r->lim.ended_ms > 0) {
        registry_ended_append(r, slot);
    }
}

uint32_t registry_take(struct registry *r, uint32_t slot)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    const uint64_t lanes = registry_free_lanes(entry);
    ASSERT(lanes != 0);
    uint32_t lane = 0;
    while ((lanes >> lane & 1) == 0) {
        lane++;
    }
    entry->lanes_taken |= UINT64_C(1) << lane;
    registry_breaker_taken(r, slot, lane);
    return lane;
}

void registry_release(struct registry *r, uint32_t slot, uint32_t lane)
{
    ASSERT(registry_is_live(r, slot));
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    ASSERT(lane < entry->capacity);
    entry->lanes_taken &= ~(UINT64_C(1) << lane);
    registry_breaker_released(r, slot, lane);
}
