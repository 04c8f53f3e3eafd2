/* The helpers that agents share: rows in their five forms, CSV, Markdown, bounded patterns; and the
 * program's arguments. */
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "agents/sdk/confine.h"
#include "agents/sdk/options.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/table.h"

static enum bt_code read_json(const char *json, struct table *t, struct bt_error *err)
{
    cJSON *tree = cJSON_Parse(json);
    enum bt_code code;

    assert_non_null(tree);
    code = table_read(tree, t, err);
    cJSON_Delete(tree);
    return code;
}

static void expect_markdown(const char *json, const char *markdown)
{
    struct table t = {0};
    struct bt_error err;
    struct buf out;

    if (read_json(json, &t, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    buf_init(&out, 65536);
    table_to_markdown(&t, 10, SIZE_MAX, "", &out);
    assert_string_equal(buf_cstr(&out), markdown);
    buf_done(&out);
    table_done(&t);
}

static void rows_are_read_in_every_form(void **state)
{
    (void)state;
    expect_markdown("{\"columns\":[\"d\",\"n\"],\"rows\":[[\"x\",1]]}",
                    "| d | n |\n| --- | ---: |\n| x | 1 |\n");
    expect_markdown("[{\"d\":\"x\"},{\"n\":2.5}]",
                    "| d | n |\n| --- | --- |\n| x |  |\n|  | 2.5 |\n");
    expect_markdown("[[1,2],[3]]", "| c1 | c2 |\n| ---: | --- |\n| 1 | 2 |\n| 3 |  |\n");
    expect_markdown("[3,5]", "| c1 |\n| ---: |\n| 3 |\n| 5 |\n");
    expect_markdown("{\"a\":1}", "| label | value |\n| --- | ---: |\n| a | 1 |\n");
    expect_markdown("\"d,n\\nx,1\\n\"", "| d | n |\n| --- | --- |\n| x | 1 |\n");
    expect_markdown("[{\"a\":\"p|q\\nr\"}]", "| a |\n| --- |\n| p\\|q r |\n");
}

static void what_is_no_table_is_refused(void **state)
{
    struct table t = {0};

    (void)state;
    assert_int_equal(read_json("7", &t, NULL), BT_INVALID);
    assert_int_equal(read_json("{\"columns\":[1],\"rows\":[]}", &t, NULL), BT_INVALID);
    assert_int_equal(read_json("\"\"", &t, NULL), BT_INVALID);
}

/* Rows of any program are read: a list of one object, of one list, and a map of columns. */
static void read_columns(int n, enum bt_code want)
{
    cJSON *rows = cJSON_CreateArray();
    cJSON *object = cJSON_CreateObject();
    cJSON *list = cJSON_CreateArray();
    cJSON *lists = cJSON_CreateArray();
    struct table t = {0};
    struct bt_error err = {.code = BT_OK};
    char name[16];

    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        cJSON_AddItemToObject(object, name, cJSON_CreateNumber(i));
        cJSON_AddItemToArray(list, cJSON_CreateNumber(i));
    }
    cJSON_AddItemToArray(rows, object);
    cJSON_AddItemToArray(lists, list);
    assert_int_equal(table_read(rows, &t, &err), want);
    assert_int_equal(t.n, want == BT_OK ? n : t.n);
    table_done(&t);
    assert_int_equal(table_read(lists, &t, &err), want);
    table_done(&t);
    if (want != BT_OK) {
        assert_non_null(strstr(err.msg, "at most 256 columns"));
    }
    cJSON_Delete(rows);
    cJSON_Delete(lists);
}

static void a_table_has_256_columns_and_no_more(void **state)
{
    (void)state;
    read_columns(TABLE_COLUMNS_MAX, BT_OK);
    read_columns(TABLE_COLUMNS_MAX + 1, BT_LIMIT);
}

static void csv_is_read_as_rfc_4180_says(void **state)
{
    struct table t = {0};
    struct bt_error err;
    char text[64];

    (void)state;
    assert_int_equal(table_read_csv("a,b\r\n\"x, \"\"y\"\"\n2\",\r\n3", ',', &t, &err), BT_OK);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.rows_n, 2);
    assert_string_equal(table_text(table_cell(&t, 0, 0), text, sizeof text), "x, \"y\"\n2");
    assert_string_equal(table_text(table_cell(&t, 0, 1), text, sizeof text), "");
    assert_true(cJSON_IsNull(table_cell(&t, 1, 1)));
    table_done(&t);
    assert_int_equal(table_read_csv("a,b\n1,2,3\n", ',', &t, &err), BT_INVALID);
    assert_int_equal(table_read_csv("a,a\n1,2\n", ',', &t, &err), BT_INVALID);
    assert_int_equal(table_read_csv("a,b\n\"open", ',', &t, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "line 2"));
}

