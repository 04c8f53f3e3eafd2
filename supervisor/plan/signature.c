/*
 * The signature of a step in plans of PtcRunner: the types of its result, "{price :float, note
 * :string?}". It becomes the JSON Schema that the result is verified by. Of "(inputs) -> output"
 * only the output counts.
 *
 *   type = ":" name | "{" [name type ...] "}" | "[" type "]", each with "?" when it may be missing
 */
#include "protocol/base/utf8.h"
#include "supervisor/plan/signature_internal.h"

enum { DEPTH_MAX = 12, MEMBERS_MAX = 256 };

struct scanner {
    struct str text;
    size_t at;
    uint32_t depth;
    uint32_t members;
    struct bt_error *err;
};

static void skip_blanks(struct scanner *s)
{
    while (s->at < s->text.len &&
           ((unsigned char)s->text.ptr[s->at] <= ' ' || s->text.ptr[s->at] == ',')) {
        s->at++;
    }
}

static bool take(struct scanner *s, char c)
{
    skip_blanks(s);
    if (s->at < s->text.len && s->text.ptr[s->at] == c) {
        s->at++;
        return true;
    }
    return false;
}

static struct str take_name(struct scanner *s)
{
    const size_t from = s->at;
    while (s->at < s->text.len && strchr(" \t\r\n,:{}[]()?", s->text.ptr[s->at]) == NULL) {
        s->at++;
    }
    return (struct str){s->text.ptr + from, s->at - from};
}

static enum bt_code wrong(struct scanner *s, const char *expected)
{
    const struct str rest = {s->text.ptr + s->at, s->text.len - s->at};
    return err_set(s->err, BT_INVALID, "expected %s %s%.*s%s", expected,
                   rest.len > 0 ? "at \"" : "at the end", (int)utf8_cut(rest.ptr, rest.len, 40),
                   rest.ptr, rest.len > 0 ? "\"" : "");
}

static void put_type(struct buf *out, const char *type)
{
    doc_put_map(out, 1);
    doc_put_cstr(out, "type");
    doc_put_cstr(out, type);
}

static enum bt_code read_word(struct scanner *s, struct buf *out)
{
    static const char *const words[][2] = {
        {"string", "string"}, {"int", "integer"},  {"integer", "integer"}, {"float", "number"},
        {"number", "number"}, {"bool", "boolean"}, {"boolean", "boolean"}, {"keyword", "string"},
        {"atom", "string"},   {"map", "object"},   {"list", "array"}};
    const size_t from = s->at;
    const struct str word = take_name(s);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_is(word, words[i][0])) {
            put_type(out, words[i][1]);
            return BT_OK;
        }
    }
    if (str_is(word, "any")) {
        doc_put_bool(out, true);
        return BT_OK;
    }
    s->at = from;
    return wrong(s, "string, int, float, bool, keyword, map, list or any after \":\"");
}

static enum bt_code read_type(struct scanner *s, struct buf *out, bool *ret_optional);

static enum bt_code read_members(struct scanner *s, struct buf *properties, struct buf *required,
                                 uint32_t *ret_n, uint32_t *ret_required)
{
    while (!take(s, '}')) {
        bool optional = false;
        const struct str name = take_name(s);
        if (name.len == 0) {
            return wrong(s, "a name or \"}\"");
        }
        if (++s->members > MEMBERS_MAX) {
            return err_set(s->err, BT_LIMIT, "more than %d members", MEMBERS_MAX);
        }
        doc_put_str(properties, name);
        const enum bt_code code = read_type(s, properties, &optional);
        if (code != BT_OK) {
            return code;
        }
        ++*ret_n;
        if (!optional) {
            doc_put_str(required, name);
            ++*ret_required;
        }
    }
    return BT_OK;
}

static enum bt_code read_map(struct scanner *s, struct buf *out)
{
    struct buf properties;
    struct buf required;
    uint32_t n = 0;
    uint32_t n_required = 0;
    buf_init(&properties, LIMIT_CONTROL_BYTES);
    buf_init(&required, LIMIT_CONTROL_BYTES);
    const enum bt_code code = read_members(s, &properties, &required, &n, &n_required);
    if (code == BT_OK) {
        doc_put_map(out, 3);
        doc_put_cstr(out, "type");
        doc_put_cstr(out, "object");
        doc_put_cstr(out, "properties");
        doc_put_map(out, n);
        buf_add_str(out, buf_str(&properties));
        doc_put_cstr(out, "required");
        doc_put_array(out, n_required);
        buf_add_str(out, buf_str(&required));
    }
    out->bad = out->bad != BT_OK         ? out->bad
               : properties.bad != BT_OK ? properties.bad
                                         : required.bad;
    buf_done(&properties);
    buf_done(&required);
    return code;
}

static enum bt_code read_list(struct scanner *s, struct buf *out)
{
    bool optional;
    doc_put_map(out, 2);
    doc_put_cstr(out, "type");
    doc_put_cstr(out, "array");
    doc_put_cstr(out, "items");
    const enum bt_code code = read_type(s, out, &optional);
    return code == BT_OK && !take(s, ']') ? wrong(s, "\"]\"") : code;
}

/* Recursion is bounded by DEPTH_MAX. */
static enum bt_code read_type(struct scanner *s, struct buf *out, bool *ret_optional)
{
    struct buf type;
    enum bt_code code;
    if (++s->depth > DEPTH_MAX) {
        return err_set(s->err, BT_LIMIT, "more than %d levels", DEPTH_MAX);
    }
    buf_init(&type, LIMIT_CONTROL_BYTES);
    if (take(s, ':')) {
        code = read_word(s, &type);
    } else if (take(s, '{')) {
        code = read_map(s, &type);
    } else if (take(s, '[')) {
        code = read_list(s, &type);
    } else {
        code = wrong(s, "a type (\":string\", \"{name :type}\", \"[:type]\")");
    }
    *ret_optional = code == BT_OK && take(s, '?');
    if (*ret_optional) {
        doc_put_map(out, 1);
        doc_put_cstr(out, "anyOf");
        doc_put_array(out, 2);
        put_type(out, "null");
    }
    buf_add_str(out, buf_str(&type));
    out->bad = out->bad != BT_OK ? out->bad : type.bad;
    buf_done(&type);
    s->depth--;
    return code;
}

/* Only what stands after "->", if there is one. */
static void skip_inputs(struct scanner *s)
{
    for (size_t i = 0; i + 1 < s->text.len; i++) {
        if (s->text.ptr[i] == '-' && s->text.ptr[i + 1] == '>') {
            s->at = i + 2;
        }
    }
}

enum bt_code plan_signature_schema(struct str text, struct buf *out, struct bt_error *err)
{
    struct scanner s = {.text = text, .err = err};
    bool optional;
    skip_inputs(&s);
    enum bt_code code = read_type(&s, out, &optional);
    skip_blanks(&s);
    if (code == BT_OK && s.at < s.text.len) {
        code = wrong(&s, "the end");
    }
    return code == BT_OK ? buf_check(out, err) : code;
}
