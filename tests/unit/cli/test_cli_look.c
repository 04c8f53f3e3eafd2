/* Texts of pictures: what is left out, replaced and cut, how wide characters are, and how a command
 * line's numbers, times and names are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/picture/look.h"
#include "supervisor/cli/picture/svg_internal.h"
#include "tests/support/cmocka.h"

enum { TEXT_BYTES = 4096 };

/* The bytes of a character in UTF-8. */
static const char *utf8(uint32_t c)
{
    static char to[5];
    size_t n = 0;

    if (c < 0x80) {
        to[n++] = (char)c;
    } else if (c < 0x800) {
        to[n++] = (char)(0xC0 | c >> 6);
        to[n++] = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        to[n++] = (char)(0xE0 | c >> 12);
        to[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        to[n++] = (char)(0x80 | (c & 0x3F));
    } else {
        to[n++] = (char)(0xF0 | c >> 18);
        to[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        to[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        to[n++] = (char)(0x80 | (c & 0x3F));
    }
    to[n] = 0;
    return to;
}

static const char *clean(const char *text, bool ascii)
{
    static char kept[TEXT_BYTES];
    struct buf out;

    buf_init(&out, TEXT_BYTES);
    look_clean(text, ascii, &out);
    (void)snprintf(kept, sizeof kept, "%s", buf_cstr(&out));
    buf_done(&out);
    return kept;
}

/* ---- look ---- */

static void characters_of_no_certain_width_are_left_out(void **state)
{
    static const uint32_t out[] = {0xAD,   0x200B, 0x200D,  0x2060,  0x2064,  0xFE00,
                                   0xFE0F, 0xFEFF, 0x1F3FB, 0x1F3FF, 0xE0000, 0xE0FFF};

    (void)state;
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++) {
        assert_string_equal(clean(utf8(out[i]), false), "");
        assert_string_equal(clean(utf8(out[i]), true), "");
    }
}

static void what_changes_a_line_or_its_direction_is_a_question_mark(void **state)
{
    static const uint32_t marks[] = {0x01,  0x1F,   0x7F,   0x9F,   0x200E, 0x200F,
                                     0x61C, 0x2028, 0x202E, 0x2066, 0x2069, 0xFFFD};
    static const uint32_t kept[] = {0x20, 0x7E, 0xA1, 0xE9, 0x2027, 0x2030, 0x4E2D, 0x1F600};

    (void)state;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        assert_string_equal(clean(utf8(marks[i]), false), "?");
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        assert_string_equal(clean(utf8(kept[i]), false), utf8(kept[i]));
        assert_string_equal(clean(utf8(kept[i]), true), kept[i] < 0x7F ? utf8(kept[i]) : "?");
    }
    assert_string_equal(clean("a\nb\tc", false), "a b c");
}

static void bytes_that_are_no_character_are_a_question_mark_each(void **state)
{
    static const struct {
        const char *text, *shown;
    } all[] = {{"a\x80z", "a?z"},
               {"\xC3", "?"},
               {"\xC3z", "?z"},
               {"\xC0\xAF", "??"}, /* too long for what it is */
               {"\xE0\x80\xAF", "???"},
               {"\xED\xA0\x80", "???"},      /* half of a pair */
               {"\xF4\x90\x80\x80", "????"}, /* over the last one */
               {"\xF8\x88\x80\x80\x80", "?????"},
               {"\xE2\x82", "??"},
               {"\xC2\xA1", "\xC2\xA1"}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_string_equal(clean(all[i].text, false), all[i].shown);
    }
}

static void columns_are_those_of_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(look_columns(""), 0);
    assert_int_equal(look_columns("abc"), 3);
    assert_int_equal(look_columns("é"), 1);
    assert_int_equal(look_columns("中文"), 4);
    assert_int_equal(look_columns("e\xCC\x81"), 1); /* an accent of its own */
    assert_int_equal(look_columns("\x01"), 0);
}

