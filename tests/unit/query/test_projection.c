/* What rows say of a plan and its steps: told one after the other, as the journal would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/row_body.h"
#include "supervisor/journal/journal.h"
#include "supervisor/query/history.h"
#include "supervisor/query/projection.h"
#include "tests/support/cmocka.h"

struct telling {
    struct projection projection;
    struct history history;
    struct arena scratch;
    msec wall;
    uint64_t seq;
};

static void begin(struct telling *t)
{
    *t = (struct telling){.wall = 1000000, .history = {.executing = UINT32_MAX}};
    t->projection.created = t->wall;
}

static void end(struct telling *t)
{
    arena_done(&t->scratch);
    projection_free(&t->projection);
}

/* One row, 1 s after the one before. False: out of memory. */
static bool try_row(struct telling *t, const char *type, const char *json)
{
    struct buf body;
    struct bt_error err;
    bool ok;
    enum bt_code code;
    struct journal_row r = {.type = str_from(type), .is_public = true, .wall = t->wall += 1000};

    buf_init(&body, 100000);
    assert_int_equal(json_to_doc(str_from(json), NULL, &body, &err), BT_OK);
    r.seq = r.plan_seq = ++t->seq;
    r.body = body.at;
    r.body_len = body.len;
    code = projection_apply(&t->projection, &t->scratch, &r, &err);
    ok = code == BT_OK && history_row(&t->projection, &r, &t->history);
    assert_true(code == BT_OK || code == BT_NOMEM);
    arena_reset(&t->scratch);
    buf_done(&body);
    return ok;
}

static void row(struct telling *t, const char *type, const char *json)
{
    assert_true(try_row(t, type, json));
}

static void is(struct str got, const char *expected)
{
    char text[256] = {0};

    assert_true(got.len < sizeof text);
    memcpy(text, got.len > 0 ? got.ptr : "", got.len);
    assert_string_equal(text, expected);
}

static void how_far_a_child_plan_is_comes_from_the_progress_of_its_step(void **state)
{
    struct telling t;
    const struct projection_children *c;

    (void)state;
    begin(&t);
    row(&t, "plan_step_progress",
        "{\"stepIndex\":0,\"attempt\":1,\"data\":{\"planId\":\"short\"}}");
    row(&t, "plan_step_progress", "{\"stepIndex\":0,\"attempt\":1,\"text\":\"no data\"}");
    c = &t.projection.steps[0].children;
    assert_string_equal(c->plan_id, "");
    row(&t, "plan_step_progress",
        "{\"stepIndex\":0,\"attempt\":1,\"data\":{\"planId\":\"01A20FAC-BE48-7031-8026-"
        "339589AC5DF6\","
        "\"round\":2,\"items\":3,\"steps\":6,\"over\":5,\"completed\":4,\"failed\":1}}");
    c = &t.projection.steps[0].children;
    assert_string_equal(c->plan_id, "01A20FAC-BE48-7031-8026-339589AC5DF6");
    assert_int_equal(c->round, 2);
    assert_int_equal(c->items, 3);
    assert_int_equal(c->steps, 6);
    assert_int_equal(c->over, 5);
    assert_int_equal(c->completed, 4);
    assert_int_equal(c->failed, 1);
    end(&t);
}

