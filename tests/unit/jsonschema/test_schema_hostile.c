/* Schemas and instances made to hurt: every one ends, within its budget, with a clear code. */
#include "tests/unit/jsonschema/schema_test.h"

/* before, then the middle n times, then after: a text of any depth or width. */
static char *repeat(const char *before, const char *middle, size_t n, const char *after)
{
    size_t len = strlen(before) + n * strlen(middle) + strlen(after) + 1;
    char *text = malloc(len);
    size_t used = strlen(before);

    assert_non_null(text);
    memcpy(text, before, used);
    for (size_t i = 0; i < n; i++, used += strlen(middle)) {
        memcpy(text + used, middle, strlen(middle));
    }
    memcpy(text + used, after, strlen(after) + 1);
    return text;
}

static void expect_code(const char *schema, const char *instance, enum bt_code code, bool compiled)
{
    struct outcome o = outcome_of(schema, instance);

    assert_string_equal(bt_code_name(o.code), bt_code_name(code));
    assert_int_equal(o.compiled, compiled);
    assert_true(o.code == BT_OK || o.err.msg[0] != '\0');
}

static void deep_schema_is_refused(void **state)
{
    char *open = repeat("", "{\"not\":", 900, "{}");
    char *all = repeat(open, "}", 900, "");

    (void)state;
    expect_code(all, "1", BT_LIMIT, false);
    free(open);
    free(all);
}

static void wide_schema_is_refused(void **state)
{
    char *values = repeat("{\"enum\":[0", ",1", 5000, "]}");
    char *bytes = repeat("{\"description\":\"", "0123456789", 7000, "\"}");

    (void)state;
    expect_code(values, "1", BT_LIMIT, false);
    expect_code(bytes, "1", BT_LIMIT, false);
    free(values);
    free(bytes);
}

/* Not what a check gives that may succeed later. */
static void a_wrong_value_of_a_keyword_is_invalid(void **state)
{
    static const char *const schemas[] = {
        "{'uniqueItems':1}",  "{'pattern':1}",       "{'minItems':-1}",
        "{'required':'a'}",   "{'multipleOf':0}",    "{'properties':[]}",
        "{'enum':'a'}",       "{'type':'no'}",       "{'maximum':'1'}",
        "{'allOf':{}}",       "{'$ref':1}",          "{'pattern':'('}",
        "{'dependencies':1}", "{'propertyNames':1}", "{'anyOf':[1]}",
        "{'not':1}",          "{'items':1}",         "{'patternProperties':{'(':{}}}"};

    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        const struct outcome o = outcome_of(schemas[i], "1");
        if (o.code != BT_INVALID || o.compiled) {
            fail_msg("%s: %s %s", schemas[i], bt_code_name(o.code), o.err.msg);
        }
    }
}

static void reference_to_itself_is_refused(void **state)
{
    (void)state;
    expect_code("{'$ref':'#'}", "1", BT_INVALID, false);
    expect_code("{'items':{'$ref':'#/definitions/a'},'definitions':{'a':{'$ref':'#/definitions/b'},"
                "'b':{'$ref':'#/definitions/a'}}}",
                "[]", BT_INVALID, false);
}

static void endless_recursion_ends_at_the_depth_cap(void **state)
{
    (void)state;
    expect_code("{'allOf':[{'$ref':'#'}]}", "1", BT_LIMIT, true);
    expect_code("{'not':{'$ref':'#'}}", "1", BT_LIMIT, true);
    expect_code("{'if':{'$ref':'#'}}", "1", BT_LIMIT, true);
    expect_code("{'propertyNames':{'anyOf':[{'$ref':'#/propertyNames'}]}}", "{'a':1}", BT_LIMIT,
                true);
}

static void exponential_references_end_at_the_work_cap(void **state)
{
    char schema[4096] = "{'$ref':'#/definitions/s20','definitions':{'s0':{'type':'null'}";
    char row[160];

    (void)state;
    for (int i = 1; i <= 20; i++) {
        (void)snprintf(
            row, sizeof row,
            ",'s%d':{'anyOf':[{'$ref':'#/definitions/s%d'},{'$ref':'#/definitions/s%d'}]}", i,
            i - 1, i - 1);
        strncat(schema, row, sizeof schema - strlen(schema) - 1);
    }
    strncat(schema, "}}", sizeof schema - strlen(schema) - 1);
    expect_code(schema, "1", BT_LIMIT, true);
}

static void catastrophic_pattern_ends_at_the_work_cap(void **state)
{
    char *text = repeat("\"", "a", 5000, "!\"");
    char *names = repeat("{\"", "a", 60, "!\":1}");

    (void)state;
    expect_code("{'pattern':'(a+)+$'}", text, BT_LIMIT, true);
    expect_code("{'pattern':'^(([a-z])+.)+[A-Z]([a-z])+$'}", text, BT_LIMIT, true);
    expect_code("{'not':{'pattern':'(a|a)*$'}}", text, BT_LIMIT, true);
    expect_code("{'patternProperties':{'(a+)+$':{}}}", names, BT_LIMIT, true);
    free(text);
    free(names);
}

