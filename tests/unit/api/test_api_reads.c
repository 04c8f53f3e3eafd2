/* events.read, blob.get, plan.history, stats, cost, lint; sessions, storage, export and import. */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'goal':'add 2 and 3','steps':[" STEP("a", "") "]}"
#define TWO "'plan':{'goal':'add','steps':[" STEP("a", "") "," STEP("b", "") "]}"

/* ---- events.read ---- */

static void events_are_read_from_a_number_on(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *page;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'5'}");
    (void)house_submit(h, ONE);
    page = house_ok(h, "events.read", "'fromSeq':1,'limit':3");
    house_says(h, page,
               "events.#=3; events.0.seq=1; events.0.type=supervisor_started; events.2.seq=3; "
               "nextSeq=4; deleted=-");
    page = house_ok(h, "events.read", "'fromSeq':4,'limit':1000");
    house_says(h, page,
               house_text(h, "events.0.seq=4; nextSeq=%llu; lastSeq=%llu",
                          (unsigned long long)journal_committed_seq(h->journal) + 1,
                          (unsigned long long)journal_committed_seq(h->journal)));
    page = house_ok(h, "events.read", "'fromSeq':0,'planId':'%s'", id);
    house_says(h, page,
               house_text(h,
                          "events.0.planId=%s; events.0.planSeq=1; "
                          "events.0.type=plan_generated; events.#=6",
                          id));
    page =
        house_ok(h, "events.read", "'fromSeq':1,'types':['plan_step_completed','plan_completed']");
    house_says(h, page,
               "events.#=2; events.0.type=plan_step_completed; events.1.type=plan_completed");
    house_refused(h, "INVALID",
                  "types[1]: \"plan_complete\" is no event; did you mean "
                  "\"plan_completed\"?",
                  "events.read", "'fromSeq':1,'types':['plan_started','plan_complete']");
    house_refused(h, "INVALID", "EVENTS.md", "events.read", "'fromSeq':1,'types':['xyzzy']");
    house_refused(h, "INVALID", "is no event", "events.read",
                  "'fromSeq':1,'types':['step_assigned']");
    house_refused(h, "NOT_FOUND", "No state found", "events.read", "'fromSeq':1,'planId':'x'");
    house_refused(h, "INVALID", "fromSeq", "events.read", " ");
    house_refused(h, "INVALID", "limit", "events.read", "'fromSeq':1,'limit':1001");
    house_refused(h, "INVALID", "waitMs", "events.read", "'fromSeq':1,'waitMs':60001");
    house_close(h);
}

static void a_cursor_whose_event_is_another_one_is_refused(void **state)
{
    struct house *h = house_open();
    char last[64];
    uint64_t seq;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    seq = journal_committed_seq(h->journal);
    (void)snprintf(
        last, sizeof last, "%s",
        house_get(h, house_ok(h, "events.read", "'fromSeq':1,'limit':1000"), "lastEventId"));
    assert_int_equal(strlen(last), 36);
    house_says(h,
               house_ok(h, "events.read", "'fromSeq':%llu,'afterEventId':'%s'",
                        (unsigned long long)seq + 1, last),
               house_text(h, "events.#=0; lastEventId=%s", last));
    house_refused(h, "HISTORY_CHANGED", "read again from event 1", "events.read",
                  "'fromSeq':%llu,'afterEventId':'%s'", (unsigned long long)seq, last);
    house_refused(h, "HISTORY_CHANGED", "is not there any more", "events.read",
                  "'fromSeq':%llu,'afterEventId':'%s'", (unsigned long long)seq + 2, last);
    (void)house_ok(h, "events.read", "'fromSeq':1,'afterEventId':'%s'", last); /* from the first */
    house_close(h);
}

