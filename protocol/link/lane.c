/*
 * A lane: REQ, one pipe, one outstanding request.
 *
 *      IDLE --link_lane_send--> SENDING --nng took it--> RECEIVING --reply--> done = ANSWER
 *                                  |                         `-----reset----> done = LOST
 *                                  `--never taken---------------------------> done = UNSENT
 *
 * A pipe that is ready takes a request at once, on the owner's thread, which then posts the receive
 * (N31). Else `aio` waits for the pipe, and the send's completion posts the receive. Nothing is
 * ever cancelled, which avoids the cancel races of nng (N3) and saves a cycle of the owner.
 */
#include <nng/nng.h>

#include <arpa/inet.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"
#include "protocol/link/link_internal.h"

enum lane_done { LANE_PENDING, LANE_ANSWER, LANE_LOST, LANE_UNSENT };

struct link_lane {
    struct inbox_node node;        /* a completion or a pipe changed something */
    struct inbox_node closed_node; /* the socket is closed; the owner frees the memory */
    struct helper_task closing;
    msec linger_until; /* when to close although the peer has not hung up */
    struct redial redial;
    struct pipe_track track;
    struct endpoint endpoint;
    struct link *link;
    struct link_lane *next;
    void *owner;
    nng_aio *aio;  /* sends when the pipe is not ready, and receives */
    nng_aio *fast; /* sends, or fails at once; it has no completion */
    nng_ctx ctx;
    atomic_bool sending; /* a request, and no pipe has taken it yet */
    _Atomic(enum lane_done) done;
    nng_msg *answer;          /* written before done, read after it */
    _Atomic int64_t stranger; /* the last peer that was refused; TRUST_FINE = none */
    uint32_t seen_generation; /* generation of the last transition that the owner got */
    bool ctx_fresh;           /* false: open another context before the next request */
    bool outstanding;
    bool retired;
    bool close_submitted;
    struct helper_task hanging_up;
    struct peer_key hung_up; /* of the task; the owner writes it while none is pending */
    atomic_bool hang_up_pending;
    _Atomic uint64_t kept_out; /* a hash of the host that may not connect; 0 = none */
    _Atomic int64_t kept_out_until;
};

static void lane_finish(struct link_lane *lane, enum lane_done done)
{
    atomic_store(&lane->sending, false);
    atomic_store(&lane->done, done);
    inbox_push(&lane->link->inbox, &lane->node);
}

static void lane_on_aio(void *arg)
{
    struct link_lane *lane = arg;
    const int rv = nng_aio_result(lane->aio);
    const bool sending = atomic_load(&lane->sending);
    if (sending && rv == 0) {
        atomic_store(&lane->sending, false);
        nng_ctx_recv(lane->ctx, lane->aio); /* its completion may already run on another thread */
    } else if (sending) {
        nng_msg_free(nng_aio_get_msg(lane->aio)); /* a failed send leaves us the message */
        nng_aio_set_msg(lane->aio, NULL);
        lane_finish(lane, LANE_UNSENT);
    } else if (rv == 0) {
        lane->answer = nng_aio_get_msg(lane->aio);
        nng_aio_set_msg(lane->aio, NULL);
        lane_finish(lane, LANE_ANSWER);
    } else {
        lane_finish(lane, LANE_LOST);
    }
}

/* ---- peers that did not prove themselves ---- */

static uint64_t host_hash(const struct peer_key *peer)
{
    uint64_t h = 1469598103934665603u;

    for (size_t i = 0; i < sizeof peer->address; i++) {
        h = (h ^ peer->address[i]) * 1099511628211u;
    }
    return h | 1;
}

static bool is_kept_out(struct link_lane *lane, nng_pipe pipe)
{
    const uint64_t host = atomic_load(&lane->kept_out);
    struct peer_key key;

    if (host == 0 || (msec)atomic_load(&lane->kept_out_until) <= clock_mono_ms()) {
        return false;
    }
    key = peer_key_of_pipe(pipe);
    return host_hash(&key) == host;
}

