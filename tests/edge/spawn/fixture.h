/* A state directory, the daemon's side in the test process, real agents. Every wait has a
 * deadline. */
#ifndef EDGE_SPAWN_FIXTURE_H
#define EDGE_SPAWN_FIXTURE_H

#include <stdbool.h>

#include "supervisor/spawn/spawn.h"
#include "tests/support/cmocka.h"

enum { WAIT_MS = 20000, PATH_BYTES = 512 };

struct world {
    char dir[PATH_BYTES];
    char fifo_path[PATH_BYTES + 8];
    int fifo;
    char line[256]; /* bytes of the FIFO that were read ahead */
    size_t line_n;
    int fds_before;
    bool no_cgroup;
    bool register_all; /* report each agent as registered as soon as it exists */
    struct spawn *spawn;
    struct spawn_event last; /* set by wait_event */
    uint32_t seen[SPAWN_EVENT_COUNT];
};

/*
 * Every test program is also the spawner and the daemon that dies: call this first in main. -1 =
 * neither; run the tests.
 */
int special_main(int argc, char **argv);

int world_setup(void **state); /* with cgroups where they work */
int world_setup_no_cgroup(void **state);
/* Checks that no agent, spawner, zombie or descriptor is left. */
int world_teardown(void **state);

/* A spec with argv {agent program, role, FIFO, extra}; valid until the next call. */
struct spawn_spec agent_spec(struct world *w, const char *name, const char *role,
                             const char *extra);
void world_open(struct world *w, const struct spawn_spec *specs, size_t n);
/* Runs cycles until an event of this type; it is in w->last. Fails the test after WAIT_MS. */
void wait_event(struct world *w, enum spawn_event_type type);
/* Runs cycles for a fixed time, or until idle. */
void turn_until_idle(struct world *w);
/* The next line of pids that an agent wrote; runs cycles meanwhile. */
void wait_line(struct world *w, pid_t *ret_pid, pid_t *ret_other);
/* Waits on a pidfd; fails the test when the process outlives within_ms. Runs cycles when a world is
 * open. */
void wait_gone(struct world *w, pid_t pid, msec within_ms);
bool is_alive(pid_t pid);
/* Starts a daemon in a process of its own with two children, "a#1" (wait) and "b#1" (daemon). */
pid_t start_daemon(struct world *w);
pid_t start_daemon_of(struct world *w, const char *role_a, const char *role_b);
#endif
