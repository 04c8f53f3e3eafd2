/* The worker threads' notifications: each is taken once, and one wakes the loop for all. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agents/sdk/pool.h"
#include "tests/support/cmocka.h"

static atomic_uint runs;

static void count_run(void *self, uint32_t slot)
{
    (void)self;
    (void)slot;
    atomic_fetch_add(&runs, 1);
}

static struct pool *pool_of(uint32_t workers)
{
    struct pool *p = NULL;

    assert_int_equal(pool_start(workers, count_run, NULL, &p, NULL), BT_OK);
    return p; /* its threads have no end */
}

static bool is_readable(const struct pool *p)
{
    struct pollfd fd = {.fd = pool_fd(p), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* How often the loop was woken since it drained. */
static uint64_t wakes(const struct pool *p)
{
    eventfd_t n = 0;

    return is_readable(p) && eventfd_read(pool_fd(p), &n) == 0 ? n : 0;
}

static void one_wake_is_for_all_notifications_until_it_is_drained(void **state)
{
    struct pool *p = pool_of(1);

    (void)state;
    assert_false(is_readable(p));
    pool_notify(p, POOL_PROGRESS, 0);
    pool_notify(p, POOL_PROGRESS, 63);
    pool_notify(p, POOL_FINISHED, 64);
    pool_notify(p, POOL_PROGRESS, 63);
    assert_int_equal(wakes(p), 1);
    pool_notify(p, POOL_PROGRESS, 1);
    assert_int_equal(wakes(p), 0); /* it has not drained */
    pool_drain(p);
    assert_false(is_readable(p));
    assert_int_equal(pool_take(p, POOL_PROGRESS), 0);
    assert_int_equal(pool_take(p, POOL_PROGRESS), 1);
    assert_int_equal(pool_take(p, POOL_PROGRESS), 63);
    assert_int_equal(pool_take(p, POOL_PROGRESS), AGENT_STATE_NO_SLOT);
    assert_int_equal(pool_take(p, POOL_FINISHED), 64);
    assert_int_equal(pool_take(p, POOL_FINISHED), AGENT_STATE_NO_SLOT);
    pool_notify(p, POOL_FINISHED, 2);
    assert_int_equal(wakes(p), 1);
    pool_drain(p);
    assert_int_equal(pool_take(p, POOL_FINISHED), 2);
}

/* As many as there are places: each runs once and is notified once. */
static void every_slot_that_is_submitted_runs_once(void **state)
{
    bool seen[AGENT_STATE_SLOTS] = {false};
    struct pool *p = pool_of(3);
    uint32_t n = 0;

    (void)state;
    atomic_store(&runs, 0);
    for (int round = 0; round < 2; round++) {
        for (uint32_t slot = 0; slot < AGENT_STATE_SLOTS; slot++) {
            seen[slot] = false;
            pool_submit(p, slot);
        }
        pool_wake(p);
        pool_wake(p); /* nothing is left to wake for */
        for (n = 0; n < AGENT_STATE_SLOTS;) {
            struct pollfd fd = {.fd = pool_fd(p), .events = POLLIN};
            uint32_t slot;
            assert_int_equal(poll(&fd, 1, 60000), 1);
            pool_drain(p);
            while ((slot = pool_take(p, POOL_FINISHED)) != AGENT_STATE_NO_SLOT) {
                assert_false(seen[slot]);
                seen[slot] = true;
                n++;
            }
        }
    }
    assert_int_equal(atomic_load(&runs), 2 * AGENT_STATE_SLOTS);
}

static pthread_barrier_t all_at_once;

static void meet(void *self, uint32_t slot)
{
    (void)self;
    (void)slot;
    (void)pthread_barrier_wait(&all_at_once);
}

/* Slots that wait for each other end: nobody rests while a slot has no worker. One wake is enough
 * for several of them. */
static void as_many_slots_run_at_once_as_there_are_workers(void **state)
{
    enum { WORKERS = 4, ROUNDS = 200 };
    struct pool *p = NULL;

    (void)state;
    assert_int_equal(pthread_barrier_init(&all_at_once, NULL, WORKERS), 0);
    assert_int_equal(pool_start(WORKERS, meet, NULL, &p, NULL), BT_OK);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t n = 0;
        for (uint32_t slot = 0; slot < WORKERS; slot++) {
            pool_submit(p, slot);
        }
        pool_wake(p);
        while (n < WORKERS) {
            struct pollfd fd = {.fd = pool_fd(p), .events = POLLIN};
            assert_int_equal(poll(&fd, 1, 20000), 1);
            pool_drain(p);
            while (pool_take(p, POOL_FINISHED) != AGENT_STATE_NO_SLOT) {
                n++;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wake_is_for_all_notifications_until_it_is_drained),
        cmocka_unit_test(every_slot_that_is_submitted_runs_once),
        cmocka_unit_test(as_many_slots_run_at_once_as_there_are_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
