/*
 * What goes with a step's task: the results before it as text (M070), the results of its
 * dependencies as data (M071), and which steps have none.
 */
#include "supervisor/dispatch/assignment.h"

#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/dispatch/artifacts.h"
#include "supervisor/dispatch/dispatch_internal.h"
#include "supervisor/dispatch/frame.h"
#include "supervisor/engine/step_context.h"

enum {
    NOT_COMPLETED_MAX = 32,    /* named, the newest; the others are counted */
    DATA_ROOM = 256 * 1024,    /* of the data in dependencies_completed; more goes as text */
    ENVELOPE_ROOM = 256 * 1024 /* of a request, beside its texts, parameters and results */
};

/* ---- text ---- */

static void put_mark(struct buf *out, const struct result_cut *cut, struct str step_id)
{
    if (cut->shown < cut->whole) {
        buf_printf(out, " ... %s left out; whole: {{results.%.*s%s}}", cut->what, STR_ARG(step_id),
                   cut->member);
    }
}

/* A part of the text in a buffer of its own, then framed. */
static enum bt_code render_result(struct assignment *q, const struct context_pick *pick,
                                  struct bt_error *err)
{
    struct result_cut cut;
    struct buf text;
    enum bt_code code;

    buf_init(&text, LIMIT_RESULT_BYTES);
    code = engine_result_cut(q->engine, pick->result, pick->bytes, &text, &cut, err);
    buf_printf(&q->text, "- Step %u (%.*s): ", pick->step + 1,
               STR_ARG(assignment_agent_id(q, pick->step)));
    frame_add(&q->text, buf_str(&text));
    put_mark(&q->text, &cut, q->plan->plan->steps[pick->step].step_id);
    buf_add_byte(&q->text, '\n');
    buf_done(&text);
    return code;
}

/* M070: "Previous step results:\n- Step <i+1> (<agentId>): <result>\n\n". */
static enum bt_code render_results(struct assignment *q, const struct step_context *context,
                                   struct bt_error *err)
{
    const struct context_choice choice = context->choice;
    enum bt_code code = BT_OK;

    if (choice.n == 0 && choice.omitted == 0) {
        return BT_OK;
    }
    buf_add_cstr(&q->text, "Previous step results:\n");
    if (choice.omitted > 0) {
        buf_printf(&q->text,
                   "[%u earlier results left out for the context budget; whole: "
                   "{{results.<stepId>}}]\n",
                   choice.omitted);
    }
    for (uint32_t i = 0; i < choice.n && code == BT_OK; i++) {
        code = render_result(q, &context->picks[i], err);
    }
    buf_add_byte(&q->text, '\n');
    return code;
}

static void render_not_completed(struct assignment *q)
{
    const struct msg_context *c = &q->m.context;

    if (c->not_completed_n == 0) {
        return;
    }
    buf_add_cstr(&q->text, "Steps without a result:\n");
    for (uint32_t i = 0; i < c->not_completed_n; i++) {
        const struct msg_not_completed *m = &c->not_completed[i];
        const struct str why = m->error.len > 0         ? m->error
                               : m->error_class.len > 0 ? m->error_class
                                                        : m->reason;
        buf_printf(&q->text, "- Step %u (%.*s): %.*s",
                   plan_step_find(q->plan->plan, m->step_id) + 1, STR_ARG(m->agent_id),
                   STR_ARG(m->status));
        buf_add_cstr(&q->text, why.len > 0 ? ": " : "");
        frame_add_line(&q->text, why);
        buf_add_byte(&q->text, '\n');
    }
    if (c->not_completed_left_out > 0) {
        buf_printf(&q->text, "[%llu earlier ones left out]\n",
                   (unsigned long long)c->not_completed_left_out);
    }
    buf_add_byte(&q->text, '\n');
}

static enum bt_code render_text(struct assignment *q, const struct step_context *context,
                                struct bt_error *err)
{
    enum bt_code code = render_results(q, context, err);

    render_not_completed(q);
    buf_add_cstr(&q->text, q->text.len > 0 ? "Current task: " : "Task: ");
    frame_add(&q->text, q->m.task); /* results are in it, where its templates stood */
    return code != BT_OK ? code : buf_check(&q->text, err);
}

/* ---- steps without a result ---- */

static enum bt_code find_not_completed(struct assignment *q, struct bt_error *err)
{
    uint32_t steps[NOT_COMPLETED_MAX];
    uint32_t all;
    const uint32_t n =
        context_not_completed(q->plan->plan, q->run, q->step, steps, NOT_COMPLETED_MAX, &all);
    struct msg_context *c = &q->m.context;

