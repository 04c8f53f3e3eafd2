/* Deaths above the agents: of the daemon, of the spawner, of both; and the next daemon. */
#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "supervisor/spawn/packet.h"
#include "supervisor/spawn/proc.h"
#include "supervisor/spawn/spawner.h"
#include "tests/edge/spawn/fixture.h"

/* The agents of start_daemon; their lines come in either order. */
struct agents {
    pid_t a;
    pid_t b;
    pid_t grandchild;
};

static struct agents wait_agents(struct world *w)
{
    struct agents found = {0};

    for (int i = 0; i < 2; i++) {
        pid_t pid;
        pid_t other;
        wait_line(w, &pid, &other);
        if (other == 0) {
            found.a = pid;
        } else {
            found.b = pid;
            found.grandchild = other;
        }
    }
    assert_true(found.a > 0 && found.b > 0);
    return found;
}

static pid_t parent_of(pid_t pid)
{
    struct proc_list list = {0};
    const struct proc_entry *row;
    pid_t parent = 0;

    assert_int_equal(proc_read(&list, NULL), BT_OK);
    row = proc_find(&list, pid);
    parent = row != NULL ? row->parent : 0;
    proc_done(&list);
    return parent;
}

static void kill_and_reap(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void kill_9_of_the_daemon_leaves_nothing_after_5_s(void **state)
{
    struct world *w = *state;
    pid_t daemon_pid = start_daemon(w);
    struct agents agents = wait_agents(w);
    pid_t spawner = parent_of(agents.a);
    msec killed;

    kill_and_reap(daemon_pid);
    killed = clock_mono_ms();
    wait_gone(w, agents.a, 5000);
    wait_gone(w, agents.b, 5000 - (clock_mono_ms() - killed));
    wait_gone(w, agents.grandchild, 5000 - (clock_mono_ms() - killed));
    wait_gone(w, spawner, 5000);
    print_message("all gone after %llu ms\n", (unsigned long long)(clock_mono_ms() - killed));
}

static void every_agent_of_a_killed_daemon_is_asked_to_end_before_it_is_killed(void **state)
{
    struct world *w = *state;
    pid_t daemon_pid = start_daemon_of(w, "obedient", "obedient");
    pid_t pids[2];
    pid_t obeyed[2];
    pid_t other;

    for (int i = 0; i < 2; i++) {
        wait_line(w, &pids[i], &other);
        assert_int_equal(other, 0);
    }
    kill_and_reap(daemon_pid);
    for (int i = 0; i < 2; i++) { /* of the first child too */
        wait_line(w, &obeyed[i], &other);
        assert_int_equal(other, obeyed[i]);
    }
    assert_true((obeyed[0] == pids[0] && obeyed[1] == pids[1]) ||
                (obeyed[0] == pids[1] && obeyed[1] == pids[0]));
    wait_gone(w, pids[0], WAIT_MS);
    wait_gone(w, pids[1], WAIT_MS);
}

static void open_as_successor(struct world *w, const char *role_of_b)
{
    const struct spawn_spec specs[] = {agent_spec(w, "a#1", "wait", NULL),
                                       agent_spec(w, "b#1", role_of_b, NULL)};

    world_open(w, specs, 2);
}

static void a_new_daemon_adopts_the_same_processes(void **state)
{
    struct world *w = *state;
    pid_t daemon_pid = start_daemon(w);
    struct agents agents = wait_agents(w);
    pid_t spawner = parent_of(agents.a);

    kill_and_reap(daemon_pid);
    assert_int_equal(setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/elsewhere", 1), 0);
    open_as_successor(w, "daemon");
    assert_int_equal(spawn_spawner_pid(w->spawn), spawner);
    wait_event(w, SPAWN_ADOPTED);
    assert_string_equal(w->last.name, "a#1");
    assert_int_equal(w->last.pid, agents.a);
    assert_true(spawn_registered(w->spawn, str_from(w->last.instance_id), clock_mono_ms()));
    wait_event(w, SPAWN_ADOPTED);
    assert_int_equal(w->last.pid, agents.b);
    wait_event(w, SPAWN_UP);
    assert_true(is_alive(agents.grandchild));
    spawn_stop_all(w->spawn, 500, clock_mono_ms());
    turn_until_idle(w);
    assert_false(is_alive(agents.a) || is_alive(agents.b) || is_alive(agents.grandchild));
    assert_int_equal(w->seen[SPAWN_STARTED], 0);
}

static void a_changed_spec_is_started_anew(void **state)
{
    struct world *w = *state;
    pid_t daemon_pid = start_daemon(w);
    struct agents agents = wait_agents(w);

    kill_and_reap(daemon_pid);
    open_as_successor(w, "deaf");
    wait_event(w, SPAWN_ADOPTED);
    assert_string_equal(w->last.name, "a#1");
    wait_event(w, SPAWN_STARTED);
    assert_string_equal(w->last.name, "b#1");
    wait_gone(w, agents.b, 2000);
    wait_gone(w, agents.grandchild, 2000);
    assert_true(is_alive(agents.a));
}

static void abandoned_agents_are_adopted_by_the_same_process(void **state)
{
    struct world *w = *state;
    pid_t pid;
    pid_t other;

    open_as_successor(w, "wait");
    wait_line(w, &pid, &other);
    wait_line(w, &pid, &other);
    spawn_abandon(w->spawn);
    w->spawn = NULL;
    open_as_successor(w, "wait");
    wait_event(w, SPAWN_ADOPTED);
    wait_event(w, SPAWN_ADOPTED);
    assert_true(is_alive(pid));
}

static void a_killed_spawner_is_replaced_and_its_children_restarted(void **state)
{
    struct world *w = *state;
    pid_t spawner;
    pid_t pid;
    pid_t grandchild;
    struct spawn_spec spec = agent_spec(w, "b#1", "daemon", NULL);

    world_open(w, &spec, 1);
    spawner = spawn_spawner_pid(w->spawn);
    wait_line(w, &pid, &grandchild);
    assert_int_equal(kill(spawner, SIGKILL), 0);
    wait_event(w, SPAWN_EXITED);
    assert_string_equal(w->last.reason, "the spawner ended");
    wait_event(w, SPAWN_RESTARTED);
    assert_true(spawn_spawner_pid(w->spawn) > 0 && spawn_spawner_pid(w->spawn) != spawner);
    wait_gone(w, pid, 2000);
    wait_gone(w, grandchild, 2000);
}

static void what_a_killed_daemon_and_spawner_left_is_swept(void **state)
{
    struct world *w = *state;
    pid_t daemon_pid = start_daemon(w);
    struct agents agents = wait_agents(w);
    pid_t spawner = parent_of(agents.a);

    /* stopped, so that it cannot act when the daemon ends */
    assert_int_equal(kill(spawner, SIGSTOP), 0);
    kill_and_reap(daemon_pid);
    assert_int_equal(kill(spawner, SIGKILL), 0);
    wait_gone(w, agents.a, 2000);
    wait_gone(w, agents.b, 2000);
    assert_true(is_alive(agents.grandchild));
    open_as_successor(w, "wait");
    wait_event(w, SPAWN_STARTED);
    wait_gone(w, agents.grandchild, 2000);
}

/* Imitates a spawner of another version: sends a foreign HELLO, and ends on SHUTDOWN. */
static void foreign_spawner(const char *dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct packet hello = {.type = PACKET_HELLO, .text = "spawner/0 of old"};
    uint8_t in[PACKET_BYTES];
    struct buf out;
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int conn;

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/spawner.sock", dir);
    if (bind(listener, (const struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 4) != 0 ||
        kill(getpid(), SIGSTOP) != 0) {
        _exit(1);
    }
    conn = accept(listener, NULL, NULL);
    buf_init(&out, PACKET_BYTES);
    packet_encode(&hello, &out);
    if (send(conn, out.at, out.len, 0) < 0 || recv(conn, in, sizeof in, 0) < 1 ||
        in[0] != PACKET_SHUTDOWN) {
        _exit(1);
    }
    (void)unlink(at.sun_path);
    _exit(0);
}

static void a_spawner_of_another_version_is_told_to_end(void **state)
{
    struct world *w = *state;
    pid_t pid = fork();
    int status = -1;

    assert_true(pid >= 0);
    if (pid == 0) {
        foreign_spawner(w->dir);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid); /* stopped: it listens */
    assert_true(WIFSTOPPED(status));
    assert_int_equal(kill(pid, SIGCONT), 0);
    open_as_successor(w, "wait");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    wait_event(w, SPAWN_STARTED);
}

static void a_stale_socket_file_does_no_harm(void **state)
{
    struct world *w = *state;
    char path[2 * PATH_BYTES];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/spawner.sock", w->dir);
    file = fopen(path, "we");
    assert_non_null(file);
    (void)fclose(file);
    open_as_successor(w, "wait");
    wait_event(w, SPAWN_STARTED);
}

/* ---- a daemon that does not read ---- */

enum { REPORTS = 900 }; /* more than the socket holds */

/* A spawner of ours, whose daemon is the test; *ret_conn is the connection. */
static pid_t start_spawner(struct world *w, int *ret_conn)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    char fd[16];
    pid_t pid;

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/ours.sock", w->dir);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    (void)snprintf(fd, sizeof fd, "%d", listener);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char program[] = "/proc/self/exe";
        char argument[] = SPAWNER_ARGUMENT;
        char grace[] = "1000";
        char flags[] = "1"; /* no cgroup */
        char *argv[] = {program, argument, w->dir, fd, grace, flags, NULL};
        if (freopen("/dev/null", "w", stderr) != NULL) {
            (void)execv(program, argv);
        }
        _exit(94);
    }
    (void)close(listener);
    *ret_conn = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(*ret_conn, (const struct sockaddr *)&at, sizeof at), 0);
    return pid;
}

