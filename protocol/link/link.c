#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum bt_code link_new(uint32_t inbox_cap, struct link **ret, struct bt_error *err)
{
    enum bt_code code = helper_start(err);
    if (code != BT_OK) {
        return code;
    }
    peer_uid_open();
    struct link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(err, BT_NOMEM, "no memory for a link");
    }
    l->cap = inbox_cap;
    l->inbox.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->inbox.fd < 0) {
        code = err_errno(err, errno, "eventfd of a link");
        free(l);
        return code;
    }
    *ret = l;
    return BT_OK;
}

enum bt_code link_reserve(struct link *l, uint32_t n, struct bt_error *err)
{
    if (n > l->cap - l->used) {
        return err_set(
            err, BT_LIMIT,
            "the link's inbox has room for %u endpoints and contexts, %u are taken, %u more asked",
            l->cap, l->used, n);
    }
    l->used += n;
    return BT_OK;
}

int link_fd(const struct link *l)
{
    return l->inbox.fd;
}

static bool node_event(struct inbox_node *n, struct link_event *ret)
{
    switch (n->kind) {
    case INBOX_REQUEST:
        return server_event(n, ret);
    case INBOX_LANE:
        return lane_event(n, ret);
    case INBOX_LANE_CLOSED:
        lane_closed(n);
        return false;
    case INBOX_SERVER_CLOSED:
        server_closed(n);
        return false;
    case INBOX_SUB:
        return sub_event(n, ret);
    }
    ASSERT(n->kind <= INBOX_SUB);
    return false;
}

bool link_next(struct link *l, struct link_event *ret)
{
    for (;;) {
        if (l->current == NULL) {
            l->current = inbox_take(&l->inbox);
        }
        if (l->current == NULL) {
            return false;
        }
        *ret = (struct link_event){.owner = NULL};
        if (node_event(l->current, ret)) {
            return true;
        }
        l->current = NULL;
    }
}

bool link_wait(struct link *l, msec timeout_ms)
{
    const msec until = msec_add(clock_mono_ms(), timeout_ms);
    if (l->current != NULL || l->inbox.taken != NULL) {
        return true;
    }
    for (;;) {
        const msec now = clock_mono_ms();
        const msec left = until > now ? until - now : 0;
        struct pollfd p = {.fd = l->inbox.fd, .events = POLLIN};
        const int n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0) {
            return true;
        }
        if (left == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
    }
}

/* A link that could not be closed. It stays reachable here, so that leak checkers accept the leak.
 */
static struct link *abandoned;

void link_free(struct link *l)
{
    if (l == NULL) {
        return;
    }
    atomic_store(&l->no_linger, true);
    server_close_all(l);
    pub_close_all(l);
    sub_close_all(l);
    lane_close_all(l);
    if (!helper_wait_zero(&l->closing, LINK_FREE_WAIT_MS)) {
        log_warn("link.leaked", "reason=\"a socket did not close within %d ms\"",
                 LINK_FREE_WAIT_MS);
        abandoned = l;
        (void)abandoned;
        return;
    }
    server_free_all(l);
    pub_free_all(l);
    sub_free_all(l);
    lane_free_all(l);
    (void)close(l->inbox.fd);
    free(l);
}

/* struct link_msg is an nng_msg: a wrapper would cost an allocation per message. */
struct str link_msg_bytes(const struct link_msg *m)
{
    nng_msg *msg = (nng_msg *)(void *)(uintptr_t)m;
    return (struct str){nng_msg_body(msg), nng_msg_len(msg)};
}

void link_msg_peer(const struct link_msg *m, char ret[LINK_PEER_MAX + 1])
{
    char ip[INET6_ADDRSTRLEN] = "";
    nng_sockaddr at;

    ret[0] = 0;
    if (nng_pipe_get_addr(nng_msg_get_pipe((nng_msg *)(void *)(uintptr_t)m), NNG_OPT_REMADDR,
                          &at) != 0) {
        return;
    }
    if (at.s_family == NNG_AF_INET && inet_ntop(AF_INET, &at.s_in.sa_addr, ip, sizeof ip) != NULL) {
        (void)snprintf(ret, LINK_PEER_MAX + 1, "%s:%u", ip, ntohs(at.s_in.sa_port));
    } else if (at.s_family == NNG_AF_INET6 &&
               inet_ntop(AF_INET6, at.s_in6.sa_addr, ip, sizeof ip) != NULL) {
        (void)snprintf(ret, LINK_PEER_MAX + 1, "[%s]:%u", ip, ntohs(at.s_in6.sa_port));
    }
}

uint32_t link_msg_pipe(const struct link_msg *m)
{
    return (uint32_t)nng_pipe_id(nng_msg_get_pipe((nng_msg *)(void *)(uintptr_t)m));
}

bool link_pipe_is_open(uint32_t pipe)
{
    nng_sockaddr from;

    return nng_pipe_get_addr((nng_pipe){.id = pipe}, NNG_OPT_REMADDR, &from) == 0;
}

void link_msg_free(struct link_msg *m)
{
    if (m != NULL) {
        nng_msg_free((nng_msg *)(void *)m);
    }
}

bool link_frame_split(struct str frame, struct str *ret_topic, struct str *ret_body)
{
    const char *zero = frame.len == 0 ? NULL : memchr(frame.ptr, 0, frame.len);
    if (zero == NULL) {
        return false;
    }
    const size_t topic = (size_t)(zero - frame.ptr);
    *ret_topic = (struct str){frame.ptr, topic};
    *ret_body = (struct str){zero + 1, frame.len - topic - 1};
    return true;
}

const char *link_library_version(void)
{
    return nng_version();
}
