/* csv, write and render: their output for lines, texts and rows. */
#include "tests/unit/agents/files_world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- csv ---- */

#define DPKG                                                                                       \
    "^(?<day>\\\\S+) (?<time>\\\\S+) (?<action>install|upgrade|remove|purge) (?<package>\\\\S+) "  \
    "(?<old>\\\\S+) (?<new>\\\\S+)$"

static int make_csv(void **state)
{
    if (tree_make(state) != 0) {
        return -1;
    }
    tree_text("in/dpkg.log", "2026-11-20 03:53:00 startup archives unpack\n"
                             "2026-11-20 03:53:00 install a:amd64 <none> 1.0\r\n"
                             "2026-11-21 03:53:01 status installed a:amd64 1.0\n"
                             "2026-11-21 03:53:02 upgrade b:amd64 1.0 2.0\n"
                             "2026-11-21 03:53:03 install c:all <none> 3.0");
    tree_text("in/t.csv",
              "\xef\xbb\xbfname,note\r\nann,\"a, \"\"b\"\"\"\r\n\r\nbob,\"two\nlines\"\r\n");
    return 0;
}

static void named_groups_become_columns(void **state)
{
    const char *reply = tree_run(files_csv, "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG "\"}");

    (void)state;
    steps_expect(reply, "\"columns\":[\"day\",\"time\",\"action\",\"package\",\"old\",\"new\"]");
    steps_expect(reply,
                 "\"rowCount\":3,\"skipped\":2,\"filtered\":0,\"replaced\":0,\"truncated\":false");
    steps_expect(reply, "[\"2026-11-20\",\"03:53:00\",\"install\",\"a:amd64\",\"<none>\",1.0]");
}

static void columns_and_where_narrow_the_rows(void **state)
{
    const char *reply = tree_run(
        files_csv, "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG
                   "\",\"columns\":[\"package\",\"day\"],\"where\":{\"action\":\"install\"}}");

    (void)state;
    steps_expect(reply, "\"columns\":[\"package\",\"day\"]");
    steps_expect(reply, "\"rowCount\":2,\"skipped\":2,\"filtered\":1");
    steps_expect(reply, "\"rows\":[[\"a:amd64\",\"2026-11-20\"],[\"c:all\",\"2026-11-21\"]]");
    steps_expect(
        tree_run(files_csv,
                 "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG
                 "\",\"where\":{\"action\":[\"install\",\"upgrade\"],\"day\":\"2026-11-21\"}}"),
        "\"rowCount\":2");
    tree_fails(tree_run(files_csv,
                        "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG "\",\"columns\":[\"pkg\"]}"),
               "VALIDATION_ERROR", "columns: there is no column 'pkg'; there are: day, time");
    tree_fails(tree_run(files_csv,
                        "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG "\",\"where\":{\"x\":\"y\"}}"),
               "VALIDATION_ERROR", "where: there is no column 'x'");
    tree_fails(tree_run(files_csv,
                        "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG "\",\"where\":{\"day\":{}}}"),
               "VALIDATION_ERROR", "where.day: expected a value or a list");
    tree_fails(tree_run(files_csv, "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG
                                   "\",\"columns\":[\"day\",\"day\"]}"),
               "VALIDATION_ERROR", "columns: 'day' is named twice");
}

static void sixteen_columns_narrow_the_rows_and_seventeen_are_refused(void **state)
{
    char csv[512] = "";
    char where[1024] = "";
    char params[2048];

    (void)state;
    for (int i = 0; i < 17; i++) {
        const size_t at = strlen(csv);
        (void)snprintf(csv + at, sizeof csv - at, "%sc%d", i == 0 ? "" : ",", i);
    }
    (void)snprintf(csv + strlen(csv), sizeof csv - strlen(csv),
                   "\\nx,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x");
    for (int i = 0; i < 17; i++) {
        const size_t at = strlen(where);
        (void)snprintf(where + at, sizeof where - at, "%s\"c%d\":\"x\"", i == 0 ? "" : ",", i);
        (void)snprintf(params, sizeof params, "{\"text\":\"%s\",\"where\":{%s}}", csv, where);
        if (i == 15) {
            steps_expect(tree_run(files_csv, params), "\"rowCount\":1");
        } else if (i == 16) {
            tree_fails(tree_run(files_csv, params), "VALIDATION_ERROR",
                       "where: expected an object of at most 16 columns");
        }
    }
}

