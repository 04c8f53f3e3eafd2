/* How each type of row changes the view of the plan and its steps. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/journal/journal.h"
#include "supervisor/query/projection.h"

struct str projection_keep(struct projection *s, struct str text)
{
    return text.len == 0 ? (struct str){"", 0} : arena_str(&s->arena, text);
}

struct str projection_iso(struct projection *s, msec wall)
{
    char text[CLOCK_ISO_LEN + 1];

    if (wall == 0) {
        return (struct str){"", 0};
    }
    clock_iso(wall, text);
    return projection_keep(s, str_from(text));
}

bool projection_make_room(struct projection *s, uint32_t n)
{
    struct msg_step_view *views;
    struct projection_step *steps;
    uint32_t cap = s->steps_cap == 0 ? 16 : s->steps_cap;

    if (n <= s->steps_cap) {
        return true;
    }
    while (cap < n) {
        cap *= 2;
    }
    views = arena_alloc(&s->arena, cap * sizeof *views);
    steps = arena_alloc(&s->arena, cap * sizeof *steps);
    if (views == NULL || steps == NULL) {
        return false;
    }
    if (s->steps_cap > 0) {
        memcpy(views, s->view.steps, s->steps_cap * sizeof *views);
        memcpy(steps, s->steps, s->steps_cap * sizeof *steps);
    }
    s->view.steps = views;
    s->steps = steps;
    s->steps_cap = cap;
    return true;
}

/* Kept of one plan: what one answer can hold. The others are events. */
enum { HANDOFFS_MAX = 10000 };

/* ---- rows about a step ---- */

/* A row, taken apart as far as most kinds need it. */
struct told {
    struct projection *s;
    struct doc body;
    msec wall;
    struct msg_step_view *v;
    struct projection_step *x;
};

static void take_agent(struct told *t)
{
    struct str id = row_text(t->body, "agentId");

    if (id.len > 0 && !str_eq(id, t->v->agent_id)) {
        t->v->agent_id = projection_keep(t->s, id);
    }
}

static void take_attempt(struct told *t)
{
    struct str instance = row_text(t->body, "instanceId");

    if (instance.len > 0) {
        t->v->instance_id = projection_keep(t->s, instance);
        t->v->attempts = row_number(t->body, "attempt");
        t->x->first_attempt = t->x->first_attempt == 0 ? t->wall : t->x->first_attempt;
        t->x->details = (struct blob_ref){0}; /* they were of the attempt before */
    }
}

/* A row without details leaves those of the same attempt: a person rejected it after it failed. */
static void take_details(struct told *t)
{
    const uint64_t id = row_number(t->body, "detailsRef");

    if (id != 0) {
        t->x->details = (struct blob_ref){.id = id, .len = row_number(t->body, "detailsLen")};
    }
}

static void take_error(struct told *t, const char *text, struct str cls)
{
    t->v->error = projection_keep(t->s, row_text(t->body, text));
    t->v->error_class = projection_keep(t->s, cls);
    t->v->hint = projection_keep(t->s, row_text(t->body, "hint"));
}

/* What an attempt or a question about the step has cost. */
static void take_usage(struct told *t)
{
    struct usage u = row_usage(t->body, "usage");

    usage_add(&t->x->usage, &u);
}

static void on_started(struct told *t)
{
    t->v->status = STR_LIT("in_progress");
    t->v->started_at = projection_iso(t->s, t->wall);
    t->x->began = t->wall;
    t->x->task = projection_keep(t->s, row_text(t->body, "task"));
    if (row_text(t->body, "instanceId").len > 0) { /* an attempt, not what comes before it */
        t->v->context_truncated =
            row_number(t->body, "contextCuts") > 0 || row_number(t->body, "contextLeftOut") > 0;
    }
    t->s->view.current_step_index = t->v->step_index;
    take_agent(t);
    take_attempt(t);
}

