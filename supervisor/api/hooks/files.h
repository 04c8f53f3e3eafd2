/*
 * The files of webhooks and incoming hooks in the state directory, which `baton webhook` and the
 * gateway write. Only small ones are read: at most HOOK_FILE_MAX bytes. Loop thread only.
 */
#ifndef API_HOOKS_FILES_H
#define API_HOOKS_FILES_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/hook_name.h"

enum { HOOK_NAMES_MAX = 512, HOOK_FILE_MAX = 32 * 1024 };

/* The names of STATE/webhooks, in their order. */
struct hook_names {
    char at[HOOK_NAMES_MAX][HOOK_NAME_MAX + 1];
    uint32_t n;
};

/* Without a directory there are none. BT_LIMIT: there are more. */
BT_MUST_CHECK enum bt_code hook_names_read(const char *state_dir, struct hook_names *ret,
                                           struct bt_error *err);
/* STATE/PATH, an object of JSON; appended. BT_NOT_FOUND: there is none. BT_INVALID: it is none. */
BT_MUST_CHECK enum bt_code hook_file_read(const char *state_dir, const char *path, struct buf *out,
                                          struct bt_error *err);
/* Replaces STATE/webhooks/NAME.json by spec, whose member `name` is value. */
BT_MUST_CHECK enum bt_code hook_file_order(const char *state_dir, const char *hook, struct doc spec,
                                           const char *name, struct doc value,
                                           struct bt_error *err);
#endif
