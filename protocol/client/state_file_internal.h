/* Small files that are read and replaced as a whole. Private to state.c. */
#ifndef CLIENT_STATE_FILE_INTERNAL_H
#define CLIENT_STATE_FILE_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

enum file_mode { FILE_REPLACE, FILE_CREATE };

/* Writes dir/name (0600) through a temporary file and syncs both. FILE_CREATE: BT_CONFLICT when the
 * file exists. */
BT_MUST_CHECK enum bt_code state_file_write(const char *dir, const char *name, struct str bytes,
                                            enum file_mode mode, struct bt_error *err);
/* Appends the file to out, at most out->max bytes. BT_INVALID: it is not a regular file.
 * BT_UNAUTHORIZED: `private` is set and others may read or write it. */
BT_MUST_CHECK enum bt_code state_file_read(const char *dir, const char *name, bool private,
                                           struct buf *out, struct bt_error *err);
#endif
