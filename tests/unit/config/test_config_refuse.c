/* Invalid configurations: every problem is reported, at its file, line and column. */
#include "tests/unit/config/config_test.h"

static void all_problems_are_told_at_once_by_line_and_column(void **state)
{
    struct home *h = *state;
    struct config_flag flags[] = {
        {"policy.maxRetrys", "1"}, {"log.level", "loud"}, {"nonsense", "1"}};

    write_text(h->system, "durabilty: power\n");
    write_text(h->user, "listen:\n"
                        "  control: tcp://0.0.0.0:7117\n"
                        "policy:\n"
                        "  maxRetries: many\n"
                        "  leaseMs: 1500\n"
                        "agents:\n"
                        "  - agentId: a\n"
                        "    command: []\n"
                        "  - agentId: a\n"
                        "    comand: [x]\n");
    assert_int_equal(setenv("BATON_POLICY_STEP_TIMEOUT_MS", "-5", 1), 0);
    h->request.flags = flags;
    h->request.n_flags = 3;
    expect_problems(
        h, "flag: there is no setting policy.maxRetrys; did you mean policy.maxRetries?\n"
           "flag: there is no setting nonsense; baton config show lists them\n"
           "flag: log.level: expected one of \"err\", \"warn\", \"info\", \"debug\", got \"loud\"\n"
           "env BATON_POLICY_STEP_TIMEOUT_MS: policy.stepTimeoutMs: must be at least 0, got -5\n"
           "DIR/baton/baton.yaml:4:3: policy.maxRetries: expected an integer, got \"many\"\n"
           "DIR/baton/baton.yaml:8:5: agents.0.command: must have at least 1 items, has 0\n"
           "DIR/baton/baton.yaml:9:5: agents.1.command: is missing\n"
           "DIR/baton/baton.yaml:10:5: agents.1.comand: is not allowed here; did you mean "
           "\"command\"? allowed: "
           "agentId, command, instances, startMs, group, capacity, restart, env, settings, "
           "graceMs, secrets, user, paths, network, seccomp, limits, cwd\n"
           "DIR/system.yaml:1:1: durabilty: is not allowed here; did you mean \"durability\"? "
           "allowed: listen, gateway, auth, allowUids, allowEndpoints, "
           "durability, fleet, planner, llm, keys, rates, schedules, prices, policy, limits, "
           "artifacts, retention, log, ...\n"
           "DIR/baton/baton.yaml:2:3: listen.control: \"tcp://0.0.0.0:7117\" can be reached from "
           "other machines, without TLS and credentials: listen here on 127.0.0.1, localhost or "
           "[::1], and there with listen.remote\n"
           "DIR/baton/baton.yaml:5:3: policy.leaseMs: must be at least twice policy.heartbeatMs "
           "(1000), is 1500\n"
           "DIR/baton/baton.yaml:9:5: agents.1.agentId: stands here twice; raise instances to run "
           "several of one "
           "agent\n");
    assert_string_equal(
        h->err.msg,
        "flag: there is no setting policy.maxRetrys; did you mean policy.maxRetries? (and 11 more "
        "problems)");
}

/* The configuration may lower the caps of the protocol and raise none. */
static void a_cap_of_the_protocol_is_the_most(void **state)
{
    static const struct {
        const char *key;
        uint32_t max;
    } caps[] = {{"maxOpenPlans", LIMIT_PLANS_OPEN},
                {"maxAgents", LIMIT_AGENTS},
                {"maxInstances", LIMIT_INSTANCES},
                {"maxResultBytes", LIMIT_RESULT_BYTES}};
    struct home *h = *state;
    char text[160];

    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        (void)snprintf(text, sizeof text, "limits:\n  %s: %u\n", caps[i].key, caps[i].max);
        write_text(h->user, text);
        expect_loads(h);
        (void)snprintf(text, sizeof text, "limits:\n  %s: %u\n", caps[i].key, caps[i].max + 1);
        write_text(h->user, text);
        (void)snprintf(text, sizeof text,
                       "DIR/baton/baton.yaml:2:3: limits.%s: must be at most %u, got %u\n",
                       caps[i].key, caps[i].max, caps[i].max + 1);
        expect_problems(h, text);
    }
}

