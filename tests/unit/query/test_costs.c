/* What plans, sessions and agents cost, and what agents see of a conversation. */
#include <string.h>

#include "supervisor/query/agent_stats.h"
#include "supervisor/query/projection.h"
#include "supervisor/query/session_view.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ALL                                                                                        \
    "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'},"                     \
    "{'id':'converse','description':'C'},{'id':'synthesize','description':'Y'}]"

enum { KEPT = 64 };

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    house_join_as(h, "boss", 2, ALL, "");
    return h;
}

/* ---- costs ---- */

static void a_plan_costs_what_its_planner_estimated_and_used(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'g','planner':'agent:boss'");
    house_done(h, "boss", "'result':{'text':'no plan'},'usage':{'inputTokens':1,'cachedTokens':3}");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.0.planning.inputTokens=1; plans.0.estimatedTokens=-");
    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t',"
               "'estimate':{'tokens':7,'costMicros':9}},{'stepId':'b','agentId':'calc','skill':"
               "'do','task':'t','estimate':{'tokens':4,'costMicros':1}}]}},"
               "'usage':{'inputTokens':2,'cachedTokens':4}");
    house_done(h, "calc", "'result':{'text':'5'},'usage':{'inputTokens':16,'costMicros':2000000}");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.0.planning.inputTokens=3; plans.0.estimatedTokens=11; "
               "plans.0.estimatedCostMicros=10; plans.0.executionTokens=16; "
               "plans.0.status=running; total.estimatedTokens=11; total.estimatedCostMicros=10");
    house_done(h, "calc", "'result':{'text':'6'},'usage':{'outputTokens':32,'costMicros':500000}");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.0.planning.inputTokens=3; plans.0.planning.cachedTokens=7; "
               "plans.0.execution.inputTokens=16; plans.0.execution.outputTokens=32; "
               "plans.0.total.inputTokens=19; plans.0.totalCost=2.5; total.total.cachedTokens=7; "
               "plans.0.status=completed; plans.0.conversationTokens=-");
    (void)house_submit(h, "'plan':{'goal':'g','estimatedTokens':1,'steps':[" STEP(
                              "a", ",'estimate':{'tokens':8}") "]}");
    house_says(h, house_ok(h, "plan.cost", "'limit':1"),
               "plans.#=1; plans.0.estimatedTokens=1; plans.0.total.inputTokens=-; truncated=true");
    house_says(h, house_ok(h, "plan.cost", " "), "plans.#=2; total.estimatedTokens=12");
    house_close(h);
}

static void what_a_planner_used_for_a_cancelled_plan_is_paid(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'goal':'g','planner':'agent:boss'");
    (void)house_work(h, "boss", NULL);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_wait(h, 100);
    house_answer(h, "boss", NULL,
                 "'outcome':'completed','result':{'text':'late'},'usage':{'inputTokens':5}");
    house_wait(h, 2000);
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "plans.#=1; plans.0.status=cancelled; plans.0.planning.inputTokens=5; "
               "plans.0.total.inputTokens=5; total.planningTokens=5");
    house_says(h, house_ok(h, "plan.cost", " "),
               "total.planningTokens=5; total.total.inputTokens=5");
    house_says(h, house_ok(h, "plan.cost", "'sinceMs':%llu", (unsigned long long)h->wall),
               "plans=-; total.total.inputTokens=-");
    house_close(h);
}

