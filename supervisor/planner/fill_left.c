/* What a step would leave out of the words that it was made from. */
#include "supervisor/planner/fill_parts.h"

#include <string.h>

#include "supervisor/planner/expression.h"
#include "supervisor/planner/said.h"

static bool is_in(struct str what, struct str in)
{
    return what.len == 0 || (in.len > 0 && memmem(in.ptr, in.len, what.ptr, what.len) != NULL);
}

static bool is_known(const struct fill *f, const struct fill_taken *taken, struct str thing)
{
    bool known = false;

    for (uint32_t i = 0; i < taken->n && !known; i++) {
        known = is_in(thing, taken->at[i]);
    }
    for (uint32_t i = 0; i < f->n_earlier && !known; i++) {
        known = is_in(thing, f->earlier[i]);
    }
    return known;
}

/* A number means itself where it stands: the same digits elsewhere say nothing of it. */
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

static bool is_named(struct str token)
{
    return token_is_path(token) || token_is_url(token);
}

static bool leaves_name(const struct fill *f, const struct fill_taken *taken, struct str *ret_thing)
{
    struct str rest = f->clause;
    struct str thing;
    struct str quote;
    size_t next = 0;
    bool more = true;

    while (more) { /* what stands before a quote, then the quote */
        size_t at = 0;
        struct str plain = rest;
        more = fill_quoted(rest, &next, &quote);
        plain.len = more ? (size_t)(quote.ptr - rest.ptr) - 1 : rest.len;
        while (fill_token(plain, is_named, &at, &thing)) {
            if (!is_known(f, taken, thing)) {
                *ret_thing = thing;
                return true;
            }
        }
        if (more && !is_known(f, taken, quote)) {
            *ret_thing = quote;
            return true;
        }
        rest = more ? (struct str){rest.ptr + next, rest.len - next} : rest;
        next = 0;
    }
    return false;
}

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
