/* The handlers of the llm agent with a mock model: what they make of answers, and what they
 * stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/llm/llm_agent.h"
#include "agents/sdk/step.h"
#include "tests/edge/model/world.h"
#include "tests/unit/agents/steps.h"

static struct llm_agent *agent;

/* An agent whose model does `first` (or NULL), then returns these texts in turn, the last one for
 * ever. */
static void model_does(const char *first, const char *const *texts)
{
    static unsigned n;
    struct bt_error err = {0};
    struct buf settings;

    buf_init(&settings, 1024 * 1024);
    buf_printf(&settings,
               "{\"providers\":[{\"id\":\"m\",\"api\":\"openai\",\"model\":\"m\","
               "\"backoffMs\":1,\"baseUrl\":\"http://127.0.0.1:%d/",
               world_port());
    for (size_t i = 0; texts[i] != NULL; i++) {
        buf_printf(&settings, "%s%ssay:", first != NULL && i == 0 ? first : "",
                   first != NULL || i > 0 ? "," : "");
        for (const char *c = texts[i]; *c != 0; c++) {
            buf_printf(&settings, "%%%02X", (unsigned)(uint8_t)*c);
        }
    }
    buf_printf(&settings, "~%u/v1\"}]}", n++);
    llm_agent_free(agent);
    agent = NULL;
    if (llm_agent_new(buf_cstr(&settings), &agent, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    buf_done(&settings);
}

#define SAYS(...) model_does(NULL, (const char *const[]){__VA_ARGS__, NULL})

static int stop_all(void **state)
{
    steps_forget();
    llm_agent_free(agent);
    return world_stop(state);
}

static const char *run(const char *skill, bt_skill_run handler, const char *step)
{
    return steps_run(steps_make(skill, step), handler, agent);
}

/* The text that was streamed. */
static const char *told(void)
{
    struct bt_step *s = steps_last();
    return s->stream.text.len == 0 ? "" : buf_cstr(&s->stream.text);
}

/* ---- plan ---- */

#define AGENTS                                                                                     \
    "\"agents\":[{\"agentId\":\"calc\",\"skills\":[{\"id\":\"evaluate\"}]}],\"goal\":\"a sum\""
#define PLAN_STEP "{\"purpose\":\"plan\",\"parameters\":{" AGENTS "}}"
#define GOOD_STEP                                                                                  \
    "{\"stepId\":\"a\",\"agentId\":\"calc\",\"skill\":\"evaluate\",\"task\":\"t\",\"dependsOn\":[" \
    "]}"

/* The plan check reports wrong agents, cycles and so on; the agent makes no second call. */
static void plan_is_told_as_it_came(void **state)
{
    static const char *const plans[] = {
        "{\"steps\":[" GOOD_STEP "]}",
        "{\"steps\":[]}",
        "{\"steps\":[{\"stepId\":\"a\",\"agentId\":\"vault\",\"task\":\"open\",\"dependsOn\":"
        "[\"a\"]}]}",
        "{\"steps\":\"none\"}",
        "{\"tasks\":[{\"id\":1,\"agent\":\"calc\"},7]}",
        "[" GOOD_STEP "]",
    };
    char expected[512];
    char wrapped[512];

    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        (void)snprintf(expected, sizeof expected, "\"data\":%s", plans[i]);
        (void)snprintf(wrapped, sizeof wrapped, "<think>hm</think>Here:\n```json\n%s\n```",
                       plans[i]);
        SAYS(plans[i]);
        steps_expect(run("plan", llm_plan, PLAN_STEP), expected);
        if (plans[i][0] == '{') {
            SAYS(wrapped, "{\"second\":\"question\"}");
            steps_expect(run("plan", llm_plan, PLAN_STEP), expected);
        }
    }
}

static void plan_that_is_no_json_is_told_as_text(void **state)
{
    (void)state;
    SAYS("I would rather not.");
    steps_expect(run("plan", llm_plan, PLAN_STEP), "\"text\":\"I would rather not.\"");
    SAYS("{\"steps\":[]} or {\"steps\":[1]}");
    steps_expect(run("plan", llm_plan, PLAN_STEP), "\"text\":\"{\\\"steps\\\":[]} or");
}

static void what_is_not_the_models_to_say_is_taken_out(void **state)
{
    const char *reply;

    (void)state;
    SAYS("{\"description\":\"d\",\"policy\":{\"budget\":{\"tokens\":9}},\"grants\":[\"vault\"],"
         "\"revision\":7,\"goal\":\"another\",\"steps\":[{\"stepId\":\"a\",\"agentId\":\"calc\","
         "\"task\":\"t\",\"requiresApproval\":false,\"maxRetries\":50,\"verifyWith\":\"x\","
         "\"skill\":\"\",\"type\":\"human_review\"}]}");
    reply = run("plan", llm_plan, PLAN_STEP);
    steps_expect(reply, "\"data\":{\"description\":\"d\",\"steps\":[{\"stepId\":\"a\",\"agentId\":"
                        "\"calc\",\"task\":\"t\"}]}");
}

/* ---- synthesize ---- */

#define STEPS                                                                                      \
    "\"steps\":[{\"stepId\":\"a\",\"number\":1,\"task\":\"t\",\"agentId\":\"calc\",\"status\":"    \
    "\"completed\",\"result\":\"5\"},{\"stepId\":\"b\",\"number\":2,\"task\":\"u\",\"agentId\":"   \
    "\"web\",\"status\":\"failed\",\"error\":\"timed out\"}]"
#define SYNTHESIS                                                                                  \
    "{\"purpose\":\"synthesize\",\"parameters\":{\"goal\":\"g\",\"status\":\"completed\","         \
    "\"durationMs\":12345,\"agents\":[\"calc\",\"we*b\"],\"mayRetry\":1," STEPS "}}"
#define TITLE "# Plan Execution Summary"
#define LAST "\n\n*Plan completed in 12.3 seconds across calc, we?b.*\n"

static void expect_summary(const char *reply, const char *text)
{
    struct str got = {0};

    steps_expect(reply, "\"outcome\":\"completed\"");
    got = buf_str(&steps_last()->reply.text);
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.ptr, text, got.len);
    assert_string_equal(told(), text); /* pieces joined are the whole */
}

