/* `baton plan diff`. */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include "supervisor/cli/common/cli.h"

/* Prints what is different between two plans, each a file, a plan's id, or PLAN_ID@REVISION. */
enum cli_exit cli_plan_diff(struct cli *cli, const char *a, const char *b);
#endif
