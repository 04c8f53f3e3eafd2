/* Requests about schedules: each works, is refused, and is somebody's. The house begins at
 * 2023-11-14T22:13:20Z. */
#include <stdio.h>
#include <string.h>

#include "supervisor/schedule/schedules.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define PLAN "'plan':{'goal':'tick','steps':[" STEP("a", "") "]}"
#define MINUTE 60000

static struct house *house_with_calc(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    return h;
}

static void a_schedule_is_put_shown_and_fires(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    house_says(h, house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN),
               "name=s; status=active; tz=UTC; next.#=5; next.0=2023-11-14T22:14:00Z; existing=-; "
               "replaced=-; problems.#=*");
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"),
               "schedule.name=s; schedule.owner=local; schedule.status=active; "
               "schedule.cron=* * * * *; schedule.next.#=5; schedule.overlap=skip; "
               "schedule.plan=-; schedule.fired=-");
    house_says(h, house_ok(h, "schedule.get", "'name':'s','next':2,'document':true"),
               "schedule.next.#=2; schedule.next.1=2023-11-14T22:15:00Z; schedule.plan.goal=tick");
    house_says(h, house_ok(h, "schedule.get", "'name':'s','next':0"), "schedule.next=-");
    house_wait(h, 39999);
    assert_int_equal(house_seen(h, "schedule_fired"), 0);
    house_wait(h, 1);
    house_says(h, house_event(h, "schedule_fired"),
               "name=s; scheduledFor=2023-11-14T22:14:00Z; firedPlanId=*; kind=time");
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"),
               "schedule.fired=1; schedule.openPlans=1; schedule.lastTime=2023-11-14T22:14:00Z; "
               "schedule.lastPlanId=*");
    house_says(h,
               house_ok(h, "plan.get", "'planId':'%s'",
                        house_get(h, house_event(h, "schedule_fired"), "firedPlanId")),
               "schedule=s; scheduledFor=2023-11-14T22:14:00Z; status=running");
    house_wait(h, MINUTE); /* the plan is open: this time is skipped */
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    assert_int_equal(house_seen(h, "schedule_skipped"), 1);
    house_done(h, "calc", "'result':{'text':'1'}");
    house_wait(h, MINUTE);
    assert_int_equal(house_seen(h, "schedule_fired"), 2);
    house_close(h);
}

static void the_same_again_changes_nothing_and_another_replaces(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'@daily'," PLAN ",'clientKey':'k'");
    house_says(h,
               house_ok(h, "schedule.put", "'name':'s','cron':'@daily'," PLAN ",'clientKey':'k'"),
               "existing=true; replaced=-");
    house_refused(h, "CONFLICT", "clientKey", "schedule.put",
                  "'name':'s','cron':'@weekly'," PLAN ",'clientKey':'k'");
    house_says(h, house_ok(h, "schedule.put", "'name':'s','everyMs':60000," PLAN),
               "existing=-; replaced=true");
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"),
               "schedule.everyMs=60000; schedule.cron=-");
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=1");
    house_close(h);
}

static void a_schedule_is_refused_by_what_is_wrong_with_it(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    house_refused(h, "INVALID", "name", "schedule.put", "'cron':'@daily'," PLAN);
    house_refused(h, "INVALID", "name", "schedule.put", "'name':'a b','cron':'@daily'," PLAN);
    house_refused(h, "INVALID", "cron", "schedule.put", "'name':'s','cron':'61 * * * *'," PLAN);
    house_refused(h, "INVALID", "", "schedule.put", "'name':'s'," PLAN);
    house_refused(h, "INVALID", "", "schedule.put",
                  "'name':'s','cron':'@daily','everyMs':60000," PLAN);
    house_refused(h, "INVALID", "tz", "schedule.put",
                  "'name':'s','cron':'@daily','tz':'Mars/Base'," PLAN);
    house_refused(h, "INVALID", "overlap", "schedule.put",
                  "'name':'s','cron':'@daily','overlap':'often'," PLAN);
    house_refused(h, "INVALID", "", "schedule.put", "'name':'s','cron':'@daily'");
    house_refused(h, "INVALID", "nobody", "schedule.put",
                  "'name':'s','cron':'@daily','plan':{'goal':'g','steps':[{'stepId':'a','agentId':"
                  "'nobody','skill':'do','task':'t'}]}");
    house_says(h,
               house_ask(h, "schedule.put",
                         "'name':'s','cron':'@daily','plan':{'goal':'g','steps':[{'stepId':'a',"
                         "'agentId':'nobody','skill':'do','task':'t'}]}"),
               "error.details.problems.#=*; error.class=VALIDATION_ERROR");
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=0");
    house_close(h);
}

