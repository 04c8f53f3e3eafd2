/* Real programs: what comes in, what comes out, how they end, and that nothing of them is left. */
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/exec/child.h"
#include "agents/exec/run.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "tests/unit/agents/steps.h"

static struct exec_settings *settings;
static char dir[] = "/tmp/baton-test-exec-XXXXXX";
static char logged[4096];
static size_t logged_lines;

#define SH "\"argv\":[\"/bin/sh\",\"-c\",\"{script}\"]"
#define CMD(id, members) "{\"id\":\"" id "\",\"description\":\"d\"," members "}"

static const char settings_json[] =
    "{\"commands\":[" CMD("sh", SH) "," CMD("sh-none", SH ",\"stdin\":\"none\"") "," CMD("sh-json", SH ",\"output\":\"json\"") "," CMD("sh-text", SH ",\"output\":\"text\"") "," CMD(
        "sh-short", SH
        ",\"timeoutMs\":"
        "50") "," CMD("sh-"
                      "cw"
                      "d",
                      SH ",\""
                         "cwd"
                         "\":"
                         "\"/"
                         "usr"
                         "\"") "," CMD("sh-lost", SH
                                       ",\"cw"
                                       "d\":"
                                       "\"/"
                                       "does/"
                                       "not/"
                                       "exist"
                                       "\"") "," CMD("env",
                                                     "\"argv\":[\"env\"],\"stdin\":\"none\","
                                                     "\"env\":{\"EXTRA\":\"a b\","
                                                     "\"LANG\":\"C\"}") "," CMD("cat",
                                                                                "\"argv\":["
                                                                                "\"cat\"]") "," CMD("cat-text",
                                                                                                    "\"argv\":[\"cat\"],\"stdin\":\"text\"") "," CMD("args",
                                                                                                                                                     "\"argv\":[\"printf\",\"<%s>\",\"{a}\",\"x{b}y\",\"\"]") "," CMD("nothing",
                                                                                                                                                                                                                      "\"argv\":[\"baton-no-such-program\"]") "," CMD("directory",
                                                                                                                                                                                                                                                                      "\"argv\":[\"/usr\"]") "]}";

static void sink(enum log_level level, const char *event, const char *text, void *self)
{
    size_t used = strlen(logged);

    (void)level;
    (void)self;
    logged_lines++;
    (void)snprintf(logged + used, sizeof logged - used, "%s %s\n", event, text);
}

