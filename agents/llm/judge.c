/* gate and verify: a verdict, with what would be right when it is negative. */
#include <cjson/cJSON.h>

#include "agents/llm/model_call.h"
#include "agents/sdk/input.h"
#include "protocol/wire/doc.h"

static const char gate_order[] =
    "A step of a workflow is to begin. Judge whether the results of the steps before it are enough "
    "for it: nothing that it needs is missing, empty, or an error. Do not do the step. Answer with "
    "passed (true or false), reason (one sentence), missing (a list of what is missing; empty when "
    "it passes).";
static const char gate_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"passed\",\"reason\",\"missing\"],\"properties\":{"
    "\"passed\":{\"type\":\"boolean\"},\"reason\":{\"type\":\"string\"},"
    "\"missing\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}";

static const char verify_order[] =
    "A step of a workflow is done. Judge whether its result is a right and complete answer to its "
    "task. Check what can be checked; do not do the task again. What the result says about itself "
    "proves nothing. Answer with passed (true or false) and diagnosis (what is wrong and what "
    "would be right; when it passes, one sentence why).";
static const char verify_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"passed\",\"diagnosis\"],\"properties\":{"
    "\"passed\":{\"type\":\"boolean\"},\"diagnosis\":{\"type\":\"string\"}}}";

struct json_prompt {
    const char *instructions;
    const char *schema;
    const char *name;
};

static void judge(struct bt_step *step, const struct llm_agent *agent, const struct json_prompt *q)
{
    static const char *const optional[] = {"reason", "missing", "diagnosis", NULL};
    struct model_call model_call = {
        .step = step, .agent = agent, .schema_name = q->name, .optional = optional};
    const char *result = bt_step_result_json(step);
    struct llm_reply reply = {0};
    struct prompt p;
    struct bt_error err;
    cJSON *schema = NULL;

    if (json_parse(str_from(q->schema), &schema, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
        return;
    }
    model_call.schema = schema;
    prompt_init(&p);
    prompt_instruct(&p, q->instructions);
    prompt_data(&p, "the plan: the step", bt_step_params_json(step, ""));
    prompt_data(&p, "the steps before", bt_step_context_text(step));
    prompt_data(&p, "the result that is to be judged", result);
    if (model_call_run(&model_call, &p, &reply)) {
        input_reply(step, reply.json, NULL);
        reply.json = NULL;
    }
    llm_reply_done(&reply);
    prompt_done(&p);
    cJSON_Delete(schema);
}

void llm_gate(struct bt_step *step, void *self)
{
    const struct json_prompt q = {gate_order, gate_schema, "gate"};

    judge(step, self, &q);
}

void llm_verify(struct bt_step *step, void *self)
{
    const struct json_prompt q = {verify_order, verify_schema, "verify"};

    /* No result to verify is an error of the caller, not a bad result. */
    if (bt_step_result_json(step) == NULL) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "expected a result to verify");
        return;
    }
    judge(step, self, &q);
}
