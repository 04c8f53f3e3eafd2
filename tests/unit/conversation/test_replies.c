/* What is said back, word for word, to each message about a plan and to each answer of a model. */
#include <stdio.h>
#include <string.h>

#include "supervisor/query/session_view.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define CONVERSE "'skills':[{'id':'do','description':'D'},{'id':'converse','description':'C'}]"

/* Says it in session s; the answer is exactly this. */
static void is_said(struct house *h, const char *text, const char *action, const char *reply)
{
    const char *answer = house_ok(h, "session.say", "'sessionId':'s','text':'%s'", text);

    house_is(h, answer, "action", action);
    house_is(h, answer, "reply", reply);
}

static void is_only_said(struct house *h, const char *text, const char *reply)
{
    is_said(h, text, "conversation_only", reply);
}

static const char *open_steps(struct house *h, const char *steps)
{
    return house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[%s]}", steps);
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* ---- where a plan stands ---- */

static void a_plan_that_runs_says_how_far_it_is(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)open_steps(h, STEP("a", "") "," STEP("b", "") "," STEP("c", ""));
    is_only_said(h, "status",
                 "The plan \"add\": 0 of 3 steps are over. Step 1 is under way: \"do a\".");
    house_done(h, "calc", "'result':{'text':'x'}");
    is_only_said(h, "status",
                 "The plan \"add\": 1 of 3 steps are over. Step 2 is under way: \"do b\".");
    is_said(h, "pause", "pause",
            "The plan is paused; what is under way is brought to its end. Say resume to go on.");
    is_only_said(h, "pause",
                 "The plan is paused already. The plan \"add\" is paused (say resume): 1 of 3 "
                 "steps are over. Step 2 is under way: \"do b\".");
    is_said(h, "resume", "resume", "The plan goes on.");
    is_only_said(h, "resume",
                 "The plan is not paused. The plan \"add\": 1 of 3 steps are over. Step 2 is under "
                 "way: \"do b\".");
    is_only_said(h, "perhaps it could sing",
                 "The plan \"add\": 1 of 3 steps are over. Step 2 is under way: \"do b\". You can "
                 "say: status, skip step N, skip to step N, pause, resume, stop, and yes or no "
                 "when something waits for you.");
    is_only_said(h, "new plan: multiply",
                 "A plan is open in this session; say stop first, then what is to be done. The "
                 "plan \"add\": 1 of 3 steps are over. Step 2 is under way: \"do b\".");
    is_only_said(h, "yes",
                 "Nothing waits for an answer. The plan \"add\": 1 of 3 steps are over. Step 2 is "
                 "under way: \"do b\".");
    house_close(h);
}

static void a_plan_whose_agent_is_busy_says_so(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, "'plan':{'goal':'other','steps':[" STEP("a", "") "]}");
    (void)open_steps(h, STEP("a", ""));
    is_only_said(h, "status",
                 "The plan \"add\": 0 of 1 steps are over. The next step waits for its agent.");
    is_said(h, "stop", "stop", "The plan is stopped.");
    is_only_said(h, "status",
                 "No plan is open in this session. The last one, \"add\", is over (cancelled).");
    house_close(h);
}

static void a_plan_that_is_stopped_says_what_is_called_back(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)open_steps(h, STEP("a", "") "," STEP("b", ",'requiresApproval':true,'dependsOn':[]"));
    is_said(h, "stop", "stop", "The plan is being stopped; what is out is called back.");
    is_only_said(h, "stop", "The plan is being stopped already.");
    is_only_said(h, "status", "The plan \"add\" is being stopped.");
    house_close(h);
}

static void a_plan_that_waits_for_its_sign_off_says_so(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "," STEP(
                             "b", "") "]},'policy':{'signoff':true}");
    is_only_said(h, "status",
                 "The plan \"add\" has 2 steps and waits for your approval: say yes or no.");
    is_only_said(h, "skip step 1",
                 "The plan has not begun: it waits for its sign-off. Say yes to let it run, then "
                 "its steps can be skipped; or no to refuse it, then say what is to be different.");
    is_said(h, "yes", "approve", "The plan is approved and begins.");
    (void)house_ok(h, "plan.modify",
                   "'planId':'%s','kind':'insert','steps':[{'stepId':'z','agentId':'calc','skill':"
                   "'do','task':'z'}]",
                   id);
    is_only_said(h, "status",
                 "The plan \"add\" was changed, has 3 steps and waits for your approval: say yes "
                 "or no.");
    is_said(h, "no, not that", "reject", "The plan is refused.");
    house_close(h);
}

