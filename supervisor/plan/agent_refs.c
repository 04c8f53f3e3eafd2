/* References to agents: by id, or by a skill that the agent must have. */
#include "protocol/base/utf8.h"
#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "supervisor/plan/permit.h"
#include "supervisor/plan/problem_add.h"
#include "supervisor/plan/reader_internal.h"

enum { NAMES_SHOWN = 8 };

/* ---- skills ---- */

bool plan_agent_is_permitted(const struct plan_reader *r, struct str agent_id)
{
    return r->canonical || r->asks_planner || plan_permits(r->policy->permitted, agent_id);
}

static bool may_use(const struct plan_reader *r, struct str agent_id)
{
    if (!plan_agent_is_permitted(r, agent_id)) {
        return false;
    }
    return !r->granted_only || plan_grant_find(r->plan, agent_id) != UINT32_MAX;
}

uint32_t plan_agent_with_skill(const struct plan_reader *r, struct str skill)
{
    uint32_t absent = REGISTRY_NONE;
    if (r->registry == NULL) {
        return REGISTRY_NONE;
    }
    for (uint32_t a = 0; a < registry_agents(r->registry); a++) {
        const struct agent_view agent = registry_agent_view(r->registry, a);
        if (!agent.enabled || (!agent.seen && !r->policy->wait_for_agents) || agent.card == NULL ||
            card_skill(agent.card, skill) == UINT32_MAX || !may_use(r, agent.id)) {
            continue;
        }
        if (agent.instances > 0) {
            return a;
        }
        absent = absent == REGISTRY_NONE ? a : absent;
    }
    return absent;
}

/* ---- ids ---- */

/* Appends "a, b, c, ...": the ids of the agents that are there or expected, or of the granted ones
 * in a replan. */
static void put_names(const struct plan_reader *r, struct buf *text)
{
    const struct plan_agents *granted = &r->plan->agents;
    uint32_t named = 0;
    for (uint32_t i = 0; named <= NAMES_SHOWN; i++) {
        i = !r->granted_only ? registry_agent_expected(r->registry, i)
            : i < granted->n ? i
                             : REGISTRY_NONE;
        if (i == REGISTRY_NONE) {
            break;
        }
        buf_add_cstr(text, named == 0 ? "" : ", ");
        buf_add_str(text, named == NAMES_SHOWN ? STR_LIT("...")
                          : r->granted_only    ? granted->ids[i]
                                               : registry_agent_view(r->registry, i).id);
        named++;
    }
    buf_add_cstr(text, named == 0 ? "none" : "");
}

static void report_unknown_agent(const struct plan_reader *r, const struct location *at,
                                 const char *field, struct str agent_id)
{
    struct buf names;
    if (!plan_agent_is_permitted(r, agent_id)) {
        location_report(at, PROBLEM_MISSING_AGENT, false, field,
                        "agent \"%.*s%s\" is not one of those that policy.agents permits",
                        PROBLEM_NAME(agent_id));
        return;
    }
    buf_init(&names, 1024);
    put_names(r, &names);
    if (r->granted_only) {
        location_report(at, PROBLEM_MISSING_AGENT, false, field,
                        "agent \"%.*s%s\" was not granted to this plan; granted: %s",
                        PROBLEM_NAME(agent_id), buf_cstr(&names));
    } else {
        location_report(at, PROBLEM_MISSING_AGENT, false, field, "Unknown agent: %.*s%s; known: %s",
                        PROBLEM_NAME(agent_id), buf_cstr(&names));
    }
    buf_done(&names);
}

void plan_agent_check_permitted(struct plan_reader *r, const struct location *at,
                                struct str agent_id)
{
    if (agent_id.len > 0 && !plan_agent_is_permitted(r, agent_id)) {
        report_unknown_agent(r, at, "agentId", agent_id);
    }
}

bool plan_agent_check_granted(struct plan_reader *r, const struct location *at, const char *field,
                              struct str agent_id)
{
    if (!may_use(r, agent_id)) {
        report_unknown_agent(r, at, field, agent_id);
        return false;
    }
    return true;
}

bool plan_agent_check_known(struct plan_reader *r, const struct location *at, const char *field,
                            struct str agent_id)
{
    if (r->canonical) {
        return true;
    }
    if (r->registry == NULL) {
        if (!card_id_ok(agent_id)) {
            location_report(at, PROBLEM_INVALID_FIELD, false, field,
                            "is no agent's id; it needs 1 to 64 of A-Z a-z 0-9 _ . -");
        }
        return card_id_ok(agent_id) && plan_agent_check_granted(r, at, field, agent_id);
    }
    if (registry_agent_seen(r->registry, agent_id) != REGISTRY_NONE && may_use(r, agent_id)) {
        return true;
    }
    if (r->policy->wait_for_agents && card_id_ok(agent_id) && may_use(r, agent_id)) {
        return true;
    }
    report_unknown_agent(r, at, field, agent_id);
    return false;
}

