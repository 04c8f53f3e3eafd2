/*
 * One cgroup (v2) per agent, where the machine allows it. cgroup.kill ends a whole tree at once,
 * whatever its processes did to their session, parents and environment. Elsewhere every function
 * does nothing and returns its failure value.
 */
#ifndef SPAWN_CGROUP_H
#define SPAWN_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup {
    int dir; /* the cgroup of the spawner; -1 = not available */
};

/* Probes: makes a cgroup, moves a child into it, removes it. Also removes empty old ones. */
void cgroup_probe(struct cgroup *cg);
void cgroup_done(struct cgroup *cg);
/* Makes a cgroup for this instance. Returns its cgroup.procs, to which the child writes "0"; -1 =
 * none. CLOEXEC. */
int cgroup_make(const struct cgroup *cg, const char *instance_id);
/* True when the cgroup exists and the kernel accepted the kill. */
bool cgroup_kill(const struct cgroup *cg, const char *instance_id);
/* True also while its last process is dying; false without a cgroup. */
bool cgroup_has_process(const struct cgroup *cg, const char *instance_id);
/* Does nothing while a process is in it. */
void cgroup_remove(const struct cgroup *cg, const char *instance_id);
/* Limits of an agent's cgroup, which exists; 0 = none. False, and why, when one cannot be set. cpu:
 * hundredths of a processor. */
bool cgroup_limit(const struct cgroup *cg, const char *instance_id, uint64_t memory,
                  uint64_t processes, uint64_t cpu, char *why, size_t size);
#endif
