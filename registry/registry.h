/*
 * The agent registry: cards, instances, leases, health, lanes, circuit breakers, selection. Pure:
 * `now` is a parameter, the caller provides one block of memory, and nothing is logged. The block
 * may be copied byte for byte. Its content is not persisted; registrations rebuild it after a
 * restart. Not thread-safe.
 *
 * An agent is a logical id with a card. An instance is one process of it, with an instance id, an
 * epoch and lanes.
 *
 *    register            silent for suspect_ms             lease over, process ended, deregistered
 *    ---------> HEALTHY ------------------------> SUSPECT ---------------------------------> DEAD
 *                  ^---------- message -------------'                                (slot free)
 *
 * SUSPECT, DEAD and draining instances get no new work.
 */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"
#include "registry/breaker.h"

#define REGISTRY_NONE UINT32_MAX

enum { REGISTRY_FAILURE_BYTES = 600 };

struct registry;
struct msg_card;

enum health { HEALTH_DEAD, HEALTH_HEALTHY, HEALTH_SUSPECT, HEALTH_COUNT };
const char *health_name(enum health h);

struct registry_limits {
    uint32_t agents;    /* <= LIMIT_AGENTS */
    uint32_t instances; /* <= LIMIT_INSTANCES */
    msec lease_ms;
    msec ended_ms;       /* how long it may be without a connection after it had one; 0 = as long as
                            the lease */
    msec suspect_ms;     /* silence after which an instance gets no new work; < lease_ms */
    uint64_t epoch_base; /* given epochs are greater; pass one that no earlier daemon has reached */
    /* An instance that fails this often in a row gets no work for the cooldown; an agent, after
     * twice as many failures. 0 = no breakers. The cooldown doubles up to its maximum (1 <=
     * cooldown <= maximum <= 2^31 * cooldown). breaker_probe_ms >= 1 is the timeout of a probe. */
    uint32_t breaker_failures;
    msec breaker_cooldown_ms, breaker_cooldown_max_ms, breaker_probe_ms;
};

size_t registry_size(const struct registry_limits *lim);
/* mem: registry_size() bytes, owned by the caller, aligned for any type. */
struct registry *registry_init(void *mem, const struct registry_limits *lim);

/* State of a breaker, for people and for the reason why a step waits. */
struct breaker_view {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    msec retry_at;     /* OPEN: when a probe is due; else MSEC_NEVER */
};

/* ---- agents ---- */
struct agent_view {
    struct str id;               /* empty: no agent has this index now */
    const struct msg_card *card; /* NULL until registry_agent_card */
    uint32_t instances;          /* not DEAD */
    bool configured;             /* registry_agent_configure */
    bool seen; /* false: nobody came by this id in the life of this registry; a plan named it, or
                  it is remembered */
    bool expected;        /* it has an instance, or its processes are started: a name to offer */
    bool enabled;         /* false: an operator took the agent out of service */
    msec unreached_since; /* since when no instance has a work lane up; MSEC_NEVER while one has */
    msec absent_since;  /* when the last instance left or the agent was added; MSEC_NEVER while one
                           is live */
    struct str failure; /* why none of its processes is started any more; empty = they are */
    struct breaker_view breaker; /* its own; or, when none of its instances is CLOSED, that of the
                                    instance that will get work first */
};

/* Returns the agent with this id, or REGISTRY_NONE. */
uint32_t registry_agent(const struct registry *r, struct str id);
/* The same, of an agent that was seen. */
uint32_t registry_agent_seen(const struct registry *r, struct str id);
/* Returns the agent, added when it is new, at the lowest free index; the id is copied.
 * REGISTRY_NONE when full, or when the id is empty or over LIMIT_ID_BYTES. */
uint32_t registry_agent_add(struct registry *r, struct str id, msec now);
/* Agents are among 0 .. n-1; an index whose agent was forgotten has an empty id. */
uint32_t registry_agents(const struct registry *r);
uint32_t registry_agents_known(const struct registry *r); /* indexes that have an agent */
struct agent_view registry_agent_view(const struct registry *r, uint32_t agent);
/* Returns the first agent from this index on that is expected; REGISTRY_NONE = none is. */
uint32_t registry_agent_expected(const struct registry *r, uint32_t from);
/* Counts how often the index was given to an agent: what others keep by index belongs to it only
 * while this number is the same. */
