/* Instants of the wire, read. */
#include "protocol/base/date.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

static msec read_ok(const char *text)
{
    msec at = 0;

    if (!date_read(str_from(text), &at)) {
        fail_msg("'%s' is a date", text);
    }
    return at;
}

static void refused(const char *text)
{
    msec at;

    if (date_read(str_from(text), &at)) {
        fail_msg("'%s' is no date", text);
    }
}

static void an_instant_is_the_milliseconds_since_1970(void **state)
{
    (void)state;
    assert_int_equal(read_ok("1970-01-01T00:00:00Z"), 0);
    assert_int_equal(read_ok("1970-01-01T00:00:01z"), 1000);
    assert_int_equal(read_ok("1970-01-01t00:01:00Z"), 60000);
    assert_int_equal(read_ok("1970-01-01T01:00:00Z"), 3600000);
    assert_int_equal(read_ok("1970-01-02T00:00:00Z"), 86400000);
    assert_int_equal(read_ok("1970-12-31T23:59:59Z"), 31535999000);
    assert_int_equal(read_ok("2026-11-24T18:00:00Z"), 1795543200000);
    assert_int_equal(read_ok("9999-12-31T23:59:59.999Z"), 253402300799999);
}

static void a_leap_year_has_a_29th_of_february(void **state)
{
    static const char *const leap[] = {"1972", "2000", "2024", "2400"};
    static const char *const common[] = {"1970", "1971", "2023", "2025", "2100"};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof leap / sizeof leap[0]; i++) {
        (void)snprintf(text, sizeof text, "%s-02-29T00:00:00Z", leap[i]);
        const msec day = read_ok(text);
        (void)snprintf(text, sizeof text, "%s-03-01T00:00:00Z", leap[i]);
        assert_int_equal(read_ok(text) - day, 86400000);
        (void)snprintf(text, sizeof text, "%s-02-28T00:00:00Z", leap[i]);
        assert_int_equal(day - read_ok(text), 86400000);
        (void)snprintf(text, sizeof text, "%s-02-30T00:00:00Z", leap[i]);
        refused(text);
    }
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        (void)snprintf(text, sizeof text, "%s-02-29T00:00:00Z", common[i]);
        refused(text);
        (void)snprintf(text, sizeof text, "%s-02-28T00:00:00Z", common[i]);
        const msec day = read_ok(text);
        (void)snprintf(text, sizeof text, "%s-03-01T00:00:00Z", common[i]);
        assert_int_equal(read_ok(text) - day, 86400000);
    }
}

static void each_month_has_its_last_day_and_no_further_one(void **state)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    msec day = 0;
    char text[32];

    (void)state;
    for (int month = 1; month <= 12; month++) {
        for (int d = 1; d <= days[month - 1]; d++) {
            (void)snprintf(text, sizeof text, "1970-%02d-%02dT00:00:00Z", month, d);
            assert_int_equal(read_ok(text), day);
            day += 86400000;
        }
        (void)snprintf(text, sizeof text, "1970-%02d-%02dT00:00:00Z", month, days[month - 1] + 1);
        refused(text);
    }
    refused("1970-00-10T00:00:00Z");
    refused("1970-13-10T00:00:00Z");
    refused("1970-01-00T00:00:00Z");
}

static void an_offset_is_taken_off(void **state)
{
    (void)state;
    assert_int_equal(read_ok("1970-01-01T01:00:00+01:00"), 0);
    assert_int_equal(read_ok("1970-01-01T00:00:00-01:30"), 5400000);
    assert_int_equal(read_ok("1970-01-02T00:00:00+23:59"), 60000);
    assert_int_equal(read_ok("1970-01-01T00:00:00-23:59"), 86340000);
    assert_int_equal(read_ok("1970-01-01T00:00:00+00:00"), 0);
    refused("1970-01-01T00:59:59+01:00"); /* before 1970 */
    refused("1970-01-02T00:00:00+24:00");
    refused("1970-01-02T00:00:00+00:60");
    refused("1970-01-02T00:00:00 00:00");
    refused("1970-01-02T00:00:00+0000");
    refused("1970-01-02T00:00:00");
}

static void digits_of_a_second_count_to_the_third(void **state)
{
    (void)state;
    assert_int_equal(read_ok("1970-01-01T00:00:00.5Z"), 500);
    assert_int_equal(read_ok("1970-01-01T00:00:00.25Z"), 250);
    assert_int_equal(read_ok("1970-01-01T00:00:00.123Z"), 123);
    assert_int_equal(read_ok("1970-01-01T00:00:00.9999999999Z"), 999);
    assert_int_equal(read_ok("1970-01-01T00:00:00.001+00:00"), 1);
    refused("1970-01-01T00:00:00.Z");
    refused("1970-01-01T00:00:00,5Z");
    refused("1970-01-01T00:00:00.5");
}

static void hours_minutes_and_seconds_have_an_end(void **state)
{
    (void)state;
    assert_int_equal(read_ok("1970-01-01T23:59:60Z"), 86400000); /* a leap second */
    refused("1970-01-01T24:00:00Z");
    refused("1970-01-01T00:60:00Z");
    refused("1970-01-01T00:00:61Z");
    refused("1969-12-31T23:59:59Z");
    refused("1969-12-31T23:59:59-01:00");
}

/* Each prefix lies at the end of memory. */
static void nothing_behind_a_text_is_read(void **state)
{
    static const char good[] = "2026-11-24T18:00:00.250+01:00";
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    msec ret;

    (void)state;
    assert_ptr_not_equal(at, MAP_FAILED);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    for (size_t n = 0; n < sizeof good; n++) {
        memcpy(at + page - n, good, n);
        assert_int_equal(date_read((struct str){at + page - n, n}, &ret), n == sizeof good - 1);
    }
    assert_int_equal(munmap(at, 2 * page), 0);
}

static void each_character_has_its_place(void **state)
{
    static const char good[] = "2026-11-24T18:00:00Z";
    char text[sizeof good + 1];

    (void)state;
    for (size_t i = 0; i < sizeof good - 1; i++) {
        memcpy(text, good, sizeof good);
        text[i] = '/'; /* the character before '0' */
        refused(text);
        text[i] = ':' == good[i] ? ';' : ':'; /* the one after '9' */
        refused(text);
        text[i] = 0;
        refused(text); /* it ends early */
    }
    (void)snprintf(text, sizeof text, "%sx", good);
    refused(text);
    refused("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instant_is_the_milliseconds_since_1970),
        cmocka_unit_test(a_leap_year_has_a_29th_of_february),
        cmocka_unit_test(each_month_has_its_last_day_and_no_further_one),
        cmocka_unit_test(an_offset_is_taken_off),
        cmocka_unit_test(digits_of_a_second_count_to_the_third),
        cmocka_unit_test(hours_minutes_and_seconds_have_an_end),
        cmocka_unit_test(nothing_behind_a_text_is_read),
        cmocka_unit_test(each_character_has_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
