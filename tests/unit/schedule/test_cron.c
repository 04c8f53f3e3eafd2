/* Lines of cron: what they mean, and what is wrong with others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/zone/stamp.h"
#include "supervisor/schedule/cron_text.h"
#include "supervisor/schedule/rules/next.h"

/* The first n times after `from`, in UTC, joined. */
static void expect_times(const char *line, const char *from, int n, const char *want)
{
    struct schedule_rule rule = {.kind = SCHEDULE_CRON, .end_ms = MSEC_NEVER};
    struct cron_problem why;
    struct bt_error err;
    char got[1024] = "";
    msec at = 0;

    assert_true(cron_parse(str_from(line), &rule.cron, &why));
    assert_int_equal(stamp_read(str_from(from), &ZONE_UTC, &at, &err), BT_OK);
    for (int i = 0; i < n; i++) {
        char text[STAMP_MAX];
        assert_true(schedule_next(&rule, &ZONE_UTC, at, &at));
        stamp_write(&ZONE_UTC, at, text);
        assert_true(strlen(got) + 20 < sizeof got);
        memcpy(got + strlen(got), text + 5, 11); /* 11-24T03:00 */
        got[strlen(got) + 1] = 0;
        got[strlen(got)] = ' ';
    }
    assert_string_equal(got, want);
}

static void fields_are_numbers_names_ranges_steps_and_lists(void **state)
{
    (void)state;
    expect_times("0 3 * * *", "2026-11-24T03:00", 2, "11-25T03:00 11-26T03:00 ");
    expect_times("0 3 * * *", "2026-11-24T02:59:59.999", 1, "11-24T03:00 ");
    expect_times("*/20 8-9 * * *", "2026-11-24T08:00", 5,
                 "11-24T08:20 11-24T08:40 11-24T09:00 11-24T09:20 11-24T09:40 ");
    expect_times("5,35 0 1 jan,JUL *", "2026-01-01T00:05", 3,
                 "01-01T00:35 07-01T00:05 07-01T00:35 ");
    expect_times("0 12 * * mon-fri/2", "2026-11-24T12:00", 3,
                 "11-25T12:00 11-27T12:00 11-30T12:00 ");
    expect_times("0 0 * * 7", "2026-11-24", 1, "11-29T00:00 ");
    expect_times("0 0 * * sat-sun", "2026-11-24", 3, "11-28T00:00 11-29T00:00 12-05T00:00 ");
    expect_times("59 23 31 12 *", "2026-11-24", 1, "12-31T23:59 ");
    expect_times("0 0 29 2 *", "2026-11-24", 1, "02-29T00:00 ");
    expect_times(" 0\t3  * * * ", "2026-11-24", 1, "11-24T03:00 ");
    expect_times("@Daily", "2026-11-24T01:00", 1, "11-25T00:00 ");
    expect_times("@hourly", "2026-11-24T01:00", 1, "11-24T02:00 ");
    expect_times("@weekly", "2026-11-24", 1, "11-29T00:00 ");
    expect_times("@monthly", "2026-11-24", 1, "12-01T00:00 ");
    expect_times("@yearly", "2026-11-24", 1, "01-01T00:00 ");
    expect_times("@annually", "2026-11-24", 1, "01-01T00:00 ");
    expect_times("@midnight", "2026-11-24T01:00", 1, "11-25T00:00 ");
    expect_times(" @HOURLY\t", "2026-11-24T01:00", 1, "11-24T02:00 ");
}

static void each_month_and_day_of_the_week_has_its_name(void **state)
{
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
    static const char *const days[] = {"Sun", "mOn", "tuE", "WED", "thu", "fri", "sat"};

    (void)state;
    for (int i = 0; i < 12; i++) {
        char line[32];
        char want[16];
        (void)snprintf(line, sizeof line, "0 0 1 %s *", months[i]);
        (void)snprintf(want, sizeof want, "%02d-01T00:00 ", i + 1);
        expect_times(line, "2026-12-31", 1, want);
    }
    for (int i = 0; i < 7; i++) { /* November 22 is a Sunday */
        char line[32];
        char want[16];
        (void)snprintf(line, sizeof line, "0 0 * * %s", days[i]);
        (void)snprintf(want, sizeof want, "11-%02dT00:00 ", 22 + i);
        expect_times(line, "2026-11-21", 1, want);
    }
}

