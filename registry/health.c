/*
 * Leases and health. One suspect_ms and one lease_ms hold for all instances. So the instances of
 * one health, ordered by when they were last seen, are ordered by deadline, and nothing is
 * searched.
 */
#include "protocol/base/assert.h"
#include "registry/registry_internal.h"

static void time_unlink(struct registry *r, uint32_t slot)
{
    struct instance_entry *entries = registry_instance_entries(r);
    const struct instance_entry *entry = &entries[slot];
    if (entry->time_prev != REGISTRY_NONE) {
        entries[entry->time_prev].time_next = entry->time_next;
    } else {
        r->oldest[entry->health] = entry->time_next;
    }
    if (entry->time_next != REGISTRY_NONE) {
        entries[entry->time_next].time_prev = entry->time_prev;
    } else {
        r->newest[entry->health] = entry->time_prev;
    }
}

static void time_append(struct registry *r, uint32_t slot, enum health to)
{
    struct instance_entry *entries = registry_instance_entries(r);
    entries[slot].time_next = REGISTRY_NONE;
    entries[slot].time_prev = r->newest[to];
    if (r->newest[to] != REGISTRY_NONE) {
        entries[r->newest[to]].time_next = slot;
    } else {
        r->oldest[to] = slot;
    }
    r->newest[to] = slot;
}

void registry_lease_choose(struct registry *r)
{
    msec lease = r->lease_ms;
    msec suspect = r->suspect_ms;
    if (r->lim.lease_ms == lease && r->lim.suspect_ms == suspect) {
        return; /* nobody has another one */
    }
    for (uint32_t slot = 0; slot < r->n_slots; slot++) {
        const struct instance_entry *entry = &registry_instance_entries(r)[slot];
        if (entry->health != HEALTH_DEAD && entry->lease_ms > lease) {
            lease = entry->lease_ms;
            suspect = entry->suspect_ms;
        }
    }
    r->lim.lease_ms = lease;
    r->lim.suspect_ms = suspect;
}

void registry_lease_set(struct registry *r, msec lease_ms, msec suspect_ms)
{
    ASSERT(suspect_ms > 0 && suspect_ms < lease_ms);
    r->lease_ms = lease_ms;
    r->suspect_ms = suspect_ms;
    r->lim.lease_ms = r->lim.lease_ms > lease_ms ? r->lim.lease_ms : lease_ms;
    r->lim.suspect_ms = r->lim.lease_ms == lease_ms ? suspect_ms : r->lim.suspect_ms;
    registry_lease_choose(r);
}

void registry_health_move(struct registry *r, uint32_t slot, enum health to)
{
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    if (entry->health != HEALTH_DEAD) {
        time_unlink(r, slot);
    }
    if (to == HEALTH_DEAD) {
        registry_ended_unlink(r, slot);
    }
    if (to != HEALTH_DEAD) {
        time_append(r, slot, to);
        /* SUSPECT keeps last_seen. The oldest healthy instance goes after those that became suspect
         * before it. */
        entry->last_seen = to == HEALTH_HEALTHY ? r->now : entry->last_seen;
    }
    entry->health = to;
}

bool registry_renew_lease(struct registry *r, uint32_t slot, msec now)
{
    registry_advance_time(r, now);
    if (!registry_is_live(r, slot)) {
        return false;
    }
    const bool was_suspect = registry_instance_entries(r)[slot].health == HEALTH_SUSPECT;
    registry_health_move(r, slot, HEALTH_HEALTHY);
    if (registry_instance_entries(r)[slot].ended) { /* it lives: it has its time again */
        registry_ended_unlink(r, slot);
        registry_ended_append(r, slot);
    }
    return was_suspect;
}

/* Returns the deadline of the longest silent instance of a health; MSEC_NEVER when there is none.
 */
static msec due(const struct registry *r, enum health h)
{
    const uint32_t slot = r->oldest[h];
    if (slot == REGISTRY_NONE) {
        return MSEC_NEVER;
    }
    const msec allowed = h == HEALTH_HEALTHY ? r->lim.suspect_ms : r->lim.lease_ms;
    return msec_add(registry_instance_entries(r)[slot].last_seen, allowed);
}

/* When the first of those without a connection has had its time. */
static msec ended_due(const struct registry *r)
{
    return r->ended_first == REGISTRY_NONE
               ? MSEC_NEVER
               : msec_add(registry_instance_entries(r)[r->ended_first].ended_at, r->lim.ended_ms);
}

static msec later(msec at, msec ms, msec now)
{
    return msec_add(at, ms) < now ? at + ms : now;
}

/* All by the same time: the lists keep their order. */
void registry_excuse(struct registry *r, msec now, msec ms)
{
    registry_advance_time(r, now);
    for (uint32_t slot = 0; slot < r->n_slots; slot++) {
        struct instance_entry *entry = &registry_instance_entries(r)[slot];
        if (entry->health != HEALTH_DEAD) {
            entry->last_seen = later(entry->last_seen, ms, r->now);
            entry->ended_at = entry->ended ? later(entry->ended_at, ms, r->now) : 0;
        }
    }
}

msec registry_deadline(const struct registry *r)
{
    const msec suspect = due(r, HEALTH_HEALTHY);
    const msec dead = due(r, HEALTH_SUSPECT);
    const msec ended = ended_due(r);
    const msec silent = suspect < dead ? suspect : dead;
    const msec health = ended < silent ? ended : silent;
    const msec breaker = registry_breaker_deadline(r);
    const msec full = registry_full_deadline(r);
    const msec work = full < breaker ? full : breaker;
    return work < health ? work : health;
}

uint32_t registry_expire(struct registry *r, msec now, enum health *ret_health)
{
    now = registry_advance_time(r, now);
    const msec dead = due(r, HEALTH_SUSPECT);
    const msec suspect = due(r, HEALTH_HEALTHY);
    if (ended_due(r) <= now && r->ended_first != REGISTRY_NONE) {
        *ret_health = HEALTH_DEAD;
        return r->ended_first;
    }
    if (dead <= now && dead != MSEC_NEVER && dead <= suspect) {
        *ret_health = HEALTH_DEAD;
        return r->oldest[HEALTH_SUSPECT];
    }
    if (suspect <= now && suspect != MSEC_NEVER) {
        const uint32_t slot = r->oldest[HEALTH_HEALTHY];
        registry_health_move(r, slot, HEALTH_SUSPECT);
        *ret_health = HEALTH_SUSPECT;
        return slot;
    }
    return REGISTRY_NONE;
}
