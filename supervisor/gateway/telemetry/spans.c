#include "supervisor/gateway/telemetry/spans.h"
#include "supervisor/gateway/telemetry/parent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/msec.h"
#include "supervisor/gateway/json.h"

enum { BUCKETS = 1024, TEXT_MAX = PARENT_PLAN_MAX, KIND_INTERNAL = 1, KIND_CLIENT = 3 };

/* In the order of enum trace_kind. */
enum item_kind { STEP, ATTEMPT, GATE, REVIEW, REPLAN, PLANNING, SYNTHESIS, HANDOFF, VERIFY };
static const char *const item_names[] = {"step",     "attempt",   "gate",    "review", "replan",
                                         "planning", "synthesis", "handoff", "verify"};

/* What has begun within a plan. */
struct item {
    struct item *next;
    enum item_kind kind;
    uint32_t index, attempt;
    msec start;
    char step[TEXT_MAX + 1], agent[TEXT_MAX + 1], skill[TEXT_MAX + 1];
};

struct open_plan {
    struct open_plan *next;
    char id[TEXT_MAX + 1], session[TEXT_MAX + 1];
    uint8_t trace[TRACE_BYTES];
    uint64_t span, parent;
    msec start;
    struct item *items;
};

struct spans {
    struct open_plan *plans[BUCKETS];
    uint32_t plans_n, items_n;
    struct parents parents; /* of plans that have no event yet */
};

/* One span as it is written. */
struct span {
    uint64_t id, parent, link; /* 0 = none */
    const char *name;
    int kind;
    msec start, end;
    bool failed;
    struct str why;
};

struct spans *spans_new(void)
{
    return calloc(1, sizeof(struct spans));
}

uint32_t spans_open(const struct spans *s)
{
    return s->plans_n + s->items_n;
}

/* ---- ids: FNV-1a of what the span is about ---- */

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < n; i++) {
        h = (h ^ at[i]) * 1099511628211u;
    }
    return h;
}

static uint64_t span_id(const struct open_plan *p, enum item_kind kind, uint32_t index,
                        uint32_t attempt)
{
    return trace_span(str_from(p->id), (enum trace_kind)(kind + TRACE_STEP), index, attempt);
}

static void trace_of(const char *plan_id, uint8_t ret[TRACE_BYTES])
{
    uint64_t h[2] = {hash(14695981039346656037u, plan_id, strlen(plan_id)), 0};
    uint32_t n = 0;

    for (const char *c = plan_id; *c != 0 && n < 2 * TRACE_BYTES; c++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, *c >= 'A' && *c <= 'F' ? *c - 'A' + 'a' : *c);
        if (digit != NULL) {
            ret[n / 2] = (uint8_t)(ret[n / 2] << 4 | (digit - digits));
            n++;
        }
    }
    if (n < 2 * TRACE_BYTES) { /* no UUID */
        h[1] = hash(h[0], "trace", 5);
        memcpy(ret, h, TRACE_BYTES);
    }
}

/* ---- what is open ---- */

static void copy(char to[TEXT_MAX + 1], struct str s)
{
    const size_t n = s.len < TEXT_MAX ? s.len : TEXT_MAX;

    if (n > 0) {
        memcpy(to, s.ptr, n);
    }
    to[n] = 0;
}

static struct open_plan **plan_at(struct spans *s, struct str id)
{
    struct open_plan **at = &s->plans[hash(14695981039346656037u, id.ptr, id.len) % BUCKETS];

    while (*at != NULL && !str_is(id, (*at)->id)) {
        at = &(*at)->next;
    }
    return at;
}

/* The plan is a part of a trace that it was given. */
static void join(struct open_plan *p, const struct trace *given)
{
    memcpy(p->trace, given->id, TRACE_BYTES);
    p->parent = given->span;
}

static struct open_plan *plan_open(struct spans *s, struct str id, struct doc event, msec now)
{
    struct open_plan **at = plan_at(s, id);
    const struct str parent_id = doc_string(doc_get(event, STR_LIT("parentPlanId")));
    const struct open_plan *parent;
    struct trace given;
    struct open_plan *p;

