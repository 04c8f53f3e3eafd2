/* The whole reply of each skill, for parameters at and beside their bounds. */
#include "tests/unit/agents/files_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/files/glob.h"
#include "agents/files/lines.h"

static int make(void **state)
{
    char path[512];

    if (tree_make(state) != 0) {
        return -1;
    }
    tree_text("in/three", "one\ntwo\nthree\n");
    tree_text("in/sales.csv", "day,n,ok\n2026-11-29,1,true\n2026-11-30,20,false\n,3,\n");
    tree_text("in/log", "GET /a 200\nbad\nPUT /b 404\nGET /c 500\n");
    (void)snprintf(path, sizeof path, "%s/in/dir", tree);
    assert_int_equal(mkdir(path, 0755), 0);
    tree_text("in/dir/b.txt", "b");
    tree_text("in/dir/a.md", "aa");
    (void)snprintf(path, sizeof path, "%s/in/dir/c", tree);
    assert_int_equal(mkdir(path, 0755), 0);
    tree_text("in/dir/c/d.txt", "ddd");
    return 0;
}

/* From the outcome on, without the times of files. */
static void gives(bt_skill_run run, const char *json, const char *want)
{
    const char *reply = tree_run(run, json);
    const char *at = strstr(reply, "\"outcome\"");
    static char got[65536];
    size_t n = 0;

    assert_non_null(at);
    while (*at != 0 && n < sizeof got - 1) {
        if (strncmp(at, "\"mtime\":\"", 9) == 0) {
            at += 9 + 24 + 2; /* the last member of its object */
            n--;              /* and the comma before it */
            got[n++] = '}';
            at++;
            continue;
        }
        got[n++] = *at++;
    }
    got[n > 0 ? n - 1 : 0] = 0; /* the brace of the reply */
    if (strcmp(got, want) != 0) {
        fail_msg("%s\ngot  %s\nwant %s", json, got, want);
    }
}

#define DONE "\"outcome\":\"completed\",\"result\":"

static void parts_of_a_file_are_joined_by_their_offsets(void **state)
{
    (void)state;
    gives(files_read, "{\"path\":\"three\"}",
          DONE "{\"text\":\"one\\ntwo\\nthree\\n\",\"data\":{\"path\":\"three\",\"bytes\":14,"
               "\"size\":14,\"offset\":0,\"truncated\":false,\"replaced\":0}}");
    gives(files_read, "{\"path\":\"three\",\"limit\":14}",
          DONE "{\"text\":\"one\\ntwo\\nthree\\n\",\"data\":{\"path\":\"three\",\"bytes\":14,"
               "\"size\":14,\"offset\":0,\"truncated\":false,\"replaced\":0}}");
    gives(files_read, "{\"path\":\"three\",\"limit\":13}",
          DONE "{\"text\":\"one\\ntwo\\nthree\\n[not whole: bytes 0 to 13 of 14; the next part has "
               "the offset 13]\\n\",\"data\":{\"path\":\"three\",\"bytes\":13,\"size\":14,"
               "\"offset\":0,\"truncated\":true,\"replaced\":0},\"truncated\":true}");
    gives(files_read, "{\"path\":\"three\",\"offset\":4,\"limit\":3}",
          DONE "{\"text\":\"two\\n[not whole: bytes 4 to 7 of 14; the next part has the offset "
               "7]\\n\",\"data\":{\"path\":\"three\",\"bytes\":3,\"size\":14,\"offset\":4,"
               "\"truncated\":true,\"replaced\":0},\"truncated\":true}");
    gives(files_read, "{\"path\":\"three\",\"offset\":14}",
          DONE "{\"text\":\"\",\"data\":{\"path\":\"three\",\"bytes\":0,\"size\":14,\"offset\":14,"
               "\"truncated\":false,\"replaced\":0}}");
    gives(files_read, "{\"path\":\"three\",\"offset\":-1,\"limit\":0}",
          DONE "{\"text\":\"[not whole: bytes 0 to 0 of 14; the next part has the offset 0]\\n\","
               "\"data\":{\"path\":\"three\",\"bytes\":0,\"size\":14,\"offset\":0,"
               "\"truncated\":true,\"replaced\":0},\"truncated\":true}");
}

