/* A borrowed string of bytes without a terminating zero. It is valid as long as the memory that it
 * points into. Pure. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

/* For printf: "%.*s", STR_ARG(s). */
#define STR_ARG(s) (int)(s).len, (s).ptr
#define STR_LIT(lit) ((struct str){(lit), sizeof(lit) - 1})

static inline struct str str_from(const char *cstr)
{
    return (struct str){cstr, cstr == NULL ? 0 : strlen(cstr)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_is(struct str a, const char *cstr)
{
    return str_eq(a, str_from(cstr));
}

/* The white space of JSON, RFC 8259, 2. */
static inline bool str_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Without the white space at both ends. */
static inline struct str str_trimmed(struct str s)
{
    while (s.len > 0 && str_is_space(s.ptr[0])) {
        s = (struct str){s.ptr + 1, s.len - 1};
    }
    while (s.len > 0 && str_is_space(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

/* FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/ . For tables, never for security. */
static inline uint64_t str_hash(struct str s)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < s.len; i++) {
        h = (h ^ (uint8_t)s.ptr[i]) * 1099511628211u;
    }
    return h;
}
#endif
