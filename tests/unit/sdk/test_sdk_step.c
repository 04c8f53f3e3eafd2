/* The request as a handler reads it, and the reply that it makes. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/card.h"
#include "agents/sdk/step.h"
#include "protocol/base/utf8.h"

static struct bt_step *make(const char *json)
{
    struct bt_error err;
    struct bt_step *step = NULL;

    if (step_new_from_json(str_from(json), "probe", &step, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return step;
}

static void expect(struct bt_step *step, const char *part)
{
    struct bt_error err;
    struct buf out;

    reply_finish(&step->reply, atomic_load(&step->cancelled), step_is_late(step));
    buf_init(&out, LIMIT_STEP_BYTES * 2);
    if (step_reply_json(step, &out, &err) != BT_OK) {
        fail_msg("the reply does not fit the wire: %s", err.msg);
    }
    if (strstr(buf_cstr(&out), part) == NULL) {
        fail_msg("expected %s in %.2000s", part, buf_cstr(&out));
    }
    buf_done(&out);
    step_free(step);
}

static void parameters_are_found_by_path_or_fall_back(void **state)
{
    struct bt_step *s =
        make("{\"task\":\"t\",\"parameters\":{\"a\":{\"b\":[1,\"two\",-2.5]},\"yes\":true,"
             "\"n\":null}}");

    (void)state;
    assert_string_equal(bt_step_task(s), "t");
    assert_string_equal(bt_step_param_string(s, "a.b.1", "no"), "two");
    assert_string_equal(bt_step_param_string(s, "a.b.0", "no"), "no"); /* another type */
    assert_true(bt_step_param_number(s, "a.b.2", 0) == -2.5);
    assert_true(bt_step_param_bool(s, "yes", false));
    for (int fallback = 0; fallback < 2; fallback++) { /* missing, or of another type */
        assert_int_equal(bt_step_param_bool(s, "a.b.1", fallback), fallback);
        assert_int_equal(bt_step_param_bool(s, "nowhere", fallback), fallback);
        assert_true(bt_step_param_number(s, "yes", fallback) == fallback);
        assert_true(bt_step_param_number(s, "nowhere", fallback) == fallback);
    }
    assert_true(bt_step_param_number(s, "a.b.0", 0) == 1);
    assert_true(bt_step_has_param(s, "n"));
    assert_false(bt_step_has_param(s, "a.c"));
    assert_string_equal(bt_step_params_json(s, "a.b"), "[1,\"two\",-2.5]");
    assert_null(bt_step_params_json(s, "x"));
    step_free(s);
    s = make("{}");
    assert_string_equal(bt_step_params_json(s, ""), "{}");
    assert_string_equal(bt_step_param_string(s, "x", "fallback"), "fallback");
    step_free(s);
}

