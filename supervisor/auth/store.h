/*
 * The credentials of the state directory, as the daemon has them: read again when the directory
 * has changed, and given to the sessions. One thread.
 */
#ifndef SUPERVISOR_AUTH_STORE_H
#define SUPERVISOR_AUTH_STORE_H

#include "supervisor/auth/sessions.h"

struct auth_store;
struct audit;

/* Makes the directory when it is missing, and reads it. A file that is refused is logged, and is no
 * credential. The sessions stay the caller's, and outlive it. Changes are noted in the audit; NULL
 * = nowhere. */
BT_MUST_CHECK enum bt_code auth_store_new(const char *state_dir, struct sessions *sessions,
                                          struct audit *audit, struct session_time time,
                                          struct auth_store **ret, struct bt_error *err);
void auth_store_free(struct auth_store *store);
/* The processes that live now, beside the credentials of files; takes the array, which malloc gave.
 * Nothing of it is in the audit: the journal has the events of agents. */
void auth_store_processes(struct auth_store *store, struct credential *at, uint32_t n,
                          struct session_time time);
/* Readable when the directory has changed; -1: the kernel gives no notice. */
int auth_store_fd(const struct auth_store *store);
/* Reads the directory again when it has changed: by the notice, or by its time, which is looked at
 * once a second and with `at_once` in any case. Before the requests of a cycle. */
void auth_store_refresh(struct auth_store *store, struct session_time time, bool at_once);
#endif
