#include "supervisor/keyword/rank_parts.h"

#include <math.h>

#include "supervisor/keyword/said.h"

#define K1 1.2
#define B 0.75

enum {
    HEAD_FACTOR = 2,
    KNOWN_SHARE = 5 /* one word in so many may be unknown */
};

/* ---- the clauses ---- */

static enum bt_code intern(struct rank *r, const struct word *w, uint32_t *ret)
{
    const struct str word = {w->text, w->len};
    *ret = map_get(&r->by_word, word);
    if (*ret != MAP_NONE) {
        return BT_OK;
    }
    const struct str copy = arena_str(r->arena, word);
    const struct str shown = arena_str(r->arena, str_from(w->shown));
    if (copy.ptr == NULL || shown.ptr == NULL || map_put(&r->by_word, copy, r->n_terms) != BT_OK) {
        return BT_NOMEM;
    }
    *ret = r->n_terms++;
    r->terms[*ret] = (struct term){.stem = copy, .shown = shown};
    return BT_OK;
}

static enum bt_code add_term(struct rank *r, struct clause *c, const struct said_word *said)
{
    uint32_t term;
    uint32_t i = 0;
    if (intern(r, &said->word, &term) != BT_OK) {
        return BT_NOMEM;
    }
    while (i < c->n && c->terms[i] != term) {
        i++;
    }
    if (i == c->n) {
        c->aside[i] = said->aside;
        c->joined[i] = said->joined;
        c->counted[i] = said->counted;
        c->terms[c->n++] = term;
    }
    return BT_OK;
}

/* What a value is counts like a word, but it neither is the verb nor has to be explained. */
static enum bt_code add_kind(struct rank *r, struct clause *c, const char *kind)
{
    struct said_word said = {.word = {.len = 0}};
    struct words words;
    words_init(&words, str_from(kind));
    return words_next(&words, &said.word) ? add_term(r, c, &said) : BT_OK;
}

static enum bt_code read_clause(struct rank *r, struct str text, struct clause *c)
{
    struct said said;
    enum bt_code code = BT_OK;
    said_read(text, &said);
    *c = (struct clause){.question = said.question};
    for (uint32_t i = 0; i < said.n && code == BT_OK; i++) {
        code = add_term(r, c, &said.at[i]);
    }
    c->n_words = c->n;
    c->headed = c->n > 0 || said.expression.len > 0; /* there is one thing to do with arithmetic */
    if (code == BT_OK && said.expression.len > 0) {
        code = add_kind(r, c, "expression");
    }
    if (code == BT_OK && said.path) {
        code = add_kind(r, c, "file");
    }
    return code == BT_OK && said.url ? add_kind(r, c, "url") : code;
}

enum bt_code rank_new(const struct registry *registry, const struct str *clauses, uint32_t n,
                      struct arena *arena, struct rank **ret, struct bt_error *err)
{
    struct rank *r = arena_alloc(arena, sizeof *r);
    enum bt_code code = r == NULL ? BT_NOMEM : BT_OK;
    if (code == BT_OK) {
        *r = (struct rank){.arena = arena};
        r->clauses = arena_alloc(arena, (n + 1) * sizeof r->clauses[0]);
        r->terms = arena_alloc(arena, ((size_t)n * RANK_CLAUSE_WORDS + 1) * sizeof r->terms[0]);
        code = r->clauses == NULL || r->terms == NULL ? BT_NOMEM : BT_OK;
    }
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = read_clause(r, clauses[i], &r->clauses[i]);
    }
    code = code == BT_OK ? rank_index(r, registry) : code;
    if (r != NULL) {
        map_done(&r->by_word);
    }
    if (code != BT_OK) {
        return err_set(err, BT_NOMEM, "out of memory for the planner's index");
    }
    *ret = r;
    return BT_OK;
}

uint32_t rank_skills(const struct rank *r)
{
    return r->n_docs;
}

/* ---- scores ---- */

static const struct posting *posting_of(const struct document *d, uint32_t term)
{
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->postings[i].term == term) {
            return &d->postings[i];
        }
    }
    return NULL;
}

/* The form that never goes below zero (Lucene's), so that a word of every card still counts a
 * little. */
static double idf(const struct rank *r, uint32_t term)
{
    const double df = r->terms[term].df;
    return log(1 + (r->n_docs - df + 0.5) / (df + 0.5));
}

/* What the i-th word of the clause adds to the document's score. */
static double weight(const struct rank *r, const struct clause *c, uint32_t i,
                     const struct document *d)
{
    const struct posting *p = posting_of(d, c->terms[i]);
    if (p == NULL) {
        return 0;
    }
    const double norm = K1 * (1 - B + B * d->len / r->mean_len);
    return (i == 0 ? HEAD_FACTOR : 1) * idf(r, c->terms[i]) * (p->tf * (K1 + 1)) / (p->tf + norm);
}

