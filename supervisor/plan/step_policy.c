/* The policy of a step, its checks and its fallbacks. */
#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "supervisor/plan/reader_internal.h"
#include "supervisor/plan/signature_internal.h"

/* The most alternatives that a step with only a skill gets. */
enum { ALTERNATIVES_BY_SKILL = 4 };

/* A review or a wait: no agent works on it. */
static bool is_review(const struct step_reader *s)
{
    return plan_step_is_agentless(s->step);
}

/* ---- effects ---- */

/* The step's own value, else the card's, else idempotent, which permits retries. Of an agent that
 * is known by its name alone, as after a restart, nothing is known: unsafe. A review has none. */
static void read_effects(struct step_reader *s)
{
    static const char *const names[] = {"none", "idempotent", "unsafe"};
    const struct plan_reader *r = s->r;
    const bool of_agent = !r->canonical && r->registry != NULL;
    const struct msg_card *card = of_agent && s->step->agent != REGISTRY_NONE
                                      ? registry_agent_view(r->registry, s->step->agent).card
                                      : NULL;
    const uint32_t skill = card == NULL ? UINT32_MAX : card_skill(card, s->step->skill);
    uint32_t choice = of_agent && card == NULL ? EFFECTS_UNSAFE : EFFECTS_IDEMPOTENT;
    for (uint32_t i = 0; skill != UINT32_MAX && i < 3; i++) {
        choice = str_is(card->skills[skill].effects, names[i]) ? i : choice;
    }
    const uint32_t least = r->untrusted ? choice : 0; /* a planner cannot weaken the card */
    (void)value_choice(&s->at, "effects", s->values[STEP_EFFECTS], names, 3, &choice);
    choice = skill != UINT32_MAX && choice < least ? least : choice;
    s->step->rules->policy.effects = is_review(s) ? EFFECTS_NONE : (enum effects)choice;
}

/* ---- numbers ---- */

/* The plan's policy, without what does not apply to this type of step. */
static void start_policy(struct step_reader *s)
{
    struct step_policy *p = &s->step->rules->policy;
    *p = s->r->policy->step;
    /* COUNT means "as the plan": the scope depends on whether the plan is a chain, which is not
     * known yet. */
    p->scope = SCOPE_COUNT;
    if (is_review(s)) { /* it is an approval itself and costs nothing */
        p->requires_approval = false;
        p->estimate_tokens = 0;
        p->estimate_micros = 0;
    } else if (s->step->type == STEP_TYPE_SYNTHESIS) {
        p->on_failure = ON_FAILURE_ABORT;
    }
}

static void read_policy(struct step_reader *s)
{
    static const char *const run_if[] = {"success", "always", "failure"};
    struct step_policy *p = &s->step->rules->policy;
    bool scope_given = false;
    uint32_t choice = 0;
    start_policy(s);
    policy_common(&s->at, s->values, &s->r->reported, p);
    policy_timeout(&s->at, "timeoutMs", s->values[STEP_TIMEOUT], &p->timeout_ms);
    policy_scope(&s->at, s->values[COM_SCOPE], &p->scope, &scope_given);
    (void)value_choice(&s->at, "runIf", s->values[STEP_RUN_IF], run_if, RUN_IF_COUNT, &choice);
    p->run_if = (enum run_if)choice;
    if (s->r->untrusted && !is_review(s) && s->r->policy->step.requires_approval) {
        p->requires_approval = true; /* a planner cannot remove it (G26) */
    }
    read_effects(s);
}

/* ---- verification and gate ---- */

/* {"allOf": [verify, signature]} when a step has both. */
static enum bt_code add_to_verify(struct step_reader *s, struct doc schema)
{
    struct buf both;
    if (s->step->rules->verify.ptr == NULL) {
        s->step->rules->verify = schema;
        return BT_OK;
    }
    buf_init(&both, LIMIT_CONTROL_BYTES);
    doc_put_map(&both, 1);
    doc_put_cstr(&both, "allOf");
    doc_put_array(&both, 2);
    doc_put_doc(&both, s->step->rules->verify);
    doc_put_doc(&both, schema);
    s->step->rules->verify =
        both.bad == BT_OK ? doc_copy(s->r->arena, doc_from_buf(&both)) : (struct doc){NULL, 0};
    buf_done(&both);
    return s->step->rules->verify.ptr == NULL ? reader_nomem(s->r) : BT_OK;
}

