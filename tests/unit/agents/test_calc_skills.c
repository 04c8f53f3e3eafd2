/* The skills as a plan uses them: with parameters, and with only a task and a dependency. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/calc/calc.h"
#include "agents/calc/counts.h"
#include "agents/sdk/card.h"
#include "tests/unit/agents/steps.h"

#define LOG                                                                                        \
    "2026-11-20 09:00:00 startup archives unpack\\n"                                               \
    "2026-11-20 09:00:01 install libc:amd64 <none> 2.36\\n"                                        \
    "2026-11-20 09:00:02 status half-installed libc:amd64 2.36\\n"                                 \
    "2026-11-20 10:00:01 upgrade zlib:amd64 1 2\\n"                                                \
    "no date here, though install is a word of it\\n"                                              \
    "2026-11-21 09:10:00 install curl:amd64 <none> 8\\n"                                           \
    "2026-11-21 09:10:01 install git:amd64 <none> 2\\n"
#define AFTER(result)                                                                              \
    "\"context\":{\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":" result "}]}"

static const char *run(const char *skill, const char *json)
{
    for (size_t i = 0; i < calc_skill_count; i++) {
        if (strcmp(calc_skills[i].id, skill) == 0) {
            return steps_run(steps_make(skill, json), calc_skills[i].run, NULL);
        }
    }
    fail_msg("no skill %s", skill);
    return "";
}

static void the_card_is_one_that_a_supervisor_takes(void **state)
{
    const struct bt_agent_def def = {
        .agent_id = "calc", .skills = calc_skills, .skill_count = calc_skill_count};
    struct card card;
    struct bt_error err;

    (void)state;
    if (card_init(&card, &def, &err) != BT_OK || card_check_complete(&card, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    for (uint32_t i = 0; i < card.skills_n; i++) {
        assert_true(card.skills[i].skill.tags[0] != NULL);
        assert_true(card.skills[i].skill.examples[0] != NULL);
        assert_true(strlen(card.skills[i].skill.description) > 20);
    }
    card_done(&card);
}

static void an_expression_comes_by_parameter_or_by_task(void **state)
{
    (void)state;
    steps_expect(
        run("evaluate", "{\"parameters\":{\"expression\":\"a/4\",\"variables\":{\"a\":10}}}"),
        "\"value\":2.5");
    steps_expect(run("evaluate", "{\"task\":\"Calculate (1+2)*3\"}"), "\"value\":9");
    steps_expect(run("evaluate", "{\"task\":\"what is n * 2\"," AFTER("{\"data\":{\"n\":21}}") "}"),
                 "\"text\":\"42\"");
    steps_expect(run("evaluate", "{\"task\":\"1/0\"}"), "division by zero");
}

static void installs_are_counted_per_day_from_the_step_before(void **state)
{
    const char *reply =
        run("count_per_day",
            "{\"task\":\"count the installs per day\"," AFTER("{\"text\":\"" LOG "\"}") "}");

    (void)state;
    steps_expect(reply, "\"rows\":[[\"2026-11-20\",1],[\"2026-11-21\",2]]");
    steps_expect(reply, "\"total\":3");
    steps_expect(reply, "\"counted\":\"install\"");
    steps_expect(reply, "| 2026-11-21 | 2 |");
}

static void counting_has_a_unit_and_a_word(void **state)
{
    (void)state;
    steps_expect(
        run("count_per_day", "{\"task\":\"count the installs per hour\"," AFTER("\"" LOG "\"") "}"),
        "\"rows\":[[\"09\",3]]");
    steps_expect(run("count_per_day", "{\"parameters\":{\"text\":\"" LOG
                                      "\",\"contains\":\"upgrade\",\"per\":\"month\"}}"),
                 "\"rows\":[[\"2026-11\",1]]");
    steps_expect(
        run("count_per_day", "{\"task\":\"count all lines per day\"," AFTER("\"" LOG "\"") "}"),
        "\"total\":6");
    steps_expect(run("count_per_day", "{\"parameters\":{\"text\":\"" LOG "\",\"per\":\"year\"}}"),
                 "VALIDATION_ERROR");
}

static void counting_nothing_says_what_was_looked_for(void **state)
{
    (void)state;
    steps_expect(
        run("count_per_day", "{\"task\":\"count the removals per day\"," AFTER("\"" LOG "\"") "}"),
        "no dated line has the word 'removals'");
    steps_expect(run("count_per_day", "{\"parameters\":{\"text\":\"no date\"}}"),
                 "no line has a date");
    steps_expect(run("count_per_day", "{\"parameters\":{\"text\":\"12026-11-20\\n2026-11-201\"}}"),
                 "no line has a date");
    steps_expect(run("count_per_day", "{\"task\":\"count the installs per day\"}"),
                 "text: there is none");
}

static void a_word_of_a_line_is_whole_and_without_case(void **state)
{
    static const char *const with[] = {"car",   "CAR",      "a car",   "car.",
                                       "(car)", "cars car", "car cars"};
    static const char *const without[] = {"",     "ca",   "bar", "car2", "cars",       "scar",
                                          "car-", "_car", "cär", "-car", "caR\xC3\xA4"};

    (void)state;
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        assert_true(line_has_word(str_from(with[i]), STR_LIT("car")));
        assert_true(line_has_word(str_from(with[i]), STR_LIT("Car")));
    }
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        assert_false(line_has_word(str_from(without[i]), STR_LIT("car")));
    }
    assert_false(line_has_word(STR_LIT("car"), STR_LIT("")));
    assert_true(line_has_word(STR_LIT("0 9"), STR_LIT("9")));
    assert_false(line_has_word(STR_LIT("09"), STR_LIT("9")));
    assert_false(line_has_word(STR_LIT("9z"), STR_LIT("9")));
    assert_false(line_has_word(STR_LIT("Z9"), STR_LIT("9")));
    assert_true(line_has_word(STR_LIT("{9["), STR_LIT("9"))); /* the signs beside letters */
}

