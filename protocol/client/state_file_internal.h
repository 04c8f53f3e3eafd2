/* Small whole files, read and replaced in one step. Private to state.c. */
#ifndef CLIENT_STATE_FILE_INTERNAL_H
#define CLIENT_STATE_FILE_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

enum file_mode { FILE_REPLACE, FILE_CREATE };

/* Writes dir/name (0600) through a temporary file, synced. FILE_CREATE: BT_CONFLICT when it is
 * there already. */
BT_MUST_CHECK enum bt_code state_file_write(const char *dir, const char *name, struct str bytes,
                                            enum file_mode mode, struct bt_error *err);
/* Appends at most out->max bytes. BT_INVALID: not a regular file. BT_UNAUTHORIZED: private, but
 * others may read it. */
BT_MUST_CHECK enum bt_code state_file_read(const char *dir, const char *name, bool private,
                                           struct buf *out, struct bt_error *err);
#endif
