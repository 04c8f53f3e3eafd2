/* What settings may look like, in one place: for the agent that reads them, the client, and who
 * checks a configuration file before it starts the agent. Pure. */
#ifndef LLM_RULES_H
#define LLM_RULES_H

#include <stdint.h>

#include "protocol/base/err.h"

struct cJSON;
struct schema_problem;

enum llm_rules {
    LLM_RULES_CLIENT,  /* providers, record, replay */
    LLM_RULES_AGENT,   /* and what baton-agent-llm takes */
    LLM_RULES_SECTION, /* the `llm` of a daemon's configuration: and what is said of the process */
};

/* BT_INVALID: *ret_n problems, the first max of them in at. */
BT_MUST_CHECK enum bt_code llm_rules_check(enum llm_rules which, const struct cJSON *tree,
                                           struct schema_problem *at, uint32_t max, uint32_t *ret_n,
                                           struct bt_error *err);
#endif
