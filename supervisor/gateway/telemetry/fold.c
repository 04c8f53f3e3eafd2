/* Counts of events: steps by agent, skill and status, plans, durations, events by type. Bounded:
 * what is over the caps is counted under "other". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/telemetry/telemetry.h"

enum { SERIES_MAX = 512, TYPES_MAX = 128, NAME_BYTES = 64, STATUS_N = 4, BUCKETS_N = 14 };

/* Upper bounds of durations, in milliseconds. */
static const uint64_t bounds[BUCKETS_N] = {5,    10,   25,    50,    100,    250,    500,
                                           1000, 2500, 10000, 30000, 120000, 600000, 3600000};
static const char *const statuses[STATUS_N] = {"completed", "failed", "skipped", "cancelled"};

struct histogram {
    uint64_t buckets[BUCKETS_N + 1]; /* not cumulative; the last one is +Inf */
    uint64_t sum_ms, n;
};

struct series {
    char agent[NAME_BYTES + 1], skill[NAME_BYTES + 1];
    uint64_t steps[STATUS_N];
    uint64_t attempts, tokens_in, tokens_out;
    struct histogram duration;
};

struct type_count {
    char name[NAME_BYTES + 1];
    uint64_t n;
};

struct fold {
    struct series series[SERIES_MAX + 1]; /* the last one is "other" */
    uint32_t series_n;
    struct type_count types[TYPES_MAX + 1];
    uint32_t types_n;
    uint64_t plans[STATUS_N];
    struct histogram plan_duration;
};

struct fold *fold_new(void)
{
    struct fold *f = calloc(1, sizeof *f);

    if (f != NULL) {
        memcpy(f->series[SERIES_MAX].agent, "other", sizeof "other");
        memcpy(f->series[SERIES_MAX].skill, "other", sizeof "other");
        memcpy(f->types[TYPES_MAX].name, "other", sizeof "other");
    }
    return f;
}

static void copy(char to[NAME_BYTES + 1], struct str s)
{
    const size_t n = s.len < NAME_BYTES ? s.len : NAME_BYTES;

    if (n > 0) {
        memcpy(to, s.ptr, n);
    }
    to[n] = 0;
}

static struct series *series_of(struct fold *f, struct str agent, struct str skill)
{
    for (uint32_t i = 0; i < f->series_n; i++) {
        if (str_is(agent, f->series[i].agent) && str_is(skill, f->series[i].skill)) {
            return &f->series[i];
        }
    }
    if (f->series_n == SERIES_MAX) {
        return &f->series[SERIES_MAX];
    }
    copy(f->series[f->series_n].agent, agent);
    copy(f->series[f->series_n].skill, skill);
    return &f->series[f->series_n++];
}

static void count_type(struct fold *f, struct str type)
{
    for (uint32_t i = 0; i < f->types_n; i++) {
        if (str_is(type, f->types[i].name)) {
            f->types[i].n++;
            return;
        }
    }
    if (f->types_n == TYPES_MAX) {
        f->types[TYPES_MAX].n++;
        return;
    }
    copy(f->types[f->types_n].name, type);
    f->types[f->types_n++].n = 1;
}

static void observe(struct histogram *h, uint64_t ms)
{
    uint32_t i = 0;

    while (i < BUCKETS_N && ms > bounds[i]) {
        i++;
    }
    h->buckets[i]++;
    h->sum_ms += ms;
    h->n++;
}

static int status_of(struct doc event)
{
    const struct str status = doc_string(doc_get(event, STR_LIT("status")));

    for (int i = 0; i < STATUS_N; i++) {
        if (str_is(status, statuses[i])) {
            return i;
        }
    }
    return -1;
}

static uint64_t number(struct doc d, const char *name)
{
    const struct doc_head head = doc_head(doc_get(d, str_from(name)));

    return head.kind == DOC_UINT ? head.u : 0;
}

static void take_step(struct fold *f, struct doc event)
{
    const struct doc usage = doc_get(event, STR_LIT("usage"));
    struct series *s = series_of(f, doc_string(doc_get(event, STR_LIT("agentId"))),
                                 doc_string(doc_get(event, STR_LIT("skill"))));
    const int status = status_of(event);

    if (status < 0) {
        return;
    }
    s->steps[status]++;
    s->attempts += number(event, "attempts");
    if (usage.ptr != NULL) {
        s->tokens_in += number(usage, "inputTokens");
        s->tokens_out += number(usage, "outputTokens");
    }
    if (number(event, "attempts") > 0) {
        observe(&s->duration, number(event, "durationMs"));
    }
}

void fold_event(void *fold, struct doc event)
{
    struct fold *f = fold;
    const struct str type = doc_string(doc_get(event, STR_LIT("type")));
    const int status = status_of(event);

    count_type(f, type);
    if (str_is(type, "plan_step_completed")) {
        take_step(f, event);
    } else if (str_is(type, "plan_completed") && status >= 0) {
        f->plans[status]++;
        observe(&f->plan_duration, number(event, "durationMs"));
    }
}

