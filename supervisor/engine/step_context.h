/*
 * What a step is given of the steps before it: chosen here, once for the event that names what is
 * cut and once for the assignment. Not thread-safe: the loop thread's.
 */
#ifndef ENGINE_STEP_CONTEXT_H
#define ENGINE_STEP_CONTEXT_H

#include "supervisor/core/run/context.h"
#include "supervisor/engine/engine.h"

struct step_context {
    struct context_pick *picks; /* in the arena, in step order */
    struct context_choice choice;
};

BT_MUST_CHECK enum bt_code step_context_choose(struct engine *engine, const struct plan *plan,
                                               const struct run *run, uint32_t step,
                                               struct arena *arena, struct step_context *ret,
                                               struct bt_error *err);
#endif
