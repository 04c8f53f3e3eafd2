/* session.say: what a person says, what it leads to, and what is said back. */
#include <stdio.h>
#include <string.h>

#include "supervisor/query/session_view.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define CONVERSE "'skills':[{'id':'do','description':'D'},{'id':'converse','description':'C'}]"

/* Says it in session s. */
static const char *say(struct house *h, const char *text)
{
    return house_ok(h, "session.say", "'sessionId':'s','text':'%s'", text);
}

static void is_said(struct house *h, const char *text, const char *wants)
{
    house_says(h, say(h, text), wants);
}

static const char *open_four(struct house *h)
{
    return house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "," STEP(
                               "b", "") "," STEP("c", "") "," STEP("d", "") "]}");
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* ---- without a plan ---- */

static void a_session_without_a_plan_says_so(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    is_said(h, "status", "action=conversation_only; planId=-; reply=~say what is to be done");
    house_close(h);
}

static void words_need_a_text_and_a_session(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_refused(h, "INVALID", "sessionId: expected 1 to 64", "session.say",
                  "'sessionId':'','text':'x'");
    house_refused(h, "INVALID", "sessionId: expected 1 to 64", "session.say",
                  "'sessionId':'a\\u0001','text':'x'");
    house_refused(h, "INVALID", "sessionId: expected 1 to 64", "session.say",
                  "'sessionId':'a\\u007f','text':'x'");
    house_refused(h, "INVALID", "sessionId", "session.say", "'text':'x'");
    house_refused(h, "INVALID", "text", "session.say", "'sessionId':'s'");
    house_refused(h, "INVALID", "text: expected what is to be said", "session.say",
                  "'sessionId':'s','text':' \\t\\n'");
    house_refused(h, "INVALID", "without control characters", "session.say",
                  "'sessionId':'s','text':'a\\u0007'");
    house_refused(h, "INVALID", "without control characters", "session.say",
                  "'sessionId':'s','text':'a\\u001f'");
    house_refused(h, "INVALID", "reviewId: expected", "session.say",
                  "'sessionId':'s','text':'yes','reviewId':'x'");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'status\\n\\t\\r'");
    house_close(h);
}

static void a_message_with_a_key_is_taken_once(void **state)
{
    struct house *h = house_open();
    const char *first;

    (void)state;
    first = house_ok(h, "session.say", "'sessionId':'s','text':'status','clientKey':'k'");
    house_says(h, house_ok(h, "session.say", "'sessionId':'s','text':'status','clientKey':'k'"),
               house_text(h,
                          "turnId=%s; existing=true; action=conversation_only; "
                          "reply=~No plan is open",
                          house_get(h, first, "turnId")));
    house_refused(h, "CONFLICT", "clientKey 'k' was used for another message", "session.say",
                  "'sessionId':'s','text':'stop','clientKey':'k'");
    house_refused(h, "CONFLICT", "clientKey 'k'", "session.say",
                  "'sessionId':'s','text':'status','clientKey':'k','planner':'llm'");
    house_refused(h, "CONFLICT", "clientKey 'k'", "session.say",
                  "'sessionId':'s','text':'status','clientKey':'k','policy':{'maxRetries':1}");
    house_says(h, house_ok(h, "session.say", "'sessionId':'t','text':'status','clientKey':'k'"),
               "existing=-"); /* another session */
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "messagesTotal=2");
    house_close(h);
}

static void a_message_becomes_a_plan_whose_end_answers_it(void **state)
{
    struct house *h = house_open();
    const char *answer;
    const char *id;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan',"
                  "'description':'P'}]",
                  "");
    answer = house_ok(h, "session.say",
                      "'sessionId':'s','text':'add two numbers','planner':'agent:calc'");
    house_says(h, answer, "action=new_plan; existing=-; planId=*");
    id = house_get(h, answer, "planId");
    house_says(h, view(h, id), "query=add two numbers; sessionId=s; phase=planning");
    is_said(h, "status", "reply=The plan \"add two numbers\" is being made.");
    is_said(h, "skip step 1", "reply=~it has no steps yet.");
    house_close(h);
}

static void a_new_plan_needs_words(void **state)
{
    struct house *h = house_open();

    (void)state;
    is_said(h, "new plan:", "action=conversation_only; reply=~Say what the new plan is for");
    house_join(h, "calc", 1);
    (void)open_four(h);
    is_said(h, "new plan: something",
            "action=conversation_only; reply=~A plan is open in this session");
    house_close(h);
}

/* ---- about the open plan ---- */