static void summary_is_told_while_it_comes_and_ends_with_our_line(void **state)
{
    (void)state;
    SAYS(TITLE "\n\nIt is **5**.");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\nIt is **5**." LAST);
    SAYS("It is 5.");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\nIt is 5." LAST);
    SAYS("```markdown\n" TITLE "\nIt is 5.\n```");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\nIt is 5." LAST);
    SAYS("[1] is the answer");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS),
                   TITLE "\n\n[1] is the answer" LAST);
    SAYS("<think>{\"retry\":[]}</think>5");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\n5" LAST);
    SAYS("{\"text\":\"It is 5.\"}");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\nIt is 5." LAST);
}

/* onInvalidPlan synthesize (M008): there is no plan, so none completed or failed. */
static void answer_alone_has_neither_title_nor_last_line(void **state)
{
    static const char alone[] = "{\"purpose\":\"synthesize\",\"parameters\":{\"goal\":\"g\","
                                "\"status\":\"failed\",\"failureReason\":\"no steps\","
                                "\"durationMs\":0,\"agents\":[],\"steps\":[]}}";

    (void)state;
    SAYS("It is 5.");
    expect_summary(run("synthesize", llm_synthesize, alone), "It is 5.");
    SAYS("```markdown\nIt is 5.\n```");
    expect_summary(run("synthesize", llm_synthesize, alone), "It is 5.");
}

/* No supervisor confirms the pieces here, so void ones are never sent: test_llm.py tests the
 * rest. */
static void summary_that_breaks_off_begins_again(void **state)
{
    (void)state;
    model_does("breaks", (const char *const[]){"It is 5.", NULL});
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\nIt is 5." LAST);
    model_does("503", (const char *const[]){"It is 5.", NULL});
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\nIt is 5." LAST);
}

