/* Planners, synthesizers and those who talk: what they are told, and what becomes of their answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'gate','description':'G'},{'id':'verify',"      \
    "'description':'V'},{'id':'plan','description':'P'},{'id':'synthesize','description':'Y'},"    \
    "{'id':'converse','description':'C'},{'id':'summarize','description':'S'}]"
#define FAILS ",'maxRetries':0,'onFailure':'continue'"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

/* ---- planning ---- */

static void a_planner_that_fails_is_not_asked_again(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'add','planner':'agent:boss','policy':{'maxRetries':0}");
    house_failed(h, "boss", "PERMISSION_DENIED", false);
    house_says(h, view(h, id), "status=failed; failureReason=~no luck");
    assert_int_equal(house_seen(h, "planning_retry"), 0);
    assert_int_equal(house_seen(h, "plan_paused"), 0);
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=0");
    house_close(h);
}

static void a_planner_may_say_that_there_is_no_way(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'add','planner':'agent:boss'");
    house_done(h, "boss", "'result':{'data':{'impossible':'nobody can fly'}}");
    house_says(h, view(h, id), "status=failed; failureReason=~nobody can fly");
    assert_int_equal(house_seen(h, "planning_retry"), 0); /* it was an answer */
    id = house_submit(h,
                      "'goal':'add','planner':'agent:boss','policy':{'onInvalidPlan':'interrupt'}");
    house_done(h, "boss", "'result':{'data':{'impossible':'nobody can fly'}}");
    house_says(h, view(h, id), "status=pending; paused=[\"planning\"]");
    house_says(h, house_ok(h, "review.list", " "),
               "reviews.#=1; reviews.0.kind=planning; reviews.0.error=~nobody can fly");
    house_close(h);
}

static void a_plan_is_read_out_of_fences_and_words(void **state)
{
    static const char *const texts[] = {
        "```json\\n{\\'steps\\':[{\\'stepId\\':\\'a\\',\\'agentId\\':\\'calc\\',\\'skill\\':"
        "\\'do\\',\\'task\\':\\'t\\'}]}\\n```",
        "{\\'steps\\':[{\\'stepId\\':\\'a\\',\\'agentId\\':\\'calc\\',\\'skill\\':\\'do\\',"
        "\\'task\\':\\'t\\'}]}",
    };
    struct house *h = open_with_boss();

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *id = house_submit(h, "'goal':'add','planner':'agent:boss'");
        house_done(h, "boss", "'result':{'text':'%s'}", texts[i]);
        house_says(h, view(h, id), "steps.#=1; steps.0.stepId=a");
        house_done(h, "calc", "'result':{'text':'x'}");
        house_says(h, view(h, id), "status=completed");
    }
    house_close(h);
}

static void a_plan_that_is_wrong_is_sent_back_with_its_problems(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'add','planner':'agent:boss'");
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'a','agentId':'nobody','skill':'do','task':"
               "'t'},{'stepId':'b','agentId':'calc','skill':'fly','task':'t'}]}}");
    house_says(h, house_event(h, "planning_retry"), "validationErrors=2; text=~nobody");
    house_says(h, house_work(h, "boss", NULL), "parameters.problems=~nobody");
    house_done(h, "boss", "'result':{'data':{'steps':[" STEP("a", "") "]}}");
    house_says(h, view(h, id), "steps.#=1; status=running");
    house_close(h);
}

/* ---- replans ---- */

static const char *replanned(struct house *h, const char *more)
{
    return house_submit(h,
                        "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("a", FAILS) "," STEP(
                            "b", ",'maxRetries':0,'onFailure':'replan'") "]},'policy':{'replan':{"
                                                                         "'agentId':'boss',"
                                                                         "'cooldownMs':0,"
                                                                         "'maxTotal':3,"
                                                                         "'maxPerStep':3}%s}",
                        more);
}

static void a_replanner_is_told_every_failure_and_the_replans_before(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = replanned(h, "");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    house_says(h, house_work(h, "boss", NULL),
               "parameters.failed.#=2; parameters.failed.0.stepId=a; "
               "parameters.failed.0.agentId=calc; parameters.failed.1.stepId=b; "
               "parameters.completed.#=0; parameters.history.#=0");
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'c','agentId':'calc','skill':'do','task':'x',"
               "'maxRetries':0,'onFailure':'replan'}],'reasoning':'try c'}}");
    house_failed(h, "calc", "NOT_FOUND", false);
    house_wait(h, 1);
    house_says(h, house_work(h, "boss", NULL),
               "parameters.failed.#=3; parameters.failed.2.stepId=c; parameters.history.#=1; "
               "parameters.history.0=*");
    house_done(h, "boss", "'result':{'data':{'impossible':'enough'}}");
    house_says(h, view(h, id), "status=failed; replans=2; revision=2");
    house_close(h);
}

