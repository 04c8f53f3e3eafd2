#include "supervisor/gateway/upstream.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/trace.h"
#include "protocol/client/credential.h"
#include "protocol/wire/shard_route.h"
#include "supervisor/gateway/upstream_internal.h"

enum {
    INBOX = 8192, /* 4 for each of POLLED_LANES_MAX, and the lanes of callers */
    EVENTS_PER_RUN = 512,
    TICK_MS = 100,
    CALLER_IDLE_MS = 300000
};

enum bt_code upstream_new(const char *state_dir, struct upstream **ret, struct bt_error *err)
{
    struct upstream *u = calloc(1, sizeof *u);
    enum bt_code code;

    *ret = NULL;
    if (u == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the gateway");
    }
    u->dir = state_dir;
    fleet_read(state_dir, &u->fleet);
    code = auth_random(u->mark_key, sizeof u->mark_key)
               ? link_new(INBOX, &u->link, err)
               : err_set(err, BT_IO, "the system has no random bytes");
    if (code != BT_OK) {
        free(u);
        return code;
    }
    *ret = u;
    return BT_OK;
}

static void caller_free(struct caller *c)
{
    lanes_retire(c);
    explicit_bzero(c, sizeof *c);
    free(c);
}

struct link *upstream_link(const struct upstream *u)
{
    return u->link;
}

void upstream_serve(struct upstream *u, void (*take)(void *self, struct link_event *ev), void *self)
{
    u->serve = take;
    u->serve_self = self;
}

int upstream_fd(const struct upstream *u)
{
    return link_fd(u->link);
}

msec upstream_deadline(const struct upstream *u)
{
    for (const struct caller *c = u->callers; c != NULL; c = c->next) {
        if (c->calls_n > 0) {
            return u->work ? 0 : TICK_MS;
        }
    }
    return 10 * TICK_MS;
}

/* ---- calls ---- */

void call_finish(struct call *call, const struct reply *reply)
{
    call->of->calls_n--;
    call->of->waits_n -= call->waits;
    if (call->done != NULL) {
        call->done(call->self, reply);
    }
    explicit_bzero(call->body.at, call->body.len); /* it may have the token */
    buf_done(&call->body);
    free(call);
}

void call_fail(struct call *call, enum bt_code code, const char *message)
{
    const struct reply r = {.problem = {.code = code,
                                        .message = str_from(message),
                                        .retry_after_ms = err_code_wait_ms(code)}};

    call_finish(call, &r);
}

void call_requeue(struct call *call)
{
    struct caller *c = call->of;

    call->next = c->first;
    c->first = call;
    c->last = c->last == NULL ? call : c->last;
    c->up->work = true;
}

void call_abandon(struct call *call)
{
    if (call->gather != NULL) {
        gather_abandon(call->gather);
        return;
    }
    call->done = NULL;
}

/* The shard that the request is for; *ret_all: each of them. */
static uint32_t shard_for(struct upstream *u, const struct call_spec *spec, bool *ret_all)
{
    int shard;

    *ret_all = false;
    if (u->fleet.shards == 1) {
        return 0;
    }
    if (spec->to_shard > 0) {
        return (spec->to_shard - 1) % u->fleet.shards;
    }
    shard = shard_of_request(str_from(msg_wire_type(spec->type)), spec->fields, u->fleet.shards);
    *ret_all = shard == SHARD_ALL;
    if (shard == SHARD_ANY && spec->type == MSG_plan_submit) {
        for (uint32_t i = 0; i < u->fleet.shards; i++) {
            const uint32_t next = u->turn++ % u->fleet.shards;
            if (u->fleet.at[next].control[0] != 0) {
                return next;
            }
        }
    }
    return shard >= 0 ? (uint32_t)shard : fleet_any(&u->fleet);
}

