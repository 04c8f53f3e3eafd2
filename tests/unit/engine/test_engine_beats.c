/* Heartbeats, and the ends of plans in quarantine: what nobody asks an engine for. */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

#define ONE(goal)                                                                                  \
    "'plan':{'goal':'" goal                                                                        \
    "','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'do it'}]}"

static void the_heart_beats_once_a_second_and_tells_the_newest_event(void **state)
{
    struct house *h = house_open();
    uint32_t before;

    (void)state;
    house_join(h, "calc", 1);
    house_wait(h, 1000);
    before = house_seen(h, "heartbeat");
    for (int i = 0; i < 10; i++) {
        house_wait(h, 300);
    }
    assert_in_range(house_seen(h, "heartbeat") - before, 2, 4);
    (void)house_submit(h, ONE("g"));
    house_wait(h, 1000);
    {
        char want[60];
        (void)snprintf(want, sizeof want, "lastSeq=%llu",
                       (unsigned long long)journal_committed_seq(h->journal));
        house_says(h, house_event(h, "heartbeat"), want);
    }
    house_close(h);
}

static bool count_end(const struct journal_row *row, void *self)
{
    uint32_t *n = self;

    *n += str_is(row->type, "plan_completed");
    return true;
}

static uint32_t ends_of(struct house *h, uint64_t ix)
{
    struct bt_error err;
    uint32_t n = 0;

    assert_int_equal(journal_events(h->journal, 1, ix, 999, count_end, &n, &err), BT_OK);
    return n;
}

static void each_plan_in_quarantine_ends_once_however_often_the_daemon_starts(void **state)
{
    struct house *h = house_open();
    struct bt_error err;
    char ids[3][UUID_TEXT_LEN + 1];

    (void)state;
    house_join(h, "calc", 3);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%s", house_submit(h, ONE("g")));
    }
    for (uint64_t ix = 1; ix <= 2; ix++) {
        assert_int_equal(journal_quarantine(h->journal, ix, STR_LIT("it crashed"), &err), BT_OK);
    }
    assert_int_equal(journal_commit(h->journal, &err), BT_OK);
    for (int starts = 0; starts < 3; starts++) {
        house_restart(h);
        assert_int_equal(ends_of(h, 1), 1);
        assert_int_equal(ends_of(h, 2), 1);
        assert_int_equal(ends_of(h, 3), 0);
    }
    for (int i = 0; i < 2; i++) {
        house_says(h, house_ok(h, "plan.get", "'planId':'%s'", ids[i]),
                   "status=quarantined; failureReason=~it crashed");
    }
    house_join(h, "calc", 1);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", ids[2]), "status=running");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heart_beats_once_a_second_and_tells_the_newest_event),
        cmocka_unit_test(each_plan_in_quarantine_ends_once_however_often_the_daemon_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
