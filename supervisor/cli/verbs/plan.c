/* plan, lint: make or check a plan without running it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/verbs/diff.h"
#include "supervisor/cli/verbs/document.h"
#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/lint.h"
#include "supervisor/cli/verbs/submit.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/plan/lint.h"
#include "supervisor/plan/read.h"

enum { OFFLINE_PROBLEMS_MAX = 200, CHECK_MS = 5000 };

/* Checks everything except agents and skills. */
static enum cli_exit check_offline(struct cli *cli, const char *plan_json)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct problem *list = calloc(OFFLINE_PROBLEMS_MAX, sizeof *list);
    struct problems problems = {.at = list, .cap = OFFLINE_PROBLEMS_MAX};
    struct arena arena = {0};
    struct plan *plan = NULL;
    const char *policy = cli_value(cli, "policy");
    struct buf policy_doc;
    struct buf doc;
    struct bt_error err;
    enum bt_code code;

    buf_init(&doc, LIMIT_CONTROL_BYTES);
    buf_init(&policy_doc, LIMIT_CONTROL_BYTES);
    code = list == NULL ? err_set(&err, BT_NOMEM, "out of memory")
                        : json_to_doc(str_from(plan_json), NULL, &doc, &err);
    if (code == BT_OK) {
        code = json_to_doc(str_from(policy != NULL ? policy : "{}"), NULL, &policy_doc, &err);
        code = code == BT_OK ? BT_OK : err_wrap(&err, "--policy");
    }
    if (code == BT_OK) {
        const struct plan_request request = {.plan = doc_from_buf(&doc),
                                             .policy = doc_from_buf(&policy_doc),
                                             .defaults = &defaults,
                                             .lenient = cli_flag(cli, "lenient")};
        code = plan_read_request(&request, &arena, &plan, &problems, NULL, &err);
    }
    if (code == BT_OK) {
        code = plan_lint_never(plan, &arena, &problems, &err);
    }
    cli_print_found(cli, &problems, code == BT_OK);
    if (code == BT_OK) {
        (void)fprintf(stderr,
                      "valid as far as it can be checked without a daemon: %u steps; agents were "
                      "not checked\n",
                      plan->n_steps);
    }
    arena_done(&arena);
    buf_done(&policy_doc);
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
        (void)cJSON_AddItemToObject(fields, "plan", json_tree(plan_json));
    }
    if (planner != NULL) {
        (void)cJSON_AddStringToObject(fields, "planner", planner);
    }
    if (cli_flag(cli, "lenient")) {
        (void)cJSON_AddTrueToObject(fields, "lenient");
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
    enum cli_exit code = cli_call(cli, "plan.lint", lint_fields(cli, goal, plan_json), &answer);
    bool valid;

    if (code != CLI_OK) {
        return code;
    }
    valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "valid"));
    cli_make_submittable(cJSON_GetObjectItemCaseSensitive(answer, "plan"));
    if (goal != NULL) {
        cli_drop_own_remarks(cJSON_GetObjectItemCaseSensitive(answer, "problems"));
    }
    cli_print_routes(cli, cJSON_GetObjectItemCaseSensitive(answer, "routes"));
    cli_print_problems(cJSON_GetObjectItemCaseSensitive(answer, "problems"));
    if (cli->json) {
        cli_print_json(answer);
    } else if (table) {
        lint_print(answer);
    } else if (valid && goal != NULL) {
        code = cli_print_document(cli, cJSON_GetObjectItemCaseSensitive(answer, "plan"));
    } else if (valid) {
        (void)fprintf(stderr, "valid\n");
    }
    cJSON_Delete(answer);
    if (!valid) {
        cli_error("%s", goal != NULL ? "no plan could be made" : "the plan is not valid");
    }
    if (!valid && goal != NULL) {
        cli_note_if_no_agents(cli->client);
    }
    return valid ? code : CLI_USAGE;
}

/* Checks a plan file; without a daemon as far as that is possible. */
static enum cli_exit check_file(struct cli *cli, const char *path, bool table)
{
    char *plan = cli_read_plan(cli, path);
    struct bt_error err;
    enum cli_exit code;

