#include "tests/edge/client/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
        abort();
    }
}

void daemon_make(struct daemon *d)
{
    char path[128];
    FILE *f;

    (void)snprintf(d->dir, sizeof d->dir, "/tmp/baton-client-XXXXXX");
    must(mkdtemp(d->dir) != NULL, "mkdtemp");
    (void)snprintf(path, sizeof path, "%s/baton.yaml", d->dir);
    f = fopen(path, "we");
    must(f != NULL, path);
    (void)fprintf(
        f,
        "listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}\ndurability: process\n"
        "agents:\n  - {agentId: worker, command: ['%s'], capacity: 4}\n",
        AGENT);
    must(fclose(f) == 0, path);
    d->pid = 0;
}

static void become(const struct daemon *d, int ready)
{
    char config[128];
    char log[128];
    char fd[16];
    int out;

    (void)snprintf(config, sizeof config, "%s/baton.yaml", d->dir);
    (void)snprintf(log, sizeof log, "%s/batond.log", d->dir);
    (void)snprintf(fd, sizeof fd, "%d", ready);
    out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)dup2(out, 1);
    (void)dup2(out, 2);
    (void)execl(BATOND, BATOND, "--state", d->dir, "--config", config, "--ready-fd", fd,
                (char *)NULL);
    _exit(127);
}

void daemon_start(struct daemon *d)
{
    char text[8];
    int fds[2];

    must(pipe(fds) == 0, "pipe");
    d->pid = fork();
    must(d->pid >= 0, "fork");
    if (d->pid == 0) {
        (void)close(fds[0]);
        become(d, fds[1]);
    }
    (void)close(fds[1]);
    must(read(fds[0], text, sizeof text) == 6, "the daemon is ready");
    (void)close(fds[0]);
}

void daemon_kill(struct daemon *d)
{
    (void)kill(d->pid, SIGKILL);
    must(waitpid(d->pid, NULL, 0) == d->pid, "waitpid");
    d->pid = 0;
}

void daemon_stop(struct daemon *d)
{
    int status = 1;

    (void)kill(d->pid, SIGTERM);
    must(waitpid(d->pid, &status, 0) == d->pid && status == 0, "the daemon exits with 0");
    d->pid = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void daemon_done(struct daemon *d)
{
    if (d->pid == 0) {
        daemon_start(d); /* its agents outlive a killed daemon; the next one finds and stops them */
    }
    daemon_stop(d);
    (void)nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
