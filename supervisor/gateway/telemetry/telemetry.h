/*
 * What operators look at: /metrics in the text format of Prometheus, and spans by OTLP/HTTP. Both
 * are made of events and of supervisor.stats; nothing waits for them. One thread.
 */
#ifndef GATEWAY_TELEMETRY_H
#define GATEWAY_TELEMETRY_H

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"
#include "protocol/wire/doc.h"

struct egress;
struct fold;
struct http;
struct traces;
struct watch;

struct telemetry {
    struct watch *watch;
    struct fold *fold;     /* NULL: nobody has asked for metrics yet */
    struct traces *traces; /* NULL: no exporter is set */
    const char *state_dir;
};

/* GET /metrics. Events count from the first such request on. */
void telemetry_serve_metrics(struct http *h);
/* The plan that the request made, by planId of the daemon's answer, belongs to the trace of its
 * traceparent: of meta (MCP's _meta; may be absent), or of the header. */
void telemetry_note_plan(const struct http *h, struct doc answer, struct doc meta);

/* ---- fold.c: counts of events ---- */

/* NULL: out of memory. */
struct fold *fold_new(void);
void fold_event(void *fold, struct doc event);
/* Appends its families of metrics. */
void fold_write(const struct fold *f, struct buf *out);

/* ---- text.c: the text format ---- */

void text_family(struct buf *out, const char *name, const char *type, const char *help);
/* A value of a label: \, " and line ends are escaped. */
void text_label(struct buf *out, const char *name, struct str value, bool first);

/* ---- traces.c: spans of events, sent in batches ---- */

struct traces_counts {
    uint64_t exported, dropped, failures;
    uint32_t open, waiting;
};
/* url: of the collector, with its path (http://127.0.0.1:4318/v1/traces); it must live as long.
 * NULL: out of memory. */
struct traces *traces_new(struct egress *out, const char *url);
void traces_event(void *traces, struct doc event);
/* A plan that a request with this traceparent made; what is none is left out. */
void traces_parent(struct traces *t, struct str plan_id, struct str traceparent);
void traces_run(struct traces *t, msec now);
/* When traces_run is due. */
msec traces_deadline(const struct traces *t);
struct traces_counts traces_counts(const struct traces *t);
#endif
