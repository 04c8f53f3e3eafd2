/* Agents that call others: which calls are made, and why the others are not. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "tests/support/house/house.h"

#define CALL(id, more) "{'id':'" id "','agentId':'t','skill':'do'" more "}"
#define SCHEMA                                                                                     \
    "'skills':[{'id':'do','description':'D','inputSchema':{'type':'object','properties':{"         \
    "'n':{'type':'integer'},'s':{'type':'string'},'t':{'type':'string'},'u':{'type':'string'},"    \
    "'v':{'type':'string'}}}},"                                                                    \
    "{'id':'hidden','description':'H','tags':['x-baton-asked']},"                                  \
    "{'id':'other','description':'O','tags':['b','c']}]"
#define CALLER "'skills':[{'id':'work','description':'W','tags':['a','x-baton-calls']}]"

/* What the turns of turn_of hold beside its numbers. */
enum { VALUES = 15 };
#define CALLER_AND(more)                                                                           \
    "'skills':[{'id':'work','description':'W','tags':['a','x-baton-calls']},"                      \
    "{'id':'more','description':'M'" more "}]"

static struct house *open_with_tools(void)
{
    struct house *h = house_open();

    house_join_as(h, "t", 4, SCHEMA, "");
    house_join_as(h, "c", 1, CALLER, "");
    return h;
}

/* Begins the step of c, whose plan may use t. */
static const char *begin(struct house *h, const char *more)
{
    return house_submit(h,
                        "'plan':{'goal':'g','grants':['t'],'steps':[{'stepId':'a','agentId':'c',"
                        "'skill':'work','task':'find out','maxRetries':0%s}]}",
                        more);
}

static void turn(struct house *h, const char *calls)
{
    house_answer(h, "c", NULL, "'outcome':'calls','calls':[%s],'usage':{'inputTokens':1}", calls);
    house_wait(h, 1);
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static void a_call_is_made_and_its_result_is_in_the_next_turn(void **state)
{
    struct house *h = open_with_tools();
    const char *id = begin(h, "");

    (void)state;
    house_says(h, house_work(h, "c", NULL),
               "turns=-; turnsLeft=30; tools.#=2; tools.0.agentId=t; tools.0.skill=do; "
               "tools.1.skill=other; tools.0.approval=-");
    turn(h, CALL("x", ",'parameters':{'n':1},'task':'one'") "," CALL("y", ",'parameters':{'n':2}"));
    house_says(h, house_work(h, "t", "x"), "parameters.n=1; task=one");
    house_says(h, house_work(h, "t", "y"), "parameters.n=2");
    assert_null(house_work(h, "c", NULL));
    house_answer(h, "t", "y",
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':"
                 "'PERMISSION_DENIED','message':'no entry','retryable':false}");
    house_answer(h, "t", "x", "'outcome':'completed','result':{'data':{'v':7}}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.#=1; turns.0.calls.#=2; turns.0.calls.0.id=x; turns.0.results.0.id=x; "
               "turns.0.results.0.status=completed; turns.0.results.0.data={\"v\":7}; "
               "turns.0.results.1.id=y; turns.0.results.1.status=failed; "
               "turns.0.results.1.error=~no entry; turnsLeft=29");
    house_done(h, "c", "'result':{'text':'seven'},'usage':{'inputTokens':2}");
    house_says(h, view(h, id),
               "status=completed; steps.0.result=seven; steps.0.children.rounds=1; "
               "usage.inputTokens=3");
    house_close(h);
}

static void a_call_that_cannot_be_made_is_answered_with_the_reason(void **state)
{
    static const struct {
        const char *call, *why;
    } cases[] = {
        {"{'id':'x','agentId':'nobody','skill':'do'}",
         "there is no tool nobody/do here; there are: t/do, t/other"},
        {"{'id':'x','agentId':'t','skill':'hidden'}", "there is no tool t/hidden here"},
        {"{'id':'x','agentId':'c','skill':'work'}", "there is no tool c/work here"},
        {CALL("x", ",'parameters':{'m':1}"),
         "parameters/m: there is no such parameter; there are: n, s, t, u, v"},
        {CALL("x", ",'parameters':{'n':1,'m':1,'k':2}"),
         "parameters/m: there is no such parameter; there are: n, s, t, u, v; parameters/k: there"},
        {CALL("x", ",'parameters':{'n':'one'}"), "parameters/n "},
        {CALL("x", ",'parameters':{'n':'1','s':1}"), "; parameters/s "},
        {CALL("x", ",'parameters':{'n':'1','s':1,'t':2,'u':3}"), "got 2; and more"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_with_tools();
        const char *id = begin(h, "");
        turn(h, cases[i].call);
        assert_null(house_lane(h, "t", NULL));
        house_is(h, house_work(h, "c", NULL), "turns.0.results.0.status", "failed");
        house_has(h, house_work(h, "c", NULL), "turns.0.results.0.error", cases[i].why);
        house_done(h, "c", "'result':{'text':'none'}");
        house_says(h, view(h, id), "status=completed");
        house_close(h);
    }
}

/* Three reasons are told; of a fourth one it is said that there is more. */
static void three_wrong_parameters_are_all_that_is_wrong(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)begin(h, "");
    turn(h, CALL("x", ",'parameters':{'n':'1','s':1,'t':2}"));
    house_has(h, house_work(h, "c", NULL), "turns.0.results.0.error", "; parameters/t ");
    assert_null(strstr(house_get(h, house_work(h, "c", NULL), "turns.0.results.0.error"), "more"));
    house_close(h);
}

static void a_call_beside_one_that_is_refused_is_made(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)begin(h, "");
    turn(h, CALL("bad", ",'parameters':{'m':1}") "," CALL("good", ""));
    house_done(h, "t", "'result':{'text':'5'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.0.results.#=2; turns.0.results.0.id=bad; turns.0.results.0.status=failed; "
               "turns.0.results.1.id=good; turns.0.results.1.status=completed; "
               "turns.0.results.1.text=5");
    house_close(h);
}

