/* New plans: one answer, passed on unchanged. The supervisor's plan check finds its problems and
 * sends them with the next question, which is the one repair. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "agents/llm/json_prompt.h"
#include "agents/llm/model_call.h"
#include "agents/llm/plan_flow.h"
#include "agents/llm/plan_trim.h"
#include "agents/sdk/input.h"
#include "protocol/wire/doc.h"

enum { STEPS_MAX = 100, ENUM_MAX = 64 };

static const char instructions[] =
    "Make a plan that reaches the goal.\n"
    "1. Use only the agents in the data \"agents\", each only with its own skills. Give parameters "
    "that fit a skill's inputSchema, and only those that it knows.\n"
    "2. Keep to the constraints, if there are any.\n"
    "3. As few steps as will do. Each has a stepId of its own ([A-Za-z0-9_.-], at most 64 "
    "characters), an agentId, a skill, a task in words that says all that the agent must know, "
    "parameters, and dependsOn: the stepIds whose results it needs. Steps that do not depend on "
    "each other run at the same time. No step may depend on itself, also not by way of others.\n"
    "4. " PLAN_FLOW_WORDS "\n"
    "5. \"{{results.STEPID}}\" in a task or a parameter stands for the result of a step that it "
    "depends on, \"{{results.STEPID.member}}\" for a member of it. Agents see nothing of the goal "
    "but their task.\n"
    "6. description: one sentence what the plan does. successCriteria: how one can tell that the "
    "goal is reached. estimatedTokens: about how many tokens all steps will use together. "
    "reasoning: one or two sentences why this will work.\n"
    "7. When the goal cannot be reached with these agents, plan what can be done, and say in "
    "reasoning what is missing. Only when nothing can be done at all: steps [] and in impossible "
    "why.";

/* llama.cpp rejects a schema in which a free value may occur 2000 times. Parameters differ per
 * skill, so the schema is not strict. Strict would mean JSON within a text, which models write less
 * reliably. */
static const char schema_text[] =
    "{\"type\":\"object\",\"required\":[\"steps\"],\"properties\":{"
    "\"reasoning\":{\"type\":\"string\"},\"impossible\":{\"type\":\"string\"},\"description\":{"
    "\"type\":\"string\"},"
    "\"successCriteria\":{\"type\":\"string\"},\"estimatedTokens\":{\"type\":\"integer\"},"
    "\"steps\":{\"type\":\"array\",\"maxItems\":100,\"items\":{\"type\":\"object\","
    "\"required\":[\"stepId\",\"agentId\",\"skill\",\"task\",\"dependsOn\"],\"properties\":{"
    "\"stepId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64},"
    "\"agentId\":{\"type\":\"string\"},"
    "\"skill\":{\"type\":\"string\",\"maxLength\":64},"
    "\"task\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1900},"
    "\"parameters\":{\"type\":\"object\"}," PLAN_FLOW_SCHEMA
    "\"dependsOn\":{\"type\":\"array\",\"maxItems\":32,\"items\":{\"type\":\"string\"}}}}}}}";

