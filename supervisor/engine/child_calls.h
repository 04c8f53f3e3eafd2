/* The child plan of the calls that the agent of a step makes in a turn. */
#ifndef ENGINE_CHILD_CALLS_H
#define ENGINE_CHILD_CALLS_H

#include "supervisor/core/sched/core.h"
#include "supervisor/engine/submission.h"
#include "supervisor/plan/flow/child.h"

/* Makes the plan of the calls in the last turn of the step's transcript. BT_INVALID when none of
 * them can be made. */
BT_MUST_CHECK enum bt_code child_calls_make(struct engine *engine, const struct open_plan *p,
                                            uint32_t step, const struct child_of *of,
                                            const struct child_share *share, struct submission *d,
                                            struct bt_error *err);
/* Stores the transcript with the results of the last turn: io->result. child: the plan that did the
 * calls; NULL: none did, and `why` is the error of those that have none. */
BT_MUST_CHECK enum bt_code child_calls_answer(struct engine *engine, const struct open_plan *p,
                                              uint32_t step, const struct open_plan *child,
                                              struct str why, struct core_ev_child *io,
                                              struct bt_error *err);
#endif
