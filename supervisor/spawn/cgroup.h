/*
 * One cgroup (v2) per agent, where the machine lets us: cgroup.kill ends a whole tree at once,
 * whatever it did to its session, parents and environment. Where it is not possible every function
 * does nothing and says so.
 */
#ifndef SPAWN_CGROUP_H
#define SPAWN_CGROUP_H

#include <stdbool.h>

struct cgroup {
    int dir; /* the cgroup of the spawner; -1 = not available */
};

/* Finds out by trying: makes a cgroup, moves a child of ours into it, removes it. Also sweeps empty
 * old ones. */
void cgroup_probe(struct cgroup *cg);
void cgroup_done(struct cgroup *cg);
/* A new cgroup for this instance; returns its cgroup.procs for the child to write "0" to, -1 =
 * none. CLOEXEC. */
int cgroup_make(const struct cgroup *cg, const char *instance_id);
/* True when there is one and the kernel took the order. */
bool cgroup_kill(const struct cgroup *cg, const char *instance_id);
/* Also true of one that dies just now; false when there is no cgroup. */
bool cgroup_has_process(const struct cgroup *cg, const char *instance_id);
/* Fails silently while a process is in it. */
void cgroup_remove(const struct cgroup *cg, const char *instance_id);
#endif
