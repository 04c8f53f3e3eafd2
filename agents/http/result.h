/* What an action keeps of an answer. */
#ifndef HTTP_RESULT_H
#define HTTP_RESULT_H

#include "agents/http/settings.h"

/* Appends one item with only its `fields` (a missing one is null); without fields as it is. */
void result_item(const struct http_action *action, struct doc item, struct buf *out);
/* Appends the result: `result` of the body, each item of a list with its `fields`. BT_NOT_FOUND
 * when the body has no value at a pointer of `result`. */
BT_MUST_CHECK enum bt_code result_pick(const struct http_action *action, struct doc body,
                                       struct buf *out, struct bt_error *err);
#endif
