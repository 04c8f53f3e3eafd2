/* pause, resume, skip, modify: changes of a running plan. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/verbs/verbs.h"

static enum cli_exit set_pause(struct cli *cli, const char *type, const char *id)
{
    cJSON *fields = cli_fields("planId", id);
    cJSON *answer = NULL;
    enum cli_exit code;

    cli_add_value(cli, "reason", fields, "reason");
    code = cli_call(cli, type, fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        (void)printf("%s %s%s\n", json_text(answer, "planId", ""), json_text(answer, "status", ""),
                     strcmp(type, "plan.pause") == 0
                         ? ", paused: running steps continue, no others start"
                         : "");
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit pause_plan(struct cli *cli, const char *id)
{
    return set_pause(cli, "plan.pause", id);
}

static enum cli_exit resume_plan(struct cli *cli, const char *id)
{
    return set_pause(cli, "plan.resume", id);
}

enum cli_exit verb_pause(struct cli *cli)
{
    return cli_each(cli, pause_plan);
}

enum cli_exit verb_resume(struct cli *cli)
{
    return cli_each(cli, resume_plan);
}

/* The data of a signal: JSON, or a text. The exit code of a mistake. */
static enum cli_exit signal_data(struct cli *cli, cJSON *fields)
{
    const char *json = cli_value(cli, "data");
    const char *text = cli_value(cli, "text");
    cJSON *data;

    if (json != NULL && text != NULL) {
        cli_error("signal: --data and --text exclude each other");
        return CLI_USAGE;
    }
    if (text != NULL) {
        (void)cJSON_AddStringToObject(fields, "data", text);
    } else if (json != NULL) {
        data = cJSON_Parse(json);
        if (data == NULL) {
            cli_error_hint("a text goes with --text", "signal: --data is no JSON: %.200s", json);
            return CLI_USAGE;
        }
        (void)cJSON_AddItemToObject(fields, "data", data);
    }
    return CLI_OK;
}

enum cli_exit verb_signal(struct cli *cli)
{
    cJSON *fields = cli_fields("planId", cli->argv[0]);
    cJSON *answer = NULL;
    const char *step;
    bool repeated;
    enum cli_exit code = cli->argc > 2 ? CLI_USAGE : signal_data(cli, fields);

    if (cli->argc > 2) {
        cli_error_hint("data goes with --data JSON or --text TEXT",
                       "signal: expected PLAN_ID and SIGNAL, got '%.100s', too", cli->argv[2]);
    }

    if (code != CLI_OK) {
        cJSON_Delete(fields);
        return code;
    }
    (void)cJSON_AddStringToObject(fields, "name", cli->argv[1]);
    cli_add_value(cli, "key", fields, "clientKey");
    code = cli_call(cli, "plan.signal", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        step = json_text(answer, "stepId", NULL);
        repeated = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "repeated"));
        (void)printf("%s signal %.0f%s%s%s\n", json_text(answer, "planId", ""),
                     json_number(answer, "signal"), repeated ? " (it came before)" : "",
                     step != NULL ? " taken by "
                     : repeated   ? ", no step has taken it"
                                  : ", kept until a step waits for it",
                     step != NULL ? step : "");
    }
    cJSON_Delete(answer);
    return code;
}

/* Takes ownership of fields. */
static enum cli_exit modify(struct cli *cli, cJSON *fields)
{
    cJSON *answer = NULL;
    const cJSON *p;
    enum cli_exit code = cli_call(cli, "plan.modify", fields, &answer);

    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(answer, "problems"))
    {
        cli_print_problem(p, "warning");
    }
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        double changed = json_number(answer, "changed");
        (void)printf("%s revision %.0f, %.0f step%s changed\n", json_text(answer, "planId", ""),
                     json_number(answer, "revision"), changed, changed == 1 ? "" : "s");
    }
    cJSON_Delete(answer);
    return code;
}

/* planId, kind, expectRevision. Prints the error and returns NULL. */
static cJSON *modify_fields(struct cli *cli, const char *kind)
{
    const char *expect = cli_value(cli, "expect-revision");
    uint64_t revision = 0;
    cJSON *fields;

    if (expect != NULL && !cli_number(expect, "--expect-revision", &revision)) {
        return NULL;
    }
    fields = cli_fields("planId", cli->argv[0]);
    (void)cJSON_AddStringToObject(fields, "kind", kind);
    if (expect != NULL) {
        (void)cJSON_AddNumberToObject(fields, "expectRevision", (double)revision);
    }
    return fields;
}

enum cli_exit verb_skip(struct cli *cli)
{
    const char *to = cli_value(cli, "to");
    cJSON *numbers = NULL;
    cJSON *fields;
    cJSON *view = NULL;
    enum cli_exit code;

