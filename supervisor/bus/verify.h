/* A step's `verify`: a JSON Schema over its result. The diagnosis is the validator's message. */
#ifndef BUS_VERIFY_H
#define BUS_VERIFY_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/msg.h"

/* True when the result's data (its text when it has no data) fits. Otherwise *diagnosis gets one
 * sentence. */
bool verify_result(struct doc schema, const struct msg_result *result, struct buf *diagnosis);
#endif
