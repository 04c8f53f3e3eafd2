#include "supervisor/spawn/cgroup_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_PREFIX "baton."

/* What systemd calls the cgroup of the daemon's own processes (DelegateSubgroup). */
#define SUBGROUP "/baton"

unsigned long cgroup_pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long)st.st_ino : 0;
}

void cgroup_name(const char *instance_id, const char *file, char ret_path[CGROUP_NAME_BYTES])
{
    (void)snprintf(ret_path, CGROUP_NAME_BYTES, NAME_PREFIX "%lu-%d.%s%s", cgroup_pid_namespace(),
                   (int)getpid(), instance_id, file);
}

bool cgroup_write(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    const int why = errno;

    if (fd >= 0) {
        (void)close(fd);
    }
    errno = why;
    return done;
}

static void read_text(int dir, const char *instance_id, const char *file, char *ret, size_t size)
{
    char path[CGROUP_NAME_BYTES];
    ssize_t n = 0;
    int fd;

    cgroup_name(instance_id, file, path);
    fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, ret, size - 1);
        (void)close(fd);
    }
    ret[n > 0 ? n : 0] = 0;
}

uint64_t cgroup_counter(int dir, const char *instance_id, const char *file, const char *line)
{
    const size_t len = strlen(line);
    char text[512];

    read_text(dir, instance_id, file, text, sizeof text);
    for (const char *at = text; *at != 0; at += strcspn(at, "\n"), at += *at != 0) {
        if (strncmp(at, line, len) == 0 && at[len] == ' ') {
            return strtoull(at + len, NULL, 10);
        }
    }
    return 0;
}

/* The position of this process in the v2 hierarchy: the line "0::/path". */
static bool own_path(char ret_path[CGROUP_PATH_BYTES])
{
    char line[CGROUP_PATH_BYTES];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = 0;
            (void)snprintf(ret_path, CGROUP_PATH_BYTES, "%s", line + 3);
            found = true;
        }
    }
    (void)fclose(file);
    return found;
}

static int open_own(const char *mount)
{
    char own[CGROUP_PATH_BYTES];
    char path[CGROUP_PATH_BYTES + 64];
    size_t len;
    int fd;

    if (!own_path(own)) {
        return -1;
    }
    /* A cgroup with processes of its own gives its children no controllers: there the agents'
     * cgroups are made beside the daemon's. */
    len = strlen(own);
    if (len >= strlen(SUBGROUP) && strcmp(own + len - strlen(SUBGROUP), SUBGROUP) == 0) {
        own[len - strlen(SUBGROUP)] = 0;
    }
    (void)snprintf(path, sizeof path, "%s%s", mount, own);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, "cgroup.procs", W_OK, 0) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* A cgroup that a live spawner has just made is empty too, so its name has the creator's pid. */
static bool creator_is_dead(const char *name)
{
    char *end = NULL;
    const unsigned long space = strtoul(name + strlen(NAME_PREFIX), &end, 10);
    const long pid = *end == '-' ? strtol(end + 1, &end, 10) : 0;

    return space == cgroup_pid_namespace() && *end == '.' && pid > 0 && kill((pid_t)pid, 0) != 0 &&
           errno == ESRCH;
}

void cgroup_remove_empty(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;

    if (list == NULL) {
        if (copy >= 0) {
            (void)close(copy);
        }
        return;
    }
    while ((entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0 &&
            creator_is_dead(entry->d_name)) {
            (void)unlinkat(dir, entry->d_name, AT_REMOVEDIR);
        }
    }
    (void)closedir(list);
}

/* Controllers or ownership can forbid the move although all files look writable, so it tries
 * one. */
static bool works(const struct cgroup *cg)
{
    char probe[32];
    char path[CGROUP_NAME_BYTES];
    int status = 1;
    int procs;
    pid_t pid;

    (void)snprintf(probe, sizeof probe, "probe-%d", (int)getpid());
    procs = cgroup_make(cg, probe);
    if (procs < 0) {
        cgroup_remove(cg, probe);
        return false;
    }
    pid = fork();
    if (pid == 0) {
        _exit(write(procs, "0", 1) == 1 ? 0 : 1);
    }
    (void)close(procs);
    if (pid > 0 && waitpid(pid, &status, 0) != pid) {
        status = 1;
    }
    cgroup_name(probe, "/cgroup.kill", path);
    if (faccessat(cg->dir, path, W_OK, 0) != 0) {
        status = 1;
    }
    cgroup_remove(cg, probe);
    return status == 0;
}

void cgroup_probe(struct cgroup *cg)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    *cg = CGROUP_NONE;
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0] && cg->dir < 0; i++) {
        cg->dir = open_own(mounts[i]);
        if (cg->dir >= 0 && !works(cg)) {
            cgroup_done(cg);
        }
    }
    if (cg->dir >= 0) {
        cgroup_remove_empty(cg->dir);
    }
    cgroup_v1_probe(cg);
}

void cgroup_done(struct cgroup *cg)
{
    if (cg->dir >= 0) {
        (void)close(cg->dir);
    }
    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        if (cg->v1[i] >= 0) {
            (void)close(cg->v1[i]);
        }
    }
    *cg = CGROUP_NONE;
}

