#include "plan_builder.h"

#include "protocol/base/clock.h"

static struct built *checked(const char *text)
{
    struct built *b = build(text);
    check(b, NULL);
    return b;
}

static const struct problem *nth(const struct built *b, uint32_t i)
{
    assert_true(i < b->problems.n);
    return &b->at[i];
}

static void says(const struct problem *p, enum problem_category c, const char *step,
                 const char *message)
{
    assert_string_equal(problem_category_name(p->category), problem_category_name(c));
    assert_string_equal(p->step_id, step);
    assert_string_equal(p->message, message);
}

static void a_good_plan_has_no_problems(void **state)
{
    (void)state;
    struct built *b = checked("a; b<a; c<a,b");
    assert_int_equal(b->problems.total, 0);
    built_free(b);
}

static void an_empty_plan_is_refused(void **state)
{
    (void)state;
    struct built *b = checked("");
    assert_int_equal(b->problems.errors, 1);
    assert_int_equal(nth(b, 0)->category, PROBLEM_EMPTY_PLAN);
    assert_int_equal(nth(b, 0)->step, UINT32_MAX);
    built_free(b);
}

static void a_doubled_id_names_both_steps(void **state)
{
    (void)state;
    struct built *b = checked("a; b; a");
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_DUPLICATE_ID, "a",
         "steps 1 and 3 are both called \"a\"; each step needs its own id");
    assert_int_equal(nth(b, 0)->step, 2);
    built_free(b);
}

static void a_malformed_id_is_refused_without_its_controls(void **state)
{
    (void)state;
    struct built *b = checked("a\x1b[2J; b");
    assert_int_equal(nth(b, 0)->category, PROBLEM_INVALID_FIELD);
    assert_null(strchr(nth(b, 0)->message, '\x1b'));
    assert_null(strchr(nth(b, 0)->step_id, '\x1b'));
    built_free(b);
}

static void a_missing_dependency_is_named(void **state)
{
    (void)state;
    struct built *b = checked("a; b<x");
    says(nth(b, 0), PROBLEM_MISSING_DEPENDENCY, "b",
         "depends on \"x\", which is no step of this plan");
    assert_string_equal(nth(b, 0)->field, "dependsOn");
    built_free(b);
}

static void a_step_that_depends_on_itself_is_a_cycle(void **state)
{
    (void)state;
    struct built *b = checked("a<a; b");
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_CYCLE_DETECTED, "a", "depends on itself: a -> a");
    built_free(b);
}

static void a_doubled_dependency_is_refused(void **state)
{
    (void)state;
    struct built *b = checked("a; b<a,a");
    says(nth(b, 0), PROBLEM_INVALID_FIELD, "b", "depends on \"a\" twice; name it once");
    built_free(b);
}

static void a_cycle_of_two_names_its_path(void **state)
{
    (void)state;
    struct built *b = checked("a<b; b<a");
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_CYCLE_DETECTED, "a", "the steps wait for each other: a -> b -> a");
    built_free(b);
}

static void a_cycle_starts_at_its_first_step_and_leaves_out_who_only_waits_for_it(void **state)
{
    (void)state;
    struct built *b = checked("w<y; x<z; y<x; z<y; free");
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_CYCLE_DETECTED, "x", "the steps wait for each other: x -> z -> y -> x");
    built_free(b);
}

static void each_disjoint_cycle_is_named(void **state)
{
    (void)state;
    struct built *b = checked("a<b; b<a; c<d; d<c; e<a,c");
    assert_int_equal(b->problems.errors, 2);
    assert_string_equal(nth(b, 0)->step_id, "a");
    assert_string_equal(nth(b, 1)->step_id, "c");
    built_free(b);
}

static void everything_that_is_wrong_is_found_at_once(void **state)
{
    (void)state;
    struct built *b = checked("a<b; b<a; c<nowhere; c; e<e");
    b->plan.steps[2].task = STR_LIT("x");
    b->problems.n = b->problems.total = b->problems.errors = 0;
    check(b, NULL);
    assert_int_equal(b->problems.errors, 4);
    assert_int_equal(b->problems.total, 5);
    built_free(b);
}

