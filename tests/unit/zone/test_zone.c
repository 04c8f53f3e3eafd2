/* Files of time zones: rules that tzdata does not use, and bytes that are no such file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/zone/stamp.h"
#include "protocol/zone/zone.h"
#include "tests/support/random.h"

enum { MADE_MAX = 512, DAMAGED = 20000 };

static struct zone_change room[ZONE_CHANGES_MAX];

static size_t put_header(char *at, char version, uint32_t times, uint32_t types, uint32_t chars)
{
    memset(at, 0, 44);
    memcpy(at, "TZif", 4);
    at[4] = version;
    at[35] = (char)times;
    at[39] = (char)types;
    at[43] = (char)chars;
    return 44;
}

/* A file without changes, with this rule. */
static struct str make(const char *rule, char *bytes)
{
    size_t n = put_header(bytes, '2', 0, 1, 4);

    memset(bytes + n, 0, 10);
    n += 10;
    n += put_header(bytes + n, '2', 0, 1, 4);
    memset(bytes + n, 0, 10);
    n += 10;
    n += (size_t)snprintf(bytes + n, MADE_MAX - n, "\n%s\n", rule);
    return (struct str){bytes, n};
}

static int64_t utc_of(const char *text)
{
    struct bt_error err;
    msec at = 0;

    assert_int_equal(stamp_read(str_from(text), &ZONE_UTC, &at, &err), BT_OK);
    return (int64_t)(at / 1000);
}

static void expect_offset(const char *rule, const char *utc, int32_t want)
{
    char bytes[MADE_MAX];
    struct zone z;

    assert_true(zone_read(make(rule, bytes), room, ZONE_CHANGES_MAX, &z));
    assert_int_equal(zone_offset(&z, utc_of(utc)), want);
}

static void rules_of_all_forms_are_understood(void **state)
{
    (void)state;
    expect_offset("", "2026-07-01", 0);
    expect_offset("<+0545>-5:45", "2026-07-01", 20700);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T00:59:59", 3600);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T01:00:00", 7200);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T00:59:59", 7200);
    expect_offset("CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T01:00:00", 3600);
    /* Dublin's winter is the exception: a negative rule */
    expect_offset("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01", 3600);
    expect_offset("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-12-01", 0);
    /* hours before midnight and after the day */
    expect_offset("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59", -7200);
    expect_offset("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00", -3600);
    expect_offset("A0B,J60/0,J61/0", "2024-02-29T12:00", 0); /* J60 is March 1 in every year */
    expect_offset("A0B,J60/0,J61/0", "2024-03-01T12:00", 3600);
    expect_offset("A0B,59/0,60/0", "2024-02-29T12:00", 3600); /* day 59 of a leap year */
    expect_offset("A0B,59/0,60/0", "2023-03-01T12:00", 3600);
    expect_offset("A0B,0/0,J365/25", "2026-12-31T23:00", 3600); /* always summer */
}

static void rules_that_are_none_are_refused(void **state)
{
    static const char *const BAD[] = {"CET",
                                      "-1",
                                      "CET-1CEST,M3.5.0",
                                      "CET-1CEST,M13.5.0,M10.5.0",
                                      "CET-1CEST,M3.6.0,M10.5.0",
                                      "CET-1CEST,M0.5.0,M10.5.0",
                                      "CET-1CEST,J0,J5",
                                      "CET-1CEST,366,5",
                                      "CET-999",
                                      "CET-1CEST,M3.5.0,M10.5.0/3,",
                                      "<CET-1",
                                      "CET-1CEST,M3.5.7,J1",
                                      "CET-1:99",
                                      "CET-160"};
    char bytes[MADE_MAX];
    struct zone z;

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        if (zone_read(make(BAD[i], bytes), room, ZONE_CHANGES_MAX, &z)) {
            fail_msg("%s", BAD[i]);
        }
    }
}

/* Each rule for 400 days: the next change is the first second with another offset. */
static void the_next_change_is_the_first_second_with_another_offset(void **state)
{
    static const char *const rules[] = {"CET-1CEST,M3.5.0,M10.5.0/3", "IST-1GMT0,M10.5.0,M3.5.0/1",
                                        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "A0B,J60/0,J61/0",
                                        "NZST-12NZDT,M9.5.0,M4.1.0/3"};
    const int64_t from = utc_of("2023-12-20T00:00:00");
    char bytes[MADE_MAX];
    struct zone z;

    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        uint32_t changes = 0;
        assert_true(zone_read(make(rules[i], bytes), room, ZONE_CHANGES_MAX, &z));
        for (int64_t at = from; at < from + 400 * 86400; at += 1800) {
            int64_t next = 0;
            assert_true(zone_next_change(&z, at, &next));
            assert_true(next > at);
            assert_int_equal(zone_offset(&z, next - 1), zone_offset(&z, at));
            assert_int_not_equal(zone_offset(&z, next), zone_offset(&z, at));
            changes += next <= at + 1800;
        }
        assert_in_range(changes, 2, 3);
    }
    assert_true(zone_read(make("<+03>-3", bytes), room, ZONE_CHANGES_MAX, &z));
    assert_false(zone_next_change(&z, from, &(int64_t){0}));
}