/* "192.0.2.1:40" or "[2001:db8::1]:40". */
static bool is_host(const struct peer_key *peer, const char *text)
{
    struct peer_key other = {.port = 0};
    char ip[INET6_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    const bool v6 = text[0] == '[';
    const size_t n = colon == NULL ? 0 : (size_t)(colon - text) - (v6 ? 2 : 0);

    if (colon == NULL || n >= sizeof ip) {
        return false;
    }
    memcpy(ip, text + (v6 ? 1 : 0), n);
    ip[n] = 0;
    return inet_pton(v6 ? AF_INET6 : AF_INET, ip, other.address) == 1 &&
           peer_key_same_host(peer, &other);
}

static msec hang_up_task(struct helper_task *task)
{
    struct link_lane *lane = CONTAINER_OF(task, struct link_lane, hanging_up);

    peer_key_shut(&lane->hung_up,
                  (uint32_t)strtoul(strrchr(lane->endpoint.url, ':') + 1, NULL, 10));
    atomic_store(&lane->hang_up_pending, false);
    return MSEC_NEVER;
}

void link_lane_hang_up(struct link_lane *lane, const char *from)
{
    const uint32_t pipe = pipe_track_pipe(&lane->track);

    if (pipe == 0 || lane->retired || lane->redial.endpoint != NULL ||
        atomic_load(&lane->hang_up_pending)) {
        return;
    }
    lane->hung_up = peer_key_of_pipe((nng_pipe){.id = pipe});
    if (lane->hung_up.port == 0) {
        return; /* it has gone */
    }
    if (!is_host(&lane->hung_up, from)) {
        atomic_store(&lane->kept_out_until, (int64_t)(clock_mono_ms() + LINK_KEEP_OUT_MS));
        atomic_store(&lane->kept_out, host_hash(&lane->hung_up));
    }
    atomic_store(&lane->hang_up_pending, true);
    lane->hanging_up.run = hang_up_task;
    helper_submit(&lane->hanging_up, 0);
}

/*
 * Rejects a pipe of another user, of a host that is kept out, and any while a request waits to be
 * sent, because the request was for the pipe before (N12). The owner withdraws the request at
 * LINK_DOWN, and the peer dials again. link_lane_send sets SENDING before it tests the pipe, so one
 * of the two threads sees the other.
 */
static bool lane_admit(struct link_lane *lane, nng_pipe of)
{
    const uint32_t pipe = (uint32_t)nng_pipe_id(of);
    const int64_t stranger = trust_stranger(lane->link, &lane->endpoint, of);
    atomic_store(&lane->stranger, stranger);
    if (stranger != TRUST_FINE || is_kept_out(lane, of) || !pipe_track_admit(&lane->track, pipe)) {
        return false;
    }
    if (!atomic_load(&lane->sending)) {
        return true;
    }
    (void)pipe_track_removed(&lane->track, pipe);
    return false;
}

static void lane_on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct link_lane *lane = arg;
    const uint32_t id = (uint32_t)nng_pipe_id(pipe);
    bool wake_owner = false;
    switch (ev) {
    case NNG_PIPE_EV_ADD_PRE:
        if (!lane_admit(lane, pipe)) {
            (void)nng_pipe_close(pipe); /* only allowed here: it has no traffic yet (N1) */
        }
        return;
    case NNG_PIPE_EV_ADD_POST:
        wake_owner = pipe_track_up(&lane->track, id);
        break;
    case NNG_PIPE_EV_REM_POST:
        wake_owner = pipe_track_removed(&lane->track, id);
        break;
    case NNG_PIPE_EV_NUM:
    default:
        break;
    }
    if (wake_owner) {
        inbox_push(&lane->link->inbox, &lane->node);
    }
}

