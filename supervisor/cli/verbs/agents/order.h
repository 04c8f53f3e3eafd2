/* Orders about agents: drain, enable, start, stop, restart, test, logs. */
#ifndef CLI_VERBS_AGENTS_ORDER_H
#define CLI_VERBS_AGENTS_ORDER_H

#include "supervisor/cli/common/cli.h"

/* Whether the word before an agent's name is an order. */
bool agents_is_order(const char *word);
/* argv[0] is the word, argv[1] the agent. */
enum cli_exit agents_order(struct cli *cli);
#endif
