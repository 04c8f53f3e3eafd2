/* The address of the peer of a connection, and the end of one connection, by that address. */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/link/link_internal.h"

struct peer_key peer_key_of_address(const struct sockaddr_storage *at)
{
    struct peer_key key = {.port = 0};

    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)at;
        memcpy(key.address, &in->sin_addr, sizeof in->sin_addr);
        key.port = ntohs(in->sin_port);
    } else if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)at;
        memcpy(key.address, &in->sin6_addr, sizeof in->sin6_addr);
        key.port = ntohs(in->sin6_port);
    }
    return key;
}

bool peer_key_eq(const struct peer_key *a, const struct peer_key *b)
{
    return a->port == b->port && memcmp(a->address, b->address, sizeof a->address) == 0;
}

struct peer_key peer_key_of_fd(int fd)
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof at;

    return getpeername(fd, (struct sockaddr *)&at, &len) == 0 ? peer_key_of_address(&at)
                                                              : (struct peer_key){.port = 0};
}

static struct sockaddr_storage address_of(const nng_sockaddr *from)
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};

    if (from->s_family == NNG_AF_INET) {
        struct sockaddr_in *in = (void *)&at;
        *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = from->s_in.sa_port};
        in->sin_addr.s_addr = from->s_in.sa_addr;
    } else if (from->s_family == NNG_AF_INET6) {
        struct sockaddr_in6 *in = (void *)&at;
        *in = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = from->s_in6.sa_port};
        memcpy(&in->sin6_addr, from->s_in6.sa_addr, sizeof in->sin6_addr);
    }
    return at;
}

struct peer_key peer_key_of_pipe(nng_pipe pipe)
{
    nng_sockaddr from = {.s_family = NNG_AF_UNSPEC};
    struct sockaddr_storage at;

    (void)nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &from);
    at = address_of(&from);
    return peer_key_of_address(&at);
}

struct sockaddr_storage peer_address_of_listener(nng_listener listener)
{
    nng_sockaddr at = {.s_family = NNG_AF_UNSPEC};

    (void)nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &at);
    return address_of(&at);
}

bool peer_key_is_connection_of(int fd, const struct sockaddr_storage *listener)
{
    static const struct peer_key any = {.port = 0};
    const struct peer_key listens = peer_key_of_address(listener);
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof at;
    struct peer_key own;

    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        return false;
    }
    own = peer_key_of_address(&at);
    return own.port != 0 && own.port == listens.port &&
           (peer_key_same_host(&listens, &any) || peer_key_same_host(&listens, &own)) &&
           peer_key_of_fd(fd).port != 0;
}

bool peer_key_same_host(const struct peer_key *a, const struct peer_key *b)
{
    return memcmp(a->address, b->address, sizeof a->address) == 0;
}

/* A copy of the descriptor, because nng may close it and the number be another's by now. */
static bool shut(int fd, const struct peer_key *peer, uint32_t own_port)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof own;
    struct peer_key at;
    bool found = false;

    if (copy < 0) {
        return false;
    }
    at = peer_key_of_fd(copy);
    if (at.port != 0 && peer_key_eq(&at, peer) &&
        getsockname(copy, (struct sockaddr *)&own, &len) == 0 &&
        peer_key_of_address(&own).port == own_port) {
        (void)shutdown(copy, SHUT_RDWR);
        found = true;
    }
    (void)close(copy);
    return found;
}

void peer_key_shut(const struct peer_key *peer, uint32_t own_port)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    bool found = false;

    while (dir != NULL && !found && (e = readdir(dir)) != NULL) {
        struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof at;
        const int fd = (int)strtol(e->d_name, NULL, 10);
        found = e->d_name[0] != '.' && getpeername(fd, (struct sockaddr *)&at, &len) == 0 &&
                shut(fd, peer, own_port);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}
