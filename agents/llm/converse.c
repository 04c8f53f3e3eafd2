/*
 * Interprets a message of a person about the running plan, with two model calls.
 * - Which action? Input: the person's words, the plan's steps and their state. No text of an agent
 *   is part of it, so no result can make a step be skipped or approved.
 * - Which answer? Only when the action is none. Input: everything. The output can only be text.
 */
#include <cjson/cJSON.h>

#include "agents/llm/json_prompt.h"
#include "agents/llm/model_call.h"
#include "agents/sdk/input.h"
#include "protocol/wire/doc.h"

static const char order_action[] =
    "A person talks to a workflow engine. Decide what the newest message (the data \"the person: "
    "the message\") asks for, in view of the plan. Choose one action:\n"
    "- new_plan: work is to be done that the plan does not have, or there is no plan. goal: what "
    "is to be reached, in words that stand for themselves.\n"
    "- skip_to_step: the plan is to go on at a later step. targetStepNumber: its number.\n"
    "- skip_steps: single steps are to be left out. stepsToSkip: their numbers.\n"
    "- approve or reject: a plain yes or no to what waits for the person.\n"
    "- stop: the plan is to end. pause: it is to wait. resume: it is to go on.\n"
    "- conversation_only: nothing is to be done: a question about the plan or its results, thanks, "
    "small talk, or a message that is not clear. Somebody else writes the answer.\n"
    "Steps are counted from 1. Members that the action does not need are null. reasoning: one "
    "sentence why.";

static const char order_reply[] =
    "A person talks to a workflow engine. Nothing is to be done but to answer the newest message "
    "(the data \"the person: the message\"): in its language, short, and only from what the data "
    "says. When the data does not say it, say so. When the message is not clear, ask what would "
    "make it so. Do not say that something was done or will be done.";

static const char schema_text[] =
    "{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"reasoning\",\"action\",\"targetStepNumber\",\"stepsToSkip\",\"goal\"],"
    "\"properties\":{\"reasoning\":{\"type\":\"string\"},"
    "\"action\":{\"type\":\"string\",\"enum\":[\"skip_to_step\",\"skip_steps\","
    "\"conversation_only\",\"new_plan\",\"approve\",\"reject\",\"stop\",\"pause\",\"resume\"]},"
    "\"targetStepNumber\":{\"type\":[\"integer\",\"null\"]},"
    "\"stepsToSkip\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"integer\"}},"
    "\"goal\":{\"type\":[\"string\",\"null\"]}}}";

