#include "agents/sdk/documents/flatten.h"

#include "agents/sdk/documents/pointer.h"
#include "protocol/limits.h"

enum {
    /* Maps and lists around a schema that is still written out. A registration nests it in five
     * more, and has LIMIT_DEPTH in all; the schema itself needs up to three. */
    DEPTH_MAX = LIMIT_DEPTH - 5 - 3,
    SCHEMA_BYTES = 48 * 1024
};

struct writer {
    struct doc spec;
    struct buf *out;
    bool first; /* no member of the current map has been written */
};

static enum bt_code put_schema(struct writer *w, struct doc schema, struct str about, int depth,
                               struct bt_error *err);

/* "#/components/schemas/Pet" → its schema; .ptr NULL for another document's, and for none. */
static struct doc resolve(struct doc spec, struct str ref)
{
    char pointer[POINTER_MAX];

    if (ref.len < 2 || ref.ptr[0] != '#' || ref.len > sizeof pointer) {
        return (struct doc){0};
    }
    memcpy(pointer, ref.ptr + 1, ref.len - 1);
    pointer[ref.len - 1] = 0;
    return pointer_get(spec, pointer);
}

static enum bt_code put_text(struct writer *w, struct str text, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, SCHEMA_BYTES);
    doc_put_str(&doc, text);
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), false, w->out, err);
    }
    buf_done(&doc);
    return code;
}

static enum bt_code put_key(struct writer *w, struct str key, struct bt_error *err)
{
    enum bt_code code;

    buf_add_cstr(w->out, w->first ? "" : ",");
    w->first = false;
    code = put_text(w, key, err);
    buf_add_byte(w->out, ':');
    return code;
}

static bool in_list(struct str name, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (str_is(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* A scalar, or a list of scalars. */
static bool is_flat(struct doc d)
{
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head;
    bool flat = doc_head(d).kind != DOC_MAP;

    (void)doc_next(&c, &head);
    for (uint32_t i = 0; flat && head.kind == DOC_ARRAY && i < head.n; i++) {
        const enum doc_kind kind = doc_head(doc_skip(&c)).kind;
        flat = kind != DOC_MAP && kind != DOC_ARRAY;
    }
    return flat;
}

/* The schemas of a map or a list, each at depth. */
static enum bt_code put_schemas(struct writer *w, struct doc d, int depth, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head;
    enum bt_code code = BT_OK;

    (void)doc_next(&c, &head);
    buf_add_byte(w->out, head.kind == DOC_MAP ? '{' : '[');
    w->first = true;
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        if (head.kind == DOC_MAP) {
            code = put_key(w, doc_string(doc_skip(&c)), err);
        } else {
            buf_add_cstr(w->out, i == 0 ? "" : ",");
        }
        code = code == BT_OK ? put_schema(w, doc_skip(&c), (struct str){0}, depth, err) : code;
    }
    buf_add_byte(w->out, head.kind == DOC_MAP ? '}' : ']');
    w->first = false;
    return code;
}

static enum bt_code put_member(struct writer *w, struct str key, struct doc value, int depth,
                               struct bt_error *err)
{
    static const char *const one[] = {"items", "additionalProperties", "not", NULL};
    static const char *const many[] = {"properties", "patternProperties", "allOf", "anyOf", "oneOf",
                                       NULL};
    static const char *const plain[] = {"type",
                                        "enum",
                                        "const",
                                        "required",
                                        "minimum",
                                        "maximum",
                                        "minLength",
                                        "maxLength",
                                        "pattern",
                                        "minItems",
                                        "maxItems",
                                        "uniqueItems",
                                        "title",
                                        "format",
                                        "multipleOf",
                                        "minProperties",
                                        "maxProperties",
                                        "description",
                                        "exclusiveMinimum",
                                        "exclusiveMaximum",
                                        NULL};
    const enum doc_kind kind = doc_head(value).kind;
    enum bt_code code;

    /* In 3.0 the exclusive bounds are booleans; the plain bound beside them still holds. */
    if (str_is(key, "exclusiveMinimum") || str_is(key, "exclusiveMaximum")) {
        if (kind == DOC_BOOL) {
            return BT_OK;
        }
    }
    if (in_list(key, many) && (kind == DOC_MAP || kind == DOC_ARRAY)) {
        code = put_key(w, key, err);
        return code == BT_OK ? put_schemas(w, value, depth + 2, err) : code;
    }
    if (in_list(key, one) && kind == DOC_MAP) {
        code = put_key(w, key, err);
        return code == BT_OK ? put_schema(w, value, (struct str){0}, depth + 1, err) : code;
    }
    if ((in_list(key, plain) || in_list(key, one)) && is_flat(value)) {
        code = put_key(w, key, err);
        return code == BT_OK ? doc_to_json(value, false, w->out, err) : code;
    }
    return BT_OK; /* an annotation, or nothing that this reader knows: the service checks it */
}

static enum bt_code put_members(struct writer *w, struct doc schema, struct str about, int depth,
                                struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(schema);
    struct doc_head head;
    enum bt_code code = BT_OK;

    (void)doc_next(&c, &head);
    buf_add_byte(w->out, '{');
    w->first = true;
    if (about.len > 0) {
        code = put_key(w, STR_LIT("description"), err);
        code = code == BT_OK ? put_text(w, about, err) : code;
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct str key = doc_string(doc_skip(&c));
        const struct doc value = doc_skip(&c);
        if (about.len == 0 || !str_is(key, "description")) {
            code = put_member(w, key, value, depth, err);
        }
    }
    buf_add_byte(w->out, '}');
    w->first = false;
    return code;
}

/* 3.0 has `nullable: true` where JSON Schema has a list of types. */
static bool is_nullable(struct doc schema)
{
    struct doc d = doc_get(schema, STR_LIT("nullable"));
    return d.ptr != NULL && doc_head(d).b;
}

static enum bt_code put_schema(struct writer *w, struct doc schema, struct str about, int depth,
                               struct bt_error *err)
{
    enum bt_code code;

    for (int i = 0; i < 8 && doc_head(schema).kind == DOC_MAP; i++) {
        const struct str ref = doc_string(doc_get(schema, STR_LIT("$ref")));
        if (ref.ptr == NULL) {
            break;
        }
        schema = resolve(w->spec, ref);
        if (schema.ptr == NULL) {
            return err_set(err, BT_INVALID,
                           "$ref %.*s: leads to nothing in this document; put its files together",
                           STR_ARG(ref));
        }
    }
    if (doc_head(schema).kind != DOC_MAP || depth > DEPTH_MAX ||
        doc_get(schema, STR_LIT("$ref")).ptr != NULL) {
        buf_add_cstr(w->out, "{}"); /* anything */
        return BT_OK;
    }
    if (!is_nullable(schema)) {
        return put_members(w, schema, about, depth, err);
    }
    buf_add_cstr(w->out, "{\"anyOf\":[{\"type\":\"null\"},");
    code = put_members(w, schema, about, depth + 2, err);
    buf_add_cstr(w->out, "]}");
    return code;
}

enum bt_code schema_flatten(struct doc root, struct doc schema, struct str about, int around,
                            struct buf *out, struct bt_error *err)
{
    const size_t before = out->len;
    struct writer w = {.spec = root, .out = out};
    enum bt_code code = put_schema(&w, schema, about, around, err);

    if (code == BT_OK && out->bad == BT_OK && out->len - before > SCHEMA_BYTES) {
        /* What is larger than a card takes is checked by the service alone. */
        buf_truncate(out, before);
        buf_add_cstr(out, "{}");
    }
    return code == BT_OK ? buf_check(out, err) : code;
}