    if (*at != NULL || s->plans_n == SPANS_PLANS_MAX || id.len > TEXT_MAX) {
        return *at;
    }
    p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    *at = p;
    s->plans_n++;
    copy(p->id, id);
    copy(p->session, doc_string(doc_get(event, STR_LIT("sessionId"))));
    p->start = now;
    p->span = span_id(p, STEP, UINT32_MAX, 0);
    trace_of(p->id, p->trace);
    parent = *plan_at(s, parent_id);
    if (parent != NULL) { /* a child plan is a part of its parent's trace */
        memcpy(p->trace, parent->trace, TRACE_BYTES);
        p->parent = parent->span;
    }
    if (trace_read(doc_string(doc_get(event, STR_LIT("traceparent"))), &given) ||
        parents_take(&s->parents, id, &given)) {
        join(p, &given);
    }
    return p;
}

bool spans_parent(struct spans *s, struct str plan_id, struct str traceparent)
{
    struct open_plan *p = *plan_at(s, plan_id);
    struct trace given;

    if (!parents_put(&s->parents, plan_id, traceparent)) {
        return false;
    }
    if (p != NULL && p->parent == 0 && parents_take(&s->parents, plan_id, &given)) {
        join(p, &given);
    }
    return true;
}

static struct item **item_at(struct open_plan *p, enum item_kind kind, uint32_t index)
{
    struct item **at = &p->items;

    while (*at != NULL && ((*at)->kind != kind || (*at)->index != index)) {
        at = &(*at)->next;
    }
    return at;
}

static struct str text(struct doc event, const char *name)
{
    return doc_string(doc_get(event, str_from(name)));
}

static uint64_t number(struct doc event, const char *name)
{
    const struct doc_head head = doc_head(doc_get(event, str_from(name)));

    return head.kind == DOC_UINT ? head.u : 0;
}

static uint32_t index_of(struct doc event)
{
    return (uint32_t)number(event, "stepIndex");
}

static void item_open(struct spans *s, struct open_plan *p, enum item_kind kind, struct doc event,
                      uint32_t attempt, msec start)
{
    const uint32_t index = kind == PLANNING || kind == SYNTHESIS ? 0 : index_of(event);
    struct item *i;

    if (*item_at(p, kind, index) != NULL || s->items_n == SPANS_STEPS_MAX) {
        return;
    }
    i = calloc(1, sizeof *i);
    if (i == NULL) {
        return;
    }
    i->kind = kind;
    i->index = index;
    i->attempt = attempt;
    i->start = start;
    copy(i->step, text(event, "stepId"));
    copy(i->agent, text(event, "agentId"));
    copy(i->skill, text(event, "skill"));
    i->next = p->items;
    p->items = i;
    s->items_n++;
}

/* ---- one span as JSON ---- */

static void put_attribute(struct buf *out, const char *name, struct str value)
{
    if (value.len == 0) {
        return;
    }
    json_open(out, '{');
    json_key(out, "key");
    json_cstr(out, name);
    json_key(out, "value");
    json_open(out, '{');
    json_key(out, "stringValue");
    json_str(out, value);
    json_close(out, '}');
    json_close(out, '}');
}

static void put_count(struct buf *out, const char *name, uint64_t value)
{
    json_open(out, '{');
    json_key(out, "key");
    json_cstr(out, name);
    json_key(out, "value");
    json_open(out, '{');
    json_key(out, "intValue");
    json_u64(out, value);
    json_close(out, '}');
    json_close(out, '}');
}

static void put_id(struct buf *out, const char *name, uint64_t id)
{
    if (id != 0) {
        json_key(out, name);
        buf_printf(out, "\"%016" PRIx64 "\"", id);
    }
}

static void put_trace(struct buf *out, const struct open_plan *p)
{
    json_key(out, "traceId");
    buf_add_byte(out, '"');
    for (int i = 0; i < TRACE_BYTES; i++) {
        buf_printf(out, "%02x", p->trace[i]);
    }
    buf_add_byte(out, '"');
}

static void put_time(struct buf *out, const char *name, msec ms)
{
    json_key(out, name);
    buf_printf(out, "\"%" PRIu64 "000000\"", (uint64_t)ms);
}