/* The house begins at 22:13:20. */
static void times_and_windows_have_their_least(void **state)
{
    static const struct {
        const char *more, *says; /* says NULL: it is taken */
    } cases[] = {
        {"'everyMs':999", "everyMs: 999 is too short"},
        {"'everyMs':1000", NULL},
        {"'cron':'@daily','catchUpMs':9999", "catchUpMs: 9999 is too short"},
        {"'cron':'@daily','catchUpMs':10000", NULL},
        {"'at':'2023-11-14T22:13:20Z'", "has passed"},
        {"'at':'2023-11-14T22:13:20.001Z'", NULL},
        {"'at':'2023-11-14T22:13:21Z','endAt':'2023-11-14T22:13:20.999Z'", "endAt: no time of"},
        {"'cron':'@daily','endAt':'2023-11-14T23:59:59.999Z'", "endAt: no time of"},
        {"'cron':'@daily','endAt':'2023-11-15T00:00:00Z'", NULL},
        {"'everyMs':60000,'jitterMs':60000", "jitterMs: 60000 is not shorter"},
        {"'everyMs':60000,'jitterMs':59999", NULL},
        {"'cron':'@daily','endAt':'x'", "endAt"},
        {"'at':'x'", "at"},
        {"'cron':'@daily','everyMs':60000,'at':'2024-01-01'", "all three"},
        {"'everyMs':60000,'at':'2024-01-01'", "two of them"},
        {"'overlap':'skip'", "got none"},
    };
    struct house *h = house_with_calc();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].says != NULL) {
            house_refused(h, "INVALID", cases[i].says, "schedule.put", "'name':'s%zu',%s," PLAN, i,
                          cases[i].more);
        } else {
            (void)house_ok(h, "schedule.put", "'name':'s%zu',%s," PLAN, i, cases[i].more);
        }
    }
    house_close(h);
}

static void orders_need_a_schedule(void **state)
{
    static const char *const orders[] = {"schedule.get", "schedule.pause", "schedule.resume",
                                         "schedule.trigger", "schedule.delete"};
    struct house *h = house_with_calc();

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        house_refused(h, "NOT_FOUND", "schedule 'x'", orders[i], "'name':'x'");
        house_refused(h, "INVALID", "name", orders[i], " ");
    }
    house_refused(h, "NOT_FOUND", "schedule 'x'", "schedule.backfill",
                  "'name':'x','from':'2023-01-01','to':'2023-01-02'");
    house_refused(h, "INVALID", "from", "schedule.backfill", "'name':'x'");
    house_close(h);
}

static void a_paused_schedule_does_not_fire(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN);
    house_says(h, house_ok(h, "schedule.pause", "'name':'s','reason':'lunch'"),
               "name=s; status=paused");
    house_says(h, house_event(h, "schedule_paused"), "name=s; reason=lunch");
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"),
               "schedule.status=paused; schedule.reason=lunch");
    house_wait(h, 3 * MINUTE);
    assert_int_equal(house_seen(h, "schedule_fired"), 0);
    house_says(h, house_ok(h, "schedule.resume", "'name':'s'"),
               "name=s; status=active; next=2023-11-14T22:17:00Z");
    house_wait(h, MINUTE);
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    house_says(h, house_ok(h, "schedule.pause", "'name':'s'"), "status=paused");
    house_says(h, house_ok(h, "schedule.pause", "'name':'s'"), "status=paused");
    house_close(h);
}

static void a_trigger_makes_one_plan_at_once(void **state)
{
    struct house *h = house_with_calc();
    const char *first;

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'@daily'," PLAN);
    first = house_ok(h, "schedule.trigger", "'name':'s','clientKey':'k'");
    house_says(h, first, "name=s; planId=*; existing=-; seq=*");
    house_says(h, house_ok(h, "schedule.trigger", "'name':'s','clientKey':'k'"),
               house_text(h, "planId=%s; existing=true", house_get(h, first, "planId")));
    house_refused(h, "CONFLICT", "open", "schedule.trigger", "'name':'s'");
    house_done(h, "calc", "'result':{'text':'1'}");
    (void)house_ok(h, "schedule.trigger", "'name':'s'");
    (void)house_ok(h, "schedule.pause", "'name':'s'");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", house_get(h, first, "planId")),
               "schedule=s; scheduledFor=-");
    house_close(h);
}

