/* Topics, times and the small texts around records. */
#include "tests/unit/events/codec_bench.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/golden.h"

static void topic_is(struct bench *b, struct record rec, const char *fmt)
{
    struct record_extra x = extra_of(b, &rec);
    char id[UUID_TEXT_LEN + 1];
    char want[256];

    uuid_format(b->p.plan_id, id);
    (void)snprintf(want, sizeof want, "%.*s%s%s", (int)strcspn(fmt, "@"), fmt,
                   strchr(fmt, '@') != NULL ? id : "",
                   strchr(fmt, '@') != NULL ? strchr(fmt, '@') + 1 : "");
    encode(b, &rec, &x);
    assert_string_equal(buf_cstr(&b->topic), want);
}

static void topics_follow_the_protocol(void **state)
{
    struct bench *b = *state;

    codec_plan_make(&b->p, 2, 2, STR_LIT("t"), 3);
    topic_is(b, (struct record){.type = REC_PLAN_STARTED}, "plan/chat%2F1/@/plan_started");
    topic_is(b,
             (struct record){REC_INIT(HANDOFF, handoff, .from_agent = AGENT_SUPERVISOR), .step = 1,
                             .agent = 1},
             "handoff/chat%2F1/@/supervisor/sql-agent");
    topic_is(b,
             (struct record){REC_INIT(HANDOFF, handoff, .kind = HANDOFF_FALLBACK, .from_agent = 1),
                             .step = 1, .agent = 2},
             "handoff/chat%2F1/@/sql-agent/calc"); /* to whom it went, not whom the plan names */
    topic_is(b, (struct record){.type = REC_GATE_ERROR}, "plan/chat%2F1/@/quality_gate_error");
    topic_is(b, (struct record){.type = REC_PLAN_PAUSED, .step = STEP_NONE},
             "plan/chat%2F1/@/plan_paused");
    topic_is(b, (struct record){.type = REC_RESULT_REJECTED, .step = STEP_NONE}, "");
    topic_is(b, (struct record){REC_INIT(HANDOFF, handoff, .from_agent = 1), .step = 0},
             "handoff/chat%2F1/@/sql-agent/files");
    b->p.plan.session_id = STR_LIT("");
    topic_is(b, (struct record){.type = REC_PLAN_STARTED}, "plan/-/@/plan_started");
    topic_is(b, (struct record){.type = REC_AGENT_DOWN}, "agent/files/agent_down");
    topic_is(b, (struct record){.type = REC_SUPERVISOR_STARTED}, "system/supervisor_started");
    topic_is(b, (struct record){.type = REC_STEP_ASSIGNED}, "");
}

/* B19: two sessions, two topics, however alike their ids look. */
static void two_sessions_never_share_a_topic(void **state)
{
    static const char *const ids[][2] = {{"", "plan/-/@/plan_started"},
                                         {"-", "plan/%2D/@/plan_started"},
                                         {"--", "plan/--/@/plan_started"},
                                         {"a/b", "plan/a%2Fb/@/plan_started"},
                                         {"a\nb", "plan/a%0Ab/@/plan_started"},
                                         {"a_b", "plan/a_b/@/plan_started"},
                                         {"a%2Fb", "plan/a%252Fb/@/plan_started"},
                                         {"a\x1f", "plan/a%1F/@/plan_started"},
                                         {"a ~\xc2\x80", "plan/a ~\xc2\x80/@/plan_started"},
                                         {"a\x7f", "plan/a%7F/@/plan_started"}};
    struct bench *b = *state;

    codec_plan_make(&b->p, 2, 2, STR_LIT("t"), 3);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        b->p.plan.session_id = str_from(ids[i][0]);
        topic_is(b, (struct record){.type = REC_PLAN_STARTED}, ids[i][1]);
    }
}

static void bad_utf8_in_a_text_is_repaired_not_refused(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_STEP_RETRY, .attempt = 1, .text = {"a\xff\0b", 4}};
    struct record_extra x;
    struct record got;

    codec_plan_make(&b->p, 1, 2, STR_LIT("t"), 1);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    got = decode(b, &rec, 1, 0);
    assert_true(str_is(got.text, "a??b"));
}

static void time_is_rebased_and_never_below_zero(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_PLAN_STARTED, .now = 5000, .wall = 100000};
    struct record_extra x;

    codec_plan_make(&b->p, 1, 2, STR_LIT("t"), 1);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_int_equal(decode(b, &rec, 900, 100300).now, 600);
    assert_int_equal(decode(b, &rec, 200, 100300).now, 0);  /* the machine was started later */
    assert_int_equal(decode(b, &rec, 200, 99000).now, 200); /* the wall clock was set back */
}

