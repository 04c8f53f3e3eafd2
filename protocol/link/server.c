/*
 * REP with n contexts. Each context has one aio, which receives, is held by the owner, sends the
 * answer, and receives again:
 *
 *      RECEIVING --request--> HELD --link_answer--> SENDING --done or dropped--> RECEIVING
 *
 * The owner uses a context only while it is HELD. The send's completion posts the next receive.
 */
#include <nng/nng.h>

#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"
#include "protocol/link/link_internal.h"

enum { REQ_PROTOCOL = 0x30, GENERATION_SHIFT = 32 };

enum context_phase {
    CONTEXT_RECEIVING,
    CONTEXT_ARRIVED,
    CONTEXT_HELD,
    CONTEXT_SENDING,
    CONTEXT_BROKEN,
    CONTEXT_ENDED
};

struct server_context {
    struct inbox_node node;
    struct link_server *server;
    nng_aio *aio;
    nng_ctx ctx;
    _Atomic(enum context_phase) phase;
    nng_msg *request; /* arrived, not yet given to the owner */
    uint32_t generation;
};

struct link_server {
    struct inbox_node closed_node; /* the socket of a retired server is closed */
    struct endpoint endpoint;
    struct ipc_guard guard;  /* listening on ipc */
    struct tls_guard tls;    /* listening on tls+tcp */
    struct peer_watch watch; /* listening on tcp */
    struct redial redial;    /* dialing */
    struct pipe_track track; /* dialing */
    struct helper_task closing;
    struct link *link;
    struct link_server *next;
    void *owner;
    bool dials;
    bool retired;
    uint32_t n;
    struct server_context contexts[];
};

static void context_receive(struct server_context *c)
{
    atomic_store(&c->phase, CONTEXT_RECEIVING);
    nng_ctx_recv(c->ctx, c->aio);
}

static void context_on_aio(void *arg)
{
    struct server_context *c = arg;
    const int rv = nng_aio_result(c->aio);
    if (atomic_load(&c->phase) == CONTEXT_SENDING) {
        if (rv != 0) {
            nng_msg_free(nng_aio_get_msg(c->aio)); /* a failed send leaves us the message */
            nng_aio_set_msg(c->aio, NULL);
        }
        if (rv == NNG_ECLOSED) {
            atomic_store(&c->phase, CONTEXT_ENDED);
        } else {
            context_receive(c);
        }
        return;
    }
    if (rv == NNG_ECLOSED) {
        atomic_store(&c->phase, CONTEXT_ENDED);
        return;
    }
    if (rv == 0) {
        c->request = nng_aio_get_msg(c->aio);
        nng_aio_set_msg(c->aio, NULL);
    }
    atomic_store(&c->phase, rv == 0 ? CONTEXT_ARRIVED : CONTEXT_BROKEN);
    inbox_push(&c->server->link->inbox, &c->node);
}

/* A receive failed although the socket is open. The owner reopens the context, so that a lasting
 * failure does not keep nng's threads busy. */
static void context_reopen(struct server_context *c)
{
    (void)nng_ctx_close(c->ctx);
    if (nng_ctx_open(&c->ctx, c->server->endpoint.socket) == 0) {
        context_receive(c);
    }
}

bool server_event(struct inbox_node *n, struct link_event *ret)
{
    struct server_context *c = CONTAINER_OF(n, struct server_context, node);
    const enum context_phase phase = atomic_load(&c->phase);
    if (c->server->retired) {
        return false;
    }
    if (phase == CONTEXT_BROKEN) {
        context_reopen(c);
        return false;
    }
    if (phase != CONTEXT_ARRIVED) {
        return false;
    }
    c->generation++;
    ret->type = LINK_REQUEST;
    ret->server = c->server;
    ret->owner = c->server->owner;
    ret->request =
        (uint64_t)c->generation << GENERATION_SHIFT | (uint64_t)(c - c->server->contexts);
    ret->msg = (struct link_msg *)(void *)c->request;
    peer_watch_took(&c->server->watch, c->request);
    c->request = NULL;
    atomic_store(&c->phase, CONTEXT_HELD);
    return true;
}

