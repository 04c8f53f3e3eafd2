/*
 * The rows of the registry. Private to this folder: outside, only registry.h is included.
 *
 * One block: the head, then five arrays found by offset, so that the block may be copied byte for
 * byte (explorer). Every list below is intrusive (row indexes, REGISTRY_NONE = end), every lookup a
 * hash table of row indexes.
 */
#ifndef REGISTRY_REGISTRY_INTERNAL_H
#define REGISTRY_REGISTRY_INTERNAL_H

#include <stddef.h>

#include "registry/registry.h"

struct agent_entry {
    char id[LIMIT_ID_BYTES];
    uint32_t id_len;
    uint32_t instances;    /* live ones */
    uint32_t first;        /* of its instances; newest first */
    uint32_t n_not_closed; /* instances whose breaker is not CLOSED */
    bool enabled;
    const struct msg_card *card;
    msec absent_since;
    uint32_t failure_len;
    char failure[REGISTRY_FAILURE_BYTES];
};

/* The incarnation that had the slot before: how its attempts ended may be known only now. */
struct previous_incarnation {
    uint64_t epoch; /* 0 = none */
    uint32_t agent;
    bool failed; /* counted once already: a crash is one failure, however many attempts it ended */
};

struct instance_entry {
    struct uuid id;
    uint64_t epoch;
    uint64_t lanes_up;    /* bit per work lane */
    uint64_t lanes_taken; /* bit per work lane; stays set while a lane is quarantined */
    msec last_seen;
    uint32_t agent;
    uint32_t capacity;
    uint32_t agent_prev, agent_next; /* among the instances of its agent */
    uint32_t time_prev, time_next;   /* among those of its health, longest silent first */
    enum health health;              /* HEALTH_DEAD = the slot is free */
    bool control_up;
    bool draining;
    msec connection_lost_at; /* when replies were last lost: all that breaks at once is one failure
                              */
    struct previous_incarnation previous;
};

/* Of the instance in slot i: row i; of agent a: row lim.instances + a. */
struct breaker_entry {
    struct breaker b;
    uint32_t prev, next;
    uint32_t list;       /* in which it waits for its time; REGISTRY_NONE */
    uint32_t trial_slot; /* TRIAL: where the attempt went */
    uint32_t trial_lane;
    uint32_t probe_slot; /* of an agent in PROBING: who was asked */
};

/* A list per cooldown that there can be, in the order of the deadlines, and one of the probes that
 * are out: nothing is searched. */
enum { BREAKER_LEVELS = 32, BREAKER_PROBES = BREAKER_LEVELS, BREAKER_LISTS };

struct registry {
    struct registry_limits lim;
    msec now;       /* the latest seen: time never runs back in here */
    uint64_t epoch; /* last one given */
    uint32_t n_agents;
    uint32_t n_slots; /* slots ever used */
    uint32_t oldest[HEALTH_COUNT];
    uint32_t newest[HEALTH_COUNT];
    uint32_t agent_mask; /* size of the table - 1 */
    uint32_t instance_mask;
    uint32_t agents_at, instances_at, breakers_at, agent_table_at, instance_table_at; /* offsets */
    uint32_t breaker_first[BREAKER_LISTS];
    uint32_t breaker_last[BREAKER_LISTS];
    uint64_t breakers_opened;
};

static inline struct agent_entry *registry_agent_entries(const struct registry *r)
{
    return (struct agent_entry *)((uintptr_t)r + r->agents_at);
}

static inline struct instance_entry *registry_instance_entries(const struct registry *r)
{
    return (struct instance_entry *)((uintptr_t)r + r->instances_at);
}

static inline struct breaker_entry *registry_breaker_entries(const struct registry *r)
{
    return (struct breaker_entry *)((uintptr_t)r + r->breakers_at);
}

static inline uint32_t *registry_agent_table(const struct registry *r)
{
    return (uint32_t *)((uintptr_t)r + r->agent_table_at);
}

static inline uint32_t *registry_instance_table(const struct registry *r)
{
    return (uint32_t *)((uintptr_t)r + r->instance_table_at);
}

static inline bool registry_is_live(const struct registry *r, uint32_t slot)
{
    return slot < r->n_slots && registry_instance_entries(r)[slot].health != HEALTH_DEAD;
}

/* Lanes that are up and free. */
static inline uint64_t registry_free_lanes(const struct instance_entry *entry)
{
    return entry->lanes_up & ~entry->lanes_taken;
}

static inline uint64_t registry_advance_time(struct registry *r, msec now)
{
    r->now = now > r->now ? now : r->now;
    return r->now;
}

/* Bits set. Not the compiler's builtin: without a hardware flag that is a library call. */
uint32_t registry_count_bits(uint64_t v);

/* breakers.c */
void registry_breakers_init(struct registry *r);
bool registry_breaker_allows(const struct registry *r, uint32_t slot);
bool registry_breaker_allows_agent(const struct registry *r, uint32_t agent);
struct breaker_view registry_breaker_view(const struct registry *r, uint32_t slot);
struct breaker_view registry_breaker_agent_view(const struct registry *r, uint32_t agent);
void registry_breaker_taken(struct registry *r, uint32_t slot, uint32_t lane);
void registry_breaker_released(struct registry *r, uint32_t slot, uint32_t lane);
/* The incarnation in the slot ends: it is still linked to its agent. */
void registry_breaker_end_incarnation(struct registry *r, uint32_t slot);
void registry_breaker_reset_agent(struct registry *r, uint32_t agent);
msec registry_breaker_deadline(const struct registry *r);

/* Puts the row at the newest end of its new health's list (HEALTH_DEAD: of none), as last seen at
 * r->now. */
void registry_health_move(struct registry *r, uint32_t slot, enum health to);
#endif
