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
/* Plans, steps and questions that have begun. */
uint32_t spans_open(const struct spans *s);
/* The document with these spans: resourceSpans of one resource and one scope. */
void spans_document(struct buf *out, const struct buf *spans);
#endif
