/* Reads members of one object of the settings: checks them and copies them into the arena. A
 * missing optional member leaves NULL (or the value as it was). BT_INVALID names the member and
 * what would be right. */
#ifndef SDK_FIELDS_H
#define SDK_FIELDS_H

#include "protocol/base/arena.h"
#include "protocol/wire/doc.h"

enum { FIELD_ENV_MAX = 64 };

BT_MUST_CHECK enum bt_code field_text(struct arena *a, struct doc map, const char *member,
                                      bool needed, const char **ret, struct bt_error *err);
/* A list of texts, NULL-terminated. */
BT_MUST_CHECK enum bt_code field_list(struct arena *a, struct doc map, const char *member,
                                      uint32_t max, const char *const **ret, struct bt_error *err);
/* The index of the member's value in the n names. */
BT_MUST_CHECK enum bt_code field_choice(struct doc map, const char *member,
                                        const char *const *names, unsigned n, unsigned *ret,
                                        struct bt_error *err);
/* The object `env` as NULL-terminated "NAME=value". */
BT_MUST_CHECK enum bt_code field_env(struct arena *a, struct doc map, const char *const **ret,
                                     struct bt_error *err);
#endif
