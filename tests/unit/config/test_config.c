/* The sources of settings, their precedence, and the defaults. */
#include "tests/unit/config/config_test.h"

#include "supervisor/config/embedded.h"
#include "supervisor/config/settings.h"

static void defaults_are_the_numbers_of_the_requirements(void **state)
{
    struct home *h = *state;
    const struct config *c;

    expect_loads(h);
    c = h->config;
    assert_string_equal(c->listen_control, "tcp://127.0.0.1:auto");
    assert_string_equal(c->listen_events, "tcp://127.0.0.1:auto");
    assert_int_equal(c->auth, CONFIG_AUTH_TOKEN);
    assert_int_equal(c->durability, DURABILITY_POWER);
    assert_string_equal(c->planner, "keyword");
    assert_int_equal(c->policy.max_retries, 2);
    assert_int_equal(c->policy.backoff.kind, BACKOFF_LINEAR);
    assert_int_equal(c->policy.backoff.initial_ms, 1000);
    assert_int_equal(c->policy.backoff.multiplier_permille, 2000);
    assert_int_equal(c->policy.backoff.max_ms, 30000);
    assert_int_equal(c->policy.backoff.jitter_permille, 0);
    assert_int_equal(c->policy.step_timeout_ms, 60000);
    assert_int_equal(c->policy.plan_timeout_ms, 0);
    assert_int_equal(c->policy.max_concurrency, 5);
    assert_int_equal(c->policy.on_failure, ON_FAILURE_ABORT);
    assert_int_equal(c->policy.heartbeat_ms, 1000);
    assert_int_equal(c->policy.lease_ms, 3000);
    assert_int_equal(c->policy.agent_wait_ms, 30000);
    assert_int_equal(c->policy.context_budget_bytes, 131072);
    assert_int_equal(c->policy.context_result_bytes, 65536);
    assert_int_equal(c->policy.shutdown_grace_ms, 5000);
    assert_int_equal(c->policy.restart.intensity, 5);
    assert_int_equal(c->policy.restart.period_ms, 30000);
    assert_int_equal(c->policy.restart.backoff_min_ms, 100);
    assert_int_equal(c->policy.restart.backoff_max_ms, 5000);
    assert_int_equal(c->policy.breaker.failures, 5);
    assert_int_equal(c->policy.breaker.cooldown_ms, 1000);
    assert_int_equal(c->policy.breaker.cooldown_max_ms, 30000);
    assert_int_equal(c->limits.max_open_plans, 20000);
    assert_int_equal(c->limits.max_result_bytes, 3 * 1024 * 1024);
    assert_int_equal(c->log.level, LOG_INFO);
    assert_int_equal(c->log.format, CONFIG_LOG_TEXT);
    assert_int_equal(c->n_agents, 0);
    expect_notes(h, "");
}

/* A setting that is only in the table is undocumented; one that is only in the schema has no
 * effect. */
static void schema_and_table_know_the_same_settings_and_defaults(void **state)
{
    cJSON *schema = cJSON_ParseWithLength((const char *)config_schema_json, config_schema_json_len);
    uint32_t n;
    const struct setting *table = settings_table(&n);

    (void)state;
    assert_non_null(schema);
    for (uint32_t i = 0; i < n; i++) {
        char path[128] = "";
        const cJSON *found;
        size_t used = 0;
        for (const char *at = table[i].key; *at != '\0';) {
            size_t len = strcspn(at, ".");
            used += (size_t)snprintf(path + used, sizeof path - used, "%sproperties.%.*s",
                                     used == 0 ? "" : ".", (int)len, at);
            at += len + (at[len] == '.');
        }
        (void)snprintf(path + used, sizeof path - used, ".default");
        found = setting_find(schema, path);
        if (found == NULL) {
            fail_msg("the schema has no %s", path);
        }
        if (table[i].text != NULL) {
            assert_string_equal(cJSON_GetStringValue(found), table[i].text);
        } else {
            assert_true(found->valuedouble == table[i].number);
        }
    }
    cJSON_Delete(schema);
}