static void so_many_labels_are_counted_and_no_more(void **state)
{
    struct counts c = {0};
    struct bt_error err;
    char label[16];

    (void)state;
    for (uint32_t i = 0; i < COUNTS_LABELS_MAX; i++) {
        const int n = snprintf(label, sizeof label, "%u", i);
        assert_int_equal(counts_add(&c, (struct str){label, (size_t)n}, 2, &err), BT_OK);
    }
    assert_int_equal(counts_add(&c, STR_LIT("7"), 2, &err), BT_OK); /* one that is there */
    assert_int_equal(counts_add(&c, STR_LIT("x"), 1, &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "different labels; count by something coarser"));
    assert_int_equal(c.n, COUNTS_LABELS_MAX);
    counts_sort_by_size(&c);
    assert_true(c.at[0].n == 4 && str_is(c.at[0].label, "7"));
    assert_true(str_is(c.at[1].label, "0"));
    counts_done(&c);
}

static void the_busiest_day_is_reported_in_words(void **state)
{
    const char *reply =
        run("busiest", "{\"task\":\"report the busiest day\"," AFTER(
                           "{\"text\":\"x\",\"data\":{\"columns\":[\"day\",\"count\"],\"rows\":[["
                           "\"2026-11-20\",1],[\"2026-11-21\",3]],\"total\":4}}") "}");

    (void)state;
    steps_expect(reply, "The busiest day is **2026-11-21** with 3 of 4 (75.0 %).");
    steps_expect(reply, "\"label\":\"2026-11-21\"");
    steps_expect(run("busiest", "{\"parameters\":{\"counts\":{\"a\":1,\"b\":7,\"c\":7}}}"),
                 "\"label\":\"b\""); /* the first of equal labels */
    steps_expect(run("busiest", "{\"parameters\":{\"counts\":[{\"a\":\"x\"}]}}"),
                 "no column of numbers");
    steps_expect(run("busiest", "{\"parameters\":{\"counts\":[]}}"), "no column of numbers");
    /* A row without a name is called by its number. */
    steps_expect(run("busiest", "{\"parameters\":{\"counts\":[1,3]}}"),
                 "The busiest row is **2** with 3 of 4");
}

static void rows_are_counted_by_a_column_or_a_pattern(void **state)
{
    (void)state;
    steps_expect(
        run("count_by",
            "{\"parameters\":{\"items\":[{\"s\":\"b\",\"n\":1},{\"s\":\"a\",\"n\":2},{\"s\":"
            "\"b\",\"n\":3}],\"field\":\"s\"}}"),
        "\"rows\":[[\"b\",2],[\"a\",1]]");
    steps_expect(run("count_by", "{\"parameters\":{\"items\":\"" LOG
                                 "\",\"pattern\":\" (install|upgrade) \"}}"),
                 "\"rows\":[[\"install\",4],[\"upgrade\",1]]");
    steps_expect(run("count_by", "{\"parameters\":{\"items\":[\"x\",\"y\",\"x\"]}}"),
                 "\"rows\":[[\"x\",2],[\"y\",1]]");
    steps_expect(run("count_by", "{\"parameters\":{\"items\":\"a\",\"pattern\":\"(\"}}"),
                 "VALIDATION_ERROR");
    steps_expect(run("count_by", "{\"parameters\":{\"items\":[{\"s\":1}],\"field\":\"t\"}}"),
                 "no such column");
    steps_expect(run("count_by", "{\"parameters\":{\"items\":[\"x\",\"y\",\"x\"],\"limit\":1}}"),
                 "\"rows\":[[\"x\",2]]");
}

