/* Quick skills: the guard with its own clock; the two threads that hand the loop to each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agents/sdk/loop/quick.h"
#include "agents/sdk/loop/watch.h"
#include "protocol/base/clock.h"

enum { NOW = 1000 };

static void a_run_of_20_ms_demotes_one_below_does_not(void **state)
{
    struct quick q = {0};
    struct quick other = {0};

    (void)state;
    assert_false(quick_took(&q, QUICK_RUN_NS / 2, NOW));
    assert_true(quick_may_run(&q, NOW));
    assert_true(quick_took(&other, QUICK_RUN_NS, NOW));
    assert_false(quick_may_run(&other, NOW));
    other = (struct quick){0};
    assert_true(quick_took(&other, UINT64_MAX / 2, NOW));
}

static void an_average_of_1_ms_demotes_one_below_never(void **state)
{
    struct quick below = {0};
    struct quick at = {.mean_ns = QUICK_MEAN_NS - 1};

    (void)state;
    for (int i = 0; i < 100000; i++) {
        assert_false(quick_took(&below, QUICK_MEAN_NS - 1, NOW));
    }
    assert_false(quick_took(&at, 0, NOW));
    at.mean_ns = QUICK_MEAN_NS;
    assert_true(quick_took(&at, QUICK_MEAN_NS, NOW));
    assert_int_equal(at.mean_ns, 0); /* after the pause it begins again */
}

static void handlers_of_3_ms_are_demoted_within_16_runs(void **state)
{
    struct quick q = {0};
    int runs = 1;

    (void)state;
    while (!quick_took(&q, 3 * QUICK_MEAN_NS, NOW)) {
        runs++;
    }
    assert_in_range(runs, 2, QUICK_MEAN_RUNS);
}

static void after_a_pause_it_may_try_again_and_each_pause_is_longer(void **state)
{
    struct quick q = {0};
    msec now = NOW;
    msec pause = QUICK_PAUSE_MS;

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_true(quick_took(&q, QUICK_RUN_NS, now));
        assert_false(quick_may_run(&q, now + pause - 1));
        assert_true(quick_may_run(&q, now + pause));
        now += pause;
        pause = 2 * pause > QUICK_PAUSE_MAX_MS ? QUICK_PAUSE_MAX_MS : 2 * pause;
    }
    assert_int_equal(pause, QUICK_PAUSE_MAX_MS);
    now += QUICK_PAUSE_MAX_MS - 1; /* still one of a row */
    assert_true(quick_took(&q, QUICK_RUN_NS, now));
    assert_int_equal(q.pause_ms, QUICK_PAUSE_MAX_MS);
    now += QUICK_PAUSE_MAX_MS + QUICK_PAUSE_MAX_MS; /* a new row */
    assert_true(quick_took(&q, QUICK_RUN_NS, now));
    assert_int_equal(q.pause_ms, QUICK_PAUSE_MS);
}

/* ---- the two threads ---- */

struct pair {
    struct watch *watch;
    sem_t taken; /* the other thread has the loop */
    sem_t back;  /* it has lost it again */
    int led;     /* of the leader */
};

/* The other thread has taken the loop; it loses it in its own first handler. */
static void lead(void *self)
{
    struct pair *p = self;

    for (;;) {
        uint64_t run = 0;
        p->led++;
        (void)sem_post(&p->taken);
        while (run == 0) {
            run = watch_begin(p->watch, clock_mono_ns()); /* until the first one watches */
        }
        (void)sem_wait(&p->back); /* a handler that waits for what only another leader does */
        assert_false(watch_end(p->watch, run));
        watch_stay(p->watch);
    }
}

static void who_hangs_loses_the_loop_and_watches_then(void **state)
{
    static struct pair p; /* the threads stay */
    struct bt_error err;

    (void)state;
    assert_int_equal(sem_init(&p.taken, 0, 0), 0);
    assert_int_equal(sem_init(&p.back, 0, 0), 0);
    assert_int_equal(watch_start(lead, &p, &p.watch, &err), BT_OK);
    for (int i = 1; i <= 3; i++) {
        uint64_t run = 0;
        while (run == 0) {
            run = watch_begin(p.watch, clock_mono_ns());
        }
        (void)sem_wait(&p.taken);
        assert_false(watch_end(p.watch, run));
        watch_stay(p.watch); /* the other one hangs */
        assert_int_equal(p.led, i);
        assert_int_equal(watch_begin(p.watch, clock_mono_ns()), 0); /* nobody watches */
        (void)sem_post(&p.back);
    }
}

struct timed {
    struct watch *watch;
    _Atomic uint64_t begun;
};

/* Only a run of WATCH_NS or more may lose the loop. A busy machine can make one of any run. */
static void lead_late(void *self)
{
    const struct timed *t = self;

    if (clock_mono_ns() - atomic_load(&t->begun) < WATCH_NS) {
        abort();
    }
}

static void who_returns_in_time_keeps_the_loop(void **state)
{
    static struct timed t;
    struct bt_error err;
    bool lost = false;
    const uint64_t begun = clock_mono_ns();

    (void)state;
    assert_int_equal(watch_start(lead_late, &t, &t.watch, &err), BT_OK);
    while (!lost && clock_mono_ns() - begun < 5ull * WATCH_NS) { /* the watcher looks 5 times */
        uint64_t run;
        atomic_store(&t.begun, clock_mono_ns());
        run = watch_begin(t.watch, atomic_load(&t.begun));
        lost = run != 0 && !watch_end(t.watch, run);
    }
    assert_true(!lost || clock_mono_ns() - atomic_load(&t.begun) >= WATCH_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_20_ms_demotes_one_below_does_not),
        cmocka_unit_test(an_average_of_1_ms_demotes_one_below_never),
        cmocka_unit_test(handlers_of_3_ms_are_demoted_within_16_runs),
        cmocka_unit_test(after_a_pause_it_may_try_again_and_each_pause_is_longer),
        cmocka_unit_test(who_hangs_loses_the_loop_and_watches_then),
        cmocka_unit_test(who_returns_in_time_keeps_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
