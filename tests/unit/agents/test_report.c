/* Charts and documents: what is drawn, and what values, names and markup must not do to it. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/report/report.h"
#include "agents/report/scale.h"
#include "agents/report/svg.h"
#include "agents/sdk/card.h"
#include "tests/unit/agents/steps.h"

static struct report report;

static const char *run(const char *skill, const char *parameters)
{
    struct buf json;
    const char *reply = "";

    buf_init(&json, 8 * 1024 * 1024);
    buf_printf(&json, "{\"parameters\":%s}", parameters);
    for (size_t i = 0; i < report_skill_count; i++) {
        if (strcmp(report_skills[i].id, skill) == 0) {
            reply = steps_run(steps_make(skill, buf_cstr(&json)), report_skills[i].run, &report);
        }
    }
    buf_done(&json);
    return reply;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++) {
        n++;
    }
    return n;
}

static void the_card_is_one_that_a_supervisor_takes(void **state)
{
    const struct bt_agent_def def = {
        .agent_id = "report", .skills = report_skills, .skill_count = report_skill_count};
    struct card card;
    struct bt_error err;

    (void)state;
    if (card_init(&card, &def, &err) != BT_OK || card_check_complete(&card, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    card_done(&card);
}

static void each_kind_has_a_shape_for_each_value(void **state)
{
    const char *reply =
        run("chart", "{\"kind\":\"bar\",\"title\":\"T\",\"values\":"
                     "[{\"k\":\"a\",\"x\":1,\"y\":2},{\"k\":\"b\",\"x\":3,\"y\":null}]}");

    (void)state;
    steps_expect(reply, "\"rows\":2");
    steps_expect(reply, "bar chart of 2 rows, 2 series: 1 to 3");
    assert_int_equal(count(reply, "<title>a, x: 1</title>"), 1);
    assert_int_equal(count(reply, "<title>a, y: 2</title>"), 1);
    assert_int_equal(count(reply, "<title>b, x: 3</title>"), 1);
    assert_int_equal(count(reply, "<title>b, y:"), 0); /* an empty cell is no bar of 0 */
    reply = run("chart", "{\"kind\":\"line\",\"values\":[{\"x\":2,\"y\":5},{\"x\":1,\"y\":7}]}");
    assert_int_equal(count(reply, "<path"), 1);
    assert_int_equal(count(reply, "<circle"), 2);
    reply = run("chart", "{\"kind\":\"stacked\",\"values\":[{\"k\":\"a\",\"x\":1,\"y\":-2}]}");
    assert_int_equal(count(reply, "<title>a, "), 2);
    reply = run("chart", "{\"kind\":\"histogram\",\"bins\":4,\"values\":[1,2,3,4,5,5]}");
    steps_expect(reply, "<title>4 to 5: 3</title>"); /* the last one includes its end */
    assert_int_equal(count(reply, " to "), 5);
    reply = run("chart", "{\"kind\":\"gantt\",\"values\":["
                         "{\"t\":\"a\",\"from\":\"2026-11-01\",\"to\":\"2026-11-02T12:00\"},"
                         "{\"t\":\"b\",\"from\":\"2026-11-03\",\"to\":\"\"}]}");
    steps_expect(reply, "<title>a: 2026-11-01 to 2026-11-02 12:00</title>");
    steps_expect(reply, "<title>b: 2026-11-03</title>");
}

/* The same plan must give the same picture, and a larger value a longer bar. */
static double height_of(const char *reply, const char *title)
{
    const char *at = strstr(reply, title);
    double height = -1.0;

    assert_non_null(at);
    while (strncmp(at, "height=", 7) != 0) {
        at--;
    }
    assert_int_equal(sscanf(at, "height=\\\"%lf", &height), 1);
    return height;
}

static void lengths_are_proportional(void **state)
{
    const char *reply =
        run("chart", "{\"kind\":\"bar\",\"values\":{\"a\":1,\"b\":4,\"c\":-2,\"d\":0}}");
    const double one = height_of(reply, "<title>a, value: 1");

    (void)state;
    assert_true(one > 5.0);
    assert_true(height_of(reply, "<title>b, value: 4") - 4.0 * one < 0.05);
    assert_true(height_of(reply, "<title>c, value: -2") - 2.0 * one < 0.05);
    assert_true(height_of(reply, "<title>d, value: 0") < 0.01);
}

