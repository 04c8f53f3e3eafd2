/*
 * agent-turn: the events of a plan-execute orchestrator (S002). One turn is turn_start,
 * plan_created, then for each step plan_step_start, tool_call, tool_result, plan_step_end, then
 * text_delta, turn_end. Each is {type, turnId, planId, payload}. The payload has the members of the
 * document's JSON example in lower camel case; its table has the names of Go structs. duration is a
 * Go time.Duration in nanoseconds from turn_start to turn_end, so it includes planning.
 *
 * Parallel steps each have this order. Retries emit nothing: a step is one call and one result. A
 * revision has no second plan_created; its steps follow with the next indexes, and stepCount grows.
 * A step that never started has no events. When no agent writes the answer, the aggregate is one
 * text_delta.
 *
 * A plan that answers a session's turn belongs to that turn. The turn then ends with the plan and
 * not at Baton's turn_end. A turn without a plan ends at turn_end.
 */
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/compat/compat_internal.h"

enum { NANOSECONDS = 1000000, CALL_ID_BYTES = COMPAT_ID_BYTES + 24 };

static void emit(struct bt_vocabulary *v, const struct compat_plan *p, const char *type,
                 const struct compat_map *m)
{
    compat_emit_payload(v, type, p != NULL ? p->turn.text : "", m);
}

/* since: when the turn began, in ms; 0 = unknown, then the plan's own duration is used. */
static void add_duration(struct compat_map *m, const struct compat_event *ev, uint64_t since)
{
    const uint64_t ms =
        since != 0 && ev->ts_ms >= since ? ev->ts_ms - since : compat_number(ev, "durationMs", 0);
    compat_add_u64(m, "duration", ms > UINT64_MAX / NANOSECONDS ? UINT64_MAX : ms * NANOSECONDS);
}

/* ---- the tool of a step, and its arguments ---- */

struct tool {
    char name[LIMIT_ID_BYTES + 1];
};

/* Returns the skill, which is a tool of the document; where it is not known the agent. A step
 * without an agent is a human review. */
static struct tool tool_of(const struct compat_event *document, struct str agent)
{
    struct str skill = {NULL, 0};
    struct tool t;

    if (document->body.ptr != NULL) {
        skill = compat_text(document, "skill");
    }
    skill = compat_or_default(skill, compat_or_default(agent, STR_LIT("human_review")));
    skill.len = utf8_cut(skill.ptr, skill.len, LIMIT_ID_BYTES);
    (void)snprintf(t.name, sizeof t.name, "%.*s", STR_ARG(skill));
    return t;
}

/* Returns the step's parameters; when they are unknown {task}, which is built in `out`. */
static struct doc args_of(const struct compat_event *document, struct str task, struct buf *out)
{
    const size_t at = out->len;
    struct compat_map m = {0};

    if (document->body.ptr != NULL) {
        const struct doc parameters = compat_member(document, "parameters");
        if (parameters.ptr != NULL && doc_head(parameters).kind == DOC_MAP) {
            return parameters;
        }
    }
    compat_add(&m, "task", compat_or_default(task, (struct str){NULL, 0}));
    compat_put(out, &m);
    if (out->bad != BT_OK) {
        return (struct doc){NULL, 0};
    }
    return (struct doc){out->at + at, out->len - at};
}

/* ---- turns ---- */

static void start_turn(struct bt_vocabulary *v, const struct compat_plan *p, const char *turn_id,
                       struct str timestamp)
{
    struct compat_map m = {0};

    compat_add(&m, "timestamp", timestamp);
    compat_emit_payload(v, "turn_start", p != NULL ? p->turn.text : turn_id, &m);
}

static void end_turn(struct bt_vocabulary *v, const char *turn_id, struct str message,
                     const struct compat_event *ev, uint64_t since)
{
    struct compat_map m = {0};

    compat_add(&m, "message", compat_or_default(message, STR_LIT("")));
    add_duration(&m, ev, since);
    compat_emit_payload(v, "turn_end", turn_id, &m);
}

/* Starts the output for a plan: it answers the open turn of its session, or it is a turn of its
 * own. */
static void begin(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (p->begin_emitted) {
        return;
    }
    p->begin_emitted = true;
    p->turn_ms = p->seen_from_start ? ev->ts_ms : 0;
    for (uint32_t i = v->n_turns; i > 0; i--) {
        struct compat_turn *t = &v->turns[i - 1];
        const bool waits = t->plan.text[0] == 0 && ev->session_id.len > 0 &&
                           str_eq(compat_id_str(&t->session), ev->session_id);
        if (waits || str_eq(compat_id_str(&t->plan), compat_id_str(&p->id))) {
            t->plan = p->id;
            p->turn = t->id;
            p->turn_ms = t->started_ms;
            return;
        }
    }
    start_turn(v, p, "", ev->timestamp);
}