static void ranges_take_both_their_ends_and_every_field_its_least_and_most(void **state)
{
    (void)state;
    expect_times("0-59 0-23 1-31 1-12 0-7", "2026-11-24", 2, "11-24T00:01 11-24T00:02 ");
    expect_times("58-59 23 31 12 *", "2026-11-24", 3, "12-31T23:58 12-31T23:59 12-31T23:58 ");
    expect_times("0 0 1-2 1 *", "2026-11-24", 3, "01-01T00:00 01-02T00:00 01-01T00:00 ");
    expect_times("0 0 * * 5-0", "2026-11-24", 4,
                 "11-27T00:00 11-28T00:00 11-29T00:00 12-04T00:00 ");
    expect_times("0 0 * * sun-mon", "2026-11-24", 2, "11-29T00:00 11-30T00:00 ");
    expect_times("0 0 * * 0-0", "2026-11-24", 2, "11-29T00:00 12-06T00:00 ");
    expect_times("7-7 0 * * *", "2026-11-24", 1, "11-24T00:07 ");
    expect_times("*/59 0 * * *", "2026-11-24", 2, "11-24T00:59 11-25T00:00 ");
    expect_times("0-10/5,3 0 * * *", "2026-11-24", 4,
                 "11-24T00:03 11-24T00:05 11-24T00:10 11-25T00:00 ");
    expect_times("0-10/0005 0 * * *", "2026-11-24", 2, "11-24T00:05 11-24T00:10 ");
    expect_times("0 */23 * * *", "2026-11-24", 2, "11-24T23:00 11-25T00:00 ");
    expect_times("0 0 */31 * *", "2026-11-24", 2, "12-01T00:00 01-01T00:00 ");
    expect_times("0 0 1 */12 *", "2026-11-24", 2, "01-01T00:00 01-01T00:00 ");
    expect_times("0 0 * * */6", "2026-11-24", 3, "11-28T00:00 11-29T00:00 12-05T00:00 ");
    expect_times("000000059 0 * * *", "2026-11-24", 1, "11-24T00:59 ");
}

static void the_next_minute_is_the_first_that_begins_after_the_time(void **state)
{
    (void)state;
    expect_times("* * * * *", "2026-11-24T02:59:00", 2, "11-24T03:00 11-24T03:01 ");
    expect_times("* * * * *", "2026-11-24T02:59:59.999", 1, "11-24T03:00 ");
    expect_times("* * * * *", "2026-12-31T23:59:01", 1, "01-01T00:00 ");
    expect_times("0 3 * * *", "2026-11-24T02:59:01", 1, "11-24T03:00 ");
    expect_times("0 3 * * *", "2026-11-24T03:00:01", 1, "11-25T03:00 ");
    expect_times("59 23 * * *", "2026-11-24T23:58:59", 1, "11-24T23:59 ");
    expect_times("59 23 * * *", "2026-11-24T23:59:01", 1, "11-25T23:59 ");
    expect_times("0 0 * * *", "2026-11-24T23:59:59", 1, "11-25T00:00 ");
    expect_times("30 5,7 * * *", "2026-11-24T05:30", 2, "11-24T07:30 11-25T05:30 ");
    expect_times("0,30 5 * * *", "2026-11-24T05:00", 2, "11-24T05:30 11-25T05:00 ");
    expect_times("45 0 1 3 *", "2026-02-28T12:34:56", 1, "03-01T00:45 ");
}

/* February 29 is a Sunday each 28 years, but not in 2100: 2088, then 2128. */
static void the_longest_wait_is_forty_years(void **state)
{
    (void)state;
    expect_times("0 0 29 2 */7", "2088-02-28", 2, "02-29T00:00 02-29T00:00 ");
}

