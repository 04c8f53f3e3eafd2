#include "protocol/client/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/client/state.h"
#include "protocol/link/link.h"

enum { ACCEPT_MS = 2000, LOOK_MS = 2 };

/* A connection is nobody's until its listener has taken it. */
static bool find_user(const char *peer, uint16_t peer_port, const char *own, uint16_t own_port,
                      uint32_t *ret_uid)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    const msec until = clock_mono_ms() + ACCEPT_MS;

    while (!link_peer_user(peer, peer_port, own, own_port, ret_uid)) {
        if (clock_mono_ms() > until) {
            return false;
        }
        (void)nanosleep(&look, NULL);
    }
    return true;
}

bool listener_peer_is_ours(const char *dir, const char *peer, uint16_t peer_port, const char *own,
                           uint16_t own_port)
{
    uint32_t trusted[STATE_TRUSTED_MAX];
    uint32_t uid = 0;
    struct stat st;
    bool ok;

    if (stat(dir, &st) != 0 || !find_user(peer, peer_port, own, own_port, &uid)) {
        return false;
    }
    ok = uid == 0 || uid == geteuid();
    for (uint32_t i = state_trusted(st.st_uid, trusted); i-- > 0 && !ok;) {
        ok = trusted[i] == uid;
    }
    return ok;
}

/* http://127.0.0.1:7180 or http://[::1]:7180, and what follows. */
static bool read_url(const char *url, char ret_ip[64], char ret_port[8])
{
    return sscanf(url, "http://[%63[0-9a-fA-F:]]:%7[0-9]", ret_ip, ret_port) == 2 ||
           sscanf(url, "http://%63[0-9.]:%7[0-9]", ret_ip, ret_port) == 2;
}

static bool is_loopback(const char *ip)
{
    return strncmp(ip, "127.", 4) == 0 || strcmp(ip, "::1") == 0;
}

bool listener_is_ours(const char *dir, const char *url)
{
    const struct addrinfo as = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                .ai_socktype = SOCK_STREAM};
    const struct timeval wait = {.tv_sec = 2}; /* of a listener that takes nothing */
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    char ip[64], port[8], own_ip[64], own_port[8];
    struct addrinfo *at = NULL;
    bool ok = false;
    int fd = -1;

    if (!read_url(url, ip, port) || !is_loopback(ip)) {
        return true;
    }
    if (getaddrinfo(ip, port, &as, &at) == 0) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
        ok = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
             getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
             getnameinfo((struct sockaddr *)&own, len, own_ip, sizeof own_ip, own_port,
                         sizeof own_port, NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
             listener_peer_is_ours(dir, ip, (uint16_t)strtoul(port, NULL, 10), own_ip,
                                   (uint16_t)strtoul(own_port, NULL, 10));
        freeaddrinfo(at);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return ok;
}