static void offsets_go_to_26_hours_and_no_further(void **state)
{
    char bytes[MADE_MAX];
    struct zone z;

    (void)state;
    expect_offset("A-26", "2026-07-01", 26 * 3600);
    expect_offset("A26", "2026-07-01", -26 * 3600);
    assert_false(zone_read(make("A-26:00:01", bytes), room, ZONE_CHANGES_MAX, &z));
    assert_false(zone_read(make("A26:00:01", bytes), room, ZONE_CHANGES_MAX, &z));
}

static void each_header_of_a_file_begins_with_its_mark(void **state)
{
    char bytes[MADE_MAX];
    const struct str file = make("CET-1", bytes);
    struct zone z;

    (void)state;
    for (size_t at = 0; at < 4; at++) {
        for (size_t header = 0; header <= 54; header += 54) {
            bytes[header + at] ^= 1;
            assert_false(zone_read(file, room, ZONE_CHANGES_MAX, &z));
            bytes[header + at] ^= 1;
        }
    }
    assert_true(zone_read(file, room, ZONE_CHANGES_MAX, &z));
}

/* No byte of a file may lead out of it, or to a question without an end. */
static void damaged_files_are_refused_or_answer(void **state)
{
    static char sound[ZONE_BYTES_MAX];
    static char bytes[ZONE_BYTES_MAX];
    struct rng r = rng_seeded("test_zone");
    struct zone z;
    FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
    size_t len;

    (void)state;
    if (f == NULL) {
        skip();
    }
    len = fread(sound, 1, sizeof sound, f);
    (void)fclose(f);
    assert_true(zone_read((struct str){sound, len}, room, ZONE_CHANGES_MAX, &z));
    assert_false(zone_read((struct str){sound, len}, room, z.n_changes - 1, &z));
    for (size_t cut = 0; cut < len; cut++) {
        assert_false(zone_read((struct str){sound, cut}, room, ZONE_CHANGES_MAX, &z));
    }
    for (int i = 0; i < DAMAGED; i++) {
        int64_t next = 0;
        memcpy(bytes, sound, len);
        for (uint32_t n = 1 + rng_below(&r, 4); n > 0; n--) {
            bytes[rng_below(&r, (uint32_t)len)] = (char)rng_next(&r);
        }
        if (zone_read((struct str){bytes, len}, room, ZONE_CHANGES_MAX, &z)) {
            const int64_t at = (int64_t)(rng_next(&r) % 300000000000);
            (void)zone_of_local(&z, at);
            (void)zone_next_change(&z, at, &next);
            assert_true(zone_offset(&z, at) >= -26 * 3600 && zone_offset(&z, at) <= 26 * 3600);
        }
    }
}

static void a_stamp_has_milliseconds_and_no_more(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {{"1970-01-01T00:00:00.05Z", 50},    {"1970-01-01T00:00:00.009Z", 9},
                 {"1970-01-01T00:00:00.9Z", 900},    {"1970-01-01T00:00:00.1009Z", 100},
                 {"1970-01-01T00:00:00.000Z", 0},    {"1970-01-01T00:00:01.999999Z", 1999},
                 {"1970-01-01T23:59:59Z", 86399000}, {"1970-01-01T00:01Z", 60000}};
    static const char *const bad[] = {"1970-01-01T00:00:00.Z", "1970-01-01T24:00:00Z",
                                      "1970-01-01T00:60:00Z", "1970-01-01T00:00:60Z",
                                      "1970-01-01T00Z"};
    struct bt_error err;
    msec at = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(stamp_read(str_from(cases[i].text), &ZONE_UTC, &at, &err), BT_OK);
        assert_true(at == cases[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(stamp_read(str_from(bad[i]), &ZONE_UTC, &at, &err), BT_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stamp_has_milliseconds_and_no_more),
        cmocka_unit_test(rules_of_all_forms_are_understood),
        cmocka_unit_test(rules_that_are_none_are_refused),
        cmocka_unit_test(the_next_change_is_the_first_second_with_another_offset),
        cmocka_unit_test(offsets_go_to_26_hours_and_no_further),
        cmocka_unit_test(each_header_of_a_file_begins_with_its_mark),
        cmocka_unit_test(damaged_files_are_refused_or_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
