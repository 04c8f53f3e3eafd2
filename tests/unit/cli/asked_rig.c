#include "tests/unit/cli/asked_rig.h"
#include "tests/unit/cli/asked_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/arena.h"
#include "protocol/base/clock.h"
#include "protocol/base/map.h"
#include "protocol/client/listener.h"
#include "tests/support/cmocka.h"

enum { FAILURES_MAX = 8, VARIABLES_MAX = 8, WAIT_MS = 500 };

/* The n-th call of this name fails so; 0 = it does nothing, and says that it has. */
static struct failure {
    char call[24];
    int n, why;
    bool always; /* n is 0 */
} failures[FAILURES_MAX];
static int failures_n;
static const char *variables[VARIABLES_MAX];
static int variables_n;
static int held; /* how many more looks at the lock find it held */
static const char *programs;
static bool is_on;

static int errno_of(const char *name)
{
    static const struct {
        const char *name;
        int why;
    } all[] = {{"EIO", EIO},         {"ENOSPC", ENOSPC},         {"EACCES", EACCES},
               {"ENOENT", ENOENT},   {"EINTR", EINTR},           {"EMFILE", EMFILE},
               {"EAGAIN", EAGAIN},   {"EADDRINUSE", EADDRINUSE}, {"ECONNREFUSED", ECONNREFUSED},
               {"ENOTDIR", ENOTDIR}, {"EEXIST", EEXIST},         {"EINPROGRESS", EINPROGRESS},
               {"ECHILD", ECHILD},   {"EPERM", EPERM},           {"none", 0}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].why;
        }
    }
    fail_msg("there is no such error: %s", name);
    return 0;
}

void rig_take(const char *line)
{
    char why[24];

    if (line[0] == 'l') {
        held = (int)strtol(line + 2, NULL, 10);
    } else if (line[0] == 'v') {
        assert_true(variables_n < VARIABLES_MAX);
        variables[variables_n++] = line + 2;
    } else {
        struct failure *f = &failures[failures_n++];
        assert_true(failures_n <= FAILURES_MAX);
        assert_int_equal(sscanf(line, "w %23s %d %23s", f->call, &f->n, why), 3);
        f->why = errno_of(why);
        f->always = f->n == 0;
    }
}

void rig_begin(const char *dir)
{
    programs = dir;
    is_on = true;
    for (int i = 0; i < variables_n; i++) {
        char *copy = strdup(variables[i]);
        char *value = strchr(copy, '=');
        *value++ = 0;
        (void)(value[0] != 0 ? setenv(copy, value, 1) : unsetenv(copy));
        free(copy);
    }
}

void rig_forget(void)
{
    failures_n = 0;
    variables_n = 0;
    held = 0;
}

/* Whether this call does not happen; errno is why, 0 = it says that it has. */
static bool is_failing(const char *call)
{
    bool fails = false;

    for (int i = 0; is_on && i < failures_n; i++) {
        const bool is_it = strcmp(failures[i].call, call) == 0;
        if (is_it && (failures[i].always || --failures[i].n == 0)) {
            errno = failures[i].why;
            fails = true;
        }
    }
    return fails;
}

/* ---- calls that may fail ---- */

#define FAILING(type, name, parameters, arguments, failed)                                         \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return is_failing(#name) ? (failed) : __real_##name arguments;                             \
    }
#define RESULT (errno == 0 ? 0 : -1)

