/*
 * What a clause says: its words, apart from its values. Values are what stands in quotes, paths,
 * addresses, numbers and dates, and arithmetic (expression.h): they are for parameters, and none of
 * their letters says what is to be done. Question words, auxiliaries, pronouns and the like are
 * neither. Pure. Private to this folder.
 */
#ifndef PLANNER_SAID_H
#define PLANNER_SAID_H

#include <stdint.h>

#include "supervisor/keyword/words.h"

enum { SAID_WORDS_MAX = 45 };

enum said_kind { SAID_WORD, SAID_QUOTE, SAID_PATH, SAID_URL, SAID_NUMBER, SAID_KIND_COUNT };

/* One text being taken apart. */
struct said_reader {
    struct str text, expression; /* what is inside the latter is left out */
    size_t at;
    struct str piece;
    size_t piece_at;
    struct str token;   /* what was read last */
    struct words words; /* its words */
    bool in_words;
};

struct said_word {
    struct word word;
    bool aside;   /* behind a preposition ("to bob", not "of") or a value: says how, or for whom */
    bool joined;  /* by "and" with the one before: "the logs and counts" */
    bool counted; /* directly behind a number: what it is a number of */
};

struct said {
    struct said_word at[SAID_WORDS_MAX]; /* the first is the verb, or what a question is about */
    uint32_t n;
    bool question; /* "what", "which", "is": not "could you" */
    bool path, url;
    struct str expression; /* empty for none */
};

void said_begin(struct said_reader *r, struct str text);
/* The next word (*ret is set) or value. Stop words of words.h are left out. */
bool said_next(struct said_reader *r, enum said_kind *kind, struct word *ret);
void said_read(struct str clause, struct said *ret);
/* The same, no further than to the first word. */
void said_read_first(struct str clause, struct said *ret);
/* "41", "3.5", "1,000", "50%", "2026-01-01", "17:00" */
bool said_is_number(struct str token);
/* Whether the text begins like a question for a fact. */
bool said_is_question(struct str text);
/* Whether a word of that stem stands in the text, also inside of a path. */
bool said_has(struct str text, struct str stem);
/* The word that stands for it and its synonyms. */
void said_unify(struct word *w);
#endif
