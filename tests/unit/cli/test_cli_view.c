/* Output for people: one line per event, tables, durations, safe texts. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/event_line.h"
#include "supervisor/cli/view/table.h"
#include "supervisor/core/run/record.h"
#include "tests/support/cmocka.h"

static void assert_line(const char *json, const char *expected)
{
    cJSON *event = cJSON_Parse(json);
    struct buf line;

    assert_non_null(event);
    buf_init(&line, 65536);
    event_line(event, &line);
    assert_string_equal(buf_cstr(&line), expected);
    buf_done(&line);
    cJSON_Delete(event);
}

static void each_event_is_a_sentence_that_leaves_out_what_is_not_there(void **state)
{
    (void)state;
    assert_line(
        "{\"type\":\"plan_step_started\",\"stepId\":\"a\",\"agentId\":\"calc\",\"attempt\":1}",
        "a → calc");
    assert_line("{\"type\":\"plan_step_started\",\"stepId\":\"a\",\"attempt\":2,\"task\":\"add\"}",
                "a, attempt 2: add");
    assert_line(
        "{\"type\":\"fallback_used\",\"stepId\":\"a\",\"class\":\"RATE_LIMITED\",\"action\":"
        "\"wait_and_retry\",\"delayMs\":1000,\"error\":\"slow down\"}",
        "a wait_and_retry in 1.0 s, after RATE_LIMITED: slow down");
    assert_line("{\"type\":\"replan_finished\",\"stepId\":\"a\",\"ok\":true,\"revision\":2,"
                "\"newSteps\":2,\"steps\":[{\"stepId\":\"x\"},{\"stepId\":\"y\"}]}",
                "a, revision 2, new: x, y");
    assert_line("{\"type\":\"replan_finished\",\"stepId\":\"a\",\"ok\":false,\"revision\":1,"
                "\"reason\":\"no idea\"}",
                "a, no new plan: no idea");
    assert_line(
        "{\"type\":\"quality_gate_failed\",\"stepId\":\"a\",\"missing\":[\"sales\",\"costs\"]}",
        "a; missing: sales, costs");
    assert_line("{\"type\":\"quality_gate_error\",\"stepId\":\"a\",\"error\":\"no answer\"}",
                "a, it goes on all the same: no answer");
    assert_line("{\"type\":\"quality_gate_error\",\"stepId\":\"a\",\"failClosed\":true}",
                "a, so it fails");
    assert_line("{\"type\":\"agent_handoff\",\"fromAgent\":{\"agentId\":\"a\"},\"toAgent\":{"
                "\"agentId\":\"b\"},\"reason\":\"agent_request\",\"planStepId\":\"s\"}",
                "a → b for s (agent_request)");
    assert_line("{\"type\":\"plan_paused\",\"reason\":\"signoff\",\"reviewId\":\"P\"}",
                "signoff, baton approve P");
    assert_line("{\"type\":\"review_voided\",\"reviewId\":\"P/r2\",\"revision\":3}",
                "P/r2, revision 3, as the plan changes");
    assert_line("{\"type\":\"plan_step_completed\",\"stepId\":\"a\",\"status\":\"cancelled\","
                "\"reason\":\"cancelled\",\"stop\":\"fenced\"}",
                "a cancelled (cancelled), stop fenced");
}

static void event_that_nobody_knows_yet_is_told_by_its_members(void **state)
{
    (void)state;
    assert_line("{\"seq\":7,\"type\":\"moon_rose\",\"planId\":\"p\",\"stepId\":\"a\",\"n\":3,"
                "\"deep\":{\"x\":1}}",
                "stepId=a n=3");
}

static void texts_of_others_stay_in_their_line_and_are_cut(void **state)
{
    char json[1200];
    cJSON *event;
    struct buf line;

    (void)state;
    assert_line("{\"type\":\"plan_modified\",\"kind\":\"insert\",\"revision\":2,\"reasoning\":"
                "\"a\\nb\\u001b[2J\\u202e\"}",
                "insert, revision 2: a b?[2J???");
    (void)snprintf(json, sizeof json, "{\"type\":\"agent_up\",\"agentId\":\"%0900d\"}", 7);
    event = cJSON_Parse(json);
    buf_init(&line, 65536);
    event_line(event, &line);
    assert_true(line.len < 420);
    buf_done(&line);
    cJSON_Delete(event);
}

/* A public event without a template would be shown by its members, and nobody would notice. */
static void every_public_event_has_a_sentence(void **state)
{
    char json[128];

    (void)state;
    for (int t = 0; t < REC_COUNT; t++) {
        cJSON *event;
        struct buf line;
        if (!record_is_public((enum record_type)t)) {
            continue;
        }
        (void)snprintf(json, sizeof json, "{\"type\":\"%s\",\"x\":1}",
                       record_wire_type((enum record_type)t));
        event = cJSON_Parse(json);
        buf_init(&line, 65536);
        event_line(event, &line);
        if (strstr(buf_cstr(&line), "x=1") != NULL) {
            fail_msg("%s has no sentence", record_wire_type((enum record_type)t));
        }
        buf_done(&line);
        cJSON_Delete(event);
    }
}

