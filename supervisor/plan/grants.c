/* The agents that a plan may use, and their indexes in the registry. */
#include "protocol/base/glob.h"
#include "supervisor/plan/permit.h"
#include "supervisor/plan/reader_internal.h"

/* ---- policy.agents ---- */

bool plan_permits(struct doc globs, struct str agent_id)
{
    struct doc_cursor c = doc_cursor(globs);
    struct doc_head head;
    if (globs.ptr == NULL || !doc_next(&c, &head)) {
        return true;
    }
    if (head.kind != DOC_ARRAY) {
        return glob_fits(doc_string(globs), agent_id);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        if (glob_fits(doc_string(doc_skip(&c)), agent_id)) {
            return true;
        }
    }
    return false;
}

struct doc plan_permitted_of(struct doc document)
{
    const struct doc policy = doc_get(document, STR_LIT("policy"));
    return doc_get(policy.ptr != NULL ? policy : document, STR_LIT("agents"));
}

static bool has_flag(struct doc policy, const char *name)
{
    const struct doc value = doc_get(policy, str_from(name));
    const struct doc_head head = doc_head(value);

    return value.ptr != NULL && head.kind == DOC_BOOL && head.b;
}

bool plan_waits_for_agents(struct doc document)
{
    const struct doc inner = doc_get(document, STR_LIT("policy"));
    const struct doc policy = inner.ptr != NULL ? inner : document;

    return has_flag(policy, "waitForAgents") || has_flag(policy, "wait_for_agents");
}

/* ---- grants ---- */

uint32_t plan_grant_find(const struct plan *plan, struct str agent_id)
{
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        if (str_eq(plan->agents.ids[i], agent_id)) {
            return i;
        }
    }
    return UINT32_MAX;
}

enum bt_code plan_grants_init(struct plan_reader *r)
{
    struct plan_agents *a = &r->plan->agents;
    a->ids = arena_alloc(&r->scratch, LIMIT_PLAN_AGENTS * sizeof a->ids[0]);
    a->at = arena_alloc(&r->scratch, LIMIT_PLAN_AGENTS * sizeof a->at[0]);
    return a->ids == NULL || a->at == NULL ? reader_nomem(r) : BT_OK;
}

/*
 * The index in plan->agents, which gets the agent if it is new. UINT32_MAX when there is no room or
 * the id is empty.
 */
static uint32_t add(struct plan_reader *r, struct str id)
{
    struct plan_agents *a = &r->plan->agents;
    const uint32_t at = id.len == 0 ? UINT32_MAX : plan_grant_find(r->plan, id);
    if (at != UINT32_MAX || id.len == 0) {
        return at;
    }
    if (a->n == LIMIT_PLAN_AGENTS) {
        r->rejected_agents++;
        return UINT32_MAX;
    }
    a->ids[a->n] = id;
    a->at[a->n] = r->registry == NULL ? AGENT_NONE : registry_agent(r->registry, id);
    return a->n++;
}

static void add_listed(struct plan_reader *r, const char *prefix, const char *field,
                       struct doc list)
{
    const struct location at = {.problems = r->problems, .prefix = prefix};
    struct str ids[LIMIT_PLAN_AGENTS];
    const uint32_t n = plan_agent_read_list(r, &at, field, list, ids, LIMIT_PLAN_AGENTS);
    for (uint32_t i = 0; i < n; i++) {
        (void)add(r, ids[i]);
    }
}

static bool is_star(struct doc list)
{
    return str_is(doc_string(doc_head(list).kind == DOC_ARRAY ? doc_at(list, 0) : list), "*");
}

/* handoffTo ["*"]: all agents that are there now, or expected. */
static enum bt_code add_all_agents(struct plan_reader *r)
{
    const struct location at = {.problems = r->problems, .prefix = "policy"};
    const uint32_t n = r->registry == NULL ? 0 : registry_agents(r->registry);
    for (uint32_t i = 0; i < n; i++) {
        const struct agent_view view = registry_agent_view(r->registry, i);
        if (!view.expected || !plan_agent_is_permitted(r, view.id) ||
            plan_grant_find(r->plan, view.id) != UINT32_MAX) {
            continue;
        }
        if (r->plan->agents.n == LIMIT_PLAN_AGENTS) {
            location_report(&at, PROBLEM_STYLE, true, "handoffTo",
                            "\"*\" stands for the first %u agents only: a plan may use no more",
                            (unsigned)LIMIT_PLAN_AGENTS);
            break;
        }
        const struct str kept = arena_str(r->arena, view.id);
        if (kept.ptr == NULL) {
            return reader_nomem(r);
        }
        (void)add(r, kept);
    }
    return BT_OK;
}

