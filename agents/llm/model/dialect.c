#include "agents/llm/model/dialect.h"

#include "agents/llm/model/dialect_internal.h"
#include "agents/llm/model/schema_subset.h"

static const struct {
    const char *name;
    const char *path;
    const char *key_header;
    const char *key_prefix;
    bool has_object;  /* has a mode for "any JSON object" */
    bool only_subset; /* accepts only a subset of JSON Schema (schema_subset.h) */
} dialects[] = {
    [LLM_OPENAI] = {"openai", "/chat/completions", "Authorization", "Bearer ", true, false},
    [LLM_ANTHROPIC] = {"anthropic", "/messages", "x-api-key", "", false, true},
    [LLM_OLLAMA] = {"ollama", "/api/chat", "Authorization", "Bearer ", true, false},
};
_Static_assert(sizeof dialects / sizeof dialects[0] == LLM_DIALECT_COUNT, "one row per dialect");

enum llm_dialect dialect_from_name(struct str name)
{
    enum llm_dialect d = 0;

    while (d < LLM_DIALECT_COUNT && !str_is(name, dialects[d].name)) {
        d++;
    }
    return d;
}

const char *dialect_name(enum llm_dialect d)
{
    return dialects[d].name;
}

const char *dialect_path(enum llm_dialect d)
{
    return dialects[d].path;
}

const char *dialect_key_header(enum llm_dialect d, const char **ret_prefix)
{
    *ret_prefix = dialects[d].key_prefix;
    return dialects[d].key_header;
}

enum llm_output_mode dialect_output_mode(enum llm_dialect d, enum llm_output_mode output_mode)
{
    return output_mode == LLM_OUTPUT_MODE_OBJECT && !dialects[d].has_object ? LLM_OUTPUT_MODE_TEXT
                                                                            : output_mode;
}

enum llm_output_mode dialect_output_mode_for(enum llm_dialect d, enum llm_output_mode output_mode,
                                             const cJSON *schema)
{
    bool open = schema != NULL && dialects[d].only_subset && !schema_subset_can(schema);

    return open && output_mode == LLM_OUTPUT_MODE_SCHEMA
               ? dialect_output_mode(d, LLM_OUTPUT_MODE_OBJECT)
               : output_mode;
}

void dialect_answer_init(struct dialect_answer *a, enum llm_dialect d, size_t max_bytes)
{
    *a = (struct dialect_answer){.dialect = d};
    buf_init(&a->text, max_bytes);
    buf_init(&a->tool, max_bytes);
    buf_init(&a->refusal, max_bytes);
    buf_init(&a->error, DIALECT_ERROR_MAX);
}

void dialect_answer_done(struct dialect_answer *a)
{
    buf_done(&a->text);
    buf_done(&a->tool);
    buf_done(&a->refusal);
    buf_done(&a->error);
}

/* ---- reading: all dialects ---- */

struct str member_text(struct doc map, const char *name)
{
    struct doc d = doc_get(map, str_from(name));
    struct str s = d.ptr == NULL ? (struct str){0} : doc_string(d);

    return s.ptr == NULL ? (struct str){"", 0} : s;
}

bool member_tokens(struct doc map, const char *path, uint64_t *ret)
{
    struct doc d = map.ptr == NULL ? map : doc_path(map, str_from(path));
    struct doc_head h;

    if (d.ptr == NULL) {
        return false;
    }
    h = doc_head(d);
    if (h.kind != DOC_UINT || h.u > LLM_TOKENS_SANE) {
        return false;
    }
    *ret = h.u;
    return true;
}

void copy_name(char ret[LLM_NAME_MAX], struct str name)
{
    size_t n = 0;

    for (; n < name.len && n < LLM_NAME_MAX - 1; n++) {
        char c = name.ptr[n];
        ret[n] = c > ' ' && c < 0x7f ? c : '?';
    }
    if (n > 0) {
        ret[n] = 0;
    }
}

static void add_error(struct dialect_answer *a, struct str text)
{
    size_t room = a->error.max - a->error.len;

    if (text.len > 0) {
        buf_add_str(&a->error, (struct str){text.ptr, text.len < room ? text.len : room});
    }
}

