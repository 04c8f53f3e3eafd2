/* What people read of a plan: why a step waits, what an answer is made of, what an end is called.
 */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ROOT(id, more) STEP(id, ",'dependsOn':[]" more)

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static void every_reason_to_wait_has_its_sentence(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *id;

    (void)state;
    h = house_open_with(&opt);
    house_join(h, "calc", 4);
    id = house_submit(
        h, "'plan':{'steps':[" ROOT("a", "") "," ROOT("b", "") "," STEP(
               "c", ",'dependsOn':['a','b']") "," ROOT("d", "") "]},"
                                                                "'policy':{'maxConcurrency':2}");
    house_says(h, view(h, id),
               "steps.2.waiting.kind=dependency; steps.2.waiting.stepId=a; "
               "steps.2.waiting.text=waiting for 2 steps, the first is a; "
               "steps.3.waiting.kind=concurrency; "
               "steps.3.waiting.text=waiting for a place: 2 of 2 steps of the plan are under way");
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_wait(h, 1000);
    id = house_submit(h, "'plan':{'steps':[" ROOT("a", "") "," ROOT(
                             "b", "") "]},"
                                      "'policy':{'budget':{'tokens':10},'estimate':{'tokens':6}}");
    house_says(h, view(h, id),
               "steps.1.waiting.kind=budget; steps.1.waiting.text=waiting for budget "
               "that other steps have reserved");
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_wait(h, 1000);
    while (house_lane(h, "calc", NULL) != NULL) {
        house_done(h, "calc", "'result':{'text':'late'}");
    }
    id = house_submit(h, "'plan':{'steps':[" ROOT("a", "") "]}");
    house_answer(h, "calc", "a",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'RATE_LIMITED',"
                 "'message':'slow down','retryable':true,'retryAfterMs':4000}");
    house_says(h, view(h, id),
               "steps.0.waiting.kind=backoff; steps.0.waiting.agentId=calc; "
               "steps.0.waiting.until=*; steps.0.waiting.text=~agent calc asked for the pause");
    house_close(h);
}

static void a_broken_circuit_is_named(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *id;

    (void)state;
    opt.breaker_failures = 1;
    opt.breaker_cooldown_ms = 5000;
    opt.breaker_cooldown_max_ms = 5000;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0") "]}");
    house_failed(h, "calc", "TIMEOUT", false);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_says(h, view(h, id),
               "steps.0.waiting.kind=breaker; steps.0.waiting.agentId=calc; "
               "steps.0.waiting.until=2023-11-14T22:13:25.000Z; "
               "steps.0.waiting.text=~circuit of agent calc open until 2023");
    house_close(h);
}

static void limits_of_attempts_in_flight_are_named(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *id;

    (void)state;
    opt.in_flight = 1;
    h = house_open_with(&opt);
    house_join(h, "calc", 2);
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_says(h, view(h, id),
               "steps.0.waiting.kind=limit; steps.0.waiting.text=waiting for a place "
               "among the attempts in flight");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id), "steps.0.status=in_progress");
    house_close(h);
}

static void a_missing_agent_is_named_with_those_that_are_there(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    house_join(h, "files", 1);
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                   (unsigned long long)a->epoch);
    a->epoch = 0;
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_says(
        h, view(h, id),
        "steps.0.waiting.kind=agent; steps.0.waiting.text=~waiting for agent calc: 0 instances");
    house_says(h, view(h, id), "steps.0.waiting.text=~there are: files");
    house_close(h);
}

static void a_lost_reply_is_what_a_step_waits_for(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    (void)house_work(h, "calc", NULL);
    a->deaf = true;
    house_hang_up(h, "calc", true);
    house_says(h, view(h, id),
               "steps.0.waiting.kind=reply; steps.0.waiting.agentId=calc; "
               "steps.0.waiting.text=waiting for agent calc: its reply was lost");
    house_close(h);
}

/* ---- answers ---- */

static void the_answer_of_several_results_names_their_tasks(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "," STEP(
                             "c", "") "," STEP("d", ",'onFailure':'continue','maxRetries':0") "]}");
    house_done(h, "calc", "'result':{'text':'one'}");
    (void)house_ok(h, "plan.modify", "'planId':'%s','kind':'skip_steps','stepId':'c'", id);
    house_done(h, "calc", "'result':{'data':{'n':2}}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "outcome=partial; aggregatedResult=~do a");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "aggregatedResult=~one");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "aggregatedResult=~\"n\":2");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "aggregatedResult=~- Step 3 \"do c\" was skipped");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "aggregatedResult=~- Step 4 \"do d\" failed: no luck");
    house_close(h);
}

