/* Request bodies and answers of each dialect; and malformed bodies. */
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/dialect.h"

/* ---- requests ---- */

static const struct llm_turn turns[] = {
    {.text = "why \"this\"?\n"}, {.text = "because", true}, {.text = "really?"}};

static void body(enum llm_dialect d, enum llm_output_mode output_mode, bool with_schema,
                 unsigned quirks, struct buf *out)
{
    cJSON *schema = cJSON_Parse(
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":1}}}");
    cJSON *extra = cJSON_Parse("{\"seed\":7,\"stream\":true}");
    struct llm_request r = {.system = "Be brief.",
                            .turns = turns,
                            .n_turns = 3,
                            .schema = with_schema ? schema : NULL,
                            .schema_name = "s",
                            .max_tokens = 50,
                            .temperature = 0.5};
    struct dialect_request ask = {.request = &r,
                                  .model = "m",
                                  .output_mode = output_mode,
                                  .quirks = quirks,
                                  .stream = true,
                                  .extra = extra};
    struct bt_error err;

    buf_init(out, 100000);
    if (dialect_body(d, &ask, out, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    cJSON_Delete(schema);
    cJSON_Delete(extra);
}

static void has(enum llm_dialect d, enum llm_output_mode output_mode, bool with_schema,
                unsigned quirks, const char *part, bool expected)
{
    struct buf out;

    body(d, output_mode, with_schema, quirks, &out);
    if ((strstr(buf_cstr(&out), part) != NULL) != expected) {
        fail_msg("%s '%s' in %s", expected ? "expected" : "unexpected", part, buf_cstr(&out));
    }
    buf_done(&out);
}

static void each_body_has_what_its_server_wants(void **state)
{
    (void)state;
    for (enum llm_dialect d = 0; d < LLM_DIALECT_COUNT; d++) {
        has(d, LLM_OUTPUT_MODE_TEXT, false, 0, "\"model\":\"m\"", true);
        has(d, LLM_OUTPUT_MODE_TEXT, false, 0,
            "{\"role\":\"user\",\"content\":\"why \\\"this\\\"?\\n\"}", true);
        has(d, LLM_OUTPUT_MODE_TEXT, false, 0, "{\"role\":\"assistant\",\"content\":\"because\"}",
            true);
        has(d, LLM_OUTPUT_MODE_TEXT, false, 0, "\"seed\":7", true);
        has(d, LLM_OUTPUT_MODE_TEXT, false, 0, "JSON", false);
        has(d, LLM_OUTPUT_MODE_TEXT, true, 0, "must fit this JSON Schema:", true);
        has(d, LLM_OUTPUT_MODE_SCHEMA, true, 0, "must fit this JSON Schema:", false);
        has(d, LLM_OUTPUT_MODE_SCHEMA, true, DIALECT_NO_TEMPERATURE, "temperature", false);
        has(d, LLM_OUTPUT_MODE_SCHEMA, false, 0, "\"temperature\":0.5", true);
    }
    has(LLM_OPENAI, LLM_OUTPUT_MODE_SCHEMA, true, 0,
        "\"type\":\"json_schema\",\"json_schema\":{\"name\"", true);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_SCHEMA, true, 0, "\"strict\":false", true);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_SCHEMA, true, 0, "\"minimum\":1", true);
    /* this server rejects bounds */
    has(LLM_ANTHROPIC, LLM_OUTPUT_MODE_SCHEMA, true, 0, "minimum", false);
    has(LLM_ANTHROPIC, LLM_OUTPUT_MODE_SCHEMA, true, 0, "\"additionalProperties\":false", true);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_OBJECT, true, 0, "\"type\":\"json_object\"", true);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_TEXT, true, 0, "response_format", false);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_TEXT, true, 0, "\"include_usage\":true", true);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_TEXT, true, DIALECT_NO_STREAM_OPTIONS, "include_usage", false);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_TEXT, true, 0, "\"max_tokens\":50", true);
    has(LLM_OPENAI, LLM_OUTPUT_MODE_TEXT, true, DIALECT_OTHER_MAX_TOKENS,
        "\"max_completion_tokens\":50", true);
    has(LLM_ANTHROPIC, LLM_OUTPUT_MODE_SCHEMA, true, 0, "\"output_config\":{\"format\":{", true);
    has(LLM_ANTHROPIC, LLM_OUTPUT_MODE_TEXT, false, 0, "\"system\":\"Be brief.\"", true);
    has(LLM_ANTHROPIC, LLM_OUTPUT_MODE_TEXT, false, 0, "\"role\":\"system\"", false);
    has(LLM_OLLAMA, LLM_OUTPUT_MODE_SCHEMA, true, 0,
        "\"format\":{\"type\":\"object\",\"properties\"", true);
    has(LLM_OLLAMA, LLM_OUTPUT_MODE_OBJECT, true, 0, "\"format\":\"json\"", true);
    has(LLM_OLLAMA, LLM_OUTPUT_MODE_TEXT, false, 0, "\"num_predict\":50", true);
}

