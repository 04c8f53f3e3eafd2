/* load of a file below a root: CSV and rows as NDJSON, read twice in bounded memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/sql/source.h"
#include "tests/unit/agents/sql_world.h"

enum { BIG_ROWS = 60000, COLUMNS_MAX = 256 };

static char root[] = "/tmp/baton-test-rows-XXXXXX";
static struct sql_settings *settings;

static int set_up(void **state)
{
    char more[128];

    if (mkdtemp(root) == NULL || sql_set_up(state) != 0) {
        return -1;
    }
    (void)snprintf(more, sizeof more, ",\"roots\":[\"%s\"]", root);
    settings = sql_settings_make(more);
    return 0;
}

static int tear_down(void **state)
{
    confine_done(&settings->roots);
    free(settings);
    return rmdir(root) == 0 ? sql_tear_down(state) : -1;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    assert_int_equal(close(fd), 0);
}

/* Loads a file of this name and these bytes into t; more: members beside it. */
static const char *load_bytes(const char *name, const void *bytes, size_t n, const char *more)
{
    char path[128];
    struct buf json;
    const char *reply;

    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    write_file(path, bytes, n);
    buf_init(&json, LIMIT_STEP_BYTES);
    buf_printf(&json, "{\"parameters\":{\"file\":\"%s\",\"table\":\"t\",\"replace\":true%s}}", path,
               more);
    reply = steps_run(steps_make("load", buf_cstr(&json)), sql_load, settings);
    buf_done(&json);
    assert_int_equal(unlink(path), 0);
    return reply;
}

static const char *load_csv(const char *text, const char *more)
{
    return load_bytes("x.csv", text, strlen(text), more);
}

static const char *load_ndjson(const char *text)
{
    return load_bytes("x.ndjson", text, strlen(text), "");
}

static void columns_of_a_file_have_the_types_of_their_cells(void **state)
{
    (void)state;
    steps_expect(load_csv("a,b,c,d\n1,x,2.5,01\n,y\n3,,-1,2\n", ""), "\"rows\":3");
    steps_expect(sql_ask("SELECT * FROM t"),
                 "\"types\":{\"a\":\"integer\",\"b\":\"text\",\"c\":\"real\",\"d\":\"text\"},"
                 "\"rows\":[[1,\"x\",2.5,\"01\"],[null,\"y\",null,null],[3,null,-1.0,\"2\"]]");
    steps_expect(load_csv("a;b\n1;2\n", ",\"delimiter\":\";\""), "\"rows\":1");
    steps_expect(load_csv("a;b\n1;2\n", ""), "set delimiter to");
    steps_expect(load_csv("a;b\n1;2\n", ",\"delimiter\":\",\""), "\"rows\":1");
    steps_expect(load_csv("", ""), "CSV: there is no header line");
    steps_expect(load_csv("a,b\n1,2,3\n", ""), "CSV line 2: 3 fields under a header of 2");
    steps_expect(load_csv("a,b\n", ""), "\"rows\":0");
    steps_expect(load_csv("a,,b\n", ""), "column 2 has no name");
    steps_expect(load_csv("a,b,a\n", ""), "the column 'a' is there twice");
}

static void a_declared_type_takes_what_would_not_be_found(void **state)
{
    (void)state;
    steps_expect(
        load_csv("zip,n\n12345,+5\n,007\n", ",\"types\":{\"n\":\"integer\",\"zip\":\"text\"}"),
        "\"rows\":2");
    steps_expect(sql_ask("SELECT zip, n, typeof(n) FROM t"),
                 "\"rows\":[[\"12345\",5,\"integer\"],[\"\",7,\"integer\"]]");
    steps_expect(load_csv("n\n1\nx\n", ",\"types\":{\"n\":\"integer\"}"),
                 "row 2, column 'n': expected");
    steps_expect(load_csv("n,m\n1,2\n", ",\"types\":{\"k\":\"integer\"}"),
                 "types.k: expected a column");
    steps_expect(load_csv("n,m\n1,2\n", ",\"types\":{\"m\":\"number\"}"),
                 "types.m: expected a column");
    steps_expect(load_csv("n,m\n1,2\n", ",\"types\":[\"text\"]"), "types: expected an object");
}

