/* Members of settings that every agent with HTTP calls has. BT_INVALID names the member and what
 * would be right. */
#ifndef WEB_SETTINGS_H
#define WEB_SETTINGS_H

#include "agents/web/web.h"
#include "protocol/base/arena.h"
#include "protocol/wire/doc.h"

enum { WEB_OWN_MAX = 4 };

/* A secret: {env: NAME}, {file: PATH} or {credential: NAME}. */
BT_MUST_CHECK enum bt_code web_read_secret(struct secrets *secrets, struct arena *a, struct doc map,
                                           const char *member, const char **ret,
                                           struct bt_error *err);
/* allowHosts, allowPrivate and caFile. own: the checked addresses of the settings themselves, whose
 * hosts may be called; NULL ends the list, of at most WEB_OWN_MAX. */
BT_MUST_CHECK enum bt_code web_read_policy(struct arena *a, struct doc map, const char *const *own,
                                           struct web_policy *ret, struct bt_error *err);
#endif
