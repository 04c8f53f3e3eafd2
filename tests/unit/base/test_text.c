/* Borrowed strings, globs, and how members share room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "protocol/base/glob.h"
#include "protocol/base/share.h"
#include "protocol/base/str.h"

static void white_space_at_both_ends_is_trimmed_and_nothing_else(void **state)
{
    (void)state;
    assert_true(str_is(str_trimmed(STR_LIT(" \t\r\n a b \n")), "a b"));
    assert_true(str_is(str_trimmed(STR_LIT("\va\f")), "\va\f"));
    assert_int_equal(str_trimmed(STR_LIT(" \n\t ")).len, 0);
    assert_int_equal(str_trimmed((struct str){NULL, 0}).len, 0);
}

static void short_members_stay_whole_and_long_ones_get_the_rest(void **state)
{
    const size_t lens[] = {3, 100, 7, 100};

    (void)state;
    assert_int_equal(share_fair(lens, 4, 210), 210);
    assert_int_equal(share_fair(lens, 4, 209), 99);
    assert_int_equal(share_fair(lens, 4, 30), 10);
    assert_int_equal(share_fair(lens, 4, 4), 1);
    assert_int_equal(share_fair(lens, 4, 3), 0);
    assert_int_equal(share_fair(lens, 0, 5), 5);
}

static void a_glob_fits_the_whole_text_or_not(void **state)
{
    (void)state;
    assert_true(glob_fits(STR_LIT("*"), STR_LIT("")));
    assert_true(glob_fits(STR_LIT("a*b*c"), STR_LIT("abbbcbc")));
    assert_true(glob_fits(STR_LIT("a?c**"), STR_LIT("abc")));
    assert_false(glob_fits(STR_LIT("a*b"), STR_LIT("abc")));
    assert_false(glob_fits(STR_LIT("?"), STR_LIT("")));
    assert_false(glob_fits(STR_LIT(""), STR_LIT("a")));
    assert_true(glob_fits(STR_LIT(""), STR_LIT("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_at_both_ends_is_trimmed_and_nothing_else),
        cmocka_unit_test(a_glob_fits_the_whole_text_or_not),
        cmocka_unit_test(short_members_stay_whole_and_long_ones_get_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
