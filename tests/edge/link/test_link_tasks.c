/* nng's completions on one thread of this process, and what happens when nng has fewer threads than
 * were to rest. */
#include <nng/nng.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"
#include "tests/edge/link/fixture.h"

enum { COMPLETIONS = 64, MORE_THAN_THERE_ARE = 16, LOOK_MS = 50, ALONE_MS = 50 };

struct ran {
    msec patience; /* how long the first waits for a second one */
    atomic_int at_once, most, done;
};

static bool wait_for(const atomic_int *n, int least, msec timeout_ms)
{
    const msec until = clock_mono_ms() + timeout_ms;
    while (atomic_load(n) < least && clock_mono_ms() < until) {
        (void)sched_yield();
    }
    return atomic_load(n) >= least;
}

/* The first stays until a second one runs beside it, or none has come for some time. */
static void complete(void *arg)
{
    struct ran *r = arg;
    const int now = atomic_fetch_add(&r->at_once, 1) + 1;
    int most = atomic_load(&r->most);
    while (now > most && !atomic_compare_exchange_weak(&r->most, &most, now)) {
        /* another one has noted more meanwhile, or less */
    }
    if (atomic_load(&r->done) == 0) {
        (void)wait_for(&r->most, 2, r->patience);
    }
    (void)atomic_fetch_sub(&r->at_once, 1);
    (void)atomic_fetch_add(&r->done, 1);
}

/* Returns how many of them ran at once, at most. */
static int completions(msec patience)
{
    nng_aio *aios[COMPLETIONS];
    struct ran r = {.patience = patience};
    for (int i = 0; i < COMPLETIONS; i++) {
        assert_int_equal(nng_aio_alloc(&aios[i], complete, &r), 0);
        assert_true(nng_aio_begin(aios[i]));
        nng_aio_finish(aios[i], 0);
    }
    const bool all = wait_for(&r.done, COMPLETIONS, FIXTURE_WAIT_MS);
    for (int i = 0; all && i < COMPLETIONS; i++) {
        nng_aio_free(aios[i]);
    }
    assert_true(all);
    return atomic_load(&r.most);
}

static void when_no_thread_is_left_all_go_on(void **state)
{
    (void)state;
    struct link *l = fixture_link(); /* starts the helper */
    assert_true(completions(FIXTURE_WAIT_MS) > 1);
    tasks_rest(MORE_THAN_THERE_ARE, LOOK_MS);
    assert_true(completions(FIXTURE_WAIT_MS) > 1);
    link_free(l);
}

static void completions_run_on_one_thread(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    link_one_task_thread();
    link_one_task_thread(); /* it counts once */
    assert_int_equal(completions(ALONE_MS), 1);
    link_free(l);
}

/* Continues with one thread: lanes and servers of one process need no second one. */
static void requests_are_answered_with_one_thread(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 4);
    for (int i = 0; i < 20; i++) {
        fixture_assert_echo(l, link_server_url(s));
    }
    link_free(l);
}

/* The first test in a process of its own, from before nng has threads: those that rested there
 * would else be waking up while the next ones are told to rest. */
int main(void)
{
    const struct CMUnitTest alone[] = {cmocka_unit_test(when_no_thread_is_left_all_go_on)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completions_run_on_one_thread),
        cmocka_unit_test(requests_are_answered_with_one_thread),
    };
    const pid_t pid = fork();
    int status = 0;

    fixture_watchdog(60);
    if (pid == 0) {
        return cmocka_run_group_tests(alone, NULL, NULL);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
