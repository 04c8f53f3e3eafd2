/* The words of a short message, for rules that must fit all of it. Pure. */
#ifndef ENGINE_SAY_WORDS_H
#define ENGINE_SAY_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum { SAY_WORDS_MAX = 48, SAY_WORD_BYTES = 23 };

struct say_word {
    char text[SAY_WORD_BYTES + 1]; /* lower case, without apostrophes; or one punctuation mark */
    uint32_t at, end;              /* where it stands in the message */
};

struct say_words {
    struct say_word at[SAY_WORDS_MAX];
    uint32_t n;
    uint32_t i; /* the next one */
};

/* False when there are more words than a rule could fit, or one that is too long. Marks at the end
 * (. ! ?) are left out. */
bool say_words_read(struct str text, struct say_words *ret);
/* Goes past the first of the phrases ("stop|give up|cancel") that stands here; longer ones must
 * stand before those that they begin with. */
bool say_eat(struct say_words *w, const char *phrases);
/* Goes past any number of them. */
void say_eat_all(struct say_words *w, const char *phrases);
static inline bool say_at_end(const struct say_words *w)
{
    return w->i == w->n;
}
/* 2, "two", "2nd", "second"; at most nine digits. */
bool say_eat_number(struct say_words *w, uint32_t *ret);
#endif
