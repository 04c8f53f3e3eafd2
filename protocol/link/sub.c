/*
 * SUB: one receive without a timeout, because a timeout crashes nng (N9). Its completion puts the
 * frame into a ring and receives again until the ring is full. Then the owner resumes it by taking
 * a frame. One producer, one consumer.
 */
#include <nng/nng.h>

#include <nng/protocol/pubsub0/sub.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"

struct link_sub {
    struct inbox_node node;
    struct helper_task closing;
    struct redial redial;
    struct pipe_track track;
    struct endpoint endpoint;
    struct link *link;
    struct link_sub *next;
    void *owner;
    nng_aio *aio;
    nng_msg *ring[LINK_SUB_RING];
    atomic_uint head;   /* taken by the owner */
    atomic_uint tail;   /* put by the completion */
    atomic_bool paused; /* no receive is posted */
    uint32_t seen_generation;
    uint32_t consecutive; /* events since other nodes had their turn */
};

static bool ring_full(struct link_sub *s)
{
    const unsigned head =
        atomic_load(&s->head); /* read before the tail, so that it is never ahead of it */
    return atomic_load(&s->tail) - head >= LINK_SUB_RING;
}

/*
 * Any thread. Only the thread that clears the pause may post the receive. The ring cannot fill
 * meanwhile, so the test of the ring counts only after that.
 */
static void sub_resume(struct link_sub *s)
{
    while (!ring_full(s) && atomic_exchange(&s->paused, false)) {
        if (!ring_full(s)) {
            nng_recv_aio(s->endpoint.socket, s->aio);
            return;
        }
        atomic_store(&s->paused, true);
    }
}

static void sub_on_aio(void *arg)
{
    struct link_sub *s = arg;
    const int rv = nng_aio_result(s->aio);
    if (rv == NNG_ECLOSED) {
        return;
    }
    if (rv == 0) {
        const unsigned tail = atomic_load(&s->tail);
        s->ring[tail % LINK_SUB_RING] = nng_aio_get_msg(s->aio);
        nng_aio_set_msg(s->aio, NULL);
        atomic_store(&s->tail, tail + 1);
        inbox_push(&s->link->inbox, &s->node);
        if (!ring_full(s)) {
            nng_recv_aio(s->endpoint.socket, s->aio);
            return; /* its completion may already run on another thread */
        }
    }
    atomic_store(&s->paused, true);
    if (rv != 0) {
        inbox_push(&s->link->inbox,
                   &s->node); /* the owner resumes, so that a lasting failure does not spin here */
    } else {
        sub_resume(s); /* the owner may have emptied the ring before it could see the pause */
    }
}

static void sub_on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct link_sub *s = arg;
    const uint32_t id = (uint32_t)nng_pipe_id(pipe);
    bool wake_owner = false;
    switch (ev) {
    case NNG_PIPE_EV_ADD_PRE:
        if (trust_stranger(s->link, &s->endpoint, pipe) != TRUST_FINE ||
            !pipe_track_admit(&s->track, id)) {
            (void)nng_pipe_close(pipe);
        }
        return;
    case NNG_PIPE_EV_ADD_POST:
        wake_owner = pipe_track_up(&s->track, id);
        break;
    case NNG_PIPE_EV_REM_POST:
        wake_owner = pipe_track_removed(&s->track, id);
        break;
    case NNG_PIPE_EV_NUM:
    default:
        break;
    }
    if (wake_owner) {
        inbox_push(&s->link->inbox, &s->node);
    }
}

static int sub_socket(struct link_sub *sub, const struct str *prefixes, uint32_t n)
{
    const nng_socket s = sub->endpoint.socket;
    int rv = nng_socket_set_int(s, NNG_OPT_RECVBUF, LINK_QUEUE_MAX);
    rv = rv != 0 ? rv : nng_socket_set_ms(s, NNG_OPT_RECONNMINT, LINK_REDIAL_MIN_MS);
    rv = rv != 0 ? rv : nng_socket_set_ms(s, NNG_OPT_RECONNMAXT, LINK_REDIAL_MAX_MS);
    rv = rv != 0 ? rv : nng_pipe_notify(s, NNG_PIPE_EV_ADD_PRE, sub_on_pipe, sub);
    rv = rv != 0 ? rv : nng_pipe_notify(s, NNG_PIPE_EV_ADD_POST, sub_on_pipe, sub);
    rv = rv != 0 ? rv : nng_pipe_notify(s, NNG_PIPE_EV_REM_POST, sub_on_pipe, sub);
    if (rv == 0 && n == 0) {
        rv = nng_socket_set(s, NNG_OPT_SUB_SUBSCRIBE, "", 0);
    }
    for (uint32_t i = 0; i < n && rv == 0; i++) {
        rv = nng_socket_set(s, NNG_OPT_SUB_SUBSCRIBE, prefixes[i].ptr, prefixes[i].len);
    }
    return rv != 0 ? rv : nng_aio_alloc(&sub->aio, sub_on_aio, sub);
}

