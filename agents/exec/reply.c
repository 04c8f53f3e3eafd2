#include "agents/exec/reply.h"

#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "protocol/base/arena.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { TEXTS_MAX = 64 * 1024 };

static const struct json_limits limits = {
    .bytes = LIMIT_RESULT_BYTES, .depth = LIMIT_DEPTH - 3, .nodes = LIMIT_NODES - 1024};

struct reading {
    struct bt_step *step;
    struct doc all; /* the printed object */
    struct arena texts;
    struct bt_error *err;
};

/* An object of the reply with only these members; absent when it is not there. */
static enum bt_code part(const struct reading *r, const char *name, const char *const *known,
                         size_t n, bool needed, struct doc *ret)
{
    *ret = doc_get(r->all, str_from(name));
    if (ret->ptr == NULL) {
        return needed ? err_set(r->err, BT_INVALID, "%s: is missing; this outcome needs it", name)
                      : BT_OK;
    }
    if (settings_check_names(*ret, known, n, r->err) != BT_OK) {
        return err_wrap(r->err, "%s", name);
    }
    return BT_OK;
}

static enum bt_code amount(const struct reading *r, struct doc map, const char *name, uint64_t *ret)
{
    const struct doc d = doc_get(map, str_from(name));

    *ret = 0;
    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(d).kind != DOC_UINT || doc_head(d).u > INT64_MAX) {
        return err_set(r->err, BT_INVALID, "%s: expected a whole number >= 0", name);
    }
    *ret = doc_head(d).u;
    return BT_OK;
}

static enum bt_code flag(const struct reading *r, struct doc map, const char *name, bool *ret)
{
    const struct doc d = doc_get(map, str_from(name));

    *ret = d.ptr != NULL && doc_head(d).b;
    return d.ptr == NULL || doc_head(d).kind == DOC_BOOL
               ? BT_OK
               : err_set(r->err, BT_INVALID, "%s: expected true or false", name);
}

static enum bt_code add_usage(const struct reading *r)
{
    static const char *const known[] = {"inputTokens", "outputTokens", "cachedTokens",
                                        "costMicros"};
    uint64_t n[4] = {0};
    struct doc usage;
    enum bt_code code = part(r, "usage", known, 4, false, &usage);

    for (int i = 0; i < 4 && code == BT_OK && usage.ptr != NULL; i++) {
        code = amount(r, usage, known[i], &n[i]);
    }
    if (code == BT_OK) {
        bt_step_add_usage(r->step, n[0], n[1], n[2], n[3]);
    }
    return code;
}

static enum bt_code send_data(const struct reading *r, struct doc data)
{
    struct buf json;
    enum bt_code code;

    if (data.ptr == NULL) {
        return BT_OK;
    }
    buf_init(&json, (size_t)LIMIT_RESULT_BYTES * 2);
    code = doc_to_json(data, false, &json, r->err);
    if (code == BT_OK) {
        bt_step_reply_json(r->step, (const char *)json.at, json.len);
    }
    buf_done(&json);
    return code;
}

static enum bt_code send_completed(struct reading *r)
{
    static const char *const known[] = {"text", "data", "truncated"};
    struct doc result;
    struct str text;
    bool truncated = false;
    enum bt_code code = part(r, "result", known, 3, true, &result);

    if (code == BT_OK) {
        code = flag(r, result, "truncated", &truncated);
    }
    if (code == BT_OK && doc_get(result, STR_LIT("text")).ptr != NULL) {
        text = doc_string(doc_get(result, STR_LIT("text")));
        if (text.ptr == NULL) {
            return err_set(r->err, BT_INVALID, "result.text: expected text");
        }
        bt_step_reply_bytes(r->step, text.ptr, text.len);
    } else if (code == BT_OK && doc_get(result, STR_LIT("data")).ptr == NULL) {
        return err_set(r->err, BT_INVALID, "result: expected text, data or both");
    }
    if (code == BT_OK) {
        code = send_data(r, doc_get(result, STR_LIT("data")));
    }
    if (code == BT_OK && truncated) {
        bt_step_reply_truncated(r->step);
    }
    return code;
}

/* An unknown name is read as UNKNOWN, so the names are compared. */
static bool is_class(const char *name)
{
    return strcmp(err_class_name(err_class_from_name(name, strlen(name))), name) == 0;
}

static enum bt_code send_failed(struct reading *r)
{
    static const char *const known[] = {"class", "message", "retryable", "retryAfterMs"};
    const char *name = NULL;
    const char *message = NULL;
    struct doc failure;
    uint64_t delay = 0;
    bool again = false;
    enum bt_code code = part(r, "failure", known, 4, true, &failure);

