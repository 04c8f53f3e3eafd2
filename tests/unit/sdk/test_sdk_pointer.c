/* JSON pointers over documents (RFC 6901). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/documents/pointer.h"
#include "tests/support/cmocka.h"

static struct buf bytes;

static int set_up(void **state)
{
    static const char json[] =
        "{\"a\":{\"b\":[10,11,{\"c\":12}]},\"\":13,\"x/y\":14,\"m~n\":15,\"~1\":16,"
        "\"0\":17,\"list\":[[18]],\"t\":\"text\"}";
    struct bt_error err;

    (void)state;
    buf_init(&bytes, 65536);
    return json_to_doc(str_from(json), NULL, &bytes, &err) == BT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    buf_done(&bytes);
    return 0;
}

static void a_pointer_leads_to_its_value(void **state)
{
    static const struct {
        const char *pointer;
        uint64_t value;
    } rows[] = {{"/a/b/0", 10}, {"/a/b/1", 11}, {"/a/b/2/c", 12}, {"/", 13},        {"/x~1y", 14},
                {"/m~0n", 15},  {"/~01", 16},   {"/0", 17},       {"/list/0/0", 18}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct doc d = pointer_get(doc_from_buf(&bytes), rows[i].pointer);
        if (d.ptr == NULL || doc_head(d).u != rows[i].value) {
            fail_msg("%s", rows[i].pointer);
        }
    }
    assert_int_equal(doc_head(pointer_get(doc_from_buf(&bytes), "")).kind, DOC_MAP);
    assert_int_equal(doc_head(pointer_get(doc_from_buf(&bytes), "/a/b")).n, 3);
}

static void a_pointer_to_nothing_leads_nowhere(void **state)
{
    static const char *const rows[] = {"/b",
                                       "/a/c",
                                       "/a/b/3",
                                       "/a/b/-",
                                       "/a/b/01",
                                       "/a/b/00",
                                       "/a/b/+1",
                                       "/a/b/1x",
                                       "/a/b/",
                                       "/a/b/4294967295",
                                       "/a/b/4294967296",
                                       "/a/b/18446744073709551616",
                                       "/a/b/0/0",
                                       "/t/0",
                                       "/x/y",
                                       "/a/b/:",
                                       "/a/b//"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (pointer_get(doc_from_buf(&bytes), rows[i]).ptr != NULL) {
            fail_msg("%s", rows[i]);
        }
    }
}

static void a_pointer_is_empty_or_begins_with_a_slash(void **state)
{
    static const char *const good[] = {"", "/", "/a", "//", "/~0", "/~1", "/a~0~1b"};
    static const char *const bad[] = {"a", "a/b", " /a", "/~", "/~2", "/a~", "~0", "/~~"};
    static char longest[POINTER_MAX + 2];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(pointer_check(good[i], &err), BT_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(pointer_check(bad[i], &err), BT_INVALID);
        assert_non_null(strstr(err.msg, "expected a JSON pointer, as /items or /data/0/id"));
    }
    memset(longest, 'x', POINTER_MAX);
    longest[0] = '/';
    assert_int_equal(pointer_check(longest, &err), BT_INVALID);
    longest[POINTER_MAX - 1] = 0;
    assert_int_equal(pointer_check(longest, &err), BT_OK);
    assert_null(pointer_get(doc_from_buf(&bytes), longest).ptr);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_pointer_leads_to_its_value),
        TEST(a_pointer_to_nothing_leads_nowhere),
        TEST(a_pointer_is_empty_or_begins_with_a_slash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
