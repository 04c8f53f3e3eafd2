/* Pausing, skipping, revising, replanning, calling off. */
#include "tests/unit/core/sched/test_core.h"

static void a_paused_plan_starts_nothing_and_goes_on_where_it_was(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "par: A(retries=1); B; C");
    rig_forget(r);
    rig_plan_event(r, CORE_PAUSE, run, "lunch");
    RIG_TRACE(r, "[0] plan_paused requested: lunch\n");
    rig_fail(r, "A", CLASS_TIMEOUT, "slow"); /* what was out ends as ever */
    rig_until(r, 1000);
    RIG_TRACE(r, "[0] A#1 retry +100 TIMEOUT: slow\n");
    assert_int_equal(rig_run(r, run)->status, PLAN_WAITING);
    rig_plan_event(r, CORE_PAUSE, run, "");
    RIG_TRACE(r, "[1000] reject: it is paused already\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[1000] plan_resumed requested\n"
                 "[1000] A#2 assigned i1\n"
                 "[1000] dispatch A#2 i1/0\n");
    rig_plan_event(r, CORE_RESUME, run, "");
    RIG_TRACE(r, "[1000] reject: nothing waits for this\n");
}

static void a_pause_survives_a_restart(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A(retries=1); B");
    rig_plan_event(r, CORE_PAUSE, run, "");
    rig_restart(r, 100);
    rig_up(r, "x", 1, 1);
    rig_forget(r);
    rig_state(r, "A", false);
    rig_until(r, 3000);
    RIG_TRACE(
        r, "[100] A#1 retry +100 REPLY_LOST: Reply lost: the agent does not know of the attempt\n");
    struct core_event ev = rig_about(r, CORE_RESUME, "A");
    rig_event(r, ev);
    RIG_TRACE(r, "[3000] plan_resumed requested\n"
                 "[3000] A#2 assigned i1\n"
                 "[3000] dispatch A#2 i1/0\n");
}

static void skipping_to_a_step_skips_all_before_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B; C; D");
    rig_ok(r, "A");
    rig_forget(r);
    rig_modify(r, run, MODIFY_SKIP_TO_STEP, 3, 1);
    RIG_TRACE(r, "[0] plan_modified skip_to_step revision=2: because\n"
                 "[0] B#1 skipped user_skip (fenced): because\n"
                 "[0] cancel B#1 i1\n"
                 "[0] C#0 skipped user_skip: because\n"
                 "[0] D#1 started i1\n"
                 "[0] dispatch D#1 i1/1\n");
    rig_ok(r, "D");
    RIG_TRACE(r, "[0] D#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_skipped_step_satisfies_and_a_cancelled_one_does_not(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 3);
    const uint64_t run = rig_submit(r, "A; B; C<A; D<B");
    rig_forget(r);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 0, 0);
    rig_modify(r, run, MODIFY_CANCEL_STEP, 1, 0);
    RIG_TRACE(r, "[0] plan_modified skip_steps revision=2: because\n"
                 "[0] A#1 skipped user_skip (fenced): because\n"
                 "[0] cancel A#1 i1\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/2\n"
                 "[0] plan_modified cancel_step revision=3: because\n"
                 "[0] B#1 cancelled user_cancel CANCELLED (fenced): because\n"
                 "[0] cancel B#1 i1\n"
                 "[0] D#0 skipped dependency_failed DEPENDENCY_FAILED: A dependency failed\n");
    rig_ok(r, "C");
    RIG_TRACE(r, "[0] C#1 completed\n"
                 "[0] plan completed/partial\n"
                 "[0] run done\n");
}

static void modifications_name_the_revision_that_they_mean(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B; C");
    rig_forget(r);
    rig_modify(r, run, MODIFY_CONVERSATION_ONLY, 0, 1);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 1, 1);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 7, 2);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 1, 2);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 1, 3);
    RIG_TRACE(r, "[0] plan_modified conversation_only revision=2: because\n"
                 "[0] reject: the plan has been changed since; look at it again\n"
                 "[0] reject: the plan has no such step\n"
                 "[0] plan_modified skip_steps revision=3: because\n"
                 "[0] B#0 skipped user_skip: because\n"
                 "[0] reject: it has ended\n");
}

