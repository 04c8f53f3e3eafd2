/* Validation of agent cards. Pure, thread-safe. */
#ifndef REGISTRY_CARD_H
#define REGISTRY_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

struct msg_card;

enum card_problem {
    CARD_OK,
    CARD_ID_EMPTY,
    CARD_ID_TOO_LONG,
    CARD_ID_BAD_CHARACTER, /* allowed: A-Z a-z 0-9 _ . - */
    CARD_ID_BAD_BEGIN,     /* with . or -: a directory or an option to programs that get it */
    CARD_ID_RESERVED,      /* supervisor, user, *, system */
    CARD_SKILL_ID_BAD,
    CARD_SKILL_DUPLICATE,
    CARD_EFFECTS_BAD, /* none | idempotent | unsafe */
    CARD_PROBLEM_COUNT
};

/* Returns the first problem. *ret_skill is the index of the skill that has it, else UINT32_MAX. */
enum card_problem card_check(const struct msg_card *card, uint32_t *ret_skill);
/* Returns a sentence for people: "agentId has a character that is not allowed; allowed are A-Z a-z
 * 0-9 _ . -". Valid for ever. */
const char *card_problem_text(enum card_problem p);
/* True for [A-Za-z0-9_.-]{1,64}. */
bool card_id_ok(struct str id);
/* Returns the index of the skill in the card, or UINT32_MAX. */
uint32_t card_skill(const struct msg_card *card, struct str skill);
#endif