static void a_plan_that_could_not_be_made_says_so(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_join_as(h, "boss", 1, "'skills':[{'id':'plan','description':'P'}]", "");
    (void)house_submit(h, "'sessionId':'s','goal':'add','planner':'agent:boss',"
                          "'policy':{'onInvalidPlan':'interrupt'}");
    is_only_said(h, "status", "The plan \"add\" is being made.");
    is_only_said(h, "skip step 1", "The plan is still being made; it has no steps yet.");
    house_done(h, "boss", "'result':{'data':{'impossible':'no'}}");
    is_only_said(h, "status",
                 "The plan \"add\" could not be made: say yes to have it planned once more, or "
                 "no.");
    is_said(h, "yes", "approve", "The plan is made once more.");
    house_done(h, "boss", "'result':{'data':{'impossible':'no'}}");
    is_said(h, "no", "reject", "The plan is refused.");
    house_close(h);
}

static void a_plan_whose_answer_is_written_says_so(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'synthesize','description':'Y'}]",
                  "");
    (void)house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP(
                              "a", "") "]},'policy':{'synthesis':{'strategy':'agent','agentId':"
                                       "'calc'}}");
    house_done(h, "calc", "'result':{'text':'x'}");
    is_only_said(h, "status", "The plan \"add\" is done; its answer is being written.");
    house_close(h);
}

/* ---- what waits ---- */

static void each_kind_of_review_says_what_can_be_said(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)open_steps(h, STEP("a", ",'requiresApproval':true"));
    is_only_said(h, "status",
                 "The plan \"add\": 0 of 1 steps are over. Step 1 \"do a\" waits for your "
                 "approval: say yes or no.");
    is_said(h, "yes", "approve", "Step 1 is approved.");
    house_answer(h, "calc", "a",
                 "'outcome':'needs_approval','need':{'kind':'approval','prompt':'May I?'}");
    is_only_said(h, "status",
                 "The plan \"add\": 0 of 1 steps are over. Step 1 \"May I?\" waits for your "
                 "approval: say yes or no.");
    is_only_said(h, "answer: perhaps", "What waits for you takes yes or no.");
    is_said(h, "answer: yes", "approve", "Step 1 is approved.");
    house_done(h, "calc", "'result':{'text':'x'}");

    (void)open_steps(h, STEP("a", ",'maxRetries':0,'onFailure':'ask'"));
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    is_only_said(h, "status",
                 "The plan \"add\": 0 of 1 steps are over. Step 1 \"no luck\" has failed: say yes "
                 "to try it once more, skip, or no.");
    is_said(h, "yes", "approve", "Step 1 is tried once more.");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    is_said(h, "no", "reject", "Step 1 is refused.");

    (void)open_steps(h, STEP("a", ",'requiresApproval':true"));
    is_said(h, "skip this step", "skip_steps", "Step 1 is skipped.");
    house_close(h);
}

static void an_outcome_that_nobody_knows_is_asked_about(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)open_steps(h, STEP("a", ",'effects':'unsafe'"));
    (void)house_work(h, "calc", NULL);
    house_hang_up(h, "calc", true);
    house_wait(h, 10000);
    house_has(h, house_ok(h, "session.say", "'sessionId':'s','text':'status'"), "reply",
              " may have been done or not: say yes to run it again (it may take effect twice), "
              "skip, or no.");
    is_said(h, "yes", "approve", "Step 1 is run again.");
    house_close(h);
}

