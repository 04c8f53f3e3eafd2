/* The daemon's agents without processes: the test is the spawner (tests/unit/spawn/spawn_rig.h),
 * and plays the agents over the house. The configuration is a file of the test. */
#ifndef UNIT_DAEMON_ROSTER_RIG_H
#define UNIT_DAEMON_ROSTER_RIG_H

#include "supervisor/processes.h"
#include "supervisor/reload.h"
#include "tests/support/house/house.h"
#include "tests/unit/spawn/spawn_rig.h"

struct agents_world {
    struct house *h;
    struct config *config; /* of the start */
    struct config_request request;
    struct reload reload;
    struct roster *roster;
    struct keeper keeper;
    struct processes processes;
    char file[128];
};
extern struct agents_world world;
/* Of a node with so many shards, of which the world is the second; 0 = there is one. */
extern uint32_t world_shards;

/* A daemon with this configuration (YAML), whose processes are started. */
void world_open(const char *yaml);
/* The same, but its processes are not started yet. */
void world_open_only(const char *yaml);
void world_close(void);
/* A new daemon finds this process of the one before; its processes are not started yet. */
void world_again(const struct rig_child *living);
void world_write(const char *yaml);
/* A cycle of the daemon: reports of the spawner, and what is due of processes. */
void world_cycle(void);
void world_pass(msec ms);
/* The next order must start this process; its instance is in `instance`. */
void world_started(const char *name, char instance[UUID_TEXT_LEN + 1]);
/* It runs, and its agent registers. No order may be left. */
void world_registers(const char *name, pid_t pid, const char *instance);
/* Both. */
void world_up(const char *name, pid_t pid, char instance[UUID_TEXT_LEN + 1]);
/* The process ends with the status of waitpid. */
void world_exit(const char *instance, pid_t pid, int status);
/* "calc#1 starting; calc#2 up drains; ": name, state, what is done with it. */
const char *world_processes(const char *agent);
/* Orders the processes of an agent; process "" = all. */
enum bt_code world_order(enum process_verb verb, const char *agent, const char *process, bool now,
                         struct bt_error *err);
#endif
