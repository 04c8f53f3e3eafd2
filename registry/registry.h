/*
 * Who exists, what they can do, whether to trust them. Pure: no clock (now is a parameter), no
 * allocation (the caller gives one block, which may be copied byte for byte), no log. Soft state:
 * rebuilt by registrations after a restart.
 *
 * An agent is a logical id with a card; an instance is one process of it with an instance id, an
 * epoch and lanes.
 *
 *   register            heartbeat late by suspect_ms       lease over / process gone / deregistered
 *   ---------> HEALTHY ------------------------> SUSPECT
 * ------------------------------------------> DEAD (slot freed)
 *                 ^------- heartbeat -------------'   no new work goes to SUSPECT, DEAD or draining
 * instances
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
    msec suspect_ms;     /* silence after which an instance gets no new work; < lease_ms */
    uint64_t epoch_base; /* epochs given are greater than this: pass one that no earlier daemon
                            reached */
    /* An instance that fails so often in a row gets no work for the cooldown, an agent that fails
     * twice as often neither; 0 = no breakers. The cooldown doubles up to its maximum (1 <=
     * cooldown
     * <= maximum <= 2^31 * cooldown). breaker_probe_ms >= 1: how long a probe may take. */
    uint32_t breaker_failures;
    msec breaker_cooldown_ms, breaker_cooldown_max_ms, breaker_probe_ms;
};

size_t registry_size(const struct registry_limits *lim);
/* mem: registry_size() bytes, owned by the caller, aligned for any type. */
struct registry *registry_init(void *mem, const struct registry_limits *lim);

/* For people, and for why a step waits. */
struct breaker_view {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    msec retry_at;     /* OPEN: when a probe is asked for; MSEC_NEVER otherwise */
};

/* ---- agents ---- */
struct agent_view {
    struct str id;
    const struct msg_card *card; /* NULL until one was set */
    uint32_t instances;          /* not DEAD */
    bool enabled;                /* an operator may take an agent out of service */
    msec absent_since;  /* when the last instance went (or the agent was made known); MSEC_NEVER
                           while present */
    struct str failure; /* why no process of it is started any more; empty = one may come */
    struct breaker_view breaker; /* its own; or, when none of its instances is CLOSED, that of the
                                    one that is nearest to work again */
};

/* Finds; REGISTRY_NONE when unknown. */
uint32_t registry_agent(const struct registry *r, struct str id);
/* Finds or adds (the id is copied); REGISTRY_NONE when full, or when the id is empty or over
 * LIMIT_ID_BYTES. */
uint32_t registry_agent_add(struct registry *r, struct str id, msec now);
uint32_t registry_agents(const struct registry *r); /* agents are 0 .. n-1, never removed */
struct agent_view registry_agent_view(const struct registry *r, uint32_t agent);
/* The card is borrowed: it must live until it is replaced. */
void registry_agent_card(struct registry *r, uint32_t agent, const struct msg_card *card);
/* Enabling also closes its breakers: a person's word is worth more than what was seen before. */
void registry_agent_enable(struct registry *r, uint32_t agent, bool enabled);
/* No process of it will be started any more, and why (copied, cut to REGISTRY_FAILURE_BYTES between
 * characters; valid UTF-8); empty = that is over. An instance that registers and leaves again, as
 * one that a person started, changes nothing about it. */
void registry_agent_failed(struct registry *r, uint32_t agent, struct str why);
/* First agent (lowest index, enabled, with a card) that has the skill, preferring one with live
 * instances. */
uint32_t registry_agent_with_skill(const struct registry *r, struct str skill);

/* ---- instances ---- */
struct instance_view {
    uint32_t agent;
    struct uuid id;
    uint64_t epoch;
    uint32_t capacity;
    uint32_t lanes_up;    /* work lanes whose pipe exists and that were greeted */
    uint32_t outstanding; /* work lanes taken, quarantined ones included */
    bool control_up;
    bool draining;
    enum health health;
    msec last_seen;
    struct breaker_view breaker;
};

/* The same id again = a new incarnation in the same slot with the next epoch: lanes start down and
 * free, its breaker closed, the old epoch is fenced. REGISTRY_NONE when full. capacity
 * 1..LIMIT_CAPACITY (assert: the edge checks). */
uint32_t registry_register(struct registry *r, uint32_t agent, struct uuid id, uint32_t capacity,
                           msec now);
uint32_t registry_instance(const struct registry *r, struct uuid id); /* slot, or REGISTRY_NONE */
uint32_t registry_instances(const struct registry *r); /* upper bound of slots in use */
/* False when the slot is free. */
bool registry_instance_view(const struct registry *r, uint32_t slot, struct instance_view *ret);
/* True when slot holds a live instance of exactly this epoch. */
bool registry_is_current(const struct registry *r, uint32_t slot, uint64_t epoch);
/* Renews the lease; true when it was SUSPECT and is HEALTHY again. Stale epochs are the caller's to
 * refuse. */
bool registry_renew_lease(struct registry *r, uint32_t slot, msec now);
void registry_drain(struct registry *r, uint32_t slot);
/* Frees the slot; one that is free already stays free. */
void registry_remove(struct registry *r, uint32_t slot, msec now);

/* ---- lanes and credits ---- */
#define REGISTRY_CONTROL_LANE                                                                      \
    64u /* the lane index of the control lane; work lanes are 0 .. capacity-1 */
void registry_lane_set(struct registry *r, uint32_t slot, uint32_t lane, bool up);
/* The best instance with a free credit whose breaker lets work through: most free credits, then
 * least outstanding, then lowest slot; REGISTRY_NONE when there is none, or when the agent's
 * breaker lets none through. */
uint32_t registry_select(const struct registry *r, uint32_t agent);
/* Takes the lowest free lane that is up; asserts that there is one. */
uint32_t registry_take(struct registry *r, uint32_t slot);
/* Frees it; a lane that is not taken stays as it is. A lane that went down stays taken
 * (quarantined) until released. */
void registry_release(struct registry *r, uint32_t slot, uint32_t lane);

/* ---- breakers (breaker.h) ---- */
/* How an attempt of this incarnation ended (CLASS_NONE: it did what it should). The incarnation may
 * have gone since; then it counts for the agent alone, and all that failed with it counts once. So
 * do replies of one incarnation that are lost at the same time.
 * Gives the agent when more work may go out than before, else REGISTRY_NONE. */
uint32_t registry_breaker_result(struct registry *r, uint32_t slot, uint64_t epoch,
                                 enum err_class cls, msec now);
/* The next instance that is to be pinged; REGISTRY_NONE when there is none left. The answer, or
 * that there is none, comes by registry_breaker_probed, else breaker_probe_ms counts as none. */
uint32_t registry_breaker_due(struct registry *r, msec now);
/* slot must be live. Gives the agent as registry_breaker_result does. An answer that nobody waits
 * for any more changes nothing. */
uint32_t registry_breaker_probed(struct registry *r, uint32_t slot, bool ok, msec now);
/* How many went from closed to open so far, of instances and agents. */
uint64_t registry_breakers_opened(const struct registry *r);

/* ---- time ---- */
/* When registry_expire or registry_breaker_due has something to say. */
msec registry_deadline(const struct registry *r);
/* Next instance whose health must change at `now`, with the new health (SUSPECT: applied; DEAD: the
 * caller removes it with registry_remove after acting). REGISTRY_NONE when there is none left. */
uint32_t registry_expire(struct registry *r, msec now, enum health *ret_health);
#endif
