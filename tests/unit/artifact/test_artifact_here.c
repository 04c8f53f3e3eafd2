/* Files of results that came from another state directory. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/artifact/here.h"
#include "protocol/limits.h"

#define PLAN "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"
#define SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
#define OLD "file:///old%20one/artifacts/" PLAN "/"

static char root[128];

static int make_root(void **state)
{
    char top[] = "/tmp/baton-files-XXXXXX";
    char path[256];

    (void)state;
    if (mkdtemp(top) == NULL) {
        return -1;
    }
    (void)snprintf(root, sizeof root, "%s/artifacts", top);
    (void)mkdir(root, 0700);
    (void)snprintf(path, sizeof path, "%s/" PLAN, root);
    return mkdir(path, 0700);
}

static void path_of(const char *file, char ret[400])
{
    (void)snprintf(ret, 400, "%s/" PLAN "/%s", root, file);
}

static void put_file(const char *file, const char *text)
{
    char path[400];
    FILE *f;

    path_of(file, path);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void drop_file(const char *file)
{
    char path[400];

    path_of(file, path);
    assert_int_equal(unlink(path), 0);
}

static int drop_root(void **state)
{
    char path[256];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/" PLAN, root);
    (void)rmdir(path);
    (void)rmdir(root);
    *strrchr(root, '/') = 0;
    return rmdir(root);
}

/* The result as a reader gets it, as JSON; NULL: as it is stored. Valid until the next call. */
static const char *here(const char *json, bool *ret_absent)
{
    static char text[2000];
    struct bt_error err;
    struct buf doc;
    struct buf out;
    struct buf said;
    bool changed;

    buf_init(&doc, LIMIT_STEP_BYTES);
    buf_init(&out, LIMIT_STEP_BYTES);
    buf_init(&said, sizeof text);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, &err), BT_OK);
    assert_int_equal(artifact_here(root, doc_from_buf(&doc), &out, ret_absent, &err), BT_OK);
    changed = out.len > 0;
    if (changed) {
        assert_int_equal(doc_to_json(doc_from_buf(&out), false, &said, &err), BT_OK);
        (void)snprintf(text, sizeof text, "%s", buf_cstr(&said));
    }
    buf_done(&said);
    buf_done(&out);
    buf_done(&doc);
    return changed ? text : NULL;
}

static void a_file_that_is_here_gets_its_path_here(void **state)
{
    char expected[1000];
    bool absent;

    (void)state;
    put_file("a@1.1@x.csv", "hello");
    (void)snprintf(expected, sizeof expected,
                   "{\"text\":\"t\",\"artifacts\":[{\"name\":\"x.csv\",\"uri\":\"file://%s/" PLAN
                   "/a@1.1@x.csv\",\"bytes\":5,\"sha256\":\"" SUM "\"}]}",
                   root);
    assert_string_equal(here("{\"text\":\"t\",\"artifacts\":[{\"name\":\"x.csv\",\"uri\":\"" OLD
                             "a@1.1@x.csv\",\"bytes\":5,\"sha256\":\"" SUM "\"}]}",
                             &absent),
                        expected);
    assert_false(absent);
    drop_file("a@1.1@x.csv");
}

static void a_file_of_an_item_is_found_wherever_the_result_has_it(void **state)
{
    char expected[1000];
    bool absent;

    (void)state;
    put_file("each[0]@1.1@x", "hello");
    (void)snprintf(expected, sizeof expected,
                   "{\"data\":[{\"artifacts\":[{\"uri\":\"file://%s/" PLAN
                   "/each%%5B0%%5D@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}]},7]}",
                   root);
    assert_string_equal(here("{\"data\":[{\"artifacts\":[{\"uri\":\"" OLD
                             "each%5B0%5D@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}]},7]}",
                             &absent),
                        expected);
    assert_false(absent);
    drop_file("each[0]@1.1@x");
}