static void columns_are_renamed_in_their_order(void **state)
{
    (void)state;
    steps_expect(load_csv("a,b\n1,x\n", ",\"columns\":[\"n\",\"m\"],\"types\":{\"n\":\"real\"}"),
                 "[{\"name\":\"n\",\"type\":\"real\"},{\"name\":\"m\",\"type\":\"text\"}]");
    steps_expect(load_csv("a,b\n1,2\n", ",\"columns\":[\"n\"]"),
                 "columns: expected a list of 2 names");
    steps_expect(load_csv("a,b\n1,2\n", ",\"columns\":[\"n\",\"m\",\"o\"]"),
                 "columns: expected a list of 2 names");
    steps_expect(load_csv("a,b\n1,2\n", ",\"columns\":\"n\""),
                 "columns: expected a list of 2 names");
    steps_expect(load_csv("a,b\n1,2\n", ",\"columns\":[\"n\",\"\"]"),
                 "columns[1]: expected a name");
}

static void a_file_has_256_columns_and_no_more(void **state)
{
    struct buf text;

    (void)state;
    for (int n = COLUMNS_MAX; n <= COLUMNS_MAX + 1; n++) {
        buf_init(&text, LIMIT_STEP_BYTES);
        for (int i = 0; i < n; i++) {
            buf_printf(&text, "%sc%d", i > 0 ? "," : "", i);
        }
        buf_printf(&text, "\n");
        steps_expect(load_csv(buf_cstr(&text), ""), n == COLUMNS_MAX ? "\"rows\":0" : "256");
        buf_clear(&text);
        buf_printf(&text, "{\"columns\":[");
        for (int i = 0; i < n; i++) {
            buf_printf(&text, "%s\"c%d\"", i > 0 ? "," : "", i);
        }
        buf_printf(&text, "]}\n{\"types\":{");
        for (int i = 0; i < n; i++) {
            buf_printf(&text, "%s\"c%d\":\"text\"", i > 0 ? "," : "", i);
        }
        buf_printf(&text, "}}\n");
        steps_expect(load_ndjson(buf_cstr(&text)),
                     n == COLUMNS_MAX ? "\"rows\":0" : "more than 256 columns");
        buf_done(&text);
    }
}

static void bytes_that_are_no_utf8_are_replaced_and_counted_once(void **state)
{
    (void)state;
    steps_expect(load_csv("a\xff,b\nx\xfey,\xfd\xfc\nok,\xfb\n", ""), "\"replacedBytes\":5");
    steps_expect(sql_ask("SELECT \"a\xEF\xBF\xBD\", b FROM t"),
                 "\"rows\":[[\"x\xEF\xBF\xBDy\",\"\xEF\xBF\xBD\xEF\xBF\xBD\"],"
                 "[\"ok\",\"\xEF\xBF\xBD\"]]");
    steps_expect(load_csv("a,b\nx,y\n", ""), "\"replacedBytes\":0");
}

static void rows_as_ndjson_have_their_types_on_the_last_line(void **state)
{
    (void)state;
    steps_expect(
        load_ndjson("{\"columns\":[\"i\",\"r\",\"b\",\"t\",\"d\"]}\n"
                    "[1,2,true,\"x\",\"2026-11-21\"]\n"
                    "[-9223372036854775808,-3,false,[1,{\"k\":null}],null]\n"
                    "[9223372036854775807,2.5,null,7,\"2026-01-02\"]\n"
                    "[\"+5\",\"1.\",\"true\",\"\",null]\n"
                    "{\"types\":{\"i\":\"integer\",\"r\":\"real\",\"b\":\"boolean\",\"t\":\"text\","
                    "\"d\":\"date\"},\"rowCount\":4}\n"),
        "\"rows\":4");
    steps_expect(sql_ask("SELECT i, typeof(i), r, typeof(r), b, t, d FROM t"),
                 "\"rows\":[[1,\"integer\",2.0,\"real\",true,\"x\",\"2026-11-21\"],"
                 "[\"-9223372036854775808\",\"integer\",-3.0,\"real\",false,"
                 "\"[1,{\\\"k\\\":null}]\",null],"
                 "[\"9223372036854775807\",\"integer\",2.5,\"real\",null,\"7\",\"2026-01-02\"],"
                 "[5,\"integer\",1.0,\"real\",true,\"\",null]]");
    /* The last line needs no end. */
    steps_expect(load_ndjson("{\"columns\":[\"n\"]}\n[1]\n{\"types\":{\"n\":\"integer\"}}"),
                 "\"rows\":1");
}

