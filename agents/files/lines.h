/*
 * Reads the lines of a file or a text with bounded memory. A line longer than LINES_LINE_MAX is an
 * error: what its end holds would be missed. Each line is returned as UTF-8, without its end ("\n"
 * or "\r\n"). One thread.
 */
#ifndef FILES_LINES_H
#define FILES_LINES_H

#include "protocol/base/buf.h"

enum { LINES_LINE_MAX = 1024 * 1024, LINES_BLOCK = 64 * 1024 };

struct lines {
    int fd;            /* -1 = the text */
    const uint8_t *at; /* the unread rest of the block or the text */
    const uint8_t *end;
    uint8_t *block;
    bool eof;
    struct buf line;
    struct buf repaired;
    uint64_t number;   /* of the last returned line; from 1 */
    uint64_t replaced; /* bytes that were not UTF-8 */
};

/* The caller keeps the descriptor. */
BT_MUST_CHECK enum bt_code lines_of_file(struct lines *l, int fd, struct bt_error *err);
/* The text is borrowed. */
void lines_of_text(struct lines *l, struct str text);
/* Accepts zeroed; idempotent. */
void lines_done(struct lines *l);
/* *ret_more is false at the end. The line is valid until the next call. BT_INVALID: the file has
 * zero bytes. BT_LIMIT: a line is too long. */
BT_MUST_CHECK enum bt_code lines_next(struct lines *l, struct str *ret, bool *ret_more,
                                      struct bt_error *err);
#endif
