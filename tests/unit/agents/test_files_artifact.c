/* read, grep and csv into a file of the plan: whole or not at all. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/files/artifact.h"
#include "tests/unit/agents/files_world.h"

#define PLAN "00000000-0000-7000-8000-000000000000" /* of step_new_from_json */

enum { BIG = 700 * 1000, PART = 300 * 1000, RESULT = 3 * 1024 * 1024 };

static int make_files(void **state)
{
    char path[256];
    char *big = malloc(BIG);

    if (big == NULL || tree_make(state) != 0) {
        return -1;
    }
    for (size_t i = 0; i < BIG; i++) {
        big[i] = i % 10 == 9 ? '\n' : (char)('a' + i % 7);
    }
    tree_put("in/big.csv", big, BIG);
    tree_put("in/Notes.MD", big, 300);
    free(big);
    (void)snprintf(path, sizeof path, "%s/artifacts", tree);
    if (mkdir(path, 0700) != 0) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/artifacts/" PLAN, tree);
    return mkdir(path, 0700);
}

/* A step whose plan has a directory for files. */
static struct bt_step *step_of(const char *parameters)
{
    struct buf json;
    struct bt_step *step;

    buf_init(&json, LIMIT_STEP_BYTES);
    buf_printf(&json, "{\"artifactDir\":\"%s/artifacts/" PLAN "\",\"parameters\":%s}", tree,
               parameters);
    step = steps_make("x", buf_cstr(&json));
    buf_done(&json);
    return step;
}

static const char *run(bt_skill_run skill, const char *parameters)
{
    return steps_run(step_of(parameters), skill, tree_files);
}

static const char *expect_all(const char *reply, const char *const *parts)
{
    for (; *parts != NULL; parts++) {
        steps_expect(reply, *parts);
    }
    return reply;
}

static void a_file_is_copied_whole_and_named_by_its_path(void **state)
{
    const char *kept;

    (void)state;
    expect_all(run(files_read, "{\"path\":\"big.csv\",\"artifact\":true}"),
               (const char *const[]){"\"outcome\":\"completed\"", "\"name\":\"big.csv\"",
                                     "\"mediaType\":\"text/csv\"", "\"bytes\":700000",
                                     "\"size\":700000", "\"truncated\":false",
                                     "Copied 700000 bytes", NULL});
    kept = tree_get("artifacts/" PLAN "/once@1.1@big.csv");
    assert_non_null(kept);
    assert_memory_equal(kept, "abcdefgab\n", 10);
    expect_all(run(files_read, "{\"path\":\"Notes.MD\",\"artifact\":true}"),
               (const char *const[]){"\"name\":\"Notes.MD\"", "\"mediaType\":\"text/markdown\"",
                                     "\"bytes\":300", NULL});
    tree_fails(run(files_read, "{\"path\":\"big.csv\",\"artifact\":true,\"offset\":1}"),
               "VALIDATION_ERROR", "artifact: true is the whole file; leave offset and limit");
    tree_fails(run(files_read, "{\"path\":\"big.csv\",\"artifact\":true,\"limit\":1}"),
               "VALIDATION_ERROR", "artifact: true is the whole file; leave offset and limit");
}

static void what_cannot_be_written_whole_leaves_nothing(void **state)
{
    const struct rlimit small = {PART, RLIM_INFINITY}; /* within the second block */
    const int names = tree_count("artifacts/" PLAN);
    struct rlimit before;
    struct bt_step *step;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tree_fails(run(files_read, "{\"path\":\"big.csv\",\"artifact\":true}"), "failed", "");
    tree_fails(run(files_grep, "{\"path\":\"big.csv\",\"pattern\":\"a\",\"artifact\":true}"),
               "failed", "");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(tree_count("artifacts/" PLAN), names);
    step = step_of("{\"path\":\"big.csv\",\"artifact\":true}");
    atomic_store(&step->cancelled, true);
    tree_fails(steps_run(step, files_read, tree_files), "CANCELLED", "cancelled after 0 bytes");
    assert_int_equal(tree_count("artifacts/" PLAN), names);
}

static void lines_and_rows_go_into_a_file(void **state)
{
    (void)state;
    expect_all(run(files_grep, "{\"path\":\"big.csv\",\"pattern\":\"^abc\",\"artifact\":true}"),
               (const char *const[]){"\"name\":\"lines.txt\"", "\"mediaType\":\"text/plain\"",
                                     " lines", NULL});
    assert_non_null(tree_get("artifacts/" PLAN "/once@1.1@lines.txt"));
    assert_memory_equal(tree_get("artifacts/" PLAN "/once@1.1@lines.txt"), "abcdefgab\n", 10);
    tree_text("in/two.csv", "a,b\n1,x\n2,\"y,z\"\n");
    expect_all(run(files_csv, "{\"path\":\"two.csv\",\"artifact\":true}"),
               (const char *const[]){"\"name\":\"rows.csv\"", "\"mediaType\":\"text/csv\"", NULL});
    assert_string_equal(tree_get("artifacts/" PLAN "/once@1.1@rows.csv"), "a,b\n1,x\n2,\"y,z\"\n");
}

