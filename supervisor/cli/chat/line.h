/*
 * The line that is typed, with the few editing keys of a terminal, so that it can be redrawn below
 * other output. A paste is one message, line ends included (bracketed paste). Pure: bytes in, a
 * line out.
 */
#ifndef CLI_CHAT_LINE_H
#define CLI_CHAT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHAT_LINE_MAX = 8192 }; /* the longest message */

enum chat_key {
    CHAT_KEY_MORE, /* the line is not complete */
    CHAT_KEY_DONE, /* Enter: the line is in text; call chat_line_clear before the next key */
    CHAT_KEY_END   /* Ctrl-D in an empty line */
};

struct chat_line {
    char text[CHAT_LINE_MAX + 1]; /* always terminated */
    size_t len;
    bool cut;        /* more was typed than fits */
    bool pasting;    /* within a paste: Enter is text, control characters are dropped */
    uint8_t escape;  /* state within the escape sequence of a key */
    uint16_t number; /* the number in that sequence */
};

enum chat_key chat_line_key(struct chat_line *l, unsigned char byte);
/* Appends a byte of text. */
void chat_line_add(struct chat_line *l, unsigned char byte);
void chat_line_clear(struct chat_line *l);
/* The longest end of the line that fits into the columns; it begins at a whole character. */
const char *chat_line_tail(const struct chat_line *l, size_t columns);
#endif
