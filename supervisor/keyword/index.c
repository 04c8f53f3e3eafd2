/*
 * Which skill a clause is about: BM25 (Robertson and Zaragoza, "The Probabilistic Relevance
 * Framework: BM25 and Beyond", 2009) over one document per skill, its card; fields are weighted by
 * repeating their words (BM25F). Cards come from agents: SKILL_WORDS bounds each, and BM25's
 * saturation and its norm by length bound what a card gains that is stuffed with words.
 */
#include <math.h>

#include "protocol/wire/msg.h"
#include "supervisor/keyword/keyword_internal.h"
#include "supervisor/plan/permit.h"

#define K1 1.2
#define B 0.75

/* The value is the weight: an agent's id and name explain words, and draw none. */
enum field { FIELD_AGENT, FIELD_DESCRIPTION, FIELD_EXAMPLE, FIELD_NAME };

enum { VERB_FACTOR = 2, QUERY_MAX = 64 /* words of a clause that count: goals may be hostile */ };

/* ---- cards ---- */

struct indexer {
    struct goal *g;
    struct entry *e;
    struct posting at[TERMS_MAX];
    uint32_t place[TERMS_MAX]; /* of a term in `at`, plus 1; 0 = it is not there */
    uint32_t words;            /* read so far */
};

static void add_word(struct indexer *x, uint32_t term, enum field field, bool called)
{
    struct term *t = &x->g->terms[term];
    if (x->place[term] == 0) {
        x->at[x->e->n] = (struct posting){.term = term};
        x->place[term] = ++x->e->n;
        t->df++;
    }
    struct posting *p = &x->at[x->place[term] - 1];
    p->tf += (uint32_t)field;
    p->called = p->called || called;
    p->own = p->own || field != FIELD_AGENT;
    t->called = t->called || called;
}

/* A skill is called by all words of its name, and by the first of an example or the description
 * that is no frame. */
static void add_text(struct indexer *x, struct str text, enum field field)
{
    bool called = field != FIELD_AGENT;
    size_t at = 0;
    struct str word;
    while (x->words < SKILL_WORDS && words_next(text, &at, &word)) {
        const uint32_t term = goal_term(x->g, word);
        x->words++;
        x->e->len += (uint32_t)field;
        if (term != TERM_NONE) {
            add_word(x, term, field, called);
        }
        called = called && (field == FIELD_NAME || word_is_frame(word));
    }
}

static void index_skill(struct indexer *x, const struct msg_card *card)
{
    const struct msg_skill *skill = x->e->skill;
    x->words = 0;
    memset(x->place, 0, sizeof x->place);
    add_text(x, skill->id, FIELD_NAME);
    add_text(x, skill->name, FIELD_NAME);
    for (uint32_t i = 0; i < skill->tags_n; i++) {
        add_text(x, skill->tags[i], FIELD_NAME);
    }
    add_text(x, x->e->agent_id, FIELD_AGENT);
    add_text(x, card->name, FIELD_AGENT);
    for (uint32_t i = 0; i < skill->examples_n; i++) {
        add_text(x, skill->examples[i], FIELD_EXAMPLE);
    }
    add_text(x, skill->description, FIELD_DESCRIPTION);
    x->e->postings = arena_alloc(x->g->arena, (x->e->n + 1) * sizeof x->at[0]);
    if (x->e->postings != NULL) {
        memcpy(x->e->postings, x->at, x->e->n * sizeof x->at[0]);
    }
}

/* Whether an agent that is there has the skill: nothing waits for one that is being started. */
static bool is_elsewhere(const struct registry *registry, struct str skill)
{
    const uint32_t agent = registry_agent_with_skill(registry, skill);
    return agent != REGISTRY_NONE && registry_agent_view(registry, agent).instances > 0;
}