/* Counts the numbers from 1 to n, each once. */
static const char *count_labels(int n, const char *more)
{
    struct buf json;
    const char *reply;

    buf_init(&json, LIMIT_STEP_BYTES);
    buf_add_cstr(&json, "{\"parameters\":{\"items\":[1");
    for (int i = 2; i <= n; i++) {
        buf_printf(&json, ",%d", i);
    }
    buf_printf(&json, "]%s}}", more);
    reply = run("count_by", buf_cstr(&json));
    buf_done(&json);
    return reply;
}

static void labels_over_a_result_fail_and_over_a_limit_are_named(void **state)
{
    const char *reply = count_labels(60000, "");

    (void)state;
    steps_expect(reply, "\"labels\":60000");
    assert_null(strstr(reply, "\"truncated\""));
    steps_expect(count_labels(60001, ""),
                 "result_too_large: 60001 different labels, and a result holds 60000");
    reply = count_labels(60001, ",\"limit\":60000");
    steps_expect(reply, "[not whole: the first 60000 of 60001 labels; raise `limit`");
    steps_expect(reply, "},\"truncated\":true}");
}

static void shares_add_up_to_a_hundred(void **state)
{
    (void)state;
    steps_expect(run("shares", "{\"parameters\":{\"values\":{\"a\":1,\"b\":3}}}"),
                 "\"rows\":[[\"a\",1,25],[\"b\",3,75]]");
    steps_expect(run("shares", "{\"parameters\":{\"values\":\"day,n\\nmon,2\\ntue,2\\n\"}}"),
                 "\"rows\":[[\"mon\",2,50],[\"tue\",2,50]]");
    steps_expect(run("shares", "{\"parameters\":{\"values\":[1,1,2]}}"), "[\"3\",2,50]");
    steps_expect(run("shares", "{\"parameters\":{\"values\":{\"a\":0}}}"), "total above 0");
    steps_expect(run("shares", "{\"parameters\":{\"values\":{\"a\":\"x\"}}}"), "no column fits");
}

static void statistics_describe_a_list_or_a_column(void **state)
{
    const char *reply = run("statistics", "{\"parameters\":{\"values\":[4,1,3,2]}}");

    (void)state;
    steps_expect(reply, "\"count\":4");
    steps_expect(reply, "\"mean\":2.5");
    steps_expect(reply, "\"max\":4");
    steps_expect(run("statistics",
                     "{\"parameters\":{\"values\":[{\"n\":1,\"s\":\"a\"},{\"n\":3,\"s\":\"b\"}],"
                     "\"field\":\"n\"}}"),
                 "\"sum\":4");
    steps_expect(
        run("statistics", "{\"parameters\":{\"values\":[{\"n\":1,\"s\":\"a\"}],\"field\":\"s\"}}"),
        "is no number");
    steps_expect(run("statistics", "{\"parameters\":{\"values\":[]}}"), "failed");
    steps_expect(run("statistics", "{\"parameters\":{\"values\":[0.25,0.25]}}"), "\"sum\":0.5,");
    steps_expect(run("statistics", "{\"parameters\":{\"values\":[0.1,0.2,99.7]}}"), "\"sum\":100,");
    steps_expect(run("statistics", "{\"parameters\":{\"values\":[10,90]}}"), "\"sum\":100,");
    steps_expect(run("statistics", "{\"task\":\"x\"}"), "let a step before this one");
}

static void dates_are_moved_and_compared(void **state)
{
    (void)state;
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-11-21\",\"amount\":30}}"),
                 "2026-12-21");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-11-21\",\"until\":\"2027-01-01\"}}"),
                 "\"distance\":41");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"next week\"}}"),
                 "date: 'next week' is no time: expected one such as");
    steps_expect(run("date", "{\"parameters\":{\"amount\":1.5}}"), "whole number");
    steps_expect(run("now", "{}"), "\"weekday\"");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-11-21T00:00:00\",\"amount\":90,"
                             "\"unit\":\"seconds\"}}"),
                 "2026-11-21T00:01:30");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-11-21T00:00:00\",\"amount\":90,"
                             "\"unit\":\"minute\"}}"),
                 "2026-11-21T01:30");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-11-21\",\"amount\":2,\"unit\":"
                             "\"years\"}}"),
                 "2028-11-21");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-11-21\",\"amount\":2,\"unit\":"
                             "\"fortnights\"}}"),
                 "\"retryable\":false");
}