static void a_field_of_csv_reads_back_as_it_was(void **state)
{
    static const char *const fields[] = {"plain", "with, comma", "\"quoted\"", "two\nlines",
                                         "",      "a\"b"};
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct table t = {0};
        struct bt_error err;
        char text[64];
        buf_clear(&out);
        buf_add_cstr(&out, "h,i\n");
        table_csv_field(str_from(fields[i]), ',', &out);
        buf_add_cstr(&out, ",1\n");
        assert_int_equal(table_read_csv(buf_cstr(&out), ',', &t, &err), BT_OK);
        assert_string_equal(table_text(table_cell(&t, 0, 0), text, sizeof text), fields[i]);
        table_done(&t);
    }
    buf_done(&out);
}

static void columns_are_found_by_kind(void **state)
{
    struct table t = {0};
    struct bt_error err;
    double v;
    cJSON *cell = cJSON_CreateString("0x10");

    (void)state;
    assert_int_equal(read_json("[{\"d\":\"2026\",\"s\":\"x\",\"n\":\"1.5\"}]", &t, &err), BT_OK);
    assert_int_equal(table_set_types(&t, &err), BT_OK);
    assert_int_equal(table_number_column(&t), 2);
    assert_int_equal(table_other_column(&t, 0), 1);
    assert_int_equal(table_column(&t, "q"), TABLE_NONE);
    assert_true(table_number(table_cell(&t, 0, 2), &v) && v == 1.5);
    assert_false(table_number(cell, &v));
    cJSON_Delete(cell);
    table_done(&t);
}

static void text_of_a_cell_is_cut_between_characters(void **state)
{
    cJSON *cell = cJSON_CreateString("\xC3\xA4\xC3\xA4");
    char text[4];

    (void)state;
    assert_string_equal(table_text(cell, text, sizeof text), "\xC3\xA4");
    cJSON_Delete(cell);
}

static void patterns_have_groups_and_names_and_a_bound(void **state)
{
    struct regex *re = NULL;
    struct bt_error err;
    bool found = false;

    (void)state;
    assert_int_equal(regex_new(STR_LIT("(?<day>\\d+) (a)?(b)"), true, &re, &err), BT_OK);
    assert_int_equal(regex_groups(re), 3);
    assert_string_equal(regex_group_name(re, 1), "day");
    assert_null(regex_group_name(re, 2));
    assert_int_equal(regex_find(re, STR_LIT("on 21 B"), &found, &err), BT_OK);
    assert_true(found);
    assert_true(str_is(regex_group(re, 1), "21"));
    assert_null(regex_group(re, 2).ptr);
    assert_int_equal(regex_find(re, STR_LIT(""), &found, &err), BT_OK);
    assert_false(found);
    regex_free(re);
    assert_int_equal(regex_new(STR_LIT("(x+x+)+$"), false, &re, &err), BT_OK);
    assert_int_equal(
        regex_find(re, STR_LIT("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!"), &found, &err),
        BT_LIMIT);
    regex_free(re);
    assert_int_equal(regex_new(STR_LIT("(a"), false, &re, &err), BT_INVALID);
    assert_int_equal(regex_new(STR_LIT("\\C"), false, &re, &err), BT_INVALID);
    assert_int_equal(regex_new(STR_LIT(""), false, &re, &err), BT_INVALID);
}

/* ---- arguments ---- */

static enum bt_code read_args(struct options *o, const char *a, const char *b, struct bt_error *err)
{
    char name[] = "agent";
    char one[128] = "";
    char two[128] = "";
    char *argv[] = {name, one, two, NULL};

    strncat(one, a, sizeof one - 1);
    strncat(two, b == NULL ? "" : b, sizeof two - 1);
    return options_read(o, b == NULL ? 2 : 3, argv, err);
}