static void on_assigned(struct told *t)
{
    struct str phase = row_text(t->body, "phase");

    take_agent(t);
    take_attempt(t);
    t->v->phase = phase.len > 0 ? projection_keep(t->s, phase) : STR_LIT("execute");
    t->v->context_truncated = row_bool(t->body, "contextTruncated");
}

/* Several rows may be about the same failed attempt. */
static void count_failed(struct told *t)
{
    const uint64_t attempt = t->v->attempts + 1; /* 0 = none has failed yet */

    t->x->failed_attempts += t->x->last_failed != attempt;
    t->x->last_failed = attempt;
}

static void on_failed_attempt(struct told *t, const char *text, struct str cls)
{
    take_error(t, text, cls);
    take_details(t);
    take_usage(t);
    count_failed(t);
}

static void on_waiting(struct told *t)
{
    t->v->status = STR_LIT("waiting");
    t->v->reason = projection_keep(t->s, row_text(t->body, "kind"));
    take_details(t);
    take_usage(t);
}

static void on_doubted(struct told *t)
{
    t->v->outcome_unknown = true;
}

static void on_decided(struct told *t)
{
    if (str_is(row_text(t->body, "decision"), "approve")) {
        t->v->outcome_unknown = false;
    }
    t->v->status = STR_LIT("in_progress");
    t->v->reason = (struct str){"", 0};
}

static void on_checking(struct told *t, struct str phase)
{
    t->v->phase = projection_keep(t->s, phase);
    take_usage(t);
}

static void on_replan_started(struct told *t)
{
    t->v->replans++;
    t->s->view.replans++;
    on_failed_attempt(t, "diagnosis", row_text(t->body, "errorClass"));
    t->v->phase = STR_LIT("replan");
}

static void take_condition(struct told *t)
{
    const struct str tested = row_text(t->body, "condition");
    if (tested.len > 0) {
        t->v->condition = projection_keep(t->s, tested);
    }
}

static void on_completed(struct told *t)
{
    struct msg_step_view *v = t->v;
    struct str result = row_text(t->body, "result");

    v->status = projection_keep(t->s, row_text(t->body, "status"));
    v->reason = projection_keep(t->s, row_text(t->body, "reason"));
    take_condition(t);
    v->completed_at = projection_iso(t->s, t->wall);
    v->attempts = row_number(t->body, "attempts");
    v->duration_ms = row_number(t->body, "durationMs");
    v->result = projection_keep(t->s, result);
    v->result_len = row_number(t->body, "resultLen");
    v->truncated = row_bool(t->body, "truncated");
    v->stop = projection_keep(t->s, row_text(t->body, "stop"));
    v->outcome_unknown = row_bool(t->body, "outcomeUnknown");
    v->phase = (struct str){"", 0};
    /* The end of a replanned step has no error of its own; an earlier row has it. */
    if (!str_is(v->reason, "superseded") || v->error.len == 0) {
        take_error(t, "error", row_text(t->body, "errorClass"));
    }
    take_agent(t);
    take_details(t);
    take_usage(t);
    if (str_is(v->status, "failed")) {
        count_failed(t);
    }
    t->x->result = (struct blob_ref){
        .id = row_number(t->body, "resultRef"), .len = v->result_len, .truncated = v->truncated};
    t->x->ended = t->wall;
    if (row_number(t->body, "stateRef") != 0) {
        t->s->state = (struct blob_ref){.id = row_number(t->body, "stateRef"),
                                        .len = row_number(t->body, "stateLen")};
    }
}

static enum bt_code on_handoff(struct told *t, struct arena *scratch, struct bt_error *err)
{
    struct projection *s = t->s;
    struct msg_ev_agent_handoff ev;
    enum bt_code code = msg_read_doc(scratch, t->body, MSG_ev_agent_handoff, &ev, err);

