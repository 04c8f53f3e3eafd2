/* One test of one value. */
#include <cjson/cJSON.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"
#include "supervisor/plan/flow/condition_internal.h"

static const struct str names[] = {
    [TEST_EQ] = {"eq", 2},         [TEST_NE] = {"ne", 2},         [TEST_IN] = {"in", 2},
    [TEST_GT] = {"gt", 2},         [TEST_GTE] = {"gte", 3},       [TEST_LT] = {"lt", 2},
    [TEST_LTE] = {"lte", 3},       [TEST_EXISTS] = {"exists", 6}, [TEST_MATCHES] = {"matches", 7},
    [TEST_SCHEMA] = {"schema", 6}, [TEST_VALUE] = {"value", 5},
};
_Static_assert(sizeof names / sizeof names[0] == TEST_COUNT, "a name for each");

enum condition_test condition_test_of(struct str name)
{
    int t = 0;
    while (t < TEST_COUNT && !str_eq(name, names[t])) {
        t++;
    }
    return (enum condition_test)t;
}

const char *condition_test_name(enum condition_test t)
{
    return names[t].ptr;
}

static size_t put_text(const char *text, size_t n, char *ret)
{
    memcpy(ret, text, n);
    ret[n] = '\0';
    return n;
}

static size_t put_digits(uint64_t v, char *ret)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[sizeof digits - ++n] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    return put_text(digits + sizeof digits - n, n, ret);
}

/* What needs no JSON writer, which takes memory: short texts and whole numbers. 0: it is another
 * value. */
static size_t describe_plain(struct doc value, char *ret, size_t size)
{
    const struct doc_head head = doc_head(value);
    if (head.kind == DOC_UINT) {
        return put_digits(head.u, ret);
    }
    if (head.kind == DOC_BOOL) {
        return head.b ? put_text("true", 4, ret) : put_text("false", 5, ret);
    }
    if (head.kind != DOC_STR || head.str.len + 3 > size) {
        return 0;
    }
    for (size_t i = 0; i < head.str.len; i++) {
        const char c = head.str.ptr[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\') {
            return 0;
        }
        ret[i + 1] = c;
    }
    ret[0] = ret[head.str.len + 1] = '"';
    ret[head.str.len + 2] = '\0';
    return head.str.len + 2;
}

size_t condition_describe(struct doc value, char *ret, size_t size)
{
    struct buf text;
    ASSERT(size >= DESCRIBE_MIN);
    const size_t plain =
        value.ptr == NULL ? put_text("missing", 7, ret) : describe_plain(value, ret, size);
    if (plain > 0) {
        return plain;
    }
    buf_init(&text, CONDITION_BYTES_MAX);
    if (value.len > CONDITION_BYTES_MAX / 4 || doc_to_json(value, false, &text, NULL) != BT_OK) {
        const enum doc_kind kind = doc_head(value).kind;
        buf_clear(&text);
        buf_add_cstr(&text, kind == DOC_ARRAY ? "a list"
                            : kind == DOC_MAP ? "a map"
                                              : "a long text");
    }
    const bool cut = text.len >= size;
    size_t n = utf8_cut((const char *)text.at, text.len, cut ? size - 4 : size - 1);
    memcpy(ret, text.at, n);
    n += put_text(cut ? "…" : "", cut ? sizeof "…" - 1 : 0, ret + n);
    buf_done(&text);
    return n;
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
        return err_set(err, BT_INVALID, "%s needs a %s, got %s", names[t].ptr,
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
    return code == BT_LIMIT
               ? err_set(err, BT_INVALID, "%s takes too long on this value", names[t].ptr)
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
