/* The public reply calls. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents/sdk/step.h"
#include "agents/sdk/whole.h"
#include "protocol/base/utf8.h"

enum { SENTENCE_MAX = 4096 };

/* A formatted sentence that is valid UTF-8: peers reject anything else. .ptr NULL: no memory. */
BT_PRINTF(2, 0) static struct str sentence(struct bt_step *s, const char *fmt, va_list args)
{
    char text[SENTENCE_MAX];
    int n = vsnprintf(text, sizeof text, fmt, args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

    for (size_t at = 0; at < len;) {
        size_t width = 1;
        while (width <= 4 && width <= len - at && !utf8_valid(text + at, width)) {
            width++;
        }
        if (width > 4 || width > len - at) {
            text[at] = '?';
            width = 1;
        }
        at += width;
    }
    return arena_str(&s->reply.arena, (struct str){text, len});
}

/* Drops earlier reply calls, unless they were part of the same success. */
static void set_outcome(struct bt_step *s, enum reply_outcome outcome)
{
    if (s->reply.outcome != outcome) {
        buf_done(&s->reply.text);
        buf_done(&s->reply.data);
        buf_done(&s->reply.schema);
        buf_done(&s->reply.calls);
        buf_done(&s->reply.state);
        s->reply.has_text = false;
        s->reply.truncated = false;
        s->reply.artifacts_n = 0;
    }
    s->reply.refused = false;
    s->reply.outcome = outcome;
}

bool step_reply_adds(struct bt_step *s)
{
    if (!s->reply.refused) {
        set_outcome(s, REPLY_COMPLETED);
    }
    return !s->reply.refused;
}

static void refuse_part(struct bt_step *s, enum bt_code code, const char *message)
{
    reply_fail(&s->reply, code, reply_class_of(code), false, message);
    s->reply.refused = true;
}

void step_lose(struct bt_step *s, const char *what)
{
    reply_lose(&s->reply, what);
    s->reply.refused = true;
}

void bt_step_reply_bytes(struct bt_step *s, const char *text, size_t len)
{
    if (!step_reply_adds(s)) {
        return;
    }
    if (!utf8_valid(text, len) || (len > 0 && memchr(text, 0, len) != NULL)) {
        refuse_part(s, BT_INVALID, "the handler's text is not UTF-8 without zero bytes");
        return;
    }
    buf_clear(&s->reply.text);
    buf_add(&s->reply.text, text, len);
    s->reply.has_text = true;
}

void bt_step_reply_text(struct bt_step *s, const char *fmt, ...)
{
    va_list args;
    va_list again;
    char *text = NULL;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n >= 0) {
        text = malloc((size_t)n + 1);
    }
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)n + 1, fmt, again);
        bt_step_reply_bytes(s, text, (size_t)n);
    } else if (step_reply_adds(s)) {
        step_lose(s, "the text");
    }
    va_end(again);
    free(text);
}

/* What the handler gave as JSON is none; or there is no memory for it, and another attempt may have
 * some. */
static void refuse_json(struct bt_step *s, const char *what, struct bt_error *err)
{
    if (err->code == BT_NOMEM) {
        step_lose(s, what);
    } else {
        (void)err_wrap(err, "%s", what);
        refuse_part(s, err->code, err->msg);
    }
}

void bt_step_reply_json(struct bt_step *s, const char *json, size_t len)
{
    struct json_limits limits = {
        .bytes = LIMIT_STEP_BYTES * 2, .depth = LIMIT_DEPTH - 4, .nodes = LIMIT_NODES - 1024};
    struct bt_error err;
    enum bt_code code;

    if (!step_reply_adds(s)) {
        return;
    }
    buf_clear(&s->reply.data);
    code = json_to_doc((struct str){json, len}, &limits, &s->reply.data, &err);
    if (code != BT_OK && s->reply.data.bad != BT_LIMIT) {
        refuse_json(s, "the handler's result", &err);
    }
}