static void failed_steps_may_be_asked_for_once_more(void **state)
{
    static const char expected[] =
        "\"data\":{\"retry\":[{\"stepId\":\"b\",\"reason\":\"it was down\"}]}";

    (void)state;
    SAYS("{\"retry\":[{\"stepId\":\"b\",\"reason\":\"it was down\"}]}");
    steps_expect(run("synthesize", llm_synthesize, SYNTHESIS), expected);
    assert_string_equal(told(), "");
    SAYS("```json\n{\"retry\":[{\"stepId\":\"a\",\"reason\":\"is completed\"},{\"stepId\":\"zz\"},"
         "{\"stepId\":\"b\",\"reason\":\"it was down\"},\"b\",7]}\n```");
    steps_expect(run("synthesize", llm_synthesize, SYNTHESIS), expected);
    assert_string_equal(told(), "");
}

static void retry_that_cannot_be_is_asked_about_once(void **state)
{
    const char *reply;

    (void)state;
    SAYS("{\"retry\":[{\"stepId\":\"a\"}]}", "It is 5.");
    expect_summary(run("synthesize", llm_synthesize, SYNTHESIS), TITLE "\n\nIt is 5." LAST);
    SAYS("{\"retry\":[{\"stepId\":\"a\"}]}", "{\"retry\":[{\"stepId\":\"b\"}]}");
    reply = run("synthesize", llm_synthesize, SYNTHESIS);
    steps_expect(reply, "\"class\":\"VALIDATION_ERROR\"");
    steps_expect(reply, "\"retryable\":false");
    SAYS("{\"retry\":[{\"stepId\":\"b\"}]}", "It is 5.");
    steps_expect(run("synthesize", llm_synthesize,
                     "{\"purpose\":\"synthesize\",\"parameters\":{\"status\":\"failed\"," STEPS
                     "}}"),
                 "It is 5.\\n\\n*Plan failed across calc, web.*");
}

/* ---- converse ---- */

#define TALK                                                                                       \
    "{\"purpose\":\"converse\",\"parameters\":{\"text\":\"skip it\",\"plan\":{\"planId\":\"p\","   \
    "\"status\":\"running\",\"steps\":[{\"number\":1,\"stepId\":\"a\"},{\"number\":2,\"stepId\":"  \
    "\"b\"}],\"waiting\":[]}}}"
#define TALK_WAITING                                                                               \
    "{\"purpose\":\"converse\",\"parameters\":{\"text\":\"yes\",\"plan\":{\"planId\":\"p\","       \
    "\"status\":\"waiting\",\"steps\":[],\"waiting\":[{\"reviewId\":\"r\",\"kind\":\"step\"}]}}}"
#define SAID(action)                                                                               \
    "{\"reasoning\":\"r\",\"action\":\"" action                                                    \
    "\",\"targetStepNumber\":null,\"stepsToSkip\":null,\"goal\":null}"

