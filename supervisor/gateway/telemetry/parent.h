/* The traces that plans belong to, by what their senders said, until the first event comes. Pure.
 */
#ifndef GATEWAY_TELEMETRY_PARENT_H
#define GATEWAY_TELEMETRY_PARENT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"
#include "protocol/base/trace.h"

enum { PARENT_PLAN_MAX = 64, PARENTS_MAX = 256 };

struct parents {
    struct {
        char plan[PARENT_PLAN_MAX + 1]; /* "" = free */
        struct trace trace;
    } at[PARENTS_MAX]; /* the oldest one goes first */
    uint32_t next;
};

/* False: it is none, or its flags say that the trace is not recorded. */
bool parents_put(struct parents *p, struct str plan, struct str traceparent);
/* Takes the one of the plan out. False: there is none; the others stay as they are. */
bool parents_take(struct parents *p, struct str plan, struct trace *ret);
#endif
