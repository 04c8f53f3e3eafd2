#include "run_builder.h"

#include "supervisor/core/run/context.h"

/* The results of the builder are texts as long as their blobs, unless `longer` makes them so. */
static uint64_t longer;
static uint64_t text_bytes(void *self, struct blob_ref result)
{
    (void)self;
    return result.len + longer;
}

static const struct context_measure measure = {text_bytes, NULL};

/* The choice as "step:bytes step:bytes (omitted)". */
static const char *choose(struct built *b, const char *states, uint32_t step, uint32_t cap)
{
    static char line[256];
    struct context_pick picks[16];
    struct run *run = build_run(&b->plan, states);
    const struct context_choice c = context_choose(&b->plan, run, step, &measure, picks, cap);
    line[0] = '\0';
    for (uint32_t i = 0; i < c.n; i++) {
        const size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, "%u:%u ", picks[i].step, picks[i].bytes);
        assert_int_equal(picks[i].result.id, 100 + picks[i].step);
    }
    const size_t used = strlen(line);
    (void)snprintf(line + used, sizeof line - used, "(%u)", c.omitted);
    free(run);
    return line;
}

static struct built *plan_with(const char *text, enum context_scope scope, uint32_t budget,
                               uint32_t result)
{
    struct built *b = build_good(text);
    for (uint32_t i = 0; i < b->plan.n_steps; i++) {
        b->plan.steps[i].rules->policy.scope = scope;
    }
    b->plan.context_budget = budget;
    b->plan.context_result = result;
    return b;
}

static void scope_all_takes_every_completed_result_in_step_order(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b; c; d; e", SCOPE_ALL, 1000, 500);
    assert_string_equal(choose(b, "c10 f c20 s p", 4, 16), "0:10 2:20 (0)");
    built_free(b);
}

static void scope_deps_takes_only_direct_dependencies(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b<a; c<b; d<c,a", SCOPE_DEPS, 1000, 500);
    assert_string_equal(choose(b, "c10 c20 c30 p", 3, 16), "0:10 2:30 (0)");
    assert_string_equal(choose(b, "c10 c20 p p", 2, 16), "1:20 (0)");
    assert_string_equal(choose(b, "c10 c20 c30 p", 3, 1), "2:30 (1)"); /* no room for the other */
    assert_string_equal(choose(b, "c10 c20 f p", 3, 1), "0:10 (0)");
    built_free(b);
}

static void scope_none_takes_nothing(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b<a", SCOPE_NONE, 1000, 500);
    assert_string_equal(choose(b, "c10 p", 1, 16), "(0)");
    built_free(b);
}

static void a_step_without_a_result_is_neither_picked_nor_missed(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b; c", SCOPE_ALL, 1000, 500);
    assert_string_equal(choose(b, "c0 c10 p", 2, 16), "1:10 (0)");
    built_free(b);
}

static void one_result_is_cut_at_its_own_cap(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b", SCOPE_ALL, 10000, 500);
    assert_string_equal(choose(b, "c9999 p", 1, 16), "0:500 (0)");
    built_free(b);
}

static void a_short_budget_keeps_the_newest_cuts_one_and_counts_the_rest(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b; c; d; e", SCOPE_ALL, 300, 500);
    assert_string_equal(choose(b, "c100 c100 c100 c150 p", 4, 16), "2:100 3:150 (2)");
    assert_string_equal(choose(b, "c100 c100 c100 c100 p", 4, 16), "1:100 2:100 3:100 (1)");
    b->plan.context_budget = 320;
    assert_string_equal(choose(b, "c100 c100 c100 c150 p", 4, 16), "1:70 2:100 3:150 (1)");
    b->plan.context_budget = 0;
    assert_string_equal(choose(b, "c100 c100 c100 c150 p", 4, 16), "(4)");
    built_free(b);
}

static void no_more_picks_than_there_is_room_for(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b; c; d", SCOPE_ALL, 1000, 500);
    assert_string_equal(choose(b, "c10 c10 c10 p", 3, 2), "1:10 2:10 (1)");
    built_free(b);
}

static void the_text_counts_and_not_the_bytes_of_its_blob(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b", SCOPE_ALL, 1000, 500);
    longer = 5;
    assert_string_equal(choose(b, "c495 p", 1, 16), "0:500 (0)");
    assert_string_equal(choose(b, "c496 p", 1, 16), "0:500 (0)");
    assert_string_equal(choose(b, "c10 p", 1, 16), "0:15 (0)");
    longer = 0;
    built_free(b);
}

static void scope_deps_of_a_chain_is_the_step_before(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b; c", SCOPE_DEPS, 1000, 500);
    b->plan.chain = true; /* no step names a dependency */
    assert_string_equal(choose(b, "c10 c20 p", 2, 16), "1:20 (0)");
    assert_string_equal(choose(b, "p p p", 0, 16), "(0)");
    built_free(b);
}

/* "step step (all)" */
static const char *missing(struct built *b, const char *states, uint32_t step, uint32_t cap)
{
    static char line[256];
    uint32_t steps[16];
    uint32_t all;
    struct run *run = build_run(&b->plan, states);
    const uint32_t n = context_not_completed(&b->plan, run, step, steps, cap, &all);
    size_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        used += (size_t)snprintf(line + used, sizeof line - used, "%u ", steps[i]);
    }
    (void)snprintf(line + used, sizeof line - used, "(%u)", all);
    free(run);
    return line;
}

static void steps_without_a_result_are_found_in_the_scope(void **state)
{
    (void)state;
    struct built *b = plan_with("a; b; c; d; e", SCOPE_ALL, 1000, 500);
    assert_string_equal(missing(b, "c1 f s c1 p", 4, 16), "1 2 (2)");
    assert_string_equal(missing(b, "f f s f p", 4, 2), "2 3 (4)");
    assert_string_equal(missing(b, "c1 c1 c1 c1 p", 4, 16), "(0)");
    built_free(b);
    b = plan_with("a; b; c<a; d<a,b", SCOPE_DEPS, 1000, 500);
    assert_string_equal(missing(b, "c1 f p p", 2, 16), "(0)");
    assert_string_equal(missing(b, "s f p p", 3, 16), "0 1 (2)");
    built_free(b);
    b = plan_with("a; b<a", SCOPE_NONE, 1000, 500);
    assert_string_equal(missing(b, "f p", 1, 16), "(0)");
    built_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scope_all_takes_every_completed_result_in_step_order),
        cmocka_unit_test(scope_deps_takes_only_direct_dependencies),
        cmocka_unit_test(scope_none_takes_nothing),
        cmocka_unit_test(a_step_without_a_result_is_neither_picked_nor_missed),
        cmocka_unit_test(one_result_is_cut_at_its_own_cap),
        cmocka_unit_test(a_short_budget_keeps_the_newest_cuts_one_and_counts_the_rest),
        cmocka_unit_test(no_more_picks_than_there_is_room_for),
        cmocka_unit_test(the_text_counts_and_not_the_bytes_of_its_blob),
        cmocka_unit_test(scope_deps_of_a_chain_is_the_step_before),
        cmocka_unit_test(steps_without_a_result_are_found_in_the_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
