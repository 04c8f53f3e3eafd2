/*
 * What the peers of a tcp listener hold: connections, and bytes of frames that have not ended. nng
 * tells neither, and reads a frame of any peer into memory as fast as it comes. The kernel counts
 * the bytes that each connection has received; the server counts those of the requests that it was
 * given; the difference is what waits.
 *
 * A connection that is over a bound is shut down, not closed: nng sees its peer hang up, which is
 * safe at any moment (N1). The helper thread runs the rounds.
 *
 * To find new connections it looks at all descriptors of the process: 2 us each, once a second. The
 * fast rounds between look at the known ones alone, unless the last look has found new ones, one
 * was shut, or a peer has asked something whose descriptor is not known.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum {
    SLOW_ROUND_MS = 1000,
    FAST_ROUND_MS = 100,
    CALM_MS = 5000,
    LOG_MS = 10000,
    PASSING_MS = 1000, /* a frame of an honest peer takes some ms; its memory is not counted */
    FEW_PEERS = 16,    /* they cannot hold much */
    JUDGED_MAX = 256,  /* users looked up in a round, 10 us each */
    PORTS = 4096,
    HOSTS = 1024,
    HELLO_BYTES = 8, /* of the handshake */
    FRAME_BYTES = 12 /* a frame's length and the id of a request */
};

struct peer {
    struct peer_key key;
    uint64_t received; /* as the kernel counts */
    uint64_t taken;    /* of whole requests */
    msec since;        /* a frame has been unfinished since then; 0 = none is */
    msec active;       /* when it came, or the last request of it */
    uint32_t round;
    uint32_t of_host; /* connections of its address, where it is the first one of it */
    int fd;
    bool ours;   /* its user may connect */
    bool ending; /* the owner wants it shut */
};

/* A connection, as the kernel tells. */
struct peer_seen {
    struct peer_key key;
    uint64_t received;
    int fd;
};

/* ---- the table: by port, which few peers share ---- */

static void list(struct peer_watch *w, uint32_t ix)
{
    uint32_t *first = &w->by_port[w->peers[ix].key.port % PORTS];

    w->next[ix] = *first;
    *first = ix + 1;
}

static struct peer *find(struct peer_watch *w, const struct peer_key *key)
{
    for (uint32_t i = w->by_port[key->port % PORTS]; i != 0; i = w->next[i - 1]) {
        if (peer_key_eq(&w->peers[i - 1].key, key)) {
            return &w->peers[i - 1];
        }
    }
    return NULL;
}

static bool grow(struct peer_watch *w)
{
    const uint32_t cap = w->cap == 0 ? 64 : w->cap * 2;
    struct peer *peers = realloc(w->peers, cap * sizeof *peers);
    uint32_t *next = peers == NULL ? NULL : realloc(w->next, cap * sizeof *next);

    w->peers = peers != NULL ? peers : w->peers;
    if (next == NULL) {
        return false;
    }
    w->next = next;
    w->cap = cap;
    return true;
}

/* NULL when out of memory: nobody bounds that peer until the next round. */
static struct peer *find_or_add(struct peer_watch *w, const struct peer_key *key, msec now)
{
    struct peer *p = find(w, key);

    if (p != NULL || key->port == 0 || (w->n == w->cap && !grow(w))) {
        return p;
    }
    p = &w->peers[w->n];
    *p = (struct peer){.key = *key, .active = now, .round = w->round, .fd = -1};
    w->news = true;
    list(w, w->n++);
    return p;
}

/* Those that this round did not see have gone; one of the known alone saw none without a
 * descriptor. */
static void drop_gone(struct peer_watch *w, bool all)
{
    uint32_t kept = 0;

    memset(w->by_port, 0, PORTS * sizeof *w->by_port);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->peers[i].round == w->round || (!all && w->peers[i].fd < 0)) {
            w->peers[kept] = w->peers[i];
            list(w, kept++);
        }
    }
    w->n = kept;
}

