#include "protocol/wire/doc.h"

#include <stdio.h>

#include "protocol/wire/mp_validate.h"
#include "tests/support/cmocka.h"

/* {"a":{"b":[10,{"c":"deep"}]},"":7,"0":true} */
static struct doc sample(struct buf *b)
{
    buf_init(b, 1000);
    assert_int_equal(json_to_doc(STR_LIT("{\"a\":{\"b\":[10,{\"c\":\"deep\"}]},\"\":7,\"0\":true}"),
                                 NULL, b, NULL),
                     BT_OK);
    return doc_from_buf(b);
}

static void paths_lead_through_maps_and_arrays(void **state)
{
    struct buf b;
    struct doc d = sample(&b);

    (void)state;
    assert_true(str_is(doc_string(doc_path(d, STR_LIT("a.b.1.c"))), "deep"));
    assert_int_equal(doc_head(doc_path(d, STR_LIT("a.b.0"))).u, 10);
    assert_true(doc_head(doc_path(d, STR_LIT("0"))).b); /* a digit is a key in a map */
    assert_ptr_equal(doc_path(d, STR_LIT("")).ptr, d.ptr);
    assert_int_equal(doc_path(d, STR_LIT("a")).len, doc_get(d, STR_LIT("a")).len);
    buf_done(&b);
}

static void paths_that_lead_nowhere_are_absent(void **state)
{
    static const char *const nowhere[] = {
        "x",         "a.x",    "a.b.2",           "a.b.-1", "a.b.01x",
        "a.b.1.c.d", "a.b.x",  "a.b.99999999999", "a..b",   "a.b.4294967297",
        "a.b./;",    "a.b./:", "a.b.0:"};
    struct buf b;
    struct doc d = sample(&b);

    (void)state;
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        assert_null(doc_path(d, str_from(nowhere[i])).ptr);
    }
    assert_null(doc_get((struct doc){NULL, 0}, STR_LIT("a")).ptr);
    assert_null(doc_at(d, 0).ptr);
    assert_null(doc_string(d).ptr);
    assert_int_equal(doc_head((struct doc){NULL, 0}).kind, DOC_NIL);
    assert_int_equal(doc_head(doc_get(d, STR_LIT(""))).u, 7);
    buf_done(&b);
}

static void a_copy_is_independent_and_absent_stays_absent(void **state)
{
    struct arena a = {0};
    struct buf b;
    struct doc d = sample(&b);
    struct doc copy = doc_copy(&a, d);

    (void)state;
    buf_done(&b);
    assert_int_equal(mp_validate(copy.ptr, copy.len, NULL, NULL), BT_OK);
    assert_null(doc_copy(&a, (struct doc){NULL, 0}).ptr);
    arena_done(&a);
    a.max = 1;
    assert_null(doc_copy(&a, (struct doc){(const uint8_t *)"\x93\1\2\3", 4}).ptr);
    arena_done(&a);
}

/* The numbers at every border of msgpack's widths come back as they went in. */
static void numbers_keep_their_value_at_every_width(void **state)
{
    struct buf b;
    struct doc_head h;

    (void)state;
    buf_init(&b, 100);
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int off = -1; off <= 1; off++) {
            uint64_t u = ((uint64_t)1 << bit) + (uint64_t)off;
            int64_t i = -(int64_t)(u >> 1) - 1;
            buf_clear(&b);
            doc_put_u64(&b, u);
            h = doc_head(doc_from_buf(&b));
            assert_int_equal(h.kind, DOC_UINT);
            assert_true(h.u == u);
            buf_clear(&b);
            doc_put_i64(&b, i);
            h = doc_head(doc_from_buf(&b));
            assert_int_equal(h.kind, DOC_INT);
            assert_true(h.i == i);
        }
    }
    buf_done(&b);
}

/* events.read: an array written by hand around bytes that are not read again. */
static void raw_documents_go_into_an_array_byte_for_byte(void **state)
{
    static const struct doc events[] = {
        {(const uint8_t *)"\xDF\0\0\0\x01\xA3seq\xCF\0\0\0\0\0\0\0\x07", 18}, /* not the shortest */
        {(const uint8_t *)"\x81\xA3seq\x08", 6},
    };
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    doc_put_array(&b, 3);
    doc_put_doc(&b, events[0]);
    doc_put_doc(&b, events[1]);
    doc_put_doc(&b, (struct doc){NULL, 0});
    assert_int_equal(mp_validate(b.at, b.len, NULL, NULL), BT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct doc d = doc_at(doc_from_buf(&b), i);
        assert_int_equal(d.len, events[i].len);
        assert_memory_equal(d.ptr, events[i].ptr, d.len);
        assert_int_equal(doc_head(doc_get(d, STR_LIT("seq"))).u, 7 + i);
    }
    assert_int_equal(doc_at(doc_from_buf(&b), 2).len, 1);
    buf_done(&b);
}

