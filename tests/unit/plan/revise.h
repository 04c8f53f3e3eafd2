/* A plan with its run, for tests of revisions. */
#ifndef TEST_PLANNER_REVISE_H
#define TEST_PLANNER_REVISE_H

#include "fixture.h"
#include "supervisor/core/run/run.h"
#include "supervisor/plan/revise.h"

#define TASK "'task':'do something worth doing'"

/* Reads the plan into b->plan and starts its run. */
struct run *start_run(struct bench *b, const char *json);
/* The step goes all the way to this status (IN_PROGRESS, or an end). */
void move_step(struct bench *b, struct run *run, uint32_t step, enum step_status to);
/* A step that has begun, or need not begin, ends so. */
void end_step(struct bench *b, struct run *run, uint32_t step, enum step_status to);

/* plan_revise; the code. b->problems and b->err say what is wrong. */
enum bt_code revise(struct bench *b, struct run *run, enum plan_revise_kind kind, struct doc change,
                    struct plan **ret);
/* Must succeed; rows that the new plan does without are ended first, and the run goes over to it.
 * Checks what has to hold of any revision; b->plan is then the new one. */
struct run *revised(struct bench *b, struct run *run, enum plan_revise_kind kind,
                    const char *change);
/* The same with a plan that is there. */
struct run *reuse_results(struct bench *b, struct run *run, struct plan *next);
/* "a; b<a; c~b" of the entries: '<' what it depends on, '~' the same with afterAnyEnd, '-' in front
 * of superseded ones. */
const char *shape(struct bench *b, const struct plan *p);
#endif
