/* From fork to exec: what an agent process gets (README, "What an agent process gets"). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/spawn/apart.h"
#include "supervisor/spawn/spawner_internal.h"

enum { FAILURE_FD = 3, HANDOVER_FD = 4, RULESET_FD = 6, SPARE_FD = 10, NOFILE_DEFAULT = 1024 };

struct setup {
    struct packet *order;
    pid_t spawner;
    int state_dir;
    int null;
    int log;
    int cgroup;                /* cgroup.procs, -1 = none */
    int limits[CGROUP_LIMITS]; /* the same of those with its limits */
    int failure;
    int handover; /* -1 = none */
    const struct apart *apart;
};

_Noreturn static void fail(int fd, const char *what)
{
    struct exec_failure failure = {.errnum = errno};

    (void)snprintf(failure.what, sizeof failure.what, "%s", what);
    (void)!write(fd, &failure, sizeof failure);
    _exit(127);
}

/* Of a long path its end is shown, which has the name of the program. */
_Noreturn static void fail_exec(int fd, const char *path)
{
    enum { SHOWN = 72 };
    const int error = errno;
    const size_t len = strlen(path);
    char what[96];

    (void)snprintf(what, sizeof what, "exec of %s%s", len > SHOWN ? "..." : "",
                   len > SHOWN ? path + len - SHOWN : path);
    errno = error;
    fail(fd, what);
}

/* At most what this process itself may have: only root may have more. */
static bool limit(int resource, uint64_t value)
{
    struct rlimit own = {.rlim_max = RLIM_INFINITY};
    struct rlimit rl = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};

    if (getrlimit((__rlimit_resource_t)resource, &own) == 0 && own.rlim_max < rl.rlim_max) {
        rl = (struct rlimit){.rlim_cur = own.rlim_max, .rlim_max = own.rlim_max};
    }
    return setrlimit((__rlimit_resource_t)resource, &rl) == 0;
}

static void set_limits(const struct packet *order, int failure)
{
    if (!limit(RLIMIT_CORE, 0)) {
        fail(failure, "limit of core files");
    }
    if (!limit(RLIMIT_NOFILE, order->nofile != 0 ? order->nofile : NOFILE_DEFAULT)) {
        fail(failure, "limit of open files");
    }
    if (order->memory_bytes != 0 && !limit(RLIMIT_AS, order->memory_bytes)) {
        fail(failure, "limit of memory");
    }
}

/* The parent has blocked the signals, so a signal sent before this point is pending, not
 * ignored. */
static void reset_signals(void)
{
    /* A zeroed kernel sigaction. glibc hides signals 32 and 33, which its posix_spawn leaves
     * ignored in this process. */
    static const uint64_t by_default[8];
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++) {
        (void)syscall(SYS_rt_sigaction, sig, by_default, NULL, sizeof(uint64_t));
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Puts the two descriptors that stay into their places, and closes all others. The one of the
 * ruleset is kept until it is used. */
static void place_files(const struct setup *set)
{
    const int failure = fcntl(set->failure, F_DUPFD_CLOEXEC, SPARE_FD);
    const int handover = set->handover < 0 ? -1 : fcntl(set->handover, F_DUPFD_CLOEXEC, SPARE_FD);
    const int ruleset =
        set->apart->ruleset < 0 ? -1 : fcntl(set->apart->ruleset, F_DUPFD_CLOEXEC, SPARE_FD);

    if (failure < 0 || (set->handover >= 0 && handover < 0) ||
        (set->apart->ruleset >= 0 && ruleset < 0) || dup3(failure, FAILURE_FD, O_CLOEXEC) < 0 ||
        (handover >= 0 && dup2(handover, HANDOVER_FD) < 0) ||
        (ruleset >= 0 && dup3(ruleset, RULESET_FD, O_CLOEXEC) < 0) ||
        close_range((handover >= 0 ? HANDOVER_FD : FAILURE_FD) + 1, RULESET_FD - 1, 0) != 0 ||
        close_range(ruleset >= 0 ? RULESET_FD + 1 : RULESET_FD, ~0u, 0) != 0) {
        fail(set->failure, "closing files");
    }
}

static void join(const struct setup *set, int procs)
{
    if (procs >= 0 && write(procs, "0", 1) != 1) {
        fail(set->failure, "cgroup");
    }
}

_Noreturn static void become_agent(const struct setup *set)
{
    struct packet *order = set->order;

    const char *what = "";

    (void)setsid();
    join(set, set->cgroup);
    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        join(set, set->limits[i]);
    }
    if (dup2(set->null, STDIN_FILENO) < 0 || dup2(set->log, STDOUT_FILENO) < 0 ||
        dup2(set->log, STDERR_FILENO) < 0) {
        fail(set->failure, "standard files");
    }
    if ((order->text[0] != 0 ? chdir(order->text) : fchdir(set->state_dir)) != 0) {
        fail(set->failure, "working directory");
    }
    place_files(set);
    set_limits(order, FAILURE_FD);
    if (!apart_user(set->apart, &what)) { /* this clears the parent death signal */
        fail(FAILURE_FD, what);
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        fail(FAILURE_FD, "parent death signal");
    }
    if (getppid() != set->spawner) {
        _exit(127); /* the spawner died before PDEATHSIG was set */
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        fail(FAILURE_FD, "no_new_privs");
    }
    (void)umask(077);
    reset_signals();
    if (!apart_enter(set->apart, RULESET_FD, &what)) {
        fail(FAILURE_FD, what);
    }
    environ = order->env; /* execvp reads PATH from it */
    (void)execvp(order->argv[0], order->argv);
    fail_exec(FAILURE_FD, order->argv[0]);
}

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

