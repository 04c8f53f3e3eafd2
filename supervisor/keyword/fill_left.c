/* What a step would leave out of the words that it was made from. */
#include "supervisor/keyword/fill_parts.h"

#include "supervisor/keyword/expression.h"
#include "supervisor/keyword/phrase.h"
#include "supervisor/keyword/said.h"

/* A value means itself where it stands: the same letters elsewhere say nothing of it. */
static bool is_taken(const struct fill_taken *taken, struct str thing)
{
    for (uint32_t i = 0; i < taken->n; i++) {
        const struct str t = taken->at[i];
        if (thing.ptr >= t.ptr && thing.ptr + thing.len <= t.ptr + t.len) {
            return true;
        }
    }
    return false;
}

/* ---- names and quotes ---- */

/* More of them are not looked for in the earlier clauses: hostile goals are long. */
enum { LOOKED_UP_MAX = 40 };

/* What a text names: paths, addresses and texts in quotes, in their order. */
struct names {
    struct str rest;
    struct str plain; /* what stands before the next quote */
    size_t at;        /* in plain */
    struct str quote;
    bool quoted; /* there is one */
    bool in_plain;
};

static bool is_named(struct str token)
{
    return token_is_path(token) || token_is_url(token);
}

static bool names_next(struct names *n, struct str *ret, bool *ret_quoted)
{
    do {
        if (!n->in_plain) {
            size_t next = 0;
            n->quoted = fill_quoted(n->rest, &next, &n->quote);
            const size_t len = n->quoted ? (size_t)(n->quote.ptr - n->rest.ptr) - 1 : n->rest.len;
            n->plain = (struct str){n->rest.ptr, len};
            n->at = 0;
            n->rest = phrase_cut(n->rest, n->quoted ? next : n->rest.len, n->rest.len);
            n->in_plain = true;
        }
        *ret_quoted = false;
        if (fill_token(n->plain, is_named, &n->at, ret)) {
            return true;
        }
        n->in_plain = false;
        *ret_quoted = true;
        *ret = n->quote;
        if (n->quoted) {
            return true;
        }
    } while (n->rest.len > 0);
    return false;
}

/* An earlier clause names it as a whole: to name it again says which. */
static bool is_earlier(const struct fill *f, struct str thing)
{
    for (uint32_t i = 0; i < f->n_earlier; i++) {
        struct names names = {.rest = f->earlier[i]};
        struct str name;
        bool quoted;
        while (names_next(&names, &name, &quoted)) {
            if (str_eq(name, thing)) {
                return true;
            }
        }
    }
    return false;
}

/* A path or an address means the same wherever it stands; a text in quotes only itself. */
static bool is_used(const struct fill_taken *taken, struct str thing, bool quoted)
{
    bool used = thing.len == 0 || is_taken(taken, thing);
    for (uint32_t i = 0; i < taken->n && !used && !quoted; i++) {
        used = str_eq(thing, taken->at[i]);
    }
    return used;
}

static bool leaves_name(const struct fill *f, const struct fill_taken *taken, struct str *ret_thing)
{
    struct names names = {.rest = f->clause};
    uint32_t looked_up = 0;
    bool quoted;

    while (names_next(&names, ret_thing, &quoted)) {
        if (!is_used(taken, *ret_thing, quoted) &&
            (looked_up++ == LOOKED_UP_MAX || !is_earlier(f, *ret_thing))) {
            return true;
        }
    }
    return false;
}

/* ---- numbers ---- */

static bool leaves_number(const struct fill *f, const struct fill_taken *taken,
                          struct str *ret_thing)
{
    struct said_reader r;
    struct word w;
    enum said_kind kind;

    said_begin(&r, f->clause);
    if (expression_find(f->clause, &r.expression) && !is_taken(taken, r.expression)) {
        *ret_thing = r.expression;
        return true;
    }
    while (said_next(&r, &kind, &w)) {
        if (kind == SAID_NUMBER && !is_taken(taken, r.token)) {
            *ret_thing = r.token;
            return true;
        }
    }
    return false;
}

bool fill_leaves_out(const struct fill *f, const struct fill_taken *taken, struct str *ret_thing)
{
    return !taken->whole &&
           (leaves_name(f, taken, ret_thing) || leaves_number(f, taken, ret_thing));
}
