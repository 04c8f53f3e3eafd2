/* Projections that are kept between reads: how many, and which one makes room. */
#include "tests/support/house/house.h"

#define ONE "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t'}]}"

enum { KEPT_OPEN = 64, KEPT_ENDED = 8, PLANS = KEPT_OPEN + 1 };

static struct house *open_house(void)
{
    struct engine_options opt = house_options();

    opt.plans_max = PLANS + 8;
    return house_open_with(&opt);
}

/* How many reads of the journal it takes to look at the plan. */
static uint32_t look(struct house *h, const char *id)
{
    house_fail_read(h, 0);
    (void)house_ok(h, "plan.get", "'planId':'%s'", id);
    return h->reads;
}

/* Looks at n plans in turn, then at the newest and at the oldest one again: those that are kept
 * take one read less. */
static void expect_oldest(struct house *h, const char *const *ids, int n, bool kept)
{
    uint32_t fresh = 0;

    for (int i = 0; i < n; i++) {
        fresh = look(h, ids[i]);
    }
    assert_int_equal(look(h, ids[n - 1]), fresh - 1);
    assert_int_equal(look(h, ids[0]), kept ? fresh - 1 : fresh);
}

static void as_many_open_plans_as_may_be_are_kept(void **state)
{
    (void)state;
    for (int n = KEPT_OPEN; n <= KEPT_OPEN + 1; n++) {
        struct house *h = open_house();
        const char *ids[PLANS];
        house_join(h, "calc", 1);
        for (int i = 0; i < n; i++) {
            ids[i] = house_submit(h, ONE);
        }
        expect_oldest(h, ids, n, n == KEPT_OPEN);
        house_close(h);
    }
}

static void of_ended_plans_eight_are_kept_beside_the_one_that_is_read(void **state)
{
    (void)state;
    for (int n = KEPT_ENDED + 1; n <= KEPT_ENDED + 2; n++) {
        struct house *h = open_house();
        const char *ids[PLANS];
        house_join(h, "calc", 1);
        for (int i = 0; i < n; i++) {
            ids[i] = house_submit(h, ONE);
            house_done(h, "calc", "'result':{'text':'ok'}");
        }
        expect_oldest(h, ids, n, n == KEPT_ENDED + 1);
        house_close(h);
    }
}

/* The one that was read last stays, however long ago it was read first. */
static void what_was_not_read_for_longest_makes_room(void **state)
{
    struct house *h = open_house();
    const char *ids[PLANS];
    uint32_t fresh = 0;

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < PLANS; i++) {
        ids[i] = house_submit(h, ONE);
    }
    for (int i = 0; i < KEPT_OPEN; i++) {
        fresh = look(h, ids[i]);
    }
    assert_int_equal(look(h, ids[0]), fresh - 1);
    assert_int_equal(look(h, ids[PLANS - 1]), fresh);
    assert_int_equal(look(h, ids[0]), fresh - 1);
    assert_int_equal(look(h, ids[1]), fresh);
    house_close(h);
}

/* Ended plans that are read make room for each other, not an open one. */
static void an_open_plan_is_kept_while_ended_ones_are_read(void **state)
{
    struct house *h = open_house();
    const char *open;
    const char *ids[KEPT_ENDED + 4];
    uint32_t fresh;

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < KEPT_ENDED + 4; i++) {
        ids[i] = house_submit(h, ONE);
        house_done(h, "calc", "'result':{'text':'ok'}");
    }
    open = house_submit(h, ONE);
    fresh = look(h, open);
    for (int i = 0; i < KEPT_ENDED + 4; i++) {
        (void)look(h, ids[i]);
    }
    assert_int_equal(look(h, open), fresh - 1);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_open_plans_as_may_be_are_kept),
        cmocka_unit_test(of_ended_plans_eight_are_kept_beside_the_one_that_is_read),
        cmocka_unit_test(what_was_not_read_for_longest_makes_room),
        cmocka_unit_test(an_open_plan_is_kept_while_ended_ones_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
