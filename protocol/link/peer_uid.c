/*
 * Whose process is at the other end of a tcp connection of this machine. The kernel looks the
 * other end's socket up by its four numbers (sock_diag, 10 us however many sockets there are).
 * Where it does not, the tables in /proc are read.
 *
 * Only a socket that is connected and belongs to a process counts. The kernel reports user 0 for
 * all others: in TIME_WAIT, closed by their process, or not accepted yet.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/link/link_internal.h"

enum {
    CONNECTED = 1, /* TCP_ESTABLISHED */
    LISTENING = 10,
    ANSWER_BYTES = 1024,
    TABLE_BYTES_MAX = 16 * 1024 * 1024, /* about 100,000 sockets; then the peer is not found */
    LINE_MAX_BYTES = 512
};

static struct {
    pthread_mutex_t mutex;
    uint32_t seq;
    int fd; /* -1: the kernel does not answer here */
    bool asked;
} diag = {.mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

bool peer_address_plain(struct peer_address *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (a->v6 && memcmp(a->ip, mapped, sizeof mapped) == 0) {
        memmove(a->ip, a->ip + sizeof mapped, 4);
        memset(a->ip + 4, 0, sizeof a->ip - 4);
        a->v6 = false;
    }
    return a->v6 ? memcmp(a->ip, &in6addr_loopback, sizeof a->ip) == 0 : a->ip[0] == 127;
}

static bool same_address(const struct peer_address *a, const struct peer_address *b)
{
    return a->v6 == b->v6 && a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* ---- sock_diag ---- */

struct diag_request {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static bool answered_by(const struct inet_diag_msg *m, const struct peer_address *peer,
                        const struct peer_address *own)
{
    struct peer_address from = {.v6 = m->idiag_family == AF_INET6, .port = m->id.idiag_sport};
    struct peer_address to = {.v6 = from.v6, .port = m->id.idiag_dport};
    const size_t len = from.v6 ? 16 : 4;

    memcpy(from.ip, m->id.idiag_src, len);
    memcpy(to.ip, m->id.idiag_dst, len);
    (void)peer_address_plain(&from);
    (void)peer_address_plain(&to);
    return same_address(&from, peer) && same_address(&to, own);
}

/* A datagram to the kernel, which answers before send() returns: nothing here waits. */
static bool ask(int fd, uint32_t seq, const struct peer_address *peer,
                const struct peer_address *own)
{
    struct diag_request rq = {
        .head = {.nlmsg_len = sizeof rq,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = seq},
        .body = {.sdiag_family = peer->v6 ? AF_INET6 : AF_INET,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX,
                 .id = {.idiag_sport = peer->port,
                        .idiag_dport = own->port,
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};

    memcpy(rq.body.id.idiag_src, peer->ip, sizeof peer->ip);
    memcpy(rq.body.id.idiag_dst, own->ip, sizeof own->ip);
    return send(fd, &rq, sizeof rq, MSG_DONTWAIT) == (ssize_t)sizeof rq;
}

/* False: the kernel did not answer. NULL for the socket: there is none. */
static bool hear(int fd, uint32_t seq, struct inet_diag_msg *ret, bool *ret_found)
{
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_BYTES];
    } in;
    ssize_t n;

    do { /* an answer that nobody took is skipped */
        n = recv(fd, &in, sizeof in, MSG_DONTWAIT);
    } while (n >= (ssize_t)sizeof in.head && in.head.nlmsg_seq != seq);
    *ret_found =
        n >= (ssize_t)(NLMSG_HDRLEN + sizeof *ret) && in.head.nlmsg_type == SOCK_DIAG_BY_FAMILY;
    if (*ret_found) {
        memcpy(ret, in.bytes + NLMSG_HDRLEN, sizeof *ret);
    }
    return *ret_found || (n >= (ssize_t)sizeof in.head && in.head.nlmsg_type == NLMSG_ERROR);
}

static bool diag_find(const struct peer_address *peer, const struct peer_address *own,
                      struct inet_diag_msg *ret, bool *ret_found)
{
    bool ok;

    (void)pthread_mutex_lock(&diag.mutex);
    diag.seq++;
    ok = diag.fd >= 0 && ask(diag.fd, diag.seq, peer, own) &&
         hear(diag.fd, diag.seq, ret, ret_found);
    (void)pthread_mutex_unlock(&diag.mutex);
    return ok;
}

/* Whether the kernel finds a socket that is surely there: "not found" is also what a kernel without
 * tcp_diag answers. */
static bool diag_works(int fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct peer_address own = {.ip = {127, 0, 0, 1}};
    const struct peer_address none = {.port = 0};
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct inet_diag_msg found;
    socklen_t len = sizeof at;
    bool ok = false;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 &&
        listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0) {
        own.port = at.sin_port;
        ok = ask(fd, 0, &own, &none) && hear(fd, 0, &found, &ok) && ok &&
             found.idiag_state == LISTENING && found.id.idiag_sport == own.port;
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    return ok;
}

void peer_uid_open(void)
{
    (void)pthread_mutex_lock(&diag.mutex);
    if (!diag.asked) {
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
        if (fd >= 0 && !diag_works(fd)) {
            (void)close(fd);
            fd = -1;
        }
        diag.fd = fd;
        diag.asked = true;
    }
    (void)pthread_mutex_unlock(&diag.mutex);
}

/* ---- /proc ---- */

/* An address as the tables write it: 32-bit words as the machine has them, and the port. */
static size_t put_address(char *out, size_t cap, const struct peer_address *a, bool as_v6)
{
    uint8_t ip[16] = {0};
    uint32_t words[4];
    size_t n = 0;

    if (as_v6 && !a->v6) {
        ip[10] = 0xff;
        ip[11] = 0xff;
        memcpy(ip + 12, a->ip, 4);
    } else {
        memcpy(ip, a->ip, sizeof ip);
    }
    memcpy(words, ip, sizeof words);
    for (int i = 0; i < (as_v6 ? 4 : 1); i++) {
        n += (size_t)snprintf(out + n, cap - n, "%08X", words[i]);
    }
    return n + (size_t)snprintf(out + n, cap - n, ":%04X ", ntohs(a->port));
}

/* "  12: LOCAL REMOTE STATE queues timer retransmits UID timeout INODE ..." */
static bool read_line(const char *line, const char *wanted, size_t wanted_len, uint32_t *ret_uid)
{
    const char *at = strchr(line, ':');
    unsigned long uid = 0;
    unsigned long inode = 0;

    if (at == NULL || at[1] != ' ' || strncmp(at + 2, wanted, wanted_len) != 0 ||
        sscanf(at + 2 + wanted_len, "%*s %*s %*s %lu %*s %lu", &uid, &inode) != 2 || inode == 0) {
        return false;
    }
    *ret_uid = (uint32_t)uid;
    return true;
}

bool peer_uid_in_table(int fd, bool table_v6, const struct peer_address *peer,
                       const struct peer_address *own, uint32_t *ret_uid)
{
    char wanted[128];
    char bytes[8192];
    size_t wanted_len = put_address(wanted, sizeof wanted, peer, table_v6);
    size_t len = 0;
    size_t total = 0;

    wanted_len += put_address(wanted + wanted_len, sizeof wanted - wanted_len, own, table_v6);
    wanted_len +=
        (size_t)snprintf(wanted + wanted_len, sizeof wanted - wanted_len, "%02X ", CONNECTED);
    while (total < TABLE_BYTES_MAX) {
        const ssize_t n = read(fd, bytes + len, sizeof bytes - 1 - len);
        char *line = bytes;
        char *end;
        if (n <= 0) {
            return false;
        }
        total += (size_t)n;
        len += (size_t)n;
        bytes[len] = '\0';
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            if (read_line(line, wanted, wanted_len, ret_uid)) {
                return true;
            }
        }
        len -= (size_t)(line - bytes);
        memmove(bytes, line, len);
        len = len > LINE_MAX_BYTES ? 0 : len; /* no line of such a table */
    }
    return false;
}

static bool table_find(const char *path, bool table_v6, const struct peer_address *peer,
                       const struct peer_address *own, uint32_t *ret_uid)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool found = fd >= 0 && peer_uid_in_table(fd, table_v6, peer, own, ret_uid);

    if (fd >= 0) {
        (void)close(fd);
    }
    return found;
}

bool peer_uid_by_tables(struct peer_address peer, struct peer_address own, uint32_t *ret_uid)
{
    (void)peer_address_plain(&peer);
    (void)peer_address_plain(&own);
    return (!peer.v6 && table_find("/proc/self/net/tcp", false, &peer, &own, ret_uid)) ||
           table_find("/proc/self/net/tcp6", true, &peer, &own, ret_uid);
}

/* ---- both ---- */

bool peer_uid_find(struct peer_address peer, struct peer_address own, uint32_t *ret_uid)
{
    struct inet_diag_msg m;
    bool found = false;

    (void)peer_address_plain(&peer);
    (void)peer_address_plain(&own);
    if (!diag_find(&peer, &own, &m, &found)) {
        return peer_uid_by_tables(peer, own, ret_uid);
    }
    if (!found || m.idiag_state != CONNECTED || m.idiag_inode == 0 ||
        !answered_by(&m, &peer, &own)) {
        return false;
    }
    *ret_uid = m.idiag_uid;
    return true;
}