    c->not_completed = n > 0 ? arena_alloc(q->arena, n * sizeof *c->not_completed) : NULL;
    if (n > 0 && c->not_completed == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct run_step *s = &q->run->steps[steps[i]];
        const struct note *note = step_notes_of(&q->plan->notes, steps[i]);
        c->not_completed[i] = (struct msg_not_completed){
            .step_id = q->plan->plan->steps[steps[i]].step_id,
            .agent_id = assignment_agent_id(q, steps[i]),
            .status = str_from(step_status_name((enum step_status)s->status)),
            .reason = str_from(step_reason_name((enum step_reason)s->reason)),
            .error_class = s->error_class == CLASS_NONE
                               ? (struct str){"", 0}
                               : str_from(err_class_name((enum err_class)s->error_class)),
            .error = note_text(note != NULL ? note->why : NULL),
        };
    }
    c->not_completed_n = n;
    c->not_completed_left_out = all - n;
    return BT_OK;
}

/* ---- dependencies ---- */

/* What {{results.x}} stands for: data, or text. */
static struct doc value_of(struct doc result)
{
    const struct doc data = doc_get(result, STR_LIT("data"));
    const struct doc text = doc_get(result, STR_LIT("text"));

    return data.ptr != NULL   ? data
           : text.ptr != NULL ? text
                              : doc_get(result, STR_LIT("artifacts"));
}

/* dependencies_completed: values as they are, while they are not larger than a context may have of
 * them; others as the text that the context has. */
static void put_completed(struct assignment *q, struct doc result, struct str step_id, size_t *room,
                          struct buf *out)
{
    const struct doc value = result.ptr == NULL ? result : value_of(result);
    struct result_cut cut;
    struct bt_error err;
    struct buf text;

    if (value.ptr == NULL) {
        doc_put_cstr(out, "");
    } else if (value.len <= q->plan->plan->context_result && value.len <= *room) {
        doc_put_doc(out, value);
        *room -= value.len;
    } else {
        const size_t most = q->plan->plan->context_result;
        buf_init(&text, LIMIT_RESULT_BYTES);
        if (result_text_put(result, most < *room ? most : *room, &text, &cut, &err) == BT_OK) {
            put_mark(&text, &cut, step_id);
        }
        doc_put_str(out, buf_str(&text));
        *room -= text.len < *room ? text.len : *room;
        buf_done(&text);
    }
}

/* A copy of a result without the state that came with it: that is in context.state, merged. */
static struct doc copy_result(struct arena *arena, struct doc result)
{
    const struct doc state = doc_get(result, STR_LIT("state"));
    struct doc_cursor at = doc_cursor(result);
    struct doc_head head;
    struct doc copy;
    struct buf out;

    if (state.ptr == NULL) {
        return doc_copy(arena, result);
    }
    buf_init(&out, LIMIT_STEP_BYTES);
    (void)doc_next(&at, &head);
    doc_put_map(&out, head.n - 1);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc key = doc_skip(&at);
        const struct doc value = doc_skip(&at);
        if (value.ptr != state.ptr) {
            doc_put_doc(&out, key);
            doc_put_doc(&out, value);
        }
    }
    copy = out.bad == BT_OK ? doc_copy(arena, doc_from_buf(&out)) : (struct doc){NULL, 0};
    buf_done(&out);
    return copy;
}

static enum bt_code put_dependency(struct assignment *q, uint32_t ix, size_t *room,
                                   size_t *data_room, struct buf *completed, struct bt_error *err)
{
    struct msg_context *c = &q->m.context;
    struct msg_dependency *d = &c->dependencies[c->dependencies_n];
    struct doc result;
    enum bt_code code = engine_result_doc(q->engine, q->run->steps[ix].result, &result, err);

    if (code == BT_OK) {
        code = artifacts_give(q, result, err);
    }
    if (code != BT_OK) {
        return code;
    }
    *d = (struct msg_dependency){.step_id = q->plan->plan->steps[ix].step_id,
                                 .agent_id = assignment_agent_id(q, ix)};
    put_completed(q, result, d->step_id, data_room, completed);
    /* A cached document may move when the next one is loaded: keep this one. */
    d->result = result.len <= *room ? copy_result(q->arena, result) : (struct doc){NULL, 0};
    d->truncated = d->result.ptr == NULL && q->run->steps[ix].result.id != 0;
    *room -= d->result.len;
    c->dependencies_n++;
    return BT_OK;
}

/* The declared dependencies, in a chain the step before, with their whole results (cut only by
 * leaving the document out, and saying so). */
