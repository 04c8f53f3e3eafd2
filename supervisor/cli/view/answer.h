/*
 * Prints an answer on stdout while it is written: each piece once, scrubbed when stdout is a
 * terminal. One thread.
 */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/buf.h"

struct answer {
    struct buf text; /* the pieces of the current answer */
    bool open;       /* the line on the terminal is not ended */
};

void answer_init(struct answer *a);
void answer_done(struct answer *a);
/* Prints a piece; index 0 begins a new answer. */
void answer_piece(struct answer *a, uint64_t index, const char *text);
/* Prints what is missing of the whole answer, and a newline. When the pieces differ from it, prints
 * all of it. */
void answer_whole(struct answer *a, const char *text);
/* Ends an open line, before other output. */
void answer_break(struct answer *a);
/* The next piece belongs to another answer. */
void answer_clear(struct answer *a);
#endif