static enum bt_code sub_start(struct link_sub *s, const struct str *prefixes, uint32_t n,
                              struct bt_error *err)
{
    struct endpoint *e = &s->endpoint;
    int rv = nng_sub0_open(&e->socket);
    if (rv != 0) {
        return endpoint_error(err, rv, "has no socket", e->url);
    }
    rv = sub_socket(s, prefixes, n);
    enum bt_code code = BT_OK;
    if (rv != 0) {
        code = endpoint_error(err, rv, "cannot be set up", e->url);
    } else {
        code = redial_start(&s->redial, e, &s->track, err);
    }
    if (code != BT_OK) {
        (void)nng_close(e->socket);
        if (s->aio != NULL) {
            nng_aio_free(s->aio);
        }
        return code;
    }
    nng_recv_aio(e->socket, s->aio);
    return BT_OK;
}

static void sub_free(struct link_sub *s)
{
    for (unsigned i = atomic_load(&s->head); i != atomic_load(&s->tail); i++) {
        nng_msg_free(s->ring[i % LINK_SUB_RING]);
    }
    endpoint_done(&s->endpoint);
    free(s);
}

enum bt_code link_sub_dial(struct link *l, const char *url, const struct str *prefixes, uint32_t n,
                           const struct link_limits *lim, void *owner, struct link_sub **ret,
                           struct bt_error *err)
{
    struct link_sub *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_set(err, BT_NOMEM, "%s: no memory for a subscriber", url);
    }
    s->node.kind = INBOX_SUB;
    s->link = l;
    s->owner = owner;
    enum bt_code code = endpoint_init(&s->endpoint, url, lim, false, err);
    if (code == BT_OK) {
        code = link_reserve(l, 1, err);
    }
    if (code == BT_OK) {
        code = sub_start(s, prefixes, n, err);
        l->used -= code == BT_OK ? 0 : 1;
    }
    if (code != BT_OK) {
        sub_free(s);
        return code;
    }
    s->next = l->subs;
    l->subs = s;
    *ret = s;
    return BT_OK;
}

static bool sub_take_frame(struct link_sub *s, struct link_event *ret)
{
    const unsigned head = atomic_load(&s->head);
    if (head == atomic_load(&s->tail)) {
        return false;
    }
    ret->type = LINK_FRAME;
    ret->msg = (struct link_msg *)(void *)s->ring[head % LINK_SUB_RING];
    atomic_store(&s->head, head + 1);
    return true;
}

bool sub_event(struct inbox_node *n, struct link_event *ret)
{
    struct link_sub *s = CONTAINER_OF(n, struct link_sub, node);
    ret->sub = s;
    ret->owner = s->owner;
    if (++s->consecutive > LINK_SUB_RING) { /* one busy subscription must not starve others */
        s->consecutive = 0;
        inbox_push(&s->link->inbox, &s->node);
        return false;
    }
    const bool reported_up = (s->seen_generation & 1u) != 0;
    bool found = reported_up && sub_take_frame(s, ret); /* frames come after UP and before DOWN */
    if (!found) {
        const int transition = pipe_track_next(&s->track, &s->seen_generation);
        ret->type = transition > 0 ? LINK_SUB_UP : LINK_SUB_DOWN;
        found = transition != 0 || sub_take_frame(s, ret);
    }
    sub_resume(s);
    if (!found) {
        s->consecutive = 0;
    }
    return found;
}

static msec sub_close_task(struct helper_task *task)
{
    struct link_sub *s = CONTAINER_OF(task, struct link_sub, closing);
    struct link *l = s->link;
    const msec now = clock_mono_ms();
    if (redial_is_settling(&s->redial, now)) {
        return now + LINK_RETIRED_CHECK_MS;
    }
    redial_stop(&s->redial);
    (void)nng_close(s->endpoint.socket);
    nng_aio_stop(s->aio);
    nng_aio_free(s->aio);
    helper_counter_add(&l->closing, -1);
    return MSEC_NEVER;
}

void sub_close_all(struct link *l)
{
    for (struct link_sub *s = l->subs; s != NULL; s = s->next) {
        s->closing.run = sub_close_task;
        helper_counter_add(&l->closing, 1);
        helper_submit(&s->closing, 0);
    }
}

void sub_free_all(struct link *l)
{
    while (l->subs != NULL) {
        struct link_sub *s = l->subs;
        l->subs = s->next;
        sub_free(s);
    }
}
