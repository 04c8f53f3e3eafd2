/*
 * Validates hostile msgpack before anything else touches it: iterative, no allocation, time linear
 * in the bytes (times the depth). One value, nothing behind it; depth and node budget; lengths
 * within the bytes that are there; map keys are unique strings; strings are UTF-8 without zero
 * bytes (bytes go into bin); no ext types; floats finite. Needs 70 KiB of stack for maps of many
 * keys. Five bytes can promise four billion values; unpackers that believe them die.
 */
#ifndef WIRE_MP_VALIDATE_H
#define WIRE_MP_VALIDATE_H

#include <stdint.h>

#include "protocol/base/err.h"

struct mp_limits {
    uint32_t depth;
    uint32_t nodes;
};

/* limits NULL = those of protocol/limits.h. BT_INVALID or BT_LIMIT with the byte offset of what is
 * wrong. */
BT_MUST_CHECK enum bt_code mp_validate(const void *bytes, size_t len,
                                       const struct mp_limits *limits, struct bt_error *err);
#endif
