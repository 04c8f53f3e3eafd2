/* Results in: what agents answer, read as what they were asked. */
#ifndef DISPATCH_RESULTS_H
#define DISPATCH_RESULTS_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/* The answer to a step or a question. ev->phase, slot, epoch, instance and lane (LANE_NONE: it came
 * as a request) are the caller's. */
enum core_reject results_take(struct engine *engine, const struct msg_step_result *m, uint64_t run,
                              uint32_t step, struct core_event *ev);

/* ---- between the files that read answers ---- */

/* The answer breaks the protocol: a failure that is not tried again. `why` is borrowed. */
void result_invalid(struct core_event *ev, struct str why);
/*
 * replan_answer.c: a replanner's answer as a revision of the plan: plan, block and document in
 * *revision and *ev (the document is stored in this cycle). One that is no plan, or that the plan
 * check refuses, is a failure of *ev with its problems in *text. Only the journal's failure is
 * returned.
 */
BT_MUST_CHECK enum bt_code replan_take(struct engine *engine, const struct msg_step_result *m,
                                       struct core_event *ev, struct new_revision *revision,
                                       struct buf *text, struct bt_error *err);
#endif
