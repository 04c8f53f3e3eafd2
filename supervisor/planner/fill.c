#include "supervisor/planner/fill.h"

#include <string.h>

#include "protocol/limits.h"
#include "supervisor/planner/words.h"

/* Schemas come from agents: what is looked at is bounded. */
enum { PROPERTIES_MAX = 32, CHOICES_MAX = 32, WORDS_MAX = 16, CLAUSE_WORDS_MAX = 48 };

/* ---- what is in the clause ---- */

static bool is_number(struct str s)
{
    size_t digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
        digits++;
    }
    return digits > 0 && digits <= 15;
}

static bool first_token(struct str clause, bool (*is)(struct str), size_t *at, struct str *ret)
{
    while (token_next(clause, at, ret)) {
        if (is(*ret)) {
            return true;
        }
    }
    return false;
}

/* The next text in quotes at or behind *from, which moves behind it. */
static bool quoted(struct str clause, size_t *from, struct str *ret)
{
    for (size_t i = *from; i < clause.len; i++) {
        const char c = clause.ptr[i];
        const bool opens =
            c == '"' || c == '`' || (c == '\'' && (i == 0 || clause.ptr[i - 1] == ' '));
        const char *end = opens ? memchr(clause.ptr + i + 1, c, clause.len - i - 1) : NULL;
        if (end != NULL) {
            *ret = (struct str){clause.ptr + i + 1, (size_t)(end - clause.ptr) - i - 1};
            *from = (size_t)(end - clause.ptr) + 1;
            return true;
        }
    }
    return false;
}

/* The first number outside quotes: what is quoted is for somebody else. */
static bool first_number(struct str clause, struct str *ret)
{
    size_t from = 0;
    size_t at = 0;
    struct str quote = {clause.ptr, 0};
    bool more = quoted(clause, &from, &quote);
    while (first_token(clause, is_number, &at, ret)) {
        while (more && quote.ptr + quote.len < ret->ptr) {
            more = quoted(clause, &from, &quote);
        }
        if (!more || ret->ptr < quote.ptr) {
            return true;
        }
    }
    return false;
}

static uint64_t number_of(struct str digits)
{
    uint64_t n = 0;
    for (size_t i = 0; i < digits.len; i++) {
        n = n * 10 + (uint64_t)(digits.ptr[i] - '0');
    }
    return n;
}

struct clause_words {
    struct word at[CLAUSE_WORDS_MAX];
    uint32_t n;
};

static void read_words(struct str clause, struct clause_words *ret)
{
    struct words words;
    ret->n = 0;
    words_init(&words, clause);
    while (ret->n < CLAUSE_WORDS_MAX && words_next(&words, &ret->at[ret->n])) {
        ret->n++;
    }
}

/* How many words of `of` stand in the clause. */
static uint32_t words_in(struct str of, const struct clause_words *clause)
{
    struct words wanted;
    struct word w;
    uint32_t n = 0;
    words_init(&wanted, of);
    for (uint32_t i = 0; i < WORDS_MAX && words_next(&wanted, &w); i++) {
        for (uint32_t c = 0; c < clause->n; c++) {
            const struct word *there = &clause->at[c];
            if (str_eq((struct str){w.text, w.len}, (struct str){there->text, there->len})) {
                n++;
                break;
            }
        }
    }
    return n;
}

static bool choice(struct doc property, struct str clause, struct doc *ret)
{
    const struct doc values = doc_get(property, STR_LIT("enum"));
    const struct doc more = doc_get(property, STR_LIT("x-baton-words"));
    struct clause_words words;
    uint32_t best = 0;
    read_words(clause, &words);
    for (uint32_t i = 0; i < CHOICES_MAX; i++) {
        const struct doc value = doc_at(values, i);
        const struct str name = doc_string(value);
        if (value.ptr == NULL) {
            break;
        }
        if (name.ptr == NULL) {
            continue;
        }
        const uint32_t n =
            words_in(name, &words) + words_in(doc_string(doc_get(more, name)), &words);
        if (n > best) {
            best = n;
            *ret = value;
        }
    }
    return best > 0;
}

/* ---- what is left over ---- */

static bool is_in(struct str what, struct str in)
{
    return what.len == 0 || (in.len > 0 && memmem(in.ptr, in.len, what.ptr, what.len) != NULL);
}

static bool is_known(const struct fill *f, struct str filled, struct str thing)
{
    bool known = is_in(thing, filled);

    for (uint32_t i = 0; i < f->n_earlier && !known; i++) {
        known = is_in(thing, f->earlier[i]);
    }
    return known;
}

static bool is_named(struct str token)
{
    return token_is_path(token) || token_is_url(token);
}

