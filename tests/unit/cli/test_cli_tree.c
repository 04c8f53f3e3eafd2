/* The line of a step in the tree. */
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/view/tree_node.h"
#include "tests/support/cmocka.h"

static struct tree_node node_of(const char *step)
{
    struct tree_node node = {{0}};
    cJSON *json = cJSON_Parse(step);

    tree_node_fill(&node, json);
    cJSON_Delete(json);
    return node;
}

static bool apply(struct tree_node *node, const char *type, const char *event)
{
    cJSON *json = cJSON_Parse(event);
    const bool changed = tree_node_update(node, type, json);

    cJSON_Delete(json);
    return changed;
}

static void assert_line(const struct tree_node *node, int columns, const char *expected)
{
    const struct cli cli = {.color = false};
    struct buf line;

    buf_init(&line, 4096);
    tree_node_line(&cli, node, true, columns, &line);
    assert_string_equal(buf_cstr(&line), expected);
    buf_done(&line);
}

static void progress_is_a_bar_as_long_as_the_step_runs(void **state)
{
    struct tree_node node = node_of("{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"add\"}");

    (void)state;
    assert_true(apply(&node, "plan_step_started", "{\"attempt\":1}"));
    assert_line(&node, 0, "▸ a              calc     add");
    assert_true(apply(&node, "plan_step_progress", "{\"percent\":0}"));
    assert_line(&node, 0, "▸ a              calc     [░░░░░░░░░░]   0 %  add");
    assert_true(apply(&node, "plan_step_progress", "{\"percent\":45.5,\"text\":\"half\"}"));
    assert_line(&node, 0, "▸ a              calc     [████░░░░░░]  46 %  add  — half");
    assert_true(apply(&node, "plan_step_progress", "{\"percent\":1e9}"));
    assert_line(&node, 0, "▸ a              calc     [██████████] 100 %  add");
    assert_true(apply(&node, "plan_step_started", "{\"attempt\":2}"));
    assert_line(&node, 0, "▸ a              calc     add  (attempt 2)");
    assert_true(apply(&node, "plan_step_completed",
                      "{\"stepId\":\"a\",\"status\":\"completed\",\"durationMs\":5}"));
    assert_line(&node, 0, "✓ a              calc     add  (2 attempts)  — 5 ms");
}

static void a_step_of_a_child_plan_is_one_line_with_its_counts(void **state)
{
    struct tree_node node = node_of("{\"stepId\":\"a\",\"task\":\"read {{log.name}}\","
                                    "\"children\":{\"kind\":\"forEach\"}}");
    struct tree_node loop =
        node_of("{\"stepId\":\"b\",\"task\":\"look\",\"status\":\"in_progress\","
                "\"children\":{\"kind\":\"repeat\",\"planId\":\"P\","
                "\"rounds\":2,\"steps\":1}}");

    (void)state;
    assert_line(&node, 0, "· a              forEach  read <log.name>");
    assert_true(
        apply(&node, "plan_step_started", "{\"attempt\":1,\"task\":\"read {{log.name}}\"}"));
    assert_line(&node, 0, "▸ a              forEach  read <log.name>");
    assert_true(apply(&node, "plan_step_progress",
                      "{\"percent\":33,\"text\":\"1 of 3\",\"data\":{\"planId\":\"P\","
                      "\"items\":4,\"steps\":4,\"over\":2,\"failed\":1}}"));
    assert_line(
        &node, 0,
        "▸ a              forEach  [█████░░░░░]  50 %  read <log.name>  — 2 of 4, 1 failed");
    assert_true(apply(&node, "plan_step_completed",
                      "{\"stepId\":\"a\",\"status\":\"completed\",\"durationMs\":5}"));
    assert_line(&node, 0, "✓ a              forEach  read <log.name>  — 2 of 4, 1 failed, 5 ms");
    assert_line(&loop, 0, "▸ b              repeat   look  — 2 rounds");
    assert_true(apply(&loop, "plan_step_round",
                      "{\"rounds\":2,\"delayMs\":200,\"condition\":\"results.b.state is 1\"}"));
    assert_line(&loop, 0,
                "▸ b              repeat   look  — round 2 is over, again in 200 ms: b.state is 1");
    assert_true(apply(&loop, "plan_step_completed",
                      "{\"stepId\":\"b\",\"status\":\"failed\",\"error\":\"no end\"}"));
    assert_line(&loop, 0, "✗ b              repeat   look  — 2 rounds; no end");
}

