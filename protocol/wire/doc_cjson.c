/* Conversion between docs and cJSON trees. Recursion is bounded by WIRE_DEPTH_MAX. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/mp_head_internal.h"
#include "protocol/wire/mp_validate.h"

enum { PRINT_BYTES_MAX = 1 << 30 }; /* no answer and no plan is larger */

#define DOUBLE_INTEGER_MAX 9007199254740992.0 /* 2^53: up to here a double holds every integer */

struct tree_builder {
    struct doc_cursor cursor;
    struct buf text; /* the current string with a terminating zero */
    struct bt_error *err;
    int big; /* what an integer over 2^53 becomes: cJSON_String, cJSON_Raw, or cJSON_Invalid = an
                error */
};

static enum bt_code out_of_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for a JSON tree");
}

static const char *terminated(struct tree_builder *b, struct str s)
{
    buf_clear(&b->text);
    buf_add_str(&b->text, s);
    return buf_cstr(&b->text);
}

static cJSON *new_string(struct tree_builder *b, const struct doc_head *h)
{
    const char *text;

    buf_clear(&b->text);
    if (h->kind == DOC_BIN) {
        json_put_base64(&b->text, h->str);
    } else {
        buf_add_str(&b->text, h->str);
    }
    text = buf_cstr(&b->text);
    return b->text.bad == BT_OK ? cJSON_CreateString(text) : NULL;
}

static bool is_big(const struct doc_head *h)
{
    return (h->kind == DOC_UINT && h->u > (uint64_t)DOUBLE_INTEGER_MAX) ||
           (h->kind == DOC_INT && h->i < -(int64_t)DOUBLE_INTEGER_MAX);
}

static cJSON *new_digits(struct tree_builder *b, const struct doc_head *h)
{
    buf_clear(&b->text);
    if (h->kind == DOC_UINT) {
        buf_printf(&b->text, "%llu", (unsigned long long)h->u);
    } else {
        buf_printf(&b->text, "%lld", (long long)h->i);
    }
    return b->big == cJSON_Raw ? cJSON_CreateRaw(buf_cstr(&b->text))
                               : cJSON_CreateString(buf_cstr(&b->text));
}

static cJSON *new_item(struct tree_builder *b, const struct doc_head *h)
{
    switch (h->kind) {
    case DOC_NIL:
        return cJSON_CreateNull();
    case DOC_BOOL:
        return cJSON_CreateBool(h->b);
    case DOC_INT:
        return cJSON_CreateNumber((double)h->i);
    case DOC_UINT:
        return cJSON_CreateNumber((double)h->u);
    case DOC_FLOAT:
        return cJSON_CreateNumber(h->f);
    case DOC_STR:
    case DOC_BIN:
        return new_string(b, h);
    case DOC_ARRAY:
        return cJSON_CreateArray();
    case DOC_MAP:
        return cJSON_CreateObject();
    }
    return NULL;
}

static enum bt_code build(struct tree_builder *b, uint32_t depth, cJSON **ret);

static enum bt_code build_members(struct tree_builder *b, const struct doc_head *h, uint32_t depth,
                                  cJSON *parent)
{
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; code == BT_OK && i < h->n; i++) {
        struct doc_head key = {.kind = DOC_NIL};
        cJSON *item = NULL;
        bool added;

        if (h->kind == DOC_MAP && !(doc_next(&b->cursor, &key) && key.kind == DOC_STR)) {
            return err_set(b->err, BT_INVALID, "the key of a map is no string");
        }
        code = build(b, depth + 1, &item);
        if (code != BT_OK) {
            break;
        }
        if (h->kind == DOC_MAP) {
            const char *name = terminated(b, key.str);
            added = b->text.bad == BT_OK && cJSON_AddItemToObject(parent, name, item);
        } else {
            added = cJSON_AddItemToArray(parent, item);
        }
        if (!added) {
            cJSON_Delete(item);
            code = out_of_memory(b->err);
        }
    }
    return code;
}

