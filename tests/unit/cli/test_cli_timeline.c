/* Timelines: golden ones, and properties of random ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/cli/picture/timeline_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

enum { BYTES_MAX = 1 << 22, ROUNDS = 500, ROWS_MAX = 30, SPANS_MAX = 100, BAR_AT = 7 };

static const struct look plain = {.width = 60};

/* The drawing; free with free(). */
static char *drawn(const struct timeline *t, const struct look *look)
{
    struct arena arena = {0};
    struct buf out;
    struct bt_error err;
    char *text;
    size_t len;

    buf_init(&out, BYTES_MAX);
    assert_int_equal(timeline_text(t, look, &arena, &out, &err), BT_OK);
    (void)buf_cstr(&out);
    text = (char *)buf_take(&out, &len);
    arena_done(&arena);
    return text;
}

static void a_row_shows_each_kind_for_its_time(void **state)
{
    const struct timeline_row rows[] = {{"rows", "completed", "2.0 s"},
                                        {"load", "failed", "8.0 s, 2 attempts"}};
    const struct timeline_span spans[] = {
        {0, TIMELINE_RUNNING, 0, 2000},    {1, TIMELINE_QUEUED, 2000, 3000},
        {1, TIMELINE_PERSON, 3000, 5000},  {1, TIMELINE_RUNNING, 5000, 6000},
        {1, TIMELINE_BACKOFF, 6000, 8000}, {1, TIMELINE_ADOPTED, 8000, 10000}};
    const struct timeline t = {"a plan", rows, 2, spans, 6, 10000};
    const struct look ascii = {.width = 60, .ascii = true};
    char *text = drawn(&t, &plain);

    (void)state;
    assert_string_equal(text, "a plan\n"
                              "       │0                │5 s\n"
                              "✓ rows ████████                              2.0 s\n"
                              "✗ load        ····????????████~~~~~~▓▓▓▓▓▓▓▓ 8.0 s, 2 attem…\n"
                              "· queued   ~ backoff   █ running   ▓ adopted   ? waiting for a "
                              "person\n");
    free(text);
    text = drawn(&t, &ascii);
    assert_non_null(strstr(text, "x load        ....????????####~~~~~~%%%%%%%% 8.0 s, 2 attem~\n"));
    free(text);
}

static void work_is_shown_however_short_it_is(void **state)
{
    const double day = 24 * 3600 * 1000.0;
    const struct timeline_row rows[] = {{"a", "completed", ""}, {"b", "completed", ""}};
    const struct timeline_span spans[] = {{0, TIMELINE_QUEUED, 0, day},
                                          {0, TIMELINE_RUNNING, day, day + 1},
                                          {0, TIMELINE_BACKOFF, day + 1, 3 * day},
                                          {1, TIMELINE_RUNNING, day, day},
                                          {1, TIMELINE_PERSON, 3 * day, 3 * day}};
    const struct timeline t = {"3 days", rows, 2, spans, 5, 3 * day};
    char *text = drawn(&t, &plain);

    (void)state;
    assert_string_equal(text, "3 days\n"
                              "    │0                │1 d               │2 d\n"
                              "✓ a ··················█~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
                              "✓ b                   █                                    ?\n"
                              "· queued   ~ backoff   █ running   ? waiting for a person\n");
    free(text);
}

static void assert_axis(double length_ms, int most, double step, const char *last)
{
    struct buf out;

    buf_init(&out, 64);
    assert_true(axis_step(length_ms, most) == step);
    axis_time((double)(int64_t)(length_ms / step) * step, step, &out);
    assert_string_equal(buf_cstr(&out), last);
    buf_done(&out);
}

static void the_axis_has_round_times_from_a_millisecond_to_years(void **state)
{
    (void)state;
    assert_axis(3, 7, 1, "3 ms");
    assert_axis(7, 7, 1, "7 ms");
    assert_axis(8, 7, 2, "8 ms");
    assert_axis(45000, 6, 10000, "40 s");
    assert_axis(3600000, 4, 900000, "60 min");
    assert_axis(3 * 86400000.0, 6, 12 * 3600000.0, "72 h");
    assert_axis(3 * 86400000.0, 5, 86400000.0, "3 d");
    assert_axis(1000 * 86400000.0, 5, 256 * 86400000.0, "768 d");
}

static int columns_of(const char *line, size_t n)
{
    char text[4096];

    assert_true(n < sizeof text);
    memcpy(text, line, n);
    text[n] = 0;
    return look_columns(text);
}

/* Every line but the legend fits the terminal, and each row with a span has a bar. */
static void check_random(struct rng *rng)
{
    struct timeline_row rows[ROWS_MAX];
    struct timeline_span spans[SPANS_MAX];
    const struct look look = {.width = 20 + (int)rng_below(rng, 200), .ascii = true};
    const uint32_t n = 1 + rng_below(rng, ROWS_MAX);
    struct timeline t = {.title = "t", .rows = rows, .n_rows = n, .spans = spans};
    bool used[ROWS_MAX] = {false};
    char *text;
    const char *line;

    t.length_ms = 1 + rng_below(rng, 1u << (1 + rng_below(rng, 30)));
    t.n_spans = rng_below(rng, SPANS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (struct timeline_row){"name", "", rng_below(rng, 2) == 0 ? "" : "1 s"};
    }
    for (uint32_t i = 0; i < t.n_spans; i++) {
        const double from = t.length_ms * rng_below(rng, 1001) / 1000;
        spans[i] = (struct timeline_span){
            rng_below(rng, n), (enum timeline_kind)rng_below(rng, TIMELINE_KINDS), from,
            from + (t.length_ms - from) * rng_below(rng, 1001) / 1000};
        used[spans[i].row] = true;
    }
    text = drawn(&t, &look);
    line = text;
    for (uint32_t i = 0; i < n + 2; i++) {
        const size_t bytes = strcspn(line, "\n");
        assert_true(columns_of(line, bytes) <= look.width);
        if (i >= 2 && used[i - 2]) {
            assert_true(bytes > BAR_AT && strcspn(line + BAR_AT, ".-~o#%?") < bytes - BAR_AT);
        }
        line += bytes + 1;
    }
    free(text);
}

static void random_timelines_fit_the_terminal(void **state)
{
    struct rng rng = rng_seeded("timeline");

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        check_random(&rng);
    }
}

static void svg_has_a_rectangle_with_its_times_for_each_span(void **state)
{
    const struct timeline_row rows[] = {{"<a>", "completed", "&"}};
    const struct timeline_span spans[] = {{0, TIMELINE_RUNNING, 500, 3500}};
    const struct timeline t = {"</title>", rows, 1, spans, 1, 4000};
    struct buf out;
    struct bt_error err;

    (void)state;
    buf_init(&out, BYTES_MAX);
    assert_int_equal(timeline_svg(&t, &out, &err), BT_OK);
    assert_non_null(strstr(buf_cstr(&out), "<title>&lt;/title&gt;</title>"));
    assert_non_null(strstr(buf_cstr(&out), ">✓ &lt;a&gt;</text>"));
    assert_non_null(strstr(buf_cstr(&out), "<title>running: 3.0 s, from 500 ms on</title></rect>"));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_shows_each_kind_for_its_time),
        cmocka_unit_test(work_is_shown_however_short_it_is),
        cmocka_unit_test(the_axis_has_round_times_from_a_millisecond_to_years),
        cmocka_unit_test(random_timelines_fit_the_terminal),
        cmocka_unit_test(svg_has_a_rectangle_with_its_times_for_each_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
