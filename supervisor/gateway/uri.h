/*
 * The target of an HTTP request (RFC 9112, 3.2): segments of the path and parameters of the query,
 * decoded once. A segment keeps a slash that was written as %2F. Refused, with what would be right:
 * empty segments, "." and "..", zero bytes, what is not UTF-8, a percent sign without two digits.
 * Allocates nothing.
 */
#ifndef GATEWAY_URI_H
#define GATEWAY_URI_H

#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum { URI_BYTES_MAX = 8192, URI_SEGMENTS_MAX = 8, URI_PARAMS_MAX = 100 };

struct uri_param {
    struct str name, value;
};

struct uri {
    struct str authority; /* of "http://HOST/path"; empty = none. Undecoded */
    struct str segments[URI_SEGMENTS_MAX];
    uint32_t segments_n;
    struct uri_param params[URI_PARAMS_MAX];
    uint32_t params_n;
    size_t used;
    char text[URI_BYTES_MAX]; /* what the others point into */
};

/* BT_INVALID, or BT_LIMIT: over a maximum from above. The text `raw` is needed no longer, except
 * for authority. */
BT_MUST_CHECK enum bt_code uri_parse(struct str raw, struct uri *ret, struct bt_error *err);
#endif