static void where_a_plan_stands_is_said(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 2);
    id = house_submit(
        h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
               "b", ",'dependsOn':[]") "," STEP("c", ",'dependsOn':['a','b']") "]}");
    is_said(
        h, "status",
        "reply=The plan \"add\": 0 of 3 steps are over. Step 1 is under way: \"do a\". Step 2 is "
        "under way: \"do b\".");
    house_done(h, "calc", "'result':{'text':'1'}");
    is_said(h, "how far are we",
            "reply=The plan \"add\": 1 of 3 steps are over. Step 2 is under way: \"do b\".");
    is_said(h, "pause", "action=pause; reply=~what is under way is brought to its end");
    house_done(h, "calc", "'result':{'text':'2'}");
    is_said(h, "status", "reply=The plan \"add\" is paused (say resume): 2 of 3 steps are over.");
    is_said(h, "pause", "action=conversation_only; reply=~The plan is paused already. The plan");
    is_said(h, "resume", "action=resume; reply=The plan goes on.");
    is_said(h, "resume", "action=conversation_only; reply=~The plan is not paused.");
    h->agents[0].silent = true;
    house_done(h, "calc", "'result':{'text':'3'}");
    house_says(h, view(h, id), "status=completed");
    is_said(h, "status",
            "reply=No plan is open in this session. The last one, \"add\", is over (completed).");
    house_close(h);
}

static void steps_are_skipped_in_words(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 2);
    id = open_four(h);
    is_said(h, "skip step 9",
            "action=conversation_only; reply=There is no step 9: the plan has 4.");
    is_said(h, "skip step 2", "action=skip_steps; reply=Step 2 is skipped.");
    house_says(h, view(h, id), "steps.1.status=skipped; revision=2");
    is_said(h, "skip step 2", "reply=Step 2 cannot be skipped: it is over (skipped).");
    is_said(h, "skip the last step", "reply=Step 4 is skipped.");
    is_said(h, "skip the next step", "reply=Step 3 is skipped.");
    is_said(h, "skip the next step", "reply=No step is left that has not begun.");
    is_said(h, "skip this step", "reply=Step 1 is skipped.");
    house_says(h, view(h, id), "steps.0.status=skipped");
    id = open_four(h);
    is_said(h, "skip steps 2 and 3", "reply=Steps 2 and 3 are skipped.");
    is_said(h, "skip to step 4", "action=skip_to_step; reply=~1 before it is skipped.");
    house_says(h, view(h, id), "steps.0.status=skipped; steps.3.status=pending");
    is_said(h, "stop", "action=stop; reply=The plan is stopped.");
    house_close(h);
}

static void a_plan_is_stopped_once(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)open_four(h);
    assert_non_null(house_work(h, "calc", NULL));
    is_said(h, "stop", "action=stop; reply=~what is out is called back.");
    is_said(h, "stop", "action=conversation_only; reply=The plan is being stopped already.");
    is_said(h, "status", "reply=The plan \"add\" is being stopped.");
    house_close(h);
}

static void which_step_is_meant_is_asked(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 2);
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                              "a", ",'dependsOn':[]") "," STEP("b", ",'dependsOn':[]") "]}");
    is_said(h, "skip it", "reply=Which step do you mean? Say its number, 1 to 2.");
    house_close(h);
}

static void a_plan_that_waits_is_stopped_at_once(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','policy':{'signoff':true},"
                          "'steps':[" STEP("a", "") "]}");
    is_said(h, "status",
            "reply=The plan \"add\" has 1 steps and waits for your approval: say yes or no.");
    is_said(h, "skip step 1", "reply=~The plan has not begun: it waits for its sign-off.");
    is_said(h, "stop", "action=stop; reply=The plan is stopped.");
    house_close(h);
}

/* ---- decisions ---- */

static void yes_and_no_decide_what_waits(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','policy':{'signoff':true},"
                         "'steps':[" STEP("a", ",'requiresApproval':true") "," STEP(
                             "b", ",'requiresApproval':true,'onFailure':'continue'") "]}");
    is_said(h, "yes", "action=approve; reply=The plan is approved and begins.");
    is_said(h, "status", "reply=~Step 1 \"do a\" waits for your approval: say yes or no.");
    is_said(h, "answer: maybe",
            "action=conversation_only; reply=What waits for you takes yes or no.");
    is_said(h, "approve step 2", "reply=Step 2 does not wait for you.");
    is_said(h, "yes", "action=approve; reply=Step 1 is approved.");
    is_said(h, "yes", "action=conversation_only; reply=~Nothing waits for an answer. The plan");
    house_done(h, "calc", "'result':{'text':'1'}");
    is_said(h, "no, it is late", "action=reject; reply=Step 2 is refused.");
    house_says(h, view(h, id),
               "status=completed; steps.1.status=failed; steps.1.error=~it is late");
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','policy':{'signoff':true},"
                         "'steps':[" STEP("a", "") "]}");
    is_said(h, "no", "action=reject; reply=The plan is refused.");
    house_says(h, view(h, id), "status=cancelled");
    house_close(h);
}

