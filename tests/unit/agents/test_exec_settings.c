/* The settings of the exec agent, and argument templates. */
#include <stdio.h>

#include "tests/support/cmocka.h"

#include "agents/exec/settings.h"
#include "agents/sdk/settings/template.h"
#include "tests/unit/agents/steps.h"

static void refused(const char *json, const char *why)
{
    struct exec_settings *s = NULL;
    struct bt_error err;

    if (exec_settings_read(json, &s, &err) == BT_OK) {
        fail_msg("accepted: %s", json);
    }
    if (strstr(err.msg, why) == NULL) {
        fail_msg("expected '%s' in '%s'", why, err.msg);
    }
    assert_null(s);
}

#define ONE(members) "{\"commands\":[{\"id\":\"a\",\"description\":\"d\"," members "}]}"

static void wrong_settings_are_refused_with_their_place(void **state)
{
    (void)state;
    refused("{}", "commands: is missing; give a list of 1 to 64 commands");
    refused("{\"commands\":[]}", "commands: expected a list");
    refused("{\"commands\":[7]}", "commands[0]: expected an object");
    refused("{\"comands\":[]}", "unknown member 'comands'; did you mean 'commands'?");
    refused("{\"commands\":[{\"id\":\"a\",\"argv\":[\"x\"]}]}",
            "description: is missing; expected a text");
    refused(ONE("\"argv\":[]"), "argv: expected a list");
    refused(ONE("\"argv\":[\"\"]"), "argv: expected a list");
    refused(ONE("\"argv\":\"ls -l\""), "argv: expected a list");
    refused(ONE("\"argv\":[\"{program}\"]"), "argv[0]: the program itself is fixed");
    refused(ONE("\"argv\":[\"awk\",\"{print $1}\"]"), "argv[1]: '{print $1}': expected {name}");
    refused(ONE("\"argv\":[\"x\",\"{\"]"), "expected {name}");
    refused(ONE("\"argv\":[\"x\"],\"shell\":true"), "unknown member 'shell'; known: id, argv, ");
    refused(ONE("\"argv\":[\"x\"],\"stdin\":\"yes\""), "stdin: expected one of json, text, none");
    refused(ONE("\"argv\":[\"x\"],\"output\":1"), "output: expected one of auto, json, text");
    refused(ONE("\"argv\":[\"x\"],\"timeoutMs\":0"), "timeoutMs: expected a number");
    refused(ONE("\"argv\":[\"x\"],\"env\":{\"A=B\":\"c\"}"), "env: 'A=B'");
    refused(ONE("\"argv\":[\"x\"],\"env\":{\"BATON_KEY\":\"c\"}"), "env: 'BATON_KEY'");
    refused(ONE("\"argv\":[\"x\"],\"env\":{\"A\":1}"), "env.A: expected a text");
    refused(ONE("\"argv\":[\"x\"],\"inputSchema\":[]"), "inputSchema: expected an object");
    refused(ONE("\"argv\":[\"x\"],\"retryOn\":1"), "retryOn: expected a list of exit codes");
    refused(ONE("\"argv\":[\"x\"],\"retryOn\":[0]"), "retryOn[0]: expected an exit code from 1");
    refused(ONE("\"argv\":[\"x\"],\"retryOn\":[255,256]"), "retryOn[1]: expected an exit code");
    refused(ONE("\"argv\":[\"x\"],\"errorClasses\":[]"), "errorClasses: expected an object");
    refused(ONE("\"argv\":[\"x\"],\"errorClasses\":{\"x\":\"TIMEOUT\"}"),
            "errorClasses: \"x\" is no exit code");
    refused(ONE("\"argv\":[\"x\"],\"errorClasses\":{\"256\":\"TIMEOUT\"}"),
            "errorClasses: \"256\" is no exit code");
    refused(ONE("\"argv\":[\"x\"],\"errorClasses\":{\"3\":\"SAD\"}"),
            "errorClasses.3: expected a class of the protocol");
    refused(ONE("\"argv\":[\"x\"],\"passEnv\":\"A\""), "passEnv: expected a list");
}

