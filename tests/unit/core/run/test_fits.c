/* Which records fit a step in which state, and what becomes of it: the whole table, in fits.txt.
 * Written anew by `BATON_WRITE=1 test_fits`. A line: the record and its variant, the status and the
 * phase of the step; then "attempts it had/attempt of the record>status.attempt.phase.deadline". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/core/run/run_apply.h"
#include "supervisor/core/run/run_internal.h"
#include "tests/unit/core/plan/plan_text.h"

enum { NOW = 100, TEXT = 256 * 1024 };

static char *table;
static size_t length;

static void put(const char *text)
{
    const size_t n = strlen(text);

    assert_true(length + n < TEXT);
    memcpy(table + length, text, n + 1);
    length += n;
}

struct world {
    struct registry *registry;
    struct plan *plan;
    struct run *run;
    void *kept;
    size_t size;
};

static struct world world_new(void)
{
    const struct registry_limits lim = {
        .agents = 4, .instances = 4, .lease_ms = 10, .suspect_ms = 5};
    struct world w = {.registry = registry_init(calloc(1, registry_size(&lim)), &lim)};

    w.plan = plan_text_new("A(timeout=50); B<A; C<A,B(always)", w.registry);
    w.size = run_size(w.plan);
    w.run = run_init(calloc(1, w.size), w.plan);
    w.kept = malloc(w.size);
    assert_non_null(w.kept);
    assert_true(
        run_apply(w.run, w.plan, &(struct record){.type = REC_PLAN_GENERATED, .step = STEP_NONE}));
    assert_true(run_apply(w.run, w.plan,
                          &(struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE, .now = 7}));
    memcpy(w.kept, w.run, w.size);
    return w;
}

static void world_free(struct world *w)
{
    plan_text_free(w->plan);
    free(w->registry);
    free(w->run);
    free(w->kept);
}

/* What the record has beside its step and attempt; false: there is no such variant. */
static bool vary(struct record *rec, int v)
{
    if (rec->type == REC_STEP_COMPLETED) {
        REC(rec, step_completed)->status = (enum step_status)v;
        return v <= STEP_STATUS_COUNT;
    }
    if (rec->type == REC_STEP_WAITING) {
        REC(rec, waiting)->review = (enum review_kind)v;
        REC(rec, waiting)->serial = 1;
        return v <= REVIEW_KIND_COUNT;
    }
    if (rec->type == REC_REVIEW_DECIDED) {
        REC(rec, decided)->review = (enum review_kind)(v / DECISION_COUNT);
        REC(rec, decided)->decision = (enum review_decision)(v % DECISION_COUNT);
        return v <= REVIEW_KIND_COUNT * DECISION_COUNT;
    }
    if (rec->type == REC_STEP_CHECKING) {
        REC(rec, checking)->phase = (enum step_phase)v;
        return v <= STEP_PHASE_COUNT;
    }
    if (rec->type == REC_FALLBACK_USED) {
        REC(rec, fallback)->action = (enum fallback_action)v;
        return v <= FALLBACK_ACTION_COUNT;
    }
    if (rec->type == REC_STEP_STARTED || rec->type == REC_STEP_ASSIGNED) {
        REC(rec, assigned)->phase = (enum step_phase)(v / 2);
        REC(rec, assigned)->instance.b[0] = (uint8_t)(v % 2);
        return v < 2 * STEP_PHASE_COUNT;
    }
    return v == 0;
}

/* One record on the first step in that state after so many attempts; "" = it does not fit. */
static const char *one(struct world *w, struct record rec, enum step_status status,
                       enum step_phase phase, uint16_t had)
{
    struct run_step *step = &w->run->steps[0];
    static char line[64];
    uint64_t before;

    memcpy(w->run, w->kept, w->size);
    run_step_count(w->run, step, false);
    step->status = (uint8_t)status;
    step->phase = (uint8_t)phase;
    step->attempt = had;
    step->limit = NOW; /* just over */
    run_step_count(w->run, step, true);
    before = run_hash(w->run);
    if (!run_apply(w->run, w->plan, &rec)) {
        assert_int_equal(run_hash(w->run), before);
        return "";
    }
    (void)snprintf(line, sizeof line, " %u/%u>%d.%u.%d.%d", had, rec.attempt, step->status,
                   step->attempt, step->phase,
                   step->deadline == MSEC_NEVER ? -1 : (int)(step->deadline - NOW));
    return line;
}

static void of_record(struct world *w, enum record_type type, int v)
{
    for (int at = 0; at < STEP_STATUS_COUNT * STEP_PHASE_COUNT; at++) {
        const enum step_status status = (enum step_status)(at / STEP_PHASE_COUNT);
        const enum step_phase phase = (enum step_phase)(at % STEP_PHASE_COUNT);
        bool any = false;
        if (phase != PHASE_EXECUTE && status != STEP_CHECKING && status != STEP_BACKOFF) {
            continue;
        }
        for (int i = 0; i < 4 * 3; i++) {
            struct record rec = {.type = type, .attempt = (uint32_t)(i % 3), .now = NOW};
            const char *fits;
            char head[80];
            (void)vary(&rec, v);
            fits = one(w, rec, status, phase, (uint16_t)(i / 3 < 3 ? i / 3 : UINT16_MAX));
            (void)snprintf(head, sizeof head, "%s%s %d on %d.%d:", length > 0 ? "\n" : "",
                           record_wire_type(type), v, (int)status, (int)phase);
            put(!any && fits[0] != 0 ? head : "");
            any = any || fits[0] != 0;
            put(fits);
        }
    }
}

static void what_does_not_fit_changes_nothing(void **state)
{
    struct world w = world_new();

    (void)state;
    for (int type = 0; type < REC_COUNT; type++) {
        for (int v = 0; v < 40; v++) {
            struct record rec = {.type = (enum record_type)type};
            if (vary(&rec, v)) {
                of_record(&w, (enum record_type)type, v);
            }
        }
    }
    put("\n");
    world_free(&w);
    if (getenv("BATON_WRITE") != NULL) {
        FILE *f = fopen(FITS, "we");
        assert_non_null(f);
        assert_int_equal(fwrite(table, 1, length, f), length);
        assert_int_equal(fclose(f), 0);
    }
}

static void a_record_fits_where_the_file_says_so(void **state)
{
    FILE *f = fopen(FITS, "re");
    char *want = calloc(1, TEXT);
    size_t n;

    (void)state;
    assert_true(f != NULL && want != NULL);
    n = fread(want, 1, TEXT - 1, f);
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0, line = 0; i < n || i < length; i++) {
        line = i > 0 && table[i - 1] == '\n' ? i : line;
        if (want[i] != table[i]) {
            fail_msg("fits.txt has another line than \"%.200s\"", table + line);
        }
    }
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(a_record_fits_where_the_file_says_so),
    };
    int failed;

    table = calloc(1, TEXT);
    failed = table == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
    free(table);
    return failed;
}
