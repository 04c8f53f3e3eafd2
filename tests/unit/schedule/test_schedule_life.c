/* What becomes of a schedule: its times, plans, holds, failures and orders, over the daemon's rooms
 * in one process. The house begins at 2023-11-14T22:13:20Z; its first full minute is 40 s later. */
#include <stdio.h>
#include <string.h>

#include "supervisor/auth/sessions.h"
#include "supervisor/schedule/schedules.h"
#include "tests/support/house/house.h"

#define STEP "{'stepId':'a','agentId':'calc','skill':'do','task':'t'}"
#define PLAN "'plan':{'goal':'tick','steps':[" STEP "]}"
#define ASKED                                                                                      \
    "'plan':{'goal':'tick','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t',"       \
    "'requiresApproval':true}]}"
#define SKILL(id) "'skills':[{'id':'" id "','description':'D'}]"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, TO_MINUTE = 40 * SECOND };

static struct house *house_with_calc(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 8);
    return h;
}

static const char *view(struct house *h, const char *name)
{
    return house_get(h, house_ok(h, "schedule.get", "'name':'%s','next':3,'document':true", name),
                     "schedule");
}

static const char *last_plan(struct house *h)
{
    return house_get(h, house_event(h, "schedule_fired"), "firedPlanId");
}

/* Time for the clock on the wall alone: agents need no heartbeats. */
static void pass(struct house *h, msec ms)
{
    h->wall += ms;
    house_cycle(h);
}

static void done(struct house *h)
{
    house_done(h, "calc", "'result':{'text':'1'}");
    house_cycle(h);
}

static void failed(struct house *h)
{
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_cycle(h);
}

/* The agent comes back with this skill alone. */
static void comes_back(struct house *h, const char *skills)
{
    const struct house_agent *a = &h->agents[h->agents_n - 1];

    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                   (unsigned long long)a->epoch);
    h->agents[h->agents_n - 1].silent = true;
    house_join_as(h, "calc", 8, skills, "");
}

/* ---- what it keeps ---- */