static void usage_of_every_attempt_and_question_counts_for_its_step(void **state)
{
    struct telling t;
    const struct projection_step *x;

    (void)state;
    begin(&t);
    row(&t, "plan_step_started",
        "{\"stepIndex\":1,\"agentId\":\"a\",\"attempt\":1,\"instanceId\":\"i\"}");
    row(&t, "plan_step_retry",
        "{\"stepIndex\":1,\"attempt\":1,\"error\":\"no\",\"errorClass\":\"TIMEOUT\","
        "\"usage\":{\"inputTokens\":1,\"costMicros\":5}}");
    row(&t, "step_assigned",
        "{\"stepIndex\":1,\"attempt\":2,\"instanceId\":\"j\",\"agentId\":\"b\"}");
    row(&t, "step_checking",
        "{\"stepIndex\":1,\"attempt\":2,\"phase\":\"verify\",\"usage\":{\"inputTokens\":2}}");
    row(&t, "plan_step_verification_failed",
        "{\"stepIndex\":1,\"attempt\":2,\"diagnosis\":\"wrong\",\"usage\":{\"outputTokens\":4}}");
    x = &t.projection.steps[1];
    is(t.projection.view.steps[1].error, "wrong");
    is(t.projection.view.steps[1].error_class, "VERIFICATION_FAILED");
    is(t.projection.view.steps[1].agent_id, "b");
    is(t.projection.view.steps[1].instance_id, "j");
    row(&t, "plan_step_completed",
        "{\"stepIndex\":1,\"status\":\"completed\",\"attempts\":3,\"durationMs\":9,"
        "\"resultRef\":7,\"resultLen\":3,\"usage\":{\"inputTokens\":8}}");
    assert_int_equal(x->usage.input_tokens, 11);
    assert_int_equal(x->usage.output_tokens, 4);
    assert_int_equal(x->usage.cost_micros, 5);
    assert_int_equal(x->failed_attempts, 2);
    assert_int_equal(x->result.id, 7);
    assert_int_equal(x->first_attempt, 1001000);
    assert_int_equal(x->ended - x->began, 5000);
    assert_int_equal(t.projection.view.steps[1].attempts, 3);
    end(&t);
}

static void a_row_about_the_plan_is_not_taken_for_one_about_its_first_step(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    row(&t, "plan_step_started", "{\"stepIndex\":0,\"attempt\":1}");
    row(&t, "plan_step_waiting", "{\"stepIndex\":0,\"kind\":\"approval\",\"reviewId\":\"r\"}");
    is(t.projection.view.steps[0].status, "waiting");
    row(&t, "review_decided", "{\"reviewId\":\"P\",\"decision\":\"approve\",\"kind\":\"plan\"}");
    is(t.projection.view.steps[0].status, "waiting");
    row(&t, "review_decided", "{\"stepIndex\":0,\"reviewId\":\"r\",\"decision\":\"approve\"}");
    is(t.projection.view.steps[0].status, "in_progress");
    row(&t, "plan_step_progress", "{\"stepIndex\":10000}"); /* a step that cannot be */
    row(&t, "plan_step_progress", "{\"stepIndex\":\"x\"}");
    end(&t);
}

static void each_reason_to_pause_goes_alone(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    row(&t, "plan_paused", "{\"reason\":\"signoff\",\"reviewId\":\"P\"}");
    row(&t, "plan_paused", "{\"reason\":\"requested\"}");
    row(&t, "plan_paused", "{\"reason\":\"whatever\"}");
    assert_int_equal(t.projection.paused, 1u << PAUSE_SIGNOFF | 1u << PAUSE_REQUESTED);
    row(&t, "plan_resumed", "{\"reason\":\"signoff\"}");
    assert_int_equal(t.projection.paused, 1u << PAUSE_REQUESTED);
    row(&t, "plan_completed", "{\"status\":\"cancelled\",\"outcome\":\"failed\"}");
    assert_int_equal(t.projection.paused, 0);
    assert_int_equal(t.history.reviews_n, 1);
    is(t.history.reviews[0].kind, "plan");
    end(&t);
}

static void a_plan_is_being_cancelled_until_its_end(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    assert_false(t.projection.view.cancelling);
    row(&t, "plan_cancelling", "{\"reason\":\"enough\"}");
    assert_true(t.projection.view.cancelling);
    row(&t, "plan_completed", "{\"status\":\"cancelled\",\"outcome\":\"failed\"}");
    assert_false(t.projection.view.cancelling);
    end(&t);
}

