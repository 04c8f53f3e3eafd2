/* What the files that apply records share. Private to run_*.c. */
#ifndef CORE_RUN_APPLY_H
#define CORE_RUN_APPLY_H

#include "supervisor/core/run/run_internal.h"

/* One kind of record: checks whether it fits and changes the run after. */
typedef bool run_rule(struct run *run, const struct plan *plan, const struct record *rec);

/* ---- run_move.c ---- */
/* Counts the step in the run's sums, or takes it out of them. */
void run_step_count(struct run *run, const struct run_step *step, bool in);
/* The caller has checked what else the record says. A step that leaves a status has no deadline. */
void run_step_move(struct run *run, struct run_step *step, enum step_status to,
                   enum step_phase phase);
/* Tells the dependents of a step that has just ended. */
void run_settle_dependents(struct run *run, const struct plan *plan, uint32_t ended);
void run_usage_add(struct usage *sum, const struct usage *u);
/* What the step's next attempt is: once it is a search (M042), it stays one while the search agent
 * has it. */
enum step_phase run_next_phase(const struct plan *plan, const struct run_step *step);
/* Questions that could not be asked while the plan was on hold have their whole time again. */
void run_renew_questions(struct run *run, const struct plan *plan, msec now);
/* The attempt is out, or its reply is lost. */
bool run_is_current_attempt(const struct run *run, const struct record *rec);
/* Begun and not over, and the record speaks of its latest attempt. */
bool run_may_recover(const struct run *run, const struct record *rec);

/* What has not ended ends with the plan. Nothing may be under way. */
void run_end_open_steps(struct run *run);
/* The next attempt does not count against max_retries. Said twice before it, it counts once. */
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

/* What the record that brings a plan says of the job that it ends. */
bool run_job_revises(const struct run *run, const struct plan *from, const struct record *rec);
void run_job_revised(struct run *next, const struct plan *to, const struct record *rec);
#endif
