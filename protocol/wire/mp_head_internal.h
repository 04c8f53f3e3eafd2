/*
 * One msgpack head, read from bytes that nobody has checked yet: the only decoder of the room.
 * Guard, cursor and key check stand on it. Pure.
 */
#ifndef WIRE_MP_HEAD_INTERNAL_H
#define WIRE_MP_HEAD_INTERNAL_H

#include "protocol/wire/doc.h"

enum {
    WIRE_DEPTH_MAX =
        128 /* no limit of a caller goes over this: it sizes the stacks of the iterative walks */
};

enum mp_head_error { HEAD_OK, HEAD_TRUNCATED, HEAD_EXT, HEAD_RESERVED };

/* Fills *ret; *ret_len = the bytes of the head, with the bytes of a string or bin. Nothing else is
 * checked. */
enum mp_head_error mp_head_read(const uint8_t *at, const uint8_t *end, struct doc_head *ret,
                                size_t *ret_len);
/* The number of values directly inside: elements, or keys and values; 0 for a scalar. */
uint64_t mp_head_children(const struct doc_head *h);
/* Moves *at over one whole value. False (and *at unchanged) when the bytes end before the value
 * does. */
bool mp_head_skip(const uint8_t **at, const uint8_t *end);
#endif
