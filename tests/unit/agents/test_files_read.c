/* read, list and grep: their results and their limits. */
#include "tests/unit/agents/files_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/files/glob.h"
#include "agents/files/lines.h"

enum { BIG = 3 * 1024 * 1024 + 1 };

static void a_file_is_read_as_text_and_its_data_does_not_repeat_it(void **state)
{
    const char *reply;

    (void)state;
    tree_text("in/hello", "Hello, w\xc3\xb6rld\n");
    reply = tree_run(files_read, "{\"path\":\"hello\"}");
    steps_expect(reply, "\"text\":\"Hello, w\xc3\xb6rld\\n\"");
    steps_expect(reply, "\"bytes\":14,\"size\":14,\"offset\":0,\"truncated\":false,\"replaced\":0");
    assert_null(strstr(strstr(reply, "Hello") + 1, "Hello"));
}

static void an_empty_file_is_an_empty_text(void **state)
{
    (void)state;
    tree_text("in/empty", "");
    steps_expect(tree_run(files_read, "{\"path\":\"empty\"}"), "\"text\":\"\"");
}

static void bytes_that_are_no_utf8_are_replaced_and_told(void **state)
{
    const char *reply;

    (void)state;
    tree_put("in/latin", "a\xe4z\xff", 4);
    reply = tree_run(files_read, "{\"path\":\"latin\"}");
    steps_expect(reply, "\"a\xef\xbf\xbdz\xef\xbf\xbd\"");
    steps_expect(reply, "\"replaced\":2");
}

static void binary_files_are_refused(void **state)
{
    (void)state;
    tree_put("in/binary", "a\0b\n", 4);
    tree_fails(tree_run(files_read, "{\"path\":\"binary\"}"), "VALIDATION_ERROR", "binary file");
    tree_fails(tree_run(files_grep, "{\"path\":\"binary\",\"pattern\":\"a\"}"), "VALIDATION_ERROR",
               "binary file");
    tree_fails(tree_run(files_csv, "{\"path\":\"binary\"}"), "VALIDATION_ERROR", "binary file");
}

static void a_file_that_does_not_fit_is_refused_and_read_in_parts(void **state)
{
    char *big = malloc(BIG);
    const char *reply;

    (void)state;
    assert_non_null(big);
    memset(big, 'x', BIG);
    tree_put("in/big", big, BIG);
    tree_fails(tree_run(files_read, "{\"path\":\"big\"}"), "VALIDATION_ERROR",
               "3145729 bytes, at most 2097152 are read at once; use artifact: true, set `offset` "
               "and `limit`");
    reply = tree_run(files_read, "{\"path\":\"big\",\"offset\":3145719,\"limit\":100}");
    steps_expect(reply, "\"xxxxxxxxxx\"");
    steps_expect(reply, "\"truncated\":false");
    reply = tree_run(files_read, "{\"path\":\"big\",\"limit\":5}");
    steps_expect(reply, "\"xxxxx\\n[not whole: bytes 0 to 5 of 3145729; the next part has");
    steps_expect(reply, "},\"truncated\":true}");
    tree_put("in/big", big, 2 * 1024 * 1024);
    steps_expect(tree_run(files_read, "{\"path\":\"big\"}"), "\"bytes\":2097152");
    free(big);
}

