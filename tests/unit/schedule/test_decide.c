/* What a schedule does: the table of decide.h, at every time T - 1 and T. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/schedule/rules/decide.h"

enum { MINUTE = 60000, HOUR = 3600000 };

static const struct schedule_rule HOURLY = {
    .kind = SCHEDULE_EVERY, .every_ms = HOUR, .end_ms = MSEC_NEVER};

static struct schedule_case hourly(enum schedule_overlap overlap, msec cursor_h, msec now)
{
    return (struct schedule_case){.rule = &HOURLY,
                                  .zone = &ZONE_UTC,
                                  .overlap = overlap,
                                  .catch_up_ms = 6 * HOUR,
                                  .cursor = cursor_h * HOUR,
                                  .now = now};
}

/* "fire 3", "skip 1-4 (4) missed", "wait 180", "hold 240", "cancel 240", "end"; times in hours,
 * waits in minutes, "-" = not by the clock. What the verdict does not change is as it was. */
static void expect(const struct schedule_case *c, const char *want)
{
    static const char *const WHY[] = {"missed", "superseded", "overlap", "queue_full", "invalid"};
    static const char *const DO[] = {[SCHEDULE_WAIT] = "wait",
                                     [SCHEDULE_HOLD] = "hold",
                                     [SCHEDULE_CANCEL] = "cancel",
                                     [SCHEDULE_END] = "end"};
    struct schedule_verdict v;
    char got[96] = "";

    schedule_decide(c, &v);
    switch (v.what) {
    case SCHEDULE_FIRE:
        (void)snprintf(got, sizeof got, "%s %llu", v.backfill ? "backfill" : "fire",
                       (unsigned long long)(v.at / HOUR));
        assert_int_equal(v.at % HOUR, 0);
        assert_int_equal(v.back_cursor, v.backfill ? v.at : c->back_cursor);
        assert_int_equal(v.cursor, v.backfill ? c->cursor : v.at);
        assert_true(v.queued_from == c->queued_from || (v.queued_from == 0 && !v.backfill));
        break;
    case SCHEDULE_SKIP:
        (void)snprintf(got, sizeof got, "skip %llu-%llu (%u) %s", (unsigned long long)(v.at / HOUR),
                       (unsigned long long)(v.last / HOUR), v.count, WHY[v.why]);
        assert_int_equal(v.cursor, v.last);
        assert_int_equal(v.queued_from,
                         v.why == WHY_QUEUE_FULL && c->queued_from == 0 ? v.at : c->queued_from);
        assert_int_equal(v.back_cursor, c->back_cursor);
        assert_false(v.backfill);
        break;
    case SCHEDULE_WAIT:
    case SCHEDULE_HOLD:
    case SCHEDULE_CANCEL:
    case SCHEDULE_END:
    default:
        if (v.until == MSEC_NEVER) {
            (void)snprintf(got, sizeof got, v.what == SCHEDULE_END ? "%s" : "%s -", DO[v.what]);
        } else {
            (void)snprintf(got, sizeof got, "%s %llu", DO[v.what],
                           (unsigned long long)(v.until / MINUTE));
        }
        assert_int_equal(v.cursor, c->cursor);
        assert_true(v.what == SCHEDULE_HOLD || v.queued_from == c->queued_from);
        break;
    }
    assert_string_equal(got, want);
}

static void a_time_fires_at_its_millisecond_and_not_before(void **state)
{
    (void)state;
    for (int o = OVERLAP_SKIP; o <= OVERLAP_ALLOW; o++) {
        struct schedule_case c = hourly((enum schedule_overlap)o, 2, 3 * HOUR - 1);
        expect(&c, "wait 180");
        c.now++;
        expect(&c, "fire 3");
        c.cursor = 3 * HOUR; /* decided: the same moment fires nothing more */
        expect(&c, "wait 240");
        c.now = 3 * HOUR - MINUTE; /* the clock was set back over it */
        expect(&c, "wait 240");
    }
}

