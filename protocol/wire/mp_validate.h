/*
 * Validates hostile msgpack before any other code reads it. The walk is iterative, allocates
 * nothing, and takes time linear in the bytes times the depth.
 *
 * It accepts one value and no bytes after it. It checks nesting, the number of values, and lengths
 * against the bytes that exist. Map keys must be unique strings. Strings must be UTF-8 without zero
 * bytes (other bytes go into bin). Ext types and floats that are not finite are rejected.
 *
 * Maps of many keys need 70 KiB of stack. The lengths are checked because five bytes can announce
 * four billion values, and unpackers that trust them run out of memory.
 */
#ifndef WIRE_MP_VALIDATE_H
#define WIRE_MP_VALIDATE_H

#include <stdint.h>

#include "protocol/base/err.h"

struct mp_limits {
    uint32_t depth;
    uint32_t nodes;
};

/* limits NULL = those of protocol/limits.h. Returns BT_INVALID or BT_LIMIT with the byte offset of
 * the defect. Thread-safe. */
BT_MUST_CHECK enum bt_code mp_validate(const void *bytes, size_t len,
                                       const struct mp_limits *limits, struct bt_error *err);
#endif