static void talk_costs_its_session_and_no_plan(void **state)
{
    struct house *h = open_with_boss();
    const char *id;

    (void)state;
    id = house_submit(h, "'sessionId':'s','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'forty-two'},'usage':{'inputTokens':1}");
    (void)house_submit(h, "'sessionId':'t','plan':{'goal':'add','steps':[" STEP("a", "") "]}");
    house_done(h, "calc", "'result':{'text':'forty-three'}");
    for (int i = 0; i < 2; i++) {
        (void)house_ok(h, "session.say", "'sessionId':'%s','text':'so what did it find out today'",
                       i == 0 ? "s" : "t");
        house_done(h, "boss", "'result':{'text':'42.'},'usage':{'inputTokens':%d}",
                   i == 0 ? 8 : 64);
    }
    house_says(h, house_ok(h, "plan.cost", "'sessionId':'s'"),
               "plans.#=1; total.conversation.inputTokens=8; total.conversationTokens=8; "
               "total.total.inputTokens=9; total.executionTokens=1; plans.0.total.inputTokens=1");
    house_says(h, house_ok(h, "plan.cost", " "),
               "total.conversation.inputTokens=72; total.total.inputTokens=73");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", id),
               "total.conversation.inputTokens=-; total.total.inputTokens=1");
    house_says(h, house_ok(h, "plan.cost", "'limit':2"), "plans.#=2; truncated=-");
    house_close(h);
}

/* A plan that a planner makes, with what that cost; a is done for 1. */
static const char *made_by_planner(struct house *h, int tokens, const char *more)
{
    const char *id = house_submit(h, "'goal':'g','planner':'agent:boss'%s", more);

    house_done(h, "boss",
               "'result':{'data':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':"
               "'t'}]}},'usage':{'inputTokens':%d}",
               tokens);
    house_done(h, "calc", "'result':{'text':'x'},'usage':{'inputTokens':1}");
    return id;
}

static void only_what_began_since_then_is_counted(void **state)
{
    struct house *h = house_open();
    const char *first;
    msec began;

    (void)state;
    house_join(h, "calc", 1);
    house_join_as(h, "boss", 1, "'skills':[{'id':'plan','description':'P'}]", "");
    first = made_by_planner(h, 16, ",'sessionId':'s'");
    house_wait(h, 1000);
    began = h->wall;
    (void)made_by_planner(h, 64, ",'sessionId':'s'");
    house_wait(h, 1000);
    house_says(h, house_ok(h, "plan.cost", " "),
               "plans.#=2; total.planning.inputTokens=80; total.planningTokens=80; "
               "total.executionTokens=2; total.total.inputTokens=82; "
               "plans.0.planning.inputTokens=64; plans.1.planning.inputTokens=16");
    for (int late = 0; late <= 1; late++) {
        house_says(
            h,
            house_ok(h, "plan.cost", "'sinceMs':%llu", (unsigned long long)began + (unsigned)late),
            late == 0 ? "plans.#=1; total.planning.inputTokens=64; "
                        "total.total.inputTokens=65; plans.0.planningTokens=64"
                      : "plans=-; total.total.inputTokens=-; total.planning=-");
    }
    house_says(h, house_ok(h, "plan.cost", "'sessionId':'s'"),
               "plans.#=2; total.planning.inputTokens=80");
    house_says(h, house_ok(h, "plan.cost", "'sessionId':'t'"), "plans=-");
    house_says(h, house_ok(h, "plan.cost", "'planId':'%s'", first),
               "plans.#=1; total.planning.inputTokens=16; total.executionTokens=1");
    house_says(h, house_ok(h, "plan.cost", "'limit':1"),
               "plans.#=1; truncated=true; plans.0.planningTokens=64");
    house_close(h);
}

/* ---- agents ---- */

