/* Checks a model's plan beyond its schema. The error sentences are written for the model. Pure
 * except for the heap. The supervisor checks again: this check only saves a round trip. */
#ifndef LLM_AGENT_PLAN_CHECK_H
#define LLM_AGENT_PLAN_CHECK_H

#include <stdint.h>

#include "protocol/base/err.h"

struct cJSON;

enum { PLAN_STEPS_MAX = 100, PLAN_DEPENDS_MAX = 32 };

/*
 * question: the parameters of the replan: `agents` [{agentId, skills: [{id}]}] and `completed`
 * [{stepId}]. BT_INVALID: an agent that was not granted, a skill that it lacks, a duplicate id, an
 * unknown dependency or reused step, a cycle.
 */
BT_MUST_CHECK enum bt_code plan_check(const struct cJSON *question, const struct cJSON *plan,
                                      struct bt_error *err);
#endif