    if (code != BT_OK) {
        return code;
    }
    t->v->handoffs += str_is(ev.reason, handoff_kind_name(HANDOFF_AGENT));
    t->v->agent_id = projection_keep(s, ev.to_agent.agent_id);
    take_usage(t);
    if (s->handoffs_n == HANDOFFS_MAX) {
        s->handoffs_cut = true;
        return BT_OK;
    }
    if (s->handoffs_n == s->handoffs_cap) {
        uint32_t cap = s->handoffs_cap == 0 ? 16 : s->handoffs_cap * 2;
        struct msg_handoff_record *at = realloc(s->handoffs, cap * sizeof *at);
        if (at == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for a story");
        }
        s->handoffs = at;
        s->handoffs_cap = cap;
    }
    s->handoffs[s->handoffs_n++] =
        (struct msg_handoff_record){.handoff_id = projection_keep(s, ev.handoff_id),
                                    .from_agent_id = projection_keep(s, ev.from_agent.agent_id),
                                    .to_agent_id = projection_keep(s, ev.to_agent.agent_id),
                                    .reason = projection_keep(s, ev.reason),
                                    .explanation = projection_keep(s, ev.explanation),
                                    .plan_step_id = projection_keep(s, ev.plan_step_id),
                                    .timestamp = projection_iso(s, t->wall)};
    return BT_OK;
}

static void on_retry(struct told *t)
{
    on_failed_attempt(t, "error", row_text(t->body, "errorClass"));
}

static void on_fallback(struct told *t)
{
    t->s->view.fallbacks++;
    on_failed_attempt(t, "error", row_text(t->body, "class"));
    take_agent(t);
}

static void on_verification_failed(struct told *t)
{
    on_failed_attempt(t, "diagnosis", STR_LIT("VERIFICATION_FAILED"));
    t->v->phase = STR_LIT("execute");
}

static void on_asked(struct told *t)
{
    on_checking(t, row_text(t->body, "phase"));
}

static void on_gate(struct told *t)
{
    on_checking(t, STR_LIT("gate"));
}

static void on_gate_over(struct told *t)
{
    on_checking(t, STR_LIT("execute"));
}

/* Of a step that a child plan does: the supervisor reports how far it is. An agent's data of the
 * same form is kept, too, and not looked at. */
static void on_progress(struct told *t)
{
    const struct doc data = doc_get(t->body, STR_LIT("data"));
    const struct str plan_id = row_text(data, "planId");
    struct projection_children *c = &t->x->children;

    if (plan_id.len == CHILD_ID_BYTES && (t->x->turns == 0 || t->x->calls)) {
        *c = (struct projection_children){.round = (uint32_t)row_number(data, "round"),
                                          .items = (uint32_t)row_number(data, "items"),
                                          .steps = (uint32_t)row_number(data, "steps"),
                                          .over = (uint32_t)row_number(data, "over"),
                                          .completed = (uint32_t)row_number(data, "completed"),
                                          .failed = (uint32_t)row_number(data, "failed")};
        memcpy(c->plan_id, plan_id.ptr, plan_id.len);
    }
}

static void on_calls(struct told *t)
{
    take_usage(t);
    t->x->turns = (uint32_t)row_number(t->body, "turn");
    t->x->calls = row_number(t->body, "calls") > 0;
}

/* Other kinds do not change a step that is kept. */
static void (*const TELLS[REC_COUNT])(struct told *t) = {
    [REC_STEP_STARTED] = on_started,     [REC_STEP_ASSIGNED] = on_assigned,
    [REC_STEP_RETRY] = on_retry,         [REC_STEP_PROGRESS] = on_progress,
    [REC_STEP_CALLS] = on_calls,         [REC_STEP_TURN] = on_calls,
    [REC_FALLBACK_USED] = on_fallback,   [REC_VERIFICATION_FAILED] = on_verification_failed,
    [REC_STEP_WAITING] = on_waiting,     [REC_REVIEW_DECIDED] = on_decided,
    [REC_STEP_CHECKING] = on_asked,      [REC_STEP_CONDITION] = take_condition,
    [REC_STEP_DOUBTED] = on_doubted,     [REC_GATE_STARTED] = on_gate,
    [REC_GATE_PASSED] = on_gate_over,    [REC_GATE_FAILED] = on_gate_over,
    [REC_GATE_ERROR] = on_gate_over,     [REC_REPLAN_STARTED] = on_replan_started,
    [REC_STEP_COMPLETED] = on_completed,
};