static void a_dependency_gives_its_data_else_its_text(void **state)
{
    struct bt_step *s = make(
        "{\"context\":{\"text\":\"before\",\"dependencies\":["
        "{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":{\"text\":\"shown\",\"data\":{\"n\":1},"
        "\"truncated\":true}},"
        "{\"stepId\":\"b\",\"agentId\":\"x\",\"result\":{\"text\":\"only\"}},"
        "{\"stepId\":\"c\",\"agentId\":\"x\",\"result\":{\"text\":\"own\",\"more\":1}},"
        "{\"stepId\":\"d\",\"agentId\":\"x\",\"truncated\":true}]}}");

    (void)state;
    assert_string_equal(bt_step_context_text(s), "before");
    assert_int_equal(bt_step_dependency_count(s), 4);
    assert_string_equal(bt_step_dependency_id(s, 1), "b");
    assert_string_equal(bt_step_dependency_json(s, 0), "{\"n\":1}");
    assert_string_equal(bt_step_dependency_text(s, 0), "shown");
    assert_string_equal(bt_step_dependency_json(s, 1), "\"only\"");
    assert_string_equal(bt_step_dependency_json(s, 2), "{\"text\":\"own\",\"more\":1}");
    assert_string_equal(bt_step_dependency_json(s, 3), "null");
    assert_string_equal(bt_step_dependency_text(s, 3), "");
    assert_null(bt_step_dependency_json(s, 4));
    assert_null(bt_step_dependency_id(s, 4));
    step_free(s);
}

static void the_request_is_one_json_object_with_the_dependencies_once(void **state)
{
    struct bt_step *s =
        make("{\"task\":\"t\",\"parameters\":{\"a\":1},\"context\":{\"text\":\"before\","
             "\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":\"r1\"}]}}");
    const char *json = bt_step_request_json(s);

    (void)state;
    assert_non_null(strstr(json, "\"parameters\":{\"a\":1}"));
    assert_non_null(strstr(json, "\"attempt\":1"));
    assert_non_null(strstr(json, "\"text\":\"before\""));
    assert_ptr_equal(strstr(json, "r1"), strrchr(json, 'r')); /* nowhere else */
    assert_null(strstr(json, "sessionKey"));
    step_free(s);
}

static void what_a_request_is_for_and_may_cost_is_there_to_be_asked(void **state)
{
    struct bt_step *s = make("{\"task\":\"t\"}");

    (void)state;
    assert_string_equal(bt_step_purpose(s), "execute");
    assert_null(bt_step_result_json(s));
    assert_true(bt_step_budget_tokens(s) == UINT64_MAX);
    assert_true(bt_step_budget_micros(s) == UINT64_MAX);
    assert_int_equal(bt_step_idle_ms(s), 0);
    step_free(s);
    s = make("{\"purpose\":\"verify\",\"result\":{\"text\":\"5\"},\"idleMs\":700,"
             "\"budget\":{\"tokens\":0},\"feedback\":\"too short\"}");
    assert_string_equal(bt_step_purpose(s), "verify");
    assert_string_equal(bt_step_result_json(s), "{\"text\":\"5\"}");
    assert_int_equal(bt_step_budget_tokens(s), 0); /* a spent budget differs from no budget */
    assert_true(bt_step_budget_micros(s) == UINT64_MAX);
    assert_int_equal(bt_step_idle_ms(s), 700);
    assert_string_equal(bt_step_feedback(s), "too short");
    const char *json = bt_step_request_json(s);
    assert_non_null(strstr(json, "\"purpose\":\"verify\""));
    assert_non_null(strstr(json, "\"result\":{\"text\":\"5\"}"));
    assert_non_null(strstr(json, "\"idleMs\":700"));
    assert_non_null(strstr(json, "\"budget\":{\"tokens\":0}"));
    step_free(s);
}

static void purpose_that_is_not_known_or_has_no_skill_is_refused(void **state)
{
    static const char *const questions[] = {"gate", "verify",     "replan",
                                            "plan", "synthesize", "converse"};
    struct bt_step *step = NULL;
    struct bt_error err = {.code = BT_OK};
    char json[64];

    (void)state;
    assert_int_equal(step_new_from_json(STR_LIT("{\"purpose\":\"dance\"}"), "probe", &step, &err),
                     BT_INVALID);
    assert_non_null(strstr(err.msg, "dance"));
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        (void)snprintf(json, sizeof json, "{\"purpose\":\"%s\"}", questions[i]);
        /* Without a skill the only skill of an agent would execute the step instead of judging
         * it. */
        assert_int_equal(step_new_from_json(str_from(json), "", &step, &err), BT_NOT_FOUND);
        step_free(make(json));
    }
    step_free(make("{\"purpose\":\"search\"}"));
}

static void verdicts_have_their_form(void **state)
{
    char long_text[6000];
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_reply_verdict(s, true, "all %d are there", 3);
    expect(s,
           "\"outcome\":\"completed\",\"result\":{\"data\":{\"passed\":true,\"diagnosis\":\"all 3 "
           "are there\"}}");
    s = make("{}");
    bt_step_reply_verdict(s, false, "bad byte \xFF");
    expect(s, "\"passed\":false,\"diagnosis\":\"bad byte \xEF\xBF\xBD\"");
    memset(long_text, 'a', sizeof long_text);
    long_text[4094] = '\xC3'; /* the cut is in the middle of it */
    long_text[4095] = '\xBC';
    long_text[sizeof long_text - 1] = 0;
    s = make("{}");
    bt_step_reply_verdict(s, false, "%s", long_text);
    expect(s, "a\xEF\xBF\xBD\"}}");
}

