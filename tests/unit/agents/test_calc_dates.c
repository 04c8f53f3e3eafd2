/* Calendar rules; checks every day of 800 years against a second way of counting. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "agents/calc/dates.h"

static struct date parse(const char *text)
{
    struct date d = {0};
    struct bt_error err;

    if (date_parse(text, &d, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return d;
}

static void expect_format(struct date d, const char *text)
{
    char got[DATE_TEXT];

    date_format(d, got);
    assert_string_equal(got, text);
}

static void dates_are_read_and_written(void **state)
{
    (void)state;
    assert_int_equal(parse("1970-01-01").seconds, 0);
    assert_int_equal(parse("2026-11-21T03:53:00Z").seconds, 1795233180);
    assert_int_equal(parse("2026-11-21 03:53").seconds, 1795233180);
    assert_int_equal(parse("2026-11-21T05:53:00.25+02:00").seconds, 1795233180);
    expect_format(parse("2024-02-29"), "2024-02-29");
    expect_format(parse("1969-12-31T23:59:59Z"), "1969-12-31T23:59:59Z");
    expect_format(parse("0001-01-01"), "0001-01-01");
    assert_string_equal(date_weekday(parse("2026-11-21")), "Saturday");
    assert_string_equal(date_weekday(parse("1969-12-31T12:00:00Z")), "Wednesday");
}

static void what_is_no_date_is_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-13-01",
                                        "2026-00-10",
                                        "2026-02-29",
                                        "1900-02-29",
                                        "2026-11-31",
                                        "21.11.2026",
                                        "2026-11-21T",
                                        "2026-11-21T24:00",
                                        "2026-1-1",
                                        "2026-11-21x",
                                        "2026-11-21T12:60",
                                        "0000-01-01",
                                        "2026-11-21T12",
                                        "-026-11-21",
                                        "2026-11-21T1:2",
                                        "2026-11-21 03:53+",
                                        "2026-11-21 03:53+99:00"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct date d;
        if (date_parse(wrong[i], &d, NULL) == BT_OK) {
            fail_msg("'%s' was taken", wrong[i]);
        }
    }
}

static struct date plus(const char *from, int64_t amount, const char *unit)
{
    struct date d = {0};
    struct bt_error err;

    if (date_add(parse(from), amount, unit, &d, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return d;
}

static void adding_keeps_to_the_calendar(void **state)
{
    (void)state;
    expect_format(plus("2026-01-31", 1, "month"), "2026-02-28");
    expect_format(plus("2024-01-31", 1, "months"), "2024-02-29");
    expect_format(plus("2026-03-31", -1, "month"), "2026-02-28");
    expect_format(plus("2026-11-30", 3, "months"), "2027-02-28");
    expect_format(plus("2024-02-29", 1, "year"), "2025-02-28");
    expect_format(plus("2026-12-31", 1, "day"), "2027-01-01");
    expect_format(plus("2026-11-21", 2, "weeks"), "2026-12-05");
    expect_format(plus("2026-11-21", 36, "hours"), "2026-11-22T12:00:00Z");
    expect_format(plus("2026-01-15T10:00:00Z", -12, "months"), "2025-01-15T10:00:00Z");
}

static void adding_out_of_the_calendar_is_refused(void **state)
{
    static const struct {
        int64_t amount;
        const char *unit;
    } wrong[] = {{INT64_MAX, "seconds"}, {INT64_MIN, "days"},   {9999, "years"},  {-9999, "years"},
                 {1, "fortnight"},       {INT64_MAX, "months"}, {4000000, "days"}};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct date d;
        assert_int_equal(date_add(parse("2026-11-21"), wrong[i].amount, wrong[i].unit, &d, NULL),
                         BT_INVALID);
    }
}

static void distances_have_units(void **state)
{
    double v;

    (void)state;
    assert_int_equal(date_diff(parse("2026-11-21"), parse("2027-01-01"), "days", &v, NULL), BT_OK);
    assert_true(v == 41.0);
    assert_int_equal(date_diff(parse("2026-11-21"), parse("2026-11-20"), "hours", &v, NULL), BT_OK);
    assert_true(v == -24.0);
    assert_int_equal(date_diff(parse("2026-11-21"), parse("2026-11-20"), "months", &v, NULL),
                     BT_INVALID);
}

static bool is_leap(int y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

static void every_day_of_800_years_is_the_next_one(void **state)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t seconds = parse("1600-01-01").seconds;

    (void)state;
    for (int y = 1600; y < 2400; y++) {
        for (int m = 1; m <= 12; m++) {
            for (int d = 1; d <= lengths[m - 1] + (m == 2 && is_leap(y)); d++) {
                char text[DATE_TEXT];
                (void)snprintf(text, sizeof text, "%04d-%02d-%02d", y, m, d);
                if (parse(text).seconds != seconds) {
                    fail_msg("%s", text);
                }
                expect_format((struct date){.seconds = seconds}, text);
                seconds += 86400;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_read_and_written),
        cmocka_unit_test(what_is_no_date_is_refused),
        cmocka_unit_test(adding_keeps_to_the_calendar),
        cmocka_unit_test(adding_out_of_the_calendar_is_refused),
        cmocka_unit_test(distances_have_units),
        cmocka_unit_test(every_day_of_800_years_is_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
