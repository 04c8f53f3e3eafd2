/* Another configuration: what is said to differ, what counts at once, and which processes come, go
 * and are restarted for it. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/schedule/schedules.h"
#include "tests/unit/daemon/roster_rig.h"

#define AGENT(more) "agents:\n  - {agentId: calc, command: [/bin/agent]" more "}\n"

/* A reload keeps what it replaces until the process ends. */
BT_API const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:reload_config\n";
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static long successes_left = -1; /* -1 = no failure */
static bool is_acting;           /* the daemon's rooms, not the house */

void *__wrap_calloc(size_t n, size_t size)
{
    return is_acting && successes_left >= 0 && successes_left-- == 0 ? NULL
                                                                     : __real_calloc(n, size);
}

static void on_act(bool act)
{
    is_acting = act;
}

static char a[UUID_TEXT_LEN + 1], b[UUID_TEXT_LEN + 1], c[UUID_TEXT_LEN + 1];

static int tear_down(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* "key", "key restart" or "key of its processes" of each change, in their order. */
static const char *changes(const char *answer)
{
    static char text[4096];
    const char *key;

    text[0] = 0;
    for (int i = 0;
         (key = house_get(world.h, answer, house_text(world.h, "changes.%d.key", i))) != NULL;
         i++) {
        const size_t at = strlen(text);
        const char *live = house_get(world.h, answer, house_text(world.h, "changes.%d.live", i));
        const char *file = house_get(world.h, answer, house_text(world.h, "changes.%d.file", i));
        (void)snprintf(text + at, sizeof text - at, "%s%s%s; ", key,
                       live != NULL && strcmp(live, "true") == 0 ? "" : " restart",
                       file != NULL && strstr(file, "its processes are restarted") != NULL
                           ? " of its processes"
                           : "");
    }
    return text;
}

static const char *check(const char *yaml)
{
    world_write(yaml);
    return changes(house_ok(world.h, "supervisor.reload", "'check':true"));
}

static void reload(const char *yaml)
{
    world_write(yaml);
    (void)house_ok(world.h, "supervisor.reload", " ");
    world_cycle();
}

/* ---- what differs ---- */

#define BASE                                                                                       \
    "planner: keyword\nlog: {level: err}\npolicy: {maxRetries: 2, breaker: {failures: 3}}\n"       \
    "limits: {maxOpenPlans: 10}\nallowUids: [7]\nallowEndpoints: [\"tcp://10.*\"]\n"               \
    "keys: [{key: k, max: 1}]\nrates: [{agentId: calc, n: 5, perMs: 1000}]\n"                      \
    "prices: [{agentId: calc, input: 1, output: 2}]\n"                                             \
    "groups: [{name: g, strategy: one_for_one}]\n"                                                 \
    "schedules: [{name: s, cron: \"@daily\", goal: x}]\n"

static void each_setting_that_differs_is_named_and_whether_it_counts_at_once(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"keyword", "keyword", ""},
        {"planner: keyword", "planner: agent:calc", "planner; "},
        {"level: err", "level: warn", "log.level; "},
        {"maxRetries: 2", "maxRetries: 3", "policy.maxRetries; "},
        {"failures: 3", "failures: 4", "policy.breaker.failures restart; "},
        {"maxOpenPlans: 10", "maxOpenPlans: 11", "limits.maxOpenPlans restart; "},
        {"[7]", "[8]", "allowUids restart; "},
        {"[7]", "[7, 8]", "allowUids restart; "},
        {"tcp://10.*", "tcp://11.*", "allowEndpoints; "},
        {"[\"tcp://10.*\"]", "[\"tcp://10.*\", \"tcp://11.*\"]", "allowEndpoints; "},
        {"key: k", "key: l", "keys; "},
        {"max: 1}", "max: 2}", "keys; "},
        {"max: 1}", "max: 1, rate: {n: 1, perMs: 1000}}", "keys; "},
        {"[{key: k, max: 1}]", "[{key: k, max: 1}, {key: l, max: 1}]", "keys; "},
        {"n: 5", "n: 6", "rates; "},
        {"perMs: 1000", "perMs: 1001", "rates; "},
        {"input: 1", "input: 2", "prices; "},
        {"output: 2", "output: 3", "prices; "},
        {"output: 2}", "output: 2, cached: 0.5}", "prices; "},
        {"agentId: calc, input", "agentId: \"*\", input", "prices; "},
        {"one_for_one", "one_for_all", "groups; "},
        {"@daily", "@weekly", "schedules.s; "},
        {"name: s,", "name: t,", "schedules.t; schedules.s; "},
        {"agentId: calc, command", "agentId: calx, command", "agents.calx; agents.calc; "},
        {"[/bin/agent]", "[/bin/other]", "agents.calc.command of its processes; "},
        {"[/bin/agent]", "[/bin/agent, x]", "agents.calc.command of its processes; "},
        {"[/bin/agent]", "[/bin/agent], env: [A=1]", "agents.calc.env of its processes; "},
        {"[/bin/agent]", "[/bin/agent], cwd: /tmp", "agents.calc.cwd of its processes; "},
        {"[/bin/agent]", "[/bin/agent], instances: 2", "agents.calc.instances; "},
        {"[/bin/agent]", "[/bin/agent], group: g", "agents.calc.group; "},
        {"[/bin/agent]", "[/bin/agent], capacity: 9", "agents.calc.capacity of its processes; "},
        {"[/bin/agent]", "[/bin/agent], restart: transient", "agents.calc.restart; "},
        {"[/bin/agent]", "[/bin/agent], graceMs: 4321", "agents.calc.graceMs; "},
        {"[/bin/agent]", "[/bin/agent], startMs: 4321", "agents.calc.startMs; "},
        {"[/bin/agent]", "[/bin/agent], limits: {memoryBytes: 100000000}",
         "agents.calc.limits of its processes; "},
        {"[/bin/agent]", "[/bin/agent], settings: {x: 1}",
         "agents.calc.settings of its processes; "},
    };
    const char *base = BASE AGENT("");

    (void)state;
    world_open_only(base);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = strstr(base, cases[i].from);
        char yaml[2048];
        assert_non_null(at);
        (void)snprintf(yaml, sizeof yaml, "%.*s%s%s", (int)(at - base), base, cases[i].to,
                       at + strlen(cases[i].from));
        const char *got = check(yaml);
        if (strcmp(got, cases[i].says) != 0) {
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].to, got, cases[i].says);
        }
    }
}

