#include "protocol/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/utf8.h"

void buf_init(struct buf *b, size_t max)
{
    ASSERT(max > 0);
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    if (b != NULL) {
        free(b->at);
        *b = (struct buf){.max = b->max};
    }
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->bad = BT_OK;
}

/* The room of a buffer that is too small for n more bytes, or has failed. */
static uint8_t *grow(struct buf *b, size_t n)
{
    size_t need;
    size_t cap;
    uint8_t *grown;

    ASSERT(b->max > 0);
    if (b->bad != BT_OK) {
        return NULL;
    }
    if (n > b->max - b->len) {
        b->bad = BT_LIMIT;
        return NULL;
    }
    need = b->len + n + 1; /* one more for buf_cstr */
    cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need) {
        cap *= 2;
    }
    grown = realloc(b->at, cap);
    if (grown == NULL) {
        b->bad = BT_NOMEM;
        return NULL;
    }
    b->at = grown;
    b->cap = cap;
    return b->at + b->len;
}

/* Almost every append finds room: that path is short and inline. */
static inline uint8_t *room_for(struct buf *b, size_t n)
{
    const bool fits = n < b->cap - b->len && n <= b->max - b->len && b->bad == BT_OK;

    return fits ? b->at + b->len : grow(b, n);
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
    return room_for(b, n);
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    uint8_t *to = n > 0 ? room_for(b, n) : NULL;

    if (to != NULL) {
        memcpy(to, bytes, n);
        b->len += n;
    }
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.ptr, s.len);
}

void buf_add_cstr(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

size_t buf_add_repaired(struct buf *b, struct str s)
{
    const char *end = s.ptr + s.len;
    const char *zero = NULL; /* the next zero byte or the end; searched for again only after it */
    size_t replaced = 0;

    for (const char *at = s.ptr; at < end; at++) {
        size_t n;
        if (zero == NULL || zero < at) {
            zero = memchr(at, 0, (size_t)(end - at));
            zero = zero == NULL ? end : zero;
        }
        n = utf8_prefix(at, (size_t)(zero - at));
        buf_add(b, at, n);
        at += n;
        if (at < end) {
            buf_add_cstr(b, "\xEF\xBF\xBD");
            replaced++;
        }
    }
    return replaced;
}

void buf_add_byte(struct buf *b, uint8_t byte)
{
    uint8_t *to = room_for(b, 1);

    if (to != NULL) {
        *to = byte;
        b->len++;
    }
}

/* Prints into the room that is there, and once more when it was too small. */
void buf_printf(struct buf *b, const char *fmt, ...)
{
    const size_t room = b->bad == BT_OK ? b->cap - b->len : 0;
    va_list args;
    va_list again;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(room > 0 ? (char *)b->at + b->len : NULL, room, fmt, args);
    va_end(args);
    if (n > 0) {
        uint8_t *to = room_for(b, (size_t)n);
        if (to != NULL && (size_t)n >= room) {
            (void)vsnprintf((char *)to, (size_t)n + 1, fmt, again);
        }
        b->len += to != NULL ? (size_t)n : 0;
    }
    va_end(again);
}

void buf_fail(struct buf *b, enum bt_code code)
{
    b->bad = b->bad == BT_OK ? code : b->bad;
}

void buf_truncate(struct buf *b, size_t len)
{
    ASSERT(len <= b->len);
    b->len = len;
}

const char *buf_cstr(struct buf *b)
{
    if (b->bad != BT_OK || buf_reserve(b, 0) == NULL) {
        return "";
    }
    b->at[b->len] = 0;
    return (const char *)b->at;
}

uint8_t *buf_take(struct buf *b, size_t *ret_len)
{
    uint8_t *at = b->at;
    *ret_len = b->len;
    *b = (struct buf){.max = b->max};
    return at;
}

enum bt_code buf_check(const struct buf *b, struct bt_error *err)
{
    if (b->bad == BT_OK) {
        return BT_OK;
    }
    if (b->bad == BT_NOMEM) {
        return err_set(err, BT_NOMEM, "out of memory for a buffer of %zu bytes", b->len);
    }
    return err_set(err, b->bad, "larger than the cap of %zu bytes", b->max);
}

struct str buf_str(const struct buf *b)
{
    return (struct str){(const char *)b->at, b->len};
}
