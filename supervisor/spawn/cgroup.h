/*
 * One cgroup (v2) per agent, where the machine allows it. cgroup.kill ends a whole tree at once,
 * whatever its processes did to their session, parents and environment. Elsewhere every function
 * does nothing and returns its failure value. A limit whose controller is not in v2 is set in the
 * hierarchy (v1) that has it.
 */
#ifndef SPAWN_CGROUP_H
#define SPAWN_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cgroup_limit { CGROUP_MEMORY, CGROUP_PROCESSES, CGROUP_CPU, CGROUP_LIMITS };

struct cgroup {
    int dir;               /* the cgroup that agents' cgroups are made in; -1 = not available */
    int v1[CGROUP_LIMITS]; /* of the spawner in the hierarchy of this controller; -1 = none */
};

/* Nothing is available. */
#define CGROUP_NONE ((struct cgroup){.dir = -1, .v1 = {-1, -1, -1}})

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
/* Limits of an agent's cgroup, which exists; 0 = none. values: bytes, processes, hundredths of a
 * processor. ret_join: files as that of cgroup_make, -1 = none; the caller closes them in any case.
 * False, and why, when one cannot be set. */
bool cgroup_limit(const struct cgroup *cg, const char *instance_id,
                  const uint64_t values[CGROUP_LIMITS], int ret_join[CGROUP_LIMITS], char *why,
                  size_t size);
/* The limit at which the kernel stopped this instance, as "limits.memoryBytes"; NULL = none. */
const char *cgroup_reached(const struct cgroup *cg, const char *instance_id);
#endif
