/* The OpenAPI 3.1 document of the HTTP API, made from the tables of protocol/messages.def. */
#ifndef GATEWAY_OPENAPI_H
#define GATEWAY_OPENAPI_H

#include "protocol/base/buf.h"

/* Appends it as compact JSON. BT_LIMIT, BT_NOMEM: of the buffer. */
BT_MUST_CHECK enum bt_code openapi_write(struct buf *out, struct bt_error *err);
#endif
