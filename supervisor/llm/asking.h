/* A question on its way through one provider. Private to client.c and asking.c. */
#ifndef LLM_ASKING_H
#define LLM_ASKING_H

#include <pthread.h>

#include "supervisor/llm/attempt.h"
#include "supervisor/llm/breaker.h"
#include "supervisor/llm/client.h"
#include "supervisor/llm/ladder.h"

struct schema;

struct llm_client {
    struct llm_config *config;
    struct net *net; /* NULL in a replay */
    struct tape *tape;
    pthread_mutex_t lock;
    pthread_cond_t never; /* to wait for a time */
    struct {
        struct ladder ladder;
        struct breaker breaker;
    } at[LLM_PROVIDERS_MAX]; /* guarded by lock */
};

/* One question on its way. */
struct asking {
    struct llm_client *c;
    struct llm_request request; /* with the turns of a repair */
    const struct schema *schema;
    struct llm_reply *reply;
    bool told; /* pieces of an answer that may become void */
};

/* Attempts until one is good, or none helps any more. BT_OK: reply->text is the model's. */
BT_MUST_CHECK enum bt_code asking_provider(struct asking *a, uint32_t ix, struct bt_error *err);
#endif