static void review_ids_come_back(void **state)
{
    struct bench *b = *state;
    struct uuid plan = uuid_new();
    struct review_id id;

    buf_clear(&b->body);
    review_id_format(plan, STR_LIT("a/b"), 100, &b->body);
    assert_true(review_id_parse(buf_str(&b->body), &id));
    assert_true(uuid_eq(id.plan_id, plan) && str_is(id.step_id, "a/b") && id.serial == 100);
    for (size_t cut = 1; cut < b->body.len; cut++) {
        struct str s = {(char *)b->body.at, b->body.len - cut};
        if (cut > 2) {
            assert_false(review_id_parse(s, &id) && str_is(id.step_id, "a/b"));
        }
    }
    buf_clear(&b->body);
    review_id_format(plan, (struct str){NULL, 0}, 3, &b->body);
    assert_int_equal(b->body.len, UUID_TEXT_LEN + 3); /* the plan as a whole */
    assert_true(review_id_parse(buf_str(&b->body), &id));
    assert_true(uuid_eq(id.plan_id, plan) && id.step_id.len == 0 && id.serial == 3);
}

/* "P" is the plan's id. */
static void ids_of_older_journals_are_read_and_have_no_serial(void **state)
{
    static const struct {
        const char *text, *step;
        uint32_t serial, attempt;
        bool fits;
    } ids[] = {
        {"", "", 0, 0, true},
        {"/a/1", "a", 0, 1, true},
        {"/a/b/12", "a/b", 0, 12, true},
        {"/r1/2", "r1", 0, 2, true},
        {"/r1", "", 1, 0, true},
        {"/r1/r2", "r1", 2, 0, true},
        {"/a/r999999999", "a", 999999999, 0, true},
        {"/", "", 0, 0, false},
        {"/a", "", 0, 0, false},
        {"/1", "", 0, 0, false},
        {"//1", "", 0, 0, false},
        {"//r1", "", 0, 0, false},
        {"/r", "", 0, 0, false},
        {"/r0", "", 0, 0, false},
        {"/a/r", "", 0, 0, false},
        {"/a/r1x", "", 0, 0, false},
        {"/a/r1 ", "", 0, 0, false},
        {"/a/r1000000000", "", 0, 0, false},
        {"/a/-1", "", 0, 0, false},
        {"x/a/r1", "", 0, 0, false},
    };
    struct bench *b = *state;
    struct review_id id;

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        buf_clear(&b->body);
        review_id_format(uuid_new(), (struct str){NULL, 0}, 1, &b->body);
        buf_truncate(&b->body, UUID_TEXT_LEN);
        buf_add_cstr(&b->body, ids[i].text);
        assert_int_equal(review_id_parse(buf_str(&b->body), &id), ids[i].fits);
        if (ids[i].fits) {
            assert_true(str_is(id.step_id, ids[i].step));
            assert_int_equal(id.serial, ids[i].serial);
            assert_int_equal(id.attempt, ids[i].attempt);
        }
    }
    assert_false(review_id_parse(STR_LIT("x"), &id));
    assert_false(review_id_parse(STR_LIT(""), &id));
}

static void handoffs_say_why(void **state)
{
    struct bench *b = *state;
    static const char *const WANT[HANDOFF_KIND_COUNT] = {
        "Executing plan step: count", "it knows more", "Returning control after step: count",
        "Falling back to another agent for step: count"};

    codec_plan_make(&b->p, 1, 2, STR_LIT("count"), 1);
    for (int k = 0; k < HANDOFF_KIND_COUNT; k++) {
        struct record rec = {REC_INIT(HANDOFF, handoff, .kind = (enum handoff_kind)k,
                                      .from_agent = AGENT_SUPERVISOR),
                             .agent = 1, .text = STR_LIT("it knows more")};
        struct record_extra x = extra_of(b, &rec);
        struct msg_ev_agent_handoff ev;
        struct bt_error err;
        encode(b, &rec, &x);
        assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_agent_handoff, &ev, &err),
                  err);
        assert_true(str_is(ev.explanation, WANT[k]));
        assert_true(str_is(ev.reason, handoff_kind_name((enum handoff_kind)k)));
        assert_true(str_is(ev.from_agent.agent_name, "supervisor"));
        assert_true(str_is(ev.to_agent.agent_name, "The SQL agent"));
    }
}

static void failure_reasons_read_as_documented(void **state)
{
    struct bench *b = *state;
    const struct {
        struct record rec;
        const char *want;
    } cases[] = {
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_STEP), .step = 2,
          .text = STR_LIT("no such table")},
         "Step 3 failed: no such table"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_TIMEOUT),
          .step = STEP_NONE, .text = STR_LIT("Execution timeout after 9ms")},
         "Execution timeout after 9ms"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_TIMEOUT),
          .step = STEP_NONE},
         "Execution timeout after 100000ms"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_NOTHING_COMPLETED),
          .step = STEP_NONE},
         "No step completed"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_MAX_REPLANS), .step = 0,
          .text = STR_LIT("Max replans (5) exceeded. Last error: no such table")},
         "Max replans (5) exceeded. Last error: no such table"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_BUDGET), .step = 0},
         "Budget exceeded"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_REPLAN), .step = 0},
         "No new plan could be made"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_REPAIR_INVALID),
          .step = 0},
         "The new plan is not valid"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_REJECTED,
                   .status = PLAN_CANCELLED),
          .text = STR_LIT("no")},
         "no"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_REJECTED,
                   .status = PLAN_CANCELLED)},
         "Rejected by a reviewer"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_CANCELLED),
          .text = STR_LIT("enough")},
         "Cancelled: enough"},
        {{REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_COMPLETED), .step = STEP_NONE},
         ""},
    };

    codec_plan_make(&b->p, 3, 2, STR_LIT("t"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&b->body);
        plan_failure_reason(&cases[i].rec, &b->p.plan, &b->body);
        assert_string_equal(buf_cstr(&b->body), cases[i].want);
    }
}