static void one_read_gives_as_many_events_as_the_limit(void **state)
{
    struct house *h = house_open();
    uint64_t seq = 0;

    (void)state;
    house_join(h, "calc", 1);
    while (seq <= LIMIT_EVENTS_READ) {
        const char *id = house_submit(h, ONE ",'policy':{'signoff':true}");
        (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
        seq = journal_committed_seq(h->journal);
    }
    house_says(h, house_ok(h, "events.read", "'fromSeq':1,'limit':%d", LIMIT_EVENTS_READ),
               "events.#=1000; nextSeq=1001");
    house_says(h, house_ok(h, "events.read", "'fromSeq':1"), "events.#=100; nextSeq=101");
    house_close(h);
}

static void a_read_waits_for_the_next_event(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    /* Nothing comes: the answer is empty, when the time is over. */
    assert_null(house_ask(h, "events.read", "'fromSeq':%llu,'waitMs':2000,'types':['plan_started']",
                          (unsigned long long)journal_committed_seq(h->journal) + 1));
    h->agents[0].silent = true; /* no other requests */
    house_wait(h, 1999);
    assert_null(house_late_answer(h));
    house_wait(h, 1);
    house_says(h, house_late_answer(h), "ok=true; events.#=0");
    house_close(h);

    h = house_open();
    house_join(h, "calc", 1);
    assert_null(
        house_ask(h, "events.read", "'fromSeq':1,'waitMs':60000,'types':['plan_completed']"));
    {
        const uint64_t waiting = h->requests;
        (void)house_submit(h, ONE);
        assert_null(fake_link_answer_to(h->link, waiting));
        house_done(h, "calc", "'result':{'text':'5'}");
        assert_non_null(fake_link_answer_to(h->link, waiting));
    }
    house_close(h);
}

static void a_range_that_was_deleted_is_named(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *page;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'5'}");
    (void)house_submit(h, ONE);
    page = house_ok(h, "events.read", "'fromSeq':1,'planId':'%s','limit':1", id);
    (void)house_ok(h, "plan.delete", "'planId':'%s'", id);
    house_says(h, house_ok(h, "events.read", "'fromSeq':1,'limit':1000"),
               house_text(h, "deleted.#=1; deleted.0.fromSeq=%s; deleted.0.toSeq=*",
                          house_get(h, page, "events.0.seq")));
    house_close(h);
}

static void a_blob_is_read_in_parts(void **state)
{
    struct house *h = house_open();
    const char *id;
    const char *page;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'five'}");
    page = house_ok(h, "plan.history", "'planId':'%s'", id);
    assert_non_null(page);
    house_says(h, house_ok(h, "blob.get", "'blobId':1"), "len=*; bytes=*");
    page = house_ok(h, "blob.get", "'blobId':1");
    house_says(h, house_ok(h, "blob.get", "'blobId':1,'limit':3"),
               house_text(h, "len=%s; bytes=%.4s", house_get(h, page, "len"),
                          house_get(h, page, "bytes")));
    house_says(h, house_ok(h, "blob.get", "'blobId':1,'offset':3,'limit':3"),
               house_text(h, "bytes=%.4s", house_get(h, page, "bytes") + 4));
    house_says(h, house_ok(h, "blob.get", "'blobId':1,'offset':100000"),
               house_text(h, "len=%s; bytes=", house_get(h, page, "len")));
    house_refused(h, "NOT_FOUND", "no blob", "blob.get", "'blobId':99");
    house_refused(h, "INVALID", "blobId", "blob.get", " ");
    house_close(h);
}

/* ---- plan.history, stats, cost ---- */

static void history_tells_orders_revisions_and_phases(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO);
    (void)house_ok(h, "plan.pause", "'planId':'%s','reason':'lunch'", id);
    (void)house_ok(h, "plan.resume", "'planId':'%s','reason':'back'", id);
    (void)house_ok(h, "plan.modify",
                   "'planId':'%s','kind':'insert','afterStepId':'a','reasoning':'more','steps':["
                   "{'stepId':'n','agentId':'calc','skill':'do','task':'in between'}]",
                   id);
    house_says(
        h, house_ok(h, "plan.history", "'planId':'%s'", id),
        "task=add; status=running; owner=local; orders.#=2; orders.0.kind=pause; "
        "orders.0.reason=lunch; orders.1.kind=resume; orders.1.reason=back; "
        "orders.0.by.id=local; revisions.#=2; revisions.0.kind=submitted; revisions.0.steps=2; "
        "revisions.1.kind=insert; revisions.1.reasoning=more; revisions.1.steps=1; "
        "revisions.1.planRef=*; phases.0.phase=planning; phases.0.endTime=*; "
        "phases.1.phase=execution; phases.1.endTime=-; "
        "executionAttempts=1; truncated=-; parentPlanId=-");
    (void)house_ok(h, "plan.cancel", "'planId':'%s','reason':'enough'", id);
    house_wait(h, 5000);
    house_says(h, house_ok(h, "plan.history", "'planId':'%s'", id),
               "status=cancelled; outcome=failed; orders.#=3; orders.2.kind=cancel; "
               "orders.2.reason=enough; phases.1.endTime=*; totalDurationMs=*");
    house_refused(h, "NOT_FOUND", "No state found", "plan.history", "'planId':'x'");
    house_refused(h, "INVALID", "planId", "plan.history", " ");
    house_close(h);
}

