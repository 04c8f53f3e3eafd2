/* States, tasks and events in the words of both versions. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "supervisor/gateway/a2a/a2a_internal.h"

static const char *const states[A2A_STATES][2] = {{"TASK_STATE_SUBMITTED", "submitted"},
                                                  {"TASK_STATE_WORKING", "working"},
                                                  {"TASK_STATE_INPUT_REQUIRED", "input-required"},
                                                  {"TASK_STATE_COMPLETED", "completed"},
                                                  {"TASK_STATE_FAILED", "failed"},
                                                  {"TASK_STATE_CANCELED", "canceled"}};

enum a2a_state a2a_state_of(struct str status)
{
    static const struct {
        const char *status;
        enum a2a_state state;
    } known[] = {{"completed", A2A_COMPLETED}, {"planned", A2A_COMPLETED},
                 {"failed", A2A_FAILED},       {"quarantined", A2A_FAILED},
                 {"cancelled", A2A_CANCELED},  {"waiting", A2A_INPUT_REQUIRED}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (str_is(status, known[i].status)) {
            return known[i].state;
        }
    }
    return A2A_WORKING;
}

bool a2a_is_over(enum a2a_state s)
{
    return s == A2A_COMPLETED || s == A2A_FAILED || s == A2A_CANCELED;
}

bool a2a_is_proto(const struct a2a *a)
{
    return a->modern || a->rest;
}

void a2a_begin(const struct a2a *a, struct buf *out)
{
    if (a->rest) {
        return;
    }
    json_open(out, '{');
    json_key(out, "jsonrpc");
    json_cstr(out, "2.0");
    json_key(out, "id");
    json_doc(out, a->id);
    json_key(out, "result");
}

void a2a_end(const struct a2a *a, struct buf *out)
{
    if (!a->rest) {
        json_close(out, '}');
    }
}

/* As HTTP has it: 1.0 by google.rpc.Status, 0.3 as in JSON-RPC without its frame. */
static void put_rest_error(const struct a2a *a, int code, struct str message, struct buf *out)
{
    const struct a2a_fault f = a2a_fault_of(code);

    json_open(out, '{');
    if (a->modern) {
        json_key(out, "error");
        json_open(out, '{');
    }
    json_key(out, "code");
    buf_printf(out, "%d", a->modern ? (int)(a->status != 0 ? a->status : f.http) : code);
    json_member(out, "message", message);
    if (a->modern) {
        json_member(out, "status", str_from(f.status));
        json_key(out, "details");
        json_open(out, '[');
        json_open(out, '{');
        json_member(out, "@type", STR_LIT("type.googleapis.com/google.rpc.ErrorInfo"));
        json_member(out, "reason", str_from(f.reason));
        json_member(out, "domain", STR_LIT("a2a-protocol.org"));
        json_close(out, '}');
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, '}');
}

