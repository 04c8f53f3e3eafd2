/* An agent with workers of its own, and with signals. */
#include "tests/unit/sdk/runtime_world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKS = 1000, LOOK_MS = 100 };

static int set_up(void **state)
{
    (void)state;
    world_start(&(struct world_how){.workers = true});
    return 0;
}

static int tear_down(void **state)
{
    (void)sem_post(&world_hold);
    return world_end(state);
}

/* Cycles until the request has its answer: the worker is another thread. */
static void waits_for(uint64_t request)
{
    for (int i = 0; i < LOOKS && !world_is_answered(request); i++) {
        struct pollfd fd = {.fd = pool_fd(world.rt->pool), .events = POLLIN};
        (void)poll(&fd, 1, LOOK_MS);
        world_cycle();
    }
    assert_true(world_is_answered(request));
}

static void a_handler_runs_on_a_worker_and_is_answered_by_the_loop(void **state)
{
    struct msg_step_execute hold = world_step("hold", "p/1/a");
    struct msg_step_execute echo = world_step("echo", "p/1/b");
    struct msg_step_result got;
    uint64_t first;
    uint64_t second;

    (void)state;
    first = world_send(MSG_step_execute, &hold);
    second = world_send(MSG_step_execute, &echo);
    waits_for(second); /* beside the one that holds its worker */
    assert_false(world_is_answered(first));
    assert_int_equal(sem_post(&world_hold), 0);
    waits_for(first);
    assert_int_equal(world_read(first, MSG_step_result, &got), BT_OK);
    /* under bt_agent_main a step is answered at once: bt_step_later said so */
    assert_true(str_is(got.result.text, "held"));
    assert_int_equal(world.rt->agent_state.running, 0);
}

static void progress_of_a_worker_reaches_the_supervisor(void **state)
{
    struct msg_step_execute hold = world_step("hold", "p/1/a");
    struct msg_step_progress m;
    uint64_t request;

    (void)state;
    request = world_send(MSG_step_execute, &hold);
    for (int i = 0; i < LOOKS && !world_asks(MSG_step_progress); i++) {
        struct pollfd fd = {.fd = pool_fd(world.rt->pool), .events = POLLIN};
        (void)poll(&fd, 1, LOOK_MS);
        world_cycle();
    }
    world_asked(MSG_step_progress, &m);
    assert_true(m.percent == 50.0);
    assert_true(str_is(m.text, "half"));
    world_answer(MSG_empty, NULL);
    assert_int_equal(sem_post(&world_hold), 0);
    waits_for(request);
}

static void a_signal_drains_and_a_second_one_ends_at_once(void **state)
{
    struct msg_step_execute hold = world_step("hold", "p/1/a");

    (void)state;
    (void)world_send(MSG_step_execute, &hold);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    for (int i = 0; i < LOOKS && !world_asks(MSG_agent_drain); i++) {
        if (world_asks(MSG_step_progress)) {
            world_answer(MSG_empty, NULL);
        }
        world_cycle();
    }
    assert_true(world_asks(MSG_agent_drain));
    assert_true(world.rt->agent_state.draining);
    assert_false(world.rt->ended);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    world_cycle();
    assert_true(world.rt->ended);
    assert_int_equal(world.rt->status, 1); /* a step runs */
}

static void programs_that_a_handler_starts_get_no_signal_descriptor(void **state)
{
    sigset_t mask;

    (void)state;
    assert_true(world.rt->signals >= 0);
    assert_int_equal(fcntl(world.rt->signals, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(world.rt->signals, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    assert_true(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGHUP));
    assert_false(sigismember(&mask, SIGSEGV) || sigismember(&mask, SIGBUS) ||
                 sigismember(&mask, SIGFPE) || sigismember(&mask, SIGILL) ||
                 sigismember(&mask, SIGABRT)); /* they are defects of the program */
}

static void a_loop_of_the_programs_own_keeps_its_signals(void **state)
{
    sigset_t none;
    sigset_t mask;

    (void)state;
    (void)sigemptyset(&none);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &none, NULL), 0);
    world_start(&(struct world_how){.capacity = 1});
    assert_int_equal(world.rt->signals, -1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGTERM) || sigismember(&mask, SIGHUP));
}

/* Ends a process: 'd' when done() was called; its status. */
static int leaves(bool runs, int *ret_status)
{
    int ends[2];
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        world.rt->status = 7;
        world.rt->agent_state.running = runs ? 1 : 0;
        world.rt->self = &ends[1];
        world.rt->done = world_done;
        runtime_leave(world.rt);
    }
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(waitpid(pid, ret_status, 0), pid);
    (void)!read(ends[0], &byte, 1);
    assert_int_equal(close(ends[0]), 0);
    return byte;
}

/* done() frees what a handler that still runs may use. */
static void done_is_called_at_the_end_unless_a_handler_runs(void **state)
{
    int status = 0;

    (void)state;
    assert_int_equal(leaves(false, &status), 'd');
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_int_equal(leaves(true, &status), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_handler_runs_on_a_worker_and_is_answered_by_the_loop),
        T(progress_of_a_worker_reaches_the_supervisor),
        T(a_signal_drains_and_a_second_one_ends_at_once),
        T(programs_that_a_handler_starts_get_no_signal_descriptor),
        cmocka_unit_test_teardown(a_loop_of_the_programs_own_keeps_its_signals, world_end),
        T(done_is_called_at_the_end_unless_a_handler_runs),
    };
#undef T
    int failed;

    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)fflush(NULL);
    _exit(failed == 0 ? 0 : 1); /* workers run */
}
