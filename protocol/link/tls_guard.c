/*
 * The guard of a tls+tcp listener. nng stops accepting for good when a peer closes its connection
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

static bool is_of(nng_stat *listener, int id)
{
    nng_stat *s = nng_stat_child(listener);

    while (s != NULL && strcmp(nng_stat_name(s), "id") != 0) {
        s = nng_stat_next(s);
    }
    return s != NULL && nng_stat_value(s) == (uint64_t)id;
}

static bool is_event(const char *name)
{
    static const char *const events[] = {"accept", "disconnect", "canceled", "other", "timeout",
                                         "proto",  "auth",       "oom",      "reject"};
    bool found = false;

    for (size_t i = 0; i < sizeof events / sizeof events[0] && !found; i++) {
        found = strcmp(name, events[i]) == 0;
    }
    return found;
}

static void sum_up(nng_stat *listener, struct counts *ret)
{
    *ret = (struct counts){.pipes = 0};
    for (nng_stat *s = nng_stat_child(listener); s != NULL; s = nng_stat_next(s)) {
        if (is_event(nng_stat_name(s))) {
            ret->events += nng_stat_value(s);
        } else if (strcmp(nng_stat_name(s), "pipes") == 0) {
            ret->pipes = nng_stat_value(s);
        }
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

/* The connections that the kernel has accepted for it; shuts: and shuts them down. Each by a copy
 * of its descriptor, because nng may close it and the number be another's by now. */
static uint32_t connections(const struct tls_guard *g, bool shuts)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    uint32_t n = 0;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        const int fd =
            e->d_name[0] == '.' ? -1 : fcntl((int)strtol(e->d_name, NULL, 10), F_DUPFD_CLOEXEC, 0);
        if (fd >= 0 && peer_key_is_connection_of(fd, &g->listens)) {
            n++;
            if (shuts) {
                (void)shutdown(fd, SHUT_RDWR);
            }
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

/* ---- a listener that may be dead ---- */

/* Sends the line, the next one of a suspicion. No descriptor for it, or nobody listens: nothing is
 * known. On this machine a connection is there at once, unless too many wait. */
static void ask(struct tls_guard *g)
{
    static const char line[] = "no TLS\r\n";
    const struct timeval limit = {.tv_usec = 1000 * CONNECT_MS};

    g->asked = socket(g->listens.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g->asks++;
    g->phase = g->asked >= 0 ? TLS_GUARD_ASKED : TLS_GUARD_LISTENS;
    if (g->asked >= 0 &&
        (setsockopt(g->asked, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
         connect(g->asked, (const struct sockaddr *)&g->listens, sizeof g->listens) != 0 ||
         send(g->asked, line, sizeof line - 1, MSG_NOSIGNAL) < 0)) {
        (void)close(g->asked);
        g->phase = TLS_GUARD_LISTENS;
    }
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

    if (!count(g, &now)) {
        return;
    }
    if (now.events == g->events && connections(g, false) > now.pipes) {
        g->asks = 0;
        ask(g);
    }
    g->events = now.events;
}

/* After a line: what it has shown. */
static void conclude(struct tls_guard *g)
{
    struct counts now;

    if (!hung_up(g->asked) || !count(g, &now) || now.events != g->events) {
        g->phase = TLS_GUARD_LISTENS; /* it accepts, or nothing is known */
    } else if (g->asks < ASKS) {
        ask(g);
    } else {
        log_warn("link.tls_relisten", "url=%s", g->endpoint->url);
        g->phase = TLS_GUARD_ENDS;
    }
}

/* Closes the dead listener once it has no pipe. */
static void end(struct tls_guard *g)
{
    struct counts now;

    (void)connections(g, true);
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
    static void (*const steps[])(struct tls_guard *) = {[TLS_GUARD_LISTENS] = look_after,
                                                        [TLS_GUARD_ASKED] = conclude,
                                                        [TLS_GUARD_ENDS] = end,
                                                        [TLS_GUARD_CLOSED] = listen_again};
    static const uint32_t next_ms[] = {[TLS_GUARD_LISTENS] = LINK_GUARD_MS,
                                       [TLS_GUARD_ASKED] = REST_MS,
                                       [TLS_GUARD_ENDS] = REPLACE_MS,
                                       [TLS_GUARD_CLOSED] = REPLACE_MS};
    struct tls_guard *g = CONTAINER_OF(task, struct tls_guard, task);

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
    g->listens = peer_address_of_listener(listener);
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