static void a_replan_of_problems_fails_and_tells_them(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = replanned(h, "");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    house_done(h, "boss",
               "'result':{'text':'```\\n{\\'steps\\':[{\\'stepId\\':\\'c\\',\\'agentId\\':"
               "\\'nobody\\',\\'skill\\':\\'do\\',\\'task\\':\\'x\\'}]}\\n```'}");
    house_says(h, house_event(h, "replan_finished"), "ok=false; reason=~nobody");
    house_says(h, view(h, id), "status=failed");
    house_close(h);
}

/* As much as a person reads; the text ends with a whole character. */
static void problems_of_a_replan_are_told_in_2048_bytes(void **state)
{
    struct house *h = open_with_boss();
    const char *reason;
    struct buf steps;
    char name[257];

    (void)state;
    (void)replanned(h, "");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_wait(h, 1);
    for (size_t i = 0; i < sizeof name - 1; i += 2) {
        memcpy(name + i, "\xc3\xa9", 2);
    }
    name[sizeof name - 1] = 0;
    buf_init(&steps, 65536);
    for (int i = 0; i < 6; i++) {
        buf_printf(&steps,
                   "%s{'stepId':'%c','agentId':'calc','skill':'do','task':'{{results.%s%s}}'}",
                   i > 0 ? "," : "", 'e' + i, name, name);
    }
    house_done(h, "boss", "'result':{'data':{'steps':[%s]}}", buf_cstr(&steps));
    reason = house_get(h, house_event(h, "replan_finished"), "reason");
    assert_non_null(reason);
    assert_in_range(strlen(reason), 2047, 2048);
    buf_done(&steps);
    house_close(h);
}

/* ---- verdicts ---- */

static void a_verdict_is_read_out_of_fences(void **state)
{
    static const struct {
        const char *text, *status;
    } cases[] = {
        {"```json\\n{\\'passed\\':true}\\n```", "completed"},
        {"```json\\n{\\'passed\\':false,\\'reason\\':\\'r\\'}\\n```", "failed"},
        {"yes", "completed"},
        {"``````", "failed"}, /* nothing in it: no verdict */
        {"no.", "failed"},
    };
    struct house *h = open_with_boss();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP(
                                             "a", ",'verifyWith':'boss','maxRetries':0") "]}");
        house_done(h, "calc", "'result':{'text':'five'}");
        house_done(h, "boss", "'result':{'text':'%s'}", cases[i].text);
        house_wait(h, 5000);
        house_says(h, view(h, id), house_text(h, "status=%s", cases[i].status));
    }
    house_close(h);
}

/* ---- synthesis ---- */

#define SYNTHESIS "'policy':{'synthesis':{'strategy':'agent','agentId':'boss','maxRetries':2}}"

static void long_results_are_cut_for_the_synthesizer(void **state)
{
    static char text[900000];
    struct house *h = open_with_boss();

    (void)state;
    memset(text, 'x', sizeof text - 1);
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                              "b", ",'dependsOn':['a']") "]}," SYNTHESIS);
    house_done(h, "calc", "'result':{'text':'%s'}", text);
    house_done(h, "calc", "'result':{'text':'short'}");
    house_says(h, house_work(h, "boss", NULL),
               "parameters.steps.0.truncated=true; parameters.steps.0.result=~left out; "
               "parameters.steps.0.number=1; parameters.steps.0.agentId=calc; "
               "parameters.steps.0.error=-; parameters.steps.1.truncated=-; "
               "parameters.steps.1.number=2; parameters.steps.1.result=short");
    house_close(h);
}

static void what_follows_from_a_failed_step_is_tried_again_with_it(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    /* c follows from b alone; d from the other failure, x, which is not named; e waits for the end
     * of b, however it ended, and of a */
    id = house_submit(
        h,
        "'plan':{'goal':'g','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
            "b", FAILS
            ",'"
            "dependsOn'"
            ":[]") "," STEP("x", FAILS
                            ",'dependsOn':[]") "," STEP("c",
                                                        ",'dependsOn':['b']") "," STEP("d",
                                                                                       ",'"
                                                                                       "dependsOn':"
                                                                                       "['x'"
                                                                                       "]") "]}"
                                                                                            "," SYNTHESIS);
    house_answer(h, "calc", "a", "'outcome':'completed','result':{'text':'1'}");
    house_answer(h, "calc", "b",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'m','retryable':false}");
    house_answer(h, "calc", "x",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'m','retryable':false}");
    house_says(h, view(h, id), "phase=synthesis; steps.3.status=skipped; steps.4.status=skipped");
    house_done(h, "boss", "'result':{'data':{'retry':['b']}}");
    house_says(h, view(h, id),
               "revision=2; steps.#=7; steps.5.stepId=b; steps.6.stepId=c; "
               "steps.6.dependsOn=[\"b\"]; steps.3.superseded=true; steps.4.superseded=-");
    house_answer(h, "calc", "b", "'outcome':'completed','result':{'text':'2'}");
    house_answer(h, "calc", "c", "'outcome':'completed','result':{'text':'3'}");
    house_says(h, house_work(h, "boss", NULL), "parameters.mayRetry=1; parameters.steps.#=5");
    house_done(h, "boss", "'result':{'text':'Done.'}");
    house_says(h, view(h, id), "status=completed; summary=~Done.");
    house_close(h);
}