static void an_agent_is_measured_by_what_it_completed_and_failed(void **state)
{
    struct agent_stats f = {.steps = 0};
    const struct {
        enum record_type type;
        enum step_status status;
        bool reused;
        uint64_t steps, failed, errors, tokens;
        enum err_class cls;
    } rows[] = {
        {REC_STEP_COMPLETED, STEP_COMPLETED, false, 1, 0, 0, 1},
        {REC_STEP_COMPLETED, STEP_FAILED, false, 2, 1, 1, 2},
        {REC_STEP_COMPLETED, STEP_SKIPPED, false, 2, 1, 1, 3},
        {REC_STEP_COMPLETED, STEP_CANCELLED, false, 2, 1, 1, 4},
        {REC_STEP_COMPLETED, STEP_COMPLETED, true, 2, 1, 1, 5},
        {REC_STEP_RETRY, STEP_FAILED, false, 2, 1, 2, 6},
        {REC_VERIFICATION_FAILED, STEP_FAILED, false, 2, 1, 3, 7},
        {REC_STEP_WAITING, STEP_WAITING, false, 2, 1, 3, 8},
        {REC_STEP_STARTED, STEP_IN_PROGRESS, false, 2, 1, 3, 8},
        /* after the failed verification, of the same attempt */
        {REC_STEP_RETRY, STEP_FAILED, false, 2, 1, 3, 9, CLASS_VERIFICATION_FAILED},
        {REC_STEP_COMPLETED, STEP_FAILED, false, 3, 2, 3, 10, CLASS_VERIFICATION_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct record rec = {.type = rows[i].type, .usage = {.input_tokens = 1}};
        if (rec.type == REC_STEP_COMPLETED) {
            REC(&rec, step_completed)->status = rows[i].status;
            REC(&rec, step_completed)->reason = rows[i].reused ? REASON_REUSED : REASON_NONE;
            REC(&rec, step_completed)->duration_ms = i < 2 ? 10 * (i + 1) : 0;
            REC(&rec, step_completed)->error_class = rows[i].cls;
        } else if (rec.type == REC_STEP_RETRY) {
            REC(&rec, retry)->error_class = rows[i].cls;
        }
        agent_stats_record(&f, &rec);
        assert_int_equal(f.steps, rows[i].steps);
        assert_int_equal(f.failed, rows[i].failed);
        assert_int_equal(f.errors, rows[i].errors);
        assert_int_equal(f.tokens, rows[i].tokens);
    }
    assert_int_equal(f.max_ms, 20);
    assert_int_equal(agent_stats_average_ms(&f), 10);
    assert_true(agent_stats_error_rate(&f) == 0.75); /* 3 of 4 attempts */
    f.steps = f.failed = f.errors = 0;
    assert_true(agent_stats_error_rate(&f) == 0 && agent_stats_average_ms(&f) == 0);
}

/* One attempt that failed is one error, however many events it has. */
static void an_attempt_that_failed_is_one_error(void **state)
{
    static const char *const steps[] = {
        "",
        ",'verify':{'type':'object','required':['n']}",
        ",'verifyWith':'boss'",
        ",'onFailure':'replan'",
    };

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct house *h = house_open();
        const char *id;
        house_join(h, "calc", 1);
        house_join_as(h, "boss", 1,
                      "'skills':[{'id':'plan','description':'P'},{'id':'verify','description':"
                      "'V'}]",
                      "");
        id = house_submit(h,
                          "'plan':{'goal':'g','grants':['boss'],'steps':[{'stepId':'a','agentId':"
                          "'calc','skill':'do','task':'t','maxRetries':0%s}]},'policy':{'replan':{"
                          "'agentId':'boss','cooldownMs':0}}",
                          steps[i]);
        if (i == 1 || i == 2) {
            house_done(h, "calc", "'result':{'text':'x'}");
        } else {
            house_failed(h, "calc", "PERMISSION_DENIED", false);
        }
        house_wait(h, 1);
        if (i == 2) {
            house_done(h, "boss", "'result':{'text':'No.'}");
        } else if (i == 3) {
            house_done(h, "boss", "'result':{'data':{'impossible':'x'}}");
        }
        house_says(h, house_ok(h, "plan.stats", "'planId':'%s'", id),
                   "status=failed; agents.0.agentId=calc; agents.0.steps=1; agents.0.errors=1; "
                   "agents.0.errorRate=1");
        house_says(h, house_ok(h, "supervisor.stats", " "),
                   "agents.0.agentId=calc; agents.0.steps=1; agents.0.errors=1; "
                   "agents.0.errorRate=1");
        house_close(h);
    }
}