static void a_limit_does_not_cut_a_character_in_two(void **state)
{
    const char *reply;

    (void)state;
    tree_text("in/euro", "ab\xe2\x82\xac!");
    for (int limit = 2; limit <= 4; limit++) {
        char json[64];
        (void)snprintf(json, sizeof json, "{\"path\":\"euro\",\"limit\":%d}", limit);
        reply = tree_run(files_read, json);
        steps_expect(reply, "\"text\":\"ab\\n[not whole: bytes 0 to 2 of 6; the next part has the "
                            "offset 2]\\n\"");
        steps_expect(reply, "\"bytes\":2,");
        steps_expect(reply, "\"replaced\":0");
    }
    steps_expect(tree_run(files_read, "{\"path\":\"euro\",\"limit\":5}"),
                 "\"text\":\"ab\xe2\x82\xac\\n[");
    tree_text("in/face", "a\xf0\x9f\x98\x80"
                         "\xf0\x90\x80\x80!"); /* of four bytes, the first of them, too */
    for (int limit = 1; limit <= 4; limit++) {
        char json[64];
        (void)snprintf(json, sizeof json, "{\"path\":\"face\",\"limit\":%d}", limit);
        reply = tree_run(files_read, json);
        steps_expect(reply, "\"bytes\":1,");
        steps_expect(reply, "\"replaced\":0");
        (void)snprintf(json, sizeof json, "{\"path\":\"face\",\"offset\":5,\"limit\":%d}", limit);
        if (limit == 4) {
            steps_expect(tree_run(files_read, json), "\"bytes\":4,");
        }
    }
    steps_expect(tree_run(files_read, "{\"path\":\"face\",\"limit\":8}"), "\"bytes\":5,");
    tree_text("in/first", "a\xc2\xa0" /* the first of two bytes, and of three */
                          "\xe0\xa0\x80!");
    steps_expect(tree_run(files_read, "{\"path\":\"first\",\"limit\":2}"), "\"bytes\":1,");
    steps_expect(tree_run(files_read, "{\"path\":\"first\",\"limit\":3}"), "\"bytes\":3,");
    steps_expect(tree_run(files_read, "{\"path\":\"first\",\"limit\":5}"), "\"bytes\":3,");
    steps_expect(tree_run(files_read, "{\"path\":\"first\",\"limit\":6}"), "\"bytes\":6,");
}

static void unreadable_files_are_denied(void **state)
{
    const uid_t was = geteuid();
    const char *reply;
    char path[512];

    (void)state;
    tree_text("in/mine", "x");
    (void)snprintf(path, sizeof path, "%s/in/mine", tree);
    assert_int_equal(chmod(path, 0), 0);
    if (was == 0) { /* root can read everything: drop to nobody for a moment */
        assert_int_equal(seteuid(65534), 0);
    }
    reply = tree_run(files_read, "{\"path\":\"mine\"}");
    assert_int_equal(seteuid(was), 0);
    tree_fails(reply, "PERMISSION_DENIED", "not permit");
}

/* ---- list ---- */

static int make_listing(void **state)
{
    char path[512];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/in/l", tree);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/in/l/d", tree);
    (void)mkdir(path, 0755);
    tree_text("in/l/b.log", "12345");
    tree_text("in/l/a.txt", "1");
    tree_text("in/l/d/c.log", "123");
    (void)snprintf(path, sizeof path, "%s/in/l/up", tree);
    return symlink("..", path); /* a loop for a program that follows links */
}

static void a_directory_is_listed_by_name(void **state)
{
    const char *reply = tree_run(files_list, "{\"path\":\"@/in/l\"}");

    (void)state;
    steps_expect(reply, "\"count\":4,\"truncated\":false");
    steps_expect(reply, "{\"name\":\"a.txt\",\"type\":\"file\",\"size\":1,\"mtime\":\"20");
    steps_expect(reply, "{\"name\":\"d\",\"type\":\"directory\"");
    steps_expect(reply, "{\"name\":\"up\",\"type\":\"link\"");
    assert_true(strstr(reply, "a.txt") < strstr(reply, "b.log"));
}

static void a_glob_chooses_and_recursion_goes_down_but_through_no_link(void **state)
{
    const char *reply = tree_run(files_list, "{\"path\":\"l\",\"glob\":\"*.log\"}");

    (void)state;
    steps_expect(reply, "\"count\":1,");
    reply = tree_run(files_list, "{\"path\":\"l\",\"glob\":\"*.log\",\"recursive\":true}");
    steps_expect(reply, "\"count\":2,");
    steps_expect(reply, "\"d/c.log\"");
    reply = tree_run(files_list, "{\"path\":\"l\",\"glob\":\"d/*\",\"recursive\":true}");
    steps_expect(reply, "\"count\":1,");
    assert_null(strstr(reply, "up/"));
}

static void a_limit_cuts_the_list_and_says_so(void **state)
{
    const char *reply = tree_run(files_list, "{\"path\":\"l\",\"limit\":2}");

    (void)state;
    steps_expect(reply, "\"count\":2,\"truncated\":true");
    steps_expect(reply, "[not whole: 2 names, and there are more; raise `limit`");
    steps_expect(reply, "},\"truncated\":true}");
    steps_expect(tree_run(files_list, "{\"path\":\"l\",\"limit\":4}"), "\"truncated\":false");
    tree_fails(tree_run(files_list, "{\"path\":\"l/a.txt\"}"), "VALIDATION_ERROR",
               "expected a directory");
}

