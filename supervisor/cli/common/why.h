/* Why an agent is not there, in one way for all verbs. */
#ifndef CLI_WHY_H
#define CLI_WHY_H

#include <stddef.h>

struct cJSON;

enum { AGENT_WHY_MAX = 6000 };

/* Of an agent as agents.list tells it: ", given up: exit code 2: ...; its output is in FILE"; what
 * is not known is left out. */
void agent_why(const struct cJSON *agent, char *ret, size_t cap);
#endif
