/* The ports of listeners whose port is `auto`: those of the state directory, so that the daemons of
 * two directories do not meet, and the daemon of one keeps its addresses over restarts. */
#ifndef ENGINE_PORTS_H
#define ENGINE_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORTS_URL_MAX = 272 }; /* of a url with any port */

/* Two ports, this one and the next, from 20000 to 31999: below the ports that systems give away. */
uint16_t ports_of(const char *state_dir);
/* Whether the url ends with ":auto". */
bool ports_is_auto(const char *url);
/* The url with this port instead of `auto`; another url as it is. */
void ports_url(const char *url, uint16_t port, char *ret, size_t cap);
#endif
