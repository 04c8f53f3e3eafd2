/* Every member of the answers to requests that read, of a plan that has done some of everything. */
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define T0 "2023-11-14T22:13:20.000Z"
#define T1 "2023-11-14T22:13:20.100Z"
#define T2 "2023-11-14T22:13:20.200Z"
#define T3 "2023-11-14T22:13:20.300Z"
#define BOSS                                                                                       \
    "'description':'leads','skills':[{'id':'plan','description':'P','effects':'none',"             \
    "'inputSchema':{'type':'object'},'outputSchema':true,'tags':['x']},"                           \
    "{'id':'do','description':'D'}]"

static struct {
    struct house *h;
    const char *id, *review;
} w;

/* a is done, c has failed and does not matter, b waits for a person; the plan is paused. */
static void open_world(void)
{
    static const struct token_price prices[] = {{"*", 1, 2, 0.5}};
    struct engine_options opt = house_options();

    opt.prices = prices;
    opt.n_prices = 1;
    opt.in_flight = 7;
    w.h = house_open_with(&opt);
    house_join(w.h, "calc", 2);
    house_join_as(w.h, "boss", 3, BOSS,
                  ",'pid':77,'processId':'0190F3C2-7A1B-7C3D-9E4F-0000000000CC'");
    w.id = house_submit(
        w.h,
        "'sessionId':'talk','plan':{'goal':'add','description':'about',"
        "'successCriteria':['c'],'steps':[" STEP("a", "") "," STEP(
            "b", ",'requiresApproval':true,'parameters':{'n':'{{results.a.data.n}}'},"
                 "'dependsOn':['a']") "," STEP("c", ",'dependsOn':['a'],'maxRetries':0,"
                                                    "'onFailure':'continue'") "]},"
                                                                              "'policy':{"
                                                                              "'budget':{"
                                                                              "'tokens':500}}");
    house_wait(w.h, 100);
    house_done(w.h, "calc",
               "'result':{'text':'five','data':{'n':5}},'usage':{'inputTokens':20,"
               "'outputTokens':3,'cachedTokens':2}");
    house_wait(w.h, 100);
    house_answer(w.h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'E1','class':'PERMISSION_DENIED','message':"
                 "'no such','retryable':false,'details':{'x':1}},'usage':{'inputTokens':7}");
    (void)house_ok(w.h, "plan.pause", "'planId':'%s','reason':'lunch'", w.id);
    w.review = house_text(w.h, "%s/b/r1", w.id);
}

static const char *get(const char *type)
{
    return house_ok(w.h, type, "'planId':'%s'", w.id);
}

static void ends(void)
{
    (void)house_ok(w.h, "review.decide",
                   "'reviewId':'%s','decision':'approve','comment':'go',"
                   "'by':{'user':'u','host':'h','via':'cli'}",
                   w.review);
    (void)house_ok(w.h, "plan.resume", "'planId':'%s','reason':'back'", w.id);
    house_wait(w.h, 100);
    house_done(w.h, "calc", "'result':{'text':'six'}");
}