/* PtcRunner's types of a result, or a JSON Schema; they are checked as `verify` is. */
static enum bt_code read_signature(struct step_reader *s)
{
    const struct doc value = s->values[STEP_SIGNATURE];
    struct bt_error why = {.code = BT_OK};
    struct buf schema;
    struct doc kept = {NULL, 0};
    if (value.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(value).kind != DOC_STR) {
        return doc_head(value).kind == DOC_BOOL || value_map(&s->at, "signature", value)
                   ? add_to_verify(s, value)
                   : BT_OK;
    }
    buf_init(&schema, LIMIT_CONTROL_BYTES);
    enum bt_code code = plan_signature_schema(doc_string(value), &schema, &why);
    if (code == BT_OK) {
        kept = doc_copy(s->r->arena, doc_from_buf(&schema));
        code = kept.ptr == NULL ? reader_nomem(s->r) : add_to_verify(s, kept);
    } else if (code != BT_NOMEM) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "signature", "%s", why.msg);
        code = BT_OK;
    }
    buf_done(&schema);
    return code == BT_NOMEM ? reader_nomem(s->r) : code;
}

/* What a step with `plan` would seem to do, and does not. */
static void refuse_of_plan(struct step_reader *s)
{
    if (s->step->type != STEP_TYPE_PLAN || s->r->canonical) {
        return;
    }
    if (s->step->rules->verify.ptr != NULL) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "verify",
                        "is not for a step with a plan of its own; give it to the last of the "
                        "steps inside, or name an agent with verifyWith");
    }
    if (s->values[STEP_PARAMETERS].ptr != NULL) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "parameters",
                        "are not for a step with a plan of its own; its values are plan.inputs");
    }
}

static enum bt_code read_verify(struct step_reader *s)
{
    const enum doc_kind kind = doc_head(s->values[STEP_VERIFY]).kind;
    if (kind == DOC_BOOL || value_map(&s->at, "verify", s->values[STEP_VERIFY])) {
        s->step->rules->verify = s->values[STEP_VERIFY];
    }
    const enum bt_code code = read_signature(s);
    refuse_of_plan(s);
    if (is_review(s) &&
        (s->step->rules->verify.ptr != NULL || s->values[COM_VERIFY_WITH].ptr != NULL)) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "verify",
                        s->step->type == STEP_TYPE_WAIT
                            ? "a wait has no result to verify; a signal has wait.schema"
                            : "a human_review has no result to verify; leave verify and verifyWith "
                              "out");
    }
    return code;
}

/* A planner cannot change the gate and verifier of the plan's policy; it may add others (G26). */
static bool is_fixed(const struct step_reader *s, struct str plans_own)
{
    return s->r->untrusted && plans_own.len > 0;
}

/* The plan's own agents were resolved and granted when the plan was submitted. */
static enum bt_code find_checker(struct step_reader *s, const char *field, struct str plans_own,
                                 const struct agent_ref *ref, struct str *ret)
{
    if (is_fixed(s, plans_own)) {
        *ret = ref->agent_id;
        return BT_OK;
    }
    return plan_agent_resolve(s->r, &s->at, field, ref, ret);
}

static enum bt_code read_checkers(struct step_reader *s)
{
    const struct plan_policy *base = s->r->policy;
    struct step_policy *p = &s->step->rules->policy;
    /* plan_reader_finish removes the plan's gate from steps without dependencies. */
    struct agent_ref gate = {.agent_id = base->gate_with, .skill = base->gate.skill};
    struct agent_ref verifier = {.agent_id = base->verify_with, .skill = base->verifier.skill};
    bool closed = !p->verify_open;
    if (base->gate_with.len == 0) {
        gate = (struct agent_ref){.given = false};
    }
    if (base->verify_with.len == 0 || is_review(s)) {
        verifier = (struct agent_ref){.given = false};
    }
    if (!is_fixed(s, base->gate_with)) {
        policy_agent_ref(&s->at, "gate", s->values[COM_GATE], "gate", &s->r->reported, &gate,
                         &p->gate_closed);
        s->gate_given = gate.given;
    }
    if (!is_fixed(s, base->verify_with)) {
        policy_agent_ref(&s->at, "verifyWith", s->values[COM_VERIFY_WITH], "", &s->r->reported,
                         &verifier, &closed);
    }
    p->verify_open = !closed;
    s->step->rules->gate_skill = gate.skill;
    s->step->rules->verify_skill = verifier.skill;
    const enum bt_code code =
        find_checker(s, "gate", base->gate_with, &gate, &s->step->rules->gate_with);
    return code != BT_OK ? code
                         : find_checker(s, "verifyWith", base->verify_with, &verifier,
                                        &s->step->rules->verify_with);
}

/* ---- alternatives ---- */