/* ---- rows about the plan ---- */

/* Out of memory: the list has a hole, and an earlier document answers for the revision. */
static void keep_revision(struct projection *s)
{
    if (s->revisions_n == s->revisions_cap) {
        const uint32_t cap = s->revisions_cap == 0 ? 8 : s->revisions_cap * 2;
        struct projection_revision *at = realloc(s->revisions, cap * sizeof *at);
        if (at == NULL) {
            return;
        }
        s->revisions = at;
        s->revisions_cap = cap;
    }
    s->revisions[s->revisions_n++] =
        (struct projection_revision){.revision = s->view.revision, .document = s->revised};
}

static void on_revision(struct projection *s, struct doc body)
{
    uint64_t ref = row_number(body, "planRef");

    s->view.revision = row_number(body, "revision");
    if (ref != 0) {
        s->revised = (struct blob_ref){.id = ref, .len = row_number(body, "planLen")};
        keep_revision(s);
    }
}

static void on_replanned(struct projection *s, struct doc body)
{
    struct usage u = row_usage(body, "usage");

    usage_add(&s->replanning, &u);
    if (row_bool(body, "ok")) {
        on_revision(s, body);
    }
}

static void on_pause(struct projection *s, struct doc body, bool on)
{
    enum pause_reason reason = pause_reason_from_name(row_text(body, "reason"));

    if (reason != PAUSE_REASON_COUNT) {
        s->paused = on ? s->paused | 1u << reason : s->paused & ~(1u << reason);
    }
}

struct str projection_error(struct projection *s, struct str error, struct str hint)
{
    struct str text = projection_keep(s, error);
    struct buf both;

    if (hint.len > 0) {
        buf_init(&both, error.len + hint.len + 3);
        buf_printf(&both, "%.*s; %.*s", STR_ARG(error), STR_ARG(hint));
        text = projection_keep(s, buf_str(&both));
        buf_done(&both);
    }
    return text;
}

static void on_end(struct projection *s, struct doc body, msec wall)
{
    s->ended = true;
    s->ended_at = wall;
    s->paused = 0;
    s->view.cancelling = false;
    s->view.status = projection_keep(s, row_text(body, "status"));
    s->view.outcome = projection_keep(s, row_text(body, "outcome"));
    s->view.completed_at = projection_iso(s, wall);
    s->view.failure_reason = projection_keep(s, row_text(body, "failureReason"));
    s->failure_text = projection_error(s, row_text(body, "failureReason"), row_text(body, "hint"));
    s->view.summary = projection_keep(s, row_text(body, "summary"));
    s->view.duration_ms = row_number(body, "durationMs");
    s->total = row_usage(body, "usage");
    s->summary = (struct blob_ref){.id = row_number(body, "summaryRef"),
                                   .len = row_number(body, "summaryLen")};
}

static void add_usage(struct usage *to, struct doc body)
{
    const struct usage u = row_usage(body, "usage");

    usage_add(to, &u);
}

static void on_compensation(struct projection *s, bool over, struct doc body)
{
    struct msg_compensation_view *v = &s->view.compensation;

    s->phase = over ? JOB_NONE : JOB_COMPENSATION;
    s->paused = 0;
    msg_set(&s->view, plan_view, compensation);
    *v = (struct msg_compensation_view){
        .status = over ? projection_keep(s, row_text(body, "status")) : STR_LIT("running"),
        .compensated = row_number(body, "compensated"),
        .failed = row_number(body, "failed"),
        .reason = projection_keep(s, row_text(body, "reason"))};
    if (over) {
        msg_set(v, compensation_view, compensated);
        msg_set(v, compensation_view, failed);
    }
}

