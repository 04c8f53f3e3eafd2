/* The command line of batond, and what the daemon is started with: each member from its setting. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "protocol/base/shard.h"
#include "supervisor/options.h"
#include "supervisor/reload.h"
#include "tests/support/cmocka.h"

enum { ARGS_MAX = 24 };

/* Words of a command line; what is said goes to a file. */
static int parse(struct arguments *a, const char *line, char *ret_said, size_t cap)
{
    static char words[512];
    char *argv[ARGS_MAX] = {(char *)(uintptr_t) "batond"};
    int argc = 1;
    int code;
    FILE *said = tmpfile();
    const int out = dup(STDOUT_FILENO);
    const int err = dup(STDERR_FILENO);
    size_t n;

    (void)snprintf(words, sizeof words, "%s", line);
    for (char *at = words; *at != 0;) {
        const size_t len = strcspn(at, " ");
        const bool last = at[len] == 0;
        argv[argc++] = at;
        at[len] = 0;
        at += last ? len : len + 1;
    }
    *a = (struct arguments){.ready_fd = -1};
    assert_non_null(said);
    (void)fflush(NULL);
    (void)dup2(fileno(said), STDOUT_FILENO);
    (void)dup2(fileno(said), STDERR_FILENO);
    optind = 0; /* anew */
    code = arguments_parse(argc, argv, a);
    (void)fflush(NULL);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)close(out);
    (void)close(err);
    rewind(said);
    n = fread(ret_said, 1, cap - 1, said);
    ret_said[n] = 0;
    (void)fclose(said);
    return code;
}

static void each_argument_is_a_setting(void **state)
{
    struct arguments a;
    char said[4096];

    (void)state;
    assert_int_equal(parse(&a, "", said, sizeof said), -1);
    assert_null(a.request.state_dir);
    assert_null(a.request.file);
    assert_int_equal(a.request.n_flags, 0);
    assert_int_equal(a.ready_fd, -1);
    assert_int_equal(a.shards, 0);
    assert_int_equal(parse(&a,
                           "--state S --config C --listen-control T --listen-events E --durability "
                           "power --fleet F --planner P --log-level warn --shard 3/4",
                           said, sizeof said),
                     -1);
    assert_string_equal(said, "");
    assert_string_equal(a.request.state_dir, "S");
    assert_string_equal(a.request.file, "C");
    static const char *const flags[][2] = {{"listen.control", "T"}, {"listen.events", "E"},
                                           {"durability", "power"}, {"fleet.url", "F"},
                                           {"planner", "P"},        {"log.level", "warn"}};
    assert_int_equal(a.request.n_flags, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(a.flags[i].key, flags[i][0]);
        assert_string_equal(a.flags[i].value, flags[i][1]);
    }
    assert_int_equal(a.shard, 3);
    assert_int_equal(a.shards, 4);
}

static void what_is_given_again_counts_up_to_eight_times(void **state)
{
    struct arguments a;
    char said[4096];

    (void)state;
    assert_int_equal(
        parse(&a,
              "--planner 1 --planner 2 --planner 3 --planner 4 --planner 5 --planner 6 "
              "--planner 7 --planner 8 --planner 9",
              said, sizeof said),
        -1);
    assert_int_equal(a.request.n_flags, 8);
    assert_string_equal(a.flags[7].value, "8");
}

static void help_and_version_are_told_and_end_it_well(void **state)
{
    struct arguments a;
    char said[4096];

    (void)state;
    assert_int_equal(parse(&a, "--help", said, sizeof said), EXIT_STOPPED);
    assert_non_null(strstr(said, "usage: batond [options]"));
    assert_non_null(strstr(said, "--ready-fd N"));
    assert_int_equal(parse(&a, "--version", said, sizeof said), EXIT_STOPPED);
    assert_non_null(strstr(said, "batond "));
    assert_null(strstr(said, "usage"));
}