static enum bt_code build(struct tree_builder *b, uint32_t depth, cJSON **ret)
{
    struct doc_head h;
    cJSON *item;
    enum bt_code code;

    if (!doc_next(&b->cursor, &h)) {
        return err_set(b->err, BT_INVALID, "the document ends too early");
    }
    if (depth > WIRE_DEPTH_MAX) {
        return err_set(b->err, BT_LIMIT, "nested deeper than %d", WIRE_DEPTH_MAX);
    }
    if (is_big(&h) && b->big == cJSON_Invalid) {
        return err_set(b->err, BT_INVALID, "an integer over 2^53 cannot be held exactly here");
    }
    item = is_big(&h) ? new_digits(b, &h) : new_item(b, &h);
    if (item == NULL) {
        return out_of_memory(b->err);
    }
    code = build_members(b, &h, depth, item);
    if (code != BT_OK) {
        cJSON_Delete(item);
        return code;
    }
    *ret = item;
    return BT_OK;
}

static enum bt_code to_tree(struct doc d, int big, struct cJSON **ret, struct bt_error *err)
{
    struct tree_builder b = {.cursor = doc_cursor(d), .err = err, .big = big};
    enum bt_code code;

    buf_init(&b.text, d.len * 2 + 64); /* base64 adds a third; the digits of a short document */
    code = build(&b, 0, ret);
    buf_done(&b.text);
    return code;
}

enum bt_code doc_to_cjson(struct doc d, struct cJSON **ret, struct bt_error *err)
{
    return to_tree(d, cJSON_Invalid, ret, err);
}

enum bt_code doc_to_cjson_digits(struct doc d, struct cJSON **ret, struct bt_error *err)
{
    return to_tree(d, cJSON_String, ret, err);
}

static enum bt_code put_number(double v, struct buf *out, struct bt_error *err)
{
    if (!isfinite(v)) {
        return err_set(err, BT_INVALID, "a number must be finite");
    }
    if (floor(v) == v && fabs(v) <= DOUBLE_INTEGER_MAX) {
        doc_put_i64(out, (int64_t)v);
    } else {
        doc_put_f64(out, v);
    }
    return BT_OK;
}

/* The digits of an integer, as json_parse_exact has them. */
static enum bt_code put_digits(struct str digits, struct buf *out, struct bt_error *err)
{
    const size_t start = out->len;
    enum bt_code code = json_to_doc(digits, NULL, out, err);
    struct doc_head head;

    if (code != BT_OK) {
        return code;
    }
    head = doc_head((struct doc){out->at + start, out->len - start});
    return head.kind == DOC_UINT || head.kind == DOC_INT
               ? BT_OK
               : err_set(err, BT_INVALID, "a raw item of a tree must be an integer");
}

static enum bt_code put_tree(const cJSON *tree, uint32_t depth, struct buf *out,
                             struct bt_error *err);

static enum bt_code put_members(const cJSON *tree, uint32_t depth, struct buf *out,
                                struct bt_error *err)
{
    enum bt_code code = BT_OK;
    const cJSON *child;
    uint32_t n = 0;

    for (child = tree->child; child != NULL; child = child->next) {
        n++;
    }
    if (cJSON_IsObject(tree)) {
        doc_put_map(out, n);
    } else {
        doc_put_array(out, n);
    }
    for (child = tree->child; code == BT_OK && child != NULL; child = child->next) {
        if (cJSON_IsObject(tree)) {
            doc_put_cstr(out, child->string == NULL ? "" : child->string);
        }
        code = put_tree(child, depth + 1, out, err);
    }
    return code;
}