static void of_several_reviews_one_is_named(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 2);
    id = house_submit(
        h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
               "a",
               ",'dependsOn':[],'requiresApproval':true") "," STEP("b",
                                                                   ",'dependsOn':[],'"
                                                                   "requiresApproval':true") "]}");
    is_said(h, "yes", "action=conversation_only; reply=~More than one step waits for you");
    is_said(h, "approve step 2", "reply=Step 2 is approved.");
    house_says(h, view(h, id), "steps.0.status=waiting; steps.1.status=in_progress");
    house_close(h);
}

static void a_decision_is_of_the_review_that_was_shown(void **state)
{
    struct house *h = house_open();
    const char *first;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h,
                       "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                           "a", ",'requiresApproval':true,'onFailure':'ask','maxRetries':0") "]}");
    first = house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'yes','reviewId':'%s'", first);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    is_said(h, "status", "reply=~has failed: say yes to try it once more, skip, or no");
    house_says(h, house_ok(h, "session.say", "'sessionId':'s','text':'yes','reviewId':'%s'", first),
               "action=conversation_only; reply=~By now something else waits for you");
    house_says(h,
               house_ok(h, "session.say", "'sessionId':'s','text':'approve step 1','reviewId':'%s'",
                        first),
               "reply=~By now step 1 waits for something else");
    is_said(h, "yes", "action=approve; reply=Step 1 is tried once more.");
    house_close(h);
}

static void words_are_the_answer_where_words_are_wanted(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'ask','steps':[{'stepId':'q',"
                         "'type':'human_review','task':'Which day?'}," STEP("a", "") "]}");
    is_said(h, "status", "reply=~Step 1 \"Which day?\" is yours to do");
    is_said(h, "on monday", "action=answer; reply=Step 1 is done: your words are its result.");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "steps.0.result.text=on monday");
    house_answer(h, "calc", "a",
                 "'outcome':'needs_input','need':{'kind':'input','prompt':'How many?'}");
    is_said(h, "status", "reply=~Step 2 \"How many?\" asks you: your next message is the answer.");
    is_said(h, "no", "action=answer; reply=Step 2 goes on with your answer.");
    house_says(h, house_work(h, "calc", "a"), "attempt=2; feedback=~no");
    house_close(h);
}

/* ---- with a model ---- */

static void a_model_tells_what_is_meant(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *turn;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    id = open_four(h);
    turn = say(h, "perhaps leave away what comes after this");
    house_says(h, turn, "action=-; reply=-");
    house_says(h, house_work(h, "calc", "converse"),
               "skill=converse; purpose=converse; parameters.text=~perhaps leave; "
               "parameters.plan.steps.#=4; parameters.plan.goal=add");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'skip_steps',"
                 "'stepsToSkip':[2,3.0],'reasoning':'as said'}}");
    house_says(h, view(h, id), "steps.1.status=skipped; steps.2.status=skipped");
    house_says(h, house_event(h, "turn_end"),
               house_text(h, "turnId=%s; action=skip_steps; message=Steps 2 and 3 are skipped.",
                          house_get(h, turn, "turnId")));
    house_says(h, house_event(h, "plan_modified"),
               "reasoning=perhaps leave away what comes after this (the model: as said)");
    (void)say(h, "what is this about");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'conversation_only',"
                 "'reply':'It adds.'}}");
    house_says(h, house_event(h, "turn_end"), "action=conversation_only; message=It adds.");
    (void)say(h, "what is this about");
    house_answer(h, "calc", "converse", "'outcome':'completed','result':{'text':'It adds much.'}");
    house_says(h, house_event(h, "turn_end"), "message=It adds much.");
    (void)say(h, "make it so");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'explode'}}");
    house_says(
        h, house_event(h, "turn_end"),
        "message=~Nothing was changed: the model wanted explode, and there is no such action.");
    (void)say(h, "make it so");
    house_answer(
        h, "calc", "converse",
        "'outcome':'completed','result':{'data':{'action':'skip_steps','stepsToSkip':[]}}");
    house_says(h, house_event(h, "turn_end"), "message=The model named no steps to skip.");
    (void)say(h, "make it so");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'new_plan','goal':'x'}}");
    house_says(h, house_event(h, "turn_end"), "message=~A plan is open in this session");
    (void)say(h, "make it so");
    house_answer(h, "calc", "converse",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'no key','retryable':false}");
    house_says(h, house_event(h, "turn_end"),
               "message=~The model did not tell what you meant: no key");
    (void)say(h, "just asking: would it stop");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'stop'}}");
    house_says(h, house_event(h, "turn_end"),
               "message=~You were only asking, so nothing was changed");
    house_says(h, view(h, id), "status=running");
    house_close(h);
}

