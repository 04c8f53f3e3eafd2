/*
 * The guard of a tls+tcp listener. nng stops to accept for good when a peer closes its connection
 * between two steps of its handshake (N33): connections come, shake hands and are never given to
 * the socket.
 *
 * While connections wait and nothing was accepted, the guard sends a line that is no TLS, twice. A
 * listener that accepts counts an error, of the second line at the latest: after an error it rests
 * for 100 ms, so it may miss the first. A dead one counts nothing. It is replaced when its pipes
 * have ended, because closing one under traffic wedges nng (N1): their connections are shut down,
 * which nng takes for the end of the peer.
 */
#include <nng/nng.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum { ASKS = 2, REST_MS = 400, REPLACE_MS = 50, CONNECT_MS = 200 };

/* What nng has counted of a listener. */
struct counts {
    uint64_t pipes;  /* now */
    uint64_t events; /* accepted or refused, so far */
};

static bool is_named(nng_stat *stat, const char *const *names, size_t n)
{
    bool found = false;

    for (size_t i = 0; i < n && !found; i++) {
        found = strcmp(nng_stat_name(stat), names[i]) == 0;
    }
    return found;
}

static bool is_of(nng_stat *listener, int id)
{
    nng_stat *s = nng_stat_child(listener);

    while (s != NULL && strcmp(nng_stat_name(s), "id") != 0) {
        s = nng_stat_next(s);
    }
    return s != NULL && nng_stat_value(s) == (uint64_t)id;
}

static void sum_up(nng_stat *listener, struct counts *ret)
{
    static const char *const events[] = {"accept", "disconnect", "canceled", "other", "timeout",
                                         "proto",  "auth",       "oom",      "reject"};
    static const char *const pipes[] = {"pipes"};

    *ret = (struct counts){.pipes = 0};
    for (nng_stat *s = nng_stat_child(listener); s != NULL; s = nng_stat_next(s)) {
        ret->events +=
            is_named(s, events, sizeof events / sizeof events[0]) ? nng_stat_value(s) : 0;
        ret->pipes += is_named(s, pipes, 1) ? nng_stat_value(s) : 0;
    }
}

/* False: nng has no memory for it, or counts nothing. */
static bool count(const struct tls_guard *g, struct counts *ret)
{
    nng_stat *root = NULL;
    bool found = false;

    if (nng_stats_get(&root) != 0) {
        return false;
    }
    for (nng_stat *s = nng_stat_child(root); s != NULL && !found; s = nng_stat_next(s)) {
        found = strcmp(nng_stat_name(s), "listener") == 0 && is_of(s, nng_listener_id(g->listener));
        if (found) {
            sum_up(s, ret);
        }
    }
    nng_stats_free(root);
    return found;
}

/* ---- what the kernel knows ---- */

struct look {
    uint32_t port;
    bool shuts; /* the connections that it finds */
    uint32_t connections;
    struct sockaddr_storage listens; /* its address; ss_family AF_UNSPEC = not found */
    socklen_t listens_len;
};

/* Of a copy, because nng may close the descriptor and the number be another's by now. */
static void look_at(struct look *at, int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof own;

    if (copy < 0) {
        return;
    }
    if (getsockname(copy, (struct sockaddr *)&own, &len) == 0 &&
        peer_key_of_address(&own).port == at->port) {
        if (peer_key_of_fd(copy).port == 0) {
            at->listens = own;
            at->listens_len = len;
        } else {
            at->connections++;
            if (at->shuts) {
                (void)shutdown(copy, SHUT_RDWR);
            }
        }
    }
    (void)close(copy);
}

static struct look look(uint32_t port, bool shuts)
{
    struct look at = {.port = port, .shuts = shuts};
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.') {
            look_at(&at, (int)strtol(e->d_name, NULL, 10));
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return at;
}

/* ---- a listener that may be dead ---- */

/* Sends the line. -1: there is no descriptor for it, or nobody listens. On this machine a
 * connection is there at once, unless too many wait. */
