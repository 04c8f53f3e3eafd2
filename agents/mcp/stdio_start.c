/* Starting and ending a server over stdio. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/mcp/stdio_internal.h"
#include "protocol/base/clock.h"

enum { ENV_MAX = 2 * FIELD_ENV_MAX + 16, GRACE_MS = 1000, PIECE_MS = 10 };

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

/* ---- the environment: a fixed list, never the agent's own ---- */

static bool has_name(char *const *list, size_t n, const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; i < n; i++) {
        if (strncmp(list[i], name, len) == 0 && list[i][len] == '=') {
            return true;
        }
    }
    return false;
}

static enum bt_code put(struct arena *a, char **list, size_t *n, const char *name,
                        const char *value)
{
    const size_t name_n = strlen(name);
    const size_t value_n = value == NULL ? 0 : strlen(value);
    char *pair;

    if (value_n == 0 || has_name(list, *n, name)) {
        return BT_OK;
    }
    pair = arena_alloc(a, name_n + value_n + 2);
    if (pair == NULL) {
        return BT_NOMEM;
    }
    memcpy(pair, name, name_n);
    pair[name_n] = '=';
    memcpy(pair + name_n + 1, value, value_n + 1);
    list[(*n)++] = pair;
    return BT_OK;
}

static enum bt_code make_env(const struct mcp_settings *s, struct arena *a, char **list)
{
    size_t n = 0;
    enum bt_code code = BT_OK;

    for (size_t i = 0; s->env != NULL && s->env[i] != NULL && code == BT_OK; i++) {
        const char *equals = strchr(s->env[i], '=');
        const struct str name = arena_str(a, (struct str){s->env[i], (size_t)(equals - s->env[i])});
        code = name.ptr == NULL ? BT_NOMEM : put(a, list, &n, name.ptr, equals + 1);
    }
    for (size_t i = 0; s->pass_env != NULL && s->pass_env[i] != NULL && code == BT_OK; i++) {
        code = put(a, list, &n, s->pass_env[i], getenv(s->pass_env[i]));
    }
    if (code == BT_OK) {
        code = put(a, list, &n, "PATH", getenv("PATH") != NULL ? getenv("PATH") : default_path);
    }
    if (code == BT_OK) {
        code = put(a, list, &n, "HOME", getenv("HOME") != NULL ? getenv("HOME") : "/");
    }
    if (code == BT_OK) {
        code = put(a, list, &n, "LANG", getenv("LANG") != NULL ? getenv("LANG") : "C.UTF-8");
    }
    /* By these the supervisor finds what a killed agent left behind. */
    if (code == BT_OK) {
        code = put(a, list, &n, "BATON_INSTANCE_ID", getenv("BATON_INSTANCE_ID"));
    }
    return code == BT_OK ? put(a, list, &n, "BATON_SPAWNED", getenv("BATON_SPAWNED")) : code;
}

/* ---- the process ---- */

static int set_up(posix_spawn_file_actions_t *fa, posix_spawnattr_t *attr,
                  const struct mcp_settings *s, int in, int out)
{
    sigset_t none;
    sigset_t all;
    int rc;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(attr, &none);
    (void)posix_spawnattr_setsigdefault(attr, &all);
    rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
    rc = rc == 0 ? posix_spawn_file_actions_adddup2(fa, in, STDIN_FILENO) : rc;
    rc = rc == 0 ? posix_spawn_file_actions_adddup2(fa, out, STDOUT_FILENO) : rc;
    rc = rc == 0 ? posix_spawn_file_actions_addclosefrom_np(fa, STDERR_FILENO + 1) : rc;
    if (rc == 0 && s->cwd != NULL) {
        rc = posix_spawn_file_actions_addchdir_np(fa, s->cwd);
    }
    return rc;
}

static int start(const struct mcp_settings *s, char *const *argv, char *const *envp, int in,
                 int out, pid_t *ret)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&fa);

    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = set_up(&fa, &attr, s, in, out);
        rc = rc == 0 ? posix_spawnp(ret, argv[0], &fa, &attr, argv, envp) : rc;
        (void)posix_spawnattr_destroy(&attr);
    }
    (void)posix_spawn_file_actions_destroy(&fa);
    return rc;
}

static char **copy_argv(const char *const *command, struct arena *a)
{
    size_t n = 0;
    char **argv;

    while (command[n] != NULL) {
        n++;
    }
    argv = arena_alloc(a, (n + 1) * sizeof *argv);
    for (size_t i = 0; argv != NULL && i < n; i++) {
        const size_t len = strlen(command[i]) + 1;
        argv[i] = arena_alloc(a, len);
        if (argv[i] == NULL) {
            return NULL;
        }
        memcpy(argv[i], command[i], len);
    }
    return argv;
}

enum bt_code process_spawn(const struct mcp_settings *settings, pid_t *ret_pid, int *ret_in,
                           int *ret_out, struct bt_error *err)
{
    struct arena a = {.max = 1024 * 1024};
    char **argv = copy_argv(settings->command, &a);
    char **envp = arena_alloc(&a, (ENV_MAX + 1) * sizeof *envp);
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    enum bt_code code = BT_OK;
    int rc = 0;

    if (argv == NULL || envp == NULL || make_env(settings, &a, envp) != BT_OK) {
        code = err_set(err, BT_NOMEM, "out of memory for the server's environment");
    } else if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        code = err_errno(err, errno, "pipes for %.200s", argv[0]);
    } else {
        rc = start(settings, argv, envp, to[0], from[1], ret_pid);
    }
    if (code == BT_OK && rc == ENOENT) {
        code =
            err_set(err, BT_NOT_FOUND, "%.200s: there is no such program, or no such cwd", argv[0]);
    } else if (code == BT_OK && rc != 0) {
        code = err_errno(err, rc, "starting %.200s", argv[0]);
    }
    arena_done(&a);
    if (to[0] >= 0) {
        (void)close(to[0]);
    }
    if (from[1] >= 0) {
        (void)close(from[1]);
    }
    if (code == BT_OK) {
        (void)fcntl(to[1], F_SETFL, O_NONBLOCK);
        *ret_in = to[1];
        *ret_out = from[0];
        return BT_OK;
    }
    if (to[1] >= 0) {
        (void)close(to[1]);
    }
    if (from[0] >= 0) {
        (void)close(from[0]);
    }
    return code;
}

static bool reaped(pid_t pid, uint64_t within_ms)
{
    const msec until = clock_mono_ms() + within_ms;

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_mono_ms() >= until) {
            return false;
        }
        (void)poll(NULL, 0, PIECE_MS);
    }
    return true;
}

void process_end(pid_t pid, int *in)
{
    if (*in >= 0) {
        (void)close(*in);
        *in = -1;
    }
    if (!reaped(pid, GRACE_MS)) {
        (void)kill(-pid, SIGTERM);
        if (!reaped(pid, GRACE_MS)) {
            (void)kill(-pid, SIGKILL);
            (void)waitpid(pid, NULL, 0);
        }
    }
    (void)kill(-pid, SIGKILL); /* what it left behind in its group */
}
