/* What a person sees of an open review: the values that will run, and where they come from. */
#include "supervisor/api/review_view.h"

#include "protocol/base/clock.h"
#include "supervisor/dispatch/assignment.h"
#include "supervisor/engine/row_body.h"

enum {
    UPSTREAM_MAX = 64,
    PARAMETERS_MAX = 65536 /* in a list */
};

static struct str until_text(struct review_room *room, msec deadline)
{
    char text[CLOCK_ISO_LEN + 1];
    const struct engine *engine = room->engine;

    if (deadline == MSEC_NEVER) {
        return (struct str){"", 0};
    }
    clock_iso(deadline > engine_now(engine) ? engine_wall(engine) + (deadline - engine_now(engine))
                                            : engine_wall(engine),
              text);
    return arena_str(room->arena, str_from(text));
}

/* ---- results of the steps before ---- */

static void add_result(struct review_room *room, const struct open_plan *p, uint32_t dep,
                       struct buf *text, struct msg_upstream_result *ret)
{
    const struct blob_ref ref = core_block_run(p->block)->steps[dep].result;
    const bool all = room->whole && ref.len <= room->text;
    struct doc result = {NULL, 0};
    struct doc data;
    bool cut;

    ret->step_id = p->plan->steps[dep].step_id;
    ret->agent_id = p->plan->steps[dep].agent_id;
    buf_clear(text);
    if (engine_result_text(room->engine, ref, all ? 0 : LIMIT_PREVIEW_BYTES, text, &cut, NULL) ==
        BT_OK) {
        ret->result = arena_str(room->arena, buf_str(text));
        ret->truncated = cut;
        ret->result_len = cut ? ref.len : 0;
        room->text -= all ? ret->result.len : 0;
    }
    if (room->whole && engine_result_doc(room->engine, ref, &result, NULL) == BT_OK) {
        data = doc_get(result, STR_LIT("data"));
        if (data.ptr != NULL && data.len <= room->data) {
            ret->data = doc_copy(room->arena, data);
            room->data -= data.len;
        }
    }
}

/* M063: what the steps before it found. In a chain it is the step before. */
static void add_upstream(struct review_room *room, const struct open_plan *p, uint32_t step,
                         struct msg_review_view *v)
{
    const struct plan_step *s = &p->plan->steps[step];
    const struct run *run = core_block_run(p->block);
    const uint32_t before = step - 1;
    const uint32_t *deps = p->plan->chain ? &before : p->plan->deps + s->deps_at;
    const uint32_t n = p->plan->chain ? step > 0 : s->deps_n;
    struct buf text;

    v->depends_on = arena_alloc(room->arena, (n + 1) * sizeof *v->depends_on);
    v->upstream = arena_alloc(room->arena, (UPSTREAM_MAX + 1) * sizeof *v->upstream);
    buf_init(&text, LIMIT_RESULT_BYTES);
    for (uint32_t i = 0; v->depends_on != NULL && v->upstream != NULL && i < n; i++) {
        v->depends_on[v->depends_on_n++] = p->plan->steps[deps[i]].step_id;
        if (v->upstream_n < UPSTREAM_MAX && room->upstream > 0 &&
            run->steps[deps[i]].result.id != 0) {
            room->upstream--;
            v->upstream[v->upstream_n] = (struct msg_upstream_result){.step_id = {"", 0}};
            add_result(room, p, deps[i], &text, &v->upstream[v->upstream_n++]);
        }
    }
    buf_done(&text);
}

/* ---- a step ---- */

/* The values of the next attempt, by the code that sends it. A step that cannot be sent has none;
 * the person reads why. */
static void add_values(struct review_room *room, const struct open_plan *p, uint32_t step,
                       struct msg_review_view *v)
{
    const struct core_cmd cmd = {.step = step, .phase = PHASE_EXECUTE};
    struct assignment q;
    struct bt_error err;

