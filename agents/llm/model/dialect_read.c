/* Reads answers from bodies and chunks: one function per dialect. Skips unknown members. */
#include "agents/llm/model/dialect_internal.h"

struct finish_name {
    const char *name;
    enum llm_finish finish;
};

static const struct finish_name finishes[] = {
    {"stop", LLM_FINISH_STOP},
    {"end_turn", LLM_FINISH_STOP},
    {"stop_sequence", LLM_FINISH_STOP},
    {"length", LLM_FINISH_LENGTH},
    {"max_tokens", LLM_FINISH_LENGTH},
    {"model_context_window_exceeded", LLM_FINISH_LENGTH},
    {"content_filter", LLM_FINISH_REFUSAL},
    {"refusal", LLM_FINISH_REFUSAL},
    {"tool_calls", LLM_FINISH_TOOLS},
    {"function_call", LLM_FINISH_TOOLS},
    {"tool_use", LLM_FINISH_TOOLS},
};

static void read_finish(struct dialect_answer *a, struct str name)
{
    for (size_t i = 0; i < sizeof finishes / sizeof finishes[0]; i++) {
        if (str_is(name, finishes[i].name)) {
            a->finish = finishes[i].finish;
        }
    }
}

/* ---- OpenAI ---- */

static void openai_usage(struct dialect_answer *a, struct doc usage)
{
    uint64_t input = 0;
    uint64_t output = 0;

    if (usage.ptr == NULL || !member_tokens(usage, "prompt_tokens", &input) ||
        !member_tokens(usage, "completion_tokens", &output)) {
        return;
    }
    a->usage = (struct llm_usage){.input = input, .output = output, .known = true};
    (void)member_tokens(usage, "prompt_tokens_details.cached_tokens", &a->usage.cached);
}

/* The choice with the index 0, wherever it stands in the list. Some servers leave the index out. */
static struct doc first_choice(struct doc value)
{
    const struct doc choices = doc_get(value, STR_LIT("choices"));
    struct doc_cursor at;
    struct doc_head list;

    if (choices.ptr == NULL || doc_head(choices).kind != DOC_ARRAY) {
        return (struct doc){NULL, 0};
    }
    at = doc_cursor(choices);
    (void)doc_next(&at, &list);
    for (uint32_t i = 0; i < list.n; i++) {
        const struct doc choice = doc_skip(&at);
        uint64_t index = 0;
        if (!member_tokens(choice, "index", &index) || index == 0) {
            return choice;
        }
    }
    return (struct doc){NULL, 0};
}

void openai_read(struct dialect_answer *a, struct doc value, bool chunk)
{
    struct doc choice = first_choice(value);
    struct doc message = choice.ptr == NULL
                             ? choice
                             : doc_get(choice, chunk ? STR_LIT("delta") : STR_LIT("message"));
    struct doc call;

    copy_name(a->model, member_text(value, "model"));
    openai_usage(a, doc_get(value, STR_LIT("usage")));
    if (choice.ptr == NULL) {
        return;
    }
    read_finish(a, member_text(choice, "finish_reason"));
    if (message.ptr != NULL) {
        buf_add_str(&a->text, member_text(message, "content"));
        buf_add_str(&a->refusal, member_text(message, "refusal"));
        call = doc_path(message, STR_LIT("tool_calls.0"));
        if (call.ptr != NULL) {
            uint64_t index = 0;
            bool first = !member_tokens(call, "index", &index) || index == 0;
            if (first) {
                add_tool(a, doc_path(call, STR_LIT("function.arguments")));
            }
        }
    }
    if (!chunk) {
        a->done = true;
    }
}

/* ---- Anthropic ---- */

