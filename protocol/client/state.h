/*
 * The state directory: where it is, and the two small files in it by which every tool finds the
 * daemon. `token` (0600) is the shared secret; `endpoints.json` says where the daemon listens now.
 * For libbaton, agents, the command line and the daemon alike. Knows nothing of the journal that
 * lies beside them.
 */
#ifndef CLIENT_STATE_H
#define CLIENT_STATE_H

#include <stdint.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/uuid.h"

enum { STATE_TOKEN_LEN = 64, STATE_URL_MAX = 255, STATE_VERSION_MAX = 31 };

struct state_endpoints {
    char control[STATE_URL_MAX + 1]; /* tcp://127.0.0.1:7117 */
    char events[STATE_URL_MAX + 1];
    char version[STATE_VERSION_MAX + 1]; /* of the daemon */
    struct uuid instance;                /* of this start of the daemon */
    uint64_t pid;
};

/*
 * The absolute path: flag (NULL or "" = not given), else BATON_STATE, else $XDG_STATE_HOME/baton,
 * else
 * ~/.local/state/baton. Replaces what is in ret_path. Does not look at the disk. BT_NOT_FOUND when
 * even HOME is unset.
 */
BT_MUST_CHECK enum bt_code state_dir_find(const char *flag, struct buf *ret_path,
                                          struct bt_error *err);
/* Makes the directory (0700) and its parents where they are missing. BT_UNAUTHORIZED when it
 * belongs to somebody else or others may write to it; BT_INVALID when it is no directory. */
BT_MUST_CHECK enum bt_code state_dir_make(const char *dir, struct bt_error *err);

/* Reads the token, making it at the first call: two processes that race get the same one. ret is
 * terminated. */
BT_MUST_CHECK enum bt_code state_token_make(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                            struct bt_error *err);
/* BT_NOT_FOUND: no daemon has started here. BT_UNAUTHORIZED: others may read it. BT_INVALID:
 * damaged. */
BT_MUST_CHECK enum bt_code state_token_read(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                            struct bt_error *err);

/* Replaces the file in one step: a reader sees the old or the new one, never a part. */
BT_MUST_CHECK enum bt_code state_endpoints_write(const char *dir, const struct state_endpoints *e,
                                                 struct bt_error *err);
/* BT_NOT_FOUND: no daemon runs here, or it never did. The file may outlive a killed daemon: connect
 * to be sure. */
BT_MUST_CHECK enum bt_code state_endpoints_read(const char *dir, struct state_endpoints *ret,
                                                struct bt_error *err);
/* Removes the file if it still is of this instance. */
BT_MUST_CHECK enum bt_code state_endpoints_remove(const char *dir, struct uuid instance,
                                                  struct bt_error *err);
#endif
