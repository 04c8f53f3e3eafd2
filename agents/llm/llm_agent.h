/* The state of the llm agent, shared by its skills. Constant after start; handlers run on several
 * threads. */
#ifndef LLM_AGENT_LLM_AGENT_H
#define LLM_AGENT_LLM_AGENT_H

#include "agents/llm/model/client.h"
#include "baton/agent.h"

struct llm_agent {
    struct llm_client *client;
    struct cJSON *tree;   /* owns the strings below */
    const char *agent_id; /* NULL = not set */
    const char *system;   /* the operator's addition to the instructions; or NULL */
    uint64_t max_tokens;  /* of an answer */
    double temperature;   /* below 0 = the model's default */
    size_t data_bytes;    /* of other agents' texts in one prompt */
};

/* Reads the settings and starts the client. BT_INVALID names the member and what would be right. */
BT_MUST_CHECK enum bt_code llm_agent_new(const char *settings_json, struct llm_agent **ret,
                                         struct bt_error *err);
/* Accepts NULL. */
void llm_agent_free(struct llm_agent *a);

extern const struct bt_skill llm_skills[];
extern const size_t llm_skill_count;

/* The tag of skills that only the supervisor requests: planners must not use them in a step. */
#define LLM_SUPERVISOR_TAG "x-baton-asked"

/* The tag of skills that may call others. */
#define LLM_CALLS_TAG "x-baton-calls"

/* chat.c */
void llm_chat(struct bt_step *step, void *self);
void llm_summarize(struct bt_step *step, void *self);
/* work.c */
void llm_work(struct bt_step *step, void *self);
/* judge.c */
void llm_gate(struct bt_step *step, void *self);
void llm_verify(struct bt_step *step, void *self);
/* plan.c, plan_new.c (purpose plan) */
void llm_plan(struct bt_step *step, void *self);
void llm_plan_new(struct bt_step *step, const struct llm_agent *agent);
/* synthesize.c */
void llm_synthesize(struct bt_step *step, void *self);
/* converse.c */
void llm_converse(struct bt_step *step, void *self);
#endif
