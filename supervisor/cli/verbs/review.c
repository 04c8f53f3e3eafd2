/* reviews, decide, approve, reject: decisions of a person. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

enum { TEXT_MAX = 2048, ID_MAX = 161 };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void print_line(const char *name, const char *text)
{
    char line[TEXT_MAX];

    if (text != NULL && text[0] != 0) {
        cli_one_line(line, sizeof line, text);
        (void)printf("    %-10s %s\n", name, line);
    }
}

static void print_document(const char *name, const cJSON *value)
{
    char *text = value != NULL ? cJSON_PrintUnformatted(value) : NULL;

    print_line(name, text);
    cJSON_free(text);
}

/* What a person needs for the decision. */
static void print_review(const cJSON *r)
{
    const cJSON *u;

    (void)printf("? %s  %s", json_text(r, "reviewId", ""), json_text(r, "kind", ""));
    (void)printf(json_text(r, "stepId", NULL) != NULL ? "  step %s\n" : "  the whole plan%s\n",
                 json_text(r, "stepId", ""));
    print_line("asks", json_text(r, "prompt", ""));
    print_line("error", json_text(r, "error", ""));
    if (strcmp(json_text(r, "task", ""), json_text(r, "prompt", "")) != 0) {
        print_line("task", json_text(r, "task", ""));
    }
    print_line("agent", json_text(r, "agentId", ""));
    print_document("parameters", get(r, "parameters"));
    print_document("wants", get(r, "schema"));
    cJSON_ArrayForEach(u, get(r, "upstreamResults"))
    {
        char text[TEXT_MAX];
        (void)snprintf(text, sizeof text, "%s: %.600s", json_text(u, "stepId", ""),
                       json_text(u, "result", ""));
        print_line("from", text);
    }
    print_line("denied at", json_text(r, "until", ""));
    if (strcmp(json_text(r, "kind", ""), "planning") == 0) {
        print_line("approve", "plans again; with --plan FILE: runs that plan; reject: ends it");
    }
}

enum cli_exit verb_reviews(struct cli *cli)
{
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(
        cli, "review.list", cli_fields("planId", cli->argc == 1 ? cli->argv[0] : NULL), &answer);
    const cJSON *list = get(answer, "reviews");
    const cJSON *r;

    if (code == CLI_OK && cli->json) {
        cli_print_json(list);
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(r, list)
        {
            print_review(r);
        }
    }
    cJSON_Delete(answer);
    return code;
}

/* The document of --edit or --plan. Prints the error and returns false. */
static bool read_edit(struct cli *cli, const char *decision, cJSON **ret)
{
    const char *edit = cli_value(cli, "edit");
    const char *file = cli_value(cli, "plan");
    char *plan;

    *ret = NULL;
    if (file != NULL && (edit != NULL || strcmp(decision, "approve") != 0)) {
        cli_error("%s: --plan goes with approve, and not with --edit", cli->verb->name);
        return false;
    }
    if (edit != NULL) {
        *ret = cli_read_value(edit, "--edit");
    } else if (file != NULL && (plan = cli_read_plan(cli, file)) != NULL) {
        *ret = cJSON_CreateObject();
        (void)cJSON_AddItemToObject(*ret, "plan", cJSON_Parse(plan));
        cJSON_free(plan);
    }
    return *ret != NULL || (edit == NULL && file == NULL);
}

static enum cli_exit decide(struct cli *cli, const char *review_id, const char *decision)
{
    cJSON *fields = cli_fields("reviewId", review_id);
    cJSON *answer = NULL;
    cJSON *edit = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "decision", decision);
    cli_add_value(cli, "comment", fields, "comment");
    if (!read_edit(cli, decision, &edit)) {
        cJSON_Delete(fields);
        return CLI_USAGE;
    }
    if (edit != NULL) {
        (void)cJSON_AddItemToObject(fields, "edit", edit);
    }
    code = cli_call(cli, "review.decide", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_decide(struct cli *cli)
{
    return decide(cli, cli->argv[0], cli->argv[1]);
}

/* Lists the open reviews when there are several. */
static void print_open_reviews(const struct cli *cli, const cJSON *reviews)
{
    const cJSON *r;

    cli_error("plan %s waits for %d decisions; name one: baton %s PLAN_ID STEP_ID, or by its id",
              cli->argv[0], cJSON_GetArraySize(reviews), cli->verb->name);
    cJSON_ArrayForEach(r, reviews)
    {
        char prompt[128];
        cli_one_line(prompt, sizeof prompt, json_text(r, "prompt", ""));
        cli_note("  %s  %s  %s\n", json_text(r, "reviewId", ""), json_text(r, "kind", ""), prompt);
    }
}

/* The open review of a plan, or of one of its steps. */
static enum cli_exit find_review(struct cli *cli, char ret_id[ID_MAX])
{
    const char *step = cli->argc == 2 ? cli->argv[1] : NULL;
    cJSON *answer = NULL;
    const cJSON *found = NULL;
    const cJSON *reviews;
    const cJSON *r;
    int n = 0;
    enum cli_exit code = cli_call(cli, "plan.get", cli_fields("planId", cli->argv[0]),
                                  &answer); /* reports an unknown id */

    cJSON_Delete(answer);
    answer = NULL;
    if (code != CLI_OK) {
        return code;
    }
    code = cli_call(cli, "review.list", cli_fields("planId", cli->argv[0]), &answer);
    reviews = get(answer, "reviews");
    cJSON_ArrayForEach(r, reviews)
    {
        if (step == NULL || strcmp(json_text(r, "stepId", ""), step) == 0) {
            found = r;
            n++;
        }
    }
    if (code == CLI_OK && n == 1) {
        (void)snprintf(ret_id, ID_MAX, "%s", json_text(found, "reviewId", ""));
    } else if (code == CLI_OK && n > 1) {
        print_open_reviews(cli, reviews);
        code = CLI_USAGE;
    } else if (code == CLI_OK) {
        cli_error("%s%s%splan %s waits for no decision", step != NULL ? "step " : "",
                  step != NULL ? step : "", step != NULL ? " of " : "", cli->argv[0]);
        code = CLI_NOT_FOUND;
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit decide_found(struct cli *cli, const char *decision)
{
    char id[ID_MAX] = "";
    enum cli_exit code = CLI_OK;

    if (strchr(cli->argv[0], '/') != NULL && cli->argc == 1) {
        return decide(cli, cli->argv[0], decision);
    }
    code = find_review(cli, id);
    if (code == CLI_OK) {
        code = decide(cli, id, decision);
    }
    if (code == CLI_OK && !cli->json) {
        cli_note("%s %s\n", strcmp(decision, "approve") == 0 ? "approved" : "rejected", id);
    }
    return code;
}

enum cli_exit verb_approve(struct cli *cli)
{
    return decide_found(cli, "approve");
}

enum cli_exit verb_reject(struct cli *cli)
{
    return decide_found(cli, "reject");
}
