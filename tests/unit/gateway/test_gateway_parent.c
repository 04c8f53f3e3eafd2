/* traceparent of requests: what is one, and the plans that wait for their first event. */
#include <stdio.h>
#include <string.h>

#include "supervisor/gateway/telemetry/parent.h"
#include "tests/support/cmocka.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct parents parents;

static bool put(const char *plan, const char *traceparent)
{
    return parents_put(&parents, str_from(plan), str_from(traceparent));
}

static bool take(const char *plan, uint8_t trace[TRACE_BYTES], uint64_t *span)
{
    struct trace given;
    const bool there = parents_take(&parents, str_from(plan), &given);

    if (there) {
        memcpy(trace, given.id, TRACE_BYTES);
        *span = given.span;
    }
    return there;
}

static void a_traceparent_is_taken_once_and_the_first_one_counts(void **state)
{
    uint8_t trace[TRACE_BYTES];
    uint64_t span = 0;

    (void)state;
    assert_true(put("p", GOOD));
    assert_true(put("p", "00-11111111111111111111111111111111-2222222222222222-01"));
    assert_false(take("q", trace, &span));
    assert_true(take("p", trace, &span));
    assert_int_equal(trace[0], 0x0a);
    assert_int_equal(trace[15], 0x9c);
    assert_true(span == 0xb7ad6b7169203331u);
    assert_false(take("p", trace, &span));
}

static void what_is_no_traceparent_or_not_recorded_is_left_out(void **state)
{
    static const char *const wrong[] = {
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "zz-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(put("p", wrong[i]));
    }
    assert_false(put("", GOOD));
    assert_true(put("later", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more"));
}

static void the_oldest_one_goes_when_there_are_too_many(void **state)
{
    uint8_t trace[TRACE_BYTES];
    uint64_t span;
    char plan[16];

    (void)state;
    parents = (struct parents){.next = 0};
    for (int i = 0; i <= PARENTS_MAX; i++) {
        (void)snprintf(plan, sizeof plan, "p%d", i);
        assert_true(put(plan, GOOD));
    }
    assert_false(take("p0", trace, &span));
    assert_true(take("p1", trace, &span));
    assert_true(take(plan, trace, &span));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_taken_once_and_the_first_one_counts),
        cmocka_unit_test(what_is_no_traceparent_or_not_recorded_is_left_out),
        cmocka_unit_test(the_oldest_one_goes_when_there_are_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