static void what_cannot_be_drawn_is_named_with_its_place(void **state)
{
    static const struct {
        const char *parameters, *part;
    } rows[] = {
        {"{\"kind\":\"pie\",\"values\":[1]}", "kind: expected bar, line"},
        {"{\"kind\":\"bar\",\"series\":\"v\",\"values\":\"k,v\\na,1\\nb,NaN\\n\"}",
         "row 2, column 'v': 'NaN' is no finite number"},
        {"{\"kind\":\"bar\",\"series\":\"v\",\"values\":\"k,v\\na,1\\nb,1e999\\n\"}",
         "row 2, column 'v'"},
        {"{\"kind\":\"bar\",\"series\":\"v\",\"values\":\"k,v\\na,inf\\n\"}", "row 1, column 'v'"},
        {"{\"kind\":\"bar\",\"values\":[{\"a\":\"x\"}]}",
         "series: the rows have no column of numbers"},
        {"{\"kind\":\"bar\",\"label\":\"z\",\"values\":[{\"a\":1}]}", "label: 'z' is no column"},
        {"{\"kind\":\"bar\",\"series\":[\"a\",\"z\"],\"values\":[{\"a\":1}]}",
         "series: 'z' is no column"},
        {"{\"kind\":\"gantt\",\"values\":[{\"t\":\"x\",\"a\":3,\"b\":2}]}",
         "row 1 ends before it starts"},
        {"{\"kind\":\"gantt\",\"values\":[{\"t\":\"x\",\"a\":null,\"b\":2},{\"t\":\"y\",\"a\":1,"
         "\"b\":2}]}",
         "row 1 has an end and no start"},
        {"{\"kind\":\"gantt\",\"values\":[{\"t\":\"x\",\"a\":3}]}", "end: the rows have no column"},
        {"{\"kind\":\"line\",\"values\":[{\"x\":1,\"y\":2},{\"x\":null,\"y\":3}]}",
         "column 'x' is empty"},
        {"{\"kind\":\"bar\",\"width\":199,\"values\":[1]}", "width: expected a number from 200"},
        {"{\"kind\":\"bar\",\"bins\":201,\"values\":[1]}", "bins: expected"},
        {"{\"kind\":\"bar\",\"title\":3,\"values\":[1]}", "title: expected a text"},
        {"{\"kind\":\"bar\",\"values\":7}", "values: "},
        {"{\"kind\":\"bar\",\"values\":{\"columns\":[\"k\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\","
         "\"7\","
         "\"8\",\"9\"],\"rows\":[[\"a\",1,2,3,4,5,6,7,8,9]]}}",
         "series: more than 8"},
        {"{\"kind\":\"bar\"}", "values: give the rows"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reply = run("chart", rows[i].parameters);
        steps_expect(reply, "VALIDATION_ERROR");
        steps_expect(reply, rows[i].part);
    }
}

static const char *many(const char *kind, int n)
{
    static struct buf json;

    buf_done(&json);
    buf_init(&json, 8 * 1024 * 1024);
    buf_printf(&json, "{\"kind\":\"%s\",\"values\":{\"columns\":[\"k\",\"a\",\"b\"],\"rows\":[",
               kind);
    for (int i = 0; i < n; i++) {
        buf_printf(&json, "%s[\"k%d\",%d,%d]", i > 0 ? "," : "", i, i % 97, i % 97 + 1);
    }
    buf_add_cstr(&json, "]}}");
    return buf_cstr(&json);
}

/* None, one, thousands; at each cap and over it. */
static void any_number_of_rows_is_drawn_or_named(void **state)
{
    static const char *const kinds[] = {"bar", "line", "stacked", "histogram", "gantt"};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const bool gantt = strcmp(kinds[i], "gantt") == 0;
        steps_expect(run("chart", many(kinds[i], 0)), "no data");
        steps_expect(run("chart", many(kinds[i], 1)), "\"rows\":1,");
        steps_expect(run("chart", many(kinds[i], gantt ? 500 : 5000)), "</svg>");
        steps_expect(run("chart", many(kinds[i], gantt ? 501 : 20001)), "shows at most");
    }
    steps_expect(run("chart", many("line", 20000)), "</svg>");
}

