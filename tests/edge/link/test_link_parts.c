/* The two lock-free parts by themselves: the inbox under many producers, and the word that tracks a
 * lane's pipe. */
#include <nng/nng.h>

#include <nng/protocol/reqrep0/req.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"
#include "tests/edge/link/fixture.h"

enum { PRODUCERS = 4, NODES = 64, ROUNDS = 20000 };

struct counted {
    struct inbox_node node;
    atomic_uint made; /* events made for this node */
    unsigned seen_generation;
};

struct producer {
    struct inbox *inbox;
    struct counted *nodes;
    unsigned seed;
};

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct counted *c = &p->nodes[(p->seed + i * 7) % NODES];
        (void)atomic_fetch_add(&c->made, 1);
        inbox_push(p->inbox, &c->node);
    }
    return NULL;
}

static void no_change_is_missed_whatever_the_interleaving(void **state)
{
    (void)state;
    struct inbox in = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    struct counted *nodes = calloc(NODES, sizeof *nodes);
    struct producer p[PRODUCERS];
    pthread_t threads[PRODUCERS];
    assert_non_null(nodes);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        p[i] = (struct producer){&in, nodes, i * 13};
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &p[i]), 0);
    }
    unsigned total = 0;
    while (total < PRODUCERS * ROUNDS) {
        struct pollfd wait = {.fd = in.fd, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, FIXTURE_WAIT_MS), 1); /* a lost wake-up fails here */
        for (int k = 0; k < 3; k++) { /* stops early, so the fd must still be readable */
            struct inbox_node *n = inbox_take(&in);
            if (n == NULL) {
                break;
            }
            struct counted *c = CONTAINER_OF(n, struct counted, node);
            const unsigned made = atomic_load(&c->made);
            total += made - c->seen_generation;
            c->seen_generation = made;
        }
    }
    for (unsigned i = 0; i < PRODUCERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    while (inbox_take(&in) != NULL) {
    }
    assert_false(readable(in.fd));
    (void)close(in.fd);
    free(nodes);
}

static void inbox_is_fifo_and_readable_until_drained(void **state)
{
    (void)state;
    struct inbox in = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    struct inbox_node n[3] = {{.kind = INBOX_LANE}};
    for (int i = 0; i < 3; i++) {
        inbox_push(&in, &n[i]);
        inbox_push(&in, &n[i]); /* once is enough */
    }
    for (int i = 0; i < 3; i++) {
        assert_true(readable(in.fd));
        assert_ptr_equal(inbox_take(&in), &n[i]);
    }
    assert_null(inbox_take(&in));
    assert_false(readable(in.fd));
    (void)close(in.fd);
}

static void second_pipe_is_rejected_until_the_first_has_gone(void **state)
{
    (void)state;
    struct pipe_track t = {0};
    assert_true(pipe_track_admit(&t, 7));
    assert_false(pipe_track_admit(&t, 8));
    assert_false(pipe_track_removed(&t, 8)); /* the end of the rejected one changes nothing */
    assert_false(pipe_track_empty(&t));
    assert_true(pipe_track_removed(&t, 7));
    assert_true(pipe_track_empty(&t));
    assert_true(pipe_track_admit(&t, 8));
}

static void up_that_comes_after_its_end_is_ignored(void **state)
{
    (void)state;
    struct pipe_track t = {0};
    uint32_t seen_generation = 0;
    assert_true(pipe_track_admit(&t, 7));
    assert_true(pipe_track_removed(&t, 7));
    assert_false(pipe_track_up(&t, 7));
    assert_int_equal(pipe_track_next(&t, &seen_generation), 0);
}

static void transitions_are_told_in_order_and_a_replaced_pipe_is_down_then_up(void **state)
{
    (void)state;
    struct pipe_track t = {0};
    uint32_t seen_generation = 0;
    assert_true(pipe_track_admit(&t, 1) && pipe_track_up(&t, 1));
    assert_false(pipe_track_is_up(&t, seen_generation)); /* not reported yet */
    assert_int_equal(pipe_track_next(&t, &seen_generation), 1);
    assert_true(pipe_track_is_up(&t, seen_generation));
    for (uint32_t pipe = 2; pipe < 200; pipe++) {
        assert_true(pipe_track_removed(&t, pipe - 1) && pipe_track_admit(&t, pipe) &&
                    pipe_track_up(&t, pipe));
    }
    assert_false(pipe_track_is_up(&t, seen_generation));
    assert_int_equal(pipe_track_next(&t, &seen_generation), -1);
    assert_int_equal(pipe_track_next(&t, &seen_generation), 1);
    assert_int_equal(pipe_track_next(&t, &seen_generation), 0);
    assert_true(pipe_track_is_up(&t, seen_generation));
}

