/* Real programs: their input and output. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/sdk/child/child.h"
#include "protocol/base/clock.h"
#include "tests/unit/agents/exec_world.h"

/* ---- output ---- */

static void output_is_json_where_it_is_one_and_text_otherwise(void **state)
{
    (void)state;
    steps_expect(exec_script("sh", "echo ' {\\\"a\\\": [1, 2]} '"), "\"data\":{\"a\":[1,2]}");
    steps_expect(exec_script("sh", "echo '{\\\"a\\\": 1'"), "\"text\":\"{\\\"a\\\": 1\"");
    steps_expect(exec_script("sh", "echo '{\\\"a\\\":1,\\\"a\\\":2}'"), "\"text\":\"{");
    steps_expect(exec_script("sh", "echo 42"),
                 "\"result\":{\"text\":\"42\",\"details\":{\"exitCode\":0");
    steps_expect(exec_script("sh", "printf 'a\\\\r\\\\n\\\\n'"), "\"text\":\"a\\r\\n\"");
    steps_expect(exec_script("sh", ":"), "\"result\":{\"text\":\"\",\"details\":{\"exitCode\":0");
    steps_expect(exec_script("sh-text", "echo '[1]'"),
                 "\"result\":{\"text\":\"[1]\",\"details\":{\"exitCode\":0");
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
    assert_string_equal(exec_logged,
                        "exec.stderr command=sh plan=00000000-0000-7000-8000-000000000000 "
                        "step=once line=one\n"
                        "exec.stderr command=sh plan=00000000-0000-7000-8000-000000000000 "
                        "step=once line=two\n");
    steps_expect(exec_script("sh", "yes 0123456789 | head -100000 >&2; echo fine"),
                 "\"text\":\"fine\"");
    assert_true(exec_logged_lines <= 65536 / 11 + 1);
}

static void program_with_replies_says_every_outcome(void **state)
{
    (void)state;
    steps_expect(exec_script("sh-reply",
                             "echo "
                             "'{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{\\\"text\\\":"
                             "\\\"t\\\",\\\"data\\\":[1]},"
                             "\\\"usage\\\":{\\\"inputTokens\\\":3,\\\"costMicros\\\":7}}'"),
                 "\"outcome\":\"completed\",\"result\":{\"text\":\"t\",\"data\":[1]");
    steps_expect(
        exec_script("sh-reply",
                    "echo "
                    "'{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{\\\"text\\\":\\\"t\\\"},"
                    "\\\"usage\\\":{\\\"inputTokens\\\":3,\\\"outputTokens\\\":4,"
                    "\\\"cachedTokens\\\":2,\\\"costMicros\\\":7}}'"),
        "\"usage\":{\"inputTokens\":3,\"outputTokens\":4,\"cachedTokens\":2,\"costMicros\":7}");
    steps_expect(exec_script("sh-reply", "echo "
                                         "'{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{"
                                         "\\\"text\\\":\\\"half\\\",\\\"truncated\\\":true}}'"),
                 "\"truncated\":true");
    steps_expect(exec_script("sh-reply",
                             "echo "
                             "'{\\\"outcome\\\":\\\"failed\\\",\\\"failure\\\":{\\\"message\\\":"
                             "\\\"closed\\\"},\\\"usage\\\":{\\\"inputTokens\\\":3}}'"),
                 "\"class\":\"UNKNOWN\",\"message\":\"closed\",\"retryable\":false");
    steps_expect(
        exec_script(
            "sh-reply",
            "echo "
            "'{\\\"outcome\\\":\\\"failed\\\",\\\"failure\\\":{\\\"class\\\":\\\"RATE_LIMITED\\\","
            "\\\"message\\\":\\\"slow\\\",\\\"retryable\\\":true,\\\"retryAfterMs\\\":90}}'"),
        "\"class\":\"RATE_LIMITED\",\"message\":\"slow\",\"retryable\":true,\"retryAfterMs\":90");
    steps_expect(exec_script("sh-reply",
                             "echo "
                             "'{\\\"outcome\\\":\\\"needs_input\\\",\\\"need\\\":{\\\"prompt\\\":"
                             "\\\"Which?\\\",\\\"schema\\\":{\\\"type\\\":\\\"integer\\\"}}}'"),
                 "\"prompt\":\"Which?\",\"schema\":{\"type\":\"integer\"}");
    steps_expect(exec_script("sh-reply",
                             "echo "
                             "'{\\\"outcome\\\":\\\"needs_approval\\\",\\\"need\\\":{"
                             "\\\"kind\\\":\\\"approval\\\",\\\"prompt\\\":\\\"Sure?\\\"}}'"),
                 "\"outcome\":\"needs_approval\"");
    steps_expect(exec_script("sh-reply",
                             "echo "
                             "'{\\\"outcome\\\":\\\"handoff\\\",\\\"handoff\\\":{"
                             "\\\"toAgentId\\\":\\\"b\\\",\\\"reason\\\":\\\"not mine\\\"}}'"),
                 "\"handoff\":{\"toAgentId\":\"b\",\"reason\":\"not mine\"}");
}