static void keys_and_rates_are_bounded_and_stand_once(void **state)
{
    struct home *h = *state;
    char text[200];

    (void)snprintf(text, sizeof text, "keys:\n  - {key: a, rate: {n: %u, perMs: 1}}\n", LIMIT_RATE);
    write_text(h->user, text);
    expect_loads(h);
    (void)snprintf(text, sizeof text, "keys:\n  - {key: a, rate: {n: %u, perMs: 1}}\n",
                   LIMIT_RATE + 1);
    write_text(h->user, text);
    expect_problems(h,
                    "DIR/baton/baton.yaml:2:21: keys.0.rate.n: must be at most 10000, got 10001\n");
    write_text(h->user, "keys: [{key: a}, {key: a}]\n"
                        "rates: [{agentId: x, n: 1, perMs: 5}, {agentId: x, n: 1, perMs: 5}]\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:19: keys.1.key: stands here twice\n"
                       "DIR/baton/baton.yaml:2:40: rates.1.agentId: stands here twice\n");
    write_text(h->user, "rates: [{agentId: x, n: 0, perMs: 5}]\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:22: rates.0.n: must be at least 1, got 0\n");
}

/* A text that grows beyond its limit is no lack of memory. */
static void what_grows_too_long_by_its_variables_is_named(void **state)
{
    enum { TIMES = 600, LENGTH = 4000 };
    static char many[12 * TIMES + 1];
    static char dir[LENGTH + 1];
    static char file[sizeof many + 200];
    struct home *h = *state;

    for (size_t i = 0; i < TIMES; i++) {
        memcpy(many + 12 * i, "${BATON_BIN}", 13);
    }
    memset(dir, '/', LENGTH);
    h->request.bin_dir = dir;
    (void)snprintf(file, sizeof file,
                   "agents:\n  - agentId: a\n    command: [x]\n    settings: {a: \"%s\"}\n", many);
    write_text(h->user, file);
    expect_problems(h, "DIR/baton/baton.yaml: agents: settings: has more than 2 MiB when its "
                       "variables are replaced\n");
}

static void bad_yaml_is_told_at_its_place(void **state)
{
    struct home *h = *state;

    write_text(h->user, "policy:\n  maxRetries: 1\n  maxRetries: 2\n");
    expect_problems(h, "DIR/baton/baton.yaml:3:3: \"maxRetries\" stands here twice\n");
    write_text(h->user, "policy:\n\tmaxRetries: 1\n");
    expect_problems(h, "DIR/baton/baton.yaml:2:1: a tab cannot indent in YAML; use spaces\n");
    write_text(h->user, "agents: &a [*a]\n");
    expect_problems(
        h,
        "DIR/baton/baton.yaml:1:9: anchors and aliases are not supported; write the value out\n");
    write_text(h->user, "- policy\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:1: expected an object, got an array\n");
}

static void groups_stand_once_and_ranges_do_not_run_backwards(void **state)
{
    struct home *h = *state;

    write_text(h->user, "groups: [{name: a}, {name: b}, {name: a}]\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:33: groups.2.name: stands here twice\n");
    write_text(h->user, "agents: [{agentId: a, command: [x], instances: {min: 3, max: 2}}]\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:37: agents.0.instances: max must be at least min\n");
}

