/* What agents are asked beside steps: gates, verdicts, searches, replans, plans, answers. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'gate','description':'G'},{'id':'verify',"      \
    "'description':'V'},{'id':'search','description':'S'},{'id':'plan','description':'P'},"        \
    "{'id':'synthesize','description':'Y'}]"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

static void a_gate_is_asked_before_a_step(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(
        h, "'plan':{'goal':'add','steps':[" STEP("a", "") "," STEP("b", ",'gate':'boss'") "]}");
    house_done(h, "calc", "'result':{'text':'five'}");
    assert_null(house_work(h, "calc", NULL));
    house_says(h, house_work(h, "boss", NULL),
               "purpose=gate; skill=gate; stepId=b; task=~The step: do b; context.text=~five; "
               "parameters.stepId=b; parameters.task=do b; deadlineMs=30000");
    house_says(h, view(h, id), "steps.1.phase=gate");
    house_done(h, "boss", "'result':{'data':{'passed':true,'reason':'enough'}}");
    house_says(h, house_event(h, "quality_gate_passed"), "stepId=b; agentId=boss");
    assert_non_null(house_work(h, "calc", "b"));
    house_done(h, "calc", "'result':{'text':'six'}");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", ",'gate':'boss'") "]}");
    house_done(h, "calc", "'result':{'text':'five'}");
    house_done(h, "boss",
               "'result':{'data':{'passed':false,'reason':'too little','missing':['rows']}}");
    house_says(h, house_event(h, "quality_gate_failed"), "stepId=b; missing=[\"rows\"]");
    house_says(h, view(h, id), "status=failed; steps.1.status=failed; steps.1.error=~too little");
    house_close(h);
}

static void a_gate_that_cannot_answer_lets_go_on_unless_it_fails_closed(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", ",'gate':'boss'") "]}");
    house_done(h, "calc", "'result':{'text':'five'}");
    house_done(h, "boss", "'result':{'data':{'colour':'red'}}");
    assert_non_null(house_work(h, "calc", "b"));
    assert_int_equal(house_seen(h, "quality_gate_error"), 1);
    house_done(h, "calc", "'result':{'text':'six'}");
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", "") "," STEP(
               "b", ",'gate':{'agentId':'boss','failClosed':true},'checkTimeoutMs':1000") "]}");
    house_done(h, "calc", "'result':{'text':'five'}");
    (void)house_work(h, "boss", NULL);
    house_wait(h, 999);
    house_says(h, view(h, id), "steps.1.phase=gate");
    house_wait(h, 1);
    house_says(h, view(h, id), "status=failed; steps.1.status=failed");
    house_close(h);
}

static void a_verifier_judges_the_result(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'verifyWith':'boss'") "]}");
    house_done(h, "calc", "'result':{'text':'five','data':{'n':5}}");
    house_says(h, house_work(h, "boss", NULL),
               "purpose=verify; skill=verify; result.text=five; result.data.n=5; stepId=a");
    house_done(h, "boss", "'result':{'text':'No, it is six.'}");
    house_says(h, house_event(h, "plan_step_verification_failed"), "diagnosis=No, it is six.");
    house_wait(h, 2000);
    house_says(h, house_work(h, "calc", "a"), "attempt=2; feedback=~No, it is six.");
    house_done(h, "calc", "'result':{'text':'six'}");
    house_done(h, "boss", "'result':{'text':'Yes.'}");
    house_says(h, view(h, id), "status=completed; steps.0.result=six; steps.0.attempts=2");
    house_close(h);
}

static void a_schema_verifies_the_result(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h,
                      "'plan':{'steps':[" STEP(
                          "a", ",'maxRetries':0,'verify':{'type':'object','required':['n']}") "]}");
    house_done(h, "calc", "'result':{'data':{'m':5}}");
    house_says(h, view(h, id),
               "status=failed; steps.0.errorClass=VERIFICATION_FAILED; steps.0.error=~n");
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", ",'verify':{'type':'object','required':['n']}") "]}");
    house_done(h, "calc", "'result':{'data':{'n':5}}");
    house_says(h, view(h, id), "status=completed");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0,'verify':false") "]}");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id), "steps.0.errorClass=VERIFICATION_FAILED");
    house_close(h);
}

static void the_cards_output_schema_is_held(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D','outputSchema':{'type':'object',"
                  "'required':['n']}}]",
                  "");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0") "]}");
    house_done(h, "calc", "'result':{'data':{'m':5}}");
    house_says(h, view(h, id), "status=failed; steps.0.errorClass=VERIFICATION_FAILED");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'data':{'n':5}}");
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

/* Of an agent with several skills it is not known which one did a step that names none. */
static void a_step_without_a_skill_is_held_to_the_schema_of_the_only_one(void **state)
{
    static const char *const skills[] = {
        "'skills':[{'id':'do','description':'D','outputSchema':{'type':'object','required':['n']}"
        "}]",
        "'skills':[{'id':'do','description':'D','outputSchema':{'type':'object','required':['n']}"
        "},{'id':'more','description':'M'}]"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct house *h = house_open();
        const char *id;
        house_join_as(h, "calc", 1, skills[i], "");
        id = house_submit(h, "'plan':{'steps':[{'stepId':'a','agentId':'calc','task':'t',"
                             "'maxRetries':0}]}");
        house_done(h, "calc", "'result':{'data':{'m':5}}");
        house_says(h, view(h, id),
                   i == 0 ? "steps.0.errorClass=VERIFICATION_FAILED" : "status=completed");
        house_close(h);
    }
}

