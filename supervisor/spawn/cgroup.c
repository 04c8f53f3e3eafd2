#include "supervisor/spawn/cgroup.h"

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

enum { NAME_BYTES = 80, PATH_BYTES = 4096 };

static void name_of(const char *instance_id, const char *file, char ret_path[NAME_BYTES])
{
    (void)snprintf(ret_path, NAME_BYTES, NAME_PREFIX "%d.%s%s", (int)getpid(), instance_id, file);
}

static bool write_to(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) {
        (void)close(fd);
    }
    return done;
}

/* The position of this process in the v2 hierarchy: the line "0::/path". */
static bool own_path(char ret_path[PATH_BYTES])
{
    char line[PATH_BYTES];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = 0;
            (void)snprintf(ret_path, PATH_BYTES, "%s", line + 3);
            found = true;
        }
    }
    (void)fclose(file);
    return found;
}

static int open_own(const char *mount)
{
    char own[PATH_BYTES];
    char path[PATH_BYTES + 64];
    int fd;

    if (!own_path(own)) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s%s", mount, own);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, "cgroup.procs", W_OK, 0) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* A cgroup that a live spawner has just made is empty too, so its name contains the creator's
 * pid. */
static bool creator_is_dead(const char *name)
{
    char *end = NULL;
    long pid = strtol(name + strlen(NAME_PREFIX), &end, 10);

    return *end == '.' && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Removes cgroups of spawners that were killed; rmdir fails while one has a process. */
static void remove_empty(int dir)
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
    char path[NAME_BYTES];
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
    name_of(probe, "/cgroup.kill", path);
    if (faccessat(cg->dir, path, W_OK, 0) != 0) {
        status = 1;
    }
    cgroup_remove(cg, probe);
    return status == 0;
}

void cgroup_probe(struct cgroup *cg)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

    cg->dir = -1;
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0] && cg->dir < 0; i++) {
        cg->dir = open_own(mounts[i]);
        if (cg->dir >= 0 && !works(cg)) {
            cgroup_done(cg);
        }
    }
    if (cg->dir >= 0) {
        remove_empty(cg->dir);
    }
}

void cgroup_done(struct cgroup *cg)
{
    if (cg->dir >= 0) {
        (void)close(cg->dir);
    }
    cg->dir = -1;
}

int cgroup_make(const struct cgroup *cg, const char *instance_id)
{
    char path[NAME_BYTES];

    if (cg->dir < 0) {
        return -1;
    }
    name_of(instance_id, "", path);
    if (mkdirat(cg->dir, path, 0755) != 0) {
        return -1;
    }
    name_of(instance_id, "/cgroup.procs", path);
    return openat(cg->dir, path, O_WRONLY | O_CLOEXEC);
}

/* The controllers must be on for the children of this group; a delegated one may allow it. */
static bool set_limit(const struct cgroup *cg, const char *instance_id, const char *controller,
                      const char *file, const char *value)
{
    char path[NAME_BYTES];
    char on[32];

    name_of(instance_id, file, path);
    if (write_to(cg->dir, path, value)) {
        return true;
    }
    (void)snprintf(on, sizeof on, "+%s", controller);
    return write_to(cg->dir, "cgroup.subtree_control", on) && write_to(cg->dir, path, value);
}

bool cgroup_limit(const struct cgroup *cg, const char *instance_id, uint64_t memory,
                  uint64_t processes, uint64_t cpu, char *why, size_t size)
{
    enum { PERIOD_US = 100000 };
    const struct {
        const char *key, *controller, *file;
        uint64_t value;
    } all[] = {{"limits.memoryBytes", "memory", "/memory.max", memory},
               {"limits.processes", "pids", "/pids.max", processes},
               {"limits.cpuPercent", "cpu", "/cpu.max", cpu * PERIOD_US / 100}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char value[48];
        if (all[i].value == 0) {
            continue;
        }
        (void)snprintf(value, sizeof value, i == 2 ? "%llu 100000" : "%llu",
                       (unsigned long long)all[i].value);
        if (cg->dir < 0 || !set_limit(cg, instance_id, all[i].controller, all[i].file, value)) {
            (void)snprintf(why, size, "%s: %s", all[i].key,
                           cg->dir < 0 ? "there is no cgroup (v2) that the daemon may divide"
                                       : "its cgroup does not take this limit");
            return false;
        }
    }
    return true;
}

bool cgroup_kill(const struct cgroup *cg, const char *instance_id)
{
    char path[NAME_BYTES];

    if (cg->dir < 0) {
        return false;
    }
    name_of(instance_id, "/cgroup.kill", path);
    return write_to(cg->dir, path, "1");
}

bool cgroup_has_process(const struct cgroup *cg, const char *instance_id)
{
    char path[NAME_BYTES];
    char text[256] = "";
    ssize_t n = 0;
    int fd;

    if (cg->dir < 0) {
        return false;
    }
    name_of(instance_id, "/cgroup.events", path);
    fd = openat(cg->dir, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof text - 1);
        (void)close(fd);
    }
    return n > 0 && strstr(text, "populated 1") != NULL;
}

void cgroup_remove(const struct cgroup *cg, const char *instance_id)
{
    char path[NAME_BYTES];

    if (cg->dir >= 0) {
        name_of(instance_id, "", path);
        (void)unlinkat(cg->dir, path, AT_REMOVEDIR);
    }
}
