/* Messages of JSON-RPC: what each method does, and how it is answered. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/uuid.h"
#include "supervisor/gateway/mcp/mcp_internal.h"

static const char *const versions[] = {MCP_MODERN, MCP_LEGACY, "2025-06-18", "2025-03-26"};

#define META(name) "io.modelcontextprotocol/" name

/* ---- answers ---- */

void mcp_begin(const struct mcp *m, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "jsonrpc");
    json_cstr(out, "2.0");
    json_key(out, "id");
    json_doc(out, m->id);
    json_key(out, "result");
    json_open(out, '{');
    if (m->modern) {
        json_key(out, "resultType");
        json_cstr(out, "complete");
    }
}

void mcp_end(struct buf *out)
{
    buf_add_cstr(out, "}}");
}

void mcp_no_cache(const struct mcp *m, struct buf *out)
{
    if (m->modern) {
        json_key(out, "ttlMs");
        json_u64(out, 0);
        json_key(out, "cacheScope");
        json_cstr(out, "private");
    }
}

void mcp_answer(const struct mcp *m)
{
    struct http *h = m->h;

    h->status = 200;
    h->type = "application/json";
    h->state = HTTP_READY;
    if (buf_check(&h->out, NULL) != BT_OK) {
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for the answer");
    }
    http_ready(h);
}

void mcp_error(struct buf *out, struct doc id, int code, struct str message)
{
    json_open(out, '{');
    json_key(out, "jsonrpc");
    json_cstr(out, "2.0");
    json_key(out, "id");
    json_doc(out, id);
    json_key(out, "error");
    json_open(out, '{');
    json_key(out, "code");
    buf_printf(out, "%d", code);
    json_key(out, "message");
    json_str(out, message);
    buf_add_cstr(out, "}}");
}

void mcp_refuse(const struct mcp *m, int code, const char *message)
{
    mcp_error(&m->h->out, m->id, code, str_from(message));
    mcp_answer(m);
    if (m->id.ptr == NULL || (m->modern && code == RPC_METHOD)) {
        m->h->status = m->id.ptr == NULL ? 400 : 404;
    }
}

struct doc mcp_param(const struct mcp *m, const char *name)
{
    return doc_get(m->params, str_from(name));
}

void mcp_ask(struct mcp *m, enum msg_type type, enum msg_type answer, bool reads, struct doc fields,
             call_done *done)
{
    struct http *h = m->h;
    const struct str inner = doc_string(doc_get(mcp_param(m, "_meta"), STR_LIT("traceparent")));
    const struct call_spec spec = {.type = type,
                                   .answer = answer,
                                   .fields = fields,
                                   .reads = reads,
                                   .traceparent =
                                       inner.len > 0 ? inner : str_from(h->heads.traceparent),
                                   .done = done,
                                   .self = m};
    struct bt_error err;

    if (caller_call(h->caller, &spec, h->s->now, &h->call, &err) != BT_OK) {
        mcp_refuse(m, RPC_INTERNAL, err.msg);
    } else if (h->state != HTTP_WAITS) {
        http_wait(h);
    }
}

/* ---- the beginning ---- */

static void put_about(struct buf *out, const char *name)
{
    json_key(out, name);
    json_raw(out, "{\"name\":\"baton\",\"title\":\"Baton\",\"version\":\"" BATON_VERSION "\"}");
}

static void put_abilities(struct buf *out)
{
    json_key(out, "capabilities");
    json_raw(out, "{\"tools\":{},\"resources\":{}}");
    json_key(out, "instructions");
    json_cstr(out, "Baton runs plans: steps that agents do, with retries, gates and reviews by "
                   "people. run_plan takes a goal in words, or a plan document; each other tool "
                   "with __ in its name is one skill of an agent.");
}

static void initialize(struct mcp *m)
{
    const struct str asked = doc_string(mcp_param(m, "protocolVersion"));
    const struct doc capabilities = mcp_param(m, "capabilities");
    const bool elicits = doc_get(capabilities, STR_LIT("elicitation")).ptr != NULL;
    const struct uuid id = uuid_new();
    char text[UUID_TEXT_LEN + 1];
    const char *version = MCP_LEGACY;
    struct buf *out = &m->h->out;

    for (size_t i = 1; i < sizeof versions / sizeof versions[0]; i++) {
        version = str_is(asked, versions[i]) ? versions[i] : version;
    }
    uuid_format(id, text);
    (void)snprintf(m->h->mcp_session, sizeof m->h->mcp_session, "%c-%s", elicits ? 'e' : 'n', text);
    mcp_begin(m, out);
    json_key(out, "protocolVersion");
    json_cstr(out, version);
    put_about(out, "serverInfo");
    put_abilities(out);
    mcp_end(out);
    mcp_answer(m);
}

