/* Problems of plans on stderr: those of the daemon's answers and those of checks without it. */
#ifndef CLI_PROBLEMS_H
#define CLI_PROBLEMS_H

#include "supervisor/cli/common/cli.h"

struct cJSON;
struct problems;

/* Prints a rejected request once and returns its exit code: as the list of its problems, or as its
 * message when it carries none. With --json the answer's error is kept for stdout. error_json may
 * be NULL. */
enum cli_exit cli_rejected(struct cli *cli, const struct bt_error *err, const char *error_json);
/* Whether the error carries a problem of the category. */
bool cli_has_problem(const char *error_json, const char *category);
/* Prints one problem: "  error: step 2 (load): timeoutMs: expected ... [invalid_field]". */
void cli_print_problem(const struct cJSON *problem, const char *severity);
/* Prints each problem of a list in the daemon's form. */
void cli_print_problems(const struct cJSON *problems);
/* Prints the problems of a check without the daemon; with --json as {valid, problems} on stdout. */
void cli_print_found(struct cli *cli, const struct problems *found, bool valid);
/* The problems and warnings of config_load, a line each, but not the one that err begins with. */
void cli_print_notes(const char *notes, const struct bt_error *err);
#endif
