/*
 * plan-executor: "Plan executor" §3.5 (S001): plan_generated, plan_step_started,
 * plan_step_completed, plan_completed, agent_handoff, each with type, sessionId, eventId,
 * timestamp. Baton's events have these names and members, so this vocabulary mostly removes others.
 * A plan without a session has sessionId "", because the member is required. Cancelled steps are
 * failed, as in the document's emitter.
 *
 * A step that caused a replan failed for its own error, not because a revision drops it. The
 * document's executor records a handoff "only when the agent changes": before a step of a revision,
 * from the agent of the step that ended last. Baton's event has "supervisor" for a new step without
 * dependencies.
 */
#include "protocol/compat/compat_internal.h"

static struct compat_map base(const struct compat_event *ev)
{
    struct compat_map m = {0};

    compat_add(&m, "type", ev->type);
    compat_add(&m, "sessionId", compat_or_default(ev->session_id, STR_LIT("")));
    compat_copy(&m, "eventId", ev, "eventId");
    compat_add(&m, "timestamp", ev->timestamp);
    return m;
}

static void add_step(struct compat_map *m, const struct compat_event *ev)
{
    const struct str agent = compat_or_default(compat_text(ev, "agentId"), STR_LIT(""));

    compat_copy(m, "stepId", ev, "stepId");
    compat_copy(m, "stepIndex", ev, "stepIndex");
    compat_add(m, "agentId", agent);
    compat_add(m, "agentName", compat_or_default(compat_text(ev, "agentName"), agent));
    compat_add(m, "task", compat_or_default(compat_text(ev, "task"), STR_LIT("")));
}

static void generated(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);
    struct compat_event step;
    uint32_t n;
    struct doc_cursor at = compat_steps(ev, &n);
    uint32_t left = n;

    for (n = 0; compat_next_step(&at, &left, &step); n++) {
    }
    compat_reset_buf(v, &v->list);
    doc_put_array(&v->list, n);
    at = compat_steps(ev, &left);
    while (compat_next_step(&at, &left, &step)) {
        struct compat_map one = {0};
        add_step(&one, &step);
        compat_put(&v->list, &one);
    }
    compat_add(&m, "planId", ev->plan_id);
    compat_add(&m, "query", compat_or_default(compat_text(ev, "query"), STR_LIT("")));
    compat_add_doc(&m, "steps", doc_from_buf(&v->list));
    compat_copy(&m, "estimatedSteps", ev, "estimatedSteps");
    compat_emit(v, "plan_generated", &m);
}

/* ---- steps and their agents ---- */

static void step_assigned(struct bt_vocabulary *v, struct compat_plan *p,
                          const struct compat_event *ev, const struct compat_event *agent)
{
    const struct str id = compat_text(agent, "agentId");

    if (id.len > 0) {
        (void)compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX), id,
                               compat_or_default(compat_text(agent, "agentName"), id),
                               (struct str){NULL, 0});
    }
}

static void step_ended(struct bt_vocabulary *v, struct compat_plan *p,
                       const struct compat_event *ev)
{
    const uint64_t index = compat_number(ev, "stepIndex", UINT64_MAX);
    const struct compat_step *s = compat_step_find(p, index);

    if (s != NULL) {
        compat_plan_text(v, p, &p->agent, s->id);
        compat_plan_text(v, p, &p->name, s->tool);
        compat_step_drop(v, p, index);
    }
}

static void step_started(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);

    compat_add(&m, "planId", ev->plan_id);
    add_step(&m, ev);
    compat_emit(v, "plan_step_started", &m);
}

static void step_completed(struct bt_vocabulary *v, const struct compat_plan *p,
                           const struct compat_event *ev)
{
    struct compat_map m = base(ev);
    const struct str status = compat_text(ev, "status");
    const bool known = str_is(status, "completed") || str_is(status, "skipped");

    compat_add(&m, "planId", ev->plan_id);
    compat_copy(&m, "stepId", ev, "stepId");
    compat_copy(&m, "stepIndex", ev, "stepIndex");
    compat_add(&m, "status", known ? status : STR_LIT("failed"));
    compat_copy(&m, "result", ev, "result");
    compat_add(&m, "error", compat_error(p, ev));
    compat_emit(v, "plan_step_completed", &m);
}

static void completed(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);

    compat_add(&m, "planId", ev->plan_id);
    compat_copy(&m, "status", ev, "status");
    compat_copy(&m, "summary", ev, "summary");
    compat_copy(&m, "failureReason", ev, "failureReason");
    compat_emit(v, "plan_completed", &m);
}

/* ---- handoffs ---- */

static void add_agent(struct bt_vocabulary *v, struct compat_map *m, const char *key, struct str id,
                      struct str name)
{
    const size_t at = v->list.len;
    struct compat_map who = {0};

    compat_add(&who, "agentId", id);
    compat_add(&who, "agentName", compat_or_default(name, id));
    compat_put(&v->list, &who);
    compat_add_doc(m, key, (struct doc){v->list.at + at, v->list.len - at});
}

static void handoff(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_map m = base(ev);
    const struct compat_event from = {.body = compat_member(ev, "fromAgent")};
    const struct compat_event to = {.body = compat_member(ev, "toAgent")};
    const bool both = from.body.ptr != NULL && doc_head(from.body).kind == DOC_MAP &&
                      to.body.ptr != NULL && doc_head(to.body).kind == DOC_MAP;
    const struct str to_id = both ? compat_text(&to, "agentId") : (struct str){NULL, 0};
    struct str from_id = both ? compat_text(&from, "agentId") : (struct str){NULL, 0};
    struct str from_name = both ? compat_text(&from, "agentName") : (struct str){NULL, 0};

    if (both && str_is(from_id, "supervisor") && p->agent.len > 0 && p->first > 0 &&
        compat_number(ev, "stepIndex", 0) >= p->first) {
        from_id = p->agent;
        from_name = p->name;
    }
    if (both && str_eq(from_id, to_id)) {
        return;
    }
    compat_reset_buf(v, &v->list);
    if (buf_reserve(&v->list, 2 * ev->body.len + 2 * (from_id.len + from_name.len) + 128) == NULL) {
        v->bad = BT_NOMEM; /* pointers into it must stay valid */
        return;
    }
    compat_copy(&m, "handoffId", ev, "handoffId");
    if (both) {
        add_agent(v, &m, "fromAgent", from_id, from_name);
        add_agent(v, &m, "toAgent", to_id, compat_text(&to, "agentName"));
    }
    compat_copy(&m, "reason", ev, "reason");
    compat_copy(&m, "explanation", ev, "explanation");
    compat_emit(v, "agent_handoff", &m);
    step_assigned(v, p, ev, &to);
}

static void take(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (p == NULL) {
        return;
    }
    if (str_is(ev->type, "plan_generated")) {
        generated(v, ev);
    } else if (str_is(ev->type, "plan_step_started")) {
        step_started(v, ev);
        step_assigned(v, p, ev, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        step_completed(v, p, ev);
        step_ended(v, p, ev);
    } else if (str_is(ev->type, "plan_completed")) {
        completed(v, ev);
    } else if (str_is(ev->type, "agent_handoff")) {
        handoff(v, p, ev);
    }
}

const struct compat_vocabulary vocabulary_plan_executor = {
    .name = "plan-executor", .alias = "s001", .take = take};