static void what_is_not_found_is_searched_for(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(
        h, "'plan':{'steps':[" STEP(
               "a", ",'maxRetries':0,'parameters':{'path':'x'}") "]},"
                                                                 "'policy':{'searchAgent':'boss'}");
    house_failed(h, "calc", "RESOURCE_NOT_FOUND", false);
    house_wait(h, 3000);
    house_says(h, house_work(h, "boss", NULL),
               "purpose=search; skill=search; parameters.query={\"path\":\"x\"}");
    house_done(h, "boss", "'result':{'text':'found'}");
    house_says(h, view(h, id), "status=completed; steps.0.result=found; fallbacks=1");
    house_says(h, house_event(h, "fallback_used"), "stepId=a");
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0") "]},'policy':{'searchAgent':'boss'}");
    house_failed(h, "calc", "RESOURCE_NOT_FOUND", false);
    house_wait(h, 3000);
    house_says(h, house_work(h, "boss", NULL), "parameters.query=do a");
    house_failed(h, "boss", "PERMISSION_DENIED", false);
    house_says(h, view(h, id), "status=failed; steps.0.errorClass=RESOURCE_NOT_FOUND");
    house_close(h);
}

static void another_agent_takes_over(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0,'fallbackAgents':['boss']") "]}");
    house_failed(h, "calc", "TOOL_NOT_FOUND", false);
    house_wait(h, 3000);
    house_says(h, house_work(h, "boss", NULL), "purpose=execute; skill=do; attempt=2");
    house_done(h, "boss", "'result':{'text':'x'}");
    house_says(h, view(h, id), "status=completed; steps.0.agentId=boss");
    house_close(h);
}

static void an_agent_hands_its_step_over(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0") "]},'policy':{'handoffTo':['boss']}");
    house_answer(h, "calc", NULL,
                 "'outcome':'handoff','handoff':{'toAgentId':'boss','reason':'too hard'}");
    house_wait(h, 1);
    assert_non_null(house_work(h, "boss", NULL));
    house_says(
        h, house_event(h, "agent_handoff"),
        "fromAgent.agentId=calc; toAgent.agentId=boss; explanation=too hard; reason=agent_request");
    house_done(h, "boss", "'result':{'text':'x'}");
    house_says(h, view(h, id), "status=completed; steps.0.handoffs=1");
    id = house_submit(
        h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0") "]},'policy':{'handoffTo':['boss']}");
    house_answer(h, "calc", NULL,
                 "'outcome':'handoff','handoff':{'toAgentId':'nobody','reason':'too hard'}");
    house_says(h, view(h, id), "status=failed");
    house_close(h);
}

