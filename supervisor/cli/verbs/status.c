/* status, result, cancel: one plan, or the list of plans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/artifact.h"
#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/plans.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/leaves.h"
#include "supervisor/cli/view/review.h"
#include "supervisor/cli/view/tree.h"

enum { ROWS_BESIDE = 8 }; /* of a watched plan: what stands above and below its steps */

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* ", paused (requested)" */
static void print_state(const cJSON *view)
{
    const cJSON *why;

    if (get(view, "outcome") != NULL) {
        (void)printf(", outcome %s", json_text(view, "outcome", ""));
    }
    if (cJSON_IsTrue(get(view, "dryRun"))) {
        (void)printf(", dry run");
    }
    if (get(view, "phase") != NULL && strcmp(json_text(view, "phase", ""), "execution") != 0) {
        (void)printf(", %s", json_text(view, "phase", ""));
    }
    if (get(view, "position") != NULL) {
        (void)printf(", %s", json_text(view, "position", ""));
    }
    if (json_number(view, "revision") > 1) {
        (void)printf(", revision %.0f", json_number(view, "revision"));
    }
    cJSON_ArrayForEach(why, get(view, "paused"))
    {
        (void)printf(", paused (%s)", cJSON_IsString(why) ? why->valuestring : "");
    }
    (void)printf("%s\n", cJSON_IsTrue(get(view, "cancelling")) ? ", cancelling" : "");
}

static void print_spent(const cJSON *view)
{
    const cJSON *usage = get(view, "usage");
    const cJSON *budget = get(view, "budget");
    double tokens = json_number(usage, "inputTokens") + json_number(usage, "outputTokens");
    double cost = json_number(usage, "costMicros");
    char text[32];

    if (tokens == 0 && cost == 0 && budget == NULL) {
        return;
    }
    (void)printf("  spent: %.0f", tokens);
    if (json_number(budget, "tokens") > 0) {
        (void)printf(" of %.0f", json_number(budget, "tokens"));
    }
    cli_format_micros(cost, text, sizeof text);
    (void)printf(" tokens, cost %s", text);
    if (json_number(budget, "costMicros") > 0) {
        cli_format_micros(json_number(budget, "costMicros"), text, sizeof text);
        (void)printf(" of %s", text);
    }
    (void)fputc('\n', stdout);
}

/* ", of it planning 120, synthesis 300": only when another phase than the steps used tokens. */
static void print_phases(const cJSON *view)
{
    static const struct {
        const char *member, *name;
    } phases[] = {{"usagePlanning", "planning"},
                  {"usageExecution", "execution"},
                  {"usageReplanning", "replanning"},
                  {"usageSynthesis", "synthesis"}};
    bool any = get(view, "usagePlanning") != NULL || get(view, "usageReplanning") != NULL ||
               get(view, "usageSynthesis") != NULL;
    const char *between = "    of it:";

    for (size_t i = 0; any && i < sizeof phases / sizeof phases[0]; i++) {
        const cJSON *u = get(view, phases[i].member);
        double tokens = json_number(u, "inputTokens") + json_number(u, "outputTokens");
        if (tokens > 0) {
            (void)printf("%s %s %.0f", between, phases[i].name, tokens);
            between = ",";
        }
    }
    (void)fputs(between[0] == ',' ? "\n" : "", stdout);
}

static void print_about_line(const char *name, const char *text)
{
    char line[512];

    cli_one_line(line, sizeof line, text);
    if (line[0] != 0) {
        (void)printf("  %s: %s\n", name, line);
    }
}

/* The description, constraints and estimates of the plan. */
static void print_about(const cJSON *about)
{
    const cJSON *c;
    char estimate[192] = "";
    size_t n = 0;

    print_about_line("about", json_text(about, "description", ""));
    print_about_line("done when", json_text(about, "successCriteria", ""));
    cJSON_ArrayForEach(c, get(about, "constraints"))
    {
        print_about_line("must", cJSON_IsString(c) ? c->valuestring : "");
    }
    print_about_line("planner", json_text(about, "planner", ""));
    print_about_line("because", json_text(about, "reasoning", ""));
    if (json_number(about, "estimatedTokens") > 0) {
        n += (size_t)snprintf(estimate, sizeof estimate, "%.0f tokens",
                              json_number(about, "estimatedTokens"));
    }
    if (get(about, "estimatedTotalTime") != NULL) {
        (void)snprintf(estimate + n, sizeof estimate - n, "%s%s", n > 0 ? ", " : "",
                       json_text(about, "estimatedTotalTime", ""));
    }
    print_about_line("estimated", estimate);
    if (get(about, "errand") != NULL) {
        (void)printf("  %s for %s\n", json_text(about, "errand", ""),
                     json_text(about, "errandOf", ""));
    }
}

