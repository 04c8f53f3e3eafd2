#include "supervisor/cli/verbs/document.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/submit.h"
#include "supervisor/config/yaml_write.h"

/* What a step says by itself; the rest may be a default. */
static const char *const said_by_step[] = {"stepId", "agentId",    "skill",
                                           "task",   "parameters", "dependsOn"};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool is_said(const char *name)
{
    for (size_t i = 0; i < sizeof said_by_step / sizeof said_by_step[0]; i++) {
        if (strcmp(said_by_step[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The document with its goal and what its steps say; the caller frees it. */
static cJSON *bare(const cJSON *document)
{
    cJSON *plan = cJSON_CreateObject();
    cJSON *steps = cJSON_AddArrayToObject(plan, "steps");
    const cJSON *s;
    const cJSON *v;

    if (get(document, "goal") != NULL) {
        (void)cJSON_AddItemToObject(plan, "goal", cJSON_Duplicate(get(document, "goal"), true));
    }
    cJSON_ArrayForEach(s, get(document, "steps"))
    {
        cJSON *step = cJSON_CreateObject();
        cJSON_ArrayForEach(v, s)
        {
            if (is_said(v->string)) {
                (void)cJSON_AddItemToObject(step, v->string, cJSON_Duplicate(v, true));
            }
        }
        (void)cJSON_AddItemToArray(steps, step);
    }
    return plan;
}

/* The document as the daemon completes it; NULL when it does not. The caller frees it. */
static cJSON *completed(struct cli *cli, const cJSON *document)
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    cJSON *plan = NULL;
    char *json = NULL;
    char *text;
    struct bt_error err;

    (void)cJSON_AddItemToObject(fields, "plan", cJSON_Duplicate(document, true));
    text = cjson_print(fields, false, NULL);
    cli_limit_call(cli);
    if (bt_client_call(cli->client, "plan.lint", text, &json, &err) == BT_OK) {
        answer = json_tree(json);
        plan = cJSON_DetachItemFromObjectCaseSensitive(answer, "plan");
        cli_make_submittable(plan);
        cli_scrub_tree(plan);
    }
    bt_free(json);
    cJSON_Delete(answer);
    cJSON_free(text);
    cJSON_Delete(fields);
    return plan;
}

/* Deletes the members of an object that are the same in `defaults`, unless they are in said_by_step
 * or `kept`. */
static void drop_equal(cJSON *object, const cJSON *defaults, const char *kept)
{
    cJSON *next;

    for (cJSON *v = object != NULL ? object->child : NULL; v != NULL; v = next) {
        next = v->next;
        if (!is_said(v->string) && strcmp(v->string, kept) != 0 && strcmp(v->string, "goal") != 0 &&
            cJSON_Compare(v, get(defaults, v->string), true)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(object, v));
        }
    }
}

/* The document without what the daemon sets by itself; NULL when that would be another plan. The
 * caller frees it. */
static cJSON *reduced(struct cli *cli, const cJSON *document)
{
    cJSON *less = cJSON_Duplicate(document, true);
    cJSON *plain = bare(document);
    cJSON *defaults = completed(cli, plain);
    cJSON *policy = cJSON_GetObjectItemCaseSensitive(less, "policy");
    cJSON *again;
    cJSON *s;
    int i = 0;

    drop_equal(policy, get(defaults, "policy"), "");
    cJSON_ArrayForEach(s, get(less, "steps"))
    {
        drop_equal(s, cJSON_GetArrayItem(get(defaults, "steps"), i++), "");
    }
    drop_equal(less, defaults, "steps");
    if (policy != NULL && policy->child == NULL) {
        cJSON_DeleteItemFromObjectCaseSensitive(less, "policy");
    }
    again = defaults != NULL ? completed(cli, less) : NULL;
    if (!cJSON_Compare(again, document, true)) {
        cJSON_Delete(less);
        less = NULL;
    }
    cJSON_Delete(again);
    cJSON_Delete(defaults);
    cJSON_Delete(plain);
    return less;
}

enum cli_exit cli_print_document(struct cli *cli, cJSON *document)
{
    cJSON *less = cli_flag(cli, "full") ? NULL : reduced(cli, document);
    struct buf text;
    struct bt_error err;
    enum bt_code code;

    buf_init(&text, SIZE_MAX / 2);
    code = yaml_write(less != NULL ? less : document, &text, &err);
    if (code == BT_OK) {
        (void)fputs(buf_cstr(&text), stdout);
    }
    buf_done(&text);
    cJSON_Delete(less);
    return code == BT_OK ? CLI_OK : cli_fail(&err);
}
