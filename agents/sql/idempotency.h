/*
 * Stores the reply of a step under its idempotency key, in the transaction of its changes. An
 * attempt whose answer was lost gets the stored reply; the statement does not run again.
 */
#ifndef SQL_IDEMPOTENCY_H
#define SQL_IDEMPOTENCY_H

#include "agents/sql/db.h"
#include "protocol/base/buf.h"

enum { IDEMPOTENCY_KEPT = 10000 }; /* the newest keys of one database */

/* *ret_found: the step's key is stored; the buffers get the data (JSON) and the text of its
 * reply. */
BT_MUST_CHECK enum bt_code idempotency_find(struct db *db, struct buf *ret_json,
                                            struct buf *ret_text, bool *ret_found,
                                            struct bt_error *err);
BT_MUST_CHECK enum bt_code idempotency_record(struct db *db, struct str json, struct str text,
                                              struct bt_error *err);
#endif
