#include "protocol/base/utf8.h"

#include <string.h>

#include "tests/support/cmocka.h"

static bool valid(const char *text)
{
    return utf8_valid(text, strlen(text));
}

static void well_formed_text_of_every_length_is_valid(void **state)
{
    (void)state;
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid(NULL, 0));
    assert_true(valid("plain ASCII, longer than one word of eight bytes"));
    assert_true(valid("\xC2\x80\xDF\xBF"));                     /* U+0080, U+07FF */
    assert_true(valid("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80")); /* U+0800, U+D7FF, U+E000 */
    assert_true(valid("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));     /* U+10000, U+10FFFF */
}

static void forms_that_rfc_3629_forbids_are_refused(void **state)
{
    static const char *const bad[] = {"\x80",             /* a continuation alone */
                                      "\xC0\xAF",         /* overlong '/' */
                                      "\xC1\xBF",         /* overlong */
                                      "\xE0\x9F\xBF",     /* overlong */
                                      "\xF0\x8F\xBF\xBF", /* overlong */
                                      "\xED\xA0\x80",     /* U+D800 */
                                      "\xED\xBF\xBF",     /* U+DFFF */
                                      "\xF4\x90\x80\x80", /* U+110000 */
                                      "\xF5\x80\x80\x80",
                                      "\xFE",
                                      "\xFF",
                                      "\xC2",
                                      "\xE2\x82",
                                      "\xF0\x9F\x98",
                                      "\xC2\x41",
                                      "\xE2\x41\x80",
                                      ("eight by"
                                       "tes then \xFF")};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (valid(bad[i])) {
            fail_msg("case %zu is taken for UTF-8", i);
        }
    }
}

/* Every sequence of two bytes and every lead of three, against the rule written another way. */
static void every_two_byte_sequence_is_judged_right(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char text[2] = {(char)a, (char)b};
            bool two = a >= 0xC2 && a <= 0xDF && b >= 0x80 && b <= 0xBF;
            bool ascii = a < 0x80 && b < 0x80;
            assert_int_equal(utf8_valid(text, 2), two || ascii);
        }
    }
}

/* In `n` bytes, whatever the number. */
static void encode(uint32_t c, size_t n, char ret[4])
{
    static const unsigned first[] = {0, 0x00, 0xC0, 0xE0, 0xF0};

    for (size_t i = n; i-- > 1; c >>= 6) {
        ret[i] = (char)(0x80u | (c & 0x3Fu));
    }
    ret[0] = (char)(first[n] | c);
}

/* The numbers of RFC 3629, section 3: one form each, no half of UTF-16, none over 10FFFF. */
static void each_number_has_one_form_or_none(void **state)
{
    static const uint32_t ends[] = {0, 0x80, 0x800, 0x10000, 0x200000};

    (void)state;
    for (size_t n = 1; n <= 4; n++) {
        for (uint32_t c = 0; c < ends[n]; c++) {
            const bool right = c >= ends[n - 1] && (c < 0xD800 || c > 0xDFFF) && c <= 0x10FFFF;
            char bytes[4];
            size_t len;
            encode(c, n, bytes);
            if (n == 2 && c < 0x40) {
                continue; /* C0 */
            }
            if (utf8_valid(bytes, n) != right ||
                utf8_char(bytes, n, &len) != (right ? c : 0xFFFD) || len != (right ? n : 1) ||
                utf8_prefix(bytes, n) != (right ? n : 0)) {
                fail_msg("%x in %zu bytes", (unsigned)c, n);
            }
        }
    }
}

/* Of each length, each byte behind the first as any byte, and cut anywhere. */
static void what_goes_on_with_another_byte_is_none(void **state)
{
    static const char *const whole[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        const size_t n = strlen(whole[i]);
        size_t len;
        for (size_t at = 1; at < n; at++) {
            assert_false(utf8_valid(whole[i], at));
            assert_int_equal(utf8_char(whole[i], at, &len), 0xFFFD);
            assert_int_equal(len, 1);
            for (int b = 0; b < 256; b++) {
                const int least = at == 1 && n == 4 ? 0x90 : 0x80;
                char bytes[5];
                memcpy(bytes, whole[i], n);
                bytes[at] = (char)b;
                assert_int_equal(utf8_valid(bytes, n), b >= least && b < 0xC0);
            }
        }
    }
}