/* ---- replanner and search agent ---- */

/* The first entry with onFailure replan; UINT32_MAX = none. */
static uint32_t first_replan(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (!p->steps[i].superseded && wants_replan(&p->steps[i].rules->policy)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static enum bt_code find_replanner(struct plan_reader *r)
{
    static const struct agent_ref planner = {.skill = {"plan", 4}};
    const struct location at = {.problems = r->problems, .prefix = "policy"};
    const struct agent_ref *ref = &r->policy->replanner;
    struct str *id = &r->plan->replan.agent_id;
    const uint32_t step = first_replan(r->plan);
    r->plan->replan.skill = ref->skill;
    if (r->canonical || ref->given) {
        const enum bt_code code = plan_agent_resolve(r, &at, "replan", ref, id);
        if (code != BT_OK || r->canonical || ref->agent_id.len + ref->skill.len > 0) {
            return code;
        }
    }
    if (step == UINT32_MAX || id->len > 0 || r->registry == NULL || r->outer) {
        return BT_OK; /* whoever reads a body refuses a replan in it */
    }
    if (!ref->given && plan_agent_with_skill(r, planner.skill) != REGISTRY_NONE) {
        return plan_agent_resolve(r, &at, "replan", &planner, id);
    }
    location_report(&at, PROBLEM_MISSING_AGENT, false, "replan",
                    "step \"%.*s\" asks for a replan, but the plan has no replanner; add "
                    "policy.replan.agent, or register an agent with the skill \"plan\"",
                    STR_ARG(r->plan->steps[step].step_id));
    return BT_OK;
}

/* Nobody unless the plan asks for it (M042): the search agent gets a step's parameters. By a skill
 * it is one of the agents that the plan names anyway. */
static enum bt_code find_searcher(struct plan_reader *r)
{
    const struct location at = {.problems = r->problems, .prefix = "policy"};
    const struct agent_ref *ref = &r->policy->searcher;
    const bool granted_only = r->granted_only;
    r->granted_only = granted_only || ref->agent_id.len == 0;
    const enum bt_code code = plan_agent_resolve(r, &at, "searchAgent", ref, &r->plan->search_with);
    r->granted_only = granted_only;
    return code;
}

/* ---- entry points ---- */

static uint32_t index_of(const struct plan_reader *r, struct str id)
{
    return r->registry == NULL || id.len == 0 ? AGENT_NONE : registry_agent(r->registry, id);
}

static void add_steps(struct plan_reader *r)
{
    for (uint32_t i = 0; i < r->plan->n_steps; i++) {
        struct plan_step *s = &r->plan->steps[i];
        (void)add(r, s->agent_id);
        (void)add(r, s->rules->gate_with);
        (void)add(r, s->rules->verify_with);
        s->rules->gate_agent = index_of(r, s->rules->gate_with);
        s->rules->verify_agent = index_of(r, s->rules->verify_with);
    }
    for (size_t i = 0; i < r->below.len / sizeof(struct str); i++) {
        (void)add(r, ((const struct str *)(const void *)r->below.at)[i]);
    }
}

static enum bt_code add_alternatives(struct plan_reader *r)
{
    struct plan *p = r->plan;
    const struct str *ids = (const struct str *)(const void *)r->fallbacks.at;
    p->alternatives = arena_alloc(r->arena, (p->n_alternatives + 1) * sizeof p->alternatives[0]);
    if (p->alternatives == NULL) {
        return reader_nomem(r);
    }
    for (uint32_t i = 0; i < p->n_alternatives; i++) {
        p->alternatives[i] = add(r, ids[i]);
    }
    return BT_OK;
}

/* The agents of a whole plan. A change already has them. */
static enum bt_code add_named(struct plan_reader *r)
{
    enum bt_code code = BT_OK;
    if (is_star(r->policy->handoff_to)) {
        code = add_all_agents(r);
    } else {
        add_listed(r, "policy", "handoffTo", r->policy->handoff_to);
    }
    code = code == BT_OK ? find_searcher(r) : code;
    (void)add(r, r->plan->search_with);
    return code;
}

/* The plan keeps arrays of the exact size: most plans have one or two agents, and thousands may
 * wait. */
static enum bt_code keep_exact(struct plan_reader *r)
{
    struct plan_agents *a = &r->plan->agents;
    struct str *ids = arena_alloc(r->arena, (a->n + 1) * sizeof ids[0]);
    uint32_t *at = arena_alloc(r->arena, (a->n + 1) * sizeof at[0]);
    if (ids == NULL || at == NULL) {
        return reader_nomem(r);
    }
    memcpy(ids, a->ids, a->n * sizeof ids[0]);
    memcpy(at, a->at, a->n * sizeof at[0]);
    a->ids = ids;
    a->at = at;
    return BT_OK;
}

enum bt_code plan_grants(struct plan_reader *r)
{
    struct plan *p = r->plan;
    enum bt_code code = BT_OK;
    add_listed(r, "", "grants", r->grants);
    add_steps(r);
    code = add_alternatives(r);
    if (code == BT_OK && (r->change == NULL || p->replan.agent_id.len == 0)) {
        code = find_replanner(r);
    }
    (void)add(r, p->replan.agent_id);
    if (code == BT_OK && r->change == NULL) {
        code = add_named(r);
        code = code == BT_OK ? plan_phases_resolve(r) : code;
    }
    if (r->rejected_agents > 0) {
        const struct location at = {.problems = r->problems, .prefix = ""};
        location_report(&at, PROBLEM_LIMIT, false, "steps",
                        "the plan names more than the %u different agents that it may use",
                        (unsigned)LIMIT_PLAN_AGENTS);
    }
    p->replan.agent = index_of(r, p->replan.agent_id);
    p->search_agent = index_of(r, p->search_with);
    return code == BT_OK ? keep_exact(r) : code;
}

/* ---- indexes ---- */

static uint32_t resolved(const struct plan *p, struct registry *registry, msec now, struct str id)
{
    const uint32_t at = id.len == 0 ? UINT32_MAX : plan_grant_find(p, id);
    if (at != UINT32_MAX) {
        return p->agents.at[at];
    }
    return id.len == 0 ? AGENT_NONE : registry_agent_add(registry, id, now);
}

enum bt_code plan_resolve(struct plan *plan, struct registry *registry, msec now,
                          struct bt_error *err)
{
    bool all = true;
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        const uint32_t agent = registry_agent_add(registry, plan->agents.ids[i], now);
        plan->agents.at[i] = agent;
        all = all && agent != REGISTRY_NONE;
        if (agent != REGISTRY_NONE && plan->policy != NULL && !plan->policy->wait_for_agents) {
            /* It was there when the plan was made, by this daemon or one before: it is seen. */
            registry_agent_card(registry, agent, registry_agent_view(registry, agent).card);
        }
    }
    for (uint32_t i = 0; i < plan->n_steps && all; i++) {
        struct plan_step *s = &plan->steps[i];
        s->agent = resolved(plan, registry, now, s->agent_id);
        s->rules->gate_agent = resolved(plan, registry, now, s->rules->gate_with);
        s->rules->verify_agent = resolved(plan, registry, now, s->rules->verify_with);
        all = (s->agent != AGENT_NONE || !plan_step_has_agent(s)) &&
              (s->rules->gate_agent != AGENT_NONE || s->rules->gate_with.len == 0) &&
              (s->rules->verify_agent != AGENT_NONE || s->rules->verify_with.len == 0);
    }
    plan->replan.agent = resolved(plan, registry, now, plan->replan.agent_id);
    plan->search_agent = resolved(plan, registry, now, plan->search_with);
    plan->planning.agent = resolved(plan, registry, now, plan->planning.agent_id);
    plan->synthesis.agent = resolved(plan, registry, now, plan->synthesis.agent_id);
    all = all && (plan->planning.agent != AGENT_NONE || plan->planning.agent_id.len == 0) &&
          (plan->synthesis.agent != AGENT_NONE || plan->synthesis.agent_id.len == 0);
    return all ? BT_OK
               : err_set(err, BT_LIMIT, "there are too many agents to know all those of the plan");
}
