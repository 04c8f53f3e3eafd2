/* "Did you mean ...?": the nearest of some names to a word, when one is near enough. Pure. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stdint.h>

#include "protocol/base/str.h"

struct near {
    struct str word;
    struct str best; /* borrowed from near_offer; .ptr NULL = nothing near enough */
    uint32_t distance;
};

/* Words over 64 bytes have no neighbours. The word is borrowed. */
struct near near_start(struct str word);
void near_offer(struct near *n, struct str name);
#endif
