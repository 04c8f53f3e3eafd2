#include "supervisor/keyword/fill_parts.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "supervisor/keyword/expression.h"
#include "supervisor/keyword/said.h"

/* Schemas come from agents: what is looked at is bounded. */
enum { CHOICES_MAX = 32 };

/* ---- one property ---- */

static void take(struct fill_taken *taken, struct str text)
{
    if (taken->n < FILL_TAKEN_MAX) {
        taken->at[taken->n++] = text;
    }
}

static void choose(struct fill_taken *taken, struct doc property, struct doc value)
{
    const struct str name = doc_string(value);
    if (taken->n_chosen + 2 <= FILL_CHOSEN_MAX) {
        taken->chosen[taken->n_chosen++] = name;
        taken->chosen[taken->n_chosen++] =
            doc_string(doc_get(doc_get(property, STR_LIT("x-baton-words")), name));
    }
}

static void put_member(struct buf *out, struct str key)
{
    doc_put_str(out, key);
}

static bool fill_paths(const struct fill *f, struct str key, struct doc property,
                       struct fill_taken *taken, struct buf *out)
{
    const bool list = str_is(doc_string(doc_get(property, STR_LIT("type"))), "array");
    struct str path;
    size_t at = 0;
    uint32_t n = 0;
    while (n < CHOICES_MAX && fill_token(f->clause, token_is_path, &at, &path)) {
        n++;
    }
    if (n == 0) {
        return false;
    }
    put_member(out, key);
    if (list) {
        doc_put_array(out, n);
    }
    at = 0;
    for (uint32_t i = 0; i < (list ? n : 1); i++) {
        (void)fill_token(f->clause, token_is_path, &at, &path);
        take(taken, path);
        doc_put_str(out, path);
    }
    return true;
}

/* Whether the property's type is, or may be, of that name; any type when it says none. */
static bool may_be(struct doc property, const char *type)
{
    const struct doc types = doc_get(property, STR_LIT("type"));
    if (types.ptr == NULL || str_is(doc_string(types), type)) {
        return true;
    }
    for (uint32_t i = 0; i < CHOICES_MAX; i++) {
        const struct doc one = doc_at(types, i);
        if (one.ptr == NULL) {
            return false;
        }
        if (str_is(doc_string(one), type)) {
            return true;
        }
    }
    return false;
}

static bool fill_previous(const struct fill *f, struct str key, struct doc property,
                          struct str rest, struct buf *out)
{
    struct buf text;
    const bool list = f->n_previous > 1 && may_be(property, "array");
    if (f->n_previous == 0 || (rest.len > 0 && rest.ptr[0] != '.') ||
        (f->n_previous > 1 && !list && !may_be(property, "string"))) {
        return false;
    }
    buf_init(&text, LIMIT_CONTROL_BYTES);
    put_member(out, key);
    if (list) {
        doc_put_array(out, f->n_previous);
    }
    for (uint32_t i = 0; i < f->n_previous; i++) {
        buf_printf(&text, "%s{{results.%.*s%.*s}}", text.len > 0 ? "\n\n" : "",
                   STR_ARG(f->previous[i]), STR_ARG(rest));
        if (list) {
            doc_put_str(out, buf_str(&text));
            buf_clear(&text);
        }
    }
    if (!list) {
        doc_put_str(out, buf_str(&text));
    }
    out->bad = out->bad != BT_OK ? out->bad : text.bad;
    buf_done(&text);
    return true;
}

/* "3", "-4", "2.5" */
static bool read_decimal(struct str s, double *ret)
{
    char text[20];
    char *end;
    if (s.len == 0 || s.len > 17) { /* digits that a double keeps, and fits an integer */
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (!(c >= '0' && c <= '9') && c != '.' && !(c == '-' && i == 0)) {
            return false;
        }
    }
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    *ret = strtod(text, &end);
    return *end == '\0';
}

/* All numbers of the clause, two at least, outside quotes. */
static bool fill_numbers(const struct fill *f, struct str key, struct fill_taken *taken,
                         struct buf *out)
{
    double values[FILL_TAKEN_MAX];
    uint32_t n = 0;
    struct said_reader r;
    struct word w;
    enum said_kind kind;
    bool counts = false; /* "the 2 largest": it is none of them */

    said_begin(&r, f->clause);
    while (n < FILL_TAKEN_MAX && said_next(&r, &kind, &w)) {
        const struct str last = n > 0 ? taken->at[taken->n - 1] : (struct str){f->clause.ptr, 0};
        counts = counts || (n > 0 && kind == SAID_WORD && r.token.ptr == last.ptr + last.len + 1);
        if (kind == SAID_NUMBER && taken->n < FILL_TAKEN_MAX && read_decimal(r.token, &values[n])) {
            take(taken, r.token);
            n++;
        }
    }
    if (n < 2 || counts) {
        taken->n -= n;
        return false;
    }
    put_member(out, key);
    doc_put_array(out, n);
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] == (double)(int64_t)values[i]) {
            doc_put_i64(out, (int64_t)values[i]);
        } else {
            doc_put_f64(out, values[i]);
        }
    }
    return true;
}

/* What stands in the clause as it is. */
static bool find_text(const struct fill *f, struct str how, struct str *ret)
{
    size_t at = 0;
    return (str_is(how, "url") && fill_token(f->clause, token_is_url, &at, ret)) ||
           (str_is(how, "quoted") && fill_quoted(f->clause, &at, ret)) ||
           (str_is(how, "expression") && expression_find(f->clause, ret));
}

