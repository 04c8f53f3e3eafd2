/* What comes before a step's first attempt, and questions about steps. */
#include "supervisor/core/core_internal.h"

bool core_prepare(struct core *c, struct core_run *row, uint32_t step)
{
    (void)c;
    (void)row;
    (void)step;
    return false;
}

void core_check_timeout(struct core *c, struct core_run *row, uint32_t step)
{
    core_due(c, row, step, MSEC_NEVER);
}