/* ---- replans ---- */

static void a_replanner_is_told_what_failed_and_what_was_done(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(
        h, "'plan':{'goal':'add all','grants':['boss'],'steps':[" STEP("a", "") "," STEP(
               "b", ",'maxRetries':0,'onFailure':'replan'") "]},"
                                                            "'policy':{'replan':{'agentId':'boss','"
                                                            "cooldownMs':0,'maxTotal':2}}");
    house_done(h, "calc", "'result':{'text':'five'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    house_says(
        h, house_work(h, "boss", NULL),
        "purpose=replan; skill=plan; task=~The goal: add all; parameters.completed.#=1; "
        "parameters.completed.0.stepId=a; parameters.completed.0.text=~five; "
        "parameters.failed.#=1; parameters.failed.0.stepId=b; parameters.failed.0.text=~no luck; "
        "parameters.agents.#=2; parameters.history.#=0");
    house_says(h, house_event(h, "replan_started"), "stepId=b; diagnosis=~no luck");
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'c','agentId':'calc','skill':'do',"
               "'task':'do it another way','dependsOn':['a']}]}}");
    house_says(h, house_event(h, "replan_finished"), "ok=true; newSteps=1; revision=2");
    house_says(h, view(h, id),
               "revision=2; replans=1; steps.#=3; steps.1.superseded=true; "
               "steps.2.stepId=c; steps.2.status=in_progress");
    house_says(h, house_work(h, "calc", "c"),
               "context.dependencies.0.stepId=a; task=do it another way");
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(h, view(h, id), "status=completed");
    house_says(h, house_ok(h, "plan.history", "'planId':'%s'", id),
               "replans.#=1; replans.0.stepId=b; replans.0.ok=true; replans.0.newTaskCount=1; "
               "revisions.#=2; revisions.1.kind=replan; replanCount=1");
    house_close(h);
}

static void a_replan_that_is_no_plan_fails_the_step(void **state)
{
    static const char *const bad[] = {
        "'result':{'text':'a poem'}",
        "'result':{'data':{'steps':[]}}",
        "'result':{'data':{'steps':[{'stepId':'c','agentId':'nobody','skill':'do','task':'x'}]}}",
        "'result':{'data':{'impossible':'there is no way'}}",
    };
    struct house *h = open_with_boss();

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *id = house_submit(
            h,
            "'plan':{'goal':'g','steps':[" STEP(
                "b", ",'maxRetries':0,'onFailure':'replan'") "]},"
                                                             "'policy':{'replan':{'agentId':'boss',"
                                                             "'cooldownMs':0,'maxTotal':1}}");
        house_failed(h, "calc", "PERMISSION_DENIED", false);
        house_wait(h, 1);
        house_done(h, "boss", "%s", bad[i]);
        house_says(h, house_event(h, "replan_finished"), "ok=false; reason=*");
        house_says(h, view(h, id), "status=failed; revision=1");
    }
    house_close(h);
}

/* ---- plans and answers ---- */

static void a_planner_makes_the_plan(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h,
                      "'goal':'add two numbers','planner':'agent:boss','constraints':['be quick'],"
                      "'policy':{'stepTimeoutMs':1234}");
    house_says(h, view(h, id), "status=pending; phase=planning; steps=-");
    house_says(h, house_work(h, "boss", NULL),
               "purpose=plan; skill=plan; parameters.goal=add two numbers; "
               "parameters.constraints=[\"be quick\"]; parameters.agents.#=2; deadlineMs=30000");
    house_done(h, "boss",
               "'result':{'data':{'steps':[" STEP("a", "") "]}},'usage':{'inputTokens':11}");
    house_says(h, view(h, id),
               "phase=execution; steps.#=1; steps.0.stepId=a; "
               "usagePlanning.inputTokens=11; about.constraints=[\"be quick\"]");
    house_says(h, house_work(h, "calc", NULL), "deadlineMs=1234");
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, view(h, id), "status=completed; summary=5");
    house_close(h);
}

