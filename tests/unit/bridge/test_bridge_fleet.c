/* The processes of a fleet, one for each shard: how they start, and who ends whom. */
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>

#include "protocol/base/log.h"
#include "supervisor/bridge/fleet.h"
#include "tests/support/children.h"

enum { STOP_FD = 77, TURNS_MAX = 50 };

static struct {
    void (*at_each)(void); /* turn */
    uint32_t turns;
    bool stops; /* STOP_FD is readable */
    char said[1024];
} world;
static struct options opt;
static char name[] = "bridge", flag[] = "--name", value[] = "main";
static char *args[] = {name, flag, value, NULL};

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_signalfd(int fd, const sigset_t *set, int flags);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    assert_int_equal(n, 2);
    assert_int_equal(timeout, -1);
    assert_true(++world.turns < TURNS_MAX);
    if (world.at_each != NULL) {
        world.at_each();
    }
    assert_int_equal(fds[0].events, POLLIN);
    assert_int_equal(fds[1].events, POLLIN);
    fds[0].revents = world.stops && fds[0].fd == STOP_FD ? POLLIN : 0;
    return 1;
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    int fds[2];

    assert_int_equal(fd, -1);
    assert_int_equal(flags, SFD_CLOEXEC | SFD_NONBLOCK);
    assert_int_equal(sigismember(set, SIGCHLD), 1);
    assert_int_equal(sigismember(set, SIGTERM), 0);
    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    (void)close(fds[1]);
    return fds[0];
}

static void see_log(enum log_level level, const char *event, const char *text, void *self)
{
    const size_t n = strlen(world.said);

    (void)level;
    (void)self;
    (void)snprintf(world.said + n, sizeof world.said - n, "%s %s;", event, text);
}

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    memset(&children, 0, sizeof children);
    opt = (struct options){.name = "main"};
    log_setup(LOG_INFO, see_log, NULL);
    return 0;
}

static void end_in_turn(void)
{
    static const int CODES[] = {0, 3, 2};

    if (world.turns <= 3) {
        children_end(CHILDREN_FIRST + (pid_t)world.turns - 1,
                     children_exited(CODES[world.turns - 1]));
    }
}

static void each_shard_has_a_process_and_once_all_are_waited_for(void **state)
{
    char want[128];

    (void)state;
    opt.once = true;
    world.at_each = end_in_turn;
    assert_int_equal(fleet_run(&opt, args, 3, STOP_FD), 3); /* the first that is not 0 */
    assert_int_equal(children.n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(want, sizeof want,
                       "/proc/self/exe bridge --name main --shard %u/3 [death %d]", i, SIGTERM);
        assert_string_equal(children.ran[i], want);
    }
    assert_int_equal(world.turns, 3);
    assert_string_equal(children.killed, "");
    assert_string_equal(world.said, "");
}

static void end_the_second(void)
{
    if (world.turns == 2) {
        children_end(1, 0); /* a child of somebody else */
        children_end(CHILDREN_FIRST + 1, SIGSEGV);
    }
}

static void one_that_ends_ends_the_others(void **state)
{
    (void)state;
    world.at_each = end_the_second;
    assert_int_equal(fleet_run(&opt, args, 3, STOP_FD), 1); /* by a signal */
    assert_string_equal(children.killed, "1001:15 1003:15 ");
    assert_string_equal(world.said, "bridge.shard_ended shard=1 exit=1;");
}

static void be_stopped(void)
{
    world.stops = world.turns >= 3;
}

static void all_are_ended_when_it_is_stopped(void **state)
{
    (void)state;
    for (uint32_t once = 0; once < 2; once++) {
        (void)begin(state);
        opt.once = once == 1;
        world.at_each = be_stopped;
        assert_int_equal(fleet_run(&opt, args, 2, STOP_FD), 0);
        assert_int_equal(world.turns, 3);
        assert_string_equal(children.killed, "1001:15 1002:15 ");
        assert_string_equal(world.said, "");
    }
}

static void end_late(void)
{
    be_stopped();
    if (world.turns == 6) {
        children_end(CHILDREN_FIRST, children_exited(4));
        children_end(CHILDREN_FIRST + 1, children_exited(0));
    }
}

static void they_are_told_once_and_waited_for(void **state)
{
    (void)state;
    children.on_term = -1;
    world.at_each = end_late;
    assert_int_equal(fleet_run(&opt, args, 2, STOP_FD), 4);
    assert_int_equal(world.turns, 6);
    assert_string_equal(children.killed, "1001:15 1002:15 ");
}

/* The first, or the second: no other is started then, and those that run end. */
static void without_one_there_is_none(void **state)
{
    (void)state;
    for (int started = 0; started < 2; started++) {
        (void)begin(state);
        children.refused_at = started + 1;
        assert_int_equal(fleet_run(&opt, args, 3, STOP_FD), 1);
        assert_int_equal(children.n, started);
        assert_string_equal(children.killed, started == 1 ? "1001:15 " : "");
        assert_non_null(strstr(world.said, "bridge.shard fork: "));
    }
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_shard_has_a_process_and_once_all_are_waited_for),
        TEST(one_that_ends_ends_the_others),
        TEST(all_are_ended_when_it_is_stopped),
        TEST(they_are_told_once_and_waited_for),
        TEST(without_one_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
