/* Calls of the system that are interrupted, steps that are cancelled, and the longest paths. */
#include "tests/unit/agents/files_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 600 };

ssize_t __real_read(int fd, void *at, size_t n);
ssize_t __real_pread(int fd, void *at, size_t n, off_t from);
ssize_t __real_write(int fd, const void *at, size_t n);
ssize_t __wrap_read(int fd, void *at, size_t n);
ssize_t __wrap_pread(int fd, void *at, size_t n, off_t from);
ssize_t __wrap_write(int fd, const void *at, size_t n);

static bool interrupts; /* every other call; those that are not take three bytes at most */
static unsigned calls;

static bool is_interrupted(void)
{
    errno = EINTR;
    return interrupts && calls++ % 2 == 0;
}

static size_t few(size_t n)
{
    return interrupts && n > 3 ? 3 : n;
}

ssize_t __wrap_read(int fd, void *at, size_t n)
{
    return is_interrupted() ? -1 : __real_read(fd, at, few(n));
}

ssize_t __wrap_pread(int fd, void *at, size_t n, off_t from)
{
    return is_interrupted() ? -1 : __real_pread(fd, at, few(n), from);
}

ssize_t __wrap_write(int fd, const void *at, size_t n)
{
    return is_interrupted() ? -1 : __real_write(fd, at, few(n));
}

/* A directory of so many names less one, all of which are this one; 0 = the real one. */
static const char *name_of_all = "gone";
struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
static unsigned long names;

struct dirent *__wrap_readdir(DIR *dir)
{
    static struct dirent all;

    if (names == 0) {
        return __real_readdir(dir);
    }
    (void)snprintf(all.d_name, sizeof all.d_name, "%s", name_of_all);
    return --names == 0 ? NULL : &all;
}

static char plans[512];

static int make(void **state)
{
    char text[LINES * 8];
    int n = 0;

    if (tree_make(state) != 0) {
        return -1;
    }
    tree_text("in/rows.csv", "day,n\n2026-11-30,1\n2026-12-01,22\n");
    for (int i = 0; i < LINES; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "l %d\n", i);
    }
    tree_put("in/many", text, (size_t)n);
    (void)snprintf(plans, sizeof plans, "%s/plans", tree);
    assert_int_equal(mkdir(plans, 0700), 0);
    strncat(plans, "/00000000-0000-7000-8000-000000000000", sizeof plans - strlen(plans) - 1);
    assert_int_equal(mkdir(plans, 0700), 0);
    return 0;
}

static const char *run(bt_skill_run skill, const char *parameters, bool cancelled)
{
    char json[1024];
    struct bt_step *s;
    const char *reply;

    (void)snprintf(json, sizeof json, "{\"artifactDir\":\"%s\",\"parameters\":%s}", plans,
                   parameters);
    s = steps_make("x", json);
    if (cancelled) {
        atomic_store(&s->cancelled, true);
    }
    reply = steps_run(s, skill, tree_files);
    return reply;
}

static void an_interrupted_call_goes_on_where_it_was(void **state)
{
    static const struct {
        bt_skill_run skill;
        const char *parameters;
    } cases[] = {
        {files_read, "{\"path\":\"rows.csv\"}"},
        {files_count, "{\"path\":\"rows.csv\"}"},
        {files_grep, "{\"path\":\"rows.csv\",\"pattern\":\"2026\"}"},
        {files_csv, "{\"path\":\"rows.csv\"}"},
        {files_csv, "{\"path\":\"rows.csv\",\"pattern\":\"(?<day>\\\\S+),(?<n>\\\\d+)\"}"},
        {files_write, "{\"path\":\"new\",\"text\":\"some text\"}"},
    };
    char *whole;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        whole = strdup(run(cases[i].skill, cases[i].parameters, false));
        assert_non_null(whole);
        steps_expect(whole, "\"completed\"");
        for (unsigned first = 0; first < 2; first++) {
            const char *again;
            calls = first;
            interrupts = true;
            again = run(cases[i].skill, cases[i].parameters, false);
            interrupts = false;
            assert_string_equal(again, whole);
        }
        free(whole);
    }
    assert_string_equal(tree_get("out/new"), "some text");
    interrupts = true;
    calls = 0;
    steps_expect(run(files_read, "{\"path\":\"rows.csv\",\"artifact\":true}", false),
                 "\"text\":\"Copied 33 bytes\"");
    interrupts = false;
}

