/* One reading of one plan document. Private to this folder; the parts are plan_find, plan_step,
 * plan_schema, plan_write. */
#ifndef PLANNER_PLAN_READER_H
#define PLANNER_PLAN_READER_H

#include "protocol/base/buf.h"
#include "supervisor/planner/plan_policy.h"

struct plan_reader {
    const struct plan_request *request;
    const struct registry *registry; /* for indexes only when `again` */
    bool again;
    struct arena *arena;  /* what the plan keeps */
    struct arena scratch; /* what only the reading needs */
    struct problems *problems;
    struct bt_error *err;
    struct plan *plan;
    struct plan_policy policy;
    struct policy_said said;
    uint64_t said_plan, said_step;
    struct doc *steps;      /* as found, plan->n_steps of them */
    struct doc *phase_deps; /* dependencies of the phase that the step was in; absent mostly */
    bool any_deps;          /* a dependency field stands somewhere: not a chain */
    struct buf dep_names;   /* struct str, plan->n_edges of them */
    struct buf texts;       /* struct plan_text */
    uint32_t choices;       /* steps whose skill was chosen for them */
};

/*
 * plan_find.c: the steps, goal, policy and so on, wherever they stand in the document. Fills steps,
 * phase_deps and plan->n_steps, the plan's texts and the policy.
 */
BT_MUST_CHECK enum bt_code plan_find(struct plan_reader *r, struct doc doc);
/* plan_step.c: reads step ix into plan->steps[ix]; its dependencies into dep_names, its templates
 * into texts. */
BT_MUST_CHECK enum bt_code plan_step_read(struct plan_reader *r, uint32_t ix);
/* plan_skill.c: the skill of a step that names only its agent; a warning says which was taken. */
struct place;
BT_MUST_CHECK enum bt_code plan_skill_choose(struct plan_reader *r, struct plan_step *step,
                                             const struct place *at);
/* plan_schema.c: parameters against the skills' input schemas; verify is a schema. */
BT_MUST_CHECK enum bt_code plan_schema_check(struct plan_reader *r);
/* plan_write.c: the canonical document. */
BT_MUST_CHECK enum bt_code plan_write(const struct plan *plan, const struct plan_policy *policy,
                                      struct buf *out, struct bt_error *err);

static inline enum bt_code reader_nomem(struct plan_reader *r)
{
    return err_set(r->err, BT_NOMEM, "out of memory for a plan");
}
#endif