static void a_plan_that_is_under_way(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, get("plan.get"),
               house_text(w.h,
                          "planId=%s; sessionId=talk; query=add; status=waiting; outcome=-; "
                          "revision=1; createdAt=" T0 "; completedAt=-; "
                          "counts.total=3; counts.completed=1; counts.failed=1; counts.waiting=-; "
                          "usage.inputTokens=27; usage.outputTokens=3; usage.cachedTokens=2; "
                          "usage.costMicros=32; usageExecution.costMicros=32; usagePlanning=-; "
                          "paused=[\"requested\",\"review\"]; criticalPath=[\"a\",\"b\"]; "
                          "position=Step 3 of 3; budget.tokens=500; budget.costMicros=-; "
                          "durationMs=200; phase=execution; about.description=about; "
                          "about.successCriteria=c; updatedAt=" T2 "; owner=local; "
                          "traceId=*; summary=-; steps.#=3; failureReason=-; parentPlanId=-",
                          w.id));
    house_says(w.h, get("plan.get"),
               "steps.0.stepId=a; steps.0.stepIndex=0; steps.0.agentId=calc; "
               "steps.0.agentName=calc; steps.0.skill=do; steps.0.task=do a; "
               "steps.0.status=completed; steps.0.attempts=1; steps.0.startedAt=" T0 "; "
               "steps.0.completedAt=" T1 "; steps.0.durationMs=100; steps.0.result=five; "
               "steps.0.resultLen=20; steps.0.type=task; steps.0.revision=1; "
               "steps.0.instanceId=0190F3C2-7A1B-7C3D-9E4F-000000000001; steps.0.error=-; "
               "steps.0.waiting=-; steps.0.dependsOn=-; steps.0.reason=-");
    house_says(w.h, get("plan.get"),
               house_text(w.h,
                          "steps.1.status=waiting; steps.1.reason=before_step; "
                          "steps.1.dependsOn=[\"a\"]; steps.1.attempts=-; steps.1.phase=execute; "
                          "steps.1.startedAt=" T1 "; steps.1.completedAt=-; "
                          "steps.1.waiting.kind=person; steps.1.waiting.reviewId=%s; "
                          "steps.1.waiting.text=waiting for approval (review %s); "
                          "steps.1.waiting.until=-; steps.1.waiting.agentId=-; "
                          "steps.2.status=failed; steps.2.error=no such; "
                          "steps.2.errorClass=PERMISSION_DENIED; steps.2.details.x=1; "
                          "steps.2.durationMs=100; steps.2.result=-",
                          w.review, w.review));
    house_close(w.h);
}

static void results_of_a_plan_under_way_and_of_one_that_has_ended(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, get("plan.result"),
               "status=waiting; outcome=-; success=false; aggregatedResult=-; plan.status=waiting; "
               "plan.steps.#=3; handoffs.#=1; handoffs.0.fromAgentId=supervisor; "
               "handoffs.0.toAgentId=calc; handoffs.0.reason=plan_step; "
               "handoffs.0.explanation=Executing plan step: do a; handoffs.0.planStepId=a; "
               "handoffs.0.timestamp=" T0 "; handoffs.0.handoffId=*; steps.#=3; "
               "steps.0.stepId=a; steps.0.stepIndex=0; steps.0.status=completed; "
               "steps.0.success=true; steps.0.result.text=five; steps.0.result.data.n=5; "
               "steps.0.tokenUsage.inputTokens=20; steps.0.tokenUsage.outputTokens=3; "
               "steps.0.tokenUsage.cachedTokens=2; steps.0.tokenUsage.costMicros=25; "
               "steps.1.status=waiting; steps.1.success=-; steps.1.result=-; "
               "steps.2.error=no such; steps.2.errorClass=PERMISSION_DENIED; steps.2.details.x=1; "
               "steps.2.tokenUsage.inputTokens=7; steps.2.success=-");
    ends();
    house_says(w.h, get("plan.result"),
               "status=completed; outcome=partial; success=false; steps.1.result.text=six; "
               "steps.1.success=true; aggregatedResult=~**do a**; plan.outcome=partial; "
               "plan.completedAt=" T3);
    house_has(w.h, get("plan.result"), "aggregatedResult", "**do b**");
    house_has(w.h, get("plan.result"), "aggregatedResult", "Step 3 \"do c\" failed: no such");
    house_says(w.h, get("plan.get"),
               "status=completed; outcome=partial; completedAt=" T3 "; counts.completed=2; "
               "phase=-; paused=-; durationMs=300; steps.1.durationMs=200; updatedAt=" T3);
    house_close(w.h);
}

