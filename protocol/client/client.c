#include "baton/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

enum { TIMEOUT_DEFAULT_MS = 10000, INBOX_CAP = 4096, REDIAL_MS = 250, RESTART_MS = 1000 };

const struct json_limits client_json_limits = {8 * (size_t)LIMIT_STEP_BYTES, LIMIT_DEPTH + 4,
                                               2 * LIMIT_NODES};

const char *bt_version(void)
{
    return BATON_VERSION;
}

void bt_free(void *p)
{
    free(p);
}

enum bt_code client_find_daemon(struct bt_client *c, struct state_endpoints *ret,
                                struct bt_error *err)
{
    uint32_t trusted[STATE_TRUSTED_MAX];
    uint32_t owner = 0;
    enum bt_code code = state_endpoints_read(c->dir, ret, err);

    if (code != BT_OK) {
        return code == BT_NOT_FOUND
                   ? err_set(err, BT_UNAVAILABLE, "no daemon runs in %s; start one with: baton up",
                             c->dir)
                   : code;
    }
    owner = ret->owner; /* the key of a credential is never sent */
    code = c->credential.id[0] == 0 ? state_token_read_of(c->dir, c->token, &owner, err) : BT_OK;
    if (code == BT_OK) {
        link_trust(c->link, trusted, state_trusted(owner, trusted));
    }
    return code;
}

static void drop_lane(struct bt_client *c)
{
    if (c->lane != NULL) {
        link_lane_retire(c->lane);
    }
    c->lane = NULL;
    c->lane_fell = false;
}

/* One shard, which listens there as long as it is led there. */
static enum bt_code dial_pinned(struct bt_client *c, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    uint32_t trusted[STATE_TRUSTED_MAX];
    uint32_t owner = geteuid();
    enum bt_code code = BT_OK;

    if (c->lane != NULL && !c->lane_fell) {
        return BT_OK;
    }
    drop_lane(c);
    (void)snprintf(c->at.control, sizeof c->at.control, "%s", c->pinned);
    if (c->credential.id[0] == 0) {
        code = state_token_read_of(c->dir, c->token, &owner, err);
        if (code == BT_OK) {
            link_trust(c->link, trusted, state_trusted(owner, trusted));
        }
    }
    return code == BT_OK ? link_lane_dial(c->link, c->at.control, &limits, c, &c->lane, err) : code;
}

/* Dials the address in the state directory; the daemon may have moved since the last call, or have
 * ended: then another program may listen there. */
static enum bt_code dial(struct bt_client *c, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    struct state_endpoints now;
    enum bt_code code;

    if (c->pinned[0] != 0 && c->remote == NULL) {
        return dial_pinned(c, err);
    }
    if (c->remote != NULL) {
        if (client_remote_is_late(c)) {
            client_remote_next(c);
            drop_lane(c);
        } else if (c->lane_fell) {
            drop_lane(c);
        }
        return client_remote_dial(c, err);
    }
    code = client_find_daemon(c, &now, err);
    if (code != BT_OK) {
        return code;
    }
    if (c->lane != NULL && !c->lane_fell && strcmp(now.control, c->at.control) == 0 &&
        uuid_eq(now.instance, c->at.instance) && !state_daemon_ended(&now)) {
        return BT_OK;
    }
    drop_lane(c);
    c->at = now;
    if (state_daemon_ended(&now)) {
        return BT_OK; /* the caller waits for the next one */
    }
    return link_lane_dial(c->link, c->at.control, &limits, c, &c->lane, err);
}

enum bt_code client_new(struct bt_client **ret, struct bt_error *err)
{
    struct bt_client *c = calloc(1, sizeof *c);

    *ret = c;
    if (c == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a client");
    }
    c->timeout_ms = TIMEOUT_DEFAULT_MS;
    return link_new(INBOX_CAP, &c->link, err);
}

enum bt_code bt_client_open(const char *state_dir, struct bt_client **ret, struct bt_error *err)
{
    struct bt_client *c = NULL;
    struct buf dir;
    enum bt_code code;

    buf_init(&dir, sizeof c->dir - 1);
    code = state_dir_find(state_dir, &dir, err);
    if (code == BT_OK) {
        code = client_new(&c, err);
    }
    if (code == BT_OK) {
        (void)snprintf(c->dir, sizeof c->dir, "%s", buf_cstr(&dir));
        code = client_find_credential(c, err);
    }
    if (code == BT_OK) {
        code = dial(c, err);
    }
    buf_done(&dir);
    if (code != BT_OK) {
        bt_client_close(c);
        return code;
    }
    *ret = c;
    return BT_OK;
}

