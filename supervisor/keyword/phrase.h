/*
 * Looking for words in a goal, outside its quotes. Text in "quotes", `backticks` or 'single quotes'
 * that open after a blank is one word; a quote that is not closed on its line is a character like
 * any other. Case is ignored (ASCII). Pure; each call is linear in the text. Private to this
 * folder.
 */
#ifndef PLANNER_PHRASE_H
#define PLANNER_PHRASE_H

#include <stdint.h>

#include "protocol/base/str.h"

#define PHRASE_NONE SIZE_MAX

bool phrase_blank(char c);
struct str phrase_cut(struct str s, size_t from, size_t to);
/* Without blanks at both ends. */
struct str phrase_strip(struct str s);
/* The length of `words` when the text begins with them as whole words; else 0. */
size_t phrase_begins(struct str text, const char *words);
/* Behind the quote that opens at `at`; 0 = none does. */
size_t phrase_quote(struct str text, size_t at);
/* The next word at or behind *at, which moves behind it; quotes are kept, trailing punctuation is
 * not. */
bool phrase_word(struct str text, size_t *at, struct str *ret);
/* Where the first of the phrases begins, at a word's beginning; PHRASE_NONE. */
size_t phrase_find(struct str text, const char *const *phrases, size_t n, size_t *ret_len);
/* The first comma outside quotes that a blank follows; PHRASE_NONE. */
size_t phrase_comma(struct str text);
bool phrase_is(struct str word, const char *const *words, size_t n);
/* "reading", but not "string" and other nouns. */
bool phrase_gerund(struct str word);

#define PHRASE_LIST(words) (words), sizeof(words) / sizeof(words)[0]
#endif
