/* Requests to the daemon. Each function prints its error; the exit code is its kind. */
#ifndef CLI_CALL_H
#define CLI_CALL_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* The state directory of this call (--state, BATON_STATE, the default); valid until the process
 * ends. NULL on an error. */
const char *cli_state_dir(const struct cli *cli);
/* Connects once; later calls return CLI_OK. Limits the time of the next request. */
enum cli_exit cli_connect(struct cli *cli);
/* Sets what the next request of a connected client may take: call_ms, at most what --timeout
 * leaves. */
void cli_limit_call(struct cli *cli);
/*
 * One request. Takes ownership of fields (NULL = {}). *ret is the parsed answer, to be freed with
 * cJSON_Delete; NULL on an error. Its strings are made safe for a terminal, except with --json and
 * for plan.result, review.list and review.get.
 */
enum cli_exit cli_call(struct cli *cli, const char *type, struct cJSON *fields, struct cJSON **ret);
/* The same; a refusal with the code `unless` is not printed: CLI_OK, and *ret is NULL. */
enum cli_exit cli_call_unless(struct cli *cli, const char *type, struct cJSON *fields,
                              enum bt_code unless, struct cJSON **ret);
/* The answer of plan.get with all the steps, over as many pages as it takes; free with
 * cJSON_Delete. */
enum cli_exit cli_plan_view(struct cli *cli, const char *plan_id, struct cJSON **ret);
/* Whether each step follows the one before it. A view names no dependencies of a chain; only the
 * plan's document tells it from steps without any. */
enum cli_exit cli_plan_chain(struct cli *cli, const struct cJSON *plan_view, bool *ret);
/* The answer of plan.result; with --json also the plan and the results of all its steps, over as
 * many pages as it takes. Free with cJSON_Delete. */
enum cli_exit cli_plan_result(struct cli *cli, const char *plan_id, struct cJSON **ret);
/* Prints which steps of an answer of plan.result gave results that are not whole, and which read
 * only a part of those before them. */
void cli_report_not_whole(const struct cJSON *result);
/* The index of a step in a plan view, by its id or its number from 1 on. Of several revisions of
 * one id it is the one that is not superseded. -1 on an error. */
int cli_step_index(const struct cJSON *plan_view, const char *step);
#endif