static void a_wrong_command_line_says_what_would_be_right(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"--none", "try: batond --help"},
        {"--state", "try: batond --help"},
        {"here", "unexpected argument 'here'; try: batond --help"},
        {"--shard x", "--shard: expected N/SHARDS, got 'x'"},
        {"--shard 1", "--shard: expected N/SHARDS, got '1'"},
        {"--shard 4/4", "--shard: expected N/SHARDS, got '4/4'"},
        {"--shard 0/0", "--shard: expected N/SHARDS, got '0/0'"},
        {"--shard 0/4x", "--shard: expected N/SHARDS, got '0/4x'"},
        {"--shard 0/65", "--shard: expected N/SHARDS"},
        {"--ready-fd x", "--ready-fd: expected the number of an open descriptor above 2, got 'x'"},
        {"--ready-fd 2", "above 2, got '2'"},
        {"--ready-fd 99", "above 2, got '99'"},
        {"--ready-fd 4294967299", "above 2, got '4294967299'"},
        {"--ready-fd 5x", "above 2, got '5x'"},
    };
    struct arguments a;
    char said[4096];

    (void)state;
    assert_int_equal(SHARDS_MAX, 64);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(&a, cases[i].line, said, sizeof said), EXIT_USAGE);
        if (strstr(said, cases[i].says) == NULL) {
            fail_msg("%s: \"%s\"", cases[i].line, said);
        }
    }
    assert_int_equal(parse(&a, "--shard 63/64", said, sizeof said), -1);
    assert_int_equal(parse(&a, "--shard 0/1", said, sizeof said), -1);
}

/* Agents do not inherit it; one that a daemon before this one has used up is none. */
static void the_descriptor_of_readiness_is_closed_for_agents(void **state)
{
    struct arguments a;
    char said[4096];
    char line[32];
    const int fd = dup(STDERR_FILENO);

    (void)state;
    assert_true(fd > 2);
    (void)snprintf(line, sizeof line, "--ready-fd %d", fd);
    assert_int_equal(parse(&a, line, said, sizeof said), -1);
    assert_int_equal(a.ready_fd, fd);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    (void)close(fd);
    assert_int_equal(setenv(DAEMON_REPLACED, "1", 1), 0);
    assert_int_equal(parse(&a, "--ready-fd 900", said, sizeof said), -1);
    assert_int_equal(a.ready_fd, -1);
    assert_int_equal(unsetenv(DAEMON_REPLACED), 0);
}

/* ---- options ---- */

static const char *const gateway[] = {"gateway", NULL};

/* A configuration that was read, with a number or text of its own in each member; freed by the
 * caller. */
static struct config *numbered(void)
{
    const struct config_request request = {
        .state_dir = "/tmp", .system_file = "/nowhere", .bin_dir = "/bin"};
    struct config *c = NULL;
    struct bt_error err;

