/* Problems with printf, for rooms that are not pure. */
#ifndef PLAN_PROBLEM_ADD_H
#define PLAN_PROBLEM_ADD_H

#include "protocol/base/err.h"
#include "protocol/base/utf8.h"
#include "supervisor/core/plan/plan_check.h"

/* step NULL = the plan. */
void problem_add(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field, const char *fmt, ...)
    BT_PRINTF(7, 8);

/* For "%.*s%s": a name of other people's making, cut to the length of an id with a mark. */
#define PROBLEM_NAME(name)                                                                         \
    (int)utf8_cut((name).ptr, (name).len, LIMIT_ID_BYTES), (name).ptr,                             \
        (name).len > LIMIT_ID_BYTES ? "…" : ""

/* The problem for people, on one line: "step 2 (load): timeoutMs: expected ...". */
void problem_text(const struct problem *p, char *ret, size_t cap);
#endif
