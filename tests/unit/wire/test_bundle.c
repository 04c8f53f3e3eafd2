/* Bundles: what goes in comes out, caps at N and N + 1, and frames that are none. */
#include "protocol/wire/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/random.h"

static struct str text(const char *s)
{
    return str_from(s);
}

static void bodies_come_out_as_they_went_in(void **state)
{
    struct bundle_reader r;
    struct bt_error err;
    struct str body;
    struct buf b;
    uint64_t tag;

    (void)state;
    buf_init(&b, BUNDLE_BYTES_MAX);
    bundle_begin(&b);
    assert_int_equal(bundle_open(&r, buf_str(&b), &err), BT_OK);
    assert_false(bundle_next(&r, &tag, &body));
    assert_true(bundle_add(&b, 8, 0xFEDCBA9876543210u, text("one")));
    assert_true(bundle_add(&b, 8, 0, text("")));
    assert_true(bundle_is(buf_str(&b)));
    assert_int_equal(bundle_open(&r, buf_str(&b), &err), BT_OK);
    assert_true(bundle_next(&r, &tag, &body));
    assert_true(tag == 0xFEDCBA9876543210u && str_is(body, "one"));
    assert_true(bundle_next(&r, &tag, &body));
    assert_true(tag == 0 && body.len == 0);
    assert_false(bundle_next(&r, &tag, &body));
    buf_done(&b);
}

static void the_bytes_are_those_of_the_page(void **state)
{
    static const uint8_t page[] = {0xC1, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 2, 3, '{', '}'};
    struct buf b;

    (void)state;
    buf_init(&b, BUNDLE_BYTES_MAX);
    bundle_begin(&b);
    assert_true(bundle_add(&b, 1, 1ull << 32 | 0x203, text("{}")));
    assert_int_equal(b.len, sizeof page);
    assert_memory_equal(b.at, page, sizeof page);
    buf_done(&b);
}

static void a_bundle_has_at_most_so_many_bodies(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, BUNDLE_BYTES_MAX);
    bundle_begin(&b);
    for (uint64_t i = 0; i < BUNDLE_ITEMS_MAX; i++) {
        assert_true(bundle_add(&b, 1000, i, text("x")));
    }
    assert_false(bundle_add(&b, 1000, 0, text("x")));
    bundle_begin(&b);
    assert_true(bundle_add(&b, 2, 0, text("x")) && bundle_add(&b, 2, 1, text("x")));
    assert_false(bundle_add(&b, 2, 2, text("x")));
    buf_done(&b);
}

static void a_full_bundle_takes_no_more_and_a_large_body_goes_alone(void **state)
{
    const size_t room = BUNDLE_FULL_BYTES - BUNDLE_HEAD_BYTES - 2 * BUNDLE_ITEM_BYTES - 1;
    char *large = calloc(1, LIMIT_STEP_BYTES);
    struct bundle_reader r;
    struct bt_error err;
    struct buf b;

    (void)state;
    assert_non_null(large);
    buf_init(&b, BUNDLE_BYTES_MAX);
    bundle_begin(&b);
    assert_true(bundle_add(&b, 8, 0, text("x")));
    assert_false(bundle_add(&b, 8, 1, (struct str){large, room + 1}));
    assert_int_equal(b.len, BUNDLE_HEAD_BYTES + BUNDLE_ITEM_BYTES + 1);
    assert_true(bundle_add(&b, 8, 1, (struct str){large, room}));
    assert_int_equal(b.len, BUNDLE_FULL_BYTES);
    assert_false(bundle_add(&b, 8, 2, text("")));
    bundle_begin(&b);
    assert_true(bundle_add(&b, 8, 0, (struct str){large, LIMIT_STEP_BYTES}));
    assert_int_equal(b.len, BUNDLE_BYTES_MAX);
    assert_false(bundle_add(&b, 8, 1, text("")));
    assert_int_equal(bundle_open(&r, buf_str(&b), &err), BT_OK);
    buf_done(&b);
    free(large);
}