FAILING(ssize_t, write, (int fd, const void *at, size_t n), (fd, at, n), errno == 0 ? 1 : -1)
FAILING(int, fsync, (int fd), (fd), RESULT)
FAILING(int, close, (int fd), (fd), RESULT)
FAILING(int, rename, (const char *from, const char *to), (from, to), RESULT)
FAILING(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), RESULT)
FAILING(int, unlink, (const char *path), (path), RESULT)
FAILING(int, mkdir, (const char *path, mode_t mode), (path, mode), RESULT)
FAILING(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), RESULT)
FAILING(int, fchmod, (int fd, mode_t mode), (fd, mode), RESULT)
FAILING(int, pipe2, (int fds[2], int flags), (fds, flags), RESULT)
FAILING(int, fork, (void), (), RESULT)
FAILING(int, fseek, (FILE * f, long at, int from), (f, at, from), RESULT)
FAILING(int, fclose, (FILE * f), (f), RESULT)
FAILING(int, socket, (int family, int type, int protocol), (family, type, protocol), RESULT)
FAILING(int, bind, (int fd, const struct sockaddr *at, socklen_t n), (fd, at, n), RESULT)
FAILING(int, connect, (int fd, const struct sockaddr *at, socklen_t n), (fd, at, n), RESULT)
FAILING(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
FAILING(FILE *, tmpfile, (void), (), NULL)
FAILING(DIR *, opendir, (const char *path), (path), NULL)
FAILING(DIR *, fdopendir, (int fd), (fd), NULL)
FAILING(struct dirent *, readdir, (DIR * dir), (dir), NULL)
FAILING(char *, realpath, (const char *path, char *to), (path, to), NULL)
FAILING(size_t, fwrite, (const void *at, size_t size, size_t n, FILE *f), (at, size, n, f), 0)
FAILING(bool, auth_random, (void *at, size_t n), (at, n), false)

FAILING(pid_t, waitpid, (pid_t pid, int *ret, int how), (pid, ret, how), RESULT)
FAILING(int, isatty, (int fd), (fd), errno == 0)
FAILING(char *, strndup, (const char *text, size_t n), (text, n), NULL)
FAILING(void *, calloc, (size_t n, size_t size), (n, size), NULL)
FAILING(enum bt_code, map_put, (struct map * m, struct str key, uint32_t value), (m, key, value),
        BT_NOMEM)
static const struct str nothing;
FAILING(struct str, arena_str, (struct arena * a, struct str s), (a, s), nothing)
FAILING(struct artifact_digest *, artifact_digest_new, (void), (), NULL)

/* "short": a read gets three bytes at most. */
ssize_t __real_read(int fd, void *at, size_t n);
ssize_t __wrap_read(int fd, void *at, size_t n);
ssize_t __wrap_read(int fd, void *at, size_t n)
{
    return is_failing("read") ? RESULT : __real_read(fd, at, is_failing("short") && n > 3 ? 3 : n);
}

char *__real_cjson_print(const cJSON *tree, bool pretty, struct bt_error *err);
char *__wrap_cjson_print(const cJSON *tree, bool pretty, struct bt_error *err);
char *__wrap_cjson_print(const cJSON *tree, bool pretty, struct bt_error *err)
{
    if (is_failing("cjson_print")) {
        (void)err_set(err, BT_NOMEM, "out of memory");
        return NULL;
    }
    return __real_cjson_print(tree, pretty, err);
}

/* ---- what stands for the machine ---- */

ssize_t __real_readlink(const char *path, char *to, size_t cap);
ssize_t __wrap_readlink(const char *path, char *to, size_t cap);
ssize_t __wrap_readlink(const char *path, char *to, size_t cap)
{
    if (is_failing("readlink")) {
        return -1;
    }
    if (!is_on || strcmp(path, "/proc/self/exe") != 0) {
        return __real_readlink(path, to, cap);
    }
    assert_true(strlen(programs) + 10 <= cap);
    memset(to, 'x', cap); /* the call writes no end */
    memcpy(to, programs, strlen(programs));
    memcpy(to + strlen(programs), "/bin/baton", 10);
    return (ssize_t)strlen(programs) + 10;
}

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return is_on ? 4711 : __real_getpid();
}

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig)
{
    if (is_on && pid == 4711) {
        return __real_kill(__real_getpid(), sig);
    }
    if (is_on && sig != 0) {
        asked_say("kill %d with signal %d", pid == 1 ? 1 : 4712, sig);
        return pid == 1 ? 0 : __real_kill(pid, sig);
    }
    return is_failing("kill") ? RESULT : __real_kill(pid, sig);
}

/* A name of its own that is the same each time. */
int __wrap_mkostemp(char *path, int flags);
int __wrap_mkostemp(char *path, int flags)
{
    memcpy(path + strlen(path) - 6, "000001", 6);
    return is_failing("mkostemp") ? -1 : open(path, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
}

int __real_flock(int fd, int what);
int __wrap_flock(int fd, int what);
int __wrap_flock(int fd, int what)
{
    if (is_on && held > 0) {
        held--;
        errno = EWOULDBLOCK;
        return -1;
    }
    return __real_flock(fd, what);
}

/* Time passes only in waits: those for nothing take a millisecond, so that other programs go on. */
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    const int some = !is_on || ms <= 0 ? ms : world_is_scripted() ? 0 : n == 0 ? 1 : WAIT_MS;
    int found = __real_poll(fds, n, ms > 0 && ms < some ? ms : some);

    if (found == 0 && ms > 0 && is_on) {
        world_wait((uint64_t)ms);
        found = world_is_scripted() ? __real_poll(fds, n, 0) : 0;
    }
    return found;
}

bool __wrap_listener_is_ours(const char *dir, const char *url);
bool __wrap_listener_is_ours(const char *dir, const char *url)
{
    (void)dir, (void)url;
    return asked_answer("listener") == NULL;
}
