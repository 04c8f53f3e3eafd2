/*
 * An agent process for the tests of supervision: agent ROLE FIFO. It writes one line of pids to the
 * FIFO when it is ready (its own pid first), then acts by its role.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char own_path[4096];

/* One write, so that lines of several processes do not mix. */
static void tell(const char *fifo, pid_t other)
{
    char line[64];
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    int n = snprintf(line, sizeof line, "%d %d\n", (int)getpid(), (int)other);

    if (fd < 0 || write(fd, line, (size_t)n) != n) {
        _exit(99);
    }
    (void)close(fd);
}

_Noreturn static void rest(void)
{
    for (;;) {
        (void)pause();
    }
}

static void be_deaf(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
}

/* Obeys SIGTERM, and says so: its line then has its pid twice. */
static void obey_and_tell(const char *fifo)
{
    sigset_t term;
    int number = 0;

    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL);
    tell(fifo, 0);
    (void)sigwait(&term, &number);
    tell(fifo, getpid());
}

/* fork, setsid, fork: the classical daemon, whose parent is gone; returns in the agent only. */
static pid_t leave_a_daemon(const char *fifo, bool own_session, char *const *env)
{
    int pipes[2];
    pid_t daemon_pid = 0;
    pid_t middle;

    if (pipe2(pipes, O_CLOEXEC) != 0) {
        _exit(98);
    }
    middle = fork();
    if (middle == 0) {
        if (own_session) {
            (void)setsid();
        }
        daemon_pid = fork();
        if (daemon_pid == 0) {
            char role[] = "hide";
            char *const argv[] = {own_path, role, NULL};
            be_deaf();
            if (env != NULL) {
                (void)execve(own_path, argv, env);
                _exit(97);
            }
            rest();
        }
        _exit(write(pipes[1], &daemon_pid, sizeof daemon_pid) == sizeof daemon_pid ? 0 : 1);
    }
    (void)waitpid(middle, NULL, 0);
    if (read(pipes[0], &daemon_pid, sizeof daemon_pid) != sizeof daemon_pid) {
        _exit(96);
    }
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    tell(fifo, daemon_pid);
    return daemon_pid;
}

static void copy_file(const char *path)
{
    char bytes[4096];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    (void)printf("== %s\n", path);
    (void)fflush(stdout);
    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            bytes[i] = bytes[i] == 0 ? '\n' : bytes[i];
        }
        (void)!write(STDOUT_FILENO, bytes, (size_t)n);
    }
    (void)!write(STDOUT_FILENO, "\n", 1);
    (void)close(fd);
}

static void report(void)
{
    char link[64];
    char to[256];
    char cwd[4096];

    copy_file("/proc/self/environ");
    copy_file("/proc/self/status");
    copy_file("/proc/self/limits");
    (void)printf("== fds\n");
    for (int fd = 0; fd < 200; fd++) {
        ssize_t n;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, to, sizeof to - 1);
        if (n > 0) {
            to[n] = 0;
            (void)printf("fd %d %s\n", fd, to);
        }
    }
    (void)printf("== session %s\n", getsid(0) == getpid() ? "own" : "shared");
    (void)printf("== cwd %s\n", getcwd(cwd, sizeof cwd) != NULL ? cwd : "?");
    (void)fflush(stdout);
}

static void flood(void)
{
    static char block[65536];

    memset(block, 'x', sizeof block);
    for (int i = 0; i < 64; i++) {
        (void)!write(i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, block, sizeof block);
    }
}

static void fork_many(void)
{
    for (int i = 0; i < 200; i++) {
        if (fork() == 0) {
            (void)setsid();
            rest();
        }
    }
}

int main(int argc, char **argv)
{
    char *const no_env[] = {NULL};
    const char *role = argc > 1 ? argv[1] : "";
    const char *fifo = argc > 2 ? argv[2] : "";

    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) <= 0) {
        return 95;
    }
    if (strcmp(role, "hide") == 0) {
        be_deaf();
        rest();
    } else if (strcmp(role, "obedient") == 0) {
        obey_and_tell(fifo);
        return 0;
    } else if (strcmp(role, "deaf") == 0) {
        be_deaf();
    } else if (strcmp(role, "daemon") == 0) {
        (void)leave_a_daemon(fifo, true, NULL);
        rest();
    } else if (strcmp(role, "hidden-daemon") == 0) {
        (void)leave_a_daemon(fifo, true, no_env);
        rest();
    } else if (strcmp(role, "bare-orphan") == 0) {
        (void)leave_a_daemon(fifo, false, no_env);
        rest();
    } else if (strcmp(role, "daemon-and-crash") == 0) {
        (void)leave_a_daemon(fifo, true, NULL);
        return 4;
    } else if (strcmp(role, "flood") == 0) {
        flood();
    } else if (strcmp(role, "mute") == 0) {
        (void)close(0);
        (void)close(1);
        (void)close(2);
    } else if (strcmp(role, "report") == 0) {
        report();
    } else if (strcmp(role, "forks") == 0) {
        fork_many();
    } else if (strcmp(role, "exit") == 0) {
        return argc > 3 ? (int)strtol(argv[3], NULL, 10) : 3;
    }
    tell(fifo, 0);
    rest();
}
