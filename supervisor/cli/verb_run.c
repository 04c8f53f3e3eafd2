/* run: submit, follow, print the result, exit with what became of the plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/cli.h"
#include "supervisor/cli/follow.h"

static void say_routes(const cJSON *answer)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(answer, "routes"))
    {
        cli_note("  %s → %s%s%s: %s\n", json_text(r, "stepId", ""), json_text(r, "agentId", ""),
                 json_text(r, "skill", NULL) != NULL ? "." : "", json_text(r, "skill", ""),
                 json_text(r, "why", ""));
    }
}

static void say_warnings(const cJSON *answer)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(answer, "problems"))
    {
        cli_note("  warning: %s%s%s\n", json_text(p, "stepId", ""),
                 json_text(p, "stepId", "")[0] != 0 ? ": " : "", json_text(p, "message", ""));
    }
}

static enum cli_exit submit(struct cli *cli, char plan_id[BT_ID_LEN + 1])
{
    struct bt_submit s = {.goal = cli->argc > 0 ? cli->argv[0] : NULL,
                          .session_id = cli_value(cli, "session"),
                          .planner = cli_value(cli, "planner"),
                          .client_key = cli_value(cli, "key"),
                          .policy_json = cli_value(cli, "policy")};
    const char *file = cli_value(cli, "plan");
    char *plan = NULL;
    char *json = NULL;
    struct bt_error err;
    enum cli_exit code;

    if ((s.goal == NULL) == (file == NULL)) {
        cli_say("run: expected either a goal or --plan FILE; see: baton run --help");
        return CLI_USAGE;
    }
    if (file == NULL && cli_value(cli, "inputs") != NULL) {
        cli_say("run: --inputs goes with --plan; a goal has none");
        return CLI_USAGE;
    }
    if (file != NULL) {
        plan = cli_read_plan(cli, file);
        if (plan == NULL) {
            return CLI_USAGE;
        }
        s.plan_json = plan;
    }
    code = cli_connect(cli);
    if (code == CLI_OK && bt_submit(cli->client, &s, plan_id, &json, &err) != BT_OK) {
        code = cli_fail(&err);
        cli_print_problems(cli, json);
    } else if (code == CLI_OK && !cli_flag(cli, "quiet")) {
        cJSON *answer = cJSON_Parse(json);
        (void)fprintf(stderr, "plan %s\n", plan_id);
        say_routes(answer);
        say_warnings(answer);
        cJSON_Delete(answer);
    }
    bt_free(json);
    cJSON_free(plan);
    return code;
}

enum cli_exit verb_run(struct cli *cli)
{
    const char *timeout = cli_value(cli, "timeout");
    char plan_id[BT_ID_LEN + 1] = "";
    struct follow f = {.plan_id = plan_id,
                       .result_step = cli_value(cli, "result"),
                       .quiet = cli_flag(cli, "quiet")};
    enum cli_exit code;

    if (timeout != NULL && !cli_duration(timeout, "--timeout", &f.timeout_ms)) {
        return CLI_USAGE;
    }
    if (f.result_step != NULL && cli_flag(cli, "detach")) {
        cli_say("run: --result and --detach exclude each other: there is no result yet");
        return CLI_USAGE;
    }
    follow_catch_interrupts();
    code = submit(cli, plan_id);
    if (code != CLI_OK) {
        return code;
    }
    if (cli_flag(cli, "detach")) {
        (void)printf(cli->json ? "{\"planId\":\"%s\"}\n" : "%s\n", plan_id);
        return CLI_OK;
    }
    return follow_plan(cli, &f);
}
