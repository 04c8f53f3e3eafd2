/* Reads providers from settings; checks URLs and addresses; computes costs. */
#include "tests/support/cmocka.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/config.h"
#include "agents/web/url.h"
#include "protocol/wire/doc.h"

static enum bt_code read_config(const char *json, struct llm_config **ret, struct bt_error *err)
{
    cJSON *tree = NULL;

    if (json_parse(str_from(json), &tree, err) != BT_OK) {
        fail_msg("%s: %s", json, err->msg);
    }
    return llm_config_read(tree, ret, err);
}

static void refused(const char *members, const char *why)
{
    struct llm_config *c = NULL;
    struct bt_error err;
    struct buf json;

    buf_init(&json, 10000);
    buf_printf(&json, "{\"providers\":[{%s}]}", members);
    if (read_config(buf_cstr(&json), &c, &err) == BT_OK) {
        fail_msg("accepted: %s", members);
    }
    if (strstr(err.msg, why) == NULL) {
        fail_msg("expected '%s' in '%s'", why, err.msg);
    }
    assert_null(c);
    buf_done(&json);
}

#define BASE "\"api\":\"openai\",\"model\":\"m\",\"baseUrl\":"
#define GOOD BASE "\"https://llm.example.com/v1\""

static void wrong_settings_are_refused_with_their_place(void **state)
{
    (void)state;
    refused("", "/providers/0");
    refused("\"api\":\"bard\",\"model\":\"m\",\"baseUrl\":\"https://a\"", "/providers/0/api");
    refused(GOOD ",\"key\":\"sk-oops\"", "key");
    refused(GOOD ",\"timeoutMs\":0", "timeoutMs");
    refused(GOOD ",\"attempts\":1000", "attempts");
    refused(GOOD ",\"price\":{\"input\":1}", "output");
    refused(GOOD ",\"keyEnv\":\"A\",\"keyFile\":\"/b\"", "expected one of");
    refused(GOOD ",\"keyEnv\":\"NO_SUCH_VARIABLE\"", "NO_SUCH_VARIABLE is not set");
    refused(GOOD ",\"headers\":{\"X-Api-Key\":\"1\"}", "may carry a secret");
    refused(GOOD ",\"headers\":{\"A\":\"1\\r\\nB: 2\"}", "is no header");
    refused(GOOD ",\"headers\":{\"A B\":\"1\"}", "is no header");
    refused(GOOD ",\"keyHeader\":\"A: b\"", "is no header");
    refused(BASE "\"http://llm.example.com/v1\"", "http only to this machine");
    refused(BASE "\"http://127.0.0.1/v1\",\"proxy\":\"http://proxy.example.com\"", "allowHttp");
    refused(BASE "\"file:///etc/passwd\"", "expected https://");
    refused(BASE "\"gopher://a\"", "expected https://");
    refused(BASE "\"https://user:pw@example.com\"", "without user");
    refused(BASE "\"https://a/?key=1\"", "without user, query");
    refused(BASE "\"https://\"", "providers[0]: baseUrl");
}

