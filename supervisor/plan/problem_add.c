#include "supervisor/plan/problem_add.h"

#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/utf8.h"

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

/* The message of an unknown name has the name: its place is the map that it is in. */
static struct str place_of(const struct problem *p)
{
    struct str field = str_from(p->field);
    if (p->category == PROBLEM_UNKNOWN_FIELD || p->category == PROBLEM_UNSUPPORTED) {
        while (field.len > 0 && field.ptr[field.len - 1] != '.') {
            field.len--;
        }
        field.len -= field.len > 0;
    }
    return field;
}

void problem_text(const struct problem *p, char *ret, size_t cap)
{
    const struct str field = place_of(p);
    char step[96] = "";
    if (p->step != UINT32_MAX) {
        const bool named = p->step_id[0] != '\0';
        (void)snprintf(step, sizeof step, "step %u%s%s%s: ", p->step + 1, named ? " (" : "",
                       p->step_id, named ? ")" : "");
    }
    (void)snprintf(ret, cap, "%s%.*s%s%s", step, STR_ARG(field), field.len > 0 ? ": " : "",
                   p->message);
    ret[utf8_cut(ret, strlen(ret), cap - 1)] = '\0';
}