static void what_is_wrong_with_a_schedule_is_told(void **state)
{
    static const char *const rows[][2] = {
        {"recipe: x.yaml",
         "DIR/baton/baton.yaml:1:39: schedules.0.recipe: expected the absolute path of a file; "
         "${CONFIG_DIR} is the directory of this one\n"},
        {"recipe: '${NOWHERE}/x'",
         "DIR/baton/baton.yaml:1:39: schedules.0.recipe: only ${BATON_BIN}, the directory of the "
         "running program, and ${CONFIG_DIR}, that of this file, are replaced here\n"},
        {"recipe: '${CONFIG_DIR}/none.yaml'", "DIR/baton/none.yaml: there is no such file\n"},
        {"recipe: '${CONFIG_DIR}/bad.yaml'",
         "DIR/baton/bad.yaml:1:1: a tab cannot indent in YAML; use spaces\n"},
        {"recipe: /x, plan: {}",
         "DIR/baton/baton.yaml:1:39: schedules.0.recipe: expected either it or plan\n"},
        {"plan: {}, inputs: 7",
         "DIR/baton/baton.yaml:1:49: schedules.0.inputs: expected an object, got 7\n"},
    };
    struct home *h = *state;
    char bad[128];

    (void)snprintf(bad, sizeof bad, "%s/baton/bad.yaml", h->dir);
    write_text(bad, "\tname: r\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "schedules: [{name: a, cron: '@daily', %s}]\n",
                       rows[i][0]);
        write_text(h->user, text);
        expect_problems(h, rows[i][1]);
    }
    write_text(h->user, "schedules: [{name: a, cron: '0 9 *', plan: {}}]\n");
    expect_problems(
        h, "DIR/baton/baton.yaml:1:23: schedules.0.cron: '0 9 *' has 3 fields: expected five "
           "(minute, hour, day of the month, month, day of the week), such as '0 3 * * *'\n");
    write_text(h->user,
               "schedules: [{name: a, cron: '@daily', plan: {}}, {name: b, cron: '@daily', "
               "plan: {}}, {name: a, cron: '@daily', plan: {}}]\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:88: schedules.2.name: stands here twice\n");
}

static void yes_is_text_and_no_number_from_the_environment_is_guessed(void **state)
{
    struct home *h = *state;

    write_text(h->user, "policy: {maxRetries: yes}\n");
    assert_int_equal(setenv("BATON_LIMITS_INBOX", "12q", 1), 0);
    expect_problems(
        h, "env BATON_LIMITS_INBOX: limits.inbox: expected an integer, got \"12q\"\n"
           "DIR/baton/baton.yaml:1:10: policy.maxRetries: expected an integer, got \"yes\"\n");
}

static void listeners_stay_on_this_machine(void **state)
{
    static const struct {
        const char *url;
        bool fine;
    } rows[] = {
        {"tcp://127.0.0.1:0", true},
        {"tcp://127.0.0.1:auto", true},
        {"tcp://127.8.9.1:65535", true},
        {"tcp://0.0.0.0:auto", false},
        {"tcp://127.0.0.1:automatic", false},
        {"tcp://localhost:1", true},
        {"tcp://[::1]:7117", true},
        {"tcp://0.0.0.0:1", false},
        {"tcp://[::]:1", false},
        {"tcp://192.168.1.2:1", false},
        {"tcp://example.org:1", false},
        {"tcp://*:1", false},
        {"tcp://127.0.0.1", false},
        {"tcp://127.0.0.1:", false},
        {"tcp://127.0.0.1:65536", false},
        {"tcp://127.0.0.1:-1", false},
        {"tcp://127.0.0.1:1x", false},
        {"ws://127.0.0.1:1", false},
        {"ipc:///tmp/x", false},
        {"tls+tcp://127.0.0.1:1", false},
        {"tcp://:1", false},
        {"tcp://127.0.0.1.evil:1", false},
        {"tcp://127.1:1", false},
    };
    struct home *h = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config_flag flag = {"listen.control", rows[i].url};
        h->request.flags = &flag;
        h->request.n_flags = 1;
        if ((load(h) == BT_OK) != rows[i].fine) {
            fail_msg("%s: %s", rows[i].url, h->err.msg);
        }
    }
}

