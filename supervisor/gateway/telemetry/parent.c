#include "supervisor/gateway/telemetry/parent.h"

#include <string.h>

#include "protocol/base/trace.h"

bool parents_put(struct parents *p, struct str plan, struct str traceparent)
{
    struct trace trace;

    if (plan.len == 0 || plan.len > PARENT_PLAN_MAX || !trace_read(traceparent, &trace)) {
        return false;
    }
    for (uint32_t i = 0; i < PARENTS_MAX; i++) {
        if (str_is(plan, p->at[i].plan)) {
            return true; /* the first one counts */
        }
    }
    memcpy(p->at[p->next].plan, plan.ptr, plan.len);
    p->at[p->next].plan[plan.len] = 0;
    p->at[p->next].trace = trace;
    p->next = (p->next + 1) % PARENTS_MAX;
    return true;
}

bool parents_take(struct parents *p, struct str plan, struct trace *ret)
{
    for (uint32_t i = 0; i < PARENTS_MAX; i++) {
        if (plan.len > 0 && str_is(plan, p->at[i].plan)) {
            *ret = p->at[i].trace;
            p->at[i].plan[0] = 0;
            return true;
        }
    }
    return false;
}
