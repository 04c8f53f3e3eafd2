/* Rows: sorted, grouped with calculations, and their percentiles. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/calc/aggregate.h"
#include "agents/calc/calc.h"
#include "tests/unit/agents/steps.h"

/* 2026-01-04 is a Sunday. */
#define ROWS                                                                                       \
    "\"values\":{\"columns\":[\"day\",\"who\",\"n\"],\"rows\":["                                   \
    "[\"2026-01-05\",\"ann\",3],[\"2026-01-04\",\"bob\",1],"                                       \
    "[\"2026-02-01\",\"ann\",5],[\"2026-02-01\",\"bob\",null]]}"

static const char *run(const char *skill, const char *more)
{
    char json[2048];

    (void)snprintf(json, sizeof json, "{\"parameters\":{%s%s%s}}", ROWS, more[0] != 0 ? "," : "",
                   more);
    for (size_t i = 0; i < calc_skill_count; i++) {
        if (strcmp(calc_skills[i].id, skill) == 0) {
            return steps_run(steps_make(skill, json), calc_skills[i].run, NULL);
        }
    }
    fail_msg("no skill %s", skill);
    return "";
}

static void rows_are_sorted_by_columns_and_empty_cells_come_last(void **state)
{
    (void)state;
    steps_expect(run("sort", "\"by\":\"n\""),
                 "\"rows\":[[\"2026-01-04\",\"bob\",1],[\"2026-01-05\",\"ann\",3],"
                 "[\"2026-02-01\",\"ann\",5],[\"2026-02-01\",\"bob\",null]]");
    steps_expect(run("sort", "\"by\":{\"field\":\"n\",\"order\":\"desc\"}"),
                 "\"rows\":[[\"2026-02-01\",\"ann\",5],[\"2026-01-05\",\"ann\",3],"
                 "[\"2026-01-04\",\"bob\",1],[\"2026-02-01\",\"bob\",null]]");
    steps_expect(run("sort", "\"by\":[\"who\",{\"field\":\"n\",\"order\":\"desc\"}]"),
                 "\"rows\":[[\"2026-02-01\",\"ann\",5],[\"2026-01-05\",\"ann\",3],"
                 "[\"2026-01-04\",\"bob\",1],[\"2026-02-01\",\"bob\",null]]");
    steps_expect(run("sort", "\"by\":\"n\",\"limit\":2"),
                 "\"rows\":[[\"2026-01-04\",\"bob\",1],[\"2026-01-05\",\"ann\",3]]");
    steps_expect(run("sort", "\"by\":\"colour\""), "colour");
    steps_expect(run("sort", "\"by\":{\"field\":\"n\",\"order\":\"up\"}"), "up");
    steps_expect(run("sort", "\"by\":[7]"), "by: expected a column, or");
    steps_expect(run("sort", "\"by\":[{\"order\":\"asc\"}]"), "by: expected a column, or");
    steps_expect(run("sort", "\"by\":[]"), "by: expected at least one column");
    steps_expect(run("sort", "\"by\":[]"), "\"class\":\"VALIDATION_ERROR\"");
}

/* 190,000 values of a result: so many rows of one column, and their places. */
static void a_result_holds_so_many_values(void **state)
{
    enum { ROWS_MOST = 95000, BYTES = 16 * ROWS_MOST };
    char *json = calloc(1, BYTES);

    (void)state;
    assert_non_null(json);
    for (int n = ROWS_MOST; n <= ROWS_MOST + 1; n++) {
        size_t used = (size_t)snprintf(
            json, BYTES,
            "{\"parameters\":{\"by\":\"a\",\"values\":{\"columns\":[\"a\"],\"rows\":[");
        for (int i = 0; i < n; i++) {
            used += (size_t)snprintf(json + used, BYTES - used, "%s[%d]", i > 0 ? "," : "", i % 7);
        }
        (void)snprintf(json + used, BYTES - used, "]}}}");
        for (size_t i = 0; i < calc_skill_count; i++) {
            if (strcmp(calc_skills[i].id, "sort") == 0) {
                const char *reply = steps_run(steps_make("sort", json), calc_skills[i].run, NULL);
                steps_expect(reply, n == ROWS_MOST ? "\"rowCount\":95000"
                                                   : "result_too_large: 95001 rows of 1 columns, "
                                                     "and a result holds 190000 values");
            }
        }
    }
    free(json);
}

static void rows_are_grouped_by_columns_and_times(void **state)
{
    (void)state;
    steps_expect(run("group", "\"by\":\"who\""), "\"rows\":[[\"ann\",2],[\"bob\",2]]");
    steps_expect(run("group", ""), "\"rows\":[[4]]");
    steps_expect(run("group", "\"by\":{\"field\":\"day\",\"per\":\"month\"},\"calculate\":["
                              "{\"function\":\"sum\",\"field\":\"n\"},"
                              "{\"function\":\"count\",\"field\":\"n\",\"as\":\"k\"}]"),
                 "\"rows\":[[\"2026-01\",4,2],[\"2026-02\",5,1]]");
    steps_expect(run("group", "\"by\":{\"field\":\"day\",\"per\":\"week\"}"),
                 "\"rows\":[[\"2026-W01\",1],[\"2026-W02\",1],[\"2026-W05\",2]]");
    steps_expect(run("group", "\"by\":{\"field\":\"day\",\"per\":\"quarter\"}"), "Q1\",4]]");
    steps_expect(run("group", "\"by\":{\"field\":\"day\",\"per\":\"year\"}"),
                 "\"rows\":[[\"2026\",4]]");
    steps_expect(run("group", "\"by\":{\"field\":\"who\",\"order\":\"desc\"}"),
                 "\"rows\":[[\"bob\",2],[\"ann\",2]]");
    steps_expect(run("group", "\"by\":\"who\",\"calculate\":[\"count\","
                              "{\"function\":\"min\",\"field\":\"n\"},"
                              "{\"function\":\"max\",\"field\":\"n\"},"
                              "{\"function\":\"mean\",\"field\":\"n\"},"
                              "{\"function\":\"median\",\"field\":\"n\",\"as\":\"m\"}]"),
                 "\"rows\":[[\"ann\",2,3,5,4,4],[\"bob\",2,1,1,1,1]]");
    steps_expect(run("group", "\"calculate\":[{\"function\":\"percentile\",\"field\":\"n\","
                              "\"percent\":50,\"method\":\"nearest\"}]"),
                 "\"rows\":[[3]]");
}

