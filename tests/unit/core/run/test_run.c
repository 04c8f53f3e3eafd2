/* The run alone: what run_apply takes, what it refuses, and that a refusal changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/core/run/run_internal.h"
#include "tests/unit/core/plan/plan_text.h"

struct bench {
    struct registry *registry;
    struct plan *plan;
    struct run *run;
};

static int setup(void **state)
{
    const struct registry_limits lim = {
        .agents = 4, .instances = 4, .lease_ms = 10, .suspect_ms = 5};
    struct bench *b = calloc(1, sizeof *b);
    b->registry = registry_init(calloc(1, registry_size(&lim)), &lim);
    b->plan = plan_text_new("A(timeout=50); B<A; C<A,B(always)", b->registry);
    b->run = run_init(calloc(1, run_size(3)), b->plan);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    plan_text_free(b->plan);
    free(b->registry);
    free(b->run);
    free(b);
    return 0;
}

static bool apply(struct bench *b, struct record rec)
{
    return run_apply(b->run, b->plan, &rec);
}

static void begin(struct bench *b)
{
    assert_true(apply(b, (struct record){.type = REC_PLAN_GENERATED, .step = STEP_NONE}));
    assert_true(apply(b, (struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE, .now = 7}));
}

static void start(struct bench *b, uint32_t step)
{
    assert_true(apply(
        b, (struct record){REC_INIT(STEP_STARTED, assigned, .instance = {.b = {1}}, .epoch = 9),
                           .step = step, .attempt = 1, .now = 10}));
}

static void a_fresh_run_has_its_roots_ready(void **state)
{
    const struct bench *b = *state;
    const char *why = "";
    assert_int_equal(b->run->status, PLAN_PENDING);
    assert_int_equal(b->run->steps[0].status, STEP_READY);
    assert_int_equal(b->run->steps[1].status, STEP_PENDING);
    assert_int_equal(b->run->ready, 1);
    assert_true(run_invariant(b->run, b->plan, &why));
}

static void nothing_happens_to_a_step_before_the_plan_started(void **state)
{
    struct bench *b = *state;
    const uint64_t before = run_hash(b->run);
    assert_false(apply(b, (struct record){.type = REC_STEP_STARTED, .step = 0, .attempt = 1}));
    assert_int_equal(run_hash(b->run), before);
}

static void the_deadline_of_an_attempt_follows_its_timeout(void **state)
{
    struct bench *b = *state;
    begin(b);
    start(b, 0);
    assert_int_equal(b->run->steps[0].deadline, 60);
    assert_int_equal(b->run->steps[0].started, 10);
    assert_int_equal(b->run->started, 7);
}

/* Whatever a damaged journal contains: false, and the same bytes. */
static void records_that_do_not_fit_change_nothing(void **state)
{
    struct bench *b = *state;
    begin(b);
    start(b, 0);
    const struct record bad[] = {
        {.type = REC_COUNT},
        {.type = REC_AGENT_UP},
        {.type = REC_PLAN_STARTED, .step = STEP_NONE},
        {.type = REC_PLAN_GENERATED, .step = STEP_NONE},
        {.type = REC_STEP_STARTED, .step = 0, .attempt = 1},
        {.type = REC_STEP_STARTED, .step = 1, .attempt = 1},
        {.type = REC_STEP_STARTED, .step = 3, .attempt = 1},
        {.type = REC_STEP_ASSIGNED, .step = 0, .attempt = 2},
        {.type = REC_STEP_ASSIGNED, .step = 1, .attempt = 1},
        {.type = REC_HANDOFF, .step = 1},
        {.type = REC_STEP_RETRY, .step = 0, .attempt = 2},
        {.type = REC_STEP_UNKNOWN, .step = 1, .attempt = 0},
        {REC_INIT(STEP_WAITING, waiting, .review = REVIEW_KIND_COUNT), .step = 0, .attempt = 1},
        {.type = REC_REVIEW_DECIDED, .step = 0, .attempt = 1},
        {.type = REC_STEP_PROGRESS, .step = 1, .attempt = 1},
        {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_READY), .step = 0},
        {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_STATUS_COUNT), .step = 0},
        {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED), .step = 1},
        {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED,
                  .reason = STEP_REASON_COUNT),
         .step = 0},
        {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED,
                  .error_class = CLASS_COUNT),
         .step = 0},
        {REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_FAILED,
                  .outcome = OUTCOME_FAILED)},
        {REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_RUNNING)},
    };
    const uint64_t before = run_hash(b->run);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(apply(b, bad[i]));
        assert_int_equal(run_hash(b->run), before);
    }
}

