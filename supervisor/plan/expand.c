#include "supervisor/plan/expand.h"

#include "protocol/artifact/artifact.h"
#include "supervisor/plan/subst_internal.h"

enum { PATH_BYTES = ARTIFACT_PATH_MAX + 16 };

struct expander {
    expand_resolver resolver;
    const struct expand_scope *scope;
    void *self;
    struct buf path; /* of {{results.x.artifact.path}} */
};

static struct doc present(struct doc d)
{
    return d.ptr != NULL && doc_head(d).kind == DOC_NIL ? (struct doc){NULL, 0} : d;
}

/* The data before the text; a member of the result itself last. See the header. */
struct doc expand_pick(struct doc result, struct str path)
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

/* ---- artifacts ---- */

/* The path of a file: an agent that runs programs needs one instead of a URI. */
static struct doc path_of(struct expander *x, struct doc uri)
{
    char path[ARTIFACT_PATH_MAX + 1];

    if (uri.ptr == NULL || !artifact_uri_path(doc_string(uri), path)) {
        return (struct doc){NULL, 0};
    }
    buf_clear(&x->path);
    doc_put_cstr(&x->path, path);
    return buf_check(&x->path, NULL) == BT_OK ? doc_from_buf(&x->path) : (struct doc){NULL, 0};
}

/* "artifact" is the uri of the first artifact, "artifact.member" a member of it. */
static struct doc pick_artifact(struct expander *x, struct doc result, struct str path)
{
    const struct str word = STR_LIT("artifact");
    const struct doc first = doc_path(result, STR_LIT("artifacts.0"));
    struct str member = STR_LIT("uri");

    if (first.ptr == NULL || path.len < word.len || memcmp(path.ptr, word.ptr, word.len) != 0) {
        return (struct doc){NULL, 0};
    }
    if (path.len > word.len) {
        if (path.ptr[word.len] != '.') {
            return (struct doc){NULL, 0};
        }
        member = (struct str){path.ptr + word.len + 1, path.len - word.len - 1};
    }
    return str_is(member, "path") ? path_of(x, doc_get(first, STR_LIT("uri")))
                                  : doc_get(first, member);
}

static enum bt_code no_member(const struct template_ref *t, struct str id, struct str path,
                              struct doc result, struct bt_error *err)
{
    const bool artifact = path.len >= 8 && memcmp(path.ptr, "artifact", 8) == 0;

    if (artifact && doc_path(result, STR_LIT("artifacts.0")).ptr == NULL) {
        return err_set(err, BT_INVALID,
                       "%.*s: the result of step \"%.*s\" has no artifact; set artifact: true in "
                       "its parameters, where its skill has it",
                       STR_ARG(t->text), STR_ARG(id));
    }
    return err_set(err, BT_INVALID, "%.*s: the result of step \"%.*s\" has no member \"%.*s\"",
                   STR_ARG(t->text), STR_ARG(id), STR_ARG(path));
}

static enum bt_code lookup(const struct template_ref *t, struct doc *ret, void *self,
                           struct bt_error *err)
{
    struct expander *x = self;
    struct bt_error why = {.code = BT_OK};
    struct str id = {NULL, 0};
    struct str path;
    enum bt_code code = BT_INVALID;
    while (template_split(t->ref, &id, &path)) {
        struct doc result = {NULL, 0};
        code = x->resolver(id, &result, x->self, &why);
        if (code == BT_OK) {
            *ret = expand_pick(result, path);
            if (ret->ptr == NULL) {
                *ret = pick_artifact(x, result, path);
            }
            return ret->ptr != NULL ? BT_OK : no_member(t, id, path, result, err);
        }
        if (code != BT_NOT_FOUND && code != BT_INVALID) {
            break;
        }
    }
    return err_set(err, code == BT_NOT_FOUND ? BT_INVALID : code, "%.*s: %s", STR_ARG(t->text),
                   why.msg);
}

/* The value of a word of the scope, or what its path names. */
static enum bt_code lookup_word(const struct template_ref *t, uint32_t word, struct doc *ret,
                                void *self, struct bt_error *err)
{
    static const uint8_t nothing[] = {0xc0};
    struct expander *x = self;
    const struct str name = x->scope->words[word];
    struct bt_error why = {.code = BT_OK};
    struct doc value = {NULL, 0};
    const enum bt_code code = x->scope->value(name, &value, x->self, &why);
    if (code != BT_OK) {
        return err_set(err, code, "%.*s: %s", STR_ARG(t->text), why.msg);
    }
    if (str_is(name, "previous")) { /* a result; in the first round there is none */
        const bool none = value.ptr == NULL || doc_head(value).kind == DOC_NIL;
        *ret = none ? (struct doc){nothing, sizeof nothing} : expand_pick(value, t->ref);
    } else {
        *ret = t->ref.len > 0 ? doc_path(value, t->ref) : value;
    }
    return ret->ptr != NULL ? BT_OK
                            : err_set(err, BT_INVALID, "%.*s: %.*s has no member \"%.*s\"",
                                      STR_ARG(t->text), STR_ARG(name), STR_ARG(t->ref));
}

static struct subst subst_of(struct expander *x)
{
    return (struct subst){.word = STR_LIT("results"),
                          .lookup = lookup,
                          .self = x,
                          .more = x->scope != NULL ? x->scope->words : NULL,
                          .n_more = x->scope != NULL ? x->scope->n : 0,
                          .lookup_more = lookup_word};
}

enum bt_code expand_text(struct str text, expand_resolver resolver,
                         const struct expand_scope *scope, void *self, struct buf *out,
                         struct bt_error *err)
{
    struct expander x = {.resolver = resolver, .scope = scope, .self = self};
    const struct subst s = subst_of(&x);
    enum bt_code code;

    buf_init(&x.path, PATH_BYTES);
    code = subst_text(&s, text, out, err);
    buf_done(&x.path);
    return code;
}

enum bt_code expand_params(struct doc params, expand_resolver resolver,
                           const struct expand_scope *scope, void *self, struct buf *out,
                           struct bt_error *err)
{
    struct expander x = {.resolver = resolver, .scope = scope, .self = self};
    const struct subst s = subst_of(&x);
    enum bt_code code;

    buf_init(&x.path, PATH_BYTES);
    code = subst_doc(&s, params, out, err);
    buf_done(&x.path);
    return code;
}
