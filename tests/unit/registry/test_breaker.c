/* The state machine of one breaker: every input in every state. */
#include "fixture.h"

#include "registry/breaker.h"

static const struct breaker_limits three = {
    .failures = 3, .cooldown_ms = 100, .cooldown_max_ms = 350, .probe_ms = 40};

/* A breaker that got there by the ordinary way at time 1000. */
static struct breaker at(enum breaker_state state)
{
    struct breaker b = breaker_closed();
    for (uint32_t i = 0; i < three.failures && state != BREAKER_CLOSED; i++) {
        breaker_move(&b, &three, BREAKER_IN_FAILURE, 900);
    }
    if (state >= BREAKER_PROBING) {
        breaker_move(&b, &three, BREAKER_IN_DUE, 1000);
    }
    if (state >= BREAKER_HALF_OPEN) {
        breaker_move(&b, &three, BREAKER_IN_PROBE_OK, 1000);
    }
    if (state >= BREAKER_TRIAL) {
        breaker_move(&b, &three, BREAKER_IN_TAKEN, 1000);
    }
    assert_int_equal(b.state, state);
    return b;
}

static void every_input_in_every_state_leads_where_the_table_says(void **state)
{
    enum { C = BREAKER_CLOSED, O = BREAKER_OPEN, P = BREAKER_PROBING };
    enum { H = BREAKER_HALF_OPEN, T = BREAKER_TRIAL };
    static const uint8_t expected[BREAKER_STATE_COUNT][BREAKER_INPUT_COUNT] = {
        /* success, failure, due, postponed, probe ok, probe failed, taken, undecided */
        [BREAKER_CLOSED] = {C, C, C, C, C, C, C, C},
        [BREAKER_OPEN] = {O, O, P, O, O, O, O, O},
        [BREAKER_PROBING] = {P, P, O, P, H, O, P, P},
        [BREAKER_HALF_OPEN] = {C, O, H, H, H, H, T, H},
        [BREAKER_TRIAL] = {C, O, T, T, T, T, T, H},
    };
    (void)state;
    for (uint32_t from = 0; from < BREAKER_STATE_COUNT; from++) {
        for (uint32_t in = 0; in < BREAKER_INPUT_COUNT; in++) {
            struct breaker b = at(from);
            const bool changed = breaker_move(&b, &three, in, 1000);
            if (b.state != expected[from][in] || changed != (b.state != from)) {
                fail_msg("state %u, input %u: became %u", from, in, (unsigned)b.state);
            }
            assert_true((b.until != MSEC_NEVER) ==
                        (b.state == BREAKER_OPEN || b.state == BREAKER_PROBING));
        }
    }
}

static void it_opens_after_so_many_failures_in_a_row_and_no_sooner(void **state)
{
    struct breaker b = breaker_closed();
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_false(breaker_move(&b, &three, BREAKER_IN_FAILURE, 10));
        assert_false(breaker_move(&b, &three, BREAKER_IN_FAILURE, 10));
        assert_false(breaker_move(&b, &three, BREAKER_IN_SUCCESS, 10));
    }
    breaker_move(&b, &three, BREAKER_IN_FAILURE, 10);
    breaker_move(&b, &three, BREAKER_IN_FAILURE, 20);
    assert_true(breaker_allows_work(&b));
    assert_true(breaker_move(&b, &three, BREAKER_IN_FAILURE, 30));
    assert_int_equal(b.state, BREAKER_OPEN);
    assert_int_equal(b.until, 130);
    assert_int_equal(b.failures, 3);
    assert_false(breaker_allows_work(&b));
}

static void each_opening_without_a_closing_waits_longer_up_to_the_maximum(void **state)
{
    static const msec waits[] = {100, 200, 350, 350, 350};
    struct breaker b = at(BREAKER_OPEN);
    msec now = 900;
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        assert_int_equal(b.until, now + waits[i]);
        now = b.until;
        breaker_move(&b, &three, BREAKER_IN_DUE, now);
        assert_int_equal(b.until, now + three.probe_ms);
        if (i % 2 == 0) {
            breaker_move(&b, &three, BREAKER_IN_PROBE_FAILED, now);
        } else {
            breaker_move(&b, &three, BREAKER_IN_PROBE_OK, now);
            breaker_move(&b, &three, BREAKER_IN_TAKEN, now);
            breaker_move(&b, &three, BREAKER_IN_FAILURE, now);
        }
    }
    breaker_move(&b, &three, BREAKER_IN_DUE, b.until);
    breaker_move(&b, &three, BREAKER_IN_PROBE_OK, now);
    breaker_move(&b, &three, BREAKER_IN_SUCCESS, now);
    assert_int_equal(b.state, BREAKER_CLOSED);
    assert_int_equal(b.failures, 0);
    assert_int_equal(b.level, 0);
}