static int set_up(void **state)
{
    struct bt_error err;

    (void)state;
    log_setup(LOG_INFO, sink, NULL);
    (void)setenv("SECRET", "never handed on", 1);
    (void)unsetenv("BATON_STATE");
    (void)unsetenv("BATON_SPAWNED");
    (void)setenv("BATON_INSTANCE_ID", "the-instance", 1);
    if (mkdtemp(dir) == NULL || exec_settings_read(settings_json, &settings, &err) != BT_OK) {
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    steps_forget();
    exec_settings_free(settings);
    return rmdir(dir);
}

static const char *run(const char *skill, const char *step_json)
{
    logged[0] = 0;
    logged_lines = 0;
    return steps_run(steps_make(skill, step_json), exec_run, settings);
}

/* A shell script as step; "@" in it is the directory. */
static const char *run_script(const char *skill, const char *script)
{
    struct buf json;
    const char *reply;

    buf_init(&json, 4096);
    buf_add_cstr(&json, "{\"parameters\":{\"script\":\"");
    for (const char *p = script; *p != 0; p++) {
        if (*p == '@') {
            buf_add_cstr(&json, dir);
        } else {
            buf_add_byte(&json, (uint8_t)*p);
        }
    }
    buf_add_cstr(&json, "\"}}");
    reply = run(skill, buf_cstr(&json));
    buf_done(&json);
    return reply;
}

/* ---- output ---- */

static void output_is_json_where_it_is_one_and_text_otherwise(void **state)
{
    (void)state;
    steps_expect(run_script("sh", "echo ' {\\\"a\\\": [1, 2]} '"), "\"data\":{\"a\":[1,2]}");
    steps_expect(run_script("sh", "echo '{\\\"a\\\": 1'"), "\"text\":\"{\\\"a\\\": 1\"");
    steps_expect(run_script("sh", "echo '{\\\"a\\\":1,\\\"a\\\":2}'"), "\"text\":\"{");
    steps_expect(run_script("sh", "echo 42"), "\"result\":{\"text\":\"42\"}");
    steps_expect(run_script("sh", "printf 'a\\\\r\\\\n\\\\n'"), "\"text\":\"a\\r\\n\"");
    steps_expect(run_script("sh", ":"), "\"result\":{\"text\":\"\"}");
    steps_expect(run_script("sh-text", "echo '[1]'"), "\"result\":{\"text\":\"[1]\"}");
    steps_expect(run_script("sh-json", "echo '[1]'"), "\"data\":[1]");
    steps_expect(run_script("sh-json", "echo no"), "its output is not JSON: ");
}

static void json_that_is_deeper_than_the_wire_allows_stays_text(void **state)
{
    (void)state;
    steps_expect(run_script("sh", "echo '[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]'"),
                 "\"result\":{\"text\":\"[[[[");
}

static void output_that_is_no_utf8_is_repaired_and_says_so(void **state)
{
    const char *reply = run_script("sh", "printf 'a\\\\377b\\\\000c\\\\303\\\\274'");

    (void)state;
    steps_expect(reply, "\"text\":\"a\xEF\xBF\xBD"
                        "b\xEF\xBF\xBD"
                        "c\xC3\xBC\"");
    steps_expect(reply, "\"replacedBytes\":2");
}

static void output_over_the_cap_fails_the_step_and_ends_the_program(void **state)
{
    msec before = clock_mono_ms();

    (void)state;
    steps_expect(run_script("sh", "trap '' TERM; yes"), "result_too_large");
    assert_true(clock_mono_ms() - before < CHILD_GRACE_MS * 10);
}

static void stderr_goes_to_the_log_line_by_line_and_is_capped(void **state)
{
    (void)state;
    steps_expect(run_script("sh", "printf 'one\\\\n\\\\ntwo' >&2; echo fine"), "\"text\":\"fine\"");
    assert_string_equal(logged, "exec.stderr command=sh step=once line=one\n"
                                "exec.stderr command=sh step=once line=two\n");
    steps_expect(run_script("sh", "yes 0123456789 | head -100000 >&2; echo fine"),
                 "\"text\":\"fine\"");
    assert_true(logged_lines <= 65536 / 11 + 1);
}

/* ---- input ---- */

static void step_is_on_stdin_as_json_or_text(void **state)
{
    (void)state;
    steps_expect(run("cat", "{\"task\":\"do it\",\"parameters\":{\"k\":[1]}}"),
                 "\"data\":{\"task\":\"do it\",\"skill\":\"cat\"");
    steps_expect(run("cat", "{\"parameters\":{\"k\":[1]}}"), "\"parameters\":{\"k\":[1]}");
    steps_expect(run("cat-text", "{\"task\":\"the task\"}"), "\"text\":\"the task\"");
    steps_expect(run("cat-text", "{\"task\":\"t\",\"parameters\":{\"input\":\"given\"}}"),
                 "\"text\":\"given\"");
    steps_expect(run("cat-text", "{\"task\":\"t\",\"context\":{\"dependencies\":[{\"stepId\":\"a\","
                                 "\"agentId\":\"b\",\"result\":{\"text\":\"before\"}}]}}"),
                 "\"text\":\"before\"");
    steps_expect(run_script("sh-none", "wc -c"), "\"text\":\"0\"");
}

/* Far more than a pipe holds. */
static struct buf large_step(const char *script)
{
    struct buf json;

    buf_init(&json, LIMIT_STEP_BYTES);
    buf_printf(&json, "{\"task\":\"t\",\"parameters\":{\"script\":\"%s\",\"pad\":\"", script);
    while (json.len < 2 * 1024 * 1024) {
        buf_add_cstr(&json, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    }
    buf_add_cstr(&json, "\"}}");
    return json;
}

static void program_need_not_read_its_input(void **state)
{
    const char *const scripts[] = {"echo fine", "exec 0<&-; echo fine",
                                   "head -c 10 >/dev/null; "
                                   "echo fine"};

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct buf json = large_step(scripts[i]);
        steps_expect(run("sh", buf_cstr(&json)), "\"result\":{\"text\":\"fine\"}");
        buf_done(&json);
    }
}

static void input_and_output_larger_than_pipes_do_not_block_each_other(void **state)
{
    struct buf json = large_step("cat");

    (void)state;
    steps_expect(run("cat", buf_cstr(&json)), "\"outcome\":\"completed\"");
    assert_true(steps_last()->reply.data.len > 2 * 1024 * 1024);
    steps_expect(run("sh", buf_cstr(&json)), "\"outcome\":\"completed\"");
    buf_done(&json);
}

/* ---- arguments, environment, place ---- */

static void parameter_stays_one_argument_whatever_it_contains(void **state)
{
    static const char *const values[] = {"a b",   "$(touch x)", "`id`",    "'; id; '", "-rf",
                                         "a\\nb", "*",          "",        "{b}",      "\\\\",
                                         "%s%n",  "\xC3\xBC",   "|& > < #"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char json[256];
        char expected[256];
        (void)snprintf(json, sizeof json, "{\"parameters\":{\"a\":\"%s\",\"b\":7}}", values[i]);
        (void)snprintf(expected, sizeof expected, "\"text\":\"<%s><x7y><>\"", values[i]);
        steps_expect(run("args", json), expected);
    }
    steps_expect(run("args", "{\"parameters\":{\"b\":1}}"), "parameters.a: missing");
    steps_expect(run("args", "{\"parameters\":{\"b\":1}}"), "\"class\":\"VALIDATION_ERROR\"");
}

static void environment_is_exactly_what_is_promised(void **state)
{
    char expected[8192];

    (void)state;
    (void)snprintf(
        expected, sizeof expected,
        "\"text\":\"EXTRA=a b\\nLANG=C\\nPATH=%s\\nHOME=%s\\nBATON_PLAN_ID=00000000-0000-"
        "7000-8000-000000000000\\nBATON_STEP_ID=once\\nBATON_ATTEMPT=1\\nBATON_KEY="
        "00000000-0000-7000-8000-000000000000/1/once\\nBATON_INSTANCE_ID=the-instance\"}",
        getenv("PATH"), getenv("HOME"));
    steps_expect(run("env", "{}"), expected);
}

static void program_runs_in_its_directory_and_its_own_session_without_our_descriptors(void **state)
{
    int leak = dup(STDERR_FILENO); /* not close-on-exec */
    char expected[64];

    (void)state;
    steps_expect(run_script("sh-cwd", "pwd"), "\"text\":\"/usr\"");
    steps_expect(run_script("sh", "for f in /proc/self/fd/*; do [ -e $f ] && echo ${f##*/}; done "
                                  "| grep -v '^[012]$' | grep -v '^10$' | wc -l"),
                 "\"text\":\"0\"");
    steps_expect(run_script("sh", "set -- $(cut -d' ' -f5,6 /proc/$$/stat); [ $1 = $$ ] && [ $2 = "
                                  "$$ ] && echo leader"),
                 "\"text\":\"leader\"");
    (void)snprintf(expected, sizeof expected, "\"text\":\"%s\"", "0000000000000000");
    steps_expect(run_script("sh", "awk '/^SigBlk/ {print $2}' /proc/self/status"), expected);
    assert_int_equal(close(leak), 0);
}

/* ---- how it ends ---- */

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
        const char *reply = run_script("sh", cases[i].script);
        steps_expect(reply, cases[i].part);
        steps_expect(reply, cases[i].retryable);
    }
}

