/* How steps, their history and figures are shown after all that can happen to them. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'gate','description':'G'},{'id':'verify',"      \
    "'description':'V'},{'id':'plan','description':'P'}]"
#define AT(s) "2023-11-14T22:13:" s "Z"

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    house_join_as(h, "boss", 4, ALL, "");
    return h;
}

static const char *of(struct house *h, const char *type, const char *id)
{
    return house_ok(h, type, "'planId':'%s'", id);
}

static void fails(struct house *h, const char *cls, const char *message, const char *more)
{
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'E','class':'%s','message':'%s'%s}", cls,
                 message, more);
}

static void a_handoff_a_failed_verification_and_a_part_of_a_result(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'verifyWith':'boss'") "]}");
    house_wait(h, 100);
    house_answer(h, "calc", NULL,
                 "'outcome':'handoff','handoff':{'toAgentId':'boss','reason':'better'},'usage':{"
                 "'inputTokens':2}");
    house_wait(h, 100);
    house_done(h, "boss", "'result':{'text':'x'},'state':{'k':1},'usage':{'inputTokens':4}");
    house_says(h, of(h, "plan.get", id),
               "steps.0.agentId=boss; steps.0.agentName=boss; steps.0.status=in_progress; "
               "steps.0.attempts=2; steps.0.phase=verify; steps.0.handoffs=1; "
               "steps.0.instanceId=0190F3C2-7A1B-7C3D-9E4F-000000000002; steps.0.error=-; "
               "usage.inputTokens=6; usageExecution.inputTokens=6; state=-");
    house_done(h, "boss", "'result':{'text':'No, wrong'},'usage':{'inputTokens':8}");
    house_says(h, of(h, "plan.get", id),
               "steps.0.error=No, wrong; steps.0.errorClass=VERIFICATION_FAILED; "
               "steps.0.phase=execute; steps.0.waiting.kind=backoff; "
               "steps.0.waiting.until=" AT("22.200") "; usage.inputTokens=14");
    house_wait(h, 3000);
    house_done(h, "boss",
               "'result':{'text':'y','truncated':true},'state':{'k':7},'usage':{'inputTokens':"
               "16}");
    house_done(h, "boss", "'result':{'text':'Yes'},'usage':{'inputTokens':32}");
    house_says(
        h, of(h, "plan.get", id),
        "status=completed; outcome=success; steps.0.status=completed; steps.0.attempts=3; "
        "steps.0.error=-; steps.0.errorClass=-; steps.0.truncated=true; "
        "steps.0.durationMs=3200; steps.0.completedAt=" AT(
            "23.200") "; "
                      "steps.0.resultLen=*; truncatedSteps=[\"a\"]; contextTruncatedSteps=-; "
                      "usage.inputTokens=62; state.k=7; truncatedStepsTotal=-");
    house_says(h, of(h, "plan.history", id),
               "handoffs.#=2; handoffs.1.fromAgentId=calc; handoffs.1.toAgentId=boss; "
               "handoffs.1.reason=agent_request; handoffs.1.explanation=better; "
               "handoffs.1.planStepId=a; handoffs.1.timestamp=" AT(
                   "20.100") "; "
                             "phases.1.tokens=62; totalTokens=62; executionAttempts=1");
    house_says(h, of(h, "plan.stats", id),
               "depth=1; dependencies=-; bottleneckStepId=a; steps.0.attempts=3; "
               "steps.0.runMs=3200; steps.0.tokens=62; agents.#=1; agents.0.agentId=boss; "
               "agents.0.steps=1; agents.0.tokens=62");
    house_close(h);
}

/* a is tried twice; b's condition does not hold; c fails and is replanned; d and e are dropped. */
static const char *replanned(struct house *h)
{
    const char *id = house_submit(
        h, "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP("a", ",'maxRetries':1") "," STEP(
               "b", ",'dependsOn':['a'],'when':{'results.a.text':'no'"
                    "}") "," STEP("c", ",'dependsOn':['a'],"
                                       "'maxRetries':0,"
                                       "'onFailure':"
                                       "'replan'") "," STEP("d", ",'dependsOn':["
                                                                 "'c'],'runIf':'"
                                                                 "always'") ",{'"
                                                                            "ste"
                                                                            "pId"
                                                                            "':'"
                                                                            "e',"
                                                                            "'wa"
                                                                            "it'"
                                                                            ":{'"
                                                                            "sig"
                                                                            "nal"
                                                                            "':'"
                                                                            "go'"
                                                                            "},"
                                                                            "'de"
                                                                            "pen"
                                                                            "dsO"
                                                                            "n':"
                                                                            "['"
                                                                            "a']"
                                                                            "}]}"
                                                                            ",'"
                                                                            "pol"
                                                                            "icy"
                                                                            "':{"
                                                                            "'re"
                                                                            "pla"
                                                                            "n':"
                                                                            "{'"
                                                                            "age"
                                                                            "ntI"
                                                                            "d':"
                                                                            "'bo"
                                                                            "ss'"
                                                                            ","
                                                                            "'co"
                                                                            "old"
                                                                            "own"
                                                                            "Ms'"
                                                                            ":0,"
                                                                            "'ma"
                                                                            "xTo"
                                                                            "tal"
                                                                            "':"
                                                                            "2}"
                                                                            "}");

    fails(h, "TIMEOUT", "slow", ",'retryable':true");
    house_says(
        h, of(h, "plan.get", id),
        "steps.0.status=in_progress; steps.0.attempts=1; steps.0.error=slow; "
        "steps.0.errorClass=TIMEOUT; steps.0.waiting.kind=backoff; "
        "steps.0.waiting.until=" AT(
            "21.000") "; steps.1.waiting.kind=dependency; "
                      "steps.1.waiting.stepId=a; steps.1.waiting.text=waiting for step a; "
                      "steps.3.waiting.stepId=c; steps.3.runIf=always; steps.0.runIf=-; "
                      "steps.4.type=wait; steps.4.agentId=-; steps.4.task=Wait for the signal go; "
                      "criticalPath=[\"a\",\"c\",\"d\"]; position=Step 1 of 5");
    house_wait(h, 3000);
    house_done(h, "calc", "'result':{'text':'yes'},'usage':{'inputTokens':2}");
    fails(h, "PERMISSION_DENIED", "no luck", ",'retryable':false,'details':{'x':1}");
    house_wait(h, 10);
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'c2','agentId':'calc','skill':'do',"
               "'task':'again','dependsOn':['a']}],'reasoning':'so'}},'usage':{'inputTokens':4}");
    return id;
}

