/* plan.signal: each signal is taken, kept, repeated or refused; and who else asks while it waits.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define WAIT(id, signal, more)                                                                     \
    "{'stepId':'" id "','task':'t','wait':{'signal':'" signal "'" more "}}"

enum { NAMES = 8, RANGES = 1000 };

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static void a_signal_is_taken_by_the_step_that_waits_and_is_its_result(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" WAIT("w", "go", "") "," WAIT(
                             "x", "go", "") "," WAIT("y", "other", "") "]}");
    house_says(h, house_ok(h, "plan.signal", "'planId':'%s','name':'go','data':'hello'", id),
               "signal=1; stepId=w; repeated=-");
    house_says(h, view(h, id), "steps.0.status=completed; steps.0.result=hello; signalsKept=-");
    /* nobody waits for this one yet: it is kept */
    house_says(h, house_ok(h, "plan.signal", "'planId':'%s','name':'other','data':{'n':3}", id),
               "signal=2; stepId=-");
    house_says(h, view(h, id), "signalsKept=1; steps.1.status=in_progress");
    house_says(h, house_ok(h, "plan.signal", "'planId':'%s','name':'go'", id),
               "signal=3; stepId=x");
    house_says(h, view(h, id), "status=completed; steps.2.result={\"n\":3}; steps.1.result=-");
    house_refused(h, "CONFLICT", "has ended", "plan.signal", "'planId':'%s','name':'go'", id);
    house_refused(h, "NOT_FOUND", "No state found", "plan.signal", "'planId':'x','name':'go'");
    house_refused(h, "INVALID", "name", "plan.signal", "'planId':'%s'", id);
    house_close(h);
}

static void a_key_that_came_before_is_the_same_signal(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[" WAIT("w", "go", "") "," WAIT("x", "stop", "") "]}");
    for (int i = 0; i < 3; i++) {
        if (i == 2) { /* it has ended: its rows know */
            (void)house_ok(h, "plan.signal", "'planId':'%s','name':'stop'", id);
            house_restart(h);
        }
        house_says(h,
                   house_ok(h, "plan.signal",
                            "'planId':'%s','name':'go','data':{'n':1},'clientKey':'k'", id),
                   house_text(h, "signal=1; stepId=w; repeated=%s", i > 0 ? "true" : "-"));
        house_refused(h, "CONFLICT", "was used for another signal of this plan (number 1)",
                      "plan.signal", "'planId':'%s','name':'go','data':{'n':2},'clientKey':'k'",
                      id);
        house_refused(h, "CONFLICT", "was used for another signal", "plan.signal",
                      "'planId':'%s','name':'stop','data':{'n':1},'clientKey':'k'", id);
    }
    house_refused(h, "CONFLICT", "has ended", "plan.signal",
                  "'planId':'%s','name':'go','clientKey':'new'", id);
    house_close(h);
}

/* A plan that waits for n names. */
static const char *with_names(struct house *h, int n)
{
    struct buf steps;
    const char *id;

    buf_init(&steps, 65536);
    for (int i = 1; i <= n; i++) {
        for (int twice = 0; twice < 2; twice++) {
            buf_printf(&steps, "%s{'stepId':'w%d%d','task':'t','wait':{'signal':'s%d'}}",
                       steps.len > 0 ? "," : "", i, twice, i);
        }
    }
    id = house_submit(h, "'plan':{'goal':'g','steps':[%s]}", buf_cstr(&steps));
    buf_done(&steps);
    return id;
}

static void a_name_that_nobody_waits_for_is_refused_with_those_that_there_are(void **state)
{
    struct house *h = house_open();
    const char *answer;

    (void)state;
    answer = house_ask(h, "plan.signal", "'planId':'%s','name':'x'", with_names(h, NAMES));
    house_is(h, answer, "error.code", "NOT_FOUND");
    house_is(h, answer, "error.message",
             "name: no step of the plan waits for the signal 'x'; they wait for s1, s2, s3, s4, "
             "s5, s6, s7, s8");
    answer = house_ask(h, "plan.signal", "'planId':'%s','name':'x'", with_names(h, NAMES + 1));
    house_is(h, answer, "error.message",
             "name: no step of the plan waits for the signal 'x'; they wait for s1, s2, s3, s4, "
             "s5, s6, s7, s8, ...");
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    house_refused(h, "NOT_FOUND", "no step of the plan waits for a signal", "plan.signal",
                  "'planId':'%s','name':'x'",
                  house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}"));
    house_refused(h, "CONFLICT", "is still being made", "plan.signal", "'planId':'%s','name':'x'",
                  house_submit(h, "'goal':'g','planner':'agent:calc'"));
    house_close(h);
}

