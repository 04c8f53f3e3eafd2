/* Small files that are read and replaced as a whole. Private to state.c
 * and credential.c. */
#ifndef CLIENT_STATE_FILE_INTERNAL_H
#define CLIENT_STATE_FILE_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

enum file_mode { FILE_REPLACE, FILE_CREATE };
/* Who may read a file: anybody, only its owner, or only its owner who is the caller. */
enum file_guard { FILE_ANY, FILE_PRIVATE, FILE_OWN };
enum { STATE_FILE_BLOCK = 4096 };

/* Writes dir/name (0600) through a temporary file and syncs both. FILE_CREATE: BT_CONFLICT when the
 * file exists. */
BT_MUST_CHECK enum bt_code state_file_write(const char *dir, const char *name, struct str bytes,
                                            enum file_mode mode, struct bt_error *err);
/* Makes dir/spare, which has a block of the disk, unless it is there or there is no room. */
void state_file_spare(const char *dir, const char *spare);
/* As state_file_write with FILE_REPLACE, at most STATE_FILE_BLOCK bytes: dir/spare becomes the
 * file, which needs no room. */
BT_MUST_CHECK enum bt_code state_file_use_spare(const char *dir, const char *spare,
                                                const char *name, struct str bytes,
                                                struct bt_error *err);
/* Appends the file to out, at most out->max bytes. BT_INVALID: it is not a regular file.
 * BT_UNAUTHORIZED: others may read or write it, or have made it, against the guard. */
BT_MUST_CHECK enum bt_code state_file_read(const char *dir, const char *name, enum file_guard guard,
                                           struct buf *out, struct bt_error *err);
#endif