static void a_row_is_taken_in_order_and_its_rest_stays(void **state)
{
    struct bundle_reader r;
    struct bt_error err;
    struct buf row;
    struct buf out;
    struct str body;
    uint64_t tag;
    size_t taken;

    (void)state;
    buf_init(&row, BUNDLE_BYTES_MAX);
    buf_init(&out, BUNDLE_BYTES_MAX);
    bundle_put(&row, 1, text("a"));
    bundle_put(&row, 2, text("bb"));
    bundle_put(&row, 3, text("ccc"));
    taken = bundle_take(&out, 2, buf_str(&row));
    assert_int_equal(taken, 2 * BUNDLE_ITEM_BYTES + 3);
    bundle_drop(&row, taken);
    assert_int_equal(bundle_open(&r, buf_str(&out), &err), BT_OK);
    assert_true(bundle_next(&r, &tag, &body) && tag == 1 && str_is(body, "a"));
    assert_true(bundle_next(&r, &tag, &body) && tag == 2 && str_is(body, "bb"));
    taken = bundle_take(&out, 2, buf_str(&row));
    assert_int_equal(bundle_open(&r, buf_str(&out), &err), BT_OK);
    assert_true(bundle_next(&r, &tag, &body) && tag == 3 && str_is(body, "ccc"));
    bundle_drop(&row, taken);
    assert_int_equal(row.len, 0);
    assert_int_equal(bundle_take(&out, 2, buf_str(&row)), 0);
    assert_int_equal(out.len, BUNDLE_HEAD_BYTES);
    buf_done(&row);
    buf_done(&out);
}

static void refused(const void *bytes, size_t len, const char *words)
{
    uint8_t *exact = malloc(len + 1); /* its end is where the sanitizer looks */
    struct bundle_reader r;
    struct bt_error err = {.code = BT_OK};

    assert_non_null(exact);
    exact = realloc(exact, len > 0 ? len : 1);
    memcpy(exact, bytes, len);
    assert_int_equal(bundle_open(&r, (struct str){(const char *)exact, len}, &err), BT_PROTOCOL);
    if (strstr(err.msg, words) == NULL) {
        fail_msg("expected \"%s\" in: %s", words, err.msg);
    }
    free(exact);
}

static void what_is_no_bundle_is_refused_with_its_place(void **state)
{
    (void)state;
    refused("", 0, "expected 0xC1");
    refused("{}", 2, "expected 0xC1");
    refused("\xC1\x01\x00", 3, "head of 4 bytes");
    refused("\xC1\x02\x00\x00", 4, "version 2");
    refused("\xC1\x01\x01\x01", 4, "257 bodies; at most 256");
    refused("\xC1\x01\x00\x00x", 5, "1 bytes after its 0 bodies");
    refused("\xC1\x01\x00\x01", 4, "cut in body 1 of 1");
    refused("\xC1\x01\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00x", 17,
            "cut in body 1 of 1");
    refused("\xC1\x01\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00x\xFF", 18,
            "cut in body 2 of 2");
    refused("\xC1\x01\x00\x01\xFF\xFF\xFF\xFF\x00\x00\x00\x00\x00\x00\x00\x00x", 17,
            "cut in body 1 of 1");
}

static void random_frames_are_read_within_their_bounds(void **state)
{
    struct rng rng = rng_seeded(__func__);

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint8_t *frame;
        const size_t len = rng_below(&rng, 64);
        struct bundle_reader r;
        struct bt_error err;
        struct str body;
        uint64_t tag;
        size_t sum = BUNDLE_HEAD_BYTES;

        frame = malloc(len > 0 ? len : 1);
        assert_non_null(frame);
        for (size_t k = 0; k < len; k++) {
            frame[k] = (uint8_t)(rng_below(&rng, 3) == 0 ? rng_below(&rng, 256) : 0);
        }
        if (len >= 2) {
            frame[0] = BUNDLE_MARK;
            frame[1] = 1;
        }
        if (bundle_open(&r, (struct str){(const char *)frame, len}, &err) == BT_OK) {
            while (bundle_next(&r, &tag, &body)) {
                sum += BUNDLE_ITEM_BYTES + body.len;
            }
            assert_int_equal(sum, len);
        }
        free(frame);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_come_out_as_they_went_in),
        cmocka_unit_test(the_bytes_are_those_of_the_page),
        cmocka_unit_test(a_bundle_has_at_most_so_many_bodies),
        cmocka_unit_test(a_full_bundle_takes_no_more_and_a_large_body_goes_alone),
        cmocka_unit_test(a_row_is_taken_in_order_and_its_rest_stays),
        cmocka_unit_test(what_is_no_bundle_is_refused_with_its_place),
        cmocka_unit_test(random_frames_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