int cgroup_make(const struct cgroup *cg, const char *instance_id)
{
    char path[CGROUP_NAME_BYTES];

    if (cg->dir < 0) {
        return -1;
    }
    cgroup_name(instance_id, "", path);
    if (mkdirat(cg->dir, path, 0755) != 0) {
        return -1;
    }
    cgroup_name(instance_id, "/cgroup.procs", path);
    return openat(cg->dir, path, O_WRONLY | O_CLOEXEC);
}

static const struct {
    const char *key, *controller, *file, *events, *counter;
} limits[CGROUP_LIMITS] = {
    [CGROUP_MEMORY] = {"limits.memoryBytes", "memory", "/memory.max", "/memory.events", "oom_kill"},
    [CGROUP_PROCESSES] = {"limits.processes", "pids", "/pids.max", "/pids.events", "max"},
    [CGROUP_CPU] = {"limits.cpuPercent", "cpu", "/cpu.max", "", ""}};

/* Puts a controller on or off for the children of this group. */
static bool switch_controller(const struct cgroup *cg, char sign, const char *controller)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%c%s", sign, controller);
    return cgroup_write(cg->dir, "cgroup.subtree_control", text);
}

/* The kernel puts `pids` and `cpu` on in a group that has processes, too; its children then take
 * none (cgroup-v2.rst, "Threads"). */
static bool takes_processes(const struct cgroup *cg, const char *instance_id)
{
    char type[64];

    read_text(cg->dir, instance_id, "/cgroup.type", type, sizeof type);
    return strstr(type, "invalid") == NULL;
}

/* The controllers must be on for the children of this group; a delegated one may allow it. */
static bool set_limit(const struct cgroup *cg, const char *instance_id, enum cgroup_limit which,
                      const char *value)
{
    char path[CGROUP_NAME_BYTES];

    cgroup_name(instance_id, limits[which].file, path);
    if (cgroup_write(cg->dir, path, value)) {
        return true;
    }
    if (!switch_controller(cg, '+', limits[which].controller)) {
        return false;
    }
    if (!takes_processes(cg, instance_id)) {
        (void)switch_controller(cg, '-', limits[which].controller);
        errno = EBUSY;
        return false;
    }
    return cgroup_write(cg->dir, path, value);
}

static const char *refusal(const struct cgroup *cg, int errnum)
{
    return cg->dir < 0 ? "there is no cgroup that the daemon may divide"
           : errnum == EBUSY
               ? "its own cgroup has processes (systemd: Delegate=yes, DelegateSubgroup=baton)"
               : "its cgroup does not take this limit";
}

bool cgroup_limit(const struct cgroup *cg, const char *instance_id,
                  const uint64_t values[CGROUP_LIMITS], int ret_join[CGROUP_LIMITS], char *why,
                  size_t size)
{
    enum { PERIOD_US = 100000 };

    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        const unsigned long long n = i == CGROUP_CPU ? values[i] * PERIOD_US / 100 : values[i];
        char value[48];
        char v2[64];
        int errnum;
        ret_join[i] = -1;
        if (values[i] == 0) {
            continue;
        }
        (void)snprintf(value, sizeof value, "%llu", n);
        (void)snprintf(v2, sizeof v2, "%s%s", value, i == CGROUP_CPU ? " 100000" : "");
        if (cg->dir >= 0 && set_limit(cg, instance_id, (enum cgroup_limit)i, v2)) {
            continue;
        }
        errnum = errno;
        ret_join[i] = cgroup_v1_limit(cg, instance_id, (enum cgroup_limit)i, value, "100000");
        if (ret_join[i] < 0) {
            (void)snprintf(why, size, "%s: %s", limits[i].key, refusal(cg, errnum));
            return false;
        }
    }
    return true;
}

const char *cgroup_reached(const struct cgroup *cg, const char *instance_id)
{
    for (size_t i = 0; i < CGROUP_CPU; i++) {
        if ((cg->dir >= 0 &&
             cgroup_counter(cg->dir, instance_id, limits[i].events, limits[i].counter) > 0) ||
            cgroup_v1_reached(cg, instance_id, (enum cgroup_limit)i) > 0) {
            return limits[i].key;
        }
    }
    return NULL;
}

bool cgroup_kill(const struct cgroup *cg, const char *instance_id)
{
    char path[CGROUP_NAME_BYTES];

    if (cg->dir < 0) {
        return false;
    }
    cgroup_name(instance_id, "/cgroup.kill", path);
    return cgroup_write(cg->dir, path, "1");
}

bool cgroup_has_process(const struct cgroup *cg, const char *instance_id)
{
    return cg->dir >= 0 && cgroup_counter(cg->dir, instance_id, "/cgroup.events", "populated") > 0;
}

void cgroup_remove(const struct cgroup *cg, const char *instance_id)
{
    char path[CGROUP_NAME_BYTES];

    if (cg->dir >= 0) {
        cgroup_name(instance_id, "", path);
        (void)unlinkat(cg->dir, path, AT_REMOVEDIR);
    }
    cgroup_v1_remove(cg, instance_id);
}
