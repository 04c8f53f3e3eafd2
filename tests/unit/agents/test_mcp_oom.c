/* Each allocation of a call over HTTP fails in its turn: the reply is whole, or it says that
 * another attempt may do better, and nothing stays. The service has memory. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/no_memory.h"
#include "tests/unit/agents/mcp_world.h"

#define RESULT(members) "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{" members "}}"
#define TEXTS "\"content\":[{\"type\":\"text\",\"text\":\"one\"}]"
#define ASKS                                                                                       \
    "\"method\":\"elicitation/create\",\"params\":{\"message\":\"Year?\",\"requestedSchema\":{"    \
    "\"type\":\"object\",\"properties\":{\"year\":{\"type\":\"integer\"}}}}"
#define EVENT(data) "data: " data "\n\n"

static size_t asked; /* before the last attempt */

static bool was_sent(void)
{
    return service_count() > asked;
}

/* A state that a server wants back is kept between attempts: the next one has none. */
static void run(struct bt_step *step, void *self)
{
    struct mcp_agent *agent = self;

    asked = service_count();
    step->reply.once = strcmp(bt_step_skill(step), "work") == 0;
    mcp_run(step, self);
    for (uint32_t i = 0; i < MCP_STATES_MAX; i++) {
        free(agent->states[i].text);
        agent->states[i].text = NULL;
    }
}

static void each(const char *skill, const char *parameters, const char *answer)
{
    char json[1000];

    service_forget();
    service_at("/mcp", 200, "", answer);
    (void)snprintf(json, sizeof json, "{\"task\":\"t\",\"parameters\":%s}", parameters);
    no_memory_done = strcmp(skill, "work") == 0 ? was_sent : NULL;
    no_memory_each(skill, json, run, mcp_used());
}

static void an_answer_is_told_whole_or_later(void **state)
{
    static const char all[] = RESULT(TEXTS ",\"structuredContent\":{\"a\":[1,\"b\"]}");
    static const char other[] =
        RESULT("\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"}]");

    (void)state;
    mcp_http(true, ",'headers':{'X-A':'1'},'bearer':{'env':'OOM_KEY'}");
    each("read", "{\"x\":[1,2]}", all);
    each("work", "{}", all);
    each("read", "{}", other);
    each("read", "{}", RESULT("\"content\":[]"));
    each("work", "{}", RESULT(TEXTS ",\"isError\":true"));
    each("read", "{}",
         EVENT("{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2,"
               "\"progress\":1,\"total\":2}}") EVENT("{\"method\":\"notifications/other\"}")
             EVENT(RESULT(TEXTS)));
    each("mcp.resources", "{\"cursor\":\"c\"}", RESULT("\"resources\":[{\"uri\":\"a\"}]"));
    each("mcp.read", "{\"uri\":\"a\"}", RESULT("\"contents\":[{\"text\":\"a\"}]"));
    each("mcp.read", "{\"uri\":\"a\"}", RESULT("\"contents\":[{\"blob\":\"AA\"}]"));
}

static void a_question_is_told_whole_or_later(void **state)
{
    static const char asks[] = RESULT("\"resultType\":\"input_required\",\"requestState\":\"st\","
                                      "\"inputRequests\":{\"a\":{" ASKS "},\"b\":{" ASKS "}}");

    (void)state;
    mcp_http(true, "");
    each("read", "{}", asks);
    each("read", "{}", RESULT("\"resultType\":\"input_required\",\"requestState\":\"st\""));
    each("read", "{\"mcp_answers\":{\"a\":{\"year\":1}}}", RESULT(TEXTS));
    mcp_http(false, "");
    each("read", "{}", EVENT("{\"id\":\"e\"," ASKS "}") EVENT(RESULT(TEXTS)));
    each("read", "{\"mcp_answers\":{\"answer\":{\"year\":1}}}",
         EVENT("{\"id\":\"e\"," ASKS "}") EVENT(RESULT(TEXTS)));
}

/* Without memory for the probe a modern server is not taken for an older one. */
static void the_era_of_a_server_is_found_or_there_is_no_memory(void **state)
{
    (void)state;
    for (int modern = 0; modern < 2; modern++) {
        long n = 0;
        for (memory_failed = true; memory_failed; n++) {
            struct bt_error err = {.msg = ""};
            enum bt_code code;
            service_forget();
            (void)mcp_use("'url':'$/mcp','allowPrivate':['127.0.0.1']");
            service_at("/mcp", 200, "",
                       modern == 1 ? RESULT("\"supportedVersions\":[\"" MCP_MODERN "\"]")
                                   : RESULT("\"protocolVersion\":\"" MCP_LEGACY "\""));
            memory_failed = false;
            memory_left = n;
            code = mcp_connect(&err);
            memory_left = -1;
            if (code != BT_NOMEM && (code != BT_OK || mcp_used()->server.modern != (modern == 1))) {
                fail_msg("modern %d, allocation %ld: %s, %s", modern, n, bt_code_name(code),
                         err.msg);
            }
        }
        assert_true(n > 3);
    }
}

static int start(void **state)
{
    return setenv("OOM_KEY", "a-key-of-a-server", 1) == 0 ? mcp_start(state) : -1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mcp_begin)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_told_whole_or_later),
        TEST(a_question_is_told_whole_or_later),
        TEST(the_era_of_a_server_is_found_or_there_is_no_memory),
    };
    return cmocka_run_group_tests(tests, start, mcp_stop);
}
