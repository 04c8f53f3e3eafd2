/* What a handler reads of its request, value by value. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/card.h"
#include "agents/sdk/step.h"
#include "agents/sdk/whole.h"
#include "protocol/base/clock.h"

static struct bt_step *make(const char *json)
{
    struct bt_error err;
    struct bt_step *step = NULL;

    if (step_new_from_json(str_from(json), "probe", &step, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return step;
}

static void numbers_of_each_kind_are_numbers(void **state)
{
    struct bt_step *s = make("{\"parameters\":{\"f\":2.5,\"i\":-3,\"u\":7,\"t\":\"7\",\"b\":true,"
                             "\"z\":null,\"l\":[1],\"o\":{}}}");
    static const char *const others[] = {"t", "b", "z", "l", "o", "none", "u.x"};

    (void)state;
    assert_true(bt_step_param_number(s, "f", 0) == 2.5);
    assert_true(bt_step_param_number(s, "i", 0) == -3);
    assert_true(bt_step_param_number(s, "u", 0) == 7);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_true(bt_step_param_number(s, others[i], -1) == -1);
    }
    assert_true(bt_step_param_bool(s, "b", false));
    assert_true(bt_step_param_bool(s, "u", true));
    assert_string_equal(bt_step_param_string(s, "t", "-"), "7");
    assert_string_equal(bt_step_param_string(s, "u", "-"), "-");
    step_free(s);
}

static void all_parameters_are_one_value_too(void **state)
{
    struct bt_step *s = make("{\"parameters\":{\"a\":1}}");

    (void)state;
    assert_string_equal(bt_step_params_json(s, ""), "{\"a\":1}");
    assert_string_equal(bt_step_params_json(s, NULL), "{\"a\":1}");
    assert_string_equal(bt_step_params_json(s, "a"), "1");
    assert_null(bt_step_params_json(s, "b"));
    assert_true(bt_step_has_param(s, ""));
    assert_true(bt_step_has_param(s, NULL));
    step_free(s);
    s = make("{}");
    assert_string_equal(bt_step_params_json(s, NULL), "{}");
    assert_null(bt_step_params_json(s, "a"));
    assert_false(bt_step_has_param(s, ""));
    assert_false(bt_step_has_param(s, "a"));
    step_free(s);
}

/* A result is {text?, data?, artifacts?, truncated?, state?}; any other value is its own. */
static void what_a_step_before_gave_is_its_data_else_its_text_else_itself(void **state)
{
    static const struct {
        const char *result, *json, *text;
    } cases[] = {
        {"{\"text\":\"t\",\"data\":[1]}", "[1]", "t"},
        {"{\"data\":[1]}", "[1]", "[1]"},
        {"{\"data\":\"d\"}", "\"d\"", "d"},
        {"{\"text\":\"t\"}", "\"t\"", "t"},
        {"{\"data\":1,\"artifacts\":[],\"truncated\":true,\"state\":{}}", "1", "1"},
        {"{\"artifacts\":[]}", "{\"artifacts\":[]}", "{\"artifacts\":[]}"},
        {"{\"data\":1,\"more\":2}", "{\"data\":1,\"more\":2}", "{\"data\":1,\"more\":2}"},
        {"{}", "{}", "{}"},
        {"[1]", "[1]", "[1]"},
        {"\"s\"", "\"s\"", "s"},
        {"7", "7", "7"},
        {"{\"text\":7}", "7", "7"},
    };
    char json[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_step *s;
        (void)snprintf(json, sizeof json,
                       "{\"context\":{\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\","
                       "\"result\":%s}]}}",
                       cases[i].result);
        s = make(json);
        assert_string_equal(bt_step_dependency_json(s, 0), cases[i].json);
        assert_string_equal(bt_step_dependency_text(s, 0), cases[i].text);
        assert_string_equal(bt_step_dependency_id(s, 0), "a");
        assert_null(bt_step_dependency_text(s, 1));
        assert_null(bt_step_dependency_json(s, 1));
        assert_null(bt_step_dependency_id(s, 1));
        step_free(s);
    }
}

