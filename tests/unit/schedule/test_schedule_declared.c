/* Schedules of the configuration: which are put, wait, are refused and go, and what becomes of a
 * schedule in a journal that cannot give it back. The house begins at 2023-11-14T22:13:20Z. */
#include <stdio.h>
#include <string.h>

#include "supervisor/schedule/schedules.h"
#include "tests/support/house/house.h"

#define STEP(agent) "{'stepId':'a','agentId':'" agent "','skill':'do','task':'t'}"
#define PLAN(agent) "'plan':{'goal':'tick','steps':[" STEP(agent) "]}"

enum { SECOND = 1000, MINUTE = 60 * SECOND, LIST_MAX = 8 };

static struct schedule_declared list[LIST_MAX];

static struct house *house_with_calc(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 8);
    return h;
}

/* The body of the i-th, with "'" for '"'. */
static void write_one(struct house *h, uint32_t i, const char *name, const char *more)
{
    list[i] = (struct schedule_declared){name, house_text(h, "{'name':'%s',%s}", name, more)};
}

static void declare(struct house *h, uint32_t n)
{
    struct bt_error err;

    assert_int_equal(schedules_declare(h->schedules, list, n, &err), BT_OK);
}

static const char *names(struct house *h)
{
    const char *all = house_ok(h, "schedule.list", " ");
    const char *text = "";

    for (int i = 0; house_get(h, all, house_text(h, "schedules.%d.name", i)) != NULL; i++) {
        text =
            house_text(h, "%s%s ", text, house_get(h, all, house_text(h, "schedules.%d.name", i)));
    }
    return text;
}

static void pass(struct house *h, msec ms)
{
    h->wall += ms;
    house_cycle(h);
}

static void what_is_declared_is_there_and_acts_as_the_operator(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    write_one(h, 0, "a", "'cron':'* * * * *'," PLAN("calc"));
    write_one(h, 1, "b", "'cron':'@daily'," PLAN("calc"));
    declare(h, 2);
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) <= h->now);
    house_cycle(h);
    assert_string_equal(names(h), "a b ");
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) == h->now + 40 * SECOND);
    house_says(h, house_ok(h, "schedule.get", "'name':'a'"),
               "schedule.owner=(configuration); schedule.status=active");
    pass(h, 40 * SECOND);
    house_says(h,
               house_ok(h, "plan.get", "'planId':'%s'",
                        house_get(h, house_event(h, "schedule_fired"), "firedPlanId")),
               "owner=local; schedule=a");
    declare(h, 2); /* the same again changes nothing */
    house_cycle(h);
    house_says(h, house_ok(h, "schedule.get", "'name':'a'"), "schedule.fired=1");
    write_one(h, 0, "a", "'cron':'@weekly'," PLAN("calc"));
    declare(h, 1);
    house_cycle(h);
    assert_string_equal(names(h), "a ");
    house_says(h, house_ok(h, "schedule.get", "'name':'a'"),
               "schedule.cron=@weekly; schedule.fired=1");
    house_refused(h, "CONFLICT", "take it out there", "schedule.delete", "'name':'a'");
    (void)house_ok(h, "schedule.pause", "'name':'a'");
    house_restart(h);
    house_join(h, "calc", 8);
    declare(h, 1);
    house_cycle(h);
    house_says(h, house_ok(h, "schedule.get", "'name':'a'"),
               "schedule.status=paused; schedule.owner=(configuration)");
    declare(h, 0);
    house_cycle(h);
    assert_string_equal(names(h), "");
    assert_true(schedules_deadline(h->schedules, h->now, h->wall) == MSEC_NEVER);
    house_close(h);
}

