/*
 * The line that is being typed: the few keys that a terminal's own line editing has, so that what
 * was typed can be drawn again below what comes meanwhile. What is pasted is one message, its line
 * ends included (bracketed paste). Pure: bytes in, a line out.
 */
#ifndef CLI_CHAT_LINE_H
#define CLI_CHAT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHAT_LINE_MAX = 8192 }; /* as long as a message may be */

enum chat_key {
    CHAT_KEY_MORE, /* the line goes on */
    CHAT_KEY_DONE, /* Enter: the line is in text; clear it before the next key */
    CHAT_KEY_END   /* Ctrl-D in an empty line */
};

struct chat_line {
    char text[CHAT_LINE_MAX + 1]; /* always terminated */
    size_t len;
    bool cut;        /* more was typed than fits: not what was meant */
    bool pasting;    /* Enter and control characters are text, or nothing */
    uint8_t escape;  /* within the sequence of a key */
    uint16_t number; /* of that sequence */
};

enum chat_key chat_line_key(struct chat_line *l, unsigned char byte);
/* A byte of the text. */
void chat_line_add(struct chat_line *l, unsigned char byte);
void chat_line_clear(struct chat_line *l);
/* The end of the line that is not wider than so many columns; it begins at a whole character. */
const char *chat_line_tail(const struct chat_line *l, size_t columns);
#endif