static void calls_of_an_agent_are_shown_turn_by_turn(void **state)
{
    struct tree_node node = node_of(
        "{\"stepId\":\"a\",\"agentId\":\"llm\",\"task\":\"find out\",\"status\":\"in_progress\"}");

    (void)state;
    assert_true(apply(&node, "calls_started", "{\"turn\":2,\"calls\":3}"));
    assert_line(&node, 0, "▸ a              llm      find out  — turn 2: 3 calls");
    assert_true(apply(&node, "plan_step_progress",
                      "{\"percent\":33,\"text\":\"1 of 3\",\"data\":{\"planId\":\"P\",\"steps\":3,"
                      "\"over\":1}}"));
    assert_line(&node, 0, "▸ a              llm      [███░░░░░░░]  33 %  find out  — 1 of 3 steps");
    assert_true(apply(&node, "calls_finished", "{\"turn\":2}"));
    assert_line(&node, 0, "▸ a              llm      find out  — turn 2 is over");
}

static void what_a_step_waits_for_is_worth_more_than_its_task(void **state)
{
    const struct tree_node node =
        node_of("{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"Add up the very large one\","
                "\"waiting\":{\"text\":\"waiting for step b\"}}");

    (void)state;
    assert_line(&node, 0,
                "· a              calc     Add up the very large one  — waiting for step b");
    assert_line(&node, 73,
                "· a              calc     Add up the very large one  — waiting for step b");
    assert_line(&node, 72,
                "· a              calc     Add up the very large o…  — waiting for step b");
    assert_line(&node, 40, "· a              calc     Add up the … …");
    assert_line(&node, 2, "·…");
}

/* A line that is wider than the terminal would be two, and the next drawing would begin in the
 * wrong line. */
static void
a_line_is_as_wide_as_its_characters_are_and_a_wide_terminal_shows_the_whole_task(void **state)
{
    struct tree_node node = node_of(
        "{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"Count 東京都渋谷区 once more\"}");

    (void)state;
    assert_line(&node, 55, "· a              calc     Count 東京都渋谷区 once more");
    assert_line(&node, 42, "· a              calc     Count 東京都渋…");
    assert_line(&node, 41, "· a              calc     Count 東京都渋…");
    assert_line(&node, 40, "· a              calc     Count 東京都…");
    node = node_of(
        "{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"Count the stock of each shop and "
        "compare it with what was sold in the last week\"}");
    assert_line(&node, 0, "· a              calc     Count the stock of each shop and compare it…");
    assert_line(
        &node, 110,
        "· a              calc     Count the stock of each shop and compare it with what was "
        "sold in the last week");
}

static void a_skipped_step_says_what_its_condition_found(void **state)
{
    struct tree_node node =
        node_of("{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"Add up the very large one\","
                "\"status\":\"skipped\",\"reason\":\"condition\","
                "\"condition\":\"results.rows.rowCount is 6; results.b is \\\"x\\\"\"}");

    (void)state;
    assert_line(
        &node, 0,
        "- a              calc     Add up the very large one  — skipped, as rows.rowCount is "
        "6; b is \"x\"");
    node = node_of("{\"stepId\":\"a\",\"agentId\":\"calc\",\"task\":\"Add up the very large one\","
                   "\"status\":\"skipped\",\"reason\":\"condition\","
                   "\"condition\":\"results.errors.rowCount is 6\"}");
    assert_line(&node, 80,
                "- a              calc     Add up the very l…  — skipped, as errors.rowCount is 6");
    node = node_of("{\"stepId\":\"a\",\"task\":\"add\",\"status\":\"skipped\","
                   "\"reason\":\"condition\"}");
    assert_line(&node, 0, "- a                       add  — skipped by a condition");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_is_a_bar_as_long_as_the_step_runs),
        cmocka_unit_test(a_step_of_a_child_plan_is_one_line_with_its_counts),
        cmocka_unit_test(calls_of_an_agent_are_shown_turn_by_turn),
        cmocka_unit_test(what_a_step_waits_for_is_worth_more_than_its_task),
        cmocka_unit_test(
            a_line_is_as_wide_as_its_characters_are_and_a_wide_terminal_shows_the_whole_task),
        cmocka_unit_test(a_skipped_step_says_what_its_condition_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