static uint32_t count_defaults(const cJSON *properties)
{
    uint32_t n = 0;
    const cJSON *p;

    cJSON_ArrayForEach(p, properties)
    {
        const cJSON *below = cJSON_GetObjectItemCaseSensitive(p, "properties");
        n += below != NULL ? count_defaults(below) : cJSON_HasObjectItem(p, "default") ? 1 : 0;
    }
    return n;
}

static void schema_has_no_setting_that_the_table_lacks(void **state)
{
    cJSON *schema = cJSON_ParseWithLength((const char *)config_schema_json, config_schema_json_len);
    uint32_t n;

    (void)state;
    (void)settings_table(&n);
    assert_int_equal(count_defaults(cJSON_GetObjectItemCaseSensitive(schema, "properties")), n);
    cJSON_Delete(schema);
}

static void flag_wins_over_env_over_user_over_system(void **state)
{
    struct home *h = *state;
    struct config_flag flags[] = {{"policy.maxRetries", "4"},
                                  {"listen.control", "tcp://127.0.0.1:0"}};

    write_text(h->system, "policy: {maxRetries: 1, stepTimeoutMs: 10}\nplanner: llm\n");
    expect_loads(h);
    assert_int_equal(h->config->policy.max_retries, 1);

    write_text(h->user, "policy: {maxRetries: 2}\n");
    expect_loads(h);
    assert_int_equal(h->config->policy.max_retries, 2);
    assert_int_equal(h->config->policy.step_timeout_ms,
                     10); /* of one object, each member by itself */

    assert_int_equal(setenv("BATON_POLICY_MAX_RETRIES", "3", 1), 0);
    expect_loads(h);
    assert_int_equal(h->config->policy.max_retries, 3);

    h->request.flags = flags;
    h->request.n_flags = 2;
    expect_loads(h);
    assert_int_equal(h->config->policy.max_retries, 4);
    assert_string_equal(h->config->listen_control, "tcp://127.0.0.1:0");
    assert_string_equal(h->config->planner, "llm");
}

static void origin_of_each_setting_is_told(void **state)
{
    struct home *h = *state;
    struct config_flag flag = {"log.level", "debug"};
    char expected[200];
    struct buf shown;

    write_text(h->system, "planner: agent\n");
    write_text(h->user, "# mine\npolicy:\n  backoff:\n    kind: fixed\n");
    assert_int_equal(setenv("BATON_LISTEN_EVENTS", "tcp://127.0.0.1:9", 1), 0);
    assert_int_equal(setenv("BATON_DURABILITY", "process", 1), 0);
    h->request.flags = &flag;
    h->request.n_flags = 1;
    expect_loads(h);
    assert_string_equal(entry(h, "log.level")->origin, "flag");
    assert_string_equal(entry(h, "listen.events")->origin, "env BATON_LISTEN_EVENTS");
    assert_string_equal(entry(h, "listen.events")->value, "\"tcp://127.0.0.1:9\"");
    assert_string_equal(entry(h, "durability")->value, "\"process\"");
    assert_int_equal(h->config->durability, DURABILITY_PROCESS);
    (void)snprintf(expected, sizeof expected, "%s:1:1", h->system);
    assert_string_equal(entry(h, "planner")->origin, expected);
    (void)snprintf(expected, sizeof expected, "%s:4:5", h->user);
    assert_string_equal(entry(h, "policy.backoff.kind")->origin, expected);
    assert_string_equal(entry(h, "policy.maxRetries")->origin, "default");
    assert_string_equal(entry(h, "policy.maxRetries")->value, "2");
    assert_string_equal(entry(h, "state")->origin, "default");

    buf_init(&shown, 1 << 16);
    config_show(h->config, true, &shown);
    assert_non_null(strstr(buf_cstr(&shown),
                           "log.level                    = \"debug\"                  # flag\n"));
    buf_done(&shown);
}

static void a_file_given_by_flag_replaces_the_users_and_must_exist(void **state)
{
    struct home *h = *state;
    char other[128];

    (void)snprintf(other, sizeof other, "%s/other.yaml", h->dir);
    write_text(h->user, "planner: agent:mine\n");
    write_text(other, "durability: process\n");
    h->request.file = other;
    expect_loads(h);
    assert_string_equal(h->config->planner, "keyword");
    assert_int_equal(h->config->durability, DURABILITY_PROCESS);
    assert_int_equal(unlink(other), 0);
    expect_problems(h, "DIR/other.yaml: there is no such file\n");
}