void bt_client_close(struct bt_client *c)
{
    if (c == NULL) {
        return;
    }
    if (c->lane != NULL) {
        link_lane_retire(c->lane);
    }
    if (c->link != NULL) {
        link_free(c->link);
    }
    client_remote_free(c);
    client_shards_forget(c);
    explicit_bzero(c, sizeof *c);
    free(c);
}

void bt_client_timeout(struct bt_client *c, uint32_t timeout_ms)
{
    c->timeout_ms = timeout_ms == 0 ? TIMEOUT_DEFAULT_MS : timeout_ms;
}

/* Handles events of the link until `want` or LINK_LOST of our lane arrives, or the deadline. */
static bool await_event(struct bt_client *c, enum link_event_type want, msec deadline,
                        struct link_event *ret)
{
    for (;;) {
        msec now;
        while (link_next(c->link, ret)) {
            if (ret->type == LINK_DOWN && c->lane != NULL && ret->lane == c->lane) {
                c->lane_fell = true; /* who listens there now is another one: it is dialed anew */
                if (want == LINK_UP) {
                    return false;
                }
            }
            if (ret->lane == c->lane && c->lane != NULL &&
                (ret->type == want || ret->type == LINK_LOST)) {
                return true;
            }
            if (ret->msg != NULL) {
                link_msg_free(ret->msg);
            }
        }
        now = clock_mono_ms();
        if (now >= deadline) {
            return false;
        }
        (void)link_wait(c->link, deadline - now < 200 ? deadline - now : 200);
    }
}

void client_pause(struct bt_client *c, msec until)
{
    struct link_event ev;

    while (await_event(c, LINK_DOWN, until, &ev)) {
        /* of a lane that is dialed again by the next request */
    }
}

static enum bt_code unreachable(const struct bt_client *c, struct bt_error *err)
{
    uint32_t uid;

    if (c->lane != NULL && link_lane_stranger(c->lane, &uid)) {
        return err_set(err, BT_UNAUTHORIZED,
                       "the program that listens at %s is of user %u, not of the daemon's: nothing "
                       "was sent to it; if it is right, set BATON_ALLOW_UIDS=%u",
                       c->at.control, uid, uid);
    }
    return err_set(err, BT_UNAVAILABLE, "the daemon at %s %s", c->at.control,
                   c->remote != NULL            ? client_remote_silence
                   : state_daemon_ended(&c->at) ? "has ended; start it again with: baton up"
                                                : "does not answer; see: baton doctor");
}

static enum bt_code await_lane_up(struct bt_client *c, msec deadline, struct bt_error *err)
{
    msec start = clock_mono_ms();
    struct link_event ev;
    uint32_t uid;

    while (c->lane == NULL || c->lane_fell || !link_lane_is_up(c->lane)) {
        msec now = clock_mono_ms();
        msec step = now + REDIAL_MS < deadline ? now + REDIAL_MS : deadline;
        enum bt_code code = dial(c, err);
        if (code == BT_OK && await_event(c, LINK_UP, step, &ev) && ev.type == LINK_UP) {
            return BT_OK;
        }
        if (c->lane != NULL && link_lane_stranger(c->lane, &uid)) {
            return unreachable(c, err);
        }
        /* A killed daemon may restart in a moment. One that stays away is reported. */
        if (clock_mono_ms() >= deadline ||
            (state_daemon_ended(&c->at) && clock_mono_ms() - start > RESTART_MS)) {
            return code != BT_OK ? code : unreachable(c, err);
        }
        if (code != BT_OK) {
            (void)await_event(c, LINK_UP, step, &ev);
        }
    }
    return BT_OK;
}

enum bt_code client_reach(struct bt_client *c, uint32_t ms, struct bt_error *err)
{
    return await_lane_up(c, clock_mono_ms() + ms, err);
}

/* An answer is still to come on this lane. Retire it, and let the next call dial another one: a
 * daemon that does not answer may lead no more. */
void client_leave(struct bt_client *c)
{
    client_remote_next(c);
    drop_lane(c);
}

