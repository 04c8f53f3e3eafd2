/*
 * The client against servers that misbehave. Which test covers which case:
 * - prose, fence, two values, cut off, null, array, wrong type: answers_in_wrappings,
 *   test_llm_answer_parser; as_is: test_llm_text
 * - <think>, also split over pieces: answers_in_wrappings, test_llm_text_filter
 * - an answer like a tool call: answers_in_wrappings; without a schema: what_does_not_pass
 * - refusal, length, empty: what_does_not_pass; empty: what_passes
 * - 408 409 429 5xx 529, Retry-After as seconds, date, 1e9, garbage, x-should-retry: what_passes,
 *   what_does_not_pass, test_llm_retry
 * - broken off, early end, error mid-stream, short, malformed, not HTTP: what_passes,
 *   what_does_not_pass
 * - hangs, silence, 1 byte a second: every_answer_is_bounded, what_passes (idle)
 * - endless body, line, header, 1xx; gzip bomb; deep JSON: every_answer_is_bounded
 * - redirect to http, file, gopher: what_does_not_pass
 * - TLS: self-signed, wrong name, expired: test_llm_tls
 * - metadata addresses, proxies and logins of the environment: test_llm_net
 * - key echoed in errors, headers, answers, pieces, recordings: what_does_not_pass, a_key_in_an,
 *   test_llm_text, test_llm_net
 * - key files that others can read, systemd credentials: test_llm_secret
 * - usage missing, negative, absurd: usage_that_is_missing
 * - forms that a server rejects: a_form_that_a_server, free_object_costs_no_output_mode
 * - unknown agents, cycles, 10,000 steps, duplicate ids: test_llm_agent, test_llm_plan_check,
 *   tests/e2e/test_llm.py
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "tests/edge/model/world.h"

static const char *const apis[] = {"openai", "anthropic", "ollama"};

static double answer_of(const struct world_answer *a)
{
    if (a->code != BT_OK) {
        fail_msg("%s", a->err.msg);
    }
    return cJSON_GetObjectItem(a->reply.json, "answer")->valuedouble;
}

static void each_dialect_answers_whole_and_as_a_stream(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct world_answer a;
        struct llm_client *c = world_client(apis[i % 3], "ok", i < 3 ? "" : ",\"stream\":false");
        world_ask(c, false, 5000, &a);
        if (a.code != BT_OK) {
            fail_msg("%s: %s", apis[i % 3], a.err.msg);
        }
        assert_string_equal(buf_cstr(&a.reply.text), "hello there");
        assert_true(a.reply.usage.known);
        assert_int_equal(a.reply.usage.input, 12);
        assert_int_equal(a.reply.usage.output, 5);
        assert_int_equal(a.reply.cost_micros, i % 3 == 2 ? 74 : 72); /* two of them cached */
        assert_string_equal(a.reply.model, "mock-1");
        assert_int_equal(a.reply.calls, 1);
        world_done(c, &a);
    }
}

static void each_dialect_holds_the_model_to_a_schema(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world_answer a;
        struct llm_client *c = world_client(apis[i], "ok", "");
        world_ask(c, true, 5000, &a);
        assert_int_equal((int)answer_of(&a), 42);
        assert_int_equal(a.reply.output_mode, LLM_OUTPUT_MODE_SCHEMA);
        world_done(c, &a);
    }
}

struct row {
    const char *api;
    const char *script;
    const char *members;
    bool schema;
    enum bt_code code;
    uint32_t calls;    /* 0 = not checked */
    const char *words; /* of the error */
};

static void run_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        struct world_answer a;
        struct llm_client *c = world_client(r->api, r->script, r->members);
        msec began = clock_mono_ms();
        world_ask(c, r->schema, 4000, &a);
        if (a.code != r->code || (r->calls != 0 && a.reply.calls != r->calls) ||
            (r->words != NULL && strstr(a.err.msg, r->words) == NULL)) {
            fail_msg("%s %s: %s after %u calls: %s", r->api, r->script, bt_code_name(a.code),
                     a.reply.calls, a.err.msg);
        }
        assert_in_range(clock_mono_ms() - began, 0, 6000);
        world_done(c, &a);
    }
}

