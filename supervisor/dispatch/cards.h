/* The cards of the agents, and what is known of an agent since the daemon started. */
#ifndef DISPATCH_CARDS_H
#define DISPATCH_CARDS_H

#include "supervisor/dispatch/verify.h"
#include "supervisor/engine/engine.h"
#include "supervisor/query/agent_stats.h"

struct agent_card {
    struct arena arena;
    uint32_t generation; /* of the registry's index: another agent may have had it */
    struct msg_card card;
    uint64_t hash; /* of its bytes: the same card is not copied again */
    struct verify_outputs outputs;
    uint64_t requests, errors;
    struct agent_stats agent_stats;
};

/* The card outlives the request: copied once, again only when it has changed. */
BT_MUST_CHECK enum bt_code agent_card_keep(struct engine *engine, uint32_t agent,
                                           const struct msg_card *card, struct bt_error *err);
/* Hooks of the engine: the card of an agent that came or left, for the journal; and the cards of
 * all that are remembered and not known, for the registry. */
BT_MUST_CHECK enum bt_code agent_remember(struct engine *engine, uint32_t agent,
                                          struct bt_error *err);
BT_MUST_CHECK enum bt_code agents_recall(struct engine *engine, struct bt_error *err);
/* Of an agent of the registry. */
struct agent_card *agent_card_of(struct engine *engine, uint32_t agent);
#endif
