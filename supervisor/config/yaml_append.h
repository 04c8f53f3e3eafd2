/* Adds an item to a list of a YAML file, and leaves each other byte as it is. */
#ifndef CONFIG_YAML_APPEND_H
#define CONFIG_YAML_APPEND_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct cJSON;

/*
 * Appends the text with the item as the last one of the list `list`, a member of the root, to out.
 * A list in block style keeps its indentation; comments and blank lines stay. A text without the
 * list gets it at its end. BT_INVALID: the text is no YAML that yaml_read takes, or the list is
 * written so that a line cannot be added (in brackets, or as JSON); name begins the messages.
 */
BT_MUST_CHECK enum bt_code yaml_append(struct str text, const char *name, const char *list,
                                       const struct cJSON *item, struct buf *out,
                                       struct bt_error *err);
#endif
