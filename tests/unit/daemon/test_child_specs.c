/* From a configuration to what should run: each field of each process, group, price and rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/children.h"
#include "tests/support/cmocka.h"

static const char *const command[] = {"/bin/agent", "--flag", NULL};
static const char *const env[] = {"A=1", NULL};
static const char *const handover[] = {"secret:K=v", NULL};
static const char *const apart[] = {"user=7:8", "network=none", NULL};
static const char *const other_user[] = {"network=none", "user=9:9", NULL};
static const char *const endpoints[] = {"tcp://10.*", "tcp://11.*"};
static const uint32_t uids[] = {7, 5};

static const struct config_agent agents[] = {
    {.agent_id = "calc",
     .command = command,
     .env = env,
     .cwd = "/srv",
     .instances = {.min = 1, .max = 2},
     .capacity = 3,
     .start_ms = 11,
     .group = "g",
     .restart = POLICY_TRANSIENT,
     .grace_ms = 12,
     .settings_json = "{}",
     .handover = handover,
     .apart = apart},
    {.agent_id = "b", .command = command, .apart = other_user, .settings_json = "{\"x\":1}"},
};
static const struct config_group groups[] = {
    {.name = "g", .strategy = GROUP_ONE_FOR_ALL, .intensity = 2, .period_ms = 13, .fatal = true},
    {.name = "h", .strategy = GROUP_ONE_FOR_ONE, .intensity = 4, .period_ms = 14}};
static const struct config_key keys[] = {{.key = "k", .max = 1, .n = 2, .per_ms = 3},
                                         {.key = "l", .max = 4}};
static const struct config_rate rates[] = {{.agent_id = "calc", .n = 5, .per_ms = 6}};
static const struct config_price prices[] = {{"*", 1.5, 2.5, 0.5}, {"calc", 3, 4, 1}};

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static long successes_left = -1; /* -1 = no failure */

void *__wrap_calloc(size_t n, size_t size)
{
    return successes_left >= 0 && successes_left-- == 0 ? NULL : __real_calloc(n, size);
}

static struct config config_of_all(void)
{
    struct config c = {.agents = agents,
                       .n_agents = 2,
                       .groups = groups,
                       .n_groups = 2,
                       .keys = keys,
                       .n_keys = 2,
                       .rates = rates,
                       .n_rates = 1,
                       .prices = prices,
                       .n_prices = 2,
                       .allow_uids = uids,
                       .n_allow_uids = 2,
                       .allow_endpoints = endpoints,
                       .n_allow_endpoints = 2,
                       .gateway = {.command = command},
                       .log = {.agent_bytes = 21, .agent_files = 22},
                       .policy = {.shutdown_grace_ms = 23,
                                  .restart = {.intensity = 24,
                                              .period_ms = 25,
                                              .backoff_min_ms = 26,
                                              .backoff_max_ms = 27,
                                              .jitter_permille = 28}}};
    return c;
}

static void a_process_is_named_by_its_agent_and_its_number(void **state)
{
    static const struct {
        const char *name, *agent;
        uint32_t number;
    } cases[] = {{"calc#1", "calc", 1},  {"calc#64", "calc", 64}, {"calc#65", "calc", 0},
                 {"calc#0", "calc", 0},  {"calc", "calc", 0},     {"calc#", "calc", 0},
                 {"calc#1x", "calc", 0}, {"calcs#1", "calc", 0},  {"cal#1", "calc", 0},
                 {"calc#7", "cal", 0},   {"b#c#3", "b#c", 3},     {"calc-1", "calc", 0}};
    char name[SPAWN_NAME_MAX + 1];

    (void)state;
    child_name("calc", 64, name);
    assert_string_equal(name, "calc#64");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(child_number(cases[i].name, cases[i].agent), cases[i].number);
    }
}

static void is_policy(const struct policy_settings *p, enum policy_restart restart, msec grace,
                      msec start)
{
    assert_int_equal(p->restart, restart);
    assert_int_equal(p->intensity, 24);
    assert_int_equal(p->period_ms, 25);
    assert_int_equal(p->backoff_min_ms, 26);
    assert_int_equal(p->backoff_max_ms, 27);
    assert_int_equal(p->jitter_permille, 28);
    assert_int_equal(p->stable_ms, 30000);
    assert_int_equal(p->grace_ms, grace);
    assert_int_equal(p->start_deadline_ms, start);
}

static void a_process_has_what_its_agent_says(void **state)
{
    const struct config c = config_of_all();
    const struct spawn_spec a = child_spec(&c, 0, 2, "calc#2");
    const struct spawn_spec b = child_spec(&c, 1, 1, "b#1");

    (void)state;
    assert_string_equal(a.name, "calc#2");
    assert_string_equal(a.agent_id, "calc");
    assert_ptr_equal(a.argv, command);
    assert_ptr_equal(a.env, env);
    assert_string_equal(a.settings, "{}");
    assert_int_equal(a.capacity, 3);
    assert_string_equal(a.cwd, "/srv");
    assert_ptr_equal(a.handover, handover);
    assert_ptr_equal(a.apart, apart);
    assert_string_equal(a.group, "g");
    assert_int_equal(a.place, 2);
    assert_int_equal(a.nofile, 0);
    assert_int_equal(a.log_bytes, 21);
    assert_int_equal(a.log_files, 22);
    is_policy(&a.policy, POLICY_TRANSIENT, 12, 11);
    assert_int_equal(b.place, 64 + 1); /* behind every process of the agent before */
    assert_null(b.group);
    assert_null(b.cwd);
    assert_true(a.policy.seed != b.policy.seed); /* they do not come back in step */
}

