/*
 * Reads one msgpack head from unchecked bytes. This is the only decoder of the room: validator,
 * cursor and key check use it. Pure.
 */
#ifndef WIRE_MP_HEAD_INTERNAL_H
#define WIRE_MP_HEAD_INTERNAL_H

#include "protocol/wire/doc.h"

enum {
    WIRE_DEPTH_MAX =
        128 /* the size of the stacks of the iterative walks; callers' limits are capped to it */
};

enum mp_head_error { HEAD_OK, HEAD_TRUNCATED, HEAD_EXT, HEAD_RESERVED };

/* Fills *ret. *ret_len is the length of the head, including the bytes of a string or bin. Nothing
 * else is checked. */
enum mp_head_error mp_head_read(const uint8_t *at, const uint8_t *end, struct doc_head *ret,
                                size_t *ret_len);
/* Returns the number of direct children: elements, or keys and values; 0 for a scalar. */
uint64_t mp_head_children(const struct doc_head *h);
/* Moves *at over one whole value. Returns false and leaves *at when the bytes end before the value.
 */
bool mp_head_skip(const uint8_t **at, const uint8_t *end);
#endif
