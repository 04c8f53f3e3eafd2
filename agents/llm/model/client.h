/*
 * Asks a model, and gets an answer that can be used: retries, waits, other providers, the form of
 * the answer. Blocks the caller; any number of threads may ask at the same time.
 *
 *   provider 1 ── attempt ── retry (wait: Retry-After or full jitter) ── ... ── gives up
 *       │            └─ "response_format is not supported": a output_mode down, remembered
 *   provider 2 ── ...                     breaker per provider: open = skipped
 *       └─ answer ── fits the schema? ── no: ONE turn with what does not fit ── no: BT_INVALID
 */
#ifndef LLM_CLIENT_H
#define LLM_CLIENT_H

#include "agents/llm/model/config.h"

struct llm_client;

/* Takes over the configuration, also when it fails. Starts a thread (none for a replay). */
BT_MUST_CHECK enum bt_code llm_client_new(struct llm_config *config, struct llm_client **ret,
                                          struct bt_error *err);
/* Nobody may be asking any more. Accepts NULL. */
void llm_client_free(struct llm_client *c);

/* Takes secrets out of a text that is to be logged or shown. */
void llm_client_redact(const struct llm_client *c, struct buf *text);

/*
 * Asks. *ret is always initialised (llm_reply_done it) and tells the usage also of answers that
 * did not do. BT_OK: text, and with a schema the json that fits it. BT_INVALID: the request was
 * refused (ret->finish says whether by the model), or the answer does not fit after the repair
 * turn; BT_LIMIT: cut off or too large; BT_TIMEOUT: the deadline; BT_CANCELLED: stop() said so; the
 * rest as in attempt.h. The sentence names the provider and has no secrets in it.
 */
BT_MUST_CHECK enum bt_code llm_complete(struct llm_client *c, const struct llm_request *request,
                                        struct llm_reply *ret, struct bt_error *err);
void llm_reply_done(struct llm_reply *r);

/* How many tokens of an answer that money buys behind so many of a question, at the dearest
 * provider; UINT64_MAX when there is no such limit. */
uint64_t llm_client_affordable(const struct llm_client *c, uint64_t input_tokens, uint64_t micros);

/* The output_mode that the provider stands on: for tests and for people. */
enum llm_output_mode llm_client_output_mode(struct llm_client *c, uint32_t provider);
#endif
