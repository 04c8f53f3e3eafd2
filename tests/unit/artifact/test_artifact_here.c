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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_here_gets_its_path_here),
        cmocka_unit_test(a_file_of_an_item_is_found_wherever_the_result_has_it),
        cmocka_unit_test(what_is_no_such_file_stays_as_it_is),
        cmocka_unit_test(a_file_that_is_not_here_or_another_one_is_said_to_be_absent),
    };
    return cmocka_run_group_tests(tests, make_root, drop_root);
}
