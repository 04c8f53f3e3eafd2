/* The names in an agent's settings. */
#ifndef SDK_SETTINGS_H
#define SDK_SETTINGS_H

#include "protocol/base/err.h"
#include "protocol/wire/doc.h"

/* BT_INVALID for a value that is not an object, and for a member that is none of the n known ones;
 * the message has the nearest one, or all of them when none is near. */
BT_MUST_CHECK enum bt_code settings_check_names(struct doc map, const char *const *known, size_t n,
                                                struct bt_error *err);
/* Reads the settings of an agent as one document, and gives it to `read`. max: bytes of JSON. */
typedef enum bt_code (*settings_reader)(void *self, struct doc map, struct bt_error *err);
BT_MUST_CHECK enum bt_code settings_parse(const char *json, size_t max, settings_reader read,
                                          void *self, struct bt_error *err);
#endif