static void no_time_comes_after_the_year_9999(void **state)
{
    struct schedule_rule rule = {.kind = SCHEDULE_CRON, .end_ms = MSEC_NEVER};
    const msec last = UINT64_C(253402300799000); /* 9999-12-31T23:59:59Z */
    struct cron_problem why;
    msec at = 0;

    (void)state;
    assert_true(cron_parse(STR_LIT("59 23 31 12 *"), &rule.cron, &why));
    assert_true(schedule_next(&rule, &ZONE_UTC, last - 60000, &at));
    assert_true(at == last - 59000);
    assert_false(schedule_next(&rule, &ZONE_UTC, at, &at));
    assert_false(schedule_next(&rule, &ZONE_UTC, last - 1, &at));
    assert_false(schedule_next(&rule, &ZONE_UTC, last, &at));
    assert_false(schedule_next(&rule, &ZONE_UTC, MSEC_NEVER, &at));
    assert_true(cron_parse(STR_LIT("* * * * *"), &rule.cron, &why));
    assert_true(schedule_next(&rule, &ZONE_UTC, last - 60000, &at));
    assert_true(at == last - 59000);
    assert_false(schedule_next(&rule, &ZONE_UTC, at, &at));
    assert_false(schedule_next(&rule, &ZONE_UTC, last, &at));
    rule = (struct schedule_rule){.kind = SCHEDULE_EVERY, .every_ms = 1000, .end_ms = MSEC_NEVER};
    assert_true(schedule_next(&rule, &ZONE_UTC, last - 1, &at));
    assert_true(at == last);
    assert_false(schedule_next(&rule, &ZONE_UTC, last, &at));
}

/* A period begins with the epoch, whatever time it is; a fixed time is one, once. */
static void periods_and_fixed_times_have_their_next(void **state)
{
    struct schedule_rule every = {.kind = SCHEDULE_EVERY, .every_ms = 7, .end_ms = 21};
    struct schedule_rule once = {.kind = SCHEDULE_AT, .at_ms = 100, .end_ms = 100};
    msec at = 0;

    (void)state;
    assert_true(schedule_next(&every, &ZONE_UTC, 0, &at) && at == 7);
    assert_true(schedule_next(&every, &ZONE_UTC, 6, &at) && at == 7);
    assert_true(schedule_next(&every, &ZONE_UTC, 7, &at) && at == 14);
    assert_true(schedule_next(&every, &ZONE_UTC, 20, &at) && at == 21);
    assert_false(schedule_next(&every, &ZONE_UTC, 21, &at));
    every.end_ms = 20;
    assert_false(schedule_next(&every, &ZONE_UTC, 14, &at));
    assert_true(schedule_next(&once, &ZONE_UTC, 99, &at) && at == 100);
    assert_false(schedule_next(&once, &ZONE_UTC, 100, &at));
    once.end_ms = 99;
    assert_false(schedule_next(&once, &ZONE_UTC, 0, &at));
}

/* A clock that is put from 2:00 to 2:30 on day 10, and back from 2:00 to 1:30 on day 20: a line
 * with * as hour goes by real time, and every other one by the clock on the wall. */
