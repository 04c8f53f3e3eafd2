/* plan.submit, get, list, cancel, pause, resume, modify, result, retry, fork. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'goal':'add 2 and 3','steps':[" STEP("a", "") "]}"
#define TWO "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "]}"

static void a_plan_runs_and_plan_get_shows_each_stage(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=running; outcome=-; phase=execution; counts.total=2; counts.completed=-; "
               "steps.#=2; steps.0.status=in_progress; steps.0.phase=execute; steps.0.attempts=1; "
               "steps.0.waiting=-; steps.1.status=pending; steps.1.waiting.kind=dependency; "
               "steps.1.waiting.stepId=a; position=Step 1 of 2; owner=local; paused=-; revision=1");
    h->now += 250;
    h->wall += 250;
    house_done(h, "calc",
               "'result':{'text':'5','data':{'sum':5}},'usage':{'inputTokens':7,'outputTokens':3}");
    house_says(
        h, house_ok(h, "plan.get", "'planId':'%s'", id),
        "status=running; counts.completed=1; steps.0.status=completed; steps.0.durationMs=250; "
        "steps.0.result=~5; steps.1.status=in_progress; position=Step 2 of 2; "
        "currentStepIndex=1; usage.inputTokens=7; usage.outputTokens=3; "
        "usageExecution.inputTokens=7; usagePlanning.inputTokens=-; durationMs=250");
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(
        h, house_ok(h, "plan.get", "'planId':'%s'", id),
        "status=completed; outcome=success; phase=-; counts.completed=2; steps.1.result=six; "
        "steps.1.phase=-; criticalPath=[\"a\",\"b\"]; completedAt=2023-11-14T22:13:20.250Z; "
        "createdAt=2023-11-14T22:13:20.000Z; durationMs=250; stepsTruncated=-; dryRun=-");
    house_is(h, house_event(h, "plan_completed"), "status", "completed");
    house_close(h);
}

static void plan_get_gives_the_steps_that_are_asked_for(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO ",'policy':{'budget':{'tokens':100}}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','steps':false", id),
               "steps=-; counts.total=2; budget.tokens=100; stepsTruncated=-; document=-");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','fromStep':1", id),
               "steps.#=1; steps.0.stepId=b; steps.0.stepIndex=1");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','fromStep':2", id), "steps=-");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','document':true", id),
               "document.steps.1.stepId=b; steps.#=2");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','document':true,'revision':1", id),
               "document.steps.0.stepId=a");
    house_refused(h, "NOT_FOUND", "revision", "plan.get",
                  "'planId':'%s','document':true,'revision':2", id);
    house_refused(h, "NOT_FOUND", "No state found for x", "plan.get", "'planId':'x'");
    house_refused(h, "INVALID", "planId", "plan.get", "'steps':true");
    house_close(h);
}

static void a_step_without_its_agent_says_what_it_waits_for(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    house_join(h, "files", 1);
    (void)house_ok(h, "agents.drain", "'agentId':'calc'");
    id = house_submit(h, ONE ",'policy':{'queueTimeoutMs':5000}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.0.status=pending; steps.0.waiting.kind=agent; steps.0.waiting.agentId=calc; "
               "steps.0.waiting.text=~calc");
    (void)house_ok(h, "agents.enable", "'agentId':'calc'");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.0.waiting.kind=lane; steps.0.waiting.text=~draining");
    house_join(h, "calc", 1);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.0.status=in_progress");
    (void)house_submit(h, ONE);
    house_says(h, house_ok(h, "plan.list", "'limit':1"),
               "plans.#=1; plans.0.query=add 2 and 3; plans.0.status=running; cursor=*");
    house_close(h);
}

static void a_full_lane_is_what_the_next_plan_waits_for(void **state)
{
    struct house *h = house_open();
    const char *second;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    second = house_submit(h, ONE);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", second),
               "steps.0.waiting.kind=lane; steps.0.waiting.agentId=calc; steps.0.waiting.text=~1");
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", second), "steps.0.status=in_progress");
    house_close(h);
}

/* ---- plan.submit ---- */