/* {v, type, id, token, by, traceparent, ...fields} */
static enum bt_code build(const struct caller *c, const struct call_spec *spec, struct buf *out,
                          struct bt_error *err)
{
    struct doc_cursor at = doc_cursor(spec->fields);
    const bool by = (spec->type == MSG_review_decide || spec->type == MSG_session_say) &&
                    doc_get(spec->fields, STR_LIT("by")).ptr == NULL;
    struct trace trace;
    const bool traced = spec->type == MSG_plan_submit && trace_read(spec->traceparent, &trace) &&
                        doc_get(spec->fields, STR_LIT("traceparent")).ptr == NULL;
    char parent[TRACEPARENT_LEN + 1];
    struct doc_head head;

    if (!doc_next(&at, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_INTERNAL, "the fields of a request are no map");
    }
    doc_put_map(out, head.n + 3 + (c->token[0] != 0) + by + traced);
    doc_put_cstr(out, "v");
    doc_put_u64(out, 1);
    doc_put_cstr(out, "type");
    doc_put_cstr(out, msg_wire_type(spec->type));
    doc_put_cstr(out, "id");
    doc_put_cstr(out, "http");
    if (c->token[0] != 0) {
        doc_put_cstr(out, "token");
        doc_put_cstr(out, c->token);
    }
    if (by) {
        doc_put_cstr(out, "by");
        doc_put_map(out, 1);
        doc_put_cstr(out, "via");
        doc_put_cstr(out, "http");
    }
    if (traced) {
        trace_write(&trace, parent);
        doc_put_cstr(out, "traceparent");
        doc_put_cstr(out, parent);
    }
    for (uint32_t i = 0; i < 2 * head.n; i++) {
        doc_put_doc(out, doc_skip(&at));
    }
    return buf_check(out, err);
}

enum bt_code caller_call(struct caller *c, const struct call_spec *spec, msec now,
                         struct call **ret, struct bt_error *err)
{
    struct call *call = NULL;
    enum bt_code code;
    bool all = false;
    const uint32_t shard = shard_for(c->up, spec, &all);

    *ret = NULL;
    if (all && !c->refused) {
        return gather_call(c, spec, now, ret, err);
    }
    if (c->up->fleet.shards > 1 && c->up->fleet.at[shard].elsewhere) {
        return err_set(err, BT_UNAVAILABLE,
                       "shard %" PRIu32 " is led by node %s now, at %s, which wants TLS: ask the "
                       "gateway of that host",
                       shard, c->up->fleet.at[shard].node, c->up->fleet.at[shard].remote);
    }
    if (c->refused) {
        return err_set(err, BT_UNAUTHORIZED, "the daemon does not take this token or credential");
    }
    if (c->calls_n >= CALLER_CALLS_MAX ||
        (spec->wait_ms > 0 && !spec->live && c->waits_n >= CALLER_WAITS_MAX)) {
        return err_set(err, BT_BUSY, "too many requests of this sender wait for their answers");
    }
    call = calloc(1, sizeof *call);
    if (call == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a request");
    }
    *call = (struct call){.of = c,
                          .answer = spec->answer,
                          .reads = spec->reads,
                          .shard = shard,
                          .waits = spec->wait_ms > 0 && !spec->live,
                          .deadline = now + (spec->within_ms > 0 ? spec->within_ms : CALL_MS) +
                                      spec->wait_ms,
                          .done = spec->done,
                          .self = spec->self};
    buf_init(&call->body, LIMIT_STEP_BYTES);
    code = build(c, spec, &call->body, err);
    if (code != BT_OK) {
        buf_done(&call->body);
        free(call);
        return code;
    }
    if (c->last != NULL) {
        c->last->next = call;
    } else {
        c->first = call;
    }
    c->last = call;
    c->calls_n++;
    c->waits_n += call->waits;
    c->used = now;
    c->up->work = true;
    *ret = call;
    return BT_OK;
}

/* ---- callers ---- */

static bool strangers_wait(const struct upstream *u, msec now, uint64_t *ret_ms)
{
    const msec oldest = u->failures[u->failures_at]; /* the next to be written over */
    uint32_t strange = 0;

    if (oldest != 0 && now - oldest < FAILURES_MS) {
        *ret_ms = (uint64_t)(FAILURES_MS - (now - oldest));
        return true;
    }
    for (const struct caller *c = u->callers; c != NULL; c = c->next) {
        strange += !c->proved && !c->refused;
    }
    *ret_ms = 1000;
    return strange >= CALLERS_STRANGE_MAX;
}

