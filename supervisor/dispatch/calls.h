/*
 * Calls: what an agent calls while it does a step (outcome calls), and what it is told about that.
 * A call that cannot be made is no failure of the step: it is stored with its error, which is its
 * result.
 *
 *   transcript = [{result?, calls: [call], results?: [result]}]       one entry per turn
 *   call       = {id, agentId, skill, task?, parameters?, plan?, approval?, error?}
 *   result     = {id, status, text?, data?, artifacts?, truncated?, error?, errorClass?}
 */
#ifndef DISPATCH_CALLS_H
#define DISPATCH_CALLS_H

#include "supervisor/dispatch/assignment.h"

enum {
    CALLS_TRANSCRIPT_MAX = 2 * 1024 * 1024,
    CALLS_TOOLS_MAX = 512 * 1024,
    CALLS_PLAN_STEPS = 100,
    CALLS_SAME_MAX = 2 /* the same call in so many turns in a row; one more is an error */
};

/* Reads m->calls into ev: outcome CALLS with the transcript as its result, or a failure whose text
 * lies in `text`. */
BT_MUST_CHECK enum bt_code calls_take(struct engine *engine, const struct msg_step_result *m,
                                      struct core_event *ev, struct buf *text,
                                      struct bt_error *err);
/* Fills tools, turns and turnsLeft when the skill of the assignment may call others. */
BT_MUST_CHECK enum bt_code assignment_calls(struct assignment *q, struct bt_error *err);
#endif
