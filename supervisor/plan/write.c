/* Writes the canonical document of a plan: canonical names, every number of the policy. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "supervisor/plan/writer_internal.h"

/* ---- policies ---- */

static void put_agent_ref(struct writer *w, const char *key, struct str agent_id, struct str skill,
                          const char *flag_name, bool flag)
{
    struct writer in = {.out = w->out};
    put_key(w, key);
    if (agent_id.len == 0) {
        doc_put_bool(w->out, false);
        return;
    }
    doc_put_map(w->out, skill.len > 0 ? 3 : 2);
    put_str(&in, "agentId", agent_id);
    if (skill.len > 0) {
        put_str(&in, "skill", skill);
    }
    put_bool(&in, flag_name, flag);
}

static void put_backoff(struct writer *w, const struct backoff *b)
{
    struct writer in = {.out = w->out};
    put_key(w, "backoff");
    doc_put_map(w->out, 5);
    put_name(&in, "kind", backoff_kind_name(b->kind));
    put_u64(&in, "initialMs", b->initial_ms);
    put_key(&in, "multiplier");
    doc_put_f64(w->out, b->multiplier_permille / 1000.0);
    put_u64(&in, "maxMs", b->max_ms);
    put_key(&in, "jitter");
    doc_put_f64(w->out, b->jitter_permille / 1000.0);
}

static void put_amounts(struct writer *w, const char *key, uint64_t tokens, uint64_t micros)
{
    struct writer in = {.out = w->out};
    put_key(w, key);
    doc_put_map(w->out, 2);
    put_u64(&in, "tokens", tokens);
    put_u64(&in, "costMicros", micros);
}

static void put_classes(struct writer *w, const char *key, uint32_t set)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < CLASS_COUNT; c++) {
        n += set >> c & 1;
    }
    put_key(w, key);
    doc_put_array(w->out, n);
    for (uint32_t c = 0; c < CLASS_COUNT; c++) {
        if ((set >> c & 1) != 0) {
            doc_put_cstr(w->out, err_class_name((enum err_class)c));
        }
    }
}

static bool same_backoff(const struct backoff *a, const struct backoff *b)
{
    return a->kind == b->kind && a->initial_ms == b->initial_ms && a->max_ms == b->max_ms &&
           a->multiplier_permille == b->multiplier_permille &&
           a->jitter_permille == b->jitter_permille;
}

static void put_ms(struct writer *w, const char *key, msec v, const msec *base)
{
    if (base == NULL || v != *base) {
        put_u64(w, key, v);
    }
}

/* Every number; with a base only those that differ from it. */
static void put_common(struct writer *w, const struct step_policy *p,
                       const struct step_policy *base, const char *timeout)
{
#define BASE(member) (base == NULL ? NULL : &base->member)
    if (base == NULL || p->on_verify != base->on_verify) {
        put_name(w, "onVerificationFailure", on_failure_name(p->on_verify));
    }
    if (base == NULL || p->max_retries != base->max_retries) {
        put_u64(w, "maxRetries", p->max_retries);
    }
    if (base == NULL || !same_backoff(&p->backoff, &base->backoff)) {
        put_backoff(w, &p->backoff);
    }
    /* Reading sets both, so they are written together. */
    if (base == NULL || p->no_retry != base->no_retry || p->retry_on != base->retry_on) {
        if (p->retry_on != 0) {
            put_classes(w, "retryOn", p->retry_on);
        }
        put_classes(w, "noRetry", p->no_retry);
    }
    put_ms(w, timeout, p->timeout_ms, BASE(timeout_ms));
    put_ms(w, "idleTimeoutMs", p->idle_ms, BASE(idle_ms));
    put_ms(w, "queueTimeoutMs", p->queue_timeout_ms, BASE(queue_timeout_ms));
    put_ms(w, "agentWaitMs", p->agent_wait_ms, BASE(agent_wait_ms));
    put_ms(w, "stepLimitMs", p->limit_ms, BASE(limit_ms));
    put_ms(w, "approvalTimeoutMs", p->approval_timeout_ms, BASE(approval_timeout_ms));
    put_ms(w, "checkTimeoutMs", p->check_timeout_ms, BASE(check_timeout_ms));
    if (base == NULL || p->requires_approval != base->requires_approval) {
        put_bool(w, "requiresApproval", p->requires_approval);
    }
    if (base == NULL || p->estimate_tokens != base->estimate_tokens ||
        p->estimate_micros != base->estimate_micros) {
        put_amounts(w, "estimate", p->estimate_tokens, p->estimate_micros);
    }
#undef BASE
}