static void all_that_a_schedule_is_outlives_the_daemon(void **state)
{
    static const char *const names[] = {"cron", "at", "every", "paused", "queued", "failing"};
    struct house *h = house_with_calc();
    const char *before[6];

    (void)state;
    (void)house_ok(
        h, "schedule.put",
        "'name':'cron','cron':'30 5 * * 1-5','tz':'Asia/Kathmandu','overlap':'allow',"
        "'catchUpMs':7200000,'jitterMs':60000,'endAt':'2030-01-01T00:00','maxFailures':7,"
        "'plan':{'recipe':{'name':'r'},'inputs':{'type':'object','properties':{'who':"
        "{'type':'string'}}},'steps':[" STEP "]},'inputs':{'who':'ann'},'policy':"
        "{'maxConcurrency':1}");
    (void)house_ok(h, "schedule.put",
                   "'name':'at','at':'2023-12-24T18:00','overlap':'cancel'," PLAN);
    (void)house_ok(h, "schedule.put",
                   "'name':'every','everyMs':86400000,'goal':'do the thing','planner':'keyword'");
    (void)house_ok(h, "schedule.put", "'name':'paused','cron':'@daily'," PLAN);
    (void)house_ok(h, "schedule.pause", "'name':'paused','reason':'lunch'");
    (void)house_ok(h, "schedule.put", "'name':'failing','cron':'@daily'," PLAN);
    (void)house_ok(h, "schedule.trigger", "'name':'failing'");
    failed(h);
    (void)house_ok(h, "schedule.put",
                   "'name':'queued','cron':'* * * * *','overlap':'queue'," ASKED);
    pass(h, TO_MINUTE);
    pass(h, 2 * MINUTE);
    (void)house_ok(h, "schedule.backfill",
                   "'name':'queued','from':'2023-01-01T00:00','to':'2023-01-01T00:09'");
    house_says(h, view(h, "cron"),
               "name=cron; owner=local; status=active; reason=-; cron=30 5 * * 1-5; everyMs=-; "
               "at=-; tz=Asia/Kathmandu; overlap=allow; catchUpMs=7200000; jitterMs=60000; "
               "endAt=2030-01-01T00:00; maxFailures=7; next.#=3; next.0=2023-11-15T05:30:00+05:45; "
               "next.1=2023-11-16T05:30:00+05:45; lastTime=-; lastPlanId=-; openPlans=-; fired=-; "
               "skipped=-; failures=-; backfillFrom=-; backfillTo=-; "
               "createdAt=2023-11-15T03:58:20+05:45; plan.recipe.name=r; inputs.who=ann; goal=-; "
               "planner=-; policy.maxConcurrency=1");
    house_says(h, view(h, "at"),
               "status=active; at=2023-12-24T18:00; cron=-; everyMs=-; tz=UTC; overlap=cancel; "
               "catchUpMs=3600000; jitterMs=-; endAt=-; maxFailures=-; next.#=1; "
               "next.0=2023-12-24T18:00:00Z; createdAt=2023-11-14T22:13:20Z; plan.goal=tick; "
               "inputs=-; policy=-");
    house_says(h, view(h, "every"),
               "everyMs=86400000; cron=-; at=-; overlap=skip; next.#=3; "
               "next.0=2023-11-15T00:00:00Z; goal=do the thing; planner=keyword; plan=-");
    house_says(h, view(h, "paused"), "status=paused; reason=lunch; next.#=3");
    house_says(h, view(h, "failing"), "failures=1; fired=1; lastPlanId=*; lastTime=-; openPlans=-");
    house_says(h, view(h, "queued"),
               "fired=1; openPlans=1; lastTime=2023-11-14T22:14:00Z; lastPlanId=*; skipped=-; "
               "backfillFrom=2023-01-01T00:00:00Z; backfillTo=2023-01-01T00:09:00Z; "
               "next.0=2023-11-14T22:17:00Z");
    for (size_t i = 0; i < 6; i++) {
        before[i] = view(h, names[i]);
    }
    house_restart(h);
    house_join(h, "calc", 8);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(view(h, names[i]), before[i]);
    }
    for (int i = 0; i < 3; i++) { /* the queue goes on, then the range */
        static const char *const next[] = {"scheduledFor=2023-11-14T22:15:00Z; kind=time",
                                           "scheduledFor=2023-11-14T22:16:00Z; kind=time",
                                           "scheduledFor=2023-01-01T00:00:00Z; kind=backfill"};
        (void)house_ok(h, "plan.cancel", "'planId':'%s'",
                       house_get(h, view(h, "queued"), "lastPlanId"));
        house_cycle(h);
        house_says(h, house_event(h, "schedule_fired"), next[i]);
    }
    house_says(h, view(h, "queued"), "backfillFrom=2023-01-01T00:00:00.001Z; fired=4");
    house_close(h);
}

static void a_fixed_time_fires_once_and_has_ended(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','at':'2023-11-14T22:14:00Z'," PLAN);
    pass(h, TO_MINUTE);
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    house_says(h, view(h, "s"), "status=ended; next=-; fired=1; openPlans=1");
    done(h);
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) == MSEC_NEVER);
    house_restart(h);
    house_join(h, "calc", 8);
    house_says(h, view(h, "s"), "status=ended; next=-; fired=1");
    house_refused(h, "INVALID", "has passed", "schedule.put",
                  "'name':'s','at':'2023-11-14T22:14:00Z','goal':'another'");
    (void)house_ok(h, "schedule.put", "'name':'s','at':'2023-11-14T22:15:00Z'," PLAN);
    house_says(h, view(h, "s"), "status=active; next.#=1; fired=1");
    pass(h, MINUTE);
    house_says(h, view(h, "s"), "status=ended; fired=2; lastTime=2023-11-14T22:15:00Z");
    (void)house_ok(h, "schedule.resume", "'name':'s'"); /* it is not paused */
    house_says(h, view(h, "s"), "status=ended");
    house_close(h);
}

static void what_goes_on_from_the_schedule_that_is_replaced(void **state)
{
    struct house *h = house_with_calc();
    const char *plan;

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN);
    pass(h, TO_MINUTE);
    pass(h, MINUTE);
    plan = last_plan(h);
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'*/2 * * * *'," PLAN);
    house_says(h, view(h, "s"),
               house_text(h,
                          "fired=1; skipped=1; openPlans=1; lastPlanId=%s; "
                          "lastTime=2023-11-14T22:14:00Z; createdAt=2023-11-14T22:13:20Z; "
                          "status=active; reason=-",
                          plan));
    (void)house_ok(h, "schedule.pause", "'name':'s','reason':'lunch'");
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'*/3 * * * *'," PLAN);
    house_says(h, view(h, "s"), "status=paused; reason=lunch; cron=*/3 * * * *");
    (void)house_ok(h, "schedule.resume", "'name':'s'");
    house_says(h, view(h, "s"), "status=active; reason=-");
    done(h); /* its plan is still its own */
    house_says(h, view(h, "s"), "openPlans=-");
    house_close(h);
}