uint32_t registry_agent_generation(const struct registry *r, uint32_t agent);
/* The same for an agent that the configuration names: it is never forgotten. */
uint32_t registry_agent_configure(struct registry *r, struct str id, msec now);
/* The configuration names the agent no more: it may be forgotten. No-op when there is none. */
void registry_agent_unconfigure(struct registry *r, struct str id);
/* Returns since when some agent is absent that the owner has not looked at; MSEC_NEVER = none is.
 * The owner forgets those that nobody needs, and sets when it wants to look again. */
msec registry_absence(const struct registry *r);
void registry_absence_set(struct registry *r, msec since);
/* Frees the index of an agent without instances; another agent may get it. The caller has nothing
 * that names the index any more. */
void registry_agent_forget(struct registry *r, uint32_t agent);
/* Sets the card, which is borrowed and must live until it is replaced. */
void registry_agent_card(struct registry *r, uint32_t agent, const struct msg_card *card);
/* The same for an agent that came in the life of an earlier daemon: it is not seen by that. */
void registry_agent_recall(struct registry *r, uint32_t agent, const struct msg_card *card);
/* Enabling also closes the agent's breakers, because an operator overrides past failures. */
void registry_agent_enable(struct registry *r, uint32_t agent, bool enabled);
/* Records why no process of the agent is started any more; empty = they are started again. The text
 * is copied and cut to REGISTRY_FAILURE_BYTES between characters; it must be UTF-8. An instance
 * that a person starts does not change it, nor does its leaving. */
void registry_agent_failed(struct registry *r, uint32_t agent, struct str why);
/* Returns the first enabled agent that was seen and whose card has the skill, preferring one with
 * live instances. */
uint32_t registry_agent_with_skill(const struct registry *r, struct str skill);

/* ---- instances ---- */
struct instance_view {
    uint32_t agent;
    struct uuid id;
    struct uuid process; /* nil: it did not name its process */
    uint64_t epoch;
    uint32_t capacity;
    uint32_t lanes_up;    /* work lanes that are connected and greeted */
    uint32_t outstanding; /* work lanes taken, with those in quarantine */
    bool control_up;
    bool draining;
    enum health health;
    msec last_seen;
    bool ended;               /* all its connections have ended, and it had some */
    bool full;                /* it gets no work now, because others have its places */
    msec full_until, full_ms; /* until when, and how long that is in all; 0 = it is not */
    struct breaker_view breaker;
};

/* Registers an instance. The same id again is a new incarnation in the same slot with the next
 * epoch: its lanes are down and free, its breaker is closed, and the old epoch is fenced. Returns
 * REGISTRY_NONE when full. capacity is 1..LIMIT_CAPACITY; the caller has checked it. */
uint32_t registry_register(struct registry *r, uint32_t agent, struct uuid id, uint32_t capacity,
                           msec now);
/* Names the process of an instance that has just registered. */
void registry_process(struct registry *r, uint32_t slot, struct uuid process);
uint32_t registry_instance(const struct registry *r, struct uuid id); /* slot, or REGISTRY_NONE */
uint32_t registry_instances(const struct registry *r); /* upper bound of slots in use */
/* Returns false when the slot is free. */
bool registry_instance_view(const struct registry *r, uint32_t slot, struct instance_view *ret);
/* True when the slot holds a live instance of exactly this epoch. */
bool registry_is_current(const struct registry *r, uint32_t slot, uint64_t epoch);
/* Renews the lease. Returns true when the instance was SUSPECT and is HEALTHY again. The caller
 * rejects stale epochs. */
bool registry_renew_lease(struct registry *r, uint32_t slot, msec now);
void registry_drain(struct registry *r, uint32_t slot);
/* Frees the slot; no-op when it is free. */
void registry_remove(struct registry *r, uint32_t slot, msec now);