static void reply_that_is_wrong_names_what(void **state)
{
    (void)state;
    steps_expect(exec_script("sh-reply", "echo 'done'"), "sh-reply: its output is no reply: ");
    steps_expect(exec_script("sh-reply", "echo '[]'"), "expected an object");
    steps_expect(exec_script("sh-reply", "echo '{}'"),
                 "outcome: is missing; expected completed, failed");
    steps_expect(
        exec_script("sh-reply", "echo '{\\\"outcome\\\":\\\"done\\\"}'"),
        "outcome: expected one of completed, failed, needs_input, needs_approval, handoff");
    steps_expect(exec_script("sh-reply", "echo '{\\\"outcome\\\":\\\"completed\\\"}'"),
                 "result: is missing; this outcome needs it");
    steps_expect(
        exec_script("sh-reply", "echo '{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{}}'"),
        "result: expected text, data or both");
    steps_expect(
        exec_script("sh-reply",
                    "echo '{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{\\\"text\\\":1}}'"),
        "result.text: expected text");
    steps_expect(
        exec_script(
            "sh-reply",
            "echo '{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{\\\"txt\\\":\\\"a\\\"}}'"),
        "result: unknown member 'txt'");
    steps_expect(exec_script("sh-reply", "echo "
                                         "'{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{"
                                         "\\\"text\\\":\\\"a\\\"},\\\"state\\\":[]}'"),
                 "unknown member 'state'");
    steps_expect(exec_script("sh-reply",
                             "echo "
                             "'{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{\\\"text\\\":"
                             "\\\"a\\\"},\\\"usage\\\":{\\\"inputTokens\\\":-1}}'"),
                 "inputTokens: expected a whole number");
    steps_expect(exec_script("sh-reply", "echo "
                                         "'{\\\"outcome\\\":\\\"completed\\\",\\\"result\\\":{"
                                         "\\\"text\\\":\\\"a\\\",\\\"truncated\\\":1}}'"),
                 "truncated: expected true or false");
    steps_expect(
        exec_script("sh-reply", "echo '{\\\"outcome\\\":\\\"failed\\\",\\\"failure\\\":{}}'"),
        "message: is missing; expected a text");
    steps_expect(exec_script("sh-reply", "echo "
                                         "'{\\\"outcome\\\":\\\"failed\\\",\\\"failure\\\":{"
                                         "\\\"class\\\":\\\"BAD\\\",\\\"message\\\":\\\"m\\\"}}'"),
                 "class: expected a class of the protocol");
    steps_expect(
        exec_script("sh-reply", "echo '{\\\"outcome\\\":\\\"needs_input\\\",\\\"need\\\":{}}'"),
        "prompt: is missing; expected a text");
    steps_expect(
        exec_script("sh-reply", "echo '{\\\"outcome\\\":\\\"handoff\\\",\\\"handoff\\\":{}}'"),
        "toAgentId: is missing; expected a text");
    static const char *const needed[][2] = {{"completed", "result"},
                                            {"failed", "failure"},
                                            {"needs_input", "need"},
                                            {"needs_approval", "need"},
                                            {"handoff", "handoff"}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        char script[80], want[80];
        (void)snprintf(script, sizeof script, "echo '{\\\"outcome\\\":\\\"%s\\\"}'", needed[i][0]);
        (void)snprintf(want, sizeof want, "%s: is missing; this outcome needs it", needed[i][1]);
        steps_expect(exec_script("sh-reply", script), want);
    }
    steps_expect(exec_script("sh-reply", "exit 3"), "exit code 3");
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
                                   "head -c 10 >/dev/null; echo fine"};

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct buf json = large_step(scripts[i]);
        steps_expect(exec_step("sh", buf_cstr(&json)),
                     "\"result\":{\"text\":\"fine\",\"details\":{\"exitCode\":0");
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
    char *reply = strdup(exec_step("env", "{}"));
    char *patch = strstr(reply, "\\nBATON_STATE_PATCH=/");

    (void)state;
    assert_non_null(patch); /* a name of its own each time */
    char *rest = strstr(patch + 2, "\\n");
    assert_non_null(rest);
    memmove(patch, rest, strlen(rest) + 1);
    (void)snprintf(
        expected, sizeof expected,
        "\"text\":\"EXTRA=a b\\nLANG=C\\nPATH=%s\\nHOME=%s\\nBATON_PLAN_ID=00000000-0000-"
        "7000-8000-000000000000\\nBATON_STEP_ID=once\\nBATON_ATTEMPT=1\\nBATON_KEY="
        "00000000-0000-7000-8000-000000000000/1/"
        "once\\nBATON_INSTANCE_ID=the-instance\",\"details\"",
        getenv("PATH"), getenv("HOME") != NULL ? getenv("HOME") : "/");
    steps_expect(reply, expected);
    free(reply);
}

