/*
 * Templates: "{name}" is a parameter (a dotted path), "{{" a brace. A text that is one placeholder
 * and nothing else becomes the parameter's value with its type; a member of a map whose parameter
 * is missing, or null, is left out. Within a longer text a parameter must be there.
 */
#ifndef HTTP_FILL_H
#define HTTP_FILL_H

#include "protocol/wire/doc.h"

enum fill_place {
    FILL_TEXT,   /* as it is */
    FILL_SEGMENT /* of a path: percent-encoded, and never "." or ".." */
};

/* Appends the filled text. BT_INVALID names a parameter that is missing, or may not stand there. */
BT_MUST_CHECK enum bt_code fill_text(struct str text, struct doc params, enum fill_place place,
                                     struct buf *out, struct bt_error *err);
/* Appends the filled document as msgpack. BT_NOT_FOUND: the whole of it is a missing parameter. */
BT_MUST_CHECK enum bt_code fill_doc(struct doc template, struct doc params, struct buf *out,
                                    struct bt_error *err);
/* Appends a map of templates as "a=1&b=x", percent-encoded; a list becomes one pair an item. */
BT_MUST_CHECK enum bt_code fill_pairs(struct doc map, struct doc params, struct buf *out,
                                      struct bt_error *err);
typedef enum bt_code (*fill_see)(void *self, struct str name, struct bt_error *err);
/* Calls see for each placeholder of the document's texts. BT_INVALID for a brace that is neither
 * "{name}" nor "{{". */
BT_MUST_CHECK enum bt_code fill_names(struct doc template, fill_see see, void *self,
                                      struct bt_error *err);
#endif
