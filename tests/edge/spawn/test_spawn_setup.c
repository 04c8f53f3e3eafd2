/* What an agent process gets and does not get, how failures to start are reported, and which specs
 * are rejected. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "tests/edge/spawn/fixture.h"

enum { TEXT_BYTES = 64 * 1024 };

static void path_in(const struct world *w, const char *name, char ret_path[2 * PATH_BYTES])
{
    (void)snprintf(ret_path, 2 * PATH_BYTES, "%s/%s", w->dir, name);
}

/* The file's text with a newline before and after, so that tests can search whole lines. */
static char *read_log(const struct world *w, const char *name)
{
    static char text[TEXT_BYTES];
    char path[2 * PATH_BYTES];
    size_t n;
    FILE *file;

    path_in(w, name, path);
    file = fopen(path, "re");
    assert_non_null(file);
    text[0] = '\n';
    n = fread(text + 1, 1, sizeof text - 2, file);
    text[n + 1] = 0;
    (void)fclose(file);
    return text;
}

static bool has_line(const char *text, const char *line)
{
    char wanted[PATH_BYTES * 2];

    (void)snprintf(wanted, sizeof wanted, "\n%s\n", line);
    return strstr(text, wanted) != NULL;
}

static const char *run_report(struct world *w, struct spawn_spec *spec)
{
    pid_t pid;
    pid_t other;

    world_open(w, spec, 1);
    wait_line(w, &pid, &other);
    return read_log(w, "log/a#1.log");
}

static void environment_is_exactly_what_was_listed(void **state)
{
    static const char *const names[] = {
        "BATON_INSTANCE_ID", "PATH",           "HOME",           "LANG",
        "BATON_STATE",       "BATON_AGENT_ID", "BATON_SETTINGS", "BATON_CAPACITY",
        "BATON_SPAWNED",     "BATON_HIDE",     "COLOUR",         "PASSED"};
    const char *env[] = {"COLOUR=blue", "PASSED", "NOT_SET_ANYWHERE", NULL};
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "report", NULL);
    char line[2 * PATH_BYTES];
    const char *text;
    struct stat st;
    size_t lines = 0;

    assert_int_equal(setenv("SECRET_OF_THE_DAEMON", "x", 1), 0);
    assert_int_equal(setenv("PASSED", "on", 1), 0);
    assert_int_equal(setenv("LANG", "C.UTF-8", 1), 0);
    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    spec.env = env;
    spec.settings = "{\"a\":1}";
    spec.capacity = 3;
    text = run_report(w, &spec);
    assert_true(has_line(text, "COLOUR=blue"));
    assert_true(has_line(text, "PASSED=on"));
    assert_true(has_line(text, "BATON_SETTINGS={\"a\":1}"));
    assert_true(has_line(text, "BATON_CAPACITY=3"));
    assert_true(has_line(text, "BATON_AGENT_ID=tester"));
    assert_int_equal(stat(w->dir, &st), 0);
    (void)snprintf(line, sizeof line, "BATON_SPAWNED=%llx.%llx", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    assert_true(has_line(text, line));
    (void)snprintf(line, sizeof line, "BATON_STATE=%s", w->dir);
    assert_true(has_line(text, line));
    text = strstr(text, "/proc/self/environ\n") + strlen("/proc/self/environ\n");
    while (*text != '\n' && *text != 0) {
        bool known = false;

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            size_t len = strlen(names[i]);
            known = known || (strncmp(text, names[i], len) == 0 && text[len] == '=');
        }
        assert_true(known);
        lines++;
        text = strchr(text, '\n') + 1;
    }
    assert_int_equal(lines, sizeof names / sizeof names[0]);
}

static void no_descriptor_but_the_three(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "report", NULL);
    int leak = open("/dev/zero", O_RDONLY); /* without O_CLOEXEC, as a library might open it */
    char line[2 * PATH_BYTES];
    const char *text = run_report(w, &spec);

    assert_true(leak >= 0);
    assert_non_null(strstr(text, "== fds\nfd 0 /dev/null\nfd 1 "));
    (void)snprintf(line, sizeof line, "fd 1 %s/log/a#1.log", w->dir);
    assert_true(has_line(text, line));
    (void)snprintf(line, sizeof line, "fd 2 %s/log/a#1.log\n== session own", w->dir);
    assert_true(has_line(text, line));
    for (int fd = 0; fd < 64; fd++) {
        char to[PATH_BYTES] = "";
        (void)snprintf(line, sizeof line, "/proc/%d/fd/%d", (int)spawn_spawner_pid(w->spawn), fd);
        assert_true(readlink(line, to, sizeof to - 1) < 0 || strcmp(to, "/dev/zero") != 0);
    }
    (void)close(leak);
}

