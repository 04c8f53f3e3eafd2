/* What comes when something has ended: a lease, a plan, a session; and what is done again then. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/auth/sessions.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'goal':'g','steps':[" STEP("a", "") "]}"
#define READ STEP("r", ",'effects':'none'")
#define MAKE                                                                                       \
    STEP("a",                                                                                      \
         ",'effects':'idempotent','compensate':{'skill':'do','task':'undo a'},'dependsOn':['r'"    \
         "]")
#define LAST STEP("b", ",'maxRetries':0,'dependsOn':['a']")
#define PROCESS "0190F3C2-7A1B-7C3D-9E4F-0000000000CC"
#define OTHER_PROCESS "0190F3C2-7A1B-7C3D-9E4F-0000000000DD"

static const char *register_again(struct house *h, const struct house_agent *a, const char *process)
{
    return house_ask(h, "agent.register",
                     "'card':{'agentId':'calc','name':'calc','version':'1','skills':[{'id':'do',"
                     "'description':'D'}]},'capacity':1,'endpoint':'%s','protocol':[1],"
                     "'instanceId':'%s','sessionKey':'0123456789abcdef1','processId':'%s'",
                     a->url, a->instance, process);
}

static const char *late_result(struct house *h, const struct house_agent *a, const char *key)
{
    return house_ask(h, "step.result",
                     "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':1,'outcome':'completed',"
                     "'result':{'text':'5'},'usage':{'inputTokens':11,'outputTokens':2}",
                     a->instance, (unsigned long long)a->epoch, key);
}

/* A process that registered again delivers with the epoch that it was asked with. */
static void a_result_counts_when_its_process_has_registered_again(void **state)
{
    struct house *h = house_open();
    struct house_agent *a = house_join_as(h, "calc", 1, "'skills':[{'id':'do','description':'D'}]",
                                          ",'processId':'" PROCESS "'");
    const char *id = house_submit(h, ONE);
    const char *key = house_get(h, house_work(h, "calc", NULL), "key");

    (void)state;
    a->deaf = true;
    house_hang_up(h, "calc", true);
    house_is(h, register_again(h, a, OTHER_PROCESS), "error.code", "CONFLICT");
    house_is(h, register_again(h, a, PROCESS), "ok", "true");
    house_says(h, late_result(h, a, key), "ok=true; accepted=true; reason=-");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=completed; steps.0.result=5; usage.inputTokens=11");
    house_says(h, late_result(h, a, key), "accepted=false; reason=*");
    house_close(h);
}

/* A process that has no name of its own has to answer with the epoch that it has now. */
static void a_result_of_an_earlier_epoch_is_refused_without_a_process(void **state)
{
    struct house *h = house_open();
    struct house_agent *a = house_join(h, "calc", 1);
    const char *key;

    (void)state;
    (void)house_submit(h, ONE);
    key = house_get(h, house_work(h, "calc", NULL), "key");
    a->deaf = true;
    house_hang_up(h, "calc", true);
    house_is(h,
             house_ask(h, "agent.register",
                       "'card':{'agentId':'calc','name':'calc','version':'1','skills':[{'id':'do',"
                       "'description':'D'}]},'capacity':1,'endpoint':'%s','protocol':[1],"
                       "'instanceId':'%s','sessionKey':'0123456789abcdef1'",
                       a->url, a->instance),
             "ok", "true");
    house_says(h, late_result(h, a, key), "error.code=CONFLICT; error.message=~register again");
    house_close(h);
}

static void what_comes_after_the_end_of_a_plan_is_in_its_costs(void **state)
{
    struct house *h = house_open();
    struct house_agent *a = house_join(h, "calc", 1);
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "]}");
    const char *key;

    (void)state;
    house_done(h, "calc", "'result':{'text':'1'},'usage':{'inputTokens':3,'cachedTokens':1}");
    key = house_get(h, house_work(h, "calc", "b"), "key");
    a->deaf = true;
    house_hang_up(h, "calc", true);
    (void)house_ok(h, "plan.cancel", "'planId':'%s','reason':'enough'", id);
    house_wait(h, 6000);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=cancelled; usage.inputTokens=3");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.0.executionTokens=3; plans.0.total.inputTokens=3; total.executionTokens=3");
    (void)late_result(h, a, key);
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.0.status=cancelled; plans.#=1");
    house_close(h);
}

/* What was undone is done again, and what did not need it is kept. */
static void a_retry_of_a_plan_that_was_undone_does_the_undone_steps_again(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *again;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'goal':'g','steps':[" READ "," MAKE "," LAST "]}");
    house_done(h, "calc", "'result':{'text':'read'}");
    house_done(h, "calc", "'result':{'text':'made'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    for (int i = 0; i < 4 && house_work(h, "calc", NULL) != NULL; i++) {
        house_done(h, "calc", "'result':{'text':'undone'}");
    }
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=failed; compensation.status=compensated");
    again = house_get(h, house_ok(h, "plan.retry", "'planId':'%s'", id), "planId");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", again),
               "steps.0.status=completed; steps.0.result=read; steps.1.status=in_progress; "
               "steps.2.status=pending; parentPlanId=*");
    house_close(h);
}