static void a_void_sign_off_is_no_open_one(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    row(&t, "plan_paused", "{\"reason\":\"signoff\",\"reviewId\":\"P/r2\",\"revision\":2}");
    row(&t, "review_voided", "{\"reviewId\":\"P/r2\",\"revision\":2}");
    assert_int_equal(t.projection.paused, 0);
    row(&t, "plan_modified", "{\"kind\":\"insert\",\"revision\":3}");
    row(&t, "plan_paused", "{\"reason\":\"signoff\",\"reviewId\":\"P/r3\",\"revision\":3}");
    assert_int_equal(t.history.reviews_n, 2);
    is(t.history.reviews[0].decision, "void");
    assert_true(t.history.reviews[0].decided_at.len > 0);
    is(t.history.reviews[1].decision, "");
    assert_int_equal(t.projection.paused, 1u << PAUSE_SIGNOFF);
    row(&t, "review_decided", "{\"stepIndex\":0,\"reviewId\":\"P/a/r9\"}"); /* of a step */
    assert_int_equal(t.projection.paused, 1u << PAUSE_SIGNOFF);
    row(&t, "review_decided", "{\"reviewId\":\"P/r3\",\"decision\":\"approve\"}");
    assert_int_equal(t.projection.paused, 0);
    end(&t);
}

static void a_replan_is_a_revision_a_record_and_two_phases(void **state)
{
    struct telling t;
    const struct history *h = &t.history;

    (void)state;
    begin(&t);
    row(&t, "plan_generated",
        "{\"estimatedSteps\":2,\"parentPlanId\":\"Q\",\"usage\":{\"inputTokens\":100}}");
    row(&t, "plan_started", "{\"stepCount\":2}");
    row(&t, "plan_step_started",
        "{\"stepId\":\"a\",\"stepIndex\":0,\"attempt\":1,\"instanceId\":\"i\"}");
    row(&t, "replan_started",
        "{\"stepId\":\"a\",\"stepIndex\":0,\"attempt\":1,\"diagnosis\":\"no such file\","
        "\"totalReplans\":1,\"usage\":{\"inputTokens\":10}}");
    is(t.projection.view.steps[0].phase, "replan");
    row(&t, "replan_finished",
        "{\"stepId\":\"a\",\"stepIndex\":0,\"ok\":true,\"revision\":2,\"newSteps\":3,\"planRef\":9,"
        "\"planLen\":90,\"reason\":\"look elsewhere\",\"usage\":{\"outputTokens\":1000}}");
    row(&t, "plan_modified",
        "{\"kind\":\"conversation_only\",\"revision\":3,\"reasoning\":\"said so\"}");
    row(&t, "plan_completed",
        "{\"status\":\"failed\",\"outcome\":\"failed\",\"failureReason\":\"Step 1 failed: x\","
        "\"usage\":{\"inputTokens\":110,\"outputTokens\":1000}}");
    assert_int_equal(t.projection.view.revision, 3);
    assert_int_equal(t.projection.revised.id, 9);
    is(t.projection.view.parent_plan_id, "Q");
    assert_int_equal(t.projection.planning.input_tokens, 100);
    assert_int_equal(t.projection.replanning.output_tokens, 1000);
    assert_int_equal(h->revisions_n, 3);
    assert_int_equal(h->revisions[0].revision, 1);
    is(h->revisions[0].kind, "submitted");
    is(h->revisions[1].kind, "replan");
    assert_int_equal(h->revisions[1].plan_ref, 9);
    is(h->revisions[2].reasoning, "said so");
    assert_int_equal(h->replans_n, 1);
    is(h->replans[0].diagnosis, "no such file");
    assert_true(h->replans[0].ok);
    assert_int_equal(h->replans[0].new_task_count, 3);
    assert_int_equal(h->phases_n, 4);
    is(h->phases[0].phase, "planning");
    assert_int_equal(h->phases[0].tokens, 100);
    is(h->phases[1].details, "no such file");
    assert_int_equal(h->phases[1].tokens, 10);
    assert_int_equal(h->phases[1].duration_ms, 2000);
    is(h->phases[2].phase, "replanning");
    assert_int_equal(h->phases[2].tokens, 1000);
    is(h->phases[3].details, "Step 1 failed: x");
    assert_false(h->phases[3].success);
    end(&t);
}

