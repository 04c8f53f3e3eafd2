/* Commands for the tests of the exec agent: mostly /bin/sh, with different settings. */
#ifndef TEST_EXEC_WORLD_H
#define TEST_EXEC_WORLD_H

#include "tests/unit/agents/steps.h"

extern char exec_dir[];
extern char exec_logged[4096]; /* what the last step logged, cut */
extern size_t exec_logged_lines;

int exec_set_up(void **state);
int exec_tear_down(void **state);
/* Runs a step from JSON; see steps_run. */
const char *exec_step(const char *skill, const char *step_json);
/* Runs a shell script (escaped for a JSON string) as a step; "@" in it is the directory. */
const char *exec_script(const char *skill, const char *script);
/* Takes the step. */
const char *exec_run_made(struct bt_step *step);
#endif