static void a_client_key_makes_a_submit_idempotent(void **state)
{
    struct house *h = house_open();
    const char *first;

    (void)state;
    house_join(h, "calc", 1);
    first = house_submit(h, ONE ",'clientKey':'k'");
    house_says(h, house_ok(h, "plan.submit", ONE ",'clientKey':'k'"),
               house_text(h, "planId=%s; existing=true; continued=-", first));
    house_refused(h, "CONFLICT", "clientKey 'k' was used for another", "plan.submit",
                  TWO ",'clientKey':'k'");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit", ONE ",'clientKey':'k','dryRun':true");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit", ONE ",'clientKey':'k','lenient':true");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit",
                  ONE ",'clientKey':'k','policy':{'maxRetries':1}");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit", ONE ",'clientKey':'k','goal':'x'");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit",
                  ONE ",'clientKey':'k','constraints':['x']");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit",
                  ONE ",'clientKey':'k','sessionId':'s'");
    house_refused(h, "CONFLICT", "clientKey", "plan.submit",
                  ONE ",'clientKey':'k','planner':'llm'");
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=1; plans.0.parentPlanId=-; cursor=-");
    house_restart(h);
    house_says(h, house_ok(h, "plan.submit", ONE ",'clientKey':'k'"),
               house_text(h, "planId=%s; existing=true", first));
    house_close(h);
}

static void the_session_of_a_document_counts_as_that_of_the_request(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]},'sessionId':'s','clientKey':'k'");
    house_says(h,
               house_ok(h, "plan.submit",
                        "'plan':{'sessionId':'s','steps':[" STEP("a", " ") "]},'clientKey':'k'"),
               house_text(h, "planId=%s; existing=true", id));
    house_says(h,
               house_ok(h, "plan.submit",
                        "'plan':{'session_id':'s','steps':[" STEP("a", " ") "]},'clientKey':'k'"),
               house_text(h, "planId=%s; existing=true", id));
    house_refused(h, "CONFLICT", "clientKey", "plan.submit",
                  "'plan':{'sessionId':'t','steps':[" STEP("a", " ") "]},'clientKey':'k'");
    house_close(h);
}

static void a_session_has_one_open_plan(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *other;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE ",'sessionId':'s'");
    house_refused(h, "CONFLICT", "session 's' has the open plan", "plan.submit",
                  TWO ",'sessionId':'s'");
    other = house_ask(h, "plan.submit", TWO ",'sessionId':'s'");
    house_is(h, other, "error.details.planId", id);
    house_refused(h, "CONFLICT", "has the open plan", "plan.submit",
                  "'plan':{'sessionId':'s','steps':[" STEP("x", " ") "]}");
    /* The same request, or nothing but its goal, goes on with it. */
    house_says(h, house_ok(h, "plan.submit", ONE ",'sessionId':'s','clientKey':'c'"),
               house_text(h, "planId=%s; existing=true; continued=true; seq=*", id));
    house_says(h, house_ok(h, "plan.submit", "'goal':'add 2 and 3','sessionId':'s'"),
               house_text(h, "planId=%s; continued=true", id));
    house_refused(h, "CONFLICT", "has the open plan", "plan.submit",
                  "'goal':'add 2 and 3','sessionId':'s','policy':{'maxRetries':1}");
    house_refused(h, "CONFLICT", "has the open plan", "plan.submit",
                  "'goal':'add 2 and 3','sessionId':'s','planner':'keyword'");
    house_refused(h, "CONFLICT", "has the open plan", "plan.submit",
                  "'goal':'add 2 and 3','sessionId':'s','constraints':['no']");
    house_refused(h, "CONFLICT", "has the open plan", "plan.submit",
                  "'goal':'another','sessionId':'s'");
    /* A dry run is no second plan; another session is free. */
    (void)house_ok(h, "plan.submit", ONE ",'sessionId':'s','dryRun':true");
    (void)house_ok(h, "plan.submit", ONE ",'sessionId':'t'");
    /* The key that went on with it is remembered when the plan has ended. */
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, house_ok(h, "plan.submit", ONE ",'sessionId':'s','clientKey':'c'"),
               house_text(h, "planId=%s; existing=true; continued=-", id));
    house_refused(h, "CONFLICT", "clientKey 'c'", "plan.submit",
                  TWO ",'sessionId':'s','clientKey':'c'");
    house_close(h);
}

