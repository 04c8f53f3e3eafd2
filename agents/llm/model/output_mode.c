#include "agents/llm/model/output_mode.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool names(struct str text, const char *word)
{
    size_t n = strlen(word);

    for (size_t at = 0; at + n <= text.len; at++) {
        size_t i = 0;
        while (i < n && lower(text.ptr[at + i]) == word[i]) {
            i++;
        }
        if (i == n) {
            return true;
        }
    }
    return false;
}

static bool add_quirk(struct server_caps *l, enum dialect_quirk quirk)
{
    bool is_new = (l->quirks & quirk) == 0;

    l->quirks |= quirk;
    return is_new;
}

bool output_mode_learn(struct server_caps *l, enum llm_dialect d, bool with_schema, long status,
                       struct str sentence)
{
    static const char *const forms[] = {"response_format", "json_schema",
                                        "json_object",     "output_config",
                                        "structured",      "schema",
                                        "json mode",       "format",
                                        "grammar"}; /* llama.cpp derives one from the schema */

    if (status != 400 && status != 415 && status != 422 && status != 501) {
        return false;
    }
    if (names(sentence, "stream_options")) {
        return add_quirk(l, DIALECT_NO_STREAM_OPTIONS);
    }
    if (names(sentence, "max_tokens") || names(sentence, "max_completion_tokens")) {
        return d == LLM_OPENAI && add_quirk(l, DIALECT_OTHER_MAX_TOKENS);
    }
    if (names(sentence, "temperature")) {
        return add_quirk(l, DIALECT_NO_TEMPERATURE);
    }
    for (size_t i = 0; with_schema && i < sizeof forms / sizeof forms[0]; i++) {
        if (names(sentence, forms[i]) && l->output_mode < LLM_OUTPUT_MODE_TEXT) {
            l->output_mode = dialect_output_mode(d, (enum llm_output_mode)(l->output_mode + 1));
            return true;
        }
    }
    return false;
}
