/* Rules of the engine that no room above it states: whose plan a session has, why a plan failed,
 * what its end says. */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

static struct house *open_house(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    return h;
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* The newest plan of a session that is open, also one that is only made to be looked at; but that
 * one stands in nobody's way. */
static void a_session_shows_its_newest_plan_and_runs_one_beside_a_dry_run(void **state)
{
    struct house *h = open_house();
    const char *dry;
    const char *id;

    (void)state;
    house_join_as(h, "maker", 4, "'skills':[{'id':'plan','description':'P'}]", "");
    dry = house_submit(h, "'goal':'many','planner':'agent:maker','sessionId':'s','dryRun':true");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h, "openPlanId=%s", dry));
    id = house_submit(h, "'plan':{'goal':'g','sessionId':'s','steps':[" STEP("a", "") "]}");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h, "openPlanId=%s", id));
    house_says(h,
               house_ask(h, "plan.submit",
                         "'plan':{'goal':'h','sessionId':'s','steps':[" STEP("b", "") "]}"),
               "ok=false");
    house_done(h, "calc", "'result':{'text':'1'}");
    house_wait(h, 1);
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h, "openPlanId=%s", dry));
    house_close(h);
}

/* A reason is kept in full for the plan that may end with it; one that completes has none. */
static void a_plan_that_completes_has_no_reason_of_a_step_that_failed_on_its_way(void **state)
{
    char why[1500];

    (void)state;
    memset(why, 'w', sizeof why - 1);
    why[sizeof why - 1] = 0;
    for (int ends = 0; ends < 2; ends++) {
        struct house *h = open_house();
        const char *id = house_submit(
            h,
            "'plan':{'goal':'g','steps':[" STEP("a", ",'maxRetries':0,'onFailure':'%s'") "," STEP(
                "b", ",'dependsOn':['a'],'runIf':'always'") "]}",
            ends == 1 ? "abort" : "continue");
        house_answer(h, "calc", NULL,
                     "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                     "'message':'%s','retryable':false}",
                     why);
        house_wait(h, 1);
        if (ends == 0) {
            house_done(h, "calc", "'result':{'text':'B'}");
            house_wait(h, 1);
            house_says(h, view(h, id), "status=completed; failureReason=-; steps.0.error=~wwwww");
        } else {
            house_says(h, view(h, id), "status=failed; failureReason=~Step 1 failed: wwwww");
            assert_true(strlen(house_get(h, view(h, id), "failureReason")) > 400);
        }
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_shows_its_newest_plan_and_runs_one_beside_a_dry_run),
        cmocka_unit_test(a_plan_that_completes_has_no_reason_of_a_step_that_failed_on_its_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