static void order_start(int conn, struct buf *out, uint32_t i)
{
    char program[] = "/bin/true";
    char instance[UUID_TEXT_LEN + 1];
    struct packet p = {.type = PACKET_START, .instance = instance, .name = "a#1"};

    p.argv[0] = program;
    (void)snprintf(instance, sizeof instance, "0190F3C2-7A1B-7C3D-9E4F-%012u", i);
    buf_clear(out);
    packet_encode(&p, out);
    assert_int_equal(send(conn, out->at, out->len, 0), (ssize_t)out->len);
}

/* It has read all orders, and waits. */
static bool is_asleep(pid_t pid, int conn)
{
    char path[64];
    char state = 0;
    int unread = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    (void)fclose(file);
    return ioctl(conn, SIOCOUTQ, &unread) == 0 && unread == 0 && state == 'S';
}

static void no_report_is_lost_on_a_daemon_that_does_not_read(void **state)
{
    static uint8_t in[PACKET_BYTES];
    struct world *w = *state;
    const struct timeval deadline = {.tv_sec = WAIT_MS / 1000};
    const msec until = clock_mono_ms() + WAIT_MS;
    const uint8_t shutdown = PACKET_SHUTDOWN;
    char path[2 * PATH_BYTES];
    struct packet p;
    struct buf out;
    pid_t pid;
    int conn;

    (void)snprintf(path, sizeof path, "%s/log", w->dir);
    (void)fclose(fopen(path, "we")); /* no folder: no agent can start */
    pid = start_spawner(w, &conn);
    buf_init(&out, PACKET_BYTES);
    for (uint32_t i = 0; i < REPORTS; i++) {
        order_start(conn, &out, i);
    }
    while (!is_asleep(pid, conn)) {
        assert_true(clock_mono_ms() < until);
        (void)sched_yield();
    }
    assert_int_equal(setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline), 0);
    for (uint32_t i = 0; i < 1 + REPORTS; i++) {
        const ssize_t n = recv(conn, in, sizeof in, 0);
        if (n <= 0) {
            fail_msg("%u of %d reports, and then none", i, REPORTS);
        }
        assert_int_equal(packet_decode(in, (size_t)n, &p, NULL), BT_OK);
        assert_int_equal(p.type, i == 0 ? PACKET_HELLO : PACKET_START_FAILED);
    }
    assert_int_equal(send(conn, &shutdown, 1, 0), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(conn);
    buf_done(&out);
}

