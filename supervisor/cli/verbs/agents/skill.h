/* The skills of an agent, as its card describes them. */
#ifndef CLI_AGENTS_SKILL_H
#define CLI_AGENTS_SKILL_H

#include "supervisor/cli/common/cli.h"

struct cJSON;

/*
 * Asks the daemon for a skill of an agent; id NULL: the only one that it has. *ret_answer is the
 * agent, which the caller deletes (also after an error), *ret points into it. Prints the error.
 */
enum cli_exit skill_find(struct cli *cli, const char *agent, const char *id,
                         struct cJSON **ret_answer, const struct cJSON **ret);
/* agents try AGENT_ID [SKILL]: one skill as a plan of one step, and its result. */
enum cli_exit agents_try(struct cli *cli, const char *agent, const char *skill);
#endif
