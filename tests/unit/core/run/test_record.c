/* Names of records and statuses, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/death.h"
#include "tests/unit/core/run/flat_record.h"

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
        const bool internal = t == REC_STEP_ASSIGNED || t == REC_STEP_UNKNOWN ||
                              t == REC_STEP_CHECKING || t == REC_STEP_CONDITION ||
                              t == REC_STEP_CHILD || t == REC_RESULT_REJECTED ||
                              t == REC_STEP_DOUBTED;
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
    assert_string_equal(step_status_name(STEP_CHECKING), "in_progress");
    assert_string_equal(step_status_state_name(STEP_BACKOFF), "backoff");
    assert_string_equal(step_status_state_name(STEP_UNKNOWN), "unknown");
    assert_string_equal(step_status_state_name(STEP_CHECKING), "checking");
    assert_string_equal(step_status_state_name(STEP_SKIPPED), "skipped");
    assert_int_equal(step_status_from_name(STR_LIT("in_progress")), STEP_IN_PROGRESS);
}

/* Each name leads back to its value, and a foreign one to the count. */
#define LEADS_BACK(what, type, count)                                                              \
    for (int i = 0; i < (count); i++) {                                                            \
        assert_int_equal(what##_from_name(str_from(what##_name((enum type)i))), i);                \
    }                                                                                              \
    assert_int_equal(what##_from_name(STR_LIT("maybe")), (count))

static void names_lead_back(void **state)
{
    (void)state;
    LEADS_BACK(plan_status, plan_status, PLAN_STATUS_COUNT);
    LEADS_BACK(plan_outcome, plan_outcome, PLAN_OUTCOME_COUNT);
    LEADS_BACK(step_reason, step_reason, STEP_REASON_COUNT);
    LEADS_BACK(review_kind, review_kind, REVIEW_KIND_COUNT);
    LEADS_BACK(review_decision, review_decision, DECISION_COUNT);
    LEADS_BACK(step_phase, step_phase, STEP_PHASE_COUNT);
    LEADS_BACK(pause_reason, pause_reason, PAUSE_REASON_COUNT);
    LEADS_BACK(modify_kind, modify_kind, MODIFY_KIND_COUNT);
    LEADS_BACK(handoff_kind, handoff_kind, HANDOFF_KIND_COUNT);
    LEADS_BACK(fallback_action, fallback_action, FALLBACK_ACTION_COUNT);
    LEADS_BACK(step_stop, step_stop, STEP_STOP_COUNT);
    assert_int_equal(step_status_from_name(STR_LIT("maybe")), STEP_STATUS_COUNT);
}

/* There is no way back by name: the journal looks for the first that is equal. */
static void no_two_failures_of_a_plan_have_one_name(void **state)
{
    (void)state;
    for (int i = 0; i < PLAN_FAILURE_COUNT; i++) {
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(plan_failure_name((enum plan_failure)i),
                                    plan_failure_name((enum plan_failure)k));
        }
    }
}

static void only_a_change_with_a_document_revises(void **state)
{
    (void)state;
    for (int t = 0; t < REC_COUNT; t++) {
        const bool may = t == REC_PLAN_GENERATED || t == REC_PLAN_MODIFIED ||
                         t == REC_REPLAN_FINISHED || t == REC_SYNTHESIS_RETRY;
        const struct flat_record flat = {.type = (enum record_type)t, .result = {7, 1}};
        const struct record with = record_of_flat(&flat);
        const struct record without = {.type = (enum record_type)t};
        assert_int_equal(record_revises(&with), may);
        assert_false(record_revises(&without));
    }
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

/* ---- the union ---- */

/* The same initialiser with another member, REC_INIT(STEP_RETRY, waiting, ...), does not compile.
 */
static const struct record retry = {REC_INIT(STEP_RETRY, retry, .delay_ms = 5), .step = 3};
_Static_assert(RECORD_FITS(STEP_RETRY, retry) == 1, "the type has the member");
_Static_assert((int)RECORD_MEMBER_OF_STEP_RETRY != (int)RECORD_waiting, "and no other");

static void read_another_member(void)
{
    _exit(REC(&retry, waiting)->delay_ms == 0 ? 1 : 2);
}

static void write_another_member(void)
{
    struct record rec = retry;
    REC(&rec, step_completed)->status = STEP_COMPLETED;
}

static void read_the_member_of_no_type(void)
{
    const struct record rec = {.type = REC_COUNT};
    _exit(REC(&rec, retry)->delay_ms == 0 ? 1 : 2);
}

static void a_type_has_its_own_member_and_no_other(void **state)
{
    (void)state;
    assert_int_equal(REC(&retry, retry)->delay_ms, 5);
    assert_int_equal(record_member(REC_PLAN_PAUSED), record_member(REC_PLAN_RESUMED));
    assert_int_equal(record_member(REC_PLAN_STARTED), RECORD_none);
    assert_int_equal(record_member(REC_COUNT), RECORD_none);
}

static void the_member_of_another_type_ends_a_debug_build(void **state)
{
    (void)state;
#ifndef BATON_CHECKED
    skip(); /* a release does not look */
#endif
    assert_true(dies(read_another_member));
    assert_true(dies(write_another_member));
    assert_true(dies(read_the_member_of_no_type));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_type_has_a_name_that_leads_back),
        cmocka_unit_test(only_bookkeeping_is_internal),
        cmocka_unit_test(users_see_the_states_between_attempts_as_in_progress),
        cmocka_unit_test(names_lead_back),
        cmocka_unit_test(no_two_failures_of_a_plan_have_one_name),
        cmocka_unit_test(only_a_change_with_a_document_revises),
        cmocka_unit_test(the_ends_are_final),
        cmocka_unit_test(a_type_has_its_own_member_and_no_other),
        cmocka_unit_test(the_member_of_another_type_ends_a_debug_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
