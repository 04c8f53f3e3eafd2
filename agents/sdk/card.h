/* The agent's card while it is built: copies of its skills, with compiled schemas. Read-only once
 * the agent serves. */
#ifndef SDK_CARD_H
#define SDK_CARD_H

#include "baton/agent.h"
#include "protocol/wire/msg.h"

struct schema;

struct card_skill {
    struct bt_skill skill; /* strings in the card's arena */
    struct doc input, output;
    struct schema *input_compiled; /* NULL = any value fits */
    bool quick;                    /* BT_TAG_QUICK; the card does not show it */
};

struct card {
    struct arena arena;
    struct card_skill *skills; /* LIMIT_SKILLS of them */
    uint32_t skills_n;
    struct msg_card msg; /* without the skills; its strings are the definition's or the arena's */
};

/* Copies the definition. BT_INVALID names a member that a card may not have. */
BT_MUST_CHECK enum bt_code card_init(struct card *c, const struct bt_agent_def *def,
                                     struct bt_error *err);
/* Accepts zeroed; idempotent. */
void card_done(struct card *c);
BT_MUST_CHECK enum bt_code card_add(struct card *c, const struct bt_skill *skill,
                                    struct bt_error *err);
BT_MUST_CHECK enum bt_code card_set_id(struct card *c, const char *agent_id, struct bt_error *err);
/* BT_INVALID unless the card has an id and at least one skill. */
BT_MUST_CHECK enum bt_code card_check_complete(const struct card *c, struct bt_error *err);
/* The requested skill; the only one when the name is empty; NULL when there is none. */
const struct card_skill *card_find(const struct card *c, const char *id);
/* The card as a message; its lists are allocated in `arena`. */
BT_MUST_CHECK enum bt_code card_view(const struct card *c, struct arena *arena,
                                     struct msg_card *ret, struct bt_error *err);
#endif
