/* What people change while a plan runs. */
#include "supervisor/core/core_internal.h"

void core_on_pause(struct core *c, const struct core_event *ev)
{
    core_reject(c, ev, REJECT_NOT_WAITING);
}

void core_on_resume(struct core *c, const struct core_event *ev)
{
    core_reject(c, ev, REJECT_NOT_WAITING);
}

void core_on_modify(struct core *c, const struct core_event *ev)
{
    core_reject(c, ev, REJECT_NOT_WAITING);
}

void core_on_revise(struct core *c, const struct core_event *ev)
{
    core_reject(c, ev, REJECT_NOT_WAITING);
}