/* A journal may say so; the core never asks so often. */
static void a_step_is_asked_about_no_more_than_can_be_counted(void **state)
{
    struct bench *b = *state;
    const struct record gate = {REC_INIT(GATE_STARTED, timed, .delay_ms = 5), .step = 0};
    uint64_t before;

    begin(b);
    b->run->steps[0].status = STEP_BACKOFF;
    b->run->steps[0].ask = UINT16_MAX;
    before = run_hash(b->run);
    assert_false(apply(b, gate));
    assert_int_equal(run_hash(b->run), before);
    b->run->steps[0].attempt = 1;
    before = run_hash(b->run);
    assert_false(apply(b, (struct record){REC_INIT(STEP_CHECKING, checking, .phase = PHASE_VERIFY),
                                          .attempt = 1}));
    assert_int_equal(run_hash(b->run), before);
}

/* ---- questions ---- */

/* A record of a question, and where it fits: the statuses of its step, and the phase that is asked
 * about; with `fresh` only before the first attempt, with `begun` only after its beginning. */
struct question {
    struct record rec;
    unsigned statuses; /* a bit for each */
    enum step_phase phase;
    bool fresh, begun;
};

enum {
    ACTIVE = 1u << STEP_IN_PROGRESS | 1u << STEP_BACKOFF | 1u << STEP_UNKNOWN | 1u << STEP_WAITING |
             1u << STEP_CHECKING | 1u << STEP_SLEEPING,
    OUT = 1u << STEP_IN_PROGRESS | 1u << STEP_UNKNOWN
};

static const struct question questions[] = {
    {{REC_INIT(STEP_CHECKING, checking, .phase = PHASE_VERIFY)},
     ACTIVE & ~(1u << STEP_CHECKING),
     PHASE_EXECUTE,
     false,
     true},
    {{REC_INIT(STEP_CHECKING, checking, .phase = PHASE_GATE)}, 0, PHASE_EXECUTE, false, false},
    {{.type = REC_GATE_STARTED}, 1u << STEP_BACKOFF, PHASE_EXECUTE, true, false},
    {{.type = REC_GATE_PASSED}, 1u << STEP_CHECKING, PHASE_GATE, false, false},
    {{.type = REC_GATE_FAILED}, 1u << STEP_CHECKING, PHASE_GATE, false, false},
    {{.type = REC_GATE_ERROR}, 1u << STEP_CHECKING, PHASE_GATE, false, false},
    {{.type = REC_VERIFICATION_FAILED},
     ACTIVE & ~(1u << STEP_WAITING),
     PHASE_EXECUTE,
     false,
     false},
    {{.type = REC_REPLAN_STARTED}, 0, PHASE_EXECUTE, false, false}, /* the plan has no replanner */
    {{REC_INIT(REPLAN_FINISHED, revision, .ok = false)},
     1u << STEP_CHECKING,
     PHASE_REPLAN,
     false,
     false},
    {{REC_INIT(REPLAN_FINISHED, revision, .ok = true)}, 0, PHASE_REPLAN, false, false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_APPROVAL)},
     OUT,
     PHASE_EXECUTE,
     false,
     false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_INPUT)}, OUT, PHASE_EXECUTE, false, false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_UNKNOWN_OUTCOME)},
     OUT,
     PHASE_EXECUTE,
     false,
     false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_FAILURE)},
     ACTIVE & ~(1u << STEP_WAITING),
     PHASE_EXECUTE,
     false,
     false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_BEFORE)},
     1u << STEP_BACKOFF,
     PHASE_EXECUTE,
     false,
     false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_STEP)},
     1u << STEP_BACKOFF,
     PHASE_EXECUTE,
     true,
     false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_PLAN)}, 0, PHASE_EXECUTE, false, false},
    {{REC_INIT(STEP_WAITING, waiting, .review = REVIEW_PLANNING)}, 0, PHASE_EXECUTE, false, false},
    {{REC_INIT(REVIEW_DECIDED, decided, .decision = DECISION_APPROVE)},
     1u << STEP_WAITING,
     PHASE_EXECUTE,
     false,
     false},
};