void bt_step_details_json(struct bt_step *s, const char *json, size_t len)
{
    static const struct json_limits limits = {
        .bytes = REPLY_DETAILS_MAX, .depth = LIMIT_DEPTH - 4, .nodes = 1024};

    buf_clear(&s->reply.details);
    if (json_to_doc((struct str){json, len}, &limits, &s->reply.details, NULL) != BT_OK ||
        doc_head(doc_from_buf(&s->reply.details)).kind != DOC_MAP) {
        buf_clear(&s->reply.details);
    }
}

void bt_step_reply_artifact(struct bt_step *s, const char *name, const char *media_type,
                            const char *uri)
{
    struct msg_artifact *a;

    if (!step_reply_adds(s)) {
        return;
    }
    if (s->reply.artifacts_n == REPLY_ARTIFACTS_MAX) {
        refuse_part(s, BT_LIMIT, "a result has at most 64 artifacts");
        return;
    }
    a = &s->reply.artifacts[s->reply.artifacts_n++];
    *a = (struct msg_artifact){.name = arena_str(&s->reply.arena, str_from(name)),
                               .media_type = arena_str(&s->reply.arena, str_from(media_type)),
                               .uri = arena_str(&s->reply.arena, str_from(uri))};
    if (a->name.ptr == NULL || a->media_type.ptr == NULL || a->uri.ptr == NULL) {
        step_lose(s, "an artifact");
    }
}

void bt_step_reply_state_json(struct bt_step *s, const char *json, size_t len)
{
    struct bt_error err;
    enum bt_code code;

    if (!step_reply_adds(s)) {
        return;
    }
    buf_clear(&s->reply.state);
    code = json_to_doc((struct str){json, len}, NULL, &s->reply.state, &err);
    if (code == BT_OK && s->reply.state.len > LIMIT_STATE_BYTES) {
        code =
            err_set(&err, BT_LIMIT, "%zu bytes, at most %d", s->reply.state.len, LIMIT_STATE_BYTES);
    }
    if (code != BT_OK) {
        refuse_json(s, "the handler's state", &err);
    }
}

void bt_step_reply_truncated(struct bt_step *s)
{
    if (step_reply_adds(s)) {
        s->reply.truncated = true;
    }
}

void bt_step_add_usage(struct bt_step *s, uint64_t input_tokens, uint64_t output_tokens,
                       uint64_t cached_tokens, uint64_t cost_micros)
{
    const uint64_t max = INT64_MAX;
    struct msg_usage *u = &s->reply.usage;

    u->input_tokens = input_tokens > max - u->input_tokens ? max : u->input_tokens + input_tokens;
    u->output_tokens =
        output_tokens > max - u->output_tokens ? max : u->output_tokens + output_tokens;
    u->cached_tokens =
        cached_tokens > max - u->cached_tokens ? max : u->cached_tokens + cached_tokens;
    u->cost_micros = cost_micros > max - u->cost_micros ? max : u->cost_micros + cost_micros;
}

void bt_step_fail(struct bt_step *s, const char *error_class, bool retryable, const char *fmt, ...)
{
    struct str name = str_from(error_class);
    enum err_class cls = err_class_from_name(name.ptr, name.len);
    va_list args;
    struct str text;

    va_start(args, fmt);
    text = sentence(s, fmt, args);
    va_end(args);
    reply_fail(&s->reply, BT_INTERNAL, cls == CLASS_NONE ? CLASS_UNKNOWN : cls, retryable,
               text.ptr != NULL ? text.ptr : "out of memory for the sentence");
}

void bt_step_fail_error(struct bt_step *s, const struct bt_error *err)
{
    enum err_class cls = reply_class_of(err->code);

    bt_step_fail(s, err_class_name(cls),
                 err_class_retryable(cls) && err->code != BT_IO && err->code != BT_INTERNAL, "%s",
                 err->msg);
    s->reply.code = err->code;
}

void bt_step_retry_after(struct bt_step *s, uint64_t delay_ms)
{
    if (s->reply.outcome == REPLY_FAILED) {
        s->reply.retry_after_ms = delay_ms;
    }
}

