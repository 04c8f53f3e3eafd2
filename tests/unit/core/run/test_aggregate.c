#include "run_builder.h"

#include "supervisor/core/run/aggregate.h"

/* "nothing", "raw 2", "sections 0r 1s"; superseded: bit per step. */
static const char *choose_without(const char *plan, const char *states, uint32_t superseded)
{
    static const char *const forms[] = {"nothing", "raw", "sections"};
    static char line[128];
    struct aggregate_part parts[16];
    struct built *b = build_good(plan);
    struct run *run = build_run(&b->plan, states);
    for (uint32_t i = 0; i < b->plan.n_steps; i++) {
        b->plan.steps[i].superseded = (superseded >> i & 1) != 0;
    }
    const struct aggregate_choice c = aggregate_choose(&b->plan, run, parts);
    (void)snprintf(line, sizeof line, "%s", forms[c.form]);
    for (uint32_t i = 0; i < c.n; i++) {
        const size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, " %u%c", parts[i].step,
                       parts[i].kind == AGGREGATE_PART_SKIPPED ? 's' : 'r');
    }
    free(run);
    built_free(b);
    return line;
}

static const char *choose(const char *plan, const char *states)
{
    return choose_without(plan, states, 0);
}

static void no_result_says_so(void **state)
{
    (void)state;
    assert_string_equal(choose("a; b", "f s"), "nothing");
    assert_string_equal(choose("a; b", "f c0"), "nothing"); /* an empty result does not count */
}

static void one_result_is_given_raw_whatever_was_skipped(void **state)
{
    (void)state;
    assert_string_equal(choose("a; b; c", "s c5 f"), "raw 1r");
    assert_string_equal(choose("a; b; c", "c0 c5 c0"), "raw 1r");
}

static void many_results_are_sections_in_plan_order_without_the_failed(void **state)
{
    (void)state;
    assert_string_equal(choose("a; b; c; d; e", "c5 s f c5 c0"), "sections 0r 1s 3r");
}

static void superseded_steps_are_no_part_of_the_answer(void **state)
{
    (void)state;
    assert_string_equal(choose_without("a; b; c; d", "s c5 c5 c5", 1 | 4), "sections 1r 3r");
    assert_string_equal(choose_without("a; b", "c5 c5", 1), "raw 1r");
    assert_string_equal(choose_without("a; b", "c5 s", 1), "nothing");
}

static void the_texts_are_those_of_the_contract(void **state)
{
    (void)state; /* M080 */
    assert_string_equal(AGGREGATE_NOTHING, "I wasn't able to complete the plan due to errors.");
    assert_string_equal(AGGREGATE_DRY_RUN, "Nothing was run: it was a dry run.");
    assert_string_equal(AGGREGATE_CANCELLED, "The plan was cancelled before it had a result.");
    assert_string_equal(
        AGGREGATE_HEAD
        "task" AGGREGATE_HEAD_END AGGREGATE_SKIPPED AGGREGATE_BETWEEN AGGREGATE_NOT_DONE,
        "**task**\n_Skipped_\n\n---\n\n**Not done**");
}

static const char *nothing_of(const struct run *run, bool dry_run, enum plan_status end)
{
    static char text[80];
    struct built *b = build_good("a; b");
    b->plan.dry_run = dry_run;
    const struct str s = aggregate_nothing(&b->plan, run, end);
    (void)snprintf(text, sizeof text, "%.*s", STR_ARG(s));
    built_free(b);
    return text;
}

static const char *nothing(bool dry_run, enum plan_status end)
{
    const struct run run = {.skipped = 0};
    return nothing_of(&run, dry_run, end);
}

static void conditions_that_left_nothing_to_do_are_no_error(void **state)
{
    const struct run run = {.skipped = 2};
    (void)state;
    assert_string_equal(nothing_of(&run, false, PLAN_COMPLETED), AGGREGATE_BYPASSED);
    assert_string_equal(nothing_of(&run, false, PLAN_FAILED), AGGREGATE_NOTHING);
}