static void the_first_artifact_of_a_step_before_is_found(void **state)
{
    struct bt_step *s =
        make("{\"context\":{\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":"
             "{\"artifacts\":[{\"name\":\"f\",\"uri\":\"file:///1\"},{\"uri\":\"file:///2\"}]}},"
             "{\"stepId\":\"b\",\"agentId\":\"x\",\"result\":{\"artifacts\":[]}},"
             "{\"stepId\":\"c\",\"agentId\":\"x\",\"result\":[1]},"
             "{\"stepId\":\"d\",\"agentId\":\"x\"},"
             "{\"stepId\":\"e\",\"agentId\":\"x\",\"result\":{\"artifacts\":[{\"uri\":7}]}}]}}");

    (void)state;
    assert_string_equal(bt_step_dependency_artifact(s, 0), "file:///1");
    for (size_t i = 1; i <= 5; i++) {
        assert_null(bt_step_dependency_artifact(s, i));
    }
    step_free(s);
}

static void the_whole_request_is_one_object_with_what_was_given(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    assert_string_equal(
        bt_step_request_json(s),
        "{\"task\":\"\",\"skill\":\"probe\",\"planId\":\"00000000-0000-7000-8000-000000000000\","
        "\"sessionId\":\"\",\"stepId\":\"once\","
        "\"key\":\"00000000-0000-7000-8000-000000000000/1/once\",\"attempt\":1,\"feedback\":\"\","
        "\"deadlineMs\":0,\"idleMs\":0,\"purpose\":\"execute\",\"parameters\":{},\"context\":{},"
        "\"dependencies\":[]}");
    step_free(s);
    s = make("{\"task\":\"t\",\"parameters\":{\"a\":1},\"deadlineMs\":60000,\"idleMs\":7,"
             "\"feedback\":\"f\",\"purpose\":\"verify\",\"result\":[2],\"budget\":{\"tokens\":5},"
             "\"context\":{\"text\":\"c\",\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\","
             "\"result\":3}]}}");
    assert_string_equal(
        bt_step_request_json(s),
        "{\"task\":\"t\",\"skill\":\"probe\",\"planId\":\"00000000-0000-7000-8000-000000000000\","
        "\"sessionId\":\"\",\"stepId\":\"once\","
        "\"key\":\"00000000-0000-7000-8000-000000000000/1/once\",\"attempt\":1,\"feedback\":\"f\","
        "\"deadlineMs\":60000,\"idleMs\":7,\"purpose\":\"verify\",\"result\":[2],"
        "\"parameters\":{\"a\":1},\"context\":{\"text\":\"c\"},\"budget\":{\"tokens\":5},"
        "\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":3}]}");
    assert_string_equal(bt_step_task(s), "t");
    assert_string_equal(bt_step_skill(s), "probe");
    assert_string_equal(bt_step_plan_id(s), "00000000-0000-7000-8000-000000000000");
    assert_string_equal(bt_step_id(s), "once");
    assert_string_equal(bt_step_key(s), "00000000-0000-7000-8000-000000000000/1/once");
    assert_string_equal(bt_step_feedback(s), "f");
    assert_string_equal(bt_step_traceparent(s), "");
    assert_int_equal(bt_step_attempt(s), 1);
    assert_in_range(bt_step_time_left_ms(s), 1, 60000);
    step_free(s);
}

static void turns_and_tools_are_json(void **state)
{
    struct bt_step *s = make("{\"tools\":[{\"agentId\":\"t\",\"skill\":\"do\"}],"
                             "\"turns\":[{\"calls\":[]}],\"turnsLeft\":3}");

    (void)state;
    assert_string_equal(bt_step_turns_json(s), "[{\"calls\":[]}]");
    assert_string_equal(bt_step_tools_json(s), "[{\"agentId\":\"t\",\"skill\":\"do\"}]");
    assert_int_equal(bt_step_turns_left(s), 3);
    step_free(s);
    s = make("{}");
    assert_null(bt_step_turns_json(s));
    assert_null(bt_step_tools_json(s));
    assert_int_equal(bt_step_turns_left(s), 0);
    step_free(s);
}

static void a_budget_of_each_kind_is_its_own(void **state)
{
    struct bt_step *s = make("{\"budget\":{\"costMicros\":9}}");

    (void)state;
    assert_int_equal(bt_step_budget_micros(s), 9);
    assert_true(bt_step_budget_tokens(s) == UINT64_MAX);
    step_free(s);
}

static void a_step_of_json_is_an_object_or_nothing(void **state)
{
    struct bt_step *s = NULL;
    struct bt_error err = {.msg = ""};

    (void)state;
    s = make("");
    assert_string_equal(bt_step_task(s), "");
    step_free(s);
    assert_int_equal(step_new_from_json(STR_LIT("[1]"), "probe", &s, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "expected a JSON object {\"task\", \"parameters\""));
    assert_int_equal(step_new_from_json(STR_LIT("{"), "probe", &s, &err), BT_INVALID);
    assert_int_equal(step_new_from_json(STR_LIT("{\"deadlineMs\":\"x\"}"), "probe", &s, &err),
                     BT_INVALID);
    assert_non_null(strstr(err.msg, "deadlineMs"));
}