/* A range that is being made up for goes on when only the plan is another one. */
static void a_range_goes_on_with_the_same_rule_and_ends_with_another(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'0 * * * *','overlap':'queue'," PLAN);
    (void)house_ok(h, "schedule.backfill",
                   "'name':'s','from':'2023-01-01T01:00','to':'2023-01-01T03:00'");
    house_cycle(h);
    house_says(h, view(h, "s"), "openPlans=1; backfillTo=2023-01-01T03:00:00Z");
    house_refused(h, "CONFLICT", "not over", "schedule.backfill",
                  "'name':'s','from':'2023-01-01T01:00','to':'2023-01-01T03:00'");
    house_says(h,
               house_ok(h, "schedule.put",
                        "'name':'s','cron':'0 * * * *','overlap':'queue','goal':'do the thing'"),
               "replaced=true");
    house_says(h, view(h, "s"), "backfillTo=2023-01-01T03:00:00Z; openPlans=1");
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'1 * * * *','overlap':'queue'," PLAN);
    house_says(h, view(h, "s"), "backfillTo=-; openPlans=1");
    house_close(h);
}

/* ---- overlaps ---- */

static void times_of_a_queue_fire_one_after_the_other(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *','overlap':'queue'," PLAN);
    for (int i = 0; i < 121; i++) {
        pass(h, i == 0 ? TO_MINUTE : MINUTE);
    } /* the window is an hour: what is in the queue stays */
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    house_says(h, view(h, "s"), "skipped=20"); /* 121 times, of which one runs and a hundred wait */
    house_says(h, house_event(h, "schedule_skipped"),
               "kind=queue_full; scheduledFor=2023-11-14T22:34:00Z; count=1; until=-");
    for (uint32_t i = 2; i <= 101; i++) {
        done(h);
        assert_int_equal(house_seen(h, "schedule_fired"), i);
    }
    house_says(h, house_event(h, "schedule_fired"), "scheduledFor=2023-11-15T00:14:00Z");
    done(h);
    assert_int_equal(house_seen(h, "schedule_fired"), 101);
    house_close(h);
}

static void the_open_plans_are_cancelled_when_the_next_time_comes(void **state)
{
    struct house *h = house_with_calc();
    const char *first;

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'other','cron':'@yearly','overlap':'allow'," PLAN);
    (void)house_ok(h, "schedule.trigger", "'name':'other'");
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *','overlap':'allow'," PLAN);
    (void)house_ok(h, "schedule.trigger", "'name':'s'");
    pass(h, TO_MINUTE);
    first = last_plan(h);
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *','overlap':'cancel'," PLAN);
    house_says(h, view(h, "s"), "openPlans=2");
    pass(h, MINUTE - 1);
    assert_int_equal(house_seen(h, "plan_cancelling"), 0);
    pass(h, 1);
    house_wait(h, 3 * SECOND);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", first), "status=cancelled");
    house_says(h, view(h, "s"), "openPlans=1; fired=3; lastTime=2023-11-14T22:15:00Z; skipped=-");
    house_says(h, view(h, "other"), "openPlans=1"); /* what is another's goes on */
    house_close(h);
}

/* ---- failures ---- */

static void as_many_failures_in_a_row_as_the_limit_pause_it(void **state)
{
    struct house *h = house_with_calc();
    const char *plan;

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *','maxFailures':2," PLAN);
    pass(h, TO_MINUTE);
    failed(h);
    house_says(h, view(h, "s"), "failures=1; status=active");
    pass(h, MINUTE);
    done(h); /* in a row: this one begins it anew */
    house_says(h, view(h, "s"), "failures=-");
    pass(h, MINUTE);
    failed(h);
    pass(h, MINUTE);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", last_plan(h)); /* that is no failure */
    house_wait(h, 3 * SECOND);
    house_says(h, view(h, "s"), "failures=1; openPlans=-");
    house_failed(h, "calc", "PERMISSION_DENIED", false); /* it comes too late */
    pass(h, MINUTE - 3 * SECOND);
    plan = last_plan(h);
    assert_int_equal(house_seen(h, "schedule_paused"), 0);
    failed(h);
    house_says(h, view(h, "s"),
               house_text(h, "failures=2; status=paused; reason=~the last: plan %s", plan));
    house_says(h, house_event(h, "schedule_paused"),
               "name=s; kind=failures; reason=~2 plans failed in a row, the limit");
    house_restart(h);
    house_join(h, "calc", 8);
    house_says(h, view(h, "s"), "failures=2; status=paused");
    (void)house_ok(h, "schedule.resume", "'name':'s'");
    house_says(h, view(h, "s"), "failures=-; status=active; reason=-");
    house_close(h);
}

