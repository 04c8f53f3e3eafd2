/* One test of one value. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"
#include "supervisor/plan/flow/condition_internal.h"

static const char *const names[] = {
    [TEST_EQ] = "eq",         [TEST_NE] = "ne",         [TEST_IN] = "in",
    [TEST_GT] = "gt",         [TEST_GTE] = "gte",       [TEST_LT] = "lt",
    [TEST_LTE] = "lte",       [TEST_EXISTS] = "exists", [TEST_MATCHES] = "matches",
    [TEST_SCHEMA] = "schema", [TEST_VALUE] = "value",
};
_Static_assert(sizeof names / sizeof names[0] == TEST_COUNT, "a name for each");

enum condition_test condition_test_of(struct str name)
{
    int t = 0;
    while (t < TEST_COUNT && !str_is(name, names[t])) {
        t++;
    }
    return (enum condition_test)t;
}

const char *condition_test_name(enum condition_test t)
{
    return names[t];
}

/* What needs no JSON writer, which takes memory: short texts and whole numbers. */
static bool describe_plain(struct doc value, char *ret, size_t size)
{
    const struct doc_head head = doc_head(value);
    if (head.kind == DOC_UINT || head.kind == DOC_BOOL) {
        const int n = head.kind == DOC_UINT ? snprintf(ret, size, "%" PRIu64, head.u)
                                            : snprintf(ret, size, "%s", head.b ? "true" : "false");
        return n > 0 && (size_t)n < size;
    }
    if (head.kind != DOC_STR || head.str.len + 3 > size) {
        return false;
    }
    for (size_t i = 0; i < head.str.len; i++) {
        const char c = head.str.ptr[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\') {
            return false;
        }
        ret[i + 1] = c;
    }
    ret[0] = ret[head.str.len + 1] = '"';
    ret[head.str.len + 2] = '\0';
    return true;
}

void condition_describe(struct doc value, char *ret, size_t size)
{
    struct buf text;
    if (value.ptr != NULL && describe_plain(value, ret, size)) {
        return;
    }
    buf_init(&text, CONDITION_BYTES_MAX);
    if (value.ptr == NULL) {
        buf_add_cstr(&text, "missing");
    } else if (value.len > CONDITION_BYTES_MAX / 4 ||
               doc_to_json(value, false, &text, NULL) != BT_OK) {
        const enum doc_kind kind = doc_head(value).kind;
        buf_clear(&text);
        buf_add_cstr(&text, kind == DOC_ARRAY ? "a list"
                            : kind == DOC_MAP ? "a map"
                                              : "a long text");
    }
    const bool cut = text.len >= size;
    const size_t room = cut && size > 4 ? size - 4 : size - 1;
    const size_t n = utf8_cut((const char *)text.at, text.len, room);
    memcpy(ret, text.at, n);
    memcpy(ret + n, cut ? "…" : "", cut ? sizeof "…" : 1);
    buf_done(&text);
}

/* ---- order ---- */

