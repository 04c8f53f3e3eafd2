/* Declarations shared by the files that apply records. Private to run_*.c. */
#ifndef CORE_RUN_APPLY_H
#define CORE_RUN_APPLY_H

#include "supervisor/core/run/run_internal.h"

/* The rule of one type of record: checks whether it fits, then changes the run. */
typedef bool run_rule(struct run *run, const struct plan *plan, const struct record *rec);

/* ---- run_move.c ---- */
/* Adds the step to the run's counts, or removes it. */
void run_step_count(struct run *run, const struct run_step *step, bool in);
/* The caller has checked the rest of the record. A step that changes its status has no deadline. */
void run_step_move(struct run *run, struct run_step *step, enum step_status to,
                   enum step_phase phase);
/* Updates the dependents of a step that has just ended. */
void run_settle_dependents(struct run *run, const struct plan *plan, uint32_t ended);
void run_usage_add(struct usage *sum, const struct usage *u);
/* The usage is of the step's attempt, or of the question that it is CHECKING: call it before the
 * step moves. */
void run_spend(struct run *run, struct run_step *step, const struct usage *u);
/* The usage is of replanning. */
void run_spend_replan(struct run *run, const struct usage *u);
void run_mark_paid(struct run_step *step, uint32_t attempt, const struct usage *u);
/* The phase of the step's next attempt. A search (M042) stays one while the search agent has the
 * step. */
enum step_phase run_next_phase(const struct plan *plan, const struct run_step *step);
/* Gives questions that could not be asked while the plan was on hold their full time again. */
void run_renew_questions(struct run *run, const struct plan *plan, msec now);
/* The record is about the current attempt, which is under way or has lost its reply. */
bool run_is_current_attempt(const struct run *run, const struct record *rec);
/* The step has begun and is not over, and the record is about its latest attempt. */
bool run_may_recover(const struct run *run, const struct record *rec);

/* The run has its next revision, which a person has to sign off again unless it is the same work.
 */
void run_revised(struct run *run, bool same_work);
/* Nothing is left to sign off. */
void run_void_signoff(struct run *run);
/* Ends all open steps with the plan. Nothing may be under way. */
void run_end_open_steps(struct run *run);
/* The next attempt does not count against max_retries. A second call before it has no effect. */
void run_grant(struct run_step *step);

/* ---- run_apply*.c: one rule per record of a run; run_apply_step.c has those about attempts,
 * run_apply_ask.c about people, checks and replans, run_apply_job.c about planning and synthesis */
#define RULE_PLAN_ONLY(codec) run_rule run_apply_##codec;
#define RULE_STEP_ONLY(codec) run_rule run_apply_##codec;
#define RULE_EITHER(codec) run_rule run_apply_##codec;
#define RULE_NO_RUN(codec)
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    RULE_##scope(codec)
#include "supervisor/core/run/record.def"
#undef RULE_PLAN_ONLY
#undef RULE_STEP_ONLY
#undef RULE_EITHER
#undef RULE_NO_RUN

/* The part of a record with a new plan that concerns the job that ends. */
bool run_job_revises(const struct run *run, const struct plan *from, const struct record *rec);
void run_job_revised(struct run *next, const struct plan *to, const struct record *rec);
#endif