/* The parts of a result add up, so one that was refused must not vanish behind the others. */
static void a_refused_part_of_a_result_fails_whatever_is_added_to_it(void **state)
{
    static char byte[] = "a\xff";
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_reply_json(s, "{\"a\":}", 6);
    bt_step_reply_text(s, "done");
    bt_step_reply_truncated(s);
    expect(s, "\"class\":\"VALIDATION_ERROR\",\"message\":\"the handler's result: ");
    s = make("{}");
    bt_step_reply_bytes(s, byte, 2);
    bt_step_reply_json(s, "[1]", 3);
    expect(s, "not UTF-8");
    s = make("{}");
    bt_step_reply_state_json(s, "{", 1);
    bt_step_reply_artifact(s, "f", NULL, "file:///f");
    bt_step_reply_text(s, "done");
    expect(s, "the handler's state: ");
    s = make("{}");
    for (int i = 0; i <= REPLY_ARTIFACTS_MAX; i++) {
        bt_step_reply_artifact(s, "f", NULL, "file:///f");
    }
    bt_step_reply_text(s, "done");
    expect(s, "at most 64 artifacts");
}

/* A map of one text: its bytes in msgpack are the text's and 6. */
static struct bt_step *with_state_of(size_t text)
{
    char *patch = malloc(text + 9);
    struct bt_step *s = make("{}");

    assert_non_null(patch);
    memset(patch, 'x', text + 8);
    memcpy(patch, "{\"a\":\"", 6);
    memcpy(patch + 6 + text, "\"}", 2);
    bt_step_reply_state_json(s, patch, text + 8);
    bt_step_reply_text(s, "kept");
    free(patch);
    return s;
}

static void a_state_has_so_many_bytes_and_not_one_more(void **state)
{
    (void)state;
    expect(with_state_of(LIMIT_STATE_BYTES - 6),
           "\"outcome\":\"completed\",\"result\":{\"text\":\"kept\"},\"state\":{\"a\":\"xx");
    expect(with_state_of(LIMIT_STATE_BYTES - 5), "the handler's state: 65537 bytes, at most 65536");
}

static void another_outcome_follows_a_refused_part(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_reply_json(s, "{\"a\":}", 6);
    bt_step_fail(s, "RATE_LIMITED", true, "later");
    expect(s, "\"message\":\"later\"");
    s = make("{}");
    bt_step_reply_json(s, "{\"a\":}", 6);
    bt_step_need_approval(s, "May I?");
    expect(s, "\"outcome\":\"needs_approval\"");
    s = make("{}");
    bt_step_reply_json(s, "{\"a\":}", 6);
    bt_step_fail(s, "RATE_LIMITED", true, "later");
    bt_step_reply_text(s, "now");
    expect(s, "\"result\":{\"text\":\"now\"}");
}

static void break_part(struct bt_step *s, int part)
{
    switch (part) {
    case 0:
        bt_step_reply_bytes(s, "\xff", 1);
        break;
    case 1:
        bt_step_reply_json(s, "{", 1);
        break;
    case 2:
        bt_step_reply_state_json(s, "{", 1);
        break;
    default:
        for (int i = 0; i <= 64; i++) {
            bt_step_reply_artifact(s, "f", NULL, "file:///f");
        }
        break;
    }
}

static void of_several_parts_that_are_broken_the_first_is_told(void **state)
{
    static const char *const says[] = {
        "the handler's text is not UTF-8",
        "the handler's result: ", "the handler's state: ", "a result has at most 64 artifacts"};

    (void)state;
    for (int first = 0; first < 4; first++) {
        for (int second = 0; second < 4; second++) {
            struct bt_step *s = make("{}");
            break_part(s, first);
            break_part(s, second);
            bt_step_reply_text(s, "well");
            bt_step_reply_truncated(s);
            expect(s, says[first]);
        }
    }
}

