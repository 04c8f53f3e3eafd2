/* Real programs: their input and output. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/exec/child.h"
#include "protocol/base/clock.h"
#include "tests/unit/agents/exec_world.h"

/* ---- output ---- */

static void output_is_json_where_it_is_one_and_text_otherwise(void **state)
{
    (void)state;
    steps_expect(exec_script("sh", "echo ' {\\\"a\\\": [1, 2]} '"), "\"data\":{\"a\":[1,2]}");
    steps_expect(exec_script("sh", "echo '{\\\"a\\\": 1'"), "\"text\":\"{\\\"a\\\": 1\"");
    steps_expect(exec_script("sh", "echo '{\\\"a\\\":1,\\\"a\\\":2}'"), "\"text\":\"{");
    steps_expect(exec_script("sh", "echo 42"), "\"result\":{\"text\":\"42\"}");
    steps_expect(exec_script("sh", "printf 'a\\\\r\\\\n\\\\n'"), "\"text\":\"a\\r\\n\"");
    steps_expect(exec_script("sh", ":"), "\"result\":{\"text\":\"\"}");
    steps_expect(exec_script("sh-text", "echo '[1]'"), "\"result\":{\"text\":\"[1]\"}");
    steps_expect(exec_script("sh-json", "echo '[1]'"), "\"data\":[1]");
    steps_expect(exec_script("sh-json", "echo no"), "its output is not JSON: ");
}

static void json_that_is_deeper_than_the_wire_allows_stays_text(void **state)
{
    (void)state;
    steps_expect(exec_script("sh", "echo '[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]'"),
                 "\"result\":{\"text\":\"[[[[");
}

static void output_that_is_no_utf8_is_repaired_and_says_so(void **state)
{
    const char *reply = exec_script("sh", "printf 'a\\\\377b\\\\000c\\\\303\\\\274'");

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
    steps_expect(exec_script("sh", "trap '' TERM; yes"), "result_too_large");
    assert_true(clock_mono_ms() - before < CHILD_GRACE_MS * 10);
}

static void stderr_goes_to_the_log_line_by_line_and_is_capped(void **state)
{
    (void)state;
    steps_expect(exec_script("sh", "printf 'one\\\\n\\\\ntwo' >&2; echo fine"),
                 "\"text\":\"fine\"");
    assert_string_equal(exec_logged, "exec.stderr command=sh step=once line=one\n"
                                     "exec.stderr command=sh step=once line=two\n");
    steps_expect(exec_script("sh", "yes 0123456789 | head -100000 >&2; echo fine"),
                 "\"text\":\"fine\"");
    assert_true(exec_logged_lines <= 65536 / 11 + 1);
}

/* ---- input ---- */

static void step_is_on_stdin_as_json_or_text(void **state)
{
    (void)state;
    steps_expect(exec_step("cat", "{\"task\":\"do it\",\"parameters\":{\"k\":[1]}}"),
                 "\"data\":{\"task\":\"do it\",\"skill\":\"cat\"");
    steps_expect(exec_step("cat", "{\"parameters\":{\"k\":[1]}}"), "\"parameters\":{\"k\":[1]}");
    steps_expect(exec_step("cat-text", "{\"task\":\"the task\"}"), "\"text\":\"the task\"");
    steps_expect(exec_step("cat-text", "{\"task\":\"t\",\"parameters\":{\"input\":\"given\"}}"),
                 "\"text\":\"given\"");
    steps_expect(exec_step("cat-text",
                           "{\"task\":\"t\",\"context\":{\"dependencies\":[{\"stepId\":\"a\","
                           "\"agentId\":\"b\",\"result\":{\"text\":\"before\"}}]}}"),
                 "\"text\":\"before\"");
    steps_expect(exec_script("sh-none", "wc -c"), "\"text\":\"0\"");
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
        steps_expect(exec_step("sh", buf_cstr(&json)), "\"result\":{\"text\":\"fine\"}");
        buf_done(&json);
    }
}

static void input_and_output_larger_than_pipes_do_not_block_each_other(void **state)
{
    struct buf json = large_step("cat");

    (void)state;
    steps_expect(exec_step("cat", buf_cstr(&json)), "\"outcome\":\"completed\"");
    assert_true(steps_last()->reply.data.len > 2 * 1024 * 1024);
    steps_expect(exec_step("sh", buf_cstr(&json)), "\"outcome\":\"completed\"");
    buf_done(&json);
}

/* ---- arguments, environment, directory ---- */

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
        steps_expect(exec_step("args", json), expected);
    }
    steps_expect(exec_step("args", "{\"parameters\":{\"b\":1}}"), "parameters.a: missing");
    steps_expect(exec_step("args", "{\"parameters\":{\"b\":1}}"), "\"class\":\"VALIDATION_ERROR\"");
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
        getenv("PATH"), getenv("HOME") != NULL ? getenv("HOME") : "/");
    steps_expect(exec_step("env", "{}"), expected);
}

static void program_runs_in_its_directory_and_its_own_session_without_our_descriptors(void **state)
{
    int leak = dup(STDERR_FILENO); /* not close-on-exec */
    char expected[64];

    (void)state;
    steps_expect(exec_script("sh-cwd", "pwd"), "\"text\":\"/usr\"");
    steps_expect(exec_script("sh", "for f in /proc/self/fd/*; do [ -e $f ] && echo ${f##*/}; done "
                                   "| grep -v '^[012]$' | grep -v '^10$' | wc -l"),
                 "\"text\":\"0\"");
    steps_expect(exec_script("sh", "set -- $(cut -d' ' -f5,6 /proc/$$/stat); [ $1 = $$ ] && [ $2 = "
                                   "$$ ] && echo leader"),
                 "\"text\":\"leader\"");
    (void)snprintf(expected, sizeof expected, "\"text\":\"%s\"", "0000000000000000");
    steps_expect(exec_script("sh", "awk '/^SigBlk/ {print $2}' /proc/self/status"), expected);
    assert_int_equal(close(leak), 0);
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
    };

    return cmocka_run_group_tests(tests, exec_set_up, exec_tear_down);
}
