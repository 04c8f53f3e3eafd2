/* UUIDv7 (RFC 9562, section 5.7), passed by value, printed in upper case. Thread-safe. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "protocol/base/str.h"

enum { UUID_TEXT_LEN = 36 };

struct uuid {
    uint8_t b[16];
};

/* Returns a new id: wall clock, a counter that keeps the ids of one millisecond in order, and
 * random bits. */
struct uuid uuid_new(void);
/* Writes 36 characters and a terminating zero. */
void uuid_format(struct uuid id, char ret[UUID_TEXT_LEN + 1]);
/* Accepts both cases; false when the text is not a UUID. */
bool uuid_parse(struct str text, struct uuid *ret_id);

static inline bool uuid_eq(struct uuid a, struct uuid b)
{
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

static inline bool uuid_is_nil(struct uuid a)
{
    return uuid_eq(a, (struct uuid){{0}});
}
#endif
