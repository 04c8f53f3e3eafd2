/* session.say: what words are taken for, beside what test_say has; and what is too long. */
#include <stdio.h>
#include <string.h>

#include "supervisor/conversation/conversation.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'},"                     \
    "{'id':'converse','description':'C'},{'id':'summarize','description':'S'},"                    \
    "{'id':'synthesize','description':'Y'}]"
#define SYNTHESIS "'policy':{'synthesis':{'strategy':'agent','agentId':'boss'}}"

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

static void is_said(struct house *h, const char *text, const char *wants)
{
    house_says(h, house_ok(h, "session.say", "'sessionId':'s','text':'%s'", text), wants);
}

static void go_ahead_approves_what_waits_and_resumes_what_is_paused(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                              "a", ",'requiresApproval':true") "]}");
    is_said(h, "go ahead", "action=approve");
    assert_non_null(house_work(h, "calc", "a"));
    is_said(h, "resume", "reply=~The plan is not paused.");
    is_said(h, "pause", "action=pause; reply=~is paused");
    is_said(h, "pause", "reply=~The plan is paused already.");
    is_said(h, "go ahead", "action=resume; reply=The plan goes on.");
    house_close(h);
}

/* Also while its result is judged, and before the next attempt: people see one step under way. */
static void a_step_is_under_way_until_it_is_over(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_join_as(h, "boss", 1, "'skills':[{'id':'verify','description':'V'}]", "");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','grants':['boss'],'steps':[" STEP(
                              "a", ",'verifyWith':'boss','maxRetries':1") "]}");
    is_said(h, "status", "reply=~Step 1 is under way");
    house_done(h, "calc", "'result':{'text':'5'}");
    is_said(h, "status", "reply=~Step 1 is under way"); /* boss judges */
    house_done(h, "boss", "'result':{'text':'No, six.'}");
    is_said(h, "status", "reply=~Step 1 is under way"); /* a pause */
    house_wait(h, 2000);
    (void)house_work(h, "calc", NULL);
    h->agents[0].deaf = true;
    house_hang_up(h, "calc", true);
    is_said(h, "status", "reply=~Step 1 is under way"); /* its reply is lost */
    house_close(h);
}

static void where_a_plan_stands_while_an_agent_plans_or_answers(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(h, "'sessionId':'s','goal':'count all','planner':'agent:boss'," SYNTHESIS);
    is_said(h, "status", "reply=~is being made.");
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t'},"
               "{'stepId':'b','agentId':'calc','skill':'do','task':'t'}]}}");
    is_said(h, "status", "reply=~: 0 of 2 steps are over.");
    house_done(h, "calc", "'result':{'text':'5'}");
    is_said(h, "status", "reply=~: 1 of 2 steps are over.");
    house_done(h, "calc", "'result':{'text':'6'}");
    is_said(h, "status", "reply=~its answer is being written.");
    house_done(h, "boss", "'result':{'text':'Five and six.'}");
    is_said(h, "status", "reply=~is over (completed)");
    house_close(h);
}

static void words_after_a_plan_may_be_about_it(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    /* without a plan before them they are a goal */
    is_said(h, "so much for that one", "action=new_plan");
    assert_null(house_work(h, "boss", NULL));
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'stop'");
    house_wait(h, 2000);
    (void)house_submit(h, "'sessionId':'t','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'5'}");
    (void)house_ok(h, "session.say", "'sessionId':'t','text':'so much for that one'");
    house_says(h, house_work(h, "boss", NULL), "skill=converse; parameters.text=~so much");
    house_done(h, "boss", "'result':{'text':'Indeed.'}");
    house_says(h, house_ok(h, "session.get", "'sessionId':'t'"), "messages.1.text=Indeed.");
    house_close(h);
}

static void a_model_names_the_step_to_go_to(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "," STEP(
                             "b", "") "," STEP("c", "") "," STEP("d", "") "]}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'let us get on with the rest'");
    house_done(h, "boss",
               "'result':{'data':{'action':'skip_to_step','targetStepNumber':3,'reasoning':'r'}}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.0.status=skipped; steps.1.status=skipped; counts.skipped=2");
    house_close(h);
}