static void the_history_of_a_plan_has_orders_revisions_phases_and_reviews(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, get("plan.history"),
               house_text(w.h,
                          "status=waiting; orders.#=1; orders.0.kind=pause; orders.0.timestamp=" T2
                          "; orders.0.reason=lunch; orders.0.by.id=local; owner=local; task=add; "
                          "totalDurationMs=200; totalTokens=30; executionAttempts=1; "
                          "revisions.#=1; revisions.0.revision=1; revisions.0.kind=submitted; "
                          "revisions.0.timestamp=" T0 "; revisions.0.steps=3; "
                          "revisions.0.by.id=local; handoffs.#=1; phases.#=2; "
                          "phases.0.phase=planning; phases.0.startTime=" T0 "; phases.0.endTime=" T0
                          "; phases.0.durationMs=0; phases.0.success=true; "
                          "phases.1.phase=execution; phases.1.startTime=" T0
                          "; phases.1.endTime=-; "
                          "phases.1.tokens=30; phases.1.success=-; reviews.#=1; "
                          "reviews.0.reviewId=%s; reviews.0.stepId=b; reviews.0.kind=before_step; "
                          "reviews.0.askedAt=" T1 "; reviews.0.decision=-; reviews.0.decidedAt=-; "
                          "replans=-; replanCount=-; outcome=-",
                          w.review));
    ends();
    house_says(w.h, get("plan.history"),
               "status=completed; outcome=partial; orders.#=2; orders.1.kind=resume; "
               "orders.1.reason=back; totalDurationMs=300; phases.1.endTime=" T3
               "; phases.1.durationMs=300; phases.1.success=true; reviews.0.decision=approve; "
               "reviews.0.comment=go; reviews.0.decidedAt=" T2 "; reviews.0.by.user=u; "
               "reviews.0.by.host=h; reviews.0.by.via=cli; reviews.0.by.address=127.0.0.1:4711; "
               "reviews.0.by.id=local");
    house_close(w.h);
}

static void figures_of_a_plan_and_its_cost(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, get("plan.stats"),
               "status=waiting; durationMs=200; dependencies=2; depth=2; "
               "usage.inputTokens=27; usage.costMicros=32; steps.#=3; steps.0.stepId=a; "
               "steps.0.stepIndex=0; steps.0.agentId=calc; steps.0.status=completed; "
               "steps.0.attempts=1; steps.0.runMs=100; steps.0.tokens=23; steps.0.costMicros=25; "
               "steps.1.status=waiting; steps.1.attempts=-; steps.1.tokens=-; steps.2.runMs=100; "
               "steps.2.tokens=7; steps.2.costMicros=7; steps.2.errorClass=PERMISSION_DENIED; "
               "agents.#=1; agents.0.agentId=calc; agents.0.steps=2; agents.0.errors=1; "
               "agents.0.errorRate=0.5; agents.0.averageMs=100; agents.0.maxMs=100; "
               "agents.0.tokens=30");
    house_says(w.h, get("plan.cost"),
               house_text(w.h,
                          "plans.#=1; plans.0.planId=%s; plans.0.task=add; plans.0.status=waiting; "
                          "plans.0.createdAt=" T0 "; plans.0.execution.inputTokens=27; "
                          "plans.0.execution.outputTokens=3; plans.0.execution.cachedTokens=2; "
                          "plans.0.execution.costMicros=32; plans.0.total.inputTokens=27; "
                          "plans.0.total.costMicros=32; plans.0.executionTokens=30; "
                          "plans.0.planningTokens=-; plans.0.planning=-; plans.0.replanning=-; "
                          "plans.0.synthesis=-; total.execution.inputTokens=27; "
                          "total.total.costMicros=32; total.executionTokens=30",
                          w.id));
    house_is(w.h, get("plan.cost"), "plans.0.totalCost", "3.2e-05");
    house_says(w.h, house_ok(w.h, "plan.cost", " "), "plans.#=1; total.executionTokens=30");
    house_says(
        w.h, house_ok(w.h, "plan.list", " "),
        house_text(w.h,
                   "plans.#=1; plans.0.planId=%s; plans.0.sessionId=talk; plans.0.query=add; "
                   "plans.0.status=waiting; plans.0.createdAt=" T0 "; "
                   "plans.0.counts.total=3; plans.0.counts.completed=1; "
                   "plans.0.counts.failed=1; plans.0.counts.waiting=1; "
                   "plans.0.owner=local; plans.0.completedAt=-",
                   w.id));
    ends();
    house_says(w.h, get("plan.stats"),
               "steps.1.attempts=1; steps.1.runMs=200; agents.0.steps=3; agents.0.maxMs=200");
    house_close(w.h);
}