struct a2a_fault a2a_fault_of(int code)
{
    static const struct {
        int code;
        struct a2a_fault fault;
    } known[] = {
        {A2A_NO_TASK, {404, "NOT_FOUND", "TASK_NOT_FOUND"}},
        {A2A_NOT_CANCELABLE, {400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"}},
        {A2A_UNSUPPORTED, {400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"}},
        {A2A_INTERNAL, {500, "INTERNAL", "INTERNAL_ERROR"}},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == code) {
            return known[i].fault;
        }
    }
    return (struct a2a_fault){400, "INVALID_ARGUMENT", "REQUEST_MALFORMED"};
}

void a2a_put_error(const struct a2a *a, int code, struct str message, struct buf *out)
{
    if (a->rest) {
        put_rest_error(a, code, message, out);
        return;
    }
    json_open(out, '{');
    json_key(out, "jsonrpc");
    json_cstr(out, "2.0");
    json_key(out, "id");
    json_doc(out, a->id);
    json_key(out, "error");
    json_open(out, '{');
    json_key(out, "code");
    buf_printf(out, "%d", code);
    json_key(out, "message");
    json_str(out, message);
    json_close(out, '}');
    json_close(out, '}');
}

static void put_ids(const struct a2a *a, const char *task, struct buf *out)
{
    json_key(out, task);
    json_cstr(out, a->plan);
    json_key(out, "contextId");
    json_cstr(out, a->context);
}

static void put_kind(const struct a2a *a, const char *kind, struct buf *out)
{
    if (!a2a_is_proto(a)) {
        json_key(out, "kind");
        json_cstr(out, kind);
    }
}

static void put_parts(const struct a2a *a, const char *name, struct str text, struct buf *out)
{
    json_key(out, name);
    json_open(out, '[');
    json_open(out, '{');
    put_kind(a, "text", out);
    json_key(out, "text");
    json_str(out, text);
    json_close(out, '}');
    json_close(out, ']');
}

static const char *state_word(const struct a2a *a, enum a2a_state s)
{
    if (a->rest && !a->modern && s == A2A_CANCELED) {
        return "TASK_STATE_CANCELLED"; /* as 0.3 spells it over HTTP */
    }
    return states[s][a2a_is_proto(a) ? 0 : 1];
}

static void put_state(const struct a2a *a, enum a2a_state s, struct str says, struct buf *out)
{
    char now[CLOCK_ISO_LEN + 1];
    char id[96];

    clock_iso(clock_wall_ms(), now);
    json_key(out, "status");
    json_open(out, '{');
    json_key(out, "state");
    json_cstr(out, state_word(a, s));
    json_key(out, "timestamp");
    json_cstr(out, a->when[0] != 0 ? a->when : now);
    if (says.len > 0) {
        (void)snprintf(id, sizeof id, "%s-%s", a->plan, states[s][1]);
        json_key(out, "message");
        json_open(out, '{');
        put_kind(a, "message", out);
        json_key(out, "role");
        json_cstr(out, a2a_is_proto(a) ? "ROLE_AGENT" : "agent");
        json_key(out, "messageId");
        json_cstr(out, id);
        put_ids(a, "taskId", out);
        put_parts(a, a->rest && !a->modern ? "content" : "parts", says, out);
        json_close(out, '}');
    }
    json_close(out, '}');
}

static struct str text_of(struct doc answer)
{
    return doc_string(doc_get(answer, STR_LIT("aggregatedResult")));
}

static void put_result(const struct a2a *a, struct doc answer, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "artifactId");
    json_cstr(out, "result");
    json_key(out, "name");
    json_cstr(out, "result");
    put_parts(a, "parts", text_of(answer), out);
    json_close(out, '}');
}

void a2a_put_task(const struct a2a *a, enum a2a_state s, struct str says, struct doc answer,
                  struct buf *out)
{
    const bool wrapped = a2a_is_proto(a) && a->wrapped;

    if (wrapped) {
        json_open(out, '{');
        json_key(out, "task");
    }
    json_open(out, '{');
    put_kind(a, "task", out);
    put_ids(a, "id", out);
    put_state(a, s, says, out);
    if (text_of(answer).len > 0) {
        json_key(out, "artifacts");
        json_open(out, '[');
        put_result(a, answer, out);
        json_close(out, ']');
    }
    json_close(out, '}');
    if (wrapped) {
        json_close(out, '}');
    }
}

/* 1.0 and HTTP: {"statusUpdate": {...}}; 0.3: {"kind": "status-update", ...} */
static void open_event(const struct a2a *a, const char *modern, const char *legacy, struct buf *out)
{
    json_open(out, '{');
    if (a2a_is_proto(a)) {
        json_key(out, modern);
        json_open(out, '{');
    } else {
        put_kind(a, legacy, out);
    }
    put_ids(a, "taskId", out);
}

static void close_event(const struct a2a *a, struct buf *out)
{
    buf_add_cstr(out, a2a_is_proto(a) ? "}}" : "}");
}

void a2a_put_status(const struct a2a *a, enum a2a_state s, struct str says, struct buf *out)
{
    open_event(a, "statusUpdate", "status-update", out);
    put_state(a, s, says, out);
    if (!a->modern) {
        json_key(out, "final");
        json_bool(out, s == A2A_INPUT_REQUIRED || a2a_is_over(s));
    }
    close_event(a, out);
}

bool a2a_put_artifact(const struct a2a *a, struct doc answer, struct buf *out)
{
    if (text_of(answer).len == 0) {
        return false;
    }
    open_event(a, "artifactUpdate", "artifact-update", out);
    json_key(out, "artifact");
    put_result(a, answer, out);
    json_key(out, "append");
    json_bool(out, false);
    json_key(out, "lastChunk");
    json_bool(out, true);
    close_event(a, out);
    return true;
}