static void steps_of_a_plan_that_was_replanned(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = replanned(h);
    house_says(h, of(h, "plan.get", id),
               "revision=2; replans=1; counts.total=2; counts.completed=1; counts.superseded=4; "
               "usageExecution.inputTokens=2; usageReplanning.inputTokens=4; usage.inputTokens=6; "
               "currentStepIndex=5; criticalPath=[\"a\",\"c2\"]; position=Step 6 of 6");
    house_says(h, of(h, "plan.get", id),
               "steps.0.status=completed; steps.0.attempts=2; steps.0.durationMs=3000; "
               "steps.0.error=-; steps.0.superseded=-; steps.1.status=skipped; "
               "steps.1.reason=condition; steps.1.condition=results.a.text is \"yes\"; "
               "steps.1.superseded=true; steps.1.when=*; steps.2.status=failed; "
               "steps.2.reason=superseded; steps.2.error=no luck; "
               "steps.2.errorClass=PERMISSION_DENIED; steps.2.replans=1; steps.2.attempts=1; "
               "steps.2.details.x=1; steps.3.status=skipped; steps.3.reason=superseded; "
               "steps.3.error=A revision of the plan does without it; steps.4.status=cancelled; "
               "steps.4.errorClass=CANCELLED; steps.4.durationMs=10");
    house_says(h, of(h, "plan.get", id),
               "steps.5.stepId=c2; steps.5.revision=2; steps.5.status=in_progress; "
               "steps.5.dependsOn=[\"a\"]; steps.5.replans=-; steps.0.revision=1");
    house_says(
        h, of(h, "plan.history", id),
        "replanCount=1; replans.#=1; replans.0.attempt=1; replans.0.stepId=c; "
        "replans.0.timestamp=" AT(
            "23.000") "; replans.0.input=do c; "
                      "replans.0.approach=calc/do: do c; replans.0.output=no luck; "
                      "replans.0.diagnosis=no luck; replans.0.newTaskCount=1; replans.0.ok=true; "
                      "replans.0.revision=2; revisions.#=2; revisions.1.revision=2; "
                      "revisions.1.kind=replan; revisions.1.reasoning=so; revisions.1.steps=1; "
                      "revisions.1.planRef=*; revisions.1.planLen=*; revisions.1.by=-; "
                      "revisions.0.planRef=-; executionAttempts=2; phases.#=4");
    house_says(
        h, of(h, "plan.history", id),
        "phases.1.phase=execution; phases.1.success=false; phases.1.details=no luck; "
        "phases.1.durationMs=3000; phases.1.tokens=2; phases.2.phase=replanning; "
        "phases.2.startTime=" AT(
            "23.000") "; phases.2.durationMs=10; phases.2.tokens=4; "
                      "phases.2.success=true; phases.2.details=so; phases.3.phase=execution; "
                      "phases.3.endTime=-; phases.3.startTime=" AT("23.010"));
    house_says(h, of(h, "plan.stats", id),
               "steps.0.runMs=3000; steps.0.attempts=2; steps.2.errorClass=PERMISSION_DENIED; "
               "steps.2.runMs=10; steps.4.errorClass=CANCELLED; steps.4.agentId=-; "
               "steps.5.status=in_progress; agents.0.agentId=calc; agents.0.steps=2; "
               "agents.0.errors=2; agents.0.maxMs=3000; agents.0.averageMs=1505; depth=2");
    house_says(h, of(h, "plan.cost", id),
               "plans.0.execution.inputTokens=2; plans.0.replanning.inputTokens=4; "
               "plans.0.total.inputTokens=6; plans.0.executionTokens=2; "
               "plans.0.replanningTokens=4; plans.0.planningTokens=-");
    house_close(h);
}

