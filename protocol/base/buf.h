/*
 * A growable byte buffer with a hard cap, after curl's dynbuf. It has one owner and is not
 * thread-safe. After the first failure every further append is a no-op. A caller checks a run of
 * appends once, at its end, with buf_check().
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct buf {
    uint8_t *at;
    size_t len;
    size_t cap;       /* bytes allocated */
    size_t max;       /* the buffer never grows past this; 0 = not initialised */
    enum bt_code bad; /* the first failure: BT_NOMEM or BT_LIMIT */
};

void buf_init(struct buf *b, size_t max);
/* Frees the memory and keeps the cap, so the buffer can be used again. Accepts NULL and a zeroed
 * struct; may be called twice. */
void buf_done(struct buf *b);
/* Drops the bytes and the failure, keeps the memory. */
void buf_clear(struct buf *b);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_cstr(struct buf *b, const char *s);
/* Appends text from outside. Every zero byte and every byte that is not part of valid UTF-8 becomes
 * U+FFFD. Returns the number of replaced bytes. */
size_t buf_add_repaired(struct buf *b, struct str s);
void buf_add_byte(struct buf *b, uint8_t byte);
void buf_printf(struct buf *b, const char *fmt, ...) BT_PRINTF(2, 3);
/* Returns room for n more bytes at b->at + b->len, or NULL. The caller adds to b->len the number of
 * bytes that it wrote. */
uint8_t *buf_reserve(struct buf *b, size_t n);
/* Fails the buffer with this code, unless it has failed before; BT_OK changes nothing. For what
 * could not be made to be appended: a text that is cut would be another one. */
void buf_fail(struct buf *b, enum bt_code code);
/* Shortens the buffer to len bytes; asserts len <= b->len. */
void buf_truncate(struct buf *b, size_t len);
/* Returns the bytes with a terminating zero, which len does not count; "" when the buffer has
 * failed. Valid until the next change. */
const char *buf_cstr(struct buf *b);
/* Moves the bytes to the caller, who frees them with free(). The buffer is empty afterwards. */
uint8_t *buf_take(struct buf *b, size_t *ret_len);
BT_MUST_CHECK enum bt_code buf_check(const struct buf *b, struct bt_error *err);
struct str buf_str(const struct buf *b);
#endif
