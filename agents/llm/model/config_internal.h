/* Shared by config.c and config_check.c. */
#ifndef LLM_CONFIG_INTERNAL_H
#define LLM_CONFIG_INTERNAL_H

#include "agents/llm/model/config.h"

struct key_source {
    const char *member;
    enum secret_source source;
    const char *name; /* NULL = no key is needed */
};

/* The source of a provider's key. BT_INVALID: several sources. */
BT_MUST_CHECK enum bt_code llm_key_find(const struct cJSON *map, struct key_source *ret,
                                        struct bt_error *err);
/* An empty configuration of this tree. Takes the tree on success. */
BT_MUST_CHECK enum bt_code llm_config_make(struct cJSON *tree, struct llm_config **ret,
                                           struct bt_error *err);
/* Reads one provider into c->providers[c->n]; map has passed the rules. c->member: the member that
 * failed. */
BT_MUST_CHECK enum bt_code llm_provider_read(struct llm_config *c, const struct cJSON *map,
                                             struct bt_error *err);
BT_MUST_CHECK enum bt_code llm_one_recording(const struct llm_config *c, struct bt_error *err);
#endif