static void stats_measure_steps_and_agents(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, TWO ",'policy':{'backoff':{'kind':'fixed','initialMs':500},"
                             "'estimate':{'tokens':10,'costMicros':3}}");
    (void)house_work(h, "calc", NULL);
    h->now += 100;
    h->wall += 100;
    house_says(h, house_ok(h, "plan.stats", "'planId':'%s'", id),
               "status=running; durationMs=100; steps.0.runMs=100; steps.1.runMs=-");
    house_failed(h, "calc", "TIMEOUT", true);
    house_wait(h, 500);
    h->now += 200;
    h->wall += 200;
    house_done(h, "calc", "'result':{'text':'5'},'usage':{'inputTokens':4,'costMicros':8}");
    h->now += 50;
    h->wall += 50;
    house_done(h, "calc", "'result':{'text':'6'},'usage':{'outputTokens':2}");
    house_says(
        h, house_ok(h, "plan.stats", "'planId':'%s'", id),
        "status=completed; durationMs=850; dependencies=1; depth=2; bottleneckStepId=a; "
        "parallelism=1; estimatedTokens=20; estimatedCostMicros=6; usage.inputTokens=4; "
        "usage.outputTokens=2; usage.costMicros=8; steps.#=2; steps.0.attempts=2; "
        "steps.0.runMs=800; steps.0.tokens=4; steps.0.costMicros=8; steps.0.queueMs=-; "
        "steps.0.estimatedTokens=10; steps.1.runMs=50; steps.1.tokens=2; agents.#=1; "
        "agents.0.agentId=calc; agents.0.steps=2; agents.0.errors=1; agents.0.averageMs=425; "
        "agents.0.maxMs=800; agents.0.tokens=6; truncated=-");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.#=1; plans.0.task=add; plans.0.status=completed; plans.0.executionTokens=6; "
               "plans.0.execution.inputTokens=4; plans.0.planningTokens=-; "
               "total.executionTokens=6; "
               "total.totalCost=8e-06; truncated=-");
    house_refused(h, "NOT_FOUND", "No state found", "plan.stats", "'planId':'x'");
    house_refused(h, "INVALID", "planId", "plan.stats", " ");
    /* one that is named is told, whenever it was made */
    house_is(h, house_ok(h, "plan.cost", "'planId':'%s','sinceMs':9000000000000", id), "plans.#",
             "1");
    house_refused(h, "NOT_FOUND", "No state found", "plan.cost", "'planId':'x'");
    house_close(h);
}

static void costs_are_summed_by_session_and_since_a_time(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (int i = 0; i < 3; i++) {
        (void)house_submit(h, ONE ",'sessionId':'%s'", i == 1 ? "t" : "s");
        house_done(h, "calc", "'result':{'text':'5'},'usage':{'inputTokens':%d}", 1 << i);
        house_wait(h, 1000);
    }
    house_says(h, house_ok(h, "plan.cost", "'sessionId':'s'"),
               "plans.#=2; total.executionTokens=5; total.total.inputTokens=5");
    house_says(h, house_ok(h, "plan.cost", "'sinceMs':%llu", 1700000000000ull),
               "plans.#=3; total.executionTokens=7");
    house_says(h, house_ok(h, "plan.cost", "'sinceMs':%llu", 1700000001000ull),
               "plans.#=2; total.executionTokens=6");
    house_says(h, house_ok(h, "plan.cost", "'sinceMs':%llu", 1700000001001ull),
               "plans.#=1; total.executionTokens=4");
    house_says(h, house_ok(h, "plan.cost", "'limit':2"), "plans.#=2; truncated=true");
    house_says(h, house_ok(h, "plan.cost", "'limit':3"), "plans.#=3; truncated=-");
    house_refused(h, "INVALID", "limit", "plan.cost", "'limit':1001");
    house_close(h);
}

/* ---- plan.lint ---- */

