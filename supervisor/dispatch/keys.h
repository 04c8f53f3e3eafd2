/*
 * Keys of what is asked of agents: planId/revision/stepId, and for what is not the step itself
 * planId/revision/stepId/phase. A step's id has no slash, so the two cannot be mistaken. An agent
 * that calls others is asked once per turn: from the second one on planId/revision/stepId/turnN.
 */
#ifndef DISPATCH_KEYS_H
#define DISPATCH_KEYS_H

#include "protocol/base/trace.h"
#include "supervisor/dispatch/lanes.h"
#include "supervisor/engine/open_plan.h"

/* turns: that are over (struct run_step). */
void step_key(const struct plan *plan, struct uuid plan_id, uint32_t step, enum step_phase phase,
              uint32_t turns, char ret[LIMIT_KEY_BYTES + 1]);
/* Finds what a key that the instance names stands for; false when no open plan has it. */
bool key_find(struct engine *engine, const struct lane_instance *by, struct str key,
              uint64_t *ret_run, uint32_t *ret_step, enum step_phase *ret_phase);
/* W3C trace context: the trace of the plan, and the span of the attempt, as the gateway exports it;
 * what is asked before an attempt, or after the last one, has that of the step. */
void step_traceparent(const struct open_plan *p, uint32_t step, enum step_phase phase,
                      uint32_t attempt, char ret[TRACEPARENT_LEN + 1]);
#endif
