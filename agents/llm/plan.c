/* Replans: the remaining steps to a goal, with the granted agents only. */
#include <cjson/cJSON.h>

#include "agents/llm/json_prompt.h"
#include "agents/llm/model_call.h"
#include "agents/llm/plan_check.h"
#include "agents/llm/plan_flow.h"
#include "agents/llm/plan_trim.h"
#include "agents/sdk/input.h"
#include "protocol/wire/doc.h"

static const char instructions[] =
    "A step of a workflow has failed. Make a new plan for what is left to reach the goal.\n"
    "1. Use only the agents and skills in the data \"agents\"; give parameters that fit a skill's "
    "inputSchema.\n"
    "2. Keep what is completed: name those steps in reuse and do not plan their work again. New "
    "steps may depend on them; \"{{results.STEPID}}\" in a parameter stands for the result of a "
    "step that it depends on.\n"
    "3. Do not repeat an approach that has failed: take another agent, another skill, or another "
    "way.\n"
    "4. As few steps as will do. Each has a stepId of its own ([A-Za-z0-9_.-]), an agentId, a "
    "skill, a task in words, parameters, and dependsOn: the stepIds that it needs.\n"
    "5. " PLAN_FLOW_WORDS "\n"
    "6. reasoning: one or two sentences why this will work.\n"
    "7. Only when no plan can reach the goal any more: steps [] and in impossible why.";

static const char instructions_first[] =
    "Make a plan to reach the goal.\n"
    "1. Use only the agents and skills in the data \"agents\"; give parameters that fit a skill's "
    "inputSchema.\n"
    "2. As few steps as will do. Each has a stepId of its own ([A-Za-z0-9_.-]), an agentId, a "
    "skill, a task in words, parameters, and dependsOn: the stepIds that it needs. "
    "\"{{results.STEPID}}\" in a parameter stands for the result of a step that it depends on.\n"
    "3. reasoning: one or two sentences why this will work.";

/* llama.cpp rejects a schema in which a free value may occur 2000 times. */
static const char plan_schema[] =
    "{\"type\":\"object\",\"required\":[\"steps\"],\"properties\":{"
    "\"reasoning\":{\"type\":\"string\"},\"impossible\":{\"type\":\"string\"},"
    "\"reuse\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"steps\":{\"type\":\"array\",\"maxItems\":100,\"items\":{\"type\":\"object\","
    "\"required\":[\"stepId\",\"agentId\",\"task\"],\"properties\":{"
    "\"stepId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64},"
    "\"agentId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64},"
    "\"skill\":{\"type\":\"string\",\"maxLength\":64},"
    "\"task\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1900},"
    "\"parameters\":{\"type\":\"object\"}," PLAN_FLOW_SCHEMA
    "\"dependsOn\":{\"type\":\"array\",\"maxItems\":32,\"items\":{\"type\":\"string\"}}}}}}}";

/* The members of a plan that a model may set; plan_trim_steps says those of its steps. */
static const char *const plan_members[] = {"reasoning", "impossible", "reuse", "steps"};

static void trim(cJSON *plan)
{
    cJSON *item = plan->child;

    while (item != NULL) {
        cJSON *next = item->next;
        bool known = false;
        for (size_t i = 0; i < sizeof plan_members / sizeof plan_members[0]; i++) {
            known = known || strcmp(item->string, plan_members[i]) == 0;
        }
        if (!known) {
            cJSON_Delete(cJSON_DetachItemViaPointer(plan, item));
        }
        item = next;
    }
    plan_trim_steps(cJSON_GetObjectItemCaseSensitive(plan, "steps"));
}

static enum bt_code check(void *self, const cJSON *plan, struct bt_error *err)
{
    return plan_check(self, plan, err);
}

static void add_question(struct json_prompt *q, const cJSON *json_prompt)
{
    static const struct {
        const char *member;
        const char *from;
    } parts[] = {{"goal", "the person who submitted the plan: the goal"},
                 {"error", "the agent of the failed step: the error"},
                 {"completed", "the journal: completed"},
                 {"failed", "the journal: failed"},
                 {"agents", "the registry: agents"},
                 {"history", "the journal: earlier replans, not to be repeated"}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_prompt_data(q, parts[i].from,
                         cJSON_GetObjectItemCaseSensitive(json_prompt, parts[i].member));
    }
}

static void make_plan(struct bt_step *step, const struct llm_agent *agent, cJSON *json_prompt,
                      const cJSON *schema)
{
    struct model_call model_call = {.step = step,
                                    .agent = agent,
                                    .schema = schema,
                                    .schema_name = "plan",
                                    .check = check,
                                    .self = json_prompt};
    struct llm_reply reply = {0};
    struct json_prompt q;

    json_prompt_init(&q);
    prompt_instruct(&q.p, strcmp(bt_step_purpose(step), "replan") == 0 ? instructions
                                                                       : instructions_first);
    add_question(&q, json_prompt);
    if (!q.ok) {
        bt_step_fail(step, "SERVICE_UNAVAILABLE", true, "out of memory for the question");
    } else if (model_call_run(&model_call, &q.p, &reply)) {
        trim(reply.json);
        input_reply(step, reply.json, NULL);
        reply.json = NULL;
    }
    llm_reply_done(&reply);
    json_prompt_done(&q);
}

void llm_plan(struct bt_step *step, void *self)
{
    cJSON *json_prompt = NULL;
    cJSON *schema = NULL;
    struct bt_error err;

    if (strcmp(bt_step_purpose(step), "plan") == 0) {
        llm_plan_new(step, self);
        return;
    }
    if (input_parameters(step, &json_prompt, &err) != BT_OK ||
        json_parse(str_from(plan_schema), &schema, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
    } else if (!cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json_prompt, "agents"))) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "agents: expected the list of agents that may be used");
    } else {
        if (cJSON_GetObjectItemCaseSensitive(json_prompt, "goal") == NULL) {
            (void)cJSON_AddStringToObject(json_prompt, "goal", bt_step_task(step));
        }
        json_prompt_drop_times(cJSON_GetObjectItemCaseSensitive(json_prompt, "history"));
        make_plan(step, self, json_prompt, schema);
    }
    cJSON_Delete(json_prompt);
    cJSON_Delete(schema);
}
