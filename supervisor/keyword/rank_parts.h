/*
 * The index of rank.h: shared by rank.c, which reads clauses and compares, and rank_index.c, which
 * reads the cards. Private to this folder.
 */
#ifndef PLANNER_RANK_PARTS_H
#define PLANNER_RANK_PARTS_H

#include "protocol/base/map.h"
#include "supervisor/keyword/rank.h"

/* Where a word may stand that says what a skill does. */
enum {
    AT_NAME = 1u << 0,        /* id, name, tags */
    AT_EXAMPLE = 1u << 1,     /* the first word of an example */
    AT_QUESTION = 1u << 2,    /* of an example that is a question */
    AT_DESCRIPTION = 1u << 3, /* what it does: "Runs ..." */
    AT_CALLED = AT_NAME | AT_EXAMPLE
};

struct term {
    struct str stem;
    struct str shown; /* as it first stood in the goal */
    uint32_t df;      /* skills that have it */
};

/* A term in a document. */
struct posting {
    uint32_t term;
    uint32_t tf; /* weighted; 0 = only in the schema of the parameters, or behind the cut */
    unsigned at;
    bool card;           /* outside the schema */
    bool described;      /* there in the description alone */
    uint32_t properties; /* of the schema, as bits: in their names or descriptions */
    uint32_t switches;   /* those of them that are boolean, and have it in their name */
};

struct document {
    uint32_t agent;
    uint32_t skill;
    uint32_t len; /* weighted */
    bool live;
    bool changes;             /* it may have effects */
    struct posting *postings; /* terms of the clauses only */
    uint32_t n;
};

struct clause {
    uint32_t terms[RANK_CLAUSE_WORDS]; /* distinct, the first word first; kinds of values last */
    uint32_t n;
    uint32_t n_words;
    bool aside[RANK_CLAUSE_WORDS]; /* said.h */
    bool joined[RANK_CLAUSE_WORDS];
    bool counted[RANK_CLAUSE_WORDS];
    bool question;
    bool headed; /* the first term says what is to be done */
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

/* Reads the cards of all enabled agents; the words of the clauses are known already. */
BT_MUST_CHECK enum bt_code rank_index(struct rank *r, const struct registry *registry);
#endif