static void a_cut_never_splits_a_character(void **state)
{
    const char *text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    (void)state;
    for (size_t max = 0; max < sizeof expected / sizeof expected[0]; max++) {
        assert_int_equal(utf8_cut(text, strlen(text), max), expected[max]);
    }
}

static size_t cut_words(const char *text, size_t max)
{
    return utf8_cut_words(text, strlen(text), max);
}

static void a_cut_for_people_ends_after_a_word(void **state)
{
    (void)state;
    assert_int_equal(cut_words("one two", 7), 7);
    assert_int_equal(cut_words("one two", 6), 3); /* not "one tw" */
    assert_int_equal(cut_words("one two", 4), 3); /* no blank at the end */
    assert_int_equal(cut_words("one two", 3), 3);
    assert_int_equal(cut_words("one\ntwo three", 8), 7);
    assert_int_equal(cut_words("", 5), 0);
    assert_int_equal(cut_words("   x", 2), 0);
}

static void a_word_longer_than_half_of_the_text_is_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(cut_words("abcdefghijkl", 8), 8);
    assert_int_equal(cut_words("a bcdefghijkl", 8), 8);
    assert_int_equal(cut_words("abc defghijkl", 8), 8);
    assert_int_equal(cut_words("abcd efghijkl", 8), 4);
    assert_int_equal(cut_words("\xC3\xA9\xC3\xA9\xC3\xA9", 3), 2);
}

static void characters_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        uint32_t c;
        size_t n;
    } cases[] = {{"a", 'a', 1},
                 {"\xC2\x85", 0x85, 2},
                 {"\xE2\x80\xAE", 0x202E, 3},
                 {"\xF3\xA0\x81\x81", 0xE0041, 4},
                 {"\xE2\x80", 0xFFFD, 1},
                 {"\x80", 0xFFFD, 1},
                 {"\xFF", 0xFFFD, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = 0;
        assert_int_equal(utf8_char(cases[i].text, strlen(cases[i].text), &n), cases[i].c);
        assert_int_equal(n, cases[i].n);
    }
}

/* B12 */
static void unsafe_characters_are_scrubbed(void **state)
{
    char text[] = "a\tb\n\x1b[31m\x7f\xC2\x9b\xE2\x80\xAE\xE2\x80\x8B\xE2\x80\xA8"
                  "\xF3\xA0\x81\x81"
                  "c\xE2\x80\x8D\xEF\xB8\x8F\xC3\xA4\xE2\x80";

    (void)state;
    utf8_scrub(text);
    assert_string_equal(text, "a\tb\n?[31m?"
                              "??"
                              "???"
                              "???"
                              "???"
                              "????"
                              "c\xE2\x80\x8D\xEF\xB8\x8F\xC3\xA4\xE2\x80");
    for (uint32_t c = 0; c < 0x20; c++) {
        assert_int_equal(utf8_is_unsafe(c), c != '\n' && c != '\t');
    }
    for (uint32_t c = 0x20; c < 0x7F; c++) {
        assert_false(utf8_is_unsafe(c));
    }
    assert_true(utf8_is_unsafe(0x7F) && utf8_is_unsafe(0x9F) && !utf8_is_unsafe(0xA0));
    assert_true(utf8_is_unsafe(0x200D) && utf8_is_unsafe(0xFEFF) && utf8_is_unsafe(0xE0FFF));
    assert_false(utf8_is_unsafe(0xE1000) || utf8_is_unsafe(0x200A) || utf8_is_unsafe(0x2010));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_taken_apart),
        cmocka_unit_test(unsafe_characters_are_scrubbed),
        cmocka_unit_test(well_formed_text_of_every_length_is_valid),
        cmocka_unit_test(forms_that_rfc_3629_forbids_are_refused),
        cmocka_unit_test(every_two_byte_sequence_is_judged_right),
        cmocka_unit_test(each_number_has_one_form_or_none),
        cmocka_unit_test(what_goes_on_with_another_byte_is_none),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(a_cut_for_people_ends_after_a_word),
        cmocka_unit_test(a_word_longer_than_half_of_the_text_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