void index_build(struct index *x, const struct planner_request *request, struct goal *g)
{
    const struct registry *registry = request->registry;
    struct indexer *in = arena_alloc(g->arena, sizeof *in);
    uint64_t total = 0;
    x->entries = arena_alloc(g->arena, SKILLS_MAX * sizeof x->entries[0]);
    g->code = in != NULL && x->entries != NULL ? g->code : goal_nomem(g);
    for (uint32_t a = 0; a < registry_agents(registry) && g->code == BT_OK; a++) {
        const struct agent_view v = registry_agent_view(registry, a);
        const bool may = v.enabled && (v.expected || request->late_agents) &&
                         plan_permits(request->permitted, v.id);
        const uint32_t n = may && v.card != NULL ? v.card->skills_n : 0;
        for (uint32_t s = 0; s < n && x->n < SKILLS_MAX && g->code == BT_OK; s++) {
            if (word_in(v.card->skills[s].id, "gate verify plan synthesize converse")) {
                continue; /* the supervisor asks these itself: they do no work of a goal */
            }
            if (v.instances == 0 && is_elsewhere(registry, v.card->skills[s].id)) {
                continue;
            }
            in->g = g;
            in->e = &x->entries[x->n++];
            *in->e = (struct entry){
                .skill = &v.card->skills[s], .agent_id = v.id, .live = v.instances > 0};
            index_skill(in, v.card);
            total += in->e->len;
            g->code = in->e->postings != NULL ? BT_OK : goal_nomem(g);
        }
    }
    x->mean_len = total > 0 ? (double)total / x->n : 1;
    for (uint32_t i = 0; i < g->n_terms; i++) {
        struct term *t = &g->terms[i];
        /* Never below zero (Lucene's form): a word of every card still counts a little. */
        t->idf = log(1 + ((double)x->n - t->df + 0.5) / (t->df + 0.5));
    }
}

/* ---- scores ---- */

const struct posting *entry_posting(const struct entry *e, uint32_t term)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->postings[i].term == term) {
            return &e->postings[i];
        }
    }
    return NULL;
}

double index_weight(const struct index *x, const struct goal *g, const struct entry *e,
                    uint32_t term, uint32_t verb)
{
    const struct posting *p = entry_posting(e, term);
    const double norm = K1 * (1 - B + B * e->len / x->mean_len);
    return p == NULL ? 0
                     : (term == verb ? VERB_FACTOR : 1) * g->terms[term].idf * (p->tf * (K1 + 1)) /
                           (p->tf + norm);
}

uint32_t index_search(const struct index *x, const struct goal *g, struct span s, uint32_t verb,
                      struct hit *ret, uint32_t cap)
{
    uint32_t terms[QUERY_MAX];
    uint32_t n_terms = 0;
    uint32_t n = 0;
    for (uint32_t i = s.from; i < s.to && n_terms < QUERY_MAX; i++) {
        terms[n_terms] = g->tokens[i].term;
        n_terms += g->tokens[i].term != TERM_NONE;
    }
    const bool asks = goal_asks(g, s);
    for (uint32_t i = 0; i < x->n; i++) {
        struct hit hit = {.entry = &x->entries[i]};
        const struct posting *p = entry_posting(hit.entry, verb);
        if (verb != TERM_NONE && (p == NULL || !(p->called || asks))) {
            continue;
        }
        for (uint32_t k = 0; k < n_terms; k++) {
            hit.score += index_weight(x, g, hit.entry, terms[k], verb);
        }
        uint32_t at = n;
        while (at > 0 &&
               (hit.score > ret[at - 1].score ||
                (hit.score == ret[at - 1].score && hit.entry->live && !ret[at - 1].entry->live))) {
            at--;
        }
        if (at < cap) {
            const uint32_t kept = n < cap ? n : cap - 1;
            memmove(&ret[at + 1], &ret[at], (kept - at) * sizeof ret[0]);
            ret[at] = hit;
            n = kept + 1;
        }
    }
    return n;
}