static void times_that_are_too_late_are_missed_and_the_others_as_the_overlap_says(void **state)
{
    struct schedule_case c = hourly(OVERLAP_SKIP, 2, 12 * HOUR);

    (void)state;
    expect(&c, "skip 3-5 (3) missed"); /* at 6 it is late by just the window */
    c.cursor = 5 * HOUR;
    expect(&c, "skip 6-11 (6) superseded");
    c.cursor = 11 * HOUR;
    expect(&c, "fire 12");
    c = hourly(OVERLAP_ALLOW, 2, 12 * HOUR - 1);
    expect(&c, "skip 3-5 (3) missed");
    c.cursor = 5 * HOUR;
    expect(&c, "fire 6");
    c.cursor = 6 * HOUR;
    c.open = true;
    expect(&c, "fire 7");
    c = hourly(OVERLAP_QUEUE, 5, 12 * HOUR);
    expect(&c, "fire 6");
    c = hourly(OVERLAP_SKIP, 5, 12 * HOUR + 1);
    expect(&c, "skip 6-6 (1) missed"); /* a millisecond over it */
}

static void a_plan_that_is_open_counts_as_the_overlap_says(void **state)
{
    struct schedule_case c = hourly(OVERLAP_SKIP, 2, 3 * HOUR);
    struct schedule_verdict v;

    (void)state;
    c.open = true;
    expect(&c, "skip 3-3 (1) overlap");
    c.overlap = OVERLAP_CANCEL;
    expect(&c, "cancel 240");
    c.now = 4 * HOUR; /* it has still not ended */
    expect(&c, "skip 3-3 (1) superseded");
    c.overlap = OVERLAP_QUEUE;
    expect(&c, "hold 300");
    schedule_decide(&c, &v);
    assert_int_equal(v.queued_from, 3 * HOUR);
    c.queued_from = v.queued_from;
    c.now = 90 * HOUR; /* what is in the queue is not missed */
    expect(&c, "hold 5460");
    c.open = false;
    expect(&c, "fire 3");
    c.cursor = 88 * HOUR;
    schedule_decide(&c, &v);
    assert_int_equal(v.queued_from, 3 * HOUR); /* 90 is in the queue, too */
    c.cursor = 89 * HOUR;
    expect(&c, "fire 90");
    schedule_decide(&c, &v);
    assert_int_equal(v.queued_from, 0); /* the last of the queue */
}

static void the_queue_has_a_hundred_times(void **state)
{
    struct schedule_case c = hourly(OVERLAP_QUEUE, 0, 100 * HOUR);

    (void)state;
    c.open = true;
    c.queued_from = HOUR;
    expect(&c, "hold 6060");
    c.now = 101 * HOUR - 1;
    expect(&c, "hold 6060");
    c.now = 101 * HOUR;
    expect(&c, "skip 1-1 (1) queue_full");
    c.now = 103 * HOUR;
    expect(&c, "skip 1-3 (3) queue_full");
}

static void a_backfill_goes_on_when_nothing_is_due(void **state)
{
    struct schedule_case c = hourly(OVERLAP_QUEUE, 50, 50 * HOUR);
    struct schedule_verdict v;

    (void)state;
    c.back_cursor = 3 * HOUR - 1;
    c.back_to = 5 * HOUR;
    expect(&c, "backfill 3");
    c.back_cursor = 3 * HOUR;
    c.open = true;
    expect(&c, "wait 3060");
    c.overlap = OVERLAP_ALLOW;
    expect(&c, "backfill 4");
    c.now = 51 * HOUR;
    expect(&c, "fire 51"); /* what is due comes first */
    c.now = 50 * HOUR;
    c.back_cursor = 5 * HOUR;
    expect(&c, "wait 3060");
    c.back_cursor = 4 * HOUR;
    c.back_to = 5 * HOUR - 1;
    schedule_decide(&c, &v);
    assert_int_equal(v.back_cursor, c.back_to); /* done */
}