/* Markup, quotes, controls and changes of direction stay texts, whatever part they come by. */
static void no_text_leaves_its_place(void **state)
{
    static const char parameters[] =
        "{\"kind\":\"bar\",\"title\":\"<script>alert(1)</script>\",\"xTitle\":\"a & b\","
        "\"yTitle\":\"\\\"q\\\" 'p'\",\"values\":{\"columns\":[\"k\\u0007\",\"<b>\"],"
        "\"rows\":[[\"\\u202ecba\",1],[\"</svg><svg onload=alert(1)>\",2],"
        "[\"\\u05e9\\u05dc\\u05d5\\u05dd\",3]]}}";
    const char *reply = run("chart", parameters);

    (void)state;
    assert_int_equal(count(reply, "<script"), 0);
    assert_int_equal(count(reply, "</svg>"), 1);
    assert_int_equal(count(reply, "<svg "), 1);
    assert_int_equal(count(reply, "\xe2\x80\xae"), 0);
    assert_int_equal(count(reply, "\\u0007"), 0);
    steps_expect(reply, "&lt;script&gt;");
    steps_expect(reply, "a &amp; b");
    steps_expect(reply, "&quot;q&quot; &#39;p&#39;");
}

static void a_long_label_is_cut_with_its_whole_text_beside(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    svg_text(&out, 10.0, 10.0, SVG_END, 60.0, false, "a label that is too long");
    steps_expect(buf_cstr(&out), "<title>a label that is too long</title>");
    steps_expect(buf_cstr(&out), "\xe2\x80\xa6</text>");
    buf_clear(&out);
    svg_text(&out, 10.0, 10.0, SVG_END, 1.0, false, "\xe6\x97\xa5\xe6\x9c\xac");
    steps_expect(buf_cstr(&out), ">\xe2\x80\xa6</text>");
    buf_done(&out);
}