static void directory_that_is_not_there_is_an_error_of_the_start(void **state)
{
    struct exec_settings *s = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(exec_settings_read(ONE("\"argv\":[\"x\"],\"cwd\":\"/\""), &s, &err), BT_OK);
    assert_int_equal(exec_settings_check(s, &err), BT_OK);
    exec_settings_free(s);
    assert_int_equal(exec_settings_read(ONE("\"argv\":[\"x\"],\"cwd\":\"/dev/null\""), &s, &err),
                     BT_OK);
    assert_int_equal(exec_settings_check(s, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "cwd '/dev/null': no such directory"));
    exec_settings_free(s);
}

static void command_is_read_whole(void **state)
{
    struct exec_settings *s = NULL;
    const struct exec_command *c;
    struct bt_error err;

    (void)state;
    assert_int_equal(exec_settings_read("{\"agentId\":\"tools\",\"commands\":[{\"id\":\"count\","
                                        "\"name\":\"Count\",\"description\":\"Counts.\","
                                        "\"argv\":[\"wc\",\"-{unit}\"],\"tags\":[\"t\"],"
                                        "\"examples\":[\"e\"],\"stdin\":\"text\","
                                        "\"output\":\"json\",\"timeoutMs\":5,\"effects\":\"none\","
                                        "\"cwd\":\"/\",\"env\":{\"A\":\"b\"}}]}",
                                        &s, &err),
                     BT_OK);
    assert_string_equal(s->agent_id, "tools");
    c = exec_settings_find(s, "");
    assert_ptr_equal(c, exec_settings_find(s, "count"));
    assert_null(exec_settings_find(s, "other"));
    assert_string_equal(c->name, "Count");
    assert_string_equal(c->argv[1], "-{unit}");
    assert_null(c->argv[2]);
    assert_string_equal(c->env[0], "A=b");
    assert_int_equal(c->input, EXEC_INPUT_TEXT);
    assert_int_equal(c->output, EXEC_OUTPUT_JSON);
    assert_int_equal(c->timeout_ms, 5);
    exec_settings_free(s);
}

static void schema_has_what_the_program_reads_on_its_input(void **state)
{
    static const struct {
        const char *members;
        bool has_input, takes_any;
    } cases[] = {{"\"argv\":[\"x\"],\"stdin\":\"text\"", true, false},
                 {"\"argv\":[\"x\",\"{a}\"],\"stdin\":\"text\"", true, false},
                 {"\"argv\":[\"x\",\"{input}\"],\"stdin\":\"text\"", true, false},
                 {"\"argv\":[\"x\"]", false, true},
                 {"\"argv\":[\"x\",\"{a}\"]", false, false},
                 {"\"argv\":[\"x\"],\"stdin\":\"none\"", false, false}};
    char json[160];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct exec_settings *s = NULL;
        const char *schema;
        const char *input;
        (void)snprintf(json, sizeof json,
                       "{\"commands\":[{\"id\":\"a\",\"description\":\"d\",%s}]}",
                       cases[i].members);
        assert_int_equal(exec_settings_read(json, &s, &err), BT_OK);
        schema = exec_settings_find(s, "a")->input_schema;
        input = strstr(schema, "\"input\":");
        assert_int_equal(input != NULL, cases[i].has_input);
        assert_true(input == NULL || strstr(input + 1, "\"input\":") == NULL);
        assert_int_equal(strstr(schema, "\"additionalProperties\":true") != NULL,
                         cases[i].takes_any);
        exec_settings_free(s);
    }
}

