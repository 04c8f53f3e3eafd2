/*
 * Keeps an ipc:// listener alive (N6). One connect() and close() without a handshake ends its
 * accept loop for ever, while its pipes continue.
 *
 * Three measures help. Only our own user can reach the path: its directory has mode 0700 (N15).
 * Only one process listens on it: a lock file is taken before nng's own check, which would end the
 * other process's listener. And the helper thread probes the listener with a handshake and puts a
 * new listener on the path when the probe fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum { SP_HEADER = 8 };

static const char *ipc_path(const struct endpoint *e)
{
    return e->url + strlen("ipc://");
}

static enum bt_code ensure_private_directory(const struct endpoint *e, struct bt_error *err)
{
    char dir[LINK_URL_MAX];
    struct stat st;
    (void)snprintf(dir, sizeof dir, "%s", ipc_path(e));
    char *slash = strrchr(dir, '/');
    *(slash == dir ? slash + 1 : slash) = '\0';
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s: its directory cannot be created", e->url);
    }
    if (lstat(dir, &st) != 0) {
        return err_errno(err, errno, "%s: its directory", e->url);
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return err_set(err, BT_INVALID, "%s: the directory %s must be ours and have mode 0700",
                       e->url, dir);
    }
    return BT_OK;
}

enum bt_code ipc_guard_lock(struct ipc_guard *g, struct endpoint *e, struct bt_error *err)
{
    char path[LINK_URL_MAX + 8];
    g->lock_fd = -1;
    if (!endpoint_is_ipc(e)) {
        return BT_OK;
    }
    enum bt_code code = ensure_private_directory(e, err);
    if (code != BT_OK) {
        return code;
    }
    (void)snprintf(path, sizeof path, "%s.lock", ipc_path(e));
    g->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (g->lock_fd < 0) {
        return err_errno(err, errno, "%s: its lock file %s", e->url, path);
    }
    if (flock(g->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK
                   ? err_set(err, BT_CONFLICT, "%s: another process listens there (it holds %s)",
                             e->url, path)
                   : err_errno(err, errno, "%s: its lock file %s", e->url, path);
        ipc_guard_abandon(g);
        return code;
    }
    g->endpoint = e;
    return BT_OK;
}

void ipc_guard_abandon(struct ipc_guard *g)
{
    if (g->lock_fd >= 0) {
        (void)close(g->lock_fd);
    }
    g->lock_fd = -1;
    g->endpoint = NULL;
}

static bool wait_for(int fd, short events, msec until)
{
    for (;;) {
        const msec now = clock_mono_ms();
        struct pollfd p = {.fd = fd, .events = events};
        const int n = now >= until ? 0 : poll(&p, 1, (int)(until - now));
        if (n >= 0 || errno != EINTR) {
            return n > 0;
        }
    }
}

/* Both sides send eight bytes. The pipe that this creates ends normally when we hang up. */
static bool handshake(int fd, uint16_t peer)
{
    const msec until = clock_mono_ms() + LINK_PROBE_MS;
    const uint8_t own_header[SP_HEADER] = {0, 'S', 'P', 0, (uint8_t)(peer >> 8), (uint8_t)peer,
                                           0, 0};
    uint8_t peer_header[SP_HEADER];
    size_t got = 0;
    if (send(fd, own_header, sizeof own_header, MSG_NOSIGNAL) != (ssize_t)sizeof own_header) {
        return false;
    }
    while (got < sizeof peer_header) {
        if (!wait_for(fd, POLLIN, until)) {
            return false;
        }
        const ssize_t n = recv(fd, peer_header + got, sizeof peer_header - got, 0);
        if (n <= 0) {
            return false;
        }
        got += (size_t)n;
    }
    return memcmp(peer_header, own_header, 4) == 0;
}

static void guard_on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct ipc_guard *g = arg;
    (void)pipe;
    (void)ev;
    (void)atomic_fetch_add(&g->admitted, 1);
}

/* A dead listener still completes the next handshake and then forgets the connection, so only a new
 * pipe proves that it is alive. */
static bool pipe_admitted(const struct ipc_guard *g, unsigned before)
{
    const msec until = clock_mono_ms() + LINK_PROBE_MS;
    while (atomic_load(&g->admitted) == before) {
        if (clock_mono_ms() >= until) {
            return false;
        }
        (void)poll(NULL, 0, 2);
    }
    return true;
}

/* The listener needs a descriptor to accept: while there is none, nothing is known about it. */
static bool has_descriptor_left(int fd)
{
    const int other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (other >= 0) {
        (void)close(other);
    }
    return other >= 0;
}

static bool listener_seems_alive(const struct ipc_guard *g)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", ipc_path(g->endpoint));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return true; /* out of descriptors: no evidence about the listener */
    }
    const unsigned before = atomic_load(&g->admitted);
    const bool alive = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
                       handshake(fd, g->peer) && pipe_admitted(g, before);
    const bool seems = alive || !has_descriptor_left(fd);
    (void)close(fd);
    return seems;
}

/* Keeps the dead listener, because closing it would close its pipes under traffic (N1). Over the
 * cap, the oldest is closed. */
static void keep_dead_listener(struct ipc_guard *g)
{
    if (g->n_dead_listeners == LINK_DEAD_LISTENERS_MAX) {
        (void)nng_listener_close(g->dead_listeners[0]);
        g->n_dead_listeners--;
        memmove(g->dead_listeners, g->dead_listeners + 1,
                g->n_dead_listeners * sizeof g->dead_listeners[0]);
    }
    g->dead_listeners[g->n_dead_listeners++] = g->listener;
}

static msec guard_run(struct helper_task *task)
{
    struct ipc_guard *g = CONTAINER_OF(task, struct ipc_guard, task);
    if (!listener_seems_alive(g)) {
        struct bt_error err;
        nng_listener fresh;
        log_warn("link.ipc_relisten", "url=%s", g->endpoint->url);
        (void)unlink(ipc_path(g->endpoint));
        if (endpoint_listen(g->endpoint, &fresh, &err) == BT_OK) {
            keep_dead_listener(g);
            g->listener = fresh;
        } else {
            log_err("link.ipc_relisten_failed", "error=\"%s\"", err.msg);
        }
    }
    return clock_mono_ms() + LINK_GUARD_MS;
}

void ipc_guard_start(struct ipc_guard *g, nng_listener listener, uint16_t peer)
{
    if (g->endpoint == NULL) {
        return;
    }
    g->listener = listener;
    g->peer = peer;
    g->task.run = guard_run;
    (void)nng_pipe_notify(g->endpoint->socket, NNG_PIPE_EV_ADD_PRE, guard_on_pipe, g);
    helper_submit(&g->task, clock_mono_ms() + LINK_GUARD_MS);
}

void ipc_guard_stop(struct ipc_guard *g)
{
    if (g->endpoint != NULL) {
        helper_cancel(&g->task);
        ipc_guard_abandon(g);
    }
}
