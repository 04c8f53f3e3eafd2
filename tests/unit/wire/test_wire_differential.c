/* Our decoder against msgpack-c's, an independent implementation. */
#include <msgpack.h>

#include "protocol/wire/mp_validate.h"
#include "tests/support/cmocka.h"
#include "tests/unit/wire/generate.h"

static void assert_same(const msgpack_object *theirs, struct doc ours);

static struct str key_of(const msgpack_object *key)
{
    assert_int_equal(key->type, MSGPACK_OBJECT_STR);
    return (struct str){key->via.str.ptr, key->via.str.size};
}

static void assert_same_members(const msgpack_object *theirs, struct doc ours)
{
    if (theirs->type == MSGPACK_OBJECT_ARRAY) {
        assert_int_equal(doc_head(ours).n, theirs->via.array.size);
        for (uint32_t i = 0; i < theirs->via.array.size; i++) {
            assert_same(&theirs->via.array.ptr[i], doc_at(ours, i));
        }
        return;
    }
    assert_int_equal(doc_head(ours).n, theirs->via.map.size);
    for (uint32_t i = 0; i < theirs->via.map.size; i++) {
        const msgpack_object_kv *kv = &theirs->via.map.ptr[i];
        assert_same(&kv->val, doc_get(ours, key_of(&kv->key)));
    }
}

static void assert_same(const msgpack_object *theirs, struct doc ours)
{
    struct doc_head h = doc_head(ours);

    assert_non_null(ours.ptr);
    switch (theirs->type) {
    case MSGPACK_OBJECT_NIL:
        assert_int_equal(h.kind, DOC_NIL);
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        assert_int_equal(h.kind, DOC_BOOL);
        assert_int_equal(h.b, theirs->via.boolean);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        assert_int_equal(h.kind, DOC_UINT);
        assert_true(h.u == theirs->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        assert_int_equal(h.kind, DOC_INT);
        assert_true(h.i == theirs->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        assert_int_equal(h.kind, DOC_FLOAT);
        assert_memory_equal(&h.f, &theirs->via.f64, sizeof h.f);
        break;
    case MSGPACK_OBJECT_STR:
        assert_int_equal(h.kind, DOC_STR);
        assert_true(str_eq(h.str, (struct str){theirs->via.str.ptr, theirs->via.str.size}));
        break;
    case MSGPACK_OBJECT_BIN:
        assert_int_equal(h.kind, DOC_BIN);
        assert_true(str_eq(h.str, (struct str){theirs->via.bin.ptr, theirs->via.bin.size}));
        break;
    case MSGPACK_OBJECT_ARRAY:
    case MSGPACK_OBJECT_MAP:
        assert_same_members(theirs, ours);
        break;
    case MSGPACK_OBJECT_EXT:
    default:
        fail_msg("a type that the guard must not let pass");
    }
}

static void assert_agree(const uint8_t *bytes, size_t len)
{
    msgpack_unpacked theirs;
    size_t at = 0;

    msgpack_unpacked_init(&theirs);
    assert_int_equal(msgpack_unpack_next(&theirs, (const char *)bytes, len, &at),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(at, len);
    assert_same(&theirs.data, (struct doc){bytes, len});
    msgpack_unpacked_destroy(&theirs);
}

static void random_documents_mean_the_same_to_both(void **state)
{
    struct rng rng = rng_seeded("differential");
    struct buf doc;

    (void)state;
    buf_init(&doc, 1 << 20);
    for (int round = 0; round < 3000; round++) {
        buf_clear(&doc);
        generate_doc(&rng, (struct generate_options){6, true, false}, &doc);
        assert_int_equal(mp_validate(doc.at, doc.len, NULL, NULL), BT_OK);
        assert_agree(doc.at, doc.len);
    }
    buf_done(&doc);
}

static void what_the_guard_lets_pass_of_damaged_bytes_means_the_same_to_both(void **state)
{
    struct rng rng = rng_seeded("differential damage");
    struct buf doc;
    uint32_t passed = 0;

    (void)state;
    buf_init(&doc, 1 << 20);
    for (int round = 0; round < 30000; round++) {
        buf_clear(&doc);
        generate_doc(&rng, (struct generate_options){4, true, false}, &doc);
        for (uint32_t hits = 1 + rng_below(&rng, 3); hits > 0; hits--) {
            doc.at[rng_below(&rng, (uint32_t)doc.len)] = (uint8_t)rng_next(&rng);
        }
        if (mp_validate(doc.at, doc.len, NULL, NULL) == BT_OK) {
            assert_agree(doc.at, doc.len);
            passed++;
        }
    }
    print_message("%u of 30000 damaged documents passed\n", (unsigned)passed);
    assert_true(passed > 1000);
    buf_done(&doc);
}

/* We write what msgpack-c would write: the shortest form. */
static void messages_are_written_in_the_shortest_form(void **state)
{
    struct rng rng = rng_seeded("differential messages");
    union {
        struct msg_agent_view widest;
        uint8_t bytes[2048];
    } body;

    (void)state;
    for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
        struct msg_part part = {(enum msg_type)type, &body};
        struct arena arena = {0};
        msgpack_unpacked theirs;
        msgpack_sbuffer repacked;
        msgpack_packer packer;
        struct buf out;
        size_t at = 0;

        buf_init(&out, 1 << 20);
        generate_msg(&rng, &arena, (enum msg_type)type, FIELDS_ALL, &body);
        assert_int_equal(msg_write(&out, WIRE_MSGPACK, &part, 1, NULL), BT_OK);
        msgpack_unpacked_init(&theirs);
        assert_int_equal(msgpack_unpack_next(&theirs, (const char *)out.at, out.len, &at),
                         MSGPACK_UNPACK_SUCCESS);
        msgpack_sbuffer_init(&repacked);
        msgpack_packer_init(&packer, &repacked, msgpack_sbuffer_write);
        assert_int_equal(msgpack_pack_object(&packer, theirs.data), 0);
        assert_int_equal(repacked.size, out.len);
        assert_memory_equal(repacked.data, out.at, out.len);
        msgpack_sbuffer_destroy(&repacked);
        msgpack_unpacked_destroy(&theirs);
        arena_done(&arena);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_documents_mean_the_same_to_both),
        cmocka_unit_test(what_the_guard_lets_pass_of_damaged_bytes_means_the_same_to_both),
        cmocka_unit_test(messages_are_written_in_the_shortest_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
