/* Follows a plan to its end, for `run`, `retry --wait` and `fork --wait`. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include "protocol/base/buf.h"
#include "supervisor/cli/common/cli.h"

struct cJSON;

struct follow {
    const char *plan_id;
    const char *result_step; /* print this step's result; NULL = the plan's */
    bool quiet;              /* without the tree */
    bool dry;                /* only planned: print its document */
    struct cJSON *issues;    /* with dry: the warnings to print; NULL = none */
};

/* Catches SIGINT from here on: it ends the command with a message about the plan. */
void follow_catch_interrupts(void);
/*
 * Shows the plan on stderr until it has ended, then prints its result on stdout. Returns the exit
 * code of its end, or CLI_NEEDS_HUMAN when it waits for a person.
 */
enum cli_exit follow_plan(struct cli *cli, const struct follow *f);
/* Prints the answer of plan.result for a step: its text, else its data. */
void follow_print_step(const struct cli *cli, const struct cJSON *answer, const char *step_id);
/* Of a plan that failed, prints the failed steps that `why`, its failureReason, does not name. */
void follow_print_failures(struct cli *cli, const char *plan_id, const char *why);
enum { CLI_REVIEW_ID = 161 };
/* Appends what waits for a person in the plan, and how to see all of it. Returns the number of
 * reviews; ret_id is the last one's. 0 also when the daemon does not answer. */
int cli_reviews_open(struct cli *cli, const char *plan_id, char ret_id[CLI_REVIEW_ID],
                     struct buf *out);
#endif
