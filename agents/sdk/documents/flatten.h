/* Schemas of other documents as schemas of a card: JSON Schema, draft 7, of one piece. Pure but for
 * memory. */
#ifndef SDK_FLATTEN_H
#define SDK_FLATTEN_H

#include "protocol/wire/doc.h"

/*
 * Appends the schema as JSON, with its local references (pointers into root) replaced, and `about`
 * as its description when it is not empty. Reads JSON Schema and OpenAPI 3 (nullable, exclusive
 * bounds that are booleans). around: the maps and lists that will stand around it in the card's
 * schema. What lies deeper than a registration may nest, or is larger than a card takes, becomes {}
 * (anything): the service checks it. BT_INVALID: a reference that leads to nothing in root.
 */
BT_MUST_CHECK enum bt_code schema_flatten(struct doc root, struct doc schema, struct str about,
                                          int around, struct buf *out, struct bt_error *err);
#endif
