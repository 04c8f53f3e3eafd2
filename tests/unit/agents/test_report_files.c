/* Pictures and documents as files of a plan, their bounds, and a browser that prints: a script of
 * the test is the browser. */
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/report/report.h"
#include "protocol/limits.h"
#include "tests/support/heap.h"
#include "tests/support/tree.h"
#include "tests/unit/agents/steps.h"

#define PLAN "01890000-0000-7000-8000-000000000001"

static char dir[] = "/tmp/baton-report-test-XXXXXX";
static char browser[128];
static struct report report;

static int begin(void **state)
{
    char path[160];

    (void)state;
    page_start();
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/artifacts", dir);
    if (mkdir(path, 0700) != 0) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/artifacts/" PLAN, dir);
    if (mkdir(path, 0700) != 0) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/tmp", dir);
    (void)snprintf(browser, sizeof browser, "%s/browser", dir);
    return mkdir(path, 0700) != 0 || setenv("TMPDIR", path, 1) != 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    steps_forget();
    return tree_drop(dir);
}

static const struct bt_skill *skill(const char *id)
{
    for (size_t i = 0; i < report_skill_count; i++) {
        if (strcmp(report_skills[i].id, id) == 0) {
            return &report_skills[i];
        }
    }
    return NULL;
}

static struct bt_step *step_of(const char *id, const char *parameters)
{
    struct buf json;
    struct bt_step *step;

    buf_init(&json, LIMIT_STEP_BYTES);
    buf_printf(&json, "{\"artifactDir\":\"%s/artifacts/" PLAN "\",\"parameters\":%s}", dir,
               parameters);
    step = steps_make(id, buf_cstr(&json));
    buf_done(&json);
    return step;
}

static const char *run(const char *id, const char *parameters)
{
    return steps_run(step_of(id, parameters), skill(id)->run, &report);
}

/* The content of a file of the step. */
static const char *file(const char *name)
{
    static char text[65536];
    char path[256];
    FILE *f;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%s/artifacts/" PLAN "/once@1.1@%s", dir, name);
    f = fopen(path, "re");
    if (f == NULL) {
        fail_msg("no file %s", name);
    } else {
        n = fread(text, 1, sizeof text - 1, f);
        (void)fclose(f);
        (void)unlink(path);
    }
    text[n] = 0;
    return text;
}

static int entries(const char *of)
{
    char path[256];
    struct dirent *e;
    DIR *d;
    int n = 0;

    (void)snprintf(path, sizeof path, "%s/%s", dir, of);
    d = opendir(path);
    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        n += e->d_name[0] != '.';
    }
    (void)closedir(d);
    return n;
}

/* ---- files of the plan ---- */

static void a_picture_is_a_text_of_the_result_or_a_file(void **state)
{
    const char *reply = run("chart", "{\"kind\":\"bar\",\"width\":300,\"height\":250,"
                                     "\"values\":{\"a\":1,\"b\":2.5}}");

    (void)state;
    steps_expect(reply, "\"kind\":\"bar\",\"rows\":2,\"width\":300,\"height\":250,\"svg\":\"<svg");
    steps_expect(reply, "\"text\":\"bar chart of 2 rows: 1 to 2.5\"");
    reply = run("chart", "{\"kind\":\"bar\",\"artifact\":true,\"values\":{\"a\":1,\"b\":2.5}}");
    steps_expect(reply, "\"rows\":2,\"width\":800,\"height\":400,\"name\":\"chart.svg\"}");
    steps_expect(reply, "\"mediaType\":\"image/svg+xml\"");
    assert_non_null(strstr(file("chart.svg"), "</svg>\n"));
    steps_expect(run("chart", "{\"kind\":\"bar\",\"artifact\":true,\"name\":\"mine.svg\","
                              "\"values\":{\"a\":1}}"),
                 "\"name\":\"mine.svg\"");
    assert_memory_equal(file("mine.svg"), "<svg ", 5);
    steps_expect(run("chart", "{\"kind\":\"bar\",\"artifact\":true,\"name\":\"a/b\","
                              "\"values\":{\"a\":1}}"),
                 "\"outcome\":\"failed\"");
}

