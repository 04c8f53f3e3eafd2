/* Parameters from the values of a clause. "x-baton-fill" names what a property takes; without
 * it the type and the name decide (hint_of). The README has both. */
#include <stdlib.h>

#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/keyword/keyword_internal.h"

enum { CHOICES_MAX = 32 }; /* schemas come from agents: what is looked at is bounded */

struct property {
    struct str name;
    struct doc schema;
    bool required;
    bool alone; /* the only required one */
};

/* ---- tokens ---- */

static struct token *token_at(const struct fill *f, uint32_t i)
{
    return &f->goal->tokens[i];
}

static bool is_free(const struct fill *f, uint32_t i, enum token_kind kind)
{
    return token_at(f, i)->kind == kind && token_at(f, i)->taken != f->attempt;
}

/* How many words of the text stand in the span; none when not `all` do. Takes them if told so. */
static uint32_t match_words(const struct fill *f, struct str text, bool all, bool take)
{
    size_t at = 0;
    struct str word;
    uint32_t n = 0;
    while (words_next(text, &at, &word)) {
        const uint32_t term = goal_term(f->goal, word);
        bool found = false;
        for (uint32_t i = f->span.from; i < f->span.to && term != TERM_NONE; i++) {
            struct token *t = token_at(f, i);
            if (t->kind == TOKEN_WORD && t->term == term) {
                t->taken = take ? f->attempt : t->taken;
                found = true;
            }
        }
        if (all && !found) {
            return 0;
        }
        n += found;
    }
    return n;
}

/* ---- kinds of values ---- */

static bool type_is(const struct property *p, const char *type, bool when_untyped)
{
    const struct doc types = doc_get(p->schema, STR_LIT("type"));
    bool is = types.ptr == NULL ? when_untyped : str_is(doc_string(types), type);
    for (uint32_t i = 0; i < CHOICES_MAX && !is && doc_at(types, i).ptr != NULL; i++) {
        is = str_is(doc_string(doc_at(types, i)), type);
    }
    return is;
}

static bool put_str(struct fill *f, const struct property *p, struct str value)
{
    doc_put_str(&f->members, p->name);
    doc_put_str(&f->members, value);
    return true;
}

/* The first value of the kind that no parameter has. */
static bool put_value(struct fill *f, const struct property *p, enum token_kind kind)
{
    uint32_t i = f->span.from;
    while (i < f->span.to && !is_free(f, i, kind)) {
        i++;
    }
    if (i == f->span.to) {
        return false;
    }
    token_at(f, i)->taken = f->attempt;
    return put_str(f, p, token_at(f, i)->text);
}

/* Whether a quote names a file: "count lines in 'my notes.txt'"; "read 'my notes.txt'" has no other
 * quote that it could be instead. */
static bool is_quoted_path(const struct fill *f, uint32_t i)
{
    uint32_t quotes = 0;
    if (!is_free(f, i, TOKEN_QUOTE) || i == f->span.from || !text_is_path(token_at(f, i)->text)) {
        return false;
    }
    for (uint32_t k = f->span.from; k < f->span.to; k++) {
        quotes += token_at(f, k)->kind == TOKEN_QUOTE;
    }
    return word_in(token_at(f, i - 1)->text, "in from of to into at file folder directory") ||
           (i == f->span.from + 1 && quotes == 1);
}

static bool put_quoted_path(struct fill *f, const struct property *p)
{
    uint32_t i = f->span.from;
    while (i < f->span.to && !is_quoted_path(f, i)) {
        i++;
    }
    if (i == f->span.to) {
        return false;
    }
    token_at(f, i)->taken = f->attempt;
    return put_str(f, p, token_at(f, i)->text);
}

/* "3", "-4", "2.5", no more digits than a double keeps: not "2026-01-01". */
static bool is_decimal(const struct fill *f, uint32_t i, double *ret)
{
    const struct str s = token_at(f, i)->text;
    char text[20] = "";
    char *end;
    if (!is_free(f, i, TOKEN_NUMBER) || s.len > 17) {
        return false;
    }
    memcpy(text, s.ptr, s.len);
    *ret = strtod(text, &end);
    return *end == '\0';
}

/* How many numbers are one list: up to an "and" that joins something else to them, as in "the mean
 * of 1, 2 and 3 and the sum of 4 and 5". */
static uint32_t count_numbers(const struct fill *f)
{
    double value;
    uint32_t n = 0;
    for (uint32_t i = f->span.from; i < f->span.to; i++) {
        n += is_decimal(f, i, &value);
        if (n > 0 && token_at(f, i)->kind == TOKEN_AND && i + 1 < f->span.to &&
            !is_decimal(f, i + 1, &value)) {
            break;
        }
    }
    return n;
}