static void the_gateway_needs_tls_beyond_this_machine(void **state)
{
    struct home *h = *state;

    write_text(h->user, "gateway: {listen: '0.0.0.0:7180'}\n");
    expect_problems(h,
                    "DIR/baton/baton.yaml:1:11: gateway.listen: other machines can reach it: it "
                    "needs gateway.tls, a file with certificate and key (baton certs issue makes "
                    "one), or listen on 127.0.0.1\n");
    write_text(h->user, "gateway: {listen: '127.0.0.1:0', tls: 'x.pem'}\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:34: gateway.tls: expected an absolute path, or one "
                       "that begins with ${CONFIG_DIR}\n");
}

static void two_listeners_need_two_addresses(void **state)
{
    struct home *h = *state;

    write_text(h->user, "listen: {control: 'tcp://127.0.0.1:9', events: 'tcp://127.0.0.1:9'}\n");
    expect_problems(
        h, "DIR/baton/baton.yaml:1:40: listen.events: is the same address as listen.control\n");
    write_text(h->user, "listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}\n");
    expect_loads(h);
}

/* Nothing but `missing` is wrong with it. */
static void expect_remote(struct home *h, const char *url, const char *rest, const char *missing)
{
    char text[512];
    char line[512];

    (void)snprintf(text, sizeof text, "listen: {remote: '%s'%s\n", url, rest);
    write_text(h->user, text);
    if (missing == NULL) {
        expect_loads(h);
    } else {
        (void)snprintf(line, sizeof line, "DIR/baton/baton.yaml:1:10: listen.remote: %s\n",
                       missing);
        expect_problems(h, line);
    }
}

static void other_hosts_are_served_with_tls_and_credentials_only(void **state)
{
    static const char ALL[] = ", cert: /c.pem, ca: '${CONFIG_DIR}/ca.pem'}\nauth: required";
    static const char URL[] = "tls+tcp://10.0.0.5:7443";
    struct home *h = *state;

    expect_remote(h, URL, ALL, NULL);
    assert_string_equal(h->config->remote.cert, "/c.pem");
    assert_non_null(strstr(h->config->remote.ca, "/baton/ca.pem"));
    assert_null(strchr(h->config->remote.ca, '$'));
    expect_remote(h, "tls+tcp://[fd00::1]:0", ALL, NULL);
    expect_remote(h, URL, ", cert: /c.pem, ca: /ca.pem}\nauth: token",
                  "needs auth: required, so that each client and agent proves its own credential "
                  "(baton credential add)");
    expect_remote(h, URL, ", ca: /ca.pem}\nauth: required",
                  "needs listen.cert, its certificate and key; baton certs issue makes one");
    expect_remote(h, URL, ", cert: /c.pem}\nauth: required",
                  "needs listen.ca, the authority that signed the certificates of its clients; "
                  "baton certs init makes one");
    expect_remote(h, "tcp://10.0.0.5:7443", ALL,
                  "other hosts are served with TLS only: write tls+tcp://HOST:PORT");
    expect_remote(h, "tls+tcp://0.0.0.0:7443", ALL,
                  "name one address or name of this host: agents are told to dial it");
    expect_remote(h, "tls+tcp://10.0.0.5", ALL,
                  "is not tls+tcp://HOST:PORT, for example tls+tcp://10.0.0.5:7443");
    expect_remote(h, "tls+tcp://10.0.0.5:auto", ALL,
                  "expected a port from 0 (any free one) to 65535 after the host");
}

static void lanes_are_a_range_of_ports(void **state)
{
    struct home *h = *state;

    write_text(h->user, "listen: {lanes: 7450-7499}\n");
    expect_loads(h);
    assert_int_equal(h->config->remote.lane_first, 7450);
    assert_int_equal(h->config->remote.lane_last, 7499);
    write_text(h->user, "listen: {lanes: 7499-7450}\n");
    expect_problems(h, "DIR/baton/baton.yaml:1:10: listen.lanes: expected two ports, for example "
                       "7450-7499\n");
}

