/* Calls over Streamable HTTP: each request is a POST; the answer is JSON, or a stream of events. */
#include "agents/mcp/server.h"
#include "agents/web/lines.h"
#include "agents/web/sse.h"
#include "baton/agent.h"
#include "protocol/base/clock.h"

enum { NOTE_MS = 10000 };

static const struct json_limits limits = {MCP_MESSAGE_MAX, 64, 4 * 1000 * 1000};

struct posting {
    struct mcp_server *s;
    struct mcp_call *c; /* NULL = a note */
    struct sse sse;
    struct buf plain; /* of an answer that is no stream */
    bool begun;
    bool is_stream;
    struct buf replies[4]; /* lines that answer requests of the server */
    uint32_t n_replies;
    struct web_lines lines;
};

/* ---- reading ---- */

static bool see_message(void *self, struct str data)
{
    struct posting *p = self;
    struct buf doc;
    struct buf reply;
    enum bt_code code;
    bool on = true;

    buf_init(&doc, json_doc_capacity(MCP_MESSAGE_MAX));
    buf_init(&reply, MCP_MESSAGE_MAX);
    code = json_to_doc(data, &limits, &doc, NULL);
    if (code == BT_OK) {
        on = !mcp_call_take(p->s, p->c, doc_from_buf(&doc), &reply);
    } else if (code == BT_NOMEM) {
        mcp_call_lose(p->c);
        on = false;
    }
    if (reply.len > 0 && p->c != NULL && p->n_replies < sizeof p->replies / sizeof p->replies[0]) {
        p->replies[p->n_replies++] = reply;
    } else {
        buf_done(&reply);
    }
    buf_done(&doc);
    return on;
}

static enum bt_code post(struct posting *p, const char *line, size_t len, uint64_t timeout_ms,
                         struct web_response *r, struct bt_error *err);

/* Legacy: the server waits within its stream for our answers, which are requests of their own. */
static void send_replies(struct posting *p)
{
    for (uint32_t i = 0; i < p->n_replies; i++) {
        struct posting other = {.s = p->s};
        struct web_response r;
        if (post(&other, buf_cstr(&p->replies[i]), p->replies[i].len, NOTE_MS, &r, NULL) ==
            BT_NOMEM) {
            mcp_call_lose(p->c); /* the server waits for it */
        }
        web_response_done(&r);
        buf_done(&p->replies[i]);
    }
    p->n_replies = 0;
}

static bool take_bytes(void *self, struct str bytes)
{
    struct posting *p = self;
    bool on = true;

    if (!p->begun && bytes.len > 0) {
        p->begun = true;
        p->is_stream = bytes.ptr[0] != '{' && bytes.ptr[0] != '[';
    }
    if (p->is_stream) {
        on = sse_take(&p->sse, bytes, see_message, p);
        send_replies(p);
        on = on && (p->c == NULL || !p->c->lost);
    } else {
        buf_add_str(&p->plain, bytes);
        on = p->plain.bad == BT_OK;
    }
    return on;
}

static bool is_cancelled(void *self)
{
    const struct posting *p = self;
    return p->c != NULL && p->c->step != NULL && bt_step_cancelled(p->c->step);
}

/* ---- writing ---- */

static void make_headers(struct posting *p)
{
    struct mcp_server *s = p->s;
    struct web_lines *l = &p->lines;
    struct doc_cursor c = doc_cursor(s->settings->headers);
    struct doc_head head = {.n = 0};

    web_lines_add(l, STR_LIT("Content-Type"), STR_LIT("application/json"));
    web_lines_add(l, STR_LIT("Accept"), STR_LIT("application/json, text/event-stream"));
    if (s->modern) {
        web_lines_add(l, STR_LIT("MCP-Protocol-Version"), STR_LIT(MCP_MODERN));
        web_lines_add(l, STR_LIT("Mcp-Method"), str_from(p->c != NULL ? p->c->method : ""));
        web_lines_add(l, STR_LIT("Mcp-Name"),
                      str_from(p->c != NULL && p->c->name != NULL ? p->c->name : ""));
    } else if (s->sessions > 0) {
        web_lines_add(l, STR_LIT("MCP-Protocol-Version"), STR_LIT(MCP_LEGACY));
        web_lines_add(l, STR_LIT("Mcp-Session-Id"), str_from(s->session));
    }
    if (s->settings->headers.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        web_lines_add(l, name, doc_string(doc_skip(&c)));
    }
    web_lines_bearer(l, s->settings->bearer);
}