static void a_directory_is_listed_whole_or_says_what_is_missing(void **state)
{
    (void)state;
    gives(files_list, "{\"path\":\"dir\",\"glob\":\"[\"}",
          DONE "{\"text\":\"\",\"data\":{\"path\":\"dir\",\"count\":0,\"truncated\":false,"
               "\"unreadable\":0,\"entries\":[]}}");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\"}"),
                 "\"data\":{\"path\":\"dir\",\"count\":3,\"truncated\":false,\"unreadable\":0,"
                 "\"entries\":[{\"name\":\"a.md\",\"type\":\"file\",\"size\":2,\"mtime\":\"20");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\"}"),
                 "{\"name\":\"c\",\"type\":\"directory\"");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\"}"), "  c/\\n\"");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\"}"), "           2  a.md\\n");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\",\"recursive\":true,\"glob\":\"*.txt\"}"),
                 "\"count\":2,");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\",\"recursive\":true,\"glob\":\"c/*\"}"),
                 "\"entries\":[{\"name\":\"c/d.txt\",\"type\":\"file\",\"size\":3,");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\",\"limit\":3}"),
                 "\"count\":3,\"truncated\":false");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\",\"limit\":2}"),
                 "[not whole: 2 names, and there are more; raise `limit` (at most 20000), or "
                 "narrow them by glob]\\n\"");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\",\"limit\":2}"),
                 "\"count\":2,\"truncated\":true");
    steps_expect(tree_run(files_list, "{\"path\":\"dir\",\"limit\":0}"),
                 "\"count\":0,\"truncated\":true");
}

static void a_tree_of_16_levels_is_listed_and_a_deeper_one_is_named(void **state)
{
    char path[512];
    size_t base;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/in/deep", tree);
    base = strlen(path);
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 1; i <= 17; i++) {
        strncat(path, "/d", sizeof path - strlen(path) - 1);
        assert_int_equal(mkdir(path, 0755), 0);
        if (i == 16) {
            steps_expect(tree_run(files_list, "{\"path\":\"deep\",\"recursive\":true}"),
                         "\"count\":16,");
        }
    }
    tree_fails(tree_run(files_list, "{\"path\":\"deep\",\"recursive\":true}"), "VALIDATION_ERROR",
               "is nested deeper than 16 directories; list it by itself");
    while (strlen(path) >= base) {
        assert_int_equal(rmdir(path), 0);
        *strrchr(path, '/') = 0;
    }
}