static void limits_signals_and_privileges_are_as_promised(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "report", NULL);
    char line[2 * PATH_BYTES];
    const char *text;

    (void)signal(SIGUSR1, SIG_IGN); /* must not be inherited */
    spec.nofile = 77;
    text = run_report(w, &spec);
    assert_non_null(strstr(text, "\nMax core file size        0                    0  "));
    assert_non_null(strstr(text, "\nMax open files            77                   77  "));
    assert_true(has_line(text, "NoNewPrivs:\t1"));
    assert_true(has_line(text, "SigBlk:\t0000000000000000"));
    assert_true(has_line(text, "SigIgn:\t0000000000000000"));
    (void)snprintf(line, sizeof line, "== cwd %s", w->dir);
    assert_true(has_line(text, line));
    (void)signal(SIGUSR1, SIG_DFL);
}

static void memory_limit_is_set_and_exit_0_of_a_transient_is_expected(void **state)
{
    const char *argv[] = {"sh", "-c", "cat /proc/self/limits", NULL};
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "", NULL);

    spec.argv = argv;
    spec.memory_bytes = 1073741824;
    spec.policy.restart = POLICY_TRANSIENT;
    world_open(w, &spec, 1);
    wait_event(w, SPAWN_EXITED);
    assert_string_equal(w->last.reason, "exit code 0");
    assert_true(w->last.expected);
    assert_true(spawn_is_idle(w->spawn));
    assert_non_null(strstr(read_log(w, "log/a#1.log"),
                           "\nMax address space         1073741824           1073741824  "));
}

static void start_failures_say_what_and_why(void **state)
{
    const char *missing[] = {"/nonexistent/agent", NULL};
    struct world *w = *state;
    struct spawn_spec specs[] = {agent_spec(w, "a#1", "wait", NULL),
                                 agent_spec(w, "b#1", "wait", NULL)};

    specs[0].argv = missing;
    specs[1].cwd = "/nonexistent";
    specs[0].policy.intensity = 1;
    specs[1].policy.restart = POLICY_TEMPORARY;
    world_open(w, specs, 2);
    wait_event(w, SPAWN_GAVE_UP);
    assert_string_equal(w->last.reason, "1 crashes within 30000 ms; the last: exec of "
                                        "/nonexistent/agent failed: No such file or directory");
    if (w->seen[SPAWN_EXITED] < 2) {
        wait_event(w, SPAWN_EXITED);
    }
    assert_int_equal(w->seen[SPAWN_STARTED], 0);
    for (size_t i = 0; i < spawn_count(w->spawn); i++) {
        struct spawn_info info;
        spawn_describe(w->spawn, i, &info);
        assert_string_equal(info.reason,
                            i == 0 ? "exec of /nonexistent/agent failed: No such file or directory"
                                   : "working directory failed: No such file or directory");
    }
}

static void full_and_closed_output_do_not_block_an_agent(void **state)
{
    struct world *w = *state;
    struct spawn_spec specs[] = {agent_spec(w, "flood#1", "flood", NULL),
                                 agent_spec(w, "mute#1", "mute", NULL)};
    char path[2 * PATH_BYTES];
    struct stat st;
    pid_t pid;
    pid_t other;

    world_open(w, specs, 2);
    wait_line(w, &pid, &other);
    wait_line(w, &pid, &other);
    path_in(w, "log/flood#1.log", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 64 * 65536);
    assert_int_equal(st.st_mode & 0777, 0600);
    path_in(w, "spawner.sock", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_large_log_is_rotated_at_the_start(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "wait", NULL);
    char path[2 * PATH_BYTES];
    struct stat st;
    pid_t pid;
    pid_t other;
    int fd;

    path_in(w, "log", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_in(w, "log/a#1.log", path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 10 * 1024 * 1024) == 0);
    (void)close(fd);
    world_open(w, &spec, 1);
    wait_line(w, &pid, &other);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 1024);
    path_in(w, "log/a#1.log.1", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 10 * 1024 * 1024);
}

