/* Shared by fleet.c (what runs), fleet_reload.c (another configuration) and fleet_order.c
 * (operators). */
#ifndef SUPERVISOR_FLEET_INTERNAL_H
#define SUPERVISOR_FLEET_INTERNAL_H

#include "protocol/base/clock.h"
#include "supervisor/children.h"
#include "supervisor/fleet.h"
#include "supervisor/spawn/roll.h"
#include "supervisor/spawn/scale.h"

struct fleet_agent {
    char id[LIMIT_ID_BYTES + 1];
    struct scale scale;
    struct roll rolls[CHILDREN_PER_AGENT]; /* by number - 1 */
    bool at_once;                          /* what is under way does not wait for work */
};

struct fleet {
    struct engine *engine;
    struct spawn *spawn;
    const struct config *config;
    struct fleet_agent *agents[LIMIT_AGENTS];
    uint32_t n;
    bool started;
    msec look_at; /* when something may be due; MSEC_NEVER = nothing is under way */
};

struct fleet_process {
    uint32_t number;
    char name[SPAWN_NAME_MAX + 1];
    struct roll_process is;
    bool parked, stale;
};

const struct config_agent *fleet_config_agent(const struct config *c, struct str agent_id,
                                              uint32_t *ret_ix);
struct fleet_agent *fleet_agent_find(struct fleet *f, const char *agent_id);
/* NULL: there is no memory, which is logged. */
struct fleet_agent *fleet_agent_add(struct fleet *f, const char *agent_id);
uint32_t fleet_processes(struct fleet *f, struct fleet_agent *a,
                         struct fleet_process ret[CHILDREN_PER_AGENT]);
/* Adds or changes one process; false: it was logged why not. */
bool fleet_put(struct fleet *f, uint32_t agent, uint32_t number, enum spawn_put *ret);
#endif
