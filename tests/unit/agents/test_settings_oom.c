/* The i-th allocation fails, for every i: settings of the agents that call services are whole, or
 * it is BT_NOMEM. ASan reports leaks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/a2a/a2a.h"
#include "agents/http/settings.h"
#include "agents/mcp/settings.h"
#include "agents/mcp/skills.h"
#include "agents/report/report.h"
#include "tests/support/memory.h"

static char seen[4096]; /* of what was read */

/* With each allocation that fails, until none does. What is read without it is the same. */
static void sweep(enum bt_code (*read)(struct bt_error *err))
{
    char whole[sizeof seen];
    long failures = 0;

    assert_int_equal(read(NULL), BT_OK);
    memcpy(whole, seen, sizeof whole);

    for (;; failures++) {
        struct bt_error err = {.msg = ""};
        enum bt_code code;
        memory_left = failures;
        code = read(&err);
        if (memory_left >= 0) {
            memory_left = -1;
            assert_int_equal(code, BT_OK);
            break;
        }
        memory_left = -1;
        if (code != BT_NOMEM && (code != BT_OK || strcmp(seen, whole) != 0)) {
            fail_msg("allocation %ld: %s, %s", failures, bt_code_name(code), err.msg);
        }
        assert_true(code == BT_OK || err.msg[0] != 0);
    }
    assert_true(failures > 2);
}

static enum bt_code read_http(struct bt_error *err)
{
    struct http_settings *s = NULL;
    const enum bt_code code = http_settings_read(
        "{\"baseUrl\":\"https://a.example/"
        "v1\",\"headers\":{\"A\":\"b\"},\"allowHosts\":[\"c\"],\"rate\":{\"n\":2},"
        "\"auth\":{\"header\":{\"name\":\"X\",\"prefix\":\"p\",\"value\":{\"env\":\"OOM_KEY\"}}},"
        "\"actions\":[{\"id\":"
        "\"x\",\"description\":\"d\",\"path\":\"/"
        "{id}\",\"method\":\"POST\",\"tags\":[\"t\"],\"query\":{\"q\":\"{q}\"},"
        "\"headers\":{\"B\":\"{b}\"},\"body\":{\"a\":\"{a}\"},\"fields\":{\"f\":\"/"
        "f\"},\"result\":\"/r\"},{\"id\":\"y\","
        "\"description\":\"d\",\"path\":\"/\",\"pages\":{\"items\":\"/i\",\"next\":\"/"
        "n\"},\"inputSchema\":{}},{\"id\":"
        "\"z\",\"description\":\"d\",\"path\":\"/\",\"result\":{\"a\":\"/b\"}}]}",
        &s, err);

    seen[0] = 0;
    for (uint32_t i = 0; code == BT_OK && i < s->n; i++) {
        (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s %s %s\n",
                       s->actions[i].id, s->actions[i].path, s->actions[i].input_schema);
    }
    for (size_t i = 0; code == BT_OK && s->policy.hosts[i] != NULL; i++) {
        (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", s->policy.hosts[i]);
    }
    http_settings_free(s);
    return code;
}

static enum bt_code read_mcp(struct bt_error *err)
{
    struct mcp_settings *s = NULL;
    enum bt_code code = mcp_settings_read(
        "{\"command\":[\"a\",\"b\"],\"env\":{\"A\":\"1\"},\"passEnv\":[\"B\"],\"tools\":[\"t*\"],"
        "\"effects\":{\"a\":\"none\"},\"cwd\":\"/\"}",
        &s, err);

    mcp_settings_free(s);
    s = NULL;
    code = code == BT_OK
               ? mcp_settings_read(
                     "{\"url\":\"https://a.example\",\"headers\":{\"A\":\"b\"},\"bearer\":{"
                     "\"env\":\"OOM_KEY\"}}",
                     &s, err)
               : code;
    mcp_settings_free(s);
    return code;
}

static enum bt_code read_a2a(struct bt_error *err)
{
    struct a2a_settings *s = NULL;
    const enum bt_code code = a2a_settings_read(
        "{\"url\":\"https://a.example\",\"headers\":{\"A\":\"b\"},\"bearer\":{\"env\":\"OOM_KEY\"},"
        "\"skills\":[\"s\"],\"effects\":{\"a\":\"none\"}}",
        &s, err);

    (void)snprintf(seen, sizeof seen, "%s", code == BT_OK ? s->policy.hosts[0] : "");
    a2a_settings_free(s);
    return code;
}

static enum bt_code read_report(struct bt_error *err)
{
    struct report *r = NULL;
    const enum bt_code code = report_new("{\"browser\":\"/x\"}", &r, err);

    (void)snprintf(seen, sizeof seen, "%s", code == BT_OK ? r->browser : "");
    report_free(r);
    return code;
}

/* A tool of an MCP server as a skill. */
static enum bt_code make_skill(struct bt_error *err)
{
    static uint8_t kept[4096];
    static size_t kept_n;
    const struct mcp_settings settings = {.timeout_ms = 1};
    struct arena arena = {.max = 65536};
    struct mcp_tool tool;
    struct bt_skill skill;
    enum bt_code code;

    if (kept_n == 0) { /* the tool itself, with memory enough */
        const long left = memory_left;
        struct buf bytes;
        memory_left = -1;
        buf_init(&bytes, 4096);
        assert_int_equal(
            json_to_doc(
                STR_LIT("{\"name\":\"n\",\"title\":\"t\",\"description\":\"d\",\"inputSchema\":{"
                        "\"properties\":{\"x\":{\"type\":\"string\"}}}}"),
                NULL, &bytes, err),
            BT_OK);
        memcpy(kept, bytes.at, bytes.len);
        kept_n = bytes.len;
        buf_done(&bytes);
        memory_left = left;
    }
    code = mcp_skill_make(&settings, &arena, (struct doc){kept, kept_n}, &skill, &tool, err);
    if (code == BT_OK) {
        (void)snprintf(seen, sizeof seen, "%s %s %s %s %s", skill.id,
                       skill.name != NULL ? skill.name : "-", skill.description, skill.input_schema,
                       tool.tool);
    }
    arena_done(&arena);
    return code;
}

static void settings_are_whole_or_there_is_no_memory(void **state)
{
    (void)state;
    assert_int_equal(setenv("OOM_KEY", "a-key", 1), 0);
    sweep(read_http);
    sweep(read_mcp);
    sweep(read_a2a);
    sweep(read_report);
    sweep(make_skill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(settings_are_whole_or_there_is_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
