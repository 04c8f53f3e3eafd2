/* Real programs: how they end, and that they leave no process behind. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/sdk/child/child.h"
#include "protocol/base/clock.h"
#include "tests/unit/agents/exec_world.h"

static void exit_codes_have_their_classes(void **state)
{
    const struct {
        const char *script;
        const char *part;
        const char *retryable;
    } cases[] = {
        {"echo first >&2; echo last >&2; exit 3",
         "\"class\":\"UNKNOWN\",\"message\":\"sh: exit "
         "code 3: last\"",
         "\"retryable\":false"},
        {"exit 1", "sh: exit code 1\"", "\"retryable\":false"},
        {"exit 75", "\"class\":\"UNKNOWN\"", "\"retryable\":true"},
        {"exit 126", "\"class\":\"PERMISSION_DENIED\"", "\"retryable\":false"},
        {"exit 127", "\"class\":\"TOOL_NOT_FOUND\"", "\"retryable\":false"},
        {"kill -11 $$", "killed by signal 11", "\"retryable\":false"},
        {"printf 'bad \\\\377 end' >&2; exit 1", "exit code 1: bad ? end", "\"retryable\":false"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = exec_script("sh", cases[i].script);
        steps_expect(reply, cases[i].part);
        steps_expect(reply, cases[i].retryable);
    }
}

static void settings_say_which_exit_codes_retry_and_what_they_mean(void **state)
{
    const struct {
        const char *script;
        const char *part;
        const char *retryable;
    } cases[] = {
        {"exit 1", "\"class\":\"UNKNOWN\"", "\"retryable\":true"},
        {"exit 9", "\"class\":\"UNKNOWN\"", "\"retryable\":true"},
        {"exit 75", "\"class\":\"UNKNOWN\"",
         "\"retryable\":false"}, /* the list is the whole list */
        {"exit 4", "\"class\":\"RESOURCE_NOT_FOUND\"", "\"retryable\":false"},
        {"exit 127", "\"class\":\"TOOL_NOT_FOUND\"", "\"retryable\":false"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = exec_script("sh-codes", cases[i].script);
        steps_expect(reply, cases[i].part);
        steps_expect(reply, cases[i].retryable);
    }
    steps_expect(exec_script("sh-codes", "echo $SECRET"), "\"text\":\"never handed on\"");
}

static void details_tell_exit_code_duration_and_the_end_of_stderr(void **state)
{
    const char *reply;

    (void)state;
    reply = exec_script("sh", "echo one >&2; echo two >&2; exit 3");
    steps_expect(reply, "\"exitCode\":3");
    steps_expect(reply, "\"durationMs\":");
    steps_expect(reply, "\"stderr\":\"one\\ntwo\\n\"");
    reply = exec_script("sh", "echo note >&2; echo done");
    steps_expect(reply, "\"text\":\"done\"");
    steps_expect(reply, "\"exitCode\":0");
    steps_expect(reply, "\"stderr\":\"note\\n\"");
    steps_expect(exec_script("sh", "kill -9 $$"), "\"signal\":9");
    steps_expect(exec_script("sh", "printf '\\\\377\\\\n' >&2; exit 1"),
                 "\"stderr\":\"\xEF\xBF\xBD");
}

static void only_the_last_4096_bytes_of_stderr_are_kept_in_whole_lines(void **state)
{
    const char *reply;

    (void)state;
    /* 40 lines of 100 bytes and 96 bytes: 4096. One byte more drops the first line. */
    reply = exec_script("sh", "for i in $(seq 40); do printf '%099d\\n' $i >&2; done; "
                              "printf '%095d\\n' 99 >&2; exit 1");
    assert_null(strstr(reply, "stderrTruncated"));
    reply = exec_script("sh", "for i in $(seq 40); do printf '%099d\\n' $i >&2; done; "
                              "printf '%096d\\n' 99 >&2; exit 1");
    steps_expect(reply, "\"stderrTruncated\":true");
    assert_null(strstr(reply, "0001\\n"));
    assert_non_null(strstr(reply, "0002\\n"));
}

