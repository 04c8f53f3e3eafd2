/* A step goes out: its parameters expanded, its context rendered, its request sent on its lane. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/bus/bus.h"
#include "supervisor/core/context.h"
#include "supervisor/planner/expand.h"

/* What one dispatch needs, from several allocations with one end. */
struct parcel {
    struct bus *b;
    const struct bus_plan *plan;
    const struct run *run;
    uint32_t step;
    struct arena *arena;
    struct buf text;   /* rendered context */
    struct buf params; /* expanded parameters */
    struct buf task;
    struct msg_step_execute m;
    char plan_id[UUID_TEXT_LEN + 1];
    char key[LIMIT_KEY_BYTES + 1];
    char position[48];
};

/* {{results.x}}: the result of a completed step of this run. */
static enum bt_code resolve(struct str step_id, struct doc *ret, void *self, struct bt_error *err)
{
    const struct parcel *q = self;
    uint32_t ix = plan_step_find(q->plan->plan, step_id);

    if (ix == UINT32_MAX || q->run->steps[ix].status != STEP_COMPLETED) {
        return err_set(err, BT_INVALID, "step '%.*s' has no result", STR_ARG(step_id));
    }
    return bus_result_doc(q->b, q->run->steps[ix].result, ret, err);
}

static enum bt_code expand(struct parcel *q, struct bt_error *err)
{
    const struct plan_step *s = &q->plan->plan->steps[q->step];
    enum bt_code code = expand_text(s->task, resolve, q, &q->task, err);

    q->m.task = buf_str(&q->task);
    if (q->m.task.len > LIMIT_TASK_BYTES) {
        q->m.task.len = utf8_cut(q->m.task.ptr, q->m.task.len, LIMIT_TASK_BYTES);
    }
    if (code == BT_OK && s->parameters.ptr != NULL) {
        code = expand_params(s->parameters, resolve, q, &q->params, err);
        q->m.parameters = doc_from_buf(&q->params);
    }
    return code;
}

/* M070: "Previous step results:\n- Step <i+1> (<agentId>): <result>\n\nCurrent task: <task>" or
 * "Task: <task>". */
static enum bt_code render_text(struct parcel *q, const struct context_pick *picks,
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
        const struct plan_step *s = &q->plan->plan->steps[picks[i].step];
        bool cut;
        buf_printf(&q->text, "- Step %u (%.*s): ", picks[i].step + 1, STR_ARG(s->agent_id));
        code = bus_result_text(q->b, picks[i].result, picks[i].bytes, &q->text, &cut, err);
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
static enum bt_code dependencies(struct parcel *q, struct bt_error *err)
{
    const struct plan *plan = q->plan->plan;
    const struct plan_step *s = &plan->steps[q->step];
    struct msg_context *c = &q->m.context;
    struct msg_task_context *t = &c->task_context;
    const uint32_t before = q->step - 1;
    const uint32_t *deps = plan->chain ? &before : plan->deps + s->deps_at;
    const uint32_t n = plan->chain ? q->step > 0 : s->deps_n;
    size_t left = LIMIT_RESULT_BYTES / 2;

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
        d->agent_id = plan->steps[ix].agent_id;
        t->dependencies_completed[t->dependencies_completed_n++] = d->step_id;
        code = bus_result_doc(q->b, q->run->steps[ix].result, &d->result, err);
        if (code != BT_OK) {
            return code;
        }
        /* A cached document may move when the next one is loaded: keep this one. */
        d->result = d->result.len <= left ? doc_copy(q->arena, d->result) : (struct doc){NULL, 0};
        d->truncated = d->result.ptr == NULL && q->run->steps[ix].result.id != 0;
        left -= d->result.len;
        c->dependencies_n++;
    }
    return BT_OK;
}

static enum bt_code render_context(struct parcel *q, struct bt_error *err)
{
    const struct plan *plan = q->plan->plan;
    uint32_t cap = plan->n_steps < 4096 ? plan->n_steps : 4096;
    struct context_pick *picks = arena_alloc(q->arena, cap * sizeof *picks);
    struct msg_context *c = &q->m.context;
    struct context_choice choice;
    enum bt_code code;

