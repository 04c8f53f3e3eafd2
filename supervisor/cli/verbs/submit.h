/* plan.submit for `run` and `plan`: from the options of a verb to a plan, and the plan's document.
 */
#ifndef CLI_SUBMIT_H
#define CLI_SUBMIT_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

struct submitting {
    const char *goal;          /* a goal, or */
    const char *plan;          /* a plan as JSON */
    bool dry;                  /* make and check it, run nothing */
    bool quiet;                /* no id, routes and warnings on stderr */
    struct cJSON **ret_issues; /* not NULL: gets the warnings, an array that the caller deletes */
};

/*
 * Reads the options session, planner, key, policy, constraint, synthesis and on-invalid-plan, as
 * far as the verb has them. Prints the error.
 */
enum cli_exit cli_submit(struct cli *cli, const struct submitting *what,
                         char ret_plan_id[BT_ID_LEN + 1]);
/*
 * Submits each line of the file ("-" = stdin), a plan as JSON, and prints the ids, with --json a
 * list of {line, planId} or {line, error}. A line that is refused is an error, and the next ones go
 * on. Option `key` makes the clientKey KEY-LINE of each. Reads also policy, lenient and
 * wait-for-agents. Returns the exit code of the first error.
 */
enum cli_exit cli_submit_lines(struct cli *cli, const char *path);
/*
 * Prints the document of a dry run on stdout, ready to be run, and the agent of each step on
 * stderr. With --json {valid, planId, status, plan, issues[]} (M017). issues: an array, borrowed,
 * or NULL. Returns the exit code of the plan.
 */
enum cli_exit cli_show_document(struct cli *cli, const char *plan_id, const struct cJSON *issues);
/* Removes dryRun and planner from a document of the daemon, so that it can be submitted. */
void cli_make_submittable(struct cJSON *document);
/* Prints "  a → calc.add" for each route, on stderr; with --verbose the scores too. */
void cli_print_routes(const struct cli *cli, const struct cJSON *routes);
/* Removes the remarks about the style of tasks: the planner wrote them, not the user. */
void cli_drop_own_remarks(struct cJSON *problems);
#endif