static void a_wish_for_what_did_not_fail_is_none(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}," SYNTHESIS);
    house_done(h, "calc", "'result':{'text':'five'}");
    house_done(h, "boss", "'result':{'data':{'retry':['a','zebra']}}");
    house_says(h, house_event(h, "synthesis_finished"), "ok=false; reason=~names no step");
    house_says(h, view(h, id), "status=completed; summary=five");
    /* beside an answer, a wish for nothing is none */
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}," SYNTHESIS);
    house_done(h, "calc", "'result':{'text':'five'}");
    house_done(h, "boss", "'result':{'text':'It is five.','data':{'retry':[]}}");
    house_says(h, view(h, id), "status=completed; summary=It is five.");
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}," SYNTHESIS);
    house_done(h, "calc", "'result':{'text':'five'}");
    house_failed(h, "boss", "PERMISSION_DENIED", false);
    house_says(h, view(h, id), "status=completed; summary=five");
    house_close(h);
}

/* ---- talk ---- */

static void who_talks_is_told_the_plan_and_what_came_last(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    (void)house_submit(
        h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    house_done(h, "calc", "'result':{'text':'forty-two'}");
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'so what did it find out today'");
    house_says(h, house_work(h, "boss", NULL),
               "skill=converse; parameters.plan.goal=add; parameters.plan.status=running; "
               "parameters.plan.paused=false; parameters.lastResult=forty-two; "
               "parameters.text=~find out");
    house_done(h, "boss", "'result':{'text':'It found 42.'}");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               "messagesTotal=2; messages.1.text=It found 42.");
    house_close(h);
}

static void a_long_conversation_is_summed_up(void **state)
{
    struct house *h = open_with_boss();
    const char *work = NULL;

    (void)state;
    for (int i = 0; i < 40 && work == NULL; i++) {
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
        work = house_work(h, "boss", NULL);
    }
    house_says(h, work, "skill=summarize; parameters.text=~Person: status");
    house_done(h, "boss", "'result':{'text':'They asked for the status.'}");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               "summary=They asked for the status.");
    house_close(h);
}

static const char *planned(struct house *h, int n)
{
    char *steps = calloc((size_t)n, 64);
    const char *id = house_submit(h, "'goal':'many','planner':'agent:boss'");
    size_t at = 0;

    assert_non_null(steps);
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(steps + at, 64, "%s{'agentId':'calc','skill':'do','task':'t%d'}",
                               i > 0 ? "," : "", i);
    }
    house_done(h, "boss", "'result':{'data':{'steps':[%s]}}", steps);
    free(steps);
    return id;
}

static void a_planner_makes_a_thousand_steps_and_no_more(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    house_says(h, view(h, planned(h, 1000)), "status=running; steps.#=1000");
    (void)planned(h, 1001);
    assert_non_null(strstr(house_event(h, "planning_retry"),
                           "the plan has 1001 steps; a planner may make at most 1000"));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planner_that_fails_is_not_asked_again),
        cmocka_unit_test(a_planner_may_say_that_there_is_no_way),
        cmocka_unit_test(a_plan_is_read_out_of_fences_and_words),
        cmocka_unit_test(a_plan_that_is_wrong_is_sent_back_with_its_problems),
        cmocka_unit_test(a_replanner_is_told_every_failure_and_the_replans_before),
        cmocka_unit_test(a_replan_of_problems_fails_and_tells_them),
        cmocka_unit_test(problems_of_a_replan_are_told_in_2048_bytes),
        cmocka_unit_test(a_verdict_is_read_out_of_fences),
        cmocka_unit_test(long_results_are_cut_for_the_synthesizer),
        cmocka_unit_test(what_follows_from_a_failed_step_is_tried_again_with_it),
        cmocka_unit_test(a_wish_for_what_did_not_fail_is_none),
        cmocka_unit_test(who_talks_is_told_the_plan_and_what_came_last),
        cmocka_unit_test(a_long_conversation_is_summed_up),
        cmocka_unit_test(a_planner_makes_a_thousand_steps_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
