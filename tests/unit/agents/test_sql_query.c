/* query: values are bound as values, and are returned without loss. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "tests/unit/agents/sql_world.h"

static void literal_text_stays_literal(void **state)
{
    static const char *const corpus[] = {"' OR 1=1 --",
                                         "'; DROP TABLE t; --",
                                         "\" OR \"\"=\"",
                                         "x' UNION SELECT name FROM sqlite_master --",
                                         "1); DELETE FROM t; --",
                                         "%' OR '1'='1",
                                         "\\'; ATTACH 'x' AS y; --",
                                         "/* */ ? :name @a $b",
                                         "\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80",
                                         "' || load_extension('x') || '",
                                         ""};

    (void)state;
    sql_do("CREATE TABLE t(v TEXT)");
    sql_do("INSERT INTO t VALUES ('safe')");
    for (size_t i = 0; i < sizeof corpus / sizeof corpus[0]; i++) {
        cJSON *text = cJSON_CreateString(corpus[i]);
        char *quoted = cJSON_PrintUnformatted(text);
        char more[256];
        char expected[256];
        (void)snprintf(more, sizeof more, ",\"params\":[%s]", quoted);
        (void)snprintf(expected, sizeof expected, "\"rows\":[[%s]]", quoted);
        steps_expect(sql_run(sql_query, sql_reader, "SELECT v FROM t WHERE v = ?", more),
                     "\"rows\":[]");
        steps_expect(sql_run(sql_execute, sql_writer, "INSERT INTO t VALUES (?)", more),
                     "\"changes\":1");
        steps_expect(sql_run(sql_query, sql_reader, "SELECT v FROM t WHERE v = ?", more), expected);
        cJSON_free(quoted);
        cJSON_Delete(text);
    }
    steps_expect(sql_ask("SELECT count(*) FROM t WHERE v = 'safe'"), "\"rows\":[[1]]");
}

static void parameters_are_bound_by_place_and_by_name(void **state)
{
    (void)state;
    steps_expect(sql_run(sql_query, sql_reader, "SELECT ?, ?, ?, ?, ?",
                         ",\"params\":[1,2.5,true,null,\"x\"]"),
                 "\"rows\":[[1,2.5,1,null,\"x\"]]");
    steps_expect(sql_run(sql_query, sql_reader, "SELECT :a + @b + $c + :a",
                         ",\"params\":{\"a\":1,\"b\":2,\"c\":3}"),
                 "\"rows\":[[7]]");
    steps_expect(sql_run(sql_query, sql_reader, "SELECT sum(value) FROM json_each(?)",
                         ",\"params\":[[1,2,3]]"),
                 "\"rows\":[[6]]");
}