static void a_review_has_all_that_a_person_needs_to_decide(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, house_ok(w.h, "review.list", "'planId':'%s'", w.id),
               house_text(w.h,
                          "reviews.#=1; reviews.0.reviewId=%s; reviews.0.planId=%s; "
                          "reviews.0.stepId=b; reviews.0.kind=before_step; reviews.0.prompt=do b; "
                          "reviews.0.stepIndex=1; reviews.0.attempt=0; reviews.0.agentId=calc; "
                          "reviews.0.task=do b; reviews.0.parameters.n=5; reviews.0.skill=do; "
                          "reviews.0.effects=idempotent; reviews.0.dependsOn=[\"a\"]; "
                          "reviews.0.askedAt=" T1 "; reviews.0.until=-; truncated=-",
                          w.review, w.id));
    house_says(w.h, house_ok(w.h, "review.list", " "),
               "reviews.#=1; reviews.0.askedAt=-; reviews.0.upstreamResults=-");
    house_says(w.h, house_ok(w.h, "review.get", "'reviewId':'%s'", w.review),
               "review.stepId=b; review.askedAt=" T1 "; review.upstreamResults.#=1; "
               "review.upstreamResults.0.stepId=a; review.upstreamResults.0.result=five; "
               "review.upstreamResults.0.agentId=calc; review.upstreamResults.0.data.n=5; "
               "review.decision=-");
    ends();
    house_says(w.h, house_ok(w.h, "review.get", "'reviewId':'%s'", w.review),
               "review.decision=approve; review.comment=go; review.decidedAt=" T2
               "; review.by.user=u; review.by.host=h; review.by.via=cli; review.by.id=local; "
               "review.stepId=b; review.kind=before_step");
    house_close(w.h);
}

static void a_sign_off_shows_the_plan_that_would_begin(void **state)
{
    const char *id;
    const char *review;

    (void)state;
    open_world();
    id = house_submit(w.h, "'plan':{'goal':'sign','steps':[" STEP("x", "") "," STEP(
                               "y", ",'effects':'unsafe'") "]},'policy':{"
                                                           "'signoff':true,"
                                                           "'approvalTimeoutMs':"
                                                           "5000,'budget':{"
                                                           "'tokens':9,"
                                                           "'costMicros':8},"
                                                           "'planTimeoutMs':"
                                                           "60000}");
    review =
        house_get(w.h, house_ok(w.h, "review.list", "'planId':'%s'", id), "reviews.0.reviewId");
    if (review == NULL) {
        fail_msg("%s", house_ok(w.h, "plan.get", "'planId':'%s'", id));
    }
    house_says(
        w.h, house_ok(w.h, "review.get", "'reviewId':'%s'", review),
        house_text(w.h,
                   "review.planId=%s; review.stepId=-; review.kind=plan; review.prompt=sign; "
                   "review.revision=1; review.stepCount=2; review.timeoutMs=60000; "
                   "review.budget.tokens=9; review.budget.costMicros=8; review.steps.#=2; "
                   "review.steps.0.stepId=x; review.steps.0.status=-; "
                   "review.steps.1.stepId=y; review.steps.1.effects=unsafe; "
                   "review.askedAt=" T2,
                   id));
    house_says(w.h, house_ok(w.h, "review.list", "'planId':'%s'", id), "reviews.0.steps=-");
    house_close(w.h);
}

