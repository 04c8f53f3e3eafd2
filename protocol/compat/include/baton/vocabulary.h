/*
 * The events of the bus told in the words of other systems: the same story, other names and
 * payloads. The bus itself has one vocabulary; this is for subscribers that were written for
 * another one.
 *
 * A translator belongs to one thread at a time; different ones are independent. It makes no
 * requests, reads no clock, and its memory is bounded: a plan is forgotten when it has ended, and
 * over a cap the oldest is. What it has not seen (a subscriber that begins in the middle, a plan
 * that was forgotten) it leaves out. Events that it does not know, or that its vocabulary has no
 * word for, pass by.
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
    const char *plan_id; /* "" when it is about none */
    const char *json;    /* one object, without newlines */
};

/* All names, ending with NULL; valid for ever. */
BT_API const char *const *bt_vocabulary_names(void);

/* BT_INVALID when there is no such vocabulary; the sentence lists those that there are. The caller
 * frees *ret. */
BT_API BT_MUST_CHECK enum bt_code bt_vocabulary_new(const char *name, struct bt_vocabulary **ret,
                                                    struct bt_error *err);
/* Accepts NULL. */
BT_API void bt_vocabulary_free(struct bt_vocabulary *v);

/*
 * Takes the next event of the bus, in the order of their seq: msgpack as it was published, or its
 * JSON object (bt_event.json). The bytes are borrowed for the call only. An event whose seq is not
 * higher than that of the one before is taken for a repetition and says nothing. BT_INVALID when it
 * is no event; BT_NOMEM or BT_LIMIT when what it says could not be kept: it is then lost, the
 * translator goes on with the next.
 */
BT_API BT_MUST_CHECK enum bt_code bt_vocabulary_take(struct bt_vocabulary *v, const void *event,
                                                     size_t len, struct bt_error *err);
/* What the event taken last became, one after the other; false when that is all. */
BT_API bool bt_vocabulary_next(struct bt_vocabulary *v, struct bt_translated *ret);

/*
 * Events do not carry the skill and the parameters of a step; s002 wants them (Tool, Args). Nor
 * which completed steps a replan keeps; s003 wants that. Whether the plan's document would tell
 * more about an event of this type: then ask plan.get with `document`, and give the answer to
 * bt_vocabulary_describe before the event is taken. Without it Tool is the agent's id, Args has the
 * task, and all that is completed counts as kept.
 */
BT_API bool bt_vocabulary_wants_plan(const struct bt_vocabulary *v, const char *event_type);
/* plan_json: the answer of plan.get {document: true}. Borrowed for the call only. */
BT_API BT_MUST_CHECK enum bt_code
bt_vocabulary_describe(struct bt_vocabulary *v, const char *plan_json, struct bt_error *err);

#ifdef __cplusplus
}
#endif
#endif