static void json_and_empty_files_are_files_too(void **state)
{
    struct home *h = *state;

    write_text(h->system, "# nothing yet\n");
    write_text(h->user, "{\"agents\": [{\"agentId\": \"a\", \"command\": [\"x\"]}]}");
    expect_loads(h);
    assert_int_equal(h->config->n_agents, 1);
}

static void agents_are_read_with_their_defaults(void **state)
{
    struct home *h = *state;
    const struct config_agent *a;

    write_text(h->user, "policy: {shutdownGraceMs: 700}\n"
                        "agents:\n"
                        "  - agentId: calc\n"
                        "    command: ['${BATON_BIN}/baton-agent-calc', '$x', '']\n"
                        "  - agentId: sql\n"
                        "    command: [sql]\n"
                        "    instances: 2\n"
                        "    capacity: 3\n"
                        "    restart: transient\n"
                        "    env: [HOME, 'KEY=s3cret=']\n"
                        "    settings: {roots: [/tmp], n: 3}\n"
                        "    graceMs: 9\n"
                        "    cwd: /tmp\n");
    expect_loads(h);
    assert_int_equal(h->config->n_agents, 2);
    a = &h->config->agents[0];
    assert_string_equal(a->agent_id, "calc");
    assert_string_equal(a->command[0], "/opt/baton/bin/baton-agent-calc");
    assert_string_equal(a->command[1], "$x");
    assert_string_equal(a->command[2], "");
    assert_null(a->command[3]);
    assert_null(a->env[0]);
    assert_null(a->cwd);
    assert_int_equal(a->instances.min, 1);
    assert_int_equal(a->capacity, 1);
    assert_int_equal(a->restart, POLICY_PERMANENT);
    assert_int_equal(a->grace_ms, 700);
    assert_string_equal(a->settings_json, "{}");
    a = &h->config->agents[1];
    assert_int_equal(a->instances.min, 2);
    assert_int_equal(a->capacity, 3);
    assert_int_equal(a->restart, POLICY_TRANSIENT);
    assert_string_equal(a->env[0], "HOME");
    assert_string_equal(a->env[1], "KEY=s3cret=");
    assert_string_equal(a->settings_json, "{\"roots\":[\"/tmp\"],\"n\":3}");
    assert_non_null(cJSON_GetObjectItemCaseSensitive(a->settings, "roots"));
    assert_int_equal(a->grace_ms, 9);
    assert_string_equal(a->cwd, "/tmp");
    assert_string_equal(entry(h, "agents.1.env")->value, "[\"HOME\",\"KEY=***\"]");
    assert_string_equal(entry(h, "agents.0.graceMs")->value, "700");
    assert_string_equal(entry(h, "agents.0.restart")->value, "\"permanent\"");
}

static void directory_of_the_file_is_a_variable_of_agents(void **state)
{
    struct home *h = *state;
    const struct config_agent *a;
    char expected[256];

    write_text(h->user,
               "agents:\n"
               "  - agentId: x\n"
               "    command: ['${CONFIG_DIR}/x', '${BATON_BIN}:${CONFIG_DIR}']\n"
               "    cwd: '${CONFIG_DIR}'\n"
               "    settings: {roots: ['${CONFIG_DIR}/a'], run: '${BATON_BIN}/b ${HOME}'}\n");
    expect_loads(h);
    a = &h->config->agents[0];
    (void)snprintf(expected, sizeof expected, "%s/baton/x", h->dir);
    assert_string_equal(a->command[0], expected);
    (void)snprintf(expected, sizeof expected, "/opt/baton/bin:%s/baton", h->dir);
    assert_string_equal(a->command[1], expected);
    (void)snprintf(expected, sizeof expected, "%s/baton", h->dir);
    assert_string_equal(a->cwd, expected);
    (void)snprintf(expected, sizeof expected,
                   "{\"roots\":[\"%s/baton/a\"],\"run\":\"/opt/baton/bin/b ${HOME}\"}", h->dir);
    assert_string_equal(a->settings_json, expected);
}

