#include "supervisor/bridge/fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "protocol/base/shard.h"

enum { ARGS_MAX = 128, EXIT_NOT_STARTED = 1 };

struct fleet {
    pid_t pids[SHARDS_MAX]; /* 0 = it has ended */
    uint32_t shards, left;
    int exit_code;
    bool once, ending;
};

static pid_t start(char **argv, uint32_t shard, uint32_t shards)
{
    static char flag[] = "--shard";
    const pid_t self = getpid();
    char number[32];
    char *args[ARGS_MAX + 3];
    size_t n = 0;
    pid_t pid;

    (void)snprintf(number, sizeof number, "%" PRIu32 "/%" PRIu32, shard, shards);
    for (; argv[n] != NULL && n < ARGS_MAX; n++) {
        args[n] = argv[n];
    }
    args[n++] = flag;
    args[n++] = number;
    args[n] = NULL;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        /* it keeps the signals blocked that it is going to read */
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == self) {
            (void)execv("/proc/self/exe", args);
        }
        _exit(EXIT_NOT_STARTED);
    }
    return pid;
}

static void end_all(struct fleet *f)
{
    f->ending = true;
    for (uint32_t i = 0; i < f->shards; i++) {
        if (f->pids[i] > 0) {
            (void)kill(f->pids[i], SIGTERM);
        }
    }
}

static void reap(struct fleet *f)
{
    int status;

    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_NOT_STARTED;
        for (uint32_t i = 0; i < f->shards; i++) {
            if (f->pids[i] != pid) {
                continue;
            }
            f->pids[i] = 0;
            f->left--;
            f->exit_code = f->exit_code == 0 ? code : f->exit_code;
            if (!f->once && !f->ending) {
                log_warn("bridge.shard_ended", "shard=%" PRIu32 " exit=%d", i, code);
                end_all(f);
            }
        }
    }
}

int fleet_run(const struct options *o, char **argv, uint32_t shards, int stop_fd)
{
    struct fleet f = {.shards = shards, .left = shards, .once = o->once};
    struct pollfd fds[] = {{.fd = stop_fd, .events = POLLIN}, {.events = POLLIN}};
    struct signalfd_siginfo info;
    sigset_t child;

    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    fds[1].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (uint32_t i = 0; i < shards && !f.ending; i++) {
        f.pids[i] = start(argv, i, shards);
        if (f.pids[i] < 0) {
            log_err("bridge.shard", "fork: %s", strerror(errno));
            f.left = i; /* those that have started */
            f.exit_code = EXIT_NOT_STARTED;
            end_all(&f);
        }
    }
    while (f.left > 0) {
        (void)poll(fds, 2, -1);
        if (!f.ending && (fds[0].revents & POLLIN) != 0) {
            fds[0].fd = -1; /* once is enough */
            end_all(&f);
        }
        while (read(fds[1].fd, &info, sizeof info) == (ssize_t)sizeof info) {
        }
        reap(&f);
    }
    (void)close(fds[1].fd);
    return f.exit_code;
}