    if (room->values == 0) {
        v->error = STR_LIT("too many reviews for one answer: review.get has the values");
        return;
    }
    room->values--;
    assignment_init(&q, room->engine, p, &cmd);
    if (assignment_preview(&q, &err) == BT_OK) {
        v->task = arena_str(room->arena, q.m.task);
        v->skill = arena_str(room->arena, q.m.skill);
        if (room->whole || q.m.parameters.len <= PARAMETERS_MAX) {
            v->parameters =
                q.m.parameters.ptr != NULL ? doc_copy(room->arena, q.m.parameters) : q.m.parameters;
        } else {
            v->parameters_len = q.m.parameters.len;
        }
    } else {
        v->error = arena_str(room->arena, str_from(err.msg));
    }
    assignment_done(&q);
}

static void list_fallbacks(struct review_room *room, const struct plan *plan,
                           const struct plan_step *s, struct str **ret, uint32_t *ret_n)
{
    *ret =
        s->alternatives_n > 0 ? arena_alloc(room->arena, s->alternatives_n * sizeof **ret) : NULL;
    for (uint32_t i = 0; *ret != NULL && i < s->alternatives_n; i++) {
        (*ret)[(*ret_n)++] = plan->agents.ids[plan->alternatives[s->alternatives_at + i]];
    }
}

/* The step is unsafe, and nobody knows whether it was done. */
static void warn_of_repetition(struct review_room *room, struct msg_review_view *v)
{
    struct buf text;

    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_printf(&text,
               "%.*s. The step may have been done. Approve runs it again: its effects may happen "
               "twice. Skip goes on as if it was done; reject makes it fail",
               STR_ARG(v->prompt));
    v->prompt = arena_str(room->arena, buf_str(&text));
    buf_done(&text);
}

static void step_view(struct review_room *room, const struct open_plan *p, uint32_t i,
                      struct msg_review_view *v)
{
    const struct plan_step *s = &p->plan->steps[i];
    const struct run_step *row = &core_block_run(p->block)->steps[i];
    const struct registry *registry = engine_registry(room->engine);
    const struct note *note = step_notes_of(&p->notes, i);

    v->step_id = s->step_id;
    v->step_index = i;
    v->attempt = row->attempt;
    v->kind = str_from(review_kind_name((enum review_kind)row->review));
    v->agent_id = row->agent < registry_agents(registry)
                      ? registry_agent_view(registry, row->agent).id
                      : s->agent_id;
    v->until = until_text(room, row->deadline);
    add_values(room, p, i, v);
    v->prompt = open_plan_prompt(p, i);
    v->prompt = v->prompt.len > 0 ? v->prompt : v->task;
    if (row->review == REVIEW_UNKNOWN_OUTCOME) {
        warn_of_repetition(room, v);
    }
    v->effects = plan_step_is_agentless(s) ? (struct str){"", 0}
                                           : str_from(effects_name(s->rules->policy.effects));
    v->feedback = note_text(note != NULL ? note->feedback : NULL);
    list_fallbacks(room, p->plan, s, &v->fallback_agents, &v->fallback_agents_n);
    add_upstream(room, p, i, v);
    msg_set(v, review_view, step_index);
    msg_set(v, review_view, attempt);
}

/* ---- the plan as a whole ---- */

static void plan_step_view(struct review_room *room, const struct plan *plan, uint32_t i,
                           struct msg_review_step *ret)
{
    const struct plan_step *s = &plan->steps[i];

    *ret = (struct msg_review_step){
        .step_id = s->step_id,
        .type = s->type == STEP_TYPE_TASK ? (struct str){"", 0} : str_from(step_type_name(s->type)),
        .agent_id = s->agent_id,
        .skill = s->skill,
        .task = s->task,
        .parameters = s->parameters,
        .effects = plan_step_is_agentless(s) ? (struct str){"", 0}
                                             : str_from(effects_name(s->rules->policy.effects)),
        .requires_approval = s->rules->policy.requires_approval,
        .gate = s->rules->gate_with,
        .verify_with = s->rules->verify_with,
    };
    ret->depends_on =
        s->deps_n > 0 ? arena_alloc(room->arena, s->deps_n * sizeof(struct str)) : NULL;
    for (uint32_t d = 0; ret->depends_on != NULL && d < s->deps_n; d++) {
        ret->depends_on[ret->depends_on_n++] = plan->steps[plan->deps[s->deps_at + d]].step_id;
    }
    list_fallbacks(room, plan, s, &ret->fallback_agents, &ret->fallback_agents_n);
}

