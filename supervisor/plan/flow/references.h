/* References of steps to others: those of conditions, and edges that references add. */
#ifndef PLAN_REFERENCES_H
#define PLAN_REFERENCES_H

#include "protocol/base/arena.h"
#include "supervisor/core/plan/plan_check.h"

/* Whether the step's task, parameters or condition name another step. Such a step has a dependency,
 * whether it names it or not. */
bool plan_step_refers(const struct plan_step *step);

/*
 * plan_check, and what follows from it: where a step of a graph names a step that does not come
 * before it, that step becomes a dependency. Then plan->deps (also in->ret_deps) and the plan's
 * edges are replaced, in the arena. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code plan_check_references(struct plan_check_input *in, struct plan *plan,
                                                 struct problems *problems, struct arena *arena,
                                                 struct arena *scratch, struct bt_error *err);
#endif