static void a_plan_that_is_called_off_shows_how_far_it_came(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = replanned(h);
    (void)house_ok(h, "plan.cancel", "'planId':'%s','reason':'enough'", id);
    house_says(h, of(h, "plan.get", id), "status=running; cancelling=true; outcome=-");
    house_wait(h, 2000);
    house_says(
        h, of(h, "plan.get", id),
        "status=cancelled; outcome=failed; cancelling=-; failureReason=Cancelled; "
        "summary=yes; completedAt=" AT(
            "24.010") "; durationMs=4010; counts.cancelled=1; "
                      "counts.completed=1; counts.total=2; steps.5.status=cancelled; "
                      "steps.5.reason=cancelled; steps.5.error=Cancelled; steps.5.stop=fenced; "
                      "steps.5.durationMs=1000; phase=-");
    house_says(h, of(h, "plan.history", id),
               "orders.#=1; orders.0.kind=cancel; orders.0.reason=enough; outcome=failed; "
               "phases.3.success=false; phases.3.details=Cancelled; phases.3.durationMs=1000; "
               "totalDurationMs=4010");
    house_close(h);
}

static void a_dry_run_is_planned_and_nothing_of_it_is_cancelled(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'dryRun':true,'plan':{'goal':'dry','steps':[" STEP("a", "") "]}");
    house_says(h, of(h, "plan.get", id),
               "status=planned; outcome=success; dryRun=true; counts.total=1; counts.cancelled=-; "
               "steps.0.status=pending; summary=Nothing was run: it was a dry run.; paused=-");
    house_says(h, house_ok(h, "plan.list", " "), "plans.0.status=*; plans.0.dryRun=*");
    house_close(h);
}

static void a_gate_and_what_it_said(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                             "b", ",'gate':'boss'") "," STEP("c", "") "]}");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_wait(h, 50);
    house_says(h, of(h, "plan.get", id),
               "steps.1.phase=gate; steps.1.status=*; steps.1.attempts=-; "
               "steps.1.startedAt=*; steps.2.waiting.stepId=b");
    house_done(h, "boss",
               "'result':{'data':{'passed':false,'reason':'too little'}},'usage':{'inputTokens':"
               "3}");
    house_says(h, of(h, "plan.get", id),
               "status=failed; outcome=*; steps.1.status=failed; steps.1.error=~too little; "
               "steps.1.attempts=-; steps.2.status=cancelled; steps.2.reason=-; "
               "counts.failed=1; counts.cancelled=1; counts.completed=1; usage.inputTokens=3; "
               "failureReason=~Step 2 failed");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handoff_a_failed_verification_and_a_part_of_a_result),
        cmocka_unit_test(steps_of_a_plan_that_was_replanned),
        cmocka_unit_test(a_plan_that_is_called_off_shows_how_far_it_came),
        cmocka_unit_test(a_dry_run_is_planned_and_nothing_of_it_is_cancelled),
        cmocka_unit_test(a_gate_and_what_it_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