bool link_answer(struct link_server *s, uint64_t request, const void *bytes, size_t len)
{
    const uint64_t ix = request & UINT32_MAX;
    nng_msg *msg = NULL;
    if (ix >= s->n || s->retired) {
        return false;
    }
    struct server_context *c = &s->contexts[ix];
    if (c->generation != request >> GENERATION_SHIFT || atomic_load(&c->phase) != CONTEXT_HELD) {
        return false;
    }
    const enum failpoint fail = FAILPOINT("reply");
    if (fail == FAILPOINT_DROP || fail == FAILPOINT_ERROR || nng_msg_alloc(&msg, len) != 0) {
        context_receive(c); /* the client gets no answer, but the context is free again */
        return false;
    }
    if (len > 0) {
        memcpy(nng_msg_body(msg), bytes, len);
    }
    atomic_store(&c->phase, CONTEXT_SENDING);
    nng_aio_set_msg(c->aio, msg);
    nng_ctx_send(c->ctx, c->aio);
    return true;
}

const char *link_server_url(const struct link_server *s)
{
    return s->endpoint.url;
}

void link_server_hang_up(struct link_server *s, uint32_t pipe)
{
    peer_watch_end(&s->watch, (nng_pipe){.id = pipe});
}

static void server_free(struct link_server *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->contexts[i].request != NULL) {
            nng_msg_free(s->contexts[i].request);
        }
    }
    endpoint_done(&s->endpoint);
    peer_watch_free(&s->watch);
    free(s);
}

static void server_close_socket(struct link_server *s)
{
    (void)nng_close(s->endpoint.socket);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->contexts[i].aio != NULL) {
            nng_aio_stop(s->contexts[i].aio);
            nng_aio_free(s->contexts[i].aio);
        }
    }
}

static int server_contexts(struct link_server *s)
{
    int rv = 0;
    for (uint32_t i = 0; i < s->n && rv == 0; i++) {
        struct server_context *c = &s->contexts[i];
        c->node.kind = INBOX_REQUEST;
        c->server = s;
        rv = nng_ctx_open(&c->ctx, s->endpoint.socket);
        if (rv == 0) {
            rv = nng_aio_alloc(&c->aio, context_on_aio, c);
        }
    }
    for (uint32_t i = 0; i < s->n && rv == 0; i++) {
        context_receive(&s->contexts[i]);
    }
    return rv;
}

static void server_on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct link_server *s = arg;
    const uint32_t id = (uint32_t)nng_pipe_id(pipe);
    if (ev == NNG_PIPE_EV_REM_POST) {
        (void)pipe_track_removed(&s->track, id);
    } else if (trust_stranger(s->link, &s->endpoint, pipe) != TRUST_FINE ||
               (s->dials && !pipe_track_admit(&s->track, id))) {
        (void)nng_pipe_close(pipe); /* ADD_PRE: it has no traffic yet */
    }
}

static int dial_options(struct link_server *s)
{
    const nng_socket socket = s->endpoint.socket;
    int rv = nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, LINK_REDIAL_MIN_MS);
    rv = rv != 0 ? rv : nng_socket_set_ms(socket, NNG_OPT_RECONNMAXT, LINK_REDIAL_MAX_MS);
    return rv != 0 ? rv : nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, server_on_pipe, s);
}

/* Some context receives: no whole request waits for one. */
static bool is_idle(void *of)
{
    const struct link_server *s = of;
    bool idle = false;
    for (uint32_t i = 0; i < s->n && !idle; i++) {
        idle = atomic_load(&s->contexts[i].phase) == CONTEXT_RECEIVING;
    }
    return idle;
}

static enum bt_code server_connect(struct link_server *s, const struct link_limits *lim,
                                   struct bt_error *err)
{
    struct endpoint *e = &s->endpoint;
    nng_listener listener = NNG_LISTENER_INITIALIZER;
    enum bt_code code = BT_OK;
    if (s->dials) {
        return redial_start(&s->redial, e, &s->track, err);
    }
    code = endpoint_listen(e, &listener, err);
    if (code == BT_OK) {
        ipc_guard_start(&s->guard, listener, REQ_PROTOCOL);
        code = peer_watch_start(&s->watch, s->link, e, listener, &lim->peers, is_idle, s, err);
    }
    if (code == BT_OK) {
        tls_guard_start(&s->tls, e, listener);
    }
    return code;
}

static enum bt_code server_start(struct link_server *s, const struct link_limits *lim,
                                 struct bt_error *err)
{
    struct endpoint *e = &s->endpoint;
    enum bt_code code = BT_OK;
    int rv = nng_rep0_open(&e->socket);
    if (rv != 0) {
        return endpoint_error(err, rv, "has no socket", e->url);
    }
    rv = nng_pipe_notify(e->socket, NNG_PIPE_EV_ADD_PRE, server_on_pipe, s);
    rv = rv == 0 && s->dials ? dial_options(s) : rv;
    rv = rv != 0 ? rv : server_contexts(s);
    if (rv != 0) {
        code = endpoint_error(err, rv, "cannot be set up", e->url);
    } else {
        code = server_connect(s, lim, err);
    }
    if (code != BT_OK) {
        server_close_socket(s);
    }
    return code;
}