static void text(struct bt_vocabulary *v, const char *turn_id, struct str vocabulary,
                 uint64_t index)
{
    struct compat_map m = {0};

    compat_add(&m, "text", vocabulary);
    compat_add_u64(&m, "index", index);
    compat_emit_payload(v, "text_delta", turn_id, &m);
}

/* Returns true when turn_end emits nothing, because the plan of the turn will end or has ended it.
 */
static bool plan_ends_turn(struct bt_vocabulary *v, struct compat_turn *t,
                           const struct compat_event *ev)
{
    const struct str plan_id = compat_text(ev, "turnPlanId");
    const bool makes_plan = plan_id.len > 0 && str_is(compat_text(ev, "action"), "new_plan");
    const bool known = compat_plan_find(v, plan_id) != NULL;

    if (t == NULL) {
        return makes_plan && known; /* the stream began in the middle of the turn */
    }
    if (t->end_emitted || (t->plan.text[0] != 0 && str_eq(compat_id_str(&t->plan), plan_id))) {
        compat_turn_drop(v, t);
        return true;
    }
    if (t->plan.text[0] == 0 && makes_plan && !known) {
        compat_id_set(&t->plan, plan_id);
        t->turn_end_seen = true;
        return true;
    }
    return false;
}

static void on_turn_end(struct bt_vocabulary *v, const struct compat_event *ev)
{
    const struct str message = compat_text(ev, "message");
    struct compat_turn *t = compat_turn_find(v, compat_text(ev, "turnId"));
    struct compat_plan *other = NULL; /* started during the turn, but not by it */
    struct compat_id turn;

    compat_id_set(&turn, compat_text(ev, "turnId"));
    if (plan_ends_turn(v, t, ev)) {
        return;
    }
    if (message.len > 0) {
        text(v, turn.text, message, 0);
    }
    end_turn(v, turn.text, message, ev, t != NULL ? t->started_ms : 0);
    if (t != NULL) {
        other = compat_plan_find(v, compat_id_str(&t->plan));
        compat_turn_drop(v, t);
    }
    if (other != NULL) {
        other->turn.text[0] = 0;
        other->turn_ms = ev->ts_ms;
        v->event_plan = other->id;
        start_turn(v, other, "", ev->timestamp);
    }
}

static void on_turn_start(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_turn *t = compat_turn_add(v, compat_text(ev, "turnId"), ev->session_id);

    t->started_ms = ev->ts_ms;
    start_turn(v, NULL, t->id.text, ev->timestamp);
}

/* ---- the plan ---- */

static void created(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    struct compat_event step;
    struct compat_map m = {0};
    uint32_t left;
    uint32_t n = 0;
    struct doc_cursor at = compat_steps(ev, &left);

    begin(v, p, ev);
    while (compat_next_step(&at, &left, &step)) {
        n++;
    }
    compat_reset_buf(v, &v->list);
    doc_put_array(&v->list, n);
    at = compat_steps(ev, &left);
    while (compat_next_step(&at, &left, &step)) {
        const struct compat_event as = compat_step_document(
            p, compat_number(&step, "stepIndex", UINT64_MAX), compat_text(&step, "stepId"));
        const struct tool tool = tool_of(&as, compat_text(&step, "agentId"));
        struct compat_map one = {0};
        compat_reset_buf(v, &v->parts);
        compat_add(&one, "tool", str_from(tool.name));
        compat_add_doc(&one, "args", args_of(&as, compat_text(&step, "task"), &v->parts));
        compat_put(&v->list, &one);
    }
    compat_add_u64(&m, "stepCount", p->total);
    compat_add_doc(&m, "steps", doc_from_buf(&v->list));
    emit(v, p, "plan_created", &m);
}

static struct compat_map step_base(const struct compat_plan *p, const struct compat_event *ev,
                                   struct str tool)
{
    struct compat_map m = {0};

    compat_copy(&m, "index", ev, "stepIndex");
    if (p->has_total) {
        compat_add_u64(&m, "stepCount", p->total);
    }
    compat_add(&m, "tool", tool);
    return m;
}

static struct compat_map call_base(const struct compat_plan *p, const struct compat_event *ev,
                                   char *call_id, struct str tool)
{
    struct compat_map m = {0};

    (void)snprintf(call_id, CALL_ID_BYTES, "%s/%llu", p->id.text,
                   (unsigned long long)compat_number(ev, "stepIndex", 0));
    compat_add(&m, "toolCallId", str_from(call_id));
    compat_add(&m, "toolName", tool);
    return m;
}

