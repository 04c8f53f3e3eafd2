/* Programs that are run to their end: pipes, lines, ends, and what cannot be started. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sdk/child/child.h"
#include "protocol/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/tree.h"

static struct child_result r;
static struct bt_error err;
static char *const ENVIRONMENT[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin",
                                    (char *)(uintptr_t) "ONLY=this", NULL};

static enum bt_code sh_as(const char *script, struct child_spec spec)
{
    char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                          (char *)(uintptr_t)script, NULL};

    child_result_done(&r);
    spec.path = spec.path != NULL ? spec.path : "/bin/sh";
    spec.argv = argv;
    spec.envp = ENVIRONMENT;
    spec.output_max = spec.output_max != 0 ? spec.output_max : 1024 * 1024;
    spec.deadline = spec.deadline != 0 ? spec.deadline : clock_mono_ms() + 60000;
    spec.grace_ms = spec.grace_ms != 0 ? spec.grace_ms : 30000;
    return child_run(&spec, &r, &err);
}

static void sh(const char *script)
{
    if (sh_as(script, (struct child_spec){0}) != BT_OK) {
        fail_msg("%s: %s", script, err.msg);
    }
}

static int end(void **state)
{
    (void)state;
    child_result_done(&r);
    return 0;
}

static void an_end_has_its_code_or_signal(void **state)
{
    (void)state;
    sh("echo out; exit 3");
    assert_int_equal(r.end, CHILD_EXITED);
    assert_int_equal(r.exit_code, 3);
    assert_int_equal(r.signal, 0);
    assert_string_equal(buf_cstr(&r.out), "out\n");
    sh("kill -9 $$");
    assert_int_equal(r.end, CHILD_SIGNALLED);
    assert_int_equal(r.signal, SIGKILL);
    assert_int_equal(r.exit_code, 0);
    assert_false(r.exited);
}

static void lines_of_stderr_are_kept_from_the_last(void **state)
{
    (void)state;
    sh("printf 'one\\ntwo  \\r\\n\\n   \\nlast' >&2");
    assert_string_equal(r.last_line, "last");
    assert_string_equal(r.tail, "one\ntwo\nlast\n");
    assert_int_equal(r.tail_len, strlen(r.tail));
    assert_false(r.tail_cut);
    sh("printf 'a\\0b' >&2");
    assert_string_equal(r.tail, "a?b\n");
    sh("true");
    assert_string_equal(r.last_line, "");
    assert_int_equal(r.tail_len, 0);
}

static void a_line_and_the_tail_have_their_most(void **state)
{
    char want[CHILD_LINE_MAX + 2];

    (void)state;
    sh("printf '%0512d\\n%0513dx\\n' 0 0 >&2");
    memset(want, '0', sizeof want);
    want[CHILD_LINE_MAX] = '\n';
    want[CHILD_LINE_MAX + 1] = 0;
    assert_int_equal(r.tail_len, 2 * (CHILD_LINE_MAX + 1));
    assert_memory_equal(r.tail, want, CHILD_LINE_MAX + 1);
    assert_string_equal(r.tail + CHILD_LINE_MAX + 1, want);
    /* eight lines of 511 bytes and a break fill it to the last byte */
    sh("for i in 1 2 3 4 5 6 7 8; do printf '%d%0510d\\n' $i 0; done >&2");
    assert_int_equal(r.tail_len, CHILD_TAIL_MAX);
    assert_false(r.tail_cut);
    sh("for i in 1 2 3 4 5 6 7 8; do printf '%d%0510d\\n' $i 0; done >&2; echo x >&2");
    assert_true(r.tail_cut);
    assert_int_equal(r.tail_len, 7 * 512 + 2);
    assert_int_equal(r.tail[0], '2'); /* whole lines go */
    assert_string_equal(r.last_line, "x");
}

static bool no_b(const char *line, void *self)
{
    (void)snprintf((char *)self + strlen(self), 64, "[%s]", line);
    return line[0] != 'b';
}

static void lines_can_be_taken_out_of_the_tail(void **state)
{
    char seen[128] = "";

    (void)state;
    assert_int_equal(
        sh_as("printf 'a\\nb\\n\\nc\\nb2\\n' >&2", (struct child_spec){.line = no_b, .self = seen}),
        BT_OK);
    assert_string_equal(seen, "[a][b][c][b2]");
    assert_string_equal(r.tail, "a\nc\n");
    assert_string_equal(r.last_line, "c");
}

static void input_reaches_the_program_whole(void **state)
{
    static char large[300000];

    (void)state;
    memset(large, 'i', sizeof large);
    assert_int_equal(sh_as("wc -c", (struct child_spec){.input = large, .input_len = sizeof large}),
                     BT_OK);
    assert_int_equal(strtol(buf_cstr(&r.out), NULL, 10), 300000);
    assert_int_equal(
        sh_as("exit 0", (struct child_spec){.input = large, .input_len = sizeof large}),
        BT_OK); /* nobody reads it */
    assert_int_equal(r.end, CHILD_EXITED);
    assert_int_equal(sh_as("wc -c", (struct child_spec){.input = "", .input_len = 0}), BT_OK);
    assert_int_equal(strtol(buf_cstr(&r.out), NULL, 10), 0);
    sh("readlink /proc/self/fd/0");
    assert_string_equal(buf_cstr(&r.out), "/dev/null\n");
}