static void lines_that_match_come_with_their_numbers(void **state)
{
    (void)state;
    gives(files_grep, "{\"path\":\"three\",\"pattern\":\"t\"}",
          DONE "{\"text\":\"two\\nthree\\n\",\"data\":{\"path\":\"three\",\"count\":2,\"lines\":3,"
               "\"replaced\":0,\"truncated\":false,\"matches\":[{\"line\":2,\"text\":\"two\"},"
               "{\"line\":3,\"text\":\"three\"}]}}");
    gives(files_grep, "{\"path\":\"three\",\"pattern\":\"T\"}",
          DONE "{\"text\":\"\",\"data\":{\"path\":\"three\",\"count\":0,\"lines\":3,"
               "\"replaced\":0,\"truncated\":false,\"matches\":[]}}");
    gives(files_grep, "{\"path\":\"three\",\"pattern\":\"TW\",\"ignoreCase\":true,\"context\":1}",
          DONE "{\"text\":\"1-one\\n2:two\\n3-three\\n\",\"data\":{\"path\":\"three\",\"count\":1,"
               "\"lines\":3,\"replaced\":0,\"truncated\":false,\"matches\":[{\"line\":2,\"text\":"
               "\"two\"}]}}");
    gives(files_grep, "{\"path\":\"three\",\"pattern\":\"t\",\"limit\":1}",
          DONE "{\"text\":\"two\\n[not whole: the first 1 of 2 lines that match; raise `limit` (at "
               "most 35000), or narrow the pattern]\\n\",\"data\":{\"path\":\"three\",\"count\":2,"
               "\"lines\":3,\"replaced\":0,\"truncated\":true,\"matches\":[{\"line\":2,\"text\":"
               "\"two\"}]},\"truncated\":true}");
    gives(files_grep, "{\"path\":\"three\",\"pattern\":\"t\",\"limit\":2}",
          DONE "{\"text\":\"two\\nthree\\n\",\"data\":{\"path\":\"three\",\"count\":2,\"lines\":3,"
               "\"replaced\":0,\"truncated\":false,\"matches\":[{\"line\":2,\"text\":\"two\"},"
               "{\"line\":3,\"text\":\"three\"}]}}");
    tree_fails(tree_run(files_grep, "{\"path\":\"three\",\"pattern\":\"(\"}"), "VALIDATION_ERROR",
               "pattern '('");
    tree_fails(tree_run(files_grep, "{\"path\":\"three\"}"), "VALIDATION_ERROR",
               "pattern: expected 1 to 4096 bytes");
}

/* Lines around matches: each once, gaps marked, and no more than the ring holds. */
static void context_is_what_stands_around_a_match(void **state)
{
    (void)state;
    tree_text("in/many", "1\n2\n3\nx\n5\n6\n7\n8\nx\n10\nx\n12\n");
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"x\",\"context\":1}"),
                 "\"text\":\"3-3\\n4:x\\n5-5\\n--\\n8-8\\n9:x\\n10-10\\n11:x\\n12-12\\n\"");
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"x\",\"context\":2}"),
                 "\"text\":\"2-2\\n3-3\\n4:x\\n5-5\\n6-6\\n7-7\\n8-8\\n9:x\\n10-10\\n11:x\\n"
                 "12-12\\n\"");
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"x\",\"context\":99}"),
                 "\"text\":\"1-1\\n2-2\\n3-3\\n4:x\\n5-5\\n");
    steps_expect(
        tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"x\",\"context\":1,\"limit\":1}"),
        "\"text\":\"3-3\\n4:x\\n5-5\\n[not whole: the first 1 of 3");
    steps_expect(tree_run(files_grep, "{\"path\":\"many\",\"pattern\":\"^1$\",\"context\":3}"),
                 "\"text\":\"1:1\\n2-2\\n3-3\\n4-x\\n\"");
}

static void lines_and_words_of_a_file_or_a_text(void **state)
{
    (void)state;
    gives(files_count, "{\"path\":\"three\"}",
          DONE "{\"text\":\"3\",\"data\":{\"lines\":3,\"words\":3}}");
    gives(files_count, "{\"text\":\"a b\\tc\\n d\",\"unit\":\"words\"}",
          DONE "{\"text\":\"4\",\"data\":{\"lines\":2,\"words\":4}}");
    gives(files_count, "{\"text\":\"a\\u000bb\\u000cc\\rd\\u000ee\\bf\"}",
          DONE "{\"text\":\"1\",\"data\":{\"lines\":1,\"words\":4}}");
    gives(files_count, "{\"text\":\"\"}",
          DONE "{\"text\":\"0\",\"data\":{\"lines\":0,\"words\":0}}");
    gives(files_count, "{\"text\":\"\\n\"}",
          DONE "{\"text\":\"1\",\"data\":{\"lines\":1,\"words\":0}}");
    tree_fails(tree_run(files_count, "{}"), "VALIDATION_ERROR",
               "there is nothing to count: give a path or a text");
}

