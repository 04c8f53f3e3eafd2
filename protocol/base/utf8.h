/* UTF-8 (RFC 3629): rejects overlong forms, surrogates and code points above U+10FFFF. Pure. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_valid(const char *bytes, size_t len);
/* Returns the character at `bytes`, and in *ret_len its bytes. What is no UTF-8 is one byte and
 * U+FFFD. len > 0. */
uint32_t utf8_char(const char *bytes, size_t len, size_t *ret_len);
/* Whether the character moves a cursor, changes the direction of text or cannot be seen. Newline
 * and tab are safe. */
bool utf8_is_unsafe(uint32_t c);
/* Replaces the bytes of unsafe characters by '?', in place; text may end within a character.
 * Joiners and variation selectors stay: words and emoji need them. */
void utf8_scrub(char *text);
/* Returns the length of the longest valid prefix. */
size_t utf8_prefix(const char *bytes, size_t len);
/* Returns the largest n <= max that cuts no character in two; bytes must be valid UTF-8. */
size_t utf8_cut(const char *bytes, size_t len, size_t max);
/* The same for people: when that cuts a word in two, the text ends before the word, unless more
 * than half of the text would go with it. Blanks at the end of what was cut are left out. */
size_t utf8_cut_words(const char *bytes, size_t len, size_t max);
#endif