/* Each of its numbers alone. */
static void how_many_instances_differs_with_each_of_its_numbers(void **state)
{
    static const char *const of[] = {"min: 1, max: 3, queue: 2, upMs: 5000, downMs: 70000",
                                     "min: 2, max: 3, queue: 2, upMs: 5000, downMs: 70000",
                                     "min: 1, max: 4, queue: 2, upMs: 5000, downMs: 70000",
                                     "min: 1, max: 3, queue: 3, upMs: 5000, downMs: 70000",
                                     "min: 1, max: 3, queue: 2, upMs: 5001, downMs: 70000",
                                     "min: 1, max: 3, queue: 2, upMs: 5000, downMs: 70001"};
    char yaml[512];

    (void)state;
    (void)snprintf(yaml, sizeof yaml, AGENT(", instances: {%s}"), of[0]);
    world_open_only(yaml);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        (void)snprintf(yaml, sizeof yaml, AGENT(", instances: {%s}"), of[i]);
        assert_string_equal(check(yaml), i == 0 ? "" : "agents.calc.instances; ");
    }
}

static void another_secret_restarts_the_processes_that_were_handed_it(void **state)
{
    char path[128];
    char yaml[512];
    FILE *f;

    (void)state;
    world_open_only(AGENT(""));
    (void)snprintf(path, sizeof path, "%s/secret", rig.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("value", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
    (void)snprintf(yaml, sizeof yaml, AGENT(", secrets: ['KEY=%s']"), path);
    assert_string_equal(check(yaml), "agents.calc.secrets of its processes; ");
}

static void a_value_that_differs_is_shown_as_it_runs_and_as_it_stands_in_the_file(void **state)
{
    const char *answer;

    (void)state;
    world_open_only(BASE AGENT(""));
    world_write(
        "planner: keyword\nlog: {level: err}\npolicy: {maxRetries: 5}\n" AGENT(", instances: 2"));
    answer = house_ok(world.h, "supervisor.reload", "'check':true");
    for (int i = 0; i < 20; i++) {
        const char *key = house_get(world.h, answer, house_text(world.h, "changes.%d.key", i));
        if (key != NULL && strcmp(key, "policy.maxRetries") == 0) {
            house_says(world.h, answer,
                       house_text(world.h, "changes.%d.running=2; changes.%d.file=5", i, i));
        } else if (key != NULL && strcmp(key, "agents.calc.instances") == 0) {
            house_says(world.h, answer,
                       house_text(world.h, "changes.%d.running=-; changes.%d.file=changed", i, i));
        } else if (key != NULL && strcmp(key, "groups") == 0) {
            house_says(world.h, answer, house_text(world.h, "changes.%d.running=*", i));
        }
    }
    assert_non_null(strstr(changes(answer), "groups; "));
    assert_non_null(strstr(changes(answer), "schedules.s; "));
    assert_non_null(strstr(changes(answer), "policy.maxRetries; "));
}

static void a_file_that_is_wrong_changes_nothing(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    world_write("agents: 7\n");
    house_refused(world.h, "INVALID", "agents", "supervisor.reload", " ");
    house_refused(world.h, "INVALID", "", "supervisor.reload", "'file':'/nowhere/x.yaml'");
    engine_begin(world.h->engine, world.h->now, world.h->wall);
    reload_on_signal(world.h->engine);
    struct bt_error err;
    assert_int_equal(engine_end(world.h->engine, &err), BT_OK);
    world_cycle();
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    assert_ptr_equal(roster_config(world.roster), world.config);
    rig_no_order();
}

/* What has counted at once is not said again; what needs a restart is, until there was one. */
static void what_was_applied_is_the_same_from_then_on(void **state)
{
    static const char *const other =
        "policy: {maxRetries: 4}\nlimits: {maxOpenPlans: 11}\n" AGENT("");

    (void)state;
    world_open_only("policy: {maxRetries: 3}\nlimits: {maxOpenPlans: 10}\n" AGENT(""));
    assert_string_equal(check(other), "policy.maxRetries; limits.maxOpenPlans restart; ");
    assert_string_equal(check(other), "policy.maxRetries; limits.maxOpenPlans restart; ");
    reload(other);
    assert_string_equal(check(other), "limits.maxOpenPlans restart; ");
    house_says(world.h,
               house_ok(world.h, "plan.lint",
                        "'plan':{'steps':[{'stepId':'a','agentId':'calc','task':'t'}]}"),
               "ok=true");
}

static void schedules_of_the_file_are_declared(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    reload(
        "schedules:\n  - {name: s, cron: \"@daily\", plan: {goal: g, steps: [{stepId: a, agentId: "
        "calc, skill: do, task: t}]}}\n" AGENT(""));
    house_says(world.h, house_ok(world.h, "schedule.list", " "),
               "schedules.#=1; schedules.0.name=s; schedules.0.owner=(configuration)");
}

/* Without memory for a part of it a reload says so, and the configuration before goes on. */
static void without_memory_a_reload_changes_nothing(void **state)
{
    uint32_t refused = 0;
    uint32_t applied = 0;
    bool failed = true;

    (void)state;
    for (long n = 0; failed && n < 200; n++) {
        world_open(BASE AGENT(""));
        world_up("calc#1", 11, a);
        world_write(
            "policy: {maxRetries: 4}\nprices: [{agentId: calc, input: 3, output: 2}]\n" AGENT(
                "") "  - {agentId: other, command: [/bin/other]}\n");
        successes_left = n;
        house_rooms_act = on_act;
        const char *answer = house_ask(world.h, "supervisor.reload", " ");
        house_rooms_act = NULL;
        is_acting = false;
        failed = successes_left < 0;
        successes_left = -1;
        assert_non_null(answer);
        if (strcmp(house_get(world.h, answer, "ok"), "true") != 0) {
            house_is(world.h, answer, "error.code", "NOMEM");
            assert_ptr_equal(roster_config(world.roster), world.config);
            assert_ptr_equal(world.reload.live, world.config);
            world_cycle();
            assert_string_equal(world_processes("calc"), "calc#1 up; ");
            rig_no_order();
            refused++;
        } else if (failed) {
            applied++;
        }
        if (failed) {
            world_close();
        }
    }
    assert_false(failed);
    assert_true(refused >= 3);
    assert_int_equal(applied, 3); /* without the new agent, or its process: that is logged */
}

/* ---- processes ---- */

static void an_agent_that_is_added_starts_and_one_that_is_taken_out_goes(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    reload(AGENT("") "  - {agentId: other, command: [/bin/other]}\n");
    world_up("other#1", 12, b);
    rig_no_order(); /* what has not changed is not touched */
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    reload("agents:\n  - {agentId: other, command: [/bin/other]}\n");
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, a);
    assert_string_equal(world_processes("calc"), "calc#1 stopping stops; ");
    world_exit(a, 11, 0);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "");
    assert_string_equal(world_processes("other"), "other#1 up; ");
    world_pass(5000); /* nobody needs it, so it is forgotten, too */
    house_says(world.h, house_ok(world.h, "agents.list", " "),
               "agents.#=1; agents.0.card.agentId=other");
    reload(AGENT("") "  - {agentId: other, command: [/bin/other]}\n"); /* and again */
    world_up("calc#1", 13, c);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
}