static void what_is_no_such_file_stays_as_it_is(void **state)
{
    static const char *const stay[] = {
        "{\"text\":\"see file:///x/artifacts/y\"}",
        "{\"a\":{\"uri\":\"" OLD "a@1.1@x\",\"sha256\":\"" SUM "\"}}",
        "{\"a\":{\"uri\":\"" OLD "a@1.1@x\",\"bytes\":5}}",
        "{\"a\":{\"uri\":\"" OLD "a@1.1@x\",\"bytes\":-5,\"sha256\":\"" SUM "\"}}",
        "{\"a\":{\"uri\":\"" OLD "a@1.1@x\",\"bytes\":5,\"sha256\":\"2cf2\"}}",
        "{\"a\":{\"uri\":\"" OLD "sub/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}",
        "{\"a\":{\"uri\":\"" OLD ".a\",\"bytes\":5,\"sha256\":\"" SUM "\"}}",
        "{\"a\":{\"uri\":\"file:///o/artifacts/x/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}",
        "{\"a\":{\"uri\":\"file:///o/files/" PLAN "/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}",
        "{\"a\":{\"uri\":\"http://h/artifacts/" PLAN "/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM
        "\"}}",
    };
    char own[600];
    bool absent;

    (void)state;
    put_file("a@1.1@x", "hello");
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++) {
        assert_null(here(stay[i], &absent));
        assert_false(absent);
    }
    (void)snprintf(own, sizeof own,
                   "{\"a\":{\"uri\":\"file://%s/" PLAN "/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM
                   "\"}}",
                   root);
    assert_null(here(own, &absent)); /* written here */
    assert_false(absent);
    drop_file("a@1.1@x");
}

static void a_file_that_is_not_here_or_another_one_is_said_to_be_absent(void **state)
{
    static const char one[] =
        "{\"a\":{\"uri\":\"" OLD "a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}";
    bool absent;

    (void)state;
    assert_null(here(one, &absent));
    assert_true(absent);
    put_file("a@1.1@x", "hell");
    assert_null(here(one, &absent));
    assert_true(absent);
    put_file("a@1.1@x", "hello");
    assert_non_null(here(one, &absent));
    assert_false(absent);
    drop_file("a@1.1@x");
}

/* The old state directory was below this one's path: as on a disk that is mounted elsewhere. */
static void a_path_that_ends_as_the_one_here_is_another(void **state)
{
    char json[1000];
    char expected[1000];
    bool absent;

    (void)state;
    put_file("a@1.1@x", "hello");
    (void)snprintf(json, sizeof json,
                   "{\"a\":{\"uri\":\"file:///mnt%s/" PLAN
                   "/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}",
                   root);
    (void)snprintf(expected, sizeof expected,
                   "{\"a\":{\"uri\":\"file://%s/" PLAN "/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM
                   "\"}}",
                   root);
    assert_string_equal(here(json, &absent), expected);
    assert_false(absent);
    drop_file("a@1.1@x");
}

/* The uri's map among n lists in each other: what is too deep for a result is left as it is. */
static bool is_moved_in(uint32_t n)
{
    struct buf doc;
    struct buf out;
    struct bt_error err;
    bool absent;
    bool moved;

    buf_init(&doc, LIMIT_STEP_BYTES);
    buf_init(&out, LIMIT_STEP_BYTES);
    for (uint32_t i = 0; i < n; i++) {
        doc_put_array(&doc, 1);
    }
    assert_int_equal(
        json_to_doc(STR_LIT("{\"uri\":\"" OLD "a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}"),
                    NULL, &doc, &err),
        BT_OK);
    assert_int_equal(artifact_here(root, doc_from_buf(&doc), &out, &absent, &err), BT_OK);
    moved = out.len > 0;
    assert_false(absent);
    buf_done(&out);
    buf_done(&doc);
    return moved;
}