/* Whether it is what the state directory has: such a sender never waits for strangers. The daemon
 * still decides what it may. */
static bool is_known_here(const struct upstream *u, const struct caller *like)
{
    char token[STATE_TOKEN_LEN + 1] = "";
    struct credential c;
    struct bt_error err;
    bool known = false;

    if (like->token[0] != 0) {
        known = state_token_read(u->dir, token, &err) == BT_OK &&
                auth_equal((const uint8_t *)token, (const uint8_t *)like->token, STATE_TOKEN_LEN);
        explicit_bzero(token, sizeof token);
        return known;
    }
    if (credential_load(u->dir, like->id, &c, &err) == BT_OK) {
        known = credential_is_valid(&c, clock_wall_ms()) &&
                (auth_equal(c.key, like->key, sizeof c.key) ||
                 (c.previous_until != 0 && auth_equal(c.previous, like->key, sizeof c.previous)));
    }
    explicit_bzero(&c, sizeof c);
    return known;
}

void caller_refuse(struct caller *c, msec now, const char *message)
{
    struct upstream *u = c->up;

    c->refused = true;
    c->proved = false;
    memset(c->mark, 0, sizeof c->mark);
    u->failures[u->failures_at] = now;
    u->failures_at = (u->failures_at + 1) % FAILURES_MAX;
    while (c->first != NULL) {
        struct call *call = c->first;
        c->first = call->next;
        c->last = c->first == NULL ? NULL : c->last;
        call_fail(call, BT_UNAUTHORIZED, message);
    }
    lanes_retire(c);
}

/* What the bearer is. False: neither a token nor ID:KEY. */
static bool read_bearer(struct str bearer, bool token_ok, struct caller *ret)
{
    const char *colon = bearer.len > 0 ? memchr(bearer.ptr, ':', bearer.len) : NULL;
    const size_t id_n = colon == NULL ? 0 : (size_t)(colon - bearer.ptr);
    struct bt_error err;

    if (colon == NULL) {
        if (!token_ok || bearer.len != STATE_TOKEN_LEN) {
            return false;
        }
        memcpy(ret->token, bearer.ptr, bearer.len);
        return true;
    }
    if (!credential_id_ok((struct str){bearer.ptr, id_n}, &err)) {
        return false;
    }
    memcpy(ret->id, bearer.ptr, id_n);
    return auth_unhex((struct str){colon + 1, bearer.len - id_n - 1}, ret->key, sizeof ret->key);
}

static uint32_t count(const struct upstream *u)
{
    uint32_t n = 0;

    for (const struct caller *c = u->callers; c != NULL; c = c->next) {
        n++;
    }
    return n;
}

static void forget(struct upstream *u, struct caller *c)
{
    for (struct caller **at = &u->callers; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            caller_free(c);
            return;
        }
    }
}

static bool is_idle(const struct caller *c)
{
    return c->refs == 0 && c->calls_n == 0;
}

/* Room for one more: who has been idle for longest makes it. */
static bool make_room(struct upstream *u)
{
    struct caller *oldest = NULL;

    if (count(u) < CALLERS_MAX) {
        return true;
    }
    for (struct caller *c = u->callers; c != NULL; c = c->next) {
        if (is_idle(c) && (oldest == NULL || c->used < oldest->used)) {
            oldest = c;
        }
    }
    if (oldest != NULL) {
        forget(u, oldest);
    }
    return oldest != NULL;
}

static enum bt_code caller_add(struct upstream *u, const struct caller *like, msec now,
                               struct caller **ret, struct bt_error *err)
{
    struct caller *c = make_room(u) ? calloc(1, sizeof *c) : NULL;

    if (c == NULL) {
        return err_set(err, BT_BUSY, "the gateway serves as many senders as it can");
    }
    *c = *like;
    c->up = u;
    c->used = now;
    c->next = u->callers;
    u->callers = c;
    *ret = c;
    return BT_OK;
}