static void what_was_meant_is_not_done_to_another_plan(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    id = open_four(h);
    (void)say(h, "i have had enough of this thing");
    assert_non_null(house_work(h, "calc", "converse"));
    (void)house_ok(h, "plan.modify", "'planId':'%s','kind':'skip_steps','stepId':'b'", id);
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'skip_to_step',"
                 "'targetStepNumber':3}}");
    house_says(h, house_event(h, "turn_end"), "action=conversation_only");
    house_says(h, view(h, id), "steps.0.status=in_progress");
    house_close(h);
}

static void a_turn_survives_a_restart(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 2, CONVERSE, "");
    id = open_four(h);
    (void)say(h, "leave away what comes after");
    house_restart(h);
    house_join_as(h, "calc", 2, CONVERSE, "");
    house_wait(h, 8000);
    house_answer(
        h, "calc", "converse",
        "'outcome':'completed','result':{'data':{'action':'skip_steps','stepsToSkip':[2]}}");
    house_says(h, view(h, id), "steps.1.status=skipped");
    house_says(h, house_event(h, "turn_end"), "message=Step 2 is skipped.");
    house_close(h);
}

static void old_messages_are_summed_up(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 2,
                  "'skills':[{'id':'do','description':'D'},{'id':'summarize','description':'S'}]",
                  "");
    for (int i = 0; i < SESSION_NEWEST / 2; i++) {
        (void)say(h, "status");
        assert_null(house_work(h, "calc", NULL));
    }
    (void)say(h, "status");
    house_says(h, house_work(h, "calc", NULL),
               "skill=summarize; purpose=*; parameters.text=~status");
    house_done(h, "calc", "'result':{'text':'They asked for the status.'}");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h, "summary=They asked for the status.; summarized=%d",
                          SESSION_NEWEST + 2 - 10));
    house_close(h);
}

/* n steps side by side; `more` is a member of each. */
static void open_beside(struct house *h, int n, const char *session, const char *more)
{
    char steps[2000];
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(steps + at, sizeof steps - at,
                               "%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'do it',"
                               "'dependsOn':[]%s}",
                               i > 0 ? "," : "", i, more);
    }
    (void)house_submit(
        h, "'sessionId':'%s','plan':{'goal':'g','steps':[%s]},'policy':{'maxConcurrency':9}",
        session, steps);
}

static void a_status_names_five_steps_and_counts_the_others(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 64);
    open_beside(h, 5, "five", "");
    open_beside(h, 6, "six", "");
    open_beside(h, 5, "five waiting", ",'requiresApproval':true");
    open_beside(h, 6, "six waiting", ",'requiresApproval':true");
    house_says(h, house_ok(h, "session.say", "'sessionId':'five','text':'what is the status?'"),
               "reply=~Step 5 is under way: \"do it\".");
    assert_null(strstr(house_ok(h, "session.say", "'sessionId':'five','text':'status'"), "more"));
    house_says(h, house_ok(h, "session.say", "'sessionId':'six','text':'what is the status?'"),
               "reply=~Step 5 is under way: \"do it\". 1 more steps are under way.");
    house_says(
        h, house_ok(h, "session.say", "'sessionId':'five waiting','text':'what is the status?'"),
        "reply=~ Step 5 \"do it\"");
    assert_null(
        strstr(house_ok(h, "session.say", "'sessionId':'five waiting','text':'status'"), "more"));
    house_says(h,
               house_ok(h, "session.say", "'sessionId':'six waiting','text':'what is the status?'"),
               "reply=~1 more steps wait for you.");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_without_a_plan_says_so),
        cmocka_unit_test(words_need_a_text_and_a_session),
        cmocka_unit_test(a_message_with_a_key_is_taken_once),
        cmocka_unit_test(a_message_becomes_a_plan_whose_end_answers_it),
        cmocka_unit_test(a_new_plan_needs_words),
        cmocka_unit_test(where_a_plan_stands_is_said),
        cmocka_unit_test(steps_are_skipped_in_words),
        cmocka_unit_test(a_plan_is_stopped_once),
        cmocka_unit_test(which_step_is_meant_is_asked),
        cmocka_unit_test(a_plan_that_waits_is_stopped_at_once),
        cmocka_unit_test(yes_and_no_decide_what_waits),
        cmocka_unit_test(of_several_reviews_one_is_named),
        cmocka_unit_test(a_decision_is_of_the_review_that_was_shown),
        cmocka_unit_test(words_are_the_answer_where_words_are_wanted),
        cmocka_unit_test(a_model_tells_what_is_meant),
        cmocka_unit_test(what_was_meant_is_not_done_to_another_plan),
        cmocka_unit_test(a_turn_survives_a_restart),
        cmocka_unit_test(old_messages_are_summed_up),
        cmocka_unit_test(a_status_names_five_steps_and_counts_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