static void generation_survives_its_own_wrap(void **state)
{
    (void)state;
    struct pipe_track t = {.word = UINT64_MAX
                                   << 35}; /* the largest generation: odd, so "up" was reported */
    uint32_t seen_generation = 0x1fffffff;
    assert_true(pipe_track_is_up(&t, seen_generation));
    atomic_store(&t.word, atomic_load(&t.word) | (UINT64_C(1) << 32) | 5);
    assert_true(pipe_track_removed(&t, 5));
    assert_int_equal(pipe_track_next(&t, &seen_generation), -1);
    assert_int_equal(seen_generation, 0);
    assert_true(pipe_track_admit(&t, 6) && pipe_track_up(&t, 6));
    assert_int_equal(pipe_track_next(&t, &seen_generation), 1);
}

static void shut_or_paused_track_takes_no_pipe(void **state)
{
    (void)state;
    struct pipe_track t = {0};
    assert_true(pipe_track_pause(&t));
    assert_false(pipe_track_admit(&t, 1));
    pipe_track_resume(&t);
    assert_true(pipe_track_admit(&t, 1));
    assert_false(pipe_track_pause(&t));
    pipe_track_shut(&t);
    assert_true(pipe_track_removed(&t, 1));
    pipe_track_resume(&t);
    assert_false(pipe_track_admit(&t, 2));
}

static void count_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    atomic_uint *pipes = arg;
    (void)pipe;
    (void)ev;
    (void)atomic_fetch_add(pipes, 1);
}

/* nng's dialer may give up for good (N7). Without a pipe for long it is replaced, and not while
 * there is one. */
static void dialer_without_a_pipe_is_replaced(void **state)
{
    (void)state;
    atomic_uint pipes = 0;
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, "tcp://127.0.0.1:0", 1);
    struct endpoint e = {.recv_max = 0};
    struct pipe_track track = {0};
    struct redial r = {.endpoint = NULL};
    assert_int_equal(endpoint_init(&e, link_server_url(s), &fixture_limits, false, NULL), BT_OK);
    assert_int_equal(nng_req0_open(&e.socket), 0);
    assert_int_equal(nng_pipe_notify(e.socket, NNG_PIPE_EV_ADD_POST, count_pipe, &pipes), 0);
    assert_int_equal(redial_start(&r, &e, &track, NULL), BT_OK);
    redial_stop(&r); /* from here on the test runs the task, not the helper */
    const msec until = clock_mono_ms() + FIXTURE_WAIT_MS;
    while (atomic_load(&pipes) == 0 && clock_mono_ms() < until) {
        (void)link_wait(l, 5);
    }
    assert_int_equal(atomic_load(&pipes), 1);
    r.down_since = 0;
    assert_true(pipe_track_admit(&track, 1));
    (void)r.task.run(&r.task); /* there is a pipe: nothing happens */
    assert_true(r.down_since > 0);
    assert_true(pipe_track_removed(&track, 1));
    r.down_since = 0;
    (void)r.task.run(&r.task);
    while (atomic_load(&pipes) == 1 && clock_mono_ms() < until) {
        (void)link_wait(l, 5);
    }
    assert_int_equal(atomic_load(&pipes), 2);
    assert_true(pipe_track_admit(&track, 2)); /* and it admits pipes again */
    (void)nng_close(e.socket);
    endpoint_done(&e);
    link_free(l);
}

int main(void)
{
    fixture_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_change_is_missed_whatever_the_interleaving),
        cmocka_unit_test(inbox_is_fifo_and_readable_until_drained),
        cmocka_unit_test(second_pipe_is_rejected_until_the_first_has_gone),
        cmocka_unit_test(up_that_comes_after_its_end_is_ignored),
        cmocka_unit_test(transitions_are_told_in_order_and_a_replaced_pipe_is_down_then_up),
        cmocka_unit_test(generation_survives_its_own_wrap),
        cmocka_unit_test(dialer_without_a_pipe_is_replaced),
        cmocka_unit_test(shut_or_paused_track_takes_no_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