void peer_watch_took(struct peer_watch *w, nng_msg *msg)
{
    struct peer_key key;
    struct peer *p;

    if (!w->on) {
        return;
    }
    key = peer_key_of_pipe(nng_msg_get_pipe(msg));
    (void)pthread_mutex_lock(&w->mutex);
    p = find_or_add(w, &key, clock_mono_ms());
    if (p != NULL) {
        p->taken += FRAME_BYTES + nng_msg_len(msg);
        p->active = clock_mono_ms();
        p->since = 0;
    }
    (void)pthread_mutex_unlock(&w->mutex);
}

/* ---- a round ---- */

/* The peer of a connection, and what came of it. */
static bool look_at_peer(int fd, struct peer_seen *ret)
{
    struct tcp_info info = {.tcpi_bytes_received = 0};
    socklen_t info_len = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) != 0) {
        return false;
    }
    *ret = (struct peer_seen){
        .key = peer_key_of_fd(fd), .received = info.tcpi_bytes_received, .fd = fd};
    return ret->key.port != 0;
}

/* One descriptor of the process: a connection of this listener? */
static bool look_at(const struct peer_watch *w, int fd, struct peer_seen *ret)
{
    return peer_key_is_connection_of(fd, &w->listens) && look_at_peer(fd, ret);
}

static bool seen_has_room(struct peer_watch *w, uint32_t n)
{
    uint32_t cap = w->seen_cap == 0 ? 64 : w->seen_cap;
    struct peer_seen *at;

    if (n <= w->seen_cap) {
        return true;
    }
    while (cap < n) {
        cap *= 2;
    }
    at = realloc(w->seen, cap * sizeof *at);
    if (at == NULL) {
        return false;
    }
    w->seen = at;
    w->seen_cap = cap;
    return true;
}

/* Without the lock: the owner thread does not wait for a thousand system calls. False: out of
 * memory, or of descriptors. */
static bool look_at_all(struct peer_watch *w)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    bool ok = dir != NULL;

    w->seen_n = 0;
    while (ok && (e = readdir(dir)) != NULL) {
        ok = seen_has_room(w, w->seen_n + 1);
        if (ok && e->d_name[0] != '.') {
            w->seen_n += look_at(w, (int)strtol(e->d_name, NULL, 10), &w->seen[w->seen_n]);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return ok;
}

/* The same of those that are known: a number may be another connection's by now. */
static bool look_at_known(struct peer_watch *w)
{
    uint32_t n;
    bool ok;

    (void)pthread_mutex_lock(&w->mutex);
    n = w->n;
    ok = seen_has_room(w, n);
    for (uint32_t i = 0; ok && i < n; i++) {
        w->seen[i] = (struct peer_seen){.key = w->peers[i].key, .fd = w->peers[i].fd};
    }
    (void)pthread_mutex_unlock(&w->mutex);
    w->seen_n = 0;
    for (uint32_t i = 0; ok && i < n; i++) {
        struct peer_seen now;
        if (look_at_peer(w->seen[i].fd, &now) && peer_key_eq(&now.key, &w->seen[i].key)) {
            w->seen[w->seen_n++] = now;
        }
    }
    return ok;
}

/* Whether this round has to find new connections. */
static bool needs_all(struct peer_watch *w, msec now)
{
    bool all;

    (void)pthread_mutex_lock(&w->mutex);
    all = w->news || w->n <= FEW_PEERS || now >= w->all_at;
    w->news = all ? false : w->news;
    (void)pthread_mutex_unlock(&w->mutex);
    return all;
}

static void merge(struct peer_watch *w, bool all, msec now)
{
    w->round++;
    w->all_at = all ? now + SLOW_ROUND_MS : w->all_at;
    for (uint32_t i = 0; i < w->seen_n; i++) {
        struct peer *p = find_or_add(w, &w->seen[i].key, now);
        if (p != NULL) {
            p->fd = w->seen[i].fd;
            p->round = w->round;
            p->received = w->seen[i].received;
        }
    }
    drop_gone(w, all);
}

static uint64_t unfinished(const struct peer *p)
{
    const uint64_t known = p->taken + HELLO_BYTES;

    return p->received > known ? p->received - known : 0;
}

/* A copy of the descriptor, because nng may close it and the number be another's by now. */
static void shut(struct peer_watch *w, struct peer *p, const char *why)
{
    const int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    struct peer_key now;

    if (fd >= 0) {
        now = peer_key_of_fd(fd);
        if (peer_key_eq(&now, &p->key)) {
            (void)shutdown(fd, SHUT_RDWR);
            w->shut++;
            w->why = why;
        }
        (void)close(fd);
    }
    p->fd = -1;
    p->received = 0;
    w->news = true;
}

void peer_watch_end(struct peer_watch *w, nng_pipe pipe)
{
    const struct peer_key key = peer_key_of_pipe(pipe);
    struct peer *p;

    if (!w->on || key.port == 0) {
        return;
    }
    (void)pthread_mutex_lock(&w->mutex);
    p = find(w, &key);
    if (p != NULL && p->fd >= 0) {
        shut(w, p, "it proved nothing, or no more");
    } else if (p != NULL) {
        p->ending = true; /* no round has seen its descriptor yet */
    }
    (void)pthread_mutex_unlock(&w->mutex);
}

static void judge_ending(struct peer_watch *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->peers[i].ending && w->peers[i].fd >= 0) {
            shut(w, &w->peers[i], "it proved nothing, or no more");
        }
    }
}