static void step_start(struct bt_vocabulary *v, struct compat_plan *p,
                       const struct compat_event *ev)
{
    const struct compat_event as = compat_step_document(
        p, compat_number(ev, "stepIndex", UINT64_MAX), compat_text(ev, "stepId"));
    const struct tool tool = tool_of(&as, compat_text(ev, "agentId"));
    char call_id[CALL_ID_BYTES];
    struct compat_step *s;
    struct compat_map m;
    struct doc args;

    s = compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX), STR_LIT(""),
                         str_from(tool.name), (struct str){NULL, 0});
    if (s != NULL) {
        s->open = true;
    }
    compat_reset_buf(v, &v->list);
    args = args_of(&as, compat_text(ev, "task"), &v->list);
    m = step_base(p, ev, str_from(tool.name));
    compat_add_doc(&m, "args", args);
    emit(v, p, "plan_step_start", &m);
    m = call_base(p, ev, call_id, str_from(tool.name));
    compat_add_doc(&m, "args", args);
    emit(v, p, "tool_call", &m);
}

static void add_end(struct bt_vocabulary *v, struct compat_map *m, const struct compat_plan *p,
                    const struct compat_event *ev)
{
    const struct str status = compat_text(ev, "status");

    if (str_is(status, "completed")) {
        compat_add_result(v, m, "result", compat_text(ev, "result"));
    } else {
        compat_add(m, "error",
                   compat_or_default(compat_error(p, ev),
                                     compat_or_default(compat_text(ev, "reason"), status)));
    }
}

static void step_end(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const uint64_t index = compat_number(ev, "stepIndex", UINT64_MAX);
    const struct compat_step *s = compat_step_find(p, index);
    char call_id[CALL_ID_BYTES];
    struct tool tool;
    struct compat_map m;

    if (!compat_step_began(p, ev)) {
        return;
    }
    if (s != NULL) {
        (void)snprintf(tool.name, sizeof tool.name, "%.*s", STR_ARG(s->tool));
    } else {
        const struct compat_event as = compat_step_document(
            p, compat_number(ev, "stepIndex", UINT64_MAX), compat_text(ev, "stepId"));
        tool = tool_of(&as, compat_text(ev, "agentId"));
    }
    m = call_base(p, ev, call_id, str_from(tool.name));
    add_end(v, &m, p, ev);
    emit(v, p, "tool_result", &m);
    m = step_base(p, ev, str_from(tool.name));
    add_end(v, &m, p, ev);
    emit(v, p, "plan_step_end", &m);
    compat_step_drop(v, p, index);
}

static void completed(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    const struct str message =
        compat_or_default(compat_text(ev, "summary"), compat_text(ev, "failureReason"));
    const bool written = p->n_texts > 0 && str_is(compat_text(ev, "synthesis"), "agent");
    struct compat_turn *t = compat_turn_find(v, compat_id_str(&p->turn));

    if (!written && message.len > 0) {
        if (p->n_texts > 0) { /* an answer that was started and given up */
            text(v, p->turn.text, STR_LIT("\n\n"), p->n_texts++);
        }
        text(v, p->turn.text, message, p->n_texts);
    }
    end_turn(v, p->turn.text, message, ev, p->turn_ms);
    if (t != NULL && t->turn_end_seen) {
        compat_turn_drop(v, t);
    } else if (t != NULL) {
        t->end_emitted = true;
    }
}

static void take(struct bt_vocabulary *v, struct compat_plan *p, const struct compat_event *ev)
{
    if (p == NULL) {
        if (str_is(ev->type, "turn_start")) {
            on_turn_start(v, ev);
        } else if (str_is(ev->type, "turn_end")) {
            on_turn_end(v, ev);
        }
    } else if (str_is(ev->type, "planning_started")) {
        begin(v, p, ev);
    } else if (str_is(ev->type, "plan_generated")) {
        created(v, p, ev);
    } else if (str_is(ev->type, "plan_step_started")) {
        step_start(v, p, ev);
    } else if (str_is(ev->type, "plan_step_completed")) {
        step_end(v, p, ev);
    } else if (str_is(ev->type, "text_delta")) {
        text(v, p->turn.text, compat_or_default(compat_text(ev, "text"), STR_LIT("")),
             p->n_texts++);
    } else if (str_is(ev->type, "plan_completed")) {
        completed(v, p, ev);
    }
}

const struct compat_vocabulary vocabulary_agent_turn = {
    .name = "agent-turn", .alias = "s002", .take = take, .wants_plan = true};