static void data_of_a_signal_fits_the_schema_of_the_step(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" WAIT(
                             "w", "go", ",'schema':{'type':'object','required':['n']}") "]}");
    house_refused(h, "INVALID", "data: does not fit wait.schema", "plan.signal",
                  "'planId':'%s','name':'go'", id);
    house_refused(h, "INVALID", "data: does not fit wait.schema", "plan.signal",
                  "'planId':'%s','name':'go','data':{'m':1}", id);
    house_says(h, view(h, id), "steps.0.status=in_progress");
    house_says(h, house_ok(h, "plan.signal", "'planId':'%s','name':'go','data':{'n':1}", id),
               "stepId=w");
    house_close(h);
}

static void a_plan_that_is_being_cancelled_takes_no_signal(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," WAIT(
                             "w", "go", "") "]}");
    (void)house_work(h, "calc", NULL);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_says(h, view(h, id), "cancelling=true");
    house_refused(h, "CONFLICT", "cancel", "plan.signal",
                  "'planId':'%s','name':'go','data':{'n':1}", id);
    house_close(h);
}

static void a_signal_on_a_full_disk_is_refused(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" WAIT("w", "go", "") "]}");
    engine_hold(h->engine, true);
    house_refused(h, "UNAVAILABLE", "", "plan.signal", "'planId':'%s','name':'go'", id);
    engine_hold(h->engine, false);
    (void)house_ok(h, "plan.signal", "'planId':'%s','name':'go'", id);
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

/* ---- reads that wait ---- */

static void the_engine_wakes_for_the_first_read_that_is_due(void **state)
{
    struct house *h = house_open();

    (void)state;
    assert_true(engine_deadline(h->engine) > h->now + 700); /* its own heartbeat */
    assert_null(house_ask(h, "events.read", "'fromSeq':999,'waitMs':700"));
    assert_int_equal(engine_deadline(h->engine), h->now + 700);
    assert_null(house_ask(h, "events.read", "'fromSeq':999,'waitMs':300"));
    assert_int_equal(engine_deadline(h->engine), h->now + 300);
    assert_null(house_ask(h, "events.read", "'fromSeq':999,'waitMs':600"));
    assert_int_equal(engine_deadline(h->engine), h->now + 300);
    house_wait(h, 300);
    assert_int_equal(engine_deadline(h->engine), h->now + 300);
    house_wait(h, 300);
    assert_int_equal(engine_deadline(h->engine), h->now + 100);
    house_wait(h, 100);
    assert_true(engine_deadline(h->engine) > h->now + 100);
    house_close(h);
}

/* ---- ranges that were deleted ---- */

static void a_thousand_ranges_are_named_and_the_rest_follows(void **state)
{
    struct engine_options opt = house_options();
    struct house *h = house_open_with(&opt);
    const char *page;
    const char *id;

    (void)state;
    fake_link_forget_frames(h->link);
    house_join(h, "calc", 1);
    for (int i = 0; i <= RANGES; i++) {
        id = house_submit(h, "'dryRun':true,'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
        (void)house_submit(h, "'dryRun':true,'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
        if (i > 0) {
            (void)house_ok(h, "plan.delete", "'planId':'%s'", id);
        }
        if (i == RANGES - 1) {
            page = house_ok(h, "events.read", "'fromSeq':1,'types':['plan_paused']");
            house_says(h, page, "deleted.#=999; events.#=0");
        }
    }
    page = house_ok(h, "events.read", "'fromSeq':1,'types':['plan_paused']");
    house_says(h, page, "deleted.#=1000; events.#=0");
    (void)house_ok(
        h, "plan.delete", "'planId':'%s'",
        house_submit(h, "'dryRun':true,'plan':{'goal':'g','steps':[" STEP("a", "") "]}"));
    page = house_ok(h, "events.read", "'fromSeq':1,'types':['plan_paused']");
    house_says(h, page, "deleted.#=1000; events.#=0");
    page = house_ok(h, "events.read", "'fromSeq':%s,'types':['plan_paused']",
                    house_get(h, page, "nextSeq"));
    house_says(h, page, "deleted.#=1; events.#=0");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_taken_by_the_step_that_waits_and_is_its_result),
        cmocka_unit_test(a_key_that_came_before_is_the_same_signal),
        cmocka_unit_test(a_name_that_nobody_waits_for_is_refused_with_those_that_there_are),
        cmocka_unit_test(data_of_a_signal_fits_the_schema_of_the_step),
        cmocka_unit_test(a_plan_that_is_being_cancelled_takes_no_signal),
        cmocka_unit_test(a_signal_on_a_full_disk_is_refused),
        cmocka_unit_test(the_engine_wakes_for_the_first_read_that_is_due),
        cmocka_unit_test(a_thousand_ranges_are_named_and_the_rest_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
