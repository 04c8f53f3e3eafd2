/* What an answer with a status from 300, or none at all, makes of the step. */
#include <stdio.h>

#include "agents/http/call.h"
#include "agents/sdk/documents/pointer.h"
#include "protocol/base/utf8.h"

enum { REASON_MAX = 600 };

bool http_is_repeatable(const struct http_call *c)
{
    return strcmp(c->action->effects, "unsafe") != 0 || c->action->key_header != NULL;
}

/* The sentence of an error's body: RFC 9457, and the names that services use instead. */
static void reason_of(struct http_call *c, char ret[REASON_MAX])
{
    static const char *const names[] = {
        "/detail",           "/error/message", "/message", "/errorMessages/0", "/error_description",
        "/errors/0/message", "/0/message",     "/title",   "/error",           "/errors/0"};
    struct str text = str_trimmed(buf_str(&c->response.body));
    struct buf doc;

    buf_init(&doc, json_doc_capacity(c->s->max_bytes));
    if (text.len > 0 && json_to_doc(text, NULL, &doc, NULL) == BT_OK) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            struct str found = doc_string(pointer_get(doc_from_buf(&doc), names[i]));
            if (found.len > 0) {
                text = found;
                break;
            }
        }
    }
    (void)snprintf(ret, REASON_MAX, "%.*s", (int)utf8_cut(text.ptr, text.len, REASON_MAX - 1),
                   text.len > 0 ? text.ptr : "");
    buf_done(&doc);
}

static const char *class_of(long status)
{
    switch (status) {
    case 400:
    case 409:
    case 411:
    case 412:
    case 413:
    case 415:
    case 422:
    case 428:
        return "VALIDATION_ERROR";
    case 401:
    case 403:
    case 407:
    case 451:
        return "PERMISSION_DENIED";
    case 404:
    case 410:
        return "RESOURCE_NOT_FOUND";
    case 405:
    case 501:
        return "TOOL_NOT_FOUND";
    case 408:
        return "TIMEOUT";
    case 429:
        return "RATE_LIMITED";
    default:
        return status >= 500 ? "SERVICE_UNAVAILABLE" : "UNKNOWN";
    }
}

void http_fail_status(struct http_call *c, uint64_t retry_after_ms)
{
    const long status = c->response.status;
    char reason[REASON_MAX];
    char location[256] = "";
    bool again = status == 429 ||
                 ((status >= 500 || status == 408) && status != 501 && http_is_repeatable(c));

    reason_of(c, reason);
    if (status < 400) {
        web_response_header(&c->response, "location", location, sizeof location);
    }
    bt_step_fail(c->step, class_of(status), again, "%s %s: status %ld%s%s%s%s%s", c->action->method,
                 c->action->path, status, location[0] != 0 ? ", to " : "", location,
                 reason[0] != 0 ? ": " : "", reason,
                 status >= 500 && !again ? " (it may have taken effect)" : "");
    if (again && retry_after_ms > 0) {
        bt_step_retry_after(c->step, retry_after_ms);
    }
}

void http_fail_call(struct http_call *c, const struct bt_error *err)
{
    const char *what = c->action->path;
    const char *method = c->action->method;
    const bool lost = c->response.sent && !http_is_repeatable(c);
    const char *note = lost ? "; whether it took effect is not known" : "";

    switch ((int)err->code) {
    case BT_CANCELLED:
        if (c->artifact_error.code != BT_OK) {
            bt_step_fail_error(c->step, &c->artifact_error);
        } else {
            bt_step_fail(c->step, "CANCELLED", false, "%s %s: stopped on request%s", method, what,
                         note);
        }
        return;
    case BT_TIMEOUT:
        bt_step_fail(c->step, "TIMEOUT", !lost, "%s %s: %s%s", method, what, err->msg, note);
        return;
    case BT_NOMEM:
    case BT_UNAVAILABLE:
        bt_step_fail(c->step, "SERVICE_UNAVAILABLE", !lost, "%s %s: %s%s", method, what, err->msg,
                     note);
        return;
    case BT_UNAUTHORIZED:
        bt_step_fail(c->step, "PERMISSION_DENIED", false, "%s %s: %s", method, what, err->msg);
        return;
    case BT_LIMIT:
        bt_step_fail(c->step, "VALIDATION_ERROR", false,
                     "%s %s: %s; raise maxBytes, or use output: "
                     "artifact%s",
                     method, what, err->msg, note);
        return;
    default:
        bt_step_fail(c->step, "VALIDATION_ERROR", false, "%s %s: %s%s", method, what, err->msg,
                     note);
        return;
    }
}
