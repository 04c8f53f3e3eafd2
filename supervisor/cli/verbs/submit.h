/* What `run` and `plan` share: from the options of a verb to a plan.submit, and its plan's
 * document. */
#ifndef CLI_SUBMIT_H
#define CLI_SUBMIT_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

struct submitting {
    const char *goal;          /* or */
    const char *plan;          /* a plan as JSON */
    bool dry;                  /* make and check it, run nothing */
    bool quiet;                /* no id, routes and warnings on stderr */
    struct cJSON **ret_issues; /* when not NULL: the warnings, an array that the caller deletes */
};

/*
 * Reads the options session, planner, key, policy, constraint, synthesis, on-invalid-plan, as far
 * as the verb has them. Says what went wrong.
 */
enum cli_exit cli_submit(struct cli *cli, const struct submitting *what,
                         char ret_plan_id[BT_ID_LEN + 1]);
/* The document of a plan that was made to be looked at: on stdout, as it can be run again; who does
 * which step on stderr. With --json {valid, planId, status, plan, issues[]} (M017). issues: an
 * array, or NULL for none; the caller keeps it. The exit code is the plan's. */
enum cli_exit cli_show_document(struct cli *cli, const char *plan_id, const struct cJSON *issues);
/* Makes of a document that the daemon wrote one that people run: some day, and nobody plans then.
 */
void cli_make_submittable(struct cJSON *document);
/* "  a → calc.add: why", each on a line of stderr. */
void cli_print_routes(const struct cJSON *routes);
#endif
