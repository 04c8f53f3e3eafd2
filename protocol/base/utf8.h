/* UTF-8 (RFC 3629): rejects overlong forms, surrogates and code points above U+10FFFF. Pure. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

bool utf8_valid(const char *bytes, size_t len);
/* Returns the length of the longest valid prefix. */
size_t utf8_prefix(const char *bytes, size_t len);
/* Returns the largest n <= max that cuts no character in two; bytes must be valid UTF-8. */
size_t utf8_cut(const char *bytes, size_t len, size_t max);
/* The same for people: when that cuts a word in two, the text ends before the word, unless more
 * than half of the text would go with it. Blanks at the end of what was cut are left out. */
size_t utf8_cut_words(const char *bytes, size_t len, size_t max);
#endif