static void a_plan_has_at_most_a_thousand_revisions(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B");
    for (uint32_t revision = 1; revision < LIMIT_REVISIONS; revision++) {
        rig_modify(r, run, MODIFY_CONVERSATION_ONLY, 0, revision);
        rig_forget(r);
    }
    assert_int_equal(rig_run(r, run)->revision, LIMIT_REVISIONS);
    rig_modify(r, run, MODIFY_CONVERSATION_ONLY, 0, 0);
    rig_modify(r, run, MODIFY_SKIP_STEPS, 1, 0);
    RIG_TRACE(r, "[0] reject: too often\n"
                 "[0] reject: too often\n");
}

static void an_inserted_step_comes_between(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B; C<A,B");
    rig_forget(r);
    rig_insert(r, run, "A; B; C<A,B; N<B"); /* nothing of A and B changes: they are out or queued */
    RIG_TRACE(r, "[0] plan_modified insert revision=2\n"
                 "[0] revised\n");
    rig_ok(r, "A");
    rig_ok(r, "B");
    rig_ok(r, "C");
    rig_ok(r, "N");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n"
                 "[0] B#1 completed\n"
                 "[0] C#1 started i1\n"
                 "[0] dispatch C#1 i1/0\n"
                 "[0] C#1 completed\n"
                 "[0] N#1 started i1\n"
                 "[0] dispatch N#1 i1/0\n"
                 "[0] N#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n");
}

static void a_step_that_has_begun_gets_nothing_new_before_it(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B<A");
    rig_ok(r, "A");
    rig_forget(r);
    rig_insert(r, run, "A; N; B<N"); /* B's place is N's */
    RIG_TRACE(r, "[0] reject: a step that has begun cannot be changed\n");
}

static void a_replaced_step_is_superseded(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run = rig_submit(r, "A; B<A; C<B");
    rig_forget(r);
    rig_insert(r, run, "A; B<A(gone); C<A; N<A");
    RIG_TRACE(r, "[0] B#0 skipped superseded: A revision of the plan does without it\n"
                 "[0] plan_modified insert revision=2\n"
                 "[0] revised\n");
    rig_restart(r, 10); /* both revisions are read again */
    rig_up(r, "x", 1, 2);
    rig_state(r, "A", true);
    rig_ok(r, "A");
    rig_ok(r, "C");
    rig_forget(r);
    rig_ok(r, "N");
    RIG_TRACE(r, "[10] N#0 result rejected: this attempt is not the current one\n"
                 "[10] reject: this attempt is not the current one\n");
}

/* ---- replanning ---- */

/* C20: whose result came last before the revision is not known any more; one of them hands over. */
static void a_step_of_a_revision_is_handed_over_by_who_did_what_it_needs(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_up(r, "planner", 3, 1);
    rig_submit(r, "replan=planner cooldown=1000: A; B<A(replan); C@y<B");
    rig_ok(r, "A");
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no such table");
    rig_until(r, 1000);
    rig_forget(r);
    rig_replan(r, "B", "replan=planner: A; B<A(gone); C@y<B(gone); D@y<A");
    RIG_TRACE(
        r, "[1000] B#1 failed superseded VALIDATION_ERROR: A revision of the plan does without it\n"
           "[1000] C#0 skipped superseded: A revision of the plan does without it\n"
           "[1000] B#1 replan done revision=2\n"
           "[1000] revised\n"
           "[1000] D#1 started i2\n"
           "[1000] D#1 handoff from x\n"
           "[1000] dispatch D#1 i2/0\n");
}

