/* Ends: SIGTERM and SIGKILL, whole trees, crash loops. Each test runs with cgroup.kill and
 * without. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/spawn/cgroup.h"
#include "tests/edge/spawn/fixture.h"

static void agent_that_obeys_term_ends_at_once(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "wait", NULL);
    pid_t pid;
    pid_t other;

    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    spawn_stop_all(w->spawn, 0, clock_mono_ms());
    wait_event(w, SPAWN_EXITED);
    assert_int_equal(w->last.pid, pid);
    assert_true(w->last.expected);
    assert_string_equal(w->last.reason, "killed by signal 15");
    assert_true(spawn_is_idle(w->spawn));
}

/* The sweep ends a tree without one, too: that cgroups are in use shows nowhere else. */
static void an_agent_has_a_cgroup_of_its_own_unless_that_is_off(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "wait", NULL);
    char text[4096] = "";
    char path[64];
    struct cgroup cg;
    bool inside;
    pid_t pid;
    pid_t other;
    FILE *f;

    cgroup_probe(&cg);
    inside = cg.dir >= 0 && !w->no_cgroup;
    cgroup_done(&cg);
    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    f = fopen(path, "re");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(strstr(text, "/baton.") != NULL, inside);
    spawn_stop_all(w->spawn, 0, clock_mono_ms());
    wait_event(w, SPAWN_EXITED);
}

static void agent_that_ignores_term_is_killed_after_the_grace(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "deaf", NULL);
    pid_t pid;
    pid_t other;
    msec start;

    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    start = clock_mono_ms();
    spawn_stop_all(w->spawn, 300, start);
    wait_event(w, SPAWN_EXITED);
    assert_true(clock_mono_ms() - start >= 300);
    assert_string_equal(w->last.reason, "did not stop in time: killed by signal 9");
    assert_false(is_alive(pid));
}

static void double_forked_setsid_grandchild_dies_with_its_agent(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "daemon", NULL);
    pid_t pid;
    pid_t other;

    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    assert_true(other > 0 && is_alive(other));
    spawn_stop_all(w->spawn, 300, clock_mono_ms());
    wait_event(w, SPAWN_EXITED);
    assert_false(is_alive(pid));
    assert_false(is_alive(other));
}

static void an_orphan_without_environment_is_known_by_its_session(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "bare-orphan", NULL);
    pid_t pid;
    pid_t other;

    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    assert_true(other > 0 && is_alive(other));
    spawn_stop_all(w->spawn, 300, clock_mono_ms());
    wait_event(w, SPAWN_EXITED);
    assert_false(is_alive(other));
}

static void a_crash_takes_what_the_agent_left_with_it(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "daemon-and-crash", NULL);
    pid_t pid;
    pid_t other;

    spec.policy.restart = POLICY_TEMPORARY;
    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    wait_event(w, SPAWN_EXITED);
    assert_string_equal(w->last.reason, "exit code 4");
    assert_false(w->last.expected);
    assert_false(is_alive(other));
}

/* A double fork with an empty environment: a cgroup finds it at once, otherwise the end of the
 * spawner does. */
static void a_hidden_grandchild_does_not_outlive_the_spawner(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "hidden-daemon", NULL);
    pid_t pid;
    pid_t other;

    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    spawn_stop_all(w->spawn, 300, clock_mono_ms());
    wait_event(w, SPAWN_EXITED);
    spawn_close(w->spawn);
    w->spawn = NULL;
    assert_false(is_alive(other));
}

static void two_hundred_forks_leave_nothing(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "forks", NULL);
    pid_t pid;
    pid_t other;

    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    spawn_stop_all(w->spawn, 300, clock_mono_ms());
    turn_until_idle(w); /* the teardown looks for leftovers */
}

static void crash_loop_is_at_most_intensity_spawns_then_gives_up(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "exit", "3");

    spec.policy.intensity = 4;
    spec.policy.backoff_min_ms = 10;
    world_open(w, &spec, 1);
    wait_event(w, SPAWN_GAVE_UP);
    assert_string_equal(w->last.reason, "4 crashes within 30000 ms; the last: exit code 3");
    assert_int_equal(w->seen[SPAWN_STARTED] + w->seen[SPAWN_RESTARTED], 4);
    assert_int_equal(w->seen[SPAWN_EXITED], 4);
    assert_true(spawn_is_idle(w->spawn));
}

static void killed_agent_is_restarted_under_a_new_instance_id(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "wait", NULL);
    char first[UUID_TEXT_LEN + 1];
    pid_t pid;
    pid_t other;
    msec killed;

    w->register_all = true;
    world_open(w, &spec, 1);
    wait_event(w, SPAWN_UP);
    (void)snprintf(first, sizeof first, "%s", w->last.instance_id);
    wait_line(w, &pid, &other);
    assert_int_equal(kill(pid, SIGKILL), 0);
    killed = clock_mono_ms();
    wait_event(w, SPAWN_EXITED);
    assert_true(clock_mono_ms() - killed < 1000);
    assert_string_equal(w->last.reason, "killed by signal 9");
    assert_string_equal(w->last.instance_id, first);
    wait_event(w, SPAWN_RESTARTED);
    assert_string_not_equal(w->last.instance_id, first);
    assert_int_equal(w->last.restarts, 1);
    assert_true(w->last.pid > 0 && w->last.pid != pid);
}

static void agent_that_never_registers_is_killed(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "deaf", NULL);

    spec.policy.restart = POLICY_TEMPORARY;
    spec.policy.start_deadline_ms = 400;
    world_open(w, &spec, 1);
    wait_event(w, SPAWN_EXITED);
    assert_string_equal(w->last.reason, "did not register in time: killed by signal 9");
}

static void silent_instance_is_killed_and_restarted(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "deaf", NULL);

    w->register_all = true;
    world_open(w, &spec, 1);
    wait_event(w, SPAWN_UP);
    assert_true(spawn_owns(w->spawn, str_from(w->last.instance_id)));
    assert_false(spawn_owns(w->spawn, STR_LIT("nobody")));
    assert_false(spawn_owns(w->spawn, STR_LIT("")));
    assert_true(
        spawn_kill_instance(w->spawn, str_from(w->last.instance_id), "silent", clock_mono_ms()));
    wait_event(w, SPAWN_EXITED);
    assert_string_equal(w->last.reason, "silent: killed by signal 9");
    wait_event(w, SPAWN_RESTARTED);
    assert_false(spawn_kill_instance(w->spawn, STR_LIT("nobody"), "silent", clock_mono_ms()));
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown),                            \
        cmocka_unit_test_setup_teardown(test, world_setup_no_cgroup, world_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOTH(agent_that_obeys_term_ends_at_once),
        BOTH(an_agent_has_a_cgroup_of_its_own_unless_that_is_off),
        BOTH(agent_that_ignores_term_is_killed_after_the_grace),
        BOTH(double_forked_setsid_grandchild_dies_with_its_agent),
        BOTH(an_orphan_without_environment_is_known_by_its_session),
        BOTH(a_crash_takes_what_the_agent_left_with_it),
        BOTH(a_hidden_grandchild_does_not_outlive_the_spawner),
        BOTH(two_hundred_forks_leave_nothing),
        BOTH(crash_loop_is_at_most_intensity_spawns_then_gives_up),
        BOTH(killed_agent_is_restarted_under_a_new_instance_id),
        BOTH(agent_that_never_registers_is_killed),
        BOTH(silent_instance_is_killed_and_restarted),
    };
    int special = special_main(argc, argv);

    return special >= 0 ? special : cmocka_run_group_tests(tests, NULL, NULL);
}
