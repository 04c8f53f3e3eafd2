#include "agents/mcp/content.h"

#include "agents/sdk/step.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"

enum { REASON_MAX = 1000 };

void mcp_content_data(struct bt_step *step, struct doc value)
{
    struct buf json;
    enum bt_code code;

    buf_init(&json, LIMIT_RESULT_BYTES);
    code = doc_to_json(value, false, &json, NULL);
    if (code == BT_OK) {
        bt_step_reply_json(step, buf_cstr(&json), json.len);
    } else if (code == BT_NOMEM) {
        step_lose(step, "the result");
    } else {
        bt_step_fail(step, "VALIDATION_ERROR", false, "the result has more than %d bytes",
                     LIMIT_RESULT_BYTES);
    }
    buf_done(&json);
}

/* The texts of the content, a line break between them. Returns how many other items there are. */
static uint32_t read_texts(struct doc content, struct buf *out)
{
    const uint32_t n =
        content.ptr != NULL && doc_head(content).kind == DOC_ARRAY ? doc_head(content).n : 0;
    struct doc_cursor c = doc_cursor(content);
    struct doc_head head;
    uint32_t others = 0;

    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < n; i++) {
        const struct doc item = doc_skip(&c);
        const struct str text = doc_string(doc_get(item, STR_LIT("text")));
        if (!str_is(doc_string(doc_get(item, STR_LIT("type"))), "text") || text.ptr == NULL) {
            others++;
            continue;
        }
        if (out->len > 0) {
            buf_add_byte(out, '\n');
        }
        buf_add_str(out, text);
    }
    return others;
}

static void put_member(struct buf *out, const char *name, struct doc value)
{
    doc_put_cstr(out, name);
    doc_put_doc(out, value);
}

/* Data beside the text: structured content, and the content when it is more than texts. */
static void reply_data(struct bt_step *step, struct doc structured, struct doc content,
                       uint32_t others)
{
    struct buf both;

    if (others == 0) {
        mcp_content_data(step, structured);
        return;
    }
    buf_init(&both, json_doc_capacity(LIMIT_RESULT_BYTES));
    doc_put_map(&both, structured.ptr != NULL ? 2 : 1);
    put_member(&both, "content", content);
    if (structured.ptr != NULL) {
        put_member(&both, "structuredContent", structured);
    }
    if (both.bad == BT_NOMEM) {
        step_lose(step, "the result");
    } else {
        mcp_content_data(step, doc_from_buf(&both));
    }
    buf_done(&both);
}

void mcp_content_reply(struct bt_step *step, struct doc result, bool repeatable)
{
    const struct doc content = doc_get(result, STR_LIT("content"));
    const struct doc structured = doc_get(result, STR_LIT("structuredContent"));
    const struct doc failed = doc_get(result, STR_LIT("isError"));
    struct buf text;
    uint32_t others;

    buf_init(&text, LIMIT_RESULT_BYTES);
    others = read_texts(content, &text);
    if (text.bad == BT_NOMEM) {
        step_lose(step, "the texts of the result");
    } else if (text.bad != BT_OK) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "the texts of the result have more than %d "
                     "bytes",
                     LIMIT_RESULT_BYTES);
    } else if (failed.ptr != NULL && doc_head(failed).b) {
        bt_step_fail(step, "UNKNOWN", repeatable, "the tool failed: %.*s",
                     (int)utf8_cut(buf_cstr(&text), text.len, REASON_MAX), buf_cstr(&text));
    } else {
        if (text.len > 0) {
            bt_step_reply_bytes(step, buf_cstr(&text), text.len);
        }
        if (structured.ptr != NULL || others > 0) {
            reply_data(step, structured, content, others);
        } else if (text.len == 0) {
            bt_step_reply_text(step, "done");
        }
    }
    buf_done(&text);
}

void mcp_content_resource(struct bt_step *step, struct doc result)
{
    const struct doc contents = doc_get(result, STR_LIT("contents"));
    const struct doc first =
        contents.ptr != NULL && doc_head(contents).n == 1 ? doc_at(contents, 0) : (struct doc){0};
    const struct str text =
        first.ptr != NULL ? doc_string(doc_get(first, STR_LIT("text"))) : (struct str){0};

    if (text.ptr != NULL) {
        bt_step_reply_bytes(step, text.ptr, text.len);
    } else if (contents.ptr != NULL) {
        mcp_content_data(step, contents);
    } else {
        bt_step_fail(step, "VALIDATION_ERROR", false, "the answer has no contents");
    }
}
