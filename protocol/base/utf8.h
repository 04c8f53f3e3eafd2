/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. Pure. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

bool utf8_valid(const char *bytes, size_t len);
/* The length of the longest valid beginning. */
size_t utf8_prefix(const char *bytes, size_t len);
/* The largest n <= max with no character cut in two; bytes must be valid UTF-8. */
size_t utf8_cut(const char *bytes, size_t len, size_t max);
#endif