/* A word or a line may go on in the next block. */
static void what_goes_on_in_the_next_block_is_counted_once(void **state)
{
    enum { BLOCK = 64 * 1024 };
    char *text = malloc(2 * BLOCK);

    (void)state;
    assert_non_null(text);
    memset(text, 'x', 2 * BLOCK);
    text[BLOCK + 5] = '\n';
    tree_put("in/blocks", text, 2 * BLOCK);
    gives(files_count, "{\"path\":\"blocks\"}",
          DONE "{\"text\":\"2\",\"data\":{\"lines\":2,\"words\":2}}");
    text[BLOCK - 1] = ' ';
    text[2 * BLOCK - 1] = '\n';
    tree_put("in/blocks", text, 2 * BLOCK);
    gives(files_count, "{\"path\":\"blocks\"}",
          DONE "{\"text\":\"2\",\"data\":{\"lines\":2,\"words\":3}}");
    free(text);
}

static void rows_come_with_their_columns_and_types(void **state)
{
    (void)state;
    gives(files_csv, "{\"path\":\"sales.csv\"}",
          DONE "{\"text\":\"3 rows of 3 columns; 0 lines were no rows\",\"data\":{\"columns\":["
               "\"day\",\"n\",\"ok\"],\"types\":{\"day\":\"date\",\"n\":\"integer\",\"ok\":"
               "\"boolean\"},\"rowCount\":3,\"skipped\":0,\"filtered\":0,\"replaced\":0,"
               "\"truncated\":false,\"rows\":[[\"2026-11-29\",1,true],[\"2026-11-30\",20,false],"
               "[null,3,null]]}}");
    gives(files_csv,
          "{\"path\":\"sales.csv\",\"columns\":[\"n\"],\"where\":{\"ok\":[true,null]},"
          "\"types\":{\"n\":\"text\"}}",
          DONE "{\"text\":\"2 rows of 1 columns; 0 lines were no rows\",\"data\":{\"columns\":["
               "\"n\"],\"types\":{\"n\":\"text\"},\"rowCount\":2,\"skipped\":0,\"filtered\":1,"
               "\"replaced\":0,\"truncated\":false,\"rows\":[[\"1\"],[\"3\"]]}}");
    gives(files_csv, "{\"path\":\"sales.csv\",\"columns\":[\"n\"],\"limit\":1}",
          DONE "{\"text\":\"1 rows of 1 columns; 0 lines were no rows\\n[not whole: the first 1 "
               "rows; 2 more are there; raise `limit`, or narrow the rows by where]\\n\",\"data\":{"
               "\"columns\":[\"n\"],\"types\":{\"n\":\"integer\"},\"rowCount\":1,\"skipped\":0,"
               "\"filtered\":0,\"replaced\":0,\"truncated\":true,\"rows\":[[1]]},\"truncated\":"
               "true}");
    gives(files_csv, "{\"path\":\"log\",\"pattern\":\"(?<verb>[A-Z]+) (\\\\S+) (?<code>\\\\d+)\"}",
          DONE "{\"text\":\"3 rows of 2 columns; 1 lines were no rows\",\"data\":{\"columns\":["
               "\"verb\",\"code\"],\"types\":{\"verb\":\"text\",\"code\":\"integer\"},"
               "\"rowCount\":3,\"skipped\":1,\"filtered\":0,\"replaced\":0,\"truncated\":false,"
               "\"rows\":[[\"GET\",200],[\"PUT\",404],[\"GET\",500]]}}");
    gives(files_csv,
          "{\"text\":\"1;2\\n3\\n\",\"delimiter\":\";\",\"header\":false,\"columns\":["
          "\"a\",\"b\"]}",
          DONE "{\"text\":\"2 rows of 2 columns; 0 lines were no rows\",\"data\":{\"columns\":["
               "\"a\",\"b\"],\"types\":{\"a\":\"integer\",\"b\":\"integer\"},\"rowCount\":2,"
               "\"skipped\":0,\"filtered\":0,\"replaced\":0,\"truncated\":false,\"rows\":[[1,2],[3,"
               "null]]}}");
}