    assert_int_equal(setenv("XDG_CONFIG_HOME", "/nowhere", 1), 0); /* all is the default */
    if (config_load(&request, &c, NULL, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    *c = (struct config){
        .state_dir = "/node/shards/2",
        .listen_control = "tcp://127.0.0.1:7000",
        .listen_events = "tcp://127.0.0.1:7100",
        .remote = {.url = "tls+tcp://h:7200",
                   .cert = "cert",
                   .ca = "ca",
                   .lane_first = 8000,
                   .lane_last = 8041},
        .planner = "keyword",
        .auth = CONFIG_AUTH_REQUIRED,
        .durability = DURABILITY_PROCESS,
        .fleet = {.url = "", .node = "n", .durability = DURABILITY_REPLICATED, .lease_ms = 1},
        .policy = {.heartbeat_ms = 2,
                   .lease_ms = 3,
                   .agent_wait_ms = 4,
                   .cancel_grace_ms = 5,
                   .breaker = {6, 7, 8},
                   .synthesis = "llm"},
        .limits = {.max_open_plans = 9,
                   .max_agents = 10,
                   .max_instances = 11,
                   .max_result_bytes = 12,
                   .in_flight = 13,
                   .in_flight_agent = 14,
                   .in_flight_session = 15,
                   .inbox = 16},
        .artifacts = {.keep_ms = 17, .max_bytes = 18},
        .retention = {19, 20, 21, 22, 23},
        .gateway = {.command = gateway},
    };
    return c;
}

static void each_option_is_its_setting(void **state)
{
    struct config *c = numbered();
    const struct arguments a = {.ready_fd = 24, .was_full = true};
    struct reload reload;
    struct shard_places places;
    struct daemon_options o;
    const struct engine_options *e = &o.engine;

    (void)state;
    options_of(c, &a, "/files", "token", &reload, &places, &o);
    assert_true(str_is(e->token, "token"));
    assert_true(e->auth_required);
    assert_string_equal(e->state_dir, c->state_dir);
    assert_string_equal(e->artifact_root, "/files");
    assert_string_equal(e->control_url, c->listen_control);
    assert_string_equal(e->events_url, c->listen_events);
    assert_string_equal(e->remote_url, c->remote.url);
    assert_string_equal(e->remote_cert, "cert");
    assert_string_equal(e->remote_ca, "ca");
    assert_int_equal(e->lane_first, 8000);
    assert_int_equal(e->lane_last, 8041);
    assert_int_equal(e->durability, DURABILITY_PROCESS);
    assert_string_equal(e->planner, "keyword");
    assert_int_equal(e->heartbeat_ms, 2);
    assert_int_equal(e->lease_ms, 3);
    assert_int_equal(e->agent_wait_ms, 4);
    assert_int_equal(e->cancel_grace_ms, 5);
    assert_int_equal(e->breaker_failures, 6);
    assert_int_equal(e->breaker_cooldown_ms, 7);
    assert_int_equal(e->breaker_cooldown_max_ms, 8);
    assert_int_equal(e->plans_max, 9);
    assert_int_equal(e->agents_max, 10);
    assert_int_equal(e->instances_max, 11);
    assert_int_equal(e->result_max, 12);
    assert_int_equal(e->in_flight, 13);
    assert_int_equal(e->in_flight_agent, 14);
    assert_int_equal(e->in_flight_session, 15);
    assert_int_equal(e->artifact_max_bytes, 18);
    assert_int_equal(e->shards, 0);
    assert_null(e->fleet_map);
    assert_int_equal(o.inbox, 16);
    assert_int_equal(o.artifacts.keep_ms, 17);
    assert_int_equal(o.artifacts.max_bytes, 18);
    assert_string_equal(o.artifacts.root, "/files");
    assert_int_equal(o.retention.completed_ms, 19);
    assert_int_equal(o.retention.failed_ms, 20);
    assert_int_equal(o.retention.sessions_ms, 21);
    assert_int_equal(o.retention.events_ms, 22);
    assert_int_equal(o.retention.max_bytes, 23);
    assert_true(o.retention.gone_ms == retention_gone_age(19, 20));
    assert_int_equal(o.ballast_bytes, 16 * 1024 * 1024);
    assert_int_equal(o.ready_fd, 24);
    assert_true(o.was_full);
    assert_ptr_equal(o.reload, &reload);
    assert_string_equal(o.fleet.url, "");
    assert_string_equal(o.fleet.node, "n");
    assert_int_equal(o.fleet.lease_ms, 1);
    assert_int_equal(o.fleet.shards, 0);
    assert_null(o.fleet.node_dir);
    assert_int_equal(strlen(o.fleet.config), CONFIG_HASH_LEN);
    assert_ptr_equal(options_config(&a, c, &places), c);
    config_free(c);
}

static void a_fleet_has_its_own_durability_and_one_shard(void **state)
{
    struct config *c = numbered();
    const struct arguments a = {.ready_fd = -1};
    struct shard_places places;
    struct daemon_options o;

    (void)state;
    c->fleet.url = "postgresql://h/d";
    c->auth = CONFIG_AUTH_TOKEN;
    options_of(c, &a, NULL, "t", NULL, &places, &o);
    assert_int_equal(o.engine.durability, DURABILITY_REPLICATED);
    assert_int_equal(o.engine.shards, 1);
    assert_false(o.engine.auth_required);
    assert_null(o.engine.artifact_root);
    assert_string_equal(o.engine.control_url, c->listen_control);
    assert_false(o.was_full);
    config_free(c);
}

static void a_shard_has_its_own_places_and_its_part_of_the_lanes(void **state)
{
    struct config *c = numbered();
    struct shard_places places;
    struct daemon_options o;

    (void)state;
    for (uint32_t shard = 0; shard < 4; shard++) {
        const struct arguments a = {.ready_fd = -1, .shard = shard, .shards = 4};
        char url[64];
        options_of(c, &a, NULL, "t", NULL, &places, &o);
        (void)snprintf(url, sizeof url, "tcp://127.0.0.1:%u", 7000 + shard);
        assert_string_equal(o.engine.control_url, url);
        (void)snprintf(url, sizeof url, "tcp://127.0.0.1:%u", 7100 + shard);
        assert_string_equal(o.engine.events_url, url);
        (void)snprintf(url, sizeof url, "tls+tcp://h:%u", 7200 + shard);
        assert_string_equal(o.engine.remote_url, url);
        assert_int_equal(o.engine.lane_first, 8000 + 10 * shard); /* 42 lanes for four */
        assert_int_equal(o.engine.lane_last, 8009 + 10 * shard);
        assert_int_equal(o.engine.shard, shard);
        assert_int_equal(o.engine.shards, 4);
        assert_string_equal(o.engine.fleet_map, "/node/fleet.json");
        assert_int_equal(o.fleet.shard, shard);
        assert_int_equal(o.fleet.shards, 4);
        assert_string_equal(o.fleet.node, "n");
        assert_string_equal(o.fleet.node_dir, "/node");
        assert_string_equal(o.engine.state_dir, c->state_dir);
        assert_null(options_config(&a, c, &places)->gateway.command);
        assert_string_equal(options_config(&a, c, &places)->planner, "keyword");
    }
    for (uint16_t lanes = 39; lanes <= 44; lanes++) { /* what is over is nobody's */
        const struct arguments last = {.ready_fd = -1, .shard = 3, .shards = 4};
        c->remote.lane_last = (uint16_t)(8000 + lanes - 1);
        options_of(c, &last, NULL, "t", NULL, &places, &o);
        assert_int_equal(o.engine.lane_last - o.engine.lane_first + 1, lanes / 4);
        assert_int_equal(o.engine.lane_first, 8000 + 3 * (lanes / 4));
    }
    c->remote.lane_first = c->remote.lane_last = 0; /* any */
    const struct arguments a = {.ready_fd = -1, .shard = 1, .shards = 2};
    options_of(c, &a, NULL, "t", NULL, &places, &o);
    assert_int_equal(o.engine.lane_first, 0);
    assert_int_equal(o.engine.lane_last, 0);
    config_free(c);
}

/* The system's name of this host, which may have 64 characters; NULL = it has none. */
static const char *host_name;

int __wrap_gethostname(char *ret, size_t cap);
int __wrap_gethostname(char *ret, size_t cap)
{
    if (host_name == NULL || strlen(host_name) >= cap) {
        (void)snprintf(ret, cap, "%s", "cut");
        return -1;
    }
    (void)snprintf(ret, cap, "%s", host_name);
    return 0;
}

static void a_node_has_the_name_of_the_file_or_of_its_host(void **state)
{
    static const char longest[] =
        "a-host-whose-name-has-as-many-characters-as-the-system-allows-64";
    struct config *c = numbered();
    char name[JOURNAL_NODE_MAX + 1];

    (void)state;
    assert_int_equal(strlen(longest), JOURNAL_NODE_MAX);
    host_name = longest;
    options_node(c, name);
    assert_string_equal(name, "n");
    c->fleet.node = "";
    options_node(c, name);
    assert_string_equal(name, longest);
    host_name = NULL;
    options_node(c, name);
    assert_string_equal(name, "unknown");
    config_free(c);
}

static void files_have_a_root_that_a_uri_can_name(void **state)
{
    static const struct {
        const char *dir, *root;
    } cases[] = {{"/s", "/s/artifacts"},
                 {"/s//", "/s/artifacts"},
                 {"/", "//artifacts"},
                 {"/s/\xff", NULL},
                 {"/\xc3\xa4", "/\xc3\xa4/artifacts"}};
    char dir[OPTIONS_ARTIFACT_BYTES + 8];

    (void)state;
    log_setup(LOG_ERR, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = {.state_dir = cases[i].dir};
        struct buf path;
        buf_init(&path, OPTIONS_ARTIFACT_BYTES);
        const char *root = options_artifact_root(&c, &path);
        if (cases[i].root == NULL) {
            assert_null(root);
        } else {
            assert_string_equal(root, cases[i].root);
        }
        buf_done(&path);
    }
    for (size_t more = 0; more < 2; more++) {
        struct config c = {.state_dir = dir};
        struct buf path;
        const size_t n = OPTIONS_ARTIFACT_BYTES - strlen("/artifacts") + more;
        memset(dir, 'x', n);
        dir[0] = '/';
        dir[n] = 0;
        buf_init(&path, OPTIONS_ARTIFACT_BYTES);
        assert_int_equal(options_artifact_root(&c, &path) != NULL, more == 0);
        buf_done(&path);
    }
}

static void several_shards_need_a_port_for_other_hosts(void **state)
{
    struct config c = {.remote = {.url = ""}};

    (void)state;
    assert_null(options_not_with_shards(&c));
    c.remote.url = "tls+tcp://h:7200";
    assert_null(options_not_with_shards(&c));
    c.remote.url = "tls+tcp://h:0";
    assert_non_null(strstr(options_not_with_shards(&c), "listen.remote"));
    c.remote.url = "x";
    assert_non_null(options_not_with_shards(&c));
}

static void defaults_of_plans_are_those_of_the_policy(void **state)
{
    const struct config_policy p = {.max_retries = 1,
                                    .backoff = {.initial_ms = 2, .max_ms = 3},
                                    .step_timeout_ms = 4,
                                    .plan_timeout_ms = 5,
                                    .max_concurrency = 6,
                                    .on_failure = ON_FAILURE_CONTINUE,
                                    .on_verify = ON_FAILURE_RETRY,
                                    .idle_timeout_ms = 7,
                                    .queue_timeout_ms = 8,
                                    .step_limit_ms = 9,
                                    .approval_timeout_ms = 10,
                                    .check_timeout_ms = 11,
                                    .max_fallbacks = 12,
                                    .max_handoffs = 13,
                                    .max_pause_ms = 14,
                                    .replan = {15, 16, 17, 18},
                                    .planner_timeout_ms = 19,
                                    .synthesis = "agent:x",
                                    .context_budget_bytes = 20,
                                    .context_result_bytes = 21};
    const struct plan_defaults d = reload_defaults(&p);

    (void)state;
    assert_int_equal(d.step.max_retries, 1);
    assert_int_equal(d.step.backoff.initial_ms, 2);
    assert_int_equal(d.step.backoff.max_ms, 3);
    assert_int_equal(d.step.timeout_ms, 4);
    assert_int_equal(d.plan_timeout_ms, 5);
    assert_int_equal(d.max_concurrency, 6);
    assert_int_equal(d.step.on_failure, ON_FAILURE_CONTINUE);
    assert_int_equal(d.step.on_verify, ON_FAILURE_RETRY);
    assert_int_equal(d.step.idle_ms, 7);
    assert_int_equal(d.step.queue_timeout_ms, 8);
    assert_int_equal(d.step.limit_ms, 9);
    assert_int_equal(d.step.approval_timeout_ms, 10);
    assert_int_equal(d.step.check_timeout_ms, 11);
    assert_int_equal(d.step.effects, EFFECTS_IDEMPOTENT);
    assert_int_equal(d.max_fallbacks, 12);
    assert_int_equal(d.max_handoffs, 13);
    assert_int_equal(d.max_pause_ms, 14);
    assert_int_equal(d.replan.max_step, 15);
    assert_int_equal(d.replan.max_total, 16);
    assert_int_equal(d.replan.cooldown_ms, 17);
    assert_int_equal(d.replan.timeout_ms, 18);
    assert_int_equal(d.planner_timeout_ms, 19);
    assert_int_equal(d.context_budget, 20);
    assert_int_equal(d.context_result, 21);
    assert_int_equal(d.on_invalid, p.on_invalid);
    struct synthesis_choice want = plan_defaults_builtin().synthesis;
    assert_true(synthesis_choice_named(STR_LIT("agent:x"), &want));
    assert_memory_equal(&d.synthesis, &want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_argument_is_a_setting),
        cmocka_unit_test(what_is_given_again_counts_up_to_eight_times),
        cmocka_unit_test(help_and_version_are_told_and_end_it_well),
        cmocka_unit_test(a_wrong_command_line_says_what_would_be_right),
        cmocka_unit_test(the_descriptor_of_readiness_is_closed_for_agents),
        cmocka_unit_test(each_option_is_its_setting),
        cmocka_unit_test(a_fleet_has_its_own_durability_and_one_shard),
        cmocka_unit_test(a_shard_has_its_own_places_and_its_part_of_the_lanes),
        cmocka_unit_test(a_node_has_the_name_of_the_file_or_of_its_host),
        cmocka_unit_test(files_have_a_root_that_a_uri_can_name),
        cmocka_unit_test(several_shards_need_a_port_for_other_hosts),
        cmocka_unit_test(defaults_of_plans_are_those_of_the_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
