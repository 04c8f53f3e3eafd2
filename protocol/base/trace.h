/*
 * W3C trace context (https://www.w3.org/TR/trace-context/), and the ids of Baton's own spans: they
 * are made from what a span is about, so that two programs know them without asking each other.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"
#include "protocol/base/uuid.h"

enum { TRACE_BYTES = 16, TRACEPARENT_LEN = 55 };

/* A trace, and the span in it that is the parent of what comes. span 0 = none. */
struct trace {
    uint8_t id[TRACE_BYTES];
    uint64_t span;
};

/* What a span is about. The numbers are part of its id. */
enum trace_kind {
    TRACE_STEP = 1, /* index TRACE_PLAN: the plan */
    TRACE_ATTEMPT,
    TRACE_GATE,
    TRACE_REVIEW,
    TRACE_REPLAN,
    TRACE_PLANNING,
    TRACE_SYNTHESIS,
    TRACE_HANDOFF,
    TRACE_VERIFY
};
#define TRACE_PLAN UINT32_MAX

/* Version 00, or a later one read as 00 is. False: it is none, or its flags say that the trace is
 * not recorded. */
bool trace_read(struct str traceparent, struct trace *ret);
void trace_write(const struct trace *t, char ret[TRACEPARENT_LEN + 1]);
/* The id of a span of a plan, by the plan's text; never 0. */
uint64_t trace_span(struct str plan_id, enum trace_kind kind, uint32_t index, uint32_t attempt);
/* The trace of a plan that nobody gave one: its id. */
void trace_of_plan(struct uuid plan_id, struct trace *ret);
#endif