static void nothing_comes_after_the_end(void **state)
{
    struct schedule_rule rule = HOURLY;
    struct schedule_case c = hourly(OVERLAP_SKIP, 2, 3 * HOUR);

    (void)state;
    c.rule = &rule;
    rule.end_ms = 3 * HOUR;
    expect(&c, "fire 3"); /* the end itself is a time */
    rule.end_ms = 3 * HOUR - 1;
    expect(&c, "end");
    rule = (struct schedule_rule){.kind = SCHEDULE_AT, .at_ms = 7 * HOUR, .end_ms = MSEC_NEVER};
    expect(&c, "wait 420");
    c.now = 7 * HOUR;
    expect(&c, "fire 7");
    c.cursor = 7 * HOUR;
    expect(&c, "end");
}

/* The values of the authors of splitmix64, with the seed 1234567. */
static void what_is_held_or_cancelled_is_looked_at_with_the_next_time_if_there_is_one(void **state)
{
    struct schedule_rule rule = HOURLY;
    struct schedule_case c = hourly(OVERLAP_CANCEL, 2, 3 * HOUR);

    (void)state;
    c.rule = &rule;
    c.open = true;
    c.seed = 42;
    c.jitter_ms = 30 * MINUTE;
    c.now = 3 * HOUR + schedule_jitter(42, 3 * HOUR, c.jitter_ms);
    for (int overlap = OVERLAP_QUEUE; overlap <= OVERLAP_CANCEL; overlap++) {
        const char *what = overlap == OVERLAP_QUEUE ? "hold" : "cancel";
        char want[32];
        c.overlap = (enum schedule_overlap)overlap;
        rule.end_ms = 4 * HOUR;
        (void)snprintf(
            want, sizeof want, "%s %llu", what,
            (unsigned long long)((4 * HOUR + schedule_jitter(42, 4 * HOUR, c.jitter_ms)) / MINUTE));
        expect(&c, want);
        rule.end_ms = 4 * HOUR - 1;
        (void)snprintf(want, sizeof want, "%s -", what);
        expect(&c, want);
    }
}

/* Of times that are due the next one may still wait for its jitter: it is not due, and neither
 * missed nor in the way of this one. */
static void a_time_whose_jitter_has_not_passed_does_not_count(void **state)
{
    static const enum schedule_overlap all[] = {OVERLAP_SKIP, OVERLAP_CANCEL};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct schedule_case c = hourly(all[i], 2, 0);
        msec second;
        c.seed = 42;
        c.jitter_ms = HOUR - 1;
        second = 4 * HOUR + schedule_jitter(42, 4 * HOUR, c.jitter_ms);
        c.now = second - 1;
        expect(&c, "fire 3");
        c.now = second;
        expect(&c, "skip 3-3 (1) superseded");
        c.catch_up_ms = 0;
        c.now = second - 1;
        expect(&c, "skip 3-3 (1) missed");
        c.now = second; /* late by nothing: just in time */
        expect(&c, "skip 3-3 (1) missed");
        c.now = second + 1;
        expect(&c, "skip 3-4 (2) missed");
    }
    struct schedule_case c = hourly(OVERLAP_QUEUE, 2, 0);
    struct schedule_verdict v;
    c.seed = 42;
    c.jitter_ms = HOUR - 1;
    c.queued_from = HOUR;
    c.now = 4 * HOUR + schedule_jitter(42, 4 * HOUR, c.jitter_ms) - 1;
    schedule_decide(&c, &v);
    assert_int_equal(v.what, SCHEDULE_FIRE);
    assert_int_equal(v.queued_from, 0); /* 4 is not in the queue yet */
    c.now++;
    schedule_decide(&c, &v);
    assert_int_equal(v.queued_from, HOUR);
}

/* Times that have not come are not missed, however short the window is. */
static void only_what_is_due_is_missed(void **state)
{
    struct schedule_case c = hourly(OVERLAP_SKIP, 2, 12 * HOUR + 30 * MINUTE);

    (void)state;
    c.catch_up_ms = 10 * MINUTE;
    expect(&c, "skip 3-12 (10) missed");
    c.cursor = 12 * HOUR;
    expect(&c, "wait 780");
}