/* The first number; or a list of them, two at least. */
static bool put_numbers(struct fill *f, const struct property *p, bool list)
{
    double value;
    uint32_t n = count_numbers(f);
    if (list ? n < 2 || !type_is(p, "array", true) : n < 1) {
        return false;
    }
    doc_put_str(&f->members, p->name);
    if (list) {
        doc_put_array(&f->members, n);
    }
    n = list ? n : 1;
    for (uint32_t i = f->span.from; n > 0; i++) {
        if (is_decimal(f, i, &value)) {
            token_at(f, i)->taken = f->attempt;
            n--;
            if (value == (double)(int64_t)value) {
                doc_put_i64(&f->members, (int64_t)value);
            } else {
                doc_put_f64(&f->members, value);
            }
        }
    }
    return true;
}

/* The template of the step before: all of its result, or a member of it. */
static bool put_previous(struct fill *f, const struct property *p, struct str member)
{
    struct buf text;
    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_printf(&text, "{{results.%.*s%.*s}}", STR_ARG(f->previous), STR_ARG(member));
    f->members.bad = f->members.bad != BT_OK ? f->members.bad : text.bad;
    f->takes_previous = put_str(f, p, buf_str(&text));
    buf_done(&text);
    return true;
}

/* The value of the enum that most words of the clause name. */
static bool put_choice(struct fill *f, const struct property *p)
{
    const struct doc values = doc_get(p->schema, STR_LIT("enum"));
    struct str chosen = {"", 0};
    uint32_t most = 0;
    for (uint32_t i = 0; i < CHOICES_MAX && doc_at(values, i).ptr != NULL; i++) {
        const struct str value = doc_string(doc_at(values, i));
        const uint32_t n = match_words(f, value, false, false);
        chosen = n > most ? value : chosen;
        most = n > most ? n : most;
    }
    (void)match_words(f, chosen, false, true);
    return most > 0 && put_str(f, p, chosen);
}

/* `ignoreCase` is true when the clause has both words. */
static bool put_switch(struct fill *f, const struct property *p)
{
    const bool on = match_words(f, p->name, true, false) > 0;
    if (on) {
        doc_put_str(&f->members, p->name);
        doc_put_bool(&f->members, true);
    }
    return on;
}

static bool ends_sought(const struct fill *f, uint32_t i)
{
    const struct token *t = token_at(f, i);
    return (t->kind != TOKEN_WORD && t->kind != TOKEN_NUMBER) || t->taken == f->attempt ||
           word_in(t->text, "in from of inside within on at");
}

/* "ERROR", "OOMKilled", "E1042", "404": written as no word of a sentence is. */
static bool is_literal(const struct token *t)
{
    bool literal = t->kind == TOKEN_NUMBER;
    for (size_t i = 1; i < t->text.len && t->kind == TOKEN_WORD; i++) {
        literal = literal || t->text.ptr[i] <= 'Z';
    }
    return literal;
}

/* What is looked for without quotes: "for connection refused", "containing 404", "grep ERROR", up
 * to a preposition, a value or a comma. */
static bool put_sought(struct fill *f, const struct property *p)
{
    uint32_t from = f->span.to;
    for (uint32_t i = f->span.from; i + 1 < f->span.to; i++) {
        const bool leads = word_in(token_at(f, i)->text,
                                   "for with containing contain contains matching match saying");
        from = leads && !ends_sought(f, i + 1) ? i + 1 : from;
    }
    for (uint32_t i = f->span.from + 1; i < f->span.to && from == f->span.to; i++) {
        from = is_literal(token_at(f, i)) && !ends_sought(f, i) ? i : from;
    }
    while (from + 1 < f->span.to && !ends_sought(f, from + 1) &&
           word_in(token_at(f, from)->text, "a the word words text term pattern string phrase")) {
        from++;
    }
    uint32_t to = from;
    while (to < f->span.to && !ends_sought(f, to) && !(to > from && token_at(f, to - 1)->pause)) {
        token_at(f, to++)->taken = f->attempt;
    }
    return to > from && put_str(f, p, goal_text(f->goal, (struct span){from, to}));
}

/* ---- one property ---- */

static bool put_kind(struct fill *f, struct str kind, const struct property *p)
{
    static const char previous[] = "previous"; /* "previous.text": a member of it */
    const size_t n = kind.len < sizeof previous - 1 ? kind.len : sizeof previous - 1;
    if (f->previous.len > 0 && str_is((struct str){kind.ptr, n}, previous)) {
        return put_previous(f, p, (struct str){kind.ptr + n, kind.len - n});
    }
    f->reads_task = f->reads_task || str_is(kind, "clause");
    return str_is(kind, "path")         ? put_value(f, p, TOKEN_PATH)
           : str_is(kind, "url")        ? put_value(f, p, TOKEN_URL)
           : str_is(kind, "quoted")     ? put_value(f, p, TOKEN_QUOTE)
           : str_is(kind, "expression") ? put_value(f, p, TOKEN_EXPRESSION)
           : str_is(kind, "number")     ? put_numbers(f, p, false)
           : str_is(kind, "numbers")    ? put_numbers(f, p, true)
           : str_is(kind, "choice")     ? put_choice(f, p)
           : str_is(kind, "switch")     ? put_switch(f, p)
           : str_is(kind, "sought")     ? put_sought(f, p)
           : str_is(kind, "clause")     ? put_str(f, p, goal_text(f->goal, f->span))
                                        : false;
}