static void a_missing_state_directory_is_an_error(void **state)
{
    struct spawn_options opt = {.state_dir = "/nonexistent/baton"};
    struct bt_error err = {0};
    struct spawn *s = NULL;

    (void)state;
    assert_int_equal(spawn_begin(&opt, &s, &err), BT_NOT_FOUND);
    opt.state_dir = "relative";
    assert_int_equal(spawn_begin(&opt, &s, &err), BT_INVALID);
    assert_null(s);
}

#define ONE(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define BOTH(test)                                                                                 \
    ONE(test), cmocka_unit_test_setup_teardown(test, world_setup_no_cgroup, world_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOTH(kill_9_of_the_daemon_leaves_nothing_after_5_s),
        ONE(every_agent_of_a_killed_daemon_is_asked_to_end_before_it_is_killed),
        BOTH(a_new_daemon_adopts_the_same_processes),
        ONE(a_changed_spec_is_started_anew),
        ONE(abandoned_agents_are_adopted_by_the_same_process),
        BOTH(a_killed_spawner_is_replaced_and_its_children_restarted),
        BOTH(what_a_killed_daemon_and_spawner_left_is_swept),
        ONE(a_spawner_of_another_version_is_told_to_end),
        ONE(a_stale_socket_file_does_no_harm),
        ONE(no_report_is_lost_on_a_daemon_that_does_not_read),
        ONE(a_missing_state_directory_is_an_error),
    };
    int special = special_main(argc, argv);

    return special >= 0 ? special : cmocka_run_group_tests(tests, NULL, NULL);
}
