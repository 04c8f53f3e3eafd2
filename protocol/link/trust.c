/* Which peers on this machine a link talks to: processes of its own user, of root, and of the users
 * that it was given. Judged before a connection carries anything. */
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum { REFUSALS = 8, LOG_EVERY_MS = 60000 };

/* Refused connections, by user: the log has one line a minute for each. */
static struct {
    struct helper_task task; /* writes the lines: nng's threads do not wait for a log */
    pthread_mutex_t mutex;
    struct refusal {
        int64_t uid; /* TRUST_UNKNOWN: no process was found */
        uint32_t n;  /* since the last line */
        msec due;    /* of the next line */
        char url[LINK_URL_MAX];
    } at[REFUSALS];
    uint32_t used;
    bool submitted;
} refused = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void link_trust(struct link *l, const uint32_t *uids, uint32_t n)
{
    n = n > LINK_TRUST_MAX ? LINK_TRUST_MAX : n;
    for (uint32_t i = 0; i < n; i++) {
        atomic_store(&l->trusted[i], uids[i]);
    }
    atomic_store(&l->trusted_n, n);
    atomic_store(&l->followers_n, n);
}

void link_trust_followers(struct link *l, uint32_t n)
{
    atomic_store(&l->followers_n, n);
}

bool trust_uid(const struct link *l, const struct endpoint *e, uint32_t uid)
{
    const uint32_t n = atomic_load(e->publishes ? &l->followers_n : &l->trusted_n);
    bool ok = uid == 0 || uid == geteuid();

    for (uint32_t i = 0; i < n && !ok; i++) {
        ok = atomic_load(&l->trusted[i]) == uid;
    }
    return ok;
}

/* Helper thread. */
static msec write_lines(struct helper_task *task)
{
    struct refusal lines[REFUSALS];
    const msec now = clock_mono_ms();
    uint32_t n = 0;

    (void)task;
    (void)pthread_mutex_lock(&refused.mutex);
    for (uint32_t i = 0; i < refused.used; i++) {
        struct refusal *r = &refused.at[i];
        if (r->n > 0 && r->due <= now) {
            lines[n++] = *r;
            r->n = 0;
            r->due = now + LOG_EVERY_MS;
        }
    }
    refused.submitted = false;
    (void)pthread_mutex_unlock(&refused.mutex);
    for (uint32_t i = 0; i < n; i++) {
        char uid[24] = "unknown";
        if (lines[i].uid >= 0) {
            (void)snprintf(uid, sizeof uid, "%lld", (long long)lines[i].uid);
        }
        log_warn("link.stranger",
                 "at=%s uid=%s connections=%u refused=\"only user %u, root and allowUids\"",
                 lines[i].url, uid, lines[i].n, (unsigned)geteuid());
    }
    return MSEC_NEVER;
}

void trust_note(int64_t uid, const char *url)
{
    bool submit = false;
    uint32_t i = 0;

    (void)pthread_mutex_lock(&refused.mutex);
    while (i < refused.used && refused.at[i].uid != uid) {
        i++;
    }
    if (i == refused.used) { /* of many users the last ones share a line */
        i = i == REFUSALS ? REFUSALS - 1 : i;
        refused.used = i + 1;
    }
    refused.at[i].uid = uid;
    refused.at[i].n++;
    (void)snprintf(refused.at[i].url, sizeof refused.at[i].url, "%s", url);
    if (!refused.submitted && refused.at[i].due <= clock_mono_ms()) {
        refused.submitted = true;
        refused.task.run = write_lines;
        submit = true;
    }
    (void)pthread_mutex_unlock(&refused.mutex);
    if (submit) {
        helper_submit(&refused.task, 0);
    }
}

static bool address_of(nng_pipe pipe, const char *which, struct peer_address *ret)
{
    nng_sockaddr at;

    *ret = (struct peer_address){.port = 0};
    if (nng_pipe_get_addr(pipe, which, &at) != 0) {
        return false;
    }
    if (at.s_family == NNG_AF_INET) {
        memcpy(ret->ip, &at.s_in.sa_addr, 4);
        ret->port = at.s_in.sa_port;
    } else if (at.s_family == NNG_AF_INET6) {
        memcpy(ret->ip, at.s_in6.sa_addr, 16);
        ret->port = at.s_in6.sa_port;
        ret->v6 = true;
    }
    return ret->port != 0;
}

/* Where the connection was made to, for the log. The URL of a listener gets its port while peers
 * are coming already. */
static const char *place_of(const struct endpoint *e, nng_pipe pipe, const struct peer_address *own,
                            char ret[INET6_ADDRSTRLEN + 16])
{
    char ip[INET6_ADDRSTRLEN] = "";

    if (nng_listener_id(nng_pipe_listener(pipe)) <= 0) {
        return e->url;
    }
    (void)inet_ntop(own->v6 ? AF_INET6 : AF_INET, own->ip, ip, sizeof ip);
    (void)snprintf(ret, INET6_ADDRSTRLEN + 16, own->v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", ip,
                   (unsigned)ntohs(own->port));
    return ret;
}

static bool address_from(const char *ip, uint16_t port, struct peer_address *ret)
{
    *ret = (struct peer_address){.port = htons(port), .v6 = strchr(ip, ':') != NULL};
    return inet_pton(ret->v6 ? AF_INET6 : AF_INET, ip, ret->ip) == 1 && peer_address_plain(ret);
}

bool link_peer_user(const char *peer, uint16_t peer_port, const char *own, uint16_t own_port,
                    uint32_t *ret_uid)
{
    struct peer_address from;
    struct peer_address to;

    return address_from(peer, peer_port, &from) && address_from(own, own_port, &to) &&
           peer_uid_find(from, to, ret_uid);
}

int64_t trust_stranger(const struct link *l, const struct endpoint *e, nng_pipe pipe)
{
    struct peer_address peer;
    struct peer_address own;
    char place[INET6_ADDRSTRLEN + 16];
    uint32_t uid = 0;

    if (strncmp(e->url, "tcp:", 4) != 0) {
        return TRUST_FINE; /* an ipc directory is private; TLS has certificates */
    }
    if (!address_of(pipe, NNG_OPT_REMADDR, &peer) || !address_of(pipe, NNG_OPT_LOCADDR, &own)) {
        return TRUST_UNKNOWN; /* it has hung up */
    }
    if (!peer_address_plain(&own)) {
        return TRUST_FINE;
    }
    if (!peer_uid_find(peer, own, &uid)) {
        trust_note(TRUST_UNKNOWN, place_of(e, pipe, &own, place));
        return TRUST_UNKNOWN;
    }
    if (trust_uid(l, e, uid)) {
        return TRUST_FINE;
    }
    trust_note(uid, place_of(e, pipe, &own, place));
    return uid;
}