static void lint_gives_levels_the_worst_case_and_problems(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_says(
        h,
        house_ok(
            h, "plan.lint",
            "'plan':{'steps':[" STEP("a", ",'dependsOn':[]") "," STEP(
                "b",
                ",'dependsOn':[]") "," STEP("c",
                                            ",'dependsOn':['a','b']") "]},"
                                                                      "'policy':{'maxFallbacks':0,'"
                                                                      "maxRetries':"
                                                                      "0,'stepTimeoutMs':1000,"
                                                                      "'estimate':{'tokens':5,"
                                                                      "'costMicros':2}}"),
        "valid=true; levels.#=2; levels.0.steps=[\"a\",\"b\"]; levels.1.steps=[\"c\"]; "
        "worstCaseMs=2200; worstCaseTokens=15; worstCaseCostMicros=6; "
        "criticalPath.#=2; criticalPath.1=c; plan.steps.#=3");
    house_says(h, house_ok(h, "plan.lint", ONE ",'policy':{'stepTimeoutMs':0}"),
               "valid=true; worstCaseMs=-; worstCaseTokens=-");
    house_says(h, house_ok(h, "plan.lint", "'plan':{'steps':[" STEP("a", ",'timout':5") "]}"),
               "valid=false; plan=-; levels=-; problems.0.severity=error; problems.0.stepId=a");
    house_refused(h, "INVALID", "use plan.submit with dryRun", "plan.lint",
                  "'goal':'x','planner':'agent:calc'");
    house_refused(h, "INVALID", "", "plan.lint", " ");
    assert_int_equal(house_seen(h, "plan_generated"), 0);
    house_close(h);
}

/* ---- sessions ---- */

static void sessions_show_messages_and_plans(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    house_refused(h, "NOT_FOUND", "no session", "session.get", "'sessionId':'s'");
    id = house_submit(h, ONE ",'sessionId':'s'");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               house_text(h,
                          "sessionId=s; openPlanId=%s; planHistory.#=1; planHistory.0.planId=%s; "
                          "planHistory.0.task=add 2 and 3; planHistory.0.status=running; "
                          "messagesTotal=0; messages=-; owner=local; createdAt=*; updatedAt=-",
                          id, id));
    house_says(h, house_ok(h, "session.list", " "), "sessions.#=0");
    house_says(
        h, house_ok(h, "session.say", "'sessionId':'s','text':'status'"),
        "turnId=*; action=conversation_only; reply=~Step 1 is under way; planId=-; existing=-");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s'"),
               "messagesTotal=2; messages.#=2; messages.0.n=1; messages.0.role=user; "
               "messages.0.text=status; messages.1.role=assistant; messages.0.turnId=*; "
               "messages.0.timestamp=2023-11-14T22:13:20.000Z; updatedAt=*");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s','limit':1"),
               "messages.#=1; messages.0.n=2; messagesTotal=2");
    house_says(h, house_ok(h, "session.get", "'sessionId':'s','before':2"),
               "messages.#=1; messages.0.n=1");
    house_wait(h, 10);
    (void)house_ok(h, "session.say", "'sessionId':'t','text':'status'");
    house_says(h, house_ok(h, "session.list", " "),
               house_text(h,
                          "sessions.#=2; sessions.0.sessionId=t; sessions.0.openPlanId=-; "
                          "sessions.1.sessionId=s; sessions.1.openPlanId=%s",
                          id));
    house_says(h, house_ok(h, "session.list", "'limit':1"), "sessions.#=1; sessions.0.sessionId=t");
    house_refused(h, "INVALID", "limit", "session.list", "'limit':1001");
    house_refused(h, "INVALID", "limit", "session.get", "'sessionId':'s','limit':1001");
    house_refused(h, "INVALID", "sessionId", "session.get", " ");
    house_says(h, house_ok(h, "session.delete", "'sessionId':'t'"), "sessionId=t");
    house_says(h, house_ok(h, "session.list", " "), "sessions.#=1");
    house_refused(h, "NOT_FOUND", "", "session.delete", "'sessionId':'t'");
    house_refused(h, "INVALID", "sessionId", "session.delete", " ");
    house_close(h);
}

/* ---- storage ---- */

static void a_check_of_the_journal_finds_nothing_wrong(void **state)
{
    struct house *h = house_open();
    const char *part;

    (void)state;
    part = house_ok(h, "supervisor.scrub", " ");
    house_says(h, part, "problems=-");
    house_refused(h, "INVALID", "cursor: is not one of an earlier answer", "supervisor.scrub",
                  "'cursor':'x'");
    (void)house_ok(h, "supervisor.scrub", "'cursor':'0.1'");
    house_close(h);
}

