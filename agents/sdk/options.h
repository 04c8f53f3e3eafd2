/* Arguments, environment and settings of an agent program. An argument overrides the
 * environment. */
#ifndef SDK_OPTIONS_H
#define SDK_OPTIONS_H

#include <stdbool.h>

#include "agents/sdk/handover.h"
#include "protocol/auth/mac.h"
#include "protocol/base/buf.h"
#include "protocol/base/log.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"

enum options_mode { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_CARD, OPTIONS_ONCE };

struct options {
    enum options_mode mode;
    const char *state;      /* --state, or NULL: state_dir_find decides */
    const char *agent_id;   /* or NULL */
    const char *credential; /* a file; NULL: process_id, else the token of the state directory */
    char process_id[LIMIT_ID_BYTES + 1]; /* the credential of this process; "" = it got none */
    uint8_t process_key[AUTH_KEY_BYTES];
    const char *listen;
    const char *connect;   /* tls+tcp://HOST:PORT of supervisors elsewhere, or NULL */
    uint32_t seeds;        /* how many */
    const char *ca, *cert; /* files, with `connect` */
    const char *once_skill;
    struct uuid instance_id;
    uint32_t capacity; /* 0 = not given */
    uint32_t shards;   /* of the fleet that it serves; 0 and 1 = one */
    uint32_t shard;    /* which of these this process serves */
    const char *fleet; /* the state directory of the node; NULL: one shard, or `connect` */
    bool dial_in;
    bool spawned;
    enum log_level log_level;
    struct handover handover;
    struct buf settings_doc;  /* msgpack of the settings, a map */
    struct buf settings_json; /* the same as compact JSON */
};

/* BT_INVALID names the argument and what would be right. Strings are borrowed from argv and the
 * environment. */
BT_MUST_CHECK enum bt_code options_read(struct options *o, int argc, char **argv,
                                        struct bt_error *err);
void options_done(struct options *o);
const char *options_help(void);
#endif
