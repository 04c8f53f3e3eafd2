#include "protocol/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static void says(msec wall, const char *want)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_iso(wall, text);
    assert_string_equal(text, want);
}

static void an_iso_time_has_milliseconds_and_is_in_utc(void **state)
{
    (void)state;
    says(0, "1970-01-01T00:00:00.000Z");
    says(1795233180123u, "2026-11-21T03:53:00.123Z");
    says(951782399999u, "2000-02-28T23:59:59.999Z");
    says(951782400000u, "2000-02-29T00:00:00.000Z");
    says(4107542400000u, "2100-03-01T00:00:00.000Z");
    says(253402300799999u, "9999-12-31T23:59:59.999Z");
}

/* 200 years, day by day, against the C library. */
static void every_day_of_the_calendar_is_the_one_of_gmtime(void **state)
{
    char want[32];
    struct tm tm;

    (void)state;
    for (int64_t day = 0; day < 200 * 365; day++) {
        const time_t s = (time_t)(day * 86400 + day % 86400);
        assert_non_null(gmtime_r(&s, &tm));
        (void)strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        says((msec)s * 1000u + 7u, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_iso_time_has_milliseconds_and_is_in_utc),
        cmocka_unit_test(every_day_of_the_calendar_is_the_one_of_gmtime)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