bool fill_leaves_out(const struct fill *f, const struct buf *params, struct str *ret_thing)
{
    const struct str filled = buf_str(params);
    struct str rest = f->clause;
    struct str thing;
    struct str quote;
    size_t next = 0;
    bool more = params->bad == BT_OK; /* else the caller says so */

    while (more) { /* what stands before a quote, then the quote */
        size_t at = 0;
        struct str plain = rest;
        more = quoted(rest, &next, &quote);
        plain.len = more ? (size_t)(quote.ptr - rest.ptr) - 1 : rest.len;
        while (first_token(plain, is_named, &at, &thing)) {
            if (!is_known(f, filled, thing)) {
                *ret_thing = thing;
                return true;
            }
        }
        if (more && !is_known(f, filled, quote)) {
            *ret_thing = quote;
            return true;
        }
        rest = more ? (struct str){rest.ptr + next, rest.len - next} : rest;
        next = 0;
    }
    return false;
}

/* ---- one property ---- */

static void put_member(struct buf *out, struct str key)
{
    doc_put_str(out, key);
}

static bool fill_paths(const struct fill *f, struct str key, struct doc property, struct buf *out)
{
    const bool list = str_is(doc_string(doc_get(property, STR_LIT("type"))), "array");
    struct str path;
    size_t at = 0;
    uint32_t n = 0;
    while (n < CHOICES_MAX && first_token(f->clause, token_is_path, &at, &path)) {
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
        (void)first_token(f->clause, token_is_path, &at, &path);
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

static bool fill_one(const struct fill *f, struct str how, struct str key, struct doc property,
                     struct buf *out)
{
    static const char previous[] = "previous";
    struct str text;
    struct doc value;
    size_t at = 0;
    if (str_is(how, "path")) {
        return fill_paths(f, key, property, out);
    }
    if (how.len >= sizeof previous - 1 && memcmp(how.ptr, previous, sizeof previous - 1) == 0) {
        return fill_previous(
            f, key, property,
            (struct str){how.ptr + sizeof previous - 1, how.len - (sizeof previous - 1)}, out);
    }
    if (str_is(how, "choice") && choice(property, f->clause, &value)) {
        put_member(out, key);
        doc_put_doc(out, value);
        return true;
    }
    if (str_is(how, "number") && first_number(f->clause, &text)) {
        put_member(out, key);
        doc_put_u64(out, number_of(text));
        return true;
    }
    if ((str_is(how, "url") && first_token(f->clause, token_is_url, &at, &text)) ||
        (str_is(how, "quoted") && quoted(f->clause, &at, &text))) {
        put_member(out, key);
        doc_put_str(out, text);
        return true;
    }
    if (str_is(how, "clause")) {
        put_member(out, key);
        doc_put_str(out, f->clause);
        return true;
    }
    return false;
}

/* "path or previous": the first that there is. */
static bool fill_property(const struct fill *f, struct str key, struct doc property,
                          struct buf *out)
{
    struct str rest = doc_string(doc_get(property, STR_LIT("x-baton-fill")));
    while (rest.len > 0) {
        size_t n = 0;
        while (n < rest.len && rest.ptr[n] != ' ') {
            n++;
        }
        const struct str how = {rest.ptr, n};
        if (n > 0 && !str_is(how, "or") && fill_one(f, how, key, property, out)) {
            return true;
        }
        n += n < rest.len;
        rest = (struct str){rest.ptr + n, rest.len - n};
    }
    return false;
}

/* ---- all ---- */

static bool is_required(struct doc schema, struct str key)
{
    const struct doc names = doc_get(schema, STR_LIT("required"));
    struct doc_cursor c = doc_cursor(names);
    struct doc_head list;
    if (!doc_next(&c, &list) || list.kind != DOC_ARRAY) {
        return false;
    }
    for (uint32_t i = 0; i < list.n; i++) {
        if (str_eq(doc_string(doc_skip(&c)), key)) {
            return true;
        }
    }
    return false;
}

uint32_t fill_parameters(const struct fill *f, struct doc input_schema, struct buf *out,
                         struct str *ret_missing)
{
    struct doc_cursor c = doc_cursor(doc_get(input_schema, STR_LIT("properties")));
    struct doc_head map;
    struct buf members;
    uint32_t n = 0;
    *ret_missing = (struct str){NULL, 0};
    buf_init(&members, out->max);
    const uint32_t properties = doc_next(&c, &map) && map.kind == DOC_MAP ? map.n : 0;
    for (uint32_t i = 0; i < properties && i < PROPERTIES_MAX; i++) {
        struct doc_head key;
        (void)doc_next(&c, &key);
        const struct doc property = doc_skip(&c);
        if (fill_property(f, key.str, property, &members)) {
            n++;
        } else if (ret_missing->ptr == NULL && is_required(input_schema, key.str)) {
            *ret_missing = key.str;
        }
    }
    doc_put_map(out, n);
    buf_add_str(out, buf_str(&members));
    out->bad = out->bad != BT_OK ? out->bad : members.bad;
    buf_done(&members);
    return n;
}
