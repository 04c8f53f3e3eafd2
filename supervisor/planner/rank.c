#include "supervisor/planner/rank.h"

#include <math.h>

#include "protocol/base/map.h"
#include "protocol/wire/msg.h"
#include "supervisor/planner/verbs.h"
#include "supervisor/planner/words.h"

#define K1 1.2
#define B 0.75

enum { WEIGHT_STRONG = 3, WEIGHT_EXAMPLES = 2, WEIGHT_PLAIN = 1, HEAD_FACTOR = 2 };

struct term {
    struct str shown; /* as it first stood in the goal */
    uint32_t df;      /* skills that have it */
};

/* A term in a document. */
struct posting {
    uint32_t term;
    uint32_t tf; /* weighted */
    bool strong; /* in id, name, tags or examples */
};

struct document {
    uint32_t agent;
    uint32_t skill;
    uint32_t len; /* weighted */
    bool live;
    struct posting *postings; /* terms of the clauses only */
    uint32_t n;
};

struct clause {
    uint32_t terms[RANK_CLAUSE_WORDS]; /* distinct, the first word first */
    uint32_t n;
};

struct rank {
    struct arena *arena;
    struct map by_word; /* keys live in the arena */
    struct term *terms;
    uint32_t n_terms;
    struct clause *clauses;
    struct document *docs;
    uint32_t n_docs;
    double mean_len;
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
    r->terms[*ret] = (struct term){.shown = shown};
    return BT_OK;
}

static enum bt_code read_clause(struct rank *r, struct str text, struct clause *c)
{
    struct words words;
    struct word w;
    words_init(&words, text);
    while (c->n < RANK_CLAUSE_WORDS && words_next(&words, &w)) {
        uint32_t term;
        if (intern(r, &w, &term) != BT_OK) {
            return BT_NOMEM;
        }
        uint32_t i = 0;
        while (i < c->n && c->terms[i] != term) {
            i++;
        }
        if (i == c->n) {
            c->terms[c->n++] = term;
        }
    }
    return BT_OK;
}

/* ---- the documents ---- */

struct indexer {
    struct rank *r;
    struct document *doc;
    struct posting at[RANK_WORDS_MAX];
    uint32_t words; /* read so far */
};

static void add_word(struct indexer *x, const struct word *w, uint32_t weight, bool strong)
{
    const uint32_t term = map_get(&x->r->by_word, (struct str){w->text, w->len});
    x->doc->len += weight;
    if (term == MAP_NONE) {
        return;
    }
    uint32_t i = 0;
    while (i < x->doc->n && x->at[i].term != term) {
        i++;
    }
    if (i == x->doc->n) {
        x->at[x->doc->n++] = (struct posting){.term = term};
        x->r->terms[term].df++;
    }
    x->at[i].tf += weight;
    x->at[i].strong = x->at[i].strong || strong;
}

static void add_text(struct indexer *x, struct str text, uint32_t weight, bool strong)
{
    struct words words;
    struct word w;
    words_init(&words, text);
    while (x->words < RANK_WORDS_MAX && words_next(&words, &w)) {
        x->words++;
        add_word(x, &w, weight, strong);
    }
}

static enum bt_code index_skill(struct rank *r, struct str agent_id, const struct msg_card *card,
                                struct document *doc)
{
    const struct msg_skill *skill = &card->skills[doc->skill];
    struct indexer x = {.r = r, .doc = doc};
    add_text(&x, skill->id, WEIGHT_STRONG, true);
    add_text(&x, skill->name, WEIGHT_STRONG, true);
    for (uint32_t i = 0; i < skill->tags_n; i++) {
        add_text(&x, skill->tags[i], WEIGHT_STRONG, true);
    }
    add_text(&x, agent_id, WEIGHT_PLAIN, false);
    add_text(&x, card->name, WEIGHT_PLAIN, false);
    for (uint32_t i = 0; i < skill->examples_n; i++) {
        add_text(&x, skill->examples[i], WEIGHT_EXAMPLES, true);
    }
    add_text(&x, skill->description, WEIGHT_PLAIN, false);
    if (doc->n > 0) {
        doc->postings = arena_alloc(r->arena, doc->n * sizeof doc->postings[0]);
        if (doc->postings == NULL) {
            return BT_NOMEM;
        }
        memcpy(doc->postings, x.at, doc->n * sizeof doc->postings[0]);
    }
    return BT_OK;
}

static uint32_t count_skills(const struct registry *registry)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < registry_agents(registry); a++) {
        const struct agent_view v = registry_agent_view(registry, a);
        n += v.enabled && v.card != NULL ? v.card->skills_n : 0;
    }
    return n < RANK_SKILLS_MAX ? n : RANK_SKILLS_MAX;
}

static enum bt_code index_cards(struct rank *r, const struct registry *registry)
{
    const uint32_t most = count_skills(registry);
    uint64_t total = 0;
    r->docs = arena_alloc(r->arena, (most + 1) * sizeof r->docs[0]);
    if (r->docs == NULL) {
        return BT_NOMEM;
    }
    for (uint32_t a = 0; a < registry_agents(registry); a++) {
        const struct agent_view v = registry_agent_view(registry, a);
        for (uint32_t s = 0; v.enabled && v.card != NULL && s < v.card->skills_n; s++) {
            if (r->n_docs == most) {
                break;
            }
            if (verbs_is_question(v.card->skills[s].id)) {
                continue; /* the supervisor asks these itself: nothing in a goal is about them */
            }
            struct document *doc = &r->docs[r->n_docs++];
            *doc = (struct document){.agent = a, .skill = s, .live = v.instances > 0};
            if (index_skill(r, v.id, v.card, doc) != BT_OK) {
                return BT_NOMEM;
            }
            total += doc->len;
        }
    }
    r->mean_len = r->n_docs > 0 ? (double)total / r->n_docs : 1;
    return BT_OK;
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
    code = code == BT_OK ? index_cards(r, registry) : code;
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

static struct rank_hit score(const struct rank *r, const struct clause *c, const struct document *d)
{
    struct rank_hit hit = {.agent = d->agent, .skill = d->skill, .live = d->live};
    uint32_t known = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct posting *p = posting_of(d, c->terms[i]);
        hit.score += weight(r, c, i, d);
        known += p != NULL;
        hit.routable = hit.routable || (i == 0 && p != NULL && p->strong);
    }
    hit.routable = hit.routable || (known >= 2 && 2 * known >= c->n);
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

uint32_t rank_explain(const struct rank *r, uint32_t clause, const struct rank_hit *hit,
                      struct rank_match *ret, uint32_t cap)
{
    const struct clause *c = &r->clauses[clause];
    uint32_t n = 0;
    for (uint32_t d = 0; d < r->n_docs; d++) {
        if (r->docs[d].agent != hit->agent || r->docs[d].skill != hit->skill) {
            continue;
        }
        for (uint32_t i = 0; i < c->n; i++) {
            const struct rank_match m = {r->terms[c->terms[i]].shown, weight(r, c, i, &r->docs[d])};
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
    }
    return n;
}
