#include "agents/llm/plan_trim.h"

#include <stdbool.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { DEPTH_MAX = 4, NAMES_MAX = 32 };

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
static const struct names of_step = {{
    "stepId",       "id",        "step_id",     "name",       "agentId",     "agent_id",
    "agent",        "worker",    "assigned_to", "skill",      "tool",        "task",
    "input",        "query",     "prompt",      "action",     "description", "parameters",
    "params",       "args",      "dependsOn",   "depends_on", "requires",    "after",
    "dependencies", "reasoning", "when",
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

static void keep_only(cJSON *map, const struct names *names)
{
    cJSON *item = map->child;

    while (item != NULL) {
        cJSON *next = item->next;
        if (!is_one_of(names, item->string) || is_empty_skill(item)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(map, item));
        }
        item = next;
    }
}

static void trim_list(cJSON *steps)
{
    cJSON *step = NULL;

    cJSON_ArrayForEach(step, steps)
    {
        if (cJSON_IsObject(step)) {
            keep_only(step, &of_step);
        }
    }
}

static void trim_steps(cJSON *map)
{
    static const char *const lists[] = {"steps", "tasks", "workflow"};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        trim_list(cJSON_GetObjectItemCaseSensitive(map, lists[i]));
    }
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
    trim_list(plan); /* a list of steps, at the top or as "plan" */
}
