#include "supervisor/plan/subst_internal.h"

#include <string.h>

#include "protocol/limits.h"
#include "protocol/wire/mp_validate.h"

enum { FRAMES_MAX = 2 * LIMIT_DEPTH };

static enum bt_code reject(const struct template_ref *t, struct bt_error *err)
{
    return err_set(err, BT_INVALID, "template \"%.*s\" %s",
                   (int)(t->text.len < 100 ? t->text.len : 100), t->text.ptr,
                   template_kind_text(t->kind));
}

/* The next template with one of the words; *ret_more: which of `more`, or n_more. */
static bool next_of(const struct subst *s, struct str text, size_t *from, struct template_ref *ret,
                    uint32_t *ret_more)
{
    size_t other = *from;
    *ret_more = s->n_more;
    if (!template_next_of(s->word, text, from, ret)) {
        return false;
    }
    if (ret->kind == TEMPLATE_FOREIGN && s->n_more > 0) {
        return template_next_in(s->more, s->n_more, text, &other, ret, ret_more);
    }
    return true;
}

static enum bt_code value_of(const struct subst *s, const struct template_ref *t, uint32_t more,
                             struct doc *ret, struct bt_error *err)
{
    if (t->kind == TEMPLATE_OK && more < s->n_more) {
        return s->lookup_more(t, more, ret, s->self, err);
    }
    return t->kind == TEMPLATE_OK ? s->lookup(t, ret, s->self, err) : reject(t, err);
}

enum bt_code subst_text(const struct subst *s, struct str text, struct buf *out,
                        struct bt_error *err)
{
    struct template_ref t;
    size_t from = 0;
    size_t done = 0;
    uint32_t more;
    while (next_of(s, text, &from, &t, &more)) {
        struct doc value;
        if (t.kind == TEMPLATE_FOREIGN) {
            continue;
        }
        buf_add(out, text.ptr + done, t.at - done);
        enum bt_code code = value_of(s, &t, more, &value, err);
        code = code == BT_OK ? doc_to_text(value, out, err) : code;
        if (code != BT_OK) {
            return code;
        }
        done = t.at + t.len;
    }
    buf_add(out, text.ptr + done, text.len - done);
    return buf_check(out, err);
}

/* ---- templates in values ---- */

static bool stands_in(struct str what, struct str text)
{
    return text.len >= what.len && memmem(text.ptr, text.len, what.ptr, what.len) != NULL;
}

/* The author of the document must have written each template of the text. */
static enum bt_code check_text(const struct subst *s, struct str text, struct str written,
                               struct bt_error *err)
{
    struct template_ref t;
    size_t from = 0;
    while (template_next_of(s->own, text, &from, &t)) {
        if (t.kind != TEMPLATE_FOREIGN && !stands_in(t.text, written)) {
            return err_set(
                err, BT_INVALID,
                "a value contains the template \"%.*s\"; only the plan itself can name %.*s",
                (int)(t.text.len < 100 ? t.text.len : 100), t.text.ptr, STR_ARG(s->own));
        }
    }
    return BT_OK;
}

static enum bt_code check_value(const struct subst *s, struct doc value, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    enum bt_code code = BT_OK;
    while (code == BT_OK && doc_next(&c, &head)) {
        if (head.kind == DOC_STR) {
            code = check_text(s, head.str, (struct str){"", 0}, err);
        }
    }
    return code;
}

/* Appends a string of the document: the value of its only template, or the string with values. */
static enum bt_code put_string(const struct subst *s, struct str text, struct buf *out,
                               struct bt_error *err)
{
    struct template_ref t;
    struct buf rendered;
    enum bt_code code;
    size_t from = 0;
    uint32_t more;
    if (next_of(s, text, &from, &t, &more) && t.kind == TEMPLATE_OK && t.at == 0 &&
        t.len == text.len) {
        struct doc value;
        code = value_of(s, &t, more, &value, err);
        code = code == BT_OK && s->own.len > 0 ? check_value(s, value, err) : code;
        if (code == BT_OK) {
            doc_put_doc(out, value);
        }
        return code;
    }
    buf_init(&rendered, LIMIT_STEP_BYTES);
    code = subst_text(s, text, &rendered, err);
    code = code == BT_OK && s->own.len > 0 ? check_text(s, buf_str(&rendered), text, err) : code;
    if (code == BT_OK) {
        doc_put_str(out, buf_str(&rendered));
    }
    buf_done(&rendered);
    return code;
}

/* An open array or map: the number of items left, keys included. */
struct frame {
    uint32_t left;
    bool map;
};

static bool is_key(const struct frame *f)
{
    return f->map && f->left % 2 == 0;
}

static bool has_template(const struct subst *s, struct str text)
{
    struct template_ref t;
    size_t from = 0;
    uint32_t more;
    while (next_of(s, text, &from, &t, &more)) {
        if (t.kind != TEMPLATE_FOREIGN) {
            return true;
        }
    }
    return false;
}

static enum bt_code copy(const struct subst *s, struct doc doc, struct buf *out, bool *ret_changed,
                         struct bt_error *err)
{
    struct frame frames[FRAMES_MAX];
    uint32_t depth = 0;
    struct doc_cursor c = doc_cursor(doc);
    const uint8_t *start = c.at;
    struct doc_head head;
    while (doc_next(&c, &head)) {
        const bool key = depth > 0 && is_key(&frames[depth - 1]);
        if (depth > 0) {
            frames[depth - 1].left--;
        }
        if (head.kind == DOC_STR && !key && has_template(s, head.str)) {
            const enum bt_code code = put_string(s, head.str, out, err);
            if (code != BT_OK) {
                return code;
            }
            *ret_changed = true;
        } else {
            buf_add(out, start, (size_t)(c.at - start)); /* only the head of a list or map */
        }
        if (head.kind == DOC_ARRAY || head.kind == DOC_MAP) {
            if (depth == FRAMES_MAX) {
                return err_set(err, BT_LIMIT, "a value is nested more than %d deep", FRAMES_MAX);
            }
            frames[depth++] =
                (struct frame){head.kind == DOC_MAP ? 2 * head.n : head.n, head.kind == DOC_MAP};
        }
        while (depth > 0 && frames[depth - 1].left == 0) {
            depth--;
        }
        start = c.at;
    }
    return buf_check(out, err);
}

enum bt_code subst_doc(const struct subst *s, struct doc doc, struct buf *out, struct bt_error *err)
{
    const size_t at = out->len;
    bool changed = false;
    enum bt_code code = copy(s, doc, out, &changed, err);
    if (code == BT_OK && changed) {
        /* The outcome must fit into a message, one level deeper. */
        const struct mp_limits limits = {.depth = LIMIT_DEPTH - 1, .nodes = LIMIT_NODES};
        code = mp_validate(out->at + at, out->len - at, &limits, err);
        if (code != BT_OK) {
            code = BT_INVALID;
            (void)err_wrap(err, "with its templates replaced, the value cannot be sent%s",
                           str_is(s->word, "results")
                               ? "; use artifact: true in the step before, and pass on "
                                 "{{results.STEP.artifact}}"
                               : "");
        }
    }
    return code;
}