/* What a person or another agent reads with the outcome. */
BT_PRINTF(3, 0)
static void set_message(struct bt_step *s, enum reply_outcome outcome, const char *fmt,
                        va_list args)
{
    set_outcome(s, outcome);
    s->reply.message = sentence(s, fmt, args);
    if (s->reply.message.ptr == NULL) {
        step_lose(s, "the sentence");
    }
}

void bt_step_need_approval(struct bt_step *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    set_message(s, REPLY_NEEDS_APPROVAL, fmt, args);
    va_end(args);
}

void bt_step_need_input(struct bt_step *s, const char *schema_json, const char *fmt, ...)
{
    struct bt_error err;
    va_list args;

    va_start(args, fmt);
    set_message(s, REPLY_NEEDS_INPUT, fmt, args);
    va_end(args);
    buf_clear(&s->reply.schema);
    if (schema_json != NULL && !s->reply.refused &&
        json_to_doc(str_from(schema_json), NULL, &s->reply.schema, &err) != BT_OK) {
        refuse_json(s, "the schema of the needed input", &err);
    }
}

void bt_step_handoff(struct bt_step *s, const char *to_agent_id, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    set_message(s, REPLY_HANDOFF, fmt, args);
    va_end(args);
    s->reply.message.len = utf8_cut(s->reply.message.ptr, s->reply.message.len, 2048);
    s->reply.to_agent = arena_str(&s->reply.arena, str_from(to_agent_id));
    if (s->reply.to_agent.ptr == NULL) {
        step_lose(s, "the agent's id");
    }
}

static struct str text_of(struct doc call, const char *name)
{
    return doc_string(doc_get(call, str_from(name)));
}

static enum bt_code read_calls(struct reply *r, struct bt_error *err)
{
    const struct doc list = doc_from_buf(&r->calls);
    const struct doc_head head = doc_head(list);

    if (head.kind != DOC_ARRAY || head.n == 0 || head.n > LIMIT_CALLS) {
        return err_set(err, BT_INVALID, "calls: expected a list of 1 to %d calls", LIMIT_CALLS);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc call = doc_at(list, i);
        if (doc_head(call).kind != DOC_MAP) {
            return err_set(err, BT_INVALID, "calls[%u]: expected {id, agentId, skill, parameters}",
                           i);
        }
        r->call_at[i] = (struct msg_call){.id = text_of(call, "id"),
                                          .agent_id = text_of(call, "agentId"),
                                          .skill = text_of(call, "skill"),
                                          .task = text_of(call, "task"),
                                          .parameters = doc_get(call, STR_LIT("parameters")),
                                          .plan = doc_get(call, STR_LIT("plan"))};
    }
    r->calls_n = head.n;
    return BT_OK;
}

void bt_step_call(struct bt_step *s, const char *calls_json, const char *note_json)
{
    struct bt_error err;
    enum bt_code code;

    set_outcome(s, REPLY_CALLS);
    buf_clear(&s->reply.calls);
    buf_clear(&s->reply.data);
    code = json_to_doc(str_from(calls_json), NULL, &s->reply.calls, &err);
    code = code == BT_OK ? read_calls(&s->reply, &err) : code;
    if (code == BT_OK && note_json != NULL) {
        code = json_to_doc(str_from(note_json), NULL, &s->reply.data, &err);
    }
    if (code != BT_OK) {
        refuse_json(s, "the calls of the handler", &err);
    }
}

enum bt_code step_reply_json(const struct bt_step *s, struct buf *out, struct bt_error *err)
{
    struct msg_step_result view = {
        .key = s->req.key, .attempt = s->req.attempt, .epoch = s->req.epoch};
    struct msg_part part = {MSG_step_result, &view};

    reply_view(&s->reply, &view);
    return msg_write(out, WIRE_JSON, &part, 1, err);
}

/* ---- what is not whole ---- */

void whole_mark(struct bt_step *step, struct buf *text, const char *fmt, ...)
{
    char why[SENTENCE_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    if (text->len > 0 && text->at[text->len - 1] != '\n') {
        buf_add_byte(text, '\n');
    }
    buf_printf(text, "[not whole: %s]\n", why);
    bt_step_reply_truncated(step);
}
