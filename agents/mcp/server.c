#include "agents/mcp/server.h"

#include <stdio.h>

#include "baton/agent.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

enum { PROBE_MS = 5000, START_MS = 30000, METHOD_NOT_FOUND = -32601, TEXT_MAX = 300 };

void mcp_call_init(struct mcp_call *c, const char *method, uint64_t timeout_ms)
{
    *c = (struct mcp_call){.method = method, .timeout_ms = timeout_ms};
    buf_init(&c->members, MCP_MESSAGE_MAX);
    buf_init(&c->answer, json_doc_capacity(MCP_MESSAGE_MAX));
    buf_init(&c->question, MCP_MESSAGE_MAX);
}

void mcp_call_done(struct mcp_call *c)
{
    buf_done(&c->members);
    buf_done(&c->answer);
    buf_done(&c->question);
}

/* ---- what the transports share ---- */

enum bt_code mcp_call_line(struct mcp_server *s, struct mcp_call *c, struct buf *out,
                           struct bt_error *err)
{
    struct buf params;
    enum bt_code code;

    (void)pthread_mutex_lock(&s->lock);
    c->id = ++s->last_id;
    (void)pthread_mutex_unlock(&s->lock);
    code = buf_check(&c->members, err);
    if (code != BT_OK) {
        return code;
    }
    buf_init(&params, MCP_MESSAGE_MAX);
    mcp_message_params(s->modern, c->step != NULL ? c->id : 0,
                       c->step != NULL ? bt_step_traceparent(c->step) : NULL, &c->members,
                       c->n_members, &params);
    code = buf_check(&params, err);
    if (code == BT_OK) {
        code = mcp_message_write(c->id, c->method, doc_from_buf(&params), out, err);
    }
    buf_done(&params);
    return code;
}

static double number_of(struct doc map, struct str name, double fallback)
{
    const struct doc d = doc_get(map, name);
    const struct doc_head h = d.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(d);

    return h.kind == DOC_UINT    ? (double)h.u
           : h.kind == DOC_INT   ? (double)h.i
           : h.kind == DOC_FLOAT ? h.f
                                 : fallback;
}

static void take_progress(struct mcp_call *c, struct doc params)
{
    const double at = number_of(params, STR_LIT("progress"), -1);
    const double total = number_of(params, STR_LIT("total"), 0);
    const struct str text = doc_string(doc_get(params, STR_LIT("message")));
    char shown[TEXT_MAX];

    (void)snprintf(shown, sizeof shown, "%.*s", text.len > 250 ? 250 : (int)text.len,
                   text.len > 0 ? text.ptr : "");
    bt_step_progress(c->step, total > 0 && at >= 0 ? at * 100 / total : -1,
                     shown[0] != 0 ? shown : NULL);
}

/* A request of the server to us. Legacy only: a modern one asks in its results. */
static void answer_request(struct mcp_call *c, const struct mcp_message *m, struct buf *out)
{
    struct buf result;
    enum bt_code code;

    buf_init(&result, MCP_MESSAGE_MAX);
    if (str_is(m->method, "ping")) {
        doc_put_map(&result, 0);
    } else if (str_is(m->method, "elicitation/create") && c != NULL && c->step != NULL) {
        const bool known = c->reply.ptr != NULL;
        if (!known && c->question.len == 0) {
            doc_put_doc(&c->question, m->body);
        }
        doc_put_map(&result, known ? 2 : 1);
        doc_put_cstr(&result, "action");
        doc_put_cstr(&result, known ? "accept" : "cancel");
        if (known) {
            doc_put_cstr(&result, "content");
            doc_put_doc(&result, c->reply);
        }
    }
    code = result.len > 0 ? mcp_message_answer(m->id, doc_from_buf(&result), 0, NULL, out, NULL)
                          : mcp_message_answer(m->id, (struct doc){0}, METHOD_NOT_FOUND,
                                               "this client answers no such request", out, NULL);
    if (code != BT_OK) {
        buf_clear(out);
        mcp_call_lose(c); /* the server waits for an answer */
    }
    buf_done(&result);
}