static void message_becomes_one_action_with_what_it_needs(void **state)
{
    static const struct {
        const char *step;
        const char *says;
        const char *expected;
    } rows[] = {
        {TALK,
         "{\"reasoning\":\"r\",\"action\":\"skip_to_step\",\"targetStepNumber\":2,"
         "\"stepsToSkip\":[1],\"goal\":\"x\"}",
         "\"data\":{\"reasoning\":\"r\",\"action\":\"skip_to_step\",\"targetStepNumber\":2}"},
        {TALK,
         "{\"reasoning\":\"r\",\"action\":\"skip_steps\",\"targetStepNumber\":null,"
         "\"stepsToSkip\":[2,1],\"goal\":null}",
         "\"action\":\"skip_steps\",\"stepsToSkip\":[2,1]}"},
        {TALK,
         "{\"reasoning\":\"r\",\"action\":\"conversation_only\",\"targetStepNumber\":null,"
         "\"stepsToSkip\":null,\"goal\":null}",
         "\"action\":\"conversation_only\",\"reply\":\"Five it is.\"}"},
        {TALK,
         "{\"reasoning\":\"r\",\"action\":\"new_plan\",\"targetStepNumber\":null,"
         "\"stepsToSkip\":null,\"goal\":\"count\"}",
         "\"action\":\"new_plan\",\"goal\":\"count\"}"},
        {TALK, "{\"action\":\"conversation_only\"}",
         "\"data\":{\"action\":\"conversation_only\",\"reply\":\"Five it is.\"}"},
        {TALK, "{\"reasoning\":\"r\",\"action\":\"skip_to_step\",\"targetStepNumber\":2}",
         "\"data\":{\"reasoning\":\"r\",\"action\":\"skip_to_step\",\"targetStepNumber\":2}"},
        {TALK, SAID("stop"), "\"data\":{\"reasoning\":\"r\",\"action\":\"stop\"}"},
        {TALK_WAITING, SAID("approve"), "\"action\":\"approve\"}"},
        {TALK_WAITING, SAID("reject"), "\"action\":\"reject\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SAYS(rows[i].says, "Five it is."); /* the second call, if there is one */
        steps_expect(run("converse", llm_converse, rows[i].step), rows[i].expected);
    }
}

/* The model gets one repair turn; then the action is rejected. */
static void action_that_the_plan_does_not_allow_is_refused(void **state)
{
    static const struct {
        const char *step;
        const char *says;
        const char *why;
    } rows[] = {
        {TALK,
         "{\"reasoning\":\"r\",\"action\":\"skip_to_step\",\"targetStepNumber\":3,"
         "\"stepsToSkip\":null,\"goal\":null}",
         "the plan has no step 3; it has 2 steps"},
        {TALK,
         "{\"reasoning\":\"r\",\"action\":\"skip_steps\",\"targetStepNumber\":null,"
         "\"stepsToSkip\":[1,0],\"goal\":null}",
         "the plan has no step 0"},
        {TALK, SAID("skip_to_step"), "targetStepNumber: expected the number"},
        {TALK, SAID("skip_steps"), "stepsToSkip: expected the numbers"},
        {TALK, SAID("new_plan"), "goal: this action needs it"},
        {TALK, SAID("approve"), "nothing waits for the person"},
        {"{\"purpose\":\"converse\",\"task\":\"stop it\",\"parameters\":{\"plan\":null}}",
         SAID("stop"), "there is no plan"},
        {TALK, SAID("drop_tables"), "/action"},
        {TALK, "yes", "expected a JSON object"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reply;
        SAYS(rows[i].says);
        reply = run("converse", llm_converse, rows[i].step);
        steps_expect(reply, "\"class\":\"VALIDATION_ERROR\"");
        steps_expect(reply, rows[i].why);
        steps_expect(reply, "\"retryable\":false"); /* two calls were made and paid for */
        SAYS(rows[i].says, SAID("pause"));
        if (strstr(rows[i].step, "null") == NULL) {
            steps_expect(run("converse", llm_converse, rows[i].step), "\"action\":\"pause\"");
        }
    }
}

/* ---- verdicts ---- */

#define VERIFY "{\"purpose\":\"verify\",\"parameters\":{\"task\":\"t\"},\"result\":\"5\"}"

static void verdict_needs_no_more_than_its_word(void **state)
{
    static const char gate[] = "{\"purpose\":\"gate\",\"parameters\":{\"task\":\"t\"}}";

    (void)state;
    SAYS("{\"passed\":true}");
    steps_expect(run("gate", llm_gate, gate), "\"data\":{\"passed\":true}");
    SAYS("{\"passed\":false,\"missing\":[\"x\"]}");
    steps_expect(run("gate", llm_gate, gate), "\"data\":{\"passed\":false,\"missing\":[\"x\"]}");
    SAYS("{\"passed\":true,\"diagnosis\":null}");
    steps_expect(run("verify", llm_verify, VERIFY), "\"data\":{\"passed\":true}");
    SAYS("{\"diagnosis\":\"fine\"}");
    steps_expect(run("verify", llm_verify, VERIFY), "\"retryable\":false");
}

/* ---- work ---- */

#define WORK(more)                                                                                 \
    "{\"task\":\"t\",\"turnsLeft\":3,\"parameters\":{\"handoffTo\":[\"ann\",\"bob\"]},"            \
    "\"turns\":[{\"calls\":[{\"id\":\"t1-1\"},{\"id\":\"t1-plan\",\"plan\":{}}]}]" more "}"
#define PLANNED "\"plan\":{\"goal\":\"g\",\"steps\":[{\"stepId\":\"a\"}]}"

static void a_turn_becomes_one_action_with_what_it_needs(void **state)
{
    static const char *const rows[][2] = {
        {"{\"action\":\"answer\",\"answer\":\"42\"}", "\"text\":\"42\""},
        {"{\"action\":\"handoff\",\"to\":\"bob\",\"context\":\"c\"}", "\"bob\""},
        {"{\"action\":\"call\",\"calls\":[{\"tool\":\"calc/sum\",\"arguments\":{\"x\":1}},"
         "{\"tool\":\"calc/avg\",\"task\":\"mean\"}]}",
         "{\"id\":\"t2-2\",\"agentId\":\"calc\",\"skill\":\"avg\",\"task\":\"mean\","
         "\"parameters\":{}}"},
        {"{\"action\":\"createPlan\"," PLANNED "}", "\"id\":\"t2-plan\""},
        {"{\"action\":\"revisePlan\",\"revises\":\"t1-plan\"," PLANNED "}",
         "\"revises\":\"t1-plan\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SAYS(rows[i][0]);
        steps_expect(run("work", llm_work, WORK("")), rows[i][1]);
    }
}

static void an_action_that_is_not_allowed_is_asked_about_once(void **state)
{
    static const char *const rows[][2] = {
        {"{\"action\":\"answer\"}", "needs answer: the whole answer"},
        {"{\"action\":\"handoff\",\"to\":\"eve\"}", "'eve' may not get the task"},
        {"{\"action\":\"handoff\"}", "'' may not get the task"},
        {"{\"action\":\"call\"}", "needs calls: [{tool, arguments}]"},
        {"{\"action\":\"call\",\"calls\":[]}", "needs calls: [{tool, arguments}]"},
        {"{\"action\":\"call\",\"calls\":[{\"tool\":\"calc\"}]}", "'calc': expected"},
        {"{\"action\":\"call\",\"calls\":[{\"tool\":\"/sum\"}]}", "'/sum': expected"},
        {"{\"action\":\"call\",\"calls\":[{\"tool\":\"calc/\"}]}", "'calc/': expected"},
        {"{\"action\":\"createPlan\",\"plan\":{\"steps\":[]}}", "createPlan needs plan: {goal"},
        {"{\"action\":\"revisePlan\",\"revises\":\"t1-1\"," PLANNED "}", "'t1-1' is no plan of"},
        {"{\"action\":\"revisePlan\",\"revises\":\"t9-plan\"," PLANNED "}", "is no plan of yours"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reply;
        SAYS(rows[i][0]);
        reply = run("work", llm_work, WORK(""));
        steps_expect(reply, "\"class\":\"VALIDATION_ERROR\"");
        steps_expect(reply, rows[i][1]);
        SAYS(rows[i][0], "{\"action\":\"answer\",\"answer\":\"42\"}");
        steps_expect(run("work", llm_work, WORK("")), "\"text\":\"42\"");
    }
}

/* It is told so once; then the supervisor ends the step. */
static void who_has_no_turn_left_answers(void **state)
{
    static const char last[] = "{\"task\":\"t\",\"parameters\":{}}";

    (void)state;
    SAYS("{\"action\":\"call\",\"calls\":[{\"tool\":\"calc/sum\"}]}",
         "{\"action\":\"answer\",\"answer\":\"42\"}");
    steps_expect(run("work", llm_work, last), "\"text\":\"42\"");
    SAYS("{\"action\":\"call\",\"calls\":[{\"tool\":\"calc/sum\"}]}");
    steps_expect(run("work", llm_work, last), "\"id\":\"t1-1\"");
}

/* ---- which failures are retryable ---- */

static void only_what_may_pass_is_tried_again_by_who_asked(void **state)
{
    static const struct {
        const char *script;
        const char *cls;
        bool again;
    } rows[] = {{"400,400,400", "VALIDATION_ERROR", false},
                {"401", "PERMISSION_DENIED", false},
                {"403", "PERMISSION_DENIED", false},
                {"404", "SERVICE_UNAVAILABLE", false},
                {"empty,empty,empty", "SERVICE_UNAVAILABLE", false},
                {"malformed,malformed,malformed", "SERVICE_UNAVAILABLE", false},
                {"429:0,429:0,429:0", "RATE_LIMITED", true},
                {"500,500,500", "SERVICE_UNAVAILABLE", true},
                {"drop,drop,drop", "SERVICE_UNAVAILABLE", true}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[64];
        const char *reply;

        model_does(rows[i].script, (const char *const[]){"no", NULL});
        reply = run("plan", llm_plan, PLAN_STEP);
        (void)snprintf(expected, sizeof expected, "\"class\":\"%s\"", rows[i].cls);
        steps_expect(reply, expected);
        steps_expect(reply, rows[i].again ? "\"retryable\":true" : "\"retryable\":false");
    }
}

/* A person waits: a delay longer than the remaining time, or an open breaker, is final. A step can
 * wait. */
static void who_has_no_time_to_wait_is_told_why_at_once(void **state)
{
    static const char plan[] =
        "{\"purpose\":\"plan\",\"deadlineMs\":30000,\"parameters\":{" AGENTS "}}";
    static const char chat[] = "{\"task\":\"t\",\"deadlineMs\":30000}";

    (void)state;
    model_does("429:60", (const char *const[]){"no", NULL});
    steps_expect(run("plan", llm_plan, plan), "\"retryable\":false");
    steps_expect(run("plan", llm_plan, plan), "left alone for 60 s more; the last failure: status");
    steps_expect(run("plan", llm_plan, plan), "\"retryable\":false");
    steps_expect(run("chat", llm_chat, chat), "\"retryable\":true");
    steps_expect(run("chat", llm_chat, chat), "\"retryAfterMs\":");
}

/* ---- summarize ---- */

static void digest_of_messages_is_a_summary_of_the_text(void **state)
{
    (void)state;
    SAYS("They greeted.");
    steps_expect(run("summarize", llm_summarize,
                     "{\"parameters\":{\"text\":\"user: hi\\nassistant: hello\",\"words\":50,"
                     "\"focus\":\"decisions\"}}"),
                 "\"text\":\"They greeted.\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_is_told_as_it_came),
        cmocka_unit_test(plan_that_is_no_json_is_told_as_text),
        cmocka_unit_test(what_is_not_the_models_to_say_is_taken_out),
        cmocka_unit_test(summary_is_told_while_it_comes_and_ends_with_our_line),
        cmocka_unit_test(answer_alone_has_neither_title_nor_last_line),
        cmocka_unit_test(summary_that_breaks_off_begins_again),
        cmocka_unit_test(failed_steps_may_be_asked_for_once_more),
        cmocka_unit_test(retry_that_cannot_be_is_asked_about_once),
        cmocka_unit_test(message_becomes_one_action_with_what_it_needs),
        cmocka_unit_test(action_that_the_plan_does_not_allow_is_refused),
        cmocka_unit_test(verdict_needs_no_more_than_its_word),
        cmocka_unit_test(a_turn_becomes_one_action_with_what_it_needs),
        cmocka_unit_test(an_action_that_is_not_allowed_is_asked_about_once),
        cmocka_unit_test(who_has_no_turn_left_answers),
        cmocka_unit_test(only_what_may_pass_is_tried_again_by_who_asked),
        cmocka_unit_test(who_has_no_time_to_wait_is_told_why_at_once),
        cmocka_unit_test(digest_of_messages_is_a_summary_of_the_text),
    };

    return cmocka_run_group_tests(tests, world_start, stop_all);
}
