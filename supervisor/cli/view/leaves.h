/* The results of a plan's leaf steps: those on which no other completed step depends. */
#ifndef CLI_LEAVES_H
#define CLI_LEAVES_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/*
 * The answer of an ended plan without the results of steps that other steps took up. `result` is
 * its answer of plan.result. NULL when the answer is to be printed as it is: a synthesizer wrote
 * it, or it has only leaves, or the daemon does not say. Free with free().
 */
char *cli_leaf_answer(struct cli *cli, const char *plan_id, const struct cJSON *result);
#endif