static void the_same_call_is_not_made_in_a_third_turn(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)begin(h, "");
    for (int i = 0; i < 2; i++) {
        turn(h, CALL("x", ",'parameters':{'n':1}") "," CALL("y", ",'parameters':{'n':2}"));
        house_answer(h, "t", "x", "'outcome':'completed','result':{'text':'1'}");
        house_answer(h, "t", "y", "'outcome':'completed','result':{'text':'2'}");
        house_wait(h, 1);
    }
    /* another value, and the same one with another name */
    turn(h, CALL("x", ",'parameters':{'n':3}") "," CALL("z", ",'parameters':{'n':2}"));
    assert_non_null(house_work(h, "t", "x"));
    house_answer(h, "t", "x", "'outcome':'completed','result':{'text':'3'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.#=3; turns.2.results.0.status=completed; turns.2.results.1.id=z; "
               "turns.2.results.1.error=~the same call was made in the two turns before");
    house_close(h);
}

static void a_person_approves_each_call_that_wants_it(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)begin(h, ",'tools':[{'tool':'t/do','approval':true}]");
    house_says(h, house_work(h, "c", NULL), "tools.#=1; tools.0.skill=do; tools.0.approval=true");
    turn(h, CALL("x", "") ",{'id':'y','agentId':'t','skill':'other'}");
    assert_null(house_lane(h, "t", NULL));
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'",
                   house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId"));
    house_done(h, "t", "'result':{'text':'5'}");
    house_wait(h, 1);
    house_says(h, house_work(h, "c", NULL),
               "turns.0.results.0.text=5; turns.0.results.1.error=~there is no tool t/other here");
    house_close(h);
}

/* The caller's own skill is none of its tools, nor is one that agents are asked beside steps. */
static void a_tool_is_told_with_all_that_a_call_needs(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "t", 1,
                  "'skills':[{'id':'do','description':'Does.','effects':'unsafe','inputSchema':{"
                  "'type':'object'}},{'id':'plain','description':'P'},{'id':'gate','description':"
                  "'G','tags':['x-baton-asked']}]",
                  "");
    house_join_as(h, "c", 1,
                  "'skills':[{'id':'work','description':'W','tags':['x-baton-calls']},{'id':"
                  "'side','description':'S'}]",
                  "");
    (void)begin(h, ",'tools':['c','t/gate','t/plain',{'tool':'t/do','approval':true}]");
    house_says(h, house_work(h, "c", NULL),
               "stepId=a; turnsLeft=30; turns=-; tools.#=3; tools.0.agentId=t; tools.0.skill=do; "
               "tools.0.description=Does.; tools.0.effects=unsafe; "
               "tools.0.inputSchema.type=object; tools.0.approval=true; tools.1.skill=plain; "
               "tools.1.effects=idempotent; tools.1.inputSchema=-; tools.1.approval=-; "
               "tools.2.agentId=c; tools.2.skill=side");
    house_close(h);
}

