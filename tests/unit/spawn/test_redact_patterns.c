/* Text that looks like a secret is redacted; other text is unchanged. */
#include "tests/support/cmocka.h"

#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/spawn/redact_patterns.h"

static void becomes(const char *line, const char *expected)
{
    char shown[256];

    redact_patterns(str_from(line), shown, sizeof shown);
    assert_string_equal(shown, expected);
}

static void the_value_behind_the_name_of_a_secret_is_hidden(void **state)
{
    (void)state;
    becomes("OPENAI_API_KEY=abc", "OPENAI_API_KEY=[redacted]");
    becomes("env: TOKEN=abc SECRET=d PASSWORD=e x=1",
            "env: TOKEN=[redacted] SECRET=[redacted] PASSWORD=[redacted] x=1");
    becomes("MY_KEY_OLD=abc API_KEY_2: abc", "MY_KEY_OLD=[redacted] API_KEY_2: [redacted]");
    becomes("{\"apiKey\": \"a b\", \"n\": 1}", "{\"apiKey\": \"[redacted]\", \"n\": 1}");
    becomes("{\\\"api_key\\\":\\\"abc\\\"}", "{\\\"api_key\\\":\\\"[redacted]\"}");
    becomes("db password : hunter2", "db password : [redacted]");
    becomes("run --api-key abc --verbose", "run --api-key [redacted] --verbose");
    becomes("KEY='a b' failed", "KEY='[redacted]' failed");
}

static void what_follows_a_scheme_of_authorization_is_hidden(void **state)
{
    (void)state;
    becomes("got Authorization: Bearer abc.def refused",
            "got Authorization: Bearer [redacted] refused");
    becomes("bearer abc", "bearer [redacted]");
    becomes("header 'Basic dXNlcjpw' is wrong", "header 'Basic [redacted] is wrong");
    becomes("the bearer", "the bearer");
}

static void keys_of_known_services_are_hidden_wherever_they_stand(void **state)
{
    (void)state;
    becomes("bad: sk-live-0123456789!", "bad: [redacted]!");
    becomes("(ghp_0123456789abcdef)", "([redacted])");
    becomes("AKIA0123456789ABCDEF", "[redacted]");
    becomes("task-master sk-1 desk-0123456789", "task-master sk-1 desk-0123456789");
}

static void the_user_of_a_url_is_hidden(void **state)
{
    (void)state;
    becomes("GET https://bob:pw@host/x failed", "GET https://[redacted]@host/x failed");
    becomes("GET https://host/a@b failed", "GET https://host/a@b failed");
}

static void anything_else_is_told_as_it_is(void **state)
{
    static const char *const lines[] = {
        "",
        "settings: keyFile: /a/key: expected a key of 1 to 4096 printable characters",
        "llm.providers.0.keyEnv: the environment variable NO_SUCH_KEY is not set",
        "Permission denied: \"/var/lib/x\"",
        "Keyboard: not found = 3",
        "key",
        "=",
        "token=",
        "--token",
        "://",
        "KEY=\"",
        "bearer ",
        "\xc3\xa9t\xc3\xa9"};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        becomes(lines[i], lines[i]);
    }
}

static void it_is_cut_between_characters_also_in_the_mark(void **state)
{
    char line[64];

    (void)state;
    for (size_t cap = 1; cap < sizeof line; cap++) {
        redact_patterns(STR_LIT("\xc3\xa9\xc3\xa9 KEY=abc \xe2\x82\xac\xe2\x82\xac"), line, cap);
        assert_true(strlen(line) < cap);
        assert_true(utf8_valid(line, strlen(line)));
        assert_null(strstr(line, "abc"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_value_behind_the_name_of_a_secret_is_hidden),
        cmocka_unit_test(what_follows_a_scheme_of_authorization_is_hidden),
        cmocka_unit_test(keys_of_known_services_are_hidden_wherever_they_stand),
        cmocka_unit_test(the_user_of_a_url_is_hidden),
        cmocka_unit_test(anything_else_is_told_as_it_is),
        cmocka_unit_test(it_is_cut_between_characters_also_in_the_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
