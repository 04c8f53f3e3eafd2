/* Requests of JSON-RPC over HTTP; an answer is JSON, or a stream of events. */
#include "agents/a2a/a2a.h"
#include "agents/web/lines.h"
#include "agents/web/sse.h"

enum { FETCH_MS = 30000, CARD_MAX = 4 * 1024 * 1024 };

static const struct json_limits limits = {A2A_BYTES_MAX, 64, 4 * 1000 * 1000};

/* ---- headers ---- */

static void make_headers(const struct a2a_agent *a, struct str version, const struct bt_step *step,
                         struct web_lines *l)
{
    struct doc_cursor c = doc_cursor(a->settings->headers);
    struct doc_head head = {.n = 0};

    *l = (struct web_lines){.n = 0};
    web_lines_add(l, STR_LIT("Accept"), STR_LIT("application/json, text/event-stream"));
    web_lines_add(l, STR_LIT("A2A-Version"), version);
    web_lines_add(l, STR_LIT("traceparent"),
                  str_from(step != NULL ? bt_step_traceparent(step) : ""));
    if (a->settings->headers.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        web_lines_add(l, name, doc_string(doc_skip(&c)));
    }
    web_lines_bearer(l, a->settings->bearer);
}

enum bt_code a2a_fetch(const struct a2a_agent *a, const char *url, long *ret_status,
                       struct buf *ret, struct bt_error *err)
{
    struct web_response r = {.status = 0};
    struct web_lines l;
    enum bt_code code;

    make_headers(a, STR_LIT("1.0"), NULL, &l); /* the card of either version has both */
    const struct web_request request = {.method = "GET",
                                        .url = url,
                                        .headers = l.plain,
                                        .secret_headers = l.secret,
                                        .timeout_ms = FETCH_MS,
                                        .max_bytes = CARD_MAX};
    code = web_lines_check(&l, err);
    code = code == BT_OK ? web_call(&a->settings->policy, &request, &r, err) : code;
    *ret_status = r.status;
    if (code == BT_OK && r.status == 200) {
        buf_add_str(ret, buf_str(&r.body));
        code = buf_check(ret, err);
    }
    web_response_done(&r);
    web_lines_done(&l);
    return code;
}

/* ---- a request ---- */

struct posting {
    const struct secrets *secrets;
    struct a2a_task *task;
    struct sse sse;
    struct buf plain;
    bool begun, is_stream;
};

static bool see(void *self, struct str data)
{
    struct posting *p = self;
    struct buf text;
    struct buf doc;

    buf_init(&text, A2A_BYTES_MAX);
    buf_init(&doc, json_doc_capacity(A2A_BYTES_MAX));
    buf_add_str(&text, data);
    secrets_redact(p->secrets, &text); /* an agent may send back what it was sent */
    if (buf_check(&text, &p->task->error) == BT_OK &&
        json_to_doc(buf_str(&text), &limits, &doc, &p->task->error) == BT_OK) {
        a2a_task_take(p->task, doc_from_buf(&doc));
    } else if (p->task->error.code != BT_NOMEM) {
        p->task->error.code = BT_PROTOCOL;
        (void)err_wrap(&p->task->error, "the agent answered no JSON");
    }
    buf_done(&text);
    buf_done(&doc);
    return !a2a_task_is_over(p->task);
}

static bool take_bytes(void *self, struct str bytes)
{
    struct posting *p = self;

    if (!p->begun && bytes.len > 0) {
        p->begun = true;
        p->is_stream = bytes.ptr[0] != '{' && bytes.ptr[0] != '[';
    }
    if (p->is_stream) {
        return sse_take(&p->sse, bytes, see, p);
    }
    buf_add_str(&p->plain, bytes);
    return p->plain.bad == BT_OK;
}

static bool is_cancelled(void *self)
{
    const struct posting *p = self;

    return p->task->step != NULL && bt_step_cancelled(p->task->step);
}