static void parameters_that_do_not_fit_are_refused(void **state)
{
    const struct {
        const char *sql;
        const char *params;
        const char *why;
    } cases[] = {
        {"SELECT ?", "", "params: missing; the statement has 1"},
        {"SELECT ?", ",\"params\":[]", "has 1 parameters, 0 are given"},
        {"SELECT ?", ",\"params\":[1,2]", "has 1 parameters, 2 are given"},
        {"SELECT 1", ",\"params\":[1]", "has 0 parameters, 1 are given"},
        {"SELECT :a", ",\"params\":{\"b\":1}", "params.b: the statement has no such"},
        {"SELECT :a, :c", ",\"params\":{\"a\":1}", "params.c: missing"},
        {"SELECT ?", ",\"params\":{}", "parameter 1 has no name"},
        {"SELECT ?", ",\"params\":7", "params: expected a list or an object"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = sql_run(sql_query, sql_reader, cases[i].sql, cases[i].params);
        steps_expect(reply, cases[i].why);
        steps_expect(reply, "\"class\":\"VALIDATION_ERROR\"");
    }
}

static void values_travel_without_loss(void **state)
{
    (void)state;
    steps_expect(sql_ask("SELECT 9007199254740992, 9007199254740993, -9223372036854775807 - 1"),
                 "\"rows\":[[9007199254740992,\"9007199254740993\",\"-9223372036854775808\"]]");
    steps_expect(sql_ask("SELECT NULL, 1.5, 1e999, -1e999, ''"),
                 "\"rows\":[[null,1.5,\"Infinity\",\"-Infinity\",\"\"]]");
    steps_expect(sql_ask("SELECT x'00ff', x''"),
                 "\"rows\":[[{\"base64\":\"AP8=\"},{\"base64\":\"\"}]]");
    steps_expect(sql_ask("SELECT '\xF0\x9F\x98\x80 \xC3\xBC'"), "\xF0\x9F\x98\x80 \xC3\xBC");
}

static void text_that_is_no_utf8_is_repaired_and_says_so(void **state)
{
    const char *reply = sql_ask("SELECT CAST(x'61ff6200' AS TEXT) AS t");

    (void)state;
    steps_expect(reply, "\"rows\":[[\"a\xEF\xBF\xBD"
                        "b\xEF\xBF\xBD\"]]");
    steps_expect(reply, "\"replacedBytes\":2");
}

static void columns_of_the_same_name_are_told_apart(void **state)
{
    (void)state;
    steps_expect(sql_ask("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a"),
                 "\"columns\":[\"a\",\"a_2\",\"a_2_2\",\"a_3\"]");
}

static void people_get_a_markdown_table(void **state)
{
    (void)state;
    steps_expect(sql_ask("SELECT 'a|b' AS name, 3 AS n"),
                 "\"text\":\"| name | n |\\n| --- | ---: |\\n| a\\\\|b | 3 |\\n\\n1 row\"");
    steps_expect(sql_ask("SELECT 1 WHERE 0"), "\"text\":\"0 rows\"");
}

static void rows_over_a_cap_fail_and_over_a_limit_are_named(void **state)
{
    static const char many[] = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
                               "WHERE n < 5000) SELECT n FROM c";
    static const char some[] = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
                               "WHERE n < 100) SELECT n FROM c";
    const char *reply;

    (void)state;
    steps_expect(sql_ask(many), "\"rowCount\":5000,\"truncated\":false");
    steps_expect(sql_ask(many), "5000 rows (the first 1000 are shown; the data has all of them)\"");
    reply = sql_run(sql_query, sql_reader, many, ",\"maxRows\":2");
    steps_expect(reply, "\"rows\":[[1],[2]],\"rowCount\":2,\"truncated\":true");
    steps_expect(reply, "[not whole: the first 2 rows; 4998 more are there; raise `limit`");
    steps_expect(reply, "},\"truncated\":true}");
    steps_expect(sql_run(sql_query, sql_reader, many, ",\"limit\":5000"), "\"truncated\":false");
    steps_expect(sql_run(sql_query, sql_reader, many, ",\"limit\":4999"), "1 more are there");
    /* the setting of this agent is 100 rows */
    steps_expect(sql_run(sql_query, sql_writer, many, ""),
                 "result_too_large: more than 100 rows (the setting maxRows); use artifact: true, "
                 "ask for fewer");
    steps_expect(sql_run(sql_query, sql_writer, many, ",\"limit\":101"), "result_too_large");
    steps_expect(sql_run(sql_query, sql_writer, many, ",\"limit\":100"), "4900 more are there");
    steps_expect(sql_run(sql_query, sql_writer, some, ""), "\"rowCount\":100,\"truncated\":false");
    steps_expect(sql_run(sql_query, sql_reader, "SELECT 1", ",\"maxRows\":1"),
                 "\"truncated\":false");
    steps_expect(sql_run(sql_query, sql_reader, "SELECT 1", ",\"maxRows\":0"),
                 "\"rows\":[],\"rowCount\":0,\"truncated\":true");
}

static void result_over_the_cap_is_refused(void **state)
{
    (void)state;
    steps_expect(sql_ask("SELECT printf('%.*c', 4000000, 'x')"), "result_too_large");
    steps_expect(sql_ask("SELECT zeroblob(3000000)"), "result_too_large");
    steps_expect(sql_ask("SELECT zeroblob(1000000000)"), "too big");
}

static void a_statement_has_100_selects_in_one_at_most(void **state)
{
    char sql[2048] = "SELECT 1";

    (void)state;
    for (int i = 1; i < 100; i++) {
        (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), " UNION ALL SELECT 1");
    }
    steps_expect(sql_ask(sql), "\"rowCount\":100");
    (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), " UNION ALL SELECT 1");
    steps_expect(sql_ask(sql), "too many terms in compound SELECT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(literal_text_stays_literal, sql_fresh),
        cmocka_unit_test_setup(parameters_are_bound_by_place_and_by_name, sql_fresh),
        cmocka_unit_test_setup(parameters_that_do_not_fit_are_refused, sql_fresh),
        cmocka_unit_test_setup(values_travel_without_loss, sql_fresh),
        cmocka_unit_test_setup(text_that_is_no_utf8_is_repaired_and_says_so, sql_fresh),
        cmocka_unit_test_setup(columns_of_the_same_name_are_told_apart, sql_fresh),
        cmocka_unit_test_setup(people_get_a_markdown_table, sql_fresh),
        cmocka_unit_test_setup(rows_over_a_cap_fail_and_over_a_limit_are_named, sql_fresh),
        cmocka_unit_test_setup(result_over_the_cap_is_refused, sql_fresh),
        cmocka_unit_test_setup(a_statement_has_100_selects_in_one_at_most, sql_fresh),
    };

    return cmocka_run_group_tests(tests, sql_set_up, sql_tear_down);
}
