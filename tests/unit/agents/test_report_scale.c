/* Axes and the parts of a picture, by themselves. */
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agents/report/scale.h"
#include "agents/report/svg.h"

static void a_number_has_at_most_the_digits_that_matter(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {{0, "0"},          {-0.0, "0"},          {1, "1"},
                {999, "999"},      {999.5, "999.5"},     {1000, "1,000"},
                {-1000, "-1,000"}, {1000.5, "1000.5"},   {999999, "999,999"},
                {12005, "12,005"}, {1e6, "1M"},          {-2.5e6, "-2.5M"},
                {1e9, "1G"},       {999999999, "1000M"}, {1e12, "1T"},
                {9.5e14, "950T"},  {1e15, "1e+15"},      {1e-4, "0.0001"},
                {9e-5, "9e-05"},   {-9e-5, "-9e-05"},    {0.1234567, "0.123457"}};
    char text[SCALE_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scale_number_text(rows[i].v, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void a_step_of_numbers_is_one_two_or_five(void **state)
{
    static const double steps[] = {1, 2, 5, 10, 20, 50, 100, 0.5};
    struct scale s;

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        scale_numbers(0, steps[i] * 6, 6, &s);
        assert_int_equal(s.n, 7);
        assert_true(fabs(s.at[1] - s.at[0] - steps[i]) < steps[i] * 1e-9);
        assert_true(fabs(s.max - steps[i] * 6) < steps[i] * 1e-9);
        scale_numbers(0, steps[i] * 6.01, 6, &s); /* a little more needs a longer step */
        assert_true(s.at[1] - s.at[0] > steps[i] * 1.9);
        scale_numbers_within(steps[i] * 0.5, steps[i] * 6.5, 6, &s);
        assert_int_equal(s.n, 6); /* the ends stay */
        assert_true(s.min == steps[i] * 0.5 && s.max == steps[i] * 6.5);
        assert_true(fabs(s.at[0] - steps[i]) < steps[i] * 1e-9);
    }
    scale_numbers(0, 1, 400, &s);
    assert_int_equal(s.n, SCALE_TICKS_MAX);
    assert_true(scale_place(&s, 0.25, 100, 300) == 150);
}

static void one_value_is_widened_around_it(void **state)
{
    struct scale s;

    (void)state;
    scale_numbers_within(0, 0, 6, &s);
    assert_true(s.min == -1 && s.max == 1);
    scale_numbers_within(50, 50, 6, &s);
    assert_true(s.min == 45 && s.max == 55);
    scale_numbers_within(-50, -50, 6, &s);
    assert_true(s.min == -55 && s.max == -45);
    scale_numbers_within(-INFINITY, INFINITY, 6, &s);
    assert_true(s.min == -1e300 && s.max == 1e300);
}

/* The calendar has its own round steps. */
static void a_step_of_time_is_one_that_people_know(void **state)
{
    static const double seconds[] = {1,     2,     5,     10,    15,     30,     60,
                                     120,   300,   600,   900,   1800,   3600,   7200,
                                     10800, 21600, 43200, 86400, 172800, 345600, 604800};
    struct scale s;

    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        scale_times(0, seconds[i] * 6, 6, &s);
        assert_true(s.time);
        assert_true(s.n == 6 || s.n == 7); /* of weeks: Mondays */
        assert_true(s.at[1] - s.at[0] == seconds[i]);
        scale_times(0, seconds[i] * 6 + 1, 6, &s);
        assert_true(s.at[1] - s.at[0] > seconds[i]);
    }
    scale_times(0, 604800.0 * 6, 6, &s);
    assert_string_equal(s.text[0], "1970-01-05"); /* a Monday */
    scale_times(86400 * 5 + 1, 604800.0 * 6, 6, &s);
    assert_string_equal(s.text[0], "1970-01-12");
}

static void a_step_of_months_begins_with_the_first_of_one(void **state)
{
    static const struct {
        int months;
        const char *second;
    } rows[] = {{1, "1970-02"}, {2, "1970-03"}, {3, "1970-04"}, {6, "1970-07"}, {12, "1971"},
                {24, "1972"},   {60, "1975"},   {120, "1980"},  {240, "1980"},  {600, "2000"},
                {1200, "2000"}, {6000, "2000"}, {12000, "2000"}};
    struct scale s;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool found = false;
        scale_times(0, rows[i].months * 30.4 * 86400 * 6, 6, &s);
        for (int t = 0; t < s.n && !found; t++) {
            found = strcmp(s.text[t], rows[i].second) == 0 && t <= 1;
        }
        if (!found) {
            fail_msg("%d months: %s, %s", rows[i].months, s.text[0], s.text[1]);
        }
        if (s.n > 2) { /* whole months apart, as long as they are */
            const double apart = (s.at[2] - s.at[1]) / 86400;
            assert_true(fabs(apart - rows[i].months * 30.44) < 3 + rows[i].months * 0.01);
        }
    }
    scale_times(0, 30.4 * 86400 * 7 * 6, 6, &s); /* seven months: the next is a year */
    assert_string_equal(s.text[1], "1971");
    scale_times(86400 * 31, 86400.0 * 31 + 30.4 * 86400 * 6, 6, &s);
    assert_string_equal(s.text[0], "1970-02"); /* the first of February is in it */
    scale_times(86400 * 31 + 1, 86400.0 * 31 + 30.4 * 86400 * 6, 6, &s);
    assert_string_equal(s.text[0], "1970-03");
    scale_times(-62135596800.0, 253402300799.0, 6, &s); /* years 1 to 9999 */
    assert_true(s.n >= 5 && s.n <= SCALE_TICKS_MAX);
    scale_times(-62135596800.0, 253402300799.0, 1000, &s);
    assert_int_equal(s.n, SCALE_TICKS_MAX);
}

