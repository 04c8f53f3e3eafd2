#include "agents/sdk/reply.h"

#include <stdio.h>
#include <string.h>

static const char *const outcome_names[] = {
    [REPLY_NONE] = "failed",
    [REPLY_COMPLETED] = "completed",
    [REPLY_FAILED] = "failed",
    [REPLY_NEEDS_INPUT] = "needs_input",
    [REPLY_NEEDS_APPROVAL] = "needs_approval",
    [REPLY_HANDOFF] = "handoff",
    [REPLY_CALLS] = "calls",
};
_Static_assert(sizeof outcome_names / sizeof outcome_names[0] == REPLY_OUTCOME_COUNT,
               "a name per outcome");

static const enum err_class classes[] = {
    [BT_OK] = CLASS_UNKNOWN,
    [BT_INVALID] = CLASS_VALIDATION_ERROR,
    [BT_UNAUTHORIZED] = CLASS_PERMISSION_DENIED,
    [BT_NOT_FOUND] = CLASS_RESOURCE_NOT_FOUND,
    [BT_CONFLICT] = CLASS_VALIDATION_ERROR,
    [BT_LIMIT] = CLASS_VALIDATION_ERROR,
    [BT_BUSY] = CLASS_SERVICE_UNAVAILABLE,
    [BT_TIMEOUT] = CLASS_TIMEOUT,
    [BT_UNAVAILABLE] = CLASS_SERVICE_UNAVAILABLE,
    [BT_GONE] = CLASS_RESOURCE_NOT_FOUND,
    [BT_CANCELLED] = CLASS_CANCELLED,
    [BT_PROTOCOL] = CLASS_PROTOCOL_ERROR,
    [BT_NOMEM] = CLASS_SERVICE_UNAVAILABLE,
    [BT_IO] = CLASS_UNKNOWN,
    [BT_INTERNAL] = CLASS_UNKNOWN,
    [BT_MOVED] = CLASS_SERVICE_UNAVAILABLE,
    [BT_HISTORY_CHANGED] = CLASS_RESOURCE_NOT_FOUND,
};
_Static_assert(sizeof classes / sizeof classes[0] == BT_CODE_COUNT, "a class per code");

enum { MESSAGE_MAX = 4096, CALLS_BYTES = 2 * 1024 * 1024 };

void reply_init(struct reply *r)
{
    *r = (struct reply){0};
    buf_init(&r->text, LIMIT_RESULT_BYTES);
    buf_init(&r->data, LIMIT_RESULT_BYTES);
    buf_init(&r->details, REPLY_DETAILS_MAX);
    buf_init(&r->schema, 65536);
    buf_init(&r->calls, CALLS_BYTES);
    buf_init(&r->state, json_doc_capacity(LIMIT_STATE_BYTES)); /* while it is read */
    r->arena.max = 1024 * 1024;
}

void reply_done(struct reply *r)
{
    if (r != NULL) {
        buf_done(&r->text);
        buf_done(&r->data);
        buf_done(&r->details);
        buf_done(&r->schema);
        buf_done(&r->calls);
        buf_done(&r->state);
        arena_done(&r->arena);
        *r = (struct reply){0};
    }
}

size_t reply_bytes(const struct reply *r)
{
    return r->text.cap + r->data.cap + r->details.cap + r->schema.cap + r->calls.cap +
           r->state.cap + r->arena.total;
}

enum err_class reply_class_of(enum bt_code code)
{
    return code < BT_CODE_COUNT ? classes[code] : CLASS_UNKNOWN;
}

void reply_fail(struct reply *r, enum bt_code code, enum err_class cls, bool retryable,
                const char *message)
{
    struct str text = str_from(message);

    buf_done(&r->text);
    buf_done(&r->data);
    buf_done(&r->schema);
    buf_done(&r->calls);
    buf_done(&r->state);
    r->artifacts_n = 0;
    r->has_text = false;
    r->truncated = false;
    r->refused = false;
    r->outcome = REPLY_FAILED;
    r->code = code;
    r->cls = cls;
    r->retryable = retryable;
    r->retry_after_ms = 0;
    text.len = text.len > MESSAGE_MAX ? MESSAGE_MAX : text.len;
    r->message = arena_str(&r->arena, text);
    if (r->message.ptr == NULL) {
        r->message = STR_LIT("failed, and there is no memory for the reason");
    }
}

void reply_lose(struct reply *r, const char *what)
{
    char text[160];

    (void)snprintf(text, sizeof text, "out of memory for %s%s", what,
                   r->once ? "; whether it took effect is not known" : "");
    reply_fail(r, BT_NOMEM, CLASS_SERVICE_UNAVAILABLE, !r->once, text);
}

/* As the supervisor counts it; of an artifact, with room for its names. */
static size_t result_bytes(const struct reply *r)
{
    size_t n = r->text.len + r->data.len;

    for (uint32_t i = 0; i < r->artifacts_n; i++) {
        const struct msg_artifact *a = &r->artifacts[i];
        n += a->name.len + a->media_type.len + a->uri.len + a->data.len + 64;
    }
    return n;
}

