/* The Landlock ruleset of an agent: its paths, what any program needs, and the supervisor's port.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/spawn/apart.h"

/* linux/landlock.h, as of ABI 7: the headers of the machine that builds may be older. */
struct ruleset_attr {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};
struct __attribute__((packed)) path_attr {
    uint64_t access;
    int32_t fd;
};
struct port_attr {
    uint64_t access;
    uint64_t port;
};

enum {
    RULE_PATH = 1,
    RULE_PORT = 2,
    ABI_QUERY = 1,
    ABI_TRUNCATE = 3,
    ABI_NET = 4,
    ABI_IOCTL = 5,
    ABI_SCOPE = 6
};

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_TRUNCATE (1ull << 14)
#define FS_IOCTL (1ull << 15)
#define FS_ALL_3 ((1ull << 15) - 1)
#define FS_DEVICES ((1ull << 6) | (1ull << 11)) /* making them */
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL)
#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define FS_WRITE ((FS_ALL_3 & ~FS_DEVICES))
#define NET_BIND 1ull
#define NET_CONNECT 2ull
#define SCOPE_ALL 3ull

/* What programs, their libraries and name services read. Of /proc not the processes: root reads the
 * environment of each there. */
static const char *const always[] = {"/usr",
                                     "/lib",
                                     "/lib64",
                                     "/bin",
                                     "/sbin",
                                     "/proc/cpuinfo",
                                     "/proc/meminfo",
                                     "/proc/stat",
                                     "/proc/sys",
                                     "/proc/filesystems",
                                     "/proc/uptime",
                                     "/proc/loadavg",
                                     "/proc/version",
                                     "/etc/ld.so.cache",
                                     "/etc/ld.so.conf",
                                     "/etc/ld.so.conf.d",
                                     "/etc/localtime",
                                     "/etc/ssl",
                                     "/etc/pki",
                                     "/etc/ca-certificates",
                                     "/etc/resolv.conf",
                                     "/etc/hosts",
                                     "/etc/host.conf",
                                     "/etc/nsswitch.conf",
                                     "/etc/passwd",
                                     "/etc/group",
                                     "/etc/services",
                                     "/etc/alternatives",
                                     "/dev/urandom",
                                     "/dev/random"};
static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full"};

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the directory `from`, or one above it, is the other one. */
static bool is_below(int from, const struct stat *other)
{
    int at = openat(from, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat here;
    bool yes = false;

    while (at >= 0 && fstat(at, &here) == 0 && !(yes = same(&here, other))) {
        struct stat above;
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

        (void)close(at);
        at = up;
        if (up >= 0 && fstat(up, &above) == 0 && same(&above, &here)) {
            break;
        }
    }
    if (at >= 0) {
        (void)close(at);
    }
    return yes;
}

/* Landlock adds rights and takes none away: a path above the state directory would open it. */
static bool touches_state(const char *path, const struct stat *st, int state_dir)
{
    char real[PATH_MAX];
    struct stat state;
    bool yes = true;
    int dir;

    if (realpath(path, real) == NULL || fstat(state_dir, &state) != 0) {
        return true;
    }
    if (S_ISDIR(st->st_mode) && is_below(state_dir, st)) {
        return true;
    }
    if (!S_ISDIR(st->st_mode)) {
        char *slash = strrchr(real, '/');
        slash[slash == real ? 1 : 0] = 0;
    }
    dir = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        yes = is_below(dir, &state);
        (void)close(dir);
    }
    return yes;
}

static void say_state(const char *path, char why[APART_WHY_BYTES])
{
    (void)snprintf(why, APART_WHY_BYTES, "paths: %.60s has to do with the state directory", path);
}

bool apart_spares_state(const char *const *list, int state_dir, char why[APART_WHY_BYTES])
{
    for (size_t i = 0; list[i] != NULL; i++) {
        const bool is_path =
            strncmp(list[i], "read=", 5) == 0 || strncmp(list[i], "write=", 6) == 0;
        const char *path = is_path ? strchr(list[i], '=') + 1 : NULL;
        struct stat st;
        if (is_path && stat(path, &st) == 0 && touches_state(path, &st, state_dir)) {
            say_state(path, why);
            return false;
        }
    }
    return true;
}

struct rules {
    int fd;
    int state_dir;
    uint64_t handled;
    char *why;
};

static bool allow(const struct rules *r, const char *path, uint64_t access, bool must)
{
    struct path_attr rule = {.access = access & r->handled};
    struct stat st;
    bool done = false;

    rule.fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.fd < 0 || fstat(rule.fd, &st) != 0) {
        (void)snprintf(r->why, APART_WHY_BYTES, "paths: %.60s: %s", path, strerror(errno));
        if (rule.fd >= 0) {
            (void)close(rule.fd);
        }
        return !must;
    }
    if (touches_state(path, &st, r->state_dir)) {
        say_state(path, r->why);
    } else {
        rule.access &= S_ISDIR(st.st_mode) ? ~0ull : FS_OF_FILES;
        done = syscall(SYS_landlock_add_rule, r->fd, RULE_PATH, &rule, 0) == 0;
        if (!done) {
            (void)snprintf(r->why, APART_WHY_BYTES, "paths: %.60s: %s", path, strerror(errno));
        }
    }
    (void)close(rule.fd);
    return done;
}

