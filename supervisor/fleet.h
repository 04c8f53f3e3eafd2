/*
 * Which agent processes should run, and how they get there: the configuration, its reloads, orders
 * of operators, and the number of processes by the steps that wait. The rules are pure
 * (spawn/roll.h, spawn/scale.h, spawn/group.h); this is what carries them out.
 */
#ifndef SUPERVISOR_FLEET_H
#define SUPERVISOR_FLEET_H

#include "supervisor/config/config.h"
#include "supervisor/dispatch/process.h"
#include "supervisor/engine/engine.h"
#include "supervisor/spawn/spawn.h"

struct fleet;

/* Engine, spawn and config are borrowed. BT_NOMEM. */
BT_MUST_CHECK enum bt_code fleet_new(struct engine *engine, struct spawn *spawn,
                                     const struct config *c, struct fleet **ret,
                                     struct bt_error *err);
/* In the first cycle: the agents of the configuration are known. */
void fleet_introduce(struct fleet *f);
/* Starts the processes, or adopts those of the daemon before. Errors as spawn_set_children. */
BT_MUST_CHECK enum bt_code fleet_start(struct fleet *f, struct bt_error *err);
/* Another configuration, which lives as long as the fleet: agents are added, changed and removed;
 * the others are not touched. Within a cycle. */
void fleet_reload(struct fleet *f, const struct config *c);
/* Within each cycle: carries out what is due. */
void fleet_cycle(struct fleet *f);
msec fleet_deadline(const struct fleet *f);
const struct config *fleet_config(const struct fleet *f);
/* Why the agent is not started at all; NULL = it is. */
const char *fleet_held_back(const struct fleet *f, struct str agent_id);
/* A group has given up: logs it. True: the daemon must end with it. */
bool fleet_group_gave_up(const struct fleet *f, const char *group);

/* Of struct process_hooks; `of` is the fleet. */
enum bt_code fleet_order(void *of, const struct process_order *order, struct process_names *ret,
                         struct bt_error *err);
bool fleet_view(void *of, struct str agent_id, uint32_t ix, struct process_view *ret);
#endif
