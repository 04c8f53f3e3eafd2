/* Lines of cron: what they mean, and what is wrong with others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(times_are_read_with_and_without_an_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
