/* Names that were perhaps meant in place of unknown ones. */
#include "protocol/base/suggest.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/plan/plan_check_internal.h"

/* Names that are compared for one plan: a few milliseconds, however many it has. */
enum { OFFERS_MAX = 8192 };

static bool offer(struct plan_checker *k, struct suggest *near, struct str name)
{
    if (k->offers == OFFERS_MAX) {
        return false;
    }
    k->offers++;
    suggest_offer(near, name);
    return true;
}

static struct str best_of(const struct suggest *near)
{
    return near->best.ptr != NULL ? near->best : STR_LIT("");
}

struct str plan_guess_step(struct plan_checker *k, uint32_t s, struct str name)
{
    struct suggest near = suggest_start(name);
    for (uint32_t i = 0; i < k->plan->n_steps; i++) {
        if (i != s && !k->plan->steps[i].superseded &&
            !offer(k, &near, k->plan->steps[i].step_id)) {
            break;
        }
    }
    return best_of(&near);
}

struct str plan_guess_agent(struct plan_checker *k, struct str name)
{
    const struct registry *r = k->in->registry;
    struct suggest near = suggest_start(name);
    for (uint32_t a = registry_agent_expected(r, 0); a != REGISTRY_NONE;
         a = registry_agent_expected(r, a + 1)) {
        if (!offer(k, &near, registry_agent_view(r, a).id)) {
            break;
        }
    }
    return best_of(&near);
}

static void offer_skills(struct plan_checker *k, struct suggest *near, const struct msg_card *card)
{
    for (uint32_t i = 0; card != NULL && i < card->skills_n; i++) {
        if (!offer(k, near, card->skills[i].id)) {
            break;
        }
    }
}

struct str plan_guess_skill(struct plan_checker *k, const struct msg_card *card, struct str name)
{
    const struct registry *r = k->in->registry;
    struct suggest near = suggest_start(name);
    if (card != NULL) {
        offer_skills(k, &near, card);
        return best_of(&near);
    }
    for (uint32_t a = registry_agent_expected(r, 0); a != REGISTRY_NONE;
         a = registry_agent_expected(r, a + 1)) {
        offer_skills(k, &near, registry_agent_view(r, a).card);
    }
    return best_of(&near);
}