static void print_path(const cJSON *view)
{
    const cJSON *path = get(view, "criticalPath");
    const cJSON *v;

    if (cJSON_GetArraySize(path) > 1) {
        (void)printf("  critical path:");
        cJSON_ArrayForEach(v, path)
        {
            (void)printf("%s %s", v == path->child ? "" : " →",
                         cJSON_IsString(v) ? v->valuestring : "");
        }
        (void)fputc('\n', stdout);
    }
}

/* What a person can do now. */
static void print_hints(const cJSON *view)
{
    const char *id = json_text(view, "planId", "");
    const cJSON *why;
    const cJSON *s;

    cJSON_ArrayForEach(s, get(view, "steps"))
    {
        const bool inside = json_text(get(s, "children"), "planId", "")[0] != 0;
        if (inside) {
            (void)printf("  steps of %s: baton status %s/%s\n", json_text(s, "stepId", ""), id,
                         json_text(s, "stepId", ""));
        }
        const char *review = json_text(get(s, "waiting"), "reviewId", "");
        if (review[0] != 0 && strcmp(review, id) != 0) {
            (void)printf(inside || review_asks_more(json_text(s, "reason", ""))
                             ? "  %s needs your decision: baton review show %s\n"
                             : "  %s needs your approval: baton approve %s\n",
                         json_text(s, "stepId", ""), review);
        }
    }
    cJSON_ArrayForEach(why, get(view, "paused"))
    {
        if (cJSON_IsString(why) && strcmp(why->valuestring, "planning") == 0) {
            (void)printf(
                "  there is no plan: baton approve %s plans again, with --plan FILE runs yours\n",
                id);
        } else if (cJSON_IsString(why) && strcmp(why->valuestring, "signoff") == 0) {
            (void)printf("  the plan needs your approval: baton approve %s\n", id);
        } else if (cJSON_IsString(why) && strcmp(why->valuestring, "requested") == 0) {
            (void)printf("  paused by request: baton resume %s\n", id);
        }
    }
}

/* rows 0: all the steps; else as many as fit. */
static void print_plan(struct cli *cli, const cJSON *view, int columns, int rows)
{
    const char *status = json_text(view, "status", "");
    char query[256];

    (void)printf("%s %s %s", cli_mark(status), json_text(view, "planId", ""), status);
    print_state(view);
    cli_one_line(query, sizeof query, json_text(view, "query", ""));
    if (query[0] != 0) {
        (void)printf("  %s\n", query);
    }
    if (json_text(view, "schedule", "")[0] != 0) {
        (void)printf("  schedule %s%s%s\n", json_text(view, "schedule", ""),
                     json_text(view, "scheduledFor", "")[0] != 0 ? ", for " : ", triggered",
                     json_text(view, "scheduledFor", ""));
    }
    if (strcmp(json_text(view, "owner", "local"), "local") != 0) {
        (void)printf("  owner %s\n", json_text(view, "owner", ""));
    }
    if (get(view, "parentPlanId") != NULL) {
        (void)printf("  from plan %s\n", json_text(view, "parentPlanId", ""));
    }
    print_about(get(view, "about"));
    if (rows > 0) {
        tree_print_in(cli, view, columns, rows - ROWS_BESIDE);
    } else {
        tree_print(cli, view);
        print_path(view);
    }
    print_spent(view);
    print_phases(view);
    print_hints(view);
    if (get(view, "failureReason") != NULL) {
        (void)printf("  %s\n", json_line(view, "failureReason", ""));
    }
}

