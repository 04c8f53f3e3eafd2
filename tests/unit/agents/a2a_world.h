/* The a2a agent against the service of the test's process (service.h). */
#ifndef TEST_A2A_WORLD_H
#define TEST_A2A_WORLD_H

#include "agents/a2a/a2a.h"
#include "tests/unit/agents/service.h"
#include "tests/unit/agents/steps.h"

/* An agent at $/rpc with the skills "work" (unsafe) and "read" (not), and these further members of
 * the settings ("," first; the form of service_text). */
void a2a_use(bool modern, bool streaming, const char *members);
struct a2a_agent *a2a_used(void);
/* Runs the skill; parameters in the form of service_text. Returns the reply as JSON. */
const char *a2a_do(const char *skill, const char *parameters);
/* Fails the test when the reply has not this part, in the form of service_text. */
void a2a_says(const char *reply, const char *part);
/* The next answer: {"jsonrpc", "id", "result"} with this result, in the form of service_text. */
void a2a_next(const char *result);
int a2a_start(void **state);
int a2a_stop(void **state);
int a2a_begin(void **state);
#endif