static void where_compares_with_the_value_that_a_cell_means(void **state)
{
    static const struct {
        const char *value;
        int rows;
    } cases[] = {{"1", 1},           {"1.0", 1},
                 {"\"1\"", 1},       {"\"1.0\"", 0},
                 {"-1", 1},          {"2.5", 1},
                 {"true", 1},        {"false", 0},
                 {"null", 1},        {"\"\"", 1},
                 {"[1,2.5]", 2},     {"[]", 0},
                 {"\"x\"", 1},       {"18446744073709551615", 0},
                 {"[\"x\",null]", 2}};
    char json[256];
    char want[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(json, sizeof json,
                       "{\"text\":\"a,b\\n1,k\\n-1,k\\n2.5,k\\ntrue,k\\n,k\\nx,k\\n\","
                       "\"where\":{\"a\":%s}}",
                       cases[i].value);
        (void)snprintf(want, sizeof want, "\"rowCount\":%d,", cases[i].rows);
        steps_expect(tree_run(files_csv, json), want);
    }
    /* a text that is no number as it stands there is no value of a number */
    steps_expect(tree_run(files_csv, "{\"text\":\"a,b\\n01,1\\n+1,1\\n\",\"where\":{\"a\":1}}"),
                 "\"rowCount\":0,");
    steps_expect(tree_run(files_csv, "{\"text\":\"a,b\\n-01,1\\n\",\"where\":{\"a\":-1}}"),
                 "\"rowCount\":0,");
    steps_expect(tree_run(files_csv, "{\"text\":\"a,b\\n+1.5,1\\n\",\"where\":{\"a\":1.5}}"),
                 "\"rowCount\":0,");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"where\":{\"a\":{}}}"),
               "VALIDATION_ERROR", "where.a: expected a value or a list of values");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"where\":{\"c\":1}}"),
               "VALIDATION_ERROR", "where: there is no column 'c'; there are: a, b");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"columns\":[\"a\",\"a\"]}"),
               "VALIDATION_ERROR", "columns: 'a' is named twice");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"columns\":[7]}"),
               "VALIDATION_ERROR", "columns: there is no column ''; there are: a, b");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"types\":{\"a\":\"int\"}}"),
               "VALIDATION_ERROR", "types.a: expected text, integer, real, boolean or date");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"types\":{\"c\":\"text\"}}"),
               "VALIDATION_ERROR", "types: there is no column 'c'");
    tree_fails(
        tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\nx,3\\n\",\"types\":{\"a\":\"integer\"}}"),
        "VALIDATION_ERROR", "row 2: column 'a' has the type integer, but 'x' is not ");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"types\":[\"a\"]}"),
               "VALIDATION_ERROR", "types: expected an object such as");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"where\":[\"a\"]}"),
               "VALIDATION_ERROR", "where: expected an object of at most 16 columns");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n\",\"columns\":{\"a\":1}}"),
               "VALIDATION_ERROR", "columns: expected a list of at most 256 names");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,\\n1,2\\n\"}"), "VALIDATION_ERROR",
               "CSV header: column 2 has no name; give it one");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,a\\n1,2\\n\"}"), "VALIDATION_ERROR",
               "CSV header: the column 'a' is there twice");
    tree_fails(tree_run(files_csv, "{\"text\":\"a,b\\n1,2\\n1,2,3\\n\"}"), "VALIDATION_ERROR",
               "CSV record 3: 3 fields under a header of 2");
    tree_fails(
        tree_run(files_csv, "{\"text\":\"1,2,3\\n\",\"header\":false,\"columns\":[\"a\",\"b\"]}"),
        "VALIDATION_ERROR", "CSV record 1: 3 fields under a header of 2");
    tree_fails(tree_run(files_csv, "{\"text\":\"1\\n\",\"header\":false}"), "VALIDATION_ERROR",
               "columns: a text without a header line needs their names, at most 256");
    tree_fails(tree_run(files_csv, "{\"text\":\"\\n\"}"), "VALIDATION_ERROR",
               "CSV: there is no header line");
    tree_fails(tree_run(files_csv, "{\"text\":\"a\\n\",\"pattern\":\"(a)\"}"), "VALIDATION_ERROR",
               "pattern: name its groups, they are the columns");
    tree_fails(tree_run(files_csv, "{}"), "VALIDATION_ERROR",
               "give path or text, or let a step before this one read it");
}

