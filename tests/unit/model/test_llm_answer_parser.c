/* Removes wrappings, finds the one value, checks it against the schema. */
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/answer_parser.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/wire/doc.h"

static void cleaned(const char *text, const char *expected)
{
    struct str s = answer_parser_clean(str_from(text));

    if (!str_is(s, expected)) {
        fail_msg("'%s': expected '%s', got '%.*s'", text, expected, STR_ARG(s));
    }
}

static void reasoning_and_marks_are_taken_off(void **state)
{
    (void)state;
    cleaned(" hello \n", "hello");
    cleaned("\xef\xbb\xbfhello", "hello");
    cleaned("<think>a\nb</think>\n\nhello", "hello");
    cleaned("<think>a</think><think>b</think>hello", "hello");
    cleaned("<thinking>a</thinking> hello", "hello");
    cleaned("a, the tag is missing</think>hello", "hello");
    cleaned("<think>it never stops", "");
    cleaned("", "");
    cleaned("say <think> and </think> in HTML", "say <think> and </think> in HTML");
}

/* json NULL: rejected, for this reason. */
static void found(const char *text, const char *json, const char *why)
{
    cJSON *value = NULL;
    struct bt_error err = {0};
    enum bt_code code = answer_parser_json(str_from(text), &value, &err);
    char *got = code == BT_OK ? cJSON_PrintUnformatted(value) : NULL;

    if (json != NULL && (got == NULL || strcmp(got, json) != 0)) {
        fail_msg("'%s': expected %s, got %s %s", text, json, got != NULL ? got : "nothing",
                 err.msg);
    }
    if (json == NULL) {
        assert_int_equal(code, BT_INVALID);
        assert_null(value);
        if (strstr(err.msg, why) == NULL) {
            fail_msg("'%s': expected '%s' in '%s'", text, why, err.msg);
        }
    }
    free(got);
    cJSON_Delete(value);
}

static void the_one_value_is_found_in_what_stands_around_it(void **state)
{
    (void)state;
    found("{\"a\":1}", "{\"a\":1}", NULL);
    found("```json\n{\"a\":1}\n```", "{\"a\":1}", NULL);
    found("Sure! {\"a\":\"}{\\\"\"} Enjoy.", "{\"a\":\"}{\\\"\"}", NULL);
    found("Fill in {name}: {\"a\":1}", "{\"a\":1}", NULL);
    found("[1,2]", "[1,2]", NULL);
    found("as in [1], {\"a\":[1]}", "{\"a\":[1]}", NULL);
    found("{\"a\":1}\n[note]", "{\"a\":1}", NULL);
}

static void none_and_two_and_half_of_one_are_refused(void **state)
{
    (void)state;
    found("", NULL, "got none");
    found("null", NULL, "got none");
    found("I would rather not.", NULL, "got none");
    found("{\"a\":1} {\"a\":2}", NULL, "more than one");
    found("{\"a\":1}{\"a\":1}", NULL, "more than one");
    found("{\"a\":[1,2", NULL, "cut off");
    found("{\"a\":\"x", NULL, "cut off");
    found("{\"a\":1} and {\"b\":", NULL, "cut off");
    found("{a:1}", NULL, "cannot be read");
    found("{\"a\":1,\"a\":2}", NULL, "cannot be read");
    found("{\"a\":01}", NULL, "cannot be read");
    found("]}", NULL, "got none");
}

static void hostile_depth_and_length_take_linear_time(void **state)
{
    enum { N = 2000000 };
    char *text = malloc(N + 1);

    (void)state;
    assert_non_null(text);
    memset(text, '{', N);
    text[N] = 0;
    found(text, NULL, "cut off");
    for (size_t i = 0; i < N; i++) {
        text[i] = i < N / 2 ? '[' : ']';
    }
    found(text, NULL, "cannot be read");
    for (size_t i = 0; i < N; i++) {
        text[i] = i % 2 == 0 ? '{' : '}';
    }
    found(text, NULL, "more than one");
    free(text);
}

static struct schema *compiled(const char *json)
{
    struct schema *schema = NULL;
    cJSON *tree = NULL;

    assert_int_equal(json_parse(str_from(json), &tree, NULL), BT_OK);
    assert_int_equal(schema_compile(tree, &schema, NULL), BT_OK);
    cJSON_Delete(tree);
    return schema;
}

static void what_does_not_fit_is_said_and_a_tools_call_is_unwrapped(void **state)
{
    struct schema *schema = compiled("{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{"
                                     "\"n\":{\"type\":\"integer\"}}}");
    static const char *const good[] = {"{\"n\":1}", "{\"name\":\"answer\",\"arguments\":{\"n\":1}}",
                                       "{\"name\":\"answer\",\"arguments\":\"{\\\"n\\\":1}\"}",
                                       "{\"name\":\"answer\",\"parameters\":{\"n\":1}}"};
    cJSON *value = NULL;
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(answer_parser_fit(str_from(good[i]), schema, NULL, &value, &err), BT_OK);
        assert_int_equal(cJSON_GetObjectItem(value, "n")->valueint, 1);
        cJSON_Delete(value);
        value = NULL;
    }
    assert_int_equal(answer_parser_fit(STR_LIT("{\"n\":\"x\"}"), schema, NULL, &value, &err),
                     BT_INVALID);
    assert_non_null(strstr(err.msg, "/n"));
    assert_int_equal(answer_parser_fit(STR_LIT("[1]"), schema, NULL, &value, &err), BT_INVALID);
    assert_int_equal(answer_parser_fit(STR_LIT("{\"name\":\"x\",\"arguments\":{\"n\":\"x\"}}"),
                                       schema, NULL, &value, &err),
                     BT_INVALID);
    assert_null(value);
    schema_free(schema);
}

static void strict_is_said_only_of_schemas_that_are(void **state)
{
    static const struct {
        const char *schema;
        bool strict;
    } rows[] = {
        {"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"a\"],\"properties\":{"
         "\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}",
         true},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":\"string\"}}}",
         false},
        {"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[],\"properties\":{"
         "\"a\":{\"type\":\"string\"}}}",
         false},
        {"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"a\"],\"properties\":{"
         "\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}",
         false},
        {"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"a\"],\"properties\":{"
         "\"a\":{}}}",
         false},
        {"true", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *tree = cJSON_Parse(rows[i].schema);
        assert_int_equal(answer_parser_is_strict(tree), rows[i].strict);
        cJSON_Delete(tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasoning_and_marks_are_taken_off),
        cmocka_unit_test(the_one_value_is_found_in_what_stands_around_it),
        cmocka_unit_test(none_and_two_and_half_of_one_are_refused),
        cmocka_unit_test(hostile_depth_and_length_take_linear_time),
        cmocka_unit_test(what_does_not_fit_is_said_and_a_tools_call_is_unwrapped),
        cmocka_unit_test(strict_is_said_only_of_schemas_that_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
