/* bt_submit, bt_wait and bt_cancel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

enum { SUBMIT_ATTEMPTS = 3, POLL_MS = 2000, CALL_MIN_MS = 200, LOOK_MS = 20 };

static void put_text(struct buf *out, uint32_t *n, const char *name, const char *value)
{
    if (value != NULL) {
        doc_put_cstr(out, name);
        doc_put_cstr(out, value);
        (*n)++;
    }
}

static void put_flag(struct buf *out, uint32_t *n, const char *name, bool value)
{
    if (value) {
        doc_put_cstr(out, name);
        doc_put_bool(out, true);
        (*n)++;
    }
}

static enum bt_code put_json(struct buf *out, uint32_t *n, const char *name, const char *json,
                             struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (json != NULL) {
        doc_put_cstr(out, name);
        code = json_to_doc(str_from(json), NULL, out, err);
        (*n)++;
    }
    return code == BT_OK ? BT_OK : err_wrap(err, "%s", name);
}

enum bt_code client_put_submit(const struct bt_submit *s, const char *key, struct buf *out,
                               struct bt_error *err)
{
    struct buf pairs;
    uint32_t n = 0;
    enum bt_code code;

    buf_init(&pairs, LIMIT_STEP_BYTES);
    put_text(&pairs, &n, "goal", s->goal);
    put_text(&pairs, &n, "sessionId", s->session_id);
    put_text(&pairs, &n, "planner", s->planner);
    put_text(&pairs, &n, "clientKey", key);
    code = put_json(&pairs, &n, "plan", s->plan_json, err);
    if (code == BT_OK) {
        code = put_json(&pairs, &n, "policy", s->policy_json, err);
    }
    if (code == BT_OK) {
        code = put_json(&pairs, &n, "constraints", s->constraints_json, err);
    }
    put_flag(&pairs, &n, "dryRun", s->dry_run);
    put_flag(&pairs, &n, "lenient", s->lenient);
    code = code == BT_OK ? buf_check(&pairs, err) : code;
    if (code == BT_OK) {
        doc_put_map(out, n);
        buf_add(out, pairs.at, pairs.len);
        code = buf_check(out, err);
    }
    buf_done(&pairs);
    return code;
}

/* The text of a request's fields, with a zero at its end. */
static enum bt_code as_fields(const struct buf *map, struct buf *json, struct bt_error *err)
{
    enum bt_code code = buf_check(map, err);

    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(map), false, json, err);
    }
    (void)buf_cstr(json);
    return code == BT_OK ? buf_check(json, err) : code;
}

static enum bt_code submit_fields(const struct bt_submit *s, const char *key, struct buf *json,
                                  struct bt_error *err)
{
    struct buf map;
    enum bt_code code;

    buf_init(&map, LIMIT_STEP_BYTES);
    code = client_put_submit(s, key, &map, err);
    if (code == BT_OK) {
        code = as_fields(&map, json, err);
    }
    buf_done(&map);
    return code;
}

/* Copies a string member of a JSON object into ret; "" when it is missing or no string. */
static enum bt_code get_member(const char *json, const char *name, char *ret, size_t cap,
                               struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    ret[0] = 0;
    buf_init(&doc, json_doc_capacity(client_json_limits.bytes));
    code = json_to_doc(str_from(json), &client_json_limits, &doc, err);
    if (code == BT_OK) {
        const struct str s = doc_string(doc_get(doc_from_buf(&doc), str_from(name)));
        (void)snprintf(ret, cap, "%.*s", STR_ARG(s));
    }
    buf_done(&doc);
    return code;
}

