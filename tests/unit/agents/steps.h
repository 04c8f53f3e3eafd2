/* Runs a handler on a step made from JSON, and returns its reply. */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include "tests/support/cmocka.h"

#include "agents/sdk/step.h"

/* Fails the test when it is not a step. */
struct bt_step *steps_make(const char *skill, const char *json);
/* Takes the step; returns the reply as JSON, valid until the next call. Does not check the
 * parameters against the schema. Fails the test when a VALIDATION_ERROR may be retried. */
const char *steps_run(struct bt_step *step, bt_skill_run run, void *self);
/* The step of the last run. */
struct bt_step *steps_last(void);
void steps_forget(void);
/* Fails the test when the part is not in the reply. */
void steps_expect(const char *reply, const char *part);
#endif
