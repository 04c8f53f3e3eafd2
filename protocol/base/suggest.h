/* "Did you mean ...?": the nearest of some names to a word, when one is near enough. Pure. */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stdint.h>

#include "protocol/base/str.h"

struct suggest {
    struct str word;
    struct str best; /* borrowed from suggest_offer; .ptr NULL = nothing near enough */
    uint32_t distance;
};

/* Words over 64 bytes have no neighbours. The word is borrowed. */
struct suggest suggest_start(struct str word);
void suggest_offer(struct suggest *n, struct str name);
#endif
