/*
 * Spans from events: a plan is a trace, its steps, attempts, gates and reviews are spans. Ids are
 * made from those of the plan and the step, so a parent is known without being kept. What is sent
 * waits in one buffer; what does not fit is dropped and counted, because nobody waits for it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/egress.h"
#include "supervisor/gateway/http.h"
#include "supervisor/gateway/telemetry/spans.h"
#include "supervisor/gateway/telemetry/telemetry.h"

enum {
    BATCH_SPANS = 512,
    BATCH_BYTES = 1024 * 1024,
    BATCH_MS = 1000, /* the oldest one waits for so long */
    TRIES_MAX = 5,
    RETRY_MS = 1000,
    RETRY_MAX_MS = 30000,
    POST_MS = 10000
};

struct batch {
    struct buf spans; /* elements of an array */
    uint32_t n;
};

struct traces {
    struct egress *out;
    const char *url;
    struct spans *spans;
    struct batch next, sent; /* sent: out, or to be sent again */
    bool is_out;
    uint32_t tries;
    msec due, again, now;
    struct traces_counts counts;
    bool said;
};

struct traces *traces_new(struct egress *out, const char *url)
{
    struct traces *t = calloc(1, sizeof *t);

    if (t == NULL) {
        return NULL;
    }
    t->spans = spans_new();
    if (t->spans == NULL) {
        free(t);
        return NULL;
    }
    t->out = out;
    t->url = url;
    t->due = MSEC_NEVER;
    buf_init(&t->next.spans, BATCH_BYTES);
    buf_init(&t->sent.spans, BATCH_BYTES);
    return t;
}

void traces_event(void *traces, struct doc event)
{
    struct traces *t = traces;
    struct batch *b = &t->next;
    const size_t before = b->spans.len;
    const uint32_t n = spans_event(t->spans, event, &b->spans);

    if (n == 0) {
        return;
    }
    if (buf_check(&b->spans, NULL) != BT_OK || b->n + n > 4 * BATCH_SPANS) {
        buf_truncate(&b->spans, before);
        b->spans.bad = BT_OK;
        t->counts.dropped += n;
        return;
    }
    b->n += n;
    if (t->due == MSEC_NEVER) {
        t->due = t->now + BATCH_MS;
    }
}

void traces_parent(struct traces *t, struct str plan_id, struct str traceparent)
{
    (void)spans_parent(t->spans, plan_id, traceparent);
}

void telemetry_note_plan(const struct http *h, struct doc answer, struct doc meta)
{
    struct traces *t = h->s->parts.telemetry->traces;
    const struct str plan = doc_string(doc_get(answer, STR_LIT("planId")));
    const struct str own = doc_string(doc_get(meta, STR_LIT("traceparent")));

    if (t == NULL || plan.len == 0) {
        return;
    }
    if (own.len > 0) {
        traces_parent(t, plan, own);
    } else if (h->heads.traceparent != NULL) {
        traces_parent(t, plan, str_from(h->heads.traceparent));
    }
}

static void drop(struct traces *t)
{
    buf_done(&t->sent.spans);
    t->sent.n = 0;
    t->tries = 0;
}

static void on_sent(void *self, unsigned status, uint64_t retry_after_ms, const char *why)
{
    struct traces *t = self;
    const bool again =
        status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
    msec wait = (msec)RETRY_MS << (t->tries < 5 ? t->tries : 5);

    t->is_out = false;
    if (status / 100 == 2) {
        t->counts.exported += t->sent.n;
        t->said = false;
        drop(t);
        return;
    }
    t->counts.failures++;
    if (!t->said) {
        t->said = true;
        log_warn("gateway.otlp", "%s does not take spans: %s (status %u)", t->url, why, status);
    }
    if (!again || ++t->tries >= TRIES_MAX) {
        t->counts.dropped += t->sent.n;
        drop(t);
        return;
    }
    wait = retry_after_ms > wait ? retry_after_ms : wait;
    t->again = t->now + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
}

static void post_batch(struct traces *t)
{
    struct egress_spec spec = {.url = t->url,
                               .headers = {"Content-Type: application/json"},
                               .timeout_ms = POST_MS,
                               .done = on_sent,
                               .self = t};
    struct bt_error err;
    struct buf body;

    buf_init(&body, BATCH_BYTES + 4096);
    spans_document(&body, &t->sent.spans);
    spec.body = buf_str(&body);
    if (buf_check(&body, NULL) == BT_OK && egress_post(t->out, &spec, &err) == BT_OK) {
        t->is_out = true;
    } else {
        t->counts.dropped += t->sent.n;
        drop(t);
    }
    buf_done(&body);
}

void traces_run(struct traces *t, msec now)
{
    t->now = now;
    if (t->is_out || (t->sent.n > 0 && t->again > now)) {
        return;
    }
    if (t->sent.n == 0 && t->next.n > 0 && (t->due <= now || t->next.n >= BATCH_SPANS)) {
        const struct batch empty = t->sent;
        t->sent = t->next;
        t->next = empty;
        t->due = MSEC_NEVER;
    }
    if (t->sent.n > 0) {
        post_batch(t);
    }
}

msec traces_deadline(const struct traces *t)
{
    if (t->is_out) {
        return MSEC_NEVER;
    }
    return t->sent.n > 0 ? t->again : t->due;
}

struct traces_counts traces_counts(const struct traces *t)
{
    struct traces_counts n = t->counts;

    n.open = spans_open(t->spans);
    n.waiting = t->next.n + t->sent.n;
    return n;
}