static void one_that_is_on_its_way_out_comes_back_when_it_is_wanted_again(void **state)
{
    (void)state;
    world_open(AGENT("") "  - {agentId: other, command: [/bin/other]}\n");
    world_started("calc#1", a);
    world_started("other#1", b);
    world_registers("calc#1", 11, a);
    world_registers("other#1", 12, b);
    reload("agents:\n  - {agentId: other, command: [/bin/other]}\n");
    rig_ordered(PACKET_SIGNAL);
    reload(AGENT("") "  - {agentId: other, command: [/bin/other]}\n");
    world_exit(a, 11, 0);
    world_pass(100);
    world_up("calc#1", 13, c);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
}

static void a_process_of_an_earlier_command_is_restarted_and_one_of_other_rules_is_not(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    reload(AGENT(", graceMs: 4321, restart: transient"));
    world_pass(100);
    rig_no_order();
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    reload(AGENT(", capacity: 3, graceMs: 4321, restart: transient"));
    rig_ordered(PACKET_SIGNAL);
    world_exit(a, 11, 0);
    world_pass(100);
    world_up("calc#1", 12, b);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    rig_no_order();
}

/* Also one that has just been started, from the command before. */
static void
a_process_that_is_being_restarted_is_restarted_once_more_for_the_next_command(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    reload(AGENT(", capacity: 3"));
    rig_ordered(PACKET_SIGNAL);
    world_exit(a, 11, 0);
    world_pass(100);
    world_started("calc#1", b);
    reload(AGENT(", capacity: 4"));
    world_pass(100);
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, b);
    world_exit(b, 12, 0);
    world_pass(100);
    world_up("calc#1", 13, c);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    rig_no_order();
}