static cJSON *get(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

/* ---- the schema ---- */

static bool name_agents(cJSON *schema, const cJSON *agents)
{
    cJSON *items = get(get(get(schema, "properties"), "steps"), "items");
    cJSON *agent_id = get(get(items, "properties"), "agentId");
    const cJSON *agent = NULL;
    cJSON *list;

    if (cJSON_GetArraySize(agents) > ENUM_MAX) {
        return true; /* the list would be longer than the plan */
    }
    list = cJSON_AddArrayToObject(agent_id, "enum");
    cJSON_ArrayForEach(agent, agents)
    {
        const cJSON *id = get(agent, "agentId");
        cJSON *copy = cJSON_IsString(id) ? cJSON_CreateString(id->valuestring) : NULL;
        if (copy != NULL && !cJSON_AddItemToArray(list, copy)) {
            cJSON_Delete(copy);
        }
    }
    if (list != NULL && list->child == NULL) {
        cJSON_DeleteItemFromObjectCaseSensitive(agent_id, "enum");
    }
    return list != NULL;
}

static bool limit_steps(cJSON *schema, unsigned max)
{
    cJSON *n = cJSON_CreateNumber(max);

    if (n == NULL || !cJSON_ReplaceItemInObjectCaseSensitive(
                         get(get(schema, "properties"), "steps"), "maxItems", n)) {
        cJSON_Delete(n);
        return false;
    }
    return true;
}

/* ---- the prompt ---- */

/* Cards have any length: drops the least informative members first. */
static char *print_agents(cJSON *agents, size_t room)
{
    static const char *const less[] = {"outputSchema", "examples", "tags", "inputSchema"};
    char *text = cJSON_PrintUnformatted(agents);

    for (size_t i = 0; text != NULL && strlen(text) > room && i < sizeof less / sizeof less[0];
         i++) {
        cJSON *agent = NULL;
        cJSON_ArrayForEach(agent, agents)
        {
            cJSON *skill = NULL;
            cJSON_ArrayForEach(skill, get(agent, "skills"))
            {
                cJSON_DeleteItemFromObjectCaseSensitive(skill, less[i]);
            }
        }
        cJSON_free(text);
        text = cJSON_PrintUnformatted(agents);
    }
    return text;
}

/* A plan must not use skills that only the supervisor requests. */
static void drop_supervisor_skills(cJSON *agents)
{
    cJSON *agent = NULL;

    cJSON_ArrayForEach(agent, agents)
    {
        cJSON *skill = get(agent, "skills") == NULL ? NULL : get(agent, "skills")->child;
        while (skill != NULL) {
            cJSON *next = skill->next;
            const cJSON *tag = NULL;
            bool asked = false;
            cJSON_ArrayForEach(tag, get(skill, "tags"))
            {
                asked = asked ||
                        (cJSON_IsString(tag) && strcmp(tag->valuestring, LLM_SUPERVISOR_TAG) == 0);
            }
            if (asked) {
                cJSON_Delete(cJSON_DetachItemViaPointer(get(agent, "skills"), skill));
            }
            skill = next;
        }
    }
}

static void compose(struct json_prompt *q, struct bt_step *step, const struct llm_agent *agent,
                    const cJSON *params, const char *limit)
{
    const cJSON *goal = get(params, "goal");
    const cJSON *session = get(params, "session");

    prompt_instruct(&q->p, instructions);
    prompt_instruct(&q->p, limit);
    drop_supervisor_skills(get(params, "agents"));
    json_prompt_text(q, "the registry: agents",
                     print_agents(get(params, "agents"), agent->data_bytes / 4 * 3));
    json_prompt_drop_times(get(session, "messages"));
    json_prompt_data(q, "the conversation: what was said before, in short",
                     get(session, "summary"));
    json_prompt_data(q, "the conversation: its newest messages", get(session, "messages"));
    if (goal != NULL) {
        json_prompt_data(q, "the person who asks: the goal", goal);
    } else {
        prompt_data(&q->p, "the person who asks: the goal", bt_step_task(step));
    }
    json_prompt_data(q, "the person who asks: constraints", get(params, "constraints"));
    if (get(params, "problems") != NULL || get(params, "previous") != NULL) {
        prompt_instruct(&q->p,
                        "An earlier plan was refused. Answer with the whole plan anew, with all "
                        "that is wrong with it put right:");
        json_prompt_data(q, "a model: the earlier plan", get(params, "previous"));
        json_prompt_data(q, "the plan check: what is wrong with it", get(params, "problems"));
    } else if (bt_step_feedback(step)[0] != 0) {
        prompt_instruct(&q->p, "An earlier plan was refused. What is wrong with it:");
        prompt_data(&q->p, "the plan check: what is wrong with it", bt_step_feedback(step));
    }
}

static void answer(struct bt_step *step, struct llm_reply *reply)
{
    if (reply->json == NULL) {
        bt_step_reply_bytes(step, buf_cstr(&reply->text), reply->text.len);
        return;
    }
    plan_trim(reply->json);
    input_reply(step, reply->json, NULL);
    reply->json = NULL;
}

static void ask_plan(struct bt_step *step, const struct llm_agent *agent, cJSON *params,
                     cJSON *schema)
{
    double most = bt_step_param_number(step, "limits.maxSteps", STEPS_MAX);
    unsigned max = most >= 1 && most < STEPS_MAX ? (unsigned)most : STEPS_MAX;
    struct model_call model_call = {
        .step = step, .agent = agent, .schema = schema, .schema_name = "plan", .as_is = true};
    struct json_prompt q;
    struct llm_reply reply = {0};
    char limit[48];

    (void)snprintf(limit, sizeof limit, "At most %u steps.", max);
    json_prompt_init(&q);
    compose(&q, step, agent, params, limit);
    if (!q.ok || !name_agents(schema, get(params, "agents")) || !limit_steps(schema, max)) {
        bt_step_fail(step, "SERVICE_UNAVAILABLE", true, "out of memory for the question");
    } else if (model_call_run(&model_call, &q.p, &reply)) {
        answer(step, &reply);
    }
    llm_reply_done(&reply);
    json_prompt_done(&q);
}

void llm_plan_new(struct bt_step *step, const struct llm_agent *agent)
{
    cJSON *params = NULL;
    cJSON *schema = NULL;
    struct bt_error err;

    if (input_parameters(step, &params, &err) != BT_OK ||
        json_parse(str_from(schema_text), &schema, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
    } else if (cJSON_GetArraySize(get(params, "agents")) == 0) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "agents: expected the list of agents that may be used");
    } else if (get(params, "goal") == NULL && bt_step_task(step)[0] == 0) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "goal: expected what is to be reached");
    } else {
        ask_plan(step, agent, params, schema);
    }
    cJSON_Delete(params);
    cJSON_Delete(schema);
}
