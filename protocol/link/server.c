/*
 * REP with n contexts. Each context has one aio that receives, is held by the owner, sends the
 * answer, receives again:
 *
 *     RECEIVING --request--> HELD --link_answer--> SENDING --done or dropped--> RECEIVING
 *
 * The owner touches a context only while it is HELD; the next receive is posted from the send's
 * completion.
 */
#include <nng/nng.h>

#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>

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
    nng_msg *request; /* arrived, not yet handed out */
    uint32_t generation;
};

struct link_server {
    struct endpoint endpoint;
    struct ipc_guard guard;
    struct helper_job burial;
    struct link *link;
    struct link_server *next;
    void *owner;
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
            nng_msg_free(nng_aio_get_msg(c->aio)); /* a failed send leaves the message with us */
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

/* A receive failed for another reason than the end of the socket: from a fresh context, and from
 * the owner, so that a lasting failure does not spin nng's threads. */
static void context_renew(struct server_context *c)
{
    (void)nng_ctx_close(c->ctx);
    if (nng_ctx_open(&c->ctx, c->server->endpoint.socket) == 0) {
        context_receive(c);
    }
}

bool server_event(struct inbox_node *n, struct link_event *ret)
{
    struct server_context *c = LINK_OF(n, struct server_context, node);
    const enum context_phase phase = atomic_load(&c->phase);
    if (phase == CONTEXT_BROKEN) {
        context_renew(c);
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
    c->request = NULL;
    atomic_store(&c->phase, CONTEXT_HELD);
    return true;
}

bool link_answer(struct link_server *s, uint64_t request, const void *bytes, size_t len)
{
    const uint64_t ix = request & UINT32_MAX;
    nng_msg *msg = NULL;
    if (ix >= s->n) {
        return false;
    }
    struct server_context *c = &s->contexts[ix];
    if (c->generation != request >> GENERATION_SHIFT || atomic_load(&c->phase) != CONTEXT_HELD) {
        return false;
    }
    if (nng_msg_alloc(&msg, len) != 0) {
        context_receive(c); /* the asker gets no answer, but the context is not lost */
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

static void server_free(struct link_server *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->contexts[i].request != NULL) {
            nng_msg_free(s->contexts[i].request);
        }
    }
    endpoint_done(&s->endpoint);
    free(s);
}

static void server_shut(struct link_server *s)
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

static enum bt_code server_start(struct link_server *s, struct bt_error *err)
{
    struct endpoint *e = &s->endpoint;
    nng_listener listener = NNG_LISTENER_INITIALIZER;
    enum bt_code code = ipc_guard_lock(&s->guard, e, err);
    if (code != BT_OK) {
        return code;
    }
    int rv = nng_rep0_open(&e->socket);
    if (rv != 0) {
        ipc_guard_abandon(&s->guard);
        return endpoint_error(err, rv, "has no socket", e->url);
    }
    rv = server_contexts(s);
    if (rv != 0) {
        code = endpoint_error(err, rv, "has no contexts", e->url);
    } else {
        code = endpoint_listen(e, &listener, err);
    }
    if (code != BT_OK) {
        server_shut(s);
        ipc_guard_abandon(&s->guard);
        return code;
    }
    ipc_guard_start(&s->guard, listener, REQ_PROTOCOL);
    return BT_OK;
}

enum bt_code link_server_open(struct link *l, const char *url, uint32_t n,
                              const struct link_limits *lim, void *owner, struct link_server **ret,
                              struct bt_error *err)
{
    if (n == 0 || n > LINK_CONTEXTS_MAX) {
        return err_set(err, BT_INVALID, "%s: a server has 1 to %d contexts, not %u", url,
                       LINK_CONTEXTS_MAX, n);
    }
    struct link_server *s = calloc(1, sizeof *s + n * sizeof s->contexts[0]);
    if (s == NULL) {
        return err_set(err, BT_NOMEM, "%s: no memory for %u contexts", url, n);
    }
    s->n = n;
    s->link = l;
    s->owner = owner;
    enum bt_code code = endpoint_init(&s->endpoint, url, lim, true, err);
    if (code == BT_OK) {
        code = link_book(l, n, err);
    }
    if (code == BT_OK) {
        code = server_start(s, err);
        l->used -= code == BT_OK ? 0 : n;
    }
    if (code != BT_OK) {
        server_free(s);
        return code;
    }
    s->next = l->servers;
    l->servers = s;
    *ret = s;
    return BT_OK;
}

static msec server_bury(struct helper_job *job)
{
    struct link_server *s = LINK_OF(job, struct link_server, burial);
    struct link *l = s->link;
    ipc_guard_stop(&s->guard);
    server_shut(s);
    helper_count(&l->closing, -1);
    return MSEC_NEVER;
}

void server_close_all(struct link *l)
{
    for (struct link_server *s = l->servers; s != NULL; s = s->next) {
        s->burial.run = server_bury;
        helper_count(&l->closing, 1);
        helper_submit(&s->burial, 0);
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
