/* How many processes: up, down, what holds it off, and the bounds. */
#include "supervisor/spawn/scale.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

static const struct scale_settings set = {
    .min = 1, .max = 3, .queue = 2, .up_ms = 1000, .down_ms = 5000};

static struct scale fresh(void)
{
    return (struct scale){.busy_since = MSEC_NEVER, .idle_since = MSEC_NEVER};
}

static void up_when_the_queue_holds_for_the_time(void **state)
{
    struct scale_now is = {.processes = 1, .all_up = true, .queued = 2, .busy = 1, .capacity = 1};
    struct scale s = fresh();

    (void)state;
    assert_int_equal(scale_step(&s, &set, &is, 100), 0);
    assert_int_equal(scale_deadline(&s, &set), 1100);
    assert_int_equal(scale_step(&s, &set, &is, 1099), 0);
    assert_int_equal(scale_step(&s, &set, &is, 1100), 1);
    is.processes = 2;
    assert_int_equal(scale_step(&s, &set, &is, 1100), 0); /* the time begins again */
    is.queued = 1;                                        /* one below the queue ends it */
    assert_int_equal(scale_step(&s, &set, &is, 2000), 0);
    is.queued = 2;
    assert_int_equal(scale_step(&s, &set, &is, 2100), 0);
    is.all_up = false; /* one is on its way */
    assert_int_equal(scale_step(&s, &set, &is, 9000), 0);
    is.all_up = true;
    is.processes = 3;
    assert_int_equal(scale_step(&s, &set, &is, 99000), 0);
    assert_int_equal(scale_step(&s, &set, &is, 199000), 0); /* max */
}

static void down_when_one_can_be_spared_for_the_time(void **state)
{
    struct scale_now is = {.processes = 3, .all_up = true, .queued = 0, .busy = 4, .capacity = 2};
    struct scale s = fresh();

    (void)state;
    assert_int_equal(scale_step(&s, &set, &is, 100), 0);
    assert_int_equal(scale_step(&s, &set, &is, 5099), 0);
    assert_int_equal(scale_step(&s, &set, &is, 5100), -1);
    is.processes = 2;
    is.busy = 3; /* would not fit into one */
    assert_int_equal(scale_step(&s, &set, &is, 5200), 0);
    assert_int_equal(scale_step(&s, &set, &is, 99000), 0);
    is.busy = 2;
    assert_int_equal(scale_step(&s, &set, &is, 99000), 0);
    is.queued = 1;
    assert_int_equal(scale_step(&s, &set, &is, 100000), 0); /* ends the time */
    is.queued = 0;
    assert_int_equal(scale_step(&s, &set, &is, 104000), 0);
    assert_int_equal(scale_step(&s, &set, &is, 109000), -1);
    is.processes = 1;
    assert_int_equal(scale_step(&s, &set, &is, 999000), 0);
    assert_true(scale_deadline(&s, &set) == MSEC_NEVER); /* min */
}

static void other_bounds_count_at_once(void **state)
{
    struct scale_now is = {.processes = 0, .capacity = 1};
    struct scale s = fresh();

    (void)state;
    assert_int_equal(scale_step(&s, &set, &is, 1), 1);
    is.processes = 4;
    assert_int_equal(scale_step(&s, &set, &is, 1), -1);
}

/* A queue that comes and goes faster than the times changes nothing; whatever comes, the bounds
 * hold and two changes are at least the shorter time apart. */
static void it_does_not_swing(void **state)
{
    struct rng rng = rng_seeded("spawn scale");
    struct scale s = fresh();
    uint32_t n = 1;
    msec last = 0;

    (void)state;
    for (msec now = 0; now < 100000; now += 100) {
        const struct scale_now is = {
            .processes = n, .all_up = true, .queued = now / 100 % 2 == 0 ? 5 : 0, .capacity = 1};
        assert_int_equal(scale_step(&s, &set, &is, now), 0);
    }
    for (msec now = 100000; now < 2000000; now += rng_below(&rng, 700)) {
        const struct scale_now is = {.processes = n,
                                     .all_up = rng_below(&rng, 50) != 0,
                                     .queued = now / 20000 % 2 == 0 ? 3 : 0,
                                     .busy = (uint32_t)rng_below(&rng, 2),
                                     .capacity = 1};
        const int step = scale_step(&s, &set, &is, now);
        if (step != 0) {
            assert_true(now - last >= set.up_ms);
            last = now;
        }
        n = (uint32_t)((int)n + step);
        assert_true(n >= set.min && n <= set.max);
    }
    assert_true(last > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_when_the_queue_holds_for_the_time),
        cmocka_unit_test(down_when_one_can_be_spared_for_the_time),
        cmocka_unit_test(other_bounds_count_at_once),
        cmocka_unit_test(it_does_not_swing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