static void the_day_stands_where_it_changes(void **state)
{
    struct scale s;
    char text[SCALE_TEXT];

    (void)state;
    scale_times(86400 - 7200, 86400 + 7200, 4, &s);
    assert_int_equal(s.n, 5);
    assert_string_equal(s.text[0], "1970-01-01 22:00");
    assert_string_equal(s.text[1], "23:00");
    assert_string_equal(s.text[2], "1970-01-02");
    assert_string_equal(s.text[3], "01:00");
    scale_times(3, 3, 4, &s); /* a moment: a day on each side */
    assert_true(s.min == 3 - 86400 && s.max == 3 + 86400);
    scale_time_text(86399.9, text);
    assert_string_equal(text, "1970-01-01 23:59:59");
    scale_time_text(86400, text);
    assert_string_equal(text, "1970-01-02");
    scale_time_text(86460, text);
    assert_string_equal(text, "1970-01-02 00:01");
    scale_time_text(-1, text);
    assert_string_equal(text, "1969-12-31 23:59:59");
}

/* ---- svg ---- */

static void a_character_has_the_width_of_its_kind(void **state)
{
    static const struct {
        const char *edge; /* two in it, two outside: before, first, last, after */
        double width;
    } ranges[] = {{"\xcb\xbf\xcc\x80\xcd\xaf\xcd\xb0", 0.0},
                  {"\xd6\xaf\xd6\xb0\xd7\x87\xd7\x88", 0.0},
                  {"\xd9\x8a\xd9\x8b\xd9\x9f\xd9\xa0", 0.0},
                  {"\xe2\x80\x8a\xe2\x80\x8b\xe2\x80\x8f\xe2\x80\x90", 0.0},
                  {"\xef\xb7\xbf\xef\xb8\x80\xef\xb8\x8f\xef\xb8\x90", 0.0},
                  {"\xe1\x83\xbf\xe1\x84\x80\xe1\x85\x9f\xe1\x85\xa0", 1.0},
                  {"\xe2\xb9\xbf\xe2\xba\x80\xea\x93\x8f\xea\x93\x90", 1.0},
                  {"\xea\xaf\xbf\xea\xb0\x80\xed\x9e\xa3\xed\x9e\xa4", 1.0},
                  {"\xef\xa3\xbf\xef\xa4\x80\xef\xab\xbf\xef\xac\x80", 1.0},
                  {"\xef\xbb\xbf\xef\xbc\x80\xef\xbd\xa0\xef\xbd\xa1", 1.0}};
    static const char narrow[] = "iIl.,:;|'!jtf ";

    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        char one[5];
        const char *at = ranges[i].edge;
        for (int k = 0; k < 4; k++) {
            const size_t n = (unsigned char)*at < 0xe0 ? 2 : 3;
            (void)snprintf(one, sizeof one, "%.*s", (int)n, at);
            const double want = k == 0 || k == 3 ? 0.6 : ranges[i].width;
            if (fabs(svg_text_width(one) - want * SVG_FONT) > 1e-9) {
                fail_msg("range %zu, %d: %g", i, k, svg_text_width(one));
            }
            at += n;
        }
    }
    for (const char *p = narrow; *p != 0; p++) {
        assert_true(fabs(svg_text_width((char[]){*p, 0}) - 0.34 * SVG_FONT) < 1e-9);
    }
    assert_true(fabs(svg_text_width("AZ") - 2 * 0.72 * SVG_FONT) < 1e-9);
    assert_true(fabs(svg_text_width("@[a") - 3 * 0.6 * SVG_FONT) < 1e-9);
    assert_true(fabs(svg_text_width("\xf0\x9f\x80\x80") - SVG_FONT) < 1e-9);
    assert_true(fabs(svg_text_width("\xc2\x80") - 0.6 * SVG_FONT) < 1e-9);
    assert_true(svg_text_width("") == 0.0);
}