static bool fits(const struct question *q, int status, enum step_phase phase, uint32_t attempt)
{
    const bool in_phase =
        status != STEP_CHECKING || (q->statuses & ~(1u << STEP_CHECKING)) != 0 || phase == q->phase;

    return (q->statuses & 1u << status) != 0 && in_phase && (!q->fresh || attempt == 0) &&
           (!q->begun || attempt > 0);
}

/* A journal with a question in the wrong place is refused, not replayed. */
static void a_question_fits_only_where_it_can_be_asked(void **state)
{
    struct bench *b = *state;
    uint32_t refused = 0;

    begin(b);
    start(b, 0);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        for (int status = 0; status < STEP_STATUS_COUNT; status++) {
            for (int phase = PHASE_EXECUTE; phase <= PHASE_REPLAN; phase++) {
                for (uint16_t attempt = 0; attempt <= 1; attempt++) {
                    struct record rec = questions[i].rec;
                    uint64_t before;
                    if (fits(&questions[i], status, (enum step_phase)phase, attempt)) {
                        continue;
                    }
                    b->run->steps[0].status = (uint8_t)status;
                    b->run->steps[0].phase = (uint8_t)phase;
                    b->run->steps[0].attempt = attempt;
                    rec.attempt = attempt;
                    before = run_hash(b->run);
                    if (apply(b, rec) || run_hash(b->run) != before) {
                        fail_msg("question %zu was taken by a step of status %d, phase %d, "
                                 "attempt %u",
                                 i, status, phase, attempt);
                    }
                    refused++;
                }
            }
        }
    }
    assert_true(refused > 1000);
}

static void the_end_of_the_plan_is_the_end(void **state)
{
    struct bench *b = *state;
    const char *why = "";
    begin(b);
    assert_true(
        apply(b, (struct record){REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_CANCELLED,
                                          .outcome = OUTCOME_FAILED),
                                 .step = STEP_NONE}));
    assert_int_equal(b->run->cancelled, 3);
    assert_true(run_invariant(b->run, b->plan, &why));
    const uint64_t before = run_hash(b->run);
    for (int t = 0; t < REC_COUNT; t++) {
        assert_false(apply(b, (struct record){.type = (enum record_type)t, .attempt = 1}));
    }
    assert_int_equal(run_hash(b->run), before);
}

static void a_failed_dependency_dooms_a_step_unless_it_runs_always(void **state)
{
    struct bench *b = *state;
    begin(b);
    start(b, 0);
    assert_true(
        apply(b, (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED),
                                 .step = 0, .attempt = 1}));
    assert_int_equal(run_step_doom(b->run, b->plan, 1), REASON_DEPENDENCY_FAILED);
    assert_int_equal(run_step_doom(b->run, b->plan, 2), REASON_NONE);
    assert_int_equal(b->run->steps[2].status, STEP_PENDING);
    assert_true(
        apply(b, (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_SKIPPED,
                                          .reason = REASON_DEPENDENCY_FAILED),
                                 .step = 1}));
    assert_int_equal(b->run->steps[2].status, STEP_READY);
    assert_true(run_step_can_start(b->run, b->plan, 2));
}

