/* What planners and replanners are told, and what they cannot change. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define FAILS ",'maxRetries':0,'onFailure':'replan'"
#define ALL "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]"
#define REPLAN                                                                                     \
    "'policy':{'maxRetries':0,'replan':{'agentId':'boss','cooldownMs':0,'maxTotal':3,"             \
    "'maxPerStep':3}}"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

/* `calc` fails what it is asked, with these words. */
static void fails_with(struct house *h, const char *message)
{
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'NOT_FOUND',"
                 "'message':'%s','retryable':false}",
                 message);
    house_wait(h, 1);
}

/* ---- what a replanner is told ---- */

static void a_replanner_is_told_the_last_error_of_each_step(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("a", "") "," STEP(
                              "b", ",'maxRetries':1,'onFailure':'replan'") "]}," REPLAN);
    house_done(h, "calc", "'result':{'text':'five'}");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'SERVICE_UNAVAILABLE',"
                 "'message':'at first','retryable':true}");
    house_wait(h, 2000);
    fails_with(h, "at last");
    /* Nothing is said of the step that is done, nor is its text that of the other. */
    house_says(h, house_work(h, "boss", NULL),
               "parameters.error=at last; parameters.stepId=b; parameters.revision=1; "
               "parameters.failed.#=1; parameters.failed.0.text=✗ do b: at last; "
               "parameters.completed.#=1; parameters.completed.0.text=✓ do a: five; "
               "context.text=~Current error: at last");
    house_close(h);
}

/* A step that a revision superseded ends without an error of its own. */
static void what_failed_before_a_replan_keeps_its_error(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(
        h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("a", FAILS) "]}," REPLAN);
    fails_with(h, "no way");
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'c','agentId':'calc','skill':'do','task':'x',"
               "'maxRetries':0,'onFailure':'replan'}],'reasoning':'try c'}}");
    fails_with(h, "nor this");
    house_says(h, house_work(h, "boss", NULL),
               "parameters.failed.#=2; parameters.failed.0.stepId=a; "
               "parameters.failed.0.text=✗ do a: no way; parameters.failed.1.stepId=c; "
               "parameters.failed.1.text=✗ x: nor this; parameters.error=nor this; "
               "parameters.revision=2; parameters.history.#=1; parameters.history.0.attempt=1; "
               "parameters.history.0.stepId=a; parameters.history.0.diagnosis=no way; "
               "parameters.history.0.ok=true; parameters.history.0.newTaskCount=1; "
               "parameters.history.0.revision=2; parameters.history.0.output=try c; "
               "parameters.history.0.timestamp=~2023-11-14T");
    house_close(h);
}

/* Other errors of the plan are of no step: not of its first. */
static void a_failure_without_words_is_told_by_its_class(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(h, "'goal':'g','planner':'agent:boss'," REPLAN);
    house_done(h, "boss", "'result':{'text':'a poem'}"); /* an error of the planning */
    house_done(h, "boss", "'result':{'data':{'steps':[" STEP("a", FAILS) "]}}");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'NOT_FOUND',"
                 "'message':'','retryable':false}");
    house_wait(h, 1);
    house_says(h, house_work(h, "boss", NULL), "purpose=replan; parameters.failed.0.stepId=a");
    house_has(h, house_work(h, "boss", NULL), "parameters.failed.0.text", "✗ do a: ");
    house_close(h);
}

static void a_replan_whose_past_cannot_be_read_says_why(void **state)
{
    bool told = false;

    (void)state;
    for (uint32_t n = 1; n <= 12; n++) {
        struct house *h = open_with_boss();
        const char *id = house_submit(
            h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("a", FAILS) "]}," REPLAN);
        (void)house_work(h, "calc", NULL);
        house_fail_read(h, n);
        fails_with(h, "no way");
        house_fail_read(h, 0);
        if (!h->dead) {
            const char *plan = view(h, id);
            const char *error = house_get(h, plan, "steps.0.error");
            assert_null(strstr(plan, "out of memory"));
            told = told || (error != NULL && strstr(error, "the disk cannot be read") != NULL);
        } else {
            assert_string_equal(h->why.msg, "the disk cannot be read");
        }
        house_close(h);
    }
    assert_true(told);
}

/* ---- what they cannot change ---- */

static void a_planner_cannot_weaken_the_policy_of_the_plan(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'g','planner':'agent:boss','policy':{'requiresApproval':true,"
                         "'budget':{'tokens':50}}");
    house_done(h, "boss",
               "'result':{'data':{'policy':{'requiresApproval':false,'budget':{'tokens':5000}},"
               "'steps':[" STEP("a", ",'requiresApproval':false") "]}}");
    assert_null(house_work(h, "calc", NULL));
    house_says(h, house_ok(h, "review.list", "'planId':'%s'", id),
               "reviews.#=1; reviews.0.kind=before_step; reviews.0.stepId=a");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'",
                   house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId"));
    house_says(h, house_work(h, "calc", NULL), "budget.tokens=50");
    house_close(h);
}

/* ---- problems and remarks ---- */