static struct peer_address address_of(const struct sockaddr_storage *at)
{
    const struct peer_key key = peer_key_of_address(at);
    struct peer_address a = {.port = htons((uint16_t)key.port), .v6 = at->ss_family == AF_INET6};

    memcpy(a.ip, key.address, sizeof a.ip);
    return a;
}

/* Why the connection is to end; NULL: its user may connect. */
static const char *judge_user(const struct peer_watch *w, int fd)
{
    struct sockaddr_storage at[2] = {{.ss_family = AF_UNSPEC}, {.ss_family = AF_UNSPEC}};
    socklen_t len[2] = {sizeof at[0], sizeof at[1]};
    struct peer_address own;
    uint32_t uid = 0;

    if (getpeername(fd, (struct sockaddr *)&at[0], &len[0]) != 0 ||
        getsockname(fd, (struct sockaddr *)&at[1], &len[1]) != 0) {
        return NULL; /* it has gone */
    }
    own = address_of(&at[1]);
    if (!peer_address_plain(&own)) {
        return NULL;
    }
    if (!peer_uid_find(address_of(&at[0]), own, &uid)) {
        return "its process has closed it, or was not found";
    }
    if (!trust_uid(w->link, w->endpoint, uid)) {
        char url[LINK_URL_MAX];
        (void)snprintf(url, sizeof url, "tcp port %u", w->port);
        trust_note(uid, url);
        return "not of a user who may connect";
    }
    return NULL;
}