/* Integers that a double does not hold travel as texts; bad bytes are repaired and told. */
static void cells_keep_what_they_say(void **state)
{
    (void)state;
    steps_expect(tree_run(files_csv, "{\"text\":\"a,b\\n9007199254740993,1.5\\n-9007199254740992,"
                                     "2\\n\"}"),
                 "\"rows\":[[\"9007199254740993\",1.5],[-9007199254740992,2.0]]");
    steps_expect(tree_run(files_csv, "{\"text\":\"a\\n9007199254740992\\n-9007199254740993\\n\"}"),
                 "\"rows\":[[9007199254740992],[\"-9007199254740993\"]]");
    tree_put("in/latin.csv", "a,b\n\xe4,x\ny,\xff\xff\n", 13);
    steps_expect(tree_run(files_csv, "{\"path\":\"latin.csv\"}"),
                 "\"replaced\":3,\"truncated\":false,\"rows\":[[\"\xef\xbf\xbd\",\"x\"],[\"y\","
                 "\"\xef\xbf\xbd\xef\xbf\xbd\"]]");
}

static void what_is_written_is_named_and_counted(void **state)
{
    (void)state;
    gives(files_write, "{\"path\":\"new\",\"text\":\"hello\"}",
          DONE "{\"text\":\"Wrote 5 bytes to new\",\"data\":{\"path\":\"new\",\"bytes\":5}}");
    assert_string_equal(tree_get("out/new"), "hello");
    gives(files_write, "{\"path\":\"new\",\"data\":{\"a\":[1]}}",
          DONE "{\"text\":\"Wrote 23 bytes to new\",\"data\":{\"path\":\"new\",\"bytes\":23}}");
    assert_string_equal(tree_get("out/new"), "{\n  \"a\": [\n    1\n  ]\n}\n");
    assert_int_equal(tree_count("out"), 1);
    tree_fails(tree_run(files_write, "{\"path\":\"new\"}"), "VALIDATION_ERROR",
               "give text or data, or let a step before this one make it");
    tree_fails(tree_run(files_write, "{\"path\":\"no/new\",\"text\":\"x\"}"), "RESOURCE_NOT_FOUND",
               "there is no such");
}

static void a_report_has_its_title_its_text_and_its_sections(void **state)
{
    (void)state;
    gives(files_render,
          "{\"title\":\"T\",\"text\":\"Some.\",\"sections\":[{\"heading\":\"H\","
          "\"list\":[1]},{\"text\":\"end\"}]}",
          DONE "{\"text\":\"# T\\n\\nSome.\\n\\n## H\\n\\n- 1\\n\\nend\\n\"}");
    gives(files_render,
          "{\"template\":\"{{ a.0.b }} and {{c}}{{d}}.\",\"data\":{\"a\":[{\"b\":1}],\"c\":\"x\","
          "\"d\":[1,2]}}",
          DONE "{\"text\":\"1 and x- 1\\n- 2\\n.\"}");
    gives(files_render, "{\"template\":\"no {{ end\"}", DONE "{\"text\":\"no {{ end\"}");
    tree_fails(tree_run(files_render, "{\"template\":\"{{x}}\",\"data\":{}}"), "VALIDATION_ERROR",
               "template: the data has no 'x'");
    tree_fails(tree_run(files_render, "{\"template\":\"{{}}\",\"data\":{}}"), "VALIDATION_ERROR",
               "template: the data has no ''");
    tree_fails(tree_run(files_render, "{\"template\":\"{{a.1}}\",\"data\":{\"a\":[0]}}"),
               "VALIDATION_ERROR", "template: the data has no 'a.1'");
    tree_fails(tree_run(files_render, "{\"template\":\"{{a.x}}\",\"data\":{\"a\":[0]}}"),
               "VALIDATION_ERROR", "template: the data has no 'a.x'");
    tree_fails(tree_run(files_render, "{\"template\":\"{{a..b}}\",\"data\":{\"a\":{\"b\":1}}}"),
               "VALIDATION_ERROR", "template: the data has no 'a..b'");
    tree_fails(tree_run(files_render, "{\"template\":7}"), "VALIDATION_ERROR",
               "template: expected a text");
    tree_fails(tree_run(files_render, "{\"sections\":[{},7]}"), "VALIDATION_ERROR",
               "sections[1]: expected {heading");
    tree_fails(tree_run(files_render, "{}"), "VALIDATION_ERROR",
               "give sections, a template or a text");
}