static void output_has_at_most_its_bytes(void **state)
{
    (void)state;
    assert_int_equal(sh_as("printf 12345", (struct child_spec){.output_max = 5}), BT_OK);
    assert_int_equal(r.end, CHILD_EXITED);
    assert_string_equal(buf_cstr(&r.out), "12345");
    assert_int_equal(sh_as("printf 123456; exec sleep 60", (struct child_spec){.output_max = 5}),
                     BT_OK);
    assert_int_equal(r.end, CHILD_TOO_LARGE);
    assert_true(r.duration_ms < 20000);
}

struct taker {
    size_t n, most;
};

static bool take(const void *bytes, size_t len, void *self)
{
    struct taker *t = self;

    (void)bytes;
    t->n += len;
    return t->n < t->most;
}

static void output_can_be_taken_in_pieces(void **state)
{
    struct taker t = {.most = 1000000};

    (void)state;
    assert_int_equal(sh_as("head -c 200000 /dev/zero",
                           (struct child_spec){.output = take, .self = &t, .output_max = 1}),
                     BT_OK);
    assert_int_equal(r.end, CHILD_EXITED);
    assert_int_equal(t.n, 200000);
    assert_int_equal(r.out.len, 0);
    t = (struct taker){.most = 1};
    assert_int_equal(
        sh_as("echo x; exec sleep 60", (struct child_spec){.output = take, .self = &t}), BT_OK);
    assert_int_equal(r.end, CHILD_REFUSED);
    assert_true(r.duration_ms < 20000);
}

/* ---- time ---- */

static void the_deadline_and_a_stop_end_a_program(void **state)
{
    const msec now = clock_mono_ms();

    (void)state;
    assert_int_equal(sh_as("exec sleep 60", (struct child_spec){.deadline = now + 200}), BT_OK);
    assert_int_equal(r.end, CHILD_TIMEOUT);
    assert_false(r.exited);
    assert_in_range(r.duration_ms, 150, 20000);
    assert_int_equal(
        sh_as("trap '' TERM; while :; do sleep 1; done",
              (struct child_spec){.deadline = clock_mono_ms() + 1000, .grace_ms = 300}),
        BT_OK);
    assert_int_equal(r.end, CHILD_TIMEOUT);
    assert_in_range(r.duration_ms, 1250, 20000); /* SIGKILL after the grace */
    assert_int_equal(sh_as("trap 'exit 0' TERM; while :; do sleep 0.05; done",
                           (struct child_spec){.deadline = clock_mono_ms() + 300}),
                     BT_OK);
    assert_int_equal(r.end, CHILD_TIMEOUT);
    assert_true(r.duration_ms < 20000); /* it obeys: nobody waits for the grace */
}

static bool stops(void *self)
{
    return clock_mono_ms() >= *(const msec *)self;
}

static void a_program_is_stopped_when_it_is_asked_for(void **state)
{
    msec at = clock_mono_ms() + 200;

    (void)state;
    assert_int_equal(sh_as("exec sleep 60", (struct child_spec){.stop = stops, .self = &at}),
                     BT_OK);
    assert_int_equal(r.end, CHILD_STOPPED);
    assert_in_range(r.duration_ms, 150, 20000);
}

/* Who holds the pipes of a program that has ended is ended with it. */
static void a_grandchild_that_holds_the_pipes_is_ended_at_the_deadline(void **state)
{
    (void)state;
    assert_int_equal(
        sh_as("sleep 60 & exit 0", (struct child_spec){.deadline = clock_mono_ms() + 2000}), BT_OK);
    assert_int_equal(r.end, CHILD_TIMEOUT);
    assert_true(r.exited);
    assert_true(r.duration_ms < 20000);
}

/* ---- the start ---- */

static void what_cannot_be_started_is_said(void **state)
{
    char dir[] = "/tmp/baton-child-XXXXXX";
    char path[64];
    static char large[3 * 1024 * 1024];
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/file", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs("x", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(sh_as("", (struct child_spec){.path = "/no/such"}), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/no/such: there is no such program (or its interpreter)"));
    assert_int_equal(sh_as("", (struct child_spec){.path = path}), BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, "is not executable"));
    assert_int_equal(sh_as("", (struct child_spec){.path = dir}), BT_UNAUTHORIZED);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(sh_as("", (struct child_spec){.path = path}),
                     BT_UNAUTHORIZED); /* no program */
    assert_int_equal(sh_as("", (struct child_spec){.cwd = "/no/such"}), BT_INVALID);
    assert_non_null(strstr(err.msg, "cwd '/no/such': no such directory"));
    assert_int_equal(sh_as("", (struct child_spec){.path = "/none", .cwd = path}), BT_INVALID);
    assert_int_equal(sh_as("", (struct child_spec){.path = "/none", .cwd = dir}), BT_NOT_FOUND);
    memset(large, 'x', sizeof large - 1);
    assert_int_equal(sh_as(large, (struct child_spec){0}), BT_LIMIT);
    assert_non_null(strstr(err.msg, "hand large values over on stdin"));
    assert_int_equal(tree_drop(dir), 0);
}

