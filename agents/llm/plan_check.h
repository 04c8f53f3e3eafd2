/* What a plan of a model must be beyond its schema, in sentences that the model can use. Pure but
 * for the heap. The supervisor checks again: this only saves a round. */
#ifndef LLM_AGENT_PLAN_CHECK_H
#define LLM_AGENT_PLAN_CHECK_H

#include <stdint.h>

#include "protocol/base/err.h"

struct cJSON;

enum { PLAN_STEPS_MAX = 100, PLAN_DEPENDS_MAX = 32 };

/*
 * question: the parameters of the replan: `agents` [{agentId, skills: [{id}]}] and `completed`
 * [{stepId}]. BT_INVALID: an agent that was not granted, a skill that it has not, an id twice, a
 * dependency or a reused step that there is not, a circle.
 */
BT_MUST_CHECK enum bt_code plan_check(const struct cJSON *question, const struct cJSON *plan,
                                      struct bt_error *err);
#endif
