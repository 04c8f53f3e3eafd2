/* plan, lint: make and check, run nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/lint.h"
#include "supervisor/planner/plan_read.h"

enum { OFFLINE_PROBLEMS_MAX = 200, CHECK_MS = 5000 };

static void say_problem(const char *severity, const char *step, const char *field,
                        const char *message, const char *category)
{
    cli_note("  %s: %s%s%s%s%s%s [%s]\n", severity, step[0] != 0 ? "step " : "", step,
             step[0] != 0 ? ": " : "", field, field[0] != 0 ? ": " : "", message, category);
}

/* Without a daemon everything but agents and skills can be checked. */
static enum cli_exit check_offline(const char *plan_json)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct problem *list = calloc(OFFLINE_PROBLEMS_MAX, sizeof *list);
    struct problems problems = {.at = list, .cap = OFFLINE_PROBLEMS_MAX};
    struct arena arena = {0};
    struct plan *plan = NULL;
    struct buf doc;
    struct bt_error err;
    enum bt_code code;

    buf_init(&doc, LIMIT_CONTROL_BYTES);
    code = list == NULL ? err_set(&err, BT_NOMEM, "out of memory")
                        : json_to_doc(str_from(plan_json), NULL, &doc, &err);
    if (code == BT_OK) {
        code = plan_read(doc_from_buf(&doc), &defaults, NULL, &arena, &plan, &problems, NULL, &err);
    }
    for (uint32_t i = 0; i < problems.n; i++) {
        say_problem(list[i].warning ? "warning" : "error", list[i].step_id, list[i].field,
                    list[i].message, problem_category_name(list[i].category));
    }
    if (code == BT_OK) {
        (void)fprintf(
            stderr,
            "valid as far as it can be told without a daemon: %u steps; agents were not checked\n",
            plan->n_steps);
    }
    arena_done(&arena);
    buf_done(&doc);
    free(list);
    return code == BT_OK ? CLI_OK : cli_fail(&err);
}

static cJSON *lint_fields(struct cli *cli, const char *goal, const char *plan_json)
{
    cJSON *fields = cJSON_CreateObject();
    const char *planner = cli_value(cli, "planner");
    const char *policy = cli_value(cli, "policy");

    if (goal != NULL) {
        (void)cJSON_AddStringToObject(fields, "goal", goal);
    } else {
        (void)cJSON_AddItemToObject(fields, "plan", cJSON_Parse(plan_json));
    }
    if (planner != NULL) {
        (void)cJSON_AddStringToObject(fields, "planner", planner);
    }
    if (policy != NULL) {
        cJSON *tree = cJSON_Parse(policy);
        (void)cJSON_AddItemToObject(fields, "policy",
                                    tree != NULL ? tree : cJSON_CreateString(policy));
    }
    return fields;
}

static enum cli_exit lint(struct cli *cli, const char *goal, const char *plan_json, bool table)
{
    cJSON *answer = NULL;
    const cJSON *item;
    enum cli_exit code = cli_call(cli, "plan.lint", lint_fields(cli, goal, plan_json), &answer);
    bool valid;

    if (code != CLI_OK) {
        return code;
    }
    valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "valid"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(answer, "routes"))
    {
        cli_note("  %s → %s.%s: %s\n", json_text(item, "stepId", ""),
                 json_text(item, "agentId", ""), json_text(item, "skill", ""),
                 json_text(item, "why", ""));
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(answer, "problems"))
    {
        say_problem(json_text(item, "severity", "error"), json_text(item, "stepId", ""),
                    json_text(item, "field", ""), json_text(item, "message", ""),
                    json_text(item, "category", ""));
    }
    if (cli->json) {
        cli_print_json(answer);
    } else if (table) {
        lint_print(answer);
    } else if (valid && goal != NULL) {
        char *text = cJSON_Print(cJSON_GetObjectItemCaseSensitive(answer, "plan"));
        (void)puts(text != NULL ? text : "");
        cJSON_free(text);
    } else if (valid) {
        (void)fprintf(stderr, "valid\n");
    }
    cJSON_Delete(answer);
    if (!valid) {
        cli_say("the plan is not valid");
    }
    return valid ? CLI_OK : CLI_USAGE;
}

/* A plan file that is not to be run; without a daemon as much of it as can be told. */
static enum cli_exit check_file(struct cli *cli, const char *path, bool table)
{
    char *plan = cli_read_plan(cli, path);
    struct bt_error err;
    enum cli_exit code;

    if (plan == NULL) {
        return CLI_USAGE;
    }
    if (bt_client_open(cli_value(cli, "state"), &cli->client, &err) != BT_OK) {
        code = check_offline(plan);
    } else {
        bt_client_timeout(cli->client, CHECK_MS);
        code = lint(cli, NULL, plan, table);
        code = code == CLI_UNREACHABLE ? check_offline(plan) : code;
    }
    cJSON_free(plan);
    return code;
}

enum cli_exit verb_plan(struct cli *cli)
{
    bool check = strcmp(cli->argv[0], "check") == 0;

    if (check != (cli->argc == 2)) {
        cli_say("usage: baton plan GOAL, or: baton plan check FILE");
        return CLI_USAGE;
    }
    return check ? check_file(cli, cli->argv[1], false) : lint(cli, cli->argv[0], NULL, false);
}

/* What has the looks of a file is one, also when it is not there: a slip in its name is no goal. */
static bool is_file(const char *text)
{
    const char *dot = strrchr(text, '.');

    return strcmp(text, "-") == 0 || access(text, F_OK) == 0 ||
           (strchr(text, ' ') == NULL && dot != NULL &&
            (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0));
}

enum cli_exit verb_lint(struct cli *cli)
{
    if (is_file(cli->argv[0])) {
        return check_file(cli, cli->argv[0], true);
    }
    if (cli_value(cli, "inputs") != NULL) {
        cli_say("lint: --inputs goes with a plan file; a goal has none");
        return CLI_USAGE;
    }
    return lint(cli, cli->argv[0], NULL, true);
}