static int lane_socket(struct link_lane *lane)
{
    const nng_socket s = lane->endpoint.socket;
    /* Set before the context is opened, which copies the value. A finite time executes requests
     * twice (N2). */
    int rv = nng_socket_set_ms(s, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    rv = rv != 0 ? rv : nng_socket_set_ms(s, NNG_OPT_RECONNMINT, LINK_REDIAL_MIN_MS);
    rv = rv != 0 ? rv : nng_socket_set_ms(s, NNG_OPT_RECONNMAXT, LINK_REDIAL_MAX_MS);
    rv = rv != 0 ? rv : nng_pipe_notify(s, NNG_PIPE_EV_ADD_PRE, lane_on_pipe, lane);
    rv = rv != 0 ? rv : nng_pipe_notify(s, NNG_PIPE_EV_ADD_POST, lane_on_pipe, lane);
    rv = rv != 0 ? rv : nng_pipe_notify(s, NNG_PIPE_EV_REM_POST, lane_on_pipe, lane);
    rv = rv != 0 ? rv : nng_ctx_open(&lane->ctx, s);
    rv = rv != 0 ? rv : nng_aio_alloc(&lane->fast, NULL, NULL);
    if (rv == 0) {
        nng_aio_set_timeout(lane->fast, NNG_DURATION_ZERO);
    }
    return rv != 0 ? rv : nng_aio_alloc(&lane->aio, lane_on_aio, lane);
}

static void lane_free_aios(struct link_lane *lane)
{
    if (lane->fast != NULL) {
        nng_aio_free(lane->fast);
    }
    if (lane->aio != NULL) {
        nng_aio_free(lane->aio);
    }
}

static void lane_free(struct link_lane *lane)
{
    if (lane->answer != NULL) {
        nng_msg_free(lane->answer);
    }
    endpoint_done(&lane->endpoint);
    free(lane);
}

static enum bt_code lane_start(struct link_lane *lane, bool listen, struct bt_error *err)
{
    struct endpoint *e = &lane->endpoint;
    nng_listener listener;
    enum bt_code code = BT_OK;
    int rv = nng_req0_open(&e->socket);
    if (rv != 0) {
        return endpoint_error(err, rv, "has no socket", e->url);
    }
    rv = lane_socket(lane);
    if (rv != 0) {
        code = endpoint_error(err, rv, "cannot be set up", e->url);
    } else if (listen) {
        code = endpoint_listen(e, &listener, err);
    } else {
        code = redial_start(&lane->redial, e, &lane->track, err);
    }
    if (code != BT_OK) {
        (void)nng_close(e->socket);
        lane_free_aios(lane);
    }
    return code;
}

static enum bt_code lane_open(struct link *l, const char *url, const struct link_limits *lim,
                              bool listen, void *owner, struct link_lane **ret,
                              struct bt_error *err)
{
    struct link_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return err_set(err, BT_NOMEM, "%s: no memory for a lane", url);
    }
    lane->node.kind = INBOX_LANE;
    lane->closed_node.kind = INBOX_LANE_CLOSED;
    lane->link = l;
    lane->owner = owner;
    lane->ctx_fresh = true;
    atomic_store(&lane->stranger, TRUST_FINE);
    enum bt_code code = endpoint_init(&lane->endpoint, url, lim, listen, err);
    if (code == BT_OK && listen && endpoint_is_ipc(&lane->endpoint)) {
        /* The probe of an ipc listener would take the lane's only pipe. */
        code = err_set(err, BT_INVALID, "%s: a lane listens on tcp:// or tls+tcp:// only", url);
    }
    if (code == BT_OK) {
        code = link_reserve(l, 1, err);
    }
    if (code == BT_OK) {
        code = lane_start(lane, listen, err);
        l->used -= code == BT_OK ? 0 : 1;
    }
    if (code != BT_OK) {
        lane_free(lane);
        return code;
    }
    lane->next = l->lanes;
    l->lanes = lane;
    *ret = lane;
    return BT_OK;
}

