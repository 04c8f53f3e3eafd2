/*
 * What is sent to an agent about a step, put together: the step itself (execute, search), or a
 * question about it (gate, verify, replan). One assignment is made at a time, in the cycle's
 * `assignment` arena; its message borrows from the assignment, the plan and the cards.
 */
#ifndef DISPATCH_ASSIGNMENT_H
#define DISPATCH_ASSIGNMENT_H

#include "protocol/artifact/artifact.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"

/* From several allocations, with one end. */
struct assignment {
    struct engine *engine;
    const struct open_plan *plan;
    const struct run *run;
    uint32_t step;
    enum step_phase phase;
    uint32_t agent; /* who gets it */
    struct arena *arena;
    struct buf text;   /* rendered context */
    struct buf params; /* expanded or composed parameters */
    struct buf task;
    struct str request; /* CONVERSE: the person's message */
    struct msg_step_execute m;
    enum err_class error_class; /* of an assignment that cannot be made */
    char plan_id[UUID_TEXT_LEN + 1];
    char key[LIMIT_KEY_BYTES + 1];
    char position[48];
    char traceparent[TRACEPARENT_LEN + 1];
    char artifact_dir[ARTIFACT_PATH_MAX + 1];
};

/* cmd: CMD_DISPATCH. assignment_done in every case. */
void assignment_init(struct assignment *q, struct engine *engine, const struct open_plan *p,
                     const struct core_cmd *cmd);
void assignment_done(struct assignment *q);
/* Makes q->m. On failure q->error_class is the class. */
BT_MUST_CHECK enum bt_code assignment_make(struct assignment *q, const struct lane_instance *in,
                                           uint32_t attempt, struct bt_error *err);

/* Task, parameters and skill of the step's next attempt, as assignment_make will send them: what a
 * person sees before it runs. cmd of assignment_init: step and PHASE_EXECUTE. */
BT_MUST_CHECK enum bt_code assignment_preview(struct assignment *q, struct bt_error *err);

/* ---- between the files of the assignment ---- */

/* The card of the agent that gets it; NULL when it has none. */
const struct msg_card *assignment_card(const struct assignment *q);
/* Who executed, or is to execute, a step: the plan's agent, or who got it by handoff or fallback;
 * of a step without an agent "person", "plan" (its children) or "wait". */
struct str assignment_agent_id(const struct assignment *q, uint32_t step);
/* assignment_context.c: the text of the results before the step (M070), the results of its
 * dependencies, of at most `room` bytes together, and the steps that have none. */
BT_MUST_CHECK enum bt_code assignment_context(struct assignment *q, size_t room,
                                              struct bt_error *err);
/* What goes with the task, once it is known (M071). */
void assignment_task_context(struct assignment *q);
/* The skill that answers the question, when the agent's card has it; TOOL_NOT_FOUND otherwise. */
BT_MUST_CHECK enum bt_code assignment_question_skill(struct assignment *q, struct str wished,
                                                     const char *own, struct bt_error *err);
/* assignment_step.c: task, parameters and skill of the step itself, and of a search in its place;
 * assignment_ask.c: of a gate and a verification; assignment_replan.c: of a replan. */
BT_MUST_CHECK enum bt_code assignment_step(struct assignment *q, struct bt_error *err);
BT_MUST_CHECK enum bt_code assignment_search(struct assignment *q, struct bt_error *err);
BT_MUST_CHECK enum bt_code assignment_gate(struct assignment *q, struct bt_error *err);
BT_MUST_CHECK enum bt_code assignment_verify(struct assignment *q, struct bt_error *err);
BT_MUST_CHECK enum bt_code assignment_replan(struct assignment *q, struct bt_error *err);
/* assignment_converse.c: of a session. */
BT_MUST_CHECK enum bt_code assignment_converse(struct assignment *q, struct bt_error *err);
BT_MUST_CHECK enum bt_code assignment_summary(struct assignment *q, struct bt_error *err);
/* The messages of the session, for the context of each of its steps. */
BT_MUST_CHECK enum bt_code assignment_session(struct assignment *q, struct bt_error *err);
/* Adds the member `session` {summary, messages} to a map in out; messages before `before` (0 =
 * all).
 */
BT_MUST_CHECK enum bt_code assignment_put_session(struct assignment *q, struct str session_id,
                                                  uint64_t before, struct buf *out,
                                                  struct bt_error *err);
/* assignment_plan.c, assignment_synthesis.c: what a job asks. Composed when it goes out, out of the
 * plan that waits for it; BT_CONFLICT when that has ended. */
BT_MUST_CHECK enum bt_code assignment_plan(struct assignment *q, struct bt_error *err);
BT_MUST_CHECK enum bt_code assignment_synthesis(struct assignment *q, struct bt_error *err);
/* A member of a map: a text of at most so many bytes. */
void assignment_put(struct buf *out, const char *name, struct str text, size_t max);
/* The plan that waits for this job; NULL and an error when it does not any more. */
const struct open_plan *assignment_asker(struct assignment *q, struct bt_error *err);
#endif