void mcp_call_lose(struct mcp_call *c)
{
    log_warn("mcp.no_memory", "out of memory for a message");
    if (c != NULL) {
        c->lost = true;
        c->done = true;
    }
}

bool mcp_call_take(struct mcp_server *s, struct mcp_call *c, struct doc message,
                   struct buf *reply_line)
{
    const struct mcp_message m = mcp_message_read(message);

    switch (m.kind) {
    case MCP_RESULT:
    case MCP_ERROR:
        if (c == NULL || c->done || (m.id_u64 != c->id && m.id_u64 != 0)) {
            return false;
        }
        buf_clear(&c->answer);
        doc_put_doc(&c->answer, message);
        c->done = true;
        return true;
    case MCP_REQUEST:
        answer_request(c, &m, reply_line);
        return c != NULL && c->lost;
    case MCP_NOTE:
        if (str_is(m.method, "notifications/progress") && c != NULL && c->step != NULL) {
            take_progress(c, m.body);
        } else if (str_is(m.method, "notifications/tools/list_changed") && s->changed != NULL) {
            s->changed();
        }
        return false;
    case MCP_BAD:
        break;
    }
    log_warn("mcp.no_message", "the server sent what is no message of JSON-RPC");
    return false;
}

/* ---- calls ---- */

static enum bt_code exchange(struct mcp_server *s, struct mcp_call *c, struct bt_error *err)
{
    c->deadline = clock_mono_ms() + c->timeout_ms;
    c->done = false;
    c->lost = false;
    return s->process != NULL ? stdio_call(s, c, err) : stream_call(s, c, err);
}

static enum bt_code read_answer(struct mcp_call *c, struct mcp_message *ret, struct bt_error *err)
{
    struct str text;
    struct doc code;

    if (c->lost || c->question.bad != BT_OK) {
        return err_set(err, BT_NOMEM, "out of memory for a message of the server");
    }
    if (buf_check(&c->answer, err) != BT_OK) {
        return err->code;
    }
    *ret = mcp_message_read(doc_from_buf(&c->answer));
    if (ret->kind != MCP_ERROR) {
        return BT_OK;
    }
    text = doc_string(doc_get(ret->body, STR_LIT("message")));
    code = doc_get(ret->body, STR_LIT("code"));
    return err_set(err, BT_PROTOCOL, "the server answered error %lld: %.*s",
                   code.ptr == NULL                 ? 0LL
                   : doc_head(code).kind == DOC_INT ? (long long)doc_head(code).i
                                                    : (long long)doc_head(code).u,
                   text.len > TEXT_MAX ? TEXT_MAX : (int)text.len, text.len > 0 ? text.ptr : "");
}

static enum bt_code note(struct mcp_server *s, const char *method, struct bt_error *err)
{
    struct buf line;
    enum bt_code code;

    buf_init(&line, 4096);
    code = mcp_message_write(0, method, (struct doc){0}, &line, err);
    if (code == BT_OK) {
        code = s->process != NULL ? stdio_note(s, buf_cstr(&line), line.len, err)
                                  : stream_note(s, buf_cstr(&line), line.len, err);
    }
    buf_done(&line);
    return code;
}

/* The handshake of the legacy era. */
static enum bt_code initialize(struct mcp_server *s, struct bt_error *err)
{
    struct mcp_message m;
    struct mcp_call c;
    struct str version;
    enum bt_code code;

    mcp_call_init(&c, "initialize", START_MS);
    doc_put_cstr(&c.members, "protocolVersion");
    doc_put_cstr(&c.members, MCP_LEGACY);
    doc_put_cstr(&c.members, "capabilities");
    doc_put_map(&c.members, 1);
    doc_put_cstr(&c.members, "elicitation");
    doc_put_map(&c.members, 0);
    doc_put_cstr(&c.members, "clientInfo");
    doc_put_map(&c.members, 2);
    doc_put_cstr(&c.members, "name");
    doc_put_cstr(&c.members, "baton");
    doc_put_cstr(&c.members, "version");
    doc_put_cstr(&c.members, BATON_VERSION);
    c.n_members = 3;
    s->modern = false;
    code = exchange(s, &c, err);
    if (code == BT_OK) {
        code = read_answer(&c, &m, err);
    }
    if (code == BT_OK) {
        version = doc_string(doc_get(m.body, STR_LIT("protocolVersion")));
        log_info("mcp.connected", "version=%.*s", version.len > 40 ? 40 : (int)version.len,
                 version.len > 0 ? version.ptr : "");
        code = note(s, "notifications/initialized", err);
    }
    mcp_call_done(&c);
    return code == BT_OK ? BT_OK : err_wrap(err, "initialize");
}