static void numbers_out_of_range_are_refused(void **state)
{
    struct home *h = *state;

    write_text(h->user, "limits: {maxOpenPlans: 200001, maxResultBytes: 1}\n"
                        "policy: {backoff: {jitter: 1.5, maxMs: 10}, restart: {intensity: 33}}\n");
    expect_problems(
        h, "DIR/baton/baton.yaml:1:10: limits.maxOpenPlans: must be at most 200000, got 200001\n"
           "DIR/baton/baton.yaml:1:32: limits.maxResultBytes: must be at least 1024, got 1\n"
           "DIR/baton/baton.yaml:2:20: policy.backoff.jitter: must be at most 1, got 1.5\n"
           "DIR/baton/baton.yaml:2:55: policy.restart.intensity: must be at most 32, got 33\n"
           "DIR/baton/baton.yaml:2:33: policy.backoff.maxMs: must be at least "
           "policy.backoff.initialMs "
           "(1000), is 10\n");
    write_text(h->user, "policy: {breaker: {failures: 1001, cooldownMaxMs: 500}}\n");
    expect_problems(
        h, "DIR/baton/baton.yaml:1:20: policy.breaker.failures: must be at most 1000, got 1001\n"
           "DIR/baton/baton.yaml:1:36: policy.breaker.cooldownMaxMs: must be at least "
           "policy.breaker.cooldownMs (1000), is 500\n");
    write_text(h->user, "policy: {leaseMs: 1e300, heartbeatMs: -1e300}\nlimits: {inbox: 1e308}\n");
    assert_int_equal(load(h), BT_INVALID);
}

static void wrong_shapes_everywhere_end_in_problems(void **state)
{
    static const char *const texts[] = {
        "listen: 1\npolicy: []\nlimits: x\nlog: null\nagents: {}\n",
        "agents: [1, null, [], {agentId: [], command: {}, env: {}, settings: [], cwd: 1}]\n",
        "agents: [{agentId: a, command: [1, {}], env: [1], cwd: relative}]\n",
        "policy: {backoff: 1, restart: []}\n",
        "agents: [{agentId: 'a b', command: [x], env: ['1X=2']}]\n",
        "agents: [{agentId: supervisor, command: [x]}]\n",
        "agents: [{agentId: '..', command: [x]}]\n",
        "agents: [{agentId: '-rf', command: [x]}]\n",
        "agents: [{agentId: a, command: ['${HOME}/x']}]\n",
        "agents: [{agentId: a, command: [x], instances: 9}]\nlimits: {maxInstances: 1}\n",
    };
    struct home *h = *state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_text(h->user, texts[i]);
        if (load(h) != BT_INVALID || h->notes.len == 0) {
            fail_msg("accepted: %s", texts[i]);
        }
    }
    expect_notes(
        h, "DIR/baton/baton.yaml:1:1: agents: 9 instances in all, but limits.maxInstances is 1\n");
}

/* More may connect by themselves: limits.maxInstances. */
static void the_daemon_starts_so_many_processes_and_no_more(void **state)
{
    enum { OF_AN_AGENT = 64, AGENTS = LIMIT_PROCESSES / OF_AN_AGENT };
    struct home *h = *state;
    struct buf text;
    char why[200];

    buf_init(&text, 64 * 1024);
    buf_add_cstr(&text, "limits: {maxInstances: 16384}\nagents:\n");
    for (int i = 0; i < AGENTS; i++) {
        buf_printf(&text, "- {agentId: a%d, command: [x], instances: %d}\n", i, OF_AN_AGENT);
    }
    write_text(h->user, buf_cstr(&text));
    expect_loads(h);
    buf_add_cstr(&text, "- {agentId: b, command: [x]}\n");
    write_text(h->user, buf_cstr(&text));
    (void)snprintf(
        why, sizeof why,
        "DIR/baton/baton.yaml:2:1: agents: %d instances in all, but the daemon starts at "
        "most %d processes; others may connect by themselves\n",
        LIMIT_PROCESSES + 1, LIMIT_PROCESSES);
    expect_problems(h, why);
    buf_done(&text);
}