static void of_several_that_wait_one_must_be_named(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 3);
    (void)open_steps(
        h, STEP("a", ",'requiresApproval':true,'dependsOn':[]") "," STEP(
               "b", ",'requiresApproval':true,'dependsOn':[]") "," STEP("c", ",'dependsOn':[]"));
    is_only_said(h, "yes",
                 "More than one step waits for you; say \"approve step 2\", \"reject step 2\" or "
                 "\"step 2: ...\". The plan \"add\": 0 of 3 steps are over. Step 3 is under way: "
                 "\"do c\". Step 1 \"do a\" waits for your approval: say yes or no. Step 2 \"do "
                 "b\" waits for your approval: say yes or no.");
    is_only_said(h, "approve step 3", "Step 3 does not wait for you.");
    is_only_said(h, "approve step 9", "There is no step 9: the plan has 3.");
    is_only_said(h, "skip this step", "Which step do you mean? Say its number, 1 to 3.");
    is_said(h, "approve step 2", "approve", "Step 2 is approved.");
    is_said(h, "reject step 1", "reject", "Step 1 is refused.");
    house_close(h);
}

/* ---- steps ---- */

static void steps_are_named_in_each_way(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = open_steps(h, STEP("a", "") "," STEP("b", "") "," STEP("c", "") "," STEP("d", "") "," STEP(
                           "e", "") "," STEP("f", ""));
    is_said(h, "skip the next step", "skip_steps", "Step 2 is skipped.");
    is_only_said(h, "skip step 2", "Step 2 cannot be skipped: it is over (skipped).");
    is_said(h, "skip the last step", "skip_steps", "Step 6 is skipped.");
    is_said(h, "skip steps 3 and 4", "skip_steps", "Steps 3 and 4 are skipped.");
    is_only_said(h, "skip step 7", "There is no step 7: the plan has 6.");
    is_said(h, "skip to step 5", "skip_to_step",
            "The plan goes on at step 5; 1 before it is skipped.");
    house_failed(h, "calc", "CANCELLED", false); /* the first is called back */
    house_says(h, view(h, id),
               "steps.0.status=skipped; steps.3.status=skipped; steps.4.status=in_progress");
    is_only_said(h, "skip the next step", "No step is left that has not begun.");
    is_said(h, "skip this step", "skip_steps", "Step 5 is skipped.");
    is_only_said(h, "status",
                 "No plan is open in this session. The last one, \"add\", is over (failed).");
    house_close(h);
}

static void many_skipped_steps_are_named_up_to_twenty(void **state)
{
    (void)state;
    for (int n = 20; n <= 21; n++) {
        struct house *h = house_open();
        char steps[4000];
        char wants[400];
        size_t at = 0;
        house_join(h, "calc", 1);
        for (int i = 0; i <= n; i++) {
            at += (size_t)snprintf(steps + at, sizeof steps - at,
                                   "%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'do'}",
                                   i > 0 ? "," : "", i);
        }
        (void)open_steps(h, steps);
        at = (size_t)snprintf(wants, sizeof wants, "Steps 2");
        for (int i = 3; i <= 21; i++) {
            at += (size_t)snprintf(wants + at, sizeof wants - at, "%s%d",
                                   i == n + 1 ? " and " : ", ", i);
        }
        (void)snprintf(wants + at, sizeof wants - at, "%s",
                       n == 20 ? " are skipped." : ", ... are skipped.");
        is_said(h, house_text(h, "skip steps 2 to %d", n + 1), "skip_steps", wants);
        house_close(h);
    }
}

/* ---- without a plan ---- */

static void without_a_plan_words_say_what_can_be_said(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    is_only_said(h, "status", "No plan is open in this session; say what is to be done.");
    is_only_said(h, "new plan:", "Say what the new plan is for: \"new plan: ...\".");
    house_close(h);
}

/* ---- a model's answers ---- */

static struct house *open_conversing(void)
{
    struct house *h = house_open();

    house_join_as(h, "calc", 4, CONVERSE, "");
    return h;
}

/* Says something that only a model understands; it answers with this data. */
static void model_says(struct house *h, const char *data, const char *message)
{
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    if (house_work(h, "calc", "converse") == NULL) {
        fail_msg("no model is asked");
    }
    house_answer(h, "calc", "converse", "'outcome':'completed','result':{'data':%s}", data);
    house_is(h, house_event(h, "turn_end"), "message", message);
}

