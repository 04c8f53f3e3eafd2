/* The words of a short message, for rules that must fit all of it. Pure. */
#ifndef CONVERSATION_SAY_WORDS_H
#define CONVERSATION_SAY_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum { INTENT_WORDS_MAX = 48, INTENT_WORD_BYTES = 23 };

struct intent_word {
    char text[INTENT_WORD_BYTES + 1]; /* lower case, without apostrophes; or one punctuation mark */
    uint32_t at, end;                 /* where it stands in the message */
};

struct intent_words {
    struct intent_word at[INTENT_WORDS_MAX];
    uint32_t n;
    uint32_t i; /* the next one */
};

/* False when there are more words than a rule could fit, or one that is too long. Marks at the end
 * (. ! ?) are left out. */
bool intent_words_read(struct str text, struct intent_words *ret);
/* Goes past the first of the phrases ("stop|give up|cancel") that stands here; longer ones must
 * stand before those that they begin with. */
bool intent_eat(struct intent_words *w, const char *phrases);
/* Goes past any number of them. */
void intent_eat_all(struct intent_words *w, const char *phrases);
static inline bool intent_at_end(const struct intent_words *w)
{
    return w->i == w->n;
}
/* 2, "two", "2nd", "second"; at most nine digits. */
bool intent_eat_number(struct intent_words *w, uint32_t *ret);
#endif
