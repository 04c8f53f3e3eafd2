#include "plan_builder.h"

#include "protocol/base/clock.h"

struct big {
    struct plan plan;
    struct str *names;
    char (*ids)[8];
    struct plan_text *texts;
    uint32_t n_texts;
    struct problem at[8];
    struct problems problems;
};

static struct big *big_new(uint32_t n, uint32_t edges)
{
    struct big *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->plan.steps = calloc(n, sizeof b->plan.steps[0]);
    b->plan.deps = calloc(edges, sizeof b->plan.deps[0]);
    b->plan.dependents = calloc(edges, sizeof b->plan.dependents[0]);
    b->names = calloc(edges, sizeof b->names[0]);
    b->ids = calloc(n, sizeof b->ids[0]);
    b->texts = calloc(n, sizeof b->texts[0]);
    assert_true(b->plan.steps && b->plan.deps && b->names && b->ids && b->texts);
    b->problems = (struct problems){.at = b->at, .cap = 8};
    b->plan.n_steps = n;
    struct step_rules *rules = calloc(n, sizeof *rules);
    assert_non_null(rules);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(b->ids[i], sizeof b->ids[i], "s%u", i);
        b->plan.steps[i].rules = &rules[i];
        b->plan.steps[i].step_id = str_from(b->ids[i]);
        b->plan.steps[i].agent_id = STR_LIT("worker");
        b->plan.steps[i].task = STR_LIT(GOOD_TASK);
    }
    return b;
}

static void big_dep(struct big *b, uint32_t step, uint32_t on)
{
    struct plan_step *s = &b->plan.steps[step];
    if (s->deps_n == 0) {
        s->deps_at = b->plan.n_edges;
    }
    s->deps_n++;
    b->names[b->plan.n_edges++] = b->plan.steps[on].step_id;
}

static uint64_t big_check(struct big *b)
{
    uint32_t *scratch = malloc(plan_check_scratch(&b->plan) * sizeof *scratch);
    assert_non_null(scratch);
    struct plan_check_input in = {.plan = &b->plan,
                                  .dep_names = b->names,
                                  .texts = b->texts,
                                  .n_texts = b->n_texts,
                                  .scratch = scratch,
                                  .ret_deps = b->plan.deps};
    const msec start = clock_mono_ms();
    plan_check(&in, &b->problems);
    const msec took = clock_mono_ms() - start;
    free(scratch);
    return took;
}

static void big_free(struct big *b)
{
    free(b->plan.steps[0].rules);
    free(b->plan.steps);
    free(b->plan.deps);
    free(b->plan.dependents);
    free(b->names);
    free(b->ids);
    free(b->texts);
    free(b);
}

static void a_chain_of_10000_steps_is_checked_without_recursion(void **state)
{
    (void)state;
    struct big *b = big_new(10000, 10000);
    for (uint32_t i = 1; i < 10000; i++) {
        big_dep(b, i, i - 1);
    }
    big_check(b);
    assert_int_equal(b->problems.total, 0);
    plan_link(&b->plan);
    assert_int_equal(b->plan.steps[9999].dependents_n, 0);
    big_free(b);
}

static void a_cycle_of_1000_steps_is_named_in_short(void **state)
{
    (void)state;
    struct big *b = big_new(1000, 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        big_dep(b, i, (i + 1) % 1000);
    }
    big_check(b);
    assert_int_equal(b->problems.errors, 1);
    says(&b->at[0], PROBLEM_CYCLE_DETECTED, "s0",
         "the steps wait for each other: s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> ... 993 more ... -> "
         "s999 -> s0");
    big_free(b);
}

static void a_fan_out_and_join_of_10000_is_checked_and_linked(void **state)
{
    (void)state;
    struct big *b = big_new(10000, 20000);
    for (uint32_t i = 1; i < 9999; i++) {
        big_dep(b, i, 0);
    }
    for (uint32_t i = 9998; i >= 1; i--) {
        big_dep(b, 9999, i);
    }
    big_check(b);
    assert_int_equal(b->problems.total, 0);
    const struct plan_step *join = &b->plan.steps[9999];
    for (uint32_t i = 0; i < join->deps_n; i++) {
        assert_int_equal(b->plan.deps[join->deps_at + i], i + 1); /* ascending */
    }
    plan_link(&b->plan);
    assert_int_equal(b->plan.steps[0].dependents_n, 9998);
    big_free(b);
}

/* The worst that a plan can ask for: every step looks for an ancestor that only the whole graph
 * shows. */
static void far_references_are_bounded_and_refused_with_advice(void **state)
{
    (void)state;
    enum { STEPS = 4000, WIDTH = 25 };
    struct big *b = big_new(STEPS, STEPS * WIDTH);
    for (uint32_t i = 1; i < STEPS; i++) {
        for (uint32_t d = 1; d <= WIDTH && d <= i; d++) {
            big_dep(b, i, i - d);
        }
        b->texts[b->n_texts++] = (struct plan_text){i, STR_LIT("{{results.s0}}"), "parameters.x"};
    }
    const uint64_t took = big_check(b);
    assert_true(b->problems.errors > 0);
    assert_int_equal(b->at[0].category, PROBLEM_LIMIT);
    assert_true(took < 5000);
    big_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_of_10000_steps_is_checked_without_recursion),
        cmocka_unit_test(a_cycle_of_1000_steps_is_named_in_short),
        cmocka_unit_test(a_fan_out_and_join_of_10000_is_checked_and_linked),
        cmocka_unit_test(far_references_are_bounded_and_refused_with_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