static void the_gateway_is_a_process_that_is_always_there(void **state)
{
    const struct config c = config_of_all();
    const struct spawn_spec g = child_gateway_spec(&c);

    (void)state;
    assert_string_equal(g.name, "baton-gateway");
    assert_string_equal(g.agent_id, "baton-gateway");
    assert_ptr_equal(g.argv, command);
    assert_int_equal(g.nofile, 4096);
    assert_int_equal(g.log_bytes, 21);
    assert_int_equal(g.log_files, 22);
    is_policy(&g.policy, POLICY_PERMANENT, 23, 23);
}

static void groups_have_their_rules_and_the_waits_of_all(void **state)
{
    const struct config c = config_of_all();
    struct spawn_group_spec of[SPAWN_GROUPS_MAX];

    (void)state;
    assert_int_equal(child_groups(&c, of), 2);
    assert_string_equal(of[0].name, "g");
    assert_string_equal(of[1].name, "h");
    assert_int_equal(of[0].set.strategy, GROUP_ONE_FOR_ALL);
    assert_int_equal(of[1].set.strategy, GROUP_ONE_FOR_ONE);
    assert_int_equal(of[0].set.intensity, 2);
    assert_int_equal(of[0].set.period_ms, 13);
    assert_int_equal(of[0].set.backoff_min_ms, 26);
    assert_int_equal(of[0].set.backoff_max_ms, 27);
    assert_int_equal(of[0].set.jitter_permille, 28);
    assert_int_equal(of[0].set.stable_ms, 30000);
    assert_true(of[0].set.seed != of[1].set.seed);
}

static void prices_and_rules_are_those_of_the_configuration(void **state)
{
    const struct config c = config_of_all();
    struct token_price *p;
    struct engine_rule *r;
    struct bt_error err;
    uint32_t n = 0;

    (void)state;
    assert_int_equal(children_prices(&c, &p, &err), BT_OK);
    assert_string_equal(p[0].agent_id, "*");
    assert_true(p[0].input == 1.5 && p[0].output == 2.5 && p[0].cached == 0.5);
    assert_string_equal(p[1].agent_id, "calc");
    assert_true(p[1].input == 3 && p[1].output == 4 && p[1].cached == 1);
    free(p);
    assert_int_equal(children_rules(&c, &r, &n, &err), BT_OK);
    assert_int_equal(n, 3);
    assert_string_equal(r[0].name, "k");
    assert_true(r[0].of_key && r[0].max == 1 && r[0].n == 2 && r[0].per_ms == 3);
    assert_string_equal(r[1].name, "l");
    assert_true(r[1].of_key && r[1].max == 4 && r[1].n == 0);
    assert_string_equal(r[2].name, "calc");
    assert_true(!r[2].of_key && r[2].max == 0 && r[2].n == 5 && r[2].per_ms == 6);
    free(r);
}

/* Each user once; those that agents run as may connect, and follow nothing. */
static void users_who_may_connect_are_those_allowed_and_those_of_agents(void **state)
{
    const struct config c = config_of_all();
    struct daemon_options opt = {.inbox = 1};
    struct bt_error err;

    (void)state;
    assert_int_equal(children_of_config(&c, &opt, &err), BT_OK);
    assert_int_equal(opt.n_allow_uids, 3);
    assert_int_equal(opt.allow_uids[0], 7);
    assert_int_equal(opt.allow_uids[1], 5);
    assert_int_equal(opt.allow_uids[2], 9);
    assert_int_equal(opt.n_followers, 2);
    assert_int_equal(opt.engine.n_rules, 3);
    assert_string_equal(opt.engine.rules[2].name, "calc");
    assert_int_equal(opt.engine.n_prices, 2);
    assert_string_equal(opt.engine.prices[1].agent_id, "calc");
    assert_ptr_equal(opt.engine.agent_endpoints, endpoints);
    assert_int_equal(opt.engine.n_agent_endpoints, 2);
    assert_ptr_equal(opt.config, &c);
    free((void *)(uintptr_t)opt.allow_uids);
    free((void *)(uintptr_t)opt.engine.rules);
    free((void *)(uintptr_t)opt.engine.prices);
}

static void without_memory_for_one_of_its_lists_no_daemon_is_started(void **state)
{
    const struct config c = config_of_all();

    (void)state;
    for (long i = 0; i < 4; i++) {
        struct daemon_options opt = {.inbox = 1};
        struct bt_error err = {.code = BT_OK};
        successes_left = i;
        const enum bt_code code = children_of_config(&c, &opt, &err);
        successes_left = -1;
        assert_int_equal(code, i < 3 ? BT_NOMEM : BT_OK);
        assert_true(i == 3 || strstr(err.msg, "out of memory for") != NULL);
        free((void *)(uintptr_t)opt.allow_uids);
        free((void *)(uintptr_t)opt.engine.rules);
        free((void *)(uintptr_t)opt.engine.prices);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_named_by_its_agent_and_its_number),
        cmocka_unit_test(a_process_has_what_its_agent_says),
        cmocka_unit_test(the_gateway_is_a_process_that_is_always_there),
        cmocka_unit_test(groups_have_their_rules_and_the_waits_of_all),
        cmocka_unit_test(prices_and_rules_are_those_of_the_configuration),
        cmocka_unit_test(users_who_may_connect_are_those_allowed_and_those_of_agents),
        cmocka_unit_test(without_memory_for_one_of_its_lists_no_daemon_is_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