static enum bt_code server_prepare(struct link_server *s, const char *url,
                                   const struct link_limits *lim, struct bt_error *err)
{
    enum bt_code code = endpoint_init(&s->endpoint, url, lim, !s->dials, err);
    if (code == BT_OK && !s->dials) {
        code = ipc_guard_lock(&s->guard, &s->endpoint, err);
    }
    if (code == BT_OK) {
        code = link_reserve(s->link, s->n, err);
    }
    if (code == BT_OK) {
        code = server_start(s, lim, err);
        s->link->used -= code == BT_OK ? 0 : s->n;
    }
    return code;
}

static enum bt_code server_new(struct link *l, const char *url, uint32_t n,
                               const struct link_limits *lim, bool dials, void *owner,
                               struct link_server **ret, struct bt_error *err)
{
    if (n == 0 || n > LINK_CONTEXTS_MAX) {
        return err_set(err, BT_INVALID, "%s: a server has 1 to %d contexts, not %u", url,
                       LINK_CONTEXTS_MAX, n);
    }
    struct link_server *s = calloc(1, sizeof *s + n * sizeof s->contexts[0]);
    if (s == NULL) {
        return err_set(err, BT_NOMEM, "%s: no memory for %u contexts", url, n);
    }
    s->closed_node.kind = INBOX_SERVER_CLOSED;
    s->guard.lock_fd = -1;
    s->n = n;
    s->link = l;
    s->owner = owner;
    s->dials = dials;
    const enum bt_code code = server_prepare(s, url, lim, err);
    if (code != BT_OK) {
        ipc_guard_abandon(&s->guard);
        server_free(s);
        return code;
    }
    s->next = l->servers;
    l->servers = s;
    *ret = s;
    return BT_OK;
}

enum bt_code link_server_open(struct link *l, const char *url, uint32_t n,
                              const struct link_limits *lim, void *owner, struct link_server **ret,
                              struct bt_error *err)
{
    return server_new(l, url, n, lim, false, owner, ret, err);
}

enum bt_code link_server_dial(struct link *l, const char *url, uint32_t n,
                              const struct link_limits *lim, void *owner, struct link_server **ret,
                              struct bt_error *err)
{
    return server_new(l, url, n, lim, true, owner, ret, err);
}

static msec server_close_task(struct helper_task *task)
{
    struct link_server *s = CONTAINER_OF(task, struct link_server, closing);
    struct link *l = s->link;
    const msec now = clock_mono_ms();
    if ((s->retired && !pipe_track_empty(&s->track) && !atomic_load(&l->no_linger)) ||
        redial_is_settling(&s->redial, now)) {
        return now + LINK_RETIRED_CHECK_MS; /* the peer may send at any moment, so it must hang up
                                               first (N1) */
    }
    ipc_guard_stop(&s->guard);
    tls_guard_stop(&s->tls);
    peer_watch_stop(&s->watch);
    redial_stop(&s->redial);
    server_close_socket(s);
    inbox_push(&l->inbox, &s->closed_node);
    helper_counter_add(&l->closing, -1);
    return MSEC_NEVER;
}

static void server_submit_close(struct link_server *s)
{
    s->closing.run = server_close_task;
    helper_counter_add(&s->link->closing, 1);
    helper_submit(&s->closing, 0);
}

void link_server_retire(struct link_server *s)
{
    if (s == NULL || s->retired || !s->dials) {
        return;
    }
    s->retired = true;
    pipe_track_shut(&s->track);
    server_submit_close(s);
}

void server_closed(struct inbox_node *n)
{
    struct link_server *s = CONTAINER_OF(n, struct link_server, closed_node);
    struct link_server **at = &s->link->servers;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    s->link->used -= s->n;
    server_free(s);
}

void server_close_all(struct link *l)
{
    for (struct link_server *s = l->servers; s != NULL; s = s->next) {
        if (!s->retired) {
            server_submit_close(s);
        }
    }
}

void server_free_all(struct link *l)
{
    while (l->servers != NULL) {
        struct link_server *s = l->servers;
        l->servers = s->next;
        server_free(s);
    }
}