static void fail_too_large(struct reply *r)
{
    const bool known = r->text.bad == BT_OK && r->data.bad == BT_OK;
    char text[160];

    (void)snprintf(text, sizeof text,
                   "result_too_large: %zu%s bytes, at most %d; use artifact: true where the "
                   "skill has it, or ask for less",
                   known ? result_bytes(r) : (size_t)LIMIT_RESULT_BYTES + 1,
                   known ? "" : " or more", LIMIT_RESULT_BYTES);
    reply_fail(r, BT_LIMIT, CLASS_VALIDATION_ERROR, false, text);
}

void reply_finish(struct reply *r, bool cancelled, bool timed_out)
{
    if (r->outcome == REPLY_NONE && timed_out) {
        reply_fail(r, BT_TIMEOUT, CLASS_TIMEOUT, !r->once,
                   "the deadline passed before the step was done");
    } else if (r->outcome == REPLY_NONE && cancelled) {
        reply_fail(r, BT_CANCELLED, CLASS_CANCELLED, false, "cancelled");
    } else if (r->outcome == REPLY_NONE) {
        reply_fail(r, BT_INTERNAL, CLASS_UNKNOWN, false, "the handler returned without an answer");
    } else if (r->text.bad == BT_NOMEM || r->data.bad == BT_NOMEM || r->schema.bad == BT_NOMEM) {
        reply_lose(r, "the result");
    } else if (r->text.bad != BT_OK || r->data.bad != BT_OK ||
               result_bytes(r) > LIMIT_RESULT_BYTES) {
        fail_too_large(r);
    } else if (r->schema.bad != BT_OK) {
        reply_fail(r, BT_LIMIT, CLASS_VALIDATION_ERROR, false,
                   "the schema of the needed input is over 64 KiB");
    }
}

static void view_failure(const struct reply *r, struct msg_step_result *ret)
{
    msg_set(ret, step_result, failure);
    ret->failure.code = str_from(bt_code_name(r->code));
    ret->failure.class_ = str_from(err_class_name(r->cls));
    ret->failure.message = r->message;
    ret->failure.retryable = r->retryable;
    msg_set(&ret->failure, error, retryable);
    if (r->details.len > 0) {
        ret->failure.details = doc_from_buf(&r->details);
    }
    if (r->retry_after_ms > 0) {
        ret->failure.retry_after_ms = r->retry_after_ms;
        msg_set(&ret->failure, error, retry_after_ms);
    }
}

static void view_result(const struct reply *r, struct msg_step_result *ret)
{
    msg_set(ret, step_result, result);
    if (r->has_text) {
        ret->result.text = r->text.len > 0 ? buf_str(&r->text) : STR_LIT("");
        msg_set(&ret->result, result, text);
    }
    if (r->data.len > 0) {
        ret->result.data = doc_from_buf(&r->data);
    }
    if (r->state.len > 0) {
        ret->state = doc_from_buf(&r->state);
    }
    if (r->details.len > 0) {
        ret->result.details = doc_from_buf(&r->details);
    }
    if (r->truncated) {
        ret->result.truncated = true;
        msg_set(&ret->result, result, truncated);
    }
    if (r->artifacts_n > 0) {
        /* The encoder only reads the list, but the message struct has no const, because decoding
         * fills it. */
        union {
            const struct msg_artifact *from;
            struct msg_artifact *to;
        } list = {.from = r->artifacts};
        ret->result.artifacts = list.to;
        ret->result.artifacts_n = r->artifacts_n;
    }
}

static void view_calls(const struct reply *r, struct msg_step_result *ret)
{
    /* As for the artifacts. */
    union {
        const struct msg_call *from;
        struct msg_call *to;
    } list = {.from = r->call_at};

    if (r->data.len > 0) {
        view_result(r, ret);
    }
    ret->calls = list.to;
    ret->calls_n = r->calls_n;
}

void reply_view(const struct reply *r, struct msg_step_result *ret)
{
    ret->outcome = str_from(outcome_names[r->outcome]);
    ret->usage = r->usage;
    switch (r->outcome) {
    case REPLY_COMPLETED:
        view_result(r, ret);
        break;
    case REPLY_NEEDS_INPUT:
    case REPLY_NEEDS_APPROVAL:
        msg_set(ret, step_result, need);
        ret->need.kind = r->outcome == REPLY_NEEDS_INPUT ? STR_LIT("input") : STR_LIT("approval");
        ret->need.prompt = r->message;
        ret->need.schema = doc_from_buf(&r->schema);
        break;
    case REPLY_HANDOFF:
        msg_set(ret, step_result, handoff);
        ret->handoff.to_agent_id = r->to_agent;
        ret->handoff.reason = r->message;
        break;
    case REPLY_CALLS:
        view_calls(r, ret);
        break;
    case REPLY_NONE:
    case REPLY_FAILED:
    case REPLY_OUTCOME_COUNT:
        view_failure(r, ret);
        break;
    }
}
