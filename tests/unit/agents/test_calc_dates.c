/* Calendar rules; checks every day of 800 years against a second way of counting. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "agents/calc/dates.h"
#include "agents/calc/durations.h"
#include "agents/calc/moments.h"
#include "protocol/zone/zones.h"

enum { NOW_MS = 250 };

static const msec now = (msec)1795233180 * 1000 + NOW_MS; /* 2026-11-21T03:53:00.250Z */

static struct moment moment(const char *text, const struct zone *zone)
{
    struct moment m = {0};
    struct bt_error err;

    if (moment_read(str_from(text), zone, now, &m, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return m;
}

static struct date parse(const char *text)
{
    const struct moment m = moment(text, &ZONE_UTC);

    return (struct date){.seconds = m.seconds, .has_time = m.has_time};
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
                                        "99999999",
                                        "-99999999",
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
                                        "2026-11-21 03:53+99:00",
                                        "Sun, 21 Nov 2026 03:53:00 GMT",
                                        "Sat, 31 Nov 2026",
                                        "21 Nov 26",
                                        "21 Nov 2026 03:53:00 CET",
                                        "21 Nov 2026 03:53 +0560",
                                        "21 Nov 2026 03:53 +2400",
                                        "21 Nov 2026 03:53 +01000",
                                        "21 Nov 2026 03:53 +010",
                                        "21 Nov 2026 03:53 0100",
                                        "21 Nov 2026 03:60",
                                        "0 Nov 2026",
                                        "-",
                                        "1e9",
                                        "253402300800000",
                                        "-62135596801",
                                        "1234567890123456",
                                        "Now",
                                        "21/11/2026",
                                        "11/12/2026 10:00 am"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct moment m;
        if (moment_read(str_from(wrong[i]), &ZONE_UTC, now, &m, NULL) == BT_OK) {
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

static void moments_have_many_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
        uint32_t millis;
    } rows[] = {{"Sat, 21 Nov 2026 03:53:00 GMT", 1795233180, 0},
                {"21 Nov 2026 04:53 +0100", 1795233180, 0},
                {"21 Nov 2026 09:23 +0530", 1795233180, 0},
                {"20 Nov 2026 23:08 -0445", 1795233180, 0},
                {"1 Jan 1970", 0, 0},
                {"1795233180", 1795233180, 0},
                {"99999999999", 99999999999, 0},
                {"100000000000", 100000000, 0},
                {"1795233180250", 1795233180, 250},
                {"-100000000", -100000000, 0},
                {"100000000", 100000000, 0},
                {"-100000000001", -100000001, 999},
                {"-62135596800", -62135596800, 0},
                {"253402300799999", 253402300799, 999},
                {"2026-11-21T03:53:00.25Z", 1795233180, 250},
                {"now", 1795233180, NOW_MS},
                {"today", 1795219200, 0},
                {"tomorrow", 1795219200 + 86400, 0},
                {" yesterday ", 1795219200 - 86400, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct moment m = moment(rows[i].text, &ZONE_UTC);
        if (m.seconds != rows[i].seconds || m.millis != rows[i].millis) {
            fail_msg("%s: %lld.%u", rows[i].text, (long long)m.seconds, m.millis);
        }
    }
}

static void a_date_alone_has_no_time(void **state)
{
    static const struct {
        const char *text;
        bool has_time;
    } rows[] = {{"now", true},          {"today", false},
                {"tomorrow", false},    {"yesterday", false},
                {"2026-11-21", false},  {"2026-11-21T00:00", true},
                {"1795233180", true},   {"1795233180250", true},
                {"21 Nov 2026", false}, {"21 Nov 2026 00:00", true}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (moment(rows[i].text, &ZONE_UTC).has_time != rows[i].has_time) {
            fail_msg("%s", rows[i].text);
        }
    }
    assert_true(moment_of_local(&ZONE_UTC, 0).has_time);
}

static void expect_local(const struct zone *zone, const char *text, const char *local,
                         const char *utc, bool skipped, bool repeated)
{
    const struct moment m = moment(text, zone);
    char got[MOMENT_TEXT];

    moment_format_local(&m, zone, got);
    assert_string_equal(got, local);
    moment_format_utc(&m, got);
    assert_string_equal(got, utc);
    assert_int_equal(m.skipped, skipped);
    assert_int_equal(m.repeated, repeated);
}

/* The hours of a zone that are not there, or there twice; a zone of half hours; one of 1890. */
static void the_clock_of_a_zone_counts(void **state)
{
    struct zones *zones;
    const struct zone *berlin;
    uint16_t id;

    (void)state;
    assert_int_equal(zones_new(&zones, NULL), BT_OK);
    assert_int_equal(zones_find(zones, STR_LIT("Europe/Berlin"), &id, NULL), BT_OK);
    berlin = zones_at(zones, id);
    expect_local(berlin, "2026-07-01 12:00", "2026-07-01T12:00:00+02:00",
                 "2026-07-01T10:00:00.000Z", false, false);
    expect_local(berlin, "2026-03-29T01:59:59", "2026-03-29T01:59:59+01:00",
                 "2026-03-29T00:59:59.000Z", false, false);
    expect_local(berlin, "2026-03-29T02:00", "2026-03-29T03:00:00+02:00",
                 "2026-03-29T01:00:00.000Z", true, false);
    expect_local(berlin, "2026-03-29T02:59", "2026-03-29T03:00:00+02:00",
                 "2026-03-29T01:00:00.000Z", true, false);
    expect_local(berlin, "2026-10-25T01:59:59", "2026-10-25T01:59:59+02:00",
                 "2026-10-24T23:59:59.000Z", false, false);
    expect_local(berlin, "2026-10-25T02:00", "2026-10-25T02:00:00+02:00",
                 "2026-10-25T00:00:00.000Z", false, true);
    expect_local(berlin, "2026-10-25T02:59:59", "2026-10-25T02:59:59+02:00",
                 "2026-10-25T00:59:59.000Z", false, true);
    expect_local(berlin, "2026-10-25T03:00", "2026-10-25T03:00:00+01:00",
                 "2026-10-25T02:00:00.000Z", false, false);
    expect_local(berlin, "2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+01:00",
                 "2026-10-25T01:30:00.000Z", false, false);
    expect_local(berlin, "1890-01-01", "1890-01-01T00:00:00+00:53:28", "1889-12-31T23:06:32.000Z",
                 false, false);
    assert_int_equal(zones_find(zones, STR_LIT("Asia/Kolkata"), &id, NULL), BT_OK);
    expect_local(zones_at(zones, id), "today", "2026-11-21T00:00:00+05:30",
                 "2026-11-20T18:30:00.000Z", false, false);
    zones_free(zones);
}

static void durations_have_many_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t months, days, millis;
    } rows[] = {{"PT1H30M", 0, 0, 5400000},
                {"P1Y2M3DT4H5M6.5S", 14, 3, 14706500},
                {"P2W", 0, 14, 0},
                {"-PT30M", 0, 0, -1800000},
                {"PT0S", 0, 0, 0},
                {"PT1,5H", 0, 0, 5400000},
                {"P0.5D", 0, 0, 43200000},
                {"1h 30m", 0, 0, 5400000},
                {"1h30m5s", 0, 0, 5405000},
                {"90 minutes", 0, 0, 5400000},
                {"2 days, 3 hours and 5 s", 0, 2, 10805000},
                {"250 ms", 0, 0, 250},
                {"1.5 hours", 0, 0, 5400000},
                {"1 month", 1, 0, 0},
                {"1y 6mo", 18, 0, 0},
                {"1:30", 0, 0, 5400000},
                {"1:30:05.25", 0, 0, 5405250},
                {"100:00:00", 0, 0, 360000000},
                {"9999y", 119988, 0, 0}};
    static const char *const wrong[] = {"",
                                        "P",
                                        "PT",
                                        "P1DT",
                                        "1",
                                        "1 fortnight",
                                        "1.5 months",
                                        "P0.5Y",
                                        "PT1S1M",
                                        "P1D1D",
                                        "PT1.5H3M",
                                        "1:60",
                                        "1:30:60",
                                        "1:30:00:00",
                                        "1h 30",
                                        "h",
                                        "10000y",
                                        "PT1.1234S",
                                        "--PT1S",
                                        "1:1.5",
                                        "PT-1S",
                                        "P1H",
                                        "P1M2W1Y",
                                        "1e3 s",
                                        "1..5 s",
                                        "5 S",
                                        "999999999999999 w",
                                        "PT999999999999999H"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct duration d;
        struct bt_error err;
        if (duration_read(str_from(rows[i].text), &d, &err) != BT_OK) {
            fail_msg("%s", err.msg);
        }
        if (d.months != rows[i].months || d.days != rows[i].days || d.millis != rows[i].millis) {
            fail_msg("%s: %lld %lld %lld", rows[i].text, (long long)d.months, (long long)d.days,
                     (long long)d.millis);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct duration d;
        if (duration_read(str_from(wrong[i]), &d, NULL) == BT_OK) {
            fail_msg("'%s' was taken", wrong[i]);
        }
    }
}

static void durations_are_written_in_two_ways(void **state)
{
    static const struct {
        int64_t millis;
        const char *iso, *words;
    } rows[] = {{0, "PT0S", "0 seconds"},
                {1, "PT0.001S", "0.001 seconds"},
                {1000, "PT1S", "1 second"},
                {5400000, "PT1H30M", "1 hour 30 minutes"},
                {86400000, "P1D", "1 day"},
                {93784500, "P1DT2H3M4.5S", "1 day 2 hours 3 minutes 4.5 seconds"},
                {-300000, "-PT5M", "minus 5 minutes"},
                {(int64_t)9999 * 366 * 86400000, "P3659634D", "3659634 days"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[DURATION_TEXT];
        struct duration d;
        int64_t back;
        duration_format_iso(rows[i].millis, got);
        assert_string_equal(got, rows[i].iso);
        assert_int_equal(duration_read(str_from(got), &d, NULL), BT_OK);
        assert_true(duration_millis(&d, &back) && back == rows[i].millis);
        duration_format_words(rows[i].millis, got);
        assert_string_equal(got, rows[i].words);
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
        cmocka_unit_test(moments_have_many_forms),
        cmocka_unit_test(the_clock_of_a_zone_counts),
        cmocka_unit_test(durations_have_many_forms),
        cmocka_unit_test(durations_are_written_in_two_ways),
        cmocka_unit_test(a_date_alone_has_no_time),
        cmocka_unit_test(every_day_of_800_years_is_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
