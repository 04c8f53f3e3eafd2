/* The handlers without a model: what they reject before a call, and how a failed call ends. A
 * replay from an empty directory replaces the model. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/llm/llm_agent.h"
#include "tests/unit/agents/steps.h"

static char dir[] = "/tmp/baton-llm-XXXXXX";
static struct llm_agent *agent;

static int open_agent(void **state)
{
    char settings[256];
    struct bt_error err;

    (void)state;
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    (void)snprintf(
        settings, sizeof settings,
        "{\"replay\":\"%s\",\"maxTokens\":1000,\"providers\":[{\"api\":\"openai\","
        "\"model\":\"m\",\"baseUrl\":\"https://llm.example.com/v1\",\"keyFile\":\"none\","
        "\"price\":{\"input\":2,\"output\":10}}]}",
        dir);
    return llm_agent_new(settings, &agent, &err) == BT_OK ? 0 : -1;
}

static int close_agent(void **state)
{
    (void)state;
    steps_forget();
    llm_agent_free(agent);
    return rmdir(dir);
}

#define GOOD "{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"baseUrl\":\"https://a\"}]"

static void wrong_settings_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *json;
        const char *why;
    } rows[] = {
        {"{}", "providers"},
        {"{\"providers\":[]}", "/providers"},
        {GOOD ",\"temprature\":1}", "temprature"},
        {GOOD ",\"maxTokens\":1}", "/maxTokens"},
        {"{\"providers\":[{}]}", "/providers/0"},
        {"[]", "expected"},
        {"{\"replay\":\"/nonexistent\",\"providers\":[{\"api\":\"openai\",\"model\":\"m\","
         "\"baseUrl\":\"https://a\"}]}",
         "/nonexistent"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct llm_agent *a = NULL;
        struct bt_error err;
        assert_int_not_equal(llm_agent_new(rows[i].json, &a, &err), BT_OK);
        if (strstr(err.msg, rows[i].why) == NULL) {
            fail_msg("expected '%s' in '%s'", rows[i].why, err.msg);
        }
        assert_null(a);
    }
}

static void expect(const char *skill, bt_skill_run run, const char *step, const char *part)
{
    steps_expect(steps_run(steps_make(skill, step), run, agent), part);
}

static void what_is_missing_is_named_before_anybody_is_asked(void **state)
{
    (void)state;
    expect("chat", llm_chat, "{}", "expected a task, or the parameter prompt");
    expect("summarize", llm_summarize, "{}", "expected the parameter text, or a step before");
    expect("verify", llm_verify, "{\"purpose\":\"verify\",\"parameters\":{}}",
           "expected a result to verify");
    expect("plan", llm_plan, "{\"purpose\":\"replan\",\"parameters\":{\"goal\":\"g\"}}",
           "agents: expected the list");
    expect("plan", llm_plan, "{\"purpose\":\"plan\",\"parameters\":{\"goal\":\"g\"}}",
           "agents: expected the list");
    expect("plan", llm_plan,
           "{\"purpose\":\"plan\",\"parameters\":{\"agents\":[{\"agentId\":\"a\"}]}}",
           "goal: expected");
    expect("synthesize", llm_synthesize, "{\"purpose\":\"synthesize\"}", "steps: expected");
    expect("converse", llm_converse, "{\"purpose\":\"converse\"}", "text: expected the person");
}

static void budget_that_pays_for_nothing_asks_nobody(void **state)
{
    (void)state;
    expect("chat", llm_chat, "{\"task\":\"x\",\"budget\":{\"tokens\":100}}", "BUDGET_EXCEEDED");
    expect("chat", llm_chat, "{\"task\":\"x\",\"budget\":{\"costMicros\":300}}", "BUDGET_EXCEEDED");
    expect("chat", llm_chat,
           "{\"task\":\"x\",\"budget\":{\"tokens\":100000,\"costMicros\":100000}}",
           "never recorded");
}

static void question_that_goes_nowhere_fails_the_step_and_says_why(void **state)
{
    (void)state;
    expect("chat", llm_chat, "{\"task\":\"x\"}", "\"class\":\"SERVICE_UNAVAILABLE\"");
    expect("chat", llm_chat, "{\"task\":\"x\"}", "\"retryable\":false");
    expect("gate", llm_gate, "{\"purpose\":\"gate\",\"parameters\":{\"task\":\"t\"}}",
           "model m at llm.example.com: ");
    expect("summarize", llm_summarize, "{\"parameters\":{\"text\":\"long\"}}", "never recorded");
    expect("plan", llm_plan,
           "{\"purpose\":\"replan\",\"parameters\":{\"agents\":[{\"agentId\":\"a\"}]}}",
           "never recorded");
    expect("chat", llm_chat, "{\"task\":\"x\",\"parameters\":{\"schema\":{\"type\":\"strnig\"}}}",
           "VALIDATION_ERROR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused_with_their_place),
        cmocka_unit_test(what_is_missing_is_named_before_anybody_is_asked),
        cmocka_unit_test(budget_that_pays_for_nothing_asks_nobody),
        cmocka_unit_test(question_that_goes_nowhere_fails_the_step_and_says_why),
    };

    return cmocka_run_group_tests(tests, open_agent, close_agent);
}