static void a_planner_that_makes_none_is_asked_again_then_the_plan_fails(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'add two numbers','planner':'agent:boss'");
    house_done(h, "boss", "'result':{'text':'a poem'}");
    house_says(h, house_event(h, "planning_retry"),
               "attempt=1; validationErrors=1; text=~the answer is no plan");
    house_says(h, house_work(h, "boss", NULL), "attempt=1; parameters.problems=*");
    house_done(h, "boss", "'result':{'text':'another poem'}");
    while (house_work(h, "boss", NULL) != NULL) {
        house_done(h, "boss", "'result':{'text':'another poem'}");
    }
    house_says(h, view(h, id), "status=failed");
    assert_int_equal(house_seen(h, "planning_failed"), 1);
    house_close(h);
}

static void a_person_decides_when_no_plan_could_be_made(void **state)
{
    struct house *h = open_with_boss();
    const char *id;
    const char *review;

    (void)state;
    id = house_submit(h, "'goal':'add two numbers','planner':'agent:boss',"
                         "'policy':{'onInvalidPlan':'interrupt'}");
    while (house_work(h, "boss", NULL) != NULL) {
        house_done(h, "boss", "'result':{'text':'a poem'}");
    }
    review = house_ok(h, "review.list", " ");
    house_says(h, review, "reviews.#=1; reviews.0.kind=planning; reviews.0.error=*");
    house_says(h, house_event(h, "plan_paused"),
               house_text(h, "reviewId=%s", house_get(h, review, "reviews.0.reviewId")));
    house_refused(h, "INVALID", "", "review.decide",
                  "'reviewId':'%s','decision':'approve','edit':{'steps':[]}",
                  house_get(h, review, "reviews.0.reviewId"));
    (void)house_ok(h, "review.decide",
                   "'reviewId':'%s','decision':'approve','edit':{'steps':[" STEP("a", "") "]}",
                   house_get(h, review, "reviews.0.reviewId"));
    house_says(h, view(h, id), "steps.#=1; steps.0.status=in_progress");
    house_close(h);
}

static void an_agent_writes_the_answer_of_the_plan(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h,
                      "'plan':{'goal':'add all','steps':[" STEP("a", "") "," STEP(
                          "b", "") "]},"
                                   "'policy':{'synthesis':{'strategy':'agent','agentId':'boss'}}");
    house_done(h, "calc", "'result':{'text':'five'}");
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(h, view(h, id), "status=running; phase=synthesis");
    house_says(
        h, house_work(h, "boss", NULL),
        "purpose=*; skill=synthesize; parameters.goal=add all; parameters.steps.#=2; "
        "parameters.steps.0.result=five; parameters.mayRetry=0; parameters.agents=[\"calc\"]");
    house_done(h, "boss", "'result':{'text':'Five and six.'},'usage':{'outputTokens':4}");
    house_says(h, view(h, id),
               "status=completed; summary=Five and six.; usageSynthesis.outputTokens=4");
    assert_int_equal(house_seen(h, "synthesis_finished"), 1);
    house_close(h);
}