static void text_and_data_go_together_and_the_last_word_counts(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_fail(s, "TIMEOUT", true, "not yet");
    bt_step_reply_text(s, "%d things", 3);
    bt_step_reply_json(s, "[1]", 3);
    expect(s, "\"outcome\":\"completed\",\"result\":{\"text\":\"3 things\",\"data\":[1]}");
    s = make("{}");
    bt_step_reply_text(s, "done");
    bt_step_reply_artifact(s, "f", NULL, "file:///f");
    bt_step_fail(s, "RATE_LIMITED", true, "100%% of %s", "it");
    expect(s,
           "\"outcome\":\"failed\",\"failure\":{\"code\":\"INTERNAL\",\"class\":\"RATE_LIMITED\","
           "\"message\":\"100% of it\",\"retryable\":true}");
    s = make("{}");
    bt_step_reply_json(s, "[1]", 3);
    bt_step_reply_truncated(s);
    expect(s, "\"outcome\":\"completed\",\"result\":{\"data\":[1],\"truncated\":true}");
    s = make("{}");
    bt_step_reply_state_json(s, "{\"n\":1,\"gone\":null}", 19);
    bt_step_reply_text(s, "ok");
    expect(s, "\"outcome\":\"completed\",\"result\":{\"text\":\"ok\"},\"state\":{\"n\":1,"
              "\"gone\":null}");
    s = make("{}");
    bt_step_reply_state_json(s, "{", 1);
    expect(s, "the handler's state: ");
    s = make("{}");
    bt_step_reply_state_json(s, "{\"n\":1}", 7);
    bt_step_fail(s, "TIMEOUT", true, "no");
    expect(s, "\"message\":\"no\",\"retryable\":true}");
    s = make("{}");
    bt_step_reply_truncated(s);
    bt_step_fail(s, "TIMEOUT", true, "no");
    bt_step_reply_text(s, "whole");
    expect(s, "\"result\":{\"text\":\"whole\"}");
    s = make("{}");
    bt_step_reply_text(s, "%s", "");
    expect(s, "\"result\":{\"text\":\"\"}"); /* an empty text is an answer */
    s = make("{}");
    bt_step_reply_text(s, "first");
    bt_step_need_approval(s, "May I?");
    bt_step_reply_json(s, "{\"n\":1}", 7);
    expect(s, "\"result\":{\"data\":{\"n\":1}}"); /* and no text of before */
    s = make("{}");
    bt_step_reply_text(s, "first");
    bt_step_fail(s, "TIMEOUT", true, "no");
    bt_step_reply_json(s, "{\"n\":1}", 7);
    expect(s, "\"result\":{\"data\":{\"n\":1}}");
}

static void wait_that_a_service_asks_for_goes_with_the_failure_only(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_fail(s, "RATE_LIMITED", true, "slow down");
    bt_step_retry_after(s, 1500);
    expect(s, "\"retryable\":true,\"retryAfterMs\":1500}");
    s = make("{}");
    bt_step_fail(s, "RATE_LIMITED", true, "slow down");
    bt_step_retry_after(s, 1500);
    bt_step_fail(s, "TIMEOUT", true, "something else");
    expect(s, "\"message\":\"something else\",\"retryable\":true}");
    s = make("{}");
    bt_step_retry_after(s, 1500);
    bt_step_reply_text(s, "done");
    expect(s, "\"result\":{\"text\":\"done\"}");
}

static void silence_is_a_failure_with_its_cause(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    expect(s, "returned without an answer");
    s = make("{}");
    atomic_store(&s->cancelled, true);
    expect(s, "\"class\":\"CANCELLED\"");
    s = make("{\"deadlineMs\":1}");
    while (!bt_step_cancelled(s)) {
    }
    assert_int_equal(bt_step_time_left_ms(s), 0);
    s->reply.once = true; /* an unsafe one is not done twice */
    expect(s, "\"class\":\"TIMEOUT\",\"message\":\"the deadline passed before the step was "
              "done\",\"retryable\":false");
    s = make("{\"deadlineMs\":1}");
    while (!bt_step_cancelled(s)) {
    }
    expect(s, "done\",\"retryable\":true");
    s = make("{}");
    assert_true(bt_step_time_left_ms(s) == UINT64_MAX);
    step_free(s);
}