static void put_replan(struct writer *w, const struct replan_policy *r)
{
    struct writer in = {.out = w->out};
    const bool skilled = r->agent_id.len > 0 && r->skill.len > 0;
    const bool budget = r->budget_tokens > 0 || r->budget_micros > 0;
    put_key(w, "replan");
    doc_put_map(w->out,
                4u + (r->agent_id.len > 0 ? 1u : 0u) + (skilled ? 1u : 0u) + (budget ? 1u : 0u));
    if (r->agent_id.len > 0) {
        put_str(&in, "agentId", r->agent_id);
    }
    if (skilled) {
        put_str(&in, "skill", r->skill);
    }
    put_u64(&in, "maxPerStep", r->max_step);
    put_u64(&in, "maxTotal", r->max_total);
    put_u64(&in, "cooldownMs", r->cooldown_ms);
    put_u64(&in, "timeoutMs", r->timeout_ms);
    if (budget) {
        put_amounts(&in, "budget", r->budget_tokens, r->budget_micros);
    }
}

static void put_policy_checkers(struct writer *w, const struct plan *plan)
{
    const struct plan_policy *p = plan->policy;
    if (p->gate_with.len > 0) {
        put_agent_ref(w, "gate", p->gate_with, p->gate.skill, "failClosed", p->step.gate_closed);
    }
    if (p->verify_with.len > 0) {
        put_agent_ref(w, "verifyWith", p->verify_with, p->verifier.skill, "failOpen",
                      p->step.verify_open);
    }
    if (p->n_fallback_ids > 0) {
        put_key(w, "fallbackAgents");
        doc_put_array(w->out, p->n_fallback_ids);
        for (uint32_t i = 0; i < p->n_fallback_ids; i++) {
            doc_put_str(w->out, p->fallback_ids[i]);
        }
    }
    put_replan(w, &plan->replan);
    put_key(w, "searchAgent");
    if (plan->search_with.len > 0) {
        doc_put_str(w->out, plan->search_with);
    } else {
        doc_put_bool(w->out, false);
    }
}

static void put_permitted(struct writer *w, struct doc globs)
{
    struct doc_cursor c = doc_cursor(globs);
    struct doc_head head;
    if (globs.ptr == NULL || !doc_next(&c, &head)) {
        return;
    }
    put_key(w, "agents");
    doc_put_array(w->out, head.kind == DOC_ARRAY ? head.n : 1);
    for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
        doc_put_doc(w->out, doc_skip(&c));
    }
    if (head.kind != DOC_ARRAY) {
        doc_put_doc(w->out, globs);
    }
}

static void write_policy(struct writer *w, const struct plan *plan)
{
    struct buf members;
    struct writer in = {.out = &members};
    buf_init(&members, LIMIT_CONTROL_BYTES);
    put_name(&in, "onFailure", on_failure_name(plan->policy->step.on_failure));
    put_common(&in, &plan->policy->step, NULL, "stepTimeoutMs");
    put_u64(&in, "planTimeoutMs", plan->timeout_ms);
    put_u64(&in, "maxConcurrency", plan->max_concurrency);
    if (!plan->planning.pending || plan->policy->scope_given) {
        put_name(&in, "contextScope", context_scope_name(plan->policy->step.scope));
    }
    put_u64(&in, "contextBudgetBytes", plan->context_budget);
    put_u64(&in, "contextResultBytes", plan->context_result);
    put_u64(&in, "maxFallbacks", plan->max_fallbacks);
    put_u64(&in, "maxHandoffs", plan->max_handoffs);
    put_u64(&in, "maxPauseMs", plan->max_pause_ms);
    put_bool(&in, "handback", plan->handback);
    put_permitted(&in, plan->policy->permitted);
    put_bool(&in, "signoff", plan->signoff);
    if (plan->priority != PLAN_PRIORITY) {
        put_u64(&in, "priority", plan->priority);
    }
    if (plan->keyed) {
        put_str(&in, "concurrencyKey", plan->keys.names[0]);
        put_name(&in, "overlap", key_overlap_name(plan->overlap));
    }
    if (plan->undo != UNDO_ON_FAILURE) {
        put_bool(&in, "compensate", plan->undo == UNDO_ALWAYS);
    }
    if (plan->policy->wait_for_agents) {
        put_bool(&in, "waitForAgents", true);
    }
    put_amounts(&in, "budget", plan->budget_tokens, plan->budget_micros);
    put_policy_checkers(&in, plan);
    plan_write_phases_policy(&in, plan);
    put_key(w, "policy");
    doc_put_map(w->out, in.n);
    buf_add_str(w->out, buf_str(&members));
    w->out->bad = w->out->bad != BT_OK ? w->out->bad : members.bad;
    buf_done(&members);
}

