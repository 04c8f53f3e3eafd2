/* Prints problems of plans: of the daemon's answers, and of local checks. */
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/plan/read.h"

static void print_problem(const char *severity, const char *step, const char *field,
                          const char *message, const char *category)
{
    cli_note("  %s: %s%s%s%s%s%s [%s]\n", severity, step[0] != 0 ? "step " : "", step,
             step[0] != 0 ? ": " : "", field, field[0] != 0 ? ": " : "", message, category);
}

void cli_print_problems(const cJSON *problems)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, problems)
    {
        print_problem(json_text(p, "severity", "error"), json_text(p, "stepId", ""),
                      json_text(p, "field", ""), json_text(p, "message", ""),
                      json_text(p, "category", ""));
    }
}

/* NULL when there are none. */
static const cJSON *problems_of(const cJSON *error)
{
    const cJSON *details = cJSON_GetObjectItemCaseSensitive(error, "details");

    return cJSON_GetObjectItemCaseSensitive(details != NULL ? details : error, "problems");
}

enum cli_exit cli_rejected(struct cli *cli, const struct bt_error *err, const char *error_json)
{
    cJSON *error = error_json != NULL ? cJSON_Parse(error_json) : NULL;
    const cJSON *problems = problems_of(error);
    const cJSON *p;
    int n = 0;

    cJSON_ArrayForEach(p, problems)
    {
        n += strcmp(json_text(p, "severity", "error"), "error") == 0;
    }
    if (n > 0) {
        cli_error("refused: %d problem%s", n, n == 1 ? "" : "s");
    } else {
        cli_error("%s", err->msg);
    }
    if (cli->json && error != NULL) {
        cli_print_json(error);
    }
    cli_print_problems(problems);
    cJSON_Delete(error);
    return cli_exit_of(err->code);
}

bool cli_has_problem(const char *error_json, const char *category)
{
    cJSON *error = error_json != NULL ? cJSON_Parse(error_json) : NULL;
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
    cli_print_problems(list);
    if (cli->json) {
        cli_print_json(shape);
    }
    cJSON_Delete(shape);
}
