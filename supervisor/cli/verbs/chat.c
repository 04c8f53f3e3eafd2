/* chat: checks the options; chat/loop.c does the rest. */
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/chat/chat.h"
#include "supervisor/cli/verbs/verbs.h"

/* Prints the error and returns false. */
static bool check_options(const struct cli *cli)
{
    const char *session = cli_value(cli, "session");
    const char *policy = cli_value(cli, "policy");
    cJSON *tree = policy != NULL ? cJSON_ParseWithOpts(policy, NULL, true) : NULL;
    bool ok = policy == NULL || cJSON_IsObject(tree);

    cJSON_Delete(tree);
    if (!ok) {
        cli_error("--policy: expected a JSON object, got '%.200s'", policy);
        return false;
    }
    if (session != NULL && (session[0] == 0 || strlen(session) > CHAT_ID_MAX)) {
        cli_error("--session: expected an id of 1 to %d characters", CHAT_ID_MAX);
        return false;
    }
    if (session == NULL && cli_flag(cli, "new")) {
        cli_error("--new goes with --session ID; without it every chat is a new session");
        return false;
    }
    return true;
}

enum cli_exit verb_chat(struct cli *cli)
{
    return check_options(cli) ? chat_run(cli) : CLI_USAGE;
}
