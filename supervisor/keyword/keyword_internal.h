/*
 * The parts of the keyword planner, in the order of the work: words.c (terms), expression.c and
 * split.c (a goal into tokens and pieces), index.c (BM25 over cards), fill.c (parameters),
 * keyword.c (the plan). Everything lives in the request's arena.
 */
#ifndef KEYWORD_INTERNAL_H
#define KEYWORD_INTERNAL_H

#include "protocol/base/buf.h"
#include "supervisor/keyword/planner.h"

struct msg_skill;
struct sb_stemmer;

enum {
    WORD_BYTES = 32, /* longer words are cut: libstemmer knows none of that length */
    TERMS_MAX = 256, /* different words of a goal: each clause has an array of them */
    TERM_BEGINS = 1024,
    TOKENS_MAX = 2048,   /* of a goal: 8 KiB of text have 1,500 words */
    STEPS_MAX = 64,      /* of a plan from words; a longer plan comes as a file */
    PROPERTIES_MAX = 32, /* of an inputSchema: schemas come from agents */
    SKILLS_MAX = 4096,   /* later ones in the registry's order are left out */
    SKILL_WORDS = 200    /* of a skill's card; its id, name and tags come first */
};
#define TERM_NONE UINT32_MAX
#define BLANKS " \t\r\n"

/*
 * The confidence is the share of a clause's words that a skill explains, in percent; the verb
 * counts twice, an unknown modifier of a known word half. Calibrated on goals.def and e2e.goals.
 * - A skill without inputSchema gets the whole clause as its task: a modifier is not lost. "Find
 *   critical incidents" has 85 for a card that knows find and incident. 80 refuses "create a
 * nuclear weapon" (50), "find my lost keys" (50), "get rid of all customers" (60).
 * - A skill with inputSchema gets its parameters alone: an unknown word would be lost in silence,
 * and the result would look like an answer. "List the largest files in /var/log" has 75.
 */
enum { CONFIDENCE_TASK = 80, CONFIDENCE_PARAMETERS = 100 };

struct span {
    uint32_t from, to;
};

/* A word of the goal. */
struct term {
    struct str stem;
    uint32_t df; /* skills whose card has it */
    double idf;
    bool called; /* some skill is called by it: work may begin with it */
};

enum token_kind {
    TOKEN_WORD,
    TOKEN_AND,
    TOKEN_QUOTE, /* this and the following are values */
    TOKEN_PATH,
    TOKEN_URL,
    TOKEN_NUMBER,
    TOKEN_EXPRESSION
};

struct token {
    enum token_kind kind;
    bool content;    /* a word that is evidence for the skills that know it */
    bool pause;      /* a comma or a full stop stands after it */
    bool breaks;     /* a new line or ";" stands before it */
    struct str text; /* of a quote what is inside; of an expression its symbols */
    size_t from, to; /* in the goal */
    uint32_t term;   /* of a content word, and of what a value is ("file"); TERM_NONE */
    uint32_t taken;  /* the attempt that put it into a parameter (fill.c) */
};

/* A thing to do. */
struct piece {
    struct span tokens;
    const char *refused; /* why a plan from words cannot express it; NULL mostly */
    struct str refused_words;
};

struct goal {
    struct str text;
    struct arena *arena;
    struct bt_error *err;
    enum bt_code code; /* the first failure; what is called after it may do nothing */
    struct sb_stemmer *stemmer;
    struct term terms[TERMS_MAX];
    uint32_t n_terms;
    bool begins[TERM_BEGINS]; /* by the first two letters: whether a word may have a term */
    struct token tokens[TOKENS_MAX];
    uint32_t n;
    struct piece pieces[STEPS_MAX];
    uint32_t n_pieces;
};

/* ---- words.c ---- */