static void wrong_arguments_are_named(void **state)
{
    static const char *const wrong[][2] = {
        {"--capacity", "0"},        {"--capacity", "65"},   {"--capacity", "2x"},
        {"--capacity", NULL},       {"--instance-id", "x"}, {"--log-level", "all"},
        {"--settings", "/nowhere"}, {"--what", "x"},        {"what", NULL},
        {"--shards", "0"},          {"--shards", "65"},     {"--shards", "x"}};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct options o;
        struct bt_error err = {.msg = ""};
        assert_int_not_equal(read_args(&o, wrong[i][0], wrong[i][1], &err), BT_OK);
        assert_non_null(strstr(err.msg, wrong[i][0]));
        options_done(&o);
    }
}

static void an_argument_wins_over_the_environment(void **state)
{
    struct options o;
    struct bt_error err;

    (void)state;
    (void)setenv("BATON_CAPACITY", "3", 1);
    (void)setenv("BATON_SETTINGS", "{\"a\": 1}", 1);
    assert_int_equal(read_args(&o, "--capacity", "5", &err), BT_OK);
    assert_int_equal(o.capacity, 5);
    assert_true(str_is(buf_str(&o.settings_json), "{\"a\":1}"));
    options_done(&o);
    assert_int_equal(read_args(&o, "--card", NULL, &err), BT_OK);
    assert_int_equal(o.capacity, 3);
    assert_int_equal(o.mode, OPTIONS_CARD);
    options_done(&o);
    (void)setenv("BATON_SETTINGS", "[1]", 1);
    assert_int_equal(read_args(&o, "--card", NULL, &err), BT_INVALID);
    assert_string_equal(err.msg, "BATON_SETTINGS: expected a JSON object");
    options_done(&o);
    (void)unsetenv("BATON_SETTINGS");
    (void)setenv("BATON_CAPACITY", "many", 1);
    assert_int_equal(read_args(&o, "--card", NULL, &err), BT_INVALID);
    options_done(&o);
    (void)unsetenv("BATON_CAPACITY");
}

/* What a walk by names sees of a path. A name that is too long is none; its length tells. */
static void a_path_is_walked_by_its_names(void **state)
{
    static const char *const names[] = {"a", "..", "b.c"};
    char path[CONFINE_NAME_MAX + 8];
    char name[CONFINE_NAME_MAX + 1];
    const char *rest = "//a/..///b.c/";
    size_t len;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_true(confine_next_name(&rest, name, &len));
        assert_string_equal(name, names[i]);
        assert_int_equal(len, strlen(names[i]));
    }
    assert_false(confine_next_name(&rest, name, &len));
    assert_string_equal(rest, "");
    assert_false(confine_next_name(&rest, name, &len)); /* and again */
    memset(path, 'n', sizeof path);
    path[CONFINE_NAME_MAX] = 0;
    rest = path;
    assert_true(confine_next_name(&rest, name, &len));
    assert_string_equal(name, path);
    path[CONFINE_NAME_MAX] = 'n';
    path[CONFINE_NAME_MAX + 1] = 0;
    rest = path;
    (void)snprintf(name, sizeof name, "as it was");
    assert_true(confine_next_name(&rest, name, &len));
    assert_int_equal(len, CONFINE_NAME_MAX + 1);
    assert_string_equal(name, "as it was");
    assert_string_equal(rest, "");
}

