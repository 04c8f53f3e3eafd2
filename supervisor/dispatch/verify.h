/*
 * What a result must look like: a step's `verify`, and the output schema of the skill that made it.
 * Both are JSON Schemas over the result's data (its text when it has no data); the diagnosis is the
 * validator's message.
 */
#ifndef DISPATCH_VERIFY_H
#define DISPATCH_VERIFY_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/msg.h"

struct schema;

/* True when the result fits. Otherwise *diagnosis gets one sentence. A schema that cannot be used,
 * or a result that cannot be checked, does not fit. */
bool verify_result(struct doc schema, const struct msg_result *result, struct buf *diagnosis);

/* The compiled output schemas of one card, each when first needed. A zeroed one is ready. */
struct verify_outputs {
    uint64_t card; /* hash of the card that they are of */
    uint32_t n;
    struct verify_output *at;
};
void verify_outputs_done(struct verify_outputs *o);
/* As verify_result, by the output schema of the card's skill; card_hash tells one card from the
 * next. True also when the skill has none, or one that cannot be used: that is the agent's own
 * fault, and was logged. */
bool verify_output(struct verify_outputs *o, const struct msg_card *card, uint64_t card_hash,
                   uint32_t skill, const struct msg_result *result, struct buf *diagnosis);
#endif
