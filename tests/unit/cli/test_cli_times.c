/* Times of options, and the last of many lines. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/last_lines.h"
#include "tests/support/cmocka.h"

/* 2026-01-31T12:00:00Z */
static const msec NOON = 1769860800000;

static void a_moment_is_a_duration_ago_or_a_time(void **state)
{
    static const struct {
        const char *text;
        msec at;
    } good[] = {
        {"0", NOON},
        {"90", NOON - 90000},
        {"5m", NOON - 300000},
        {"2d", NOON - 2 * 86400000ULL},
        {"60d", NOON - 60 * 86400000ULL},
        {"99999d", 0},
        {"2026-01-31T11:00:00Z", NOON - 3600000},
        {"2026-01-31T11:00:00.500Z", NOON - 3600000},
        {"2026-01-31T13:00", NOON},
        {"2026-01-31 13:00:01", NOON + 1000},
        {"2026-01-31", NOON - 13 * 3600000ULL},
        {"12:30", NOON - 1800000},
        {"12:30:10", NOON - 1790000},
    };
    static const char *const bad[] = {"", "soon", "5x", "-5m", "2026-13-01", "12:30x", "25:00"};
    msec at;

    (void)state;
    (void)setenv("TZ", "UTC-1", 1); /* an hour ahead of UTC */
    tzset();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        at = 1;
        assert_true(cli_moment(good[i].text, "--since", NOON, &at));
        assert_int_equal(at, good[i].at);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(cli_moment(bad[i], "--since", NOON, &at));
    }
}

static void durations_are_in_units_that_people_read(void **state)
{
    static const struct {
        double ms;
        const char *text;
    } rows[] = {{0, "0 ms"},         {350, "350 ms"},          {1200, "1.2 s"},
                {119000, "119.0 s"}, {180000, "3 min"},        {7199000, "120 min"},
                {7200000, "2 h"},    {12000000, "3 h 20 min"}, {86400000, "24 h"},
                {172800000, "2 d"},  {788400000, "9 d 3 h"},   {1e15, "11574074 d 1 h"}};
    char text[24];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_format_ms(rows[i].ms, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

static void only_the_last_lines_are_kept(void **state)
{
    struct last_lines l;

    (void)state;
    for (size_t cap = 0; cap < 4; cap++) {
        assert_true(last_lines_init(&l, cap));
        for (int i = 0; i < 3; i++) {
            const char text[2] = {(char)('a' + i), 0};
            last_lines_add(&l, text);
        }
        assert_int_equal(l.n, cap < 3 ? cap : 3);
        if (cap > 0) {
            assert_string_equal(l.at[l.first], cap == 1 ? "c" : cap == 2 ? "b" : "a");
            assert_string_equal(l.at[(l.first + l.n - 1) % l.cap], "c");
        }
        last_lines_done(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_is_a_duration_ago_or_a_time),
        cmocka_unit_test(durations_are_in_units_that_people_read),
        cmocka_unit_test(only_the_last_lines_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