/* ---- agents ---- */

struct house {
    struct registry *registry;
    struct msg_skill skills[2];
    struct msg_card card;
};

static void house_init(struct house *h)
{
    const struct registry_limits lim = {
        .agents = 8, .instances = 8, .lease_ms = 3000, .suspect_ms = 2000};
    void *mem = malloc(registry_size(&lim));
    assert_non_null(mem);
    h->registry = registry_init(mem, &lim);
    h->skills[0] = (struct msg_skill){.id = STR_LIT("read")};
    h->skills[1] = (struct msg_skill){.id = STR_LIT("grep")};
    h->card = (struct msg_card){.agent_id = STR_LIT("worker"), .skills = h->skills, .skills_n = 2};
    registry_agent_card(h->registry, registry_agent_add(h->registry, h->card.agent_id, 0),
                        &h->card);
    registry_agent_add(h->registry, STR_LIT("later"), 0);
}

static void an_unknown_agent_is_named_with_those_that_are_known(void **state)
{
    (void)state;
    struct house h;
    house_init(&h);
    struct built *b = build("a; b");
    b->plan.steps[1].agent_id = STR_LIT("wroker");
    check(b, h.registry);
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_MISSING_AGENT, "b", "Unknown agent: wroker; known: worker, later");
    built_free(b);
    free(h.registry);
}

static void a_skill_that_the_agent_has_not_is_named_with_those_it_has(void **state)
{
    (void)state;
    struct house h;
    house_init(&h);
    struct built *b = build("a; b; c");
    b->plan.steps[0].skill = STR_LIT("grep");
    b->plan.steps[1].skill = STR_LIT("write");
    b->plan.steps[2].agent_id = STR_LIT("later"); /* no card yet: its skills are not known */
    b->plan.steps[2].skill = STR_LIT("anything");
    check(b, h.registry);
    assert_int_equal(b->problems.errors, 1);
    says(nth(b, 0), PROBLEM_MISSING_SKILL, "b",
         "agent \"worker\" has no skill \"write\"; it has: read, grep");
    built_free(b);
    free(h.registry);
}

static void a_step_without_agent_and_skill_is_refused(void **state)
{
    (void)state;
    struct built *b = build("a; b");
    b->plan.steps[0].agent_id = (struct str){NULL, 0};
    b->plan.steps[1].agent_id = (struct str){NULL, 0};
    b->plan.steps[1].skill = STR_LIT("fly");
    check(b, NULL);
    assert_int_equal(nth(b, 0)->category, PROBLEM_MISSING_AGENT);
    says(nth(b, 1), PROBLEM_MISSING_SKILL, "b", "no registered agent has the skill \"fly\"");
    built_free(b);
}

/* ---- templates ---- */

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
        with_text("a; b<a", 1, "{{results.a..b}} {{results}} {{result.a}} {{results.a");
    assert_int_equal(b->problems.errors, 3);
    assert_int_equal(b->problems.total, 4);
    assert_true(nth(b, 2)->warning);
    built_free(b);
}

/* ---- style, lists ---- */

static void a_very_short_or_long_task_is_a_warning(void **state)
{
    (void)state;
    struct built *b = build("a; b");
    b->plan.steps[0].task = STR_LIT("read it");
    b->plan.steps[1].task = STR_LIT("fifteen chars \xc3\xa4"); /* 15 characters, 16 bytes */
    check(b, NULL);
    assert_int_equal(b->problems.errors, 0);
    assert_int_equal(b->problems.total, 1);
    assert_string_equal(nth(b, 0)->step_id, "a");
    built_free(b);
}

static void a_task_over_its_limit_is_refused(void **state)
{
    (void)state;
    struct built *b = build("a");
    char *task = malloc(LIMIT_TASK_BYTES + 1);
    assert_non_null(task);
    memset(task, 'x', LIMIT_TASK_BYTES + 1);
    b->plan.steps[0].task = (struct str){task, LIMIT_TASK_BYTES + 1};
    check(b, NULL);
    assert_int_equal(nth(b, 0)->category, PROBLEM_LIMIT);
    free(task);
    built_free(b);
}