/* A line without a character would be no row. */
static void a_row_of_one_empty_value_is_a_row(void **state)
{
    (void)state;
    steps_expect(run(files_csv, "{\"text\":\"a\\n\\\"\\\"\\nx\\n\\\"\\\"\\n\","
                                "\"artifact\":true}"),
                 "\"rowCount\":3");
    assert_string_equal(tree_get("artifacts/" PLAN "/once@1.1@rows.csv"), "a\n\"\"\nx\n\"\"\n");
}

static void a_text_may_have_one_byte_or_none(void **state)
{
    (void)state;
    steps_expect(run(files_csv, "{\"text\":\"x\",\"pattern\":\"(?<a>x)\"}"), "\"rowCount\":1");
    steps_expect(run(files_csv, "{\"text\":\"\",\"pattern\":\"(?<a>x)\"}"), "\"rowCount\":0");
    steps_expect(run(files_count, "{\"text\":\"x\"}"), "\"lines\":1");
    steps_expect(run(files_count, "{\"text\":\"\"}"), "\"lines\":0");
}

static void the_ending_of_a_name_gives_the_type(void **state)
{
    static const struct {
        const char *name, *type;
    } all[] = {{"a.csv", "text/csv"},
               {"a.CSV", "text/csv"},
               {"a.json", "application/json"},
               {"a.txt", "text/plain"},
               {"a.log", "text/plain"},
               {"a.md", "text/markdown"},
               {"a.ndjson", "application/x-ndjson"},
               {"a.html", "text/html"},
               {"a.xml", "application/xml"},
               {"a.csv.gz", "application/octet-stream"},
               {"csv", "application/octet-stream"},
               {"a.", "application/octet-stream"}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_string_equal(files_media_type(all[i].name), all[i].type);
    }
}

/* The name of the file when it may stand in a path, else the word that is given. */
static void the_name_of_an_artifact_is_that_of_its_file(void **state)
{
    static const struct {
        const char *path, *name;
    } all[] = {{"rows.csv", "rows.csv"}, {"/a/b/x_1-2.txt", "x_1-2.txt"},
               {"a/", "file"},           {"", "file"},
               {"/a/.hidden", "file"},   {"/a/with space", "file"},
               {"/a/b\xC3\xBC", "file"}, {"/a/~x", "file"}};
    struct bt_step *step = step_of("{}");
    char name[102];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_string_equal(files_artifact_name(step, str_from(all[i].path), "file"), all[i].name);
    }
    memset(name, 'n', sizeof name - 1);
    name[101] = 0;
    assert_string_equal(files_artifact_name(step, str_from(name), "file"), "file");
    name[100] = 0;
    assert_string_equal(files_artifact_name(step, str_from(name), "file"), name);
    step_free(step);
}

/* A text of 3 MiB is a result, and more is none. */
static void a_text_over_a_result_fails(void **state)
{
    static const struct {
        size_t half;
        bool fits;
    } all[] = {{RESULT / 2 - 8, true}, {RESULT / 2 + 1, false}};
    char *half = malloc(RESULT);
    struct buf json;

    (void)state;
    assert_non_null(half);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        memset(half, 'x', all[i].half);
        half[all[i].half] = 0;
        buf_init(&json, LIMIT_STEP_BYTES);
        buf_printf(&json, "{\"template\":\"{{a}}{{a}}\",\"data\":{\"a\":\"%s\"}}", half);
        if (all[i].fits) {
            steps_expect(run(files_render, buf_cstr(&json)), "\"outcome\":\"completed\"");
        } else {
            tree_fails(run(files_render, buf_cstr(&json)), "", "the result (at most 3 MiB)");
        }
        buf_done(&json);
    }
    free(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_copied_whole_and_named_by_its_path),
        cmocka_unit_test(what_cannot_be_written_whole_leaves_nothing),
        cmocka_unit_test(lines_and_rows_go_into_a_file),
        cmocka_unit_test(a_row_of_one_empty_value_is_a_row),
        cmocka_unit_test(a_text_may_have_one_byte_or_none),
        cmocka_unit_test(the_ending_of_a_name_gives_the_type),
        cmocka_unit_test(the_name_of_an_artifact_is_that_of_its_file),
        cmocka_unit_test(a_text_over_a_result_fails),
    };
    return cmocka_run_group_tests(tests, make_files, tree_remove);
}