static void rows_as_ndjson_are_refused_by_what_is_wrong_with_them(void **state)
{
#define HEAD "{\"columns\":[\"n\",\"m\"]}\n"
#define TAIL(n, m) "{\"types\":{\"n\":\"" n "\",\"m\":\"" m "\"}}\n"
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"", "rows as NDJSON: the first line: expected {\\\"columns\\\": [names]}"},
        {"[1,2]\n", "the first line: expected {\\\"columns\\\": [names]}"},
        {"{\"columns\":7}\n", "the first line: expected {\\\"columns\\\": [names]}"},
        {"{\"columns\":[\"n\",\"n\"]}\n", "the column 'n' is there twice"},
        {"{\"columns\":[\"n\",\"\"]}\n", "column 2 has no name"},
        {HEAD, "the last line with the types is missing"},
        {HEAD "[1,2]\n", "the last line with the types is missing"},
        {HEAD "[1]\n" TAIL("text", "text"), "row 1: expected a list of 2 cells"},
        {HEAD "[1,2]\n[1,2,3]\n" TAIL("text", "text"), "row 2: expected a list of 2 cells"},
        {HEAD "7\n" TAIL("text", "text"), "row 1: expected a list of 2 cells"},
        {HEAD "{\"types\":{\"n\":\"text\"}}\n", "the last line has no type of 'm'"},
        {HEAD TAIL("text", "number"), "the last line has no type of 'm'"},
        {HEAD "[1,\n" TAIL("text", "text"), "JSON"},
        {HEAD "[1,2]\n[1,\"x\"]\n" TAIL("integer", "integer"), "row 2, column 'm': expected"},
        {HEAD "[1,true]\n" TAIL("integer", "integer"), "row 1, column 'm': expected"},
        {HEAD "[1,2.5]\n" TAIL("integer", "integer"), "row 1, column 'm': expected"},
        {HEAD "[1,1]\n" TAIL("integer", "boolean"), "row 1, column 'm': expected"},
        {HEAD "[true,1]\n" TAIL("real", "text"), "row 1, column 'n': expected"},
        {HEAD "[1,[2]]\n" TAIL("real", "date"), "row 1, column 'm': expected"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *reply = load_ndjson(wrong[i].text);
        steps_expect(reply, "\"VALIDATION_ERROR\"");
        steps_expect(reply, wrong[i].why);
    }
}

static void the_name_of_a_file_says_which_of_both_it_is(void **state)
{
    static const char csv[] = "a,b\n1,2\n";

    (void)state;
    steps_expect(load_bytes("ndjson", csv, strlen(csv), ""), "\"rows\":1");
    steps_expect(load_bytes("x.ndjson.csv", csv, strlen(csv), ""), "\"rows\":1");
    steps_expect(load_bytes("a.ndjson", csv, strlen(csv), ""), "rows as NDJSON");
}

static void files_are_read_below_the_roots_alone(void **state)
{
    const char *reply;

    (void)state;
    reply = steps_run(steps_make("load", "{\"parameters\":{\"file\":\"/etc/passwd\",\"table\":"
                                         "\"t\"}}"),
                      sql_load, settings);
    steps_expect(reply, "\"PERMISSION_DENIED\"");
    reply = steps_run(steps_make("load", "{\"parameters\":{\"file\":\"/etc/passwd\",\"table\":"
                                         "\"t\"}}"),
                      sql_load, sql_reader);
    steps_expect(reply, "the settings of this agent name no directories that it may read");
    steps_expect(reply, "\"PERMISSION_DENIED\"");
}