static void phases_that_failed_say_so_with_the_reason(void **state)
{
    struct telling t;
    const struct history *h = &t.history;

    (void)state;
    begin(&t);
    row(&t, "planning_started", "{}");
    row(&t, "planning_failed", "{\"reason\":\"no plan\"}");
    row(&t, "compensation_started", "{\"failureReason\":\"Step 1 failed: x\"}");
    assert_true(h->phases_n >= 2);
    is(h->phases[0].phase, "planning");
    is(h->phases[0].details, "no plan");
    assert_false(h->phases[0].success);
    is(h->phases[h->phases_n - 1].phase, "compensation");
    end(&t);
}

static void a_refused_replan_changes_no_revision(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    row(&t, "plan_generated", "{\"estimatedSteps\":1}");
    row(&t, "plan_started", "{}");
    row(&t, "replan_started", "{\"stepId\":\"a\",\"stepIndex\":0,\"attempt\":1}");
    row(&t, "replan_finished",
        "{\"stepId\":\"a\",\"stepIndex\":0,\"ok\":false,\"revision\":1,\"reason\":\"not valid\"}");
    assert_int_equal(t.history.revisions_n, 1);
    assert_int_equal(t.projection.revised.id, 0);
    assert_false(t.history.replans[0].ok);
    is(t.history.phases[2].details, "not valid");
    end(&t);
}

static void lists_are_bounded_and_say_so(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    for (uint32_t i = 0; i <= HISTORY_REVIEWS; i++) {
        row(&t, "plan_step_waiting", "{\"stepIndex\":0,\"kind\":\"input\",\"reviewId\":\"r\"}");
    }
    assert_int_equal(t.history.reviews_n, HISTORY_REVIEWS);
    assert_true(t.history.truncated);
    end(&t);
}

static void usage_adds_up_to_a_bound_and_never_below_zero(void **state)
{
    struct usage a = {.input_tokens = INT64_MAX - 1, .cost_micros = 3};
    const struct usage b = {.input_tokens = 5, .cost_micros = 4};

    (void)state;
    usage_add(&a, &b);
    assert_int_equal(a.input_tokens, INT64_MAX);
    assert_int_equal(usage_less(b, a).input_tokens, 0);
    assert_int_equal(usage_less(a, b).cost_micros, 3);
}

/* ---- planning ---- */

static void each_try_of_a_planner_counts_and_ends_with_the_plan(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    row(&t, "planning_started", "{}");
    assert_int_equal(t.projection.phase, JOB_PLANNING);
    row(&t, "planning_retry", "{\"usage\":{\"inputTokens\":1}}");
    assert_int_equal(t.projection.phase, JOB_PLANNING);
    assert_int_equal(t.projection.planning.input_tokens, 1);
    row(&t, "planning_failed", "{\"usage\":{\"inputTokens\":2}}");
    assert_int_equal(t.projection.phase, JOB_NONE);
    assert_int_equal(t.projection.planning.input_tokens, 3);
    row(&t, "planning_started", "{}");
    row(&t, "plan_generated",
        "{\"planRef\":4,\"planLen\":9,\"revision\":1,\"usage\":{\"inputTokens\":4}}");
    assert_int_equal(t.projection.phase, JOB_NONE);
    assert_int_equal(t.projection.planning.input_tokens, 7);
    assert_int_equal(t.projection.revised.id, 4);
    row(&t, "synthesis_started", "{}");
    assert_int_equal(t.projection.phase, JOB_SYNTHESIS);
    row(&t, "synthesis_retry", "{\"revision\":2,\"usage\":{\"outputTokens\":1}}");
    assert_int_equal(t.projection.phase, JOB_NONE);
    assert_int_equal(t.projection.view.revision, 2);
    row(&t, "synthesis_finished", "{\"usage\":{\"outputTokens\":2}}");
    assert_int_equal(t.projection.synthesis.output_tokens, 3);
    assert_int_equal(t.projection.view.revision, 2);
    end(&t);
}

