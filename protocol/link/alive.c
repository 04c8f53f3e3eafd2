/*
 * Half-open connections between hosts: the peer's host or the network has gone, and no byte says
 * so. nng asks for keepalive and leaves its times to the system: two hours, and a quarter of an
 * hour for bytes on their way. Here they are seconds, for the connections that leave this host.
 *
 * nng gives no descriptor away, so the helper thread looks through those of the process.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"

static bool is_elsewhere(const struct sockaddr_storage *peer)
{
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        return ntohl(in->sin_addr.s_addr) >> 24 != 127;
    }
    if (peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)peer;
        return !IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
    }
    return false;
}

/* A connection with keepalive that nobody has set the times of. */
static void set_times(int fd)
{
    static const int idle = LINK_ALIVE_IDLE_S;
    static const int interval = LINK_ALIVE_INTERVAL_S;
    static const int count = LINK_ALIVE_COUNT;
    static const unsigned unacknowledged =
        1000 * (LINK_ALIVE_IDLE_S + LINK_ALIVE_INTERVAL_S * LINK_ALIVE_COUNT);
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof peer;
    int on = 0;
    int now = 0;
    socklen_t n = sizeof on;

    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 || !is_elsewhere(&peer) ||
        getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &n) != 0 || on == 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &now, &n) != 0 || now == idle) {
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof unacknowledged);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
}

static msec look(struct helper_task *task)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *e;

    (void)task;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.') {
            set_times((int)strtol(e->d_name, NULL, 10));
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return clock_mono_ms() + LINK_ALIVE_LOOK_MS;
}

void alive_start(void)
{
    static struct helper_task task = {.run = look};
    static atomic_bool started;

    if (!atomic_exchange(&started, true)) {
        helper_submit(&task, clock_mono_ms() + LINK_ALIVE_LOOK_MS);
    }
}
