/* Writes a cJSON tree as YAML text. */
#ifndef CONFIG_YAML_WRITE_H
#define CONFIG_YAML_WRITE_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

struct cJSON;

/*
 * Appends the tree as one document of block style that ends with a newline. yaml_read gives the
 * same tree back, as far as its caps allow. Text that YAML 1.1 or 1.2 could read as something else
 * (`yes`, `1e3`, a date) is quoted; text of several lines is a literal block where YAML allows it.
 * BT_NOMEM; BT_LIMIT when the buffer is full.
 */
BT_MUST_CHECK enum bt_code yaml_write(const struct cJSON *tree, struct buf *out,
                                      struct bt_error *err);
#endif
