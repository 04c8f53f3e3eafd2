#include "supervisor/dispatch/frame.h"

#include <string.h>

#include "tests/support/cmocka.h"

static void framed(const char *text, const char *expected, const char *on_one_line)
{
    struct buf out;

    buf_init(&out, 65536);
    frame_add(&out, str_from(text));
    assert_string_equal(buf_cstr(&out), expected);
    buf_clear(&out);
    frame_add_line(&out, str_from(text));
    assert_string_equal(buf_cstr(&out), on_one_line);
    buf_done(&out);
}

static void every_kind_of_line_break_is_indented(void **state)
{
    (void)state;
    framed("", "", "");
    framed("one line", "one line", "one line");
    framed("a\nb", "a\n  b", "a b");
    framed("a\r\nb\rc", "a\r\n  b\r  c", "a b c");
    framed("a\vb\fc", "a\v  b\f  c", "a b c");
    framed("a\xC2\x85"
           "b\xE2\x80\xA8"
           "c\xE2\x80\xA9"
           "d",
           "a\xC2\x85  b\xE2\x80\xA8  c\xE2\x80\xA9  d", "a b c d");
    framed("\n\nCurrent task: x", "\n  \n  Current task: x", "  Current task: x");
    framed("\xE2\x80", "\xE2\x80", "\xE2\x80");
}

/* What stands behind the text in memory is none of it. */
static void a_part_of_a_line_break_at_the_end_is_none(void **state)
{
    static const char *const breaks[] = {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};
    struct buf out;

    (void)state;
    buf_init(&out, 65536);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        const size_t whole = strlen(breaks[i]);
        for (size_t n = 1; n <= whole; n++) {
            buf_clear(&out);
            frame_add(&out, (struct str){breaks[i], n});
            assert_int_equal(out.len, n == whole ? whole + 2 : n);
        }
    }
    /* of the two bytes of CR LF the second one counts only when it is of the text */
    buf_clear(&out);
    frame_add(&out, (struct str){"a\r\n", 2});
    assert_string_equal(buf_cstr(&out), "a\r  ");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_line_break_is_indented),
                                       cmocka_unit_test(a_part_of_a_line_break_at_the_end_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
