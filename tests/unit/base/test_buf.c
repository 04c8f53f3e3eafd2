#include "protocol/base/buf.h"

#include <stdlib.h>

#include "tests/support/cmocka.h"

static void appends_stand_one_behind_the_other(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    buf_add_cstr(&b, "one");
    buf_add_byte(&b, ' ');
    buf_add_str(&b, STR_LIT("two"));
    buf_printf(&b, " %d", 3);
    buf_add(&b, NULL, 0);
    assert_int_equal(buf_check(&b, NULL), BT_OK);
    assert_string_equal(buf_cstr(&b), "one two 3");
    assert_int_equal(buf_str(&b).len, 9);
    buf_done(&b);
}

static void a_buffer_takes_exactly_its_cap(void **state)
{
    struct buf b;
    struct bt_error err;

    (void)state;
    buf_init(&b, 100);
    for (int i = 0; i < 100; i++) {
        buf_add_byte(&b, 'x');
    }
    assert_int_equal(buf_check(&b, &err), BT_OK);
    buf_add_byte(&b, 'x');
    assert_int_equal(buf_check(&b, &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "100"));
    buf_done(&b);
}

/* The memory has 64 bytes at first, one of them for the zero: texts end before, at and behind it.
 */
static void a_printed_text_is_whole_wherever_the_memory_ends(void **state)
{
    (void)state;
    for (int before = 58; before <= 66; before++) {
        struct buf b;
        buf_init(&b, 70);
        buf_printf(&b, "%*s", before, "");
        buf_printf(&b, "%s%d", "abc", 1);
        assert_int_equal(buf_check(&b, NULL), BT_OK);
        assert_int_equal(b.len, before + 4);
        assert_string_equal(buf_cstr(&b) + before, "abc1");
        buf_printf(&b, "%*s", 70 - before - 4 + 1,
                   ""); /* one more than the cap, in memory that is there */
        assert_int_equal(buf_check(&b, NULL), BT_LIMIT);
        assert_int_equal(b.len, before + 4);
        buf_done(&b);
    }
}

static void after_a_failure_nothing_is_added_until_it_is_cleared(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 4);
    buf_add_cstr(&b, "abc");
    buf_add_cstr(&b, "de");
    buf_add_cstr(&b, "f");
    assert_int_equal(b.len, 3);
    assert_string_equal(buf_cstr(&b), "");
    assert_null(buf_reserve(&b, 0));
    buf_clear(&b);
    buf_add_cstr(&b, "wxyz");
    assert_string_equal(buf_cstr(&b), "wxyz");
    buf_done(&b);
    buf_done(&b);
    buf_done(NULL);
    buf_add_byte(&b, '!'); /* usable again: the cap was kept */
    assert_string_equal(buf_cstr(&b), "!");
    buf_done(&b);
}

static void taking_the_bytes_empties_the_buffer(void **state)
{
    struct buf b;
    uint8_t *bytes;
    size_t len;

    (void)state;
    buf_init(&b, 100);
    buf_add_cstr(&b, "mine");
    bytes = buf_take(&b, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "mine", 4);
    assert_int_equal(b.len, 0);
    assert_null(b.at);
    free(bytes);
    buf_done(&b);
}

static void truncation_drops_the_end(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 100);
    buf_add_cstr(&b, "keep and drop");
    buf_truncate(&b, 4);
    assert_string_equal(buf_cstr(&b), "keep");
    buf_done(&b);
}

static void a_buffer_fails_with_the_first_code_it_is_given(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 100);
    buf_add_cstr(&b, "kept");
    buf_fail(&b, BT_OK);
    assert_int_equal(buf_check(&b, NULL), BT_OK);
    buf_fail(&b, BT_NOMEM);
    buf_fail(&b, BT_LIMIT);
    buf_fail(&b, BT_OK);
    buf_add_cstr(&b, "lost");
    assert_int_equal(buf_check(&b, NULL), BT_NOMEM);
    assert_int_equal(b.len, 4);
    buf_clear(&b);
    assert_int_equal(buf_check(&b, NULL), BT_OK);
    buf_done(&b);
}

static void text_from_outside_is_repaired_byte_by_byte(void **state)
{
    const struct {
        struct str from;
        const char *to;
        size_t replaced;
    } cases[] = {
        {STR_LIT(""), "", 0},
        {STR_LIT("gr\xC3\xBC\xC3\x9F dich"), "gr\xC3\xBC\xC3\x9F dich", 0},
        {STR_LIT("a\xFF"
                 "b\0c"),
         "a\xEF\xBF\xBD"
         "b\xEF\xBF\xBD"
         "c",
         2},
        {STR_LIT("\0\0"), "\xEF\xBF\xBD\xEF\xBF\xBD", 2},
        {STR_LIT("cut \xE2\x82"), "cut \xEF\xBF\xBD\xEF\xBF\xBD", 2},
        {STR_LIT("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 3},
    };
    struct buf b;

    (void)state;
    buf_init(&b, 100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&b);
        assert_int_equal(buf_add_repaired(&b, cases[i].from), cases[i].replaced);
        assert_string_equal(buf_cstr(&b), cases[i].to);
    }
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_stand_one_behind_the_other),
        cmocka_unit_test(a_buffer_takes_exactly_its_cap),
        cmocka_unit_test(a_printed_text_is_whole_wherever_the_memory_ends),
        cmocka_unit_test(after_a_failure_nothing_is_added_until_it_is_cleared),
        cmocka_unit_test(taking_the_bytes_empties_the_buffer),
        cmocka_unit_test(truncation_drops_the_end),
        cmocka_unit_test(a_buffer_fails_with_the_first_code_it_is_given),
        cmocka_unit_test(text_from_outside_is_repaired_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
