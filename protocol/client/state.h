/*
 * The state directory: where it is, and the small files in it. `token` (0600) is the shared secret.
 * `endpoints.json` has the addresses where the daemon listens. `processes.key` (0600) makes the
 * credentials of the processes that the daemon starts (supervisor/auth/processes.h). libbaton,
 * agents, the command line and the daemon use this. The functions keep no state; different threads
 * may call them.
 */
#ifndef CLIENT_STATE_H
#define CLIENT_STATE_H

#include <stdint.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/uuid.h"

/* The state directory of a project: `baton init` makes it beside the project's baton.yaml. */
#define STATE_PROJECT_DIR ".baton"

enum { STATE_TOKEN_LEN = 64, STATE_URL_MAX = 255, STATE_VERSION_MAX = 31 };

struct state_endpoints {
    char control[STATE_URL_MAX + 1];     /* tcp://127.0.0.1:7117 */
    char events[STATE_URL_MAX + 1];      /* "" = there is no bus (auth: required) */
    char version[STATE_VERSION_MAX + 1]; /* of the daemon */
    struct uuid instance;                /* of this start of the daemon */
    uint64_t pid;
    uint32_t owner;         /* of the file; set by reading */
    uint64_t pid_namespace; /* where the pid counts (state_pid_namespace); 0 = not said */
};

/*
 * Replaces ret_path by the absolute path of the directory: flag (NULL or "" = not given), else
 * BATON_STATE, else ./.baton when it is a directory of this user with mode 0700, else
 * $XDG_STATE_HOME/baton, else ~/.local/state/baton. Does not test whether these exist.
 * BT_NOT_FOUND when HOME is unset too.
 */
BT_MUST_CHECK enum bt_code state_dir_find(const char *flag, struct buf *ret_path,
                                          struct bt_error *err);
/* Creates the directory (0700) and its missing parents. BT_UNAUTHORIZED when it, or a
 * directory above it, belongs to another user (above: but root) or everybody may write to it.
 * BT_INVALID when it is no directory. */
BT_MUST_CHECK enum bt_code state_dir_make(const char *dir, struct bt_error *err);

/* Reads the token, and creates it at the first call. Two processes that race get the same one. ret
 * is terminated. */
BT_MUST_CHECK enum bt_code state_token_make(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                            struct bt_error *err);
/* BT_NOT_FOUND: no daemon has started here. BT_UNAUTHORIZED: others may read the file. BT_INVALID:
 * it is damaged. */
BT_MUST_CHECK enum bt_code state_token_read(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                            struct bt_error *err);

/* The same for processes.key. */
BT_MUST_CHECK enum bt_code state_processes_make(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                                struct bt_error *err);

/* The same, and the user who owns the file: who gets the token of him learns nothing. */
BT_MUST_CHECK enum bt_code state_token_read_of(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                               uint32_t *ret_owner, struct bt_error *err);

/* Users whose processes may be sent that token, beside root and our own: its owner, and those of
 * BATON_ALLOW_UIDS ("1000,1001"; what is no number is left out). Their number. */
enum { STATE_TRUSTED_MAX = 17 };
uint32_t state_trusted(uint32_t token_owner, uint32_t ret[STATE_TRUSTED_MAX]);

/* Replaces the file atomically: a reader gets the old or the new one, never a part. */
BT_MUST_CHECK enum bt_code state_endpoints_write(const char *dir, const struct state_endpoints *e,
                                                 struct bt_error *err);
/* BT_NOT_FOUND: no daemon runs here. The file may outlive a killed daemon, so connect to be sure.
 */
BT_MUST_CHECK enum bt_code state_endpoints_read(const char *dir, struct state_endpoints *ret,
                                                struct bt_error *err);
/* True when the process that wrote the addresses has surely ended. False in doubt, as in another
 * container. */
bool state_daemon_ended(const struct state_endpoints *at);
/* Of this process; 0 = unknown. */
uint64_t state_pid_namespace(void);
/* Removes the file if it still belongs to this instance. */
BT_MUST_CHECK enum bt_code state_endpoints_remove(const char *dir, struct uuid instance,
                                                  struct bt_error *err);
#endif