static void only_public_records_count_in_the_plans_sequence(void **state)
{
    struct bench *b = *state;
    begin(b);
    start(b, 0);
    assert_int_equal(b->run->plan_seq, 3);
    assert_true(apply(b, (struct record){.type = REC_STEP_UNKNOWN, .step = 0, .attempt = 1}));
    assert_int_equal(b->run->plan_seq, 3);
}

static void a_step_that_ended_moves_nowhere(void **state)
{
    (void)state;
    for (int from = STEP_COMPLETED; from < STEP_STATUS_COUNT; from++) {
        for (int to = 0; to <= STEP_STATUS_COUNT; to++) {
            assert_false(run_move_allowed((enum step_status)from, (enum step_status)to));
        }
    }
    assert_false(run_move_allowed(STEP_PENDING, STEP_IN_PROGRESS));
    assert_false(run_move_allowed(STEP_READY, STEP_UNKNOWN));
    assert_false(run_move_allowed(STEP_PENDING, STEP_FAILED));
    assert_false(run_move_allowed(STEP_WAITING, STEP_IN_PROGRESS));
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A plan of one step more than may be with search agents at a time, each with an error of its own.
 */
static struct bench *searching(void)
{
    enum { N = RUN_SEARCHES_MAX + 1 };
    struct bench *b = calloc(1, sizeof *b);
    b->plan = plan_text_blank(N, 1, 0, "a");
    b->run = run_init(calloc(1, run_size(N)), b->plan);
    begin(b);
    return b;
}

static void search(struct bench *b, uint32_t step)
{
    char text[8];
    const int n = snprintf(text, sizeof text, "e%u", step);
    start(b, step);
    assert_true(apply(
        b, (struct record){REC_INIT(FALLBACK_USED, fallback, .action = FALLBACK_SEARCH,
                                    .error_class = CLASS_RESOURCE_NOT_FOUND),
                           .step = step, .attempt = 1, .now = 11, .text = {text, (size_t)n}}));
}

static void each_step_with_a_search_agent_keeps_its_own_error(void **state)
{
    struct bench *b = searching();
    (void)state;
    for (uint32_t i = 0; i < RUN_SEARCHES_MAX; i++) {
        assert_true(run_may_search(b->run));
        search(b, i);
    }
    assert_false(run_may_search(b->run));
    assert_true(str_is(run_own_text(b->run, 0), "e0"));
    assert_true(str_is(run_own_text(b->run, RUN_SEARCHES_MAX - 1), "e63"));
    assert_int_equal(run_own_text(b->run, RUN_SEARCHES_MAX).len, 0);
    assert_true(
        apply(b, (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED),
                                 .step = 5, .attempt = 1, .now = 12}));
    assert_true(run_may_search(b->run));
    search(b, RUN_SEARCHES_MAX);
    assert_true(str_is(run_own_text(b->run, RUN_SEARCHES_MAX), "e64"));
    assert_int_equal(run_own_text(b->run, 5).len, 0);
    plan_text_free(b->plan);
    free(b->run);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(a_fresh_run_has_its_roots_ready),
        RUN_TEST(a_question_fits_only_where_it_can_be_asked),
        RUN_TEST(nothing_happens_to_a_step_before_the_plan_started),
        RUN_TEST(the_deadline_of_an_attempt_follows_its_timeout),
        RUN_TEST(records_that_do_not_fit_change_nothing),
        RUN_TEST(a_step_is_asked_about_no_more_than_can_be_counted),
        RUN_TEST(each_step_with_a_search_agent_keeps_its_own_error),
        RUN_TEST(the_end_of_the_plan_is_the_end),
        RUN_TEST(a_failed_dependency_dooms_a_step_unless_it_runs_always),
        RUN_TEST(only_public_records_count_in_the_plans_sequence),
        cmocka_unit_test(a_step_that_ended_moves_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