static void a_plan_that_is_being_cancelled_is_not_gone_on_with(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE ",'sessionId':'s'");
    house_says(h, house_ok(h, "plan.cancel", "'planId':'%s','reason':'enough'", id),
               house_text(h, "planId=%s; status=cancelling", id));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "cancelling=true; status=running");
    house_refused(h, "CONFLICT", "is being cancelled: wait until it has ended", "plan.submit",
                  ONE ",'sessionId':'s'");
    house_says(h, house_ok(h, "plan.cancel", "'planId':'%s'", id), "status=cancelling");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'CANCELLED','class':'CANCELLED',"
                 "'message':'stopped'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "cancelling=-; status=cancelled; steps.0.status=cancelled; failureReason=Cancelled");
    house_says(h, house_ok(h, "plan.cancel", "'planId':'%s'", id), "status=cancelled");
    (void)house_ok(h, "plan.submit", ONE ",'sessionId':'s'");
    house_close(h);
}

static void a_plan_that_waits_is_cancelled_at_once(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE ",'policy':{'signoff':true}");
    house_says(h, house_ok(h, "plan.cancel", "'planId':'%s'", id), "status=cancelled");
    id = house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'5'}");
    house_refused(h, "CONFLICT", "completed", "plan.cancel", "'planId':'%s'", id);
    house_refused(h, "NOT_FOUND", "No state found", "plan.cancel", "'planId':'nobody'");
    house_refused(h, "INVALID", "planId", "plan.cancel", " ");
    house_close(h);
}

static void a_submit_is_refused_with_the_reason(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_refused(h, "INVALID", "", "plan.submit", " ");
    house_refused(h, "INVALID", "agentId", "plan.submit",
                  "'plan':{'steps':[{'agentId':'nobody','skill':'do','task':'x'}]}");
    house_refused(h, "INVALID", "timout", "plan.submit",
                  "'plan':{'steps':[" STEP("a", ",'timout':1") "]}");
    (void)house_ok(h, "supervisor.drain", " ");
    house_cycle(h);
    house_close(h);
}

static void a_dry_run_is_planned_and_over(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE ",'dryRun':true");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=planned; dryRun=true");
    assert_null(house_work(h, "calc", NULL));
    house_close(h);
}

static void more_plans_than_the_limit_are_refused(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.plans_max = 2;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    (void)house_submit(h, ONE);
    house_refused(h, "BUSY", "2", "plan.submit", ONE);
    house_is(h, house_ask(h, "plan.submit", ONE), "error.retryable", "true");
    house_done(h, "calc", "'result':{'text':'5'}");
    (void)house_submit(h, ONE);
    house_close(h);
}

/* ---- pause, resume, modify ---- */