static void a_deadline_is_counted_from_the_arrival(void **state)
{
    struct msg_reader r = {0};
    struct bt_step *s = NULL;
    struct bt_error err;
    static const char body[] =
        "{\"sessionKey\":\"k\",\"planId\":\"p\",\"revision\":1,\"stepId\":\"a\",\"stepIndex\":0,"
        "\"stepCount\":1,\"key\":\"k\",\"attempt\":2,\"epoch\":1,\"skill\":\"s\",\"deadlineMs\":";
    char text[512];

    (void)state;
    for (msec left = 0; left <= 5; left += 5) {
        (void)snprintf(text, sizeof text, "%s%d}", body, (int)left);
        assert_int_equal(msg_reader_init(&r, text, strlen(text), LIMIT_STEP_BYTES, &err), BT_OK);
        assert_int_equal(step_new(&r, 1000, &s, &err), BT_OK);
        assert_true(s->deadline == (left == 0 ? MSEC_NEVER : 1005));
        assert_int_equal(step_is_late(s), left != 0); /* the clock is past it */
        assert_int_equal(bt_step_cancelled(s), left != 0);
        assert_true(bt_step_time_left_ms(s) == (left == 0 ? UINT64_MAX : 0));
        step_free(s);
        msg_reader_done(&r);
    }
}

/* ---- replies ---- */

static void expect(struct bt_step *step, const char *part)
{
    struct bt_error err;
    struct buf out;

    reply_finish(&step->reply, false, false);
    buf_init(&out, LIMIT_STEP_BYTES * 2);
    assert_int_equal(step_reply_json(step, &out, &err), BT_OK);
    if (strstr(buf_cstr(&out), part) == NULL) {
        fail_msg("expected %s in %.2000s", part, buf_cstr(&out));
    }
    buf_done(&out);
    step_free(step);
}

static void a_sentence_is_utf_8_whatever_was_said(void **state)
{
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\xFF", "?"},
        {"a\xFF\xC3\xA4", "a?\xC3\xA4"},
        {"a\xC3", "a?"},
        {"\xE2\x82", "??"},
        {"\xF0\x9F\x98", "???"},
    };
    char want[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_step *s = make("{}");
        bt_step_fail(s, "TIMEOUT", false, "%s", cases[i][0]);
        (void)snprintf(want, sizeof want, "\"message\":\"%s\"", cases[i][1]);
        expect(s, want);
    }
}

