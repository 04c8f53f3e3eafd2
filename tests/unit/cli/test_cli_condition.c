/* Conditions in words. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/view/condition.h"
#include "tests/support/cmocka.h"

static void assert_words(const char *json, const char *expected)
{
    cJSON *when = cJSON_Parse(json);
    struct buf out;

    assert_non_null(when);
    buf_init(&out, 4096);
    condition_words(when, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
    cJSON_Delete(when);
}

static void a_test_is_a_comparison(void **state)
{
    (void)state;
    assert_words("{\"results.a.n\":{\"gte\":5}}", "a.n >= 5");
    assert_words("{\"results.a\":\"yes\"}", "a = yes");
    assert_words("{\"results.a\":{\"b\":1}}", "a = {\"b\":1}");
    assert_words("{\"inputs.n\":{\"value\":3,\"in\":[1,2]}}", "inputs.n in [1,2]");
    assert_words("{\"steps.a.status\":{\"ne\":\"failed\"}}", "steps.a.status != failed");
    assert_words("{\"state.x\":{\"exists\":true}}", "state.x is there");
    assert_words("{\"state.x\":{\"exists\":false}}", "state.x is not there");
    assert_words("{\"results.a\":{\"matches\":\"^x\"}}", "a matches ^x");
    assert_words("{}", "");
}

static void not_turns_each_test_around(void **state)
{
    static const char *const pairs[][2] = {{"eq", "!="}, {"ne", "="},  {"gt", "<="},
                                           {"gte", "<"}, {"lt", ">="}, {"lte", ">"}};

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char json[100];
        char words[20];
        (void)snprintf(json, sizeof json, "{\"not\":{\"results.n\":{\"%s\":1}}}", pairs[i][0]);
        (void)snprintf(words, sizeof words, "n %s 1", pairs[i][1]);
        assert_words(json, words);
    }
    assert_words("{\"not\":{\"not\":{\"results.n\":1}}}", "n = 1");
    assert_words("{\"not\":{\"results.n\":{\"exists\":true}}}", "n is not there");
    assert_words("{\"not\":{\"results.a\":1,\"results.b\":2}}", "a != 1 or b != 2");
    assert_words("{\"not\":{\"any\":[{\"results.a\":1},{\"results.b\":2}]}}", "a != 1 and b != 2");
}

static void what_is_joined_has_brackets_where_they_are_needed(void **state)
{
    (void)state;
    assert_words("{\"results.a\":1,\"results.b\":2}", "a = 1 and b = 2");
    assert_words("{\"all\":[{\"results.a\":1},{\"all\":[{\"results.b\":2},{\"results.c\":3}]}]}",
                 "a = 1 and b = 2 and c = 3");
    assert_words("{\"any\":[{\"results.a\":1},{\"results.b\":2,\"results.c\":3}]}",
                 "a = 1 or (b = 2 and c = 3)");
    assert_words("{\"all\":[{\"any\":[{\"results.a\":1}]},{\"results.b\":2}]}", "a = 1 and b = 2");
    assert_words("{\"all\":[{\"not\":{\"results.a\":{\"gte\":5}}},{\"results.a\":{\"gt\":0}}]}",
                 "a < 5 and > 0");
    assert_words("{\"results.a\":{\"gt\":1,\"lt\":3}}", "a > 1 and < 3");
}

int main(void)
{
    static const struct CMUnitTest all[] = {
        cmocka_unit_test(a_test_is_a_comparison),
        cmocka_unit_test(not_turns_each_test_around),
        cmocka_unit_test(what_is_joined_has_brackets_where_they_are_needed),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