static void a_backfill_makes_the_plans_of_times_that_have_passed(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'0 * * * *','overlap':'allow'," PLAN);
    house_refused(h, "INVALID", "", "schedule.backfill",
                  "'name':'s','from':'2023-01-02','to':'2023-01-01'");
    house_refused(h, "INVALID", "", "schedule.backfill", "'name':'s','from':'x','to':'2023-01-01'");
    house_refused(h, "LIMIT", "1000", "schedule.backfill",
                  "'name':'s','from':'2020-01-01','to':'2020-02-12'");
    house_says(h,
               house_ok(h, "schedule.backfill",
                        "'name':'s','from':'2023-03-01T00:00','to':'2023-03-01T02:00'"),
               "name=s; times=3");
    house_wait(h, 1000);
    assert_int_equal(house_seen(h, "schedule_fired"), 3);
    house_says(h, house_event(h, "schedule_fired"), "scheduledFor=2023-03-01T02:00:00Z");
    house_close(h);
}

static void schedules_are_listed_in_pages(void **state)
{
    struct house *h = house_with_calc();
    const char *page;

    (void)state;
    for (int i = 0; i < 5; i++) {
        (void)house_ok(h, "schedule.put", "'name':'s%d','cron':'@daily'," PLAN, i);
    }
    page = house_ok(h, "schedule.list", "'limit':2");
    house_says(h, page,
               "schedules.#=2; schedules.0.name=s0; schedules.1.name=s1; "
               "schedules.0.next.#=1; cursor=*");
    page = house_ok(h, "schedule.list", "'limit':2,'cursor':%s", house_get(h, page, "cursor"));
    house_says(h, page, "schedules.#=2; schedules.0.name=s2; cursor=*");
    page = house_ok(h, "schedule.list", "'limit':2,'cursor':%s", house_get(h, page, "cursor"));
    house_says(h, page, "schedules.#=1; schedules.0.name=s4; cursor=-");
    house_says(h, house_ok(h, "schedule.list", "'limit':5"), "schedules.#=5; cursor=-");
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=5; cursor=-");
    house_refused(h, "INVALID", "limit", "schedule.list", "'limit':1001");
    (void)house_ok(h, "schedule.list", "'limit':1000");
    house_says(h, house_ok(h, "schedule.delete", "'name':'s2'"), "name=s2; openPlans=-");
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=4; schedules.2.name=s3");
    house_refused(h, "NOT_FOUND", "schedule 's2'", "schedule.get", "'name':'s2'");
    house_close(h);
}

static void a_deleted_schedule_leaves_its_open_plan(void **state)
{
    struct house *h = house_with_calc();
    const char *id;

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'@daily'," PLAN);
    id = house_get(h, house_ok(h, "schedule.trigger", "'name':'s'"), "planId");
    house_says(h, house_ok(h, "schedule.delete", "'name':'s'"), "openPlans=1");
    house_done(h, "calc", "'result':{'text':'1'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed; schedule=s");
    house_close(h);
}

static void a_schedule_is_somebodys(void **state)
{
    static const char *const orders[] = {"schedule.pause", "schedule.resume", "schedule.trigger",
                                         "schedule.delete"};
    struct house *h = house_with_calc();

    (void)state;
    (void)house_as(h, "submitter");
    (void)house_ok(h, "schedule.put", "'name':'hers','cron':'* * * * *'," PLAN);
    (void)house_as(h, "other");
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=0");
    house_refused(h, "NOT_FOUND", "schedule 'hers'", "schedule.get", "'name':'hers'");
    for (size_t i = 0; i < 4; i++) {
        house_refused(h, "NOT_FOUND", "schedule 'hers'", orders[i], "'name':'hers'");
    }
    house_says(h, house_ok(h, "schedule.put", "'name':'hers','cron':'@daily'," PLAN),
               "name=other:hers; existing=-; replaced=-"); /* one of its own */
    (void)house_ok(h, "schedule.delete", "'name':'hers'");
    (void)house_as(h, "reviewer"); /* sees it */
    house_says(h, house_ok(h, "schedule.get", "'name':'submitter:hers'"),
               "schedule.owner=submitter");
    for (size_t i = 0; i < 4; i++) {
        house_refused(h, "UNAUTHORIZED", "the schedule is of 'submitter'", orders[i],
                      "'name':'submitter:hers'");
    }
    house_refused(h, "UNAUTHORIZED", "the schedule is of 'submitter'", "schedule.put",
                  "'name':'submitter:hers','cron':'@daily'," PLAN);
    house_refused(h, "UNAUTHORIZED", "the schedule is of 'submitter'", "schedule.backfill",
                  "'name':'submitter:hers','from':'2023-01-01','to':'2023-01-02'");
    house_wait(h, MINUTE);
    (void)house_as(h, "submitter"); /* its plans are hers, too */
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=1; plans.0.owner=submitter");
    (void)house_as(h, "admin");
    (void)house_ok(h, "schedule.pause", "'name':'submitter:hers'");
    (void)house_ok(h, "schedule.delete", "'name':'submitter:hers'");
    house_close(h);
}

