/* The state of one call through the providers. Shared by client.c and provider_call.c. */
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
    pthread_cond_t sleep_cond; /* never signalled: callers sleep on it */
    struct {
        struct server_caps server_caps;
        struct breaker breaker;
        /* the last failure that the breaker counted, without secrets */
        char why[PROVIDER_CALL_WHY_MAX];
    } at[LLM_PROVIDERS_MAX]; /* guarded by lock */
};

/* One call. */
struct provider_call {
    struct llm_client *c;
    struct llm_request request;  /* with the turns of a repair */
    const struct schema *schema; /* the reader's schema */
    const struct cJSON *tree;    /* the same, uncompiled */
    struct llm_reply *reply;
    msec refused_ms; /* when the first breaker allows a call; MSEC_NEVER = none refused */
    bool emitted;    /* pieces were emitted that may become void */
};

/* Tries one provider until an attempt succeeds or none can help. BT_OK: reply->text is the model's
 * text. */
BT_MUST_CHECK enum bt_code provider_call_provider(struct provider_call *a, uint32_t ix,
                                                  struct bt_error *err);
#endif