static void a_synthesizer_may_have_failed_steps_tried_again(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'add all','steps':[" STEP("a", "") "," STEP(
                             "b", ",'maxRetries':0,'onFailure':'continue','parameters':{'n'"
                                  ":1}") "," STEP("c", "") "]},"
                                                           "'policy':{'synthesis':{'"
                                                           "strategy':'agent','agentId':'"
                                                           "boss','maxRetries':1}}");
    house_done(h, "calc", "'result':{'text':'five'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(h, house_work(h, "boss", NULL),
               "parameters.mayRetry=1; parameters.steps.1.status=failed; "
               "parameters.steps.1.error=~no luck");
    house_done(
        h, "boss",
        "'result':{'data':{'retry':[{'stepId':'b','reason':'once more'},{'stepId':'a'},'z']}}");
    house_says(h, house_event(h, "synthesis_retry"), "revision=2");
    house_says(h, view(h, id),
               "status=running; phase=execution; revision=2; steps.#=4; "
               "steps.1.superseded=true; steps.3.stepId=b; steps.3.revision=2");
    house_says(h, house_work(h, "calc", "b"), "parameters.n=1; revision=2; task=do b");
    house_done(h, "calc", "'result':{'text':'better'}");
    house_says(h, house_work(h, "boss", NULL), "parameters.mayRetry=0");
    house_done(h, "boss", "'result':{'text':'Done.'}");
    house_says(h, view(h, id), "status=completed; summary=Done.; outcome=success");
    house_close(h);
}

static void an_answer_that_says_nothing_is_made_of_the_results(void **state)
{
    static const char *const empty[] = {"'result':{'text':' \\n'}", "'result':{'data':{}}",
                                        "'result':{'data':[]}", "'result':{'data':' '}",
                                        "'result':{'data':{'retry':[{'stepId':'a'}]}}"};
    struct house *h = open_with_boss();

    (void)state;
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        const char *id = house_submit(
            h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]},"
                                                            "'policy':{'synthesis':'agent:boss'}");
        house_done(h, "calc", "'result':{'text':'five'}");
        house_done(h, "boss", "%s", empty[i]);
        house_says(h, view(h, id), "status=completed; summary=five");
        house_says(h, house_event(h, "synthesis_finished"), "ok=false");
    }
    house_close(h);
}

/* ---- state ---- */

static void state_of_a_plan_goes_to_later_steps(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id =
        house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "," STEP("c", "") "]}");
    house_done(h, "calc", "'result':{'text':'1'},'state':{'n':1,'m':2}");
    house_says(h, house_work(h, "calc", "b"), "context.state.n=1; context.state.m=2");
    house_done(h, "calc", "'result':{'text':'2'},'state':{'n':5,'m':null}");
    house_says(h, house_work(h, "calc", "c"), "context.state.n=5; context.state.m=-");
    house_done(h, "calc", "'result':{'text':'3'},'state':7");
    house_says(h, view(h, id), "steps.2.status=*");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_is_asked_before_a_step),
        cmocka_unit_test(a_gate_that_cannot_answer_lets_go_on_unless_it_fails_closed),
        cmocka_unit_test(a_verifier_judges_the_result),
        cmocka_unit_test(a_schema_verifies_the_result),
        cmocka_unit_test(the_cards_output_schema_is_held),
        cmocka_unit_test(a_step_without_a_skill_is_held_to_the_schema_of_the_only_one),
        cmocka_unit_test(what_is_not_found_is_searched_for),
        cmocka_unit_test(another_agent_takes_over),
        cmocka_unit_test(an_agent_hands_its_step_over),
        cmocka_unit_test(a_replanner_is_told_what_failed_and_what_was_done),
        cmocka_unit_test(a_replan_that_is_no_plan_fails_the_step),
        cmocka_unit_test(a_planner_makes_the_plan),
        cmocka_unit_test(a_planner_that_makes_none_is_asked_again_then_the_plan_fails),
        cmocka_unit_test(a_person_decides_when_no_plan_could_be_made),
        cmocka_unit_test(an_agent_writes_the_answer_of_the_plan),
        cmocka_unit_test(a_synthesizer_may_have_failed_steps_tried_again),
        cmocka_unit_test(an_answer_that_says_nothing_is_made_of_the_results),
        cmocka_unit_test(state_of_a_plan_goes_to_later_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