enum bt_code client_send(struct bt_client *c, const struct buf *request, uint32_t timeout_ms,
                         struct link_msg **ret, struct bt_error *err)
{
    msec deadline = clock_mono_ms() + timeout_ms;
    struct link_event ev;
    enum bt_code code;

    do {
        code = await_lane_up(c, deadline, err);
        if (code != BT_OK) {
            return code;
        }
        code = link_lane_send(c->lane, request->at, request->len, err);
        if (code == BT_UNAVAILABLE) { /* the pipe has just changed */
            (void)await_event(c, LINK_UP, clock_mono_ms() + 20, &ev);
        }
    } while (code == BT_UNAVAILABLE && clock_mono_ms() < deadline);
    if (code != BT_OK) {
        return code;
    }
    if (!await_event(c, LINK_ANSWER, deadline, &ev)) {
        client_leave(c);
        return err_set(err, BT_TIMEOUT, "no answer from %s within %u ms", c->at.control,
                       timeout_ms);
    }
    if (ev.type == LINK_LOST) {
        c->lane_fell = true; /* it may look up for a moment longer */
        return err_set(err, BT_UNAVAILABLE, "the daemon at %s went away before it answered",
                       c->at.control);
    }
    *ret = ev.msg;
    return BT_OK;
}

struct str client_next_id(struct bt_client *c, char ret[CLIENT_ID_BYTES])
{
    (void)snprintf(ret, CLIENT_ID_BYTES, "b%" PRIu64, ++c->requests);
    return str_from(ret);
}

/* Builds {v, type, id, token, ...fields}; fields: a map. */
static enum bt_code build_request(struct bt_client *c, const char *type, struct doc fields,
                                  struct buf *out, struct bt_error *err)
{
    struct doc_cursor cur = doc_cursor(fields);
    struct doc_head head = {.kind = DOC_MAP};
    char id[CLIENT_ID_BYTES];
    bool by = strcmp(type, "review.decide") == 0 || strcmp(type, "session.say") == 0;

    if (fields.len > 0 && (!doc_next(&cur, &head) || head.kind != DOC_MAP)) {
        return err_set(err, BT_INVALID, "the fields of a request are a JSON object");
    }
    by = by && doc_get(fields, STR_LIT("by")).ptr == NULL;
    doc_put_map(out, head.n + 3 + (by ? 1 : 0) + (c->token[0] != 0 ? 1 : 0));
    doc_put_cstr(out, "v");
    doc_put_u64(out, 1);
    doc_put_cstr(out, "type");
    doc_put_cstr(out, type);
    doc_put_cstr(out, "id");
    doc_put_str(out, client_next_id(c, id));
    if (c->token[0] != 0) {
        doc_put_cstr(out, "token");
        doc_put_cstr(out, c->token);
    }
    if (by) {
        doc_put_cstr(out, "by");
        client_put_by(c, out);
    }
    buf_add(out, cur.at, (size_t)(cur.end - cur.at));
    return buf_check(out, err);
}

/* The id is this library's own. */
static enum bt_code without_id(struct doc answer, struct buf *out, struct bt_error *err)
{
    struct doc_cursor at = doc_cursor(answer);
    struct doc_head head;
    struct doc_head key;

    if (!doc_next(&at, &head) || doc_get(answer, STR_LIT("id")).ptr == NULL) {
        buf_add(out, answer.ptr, answer.len);
        return buf_check(out, err);
    }
    doc_put_map(out, head.n - 1);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc name = doc_skip(&at);
        const struct doc value = doc_skip(&at);
        struct doc_cursor in = doc_cursor(name);
        if (!doc_next(&in, &key) || !str_is(key.str, "id")) {
            doc_put_doc(out, name);
            doc_put_doc(out, value);
        }
    }
    return buf_check(out, err);
}

/* The text of it, for bt_free; *ret stays NULL after a failure. */
static enum bt_code as_text(struct doc d, char **ret, struct bt_error *err)
{
    struct buf json;
    size_t len;
    enum bt_code code;

    /* "null," and escapes: up to six bytes for one */
    buf_init(&json, 8 * (size_t)LIMIT_STEP_BYTES);
    code = doc_to_json(d, false, &json, err);
    (void)buf_cstr(&json);
    code = code == BT_OK ? buf_check(&json, err) : code;
    if (code == BT_OK) {
        *ret = (char *)buf_take(&json, &len);
    }
    buf_done(&json);
    return code;
}

