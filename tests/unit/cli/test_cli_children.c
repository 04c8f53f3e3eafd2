/* Steps that child plans do, and tasks with templates, as people see them. */
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/view/children.h"
#include "tests/support/cmocka.h"

static void assert_words(const char *kind, const char *json, const char *expected)
{
    cJSON *children = cJSON_Parse(json);
    char text[96];

    children_words(kind, children, text, sizeof text);
    assert_string_equal(text, expected);
    cJSON_Delete(children);
}

static void a_map_says_how_many_items_are_over(void **state)
{
    (void)state;
    assert_words("forEach", "{\"kind\":\"forEach\"}", "");
    assert_words("forEach", "{\"planId\":\"P\",\"items\":3,\"steps\":3}", "0 of 3");
    assert_words(
        "forEach",
        "{\"planId\":\"P\",\"items\":3,\"steps\":3,\"over\":3,\"completed\":2,\"failed\":1}",
        "3 of 3, 1 failed");
    assert_words("forEach", "{\"planId\":\"P\",\"items\":2,\"steps\":4,\"over\":3}",
                 "2 items, 3 of 4 steps");
    assert_words("forEach", "{\"planId\":\"P\",\"items\":1,\"steps\":2}", "1 item, 0 of 2 steps");
    assert_words("forEach", "{\"planId\":\"P\"}", "0 of 0");
}

static void a_loop_says_its_rounds_of_a_view_and_of_an_event(void **state)
{
    (void)state;
    assert_words("repeat", "{\"planId\":\"P\",\"rounds\":1,\"steps\":1}", "1 round");
    assert_words("repeat", "{\"planId\":\"P\",\"round\":3,\"steps\":1,\"over\":1}", "4 rounds");
    assert_words("repeat", "{\"planId\":\"P\",\"rounds\":2,\"steps\":2,\"over\":1}",
                 "2 rounds, 1 of 2 steps");
    assert_words("plan", "{\"planId\":\"P\",\"steps\":5,\"over\":2,\"failed\":1}",
                 "2 of 5 steps, 1 failed");
}

static void a_bar_is_for_what_has_an_end(void **state)
{
    cJSON *half = cJSON_Parse("{\"planId\":\"P\",\"steps\":4,\"over\":2}");
    cJSON *nothing = cJSON_Parse("{}");

    (void)state;
    assert_true(children_percent("forEach", half) == 50);
    assert_true(children_percent("plan", half) == 50);
    assert_true(children_percent("repeat", half) < 0);
    assert_true(children_percent("forEach", nothing) < 0);
    cJSON_Delete(half);
    cJSON_Delete(nothing);
}

static void assert_task(const char *task, const char *expected)
{
    char text[48];

    children_task(text, sizeof text, task);
    assert_string_equal(text, expected);
}

static void a_template_is_the_name_of_what_is_not_there_yet(void **state)
{
    (void)state;
    assert_task("read {{log.name}}", "read <log.name>");
    assert_task("{{ results.total.errors }} errors in {{results.total.logs}}",
                "<total.errors> errors in <total.logs>");
    assert_task("no end {{ here", "no end {{ here");
    assert_task("{{}}", "<>");
    assert_task("plain", "plain");
    assert_task("a\nb {{x\n}}", "a b <x >");
    assert_task("{{results.first.a.b.c}} and {{results.second.a.b.c}} and more",
                "<first.a.b.c> and <second.a.b.c> and more");
    assert_task("{{results.first.a.b.c}} and {{results.second.a.b.c}} and more words here",
                "<first.a.b.c> and <second.a.b.c> and more…");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_says_how_many_items_are_over),
        cmocka_unit_test(a_loop_says_its_rounds_of_a_view_and_of_an_event),
        cmocka_unit_test(a_bar_is_for_what_has_an_end),
        cmocka_unit_test(a_template_is_the_name_of_what_is_not_there_yet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