static void schedules_go_on_after_a_restart(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN);
    (void)house_ok(h, "schedule.put", "'name':'p','cron':'@daily'," PLAN);
    (void)house_ok(h, "schedule.pause", "'name':'p'");
    house_restart(h);
    house_join(h, "calc", 4);
    house_says(h, house_ok(h, "schedule.list", " "),
               "schedules.#=2; schedules.0.status=active; schedules.1.status=paused");
    house_wait(h, MINUTE);
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    house_close(h);
}

static void after_a_restart_only_its_own_plans_are_open(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'@daily'," PLAN);
    (void)house_submit(h, PLAN ",'clientKey':'schedule'");
    (void)house_submit(h, PLAN);
    (void)house_ok(h, "schedule.trigger", "'name':'s'");
    (void)house_submit(h, PLAN ",'clientKey':'k'");
    (void)house_submit(h, PLAN);
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"), "schedule.openPlans=1");
    house_restart(h);
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"), "schedule.openPlans=1");
    house_close(h);
}

static void the_configuration_and_clients_leave_each_others_schedules_alone(void **state)
{
    static const char body[] =
        "{\"name\":\"%s\",\"cron\":\"@daily\",\"plan\":{\"goal\":\"tick\",\"steps\":"
        "[{\"stepId\":\"a\",\"agentId\":\"calc\",\"skill\":\"do\",\"task\":\"t\"}]}}";
    struct house *h = house_with_calc();
    char mine[512];
    char theirs[512];
    const struct schedule_declared list[] = {{"ours", mine}, {"theirs", theirs}};
    struct bt_error err;

    (void)state;
    (void)snprintf(mine, sizeof mine, body, "ours");
    (void)snprintf(theirs, sizeof theirs, body, "theirs");
    (void)house_ok(h, "schedule.put", "'name':'theirs','everyMs':60000," PLAN);
    assert_int_equal(schedules_declare(h->schedules, list, 2, &err), BT_OK);
    house_cycle(h);
    house_says(h, house_ok(h, "schedule.get", "'name':'ours'"), "schedule.cron=@daily");
    house_says(h, house_ok(h, "schedule.get", "'name':'theirs'"), "schedule.everyMs=60000");
    house_refused(h, "CONFLICT", "the configuration declares", "schedule.put",
                  "'name':'ours','everyMs':60000," PLAN);
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=2; refused.#=1");
    (void)house_ok(h, "schedule.trigger", "'name':'ours'");
    assert_int_equal(schedules_declare(h->schedules, NULL, 0, &err), BT_OK);
    house_cycle(h);
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=1; schedules.0.name=theirs");
    (void)house_ok(h, "schedule.put", "'name':'ours','everyMs':60000," PLAN); /* it is free now */
    house_says(h, house_ok(h, "schedule.get", "'name':'ours'"), "schedule.owner=local");
    house_close(h);
}

static void a_full_disk_takes_no_schedule(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'@daily'," PLAN);
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.0.plan=-; schedules.0.name=s");
    engine_hold(h->engine, true);
    house_refused(h, "UNAVAILABLE", "", "schedule.put", "'name':'t','cron':'@daily'," PLAN);
    house_refused(h, "UNAVAILABLE", "", "schedule.trigger", "'name':'s'");
    engine_hold(h->engine, false);
    (void)house_ok(h, "schedule.put", "'name':'t','cron':'@daily'," PLAN);
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=2");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_is_put_shown_and_fires),
        cmocka_unit_test(the_same_again_changes_nothing_and_another_replaces),
        cmocka_unit_test(a_schedule_is_refused_by_what_is_wrong_with_it),
        cmocka_unit_test(times_and_windows_have_their_least),
        cmocka_unit_test(orders_need_a_schedule),
        cmocka_unit_test(a_paused_schedule_does_not_fire),
        cmocka_unit_test(a_trigger_makes_one_plan_at_once),
        cmocka_unit_test(a_backfill_makes_the_plans_of_times_that_have_passed),
        cmocka_unit_test(schedules_are_listed_in_pages),
        cmocka_unit_test(a_deleted_schedule_leaves_its_open_plan),
        cmocka_unit_test(a_schedule_is_somebodys),
        cmocka_unit_test(schedules_go_on_after_a_restart),
        cmocka_unit_test(after_a_restart_only_its_own_plans_are_open),
        cmocka_unit_test(the_configuration_and_clients_leave_each_others_schedules_alone),
        cmocka_unit_test(a_full_disk_takes_no_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