static void an_agent_without_tools_hears_that_there_are_none(void **state)
{
    struct house *h = open_with_tools();

    (void)state;
    (void)house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'c','skill':'work',"
                          "'task':'t','maxRetries':0}]}");
    house_says(h, house_work(h, "c", NULL), "tools.#=0");
    turn(h, CALL("x", ""));
    house_says(h, house_work(h, "c", NULL),
               "turns.0.results.0.error=~there is no tool t/do here; turns.#=1");
    house_has(h, house_work(h, "c", NULL), "turns.0.results.0.error", "there is none at all");
    house_close(h);
}

/* ---- a step that names no skill ---- */

/* With several skills it is not known which one does the step: no tool is told, and a call may be
 * made when any of them may call. */
static void a_step_without_a_skill_is_done_with_the_only_one(void **state)
{
    static const struct {
        const char *skills, *tools, *turns;
    } cases[] = {
        {CALLER, "2", "30"},
        {CALLER_AND(""), "-", "-"},
        {CALLER_AND(",'tags':['a','b']"), "-", "-"},
        {"'skills':[{'id':'work','description':'W'}]", "-", "-"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = house_open();
        const char *id;
        house_join_as(h, "t", 4, SCHEMA, "");
        house_join_as(h, "c", 1, cases[i].skills, "");
        id = house_submit(h, "'plan':{'goal':'g','grants':['t'],'steps':[{'stepId':'a','agentId':"
                             "'c','task':'find out','maxRetries':0}]}");
        house_says(h, house_work(h, "c", NULL),
                   house_text(h, "tools.#=%s; turnsLeft=%s", cases[i].tools, cases[i].turns));
        turn(h, CALL("x", ",'parameters':{'n':1}"));
        if (i < 3) {
            assert_non_null(house_work(h, "t", "x"));
        } else {
            assert_null(house_lane(h, "t", NULL));
            house_says(h, view(h, id), "steps.0.error=~whose card has no tag");
        }
        house_close(h);
    }
}

/* ---- how large the turns of a step are ---- */

/* A call whose parameters hold n levels of lists, or n numbers. */
static void turn_of(struct house *h, uint32_t levels, uint32_t numbers)
{
    struct buf call;

    buf_init(&call, 2 * 1024 * 1024);
    buf_add_cstr(&call, "{'id':'x','agentId':'t','skill':'other','parameters':{'p':");
    for (uint32_t i = 0; i < levels; i++) {
        buf_add_cstr(&call, "[");
    }
    for (uint32_t i = 0; i < numbers; i++) {
        buf_add_cstr(&call, i == 0 ? "1" : ",1");
    }
    for (uint32_t i = 0; i < levels; i++) {
        buf_add_cstr(&call, "]");
    }
    buf_add_cstr(&call, "}}");
    turn(h, buf_cstr(&call));
    buf_done(&call);
}

/* The turns go with a later assignment, which has other values, too. */
static void turns_are_nested_so_deep_and_have_so_many_values(void **state)
{
    /* the list of turns, the turn, its calls, the call and the parameters: five levels; and with
     * their names and the list of numbers they are 15 values */
    static const struct {
        uint32_t levels, numbers;
        bool fits;
    } cases[] = {{LIMIT_DEPTH - 1 - 5, 0, true},
                 {LIMIT_DEPTH - 5, 0, false},
                 {1, LIMIT_NODES / 2 - VALUES, true},
                 {1, LIMIT_NODES / 2 - VALUES + 1, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_with_tools();
        const char *id = begin(h, "");
        turn_of(h, cases[i].levels, cases[i].numbers);
        if (cases[i].fits) {
            house_says(h, view(h, id), "steps.0.status=in_progress; steps.0.error=-");
        } else {
            house_says(h, view(h, id),
                       "status=failed; steps.0.errorClass=PROTOCOL_ERROR; "
                       "steps.0.error=~calls_too_large");
        }
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_made_and_its_result_is_in_the_next_turn),
        cmocka_unit_test(a_call_that_cannot_be_made_is_answered_with_the_reason),
        cmocka_unit_test(three_wrong_parameters_are_all_that_is_wrong),
        cmocka_unit_test(a_call_beside_one_that_is_refused_is_made),
        cmocka_unit_test(the_same_call_is_not_made_in_a_third_turn),
        cmocka_unit_test(a_person_approves_each_call_that_wants_it),
        cmocka_unit_test(a_tool_is_told_with_all_that_a_call_needs),
        cmocka_unit_test(an_agent_without_tools_hears_that_there_are_none),
        cmocka_unit_test(a_step_without_a_skill_is_done_with_the_only_one),
        cmocka_unit_test(turns_are_nested_so_deep_and_have_so_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
