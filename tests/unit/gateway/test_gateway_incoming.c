/* JSON pointers of incoming hooks. */
#include "protocol/base/buf.h"
#include "supervisor/gateway/incoming/incoming.h"
#include "tests/support/cmocka.h"

static const char document[] = "{\"a\":[10,{\"b/c\":\"x\",\"d~e\":\"y\",\"\":\"z\"}],\"0\":\"k\"}";

static void expect(const char *pointer, const char *json)
{
    struct buf doc;
    struct buf out;
    struct doc found;

    buf_init(&doc, 4096);
    buf_init(&out, 4096);
    assert_int_equal(json_to_doc(STR_LIT(document), NULL, &doc, NULL), BT_OK);
    found = pointer_find(doc_from_buf(&doc), str_from(pointer));
    assert_int_equal(found.ptr == NULL, json == NULL);
    if (json != NULL) {
        assert_int_equal(doc_to_json(found, false, &out, NULL), BT_OK);
        assert_string_equal(buf_cstr(&out), json);
    }
    buf_done(&out);
    buf_done(&doc);
}

static void a_pointer_names_one_value_or_none(void **unused)
{
    (void)unused;
    expect("", document);
    expect("/a/0", "10");
    expect("/a/1/b~1c", "\"x\"");
    expect("/a/1/d~0e", "\"y\"");
    expect("/a/1/", "\"z\"");
    expect("/0", "\"k\"");
    expect("/a/2", NULL);
    expect("/a/01", NULL);
    expect("/a/-", NULL);
    expect("/a/4294967296", NULL);
    expect("/a/0/x", NULL);
    expect("/b", NULL);
    expect("/", NULL);
}

static void a_text_that_is_no_pointer_finds_nothing(void **unused)
{
    char long_[600];

    (void)unused;
    assert_false(pointer_ok(STR_LIT("a")));
    assert_false(pointer_ok(STR_LIT("/~")));
    assert_false(pointer_ok(STR_LIT("/~2")));
    assert_true(pointer_ok(STR_LIT("/~0~1")));
    expect("a", NULL);
    expect("/a/1/d~", NULL);
    memset(long_, 'x', sizeof long_ - 1);
    long_[0] = '/';
    long_[sizeof long_ - 1] = 0;
    expect(long_, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pointer_names_one_value_or_none),
        cmocka_unit_test(a_text_that_is_no_pointer_finds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