static void globs_match_whole_names(void **state)
{
    (void)state;
    assert_true(glob_match("*", "") && glob_match("*", "abc") && glob_match("", ""));
    assert_true(glob_match("*.log", "a.log") && !glob_match("*.log", "a.log.1"));
    assert_true(glob_match("a?c", "a\xc3\xa4"
                                  "c") &&
                !glob_match("a?c", "ac"));
    assert_true(glob_match("[a-c]x", "bx") && !glob_match("[a-c]x", "dx"));
    assert_true(glob_match("[!a-c]x", "dx") && !glob_match("[!a-c]x", "ax"));
    assert_true(glob_match("[]x]", "]") && glob_match("[", "[") && glob_match("[a", "[a"));
    assert_true(glob_match("*a*b*c", "xaybzc") && !glob_match("*a*b*c", "xaybz"));
    /* A hostile pattern ends. */
    assert_false(
        glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b",
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* ---- count ---- */

static void lines_and_words_are_counted(void **state)
{
    (void)state;
    tree_text("in/w", "one  two\r\n\n\tthree");
    steps_expect(tree_run(files_count, "{\"path\":\"w\"}"), "\"lines\":3,\"words\":3");
    steps_expect(tree_run(files_count, "{\"path\":\"w\"}"), "\"text\":\"3\"");
    steps_expect(tree_run(files_count, "{\"text\":\"a b\\n\",\"unit\":\"words\"}"),
                 "\"text\":\"2\"");
    tree_text("in/none", "");
    steps_expect(tree_run(files_count, "{\"path\":\"none\"}"), "\"lines\":0,\"words\":0");
    tree_fails(tree_run(files_count, "{\"path\":\"../outside\"}"), "PERMISSION_DENIED", "");
    tree_fails(tree_run(files_count, "{}"), "VALIDATION_ERROR", "give a path or a text");
}

/* ---- grep ---- */

static void matching_lines_come_as_text_and_data(void **state)
{
    const char *reply;

    (void)state;
    tree_text("in/g", "one\r\ntwo\nTHREE two\n\nfour");
    reply = tree_run(files_grep, "{\"path\":\"g\",\"pattern\":\"two$\"}");
    steps_expect(reply, "\"text\":\"two\\nTHREE two\\n\"");
    steps_expect(reply, "[{\"line\":2,\"text\":\"two\"},{\"line\":3,\"text\":\"THREE two\"}]");
    steps_expect(reply, "\"count\":2,\"lines\":5");
    steps_expect(tree_run(files_grep, "{\"path\":\"g\",\"pattern\":\"^one$\"}"), "\"count\":1");
    steps_expect(tree_run(files_grep, "{\"path\":\"g\",\"pattern\":\"^four$\"}"), "\"count\":1");
    steps_expect(tree_run(files_grep, "{\"path\":\"g\",\"pattern\":\"three\"}"), "\"count\":0");
    steps_expect(tree_run(files_grep, "{\"path\":\"g\",\"pattern\":\"three\",\"ignoreCase\":true}"),
                 "\"count\":1");
}

static void context_is_shown_once_with_line_numbers(void **state)
{
    (void)state;
    tree_text("in/c", "1\n2\nx3\n4\nx5\n6\n7\n8\n9\nx10\n");
    steps_expect(tree_run(files_grep, "{\"path\":\"c\",\"pattern\":\"x\",\"context\":1}"),
                 "\"text\":\"2-2\\n3:x3\\n4-4\\n5:x5\\n6-6\\n--\\n9-9\\n10:x10\\n\"");
}

static void a_limit_stops_the_lines_and_not_the_count(void **state)
{
    const char *reply;

    (void)state;
    tree_text("in/n", "x\nx\nx\n");
    reply = tree_run(files_grep, "{\"path\":\"n\",\"pattern\":\"x\",\"limit\":2}");
    steps_expect(reply, "\"count\":3,\"lines\":3,\"replaced\":0,\"truncated\":true,"
                        "\"matches\":[{\"line\":1,\"text\":\"x\"},{\"line\":2,\"text\":\"x\"}]");
    steps_expect(reply, "\"text\":\"x\\nx\\n[not whole: the first 2 of 3 lines that match; raise");
    steps_expect(reply, "},\"truncated\":true}");
    reply = tree_run(files_grep, "{\"path\":\"n\",\"pattern\":\"x\",\"limit\":3}");
    steps_expect(reply, "\"text\":\"x\\nx\\nx\\n\",");
    steps_expect(reply, "\"truncated\":false");
}

static void big_files_stream_and_huge_lines_are_refused(void **state)
{
    char *big = malloc(BIG);

    (void)state;
    assert_non_null(big);
    memset(big, 'x', BIG);
    big[LINES_LINE_MAX] = '\n';
    tree_put("in/huge", big, LINES_LINE_MAX + 1);
    steps_expect(tree_run(files_grep, "{\"path\":\"huge\",\"pattern\":\"y\"}"),
                 "\"count\":0,\"lines\":1");
    big[LINES_LINE_MAX] = 'x';
    big[LINES_LINE_MAX + 1] = '\n';
    tree_put("in/huge", big, LINES_LINE_MAX + 2);
    tree_fails(tree_run(files_grep, "{\"path\":\"huge\",\"pattern\":\"y\"}"), "VALIDATION_ERROR",
               "line 1 has more than 1048576 bytes");
    steps_expect(tree_run(files_count, "{\"path\":\"huge\"}"), "\"lines\":1,\"words\":1");
    free(big);
}

/* Lines of "y", one more than a result holds. */
static void lines_over_a_result_fail_and_over_a_limit_are_named(void **state)
{
    enum { MOST = 35000 };
    char *big = malloc((size_t)(MOST + 1) * 2);

    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < (MOST + 1) * 2; i++) {
        big[i] = i % 2 == 1 ? '\n' : 'y';
    }
    tree_put("in/many", big, (size_t)MOST * 2);
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"y\"}"),
                 "\"count\":35000,\"lines\":35000,\"replaced\":0,\"truncated\":false");
    tree_put("in/many", big, (size_t)(MOST + 1) * 2);
    tree_fails(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"y\"}"), "VALIDATION_ERROR",
               "result_too_large: 35001 lines match, and a result holds 35000 lines");
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"y\",\"limit\":35000}"),
                 "\"count\":35001,\"lines\":35001,\"replaced\":0,\"truncated\":true");
    free(big);
}

