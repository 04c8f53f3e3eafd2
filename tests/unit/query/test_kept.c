/* Projections that are kept between reads: how many, and which one makes room. */
#include "protocol/base/buf.h"
#include "supervisor/query/projection.h"
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

/* ---- a read goes on over several cycles ---- */

enum { ROWS_PER_LOOK = 16, LARGE = 1000 };

/* A plan of n steps that are done in turn; with `run` all of them are. */
static const char *plan_of(struct house *h, uint32_t n, bool run)
{
    struct buf text;
    const char *id;

    buf_init(&text, 4 * 1024 * 1024);
    buf_add_cstr(&text, "'plan':{'goal':'g','steps':[");
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&text, "%s{'stepId':'s%u','agentId':'calc','skill':'do','task':'t'}",
                   i > 0 ? "," : "", i);
    }
    buf_add_cstr(&text, "]}");
    id = house_submit(h, "%s", buf_cstr(&text));
    buf_done(&text);
    for (uint32_t i = 0; run && i < n; i++) {
        house_done(h, "calc", "'result':{'text':'ok'}");
    }
    return id;
}

/* How many slices it takes until the read is prepared; the last one tells whether it was long. */
static uint32_t slices(struct house *h, const char *id, uint64_t budget_us, bool *ret_long)
{
    bool ready = false;
    uint32_t n = 0;

    while (!ready) {
        assert_true(n++ < 1000);
        projection_prepare(h->engine, str_from(id), budget_us, &ready, ret_long);
    }
    return n;
}

static void without_time_a_slice_reads_sixteen_rows(void **state)
{
    enum { STEPS = 40 };
    struct house *h = open_house();
    const char *id;
    uint32_t n;
    bool is_long;

    (void)state;
    house_join(h, "calc", 1);
    id = plan_of(h, STEPS, true);
    n = slices(h, id, 0, &is_long);
    assert_false(is_long);
    /* each step has begun, was handed over, and is done */
    assert_in_range(n, 2 * STEPS / ROWS_PER_LOOK, 6 * STEPS / ROWS_PER_LOOK);
    assert_int_equal(slices(h, id, 0, &is_long), 1); /* what was read is kept */
    house_close(h);
}

/* Laying the steps out takes a slice of its own when this one has read rows. */
static void with_time_all_rows_are_one_slice_and_the_steps_another(void **state)
{
    struct house *h = open_house();
    const char *id;
    bool is_long;

    (void)state;
    house_join(h, "calc", 1);
    id = plan_of(h, 40, true);
    assert_int_equal(slices(h, id, 60000000, &is_long), 2);
    assert_int_equal(slices(h, "no such plan", 0, &is_long), 1); /* the read says so */
    assert_false(is_long);
    house_close(h);
}

static void a_large_plan_is_a_cycles_work_to_lay_out(void **state)
{
    (void)state;
    for (uint32_t n = LARGE; n <= LARGE + 1; n++) {
        struct house *h = open_house();
        const char *id;
        bool is_long;
        house_join(h, "calc", 1);
        id = plan_of(h, n, false);
        (void)slices(h, id, 60000000, &is_long);
        assert_int_equal(is_long, n > LARGE);
        (void)slices(h, id, 60000000, &is_long);
        assert_false(is_long); /* it is laid out already */
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_open_plans_as_may_be_are_kept),
        cmocka_unit_test(of_ended_plans_eight_are_kept_beside_the_one_that_is_read),
        cmocka_unit_test(what_was_not_read_for_longest_makes_room),
        cmocka_unit_test(an_open_plan_is_kept_while_ended_ones_are_read),
        cmocka_unit_test(without_time_a_slice_reads_sixteen_rows),
        cmocka_unit_test(with_time_all_rows_are_one_slice_and_the_steps_another),
        cmocka_unit_test(a_large_plan_is_a_cycles_work_to_lay_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
