/* Bytes as text, RFC 4648, section 4, with padding. Written by json_put_base64 (doc.h). Pure but
 * for the buffer. */
#ifndef WIRE_BASE64_H
#define WIRE_BASE64_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

/* Appends the bytes. BT_INVALID: the text is no base64. */
BT_MUST_CHECK enum bt_code json_read_base64(struct str text, struct buf *out, struct bt_error *err);
#endif