static void a_decision_about_the_plan_ends_both_pauses_for_one(void **state)
{
    static const char *const reasons[] = {"signoff", "planning"};
    struct telling t;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char json[100];
        begin(&t);
        (void)snprintf(json, sizeof json, "{\"reason\":\"%s\",\"reviewId\":\"r\"}", reasons[i]);
        row(&t, "plan_paused", json);
        row(&t, "plan_paused", "{\"reason\":\"requested\"}");
        row(&t, "review_decided", "{\"reviewId\":\"s\",\"stepIndex\":0,\"decision\":\"approve\"}");
        assert_int_not_equal(t.projection.paused & ~(1u << PAUSE_REQUESTED), 0);
        row(&t, "review_decided", "{\"reviewId\":\"r\",\"decision\":\"approve\"}");
        assert_int_equal(t.projection.paused, 1u << PAUSE_REQUESTED);
        is(t.history.reviews[0].decision, "approve");
        end(&t);
    }
}

static void work_that_comes_after_the_end_is_paid(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    row(&t, "result_rejected", "{\"usage\":{\"inputTokens\":1}}");
    assert_int_equal(t.projection.total.input_tokens, 0); /* the end has it in its sum */
    row(&t, "plan_completed", "{\"status\":\"failed\",\"usage\":{\"inputTokens\":5}}");
    row(&t, "result_rejected", "{\"usage\":{\"inputTokens\":2}}");
    row(&t, "quality_gate_passed", "{\"stepIndex\":0,\"usage\":{\"inputTokens\":64}}");
    assert_int_equal(t.projection.total.input_tokens, 7);
    end(&t);
}

static void a_decision_is_of_the_review_it_names_or_of_the_last_open_one(void **state)
{
    struct telling t;
    const struct msg_review_record *r;

    (void)state;
    begin(&t);
    row(&t, "plan_step_waiting",
        "{\"stepIndex\":0,\"stepId\":\"a\",\"kind\":\"input\",\"reviewId\":\"r1\"}");
    row(&t, "plan_step_waiting",
        "{\"stepIndex\":1,\"stepId\":\"b\",\"kind\":\"input\",\"reviewId\":\"r2\"}");
    row(&t, "plan_step_waiting",
        "{\"stepIndex\":0,\"stepId\":\"a\",\"kind\":\"input\",\"reviewId\":\"r3\"}");
    row(&t, "review_decided",
        "{\"stepIndex\":0,\"stepId\":\"a\",\"reviewId\":\"r1\",\"decision\":\"skip\"}");
    r = t.history.reviews;
    is(r[0].decision, "skip");
    is(r[1].decision, "");
    is(r[2].decision, "");
    row(&t, "review_decided",
        "{\"stepIndex\":0,\"stepId\":\"a\",\"reviewId\":\"old\",\"decision\":\"reject\","
        "\"comment\":\"no\",\"by\":{\"user\":\"ann\"}}");
    is(r[2].decision, "reject");
    is(r[2].comment, "no");
    is(r[2].by.user, "ann");
    row(&t, "review_decided",
        "{\"stepIndex\":0,\"stepId\":\"a\",\"reviewId\":\"old\",\"decision\":\"approve\"}");
    is(r[0].decision, "skip"); /* none is open */
    is(r[1].decision, "");
    is(r[2].decision, "reject");
    end(&t);
}

