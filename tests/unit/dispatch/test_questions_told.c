/* The words of questions and contexts, as agents read them. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'gate','description':'G'},{'id':'verify',"      \
    "'description':'V'},{'id':'plan','description':'P'},{'id':'synthesize','description':'Y'}]"

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 3);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

static void fails(struct house *h, const char *step)
{
    house_answer(h, "calc", step,
                 "'outcome':'failed','failure':{'code':'E','class':'NOT_FOUND','message':"
                 "'no luck','retryable':false}");
}

static void a_step_reads_what_was_done_and_what_was_not(void **state)
{
    struct house *h = open_with_boss();
    const char *work;

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                              "b", ",'"
                                   "dependsOn"
                                   "':[],'"
                                   "maxRetrie"
                                   "s':0,'"
                                   "onFailure"
                                   "':'"
                                   "continue"
                                   "'") "," STEP("c", ",'dependsOn':['a'],'when':{'results.a':'no'"
                                                      "}") "," STEP("d", ",'dependsOn':['b',"
                                                                         "'c','a'],'runIf':"
                                                                         "'always'") "]}");
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'five','data':{'n':5}}");
    fails(h, "b");
    house_wait(h, 1);
    work = house_work(h, "calc", "d");
    house_is(h, work, "context.text",
             "Previous step results:\n- Step 1 (calc): five\n\nSteps without a result:\n- Step 2 "
             "(calc): failed: no luck\n- Step 3 (calc): skipped: results.a is {\"n\":5}\n\nCurrent "
             "task: do d");
    house_says(h, work,
               "context.isPlanContext=true; context.stepId=d; "
               "context.task_context.current_task=do d; context.task_context.task_id=d; "
               "context.task_context.original_request=g; "
               "context.task_context.plan_position=Step 4 of 4; "
               "context.task_context.dependencies_completed=[{\"n\":5}]; "
               "context.dependencies.#=1; context.dependencies.0.result.data.n=5; "
               "context.notCompleted.#=2; context.notCompleted.0.stepId=b; "
               "context.notCompleted.0.agentId=calc; context.notCompleted.0.status=failed; "
               "context.notCompleted.0.error=no luck; context.notCompleted.0.reason=-; "
               "context.notCompleted.1.status=skipped; context.notCompleted.1.reason=condition; "
               "context.notCompletedLeftOut=-");
    house_close(h);
}

static void a_skipped_step_has_no_words_after_its_status(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                             "b", ",'dependsOn':[]") "," STEP("c", ",'dependsOn':['a','b'],"
                                                                   "'runIf':'always'") "]}");
    (void)house_ok(h, "plan.modify", "'planId':'%s','kind':'skip_steps','stepId':'b'", id);
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'five'}");
    house_wait(h, 2000);
    house_has(h, house_work(h, "calc", "c"), "context.text", "- Step 2 (calc): skipped");
    house_close(h);
}

static void a_replanner_reads_what_was_done_and_what_failed(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(
        h, "'plan':{'goal':'add all','grants':['boss'],'steps':[" STEP("a", "") "," STEP(
               "b", ",'maxRetries':0,'onFailure':'replan'") "]},"
                                                            "'policy':{'replan':{'agentId':'boss','"
                                                            "cooldownMs':"
                                                            "0}}");
    house_done(h, "calc", "'result':{'text':'five'}");
    fails(h, "b");
    house_wait(h, 1);
    house_is(h, house_work(h, "boss", NULL), "context.text",
             "Completed steps:\n✓ do a: five\n\nFailed steps:\n✗ do b: no luck\n\nCurrent error: "
             "no luck");
    house_has(h, house_work(h, "boss", NULL), "task", "The goal: add all");
    house_says(h, house_work(h, "boss", NULL),
               "parameters.agents.#=2; parameters.agents.0.agentId=boss; "
               "parameters.agents.0.available=true; parameters.agents.0.skills.#=5; "
               "parameters.agents.1.agentId=calc; parameters.agents.1.skills.0.id=do; "
               "parameters.history=[]; parameters.historyLeftOut=-");
    house_close(h);
}

static void a_replanner_reads_nothing_of_what_is_not_there(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP(
                              "b", ",'maxRetries':0,'onFailure':'replan'") "]},'policy':{'replan':{"
                                                                           "'agentId':'boss',"
                                                                           "'cooldownMs':0}}");
    fails(h, "b");
    house_wait(h, 1);
    house_is(h, house_work(h, "boss", NULL), "context.text",
             "\nFailed steps:\n✗ do b: no luck\n\nCurrent error: no luck");
    house_close(h);
}

/* A result that is none is not tried again, whatever the agent says. */
static void an_answer_that_breaks_the_protocol_is_final(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'maxRetries':3") "]}");
    house_answer(h, "calc", NULL, "'outcome':'completed'");
    house_wait(h, 10000);
    assert_null(house_work(h, "calc", NULL));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=failed; steps.0.attempts=1; steps.0.errorClass=PROTOCOL_ERROR");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_reads_what_was_done_and_what_was_not),
        cmocka_unit_test(a_skipped_step_has_no_words_after_its_status),
        cmocka_unit_test(a_replanner_reads_what_was_done_and_what_failed),
        cmocka_unit_test(a_replanner_reads_nothing_of_what_is_not_there),
        cmocka_unit_test(an_answer_that_breaks_the_protocol_is_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
