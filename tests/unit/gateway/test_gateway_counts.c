/* Counts of events in the text format of Prometheus: what is counted where, and what is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/telemetry/telemetry.h"
#include "tests/support/cmocka.h"

enum { JSON_BYTES = 1024, TEXT_BYTES = 4 << 20, SERIES = 512, TYPES = 128 };

static struct fold *fold;
static struct buf text;

static int begin(void **state)
{
    (void)state;
    fold = fold_new();
    buf_init(&text, TEXT_BYTES);
    return fold == NULL ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    free(fold);
    buf_done(&text);
    return 0;
}

/* A JSON object, with ' for ". */
static void event(const char *fields)
{
    char json[JSON_BYTES];
    struct buf doc;

    (void)snprintf(json, sizeof json, "%s", fields);
    for (char *c = json; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    buf_init(&doc, 8 * JSON_BYTES);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, NULL), BT_OK);
    fold_event(fold, doc_from_buf(&doc));
    buf_done(&doc);
}

static void step(const char *skill, const char *fields)
{
    char json[JSON_BYTES];

    (void)snprintf(json, sizeof json,
                   "{'type':'plan_step_completed','agentId':'a','skill':'%s',%s}", skill, fields);
    event(json);
}

static const char *written(void)
{
    buf_clear(&text);
    fold_write(fold, &text);
    return buf_cstr(&text);
}

/* There is this line; or NULL is the value, and none begins so. ' for ". */
static void expect(const char *name, const char *value)
{
    char line[JSON_BYTES];
    const char *all = written();
    bool found = false;

    (void)snprintf(line, sizeof line, "\n%s%s%s%s", name, value != NULL ? " " : "",
                   value != NULL ? value : "", value != NULL ? "\n" : "");
    for (char *c = line; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    found = strstr(all, line) != NULL;
    if (found != (value != NULL)) {
        print_error("%s in\n%s\n", line, all);
    }
    assert_true(found == (value != NULL));
}

static void what_nothing_was_counted_of_has_families_and_no_series(void **state)
{
    (void)state;
    assert_memory_equal(written(),
                        "# HELP baton_steps_total Steps that ended, by their last "
                        "state.\n# TYPE baton_steps_total counter\n# HELP",
                        100);
    expect("# TYPE baton_step_attempts_total", "counter");
    expect("# TYPE baton_step_tokens_total", "counter");
    expect("# TYPE baton_step_duration_seconds", "histogram");
    expect("# TYPE baton_plans_total", "counter");
    expect("# TYPE baton_plan_duration_seconds", "histogram");
    expect("# TYPE baton_events_total", "counter");
    expect("baton_steps_total{", NULL);
    expect("baton_step_attempts_total{", NULL);
    expect("baton_step_tokens_total{", NULL);
    expect("baton_step_duration_seconds", NULL);
    expect("baton_events_total{", NULL);
    expect("baton_plans_total{status='completed'}", "0");
    expect("baton_plans_total{status='failed'}", "0");
    expect("baton_plans_total{status='cancelled'}", "0");
    expect("baton_plans_total{status='skipped'}", NULL); /* no plan is */
    expect("baton_plan_duration_seconds_count", "0");
}

static void a_step_counts_by_agent_skill_and_state(void **state)
{
    (void)state;
    step("x", "'status':'completed','attempts':1,'durationMs':5,"
              "'usage':{'inputTokens':3,'outputTokens':4}");
    step("x", "'status':'failed','attempts':3,'durationMs':6");
    step("x", "'status':'skipped','attempts':0,'durationMs':9000");
    step("x", "'status':'cancelled'");
    step("x", "'status':'running','attempts':9");
    step("y", "'status':'completed','attempts':1,'durationMs':1,'usage':{'outputTokens':2}");
#define X "{agent='a',skill='x'"
#define Y "{agent='a',skill='y'"
    expect("baton_steps_total" X ",status='completed'}", "1");
    expect("baton_steps_total" X ",status='failed'}", "1");
    expect("baton_steps_total" X ",status='skipped'}", "1");
    expect("baton_steps_total" X ",status='cancelled'}", "1");
    expect("baton_steps_total" Y ",status='completed'}", "1");
    expect("baton_steps_total" Y ",status='failed'}", "0");
    expect("baton_step_attempts_total" X "}", "4");
    expect("baton_step_attempts_total" Y "}", "1");
    expect("baton_step_tokens_total" X ",direction='input'}", "3");
    expect("baton_step_tokens_total" X ",direction='output'}", "4");
    expect("baton_step_tokens_total" Y ",direction='input'}", "0");
    expect("baton_step_tokens_total" Y ",direction='output'}", "2");
    expect("baton_step_duration_seconds_bucket" X ",le='0.005'}", "1");
    expect("baton_step_duration_seconds_bucket" X ",le='0.01'}", "2");
    expect("baton_step_duration_seconds_bucket" X ",le='+Inf'}", "2"); /* what had an attempt */
    expect("baton_step_duration_seconds_sum" X "}", "0.011");
    expect("baton_step_duration_seconds_count" X "}", "2");
    expect("baton_step_duration_seconds_count" Y "}", "1");
    expect("baton_events_total{type='plan_step_completed'}", "6");
    expect("baton_steps_total{agent='other'", NULL);
    expect("baton_events_total{type='other'}", NULL);
}

static void
a_skill_of_another_agent_is_another_series_and_one_without_attempts_has_no_times(void **state)
{
    (void)state;
    step("x", "'status':'skipped'");
    event("{'type':'plan_step_completed','agentId':'b','skill':'x','status':'completed'}");
    expect("baton_steps_total{agent='a',skill='x',status='completed'}", "0");
    expect("baton_steps_total{agent='b',skill='x',status='completed'}", "1");
    expect("baton_step_duration_seconds", NULL);
    expect("baton_step_tokens_total{", NULL);
}

static void a_time_counts_in_each_bucket_that_it_is_not_over(void **state)
{
    static const struct {
        uint64_t ms;
        const char *bound;
    } all[] = {{5, "0.005"},  {10, "0.01"},    {25, "0.025"},   {50, "0.05"},     {100, "0.1"},
               {250, "0.25"}, {500, "0.5"},    {1000, "1"},     {2500, "2.5"},    {10000, "10"},
               {30000, "30"}, {120000, "120"}, {600000, "600"}, {3600000, "3600"}};
    char fields[JSON_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) { /* at each bound, and over it */
        for (unsigned over = 0; over < 2; over++) {
            (void)snprintf(fields, sizeof fields,
                           "{'type':'plan_completed','status':'completed','durationMs':%llu}",
                           (unsigned long long)all[i].ms + over);
            event(fields);
        }
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char count[16];
        (void)snprintf(fields, sizeof fields, "baton_plan_duration_seconds_bucket{le='%s'}",
                       all[i].bound);
        (void)snprintf(count, sizeof count, "%zu", 2 * i + 1);
        expect(fields, count);
    }
    expect("baton_plan_duration_seconds_bucket{le='+Inf'}", "28");
    expect("baton_plan_duration_seconds_count", "28");
    expect("baton_plan_duration_seconds_sum", "8728.894");
}

static void a_plan_counts_by_its_last_state(void **state)
{
    (void)state;
    event("{'type':'plan_completed','status':'failed','durationMs':1}");
    event("{'type':'plan_completed','status':'cancelled','durationMs':1}");
    event("{'type':'plan_completed','status':'cancelled','durationMs':1}");
    event("{'type':'plan_completed','status':'unheard'}");
    event("{'type':'plan_started','status':'completed'}");
    expect("baton_plans_total{status='completed'}", "0");
    expect("baton_plans_total{status='failed'}", "1");
    expect("baton_plans_total{status='cancelled'}", "2");
    expect("baton_plan_duration_seconds_count", "3");
    expect("baton_events_total{type='plan_completed'}", "4");
    expect("baton_events_total{type='plan_started'}", "1");
}

static void so_many_pairs_have_a_series_and_more_count_as_other(void **state)
{
    char skill[16];

    (void)state;
    for (int i = 0; i <= SERIES; i++) {
        (void)snprintf(skill, sizeof skill, "s%d", i);
        step(skill, "'status':'failed','attempts':2,'durationMs':1");
    }
    expect("baton_steps_total{agent='a',skill='s511',status='failed'}", "1");
    expect("baton_steps_total{agent='a',skill='s512'", NULL);
    expect("baton_steps_total{agent='other',skill='other',status='failed'}", "1");
    expect("baton_step_attempts_total{agent='other',skill='other'}", "2");
    expect("baton_step_duration_seconds_count{agent='other',skill='other'}", "1");
    step("s0", "'status':'failed'"); /* who has one keeps it */
    expect("baton_steps_total{agent='a',skill='s0',status='failed'}", "2");
}

static void each_state_shows_what_is_other(void **state)
{
    static const char *const all[] = {"completed", "failed", "skipped", "cancelled"};
    char fields[128];

    (void)state;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        free(fold);
        fold = fold_new();
        for (int i = 0; i <= SERIES; i++) {
            char skill[16];
            (void)snprintf(skill, sizeof skill, "s%d", i);
            (void)snprintf(fields, sizeof fields, "'status':'%s'", all[k]);
            step(skill, fields);
        }
        (void)snprintf(fields, sizeof fields,
                       "baton_steps_total{agent='other',skill='other',status='%s'}", all[k]);
        expect(fields, "1");
    }
}