/* "path or previous": the first that there is. A path in quotes is the last: they may be a text. */
static bool put_property(struct fill *f, struct str hint, const struct property *p)
{
    bool put = false;
    bool path = false;
    while (hint.len > 0 && !put) {
        const char *end = memchr(hint.ptr, ' ', hint.len);
        const size_t n = end == NULL ? hint.len : (size_t)(end - hint.ptr);
        put = put_kind(f, (struct str){hint.ptr, n}, p);
        path = path || str_is((struct str){hint.ptr, n}, "path");
        hint = (struct str){hint.ptr + n + (end != NULL), hint.len - n - (end != NULL)};
    }
    return put || (path && put_quoted_path(f, p));
}

/* What a property without a hint takes. An optional one takes only what names it, or what is
 * meant for nothing else. */
static struct str hint_of(const struct fill *f, const struct property *p)
{
    size_t at = 0;
    struct str word;
    struct str name = p->name; /* its last word: "logFile" */
    while (words_next(p->name, &at, &word)) {
        name = word;
    }
    const bool number = type_is(p, "integer", false) || type_is(p, "number", false);
    const bool text = type_is(p, "string", true);
    const bool named = match_words(f, p->name, true, false) > 0;
    return doc_get(p->schema, STR_LIT("enum")).ptr != NULL ? STR_LIT("choice")
           : type_is(p, "boolean", false) && !text         ? STR_LIT("switch")
           : number && !text ? (p->required || named ? STR_LIT("number") : STR_LIT(""))
           : word_in(name, "path file filename filepath dir folder directory") ? STR_LIT("path")
           : word_in(name, "url uri link")                                     ? STR_LIT("url")
           : !p->required                                                      ? STR_LIT("")
           : word_in(name, "expression formula")                ? STR_LIT("expression or quoted")
           : word_in(name, "pattern query search term keyword") ? STR_LIT("quoted or sought")
           : word_in(name, "text input data content body rows items values results document")
               ? STR_LIT("quoted or numbers or previous")
           : p->alone && text ? STR_LIT("quoted") /* of two texts, which is which? */
                              : STR_LIT("");
}

/* ---- all ---- */

static bool is_required(struct doc names, struct str name)
{
    bool found = false;
    for (uint32_t i = 0; i < PROPERTIES_MAX && !found && doc_at(names, i).ptr != NULL; i++) {
        found = str_eq(doc_string(doc_at(names, i)), name);
    }
    return found;
}

/* A value that no parameter takes. A path or an address may be named again, and whatever an earlier
 * clause has: it decides which is meant. */
static const struct token *find_left(const struct fill *f)
{
    for (uint32_t i = f->span.from; i < f->span.to; i++) {
        const struct token *t = token_at(f, i);
        bool known = t->kind < TOKEN_QUOTE || t->taken == f->attempt;
        for (uint32_t k = 0; k < (t->kind == TOKEN_QUOTE ? f->span.from : i) && !known; k++) {
            const struct token *other = token_at(f, k);
            known =
                t->kind != TOKEN_NUMBER && other->kind == t->kind && str_eq(other->text, t->text);
        }
        if (!known) {
            return t;
        }
    }
    return NULL;
}

void fill_parameters(struct fill *f, struct doc schema)
{
    struct doc_cursor c = doc_cursor(doc_get(schema, STR_LIT("properties")));
    const struct doc required = doc_get(schema, STR_LIT("required"));
    struct doc_head map;
    struct str work = {NULL, 0}; /* the first property whose hint takes some */
    bool works = false;
    buf_clear(&f->members);
    f->attempt++;
    f->n = 0;
    f->takes_previous = false;
    f->missing = (struct str){NULL, 0};
    f->reads_task = doc_head(schema).kind != DOC_MAP;
    const uint32_t all = doc_next(&c, &map) && map.kind == DOC_MAP ? map.n : 0;
    for (uint32_t i = 0; i < all && i < PROPERTIES_MAX; i++) {
        struct doc_head key;
        (void)doc_next(&c, &key);
        struct property p = {.name = key.str, .schema = doc_skip(&c)};
        p.required = is_required(required, p.name);
        p.alone = doc_head(required).n == 1;
        const struct str said = doc_string(doc_get(p.schema, STR_LIT("x-baton-fill")));
        const struct str hint = said.ptr != NULL ? said : hint_of(f, &p);
        const bool put = put_property(f, hint, &p);
        /* Choices, switches and numbers are how work is done; the others what it is done to. */
        const bool is_work = said.len > 0 && !word_in(said, "choice number switch");
        works = works || (put && is_work);
        f->n += put;
        if (put) {
            (void)match_words(f, p.name, false, true); /* "the limit 5" */
        } else if (p.required && f->missing.ptr == NULL) {
            f->missing = p.name;
        }
        work = work.ptr == NULL && is_work ? p.name : work;
    }
    f->missing = f->missing.ptr == NULL && !works ? work : f->missing;
    f->left = f->reads_task ? NULL : find_left(f);
}
