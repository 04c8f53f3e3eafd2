#include "agents/mcp/message.h"

struct mcp_message mcp_message_read(struct doc d)
{
    struct mcp_message m = {.kind = MCP_BAD};
    const struct doc id = doc_get(d, STR_LIT("id"));
    const bool has_id = id.ptr != NULL && doc_head(id).kind != DOC_NIL;

    if (doc_head(d).kind != DOC_MAP) {
        return m;
    }
    m.method = doc_string(doc_get(d, STR_LIT("method")));
    m.id = id;
    m.id_u64 = has_id && doc_head(id).kind == DOC_UINT ? doc_head(id).u : 0;
    if (m.method.ptr != NULL) {
        m.kind = has_id ? MCP_REQUEST : MCP_NOTE;
        m.body = doc_get(d, STR_LIT("params"));
        return m;
    }
    m.body = doc_get(d, STR_LIT("result"));
    m.kind = MCP_RESULT;
    if (m.body.ptr == NULL) {
        m.body = doc_get(d, STR_LIT("error"));
        m.kind = m.body.ptr != NULL && doc_head(m.body).kind == DOC_MAP ? MCP_ERROR : MCP_BAD;
    }
    return m;
}

static enum bt_code to_line(struct buf *doc, struct buf *out, struct bt_error *err)
{
    enum bt_code code = buf_check(doc, err);

    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(doc), false, out, err);
    }
    buf_done(doc);
    return code == BT_OK ? buf_check(out, err) : code;
}

enum bt_code mcp_message_write(uint64_t id, const char *method, struct doc params, struct buf *out,
                               struct bt_error *err)
{
    struct buf doc;

    buf_init(&doc, out->max);
    doc_put_map(&doc, 2u + (id != 0) + (params.ptr != NULL));
    doc_put_cstr(&doc, "jsonrpc");
    doc_put_cstr(&doc, "2.0");
    if (id != 0) {
        doc_put_cstr(&doc, "id");
        doc_put_u64(&doc, id);
    }
    doc_put_cstr(&doc, "method");
    doc_put_cstr(&doc, method);
    if (params.ptr != NULL) {
        doc_put_cstr(&doc, "params");
        doc_put_doc(&doc, params);
    }
    return to_line(&doc, out, err);
}

enum bt_code mcp_message_answer(struct doc id, struct doc result, int code, const char *text,
                                struct buf *out, struct bt_error *err)
{
    struct buf doc;

    buf_init(&doc, out->max);
    doc_put_map(&doc, 3);
    doc_put_cstr(&doc, "jsonrpc");
    doc_put_cstr(&doc, "2.0");
    doc_put_cstr(&doc, "id");
    doc_put_doc(&doc, id);
    if (code == 0) {
        doc_put_cstr(&doc, "result");
        doc_put_doc(&doc, result);
    } else {
        doc_put_cstr(&doc, "error");
        doc_put_map(&doc, 2);
        doc_put_cstr(&doc, "code");
        doc_put_i64(&doc, code);
        doc_put_cstr(&doc, "message");
        doc_put_cstr(&doc, text);
    }
    return to_line(&doc, out, err);
}

static void put_client(struct buf *out)
{
    doc_put_cstr(out, "io.modelcontextprotocol/protocolVersion");
    doc_put_cstr(out, MCP_MODERN);
    doc_put_cstr(out, "io.modelcontextprotocol/clientInfo");
    doc_put_map(out, 2);
    doc_put_cstr(out, "name");
    doc_put_cstr(out, "baton");
    doc_put_cstr(out, "version");
    doc_put_cstr(out, BATON_VERSION);
    doc_put_cstr(out, "io.modelcontextprotocol/clientCapabilities");
    doc_put_map(out, 1);
    doc_put_cstr(out, "elicitation");
    doc_put_map(out, 0);
}

void mcp_message_params(bool modern, uint64_t progress, const char *traceparent,
                        const struct buf *members, uint32_t n_members, struct buf *out)
{
    const bool traced = traceparent != NULL && traceparent[0] != 0;
    const uint32_t meta = (modern ? 3u : 0u) + (progress != 0) + traced;

    doc_put_map(out, n_members + (meta > 0));
    if (members != NULL) {
        buf_add_str(out, buf_str(members));
    }
    if (meta > 0) {
        doc_put_cstr(out, "_meta");
        doc_put_map(out, meta);
        if (modern) {
            put_client(out);
        }
        if (progress != 0) {
            doc_put_cstr(out, "progressToken");
            doc_put_u64(out, progress);
        }
        if (traced) {
            doc_put_cstr(out, "traceparent");
            doc_put_cstr(out, traceparent);
        }
    }
}
