/*
 * The words of a text, as the keyword planner compares them: lower case, without stop words, with
 * light stemming (plural, -ing, -ed, final e; after Harman's S-stemmer, 1991). A path gives the
 * word "file" and its extension, an address the word "url"; camelCase and snake_case names give
 * their parts. Bytes above 127 count as letters. Pure.
 */
#ifndef PLANNER_WORDS_H
#define PLANNER_WORDS_H

#include "protocol/base/str.h"

enum { WORD_MAX = 32 };

struct word {
    char text[WORD_MAX]; /* longer words are cut */
    size_t len;
    char shown[WORD_MAX + 1]; /* before stemming, for people */
};

struct words {
    struct str text;
    size_t at;
    struct str token;       /* the rest of the token being taken apart */
    char pending[WORD_MAX]; /* second word of a path */
};

void words_init(struct words *w, struct str text);
bool words_next(struct words *w, struct word *ret);

/* The next run of characters without blanks, quotes and brackets, trailing punctuation left off;
 * false at the end. */
bool token_next(struct str text, size_t *at, struct str *ret);
/* "/var/log/x", "./x", "../x", "~/x", or a name with a short extension ("report.csv"). */
bool token_is_path(struct str token);
bool token_is_url(struct str token);
#endif
