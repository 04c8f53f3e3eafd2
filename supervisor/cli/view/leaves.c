#include "supervisor/cli/view/leaves.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"

/* The form of an answer, supervisor/core/run/aggregate.h. */
#define HEAD "**"
#define HEAD_END "**\n"
#define BETWEEN "\n\n---\n\n"
static const char *const endings[] = {BETWEEN "**Not done**", BETWEEN "**Not whole**"};

enum { STEP_ID_BYTES = 64 };

struct step {
    const char *id;
    const cJSON *view;
    bool taken_up; /* by another completed step */
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct step *)a)->id, ((const struct step *)b)->id);
}

static bool is_done(const cJSON *step)
{
    return strcmp(json_text(step, "status", ""), "completed") == 0 &&
           !cJSON_IsTrue(get(step, "superseded")) && json_number(step, "resultLen") > 0;
}

static void take_up(struct step *steps, size_t n, const char *id)
{
    const struct step key = {.id = id};
    struct step *found = bsearch(&key, steps, n, sizeof *steps, compare);

    if (found != NULL) {
        found->taken_up = true;
    }
}

/* Takes up what the templates in a step's text name: "{{results.ID}}", "{{ results.ID.member }}".
 * An id may have dots. */
static void take_up_templates(struct step *steps, size_t n, const char *text)
{
    static const char results[] = "results.";
    char id[STEP_ID_BYTES + 1];

    while ((text = strstr(text, "{{")) != NULL) {
        text += 2 + strspn(text + 2, " ");
        if (strncmp(text, results, sizeof results - 1) != 0) {
            continue;
        }
        text += sizeof results - 1;
        for (size_t i = 0; i < sizeof id && strchr(" }[", text[i]) == NULL; i++) {
            id[i] = text[i];
            if (i + 1 < sizeof id && strchr(" }[.", text[i + 1]) != NULL) {
                id[i + 1] = 0;
                take_up(steps, n, id);
            }
        }
    }
}

/* A plan without dependsOn is a chain, in which only templates say who needs what. */
static enum cli_exit take_up_of_chain(struct cli *cli, const char *plan_id, struct step *steps,
                                      size_t n)
{
    cJSON *fields = cli_fields("planId", plan_id);
    cJSON *answer = NULL;
    enum cli_exit code;
    const cJSON *s;

    (void)cJSON_AddTrueToObject(fields, "document");
    (void)cJSON_AddFalseToObject(fields, "steps");
    code = cli_call(cli, "plan.get", fields, &answer);
    cJSON_ArrayForEach(s, get(get(answer, "document"), "steps"))
    {
        char *text = cjson_print(s, false, NULL);
        take_up_templates(steps, n, text != NULL ? text : "");
        cJSON_free(text);
    }
    cJSON_Delete(answer);
    return code;
}

/* The completed steps by id; the caller frees them. */
static struct step *done_steps(const cJSON *view, size_t *ret_n, bool *ret_chain)
{
    const cJSON *list = get(view, "steps");
    struct step *steps = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *steps);
    const cJSON *s;
    const cJSON *id;
    size_t n = 0;

    if (steps == NULL) {
        return NULL;
    }
    cJSON_ArrayForEach(s, list)
    {
        if (is_done(s)) {
            steps[n++] = (struct step){.id = json_text(s, "stepId", ""), .view = s};
        }
    }
    *ret_chain = true;
    qsort(steps, n, sizeof *steps, compare);
    for (size_t i = 0; i < n; i++) {
        cJSON_ArrayForEach(id, get(steps[i].view, "dependsOn"))
        {
            *ret_chain = false;
            take_up(steps, n, cJSON_IsString(id) ? id->valuestring : "");
        }
    }
    *ret_n = n;
    return steps;
}

static bool is_leaf(const struct step *steps, size_t n, const cJSON *view)
{
    const struct step key = {.id = json_text(view, "stepId", "")};
    const struct step *found = bsearch(&key, steps, n, sizeof *steps, compare);

    return found != NULL && found->view == view && !found->taken_up;
}

