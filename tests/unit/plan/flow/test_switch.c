/* Switches: the conditions that the steps of their branches get, and what is refused. */
#include <string.h>

#include "../fixture.h"
#include "supervisor/plan/flow/condition.h"
#include "supervisor/plan/flow/switch.h"

#define STEP(id) "{'stepId':'" id "','agentId':'calc','skill':'report','task':'report on it all'}"
#define CHECK STEP("check")

static int switch_setup(void **state)
{
    const int code = bench_setup(state);
    add_house(*state);
    return code;
}
#undef RULE
#define RULE(f) cmocka_unit_test_setup_teardown(f, switch_setup, bench_teardown)

static void reads(struct bench *b, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    (void)read_back(b);
}

/* The condition of the step, as JSON; "" when it has none. */
static const char *when_of(struct bench *b, const char *step_id)
{
    for (uint32_t i = 0; i < b->plan->n_steps; i++) {
        const struct plan_step *s = &b->plan->steps[i];
        if (str_is(s->step_id, step_id)) {
            return s->rules->when.ptr == NULL ? "" : json_of(b, s->rules->when);
        }
    }
    fail_msg("no step %s", step_id);
    return "";
}

static void a_step_runs_when_its_branch_holds_and_none_before(void **state)
{
    struct bench *b = *state;
    reads(b, "{'steps':[" CHECK ",{'switch':["
             "{'when':{'results.check.n':{'gt':9}},'steps':[" STEP("many") "," STEP(
                 "more") "]},"
                         "{'when':{'results.check.n':{'gt':3}},'steps':[" STEP(
                             "some") "]},"
                                     "{'else':true,'steps':[" STEP("few") "]}]}," STEP("end") "]}");
    assert_int_equal(b->plan->n_steps, 6);
    assert_string_equal(when_of(b, "check"), "");
    assert_string_equal(when_of(b, "many"), "{'results.check.n':{'gt':9}}");
    assert_string_equal(when_of(b, "more"), "{'results.check.n':{'gt':9}}");
    assert_string_equal(when_of(b, "some"), "{'all':[{'not':{'results.check.n':{'gt':9}}},"
                                            "{'results.check.n':{'gt':3}}]}");
    assert_string_equal(when_of(b, "few"), "{'all':[{'not':{'results.check.n':{'gt':9}}},"
                                           "{'not':{'results.check.n':{'gt':3}}}]}");
    assert_string_equal(when_of(b, "end"), "");
}

static void a_step_of_a_branch_keeps_its_own_condition(void **state)
{
    struct bench *b = *state;
    reads(b, "{'steps':[" CHECK ",{'switch':[{'when':{'results.check.n':1},'steps':["
             "{'stepId':'a','agentId':'calc','skill':'report','task':'report on it all',"
             "'when':{'results.check.m':2}},"
             "{'stepId':'b','if':{'results.check.m':3},'agentId':'calc','skill':'report',"
             "'task':'report on it all'},"
             "{'stepId':'c','when':null,'agentId':'calc','skill':'report',"
             "'task':'report on it all'}]}]}]}");
    assert_string_equal(when_of(b, "a"), "{'all':[{'results.check.n':1},{'results.check.m':2}]}");
    assert_string_equal(when_of(b, "b"), "{'all':[{'results.check.n':1},{'results.check.m':3}]}");
    assert_string_equal(when_of(b, "c"), "{'results.check.n':1}");
}

static void of_two_conditions_of_a_step_the_proper_name_wins(void **state)
{
    struct bench *b = *state;
    reads(b, "{'steps':[" CHECK ",{'switch':[{'when':{'results.check.n':1},'steps':["
             "{'if':{'results.check.m':3},'stepId':'a','agentId':'calc','skill':'report',"
             "'task':'report on it all','when':{'results.check.m':2}}]}]}]}");
    assert_string_equal(when_of(b, "a"), "{'all':[{'results.check.n':1},{'results.check.m':2}]}");
}

