/* Missing agents: a daemon without a configuration runs, but can do nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/recipes.h"

/* The installed example, else its place in the source. */
static const char *example(char path[RECIPE_PATH_MAX])
{
    char dirs[RECIPE_DIRS_MAX][RECIPE_PATH_MAX];
    int n = recipes_dirs(dirs);

    for (int i = 0; i < n; i++) {
        (void)snprintf(path, RECIPE_PATH_MAX, "%.4000s/tour.yaml", dirs[i]);
        if (access(path, R_OK) == 0) {
            return path;
        }
    }
    return "deploy/examples/tour.yaml";
}

void cli_note_no_agents(void)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    bool own = xdg != NULL && xdg[0] == '/';
    char path[RECIPE_PATH_MAX];

    cli_note(
        "there is no agent that could do anything. Ways to have some:\n"
        "  baton init x && cd x && baton up (a project; more of them: baton init --list)\n"
        "  baton down; baton up --config %s\n"
        "  your own configuration, with a list of agents like that one's: %s/baton/baton.yaml\n"
        "  a program that registers itself, such as baton-agent-calc\n",
        example(path), own ? xdg : "~/.config");
}

void cli_note_if_no_agents(struct bt_client *client)
{
    char *json = NULL;
    struct bt_error err;
    cJSON *answer = NULL;

    if (bt_client_call(client, "agents.list", NULL, &json, &err) == BT_OK) {
        answer = json_tree(json); /* no answer: it is only a hint */
    }
    if (answer != NULL &&
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(answer, "agents")) == 0) {
        cli_note_no_agents();
    }
    cJSON_Delete(answer);
    bt_free(json);
}

void agent_down_reason(const cJSON *a, char *ret, size_t cap)
{
    const char *reason = json_line(a, "reason", "");
    const char *log = json_text(a, "log", "");
    const bool gave_up = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "gaveUp"));

    (void)snprintf(ret, cap, "%s%s%s%s%s", gave_up && log[0] != 0 ? ", given up" : "",
                   reason[0] != 0 ? ": " : "", reason, log[0] != 0 ? "; its output is in " : "",
                   log);
}
