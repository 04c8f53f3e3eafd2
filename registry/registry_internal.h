/*
 * The entries of the registry. Private to this room.
 *
 * One block: the head, then five arrays found by offset, so that the block may be copied byte for
 * byte. Every list is intrusive (indexes of entries, REGISTRY_NONE = end). Every lookup is a hash
 * table of indexes.
 */
#ifndef REGISTRY_REGISTRY_INTERNAL_H
#define REGISTRY_REGISTRY_INTERNAL_H

#include <stddef.h>

#include "registry/registry.h"

struct agent_entry {
    char id[LIMIT_ID_BYTES];
    uint32_t id_len;       /* 0 = the index is free */
    uint32_t generation;   /* how often the index was given */
    uint32_t instances;    /* live ones */
    uint32_t reached;      /* those with a work lane up */
    uint32_t first;        /* of the list of its instances, newest first */
    uint32_t n_not_closed; /* instances whose breaker is not CLOSED */
    bool enabled;
    bool configured;
    bool seen; /* an instance registered, or the configuration named it */
    const struct msg_card *card;
    msec absent_since;
    msec unreached_since;
    uint32_t failure_len;
    char failure[REGISTRY_FAILURE_BYTES];
};

/* The previous incarnation in a slot: the results of its attempts may arrive late. */
struct previous_incarnation {
    uint64_t epoch; /* 0 = none */
    uint32_t agent;
    bool failed; /* counted already: a crash is one failure, however many attempts it ended */
};

struct instance_entry {
    msec lease_ms, suspect_ms; /* that it was given */
    struct uuid id;
    struct uuid process; /* nil = not named */
    uint64_t epoch;
    uint64_t lanes_up;    /* bit per work lane */
    uint64_t lanes_taken; /* bit per work lane; stays set in quarantine */
    msec last_seen;
    uint32_t agent;
    uint32_t capacity;
    uint32_t agent_prev, agent_next; /* list of the agent's instances */
    uint32_t time_prev, time_next;   /* list of one health, longest silent first */
    enum health health;              /* HEALTH_DEAD = the slot is free */
    bool control_up;
    bool draining;
    bool reached;                    /* counted in agent_entry.reached */
    bool ended;                      /* in the list of those without a connection */
    msec ended_at;                   /* since when, or when it was last heard of since */
    uint32_t ended_prev, ended_next; /* the longest without one first */
    msec connection_lost_at; /* when replies were last lost; all that are lost at once are one
                                failure */
    msec full_until;         /* it has no place for more before then; 0 = it may have one */
    msec full_ms;            /* how long that is; 0 = it had one the last time */
    struct previous_incarnation previous;
};

/* The entry of the instance in slot i has index i, that of agent a has lim.instances + a. */
struct breaker_entry {
    struct breaker b;
    uint32_t prev, next;
    uint32_t list;       /* the list that it is in, or REGISTRY_NONE */
    uint32_t trial_slot; /* TRIAL: slot and lane of the attempt */
    uint32_t trial_lane;
    uint32_t probe_slot; /* agent in PROBING: the slot that was pinged */
};

/* One list per possible cooldown, each in the order of the deadlines, and one of outstanding
 * probes. So nothing is searched. */
enum { BREAKER_LEVELS = 32, BREAKER_PROBES = BREAKER_LEVELS, BREAKER_LISTS };

struct registry {
    struct registry_limits lim; /* the lease in it is the longest that an instance has */
    msec lease_ms, suspect_ms;  /* of instances that register now */
    msec now;                   /* the latest time seen; it never goes back */
    uint64_t epoch;             /* the last one given */
    uint32_t n_agents;          /* indexes ever used */
    uint32_t n_known;           /* those that have an agent */
    msec absence;               /* registry_absence */
    uint32_t n_slots;           /* slots ever used */
    uint32_t free_from;         /* no slot below it is free */
    uint32_t oldest[HEALTH_COUNT];
    uint32_t newest[HEALTH_COUNT];
    uint32_t ended_first, ended_last;
    uint32_t n_full;     /* instances that are full */
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

/* Returns the lanes that are up and not taken. */
static inline uint64_t registry_free_lanes(const struct instance_entry *entry)
{
    return entry->lanes_up & ~entry->lanes_taken;
}

static inline uint64_t registry_advance_time(struct registry *r, msec now)
{
    r->now = now > r->now ? now : r->now;
    return r->now;
}

/* Returns the number of set bits. The compiler's builtin would be a library call without a hardware
 * flag. */
uint32_t registry_count_bits(uint64_t v);

/* An agent has no instance from now on. */
static inline void registry_note_absence(struct registry *r)
{
    r->absence = r->absence < r->now ? r->absence : r->now;
}

/* full.c: when the first of those that are full is asked again. */
msec registry_full_deadline(const struct registry *r);

/* breakers.c */
void registry_breakers_init(struct registry *r);
bool registry_breaker_allows(const struct registry *r, uint32_t slot);
bool registry_breaker_allows_agent(const struct registry *r, uint32_t agent);
struct breaker_view registry_breaker_view(const struct registry *r, uint32_t slot);
struct breaker_view registry_breaker_agent_view(const struct registry *r, uint32_t agent);
void registry_breaker_taken(struct registry *r, uint32_t slot, uint32_t lane);
void registry_breaker_released(struct registry *r, uint32_t slot, uint32_t lane);
/* Ends the incarnation in the slot, which is still linked to its agent. */
void registry_breaker_end_incarnation(struct registry *r, uint32_t slot);
void registry_breaker_reset_agent(struct registry *r, uint32_t agent);
/* The agent has no instance; results of its last incarnations count for nobody. */
void registry_breaker_forget_agent(struct registry *r, uint32_t agent);
msec registry_breaker_deadline(const struct registry *r);

/* Appends the instance to the list of those without a connection. */
void registry_ended_append(struct registry *r, uint32_t slot);
/* Takes the instance out of the list of those without a connection, if it is in it. */
void registry_ended_unlink(struct registry *r, uint32_t slot);
/* The lease that holds for all, after one came or went. */
void registry_lease_choose(struct registry *r);
/* Moves the entry to the end of its new health's list (HEALTH_DEAD: to none), last seen at r->now.
 */
void registry_health_move(struct registry *r, uint32_t slot, enum health to);
#endif
