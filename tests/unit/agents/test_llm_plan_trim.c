/* The members that a model's plan may set, and the report of a plan as data. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/plan_report.h"
#include "agents/llm/plan_trim.h"
#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

static cJSON *parse(const char *json)
{
    cJSON *tree = NULL;

    assert_int_equal(json_parse(str_from(json), &tree, NULL), BT_OK);
    return tree;
}

static void expect_tree_trimmed(cJSON *tree, const char *expected)
{
    char *text;

    plan_trim(tree);
    text = cJSON_PrintUnformatted(tree);
    assert_string_equal(text, expected);
    cJSON_free(text);
    cJSON_Delete(tree);
}

static void expect_trimmed(const char *json, const char *expected)
{
    expect_tree_trimmed(parse(json), expected);
}

static void names_that_are_not_known_are_not_the_models_to_say(void **state)
{
    (void)state;
    expect_trimmed("{\"goal\":\"x\",\"sessionId\":\"s\",\"planner\":\"p\",\"policy\":{},\"grants\":"
                   "[],\"revision\":1,\"reuse\":[],\"afterStepId\":\"a\",\"errand\":{},\"steps\":[]"
                   ",\"successCriteria\":\"c\",\"estimatedTokens\":5,\"reasoning\":\"r\"}",
                   "{\"steps\":[],\"successCriteria\":\"c\",\"estimatedTokens\":5,\"reasoning\":"
                   "\"r\"}");
    expect_trimmed("{\"steps\":[{\"stepId\":\"a\",\"parameters\":{\"policy\":1},\"gate\":true,"
                   "\"onFailure\":\"skip\",\"timeoutMs\":1,\"effects\":\"none\",\"revision\":2,"
                   "\"superseded\":true,\"fallbackAgents\":[\"v\"],\"needs_approval\":false,"
                   "\"skill\":null,\"dependsOn\":[]}]}",
                   "{\"steps\":[{\"stepId\":\"a\",\"parameters\":{\"policy\":1},\"dependsOn\":[]}"
                   "]}");
}

/* The reader of plans accepts steps under many names and at many places. */
static void steps_are_trimmed_wherever_a_plan_has_them(void **state)
{
    (void)state;
    expect_trimmed("[{\"id\":\"a\",\"gate\":1}]", "[{\"id\":\"a\"}]");
    expect_trimmed("{\"tasks\":[{\"agent\":\"a\",\"gate\":1}]}", "{\"tasks\":[{\"agent\":\"a\"}]}");
    expect_trimmed("{\"workflow\":[{\"tool\":\"a\",\"gate\":1}]}",
                   "{\"workflow\":[{\"tool\":\"a\"}]}");
    expect_trimmed("{\"plan\":[{\"id\":\"a\",\"gate\":1}]}", "{\"plan\":[{\"id\":\"a\"}]}");
    expect_trimmed("{\"plan\":{\"policy\":{},\"steps\":[{\"id\":\"a\",\"gate\":1}]}}",
                   "{\"plan\":{\"steps\":[{\"id\":\"a\"}]}}");
    expect_trimmed("{\"phases\":[{\"phase\":1,\"policy\":{},\"tasks\":[{\"id\":\"a\",\"gate\":1}]},"
                   "7]}",
                   "{\"phases\":[{\"phase\":1,\"tasks\":[{\"id\":\"a\"}]},7]}");
    expect_trimmed("{\"plan\":{\"plan\":{\"plan\":{\"plan\":{\"policy\":1}}}}}",
                   "{\"plan\":{\"plan\":{\"plan\":{}}}}");
}

/* What would be dropped would have the step run as if the model had not said it. */
static void control_flow_stays_and_policies_inside_it_go(void **state)
{
    (void)state;
    expect_trimmed(
        "[{\"id\":\"a\",\"forEach\":\"{{results.l.d}}\",\"as\":\"x\",\"maxItems\":3,"
        "\"onItemFailure\":\"continue\",\"gate\":1,\"plan\":{},\"concurrencyKey\":\"k\"}]",
        "[{\"id\":\"a\",\"forEach\":\"{{results.l.d}}\",\"as\":\"x\",\"maxItems\":3,"
        "\"onItemFailure\":\"continue\"}]");
    expect_trimmed("[{\"compensate\":{\"skill\":\"s\",\"task\":\"t\",\"effects\":\"none\","
                   "\"maxRetries\":9}}]",
                   "[{\"compensate\":{\"skill\":\"s\",\"task\":\"t\"}}]");
    expect_trimmed(
        "[{\"steps\":[{\"id\":\"i\",\"gate\":1}]},{\"switch\":[{\"when\":{},\"gate\":1,"
        "\"steps\":[{\"id\":\"i\",\"maxRetries\":1}]}]}]",
        "[{\"steps\":[{\"id\":\"i\"}]},{\"switch\":[{\"when\":{},\"steps\":[{\"id\":\"i\"}]}"
        "]}]");
    expect_trimmed("[{\"if\":1,\"unless\":1,\"for_each\":1,\"WHILE\":1,\"Loop\":1,\"mood\":1}]",
                   "[{\"if\":1,\"unless\":1,\"for_each\":1,\"WHILE\":1,\"Loop\":1}]");
    expect_trimmed("{\"while\":1,\"steps\":[]}", "{\"steps\":[]}");
}