static void what_passes_is_tried_again(void **state)
{
    static const struct row rows[] = {
        {"openai", "429:0,ok", "", false, BT_OK, 2, NULL},
        {"openai", "503,529,ok", "", false, BT_OK, 3, NULL},
        {"openai", "408,409,ok", "", false, BT_OK, 3, NULL},
        {"openai", "drop,ok", "", false, BT_OK, 2, NULL},
        {"openai", "ends,ok", "", false, BT_OK, 2, NULL},
        {"anthropic", "ends,ok", "", false, BT_OK, 2, NULL},
        {"ollama", "ends,ok", "", false, BT_OK, 2, NULL},
        {"openai", "miderror,ok", "", false, BT_OK, 2, NULL},
        {"anthropic", "miderror,ok", "", false, BT_OK, 2, NULL},
        {"ollama", "miderror,ok", "", false, BT_OK, 2, NULL},
        {"openai", "malformed,html,ok", "", false, BT_OK, 3, NULL},
        {"openai", "empty,ok", "", false, BT_OK, 2, NULL},
        {"openai", "hang,ok", ",\"idleTimeoutMs\":200", false, BT_OK, 2, NULL},
        {"openai", "mute,ok", ",\"idleTimeoutMs\":200", false, BT_OK, 2, NULL},
        {"openai", "429:garbage,ok", "", false, BT_OK, 2, NULL},
        {"openai", "429:1e9,ok", "", false, BT_OK, 2, NULL}, /* not a number: ignored */
        {"openai", "429:Sun%2C%2006%20Nov%201994%2008:49:37%20GMT,ok", "", false, BT_OK, 2, NULL},
        {"openai", "doretry,ok", "", false, BT_OK, 2, NULL},
        {"openai", "short,ok", ",\"stream\":false", false, BT_OK, 2, NULL},
    };

    (void)state;
    run_rows(rows, sizeof rows / sizeof rows[0]);
}

static void what_does_not_pass_is_not(void **state)
{
    static const struct row rows[] = {
        {"openai", "400", "", false, BT_INVALID, 1, "status 400: the server is unwell"},
        {"openai", "404", "", false, BT_NOT_FOUND, 1, "status 404"},
        {"openai", "noretry", "", false, BT_UNAVAILABLE, 1, "status 503"},
        {"openai", "429:1000000000", "", false, BT_BUSY, 1, "status 429"},
        {"openai", "429:Fri%2C%2031%20Dec%209999%2023:59:59%20GMT", "", false, BT_BUSY, 1, NULL},
        {"openai", "redirectgopher", "", false, BT_INVALID, 1, "redirects are not followed"},
        {"openai", "noise", "", false, BT_INVALID, 1, NULL},
        {"openai", "503", ",\"attempts\":2", false, BT_UNAVAILABLE, 2, "model mock at 127.0.0.1:"},
        {"openai", "echo", "", false, BT_UNAUTHORIZED, 1, "Incorrect API key provided: [redacted]"},
        {"anthropic", "echo", "", false, BT_UNAUTHORIZED, 1, "[redacted]. You sent [redacted]"},
        {"openai", "redirect", "", false, BT_INVALID, 1, "redirects are not followed"},
        {"openai", "redirectfile", "", false, BT_INVALID, 1, "redirects are not followed"},
        {"openai", "length", "", false, BT_LIMIT, 1, "cut off at 100 tokens"},
        {"anthropic", "length", "", false, BT_LIMIT, 1, "cut off"},
        {"ollama", "length", "", false, BT_LIMIT, 1, "cut off"},
        {"openai", "refusal", "", false, BT_INVALID, 1, "refused to answer: I cannot help"},
        {"anthropic", "refusal", "", true, BT_INVALID, 1, "refused"},
        {"openai", "tool", "", false, BT_PROTOCOL, 1, "called a tool"},
    };

    (void)state;
    run_rows(rows, sizeof rows / sizeof rows[0]);
}