static void the_times_before_the_queue_can_be_missed(void **state)
{
    struct schedule_case c = hourly(OVERLAP_QUEUE, 2, 20 * HOUR);

    (void)state;
    c.queued_from = 5 * HOUR;
    expect(&c, "skip 3-4 (2) missed");
    c.cursor = 4 * HOUR;
    expect(&c, "fire 5");
}

static void one_verdict_counts_to_its_limit(void **state)
{
    const msec many = SCHEDULE_COUNT_MAX;
    struct schedule_case c = hourly(OVERLAP_SKIP, 0, (many + 7) * HOUR);

    (void)state;
    c.catch_up_ms = HOUR;
    expect(&c, "skip 1-10000 (10000) missed");
    c.now = (many + 1) * HOUR;
    c.catch_up_ms = 0;
    expect(&c, "skip 1-10000 (10000) missed");
    c.catch_up_ms = 2 * many * HOUR;
    expect(&c, "skip 1-10000 (10000) superseded");
    c.now = many * HOUR;
    expect(&c, "skip 1-9999 (9999) superseded");
    c.now = (many + 1) * HOUR;
    c.overlap = OVERLAP_QUEUE;
    c.open = true;
    expect(&c, "skip 1-9901 (9901) queue_full");
    c.now = 2 * many * HOUR;
    expect(&c, "skip 1-9901 (9901) queue_full");
}

static void a_range_that_is_left_over_ends_without_a_time(void **state)
{
    struct schedule_rule rule = HOURLY;
    struct schedule_case c = hourly(OVERLAP_QUEUE, 50, 50 * HOUR);
    struct schedule_verdict v;

    (void)state;
    c.rule = &rule;
    rule.end_ms = 50 * HOUR;
    c.back_cursor = 4 * HOUR;
    c.back_to = 5 * HOUR;
    c.open = true;
    expect(&c, "hold -"); /* no time to come, but the range is not over */
    c.open = false;
    expect(&c, "backfill 5");
    c.back_cursor = 5 * HOUR;
    expect(&c, "end");
    rule.end_ms = 4 * HOUR; /* the range goes on behind the end */
    c.back_cursor = 4 * HOUR;
    c.back_to = 6 * HOUR;
    schedule_decide(&c, &v);
    assert_int_equal(v.what, SCHEDULE_END);
    assert_int_equal(v.back_cursor, 6 * HOUR);
}

static void jitter_is_what_every_version_makes_of_it(void **state)
{
    (void)state;
    assert_true(schedule_jitter(1234567, 1, UINT64_MAX - 1) == UINT64_C(6457827717110365317));
    assert_true(schedule_jitter(1234567, 2, UINT64_MAX - 1) == UINT64_C(3203168211198807973));
    assert_true(schedule_jitter(1234567, 3, UINT64_MAX - 1) == UINT64_C(9817491932198370423));
}

static void jitter_is_the_same_each_time_and_within_its_limit(void **state)
{
    struct schedule_case c = hourly(OVERLAP_SKIP, 2, 3 * HOUR);
    struct schedule_verdict v;
    msec least = MSEC_NEVER;
    msec most = 0;

    (void)state;
    for (uint64_t seed = 1; seed < 5000; seed++) {
        const msec j = schedule_jitter(seed, 3 * HOUR, 9);
        assert_int_equal(j, schedule_jitter(seed, 3 * HOUR, 9));
        least = j < least ? j : least;
        most = j > most ? j : most;
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, 9);
    assert_int_equal(schedule_jitter(77, 3 * HOUR, 0), 0);
    c.seed = 42;
    c.jitter_ms = 30 * MINUTE;
    schedule_decide(&c, &v);
    assert_int_equal(v.what, SCHEDULE_WAIT);
    assert_int_equal(v.until, 3 * HOUR + schedule_jitter(42, 3 * HOUR, 30 * MINUTE));
    c.now = v.until - 1;
    schedule_decide(&c, &v);
    assert_int_equal(v.what, SCHEDULE_WAIT);
    c.now++;
    expect(&c, "fire 3");
}