bool plan_agent_has_skill(const struct plan_reader *r, struct str agent_id, struct str skill)
{
    const uint32_t agent =
        r->registry == NULL || r->canonical ? REGISTRY_NONE : registry_agent(r->registry, agent_id);
    const struct msg_card *card =
        agent == REGISTRY_NONE ? NULL : registry_agent_view(r->registry, agent).card;
    return card == NULL || skill.len == 0 || card_skill(card, skill) != UINT32_MAX;
}

static bool has_skill(const struct plan_reader *r, const struct location *at, const char *field,
                      const struct agent_ref *ref)
{
    if (plan_agent_has_skill(r, ref->agent_id, ref->skill)) {
        return true;
    }
    location_report(at, PROBLEM_MISSING_SKILL, false, field, "agent \"%.*s\" has no skill \"%.*s\"",
                    STR_ARG(ref->agent_id), (int)utf8_cut(ref->skill.ptr, ref->skill.len, 80),
                    ref->skill.ptr);
    return false;
}

enum bt_code plan_agent_resolve(struct plan_reader *r, const struct location *at, const char *field,
                                const struct agent_ref *ref, struct str *ret)
{
    *ret = (struct str){NULL, 0};
    if (ref->agent_id.len > 0) {
        if (plan_agent_check_known(r, at, field, ref->agent_id) && has_skill(r, at, field, ref)) {
            *ret = ref->agent_id;
        }
        return BT_OK;
    }
    if (ref->skill.len == 0 || r->registry == NULL || r->canonical) {
        return BT_OK;
    }
    const uint32_t agent = plan_agent_with_skill(r, ref->skill);
    if (agent == REGISTRY_NONE) {
        location_report(at, PROBLEM_MISSING_SKILL, false, field,
                        "no %s agent has the skill \"%.*s\"; name one, or register one that has it",
                        r->granted_only ? "granted" : "registered",
                        (int)utf8_cut(ref->skill.ptr, ref->skill.len, 80), ref->skill.ptr);
        return BT_OK;
    }
    *ret = arena_str(r->arena, registry_agent_view(r->registry, agent).id);
    return ret->ptr == NULL ? reader_nomem(r) : BT_OK;
}

/* ---- lists ---- */

static bool listed(const struct str *ids, uint32_t n, struct str id)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(ids[i], id)) {
            return true;
        }
    }
    return false;
}

uint32_t plan_agent_read_list(struct plan_reader *r, const struct location *at, const char *field,
                              struct doc list, struct str *ret, uint32_t cap)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    uint32_t n = 0;
    if (list.ptr == NULL || !doc_next(&c, &head)) {
        return 0;
    }
    const bool one = head.kind != DOC_ARRAY;
    if (one) {
        c = doc_cursor(list);
        head.n = 1;
    } else if (head.n > LIMIT_PLAN_AGENTS) {
        location_report(at, PROBLEM_LIMIT, false, field,
                        "%u agents are more than the %u that a plan may use", head.n,
                        (unsigned)LIMIT_PLAN_AGENTS);
        return 0;
    }
    for (uint32_t i = 0; i < head.n && n < cap; i++) {
        struct str id;
        if (value_string(at, field, doc_skip(&c), &id) && !listed(ret, n, id) &&
            plan_agent_check_known(r, at, field, id)) {
            ret[n++] = id;
        }
    }
    return n;
}

/* ---- the policy of the plan ---- */

enum bt_code plan_agent_read_policy(struct plan_reader *r)
{
    struct str ids[LIMIT_PLAN_AGENTS];
    const struct location at = {.problems = r->problems, .prefix = "policy"};
    struct plan_policy *p = r->policy;
    enum bt_code code = plan_agent_resolve(r, &at, "gate", &p->gate, &p->gate_with);
    if (code == BT_OK) {
        code = plan_agent_resolve(r, &at, "verifyWith", &p->verifier, &p->verify_with);
    }
    p->n_fallback_ids =
        plan_agent_read_list(r, &at, "fallbackAgents", p->fallbacks, ids, LIMIT_PLAN_AGENTS);
    p->fallback_ids = arena_alloc(r->arena, (p->n_fallback_ids + 1) * sizeof ids[0]);
    if (p->fallback_ids == NULL) {
        return reader_nomem(r);
    }
    memcpy(p->fallback_ids, ids, p->n_fallback_ids * sizeof ids[0]);
    return code;
}