static void what_is_no_result_fails_the_step_clearly(void **state)
{
    char *large = malloc(LIMIT_RESULT_BYTES + 1);
    struct bt_step *s = make("{}");

    (void)state;
    assert_non_null(large);
    memset(large, 'x', LIMIT_RESULT_BYTES + 1);
    bt_step_reply_bytes(s, large, LIMIT_RESULT_BYTES + 1);
    expect(s, "result_too_large: 3145729 or more bytes, at most 3145728; use artifact: true where "
              "the skill has it, or ask for less\",\"retryable\":false");
    s = make("{}");
    bt_step_reply_bytes(s, large, LIMIT_RESULT_BYTES);
    expect(s, "\"outcome\":\"completed\"");
    s = make("{}");
    bt_step_reply_bytes(s, large, LIMIT_RESULT_BYTES / 2);
    large[0] = '"';
    large[LIMIT_RESULT_BYTES / 2] = '"';
    bt_step_reply_json(s, large, LIMIT_RESULT_BYTES / 2 + 1);
    expect(s, "result_too_large"); /* together */
    free(large);
    s = make("{}");
    bt_step_reply_json(s, "{\"a\":}", 6);
    expect(s, "VALIDATION_ERROR");
    s = make("{}");
    bt_step_reply_state_json(s, "{\"a\":}", 6);
    expect(s, "\"class\":\"VALIDATION_ERROR\",\"message\":\"the handler's state: ");
    s = make("{}");
    bt_step_reply_bytes(s, "a\xff", 2);
    expect(s, "not UTF-8");
    s = make("{}");
    bt_step_reply_bytes(s, "a\0b", 3);
    expect(s, "zero bytes");
    s = make("{}");
    bt_step_fail(s, "NO_SUCH_CLASS", false, "bad \xff byte");
    expect(s, "\"class\":\"UNKNOWN\",\"message\":\"bad ");
    s = make("{}");
    for (int i = 0; i < 65; i++) {
        bt_step_reply_artifact(s, "f", NULL, NULL);
    }
    expect(s, "at most 64 artifacts");
}

static void needs_and_handoffs_have_their_form(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_need_approval(s, "delete %s?", "it");
    expect(s, "\"outcome\":\"needs_approval\",\"need\":{\"kind\":\"approval\",\"prompt\":\"delete "
              "it?\"}");
    s = make("{}");
    bt_step_need_input(s, "{\"type\":\"string\"}", "name?");
    expect(s,
           "\"need\":{\"kind\":\"input\",\"prompt\":\"name?\",\"schema\":{\"type\":\"string\"}}");
    s = make("{}");
    bt_step_need_input(s, "{", "name?");
    expect(s, "\"outcome\":\"failed\"");
    s = make("{}");
    bt_step_handoff(s, "sql", "it is %s", "theirs");
    expect(s, "\"handoff\":{\"toAgentId\":\"sql\",\"reason\":\"it is theirs\"}");
    for (int more = 0; more < 2; more++) { /* a reason has 2048 bytes at most */
        s = make("{}");
        bt_step_handoff(s, "sql", "%*s", 2048 + more, "x");
        expect(s, more ? " \"}" : "x\"}");
    }
}

static void calls_have_their_form_and_a_turn_has_a_cap(void **state)
{
    struct bt_step *s = make("{\"tools\":[{\"agentId\":\"t\",\"skill\":\"do\"}],\"turnsLeft\":7}");
    char list[64 * (LIMIT_CALLS + 1)];

    (void)state;
    assert_int_equal(bt_step_turns_left(s), 7);
    assert_string_equal(bt_step_tools_json(s), "[{\"agentId\":\"t\",\"skill\":\"do\"}]");
    assert_null(bt_step_turns_json(s));
    bt_step_call(s, "[{\"id\":\"c1\",\"agentId\":\"t\",\"skill\":\"do\",\"parameters\":{\"n\":1}}]",
                 "{\"why\":\"so\"}");
    expect(s, "\"outcome\":\"calls\",\"result\":{\"data\":{\"why\":\"so\"}}");
    s = make("{}");
    bt_step_call(s, "[{\"id\":\"c1\",\"agentId\":\"t\",\"skill\":\"do\",\"parameters\":{\"n\":1}}]",
                 NULL);
    expect(
        s,
        "\"calls\":[{\"id\":\"c1\",\"agentId\":\"t\",\"skill\":\"do\",\"parameters\":{\"n\":1}}]");
    for (size_t n = LIMIT_CALLS; n <= LIMIT_CALLS + 1; n++) {
        size_t at = 0;
        for (size_t i = 0; i < n; i++) {
            at += (size_t)snprintf(list + at, sizeof list - at,
                                   "%c{\"id\":\"c%zu\",\"agentId\":\"t\",\"skill\":\"do\"}",
                                   i == 0 ? '[' : ',', i);
        }
        (void)snprintf(list + at, sizeof list - at, "]");
        s = make("{}");
        bt_step_call(s, list, NULL);
        expect(s, n <= LIMIT_CALLS ? "\"id\":\"c15\"" : "expected a list of 1 to 16 calls");
    }
    s = make("{}");
    bt_step_call(s, "[]", NULL);
    expect(s, "\"class\":\"VALIDATION_ERROR\"");
    s = make("{}");
    bt_step_call(s, "[7]", NULL);
    expect(s, "calls[0]: expected {id, agentId, skill, parameters}");
    s = make("{}");
    bt_step_call(s, "no json", NULL);
    expect(s, "\"outcome\":\"failed\"");
}