static void half_an_hour_more_or_less_takes_no_time_from_a_line_of_each_hour(void **state)
{
    enum { DAY_S = 86400, HOUR_S = 3600, HALF = 1800 };
    struct zone_change changes[] = {{10 * DAY_S + HOUR_S, HOUR_S + HALF},
                                    {20 * DAY_S + HALF, HOUR_S}};
    const struct zone zone = {.changes = changes, .n_changes = 2, .first = HOUR_S};
    static const struct {
        const char *line;
        int day;
        int want[4]; /* minutes of UTC, from 0:00 of the day on */
    } cases[] = {
        {"0 * * * *", 10, {0, 90, 150, 210}}, /* 1:00, 3:00, 4:00 */
        {"45 * * * *", 10, {45, 75, 135, 195}},
        {"0 * * * *", 20, {60, 120, 180, 240}}, /* 2:00 after the change */
        {"45 * * * *", 20, {15, 45, 105, 165}}, /* 1:45 twice */
        {"*/30 * * * *", 10, {0, 30, 60, 90}},
        {"*/30 * * * *", 20, {0, 30, 60, 90}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct schedule_rule rule = {.kind = SCHEDULE_CRON, .end_ms = MSEC_NEVER};
        struct cron_problem why;
        msec at = (msec)cases[i].day * DAY_S * 1000 - 1;
        assert_true(cron_parse(str_from(cases[i].line), &rule.cron, &why));
        for (int k = 0; k < 4; k++) {
            assert_true(schedule_next(&rule, &zone, at, &at));
            assert_int_equal((at / 1000 - (msec)cases[i].day * DAY_S) / 60, cases[i].want[k]);
        }
    }
}

static void of_two_days_that_are_given_one_is_enough_and_a_star_gives_none(void **state)
{
    (void)state;
    /* the 13th, or a Friday: November 27 is a Friday, December 13 a Sunday */
    expect_times("0 0 13 * 5", "2026-11-24", 4, "11-27T00:00 12-04T00:00 12-11T00:00 12-13T00:00 ");
    /* a star first: both must match, as in the cron of Unix */
    expect_times("0 0 */2 * 5", "2026-11-24", 2, "11-27T00:00 12-11T00:00 ");
    expect_times("0 0 13 * */2", "2026-11-24", 1, "12-13T00:00 "); /* a Sunday is even */
}

static void expect_error(const char *line, const char *text)
{
    struct cron_problem why;
    struct bt_error err;
    struct cron c;

    assert_false(cron_parse(str_from(line), &c, &why));
    assert_int_equal(cron_error(str_from(line), &why, &err), BT_INVALID);
    assert_string_equal(err.msg, text);
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
    (void)state;
    expect_error("60 * * * *",
                 "cron: field 1 (minute), at character 1: '60' does not fit: expected "
                 "0 to 59");
    expect_error("0 24 * * *", "cron: field 2 (hour), at character 3: '24' does not fit: expected "
                               "0 to 23");
    expect_error("0 0 0 * *", "cron: field 3 (day of the month), at character 5: '0' does not fit: "
                              "expected 1 to 31");
    expect_error("0 0 * 13 *", "cron: field 4 (month), at character 7: '13' does not fit: expected "
                               "1 to 12, or jan to dec");
    expect_error("0 0 * * 8", "cron: field 5 (day of the week), at character 9: '8' does not fit: "
                              "expected 0 to 7, or sun to sat");
    expect_error("0 0 * * 1-8", "cron: field 5 (day of the week), at character 11: '8' does not "
                                "fit: expected 0 to 7, or sun to sat");
    expect_error("0 17-9 * * *", "cron: field 2 (hour), at character 3: '17-9' ends before it "
                                 "begins: expected the smaller number first");
    expect_error("*/0 * * * *",
                 "cron: field 1 (minute), at character 3: '0' is no step: expected 1 "
                 "to 59 after the slash");
    expect_error("*/60 * * * *",
                 "cron: field 1 (minute), at character 3: '60' is no step: expected "
                 "1 to 59 after the slash");
    expect_error("5/15 * * * *", "cron: field 1 (minute), at character 1: '5/15' has a step but no "
                                 "range: expected */N, or FIRST-59/N");
    expect_error("1,,2 * * * *", "cron: field 1 (minute), at character 3: '' is empty: expected a "
                                 "number on both sides of a comma or dash");
    expect_error("0 0 L * *", "cron: field 3 (day of the month), at character 5: 'L' is not of "
                              "cron's five fields (? L W # are those of other programs): expected "
                              "a number, or *");
    expect_error("0 0 * * mon#1", "cron: field 5 (day of the week), at character 9: 'mon#1' is not "
                                  "of cron's five fields (? L W # are those of other programs): "
                                  "expected a number, or *");
    expect_error("0 3 * *", "cron: '0 3 * *' has 4 fields: expected five (minute, hour, day of the "
                            "month, month, day of the week), such as '0 3 * * *'");
    expect_error("0 0 3 * * *",
                 "cron: '0 0 3 * * *' has 6 fields: expected five (minute, hour, day "
                 "of the month, month, day of the week), such as '0 3 * * *'; "
                 "seconds are no field");
    expect_error("0 0 31 2,4,6 *",
                 "cron: '0 0 31 2,4,6 *' names a day that no year has: expected a "
                 "day that the month has");
    expect_error("@often", "cron: '@often' is not known: expected @yearly, @monthly, @weekly, "
                           "@daily or @hourly, or five fields");
    expect_error("**  * * *", "cron: '**  * * *' has 4 fields: expected five (minute, hour, day of "
                              "the month, month, day of the week), such as '0 3 * * *'");
    expect_error("** * * * *",
                 "cron: field 1 (minute), at character 1: '**' does not fit: expected "
                 "0 to 59");
}

static void what_cannot_be_read_is_named_from_its_first_letter_to_its_last(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"1, * * * *", "at character 3: '' is empty"},
        {",1 * * * *", "at character 1: '' is empty"},
        {"-5 * * * *", "at character 1: '' is empty"},
        {"5- * * * *", "at character 3: '' is empty"},
        {"/5 * * * *", "at character 1: '' is empty"},
        {"1,2/5,3 * * * *", "at character 3: '2/5' has a step but no range"},
        {"1-2-3 * * * *", "at character 1: '1-2-3' does not fit"},
        {"1-2-3,4 * * * *", "at character 1: '1-2-3' does not fit"},
        {"*x,4 * * * *", "at character 1: '*x' does not fit"},
        {"5x * * * *", "at character 1: '5x' does not fit"},
        {"1-9/2x,4 * * * *", "at character 5: '2x' is no step"},
        {"1-9/ * * * *", "at character 5: '' is no step"},
        {"1-9/x * * * *", "at character 5: 'x' is no step"},
        {"*/1000000000000000000000 * * * *", "at character 3: '1000000000000000000000' is no step"},
        {"4294967301 * * * *", "at character 1: '4294967301' does not fit"},
        {"18446744073709551621 * * * *", "at character 1: '18446744073709551621' does not fit"},
        {"9-8,5 * * * *", "at character 1: '9-8' ends before it begins"},
        {"0 0 0-5 * *", "field 3 (day of the month), at character 5: '0' does not fit"},
        {"0 0 1-32 * *", "field 3 (day of the month), at character 7: '32' does not fit"},
        {"0 0 * 0 *", "field 4 (month), at character 7: '0' does not fit"},
        {"0 0 * * 6-1", "field 5 (day of the week), at character 9: '6-1' ends before"},
        {"0 0 * * su", "at character 9: 'su' does not fit"},
        {"0 0 * * sunday", "at character 9: 'sunday' does not fit"},
        {"0 0 * mon *", "field 4 (month), at character 7: 'mon' does not fit"},
        {"0 0 * * jan", "field 5 (day of the week), at character 9: 'jan' does not fit"},
        {"jan * * * *", "field 1 (minute), at character 1: 'jan' does not fit"},
        {"0 0 * unj *", "at character 7: 'unj' does not fit"},
        {"0 0 ? * *", "'?' is not of cron's five fields"},
        {"0 0 5L * *", "'5L' is not of cron's five fields"},
        {"0 0 15W * *", "'15W' is not of cron's five fields"},
        {"0 0 W * *", "'W' is not of cron's five fields"},
        {"0 0 xL * *", "'xL' does not fit"},
        {"0 0 LW * *", "'LW' does not fit"},
        {"0 0 Lx * *", "'Lx' does not fit"},
        {"@reboot", "cron: @reboot is no time"},
        {" @REBOOT ", "cron: @reboot is no time"},
        {"@hour", "cron: '@hour' is not known"},
        {"@hourlyx", "cron: '@hourlyx' is not known"},
        {" @ \t", "cron: '@' is not known"},
        {"x", "cron: 'x' has 1 field: expected five"},
        {"", "cron: '' has 0 fields: expected five"},
        {"1 2 3 4 5 6 7", "has 7 fields: expected five (minute, hour, day of the month, month, "
                          "day of the week), such as '0 3 * * *'"},
        {"0 0 30 2 *", "cron: '0 0 30 2 *' names a day that no year has"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cron_problem why;
        struct bt_error err;
        struct cron c;
        assert_false(cron_parse(str_from(cases[i].line), &c, &why));
        assert_int_equal(cron_error(str_from(cases[i].line), &why, &err), BT_INVALID);
        if (strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", err.msg, cases[i].says);
        }
        assert_true((strstr(err.msg, "; seconds") != NULL) == (why.fields == 6));
    }
}