static void a_file_that_others_may_write_is_refused(void **state)
{
    struct home *h = *state;

    write_text(h->user, "planner: agent\n");
    assert_int_equal(chmod(h->user, 0666), 0);
    expect_problems(
        h,
        "DIR/baton/baton.yaml: everybody may write to this file, and it names programs to run; run "
        "chmod o-w DIR/baton/baton.yaml\n");
    assert_int_equal(unlink(h->user), 0);
    assert_int_equal(mkdir(h->user, 0700), 0);
    expect_problems(h, "DIR/baton/baton.yaml: is not a regular file\n");
    assert_int_equal(rmdir(h->user), 0);
}

static void values_in_a_file_that_others_may_read_are_warned_of(void **state)
{
    struct home *h = *state;

    write_text(h->user, "agents: [{agentId: a, command: [x], env: ['KEY=1']}]\n");
    assert_int_equal(chmod(h->user, 0644), 0);
    expect_loads(h);
    expect_notes(h, "DIR/baton/baton.yaml: warning: others may read this file, and it sets "
                    "variables of agent a; if "
                    "one is a secret, write only its name (the daemon's own value is passed on) or "
                    "run chmod 600 "
                    "DIR/baton/baton.yaml\n");
    assert_int_equal(chmod(h->user, 0600), 0);
    expect_loads(h);
    expect_notes(h, "");
}

static void models_are_checked_by_the_rules_of_their_agent(void **state)
{
    struct home *h = *state;

    write_text(h->user, "llm:\n"
                        "  capcity: 2\n"
                        "  providers:\n"
                        "    - api: opnai\n"
                        "      baseUrl: https://llm.example.com/v1\n");
    expect_problems(
        h, "DIR/baton/baton.yaml:2:3: llm.capcity: is not allowed here; did you mean \"capacity\"? "
           "allowed: providers, record, replay, system, maxTokens, temperature, dataBytes, "
           "capacity, env\n"
           "DIR/baton/baton.yaml:4:7: llm.providers.0.model: is missing\n"
           "DIR/baton/baton.yaml:4:7: llm.providers.0.api: expected one of \"openai\", "
           "\"anthropic\", \"ollama\", got \"opnai\"; did you mean \"openai\"?\n");
    write_text(h->user, "llm:\n"
                        "  providers:\n"
                        "    - {api: openai, model: m, baseUrl: \"https://a\"}\n"
                        "    - {api: openai, model: m,\n"
                        "       baseUrl: llm.example.com}\n");
    expect_problems(h, "DIR/baton/baton.yaml:5:8: llm.providers.1.baseUrl: expected https:// or "
                       "http://\n");
}

static void keys_are_told_as_they_were_written(void **state)
{
    struct home *h = *state;

    write_text(h->user, "llm:\n"
                        "  providers:\n"
                        "    - {api: openai, model: m, baseUrl: \"https://a\",\n"
                        "       headers: {\n"
                        "         a/b~c: 5}}\n"
                        "agents: [{agentId: a, command: [x],\n"
                        "  \"x/~1\": 1}]\n");
    expect_problems(h, "DIR/baton/baton.yaml:7:3: agents.0.x/~1: is not allowed here; allowed: "
                       "agentId, command, instances, startMs, group, capacity, restart, env, "
                       "settings, graceMs, secrets, user, paths, network, seccomp, limits, cwd\n"
                       "DIR/baton/baton.yaml:5:10: llm.providers.0.headers.a/b~c: expected a "
                       "string, got 5\n");
}

