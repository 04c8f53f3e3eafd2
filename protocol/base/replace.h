/* A file of the state directory (0600), replaced as a whole: a reader sees the old or the new one.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include <stddef.h>

#include "protocol/base/err.h"

/* BT_IO names the path. Not flushed: after a power cut it may be the old one. */
BT_MUST_CHECK enum bt_code file_replace(const char *path, const void *bytes, size_t len,
                                        struct bt_error *err);
#endif
