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
    assert_string_equal(AGGREGATE_HEAD
                        "task" AGGREGATE_HEAD_END AGGREGATE_SKIPPED AGGREGATE_BETWEEN,
                        "**task**\n_Skipped_\n\n---\n\n");
}

static const char *nothing(bool dry_run, enum plan_status end)
{
    static char text[80];
    struct built *b = build_good("a; b");
    b->plan.dry_run = dry_run;
    const struct str s = aggregate_nothing(&b->plan, end);
    (void)snprintf(text, sizeof text, "%.*s", STR_ARG(s));
    built_free(b);
    return text;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_result_says_so),
        cmocka_unit_test(one_result_is_given_raw_whatever_was_skipped),
        cmocka_unit_test(many_results_are_sections_in_plan_order_without_the_failed),
        cmocka_unit_test(superseded_steps_are_no_part_of_the_answer),
        cmocka_unit_test(no_errors_are_blamed_where_nothing_was_to_be_run_or_people_called_it_off),
        cmocka_unit_test(the_texts_are_those_of_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