/* Rows that lie over the ends of the blocks in which a file is read. */
static void a_file_of_many_blocks_is_loaded_whole(void **state)
{
    struct buf csv;
    struct buf lines;

    (void)state;
    buf_init(&csv, 4 * LIMIT_STEP_BYTES);
    buf_init(&lines, 4 * LIMIT_STEP_BYTES);
    buf_printf(&csv, "n,text\n");
    buf_printf(&lines, "{\"columns\":[\"n\",\"text\"]}\n");
    for (int i = 1; i <= BIG_ROWS; i++) {
        buf_printf(&csv, "%d,row %d\n", i, i);
        buf_printf(&lines, "[%d,\"row %d\"]\n", i, i);
    }
    buf_printf(&lines, "{\"types\":{\"n\":\"integer\",\"text\":\"text\"}}\n");
    steps_expect(load_bytes("x.csv", csv.at, csv.len, ""), "\"rows\":60000");
    steps_expect(sql_ask("SELECT count(*), sum(n), sum(text = 'row ' || n) FROM t"),
                 "\"rows\":[[60000,1800030000,60000]]");
    steps_expect(load_bytes("x.ndjson", lines.at, lines.len, ""), "\"rows\":60000");
    steps_expect(sql_ask("SELECT count(*), sum(n), sum(text = 'row ' || n) FROM t"),
                 "\"rows\":[[60000,1800030000,60000]]");
    buf_done(&csv);
    buf_done(&lines);
}

/* A cancelled step looks at its order every 256 rows of the first reading; in the second one the
 * database does. */
static void a_cancelled_load_stops_and_loads_nothing(void **state)
{
    (void)state;
    for (int rows = 255; rows <= 256; rows++) {
        char path[128];
        char json[256];
        struct bt_step *step;
        struct buf csv;
        const char *reply;

        buf_init(&csv, LIMIT_STEP_BYTES);
        buf_printf(&csv, "n\n");
        for (int i = 1; i <= rows; i++) {
            buf_printf(&csv, "%d\n", i);
        }
        (void)snprintf(path, sizeof path, "%s/c.csv", root);
        write_file(path, csv.at, csv.len);
        (void)snprintf(json, sizeof json, "{\"parameters\":{\"file\":\"%s\",\"table\":\"c%d\"}}",
                       path, rows);
        step = steps_make("load", json);
        atomic_store(&step->cancelled, true);
        reply = steps_run(step, sql_load, settings);
        steps_expect(reply, "\"CANCELLED\"");
        assert_int_equal(strstr(reply, "stopped at row 256; nothing was loaded") != NULL,
                         rows == 256);
        buf_done(&csv);
        assert_int_equal(unlink(path), 0);
    }
}

/* What is read twice has a beginning to go back to. */
static void a_pipe_is_not_read_again(void **state)
{
    struct source *s = calloc(1, sizeof *s);
    struct bt_error err;
    int fds[2];
    bool more = false;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "a\n1\n", 4), 4);
    assert_int_equal(close(fds[1]), 0);
    assert_int_equal(source_open(s, fds[0], SOURCE_CSV, ',', &err), BT_OK);
    assert_int_equal(source_next(s, &more, &err), BT_OK);
    assert_true(more);
    assert_int_not_equal(source_again(s, ',', &err), BT_OK);
    assert_non_null(strstr(err.msg, "reading the file again"));
    source_done(s);
    free(s);
    assert_int_equal(close(fds[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(columns_of_a_file_have_the_types_of_their_cells, sql_fresh),
        cmocka_unit_test_setup(a_declared_type_takes_what_would_not_be_found, sql_fresh),
        cmocka_unit_test_setup(columns_are_renamed_in_their_order, sql_fresh),
        cmocka_unit_test_setup(a_file_has_256_columns_and_no_more, sql_fresh),
        cmocka_unit_test_setup(bytes_that_are_no_utf8_are_replaced_and_counted_once, sql_fresh),
        cmocka_unit_test_setup(rows_as_ndjson_have_their_types_on_the_last_line, sql_fresh),
        cmocka_unit_test_setup(rows_as_ndjson_are_refused_by_what_is_wrong_with_them, sql_fresh),
        cmocka_unit_test_setup(the_name_of_a_file_says_which_of_both_it_is, sql_fresh),
        cmocka_unit_test_setup(files_are_read_below_the_roots_alone, sql_fresh),
        cmocka_unit_test_setup(a_file_of_many_blocks_is_loaded_whole, sql_fresh),
        cmocka_unit_test_setup(a_cancelled_load_stops_and_loads_nothing, sql_fresh),
        cmocka_unit_test_setup(a_pipe_is_not_read_again, sql_fresh),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