/* It was refused for good. */
static void one_whose_agents_may_still_register_waits_for_them_as_long_as_a_lease(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        struct house *h = house_with_calc();
        house_restart(h);
        house_join(h, "calc", 8);
        write_one(h, 0, "a", "'cron':'@daily'," PLAN("late"));
        write_one(h, 1, "b", "'cron':'@daily'," PLAN("calc"));
        declare(h, 2);
        house_cycle(h);
        assert_string_equal(names(h), "b ");
        house_says(h, house_ok(h, "schedule.list", " "), "refused=-");
        assert_true(schedules_deadline(h->schedules, h->now, h->wall) == h->now + SECOND);
        house_wait(h, HOUSE_LEASE_MS - 1);
        house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=1; refused=-");
        if (comes == 1) {
            house_join(h, "late", 1);
        }
        house_wait(h, SECOND);
        assert_string_equal(names(h), comes == 1 ? "b a " : "b ");
        house_says(h, house_ok(h, "schedule.list", " "),
                   comes == 1 ? "refused=-"
                              : "refused.#=1; refused.0.name=a; refused.0.error=~late");
        assert_true(schedules_deadline(h->schedules, h->now, h->wall) > h->now + MINUTE);
        house_close(h);
    }
}

static void one_that_is_wrong_is_refused_with_the_reason_and_the_others_are_put(void **state)
{
    struct house *h = house_with_calc();

    (void)state;
    write_one(h, 0, "a", "'cron':'61 * * * *'," PLAN("calc"));
    write_one(h, 1, "b", "'cron':'@daily'," PLAN("nobody"));
    write_one(h, 2, "c", "'cron':'@daily'," PLAN("calc"));
    list[3] = (struct schedule_declared){"d", "no JSON"};
    list[4] = (struct schedule_declared){"e", "{\"name\":7}"};
    declare(h, 5);
    house_cycle(h);
    assert_string_equal(names(h), "c ");
    house_says(
        h, house_ok(h, "schedule.list", " "),
        "refused.#=4; refused.0.name=a; refused.0.error=~'61' does not fit; refused.1.name=b; "
        "refused.1.error=~nobody; refused.2.name=d; refused.3.name=e; refused.3.error=~name");
    house_says(h, house_ok(h, "schedule.list", "'cursor':1,'limit':1"), "refused=-");
    (void)house_as(h, "submitter"); /* it does not see the operator's */
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=0; refused=-");
    (void)house_as(h, "observer");
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=1; refused.#=4");
    (void)house_as(h, NULL);
    declare(h, 3);
    house_cycle(h);
    house_says(h, house_ok(h, "schedule.list", " "), "schedules.#=1; refused.#=2");
    struct msg_schedule_refused one[1];
    assert_int_equal(schedules_refused(h->schedules, one, 1), 1);
    assert_true(str_is(one[0].name, "a"));
    assert_int_equal(schedules_refused(h->schedules, one, 0), 0);
    house_close(h);
}

/* ---- the journal ---- */

static uint64_t store(struct house *h, const char *name, const struct journal_schedule *row)
{
    struct journal_schedule copy = *row;
    struct bt_error err;
    uint64_t ix;

    copy.name = str_from(name);
    assert_int_equal(journal_schedule_put(h->journal, &copy, &ix, &err), BT_OK);
    return ix;
}

static struct str packed(struct house *h, const char *json)
{
    const struct str text = str_from(house_text(h, "%s", json));
    struct buf out;
    struct bt_error err;
    struct str ret;

    buf_init(&out, json_doc_capacity(text.len));
    assert_int_equal(json_to_doc(text, NULL, &out, &err), BT_OK);
    ret = arena_str(&h->arena, buf_str(&out));
    buf_done(&out);
    return ret;
}