/* Appends the whole result of a step. */
static bool add_result(struct cli *cli, const char *plan_id, const char *step_id, struct buf *out)
{
    cJSON *fields = cli_fields("planId", plan_id);
    cJSON *answer = NULL;
    const cJSON *result;
    char *data = NULL;
    bool ok;

    (void)cJSON_AddStringToObject(fields, "stepId", step_id);
    ok = cli_call(cli, "plan.result", fields, &answer) == CLI_OK;
    result = get(answer, "result");
    if (json_text(result, "text", NULL) != NULL) {
        buf_add_cstr(out, json_text(result, "text", ""));
    } else if (ok) {
        data = cjson_print(get(result, "data"), false, NULL);
        buf_add_cstr(out, data != NULL ? data : "");
    }
    cJSON_free(data);
    cJSON_Delete(answer);
    return ok;
}

/* Whether the answer is made of sections, one for each step. */
static bool has_sections(const char *answer, const cJSON *view)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, get(view, "steps"))
    {
        const char *task = json_text(s, "task", "");
        const size_t n = strlen(task);
        if (strncmp(answer, HEAD, strlen(HEAD)) == 0 &&
            strncmp(answer + strlen(HEAD), task, n) == 0 &&
            strncmp(answer + strlen(HEAD) + n, HEAD_END, strlen(HEAD_END)) == 0) {
            return true;
        }
    }
    return false;
}

/* What was not done, and which results are not whole. */
static void add_ending(const char *answer, struct buf *out)
{
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const char *at = strstr(answer, endings[i]);
        const char *last = NULL;
        for (; at != NULL; at = strstr(at + 1, endings[i])) {
            last = at;
        }
        if (last != NULL) {
            buf_add_cstr(out, last);
            return; /* the second one follows the first */
        }
    }
}

static bool add_leaves(struct cli *cli, const char *plan_id, const cJSON *view,
                       const struct step *steps, size_t n, struct buf *out)
{
    const cJSON *s;
    size_t leaves = 0;
    size_t added = 0;
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        leaves += steps[i].taken_up ? 0 : 1;
    }
    if (leaves == n || leaves == 0) {
        return false;
    }
    cJSON_ArrayForEach(s, get(view, "steps"))
    {
        if (!ok || !is_leaf(steps, n, s)) {
            continue;
        }
        buf_add_cstr(out, added++ > 0 ? BETWEEN : "");
        if (leaves > 1) {
            buf_add_cstr(out, HEAD);
            buf_add_cstr(out, json_text(s, "task", ""));
            buf_add_cstr(out, HEAD_END);
        }
        ok = add_result(cli, plan_id, json_text(s, "stepId", ""), out);
    }
    return ok;
}

char *cli_leaf_answer(struct cli *cli, const char *plan_id, const cJSON *result)
{
    const char *answer = json_text(result, "aggregatedResult", "");
    cJSON *view = NULL;
    struct step *steps = NULL;
    struct buf out;
    char *text = NULL;
    bool chain = false;
    size_t n = 0;
    size_t len;

    if (strncmp(answer, HEAD, strlen(HEAD)) != 0 || cli_plan_view(cli, plan_id, &view) != CLI_OK) {
        return NULL;
    }
    buf_init(&out, SIZE_MAX / 2);
    steps = has_sections(answer, view) ? done_steps(view, &n, &chain) : NULL;
    if (steps != NULL && n > 1 && chain && take_up_of_chain(cli, plan_id, steps, n) != CLI_OK) {
        n = 0; /* its error was printed; the answer is whole without */
    }
    if (steps != NULL && add_leaves(cli, plan_id, view, steps, n, &out)) {
        add_ending(answer, &out);
        (void)buf_cstr(&out);
        text = out.bad == BT_OK ? (char *)buf_take(&out, &len) : NULL;
    }
    buf_done(&out);
    free(steps);
    cJSON_Delete(view);
    return text;
}
