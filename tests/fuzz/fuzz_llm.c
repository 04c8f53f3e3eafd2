/* A server's answer, byte by byte: stream, dialect, form. The first byte says which dialect, and in
 * what pieces the rest comes; however it comes, it means the same. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model/dialect.h"
#include "agents/llm/model/retry.h"
#include "agents/llm/model/stream.h"
#include "protocol/jsonschema/schema.h"

enum { BYTES_MAX = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static enum bt_code take(void *self, struct str json, bool chunk, struct bt_error *err)
{
    struct dialect_answer *a = self;
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(json.len * 3 + 16));
    code = dialect_json(json, BYTES_MAX, &doc, err);
    if (code == BT_OK) {
        code = dialect_read(a, doc_from_buf(&doc), chunk, err);
    }
    buf_done(&doc);
    return code;
}

static enum bt_code answer(enum llm_dialect d, struct str bytes, size_t piece,
                           struct dialect_answer *ret)
{
    struct stream s;
    struct bt_error err;
    enum bt_code code = BT_OK;

    dialect_answer_init(ret, d, BYTES_MAX);
    stream_init(&s, d == LLM_OLLAMA, BYTES_MAX, take, ret);
    for (size_t at = 0; code == BT_OK && at < bytes.len; at += piece) {
        size_t n = bytes.len - at < piece ? bytes.len - at : piece;
        code = stream_feed(&s, (struct str){bytes.ptr + at, n}, &err);
    }
    if (code == BT_OK) {
        code = stream_end(&s, &err);
    }
    stream_done(&s);
    return code;
}

static void form(struct str text)
{
    struct str clean = answer_parser_clean(text);
    cJSON *value = NULL;
    struct bt_error err;

    require(clean.len == 0 ||
            (clean.ptr >= text.ptr && clean.ptr + clean.len <= text.ptr + text.len));
    if (answer_parser_json(clean, &value, &err) == BT_OK) {
        require(value != NULL);
        (void)answer_parser_is_strict(value);
    } else {
        require(value == NULL);
    }
    cJSON_Delete(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dialect_answer whole;
    struct dialect_answer pieces;
    struct str bytes = {(const char *)data + 1, size - 1};
    enum llm_dialect d;
    enum bt_code code;

    if (size < 1) {
        return 0;
    }
    d = (enum llm_dialect)(data[0] % LLM_DIALECT_COUNT);
    code = answer(d, bytes, bytes.len + 1, &whole);
    require(code == answer(d, bytes, data[0] / LLM_DIALECT_COUNT + 1, &pieces));
    require(str_eq(buf_str(&whole.text), buf_str(&pieces.text)));
    require(whole.done == pieces.done && whole.finish == pieces.finish);
    form(buf_str(&whole.text));
    form(bytes);
    require(retry_after_read(bytes, 1000) == MSEC_NEVER ||
            retry_after_read(bytes, 1000) <= RETRY_AFTER_MAX_MS);
    dialect_answer_done(&whole);
    dialect_answer_done(&pieces);
    return 0;
}