static enum bt_code post(struct posting *p, const char *line, size_t len, uint64_t timeout_ms,
                         struct web_response *r, struct bt_error *err)
{
    enum bt_code code;

    sse_init(&p->sse, MCP_MESSAGE_MAX);
    buf_init(&p->plain, MCP_MESSAGE_MAX);
    make_headers(p);
    *r = (struct web_response){.status = 0};
    const struct web_request request = {.method = "POST",
                                        .url = p->s->settings->url,
                                        .headers = p->lines.plain,
                                        .secret_headers = p->lines.secret,
                                        .body = {line, len},
                                        .timeout_ms = timeout_ms,
                                        .max_bytes = 4u * MCP_MESSAGE_MAX,
                                        .cancelled = is_cancelled,
                                        .take = take_bytes,
                                        .self = p};
    code = web_lines_check(&p->lines, err);
    if (code == BT_OK) {
        code = web_call(&p->s->settings->policy, &request, r, err);
    }
    if (p->plain.bad != BT_OK || sse_check(&p->sse, NULL) != BT_OK) {
        code = p->plain.bad != BT_OK ? buf_check(&p->plain, err) : sse_check(&p->sse, err);
    } else if (p->c != NULL && !p->c->done && p->plain.len > 0) {
        (void)see_message(p, str_trimmed(buf_str(&p->plain)));
    }
    if (p->c != NULL && r->status >= 300 && r->body.len > 0 && !p->c->done) {
        (void)see_message(p, str_trimmed(buf_str(&r->body))); /* an error may have its message */
    }
    if (p->c != NULL && p->c->done) {
        code = BT_OK; /* the answer is there, however the stream ended */
    }
    send_replies(p);
    sse_done(&p->sse);
    buf_done(&p->plain);
    web_lines_done(&p->lines);
    return code;
}

enum bt_code stream_note(struct mcp_server *s, const char *line, size_t len, struct bt_error *err)
{
    struct posting p = {.s = s};
    struct web_response r;
    enum bt_code code = post(&p, line, len, NOTE_MS, &r, err);

    if (code == BT_OK && r.status >= 300) {
        code = err_set(err, BT_PROTOCOL, "the server answered a note with status %ld", r.status);
    }
    web_response_done(&r);
    return code;
}

/* What a status without a message of the protocol means. */
static enum bt_code no_answer(struct mcp_server *s, long status, struct bt_error *err)
{
    if (status == 404 && !s->modern && s->session[0] != 0) {
        s->session[0] = 0;
        return err_set(err, BT_GONE, "the server forgot the session");
    }
    if (status == 401 || status == 403) {
        return err_set(err, BT_UNAUTHORIZED, "the server answered status %ld", status);
    }
    if (status == 429 || status >= 500) {
        return err_set(err, BT_UNAVAILABLE, "the server answered status %ld", status);
    }
    return err_set(err, BT_PROTOCOL, "the server answered status %ld without a message", status);
}

enum bt_code stream_call(struct mcp_server *s, struct mcp_call *c, struct bt_error *err)
{
    struct posting p = {.s = s, .c = c};
    struct web_response r;
    struct buf line;
    enum bt_code code;

    buf_init(&line, MCP_MESSAGE_MAX);
    code = mcp_call_line(s, c, &line, err);
    if (code != BT_OK) {
        buf_done(&line);
        return code;
    }
    code = post(&p, buf_cstr(&line), line.len, c->timeout_ms, &r, err);
    c->sent = r.sent;
    if (strcmp(c->method, "initialize") == 0 && code == BT_OK && c->done) {
        web_response_header(&r, "mcp-session-id", s->session, sizeof s->session);
        s->sessions++;
    }
    if (code == BT_OK && !c->done) {
        code = no_answer(s, r.status, err);
    }
    web_response_done(&r);
    buf_done(&line);
    return code;
}
