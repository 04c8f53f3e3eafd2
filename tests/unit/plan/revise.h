/* A plan with its run, for tests of revisions. */
#ifndef TEST_PLANNER_REVISE_H
#define TEST_PLANNER_REVISE_H

#include "fixture.h"
#include "supervisor/core/run/run.h"
#include "supervisor/plan/revise.h"

#define TASK "'task':'do something worth doing'"

/* Reads the plan into b->plan and starts its run. */
struct run *start_run(struct bench *b, const char *json);
/* The run of b->plan. */
struct run *begin_run(struct bench *b);
/* Brings the step to this status (IN_PROGRESS, or an end). */
void move_step(struct bench *b, struct run *run, uint32_t step, enum step_status to);
/* Ends a step that has begun, or that need not begin, with this status. */
void end_step(struct bench *b, struct run *run, uint32_t step, enum step_status to);

/* Calls plan_revise and returns the code; see b->problems and b->err. */
enum bt_code revise(struct bench *b, struct run *run, enum plan_revise_kind kind, struct doc change,
                    struct plan **ret);
/* The same, with the entries that RERUN does anew: one byte per entry. */
enum bt_code revise_marked(struct bench *b, struct run *run, enum plan_revise_kind kind,
                           struct doc change, const uint8_t *marked, struct plan **ret);
/*
 * Calls plan_revise, which must succeed. Ends superseded entries, applies the revision to the run,
 * and checks what holds for every revision. b->plan is the new plan.
 */
struct run *revised(struct bench *b, struct run *run, enum plan_revise_kind kind,
                    const char *change);
/* The same with a given plan. */
struct run *reuse_results(struct bench *b, struct run *run, struct plan *next);
/* "a; b<a; c~b": '<' a dependency, '~' one with afterAnyEnd, '-' before a superseded entry. */
const char *shape(struct bench *b, const struct plan *p);
#endif
