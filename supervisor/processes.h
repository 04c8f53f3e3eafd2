/* Between the engine, which knows instances, and the spawner, which knows processes: ends of
 * processes become events of the core, its word that one must end becomes the end of a process
 * tree. */
#ifndef SUPERVISOR_PROCESSES_H
#define SUPERVISOR_PROCESSES_H

#include "supervisor/auth/processes.h"
#include "supervisor/auth/store.h"
#include "supervisor/dispatch/process.h"
#include "supervisor/engine/engine.h"
#include "supervisor/keeper.h"
#include "supervisor/roster.h"
#include "supervisor/spawn/spawn.h"

struct processes {
    struct engine *engine; /* borrowed, as the next two */
    struct spawn *spawn;
    struct roster *roster;
    struct keeper *keeper;
    char escalated[SPAWN_REASON_MAX]; /* a group gave up that may not; "" = none did */
    struct process_keys keys;
    uint32_t known; /* spawn_changes, when the credentials were last given */
};

/* Starts the processes of the configuration, each with a credential of its own; *p stays where it
 * is. */
BT_MUST_CHECK enum bt_code processes_start(struct processes *p, struct bt_error *err);
/* After it, when these may have been started by another process: those that have registered here
 * are up. */
void processes_adopted(struct processes *p);
/* Opens the keys of credentials; before processes_credentials and processes_start. */
BT_MUST_CHECK enum bt_code processes_open(struct processes *p, struct bt_error *err);
/* Before the requests of a cycle: the credentials of the processes that live now are valid, those
 * of others are not. */
void processes_credentials(struct processes *p, struct auth_store *store);
/* What the engine may ask; valid as long as *p. */
struct process_hooks processes_hooks(struct processes *p);
/* In the first cycle, before anything is recovered: no plan waits for agents that are held back. */
void processes_hold_back(struct processes *p);
/* Within a cycle: takes the spawner's reports (readable: there are some), does what is due,
 * and feeds the core. */
void processes_cycle(struct processes *p, bool readable);
/* Attempts and questions that are out at all instances. */
uint32_t processes_outstanding(const struct processes *p);
#endif