static void every_variable_of_the_models_goes_to_their_agent(void **state)
{
    struct home *h = *state;
    char text[32 * 140];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "llm:\n  providers:\n    - {api: openai, model: m, baseUrl: "
                                 "\"https://a\"}\n  env:\n");
    uint32_t n = 0;

    for (int i = 1; i <= 128; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "    - MODEL_VARIABLE_%d\n", i);
    }
    write_text(h->user, text);
    expect_loads(h);
    while (h->config->agents[0].env[n] != NULL) {
        n++;
    }
    assert_int_equal(n, 128);
    assert_string_equal(h->config->agents[0].env[127], "MODEL_VARIABLE_128");
    (void)snprintf(text + at, sizeof text - at, "    - MODEL_VARIABLE_129\n");
    write_text(h->user, text);
    expect_problems(h, "DIR/baton/baton.yaml:4:3: llm.env: must have at most 128 items, has "
                       "129\n");
}

static void a_key_that_is_missing_holds_back_its_agent_only(void **state)
{
    struct home *h = *state;

    write_text(h->user, "llm:\n"
                        "  providers:\n"
                        "    - {api: openai, model: m, baseUrl: \"https://a\",\n"
                        "       keyEnv: NO_SUCH_KEY}\n"
                        "agents: [{agentId: a, command: [x]}]\n");
    expect_loads(h);
    expect_notes(h, "DIR/baton/baton.yaml:4:8: warning: llm.providers.0.keyEnv: the environment "
                    "variable NO_SUCH_KEY is not set; the agent \"orchestrator\" is not started "
                    "without it\n");
    assert_null(h->config->agents[0].held_back);
    h->request.check_only = true;
    expect_loads(h);
    expect_notes(h, "DIR/baton/baton.yaml:4:8: warning: llm.providers.0.keyEnv: the environment "
                    "variable NO_SUCH_KEY is not set; the agent \"orchestrator\" would not be "
                    "started from this environment\n");
    h->request.check_only = false;
    assert_string_equal(h->config->agents[1].held_back,
                        "llm.providers.0.keyEnv: the environment variable NO_SUCH_KEY is not set");
    assert_int_equal(setenv("NO_SUCH_KEY", "sk-0123456789", 1), 0);
    expect_loads(h);
    expect_notes(h, "");
    assert_null(h->config->agents[1].held_back);
    assert_int_equal(unsetenv("NO_SUCH_KEY"), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, home_open, home_close)
    const struct CMUnitTest tests[] = {
        TEST(all_problems_are_told_at_once_by_line_and_column),
        TEST(a_cap_of_the_protocol_is_the_most),
        TEST(keys_and_rates_are_bounded_and_stand_once),
        TEST(bad_yaml_is_told_at_its_place),
        TEST(groups_stand_once_and_ranges_do_not_run_backwards),
        TEST(what_is_wrong_with_a_schedule_is_told),
        TEST(yes_is_text_and_no_number_from_the_environment_is_guessed),
        TEST(listeners_stay_on_this_machine),
        TEST(the_gateway_needs_tls_beyond_this_machine),
        TEST(two_listeners_need_two_addresses),
        TEST(other_hosts_are_served_with_tls_and_credentials_only),
        TEST(lanes_are_a_range_of_ports),
        TEST(numbers_out_of_range_are_refused),
        TEST(wrong_shapes_everywhere_end_in_problems),
        TEST(the_daemon_starts_so_many_processes_and_no_more),
        TEST(a_file_that_others_may_write_is_refused),
        TEST(models_are_checked_by_the_rules_of_their_agent),
        TEST(what_grows_too_long_by_its_variables_is_named),
        TEST(keys_are_told_as_they_were_written),
        TEST(every_variable_of_the_models_goes_to_their_agent),
        TEST(a_key_that_is_missing_holds_back_its_agent_only),
        TEST(values_in_a_file_that_others_may_read_are_warned_of),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
