#include "supervisor/dispatch/frame.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_line_break_is_indented)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
