/* Shared by agent_state.c (the control lane) and agent_state_slots.c (executions). */
#ifndef SDK_AGENT_STATE_INTERNAL_H
#define SDK_AGENT_STATE_INTERNAL_H

#include "agents/sdk/agent_state.h"

void agent_state_emit(struct agent_state_actions *out, struct agent_state_action action);
void agent_state_log(struct agent_state_actions *out, uint32_t slot, const char *text);
/* Executions: each handles one event. */
void agent_state_on_execute(struct agent_state *s, const struct agent_state_event *ev,
                            struct agent_state_actions *out);
void agent_state_on_cancel(struct agent_state *s, const struct agent_state_event *ev,
                           struct agent_state_actions *out);
void agent_state_on_query(struct agent_state *s, const struct agent_state_event *ev,
                          struct agent_state_actions *out);
void agent_state_on_finished(struct agent_state *s, const struct agent_state_event *ev,
                             struct agent_state_actions *out);
/* Expires old results; marks cancelled executions whose grace is over. */
void agent_state_tick_slots(struct agent_state *s, msec now, struct agent_state_actions *out);
msec agent_state_slots_deadline(const struct agent_state *s);
/* The oldest slot that step.result must report; AGENT_STATE_NO_SLOT when there is none. */
uint32_t agent_state_undelivered(const struct agent_state *s);
uint32_t agent_state_with_progress(const struct agent_state *s);
/* Marks the results since `at` as undelivered: their answers may be lost. */
void agent_state_mark_undelivered_since(struct agent_state *s, msec at);
/* Whether a request of this epoch is accepted. Adopts the epoch of a registration whose answer is
 * still in transit. */
bool agent_state_epoch_ok(struct agent_state *s, uint64_t epoch);
#endif
