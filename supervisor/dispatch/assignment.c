#include "supervisor/dispatch/assignment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "registry/card.h"
#include "supervisor/dispatch/artifacts.h"
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
    buf_init(&q->text, LIMIT_STEP_BYTES);
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
        return s->agent_id.len > 0         ? s->agent_id
               : s->type == STEP_TYPE_PLAN ? STR_LIT("plan")
               : s->type == STEP_TYPE_WAIT ? STR_LIT("wait")
                                           : STR_LIT("person");
    }
    return registry_agent_view(engine_registry(q->engine), agent).id;
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

    uuid_format(q->plan->plan_id, q->plan_id);
    step_key(plan, q->plan->plan_id, q->step, q->phase, q->run->steps[q->step].turns, q->key);
    step_traceparent(q->plan, q->step, q->phase, attempt, q->traceparent);
    (void)snprintf(q->position, sizeof q->position, "Step %u of %u", q->step + 1, plan->n_steps);
    q->m = (struct msg_step_execute){
        .session_key = lanes_key(in),
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
        q->m.idle_ms = s->rules->policy.idle_ms;
        q->m.feedback = note_text(note != NULL ? note->feedback : NULL);
    }
    put_budget(q);
    artifacts_put_dir(q);
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
        [JOB_COMPENSATION] = {"execute", assignment_step}, /* a child plan, no job of its own */
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
    assignment_task_context(q);
    return code;
}
