#include "supervisor/wedge.h"

#include <pthread.h>
#include <unistd.h>

#include "supervisor/waits.h"
#include "tests/support/cmocka.h"

enum { BEGAN = 100000 };

static struct wedge late(void)
{
    struct wedge w = {.since = 0};

    assert_int_equal(wedge_look(&w, BEGAN, WEDGE_LATE_MS), WEDGE_BEGINS);
    return w;
}

static void a_canary_is_late_from_three_seconds_on(void **state)
{
    struct wedge w = {.since = 0};

    (void)state;
    assert_int_equal(wedge_look(&w, BEGAN, WEDGE_LATE_MS - 1), WEDGE_NONE);
    assert_int_equal(wedge_look(&w, BEGAN, WEDGE_LATE_MS), WEDGE_BEGINS);
    assert_int_equal(wedge_look(&w, BEGAN + 1, WEDGE_LATE_MS + 1), WEDGE_NONE);
}

static void threads_that_have_a_processor_are_waited_for_no_longer(void **state)
{
    struct wedge w = late();

    (void)state;
    assert_false(wedge_is_sure(&w, BEGAN + WEDGE_DEAD_MS, 0));
    assert_true(wedge_is_sure(&w, BEGAN + WEDGE_DEAD_MS + 1, 0));
}

static void a_reaper_that_runs_begins_anew(void **state)
{
    struct wedge w = late();
    const msec moved = BEGAN + 50000;

    (void)state;
    wedge_moves(&w, moved);
    assert_false(wedge_is_sure(&w, moved + WEDGE_DEAD_MS, 0));
    assert_true(wedge_is_sure(&w, moved + WEDGE_DEAD_MS + 1, 0));
}

static void a_wait_for_a_processor_does_not_count(void **state)
{
    struct wedge w = late();
    const msec now = BEGAN + 20000;

    (void)state;
    assert_false(wedge_is_sure(&w, now, 20000));
    assert_false(wedge_is_sure(&w, now, 20000 - WEDGE_DEAD_MS));
    assert_true(wedge_is_sure(&w, now, 20000 - WEDGE_DEAD_MS - 1));
    assert_false(wedge_is_sure(&w, now, MSEC_NEVER));
}

static void after_a_minute_it_is_a_wedge_whatever_was_waited(void **state)
{
    struct wedge w = late();

    (void)state;
    assert_false(wedge_is_sure(&w, BEGAN + WEDGE_SURE_MS, MSEC_NEVER));
    assert_true(wedge_is_sure(&w, BEGAN + WEDGE_SURE_MS + 1, MSEC_NEVER));
}

static void looks_have_a_pause(void **state)
{
    struct wedge w = late();
    const msec first = BEGAN + WEDGE_LOOK_MS;

    (void)state;
    assert_int_equal(wedge_look(&w, first - 1, 7000), WEDGE_NONE);
    assert_int_equal(wedge_look(&w, first, 7000), WEDGE_LOOK);
    assert_int_equal(wedge_look(&w, first + WEDGE_LOOK_MS - 1, 7000), WEDGE_NONE);
    assert_int_equal(wedge_look(&w, first + WEDGE_LOOK_MS, 7000), WEDGE_LOOK);
}

static void a_canary_that_sings_again_begins_anew(void **state)
{
    struct wedge w = late();

    (void)state;
    assert_int_equal(wedge_look(&w, BEGAN + 9000, 0), WEDGE_NONE);
    assert_int_equal(wedge_look(&w, BEGAN + 19000, WEDGE_LATE_MS), WEDGE_BEGINS);
    assert_false(wedge_is_sure(&w, BEGAN + 19000 + WEDGE_DEAD_MS, 0));
}

static void the_waits_of_all_threads_count(void **state)
{
    const struct waits from = {0, 2, {{.tid = 1, .ns = 5000000}, {.tid = 2, .ns = 900000000}}};
    const struct waits to = {
        0, 3, {{.tid = 2, .ns = 901000000}, {.tid = 1, .ns = 12000000}, {.tid = 3, .ns = 6999999}}};

    (void)state;
    assert_int_equal(waits_between(&from, &to), 1 + 7 + 6);
    assert_int_equal(waits_between(&to, &to), 0);
    assert_int_equal(waits_between(&to, &from), 0);
}

static void *rest(void *mutex)
{
    (void)pthread_mutex_lock(mutex);
    (void)pthread_mutex_unlock(mutex);
    return NULL;
}

static void the_threads_of_this_process_are_found_but_for_the_first(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    struct waits none;
    struct waits one;

    (void)state;
    waits_read(&none);
    (void)pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, rest, &mutex), 0);
    waits_read(&one);
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_join(thread, NULL);
    assert_int_equal(one.n, none.n + 1);
    for (uint32_t i = 0; i < one.n; i++) {
        assert_int_not_equal(one.at[i].tid, getpid());
    }
}

static pthread_barrier_t has_begun;

static void *begin_and_rest(void *mutex)
{
    (void)pthread_barrier_wait(&has_begun);
    return rest(mutex);
}

/* How long threads of the reaper's name ran, when there is one of this name; looked at so often
 * until they have. */
static uint64_t ran(const char *name, int looks)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    struct waits waits = {.n = 0};

    (void)pthread_barrier_init(&has_begun, NULL, 2);
    (void)pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, begin_and_rest, &mutex), 0);
    assert_int_equal(pthread_setname_np(thread, name), 0);
    (void)pthread_barrier_wait(&has_begun);
    for (int i = 0; i < looks && waits.reaper_ran_ns == 0; i++) {
        waits_read(&waits);
        (void)sched_yield();
    }
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_join(thread, NULL);
    (void)pthread_barrier_destroy(&has_begun);
    return waits.reaper_ran_ns;
}

/* Also in a program without standard input, whose first descriptor is 0. */
static void what_the_reaper_of_the_transport_ran_counts_and_no_other(void **state)
{
    const int input = dup(STDIN_FILENO);

    (void)state;
    assert_true(ran("nng:reap2", 20000) > 0);
    assert_int_equal(close(STDIN_FILENO), 0);
    assert_true(ran("nng:reap2", 20000) > 0);
    assert_true(dup2(input, STDIN_FILENO) == STDIN_FILENO && close(input) == 0);
    assert_int_equal(ran("nng:rea", 20), 0);
    assert_int_equal(ran("nng:task", 20), 0);
}

static void a_look_gives_its_descriptors_back(void **state)
{
    const int before = dup(STDOUT_FILENO);
    struct waits waits;
    int after;

    (void)state;
    for (int i = 0; i < 10; i++) {
        waits_read(&waits);
    }
    after = dup(STDOUT_FILENO);
    assert_int_equal(after, before + 1);
    assert_true(close(before) == 0 && close(after) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_canary_is_late_from_three_seconds_on),
        cmocka_unit_test(threads_that_have_a_processor_are_waited_for_no_longer),
        cmocka_unit_test(a_reaper_that_runs_begins_anew),
        cmocka_unit_test(a_wait_for_a_processor_does_not_count),
        cmocka_unit_test(after_a_minute_it_is_a_wedge_whatever_was_waited),
        cmocka_unit_test(looks_have_a_pause),
        cmocka_unit_test(a_canary_that_sings_again_begins_anew),
        cmocka_unit_test(a_look_gives_its_descriptors_back),
        cmocka_unit_test(the_waits_of_all_threads_count),
        cmocka_unit_test(what_the_reaper_of_the_transport_ran_counts_and_no_other),
        cmocka_unit_test(the_threads_of_this_process_are_found_but_for_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
