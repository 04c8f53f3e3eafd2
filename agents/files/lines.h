/*
 * Lines of a file or a text, one after the other, with bounded memory: a longer line than
 * LINES_LINE_MAX is cut, and the rest of it skipped. Each line comes as UTF-8, without its end
 * ("\n" or "\r\n"). One thread.
 */
#ifndef FILES_LINES_H
#define FILES_LINES_H

#include "protocol/base/buf.h"

enum { LINES_LINE_MAX = 64 * 1024, LINES_BLOCK = 64 * 1024 };

struct lines {
    int fd;            /* -1 = the text */
    const uint8_t *at; /* what is not yet used of the block or the text */
    const uint8_t *end;
    uint8_t *block;
    bool eof;
    struct buf line;
    struct buf repaired;
    uint64_t number;   /* of the line that was given last; from 1 */
    uint64_t cut;      /* lines that were cut */
    uint64_t replaced; /* bytes that were no UTF-8 */
};

/* The descriptor stays the caller's. */
BT_MUST_CHECK enum bt_code lines_of_file(struct lines *l, int fd, struct bt_error *err);
/* The text is borrowed. */
void lines_of_text(struct lines *l, struct str text);
/* Accepts zeroed; idempotent. */
void lines_done(struct lines *l);
/* *ret_more false at the end. The line is valid until the next call. BT_INVALID: the file has zero
 * bytes. */
BT_MUST_CHECK enum bt_code lines_next(struct lines *l, struct str *ret, bool *ret_more,
                                      struct bt_error *err);
#endif