/* What the reload writes of processes: "process=calc#2 added; " */
static const char *told(const char *yaml)
{
    static char text[1024];
    char log[8192];
    const int stderr_fd = dup(STDERR_FILENO);
    const int fd = memfd_create("log", MFD_CLOEXEC);
    ssize_t n;

    assert_true(stderr_fd >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    reload(yaml);
    assert_true(dup2(stderr_fd, STDERR_FILENO) >= 0);
    n = pread(fd, log, sizeof log - 1, 0);
    assert_true(n >= 0 && close(fd) == 0 && close(stderr_fd) == 0);
    log[n] = 0;
    text[0] = 0;
    for (const char *at = log; (at = strstr(at, "agent.reload ")) != NULL; at++) {
        const char *line = at + strlen("agent.reload ");
        const size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%.*s; ", (int)strcspn(line, "\n"), line);
    }
    return text;
}

static void what_a_reload_does_with_each_process_is_logged(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    assert_string_equal(told(AGENT(", instances: 2")), "process=calc#2 added; ");
    assert_string_equal(told(AGENT(", instances: 2")), "");
    assert_string_equal(told(AGENT(", instances: 2, graceMs: 4321")),
                        "process=calc#1 rules of restarting changed; "
                        "process=calc#2 rules of restarting changed; ");
    assert_string_equal(told(AGENT(", instances: 1, graceMs: 4321, capacity: 3")),
                        "process=calc#1 changed: its process is restarted; ");
}

static void instances_come_and_go_with_their_number(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    reload(AGENT(", instances: 2"));
    world_up("calc#2", 12, b);
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 up; ");
    reload(AGENT(", instances: 1"));
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, b);
    world_exit(b, 12, 0);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    rig_no_order();
}

