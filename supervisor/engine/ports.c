#include "supervisor/engine/ports.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base/str.h"

enum { PORT_FIRST = 20000, PORT_PAIRS = 6000 };

static const char AUTO[] = ":auto";

uint16_t ports_of(const char *state_dir)
{
    return (uint16_t)(PORT_FIRST + 2 * (str_hash(str_from(state_dir)) % PORT_PAIRS));
}

bool ports_is_auto(const char *url)
{
    const size_t n = strlen(url);

    return n >= sizeof AUTO - 1 && strcmp(url + n - (sizeof AUTO - 1), AUTO) == 0;
}

void ports_url(const char *url, uint16_t port, char *ret, size_t cap)
{
    if (ports_is_auto(url)) {
        (void)snprintf(ret, cap, "%.*s:%u", (int)(strlen(url) - (sizeof AUTO - 1)), url, port);
    } else {
        (void)snprintf(ret, cap, "%s", url);
    }
}
