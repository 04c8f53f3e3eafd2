/* A library whose loading hides the process: for runtimes that cannot call prctl themselves, as
 * Node (baton.mjs loads it by BATON_HIDE). The same as hide_process of protocol/base/hide.h. It
 * needs no other library, so that every program can load it. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

__attribute__((constructor)) static void hide(void)
{
    const char *dumpable = getenv("BATON_DUMPABLE");

    if (dumpable == NULL || strcmp(dumpable, "1") != 0) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
}
