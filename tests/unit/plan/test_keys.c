/* priority, concurrencyKey and overlap in documents. */
#include "fixture.h"

#define STEP(members) "{'stepId':'a','agentId':'calc','task':'do something'" members "}"

static struct plan *read_whole(struct bench *b, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    return read_back(b);
}

static void the_plans_own_key_is_apart_from_those_of_its_steps(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const struct plan *p =
        read_whole(b, "{'policy':{'priority':9,'concurrencyKey':'k','overlap':'cancel'},'steps':["
                      "{'stepId':'a','agentId':'calc','task':'x','concurrencyKey':'k'},"
                      "{'stepId':'b','agentId':'calc','task':'x','concurrencyKey':'m'},"
                      "{'stepId':'c','agentId':'calc','task':'x','concurrency_key':'k'},"
                      "{'stepId':'d','agentId':'calc','task':'x'}]}");
    assert_int_equal(p->priority, 9);
    assert_int_equal(p->overlap, KEY_CANCEL);
    assert_true(p->keyed);
    assert_int_equal(p->keys.n, 3);
    assert_true(str_is(p->keys.names[0], "k") && str_is(p->keys.names[1], "k"));
    assert_int_equal(p->steps[0].key, 2);
    assert_int_equal(p->steps[1].key, 3);
    assert_int_equal(p->steps[2].key, 2);
    assert_int_equal(p->steps[3].key, 0);
}

static void without_them_a_plan_has_the_middle_priority_and_no_key(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const struct plan *p = read_whole(b, "{'steps':[" STEP("") "]}");
    assert_int_equal(p->priority, PLAN_PRIORITY);
    assert_false(p->keyed);
    assert_int_equal(p->keys.n, 0);
    assert_int_equal(p->overlap, KEY_QUEUE);
}

/* Of items the key is that of each step; the plan around them keeps its own. */
static void a_body_has_the_keys_of_its_steps_and_the_priority_of_the_plan(void **state)
{
    struct bench *b = *state;
    add_house(b);
    const struct plan *p =
        read_whole(b, "{'policy':{'priority':2,'concurrencyKey':'k'},'steps':["
                      "{'stepId':'a','agentId':'calc','task':'x {{item}}','forEach':[1,2],"
                      "'concurrencyKey':'m'}]}");
    const char *body = json_of(b, p->steps[0].rules->child);
    assert_int_equal(p->steps[0].key, 0);
    assert_non_null(strstr(body, "'concurrencyKey':'m'"));
    assert_non_null(strstr(body, "'priority':2"));
    assert_null(strstr(body, "'concurrencyKey':'k'"));
}

/* One plan with n steps, each with a key of its own. */
static enum bt_code read_keys(struct bench *b, uint32_t n)
{
    struct buf json;
    buf_init(&json, 100000);
    buf_add_cstr(&json, "{'steps':[");
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&json,
                   "%s{'stepId':'s%u','agentId':'calc','task':'x','dependsOn':[],"
                   "'concurrencyKey':'k%u'}",
                   i > 0 ? "," : "", i, i);
    }
    buf_add_cstr(&json, "]}");
    const enum bt_code code = read_json(b, buf_cstr(&json));
    buf_done(&json);
    return code;
}

static void a_plan_has_as_many_keys_as_the_limit_and_no_more(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_keys(b, LIMIT_PLAN_KEYS), BT_OK);
    assert_int_equal(read_keys(b, LIMIT_PLAN_KEYS + 1), BT_INVALID);
    assert_string_equal(problem_of(b, 0), "limit s64 concurrencyKey: is one of more than 64 "
                                          "different ones; a plan and its steps may have 64");
}

static void wrong_ones_are_told_with_what_would_be_right(void **state)
{
    static const char *const cases[][2] = {
        {"{'policy':{'priority':10},'steps':[" STEP("") "]}",
         "invalid_field - policy.priority: expected a whole number from 0 to 9, got 10"},
        {"{'policy':{'concurrencyKey':''},'steps':[" STEP("") "]}",
         "invalid_field - policy.concurrencyKey: has 0 bytes; give a name of 1 to 64"},
        {"{'policy':{'concurrencyKey':'k','overlap':'wait'},'steps':[" STEP("") "]}",
         "invalid_field - policy.overlap: expected one of queue, skip, cancel, got \"wait\""},
        {"{'steps':[" STEP(",'concurrencyKey':'x{{item}}'") "]}",
         "invalid_field a concurrencyKey: takes no template: give a name (a recipe may put an "
         "input there)"},
        {"{'steps':[{'stepId':'a','wait':{'forMs':1},'concurrencyKey':'k'}]}",
         "invalid_field a concurrencyKey: is for the work of agents, and no agent does this step"},
    };
    struct bench *b = *state;
    add_house(b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(read_json(b, cases[i][0]), BT_INVALID);
        assert_string_equal(problem_of(b, 0), cases[i][1]);
    }
    assert_int_equal(read_json(b, "{'policy':{'overlap':'skip'},'steps':[" STEP("") "]}"), BT_OK);
    assert_string_equal(problem_of(b, 0), "style - policy.overlap: means nothing without "
                                          "policy.concurrencyKey: give one, or leave overlap out");
}

static void they_stand_in_the_policy_and_the_message_says_so(void **state)
{
    struct bench *b = *state;
    add_house(b);
    assert_int_equal(read_json(b, "{'priority':9,'concurrencyKey':'k','steps':[" STEP("") "]}"),
                     BT_INVALID);
    assert_non_null(strstr(problem_of(b, 0), "did you mean `policy.priority`?"));
    assert_non_null(strstr(problem_of(b, 1), "did you mean `policy.concurrencyKey`?"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(the_plans_own_key_is_apart_from_those_of_its_steps),
        RULE(without_them_a_plan_has_the_middle_priority_and_no_key),
        RULE(a_body_has_the_keys_of_its_steps_and_the_priority_of_the_plan),
        RULE(a_plan_has_as_many_keys_as_the_limit_and_no_more),
        RULE(wrong_ones_are_told_with_what_would_be_right),
        RULE(they_stand_in_the_policy_and_the_message_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
