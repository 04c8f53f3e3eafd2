/* Connections to the daemon: one request out on each. */
#include <stdio.h>

#include "supervisor/gateway/upstream_internal.h"

enum { IDLE_MS = 60000, LOOK_MS = 250, TRIES_MAX = 3, MOVED_MS = 100 };

static void retire(struct lane *lane)
{
    if (lane->link != NULL) {
        link_lane_retire(lane->link);
    }
    explicit_bzero(&lane->x, sizeof lane->x);
    lane->link = NULL;
    lane->call = NULL;
    lane->denies = lane->fell = false;
}

void lanes_retire(struct caller *c)
{
    for (uint32_t i = 0; i < lanes_max(c->up); i++) {
        struct call *call = c->lanes[i].call;
        retire(&c->lanes[i]);
        if (call != NULL) {
            call_fail(call, BT_UNAVAILABLE, "the connection to the daemon was given up");
        }
    }
}

/* Reads the daemon's addresses, not too often, and whom the link may talk to. */
static bool find_daemon(struct upstream *u, msec now)
{
    uint32_t trusted[STATE_TRUSTED_MAX];
    struct bt_error err;

    if (u->looked != 0 && now - u->looked < LOOK_MS) {
        return u->is_there;
    }
    u->looked = now;
    u->is_there =
        state_endpoints_read(u->dir, &u->at, &err) == BT_OK && !state_daemon_ended(&u->at);
    fleet_read(u->dir, &u->fleet);
    if (u->is_there) {
        link_trust(u->link, trusted, state_trusted(u->at.owner, trusted));
    }
    return u->is_there;
}

/* Where the shard is; "" = nowhere now. */
static const char *url_of(const struct upstream *u, uint32_t shard)
{
    return u->fleet.shards == 1 ? u->at.control : u->fleet.at[shard].control;
}

static void dial(struct lane *lane, uint32_t shard, msec now)
{
    struct upstream *u = lane->of->up;
    const struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    struct bt_error err;

    if (!find_daemon(u, now) || url_of(u, shard)[0] == 0) {
        return;
    }
    lane->shard = shard;
    (void)snprintf(lane->url, sizeof lane->url, "%s", url_of(u, shard));
    if (link_lane_dial(u->link, lane->url, &limits, lane, &lane->link, &err) != BT_OK) {
        lane->link = NULL; /* the calls wait until their time is over */
        return;
    }
    memcpy(lane->instance, u->at.instance.b, sizeof lane->instance);
    lane->idle_since = now;
    if (lane->of->token[0] == 0) {
        exchange_set(&lane->x, lane->of->id, lane->of->key);
    }
}

/* The request, or the handshake that it waits for. */
static enum bt_code send_next(struct lane *lane, struct bt_error *err)
{
    struct buf sealed;
    enum bt_code code;

    if (lane->of->token[0] != 0) {
        return link_lane_send(lane->link, lane->call->body.at, lane->call->body.len, err);
    }
    buf_init(&sealed, SEAL_HEADER_BYTES + LIMIT_STEP_BYTES);
    code = exchange_next(&lane->x, buf_str(&lane->call->body), &sealed, err);
    code = code == BT_OK ? buf_check(&sealed, err) : code;
    code = code == BT_OK ? link_lane_send(lane->link, sealed.at, sealed.len, err) : code;
    buf_done(&sealed);
    return code;
}

static void start(struct lane *lane, struct call *call)
{
    struct bt_error err;
    enum bt_code code;

    lane->call = call;
    exchange_start(&lane->x);
    code = send_next(lane, &err);
    if (code != BT_OK) {
        lane->call = NULL;
        if (code == BT_UNAVAILABLE) { /* its pipe has just changed */
            call_requeue(call);
        } else {
            call_fail(call, code, err.msg);
        }
    }
}

static bool is_ready(const struct lane *lane, uint32_t shard)
{
    return lane->link != NULL && lane->call == NULL && !lane->fell && lane->shard == shard &&
           link_lane_is_up(lane->link);
}

/* A lane on its way to the shard: one at a time. */
static bool is_dialing(const struct caller *c, uint32_t most, uint32_t shard)
{
    bool found = false;

    for (uint32_t i = 0; i < most; i++) {
        const struct lane *lane = &c->lanes[i];
        found = found || (lane->link != NULL && lane->call == NULL && !lane->fell &&
                          lane->shard == shard && !link_lane_is_up(lane->link));
    }
    return found;
}

/* A place for one more lane: a free one, or that of an idle lane to a shard that nobody asks. */
static struct lane *place_for(struct caller *c, uint32_t most, uint32_t shard)
{
    struct lane *idle = NULL;

