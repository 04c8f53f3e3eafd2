#include "agents/llm/plan_trim.h"

#include <stdbool.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { DEPTH_MAX = 4, GROUPS_MAX = 8, NAMES_MAX = 64, PLAIN_MAX = 16 };

struct names {
    const char *at[NAMES_MAX];
};

static const struct names of_plan = {{
    "steps",
    "impossible",
    "tasks",
    "workflow",
    "phases",
    "plan",
    "name",
    "title",
    "description",
    "successCriteria",
    "success_criteria",
    "estimatedTokens",
    "estimated_tokens",
    "estimatedSteps",
    "estimated_steps",
    "estimatedTotalTime",
    "estimated_total_time",
    "reasoning",
}};
static const struct names of_phase = {{
    "steps",
    "tasks",
    "phase",
    "id",
    "name",
    "description",
    "dependsOn",
    "depends_on",
    "requires",
    "after",
    "dependencies",
}};
/* What one agent is asked to do, by a step or by what undoes it. */
static const struct names of_work = {{
    "agentId",
    "agent_id",
    "agent",
    "worker",
    "assigned_to",
    "skill",
    "tool",
    "task",
    "input",
    "query",
    "prompt",
    "action",
    "description",
    "parameters",
    "params",
    "args",
}};
static const struct names of_step = {{
    "stepId",     "id",       "step_id",        "name",          "dependsOn", "depends_on",
    "requires",   "after",    "dependencies",   "reasoning",     "when",      "if",
    "condition",  "onlyIf",   "runIf",          "run_if",        "switch",    "forEach",
    "as",         "maxItems", "maxConcurrency", "onItemFailure", "steps",     "repeat",
    "compensate", "wait",
}};
static const struct names of_branch = {{"when", "else", "steps"}};
/* Control flow by other names, in lower case without - and _. The supervisor refuses each of them
 * and says what there is instead; without them the step would run as if it had none. */
static const struct names of_refused = {{
    "foreach",    "for",      "each",    "map",      "mapover",    "withitems",   "loop",
    "loops",      "loopover", "while",   "dowhile",  "until",      "repeatuntil", "iterate",
    "iterations", "times",    "matrix",  "unless",   "conditions", "conditional", "skipif",
    "skipwhen",   "onlywhen", "case",    "cases",    "choice",     "choose",      "branch",
    "branches",   "then",     "else",    "elseif",   "elif",       "otherwise",   "waitfor",
    "waituntil",  "waitms",   "delay",   "delayms",  "sleep",      "sleepms",     "goto",
    "try",        "catch",    "finally", "rollback", "subplan",
}};

static bool is_one_of(const struct names *names, const char *name)
{
    for (size_t i = 0; i < NAMES_MAX && names->at[i] != NULL; i++) {
        if (strcmp(names->at[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* An empty skill, or null, is a model's way to omit it. */
static bool is_empty_skill(const cJSON *item)
{
    return cJSON_IsNull(item) || (strcmp(item->string, "skill") == 0 && cJSON_IsString(item) &&
                                  item->valuestring[0] == 0);
}

/* Writes the name as the list of refused words has it; what is longer than all of them is none. */
static bool is_refused(const char *name)
{
    char plain[PLAIN_MAX];
    size_t n = 0;

    for (; *name != 0; name++) {
        if (n + 1 == sizeof plain) {
            return false;
        }
        if (*name != '-' && *name != '_') {
            plain[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name + ('a' - 'A') : *name);
        }
    }
    plain[n] = 0;
    return is_one_of(&of_refused, plain);
}

static void keep_only(cJSON *map, const struct names *names)
{
    cJSON *item = map->child;

    while (item != NULL) {
        cJSON *next = item->next;
        const bool of_a_step =
            names == &of_step && (is_one_of(&of_work, item->string) || is_refused(item->string));
        const bool kept = of_a_step || is_one_of(names, item->string);
        if (!kept || is_empty_skill(item)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(map, item));
        }
        item = next;
    }
}

static void trim_list(cJSON *steps, unsigned depth);

/* The steps of an item, a round or a branch, and what undoes the step. A group that is deeper than
 * the supervisor would read is removed: its step has nothing to do then, which is an error. */
static void trim_inside(cJSON *step, unsigned depth)
{
    cJSON *compensate = cJSON_GetObjectItemCaseSensitive(step, "compensate");
    cJSON *branch = NULL;

    if (cJSON_IsObject(compensate)) {
        keep_only(compensate, &of_work);
    }
    if (depth == GROUPS_MAX) {
        cJSON_DeleteItemFromObjectCaseSensitive(step, "steps");
        cJSON_DeleteItemFromObjectCaseSensitive(step, "switch");
    }
    trim_list(cJSON_GetObjectItemCaseSensitive(step, "steps"), depth + 1);
    cJSON_ArrayForEach(branch, cJSON_GetObjectItemCaseSensitive(step, "switch"))
    {
        if (cJSON_IsObject(branch)) {
            keep_only(branch, &of_branch);
            trim_list(cJSON_GetObjectItemCaseSensitive(branch, "steps"), depth + 1);
        }
    }
}

static void trim_list(cJSON *steps, unsigned depth)
{
    cJSON *step = NULL;

    cJSON_ArrayForEach(step, steps)
    {
        if (cJSON_IsObject(step)) {
            keep_only(step, &of_step);
            trim_inside(step, depth);
        }
    }
}

static void trim_steps(cJSON *map)
{
    static const char *const lists[] = {"steps", "tasks", "workflow"};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        trim_list(cJSON_GetObjectItemCaseSensitive(map, lists[i]), 0);
    }
}

void plan_trim_steps(cJSON *steps)
{
    trim_list(steps, 0);
}

void plan_trim(cJSON *plan)
{
    unsigned depth = 0;

    while (cJSON_IsObject(plan) && depth++ < DEPTH_MAX) {
        cJSON *phase = NULL;
        keep_only(plan, &of_plan);
        trim_steps(plan);
        cJSON_ArrayForEach(phase, cJSON_GetObjectItemCaseSensitive(plan, "phases"))
        {
            if (cJSON_IsObject(phase)) {
                keep_only(phase, &of_phase);
                trim_steps(phase);
            }
        }
        if (depth == DEPTH_MAX) {
            cJSON_DeleteItemFromObjectCaseSensitive(plan, "plan");
        }
        plan = cJSON_GetObjectItemCaseSensitive(plan, "plan");
    }
    trim_list(plan, 0); /* a list of steps, at the top or as "plan" */
}