static void a_result_stays_within_its_bytes(void **state)
{
    char *big = malloc(BIG);

    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < BIG; i++) {
        big[i] = i % 1000 == 999 ? '\n' : 'y';
    }
    tree_put("in/many", big, BIG);
    tree_fails(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"y\"}"), "VALIDATION_ERROR",
               "result_too_large: 3146 lines match");
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"y\",\"limit\":3146}"),
                 "\"count\":3146,\"lines\":3146,\"replaced\":0,\"truncated\":true");
    free(big);
}

static void patterns_that_backtrack_without_end_are_stopped(void **state)
{
    (void)state;
    tree_text("in/redos",
              "fine\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
    tree_fails(tree_run(files_grep, "{\"path\":\"redos\",\"pattern\":\"^(a+)+$\"}"),
               "VALIDATION_ERROR", "line 2: the pattern backtracks too much");
    tree_fails(tree_run(files_grep, "{\"path\":\"redos\",\"pattern\":\"(\"}"), "VALIDATION_ERROR",
               "pattern '('");
}

static void lines_with_bad_bytes_are_searched_as_repaired(void **state)
{
    (void)state;
    tree_put("in/bad", "a\xffz\n", 4);
    steps_expect(tree_run(files_grep, "{\"path\":\"bad\",\"pattern\":\"^a.z$\"}"),
                 "\"replaced\":1");
}

static void a_cancelled_search_ends(void **state)
{
    struct bt_step *step;
    char *text = malloc(4096);

    (void)state;
    assert_non_null(text);
    memset(text, '\n', 4096);
    tree_put("in/blank", text, 4096);
    free(text);
    step = steps_make("grep", "{\"parameters\":{\"path\":\"blank\",\"pattern\":\"x\"}}");
    atomic_store(&step->cancelled, true);
    tree_fails(steps_run(step, files_grep, tree_files), "CANCELLED", "cancelled at line 256");
}

static void lines_of_a_text_are_those_of_a_file(void **state)
{
    struct lines l;
    struct str line;
    struct bt_error err;
    bool more;

    (void)state;
    lines_of_text(&l, STR_LIT("a\r\n\nb"));
    assert_int_equal(lines_next(&l, &line, &more, &err), BT_OK);
    assert_true(more && str_is(line, "a"));
    assert_int_equal(lines_next(&l, &line, &more, &err), BT_OK);
    assert_true(more && line.len == 0);
    assert_int_equal(lines_next(&l, &line, &more, &err), BT_OK);
    assert_true(more && str_is(line, "b") && l.number == 3);
    assert_int_equal(lines_next(&l, &line, &more, &err), BT_OK);
    assert_false(more);
    lines_done(&l);
    lines_of_text(&l, (struct str){NULL, 0});
    assert_int_equal(lines_next(&l, &line, &more, &err), BT_OK);
    assert_false(more);
    lines_done(&l);
}

/* A directory opens like a file, and cannot be read. */
static void what_cannot_be_read_is_an_error_and_no_wait(void **state)
{
    struct lines l;
    struct str line;
    struct bt_error err;
    bool more;
    int fd = open(tree, O_RDONLY | O_CLOEXEC | O_DIRECTORY);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(lines_of_file(&l, fd, &err), BT_OK);
    assert_int_not_equal(lines_next(&l, &line, &more, &err), BT_OK);
    assert_string_equal(err.msg, "reading: Is a directory");
    lines_done(&l);
    assert_int_equal(close(fd), 0);
}

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

/* Each skill, when it works and when it is refused. */
static void no_skill_leaves_a_descriptor_open(void **state)
{
    static const struct {
        bt_skill_run run;
        const char *works, *fails;
    } skills[] = {
        {files_read, "{\"path\":\"ab.txt\"}", "{\"path\":\"ab.txt\",\"offset\":\"x\"}"},
        {files_list, "{\"path\":\".\"}", "{\"path\":\"ab.txt\"}"},
        {files_grep, "{\"path\":\"ab.txt\",\"pattern\":\"a\"}",
         "{\"path\":\"ab.txt\",\"pattern\":\"(\"}"},
        {files_count, "{\"path\":\"ab.txt\"}", "{\"path\":\"ab.bin\"}"},
        {files_csv, "{\"path\":\"ab.txt\"}", "{\"path\":\"ab.bin\"}"},
        {files_write, "{\"path\":\"@/out/ab.txt\",\"text\":\"x\"}",
         "{\"path\":\"@/out/no/ab.txt\",\"text\":\"x\"}"},
    };
    int before;

    (void)state;
    tree_text("in/ab.txt", "a,b\n1,2\n");
    tree_put("in/ab.bin", "a\0b\n", 4);
    before = open_descriptors();
    for (size_t i = 0; i < sizeof skills / sizeof skills[0]; i++) {
        (void)tree_run(skills[i].run, skills[i].works);
        assert_int_equal(open_descriptors(), before);
        (void)tree_run(skills[i].run, skills[i].fails);
        assert_int_equal(open_descriptors(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_and_words_are_counted),
        cmocka_unit_test(a_file_is_read_as_text_and_its_data_does_not_repeat_it),
        cmocka_unit_test(an_empty_file_is_an_empty_text),
        cmocka_unit_test(bytes_that_are_no_utf8_are_replaced_and_told),
        cmocka_unit_test(binary_files_are_refused),
        cmocka_unit_test(a_file_that_does_not_fit_is_refused_and_read_in_parts),
        cmocka_unit_test(a_limit_does_not_cut_a_character_in_two),
        cmocka_unit_test(unreadable_files_are_denied),
        cmocka_unit_test_setup(a_directory_is_listed_by_name, make_listing),
        cmocka_unit_test(a_glob_chooses_and_recursion_goes_down_but_through_no_link),
        cmocka_unit_test(a_limit_cuts_the_list_and_says_so),
        cmocka_unit_test(globs_match_whole_names),
        cmocka_unit_test(matching_lines_come_as_text_and_data),
        cmocka_unit_test(context_is_shown_once_with_line_numbers),
        cmocka_unit_test(a_limit_stops_the_lines_and_not_the_count),
        cmocka_unit_test(big_files_stream_and_huge_lines_are_refused),
        cmocka_unit_test(lines_over_a_result_fail_and_over_a_limit_are_named),
        cmocka_unit_test(a_result_stays_within_its_bytes),
        cmocka_unit_test(patterns_that_backtrack_without_end_are_stopped),
        cmocka_unit_test(lines_with_bad_bytes_are_searched_as_repaired),
        cmocka_unit_test(a_cancelled_search_ends),
        cmocka_unit_test(lines_of_a_text_are_those_of_a_file),
        cmocka_unit_test(what_cannot_be_read_is_an_error_and_no_wait),
        cmocka_unit_test(no_skill_leaves_a_descriptor_open),
    };

    return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
