/* load: the types of the columns, and all rows or none. */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "tests/unit/agents/sql_world.h"

static const char *load(const char *parameters)
{
    struct buf json;
    const char *reply;

    buf_init(&json, LIMIT_STEP_BYTES * 2);
    buf_printf(&json, "{\"parameters\":%s}", parameters);
    reply = steps_run(steps_make("load", buf_cstr(&json)), sql_load, sql_reader);
    buf_done(&json);
    return reply;
}

/* One CSV column `c` of these cells; the table's type and its rows as query returns them. */
static void infers(const char *cells, const char *type, const char *rows)
{
    char parameters[512];
    char expected[512];

    (void)snprintf(parameters, sizeof parameters,
                   "{\"table\":\"t\",\"replace\":true,\"csv\":\"c,end\\n%s\"}", cells);
    (void)snprintf(expected, sizeof expected, "{\"name\":\"c\",\"type\":\"%s\"}", type);
    steps_expect(load(parameters), expected);
    (void)snprintf(expected, sizeof expected, "\"rows\":%s", rows);
    steps_expect(sql_ask("SELECT c FROM t"), expected);
}

static void types_of_csv_columns_are_found(void **state)
{
    (void)state;
    infers("1,x\\n-20,x\\n", "integer", "[[1],[-20]]");
    infers("1,x\\n2.5,x\\n-1e3,x\\n", "real", "[[1.0],[2.5],[-1000.0]]");
    infers("1,x\\n,x\\n3,x\\n", "integer", "[[1],[null],[3]]");
    infers(",x\\n,x\\n", "text", "[[null],[null]]");
    infers("01234,x\\n99999,x\\n", "text", "[[\"01234\"],[\"99999\"]]");
    infers("1,x\\ntwo,x\\n", "text", "[[\"1\"],[\"two\"]]");
    infers("0x10,x\\n", "text", "[[\"0x10\"]]");
    infers("+1,x\\n", "text", "[[\"+1\"]]");
    infers(" 1,x\\n", "text", "[[\" 1\"]]");
    infers("nan,x\\n", "text", "[[\"nan\"]]");
    infers("inf,x\\n", "text", "[[\"inf\"]]");
    infers("1e999,x\\n", "text", "[[\"1e999\"]]");
    infers(".5,x\\n", "real", "[[0.5]]");
    infers("1.,x\\n", "text", "[[\"1.\"]]");
    infers("-0,x\\n", "integer", "[[0]]");
    infers("0,x\\n0.5,x\\n", "real", "[[0.0],[0.5]]");
    infers("true,x\\nfalse,x\\n", "boolean", "[[true],[false]]");
    infers("2026-11-21,x\\n", "date", "[[\"2026-11-21\"]]");
}

static void huge_integers_keep_every_digit(void **state)
{
    (void)state;
    infers("9223372036854775807,x\\n1,x\\n", "integer", "[[\"9223372036854775807\"],[1]]");
    infers("-9223372036854775808,x\\n", "integer", "[[\"-9223372036854775808\"]]");
    infers("9223372036854775808,x\\n", "text", "[[\"9223372036854775808\"]]");
    infers("9007199254740993,x\\n0.5,x\\n", "text", "[[\"9007199254740993\"],[\"0.5\"]]");
    steps_expect(load("{\"table\":\"j\",\"rows\":[[\"9007199254740993\"],[1]]}"),
                 "\"type\":\"integer\"");
    steps_expect(sql_ask("SELECT sum(c1) FROM j"), "\"9007199254740994\"");
}

static void a_table_has_256_columns_and_no_more(void **state)
{
    struct buf rows;

    (void)state;
    for (int n = 256; n <= 257; n++) {
        buf_init(&rows, 16384);
        buf_printf(&rows, "{\"table\":\"t\",\"rows\":[{");
        for (int i = 0; i < n; i++) {
            buf_printf(&rows, "%s\"c%d\":%d", i == 0 ? "" : ",", i, i);
        }
        buf_printf(&rows, "}]}");
        steps_expect(load(buf_cstr(&rows)),
                     n == 256 ? "\"rows\":1" : "a table has at most 256 columns");
        buf_done(&rows);
    }
}