static void expect_fit(const char *text, int columns, bool ascii, bool pad, const char *expected)
{
    struct buf out;

    buf_init(&out, TEXT_BYTES);
    look_fit(text, columns, ascii, pad, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void a_text_fits_its_columns_or_is_cut_with_a_mark(void **state)
{
    (void)state;
    expect_fit("abc", 3, false, false, "abc");
    expect_fit("abcd", 3, false, false, "ab…");
    expect_fit("abcd", 3, true, false, "ab~");
    expect_fit("ab", 4, false, true, "ab  ");
    expect_fit("ab", 4, false, false, "ab");
    expect_fit("中文字", 6, false, false, "中文字");
    expect_fit("中文字", 5, false, true, "中文…");
    expect_fit("中文字", 4, false, true, "中… ");
    expect_fit("", 2, false, true, "  ");
}

static void a_state_has_a_mark_a_colour_and_a_box(void **state)
{
    static const struct {
        const char *status, *mark, *ascii, *color, *fill, *stroke;
    } all[] = {{"completed", "✓", "+", "\033[32m", "#dcf5e1", "#2c8a46"},
               {"failed", "✗", "x", "\033[31m", "#fde0de", "#c0392b"},
               {"in_progress", "▸", ">", "\033[36m", "#d8f1f7", "#1d7f96"},
               {"running", "▸", ">", "\033[36m", "#d8f1f7", "#1d7f96"},
               {"waiting", "?", "?", "\033[35m", "#f3e1f7", "#8e44ad"},
               {"skipped", "-", "-", "\033[33m", "#fdf3d0", "#a07a10"},
               {"cancelled", "-", "-", "\033[33m", "#fdf3d0", "#a07a10"},
               {"pending", "·", ".", "", "#f4f4f4", "#777777"},
               {"", " ", " ", "", "#f4f4f4", "#555555"},
               {"unheard", " ", " ", "", "#f4f4f4", "#555555"}};
    const struct look plain = {.color = false};
    const struct look colored = {.color = true};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_string_equal(look_mark(all[i].status, false), all[i].mark);
        assert_string_equal(look_mark(all[i].status, true), all[i].ascii);
        assert_string_equal(look_color(&colored, all[i].status), all[i].color);
        assert_string_equal(look_color(&plain, all[i].status), "");
        assert_string_equal(look_fill(all[i].status), all[i].fill);
        assert_string_equal(look_stroke(all[i].status), all[i].stroke);
    }
    assert_string_equal(look_color_off(&colored), "\033[0m");
    assert_string_equal(look_color_off(&plain), "");
}

static void xml_escapes_what_it_reserves_and_lines_end_without_blanks(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, TEXT_BYTES);
    look_xml("a&b<c>\"d'", &out);
    assert_string_equal(buf_cstr(&out), "a&amp;b&lt;c&gt;&quot;d'");
    buf_clear(&out);
    look_end_line(&out);
    buf_add_cstr(&out, "x");
    look_blanks(&out, 2);
    look_blanks(&out, -1);
    look_end_line(&out);
    assert_string_equal(buf_cstr(&out), "\nx\n");
    buf_done(&out);
}

/* ---- words of the command line ---- */

static FILE *before;
static char *printed;
static size_t printed_n;

/* What is said on stderr until said() is kept. */
static void listen(void)
{
    before = stderr;
    stderr = open_memstream(&printed, &printed_n);
    assert_non_null(stderr);
}

static void said(const char *part)
{
    (void)fclose(stderr);
    stderr = before;
    if (part == NULL ? printed_n > 0 : strstr(printed, part) == NULL) {
        fail_msg("%s is not in %s", part != NULL ? part : "nothing", printed);
    }
    free(printed);
}

