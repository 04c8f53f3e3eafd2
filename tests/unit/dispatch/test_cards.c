/* Cards that outlive the daemon: a plan may name an agent that has not come back yet. */
#include <string.h>

#include "supervisor/dispatch/cards.h"
#include "tests/support/house/house.h"

#define OTHER(skill) "{'stepId':'b','agentId':'other','skill':'" skill "','task':'t'}"

static void recall(struct house *h)
{
    struct bt_error err;

    if (agents_recall(h->engine, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static struct agent_view agent(const struct house *h, const char *id)
{
    const struct registry *registry = engine_registry(h->engine);
    const uint32_t at = registry_agent(registry, str_from(id));

    assert_int_not_equal(at, REGISTRY_NONE);
    return registry_agent_view(registry, at);
}

static void a_card_is_kept_over_a_restart(void **state)
{
    struct house *h = house_open();
    const struct msg_card *card;

    (void)state;
    house_join_as(h, "calc", 1,
                  "'skills':[{'id':'do','description':'Does.'},{'id':'more',"
                  "'description':'M'}],'icon':'x'",
                  "");
    house_restart(h);
    assert_int_equal(registry_agent(engine_registry(h->engine), STR_LIT("calc")), REGISTRY_NONE);
    recall(h);
    card = agent(h, "calc").card;
    assert_non_null(card);
    assert_int_equal(agent(h, "calc").instances, 0);
    assert_int_equal(card->skills_n, 2);
    assert_true(str_is(card->skills[0].description, "Does."));
    assert_true(str_is(card->icon, "x"));
    house_close(h);
}

/* The one that is there knows best: its card may be newer than what was kept. */
static void the_card_of_an_agent_that_is_there_stays(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_restart(h);
    house_join_as(h, "calc", 1, "'skills':[{'id':'new','description':'N'}]", "");
    recall(h);
    assert_true(str_is(agent(h, "calc").card->skills[0].id, "new"));
    assert_int_equal(agent(h, "calc").instances, 1);
    recall(h); /* again is the same */
    assert_int_equal(registry_agents(engine_registry(h->engine)), 1);
    house_close(h);
}

/* One that cannot be read is left out, and the others are there. */
static void a_damaged_card_costs_its_agent_alone(void **state)
{
    struct house *h = house_open();
    const struct journal_agent bad = {
        .id = STR_LIT("bad"), .seen_wall = 1, .card = STR_LIT("\xc1 no card")};
    struct bt_error err;

    (void)state;
    house_join(h, "calc", 1);
    assert_int_equal(journal_agent_put(h->journal, &bad, &err), BT_OK);
    assert_int_equal(journal_commit(h->journal, &err), BT_OK);
    house_restart(h);
    recall(h);
    assert_null(agent(h, "bad").card);
    assert_non_null(agent(h, "calc").card);
    house_close(h);
}

/* A table that is full keeps those that are there. */
static void cards_are_recalled_as_long_as_there_is_room(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.agents_max = 2;
    h = house_open_with(&opt);
    house_join(h, "one", 1);
    house_wait(h, 1000);
    house_restart(h);
    house_join(h, "two", 1);
    house_restart(h);
    house_join(h, "three", 1);
    recall(h);
    assert_int_equal(registry_agents(engine_registry(h->engine)), 2);
    assert_non_null(agent(h, "three").card);
    assert_non_null(agent(h, "two").card); /* was there last */
    house_close(h);
}

/* A plan that waits for agents may name one that is away: with the skills that it had. */
static void a_change_of_a_plan_that_waits_is_held_to_the_cards_of_those_that_are_away(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    house_join(h, "other", 1);
    house_restart(h);
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do',"
                         "'task':'t'}]},'policy':{'waitForAgents':true}");
    house_restart(h);
    house_join(h, "calc", 1);
    house_refused(h, "INVALID", "agent \"other\" has no skill \"dance\"; it has: do", "plan.modify",
                  "'planId':'%s','kind':'insert','steps':{'afterStepId':'a','steps':[%s]}", id,
                  OTHER("dance"));
    (void)house_ok(h, "plan.modify",
                   "'planId':'%s','kind':'insert','steps':{'afterStepId':'a','steps':[%s]}", id,
                   OTHER("do"));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_is_kept_over_a_restart),
        cmocka_unit_test(the_card_of_an_agent_that_is_there_stays),
        cmocka_unit_test(a_damaged_card_costs_its_agent_alone),
        cmocka_unit_test(cards_are_recalled_as_long_as_there_is_room),
        cmocka_unit_test(a_change_of_a_plan_that_waits_is_held_to_the_cards_of_those_that_are_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