enum bt_code bt_submit(struct bt_client *c, const struct bt_submit *s,
                       char ret_plan_id[BT_ID_LEN + 1], char **ret_json, struct bt_error *err)
{
    char own_key[UUID_TEXT_LEN + 1];
    const char *key = s->client_key;
    char *json = NULL;
    struct buf fields;
    enum bt_code code;

    if (key == NULL) {
        uuid_format(uuid_new(), own_key);
        key = own_key;
    }
    buf_init(&fields, 2 * (size_t)LIMIT_STEP_BYTES);
    code = submit_fields(s, key, &fields, err);
    /* The key makes a repeated request safe, so a lost answer does no harm. */
    for (int i = 0; code == BT_OK && i < SUBMIT_ATTEMPTS; i++) {
        bt_free(json);
        code = bt_client_call(c, "plan.submit", buf_cstr(&fields), &json, err);
        if (code != BT_TIMEOUT && code != BT_UNAVAILABLE) {
            break;
        }
        if (i + 1 < SUBMIT_ATTEMPTS) {
            code = BT_OK;
        }
    }
    if (code == BT_OK) {
        code = get_member(json, "planId", ret_plan_id, BT_ID_LEN + 1, err);
    }
    if (code == BT_OK && ret_plan_id[0] == 0) {
        code = err_set(err, BT_PROTOCOL, "the answer to plan.submit has no planId");
    }
    buf_done(&fields);
    if (ret_json != NULL) {
        *ret_json = json;
    } else {
        bt_free(json);
    }
    return code;
}

static bool is_final(const char *status)
{
    return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 ||
           strcmp(status, "cancelled") == 0 || strcmp(status, "quarantined") == 0;
}

enum bt_code bt_wait(struct bt_client *c, const char *plan_id, uint32_t timeout_ms, char **ret_json,
                     struct bt_error *err)
{
    msec start = clock_mono_ms();
    msec deadline = timeout_ms == 0 ? MSEC_NEVER : start + timeout_ms;
    msec last_answer = start;
    char request[128];
    char wait[192];
    char status[24];

    (void)snprintf(request, sizeof request, "{\"planId\":\"%.*s\"}", BT_ID_LEN, plan_id);
    for (;;) {
        msec now = clock_mono_ms();
        msec left = deadline > now ? deadline - now : 0;
        uint32_t slice = left < POLL_MS ? (uint32_t)left : POLL_MS;
        char *json = NULL;
        uint32_t timeout = left < c->timeout_ms
                               ? (uint32_t)(left > CALL_MIN_MS ? left : CALL_MIN_MS)
                               : c->timeout_ms;
        enum bt_code code = client_call_for(c, "plan.result", request, timeout, &json, err);
        code = code == BT_OK ? get_member(json, "status", status, sizeof status, err) : code;
        if (code == BT_OK && is_final(status)) {
            *ret_json = json;
            return BT_OK;
        }
        bt_free(json);
        /* A restarting daemon is waited for. One that stays away is reported. */
        last_answer = code == BT_OK ? clock_mono_ms() : last_answer;
        if (code != BT_OK && ((code != BT_UNAVAILABLE && code != BT_TIMEOUT) ||
                              clock_mono_ms() - last_answer > CLIENT_GONE_MS)) {
            return code;
        }
        if (left == 0) {
            return err_set(err, BT_TIMEOUT, "plan %s has not ended within %u ms; it goes on",
                           plan_id, timeout_ms);
        }
        (void)snprintf(wait, sizeof wait,
                       "{\"fromSeq\":1,\"planId\":\"%.*s\",\"types\":[\"plan_completed\"],"
                       "\"limit\":1,\"waitMs\":%u}",
                       BT_ID_LEN, plan_id, slice);
        code = client_call_for(c, "events.read", wait,
                               slice + (left < c->timeout_ms ? CALL_MIN_MS : c->timeout_ms), NULL,
                               err);
        if (code == BT_OK && clock_mono_ms() - now < slice / 4) {
            client_pause(c, clock_mono_ms() + LOOK_MS); /* the plan has ended, or the daemon has no
                                                           place for another waiting request */
        }
    }
}

enum bt_code bt_cancel(struct bt_client *c, const char *plan_id, const char *reason,
                       struct bt_error *err)
{
    struct buf doc;
    struct buf json;
    enum bt_code code;

    buf_init(&doc, LIMIT_CONTROL_BYTES);
    buf_init(&json, LIMIT_CONTROL_BYTES);
    doc_put_map(&doc, reason != NULL ? 2 : 1);
    doc_put_cstr(&doc, "planId");
    doc_put_cstr(&doc, plan_id);
    if (reason != NULL) {
        doc_put_cstr(&doc, "reason");
        doc_put_cstr(&doc, reason);
    }
    code = as_fields(&doc, &json, err);
    if (code == BT_OK) {
        code = bt_client_call(c, "plan.cancel", buf_cstr(&json), NULL, err);
    }
    buf_done(&doc);
    buf_done(&json);
    return code;
}
