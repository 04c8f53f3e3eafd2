/* One question of a handler: within the step's time and the plan's budget, its cost told, its
 * failure turned into the step's. */
#ifndef LLM_AGENT_MODEL_CALL_H
#define LLM_AGENT_MODEL_CALL_H

#include "agents/llm/llm_agent.h"
#include "agents/llm/prompt.h"

struct model_call {
    struct bt_step *step;
    const struct llm_agent *agent;
    const struct cJSON *schema; /* NULL = text */
    const char *schema_name;
    const char *const *optional; /* members that an answer may lack (llm.h); or NULL */
    bool as_is;          /* the schema is only asked for: reply.json may not fit, or be NULL */
    uint64_t max_tokens; /* 0 = the agent's */
    /* The answer while it comes (llm.h), on the handler's thread; then beats say nothing, since
     * progress is the answer's. on_wait: every few milliseconds between the pieces. */
    void (*on_text)(void *self, bool reset, struct str piece);
    void (*on_wait)(void *self);
    enum bt_code (*check)(void *self, const struct cJSON *value, struct bt_error *err);
    void *self;
};

/* False: the step has failed already, and says why (or was cancelled). True: *ret has what was
 * asked for. Either way the caller does llm_reply_done. Makes the prompt. */
bool model_call_run(const struct model_call *a, struct prompt *p, struct llm_reply *ret);
#endif