/* Which setting it was, and what it is. */
static void a_timeout_names_its_setting(void **state)
{
    static const struct {
        const char *error, *want;
    } cases[] = {
        {"Step execution timeout",
         "no result after 1.500 s (timeoutMs: 1500); set timeoutMs of the "
         "step, or stepTimeoutMs of the policy"},
        {"No progress for 2000 ms",
         "no progress after 2 s (idleTimeoutMs: 2000); set idleTimeoutMs of the step or policy"},
        {"Step limit of 3001 ms",
         "no result after 3.001 s (stepLimitMs: 3001); set stepLimitMs of the step or policy"},
        {"no such table", NULL},
    };
    struct bench *b = *state;
    struct step_policy *policy;
    char want[512];

    codec_plan_make(&b->p, 3, 2, STR_LIT("t"), 1);
    policy = (struct step_policy *)(uintptr_t)&b->p.plan.steps[1].rules->policy;
    policy->timeout_ms = 1500;
    policy->idle_ms = 2000;
    policy->limit_ms = 3001;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct record rec = {
            REC_INIT(PLAN_COMPLETED, plan_completed, .failure = PLAN_FAILURE_STEP), .step = 1,
            .text = str_from(cases[i].error)};
        buf_clear(&b->body);
        plan_failure_text(&rec, &b->p.plan, &b->body);
        (void)snprintf(want, sizeof want, "Step 2 failed: %s%s%s", cases[i].error,
                       cases[i].want != NULL ? "; " : "",
                       cases[i].want != NULL ? cases[i].want : "");
        assert_string_equal(buf_cstr(&b->body), want);
    }
}

/* Every end of a plan, with and without a sentence of the core, and about a step, the last one and
 * none; every hint about a timeout. In texts_told.txt. */
static void every_end_is_told_as_it_was(void **state)
{
    static const char *const texts[] = {"", "x", "No progress for "};
    static const uint32_t steps[] = {0, 2, 3, STEP_NONE};
    static const char *const errors[] = {"Step execution timeout", "Step execution timeouts",
                                         "No progress for 1 ms",   "No progress for",
                                         "Step limit of ",         "Step limit of",
                                         "No step limit of 1 ms",  ""};
    static const msec times[] = {0, 1, 999, 1000, 1001, 60000, 60010, MSEC_NEVER};
    struct bench *b = *state;
    char *was = golden_read(TOLD);
    struct buf out;

    codec_plan_make(&b->p, 3, 2, STR_LIT("t"), 1);
    b->p.steps[0].rules->policy.idle_ms = 7;
    b->p.steps[2].rules->policy.idle_ms = 8000;
    buf_init(&out, GOLDEN_MAX);
    for (int failure = 0; failure < PLAN_FAILURE_COUNT; failure++) {
        for (int status = PLAN_COMPLETED; status < PLAN_STATUS_COUNT; status++) {
            for (size_t i = 0; i < sizeof texts / sizeof texts[0] * 4; i++) {
                const struct record rec = {REC_INIT(PLAN_COMPLETED, plan_completed,
                                                    .failure = (enum plan_failure)failure,
                                                    .status = (enum plan_status)status),
                                           .step = steps[i % 4], .text = str_from(texts[i / 4])};
                buf_printf(&out,
                           "%s %s step %d '%s': ", plan_failure_name((enum plan_failure)failure),
                           plan_status_name((enum plan_status)status), (int)rec.step, texts[i / 4]);
                plan_failure_reason(&rec, &b->p.plan, &out);
                buf_add_cstr(&out, " | ");
                plan_failure_text(&rec, &b->p.plan, &out);
                buf_add_cstr(&out, "\n");
            }
        }
    }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
            const struct step_policy policy = {
                .timeout_ms = times[k], .idle_ms = times[k] / 2, .limit_ms = times[k] / 3};
            buf_printf(&out, "%llu '%s': ", (unsigned long long)times[k], errors[i]);
            plan_timeout_hint(&policy, str_from(errors[i]), &out);
            buf_add_cstr(&out, "\n");
        }
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_timeout_names_its_setting),
        TEST(topics_follow_the_protocol),
        TEST(two_sessions_never_share_a_topic),
        TEST(bad_utf8_in_a_text_is_repaired_not_refused),
        TEST(time_is_rebased_and_never_below_zero),
        TEST(review_ids_come_back),
        TEST(ids_of_older_journals_are_read_and_have_no_serial),
        TEST(handoffs_say_why),
        TEST(failure_reasons_read_as_documented),
        TEST(every_end_is_told_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