static void every_list_of_a_history_has_its_bound(void **state)
{
    static const struct {
        const char *type, *json;
        uint32_t most;
    } lists[] = {
        {"plan_modified", "{\"kind\":\"x\",\"revision\":2}", HISTORY_REVISIONS},
        {"plan_paused", "{\"reason\":\"requested\"}", HISTORY_ORDERS},
        {"plan_step_waiting", "{\"stepIndex\":0,\"kind\":\"input\",\"reviewId\":\"r\"}",
         HISTORY_REVIEWS},
        {"plan_started", "{}", HISTORY_PHASES},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct telling t;
        const struct history *h = &t.history;
        begin(&t);
        for (uint32_t k = 0; k < lists[i].most; k++) {
            row(&t, lists[i].type, lists[i].json);
        }
        assert_false(h->truncated);
        row(&t, lists[i].type, lists[i].json);
        assert_true(h->truncated);
        assert_int_equal(h->revisions_n + h->orders_n + h->reviews_n + h->phases_n, lists[i].most);
        end(&t);
    }
}

/* The number of handoffs that one answer can hold: the others are events. */
static void ten_thousand_handoffs_are_kept_and_more_are_marked(void **state)
{
    static const char json[] =
        "{\"handoffId\":\"h\",\"fromAgent\":{\"agentId\":\"a\"},\"toAgent\":{\"agentId\":"
        "\"b\"},\"reason\":\"agent_request\",\"planStepId\":\"s\",\"stepIndex\":0,"
        "\"usage\":{\"inputTokens\":1}}";
    struct telling t;

    (void)state;
    begin(&t);
    for (uint32_t i = 0; i < 10000; i++) {
        row(&t, "agent_handoff", json);
    }
    assert_int_equal(t.projection.handoffs_n, 10000);
    assert_false(t.projection.handoffs_cut);
    row(&t, "agent_handoff", json);
    assert_int_equal(t.projection.handoffs_n, 10000);
    assert_true(t.projection.handoffs_cut);
    /* what it has cost, and that it happened, is known all the same */
    assert_int_equal(t.projection.view.steps[0].handoffs, 10001);
    assert_int_equal(t.projection.steps[0].usage.input_tokens, 10001);
    end(&t);
}

/* ---- lists of steps ---- */

/* n steps of a plan that are all not whole, laid out. */
static void lay_out_cut(uint32_t n, uint32_t *ret_shown, uint64_t *ret_total)
{
    struct plan_step *steps = calloc(n, sizeof *steps);
    struct step_rules rules = {.gate_agent = AGENT_NONE, .verify_agent = AGENT_NONE};
    struct plan plan = {.n_steps = n, .steps = steps};
    struct arena arena = {.chunks = NULL};
    struct projection laid;
    struct telling t;
    struct bt_error err;
    char json[120];

    assert_non_null(steps);
    begin(&t);
    for (uint32_t i = 0; i < n; i++) {
        steps[i].step_id = STR_LIT("x");
        steps[i].rules = &rules;
        (void)snprintf(json, sizeof json,
                       "{\"stepIndex\":%u,\"status\":\"completed\",\"truncated\":true}", i);
        row(&t, "plan_step_completed", json);
    }
    laid = t.projection;
    laid.arena = (struct arena){.chunks = NULL};
    laid.plan = &plan;
    assert_int_equal(projection_lay_out(&laid, &t.projection, &arena, &err), BT_OK);
    *ret_shown = laid.view.truncated_steps_n;
    *ret_total = laid.view.truncated_steps_total;
    assert_int_equal(laid.view.context_truncated_steps_n, 0);
    assert_int_equal(laid.view.counts.completed, n);
    arena_done(&laid.arena);
    arena_done(&arena);
    end(&t);
    free(steps);
}

static void a_thousand_steps_that_are_not_whole_are_named_and_more_counted(void **state)
{
    uint32_t shown;
    uint64_t total;

    (void)state;
    lay_out_cut(1, &shown, &total);
    assert_true(shown == 1 && total == 0);
    lay_out_cut(1000, &shown, &total);
    assert_true(shown == 1000 && total == 0);
    lay_out_cut(1001, &shown, &total);
    assert_true(shown == 1000 && total == 1001);
}