enum bt_code link_lane_dial(struct link *l, const char *url, const struct link_limits *lim,
                            void *owner, struct link_lane **ret, struct bt_error *err)
{
    return lane_open(l, url, lim, false, owner, ret, err);
}

enum bt_code link_lane_listen(struct link *l, const char *url, const struct link_limits *lim,
                              void *owner, struct link_lane **ret, struct bt_error *err)
{
    return lane_open(l, url, lim, true, owner, ret, err);
}

const char *link_lane_url(const struct link_lane *lane)
{
    return lane->endpoint.url;
}

bool link_lane_is_up(const struct link_lane *lane)
{
    return pipe_track_is_up(&lane->track, lane->seen_generation);
}

bool link_lane_stranger(const struct link_lane *lane, uint32_t *ret_uid)
{
    const int64_t stranger = atomic_load(&lane->stranger);
    *ret_uid = stranger >= 0 ? (uint32_t)stranger : 0;
    return stranger >= 0;
}

/* True: the pipe has it, and the receive is posted. False: the pipe is not ready. */
static bool lane_send_now(struct link_lane *lane, nng_msg *msg)
{
    nng_aio_set_msg(lane->fast, msg);
    nng_ctx_send(lane->ctx, lane->fast);
    if (nng_aio_result(lane->fast) != 0) {
        nng_aio_set_msg(lane->fast, NULL); /* a failed send leaves us the message */
        return false;
    }
    atomic_store(&lane->sending, false);
    nng_ctx_recv(lane->ctx, lane->aio);
    return true;
}

enum bt_code link_lane_send(struct link_lane *lane, const void *bytes, size_t len,
                            struct bt_error *err)
{
    nng_msg *msg = NULL;
    if (lane->outstanding) {
        return err_set(err, BT_BUSY, "%s: a request is outstanding on this lane",
                       lane->endpoint.url);
    }
    if (len > lane->endpoint.recv_max) {
        return err_set(err, BT_LIMIT, "%s: a body may have %zu bytes, this one has %zu",
                       lane->endpoint.url, lane->endpoint.recv_max, len);
    }
    if (!lane->ctx_fresh) {
        const int rv = nng_ctx_open(&lane->ctx, lane->endpoint.socket);
        if (rv != 0) {
            return endpoint_error(err, rv, "has no context", lane->endpoint.url);
        }
        lane->ctx_fresh = true;
    }
    if (nng_msg_alloc(&msg, len) != 0) {
        return err_set(err, BT_NOMEM, "%s: no memory for a body of %zu bytes", lane->endpoint.url,
                       len);
    }
    atomic_store(&lane->sending, true);
    if (FAILPOINT("send") == FAILPOINT_ERROR || !link_lane_is_up(lane)) {
        atomic_store(&lane->sending, false);
        nng_msg_free(msg);
        return err_set(err, BT_UNAVAILABLE, "%s: no peer is connected", lane->endpoint.url);
    }
    if (len > 0) {
        memcpy(nng_msg_body(msg), bytes, len);
    }
    lane->outstanding = true;
    if (!lane_send_now(lane, msg)) {
        nng_aio_set_msg(lane->aio, msg);
        nng_ctx_send(lane->ctx, lane->aio);
    }
    return BT_OK;
}

/* ---- completions, on the owner's thread ---- */

/* A request that no pipe has taken must not go to the next peer (N12). Closing its context makes
 * the send fail, certainly unsent. */
static void lane_withdraw_unsent(struct link_lane *lane)
{
    if (lane->outstanding && lane->ctx_fresh && atomic_load(&lane->sending)) {
        (void)nng_ctx_close(lane->ctx);
        lane->ctx_fresh = false;
    }
}

