/*
 * Gets a usable answer from a model: retries, delays, fallback providers, structured output. Blocks
 * the caller. Thread-safe.
 *
 *   provider 1 -- attempt -- retry (delay: Retry-After or full jitter) -- ... -- give up
 *                  |  `- "response_format is not supported": next output mode, remembered
 *   provider 2 -- ...                        a breaker per provider: open = skipped
 *                  `- answer -- fits the schema? -- no: ONE repair turn -- no: BT_INVALID
 */
#ifndef LLM_CLIENT_H
#define LLM_CLIENT_H

#include "agents/llm/model/config.h"

struct llm_client;

/* Takes the configuration, also on failure. Starts a thread (none for a replay). */
BT_MUST_CHECK enum bt_code llm_client_new(struct llm_config *config, struct llm_client **ret,
                                          struct bt_error *err);
/* No call may be in progress. Accepts NULL. */
void llm_client_free(struct llm_client *c);

/* Redacts secrets in a text that is logged or shown. */
void llm_client_redact(const struct llm_client *c, struct buf *text);

/*
 * Calls the model. *ret is always initialised (the caller calls llm_reply_done) and has the usage
 * of unusable answers too.
 * - BT_OK: text, and with a schema the json that fits it.
 * - BT_INVALID: the request was rejected (ret->finish shows whether by the model), or the answer
 *   does not fit after the repair turn.
 * - BT_LIMIT: cut off or too large. BT_TIMEOUT: the deadline. BT_CANCELLED: stop() returned true.
 * The rest as in http_attempt.h. The error names the provider and has no secrets in it.
 */
BT_MUST_CHECK enum bt_code llm_complete(struct llm_client *c, const struct llm_request *request,
                                        struct llm_reply *ret, struct bt_error *err);
void llm_reply_done(struct llm_reply *r);

/* How many answer tokens the money buys after input_tokens, at the most expensive provider;
 * UINT64_MAX when there is no such limit. */
uint64_t llm_client_affordable(const struct llm_client *c, uint64_t input_tokens, uint64_t micros);

/* The provider's current output mode, for tests and diagnostics. */
enum llm_output_mode llm_client_output_mode(struct llm_client *c, uint32_t provider);
#endif