/* Planning failed: the goal is asked for again, with all that came with it. */
static void a_retry_of_a_plan_without_steps_asks_for_its_goal_again(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *work;
    const char *answer;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    id = house_submit(h, "'goal':'many things','planner':'agent:calc','sessionId':'s',"
                         "'constraints':['cheap','soon'],'policy':{'maxRetries':1}");
    for (int i = 0; i < 9 && house_work(h, "calc", NULL) != NULL; i++) {
        house_failed(h, "calc", "PERMISSION_DENIED", false);
    }
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=failed; steps=-");
    answer = house_ok(h, "plan.retry", "'planId':'%s'", id);
    work = house_work(h, "calc", NULL);
    assert_non_null(work);
    assert_non_null(strstr(work, "many things"));
    assert_non_null(strstr(work, "cheap"));
    assert_non_null(strstr(work, "soon"));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", house_get(h, answer, "planId")),
               "sessionId=s; query=many things; phase=planning; "
               "about.constraints=[\"cheap\",\"soon\"]; about.planner=agent:calc");
    house_close(h);
}

static void a_read_that_waits_ends_with_the_session_of_who_asked(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "observer");
    assert_null(house_ask(h, "events.read", "'fromSeq':%llu,'waitMs':60000",
                          (unsigned long long)journal_committed_seq(h->journal) + 1));
    h->agents[0].silent = true;
    house_wait(h, 1000);
    assert_null(house_late_answer(h)); /* its session goes on */
    (void)sessions_set(h->opt.sessions, calloc(1, sizeof(struct credential)), 0,
                       (struct session_time){h->now, h->wall});
    house_wait(h, 1);
    house_says(h, house_late_answer(h),
               "ok=false; error.code=UNAUTHORIZED; "
               "error.message=~the session has ended");
    house_close(h);
}

static void a_question_of_a_plan_goes_with_its_plan(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *job;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    id = house_submit(h, "'goal':'many things','planner':'agent:calc'");
    job = house_get(h, house_work(h, "calc", NULL), "planId");
    assert_string_not_equal(job, id);
    for (int i = 0; i < 9 && house_work(h, "calc", NULL) != NULL; i++) {
        house_failed(h, "calc", "PERMISSION_DENIED", false);
    }
    house_refused(h, "INVALID", "it goes with its plan", "plan.delete", "'planId':'%s'", job);
    house_refused(h, "INVALID", "it comes with its plan", "journal.export", "'planId':'%s'", job);
    house_refused(h, "INVALID", "", "plan.retry", "'planId':'%s'", job);
    house_close(h);
}

static void a_revision_is_refused_by_what_it_lacks(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    house_refused(h, "INVALID", "steps: expected a list of the new steps", "plan.modify",
                  "'planId':'%s','kind':'insert'", id);
    house_refused(h, "INVALID", "steps: expected a list of the new steps", "plan.modify",
                  "'planId':'%s','kind':'replace','stepId':'a'", id);
    house_refused(h, "INVALID", "stepId: expected the id of the step that the new ones replace",
                  "plan.modify", "'planId':'%s','kind':'replace','steps':[" STEP("n", "") "]", id);
    house_refused(h, "INVALID", "is for the plans of schedules", "plan.submit",
                  ONE ",'clientKey':'schedule/'");
    house_refused(h, "INVALID", "is for the plans of schedules", "plan.submit",
                  ONE ",'clientKey':'schedule/n'");
    house_refused(h, "UNAVAILABLE", "this daemon has no directory for artifacts", "artifact.read",
                  "'uri':'file:///tmp/x'");
    (void)house_ok(h, "plan.submit", ONE ",'clientKey':'schedule'");
    (void)house_ok(h, "plan.submit", ONE ",'clientKey':'Schedule/n'");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_counts_when_its_process_has_registered_again),
        cmocka_unit_test(a_result_of_an_earlier_epoch_is_refused_without_a_process),
        cmocka_unit_test(what_comes_after_the_end_of_a_plan_is_in_its_costs),
        cmocka_unit_test(a_retry_of_a_plan_that_was_undone_does_the_undone_steps_again),
        cmocka_unit_test(a_retry_of_a_plan_without_steps_asks_for_its_goal_again),
        cmocka_unit_test(a_read_that_waits_ends_with_the_session_of_who_asked),
        cmocka_unit_test(a_question_of_a_plan_goes_with_its_plan),
        cmocka_unit_test(a_revision_is_refused_by_what_it_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
