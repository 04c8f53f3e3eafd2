/* Turns of an agent that calls others: answers that are none, plans among the calls, what the next
 * turn is told, and how many calls and turns there are. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "tests/support/house/house.h"

#define CALL(id, more) "{'id':'" id "','agentId':'t','skill':'do'" more "}"
#define PLAN(id, plan) "{'id':'" id "','plan':" plan "}"

static struct house *open_with_tools(void)
{
    struct house *h = house_open();

    house_join_as(h, "t", 32,
                  "'skills':[{'id':'do','description':'D'},{'id':'other','description':'O',"
                  "'effects':'unsafe'}]",
                  "");
    house_join_as(h, "c", 1,
                  "'skills':[{'id':'work','description':'W','tags':['x-baton-calls']},"
                  "{'id':'plain','description':'P'}]",
                  "");
    return h;
}

static const char *begin(struct house *h, const char *skill)
{
    return house_submit(h,
                        "'plan':{'goal':'g','grants':['t'],'steps':[{'stepId':'a','agentId':'c',"
                        "'skill':'%s','task':'find out','maxRetries':0}]}",
                        skill);
}

static void turn(struct house *h, const char *calls)
{
    house_answer(h, "c", NULL, "'outcome':'calls','calls':[%s]", calls);
    house_wait(h, 1);
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* ---- answers that keep to no rule ---- */

static void an_answer_that_keeps_to_no_rule_fails_the_attempt(void **state)
{
    static const struct {
        const char *skill, *calls, *words;
    } cases[] = {
        {"plain", CALL("x", ""), "outcome calls from skill \"plain\", whose card has no tag"},
        {"work", "", "outcome calls without `calls`"},
        {"work", CALL("x", "") "," CALL("y", "") "," CALL("x", ""),
         "calls[2].id: another call of the turn has it"},
        {"work", CALL("x", "") "," CALL("a b", ""), "calls[1].id: expected 1 to 64 of A-Z"},
        {"work", CALL("x", ",'plan':{'steps':[]}"), "calls[0]: expected either agentId and skill"},
        {"work", "{'id':'x','task':'t'}", "calls[0]: expected either agentId and skill, or plan"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_with_tools();
        const char *id = begin(h, cases[i].skill);
        turn(h, cases[i].calls);
        assert_null(house_lane(h, "t", NULL));
        house_says(h, view(h, id), "status=failed");
        house_has(h, view(h, id), "steps.0.error", cases[i].words);
        house_close(h);
    }
}

static void a_turn_has_so_many_calls(void **state)
{
    (void)state;
    for (int n = LIMIT_CALLS; n <= LIMIT_CALLS + 1; n++) {
        struct house *h = open_with_tools();
        const char *id = begin(h, "work");
        struct buf calls;
        buf_init(&calls, 65536);
        for (int i = 0; i < n; i++) {
            buf_printf(&calls, "%s{'id':'x%d','agentId':'t','skill':'do'}", i > 0 ? "," : "", i);
        }
        turn(h, buf_cstr(&calls));
        if (n == LIMIT_CALLS) {
            assert_non_null(house_work(h, "t", "x15"));
            house_says(h, view(h, id), "status=running");
        } else {
            assert_null(house_lane(h, "t", NULL));
            house_has(h, view(h, id), "steps.0.error", "17 calls in one turn, at most 16");
        }
        buf_done(&calls);
        house_close(h);
    }
}

static void a_step_has_so_many_turns(void **state)
{
    struct house *h = open_with_tools();
    const char *id = begin(h, "work");

    (void)state;
    for (int i = 0; i < LIMIT_TURNS; i++) {
        char left[16];
        (void)snprintf(left, sizeof left, "%d", LIMIT_TURNS - i);
        house_is(h, house_work(h, "c", NULL), "turnsLeft", left);
        house_answer(
            h, "c", NULL,
            "'outcome':'calls','calls':[{'id':'x','agentId':'t','skill':'do','task':'%d'}]", i);
        house_wait(h, 1);
        if (house_work(h, "t", NULL) != NULL) {
            house_done(h, "t", "'result':{'text':'ok'}");
            house_wait(h, 1);
        }
    }
    house_is(h, house_work(h, "c", NULL), "turnsLeft", "0");
    turn(h, CALL("x", ",'task':'more'"));
    assert_null(house_work(h, "t", NULL));
    house_says(h, view(h, id), "status=failed; steps.0.error=*");
    house_close(h);
}

/* ---- plans ---- */

static void a_plan_among_the_calls_is_done_and_its_answer_is_the_result(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)begin(h, "work");
    turn(h,
         PLAN("p", "{'goal':'both','steps':[{'stepId':'m','agentId':'t','skill':'do','task':'m'},"
                   "{'stepId':'n','agentId':'t','skill':'other','task':'n {{results.m}}'}]}"));
    house_is(h, house_work(h, "t", NULL), "task", "m");
    house_done(h, "t", "'result':{'text':'M'}");
    house_wait(h, 1);
    house_is(h, house_work(h, "t", NULL), "task", "n M");
    house_done(h, "t", "'result':{'text':'N'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.0.results.0.id=p; turns.0.results.0.status=completed; "
               "turns.0.results.0.data.m=M; turns.0.results.0.data.n=N; "
               "turns.0.calls.0.plan.goal=both");
    house_close(h);
}