/* ---- answers ---- */

static enum bt_code feed(struct dialect_answer *a, const char *json, bool chunk)
{
    struct buf doc;
    struct bt_error err;
    enum bt_code code;

    buf_init(&doc, 10 * 1024 * 1024);
    code = dialect_json(str_from(json), 1024 * 1024, &doc, &err);
    if (code == BT_OK) {
        code = dialect_read(a, doc_from_buf(&doc), chunk, &err);
    }
    buf_done(&doc);
    return code;
}

static void openai_answers_are_read(void **state)
{
    struct dialect_answer a;

    (void)state;
    dialect_answer_init(&a, LLM_OPENAI, 1000);
    assert_int_equal(
        feed(&a, "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"he\"}}]}", true),
        BT_OK);
    assert_int_equal(
        feed(&a, "{\"choices\":[{\"delta\":{\"content\":\"llo\"},\"finish_reason\":\"stop\"}]}",
             true),
        BT_OK);
    assert_int_equal(feed(&a,
                          "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
                          "\"prompt_tokens_details\":{\"cached_tokens\":1}}}",
                          true),
                     BT_OK);
    assert_string_equal(buf_cstr(&a.text), "hello");
    assert_int_equal(a.finish, LLM_FINISH_STOP);
    assert_true(a.usage.known && a.usage.input == 3 && a.usage.output == 2 && a.usage.cached == 1);
    assert_false(a.done); /* [DONE], or the end of the body, ends it */
    dialect_answer_done(&a);

    dialect_answer_init(&a, LLM_OPENAI, 1000);
    assert_int_equal(feed(&a,
                          "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{"
                          "\"arguments\":\"{\\\"a\\\":\"}}]}}]}",
                          true),
                     BT_OK);
    assert_int_equal(feed(&a,
                          "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{"
                          "\"arguments\":\"other\"}}]}}]}",
                          true),
                     BT_OK);
    assert_int_equal(feed(&a,
                          "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{"
                          "\"arguments\":\"1}\"}}]}}]}",
                          true),
                     BT_OK);
    assert_true(a.tool_called);
    assert_string_equal(buf_cstr(&a.tool), "{\"a\":1}");
    dialect_answer_done(&a);
}

/* B19: a server may send the choices in any order, each in chunks of its own. */
static void of_several_choices_the_first_by_index_counts(void **state)
{
    static const char *const chunks[] = {
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"wrong\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ri\"}}]}",
        "{\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"length\"}]}",
        "{\"choices\":[{\"index\":2,\"delta\":{\"content\":\"wrong\"}},"
        "{\"index\":0,\"delta\":{\"content\":\"ght\"},\"finish_reason\":\"stop\"}]}",
    };
    struct dialect_answer a;

    (void)state;
    dialect_answer_init(&a, LLM_OPENAI, 1000);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        assert_int_equal(feed(&a, chunks[i], true), BT_OK);
        assert_true(i != 2 || a.finish == LLM_FINISH_UNKNOWN);
    }
    assert_string_equal(buf_cstr(&a.text), "right");
    assert_int_equal(a.finish, LLM_FINISH_STOP);
    dialect_answer_done(&a);

    dialect_answer_init(&a, LLM_OPENAI, 1000);
    assert_int_equal(feed(&a,
                          "{\"choices\":[{\"index\":1,\"message\":{\"content\":\"wrong\"}},"
                          "{\"index\":0,\"message\":{\"content\":\"right\"}}]}",
                          false),
                     BT_OK);
    assert_string_equal(buf_cstr(&a.text), "right");
    dialect_answer_done(&a);
}