static void agents_and_what_they_carry(void **state)
{
    (void)state;
    open_world();
    (void)house_ok(w.h, "agents.drain", "'agentId':'boss'");
    house_says(w.h, house_ok(w.h, "agents.get", "'agentId':'boss'"),
               "card.agentId=boss; card.name=boss; card.description=leads; card.version=1; "
               "card.skills.#=2; card.skills.0.id=plan; card.skills.0.description=P; "
               "card.skills.0.tags=[\"x\"]; card.skills.0.inputSchema.type=object; "
               "card.skills.0.outputSchema=true; card.skills.0.effects=none; "
               "card.skills.1.effects=-; state=disabled; num_requests=-; instances.#=1; "
               "instances.0.instanceId=0190F3C2-7A1B-7C3D-9E4F-000000000002; "
               "instances.0.health=healthy; instances.0.endpoint=tcp://127.0.0.1:40001; "
               "instances.0.pid=77; instances.0.capacity=3; instances.0.draining=true; "
               "instances.0.breaker.state=closed; instances.0.version=1; "
               "instances.0.epoch=4294967298; external=true; breaker.state=closed");
    house_says(w.h, house_ok(w.h, "agents.list", " "),
               "agents.#=2; agents.0.card.agentId=calc; agents.0.state=up; "
               "agents.0.num_requests=2; agents.0.num_errors=1; agents.0.instances.0.pid=-; "
               "agents.0.instances.0.draining=-; agents.1.card.agentId=boss");
    house_says(w.h, house_ok(w.h, "supervisor.stats", " "),
               "stepsDispatched=2; plansOpen=1; plansWaiting=1; reviewsOpen=1; inFlightMax=7; "
               "inFlight=-; queued=-; plansDone=-; stepsRetried=-; resultsRejected=-; "
               "fallbacks=-; replans=-; breakersOpened=-; turns=*; commits=*; records=*; "
               "published=*; requests=*; rssBytes=*; journalBytes=*; agents.#=2; "
               "agents.0.agentId=calc; agents.0.state=up; agents.0.breaker=closed; "
               "agents.0.instances=1; agents.0.capacity=2; agents.0.steps=2; agents.0.errors=1; "
               "agents.0.errorRate=0.5; agents.0.averageMs=100; agents.0.maxMs=100; "
               "agents.0.tokens=30; agents.0.inFlight=-; agents.0.queued=-; "
               "agents.1.state=disabled; agents.1.capacity=3; agents.1.steps=-");
    house_says(w.h, house_ok(w.h, "supervisor.info", " "),
               "plansOpen=1; agents=2; credential=local; role=admin; uptimeMs=200; "
               "durability=process; durabilityMeans=~survives kill -9; protocol=[1]; "
               "stateDir=/nowhere; events=tcp://127.0.0.1:7118; control=tcp://127.0.0.1:7117; "
               "version=*; pid=*; startedAt=*; nng=*; sqlite=*; lastSeq=*");
    house_close(w.h);
}

static void loads_of_agents_count_what_is_out_and_what_waits(void **state)
{
    struct house *h = house_open();
    static const char *const names[] = {"one", "two", "three"};

    (void)state;
    house_join(h, "calc", 2);
    house_join(h, "calc", 1);
    for (size_t i = 0; i < 3; i++) {
        (void)house_submit(h,
                           "'plan':{'goal':'%s','steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                               "b", ",'dependsOn':[]") "]}",
                           names[i]);
    }
    house_says(h, house_ok(h, "supervisor.stats", " "),
               "inFlight=3; queued=3; plansOpen=3; plansWaiting=-; reviewsOpen=-; agents.#=1; "
               "agents.0.instances=2; agents.0.capacity=3; agents.0.inFlight=3; "
               "agents.0.queued=3; agents.0.state=up");
    (void)house_ok(h, "agent.drain", "'instanceId':'%s','epoch':%llu", h->agents[0].instance,
                   (unsigned long long)h->agents[0].epoch);
    house_says(h, house_ok(h, "supervisor.stats", " "), "agents.0.state=up");
    (void)house_ok(h, "agent.drain", "'instanceId':'%s','epoch':%llu", h->agents[1].instance,
                   (unsigned long long)h->agents[1].epoch);
    house_says(h, house_ok(h, "supervisor.stats", " "), "agents.0.state=draining");
    house_close(h);
}