static void a_failed_step_can_ask_for_another_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "planner", 2, 1);
    rig_submit(r, "replan=planner cooldown=1000: A; B<A(replan); C<B; D(timeout=5000)");
    rig_ok(r, "A");
    rig_forget(r);
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "no such table");
    RIG_TRACE(r, "[0] B#1 replan 1 +1000: no such table\n");
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] dispatch replan B#1 i2/0\n");
    rig_replan(r, "B", "replan=planner: A; B<A(gone); C<A(gone); D(timeout=5000); E<A; F<E");
    RIG_TRACE(
        r, "[1000] B#1 failed superseded VALIDATION_ERROR: A revision of the plan does without it\n"
           "[1000] C#0 skipped superseded: A revision of the plan does without it\n"
           "[1000] B#1 replan done revision=2\n"
           "[1000] revised\n"
           "[1000] E#1 started i1\n"
           "[1000] dispatch E#1 i1/0\n");
    rig_ok(r, "D");
    rig_ok(r, "E");
    rig_forget(r);
    rig_ok(r, "F");
    RIG_TRACE(r, "[1000] F#1 completed\n"
                 "[1000] plan completed/success\n"
                 "[1000] run done\n");
}

static void replans_have_limits(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "planner", 2, 1);
    rig_submit(r, "replan=planner replans=1: A(replan)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_until(r, 1);
    rig_forget(r);
    rig_replan(r, "A", "replan=planner replans=1: A(gone); B(replan)");
    rig_fail(r, "B", CLASS_VALIDATION_ERROR, "bad again");
    RIG_TRACE(r,
              "[1] A#1 failed superseded VALIDATION_ERROR: A revision of the plan does without it\n"
              "[1] A#1 replan done revision=2\n"
              "[1] revised\n"
              "[1] B#1 started i1\n"
              "[1] dispatch B#1 i1/0\n"
              "[1] B#1 failed VALIDATION_ERROR: bad again\n"
              "[1] plan failed/failed max_replans_exceeded: Max replans (1) exceeded. Last error: "
              "bad again\n"
              "[1] run done\n");
}

static void new_work_under_an_old_name_counts_its_replans(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "planner", 2, 1);
    rig_submit(r, "replan=planner perstep=1: A(replan)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_until(r, 1);
    rig_replan(r, "A", "replan=planner perstep=1: A(gone); A(replan)");
    rig_forget(r);
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad again");
    RIG_TRACE(r, "[1] A#1 failed VALIDATION_ERROR: bad again\n"
                 "[1] plan failed/failed max_replans_exceeded_per_task: Max replans (1) exceeded. "
                 "Last error: bad again\n"
                 "[1] run done\n");
}

static void a_replanner_that_fails_fails_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "planner", 2, 1);
    rig_submit(r, "replan=planner: A(replan)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_until(r, 1);
    rig_forget(r);
    rig_fail(r, "A", CLASS_UNKNOWN, "no idea");
    RIG_TRACE(r, "[1] A#1 replan failed revision=1: no idea\n"
                 "[1] A#1 failed VALIDATION_ERROR: no idea\n"
                 "[1] plan failed/failed replan_generation_failed: no idea\n"
                 "[1] run done\n");
}

static void a_revision_that_does_not_fit_fails_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_up(r, "planner", 2, 1);
    rig_submit(r, "replan=planner: A(replan)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_until(r, 1);
    rig_forget(r);
    rig_replan(r, "A", "replan=planner: A(replan); B"); /* keeps what failed */
    RIG_TRACE(r, "[1] A#1 replan failed revision=1: The replanner's plan is invalid: the plan does "
                 "not fit what is under way\n"
                 "[1] A#1 failed VALIDATION_ERROR: The replanner's plan is invalid: the plan does "
                 "not fit what is under way\n"
                 "[1] plan failed/failed repair_plan_invalid: The replanner's plan is invalid: the "
                 "plan does not fit what is under way\n"
                 "[1] run done\n");
}

static void a_replanner_that_does_not_answer_fails_the_plan(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "replan=planner replantime=5000: A(replan)");
    rig_fail(r, "A", CLASS_VALIDATION_ERROR, "bad");
    rig_forget(r);
    rig_until(r, 6000);
    RIG_TRACE(r, "[5000] A#1 replan failed revision=1: no answer in time\n"
                 "[5000] A#1 failed VALIDATION_ERROR: no answer in time\n"
                 "[5000] plan failed/failed replan_generation_failed: no answer in time\n"
                 "[5000] run done\n");
}

/* ---- calling off ---- */