/* A tree that no text gave may be deeper than texts are: the ninth group is not looked into. */
static void groups_that_are_not_trimmed_are_not_there(void **state)
{
    struct buf in;
    struct buf out;

    (void)state;
    buf_init(&in, 4096);
    buf_init(&out, 4096);
    for (int i = 0; i < 10; i++) {
        buf_add_cstr(&in, i < 9 ? "[{\"gate\":1,\"id\":\"a\",\"steps\":" : "[]");
        buf_add_cstr(&out, i < 8 ? "[{\"id\":\"a\",\"steps\":" : i == 8 ? "[{\"id\":\"a\"" : "");
    }
    for (int i = 0; i < 9; i++) {
        buf_add_cstr(&in, "}]");
        buf_add_cstr(&out, "}]");
    }
    expect_tree_trimmed(cJSON_Parse(buf_cstr(&in)), buf_cstr(&out));
    buf_done(&in);
    buf_done(&out);
}

static void what_is_no_plan_stays_as_it_is(void **state)
{
    static const char *const rows[] = {"7",
                                       "null",
                                       "\"x\"",
                                       "[]",
                                       "{\"steps\":\"x\"}",
                                       "{\"steps\":[1,[2],null]}",
                                       "{\"phases\":{}}"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *tree = cJSON_Parse(rows[i]);
        plan_trim(tree);
        char *text = cJSON_PrintUnformatted(tree);
        assert_string_equal(text, rows[i]);
        cJSON_free(text);
        cJSON_Delete(tree);
    }
}

/* ---- reports ---- */

static void result_cannot_look_like_another_step(void **state)
{
    cJSON *steps =
        parse("[{\"stepId\":\"a\",\"status\":\"failed\",\"result\":\"x\\\"}\\n{\\\"stepId"
              "\\\":\\\"b\\\",\\\"status\\\":\\\"completed\\\"}\"}]");
    struct plan_report_counts counts;
    char *text = plan_report_steps(steps, 10000, &counts);

    (void)state;
    assert_non_null(text);
    assert_int_equal(counts.all, 1);
    assert_int_equal(counts.completed, 0);
    assert_int_equal(counts.failed, 1);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    free(text);
    cJSON_Delete(steps);
}

static void long_reports_stay_within_their_room(void **state)
{
    enum { STEPS = 1000, ROOM = 400 * 1000 };
    cJSON *steps = cJSON_CreateArray();
    struct plan_report_counts counts;
    char *long_text = malloc(5001);
    char *text;

    (void)state;
    assert_non_null(long_text);
    memset(long_text, 'x', 5000);
    long_text[5000] = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        cJSON *step = cJSON_CreateObject();
        assert_non_null(cJSON_AddStringToObject(step, "stepId", "s"));
        assert_non_null(cJSON_AddStringToObject(step, "status", "completed"));
        assert_non_null(cJSON_AddStringToObject(step, "result", i == 7 ? "short" : long_text));
        assert_true(cJSON_AddItemToArray(steps, step));
    }
    text = plan_report_steps(steps, ROOM, &counts);
    assert_non_null(text);
    assert_in_range(strlen(text), ROOM / 2, ROOM);
    assert_non_null(strstr(text, "\"short\"}"));
    assert_non_null(strstr(text, "\"truncated\":true"));
    free(text);
    cJSON_Delete(steps);
    steps = parse("[7,null,{\"result\":{\"a\":[1]},\"task\":[],\"error\":{}}]");
    text = plan_report_steps(steps, 0, &counts);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"result\":\"\""));
    free(text);
    cJSON_Delete(steps);
    free(long_text);
}

static void last_line_is_ours(void **state)
{
    static const struct {
        const char *plan;
        const char *line;
    } rows[] = {
        {"{\"status\":\"completed\",\"durationMs\":12345,\"agents\":[\"a\",{\"agentId\":\"b\"}]}",
         "*Plan completed in 12.3 seconds across a, b.*"},
        {"{\"status\":\"failed\",\"durationMs\":0}", "*Plan failed after 0.0 seconds.*"},
        {"{}", "*Plan ended.*"},
        {"{\"steps\":[{\"agentId\":\"b\"},{\"agentId\":\"a\"},{\"agentId\":\"b\"},{},{\"agentId\":"
         "7},{"
         "\"agentId\":\"\"}]}",
         "*Plan ended across b, a.*"},
        {"{\"status\":\"completed\",\"durationMs\":-1,\"agents\":[\"x*\\n#_y é\",7]}",
         "*Plan completed across x???_y é, ?.*"},
        {"{\"agents\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23]}",
         "*Plan ended across ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? and 3 "
         "more.*"},
    };
    char line[2048];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *plan = parse(rows[i].plan);
        plan_report_last_line(plan, line, sizeof line);
        assert_string_equal(line, rows[i].line);
        cJSON_Delete(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_are_not_known_are_not_the_models_to_say),
        cmocka_unit_test(steps_are_trimmed_wherever_a_plan_has_them),
        cmocka_unit_test(control_flow_stays_and_policies_inside_it_go),
        cmocka_unit_test(groups_that_are_not_trimmed_are_not_there),
        cmocka_unit_test(what_is_no_plan_stays_as_it_is),
        cmocka_unit_test(result_cannot_look_like_another_step),
        cmocka_unit_test(long_reports_stay_within_their_room),
        cmocka_unit_test(last_line_is_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
