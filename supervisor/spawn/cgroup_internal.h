/* What cgroup.c and cgroup_v1.c share. */
#ifndef SPAWN_CGROUP_INTERNAL_H
#define SPAWN_CGROUP_INTERNAL_H

#include "supervisor/spawn/cgroup.h"

enum { CGROUP_NAME_BYTES = 96, CGROUP_PATH_BYTES = 4096 };

/* The inode of this process's pid namespace: two daemons that see the same cgroups may each have a
 * process 7. 0 = not known. */
unsigned long cgroup_pid_namespace(void);
/* The name of an instance's cgroup, baton.NAMESPACE-PID.INSTANCE, and a file in it: "" or "/x". */
void cgroup_name(const char *instance_id, const char *file, char ret_path[CGROUP_NAME_BYTES]);
/* False: errno. */
bool cgroup_write(int dir, const char *path, const char *text);
/* The number of a line as "oom_kill 3" in a file of the instance's cgroup; 0 = there is none. */
uint64_t cgroup_counter(int dir, const char *instance_id, const char *file, const char *line);
/* Removes cgroups of spawners of this pid namespace that were killed; rmdir fails while one has a
 * process. Who lives in another namespace is not known here. */
void cgroup_remove_empty(int dir);

void cgroup_v1_probe(struct cgroup *cg);
/* Makes the cgroup and sets the limit. Returns its cgroup.procs; -1: errno, ENODEV = the
 * controller is not there, or not for this process. */
int cgroup_v1_limit(const struct cgroup *cg, const char *instance_id, enum cgroup_limit which,
                    const char *value, const char *period);
uint64_t cgroup_v1_reached(const struct cgroup *cg, const char *instance_id,
                           enum cgroup_limit which);
void cgroup_v1_remove(const struct cgroup *cg, const char *instance_id);
#endif