static void axes_have_round_steps(void **state)
{
    static const struct {
        double min, max;
        const char *first, *last;
    } rows[] = {{0, 38, "0", "40"},
                {-2500, 1000, "-3,000", "1,000"},
                {0, 3.3e12, "0", "4T"},
                {7, 7, "6", "8"},
                {0.001, 0.004, "0.001", "0.004"},
                {-1e308, 1e308, "-1e+300", "1e+300"},
                {1e15, 1e15 + 1, "900T", "1.1e+15"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scale s;
        scale_numbers(rows[i].min, rows[i].max, 6, &s);
        assert_true(s.n >= 2 && s.n <= SCALE_TICKS_MAX);
        assert_string_equal(s.text[0], rows[i].first);
        assert_string_equal(s.text[s.n - 1], rows[i].last);
    }
}

static void times_have_steps_of_the_calendar(void **state)
{
    static const struct {
        double span;
        const char *second;
    } rows[] = {{10, "00:00:02"},
                {3600, "00:10"},
                {86400, "06:00"},
                {86400 * 5, "1970-01-02"},
                {86400.0 * 30, "1970-01-12"},
                {86400.0 * 300, "1970-03"},
                {86400.0 * 3000, "1972"},
                {86400.0 * 365 * 2000, "2000"},
                {0, "1970-01-01"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scale s;
        bool found = false;
        scale_times(0, rows[i].span, 6, &s);
        assert_true(s.n >= 1 && s.n <= SCALE_TICKS_MAX);
        for (int t = 0; t < s.n; t++) {
            found = found || strcmp(s.text[t], rows[i].second) == 0;
        }
        if (!found) {
            fail_msg("%g: %s, %s ...", rows[i].span, s.text[0], s.text[1]);
        }
    }
}

static void markdown_orders_no_terminal_about(void **state)
{
#define BAD "a\\u001b[2J\\u009b\\u202e\\u200b\\u007fb"
    static const char *const bad[] = {"\x1b", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\x8b", "\x7f"};
    const char *reply = run("document", "{\"format\":\"markdown\",\"title\":\"" BAD
                                        "\",\"sections\":[{\"heading\":\"" BAD "\",\"text\":\"" BAD
                                        "\",\"list\":[\"" BAD "\"],\"table\":{\"columns\":[\"" BAD
                                        "\"],\"rows\":[[\"" BAD "\"]]}}]}");

    (void)state;
    assert_int_equal(count(reply, "a?[2J"), 6);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(strstr(reply, bad[i]));
    }
    assert_null(strstr(reply, "u202"));
#undef BAD
}

static void a_document_is_the_same_in_markdown_and_as_a_page(void **state)
{
#define DOCUMENT                                                                                   \
    "\"title\":\"T <1>\",\"text\":\"a *b* <script>x</script> [l](javascript:x) "                   \
    "![p](http://example.com/p.png)\",\"sections\":[{\"heading\":\"H\",\"list\":[1,\"two\"],"      \
    "\"table\":[{\"k\":\"a|b\",\"n\":1}],\"chart\":{\"kind\":\"bar\",\"title\":\"C\",\"values\":"  \
    "{\"a\":1}}}]"
    const char *reply = run("document", "{" DOCUMENT "}");

    (void)state;
    steps_expect(reply, "# T <1>\\n\\na *b*");
    steps_expect(reply, "| a\\\\|b | 1 |");
    steps_expect(reply, "![C](data:image/svg+xml;base64,PHN2Zy");
    steps_expect(reply, "\"charts\":1");
    reply = run("document", "{\"format\":\"html\"," DOCUMENT "}");
    steps_expect(reply, "<title>T &lt;1&gt;</title>");
    steps_expect(reply, "a <em>b</em> &lt;script&gt;x&lt;/script&gt;");
    steps_expect(reply, "<td>a|b</td>");
    steps_expect(reply, "<figure>\\n<svg ");
    assert_int_equal(count(reply, "<script"), 0);
    assert_int_equal(count(reply, "javascript:"), 0);
    assert_int_equal(count(reply, "<img"), 0);
    steps_expect(reply, "<a href=\\\"http://example.com/p.png\\\">p</a>");
    steps_expect(run("document", "{\"format\":\"doc\",\"text\":\"x\"}"),
                 "format: expected markdown");
    steps_expect(run("document", "{}"), "give sections or a text");
    steps_expect(run("document", "{\"sections\":[{},{\"chart\":{\"kind\":\"bar\",\"values\":"
                                 "[{\"a\":1},{\"a\":\"x\"}],\"series\":\"a\"}}]}"),
                 "sections[1]: chart: row 2, column 'a': 'x' is no finite number");
    steps_expect(run("document", "{\"sections\":[{\"chart\":3}]}"), "sections[0]: chart: expected");
}

/* A title of data must not end the picture's text, and begin a link of its own. */
static void a_title_does_not_leave_the_text_of_its_picture(void **state)
{
    (void)state;
    steps_expect(run("document",
                     "{\"sections\":[{\"heading\":\"H\",\"chart\":{\"kind\":\"bar\",\"title\":"
                     "\"a](http://evil.example)[b \\\\ \\n\\r "
                     "c\",\"values\":[{\"label\":\"x\",\"value\":1}]}}]}"),
                 "![a\\\\](http://evil.example)\\\\[b \\\\\\\\    c](data:image/svg+xml;base64,");
}

static void settings_are_read_or_named(void **state)
{
    struct report *r = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(report_new("{}", &r, &err), BT_OK);
    assert_null(r->browser);
    report_free(r);
    assert_int_equal(report_new("{\"browser\":\"/x\"}", &r, &err), BT_OK);
    assert_string_equal(r->browser, "/x");
    report = *r;
    steps_expect(run("document", "{\"format\":\"pdf\",\"text\":\"x\"}"), "TOOL_NOT_FOUND");
    steps_expect(run("document", "{\"format\":\"pdf\",\"text\":\"x\"}"),
                 "settings.browser: '/x' is not there");
    report = (struct report){0};
    report_free(r);
    assert_int_equal(report_new("{\"chrome\":\"/x\"}", &r, &err), BT_INVALID);
    steps_expect(err.msg, "unknown member 'chrome'");
    assert_int_equal(report_new("{\"browser\":3}", &r, &err), BT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_card_is_one_that_a_supervisor_takes),
        cmocka_unit_test(each_kind_has_a_shape_for_each_value),
        cmocka_unit_test(lengths_are_proportional),
        cmocka_unit_test(what_cannot_be_drawn_is_named_with_its_place),
        cmocka_unit_test(any_number_of_rows_is_drawn_or_named),
        cmocka_unit_test(no_text_leaves_its_place),
        cmocka_unit_test(a_long_label_is_cut_with_its_whole_text_beside),
        cmocka_unit_test(axes_have_round_steps),
        cmocka_unit_test(times_have_steps_of_the_calendar),
        cmocka_unit_test(markdown_orders_no_terminal_about),
        cmocka_unit_test(a_document_is_the_same_in_markdown_and_as_a_page),
        cmocka_unit_test(a_title_does_not_leave_the_text_of_its_picture),
        cmocka_unit_test(settings_are_read_or_named),
    };

    page_start();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    steps_forget();
    return failed;
}