static void a_file_is_found_as_deep_as_a_result_may_be(void **state)
{
    (void)state;
    put_file("a@1.1@x", "hello");
    assert_true(is_moved_in(0));
    assert_true(is_moved_in(LIMIT_DEPTH));
    assert_false(is_moved_in(LIMIT_DEPTH + 1));
    drop_file("a@1.1@x");
}

static void each_file_of_a_result_is_looked_for(void **state)
{
    char expected[2000];
    char own[600];
    char json[2000];
    bool absent;

    (void)state;
    put_file("a@1.1@x", "hello");
    put_file("b@1.1@x", "hello");
    (void)snprintf(own, sizeof own, "file://%s/" PLAN "/", root);
    (void)snprintf(json, sizeof json,
                   "{\"own\":{\"uri\":\"%sa@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"},"
                   "\"gone\":{\"uri\":\"file:///old/artifacts/" PLAN
                   "/c@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"},"
                   "\"list\":[{\"sha256\":\"" SUM
                   "\",\"bytes\":5,\"uri\":\"file:///old/artifacts/" PLAN
                   "/b@1.1@x\",\"more\":{\"uri\":\"file:///old/artifacts/" PLAN
                   "/a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}],\"n\":null}",
                   own);
    (void)snprintf(expected, sizeof expected,
                   "{\"own\":{\"uri\":\"%sa@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"},"
                   "\"gone\":{\"uri\":\"file:///old/artifacts/" PLAN
                   "/c@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"},"
                   "\"list\":[{\"sha256\":\"" SUM
                   "\",\"bytes\":5,\"uri\":\"%sb@1.1@x\",\"more\":{\"uri\":\"%sa@1.1@x\","
                   "\"bytes\":5,\"sha256\":\"" SUM "\"}}],\"n\":null}",
                   own, own, own);
    assert_string_equal(here(json, &absent), expected);
    assert_true(absent);
    drop_file("a@1.1@x");
    drop_file("b@1.1@x");
}

static void a_result_is_left_as_it_is_without_a_directory_or_a_result(void **state)
{
    static const char json[] =
        "{\"a\":{\"uri\":\"" OLD "a@1.1@x\",\"bytes\":5,\"sha256\":\"" SUM "\"}}";
    struct bt_error err;
    struct buf doc;
    struct buf out;
    bool absent = true;

    (void)state;
    put_file("a@1.1@x", "hello");
    buf_init(&doc, LIMIT_STEP_BYTES);
    buf_init(&out, LIMIT_STEP_BYTES);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, &err), BT_OK);
    assert_int_equal(artifact_here(NULL, doc_from_buf(&doc), &out, &absent, &err), BT_OK);
    assert_true(out.len == 0 && !absent);
    absent = true;
    assert_int_equal(artifact_here(root, (struct doc){NULL, 0}, &out, &absent, &err), BT_OK);
    assert_true(out.len == 0 && !absent);
    buf_done(&out);
    buf_init(&out, 100); /* what is said does not fit */
    assert_int_equal(artifact_here(root, doc_from_buf(&doc), &out, &absent, &err), BT_LIMIT);
    buf_done(&out);
    buf_done(&doc);
    drop_file("a@1.1@x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_here_gets_its_path_here),
        cmocka_unit_test(a_file_of_an_item_is_found_wherever_the_result_has_it),
        cmocka_unit_test(what_is_no_such_file_stays_as_it_is),
        cmocka_unit_test(a_file_that_is_not_here_or_another_one_is_said_to_be_absent),
        cmocka_unit_test(a_path_that_ends_as_the_one_here_is_another),
        cmocka_unit_test(a_file_is_found_as_deep_as_a_result_may_be),
        cmocka_unit_test(each_file_of_a_result_is_looked_for),
        cmocka_unit_test(a_result_is_left_as_it_is_without_a_directory_or_a_result),
    };
    return cmocka_run_group_tests(tests, make_root, drop_root);
}