/* Up to the attributes, which the caller writes before span_end. */
static void span_begin(struct buf *out, const struct open_plan *p, const struct span *s)
{
    json_open(out, '{');
    put_trace(out, p);
    put_id(out, "spanId", s->id);
    put_id(out, "parentSpanId", s->parent);
    json_key(out, "name");
    json_cstr(out, s->name);
    json_key(out, "kind");
    json_u64(out, (uint64_t)s->kind);
    put_time(out, "startTimeUnixNano", s->start);
    put_time(out, "endTimeUnixNano", s->end > s->start ? s->end : s->start);
    json_key(out, "status");
    json_open(out, '{');
    if (s->failed) {
        json_member(out, "message", s->why);
    }
    json_key(out, "code");
    json_u64(out, s->failed ? 2 : 1);
    json_close(out, '}');
    if (s->link != 0) {
        json_key(out, "links");
        json_open(out, '[');
        json_open(out, '{');
        put_trace(out, p);
        put_id(out, "spanId", s->link);
        json_close(out, '}');
        json_close(out, ']');
    }
    json_key(out, "attributes");
    json_open(out, '[');
    put_attribute(out, "baton.plan.id", str_from(p->id));
}

static void span_end(struct buf *out, struct doc event)
{
    const struct doc usage = doc_get(event, STR_LIT("usage"));

    put_attribute(out, "error.type", text(event, "errorClass"));
    put_attribute(out, "baton.status", text(event, "status"));
    if (number(usage, "inputTokens") + number(usage, "outputTokens") > 0) {
        put_count(out, "gen_ai.usage.input_tokens", number(usage, "inputTokens"));
        put_count(out, "gen_ai.usage.output_tokens", number(usage, "outputTokens"));
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void put_item(struct buf *out, const struct open_plan *p, const struct item *i,
                     const struct span *s, struct doc event)
{
    char name[2 * TEXT_MAX + 16];
    struct span named = *s;
    const char *of = i->kind == ATTEMPT && i->agent[0] != 0 ? i->agent : i->step;

    (void)snprintf(name, sizeof name, "%s%s%s", item_names[i->kind], of[0] != 0 ? " " : "", of);
    named.name = name;
    span_begin(out, p, &named);
    put_attribute(out, "baton.step.id", str_from(i->step));
    if (i->kind == ATTEMPT) {
        put_count(out, "baton.attempt", i->attempt);
        put_attribute(out, "gen_ai.operation.name", STR_LIT("invoke_agent"));
    }
    put_attribute(out, "gen_ai.agent.id", str_from(i->agent));
    put_attribute(out, "baton.skill", str_from(i->skill));
    put_attribute(out, "baton.review.id", text(event, "reviewId"));
    put_attribute(out, "baton.review.decision", text(event, "decision"));
    span_end(out, event);
}

/* ---- ends ---- */

static uint32_t item_close(struct spans *s, struct open_plan *p, enum item_kind kind,
                           struct doc event, msec end, bool failed, struct buf *out)
{
    const uint32_t index = kind == PLANNING || kind == SYNTHESIS ? 0 : index_of(event);
    struct item **at = item_at(p, kind, index);
    struct item *i = *at;
    struct span span = {.kind = kind == ATTEMPT ? KIND_CLIENT : KIND_INTERNAL,
                        .end = end,
                        .failed = failed,
                        .why = text(event, text(event, "error").len > 0 ? "error" : "reason")};

    if (i == NULL) {
        return 0;
    }
    span.id = span_id(p, kind, i->index, i->attempt);
    span.parent = kind == STEP || kind == PLANNING || kind == SYNTHESIS
                      ? p->span
                      : span_id(p, STEP, i->index, 0);
    span.link =
        kind == ATTEMPT && i->attempt > 1 ? span_id(p, ATTEMPT, i->index, i->attempt - 1) : 0;
    span.start = i->start;
    put_item(out, p, i, &span, event);
    *at = i->next;
    s->items_n--;
    free(i);
    return 1;
}

/* A span without a length, of a step. */
static uint32_t moment(struct open_plan *p, enum item_kind kind, struct doc event, msec now,
                       bool failed, uint64_t link, struct buf *out)
{
    struct item i = {.kind = kind, .index = index_of(event)};
    const uint32_t n = (uint32_t)number(event, "planSeq"); /* one of several */
    const struct span s = {.id = span_id(p, kind, i.index, n),
                           .parent = kind == STEP ? p->span : span_id(p, STEP, i.index, 0),
                           .link = link,
                           .kind = KIND_INTERNAL,
                           .start = now,
                           .end = now,
                           .failed = failed,
                           .why = text(event, "diagnosis")};
    const struct doc to = doc_get(event, STR_LIT("toAgent"));

    copy(i.step, text(event, kind == HANDOFF ? "planStepId" : "stepId"));
    copy(i.agent, to.ptr != NULL ? text(to, "agentId") : text(event, "agentId"));
    put_item(out, p, &i, &s, event);
    return 1;
}

/* The attempt ends, and the next one begins. */
static uint32_t next_attempt(struct spans *s, struct open_plan *p, struct doc event, msec now,
                             struct buf *out)
{
    struct item **at = item_at(p, ATTEMPT, index_of(event));
    const struct item before = *at != NULL ? **at : (struct item){.kind = ATTEMPT};
    const uint32_t attempt = (uint32_t)number(event, "attempt");
    const uint32_t n = item_close(s, p, ATTEMPT, event, now, true, out);

    item_open(s, p, ATTEMPT, event, attempt + 1, now + number(event, "delayMs"));
    at = item_at(p, ATTEMPT, index_of(event));
    if (*at != NULL) {
        memcpy((*at)->skill, before.skill, sizeof before.skill);
        if ((*at)->agent[0] == 0) {
            memcpy((*at)->agent, before.agent, sizeof before.agent);
        }
    }
    return n;
}

static uint32_t end_step(struct spans *s, struct open_plan *p, struct doc event, msec now,
                         struct buf *out)
{
    const bool failed =
        !str_is(text(event, "status"), "completed") && !str_is(text(event, "status"), "skipped");
    uint32_t n = 0;

    if (*item_at(p, STEP, index_of(event)) == NULL) {
        item_open(s, p, STEP, event, 0, now);
    }
    for (int kind = ATTEMPT; kind <= REPLAN; kind++) {
        n += item_close(s, p, (enum item_kind)kind, event, now, failed, out);
    }
    return n + item_close(s, p, STEP, event, now, failed, out);
}

static uint32_t end_plan(struct spans *s, struct str id, struct doc event, msec now,
                         struct buf *out)
{
    struct open_plan **at = plan_at(s, id);
    struct open_plan *p = *at;
    const struct span span = {.id = p->span,
                              .parent = p->parent,
                              .name = "plan",
                              .kind = KIND_INTERNAL,
                              .start = p->start,
                              .end = now,
                              .failed = !str_is(text(event, "status"), "completed"),
                              .why = text(event, "failureReason")};

    while (p->items != NULL) {
        struct item *i = p->items;
        p->items = i->next;
        s->items_n--;
        free(i);
    }
    span_begin(out, p, &span);
    put_attribute(out, "baton.session.id", str_from(p->session));
    put_attribute(out, "baton.outcome", text(event, "outcome"));
    put_attribute(out, "baton.failure.kind", text(event, "failureKind"));
    span_end(out, event);
    *at = p->next;
    s->plans_n--;
    free(p);
    return 1;
}

void spans_free(struct spans *s)
{
    for (uint32_t i = 0; s != NULL && i < BUCKETS; i++) {
        while (s->plans[i] != NULL) {
            struct open_plan *p = s->plans[i];
            s->plans[i] = p->next;
            while (p->items != NULL) {
                struct item *item = p->items;
                p->items = item->next;
                free(item);
            }
            free(p);
        }
    }
    free(s);
}

/* ---- events ---- */

struct taking {
    struct spans *s;
    struct open_plan *p;
    struct doc event;
    msec now;
    struct buf *out;
};

static uint32_t begin(struct taking *t, enum item_kind kind)
{
    const uint32_t attempt = (uint32_t)number(t->event, "attempt");

    if (kind != PLANNING && kind != SYNTHESIS) {
        item_open(t->s, t->p, STEP, t->event, 0, t->now);
    }
    item_open(t->s, t->p, kind, t->event, attempt, t->now);
    return 0;
}

static uint32_t end(struct taking *t, enum item_kind kind, bool failed)
{
    return item_close(t->s, t->p, kind, t->event, t->now, failed, t->out);
}

static uint32_t take(struct taking *t, struct str type)
{
    static const struct {
        const char *type;
        enum item_kind kind;
        enum { BEGINS, ENDS_WELL, ENDS_BADLY } what;
    } spans[] = {
        {"plan_step_started", ATTEMPT, BEGINS},    {"quality_gate_started", GATE, BEGINS},
        {"quality_gate_passed", GATE, ENDS_WELL},  {"quality_gate_failed", GATE, ENDS_BADLY},
        {"quality_gate_error", GATE, ENDS_BADLY},  {"plan_step_waiting", REVIEW, BEGINS},
        {"review_decided", REVIEW, ENDS_WELL},     {"replan_started", REPLAN, BEGINS},
        {"planning_started", PLANNING, BEGINS},    {"plan_generated", PLANNING, ENDS_WELL},
        {"planning_failed", PLANNING, ENDS_BADLY}, {"synthesis_started", SYNTHESIS, BEGINS},
        {"synthesis_retry", SYNTHESIS, ENDS_WELL}, {"synthesis_finished", SYNTHESIS, ENDS_WELL}};

    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        if (str_is(type, spans[i].type)) {
            return spans[i].what == BEGINS ? begin(t, spans[i].kind)
                                           : end(t, spans[i].kind, spans[i].what == ENDS_BADLY);
        }
    }
    if (str_is(type, "replan_finished")) {
        const struct doc_head ok = doc_head(doc_get(t->event, STR_LIT("ok")));
        return end(t, REPLAN, ok.kind == DOC_BOOL && !ok.b);
    }
    if (str_is(type, "plan_step_retry") || str_is(type, "fallback_used")) {
        return next_attempt(t->s, t->p, t->event, t->now, t->out);
    }
    if (str_is(type, "plan_step_verification_failed")) {
        return moment(t->p, VERIFY, t->event, t->now, true, 0, t->out);
    }
    if (str_is(type, "agent_handoff")) {
        const uint32_t attempt = (uint32_t)number(t->event, "attempt");
        const uint64_t link = attempt > 0 ? span_id(t->p, ATTEMPT, index_of(t->event), attempt) : 0;
        return moment(t->p, HANDOFF, t->event, t->now, false, link, t->out);
    }
    return str_is(type, "plan_step_completed") ? end_step(t->s, t->p, t->event, t->now, t->out) : 0;
}

uint32_t spans_event(struct spans *s, struct doc event, struct buf *out)
{
    const struct str type = text(event, "type");
    const struct str id = text(event, "planId");
    const msec now = (msec)number(event, "tsMs");
    struct taking t = {.s = s, .event = event, .now = now, .out = out};

    if (id.len == 0) {
        return 0;
    }
    if (str_is(type, "planning_started") || str_is(type, "plan_generated") ||
        str_is(type, "plan_started")) {
        (void)plan_open(s, id, event, now);
    }
    t.p = *plan_at(s, id);
    if (t.p == NULL) {
        return 0;
    }
    return str_is(type, "plan_completed") ? end_plan(s, id, event, now, out) : take(&t, type);
}

void spans_document(struct buf *out, const struct buf *spans)
{
    json_raw(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    put_attribute(out, "service.name", STR_LIT("baton"));
    put_attribute(out, "service.version", STR_LIT(BATON_VERSION));
    buf_add_cstr(out,
                 "]},\"scopeSpans\":[{\"scope\":{\"name\":\"baton\",\"version\":\"" BATON_VERSION
                 "\"},\"spans\":[");
    buf_add(out, spans->at, spans->len);
    buf_add_cstr(out, "]}]}]}");
}
