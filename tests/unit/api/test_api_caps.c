/* What answers have at most: at N, and at N + 1. */
#include <string.h>

#include "supervisor/api/api_internal.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'goal':'g','steps':[" STEP("a", "") "]}"

static void as_many_reads_wait_as_there_are_places(void **state)
{
    struct house *h = house_open();
    uint64_t first;

    (void)state;
    house_join(h, "calc", 1);
    first = h->requests + 1;
    for (int i = 0; i < API_PARKED_MAX; i++) {
        assert_null(
            house_ask(h, "events.read", "'fromSeq':1,'waitMs':60000,'types':['plan_completed']"));
    }
    /* the next one has an empty answer at once, and asks again */
    house_says(h,
               house_ask(h, "events.read", "'fromSeq':1,'waitMs':60000,'types':['plan_completed']"),
               "ok=true; events.#=0; nextSeq=*");
    (void)house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'1'}");
    for (uint64_t i = first; i < first + API_PARKED_MAX; i++) {
        if (fake_link_answer_to(h->link, i) == NULL) {
            fail_msg("read %llu of %d waits still", (unsigned long long)(i - first),
                     API_PARKED_MAX);
        }
    }
    assert_null(
        house_ask(h, "events.read", "'fromSeq':999,'waitMs':60000,'types':['plan_completed']"));
    house_close(h);
}

static void a_step_without_its_agent_names_those_that_are_there(void **state)
{
    static const char *const ids[] = {"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"};
    struct house *h = house_open();
    const struct house_agent *calc = house_join(h, "calc", 1);
    const char *id;
    const char *text;

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        house_join(h, ids[i], 1);
    }
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'w','wait':{'signal':'go'},"
                         "'task':'t'}," STEP("a", "") "]}");
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", calc->instance,
                   (unsigned long long)calc->epoch);
    (void)house_ok(h, "plan.signal", "'planId':'%s','name':'go'", id);
    text = house_get(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.1.waiting.text");
    assert_non_null(text);
    assert_non_null(strstr(text, "there are: a1, a2, a3, a4, a5, a6, a7, a8"));
    assert_null(strstr(text, "..."));
    house_join(h, ids[8], 1);
    text = house_get(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.1.waiting.text");
    assert_non_null(strstr(text, "a8, ..."));
    assert_null(strstr(text, "a9"));
    house_close(h);
}

static void a_review_shows_the_results_before_it(void **state)
{
    struct house *h = house_open();
    const char *list;
    const char *id;

    (void)state;
    house_join(h, "calc", 3);
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                             "b", ",'dependsOn':[],'maxRetries':0,'onFailure':'"
                                  "continue'") ","
                                               "{'stepId':'q','type':'human_review'"
                                               ",'task':'ok?','runIf':'always',"
                                               "'dependsOn':['a','b']}]}");
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'of a'}");
    house_answer(h, "calc", "b",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'m','retryable':false}");
    list = house_ok(h, "review.list", "'planId':'%s'", id);
    house_says(h, list,
               "reviews.#=1; reviews.0.dependsOn=[\"a\",\"b\"]; reviews.0.upstreamResults.#=1; "
               "reviews.0.upstreamResults.0.stepId=a; reviews.0.upstreamResults.0.result=of a");
    house_says(
        h, house_ok(h, "review.get", "'reviewId':'%s'", house_get(h, list, "reviews.0.reviewId")),
        "review.upstreamResults.#=1");
    /* without a plan the list has none of it */
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=1; reviews.0.upstreamResults=-");
    house_close(h);
}

static void reviews_are_listed_up_to_the_limit(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < 3; i++) {
        (void)house_submit(
            h, "'plan':{'goal':'g','steps':[" STEP("a", ",'requiresApproval':true") "]}");
    }
    house_says(h, house_ok(h, "review.list", "'limit':3"), "reviews.#=3; truncated=-");
    house_says(h, house_ok(h, "review.list", "'limit':2"), "reviews.#=2; truncated=true");
    house_says(h, house_ok(h, "review.list", "'limit':1000"), "reviews.#=3");
    house_says(h, house_ok(h, "review.list", "'limit':0"), "reviews.#=3");
    house_close(h);
}

static void plans_of_schedules_are_listed_as_such(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," ONE);
    house_wait(h, 40000);
    house_says(h, house_ok(h, "plan.list", " "),
               "plans.#=1; plans.0.schedule=s; plans.0.scheduledFor=2023-11-14T22:14:00Z");
    (void)house_submit(h, ONE);
    house_says(h, house_ok(h, "plan.list", "'limit':1"), "plans.0.schedule=-; cursor=*");
    house_close(h);
}

static void a_plan_waits_for_what_its_child_plans_wait_for(void **state)
{
    struct house *h = house_open();
    const char *other;
    const char *id;

    (void)state;
    house_join(h, "calc", 4);
    other =
        house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'requiresApproval':true") "]}");
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'t','forEach':[1,2],"
                         "'steps':[" STEP("x", ",'requiresApproval':true") "]}]}");
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=3");
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", other),
               "reviews.#=1; reviews.0.stepId=a");
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", id),
               "reviews.#=2; reviews.0.stepId=~x; reviews.1.stepId=~x");
    house_close(h);
}

static void a_lint_has_problems_of_style(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 4);
    house_says(
        h,
        house_ok(
            h, "plan.lint",
            "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                "b", ",'dependsOn':[]") "," STEP("c",
                                                 ",'dependsOn':[]") "," STEP("d",
                                                                             ",'dependsOn':['a','b'"
                                                                             ",'c']") "]}"),
        "valid=true; problems.0.severity=warning; problems.#=*");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_reads_wait_as_there_are_places),
        cmocka_unit_test(a_step_without_its_agent_names_those_that_are_there),
        cmocka_unit_test(a_review_shows_the_results_before_it),
        cmocka_unit_test(reviews_are_listed_up_to_the_limit),
        cmocka_unit_test(plans_of_schedules_are_listed_as_such),
        cmocka_unit_test(a_plan_waits_for_what_its_child_plans_wait_for),
        cmocka_unit_test(a_lint_has_problems_of_style),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