static void one_that_cannot_be_asked_waits_as_long_again(void **state)
{
    struct breaker b = at(BREAKER_OPEN);
    (void)state;
    breaker_move(&b, &three, BREAKER_IN_POSTPONED, 1000);
    breaker_move(&b, &three, BREAKER_IN_POSTPONED, 1100);
    assert_int_equal(b.until, 1200);
    assert_int_equal(b.level, 0);
}

static void a_cooldown_never_overflows(void **state)
{
    const struct breaker_limits huge = {.failures = 1,
                                        .cooldown_ms = MSEC_NEVER / 3,
                                        .cooldown_max_ms = MSEC_NEVER - 1,
                                        .probe_ms = 1};
    (void)state;
    assert_true(breaker_cooldown(&huge, 1) == MSEC_NEVER / 3 * 2);
    assert_true(breaker_cooldown(&huge, 2) == MSEC_NEVER - 1);
    assert_true(breaker_cooldown(&huge, 1000000) == MSEC_NEVER - 1);
}

static void only_failures_of_the_agent_itself_count(void **state)
{
    uint32_t fails = 0;
    (void)state;
    for (uint32_t c = 0; c < CLASS_COUNT; c++) {
        fails += breaker_verdict(c) == BREAKER_VERDICT_FAILURE ? 1 : 0;
    }
    assert_int_equal(fails, 5);
    assert_int_equal(breaker_verdict(CLASS_SERVICE_UNAVAILABLE), BREAKER_VERDICT_FAILURE);
    assert_int_equal(breaker_verdict(CLASS_TIMEOUT), BREAKER_VERDICT_FAILURE);
    assert_int_equal(breaker_verdict(CLASS_AGENT_CRASHED), BREAKER_VERDICT_FAILURE);
    assert_int_equal(breaker_verdict(CLASS_REPLY_LOST), BREAKER_VERDICT_FAILURE);
    assert_int_equal(breaker_verdict(CLASS_PROTOCOL_ERROR), BREAKER_VERDICT_FAILURE);
    assert_int_equal(breaker_verdict(CLASS_NONE), BREAKER_VERDICT_SUCCESS);
    assert_int_equal(breaker_verdict(CLASS_VALIDATION_ERROR), BREAKER_VERDICT_SUCCESS);
    assert_int_equal(breaker_verdict(CLASS_RESOURCE_NOT_FOUND), BREAKER_VERDICT_SUCCESS);
    assert_int_equal(breaker_verdict(CLASS_VERIFICATION_FAILED), BREAKER_VERDICT_SUCCESS);
    assert_int_equal(breaker_verdict(CLASS_RATE_LIMITED), BREAKER_VERDICT_IGNORED);
    assert_int_equal(breaker_verdict(CLASS_CANCELLED), BREAKER_VERDICT_IGNORED);
}

static void people_see_three_states(void **state)
{
    (void)state;
    assert_string_equal(breaker_state_name(BREAKER_CLOSED), "closed");
    assert_string_equal(breaker_state_name(BREAKER_OPEN), "open");
    assert_string_equal(breaker_state_name(BREAKER_PROBING), "half_open");
    assert_string_equal(breaker_state_name(BREAKER_HALF_OPEN), "half_open");
    assert_string_equal(breaker_state_name(BREAKER_TRIAL), "half_open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_in_every_state_leads_where_the_table_says),
        cmocka_unit_test(it_opens_after_so_many_failures_in_a_row_and_no_sooner),
        cmocka_unit_test(each_opening_without_a_closing_waits_longer_up_to_the_maximum),
        cmocka_unit_test(one_that_cannot_be_asked_waits_as_long_again),
        cmocka_unit_test(a_cooldown_never_overflows),
        cmocka_unit_test(only_failures_of_the_agent_itself_count),
        cmocka_unit_test(people_see_three_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