static void usage_adds_up_and_never_overflows(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    bt_step_add_usage(s, 1, 2, 3, UINT64_MAX);
    bt_step_add_usage(s, 1, 2, 3, 4);
    bt_step_reply_text(s, "x");
    expect(s, "\"usage\":{\"inputTokens\":2,\"outputTokens\":4,\"cachedTokens\":6,"
              "\"costMicros\":9223372036854775807}");
}

static uint32_t notified;

static void notify(struct bt_step *step, void *runtime)
{
    (void)step;
    (void)runtime;
    notified++;
}

static void only_the_newest_progress_travels(void **state)
{
    struct bt_step *s = make("{}");
    struct step_progress p;
    char text[2000];

    (void)state;
    s->notify = notify;
    bt_step_progress(s, 1, "one");
    bt_step_progress(s, 2, "two");
    assert_int_equal(notified, 1); /* the runtime is woken once for both */
    assert_true(step_take_progress(s, &p));
    assert_string_equal(p.text, "two");
    assert_int_equal(p.n, 2);
    assert_false(step_take_progress(s, &p));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    bt_step_progress(s, 1e9, text);
    assert_int_equal(notified, 2);
    assert_true(step_take_progress(s, &p));
    assert_int_equal(strlen(p.text), STEP_PROGRESS_TEXT_MAX);
    assert_true(p.percent < 0);
    step_free(s);
}

/* Takes one piece as the runtime does; "" when there is none. */
static const char *piece_of(struct bt_step *s, struct step_progress *p)
{
    return step_stream_piece(s, p) == 0 ? "" : p->text;
}

static void stream_travels_whole_and_in_order(void **state)
{
    struct bt_step *s = make("{}");
    struct step_progress p;
    char all[4096] = "";
    char text[2001];
    char before[STEP_PROGRESS_TEXT_MAX + 1];
    uint64_t n = 0;

    (void)state;
    for (size_t i = 0; i < 2000; i += 2) {
        memcpy(text + i, i % 4 == 0 ? "\xc3\xa9" : "\xc3\xa8", 2);
    }
    text[2000] = 0;
    bt_step_stream(s, "a", 1);
    bt_step_stream(s, text, 2000);
    bt_step_stream(s, "\xff", 1); /* not UTF-8 */
    bt_step_stream(s, "", 0);
    while (step_stream_waits(s)) {
        size_t len = step_stream_piece(s, &p);
        assert_int_equal(len, strlen(p.text));
        assert_true(p.n > n); /* so that a duplicate is recognised */
        n = p.n;
        assert_true(strlen(p.text) <= STEP_PROGRESS_TEXT_MAX);
        assert_true(utf8_valid(p.text, strlen(p.text)));
        (void)snprintf(before, sizeof before, "%s", p.text);
        /* its answer was lost: the same piece again */
        assert_string_equal(piece_of(s, &p), before);
        assert_int_equal(p.n, n);
        (void)strncat(all, p.text, sizeof all - strlen(all) - 1);
        step_stream_answered(s, true);
    }
    assert_int_equal(strlen(all), 2001);
    assert_string_equal(all + 1, text);
    assert_true(bt_step_stream_flush(s, 10000));
    step_free(s);
}