static void json_rows_keep_their_types(void **state)
{
    (void)state;
    steps_expect(load("{\"table\":\"t\",\"rows\":[{\"a\":1,\"b\":\"1\",\"c\":true,\"d\":1.5,\"e\":"
                      "[1,{\"x\":null}]},{\"a\":null,\"f\":\"\"}]}"),
                 "\"rows\":2");
    steps_expect(
        sql_ask("SELECT * FROM t"),
        "\"columns\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"types\":{\"a\":\"integer\",\"b\":"
        "\"integer\","
        "\"c\":\"boolean\",\"d\":\"real\",\"e\":\"text\",\"f\":\"text\"},\"rows\":[[1,1,true,1.5,"
        "\"[1,{\\\"x\\\":null}]\",null],[null,null,null,null,null,\"\"]]");
    steps_expect(load("{\"table\":\"u\",\"rows\":{\"columns\":[\"n\",\"m\"],\"rows\":[[1,2]]}}"),
                 "\"rows\":1");
    steps_expect(load("{\"table\":\"v\",\"rows\":[[1,2]],\"columns\":[\"left\",\"right\"]}"),
                 "\"name\":\"left\"");
    steps_expect(load("{\"table\":\"w\",\"rows\":\"a;b\\n1;2\\n\",\"delimiter\":\";\"}"),
                 "\"rows\":1");
}

static void types_can_be_set_by_the_caller_and_by_the_source(void **state)
{
    (void)state;
    steps_expect(load("{\"table\":\"t\",\"csv\":\"zip,n\\n12345,+5\\n,\\n\",\"types\":{\"zip\":"
                      "\"text\",\"n\":\"integer\"}}"),
                 "[{\"name\":\"zip\",\"type\":\"text\"},{\"name\":\"n\",\"type\":\"integer\"}]");
    steps_expect(sql_ask("SELECT zip, n, typeof(zip) FROM t"),
                 "\"rows\":[[\"12345\",5,\"text\"],[\"\",null,\"text\"]]");
    steps_expect(load("{\"table\":\"u\",\"rows\":{\"columns\":[\"zip\",\"n\"],\"types\":{\"zip\":"
                      "\"text\",\"n\":\"integer\",\"x\":7},\"rows\":[[\"12345\","
                      "\"9007199254740993\"],[\"\",9007199254740995]]}}"),
                 "\"rows\":2");
    steps_expect(sql_ask("SELECT zip, n, typeof(n) FROM u"),
                 "\"rows\":[[\"12345\",\"9007199254740993\",\"integer\"],[\"\","
                 "\"9007199254740995\",\"integer\"]]");
    steps_expect(load("{\"table\":\"v\",\"rows\":{\"columns\":[\"z\"],\"types\":{\"z\":\"text\"},"
                      "\"rows\":[[\"1\"]]},\"types\":{\"z\":\"real\"}}"),
                 "{\"name\":\"z\",\"type\":\"real\"}");
    steps_expect(
        load("{\"table\":\"w\",\"csv\":\"a\\n1\\nx\\n\",\"types\":{\"a\":\"integer\"}}"),
        "row 2: column 'a' has the type integer, but 'x' is not a whole number of 64 bits; "
        "set types: {\\\"a\\\": \\\"text\\\"}");
    steps_expect(load("{\"table\":\"w\",\"csv\":\"a\\n1\\n\",\"types\":{\"b\":\"integer\"}}"),
                 "types: there is no column 'b'; the columns are: a");
    steps_expect(load("{\"table\":\"w\",\"csv\":\"a\\n1\\n\",\"columns\":[\"b\"],\"types\":{\"b\":"
                      "\"text\"}}"),
                 "{\"name\":\"b\",\"type\":\"text\"}");
}

static void names_are_quoted_whatever_they_contain(void **state)
{
    (void)state;
    steps_expect(load("{\"table\":\"a \\\"b\\\"; DROP TABLE x\",\"rows\":[{\"c\\\"); --\":1,"
                      "\"select\":2,\"\xC3\xBC\":3}]}"),
                 "\"rows\":1");
    steps_expect(sql_ask("SELECT \"c\"\"); --\", \"select\", \"\xC3\xBC\" FROM \"a \"\"b\"\"; DROP "
                         "TABLE x\""),
                 "\"rows\":[[1,2,3]]");
}

