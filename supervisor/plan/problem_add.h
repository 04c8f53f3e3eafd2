/* problem_put with printf, for rooms that are not pure. */
#ifndef PLAN_PROBLEM_ADD_H
#define PLAN_PROBLEM_ADD_H

#include "protocol/base/err.h"
#include "supervisor/core/plan/plan_check.h"

/* step NULL = the plan. */
void problem_add(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field, const char *fmt, ...)
    BT_PRINTF(7, 8);
#endif