static void reply_is_never_a_file_of_the_plan(void **state)
{
    static const struct {
        const char *output;
        bool takes;
    } cases[] = {{"auto", true}, {"text", true}, {"reply", false}};
    char json[160];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct exec_settings *s = NULL;
        (void)snprintf(json, sizeof json,
                       "{\"commands\":[{\"id\":\"a\",\"description\":\"d\",\"argv\":[\"x\"],"
                       "\"output\":\"%s\"}]}",
                       cases[i].output);
        assert_int_equal(exec_settings_read(json, &s, &err), BT_OK);
        assert_int_equal(exec_settings_find(s, "a")->takes_artifact, cases[i].takes);
        assert_int_equal(strstr(exec_settings_find(s, "a")->input_schema, "artifact") != NULL,
                         cases[i].takes);
        exec_settings_free(s);
    }
}

static void schema_is_made_from_the_placeholders_once_each(void **state)
{
    struct exec_settings *s = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(
        exec_settings_read(ONE("\"argv\":[\"x\",\"{a}\",\"{a}={b.c}\",\"{{d}\"]"), &s, &err),
        BT_OK);
    static const char begins[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"string\","
        "\"number\",\"boolean\"]},\"b\":{},\"artifact\":{\"type\":\"boolean\",";
    assert_memory_equal(s->commands[0].input_schema, begins, sizeof begins - 1);
    assert_non_null(strstr(s->commands[0].input_schema, "},\"required\":[\"a\",\"b\"]}"));
    assert_true(s->commands[0].takes_artifact);
    exec_settings_free(s);
}

static void an_argument_called_artifact_stays_the_programs_own(void **state)
{
    static const char *const argvs[] = {"\"argv\":[\"x\",\"{artifact}\"]",
                                        "\"argv\":[\"x\",\"in={artifact.uri}\"]"};
    struct exec_settings *s = NULL;
    struct bt_error err;
    char json[256];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(json, sizeof json, ONE("%s"), argvs[i]);
        assert_int_equal(exec_settings_read(json, &s, &err), BT_OK);
        assert_false(s->commands[0].takes_artifact);
        assert_null(strstr(s->commands[0].input_schema, "later steps open"));
        exec_settings_free(s);
    }
    (void)snprintf(json, sizeof json, ONE("%s"), "\"argv\":[\"x\",\"{artifacts}\"]");
    assert_int_equal(exec_settings_read(json, &s, &err), BT_OK);
    assert_true(s->commands[0].takes_artifact);
    exec_settings_free(s);
}

static void template_is_filled_from_the_parameters(void **state)
{
    const struct {
        const char *text;
        const char *filled;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"{s}", "a b; $(id) `id` \"q\" 'q' \\ * \n -rf"},
        {"--n={n}", "--n=42"},
        {"{f}{b}", "2.5true"},
        {"{o.x}", "deep"},
        {"{l}", "[1,2]"},
        {"{{s}", "{s}"},
        {"{{{s2}}", "{{n}}"},
        {"a}b", "a}b"},
    };
    struct bt_step *step = steps_make(
        "x", "{\"parameters\":{\"s\":\"a b; $(id) `id` \\\"q\\\" 'q' \\\\ * \\n -rf\",\"n\":42,"
             "\"f\":2.5,\"b\":true,\"o\":{\"x\":\"deep\"},\"l\":[1,2],\"s2\":\"{n}\",\"z\":null}}");
    struct bt_error err;
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&out);
        assert_int_equal(template_fill(cases[i].text, step, &out, &err), BT_OK);
        assert_string_equal(buf_cstr(&out), cases[i].filled);
    }
    assert_int_equal(template_fill("{missing}", step, &out, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "parameters.missing"));
    assert_int_equal(template_fill("{z}", step, &out, &err), BT_INVALID);
    buf_done(&out);
    step_free(step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_refused_with_their_place),
        cmocka_unit_test(command_is_read_whole),
        cmocka_unit_test(directory_that_is_not_there_is_an_error_of_the_start),
        cmocka_unit_test(schema_has_what_the_program_reads_on_its_input),
        cmocka_unit_test(reply_is_never_a_file_of_the_plan),
        cmocka_unit_test(schema_is_made_from_the_placeholders_once_each),
        cmocka_unit_test(an_argument_called_artifact_stays_the_programs_own),
        cmocka_unit_test(template_is_filled_from_the_parameters),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    steps_forget();
    return failed;
}
