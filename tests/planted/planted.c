/* Which planted bug is in: the number in the environment. Only in builds with BATON_PLANTED. */
#include <stdlib.h>

#include "supervisor/core/mutant.h"

int baton_bug;

static void __attribute__((constructor)) choose(void)
{
    const char *number = getenv("BATON_BUG");
    baton_bug = number == NULL ? BUG_NONE : (int)strtol(number, NULL, 10);
}