static void directory_of_the_file_is_quoted_in_settings(void **state)
{
    struct home *h = *state;
    char dir[128];
    char file[160];
    char expected[256];

    (void)snprintf(dir, sizeof dir, "%s/a\"b\\c", h->dir);
    (void)snprintf(file, sizeof file, "%s/baton.yaml", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    write_text(
        file,
        "agents: [{agentId: x, command: [x], settings: {at: '${CONFIG_DIR}/${CONFIG_DIR}'}}]\n");
    h->request.file = file;
    expect_loads(h);
    (void)snprintf(expected, sizeof expected, "{\"at\":\"%s/a\\\"b\\\\c/%s/a\\\"b\\\\c\"}", h->dir,
                   h->dir);
    assert_string_equal(h->config->agents[0].settings_json, expected);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void file_of_a_project_is_the_users_file(void **state)
{
    struct home *h = *state;
    char state_dir[128];
    char file[160];

    (void)snprintf(state_dir, sizeof state_dir, "%s/.baton", h->dir);
    (void)snprintf(file, sizeof file, "%s/baton.yaml", h->dir);
    h->request.state_dir = state_dir;
    write_text(h->user, "planner: llm\n");
    expect_loads(h);
    assert_string_equal(h->config->planner, "llm"); /* no file beside it: the XDG rule */
    write_text(file, "planner: agent\n");
    expect_loads(h);
    assert_string_equal(h->config->planner, "agent");
    (void)snprintf(state_dir, sizeof state_dir, "%s/x.baton", h->dir);
    expect_loads(h);
    assert_string_equal(h->config->planner, "llm"); /* it is not called so */
    assert_int_equal(unlink(file), 0);
}

static void agents_of_the_stronger_file_replace_the_list(void **state)
{
    struct home *h = *state;

    write_text(h->system, "agents: [{agentId: a, command: [a]}, {agentId: b, command: [b]}]\n");
    write_text(h->user, "agents: [{agentId: c, command: [c]}]\n");
    expect_loads(h);
    assert_int_equal(h->config->n_agents, 1);
    assert_string_equal(h->config->agents[0].agent_id, "c");
}

/* The example documents the defaults, so it must have the same values. */
static void the_example_says_the_defaults(void **state)
{
    struct home *h = *state;
    uint32_t n;
    const struct setting *table = settings_table(&n);

    h->request.file = EXAMPLE_FILE;
    expect_loads(h);
    expect_notes(h, "");
    assert_int_equal(h->config->n_agents, 4);
    assert_string_equal(h->config->agents[0].command[0], "/opt/baton/bin/baton-agent-exec");
    for (uint32_t i = 0; i < n; i++) {
        const struct config_entry *e = entry(h, table[i].key);
        char expected[64];
        if (strcmp(e->origin, "default") == 0) {
            fail_msg("the example does not show %s", table[i].key);
        }
        if (table[i].text != NULL) {
            (void)snprintf(expected, sizeof expected, "\"%s\"", table[i].text);
        } else {
            (void)snprintf(expected, sizeof expected, "%.15g", table[i].number);
        }
        assert_string_equal(e->value, expected);
    }
}

static void groups_have_their_own_numbers_or_those_of_the_policy(void **state)
{
    struct home *h = *state;

    write_text(h->user, "policy: {restart: {intensity: 7, periodMs: 8000}}\n"
                        "groups: [{name: a}, {name: b, strategy: rest_for_one, intensity: 3, "
                        "periodMs: 4000, escalate: daemon}, {name: c, strategy: one_for_all, "
                        "escalate: notice}]\n");
    expect_loads(h);
    assert_int_equal(h->config->n_groups, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct config_group *g = &h->config->groups[i];
        assert_int_equal(g->name[0], 'a' + (int)i);
        assert_int_equal(g->strategy, i == 0   ? GROUP_ONE_FOR_ONE
                                      : i == 1 ? GROUP_REST_FOR_ONE
                                               : GROUP_ONE_FOR_ALL);
        assert_int_equal(g->intensity, i == 1 ? 3 : 7);
        assert_int_equal(g->period_ms, i == 1 ? 4000 : 8000);
        assert_int_equal(g->fatal, i == 1);
    }
}

/* Nodes of a fleet must agree about what is of the fleet, and only about that. */
static void the_hash_is_of_what_the_fleet_shares(void **state)
{
    static const char *const rows[][2] = {{"log: {level: debug}", "same"},
                                          {"listen: {control: 'tcp://127.0.0.1:7001'}", "same"},
                                          {"gateway: {listen: '127.0.0.1:7180'}", "same"},
                                          {"policy: {maxRetries: 3}", "another"},
                                          {"limits: {maxOpenPlans: 7}", "another"},
                                          {"planner: agent", "another"}};
    struct home *h = *state;
    char plain[CONFIG_HASH_LEN + 1];
    char hash[CONFIG_HASH_LEN + 1];

    write_text(h->user, "policy: {maxRetries: 2}\n");
    expect_loads(h);
    config_hash(h->config, plain);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_text(h->user, rows[i][0]);
        expect_loads(h);
        config_hash(h->config, hash);
        if ((strcmp(hash, plain) == 0) != (strcmp(rows[i][1], "same") == 0)) {
            fail_msg("%s has %s, the defaults %s", rows[i][0], hash, plain);
        }
    }
}

/* By the XDG rule: only an absolute path counts. */
static void the_file_of_a_user_is_found_by_xdg(void **state)
{
    static const struct {
        const char *xdg, *home, *file;
    } rows[] = {
        {"/x", "/h", "/x/baton/baton.yaml"},
        {"/x", NULL, "/x/baton/baton.yaml"},
        {"x", "/h", "/h/.config/baton/baton.yaml"},
        {"", "/h", "/h/.config/baton/baton.yaml"},
        {NULL, "/h", "/h/.config/baton/baton.yaml"},
        {NULL, "h", NULL},
        {"x", "", NULL},
        {NULL, NULL, NULL},
    };
    const char *was = getenv("HOME");
    char home[256];
    char file[64];

    (void)state;
    (void)snprintf(home, sizeof home, "%s", was != NULL ? was : "/");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)unsetenv("XDG_CONFIG_HOME");
        (void)unsetenv("HOME");
        if (rows[i].xdg != NULL) {
            assert_int_equal(setenv("XDG_CONFIG_HOME", rows[i].xdg, 1), 0);
        }
        if (rows[i].home != NULL) {
            assert_int_equal(setenv("HOME", rows[i].home, 1), 0);
        }
        for (size_t cap = sizeof file; rows[i].file != NULL && cap > strlen(rows[i].file); cap--) {
            assert_true(config_user_file("/somewhere", file, cap));
            assert_string_equal(file, rows[i].file);
        }
        assert_false(config_user_file("/somewhere", file,
                                      rows[i].file != NULL ? strlen(rows[i].file) : sizeof file));
    }
    assert_int_equal(setenv("HOME", home, 1), 0);
}