static enum bt_code dependencies(struct assignment *q, size_t room, struct bt_error *err)
{
    const struct plan *plan = q->plan->plan;
    struct msg_context *c = &q->m.context;
    size_t data_room = plan->context_budget < DATA_ROOM ? plan->context_budget : DATA_ROOM;
    uint32_t before;
    const uint32_t *deps;
    const uint32_t n = context_deps(plan, q->step, &before, &deps);
    const bool none = plan->steps[q->step].rules->policy.scope == SCOPE_NONE;
    uint32_t completed = 0;
    struct buf values;
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < n && !none; i++) {
        completed += q->run->steps[deps[i]].status == STEP_COMPLETED;
    }
    if (completed == 0) {
        return BT_OK;
    }
    c->dependencies = arena_alloc(q->arena, completed * sizeof *c->dependencies);
    if (c->dependencies == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    buf_init(&values, LIMIT_RESULT_BYTES);
    doc_put_array(&values, completed);
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        if (q->run->steps[deps[i]].status == STEP_COMPLETED) {
            code = put_dependency(q, deps[i], &room, &data_room, &values, err);
        }
    }
    if (code == BT_OK) {
        code = buf_check(&values, err);
    }
    if (code == BT_OK) {
        c->task_context.dependencies_completed = doc_copy(q->arena, doc_from_buf(&values));
        code = c->task_context.dependencies_completed.ptr != NULL
                   ? BT_OK
                   : err_set(err, BT_NOMEM, "out of memory for a context");
    }
    buf_done(&values);
    return code;
}

/* What agents of earlier steps left for later ones. */
static enum bt_code put_state(struct assignment *q, struct bt_error *err)
{
    struct doc state = {NULL, 0};
    enum bt_code code = BT_OK;

    if (q->plan->plan->steps[q->step].rules->policy.scope != SCOPE_NONE &&
        open_plan_more(q->plan)->state.id != 0) {
        code = engine_result_doc(q->engine, open_plan_more(q->plan)->state, &state, err);
    }
    if (code == BT_OK && state.ptr != NULL) {
        q->m.context.state = doc_copy(q->arena, state); /* the cache may move it */
        code = q->m.context.state.ptr != NULL
                   ? BT_OK
                   : err_set(err, BT_NOMEM, "out of memory for a plan's state");
    }
    return code;
}

/* ---- all ---- */

enum bt_code assignment_context(struct assignment *q, size_t room, struct bt_error *err)
{
    struct step_context context;
    size_t used;
    enum bt_code code =
        step_context_choose(q->engine, q->plan->plan, q->run, q->step, q->arena, &context, err);

    if (code == BT_OK) {
        code = find_not_completed(q, err);
    }
    if (code == BT_OK) {
        code = render_text(q, &context, err);
    }
    used = q->text.len + q->params.len + DATA_ROOM + ENVELOPE_ROOM;
    used = used < LIMIT_STEP_BYTES ? LIMIT_STEP_BYTES - used : 0;
    if (code == BT_OK) {
        code = dependencies(q, used < room ? used : room, err);
    }
    if (code == BT_OK) {
        code = put_state(q, err);
    }
    q->m.context.text = buf_str(&q->text);
    return code;
}

/* What the person asked for: a job works for a plan, or for a session. */
static struct str request_of(const struct assignment *q)
{
    const struct job *job = q->plan->job;
    const struct open_plan *p = q->plan;

    if (job != NULL && job->kind <= JOB_SYNTHESIS) {
        p = open_plan_by_id(q->engine, str_from(job->of));
    } else if (job != NULL) {
        p = open_plan_of_session(q->engine, str_from(job->of));
    }
    return p != NULL ? p->plan->goal : q->request;
}

void assignment_task_context(struct assignment *q)
{
    struct msg_context *c = &q->m.context;
    const struct str request = request_of(q);

    c->is_plan_context = true;
    c->step_id = q->m.step_id;
    c->task_context.current_task = q->m.task;
    c->task_context.task_id = c->step_id;
    c->task_context.original_request = (struct str){
        request.ptr, request.len == 0 ? 0 : utf8_cut(request.ptr, request.len, LIMIT_TASK_BYTES)};
    c->task_context.plan_position = str_from(q->position);
}

/* ---- frames ---- */

/* The bytes of the line break at `at`, of those that Unicode names; 0 = there is none. */
static size_t break_at(struct str s, size_t at)
{
    const uint8_t *c = (const uint8_t *)s.ptr + at;
    const size_t left = s.len - at;

    switch (c[0]) {
    case '\r':
        return left > 1 && c[1] == '\n' ? 2 : 1;
    case '\n':
    case '\v':
    case '\f':
        return 1;
    case 0xC2: /* NEL */
        return left > 1 && c[1] == 0x85 ? 2 : 0;
    case 0xE2: /* line and paragraph separator */
        return left > 2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9) ? 3 : 0;
    default:
        return 0;
    }
}

static void add(struct buf *out, struct str text, bool one_line)
{
    size_t from = 0;

    for (size_t at = 0; at < text.len;) {
        const size_t n = break_at(text, at);
        if (n > 0) {
            buf_add(out, text.ptr + from, (one_line ? at : at + n) - from);
            buf_add_cstr(out, one_line ? " " : "  ");
            from = at + n;
        }
        at += n > 0 ? n : 1;
    }
    buf_add(out, text.ptr + from, text.len - from);
}

void frame_add(struct buf *out, struct str text)
{
    if (text.len > 0) {
        add(out, text, false);
    }
}

void frame_add_line(struct buf *out, struct str text)
{
    if (text.len > 0) {
        add(out, text, true);
    }
}