    for (uint32_t i = 0; i < most; i++) {
        struct lane *lane = &c->lanes[i];
        if (lane->link == NULL) {
            return lane;
        }
        if (is_ready(lane, lane->shard) && lane->shard != shard &&
            (idle == NULL || lane->idle_since < idle->idle_since)) {
            idle = lane;
        }
    }
    if (idle != NULL) {
        retire(idle);
    }
    return idle;
}

static struct lane *ready_lane(struct caller *c, uint32_t most, uint32_t shard)
{
    for (uint32_t i = 0; i < most; i++) {
        if (is_ready(&c->lanes[i], shard)) {
            return &c->lanes[i];
        }
    }
    return NULL;
}

/* False: what comes after it waits, too. */
static bool pump(struct caller *c, uint32_t most, struct call **at, bool *ret_sent, msec now)
{
    struct call *call = *at;
    struct lane *lane = ready_lane(c, most, call->shard);

    *ret_sent = lane != NULL;
    if (lane != NULL) {
        call_unlink(c, at);
        call->next = NULL;
        start(lane, call);
        return lane->call != NULL; /* it could not be sent: LINK_UP comes */
    }
    if (!is_dialing(c, most, call->shard)) {
        lane = place_for(c, most, call->shard);
        if (lane != NULL) {
            lane->of = c;
            dial(lane, call->shard, now);
        }
    }
    return c->up->fleet.shards > 1;
}

void lanes_pump(struct caller *c, msec now)
{
    /* a stranger has one lane: nothing else is sent before it has proved itself */
    const uint32_t most = c->proved ? lanes_max(c->up) : 1;

    for (struct call **at = &c->first; *at != NULL;) {
        bool sent = false;
        if ((*at)->not_before <= now && !pump(c, most, at, &sent, now)) {
            return;
        }
        if (!sent && *at != NULL) {
            at = &(*at)->next;
        }
    }
}

void lanes_give_up(struct lane *lane)
{
    retire(lane);
}

void lanes_tidy(struct caller *c, msec now)
{
    for (uint32_t i = 0; i < lanes_max(c->up); i++) {
        struct lane *lane = &c->lanes[i];
        if (lane->link == NULL || lane->call != NULL) {
            continue;
        }
        const bool waits = c->first != NULL && !link_lane_is_up(lane->link);
        const bool moved =
            waits && find_daemon(c->up, now) &&
            (c->up->fleet.shards > 1 ? strcmp(lane->url, url_of(c->up, lane->shard)) != 0
                                     : memcmp(lane->instance, c->up->at.instance.b, 16) != 0);
        if (moved || now - lane->idle_since > IDLE_MS) {
            retire(lane);
        }
    }
}

/* ---- what comes ---- */

static struct str text_of(struct str s, const char *otherwise)
{
    return s.len > 0 ? s : str_from(otherwise);
}

static bool is_unauthorized(const struct reply *r)
{
    return !r->ok && r->problem.code == BT_UNAUTHORIZED &&
           doc_get(r->problem.details, STR_LIT("role")).ptr == NULL;
}

/* A refusal that proves nobody: of a token that was not taken before. What comes sealed knows its
 * sender, and so does a refusal of what is asked for. */
static bool refuses_sender(const struct caller *c, const struct reply *r)
{
    return is_unauthorized(r) && c->token[0] != 0 && !c->proved &&
           doc_get(r->problem.details, STR_LIT("sender")).ptr != NULL;
}

/* Nothing was done: it goes to the shard that has it. The map is soon right. */
static bool is_moved(const struct caller *c, struct call *call, const struct reply *r)
{
    const struct doc shard = !r->ok && r->problem.code == BT_MOVED && r->problem.details.ptr != NULL
                                 ? doc_get(r->problem.details, STR_LIT("shard"))
                                 : (struct doc){NULL, 0};

    if (shard.ptr == NULL || doc_head(shard).kind != DOC_UINT ||
        doc_head(shard).u >= c->up->fleet.shards) {
        return false;
    }
    call->shard = (uint32_t)doc_head(shard).u;
    c->up->looked = 0;
    return true;
}