/* A plan of n steps, each with one problem, or (good) one remark about its task. */
static void plans(struct house *h, int n, bool good)
{
    struct buf steps;

    buf_init(&steps, 65536);
    for (int i = 0; i < n; i++) {
        buf_printf(&steps, "%s{'stepId':'s%d','agentId':'%s','skill':'do','task':'t'}",
                   i > 0 ? "," : "", i, good ? "calc" : "nobody");
    }
    house_done(h, "boss", "'result':{'data':{'steps':[%s]}}", buf_cstr(&steps));
    buf_done(&steps);
}

static void twenty_problems_of_a_plan_are_told_and_how_many_more_there_are(void **state)
{
    (void)state;
    for (int n = 20; n <= 22; n++) {
        struct house *h = open_with_boss();
        const char *text;
        (void)house_submit(h, "'goal':'g','planner':'agent:boss'");
        plans(h, n, false);
        house_says(h, house_event(h, "planning_retry"), house_text(h, "validationErrors=%d", n));
        text = house_get(h, house_event(h, "planning_retry"), "text");
        assert_non_null(text);
        assert_non_null(strstr(text, "Unknown agent: nobody"));
        assert_int_equal(strstr(text, "; and ") != NULL, n > 20 && strlen(text) < 2000);
        house_close(h);
    }
}

static void what_is_remarked_about_a_plan_goes_with_it(void **state)
{
    struct house *h = open_with_boss();
    const char *text;

    (void)state;
    (void)house_submit(h, "'goal':'g','planner':'agent:boss'");
    plans(h, 2, true);
    text = house_get(h, house_event(h, "plan_generated"), "normalised");
    assert_non_null(text);
    assert_ptr_equal(strstr(text, "step 1 (s0): task: the task has 1 characters"), text);
    assert_non_null(strstr(text, "burying it; step 2 (s1): task: the task has 1 characters"));
    house_close(h);
}

/* What a step was given is told by who gave it: a person has no agent. */
static void a_dependency_on_a_person_is_called_so(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'q','type':'human_review','task':"
                         "'Which day?'}," STEP("a", ",'dependsOn':['q']") "]}");
    (void)house_ok(h, "review.decide",
                   "'reviewId':'%s/q/r1','decision':'approve','comment':'monday'", id);
    house_says(h, house_work(h, "calc", NULL),
               "context.dependencies.#=1; context.dependencies.0.stepId=q; "
               "context.dependencies.0.agentId=person; context.dependencies.0.result.text=monday");
    house_close(h);
}

/* ---- agents that a change brings ---- */

static void a_change_may_bring_an_agent_that_the_plan_did_not_have(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    house_join(h, "other", 1);
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    (void)house_ok(h, "plan.modify",
                   "'planId':'%s','kind':'insert','steps':[{'stepId':'o','agentId':'other',"
                   "'skill':'do','task':'t','gate':'boss','dependsOn':[]}]",
                   id);
    house_says(h, view(h, id), "revision=2; steps.#=2; steps.1.stepId=o; steps.1.agentId=other");
    house_close(h);
}

static void a_change_that_names_more_agents_than_are_known_at_once_is_refused(void **state)
{
    struct engine_options opt = house_options();

    (void)state;
    for (uint32_t known = 1; known <= 2; known++) { /* beside the one that it names */
        struct house *h;
        const char *id;
        opt.agents_max = 2;
        h = house_open_with(&opt);
        house_join(h, "calc", 1);
        if (known == 2) {
            house_join(h, "busy", 1);
        }
        id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]},'policy':{"
                                                                          "'waitForAgents':true}");
        if (known == 1) {
            (void)house_ok(h, "plan.modify",
                           "'planId':'%s','kind':'insert','steps':[{'stepId':'o','agentId':'later',"
                           "'skill':'do','task':'t'}]",
                           id);
            house_says(h, view(h, id), "revision=2; steps.#=2");
        } else {
            house_refused(h, "LIMIT", "too many agents", "plan.modify",
                          "'planId':'%s','kind':'insert','steps':[{'stepId':'o','agentId':'later',"
                          "'skill':'do','task':'t'}]",
                          id);
            house_says(h, view(h, id), "revision=1; steps.#=1");
        }
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replanner_is_told_the_last_error_of_each_step),
        cmocka_unit_test(what_failed_before_a_replan_keeps_its_error),
        cmocka_unit_test(a_failure_without_words_is_told_by_its_class),
        cmocka_unit_test(a_replan_whose_past_cannot_be_read_says_why),
        cmocka_unit_test(a_planner_cannot_weaken_the_policy_of_the_plan),
        cmocka_unit_test(twenty_problems_of_a_plan_are_told_and_how_many_more_there_are),
        cmocka_unit_test(what_is_remarked_about_a_plan_goes_with_it),
        cmocka_unit_test(a_dependency_on_a_person_is_called_so),
        cmocka_unit_test(a_change_may_bring_an_agent_that_the_plan_did_not_have),
        cmocka_unit_test(a_change_that_names_more_agents_than_are_known_at_once_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
