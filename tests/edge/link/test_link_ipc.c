/* The guard of ipc:// listeners (N6): directory and lock. The probe is in test_link_storm.c. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/edge/link/fixture.h"

struct ipc_place {
    char dir[64];
    char url[128];
};

static struct ipc_place place_new(void)
{
    struct ipc_place p;
    (void)snprintf(p.dir, sizeof p.dir, "%s", fixture_dir());
    (void)snprintf(p.url, sizeof p.url, "ipc://%s/control.sock", p.dir);
    return p;
}

static void request_is_echoed_over_ipc(void **state)
{
    (void)state;
    struct ipc_place at = place_new();
    struct link *l = fixture_link();
    struct link_server *s = fixture_server(l, at.url, 2);
    assert_string_equal(link_server_url(s), at.url);
    fixture_assert_echo(l, at.url);
    struct stat st;
    assert_int_equal(stat(at.url + strlen("ipc://"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    link_free(l);
    fixture_rmdir(at.dir);
}

static void directory_that_others_can_enter_is_refused(void **state)
{
    (void)state;
    struct ipc_place at = place_new();
    struct link *l = fixture_link();
    struct link_server *s = NULL;
    assert_int_equal(chmod(at.dir, 0750), 0);
    assert_int_equal(link_server_open(l, at.url, 1, &fixture_limits, NULL, &s, NULL), BT_INVALID);
    assert_int_equal(chmod(at.dir, 0700), 0);
    assert_int_equal(link_server_open(l, at.url, 1, &fixture_limits, NULL, &s, NULL), BT_OK);
    link_free(l);
    fixture_rmdir(at.dir);
}

static void missing_directory_is_made_private(void **state)
{
    (void)state;
    struct ipc_place at = place_new();
    struct stat st;
    assert_int_equal(rmdir(at.dir), 0);
    struct link *l = fixture_link();
    (void)fixture_server(l, at.url, 1);
    assert_int_equal(stat(at.dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    link_free(l);
    fixture_rmdir(at.dir);
}

/* Without the lock, nng's own check for a stale file would end the first listener (N6). */
static void second_listener_is_refused_and_the_first_is_unharmed(void **state)
{
    (void)state;
    struct ipc_place at = place_new();
    struct link *l = fixture_link();
    struct link *other = fixture_link();
    struct link_server *second = NULL;
    (void)fixture_server(l, at.url, 2);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(link_server_open(other, at.url, 1, &fixture_limits, NULL, &second, NULL),
                         BT_CONFLICT);
    }
    fixture_assert_echo(l, at.url);
    link_free(other);
    link_free(l);
    l = fixture_link();
    (void)fixture_server(l, at.url, 2); /* the lock ended with its holder */
    fixture_assert_echo(l, at.url);
    link_free(l);
    fixture_rmdir(at.dir);
}

static void lane_does_not_listen_on_ipc(void **state)
{
    (void)state;
    struct link *l = fixture_link();
    struct link_lane *lane = NULL;
    assert_int_equal(link_lane_listen(l, "ipc:///tmp/x/y", &fixture_limits, NULL, &lane, NULL),
                     BT_INVALID);
    link_free(l);
}

/* A probe needs two descriptors, one at each end. Without them nothing is known about the listener,
 * and it stays. */
static void listener_stays_while_there_are_no_descriptors(void **state)
{
    (void)state;
    enum { PROBES_MS = 2 * 2000 + 1500 };
    struct ipc_place at = place_new();
    struct link *l = fixture_link();
    (void)fixture_server(l, at.url, 2);
    struct stat before;
    assert_int_equal(stat(at.url + strlen("ipc://"), &before), 0);
    struct rlimit usual;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    for (int left = 0; left <= 1; left++) {
        const int next = dup(STDIN_FILENO);
        const struct rlimit few = {.rlim_cur = (rlim_t)(next + left), .rlim_max = usual.rlim_max};
        struct stat after;
        assert_true(next >= 0);
        (void)close(next);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        (void)poll(NULL, 0, PROBES_MS);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        assert_int_equal(stat(at.url + strlen("ipc://"), &after), 0);
        assert_true(before.st_ino == after.st_ino);
    }
    fixture_assert_echo(l, at.url);
    link_free(l);
    fixture_rmdir(at.dir);
}

int main(void)
{
    fixture_watchdog(120);
    const struct CMUnitTest tests[] = {
        /* The first: nothing of another test is about to be closed. */
        cmocka_unit_test(listener_stays_while_there_are_no_descriptors),
        cmocka_unit_test(request_is_echoed_over_ipc),
        cmocka_unit_test(directory_that_others_can_enter_is_refused),
        cmocka_unit_test(missing_directory_is_made_private),
        cmocka_unit_test(second_listener_is_refused_and_the_first_is_unharmed),
        cmocka_unit_test(lane_does_not_listen_on_ipc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
