#include "protocol/base/trace.h"

#include <string.h>

enum { LENGTH = TRACEPARENT_LEN, AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53, SAMPLED = 1 };

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

bool trace_read(struct str s, struct trace *ret)
{
    uint64_t parent = 0;
    uint8_t version, flags;
    uint8_t span[8];

    ret->span = 0;
    if (s.len < LENGTH || s.ptr[2] != '-' || s.ptr[AT_SPAN - 1] != '-' ||
        s.ptr[AT_FLAGS - 1] != '-' || !read_hex(s.ptr, 1, &version) ||
        !read_hex(s.ptr + AT_TRACE, TRACE_BYTES, ret->id) ||
        !read_hex(s.ptr + AT_SPAN, sizeof span, span) || !read_hex(s.ptr + AT_FLAGS, 1, &flags)) {
        return false;
    }
    if (version == 0xff || (version == 0 && s.len > LENGTH) ||
        (s.len > LENGTH && s.ptr[LENGTH] != '-')) {
        return false;
    }
    for (size_t i = 0; i < sizeof span; i++) {
        parent = parent << 8 | span[i];
    }
    if (parent == 0 || is_zero(ret->id, TRACE_BYTES) || (flags & SAMPLED) == 0) {
        return false;
    }
    ret->span = parent;
    return true;
}

/* By hand: it is made for every attempt, and printf took a third of what a dispatch takes. */
static char *put_hex(char *at, uint64_t v, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        *at++ = "0123456789abcdef"[v >> (4 * i) & 15];
    }
    return at;
}

void trace_write(const struct trace *t, char ret[TRACEPARENT_LEN + 1])
{
    char *at = ret;

    memcpy(at, "00-", 3);
    at += 3;
    for (size_t i = 0; i < sizeof t->id; i++) {
        at = put_hex(at, t->id[i], 2);
    }
    *at++ = '-';
    at = put_hex(at, t->span, 16);
    memcpy(at, "-01", 4);
}

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < n; i++) {
        h = (h ^ at[i]) * 1099511628211u;
    }
    return h;
}

uint64_t trace_span(struct str plan_id, enum trace_kind kind, uint32_t index, uint32_t attempt)
{
    const uint32_t what[] = {(uint32_t)kind, index, attempt};
    const uint64_t h =
        hash(hash(14695981039346656037u, plan_id.ptr, plan_id.len), what, sizeof what);

    return h != 0 ? h : 1;
}

void trace_of_plan(struct uuid plan_id, struct trace *ret)
{
    memcpy(ret->id, plan_id.b, sizeof ret->id);
    ret->span = 0;
}
