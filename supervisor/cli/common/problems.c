/* Prints problems of plans: of the daemon's answers, and of local checks. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/plan/read.h"

/* The message of an unknown name has the name: its place is the map that it is in. */
static int place_len(const char *field, const char *category)
{
    const char *dot = strrchr(field, '.');

    if (strcmp(category, "unknown_field") != 0 && strcmp(category, "unsupported") != 0) {
        return (int)strlen(field);
    }
    return dot != NULL ? (int)(dot - field) : 0;
}

void cli_print_problem(const cJSON *p, const char *severity)
{
    const char *id = json_text(p, "stepId", "");
    const char *field = json_text(p, "field", "");
    const char *category = json_text(p, "category", "");
    const int n = place_len(field, category);
    char step[128] = "";

    if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(p, "stepIndex"))) {
        (void)snprintf(step, sizeof step, "step %.0f%s%.64s%s: ", json_number(p, "stepIndex") + 1,
                       id[0] != 0 ? " (" : "", id, id[0] != 0 ? ")" : "");
    } else if (id[0] != 0) {
        (void)snprintf(step, sizeof step, "step %.64s: ", id);
    }
    cli_note("  %s: %s%.*s%s%s [%s]\n", severity, step, n, field, n > 0 ? ": " : "",
             json_text(p, "message", ""), category);
}

void cli_print_problems(const cJSON *problems)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, problems)
    {
        cli_print_problem(p, json_text(p, "severity", "error"));
    }
}

/* NULL when there are none. */
static const cJSON *problems_of(const cJSON *error)
{
    const cJSON *details = cJSON_GetObjectItemCaseSensitive(error, "details");

    return cJSON_GetObjectItemCaseSensitive(details != NULL ? details : error, "problems");
}

/* The error of an answer as the wire has it: bt_submit returns problems alone. Takes it. */
static cJSON *as_error(cJSON *error, const struct bt_error *err)
{
    cJSON *whole;

    if (error != NULL && json_text(error, "code", NULL) != NULL) {
        return error;
    }
    whole = cli_fields("code", bt_code_name(err->code));
    (void)cJSON_AddStringToObject(whole, "message", err->msg);
    if (error != NULL) {
        (void)cJSON_AddItemToObject(whole, "details", error);
    }
    return whole;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The ways to name a plan (the daemon knows full ids only) or an agent. */
static const char *hint_of(const struct bt_error *err)
{
    if (err->code != BT_NOT_FOUND) {
        return "";
    }
    return begins(err->msg, "No state found for ")
               ? "`last` is the newest plan, the first characters of an id are enough; see: baton "
                 "status"
           : begins(err->msg, "Unknown agent: ") ? "see: baton agents"
                                                 : "";
}

enum cli_exit cli_rejected(struct cli *cli, const struct bt_error *err, const char *error_json)
{
    cJSON *error = json_tree(error_json);
    const cJSON *problems = problems_of(error);
    const cJSON *p;
    int n = 0;

    if (cli->json && !cli_has_printed()) {
        error = as_error(error, err);
        if (hint_of(err)[0] != 0) {
            (void)cJSON_AddStringToObject(error, "hint", hint_of(err));
        }
        cli_error_keep(error);
        return cli_exit_of(err->code);
    }
    cJSON_ArrayForEach(p, problems)
    {
        n += strcmp(json_text(p, "severity", "error"), "error") == 0;
    }
    if (n > 0) {
        cli_error("refused: %d problem%s", n, n == 1 ? "" : "s");
    } else {
        cli_error_hint(hint_of(err), "%s", err->msg);
    }
    cli_print_problems(problems);
    cJSON_Delete(error);
    return cli_exit_of(err->code);
}

bool cli_has_problem(const char *error_json, const char *category)
{
    cJSON *error = json_tree(error_json);
    const cJSON *p;
    bool has = false;

    cJSON_ArrayForEach(p, problems_of(error))
    {
        has = has || strcmp(json_text(p, "category", ""), category) == 0;
    }
    cJSON_Delete(error);
    return has;
}

static cJSON *as_json(const struct problem *p)
{
    cJSON *o = cJSON_CreateObject();

    (void)cJSON_AddStringToObject(o, "severity", p->warning ? "warning" : "error");
    (void)cJSON_AddStringToObject(o, "category", problem_category_name(p->category));
    if (p->step_id[0] != 0) {
        (void)cJSON_AddStringToObject(o, "stepId", p->step_id);
    }
    if (p->step != UINT32_MAX) {
        (void)cJSON_AddNumberToObject(o, "stepIndex", p->step);
    }
    if (p->field[0] != 0) {
        (void)cJSON_AddStringToObject(o, "field", p->field);
    }
    (void)cJSON_AddStringToObject(o, "message", p->message);
    return o;
}

void cli_print_found(struct cli *cli, const struct problems *found, bool valid)
{
    cJSON *shape = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(shape, "problems");

    (void)cJSON_AddBoolToObject(shape, "valid", valid);
    for (uint32_t i = 0; i < found->n; i++) {
        (void)cJSON_AddItemToArray(list, as_json(&found->at[i]));
    }
    if (cli->json) {
        cli_print_json(shape);
    } else {
        cli_print_problems(list);
    }
    cJSON_Delete(shape);
}

void cli_print_notes(const char *notes, const struct bt_error *err)
{
    const char *end;

    for (; (end = strchr(notes, '\n')) != NULL; notes = end + 1) {
        const size_t n = (size_t)(end - notes);
        if (strncmp(err->msg, notes, n) != 0) {
            (void)fprintf(stderr, "%.*s\n", (int)n, notes);
        }
    }
}