static void values_are_never_sql(void **state)
{
    (void)state;
    steps_expect(load("{\"table\":\"t\",\"rows\":[[\"'); DROP TABLE t; --\"],[\"?1\"]]}"),
                 "\"rows\":2");
    steps_expect(sql_ask("SELECT c1 FROM t"), "\"rows\":[[\"'); DROP TABLE t; --\"],[\"?1\"]]");
}

static void existing_table_is_replaced_only_when_asked(void **state)
{
    (void)state;
    steps_expect(load("{\"table\":\"t\",\"rows\":[[1]]}"), "\"outcome\":\"completed\"");
    steps_expect(load("{\"table\":\"t\",\"rows\":[[2]]}"), "set replace: true");
    steps_expect(sql_ask("SELECT c1 FROM t"), "\"rows\":[[1]]");
    steps_expect(load("{\"table\":\"t\",\"rows\":[[2]],\"replace\":true}"),
                 "\"outcome\":\"completed\"");
    steps_expect(sql_ask("SELECT c1 FROM t"), "\"rows\":[[2]]");
}

static void failed_load_leaves_everything_as_it_was(void **state)
{
    struct sql_settings *small = sql_settings_make(",\"maxDatabaseBytes\":65536");
    struct bt_step *step;
    struct buf json;

    (void)state;
    steps_expect(load("{\"table\":\"t\",\"rows\":[[1]]}"), "\"outcome\":\"completed\"");
    buf_init(&json, LIMIT_STEP_BYTES);
    buf_add_cstr(&json, "{\"parameters\":{\"table\":\"t\",\"replace\":true,\"rows\":[[\"first\"]");
    while (json.len < 200000) {
        buf_add_cstr(&json, ",[\"0123456789abcdef0123456789abcdef0123456789abcdef\"]");
    }
    buf_add_cstr(&json, "]}}");
    steps_expect(steps_run(steps_make("load", buf_cstr(&json)), sql_load, small),
                 "the database is full");
    steps_expect(sql_ask("SELECT c1 FROM t"), "\"rows\":[[1]]");
    step = steps_make("load", buf_cstr(&json));
    atomic_store(&step->cancelled, true);
    steps_expect(steps_run(step, sql_load, sql_reader), "\"class\":\"CANCELLED\"");
    steps_expect(sql_ask("SELECT c1 FROM t"), "\"rows\":[[1]]");
    steps_expect(load("{\"table\":\"t\",\"replace\":true,\"rows\":[{\"A\":1,\"a\":2}]}"),
                 "columns 1 and 2: 'A' and 'a' are one name in SQL");
    steps_expect(sql_ask("SELECT c1 FROM t"), "\"rows\":[[1]]");
    buf_done(&json);
    free(small);
}

static void result_of_the_step_before_is_taken_when_nothing_is_given(void **state)
{
    const struct {
        const char *result;
        const char *rows;
    } cases[] = {
        {"{\"data\":{\"columns\":[\"n\"],\"rows\":[[1],[2]]}}", "[[1],[2]]"},
        {"{\"text\":\"| n |\",\"data\":[{\"n\":3}]}", "[[3]]"},
        {"{\"text\":\"n,m\\n4,x\\n\"}", "[[4]]"},
        {"{\"text\":\"[{\\\"n\\\":5}]\"}", "[[5]]"},
    };
    char json[512];
    char expected[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(json, sizeof json,
                       "{\"parameters\":{\"replace\":true},\"context\":{\"dependencies\":[{"
                       "\"stepId\":\"old\",\"agentId\":\"x\",\"result\":{\"text\":\"no\"}},{"
                       "\"stepId\":\"new\",\"agentId\":\"x\",\"result\":%s}]}}",
                       cases[i].result);
        steps_expect(steps_run(steps_make("load", json), sql_load, sql_reader),
                     "\"table\":\"data\"");
        (void)snprintf(expected, sizeof expected, "\"rows\":%s", cases[i].rows);
        steps_expect(sql_ask("SELECT n FROM data"), expected);
    }
    steps_expect(load("{}"), "parameters.rows: missing");
}

