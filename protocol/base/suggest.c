#include "protocol/base/suggest.h"

enum { WORD_BYTES_MAX = 64 };

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c - 'A' + 'a');
    }
    return c;
}

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/*
 * Counts the edits from a to b without case; a swap of two neighbours is one edit. This is the
 * optimal string alignment distance (L. Boytsov, "Indexing methods for approximate dictionary
 * searching", 2011, section 2.2).
 */
static uint32_t distance(struct str a, struct str b)
{
    uint32_t rows[3][WORD_BYTES_MAX + 1];
    uint32_t *previous = rows[0];
    uint32_t *last = rows[1];
    uint32_t *current = rows[2];

    for (uint32_t j = 0; j <= b.len; j++) {
        last[j] = j;
    }
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t *reused = previous;
        current[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            uint32_t differ = lower(a.ptr[i - 1]) != lower(b.ptr[j - 1]);
            current[j] = min3(last[j] + 1, current[j - 1] + 1, last[j - 1] + differ);
            if (i > 1 && j > 1 && lower(a.ptr[i - 1]) == lower(b.ptr[j - 2]) &&
                lower(a.ptr[i - 2]) == lower(b.ptr[j - 1]) && previous[j - 2] + 1 < current[j]) {
                current[j] = previous[j - 2] + 1;
            }
        }
        previous = last;
        last = current;
        current = reused;
    }
    return last[b.len];
}

struct suggest suggest_start(struct str word)
{
    return (struct suggest){.word = word,
                            .distance = 1 + (uint32_t)(word.len < 3 ? 1 : word.len / 3)};
}

void suggest_offer(struct suggest *n, struct str name)
{
    uint32_t d;

    if (n->word.len == 0 || n->word.len > WORD_BYTES_MAX || name.len > WORD_BYTES_MAX) {
        return;
    }
    d = distance(n->word, name);
    if (d < n->distance && d < name.len) {
        n->distance = d;
        n->best = name;
    }
}
