/*
 * S001, "Plan executor" §3.5: plan_generated, plan_step_started, plan_step_completed,
 * plan_completed, agent_handoff, each with type, sessionId, eventId, timestamp. The bus speaks
 * these words itself; what is left to do is to take away what S001 does not know. A plan without a
 * session has sessionId "", since the member must be there; cancelled steps are failed ones, as its
 * emitter says.
 */
#include "protocol/client/compat.h"

static struct compat_map base(const struct compat_event *ev)
{
    struct compat_map m = {0};

    compat_add(&m, "type", ev->type);
    compat_add(&m, "sessionId", compat_or(ev->session_id, STR_LIT("")));
    compat_copy(&m, "eventId", ev, "eventId");
    compat_add(&m, "timestamp", ev->timestamp);
    return m;
}

static void add_step(struct compat_map *m, const struct compat_event *ev)
{
    const struct str agent = compat_or(compat_text(ev, "agentId"), STR_LIT(""));

    compat_copy(m, "stepId", ev, "stepId");
    compat_copy(m, "stepIndex", ev, "stepIndex");
    compat_add(m, "agentId", agent);
    compat_add(m, "agentName", compat_or(compat_text(ev, "agentName"), agent));
    compat_add(m, "task", compat_or(compat_text(ev, "task"), STR_LIT("")));
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
    compat_renew(v, &v->list);
    doc_put_array(&v->list, n);
    at = compat_steps(ev, &left);
    while (compat_next_step(&at, &left, &step)) {
        struct compat_map one = {0};
        add_step(&one, &step);
        compat_put(&v->list, &one);
    }
    compat_add(&m, "planId", ev->plan_id);
    compat_add(&m, "query", compat_or(compat_text(ev, "query"), STR_LIT("")));
    compat_add_doc(&m, "steps", doc_from_buf(&v->list));
    compat_copy(&m, "estimatedSteps", ev, "estimatedSteps");
    compat_tell(v, "plan_generated", &m);
}

static void step_started(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);

    compat_add(&m, "planId", ev->plan_id);
    add_step(&m, ev);
    compat_tell(v, "plan_step_started", &m);
}

static void step_completed(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);
    const struct str status = compat_text(ev, "status");
    const bool known = str_is(status, "completed") || str_is(status, "skipped");

    compat_add(&m, "planId", ev->plan_id);
    compat_copy(&m, "stepId", ev, "stepId");
    compat_copy(&m, "stepIndex", ev, "stepIndex");
    compat_add(&m, "status", known ? status : STR_LIT("failed"));
    compat_copy(&m, "result", ev, "result");
    compat_copy(&m, "error", ev, "error");
    compat_tell(v, "plan_step_completed", &m);
}

static void completed(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);

    compat_add(&m, "planId", ev->plan_id);
    compat_copy(&m, "status", ev, "status");
    compat_copy(&m, "summary", ev, "summary");
    compat_copy(&m, "failureReason", ev, "failureReason");
    compat_tell(v, "plan_completed", &m);
}

static void add_agent(struct bt_vocabulary *v, struct compat_map *m, const char *key,
                      const struct compat_event *ev)
{
    const struct compat_event agent = {.body = compat_member(ev, key)};
    const size_t at = v->list.len;
    struct compat_map who = {0};

    if (agent.body.ptr != NULL && doc_head(agent.body).kind == DOC_MAP) {
        const struct str id = compat_text(&agent, "agentId");
        compat_add(&who, "agentId", id);
        compat_add(&who, "agentName", compat_or(compat_text(&agent, "agentName"), id));
        compat_put(&v->list, &who);
        compat_add_doc(m, key, (struct doc){v->list.at + at, v->list.len - at});
    }
}

static void handoff(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_map m = base(ev);

    compat_renew(v, &v->list);
    if (buf_reserve(&v->list, 2 * ev->body.len + 128) == NULL) { /* what points into it must stay */
        v->bad = BT_NOMEM;
        return;
    }
    compat_copy(&m, "handoffId", ev, "handoffId");
    add_agent(v, &m, "fromAgent", ev);
    add_agent(v, &m, "toAgent", ev);
    compat_copy(&m, "reason", ev, "reason");
    compat_copy(&m, "explanation", ev, "explanation");
    compat_tell(v, "agent_handoff", &m);
}

static void take(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    (void)p;
    if (str_is(ev->type, "plan_generated")) {
        generated(v, ev);
    } else if (str_is(ev->type, "plan_step_started")) {
        step_started(v, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        step_completed(v, ev);
    } else if (str_is(ev->type, "plan_completed")) {
        completed(v, ev);
    } else if (str_is(ev->type, "agent_handoff")) {
        handoff(v, ev);
    }
}

const struct compat_words compat_s001 = {.name = "s001", .take = take};
