/* PtcRunner's signatures of results as JSON Schemas. Private to this folder. */
#ifndef PLAN_SIGNATURE_INTERNAL_H
#define PLAN_SIGNATURE_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

/* Appends the schema of the output of "(inputs) -> output" or of "output". BT_INVALID says what was
 * expected where; BT_LIMIT, BT_NOMEM. */
BT_MUST_CHECK enum bt_code plan_signature_schema(struct str text, struct buf *out,
                                                 struct bt_error *err);
#endif