static void calculations_that_cannot_be_are_named(void **state)
{
    static const char *const bad[][2] = {
        {"{\"function\":\"percentile\",\"field\":\"n\"}",
         "percentile needs a percent from 0 to 100"},
        {"{\"function\":\"percentile\",\"field\":\"n\",\"percent\":101}", "from 0 to 100"},
        {"{\"function\":\"percentile\",\"field\":\"n\",\"percent\":-1}", "from 0 to 100"},
        {"{\"function\":\"percentile\",\"field\":\"n\",\"percent\":5,\"method\":\"best\"}",
         "method: expected linear or nearest, got 'best'"},
        {"{\"function\":\"sum\"}", "name the column by"},
        {"{\"function\":\"sum\",\"field\":\"who\"}", "column 'who' has the type text"},
        {"{\"function\":\"sum\",\"field\":\"x\"}", "x"},
        {"\"count\",\"count\"", "two columns of the result are called 'count'"},
    };
    char more[400];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(more, sizeof more, "\"calculate\":[%s]", bad[i][0]);
        steps_expect(run("group", more), bad[i][1]);
    }
}

static void a_column_of_percentiles_is_real_when_one_of_them_is(void **state)
{
    (void)state;
    steps_expect(run("percentiles", "\"percents\":[0,100]"), "\"value\":\"integer\"");
    steps_expect(run("percentiles", "\"percents\":[0,10]"), "\"value\":\"real\"");
    steps_expect(run("percentiles", "\"percents\":[10,0]"), "\"value\":\"real\"");
}

static void percentiles_are_of_the_numbers_that_are_there(void **state)
{
    (void)state;
    steps_expect(run("percentiles", "\"percents\":[0,50,75,100]"),
                 "\"rows\":[[0,1],[50,3],[75,4],[100,5]]");
    steps_expect(run("percentiles", "\"percents\":[0,50,75,100],\"method\":\"nearest\""),
                 "\"rows\":[[0,1],[50,3],[75,5],[100,5]]");
    steps_expect(run("percentiles", "\"field\":\"n\",\"percents\":[50]"), "\"rows\":[[50,3]]");
    steps_expect(run("percentiles", "\"field\":\"who\""),
                 "there is no column of numbers called who");
    steps_expect(run("percentiles", "\"field\":\"x\""), "there is no column of numbers called x");
    steps_expect(run("percentiles", "\"method\":\"best\""), "method: expected linear or nearest");
    steps_expect(run("percentiles", ""), "[99,");
}

static enum bt_code sum_of(const int64_t *values, size_t n, struct cell *ret, struct bt_error *err)
{
    const struct aggregation a = {.function = AGGREGATE_SUM};
    struct item items[4] = {{.cell.type = CELL_INTEGER}};

    for (size_t i = 0; i < n; i++) {
        items[i] = (struct item){.cell = {.type = CELL_INTEGER, .integer = values[i]}};
    }
    return aggregate_apply(&a, items, n, ret, err);
}

static void a_sum_of_integers_has_64_bits_or_is_refused(void **state)
{
    static const int64_t fits[][2] = {{INT64_MAX, 0}, {INT64_MIN, 0}, {INT64_MAX, INT64_MIN}};
    static const int64_t over[][2] = {{INT64_MAX, 1}, {INT64_MIN, -1}};
    struct bt_error err;
    struct cell sum;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sum_of(fits[i], 2, &sum, &err), BT_OK);
        assert_int_equal(sum.type, CELL_INTEGER);
        assert_true(sum.integer == fits[i][0] + fits[i][1]);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sum_of(over[i], 2, &sum, &err), BT_LIMIT);
        assert_non_null(strstr(err.msg, "set types to real to get it rounded"));
    }
    assert_int_equal(sum_of((const int64_t[]){INT64_MAX, 1, -1}, 3, &sum, &err), BT_OK);
    assert_true(sum.integer == INT64_MAX); /* on the way it may be larger */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_holds_so_many_values),
        cmocka_unit_test(a_sum_of_integers_has_64_bits_or_is_refused),
        cmocka_unit_test(rows_are_sorted_by_columns_and_empty_cells_come_last),
        cmocka_unit_test(rows_are_grouped_by_columns_and_times),
        cmocka_unit_test(calculations_that_cannot_be_are_named),
        cmocka_unit_test(a_column_of_percentiles_is_real_when_one_of_them_is),
        cmocka_unit_test(percentiles_are_of_the_numbers_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
