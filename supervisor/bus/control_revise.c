/* plan.modify insert and replace: a new revision of the plan, composed, checked and handed over. */
#include "supervisor/bus/control.h"
#include "supervisor/bus/draft.h"
#include "supervisor/planner/plan_revise.h"

static uint32_t superseded(const struct plan *plan)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_steps; i++) {
        n += plan->steps[i].superseded;
    }
    return n;
}

/* The new revision, its block and its document in the journal. Problems go to d. */
static enum bt_code compose(struct bus *b, const struct bus_plan *p,
                            const struct msg_plan_modify *m, struct core_event *ev, struct draft *d,
                            struct bus_revision *rev, struct bt_error *err)
{
    const struct run *run = core_block_run(p->block);
    struct plan_revise_request request = {.kind = ev->modify == MODIFY_INSERT ? REVISE_INSERT
                                                                              : REVISE_REPLACE,
                                          .change = m->steps,
                                          .after = m->after_step_id,
                                          .before = m->before_step_id,
                                          .step = m->step_id,
                                          .plan = p->plan,
                                          .run = run,
                                          .registry = b->registry,
                                          .revision = run->revision + 1};
    enum bt_code code =
        plan_revise(&request, &rev->arena, &rev->plan, &d->problems, &d->normalised, err);

    if (code == BT_OK) {
        code = plan_resolve(rev->plan, b->registry, b->now, err);
    }
    if (code == BT_OK) {
        rev->block = bus_plan_block(rev->plan);
        code = rev->block == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan of %u steps",
                                            rev->plan->n_steps)
                                  : BT_OK;
    }
    if (code == BT_OK) {
        ev->result.len = d->normalised.len;
        code =
            journal_blob_add(b->journal, d->normalised.at, d->normalised.len, &ev->result.id, err);
        if (code != BT_OK) {
            bus_fail(b, err);
        }
    }
    ev->plan = rev->plan;
    ev->block = rev->block;
    return code;
}

/* Only what names no step of the old plan can be said before it is looked at. */
static const char *what_lacks(const struct msg_plan_modify *m, enum modify_kind kind)
{
    if (m->steps.ptr == NULL) {
        return "steps: expected a list of the new steps, as in a plan";
    }
    return kind == MODIFY_REPLACE && m->step_id.len == 0 && doc_head(m->steps).kind != DOC_MAP
               ? "stepId: expected the id of the step that the new ones replace"
               : NULL;
}

static const char *not_now(const struct bus_plan *p)
{
    return core_block_run(p->block)->replanning > 0
               ? "a replan is under way; the plan can be changed when it is over"
               : control_why_not(p, NULL);
}

void control_revise(struct bus *b, struct request *rq, struct bus_plan *p,
                    const struct msg_plan_modify *m, struct core_event *ev)
{
    const char *lacks = what_lacks(m, ev->modify);
    uint32_t steps = p->plan->n_steps;
    uint32_t without = superseded(p->plan);
    struct bus_revision rev = {.plan = NULL};
    struct draft d;
    struct bt_error err;

    if (lacks != NULL) {
        bus_refuse_text(b, rq, BT_INVALID, "%s", lacks);
        return;
    }
    ev->type = CORE_REVISE;
    if (draft_init(&d, &err) != BT_OK || compose(b, p, m, ev, &d, &rev, &err) != BT_OK) {
        if (!b->failed) {
            draft_refuse(b, rq, &d, &err);
        }
    } else {
        b->revision = &rev;
        if (control_feed(b, rq, p, ev, not_now(p))) {
            struct msg_plan_modify_ok ok = {.plan_id = str_from(p->id),
                                            .revision = core_block_run(p->block)->revision,
                                            .changed = p->plan->n_steps - steps +
                                                       superseded(p->plan) - without};
            ok.problems_n = draft_problems(&d);
            ok.problems = d.problem_views;
            bus_answer(b, rq, MSG_plan_modify_ok, &ok);
        }
        b->revision = NULL;
    }
    bus_revision_done(&rev);
    draft_done(&d);
}