/* What the plan as a whole asks of an agent. False: the row is about something else. */
static bool apply_job(struct projection *s, enum record_type type, struct doc body)
{
    if (type == REC_PLANNING_STARTED) {
        s->phase = JOB_PLANNING;
    } else if (type == REC_PLANNING_RETRY || type == REC_PLANNING_FAILED) {
        s->phase = type == REC_PLANNING_FAILED ? JOB_NONE : JOB_PLANNING;
        add_usage(&s->planning, body);
    } else if (type == REC_SYNTHESIS_STARTED) {
        s->phase = JOB_SYNTHESIS;
    } else if (type == REC_SYNTHESIS_RETRY || type == REC_SYNTHESIS_FINISHED) {
        s->phase = JOB_NONE;
        add_usage(&s->synthesis, body);
        if (type == REC_SYNTHESIS_RETRY) {
            on_revision(s, body);
        }
    } else if (type == REC_COMPENSATION_STARTED || type == REC_COMPENSATION_FINISHED) {
        on_compensation(s, type == REC_COMPENSATION_FINISHED, body);
    } else {
        return false;
    }
    return true;
}

static void apply_plan(struct projection *s, enum record_type type, struct doc body, msec wall)
{
    if (apply_job(s, type, body)) {
        return;
    }
    if (type == REC_PLAN_GENERATED) {
        add_usage(&s->planning, body);
        s->phase = JOB_NONE;
        if (row_number(body, "planRef") != 0) {
            on_revision(s, body);
        }
        s->view.parent_plan_id = projection_keep(s, row_text(body, "parentPlanId"));
    } else if (type == REC_PLAN_STARTED) {
        s->started = wall;
    } else if (type == REC_REPLAN_FINISHED) {
        on_replanned(s, body);
    } else if (type == REC_PLAN_MODIFIED) {
        on_revision(s, body);
    } else if (type == REC_REVIEW_VOIDED ||
               (type == REC_REVIEW_DECIDED && doc_get(body, STR_LIT("stepIndex")).ptr == NULL)) {
        s->paused &= ~(1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING);
    } else if (type == REC_PLAN_PAUSED || type == REC_PLAN_RESUMED) {
        on_pause(s, body, type == REC_PLAN_PAUSED);
    } else if (type == REC_PLAN_CANCELLING) {
        s->view.cancelling = true;
    } else if (type == REC_PLAN_COMPLETED) {
        on_end(s, body, wall);
    } else if (type == REC_RESULT_REJECTED && s->ended) {
        add_usage(&s->total, body); /* work that was called off, and went on */
    }
}

enum bt_code projection_apply(struct projection *s, struct arena *scratch,
                              const struct journal_row *row, struct bt_error *err)
{
    struct told t = {.s = s, .body = {row->body, row->body_len}, .wall = row->wall};
    enum record_type type = record_type_from_wire(row->type);
    uint64_t ix = row_number(t.body, "stepIndex");

    /* Internal rows bear the number before them, which may be of another plan. */
    s->last_seq = row->is_public ? row->seq : s->last_seq;
    s->view.plan_seq = row->is_public ? row->plan_seq : s->view.plan_seq;
    s->updated = row->wall;
    apply_plan(s, type, t.body, row->wall);
    if (doc_get(t.body, STR_LIT("stepIndex")).ptr == NULL || ix >= LIMIT_STEPS) {
        return BT_OK;
    }
    if (!projection_make_room(s, (uint32_t)ix + 1)) {
        return err_set(err, BT_NOMEM, "out of memory for a story");
    }
    t.v = &s->view.steps[ix];
    t.x = &s->steps[ix];
    t.v->step_index = ix;
    if (type == REC_HANDOFF) {
        return on_handoff(&t, scratch, err);
    }
    if (type < REC_COUNT && TELLS[type] != NULL) {
        TELLS[type](&t);
    }
    return BT_OK;
}