static void discover(struct mcp *m)
{
    struct buf *out = &m->h->out;

    mcp_begin(m, out);
    json_key(out, "supportedVersions");
    json_open(out, '[');
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        json_cstr(out, versions[i]);
    }
    json_close(out, ']');
    put_abilities(out);
    mcp_no_cache(m, out);
    json_key(out, "_meta");
    json_open(out, '{');
    put_about(out, META("serverInfo"));
    json_close(out, '}');
    mcp_end(out);
    mcp_answer(m);
}

static void ping(struct mcp *m)
{
    mcp_begin(m, &m->h->out);
    mcp_end(&m->h->out);
    mcp_answer(m);
}

/* ---- one message ---- */

static void accept_note(struct http *h)
{
    h->status = 202;
    h->type = NULL;
    h->state = HTTP_READY;
    http_ready(h);
}

static void on_decided(void *self, const struct reply *reply)
{
    struct mcp *m = self;

    (void)reply; /* the stream of the plan shows what came of it */
    m->h->call = NULL;
    accept_note(m->h);
}

/* An answer of the client to a question of ours, or a note. */
static void take_note(struct mcp *m, struct doc message)
{
    if (m->method.len == 0) {
        mcp_take_decision(m, doc_string(m->id), doc_get(message, STR_LIT("result")), on_decided);
        if (m->h->state == HTTP_BODY) {
            accept_note(m->h);
        }
        return;
    }
    if (str_is(m->method, "notifications/cancelled")) {
        mcp_cancel(m, mcp_param(m, "requestId"));
    }
    accept_note(m->h);
}

static void dispatch(struct mcp *m)
{
    static const struct {
        const char *name;
        void (*run)(struct mcp *m);
    } methods[] = {{"initialize", initialize},
                   {"server/discover", discover},
                   {"ping", ping},
                   {"tools/list", mcp_list_tools},
                   {"tools/call", mcp_call_tool},
                   {"resources/list", mcp_list_resources},
                   {"resources/templates/list", mcp_list_templates},
                   {"resources/read", mcp_read_resource}};

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (str_is(m->method, methods[i].name)) {
            methods[i].run(m);
            return;
        }
    }
    mcp_refuse(m, RPC_METHOD, "this server has no such method");
}

static void mcp_free(void *self)
{
    struct mcp *m = self;

    buf_done(&m->message);
    free(m);
}

static bool is_version(struct str text)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        if (str_is(text, versions[i])) {
            return true;
        }
    }
    return false;
}

/* Era and abilities of the client: a modern one describes itself in each request. */
static void read_client(struct mcp *m)
{
    const struct doc meta = mcp_param(m, "_meta");
    const struct str version = doc_string(doc_get(meta, STR_LIT(META("protocolVersion"))));
    const struct doc abilities = doc_get(meta, STR_LIT(META("clientCapabilities")));
    const char *session = m->h->heads.mcp_session;

    m->modern = str_is(version, MCP_MODERN);
    m->elicits = m->modern ? doc_get(abilities, STR_LIT("elicitation")).ptr != NULL
                           : session != NULL && session[0] == 'e';
}

static bool check_version(struct mcp *m)
{
    const char *version = m->h->heads.mcp_version;
    char text[160];

    if (version == NULL || is_version(str_from(version))) {
        return true;
    }
    (void)snprintf(text, sizeof text,
                   "MCP-Protocol-Version: unsupported; there are 2026-07-28, 2025-11-25, "
                   "2025-06-18, 2025-03-26");
    mcp_refuse(m, m->modern ? -32022 : RPC_REQUEST, text);
    m->h->status = 400;
    return false;
}

void mcp_serve(struct http *h)
{
    struct mcp *m = calloc(1, sizeof *m);
    struct bt_error err;
    struct doc message;

    if (m == NULL) {
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for a message");
        return;
    }
    h->own = m;
    h->own_free = mcp_free;
    m->h = h;
    buf_init(&m->message, json_doc_capacity(h->body.len));
    if (json_to_doc(buf_str(&h->body), NULL, &m->message, &err) != BT_OK) {
        mcp_refuse(m, RPC_PARSE, err.msg);
        return;
    }
    message = doc_from_buf(&m->message);
    m->id = doc_get(message, STR_LIT("id"));
    m->method = doc_string(doc_get(message, STR_LIT("method")));
    m->params = doc_get(message, STR_LIT("params"));
    if (!str_is(doc_string(doc_get(message, STR_LIT("jsonrpc"))), "2.0")) {
        mcp_refuse(m, RPC_REQUEST, "expected one message of JSON-RPC 2.0: {\"jsonrpc\": \"2.0\"}");
        return;
    }
    read_client(m);
    if (!check_version(m)) {
        return;
    }
    if (m->id.ptr == NULL || m->method.len == 0) {
        take_note(m, message);
    } else {
        dispatch(m);
    }
}
