/* What the verbs about one plan share: its view, its steps, the fields of a request. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"

enum { NAMES_MAX = 256 };

cJSON *cli_fields(const char *name, const char *value)
{
    cJSON *fields = cJSON_CreateObject();

    if (value != NULL) {
        (void)cJSON_AddStringToObject(fields, name, value);
    }
    return fields;
}

void cli_add_value(const struct cli *cli, const char *option, cJSON *fields, const char *name)
{
    if (cli_value(cli, option) != NULL) {
        (void)cJSON_AddStringToObject(fields, name, cli_value(cli, option));
    }
}

/* Moves the steps of `page` behind those of `view`; how many. */
static int take_steps(cJSON *view, cJSON *page)
{
    cJSON *to = cJSON_GetObjectItemCaseSensitive(view, "steps");
    cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "steps");
    int n = cJSON_GetArraySize(from);

    while (cJSON_GetArraySize(from) > 0) {
        (void)cJSON_AddItemToArray(to, cJSON_DetachItemFromArray(from, 0));
    }
    return n;
}

enum cli_exit cli_plan_view(struct cli *cli, const char *plan_id, cJSON **ret)
{
    enum cli_exit code = cli_call(cli, "plan.get", cli_fields("planId", plan_id), ret);
    bool more = code == CLI_OK;

    while (more && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(*ret, "stepsTruncated"))) {
        cJSON *fields = cli_fields("planId", plan_id);
        cJSON *page = NULL;
        int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(*ret, "steps"));
        (void)cJSON_AddNumberToObject(fields, "fromStep", n);
        code = cli_call(cli, "plan.get", fields, &page);
        more = code == CLI_OK && take_steps(*ret, page) > 0;
        if (more && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(page, "stepsTruncated"))) {
            cJSON_DeleteItemFromObjectCaseSensitive(*ret, "stepsTruncated");
        }
        cJSON_Delete(page);
    }
    if (code != CLI_OK) {
        cJSON_Delete(*ret);
        *ret = NULL;
    }
    return code;
}

/* 0 when it is none. */
static int number(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n < 6 && strspn(text, "0123456789") == n ? (int)strtol(text, NULL, 10) : 0;
}

int cli_step_index(const cJSON *plan_view, const char *step)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(plan_view, "steps");
    const char *names[NAMES_MAX + 1];
    const char *near;
    const cJSON *s;
    int found = -1;
    int i = 0;
    int n = 0;

    cJSON_ArrayForEach(s, steps)
    {
        const char *id = json_text(s, "stepId", "");
        bool gone = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "superseded"));
        if (strcmp(id, step) == 0 && (found < 0 || !gone)) {
            found = i;
        }
        if (n < NAMES_MAX && !gone) {
            names[n++] = id;
        }
        i++;
    }
    names[n] = NULL;
    if (found < 0 && number(step) >= 1 && number(step) <= i) {
        found = number(step) - 1;
    }
    if (found < 0) {
        near = cli_did_you_mean(step, names);
        cli_error("plan %s has no step '%s'%s%s%s; it has %d", json_text(plan_view, "planId", ""),
                  step, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?" : "", i);
    }
    return found;
}