static void switches_stand_in_each_other_and_after_each_other(void **state)
{
    struct bench *b = *state;
    reads(b, "{'steps':[" CHECK ",{'switch':["
             "{'when':{'results.check.n':1},'steps':["
             "{'switch':[{'when':{'results.check.m':2},'steps':[" STEP(
                 "a") "]},"
                      "{'else':true,'steps':[" STEP("b") "]}]}," STEP(
                          "c") "]},"
                               "{'else':true,'steps':[" STEP(
                                   "d") "]}]},"
                                        "{'switch':[{'when':{'results.check.k':4},'steps':[" STEP(
                                            "e") "]}]}]}");
    assert_string_equal(when_of(b, "a"), "{'all':[{'results.check.n':1},{'results.check.m':2}]}");
    assert_string_equal(when_of(b, "b"),
                        "{'all':[{'results.check.n':1},{'not':{'results.check.m':2}}]}");
    assert_string_equal(when_of(b, "c"), "{'results.check.n':1}");
    assert_string_equal(when_of(b, "d"), "{'not':{'results.check.n':1}}");
    assert_string_equal(when_of(b, "e"), "{'results.check.k':4}");
}

static void phases_have_switches_too(void **state)
{
    struct bench *b = *state;
    reads(b,
          "{'phases':[{'steps':[" CHECK "]},{'dependsOn':['check'],'steps':["
          "{'switch':[{'when':{'results.check.n':1},'steps':[" STEP("a") "]}]}," STEP("z") "]}]}");
    assert_int_equal(b->plan->n_steps, 3);
    assert_string_equal(when_of(b, "a"), "{'results.check.n':1}");
    assert_int_equal(b->plan->steps[1].deps_n, 1);
    assert_int_equal(b->plan->steps[2].deps_n, 1);
}

/* The first problem of a plan with this switch. */
static const char *refused(struct bench *b, const char *branches)
{
    char json[4000];
    (void)snprintf(json, sizeof json, "{'steps':[" CHECK ",{'switch':%s}]}", branches);
    assert_int_equal(read_json(b, json), BT_INVALID);
    return problem_of(b, 0);
}

static void what_is_wrong_is_told_with_its_branch(void **state)
{
    static const struct {
        const char *branches, *says;
    } rows[] = {
        {"7", "expected a list of {when, steps}"},
        {"[]", "expected a list of {when, steps}"},
        {"[7]", "branch 1: expected {when, steps} or {else: true, steps}"},
        {"[{'when':{'results.check.n':1},'steps':[" STEP("a") "]},{'steps':[" STEP("b") "]}]",
         "branch 2: has either `when` or `else: true`"},
        {"[{'when':{'results.check.n':1},'else':true,'steps':[" STEP("a") "]}]",
         "branch 1: has either `when` or `else: true`"},
        {"[{'when':{'results.check.n':1}}]", "branch 1: has no list of steps"},
        {"[{'when':{'results.check.n':1},'steps':[]}]", "branch 1: has no list of steps"},
        {"[{'else':false,'steps':[" STEP("a") "]}]", "branch 1: else: expected true"},
        {"[{'else':true,'steps':[" STEP("a") "]},{'when':{'results.check.n':1},'steps':[" STEP(
             "b") "]}]",
         "branch 1: `else` is the last branch"},
        {"[{'when':{'result.check':1},'steps':[" STEP("a") "]}]",
         "branch 1: when: \"result.check\" is no reference; expected results.<stepId>.<path>, "
         "steps.<stepId>.status, inputs.<name>, state.<path>, all, any or not"},
        {"[{'case':1,'steps':[" STEP("a") "]}]",
         "branch 1: unknown field `case`; a branch has when (or else) and steps; did you mean "
         "`when`?"},
        {"[{'else':true,'steps':[" STEP("a") "]}],'task':'x'",
         "stands alone; the other fields of its entry belong to the steps"},
    };
    struct bench *b = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[400];
        (void)snprintf(expected, sizeof expected, "invalid_field - switch: %s", rows[i].says);
        assert_string_equal(refused(b, rows[i].branches), expected);
    }
}

/* ---- caps ---- */

static void branches_are_at_most_64(void **state)
{
    struct bench *b = *state;
    for (uint32_t n = SWITCH_BRANCHES_MAX; n <= SWITCH_BRANCHES_MAX + 1; n++) {
        static char json[64 * 1024];
        size_t at = (size_t)snprintf(json, sizeof json, "{'steps':[" CHECK ",{'switch':[");
        for (uint32_t i = 0; i < n; i++) {
            at += (size_t)snprintf(json + at, sizeof json - at,
                                   "%s{'when':{'results.check.n':%u},'steps':["
                                   "{'stepId':'b%u','agentId':'calc','skill':'report',"
                                   "'task':'report on it all'}]}",
                                   i > 0 ? "," : "", i, i);
        }
        (void)snprintf(json + at, sizeof json - at, "]}]}");
        const enum bt_code code = read_json(b, json);
        assert_int_equal(code, n == SWITCH_BRANCHES_MAX ? BT_OK : BT_INVALID);
    }
    assert_string_equal(problem_of(b, 0), "limit - switch: has more than 64 branches");
}