/* {"error":{"message"}}, {"error":"text"}, {"message"}, {"detail"}, {"error":{"error":..}}. */
void dialect_read_error(struct dialect_answer *a, struct doc value)
{
    struct doc e = doc_get(value, STR_LIT("error"));
    struct str text = e.ptr == NULL ? (struct str){0} : doc_string(e);

    a->failed = true;
    if (text.ptr == NULL && e.ptr != NULL && doc_head(e).kind == DOC_MAP) {
        text = member_text(e, "message");
        if (text.len == 0) {
            text = member_text(e, "type");
        }
    }
    if (text.ptr == NULL || text.len == 0) {
        text = member_text(value, "message");
    }
    if (text.len == 0) {
        text = member_text(value, "detail");
    }
    add_error(a, text);
}

enum bt_code dialect_read(struct dialect_answer *a, struct doc value, bool chunk,
                          struct bt_error *err)
{
    struct doc e;

    if (doc_head(value).kind != DOC_MAP) {
        return err_set(err, BT_PROTOCOL, "the server's answer: expected a JSON object");
    }
    e = doc_get(value, STR_LIT("error"));
    if (e.ptr != NULL && doc_head(e).kind != DOC_NIL) {
        dialect_read_error(a, value);
        return BT_OK;
    }
    switch (a->dialect) {
    case LLM_OPENAI:
        openai_read(a, value, chunk);
        break;
    case LLM_ANTHROPIC:
        anthropic_read(a, value, chunk);
        break;
    case LLM_OLLAMA:
        ollama_read(a, value);
        break;
    case LLM_DIALECT_COUNT:
        break;
    }
    if (buf_check(&a->text, err) != BT_OK || buf_check(&a->tool, err) != BT_OK ||
        buf_check(&a->refusal, err) != BT_OK) {
        return err_wrap(err, "the answer");
    }
    return BT_OK;
}

/* Arguments of a tool call: a JSON text, or the object itself. */
void add_tool(struct dialect_answer *a, struct doc arguments)
{
    struct str text = arguments.ptr == NULL ? (struct str){0} : doc_string(arguments);

    a->tool_called = true;
    if (text.ptr != NULL) {
        buf_add_str(&a->tool, text);
    } else if (arguments.ptr != NULL && doc_head(arguments).kind == DOC_MAP) {
        (void)!doc_to_json(arguments, false, &a->tool, NULL); /* the buffer records a failure */
    }
}

/* ---- JSON as servers send it ---- */

static bool hex4(const char *at, uint32_t *ret)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            return false;
        }
        v = v * 16 + digit;
    }
    *ret = v;
    return true;
}

/* Replaces escapes that encode no character. In place: the length stays. */
static void replace_bad_escapes(char *at, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++) {
        uint32_t u = 0;
        uint32_t low = 0;
        if (at[i] != '\\') {
            continue;
        }
        i++;
        if (at[i] != 'u' || len - i < 5 || !hex4(at + i + 1, &u)) {
            continue;
        }
        if (u >= 0xd800 && u < 0xdc00 && len - i >= 11 && at[i + 5] == '\\' && at[i + 6] == 'u' &&
            hex4(at + i + 7, &low) && low >= 0xdc00 && low < 0xe000) {
            i += 10; /* a whole pair */
            continue;
        }
        if (u == 0 || (u >= 0xd800 && u < 0xe000)) {
            memcpy(at + i + 1, "fffd", 4);
        }
        i += 4;
    }
}

enum bt_code dialect_json(struct str json, size_t max_bytes, struct buf *out, struct bt_error *err)
{
    const struct json_limits limits = {.bytes = max_bytes, .depth = 64, .nodes = 500000};
    struct buf clean;
    enum bt_code code;

    if (json.len >= 3 && memcmp(json.ptr, "\xef\xbb\xbf", 3) == 0) {
        json = (struct str){json.ptr + 3, json.len - 3};
    }
    if (json.len == 0) {
        return err_set(err, BT_PROTOCOL, "the server's answer is empty");
    }
    if (json.len > max_bytes) {
        return err_set(err, BT_LIMIT, "the server's JSON has %zu bytes, at most %zu", json.len,
                       max_bytes);
    }
    buf_init(&clean, json.len * 3 + 1);
    (void)buf_add_repaired(&clean, json);
    code = buf_check(&clean, err);
    if (code == BT_OK) {
        replace_bad_escapes((char *)clean.at, clean.len);
        code = json_to_doc(buf_str(&clean), &limits, out, err);
    }
    buf_done(&clean);
    if (code == BT_INVALID) {
        code = err_set(err, BT_PROTOCOL, "the server's answer is not JSON that can be read");
    }
    return code;
}