static void every_answer_is_bounded_in_time_and_bytes(void **state)
{
    static const struct row rows[] = {
        {"openai", "drip", ",\"timeoutMs\":1500,\"attempts\":1", false, BT_TIMEOUT, 1, "in time"},
        {"openai", "endless", ",\"maxBytes\":100000", false, BT_LIMIT, 1, "100000"},
        {"anthropic", "endless", ",\"maxBytes\":100000", false, BT_LIMIT, 1, NULL},
        {"ollama", "endless", ",\"maxBytes\":100000", false, BT_LIMIT, 1, NULL},
        {"openai", "endlessline", ",\"maxBytes\":100000", false, BT_LIMIT, 1, NULL},
        {"openai", "endlessheader", ",\"attempts\":1", false, BT_LIMIT, 1, NULL},
        {"openai", "deep", "", false, BT_LIMIT, 1, "deeper than 64"},
        {"openai", "endless100", ",\"attempts\":1", false, BT_LIMIT, 1, NULL},
        {"openai", "bomb", ",\"maxBytes\":1000000", false, BT_LIMIT, 1, "1000000 bytes"},
        {"openai", "gzip", "", false, BT_OK, 1, NULL},
        {"openai", "mute", ",\"idleTimeoutMs\":150,\"attempts\":1", false, BT_TIMEOUT, 1,
         "silence"},
    };

    (void)state;
    run_rows(rows, sizeof rows / sizeof rows[0]);
}

static void answers_in_wrappings_are_understood(void **state)
{
    static const struct row rows[] = {
        {"openai", "prose", "", true, BT_OK, 1, NULL},
        {"openai", "think", "", true, BT_OK, 1, NULL},
        {"openai", "tool", "", true, BT_OK, 1, NULL},
        {"anthropic", "tool", "", true, BT_OK, 1, NULL},
        {"ollama", "tool", "", true, BT_OK, 1, NULL},
        {"openai", "wrong,ok", "", true, BT_OK, 2, NULL},
        {"openai", "array,ok", "", true, BT_OK, 2, NULL},
        {"openai", "two,ok", "", true, BT_OK, 2, NULL},
        {"openai", "say:null,ok", "", true, BT_OK, 2, NULL},
        {"openai", "say:%7B%22answer%22%3A%204,ok", "", true, BT_OK, 2, NULL}, /* cut off */
        {"openai", "say:%7B%22answer%22%3A%20null%7D,ok", "", true, BT_OK, 2, NULL},
        {"openai", "wrong", "", true, BT_INVALID, 2, "also after a repair turn: /answer"},
    };

    (void)state;
    run_rows(rows, sizeof rows / sizeof rows[0]);
}