static void where_is_an_object(void **state)
{
    static const char *const bad[] = {"[]", "[\"a\"]", "\"a\"", "7", "true"};
    char params[200];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(params, sizeof params, "{\"text\":\"a\\n1\\n\",\"where\":%s}", bad[i]);
        tree_fails(tree_run(files_csv, params), "VALIDATION_ERROR",
                   "where: expected an object of at most 16 columns");
    }
}

static void a_limit_cuts_the_rows_and_says_so(void **state)
{
    const char *reply =
        tree_run(files_csv, "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG "\",\"limit\":2}");

    (void)state;
    steps_expect(reply, "\"rowCount\":2,\"skipped\":2,\"filtered\":0,\"replaced\":0,"
                        "\"truncated\":true");
    steps_expect(reply, "[not whole: the first 2 rows; 1 more are there; raise `limit`");
    steps_expect(reply, "]},\"truncated\":true}");
    reply = tree_run(files_csv, "{\"path\":\"dpkg.log\",\"pattern\":\"" DPKG "\",\"limit\":3}");
    steps_expect(reply, "\"truncated\":false");
    steps_expect(reply, "were no rows\",");
}

static void a_pattern_means_its_letters_as_they_are_unless_it_says_otherwise(void **state)
{
    (void)state;
    steps_expect(tree_run(files_csv, "{\"text\":\"a\\nA\",\"pattern\":\"(?<x>a)\"}"),
                 "\"rows\":[[\"a\"]]");
    steps_expect(
        tree_run(files_csv, "{\"text\":\"a\\nA\",\"pattern\":\"(?<x>a)\",\"ignoreCase\":true}"),
        "\"rows\":[[\"a\"],[\"A\"]]");
}

static void groups_that_took_no_part_are_null(void **state)
{
    (void)state;
    steps_expect(tree_run(files_csv, "{\"text\":\"a\\nb\",\"pattern\":\"(?<a>a)|(?<b>b)\"}"),
                 "\"rows\":[[\"a\",null],[null,\"b\"]]");
    tree_fails(tree_run(files_csv, "{\"text\":\"a\",\"pattern\":\"(a)\"}"), "VALIDATION_ERROR",
               "name its groups");
}

static void csv_quoting_crlf_and_a_mark_at_the_start_are_read(void **state)
{
    const char *reply = tree_run(files_csv, "{\"path\":\"t.csv\"}");

    (void)state;
    steps_expect(reply, "\"columns\":[\"name\",\"note\"]");
    steps_expect(reply, "[\"ann\",\"a, \\\"b\\\"\"],[\"bob\",\"two\\nlines\"]");
    steps_expect(reply, "\"rowCount\":2,\"skipped\":1");
    steps_expect(tree_run(files_csv, "{\"path\":\"t.csv\",\"where\":{\"name\":\"bob\"}}"),
                 "\"rowCount\":1");
    tree_fails(tree_run(files_csv, "{\"text\":\"a\\n\\\"open\"}"), "VALIDATION_ERROR",
               "CSV line 2");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b,a\\n1,2,3\"}"), "VALIDATION_ERROR",
               "CSV header: the column 'a' is there twice");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,,b\\n1,2,3\"}"), "VALIDATION_ERROR",
               "CSV header: column 2 has no name");
}

static void other_delimiters_and_files_without_a_header_are_read(void **state)
{
    (void)state;
    steps_expect(tree_run(files_csv, "{\"text\":\"a;b\\n1;2\",\"delimiter\":\";\"}"),
                 "\"rows\":[[1,2]]");
    steps_expect(tree_run(files_csv, "{\"text\":\"a\\tb\\n1\\t2\",\"delimiter\":\"tab\"}"),
                 "\"columns\":[\"a\",\"b\"]");
    steps_expect(tree_run(files_csv, "{\"text\":\"1,2\\n3,4\",\"header\":false,"
                                     "\"columns\":[\"x\",\"y,z\"]}"),
                 "\"columns\":[\"x\",\"y,z\"]");
    steps_expect(tree_run(files_csv, "{\"text\":\"1,2\\n3,4\",\"header\":false,"
                                     "\"columns\":[\"x\",\"y\"]}"),
                 "\"rowCount\":2");
    tree_fails(tree_run(files_csv, "{\"text\":\"1\",\"header\":false}"), "VALIDATION_ERROR",
               "needs their names");
    tree_fails(tree_run(files_csv, "{\"text\":\"1\",\"delimiter\":\"ab\"}"), "VALIDATION_ERROR",
               "one ASCII character");
    tree_fails(tree_run(files_csv, "{}"), "VALIDATION_ERROR", "give path or text");
}