enum bt_code upstream_caller(struct upstream *u, struct str bearer, bool token_ok, msec now,
                             struct caller **ret, uint64_t *ret_retry_ms, struct bt_error *err)
{
    struct caller like = {.next = NULL};
    struct caller *found = NULL;
    enum bt_code code = BT_OK;

    *ret = NULL;
    *ret_retry_ms = 0;
    if (!read_bearer(bearer, token_ok, &like)) {
        return err_set(
            err, BT_UNAUTHORIZED,
            "Authorization: expected \"Bearer TOKEN\", the text of the file `token` of the "
            "state directory%s, or \"Bearer ID:KEY\" of a credential",
            token_ok ? "" : " (not at this address)");
    }
    if (!auth_hmac(u->mark_key, &bearer, 1, like.mark)) {
        return err_set(err, BT_NOMEM, "out of memory");
    }
    for (struct caller *c = u->callers; c != NULL && found == NULL; c = c->next) {
        found = auth_equal(c->mark, like.mark, sizeof c->mark) ? c : NULL;
    }
    if ((found == NULL || (!found->proved && found->calls_n == 0)) &&
        strangers_wait(u, now, ret_retry_ms) && !is_known_here(u, &like)) {
        code = err_set(err, BT_BUSY, "too many senders did not prove themselves; come again later");
    } else if (found == NULL) {
        code = caller_add(u, &like, now, &found, err);
    }
    explicit_bzero(&like, sizeof like);
    *ret = code == BT_OK ? caller_keep(found) : NULL;
    return code;
}

struct caller *caller_keep(struct caller *c)
{
    c->refs++;
    return c;
}

void caller_release(struct caller *c)
{
    c->refs--;
}

bool caller_is_proved(const struct caller *c)
{
    return c->proved;
}

void **caller_slot(struct caller *c, uint32_t shard)
{
    return &c->slots[shard];
}

uint32_t upstream_shards(const struct upstream *u)
{
    return u->fleet.shards;
}

struct upstream *caller_upstream(const struct caller *c)
{
    return c->up;
}

/* ---- the cycle ---- */

void call_unlink(struct caller *c, struct call **at)
{
    *at = (*at)->next;
    c->last = c->first;
    while (c->last != NULL && c->last->next != NULL) {
        c->last = c->last->next;
    }
}

static void expire(struct caller *c, msec now)
{
    for (struct call **at = &c->first; *at != NULL;) {
        struct call *call = *at;
        if (call->deadline > now) {
            at = &call->next;
            continue;
        }
        call_unlink(c, at);
        call_fail(call, BT_UNAVAILABLE,
                  c->up->fleet.shards > 1 && c->up->fleet.at[call->shard].control[0] == 0
                      ? "nobody leads the shard of this request now"
                  : c->up->is_there
                      ? "the daemon takes no request of this sender; see: baton doctor"
                      : "no daemon runs here; start one with: baton up");
    }
    for (uint32_t i = 0; i < lanes_max(c->up); i++) {
        struct call *call = c->lanes[i].call;
        if (call != NULL && call->deadline <= now) {
            lanes_give_up(&c->lanes[i]);
            call_fail(call, BT_TIMEOUT,
                      "the daemon did not answer in time: the outcome is unknown");
        }
    }
}

void upstream_run(struct upstream *u, msec now)
{
    struct link_event ev;

    u->work = false;
    for (int i = 0; i < EVENTS_PER_RUN && link_next(u->link, &ev); i++) {
        lanes_on_event(u, &ev, now);
    }
    for (struct caller *c = u->callers; c != NULL; c = c->next) {
        if (!c->refused) {
            lanes_tidy(c, now);
            lanes_pump(c, now);
        }
        expire(c, now);
    }
    for (struct caller *c = u->callers; c != NULL;) {
        struct caller *next = c->next;
        if (is_idle(c) && (c->refused || now - c->used > CALLER_IDLE_MS)) {
            forget(u, c);
        }
        c = next;
    }
}