static void a_duration_has_a_unit_or_is_in_seconds(void **state)
{
    static const struct {
        const char *text;
        uint32_t ms;
    } right[] = {{"90", 90000},  {"90s", 90000},  {"250ms", 250},
                 {"5m", 300000}, {"2h", 7200000}, {"1d", 86400000},
                 {"1.5s", 1500}, {"1ms", 1},      {"4000000s", 4000000000u}};
    static const char *const wrong[] = {"",    "x", "-1s", "0",        "0ms", "5 s",
                                        "5ss", "s", "+5s", "4000001s", "1e3x"};

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        uint32_t ms = 0;
        listen();
        assert_true(cli_duration(right[i].text, "--x", &ms));
        said(NULL);
        assert_int_equal(ms, right[i].ms);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint32_t ms;
        listen();
        assert_false(cli_duration(wrong[i], "--x", &ms));
        said("--x: expected a time such as 500ms");
    }
}

static void an_age_may_be_a_hundred_years_of_days(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } right[] = {{"30d", UINT64_C(2592000000)},
                 {"36500d", UINT64_C(3153600000000)},
                 {"12h", 43200000},
                 {"0d", 0}};
    static const char *const wrong[] = {"36501d", "-1d", "d", "x"};

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        uint64_t ms = 7;
        assert_true(cli_age(right[i].text, "--age", &ms));
        assert_true(ms == right[i].ms);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t ms;
        listen();
        assert_false(cli_age(wrong[i], "--age", &ms));
        said("--age: expected a time");
    }
    {
        uint64_t ms;
        listen();
        assert_false(cli_age("30", "--age", &ms)); /* of what? */
        said("--age: expected an age with a unit such as 30d");
    }
}

static void a_moment_is_an_age_or_a_time(void **state)
{
    const msec now = UINT64_C(1769862600000); /* 2026-01-31T12:30:00Z */
    static const struct {
        const char *text;
        uint64_t s;
    } right[] = {{"5m", 1769862300},
                 {"2026-01-31T10:20:30Z", 1769854830},
                 {"2026-01-31T10:20Z", 1769854800},
                 {"2026-01-31 10:20:30", 1769854830},
                 {"2026-01-31 10:20", 1769854800},
                 {"2026-01-31T10:20:30.123Z", 1769854830},
                 {"2026-01-31", 1769817600},
                 {"10:20:30", 1769854830},
                 {"10:20", 1769854800},
                 {"999999d", 0}};
    static const char *const wrong[] = {"", "x", "2026-13-01", "10:20x", "10:20:30.", "1969-01-01"};

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        msec at = 1;
        assert_true(cli_moment(right[i].text, "--since", now, &at));
        if (at != right[i].s * 1000) {
            fail_msg("%s: %llu", right[i].text, (unsigned long long)at);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        msec at;
        listen();
        assert_false(cli_moment(wrong[i], "--since", now, &at));
        said("--since: expected how long ago");
    }
}

static void a_number_is_whole_and_a_text_is_utf8(void **state)
{
    static const char *const wrong[] = {"", "x", "-1", "1x", "1.5", "99999999999999999999"};
    uint64_t n = 0;

    (void)state;
    assert_true(cli_number("18446744073709551615", "--n", &n));
    assert_true(n == UINT64_MAX);
    assert_true(cli_number("0", "--n", &n));
    assert_int_equal(n, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        listen();
        assert_false(cli_number(wrong[i], "--n", &n));
        said("--n: expected a whole number");
    }
    assert_true(cli_is_text("é", "--text"));
    listen();
    assert_false(cli_is_text("ab\xFF", "--text"));
    said("--text is not UTF-8 text, from its byte 3 on");
}

static void a_form_has_a_name(void **state)
{
    (void)state;
    assert_int_equal(cli_form_find("table"), CLI_TABLE);
    assert_int_equal(cli_form_find("json"), CLI_JSON);
    assert_int_equal(cli_form_find("jsonl"), CLI_JSONL);
    assert_int_equal(cli_form_find("yaml"), CLI_YAML);
    assert_int_equal(cli_form_find("xml"), -1);
}

