/* Shared by webhook.c (the verbs) and webhook_list.c. */
#ifndef CLI_VERBS_REMOTE_WEBHOOK_H
#define CLI_VERBS_REMOTE_WEBHOOK_H

#include <limits.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"

struct order {
    struct cli *cli;
    const char *state, *name; /* the state directory; NULL for list */
    uint32_t shards;          /* of the fleet; 1 without one of several; only for list */
    char path[PATH_MAX];      /* of NAME.json */
};

bool webhook_name_ok(const char *name);
/* STATE/webhooks/NAME and the ending. NULL: it is not there, or no object. */
cJSON *webhook_file(const struct order *o, const char *name, const char *ending);
enum cli_exit webhook_list(struct order *o);
#endif
