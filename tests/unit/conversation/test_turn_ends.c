/* Turns over restarts, for whom a model decides, and how much of an answer a session keeps. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

enum { ANSWER_MAX = 65000, LOST = 17 };

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define CONVERSE "'skills':[{'id':'do','description':'D'},{'id':'converse','description':'C'}]"
#define PLANNER "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]"
#define CUT "\n\n[cut: baton result gives the whole answer]"

/* ---- for whom ---- */

static void a_model_decides_for_who_spoke(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                              "a", ",'requiresApproval':true") "]}");
    (void)house_as(h, "admin");
    (void)house_ok(h, "session.say",
                   "'sessionId':'s','text':'be so good and arrange it',"
                   "'by':{'user':'ann','host':'desk','via':'chat'}");
    (void)house_as(h, NULL);
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'approve'}}");
    house_says(h, house_event(h, "review_decided"),
               "decision=approve; by.user=ann; by.host=desk; by.via=chat; "
               "by.address=127.0.0.1:4711; by.id=admin");
    house_close(h);
}

static void a_model_decides_nothing_for_who_may_not(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    (void)house_as(h, "submitter");
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                             "a", ",'requiresApproval':true") "]}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'approve'}}");
    house_says(
        h, house_event(h, "turn_end"),
        "message=What waits is for a reviewer to decide: this credential has not that role.");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.0.status=waiting");
    (void)house_as(h, NULL);
    house_close(h);
}

static void a_plan_that_a_model_begins_has_the_policy_and_planner_of_the_message(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    house_join_as(h, "boss", 1, PLANNER, "");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'old','steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'x'}");
    (void)house_ok(h, "session.say",
                   "'sessionId':'s','text':'be so good and arrange it','planner':'agent:boss',"
                   "'policy':{'budget':{'tokens':77}}");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'new_plan','goal':'new'}}");
    assert_non_null(house_work(h, "boss", NULL));
    house_done(h, "boss", "'result':{'data':{'steps':[" STEP("z", "") "]}}");
    id = house_get(h, house_ok(h, "plan.list", "'sessionId':'s'"), "plans.0.planId");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "query=new; budget.tokens=77; steps.0.stepId=z");
    house_close(h);
}

/* ---- which agent is asked ---- */

static void only_an_agent_that_is_there_and_may_work_is_asked(void **state)
{
    static const char *const cards[] = {CONVERSE, CONVERSE, CONVERSE,
                                        "'skills':[{'id':'do','description':'D'}]"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct house *h = house_open();
        const struct house_agent *a;
        house_join(h, "calc", 1);
        a = house_join_as(h, "boss", 1, cards[i], "");
        (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
        if (i == 1) {
            (void)house_ok(h, "agents.drain", "'agentId':'boss'");
        } else if (i == 2) {
            (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                           (unsigned long long)a->epoch);
        }
        house_says(h,
                   house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'"),
                   i == 0 ? "reply=-" : "reply=~You can say: status");
        assert_int_equal(house_work(h, "boss", NULL) != NULL, i == 0);
        house_close(h);
    }
}

static void the_orchestrator_is_asked_before_others(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct house *h = house_open();
        house_join_as(h, "calc", 2, CONVERSE, "");
        house_join_as(h, "orchestrator", 1, CONVERSE, "");
        (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
        if (i == 1) {
            (void)house_ok(h, "agents.drain", "'agentId':'orchestrator'");
        }
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
        assert_non_null(house_work(h, i == 0 ? "orchestrator" : "calc", "converse"));
        house_close(h);
    }
}

/* ---- a question of a model that came too late ---- */

static void what_was_meant_of_another_review_decides_nothing(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                             "a", ",'requiresApproval':true") "," STEP("b", ",'requiresApproval':"
                                                                            "true") "]}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    assert_non_null(house_work(h, "calc", "converse"));
    (void)house_ok(h, "review.decide", "'reviewId':'%s/a/r1','decision':'approve'", id);
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'x'}");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'approve'}}");
    house_has(h, house_event(h, "turn_end"), "message",
              "By now something else waits for you; nothing was decided. The plan");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.1.status=waiting");
    house_close(h);
}

static void what_was_meant_of_an_older_plan_changes_nothing(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'one','steps':[" STEP("a", "") "]}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    assert_non_null(house_work(h, "calc", "converse"));
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'x'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'two','steps':[" STEP("a", "") "]}");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'stop'}}");
    house_is(h, house_event(h, "turn_end"), "message",
             "By now another plan is open; nothing was changed. The plan \"two\": 0 of 1 steps are "
             "over. Step 1 is under way: \"do a\".");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=running; cancelling=-");
    house_close(h);
}

/* ---- after a restart ---- */

static void quarantine(struct house *h, const char *id)
{
    struct journal_plan row;
    struct uuid plan;
    struct bt_error err;

    assert_true(uuid_parse(str_from(id), &plan));
    assert_int_equal(journal_plan_by_id(h->journal, plan, &row, &err), BT_OK);
    assert_int_equal(journal_quarantine(h->journal, row.ix, STR_LIT("broken"), &err), BT_OK);
    assert_int_equal(journal_commit(h->journal, &err), BT_OK);
}

