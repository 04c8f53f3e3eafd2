/* What goes with a step's task: the results before it, as text and as data, the steps that have
 * none, and the plan's state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

enum { NOT_COMPLETED_MAX = 32 };

static struct house *open_house(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 40);
    return h;
}

static void does(struct house *h, const char *task, const char *fields)
{
    house_is(h, house_work(h, "calc", NULL), "task", task);
    house_done(h, "calc", "%s", fields);
    house_wait(h, 1);
}

static void fails(struct house *h, const char *why)
{
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'%s','retryable':false}",
                 why);
    house_wait(h, 1);
}

static void expect_text(struct house *h, const char *want)
{
    const char *have = house_get(h, house_work(h, "calc", NULL), "context.text");

    if (have == NULL || strcmp(have, want) != 0) {
        fail_msg("%s\nis not\n%s", have != NULL ? have : "(none)", want);
    }
}

static void the_first_step_has_its_task_alone(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    expect_text(h, "Task: do a");
    house_says(h, house_work(h, "calc", NULL),
               "context.isPlanContext=true; context.stepId=a; context.task_context.task_id=a; "
               "context.task_context.current_task=do a; context.dependencies=-; "
               "context.notCompleted=-; context.state=-; tools=-; turns=-; turnsLeft=-; "
               "context.task_context.dependencies_completed=-");
    house_close(h);
}

/* In a chain a step has the results before it as text, and that of the step before as data. */
static void a_chain_hands_on_all_texts_and_the_last_data(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "," STEP(
                              "c", "") "]},'policy':{'contextScope':'all'}");
    does(h, "do a", "'result':{'text':'one\\nmore'}");
    does(h, "do b", "'result':{'text':'B','data':{'n':7}}");
    expect_text(h, "Previous step results:\n- Step 1 (calc): one\n  more\n- Step 2 (calc): B\n\n"
                   "Current task: do c");
    house_says(h, house_work(h, "calc", NULL),
               "context.dependencies.#=1; context.dependencies.0.stepId=b; "
               "context.dependencies.0.agentId=calc; context.dependencies.0.result.text=B; "
               "context.dependencies.0.result.data.n=7; context.dependencies.0.truncated=-; "
               "context.task_context.dependencies_completed=[{\"n\":7}]; "
               "context.task_context.plan_position=Step 3 of 3");
    house_close(h);
}

static void a_step_without_context_has_nothing_of_others(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                              "b", ",'contextScope':'none'") "]}");
    does(h, "do a", "'result':{'text':'A'},'state':{'k':1}");
    expect_text(h, "Task: do b");
    house_says(h, house_work(h, "calc", NULL),
               "context.dependencies=-; context.state=-; "
               "context.task_context.dependencies_completed=-");
    house_close(h);
}

/* A value is data, or else text, or else the list of artifacts. */
static void values_of_dependencies_are_data_or_text(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
               "b",
               ",'dependsOn':"
               "[]") "," STEP("c", ",'dependsOn':[]") "," STEP("d",
                                                               ",'dependsOn':['c','a','b']") "]}");
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'A','data':[1,2]}");
    house_answer(h, "calc", "b", "'outcome':'completed','result':{'text':'B'}");
    house_answer(h, "calc", "c", "'outcome':'completed','result':{}");
    house_wait(h, 1);
    house_says(h, house_work(h, "calc", NULL),
               "task=do d; context.dependencies.#=3; "
               "context.task_context.dependencies_completed.#=3");
    for (int i = 0; i < 3; i++) {
        char path[64];
        const char *id;
        const char *value;
        (void)snprintf(path, sizeof path, "context.dependencies.%d.stepId", i);
        id = house_get(h, house_work(h, "calc", NULL), path);
        (void)snprintf(path, sizeof path, "context.task_context.dependencies_completed.%d", i);
        value = house_get(h, house_work(h, "calc", NULL), path);
        assert_string_equal(value, id[0] == 'a' ? "[1,2]" : id[0] == 'b' ? "B" : "");
    }
    house_close(h);
}

static void the_state_is_merged_and_stands_in_no_result(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "," STEP("c", "") "]}");
    does(h, "do a", "'result':{'text':'A'},'state':{'k':1,'old':2}");
    house_says(h, house_work(h, "calc", NULL),
               "context.state.k=1; context.state.old=2; context.dependencies.0.result.text=A; "
               "context.dependencies.0.result.state=-");
    does(h, "do b", "'result':{'text':'B'},'state':{'k':5,'old':null}");
    house_says(h, house_work(h, "calc", NULL),
               "context.state={\"k\":5}; context.dependencies.0.result={\"text\":\"B\"}");
    house_close(h);
}

/* ---- steps without a result ---- */