static void a_text_of_its_room_is_whole(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 1024);
    svg_text(&out, 1, 2, SVG_START, svg_text_width("abc"), false, "abc");
    assert_non_null(strstr(buf_cstr(&out), ">abc</text>"));
    buf_clear(&out);
    svg_text(&out, 1, 2, SVG_START, svg_text_width("abc") - 0.01, false, "abc");
    assert_non_null(strstr(buf_cstr(&out), "<title>abc</title>a\xe2\x80\xa6</text>"));
    buf_done(&out);
}

static void a_coordinate_has_two_digits_and_no_more_than_it_needs(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {{0, "0"},     {-0.004, "0"},  {0.005, "0.01"}, {-0.006, "-0.01"}, {1.5, "1.5"},
                {100, "100"}, {1.25, "1.25"}, {10.999, "11"},  {-20, "-20"}};
    struct buf out;

    (void)state;
    buf_init(&out, 64);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        buf_clear(&out);
        svg_put_number(&out, rows[i].v);
        assert_string_equal(buf_cstr(&out), rows[i].text);
    }
    buf_done(&out);
}

static void colours_repeat_and_sizes_are_not_negative(void **state)
{
    struct buf out;

    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_ptr_equal(svg_colour(i), svg_colour(i + 8));
        assert_string_not_equal(svg_colour(i), svg_colour(i + 1));
    }
    buf_init(&out, 1024);
    svg_rect(&out, 1, 2, -3, -4, "red", NULL);
    assert_string_equal(buf_cstr(&out),
                        "<rect x=\"1\" y=\"2\" width=\"0\" height=\"0\" fill=\"red\"/>\n");
    buf_clear(&out);
    svg_put_escaped(&out, STR_LIT("a\nb\tc\rd\xef\xbf\xbe\xef\xbf\xbf\x01"));
    assert_string_equal(buf_cstr(&out), "a b c d\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_at_most_the_digits_that_matter),
        cmocka_unit_test(a_step_of_numbers_is_one_two_or_five),
        cmocka_unit_test(one_value_is_widened_around_it),
        cmocka_unit_test(a_step_of_time_is_one_that_people_know),
        cmocka_unit_test(a_step_of_months_begins_with_the_first_of_one),
        cmocka_unit_test(the_day_stands_where_it_changes),
        cmocka_unit_test(a_character_has_the_width_of_its_kind),
        cmocka_unit_test(a_text_of_its_room_is_whole),
        cmocka_unit_test(a_coordinate_has_two_digits_and_no_more_than_it_needs),
        cmocka_unit_test(colours_repeat_and_sizes_are_not_negative),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
