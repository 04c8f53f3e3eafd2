/* Where the shards of a node listen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/node/node.h"

enum { PORT_MAX = 65535, DECIMAL = 10 };

void node_url(const char *url, uint32_t shard, char *ret, size_t cap)
{
    const char *colon = strrchr(url, ':');
    char *end = NULL;
    const unsigned long port = colon != NULL ? strtoul(colon + 1, &end, DECIMAL) : 0;

    if (port == 0 || *end != 0 || port + shard > PORT_MAX) {
        (void)snprintf(ret, cap, "%s", url);
        return;
    }
    (void)snprintf(ret, cap, "%.*s:%lu", (int)(colon - url), url, port + shard);
}