static void so_many_types_are_counted_and_more_count_as_other(void **state)
{
    char fields[JSON_BYTES];

    (void)state;
    for (int i = 0; i <= TYPES; i++) {
        (void)snprintf(fields, sizeof fields, "{'type':'t%d'}", i);
        event(fields);
        event(fields);
    }
    expect("baton_events_total{type='t0'}", "2");
    expect("baton_events_total{type='t127'}", "2");
    expect("baton_events_total{type='t128'}", NULL);
    expect("baton_events_total{type='other'}", "2");
}

static void a_name_has_64_bytes(void **state)
{
    char name[80];
    char line[JSON_BYTES];

    (void)state;
    memset(name, 'n', sizeof name);
    name[65] = 0;
    step(name, "'status':'failed'");
    name[64] = 0;
    (void)snprintf(line, sizeof line, "baton_steps_total{agent='a',skill='%s',status='failed'}",
                   name);
    expect(line, "1");
}

static void a_label_escapes_what_the_format_reserves(void **state)
{
    (void)state;
    buf_clear(&text);
    text_label(&text, "x", STR_LIT("a\\b\"c\nd"), true);
    text_label(&text, "y", STR_LIT(""), false);
    assert_string_equal(buf_cstr(&text), "{x=\"a\\\\b\\\"c\\nd\",y=\"\"");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_nothing_was_counted_of_has_families_and_no_series),
        TEST(a_step_counts_by_agent_skill_and_state),
        TEST(a_skill_of_another_agent_is_another_series_and_one_without_attempts_has_no_times),
        TEST(a_time_counts_in_each_bucket_that_it_is_not_over),
        TEST(a_plan_counts_by_its_last_state),
        TEST(so_many_pairs_have_a_series_and_more_count_as_other),
        TEST(each_state_shows_what_is_other),
        TEST(so_many_types_are_counted_and_more_count_as_other),
        TEST(a_name_has_64_bytes),
        TEST(a_label_escapes_what_the_format_reserves),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