static void a_report_has_200_sections_and_a_key_255_bytes(void **state)
{
    static char json[200 * 4 + 64];
    static char key[700];
    int n = snprintf(json, sizeof json, "{\"sections\":[");

    (void)state;
    for (int i = 0; i < 200; i++) {
        n += snprintf(json + n, sizeof json - (size_t)n, "%s{}", i > 0 ? "," : "");
    }
    (void)snprintf(json + n, sizeof json - (size_t)n, "]}");
    steps_expect(tree_run(files_render, json), DONE);
    (void)snprintf(json + n, sizeof json - (size_t)n, ",{}]}");
    tree_fails(tree_run(files_render, json), "VALIDATION_ERROR", "sections[200]: at most 200");
    for (int len = 255; len <= 256; len++) {
        (void)snprintf(key, sizeof key, "{\"template\":\"{{%0*d}}\",\"data\":{\"%0*d\":\"v\"}}",
                       len, 0, len, 0);
        steps_expect(tree_run(files_render, key),
                     len == 255 ? "\"text\":\"v\"" : "the data has no");
    }
}

static void settings_have_bounds(void **state)
{
    struct files *f = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(files_new("{\"roots\":[\"/tmp\"]}", &f, &err), BT_OK);
    assert_int_equal(f->max_bytes, FILES_READ_DEFAULT);
    files_free(f);
    assert_int_equal(files_new("{\"writeRoots\":[\"/tmp\"],\"maxBytes\":1}", &f, &err), BT_OK);
    assert_int_equal(f->max_bytes, 1);
    files_free(f);
    assert_int_equal(files_new("{\"roots\":[\"/tmp\"],\"maxBytes\":2621440}", &f, &err), BT_OK);
    assert_int_equal(f->max_bytes, FILES_READ_MAX);
    files_free(f);
    assert_int_equal(files_new("{\"roots\":[\"/tmp\"],\"maxBytes\":2621441}", &f, &err),
                     BT_INVALID);
    assert_string_equal(err.msg, "maxBytes: expected 1 to 2621440");
    assert_int_equal(files_new("{\"roots\":[\"/tmp\"],\"maxBytes\":0}", &f, &err), BT_INVALID);
    assert_int_equal(files_new("{\"roots\":[\"/tmp\"],\"maxBytes\":\"1\"}", &f, &err), BT_INVALID);
    assert_int_equal(files_new("{\"roots\":[],\"writeRoots\":[]}", &f, &err), BT_INVALID);
    files_free(NULL);
}

/* Against a plain definition, over all short names and patterns of a few letters. */
static bool matches(const char *p, const char *n)
{
    if (*p == 0) {
        return *n == 0;
    }
    if (*p == '*') {
        return matches(p + 1, n) || (*n != 0 && matches(p, n + 1));
    }
    return *n != 0 && (*p == '?' || *p == *n) && matches(p + 1, n + 1);
}