static void a_paused_plan_begins_nothing_new(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO);
    house_refused(h, "CONFLICT", "not paused", "plan.resume", "'planId':'%s'", id);
    house_says(h, house_ok(h, "plan.pause", "'planId':'%s','reason':'lunch'", id),
               house_text(h, "planId=%s; status=waiting", id));
    house_is(h, house_event(h, "plan_paused"), "message", NULL);
    house_refused(h, "CONFLICT", "", "plan.pause", "'planId':'%s'", id);
    house_done(h, "calc", "'result':{'text':'5'}");
    assert_null(house_work(h, "calc", NULL));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=waiting; paused=[\"requested\"]; steps.1.waiting.kind=paused");
    house_says(h, house_ok(h, "plan.resume", "'planId':'%s'", id), "status=running");
    assert_non_null(house_work(h, "calc", "b"));
    house_refused(h, "NOT_FOUND", "No state found", "plan.pause", "'planId':'x'");
    house_refused(h, "NOT_FOUND", "No state found", "plan.resume", "'planId':'x'");
    house_refused(h, "INVALID", "planId", "plan.pause", " ");
    house_refused(h, "INVALID", "planId", "plan.resume", " ");
    house_done(h, "calc", "'result':{'text':'6'}");
    house_refused(h, "CONFLICT", "completed", "plan.pause", "'planId':'%s'", id);
    id = house_submit(h, ONE ",'policy':{'signoff':true}");
    house_refused(h, "CONFLICT", "waits for its sign-off", "plan.pause", "'planId':'%s'", id);
    house_refused(h, "CONFLICT", "waits for its sign-off", "plan.resume", "'planId':'%s'", id);
    house_refused(h, "CONFLICT", "waits for its sign-off", "plan.modify",
                  "'planId':'%s','kind':'cancel_step','stepId':'a'", id);
    house_close(h);
}

#define FOUR                                                                                       \
    "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "," STEP("c", "") "," STEP("d", "") "]}"