static void one_result_is_the_answer_alone(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'one','data':{'n':1}}");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id),
               "aggregatedResult=one; success=true");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'data':{'n':1}}");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "aggregatedResult={\"n\":1}");
    house_close(h);
}

static void an_end_says_why(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0") "," STEP("b", "") "]}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, view(h, id),
               "status=failed; failureReason=Step 1 failed: no luck; "
               "summary=I wasn't able to complete the plan due to errors.; "
               "steps.1.status=cancelled; counts.failed=1; counts.cancelled=1");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'maxRetries':0,'onFailure':'skip'") "]}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, view(h, id), "steps.0.status=skipped; steps.0.error=no luck");
    id = house_submit(
        h, "'plan':{'steps':[" ROOT("a", ",'maxRetries':0,'onFailure':'continue'") "," STEP(
               "b", ",'dependsOn':['a']") "," ROOT("c", "") "]}");
    while (house_lane(h, "calc", "a") == NULL) {
        house_cycle(h);
    }
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id),
               "status=completed; outcome=partial; steps.1.status=skipped; "
               "steps.1.reason=dependency_failed");
    house_close(h);
}

static void conditions_decide_with_the_values_that_they_saw(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h,
        "'plan':{'steps':[" ROOT("a", "") "," STEP(
            "b",
            ",'when':{'results.a.n':{'gt':3}}") "," STEP("c",
                                                         ",'when':{'results.a.n':{'lte':3}}") "]}");
    house_done(h, "calc", "'result':{'data':{'n':5}}");
    house_says(h, view(h, id),
               "steps.1.status=in_progress; steps.2.status=skipped; "
               "steps.2.reason=condition; steps.2.condition=~results.a.n; "
               "steps.2.when.results.a.n=-");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id), "status=completed; outcome=success");
    id = house_submit(h, "'plan':{'steps':[" ROOT("a", "") "," STEP(
                             "b", ",'when':{'results.a.n':{'gt':3}}") "]}");
    house_done(h, "calc", "'result':{'data':{'n':'x'}}");
    house_says(h, view(h, id), "steps.1.status=failed; steps.1.errorClass=VALIDATION_ERROR");
    house_close(h);
}

/* ---- after a new start ---- */

static void plans_go_on_after_a_restart(void **state)
{
    struct house *h = house_open();
    const char *running;
    const char *waiting;
    const char *paused;
    const char *done;

    (void)state;
    house_join(h, "calc", 2);
    done = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'five'},'usage':{'inputTokens':3}");
    running =
        house_submit(h, "'plan':{'goal':'go on','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    house_done(h, "calc", "'result':{'text':'six'}");
    waiting = house_submit(h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true") "]}");
    paused = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    (void)house_ok(h, "plan.pause", "'planId':'%s'", paused);
    house_restart(h);
    house_says(h, view(h, done), "status=completed; summary=five; usage.inputTokens=3");
    house_says(h, view(h, running),
               "status=running; query=go on; steps.0.status=completed; "
               "steps.0.result=six; counts.completed=1");
    house_says(h, view(h, waiting), "status=waiting; steps.0.waiting.kind=person");
    house_says(h, view(h, paused), "status=waiting; paused=[\"requested\"]");
    house_says(h, house_ok(h, "supervisor.info", " "), "plansOpen=3");
    house_says(h, house_event(h, "supervisor_started"), "plansRecovered=3");
    house_join(h, "calc", 2);
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'",
                   house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId"));
    (void)house_ok(h, "plan.resume", "'planId':'%s'", paused);
    house_wait(h, 10000);
    while (house_work(h, "calc", NULL) != NULL) {
        house_done(h, "calc", "'result':{'text':'seven'}");
        house_wait(h, 2000);
    }
    house_says(h, view(h, running), "status=completed; steps.1.result=seven");
    house_says(h, view(h, waiting), "status=completed");
    house_says(h, view(h, paused), "status=completed");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_to_wait_has_its_sentence),
        cmocka_unit_test(a_broken_circuit_is_named),
        cmocka_unit_test(limits_of_attempts_in_flight_are_named),
        cmocka_unit_test(a_missing_agent_is_named_with_those_that_are_there),
        cmocka_unit_test(a_lost_reply_is_what_a_step_waits_for),
        cmocka_unit_test(the_answer_of_several_results_names_their_tasks),
        cmocka_unit_test(one_result_is_the_answer_alone),
        cmocka_unit_test(an_end_says_why),
        cmocka_unit_test(conditions_decide_with_the_values_that_they_saw),
        cmocka_unit_test(plans_go_on_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
