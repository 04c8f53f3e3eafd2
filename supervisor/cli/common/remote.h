/*
 * Which daemon a command line means: that of a state directory on this host, or one elsewhere. The
 * first of these that is given: --connect, --context, --state, BATON_CONTEXT, BATON_STATE, the
 * context in use; else the default state directory.
 *
 * Contexts are names for daemons elsewhere, in $XDG_CONFIG_HOME/baton/contexts (or
 * ~/.config/baton/contexts), mode 0600: {current, contexts: {NAME: {connect, credential, ca,
 * cert}}}. The files that they name stay where they are. `local` is the daemon of this host.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

enum { CLI_CONTEXT_MAX = 63 };

#define CLI_CONTEXT_LOCAL "local"

/* Where that is; url NULL: a state directory on this host. Strings of *ret last as long as the
 * process. */
BT_MUST_CHECK enum bt_code cli_connection(const struct cli *cli, struct bt_connection *ret,
                                          struct bt_error *err);
/* Opens a client of the daemon that is meant. */
BT_MUST_CHECK enum bt_code cli_open(const struct cli *cli, struct bt_client **ret,
                                    struct bt_error *err);
/* The address of the daemon elsewhere that is meant; NULL = that of a state directory. Valid until
 * the process ends. On a mistake it is that of nothing: cli_open says what is wrong. */
const char *cli_elsewhere(const struct cli *cli);

/* The file of contexts; a new object when there is none. BT_UNAUTHORIZED: others may write it. */
BT_MUST_CHECK enum bt_code contexts_read(struct cJSON **ret, struct bt_error *err);
BT_MUST_CHECK enum bt_code contexts_write(const struct cJSON *tree, struct bt_error *err);
/* At most CLI_CONTEXT_MAX letters, digits, ".", "_" and "-". */
bool contexts_name_ok(const char *name);
#endif