static void a_column_has_a_type_and_where_compares_values(void **state)
{
    static const char text[] =
        "{\"text\":\"zip,n,x,ok,day,mix\\n007,500,1.5,true,2026-11-21,1\\n12345,"
        "9007199254740993,99.83,false,2026-11-22,a\\n,,,,,\\n\"%s}";
    static const char *const cases[][2] = {
        {"", "\"types\":{\"zip\":\"text\",\"n\":\"integer\",\"x\":\"real\",\"ok\":\"boolean\","
             "\"day\":\"date\",\"mix\":\"text\"}"},
        {"", "\"rows\":[[\"007\",500,1.5,true,\"2026-11-21\",\"1\"],[\"12345\","
             "\"9007199254740993\",99.83,false,\"2026-11-22\",\"a\"],[null,null,null,null,null,"
             "null]]"},
        {",\"types\":{\"zip\":\"integer\",\"n\":\"text\"}",
         "\"rows\":[[7,\"500\",1.5,true,\"2026-11-21\",\"1\"],[12345,\"9007199254740993\","},
        {",\"types\":{\"n\":\"text\"}", ",[null,\"\",null,null,null,null]]"},
        {",\"types\":{\"mix\":\"real\"}",
         "row 2: column 'mix' has the type real, but 'a' is not a"},
        {",\"types\":{\"mix\":\"number\"}", "types.mix: expected text, integer, real"},
        {",\"types\":{\"no\":\"text\"}", "types: there is no column 'no'"},
        {",\"where\":{\"n\":500}", "\"rowCount\":1"},
        {",\"where\":{\"n\":9007199254740993}", "\"rowCount\":1"},
        {",\"where\":{\"x\":99.83}", "\"rowCount\":1"},
        {",\"where\":{\"ok\":[true,false]}", "\"rowCount\":2"},
        {",\"where\":{\"zip\":null}", "\"rowCount\":1"},
        {",\"where\":{\"zip\":7}", "\"rowCount\":0"}, /* 007 is a text */
        {",\"where\":{\"mix\":-1}", "\"rowCount\":0"},
        {",\"where\":{\"mix\":1}", "\"rowCount\":1"},
        {",\"where\":{\"n\":-500}", "\"rowCount\":0"},
        {",\"where\":{\"n\":0}", "\"rowCount\":0"}, /* nor is it an empty cell */
        {",\"where\":{\"x\":0.5}", "\"rowCount\":0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[1024];
        (void)snprintf(json, sizeof json, text, cases[i][0]);
        steps_expect(tree_run(files_csv, json), cases[i][1]);
    }
}

static void a_file_has_256_columns_at_most(void **state)
{
    char text[4096] = "", want[4096] = "\"rows\":[[";
    const char *reply;

    (void)state;
    for (int row = 0; row < 2; row++) {
        for (int i = 0; i < 256; i++) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%d",
                           i > 0 ? "," : "", row == 0 ? "c" : "", i);
        }
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "\n");
    }
    for (int i = 0; i < 256; i++) {
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%s%d", i > 0 ? "," : "",
                       i);
    }
    tree_text("in/wide.csv", text);
    reply = tree_run(files_csv, "{\"path\":\"wide.csv\"}");
    steps_expect(reply, want);
    steps_expect(reply, "\"c0\":\"integer\"");
    steps_expect(reply, "\"c255\":\"integer\"");
    (void)snprintf(text, sizeof text, "c0");
    for (int i = 1; i < 257; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), ",c%d", i);
    }
    tree_text("in/wide.csv", text);
    tree_fails(tree_run(files_csv, "{\"path\":\"wide.csv\"}"), "VALIDATION_ERROR",
               "more than 256 fields");
}

static void rows_over_a_result_fail_and_are_not_lost(void **state)
{
    struct buf text;
    char json[] = "{\"path\":\"many\",\"pattern\":\"^(?<a>.)(?<b>.)$\"}";

    (void)state;
    buf_init(&text, LIMIT_CONTROL_BYTES);
    for (int i = 0; i < 70000; i++) {
        buf_add_cstr(&text, "ab\n");
    }
    tree_put("in/many", text.at, text.len);
    buf_done(&text);
    tree_fails(tree_run(files_csv, json), "VALIDATION_ERROR",
               "190000 values, 63333 of these rows, and there are more");
    steps_expect(tree_run(files_csv, "{\"path\":\"many\",\"pattern\":\"^(?<a>.)(?<b>.)$\","
                                     "\"limit\":60000}"),
                 "\"rowCount\":60000");
}