static void anthropic_answers_are_read(void **state)
{
    struct dialect_answer a;

    (void)state;
    dialect_answer_init(&a, LLM_ANTHROPIC, 1000);
    assert_int_equal(feed(&a,
                          "{\"type\":\"message_start\",\"message\":{\"model\":\"c\",\"content\":[],"
                          "\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":4,\"cache_"
                          "creation_input_tokens\":1,\"output_tokens\":1}}}",
                          true),
                     BT_OK);
    assert_int_equal(feed(&a, "{\"type\":\"something_new\",\"delta\":7}", true), BT_OK);
    assert_int_equal(feed(&a,
                          "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_"
                          "delta\",\"thinking\":\"hm\"}}",
                          true),
                     BT_OK);
    assert_int_equal(feed(&a,
                          "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
                          "\"text\":\"hi\"}}",
                          true),
                     BT_OK);
    assert_int_equal(feed(&a,
                          "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},"
                          "\"usage\":{\"output_tokens\":9}}",
                          true),
                     BT_OK);
    assert_false(a.done);
    assert_int_equal(feed(&a, "{\"type\":\"message_stop\"}", true), BT_OK);
    assert_true(a.done);
    assert_string_equal(buf_cstr(&a.text), "hi");
    assert_int_equal(a.finish, LLM_FINISH_LENGTH);
    assert_true(a.usage.input == 10 && a.usage.cached == 4 && a.usage.output == 9);
    dialect_answer_done(&a);

    dialect_answer_init(&a, LLM_ANTHROPIC, 1000);
    assert_int_equal(
        feed(&a,
             "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\"},{\"type\":\"text\",\"text\":"
             "\"a\"},7,{\"type\":\"text\",\"text\":\"b\"}],\"stop_reason\":\"end_turn\"}",
             false),
        BT_OK);
    assert_string_equal(buf_cstr(&a.text), "ab");
    dialect_answer_done(&a);
}

static void errors_are_read_in_every_form_of_the_field(void **state)
{
    static const struct {
        const char *json;
        const char *sentence;
    } rows[] = {
        {"{\"error\":{\"message\":\"a\",\"code\":400}}", "a"},
        {"{\"error\":\"b\"}", "b"},
        {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"c\"}}", "c"},
        {"{\"error\":{\"type\":\"d\"}}", "d"},
        {"{\"object\":\"error\",\"message\":\"e\",\"error\":true}", "e"},
        {"{\"error\":[1],\"detail\":\"f\"}", "f"},
        {"{\"error\":{}}", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (enum llm_dialect d = 0; d < LLM_DIALECT_COUNT; d++) {
            struct dialect_answer a;
            dialect_answer_init(&a, d, 1000);
            assert_int_equal(feed(&a, rows[i].json, true), BT_OK);
            assert_true(a.failed);
            assert_string_equal(buf_cstr(&a.error), rows[i].sentence);
            dialect_answer_done(&a);
        }
    }
}

static void bodies_from_hell_are_skipped_or_refused(void **state)
{
    static const struct {
        const char *json;
        enum bt_code code;
    } rows[] = {
        {"null", BT_PROTOCOL},
        {"[]", BT_PROTOCOL},
        {"7", BT_PROTOCOL},
        {"{\"choices\":null}", BT_OK},
        {"{\"choices\":[null]}", BT_OK},
        {"{\"choices\":{\"0\":{}}}", BT_OK},
        {"{\"choices\":[{\"message\":[],\"delta\":7,\"finish_reason\":{}}]}", BT_OK},
        {"{\"choices\":[{\"message\":{\"content\":{\"a\":1},\"tool_calls\":7}}]}", BT_OK},
        {"{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":7}]}}]}", BT_OK},
        {"{\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":1e300}}", BT_OK},
        {"{\"model\":{\"a\":[]},\"content\":7,\"message\":\"x\",\"delta\":[],\"done\":\"yes\"}",
         BT_OK},
        {"{\"type\":\"content_block_start\",\"content_block\":\"tool_use\"}", BT_OK},
        {"{\"a\":1,\"a\":2}", BT_PROTOCOL},
        {"{\"a\":", BT_PROTOCOL},
        {"{} {}", BT_PROTOCOL},
        {"", BT_PROTOCOL},
        {"\xef\xbb\xbf", BT_PROTOCOL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned k = 0; k < LLM_DIALECT_COUNT * 2; k++) {
            struct dialect_answer a;
            dialect_answer_init(&a, (enum llm_dialect)(k / 2), 1000);
            if (feed(&a, rows[i].json, k % 2 == 1) != rows[i].code) {
                fail_msg("%s", rows[i].json);
            }
            assert_int_equal(a.text.len, 0);
            assert_false(a.usage.known);
            dialect_answer_done(&a);
        }
    }
}

