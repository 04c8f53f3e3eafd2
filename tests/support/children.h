/*
 * Processes that a room starts, and how they end, as the test says. Whoever includes this, in one
 * file of a program, links it with -Wl,--wrap=fork,--wrap=waitpid,--wrap=kill,--wrap=execv. A child
 * is a real one up to its exec, and ends there; what it would have run is written down, one line a
 * child. Its number is one of the test's own: 1001 is the first.
 */
#ifndef TEST_CHILDREN_H
#define TEST_CHILDREN_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

enum { CHILDREN_MAX = 64, CHILDREN_TEXT = 4096, CHILDREN_FIRST = 1001 };

static struct {
    char ran[CHILDREN_MAX][CHILDREN_TEXT]; /* "path arg ... [NOTIFY_SOCKET=...] ..." */
    uint32_t n;
    int refused_at;   /* the n-th fork from now on fails; 0 = none */
    int on_term;      /* the exit code of one that gets SIGTERM; -1: it goes on */
    char killed[256]; /* "1001:15 ..." */
    struct {
        pid_t pid;
        int status;
    } ended[CHILDREN_MAX];
    uint32_t ended_n;
    int to_parent; /* in the child */
} children;

pid_t __real_fork(void);
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_fork(void);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_kill(pid_t pid, int signo);
int __wrap_execv(const char *path, char *const argv[]);

/* It ends, with that status of wait; whoever waits for it sees that. */
static void children_end(pid_t pid, int status)
{
    assert_true(children.ended_n < CHILDREN_MAX);
    children.ended[children.ended_n].pid = pid;
    children.ended[children.ended_n++].status = status;
}

static int children_exited(int code)
{
    return code << 8;
}

pid_t __wrap_fork(void)
{
    int fds[2];
    pid_t pid;
    size_t len = 0;

    if (children.refused_at > 0 && --children.refused_at == 0) {
        return -1;
    }
    assert_true(children.n < CHILDREN_MAX);
    assert_int_equal(pipe(fds), 0);
    pid = __real_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        children.to_parent = fds[1];
        return 0;
    }
    (void)close(fds[1]);
    for (ssize_t n; len < CHILDREN_TEXT - 1 && (n = read(fds[0], children.ran[children.n] + len,
                                                         CHILDREN_TEXT - 1 - len)) > 0;) {
        len += (size_t)n;
    }
    (void)close(fds[0]);
    assert_int_equal(__real_waitpid(pid, NULL, 0), pid);
    return CHILDREN_FIRST + (pid_t)children.n++;
}

int __wrap_execv(const char *path, char *const argv[])
{
    static const char *const NAMES[] = {"NOTIFY_SOCKET", "BATON_STATE"};
    char text[CHILDREN_TEXT];
    sigset_t blocked;
    int death = 0;
    size_t n = (size_t)snprintf(text, sizeof text, "%s", path);

    for (size_t i = 0; argv[i] != NULL && n < sizeof text; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", argv[i]);
    }
    for (size_t i = 0; i < 2 && n < sizeof text; i++) {
        const char *value = getenv(NAMES[i]);
        n += value == NULL
                 ? 0
                 : (size_t)snprintf(text + n, sizeof text - n, " [%s=%s]", NAMES[i], value);
    }
    (void)prctl(PR_GET_PDEATHSIG, &death);
    (void)sigprocmask(SIG_SETMASK, NULL, &blocked);
    if (n < sizeof text) {
        n += (size_t)snprintf(text + n, sizeof text - n, " [death %d]%s", death,
                              sigismember(&blocked, SIGTERM) == 1 ? " [blocked]" : "");
    }
    (void)!write(children.to_parent, text, n);
    _exit(0);
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    assert_int_equal(pid, -1);
    assert_int_equal(options, WNOHANG);
    if (children.ended_n == 0) {
        return 0;
    }
    *status = children.ended[0].status;
    pid = children.ended[0].pid;
    memmove(&children.ended[0], &children.ended[1], --children.ended_n * sizeof children.ended[0]);
    return pid;
}

int __wrap_kill(pid_t pid, int signo)
{
    const size_t n = strlen(children.killed);

    assert_true(pid >= CHILDREN_FIRST);
    (void)snprintf(children.killed + n, sizeof children.killed - n, "%d:%d ", (int)pid, signo);
    if (signo == SIGTERM && children.on_term >= 0) {
        children_end(pid, children_exited(children.on_term));
    }
    return 0;
}
#endif
