/* Fails the i-th allocation and all later ones, for every i: BT_NOMEM, no leak (ASan checks), no
 * partial result. */
#include "tests/support/memory.h"
#include "tests/unit/config/config_test.h"

/* Calls of malloc in this program go through these (linker option --wrap), cJSON's through its
 * hooks; libyaml's do not. */

static void every_failing_allocation_is_reported(void **state)
{
    struct home *h = *state;
    struct config_flag flag = {"log.level", "debug"};
    char recipe[128];
    long i;

    (void)snprintf(recipe, sizeof recipe, "%s/baton/r.yaml", h->dir);

    write_text(h->system, "planner: agent\n");
    write_text(recipe, "name: r\nsteps: [{agentId: a, task: Look at what is there}]\n");
    write_text(
        h->user,
        "policy: {maxRetries: 1}\n"
        "listen: {control: 'tcp://127.0.0.1:auto', lanes: '7200-7210'}\n"
        "gateway: {listen: '127.0.0.1:7180', tls: '${CONFIG_DIR}/t', hooks: /h}\n"
        "rates: [{agentId: a, n: 1, perMs: 5}]\nprices: [{agentId: a, input: 1, output: 2}]\n"
        "allowUids: [1]\nallowEndpoints: ['tcp://10.0.0.5:*']\nretention: {maxBytes: 7}\n"
        "keys: [{key: k, max: 2, rate: {n: 1, perMs: 10}}]\n"
        "groups: [{name: g, strategy: one_for_all}]\n"
        "agents:\n"
        "  - {agentId: a, command: ['${BATON_BIN}/x'], env: ['A=1'], settings: {n: [1]},"
        " group: g, user: root, network: none, limits: {processes: 7}, cwd: '${CONFIG_DIR}',"
        " secrets: [HOME, NO_SUCH_SECRET], paths: {read: ['${CONFIG_DIR}/r']}}\n"
        "schedules:\n"
        "  - {name: s, cron: '0 9 * * *', recipe: '${CONFIG_DIR}/r.yaml'}\n"
        "  - {name: t, everyMs: 60000, plan: {steps: []}}\n"
        "llm:\n  providers:\n    - {api: openai, model: m, baseUrl: "
        "'http://127.0.0.1:1/v1', keyEnv: NO_SUCH_KEY}\n");
    h->request.flags = &flag;
    h->request.n_flags = 1;
    memory_left = 1000000;
    assert_int_equal(config_load(&h->request, &h->config, NULL, &h->err), BT_OK);
    const long all = 1000000 - memory_left;
    /* Each one, but of the many of the schema in the middle every seventh. */
    for (i = 0; i < 20000; i += i < 200 || i > all - 1200 ? 1 : 7) {
        enum bt_code code;
        bool ended;
        forget_config(h);
        memory_left = i;
        memory_failed = false;
        code = config_load(&h->request, &h->config, NULL, &h->err);
        ended = !memory_failed; /* also when there were exactly i */
        memory_left = -1;
        if (ended) {
            if (code != BT_OK) {
                fail_msg("%s", h->err.msg);
            }
            assert_int_equal(h->config->n_agents, 2);
            assert_int_equal(h->config->n_schedules, 2);
            assert_int_equal(h->config->n_rates, 1);
            assert_int_equal(h->config->n_prices, 1);
            assert_int_equal(h->config->n_allow_uids, 1);
            break;
        }
        if (code != BT_NOMEM) {
            fail_msg("allocation %ld: %s: %s", i, bt_code_name(code), h->err.msg);
        }
        assert_null(h->config);
    }
    assert_in_range(i, 100, 19999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        every_failing_allocation_is_reported, home_open, home_close)};
    cJSON_Hooks hooks = {malloc, free};

    memory_for_good = true;
    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
