/* Limits where the controllers are in hierarchies of version 1, beside a v2 one that has none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/spawn/cgroup_internal.h"

struct controller {
    const char *name;
    const char *period; /* the file of the period, "" = none */
    const char *limit;
    const char *events;
    const char *counter; /* the line of events that counts how often the limit was reached */
};

static const struct controller controllers[CGROUP_LIMITS] = {
    [CGROUP_MEMORY] = {"memory", "", "/memory.limit_in_bytes", "/memory.oom_control", "oom_kill"},
    [CGROUP_PROCESSES] = {"pids", "", "/pids.max", "/pids.events", "max"},
    [CGROUP_CPU] = {"cpu", "/cpu.cfs_period_us", "/cpu.cfs_quota_us", "", ""}};

/* Whether a list as "cpu,cpuacct" has the name. */
static bool has(const char *list, size_t len, const char *name)
{
    const size_t n = strlen(name);

    for (size_t at = 0; at < len; at += strcspn(list + at, ",:") + 1) {
        if (strncmp(list + at, name, n) == 0 && strchr(",:", list[at + n]) != NULL) {
            return true;
        }
    }
    return false;
}

/* A line of /proc/self/cgroup is "4:memory:/path"; the mount has the name of the controller. */
static int open_own(const char *name)
{
    char line[CGROUP_PATH_BYTES];
    char path[CGROUP_PATH_BYTES + 64];
    FILE *file = fopen("/proc/self/cgroup", "re");
    int fd = -1;

    while (file != NULL && fd < 0 && fgets(line, sizeof line, file) != NULL) {
        const char *list = strchr(line, ':');
        const char *own = list == NULL ? NULL : strchr(list + 1, ':');
        line[strcspn(line, "\n")] = 0;
        if (own != NULL && has(list + 1, (size_t)(own - list - 1), name)) {
            (void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s", name, own + 1);
            fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (fd >= 0 && faccessat(fd, "cgroup.procs", W_OK, 0) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

void cgroup_v1_probe(struct cgroup *cg)
{
    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        cg->v1[i] = open_own(controllers[i].name);
        if (cg->v1[i] >= 0) {
            cgroup_remove_empty(cg->v1[i]);
        }
    }
}

int cgroup_v1_limit(const struct cgroup *cg, const char *instance_id, enum cgroup_limit which,
                    const char *value, const char *period)
{
    const struct controller *c = &controllers[which];
    const int dir = cg->v1[which];
    char path[CGROUP_NAME_BYTES];

    if (dir < 0) {
        errno = ENODEV;
        return -1;
    }
    cgroup_name(instance_id, "", path);
    if (mkdirat(dir, path, 0755) != 0 && errno != EEXIST) {
        return -1;
    }
    cgroup_name(instance_id, c->period, path);
    if (c->period[0] != 0 && !cgroup_write(dir, path, period)) {
        return -1;
    }
    cgroup_name(instance_id, c->limit, path);
    if (!cgroup_write(dir, path, value)) {
        return -1;
    }
    cgroup_name(instance_id, "/cgroup.procs", path);
    return openat(dir, path, O_WRONLY | O_CLOEXEC);
}

uint64_t cgroup_v1_reached(const struct cgroup *cg, const char *instance_id,
                           enum cgroup_limit which)
{
    const struct controller *c = &controllers[which];

    return cg->v1[which] < 0 ? 0
                             : cgroup_counter(cg->v1[which], instance_id, c->events, c->counter);
}

void cgroup_v1_remove(const struct cgroup *cg, const char *instance_id)
{
    char path[CGROUP_NAME_BYTES];

    cgroup_name(instance_id, "", path);
    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        if (cg->v1[i] >= 0) {
            (void)unlinkat(cg->v1[i], path, AT_REMOVEDIR);
        }
    }
}
