/* PUB: nng drops the oldest frame of a slow subscriber and never blocks the sender (N8). */
#include <nng/nng.h>

#include <nng/protocol/pubsub0/pub.h>
#include <stdlib.h>

#include "protocol/base/failpoint.h"
#include "protocol/link/link_internal.h"

enum { SUB_PROTOCOL = 0x21 };

struct link_pub {
    struct endpoint endpoint;
    struct ipc_guard guard;
    struct tls_guard tls;
    struct peer_watch watch;
    struct helper_task closing;
    struct link *link;
    struct link_pub *next;
    nng_aio *aio; /* one for all frames; nng_sendmsg would allocate one for each */
};

static void pub_on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct link_pub *p = arg;
    (void)ev;
    if (trust_stranger(p->link, &p->endpoint, pipe) != TRUST_FINE) {
        (void)nng_pipe_close(pipe); /* ADD_PRE: no frame has gone to it */
    }
}

static enum bt_code pub_start(struct link_pub *p, const struct link_limits *lim,
                              struct bt_error *err)
{
    struct endpoint *e = &p->endpoint;
    nng_listener listener = NNG_LISTENER_INITIALIZER;
    e->publishes = true;
    enum bt_code code = ipc_guard_lock(&p->guard, e, err);
    if (code != BT_OK) {
        return code;
    }
    int rv = nng_pub0_open(&e->socket);
    if (rv != 0) {
        ipc_guard_abandon(&p->guard);
        return endpoint_error(err, rv, "has no socket", e->url);
    }
    /* The default of 16 loses most of a burst even for a healthy subscriber (N8). */
    rv = nng_socket_set_int(e->socket, NNG_OPT_SENDBUF, LINK_QUEUE_MAX);
    rv = rv != 0 ? rv : nng_pipe_notify(e->socket, NNG_PIPE_EV_ADD_PRE, pub_on_pipe, p);
    rv = rv != 0 ? rv : nng_aio_alloc(&p->aio, NULL, NULL);
    if (rv != 0) {
        code = endpoint_error(err, rv, "cannot be set up", e->url);
    } else {
        code = endpoint_listen(e, &listener, err);
    }
    if (code == BT_OK) {
        code = peer_watch_start(&p->watch, p->link, e, listener, &lim->peers, NULL, NULL, err);
    }
    if (code != BT_OK) {
        (void)nng_close(e->socket);
        if (p->aio != NULL) {
            nng_aio_free(p->aio);
        }
        ipc_guard_abandon(&p->guard);
        return code;
    }
    ipc_guard_start(&p->guard, listener, SUB_PROTOCOL);
    tls_guard_start(&p->tls, e, listener);
    return BT_OK;
}

enum bt_code link_pub_open(struct link *l, const char *url, const struct link_limits *lim,
                           struct link_pub **ret, struct bt_error *err)
{
    struct link_pub *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_set(err, BT_NOMEM, "%s: no memory for a publisher", url);
    }
    p->link = l;
    enum bt_code code = endpoint_init(&p->endpoint, url, lim, true, err);
    if (code == BT_OK) {
        code = pub_start(p, lim, err);
    }
    if (code != BT_OK) {
        endpoint_done(&p->endpoint);
        free(p);
        return code;
    }
    p->next = l->pubs;
    l->pubs = p;
    *ret = p;
    return BT_OK;
}

const char *link_pub_url(const struct link_pub *p)
{
    return p->endpoint.url;
}

void link_publish(struct link_pub *p, struct str topic, const void *body, size_t len)
{
    nng_msg *msg = NULL;
    if (FAILPOINT("publish") == FAILPOINT_DROP || nng_msg_alloc(&msg, topic.len + 1 + len) != 0) {
        return; /* the same as a frame dropped for a slow subscriber: it reads the event from the
                   journal */
    }
    char *at = nng_msg_body(msg);
    if (topic.len > 0) {
        memcpy(at, topic.ptr, topic.len);
    }
    at[topic.len] = '\0';
    if (len > 0) {
        memcpy(at + topic.len + 1, body, len);
    }
    nng_aio_set_msg(p->aio, msg);
    nng_send_aio(p->endpoint.socket, p->aio);
    nng_aio_wait(p->aio); /* PUB completes inside the call; this only takes the result */
    if (nng_aio_result(p->aio) != 0) {
        nng_msg_free(msg);
    }
    nng_aio_set_msg(p->aio, NULL);
}

static msec pub_close_task(struct helper_task *task)
{
    struct link_pub *p = CONTAINER_OF(task, struct link_pub, closing);
    struct link *l = p->link;
    ipc_guard_stop(&p->guard);
    tls_guard_stop(&p->tls);
    peer_watch_stop(&p->watch);
    (void)nng_close(p->endpoint.socket);
    nng_aio_free(p->aio);
    helper_counter_add(&l->closing, -1);
    return MSEC_NEVER;
}

void pub_close_all(struct link *l)
{
    for (struct link_pub *p = l->pubs; p != NULL; p = p->next) {
        p->closing.run = pub_close_task;
        helper_counter_add(&l->closing, 1);
        helper_submit(&p->closing, 0);
    }
}

void pub_free_all(struct link *l)
{
    while (l->pubs != NULL) {
        struct link_pub *p = l->pubs;
        l->pubs = p->next;
        endpoint_done(&p->endpoint);
        peer_watch_free(&p->watch);
        free(p);
    }
}