/* Of what a revision dropped nobody needs the rest. */
static void a_step_that_was_dropped_is_not_named_as_not_whole(void **state)
{
    struct plan_step steps[4] = {{.step_id = STR_LIT("a")},
                                 {.step_id = STR_LIT("b"), .superseded = true},
                                 {.step_id = STR_LIT("c")},
                                 {.step_id = STR_LIT("d"), .superseded = true}};
    struct step_rules rules = {.gate_agent = AGENT_NONE, .verify_agent = AGENT_NONE};
    struct plan plan = {.n_steps = 4, .steps = steps};
    struct arena arena = {.chunks = NULL};
    struct projection laid;
    struct telling t;
    struct bt_error err;
    char json[120];

    (void)state;
    begin(&t);
    for (uint32_t i = 0; i < 4; i++) {
        steps[i].rules = &rules;
        (void)snprintf(json, sizeof json, "{\"stepIndex\":%u,\"contextTruncated\":%s}", i,
                       i < 2 ? "true" : "false");
        row(&t, "step_assigned", json);
        (void)snprintf(json, sizeof json, "{\"stepIndex\":%u,\"status\":\"%s\",\"truncated\":%s}",
                       i, i == 3 ? "skipped" : "completed", i < 2 ? "true" : "false");
        row(&t, "plan_step_completed", json);
    }
    laid = t.projection;
    laid.arena = (struct arena){.chunks = NULL};
    laid.plan = &plan;
    assert_int_equal(projection_lay_out(&laid, &t.projection, &arena, &err), BT_OK);
    assert_int_equal(laid.view.truncated_steps_n, 1);
    is(laid.view.truncated_steps[0], "a");
    assert_int_equal(laid.view.context_truncated_steps_n, 1);
    is(laid.view.context_truncated_steps[0], "a");
    assert_int_equal(laid.view.counts.superseded, 2);
    assert_int_equal(laid.view.counts.total, 2);
    assert_int_equal(laid.view.counts.completed, 2);
    assert_int_equal(laid.view.counts.skipped, 0);
    arena_done(&laid.arena);
    arena_done(&arena);
    end(&t);
}

static void a_time_that_is_not_known_is_not_shown(void **state)
{
    struct telling t;

    (void)state;
    begin(&t);
    t.wall = (msec)0 - 1000; /* that of the row is 0 */
    row(&t, "plan_step_started", "{\"stepIndex\":0,\"attempt\":1}");
    is(t.projection.view.steps[0].started_at, "");
    row(&t, "plan_step_started", "{\"stepIndex\":0,\"attempt\":1}");
    is(t.projection.view.steps[0].started_at, "1970-01-01T00:00:01.000Z");
    end(&t);
}

/* ---- memory ---- */

static const char *const life[][2] = {
    {"planning_started", "{}"},
    {"plan_generated", "{\"planRef\":4,\"planLen\":9,\"revision\":1,\"planner\":\"keyword\"}"},
    {"plan_paused", "{\"reason\":\"signoff\",\"reviewId\":\"r\"}"},
    {"review_decided", "{\"reviewId\":\"r\",\"decision\":\"approve\",\"by\":{\"user\":\"ann\"}}"},
    {"plan_started", "{\"stepCount\":2}"},
    {"plan_step_started", "{\"stepId\":\"a\",\"stepIndex\":0,\"attempt\":1,\"instanceId\":\"i\"}"},
    {"plan_step_waiting",
     "{\"stepIndex\":0,\"stepId\":\"a\",\"kind\":\"input\",\"reviewId\":\"r2\"}"},
    {"plan_paused", "{\"reason\":\"requested\",\"comment\":\"wait\"}"},
    {"plan_resumed", "{\"reason\":\"requested\"}"},
    {"replan_started", "{\"stepId\":\"a\",\"stepIndex\":0,\"attempt\":1,\"diagnosis\":\"d\"}"},
    {"replan_finished", "{\"stepId\":\"a\",\"stepIndex\":0,\"ok\":true,\"revision\":2,"
                        "\"planRef\":5,\"planLen\":9,\"newSteps\":1,\"reason\":\"x\"}"},
    {"plan_modified", "{\"kind\":\"insert\",\"revision\":3,\"planRef\":6,\"planLen\":9}"},
    {"plan_step_completed", "{\"stepIndex\":0,\"status\":\"failed\",\"error\":\"broken\","
                            "\"hint\":\"mend it\"}"},
    {"plan_cancelling", "{\"reason\":\"enough\"}"},
    {"compensation_started", "{\"failureReason\":\"x\"}"},
    {"plan_completed", "{\"status\":\"failed\",\"failureReason\":\"x\",\"summary\":\"s\"}"},
};

