#include "agents/http/fill.h"

#include "agents/sdk/settings/template.h"
#include "agents/web/url.h"
#include "protocol/limits.h"

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for a request");
}

/* A template is text between zero bytes nowhere: template_next reads C strings. */
static enum bt_code copy_text(struct str text, struct buf *ret, struct bt_error *err)
{
    buf_init(ret, LIMIT_STEP_BYTES);
    buf_add_str(ret, text);
    (void)buf_cstr(ret);
    return ret->bad == BT_OK ? BT_OK : no_memory(err);
}

static struct doc param_get(struct doc params, struct str name)
{
    struct doc d = doc_path(params, name);

    return d.ptr == NULL || doc_head(d).kind == DOC_NIL ? (struct doc){0} : d;
}

/* Whether the text is one placeholder; *ret_name is a part of the text. */
static bool is_placeholder(struct str text, struct str *ret_name)
{
    if (text.len < 3 || text.ptr[0] != '{' || text.ptr[1] == '{' || text.ptr[text.len - 1] != '}' ||
        memchr(text.ptr + 1, '{', text.len - 1) != NULL ||
        memchr(text.ptr, '}', text.len - 1) != NULL) {
        return false;
    }
    *ret_name = (struct str){text.ptr + 1, text.len - 2};
    return true;
}

static enum bt_code add_value(struct str name, struct doc value, enum fill_place place,
                              struct buf *out, struct bt_error *err)
{
    struct buf text;
    struct str s;
    enum bt_code code;

    buf_init(&text, LIMIT_STEP_BYTES);
    code = doc_to_text(value, &text, err);
    s = buf_str(&text);
    if (code == BT_OK && (doc_head(value).kind == DOC_MAP || doc_head(value).kind == DOC_ARRAY) &&
        place != FILL_TEXT) {
        code =
            err_set(err, BT_INVALID,
                    "parameters.%.*s: expected a text, a number or a boolean there", STR_ARG(name));
    }
    if (code == BT_OK && place == FILL_SEGMENT &&
        (s.len == 0 || str_is(s, ".") || str_is(s, ".."))) {
        code = err_set(err, BT_INVALID,
                       "parameters.%.*s: '%.*s' cannot be a part of an address's path",
                       STR_ARG(name), STR_ARG(s));
    }
    if (code == BT_OK && place == FILL_SEGMENT) {
        url_escape(out, s);
    } else if (code == BT_OK) {
        buf_add_str(out, s);
    }
    buf_done(&text);
    return code;
}

enum bt_code fill_text(struct str text, struct doc params, enum fill_place place, struct buf *out,
                       struct bt_error *err)
{
    struct template_piece piece;
    struct buf copy;
    const char *at;
    enum bt_code code = copy_text(text, &copy, err);

    at = buf_cstr(&copy);
    while (code == BT_OK && template_next(&at, &piece, &code, err)) {
        struct doc value;
        if (!piece.is_name) {
            buf_add_str(out, piece.text);
            continue;
        }
        value = param_get(params, piece.text);
        code = value.ptr == NULL
                   ? err_set(err, BT_INVALID, "parameters.%.*s: missing; the action needs it",
                             STR_ARG(piece.text))
                   : add_value(piece.text, value, place, out, err);
    }
    buf_done(&copy);
    return code == BT_OK ? buf_check(out, err) : code;
}

/* ---- documents ---- */

/* What stands for a template's value: itself, a parameter (*ret), or nothing (false). */
static bool substitute(struct doc value, struct doc params, struct doc *ret)
{
    struct str name;

    *ret = value;
    if (doc_head(value).kind == DOC_STR && is_placeholder(doc_string(value), &name)) {
        *ret = param_get(params, name);
        return ret->ptr != NULL;
    }
    return true;
}

static bool is_parameter(struct doc value)
{
    struct str name;
    return doc_head(value).kind == DOC_STR && is_placeholder(doc_string(value), &name);
}

/* A template is of the settings: it nests no deeper than a document may. */
static enum bt_code fill_value(struct doc value, struct doc params, struct buf *out,
                               struct bt_error *err);

static enum bt_code fill_members(struct doc value, struct doc params, struct buf *out,
                                 struct bt_error *err)
{
    const bool map = doc_head(value).kind == DOC_MAP;
    const uint32_t n = doc_head(value).n;
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    struct doc found;
    uint32_t kept = 0;
    enum bt_code code = BT_OK;

    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < n; i++) {
        if (map) {
            (void)doc_skip(&c);
        }
        kept += substitute(doc_skip(&c), params, &found);
    }
    if (map) {
        doc_put_map(out, kept);
    } else {
        doc_put_array(out, kept);
    }
    c = doc_cursor(value);
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        const struct doc key = map ? doc_skip(&c) : (struct doc){0};
        const struct doc member = doc_skip(&c);
        if (!substitute(member, params, &found)) {
            continue;
        }
        if (map) {
            doc_put_doc(out, key);
        }
        if (is_parameter(member)) {
            doc_put_doc(out, found);
        } else {
            code = fill_value(member, params, out, err);
        }
    }
    return code;
}

