/* What a step of type wait waits for. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "protocol/base/date.h"
#include "protocol/base/map.h"
#include "supervisor/plan/reader_internal.h"

enum { WAIT_FOR_MS, WAIT_UNTIL, WAIT_SIGNAL_NAME, WAIT_SCHEMA, WAIT_TIMEOUT_MS, WAIT_FIELDS };
static const struct field_name wait_names[] = {
#define FIELDS_WAIT
#include "supervisor/plan/field_names.def"
};

static void report(const struct location *at, const char *field, const char *text)
{
    location_report(at, PROBLEM_INVALID_FIELD, false, field, "%s", text);
}

static void read_date(const struct location *at, struct doc value, struct plan_wait *w)
{
    struct str text;
    if (value_string(at, "until", value, &text) && !date_read(text, &w->until)) {
        location_report(at, PROBLEM_INVALID_FIELD, false, "until",
                        "expected a date with its offset, such as 2027-01-31T18:00:00Z, got "
                        "\"%.*s\"",
                        (int)(text.len < 64 ? text.len : 64), text.ptr);
    }
}

static void read_signal(const struct location *at, const struct doc *values, struct plan_wait *w)
{
    (void)value_string(at, "signal", values[WAIT_SIGNAL_NAME], &w->signal);
    if (values[WAIT_SIGNAL_NAME].ptr != NULL && w->signal.len == 0) {
        report(at, "signal", "is empty; give the name that plan.signal will have");
    } else if (w->signal.len > LIMIT_ID_BYTES) {
        location_report(at, PROBLEM_LIMIT, false, "signal", "%zu bytes, at most %d", w->signal.len,
                        LIMIT_ID_BYTES);
    }
    if (doc_head(values[WAIT_SCHEMA]).kind == DOC_BOOL ||
        value_map(at, "schema", values[WAIT_SCHEMA])) {
        w->schema = values[WAIT_SCHEMA];
    }
    (void)value_u64(at, "timeoutMs", values[WAIT_TIMEOUT_MS], 0, WAIT_MS_MAX, &w->ms);
}

/* Exactly one of the three. */
static void read_wait(const struct location *at, const struct doc *values, struct plan_wait *w)
{
    const struct doc ms = values[WAIT_FOR_MS];
    const struct doc date = values[WAIT_UNTIL];
    const struct doc signal = values[WAIT_SIGNAL_NAME];
    const int n = (ms.ptr != NULL) + (date.ptr != NULL) + (signal.ptr != NULL);
    if (n != 1) {
        report(at, "forMs",
               n == 0 ? "is missing, and so are until and signal; give one of them"
                      : "and until and signal exclude each other; give one of them");
        return;
    }
    w->what = ms.ptr != NULL ? WAIT_FOR_TIME : date.ptr != NULL ? WAIT_FOR_DATE : WAIT_FOR_SIGNAL;
    if (w->what != WAIT_FOR_SIGNAL &&
        (values[WAIT_SCHEMA].ptr != NULL || values[WAIT_TIMEOUT_MS].ptr != NULL)) {
        report(at, values[WAIT_SCHEMA].ptr != NULL ? "schema" : "timeoutMs",
               "goes with signal only");
    }
    if (w->what == WAIT_FOR_TIME) {
        (void)value_u64(at, "forMs", ms, 0, WAIT_MS_MAX, &w->ms);
    } else if (w->what == WAIT_FOR_DATE) {
        read_date(at, date, w);
    } else {
        read_signal(at, values, w);
    }
}

enum bt_code plan_step_wait(struct step_reader *s)
{
    const struct doc value = s->values[STEP_WAIT];
    const struct field_table table = {wait_names, sizeof wait_names / sizeof wait_names[0],
                                      &s->r->reported.wait, &s->r->reported.unknown};
    struct doc values[WAIT_FIELDS] = {{NULL, 0}};
    struct plan_wait *w;
    char prefix[96];
    char got[64];
    if (s->step->type != STEP_TYPE_WAIT) {
        return BT_OK;
    }
    w = arena_alloc(s->r->arena, sizeof *w);
    if (w == NULL) {
        return reader_nomem(s->r);
    }
    *w = (struct plan_wait){.what = WAIT_FOR_TIME};
    s->step->wait = w;
    if (value.ptr == NULL) {
        report(&s->at, "wait", "is missing; give {forMs}, {until} or {signal}");
    } else if (doc_head(value).kind != DOC_MAP) {
        value_describe(value, got, sizeof got);
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "wait",
                        "expected {forMs: 60000}, {until: 2027-01-31T18:00:00Z} or {signal: NAME}, "
                        "got %s",
                        got);
    } else {
        const struct location in = location_below(&s->at, "wait", prefix);
        fields_read(&table, value, &in, values);
        read_wait(&in, values, w);
    }
    return BT_OK;
}

struct str plan_wait_text(const struct plan_wait *w, char *mem, size_t size)
{
    char date[CLOCK_ISO_LEN + 1];
    switch (w->what) {
    case WAIT_FOR_TIME:
        (void)snprintf(mem, size, "Wait for %llu ms", (unsigned long long)w->ms);
        break;
    case WAIT_FOR_DATE:
        clock_iso(w->until, date);
        (void)snprintf(mem, size, "Wait until %s", date);
        break;
    case WAIT_FOR_SIGNAL:
    case WAIT_FOR_COUNT:
        (void)snprintf(mem, size, "Wait for the signal %.*s", STR_ARG(w->signal));
        break;
    }
    return str_from(mem);
}

/* ---- the signals of a plan ---- */

static bool same_schema(const struct plan_wait *a, const struct plan_wait *b)
{
    return str_eq((struct str){(const char *)a->schema.ptr, a->schema.len},
                  (struct str){(const char *)b->schema.ptr, b->schema.len});
}

static bool is_for_signal(const struct plan_step *s)
{
    return s->wait != NULL && s->wait->what == WAIT_FOR_SIGNAL && !s->superseded;
}

/* Which step takes a signal is known only when it came, so all of its name have one schema. */
enum bt_code plan_waits_check(struct plan_reader *r)
{
    struct map names = {0};
    enum bt_code code = BT_OK;
    for (uint32_t i = 0; i < r->plan->n_steps && code == BT_OK; i++) {
        const struct plan_step *s = &r->plan->steps[i];
        const uint32_t first = is_for_signal(s) ? map_get(&names, s->wait->signal) : MAP_NONE;
        const struct location at = {.problems = r->problems, .step = s, .ix = i, .prefix = "wait"};
        if (!is_for_signal(s)) {
            continue;
        }
        if (first == MAP_NONE) {
            code = map_put(&names, s->wait->signal, i);
        } else if (i >= r->first && !same_schema(s->wait, r->plan->steps[first].wait)) {
            location_report(&at, PROBLEM_INVALID_FIELD, false, "schema",
                            "is not that of the step %.*s, which waits for the same signal; use "
                            "one schema, or two names",
                            STR_ARG(r->plan->steps[first].step_id));
        }
    }
    map_done(&names);
    return code == BT_OK ? BT_OK : reader_nomem(r);
}
