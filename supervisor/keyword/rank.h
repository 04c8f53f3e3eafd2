/*
 * Which skill a clause is about: BM25 (Robertson and Zaragoza, "The Probabilistic Relevance
 * Framework: BM25 and Beyond", 2009; k1 1.2, b 0.75) over one document per skill. A document is the
 * skill's id, name and tags (counted three times), examples (twice), description, and the agent's
 * id and name (once); fields are weighted by repeating them (BM25F). The first word of a clause,
 * its verb, counts twice.
 *
 * What can be done at all is told apart from what fits best. A skill supports a clause when the
 * clause's first word (said.h: question words, articles and pronouns left out) is in its id, name
 * or tags, the first of an example, or in its description as what it does ("Runs ..."). A question
 * is not answered by whom only the description names, nor by who may change something, unless an
 * example is such a question. A verb alone must be in id, name or tags. Where one is called by the
 * verb, another that only its description supports (rank_hit.described) is no second choice. And
 * nothing in the clause may be unknown: rank_unknown. Values (paths, quotes, numbers) are no words;
 * a clause that is nothing but arithmetic has the word "expression".
 *
 * Cards come from agents: each document is cut after RANK_WORDS_MAX words, and what a word can add
 * to a score is bounded by BM25's saturation, so that a card stuffed with words gains nothing by
 * it. Skills that only the supervisor asks (verbs_is_question) are left out.
 */
#ifndef PLANNER_RANK_H
#define PLANNER_RANK_H

#include "protocol/base/arena.h"
#include "protocol/base/err.h"
#include "registry/registry.h"

enum {
    RANK_SKILLS_MAX = 4096,
    RANK_WORDS_MAX = 200,  /* of one skill; its id, name and tags come first */
    RANK_CLAUSE_WORDS = 48 /* distinct words of one clause that count */
};

struct rank;

struct rank_match {
    struct str word; /* as in the goal; lives as long as the rank */
    double weight;   /* what it adds to the score */
};

struct rank_hit {
    uint32_t agent;
    uint32_t skill; /* in the agent's card */
    double score;
    bool supported;
    bool described; /* only by its description: none of the words is in id, name, tags, ... */
    bool live;      /* the agent has an instance */
};

/* Indexes the cards of all enabled agents for these clauses. Lives in the arena. */
BT_MUST_CHECK enum bt_code rank_new(const struct registry *registry, const struct str *clauses,
                                    uint32_t n, struct arena *arena, struct rank **ret,
                                    struct bt_error *err);
uint32_t rank_skills(const struct rank *r);
/* The skills by their score for a clause, best first, those with a score above 0, at most cap;
 * equal scores: agents with live instances first, then the order of the registry. */
uint32_t rank_clause(const struct rank *r, uint32_t clause, struct rank_hit *ret, uint32_t cap);
/*
 * A word of the clause that nothing explains: not the skill's card (its description says nothing of
 * a word that names a switch, a boolean parameter, which is not filled), nor the name or
 * description of a parameter that the words fill (filled, fill.h: what is not given is not done
 * either), nor these texts (the values of the parameters, what went before). One word in five may
 * be unknown, and one that "and" joins to a known one behind the verb, but not behind a preposition
 * or a value: "read a.txt to bob" is not reading.
 */
bool rank_unknown(const struct rank *r, uint32_t clause, const struct rank_hit *hit,
                  uint32_t filled, const struct str *texts, uint32_t n, struct str *ret_word);
/* Whether the clause is one word and no value. */
bool rank_is_bare(const struct rank *r, uint32_t clause);
/* The word that a skill must know; false for none. */
bool rank_headed(const struct rank *r, uint32_t clause, struct str *ret_word);
/* Why: the words that matched, heaviest first; at most cap. */
uint32_t rank_explain(const struct rank *r, uint32_t clause, const struct rank_hit *hit,
                      struct rank_match *ret, uint32_t cap);
#endif