/* ---- as text ---- */

static void put_ids(struct buf *out, const struct series *s)
{
    text_label(out, "agent", str_from(s->agent), true);
    text_label(out, "skill", str_from(s->skill), false);
}

/* labels: "" or a series. */
static void put_histogram(struct buf *out, const char *name, const struct histogram *h,
                          const struct series *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i <= BUCKETS_N; i++) {
        char bound[32] = "+Inf";
        n += h->buckets[i];
        if (i < BUCKETS_N) {
            (void)snprintf(bound, sizeof bound, "%g", (double)bounds[i] / 1000);
        }
        buf_printf(out, "%s_bucket", name);
        if (s != NULL) {
            put_ids(out, s);
        }
        text_label(out, "le", str_from(bound), s == NULL);
        buf_printf(out, "} %" PRIu64 "\n", n);
    }
    buf_printf(out, "%s_sum", name);
    if (s != NULL) {
        put_ids(out, s);
        buf_add_byte(out, '}');
    }
    buf_printf(out, " %.3f\n%s_count", (double)h->sum_ms / 1000, name);
    if (s != NULL) {
        put_ids(out, s);
        buf_add_byte(out, '}');
    }
    buf_printf(out, " %" PRIu64 "\n", h->n);
}

static bool is_used(const struct fold *f, uint32_t i)
{
    const struct series *s = &f->series[i];

    return i < f->series_n ||
           (i == SERIES_MAX && s->steps[0] + s->steps[1] + s->steps[2] + s->steps[3] > 0);
}

static void put_steps(const struct fold *f, struct buf *out)
{
    text_family(out, "baton_steps_total", "counter", "Steps that ended, by their last state.");
    for (uint32_t i = 0; i <= SERIES_MAX; i++) {
        for (int k = 0; is_used(f, i) && k < STATUS_N; k++) {
            buf_add_cstr(out, "baton_steps_total");
            put_ids(out, &f->series[i]);
            text_label(out, "status", str_from(statuses[k]), false);
            buf_printf(out, "} %" PRIu64 "\n", f->series[i].steps[k]);
        }
    }
    text_family(out, "baton_step_attempts_total", "counter", "Attempts of steps that ended.");
    for (uint32_t i = 0; i <= SERIES_MAX; i++) {
        if (is_used(f, i)) {
            buf_add_cstr(out, "baton_step_attempts_total");
            put_ids(out, &f->series[i]);
            buf_printf(out, "} %" PRIu64 "\n", f->series[i].attempts);
        }
    }
    text_family(out, "baton_step_tokens_total", "counter", "Tokens of models, as agents report.");
    for (uint32_t i = 0; i <= SERIES_MAX; i++) {
        const struct series *s = &f->series[i];
        if (s->tokens_in + s->tokens_out > 0) {
            buf_add_cstr(out, "baton_step_tokens_total");
            put_ids(out, s);
            buf_printf(out, ",direction=\"input\"} %" PRIu64 "\nbaton_step_tokens_total",
                       s->tokens_in);
            put_ids(out, s);
            buf_printf(out, ",direction=\"output\"} %" PRIu64 "\n", s->tokens_out);
        }
    }
    text_family(out, "baton_step_duration_seconds", "histogram",
                "From the first attempt of a step to its end.");
    for (uint32_t i = 0; i <= SERIES_MAX; i++) {
        if (is_used(f, i) && f->series[i].duration.n > 0) {
            put_histogram(out, "baton_step_duration_seconds", &f->series[i].duration,
                          &f->series[i]);
        }
    }
}

void fold_write(const struct fold *f, struct buf *out)
{
    put_steps(f, out);
    text_family(out, "baton_plans_total", "counter", "Plans that ended, by their last state.");
    for (int i = 0; i < STATUS_N; i++) {
        if (i != 2) { /* no plan is skipped */
            buf_printf(out, "baton_plans_total{status=\"%s\"} %" PRIu64 "\n", statuses[i],
                       f->plans[i]);
        }
    }
    text_family(out, "baton_plan_duration_seconds", "histogram",
                "From the submission of a plan to its end.");
    put_histogram(out, "baton_plan_duration_seconds", &f->plan_duration, NULL);
    text_family(out, "baton_events_total", "counter", "Events of the journal by type.");
    for (uint32_t i = 0; i <= TYPES_MAX; i++) {
        if (f->types[i].n > 0) {
            buf_add_cstr(out, "baton_events_total");
            text_label(out, "type", str_from(f->types[i].name), true);
            buf_printf(out, "} %" PRIu64 "\n", f->types[i].n);
        }
    }
}