static void only_handoffs_that_agents_ask_for_are_news(void **state)
{
    cJSON *event = cJSON_Parse("{\"type\":\"agent_handoff\",\"reason\":\"plan_step\"}");

    (void)state;
    assert_null(event_title(event));
    (void)cJSON_ReplaceItemInObjectCaseSensitive(event, "reason",
                                                 cJSON_CreateString("agent_request"));
    assert_string_equal(event_title(event), "handoff");
    cJSON_Delete(event);
}

static void assert_table(struct table *t, int width, int rows, const char *expected)
{
    struct buf out;

    buf_init(&out, 65536);
    table_write(t, width, rows, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void columns_are_aligned_by_characters_and_empty_ones_left_out(void **state)
{
    static const char *const heads[] = {"name", "gone", ">n", "last", NULL};
    struct table *t = table_new(heads);

    (void)state;
    for (int i = 0; i < 3; i++) {
        table_cell(t, "%s", i == 0 ? "ä→b" : "plain");
        table_cell(t, "%s", "");
        table_cell(t, "%d", i * 50);
        table_cell(t, "%s", i == 1 ? "x\ny\x1b" : "");
    }
    assert_table(t, 0, 0, "name     n  last\nä→b      0\nplain   50  x y?\nplain  100\n");
    assert_table(t, 6, 1, "name …\nä→b  …\n"); /* what is cut has a mark */
    table_free(t);
}

static void table_without_rows_prints_nothing(void **state)
{
    static const char *const heads[] = {"name", NULL};
    struct table *t = table_new(heads);

    (void)state;
    assert_table(t, 0, 0, "");
    table_free(t);
}

static void one_line_is_cut_at_a_whole_character(void **state)
{
    char to[6];
    char same[] = "a\tb\nc";

    (void)state;
    cli_one_line(to, sizeof to, "abc→d");
    assert_string_equal(to, "abc");
    cli_one_line(same, sizeof same, same);
    assert_string_equal(same, "a b c");
}

static void what_is_cut_from_a_line_leaves_a_mark(void **state)
{
    char to[9];

    (void)state;
    cli_cut_line(to, sizeof to, "12345678");
    assert_string_equal(to, "12345678");
    cli_cut_line(to, sizeof to, "123456789");
    assert_string_equal(to, "12345…");
    cli_cut_line(to, sizeof to, "1234→→");
    assert_string_equal(to, "1234…");
}

static void amounts_are_short_and_exact(void **state)
{
    static const struct {
        double micros;
        const char *text;
    } rows[] = {{0, "0.00"}, {1500000, "1.50"}, {12, "0.000012"}, {123400, "0.1234"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_format_micros(rows[i].micros, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

static void step_is_named_by_id_or_number_and_the_living_one_counts(void **state)
{
    cJSON *view = cJSON_Parse("{\"planId\":\"p\",\"steps\":[{\"stepId\":\"a\",\"superseded\":true},"
                              "{\"stepId\":\"b\"},{\"stepId\":\"a\"},{\"stepId\":\"1\"}]}");

    (void)state;
    assert_int_equal(cli_step_index(view, "a"), 2);
    assert_int_equal(cli_step_index(view, "2"), 1);
    assert_int_equal(cli_step_index(view, "1"), 3);
    assert_int_equal(cli_step_index(view, "5"), -1);
    assert_int_equal(cli_step_index(view, "0"), -1);
    cJSON_Delete(view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_is_a_sentence_that_leaves_out_what_is_not_there),
        cmocka_unit_test(event_that_nobody_knows_yet_is_told_by_its_members),
        cmocka_unit_test(texts_of_others_stay_in_their_line_and_are_cut),
        cmocka_unit_test(every_public_event_has_a_sentence),
        cmocka_unit_test(only_handoffs_that_agents_ask_for_are_news),
        cmocka_unit_test(columns_are_aligned_by_characters_and_empty_ones_left_out),
        cmocka_unit_test(table_without_rows_prints_nothing),
        cmocka_unit_test(one_line_is_cut_at_a_whole_character),
        cmocka_unit_test(what_is_cut_from_a_line_leaves_a_mark),
        cmocka_unit_test(amounts_are_short_and_exact),
        cmocka_unit_test(step_is_named_by_id_or_number_and_the_living_one_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