static void a_plan_that_cannot_be_made_is_answered_with_the_reason(void **state)
{
    static const struct {
        const char *plan, *words;
    } cases[] = {
        {"{'goal':'g'}", "plan.steps: expected a list of 1 to"},
        {"{'steps':[]}", "plan.steps: expected a list of 1 to"},
        {"{'steps':{}}", "plan.steps: expected a list of 1 to"},
        {"{'steps':[7]}", "plan.steps[0]: expected a map"},
        {"{'steps':[{'stepId':'m','agentId':'t','skill':'do','task':'m','timeoutMs':1}]}",
         "plan.steps[0].timeoutMs: not here; a step has stepId, agentId, skill, task"},
        {"{'steps':[{'stepId':'m','agentId':'t','skill':'do','task':'m'},{'stepId':'n','agentId':"
         "'t','skill':'none','task':'n'}]}",
         "there is no tool t/none here"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_with_tools();
        (void)begin(h, "work");
        turn(h, house_text(h, "{'id':'p','plan':%s},{'id':'x','agentId':'t','skill':'do'}",
                           cases[i].plan));
        house_done(h, "t", "'result':{'text':'ok'}"); /* the other call is made */
        house_wait(h, 1);
        house_says(h, house_work(h, "c", NULL),
                   "turns.0.results.0.status=failed; turns.0.results.1.status=completed; "
                   "turns.0.results.0.errorClass=VALIDATION_ERROR");
        house_has(h, house_work(h, "c", NULL), "turns.0.results.0.error", cases[i].words);
        house_close(h);
    }
}

/* ---- what the next turn is told ---- */

static void what_the_agent_said_beside_its_calls_stands_in_its_turn(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)begin(h, "work");
    house_answer(h, "c", NULL,
                 "'outcome':'calls','result':{'text':'I look'},'calls':[" CALL("x", "") "]");
    house_wait(h, 1);
    house_done(h, "t", "'result':{'text':'5','data':[1],'truncated':true}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.0.result.text=I look; turns.0.results.0.text=5; "
               "turns.0.results.0.data=[1]; turns.0.results.0.truncated=true; "
               "tools.0.effects=idempotent; tools.1.effects=unsafe; tools.1.description=O");
    turn(h, CALL("y", ""));
    house_done(h, "t", "'result':{'text':'6'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.#=2; turns.0.results.0.text=5; turns.1.result=-; turns.1.calls.0.id=y; "
               "turns.1.results.0.text=6; turns.1.results.0.truncated=-; attempt=3");
    house_close(h);
}

/* A result has 64 KiB in a transcript; what is larger is cut, and says so. */
static void a_large_result_is_cut_in_the_transcript(void **state)
{
    enum { ROOM = 64 * 1024 };
    static char text[ROOM + 1024];

    (void)state;
    for (int large = 0; large < 2; large++) {
        struct house *h = open_with_tools();
        memset(text, 'w', sizeof text);
        text[large != 0 ? ROOM + 100 : ROOM - 100] = 0;
        (void)begin(h, "work");
        turn(h, CALL("x", ""));
        house_done(h, "t", "'result':{'text':'%s'}", text);
        house_wait(h, 1);
        house_says(h, house_work(h, "c", NULL),
                   large != 0 ? "turns.0.results.0.truncated=true"
                              : "turns.0.results.0.truncated=-");
        assert_int_equal(strlen(house_get(h, house_work(h, "c", NULL), "turns.0.results.0.text")) <
                             ROOM - 100,
                         0);
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_keeps_to_no_rule_fails_the_attempt),
        cmocka_unit_test(a_turn_has_so_many_calls),
        cmocka_unit_test(a_step_has_so_many_turns),
        cmocka_unit_test(a_plan_among_the_calls_is_done_and_its_answer_is_the_result),
        cmocka_unit_test(a_plan_that_cannot_be_made_is_answered_with_the_reason),
        cmocka_unit_test(what_the_agent_said_beside_its_calls_stands_in_its_turn),
        cmocka_unit_test(a_large_result_is_cut_in_the_transcript),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