static int ask(const struct look *at)
{
    static const char line[] = "no TLS\r\n";
    const struct timeval limit = {.tv_usec = 1000 * CONNECT_MS};
    const int fd = at->listens.ss_family == AF_UNSPEC
                       ? -1
                       : socket(at->listens.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
                    connect(fd, (const struct sockaddr *)&at->listens, at->listens_len) != 0 ||
                    send(fd, line, sizeof line - 1, MSG_NOSIGNAL) < 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Whether the listener has hung up for the line: it had a descriptor and the time. */
static bool hung_up(int fd)
{
    char text[64];
    ssize_t n;

    do {
        n = recv(fd, text, sizeof text, MSG_DONTWAIT);
    } while (n > 0);
    (void)close(fd);
    return n == 0;
}

/* Suspects a listener that has accepted nothing since the last look although connections wait. */
static void look_after(struct tls_guard *g)
{
    struct counts now;
    struct look at;

    if (!count(g, &now)) {
        return;
    }
    at = look(g->port, false);
    if (at.connections > now.pipes && now.events == g->events) {
        g->asked = ask(&at);
        g->asks = 1;
        g->phase = g->asked >= 0 ? TLS_GUARD_ASKED : TLS_GUARD_LISTENS;
    }
    g->events = now.events;
}

/* After a line: what it has shown. */
static void conclude(struct tls_guard *g)
{
    struct counts now;
    struct look at;

    g->phase = TLS_GUARD_LISTENS;
    if (!hung_up(g->asked) || !count(g, &now) || now.events != g->events) {
        return; /* it accepts, or nothing is known */
    }
    if (g->asks == ASKS) {
        log_warn("link.tls_relisten", "url=%s", g->endpoint->url);
        g->phase = TLS_GUARD_ENDS;
        return;
    }
    at = look(g->port, false);
    g->asked = ask(&at);
    g->asks++;
    g->phase = g->asked >= 0 ? TLS_GUARD_ASKED : TLS_GUARD_LISTENS;
}

/* Closes the dead listener once it has no pipe. */
static void end(struct tls_guard *g)
{
    struct counts now;

    (void)look(g->port, true);
    if (count(g, &now) && now.pipes == 0) {
        (void)nng_listener_close(g->listener);
        g->phase = TLS_GUARD_CLOSED;
    }
}

/* The port is free a moment after the listener was closed. */
static void listen_again(struct tls_guard *g)
{
    struct bt_error err;

    if (endpoint_listen(g->endpoint, &g->listener, &err) == BT_OK) {
        g->events = 0;
        g->phase = TLS_GUARD_LISTENS;
    } else if (g->failed++ % 100 == 0) {
        log_err("link.tls_relisten_failed", "error=\"%s\"", err.msg);
    }
}

static msec guard_run(struct helper_task *task)
{
    struct tls_guard *g = CONTAINER_OF(task, struct tls_guard, task);

    static void (*const steps[])(struct tls_guard *) = {[TLS_GUARD_LISTENS] = look_after,
                                                        [TLS_GUARD_ASKED] = conclude,
                                                        [TLS_GUARD_ENDS] = end,
                                                        [TLS_GUARD_CLOSED] = listen_again};
    static const uint32_t next_ms[] = {[TLS_GUARD_LISTENS] = LINK_GUARD_MS,
                                       [TLS_GUARD_ASKED] = REST_MS,
                                       [TLS_GUARD_ENDS] = REPLACE_MS,
                                       [TLS_GUARD_CLOSED] = REPLACE_MS};

    steps[g->phase](g);
    return clock_mono_ms() + next_ms[g->phase];
}

void tls_guard_start(struct tls_guard *g, struct endpoint *e, nng_listener listener)
{
    if (!endpoint_is_tls(e)) {
        return;
    }
    g->endpoint = e;
    g->listener = listener;
    g->port = (uint32_t)strtoul(strrchr(e->url, ':') + 1, NULL, 10);
    g->task.run = guard_run;
    helper_submit(&g->task, clock_mono_ms() + LINK_GUARD_MS);
}

void tls_guard_stop(struct tls_guard *g)
{
    if (g->endpoint != NULL) {
        helper_cancel(&g->task);
        if (g->phase == TLS_GUARD_ASKED) {
            (void)close(g->asked);
        }
    }
}
