#include "supervisor/plan/problem_add.h"

#include <stdarg.h>
#include <stdio.h>

void problem_add(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field, const char *fmt, ...)
{
    char text[640];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const struct str part = str_from(text);
    problem_put(p, c, warning, step, ix, field, &part, 1);
}