static void one_failure_is_one_and_without_a_limit_none_pauses_it(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'one','cron':'@yearly','maxFailures':1," PLAN);
    (void)house_ok(h, "schedule.trigger", "'name':'one'");
    failed(h);
    house_says(h, view(h, "one"), "status=paused; reason=~1 plan failed in a row");
    (void)house_ok(h, "schedule.put", "'name':'any','cron':'@yearly'," PLAN);
    for (uint32_t i = 1; i <= 3; i++) {
        (void)house_ok(h, "schedule.trigger", "'name':'any'");
        failed(h);
        house_says(h, view(h, "any"), house_text(h, "status=active; failures=%u", i));
    }
    house_close(h);
}

/* ---- what holds a time ---- */

static void a_missing_skill_is_waited_for_a_minute_and_no_longer(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'0 * * * *'," PLAN);
    (void)house_ok(h, "schedule.put", "'name':'short','cron':'0 * * * *','catchUpMs':10000," PLAN);
    comes_back(h, SKILL("other"));
    pass(h, TO_MINUTE + 46 * MINUTE); /* 23:00:00 */
    pass(h, 10 * SECOND);
    assert_int_equal(house_seen(h, "schedule_skipped"), 0);
    pass(h, 1); /* later than its window */
    assert_int_equal(house_seen(h, "schedule_skipped"), 0);
    pass(h, SECOND - 1); /* it is looked at each second */
    house_says(h, house_event(h, "schedule_skipped"),
               "name=short; kind=missed; scheduledFor=2023-11-14T23:00:00Z");
    pass(h, 49 * SECOND); /* 23:01:00 */
    assert_int_equal(house_seen(h, "schedule_skipped"), 1);
    pass(h, SECOND);
    house_says(h, house_event(h, "schedule_skipped"),
               "name=s; kind=invalid; scheduledFor=2023-11-14T23:00:00Z; reason=~skill; count=1; "
               "until=-");
    house_says(h, view(h, "s"), "skipped=1; failures=1; fired=-; status=active");
    comes_back(h, SKILL("do"));
    pass(h, 58 * MINUTE + 59 * SECOND);
    assert_int_equal(house_seen(h, "schedule_fired"), 2); /* 0:00 */
    house_says(h, view(h, "s"), "skipped=1; fired=1; lastTime=2023-11-15T00:00:00Z");
    house_close(h);
}

static void a_skill_that_comes_within_the_minute_is_in_time(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'0 * * * *'," PLAN);
    comes_back(h, SKILL("other"));
    for (int i = 0; i < 2; i++) { /* the second wait is as long as the first */
        pass(h, (i == 0 ? TO_MINUTE + 46 * MINUTE : HOUR - 59 * SECOND) + 58 * SECOND);
        comes_back(h, SKILL("do"));
        pass(h, SECOND);
        assert_int_equal(house_seen(h, "schedule_fired"), i + 1);
        done(h);
        comes_back(h, SKILL("other"));
    }
    house_says(h, view(h, "s"), "skipped=-; failures=-; fired=2");
    house_close(h);
}

static void times_that_no_plan_can_be_made_of_pause_it_like_failures(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put",
                   "'name':'s','cron':'* * * * *','maxFailures':2,'catchUpMs':10000," PLAN);
    comes_back(h, SKILL("other"));
    pass(h, TO_MINUTE + MINUTE);
    house_says(h, view(h, "s"), "status=active");
    pass(h, 2 * MINUTE);
    house_says(h, view(h, "s"), "fired=-");
    house_close(h);
}

