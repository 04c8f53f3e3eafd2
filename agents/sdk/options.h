/* Arguments, environment and settings of an agent program. An argument overrides the
 * environment. */
#ifndef SDK_OPTIONS_H
#define SDK_OPTIONS_H

#include <stdbool.h>

#include "protocol/base/buf.h"
#include "protocol/base/log.h"
#include "protocol/base/uuid.h"

enum options_mode { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_CARD, OPTIONS_ONCE };

struct options {
    enum options_mode mode;
    const char *state;      /* --state, or NULL: state_dir_find decides */
    const char *agent_id;   /* or NULL */
    const char *credential; /* a file, or NULL: the token of the state directory */
    const char *listen;
    const char *once_skill;
    struct uuid instance_id;
    uint32_t capacity; /* 0 = not given */
    bool dial_in;
    bool spawned;
    enum log_level log_level;
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