/* What undoes the plan, with its steps: "undone by plan ...: compensated, 2 done, 0 failed". */
static void print_undo(struct cli *cli, const cJSON *view)
{
    const cJSON *undo = get(view, "compensation");
    const char *status = json_text(undo, "status", "");
    const char *id = json_text(undo, "planId", "");
    const bool running = strcmp(status, "running") == 0;
    cJSON *steps = NULL;

    if (undo == NULL) {
        return;
    }
    (void)printf("  %s%s%s: %s", running ? "is being undone" : "undone",
                 id[0] != 0 ? " by plan " : "", id, status);
    if (!running) {
        (void)printf(", %.0f done, %.0f failed", json_number(undo, "compensated"),
                     json_number(undo, "failed"));
    }
    if (json_text(undo, "reason", "")[0] != 0) {
        (void)printf(": %s", json_text(undo, "reason", ""));
    }
    (void)printf("\n");
    if (json_text(undo, "reviewId", "")[0] != 0) {
        (void)printf("  it needs your decision: baton review show %s\n",
                     json_text(undo, "reviewId", ""));
    }
    if (id[0] != 0 && cli_plan_view(cli, id, &steps) == CLI_OK) {
        tree_print(cli, steps);
    }
    cJSON_Delete(steps);
}

/* *ret_over: the plan has ended. */
static enum cli_exit show_id(struct cli *cli, const char *id, int columns, int rows, bool *ret_over)
{
    cJSON *view = NULL;
    enum cli_exit code = cli_plan_view(cli, id, &view);

    if (code == CLI_OK && cli->json) {
        cli_print_json(view);
    } else if (code == CLI_OK) {
        print_plan(cli, view, columns, rows);
        print_undo(cli, view);
    }
    *ret_over = get(view, "completedAt") != NULL;
    cJSON_Delete(view);
    return code;
}

static enum cli_exit show_plan(struct cli *cli, const char *id)
{
    bool over;

    return show_id(cli, id, 0, 0, &over);
}

static enum cli_exit watch_plan(struct cli *cli, int columns, int rows, bool *ret_over)
{
    return show_id(cli, cli->argv[0], columns, rows, ret_over);
}

enum cli_exit verb_status(struct cli *cli)
{
    static const char *const filters[] = {"status", "agent", "session", "schedule", "limit"};
    const bool watch = cli_flag(cli, "watch");

    for (size_t i = 0; cli->argc > 0 && i < sizeof filters / sizeof filters[0]; i++) {
        if (cli_value(cli, filters[i]) != NULL) {
            cli_error("status: --%s is for the list of plans, not for one", filters[i]);
            return CLI_USAGE;
        }
    }
    if (watch && cli->argc > 1) {
        cli_error("status: --watch is for one plan, or for the list");
        return CLI_USAGE;
    }
    if (watch) {
        return cli_watch(cli, cli->argc == 1 ? watch_plan : cli_show_plans);
    }
    return cli->argc > 0 ? cli_each(cli, show_plan) : cli_list_plans(cli);
}

/* Of a plan or of a step; CLI_TIMEOUT when it has not ended. */
static enum cli_exit exit_of_result(const char *status, const char *outcome)
{
    static const char *const ended[] = {"completed", "failed", "cancelled", "waiting",
                                        "quarantined"};

    for (size_t i = 0; i < sizeof ended / sizeof ended[0]; i++) {
        if (strcmp(status, ended[i]) == 0) {
            return cli_exit_of_plan(status, outcome);
        }
    }
    return strcmp(status, "skipped") == 0 ? CLI_OK : CLI_TIMEOUT;
}

/* plan.result of a step, by its id or its number. */
static enum cli_exit step_result(struct cli *cli, const char *plan, const char *step, cJSON **ret)
{
    cJSON *fields = cli_fields("planId", plan);
    cJSON *view = NULL;
    enum cli_exit code = CLI_OK;

    *ret = NULL;
    if (strspn(step, "0123456789") == strlen(step)) { /* it may be an id, too */
        code = cli_plan_view(cli, plan, &view);
        const int index = code == CLI_OK ? cli_step_index(view, step) : -1;
        step = index >= 0 ? json_text(cJSON_GetArrayItem(get(view, "steps"), index), "stepId", "")
                          : step;
        code = code == CLI_OK && index < 0 ? CLI_NOT_FOUND : code;
    }
    if (code == CLI_OK) {
        (void)cJSON_AddStringToObject(fields, "stepId", step);
        code = cli_call(cli, "plan.result", fields, ret);
    } else {
        cJSON_Delete(fields);
    }
    cJSON_Delete(view);
    return code;
}