static void huge_pattern_is_refused(void **state)
{
    char *nest = repeat("{\"pattern\":\"", "(", 300, "\"}");
    char *longer = repeat("{\"pattern\":\"", "abc", 1000, "\"}");

    (void)state;
    expect_code(nest, "''", BT_INVALID, false);
    expect_code(longer, "''", BT_LIMIT, false);
    expect_code("{'pattern':'((a{1,999}){1,999}){1,999}'}", "''", BT_INVALID, false);
    free(nest);
    free(longer);
}

static void deep_instance_ends_at_the_depth_cap(void **state)
{
    char *open = repeat("", "[", 900, "1");
    char *deep = repeat(open, "]", 900, "");

    (void)state;
    expect_code("{'items':{'$ref':'#'}}", deep, BT_LIMIT, true);
    expect_code("{'uniqueItems':true}", "[[[[1]]],[[[1.0]]]]", BT_INVALID, true);
    free(open);
    open = repeat("[1,", "[", 900, "1");
    free(deep);
    deep = repeat(open, "]", 901, "");
    expect_code("{'uniqueItems':true}", deep, BT_LIMIT, true);
    free(open);
    free(deep);
}

static void a_big_table_of_rows_is_within_the_budget(void **state)
{
    char *rows = repeat("[{\"day\":\"d\",\"n\":1,\"share\":0.5}",
                        ",{\"day\":\"d\",\"n\":1,\"share\":0.5}", 49999, "]");

    (void)state;
    expect_code(
        "{'type':'array','items':{'type':'object','required':['day','n','share'],"
        "'properties':{'day':{'type':'string','minLength':1},'n':{'type':'integer','minimum':0},"
        "'share':{'type':'number'}},'additionalProperties':false}}",
        rows, BT_OK, true);
    free(rows);
}

/* Each place that a match may come back to takes memory, more of it for each group. */
static void a_match_has_so_much_memory(void **state)
{
    char *schema = repeat("{\"pattern\":\"^", "()", 60, "(a|ab)*$\"}");
    char *not = repeat("{\"not\":", schema, 1, "}");
    char *few = repeat("\"", "a", 5, "\"");
    char *many = repeat("\"", "a", 1000, "\"");

    (void)state;
    expect_code(schema, few, BT_OK, true);
    expect_code(schema, many, BT_LIMIT, true);
    assert_string_equal(outcome_of(schema, many).err.msg,
                        "a pattern needs too much memory for this text");
    expect_code(not, many, BT_LIMIT, true);
    free(schema);
    free(not );
    free(few);
    free(many);
}

static void text_that_is_not_utf8_matches_nothing(void **state)
{
    cJSON *schema = tree_of("{'pattern':'a'}");
    cJSON *text = cJSON_CreateString("a\xff\xfe");
    struct outcome o = outcome_of_trees(schema, text);

    (void)state;
    assert_int_equal(o.code, BT_INVALID);
    cJSON_Delete(schema);
    cJSON_Delete(text);
}

/* What schema and value come to, with the whole sentence. */
static void said(const char *schema, const char *instance, enum bt_code code, const char *sentence)
{
    struct outcome o = outcome_of(schema, instance);

    if (o.code != code || (code != BT_OK && strcmp(o.err.msg, sentence) != 0)) {
        fail_msg("%.40s: %s %s", schema, bt_code_name(o.code), o.err.msg);
    }
}

/* n times the middle, closed by n times the end. */
static char *nested(const char *middle, size_t n, const char *core, const char *end)
{
    char *open = repeat("", middle, n, core);
    char *all = repeat(open, end, n, "");

    free(open);
    return all;
}