static void stream_that_begins_anew_says_so_once(void **state)
{
    struct bt_step *s = make("{}");
    struct step_progress p;

    (void)state;
    bt_step_stream(s, "never told", 10);
    bt_step_stream_reset(s);
    bt_step_stream(s, "one", 3);
    assert_string_equal(piece_of(s, &p), "one");
    assert_false(p.reset); /* no reader has received a void piece */
    bt_step_stream(s, "two", 3);
    bt_step_stream_reset(s);
    bt_step_stream(s, "three", 5);
    assert_string_equal(piece_of(s, &p), "one"); /* its answer is still to come */
    assert_false(p.reset);
    step_stream_answered(s, true);
    assert_string_equal(piece_of(s, &p), "three");
    assert_true(p.reset);
    assert_string_equal(piece_of(s, &p), "three");
    assert_true(p.reset);
    step_stream_answered(s, true);
    bt_step_stream(s, "four", 4);
    assert_string_equal(piece_of(s, &p), "four");
    assert_false(p.reset);
    step_free(s);
}

static void nothing_is_streamed_behind_a_hole(void **state)
{
    static char big[700 * 1024];
    struct bt_step *s = make("{}");
    struct step_progress p;

    (void)state;
    bt_step_stream(s, "one", 3);
    /* no piece is in transit: the answer belongs to another request */
    step_stream_answered(s, false);
    assert_string_equal(piece_of(s, &p), "one");
    bt_step_stream(s, "two", 3);
    step_stream_answered(s, false);
    assert_false(step_stream_waits(s));
    bt_step_stream(s, "three", 5);
    assert_string_equal(piece_of(s, &p), "");
    assert_false(bt_step_stream_flush(s, 10000));
    step_free(s);
    s = make("{}");
    memset(big, 'x', sizeof big);
    bt_step_stream(s, big, sizeof big);
    bt_step_stream(s, big, sizeof big); /* it is never read */
    assert_false(step_stream_waits(s));
    step_free(s);
}

static void flush_waits_no_longer_than_it_was_told(void **state)
{
    struct bt_step *s = make("{}");

    (void)state;
    s->notify = notify;
    bt_step_stream(s, "one", 3);
    assert_false(bt_step_stream_flush(s, 30));
    atomic_store(&s->cancelled, true);
    assert_false(bt_step_stream_flush(s, 60000));
    step_free(s);
}

/* ---- cards ---- */

static void nothing(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "ran");
}

static enum bt_code card_of(const struct bt_skill *skills, size_t n, struct card *card,
                            struct bt_error *err)
{
    const struct bt_agent_def def = {.agent_id = "a", .skills = skills, .skill_count = n};
    enum bt_code code = card_init(card, &def, err);

    return code == BT_OK ? card_check_complete(card, err) : code;
}

static void a_card_that_no_supervisor_takes_is_refused_at_the_start(void **state)
{
    static const struct {
        struct bt_skill skill;
        const char *write_log;
    } wrong[] = {
        {{.id = "", .run = nothing}, "skill id ''"},
        {{.id = "a b", .run = nothing}, "expected 1 to 64"},
        {{.id = "x"}, "no run function"},
        {{.id = "x", .run = nothing, .effects = "some"}, "expected none, idempotent or unsafe"},
        {{.id = "x", .run = nothing, .input_schema = "{\"type\":"}, "input_schema"},
        {{.id = "x", .run = nothing, .input_schema = "{\"type\":\"thing\"}"}, "input_schema"},
        {{.id = "x", .run = nothing, .output_schema = "no"}, "output_schema"},
    };
    const struct bt_skill twice[] = {{.id = "x", .run = nothing}, {.id = "x", .run = nothing}};
    struct card card;
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_not_equal(card_of(&wrong[i].skill, 1, &card, &err), BT_OK);
        if (strstr(err.msg, wrong[i].write_log) == NULL) {
            fail_msg("'%s' does not say '%s'", err.msg, wrong[i].write_log);
        }
        card_done(&card);
    }
    assert_int_equal(card_of(twice, 2, &card, &err), BT_CONFLICT);
    card_done(&card);
    assert_int_equal(card_of(NULL, 0, &card, &err), BT_INVALID);
    card_done(&card);
}