/* A field or macro is quoted with up to 40 bytes, a line with up to 80. */
static void what_is_wrong_is_quoted_with_its_first_bytes(void **state)
{
    static const char x[] =
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    static const struct {
        const char *before, *after;
        int most;
    } cases[] = {{"", " * * * *", 40}, {"@", "", 39}, {"", "", 80}, {"0 0 30 2 ", "", 71}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int more = 0; more < 2; more++) {
            const int n = cases[i].most + more;
            char line[200];
            char want[128];
            struct cron_problem why;
            struct bt_error err;
            struct cron c;
            (void)snprintf(line, sizeof line, "%s%.*s%s", cases[i].before, n, x, cases[i].after);
            if (i == 3) { /* a line that has no day at all: its blanks are of it */
                (void)snprintf(line, sizeof line, "0 0 30 2 *%*s", n - 1, "");
            }
            assert_false(cron_parse(str_from(line), &c, &why));
            assert_int_equal(cron_error(str_from(line), &why, &err), BT_INVALID);
            (void)snprintf(want, sizeof want, "'%.*s'", i == 0 || i == 1 ? 40 : 80, line);
            if (strstr(err.msg, want) == NULL) {
                fail_msg("\"%s\" does not say \"%s\"", err.msg, want);
            }
        }
    }
}