static void provider_is_read_whole(void **state)
{
    struct llm_config *c = NULL;
    const struct llm_provider *p;
    struct bt_error err;

    (void)state;
    assert_int_equal(setenv("LLM_TEST_KEY", "sk-0123456789", 1), 0);
    if (read_config("{\"providers\":[{\"api\":\"anthropic\",\"model\":\"m\",\"baseUrl\":\"https://"
                    "a.example.com/v1//\",\"keyEnv\":\"LLM_TEST_KEY\",\"structured\":\"text\","
                    "\"headers\":{\"X-Title\":\"baton\"},\"body\":{\"seed\":1},"
                    "\"price\":{\"input\":3,\"output\":15}},"
                    "{\"id\":\"two\",\"api\":\"ollama\",\"model\":\"m\",\"baseUrl\":\"http://[::1]:"
                    "11434\",\"keyEnv\":\"LLM_TEST_KEY\",\"stream\":false}]}",
                    &c, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    p = &c->providers[0];
    assert_string_equal(p->id, "m");
    assert_string_equal(p->url, "https://a.example.com/v1/messages");
    assert_string_equal(p->key, "sk-0123456789");
    assert_string_equal(p->headers[0], "X-Title: baton");
    assert_string_equal(p->headers[1], "anthropic-version: 2023-06-01");
    assert_null(p->headers[2]);
    assert_int_equal(p->output_mode, LLM_OUTPUT_MODE_TEXT);
    assert_true(p->stream && !p->allow_http && p->priced);
    p = &c->providers[1];
    assert_string_equal(p->url, "http://[::1]:11434/api/chat");
    assert_ptr_equal(p->key, c->providers[0].key);
    assert_false(p->stream || p->priced);
    assert_null(getenv("LLM_TEST_KEY"));
    llm_config_free(c);
}

static void cost_is_by_the_price_table_and_rounded_up(void **state)
{
    static const struct {
        struct llm_usage usage;
        uint64_t micros;
    } rows[] = {
        {{.input = 0, .output = 0}, 0},
        {{.input = 1000, .output = 100}, 1000 * 3 + 100 * 15},
        {{.input = 1000, .output = 0, .cached = 400}, 600 * 3 + 120},
        {{.input = 1, .output = 0, .cached = 1}, 1},
        {{.input = 10, .output = 0, .cached = 999}, 3}, /* more cached tokens than input tokens */
    };
    const struct llm_provider p = {.price = {.input = 3, .output = 15, .cached = 0.3}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(llm_cost(&p, &rows[i].usage), rows[i].micros);
    }
}

static bool allowed(const char *ip, bool loopback_only)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};

    if (inet_pton(AF_INET, ip, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, ip, &a.v6.sin6_addr), 1);
        a.v6.sin6_family = AF_INET6;
    }
    return url_address_allowed(&a.any, loopback_only);
}

