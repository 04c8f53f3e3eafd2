/* The canonical document of a plan: the names of the README, every policy number written out. */
#include <stdio.h>

#include "supervisor/plan/writer_internal.h"

/* A step that is superseded has its revision with its name: others may be called so again. */
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

static void put_who_does_it(struct writer *w, const struct plan_step *s)
{
    if (s->type == STEP_TYPE_REVIEW) {
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

/* Where the plan says something for all steps, each says for itself what it has of it. */
static void put_asked(struct writer *w, const struct plan *plan, const struct plan_step *s)
{
    const struct plan_policy *base = plan->policy;
    if (base->gate_with.len > 0 || s->gate_with.len > 0) {
        put_who(w, "gate", s->gate_with, s->gate_skill, "failClosed", s->policy.gate_closed);
    }
    if (s->type == STEP_TYPE_REVIEW) {
        return;
    }
    if (base->verify_with.len > 0 || s->verify_with.len > 0) {
        put_who(w, "verifyWith", s->verify_with, s->verify_skill, "failOpen",
                s->policy.verify_open);
    }
    if (base->n_fallback_ids > 0 || s->alternatives_n > 0) {
        put_fallbacks(w, plan, s);
    }
}

static void put_step(struct writer *w, const struct plan *plan, const struct plan_step *s)
{
    put_str(w, "stepId", s->step_id);
    if (s->type != STEP_TYPE_TASK) {
        put_name(w, "type", step_type_name(s->type));
    }
    put_who_does_it(w, s);
    put_str(w, "task", s->task);
    if (!plan->chain) {
        put_deps(w, plan, s);
    }
    put_history(w, s);
    if (s->parameters.ptr != NULL) {
        put_key(w, "parameters");
        doc_put_doc(w->out, s->parameters);
    }
    if (s->verify.ptr != NULL) {
        put_key(w, "verify");
        doc_put_doc(w->out, s->verify);
    }
    put_asked(w, plan, s);
    plan_write_step_policy(w, s, &plan->policy->step);
}

static enum bt_code put_steps(struct buf *out, const struct plan *plan, struct bt_error *err)
{
    struct buf step;
    buf_init(&step, LIMIT_CONTROL_BYTES * 2);
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
    buf_init(&head, LIMIT_CONTROL_BYTES * 2);
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
    plan_write_policy(&w, plan);
    put_grants(&w, plan);
    put_key(&w, "steps");
    doc_put_map(out, w.n);
    buf_add_str(out, buf_str(&head));
    out->bad = out->bad != BT_OK ? out->bad : head.bad;
    buf_done(&head);
    return put_steps(out, plan, err);
}