static void deliver(struct lane *lane, struct str bytes, msec now)
{
    struct caller *c = lane->of;
    struct call *call = lane->call;
    struct msg_envelope e = {0};
    struct reply r = {.ok = false};
    struct msg_reader reader = {0};
    struct bt_error err;
    enum bt_code code = msg_reader_init(&reader, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err);

    lane->call = NULL;
    lane->idle_since = now;
    code = code == BT_OK ? msg_read(&reader, MSG_envelope, &e, &err) : code;
    if (code != BT_OK || (e.ok && !str_is(e.type, msg_wire_type(call->answer)))) {
        msg_reader_done(&reader);
        call_fail(call, BT_PROTOCOL, "the answer of the daemon breaks the protocol");
        return;
    }
    r.ok = e.ok;
    r.body = (struct doc){reader.body, reader.len};
    r.problem = (struct problem){.code = err_code_from_name(e.error.code.ptr, e.error.code.len),
                                 .class_ = e.error.class_,
                                 .message = text_of(e.error.message, "the daemon gave no reason"),
                                 .retry_after_ms = e.error.retry_after_ms,
                                 .details = e.error.details};
    if (is_moved(c, call, &r)) {
        call->not_before = now + MOVED_MS;
        call_requeue(call);
    } else if (refuses_sender(c, &r)) {
        char why[256];
        (void)snprintf(why, sizeof why, "%.*s",
                       (int)(r.problem.message.len < 255 ? r.problem.message.len : 255),
                       r.problem.message.ptr);
        call_requeue(call);
        caller_refuse(c, now, why);
    } else {
        c->proved = true;
        if (is_unauthorized(&r)) {
            r.problem.status = 403;
        }
        call_finish(call, &r);
    }
    msg_reader_done(&reader);
}

static void refuse_key(struct lane *lane, msec now)
{
    struct call *call = lane->call;

    lane->call = NULL;
    call_requeue(call);
    caller_refuse(lane->of, now,
                  "the daemon does not know this credential, or its key is another one");
}

/* The key is wrong: the daemon, which cannot know, is told, and records it before the sender gets
 * the refusal. */
static void deny(struct lane *lane, msec now)
{
    struct buf bytes;

    buf_init(&bytes, SEAL_HEADER_BYTES);
    lane->denies = lane->x.begins && exchange_deny(&lane->x, &bytes, NULL) == BT_OK &&
                   link_lane_send(lane->link, bytes.at, bytes.len, NULL) == BT_OK;
    buf_done(&bytes);
    if (!lane->denies) {
        refuse_key(lane, now);
    }
}

static void on_answer(struct lane *lane, struct str bytes, msec now)
{
    struct str body = bytes;
    struct bt_error err;
    bool more = false;
    enum bt_code code = BT_OK;

    if (lane->call == NULL) {
        return;
    }
    if (lane->denies) {
        refuse_key(lane, now);
        return;
    }
    if (lane->of->token[0] == 0) {
        code = exchange_take(&lane->x, bytes, &body, &more, &err);
        if (code == BT_OK && more) {
            code = send_next(lane, &err);
        }
    }
    if (code == BT_OK && !more) {
        deliver(lane, body, now);
    } else if (code == BT_UNAUTHORIZED) {
        deny(lane, now);
    } else if (code != BT_OK) {
        struct call *call = lane->call;
        lane->call = NULL;
        call_fail(call, code, err.msg);
    }
}

/* Reading again does no harm, nor does what never left. */
static void on_lost(struct lane *lane, bool sent, msec now)
{
    struct call *call = lane->call;

    if (lane->denies && call != NULL) {
        refuse_key(lane, now); /* retires the lane */
        return;
    }
    lane->call = NULL;
    lane->idle_since = now;
    if (lane->fell) {
        retire(lane);
    }
    if (call == NULL) {
        return;
    }
    if (!sent || (call->reads && ++call->tries < TRIES_MAX)) {
        call_requeue(call);
    } else {
        call_fail(call, BT_UNAVAILABLE,
                  "the daemon went away before it answered: the outcome is unknown; look, or send "
                  "it again with the same Idempotency-Key");
    }
}

void lanes_on_event(struct upstream *u, struct link_event *ev, msec now)
{
    struct lane *lane = ev->lane != NULL ? ev->owner : NULL;

    if (ev->type == LINK_REQUEST && u->serve != NULL) {
        u->serve(u->serve_self, ev);
    } else if (ev->lane != NULL && lane != NULL && lane->link == ev->lane) {
        if (ev->type == LINK_ANSWER) {
            on_answer(lane, link_msg_bytes(ev->msg), now);
        } else if (ev->type == LINK_LOST) {
            on_lost(lane, ev->sent, now);
        } else if (ev->type == LINK_DOWN && lane->call != NULL) {
            lane->fell = true; /* LINK_LOST follows */
        } else if (ev->type == LINK_DOWN) {
            retire(lane); /* who listens there now may be another one */
        }
    }
    if (ev->msg != NULL) {
        link_msg_free(ev->msg);
    }
}
