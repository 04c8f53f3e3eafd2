#include "agents/sdk/child/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void spawn_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* The agent's end does not block; the program's end does, as programs expect. Both are
 * close-on-exec, because other threads spawn at the same time. */
static bool make_pipe(bool we_write, int *ret_ours, int *ret_theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    *ret_ours = ends[we_write ? 1 : 0];
    *ret_theirs = ends[we_write ? 0 : 1];
    return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) == 0;
}

static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none;
    sigset_t all;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(attr, &none);
    (void)posix_spawnattr_setsigdefault(attr, &all);
    return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
}

static int set_files(posix_spawn_file_actions_t *fa, const struct child_spec *spec,
                     const int theirs[3])
{
    int rc = spec->input != NULL
                 ? posix_spawn_file_actions_adddup2(fa, theirs[0], STDIN_FILENO)
                 : posix_spawn_file_actions_addopen(fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(fa, theirs[1], STDOUT_FILENO);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(fa, theirs[2], STDERR_FILENO);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_addclosefrom_np(fa, STDERR_FILENO + 1);
    }
    if (rc == 0 && spec->cwd != NULL) {
        rc = posix_spawn_file_actions_addchdir_np(fa, spec->cwd);
    }
    return rc;
}

static enum bt_code start_error(int rc, const struct child_spec *spec, struct bt_error *err)
{
    struct stat st;

    if (spec->cwd != NULL && (stat(spec->cwd, &st) != 0 || !S_ISDIR(st.st_mode))) {
        return err_set(err, BT_INVALID, "cwd '%.200s': no such directory", spec->cwd);
    }
    switch (rc) {
    case ENOENT:
        return err_set(err, BT_NOT_FOUND, "%.200s: there is no such program (or its interpreter)",
                       spec->path);
    case EACCES:
    case ENOEXEC:
    case EISDIR:
        return err_set(err, BT_UNAUTHORIZED, "%.200s: is not executable", spec->path);
    case E2BIG:
        return err_set(err, BT_LIMIT,
                       "%.200s: its arguments are too long for the system; hand "
                       "large values over on stdin",
                       spec->path);
    default:
        return err_errno(err, rc, "starting %.200s", spec->path);
    }
}

static int start(const struct child_spec *spec, const int theirs[3], pid_t *ret)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&fa);

    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = set_attributes(&attr);
        if (rc == 0) {
            rc = set_files(&fa, spec, theirs);
        }
        if (rc == 0) {
            rc = posix_spawn(ret, spec->path, &fa, &attr, spec->argv, spec->envp);
        }
        (void)posix_spawnattr_destroy(&attr);
    }
    (void)posix_spawn_file_actions_destroy(&fa);
    return rc;
}

enum bt_code spawn_start(const struct child_spec *spec, struct spawn *ret, struct bt_error *err)
{
    struct spawn s = {.pid = -1, .pidfd = -1, .in = -1, .out = -1, .err = -1};
    int theirs[3] = {-1, -1, -1};
    enum bt_code code = BT_OK;
    int rc;

    if ((spec->input != NULL && !make_pipe(true, &s.in, &theirs[0])) ||
        !make_pipe(false, &s.out, &theirs[1]) || !make_pipe(false, &s.err, &theirs[2])) {
        code = err_errno(err, errno, "pipes for %.200s", spec->path);
        goto out;
    }
    rc = start(spec, theirs, &s.pid);
    if (rc != 0) {
        code = start_error(rc, spec, err);
        goto out;
    }
    s.pidfd = pidfd_open(s.pid, 0);
    if (s.pidfd < 0) {
        code = err_errno(err, errno, "watching %.200s", spec->path);
        (void)kill(-s.pid, SIGKILL);
        (void)waitpid(s.pid, NULL, 0);
        goto out;
    }
    *ret = s;
out:
    for (int i = 0; i < 3; i++) {
        spawn_close(&theirs[i]);
    }
    if (code != BT_OK) {
        spawn_close(&s.in);
        spawn_close(&s.out);
        spawn_close(&s.err);
    }
    return code;
}

enum bt_code child_find(const char *name, const char *list, struct buf *ret_path,
                        struct bt_error *err)
{
    bool there = false;

    buf_clear(ret_path);
    if (strchr(name, '/') != NULL) {
        buf_add_cstr(ret_path, name);
        return buf_check(ret_path, err);
    }
    while (*list != 0) {
        size_t n = strcspn(list, ":");
        struct stat st;
        buf_clear(ret_path);
        buf_add(ret_path, list, n);
        buf_add_cstr(ret_path, n > 0 ? "/" : "./");
        buf_add_cstr(ret_path, name);
        if (stat(buf_cstr(ret_path), &st) == 0 && S_ISREG(st.st_mode)) {
            there = true;
            if (access(buf_cstr(ret_path), X_OK) == 0) {
                return buf_check(ret_path, err);
            }
        }
        list += n + (list[n] == ':');
    }
    return there ? err_set(err, BT_UNAUTHORIZED, "%.200s: is not executable", name)
                 : err_set(err, BT_NOT_FOUND, "%.200s: there is no such program in PATH", name);
}
