/* run: submits a plan, follows it and prints its result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/submit.h"
#include "supervisor/cli/verbs/verbs.h"

/* --plans: each line is a plan of its own, and nothing is followed. */
static bool check_plans(const struct cli *cli)
{
    static const char *const values[] = {
        "plan",       "recipe",  "input",  "inputs",          "planner",
        "constraint", "session", "result", "on-invalid-plan", "synthesis"};
    static const char *const flags[] = {"dry-run", "verbose", "all", "allow-partial"};
    const char *with = cli->argc > 0 ? "a goal" : NULL;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        with = cli_value(cli, values[i]) != NULL ? values[i] : with;
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        with = cli_flag(cli, flags[i]) ? flags[i] : with;
    }
    if (with != NULL) {
        cli_error("run: --plans excludes %s%s: each line is a plan of its own, and its id is "
                  "printed",
                  cli->argc > 0 && strcmp(with, "a goal") == 0 ? "" : "--", with);
    }
    return with == NULL;
}

/* Checks which options go together. Prints the error and returns false. */
static bool check_options(const struct cli *cli)
{
    bool file = cli_value(cli, "plan") != NULL || cli_value(cli, "recipe") != NULL;

    if (cli_value(cli, "plan") != NULL && cli_value(cli, "recipe") != NULL) {
        cli_error("run: --plan and --recipe exclude each other");
        return false;
    }
    if ((cli->argc > 0) == file) {
        cli_error_hint("see: baton run --help",
                       "run: expected either a goal, --plan FILE, --recipe NAME or --plans FILE");
        return false;
    }
    if (!file && (recipes_is_file(cli->argv[0]) ||
                  (strchr(cli->argv[0], '/') != NULL && access(cli->argv[0], F_OK) == 0))) {
        char hint[RECIPE_PATH_MAX];
        (void)snprintf(hint, sizeof hint, "to run the plan: baton run -f %s", cli->argv[0]);
        cli_error_hint(hint, "run: '%s' is a file, and a goal is in words", cli->argv[0]);
        return false;
    }
    if (!file && (cli_value(cli, "inputs") != NULL || cli_value(cli, "input") != NULL)) {
        cli_error("run: --input and --inputs go with --plan and --recipe; a goal has none");
        return false;
    }
    if (file && cli_value(cli, "constraint") != NULL) {
        cli_error("run: --constraint goes with a goal; a plan is as it stands");
        return false;
    }
    if (cli_value(cli, "result") != NULL && (cli_flag(cli, "detach") || cli_flag(cli, "dry-run"))) {
        cli_error("run: --result excludes --detach and --dry-run: there is no result yet");
        return false;
    }
    return true;
}

static enum cli_exit submit(struct cli *cli, char plan_id[BT_ID_LEN + 1], cJSON **ret_issues)
{
    struct submitting what = {.goal = cli->argc > 0 ? cli->argv[0] : NULL,
                              .dry = cli_flag(cli, "dry-run"),
                              .quiet = cli_flag(cli, "quiet"),
                              .ret_issues = ret_issues};
    const char *recipe = cli_value(cli, "recipe");
    char *plan = NULL;
    enum cli_exit code;

    if (what.goal != NULL && !cli_is_text(what.goal, "the goal")) {
        return CLI_USAGE;
    }
    if (what.goal == NULL) {
        plan = recipe != NULL ? cli_read_recipe(cli, recipe)
                              : cli_read_plan(cli, cli_value(cli, "plan"));
        if (plan == NULL) {
            return CLI_USAGE;
        }
        what.plan = plan;
    }
    code = cli_submit(cli, &what, plan_id);
    cJSON_free(plan);
    return code;
}

static void print_plan_id(const struct cli *cli, const char *plan_id)
{
    cJSON *answer = cli_fields("planId", plan_id);

    if (cli->json) {
        cli_print_json(answer);
    } else {
        (void)printf("%s\n", plan_id);
    }
    cJSON_Delete(answer);
}

enum cli_exit verb_run(struct cli *cli)
{
    char plan_id[BT_ID_LEN + 1] = "";
    struct follow f = {.plan_id = plan_id,
                       .result_step = cli_value(cli, "result"),
                       .dry = cli_flag(cli, "dry-run"),
                       .quiet = cli_flag(cli, "quiet")};
    enum cli_exit code;

    if (cli_value(cli, "plans") != NULL) {
        return check_plans(cli) ? cli_submit_lines(cli, cli_value(cli, "plans")) : CLI_USAGE;
    }
    if (!check_options(cli)) {
        return CLI_USAGE;
    }
    follow_catch_interrupts();
    code = submit(cli, plan_id, &f.issues);
    if (code == CLI_OK && cli_flag(cli, "detach")) {
        print_plan_id(cli, plan_id);
    } else if (code == CLI_OK) {
        code = follow_plan(cli, &f);
    }
    cJSON_Delete(f.issues);
    return code;
}
