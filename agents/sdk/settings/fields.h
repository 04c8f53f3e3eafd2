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
/* true or false. A missing member leaves *io. */
BT_MUST_CHECK enum bt_code field_bool(struct doc map, const char *member, bool *io,
                                      struct bt_error *err);
/* A whole number from min to max. */
BT_MUST_CHECK enum bt_code field_number(struct doc map, const char *member, uint64_t min,
                                        uint64_t max, uint64_t *io, struct bt_error *err);
/* An object of at most max texts, copied; .ptr NULL when it is missing. */
BT_MUST_CHECK enum bt_code field_texts(struct arena *a, struct doc map, const char *member,
                                       uint32_t max, struct doc *ret, struct bt_error *err);
/* The object `effects`: globs of names, each with none, idempotent or unsafe. */
BT_MUST_CHECK enum bt_code field_effects(struct arena *a, struct doc map, uint32_t max,
                                         struct doc *ret, struct bt_error *err);
/* The effects of a name: those of the first glob that fits, else the fallback. */
const char *field_effect(struct doc effects, struct str name, const char *fallback);
/* A name from elsewhere as the id of a skill: other characters become "_". NULL = out of memory. */
const char *field_skill_id(struct arena *a, struct str name);
#endif
