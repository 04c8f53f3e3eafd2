/*
 * Translates Baton's events to the vocabularies of other systems: other names and payloads for the
 * same events. Baton itself publishes one vocabulary; this is for subscribers that were written for
 * another one.
 *
 * One thread at a time uses a translator; different translators are independent. A translator makes
 * no requests and reads no clock. Its memory is bounded: a plan is dropped when it has ended, and
 * over a cap the oldest one is. It omits what it has not seen, as when a subscriber starts in the
 * middle or a plan was dropped. Events without a counterpart emit nothing.
 */
#ifndef BATON_VOCABULARY_H
#define BATON_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>

#include "baton/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bt_vocabulary;

/* Valid until the next bt_vocabulary_take, _next or _free on the same translator. */
struct bt_translated {
    const char *type;
    const char *plan_id; /* "" when it belongs to no plan */
    const char *json;    /* one object, without newlines */
};

/* All names, ending with NULL: ai-sdk, plan-executor, agent-turn, ptc-runner, ptc-runner-telemetry,
 * orchestrator-log. Valid for ever. */
BT_API const char *const *bt_vocabulary_names(void);

/* Accepts these names and the former ones (s000 to s004, s003-telemetry). BT_INVALID for any other;
 * the error lists the names. The caller frees *ret with bt_vocabulary_free. */
BT_API BT_MUST_CHECK enum bt_code bt_vocabulary_new(const char *name, struct bt_vocabulary **ret,
                                                    struct bt_error *err);
/* Accepts NULL. */
BT_API void bt_vocabulary_free(struct bt_vocabulary *v);

/*
 * Takes the next event, in the order of seq: the published msgpack or its JSON object
 * (bt_event.json). The bytes are borrowed for the call only. An event whose seq is not higher than
 * the last one (of its `shard`, when it has that member) is a repetition and emits nothing.
 * BT_INVALID when the bytes are no event. BT_NOMEM or BT_LIMIT when its translation could not be
 * kept; it is then lost, and the translator continues with the next event.
 */
BT_API BT_MUST_CHECK enum bt_code bt_vocabulary_take(struct bt_vocabulary *v, const void *event,
                                                     size_t len, struct bt_error *err);
/*
 * For a subscriber that starts in the middle. bt_vocabulary_lacks: whether the event, as for
 * bt_vocabulary_take, belongs to a plan that began before and is unknown. Then pass the earlier
 * events of this plan to bt_vocabulary_learn, in the order of seq, before taking the event: they
 * emit nothing, and may be older than what was taken of other plans. Codes as for
 * bt_vocabulary_take. A plan that was dropped is lacking again: a caller bounds how often it reads.
 */
BT_API bool bt_vocabulary_lacks(const struct bt_vocabulary *v, const void *event, size_t len);
BT_API BT_MUST_CHECK enum bt_code bt_vocabulary_learn(struct bt_vocabulary *v, const void *event,
                                                      size_t len, struct bt_error *err);
/* Returns the translations of the last event, one per call; false after the last. */
BT_API bool bt_vocabulary_next(struct bt_vocabulary *v, struct bt_translated *ret);

/*
 * True when the plan's document helps to translate an event of this type. Then call plan.get with
 * `document` and pass the answer to bt_vocabulary_describe before taking the event. Events have
 * neither the skill and parameters of a step, which agent-turn needs (Tool, Args), nor the
 * completed steps that a replan keeps, which ptc-runner needs. Without the document Tool is the
 * agent's id, Args has the task, and all completed steps count as kept.
 */
BT_API bool bt_vocabulary_wants_plan(const struct bt_vocabulary *v, const char *event_type);
/* plan_json: the answer of plan.get {document: true}. Borrowed for the call only. */
BT_API BT_MUST_CHECK enum bt_code
bt_vocabulary_describe(struct bt_vocabulary *v, const char *plan_json, struct bt_error *err);

#ifdef __cplusplus
}
#endif
#endif
