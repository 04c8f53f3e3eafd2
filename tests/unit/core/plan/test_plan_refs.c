#include "plan_builder.h"

static struct built *with_text(const char *plan, uint32_t step, const char *text)
{
    struct built *b = build(plan);
    b->texts[b->n_texts++] = (struct plan_text){step, str_from(text), "parameters.sql"};
    check(b, NULL);
    return b;
}

static void a_template_may_name_direct_and_indirect_dependencies(void **state)
{
    (void)state;
    struct built *b = with_text("a; b<a; c<b", 2, "{{results.b}} {{results.a.x.y}}");
    assert_int_equal(b->problems.total, 0);
    built_free(b);
}

static void a_template_of_a_step_it_does_not_depend_on_is_refused(void **state)
{
    (void)state;
    struct built *b = with_text("a; b<a; c<a", 2, "{{results.b}}");
    says(nth(b, 0), PROBLEM_BAD_TEMPLATE, "c",
         "{{results.b}}: this step does not depend on \"b\"; add it to dependsOn");
    assert_string_equal(nth(b, 0)->field, "parameters.sql");
    built_free(b);
}

static void a_template_of_the_step_itself_or_a_later_one_is_refused(void **state)
{
    (void)state;
    struct built *b = with_text("a; b<a; c<b", 1, "{{results.b}} {{results.c}}");
    assert_int_equal(b->problems.errors, 2);
    built_free(b);
}

static void in_a_chain_a_template_names_an_earlier_step(void **state)
{
    (void)state;
    struct built *b = build("a; b; c");
    b->plan.chain = true;
    b->texts[0] = (struct plan_text){1, STR_LIT("{{results.a}} {{results.c}}"), "parameters.x"};
    b->n_texts = 1;
    check(b, NULL);
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_BAD_TEMPLATE, "b",
         "{{results.c}}: step \"c\" does not come before this one");
    built_free(b);
}

static void a_template_of_an_unknown_step_is_refused(void **state)
{
    (void)state;
    struct built *b = build("a; b<a");
    b->plan.steps[1].task = STR_LIT("summarise {{results.fetch.rows}} for me");
    check(b, NULL);
    says(nth(b, 0), PROBLEM_BAD_TEMPLATE, "b", "{{results.fetch.rows}} names no step of this plan");
    assert_string_equal(nth(b, 0)->field, "task");
    built_free(b);
}

static void a_step_id_with_dots_is_the_longest_that_fits(void **state)
{
    (void)state;
    struct built *b = with_text("x; a.b; c<a.b", 2, "{{results.a.b.rows}}");
    assert_int_equal(b->problems.total, 0);
    struct str path;
    assert_int_equal(plan_check_ref(&b->plan, STR_LIT("a.b.rows"), &path), 1);
    assert_true(str_is(path, "rows"));
    assert_int_equal(plan_check_ref(&b->plan, STR_LIT("x.y"), &path), 0);
    assert_true(str_is(path, "y"));
    assert_int_equal(plan_check_ref(&b->plan, STR_LIT("zz.x"), &path), UINT32_MAX);
    built_free(b);
}

static void a_template_that_could_name_two_steps_is_refused(void **state)
{
    (void)state;
    struct built *b = with_text("a; a.b; c<a.b,a", 2, "{{results.a.b.rows}}");
    says(
        nth(b, 0), PROBLEM_BAD_TEMPLATE, "c",
        "{{results.a.b.rows}} could name step \"a.b\" or a member of step \"a\"; rename one of the "
        "steps");
    built_free(b);
}

static void a_malformed_template_is_refused_and_foreign_braces_are_a_warning(void **state)
{
    (void)state;
    struct built *b =
        with_text("a; b<a", 1, "{{results.a..b}} {{results}} {{result.x}} {{results.a");
    assert_int_equal(b->problems.errors, 3);
    assert_int_equal(b->problems.total, 4);
    assert_true(nth(b, 2)->warning);
    built_free(b);
}

static void a_template_of_another_system_that_names_a_step_is_refused(void **state)
{
    static const char *const texts[] = {"{{result.a}}",
                                        "{{ a }}",
                                        "{{ a.output }}",
                                        "{{ steps.a.output }}",
                                        "${{ steps.a.outputs.x }}",
                                        "{{ outputs['a'] }}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct built *b = with_text("a; b<a", 1, texts[i]);
        assert_int_equal(b->problems.errors, 1);
        assert_non_null(strstr(nth(b, 0)->message, "the result of that step is {{results.a}}"));
        built_free(b);
    }
}

static void a_variable_that_names_a_step_is_a_warning(void **state)
{
    (void)state;
    struct built *b = with_text("a; b<a", 1, "${a} ${steps.a.output} ${HOME} ${} $a ${a");
    assert_int_equal(b->problems.errors, 0);
    assert_int_equal(b->problems.total, 2);
    says(nth(b, 0), PROBLEM_STYLE, "b",
         "${a} stays as it is; the result of that step is {{results.a}}");
    built_free(b);
}

/* What a condition looks at: the result of a step, or how it ended. */
static struct built *with_reference(const char *plan, uint32_t step, const char *text)
{
    struct built *b = build(plan);
    b->texts[b->n_texts++] = (struct plan_text){step, str_from(text), "when", .reference = true};
    check(b, NULL);
    return b;
}

static void a_condition_looks_at_steps_before_it(void **state)
{
    static const char *const fine[] = {"steps.a", "steps.b", "results.a", "results.b.x.y"};
    static const struct {
        const char *text, *why;
    } wrong[] = {{"steps.z", "steps.z names no step of this plan"},
                 {"results.z.x", "results.z.x names no step of this plan"},
                 {"steps.c", "steps.c: a step has no result of its own"},
                 {"steps.d", "steps.d: this step does not depend on \"d\""},
                 {"results.d.x", "results.d.x: this step does not depend on \"d\""}};

    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        struct built *b = with_reference("a; b<a; c<b; d<a", 2, fine[i]);
        assert_int_equal(b->problems.total, 0);
        built_free(b);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct built *b = with_reference("a; b<a; c<b; d<a", 2, wrong[i].text);
        assert_int_equal(b->problems.errors, 1);
        assert_string_equal(nth(b, 0)->field, "when");
        if (strncmp(nth(b, 0)->message, wrong[i].why, strlen(wrong[i].why)) != 0) {
            fail_msg("%s: %s", wrong[i].text, nth(b, 0)->message);
        }
        built_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_may_name_direct_and_indirect_dependencies),
        cmocka_unit_test(a_template_of_a_step_it_does_not_depend_on_is_refused),
        cmocka_unit_test(a_template_of_the_step_itself_or_a_later_one_is_refused),
        cmocka_unit_test(in_a_chain_a_template_names_an_earlier_step),
        cmocka_unit_test(a_template_of_an_unknown_step_is_refused),
        cmocka_unit_test(a_step_id_with_dots_is_the_longest_that_fits),
        cmocka_unit_test(a_template_that_could_name_two_steps_is_refused),
        cmocka_unit_test(a_malformed_template_is_refused_and_foreign_braces_are_a_warning),
        cmocka_unit_test(a_template_of_another_system_that_names_a_step_is_refused),
        cmocka_unit_test(a_variable_that_names_a_step_is_a_warning),
        cmocka_unit_test(a_condition_looks_at_steps_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