/* A day is one of the clock on the wall, an hour 3600 seconds. */
static void a_zone_has_days_of_23_hours(void **state)
{
    (void)state;
    steps_expect(run("now", "{\"parameters\":{\"zone\":\"Asia/Kolkata\"}}"),
                 "\"offset\":\"+05:30\"");
    steps_expect(run("now", "{\"parameters\":{\"zone\":\"berlin\"}}"),
                 "zone: 'berlin' is no time zone: did you mean Europe/Berlin?");
    steps_expect(run("now", "{\"parameters\":{\"zone\":\"../passwd\"}}"), "is no time zone");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-03-28T12:00\",\"amount\":1,"
                             "\"zone\":\"Europe/Berlin\"}}"),
                 "\"date\":\"2026-03-29T12:00:00+02:00\"");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-03-28T12:00\",\"amount\":24,"
                             "\"unit\":\"hours\",\"zone\":\"Europe/Berlin\"}}"),
                 "\"date\":\"2026-03-29T13:00:00+02:00\"");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-03-28\",\"until\":\"2026-03-30\","
                             "\"zone\":\"Europe/Berlin\"}}"),
                 "\"distance\":2,");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-03-28\",\"until\":\"2026-03-30\","
                             "\"zone\":\"Europe/Berlin\",\"unit\":\"hours\"}}"),
                 "\"distance\":47,");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-01-31\",\"duration\":\"P1M1D\"}}"),
                 "\"date\":\"2026-03-01\"");
    steps_expect(run("date", "{\"parameters\":{\"date\":\"2026-01-31\",\"duration\":\"soon\"}}"),
                 "duration: 'soon' is no duration");
}

static void a_time_is_shown_in_zones(void **state)
{
    const char *reply =
        run("time", "{\"parameters\":{\"time\":1795233180,\"to\":[\"UTC\",\"Asia/Tokyo\"]}}");

    (void)state;
    steps_expect(reply, "[\"UTC\",\"2026-11-21T03:53:00Z\",\"+00:00\",\"Saturday\"]");
    steps_expect(reply, "[\"Asia/Tokyo\",\"2026-11-21T12:53:00+09:00\",\"+09:00\",\"Saturday\"]");
    steps_expect(run("time", "{\"parameters\":{\"time\":\"2026-03-29 02:30\","
                             "\"zone\":\"Europe/Berlin\",\"to\":\"America/New_York\"}}"),
                 "\"local\":\"2026-03-28T21:00:00-04:00\",\"time\":\"21:00:00\","
                 "\"date\":\"2026-03-28\",\"offset\":\"-04:00\",\"weekday\":\"Saturday\","
                 "\"week\":\"2026-W13\",\"dayOfYear\":87,\"skipped\":true");
    steps_expect(run("time", "{\"parameters\":{\"time\":\"2026-10-25 02:30\","
                             "\"zone\":\"Europe/Berlin\"}}"),
                 "\"repeated\":true");
    steps_expect(run("time", "{\"parameters\":{\"to\":[\"UTC\",\"Europe/Berlinn\"]}}"),
                 "to: 'Europe/Berlinn' is no time zone: did you mean Europe/Berlin?");
    steps_expect(run("time", "{\"parameters\":{\"to\":[3]}}"), "to: '?' is no time zone");
}

static void a_duration_is_converted_or_measured(void **state)
{
    (void)state;
    steps_expect(run("duration", "{\"parameters\":{\"value\":\"1h 30m\"}}"),
                 "{\"iso\":\"PT1H30M\",\"ms\":5400000,\"seconds\":5400,\"minutes\":90,"
                 "\"hours\":1.5,\"days\":0.0625}");
    steps_expect(run("duration", "{\"parameters\":{\"value\":90.5}}"), "\"iso\":\"PT1M30.5S\"");
    steps_expect(run("duration", "{\"parameters\":{\"from\":\"2026-03-28\",\"until\":"
                                 "\"2026-03-30\",\"zone\":\"Europe/Berlin\"}}"),
                 "\"text\":\"1 day 23 hours\"");
    steps_expect(run("duration", "{\"parameters\":{\"value\":\"P1M\"}}"), "no fixed length");
    steps_expect(run("duration", "{\"parameters\":{\"value\":1e12}}"), "is no duration");
    steps_expect(run("duration", "{}"), "give value");
}

