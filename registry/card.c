/* Validation of agent cards. */
#include "registry/card.h"

#include "protocol/base/assert.h"
#include "protocol/limits.h"
#include "protocol/wire/msg.h"

static bool id_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static enum card_problem id_check(struct str id)
{
    if (id.len == 0) {
        return CARD_ID_EMPTY;
    }
    if (id.len > LIMIT_ID_BYTES) {
        return CARD_ID_TOO_LONG;
    }
    for (size_t i = 0; i < id.len; i++) {
        if (!id_char(id.ptr[i])) {
            return CARD_ID_BAD_CHARACTER;
        }
    }
    return CARD_OK;
}

bool card_id_ok(struct str id)
{
    return id_check(id) == CARD_OK;
}

/* Compares without case, because people would read "Supervisor" as "supervisor". */
static bool id_reserved(struct str id)
{
    static const char *const reserved[] = {"supervisor", "user", "system", "*"};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        const struct str name = str_from(reserved[i]);
        size_t same = 0;
        while (same < name.len && name.len == id.len) {
            const char c = id.ptr[same];
            if ((c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c) != name.ptr[same]) {
                break;
            }
            same++;
        }
        if (same == name.len) {
            return true;
        }
    }
    return false;
}

static bool effects_ok(struct str effects)
{
    return effects.len == 0 || str_is(effects, "none") || str_is(effects, "idempotent") ||
           str_is(effects, "unsafe");
}

enum card_problem card_check(const struct msg_card *card, uint32_t *ret_skill)
{
    *ret_skill = UINT32_MAX;
    if (id_reserved(card->agent_id)) {
        return CARD_ID_RESERVED;
    }
    const enum card_problem p = id_check(card->agent_id);
    if (p != CARD_OK) {
        return p;
    }
    if (card->agent_id.ptr[0] == '.' || card->agent_id.ptr[0] == '-') {
        return CARD_ID_BAD_BEGIN;
    }
    for (uint32_t i = 0; i < card->skills_n; i++) {
        *ret_skill = i;
        if (!card_id_ok(card->skills[i].id)) {
            return CARD_SKILL_ID_BAD;
        }
        if (card_skill(card, card->skills[i].id) != i) {
            return CARD_SKILL_DUPLICATE;
        }
        if (!effects_ok(card->skills[i].effects)) {
            return CARD_EFFECTS_BAD;
        }
    }
    *ret_skill = UINT32_MAX;
    return CARD_OK;
}

const char *card_problem_text(enum card_problem p)
{
    static const char *const texts[] = {
        [CARD_OK] = "the card is right",
        [CARD_ID_EMPTY] = "agentId is empty; it needs 1 to 64 of A-Z a-z 0-9 _ . -",
        [CARD_ID_TOO_LONG] = "agentId is too long; at most 64 characters are allowed",
        [CARD_ID_BAD_CHARACTER] =
            "agentId has a character that is not allowed; allowed are A-Z a-z 0-9 _ . -",
        [CARD_ID_BAD_BEGIN] =
            "agentId begins with . or -; it needs a letter, a digit or _ as its first character",
        [CARD_ID_RESERVED] =
            "agentId is reserved; supervisor, user, system and * are not for agents",
        [CARD_SKILL_ID_BAD] = "a skill's id must be 1 to 64 of A-Z a-z 0-9 _ . -",
        [CARD_SKILL_DUPLICATE] = "two skills have the same id; each needs its own",
        [CARD_EFFECTS_BAD] = "a skill's effects must be none, idempotent or unsafe",
    };
    _Static_assert(sizeof texts / sizeof texts[0] == CARD_PROBLEM_COUNT,
                   "a text for every problem");
    ASSERT((unsigned)p < CARD_PROBLEM_COUNT);
    return texts[p];
}

uint32_t card_skill(const struct msg_card *card, struct str skill)
{
    for (uint32_t i = 0; i < card->skills_n; i++) {
        if (str_eq(card->skills[i].id, skill)) {
            return i;
        }
    }
    return UINT32_MAX;
}
