/* A question on its way through one provider. Private to client.c and asking.c. */
#ifndef LLM_PROVIDER_CALL_H
#define LLM_PROVIDER_CALL_H

#include <pthread.h>

#include "agents/llm/model/breaker.h"
#include "agents/llm/model/client.h"
#include "agents/llm/model/http_attempt.h"
#include "agents/llm/model/output_mode.h"

struct schema;

enum { PROVIDER_CALL_WHY_MAX = 320 };

struct llm_client {
    struct llm_config *config;
    struct net *net; /* NULL in a replay */
    struct recording *recording;
    pthread_mutex_t lock;
    pthread_cond_t sleep_cond; /* to wait for a time */
    struct {
        struct server_caps server_caps;
        struct breaker breaker;
        char why[PROVIDER_CALL_WHY_MAX]; /* the last failure that the breaker counted, without
                                            secrets */
    } at[LLM_PROVIDERS_MAX];             /* guarded by lock */
};

/* One question on its way. */
struct provider_call {
    struct llm_client *c;
    struct llm_request request;  /* with the turns of a repair */
    const struct schema *schema; /* what an answer is read by */
    const struct cJSON *tree;    /* the same, uncompiled */
    struct llm_reply *reply;
    msec refused_ms; /* the first breaker lets one through in so many; MSEC_NEVER = none refused */
    bool emitted;    /* pieces of an answer that may become void */
};

/* Attempts until one is good, or none helps any more. BT_OK: reply->text is the model's. */
BT_MUST_CHECK enum bt_code provider_call_provider(struct provider_call *a, uint32_t ix,
                                                  struct bt_error *err);
#endif
