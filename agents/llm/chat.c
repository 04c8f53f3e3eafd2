/* chat and summarize: text, or data by the step's own schema. */
#include <cjson/cJSON.h>

#include "agents/llm/model_call.h"
#include "agents/sdk/input.h"
#include "agents/sdk/whole.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { WORDS = 200, TOKENS_PER_WORD = 3 };

static void add_feedback(struct bt_step *step, struct prompt *p)
{
    if (bt_step_feedback(step)[0] != 0) {
        prompt_instruct(p, "An earlier answer did not do. What was wrong with it:");
        prompt_data(p, "whoever judged the earlier answer", bt_step_feedback(step));
    }
}

/* The answer's schema; NULL without one. False: the step has failed. */
static bool read_schema(struct bt_step *step, cJSON **ret)
{
    const char *json = bt_step_params_json(step, "schema");
    struct bt_error err;

    *ret = NULL;
    if (json == NULL) {
        return true;
    }
    if (json_parse(str_from(json), ret, &err) != BT_OK) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "schema: %s", err.msg);
        return false;
    }
    return true;
}

/* The answer; marked when the model saw only a part of the data. */
static void reply_text(struct bt_step *step, const struct prompt *p, const struct buf *answer)
{
    struct buf text;

    buf_init(&text, LIMIT_RESULT_BYTES);
    buf_add_str(&text, buf_str(answer));
    if (p->left_out > 0) {
        whole_mark(step, &text,
                   "%zu bytes of the data did not fit the prompt; raise the setting dataBytes, or "
                   "ask about parts",
                   p->left_out);
    }
    bt_step_reply_bytes(step, buf_cstr(&text), text.len);
    buf_done(&text);
}

void llm_chat(struct bt_step *step, void *self)
{
    const char *prompt = bt_step_param_string(step, "prompt", bt_step_task(step));
    const char *input = bt_step_param_string(step, "input", bt_step_params_json(step, "input"));
    struct model_call model_call = {.step = step, .agent = self, .schema_name = "answer"};
    struct llm_reply reply = {0};
    struct prompt p;
    cJSON *schema = NULL;

    if (prompt[0] == 0) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "expected a task, or the parameter prompt");
        return;
    }
    if (!read_schema(step, &schema)) {
        return;
    }
    model_call.schema = schema;
    model_call.max_tokens = (uint64_t)bt_step_param_number(step, "maxTokens", 0);
    prompt_init(&p);
    prompt_instruct(&p, prompt);
    prompt_data(&p, "the input of this step", input);
    if (input == NULL && bt_step_dependency_count(step) > 0) {
        prompt_data(&p, "the results of the steps before", bt_step_context_text(step));
    }
    add_feedback(step, &p);
    if (model_call_run(&model_call, &p, &reply)) {
        if (schema != NULL) {
            input_reply(step, reply.json, NULL);
            reply.json = NULL;
        } else {
            reply_text(step, &p, &reply.text);
        }
        if (p.left_out > 0) {
            bt_step_reply_truncated(step);
        }
    }
    llm_reply_done(&reply);
    prompt_done(&p);
    cJSON_Delete(schema);
}

void llm_summarize(struct bt_step *step, void *self)
{
    bool given = bt_step_has_param(step, "text");
    const char *text = given || bt_step_dependency_count(step) == 1 ? input_text(step, "text")
                                                                    : bt_step_context_text(step);
    const char *focus = bt_step_param_string(step, "focus", "");
    double words = bt_step_param_number(step, "words", WORDS);
    struct model_call model_call = {.step = step, .agent = self};
    struct llm_reply reply = {0};
    struct prompt p;
    struct buf instructions;

    if (text == NULL || text[0] == 0) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "expected the parameter text, or a step before this one");
        return;
    }
    buf_init(&instructions, 8192);
    buf_printf(&instructions,
               "Summarise the data in at most %.0f words, in the language of the data. State only "
               "what the data says; keep figures, names and failures. Begin with the most "
               "important.%s%s",
               words, focus[0] != 0 ? " What matters: " : "", focus);
    prompt_init(&p);
    prompt_instruct(&p, buf_cstr(&instructions));
    prompt_data(&p, given ? "the text to summarise" : "the steps before", text);
    add_feedback(step, &p);
    model_call.max_tokens = (uint64_t)words * TOKENS_PER_WORD + 1000; /* reasoning counts too */
    if (model_call_run(&model_call, &p, &reply)) {
        reply_text(step, &p, &reply.text);
    }
    llm_reply_done(&reply);
    prompt_done(&p);
    buf_done(&instructions);
}
