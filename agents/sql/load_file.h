/* load from a file: an artifact of an earlier step, or a file below the settings' roots. */
#ifndef SQL_LOAD_FILE_H
#define SQL_LOAD_FILE_H

#include "agents/sql/db.h"
#include "protocol/base/buf.h"

struct load_file {
    int fd; /* -1: the step names no file */
    bool ndjson;
};

/* Opens what the step names by `artifact` or `file`, or the artifact of the newest dependency when
 * it has neither rows nor csv. The caller closes ret->fd. */
BT_MUST_CHECK enum bt_code load_file_open(struct bt_step *step, const struct sql_settings *s,
                                          struct load_file *ret, struct bt_error *err);
/* Makes the table and inserts every row, in the transaction of the caller; the reply into json and
 * text. */
BT_MUST_CHECK enum bt_code load_file_rows(struct db *db, struct bt_step *step, const char *table,
                                          const struct load_file *f, struct buf *json,
                                          struct buf *text, struct bt_error *err);
#endif
