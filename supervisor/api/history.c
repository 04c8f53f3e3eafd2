/* plan.history: how the plan became what it is, and how its time and tokens were spent. */
#include "supervisor/query/history.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/row_body.h"

/* Of one answer, before it is looked whether they fit; lengths of M053. */
enum { HANDOFFS_SHOWN = 1000, INPUT_MAX = 300, APPROACH_MAX = 400 };

/* What the row of a replan lacks: the step's task and its agent. NULL when out of memory. */
static struct msg_replan_record *fill_replans(struct projection *s, const struct history *h)
{
    struct msg_replan_record *at = arena_alloc(&s->arena, (h->replans_n + 1) * sizeof *at);
    struct buf text;

    buf_init(&text, LIMIT_STEP_BYTES);
    for (uint32_t i = 0; at != NULL && i < h->replans_n; i++) {
        at[i] = h->replans[i];
        const struct plan_step *step =
            h->replan_steps[i] < s->plan->n_steps ? &s->plan->steps[h->replan_steps[i]] : NULL;
        if (step == NULL) {
            continue;
        }
        buf_clear(&text);
        if (step->parameters.ptr == NULL ||
            doc_to_json(step->parameters, false, &text, NULL) != BT_OK) {
            buf_clear(&text);
            buf_add_str(&text, step->task);
        }
        at[i].input = history_cut(s, buf_str(&text), INPUT_MAX);
        buf_clear(&text);
        buf_printf(&text, "%.*s%s%.*s: ", STR_ARG(step->agent_id), step->skill.len > 0 ? "/" : "",
                   STR_ARG(step->skill));
        buf_add_str(&text, step->task);
        at[i].approach = history_cut(s, buf_str(&text), APPROACH_MAX);
    }
    buf_done(&text);
    return at;
}

static struct usage total_usage(struct engine *engine, const struct projection *s)
{
    const struct open_plan *p = open_plan_by_id(engine, s->view.plan_id);

    return s->ended || p == NULL ? s->total : core_block_run(p->block)->usage;
}

static struct msg_plan_history_ok view_of(struct engine *engine, struct projection *s,
                                          const struct history *h)
{
    struct usage total = total_usage(engine, s);
    uint32_t executions = 0;

    for (uint32_t i = 0; i < h->phases_n; i++) {
        executions += str_is(h->phases[i].phase, "execution");
    }
    return (struct msg_plan_history_ok){
        .plan_id = s->view.plan_id,
        .parent_plan_id = s->view.parent_plan_id,
        .trace_id = s->view.trace_id,
        .task = s->view.query,
        .status = s->view.status,
        .damaged = s->view.damaged,
        .outcome = s->view.outcome,
        .total_duration_ms = (s->ended ? s->ended_at : engine_wall(engine)) - s->created,
        .total_tokens = total.input_tokens + total.output_tokens,
        .execution_attempts = executions,
        .replan_count = h->replans_n,
        .revisions = h->revisions,
        .revisions_n = h->revisions_n,
        .handoffs = s->handoffs,
        .handoffs_n = s->handoffs_n < HANDOFFS_SHOWN ? s->handoffs_n : HANDOFFS_SHOWN,
        .replans = fill_replans(s, h),
        .replans_n = h->replans_n,
        .phases = h->phases,
        .phases_n = h->phases_n,
        .reviews = h->reviews,
        .reviews_n = h->reviews_n,
        .owner = s->view.owner,
        .orders = h->orders,
        .orders_n = h->orders_n,
        .truncated = h->truncated || s->handoffs_cut || s->handoffs_n > HANDOFFS_SHOWN,
    };
}

/* As much as fits: the newest are left out, and `truncated` is set. */
static void answer_history(struct engine *engine, struct request *rq,
                           struct msg_plan_history_ok *ok)
{
    struct bt_error err;

    while (request_try_answer(engine, rq, MSG_plan_history_ok, ok, &err) != BT_OK) {
        if (ok->handoffs_n + ok->reviews_n + ok->revisions_n + ok->phases_n + ok->orders_n == 0) {
            request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        ok->handoffs_n /= 2;
        ok->reviews_n /= 2;
        ok->orders_n /= 2;
        ok->revisions_n /= 2;
        ok->phases_n /= 2;
        ok->replans_n /= 2;
        ok->truncated = true;
    }
}

void on_plan_history(struct engine *engine, struct request *rq)
{
    struct msg_plan_history_ok ok;
    struct msg_plan_history m;
    struct projection s;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_history, &m)) {
        return;
    }
    if (projection_read(engine, m.plan_id, &s, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        ok = view_of(engine, &s, projection_history(&s));
        if (ok.replans == NULL) {
            request_refuse_text(engine, rq, BT_NOMEM, "out of memory for the story of a plan");
        } else {
            answer_history(engine, rq, &ok);
        }
    }
    projection_done(&s);
}