#define STANDS "The plan \"add\": 0 of 3 steps are over. Step 1 is under way: \"do a\"."
#define HELP                                                                                       \
    " You can say: status, skip step N, skip to step N, pause, resume, stop, and yes or no when "  \
    "something waits for you."

static void each_action_of_a_model_is_done_or_refused(void **state)
{
    struct house *h = open_conversing();
    const char *id;

    (void)state;
    id = open_steps(h, STEP("a", "") "," STEP("b", "") "," STEP("c", ""));
    model_says(h, "{'action':'conversation_only'}", STANDS);
    model_says(h, "{'reply':'It adds.'}", "It adds.");
    model_says(h, "{'action':'pause'}",
               "The plan is paused; what is under way is brought to its end. Say resume to go on.");
    model_says(h, "{'action':'resume'}", "The plan goes on.");
    model_says(h, "{'action':'resume'}", "The plan is not paused. " STANDS);
    model_says(h, "{'action':'approve'}", "Nothing waits for an answer. " STANDS);
    model_says(h, "{'action':'reject'}", "Nothing waits for an answer. " STANDS);
    model_says(h, "{'action':'new_plan','goal':'x'}",
               "A plan is open in this session; say stop first, then what is to be done. " STANDS);
    model_says(h, "{'action':'explode'}",
               STANDS HELP "\nNothing was changed: the model wanted explode, and there is no such "
                           "action.");
    model_says(h, "{'action':'0123456789012345678901234567890123456789x'}",
               STANDS HELP
               "\nNothing was changed: the model wanted "
               "0123456789012345678901234567890123456789, and there is no such action.");
    model_says(h, "{'action':'skip_steps'}", "The model named no steps to skip.");
    model_says(h, "{'action':'skip_steps','stepsToSkip':'2'}", "The model named no steps to skip.");
    model_says(h, "{'action':'skip_steps','stepsToSkip':[2.5]}",
               "There is no step 0: the plan has 3.");
    model_says(h, "{'action':'skip_steps','stepsToSkip':[-1]}",
               "There is no step 0: the plan has 3.");
    model_says(h, "{'action':'skip_to_step','targetStepNumber':'2'}",
               "There is no step 0: the plan has 3.");
    model_says(h, "{'action':'skip_to_step','targetStepNumber':4294967295}",
               "There is no step 0: the plan has 3.");
    model_says(h, "{'action':'skip_to_step','targetStepNumber':2.0}",
               "The plan goes on at step 2; 1 before it is skipped.");
    house_says(h, view(h, id), "steps.0.status=skipped; steps.1.status=in_progress");
    model_says(h, "{'action':'stop','reasoning':'as said'}",
               "The plan is being stopped; what is out is called back.");
    house_close(h);
}

static void a_model_decides_what_waits(void **state)
{
    struct house *h = open_conversing();

    (void)state;
    (void)open_steps(h, STEP("a", ",'requiresApproval':true"));
    model_says(h, "{'action':'approve'}", "Step 1 is approved.");
    house_done(h, "calc", "'result':{'text':'x'}");
    (void)open_steps(h, STEP("a", ",'requiresApproval':true"));
    model_says(h, "{'action':'resume'}", /* "go on" is no approval of a model */
               "The plan is not paused. The plan \"add\": 0 of 1 steps are over. Step 1 \"do a\" "
               "waits for your approval: say yes or no.");
    model_says(h, "{'action':'reject'}", "Step 1 is refused.");
    house_close(h);
}

