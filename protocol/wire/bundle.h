/*
 * A bundle: several bodies of step.execute, or of their answers, as one message of a pipe
 * (WIRE.md, "Bundles").
 *
 *   0xC1, version 1, u16 count, then count times: u32 length, u64 tag, body
 *
 * Numbers are big-endian. No msgpack value and no JSON text begins with 0xC1, so the first byte
 * tells a bundle from a message. The supervisor makes up the tag of a request; the agent puts it,
 * unchanged, before the answer to that request. A bundle may be empty.
 */
#ifndef WIRE_BUNDLE_H
#define WIRE_BUNDLE_H

#include <stdbool.h>

#include "protocol/base/buf.h"
#include "protocol/limits.h"

enum {
    BUNDLE_MARK = 0xC1,
    BUNDLE_HEAD_BYTES = 4,
    BUNDLE_ITEM_BYTES = 12,
    /* Pipes of an instance that takes bundles. One would have to wait for its answer before new
     * steps go out; with two, long steps cost requests that bring nothing (tests/bench). */
    BUNDLE_PIPES = 4,
    BUNDLE_ITEMS_MAX = 256,
    BUNDLE_FULL_BYTES = 256 * 1024, /* a larger body travels alone */
    BUNDLE_BYTES_MAX = BUNDLE_HEAD_BYTES + BUNDLE_ITEM_BYTES + LIMIT_STEP_BYTES
};

/* Appends the head of a body, and the body. A row of them is what bundle_items reads. */
void bundle_put(struct buf *b, uint64_t tag, struct str body);
/* Clears *b and begins an empty bundle in it. */
void bundle_begin(struct buf *b);
/* Appends a body. False, and *b is as before: it does not fit beside those that are there, so it
 * belongs into the next one. max: bodies that the receiver takes at once. */
bool bundle_add(struct buf *b, uint32_t max, uint64_t tag, struct str body);

struct bundle_reader {
    const uint8_t *at, *end;
    uint32_t left;
};

bool bundle_is(struct str bytes);
/* Checks the whole frame. BT_PROTOCOL: it is no bundle, is cut, or has bytes after its end; *err
 * says where. */
BT_MUST_CHECK enum bt_code bundle_open(struct bundle_reader *ret, struct str bytes,
                                       struct bt_error *err);
/* Begins a bundle in *out with the head of a row. Returns how many bytes of the row are in it. */
size_t bundle_take(struct buf *out, uint32_t max, struct str row);
/* Drops the first n bytes of a row; an empty one gives much memory back. */
void bundle_drop(struct buf *row, size_t n);
/* Reads a row of bundle_put, which nobody else has written. */
struct bundle_reader bundle_items(struct str row);
/* The next body, which points into the frame. False: there is none. */
bool bundle_next(struct bundle_reader *r, uint64_t *ret_tag, struct str *ret_body);
#endif
