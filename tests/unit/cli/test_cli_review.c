/* Reviews for people: safe texts, values that are cut between values, differences of lines. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/view/line_diff.h"
#include "supervisor/cli/view/review.h"
#include "tests/support/cmocka.h"

static void assert_safe(const char *text, bool lines, const char *expected)
{
    struct buf out;

    buf_init(&out, 4096);
    review_safe(text, strlen(text), lines, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void what_a_terminal_hides_or_obeys_is_printed_by_its_number(void **state)
{
    (void)state;
    assert_safe("plain äß漢🙂", false, "plain äß漢🙂");
    assert_safe("\x1b[2J\r\x7f", false, "<U+001B>[2J<U+000D><U+007F>");
    assert_safe("\xc2\x9b", false, "<U+009B>");
    assert_safe("a\xe2\x80\xae"
                "b\xe2\x81\xa6",
                false, "a<U+202E>b<U+2066>");
    assert_safe("\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", false, "<U+200B><U+FEFF><U+00AD>");
    assert_safe("\xf3\xa0\x81\x81", false, "<U+E0041>"); /* a tag letter */
    assert_safe("a\n\tb", true, "a\n\tb");
    assert_safe("a\n\tb", false, "a\\n\\tb");
    assert_safe("", false, "");
}

static void assert_value(const char *json, size_t max, const char *expected)
{
    cJSON *value = cJSON_Parse(json);
    struct buf out;

    assert_non_null(value);
    buf_init(&out, 1 << 20);
    review_value(value, max, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
    cJSON_Delete(value);
}

static void values_are_cut_between_values_with_a_count_of_the_rest(void **state)
{
    (void)state;
    assert_value("{\"a\":[1,2.5,true,null],\"b\":\"x\"}", 1024,
                 "{\"a\":[1,2.5,true,null],\"b\":\"x\"}");
    assert_value("[1,2,3,4,5,6,7,8]", 40, "[1,2,3,4,… 4 more]");
    assert_value("{\"a\":{\"b\":[]}}", 1024, "{\"a\":{\"b\":[]}}");
    assert_value("\"0123456789012345678901234567890123456789\"", 64,
                 "\"0123456789012345… 24 more bytes\"");
    assert_value("\"\\u001b[2J\"", 1024, "\"\\u001b[2J\"");
    assert_value("[1,2]", 0, "[1, 2]");
}

static void a_text_is_whole_at_its_room_and_cut_at_one_byte_more(void **state)
{
    char json[300];
    char text[256];
    struct buf out;

    (void)state;
    for (size_t n = 200; n <= 201; n++) {
        memset(text, 'x', n);
        text[n] = 0;
        (void)snprintf(json, sizeof json, "\"%s\"", text);
        cJSON *value = cJSON_Parse(json);
        buf_init(&out, 4096);
        review_value(value, 248, &out); /* 48 for the mark */
        assert_int_equal(strstr(buf_cstr(&out), "… 1 more bytes") != NULL, n == 201);
        buf_done(&out);
        cJSON_Delete(value);
    }
}

static void assert_diff(const char *a, const char *b, const char *expected)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    line_diff(str_from(a), str_from(b), &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void the_difference_is_the_shortest_one(void **state)
{
    (void)state;
    assert_diff("a\nb\nc", "a\nb\nc", "  a\n  b\n  c\n");
    assert_diff("a\nb\nc", "a\nx\nc", "  a\n- b\n+ x\n  c\n");
    assert_diff("", "a", "- \n+ a\n");
    assert_diff("a\nb\nc\nd", "b\nd\ne", "- a\n  b\n- c\n  d\n+ e\n");
    assert_diff("b\nc", "a\nb\nc", "+ a\n  b\n  c\n");
}

static void texts_of_very_many_lines_are_given_one_after_the_other(void **state)
{
    struct buf a;
    struct buf b;
    struct buf out;

    (void)state;
    buf_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 2001; i++) {
        buf_printf(&a, "a%d\n", i);
        buf_printf(&b, "b%d\n", i);
    }
    line_diff(buf_str(&a), buf_str(&b), &out);
    assert_non_null(strstr(buf_cstr(&out), "- a2000\n+ b0\n"));
    buf_done(&a);
    buf_done(&b);
    buf_done(&out);
}

static void a_review_names_what_it_leaves_out(void **state)
{
    cJSON *r = cJSON_Parse("{\"reviewId\":\"P/a/r1\",\"kind\":\"before_step\",\"stepId\":\"a\","
                           "\"prompt\":\"go?\",\"task\":\"t\",\"agentId\":\"x\",\"skill\":\"s\","
                           "\"fallbackAgents\":[\"y\",\"z\"],\"effects\":\"unsafe\","
                           "\"parametersLen\":70000}");
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    review_text(r, REVIEW_CUT, &out);
    assert_string_equal(buf_cstr(&out), "? P/a/r1  before_step  step a\n"
                                        "    asks       go?\n"
                                        "    task       t\n"
                                        "    agent      x, skill s; if it fails: y, z\n"
                                        "    effects    unsafe\n"
                                        "    parameters … 70000 bytes\n");
    assert_false(review_tables(r, &out));
    assert_false(review_diff(r, &out));
    buf_done(&out);
    cJSON_Delete(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_terminal_hides_or_obeys_is_printed_by_its_number),
        cmocka_unit_test(values_are_cut_between_values_with_a_count_of_the_rest),
        cmocka_unit_test(a_text_is_whole_at_its_room_and_cut_at_one_byte_more),
        cmocka_unit_test(the_difference_is_the_shortest_one),
        cmocka_unit_test(texts_of_very_many_lines_are_given_one_after_the_other),
        cmocka_unit_test(a_review_names_what_it_leaves_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
