/*
 * What was done under an idempotency key, in the transaction that did it: an attempt whose answer
 * was lost is answered again instead of done again.
 */
#ifndef SQL_IDEMPOTENCY_H
#define SQL_IDEMPOTENCY_H

#include "agents/sql/db.h"
#include "protocol/base/buf.h"

enum { IDEMPOTENCY_KEPT = 10000 }; /* the newest keys of one database */

/* *ret_found: the step's key is there, and its reply's data (JSON) and text are in the buffers. */
BT_MUST_CHECK enum bt_code idempotency_find(struct db *db, struct buf *ret_json,
                                            struct buf *ret_text, bool *ret_found,
                                            struct bt_error *err);
BT_MUST_CHECK enum bt_code idempotency_record(struct db *db, struct str json, struct str text,
                                              struct bt_error *err);
#endif