static void a_full_list_counts_on_and_errors_push_warnings_out(void **state)
{
    (void)state;
    struct problem at[2];
    struct problems p = {.at = at, .cap = 2};
    const struct str part = STR_LIT("x");
    problem_put(&p, PROBLEM_STYLE, true, NULL, 0, "1", &part, 1);
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "2", &part, 1);
    problem_put(&p, PROBLEM_STYLE, true, NULL, 0, "3", &part, 1);
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "4", &part, 1);
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "5", &part, 1);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.total, 5);
    assert_int_equal(p.errors, 3);
    assert_string_equal(at[0].field, "2");
    assert_string_equal(at[1].field, "4");
}

static void a_message_is_cut_at_a_whole_character(void **state)
{
    (void)state;
    struct problem at[1];
    struct problems p = {.at = at, .cap = 1};
    char text[700];
    for (size_t i = 0; i + 1 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa4", 2);
    }
    const struct str parts[] = {STR_LIT("x"), {text, sizeof text}};
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "f", parts, 2);
    assert_int_equal(strlen(at[0].message), 511);
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "f", parts + 1, 1);
    p.n = p.errors = 0;
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "f", parts + 1, 1);
    assert_int_equal(strlen(at[0].message), 510);
}

/* ---- size ---- */

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
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(b->ids[i], sizeof b->ids[i], "s%u", i);
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
    const struct plan_check_input in = {.plan = &b->plan,
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
        cmocka_unit_test(a_good_plan_has_no_problems),
        cmocka_unit_test(an_empty_plan_is_refused),
        cmocka_unit_test(a_doubled_id_names_both_steps),
        cmocka_unit_test(a_malformed_id_is_refused_without_its_controls),
        cmocka_unit_test(a_missing_dependency_is_named),
        cmocka_unit_test(a_step_that_depends_on_itself_is_a_cycle),
        cmocka_unit_test(a_doubled_dependency_is_refused),
        cmocka_unit_test(a_cycle_of_two_names_its_path),
        cmocka_unit_test(a_cycle_starts_at_its_first_step_and_leaves_out_who_only_waits_for_it),
        cmocka_unit_test(each_disjoint_cycle_is_named),
        cmocka_unit_test(everything_that_is_wrong_is_found_at_once),
        cmocka_unit_test(an_unknown_agent_is_named_with_those_that_are_known),
        cmocka_unit_test(a_skill_that_the_agent_has_not_is_named_with_those_it_has),
        cmocka_unit_test(a_step_without_agent_and_skill_is_refused),
        cmocka_unit_test(a_template_may_name_direct_and_indirect_dependencies),
        cmocka_unit_test(a_template_of_a_step_it_does_not_depend_on_is_refused),
        cmocka_unit_test(a_template_of_the_step_itself_or_a_later_one_is_refused),
        cmocka_unit_test(in_a_chain_a_template_names_an_earlier_step),
        cmocka_unit_test(a_template_of_an_unknown_step_is_refused),
        cmocka_unit_test(a_step_id_with_dots_is_the_longest_that_fits),
        cmocka_unit_test(a_template_that_could_name_two_steps_is_refused),
        cmocka_unit_test(a_malformed_template_is_refused_and_foreign_braces_are_a_warning),
        cmocka_unit_test(a_very_short_or_long_task_is_a_warning),
        cmocka_unit_test(a_task_over_its_limit_is_refused),
        cmocka_unit_test(a_full_list_counts_on_and_errors_push_warnings_out),
        cmocka_unit_test(a_message_is_cut_at_a_whole_character),
        cmocka_unit_test(a_chain_of_10000_steps_is_checked_without_recursion),
        cmocka_unit_test(a_cycle_of_1000_steps_is_named_in_short),
        cmocka_unit_test(a_fan_out_and_join_of_10000_is_checked_and_linked),
        cmocka_unit_test(far_references_are_bounded_and_refused_with_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