/* Those who have not shaken hands are not judged by ADD_PRE yet, and nng gives them 10 s. */
static void judge_users(struct peer_watch *w)
{
    struct peer_key keys[JUDGED_MAX];
    int fds[JUDGED_MAX];
    const char *why[JUDGED_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n && n < JUDGED_MAX; i++) {
        if (!w->peers[i].ours && w->peers[i].fd >= 0) {
            keys[n] = w->peers[i].key;
            fds[n++] = fcntl(w->peers[i].fd, F_DUPFD_CLOEXEC, 0); /* as in shut() */
        }
    }
    (void)pthread_mutex_unlock(&w->mutex);
    for (uint32_t i = 0; i < n; i++) {
        why[i] = fds[i] < 0 ? NULL : judge_user(w, fds[i]);
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    (void)pthread_mutex_lock(&w->mutex);
    for (uint32_t i = 0; i < n; i++) {
        struct peer *p = find(w, &keys[i]);
        if (p != NULL && why[i] == NULL) {
            p->ours = true;
        } else if (p != NULL && p->fd >= 0) {
            shut(w, p, why[i]);
        }
    }
}

/* Under a flood of large frames only short ones are let in, until it has been over for a while: nng
 * hangs up on a longer one before it allocates anything. */
static void judge_flood(struct peer_watch *w, msec now)
{
    const uint64_t calm = w->limits.unfinished_bytes / 8;
    uint64_t sum = 0;
    bool narrow;

    for (uint32_t i = 0; i < w->n; i++) {
        sum += unfinished(&w->peers[i]);
    }
    w->flooded_at = sum > calm || w->flooded_at == 0 ? now : w->flooded_at;
    narrow = w->narrow ? now - w->flooded_at < CALM_MS : sum > w->limits.unfinished_bytes / 2;
    if (narrow != w->narrow && nng_listener_set_size(w->listener, NNG_OPT_RECVMAXSZ,
                                                     narrow ? LINK_NARROW_MAX : w->recv_max) == 0) {
        w->narrow = narrow;
        log_warn("link.flood", "listener_port=%u unfinished_bytes=%llu requests=\"%s\"", w->port,
                 (unsigned long long)sum, narrow ? "only short ones" : "all");
    }
}

static void judge_time(struct peer_watch *w, bool idle, msec now)
{
    for (uint32_t i = 0; i < w->n; i++) {
        struct peer *p = &w->peers[i];
        if (unfinished(p) == 0 || !idle) {
            p->since = 0; /* without an idle context it may be whole, and wait for one */
        } else if (p->since == 0) {
            p->since = now;
        } else if (now - p->since >= w->limits.unfinished_ms) {
            shut(w, p, "a frame did not end in time");
        }
    }
}

/* What a frame holds that is not just passing. */
static uint64_t held(const struct peer *p, msec now)
{
    return p->since != 0 && now - p->since >= PASSING_MS ? unfinished(p) : 0;
}

/* The largest first: they hold most, and honest requests are short. */
static void judge_bytes(struct peer_watch *w, msec now)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        sum += held(&w->peers[i], now);
    }
    while (sum > w->limits.unfinished_bytes) {
        struct peer *most = &w->peers[0];
        for (uint32_t i = 1; i < w->n; i++) {
            most = held(&w->peers[i], now) > held(most, now) ? &w->peers[i] : most;
        }
        sum -= held(most, now);
        shut(w, most, "unfinished frames hold too much memory");
    }
}

/* Who never asked anything goes first, then who has been silent for longest. */
static bool goes_before(const struct peer *a, const struct peer *b)
{
    if (b->fd < 0 || a->fd < 0) {
        return a->fd >= 0;
    }
    return (a->taken == 0) != (b->taken == 0) ? a->taken == 0 : a->active < b->active;
}

/* The first connection of the same address. Hosts are few, and found by their hash; NULL: there are
 * more than are counted. */
static struct peer *first_of_host(struct peer_watch *w, uint32_t *hosts, uint32_t ix)
{
    const struct peer_key *key = &w->peers[ix].key;
    uint32_t at = 0;

    for (size_t i = 0; i < sizeof key->address; i++) {
        at = at * 31 + key->address[i];
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        uint32_t *entry = &hosts[(at + i) % HOSTS];
        if (*entry == 0) {
            *entry = ix + 1;
            w->peers[ix].of_host = 0;
        }
        if (memcmp(w->peers[*entry - 1].key.address, key->address, sizeof key->address) == 0) {
            return &w->peers[*entry - 1];
        }
    }
    return NULL;
}