/* ---- write ---- */

static void a_text_is_written_whole_and_again(void **state)
{
    const int before = tree_count("out");

    (void)state;
    steps_expect(tree_run(files_write, "{\"path\":\"@/out/r.md\",\"text\":\"first, longer\"}"),
                 "\"bytes\":13");
    assert_string_equal(tree_get("out/r.md"), "first, longer");
    steps_expect(tree_run(files_write, "{\"path\":\"r.md\",\"text\":\"second\"}"), "\"bytes\":6");
    assert_string_equal(tree_get("out/r.md"), "second");
    steps_expect(tree_run(files_write, "{\"path\":\"r.json\",\"data\":{\"a\":[1]}}"), "\"bytes\":");
    assert_string_equal(tree_get("out/r.json"), "{\n  \"a\": [\n    1\n  ]\n}\n");
    assert_int_equal(tree_count("out"), before + 2);
}

static void nothing_is_written_outside_of_the_write_roots(void **state)
{
    (void)state;
    tree_fails(tree_run(files_write, "{\"path\":\"@/in/x\",\"text\":\"x\"}"), "PERMISSION_DENIED",
               "allowed is");
    tree_fails(tree_run(files_write, "{\"path\":\"@/out/../outside/x\",\"text\":\"x\"}"),
               "PERMISSION_DENIED", "leads out");
    tree_fails(tree_run(files_write, "{\"path\":\"../outside/x\",\"text\":\"x\",\"mkdirs\":true}"),
               "PERMISSION_DENIED", "leads out");
    tree_fails(tree_run(files_write, "{\"path\":\"@/out\",\"text\":\"x\"}"), "PERMISSION_DENIED",
               "allowed is");
    tree_fails(tree_run(files_write, "{\"path\":\"@/out/..\",\"text\":\"x\"}"), "VALIDATION_ERROR",
               "name of a file");
    tree_fails(tree_run(files_write, "{\"path\":\"a\\u0001b\",\"text\":\"x\"}"), "VALIDATION_ERROR",
               "control");
    assert_int_equal(tree_count("outside"), 0);
}

static void a_link_is_replaced_and_not_followed(void **state)
{
    char path[512];
    struct stat st;

    (void)state;
    tree_text("outside/victim", "untouched");
    (void)snprintf(path, sizeof path, "%s/out/link", tree);
    assert_int_equal(symlink("../outside/victim", path), 0);
    steps_expect(tree_run(files_write, "{\"path\":\"link\",\"text\":\"x\"}"), "\"bytes\":1");
    assert_string_equal(tree_get("outside/victim"), "untouched");
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    (void)snprintf(path, sizeof path, "%s/out/dir", tree);
    assert_int_equal(symlink("../outside", path), 0);
    tree_fails(tree_run(files_write, "{\"path\":\"dir/x\",\"text\":\"x\"}"), "PERMISSION_DENIED",
               "leads out");
    tree_fails(tree_run(files_write, "{\"path\":\"dir/y/x\",\"text\":\"x\",\"mkdirs\":true}"),
               "PERMISSION_DENIED", "leads out");
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/outside/victim", tree);
    assert_int_equal(unlink(path), 0);
}

/* text, else data as JSON, else what the step before has made. */
static void what_is_written_comes_from_a_parameter_or_from_the_step_before(void **state)
{
    struct bt_step *step;

    (void)state;
    steps_expect(tree_run(files_write, "{\"path\":\"data.json\",\"data\":{\"a\":[1]}}"),
                 "\"path\":\"data.json\"");
    assert_non_null(strstr(tree_get("out/data.json"), "\"a\""));
    step = steps_make(
        "write", "{\"parameters\":{\"path\":\"before.txt\"},\"context\":{\"dependencies\":[{"
                 "\"stepId\":\"a\",\"agentId\":\"x\",\"result\":{\"text\":\"made before\"}}]}}");
    steps_expect(steps_run(step, files_write, tree_files), "\"bytes\":11");
    assert_string_equal(tree_get("out/before.txt"), "made before");
    tree_fails(tree_run(files_write, "{\"path\":\"none.txt\"}"), "VALIDATION_ERROR",
               "give text or data, or let a step before this one make it");
    assert_null(tree_get("out/none.txt"));
}

