/* Shared by roster.c (what runs), roster_reload.c (another configuration) and roster_order.c
 * (operators). */
#ifndef SUPERVISOR_ROSTER_INTERNAL_H
#define SUPERVISOR_ROSTER_INTERNAL_H

#include "protocol/base/clock.h"
#include "supervisor/children.h"
#include "supervisor/roster.h"
#include "supervisor/spawn/roll.h"
#include "supervisor/spawn/scale.h"

struct roster_agent {
    char id[LIMIT_ID_BYTES + 1];
    struct scale scale;
    struct roll rolls[CHILDREN_PER_AGENT]; /* by number - 1 */
    bool at_once;                          /* what is under way does not wait for work */
};

struct roster {
    struct engine *engine;
    struct spawn *spawn;
    const struct config *config;
    struct roster_agent *agents[LIMIT_AGENTS];
    uint32_t n;
    bool started;
    msec look_at; /* when something may be due; MSEC_NEVER = nothing is under way */
};

struct roster_process {
    uint32_t number;
    char name[SPAWN_NAME_MAX + 1];
    struct roll_process is;
    bool parked, stale;
};

const struct config_agent *roster_config_agent(const struct config *c, struct str agent_id,
                                               uint32_t *ret_ix);
struct roster_agent *roster_agent_find(struct roster *f, const char *agent_id);
/* NULL: there is no memory, which is logged. */
struct roster_agent *roster_agent_add(struct roster *f, const char *agent_id);
uint32_t roster_processes(struct roster *f, struct roster_agent *a,
                          struct roster_process ret[CHILDREN_PER_AGENT]);
/* Adds or changes one process; SPAWN_PUT_SAME also when it was logged why not. */
enum spawn_put roster_put(struct roster *f, uint32_t agent, uint32_t number);
#endif
