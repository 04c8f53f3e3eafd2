/* Agents that the journal remembers: agents.list with `remembered`. */
#include "tests/support/house/house.h"

/* Agents that were here before; who is here is in the other list. */
static void agents_that_left_are_remembered_and_listed_by_themselves(void **state)
{
    struct house *h = house_open();
    const struct house_agent *calc = house_join(h, "calc", 1);

    (void)state;
    house_join(h, "other", 1);
    house_says(h, house_ok(h, "agents.list", "'remembered':true"), "agents.#=0");
    house_says(h, house_ok(h, "agents.list", " "), "agents.#=2");
    house_wait(h, 500);
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", calc->instance,
                   (unsigned long long)calc->epoch);
    house_says(h, house_ok(h, "agents.list", "'remembered':true"),
               "agents.#=1; agents.0.card.agentId=calc; agents.0.card.skills.0.id=do; "
               "agents.0.state=remembered; agents.0.external=true; agents.0.seenAt=1700000000500");
    house_says(h, house_ok(h, "agents.list", " "), "agents.#=1; agents.0.card.agentId=other");
    house_restart(h);
    house_says(h, house_ok(h, "agents.list", " "), "agents.#=0");
    house_says(h, house_ok(h, "agents.list", "'remembered':true"),
               "agents.#=2; agents.0.state=remembered; agents.1.state=remembered");
    house_join(h, "calc", 1);
    house_says(h, house_ok(h, "agents.list", "'remembered':true"),
               "agents.#=1; agents.0.card.agentId=other");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agents_that_left_are_remembered_and_listed_by_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