/* The directory of a program, and the one of the file that a link to it leads to. */
static bool allow_program(const struct rules *r, const char *file)
{
    char real[PATH_MAX];
    char given[PATH_MAX];
    char *slash;

    if (realpath(file, real) == NULL || strlen(file) >= sizeof given) {
        return true; /* exec will say what is wrong */
    }
    slash = strrchr(real, '/');
    slash[slash == real ? 1 : 0] = 0;
    memcpy(given, file, strlen(file) + 1);
    slash = strrchr(given, '/');
    slash[slash == given ? 1 : 0] = 0;
    return allow(r, real, FS_READ, true) && allow(r, given, FS_READ, true);
}

static bool find_program(const struct rules *r, const char *program, const char *path)
{
    char file[PATH_MAX];

    if (strchr(program, '/') != NULL) {
        return program[0] != '/' || allow_program(r, program);
    }
    while (path != NULL && *path != 0) {
        const size_t n = strcspn(path, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program) < PATH_MAX &&
            access(file, X_OK) == 0) {
            return allow_program(r, file);
        }
        path += n + (path[n] == ':');
    }
    return true;
}

static bool allow_paths(const struct rules *r, const char *const *list, const char *program,
                        const char *path)
{
    bool good = find_program(r, program, path);

    for (size_t i = 0; good && i < sizeof always / sizeof always[0]; i++) {
        good = allow(r, always[i], FS_READ, false);
    }
    for (size_t i = 0; good && i < sizeof devices / sizeof devices[0]; i++) {
        good = allow(r, devices[i], FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE, false);
    }
    for (size_t i = 0; good && list[i] != NULL; i++) {
        if (strncmp(list[i], "read=", 5) == 0) {
            good = allow(r, list[i] + 5, FS_READ, true);
        } else if (strncmp(list[i], "write=", 6) == 0) {
            good = allow(r, list[i] + 6, FS_WRITE, true);
        }
    }
    return good;
}

/* To listen anywhere, to connect to the supervisor. */
static bool allow_ports(const struct rules *r, const char *const *list)
{
    bool good = true;

    for (size_t i = 0; good && list[i] != NULL; i++) {
        if (strncmp(list[i], "port=", 5) == 0) {
            const struct port_attr rule = {NET_CONNECT, strtoull(list[i] + 5, NULL, 10)};
            good = syscall(SYS_landlock_add_rule, r->fd, RULE_PORT, &rule, 0) == 0;
        }
    }
    if (!good) {
        (void)snprintf(r->why, APART_WHY_BYTES, "network: %s", strerror(errno));
    }
    return good;
}

bool apart_allow_own_proc(int ruleset)
{
    struct path_attr rule = {.access = FS_READ,
                             .fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    bool done = rule.fd < 0; /* no /proc, nothing to allow */

    if (rule.fd >= 0) {
        done = syscall(SYS_landlock_add_rule, ruleset, RULE_PATH, &rule, 0) == 0;
        (void)close(rule.fd);
    }
    return done;
}

static long landlock_abi(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, ABI_QUERY);
}

bool apart_has_landlock(const struct apart *a, char why[APART_WHY_BYTES])
{
    const long abi = landlock_abi();
    const long least = a->network ? ABI_NET : ABI_TRUNCATE;

    if (abi < least) {
        (void)snprintf(why, APART_WHY_BYTES, "%s: this kernel has no Landlock of version %ld (%s)",
                       a->paths && abi < ABI_TRUNCATE ? "paths" : "network", least,
                       abi < 0 ? strerror(errno) : "it is older");
    }
    return abi >= least;
}

bool apart_make_ruleset(struct apart *a, const char *const *list, const char *program,
                        const char *path, int state_dir, char why[APART_WHY_BYTES])
{
    const long abi = landlock_abi();
    const char *key = a->paths ? "paths" : "network";
    struct ruleset_attr attr = {.fs = a->paths ? FS_ALL_3 | (abi >= ABI_IOCTL ? FS_IOCTL : 0) : 0,
                                .net = a->network ? NET_CONNECT : 0,
                                .scoped = abi >= ABI_SCOPE ? SCOPE_ALL : 0};
    struct rules r = {.state_dir = state_dir, .handled = attr.fs, .why = why};

    if (!apart_has_landlock(a, why)) {
        return false;
    }
    r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr,
                        abi >= ABI_SCOPE ? sizeof attr
                        : abi >= ABI_NET ? offsetof(struct ruleset_attr, scoped)
                                         : offsetof(struct ruleset_attr, net),
                        0);
    if (r.fd < 0) {
        (void)snprintf(why, APART_WHY_BYTES, "%s: landlock: %s", key, strerror(errno));
        return false;
    }
    a->ruleset = r.fd;
    return (!a->paths || allow_paths(&r, list, program, path)) &&
           (!a->network || allow_ports(&r, list));
}