static cJSON *get(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

/* ---- does the action fit the plan ---- */

static bool has_step(const cJSON *steps, double number)
{
    const cJSON *step = NULL;

    cJSON_ArrayForEach(step, steps)
    {
        const cJSON *n = get(step, "number");
        if (cJSON_IsNumber(n) && n->valuedouble == number) {
            return true;
        }
    }
    return false;
}

static enum bt_code check_number(const cJSON *steps, const char *member, const cJSON *number,
                                 struct bt_error *err)
{
    if (!cJSON_IsNumber(number)) {
        return err_set(err, BT_INVALID, "%s: expected the number of a step", member);
    }
    if (!has_step(steps, number->valuedouble)) {
        return err_set(err, BT_INVALID, "%s: the plan has no step %.0f; it has %d steps", member,
                       number->valuedouble, cJSON_GetArraySize(steps));
    }
    return BT_OK;
}

static enum bt_code check_skips(const cJSON *steps, const cJSON *list, struct bt_error *err)
{
    const cJSON *number = NULL;
    enum bt_code code = BT_OK;

    if (!cJSON_IsArray(list) || list->child == NULL) {
        return err_set(err, BT_INVALID, "stepsToSkip: expected the numbers of steps");
    }
    cJSON_ArrayForEach(number, list)
    {
        if (code == BT_OK) {
            code = check_number(steps, "stepsToSkip", number, err);
        }
    }
    return code;
}

static enum bt_code check_text(const cJSON *value, const char *member, struct bt_error *err)
{
    const cJSON *item = get(value, member);

    if (!cJSON_IsString(item) || item->valuestring[0] == 0) {
        return err_set(err, BT_INVALID, "%s: this action needs it", member);
    }
    return BT_OK;
}

static enum bt_code check(void *self, const cJSON *value, struct bt_error *err)
{
    const cJSON *params = self;
    const cJSON *plan = get(params, "plan");
    const cJSON *steps = get(plan, "steps");
    const char *action = get(value, "action")->valuestring;

    if (strcmp(action, "new_plan") == 0) {
        return check_text(value, "goal", err);
    }
    if (strcmp(action, "conversation_only") == 0) {
        return BT_OK;
    }
    if (!cJSON_IsObject(plan)) {
        return err_set(err, BT_INVALID,
                       "action %s: there is no plan; expected new_plan or conversation_only",
                       action);
    }
    if (strcmp(action, "skip_to_step") == 0) {
        return check_number(steps, "targetStepNumber", get(value, "targetStepNumber"), err);
    }
    if (strcmp(action, "skip_steps") == 0) {
        return check_skips(steps, get(value, "stepsToSkip"), err);
    }
    if ((strcmp(action, "approve") == 0 || strcmp(action, "reject") == 0) &&
        cJSON_GetArraySize(get(plan, "waiting")) == 0) {
        return err_set(err, BT_INVALID, "action %s: nothing waits for the person", action);
    }
    return BT_OK;
}

/* ---- the answer ---- */

/* Keeps only the members that the action needs: the reader could act on others. */
static void keep_own(cJSON *value)
{
    static const struct {
        const char *member;
        const char *action; /* NULL: every one */
    } own[] = {{"action", NULL},
               {"reasoning", NULL},
               {"targetStepNumber", "skip_to_step"},
               {"stepsToSkip", "skip_steps"},
               {"goal", "new_plan"}};
    const char *action = get(value, "action")->valuestring;
    cJSON *next;

    for (cJSON *item = value->child; item != NULL; item = next) {
        bool keep = false;
        next = item->next;
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
            keep = keep || (strcmp(item->string, own[i].member) == 0 &&
                            (own[i].action == NULL || strcmp(action, own[i].action) == 0));
        }
        if (!keep) {
            cJSON_Delete(cJSON_DetachItemViaPointer(value, item));
        }
    }
}

static bool is_user(const cJSON *message)
{
    const cJSON *role = get(message, "role");
    return cJSON_IsString(role) && strcmp(role->valuestring, "user") == 0;
}

/* Copies the named members of each item of a list; NULL = out of memory. */
static cJSON *only(const cJSON *list, const char *const *names, size_t n, bool of_user)
{
    cJSON *ret = cJSON_CreateArray();
    const cJSON *item = NULL;
    bool ok = ret != NULL;

    cJSON_ArrayForEach(item, list)
    {
        cJSON *copy = !ok || (of_user && !is_user(item)) ? NULL : cJSON_CreateObject();
        if (copy == NULL) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            const cJSON *member = get(item, names[i]);
            cJSON *own = member == NULL ? NULL : cJSON_Duplicate(member, true);
            if (own != NULL && !cJSON_AddItemToObject(copy, names[i], own)) {
                cJSON_Delete(own);
                ok = false;
            }
        }
        if (!cJSON_AddItemToArray(ret, copy)) {
            cJSON_Delete(copy);
            ok = false;
        }
    }
    return ret;
}

static void add_only(struct json_prompt *q, const char *from, const cJSON *list,
                     const char *const *names, size_t n, bool of_user)
{
    cJSON *part = only(list, names, n, of_user);

    if (part == NULL || part->child != NULL) {
        json_prompt_text(q, from, part == NULL ? NULL : cjson_print(part, false, NULL));
    }
    cJSON_Delete(part);
}

static void add_message(struct json_prompt *q, struct bt_step *step, const cJSON *params)
{
    if (get(params, "text") != NULL) {
        json_prompt_data(q, "the person: the message", get(params, "text"));
    } else {
        prompt_data(&q->p, "the person: the message", bt_step_task(step));
    }
}

