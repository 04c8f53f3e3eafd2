#include "protocol/wire/unique_keys_internal.h"

#include "protocol/base/assert.h"
#include "protocol/wire/mp_head_internal.h"

enum {
    SLOTS = 16384,             /* 64 KiB of stack */
    KEYS_PER_PASS = SLOTS / 2, /* keys per pass: keeps the table half full */
    PROBES_PER_SLOT = 8        /* honest keys need about one; an attacker gets the rest */
};

struct pass {
    const uint8_t *first;
    const uint8_t *end;
    uint32_t n;
    uint32_t range;
    uint32_t n_ranges;
    uint32_t cap; /* slots in use, a power of two */
    uint32_t probes_left;
    uint32_t *slots; /* offset of the key from `first`, plus 1; 0 = free */
};

/* FNV alone leaves the high bits of short keys alike, so this adds the finaliser of MurmurHash3. */
static uint64_t finalized_hash(struct str key)
{
    uint64_t h = str_hash(key);
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDu;
    return h ^ h >> 33;
}

static struct str key_at(const struct pass *p, uint32_t offset)
{
    struct doc_head h;
    size_t len;
    enum mp_head_error error = mp_head_read(p->first + offset, p->end, &h, &len);

    ASSERT(error == HEAD_OK && h.kind == DOC_STR);
    return h.str;
}

static enum unique_keys_result insert(struct pass *p, uint64_t hash, struct str key,
                                      uint32_t offset)
{
    uint32_t i = (uint32_t)hash & (p->cap - 1);

    while (p->slots[i] != 0) {
        if (str_eq(key_at(p, p->slots[i] - 1), key)) {
            return KEYS_DUPLICATE;
        }
        if (p->probes_left-- == 0) {
            return KEYS_COLLIDING;
        }
        i = (i + 1) & (p->cap - 1);
    }
    p->slots[i] = offset + 1;
    return KEYS_UNIQUE;
}

static enum unique_keys_result check_range(struct pass *p, struct unique_keys_duplicate *ret)
{
    const uint8_t *at = p->first;
    uint32_t n_keys = 0;

    memset(p->slots, 0, p->cap * sizeof *p->slots);
    p->probes_left = p->cap * PROBES_PER_SLOT;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t offset = (uint32_t)(at - p->first);
        struct str key = key_at(p, offset);
        uint64_t hash = finalized_hash(key);
        bool skipped;

        if ((hash >> 32) * p->n_ranges >> 32 == p->range) {
            enum unique_keys_result result =
                ++n_keys < p->cap ? insert(p, hash, key, offset) : KEYS_COLLIDING;
            if (result != KEYS_UNIQUE) {
                *ret = (struct unique_keys_duplicate){at, i, key};
                return result;
            }
        }
        skipped = mp_head_skip(&at, p->end) && mp_head_skip(&at, p->end);
        ASSERT(skipped);
    }
    return KEYS_UNIQUE;
}

enum unique_keys_result unique_keys_check(const uint8_t *first, const uint8_t *end, uint32_t n,
                                          struct unique_keys_duplicate *ret)
{
    uint32_t slots[SLOTS];
    struct pass p = {.first = first, .end = end, .n = n, .cap = 8, .slots = slots};

    if (n < 2) {
        return KEYS_UNIQUE;
    }
    ASSERT((size_t)(end - first) < UINT32_MAX);
    p.n_ranges = (n - 1) / KEYS_PER_PASS + 1;
    while (p.cap < SLOTS && p.cap < 2 * (n / p.n_ranges + 1)) {
        p.cap *= 2;
    }
    for (p.range = 0; p.range < p.n_ranges; p.range++) {
        enum unique_keys_result result = check_range(&p, ret);
        if (result != KEYS_UNIQUE) {
            return result;
        }
    }
    return KEYS_UNIQUE;
}