static void add_alternative(struct step_reader *s, struct str id)
{
    buf_add(&s->r->fallbacks, &id, sizeof id);
    s->r->plan->n_alternatives++;
    s->step->alternatives_n++;
}

/* For a step that has only a skill: other agents that have it. */
static enum bt_code others_with_the_skill(struct step_reader *s)
{
    const struct registry *reg = s->r->registry;
    const uint32_t n = reg == NULL ? 0 : registry_agents(reg);
    for (uint32_t i = 0; i < n && s->step->alternatives_n < ALTERNATIVES_BY_SKILL; i++) {
        const struct agent_view agent = registry_agent_view(reg, i);
        if (i == s->step->agent || !agent.enabled || !agent.expected ||
            !plan_agent_is_permitted(s->r, agent.id) || agent.card == NULL ||
            card_skill(agent.card, s->step->skill) == UINT32_MAX ||
            (s->r->granted_only && plan_grant_find(s->r->plan, agent.id) == UINT32_MAX)) {
            continue;
        }
        const struct str kept = arena_str(s->r->arena, agent.id);
        if (kept.ptr == NULL) {
            return reader_nomem(s->r);
        }
        add_alternative(s, kept);
    }
    return BT_OK;
}

/* The plan's list applies to steps whose skill its agents have; a step's own list must fit. */
static enum bt_code read_fallbacks(struct step_reader *s)
{
    const struct plan_policy *base = s->r->policy;
    const struct doc own = s->values[COM_FALLBACKS];
    struct str ids[LIMIT_PLAN_AGENTS];
    const uint32_t n =
        plan_agent_read_list(s->r, &s->at, "fallbackAgents", own, ids, LIMIT_PLAN_AGENTS);
    enum bt_code code = BT_OK;
    s->step->alternatives_at = s->r->plan->n_alternatives;
    for (uint32_t i = 0; i < n; i++) {
        if (!plan_agent_has_skill(s->r, ids[i], s->step->skill)) {
            location_report(&s->at, PROBLEM_MISSING_SKILL, false, "fallbackAgents",
                            "agent \"%.*s\" has no skill \"%.*s\"", STR_ARG(ids[i]),
                            STR_ARG(s->step->skill));
        } else if (!str_eq(ids[i], s->step->agent_id)) {
            add_alternative(s, ids[i]);
        }
    }
    for (uint32_t i = 0; own.ptr == NULL && i < base->n_fallback_ids; i++) {
        if (plan_agent_has_skill(s->r, base->fallback_ids[i], s->step->skill) &&
            !str_eq(base->fallback_ids[i], s->step->agent_id)) {
            add_alternative(s, base->fallback_ids[i]);
        }
    }
    if (own.ptr == NULL && base->n_fallback_ids == 0 && s->by_skill && !s->r->canonical &&
        base->max_fallbacks > 0) {
        code = others_with_the_skill(s);
    }
    return code == BT_OK ? buf_check(&s->r->fallbacks, s->r->err) : code;
}

uint32_t plan_key_add(struct plan_reader *r, struct str name)
{
    struct plan_keys *k = &r->plan->keys;
    for (uint32_t i = r->plan->keyed ? 1 : 0; i < k->n; i++) {
        if (str_eq(k->names[i], name)) {
            return i + 1;
        }
    }
    if (k->n == LIMIT_PLAN_KEYS) {
        return 0;
    }
    k->names[k->n] = name;
    k->at[k->n] = KEY_NONE;
    return ++k->n;
}

static void read_key(struct step_reader *s)
{
    struct str key;
    if (!policy_key(&s->at, s->values[STEP_KEY], &key)) {
        return;
    }
    if (!plan_step_has_agent(s->step)) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "concurrencyKey",
                        s->step->type == STEP_TYPE_PLAN
                            ? "is not for a step with a plan of its own; give it to the steps "
                              "inside, or to the policy of the plan inside"
                            : "is for the work of agents, and no agent does this step");
        return;
    }
    s->step->key = plan_key_add(s->r, key);
    if (s->step->key == 0) {
        location_report(&s->at, PROBLEM_LIMIT, false, "concurrencyKey",
                        "is one of more than %u different ones; a plan and its steps may have %u",
                        (unsigned)LIMIT_PLAN_KEYS, (unsigned)LIMIT_PLAN_KEYS);
    }
}

enum bt_code plan_step_policy(struct step_reader *s)
{
    read_policy(s);
    read_key(s);
    enum bt_code code = read_verify(s);
    code = code == BT_OK ? read_checkers(s) : code;
    return code == BT_OK && !is_review(s) ? read_fallbacks(s) : code;
}
