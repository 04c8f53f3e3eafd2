/* agents try: one skill of one agent, without a plan file. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "protocol/wire/doc.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/verbs/agents/skill.h"
#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/submit.h"

#define STEP "try"

/* The plan: one step, one attempt, so that an error is the agent's own. */
static cJSON *plan_of(const char *agent, const char *skill, const char *task, cJSON *parameters)
{
    cJSON *plan = cJSON_CreateObject();
    cJSON *policy = cJSON_AddObjectToObject(plan, "policy");
    cJSON *steps = cJSON_AddArrayToObject(plan, "steps");
    cJSON *step = cJSON_CreateObject();
    char goal[200];

    (void)snprintf(goal, sizeof goal, "Try the skill %s of the agent %s", skill, agent);
    (void)cJSON_AddStringToObject(plan, "goal", goal);
    (void)cJSON_AddNumberToObject(policy, "maxRetries", 0);
    (void)cJSON_AddStringToObject(step, "stepId", STEP);
    (void)cJSON_AddStringToObject(step, "agentId", agent);
    (void)cJSON_AddStringToObject(step, "skill", skill);
    (void)cJSON_AddStringToObject(step, "task", task != NULL ? task : goal);
    (void)cJSON_AddItemToObject(step, "parameters", parameters);
    (void)cJSON_AddItemToArray(steps, step);
    return plan;
}

static enum cli_exit run_plan(struct cli *cli, const cJSON *plan)
{
    char plan_id[BT_ID_LEN + 1] = "";
    struct bt_error err;
    char *json = cjson_print(plan, false, &err);
    const struct submitting what = {.plan = json, .quiet = true};
    const struct follow f = {.plan_id = plan_id, .result_step = STEP, .quiet = true};
    enum cli_exit code;

    if (json == NULL) {
        return cli_fail(&err);
    }
    follow_catch_interrupts();
    code = cli_submit(cli, &what, plan_id);
    cJSON_free(json);
    return code == CLI_OK ? follow_plan(cli, &f) : code;
}

enum cli_exit agents_try(struct cli *cli, const char *agent, const char *skill)
{
    const char *task = cli_value(cli, "task");
    cJSON *parameters = cJSON_CreateObject();
    cJSON *answer = NULL;
    cJSON *plan = NULL;
    const cJSON *found = NULL;
    enum cli_exit code = task != NULL && !cli_is_text(task, "--task") ? CLI_USAGE : CLI_OK;

    code = code == CLI_OK ? skill_find(cli, agent, skill, &answer, &found) : code;
    if (code == CLI_OK &&
        !cli_read_pairs(cli, "param", cJSON_GetObjectItemCaseSensitive(found, "inputSchema"),
                        parameters)) {
        code = CLI_USAGE;
    }
    if (code == CLI_OK) {
        plan = plan_of(agent, json_text(found, "id", ""), task, parameters);
        parameters = NULL;
        code = run_plan(cli, plan);
    }
    cJSON_Delete(parameters);
    cJSON_Delete(plan);
    cJSON_Delete(answer);
    return code;
}