enum bt_code goal_nomem(struct goal *g);
struct str goal_keep(struct goal *g, struct str text); /* a copy in the arena */
/* The term of a word in any form; TERM_NONE when the goal has no such word, unless it is added. */
uint32_t goal_term(struct goal *g, struct str word);
uint32_t goal_add_term(struct goal *g, struct str word);
/* Whether the word is in a list of lower-case words, "a an the". */
bool word_in(struct str word, const char *list);
/* Articles, prepositions, pronouns, auxiliaries, politeness: no evidence for or against a skill. */
bool word_is_frame(struct str word);
/* The next word of a card's text; "countByDay" and "count_by_day" are three. Texts in quotes and
 * paths are examples of values, and left out. */
bool words_next(struct str text, size_t *at, struct str *ret);
bool text_in_word(char c);
bool text_is_one_of(char c, const char *set);
bool text_is_path(struct str token);   /* "/var/log/x", "./x", "~/x", "report.csv" */
bool text_is_url(struct str token);    /* "https://...", "www.x.org" */
bool text_is_number(struct str token); /* also "2026-01-01", "17:00", "50%" */

/* ---- expression.c ---- */

/* Arithmetic that begins at `from`, in symbols or in words: "6 * 7", "sqrt(2) / 3", "6 times 7",
 * "15% of 240", "add 2 and 3". Returns its end and appends it in symbols, or returns `from` and
 * appends nothing: "8", "3, 4 and 8", "2026-01-01" and "6 * x" are none. *io_failed (0 at first):
 * no expression begins before it, so that all reads of a text are linear. */
size_t expression_read(struct str text, size_t from, size_t *io_failed, struct buf *out);

/* ---- split.c ---- */

/* Tokens and pieces of goal->text. */
void goal_split(struct goal *g);
/* The tokens as they stand in the goal. */
struct str goal_text(const struct goal *g, struct span s);
/* Whether they ask for a fact: "what ...", "tell me ...". */
bool goal_asks(const struct goal *g, struct span s);

/* ---- index.c ---- */

/* A term in a skill's card. */
struct posting {
    uint32_t term;
    uint32_t tf; /* weighted by where it stands */
    bool called; /* in id, name or tags, or first in an example or the description */
    bool own;    /* not in the agent's id and name alone */
};

struct entry {
    const struct msg_skill *skill;
    struct str agent_id;
    bool live;    /* the agent has an instance */
    uint32_t len; /* weighted words of the card */
    struct posting *postings;
    uint32_t n;
};

struct index {
    struct entry *entries;
    uint32_t n;
    double mean_len;
};

struct hit {
    const struct entry *entry;
    double score;
};

/* Reads the cards of all enabled agents that are there, or expected. */
void index_build(struct index *x, const struct planner_request *request, struct goal *g);
const struct posting *entry_posting(const struct entry *e, uint32_t term); /* NULL = none */
/* What the term adds to the score of a clause with this verb; 0 = nothing. */
double index_weight(const struct index *x, const struct goal *g, const struct entry *e,
                    uint32_t term, uint32_t verb);
/* The best skills for the tokens, best first: those that are called by the verb (a question may be
 * about any word of a card), or all when it is TERM_NONE. Of equals live agents come first. */
uint32_t index_search(const struct index *x, const struct goal *g, struct span s, uint32_t verb,
                      struct hit *ret, uint32_t cap);

/* ---- fill.c ---- */

/* Parameters of one skill for one clause. */
struct fill {
    struct goal *goal;
    struct span span;
    struct str previous; /* id of the step before; empty = none */
    /* What became of it: */
    uint32_t attempt;   /* marks the tokens that it took */
    struct buf members; /* of the map */
    uint32_t n;
    bool reads_task;          /* the skill gets the clause: no word and no value is lost */
    bool takes_previous;      /* a parameter has the result before */
    struct str missing;       /* the first property that needs a value and has none; {NULL, 0} */
    const struct token *left; /* a value that nothing takes; NULL */
};

void fill_parameters(struct fill *f, struct doc schema);
#endif
