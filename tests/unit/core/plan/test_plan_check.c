#include "plan_builder.h"

static struct built *checked(const char *text)
{
    struct built *b = build(text);
    check(b, NULL);
    return b;
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
    registry_agent_card(h->registry, registry_agent_configure(h->registry, h->card.agent_id, 0),
                        &h->card);
    (void)registry_agent_configure(h->registry, STR_LIT("later"), 0);
    registry_agent_add(h->registry, STR_LIT("gone"), 0);
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
    says(nth(b, 0), PROBLEM_MISSING_AGENT, "b",
         "Unknown agent: wroker; did you mean \"worker\"? known: worker, later");
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
    struct house h;
    house_init(&h);
    struct built *b = build("a; b");
    b->plan.steps[0].agent_id = (struct str){NULL, 0};
    b->plan.steps[1].agent_id = (struct str){NULL, 0};
    b->plan.steps[1].skill = STR_LIT("fly");
    check(b, h.registry);
    assert_int_equal(nth(b, 0)->category, PROBLEM_MISSING_AGENT);
    says(nth(b, 1), PROBLEM_MISSING_SKILL, "b", "no registered agent has the skill \"fly\"");
    built_free(b);
    free(h.registry);
}

static void without_a_registry_a_skill_alone_is_left_unchecked(void **state)
{
    (void)state;
    struct built *b = build("a");
    b->plan.steps[0].agent_id = (struct str){NULL, 0};
    b->plan.steps[0].skill = STR_LIT("fly");
    check(b, NULL);
    assert_int_equal(b->problems.total, 0);
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

static void a_message_is_cut_at_a_whole_character_with_a_mark(void **state)
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
    assert_int_equal(strlen(at[0].message), 510);
    assert_string_equal(at[0].message + 505, "\xc3\xa4…");
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "f", parts + 1, 1);
    p.n = p.errors = 0;
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "f", parts + 1, 1);
    assert_int_equal(strlen(at[0].message), 511);
    assert_string_equal(at[0].message + 506, "\xc3\xa4…");
    p.n = p.errors = 0;
    const struct str fits = {text, 510};
    problem_put(&p, PROBLEM_LIMIT, false, NULL, 0, "f", &fits, 1);
    assert_memory_equal(at[0].message, text, 510);
    assert_int_equal(strlen(at[0].message), 510);
}

/* ---- revisions ---- */

static void a_name_is_that_of_the_step_in_use_and_with_a_revision_that_of_the_old_one(void **state)
{
    (void)state;
    struct built *b = build("a; b<a@1; a<b; c<a; d<a@2; e<b@1; f<a@; g<a@1x; h<a@00001; "
                            "i<a@000001; j<none");
    b->plan.steps[0].revision = 1;
    b->plan.steps[0].superseded = true;
    check(b, NULL);
    assert_int_equal(b->plan.deps[b->plan.steps[1].deps_at], 0);
    assert_int_equal(b->plan.deps[b->plan.steps[3].deps_at], 2);
    assert_int_equal(b->plan.deps[b->plan.steps[8].deps_at], 0); /* five digits at most */
    assert_int_equal(b->problems.errors, 6); /* and no cycle by way of the name */
    says(nth(b, 0), PROBLEM_MISSING_DEPENDENCY, "d",
         "depends on \"a@2\", which is no step of this plan");
    says(nth(b, 1), PROBLEM_MISSING_DEPENDENCY, "e",
         "depends on \"b@1\", which is no step of this plan"); /* b is in use */
    built_free(b);
}

static void nobody_has_to_do_a_human_review(void **state)
{
    (void)state;
    struct built *b = build("a");
    b->plan.steps[0].type = STEP_TYPE_REVIEW;
    b->plan.steps[0].agent_id = (struct str){NULL, 0};
    check(b, NULL);
    assert_int_equal(b->problems.total, 0);
    built_free(b);
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
        cmocka_unit_test(without_a_registry_a_skill_alone_is_left_unchecked),
        cmocka_unit_test(a_very_short_or_long_task_is_a_warning),
        cmocka_unit_test(a_task_over_its_limit_is_refused),
        cmocka_unit_test(a_full_list_counts_on_and_errors_push_warnings_out),
        cmocka_unit_test(a_message_is_cut_at_a_whole_character_with_a_mark),
        cmocka_unit_test(a_name_is_that_of_the_step_in_use_and_with_a_revision_that_of_the_old_one),
        cmocka_unit_test(nobody_has_to_do_a_human_review),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
