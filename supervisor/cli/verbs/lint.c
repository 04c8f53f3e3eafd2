#include "supervisor/cli/verbs/lint.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/table.h"

enum { ID_MAX = 65, TASK_SHOWN = 64 };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool among(const cJSON *names, const char *name)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, names)
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

/* From 1 on; 0 = in no level. */
static int level_of(const cJSON *levels, const char *step_id)
{
    const cJSON *level;
    int n = 0;

    cJSON_ArrayForEach(level, levels)
    {
        n++;
        if (among(get(level, "steps"), step_id)) {
            return n;
        }
    }
    return 0;
}

/* The step's own number, else the plan's. */
static double policy_number(const cJSON *step, const cJSON *policy, const char *own,
                            const char *common)
{
    return json_number(get(step, own) != NULL ? step : policy,
                       get(step, own) != NULL ? own : common);
}

/* How long an attempt, or a wait, may take. */
static void print_each(const cJSON *step, const cJSON *policy, char *ret, size_t cap)
{
    const cJSON *wait = get(step, "wait");
    const double ms = wait != NULL ? json_number(wait, "forMs") + json_number(wait, "timeoutMs")
                                   : policy_number(step, policy, "timeoutMs", "stepTimeoutMs");

    if (ms > 0) {
        cli_format_ms(ms, ret, cap);
    } else {
        (void)snprintf(ret, cap, "%s", get(step, "child") != NULL ? "see inside" : "no limit");
    }
}

static void print_steps(const cJSON *answer)
{
    static const char *const heads[] = {"level", "step", "",      "agent", "skill", ">tries",
                                        ">each", "with", "after", "task",  NULL};
    const cJSON *plan = get(answer, "plan");
    const cJSON *policy = get(plan, "policy");
    struct table *t = table_new(heads);
    char task[TASK_SHOWN];
    const cJSON *step;
    const cJSON *dep;

    cJSON_ArrayForEach(step, get(plan, "steps"))
    {
        const char *id = json_text(step, "stepId", "");
        int level = level_of(get(answer, "levels"), id);
        char at[12];
        char with[128] = "";
        char after[512] = "";
        char ms[24];
        if (cJSON_IsTrue(get(step, "superseded"))) {
            continue;
        }
        print_each(step, policy, ms, sizeof ms);
        (void)snprintf(with, sizeof with, "%s%s%s%s",
                       cJSON_IsTrue(get(step, "requiresApproval")) ? "approval " : "",
                       get(step, "gate") != NULL ? "gate " : "",
                       get(step, "verify") != NULL || get(step, "verifyWith") != NULL ? "verify "
                                                                                      : "",
                       strcmp(json_text(step, "type", ""), "human_review") == 0 ? "a person" : "");
        cJSON_ArrayForEach(dep, get(step, "dependsOn"))
        {
            size_t len = strlen(after);
            (void)snprintf(after + len, sizeof after - len, "%s%s", len > 0 ? ", " : "",
                           cJSON_IsString(dep) ? dep->valuestring : "");
        }
        (void)snprintf(at, sizeof at, "%d", level);
        table_cell(t, "%s", level > 0 ? at : "");
        table_cell(t, "%s", id);
        table_cell(t, "%s", among(get(answer, "criticalPath"), id) ? "*" : "");
        table_cell(t, "%s", json_text(step, "agentId", ""));
        table_cell(t, "%s", json_text(step, "skill", ""));
        if (get(step, "wait") != NULL) {
            table_cell(t, "%s", "");
        } else {
            table_cell(t, "%.0f", policy_number(step, policy, "maxRetries", "maxRetries") + 1);
        }
        table_cell(t, "%s", ms);
        table_cell(t, "%s", with);
        table_cell(t, "%s", after);
        cli_cut_line(task, sizeof task, json_text(step, "task", ""));
        table_cell(t, "%s", task);
    }
    table_show(t);
}

static void print_worst(const cJSON *answer)
{
    double ms = json_number(answer, "worstCaseMs");
    char text[24];

    cli_format_ms(ms, text, sizeof text);
    (void)printf("worst case  %s", ms > 0 ? text : "no bound on its time");
    if (json_number(answer, "worstCaseUndoMs") > 0) {
        cli_format_ms(json_number(answer, "worstCaseUndoMs"), text, sizeof text);
        (void)printf(", then %s to undo it", text);
    }
    if (get(answer, "worstCaseTokens") == NULL) {
        (void)puts(", tokens and cost not estimated");
        return;
    }
    cli_format_micros(json_number(answer, "worstCaseCostMicros"), text, sizeof text);
    (void)printf(", %.0f tokens, cost %s\n", json_number(answer, "worstCaseTokens"), text);
}

static void print_path(const cJSON *path)
{
    const cJSON *v;

    if (cJSON_GetArraySize(path) == 0) {
        return;
    }
    (void)printf("critical   ");
    cJSON_ArrayForEach(v, path)
    {
        char id[ID_MAX];
        cli_one_line(id, sizeof id, cJSON_IsString(v) ? v->valuestring : "");
        (void)printf("%s %s", v == path->child ? "" : " →", id);
    }
    (void)fputc('\n', stdout);
}

void lint_print(const cJSON *answer)
{
    const cJSON *p;
    int errors = 0;
    int warnings = 0;

    cJSON_ArrayForEach(p, get(answer, "problems"))
    {
        bool warning = strcmp(json_text(p, "severity", "error"), "warning") == 0;
        warnings += warning;
        errors += !warning;
    }
    if (get(answer, "plan") != NULL) {
        print_steps(answer);
        (void)fputc('\n', stdout);
    }
    if (cJSON_IsTrue(get(answer, "valid"))) {
        if (cJSON_GetArraySize(get(answer, "levels")) > 0) {
            (void)printf("levels      %d\n", cJSON_GetArraySize(get(answer, "levels")));
        }
        print_worst(answer);
        print_path(get(answer, "criticalPath"));
    }
    (void)printf("problems    %d error%s, %d warning%s\n", errors, errors == 1 ? "" : "s", warnings,
                 warnings == 1 ? "" : "s");
}