static void lines_with_the_prefix_are_progress_and_nothing_else(void **state)
{
    const char *reply;

    (void)state;
    reply = exec_script("sh", "echo before >&2; echo '::progress 40 half way' >&2; "
                              "echo '::progressive' >&2; echo '::progress' >&2; exit 1");
    steps_expect(reply, "exit code 1: ::progressive");
    steps_expect(reply, "\"stderr\":\"before\\n::progressive\\n\"");
    assert_null(strstr(exec_logged, "half way"));
}

static void what_cannot_be_started_is_said(void **state)
{
    (void)state;
    steps_expect(exec_step("nothing", "{}"), "\"class\":\"TOOL_NOT_FOUND\"");
    steps_expect(exec_step("nothing", "{}"),
                 "baton-no-such-program: there is no such program in PATH");
    steps_expect(exec_step("directory", "{}"), "\"class\":\"PERMISSION_DENIED\"");
    steps_expect(exec_script("sh-lost", ":"), "cwd '/does/not/exist': no such directory");
}

static void argument_that_is_too_long_for_the_system_is_refused(void **state)
{
    struct buf json;

    (void)state;
    buf_init(&json, LIMIT_STEP_BYTES);
    buf_add_cstr(&json, "{\"parameters\":{\"b\":1,\"a\":\"");
    while (json.len < 1024 * 1024) {
        buf_add_cstr(&json, "0123456789abcdef");
    }
    buf_add_cstr(&json, "\"}}");
    steps_expect(exec_step("args", buf_cstr(&json)), "its arguments are too long");
    buf_done(&json);
}

/* True when no process of the session whose id the file has is alive. */
static bool is_gone(const char *name)
{
    char path[128];
    char text[32] = "";
    FILE *f;
    pid_t pid;

    (void)snprintf(path, sizeof path, "%s/%s", exec_dir, name);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    pid = (pid_t)strtol(text, NULL, 10);
    assert_true(pid > 1);
    assert_int_equal(unlink(path), 0);
    /* A zombie that waits for its new parent counts as gone. */
    for (int tries = 0; kill(pid, 0) == 0; tries++) {
        char state = '?';
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        f = fopen(path, "r");
        if (f != NULL) {
            (void)!fscanf(f, "%*d %*s %c", &state);
            (void)fclose(f);
        }
        if (state == 'Z' || f == NULL) {
            return true;
        }
        if (tries > 1000000) {
            return false;
        }
    }
    return true;
}

static void program_that_ignores_sigterm_is_killed_after_the_grace_with_its_group(void **state)
{
    msec before = clock_mono_ms();
    const char *reply =
        exec_script("sh-short", "trap '' TERM; sh -c 'trap \\\"\\\" TERM; echo $$ > "
                                "@/kid; while :; do sleep 1; done' & "
                                "while :; do sleep 1; done");
    msec took = clock_mono_ms() - before;

    (void)state;
    steps_expect(reply, "\"class\":\"TIMEOUT\"");
    steps_expect(reply, "\"retryable\":true");
    assert_true(took >= CHILD_GRACE_MS && took < CHILD_GRACE_MS * 5);
    assert_true(is_gone("kid"));
}

static void program_that_obeys_sigterm_ends_at_once(void **state)
{
    msec before = clock_mono_ms();

    (void)state;
    steps_expect(exec_script("sh-short", "exec sleep 100"), "\"class\":\"TIMEOUT\"");
    assert_true(clock_mono_ms() - before < CHILD_GRACE_MS);
}

static void grandchild_that_holds_the_output_is_ended_at_the_deadline(void **state)
{
    const char *reply = exec_script("sh-short", "sleep 100 & echo $! > @/kid; echo done");

    (void)state;
    steps_expect(reply, "\"class\":\"TIMEOUT\"");
    steps_expect(reply, "something it started held its output open");
    assert_true(is_gone("kid"));
}

static void program_that_closed_its_output_is_waited_for_until_the_deadline(void **state)
{
    (void)state;
    steps_expect(exec_script("sh-short", "exec >&- 2>&-; exec sleep 100"), "\"class\":\"TIMEOUT\"");
    steps_expect(exec_script("sh", "exec >&- 2>&-; exit 4"), "exit code 4");
}

