/* Base64 as JSON carries bytes: each digit, each place, and what is none. */
#include "protocol/wire/base64.h"

#include "tests/support/cmocka.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The number of bytes, or -1: not base64. */
static int read_text(const char *text, size_t len, uint8_t ret[16])
{
    struct buf out;
    struct bt_error err = {.msg = ""};
    int n = -1;

    buf_init(&out, 16);
    if (json_read_base64((struct str){text, len}, &out, &err) == BT_OK) {
        n = (int)out.len;
        memcpy(ret, out.len > 0 ? out.at : (const void *)"", out.len);
    } else {
        assert_int_equal(err.code, BT_INVALID);
        assert_string_equal(err.msg, "not base64");
        assert_int_equal(out.bad, BT_OK);
    }
    buf_done(&out);
    return n;
}

/* All bytes at each of four places, in the first and in the last four. */
static void each_byte_is_the_digit_that_it_is_or_none(void **state)
{
    (void)state;
    for (size_t at = 0; at < 8; at++) {
        for (int c = 0; c < 256; c++) {
            const char *digit = c != 0 ? strchr(digits, c) : NULL;
            uint8_t bytes[16] = {0};
            char text[] = "AAAAAAAA";
            uint64_t v = 0;
            text[at] = (char)c;
            const int n = read_text(text, 8, bytes);
            if (digit == NULL) {
                assert_int_equal(n, c == '=' && at == 7 ? 5 : -1);
                continue;
            }
            assert_int_equal(n, 6);
            for (size_t i = 0; i < 6; i++) {
                v = v << 8 | bytes[i];
            }
            assert_true(v == (uint64_t)(digit - digits) << (42 - 6 * at));
        }
    }
}

static void the_text_has_whole_fours_with_two_pads_at_most(void **state)
{
    static const struct {
        const char *text;
        int n;
    } cases[] = {{"", 0},          {"A", -1},     {"AA", -1},       {"AAA", -1},  {"AAAA", 3},
                 {"AAA=", 2},      {"AA==", 1},   {"A===", -1},     {"====", -1}, {"AA=A", -1},
                 {"AA==AAAA", -1}, {"AAAAA", -1}, {"AAAA====", -1}, {"=", -1},    {"==", -1},
                 {"AAAAAA==", 4},  {"AAA\n", -1}, {"-_AA", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[16];
        const int n = read_text(cases[i].text, strlen(cases[i].text), bytes);
        if (n != cases[i].n) {
            fail_msg("%s: %d", cases[i].text, n);
        }
    }
}

static void what_does_not_fit_is_no_part_of_it(void **state)
{
    struct buf out;
    struct bt_error err;

    (void)state;
    buf_init(&out, 2);
    assert_int_equal(json_read_base64(STR_LIT("AAA="), &out, &err), BT_OK);
    assert_int_equal(json_read_base64(STR_LIT("AA=="), &out, &err), BT_LIMIT);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_is_the_digit_that_it_is_or_none),
        cmocka_unit_test(the_text_has_whole_fours_with_two_pads_at_most),
        cmocka_unit_test(what_does_not_fit_is_no_part_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