/* ---- lanes and credits ---- */
#define REGISTRY_CONTROL_LANE                                                                      \
    64u /* the lane index of the control lane; work lanes are 0 .. capacity-1 */
void registry_lane_set(struct registry *r, uint32_t slot, uint32_t lane, bool up);
/* Call it after registry_lane_set: the first connection has come, or the last one has ended. Then
 * the lease is over ended_ms later, unless a connection or a message comes. */
void registry_connections(struct registry *r, uint32_t slot, msec now);
/* Returns the best instance that is not full, has a free lane and a breaker that allows work: most
 * free lanes, then fewest outstanding, then lowest slot. Returns REGISTRY_NONE when there is none,
 * or when the agent's breaker allows no work. */
uint32_t registry_select(const struct registry *r, uint32_t agent);
/* Takes and returns the lowest free lane that is up; asserts that there is one. */
uint32_t registry_take(struct registry *r, uint32_t slot);
/* Frees a lane; no-op when it is not taken. A lane that went down stays taken (in quarantine) until
 * it is released. */
void registry_release(struct registry *r, uint32_t slot, uint32_t lane);

/* ---- places that others have ---- */
/*
 * An instance may serve several supervisors, and then has no place for all that its lanes could
 * carry. When it says so it gets no work for REGISTRY_FULL_MS, the next time in a row for half as
 * long again, at most for REGISTRY_FULL_MAX_MS. Answers that come while it waits count once. slot
 * must be live.
 */
enum { REGISTRY_FULL_MS = 50, REGISTRY_FULL_MAX_MS = 1000 };
void registry_full(struct registry *r, uint32_t slot, msec now);
/* A place of the instance became free: it may get work at once. No-op when it is not live. */
void registry_not_full(struct registry *r, uint32_t slot);
/* Returns the agent of an instance whose wait is over at `now`, or REGISTRY_NONE. Call it until
 * then. */
uint32_t registry_full_due(struct registry *r, msec now);

/* ---- breakers (breaker.h) ---- */
/*
 * Reports the end of an attempt on this incarnation (CLASS_NONE: success). If the incarnation has
 * gone, the result counts for the agent alone, and all its failures count once. Replies of one
 * incarnation that are lost at the same time also count once. Returns the agent when more work may
 * start than before, else REGISTRY_NONE.
 */
uint32_t registry_breaker_result(struct registry *r, uint32_t slot, uint64_t epoch,
                                 enum err_class cls, msec now);
/* Returns the next instance to ping, or REGISTRY_NONE. The caller reports the outcome with
 * registry_breaker_probed; after breaker_probe_ms without one the probe has failed. */
uint32_t registry_breaker_due(struct registry *r, msec now);
/* Reports the outcome of a ping. slot must be live. Returns as registry_breaker_result does. An
 * answer that comes too late changes nothing. */
uint32_t registry_breaker_probed(struct registry *r, uint32_t slot, bool ok, msec now);
/* Returns how many breakers of instances and agents have gone from closed to open. */
uint64_t registry_breakers_opened(const struct registry *r);

/* ---- time ---- */
/*
 * Another lease, for instances that register from now on; suspect_ms < lease_ms. The ones before
 * keep theirs. One lease holds for all at a time, the longest that one of them was given: a shorter
 * one counts when the last instance with the longer one has gone.
 */
void registry_lease_set(struct registry *r, msec lease_ms, msec suspect_ms);
/* The owner read nothing for so long: in this time nobody was silent. */
void registry_excuse(struct registry *r, msec now, msec ms);
/* Returns when registry_expire, registry_breaker_due or registry_full_due has something to report.
 */
msec registry_deadline(const struct registry *r);
/* Returns the next instance whose health changes at `now`, with the new health, or REGISTRY_NONE.
 * SUSPECT is already applied. For DEAD the caller settles its work and calls registry_remove. */
uint32_t registry_expire(struct registry *r, msec now, enum health *ret_health);
#endif