static void a_rule_or_state_that_cannot_be_read_is_paused_with_the_reason(void **state)
{
    static const struct {
        const char *rule, *state, *says; /* NULL: as it was */
    } cases[] = {
        {"{'cron':'61 * * * *','overlap':'skip'}", NULL, "does not fit: expected 0 to 59"},
        {"{'cron':'@daily','overlap':'often'}", NULL, "the rule of the schedule"},
        {"{'cron':'@daily'}", NULL, "the rule of the schedule"},
        {"{'cron':'@daily','overlap':'skip','tz':'Mars/Base'}", NULL, "tz"},
        {"{'cron':7}", NULL, "cron"},
        {NULL, "{'cursor':1,'status':'active','lastPlan':'x'}", "the state of the schedule"},
        {NULL, "{'status':'active'}", "cursor"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = house_with_calc();
        struct journal_schedule row;
        struct bt_error err;
        (void)house_ok(h, "schedule.put", "'name':'good','cron':'* * * * *'," PLAN("calc"));
        assert_int_equal(journal_schedule_by_name(h->journal, STR_LIT("good"), &row, &err), BT_OK);
        row.rule = cases[i].rule != NULL ? packed(h, cases[i].rule) : row.rule;
        row.state = cases[i].state != NULL ? packed(h, cases[i].state) : row.state;
        (void)store(h, "bad", &row);
        house_cycle(h);
        assert_int_equal(journal_commit(h->journal, &err), BT_OK);
        house_restart(h);
        house_join(h, "calc", 8);
        pass(h, 40 * SECOND);
        assert_int_equal(house_seen(h, "schedule_fired"), 1); /* that one goes on */
        struct schedule *p = schedules_find(h->schedules, STR_LIT("bad"));
        assert_non_null(p);
        assert_string_equal(schedule_status(p), "paused");
        if (cases[i].rule == NULL || strstr(cases[i].rule, ":7") == NULL) {
            house_says(h, house_ok(h, "schedule.get", "'name':'bad'"),
                       house_text(h, "schedule.reason=~%s; schedule.owner=local", cases[i].says));
        }
        (void)house_ok(h, "schedule.delete", "'name':'bad'");
        house_close(h);
    }
}

/* The plan of a time that was deleted is not made again; its time counts as fired. */
static void the_key_of_a_plan_that_was_deleted_is_used(void **state)
{
    struct house *h = house_with_calc();
    const char *id;

    (void)state;
    (void)house_ok(h, "schedule.put", "'name':'s','cron':'0 * * * *'," PLAN("calc"));
    (void)house_ok(h, "schedule.backfill",
                   "'name':'s','from':'2023-01-01T01:00','to':'2023-01-01T01:00'");
    house_cycle(h);
    id = house_get(h, house_event(h, "schedule_fired"), "firedPlanId");
    house_done(h, "calc", "'result':{'text':'1'}");
    house_wait(h, 5 * SECOND);
    (void)house_ok(h, "plan.delete", "'planId':'%s'", id);
    (void)house_ok(h, "schedule.backfill",
                   "'name':'s','from':'2023-01-01T01:00','to':'2023-01-01T02:00'");
    house_cycle(h);
    assert_int_equal(house_seen(h, "schedule_fired"), 2);
    house_says(h, house_event(h, "schedule_fired"), "scheduledFor=2023-01-01T02:00:00Z");
    house_says(h, house_ok(h, "schedule.get", "'name':'s'"),
               "schedule.fired=2; schedule.skipped=-; schedule.failures=-");
    house_close(h);
}

static void a_plan_that_cannot_be_looked_up_ends_the_daemon_and_fires_once(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        struct house *h = house_with_calc();
        (void)house_ok(h, "schedule.put", "'name':'s','cron':'* * * * *'," PLAN("calc"));
        house_fail_read(h, n);
        pass(h, 40 * SECOND);
        house_fail_read(h, 0);
        if (h->dead) {
            assert_non_null(strstr(h->why.msg, "the disk cannot be read"));
            house_restart(h);
            house_join(h, "calc", 8);
            house_cycle(h);
            assert_int_equal(house_seen(h, "schedule_fired"), 1);
        }
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_declared_is_there_and_acts_as_the_operator),
        cmocka_unit_test(one_whose_agents_may_still_register_waits_for_them_as_long_as_a_lease),
        cmocka_unit_test(one_that_is_wrong_is_refused_with_the_reason_and_the_others_are_put),
        cmocka_unit_test(a_rule_or_state_that_cannot_be_read_is_paused_with_the_reason),
        cmocka_unit_test(the_key_of_a_plan_that_was_deleted_is_used),
        cmocka_unit_test(a_plan_that_cannot_be_looked_up_ends_the_daemon_and_fires_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
