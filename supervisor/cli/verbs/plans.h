/* The list of plans: once, or again and again. */
#ifndef CLI_PLANS_H
#define CLI_PLANS_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* `status` without a plan: prints the plans that --status, --session, --agent and --schedule let
 * through. */
enum cli_exit cli_list_plans(struct cli *cli);
/* When filters let nothing through: whether the --schedule, --agent and --session that they name
 * are there. A misspelt one selects nothing, which reads as "no plans". Prints the error. */
enum cli_exit cli_check_filters(struct cli *cli);
/* What a plan that has not ended waits for, by its steps; "" = nothing: a step runs. */
const char *cli_plan_waits_for(const struct cJSON *view);
/*
 * Calls `show` every second until it returns true in *ret_over or another code than CLI_OK, the
 * timeout, or an interrupt. On a terminal each output replaces the one before; `show` gets its
 * columns and rows, else 0 and 0.
 */
enum cli_exit cli_watch(struct cli *cli, enum cli_exit (*show)(struct cli *cli, int columns,
                                                               int rows, bool *ret_over));
/* The same as a `show` of cli_watch; over only when it is not watched, and there are none. */
enum cli_exit cli_show_plans(struct cli *cli, int columns, int rows, bool *ret_over);
#endif
