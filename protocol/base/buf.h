/*
 * A growable byte buffer with a hard cap (the idea of curl's dynbuf). One owner. After the first
 * failure every further append is a no-op and buf_code() tells why, so that a run of appends is
 * checked once at its end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct buf {
    uint8_t *at;
    size_t len;
    size_t cap;       /* allocated */
    size_t max;       /* the buffer never grows past this; 0 = not initialised */
    enum bt_code bad; /* first failure: BT_NOMEM or BT_LIMIT */
};

void buf_init(struct buf *b, size_t max);
/* Frees; accepts NULL and zeroed; idempotent. The cap is kept, so the buffer can be used again. */
void buf_done(struct buf *b);
/* Forgets the bytes and the failure, keeps the memory. */
void buf_clear(struct buf *b);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_cstr(struct buf *b, const char *s);
/* Text from outside: every byte that is no UTF-8, and every zero byte, becomes U+FFFD. Returns how
 * many did. */
size_t buf_add_repaired(struct buf *b, struct str s);
void buf_add_byte(struct buf *b, uint8_t byte);
void buf_printf(struct buf *b, const char *fmt, ...) BT_PRINTF(2, 3);
/* Room for n more bytes at b->at + b->len, or NULL (the caller adds to b->len what it wrote). */
uint8_t *buf_reserve(struct buf *b, size_t n);
/* Shortens to len; asserts len <= b->len. */
void buf_truncate(struct buf *b, size_t len);
/* A terminating zero after the bytes, not counted in len. "" when the buffer failed. Valid until
 * the next change. */
const char *buf_cstr(struct buf *b);
/* Moves the bytes out (the caller frees with free()); the buffer is empty afterwards. */
uint8_t *buf_take(struct buf *b, size_t *ret_len);
BT_MUST_CHECK enum bt_code buf_check(const struct buf *b, struct bt_error *err);
struct str buf_str(const struct buf *b);
#endif