static void globs_match_as_they_are_defined(void **state)
{
    static const char letters[] = "ab*?";
    char pattern[6];
    char name[5];

    (void)state;
    for (int p = 0; p < 1024; p++) {
        for (int len = 0; len <= 5; len++) {
            for (int i = 0; i < len; i++) {
                pattern[i] = letters[p >> (2 * i) & 3];
            }
            pattern[len] = 0;
            for (int n = 0; n < 16; n++) {
                for (int l = 0; l <= 4; l++) {
                    for (int i = 0; i < l; i++) {
                        name[i] = letters[n >> i & 1];
                    }
                    name[l] = 0;
                    if (glob_match(pattern, name) != matches(pattern, name)) {
                        fail_msg("'%s' and '%s'", pattern, name);
                    }
                }
            }
        }
    }
}

static void sets_of_a_glob_have_ranges_and_may_be_negated(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool yes;
    } cases[] = {
        {"[a-c]", "a", true},   {"[a-c]", "c", true},    {"[a-c]", "d", false},
        {"[a-c]", "`", false},  {"[!a-c]", "d", true},   {"[^a-c]", "b", false},
        {"[]a]", "]", true},    {"[]a]", "a", true},     {"[]a]", "b", false},
        {"[!]a]", "]", false},  {"[!]a]", "b", true},    {"[a-]", "-", true},
        {"[a-]", "a", true},    {"[a-]", "b", false},    {"[abc", "[abc", true},
        {"[abc", "a", false},   {"x[ab]y", "xby", true}, {"x[ab]y", "xcy", false},
        {"[a]", "", false},     {"?", "\xC3\xA4", true}, {"??", "\xC3\xA4", false},
        {"*[0-9]", "a1", true}, {"*[0-9]", "1a", false}, {"[", "[", true},
        {"a**b", "axb", true},  {"", "", true},          {"", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (glob_match(cases[i].pattern, cases[i].name) != cases[i].yes) {
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].name);
        }
    }
}

static void a_line_has_its_most_bytes_and_not_one_more(void **state)
{
    char *text = malloc((size_t)LINES_LINE_MAX + 2);
    struct lines l;
    struct bt_error err = {.msg = ""};
    struct str line;
    bool more = false;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', (size_t)LINES_LINE_MAX + 1);
    for (size_t n = LINES_LINE_MAX; n <= (size_t)LINES_LINE_MAX + 1; n++) {
        lines_of_text(&l, (struct str){text, n});
        assert_int_equal(lines_next(&l, &line, &more, &err),
                         n == LINES_LINE_MAX ? BT_OK : BT_LIMIT);
        assert_int_equal(more, n == LINES_LINE_MAX);
        lines_done(&l);
    }
    assert_int_equal(strncmp(err.msg, "line 1 has more than ", 21), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_file_are_joined_by_their_offsets),
        cmocka_unit_test(a_directory_is_listed_whole_or_says_what_is_missing),
        cmocka_unit_test(a_tree_of_16_levels_is_listed_and_a_deeper_one_is_named),
        cmocka_unit_test(lines_that_match_come_with_their_numbers),
        cmocka_unit_test(context_is_what_stands_around_a_match),
        cmocka_unit_test(lines_and_words_of_a_file_or_a_text),
        cmocka_unit_test(what_goes_on_in_the_next_block_is_counted_once),
        cmocka_unit_test(rows_come_with_their_columns_and_types),
        cmocka_unit_test(where_compares_with_the_value_that_a_cell_means),
        cmocka_unit_test(cells_keep_what_they_say),
        cmocka_unit_test(what_is_written_is_named_and_counted),
        cmocka_unit_test(a_report_has_its_title_its_text_and_its_sections),
        cmocka_unit_test(a_report_has_200_sections_and_a_key_255_bytes),
        cmocka_unit_test(settings_have_bounds),
        cmocka_unit_test(globs_match_as_they_are_defined),
        cmocka_unit_test(sets_of_a_glob_have_ranges_and_may_be_negated),
        cmocka_unit_test(a_line_has_its_most_bytes_and_not_one_more),
    };

    return cmocka_run_group_tests(tests, make, tree_remove);
}
