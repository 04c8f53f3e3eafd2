#include "supervisor/engine/crashpoint.h"

#ifdef BATON_CRASHPOINTS
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODYS_ADDRESS = 64 };

void crashpoint(const char *place, struct uuid plan)
{
    const char *const wish = getenv("BATON_CRASHPOINT");
    char here[UUID_TEXT_LEN + 64];
    char id[UUID_TEXT_LEN + 1];
    size_t len;

    if (wish == NULL) {
        return;
    }
    uuid_format(plan, id);
    (void)snprintf(here, sizeof here, "%s %s ", place, id);
    len = strlen(here);
    if (strncmp(wish, here, len) == 0) {
        const int sig = (int)strtol(wish + len, NULL, 10);
        if (sig == SIGSEGV) {
            *(volatile char *)(uintptr_t)NOBODYS_ADDRESS = 1; /* a real one */
        }
        (void)raise(sig);
    }
}
#endif