/* One host must not push the others out. */
static void judge_hosts(struct peer_watch *w)
{
    uint32_t hosts[HOSTS] = {0};

    for (uint32_t i = 0; w->limits.of_host > 0 && i < w->n; i++) {
        struct peer *host = first_of_host(w, hosts, i);
        if (host == NULL || ++host->of_host <= w->limits.of_host) {
            continue;
        }
        struct peer *first = host;
        for (uint32_t k = 0; k <= i; k++) {
            struct peer *p = &w->peers[k];
            if (memcmp(p->key.address, host->key.address, sizeof p->key.address) == 0) {
                first = goes_before(p, first) ? p : first;
            }
        }
        if (first->fd >= 0) {
            shut(w, first, "too many connections of one host");
        }
    }
}

static void judge_number(struct peer_watch *w)
{
    uint32_t n = w->n;

    while (n > w->limits.peers) {
        struct peer *first = &w->peers[0];
        for (uint32_t i = 1; i < w->n; i++) {
            first = goes_before(&w->peers[i], first) ? &w->peers[i] : first;
        }
        if (first->fd < 0) {
            return;
        }
        shut(w, first, "too many connections");
        n--;
    }
}

static msec watch_run(struct helper_task *task)
{
    struct peer_watch *w = CONTAINER_OF(task, struct peer_watch, task);
    const msec now = clock_mono_ms();
    const bool idle = w->is_idle == NULL || w->is_idle(w->of);
    const bool all = needs_all(w, now);
    const bool ok = all ? look_at_all(w) : look_at_known(w);
    msec next;

    (void)pthread_mutex_lock(&w->mutex);
    if (ok) {
        merge(w, all, now);
    }
    if (!w->tls) {
        judge_users(w);
        judge_flood(w, now);
        judge_time(w, idle, now);
        judge_bytes(w, now);
    }
    judge_ending(w);
    judge_hosts(w);
    judge_number(w);
    if (w->shut != w->logged && now >= w->log_at) {
        log_warn("link.peers_shut", "listener_port=%u connections=%u shut=%u why=\"%s\"", w->port,
                 w->n, w->shut - w->logged, w->why);
        w->logged = w->shut;
        w->log_at = now + LOG_MS;
    }
    next = now + (w->n > FEW_PEERS ? FAST_ROUND_MS : SLOW_ROUND_MS);
    (void)pthread_mutex_unlock(&w->mutex);
    return next;
}

enum bt_code peer_watch_start(struct peer_watch *w, const struct link *link,
                              const struct endpoint *e, nng_listener listener,
                              const struct link_peer_limits *limits, bool (*is_idle)(void *of),
                              void *of, struct bt_error *err)
{
    if (limits->peers == 0 || endpoint_is_ipc(e)) {
        return BT_OK; /* its directory is private */
    }
    w->tls = strncmp(e->url, "tcp:", 4) != 0;
    w->by_port = calloc(PORTS, sizeof *w->by_port);
    if (w->by_port == NULL) {
        return err_set(err, BT_NOMEM, "%s: no memory for its peers", e->url);
    }
    (void)pthread_mutex_init(&w->mutex, NULL);
    w->link = link;
    w->endpoint = e;
    w->limits = *limits;
    w->listener = listener;
    w->recv_max = e->recv_max + LINK_HEADER_ROOM;
    w->is_idle = is_idle;
    w->of = of;
    w->listens = peer_address_of_listener(listener);
    w->port = peer_key_of_address(&w->listens).port;
    w->task.run = watch_run;
    w->on = true;
    helper_submit(&w->task, clock_mono_ms() + SLOW_ROUND_MS);
    return BT_OK;
}

void peer_watch_stop(struct peer_watch *w)
{
    if (w->on) {
        helper_cancel(&w->task);
    }
}

void peer_watch_free(struct peer_watch *w)
{
    free(w->peers);
    free(w->next);
    free(w->by_port);
    free(w->seen);
}