static bool same(const char *a, const char *b)
{
    struct buf one;
    struct buf other;
    buf_init(&one, 100000);
    buf_init(&other, 100000);
    assert_int_equal(json_to_doc(str_from(a), NULL, &one, NULL), BT_OK);
    assert_int_equal(json_to_doc(str_from(b), NULL, &other, NULL), BT_OK);
    const bool equal = doc_eq(doc_from_buf(&one), doc_from_buf(&other));
    assert_int_equal(doc_eq(doc_from_buf(&other), doc_from_buf(&one)), equal);
    assert_true(doc_eq(doc_from_buf(&one), doc_from_buf(&one)));
    buf_done(&one);
    buf_done(&other);
    return equal;
}

static void equal_documents_have_the_same_values_in_any_order_of_keys(void **state)
{
    static const char *const equal[][2] = {
        {"{\"a\":1,\"b\":[true,null,\"x\"]}", "{\"b\":[true,null,\"x\"],\"a\":1}"},
        {"1", "1.0"},
        {"-3", "-3.0"},
        {"{}", "{}"},
        {"[]", "[]"},
        {"{\"a\":{\"b\":{\"c\":[{}]}}}", "{\"a\":{\"b\":{\"c\":[{}]}}}"}};
    static const char *const different[][2] = {{"{\"a\":1}", "{\"a\":2}"},
                                               {"{\"a\":1}", "{\"b\":1}"},
                                               {"{\"a\":1}", "{\"a\":1,\"b\":1}"},
                                               {"[1,2]", "[2,1]"},
                                               {"[]", "{}"},
                                               {"\"1\"", "1"},
                                               {"0", "false"},
                                               {"null", "false"},
                                               {"1", "-1"},
                                               {"9007199254740993", "9007199254740992"},
                                               {"{\"a\":null}", "{\"b\":null}"},
                                               {"\"a\"", "\"b\""}};

    (void)state;
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) {
        assert_true(same(equal[i][0], equal[i][1]));
    }
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
        assert_false(same(different[i][0], different[i][1]));
    }
    assert_true(doc_eq((struct doc){NULL, 0}, (struct doc){NULL, 0}));
}

static void maps_over_the_cap_are_equal_only_in_the_same_order(void **state)
{
    struct buf a;
    struct buf b;
    (void)state;
    for (uint32_t n = 256; n <= 257; n++) {
        buf_init(&a, 100000);
        buf_init(&b, 100000);
        doc_put_map(&a, n);
        doc_put_map(&b, n);
        for (uint32_t i = 0; i < n; i++) {
            char key[16];
            (void)snprintf(key, sizeof key, "%u", i);
            doc_put_cstr(&a, key);
            doc_put_u64(&a, i);
            (void)snprintf(key, sizeof key, "%u", n - 1 - i);
            doc_put_cstr(&b, key);
            doc_put_u64(&b, n - 1 - i);
        }
        assert_true(doc_eq(doc_from_buf(&a), doc_from_buf(&a)));
        assert_int_equal(doc_eq(doc_from_buf(&a), doc_from_buf(&b)), n == 256);
        buf_done(&a);
        buf_done(&b);
    }
}

/* Of a row: the ids of blobs that it has, and nothing else that looks like one. */
static void refs_are_the_numbers_over_0_whose_names_end_so(void **state)
{
    uint64_t refs[4] = {0};
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    assert_int_equal(
        json_to_doc(STR_LIT("{\"resultRef\":7,\"Ref\":1,\"aRef\":2,\"xref\":3,\"zeroRef\":0,"
                            "\"textRef\":\"4\",\"lessRef\":-5,\"mapRef\":{\"inRef\":6},"
                            "\"nullRef\":null,\"Refs\":8,\"taskRef\":4294967296}"),
                    NULL, &b, NULL),
        BT_OK);
    assert_int_equal(doc_refs(b.at, b.len, refs, 4), 3);
    assert_true(refs[0] == 7 && refs[1] == 2 && refs[2] == 4294967296 && refs[3] == 0);
    refs[2] = 0;
    assert_int_equal(doc_refs(b.at, b.len, refs, 2), 2); /* as many as there is room for */
    assert_true(refs[2] == 0);
    assert_int_equal(doc_refs("\x91\x01", 2, refs, 4), 0);
    assert_int_equal(doc_refs("", 0, refs, 4), 0);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_through_maps_and_arrays),
        cmocka_unit_test(paths_that_lead_nowhere_are_absent),
        cmocka_unit_test(equal_documents_have_the_same_values_in_any_order_of_keys),
        cmocka_unit_test(maps_over_the_cap_are_equal_only_in_the_same_order),
        cmocka_unit_test(a_copy_is_independent_and_absent_stays_absent),
        cmocka_unit_test(numbers_keep_their_value_at_every_width),
        cmocka_unit_test(raw_documents_go_into_an_array_byte_for_byte),
        cmocka_unit_test(refs_are_the_numbers_over_0_whose_names_end_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