static void without_room_a_time_is_tried_each_second(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *id;

    (void)state;
    opt.plans_max = 1;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'0 * * * *'," PLAN);
    (void)house_ok(h, "schedule.put", "'name':'late','cron':'30 * * * *','catchUpMs':600000," PLAN);
    id = house_submit(h, PLAN);
    pass(h, TO_MINUTE + 46 * MINUTE + 5 * MINUTE); /* longer than for an agent */
    assert_int_equal(house_seen(h, "schedule_fired"), 0);
    house_says(h, house_event(h, "schedule_skipped"), "name=late; kind=missed");
    assert_int_equal(house_seen(h, "schedule_skipped"), 1);
    pass(h, 1);
    done(h);
    assert_int_equal(house_seen(h, "schedule_fired"), 0);
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) == h->now + SECOND - 1);
    pass(h, SECOND - 2);
    assert_int_equal(house_seen(h, "schedule_fired"), 0);
    pass(h, 1);
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(h);
}

static void nothing_fires_while_the_disk_is_full_or_the_daemon_stops(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN);
    engine_hold(h->engine, true);
    pass(h, TO_MINUTE + 10 * SECOND);
    assert_int_equal(house_seen(h, "schedule_fired"), 0);
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) == h->now + SECOND);
    engine_hold(h->engine, false);
    house_cycle(h);
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    done(h);
    engine_drain(h->engine);
    pass(h, 5 * MINUTE);
    assert_int_equal(house_seen(h, "schedule_fired"), 1);
    house_close(h);
}

static void a_schedule_has_the_quota_of_its_owner(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_as(h, "poor"); /* one plan at a time */
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *','overlap':'allow'," PLAN);
    (void)house_as(h, NULL);
    pass(h, TO_MINUTE + MINUTE);
    house_says(h, view(h, "poor:s"), "fired=1; skipped=-");
    done(h);
    house_wait(h, SECOND);
    house_says(h, view(h, "poor:s"), "fired=2; lastTime=2023-11-14T22:15:00Z; owner=poor");
    house_close(h);
}

static void a_schedule_whose_owner_is_gone_is_paused(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    (void)house_as(h, "submitter");
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN);
    (void)house_as(h, NULL);
    (void)sessions_set(h->opt.sessions, NULL, 0, (struct session_time){h->now, h->wall});
    pass(h, TO_MINUTE);
    house_says(h, view(h, "submitter:s"),
               "status=paused; reason=~its owner, the credential 'submitter'; fired=-; skipped=-; "
               "failures=-");
    house_says(h, house_event(h, "schedule_paused"), "kind=owner; name=submitter:s");
    house_close(h);
}

static void a_cycle_makes_sixty_four_plans(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.plans_max = 200;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    for (int i = 0; i < 70; i++) {
        (void)house_ok(h, "schedule.put", "'name':'s%d','cron':'* * * * *'," PLAN, i);
    }
    h->now += TO_MINUTE;
    h->wall += TO_MINUTE;
    house_cycle_once(h);
    assert_int_equal(house_seen(h, "schedule_fired"), 64);
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) == h->now);
    house_cycle_once(h);
    assert_int_equal(house_seen(h, "schedule_fired"), 70);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_a_schedule_is_outlives_the_daemon),
        cmocka_unit_test(a_fixed_time_fires_once_and_has_ended),
        cmocka_unit_test(what_goes_on_from_the_schedule_that_is_replaced),
        cmocka_unit_test(a_range_goes_on_with_the_same_rule_and_ends_with_another),
        cmocka_unit_test(times_of_a_queue_fire_one_after_the_other),
        cmocka_unit_test(the_open_plans_are_cancelled_when_the_next_time_comes),
        cmocka_unit_test(as_many_failures_in_a_row_as_the_limit_pause_it),
        cmocka_unit_test(one_failure_is_one_and_without_a_limit_none_pauses_it),
        cmocka_unit_test(a_missing_skill_is_waited_for_a_minute_and_no_longer),
        cmocka_unit_test(a_skill_that_comes_within_the_minute_is_in_time),
        cmocka_unit_test(times_that_no_plan_can_be_made_of_pause_it_like_failures),
        cmocka_unit_test(without_room_a_time_is_tried_each_second),
        cmocka_unit_test(nothing_fires_while_the_disk_is_full_or_the_daemon_stops),
        cmocka_unit_test(a_schedule_has_the_quota_of_its_owner),
        cmocka_unit_test(a_schedule_whose_owner_is_gone_is_paused),
        cmocka_unit_test(a_cycle_makes_sixty_four_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
