/* The state of the strict JSON reader, shared by its three files: structure (json_read.c), strings
 * and numbers. */
#ifndef WIRE_JSON_SCAN_INTERNAL_H
#define WIRE_JSON_SCAN_INTERNAL_H

#include "protocol/wire/doc.h"
#include "protocol/wire/mp_head_internal.h"

struct json_frame {
    size_t start;      /* in the text: the opening bracket */
    size_t mp_head_at; /* in out: the five bytes reserved for the head */
    uint32_t n;        /* elements or pairs so far */
    bool is_map;
};

struct json_scan {
    struct str text;
    size_t at;
    struct json_limits limits;
    uint32_t nodes;
    uint32_t depth;
    struct json_frame frames[WIRE_DEPTH_MAX];
    struct buf *out;
    struct bt_error *err;
};

/* Sets the error "line 3 column 7: ..." for the offset `at` and returns code. */
enum bt_code json_error(struct json_scan *s, size_t at, enum bt_code code, const char *fmt, ...)
    BT_PRINTF(4, 5);

/* Both start at the first byte of the token, append its msgpack to out and move after it. */
BT_MUST_CHECK enum bt_code json_scan_string(struct json_scan *s);
BT_MUST_CHECK enum bt_code json_scan_number(struct json_scan *s);

/* Returns -1 at the end of the text. */
static inline int json_peek(const struct json_scan *s)
{
    return s->at < s->text.len ? (unsigned char)s->text.ptr[s->at] : -1;
}
#endif