static int descriptors(void)
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

static void a_program_has_its_session_environment_and_descriptors_alone(void **state)
{
    sigset_t blocked;
    sigset_t before;
    const int was = descriptors();
    const char *ignored;

    (void)state;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    (void)signal(SIGUSR2, SIG_IGN);
    assert_int_not_equal(dup2(1, 77), -1); /* without close-on-exec */
    sh("test $(ps -o sid= -p $$) = $$ && echo leads; env | grep -c .; ls /proc/self/fd | wc -l; "
       "grep -E 'SigBlk|SigIgn' /proc/self/status");
    (void)close(77);
    (void)signal(SIGUSR2, SIG_DFL);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_non_null(strstr(buf_cstr(&r.out), "leads\n"));
    assert_non_null(strstr(buf_cstr(&r.out), "\n4\n")); /* 0, 1, 2 and the one of ls itself */
    assert_non_null(strstr(buf_cstr(&r.out), "SigBlk:\t0000000000000000"));
    ignored = strstr(buf_cstr(&r.out), "SigIgn:\t");
    assert_non_null(ignored);
    assert_int_equal(strtoull(ignored + 8, NULL, 16) & 0x7fffffff, 0);
    assert_int_equal(sh_as("pwd; echo $ONLY", (struct child_spec){.cwd = "/usr"}), BT_OK);
    assert_string_equal(buf_cstr(&r.out), "/usr\nthis\n");
    assert_int_equal(
        sh_as("", (struct child_spec){.path = "/no/such", .input = "x", .input_len = 1}),
        BT_NOT_FOUND);
    assert_int_equal(descriptors(), was);
}

/* SIGPIPE of a write to a program that has ended does not end the agent, now or later. */
static void a_broken_pipe_is_no_signal(void **state)
{
    static char large[300000];
    sigset_t pending;
    sigset_t mask;

    (void)state;
    (void)signal(SIGPIPE, SIG_DFL);
    assert_int_equal(sh_as("exec <&-; sleep 0.1; exit 4",
                           (struct child_spec){.input = large, .input_len = sizeof large}),
                     BT_OK);
    assert_int_equal(r.exit_code, 4);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGPIPE), 0);
}

/* ---- PATH ---- */

static void a_program_is_found_as_execvp_does(void **state)
{
    char dir[] = "/tmp/baton-child-XXXXXX";
    char path[64];
    char list[200];
    struct buf found;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/tool", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0644), 0);
    buf_init(&found, 1024);
    (void)snprintf(list, sizeof list, "/none:%s", dir);
    assert_int_equal(child_find("tool", list, &found, &err), BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, "tool: is not executable"));
    assert_int_equal(child_find("none", list, &found, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "none: there is no such program in PATH"));
    assert_int_equal(child_find("none", "", &found, &err), BT_NOT_FOUND);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(child_find("tool", list, &found, &err), BT_OK);
    assert_string_equal(buf_cstr(&found), path);
    assert_int_equal(child_find("sh", "/none:/bin:/usr/bin", &found, &err), BT_OK);
    assert_string_equal(buf_cstr(&found), "/bin/sh");
    assert_int_equal(child_find("bin", "/usr", &found, &err), BT_NOT_FOUND); /* a directory */
    assert_int_equal(child_find("./no/such", list, &found, &err), BT_OK);    /* the start says it */
    assert_string_equal(buf_cstr(&found), "./no/such");
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(child_find("tool", "/none::/bin", &found, &err), BT_OK); /* "" = here */
    assert_string_equal(buf_cstr(&found), "./tool");
    assert_int_equal(chdir("/"), 0);
    buf_done(&found);
    assert_int_equal(tree_drop(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_has_its_code_or_signal),
        cmocka_unit_test(lines_of_stderr_are_kept_from_the_last),
        cmocka_unit_test(a_line_and_the_tail_have_their_most),
        cmocka_unit_test(lines_can_be_taken_out_of_the_tail),
        cmocka_unit_test(input_reaches_the_program_whole),
        cmocka_unit_test(output_has_at_most_its_bytes),
        cmocka_unit_test(output_can_be_taken_in_pieces),
        cmocka_unit_test(the_deadline_and_a_stop_end_a_program),
        cmocka_unit_test(a_program_is_stopped_when_it_is_asked_for),
        cmocka_unit_test(a_grandchild_that_holds_the_pipes_is_ended_at_the_deadline),
        cmocka_unit_test(what_cannot_be_started_is_said),
        cmocka_unit_test(a_program_has_its_session_environment_and_descriptors_alone),
        cmocka_unit_test(a_broken_pipe_is_no_signal),
        cmocka_unit_test(a_program_is_found_as_execvp_does),
    };

    return cmocka_run_group_tests(tests, NULL, end);
}