/* Nothing here was written by an agent: messages are the person's, steps the plan's. */
static void compose_action(struct json_prompt *q, struct bt_step *step, const cJSON *params)
{
    static const char *const of_message[] = {"role", "text", "content"};
    static const char *const of_step[] = {"number", "stepId", "task", "status"};
    static const char *const of_waiting[] = {"number", "stepId", "kind"};
    const cJSON *plan = get(params, "plan");

    prompt_instruct(&q->p, order_action);
    add_only(q, "the person: earlier messages", get(get(params, "session"), "messages"), of_message,
             3, true);
    if (cJSON_IsObject(plan)) {
        json_prompt_data(q, "the person: the plan's goal", get(plan, "goal"));
        json_prompt_data(q, "the journal: the plan's status", get(plan, "status"));
        if (cJSON_IsTrue(get(plan, "paused"))) {
            prompt_instruct(&q->p, "The plan is paused.");
        }
        add_only(q, "the journal: the plan's steps", get(plan, "steps"), of_step, 4, false);
        add_only(q, "the journal: what waits", get(plan, "waiting"), of_waiting, 3, false);
    } else {
        prompt_instruct(&q->p, "There is no plan.");
    }
    add_message(q, step, params);
}

static void compose_reply(struct json_prompt *q, struct bt_step *step, cJSON *params)
{
    const cJSON *session = get(params, "session");
    const cJSON *plan = get(params, "plan");

    prompt_instruct(&q->p, order_reply);
    json_prompt_drop_times(get(session, "messages"));
    json_prompt_data(q, "the conversation: what was said before, in short",
                     get(session, "summary"));
    json_prompt_data(q, "the conversation: its newest messages", get(session, "messages"));
    json_prompt_data(q, "the journal: the plan", cJSON_IsObject(plan) ? plan : NULL);
    json_prompt_data(q, "the journal: the newest result", get(params, "lastResult"));
    add_message(q, step, params);
}

/* Adds the answer as a member of the action. False: the step has failed. */
static bool add_reply(struct bt_step *step, const struct llm_agent *agent, cJSON *params,
                      cJSON *action)
{
    struct model_call model_call = {.step = step, .agent = agent};
    struct llm_reply reply = {0};
    struct json_prompt q;
    bool ok = false;

    json_prompt_init(&q);
    compose_reply(&q, step, params);
    if (q.ok && model_call_run(&model_call, &q.p, &reply)) {
        ok = q.ok = cJSON_AddStringToObject(action, "reply", buf_cstr(&reply.text)) != NULL;
    }
    if (!q.ok) {
        bt_step_fail(step, "SERVICE_UNAVAILABLE", true, "out of memory for the question");
    }
    llm_reply_done(&reply);
    json_prompt_done(&q);
    return ok;
}

static void converse(struct bt_step *step, const struct llm_agent *agent, cJSON *params,
                     const cJSON *schema)
{
    static const char *const optional[] = {"reasoning", NULL};
    struct model_call model_call = {.step = step,
                                    .agent = agent,
                                    .optional = optional,
                                    .extra = true,
                                    .schema = schema,
                                    .schema_name = "action",
                                    .check = check,
                                    .self = params};
    struct llm_reply reply = {0};
    struct json_prompt q;

    json_prompt_init(&q);
    compose_action(&q, step, params);
    if (!q.ok) {
        bt_step_fail(step, "SERVICE_UNAVAILABLE", true, "out of memory for the question");
    } else if (model_call_run(&model_call, &q.p, &reply)) {
        keep_own(reply.json);
        if (strcmp(get(reply.json, "action")->valuestring, "conversation_only") != 0 ||
            add_reply(step, agent, params, reply.json)) {
            input_reply(step, reply.json, NULL);
            reply.json = NULL;
        }
    }
    llm_reply_done(&reply);
    json_prompt_done(&q);
}

void llm_converse(struct bt_step *step, void *self)
{
    cJSON *params = NULL;
    cJSON *schema = NULL;
    struct bt_error err;

    if (input_parameters(step, &params, &err) != BT_OK ||
        json_parse(str_from(schema_text), &schema, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
    } else if (get(params, "text") == NULL && bt_step_task(step)[0] == 0) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "text: expected the person's message");
    } else {
        converse(step, self, params, schema);
    }
    cJSON_Delete(params);
    cJSON_Delete(schema);
}
