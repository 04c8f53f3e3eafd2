#include "agents/exec/output.h"

#include "agents/exec/reply.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

/* The limits of bt_step_reply_json: JSON that passes here is accepted there. */
static const struct json_limits limits = {
    .bytes = LIMIT_RESULT_BYTES, .depth = LIMIT_DEPTH - 4, .nodes = LIMIT_NODES - 1024};

static enum bt_code is_json(struct str s, struct bt_error *err)
{
    struct buf scratch;
    enum bt_code code;

    buf_init(&scratch, json_doc_capacity(LIMIT_RESULT_BYTES));
    code = json_to_doc(s, &limits, &scratch, err);
    buf_done(&scratch);
    return code;
}

/* Replies with the repaired text; its data has the number of replaced bytes. */
static void reply_repaired(struct bt_step *step, struct str bytes)
{
    struct buf text;
    struct buf doc;
    struct buf json;
    size_t replaced;

    buf_init(&text, LIMIT_RESULT_BYTES);
    buf_init(&doc, LIMIT_RESULT_BYTES);
    buf_init(&json, (size_t)LIMIT_RESULT_BYTES * 2);
    replaced = buf_add_repaired(&text, bytes);
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "text");
    doc_put_str(&doc, buf_str(&text));
    doc_put_cstr(&doc, "replacedBytes");
    doc_put_u64(&doc, replaced);
    if (text.bad != BT_OK || doc.bad != BT_OK ||
        doc_to_json(doc_from_buf(&doc), false, &json, NULL) != BT_OK) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "result_too_large: the output is not UTF-8, and too large to be repaired");
    } else {
        bt_step_reply_json(step, (const char *)json.at, json.len);
        bt_step_reply_bytes(step, (const char *)text.at, text.len);
    }
    buf_done(&text);
    buf_done(&doc);
    buf_done(&json);
}

static void reply_text(struct bt_step *step, struct str bytes)
{
    if (bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n') {
        bytes.len--;
        bytes.len -= bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\r';
    }
    if (bytes.len == 0) {
        bt_step_reply_bytes(step, "", 0);
    } else if (utf8_valid(bytes.ptr, bytes.len) && memchr(bytes.ptr, 0, bytes.len) == NULL) {
        bt_step_reply_bytes(step, bytes.ptr, bytes.len);
    } else {
        reply_repaired(step, bytes);
    }
}

void output_reply(struct bt_step *step, const char *id, enum exec_output how, struct str bytes)
{
    struct str json = str_trimmed(bytes);
    bool looks = json.len > 0 && (json.ptr[0] == '{' || json.ptr[0] == '[');
    struct bt_error err;

    if (how == EXEC_OUTPUT_REPLY) {
        reply_send(step, id, json);
    } else if (how == EXEC_OUTPUT_JSON) {
        if (is_json(json, &err) == BT_OK) {
            bt_step_reply_json(step, json.ptr, json.len);
        } else {
            bt_step_fail(step, "UNKNOWN", false, "%s: its output is not JSON: %s", id, err.msg);
        }
    } else if (how == EXEC_OUTPUT_AUTO && looks && is_json(json, NULL) == BT_OK) {
        bt_step_reply_json(step, json.ptr, json.len);
    } else {
        reply_text(step, bytes);
    }
}