static void names_may_not_lead_to_where_secrets_are(void **state)
{
    static const struct {
        const char *ip;
        bool any;
        bool here;
    } rows[] = {
        {"127.0.0.1", true, true},
        {"127.9.9.9", true, true},
        {"::1", true, true},
        {"::ffff:127.0.0.1", true, true},
        {"192.0.2.7", true, false},
        {"2001:db8::1", true, false},
        {"169.254.169.254", false, false},
        {"::ffff:169.254.169.254", false, false},
        {"fe80::1", false, false},
        {"0.0.0.0", false, false},
        {"::", false, false},
        {"224.0.0.1", false, false},
        {"255.255.255.255", false, false},
        {"ff02::1", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (allowed(rows[i].ip, false) != rows[i].any ||
            allowed(rows[i].ip, true) != rows[i].here) {
            fail_msg("%s", rows[i].ip);
        }
    }
    assert_true(url_is_loopback(STR_LIT("http://localhost:1/x")));
    assert_false(url_is_loopback(STR_LIT("http://localhost.example.com/")));
    assert_false(url_is_loopback(STR_LIT("http://127.0.0.1.example.com/")));
    assert_true(url_is_loopback(STR_LIT("HTTP://[::1]")));
}

static void add_told(void *of, const char *pointer, const char *said)
{
    buf_printf(of, "%s: %s\n", pointer, said);
}

static void told(const char *json, enum bt_code code, const char *expected)
{
    struct buf said;
    const struct llm_problem_sink to = {add_told, &said};
    struct bt_error err;
    cJSON *tree = NULL;

    buf_init(&said, 10000);
    assert_int_equal(json_parse(str_from(json), &tree, &err), BT_OK);
    assert_int_equal(llm_config_check(tree, &to, &err), code);
    assert_string_equal(buf_cstr(&said), expected);
    cJSON_Delete(tree);
    buf_done(&said);
}

static void all_that_is_wrong_is_told_where_it_is_and_no_key_is_looked_for(void **state)
{
    (void)state;
    told("{\"providers\":[{" GOOD ",\"keyEnv\":\"NO_SUCH_VARIABLE\"}],\"capacity\":2,\"env\":[]}",
         BT_OK, "");
    told("{\"providers\":[{\"api\":\"opnai\",\"baseUrl\":\"https://a\"}],\"maxTokens\":1}",
         BT_INVALID,
         "/providers/0/model: is missing\n"
         "/providers/0/api: expected one of \"openai\", \"anthropic\", \"ollama\", got \"opnai\"; "
         "did you mean \"openai\"?\n"
         "/maxTokens: must be at least 16, got 1\n");
    told("{\"providers\":[{" BASE "\"ftp://a\"},{" GOOD "},{" GOOD
         ",\"headers\":{\"A B\":\"1\"}},{" GOOD ",\"keyEnv\":\"A\",\"keyFile\":\"B\"}],"
         "\"record\":\"/a\",\"replay\":\"/b\"}",
         BT_INVALID,
         "/providers/0/baseUrl: expected https:// or http://\n"
         "/providers/2/headers: 'A B' is no header\n"
         "/providers/3/keyFile: expected one of keyEnv, keyFile, keyCredential\n"
         "/replay: expected record or replay, not both\n");
}

static void missing(const char *members, const char *const *env, const char *pointer,
                    const char *why)
{
    const struct secret_view seen = {.env = env, .cwd = "/nonexistent"};
    struct bt_error err = {0};
    char where[64] = "";
    cJSON *tree = NULL;
    struct buf json;

    buf_init(&json, 10000);
    buf_printf(&json, "{\"providers\":[{" GOOD "},{" GOOD "%s}]}", members);
    assert_int_equal(json_parse(buf_str(&json), &tree, &err), BT_OK);
    const enum bt_code code = llm_keys_check(tree, &seen, where, sizeof where, &err);
    assert_string_equal(where, pointer);
    assert_true((code == BT_OK) == (pointer[0] == 0));
    assert_non_null(strstr(err.msg, why));
    cJSON_Delete(tree);
    buf_done(&json);
}

static void keys_are_looked_for_as_the_agent_will_see_them(void **state)
{
    const char *const own[] = {"LLM_TEST_SEEN", "LLM_TEST_SET=sk-0123456789", "LLM_TEST_BAD=a b",
                               NULL};

    (void)state;
    assert_int_equal(setenv("LLM_TEST_SEEN", "sk-0123456789", 1), 0);
    assert_int_equal(setenv("LLM_TEST_HIDDEN", "sk-0123456789", 1), 0);
    missing(",\"keyEnv\":\"LLM_TEST_SEEN\"", own, "", "");
    assert_non_null(getenv("LLM_TEST_SEEN")); /* the agent still needs it */
    missing(",\"keyEnv\":\"LLM_TEST_SET\"", own, "", "");
    missing(",\"keyEnv\":\"LLM_TEST_HIDDEN\"", own, "/providers/1/keyEnv",
            "the environment variable LLM_TEST_HIDDEN is not set");
    missing(",\"keyEnv\":\"LLM_TEST_BAD\"", own, "/providers/1/keyEnv", "expected a key of 1 to");
    missing(",\"keyFile\":\"key\"", own, "/providers/1/keyFile", "/nonexistent/key");
    missing(",\"keyFile\":\"/dev/null\"", own, "/providers/1/keyFile", "regular file");
    missing(",\"keyCredential\":\"key\"", own, "/providers/1/keyCredential",
            "CREDENTIALS_DIRECTORY is not set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused_with_their_place),
        cmocka_unit_test(provider_is_read_whole),
        cmocka_unit_test(all_that_is_wrong_is_told_where_it_is_and_no_key_is_looked_for),
        cmocka_unit_test(keys_are_looked_for_as_the_agent_will_see_them),
        cmocka_unit_test(cost_is_by_the_price_table_and_rounded_up),
        cmocka_unit_test(names_may_not_lead_to_where_secrets_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