static void a_picture_is_described_by_its_kind_and_range(void **state)
{
    (void)state;
    steps_expect(run("chart", "{\"kind\":\"stacked\",\"values\":[{\"k\":\"a\",\"x\":-1,\"y\":2}]}"),
                 "\"text\":\"stacked chart of 1 rows, 2 series: -1 to 2\"");
    steps_expect(run("chart", "{\"kind\":\"gantt\",\"values\":[{\"t\":\"a\",\"x\":"
                              "\"2026-01-02\",\"y\":\"2026-01-03T04:05\"}]}"),
                 "\"text\":\"gantt chart of 1 rows: 2026-01-02 to 2026-01-03 04:05\"");
    steps_expect(run("chart", "{\"kind\":\"gantt\",\"values\":[{\"t\":\"a\",\"x\":1,\"y\":3}]}"),
                 "\"text\":\"gantt chart of 1 rows: 1 to 3\"");
    steps_expect(run("chart", "{\"kind\":\"line\",\"values\":[{\"t\":\"2026-01-02\",\"y\":3}]}"),
                 "\"text\":\"line chart of 1 rows: 3 to 3\"");
    steps_expect(run("chart", "{\"kind\":\"histogram\",\"values\":[]}"),
                 "\"text\":\"histogram chart of 0 rows\"");
    steps_expect(run("chart", "{\"kind\":\"histogram\",\"series\":[\"a\",\"b\"],\"values\":["
                              "{\"a\":1,\"b\":2}]}"),
                 "series: a histogram has one");
    steps_expect(run("chart", "{\"kind\":\"gantt\",\"start\":\"z\",\"values\":[{\"t\":\"a\","
                              "\"x\":1,\"y\":3}]}"),
                 "start: 'z' is no column of the rows; the first is 't'");
    steps_expect(run("chart", "{\"kind\":\"gantt\",\"end\":3,\"values\":[{\"t\":\"a\","
                              "\"x\":1,\"y\":3}]}"),
                 "end: '?' is no column");
    steps_expect(run("chart", "{\"kind\":\"gantt\",\"end\":\"y\",\"values\":[{\"t\":\"a\","
                              "\"x\":\"2026-01-01\",\"y\":\"2026-01-02\"},{\"t\":\"a\","
                              "\"x\":\"2026-01-01\",\"y\":5}]}"),
                 "row 2, column 'y': '5' is no date");
}

/* Tooltips are for pictures that a person can point into. */
static void a_picture_of_many_values_has_no_tooltips(void **state)
{
    (void)state;
    for (int n = 4000; n <= 4001; n++) {
        struct buf p;
        buf_init(&p, LIMIT_STEP_BYTES);
        buf_printf(
            &p,
            "{\"kind\":\"bar\",\"label\":\"k\",\"values\":{\"columns\":[\"k\",\"v\"],\"rows\":[");
        for (int i = 0; i < n; i++) {
            buf_printf(&p, "%s[\"w\",7]", i > 0 ? "," : "");
        }
        buf_add_cstr(&p, "]}}");
        const char *reply = run("chart", buf_cstr(&p));
        assert_true((strstr(reply, "<title>w, v: 7</title>") != NULL) == (n == 4000));
        buf_done(&p);
    }
}