static void a_log_that_is_a_link_is_refused(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "wait", NULL);
    char path[2 * PATH_BYTES];

    spec.policy.restart = POLICY_TEMPORARY;
    path_in(w, "log", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_in(w, "log/a#1.log", path);
    assert_int_equal(symlink("victim", path), 0);
    world_open(w, &spec, 1);
    wait_event(w, SPAWN_EXITED);
    assert_string_equal(w->last.reason,
                        "opening the log failed: Too many levels of symbolic links");
    path_in(w, "log/victim", path);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_stop_right_after_the_start_is_not_lost(void **state)
{
    struct world *w = *state;
    struct spawn_spec spec = agent_spec(w, "a#1", "wait", NULL);
    msec start = clock_mono_ms();

    for (int i = 0; i < 20; i++) {
        if (i == 0) {
            world_open(w, &spec, 1);
        } else {
            assert_int_equal(spawn_start_child(w->spawn, STR_LIT("a#1"), clock_mono_ms(), NULL), 0);
        }
        assert_int_equal(spawn_stop_child(w->spawn, STR_LIT("a#1"), clock_mono_ms(), NULL), 0);
        wait_event(w, SPAWN_EXITED);
        assert_string_equal(w->last.reason, "killed by signal 15");
    }
    assert_true(clock_mono_ms() - start < spec.policy.grace_ms);
    assert_int_equal(spawn_stop_child(w->spawn, STR_LIT("x"), 0, NULL), BT_NOT_FOUND);
}

static void refuses(struct world *w, const struct spawn_spec *specs, size_t n, enum bt_code code)
{
    struct bt_error err = {0};

    assert_int_equal(spawn_set_children(w->spawn, specs, n, 0, &err), code);
    assert_int_equal(err.code, code);
    assert_true(strlen(err.msg) > 10);
    assert_int_equal(spawn_count(w->spawn), 0);
}

static void bad_specs_are_refused_as_a_whole(void **state)
{
    static char large[60 * 1024 + 1];
    const char *none[] = {NULL};
    const char *ours[] = {"BATON_STATE=/", NULL};
    struct world *w = *state;
    struct spawn_spec specs[] = {agent_spec(w, "a#1", "wait", NULL),
                                 agent_spec(w, "a#1", "wait", NULL)};
    struct spawn_options opt = {.state_dir = w->dir};

    memset(large, 'x', sizeof large - 1);
    assert_int_equal(spawn_begin(&opt, &w->spawn, NULL), BT_OK);
    assert_int_equal(spawn_greet(&w->spawn, NULL), BT_OK);
    refuses(w, specs, 2, BT_INVALID);
    specs[0].name = "../a";
    refuses(w, specs, 1, BT_INVALID);
    specs[0].name = "a";
    specs[0].argv = none;
    refuses(w, specs, 1, BT_INVALID);
    specs[0] = specs[1];
    specs[0].env = ours;
    refuses(w, specs, 1, BT_INVALID);
    specs[0] = specs[1];
    specs[0].settings = large;
    refuses(w, specs, 1, BT_LIMIT);
    assert_int_equal(spawn_set_children(w->spawn, &specs[1], 1, clock_mono_ms(), NULL), BT_OK);
    assert_int_equal(spawn_set_children(w->spawn, &specs[1], 1, 0, NULL), BT_CONFLICT);
}

#define ONE(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ONE(environment_is_exactly_what_was_listed),
        ONE(no_descriptor_but_the_three),
        ONE(limits_signals_and_privileges_are_as_promised),
        ONE(memory_limit_is_set_and_exit_0_of_a_transient_is_expected),
        ONE(start_failures_say_what_and_why),
        ONE(full_and_closed_output_do_not_block_an_agent),
        ONE(a_large_log_is_rotated_at_the_start),
        ONE(a_log_that_is_a_link_is_refused),
        ONE(a_stop_right_after_the_start_is_not_lost),
        ONE(bad_specs_are_refused_as_a_whole),
    };
    int special = special_main(argc, argv);

    return special >= 0 ? special : cmocka_run_group_tests(tests, NULL, NULL);
}
