/* The canonical document of a plan: the names of the README, every policy number written out. */
#include "supervisor/planner/plan_reader.h"

static void put_key(struct buf *out, const char *key, uint32_t *n)
{
    doc_put_cstr(out, key);
    (*n)++;
}

static void put_str(struct buf *out, const char *key, struct str v, uint32_t *n)
{
    put_key(out, key, n);
    doc_put_str(out, v);
}

static void put_name(struct buf *out, const char *key, const char *v, uint32_t *n)
{
    put_key(out, key, n);
    doc_put_cstr(out, v);
}

static void put_u64(struct buf *out, const char *key, uint64_t v, uint32_t *n)
{
    put_key(out, key, n);
    doc_put_u64(out, v);
}

static void put_backoff(struct buf *out, const struct backoff *b, uint32_t *n)
{
    uint32_t members = 0;
    put_key(out, "backoff", n);
    doc_put_map(out, 5);
    put_name(out, "kind", backoff_kind_name(b->kind), &members);
    put_u64(out, "initialMs", b->initial_ms, &members);
    put_key(out, "multiplier", &members);
    doc_put_f64(out, b->multiplier_permille / 1000.0);
    put_u64(out, "maxMs", b->max_ms, &members);
    put_key(out, "jitter", &members);
    doc_put_f64(out, b->jitter_permille / 1000.0);
}

static void put_policy(struct buf *out, const struct plan_policy *p, uint32_t *n)
{
    uint32_t members = 0;
    put_key(out, "policy", n);
    doc_put_map(out, 9);
    put_name(out, "onFailure", on_failure_name(p->step.on_failure), &members);
    put_u64(out, "maxRetries", p->step.max_retries, &members);
    put_backoff(out, &p->step.backoff, &members);
    put_u64(out, "stepTimeoutMs", p->step.timeout_ms, &members);
    put_u64(out, "planTimeoutMs", p->plan_timeout_ms, &members);
    put_u64(out, "maxConcurrency", p->max_concurrency, &members);
    put_name(out, "contextScope", context_scope_name(p->step.scope), &members);
    put_u64(out, "contextBudgetBytes", p->context_budget, &members);
    put_u64(out, "contextResultBytes", p->context_result, &members);
}

static bool same_backoff(const struct backoff *a, const struct backoff *b)
{
    return a->kind == b->kind && a->initial_ms == b->initial_ms && a->max_ms == b->max_ms &&
           a->multiplier_permille == b->multiplier_permille &&
           a->jitter_permille == b->jitter_permille;
}

static void put_deps(struct buf *out, const struct plan *plan, const struct plan_step *s,
                     uint32_t *n)
{
    put_key(out, "dependsOn", n);
    doc_put_array(out, s->deps_n);
    for (uint32_t i = 0; i < s->deps_n; i++) {
        doc_put_str(out, plan->steps[plan->deps[s->deps_at + i]].step_id);
    }
}

/* The members of a step; out may be a scratch of its own, since their number stands before them. */
static uint32_t put_step(struct buf *out, const struct plan *plan, const struct plan_step *s,
                         const struct step_policy *base)
{
    const struct step_policy *p = &s->policy;
    uint32_t n = 0;
    put_str(out, "stepId", s->step_id, &n);
    put_str(out, "agentId", s->agent_id, &n);
    if (s->skill.len > 0) {
        put_str(out, "skill", s->skill, &n);
    }
    put_str(out, "task", s->task, &n);
    if (!plan->chain) {
        put_deps(out, plan, s, &n);
    }
    if (s->parameters.ptr != NULL) {
        put_key(out, "parameters", &n);
        doc_put_doc(out, s->parameters);
    }
    if (s->verify.ptr != NULL) {
        put_key(out, "verify", &n);
        doc_put_doc(out, s->verify);
    }
    put_name(out, "effects", effects_name(p->effects), &n);
    if (p->on_failure != base->on_failure) {
        put_name(out, "onFailure", on_failure_name(p->on_failure), &n);
    }
    if (p->max_retries != base->max_retries) {
        put_u64(out, "maxRetries", p->max_retries, &n);
    }
    if (!same_backoff(&p->backoff, &base->backoff)) {
        put_backoff(out, &p->backoff, &n);
    }
    if (p->timeout_ms != base->timeout_ms) {
        put_u64(out, "timeoutMs", p->timeout_ms, &n);
    }
    if (p->run_if_always) {
        put_name(out, "runIf", "always", &n);
    }
    if (p->scope != base->scope) {
        put_name(out, "contextScope", context_scope_name(p->scope), &n);
    }
    return n;
}

enum bt_code plan_write(const struct plan *plan, const struct plan_policy *policy, struct buf *out,
                        struct bt_error *err)
{
    struct buf step;
    uint32_t n = 0;
    const uint32_t texts = (plan->goal.len > 0 ? 1u : 0u) + (plan->session_id.len > 0 ? 1u : 0u) +
                           (plan->planner.len > 0 ? 1u : 0u);
    buf_init(&step, LIMIT_CONTROL_BYTES * 2);
    doc_put_map(out, texts + 2);
    if (plan->goal.len > 0) {
        put_str(out, "goal", plan->goal, &n);
    }
    if (plan->session_id.len > 0) {
        put_str(out, "sessionId", plan->session_id, &n);
    }
    if (plan->planner.len > 0) {
        put_str(out, "planner", plan->planner, &n);
    }
    put_policy(out, policy, &n);
    put_key(out, "steps", &n);
    doc_put_array(out, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        buf_clear(&step);
        const uint32_t members = put_step(&step, plan, &plan->steps[i], &policy->step);
        doc_put_map(out, members);
        buf_add_str(out, buf_str(&step));
        out->bad = out->bad != BT_OK ? out->bad : step.bad;
    }
    buf_done(&step);
    return buf_check(out, err);
}
