/*
 * The credentials of the state directory, as the daemon has them: read again when the directory
 * has changed, and given to the sessions. One thread.
 */
#ifndef SUPERVISOR_AUTH_STORE_H
#define SUPERVISOR_AUTH_STORE_H

#include "supervisor/auth/sessions.h"

struct auth_store;

/* Makes the directory when it is missing, and reads it. A file that is refused is logged, and is no
 * credential. The sessions stay the caller's, and outlive it. */
BT_MUST_CHECK enum bt_code auth_store_new(const char *state_dir, struct sessions *sessions,
                                          struct session_time time, struct auth_store **ret,
                                          struct bt_error *err);
void auth_store_free(struct auth_store *store);
/* Readable when the directory has changed; -1: the kernel gives no notice. */
int auth_store_fd(const struct auth_store *store);
/* Reads the directory again when it has changed: by the notice, or by its time, which is looked at
 * once a second and with `at_once` in any case. Before the requests of a cycle. */
void auth_store_refresh(struct auth_store *store, struct session_time time, bool at_once);
#endif
