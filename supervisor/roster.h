/*
 * Which agent processes should run, and how they get there: the configuration, its reloads, orders
 * of operators, and the number of processes by the steps that wait. The rules are pure
 * (spawn/roll.h, spawn/scale.h, spawn/group.h); this is what carries them out.
 */
#ifndef SUPERVISOR_ROSTER_H
#define SUPERVISOR_ROSTER_H

#include "supervisor/config/config.h"
#include "supervisor/dispatch/process.h"
#include "supervisor/engine/engine.h"
#include "supervisor/spawn/spawn.h"

struct roster;

/* Engine, spawn and config are borrowed. BT_NOMEM. */
BT_MUST_CHECK enum bt_code roster_new(struct engine *engine, struct spawn *spawn,
                                      const struct config *c, struct roster **ret,
                                      struct bt_error *err);
/* In the first cycle: the agents of the configuration are known. */
void roster_introduce(struct roster *f);
/* Starts the processes, or adopts those of the daemon before. Errors as spawn_set_children. */
BT_MUST_CHECK enum bt_code roster_start(struct roster *f, struct bt_error *err);
/* Another configuration, which lives as long as the roster: agents are added, changed and removed;
 * the others are not touched. Within a cycle. */
void roster_reload(struct roster *f, const struct config *c);
/* Within each cycle: carries out what is due. */
void roster_cycle(struct roster *f);
msec roster_deadline(const struct roster *f);
const struct config *roster_config(const struct roster *f);
/* Why the agent is not started at all; NULL = it is. */
const char *roster_held_back(const struct roster *f, struct str agent_id);
/* A group has given up: logs it. True: the daemon must end with it. */
bool roster_group_gave_up(const struct roster *f, const char *group);

/* Of struct process_hooks; `of` is the roster. */
enum bt_code roster_order(void *of, const struct process_order *order, struct process_names *ret,
                          struct bt_error *err);
bool roster_view(void *of, struct str agent_id, uint32_t ix, struct process_view *ret);
#endif