static void steps_are_skipped_by_number_and_by_id(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, FOUR);
    house_refused(h, "INVALID", "1 to 4", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':[0]", id);
    house_refused(h, "INVALID", "1 to 4, got 5", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':[5]", id);
    house_refused(h, "INVALID", "stepsToSkip[1]", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':[2,'b']", id);
    house_refused(h, "INVALID", "stepsToSkip[0]", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':[2.5]", id);
    house_refused(h, "INVALID", "1 to 4 numbers", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':[]", id);
    house_refused(h, "INVALID", "1 to 4 numbers", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':[1,2,3,4,4]", id);
    house_refused(h, "INVALID", "1 to 4 numbers", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepsToSkip':2", id);
    house_refused(h, "INVALID", "1 to 4 numbers", "plan.modify",
                  "'planId':'%s','kind':'skip_steps'", id);
    house_refused(h, "NOT_FOUND", "no step 'z'", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepId':'z'", id);
    house_refused(h, "INVALID", "kind: expected", "plan.modify", "'planId':'%s','kind':'jump'", id);
    house_refused(h, "CONFLICT", "revision", "plan.modify",
                  "'planId':'%s','kind':'skip_steps','stepId':'b','expectRevision':2", id);
    house_says(h,
               house_ok(h, "plan.modify",
                        "'planId':'%s','kind':'skip_steps','stepsToSkip':[2,4.0],"
                        "'expectRevision':1",
                        id),
               house_text(h, "planId=%s; revision=2; changed=2", id));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.1.status=skipped; steps.1.reason=*; steps.2.status=pending; "
               "steps.3.status=skipped; counts.skipped=2");
    house_done(h, "calc", "'result':{'text':'1'}");
    assert_non_null(house_work(h, "calc", "c"));
    house_done(h, "calc", "'result':{'text':'3'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=completed; outcome=success");
    house_close(h);
}

static void skip_to_step_skips_what_is_before(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, FOUR);
    house_refused(h, "INVALID", "targetStepNumber (the first step is 1) or stepId", "plan.modify",
                  "'planId':'%s','kind':'skip_to_step'", id);
    house_refused(h, "INVALID", "targetStepNumber: expected the number", "plan.modify",
                  "'planId':'%s','kind':'skip_to_step','targetStepNumber':5", id);
    house_says(
        h,
        house_ok(h, "plan.modify", "'planId':'%s','kind':'skip_to_step','targetStepNumber':4", id),
        "changed=3");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.0.status=skipped; steps.0.reason=user_skip; steps.0.stop=fenced; "
               "steps.1.status=skipped; steps.2.status=skipped; "
               "steps.3.status=pending");
    house_says(h,
               house_ok(h, "plan.modify",
                        "'planId':'%s','kind':'conversation_only','reasoning':'just words'", id),
               "changed=0");
    house_says(h, house_event(h, "plan_modified"),
               "kind=conversation_only; revision=3; reasoning=just words; by.id=local");
    house_close(h);
}

static void a_step_is_cancelled_alone(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO);
    house_says(h, house_ok(h, "plan.modify", "'planId':'%s','kind':'cancel_step','stepId':'b'", id),
               "changed=1");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.1.status=cancelled");
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=completed; outcome=partial; counts.cancelled=1");
    house_close(h);
}

static void inserted_and_replaced_steps_make_a_revision(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO);
    house_says(h,
               house_ok(h, "plan.modify",
                        "'planId':'%s','kind':'insert','steps':{'afterStepId':'a','steps':["
                        "{'stepId':'n','agentId':'calc','skill':'do','task':'in between'}]}",
                        id),
               "revision=2");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "revision=2; counts.total=3; steps.#=3");
    house_says(h, house_ok(h, "plan.history", "'planId':'%s'", id), "revisions.#=*");
    house_refused(h, "INVALID", "", "plan.modify", "'planId':'%s','kind':'insert','steps':[]", id);
    house_refused(
        h, "CONFLICT", "revision", "plan.modify",
        "'planId':'%s','kind':'replace','expectRevision':1,'steps':{'stepId':'b','steps':["
        "{'stepId':'m','agentId':'calc','skill':'do','task':'instead'}]}",
        id);
    house_is(
        h, house_ask(h, "plan.modify", "'planId':'%s','kind':'skip_steps','expectRevision':7", id),
        "error.details.revision", "2");
    house_close(h);
}

/* ---- plan.result, retry, fork ---- */

static void plan_result_gives_the_answer_and_each_result(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO ",'policy':{'onFailure':'continue','maxRetries':0}");
    house_done(h, "calc", "'result':{'text':'five','data':[1,2]},'usage':{'inputTokens':9}");
    house_says(
        h, house_ok(h, "plan.result", "'planId':'%s'", id),
        "status=running; outcome=-; steps.0.success=true; steps.0.result.text=five; "
        "steps.0.result.data=[1,2]; steps.0.tokenUsage.inputTokens=9; steps.1.status=in_progress; "
        "steps.1.success=-");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(
        h, house_ok(h, "plan.result", "'planId':'%s'", id),
        house_text(h,
                   "planId=%s; status=completed; outcome=partial; success=false; "
                   "steps.#=2; steps.1.status=failed; steps.1.errorClass=PERMISSION_DENIED; "
                   "steps.1.error=no luck; steps.1.result=-; aggregatedResult=~five; handoffs.#=1; "
                   "handoffs.0.planStepId=a; handoffs.0.reason=plan_step; plan.status=completed",
                   id));
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','steps':false", id),
               "steps=-; aggregatedResult=~Not done; plan=-");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','fromStep':1", id),
               "steps.#=1; steps.0.stepId=b");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'a'", id), "steps=-");
    house_refused(h, "NOT_FOUND", "z", "plan.result", "'planId':'%s','stepId':'z'", id);
    house_refused(h, "NOT_FOUND", "No state found", "plan.result", "'planId':'z'");
    house_refused(h, "INVALID", "planId", "plan.result", " ");
    house_close(h);
}