static struct {
    uint32_t steps, problems;
    const char *last;
    char problem[100];
} seen;

static bool count_step(void *self, struct doc step)
{
    struct bench *b = self;
    seen.steps++;
    seen.last = json_of(b, step);
    return true;
}

static void keep_problem(void *self, bool limit, const char *text)
{
    (void)self;
    assert_true(limit);
    seen.problems++;
    (void)snprintf(seen.problem, sizeof seen.problem, "%s", text);
}

/* Three switches in each other with n conditions in all before the step of the innermost. */
static void conditions_of_all_switches_around_are_at_most_64(void **state)
{
    struct bench *b = *state;
    const struct switch_reader reader = {.self = b, .step = count_step, .problem = keep_problem};
    for (uint32_t n = CONDITION_TESTS_MAX; n <= CONDITION_TESTS_MAX + 1; n++) {
        static char json[64 * 1024];
        size_t at = (size_t)snprintf(json, sizeof json, "[{'switch':[");
        for (uint32_t i = 0; i < 40; i++) {
            at += (size_t)snprintf(json + at, sizeof json - at,
                                   "{'when':{'results.check.n':1},'steps':[" CHECK "]},");
        }
        at += (size_t)snprintf(json + at, sizeof json - at, "{'else':true,'steps':[{'switch':[");
        for (uint32_t i = 40; i < n; i++) {
            at += (size_t)snprintf(json + at, sizeof json - at,
                                   "%s{'when':{'results.check.n':1},'steps':[" CHECK "]}",
                                   i > 40 ? "," : "");
        }
        (void)snprintf(json + at, sizeof json - at, "]}]}]}]");
        seen.steps = seen.problems = 0;
        assert_int_equal(switch_flatten(doc_of(b, json), &b->arena, &reader, &b->err), BT_OK);
        assert_int_equal(seen.steps, CONDITION_TESTS_MAX);
        assert_int_equal(seen.problems, n - CONDITION_TESTS_MAX);
    }
    assert_string_equal(seen.problem,
                        "number 2, branch 25: its switches have more than 64 conditions");
}

static void a_step_in_words_gets_a_condition(void **state)
{
    struct bench *b = *state;
    const struct switch_reader reader = {.self = b, .step = count_step, .problem = keep_problem};
    const struct doc list =
        doc_of(b, "[{'switch':[{'when':{'results.check.n':1},'steps':['report it']}]}]");
    assert_int_equal(switch_flatten(list, &b->arena, &reader, &b->err), BT_OK);
    assert_string_equal(seen.last, "{'task':'report it','when':{'results.check.n':1}}");
}

static void steps_of_switches_count_as_steps_of_the_plan(void **state)
{
    struct bench *b = *state;
    for (uint32_t n = LIMIT_STEPS; n <= LIMIT_STEPS + 1; n++) {
        struct buf json;
        char step[160];
        buf_init(&json, LIMIT_CONTROL_BYTES);
        buf_add_str(&json, STR_LIT("{'steps':[{'switch':[{'else':true,'steps':["));
        for (uint32_t i = 0; i < n; i++) {
            (void)snprintf(step, sizeof step, "%s{'skill':'report','task':'report on it all'}",
                           i > 0 ? "," : "");
            buf_add_str(&json, str_from(step));
        }
        buf_add(&json, "]}]}]}", sizeof "]}]}]}");
        const enum bt_code code = read_json(b, (const char *)json.at);
        buf_done(&json);
        assert_int_equal(code, n == LIMIT_STEPS ? BT_OK : BT_INVALID);
    }
    assert_non_null(strstr(problem_of(b, 0), "limit - steps: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_step_runs_when_its_branch_holds_and_none_before),
        RULE(a_step_of_a_branch_keeps_its_own_condition),
        RULE(of_two_conditions_of_a_step_the_proper_name_wins),
        RULE(switches_stand_in_each_other_and_after_each_other),
        RULE(phases_have_switches_too),
        RULE(what_is_wrong_is_told_with_its_branch),
        RULE(branches_are_at_most_64),
        RULE(conditions_of_all_switches_around_are_at_most_64),
        RULE(a_step_in_words_gets_a_condition),
        RULE(steps_of_switches_count_as_steps_of_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
