/* Which mutant bug is in: the number in the environment. Only in builds with BATON_MUTANTS. */
#include <stdlib.h>

#include "supervisor/core/mutant.h"

int baton_mutant;

static void __attribute__((constructor)) choose(void)
{
    const char *number = getenv("BATON_MUTANT");
    baton_mutant = number == NULL ? MUTANT_NONE : (int)strtol(number, NULL, 10);
}