/* Where the first word of the clause must stand. */
static unsigned asked_of(const struct clause *c, const struct document *d)
{
    if (c->question && d->changes) {
        return AT_QUESTION; /* asking changes nothing */
    }
    if (c->n == 1 && c->n_words == 1) {
        return AT_NAME; /* "tell me what is in it": a verb alone says little */
    }
    return c->question ? AT_CALLED : AT_CALLED | AT_DESCRIPTION;
}

static struct rank_hit score(const struct rank *r, const struct clause *c, const struct document *d)
{
    struct rank_hit hit = {.agent = d->agent, .skill = d->skill, .live = d->live};
    bool named = false;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct posting *p = posting_of(d, c->terms[i]);
        hit.score += weight(r, c, i, d);
        named = named || (i < c->n_words && p != NULL && (p->at & AT_CALLED) != 0);
    }
    const struct posting *head = c->headed ? posting_of(d, c->terms[0]) : NULL;
    hit.supported = head != NULL && (head->at & asked_of(c, d)) != 0;
    hit.described = hit.supported && !named && c->n_words > 0;
    return hit;
}

static bool better(const struct rank_hit *a, const struct rank_hit *b)
{
    return a->score > b->score || (a->score == b->score && a->live && !b->live);
}

uint32_t rank_clause(const struct rank *r, uint32_t clause, struct rank_hit *ret, uint32_t cap)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_docs; i++) {
        const struct rank_hit hit = score(r, &r->clauses[clause], &r->docs[i]);
        uint32_t at = n;
        while (at > 0 && better(&hit, &ret[at - 1])) {
            at--;
        }
        if (hit.score <= 0 || at >= cap) {
            continue;
        }
        const uint32_t kept = n < cap ? n : cap - 1;
        memmove(&ret[at + 1], &ret[at], (kept - at) * sizeof ret[0]);
        ret[at] = hit;
        n = kept + 1;
    }
    return n;
}

static const struct document *document_of(const struct rank *r, const struct rank_hit *hit)
{
    for (uint32_t d = 0; d < r->n_docs; d++) {
        if (r->docs[d].agent == hit->agent && r->docs[d].skill == hit->skill) {
            return &r->docs[d];
        }
    }
    return NULL;
}

static bool is_known(const struct rank *r, const struct document *d, uint32_t term, uint32_t filled,
                     const struct str *texts, uint32_t n)
{
    const struct posting *p = posting_of(d, term);
    /* "recursive": that a skill can be told so does not mean that it is. */
    const bool off = p != NULL && p->described && p->switches != 0;
    bool known = p != NULL && ((p->card && !off) || (p->properties & filled) != 0);
    for (uint32_t i = 0; i < n && !known; i++) {
        known = said_has(texts[i], r->terms[term].stem);
    }
    return known;
}

bool rank_unknown(const struct rank *r, uint32_t clause, const struct rank_hit *hit,
                  uint32_t filled, const struct str *texts, uint32_t n, struct str *ret_word)
{
    const struct clause *c = &r->clauses[clause];
    const struct document *d = document_of(r, hit);
    bool known[RANK_CLAUSE_WORDS];
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < c->n_words; i++) {
        known[i] = c->counted[i] || is_known(r, d, c->terms[i], filled, texts, n);
        unknown += !known[i];
    }
    const bool few = unknown * KNOWN_SHARE <= c->n_words;
    for (uint32_t i = 0; i < c->n_words; i++) {
        const bool with_known = (i > 1 && c->joined[i] && known[i - 1]) ||
                                (i + 1 < c->n_words && c->joined[i + 1] && known[i + 1]);
        if (!known[i] && (c->aside[i] || !(few || with_known))) {
            *ret_word = r->terms[c->terms[i]].shown;
            return true;
        }
    }
    return false;
}

bool rank_is_bare(const struct rank *r, uint32_t clause)
{
    return r->clauses[clause].n == 1;
}

bool rank_headed(const struct rank *r, uint32_t clause, struct str *ret_word)
{
    const struct clause *c = &r->clauses[clause];
    if (c->headed) {
        *ret_word = r->terms[c->terms[0]].shown;
    }
    return c->headed;
}

uint32_t rank_explain(const struct rank *r, uint32_t clause, const struct rank_hit *hit,
                      struct rank_match *ret, uint32_t cap)
{
    const struct clause *c = &r->clauses[clause];
    const struct document *d = document_of(r, hit);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct rank_match m = {r->terms[c->terms[i]].shown, weight(r, c, i, d)};
        uint32_t at = n;
        while (at > 0 && ret[at - 1].weight < m.weight) {
            at--;
        }
        if (m.weight <= 0 || at >= cap) {
            continue;
        }
        const uint32_t kept = n < cap ? n : cap - 1;
        memmove(&ret[at + 1], &ret[at], (kept - at) * sizeof ret[0]);
        ret[at] = m;
        n = kept + 1;
    }
    return n;
}