/* Between its least and its most, what runs stays. */
static void processes_within_the_new_bounds_stay(void **state)
{
    (void)state;
    world_open(AGENT(", instances: 2"));
    world_started("calc#1", a);
    world_started("calc#2", b);
    world_registers("calc#1", 11, a);
    world_registers("calc#2", 12, b);
    reload(AGENT(", instances: {min: 1, max: 3}"));
    world_pass(100);
    rig_no_order();
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 up; ");
    reload(AGENT(", instances: {min: 3, max: 3}"));
    world_up("calc#3", 13, c);
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 up; calc#3 up; ");
}

static void groups_of_the_new_file_count(void **state)
{
    (void)state;
    world_open(AGENT(""));
    world_up("calc#1", 11, a);
    assert_false(roster_group_gave_up(world.roster, "g"));
    reload("groups: [{name: g, strategy: one_for_all, escalate: daemon}, {name: h, strategy: "
           "one_for_one}]\n" AGENT(", group: g"));
    assert_true(roster_group_gave_up(world.roster, "g"));
    assert_false(roster_group_gave_up(world.roster, "h"));
    assert_false(roster_group_gave_up(world.roster, "x"));
    struct process_view v;
    assert_true(roster_view(world.roster, STR_LIT("calc"), 0, &v));
    assert_string_equal(v.group, "g");
    assert_string_equal(v.state, "up");
    reload(AGENT(""));
    assert_true(roster_view(world.roster, STR_LIT("calc"), 0, &v));
    assert_string_equal(v.group, "");
}

/* What another shard starts, or nobody any more, is only known of. */
static void without_processes_of_its_own_agents_are_known_and_not_started(void **state)
{
    struct bt_error err;

    (void)state;
    world_open_only(AGENT(""));
    reload(AGENT("") "  - {agentId: other, command: [/bin/other]}\n");
    rig_no_order();
    house_says(world.h, house_ok(world.h, "agents.list", " "), "agents.#=2");
    assert_int_equal(processes_start(&world.processes, &err), BT_OK);
    world_started("calc#1", a);
    world_started("other#1", b);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_setting_that_differs_is_named_and_whether_it_counts_at_once),
        TEST(how_many_instances_differs_with_each_of_its_numbers),
        TEST(another_secret_restarts_the_processes_that_were_handed_it),
        TEST(a_value_that_differs_is_shown_as_it_runs_and_as_it_stands_in_the_file),
        TEST(a_file_that_is_wrong_changes_nothing),
        TEST(what_was_applied_is_the_same_from_then_on),
        TEST(schedules_of_the_file_are_declared),
        TEST(without_memory_a_reload_changes_nothing),
        TEST(an_agent_that_is_added_starts_and_one_that_is_taken_out_goes),
        TEST(one_that_is_on_its_way_out_comes_back_when_it_is_wanted_again),
        TEST(a_process_of_an_earlier_command_is_restarted_and_one_of_other_rules_is_not),
        TEST(a_process_that_is_being_restarted_is_restarted_once_more_for_the_next_command),
        TEST(what_a_reload_does_with_each_process_is_logged),
        TEST(instances_come_and_go_with_their_number),
        TEST(processes_within_the_new_bounds_stay),
        TEST(groups_of_the_new_file_count),
        TEST(without_processes_of_its_own_agents_are_known_and_not_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