/* Returns the answer's object as text, or for an error answer its error object. */
static enum bt_code take_answer(const struct bt_client *c, struct str bytes, char **ret_json,
                                struct bt_error *err)
{
    struct msg_reader r = {0};
    struct msg_envelope envelope = {0};
    struct buf own;
    enum bt_code code = msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, err);

    if (code == BT_INVALID) {
        const struct bt_error why = *err;
        code = err_set(err, BT_UNAVAILABLE, "the program at %s is no daemon of Baton: %s",
                       c->at.control, why.msg);
    }
    buf_init(&own, 2 * (size_t)LIMIT_STEP_BYTES);
    if (code == BT_OK) {
        struct doc whole = {r.body, r.len};
        struct doc error;
        code = msg_read(&r, MSG_envelope, &envelope, err);
        if (code == BT_OK && !envelope.ok) { /* MSG_empty: any type will do for an error answer */
            struct msg_empty nothing;
            code = msg_read_answer(&r, MSG_empty, &nothing, NULL, err);
        }
        if (code == BT_OK && ret_json != NULL) {
            code = without_id(whole, &own, err);
            whole = doc_from_buf(&own);
        }
        error = code == BT_OK ? whole : doc_get(whole, STR_LIT("error"));
        if (ret_json != NULL && code == BT_OK) {
            code = as_text(error, ret_json, err);
        } else if (ret_json != NULL && error.ptr != NULL) {
            (void)!as_text(error, ret_json, NULL);
        }
    }
    buf_done(&own);
    msg_reader_done(&r);
    return code;
}

enum bt_code client_call_for(struct bt_client *c, const char *type, const char *fields_json,
                             uint32_t timeout_ms, char **ret_json, struct bt_error *err)
{
    struct buf fields;
    uint32_t shards = 1;
    enum bt_code code = BT_OK;

    if (!client_may_be_for_all(type)) {
        return client_call_here(c, type, fields_json, timeout_ms, ret_json, err);
    }
    buf_init(&fields, LIMIT_STEP_BYTES);
    if (fields_json == NULL || json_to_doc(str_from(fields_json), NULL, &fields, NULL) != BT_OK) {
        buf_clear(&fields); /* what is wrong with it is said below */
        doc_put_map(&fields, 0);
    }
    code = client_is_for_all(c, type, doc_from_buf(&fields), &shards, err);
    if (code == BT_OK && shards > 1) {
        code = client_merge(c, shards, type, doc_from_buf(&fields), timeout_ms, ret_json, err);
        buf_done(&fields);
        return code;
    }
    buf_done(&fields);
    if (code != BT_OK) {
        if (ret_json != NULL) {
            *ret_json = NULL;
        }
        return code;
    }
    return client_call_here(c, type, fields_json, timeout_ms, ret_json, err);
}

enum bt_code client_ask(struct bt_client *c, const char *type, struct doc fields,
                        uint32_t timeout_ms, struct link_msg **ret, struct str *ret_body,
                        struct bt_error *err)
{
    struct buf request;
    enum bt_code code;

    *ret = NULL;
    buf_init(&request, LIMIT_STEP_BYTES);
    code = build_request(c, type, fields, &request, err);
    if (code == BT_OK) {
        code = client_exchange(c, &request, timeout_ms, ret, ret_body, err);
    }
    buf_done(&request);
    return code;
}

enum bt_code client_call_here(struct bt_client *c, const char *type, const char *fields_json,
                              uint32_t timeout_ms, char **ret_json, struct bt_error *err)
{
    struct link_msg *msg = NULL;
    struct str answer;
    struct buf fields;
    enum bt_code code = BT_OK;

    if (ret_json != NULL) {
        *ret_json = NULL;
    }
    buf_init(&fields, LIMIT_STEP_BYTES);
    if (fields_json != NULL) {
        code = json_to_doc(str_from(fields_json), NULL, &fields, err);
    }
    if (code == BT_OK) {
        code = client_ask(c, type, doc_from_buf(&fields), timeout_ms, &msg, &answer, err);
    }
    if (code == BT_OK) {
        code = take_answer(c, answer, ret_json, err);
    }
    if (msg != NULL) {
        link_msg_free(msg);
    }
    buf_done(&fields);
    return code;
}

enum bt_code bt_client_call(struct bt_client *c, const char *type, const char *fields_json,
                            char **ret_json, struct bt_error *err)
{
    return client_call_for(c, type, fields_json, c->timeout_ms, ret_json, err);
}