static void a_file_to_write_has_a_name_and_a_directory_below_a_root(void **state)
{
    static const char *const wrong[] = {"", "a/", ".", "..", "a/..", "x\x01"};
    char root[] = "/tmp/baton-confine-XXXXXX";
    char long_name[CONFINE_NAME_MAX + 2];
    char name[CONFINE_NAME_MAX + 1];
    struct confine c = {.n = 0};
    struct bt_error err;
    int fd = -1;

    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(confine_add(&c, root, &err), BT_OK);
    assert_int_equal(confine_open_parent(&c, STR_LIT("file"), false, &fd, name, &err), BT_OK);
    assert_string_equal(name, "file");
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(confine_open_parent(&c, str_from(wrong[i]), false, &fd, name, &err),
                         BT_INVALID);
    }
    memset(long_name, 'n', sizeof long_name);
    assert_int_equal(
        confine_open_parent(&c, (struct str){long_name, CONFINE_NAME_MAX}, false, &fd, name, &err),
        BT_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(confine_open_parent(&c, (struct str){long_name, CONFINE_NAME_MAX + 1}, false,
                                         &fd, name, &err),
                     BT_INVALID);
    assert_int_equal(confine_open_parent(&c, STR_LIT("no/file"), false, &fd, name, &err),
                     BT_NOT_FOUND);
    assert_int_equal(confine_open_parent(&c, STR_LIT("/etc/file"), false, &fd, name, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(confine_open_parent(&c, STR_LIT("a/b/file"), true, &fd, name, &err), BT_OK);
    assert_int_equal(unlinkat(fd, "../b", AT_REMOVEDIR), 0);
    assert_int_equal(close(fd), 0);
    (void)snprintf(long_name, sizeof long_name, "%s/a", root);
    assert_int_equal(rmdir(long_name), 0);
    assert_int_equal(rmdir(root), 0);
    confine_done(&c);
}

static void a_path_is_opened_below_its_roots_alone(void **state)
{
    static char longest[CONFINE_PATH_MAX + 2];
    char root[] = "/tmp/baton-confine-XXXXXX";
    char file[64];
    struct confine c = {.n = 0};
    struct bt_error err;
    struct stat st;
    int fd = -1;

    (void)state;
    assert_non_null(mkdtemp(root));
    (void)snprintf(file, sizeof file, "%s/file", root);
    fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    (void)snprintf(longest, sizeof longest, "%s///", root);
    assert_int_equal(confine_add(&c, longest, &err), BT_OK);
    assert_string_equal(c.roots[0].path, root); /* without the slashes at its end */
    assert_int_equal(confine_open(&c, STR_LIT("file"), CONFINE_FILE, &fd, &st, &err), BT_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(confine_open(&c, str_from(file), CONFINE_FILE, &fd, &st, &err), BT_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(confine_open(&c, STR_LIT("file"), CONFINE_DIR, &fd, &st, &err), BT_INVALID);
    assert_int_equal(confine_open(&c, STR_LIT("none"), CONFINE_FILE, &fd, &st, &err), BT_NOT_FOUND);
    assert_int_equal(confine_open(&c, STR_LIT("/etc/passwd"), CONFINE_FILE, &fd, &st, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(confine_open(&c, STR_LIT(""), CONFINE_FILE, &fd, &st, &err), BT_INVALID);
    assert_string_equal(err.msg, "path: expected 1 to 4095 bytes, got 0");
    assert_int_equal(confine_open(&c, STR_LIT("fi\x1f"), CONFINE_FILE, &fd, &st, &err), BT_INVALID);
    assert_string_equal(err.msg, "path: byte 3 is a control character");
    memset(longest, '/', sizeof longest);
    assert_int_equal(
        confine_open(&c, (struct str){longest, CONFINE_PATH_MAX + 1}, CONFINE_DIR, &fd, &st, &err),
        BT_INVALID);
    assert_string_equal(err.msg, "path: expected 1 to 4095 bytes, got 4096");
    for (unsigned i = 1; i < CONFINE_ROOTS_MAX; i++) {
        assert_int_equal(confine_add(&c, root, &err), BT_OK);
    }
    assert_int_equal(confine_add(&c, root, &err), BT_LIMIT);
    assert_string_equal(err.msg, "at most 32 roots");
    confine_done(&c);
    assert_int_equal(confine_add(&c, "relative", &err), BT_INVALID);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_in_every_form),
        cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(a_table_has_256_columns_and_no_more),
        cmocka_unit_test(csv_is_read_as_rfc_4180_says),
        cmocka_unit_test(a_field_of_csv_reads_back_as_it_was),
        cmocka_unit_test(columns_are_found_by_kind),
        cmocka_unit_test(text_of_a_cell_is_cut_between_characters),
        cmocka_unit_test(patterns_have_groups_and_names_and_a_bound),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(an_argument_wins_over_the_environment),
        cmocka_unit_test(a_path_is_walked_by_its_names),
        cmocka_unit_test(a_file_to_write_has_a_name_and_a_directory_below_a_root),
        cmocka_unit_test(a_path_is_opened_below_its_roots_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
