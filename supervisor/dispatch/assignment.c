#include "supervisor/dispatch/assignment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "registry/card.h"
#include "supervisor/core/run/context.h"
#include "supervisor/dispatch/dispatch_internal.h"

void assignment_init(struct assignment *q, struct engine *engine, const struct open_plan *p,
                     const struct core_cmd *cmd)
{
    *q = (struct assignment){.engine = engine,
                             .plan = p,
                             .run = core_block_run(p->block),
                             .step = cmd->step,
                             .phase = cmd->phase,
                             .arena = &dispatch_of(engine)->assignment,
                             .error_class = CLASS_VALIDATION_ERROR};
    buf_init(&q->text, LIMIT_RESULT_BYTES);
    buf_init(&q->params, LIMIT_RESULT_BYTES);
    buf_init(&q->task, LIMIT_RESULT_BYTES);
}

void assignment_done(struct assignment *q)
{
    buf_done(&q->text);
    buf_done(&q->params);
    buf_done(&q->task);
    arena_reset(q->arena);
}

const struct msg_card *assignment_card(const struct assignment *q)
{
    return registry_agent_view(engine_registry(q->engine), q->agent).card;
}

struct str assignment_agent_id(const struct assignment *q, uint32_t step)
{
    const struct plan_step *s = &q->plan->plan->steps[step];
    uint32_t agent = q->run->steps[step].agent;

    if (agent == s->agent || agent >= registry_agents(engine_registry(q->engine))) {
        return s->agent_id.len > 0 ? s->agent_id : STR_LIT("person");
    }
    return registry_agent_view(engine_registry(q->engine), agent).id;
}

/* ---- context ---- */

/* M070: "Previous step results:\n- Step <i+1> (<agentId>): <result>\n\nCurrent task: <task>" or
 * "Task: <task>". */
static enum bt_code render_text(struct assignment *q, const struct context_pick *picks,
                                struct context_choice choice, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (choice.n > 0 || choice.omitted > 0) {
        buf_add_cstr(&q->text, "Previous step results:\n");
    }
    if (choice.omitted > 0) {
        buf_printf(&q->text, "[%u earlier results left out for the context budget]\n",
                   choice.omitted);
    }
    for (uint32_t i = 0; i < choice.n && code == BT_OK; i++) {
        bool cut;
        buf_printf(&q->text, "- Step %u (%.*s): ", picks[i].step + 1,
                   STR_ARG(assignment_agent_id(q, picks[i].step)));
        code = engine_result_text(q->engine, picks[i].result, picks[i].bytes, &q->text, &cut, err);
        if (cut) {
            buf_printf(&q->text, " [cut to %u bytes of %llu]", picks[i].bytes,
                       (unsigned long long)picks[i].result.len);
        }
        buf_add_byte(&q->text, '\n');
    }
    buf_add_cstr(&q->text, choice.n > 0 || choice.omitted > 0 ? "\nCurrent task: " : "Task: ");
    buf_add_str(&q->text, q->m.task);
    return code != BT_OK ? code : buf_check(&q->text, err);
}

/* The declared dependencies, in a chain the step before, with their whole results (cut only by
 * leaving the document out, and saying so). */
static enum bt_code dependencies(struct assignment *q, size_t room, struct bt_error *err)
{
    const struct plan *plan = q->plan->plan;
    const struct plan_step *s = &plan->steps[q->step];
    struct msg_context *c = &q->m.context;
    struct msg_task_context *t = &c->task_context;
    const uint32_t before = q->step - 1;
    const uint32_t *deps = plan->chain ? &before : plan->deps + s->deps_at;
    const uint32_t n = plan->chain ? q->step > 0 : s->deps_n;

    c->dependencies = arena_alloc(q->arena, (n + 1) * sizeof *c->dependencies);
    t->dependencies_completed = arena_alloc(q->arena, (n + 1) * sizeof *t->dependencies_completed);
    if (c->dependencies == NULL || t->dependencies_completed == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    for (uint32_t i = 0; i < n && s->policy.scope != SCOPE_NONE; i++) {
        uint32_t ix = deps[i];
        struct msg_dependency *d = &c->dependencies[c->dependencies_n];
        enum bt_code code;
        if (q->run->steps[ix].status != STEP_COMPLETED) {
            continue;
        }
        d->step_id = plan->steps[ix].step_id;
        d->agent_id = assignment_agent_id(q, ix);
        t->dependencies_completed[t->dependencies_completed_n++] = d->step_id;
        code = engine_result_doc(q->engine, q->run->steps[ix].result, &d->result, err);
        if (code != BT_OK) {
            return code;
        }
        /* A cached document may move when the next one is loaded: keep this one. */
        d->result = d->result.len <= room ? doc_copy(q->arena, d->result) : (struct doc){NULL, 0};
        d->truncated = d->result.ptr == NULL && q->run->steps[ix].result.id != 0;
        room -= d->result.len;
        c->dependencies_n++;
    }
    return BT_OK;
}

enum bt_code assignment_context(struct assignment *q, size_t room, struct bt_error *err)
{
    const struct plan *plan = q->plan->plan;
    uint32_t cap = plan->n_steps < 4096 ? plan->n_steps : 4096;
    struct context_pick *picks = arena_alloc(q->arena, cap * sizeof *picks);
    struct context_choice choice;
    enum bt_code code;