static void steps_that_were_done_and_gave_no_text_are_no_error(void **state)
{
    struct run run = {.completed = 1};
    (void)state;
    assert_string_equal(nothing_of(&run, false, PLAN_COMPLETED), AGGREGATE_EMPTY);
    assert_string_equal(nothing_of(&run, false, PLAN_FAILED), AGGREGATE_NOTHING);
    run.failed = 1; /* a partial plan */
    assert_string_equal(nothing_of(&run, false, PLAN_COMPLETED), AGGREGATE_NOTHING);
}

static void no_errors_are_blamed_where_nothing_was_to_be_run_or_people_called_it_off(void **state)
{
    (void)state;
    assert_string_equal(nothing(false, PLAN_FAILED), AGGREGATE_NOTHING);
    assert_string_equal(nothing(false, PLAN_COMPLETED), AGGREGATE_NOTHING);
    assert_string_equal(nothing(true, PLAN_COMPLETED), AGGREGATE_DRY_RUN);
    assert_string_equal(nothing(true, PLAN_FAILED), AGGREGATE_NOTHING); /* planning failed */
    assert_string_equal(nothing(false, PLAN_CANCELLED), AGGREGATE_CANCELLED);
}

/* "2: 1 4"; superseded: bit per step. */
static const char *not_done(const char *plan, const char *states, uint32_t superseded)
{
    static char line[256];
    uint32_t steps[AGGREGATE_NAMED_MAX];
    struct built *b = build_good(plan);
    struct run *run = build_run(&b->plan, states);
    for (uint32_t i = 0; i < b->plan.n_steps; i++) {
        b->plan.steps[i].superseded = (superseded >> i & 1) != 0;
    }
    const uint32_t n = aggregate_not_done(&b->plan, run, steps, AGGREGATE_NAMED_MAX);
    (void)snprintf(line, sizeof line, "%u:", n);
    for (uint32_t i = 0; i < n && i < AGGREGATE_NAMED_MAX; i++) {
        const size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, " %u", steps[i]);
    }
    free(run);
    built_free(b);
    return line;
}

static void what_was_not_done_is_all_but_the_completed_and_the_superseded(void **state)
{
    (void)state; /* M029 */
    assert_string_equal(not_done("a; b; c; d", "c5 f s c0", 0), "2: 1 2");
    assert_string_equal(not_done("a; b; c; d", "c5 f s c0", 2), "1: 2");
    assert_string_equal(not_done("a; b", "c5 c5", 0), "0:");
}

static void at_most_twenty_are_named_and_all_are_counted(void **state)
{
    (void)state;
    static const char some[] = "f f f f f f f f f f f f f f f f f f f f f f";
    static const char plan[] = "a; b; c; d; e; f; g; h; i; j; k; l; m; n; o; p; q; r; s; t; u; v";
    static const char first[] = " 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19";
    char expected[80];
    for (size_t n = 20; n <= 22; n++) {
        char steps[sizeof plan];
        char states[sizeof some];
        (void)snprintf(steps, sizeof steps, "%.*s", (int)(n * 3 - 2), plan);
        (void)snprintf(states, sizeof states, "%.*s", (int)(n * 2 - 1), some);
        (void)snprintf(expected, sizeof expected, "%zu:%s", n, first);
        assert_string_equal(not_done(steps, states, 0), expected);
    }
}

static void results_that_are_not_whole_are_those_of_completed_steps(void **state)
{
    (void)state;
    static const struct aggregate_readers none = {NULL, 0};
    struct aggregate_lack lacks[2];
    struct built *b = build_good("a; b; c; d");
    struct run *run = build_run(&b->plan, "c5 f c5 c5");
    for (uint32_t i = 0; i < 4; i++) {
        run->steps[i].result.truncated = i > 0;
    }
    assert_int_equal(aggregate_not_whole(&b->plan, run, &none, AGGREGATE_RESULT, lacks, 2), 2);
    assert_int_equal(lacks[0].step, 2);
    assert_int_equal(lacks[1].step, 3);
    b->plan.steps[2].superseded = true;
    assert_int_equal(aggregate_not_whole(&b->plan, run, &none, AGGREGATE_RESULT, lacks, 1), 1);
    assert_int_equal(lacks[0].step, 3);
    free(run);
    built_free(b);
}

