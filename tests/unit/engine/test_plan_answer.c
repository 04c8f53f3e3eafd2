/* The answer of a plan as one text: its parts, what was not done and why, what is not whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

static struct house *open_house(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
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

static const char *answer(struct house *h, const char *id)
{
    return house_get(h, house_ok(h, "plan.result", "'planId':'%s'", id), "aggregatedResult");
}

static void expect_answer(struct house *h, const char *id, const char *want)
{
    const char *have = answer(h, id);

    if (have == NULL || strcmp(have, want) != 0) {
        fail_msg("%s\nis not\n%s", have != NULL ? have : "(none)", want);
    }
}

static void one_result_is_the_answer_and_several_are_its_parts(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");

    (void)state;
    does(h, "do a", "'result':{'text':'A\\nB'}");
    expect_answer(h, id, "A\nB");
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
               "b", ",'dependsOn':[]") "," STEP("c", ",'dependsOn':['a'],'when':{'results.a':"
                                                     "'z'}") "]}");
    does(h, "do a", "'result':{'text':'A'}");
    does(h, "do b", "'result':{'data':{'n':1}}");
    expect_answer(h, id, "**do a**\nA\n\n---\n\n**do b**\n{\"n\":1}");
    house_close(h);
}

/* Of a step that a template fills the task is shown as it was sent. */
static void a_part_has_the_task_as_it_was_sent(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") ",{'stepId':'b','agentId':'calc','skill':"
                                                        "'do','task':'take {{results.a}}'}]}");

    (void)state;
    does(h, "do a", "'result':{'text':'A'}");
    does(h, "take A", "'result':{'text':'B'}");
    expect_answer(h, id, "**do a**\nA\n\n---\n\n**take A**\nB");
    house_close(h);
}

static void what_was_not_done_stands_at_the_end_on_a_line_each(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
               "b", ",'dependsOn':[],'onFailure':'continue'") "," STEP("c",
                                                                       ",'dependsOn':['b']") "]}");

    (void)state;
    does(h, "do a", "'result':{'text':'A'}");
    fails(h, "no\\n\\u007fentry");
    expect_answer(h, id,
                  "A\n\n---\n\n**Not done**\n- Step 2 \"do b\" failed: no  entry\n"
                  "- Step 3 \"do c\" was skipped: A dependency failed");
    house_close(h);
}

/* A task has 120 bytes in such a line. */
static void a_long_task_is_cut_in_the_list(void **state)
{
    (void)state;
    for (int n = 120; n <= 121; n++) {
        struct house *h = open_house();
        char task[128];
        char want[256];
        const char *id;
        memset(task, 't', (size_t)n);
        task[n] = 0;
        id = house_submit(h,
                          "'plan':{'goal':'g','steps':[" STEP(
                              "a", ",'dependsOn':[]") ",{'stepId':'b','agentId':'calc','skill':"
                                                      "'do','task':'%s','dependsOn':[],"
                                                      "'onFailure':'continue'}]}",
                          task);
        does(h, "do a", "'result':{'text':'A'}");
        fails(h, "no");
        (void)snprintf(want, sizeof want,
                       "A\n\n---\n\n**Not done**\n- Step 2 \"%.120s%s\" failed: no", task,
                       n > 120 ? "..." : "");
        expect_answer(h, id, want);
        house_close(h);
    }
}

static void a_timeout_names_its_time_and_its_setting(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(
        h,
        "'plan':{'goal':'g','steps':[" STEP(
            "a", ",'timeoutMs':5000,'maxRetries':0,'onFailure':'continue'") "," STEP("c", "") "]}");

    (void)state;
    house_wait(h, 9000);
    house_answer(h, "calc", "c", "'outcome':'completed','result':{'text':'C'}");
    house_wait(h, 1);
    expect_answer(h, id,
                  "C\n\n---\n\n**Not done**\n- Step 1 \"do a\" failed: Step execution timeout; no "
                  "result after 5 s (timeoutMs: 5000); set timeoutMs of the step, or stepTimeoutMs "
                  "of the policy");
    house_close(h);
}

static void results_that_are_not_whole_are_named(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");

    (void)state;
    does(h, "do a", "'result':{'text':'A','truncated':true}");
    expect_answer(h, id,
                  "A\n\n---\n\n**Not whole**\n- Step 1 \"do a\" gave only a part of its result");
    /* after what was not done, in the same end */
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                             "b", ",'onFailure':'continue'") "]}");
    does(h, "do a", "'result':{'text':'A','truncated':true}");
    fails(h, "no");
    expect_answer(h, id,
                  "A\n\n---\n\n**Not done**\n- Step 2 \"do b\" failed: no\n\n**Not whole**\n"
                  "- Step 1 \"do a\" gave only a part of its result");
    house_close(h);
}

/* Whole parts only; one more byte than fits, and the last part is counted instead. */
static void parts_that_do_not_fit_are_counted(void **state)
{
    enum { PART = LIMIT_RESULT_BYTES / 5 * 2 };
    struct house *h = open_house();
    char *text = malloc(PART + 1);
    const char *id;
    const char *have;

    (void)state;
    assert_non_null(text);
    memset(text, 'w', PART);
    text[PART] = 0;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                             "b", ",'dependsOn':[]") "," STEP("c", ",'dependsOn':[]") "]}");
    for (int i = 0; i < 3; i++) {
        house_done(h, "calc", "'result':{'text':'%s'}", text);
        house_wait(h, 1);
    }
    free(text);
    have = answer(h, id);
    assert_non_null(have);
    assert_non_null(strstr(have, "\n\n[cut: 2 of 3 parts fit]"));
    assert_null(strstr(have, "do c"));
    assert_non_null(strstr(have, "do b"));
    house_close(h);
}

static void a_plan_without_results_says_why(void **state)
{
    struct house *h = open_house();
    const char *id =
        house_submit(h, "'dryRun':true,'plan':{'goal':'g','steps':[" STEP("a", "") "]}");

    (void)state;
    house_wait(h, 1);
    expect_answer(h, id, "Nothing was run: it was a dry run.");
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_wait(h, 3000);
    expect_answer(h, id, "The plan was cancelled before it had a result.");
    house_close(h);
    h = open_house();
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'maxRetries':0") "]}");
    house_wait(h, 1);
    fails(h, "no");
    expect_answer(h, id, "I wasn't able to complete the plan due to errors.");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_result_is_the_answer_and_several_are_its_parts),
        cmocka_unit_test(a_part_has_the_task_as_it_was_sent),
        cmocka_unit_test(what_was_not_done_stands_at_the_end_on_a_line_each),
        cmocka_unit_test(a_long_task_is_cut_in_the_list),
        cmocka_unit_test(a_timeout_names_its_time_and_its_setting),
        cmocka_unit_test(results_that_are_not_whole_are_named),
        cmocka_unit_test(parts_that_do_not_fit_are_counted),
        cmocka_unit_test(a_plan_without_results_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