static void retry_keeps_what_was_completed(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *again;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO ",'policy':{'maxRetries':0}");
    house_refused(h, "CONFLICT", "has not ended (running)", "plan.retry", "'planId':'%s'", id);
    house_done(h, "calc", "'result':{'text':'five'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=failed; outcome=failed; failureReason=~no luck; steps.1.error=no luck; "
               "steps.1.errorClass=PERMISSION_DENIED");
    again = house_ok(h, "plan.retry", "'planId':'%s','clientKey':'k'", id);
    house_says(h, again, "planId=*; reused=1; existing=-");
    house_is(h, house_ask(h, "plan.retry", "'planId':'%s','clientKey':'k'", id), "existing",
             "true");
    house_refused(h, "CONFLICT", "clientKey", "plan.fork",
                  "'planId':'%s','clientKey':'k','fromStep':'b'", id);
    again = house_get(h, again, "planId");
    assert_non_null(house_work(h, "calc", "b"));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", again),
               house_text(h, "parentPlanId=%s; steps.0.status=completed; steps.0.result=five", id));
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", again),
               "status=completed; steps.0.result.text=five; steps.1.result.text=six");
    again = house_get(h, house_ok(h, "plan.retry", "'planId':'%s','fromStep':'a'", id), "planId");
    house_is(h, house_work(h, "calc", "a"), "planId", again);
    house_refused(h, "NOT_FOUND", "zz", "plan.retry", "'planId':'%s','fromStep':'zz'", id);
    house_refused(h, "NOT_FOUND", "No state found", "plan.retry", "'planId':'z'");
    house_refused(h, "INVALID", "planId", "plan.retry", " ");
    house_close(h);
}

static void fork_begins_at_a_step_of_an_open_plan(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *again;

    (void)state;
    house_join(h, "calc", 2);
    id = house_submit(h, TWO ",'sessionId':'s'");
    house_done(h, "calc", "'result':{'text':'five'}");
    again = house_ok(h, "plan.fork", "'planId':'%s','fromStep':'b','policy':{'maxRetries':7}", id);
    house_says(h, again, "reused=1");
    again = house_get(h, again, "planId");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','document':true", again),
               house_text(h,
                          "parentPlanId=%s; sessionId=s; steps.0.status=completed; "
                          "steps.1.status=in_progress; document.policy.maxRetries=7",
                          id));
    house_refused(h, "NOT_FOUND", "No state found", "plan.fork", "'planId':'z','fromStep':'a'");
    house_refused(h, "INVALID", "planId", "plan.fork", " ");
    house_refused(h, "INVALID", "fromStep", "plan.fork", "'planId':'%s'", id);
    house_refused(h, "NOT_FOUND", "zz", "plan.fork", "'planId':'%s','fromStep':'zz'", id);
    house_close(h);
}

/* The second step of the document. */
static const char *second_step(struct house *h, const char *plan)
{
    return house_get(h, house_ok(h, "plan.get", "'planId':'%s','document':true", plan),
                     "document.steps.1");
}

static const char *forked(struct house *h, const char *child, const char *policy)
{
    const char *id =
        house_submit(h,
                     "'plan':{'steps':[" STEP("first", "") ",{'stepId':'c','task':'each of it',"
                                                           "'dependsOn':['first'],%s}]},"
                                                           "'policy':{'maxRetries':1%s}",
                     child, policy);
    return house_get(h, house_ok(h, "plan.fork", "'planId':'%s','fromStep':'first'", id), "planId");
}

/* The children of a fork are those of its origin, whatever was made of them. */
static void a_fork_has_the_children_of_its_origin(void **state)
{
    static const char *const children[] = {
        "'forEach':[1,2],'as':'it','maxItems':7,'onItemFailure':'continue','maxConcurrency':3,"
        "'agentId':'calc','skill':'do','timeoutMs':9000,'requiresApproval':true,'critical':false",
        "'forEach':'{{results.first}}','steps':[" STEP("x", "") "," STEP(
            "y", ",'dependsOn':['x'],'maxRetries':4") "]",
        "'repeat':{'until':{'results.x.n':{'gt':3}},'max':20,'delayMs':5,'onMax':'accept'},"
        "'steps':[" STEP("x", "") "," STEP("y", "") "]",
        "'repeat':{'while':{'results.x.n':{'lt':3}},'max':2},'runIf':'always','steps':[{'stepId':"
        "'x','task':'inner','forEach':[[1]],'steps':[" STEP("z", ",'onFailure':'skip'") "]}]",
        "'plan':{'document':{'steps':[" STEP("x", "") "]}}",
        "'plan':{'document':{'steps':[" STEP("x", "") "]}},'timeoutMs':60000,'maxRetries':2",
    };
    const char *fork;

    (void)state;
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
        struct house *h = house_open();
        house_join(h, "calc", 8);
        fork = forked(h, children[i], ",'contextScope':'all'");
        assert_string_equal(
            second_step(h, fork),
            second_step(
                h, house_get(h, house_ok(h, "plan.get", "'planId':'%s'", fork), "parentPlanId")));
        house_close(h);
    }
}

