/* Whether and when to retry; when the breaker opens. */
#include "tests/support/cmocka.h"

#include "agents/llm/model/breaker.h"
#include "agents/llm/model/retry.h"

enum { HOUR = RETRY_AFTER_MAX_MS };

static void retry_after_is_read_in_every_form_and_capped(void **state)
{
    static const struct {
        const char *header;
        msec expected;
    } rows[] = {
        {"3", 3000},
        {"0", 0},
        {"2.5", 2500},
        {"0.0005", 0},
        {"1000000000", HOUR},
        {"99999999999999999999999999", HOUR},
        {"-1", MSEC_NEVER},
        {"", MSEC_NEVER},
        {"soon", MSEC_NEVER},
        {"3 seconds", MSEC_NEVER},
        {"1e9", MSEC_NEVER},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0}, /* past */
        {"Sat, 21 Nov 2026 08:00:07 GMT", 7000},
        {"Fri, 31 Dec 9999 23:59:59 GMT", HOUR},
        {"Sat, 21 Nox 2026 08:00:07 GMT", MSEC_NEVER},
        {"Sat, 21 Nov 2026 25:00:07 GMT", MSEC_NEVER},
        {"Sat, 21-Nov-26 08:00:07 GMT", MSEC_NEVER},
        {"Sat, 21 Nov 2026 08:00:07 CET", MSEC_NEVER},
    };
    const msec now = 1795248000000u; /* 2026-11-21T08:00:00Z */

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        msec got = retry_after_read(str_from(rows[i].header), now);
        if (got != rows[i].expected) {
            fail_msg("'%s': %llu", rows[i].header, (unsigned long long)got);
        }
    }
    assert_int_equal(retry_after_ms_read(STR_LIT("1500")), 1500);
    assert_int_equal(retry_after_ms_read(STR_LIT("1500.7")), 1500);
    assert_true(retry_after_ms_read(STR_LIT("x")) == MSEC_NEVER);
}

static struct retry_case usual(long status)
{
    return (struct retry_case){.status = status,
                               .after = MSEC_NEVER,
                               .should = -1,
                               .attempt = 1,
                               .attempts = 3,
                               .now = 1000,
                               .deadline = 100000,
                               .base_ms = 500,
                               .max_wait_ms = 20000,
                               .random_bits = 123456789};
}

static void the_status_decides_unless_the_server_says(void **state)
{
    static const long again[] = {0, 408, 409, 429, 500, 502, 503, 529, 599};
    static const long sleep_cond[] = {200, 302, 400, 401, 403, 404, 413, 422, 600};

    (void)state;
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        struct retry_case c = usual(again[i]);
        assert_true(retry_decide(&c).again);
        c.should = 0;
        assert_false(retry_decide(&c).again);
    }
    for (size_t i = 0; i < sizeof sleep_cond / sizeof sleep_cond[0]; i++) {
        struct retry_case c = usual(sleep_cond[i]);
        assert_false(retry_decide(&c).again);
        c.should = 1;
        assert_true(retry_decide(&c).again);
    }
}

static void waits_are_within_attempts_cap_and_deadline(void **state)
{
    struct retry_case c = usual(503);

    (void)state;
    c.attempt = 3;
    assert_false(retry_decide(&c).again);
    c = usual(503);
    c.after = 20000;
    assert_true(retry_decide(&c).again);
    assert_int_equal(retry_decide(&c).wait_ms, 20000);
    c.after = 20001; /* longer than max_wait_ms: another provider */
    assert_false(retry_decide(&c).again);
    c.after = 5000;
    c.deadline = 6000;
    assert_false(retry_decide(&c).again);
    for (uint64_t i = 0; i < 1000; i++) { /* full jitter: from 0 to the exponential step */
        c = usual(503);
        c.attempts = 100;
        c.attempt = (uint32_t)(i % 40) + 1;
        c.random_bits = i * 0x9e3779b97f4a7c15u;
        assert_in_range(retry_decide(&c).wait_ms, 0,
                        c.attempt > 6 ? 20000u : 500u << (c.attempt - 1));
    }
    c = usual(503);
    c.random_bits = 0;
    assert_int_equal(retry_decide(&c).wait_ms, 0);
}

static void breaker_opens_waits_lets_one_through_and_closes(void **state)
{
    struct breaker b = {.failures = 2, .cooldown_ms = 100};

    (void)state;
    breaker_failed(&b, 10, 0);
    assert_true(breaker_allow(&b, 11));
    breaker_succeeded(&b);
    breaker_failed(&b, 20, 0);
    assert_true(breaker_allow(&b, 21)); /* in a row */
    breaker_failed(&b, 30, 0);
    assert_false(breaker_allow(&b, 129));
    assert_true(breaker_allow(&b, 130));
    assert_false(breaker_allow(&b, 131)); /* one probe */
    assert_true(breaker_allow(&b, 230));  /* the probe never reported its outcome */
    breaker_failed(&b, 240, 0);
    assert_false(breaker_allow(&b, 339));
    assert_true(breaker_allow(&b, 340));
    breaker_succeeded(&b);
    assert_true(breaker_allow(&b, 341));
    assert_true(breaker_allow(&b, 341));
    breaker_failed(&b, 400, 5000); /* the server asked for it */
    assert_false(breaker_allow(&b, 5399));
    assert_true(breaker_allow(&b, 5400));
}

static void breaker_says_how_long_it_will_be_open(void **state)
{
    struct breaker b = {.failures = 1, .cooldown_ms = 100};

    (void)state;
    assert_false(breaker_is_open(&b));
    assert_int_equal(breaker_left(&b, 5), 0);
    breaker_failed(&b, 10, 0);
    assert_true(breaker_is_open(&b));
    assert_int_equal(breaker_left(&b, 11), 99);
    assert_int_equal(breaker_left(&b, 110), 0);
    assert_true(breaker_allow(&b, 120));
    assert_int_equal(breaker_left(&b, 121), 99); /* a probe is in progress */
    assert_true(breaker_is_open(&b));            /* and may probe once */
    breaker_succeeded(&b);
    assert_false(breaker_is_open(&b));
    assert_int_equal(breaker_left(&b, 122), 0);
}

static void breaker_without_a_number_never_opens(void **state)
{
    struct breaker b = {.cooldown_ms = 100};

    (void)state;
    for (msec i = 0; i < 100; i++) {
        breaker_failed(&b, i, 100000);
        assert_true(breaker_allow(&b, i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_after_is_read_in_every_form_and_capped),
        cmocka_unit_test(the_status_decides_unless_the_server_says),
        cmocka_unit_test(waits_are_within_attempts_cap_and_deadline),
        cmocka_unit_test(breaker_opens_waits_lets_one_through_and_closes),
        cmocka_unit_test(breaker_says_how_long_it_will_be_open),
        cmocka_unit_test(breaker_without_a_number_never_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
