#include "supervisor/plan/expand.h"

#include "supervisor/plan/subst_internal.h"

struct expander {
    expand_resolver resolver;
    void *self;
};

static struct doc present(struct doc d)
{
    return d.ptr != NULL && doc_head(d).kind == DOC_NIL ? (struct doc){NULL, 0} : d;
}

/* The data before the text; a member of the result itself last. See the header. */
static struct doc pick(struct doc result, struct str path)
{
    static const uint8_t empty_text[] = {0xa0};
    const struct doc data = present(doc_get(result, STR_LIT("data")));
    if (path.len > 0) {
        const struct doc member = doc_path(data, path);
        return member.ptr != NULL ? member : doc_path(result, path);
    }
    if (data.ptr != NULL) {
        return data;
    }
    const struct doc text = present(doc_get(result, STR_LIT("text")));
    /* A completed step without a result. */
    return text.ptr != NULL ? text : (struct doc){empty_text, sizeof empty_text};
}

static enum bt_code lookup(const struct template_ref *t, struct doc *ret, void *self,
                           struct bt_error *err)
{
    const struct expander *x = self;
    struct bt_error why = {.code = BT_OK};
    struct str id = {NULL, 0};
    struct str path;
    enum bt_code code = BT_INVALID;
    while (template_split(t->ref, &id, &path)) {
        struct doc result = {NULL, 0};
        code = x->resolver(id, &result, x->self, &why);
        if (code == BT_OK) {
            *ret = pick(result, path);
            return ret->ptr != NULL
                       ? BT_OK
                       : err_set(err, BT_INVALID,
                                 "%.*s: the result of step \"%.*s\" has no member \"%.*s\"",
                                 STR_ARG(t->text), STR_ARG(id), STR_ARG(path));
        }
        if (code != BT_NOT_FOUND && code != BT_INVALID) {
            break;
        }
    }
    return err_set(err, code == BT_NOT_FOUND ? BT_INVALID : code, "%.*s: %s", STR_ARG(t->text),
                   why.msg);
}

enum bt_code expand_text(struct str text, expand_resolver resolver, void *self, struct buf *out,
                         struct bt_error *err)
{
    struct expander x = {resolver, self};
    const struct subst s = {.word = STR_LIT("results"), .lookup = lookup, .self = &x};
    return subst_text(&s, text, out, err);
}

enum bt_code expand_params(struct doc params, expand_resolver resolver, void *self, struct buf *out,
                           struct bt_error *err)
{
    struct expander x = {resolver, self};
    const struct subst s = {.word = STR_LIT("results"), .lookup = lookup, .self = &x};
    return subst_doc(&s, params, out, err);
}
