/* One model call of a handler: within the step's deadline and the plan's budget. Reports its cost,
 * and turns its failure into the step's. */
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
    bool extra;                  /* members that the schema does not have are accepted */
    bool as_is;                  /* reply.json may not fit the schema, or be NULL */
    uint64_t max_tokens;         /* 0 = the agent's setting */
    /* Receives the answer as it is generated (llm.h), on the handler's thread. Progress reports
     * then have no text of their own. on_wait is called every few milliseconds between the
     * pieces. */
    void (*on_text)(void *self, bool reset, struct str piece);
    void (*on_wait)(void *self);
    enum bt_code (*check)(void *self, const struct cJSON *value, struct bt_error *err);
    void *self;
};

/* False: the step has failed with a reason, or was cancelled. True: *ret has the reply. In both
 * cases the caller calls llm_reply_done. Calls prompt_make. */
bool model_call_run(const struct model_call *a, struct prompt *p, struct llm_reply *ret);
#endif
