/* agents, info: the agents and the daemon. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

static void print_agent(struct cli *cli, const cJSON *a)
{
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(a, "card");
    const cJSON *instances = cJSON_GetObjectItemCaseSensitive(a, "instances");
    const char *state = json_text(a, "state", "");
    const char *breaker = json_text(a, "breaker", "closed");
    bool well = strcmp(breaker, "closed") == 0;
    double busy = 0;
    double capacity = 0;
    char skills[256] = "";
    const cJSON *v;

    (void)cli;
    cJSON_ArrayForEach(v, instances)
    {
        busy += json_number(v, "outstanding");
        capacity += json_number(v, "capacity");
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(card, "skills"))
    {
        if (strlen(skills) < sizeof skills - 70) {
            (void)snprintf(skills + strlen(skills), sizeof skills - strlen(skills), "%s%s",
                           skills[0] != 0 ? ", " : "", json_text(v, "id", ""));
        }
    }
    (void)printf(
        "%s %-12s %-9s %-8s %d instance%s  %.0f/%.0f busy  %.0f queued  %s%s%sskills: %s\n",
        cli_mark(state), json_text(card, "agentId", ""), state, json_text(card, "version", ""),
        cJSON_GetArraySize(instances), cJSON_GetArraySize(instances) == 1 ? " " : "s", busy,
        capacity, json_number(a, "queued"), well ? "" : "breaker ", well ? "" : breaker,
        well ? "" : "  ", skills);
    if (strcmp(state, "down") == 0) {
        char why[AGENT_REASON_MAX];
        agent_down_reason(a, why, sizeof why);
        (void)printf("%s%s%s", why[0] != 0 ? "    down" : "", why, why[0] != 0 ? "\n" : "");
    }
}

static void print_card(struct cli *cli, const cJSON *a)
{
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(a, "card");
    const cJSON *v;

    print_agent(cli, a);
    (void)printf("  %s\n", json_text(card, "description", ""));
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(card, "skills"))
    {
        (void)printf("  skill %-16s %s\n", json_text(v, "id", ""), json_text(v, "description", ""));
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(a, "instances"))
    {
        (void)printf("  instance %s  %s  pid %.0f  %.0f/%.0f busy  seen %.0f ms ago  %s\n",
                     json_text(v, "instanceId", ""), json_text(v, "health", ""),
                     json_number(v, "pid"), json_number(v, "outstanding"),
                     json_number(v, "capacity"), json_number(v, "lastSeenMs"),
                     json_text(v, "endpoint", ""));
    }
}

static enum cli_exit one_agent(struct cli *cli, const char *type, const char *id, bool show)
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "agentId", id);
    code = cli_call(cli, type, fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK && show) {
        print_card(cli, answer);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_agents(struct cli *cli)
{
    cJSON *answer = NULL;
    enum cli_exit code;
    const cJSON *list;
    const cJSON *a;

    if (cli->argc == 2) {
        bool drain = strcmp(cli->argv[0], "drain") == 0;
        if (!drain && strcmp(cli->argv[0], "enable") != 0) {
            cli_error("usage: baton agents [AGENT_ID], or: baton agents drain|enable AGENT_ID");
            return CLI_USAGE;
        }
        return one_agent(cli, drain ? "agents.drain" : "agents.enable", cli->argv[1], false);
    }
    if (cli->argc == 1) {
        return one_agent(cli, "agents.get", cli->argv[0], true);
    }
    code = cli_call(cli, "agents.list", NULL, &answer);
    list = cJSON_GetObjectItemCaseSensitive(answer, "agents");
    if (code == CLI_OK && cli->json) {
        cli_print_json(list);
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(a, list)
        {
            print_agent(cli, a);
        }
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_info(struct cli *cli)
{
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "supervisor.info", NULL, &answer);

    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        (void)printf("version     %s (nng %s, SQLite %s)\n", json_text(answer, "version", ""),
                     json_text(answer, "nng", ""), json_text(answer, "sqlite", ""));
        (void)printf("pid         %.0f, up since %s\n", json_number(answer, "pid"),
                     json_text(answer, "startedAt", ""));
        (void)printf("control     %s\nevents      %s\nstate       %s\n",
                     json_text(answer, "control", ""), json_text(answer, "events", ""),
                     json_text(answer, "stateDir", ""));
        (void)printf("durability  %s: %s\n", json_text(answer, "durability", ""),
                     json_text(answer, "durabilityMeans", ""));
        (void)printf("plans open  %.0f\nlast seq    %.0f\n", json_number(answer, "plansOpen"),
                     json_number(answer, "lastSeq"));
    }
    cJSON_Delete(answer);
    return code;
}
