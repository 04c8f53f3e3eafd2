/* Actions of the http agent against the service of the test's process (service.h). */
#ifndef TEST_HTTP_WORLD_H
#define TEST_HTTP_WORLD_H

#include "agents/http/call.h"
#include "tests/unit/agents/service.h"
#include "tests/unit/agents/steps.h"

/* Settings with baseUrl and allowPrivate of the service, and these further members, in the form of
 * service_text. Ended by http_drop. */
void http_use(const char *members);
struct http_settings *http_used(void);
void http_drop(void);
/* Runs the action; parameters in the form of service_text. Returns the reply as JSON. */
const char *http_do(const char *action, const char *parameters);
/* Fails the test when the reply has not this part, in the form of service_text. */
void http_says(const char *reply, const char *part);
/* For setup and teardown of a group. */
int http_start(void **state);
int http_stop(void **state);
/* For setup of a test: nothing was asked, nothing is put up. */
int http_begin(void **state);
#endif