/* "1:C 2:RC", of the steps that lack what is asked for. */
static const char *not_whole(const struct built *b, const struct run *run,
                             const struct aggregate_readers *readers, unsigned what, uint32_t max)
{
    static char text[80];
    struct aggregate_lack lacks[8];
    const uint32_t n = aggregate_not_whole(&b->plan, run, readers, what, lacks, max);
    size_t at = (size_t)snprintf(text, sizeof text, "%u of", n);
    for (uint32_t i = 0; i < n && i < max; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, " %u:%s%s", lacks[i].step,
                               (lacks[i].what & AGGREGATE_RESULT) != 0 ? "R" : "",
                               (lacks[i].what & AGGREGATE_CONTEXT) != 0 ? "C" : "");
    }
    return text;
}

static void steps_that_read_only_a_part_are_not_whole_however_they_ended(void **state)
{
    (void)state;
    static const uint32_t at[] = {1, 2, 4};
    const struct aggregate_readers readers = {at, 3};
    const unsigned both = AGGREGATE_RESULT | AGGREGATE_CONTEXT;
    struct built *b = build_good("a; b; c; d; e");
    struct run *run = build_run(&b->plan, "c5 f c5 c5 c5");
    run->steps[2].result.truncated = 1;
    run->steps[3].result.truncated = 1;
    assert_string_equal(not_whole(b, run, &readers, both, 8), "4 of 1:C 2:RC 3:R 4:C");
    assert_string_equal(not_whole(b, run, &readers, both, 3), "4 of 1:C 2:RC 3:R");
    assert_string_equal(not_whole(b, run, &readers, AGGREGATE_RESULT, 8), "2 of 2:R 3:R");
    assert_string_equal(not_whole(b, run, &readers, AGGREGATE_CONTEXT, 8), "3 of 1:C 2:C 4:C");
    b->plan.steps[1].superseded = true;
    assert_string_equal(not_whole(b, run, &readers, AGGREGATE_CONTEXT, 8), "2 of 2:C 4:C");
    free(run);
    built_free(b);
}

static struct str how(enum step_status status, enum step_reason reason, bool began)
{
    const struct run_step step = {
        .status = (uint8_t)status, .reason = (uint8_t)reason, .did = began ? STEP_DID_BEGIN : 0};
    return aggregate_ended_how(&step);
}

static void how_a_step_ended_tells_people_from_failures(void **state)
{
    (void)state;
    assert_true(str_is(how(STEP_FAILED, REASON_NONE, true), "failed"));
    assert_true(str_is(how(STEP_SKIPPED, REASON_USER_SKIP, true), "was skipped by a person"));
    assert_true(str_is(how(STEP_SKIPPED, REASON_ON_FAILURE_SKIP, true), "was skipped"));
    assert_true(str_is(how(STEP_SKIPPED, REASON_DEPENDENCY_FAILED, false), "was skipped"));
    assert_true(str_is(how(STEP_CANCELLED, REASON_USER_CANCEL, true), "was cancelled by a person"));
    assert_true(str_is(how(STEP_CANCELLED, REASON_CANCELLED, true), "was cancelled"));
    assert_true(str_is(how(STEP_CANCELLED, REASON_NONE, false), "did not begin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_result_says_so),
        cmocka_unit_test(one_result_is_given_raw_whatever_was_skipped),
        cmocka_unit_test(many_results_are_sections_in_plan_order_without_the_failed),
        cmocka_unit_test(superseded_steps_are_no_part_of_the_answer),
        cmocka_unit_test(conditions_that_left_nothing_to_do_are_no_error),
        cmocka_unit_test(steps_that_were_done_and_gave_no_text_are_no_error),
        cmocka_unit_test(no_errors_are_blamed_where_nothing_was_to_be_run_or_people_called_it_off),
        cmocka_unit_test(the_texts_are_those_of_the_contract),
        cmocka_unit_test(what_was_not_done_is_all_but_the_completed_and_the_superseded),
        cmocka_unit_test(at_most_twenty_are_named_and_all_are_counted),
        cmocka_unit_test(results_that_are_not_whole_are_those_of_completed_steps),
        cmocka_unit_test(steps_that_read_only_a_part_are_not_whole_however_they_ended),
        cmocka_unit_test(how_a_step_ended_tells_people_from_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