static void what_cannot_be_started_is_said(void **state)
{
    (void)state;
    steps_expect(run("nothing", "{}"), "\"class\":\"TOOL_NOT_FOUND\"");
    steps_expect(run("nothing", "{}"), "baton-no-such-program: there is no such program in PATH");
    steps_expect(run("directory", "{}"), "\"class\":\"PERMISSION_DENIED\"");
    steps_expect(run_script("sh-lost", ":"), "cwd '/does/not/exist': no such directory");
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
    steps_expect(run("args", buf_cstr(&json)), "its arguments are too long");
    buf_done(&json);
}

/* True when no process of the session that wrote its number is alive. */
static bool is_gone(const char *name)
{
    char path[128];
    char text[32] = "";
    FILE *f;
    pid_t pid;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    pid = (pid_t)strtol(text, NULL, 10);
    assert_true(pid > 1);
    assert_int_equal(unlink(path), 0);
    /* Killed, and only waiting to be collected by whoever its parent is now: that is gone, too. */
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
    const char *reply = run_script("sh-short", "trap '' TERM; sh -c 'trap \\\"\\\" TERM; echo $$ > "
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
    steps_expect(run_script("sh-short", "exec sleep 100"), "\"class\":\"TIMEOUT\"");
    assert_true(clock_mono_ms() - before < CHILD_GRACE_MS);
}

static void grandchild_that_holds_the_output_is_ended_at_the_deadline(void **state)
{
    const char *reply = run_script("sh-short", "sleep 100 & echo $! > @/kid; echo done");

    (void)state;
    steps_expect(reply, "\"class\":\"TIMEOUT\"");
    steps_expect(reply, "something it started held its output open");
    assert_true(is_gone("kid"));
}

static void program_that_closed_its_output_is_waited_for_until_the_deadline(void **state)
{
    (void)state;
    steps_expect(run_script("sh-short", "exec >&- 2>&-; exec sleep 100"), "\"class\":\"TIMEOUT\"");
    steps_expect(run_script("sh", "exec >&- 2>&-; exit 4"), "exit code 4");
}

static void what_is_left_of_the_group_ends_with_the_program(void **state)
{
    const char *reply =
        run_script("sh", "sleep 100 >/dev/null 2>&1 </dev/null & echo $! > @/kid; echo done");

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

    (void)snprintf(path, sizeof path, "%s/started", dir);
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
                   "{\"parameters\":{\"script\":\"touch %s/started; exec sleep 100\"}}", dir);
    step = steps_make("sh", json);
    assert_int_equal(pthread_create(&thread, NULL, cancel, step), 0);
    steps_expect(steps_run(step, exec_run, settings), "\"class\":\"CANCELLED\"");
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void step_deadline_ends_the_program(void **state)
{
    (void)state;
    steps_expect(run("sh", "{\"deadlineMs\":50,\"parameters\":{\"script\":\"exec sleep 100\"}}"),
                 "\"class\":\"TIMEOUT\"");
}

static void cancelled_step_starts_nothing(void **state)
{
    char json[256];
    char path[128];
    struct stat st;
    struct bt_step *step;

    (void)state;
    (void)snprintf(json, sizeof json, "{\"parameters\":{\"script\":\"touch %s/started\"}}", dir);
    (void)snprintf(path, sizeof path, "%s/started", dir);
    step = steps_make("sh", json);
    atomic_store(&step->cancelled, true);
    steps_expect(steps_run(step, exec_run, settings), "\"class\":\"CANCELLED\"");
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
        (void)run_script("sh", "echo out; echo err >&2");
        (void)run_script("sh", "exit 1");
        (void)run("nothing", "{}");
        (void)run_script("sh-none", "kill -9 $$");
    }
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_json_where_it_is_one_and_text_otherwise),
        cmocka_unit_test(json_that_is_deeper_than_the_wire_allows_stays_text),
        cmocka_unit_test(output_that_is_no_utf8_is_repaired_and_says_so),
        cmocka_unit_test(output_over_the_cap_fails_the_step_and_ends_the_program),
        cmocka_unit_test(stderr_goes_to_the_log_line_by_line_and_is_capped),
        cmocka_unit_test(step_is_on_stdin_as_json_or_text),
        cmocka_unit_test(program_need_not_read_its_input),
        cmocka_unit_test(input_and_output_larger_than_pipes_do_not_block_each_other),
        cmocka_unit_test(parameter_stays_one_argument_whatever_it_contains),
        cmocka_unit_test(environment_is_exactly_what_is_promised),
        cmocka_unit_test(program_runs_in_its_directory_and_its_own_session_without_our_descriptors),
        cmocka_unit_test(exit_codes_have_their_classes),
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

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