static enum bt_code put_tree(const cJSON *tree, uint32_t depth, struct buf *out,
                             struct bt_error *err)
{
    if (depth > WIRE_DEPTH_MAX) {
        return err_set(err, BT_LIMIT, "nested deeper than %d", WIRE_DEPTH_MAX);
    }
    if (cJSON_IsArray(tree) || cJSON_IsObject(tree)) {
        return put_members(tree, depth, out, err);
    }
    if (cJSON_IsNumber(tree)) {
        return put_number(tree->valuedouble, out, err);
    }
    if (cJSON_IsRaw(tree) && tree->valuestring != NULL) {
        return put_digits(str_from(tree->valuestring), out, err);
    }
    if (cJSON_IsString(tree) && tree->valuestring != NULL) {
        doc_put_cstr(out, tree->valuestring);
    } else if (cJSON_IsBool(tree)) {
        doc_put_bool(out, cJSON_IsTrue(tree));
    } else if (cJSON_IsNull(tree)) {
        doc_put_nil(out);
    } else {
        return err_set(err, BT_INVALID, "the tree holds an item that is no JSON value");
    }
    return BT_OK;
}

enum bt_code cjson_to_doc(const struct cJSON *tree, struct buf *out, struct bt_error *err)
{
    size_t start = out->len;
    enum bt_code code = put_tree(tree, 0, out, err);

    if (code == BT_OK) {
        code = buf_check(out, err);
    }
    if (code == BT_OK) { /* a tree made by code may hold bad UTF-8 or a key twice */
        code = mp_validate(out->at + start, out->len - start, NULL, err);
    }
    if (code != BT_OK) {
        buf_truncate(out, start);
    }
    return code;
}

enum bt_code cjson_to_json(const struct cJSON *tree, struct buf *out, struct bt_error *err)
{
    struct buf doc;
    size_t start = out->len;
    enum bt_code code;

    buf_init(&doc, out->max + 1024);
    code = cjson_to_doc(tree, &doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, out, err);
    }
    buf_done(&doc);
    if (code != BT_OK && out->bad == BT_OK) {
        buf_truncate(out, start);
    }
    return code;
}

static char *print_line(const cJSON *tree, struct bt_error *err)
{
    struct buf out;
    char *text = NULL;

    buf_init(&out, PRINT_BYTES_MAX);
    if (cjson_to_json(tree, &out, err) == BT_OK) {
        text = cJSON_malloc(out.len + 1);
        if (text != NULL) {
            memcpy(text, buf_cstr(&out), out.len + 1);
        } else {
            (void)out_of_memory(err);
        }
    }
    buf_done(&out);
    return text;
}

/* Makes each number of the list and below it a text that cJSON prints as it is. */
static bool spell_numbers(cJSON *list, struct bt_error *err)
{
    for (cJSON *v = list; v != NULL; v = v->next) {
        if (cJSON_IsNumber(v)) {
            v->valuestring = print_line(v, err);
            v->type = cJSON_Raw;
        }
        if ((v->type == cJSON_Raw && v->valuestring == NULL) || !spell_numbers(v->child, err)) {
            return false;
        }
    }
    return true;
}

char *cjson_print(const struct cJSON *tree, bool pretty, struct bt_error *err)
{
    cJSON *copy;
    char *text = NULL;

    if (tree == NULL) {
        (void)err_set(err, BT_INVALID, "there is no value to print");
        return NULL;
    }
    if (!pretty) {
        return print_line(tree, err);
    }
    copy = cJSON_Duplicate(tree, true);
    if (copy == NULL) {
        (void)out_of_memory(err);
    } else if (spell_numbers(copy, err)) {
        text = cJSON_Print(copy);
    }
    cJSON_Delete(copy);
    return text;
}

static enum bt_code parse(struct str json, const struct json_limits *limits, int big,
                          struct cJSON **ret, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(json.len));
    code = json_to_doc(json, limits, &doc, err);
    if (code == BT_OK) {
        code = to_tree(doc_from_buf(&doc), big, ret, err);
    }
    buf_done(&doc);
    return code;
}

enum bt_code json_parse(struct str json, struct cJSON **ret, struct bt_error *err)
{
    return parse(json, NULL, cJSON_Invalid, ret, err);
}

enum bt_code json_parse_exact(struct str json, struct cJSON **ret, struct bt_error *err)
{
    static const struct json_limits whole_answers = {SIZE_MAX, WIRE_DEPTH_MAX, UINT32_MAX};

    return parse(json, &whole_answers, cJSON_Raw, ret, err);
}
