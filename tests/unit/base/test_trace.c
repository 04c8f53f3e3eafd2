/* Trace contexts of the W3C, and the ids of spans. */
#include "protocol/base/trace.h"

#include <string.h>

#include "tests/support/cmocka.h"

#define TRACE "0123456789abcdef0f1e2d3c4b5a6978"
#define SPAN "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" SPAN "-01"

static void a_context_is_read_and_written_as_it_was(void **state)
{
    static const uint8_t id[TRACE_BYTES] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                            0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78};
    char text[TRACEPARENT_LEN + 2] = {[TRACEPARENT_LEN + 1] = '!'};
    struct trace t;

    (void)state;
    assert_true(trace_read(STR_LIT(GOOD), &t));
    assert_memory_equal(t.id, id, sizeof id);
    assert_true(t.span == 0x00f067aa0ba902b7u);
    trace_write(&t, text);
    assert_string_equal(text, GOOD);
    memset(&t, 0xff, sizeof t);
    trace_write(&t, text);
    assert_string_equal(text, "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01");
    assert_int_equal(text[TRACEPARENT_LEN + 1], '!'); /* and nothing behind it */
}

static void a_trace_that_is_not_recorded_is_none(void **state)
{
    struct trace t;

    (void)state;
    assert_false(trace_read(STR_LIT("00-" TRACE "-" SPAN "-00"), &t));
    assert_false(trace_read(STR_LIT("00-" TRACE "-" SPAN "-02"), &t));
    assert_true(trace_read(STR_LIT("00-" TRACE "-" SPAN "-03"), &t));
    assert_true(trace_read(STR_LIT("00-" TRACE "-" SPAN "-ff"), &t));
}

static void ids_of_zeros_are_none(void **state)
{
    struct trace t;

    (void)state;
    assert_false(trace_read(STR_LIT("00-00000000000000000000000000000000-" SPAN "-01"), &t));
    assert_false(trace_read(STR_LIT("00-" TRACE "-0000000000000000-01"), &t));
    assert_int_equal(t.span, 0);
    assert_true(trace_read(STR_LIT("00-10000000000000000000000000000000-" SPAN "-01"), &t));
    assert_true(trace_read(STR_LIT("00-00000000000000000000000000000001-" SPAN "-01"), &t));
    assert_true(trace_read(STR_LIT("00-" TRACE "-0000000000000001-01"), &t));
    assert_int_equal(t.span, 1);
}

static void a_later_version_is_read_as_this_one(void **state)
{
    struct trace t;

    (void)state;
    assert_true(trace_read(STR_LIT("01-" TRACE "-" SPAN "-01"), &t));
    assert_true(trace_read(STR_LIT("fe-" TRACE "-" SPAN "-01-more"), &t));
    assert_false(trace_read(STR_LIT("fe-" TRACE "-" SPAN "-01more"), &t));
    assert_false(trace_read(STR_LIT("ff-" TRACE "-" SPAN "-01"), &t));
    assert_false(trace_read(STR_LIT(GOOD "-more"), &t));
}

static void each_character_has_its_place(void **state)
{
    static const char wrong[] = {'/', ':', '@', 'A', 'F', 'g', '`', ' ', 0};
    char text[sizeof GOOD];
    struct trace t;

    (void)state;
    for (size_t i = 0; i < sizeof GOOD - 1; i++) {
        for (size_t w = 0; w < sizeof wrong; w++) {
            memcpy(text, GOOD, sizeof GOOD);
            text[i] = wrong[w];
            assert_false(trace_read((struct str){text, sizeof GOOD - 1}, &t));
        }
        assert_false(trace_read((struct str){GOOD, i}, &t));
    }
}

/* Telemetry and agents make them apart from each other: they are part of the protocol. */
static void the_id_of_a_span_is_fnv_1a_of_what_it_is_about(void **state)
{
    const struct str plan = STR_LIT("0190f3c2-7a1b-7c3d-9e4f-000000000001");

    (void)state;
    const uint64_t id = trace_span(plan, TRACE_ATTEMPT, 2, 3);
    uint64_t h = 14695981039346656037u;
    uint8_t bytes[36 + 12] = {0};
    memcpy(bytes, plan.ptr, 36);
    bytes[36] = TRACE_ATTEMPT;
    bytes[40] = 2;
    bytes[44] = 3;
    for (size_t i = 0; i < sizeof bytes; i++) {
        h = (h ^ bytes[i]) * 1099511628211u;
    }
    assert_true(id == h);
    assert_true(id != trace_span(plan, TRACE_STEP, 2, 3));
    assert_true(id != trace_span(plan, TRACE_ATTEMPT, 3, 3));
    assert_true(id != trace_span(plan, TRACE_ATTEMPT, 2, 2));
}

static void the_trace_of_a_plan_is_its_id(void **state)
{
    struct uuid id;
    struct trace t = {.span = 7};

    (void)state;
    for (size_t i = 0; i < sizeof id.b; i++) {
        id.b[i] = (uint8_t)(i + 1);
    }
    trace_of_plan(id, &t);
    assert_memory_equal(t.id, id.b, TRACE_BYTES);
    assert_int_equal(t.span, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_is_read_and_written_as_it_was),
        cmocka_unit_test(a_trace_that_is_not_recorded_is_none),
        cmocka_unit_test(ids_of_zeros_are_none),
        cmocka_unit_test(a_later_version_is_read_as_this_one),
        cmocka_unit_test(each_character_has_its_place),
        cmocka_unit_test(the_id_of_a_span_is_fnv_1a_of_what_it_is_about),
        cmocka_unit_test(the_trace_of_a_plan_is_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