static void what_does_not_stop_within_the_grace_is_ended_or_fenced(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_event(r, (struct core_event){CORE_EV_INIT(REGISTER, registration,
                                                  .agent = registry_agent_add(
                                                      core_registry(rig_core(r)), STR_LIT("y"), 0),
                                                  .capacity = 1, .spawned = true),
                                     .instance = {.b = {[15] = 2}}});
    rig_lane(r, 2, REGISTRY_CONTROL_LANE, true);
    rig_lane(r, 2, 0, true);
    const uint64_t run = rig_submit(r, "par: A; B@y");
    rig_forget(r);
    rig_cancel(r, run, "enough");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] cancel A#1 i1\n"
                 "[0] cancel B#1 i2\n");
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] A#1 cancelled cancelled CANCELLED (fenced): Cancelled\n"
                 "[1000] kill i2\n"
                 "[1000] B#1 cancelled cancelled CANCELLED (killed): Cancelled\n"
                 "[1000] plan cancelled/failed\n"
                 "[1000] run done\n");
}

static void a_process_with_other_work_is_fenced_and_not_ended(void **state)
{
    struct rig *r = *state;
    rig_event(r, (struct core_event){CORE_EV_INIT(REGISTER, registration,
                                                  .agent = registry_agent_add(
                                                      core_registry(rig_core(r)), STR_LIT("x"), 0),
                                                  .capacity = 2, .spawned = true),
                                     .instance = {.b = {[15] = 1}}});
    rig_lane(r, 1, 0, true);
    rig_lane(r, 1, 1, true);
    const uint64_t run = rig_submit(r, "A");
    rig_submit(r, "bystander");
    rig_cancel(r, run, "enough");
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] A#1 cancelled cancelled CANCELLED (fenced): Cancelled\n"
                 "[1000] plan cancelled/failed\n"
                 "[1000] run done\n");
    rig_ok(r, "bystander");
    assert_int_equal(core_runs_open(rig_core(r)), 0);
}

static void a_step_that_completes_within_the_grace_is_completed(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B");
    rig_forget(r);
    rig_cancel(r, run, "enough");
    rig_ok(r, "A");
    RIG_TRACE(r, "[0] plan_cancelling: enough\n"
                 "[0] cancel A#1 i1\n"
                 "[0] A#1 completed (acknowledged)\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

static void an_instance_that_goes_within_the_grace_has_stopped(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A; B");
    rig_cancel(r, run, "enough");
    rig_forget(r);
    rig_instance(r, CORE_GONE, 1, "killed");
    RIG_TRACE(r, "[0] agent_down x i1: killed\n"
                 "[0] close epoch=1\n"
                 "[0] A#1 cancelled cancelled CANCELLED (gone): Cancelled\n"
                 "[0] plan cancelled/failed\n"
                 "[0] run done\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_paused_plan_starts_nothing_and_goes_on_where_it_was),
        CORE_TEST(a_pause_survives_a_restart),
        CORE_TEST(skipping_to_a_step_skips_all_before_it),
        CORE_TEST(a_skipped_step_satisfies_and_a_cancelled_one_does_not),
        CORE_TEST(modifications_name_the_revision_that_they_mean),
        CORE_TEST(a_plan_has_at_most_a_thousand_revisions),
        CORE_TEST(an_inserted_step_comes_between),
        CORE_TEST(a_step_that_has_begun_gets_nothing_new_before_it),
        CORE_TEST(a_replaced_step_is_superseded),
        CORE_TEST(a_step_of_a_revision_is_handed_over_by_who_did_what_it_needs),
        CORE_TEST(a_failed_step_can_ask_for_another_plan),
        CORE_TEST(replans_have_limits),
        CORE_TEST(new_work_under_an_old_name_counts_its_replans),
        CORE_TEST(a_replanner_that_fails_fails_the_plan),
        CORE_TEST(a_revision_that_does_not_fit_fails_the_plan),
        CORE_TEST(a_replanner_that_does_not_answer_fails_the_plan),
        CORE_TEST(what_does_not_stop_within_the_grace_is_ended_or_fenced),
        CORE_TEST(a_process_with_other_work_is_fenced_and_not_ended),
        CORE_TEST(a_step_that_completes_within_the_grace_is_completed),
        CORE_TEST(an_instance_that_goes_within_the_grace_has_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
