/* Shared by the two halves of the session: session.c (control) and session_rows.c (executions). */
#ifndef SDK_SESSION_INTERNAL_H
#define SDK_SESSION_INTERNAL_H

#include "agents/sdk/agent_state.h"

void session_emit(struct session_actions *out, struct session_action action);
void session_say(struct session_actions *out, uint32_t row, const char *text);
/* Executions: each handles one event. */
void session_on_execute(struct session *s, const struct session_event *ev,
                        struct session_actions *out);
void session_on_cancel(struct session *s, const struct session_event *ev,
                       struct session_actions *out);
void session_on_query(struct session *s, const struct session_event *ev,
                      struct session_actions *out);
void session_on_finished(struct session *s, const struct session_event *ev,
                         struct session_actions *out);
/* Old results go; cancelled executions past their grace are marked. */
void session_tick_rows(struct session *s, msec now, struct session_actions *out);
msec session_rows_deadline(const struct session *s);
/* The oldest row that must be reported by step.result; SESSION_NO_ROW when there is none. */
uint32_t session_undelivered(const struct session *s);
uint32_t session_with_progress(const struct session *s);
/* Results since then may have reached nobody. */
void session_doubt_since(struct session *s, msec at);
/* Whether a request of this epoch may be served; adopts the epoch of a registration whose answer is
 * on its way. */
bool session_epoch_ok(struct session *s, uint64_t epoch);
#endif
