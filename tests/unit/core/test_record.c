/* Names of records and statuses, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "supervisor/core/record.h"

static void every_record_type_has_a_name_that_leads_back(void **state)
{
    (void)state;
    for (int t = 0; t < REC_COUNT; t++) {
        assert_int_equal(record_type_from_wire(str_from(record_wire_type((enum record_type)t))), t);
    }
    assert_int_equal(record_type_from_wire(STR_LIT("no_such_event")), REC_COUNT);
    assert_int_equal(record_type_from_wire((struct str){0}), REC_COUNT);
}

static void only_bookkeeping_is_internal(void **state)
{
    (void)state;
    for (int t = 0; t < REC_COUNT; t++) {
        const bool internal = t == REC_STEP_ASSIGNED || t == REC_STEP_UNKNOWN;
        assert_int_equal(record_is_public((enum record_type)t), !internal);
    }
    assert_int_equal(record_about(REC_STEP_STARTED), ABOUT_PLAN);
    assert_int_equal(record_about(REC_AGENT_UP), ABOUT_AGENT);
    assert_int_equal(record_about(REC_SUPERVISOR_STARTED), ABOUT_SYSTEM);
}

static void users_see_the_states_between_attempts_as_in_progress(void **state)
{
    (void)state;
    assert_string_equal(step_status_name(STEP_BACKOFF), "in_progress");
    assert_string_equal(step_status_name(STEP_UNKNOWN), "in_progress");
    assert_string_equal(step_status_state_name(STEP_BACKOFF), "backoff");
    assert_string_equal(step_status_state_name(STEP_UNKNOWN), "unknown");
    assert_string_equal(step_status_state_name(STEP_SKIPPED), "skipped");
    assert_int_equal(step_status_from_name(STR_LIT("in_progress")), STEP_IN_PROGRESS);
}

static void names_lead_back(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_STATUS_COUNT; i++) {
        assert_int_equal(plan_status_from_name(str_from(plan_status_name((enum plan_status)i))), i);
    }
    for (int i = 0; i < PLAN_OUTCOME_COUNT; i++) {
        assert_int_equal(plan_outcome_from_name(str_from(plan_outcome_name((enum plan_outcome)i))),
                         i);
    }
    for (int i = 0; i < STEP_REASON_COUNT; i++) {
        assert_int_equal(step_reason_from_name(str_from(step_reason_name((enum step_reason)i))), i);
    }
    for (int i = 0; i < REVIEW_KIND_COUNT; i++) {
        assert_int_equal(review_kind_from_name(str_from(review_kind_name((enum review_kind)i))), i);
    }
    for (int i = 0; i < DECISION_COUNT; i++) {
        assert_int_equal(
            review_decision_from_name(str_from(review_decision_name((enum review_decision)i))), i);
    }
    assert_int_equal(plan_status_from_name(STR_LIT("maybe")), PLAN_STATUS_COUNT);
    assert_int_equal(step_status_from_name(STR_LIT("maybe")), STEP_STATUS_COUNT);
}

static void the_ends_are_final(void **state)
{
    (void)state;
    for (int i = 0; i < STEP_STATUS_COUNT; i++) {
        const bool final =
            i == STEP_COMPLETED || i == STEP_FAILED || i == STEP_SKIPPED || i == STEP_CANCELLED;
        assert_int_equal(step_is_final((enum step_status)i), final);
    }
    for (int i = 0; i < PLAN_STATUS_COUNT; i++) {
        const bool final = i == PLAN_COMPLETED || i == PLAN_FAILED || i == PLAN_CANCELLED;
        assert_int_equal(plan_is_final((enum plan_status)i), final);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_type_has_a_name_that_leads_back),
        cmocka_unit_test(only_bookkeeping_is_internal),
        cmocka_unit_test(users_see_the_states_between_attempts_as_in_progress),
        cmocka_unit_test(names_lead_back),
        cmocka_unit_test(the_ends_are_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