static void what_is_left_of_the_group_ends_with_the_program(void **state)
{
    const char *reply =
        exec_script("sh", "sleep 100 >/dev/null 2>&1 </dev/null & echo $! > @/kid; echo done");

    (void)state;
    steps_expect(reply, "\"text\":\"done\"");
    assert_true(is_gone("kid"));
}

static void *cancel(void *arg)
{
    struct bt_step *step = arg;
    char path[128];
    struct stat st;
    msec until;

    (void)snprintf(path, sizeof path, "%s/started", exec_dir);
    until = msec_add(clock_mono_ms(), 10000);
    while (stat(path, &st) != 0 && clock_mono_ms() < until) {
    }
    (void)unlink(path);
    atomic_store(&step->cancelled, true);
    return NULL;
}

static void cancel_ends_the_program(void **state)
{
    char json[256];
    struct bt_step *step;
    pthread_t thread;

    (void)state;
    (void)snprintf(json, sizeof json,
                   "{\"parameters\":{\"script\":\"touch %s/started; exec sleep 100\"}}", exec_dir);
    step = steps_make("sh", json);
    assert_int_equal(pthread_create(&thread, NULL, cancel, step), 0);
    steps_expect(exec_run_made(step), "\"class\":\"CANCELLED\"");
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void step_deadline_ends_the_program(void **state)
{
    (void)state;
    steps_expect(
        exec_step("sh", "{\"deadlineMs\":50,\"parameters\":{\"script\":\"exec sleep 100\"}}"),
        "\"class\":\"TIMEOUT\"");
}

static void cancelled_step_starts_nothing(void **state)
{
    char json[256];
    char path[128];
    struct stat st;
    struct bt_step *step;

    (void)state;
    (void)snprintf(json, sizeof json, "{\"parameters\":{\"script\":\"touch %s/started\"}}",
                   exec_dir);
    (void)snprintf(path, sizeof path, "%s/started", exec_dir);
    step = steps_make("sh", json);
    atomic_store(&step->cancelled, true);
    steps_expect(exec_run_made(step), "\"class\":\"CANCELLED\"");
    assert_int_equal(stat(path, &st), -1);
}

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

static void hundred_runs_leave_no_descriptor_and_no_zombie(void **state)
{
    int before = open_descriptors();

    (void)state;
    for (int i = 0; i < 25; i++) {
        (void)exec_script("sh", "echo out; echo err >&2");
        (void)exec_script("sh", "exit 1");
        (void)exec_step("nothing", "{}");
        (void)exec_script("sh-none", "kill -9 $$");
    }
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_have_their_classes),
        cmocka_unit_test(settings_say_which_exit_codes_retry_and_what_they_mean),
        cmocka_unit_test(details_tell_exit_code_duration_and_the_end_of_stderr),
        cmocka_unit_test(only_the_last_4096_bytes_of_stderr_are_kept_in_whole_lines),
        cmocka_unit_test(lines_with_the_prefix_are_progress_and_nothing_else),
        cmocka_unit_test(what_cannot_be_started_is_said),
        cmocka_unit_test(argument_that_is_too_long_for_the_system_is_refused),
        cmocka_unit_test(program_that_ignores_sigterm_is_killed_after_the_grace_with_its_group),
        cmocka_unit_test(program_that_obeys_sigterm_ends_at_once),
        cmocka_unit_test(grandchild_that_holds_the_output_is_ended_at_the_deadline),
        cmocka_unit_test(program_that_closed_its_output_is_waited_for_until_the_deadline),
        cmocka_unit_test(what_is_left_of_the_group_ends_with_the_program),
        cmocka_unit_test(cancel_ends_the_program),
        cmocka_unit_test(step_deadline_ends_the_program),
        cmocka_unit_test(cancelled_step_starts_nothing),
        cmocka_unit_test(hundred_runs_leave_no_descriptor_and_no_zombie),
    };

    return cmocka_run_group_tests(tests, exec_set_up, exec_tear_down);
}