static void a_cancelled_step_ends_with_its_place(void **state)
{
    static const struct {
        bt_skill_run skill;
        const char *parameters, *words;
    } cases[] = {
        {files_count, "{\"path\":\"many\"}", "cancelled at line 0"},
        {files_list, "{\"path\":\".\"}", "cancelled while listing"},
        {files_grep, "{\"path\":\"many\",\"pattern\":\"l\"}", "cancelled at line 256"},
        {files_csv, "{\"path\":\"many\",\"pattern\":\"(?<a>l)\"}", "cancelled at line 256"},
        {files_csv, "{\"path\":\"many\",\"delimiter\":\" \"}", "cancelled at line "},
        {files_read, "{\"path\":\"many\",\"artifact\":true}", "cancelled after 0 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = run(cases[i].skill, cases[i].parameters, true);
        tree_fails(reply, "\"class\":\"CANCELLED\"", cases[i].words);
        steps_expect(reply, "\"code\":\"CANCELLED\"");
    }
}

/* A header of one name may be one of several, with another delimiter between them. */
static void a_single_name_with_a_delimiter_in_it_is_asked_about(void **state)
{
    (void)state;
    tree_fails(run(files_csv, "{\"text\":\"a;b\\n1;2\\n\"}", false), "VALIDATION_ERROR",
               "delimiter");
    steps_expect(run(files_csv, "{\"text\":\"a;b\\n1;2\\n\",\"delimiter\":\",\"}", false),
                 "\"columns\":[\"a;b\"]");
    steps_expect(run(files_csv, "{\"text\":\"a;b,c\\n1;2,3\\n\"}", false),
                 "\"columns\":[\"a;b\",\"c\"]");
    steps_expect(run(files_csv, "{\"text\":\"a\\n1\\n\"}", false), "\"columns\":[\"a\"]");
}

/* The first thing that is wrong is the answer, wherever the rows come from. */
static void the_first_error_of_a_skill_is_its_answer(void **state)
{
    static const struct {
        bt_skill_run skill;
        const char *parameters, *words;
    } cases[] = {
        {files_csv, "{\"path\":\"rows.csv\",\"delimiter\":\"ab\"}", "delimiter"},
        {files_csv, "{\"text\":\"a\\n1\\n\",\"delimiter\":\"ab\"}", "delimiter"},
        {files_csv, "{\"path\":\"none\",\"delimiter\":\"ab\"}", "there is no such file"},
        {files_csv, "{\"path\":\"rows.csv\",\"pattern\":\"(\"}", "pattern '('"},
        {files_csv, "{\"text\":\"a\",\"pattern\":\"(\"}", "pattern '('"},
        {files_csv, "{\"path\":\"rows.csv\",\"pattern\":\"(a)\"}", "name its groups"},
        {files_csv, "{\"path\":\"rows.csv\",\"pattern\":\"(?<a>x)\",\"columns\":[\"b\"]}",
         "there is no column 'b'"},
        {files_csv, "{\"path\":\"rows.csv\",\"columns\":[\"b\"]}", "there is no column 'b'"},
        {files_csv, "{\"path\":\"rows.csv\",\"header\":false}", "needs their names"},
        {files_csv, "{\"path\":\"rows.csv\",\"types\":{\"day\":\"integer\"}}",
         "row 1: column 'day' has the type integer"},
        {files_csv, "{\"path\":\"rows.csv\",\"types\":{\"day\":\"integer\"},\"artifact\":true}",
         "row 1: column 'day' has the type integer"},
        {files_csv, "{\"path\":\"rows.csv\",\"delimiter\":\"ab\",\"artifact\":true}", "delimiter"},
        {files_grep, "{\"path\":\"none\",\"pattern\":\"(\"}", "pattern '('"},
        {files_grep, "{\"path\":\"none\",\"pattern\":\"a\"}", "there is no such file"},
        {files_read, "{\"path\":\"none\",\"artifact\":true}", "there is no such file"},
        {files_read, "{\"path\":\"rows.csv\",\"artifact\":true,\"limit\":5}",
         "leave offset and limit"},
        {files_read, "{\"path\":\"rows.csv\",\"artifact\":true,\"offset\":5}",
         "leave offset and limit"},
        {files_count, "{\"path\":\"none\"}", "there is no such file"},
        {files_list, "{\"path\":\"rows.csv\"}", "expected a directory"},
        {files_write, "{\"path\":\"../x\",\"text\":\"x\"}", "leads out of its root"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = run(cases[i].skill, cases[i].parameters, false);
        steps_expect(reply, "\"failed\"");
        steps_expect(reply, cases[i].words);
        assert_int_equal(tree_count("plans/00000000-0000-7000-8000-000000000000"), 0);
    }
}

/* 16 names of 255 bytes, with slashes between them, are 4095. */
static void a_path_of_4095_bytes_is_listed_and_a_longer_one_is_named(void **state)
{
    char name[256];
    char path[512];
    int dirs[17];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[255] = 0;
    (void)snprintf(path, sizeof path, "%s/in/long", tree);
    assert_int_equal(mkdir(path, 0755), 0);
    dirs[0] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(mkdirat(dirs[i], name, 0755), 0);
        dirs[i + 1] = openat(dirs[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(dirs[i + 1] >= 0);
    }
    steps_expect(run(files_list, "{\"path\":\"long\",\"recursive\":true}", false), "\"count\":16,");
    assert_int_equal(mkdirat(dirs[16], "x", 0755), 0);
    tree_fails(run(files_list, "{\"path\":\"long\",\"recursive\":true}", false), "VALIDATION_ERROR",
               "makes a path of more than 4095 bytes; list that directory by "
               "itself");
    assert_int_equal(unlinkat(dirs[16], "x", AT_REMOVEDIR), 0);
    for (int i = 15; i >= 0; i--) {
        assert_int_equal(close(dirs[i + 1]), 0);
        assert_int_equal(unlinkat(dirs[i], name, AT_REMOVEDIR), 0);
    }
    assert_int_equal(close(dirs[0]), 0);
    assert_int_equal(rmdir(path), 0);
}

/* A glob that matches nothing must not make a step endless. */
static void of_a_directory_200000_names_are_read_and_no_more(void **state)
{
    enum { MOST = 200000 };

    (void)state;
    names = MOST + 1; /* and its end */
    steps_expect(run(files_list, "{\"path\":\".\"}", false), "\"count\":0,");
    names = MOST + 2;
    tree_fails(run(files_list, "{\"path\":\".\"}", false), "VALIDATION_ERROR",
               "more than 200000 names were read; list a subdirectory");
    names = 0;
}

static void a_list_has_20000_names_and_no_more(void **state)
{
    enum { MOST = 20000 };

    (void)state;
    name_of_all = "rows.csv";
    names = MOST + 1;
    steps_expect(run(files_list, "{\"path\":\".\"}", false), "\"count\":20000,\"truncated\":false");
    names = MOST + 2;
    tree_fails(run(files_list, "{\"path\":\".\"}", false), "VALIDATION_ERROR",
               "result_too_large: more than 20000 names; narrow them by glob");
    names = MOST + 2;
    steps_expect(run(files_list, "{\"path\":\".\",\"limit\":20001}", false),
                 "\"count\":20000,\"truncated\":true");
    names = 0;
    name_of_all = "gone";
}

static void lines(const char *file, size_t n)
{
    char *text = malloc(2 * n);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = 'x';
        text[2 * i + 1] = '\n';
    }
    tree_put(file, text, 2 * n);
    free(text);
}

static void a_result_has_35000_lines_or_95000_rows_of_one_column(void **state)
{
    enum { MATCHES = 35000, ROWS = 95000 };

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        lines("in/lines", MATCHES + more);
        steps_expect(run(files_grep, "{\"path\":\"lines\",\"pattern\":\"x\"}", false),
                     more == 0 ? "\"count\":35000," : "result_too_large: 35001 lines match");
        lines("in/lines", ROWS + 1 + more); /* the first is the header */
        steps_expect(run(files_csv, "{\"path\":\"lines\"}", false),
                     more == 0 ? "\"rowCount\":95000,"
                               : "a result holds 3 MiB and 190000 values, 95000 of these rows");
    }
}

static void rows_over_a_limit_are_counted_up_to_a_million(void **state)
{
    enum { MILLION = 1000000 };

    (void)state;
    lines("in/lines", 1 + 1 + MILLION - 1);
    steps_expect(run(files_csv, "{\"path\":\"lines\",\"limit\":1}", false),
                 "the first 1 rows; 999999 more are there");
    lines("in/lines", 1 + 1 + MILLION);
    steps_expect(run(files_csv, "{\"path\":\"lines\",\"limit\":1}", false),
                 "the first 1 rows; at least 1000000 more are there");
    steps_expect(run(files_csv, "{\"path\":\"lines\",\"limit\":1,\"pattern\":\"(?<a>x)\"}", false),
                 "the first 1 rows; at least 1000000 more are there");
    lines("in/lines", 1);
}

static void an_error_names_the_file_and_200_bytes_of_a_longer_name(void **state)
{
    char path[320];
    char json[400];
    char want[320];

    (void)state;
    for (int len = 200; len <= 201; len++) {
        (void)snprintf(path, sizeof path, "%0*d", len, 0);
        (void)snprintf(json, sizeof json, "in/%s", path);
        tree_put(json, "a\0b", 3);
        (void)snprintf(want, sizeof want, "'%0*d': ", 200, 0);
        (void)snprintf(json, sizeof json, "{\"path\":\"%s\"}", path);
        steps_expect(run(files_read, json, false), want);
        steps_expect(run(files_csv, json, false), want);
        (void)snprintf(json, sizeof json, "{\"path\":\"%s\",\"pattern\":\"a\"}", path);
        steps_expect(run(files_grep, json, false), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_of_a_skill_is_its_answer),
        cmocka_unit_test(an_interrupted_call_goes_on_where_it_was),
        cmocka_unit_test(a_cancelled_step_ends_with_its_place),
        cmocka_unit_test(a_single_name_with_a_delimiter_in_it_is_asked_about),
        cmocka_unit_test(a_path_of_4095_bytes_is_listed_and_a_longer_one_is_named),
        cmocka_unit_test(of_a_directory_200000_names_are_read_and_no_more),
        cmocka_unit_test(a_list_has_20000_names_and_no_more),
        cmocka_unit_test(a_result_has_35000_lines_or_95000_rows_of_one_column),
        cmocka_unit_test(rows_over_a_limit_are_counted_up_to_a_million),
        cmocka_unit_test(an_error_names_the_file_and_200_bytes_of_a_longer_name),
    };

    return cmocka_run_group_tests(tests, make, tree_remove);
}