static enum bt_code fill_value(struct doc value, struct doc params, struct buf *out,
                               struct bt_error *err)
{
    const struct doc_head head = doc_head(value);
    struct buf text;
    enum bt_code code;

    if (head.kind == DOC_MAP || head.kind == DOC_ARRAY) {
        return fill_members(value, params, out, err);
    }
    if (head.kind != DOC_STR) {
        doc_put_doc(out, value);
        return BT_OK;
    }
    buf_init(&text, LIMIT_STEP_BYTES);
    code = fill_text(head.str, params, FILL_TEXT, &text, err);
    doc_put_str(out, buf_str(&text));
    buf_done(&text);
    return code;
}

enum bt_code fill_doc(struct doc template, struct doc params, struct buf *out, struct bt_error *err)
{
    struct doc found;
    enum bt_code code = BT_OK;

    if (!substitute(template, params, &found)) {
        return err_set(err, BT_NOT_FOUND, "parameters.%.*s: missing",
                       (int)doc_string(template).len - 2, doc_string(template).ptr + 1);
    }
    if (is_parameter(template)) {
        doc_put_doc(out, found);
    } else {
        code = fill_value(template, params, out, err);
    }
    return code == BT_OK ? buf_check(out, err) : code;
}

static enum bt_code add_pair(struct str name, struct doc value, struct doc params, bool filled,
                             struct buf *out, struct bt_error *err)
{
    struct buf text;
    enum bt_code code;

    buf_init(&text, LIMIT_STEP_BYTES);
    code = !filled && doc_head(value).kind == DOC_STR
               ? fill_text(doc_string(value), params, FILL_TEXT, &text, err)
               : doc_to_text(value, &text, err);
    if (code == BT_OK) {
        if (out->len > 0) {
            buf_add_byte(out, '&');
        }
        url_escape(out, name);
        buf_add_byte(out, '=');
        url_escape(out, buf_str(&text));
    }
    buf_done(&text);
    return code;
}

enum bt_code fill_pairs(struct doc map, struct doc params, struct buf *out, struct bt_error *err)
{
    const uint32_t n = map.ptr == NULL ? 0 : doc_head(map).n;
    struct doc_cursor c = doc_cursor(map);
    struct doc_head head;
    struct doc value;
    enum bt_code code = BT_OK;

    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct doc member = doc_skip(&c);
        const bool filled = is_parameter(member);
        if (!substitute(member, params, &value)) {
            continue;
        }
        if (doc_head(value).kind != DOC_ARRAY) {
            code = add_pair(name, value, params, filled, out, err);
        }
        for (uint32_t k = 0; doc_head(value).kind == DOC_ARRAY && k < doc_head(value).n; k++) {
            code =
                code == BT_OK ? add_pair(name, doc_at(value, k), params, filled, out, err) : code;
        }
    }
    return code == BT_OK ? buf_check(out, err) : code;
}

/* ---- names ---- */

static enum bt_code text_names(struct str text, fill_see see, void *self, struct bt_error *err)
{
    struct template_piece piece;
    struct buf copy;
    const char *at;
    enum bt_code code = copy_text(text, &copy, err);

    at = buf_cstr(&copy);
    while (code == BT_OK && template_next(&at, &piece, &code, err)) {
        code = piece.is_name ? see(self, piece.text, err) : BT_OK;
    }
    buf_done(&copy);
    return code;
}

static enum bt_code value_names(struct doc value, fill_see see, void *self, struct bt_error *err)
{
    const struct doc_head head = doc_head(value);
    struct doc_cursor c = doc_cursor(value);
    struct doc_head skipped;
    enum bt_code code = BT_OK;

    if (head.kind == DOC_STR) {
        return text_names(head.str, see, self, err);
    }
    if (head.kind != DOC_MAP && head.kind != DOC_ARRAY) {
        return BT_OK;
    }
    (void)doc_next(&c, &skipped);
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        if (head.kind == DOC_MAP) {
            (void)doc_skip(&c); /* a member's name is no template */
        }
        code = value_names(doc_skip(&c), see, self, err);
    }
    return code;
}

enum bt_code fill_names(struct doc template, fill_see see, void *self, struct bt_error *err)
{
    return template.ptr == NULL ? BT_OK : value_names(template, see, self, err);
}