/* A modern server answers this; a legacy one does not know it, and may wait for its handshake.
 * BT_NOMEM: it may be either. */
static enum bt_code find_era(struct mcp_server *s, struct bt_error *err)
{
    struct mcp_message m;
    struct mcp_call c;
    bool modern = false;
    enum bt_code code;

    mcp_call_init(&c, "server/discover", PROBE_MS);
    s->modern = true;
    code = exchange(s, &c, err);
    code = code == BT_OK ? read_answer(&c, &m, err) : code;
    if (code == BT_OK) {
        const struct doc versions = doc_get(m.body, STR_LIT("supportedVersions"));
        for (uint32_t i = 0; versions.ptr != NULL && i < doc_head(versions).n; i++) {
            modern |= str_is(doc_string(doc_at(versions, i)), MCP_MODERN);
        }
    }
    mcp_call_done(&c);
    s->modern = modern;
    return code == BT_NOMEM ? code : BT_OK;
}

static enum bt_code connect_now(struct mcp_server *s, struct bt_error *err)
{
    enum bt_code code = s->settings->command != NULL ? stdio_start(s, err) : BT_OK;

    if (code != BT_OK) {
        return code;
    }
    s->session[0] = 0;
    code = find_era(s, err);
    if (code == BT_OK && !s->modern) {
        code = initialize(s, err);
    } else if (code == BT_OK) {
        log_info("mcp.connected", "version=%s", MCP_MODERN);
    }
    if (code != BT_OK) {
        stdio_stop(s);
    }
    return code;
}

enum bt_code mcp_server_start(struct mcp_server *s, const struct mcp_settings *settings,
                              struct bt_error *err)
{
    s->settings = settings;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_rwlock_init(&s->in_use, NULL);
    return connect_now(s, err);
}

void mcp_server_stop(struct mcp_server *s)
{
    stdio_stop(s);
    (void)pthread_rwlock_destroy(&s->in_use);
    (void)pthread_mutex_destroy(&s->lock);
}

/* Holds the connection for a call; a process that ended is started again first. */
static enum bt_code hold(struct mcp_server *s, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    (void)pthread_rwlock_rdlock(&s->in_use);
    while (code == BT_OK && s->settings->command != NULL && !stdio_is_alive(s)) {
        (void)pthread_rwlock_unlock(&s->in_use);
        (void)pthread_rwlock_wrlock(&s->in_use);
        if (!stdio_is_alive(s)) {
            log_warn("mcp.restart", "the server's process ended; it is started again");
            stdio_stop(s);
            code = connect_now(s, err);
        }
        (void)pthread_rwlock_unlock(&s->in_use);
        (void)pthread_rwlock_rdlock(&s->in_use);
    }
    return code == BT_OK ? BT_OK : err_set(err, BT_UNAVAILABLE, "the server does not start again");
}

enum bt_code mcp_server_call(struct mcp_server *s, struct mcp_call *c, struct mcp_message *ret,
                             struct bt_error *err)
{
    enum bt_code code = hold(s, err);

    if (code == BT_OK) {
        code = exchange(s, c, err);
    }
    if (code == BT_GONE) { /* legacy HTTP: the server forgot the session; nothing was done */
        code = initialize(s, err);
        c->sent = false;
        code = code == BT_OK ? exchange(s, c, err) : code;
    }
    (void)pthread_rwlock_unlock(&s->in_use);
    return code == BT_OK ? read_answer(c, ret, err) : code;
}
