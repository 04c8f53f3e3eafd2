/* Turns: how they end, for whom they act, and what is said about a plan in each state. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define CONVERSE "'skills':[{'id':'do','description':'D'},{'id':'converse','description':'C'}]"
#define PLANNER "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]"

static const char *say(struct house *h, const char *text)
{
    return house_ok(h, "session.say", "'sessionId':'s','text':'%s'", text);
}

static void ends(struct house *h, const char *wants)
{
    house_says(h, house_event(h, "turn_end"), wants);
}

/* A plan out of words, made by boss. */
static void planned(struct house *h, const char *steps, const char *policy)
{
    (void)house_ok(h, "session.say",
                   "'sessionId':'s','text':'new plan: add them','planner':'agent:boss'%s", policy);
    house_done(h, "boss", "'result':{'data':{'steps':[%s]}}", steps);
}

static void the_end_of_a_plan_is_said_with_what_was_done(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_join_as(h, "boss", 1, PLANNER, "");
    planned(h, STEP("a", "") "," STEP("b", ",'maxRetries':0"), "");
    house_done(h, "calc", "'result':{'text':'one'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    ends(h, "message=~The plan failed: ");
    ends(h, "message=~no luck");
    ends(h, "message=~one"); /* what was done before */
    planned(h, STEP("a", ",'maxRetries':0"), "");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    ends(h, "message=~The plan failed: ");
    planned(h, STEP("a", ""), "");
    house_done(h, "calc", "'result':{'text':'eleven'}");
    ends(h, "message=eleven");
    planned(h, STEP("a", ""), "");
    (void)say(h, "stop");
    house_wait(h, 3000);
    assert_null(strstr(house_get(h, house_event(h, "turn_end"), "message"), "failed"));
    house_close(h);
}

static void a_model_acts_for_who_spoke(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    (void)house_as(h, "submitter");
    (void)house_submit(
        h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    (void)say(h, "perhaps leave away what comes after this");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'skip_steps',"
                 "'stepsToSkip':[2]}}");
    house_says(h, house_event(h, "plan_modified"), "by.id=submitter");
    (void)house_as(h, NULL);
    house_close(h);
}

static void a_goal_on_several_lines_is_quoted_on_one(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(
        h, "'sessionId':'s','plan':{'goal':'one\\ntwo\\tthree','steps':[" STEP("a", "") "]}");
    house_says(h, say(h, "status"), "reply=~\"one two three\"");
    house_close(h);
}

static void a_step_between_attempts_is_under_way(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]},"
                                                                                         "'policy':"
                                                                                         "{'backoff"
                                                                                         "':{'init"
                                                                                         "ialMs':"
                                                                                         "60000}}");
    house_failed(h, "calc", "TIMEOUT", true);
    house_says(h, say(h, "status"), "reply=~Step 1 is under way");
    house_close(h);
}

static void numbers_without_a_plan_are_words(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 1, CONVERSE, "");
    house_says(h, say(h, "yes"), "action=conversation_only");
    house_says(h, say(h, "skip step 2"), "action=conversation_only");
    house_says(h, say(h, "skip to step 2"), "action=conversation_only");
    house_says(h, say(h, "pause"), "action=conversation_only");
    house_says(h, say(h, "resume"), "action=conversation_only");
    house_says(h, say(h, "no"), "action=conversation_only");
    assert_null(house_work(h, "calc", NULL));
    house_close(h);
}

static void without_an_agent_that_sums_up_nothing_is_summed_up(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 1, CONVERSE, "");
    for (int i = 0; i < 30; i++) {
        (void)say(h, "status");
    }
    assert_null(house_work(h, "calc", NULL));
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "summary=-; messagesTotal=60");
    house_close(h);
}

static void a_summary_begins_at_its_number_of_messages_and_not_before(void **state)
{
    struct house *h = house_open();
    int turns = 0;

    (void)state;
    house_join_as(h, "calc", 1, "'skills':[{'id':'summarize','description':'S'}]", "");
    while (house_work(h, "calc", NULL) == NULL) {
        (void)say(h, "status");
        assert_true(++turns < 60);
    }
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h, "messagesTotal=%d", 2 * turns));
    assert_int_equal(turns, 11); /* 21 messages, and the answer to the last */
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    for (int i = 0; i < 2; i++) { /* not before 6 messages more */
        (void)say(h, "status");
        assert_null(house_work(h, "calc", NULL));
    }
    (void)say(h, "status");
    assert_non_null(house_work(h, "calc", NULL));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_plan_is_said_with_what_was_done),
        cmocka_unit_test(a_model_acts_for_who_spoke),
        cmocka_unit_test(a_goal_on_several_lines_is_quoted_on_one),
        cmocka_unit_test(a_step_between_attempts_is_under_way),
        cmocka_unit_test(numbers_without_a_plan_are_words),
        cmocka_unit_test(without_an_agent_that_sums_up_nothing_is_summed_up),
        cmocka_unit_test(a_summary_begins_at_its_number_of_messages_and_not_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