static void write_step_policy(struct writer *w, const struct plan_step *s,
                              const struct step_policy *base)
{
    const struct step_policy *p = &s->rules->policy;
    /* A synthesis_gate has its own defaults of these. */
    const bool own = s->type == STEP_TYPE_SYNTHESIS;
    put_name(w, "effects", effects_name(p->effects));
    if (own || base == NULL || p->on_failure != base->on_failure) {
        put_name(w, "onFailure", on_failure_name(p->on_failure));
    }
    put_common(w, p, base, "timeoutMs");
    if (p->run_if != RUN_IF_SUCCESS) {
        put_name(w, "runIf", run_if_name(p->run_if));
    }
    if (own || base == NULL || p->scope != base->scope) {
        put_name(w, "contextScope", context_scope_name(p->scope));
    }
}

/* ---- steps ---- */

/* A superseded step is named with its revision: a later step may have the same id. */
static void put_dep(struct buf *out, const struct plan_step *dep)
{
    char text[LIMIT_ID_BYTES + 16];
    if (!dep->superseded) {
        doc_put_str(out, dep->step_id);
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s@%u", STR_ARG(dep->step_id), dep->revision);
    doc_put_cstr(out, text);
}

static void put_deps(struct writer *w, const struct plan *plan, const struct plan_step *s)
{
    put_key(w, "dependsOn");
    doc_put_array(w->out, s->deps_n);
    for (uint32_t i = 0; i < s->deps_n; i++) {
        put_dep(w->out, &plan->steps[plan->deps[s->deps_at + i]]);
    }
}

static void put_agent(struct writer *w, const struct plan_step *s)
{
    if (!plan_step_has_agent(s)) {
        return;
    }
    put_str(w, "agentId", s->agent_id);
    if (s->skill.len > 0) {
        put_str(w, "skill", s->skill);
    }
}

static void put_history(struct writer *w, const struct plan_step *s)
{
    if (s->revision != 1) {
        put_u64(w, "revision", s->revision);
    }
    if (s->superseded) {
        put_bool(w, "superseded", true);
    }
    if (s->after_any_end) {
        put_bool(w, "afterAnyEnd", true);
    }
}

static void put_fallbacks(struct writer *w, const struct plan *plan, const struct plan_step *s)
{
    put_key(w, "fallbackAgents");
    doc_put_array(w->out, s->alternatives_n);
    for (uint32_t i = 0; i < s->alternatives_n; i++) {
        doc_put_str(w->out, plan->agents.ids[plan->alternatives[s->alternatives_at + i]]);
    }
}

/* Where the plan has a value for all steps, each step writes its own. */
static void put_step_checkers(struct writer *w, const struct plan *plan, const struct plan_step *s)
{
    const struct plan_policy *base = plan->policy;
    if (base->gate_with.len > 0 || s->rules->gate_with.len > 0) {
        put_agent_ref(w, "gate", s->rules->gate_with, s->rules->gate_skill, "failClosed",
                      s->rules->policy.gate_closed);
    }
    if (plan_step_is_agentless(s)) {
        return;
    }
    if (base->verify_with.len > 0 || s->rules->verify_with.len > 0) {
        put_agent_ref(w, "verifyWith", s->rules->verify_with, s->rules->verify_skill, "failOpen",
                      s->rules->policy.verify_open);
    }
    if (base->n_fallback_ids > 0 || s->alternatives_n > 0) {
        put_fallbacks(w, plan, s);
    }
}

static void put_wait(struct writer *w, const struct plan_wait *wait)
{
    char date[CLOCK_ISO_LEN + 1];
    const bool signal = wait->what == WAIT_FOR_SIGNAL;
    const bool schema = signal && wait->schema.ptr != NULL;
    put_key(w, "wait");
    doc_put_map(w->out, 1u + (signal && wait->ms > 0 ? 1u : 0u) + (schema ? 1u : 0u));
    if (wait->what == WAIT_FOR_DATE) {
        clock_iso(wait->until, date);
        doc_put_cstr(w->out, "until");
        doc_put_cstr(w->out, date);
        return;
    }
    if (signal) {
        doc_put_cstr(w->out, "signal");
        doc_put_str(w->out, wait->signal);
    }
    if (!signal || wait->ms > 0) {
        doc_put_cstr(w->out, signal ? "timeoutMs" : "forMs");
        doc_put_u64(w->out, wait->ms);
    }
    if (schema) {
        doc_put_cstr(w->out, "schema");
        doc_put_doc(w->out, wait->schema);
    }
}

static void put_step(struct writer *w, const struct plan *plan, const struct plan_step *s)
{
    put_str(w, "stepId", s->step_id);
    if (s->type != STEP_TYPE_TASK && s->type != STEP_TYPE_PLAN) {
        put_name(w, "type", step_type_name(s->type));
    }
    put_agent(w, s);
    put_str(w, "task", s->task);
    if (!plan->chain) {
        put_deps(w, plan, s);
    }
    put_history(w, s);
    if (s->parameters.ptr != NULL) {
        put_key(w, "parameters");
        doc_put_doc(w->out, s->parameters);
    }
    if (s->rules->when.ptr != NULL) {
        put_key(w, "when");
        doc_put_doc(w->out, s->rules->when);
    }
    if (s->wait != NULL) {
        put_wait(w, s->wait);
    }
    if (s->key != 0) {
        put_str(w, "concurrencyKey", plan->keys.names[s->key - 1]);
    }
    if (s->rules->verify.ptr != NULL) {
        put_key(w, "verify");
        doc_put_doc(w->out, s->rules->verify);
    }
    if (s->rules->child.ptr != NULL) {
        put_key(w, "child");
        doc_put_doc(w->out, s->rules->child);
    }
    if (s->item.ptr != NULL) {
        put_key(w, "item");
        doc_put_doc(w->out, s->item);
        put_u64(w, "index", s->index);
    }
    if (s->rules->compensate.ptr != NULL) {
        put_key(w, "compensate");
        doc_put_doc(w->out, s->rules->compensate);
    }
    if (s->rules->tools.ptr != NULL) {
        put_key(w, "tools");
        doc_put_doc(w->out, s->rules->tools);
    }
    put_step_checkers(w, plan, s);
    write_step_policy(w, s, &plan->policy->step);
}

enum bt_code plan_write_compensation(const struct plan *plan, struct buf *out, struct bt_error *err)
{
    const struct plan_step *s = &plan->steps[0];
    struct buf members;
    struct writer w = {.out = &members};
    buf_init(&members, LIMIT_STEP_BYTES);
    put_agent(&w, s);
    put_str(&w, "task", s->task);
    if (s->parameters.ptr != NULL) {
        put_key(&w, "parameters");
        doc_put_doc(w.out, s->parameters);
    }
    if (s->rules->verify.ptr != NULL) {
        put_key(&w, "verify");
        doc_put_doc(w.out, s->rules->verify);
    }
    put_step_checkers(&w, plan, s);
    write_step_policy(&w, s, NULL);
    doc_put_map(out, w.n);
    buf_add_str(out, buf_str(&members));
    out->bad = out->bad != BT_OK ? out->bad : members.bad;
    buf_done(&members);
    return buf_check(out, err);
}

static enum bt_code put_steps(struct buf *out, const struct plan *plan, struct bt_error *err)
{
    struct buf step;
    buf_init(&step, LIMIT_STEP_BYTES);
    doc_put_array(out, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        struct writer w = {.out = &step};
        buf_clear(&step);
        put_step(&w, plan, &plan->steps[i]);
        doc_put_map(out, w.n);
        buf_add_str(out, buf_str(&step));
        out->bad = out->bad != BT_OK ? out->bad : step.bad;
    }
    buf_done(&step);
    return buf_check(out, err);
}

static void put_grants(struct writer *w, const struct plan *plan)
{
    put_key(w, "grants");
    doc_put_array(w->out, plan->agents.n);
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        doc_put_str(w->out, plan->agents.ids[i]);
    }
}

enum bt_code plan_write(const struct plan *plan, struct buf *out, struct bt_error *err)
{
    struct buf head;
    struct writer w = {.out = &head};
    buf_init(&head, LIMIT_STEP_BYTES);
    if (plan->goal.len > 0) {
        put_str(&w, "goal", plan->goal);
    }
    if (plan->session_id.len > 0) {
        put_str(&w, "sessionId", plan->session_id);
    }
    if (plan->planner.len > 0) {
        put_str(&w, "planner", plan->planner);
    }
    if (plan->revision != 1) {
        put_u64(&w, "revision", plan->revision);
    }
    plan_about_write(&w, &plan->policy->about);
    plan_write_phases(&w, plan);
    if (plan->child.kind != CHILD_OF_NONE) {
        put_key(&w, "child");
        child_of_write(&plan->child, (struct doc){NULL, 0}, w.out);
    }
    write_policy(&w, plan);
    put_grants(&w, plan);
    put_key(&w, "steps");
    doc_put_map(out, w.n);
    buf_add_str(out, buf_str(&head));
    out->bad = out->bad != BT_OK ? out->bad : head.bad;
    buf_done(&head);
    return put_steps(out, plan, err);
}