static void a_failure_of_the_library_has_its_code_and_its_class(void **state)
{
    static const struct {
        enum bt_code code;
        const char *words;
    } cases[] = {
        {BT_BUSY, "\"code\":\"BUSY\",\"class\":\"SERVICE_UNAVAILABLE\",\"message\":\"why\","
                  "\"retryable\":true"},
        {BT_INVALID, "\"code\":\"INVALID\",\"class\":\"VALIDATION_ERROR\",\"message\":\"why\","
                     "\"retryable\":false"},
        {BT_IO, "\"code\":\"IO\",\"class\":\"UNKNOWN\",\"message\":\"why\",\"retryable\":false"},
        {BT_INTERNAL, "\"retryable\":false"},
        {BT_TIMEOUT, "\"code\":\"TIMEOUT\",\"class\":\"TIMEOUT\",\"message\":\"why\","
                     "\"retryable\":true"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_step *s = make("{}");
        struct bt_error err;
        (void)err_set(&err, cases[i].code, "why");
        bt_step_fail_error(s, &err);
        expect(s, cases[i].words);
    }
}

static void a_result_takes_64_artifacts(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    for (int i = 0; i < REPLY_ARTIFACTS_MAX; i++) {
        bt_step_reply_artifact(s, "f", "text/plain", "file:///f");
    }
    assert_int_equal(s->reply.artifacts_n, REPLY_ARTIFACTS_MAX);
    expect(s, "\"artifacts\":[{\"name\":\"f\",\"mediaType\":\"text/plain\",\"uri\":\"file:///f\"}");
}

static void details_are_an_object_of_64_kib_or_nothing(void **state)
{
    struct bt_step *s = make("{}");
    char *large = malloc(REPLY_DETAILS_MAX + 64);

    (void)state;
    assert_non_null(large);
    bt_step_details_json(s, "{\"code\":3}", 10);
    bt_step_reply_text(s, "x");
    bt_step_fail(s, "TIMEOUT", false, "no");
    expect(s, "\"details\":{\"code\":3}");
    s = make("{}");
    bt_step_details_json(s, "{\"code\":3}", 10);
    bt_step_details_json(s, "[3]", 3);
    assert_int_equal(s->reply.details.len, 0);
    bt_step_details_json(s, "{", 1);
    assert_int_equal(s->reply.details.len, 0);
    memset(large, ' ', REPLY_DETAILS_MAX + 1);
    memcpy(large, "{\"a\":1}", 7);
    bt_step_details_json(s, large, REPLY_DETAILS_MAX);
    assert_int_not_equal(s->reply.details.len, 0);
    bt_step_details_json(s, large, REPLY_DETAILS_MAX + 1);
    assert_int_equal(s->reply.details.len, 0);
    step_free(s);
    free(large);
}

static void what_is_not_whole_says_so_on_a_line_of_its_own(void **state)
{
    static const char *const cases[][2] = {{"", "[not whole: 3 of 5]\n"},
                                           {"text", "text\n[not whole: 3 of 5]\n"},
                                           {"text\n", "text\n[not whole: 3 of 5]\n"}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bt_step *s = make("{}");
        struct buf text;
        buf_init(&text, 4096);
        buf_add_cstr(&text, cases[i][0]);
        whole_mark(s, &text, "%d of %d", 3, 5);
        assert_string_equal(buf_cstr(&text), cases[i][1]);
        assert_true(s->reply.truncated);
        assert_int_equal(s->reply.outcome, REPLY_COMPLETED);
        buf_done(&text);
        step_free(s);
    }
}

static void usage_of_each_kind_stays_below_its_most(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_add_usage(s, INT64_MAX - 1, INT64_MAX - 1, INT64_MAX - 1, INT64_MAX - 1);
    bt_step_add_usage(s, 1, 1, 1, 1);
    assert_true(s->reply.usage.input_tokens == INT64_MAX);
    assert_true(s->reply.usage.output_tokens == INT64_MAX);
    assert_true(s->reply.usage.cached_tokens == INT64_MAX);
    assert_true(s->reply.usage.cost_micros == INT64_MAX);
    bt_step_add_usage(s, 1, 1, 1, 1);
    assert_true(s->reply.usage.input_tokens == INT64_MAX);
    assert_true(s->reply.usage.output_tokens == INT64_MAX);
    assert_true(s->reply.usage.cached_tokens == INT64_MAX);
    assert_true(s->reply.usage.cost_micros == INT64_MAX);
    step_free(s);
}

static void progress_has_a_percentage_of_0_to_100(void **state)
{
    static const struct {
        double in, out;
    } cases[] = {{0, 0}, {100, 100}, {50.5, 50.5}, {-0.1, -1}, {100.1, -1}, {-1, -1}};
    struct bt_step *s = make("{}");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bt_step_progress(s, cases[i].in, "x");
        assert_true(s->progress.percent == cases[i].out);
        assert_int_equal(s->progress.n, i + 1);
    }
    bt_step_progress(s, 1, "bad \xFF");
    assert_string_equal(s->progress.text, "");
    bt_step_progress(s, 1, NULL);
    assert_string_equal(s->progress.text, "");
    step_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_each_kind_are_numbers),
        cmocka_unit_test(all_parameters_are_one_value_too),
        cmocka_unit_test(what_a_step_before_gave_is_its_data_else_its_text_else_itself),
        cmocka_unit_test(the_first_artifact_of_a_step_before_is_found),
        cmocka_unit_test(the_whole_request_is_one_object_with_what_was_given),
        cmocka_unit_test(turns_and_tools_are_json),
        cmocka_unit_test(a_budget_of_each_kind_is_its_own),
        cmocka_unit_test(a_step_of_json_is_an_object_or_nothing),
        cmocka_unit_test(a_deadline_is_counted_from_the_arrival),
        cmocka_unit_test(a_sentence_is_utf_8_whatever_was_said),
        cmocka_unit_test(a_failure_of_the_library_has_its_code_and_its_class),
        cmocka_unit_test(a_result_takes_64_artifacts),
        cmocka_unit_test(details_are_an_object_of_64_kib_or_nothing),
        cmocka_unit_test(what_is_not_whole_says_so_on_a_line_of_its_own),
        cmocka_unit_test(usage_of_each_kind_stays_below_its_most),
        cmocka_unit_test(progress_has_a_percentage_of_0_to_100),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
