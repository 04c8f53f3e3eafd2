/* Short names of plans and sessions: `last`, and the first characters of an id. */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include "supervisor/cli/common/cli.h"

enum { CLI_ID_MAX = 256 };

/*
 * The id that a short name stands for: `last` is the newest plan; the first characters of one id
 * are that id. What follows the plan's id stays: `last/pay/r1`, `last@2`. Other text is returned as
 * it is, and the daemon reports it. Prints the error: CLI_USAGE with the matches when there are
 * several, CLI_NOT_FOUND when there is no last one.
 */
enum cli_exit cli_plan_id(struct cli *cli, const char *given, char ret[CLI_ID_MAX]);
/* Of PLAN_ID/STEP_ID[/STEP_ID] the id of the child plan that does the (forEach, repeat, plan) step.
 * Other text is returned as it is. Prints the error. */
enum cli_exit cli_child_id(struct cli *cli, const char *given, char ret[CLI_ID_MAX]);
/* As cli_plan_id of a session, among the newest 1000. */
enum cli_exit cli_session_id(struct cli *cli, const char *given, char ret[CLI_ID_MAX]);
/* Whether the text can be nothing else than a plan: `last` or a whole id, maybe with a step. */
bool cli_names_plan(const char *text);
/* Answers for each argument in turn and returns the worst exit code; with --json the answers of
 * several are one list, errors among them. Ends early when there is no daemon. */
enum cli_exit cli_each(struct cli *cli, enum cli_exit (*one)(struct cli *cli, const char *id));
#endif