static void state_directory_follows_the_flag(void **state)
{
    struct home *h = *state;

    h->request.state_dir = "/x/y/";
    expect_loads(h);
    assert_string_equal(h->config->state_dir, "/x/y");
    assert_string_equal(entry(h, "state")->origin, "flag");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, home_open, home_close)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_the_numbers_of_the_requirements),
        TEST(schema_and_table_know_the_same_settings_and_defaults),
        TEST(schema_has_no_setting_that_the_table_lacks),
        TEST(flag_wins_over_env_over_user_over_system),
        TEST(origin_of_each_setting_is_told),
        TEST(a_file_given_by_flag_replaces_the_users_and_must_exist),
        TEST(json_and_empty_files_are_files_too),
        TEST(agents_are_read_with_their_defaults),
        TEST(directory_of_the_file_is_a_variable_of_agents),
        TEST(directory_of_the_file_is_quoted_in_settings),
        TEST(file_of_a_project_is_the_users_file),
        TEST(agents_of_the_stronger_file_replace_the_list),
        TEST(the_example_says_the_defaults),
        TEST(groups_have_their_own_numbers_or_those_of_the_policy),
        TEST(the_hash_is_of_what_the_fleet_shares),
        TEST(the_file_of_a_user_is_found_by_xdg),
        TEST(state_directory_follows_the_flag),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
