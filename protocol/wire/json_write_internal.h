#ifndef WIRE_JSON_WRITE_INTERNAL_H
#define WIRE_JSON_WRITE_INTERNAL_H

#include "protocol/base/buf.h"

/* RFC 4648, section 4, with padding. */
void json_put_base64(struct buf *out, struct str bytes);
#endif