static void anthropic_usage(struct dialect_answer *a, struct doc usage)
{
    uint64_t n = 0;
    uint64_t made = 0;

    if (usage.ptr == NULL) {
        return;
    }
    if (member_tokens(usage, "input_tokens", &n)) {
        /* Its input_tokens exclude tokens read from or written to the cache. */
        a->usage.input = n;
        if (member_tokens(usage, "cache_read_input_tokens", &n)) {
            a->usage.cached = n;
            a->usage.input += n;
        }
        if (member_tokens(usage, "cache_creation_input_tokens", &made)) {
            a->usage.input += made;
        }
    }
    if (member_tokens(usage, "output_tokens", &n)) {
        a->usage.output = n;
        a->usage.known = true;
    }
}

static void anthropic_block(struct dialect_answer *a, struct doc block)
{
    struct str type = member_text(block, "type");

    if (str_is(type, "text")) {
        buf_add_str(&a->text, member_text(block, "text"));
    } else if (str_is(type, "tool_use")) {
        add_tool(a, doc_get(block, STR_LIT("input")));
    }
}

static void anthropic_message(struct dialect_answer *a, struct doc message)
{
    struct doc content = doc_get(message, STR_LIT("content"));
    struct doc_cursor blocks;
    struct doc_head list;

    copy_name(a->model, member_text(message, "model"));
    anthropic_usage(a, doc_get(message, STR_LIT("usage")));
    read_finish(a, member_text(message, "stop_reason"));
    if (content.ptr == NULL || doc_head(content).kind != DOC_ARRAY) {
        return;
    }
    blocks = doc_cursor(content);
    (void)doc_next(&blocks, &list);
    for (uint32_t i = 0; i < list.n; i++) {
        anthropic_block(a, doc_skip(&blocks));
    }
}

static void anthropic_chunk(struct dialect_answer *a, struct doc value, struct str type)
{
    struct doc delta = doc_get(value, STR_LIT("delta"));

    if (str_is(type, "message_start")) {
        struct doc message = doc_get(value, STR_LIT("message"));
        if (message.ptr != NULL) {
            anthropic_message(a, message);
        }
    } else if (str_is(type, "content_block_start")) {
        struct doc block = doc_get(value, STR_LIT("content_block"));
        if (block.ptr != NULL && str_is(member_text(block, "type"), "tool_use")) {
            a->tool_called = true; /* its input arrives in pieces */
        }
    } else if (str_is(type, "content_block_delta") && delta.ptr != NULL) {
        buf_add_str(&a->text, member_text(delta, "text"));
        buf_add_str(&a->tool, member_text(delta, "partial_json"));
    } else if (str_is(type, "message_delta")) {
        anthropic_usage(a, doc_get(value, STR_LIT("usage")));
        if (delta.ptr != NULL) {
            read_finish(a, member_text(delta, "stop_reason"));
        }
    } else if (str_is(type, "message_stop")) {
        a->done = true;
    }
}

void anthropic_read(struct dialect_answer *a, struct doc value, bool chunk)
{
    if (chunk) {
        anthropic_chunk(a, value, member_text(value, "type"));
    } else {
        anthropic_message(a, value);
        a->done = true;
    }
}

/* ---- Ollama ---- */

/* A whole body has the form of the last line of a stream. */
void ollama_read(struct dialect_answer *a, struct doc value)
{
    struct doc message = doc_get(value, STR_LIT("message"));
    struct doc done = doc_get(value, STR_LIT("done"));
    struct doc call;

    copy_name(a->model, member_text(value, "model"));
    if (message.ptr != NULL) {
        buf_add_str(&a->text, member_text(message, "content"));
        call = doc_path(message, STR_LIT("tool_calls.0.function.arguments"));
        if (call.ptr != NULL) {
            add_tool(a, call);
        }
    }
    if (done.ptr == NULL || doc_head(done).kind != DOC_BOOL || !doc_head(done).b) {
        return;
    }
    a->done = true;
    a->finish = LLM_FINISH_STOP;
    read_finish(a, member_text(value, "done_reason"));
    if (member_tokens(value, "eval_count", &a->usage.output)) {
        a->usage.known = true;
        (void)member_tokens(value, "prompt_eval_count", &a->usage.input);
    }
}