    if (code == BT_OK) {
        code = field_text(&r->texts, failure, "class", false, &name, r->err);
    }
    name = name != NULL ? name : "UNKNOWN";
    if (code == BT_OK && !is_class(name)) {
        code = err_set(r->err, BT_INVALID,
                       "class: expected a class of the protocol, such as RESOURCE_NOT_FOUND, "
                       "SERVICE_UNAVAILABLE or VALIDATION_ERROR");
    }
    if (code == BT_OK) {
        code = field_text(&r->texts, failure, "message", true, &message, r->err);
    }
    if (code == BT_OK) {
        code = flag(r, failure, "retryable", &again);
    }
    if (code == BT_OK) {
        code = amount(r, failure, "retryAfterMs", &delay);
    }
    if (code == BT_OK) {
        bt_step_fail(r->step, name, again, "%s", message);
        if (delay > 0) {
            bt_step_retry_after(r->step, delay);
        }
    }
    return code;
}

static enum bt_code send_need(struct reading *r, bool input)
{
    static const char *const known[] = {"kind", "prompt", "schema"};
    const char *prompt = NULL;
    struct buf json;
    struct doc need;
    struct doc schema;
    enum bt_code code = part(r, "need", known, 3, true, &need);

    schema = doc_get(need, STR_LIT("schema"));
    if (code == BT_OK) {
        code = field_text(&r->texts, need, "prompt", true, &prompt, r->err);
    }
    if (code != BT_OK) {
        return code;
    }
    if (!input) {
        bt_step_need_approval(r->step, "%s", prompt);
        return BT_OK;
    }
    buf_init(&json, LIMIT_RESULT_BYTES);
    code = schema.ptr != NULL ? doc_to_json(schema, false, &json, r->err) : BT_OK;
    if (code == BT_OK) {
        bt_step_need_input(r->step, schema.ptr != NULL ? buf_cstr(&json) : NULL, "%s", prompt);
    }
    buf_done(&json);
    return code;
}

static enum bt_code send_handoff(struct reading *r)
{
    static const char *const known[] = {"toAgentId", "reason"};
    const char *to = NULL;
    const char *reason = NULL;
    struct doc handoff;
    enum bt_code code = part(r, "handoff", known, 2, true, &handoff);

    if (code == BT_OK) {
        code = field_text(&r->texts, handoff, "toAgentId", true, &to, r->err);
    }
    if (code == BT_OK) {
        code = field_text(&r->texts, handoff, "reason", false, &reason, r->err);
    }
    if (code == BT_OK) {
        bt_step_handoff(r->step, to, "%s", reason != NULL ? reason : "");
    }
    return code;
}

static enum bt_code send_all(struct reading *r)
{
    static const char *const known[] = {"outcome", "result", "usage", "failure", "need", "handoff"};
    static const char *const outcomes[] = {"completed", "failed", "needs_input", "needs_approval",
                                           "handoff"};
    enum { COMPLETED, FAILED, NEEDS_INPUT, NEEDS_APPROVAL, HANDOFF, OUTCOMES };
    unsigned outcome = OUTCOMES;
    enum bt_code code = settings_check_names(r->all, known, sizeof known / sizeof known[0], r->err);

    if (code == BT_OK) {
        code = field_choice(r->all, "outcome", outcomes, OUTCOMES, &outcome, r->err);
    }
    if (code == BT_OK && outcome == OUTCOMES) {
        code = err_set(r->err, BT_INVALID,
                       "outcome: is missing; expected completed, failed, needs_input, "
                       "needs_approval or handoff");
    }
    if (code == BT_OK) {
        code = add_usage(r);
    }
    if (code != BT_OK) {
        return code;
    }
    switch (outcome) {
    case COMPLETED:
        return send_completed(r);
    case FAILED:
        return send_failed(r);
    case NEEDS_INPUT:
    case NEEDS_APPROVAL:
        return send_need(r, outcome == NEEDS_INPUT);
    default:
        return send_handoff(r);
    }
}

void reply_send(struct bt_step *step, const char *id, struct str bytes)
{
    struct reading r = {.step = step, .texts = {.max = TEXTS_MAX}};
    struct bt_error err;
    struct buf all;
    enum bt_code code;

    r.err = &err;
    buf_init(&all, json_doc_capacity(LIMIT_RESULT_BYTES));
    code = json_to_doc(bytes, &limits, &all, &err);
    if (code == BT_OK) {
        r.all = doc_from_buf(&all);
        code = send_all(&r);
    }
    if (code != BT_OK) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "%s: its output is no reply: %s", id,
                     err.msg);
    }
    arena_done(&r.texts);
    buf_done(&all);
}