static bool lane_completion(struct link_lane *lane, struct link_event *ret)
{
    const enum lane_done done = atomic_exchange(&lane->done, LANE_PENDING);
    if (done == LANE_PENDING) {
        return false;
    }
    lane->outstanding = false;
    if (done == LANE_ANSWER) {
        ret->type = LINK_ANSWER;
        ret->msg = (struct link_msg *)(void *)lane->answer;
        lane->answer = NULL;
        return true;
    }
    if (lane->ctx_fresh) { /* after an error a context may be in NNG_ESTATE (N14) */
        (void)nng_ctx_close(lane->ctx);
        lane->ctx_fresh = false;
    }
    ret->type = LINK_LOST;
    ret->sent = done == LANE_LOST;
    return true;
}

static msec lane_close_task(struct helper_task *task)
{
    struct link_lane *lane = CONTAINER_OF(task, struct link_lane, closing);
    struct link *l = lane->link;
    const msec now = clock_mono_ms();
    if ((!pipe_track_empty(&lane->track) && now < lane->linger_until &&
         !atomic_load(&l->no_linger)) ||
        redial_is_settling(&lane->redial, now)) {
        return now + LINK_RETIRED_CHECK_MS;
    }
    redial_stop(&lane->redial);
    if (atomic_load(&lane->hang_up_pending)) {
        helper_cancel(&lane->hanging_up);
    }
    nng_aio_stop(lane->aio); /* first: no callback is left that starts to receive (N22) */
    (void)nng_close(lane->endpoint.socket);
    lane_free_aios(lane);
    inbox_push(&l->inbox, &lane->closed_node);
    helper_counter_add(&l->closing, -1);
    return MSEC_NEVER;
}

static void lane_submit_close(struct link_lane *lane)
{
    lane->close_submitted = true;
    lane->closing.run = lane_close_task;
    lane->linger_until = clock_mono_ms() + LINK_LINGER_MS;
    helper_counter_add(&lane->link->closing, 1);
    helper_submit(&lane->closing, 0);
}

/* Closes when that is safe: there is no pipe, or nothing is outstanding on it (N1). */
static void lane_close_when_idle(struct link_lane *lane)
{
    if (lane->retired && !lane->close_submitted &&
        (!lane->outstanding || pipe_track_empty(&lane->track))) {
        lane_submit_close(lane);
    }
}

bool lane_event(struct inbox_node *n, struct link_event *ret)
{
    struct link_lane *lane = CONTAINER_OF(n, struct link_lane, node);
    if (lane->retired) {
        struct link_event ignored = {.owner = NULL};
        if (lane_completion(lane, &ignored)) {
            link_msg_free(ignored.msg);
        }
        lane_close_when_idle(lane);
        return false;
    }
    ret->lane = lane;
    ret->owner = lane->owner;
    if (lane_completion(lane, ret)) {
        return true;
    }
    switch (pipe_track_next(&lane->track, &lane->seen_generation)) {
    case 1:
        ret->type = LINK_UP;
        return true;
    case -1:
        lane_withdraw_unsent(lane);
        ret->type = LINK_DOWN;
        return true;
    default:
        return false;
    }
}

void link_lane_retire(struct link_lane *lane)
{
    if (lane == NULL || lane->retired) {
        return;
    }
    lane->retired = true;
    pipe_track_shut(&lane->track);
    lane_close_when_idle(lane);
}

void lane_closed(struct inbox_node *n)
{
    struct link_lane *lane = CONTAINER_OF(n, struct link_lane, closed_node);
    struct link *l = lane->link;
    struct link_lane **at = &l->lanes;
    for (; *at != lane; at = &(*at)->next) {
    }
    *at = lane->next;
    l->used--;
    lane_free(lane);
}

void lane_close_all(struct link *l)
{
    for (struct link_lane *lane = l->lanes; lane != NULL; lane = lane->next) {
        lane->retired = true;
        pipe_track_shut(&lane->track);
        if (!lane->close_submitted) {
            lane_submit_close(lane);
        }
    }
}

void lane_free_all(struct link *l)
{
    while (l->lanes != NULL) {
        struct link_lane *lane = l->lanes;
        l->lanes = lane->next;
        lane_free(lane);
    }
}
