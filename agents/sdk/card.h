/* The agent's card while it is put together: its skills, copied, with their schemas read. Read-only
 * once it runs. */
#ifndef SDK_CARD_H
#define SDK_CARD_H

#include "baton/agent.h"
#include "protocol/wire/msg.h"

struct schema;

struct card_skill {
    struct bt_skill skill; /* strings in the card's arena */
    struct doc input, output;
    struct schema *input_compiled; /* NULL = anything goes */
};

struct card {
    struct arena arena;
    struct card_skill *skills; /* LIMIT_SKILLS of them */
    uint32_t skills_n;
    struct msg_card msg; /* without the skills; its strings are the definition's or the arena's */
};

/* Copies the definition. BT_INVALID names what a card may not have. */
BT_MUST_CHECK enum bt_code card_init(struct card *c, const struct bt_agent_def *def,
                                     struct bt_error *err);
/* Accepts zeroed; idempotent. */
void card_done(struct card *c);
BT_MUST_CHECK enum bt_code card_add(struct card *c, const struct bt_skill *skill,
                                    struct bt_error *err);
BT_MUST_CHECK enum bt_code card_set_id(struct card *c, const char *agent_id, struct bt_error *err);
/* Ready to run? At least one skill and an id. */
BT_MUST_CHECK enum bt_code card_check_complete(const struct card *c, struct bt_error *err);
/* The skill asked for; the only one when the name is empty; NULL when there is none. */
const struct card_skill *card_find(const struct card *c, const char *id);
/* The message; lists are made in `arena`. */
BT_MUST_CHECK enum bt_code card_view(const struct card *c, struct arena *arena,
                                     struct msg_card *ret, struct bt_error *err);
#endif