static void words_that_mean_nothing_are_answered_with_what_can_be_said(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    is_said(h, "blah blah blah", "reply=~You can say: status, skip step N");
    is_said(h, "what is it doing?", "reply=~You can say: status, skip step N");
    is_said(h, "new plan: add 1 and 2", "reply=~A plan is open in this session");
    house_close(h);
}

/* The text of the answer of a plan whose result has n letters, after it ended. */
static const char *answer_of(struct house *h, size_t n)
{
    static char text[SESSION_ANSWER_MAX + 16];

    memset(text, 'x', n);
    text[n] = 0;
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'%s'}", text);
    return house_get(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages.2.text");
}

static void the_answer_of_a_plan_is_cut_to_what_a_message_holds(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    assert_int_equal(strlen(answer_of(h, SESSION_ANSWER_MAX)), SESSION_ANSWER_MAX);
    house_close(h);
    h = house_open();
    house_join(h, "calc", 1);
    assert_int_equal(strlen(answer_of(h, SESSION_ANSWER_MAX + 1)), SESSION_ANSWER_MAX);
    house_close(h);
}

enum { PROBLEMS_TOLD = 5 };

/* A plan in words that has n problems. */
static const char *reply_with_problems(struct house *h, uint32_t n)
{
    struct buf fields;
    const char *answer;

    buf_init(&fields, 65536);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&fields, "%s'x%u':1", i > 0 ? "," : "", i);
    }
    answer =
        house_ok(h, "session.say",
                 "'sessionId':'p','text':'new plan: do it','planner':'agent:boss','policy':{%s}",
                 buf_cstr(&fields));
    buf_done(&fields);
    return house_get(h, answer, "reply");
}

static void every_problem_of_a_plan_is_said_or_counted(void **state)
{
    struct house *h = open_with_boss();
    const char *reply = reply_with_problems(h, 1);

    (void)state;
    assert_non_null(strstr(reply, "No plan could be made: "));
    assert_null(strstr(reply, "\n- "));
    reply = reply_with_problems(h, PROBLEMS_TOLD);
    assert_non_null(strstr(reply, "x4"));
    assert_null(strstr(reply, "more"));
    reply = reply_with_problems(h, PROBLEMS_TOLD + 2);
    assert_non_null(strstr(reply, "x4"));
    assert_null(strstr(reply, "x5"));
    assert_non_null(strstr(reply, "\n- and 2 more"));
    house_close(h);
}

static void one_summary_is_asked_for_at_a_time(void **state)
{
    struct house *h = open_with_boss();
    const char *work = NULL;

    (void)state;
    for (int i = 0; i < 40 && work == NULL; i++) {
        is_said(h, "status", "action=conversation_only");
        work = house_work(h, "boss", NULL);
    }
    house_says(h, work, "skill=summarize");
    for (int i = 0; i < 20; i++) {
        is_said(h, "status", "action=conversation_only");
    }
    house_done(h, "boss", "'result':{'text':'They asked.'}");
    assert_null(house_lane(h, "boss", NULL));
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "summary=They asked.");
    is_said(h, "status", "action=conversation_only");
    house_says(h, house_work(h, "boss", NULL),
               "skill=summarize; parameters.text=~What was said before, in short: They asked.");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(go_ahead_approves_what_waits_and_resumes_what_is_paused),
        cmocka_unit_test(where_a_plan_stands_while_an_agent_plans_or_answers),
        cmocka_unit_test(a_step_is_under_way_until_it_is_over),
        cmocka_unit_test(words_after_a_plan_may_be_about_it),
        cmocka_unit_test(a_model_names_the_step_to_go_to),
        cmocka_unit_test(words_that_mean_nothing_are_answered_with_what_can_be_said),
        cmocka_unit_test(the_answer_of_a_plan_is_cut_to_what_a_message_holds),
        cmocka_unit_test(every_problem_of_a_plan_is_said_or_counted),
        cmocka_unit_test(one_summary_is_asked_for_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