static void tokens_add_up_to_the_largest_integer(void **state)
{
    const struct usage most = {.input_tokens = INT64_MAX - 1, .output_tokens = 1};
    const struct usage more = {.input_tokens = INT64_MAX, .output_tokens = 1};
    struct agent_stats f = {.steps = 0};

    (void)state;
    assert_int_equal(usage_tokens(&most), INT64_MAX);
    assert_int_equal(usage_tokens(&more), INT64_MAX);
    agent_stats_step(&f, true, 1, 0, INT64_MAX - 1);
    agent_stats_step(&f, true, 1, 0, 1);
    assert_int_equal(f.tokens, INT64_MAX);
    agent_stats_step(&f, true, 1, 0, 1);
    assert_int_equal(f.tokens, INT64_MAX);
}

/* ---- conversations ---- */

static void context_is(struct house *h, uint64_t before, uint32_t n, uint64_t left_out,
                       const char *summary)
{
    struct arena arena = {.chunks = NULL};
    struct session_context c;
    struct bt_error err;

    assert_int_equal(session_context_of(h->engine, STR_LIT("s"), before, &arena, &c, &err), BT_OK);
    assert_int_equal(n == 0 ? 0 : doc_head(c.messages).n, n);
    assert_int_equal(c.left_out, left_out);
    assert_string_equal(c.summary.len > 0 ? c.summary.ptr : "", summary);
    arena_done(&arena);
}

static void agents_see_the_newest_messages_and_how_many_were_before(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    context_is(h, UINT64_MAX, 0, 0, ""); /* there is no session */
    for (int i = 0; i < SESSION_NEWEST / 2 + 1; i++) {
        (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
    }
    context_is(h, 3, 2, 0, "");
    context_is(h, SESSION_NEWEST + 1, SESSION_NEWEST, 0, "");
    context_is(h, SESSION_NEWEST + 2, SESSION_NEWEST, 1, "1 older message is left out");
    context_is(h, SESSION_NEWEST + 3, SESSION_NEWEST, 2, "2 older messages are left out");
    house_close(h);
}

/* ---- projections ---- */

static void more_plans_are_read_at_once_than_are_kept(void **state)
{
    struct engine_options opt = house_options();
    struct projection s[KEPT + 2];
    const char *ids[KEPT + 2];
    struct bt_error err;
    struct house *h;

    (void)state;
    opt.plans_max = KEPT + 2;
    h = house_open_with(&opt);
    for (uint32_t i = 0; i < KEPT + 2; i++) {
        ids[i] = house_submit(h,
                              "'plan':{'goal':'goal %u','steps':[{'stepId':'w','task':'t','wait':"
                              "{'signal':'go'}}]}",
                              i);
    }
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < KEPT + 2; i++) {
            assert_int_equal(projection_read(h->engine, str_from(ids[i]), &s[i], &err), BT_OK);
        }
        for (uint32_t i = 0; i < KEPT + 2; i++) {
            assert_string_equal(house_text(h, "%.*s", STR_ARG(s[i].view.query)),
                                house_text(h, "goal %u", i));
            assert_int_equal(s[i].view.steps_n, 1);
            projection_done(&s[i]);
        }
    }
    (void)house_ok(h, "plan.signal", "'planId':'%s','name':'go'", ids[0]);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", ids[0]), "status=completed");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_costs_what_its_planner_estimated_and_used),
        cmocka_unit_test(what_a_planner_used_for_a_cancelled_plan_is_paid),
        cmocka_unit_test(talk_costs_its_session_and_no_plan),
        cmocka_unit_test(an_agent_is_measured_by_what_it_completed_and_failed),
        cmocka_unit_test(only_what_began_since_then_is_counted),
        cmocka_unit_test(an_attempt_that_failed_is_one_error),
        cmocka_unit_test(tokens_add_up_to_the_largest_integer),
        cmocka_unit_test(agents_see_the_newest_messages_and_how_many_were_before),
        cmocka_unit_test(more_plans_are_read_at_once_than_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