static void a_model_without_a_plan_answers_or_makes_one(void **state)
{
    struct house *h = open_conversing();

    (void)state;
    (void)open_steps(h, STEP("a", ""));
    house_done(h, "calc", "'result':{'text':'x'}");
    model_says(h, "{'action':'pause'}",
               "No plan is open in this session. The last one, \"add\", is over (completed). For "
               "another one without a model say \"new plan: ...\".\nNothing was changed: the model "
               "wanted pause, and no plan is open.");
    model_says(h, "{'action':'conversation_only'}",
               "No plan is open in this session. The last one, \"add\", is over (completed).");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    (void)house_work(h, "calc", "converse");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'new_plan','goal':'do it'}}");
    house_is(h, house_event(h, "turn_end"), "message",
             "No plan could be made: no agent can do \"do it\": only \"do\" points to "
             "calc.do\nNearest: calc.do (D)");
    house_is(h, house_event(h, "turn_end"), "action", "new_plan");
    house_join_as(h, "adder", 1,
                  "'skills':[{'id':'add','description':'Adds numbers and sums up columns.'}]", "");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
    (void)house_work(h, "calc", "converse");
    house_answer(h, "calc", "converse",
                 "'outcome':'completed','result':{'data':{'action':'new_plan','goal':'add the "
                 "numbers of the columns'}}");
    house_says(h, house_ok(h, "plan.list", "'sessionId':'s'"),
               "plans.#=2; plans.0.query=add the numbers of the columns");
    house_close(h);
}

static void a_model_that_fails_says_why_and_what_can_be_said(void **state)
{
    struct house *h = open_conversing();
    char why[302];

    (void)state;
    (void)open_steps(h, STEP("a", "") "," STEP("b", "") "," STEP("c", ""));
    memset(why, 'w', sizeof why - 1);
    why[sizeof why - 1] = 0;
    for (size_t n = 300; n <= 301; n++) {
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'be so good and arrange it'");
        house_answer(h, "calc", "converse",
                     "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                     "'message':'%.*s','retryable':false}",
                     (int)n, why);
        house_is(h, house_event(h, "turn_end"), "message",
                 house_text(h, STANDS HELP "\nThe model did not tell what you meant: %.300s", why));
    }
    house_close(h);
}

/* ---- the end of a plan, in the session ---- */

static void the_end_of_a_plan_is_said_in_its_session(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)open_steps(h, STEP("a", "") "," STEP("b", ",'maxRetries':0"));
    house_done(h, "calc", "'result':{'text':'five'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages=-; messagesTotal=0");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
    (void)open_steps(h, STEP("a", "") "," STEP("b", ",'maxRetries':0"));
    house_done(h, "calc", "'result':{'text':'five'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               "messagesTotal=3; agentCallsSinceMemory=2; toolCallsSinceMemory=0; "
               "messages.2.role=assistant; messages.2.turnId=-; messages.2.planId=*");
    house_has(h, house_ok(h, "session.get", "'sessionId':'s'"), "messages.2.text",
              "The plan failed: Step 2 failed: no luck\n\nfive");
    (void)open_steps(h, STEP("a", "") "," STEP("b", ""));
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'stop'");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'CANCELLED','class':'CANCELLED','message':"
                 "'x','retryable':false}");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               "messagesTotal=6; openPlanId=-; messages.5.role=assistant");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_runs_says_how_far_it_is),
        cmocka_unit_test(a_plan_whose_agent_is_busy_says_so),
        cmocka_unit_test(a_plan_that_is_stopped_says_what_is_called_back),
        cmocka_unit_test(a_plan_that_waits_for_its_sign_off_says_so),
        cmocka_unit_test(a_plan_that_could_not_be_made_says_so),
        cmocka_unit_test(a_plan_whose_answer_is_written_says_so),
        cmocka_unit_test(each_kind_of_review_says_what_can_be_said),
        cmocka_unit_test(an_outcome_that_nobody_knows_is_asked_about),
        cmocka_unit_test(of_several_that_wait_one_must_be_named),
        cmocka_unit_test(steps_are_named_in_each_way),
        cmocka_unit_test(many_skipped_steps_are_named_up_to_twenty),
        cmocka_unit_test(without_a_plan_words_say_what_can_be_said),
        cmocka_unit_test(each_action_of_a_model_is_done_or_refused),
        cmocka_unit_test(a_model_decides_what_waits),
        cmocka_unit_test(a_model_without_a_plan_answers_or_makes_one),
        cmocka_unit_test(a_model_that_fails_says_why_and_what_can_be_said),
        cmocka_unit_test(the_end_of_a_plan_is_said_in_its_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