static int order_of(double a, double b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

static double as_double(const struct doc_head *h)
{
    return h->kind == DOC_UINT ? (double)h->u : h->kind == DOC_INT ? (double)h->i : h->f;
}

static int order_of_numbers(const struct doc_head *a, const struct doc_head *b)
{
    if (a->kind == DOC_UINT && b->kind == DOC_UINT) {
        return a->u < b->u ? -1 : a->u > b->u ? 1 : 0;
    }
    if (a->kind == DOC_INT && b->kind == DOC_INT) {
        return a->i < b->i ? -1 : a->i > b->i ? 1 : 0;
    }
    return order_of(as_double(a), as_double(b));
}

static int order_of_texts(struct str a, struct str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
    return order != 0 ? order : a.len < b.len ? -1 : a.len > b.len ? 1 : 0;
}

/* Numbers with numbers, texts with texts (by their bytes). */
static enum bt_code compare(enum condition_test t, struct doc operand, struct doc value, bool *ret,
                            struct bt_error *err)
{
    const struct doc_head want = doc_head(operand);
    const struct doc_head got = doc_head(value);
    char text[80];
    int order;
    if (want.kind == DOC_STR && got.kind == DOC_STR) {
        order = order_of_texts(got.str, want.str);
    } else if (is_number(want.kind) && is_number(got.kind)) {
        order = order_of_numbers(&got, &want);
    } else {
        condition_describe(value, text, sizeof text);
        return err_set(err, BT_INVALID, "%s needs a %s, got %s", names[t],
                       want.kind == DOC_STR ? "text" : "number", text);
    }
    *ret = t == TEST_GT    ? order > 0
           : t == TEST_GTE ? order >= 0
           : t == TEST_LT  ? order < 0
                           : order <= 0;
    return BT_OK;
}

/* ---- patterns and schemas ---- */

static enum bt_code compile(enum condition_test t, struct doc operand, struct schema **ret,
                            struct bt_error *err)
{
    struct cJSON *tree = NULL;
    enum bt_code code = doc_to_cjson(operand, &tree, err);
    if (code == BT_OK && t == TEST_MATCHES) {
        struct cJSON *schema = cJSON_CreateObject();
        if (schema == NULL || !cJSON_AddItemToObject(schema, "pattern", tree)) {
            cJSON_Delete(schema);
            code = err_set(err, BT_NOMEM, "out of memory for a pattern");
        } else {
            tree = schema;
        }
    }
    code = code == BT_OK ? schema_compile_exact(tree, ret, err) : code;
    cJSON_Delete(tree);
    return code;
}

enum bt_code condition_operand_compiles(enum condition_test t, struct doc operand,
                                        struct bt_error *err)
{
    struct schema *schema = NULL;
    const enum bt_code code = compile(t, operand, &schema, err);
    schema_free(schema);
    return code;
}

static enum bt_code fits(enum condition_test t, struct doc operand, struct doc value, bool *ret,
                         struct bt_error *err)
{
    struct schema *schema = NULL;
    struct cJSON *tree = NULL;
    char text[80];
    uint32_t n = 0;
    if (t == TEST_MATCHES && doc_head(value).kind != DOC_STR) {
        condition_describe(value, text, sizeof text);
        return err_set(err, BT_INVALID, "matches needs a text, got %s", text);
    }
    enum bt_code code = compile(t, operand, &schema, err);
    code = code == BT_OK ? doc_to_cjson(value, &tree, err) : code;
    if (code == BT_OK) {
        code = schema_check(schema, tree, NULL, 0, &n, err);
        *ret = code == BT_OK;
        code = code == BT_INVALID ? BT_OK : code;
    }
    cJSON_Delete(tree);
    schema_free(schema);
    return code == BT_LIMIT ? err_set(err, BT_INVALID, "%s takes too long on this value", names[t])
                            : code;
}

/* ---- all ---- */

static bool is_one_of(struct doc list, struct doc value)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    if (!doc_next(&c, &head)) {
        return false;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        if (doc_eq(doc_skip(&c), value)) {
            return true;
        }
    }
    return false;
}

enum bt_code condition_test_holds(enum condition_test t, struct doc operand, struct doc value,
                                  bool *ret, struct bt_error *err)
{
    switch (t) {
    case TEST_EQ:
        *ret = doc_eq(operand, value);
        return BT_OK;
    case TEST_NE:
        *ret = !doc_eq(operand, value);
        return BT_OK;
    case TEST_IN:
        *ret = is_one_of(operand, value);
        return BT_OK;
    case TEST_GT:
    case TEST_GTE:
    case TEST_LT:
    case TEST_LTE:
        return compare(t, operand, value, ret, err);
    case TEST_MATCHES:
    case TEST_SCHEMA:
        return fits(t, operand, value, ret, err);
    case TEST_EXISTS:
    case TEST_VALUE:
    case TEST_COUNT:
        break;
    }
    *ret = true;
    return BT_OK;
}