static void exports_imports_and_copies_refuse_what_they_cannot_do(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    house_says(h, house_ok(h, "journal.export", " "), "lines=-; cursor=-");
    house_refused(h, "CONFLICT", "", "journal.export", "'planId':'%s'", id);
    house_refused(h, "NOT_FOUND", "No state found", "journal.export", "'planId':'x'");
    house_refused(h, "INVALID", "cursor", "journal.export", "'cursor':'x'");
    house_refused(h, "INVALID", "lines", "journal.import", " ");
    house_refused(h, "INVALID", "", "journal.import", "'lines':'x'");
    house_refused(h, "INVALID", "file", "journal.backup", "'file':'relative'");
    house_says(h, house_ok(h, "journal.backup", " "), "file=-; running=-");
    house_close(h);
}

static void events_from_zero_are_all_of_them(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h, house_ok(h, "events.read", "'fromSeq':0,'limit':2"),
               "events.#=2; events.0.seq=1; nextSeq=3");
    house_says(h, house_ok(h, "events.read", "'fromSeq':1,'limit':2"),
               "events.#=2; events.0.seq=1; nextSeq=3");
    house_says(h, house_ok(h, "events.read", "'fromSeq':2,'limit':1"),
               "events.#=1; events.0.seq=2; nextSeq=3");
    house_close(h);
}

static unsigned cycles;

static void count_cycle(bool act)
{
    cycles += act;
}

/* The plan has never been read: its projection is laid out first, which is a cycle's work. */
static unsigned cycles_of_a_fork(int steps)
{
    struct house *h = house_open();
    struct buf plan;
    const char *id;

    house_join(h, "calc", 1);
    buf_init(&plan, LIMIT_CONTROL_BYTES);
    for (int i = 0; i < steps; i++) {
        buf_printf(&plan, "%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'do it'}",
                   i > 0 ? "," : "", i);
    }
    id = house_submit(h, "'plan':{'goal':'many','steps':[%.*s]}", (int)plan.len,
                      (const char *)plan.at);
    buf_done(&plan);
    cycles = 0;
    house_rooms_act = count_cycle;
    house_says(h, house_ok(h, "plan.fork", "'planId':'%s','fromStep':'s0'", id), "planId=*");
    house_rooms_act = NULL;
    house_close(h);
    return cycles;
}

static void a_fork_of_a_large_plan_takes_a_cycle_to_read_and_one_for_each_stage(void **state)
{
    enum { LARGE = 1000 /* as projections.c has it */ };

    (void)state;
    assert_int_equal(cycles_of_a_fork(LARGE + 1), cycles_of_a_fork(LARGE) + 3);
}

static void a_look_ahead_has_the_time_of_undoing(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h,
               house_ok(h, "plan.lint",
                        "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do',"
                        "'task':'t','timeoutMs':1000,'maxRetries':0,'effects':'idempotent',"
                        "'compensate':{'skill':'do','task':'undo'}}]}"),
               "ok=true; worstCaseUndoMs=*; worstCaseMs=*");
    house_says(h,
               house_ok(h, "plan.lint",
                        "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do',"
                        "'task':'t','timeoutMs':1000,'maxRetries':0}]}"),
               "ok=true; worstCaseUndoMs=-; worstCaseMs=*");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_of_a_large_plan_takes_a_cycle_to_read_and_one_for_each_stage),
        cmocka_unit_test(events_from_zero_are_all_of_them),
        cmocka_unit_test(events_are_read_from_a_number_on),
        cmocka_unit_test(a_cursor_whose_event_is_another_one_is_refused),
        cmocka_unit_test(one_read_gives_as_many_events_as_the_limit),
        cmocka_unit_test(a_read_waits_for_the_next_event),
        cmocka_unit_test(a_range_that_was_deleted_is_named),
        cmocka_unit_test(a_blob_is_read_in_parts),
        cmocka_unit_test(history_tells_orders_revisions_and_phases),
        cmocka_unit_test(stats_measure_steps_and_agents),
        cmocka_unit_test(costs_are_summed_by_session_and_since_a_time),
        cmocka_unit_test(lint_gives_levels_the_worst_case_and_problems),
        cmocka_unit_test(sessions_show_messages_and_plans),
        cmocka_unit_test(a_check_of_the_journal_finds_nothing_wrong),
        cmocka_unit_test(exports_imports_and_copies_refuse_what_they_cannot_do),
        cmocka_unit_test(a_look_ahead_has_the_time_of_undoing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
