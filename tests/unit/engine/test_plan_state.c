#include "supervisor/engine/plan_state.h"

#include "tests/support/cmocka.h"

static void doc_of(const char *json, struct buf *b)
{
    buf_init(b, 65536);
    assert_int_equal(json_to_doc(str_from(json), NULL, b, NULL), BT_OK);
}

static void merges(const char *state, const char *patch, const char *expected)
{
    struct buf old;
    struct buf by;
    struct buf made;
    struct buf json;

    doc_of(state, &old);
    doc_of(patch, &by);
    buf_init(&made, 65536);
    buf_init(&json, 65536);
    assert_int_equal(plan_state_merge(doc_from_buf(&old), doc_from_buf(&by), &made, NULL), BT_OK);
    assert_int_equal(doc_to_json(doc_from_buf(&made), false, &json, NULL), BT_OK);
    assert_string_equal(buf_cstr(&json), expected);
    buf_done(&old);
    buf_done(&by);
    buf_done(&made);
    buf_done(&json);
}

/* Of RFC 7396, appendix A: those where both sides are objects. */
static void patches_are_merged_as_the_rfc_says(void **state)
{
    (void)state;
    merges("{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}");
    merges("{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}");
    merges("{\"a\":\"b\"}", "{\"a\":null}", "{}");
    merges("{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}");
    merges("{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}");
    merges("{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}");
    merges("{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}");
    merges("{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}");
    merges("{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}");
    merges("{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}");
    merges("{}", "{}", "{}");
    merges("{\"a\":1}", "{}", "{\"a\":1}");
}

static void without_a_state_a_patch_begins_one(void **state)
{
    struct buf by;
    struct buf made;

    (void)state;
    doc_of("{\"a\":1,\"b\":null}", &by);
    buf_init(&made, 65536);
    assert_int_equal(plan_state_merge((struct doc){NULL, 0}, doc_from_buf(&by), &made, NULL),
                     BT_OK);
    assert_int_equal(doc_head(doc_from_buf(&made)).n, 1);
    assert_int_equal(doc_head(doc_get(doc_from_buf(&made), STR_LIT("a"))).u, 1);
    buf_done(&by);
    buf_done(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_are_merged_as_the_rfc_says),
        cmocka_unit_test(without_a_state_a_patch_begins_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