static void a_picture_that_is_too_large_for_a_result_is_a_file(void **state)
{
    struct buf p;

    (void)state;
    buf_init(&p, LIMIT_STEP_BYTES);
    buf_printf(&p, "{\"kind\":\"stacked\",\"values\":{\"columns\":[\"k\",\"a\",\"b\",\"c\","
                   "\"d\"],\"rows\":[");
    for (int i = 0; i < 12000; i++) {
        buf_printf(&p, "%s[\"w\",1,2,3,4]", i > 0 ? "," : "");
    }
    buf_add_cstr(&p, "]}}");
    steps_expect(run("chart", buf_cstr(&p)), "bytes, a result at most");
    steps_expect(run("chart", buf_cstr(&p)), "put it into a file of the plan: artifact: true");
    buf_truncate(&p, p.len - 1);
    buf_add_cstr(&p, ",\"artifact\":true}");
    steps_expect(run("chart", buf_cstr(&p)), "\"rows\":12000");
    (void)file("chart.svg");
    buf_done(&p);
}

static void a_document_is_a_text_of_the_result_or_a_file(void **state)
{
    const char *reply = run("document", "{\"title\":\"T\",\"text\":\"abc\"}");

    (void)state;
    steps_expect(reply, "{\"format\":\"markdown\",\"bytes\":9,\"charts\":0}");
    steps_expect(reply, "\"text\":\"# T\\n\\nabc\\n\"");
    reply = run("document", "{\"text\":\"abc\",\"artifact\":true}");
    steps_expect(reply,
                 "{\"format\":\"markdown\",\"bytes\":4,\"charts\":0,\"name\":\"report.md\"}");
    steps_expect(reply, "\"text\":\"report.md, 4 bytes\"");
    steps_expect(reply, "\"mediaType\":\"text/markdown\"");
    assert_string_equal(file("report.md"), "abc\n");
    reply = run("document", "{\"text\":\"abc\",\"format\":\"html\",\"artifact\":true,\"sections\":["
                            "{\"chart\":{\"kind\":\"bar\",\"values\":[1]}},"
                            "{\"chart\":{\"kind\":\"bar\",\"values\":[2]}}]}");
    steps_expect(reply, "\"charts\":2,\"name\":\"report.html\"");
    steps_expect(reply, "\"mediaType\":\"text/html\"");
    assert_non_null(strstr(file("report.html"), "<title>Report</title>"));
}

static void sections_and_charts_have_their_most(void **state)
{
    struct buf p;

    (void)state;
    for (int charts = 0; charts < 2; charts++) {
        const int most = charts == 1 ? REPORT_CHARTS_MAX : REPORT_SECTIONS_MAX;
        for (int n = most; n <= most + 1; n++) {
            buf_init(&p, LIMIT_STEP_BYTES);
            buf_add_cstr(&p, "{\"sections\":[");
            for (int i = 0; i < n; i++) {
                buf_printf(&p, "%s%s", i > 0 ? "," : "",
                           charts == 1 ? "{\"chart\":{\"kind\":\"bar\",\"values\":[1]}}"
                                       : "{\"text\":\"x\"}");
            }
            buf_add_cstr(&p, "]}");
            steps_expect(run("document", buf_cstr(&p)), n == most ? "\"outcome\":\"completed\""
                                                        : charts == 1
                                                            ? "sections[50]: more than 50 charts"
                                                            : "sections: more than 200");
            buf_done(&p);
        }
    }
}

static void a_document_that_is_too_large_for_a_result_is_a_file(void **state)
{
    struct buf p;
    char wanted[64];

    (void)state;
    for (int more = 0; more < 2; more++) {
        buf_init(&p, LIMIT_STEP_BYTES);
        buf_printf(&p, "{\"text\":\"%0*d\"}", LIMIT_RESULT_BYTES / 2 - 1 + more, 0);
        (void)snprintf(wanted, sizeof wanted, "the document has %d bytes, a result at most %d",
                       LIMIT_RESULT_BYTES / 2 + 1, LIMIT_RESULT_BYTES / 2);
        const char *reply = run("document", buf_cstr(&p));
        assert_true((strstr(reply, wanted) != NULL) == (more == 1));
        buf_done(&p);
    }
}

/* ---- the browser ---- */

