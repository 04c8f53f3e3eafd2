/* The address of baton-gateway. */
#ifndef CLI_VERBS_AGENTS_GATEWAY_H
#define CLI_VERBS_AGENTS_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the URL of the gateway that runs in this state directory, as STATE/gateway.json has it.
 * False: none runs. */
bool gateway_url(const char *state, char *ret, size_t cap);
/* Runs baton-gateway, which is in the same folder, in the place of this program. option: one more;
 * NULL = none. Returns only when it cannot. */
void gateway_become(const char *state, const char *option);
#endif