static void wrong_input_is_named(void **state)
{
    const struct {
        const char *parameters;
        const char *why;
    } cases[] = {
        {"{\"rows\":[]}", "there is no column"},
        {"{\"rows\":7}", "expected rows"},
        {"{\"csv\":\"\"}", "there is no header line"},
        {"{\"csv\":\"a,a\\n1,2\\n\"}", "two of the same name"},
        {"{\"csv\":\"a\\n1,2\\n\"}", "CSV record 2"},
        {"{\"csv\":\"a\\n\\\"open\\n\"}", "has no closing quote"},
        {"{\"csv\":\"a\\n1\\n\",\"delimiter\":\"\"}", "delimiter: expected one ASCII character"},
        {"{\"csv\":\"a\\n1\\n\",\"table\":\"\"}", "table '': expected"},
        {"{\"csv\":\"a\\n1\\n\",\"table\":\"sqlite_x\"}", "not beginning with sqlite_"},
        {"{\"csv\":\"a\\n1\\n\",\"table\":\"_Baton_done\"}", "_baton_"},
        {"{\"csv\":\"a\\n1\\n\",\"table\":\"a\\nb\"}", "without control characters"},
        {"{\"csv\":\"a\\n1\\n\",\"columns\":[\"x\",\"y\"]}", "columns: expected a list of 1"},
        {"{\"csv\":\"a\\n1\\n\",\"columns\":[\"\"]}", "columns[0]: expected a name"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = load(cases[i].parameters);
        steps_expect(reply, cases[i].why);
        steps_expect(reply, "\"class\":\"VALIDATION_ERROR\"");
    }
}

static void blank_records_are_no_rows(void **state)
{
    (void)state;
    steps_expect(
        load("{\"table\":\"t\",\"csv\":\"a,b\\r\\n1,2\\r\\n\\r\\n3,4\\r\\n,\\r\\n\\r\\n\"}"),
        "\"rows\":3"); /* the commas are a row of nulls */
}

static void load_can_be_forbidden(void **state)
{
    struct sql_settings *none = sql_settings_make(",\"allowLoad\":false");

    (void)state;
    steps_expect(steps_run(steps_make("load", "{\"parameters\":{\"rows\":[[1]]}}"), sql_load, none),
                 "\"class\":\"PERMISSION_DENIED\"");
    free(none);
}

static void repeated_key_loads_once(void **state)
{
    (void)state;
    for (int attempt = 1; attempt <= 2; attempt++) {
        struct bt_step *step =
            steps_make("load", "{\"parameters\":{\"table\":\"t\",\"rows\":[[1]]}}");
        step->plan_id = "019ab000-0000-7000-8000-000000000001";
        step->key = "019ab000-0000-7000-8000-000000000001/1/load";
        steps_expect(steps_run(step, sql_load, sql_reader), "\"table\":\"t\",\"rows\":1");
    }
    steps_expect(sql_ask("SELECT count(*) FROM t"), "\"rows\":[[1]]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(types_of_csv_columns_are_found, sql_fresh),
        cmocka_unit_test_setup(huge_integers_keep_every_digit, sql_fresh),
        cmocka_unit_test_setup(a_table_has_256_columns_and_no_more, sql_fresh),
        cmocka_unit_test_setup(json_rows_keep_their_types, sql_fresh),
        cmocka_unit_test_setup(types_can_be_set_by_the_caller_and_by_the_source, sql_fresh),
        cmocka_unit_test_setup(names_are_quoted_whatever_they_contain, sql_fresh),
        cmocka_unit_test_setup(values_are_never_sql, sql_fresh),
        cmocka_unit_test_setup(existing_table_is_replaced_only_when_asked, sql_fresh),
        cmocka_unit_test_setup(failed_load_leaves_everything_as_it_was, sql_fresh),
        cmocka_unit_test_setup(result_of_the_step_before_is_taken_when_nothing_is_given, sql_fresh),
        cmocka_unit_test_setup(wrong_input_is_named, sql_fresh),
        cmocka_unit_test_setup(blank_records_are_no_rows, sql_fresh),
        cmocka_unit_test_setup(load_can_be_forbidden, sql_fresh),
        cmocka_unit_test_setup(repeated_key_loads_once, sql_fresh),
    };

    return cmocka_run_group_tests(tests, sql_set_up, sql_tear_down);
}
