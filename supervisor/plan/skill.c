/*
 * A step that names an agent but none of its skills: the only one, or the one that its task is
 * about. Where no word points to one the skill stays empty: the agent itself may know what to do.
 */
#include "protocol/wire/msg.h"
#include "supervisor/keyword/rank.h"
#include "supervisor/plan/reader_internal.h"

/* Each choice indexes all cards, so a plan of thousands of such steps must name its skills itself.
 */
enum { CHOICES_MAX = 100, HITS_MAX = 64 };

static enum bt_code take(struct plan_reader *r, struct plan_step *step, struct str skill)
{
    step->skill = arena_str(r->arena, skill);
    return step->skill.ptr == NULL ? reader_nomem(r) : BT_OK;
}

/* The agent's skill that the task is about; UINT32_MAX when no word of the task points to one. */
static enum bt_code find(struct plan_reader *r, const struct plan_step *step, uint32_t *ret_skill)
{
    struct rank_hit hits[HITS_MAX];
    struct rank *rank = NULL;
    enum bt_code code = rank_new(r->registry, &step->task, 1, &r->scratch, &rank, r->err);
    uint32_t n = code == BT_OK ? rank_clause(rank, 0, hits, HITS_MAX) : 0;

    *ret_skill = UINT32_MAX;
    for (uint32_t i = 0; i < n && *ret_skill == UINT32_MAX; i++) {
        if (hits[i].agent == step->agent) {
            *ret_skill = hits[i].skill;
        }
    }
    return code;
}

enum bt_code plan_skill_choose(struct plan_reader *r, struct plan_step *step,
                               const struct location *at)
{
    const struct msg_card *card = NULL;
    uint32_t skill = 0;
    enum bt_code code = BT_OK;

    if (r->canonical || r->registry == NULL || step->agent == REGISTRY_NONE ||
        step->skill.len != 0) {
        return BT_OK;
    }
    card = registry_agent_view(r->registry, step->agent).card;
    if (card == NULL || card->skills_n == 0) {
        return BT_OK;
    }
    if (card->skills_n == 1) {
        return take(r, step, card->skills[0].id);
    }
    if (++r->choices > CHOICES_MAX) {
        return BT_OK;
    }
    code = find(r, step, &skill);
    if (code == BT_OK && skill != UINT32_MAX) {
        code = take(r, step, card->skills[skill].id);
        location_report(at, PROBLEM_STYLE, true, "skill",
                        "is missing; took '%.*s' by the words of the task", STR_ARG(step->skill));
    }
    return code;
}
