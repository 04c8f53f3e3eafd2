/* Escapes of JSON that is shown: the whole text, or a buffer that has failed. */
#include "protocol/wire/json_tame.h"
#include "tests/support/cmocka.h"

enum { TEXT = 1000 };

static struct buf tamed(size_t max, const char *one)
{
    struct buf b;

    buf_init(&b, max);
    for (int i = 0; i < TEXT; i++) {
        buf_add_cstr(&b, one);
    }
    json_tame(&b, 0);
    return b;
}

static void escapes_that_just_fit_are_written_and_one_byte_less_fails_the_buffer(void **state)
{
    static const struct {
        const char *one, *escape;
    } rows[] = {{"\x7f", "\\u007f"},
                {"\xc2\x9b", "\\u009b"},
                {"\xe2\x80\xae", "\\u202e"},
                {"\xf3\xa0\x81\x81", "\\udb40\\udc41"},
                {"a\xc3\xa4\xe2\x80\xae", "a\xc3\xa4\\u202e"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = strlen(rows[i].escape);
        struct buf b = tamed(TEXT * n, rows[i].one);
        assert_int_equal(buf_check(&b, NULL), BT_OK);
        assert_int_equal(b.len, TEXT * n);
        for (size_t k = 0; k < TEXT; k++) {
            assert_memory_equal(b.at + k * n, rows[i].escape, n);
        }
        buf_done(&b);
        b = tamed(TEXT * n - 1, rows[i].one);
        assert_int_equal(buf_check(&b, NULL), BT_LIMIT);
        buf_done(&b);
    }
}

static void text_without_such_characters_needs_no_room(void **state)
{
    struct buf b = tamed(TEXT * 3, "\xe2\x82\xac");

    (void)state;
    assert_int_equal(buf_check(&b, NULL), BT_OK);
    assert_int_equal(b.len, TEXT * 3);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_that_just_fit_are_written_and_one_byte_less_fails_the_buffer),
        cmocka_unit_test(text_without_such_characters_needs_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