static void a_pattern_that_backtracks_names_its_line(void **state)
{
    char json[2048];

    (void)state;
    tree_text("in/redos",
              "fine\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
    tree_fails(tree_run(files_csv, "{\"path\":\"redos\",\"pattern\":\"^(?<x>(a+)+)$\"}"),
               "VALIDATION_ERROR", "line 2: the pattern backtracks too much");
    (void)snprintf(json, sizeof json, "{\"text\":\"a\\n1\",\"columns\":[\"a\"");
    for (int i = 1; i < 257; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), ",\"a\"");
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
    tree_fails(tree_run(files_csv, json), "VALIDATION_ERROR",
               "columns: expected a list of at most 256 names");
    tree_fails(tree_run(files_csv, "{\"text\":\"a\\n1\",\"columns\":[\"a\",\"a\"]}"),
               "VALIDATION_ERROR", "columns: 'a' is named twice");
}

static void directories_are_made_only_when_asked_for(void **state)
{
    (void)state;
    tree_fails(tree_run(files_write, "{\"path\":\"new/er/x\",\"text\":\"x\"}"),
               "RESOURCE_NOT_FOUND", "there is no such");
    assert_null(tree_get("out/new/er/x"));
    steps_expect(tree_run(files_write, "{\"path\":\"new/er/x\",\"text\":\"x\",\"mkdirs\":true}"),
                 "\"bytes\":1");
    assert_string_equal(tree_get("out/new/er/x"), "x");
    tree_fails(tree_run(files_write, "{\"path\":\"new\",\"text\":\"x\"}"), "VALIDATION_ERROR",
               "that is no file");
}

static void a_replaced_file_keeps_its_mode(void **state)
{
    char path[512];
    struct stat st;

    (void)state;
    tree_text("out/mode", "x");
    (void)snprintf(path, sizeof path, "%s/out/mode", tree);
    assert_int_equal(chmod(path, 0640), 0);
    steps_expect(tree_run(files_write, "{\"path\":\"mode\",\"text\":\"y\"}"), "\"bytes\":1");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
}

