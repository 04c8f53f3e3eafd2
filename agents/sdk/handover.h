/*
 * What the supervisor hands to this process alone, by the descriptor that BATON_HANDOVER names:
 * NAME=value, each terminated by a zero. Neither the environment nor a command line has it, and
 * programs that the agent starts do not get it.
 *   secret:NAME   a secret of the configuration
 *   credential key  the credential of this process: its id, and 64 hexadecimal digits
 *   control         the supervisor's address, for an agent that cannot read the state
 */
#ifndef SDK_HANDOVER_H
#define SDK_HANDOVER_H

#include "protocol/base/err.h"

enum { HANDOVER_ENV_MAX = 16 };

struct handover {
    char *bytes; /* NULL = none */
    size_t len;
    char *env[HANDOVER_ENV_MAX]; /* values of variables that were wiped */
    size_t env_n;
};

/* Reads it, closes the descriptor and forgets the variable. BT_OK without one. BT_INVALID when the
 * variable names no open descriptor. Before threads exist. */
BT_MUST_CHECK enum bt_code handover_read(struct handover *h, struct bt_error *err);
/* NULL = there is none of this name. Borrowed from h. */
const char *handover_get(const struct handover *h, const char *name);
/* A secret: of the handover, else of the environment, which is wiped. Borrowed from h until
 * handover_wipe; NULL = there is none. Before threads exist. */
const char *handover_secret(struct handover *h, const char *name);
/* Overwrites the secrets and the key; the rest stays. */
void handover_wipe(struct handover *h);
/* Accepts zeroed; idempotent. */
void handover_done(struct handover *h);
#endif
