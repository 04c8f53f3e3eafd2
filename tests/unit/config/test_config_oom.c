/* Fails the i-th allocation, alone and with all later ones, for every i: BT_NOMEM, no leak (ASan
 * checks), no partial result. */
#include "tests/support/memory.h"
#include "tests/unit/config/config_test.h"

/* Calls of malloc in this program go through these (linker option --wrap), cJSON's through its
 * hooks; libyaml's do not. */

/* All that is shown of the configuration, and what the agents are started with. */
static void told(const struct home *h, struct buf *out)
{
    const struct config *c = h->config;

    buf_clear(out);
    config_show(c, true, out);
    for (uint32_t i = 0; i < c->n_agents; i++) {
        const char *const *const lists[] = {c->agents[i].command, c->agents[i].env,
                                            c->agents[i].handover, c->agents[i].apart};
        for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
            for (size_t at = 0; lists[k] != NULL && lists[k][at] != NULL; at++) {
                buf_printf(out, "%s\n", lists[k][at]);
            }
        }
        buf_printf(out, "%s %s\n", c->agents[i].settings_json,
                   c->agents[i].held_back != NULL ? c->agents[i].held_back : "");
    }
    for (uint32_t i = 0; i < c->n_schedules; i++) {
        buf_printf(out, "%s\n", c->schedules[i].json);
    }
    buf_printf(out, "%u %u %u %u %s\n", c->n_rates, c->n_prices, c->n_keys, c->n_groups,
               c->gateway.command != NULL ? c->gateway.command[0] : "");
    assert_true(out->bad == BT_OK);
}

/* With the i-th allocation failing, alone or with all later ones: no memory, or all of it. */
static void sweep(struct home *h, bool for_good, long all, const struct buf *whole)
{
    struct buf now;
    long i;

    buf_init(&now, 1 << 20);
    memory_for_good = for_good;
    /* Each one, but of the many of the schema in the middle every seventh. */
    for (i = 0; i <= all; i += i < 200 || i > all - 1200 ? 1 : for_good ? 7 : 29) {
        enum bt_code code;
        forget_config(h);
        memory_left = i;
        memory_failed = false;
        code = config_load(&h->request, &h->config, NULL, &h->err);
        memory_left = -1;
        if (code == BT_OK) {
            told(h, &now);
            if (strcmp(buf_cstr(&now), (const char *)whole->at) != 0) {
                fail_msg("allocation %ld: other settings", i);
            }
            assert_true(!memory_failed || !for_good);
        } else if (code != BT_NOMEM || !memory_failed) {
            fail_msg("allocation %ld: %s: %s", i, bt_code_name(code), h->err.msg);
        } else {
            assert_null(h->config);
        }
    }
    assert_int_equal(load(h), BT_OK);
    buf_done(&now);
}

static void a_configuration_is_whole_or_there_is_no_memory(void **state)
{
    struct home *h = *state;
    struct config_flag flag = {"log.level", "debug"};
    char recipe[128];
    struct buf whole;

    (void)snprintf(recipe, sizeof recipe, "%s/baton/r.yaml", h->dir);
    buf_init(&whole, 1 << 20);
    write_text(h->system, "planner: agent\n");
    write_text(recipe, "name: r\nsteps: [{agentId: a, task: Look at what is there}]\n");
    write_text(
        h->user,
        "policy: {maxRetries: 1}\n"
        "listen: {control: 'tcp://127.0.0.1:auto', lanes: '7200-7210'}\n"
        "gateway: {listen: '127.0.0.1:7180', tls: '${CONFIG_DIR}/t', hooks: /h}\n"
        "rates: [{agentId: a, n: 1, perMs: 5}]\nprices: [{agentId: a, input: 1, output: 2}]\n"
        "allowUids: [1]\nallowEndpoints: ['tcp://192.0.2.5:*']\nretention: {maxBytes: 7}\n"
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
    memory_left = -1;
    assert_int_equal(h->config->n_agents, 2);
    assert_int_equal(h->config->n_schedules, 2);
    assert_int_equal(h->config->n_rates, 1);
    assert_int_equal(h->config->n_prices, 1);
    assert_int_equal(h->config->n_allow_uids, 1);
    told(h, &whole);
    (void)buf_cstr(&whole);
    sweep(h, true, all, &whole);
    sweep(h, false, all, &whole);
    buf_done(&whole);
    (void)unlink(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        a_configuration_is_whole_or_there_is_no_memory, home_open, home_close)};
    cJSON_Hooks hooks = {malloc, free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