    if ((to == NULL) == (cli->argc == 1)) {
        cli_error_hint("see: baton skip --help", "skip: expected either steps or --to STEP");
        return CLI_USAGE;
    }
    fields = modify_fields(cli, to != NULL ? "skip_to_step" : "skip_steps");
    if (fields == NULL) {
        return CLI_USAGE;
    }
    cli_add_value(cli, "reason", fields, "reasoning");
    code = cli_plan_view(cli, cli->argv[0], &view);
    if (code == CLI_OK && to != NULL) {
        int index = cli_step_index(view, to);
        (void)cJSON_AddNumberToObject(fields, "targetStepNumber", index + 1);
        code = index < 0 ? CLI_NOT_FOUND : CLI_OK;
    } else if (code == CLI_OK) {
        numbers = cJSON_AddArrayToObject(fields, "stepsToSkip");
    }
    for (int i = 1; code == CLI_OK && i < cli->argc; i++) {
        int index = cli_step_index(view, cli->argv[i]);
        (void)cJSON_AddItemToArray(numbers, cJSON_CreateNumber(index + 1));
        code = index < 0 ? CLI_NOT_FOUND : CLI_OK;
    }
    cJSON_Delete(view);
    if (code != CLI_OK) {
        cJSON_Delete(fields);
        return code;
    }
    return modify(cli, fields);
}

/* The steps of a file that has a list, a plan, or one step; a plan with other members as a whole:
 * the daemon reads them all. Prints the error and returns NULL. */
static cJSON *read_steps(const char *path)
{
    cJSON *tree = cli_read_tree(path);
    cJSON *steps = cJSON_GetObjectItemCaseSensitive(tree, "steps");
    cJSON *list;

    if (tree == NULL || cJSON_IsArray(tree) || (steps != NULL && cJSON_GetArraySize(tree) > 1)) {
        return tree;
    }
    if (steps != NULL) {
        list = cJSON_DetachItemViaPointer(tree, steps);
        cJSON_Delete(tree);
        return list;
    }
    if (!cJSON_IsObject(tree)) {
        cli_error("%s: expected a step, a list of steps, or a plan", path);
        cJSON_Delete(tree);
        return NULL;
    }
    list = cJSON_CreateArray();
    (void)cJSON_AddItemToArray(list, tree);
    return list;
}

struct change {
    const char *kind;
    const char *file; /* with the new steps; NULL = none */
    const char *reasoning;
};

/* The change that the options describe. Prints the error and returns false. */
static bool read_change(const struct cli *cli, struct change *c)
{
    const char *insert = cli_value(cli, "insert");
    const char *replace = cli_value(cli, "replace");
    const char *cancel = cli_value(cli, "cancel-step");
    const char *note = cli_value(cli, "note");
    bool places = cli_flag(cli, "after") || cli_flag(cli, "before");

    if ((insert != NULL) + (replace != NULL) + (cancel != NULL) + (note != NULL) != 1) {
        cli_error_hint("see: baton modify --help",
                       "modify: expected one of --insert, --replace, --cancel-step and --note");
        return false;
    }
    c->kind = insert != NULL    ? "insert"
              : replace != NULL ? "replace"
              : cancel != NULL  ? "cancel_step"
                                : "conversation_only";
    c->file = insert != NULL ? insert : cli->argc == 2 ? cli->argv[1] : NULL;
    c->reasoning = note != NULL ? note : cli_value(cli, "reasoning");
    if (insert != NULL && (cli_flag(cli, "after") == cli_flag(cli, "before"))) {
        cli_error("modify: --insert needs either --after STEP or --before STEP");
    } else if (insert == NULL && places) {
        cli_error("modify: --after and --before go with --insert");
    } else if ((cli->argc == 2) != (replace != NULL)) {
        cli_error(replace != NULL ? "modify: --replace STEP needs the FILE with the new steps, too"
                                  : "modify: a FILE as an argument goes with --replace STEP");
    } else if (note != NULL && cli_flag(cli, "reasoning")) {
        cli_error("modify: --note is the reasoning; give one of them");
    } else if (c->reasoning == NULL) {
        cli_error(
            "modify: give the reason with --reasoning TEXT; it is stored in the plan's history");
    } else {
        return true;
    }
    return false;
}

enum cli_exit verb_modify(struct cli *cli)
{
    struct change c = {0};
    cJSON *fields;
    cJSON *steps = NULL;

    if (!read_change(cli, &c)) {
        return CLI_USAGE;
    }
    if (c.file != NULL) {
        steps = read_steps(c.file);
        if (steps == NULL) {
            return CLI_USAGE;
        }
    }
    fields = modify_fields(cli, c.kind);
    if (fields == NULL) {
        cJSON_Delete(steps);
        return CLI_USAGE;
    }
    cli_add_value(cli, "replace", fields, "stepId");
    cli_add_value(cli, "cancel-step", fields, "stepId");
    cli_add_value(cli, "after", fields, "afterStepId");
    cli_add_value(cli, "before", fields, "beforeStepId");
    (void)cJSON_AddStringToObject(fields, "reasoning", c.reasoning);
    if (steps != NULL) {
        (void)cJSON_AddItemToObject(fields, "steps", steps);
    }
    return modify(cli, fields);
}
