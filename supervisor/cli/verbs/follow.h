/* Following a plan to its end: what `run`, `retry --wait` and `fork --wait` share. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

struct follow {
    const char *plan_id;
    const char *result_step; /* print this step's result; NULL = the plan's */
    bool quiet;              /* no live tree */
    bool dry;                /* it is only planned: its document is what is printed */
    struct cJSON *issues;    /* with dry: the warnings to print with it; NULL = none */
    uint32_t timeout_ms;     /* then 124; 0 = none */
};

/* From here on an interrupt is answered with what becomes of the plan, instead of ending the
 * process. */
void follow_catch_interrupts(void);
/* Shows the plan on stderr until it has ended, then its result on stdout. The exit code says how it
 * ended, or that it waits for a person. */
enum cli_exit follow_plan(struct cli *cli, const struct follow *f);
/* The answer of plan.result for a step, for people: its text, else its data. */
void follow_print_step(const struct cli *cli, const struct cJSON *answer, const char *step_id);
#endif
