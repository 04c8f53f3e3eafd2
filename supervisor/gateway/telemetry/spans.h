/* From events to spans of OTLP as JSON. Pure but for memory. One owner, one thread. */
#ifndef GATEWAY_SPANS_H
#define GATEWAY_SPANS_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum { SPANS_PLANS_MAX = 4096, SPANS_STEPS_MAX = 20000 };

struct spans;

/* NULL: out of memory. */
struct spans *spans_new(void);
void spans_free(struct spans *s);
/* Takes an event; appends the spans that end with it, with commas between elements. Returns how
 * many. Over the caps the plan has no spans. */
uint32_t spans_event(struct spans *s, struct doc event, struct buf *out);
/* The plan belongs to the trace of this traceparent (W3C), as a child of its span. Before or after
 * the plan's first event; the first one counts. False: it is none, or its sender does not record
 * that trace. */
bool spans_parent(struct spans *s, struct str plan_id, struct str traceparent);
/* Plans, steps and questions that have begun. */
uint32_t spans_open(const struct spans *s);
/* The document with these spans: resourceSpans of one resource and one scope. */
void spans_document(struct buf *out, const struct buf *spans);
#endif
