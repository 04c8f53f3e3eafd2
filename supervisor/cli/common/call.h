/* Requests to the daemon. Each function prints its error; the exit code says which kind it was. */
#ifndef CLI_CALL_H
#define CLI_CALL_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/* The state directory of this call (--state, BATON_STATE, the default); valid until the process
 * ends. NULL on an error. */
const char *cli_state_dir(const struct cli *cli);
/* Connects once; later calls return CLI_OK. */
enum cli_exit cli_connect(struct cli *cli);
/*
 * One request. Takes ownership of fields (NULL = {}). *ret is the parsed answer, to be freed with
 * cJSON_Delete; NULL on an error. Its strings are made safe for a terminal, except with --json and
 * for plan.result.
 */
enum cli_exit cli_call(struct cli *cli, const char *type, struct cJSON *fields, struct cJSON **ret);
/* The answer of plan.get with all the steps, over as many pages as it takes; free with
 * cJSON_Delete. */
enum cli_exit cli_plan_view(struct cli *cli, const char *plan_id, struct cJSON **ret);
/* The index of a step in a plan view, by its id or its number from 1 on. Of several revisions of
 * one id it is the one that is not superseded. -1 on an error. */
int cli_step_index(const struct cJSON *plan_view, const char *step);
#endif
