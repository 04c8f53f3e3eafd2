/* The schemas of the settings, in one place: for the agent, the client, and the check of a
 * configuration file before the agent starts. Pure. */
#ifndef LLM_RULES_H
#define LLM_RULES_H

#include <stdint.h>

#include "protocol/base/err.h"

struct cJSON;
struct schema_problem;

enum llm_rules {
    LLM_RULES_CLIENT,  /* providers, record, replay */
    LLM_RULES_AGENT,   /* and the settings of baton-agent-llm */
    LLM_RULES_SECTION, /* the `llm` of a daemon's configuration: and the settings of the process */
};

/* BT_INVALID: *ret_n problems, the first max of them in at. */
BT_MUST_CHECK enum bt_code llm_rules_check(enum llm_rules which, const struct cJSON *tree,
                                           struct schema_problem *at, uint32_t max, uint32_t *ret_n,
                                           struct bt_error *err);
/* The same with the first problem as the error: "path: what would be right". */
BT_MUST_CHECK enum bt_code llm_rules_require(enum llm_rules which, const struct cJSON *tree,
                                             struct bt_error *err);
#endif