/* In a chain each step has all before it; the steps of a fork say so themselves. */
static void a_round_of_a_fork_has_the_context_of_its_origin(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 8);
    house_says(h,
               second_step(h, forked(h,
                                     "'repeat':{'until':{'results.x.n':{'gt':3}},'max':20},"
                                     "'steps':[" STEP("x", "") "," STEP("y", "") "]",
                                     "")),
               "child.body.steps.0.contextScope=all; child.body.steps.1.contextScope=all");
    house_close(h);
}

/* ---- plan.list ---- */

static void plans_are_listed_newest_first_in_pages(void **state)
{
    struct house *h = house_open();
    const char *ids[3];
    const char *page;

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < 3; i++) {
        ids[i] = house_submit(h, ONE ",'sessionId':'s%d'", i);
    }
    house_done(h, "calc", "'result':{'text':'five'}");
    page = house_ok(h, "plan.list", "'limit':2");
    house_says(
        h, page,
        house_text(h, "plans.#=2; plans.0.planId=%s; plans.1.planId=%s; cursor=*", ids[2], ids[1]));
    page = house_ok(h, "plan.list", "'limit':2,'cursor':'%s'", house_get(h, page, "cursor"));
    house_says(h, page, house_text(h, "plans.#=1; plans.0.planId=%s; cursor=-", ids[0]));
    house_says(h, house_ok(h, "plan.list", "'limit':3"), "plans.#=3");
    house_says(h, house_ok(h, "plan.list", "'status':'completed'"),
               house_text(h, "plans.#=1; plans.0.planId=%s; cursor=-", ids[0]));
    house_says(h, house_ok(h, "plan.list", "'sessionId':'s1'"),
               house_text(h, "plans.#=1; plans.0.planId=%s", ids[1]));
    house_says(h, house_ok(h, "plan.list", "'idPrefix':'%.12s'", ids[0]), "plans.#=*");
    house_says(h, house_ok(h, "plan.list", "'idPrefix':'%s'", ids[0]),
               house_text(h, "plans.#=1; plans.0.planId=%s", ids[0]));
    house_says(h, house_ok(h, "plan.list", "'idPrefix':'FF'"), "plans.#=0");
    house_refused(h, "INVALID", "no status of a plan", "plan.list", "'status':'happy'");
    house_refused(h, "INVALID", "cursor", "plan.list", "'cursor':'zz'");
    house_refused(h, "INVALID", "idPrefix", "plan.list", "'idPrefix':'01','status':'running'");
    house_refused(h, "INVALID", "idPrefix: excludes", "plan.list",
                  "'idPrefix':'01','sessionId':'s'");
    house_refused(h, "INVALID", "idPrefix: excludes", "plan.list", "'idPrefix':'01','cursor':'1'");
    house_is(h, house_ok(h, "plan.list", "'idPrefix':'xyz'"), "plans.#", "0");
    house_is(h, house_ok(h, "plan.list", "'status':'running'"), "plans.#", "2");
    house_is(h, house_ok(h, "plan.list", "'status':'waiting'"), "plans.#", "0");
    house_refused(h, "INVALID", "did you mean \"completed\"?", "plan.list", "'status':'complete'");
    house_refused(h, "INVALID", "did you mean \"planned\"?", "plan.list", "'status':'planed'");
    house_is(h, house_ok(h, "plan.list", "'status':'planned'"), "plans.#", "0");
    house_is(h, house_ok(h, "plan.list", "'status':'quarantined'"), "plans.#", "0");
    house_is(h, house_ok(h, "plan.list", "'cursor':'9223372036854775807'"), "plans.#", "3");
    house_refused(h, "INVALID", "cursor", "plan.list", "'cursor':'9223372036854775808'");
    house_refused(h, "INVALID", "limit", "plan.list", "'limit':101");
    (void)house_ok(h, "plan.list", "'limit':100");
    house_close(h);
}