static bool failed(struct child *child, const char *what)
{
    (void)snprintf(child->failure, sizeof child->failure, "%s failed: %s", what, strerror(errno));
    return false;
}

/* A file in memory with NAME=value, each terminated by a zero. -1 = failed. It is open for whom it
 * is for; nobody opens it again by /proc/PID/fd. */
static int make_handover(char *const *list)
{
    int fd = memfd_create("baton-handover", MFD_CLOEXEC);

    if (fd >= 0 && fchmod(fd, 0) != 0) {
        (void)close(fd);
        fd = -1;
    }
    for (size_t i = 0; fd >= 0 && list[i] != NULL; i++) {
        const size_t len = strlen(list[i]) + 1;
        if (write(fd, list[i], len) != (ssize_t)len) {
            (void)close(fd);
            fd = -1;
        }
    }
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static const char *variable(char *const *env, const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; env[i] != NULL; i++) {
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=') {
            return env[i] + len + 1;
        }
    }
    return NULL;
}

/* What the agent is kept from. False: it is not available here, and the agent does not start. */
static bool set_apart(struct spawner *s, struct child *child, const struct packet *order,
                      struct apart *ret, int ret_join[CGROUP_LIMITS])
{
    char why[APART_WHY_BYTES] = "";

    if (apart_prepare(ret, (const char *const *)order->apart, order->argv[0],
                      variable(order->env, "PATH"), s->state_dir, why) &&
        cgroup_limit(&s->cgroup, child->instance,
                     (const uint64_t[]){[CGROUP_MEMORY] = ret->memory,
                                        [CGROUP_PROCESSES] = ret->processes,
                                        [CGROUP_CPU] = ret->cpu},
                     ret_join, why, sizeof why)) {
        return true;
    }
    (void)snprintf(child->failure, sizeof child->failure, "not set apart: %s", why);
    return false;
}

bool spawner_fork(struct spawner *s, struct child *child, struct packet *order)
{
    struct apart apart = {.ruleset = -1};
    struct setup set = {.order = order,
                        .spawner = getpid(),
                        .state_dir = s->state_dir,
                        .handover = -1,
                        .limits = {-1, -1, -1},
                        .apart = &apart};
    int pipes[2] = {-1, -1};
    bool forked = false;
    sigset_t all;
    sigset_t before;

    set.null = open("/dev/null", O_RDWR | O_CLOEXEC);
    set.log = log_open(s, child);
    set.cgroup = cgroup_make(&s->cgroup, child->instance);
    if (set.null < 0 || set.log < 0) {
        (void)failed(child, "opening the log");
        goto out;
    }
    if (!set_apart(s, child, order, &apart, set.limits)) {
        goto out;
    }
    if (order->handover[0] != NULL && (set.handover = make_handover(order->handover)) < 0) {
        (void)failed(child, "handing over");
        goto out;
    }
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) {
        (void)failed(child, "pipe");
        goto out;
    }
    set.failure = pipes[1];
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    child->pid = fork();
    if (child->pid == 0) {
        become_agent(&set);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (child->pid < 0) {
        child->pid = 0;
        (void)failed(child, "fork");
        goto out;
    }
    child->exec_pipe = pipes[0];
    pipes[0] = -1;
    child->handover = set.handover;
    set.handover = -1;
    forked = true;
out:
    close_all((const int[]){set.null, set.log, set.cgroup, pipes[0], pipes[1], set.handover}, 6);
    close_all(set.limits, CGROUP_LIMITS);
    apart_done(&apart);
    return forked;
}