static void halves_of_characters_and_marks_are_mended(void **state)
{
    static const struct {
        const char *json;
        const char *text;
    } rows[] = {
        {"{\"message\":{\"content\":\"\\ud83d\\ude00\"}}", "\xf0\x9f\x98\x80"},
        {"{\"message\":{\"content\":\"\\ud83d\"}}", "\xef\xbf\xbd"},
        {"{\"message\":{\"content\":\"\\ude00x\"}}", "\xef\xbf\xbdx"},
        {"{\"message\":{\"content\":\"\\ud83d\\ud83d\\ude00\"}}", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"{\"message\":{\"content\":\"a\\u0000b\"}}", "a\xef\xbf\xbd"
                                                      "b"},
        {"{\"message\":{\"content\":\"\\\\ud83d\"}}", "\\ud83d"},
        {"{\"message\":{\"content\":\"\xff\"}}", "\xef\xbf\xbd"},
        {"\xef\xbb\xbf{\"message\":{\"content\":\"x\"}}", "x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dialect_answer a;
        dialect_answer_init(&a, LLM_OLLAMA, 1000);
        assert_int_equal(feed(&a, rows[i].json, true), BT_OK);
        assert_string_equal(buf_cstr(&a.text), rows[i].text);
        dialect_answer_done(&a);
    }
}

/* What encodes half a character is mended; what is no escape at all is no JSON. */
static void an_escape_has_four_digits(void **state)
{
    static const char *const rows[] = {
        "{\"message\":{\"content\":\"\\u00zz\"}}",        "{\"message\":{\"content\":\"\\u00/0\"}}",
        "{\"message\":{\"content\":\"\\u00:0\"}}",        "{\"message\":{\"content\":\"\\u00@0\"}}",
        "{\"message\":{\"content\":\"\\u00G0\"}}",        "{\"message\":{\"content\":\"\\u00`0\"}}",
        "{\"message\":{\"content\":\"\\u00g0\"}}",        "{\"message\":{\"content\":\"\\u00\"}}",
        "{\"message\":{\"content\":\"\\ud83d\\uzzzz\"}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dialect_answer a;
        dialect_answer_init(&a, LLM_OLLAMA, 1000);
        if (feed(&a, rows[i], true) != BT_PROTOCOL) {
            fail_msg("%s is read", rows[i]);
        }
        dialect_answer_done(&a);
    }
}

static void answers_over_the_cap_and_deep_ones_end(void **state)
{
    enum { N = 100000 };
    char *deep = malloc(2 * N + 1);
    struct dialect_answer a;

    (void)state;
    assert_non_null(deep);
    dialect_answer_init(&a, LLM_OLLAMA, 10);
    assert_int_equal(feed(&a, "{\"message\":{\"content\":\"12345\"}}", true), BT_OK);
    assert_int_equal(feed(&a, "{\"message\":{\"content\":\"67890x\"}}", true), BT_LIMIT);
    memset(deep, '[', N);
    memset(deep + N, ']', N);
    deep[2 * N] = 0;
    assert_int_not_equal(feed(&a, deep, true), BT_OK);
    dialect_answer_done(&a);
    free(deep);
}

/* A thousand bodies, each cut, doubled or changed in a few places. */
static void changed_bodies_never_do_harm(void **state)
{
    static const char *const seeds[] = {
        "{\"choices\":[{\"message\":{\"content\":\"x\\ud83d\",\"tool_calls\":[{\"function\":{"
        "\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,"
        "\"completion_tokens\":2}}",
        "{\"type\":\"message\",\"content\":[{\"type\":\"tool_use\",\"input\":{\"a\":[1,2]}}],"
        "\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}",
        "{\"message\":{\"content\":\"x\"},\"done\":true,\"done_reason\":\"length\","
        "\"eval_count\":3,\"error\":null}",
    };
    static const char alphabet[] = "{}[]\",:\\u0019dtfn-e. \xff";
    uint64_t chance = 1;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        char text[512];
        struct dialect_answer a;
        size_t len = strlen(seeds[i % 3]);
        memcpy(text, seeds[i % 3], len + 1);
        for (unsigned k = 0; k < 1 + i % 4; k++) {
            chance = chance * 6364136223846793005u + 1442695040888963407u;
            text[(chance >> 33) % len] = alphabet[(chance >> 20) % (sizeof alphabet - 1)];
        }
        dialect_answer_init(&a, (enum llm_dialect)(chance >> 40) % LLM_DIALECT_COUNT, 1000);
        (void)!feed(&a, text, (chance >> 50 & 1) != 0);
        dialect_answer_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_body_has_what_its_server_wants),
        cmocka_unit_test(openai_answers_are_read),
        cmocka_unit_test(of_several_choices_the_first_by_index_counts),
        cmocka_unit_test(anthropic_answers_are_read),
        cmocka_unit_test(errors_are_read_in_every_form_of_the_field),
        cmocka_unit_test(bodies_from_hell_are_skipped_or_refused),
        cmocka_unit_test(halves_of_characters_and_marks_are_mended),
        cmocka_unit_test(an_escape_has_four_digits),
        cmocka_unit_test(answers_over_the_cap_and_deep_ones_end),
        cmocka_unit_test(changed_bodies_never_do_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
