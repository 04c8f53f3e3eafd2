/* What a planner is told of the goal, of agents and their skills, and of what was wrong before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

enum { EXAMPLE_BYTES = 200, PROBLEMS_BYTES = 2048 };

#define PLANNER "'skills':[{'id':'plan','description':'P'}]"

static struct house *open_with_boss(void)
{
    struct house *h = house_open();

    house_join_as(h, "boss", 1, PLANNER, "");
    return h;
}

static const char *asked(struct house *h, const char *more)
{
    (void)house_submit(h, "'goal':'add','planner':'agent:boss'%s", more);
    return house_work(h, "boss", NULL);
}

static void a_planner_is_told_the_cards_of_agents_that_can_work(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    house_join_as(h, "calc", 1,
                  "'description':'Calculates.','skills':[{'id':'add','description':'Adds.',"
                  "'effects':'none','tags':['sum','plus'],'examples':['add 1 and 2'],"
                  "'inputSchema':{'type':'object'},'outputSchema':{'type':'number'}},"
                  "{'id':'plan','description':'no work'},{'id':'bare','description':'B'}]",
                  "");
    house_join_as(h, "off", 1, "'skills':[{'id':'x','description':'X'}]", "");
    (void)house_ok(h, "agents.drain", "'agentId':'off'");
    house_says(h, asked(h, ",'sessionId':'s'"),
               "skill=plan; purpose=*; parameters.goal=add; parameters.constraints=[]; "
               "parameters.limits.maxSteps=*; parameters.agents.#=1; parameters.problems=-; "
               "parameters.previous=-; parameters.session.messages.#=0; "
               "parameters.agents.0.agentId=calc; parameters.agents.0.name=calc; "
               "parameters.agents.0.description=Calculates.; parameters.agents.0.available=true; "
               "parameters.agents.0.skills.#=2; parameters.agents.0.skills.0.id=add; "
               "parameters.agents.0.skills.0.description=Adds.; "
               "parameters.agents.0.skills.0.effects=none; "
               "parameters.agents.0.skills.0.tags=[\"sum\",\"plus\"]; "
               "parameters.agents.0.skills.0.examples=[\"add 1 and 2\"]; "
               "parameters.agents.0.skills.0.inputSchema.type=object; "
               "parameters.agents.0.skills.0.outputSchema.type=number; "
               "parameters.agents.0.skills.1.id=bare; parameters.agents.0.skills.1.tags=[]; "
               "parameters.agents.0.skills.1.examples=[]; "
               "parameters.agents.0.skills.1.inputSchema=-; "
               "parameters.agents.0.skills.1.outputSchema=-; context.text=add");
    house_close(h);
}

static void a_planner_is_told_of_agents_that_the_policy_permits(void **state)
{
    struct house *h = open_with_boss();

    (void)state;
    house_join(h, "one", 1);
    house_join(h, "two", 1);
    house_says(h, asked(h, ",'constraints':['be quick'],'policy':{'agents':['two']}"),
               "parameters.agents.#=1; parameters.agents.0.agentId=two; "
               "parameters.constraints=[\"be quick\"]");
    house_close(h);
}

static void an_agent_that_has_gone_is_told_as_not_available(void **state)
{
    struct house *h = open_with_boss();
    const struct house_agent *a;

    (void)state;
    a = house_join(h, "calc", 1);
    house_says(h, asked(h, ""), "parameters.agents.0.available=true");
    house_done(h, "boss", "'result':{'data':{'impossible':'x'}}");
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                   (unsigned long long)a->epoch);
    house_says(h, asked(h, ""), "parameters.agents.#=0");
    house_close(h);
}

static void examples_are_told_up_to_their_number_and_length(void **state)
{
    struct house *h = open_with_boss();
    char text[EXAMPLE_BYTES + 2];
    const char *work;

    (void)state;
    memset(text, 'e', sizeof text - 1);
    text[sizeof text - 1] = 0;
    house_join_as(h, "calc", 1,
                  house_text(h,
                             "'skills':[{'id':'add','description':'A','examples':['%.200s','%s',"
                             "'three','four']},{'id':'sub','description':'S','examples':['1','2',"
                             "'3','4','5']}]",
                             text, text),
                  "");
    work = asked(h, "");
    house_says(h, work,
               "parameters.agents.0.skills.0.examples.#=4; "
               "parameters.agents.0.skills.0.examples.3=four; "
               "parameters.agents.0.skills.1.examples=[\"1\",\"2\",\"3\",\"4\"]");
    for (int i = 0; i < 2; i++) {
        const char *told =
            house_get(h, work, house_text(h, "parameters.agents.0.skills.0.examples.%d", i));
        assert_non_null(told);
        assert_int_equal(strlen(told), EXAMPLE_BYTES);
    }
    house_close(h);
}

static void a_repair_is_told_what_was_wrong_and_with_what(void **state)
{
    struct house *h = open_with_boss();
    const char *problems;
    const char *work;
    struct buf steps;

    (void)state;
    house_join(h, "calc", 1);
    (void)asked(h, "");
    buf_init(&steps, 65536);
    for (int i = 0; i < 20; i++) { /* each problem has some 150 bytes */
        buf_printf(&steps,
                   "%s{'stepId':'a%d','agentId':'nobody-of-this-name-is-there','skill':'do',"
                   "'task':'t'}",
                   i > 0 ? "," : "", i);
    }
    house_done(h, "boss", "'result':{'data':{'steps':[%s]}}", buf_cstr(&steps));
    buf_done(&steps);
    work = house_work(h, "boss", NULL);
    house_says(h, work,
               "parameters.previous.data.steps.#=20; parameters.previous.data.steps.3.stepId=a3");
    problems = house_get(h, work, "parameters.problems");
    assert_non_null(problems);
    assert_true(strlen(problems) <= PROBLEMS_BYTES && strlen(problems) > PROBLEMS_BYTES / 2);
    house_close(h);
}

/* ---- a search ---- */

static void a_search_has_the_parameters_or_the_task_as_its_query(void **state)
{
    static const char *const steps[][2] = {
        {",'parameters':{'path':'x'}", "{\"path\":\"x\"}"},
        {"", "do a"},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct house *h = house_open();
        const char *id;
        house_join(h, "calc", 1);
        house_join_as(h, "boss", 1, "'skills':[{'id':'search','description':'S'}]", "");
        id = house_submit(h,
                          "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do',"
                          "'task':'do a','maxRetries':0%s}]},'policy':{'searchAgent':'boss'}",
                          steps[i][0]);
        house_failed(h, "calc", "RESOURCE_NOT_FOUND", false);
        house_is(h, house_work(h, "boss", NULL), "parameters.query", steps[i][1]);
        house_says(h, house_work(h, "boss", NULL), "skill=search; stepId=a; task=do a");
        house_done(h, "boss", "'result':{'text':'found'}");
        house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
                   "status=completed; steps.0.result=found");
        house_close(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planner_is_told_the_cards_of_agents_that_can_work),
        cmocka_unit_test(a_planner_is_told_of_agents_that_the_policy_permits),
        cmocka_unit_test(an_agent_that_has_gone_is_told_as_not_available),
        cmocka_unit_test(examples_are_told_up_to_their_number_and_length),
        cmocka_unit_test(a_repair_is_told_what_was_wrong_and_with_what),
        cmocka_unit_test(a_search_has_the_parameters_or_the_task_as_its_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