    if (plan == NULL) {
        return CLI_USAGE;
    }
    if (cli_open(cli, &cli->client, &err) != BT_OK) {
        code = check_offline(cli, plan);
    } else {
        cli->call_ms = CHECK_MS;
        code = lint(cli, NULL, plan, table);
        code = code == CLI_UNREACHABLE ? check_offline(cli, plan) : code;
    }
    cJSON_free(plan);
    return code;
}

/* Whether the daemon plans the goal by keyword: without --planner only the daemon knows. Prints the
 * error. */
static enum cli_exit plans_by_keyword(struct cli *cli, const char *goal, bool *ret)
{
    const char *planner = cli_value(cli, "planner");
    cJSON *fields;
    char *text;
    char *json = NULL;
    struct bt_error err;
    enum bt_code code;

    *ret = planner == NULL || strcmp(planner, "keyword") == 0;
    if (planner != NULL) {
        return CLI_OK;
    }
    fields = cli_fields("goal", goal);
    text = cJSON_PrintUnformatted(fields);
    code = bt_client_call(cli->client, "plan.lint", text, &json, &err);
    if (code == BT_INVALID) {
        *ret = strstr(json != NULL ? json : "", "dryRun") == NULL;
    }
    bt_free(json);
    cJSON_free(text);
    cJSON_Delete(fields);
    return code == BT_OK || code == BT_INVALID ? CLI_OK : cli_fail(&err);
}

/* An agent makes the plan: submits it as a dry run and follows it. */
static enum cli_exit plan_by_agent(struct cli *cli, const char *goal)
{
    char plan_id[BT_ID_LEN + 1] = "";
    struct follow f = {.plan_id = plan_id, .dry = true, .quiet = cli_flag(cli, "quiet")};
    struct submitting what = {.goal = goal, .dry = true, .quiet = f.quiet, .ret_issues = &f.issues};
    enum cli_exit code;

    follow_catch_interrupts();
    code = cli_submit(cli, &what, plan_id);
    code = code == CLI_OK ? follow_plan(cli, &f) : code;
    cJSON_Delete(f.issues);
    return code;
}

/* A name with the ending of a plan file is a file even if it does not exist: a typing error is no
 * goal. */
static bool is_file(const char *text)
{
    const char *dot = strrchr(text, '.');

    return strcmp(text, "-") == 0 || access(text, F_OK) == 0 ||
           (strchr(text, ' ') == NULL && dot != NULL &&
            (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0));
}

enum cli_exit verb_plan(struct cli *cli)
{
    const char *goal = cli->argv[0];
    bool keyword = false; /* only agents respect constraints */
    enum cli_exit code;

    if (cli->argc == 2 && strcmp(goal, "check") == 0) {
        return check_file(cli, cli->argv[1], false);
    }
    if (cli->argc == 3 && strcmp(goal, "diff") == 0) {
        return cli_plan_diff(cli, cli->argv[1], cli->argv[2]);
    }
    if (cli->argc != 1 || strcmp(goal, "check") == 0 || strcmp(goal, "diff") == 0) {
        cli_error("usage: baton plan GOAL, baton plan check FILE, or baton plan diff A B");
        return CLI_USAGE;
    }
    if (is_file(goal)) {
        char hint[4200];
        (void)snprintf(hint, sizeof hint, "to check the plan: baton plan check %s", goal);
        cli_error_hint(hint, "plan: '%s' is a file, and a goal is in words", goal);
        return CLI_USAGE;
    }
    if (!cli_is_text(goal, "the goal")) {
        return CLI_USAGE;
    }
    code = cli_connect(cli);
    if (code == CLI_OK && cli_value(cli, "constraint") == NULL) {
        code = plans_by_keyword(cli, goal, &keyword);
    }
    if (code != CLI_OK) {
        return code;
    }
    return keyword ? lint(cli, goal, NULL, false) : plan_by_agent(cli, goal);
}

enum cli_exit verb_lint(struct cli *cli)
{
    if (is_file(cli->argv[0])) {
        return check_file(cli, cli->argv[0], true);
    }
    if (cli_value(cli, "inputs") != NULL) {
        cli_error("lint: --inputs goes with a plan file; a goal has none");
        return CLI_USAGE;
    }
    return cli_is_text(cli->argv[0], "the goal") ? lint(cli, cli->argv[0], NULL, true) : CLI_USAGE;
}
