#include "tests/edge/postgres/proxy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/pg_server/pg_server.h"

enum { CHUNK = 65536, TICK_MS = 5, HOLD_MS = 20000, LONG = 500 };

struct shared {
    _Atomic(int) mode;
    _Atomic(uint32_t) arg, connections;
};

static struct shared *all;
static char dir[64], url[160];
static pid_t listener;

static int dial(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s/.s.PGSQL.5432", pg_server_dir());
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void send_all(int fd, const char *at, size_t n)
{
    while (n > 0) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        at += sent;
        n -= (size_t)sent;
    }
}

static void once(void)
{
    atomic_store(&all->mode, PROXY_PASS);
}

/* A request has come; false: the connection of the client ends. *ret_late: so many ms, if so. */
static bool forward(int server, const char *bytes, size_t n, bool *io_losing, uint32_t *ret_late)
{
    const int mode = atomic_load(&all->mode);
    const uint32_t arg = atomic_load(&all->arg);

    if (mode == PROXY_CUT || mode == PROXY_HOLD) {
        send_all(server, bytes, n < arg ? n : arg);
        once();
        if (mode == PROXY_HOLD) {
            (void)poll(NULL, 0, HOLD_MS);
        }
        return false;
    }
    send_all(server, bytes, n);
    if (mode == PROXY_LOSE_ANSWERS ||
        (mode == PROXY_LOSE_TAKE && memmem(bytes, n, "epoch = epoch + 1", 17) != NULL)) {
        *io_losing = true;
        once();
    }
    if (mode == PROXY_LATE_LONG && n > LONG) {
        *ret_late = arg;
        once();
    }
    if (mode == PROXY_LEAVE) {
        (void)poll(NULL, 0, (int)arg);
        once();
        return false;
    }
    return true;
}

static void serve(int client)
{
    static char bytes[CHUNK];
    const int server = dial();
    bool losing = false;
    uint32_t late = 0;
    bool on = server >= 0;

    while (on) {
        struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
        ssize_t n;
        (void)poll(fds, 2, TICK_MS);
        if (atomic_load(&all->mode) == PROXY_AWAY) {
            break;
        }
        if (fds[0].revents != 0) {
            n = read(client, bytes, sizeof bytes);
            on = n > 0 && forward(server, bytes, (size_t)n, &losing, &late);
        }
        if (on && fds[1].revents != 0) {
            n = read(server, bytes, sizeof bytes);
            if (n <= 0 || losing) {
                break;
            }
            if (atomic_load(&all->mode) == PROXY_LATE) {
                late = atomic_load(&all->arg);
            }
            (void)poll(NULL, 0, (int)late);
            late = 0;
            send_all(client, bytes, (size_t)n);
        }
    }
    (void)shutdown(client, SHUT_RDWR);
    (void)close(client);
    /* What the server runs goes on for a while without a client. */
    (void)poll(NULL, 0, server >= 0 ? 3000 : 0);
    _exit(0);
}

static void listen_for_ever(int fd)
{
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        const int client = accept(fd, NULL, NULL);
        if (client < 0) {
            continue;
        }
        if (atomic_load(&all->mode) != PROXY_AWAY) {
            atomic_fetch_add(&all->connections, 1);
            if (fork() == 0) {
                (void)close(fd);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                serve(client);
            }
        }
        (void)close(client);
    }
}

static void end(void)
{
    if (listener > 0) {
        char path[96];
        (void)kill(listener, SIGKILL);
        (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", dir);
        (void)unlink(path);
        (void)rmdir(dir);
        listener = 0;
    }
}

const char *proxy_start(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const pid_t self = getpid();

    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-proxy-XXXXXX");
    if (all == MAP_FAILED || mkdtemp(dir) == NULL) {
        abort();
    }
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/.s.PGSQL.5432", dir);
    (void)snprintf(url, sizeof url, "postgresql:///postgres?host=%s&user=fleet", dir);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 16) != 0) {
        abort();
    }
    listener = fork();
    if (listener == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        listen_for_ever(fd);
    }
    (void)close(fd);
    if (self == getpid()) {
        (void)atexit(end);
    }
    return url;
}

void proxy_set(enum proxy_mode mode, uint32_t ms_or_bytes)
{
    atomic_store(&all->arg, ms_or_bytes);
    atomic_store(&all->mode, mode);
}

uint32_t proxy_connections(void)
{
    return atomic_load(&all->connections);
}
