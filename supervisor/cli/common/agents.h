/* Why an agent is missing, and what to do when there is none. */
#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

#include <stddef.h>

#include "supervisor/cli/common/cli.h"

struct cJSON;

enum { AGENT_REASON_MAX = 6000 };

/* Of an agent of agents.list: ", given up: exit code 2: ...; its output is in FILE", without the
 * parts that are not known. */
void agent_down_reason(const struct cJSON *agent, char *ret, size_t cap);
/* Prints what to do to have agents. */
void cli_note_no_agents(void);
/* Asks the daemon for its agents; prints that note when it has none. An error prints nothing. */
void cli_note_if_no_agents(struct bt_client *client);
#endif