static enum bt_code make_body(const struct a2a_agent *a, enum a2a_method method, struct doc params,
                              struct buf *out, struct bt_error *err)
{
    static const char *const methods[][2] = {{"SendMessage", "message/send"},
                                             {"SendStreamingMessage", "message/stream"},
                                             {"GetTask", "tasks/get"},
                                             {"CancelTask", "tasks/cancel"}};
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, A2A_BYTES_MAX);
    doc_put_map(&doc, 4);
    doc_put_cstr(&doc, "jsonrpc");
    doc_put_cstr(&doc, "2.0");
    doc_put_cstr(&doc, "id");
    doc_put_u64(&doc, 1);
    doc_put_cstr(&doc, "method");
    doc_put_cstr(&doc, methods[method][a->modern ? 0 : 1]);
    doc_put_cstr(&doc, "params");
    doc_put_doc(&doc, params);
    code = buf_check(&doc, err);
    code = code == BT_OK ? doc_to_json(doc_from_buf(&doc), false, out, err) : code;
    buf_done(&doc);
    return code;
}

static enum bt_code status_error(const struct a2a_agent *a, struct web_response *r,
                                 struct bt_error *err)
{
    secrets_redact(&a->settings->secrets, &r->body);
    return err_set(err,
                   r->status == 401 || r->status == 403   ? BT_UNAUTHORIZED
                   : r->status == 429 || r->status >= 500 ? BT_UNAVAILABLE
                                                          : BT_PROTOCOL,
                   "the agent answered status %ld: %.200s", r->status, buf_cstr(&r->body));
}

/* What the bytes came to, however the exchange ended. */
static enum bt_code conclude(const struct a2a_agent *a, struct posting *p, struct web_response *r,
                             enum bt_code code, struct bt_error *err)
{
    if (p->plain.bad != BT_OK || sse_check(&p->sse, NULL) != BT_OK) {
        code = p->plain.bad != BT_OK ? buf_check(&p->plain, err) : sse_check(&p->sse, err);
    } else if (p->plain.len > 0 && !a2a_task_is_over(p->task)) {
        (void)see(p, str_trimmed(buf_str(&p->plain)));
    } else if (code == BT_OK && r->status >= 300 && r->body.len > 0 && r->body.at[0] == '{') {
        (void)see(p, buf_str(&r->body)); /* an error may have its message */
        if (p->task->error.code == BT_PROTOCOL) {
            p->task->error.code = BT_OK;
        }
    }
    if (a2a_task_is_over(p->task)) {
        return BT_OK; /* the reading was ended by us */
    }
    if (code == BT_OK && r->status >= 300) {
        return status_error(a, r, err);
    }
    if (code == BT_OK && !p->begun) {
        return err_set(err, BT_UNAVAILABLE, "the agent answered nothing");
    }
    return code;
}

enum bt_code a2a_call(const struct a2a_agent *a, enum a2a_method method, struct doc params,
                      uint64_t timeout_ms, struct a2a_task *task, bool *ret_sent,
                      struct bt_error *err)
{
    struct posting p = {.secrets = &a->settings->secrets, .task = task};
    struct web_response r = {.status = 0};
    struct web_lines l;
    struct buf body;
    enum bt_code code;

    buf_init(&body, A2A_BYTES_MAX);
    sse_init(&p.sse, A2A_BYTES_MAX);
    buf_init(&p.plain, A2A_BYTES_MAX);
    make_headers(a, a->modern ? STR_LIT("1.0") : (struct str){NULL, 0}, task->step, &l);
    web_lines_add(&l, STR_LIT("Content-Type"), STR_LIT("application/json"));
    code = web_lines_check(&l, err);
    code = code == BT_OK ? make_body(a, method, params, &body, err) : code;
    if (code == BT_OK) {
        const struct web_request request = {.method = "POST",
                                            .url = a->endpoint,
                                            .headers = l.plain,
                                            .secret_headers = l.secret,
                                            .body = buf_str(&body),
                                            .timeout_ms = timeout_ms,
                                            .max_bytes = A2A_STREAM_MAX,
                                            .cancelled = is_cancelled,
                                            .take = take_bytes,
                                            .self = &p};
        code = web_call(&a->settings->policy, &request, &r, err);
        code = conclude(a, &p, &r, code, err);
    }
    *ret_sent = r.sent;
    if (code != BT_OK) {
        secrets_redact_error(&a->settings->secrets, err);
    }
    web_response_done(&r);
    sse_done(&p.sse);
    buf_done(&p.plain);
    buf_done(&body);
    web_lines_done(&l);
    return code;
}
