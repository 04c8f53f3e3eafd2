/* "Did you mean ...?": finds the nearest of some names to a word, when one is near enough. Pure. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stdint.h>

#include "protocol/base/str.h"

struct suggest {
    struct str word;
    struct str best; /* borrowed from suggest_offer; .ptr NULL = no name is near enough */
    uint32_t distance;
};

/* The word is borrowed. A word of more than 64 bytes gets no suggestion. */
struct suggest suggest_start(struct str word);
void suggest_offer(struct suggest *n, struct str name);
#endif