static void a_form_that_a_server_does_not_take_is_remembered(void **state)
{
    static const struct {
        const char *api;
        const char *script;
        enum llm_output_mode output_mode;
        uint32_t calls;
    } rows[] = {
        {"openai", "noschema", LLM_OUTPUT_MODE_OBJECT, 2},
        {"openai", "noformat", LLM_OUTPUT_MODE_TEXT, 3},
        {"anthropic", "noformat", LLM_OUTPUT_MODE_TEXT, 2},
        {"ollama", "noformat", LLM_OUTPUT_MODE_TEXT, 3},
        {"openai", "nooptions", LLM_OUTPUT_MODE_SCHEMA, 2},
        {"openai", "newtokens", LLM_OUTPUT_MODE_SCHEMA, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world_answer a;
        struct llm_client *c = world_client(rows[i].api, rows[i].script, "");
        world_ask(c, true, 5000, &a);
        assert_int_equal((int)answer_of(&a), 42);
        assert_int_equal(a.reply.calls, rows[i].calls);
        assert_int_equal(llm_client_output_mode(c, 0), rows[i].output_mode);
        llm_reply_done(&a.reply);
        world_ask(c, true, 5000, &a);
        assert_int_equal((int)answer_of(&a), 42);
        assert_int_equal(a.reply.calls, 1);
        world_done(c, &a);
    }
}

static void usage_that_is_missing_or_mad_is_estimated(void **state)
{
    static const char *const scripts[] = {"nousage", "madusage"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world_answer a;
        struct llm_client *c = world_client("openai", scripts[i], ",\"stream\":false");
        world_ask(c, false, 5000, &a);
        assert_int_equal(a.code, BT_OK);
        assert_false(a.reply.usage.known);
        assert_in_range(a.reply.usage.input, 10, 200);
        assert_in_range(a.reply.usage.output, 1, 10);
        assert_true(a.reply.cost_micros > 0);
        world_done(c, &a);
    }
}

static void a_key_in_an_answer_is_taken_out(void **state)
{
    struct world_answer a;
    struct llm_client *c = world_client("openai", "echoanswer", "");

    (void)state;
    world_ask(c, false, 5000, &a);
    assert_string_equal(buf_cstr(&a.reply.text), "your key is [redacted]");
    assert_null(getenv("MOCK_KEY"));
    world_done(c, &a);
}

static void the_next_provider_is_asked_and_the_breaker_remembers(void **state)
{
    char settings[2048];
    struct world_answer a;
    struct llm_client *c;

    (void)state;
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"id\":\"bad\",\"api\":\"openai\",\"model\":\"m\",\"baseUrl\":"
                   "\"http://127.0.0.1:%d/503~fallback/v1\",\"attempts\":2,\"backoffMs\":1,"
                   "\"breaker\":{\"failures\":2,\"cooldownMs\":60000}},"
                   "{\"id\":\"good\",\"api\":\"anthropic\",\"model\":\"m\",\"baseUrl\":"
                   "\"http://localhost:%d/ok~fallback/v1\"}]}",
                   world_port(), world_port());
    c = world_client_of(settings);
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_OK);
    assert_string_equal(a.reply.provider, "good");
    assert_int_equal(a.reply.calls, 3);
    llm_reply_done(&a.reply);
    world_ask(c, false, 5000, &a); /* two attempts count as one failure */
    assert_int_equal(a.reply.calls, 3);
    llm_reply_done(&a.reply);
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_OK);
    assert_int_equal(a.reply.calls, 1);
    world_done(c, &a);
}

static void who_is_left_alone_is_so_with_the_cause_and_for_how_long(void **state)
{
    static const struct {
        const char *script;
        const char *members;
        const char *words;
    } rows[] = {
        {"503", "",
         "it failed too often and is left alone for 60 s more; the last failure: status "
         "503: the server is unwell"},
        {"429:90", ",\"attempts\":3",
         "it asked for a longer wait and is left alone for 90 s more; "
         "the last failure: status 429"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char members[160];
        struct world_answer a;
        struct llm_client *c;
        unsigned asked = 0;

        (void)snprintf(members, sizeof members,
                       ",\"breaker\":{\"failures\":3,\"cooldownMs\":60000}%s", rows[i].members);
        c = world_client("openai", rows[i].script, members);
        for (world_ask(c, false, 5000, &a); a.reply.calls > 0; world_ask(c, false, 5000, &a)) {
            assert_null(strstr(a.err.msg, "left alone"));
            assert_in_range(++asked, 1, 3);
            llm_reply_done(&a.reply);
        }
        assert_int_equal(asked, i == 0 ? 3 : 1);
        assert_int_equal(a.code, BT_UNAVAILABLE);
        assert_in_range(a.reply.retry_after_ms, i == 0 ? 50000 : 80000, i == 0 ? 60000 : 90000);
        if (strstr(a.err.msg, rows[i].words) == NULL) {
            fail_msg("%s", a.err.msg);
        }
        world_done(c, &a);
    }
}

/* With a cooldown of a millisecond the breaker is half-open: the one probe makes one attempt. */
static void a_suspect_is_asked_once_and_heard_when_it_says_something_else(void **state)
{
    struct world_answer a;
    struct llm_client *c =
        world_client("openai", "503,503,503,503,echo",
                     ",\"attempts\":3,\"breaker\":{\"failures\":1,\"cooldownMs\":1}");
    msec until;

    (void)state;
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.reply.calls, 3);
    for (unsigned i = 0; i < 2; i++) {
        llm_reply_done(&a.reply);
        for (until = clock_mono_ms() + 5; clock_mono_ms() < until;) {
        }
        world_ask(c, false, 5000, &a);
        assert_int_equal(a.reply.calls, 1);
    }
    assert_int_equal(a.code, BT_UNAUTHORIZED);
    world_done(c, &a);
}