    if (picks == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    choice = context_choose(plan, q->run, q->step, picks, cap);
    code = render_text(q, picks, choice, err);
    if (code == BT_OK) {
        code = dependencies(q, room, err);
    }
    q->m.context.text = buf_str(&q->text);
    return code;
}

/* ---- the head ---- */

static msec sooner(msec a, msec b)
{
    return b != 0 && b < a ? b : a; /* 0: the core has not set it */
}

/* What is left of the attempt or the question, of the whole step, and of the plan; 0 = no end. */
static uint64_t time_left(const struct assignment *q)
{
    const struct run_step *row = &q->run->steps[q->step];
    msec end = sooner(sooner(sooner(MSEC_NEVER, row->deadline), row->limit),
                      core_plan_deadline(engine_core(q->engine), q->plan->run));

    return end == MSEC_NEVER ? 0 : end > engine_now(q->engine) ? end - engine_now(q->engine) : 1;
}

static void put_budget(struct assignment *q)
{
    uint64_t tokens;
    uint64_t micros;

    core_budget_left(engine_core(q->engine), q->plan->run, q->step, &tokens, &micros);
    if (tokens != UINT64_MAX) {
        q->m.budget.tokens = tokens;
        msg_set(&q->m.budget, budget, tokens);
    }
    if (micros != UINT64_MAX) {
        q->m.budget.cost_micros = micros;
        msg_set(&q->m.budget, budget, cost_micros);
    }
    if (q->m.budget.has != 0) {
        msg_set(&q->m, step_execute, budget);
    }
}

static void put_head(struct assignment *q, const struct lane_instance *in, uint32_t attempt)
{
    const struct plan *plan = q->plan->plan;
    const struct plan_step *s = &plan->steps[q->step];
    const struct note *note = step_notes_of(&q->plan->notes, q->step);

    uuid_format(plan->plan_id, q->plan_id);
    step_key(plan, q->step, q->phase, q->key);
    step_traceparent(plan, q->step, q->phase, attempt, q->traceparent);
    (void)snprintf(q->position, sizeof q->position, "Step %u of %u", q->step + 1, plan->n_steps);
    q->m = (struct msg_step_execute){
        .session_key = str_from(in->session_key),
        .plan_id = str_from(q->plan_id),
        .session_id = plan->session_id,
        .revision = s->revision > 0 ? s->revision : plan->revision,
        .step_id = s->step_id,
        .step_index = q->step,
        .step_count = plan->n_steps,
        .key = str_from(q->key),
        .attempt = attempt,
        .epoch = in->epoch,
        .deadline_ms = time_left(q),
        .purpose = str_from(step_phase_name(q->phase)),
        .traceparent = str_from(q->traceparent),
    };
    if (q->phase <= PHASE_SEARCH) {
        q->m.idle_ms = s->policy.idle_ms;
        q->m.feedback = note != NULL ? note->feedback : (struct str){"", 0};
    }
    put_budget(q);
}

/* What goes with the task, once it is known. */
static void put_task_context(struct assignment *q)
{
    struct msg_context *c = &q->m.context;

    c->is_plan_context = true;
    c->step_id = q->m.step_id;
    c->task_context.current_task = q->m.task;
    c->task_context.task_id = c->step_id;
    c->task_context.original_request = q->plan->plan->goal;
    c->task_context.plan_position = str_from(q->position);
}

void assignment_put(struct buf *out, const char *name, struct str text, size_t max)
{
    text.len = text.len == 0 ? 0 : utf8_cut(text.ptr, text.len, max);
    doc_put_cstr(out, name);
    doc_put_str(out, text.len > 0 ? text : (struct str){"", 0});
}

static enum bt_code make_job(struct assignment *q, struct bt_error *err)
{
    static const struct {
        const char *purpose;
        enum bt_code (*make)(struct assignment *, struct bt_error *);
    } kinds[] = {
        [JOB_NONE] = {"execute", assignment_step},
        [JOB_PLANNING] = {"plan", assignment_plan},
        [JOB_SYNTHESIS] = {"synthesize", assignment_synthesis},
        [JOB_CONVERSE] = {"converse", assignment_converse},
        [JOB_SUMMARY] = {"execute", assignment_summary},
    };
    const struct plan_step *s = &q->plan->plan->steps[q->step];

    _Static_assert(sizeof kinds / sizeof kinds[0] == JOB_KIND_COUNT, "a maker per job");
    q->m.purpose = str_from(kinds[q->plan->job->kind].purpose);
    q->m.task = s->task;
    q->m.skill = s->skill;
    return kinds[q->plan->job->kind].make(q, err);
}

enum bt_code assignment_make(struct assignment *q, const struct lane_instance *in, uint32_t attempt,
                             struct bt_error *err)
{
    static enum bt_code (*const makers[])(struct assignment *, struct bt_error *) = {
        [PHASE_EXECUTE] = assignment_step,  [PHASE_SEARCH] = assignment_search,
        [PHASE_GATE] = assignment_gate,     [PHASE_VERIFY] = assignment_verify,
        [PHASE_REPLAN] = assignment_replan,
    };
    enum bt_code code;

    _Static_assert(sizeof makers / sizeof makers[0] == STEP_PHASE_COUNT, "a maker per phase");
    q->agent = in->agent;
    put_head(q, in, attempt);
    code = q->plan->job != NULL ? make_job(q, err) : makers[q->phase](q, err);
    if (code == BT_OK) {
        code = assignment_session(q, err);
    }
    put_task_context(q);
    return code;
}