static void steps_without_a_result_are_told_with_the_reason(void **state)
{
    struct house *h = open_house();

    (void)state;
    (void)house_submit(
        h,
        "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
            "b",
            ",'maxRetries':0,'onFailure':"
            "'continue'") "," STEP("s", ",'when':{'results.a':'z'}") "," STEP("d",
                                                                              "") "]},"
                                                                                  "'policy':{"
                                                                                  "'contextScope':"
                                                                                  "'all'}");
    does(h, "do a", "'result':{'text':'A'}");
    fails(h, "no\\nentry");
    expect_text(
        h, "Previous step results:\n- Step 1 (calc): A\n\nSteps without a result:\n"
           "- Step 2 (calc): failed: no entry\n- Step 3 (calc): skipped: results.a is \"A\"\n\n"
           "Current task: do d");
    house_says(h, house_work(h, "calc", NULL),
               "context.notCompleted.#=2; context.notCompleted.0.stepId=b; "
               "context.notCompleted.0.status=failed; context.notCompleted.0.agentId=calc; "
               "context.notCompleted.0.errorClass=PERMISSION_DENIED; "
               "context.notCompleted.0.error=no\nentry; "
               "context.notCompleted.1.reason=condition; context.notCompleted.1.errorClass=-");
    house_close(h);
}

static void the_newest_of_many_steps_without_a_result_are_named(void **state)
{
    (void)state;
    for (int n = NOT_COMPLETED_MAX; n <= NOT_COMPLETED_MAX + 1; n++) {
        struct house *h = open_house();
        struct buf steps;
        const char *text;
        buf_init(&steps, 65536);
        for (int i = 0; i < n; i++) {
            buf_printf(&steps,
                       "{'stepId':'s%d','agentId':'calc','skill':'do','task':'t','dependsOn':[],"
                       "'maxRetries':0,'onFailure':'continue'},",
                       i);
        }
        buf_add_cstr(&steps, "{'stepId':'z','agentId':'calc','skill':'do','task':'z','runIf':"
                             "'always','dependsOn':[");
        for (int i = 0; i < n; i++) {
            buf_printf(&steps, "%s's%d'", i > 0 ? "," : "", i);
        }
        buf_add_cstr(&steps, "]}");
        (void)house_submit(h, "'plan':{'goal':'g','steps':[%s]}", buf_cstr(&steps));
        for (int i = 0; i < n; i++) {
            fails(h, "no");
        }
        text = house_get(h, house_work(h, "calc", NULL), "context.text");
        house_is(h, house_work(h, "calc", NULL), "context.notCompleted.#", "32");
        assert_int_equal(strstr(text, "[1 earlier ones left out]") != NULL, n > NOT_COMPLETED_MAX);
        assert_int_equal(strstr(text, "- Step 1 (calc)") != NULL, n == NOT_COMPLETED_MAX);
        assert_non_null(strstr(text, "- Step 2 (calc): failed: no\n"));
        buf_done(&steps);
        house_close(h);
    }
}

/* ---- room ---- */

/* What a context may have of one result: more is cut, and says how to get the whole. */
static void a_large_result_is_cut_in_the_text_and_whole_in_the_data(void **state)
{
    struct house *h = open_house();
    char *big = malloc(100001);
    const char *text;

    (void)state;
    assert_non_null(big);
    memset(big, 'w', 100000);
    big[100000] = 0;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    house_done(h, "calc", "'result':{'text':'%s'}", big);
    house_wait(h, 1);
    free(big);
    text = house_get(h, house_work(h, "calc", NULL), "context.text");
    assert_true(strlen(text) < 90000);
    assert_non_null(strstr(text, " left out; whole: {{results.a}}\n"));
    house_says(h, house_work(h, "calc", NULL), "context.dependencies.0.truncated=-");
    assert_int_equal(
        strlen(house_get(h, house_work(h, "calc", NULL), "context.dependencies.0.result.text")),
        100000);
    text =
        house_get(h, house_work(h, "calc", NULL), "context.task_context.dependencies_completed.0");
    assert_non_null(strstr(text, " left out; whole: {{results.a}}"));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_has_its_task_alone),
        cmocka_unit_test(a_chain_hands_on_all_texts_and_the_last_data),
        cmocka_unit_test(a_step_without_context_has_nothing_of_others),
        cmocka_unit_test(values_of_dependencies_are_data_or_text),
        cmocka_unit_test(the_state_is_merged_and_stands_in_no_result),
        cmocka_unit_test(steps_without_a_result_are_told_with_the_reason),
        cmocka_unit_test(the_newest_of_many_steps_without_a_result_are_named),
        cmocka_unit_test(a_large_result_is_cut_in_the_text_and_whole_in_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
