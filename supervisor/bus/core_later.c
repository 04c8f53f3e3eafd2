/* What core.h promises and the core of this commit does not have yet. Weak: the core's own win. */
#include "supervisor/core/core.h"

__attribute__((weak)) uint32_t core_revision(const struct core *c, uint64_t run)
{
    const struct run *r = core_run(c, run, NULL);

    return r != NULL ? r->revision : 0;
}

__attribute__((weak)) struct step_wait core_step_wait(const struct core *c, uint64_t run,
                                                      uint32_t step)
{
    (void)c;
    (void)run;
    (void)step;
    return (struct step_wait){.kind = WAIT_NOTHING};
}

__attribute__((weak)) const char *wait_kind_name(enum wait_kind k)
{
    (void)k;
    return "";
}