static void each_provider_that_failed_says_why(void **state)
{
    char settings[1024];
    struct world_answer a;
    struct llm_client *c;

    (void)state;
    (void)snprintf(
        settings, sizeof settings,
        "{\"providers\":[{\"id\":\"one\",\"api\":\"openai\",\"model\":\"m\",\"attempts\":1,"
        "\"baseUrl\":\"http://127.0.0.1:%d/503~why/v1\"},{\"id\":\"two\",\"api\":\"openai\","
        "\"model\":\"m\",\"baseUrl\":\"http://127.0.0.1:%d/401~why/v1\"}]}",
        world_port(), world_port());
    c = world_client_of(settings);
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_UNAUTHORIZED);
    assert_ptr_equal(strstr(a.err.msg, "model two at 127.0.0.1:"), a.err.msg);
    assert_non_null(strstr(a.err.msg, ": status 401"));
    assert_non_null(strstr(a.err.msg, "; before that, model one at 127.0.0.1:"));
    assert_non_null(strstr(a.err.msg, ": status 503"));
    world_done(c, &a);
}

static void a_refusal_is_not_taken_to_the_next_model(void **state)
{
    char settings[1024];
    struct world_answer a;
    struct llm_client *c;

    (void)state;
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"baseUrl\":"
                   "\"http://127.0.0.1:%d/refusal/v1\"},{\"api\":\"openai\",\"model\":\"n\","
                   "\"baseUrl\":\"http://127.0.0.1:%d/ok/v1\"}]}",
                   world_port(), world_port());
    c = world_client_of(settings);
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_INVALID);
    assert_int_equal(a.reply.finish, LLM_FINISH_REFUSAL);
    assert_int_equal(a.reply.calls, 1);
    world_done(c, &a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_dialect_answers_whole_and_as_a_stream),
        cmocka_unit_test(each_dialect_holds_the_model_to_a_schema),
        cmocka_unit_test(what_passes_is_tried_again),
        cmocka_unit_test(what_does_not_pass_is_not),
        cmocka_unit_test(every_answer_is_bounded_in_time_and_bytes),
        cmocka_unit_test(answers_in_wrappings_are_understood),
        cmocka_unit_test(a_form_that_a_server_does_not_take_is_remembered),
        cmocka_unit_test(usage_that_is_missing_or_mad_is_estimated),
        cmocka_unit_test(a_key_in_an_answer_is_taken_out),
        cmocka_unit_test(each_provider_that_failed_says_why),
        cmocka_unit_test(a_refusal_is_not_taken_to_the_next_model),
        cmocka_unit_test(the_next_provider_is_asked_and_the_breaker_remembers),
        cmocka_unit_test(who_is_left_alone_is_so_with_the_cause_and_for_how_long),
        cmocka_unit_test(a_suspect_is_asked_once_and_heard_when_it_says_something_else),
    };

    return cmocka_run_group_tests(tests, world_start, world_stop);
}