static void plan_view(struct review_room *room, const struct open_plan *p,
                      struct msg_review_view *v)
{
    const struct run *run = core_block_run(p->block);
    const struct plan *plan = p->plan;

    v->kind = str_from(review_kind_name(open_plan_review(p)));
    v->prompt = plan->goal;
    v->until = until_text(room, run->review_deadline);
    if (open_plan_review(p) != REVIEW_PLAN) {
        return;
    }
    v->revision = run->revision;
    v->signed_off_revision = run->signed_off;
    v->step_count = plan->n_steps - run->superseded;
    v->timeout_ms = plan->timeout_ms;
    v->budget =
        (struct msg_budget){.tokens = plan->budget_tokens, .cost_micros = plan->budget_micros};
    if (plan->budget_tokens > 0 || plan->budget_micros > 0) {
        msg_set(v, review_view, budget);
    }
    v->steps =
        room->whole ? arena_alloc(room->arena, (plan->n_steps + 1) * sizeof *v->steps) : NULL;
    for (uint32_t i = 0; v->steps != NULL && i < plan->n_steps; i++) {
        if (!plan->steps[i].superseded) {
            struct msg_review_step *at = &v->steps[v->steps_n++];
            const enum step_status status = run->steps[i].status;
            const bool is_open = status == STEP_PENDING || status == STEP_READY;
            plan_step_view(room, plan, i, at);
            at->status = is_open ? (struct str){"", 0} : str_from(step_status_name(status));
        }
    }
}

void review_view_make(struct review_room *room, const struct open_plan *p, uint32_t step,
                      struct msg_review_view *ret)
{
    const struct run *run = core_block_run(p->block);
    struct buf id;

    *ret = (struct msg_review_view){.plan_id = str_from(p->id)};
    buf_init(&id, 256);
    if (step == STEP_NONE) {
        review_id_format(p->plan_id, (struct str){NULL, 0}, run->plan_review, &id);
        plan_view(room, p, ret);
    } else {
        review_id_format(p->plan_id, p->plan->steps[step].step_id, run->steps[step].review_serial,
                         &id);
        step_view(room, p, step, ret);
    }
    ret->review_id = arena_str(room->arena, buf_str(&id));
    buf_done(&id);
}

void review_view_row(struct arena *arena, struct msg_review_view *views, uint32_t n,
                     const struct journal_row *row)
{
    const struct doc body = {row->body, row->body_len};
    const bool of_step = str_is(row->type, record_wire_type(REC_STEP_WAITING));
    char text[CLOCK_ISO_LEN + 1];

    if (!of_step && (!str_is(row->type, record_wire_type(REC_PLAN_PAUSED)) ||
                     row_text(body, "reviewId").len == 0)) {
        return;
    }
    /* A step has one review at a time: of its rows the last one is about the open review. */
    for (uint32_t i = 0; i < n; i++) {
        struct msg_review_view *v = &views[i];
        const bool same = of_step
                              ? v->step_id.len > 0 && v->step_index == row_number(body, "stepIndex")
                              : v->step_id.len == 0;
        if (same && str_eq(v->plan_id, row_text(body, "planId"))) {
            const struct doc schema = doc_get(body, STR_LIT("schema"));
            clock_iso(row->wall, text);
            v->asked_at = arena_str(arena, str_from(text));
            if (str_is(v->kind, review_kind_name(REVIEW_PLANNING))) {
                v->error = arena_str(arena, row_text(body, "comment"));
            }
            v->schema = schema.ptr != NULL ? doc_copy(arena, schema) : schema;
            break;
        }
    }
}