static void ended_plans_are_deleted_and_pruned(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *old;

    (void)state;
    house_join(h, "calc", 1);
    old = house_submit(h, ONE);
    house_refused(h, "CONFLICT", "", "plan.delete", "'planId':'%s'", old);
    house_done(h, "calc", "'result':{'text':'five'}");
    house_wait(h, 1000);
    id = house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'six'}");
    house_says(h, house_ok(h, "plan.prune", "'olderThanMs':1001"), "plans=[]");
    house_says(h, house_ok(h, "plan.prune", "'olderThanMs':1000,'status':'failed'"), "plans=[]");
    house_says(h, house_ok(h, "plan.prune", "'olderThanMs':1000,'dryRun':true"),
               house_text(h, "plans.#=1; plans.0.planId=%s", old));
    house_says(h, house_ok(h, "plan.prune", "'olderThanMs':1000"),
               house_text(h, "plans.#=1; plans.0.planId=%s; cursor=-", old));
    house_refused(h, "GONE", "", "plan.get", "'planId':'%s'", old);
    house_says(h, house_ok(h, "plan.delete", "'planId':'%s','reason':'a secret'", id),
               house_text(h, "planId=%s", id));
    house_refused(h, "GONE", "a secret", "plan.get", "'planId':'%s'", id);
    house_refused(h, "GONE", "a secret", "plan.delete", "'planId':'%s'", id);
    house_refused(h, "NOT_FOUND", "No state found", "plan.delete", "'planId':'x'");
    house_refused(h, "INVALID", "planId", "plan.delete", " ");
    house_refused(h, "INVALID", "olderThanMs", "plan.prune", " ");
    house_refused(h, "INVALID", "status", "plan.prune", "'olderThanMs':1,'status':'running'");
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=0");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_runs_and_plan_get_shows_each_stage),
        cmocka_unit_test(plan_get_gives_the_steps_that_are_asked_for),
        cmocka_unit_test(a_step_without_its_agent_says_what_it_waits_for),
        cmocka_unit_test(a_full_lane_is_what_the_next_plan_waits_for),
        cmocka_unit_test(a_client_key_makes_a_submit_idempotent),
        cmocka_unit_test(the_session_of_a_document_counts_as_that_of_the_request),
        cmocka_unit_test(a_session_has_one_open_plan),
        cmocka_unit_test(a_plan_that_is_being_cancelled_is_not_gone_on_with),
        cmocka_unit_test(a_plan_that_waits_is_cancelled_at_once),
        cmocka_unit_test(a_submit_is_refused_with_the_reason),
        cmocka_unit_test(a_dry_run_is_planned_and_over),
        cmocka_unit_test(more_plans_than_the_limit_are_refused),
        cmocka_unit_test(a_paused_plan_begins_nothing_new),
        cmocka_unit_test(steps_are_skipped_by_number_and_by_id),
        cmocka_unit_test(skip_to_step_skips_what_is_before),
        cmocka_unit_test(a_step_is_cancelled_alone),
        cmocka_unit_test(inserted_and_replaced_steps_make_a_revision),
        cmocka_unit_test(plan_result_gives_the_answer_and_each_result),
        cmocka_unit_test(retry_keeps_what_was_completed),
        cmocka_unit_test(fork_begins_at_a_step_of_an_open_plan),
        cmocka_unit_test(a_fork_has_the_children_of_its_origin),
        cmocka_unit_test(a_round_of_a_fork_has_the_context_of_its_origin),
        cmocka_unit_test(plans_are_listed_newest_first_in_pages),
        cmocka_unit_test(ended_plans_are_deleted_and_pruned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