static void parameters_are_checked_before_the_handler_sees_them(void **state)
{
    const struct bt_skill skill = {.id = "probe",
                                   .run = nothing,
                                   .effects = "unsafe",
                                   .input_schema =
                                       "{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{"
                                       "\"n\":{\"type\":\"integer\"}}}"};
    struct card card;
    struct bt_error err;
    struct bt_step *s;

    (void)state;
    assert_int_equal(card_of(&skill, 1, &card, &err), BT_OK);
    s = make("{\"parameters\":{\"n\":\"7\"}}");
    s->card_skill = card_find(&card, "probe");
    step_run(s);
    expect(s, "parameters/n: expected an integer");
    s = make("{\"parameters\":{\"n\":7}}");
    s->card_skill = card_find(&card, ""); /* the only one */
    step_run(s);
    assert_true(s->reply.once);
    expect(s, "\"text\":\"ran\"");
    assert_null(card_find(&card, "other"));
    card_done(&card);
}

static void on_finished(struct bt_step *step, void *runtime)
{
    (void)step;
    ++*(int *)runtime;
}

static void a_step_for_later_is_done_once_and_no_other_one(void **state)
{
    struct bt_step *s = make("{}");
    int finished = 0;

    (void)state;
    s->inside = true;
    assert_false(bt_step_later(s, NULL, NULL)); /* nobody waits for its end */
    s->finished = on_finished;
    s->runtime = &finished;
    s->inside = false;
    assert_false(bt_step_later(s, NULL, NULL)); /* its handler has returned */
    bt_step_done(s);
    assert_int_equal(finished, 0);
    s->inside = true;
    assert_true(bt_step_later(s, NULL, NULL));
    bt_step_done(s); /* within the handler, which goes on as without */
    assert_int_equal(finished, 0);
    assert_true(bt_step_later(s, NULL, NULL));
    s->inside = false;
    bt_step_done(s);
    assert_int_equal(finished, 1);
    bt_step_done(s);
    assert_int_equal(finished, 1);
    step_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_found_by_path_or_fall_back),
        cmocka_unit_test(a_dependency_gives_its_data_else_its_text),
        cmocka_unit_test(the_request_is_one_json_object_with_the_dependencies_once),
        cmocka_unit_test(what_a_request_is_for_and_may_cost_is_there_to_be_asked),
        cmocka_unit_test(purpose_that_is_not_known_or_has_no_skill_is_refused),
        cmocka_unit_test(verdicts_have_their_form),
        cmocka_unit_test(a_refused_part_of_a_result_fails_whatever_is_added_to_it),
        cmocka_unit_test(a_state_has_so_many_bytes_and_not_one_more),
        cmocka_unit_test(another_outcome_follows_a_refused_part),
        cmocka_unit_test(of_several_parts_that_are_broken_the_first_is_told),
        cmocka_unit_test(text_and_data_go_together_and_the_last_word_counts),
        cmocka_unit_test(wait_that_a_service_asks_for_goes_with_the_failure_only),
        cmocka_unit_test(silence_is_a_failure_with_its_cause),
        cmocka_unit_test(what_is_no_result_fails_the_step_clearly),
        cmocka_unit_test(needs_and_handoffs_have_their_form),
        cmocka_unit_test(calls_have_their_form_and_a_turn_has_a_cap),
        cmocka_unit_test(usage_adds_up_and_never_overflows),
        cmocka_unit_test(only_the_newest_progress_travels),
        cmocka_unit_test(stream_travels_whole_and_in_order),
        cmocka_unit_test(stream_that_begins_anew_says_so_once),
        cmocka_unit_test(nothing_is_streamed_behind_a_hole),
        cmocka_unit_test(flush_waits_no_longer_than_it_was_told),
        cmocka_unit_test(a_card_that_no_supervisor_takes_is_refused_at_the_start),
        cmocka_unit_test(parameters_are_checked_before_the_handler_sees_them),
        cmocka_unit_test(a_step_for_later_is_done_once_and_no_other_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