static void new_contents_get_no_setuid_or_setgid_bit(void **state)
{
    char path[512];
    struct stat st;

    (void)state;
    tree_text("out/special", "x");
    (void)snprintf(path, sizeof path, "%s/out/special", tree);
    assert_int_equal(chmod(path, 06755), 0);
    steps_expect(tree_run(files_write, "{\"path\":\"special\",\"text\":\"y\"}"), "\"bytes\":1");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void a_failed_write_leaves_the_old_file_and_no_other(void **state)
{
    const struct rlimit small = {4, RLIM_INFINITY};
    struct rlimit before;
    int names;

    (void)state;
    tree_text("out/kept", "old");
    names = tree_count("out");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tree_fails(tree_run(files_write, "{\"path\":\"kept\",\"text\":\"much longer\"}"), "failed",
               "writing");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_string_equal(tree_get("out/kept"), "old");
    assert_int_equal(tree_count("out"), names);
}

static void without_write_roots_nothing_can_be_written(void **state)
{
    struct files *both = tree_files;
    struct files *f = NULL;
    char settings[256];
    struct bt_error err;

    (void)state;
    (void)snprintf(settings, sizeof settings, "{\"roots\":[\"%s/in\"]}", tree);
    assert_int_equal(files_new(settings, &f, &err), BT_OK);
    tree_files = f;
    tree_fails(tree_run(files_write, "{\"path\":\"x\",\"text\":\"x\"}"), "PERMISSION_DENIED",
               "cannot be written");
    tree_files = both;
    files_free(f);
}

/* ---- render ---- */

static void sections_become_markdown(void **state)
{
    steps_expect(
        tree_run(files_render,
                 "{\"title\":\"A\\nB\",\"sections\":[{\"heading\":\"Rows\",\"table\":"
                 "{\"columns\":[\"day\",\"n\"],\"rows\":[[\"x|y\",3]]}},{\"heading\":\"List\","
                 "\"text\":\"T\",\"list\":[\"a\\nb\",2]}]}"),
        "# A B\\n\\n## Rows\\n\\n| day | n |\\n| --- | ---: |\\n| x\\\\|y | 3 |\\n\\n"
        "## List\\n\\nT\\n\\n- a b\\n- 2\\n\"");
    (void)state;
}

static void a_template_takes_members_of_the_data(void **state)
{
    (void)state;
    steps_expect(tree_run(files_render,
                          "{\"template\":\"{{ who }}: {{rows.0.n}} {{l}}|{{t}}\","
                          "\"data\":{\"who\":\"Ann\",\"rows\":[{\"n\":1.5}],"
                          "\"l\":[1,2],\"t\":{\"columns\":[\"c\"],\"rows\":[[\"v\"]]}}}"),
                 "\"Ann: 1.5 - 1\\n- 2\\n|| c |\\n| --- |\\n| v |\\n\"");
    tree_fails(tree_run(files_render, "{\"template\":\"{{no.such}}\",\"data\":{}}"),
               "VALIDATION_ERROR", "the data has no 'no.such'");
}

static void a_text_alone_is_a_report(void **state)
{
    (void)state;
    steps_expect(tree_run(files_render, "{\"title\":\"T\",\"text\":\"body\\n\\n\\n\"}"),
                 "\"# T\\n\\nbody\\n\"");
    tree_fails(tree_run(files_render, "{\"title\":\"T\"}"), "VALIDATION_ERROR", "give sections");
    tree_fails(tree_run(files_render, "{\"sections\":[{\"heading\":\"h\"},7]}"), "VALIDATION_ERROR",
               "sections[1]: expected {heading");
    tree_fails(tree_run(files_render, "{\"sections\":[{\"table\":7}]}"), "VALIDATION_ERROR",
               "sections[0]: expected rows");
}

/* The planner needs them: every card has valid schemas and starts with a verb. */
static void every_skill_has_words_and_schemas(void **state)
{
    (void)state;
    for (size_t i = 0; i < files_skill_count; i++) {
        const struct bt_skill *s = &files_skills[i];
        struct buf doc;
        struct bt_error err;
        buf_init(&doc, 65536);
        if (json_to_doc(str_from(s->input_schema), NULL, &doc, &err) != BT_OK) {
            fail_msg("%s: %s", s->id, err.msg);
        }
        assert_non_null(strstr(s->input_schema, "x-baton-fill"));
        assert_true(s->tags[0] != NULL && s->examples[0] != NULL && s->run != NULL);
        buf_done(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_groups_become_columns),
        cmocka_unit_test(columns_and_where_narrow_the_rows),
        cmocka_unit_test(sixteen_columns_narrow_the_rows_and_seventeen_are_refused),
        cmocka_unit_test(where_is_an_object),
        cmocka_unit_test(a_limit_cuts_the_rows_and_says_so),
        cmocka_unit_test(groups_that_took_no_part_are_null),
        cmocka_unit_test(a_pattern_means_its_letters_as_they_are_unless_it_says_otherwise),
        cmocka_unit_test(csv_quoting_crlf_and_a_mark_at_the_start_are_read),
        cmocka_unit_test(other_delimiters_and_files_without_a_header_are_read),
        cmocka_unit_test(a_column_has_a_type_and_where_compares_values),
        cmocka_unit_test(a_file_has_256_columns_at_most),
        cmocka_unit_test(rows_over_a_result_fail_and_are_not_lost),
        cmocka_unit_test(a_text_is_written_whole_and_again),
        cmocka_unit_test(nothing_is_written_outside_of_the_write_roots),
        cmocka_unit_test(a_link_is_replaced_and_not_followed),
        cmocka_unit_test(what_is_written_comes_from_a_parameter_or_from_the_step_before),
        cmocka_unit_test(a_pattern_that_backtracks_names_its_line),
        cmocka_unit_test(directories_are_made_only_when_asked_for),
        cmocka_unit_test(a_replaced_file_keeps_its_mode),
        cmocka_unit_test(new_contents_get_no_setuid_or_setgid_bit),
        cmocka_unit_test(a_failed_write_leaves_the_old_file_and_no_other),
        cmocka_unit_test(without_write_roots_nothing_can_be_written),
        cmocka_unit_test(sections_become_markdown),
        cmocka_unit_test(a_template_takes_members_of_the_data),
        cmocka_unit_test(a_text_alone_is_a_report),
        cmocka_unit_test(every_skill_has_words_and_schemas),
    };

    return cmocka_run_group_tests(tests, make_csv, tree_remove);
}