    if (picks == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    choice = context_choose(plan, q->run, q->step, picks, cap);
    code = render_text(q, picks, choice, err);
    if (code == BT_OK) {
        code = dependencies(q, err);
    }
    c->text = buf_str(&q->text);
    c->is_plan_context = true;
    c->step_id = plan->steps[q->step].step_id;
    (void)snprintf(q->position, sizeof q->position, "Step %u of %u", q->step + 1, plan->n_steps);
    c->task_context.current_task = q->m.task;
    c->task_context.task_id = c->step_id;
    c->task_context.original_request = plan->goal;
    c->task_context.plan_position = str_from(q->position);
    return code;
}

static enum bt_code build(struct parcel *q, const struct bus_instance *in,
                          const struct core_cmd *cmd, struct bt_error *err)
{
    const struct plan *plan = q->plan->plan;
    const struct plan_step *s = &plan->steps[cmd->step];
    const struct run_step *row = &q->run->steps[cmd->step];
    enum bt_code code;

    uuid_format(plan->plan_id, q->plan_id);
    step_key(plan, cmd->step, cmd->phase, q->key);
    q->m = (struct msg_step_execute){
        .session_key = str_from(in->session_key),
        .plan_id = str_from(q->plan_id),
        .session_id = plan->session_id,
        .revision = plan->revision,
        .step_id = s->step_id,
        .step_index = cmd->step,
        .step_count = plan->n_steps,
        .key = str_from(q->key),
        .attempt = cmd->attempt,
        .epoch = in->epoch,
        .deadline_ms = row->deadline == MSEC_NEVER ? 0
                       : row->deadline > q->b->now ? row->deadline - q->b->now
                                                   : 1,
        .skill = s->skill,
    };
    code = expand(q, err);
    return code == BT_OK ? render_context(q, err) : code;
}

/* The step could not go out for a reason of its own (a template without a value, a context too
 * large). */
static void fail_step(struct bus *b, const struct core_cmd *cmd, const struct bt_error *why)
{
    const struct bus_instance *in = lanes_instance(b, cmd->slot, cmd->epoch);
    struct core_event ev = {.type = CORE_RESULT,
                            .run = cmd->run,
                            .step = cmd->step,
                            .phase = cmd->phase,
                            .attempt = cmd->attempt,
                            .slot = cmd->slot,
                            .epoch = cmd->epoch,
                            .lane = cmd->lane,
                            .outcome = STEP_OUTCOME_FAILED,
                            .error_class = CLASS_VALIDATION_ERROR,
                            .retryable_given = true,
                            .text = str_from(why->msg)};

    if (in != NULL) {
        (void)uuid_parse(str_from(in->id), &ev.instance);
    }
    bus_later(b, &ev);
}

static void not_sent(struct bus *b, const struct core_cmd *cmd)
{
    struct core_event ev = {.type = CORE_LOST,
                            .run = cmd->run,
                            .step = cmd->step,
                            .phase = cmd->phase,
                            .attempt = cmd->attempt,
                            .slot = cmd->slot,
                            .epoch = cmd->epoch,
                            .lane = cmd->lane,
                            .sent = false};
    bus_later(b, &ev);
}

static bool send_step(struct bus *b, struct bus_lane *lane, struct parcel *q,
                      const struct core_cmd *cmd, struct bt_error *err)
{
    enum bt_code code;

    buf_clear(&b->row);
    b->row.max = LIMIT_STEP_BYTES;
    code = msg_request(&b->row, lane->instance->form, str_from(q->key), (struct str){NULL, 0},
                       MSG_step_execute, &q->m, err);
    if (code != BT_OK) {
        fail_step(b, cmd, err);
        return true;
    }
    lane->item = (struct control_item){
        .run = cmd->run, .step = cmd->step, .phase = cmd->phase, .attempt = cmd->attempt};
    memcpy(lane->item.key, q->key, sizeof q->key);
    if (link_lane_send(lane->link, b->row.at, b->row.len, err) != BT_OK) {
        return false;
    }
    lane->state = LANE_BUSY;
    lane->cancelled = false;
    b->stats.steps_dispatched++;
    b->cards[lane->instance->agent].requests++;
    return true;
}

void bus_dispatch(struct bus *b, const struct core_cmd *cmd)
{
    struct bus_instance *in = lanes_instance(b, cmd->slot, cmd->epoch);
    struct bus_plan *p = bus_plan_of(b, cmd->run);
    struct bus_lane *lane = in != NULL && cmd->lane < in->capacity ? &in->lanes[cmd->lane] : NULL;
    struct parcel q = {.b = b, .plan = p, .step = cmd->step, .arena = &b->parcel};
    struct bt_error err;

    if (p == NULL || core_block_run(p->block)->steps[cmd->step].status != STEP_IN_PROGRESS ||
        core_block_run(p->block)->steps[cmd->step].attempt != cmd->attempt || lane == NULL ||
        lane->state != LANE_READY) {
        not_sent(b, cmd);
        return;
    }
    q.run = core_block_run(p->block);
    buf_init(&q.text, LIMIT_RESULT_BYTES);
    buf_init(&q.params, LIMIT_RESULT_BYTES);
    buf_init(&q.task, LIMIT_RESULT_BYTES);
    if (build(&q, in, cmd, &err) != BT_OK) {
        fail_step(b, cmd, &err);
    } else if (!send_step(b, lane, &q, cmd, &err)) {
        log_debug("step.not_sent", "key=%s %s", q.key, err.msg);
        not_sent(b, cmd);
    }
    buf_done(&q.text);
    buf_done(&q.params);
    buf_done(&q.task);
    arena_reset(&b->parcel);
}
