/* What a rejected request teaches. */
#include "tests/support/cmocka.h"

#include "agents/llm/model/output_mode.h"

static void forms_go_down_and_quirks_come_once(void **state)
{
    static const struct {
        const char *sentence;
        enum llm_dialect dialect;
        long status;
        bool schema;
        bool learnt;
        enum llm_output_mode output_mode;
        unsigned quirks;
    } rows[] = {
        {"'response_format' is not supported", LLM_OPENAI, 400, true, true, LLM_OUTPUT_MODE_OBJECT,
         0},
        {"Invalid JSON_SCHEMA", LLM_OPENAI, 422, true, true, LLM_OUTPUT_MODE_OBJECT, 0},
        {"output_config: unknown", LLM_ANTHROPIC, 400, true, true, LLM_OUTPUT_MODE_TEXT, 0},
        {"failed to parse grammar", LLM_OPENAI, 400, true, true, LLM_OUTPUT_MODE_OBJECT, 0},
        {"invalid format", LLM_OLLAMA, 400, true, true, LLM_OUTPUT_MODE_OBJECT, 0},
        {"'response_format' is not supported", LLM_OPENAI, 400, false, false,
         LLM_OUTPUT_MODE_SCHEMA, 0},
        {"'response_format' is not supported", LLM_OPENAI, 429, true, false, LLM_OUTPUT_MODE_SCHEMA,
         0},
        {"the prompt is too long", LLM_OPENAI, 400, true, false, LLM_OUTPUT_MODE_SCHEMA, 0},
        {"", LLM_OPENAI, 400, true, false, LLM_OUTPUT_MODE_SCHEMA, 0},
        {"unknown field stream_options", LLM_OPENAI, 400, false, true, LLM_OUTPUT_MODE_SCHEMA,
         DIALECT_NO_STREAM_OPTIONS},
        {"use max_completion_tokens", LLM_OPENAI, 400, false, true, LLM_OUTPUT_MODE_SCHEMA,
         DIALECT_OTHER_MAX_TOKENS},
        {"max_tokens: at most 8192", LLM_ANTHROPIC, 400, false, false, LLM_OUTPUT_MODE_SCHEMA, 0},
        {"Unsupported value: 'temperature'", LLM_OPENAI, 400, false, true, LLM_OUTPUT_MODE_SCHEMA,
         DIALECT_NO_TEMPERATURE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server_caps l = {0};
        bool learnt = output_mode_learn(&l, rows[i].dialect, rows[i].schema, rows[i].status,
                                        str_from(rows[i].sentence));
        if (learnt != rows[i].learnt || l.output_mode != rows[i].output_mode ||
            l.quirks != rows[i].quirks) {
            fail_msg("%s: %d, rung %d, quirks %u", rows[i].sentence, learnt, (int)l.output_mode,
                     l.quirks);
        }
    }
}

static void a_server_that_always_complains_is_asked_a_bounded_number_of_times(void **state)
{
    struct server_caps l = {0};
    unsigned n = 0;

    (void)state;
    while (output_mode_learn(&l, LLM_OPENAI, true, 400, STR_LIT("no json_schema"))) {
        assert_in_range(++n, 0, 2);
    }
    assert_int_equal(l.output_mode, LLM_OUTPUT_MODE_TEXT);
    assert_true(output_mode_learn(&l, LLM_OPENAI, true, 400, STR_LIT("no stream_options")));
    assert_false(output_mode_learn(&l, LLM_OPENAI, true, 400, STR_LIT("no stream_options")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_go_down_and_quirks_come_once),
        cmocka_unit_test(a_server_that_always_complains_is_asked_a_bounded_number_of_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