/* Prints an answer of plan.result; step NULL = of the plan. The exit code says how it ended. */
static enum cli_exit print_result(struct cli *cli, const char *plan, const char *step,
                                  const cJSON *answer)
{
    const char *status = json_text(answer, "status", "");
    const enum cli_exit code =
        exit_of_result(status, step == NULL ? json_text(answer, "outcome", "") : "");

    if (step != NULL && code == CLI_TIMEOUT && cJSON_IsTrue(get(answer, "dryRun"))) {
        if (cli->json) {
            cli_print_json(answer);
        }
        cli_error("plan %s was a dry run: its steps did not run, and step %s has no result", plan,
                  step);
        return CLI_NOT_FOUND;
    }
    if (step != NULL) {
        follow_print_step(cli, answer, step);
    } else if (cli->json) {
        cli_print_json(answer);
    } else {
        char *leaves = cli_flag(cli, "all") ? NULL : cli_leaf_answer(cli, plan, answer);
        const char *text = leaves != NULL ? leaves : json_text(answer, "aggregatedResult", "");
        if (text[0] != 0 || code != CLI_TIMEOUT) {
            cli_print_lines(text);
        }
        free(leaves);
        cli_print_artifacts(cli, answer);
    }
    return code;
}

/* step NULL = the plan's result. */
static enum cli_exit show_result(struct cli *cli, const char *plan, const char *step)
{
    const char *artifact = cli_value(cli, "artifact");
    cJSON *answer = NULL;
    enum cli_exit code;

    if (step != NULL) {
        code = step_result(cli, plan, step, &answer);
    } else {
        code = cli_plan_result(cli, plan, &answer);
    }
    if (code == CLI_OK && artifact != NULL) {
        code = cli_print_artifact(cli, answer, artifact);
        cJSON_Delete(answer);
        return code;
    }
    if (code == CLI_OK) {
        code = print_result(cli, plan, step, answer);
    }
    if (answer != NULL && step == NULL) {
        cli_report_not_whole(answer);
    }
    if (code == CLI_PARTIAL) {
        code = cli_report_partial(cli, code, plan);
    } else if (code != CLI_OK && answer != NULL && step == NULL) {
        const char *why = json_text(answer, "failureReason",
                                    code == CLI_TIMEOUT ? "the plan has not ended yet"
                                                        : json_text(answer, "status", ""));
        cli_error("%s", why);
        if (code == CLI_FAILED) {
            follow_print_failures(cli, plan, why);
        }
    }
    cJSON_Delete(answer);
    return code;
}

/* PLAN_ID or PLAN_ID/STEP_ID; one of several has its name above it. */
static enum cli_exit show_named_result(struct cli *cli, const char *name)
{
    char plan[CLI_ID_MAX];
    const char *slash = strchr(name, '/');

    if (cli->argc > 1 && !cli->json) {
        (void)printf("==> %s <==\n", name);
    }
    (void)snprintf(plan, sizeof plan, "%.*s",
                   slash != NULL ? (int)(slash - name) : (int)sizeof plan, name);
    return show_result(cli, plan, slash != NULL ? slash + 1 : NULL);
}

enum cli_exit verb_result(struct cli *cli)
{
    if (cli->argc == 2 && !cli_names_plan(cli->argv[1])) {
        return show_result(cli, cli->argv[0], cli->argv[1]);
    }
    return cli_each(cli, show_named_result);
}

static enum cli_exit cancel(struct cli *cli, const char *id)
{
    cJSON *fields = cli_fields("planId", id);
    cJSON *answer = NULL;
    enum cli_exit code;

    cli_add_value(cli, "reason", fields, "reason");
    code = cli_call(cli, "plan.cancel", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        (void)printf("%s %s\n", json_text(answer, "planId", ""), json_text(answer, "status", ""));
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_cancel(struct cli *cli)
{
    return cli_each(cli, cancel);
}
