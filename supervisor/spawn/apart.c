#include "supervisor/spawn/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/spawn/cgroup.h"

static bool is(const char *entry, const char *name, const char **ret_value)
{
    const size_t len = strlen(name);

    if (strncmp(entry, name, len) != 0 || entry[len] != '=') {
        return false;
    }
    *ret_value = entry + len + 1;
    return true;
}

static bool parse(struct apart *a, const char *entry)
{
    const char *value = NULL;
    char *end = NULL;

    if (is(entry, "user", &value)) {
        a->user = true;
        a->uid = (uid_t)strtoul(value, &end, 10);
        a->gid = *end == ':' ? (gid_t)strtoul(end + 1, &end, 10) : (gid_t)-1;
        return *end == 0 && a->gid != (gid_t)-1;
    }
    if (is(entry, "paths", &value)) {
        a->paths = true;
    } else if (is(entry, "network", &value)) {
        a->network = true;
        return strcmp(value, "none") == 0;
    } else if (is(entry, "seccomp", &value)) {
        a->seccomp = true;
        return strcmp(value, "default") == 0;
    } else if (is(entry, "memory", &value)) {
        a->memory = strtoull(value, NULL, 10);
    } else if (is(entry, "processes", &value)) {
        a->processes = strtoull(value, NULL, 10);
    } else if (is(entry, "cpu", &value)) {
        a->cpu = strtoull(value, NULL, 10);
    } else {
        return is(entry, "read", &value) || is(entry, "write", &value) || is(entry, "port", &value);
    }
    return true;
}

bool apart_parse(struct apart *a, const char *const *list, char why[APART_WHY_BYTES])
{
    *a = (struct apart){.ruleset = -1};
    for (size_t i = 0; list[i] != NULL; i++) {
        if (!parse(a, list[i])) {
            (void)snprintf(why, APART_WHY_BYTES, "'%.60s' is not known to this version", list[i]);
            return false;
        }
    }
    if (a->user && geteuid() != 0 && a->uid != geteuid()) {
        (void)snprintf(why, APART_WHY_BYTES, "user: only a daemon of root starts agents of others");
        return false;
    }
    return true;
}

static bool make_filter(struct apart *a, char why[APART_WHY_BYTES])
{
    if ((a->seccomp || a->network) && !apart_make_filter(a)) {
        (void)snprintf(why, APART_WHY_BYTES, "%s: no filter of system calls for this processor",
                       a->seccomp ? "seccomp" : "network");
        return false;
    }
    return true;
}

bool apart_prepare(struct apart *a, const char *const *list, const char *program, const char *path,
                   int state_dir, char why[APART_WHY_BYTES])
{
    if (!apart_parse(a, list, why) || !make_filter(a, why)) {
        return false;
    }
    return (!a->paths && !a->network) || apart_make_ruleset(a, list, program, path, state_dir, why);
}

/* The limits, in a cgroup that is made for it and removed. */
static bool limits_hold(const struct apart *a, char why[APART_WHY_BYTES])
{
    const uint64_t values[CGROUP_LIMITS] = {
        [CGROUP_MEMORY] = a->memory, [CGROUP_PROCESSES] = a->processes, [CGROUP_CPU] = a->cpu};
    int joins[CGROUP_LIMITS] = {-1, -1, -1};
    struct cgroup cg;
    bool held;
    int own;

    if (a->memory == 0 && a->processes == 0 && a->cpu == 0) {
        return true;
    }
    cgroup_probe(&cg);
    own = cgroup_make(&cg, "limits");
    held = cgroup_limit(&cg, "limits", values, joins, why, APART_WHY_BYTES);
    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        if (joins[i] >= 0) {
            (void)close(joins[i]);
        }
    }
    if (own >= 0) {
        (void)close(own);
    }
    cgroup_remove(&cg, "limits");
    cgroup_done(&cg);
    return held;
}

bool apart_available(const char *const *list, const char *state_dir, char why[APART_WHY_BYTES])
{
    static const char *const none[] = {NULL};
    const char *const *at = list != NULL ? list : none;
    struct apart a;
    const int dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool good = apart_parse(&a, at, why) && make_filter(&a, why) &&
                ((!a.paths && !a.network) || apart_has_landlock(&a, why)) &&
                (dir < 0 || apart_spares_state(at, dir, why)) && limits_hold(&a, why);

    apart_done(&a);
    if (dir >= 0) {
        (void)close(dir);
    }
    return good;
}

void apart_done(struct apart *a)
{
    if (a->ruleset >= 0) {
        (void)close(a->ruleset);
    }
    free(a->filter);
    *a = (struct apart){.ruleset = -1};
}

/* ---- in the child ---- */

bool apart_user(const struct apart *a, const char **ret_what)
{
    *ret_what = "user";
    return !a->user || a->uid == geteuid() ||
           (setgroups(0, NULL) == 0 && setresgid(a->gid, a->gid, a->gid) == 0 &&
            setresuid(a->uid, a->uid, a->uid) == 0);
}

bool apart_enter(const struct apart *a, int ruleset, const char **ret_what)
{
    if (a->ruleset >= 0) {
        *ret_what = a->paths ? "paths (landlock)" : "network (landlock)";
        if (a->paths && !apart_allow_own_proc(ruleset)) {
            return false;
        }
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
            return false;
        }
    }
    if (a->filter != NULL) {
        struct sock_fprog program = {.len = a->filter_n, .filter = a->filter};
        *ret_what = "seccomp";
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
    }
    return true;
}
