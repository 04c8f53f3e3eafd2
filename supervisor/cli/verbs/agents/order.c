#include "supervisor/cli/verbs/agents/order.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

enum { LINE_MAX_BYTES = 512 };

/* What is sent: the request, and the options that go with it as fields. */
static const struct order {
    const char *word, *type;
    bool process, now, version;
} words[] = {
    {"drain", "agents.drain", false, false, true},
    {"enable", "agents.enable", false, false, false},
    {"forget", "agents.forget", false, false, false},
    {"start", "agents.start", true, false, false},
    {"stop", "agents.stop", true, true, false},
    {"restart", "agents.restart", true, true, false},
    {"test", NULL, false, false, false},
    {"logs", NULL, false, false, false},
};

static const struct order *order_of(const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word) == 0) {
            return &words[i];
        }
    }
    return NULL;
}

bool agents_is_order(const char *word)
{
    return order_of(word) != NULL;
}

/* An option that does not go with the word. */
static bool is_misplaced(struct cli *cli, const struct order *o)
{
    const char *name = cli_value(cli, "process") != NULL && !o->process      ? "process"
                       : cli_flag(cli, "now") && !o->now                     ? "now"
                       : cli_value(cli, "version-of") != NULL && !o->version ? "version-of"
                                                                             : NULL;

    if (name != NULL) {
        cli_error("agents %s has no option --%s; see: baton help agents", o->word, name);
    }
    return name != NULL;
}

static enum cli_exit send(struct cli *cli, const struct order *o, const char *agent)
{
    const char *process = cli_value(cli, "process");
    const char *version = cli_value(cli, "version-of");
    cJSON *fields = cli_fields("agentId", agent);
    cJSON *answer = NULL;
    const cJSON *name;
    enum cli_exit code;

    if (process != NULL) {
        (void)cJSON_AddStringToObject(fields, "process", process);
    }
    if (version != NULL) {
        (void)cJSON_AddStringToObject(fields, "version", version);
    }
    if (cli_flag(cli, "now")) {
        (void)cJSON_AddTrueToObject(fields, "now");
    }
    code = cli_call(cli, o->type, fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(answer, "processes"))
        {
            (void)printf("%s\n", cJSON_IsString(name) ? name->valuestring : "");
        }
    }
    cJSON_Delete(answer);
    return code;
}

/* Why an instance cannot take a step now; "" = it can. */
static void why_not(const cJSON *in, char ret[LINE_MAX_BYTES])
{
    const cJSON *breaker = cJSON_GetObjectItemCaseSensitive(in, "breaker");
    const char *circuit = json_text(breaker, "state", "closed");

    ret[0] = 0;
    if (strcmp(json_text(in, "health", ""), "healthy") != 0) {
        (void)snprintf(ret, LINE_MAX_BYTES, "%s: its last sign of life was %.0f ms ago",
                       json_text(in, "health", "?"), json_number(in, "lastSeenMs"));
    } else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(in, "draining"))) {
        (void)snprintf(ret, LINE_MAX_BYTES, "it drains");
    } else if (strcmp(circuit, "closed") != 0) {
        (void)snprintf(ret, LINE_MAX_BYTES, "its circuit breaker is %s", circuit);
    } else if (json_number(in, "outstanding") >= json_number(in, "capacity")) {
        (void)snprintf(ret, LINE_MAX_BYTES, "all of its %.0f places are taken",
                       json_number(in, "capacity"));
    }
}

/* Whether the agent can take a step now, instance by instance. */
static enum cli_exit test(struct cli *cli, const char *agent)
{
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "agents.get", cli_fields("agentId", agent), &answer);
    const cJSON *in;
    char why[LINE_MAX_BYTES];
    int ready = 0;

    if (code != CLI_OK) {
        return code;
    }
    cJSON_ArrayForEach(in, cJSON_GetObjectItemCaseSensitive(answer, "instances"))
    {
        why_not(in, why);
        ready += why[0] == 0 ? 1 : 0;
        (void)printf("%s instance %s  pid %.0f  %s\n", cli_mark(why[0] == 0 ? "up" : "down"),
                     json_text(in, "instanceId", ""), json_number(in, "pid"),
                     why[0] == 0 ? "takes steps" : why);
    }
    if (strcmp(json_text(answer, "state", ""), "disabled") == 0) {
        cli_error("agent %s is drained; back: baton agents enable %s", agent, agent);
        ready = 0;
    } else if (ready == 0) {
        char reason[AGENT_REASON_MAX];
        agent_down_reason(answer, reason, sizeof reason);
        cli_error("agent %s takes no steps now%s", agent, reason);
    }
    cJSON_Delete(answer);
    return ready > 0 ? CLI_OK : CLI_INTERNAL;
}

enum cli_exit agents_order(struct cli *cli)
{
    const struct order *o = order_of(cli->argv[0]);
    const char *agent = cli->argv[1];

    if (is_misplaced(cli, o)) {
        return CLI_USAGE;
    }
    if (strcmp(o->word, "test") == 0) {
        return test(cli, agent);
    }
    if (strcmp(o->word, "logs") == 0) {
        cli->argv++;
        cli->argc--;
        return verb_logs(cli);
    }
    return send(cli, o, agent);
}
