/*
 * The text of an answer while it is being written, on stdout: each piece as it comes, the whole
 * never twice. For a terminal: what is printed is scrubbed. One thread.
 */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/buf.h"

struct answer {
    struct buf text; /* as it came, since it began anew */
    bool open;       /* the line on the terminal has no end yet */
};

void answer_init(struct answer *a);
void answer_done(struct answer *a);
/* A piece; index 0 begins anew. */
void answer_piece(struct answer *a, uint64_t index, const char *text);
/* The whole answer: prints what of it is not there yet, and the end of its line. */
void answer_whole(struct answer *a, const char *text);
/* Something else is to be printed: ends the line. */
void answer_break(struct answer *a);
/* The next piece belongs to another answer. */
void answer_clear(struct answer *a);
#endif
