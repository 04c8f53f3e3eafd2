/* plan.modify insert and replace: a new revision of the plan, composed, checked and handed over. */
#include "supervisor/dispatch/revise.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/submission.h"

static uint32_t superseded(const struct plan *plan)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_steps; i++) {
        n += plan->steps[i].superseded;
    }
    return n;
}

/* Problems that can be found before the old plan is looked at. */
static const char *what_lacks(const struct msg_plan_modify *m, enum modify_kind kind)
{
    if (m->steps.ptr == NULL) {
        return "steps: expected a list of the new steps, as in a plan";
    }
    return kind == MODIFY_REPLACE && m->step_id.len == 0 && doc_head(m->steps).kind != DOC_MAP
               ? "stepId: expected the id of the step that the new ones replace"
               : NULL;
}

static const char *not_now(const struct open_plan *p)
{
    return core_block_run(p->block)->replanning > 0
               ? "a replan is under way; the plan can be changed when it is over"
               : request_why_not(p, NULL);
}

void api_revise(struct engine *engine, struct request *rq, struct open_plan *p,
                const struct msg_plan_modify *m, enum modify_kind kind, uint32_t expect)
{
    struct core_event ev = {CORE_EV_INIT(REVISE, revise, .kind = kind, .expect = expect),
                            .step = STEP_NONE, .text = m->reasoning};
    struct core_new_plan *next = &CORE_EV(&ev, revise)->next;
    const struct revise_change change = {.kind =
                                             kind == MODIFY_INSERT ? REVISE_INSERT : REVISE_REPLACE,
                                         .steps = m->steps,
                                         .after = m->after_step_id,
                                         .before = m->before_step_id,
                                         .step = m->step_id};
    const char *lacks = what_lacks(m, kind);
    uint32_t steps = p->plan->n_steps;
    uint32_t without = superseded(p->plan);
    struct new_revision rev = {.plan = NULL};
    struct submission d;
    struct bt_error err;

    if (lacks != NULL) {
        request_refuse_text(engine, rq, BT_INVALID, "%s", lacks);
        return;
    }
    if (submission_init(&d, &err) != BT_OK ||
        revise_make(engine, p, &change, &d.problems, &rev, &next->document, &err) != BT_OK) {
        if (!engine_has_failed(engine)) {
            submission_refuse(engine, rq, &d, &err);
        }
    } else {
        next->plan = rev.plan;
        next->block = rev.block;
        if (request_revise(engine, rq, p, &ev, &rev, not_now(p))) {
            struct msg_plan_modify_ok ok = {.plan_id = str_from(p->id),
                                            .revision = core_block_run(p->block)->revision,
                                            .changed = p->plan->n_steps - steps +
                                                       superseded(p->plan) - without};
            ok.problems_n = submission_problems(&d);
            ok.problems = d.problem_views;
            request_answer(engine, rq, MSG_plan_modify_ok, &ok);
        }
    }
    new_revision_done(&rev);
    submission_done(&d);
}