/* "count the X" selects X, whatever the rest of the task is. */
static void a_task_names_what_it_counts(void **state)
{
    static const struct {
        const char *task, *subject, *said;
    } cases[] = {
        {"count the installs per day", "install", "installs"},
        {"Count how many upgrades there were each month", "upgrade", "upgrades"},
        {"count the class per hour", "class", "class"},
        {"count events by day", "", ""},
        {"", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(str_is(task_subject(cases[i].task, false), cases[i].subject));
        assert_true(str_is(task_subject(cases[i].task, true), cases[i].said));
    }
}

/* A cut within a character: the answer must still be UTF-8. */
static void long_words_of_many_bytes_do_not_break_the_answer(void **state)
{
    char json[2048] = "{\"parameters\":{\"text\":\"2026-11-21 ";
    size_t n = strlen(json);
    static const char between[] = "\",\"contains\":\"a";

    (void)state;
    for (int part = 0; part < 2; part++) {
        if (part == 0) {
            json[n++] = 'a';
        }
        for (int i = 0; i < 150; i++) {
            memcpy(json + n, "\xC3\xA4", 2);
            n += 2;
        }
        if (part == 0) {
            memcpy(json + n, between, sizeof between - 1);
            n += sizeof between - 1;
        }
    }
    memcpy(json + n, "\"}}", 4);
    steps_expect(run("count_per_day", json), "\"total\":1");
}

static int tear_down(void **state)
{
    (void)state;
    steps_forget();
    return 0;
}

/* A single count would look like the answer. */
static void a_task_that_wants_two_counts_is_refused(void **state)
{
    static const struct {
        const char *task;
        bool subjects;
        unsigned units;
    } cases[] = {{"count the installs and upgrades per day", true, 1},
                 {"count upgrades or errors", true, 0},
                 {"count the installs per day and per month", false, 2},
                 {"count all lines per day and month", false, 2},
                 {"count the installs per hour of the day", false, 1},
                 {"read it and count the errors per hour", false, 1},
                 {"count the installs and then the days", false, 0},
                 {"count the installs daily", false, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(task_has_subjects(cases[i].task), cases[i].subjects);
        assert_int_equal(task_units(cases[i].task), cases[i].units);
    }
    steps_expect(
        run("count_per_day",
            "{\"task\":\"count the installs and upgrades per day\"," AFTER("\"" LOG "\"") "}"),
        "more than one thing to count, beside 'install' too");
    steps_expect(
        run("count_per_day",
            "{\"task\":\"count the installs per day and per month\"," AFTER("\"" LOG "\"") "}"),
        "more than one of day, hour and month");
    steps_expect(run("count_per_day",
                     "{\"task\":\"count the installs and upgrades\","
                     "\"parameters\":{\"contains\":\"install\"}," AFTER("\"" LOG "\"") "}"),
                 "\"total\":");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_wants_two_counts_is_refused),
        cmocka_unit_test(the_card_is_one_that_a_supervisor_takes),
        cmocka_unit_test(an_expression_comes_by_parameter_or_by_task),
        cmocka_unit_test(installs_are_counted_per_day_from_the_step_before),
        cmocka_unit_test(counting_has_a_unit_and_a_word),
        cmocka_unit_test(counting_nothing_says_what_was_looked_for),
        cmocka_unit_test(a_word_of_a_line_is_whole_and_without_case),
        cmocka_unit_test(so_many_labels_are_counted_and_no_more),
        cmocka_unit_test(the_busiest_day_is_reported_in_words),
        cmocka_unit_test(rows_are_counted_by_a_column_or_a_pattern),
        cmocka_unit_test(labels_over_a_result_fail_and_over_a_limit_are_named),
        cmocka_unit_test(shares_add_up_to_a_hundred),
        cmocka_unit_test(statistics_describe_a_list_or_a_column),
        cmocka_unit_test(dates_are_moved_and_compared),
        cmocka_unit_test(a_zone_has_days_of_23_hours),
        cmocka_unit_test(a_time_is_shown_in_zones),
        cmocka_unit_test(a_duration_is_converted_or_measured),
        cmocka_unit_test(a_task_names_what_it_counts),
        cmocka_unit_test(long_words_of_many_bytes_do_not_break_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
