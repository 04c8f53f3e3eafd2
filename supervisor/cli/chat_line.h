/*
 * The line that is being typed: the few keys that a terminal's own line editing has, so that what
 * was typed can be drawn again below what comes meanwhile. Pure: bytes in, a line out.
 */
#ifndef CLI_CHAT_LINE_H
#define CLI_CHAT_LINE_H

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
    uint8_t escape; /* within the sequence of a key that has no meaning here */
};

enum chat_key chat_line_key(struct chat_line *l, unsigned char byte);
void chat_line_clear(struct chat_line *l);
/* The end of the line that is not wider than so many columns; it begins at a whole character. */
const char *chat_line_tail(const struct chat_line *l, size_t columns);
#endif