/* The clock of the machine was wrong by twenty years: one verdict after the other, each bounded. */
static void years_of_missed_times_are_skipped_in_bounded_parts(void **state)
{
    struct schedule_case c = hourly(OVERLAP_SKIP, 0, (msec)20 * 365 * 24 * HOUR);
    struct schedule_verdict v;
    uint64_t skipped = 0;
    int parts = 0;

    (void)state;
    for (;;) {
        schedule_decide(&c, &v);
        if (v.what != SCHEDULE_SKIP) {
            break;
        }
        assert_true(v.count <= SCHEDULE_COUNT_MAX);
        skipped += v.count;
        c.cursor = v.cursor;
        parts++;
    }
    assert_int_equal(v.what, SCHEDULE_FIRE);
    assert_int_equal(skipped, (uint64_t)20 * 365 * 24 - 1);
    assert_true(parts < 25);
}

/* A clock that is put forward from 2:00 to 3:00 on day 10, and back from 3:00 to 2:00 on day 20. */
static void a_time_in_the_gap_and_one_in_the_doubled_hour_fire_once(void **state)
{
    enum { DAY_S = 86400, HOUR_S = 3600 };
    struct zone_change changes[] = {{10 * DAY_S + HOUR_S, 2 * HOUR_S},
                                    {20 * DAY_S + HOUR_S, HOUR_S}};
    const struct zone zone = {.changes = changes, .n_changes = 2, .first = HOUR_S};
    struct schedule_rule rule = {.kind = SCHEDULE_CRON, .end_ms = MSEC_NEVER};
    struct cron_problem why;
    msec at = 9 * (msec)DAY_S * 1000;

    (void)state;
    assert_true(cron_parse(STR_LIT("30 2 * * *"), &rule.cron, &why));
    for (int day = 9; day < 30; day++) {
        /* 2:30 of the clock; on day 10, when it shows no such time, the moment at which it jumps */
        const int64_t local = day * (int64_t)DAY_S + 2 * HOUR_S + HOUR_S / 2;
        const int64_t utc = day == 10               ? 10 * (int64_t)DAY_S + HOUR_S
                            : day > 10 && day <= 20 ? local - 2 * HOUR_S
                                                    : local - HOUR_S;
        assert_true(schedule_next(&rule, &zone, at, &at));
        assert_int_equal(at, (msec)utc * 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_fires_at_its_millisecond_and_not_before),
        cmocka_unit_test(times_that_are_too_late_are_missed_and_the_others_as_the_overlap_says),
        cmocka_unit_test(a_plan_that_is_open_counts_as_the_overlap_says),
        cmocka_unit_test(the_queue_has_a_hundred_times),
        cmocka_unit_test(a_backfill_goes_on_when_nothing_is_due),
        cmocka_unit_test(nothing_comes_after_the_end),
        cmocka_unit_test(what_is_held_or_cancelled_is_looked_at_with_the_next_time_if_there_is_one),
        cmocka_unit_test(a_time_whose_jitter_has_not_passed_does_not_count),
        cmocka_unit_test(only_what_is_due_is_missed),
        cmocka_unit_test(the_times_before_the_queue_can_be_missed),
        cmocka_unit_test(one_verdict_counts_to_its_limit),
        cmocka_unit_test(a_range_that_is_left_over_ends_without_a_time),
        cmocka_unit_test(jitter_is_what_every_version_makes_of_it),
        cmocka_unit_test(jitter_is_the_same_each_time_and_within_its_limit),
        cmocka_unit_test(a_time_in_the_gap_and_one_in_the_doubled_hour_fire_once),
        cmocka_unit_test(years_of_missed_times_are_skipped_in_bounded_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
