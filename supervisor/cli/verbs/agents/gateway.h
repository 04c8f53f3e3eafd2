/* The address of baton-gateway. */
#ifndef CLI_VERBS_AGENTS_GATEWAY_H
#define CLI_VERBS_AGENTS_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the URL of the gateway that runs in this state directory, as STATE/gateway.json has it.
 * False: none runs. */
bool gateway_url(const char *state, char *ret, size_t cap);
#endif