/* More than a list has room for at first. */
static void turns_whose_plans_are_gone_are_ended_in_words(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "boss", 1, PLANNER, "");
    for (int i = 0; i < LOST; i++) {
        const char *said =
            house_ok(h, "session.say",
                     "'sessionId':'s%d','text':'new plan: add them','planner':'agent:boss'", i);
        quarantine(h, house_get(h, said, "planId"));
    }
    house_restart(h);
    for (int i = 0; i < LOST; i++) {
        house_says(h, house_ok(h, "session.get", "'sessionId':'s%d'", i),
                   "messagesTotal=2; openPlanId=-; messages.1.role=assistant; "
                   "messages.1.text=This could not be brought to its end: its plan was put aside "
                   "after a restart (quarantined).");
    }
    house_says(h, house_event(h, "turn_end"), "action=new_plan; turnPlanId=*");
    house_restart(h); /* it is said once */
    house_says(h, house_ok(h, "session.get", "'sessionId':'s0'"), "messagesTotal=2");
    house_close(h);
}

static void a_question_to_a_model_that_is_gone_is_ended_in_words(void **state)
{
    struct house *h = house_open();
    const char *job;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    job = house_get(h, house_work(h, "calc", "converse"), "planId");
    quarantine(h, job);
    house_restart(h);
    house_says(
        h, house_event(h, "turn_end"),
        "action=conversation_only; turnPlanId=-; message=This could not be brought to its end: "
        "the question to the model was put aside after a restart (quarantined).");
    house_close(h);
}

static void a_turn_whose_plan_goes_on_is_left_alone(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "boss", 1, PLANNER, "");
    (void)house_ok(h, "session.say",
                   "'sessionId':'s','text':'new plan: add them','planner':'agent:boss'");
    house_restart(h);
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "messagesTotal=1; openPlanId=*");
    house_close(h);
}

/* ---- how much is kept ---- */

static char *letters(size_t n)
{
    char *text = calloc(n + 1, 1);

    assert_non_null(text);
    memset(text, 'x', n);
    return text;
}

static void an_answer_of_the_limit_is_kept_whole_and_one_byte_more_is_cut(void **state)
{
    (void)state;
    for (size_t n = ANSWER_MAX; n <= ANSWER_MAX + 1; n++) {
        struct house *h = house_open();
        char *text = letters(n);
        const char *kept;
        house_join(h, "calc", 1);
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
        (void)house_submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP("a", "") "]}");
        house_done(h, "calc", "'result':{'text':'%s'}", text);
        kept = house_get(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages.2.text");
        assert_non_null(kept);
        assert_int_equal(strlen(kept), ANSWER_MAX);
        house_is(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages.2.truncated",
                 n == ANSWER_MAX ? NULL : "true");
        house_close(h);
        free(text);
    }
}

/* The first read of a plan's end is of its session, the second of the turn that waits for it. */
static void a_session_or_turn_that_cannot_be_read_costs_the_answer_and_no_more(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        struct house *h = house_open();
        const char *id;
        house_join_as(h, "calc", 2, CONVERSE, "");
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
        id = house_submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP("a", "") "]}");
        (void)house_work(h, "calc", NULL);
        house_fail_read(h, n);
        house_done(h, "calc", "'result':{'text':'five'}");
        assert_true(h->reads >= n && !h->dead);
        house_fail_read(h, 0);
        house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
        house_is(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages.2", NULL);
        house_close(h);
    }
}

/* What was not done stands at the end, and is kept. */
static void what_was_not_done_is_kept_when_an_answer_is_cut(void **state)
{
    struct house *h = house_open();
    char *text = letters(ANSWER_MAX);
    const char *kept;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                              "b", ",'maxRetries':0,'onFailure':'continue'") "]}");
    house_done(h, "calc", "'result':{'text':'%s'}", text);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    kept = house_get(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages.2.text");
    assert_non_null(kept);
    assert_true(strlen(kept) <= ANSWER_MAX && strlen(kept) > ANSWER_MAX - 8);
    assert_non_null(strstr(kept, CUT));
    assert_non_null(strstr(kept, "- Step 2 \"do b\" failed: no luck"));
    house_close(h);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_decides_for_who_spoke),
        cmocka_unit_test(a_model_decides_nothing_for_who_may_not),
        cmocka_unit_test(a_plan_that_a_model_begins_has_the_policy_and_planner_of_the_message),
        cmocka_unit_test(only_an_agent_that_is_there_and_may_work_is_asked),
        cmocka_unit_test(the_orchestrator_is_asked_before_others),
        cmocka_unit_test(what_was_meant_of_another_review_decides_nothing),
        cmocka_unit_test(what_was_meant_of_an_older_plan_changes_nothing),
        cmocka_unit_test(turns_whose_plans_are_gone_are_ended_in_words),
        cmocka_unit_test(a_question_to_a_model_that_is_gone_is_ended_in_words),
        cmocka_unit_test(a_turn_whose_plan_goes_on_is_left_alone),
        cmocka_unit_test(a_session_or_turn_that_cannot_be_read_costs_the_answer_and_no_more),
        cmocka_unit_test(an_answer_of_the_limit_is_kept_whole_and_one_byte_more_is_cut),
        cmocka_unit_test(what_was_not_done_is_kept_when_an_answer_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