static void each_cap_of_a_schema_is_kept_to_the_last(void **state)
{
    char *text;

    (void)state;
    for (size_t n = 0; n < 2; n++) { /* at the cap, and one more */
        const enum bt_code code = n == 0 ? BT_OK : BT_LIMIT;
        text = nested("{\"allOf\":[", 15 + n, n == 0 ? "{\"title\":1}" : "{}", "]}");
        said(text, "1", code, "#: the schema nests deeper than 32 levels");
        free(text);
        text = repeat("{\"enum\":[1", ",1", 4093 + n, "]}");
        said(text, "1", code, "#: the schema has more than 4096 values");
        free(text);
        text = repeat("{\"title\":\"", "x", 65520 + n, "\"}"); /* 4, and 4 + 5 + 3 */
        said(text, "1", code, "#: the schema is larger than 64 KiB");
        free(text);
        text = repeat("{\"pattern\":\"", "x", 1024 + n, "\"}");
        said(text, "1", code, "#/pattern: a pattern is at most 1024 bytes");
        free(text);
        text = repeat("{\"$ref\":\"#/", "x", 510 + n, "\"}");
        if (n > 0) {
            said(text, "1", code, "#/$ref: longer than 512 bytes");
        } else {
            assert_non_null(strstr(outcome_of(text, "1").err.msg, "leads nowhere"));
        }
        free(text);
        text = nested("(", 64 + n, "x", ")");
        char *pattern = repeat("{\"pattern\":\"", text, 1, "\"}");
        expect_code(pattern, "1", n == 0 ? BT_OK : BT_INVALID, n == 0);
        free(pattern);
        free(text);
    }
}

static void each_cap_of_a_check_is_kept_to_the_last(void **state)
{
    char *text;

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        const enum bt_code code = n == 0 ? BT_OK : BT_LIMIT;
        text = nested("[", 256 + n, "", "]");
        said("{'items':{'$ref':'#'}}", text, code,
             "the schema leads deeper than 256 levels into this value");
        free(text);
        text = nested("[", 256 + n, "", "]");
        char *both = repeat("[1,", text, 1, "]");
        said("{'uniqueItems':true}", both, code, "the value nests deeper than 256 levels");
        free(both);
        free(text);
    }
}

/* 191 bytes of a path are whole. */
static void a_long_path_is_cut_at_its_end(void **state)
{
    (void)state;
    for (size_t n = 188; n <= 193; n++) {
        char *value = repeat("{\"", "x", n, "\":1}");
        struct outcome o = outcome_of("{'additionalProperties':{'type':'null'}}", value);
        assert_int_equal(o.n, 1);
        assert_int_equal(strlen(o.problems[0].path), n < 191 ? n + 1 : 191);
        const char *end = o.problems[0].path + strlen(o.problems[0].path) - 3;
        assert_int_equal(strcmp(end, "...") == 0, n > 190);
        free(value);
    }
}

static void what_is_no_value_is_not_checked(void **state)
{
    cJSON *tree = tree_of("{'items':{'type':'null'}}");
    cJSON *instance = tree_of("[1,2,3]");
    cJSON *raw = cJSON_CreateRaw("1");
    struct schema *s = NULL;
    struct schema_problem problems[2];
    struct bt_error err;
    uint32_t n = 7;

    (void)state;
    assert_int_equal(schema_compile(NULL, &s, &err), BT_INVALID);
    assert_string_equal(err.msg, "#: there is no schema");
    assert_int_equal(schema_compile(tree, &s, NULL), BT_OK);
    assert_int_equal(schema_check(s, NULL, problems, 2, &n, &err), BT_INVALID);
    assert_string_equal(err.msg, "there is no value to check");
    assert_int_equal(n, 0);
    assert_int_equal(schema_check(s, raw, problems, 2, &n, &err), BT_INVALID);
    assert_string_equal(err.msg, "there is no value to check");
    for (uint32_t max = 0; max <= 2; max++) {
        assert_int_equal(schema_check(s, instance, problems, max, &n, &err), BT_INVALID);
        assert_int_equal(n, max);
        assert_string_equal(err.msg, "/0: expected null, got 1");
    }
    assert_string_equal(problems[1].path, "/1");
    assert_int_equal(schema_check(s, instance, problems, 1, &n, NULL), BT_INVALID);
    schema_free(s);
    schema_free(NULL);
    cJSON_Delete(tree);
    cJSON_Delete(instance);
    cJSON_Delete(raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_schema_is_refused),
        cmocka_unit_test(wide_schema_is_refused),
        cmocka_unit_test(a_wrong_value_of_a_keyword_is_invalid),
        cmocka_unit_test(reference_to_itself_is_refused),
        cmocka_unit_test(endless_recursion_ends_at_the_depth_cap),
        cmocka_unit_test(exponential_references_end_at_the_work_cap),
        cmocka_unit_test(catastrophic_pattern_ends_at_the_work_cap),
        cmocka_unit_test(huge_pattern_is_refused),
        cmocka_unit_test(deep_instance_ends_at_the_depth_cap),
        cmocka_unit_test(a_big_table_of_rows_is_within_the_budget),
        cmocka_unit_test(a_match_has_so_much_memory),
        cmocka_unit_test(text_that_is_not_utf8_matches_nothing),
        cmocka_unit_test(each_cap_of_a_schema_is_kept_to_the_last),
        cmocka_unit_test(each_cap_of_a_check_is_kept_to_the_last),
        cmocka_unit_test(a_long_path_is_cut_at_its_end),
        cmocka_unit_test(what_is_no_value_is_not_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
