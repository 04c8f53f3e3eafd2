#include "supervisor/gateway/telemetry/parent.h"

#include <string.h>

enum { LENGTH = 55, AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53, SAMPLED = 1 };

/* Lower-case digits alone. */
static bool read_hex(const char *text, size_t bytes, uint8_t *ret)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < 2 * bytes; i++) {
        const char *digit = memchr(digits, text[i], sizeof digits - 1);
        if (digit == NULL) {
            return false;
        }
        ret[i / 2] = (uint8_t)((i % 2 == 0 ? 0 : ret[i / 2] << 4) | (digit - digits));
    }
    return true;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;

    for (size_t i = 0; i < n; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

static bool read_traceparent(struct str s, uint8_t ret_trace[TRACE_BYTES], uint64_t *ret_span)
{
    uint8_t version, flags;
    uint8_t span[8];

    if (s.len < LENGTH || s.ptr[2] != '-' || s.ptr[AT_SPAN - 1] != '-' ||
        s.ptr[AT_FLAGS - 1] != '-' || !read_hex(s.ptr, 1, &version) ||
        !read_hex(s.ptr + AT_TRACE, TRACE_BYTES, ret_trace) ||
        !read_hex(s.ptr + AT_SPAN, sizeof span, span) || !read_hex(s.ptr + AT_FLAGS, 1, &flags)) {
        return false;
    }
    if (version == 0xff || (version == 0 && s.len > LENGTH) ||
        (s.len > LENGTH && s.ptr[LENGTH] != '-')) {
        return false;
    }
    *ret_span = 0;
    for (size_t i = 0; i < sizeof span; i++) {
        *ret_span = *ret_span << 8 | span[i];
    }
    return *ret_span != 0 && !is_zero(ret_trace, TRACE_BYTES) && (flags & SAMPLED) != 0;
}

bool parents_put(struct parents *p, struct str plan, struct str traceparent)
{
    uint8_t trace[TRACE_BYTES];
    uint64_t span;

    if (plan.len == 0 || plan.len > PARENT_PLAN_MAX ||
        !read_traceparent(traceparent, trace, &span)) {
        return false;
    }
    for (uint32_t i = 0; i < PARENTS_MAX; i++) {
        if (str_is(plan, p->at[i].plan)) {
            return true; /* the first one counts */
        }
    }
    memcpy(p->at[p->next].plan, plan.ptr, plan.len);
    p->at[p->next].plan[plan.len] = 0;
    memcpy(p->at[p->next].trace, trace, sizeof trace);
    p->at[p->next].span = span;
    p->next = (p->next + 1) % PARENTS_MAX;
    return true;
}

bool parents_take(struct parents *p, struct str plan, uint8_t ret_trace[TRACE_BYTES],
                  uint64_t *ret_span)
{
    for (uint32_t i = 0; i < PARENTS_MAX; i++) {
        if (plan.len > 0 && str_is(plan, p->at[i].plan)) {
            memcpy(ret_trace, p->at[i].trace, TRACE_BYTES);
            *ret_span = p->at[i].span;
            p->at[i].plan[0] = 0;
            return true;
        }
    }
    return false;
}