enum { LIFE_ROWS = sizeof life / sizeof life[0] };

struct counts {
    uint32_t revisions, replans, phases, reviews, orders, documents;
};

static struct counts count(const struct telling *t)
{
    const struct history *h = &t->history;

    return (struct counts){h->revisions_n, h->replans_n, h->phases_n,
                           h->reviews_n,   h->orders_n,  t->projection.revisions_n};
}

/* The arena of a projection is full after so many bytes: a row is refused, or all that is made of
 * it is there. */
static void a_row_without_memory_is_refused(void **state)
{
    struct counts whole[LIFE_ROWS];
    struct telling t;
    uint32_t refused = 0;
    size_t n = 0;

    (void)state;
    begin(&t);
    for (n = 0; n < LIFE_ROWS; n++) {
        row(&t, life[n][0], life[n][1]);
        whole[n] = count(&t);
    }
    end(&t);
    n = 0;
    for (size_t max = 16; n < LIFE_ROWS; max += 16) {
        begin(&t);
        t.projection.arena.max = max;
        for (n = 0; n < LIFE_ROWS && try_row(&t, life[n][0], life[n][1]); n++) {
            const struct counts got = count(&t);
            if (memcmp(&got, &whole[n], sizeof got) != 0) {
                fail_msg("of %zu bytes row %zu (%s) has left something out", max, n, life[n][0]);
            }
        }
        refused += n < LIFE_ROWS;
        end(&t);
    }
    assert_true(refused > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_far_a_child_plan_is_comes_from_the_progress_of_its_step),
        cmocka_unit_test(usage_of_every_attempt_and_question_counts_for_its_step),
        cmocka_unit_test(a_row_about_the_plan_is_not_taken_for_one_about_its_first_step),
        cmocka_unit_test(each_reason_to_pause_goes_alone),
        cmocka_unit_test(a_plan_is_being_cancelled_until_its_end),
        cmocka_unit_test(a_void_sign_off_is_no_open_one),
        cmocka_unit_test(a_replan_is_a_revision_a_record_and_two_phases),
        cmocka_unit_test(phases_that_failed_say_so_with_the_reason),
        cmocka_unit_test(a_refused_replan_changes_no_revision),
        cmocka_unit_test(lists_are_bounded_and_say_so),
        cmocka_unit_test(usage_adds_up_to_a_bound_and_never_below_zero),
        cmocka_unit_test(each_try_of_a_planner_counts_and_ends_with_the_plan),
        cmocka_unit_test(a_decision_about_the_plan_ends_both_pauses_for_one),
        cmocka_unit_test(work_that_comes_after_the_end_is_paid),
        cmocka_unit_test(a_decision_is_of_the_review_it_names_or_of_the_last_open_one),
        cmocka_unit_test(every_list_of_a_history_has_its_bound),
        cmocka_unit_test(a_row_without_memory_is_refused),
        cmocka_unit_test(a_time_that_is_not_known_is_not_shown),
        cmocka_unit_test(a_step_that_was_dropped_is_not_named_as_not_whole),
        cmocka_unit_test(ten_thousand_handoffs_are_kept_and_more_are_marked),
        cmocka_unit_test(a_thousand_steps_that_are_not_whole_are_named_and_more_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
