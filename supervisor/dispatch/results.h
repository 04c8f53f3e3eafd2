/* Between the files that read what agents answer. */
#ifndef ENGINE_RESULTS_H
#define ENGINE_RESULTS_H

#include "supervisor/engine/engine.h"

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
