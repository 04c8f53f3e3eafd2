/* Processes of agents, as the supervisor of processes knows them: shown, and ordered. */
#include <string.h>

#include "tests/support/house/house.h"

static struct house *house_with_processes(void)
{
    static const struct house_process two[] = {
        {.agent_id = "calc",
         .why = "exited with 3",
         .log = "/var/log/calc.log",
         .view = {.name = "calc#1",
                  .state = "up",
                  .group = "workers",
                  .doing = "drains",
                  .reason = "exited with 3",
                  .pid = 4711,
                  .restarts = 2,
                  .stale = true}},
        {.agent_id = "calc",
         .why = "",
         .log = "",
         .view = {.name = "calc#2", .state = "backoff", .group = "", .doing = "", .reason = ""}},
    };
    struct house *h = house_open();

    h->processes[0] = two[0];
    h->processes[1] = two[1];
    h->processes_n = 2;
    return h;
}

static void processes_are_shown_with_their_agent(void **state)
{
    struct house *h = house_with_processes();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "state=up; processes.#=2; processes.0.name=calc#1; processes.0.state=up; "
               "processes.0.group=workers; processes.0.doing=drains; processes.0.pid=4711; "
               "processes.0.restarts=2; processes.0.stale=true; processes.0.reason=exited with 3; "
               "processes.1.name=calc#2; processes.1.state=backoff; processes.1.pid=-; "
               "processes.1.stale=-; processes.1.group=-; processes.1.doing=-; reason=-; log=-");
    house_says(h, house_ok(h, "agents.list", " "), "agents.0.processes.#=2");
    house_join(h, "files", 1);
    house_says(h, house_ok(h, "agents.get", "'agentId':'files'"), "processes=-; external=true");
    house_close(h);
}

static void an_agent_that_is_away_says_why(void **state)
{
    struct house *h = house_with_processes();
    const struct house_agent *a;

    (void)state;
    a = house_join(h, "calc", 1);
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                   (unsigned long long)a->epoch);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "state=down; reason=exited with 3; log=/var/log/calc.log; gaveUp=-");
    house_close(h);
}

static void texts_of_processes_are_made_safe(void **state)
{
    struct house *h = house_with_processes();

    (void)state;
    house_join(h, "calc", 1);
    h->processes[0].view.reason = "bad \xff byte";
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "processes.0.reason=~bad ");
    house_close(h);
}

static void orders_reach_the_supervisor_of_processes(void **state)
{
    struct house *h = house_with_processes();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h, house_ok(h, "agents.start", "'agentId':'calc'"),
               "processes.#=2; processes.0=calc#1; processes.1=calc#2");
    house_says(h, house_ok(h, "agents.stop", "'agentId':'calc','process':'calc#2'"),
               "processes.#=1; processes.0=calc#2");
    (void)house_ok(h, "agents.restart", "'agentId':'calc','now':true");
    assert_string_equal(h->ordered, "start calc/; stop calc/calc#2; restart calc/ now; ");
    house_refused(h, "NOT_FOUND", "no such process", "agents.stop",
                  "'agentId':'calc','process':'calc#3'");
    house_refused(h, "NOT_FOUND", "no such process", "agents.start", "'agentId':'nobody'");
    house_refused(h, "INVALID", "agentId", "agents.restart", " ");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_shown_with_their_agent),
        cmocka_unit_test(an_agent_that_is_away_says_why),
        cmocka_unit_test(texts_of_processes_are_made_safe),
        cmocka_unit_test(orders_reach_the_supervisor_of_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