static bool fill_one(const struct fill *f, struct str how, struct str key, struct doc property,
                     struct fill_taken *taken, struct buf *out)
{
    static const char previous[] = "previous";
    struct str text;
    struct doc value;
    if (str_is(how, "path")) {
        return fill_paths(f, key, property, taken, out);
    }
    if (str_is(how, "numbers")) {
        return fill_numbers(f, key, taken, out);
    }
    if (how.len >= sizeof previous - 1 && memcmp(how.ptr, previous, sizeof previous - 1) == 0) {
        const struct str rest = {how.ptr + sizeof previous - 1, how.len - (sizeof previous - 1)};
        const bool filled = fill_previous(f, key, property, rest, out);
        taken->previous = taken->previous || filled;
        return filled;
    }
    if (str_is(how, "choice") && fill_choice(property, f->clause, &value)) {
        choose(taken, property, value);
        put_member(out, key);
        doc_put_doc(out, value);
        return true;
    }
    if (str_is(how, "number") && fill_number(f->clause, &text)) {
        take(taken, text);
        put_member(out, key);
        doc_put_u64(out, fill_number_of(text));
        return true;
    }
    if (find_text(f, how, &text)) {
        take(taken, text);
        put_member(out, key);
        doc_put_str(out, text);
        return true;
    }
    if (str_is(how, "clause")) {
        taken->whole = true;
        put_member(out, key);
        doc_put_str(out, f->clause);
        return true;
    }
    return false;
}

/* "path or previous": the first that there is. */
static bool fill_property(const struct fill *f, struct str rest, struct str key,
                          struct doc property, struct fill_taken *taken, struct buf *out)
{
    while (rest.len > 0) {
        size_t n = 0;
        while (n < rest.len && rest.ptr[n] != ' ') {
            n++;
        }
        const struct str how = {rest.ptr, n};
        if (n > 0 && !str_is(how, "or") && fill_one(f, how, key, property, taken, out)) {
            return true;
        }
        n += n < rest.len;
        rest = (struct str){rest.ptr + n, rest.len - n};
    }
    return false;
}

/* ---- all ---- */

/* *ret_n = how many are required. */
static bool is_required(struct doc schema, struct str key, uint32_t *ret_n)
{
    const struct doc names = doc_get(schema, STR_LIT("required"));
    struct doc_cursor c = doc_cursor(names);
    struct doc_head list;
    *ret_n = 0;
    if (!doc_next(&c, &list) || list.kind != DOC_ARRAY) {
        return false;
    }
    *ret_n = list.n;
    for (uint32_t i = 0; i < list.n; i++) {
        if (str_eq(doc_string(doc_skip(&c)), key)) {
            return true;
        }
    }
    return false;
}

/* What a property takes of the words. One that says nothing takes the text in quotes when the skill
 * cannot do without it, and without no other. */
static struct str hint_of(struct doc schema, struct str key, struct doc property, bool *ret_needed)
{
    uint32_t n;
    const struct str hint = doc_string(doc_get(property, STR_LIT("x-baton-fill")));
    *ret_needed = is_required(schema, key, &n);
    return hint.ptr == NULL && *ret_needed && n == 1 && may_be(property, "string")
               ? STR_LIT("quoted")
               : hint;
}

/* A choice or a limit is said or not; the others are what a skill works on. */
static bool is_work(struct str hint)
{
    return hint.len > 0 && !str_is(hint, "choice") && !str_is(hint, "number");
}

uint32_t fill_parameters(const struct fill *f, struct doc input_schema, struct buf *out,
                         struct fill_taken *taken, struct str *ret_missing)
{
    struct doc_cursor c = doc_cursor(doc_get(input_schema, STR_LIT("properties")));
    struct doc_head map;
    struct buf members;
    struct str work = {NULL, 0}; /* the first property that takes some */
    bool works = false;
    uint32_t n = 0;
    *ret_missing = (struct str){NULL, 0};
    *taken = (struct fill_taken){.whole = doc_head(input_schema).kind != DOC_MAP};
    buf_init(&members, out->max);
    const uint32_t properties = doc_next(&c, &map) && map.kind == DOC_MAP ? map.n : 0;
    for (uint32_t i = 0; i < properties && i < FILL_PROPERTIES_MAX; i++) {
        struct doc_head key;
        bool needed;
        (void)doc_next(&c, &key);
        const struct doc property = doc_skip(&c);
        const struct str hint = hint_of(input_schema, key.str, property, &needed);
        const bool filled = fill_property(f, hint, key.str, property, taken, &members);
        n += filled;
        taken->filled |= (uint32_t)filled << i;
        works = works || (filled && is_work(hint));
        work = work.ptr == NULL && is_work(hint) ? key.str : work;
        if (!filled && ret_missing->ptr == NULL && needed) {
            *ret_missing = key.str;
        }
    }
    if (ret_missing->ptr == NULL && work.ptr != NULL && !works) {
        *ret_missing = work;
    }
    doc_put_map(out, n);
    buf_add_str(out, buf_str(&members));
    out->bad = out->bad != BT_OK ? out->bad : members.bad;
    buf_done(&members);
    return n;
}