static void expect_stamp(const char *text, const char *want)
{
    char got[STAMP_MAX] = "";
    struct bt_error err;
    msec at = 0;

    if (stamp_read(str_from(text), &ZONE_UTC, &at, &err) == BT_OK) {
        stamp_write(&ZONE_UTC, at, got);
    }
    assert_string_equal(got, want);
}

static void times_are_read_with_and_without_an_offset(void **state)
{
    (void)state;
    expect_stamp("2026-11-30", "2026-11-30T00:00:00Z");
    expect_stamp("2026-11-30T03:00", "2026-11-30T03:00:00Z");
    expect_stamp("2026-11-30 03:00:59", "2026-11-30T03:00:59Z");
    expect_stamp("2026-11-30T03:00:59.25+01:00", "2026-11-30T02:00:59.250Z");
    expect_stamp("2026-11-30T03:00:00-0330", "2026-11-30T06:30:00Z");
    expect_stamp("2024-02-29T00:00Z", "2024-02-29T00:00:00Z");
    expect_stamp("2023-02-29", "");
    expect_stamp("2026-13-01", "");
    expect_stamp("2026-11-30T24:00", "");
    expect_stamp("2026-11-30T03", "");
    expect_stamp("2026-11-30T03:00x", "");
    expect_stamp("1969-12-31", "");
    expect_stamp("tomorrow", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_numbers_names_ranges_steps_and_lists),
        cmocka_unit_test(of_two_days_that_are_given_one_is_enough_and_a_star_gives_none),
        cmocka_unit_test(each_month_and_day_of_the_week_has_its_name),
        cmocka_unit_test(ranges_take_both_their_ends_and_every_field_its_least_and_most),
        cmocka_unit_test(the_next_minute_is_the_first_that_begins_after_the_time),
        cmocka_unit_test(the_longest_wait_is_forty_years),
        cmocka_unit_test(no_time_comes_after_the_year_9999),
        cmocka_unit_test(periods_and_fixed_times_have_their_next),
        cmocka_unit_test(half_an_hour_more_or_less_takes_no_time_from_a_line_of_each_hour),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(what_cannot_be_read_is_named_from_its_first_letter_to_its_last),
        cmocka_unit_test(what_is_wrong_is_quoted_with_its_first_bytes),
        cmocka_unit_test(times_are_read_with_and_without_an_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