static void be_browser(const char *script)
{
    FILE *f = fopen(browser, "we");

    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\n%s\n", script) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(browser, 0755), 0);
    report.browser = browser;
}

#define PDF "{\"title\":\"T\",\"text\":\"hello\",\"format\":\"pdf\"}"
#define TARGET                                                                                     \
    "for a; do case $a in --print-to-pdf=*) t=${a#*=};; file://*) p=${a#file://};; esac; done\n"

static void a_browser_prints_the_page_and_leaves_nothing(void **state)
{
    const char *reply;

    (void)state;
    be_browser(TARGET "{ echo \"$@\"; env; pwd; cat \"$p\"; stat -c %a \"$p\"; } >\"$t\"");
    reply = run("document", PDF);
    steps_expect(reply, "\"format\":\"pdf\",");
    steps_expect(reply, "\"name\":\"report.pdf\"");
    steps_expect(reply, "\"mediaType\":\"application/pdf\"");
    reply = file("report.pdf");
    steps_expect(reply, "--headless --disable-gpu");
    steps_expect(reply, "--host-resolver-rules=MAP * ~NOTFOUND"); /* the page fetches nothing */
    steps_expect(reply, "--user-data-dir=");
    steps_expect(reply, "HOME=");
    steps_expect(reply, "<p>hello</p>");
    steps_expect(reply, "\n600\n");
    assert_null(strstr(reply, "TMPDIR"));
    assert_true((strstr(reply, "--no-sandbox") != NULL) == (geteuid() == 0));
    assert_int_equal(entries("tmp"), 0);
}