static void a_session_has_its_messages_and_its_plans(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, house_ok(w.h, "session.get", "'sessionId':'talk'"),
               house_text(w.h,
                          "sessionId=talk; messagesTotal=0; openPlanId=%s; owner=local; "
                          "planHistory.#=1; planHistory.0.planId=%s; planHistory.0.task=add; "
                          "planHistory.0.status=waiting; planHistory.0.createdAt=" T0
                          "; messages=-; updatedAt=-; createdAt=" T0,
                          w.id, w.id));
    (void)house_ok(w.h, "session.say", "'sessionId':'talk','text':'status'");
    house_says(w.h, house_ok(w.h, "session.get", "'sessionId':'talk'"),
               "messagesTotal=2; createdAt=" T2 "; updatedAt=" T2 "; messages.#=2; "
               "messages.0.n=1; messages.0.role=user; messages.0.text=status; "
               "messages.0.timestamp=" T2 "; messages.0.turnId=*; messages.1.n=2; "
               "messages.1.role=assistant; messages.1.text=~is paused (say resume); "
               "agentCallsSinceMemory=0; toolCallsSinceMemory=0; summarized=0");
    house_says(w.h, house_ok(w.h, "session.list", " "),
               "sessions.#=1; sessions.0.sessionId=talk; sessions.0.createdAt=" T2
               "; sessions.0.updatedAt=" T2 "; sessions.0.owner=local");
    ends();
    house_says(w.h, house_ok(w.h, "session.get", "'sessionId':'talk'"),
               "openPlanId=-; planHistory.0.status=completed");
    house_close(w.h);
}

static void schedules_have_all_that_was_put(void **state)
{
    (void)state;
    open_world();
    house_says(w.h,
               house_ok(w.h, "schedule.put",
                        "'name':'nightly','cron':'0 3 * * *','tz':'Europe/Vienna','overlap':"
                        "'queue','catchUpMs':20000,'plan':{'steps':[" STEP("a", "") "]}"),
               "name=nightly; status=active; tz=Europe/Vienna; next.#=5; "
               "next.0=2023-11-15T03:00:00+01:00; problems.0.severity=warning");
    house_says(w.h, house_ok(w.h, "schedule.get", "'name':'nightly'"),
               "schedule.name=nightly; schedule.owner=local; schedule.status=active; "
               "schedule.cron=0 3 * * *; schedule.tz=Europe/Vienna; schedule.overlap=queue; "
               "schedule.catchUpMs=20000; schedule.next.#=5; schedule.createdAt="
               "2023-11-14T23:13:20.200+01:00; schedule.everyMs=-; schedule.at=-");
    house_says(w.h, house_ok(w.h, "schedule.list", " "),
               "schedules.#=1; schedules.0.name=nightly; schedules.0.next.#=1");
    house_close(w.h);
}

static void events_are_read_with_where_to_go_on(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, house_ok(w.h, "events.read", "'fromSeq':1,'limit':4"),
               "events.#=4; events.0.seq=1; events.0.type=supervisor_started; "
               "events.0.timestamp=" T0 "; events.0.tsMs=1700000000000; events.0.eventId=*; "
               "events.1.type=agent_registered; events.1.agentId=calc; events.1.agentName=calc; "
               "events.1.capacity=2; events.1.version=1; events.1.epoch=4294967297; "
               "events.2.type=agent_up; events.3.pid=77; nextSeq=5; lastSeq=*");
    house_says(w.h, house_ok(w.h, "events.read", "'fromSeq':1,'types':['plan_paused']"),
               house_text(w.h,
                          "events.#=*; events.0.type=plan_paused; events.0.planId=%s; "
                          "events.0.reason=*",
                          w.id));
    house_close(w.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_is_under_way),
        cmocka_unit_test(results_of_a_plan_under_way_and_of_one_that_has_ended),
        cmocka_unit_test(the_history_of_a_plan_has_orders_revisions_phases_and_reviews),
        cmocka_unit_test(figures_of_a_plan_and_its_cost),
        cmocka_unit_test(a_review_has_all_that_a_person_needs_to_decide),
        cmocka_unit_test(a_sign_off_shows_the_plan_that_would_begin),
        cmocka_unit_test(agents_and_what_they_carry),
        cmocka_unit_test(loads_of_agents_count_what_is_out_and_what_waits),
        cmocka_unit_test(a_session_has_its_messages_and_its_plans),
        cmocka_unit_test(schedules_have_all_that_was_put),
        cmocka_unit_test(events_are_read_with_where_to_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
