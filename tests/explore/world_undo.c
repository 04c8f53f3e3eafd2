/* Undoing what a plan did: when it must be, when it must not, and in which order. */
#include "tests/explore/world.h"

bool world_may_undo(const struct world *w)
{
    const struct plan *plan = world_plan(w);
    bool may = false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        may |= plan->steps[i].undoes;
    }
    return may;
}

/* It completed in this run, or a child plan was asked to do it. */
static bool is_undone(const struct world *w, uint32_t step)
{
    const struct plan_step *about = &world_plan(w)->steps[step];
    const struct told *told = &w->at.told[step];
    const bool completed = w->shadow->steps[step].status == STEP_COMPLETED;
    const bool child = about->type == STEP_TYPE_PLAN && told->child_attempt > 0;
    return about->undoes && told->started == 1 && told->completed == 1 &&
           (completed ? about->rules->compensate.ptr != NULL || child : child);
}

bool world_wants_undo(const struct world *w, enum plan_status end)
{
    const struct plan *plan = world_plan(w);
    bool something = false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        something |= is_undone(w, i);
    }
    return something && plan->undo != UNDO_NEVER &&
           (end == PLAN_FAILED || (end == PLAN_CANCELLED && plan->undo == UNDO_ALWAYS &&
                                   plan->child.kind == CHILD_OF_NONE));
}

/* Each of them once, and of two that completed the later one first. */
static bool in_order(const struct world *w, const char **ret_why)
{
    uint32_t order[WORLD_STEPS];
    const uint32_t n = run_undo_order(w->shadow, world_plan(w), order);
    uint32_t wanted = 0;
    uint32_t last = STEP_NONE;
    for (uint32_t i = 0; i < world_plan(w)->n_steps; i++) {
        wanted += is_undone(w, i) ? 1 : 0;
    }
    RULE(n == wanted, "undoes more or less than was done");
    for (uint32_t i = 0; i < n; i++) {
        const bool completed = w->shadow->steps[order[i]].status == STEP_COMPLETED;
        RULE(is_undone(w, order[i]), "undoes what was not done");
        RULE(!completed || last == STEP_NONE || w->at.told[last].nth > w->at.told[order[i]].nth,
             "undoes in another order than the reverse");
        last = completed ? order[i] : last;
    }
    return true;
}

bool world_take_undo(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    const struct rec_synthesis_started *end = REC(rec, synthesis_started);
    const bool stopped = asking->kind == JOB_SYNTHESIS && !asking->out && w->at.cancelling;
    RULE(asking->kind == JOB_NONE || stopped, "undone while something else is asked");
    RULE(asking->undone == 0, "undone twice");
    for (uint32_t i = 0; i < world_plan(w)->n_steps; i++) {
        struct told *told = &w->at.told[i];
        RULE(told->started == 0 || told->completed == 1, "undone before its steps are over");
        told->completed = 1;
        if (w->shadow->steps[i].status == STEP_FAILED) {
            asking->pardoned |= (uint8_t)(1u << i);
        }
    }
    RULE(world_wants_undo(w, end->status), "undone although nobody wants it");
    if (!in_order(w, ret_why)) {
        return false;
    }
    if (asking->answered && asking->status != 0) {
        RULE(end->status == asking->status && rec->step == asking->step,
             "ends otherwise than was decided before the answer");
    }
    asking->kind = JOB_COMPENSATION;
    asking->status = (uint8_t)end->status;
    asking->outcome = (uint8_t)end->outcome;
    asking->failure = (uint8_t)end->failure;
    asking->step = rec->step;
    w->at.paused = 0;
    return world_ended_rightly(w, rec, ret_why);
}

bool world_take_undone(struct world *w, const struct record *rec, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    RULE(w->doing.kind == WORLD_COMPENSATED && asking->kind == JOB_COMPENSATION,
         "undone by nobody");
    RULE(REC(rec, compensated)->ok == (w->doing.variant == 0), "undone or not");
    asking->undone = w->doing.variant == 0 ? 1 : 2;
    asking->kind = JOB_NONE;
    asking->out = false;
    return true;
}

bool world_take_compensate(struct world *w, const char **ret_why)
{
    struct asking *asking = &w->at.job;
    RULE(asking->kind == JOB_COMPENSATION && !asking->out, "asks to undo nothing, or twice");
    asking->out = true;
    return true;
}