static void a_browser_that_fails_is_quoted(void **state)
{
    static const struct {
        const char *script, *says;
    } rows[] = {{"echo out of paper >&2; exit 3", "the browser failed (exit code 3): out of paper"},
                {"exit 1", "the browser failed (exit code 1): without a word"},
                {"kill -9 $$", "the browser failed (signal 9): without a word"},
                {"exit 0", "the browser wrote no PDF"},
                {"yes | head -c 300000", "the browser failed (exit code"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        be_browser(rows[i].script);
        steps_expect(run("document", PDF), rows[i].says);
        assert_int_equal(entries("tmp"), 0);
        assert_int_equal(entries("artifacts/" PLAN), 0);
    }
}

static void a_browser_is_ended_with_its_step(void **state)
{
    struct bt_step *step = step_of("document", PDF);

    (void)state;
    be_browser("sleep 60");
    atomic_store(&step->cancelled, true);
    steps_expect(steps_run(step, report_document, &report), "\"class\":\"CANCELLED\"");
    assert_int_equal(entries("tmp"), 0);
}

static void a_browser_is_looked_for_under_its_names(void **state)
{
    static const char *const names[] = {"chromium", "chromium-browser", "google-chrome",
                                        "google-chrome-stable"};
    char *path = strdup(getenv("PATH"));
    char own[160];

    (void)state;
    report.browser = NULL;
    (void)snprintf(own, sizeof own, "%s/bin", dir);
    assert_int_equal(mkdir(own, 0700), 0);
    assert_int_equal(setenv("PATH", own, 1), 0);
    steps_expect(run("document", PDF), "\"class\":\"TOOL_NOT_FOUND\"");
    steps_expect(run("document", PDF), "\"retryable\":false");
    steps_expect(run("document", PDF), "a PDF needs Chromium, and PATH has none");
    for (size_t i = 0; i < 4; i++) {
        char as[256];
        (void)snprintf(as, sizeof as, "%s/%s", own, names[i]);
        be_browser(TARGET "echo printed >\"$t\"");
        assert_int_equal(rename(browser, as), 0);
        report.browser = NULL;
        steps_expect(run("document", PDF), "\"outcome\":\"completed\"");
        assert_string_equal(file("report.pdf"), "printed\n");
        report.browser =
            (char *)(uintptr_t)names[i]; /* a name of the settings is looked for, too */
        steps_expect(run("document", PDF), "\"outcome\":\"completed\"");
        (void)file("report.pdf");
        assert_int_equal(chmod(as, 0644), 0);
        steps_expect(run("document", PDF), "is not there, or is no program");
        assert_int_equal(unlink(as), 0);
    }
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
}

static void a_directory_that_is_not_there_is_named(void **state)
{
    char was[160];

    (void)state;
    (void)snprintf(was, sizeof was, "%s", getenv("TMPDIR"));
    be_browser(TARGET "echo printed >\"$t\"");
    assert_int_equal(setenv("TMPDIR", "/no/such/directory", 1), 0);
    steps_expect(run("document", PDF), "/no/such/directory/baton-report-");
    assert_int_equal(setenv("TMPDIR", "relative", 1), 0); /* then /tmp */
    steps_expect(run("document", PDF), "\"outcome\":\"completed\"");
    (void)file("report.pdf");
    assert_int_equal(unsetenv("TMPDIR"), 0);
    steps_expect(run("document", PDF), "\"outcome\":\"completed\"");
    (void)file("report.pdf");
    assert_int_equal(setenv("TMPDIR", was, 1), 0);
}

/* ---- memory ---- */

static void run_all(void *self)
{
    struct report *r = NULL;
    struct bt_error err;

    (void)self;
    (void)run("document",
              "{\"text\":\"a\",\"sections\":[{\"table\":[{\"a\":1}],\"chart\":{\"kind\":"
              "\"gantt\",\"values\":[{\"t\":\"a\",\"x\":1,\"y\":2}]}}]}");
    (void)run("document", "{\"format\":\"html\",\"text\":\"<b>a</b> ![x](http://y)\",\"sections\":["
                          "{\"chart\":{\"kind\":\"line\",\"values\":[{\"x\":1,\"y\":2}]}}]}");
    (void)run("document", "{\"sections\":[{\"text\":\"x\"},{\"chart\":3}]}");
    (void)run("chart", "{\"kind\":\"bar\",\"values\":[{\"k\":\"a\",\"x\":1}]}");
    (void)run("chart", "{\"kind\":\"stacked\",\"values\":[{\"k\":\"a\",\"x\":1}]}");
    (void)run("chart", "{\"kind\":\"histogram\",\"values\":[1,2,3]}");
    (void)run("chart", "{\"kind\":\"line\",\"values\":[{\"x\":1,\"y\":\"z\"}],\"series\":\"y\"}");
    steps_forget();
    assert_int_equal(report_new("{\"browser\":\"x\"}", &r, &err), BT_OK);
    report_free(r);
    assert_int_equal(report_new("{\"x\":1}", &r, &err), BT_INVALID);
    assert_int_equal(report_new("{", &r, &err), BT_INVALID);
}

static void a_step_keeps_no_memory(void **state)
{
    (void)state;
    heap_is_given_back(run_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_is_a_text_of_the_result_or_a_file),
        cmocka_unit_test(a_picture_is_described_by_its_kind_and_range),
        cmocka_unit_test(a_picture_of_many_values_has_no_tooltips),
        cmocka_unit_test(a_picture_that_is_too_large_for_a_result_is_a_file),
        cmocka_unit_test(a_document_is_a_text_of_the_result_or_a_file),
        cmocka_unit_test(sections_and_charts_have_their_most),
        cmocka_unit_test(a_document_that_is_too_large_for_a_result_is_a_file),
        cmocka_unit_test(a_browser_prints_the_page_and_leaves_nothing),
        cmocka_unit_test(a_browser_that_fails_is_quoted),
        cmocka_unit_test(a_browser_is_ended_with_its_step),
        cmocka_unit_test(a_browser_is_looked_for_under_its_names),
        cmocka_unit_test(a_directory_that_is_not_there_is_named),
        cmocka_unit_test(a_step_keeps_no_memory),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