static void a_plan_is_named_by_its_whole_id_or_as_the_last_one(void **state)
{
    static const char *const yes[] = {"last", "last/step", "last@2",
                                      "01A20FC9-DD1B-70C5-9698-077211201167",
                                      "01a20fc9-dd1b-70c5-9698-077211201167/s@3"};
    static const char *const no[] = {"",
                                     "las",
                                     "lastx",
                                     "last-step",
                                     "01A20FC9",
                                     "01A20FC9-DD1B-70C5-9698-07721120116x",
                                     "01A20FC9-DD1B-70C5-9698-0772112011670"};

    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        assert_true(cli_names_plan(yes[i]));
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        assert_false(cli_names_plan(no[i]));
    }
}

static void an_exit_code_says_what_became_of_a_plan_or_a_request(void **state)
{
    (void)state;
    assert_int_equal(cli_exit_of_plan("completed", "success"), CLI_OK);
    assert_int_equal(cli_exit_of_plan("completed", "partial"), CLI_PARTIAL);
    assert_int_equal(cli_exit_of_plan("completed", ""), CLI_OK);
    assert_int_equal(cli_exit_of_plan("planned", ""), CLI_OK);
    assert_int_equal(cli_exit_of_plan("failed", "failed"), CLI_FAILED);
    assert_int_equal(cli_exit_of_plan("cancelled", ""), CLI_CANCELLED);
    assert_int_equal(cli_exit_of_plan("waiting", ""), CLI_NEEDS_HUMAN);
    assert_int_equal(cli_exit_of(BT_INVALID), CLI_USAGE);
    assert_int_equal(cli_exit_of(BT_NOT_FOUND), CLI_NOT_FOUND);
    assert_int_equal(cli_exit_of(BT_UNAVAILABLE), CLI_UNREACHABLE);
    assert_int_equal(cli_exit_of(BT_TIMEOUT), CLI_TIMEOUT);
    assert_int_equal(cli_exit_of(BT_INTERNAL), CLI_INTERNAL);
}

static void the_agents_of_a_recipe_are_named_once_and_without_templates(void **state)
{
    cJSON *plan = cJSON_Parse("{\"steps\":[{\"agentId\":\"a\"},{\"agentId\":\"b\"},{\"agentId\":"
                              "\"a\"},{\"agentId\":\"{{inputs.x}}\"},{\"type\":\"wait\"}]}");
    cJSON *agents = recipe_agents(plan);
    cJSON *none = cJSON_CreateArray();
    char *text = recipe_agents_text(agents);

    (void)state;
    assert_string_equal(text, "a, b");
    free(text);
    assert_null(recipe_agents_text(none));
    cJSON_Delete(none);
    cJSON_Delete(agents);
    cJSON_Delete(plan);
    assert_true(recipes_is_file("x.yaml"));
    assert_true(recipes_is_file("x.yml"));
    assert_true(recipes_is_file("x.json"));
    assert_false(recipes_is_file(".json"));
    assert_false(recipes_is_file("x.yaml.txt"));
    assert_false(recipes_is_file("yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_of_no_certain_width_are_left_out),
        cmocka_unit_test(what_changes_a_line_or_its_direction_is_a_question_mark),
        cmocka_unit_test(bytes_that_are_no_character_are_a_question_mark_each),
        cmocka_unit_test(columns_are_those_of_a_terminal),
        cmocka_unit_test(a_text_fits_its_columns_or_is_cut_with_a_mark),
        cmocka_unit_test(a_state_has_a_mark_a_colour_and_a_box),
        cmocka_unit_test(xml_escapes_what_it_reserves_and_lines_end_without_blanks),
        cmocka_unit_test(a_duration_has_a_unit_or_is_in_seconds),
        cmocka_unit_test(an_age_may_be_a_hundred_years_of_days),
        cmocka_unit_test(a_moment_is_an_age_or_a_time),
        cmocka_unit_test(a_number_is_whole_and_a_text_is_utf8),
        cmocka_unit_test(a_form_has_a_name),
        cmocka_unit_test(a_plan_is_named_by_its_whole_id_or_as_the_last_one),
        cmocka_unit_test(an_exit_code_says_what_became_of_a_plan_or_a_request),
        cmocka_unit_test(the_agents_of_a_recipe_are_named_once_and_without_templates),
    };

    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