/* ---- the plan's state ---- */

static void a_program_changes_the_plans_state_by_a_file(void **state)
{
    (void)state;
    steps_expect(exec_script("sh", "echo '{\\\"count\\\": 3}' > $BATON_STATE_PATCH; echo fine"),
                 "\"state\":{\"count\":3}");
    steps_expect(exec_script("sh", "echo '{\\\"a\\\":null}' > $BATON_STATE_PATCH.new; "
                                   "mv $BATON_STATE_PATCH.new $BATON_STATE_PATCH; echo fine"),
                 "\"state\":{\"a\":null}");
    assert_null(strstr(exec_script("sh", "echo fine"), "\"state\""));
    steps_expect(exec_script("sh", "rm $BATON_STATE_PATCH; echo fine"), "\"text\":\"fine\"");
    /* a failed program changes nothing */
    assert_null(strstr(exec_script("sh", "echo '{\\\"a\\\":1}' > $BATON_STATE_PATCH; exit 1"),
                       "\"state\""));
}

static void a_state_that_is_no_object_or_too_large_fails_the_step(void **state)
{
    (void)state;
    steps_expect(exec_script("sh", "echo '[1]' > $BATON_STATE_PATCH"),
                 "sh: the file that BATON_STATE_PATCH names: expected a JSON object");
    steps_expect(exec_script("sh", "printf 7 > $BATON_STATE_PATCH"),
                 "sh: the file that BATON_STATE_PATCH names: expected a JSON object");
    steps_expect(exec_script("sh", "echo no > $BATON_STATE_PATCH"),
                 "\"class\":\"VALIDATION_ERROR\"");
    steps_expect(exec_script("sh", "rm $BATON_STATE_PATCH; mkfifo $BATON_STATE_PATCH"),
                 "expected a regular file");
    /* LIMIT_STATE_BYTES, and one more */
    steps_expect(exec_script("sh",
                             "(printf '{\\\"a\\\":\\\"'; head -c 65527 /dev/zero | tr '\\\\0' x; "
                             "printf '\\\"} ') > $BATON_STATE_PATCH; wc -c < $BATON_STATE_PATCH"),
                 "\"text\":\"65536\"");
    steps_expect(exec_script("sh",
                             "(printf '{\\\"a\\\":\\\"'; head -c 65528 /dev/zero | tr '\\\\0' x; "
                             "printf '\\\"} ') > $BATON_STATE_PATCH"),
                 "a patch has at most 65536 bytes");
}

static void the_state_file_is_gone_after_the_run(void **state)
{
    const char *reply = exec_script("sh", "echo $BATON_STATE_PATCH");
    const char *at = strstr(reply, "/tmp/baton-state-");
    char path[64] = "";

    (void)state;
    assert_non_null(at);
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\""), at);
    assert_int_equal(access(path, F_OK), -1);
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
        cmocka_unit_test(program_with_replies_says_every_outcome),
        cmocka_unit_test(reply_that_is_wrong_names_what),
        cmocka_unit_test(json_that_is_deeper_than_the_wire_allows_stays_text),
        cmocka_unit_test(output_that_is_no_utf8_is_repaired_and_says_so),
        cmocka_unit_test(output_over_the_cap_fails_the_step_and_ends_the_program),
        cmocka_unit_test(stderr_goes_to_the_log_line_by_line_and_is_capped),
        cmocka_unit_test(step_is_on_stdin_as_json_or_text),
        cmocka_unit_test(program_need_not_read_its_input),
        cmocka_unit_test(input_and_output_larger_than_pipes_do_not_block_each_other),
        cmocka_unit_test(parameter_stays_one_argument_whatever_it_contains),
        cmocka_unit_test(environment_is_exactly_what_is_promised),
        cmocka_unit_test(a_program_changes_the_plans_state_by_a_file),
        cmocka_unit_test(a_state_that_is_no_object_or_too_large_fails_the_step),
        cmocka_unit_test(the_state_file_is_gone_after_the_run),
        cmocka_unit_test(program_runs_in_its_directory_and_its_own_session_without_our_descriptors),
    };

    return cmocka_run_group_tests(tests, exec_set_up, exec_tear_down);
}
