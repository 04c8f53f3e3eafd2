/* Which processes run: starts, ends, orders of operators, and their number by the work. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/utf8.h"
#include "supervisor/audit/audit.h"
#include "supervisor/auth/sessions.h"
#include "tests/unit/daemon/roster_rig.h"

enum { SECOND = 1000, EXIT_3 = 3 << 8 };

#define ONE "agents:\n  - {agentId: calc, command: [/bin/agent, --flag], capacity: 1}\n"
#define TWO                                                                                        \
    "agents:\n  - {agentId: calc, command: [/bin/agent], instances: 2, capacity: 1}\n"             \
    "  - {agentId: other, command: [/bin/other], settings: {x: 1}, env: [A=1]}\n"

static char a[UUID_TEXT_LEN + 1], b[UUID_TEXT_LEN + 1], c[UUID_TEXT_LEN + 1];

static int tear_down(void **state)
{
    (void)state;
    world_close();
    world_shards = 0;
    return 0;
}

/* ---- starts and ends ---- */

static const char *variable(const char *name)
{
    const size_t n = strlen(name);

    for (char *const *at = rig.got.env; *at != NULL; at++) {
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '=') {
            return *at + n + 1;
        }
    }
    return NULL;
}

static void the_processes_of_the_configuration_are_started(void **state)
{
    (void)state;
    world_open(TWO);
    assert_string_equal(world_processes("calc"), "calc#1 starting; calc#2 starting; ");
    assert_string_equal(world_processes("other"), "other#1 starting; ");
    assert_string_equal(world_processes("baton-gateway"), "");
    world_started("calc#1", a);
    world_started("calc#2", b);
    assert_string_equal(rig.got.argv[0], "/bin/agent");
    assert_null(rig.got.argv[1]);
    assert_string_equal(variable("BATON_CAPACITY"), "1");
    rig_started("other#1");
    assert_string_equal(rig.got.argv[0], "/bin/other");
    assert_string_equal(variable("BATON_SETTINGS"), "{\"x\":1}");
    assert_string_equal(variable("A"), "1");
    rig_no_order();
    world_registers("calc#1", 11, a);
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 starting; ");
    assert_int_equal(roster_deadline(world.roster), MSEC_NEVER);
}

static void the_gateway_is_up_when_it_runs(void **state)
{
    (void)state;
    world_open("gateway: {listen: '127.0.0.1:0'}\n" ONE);
    assert_string_equal(world_processes("baton-gateway"), "baton-gateway starting; ");
    world_started("calc#1", a);
    world_started("baton-gateway", b);
    rig_report(PACKET_STARTED, b, 12, 0, "");
    world_cycle();
    assert_string_equal(world_processes("baton-gateway"), "baton-gateway up; ");
    rig_ordered(PACKET_REGISTERED);
    world_registers("calc#1", 11, a);
    house_says(world.h, house_ok(world.h, "agents.list", " "), "agents.#=1"); /* it is no agent */
}

static void a_process_that_ends_is_gone_at_once_and_comes_again(void **state)
{
    const char *id;

    (void)state;
    world_open(ONE);
    world_up("calc#1", 11, a);
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','effects':'none'}]}");
    house_cycle(world.h);
    assert_non_null(house_work(world.h, "calc", NULL));
    assert_int_equal(processes_outstanding(&world.processes), 1);
    world_exit(a, 11, EXIT_3);
    assert_int_equal(processes_outstanding(&world.processes), 0);
    house_says(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id),
               "steps.0.errorClass=AGENT_CRASHED; steps.0.error=~exit code 3; steps.0.attempts=1");
    assert_string_equal(world_processes("calc"), "calc#1 backoff; ");
    struct process_view v;
    assert_true(roster_view(world.roster, STR_LIT("calc"), 0, &v));
    assert_string_equal(v.reason, "exit code 3");
    assert_int_equal(v.pid, 0);
    world_pass(2 * SECOND);
    world_up("calc#1", 12, b);
    assert_true(strcmp(a, b) != 0);
    assert_true(roster_view(world.roster, STR_LIT("calc"), 0, &v));
    assert_int_equal(v.pid, 12);
    assert_int_equal(v.restarts, 1);
    assert_string_equal(v.group, "");
    assert_false(v.stale);
    assert_int_equal(house_seen(world.h, "agent_restarted"), 1);
    house_says(world.h, house_event(world.h, "agent_restarted"), "agentId=calc; pid=12");
    assert_false(roster_view(world.roster, STR_LIT("calc"), 1, &v));
}

/* So many times, with the time for a restart between them. */
static void crashes(const char *name, pid_t pid, int times, int status)
{
    for (int i = 0; i < times; i++) {
        char instance[UUID_TEXT_LEN + 1];
        world_started(name, instance);
        rig_report(PACKET_STARTED, instance, pid + i, 0, "");
        world_exit(instance, pid + i, status);
        world_pass(SECOND);
    }
}

/* The first process of calc#2, and the next one: then it is given up. */
static void ends_twice(const char *instance)
{
    rig_report(PACKET_STARTED, instance, 21, 0, "");
    world_exit(instance, 21, EXIT_3);
    world_pass(SECOND);
    crashes("calc#2", 22, 1, EXIT_3);
}

#define RULE                                                                                       \
    "policy: {restart: {intensity: 2, periodMs: 600000, backoffMinMs: 100, backoffMaxMs: 200}}\n"

static void an_agent_whose_process_gave_up_fails_its_steps_with_the_reason(void **state)
{
    const char *id;

    (void)state;
    world_open(RULE ONE);
    crashes("calc#1", 11, 2, EXIT_3);
    assert_string_equal(world_processes("calc"), "calc#1 failed; ");
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','maxRetries':0}]}");
    house_wait(world.h, 2 * SECOND);
    house_says(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "status=failed");
    house_has(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
              "it gave up after 2 crashes within 600000 ms; the last: exit code 3; see ");
    house_has(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
              "baton agents calc");
}

static void one_of_two_that_gave_up_leaves_the_other(void **state)
{
    const char *id;

    (void)state;
    world_open(RULE "agents:\n  - {agentId: calc, command: [/bin/agent], instances: 2}\n");
    world_started("calc#1", a);
    world_started("calc#2", b);
    world_registers("calc#1", 11, a);
    ends_twice(b);
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 failed; ");
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t'}]}");
    assert_non_null(house_work(world.h, "calc", NULL));
    house_done(world.h, "calc", "'result':{'text':'1'}");
    house_says(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "status=completed");
    world_exit(a, 11, EXIT_3); /* now the last one goes, too */
    world_pass(SECOND);
    crashes("calc#1", 31, 1, SIGKILL);
    assert_string_equal(world_processes("calc"), "calc#1 failed; calc#2 failed; ");
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','maxRetries':0}]}");
    house_wait(world.h, 2 * SECOND);
    house_has(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
              "it gave up after");
}

/* The other one still starts: a step fails because nobody came in time, not because of crashes. */
static void an_agent_is_not_given_up_before_its_last_process(void **state)
{
    const char *id;

    (void)state;
    world_open(RULE "agents:\n  - {agentId: calc, command: [/bin/agent], instances: 2}\n");
    world_started("calc#1", a);
    world_started("calc#2", b);
    ends_twice(b);
    assert_string_equal(world_processes("calc"), "calc#1 starting; calc#2 failed; ");
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','maxRetries':0}]}");
    house_wait(world.h, 2 * SECOND);
    house_is(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
             "No instance of agent 'calc' came within 1000 ms");
}

/* One that may end, and did: the other one had given up before. */
static void the_last_hope_may_end_well(void **state)
{
    const char *id;

    (void)state;
    world_open(
        RULE
        "agents:\n  - {agentId: calc, command: [/bin/agent], instances: 2, restart: transient}\n");
    world_started("calc#1", a);
    world_started("calc#2", b);
    world_registers("calc#1", 11, a);
    ends_twice(b);
    world_exit(a, 11, 0);
    assert_string_equal(world_processes("calc"), "calc#1 stopped; calc#2 failed; ");
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','maxRetries':0}]}");
    house_wait(world.h, 2 * SECOND);
    house_has(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
              "crashes of calc#2; the last: exit code 3");
}

/* The same, in the other order. */
static void one_that_ended_well_is_no_hope(void **state)
{
    const char *id;

    (void)state;
    world_open(
        RULE
        "agents:\n  - {agentId: calc, command: [/bin/agent], instances: 2, restart: transient}\n");
    world_started("calc#1", a);
    world_started("calc#2", b);
    world_registers("calc#1", 11, a);
    world_exit(a, 11, 0);
    ends_twice(b);
    assert_string_equal(world_processes("calc"), "calc#1 stopped; calc#2 failed; ");
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','maxRetries':0}]}");
    house_wait(world.h, 2 * SECOND);
    house_has(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
              "it gave up after 2 crashes within 600000 ms; the last: exit code 3");
}

static void a_group_that_gives_up_ends_the_daemon_when_it_may_not(void **state)
{
    (void)state;
    for (int fatal = 0; fatal < 2; fatal++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "policy: {restart: {backoffMinMs: 100, backoffMaxMs: 200}}\n"
                       "groups:\n  - {name: g, strategy: one_for_all, intensity: 1, periodMs: "
                       "600000, escalate: %s}\nagents:\n  - {agentId: calc, command: [/bin/agent], "
                       "group: g}\n",
                       fatal == 1 ? "daemon" : "notice");
        world_open(yaml);
        crashes("calc#1", 11, 1, EXIT_3);
        assert_string_equal(world_processes("calc"), "calc#1 failed; ");
        assert_int_equal(world.processes.escalated[0] != 0, fatal);
        if (fatal == 0) {
            world_close();
        }
    }
}

/* ---- orders ---- */

static void a_process_is_stopped_after_its_work_and_started_again(void **state)
{
    struct bt_error err;
    struct process_view v;

    (void)state;
    world_open(ONE);
    world_up("calc#1", 11, a);
    (void)house_submit(world.h,
                       "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                       "'do','task':'t'}]}");
    assert_non_null(house_work(world.h, "calc", NULL));
    assert_int_equal(world_order(PROCESS_STOP, "calc", "", false, &err), BT_OK);
    assert_string_equal(world_processes("calc"), "calc#1 stopping drains; ");
    assert_int_equal(roster_deadline(world.roster), world.h->now + 50);
    rig_no_order();
    house_done(world.h, "calc", "'result':{'text':'1'}");
    world_pass(49);
    assert_string_equal(world_processes("calc"), "calc#1 stopping drains; ");
    world_pass(1);
    rig_ordered(PACKET_SIGNAL);
    assert_int_equal(rig.got.status, SIGTERM);
    assert_string_equal(rig.got.instance, a);
    assert_string_equal(world_processes("calc"), "calc#1 stopping stops; ");
    world_exit(a, 11, 0);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "calc#1 stopped; ");
    assert_int_equal(roster_deadline(world.roster), MSEC_NEVER);
    rig_no_order();
    assert_int_equal(world_order(PROCESS_START, "calc", "calc#1", false, &err), BT_OK);
    world_up("calc#1", 12, b);
    assert_true(roster_view(world.roster, STR_LIT("calc"), 0, &v));
    assert_string_equal(v.state, "up");
    assert_int_equal(world_order(PROCESS_START, "calc", "", false, &err), BT_OK); /* it runs */
    rig_no_order();
}

/* Also one that was given up, and one that an operator stopped and that has not ended yet. */
static void what_does_not_run_is_started_by_an_order(void **state)
{
    struct bt_error err;

    (void)state;
    world_open(RULE ONE);
    crashes("calc#1", 11, 2, EXIT_3);
    assert_string_equal(world_processes("calc"), "calc#1 failed; ");
    assert_int_equal(world_order(PROCESS_START, "calc", "", false, &err), BT_OK);
    assert_string_equal(world_processes("calc"), "calc#1 starting; ");
    world_up("calc#1", 21, a);
    assert_int_equal(world_order(PROCESS_STOP, "calc", "", true, &err), BT_OK);
    world_pass(50);
    rig_ordered(PACKET_SIGNAL);
    assert_int_equal(world_order(PROCESS_START, "calc", "", false, &err), BT_OK);
    world_exit(a, 21, 0);
    world_pass(SECOND);
    assert_string_equal(world_processes("calc"), "calc#1 starting; ");
    world_up("calc#1", 22, a);
    assert_int_equal(world_order(PROCESS_START, "calc", "", false, &err), BT_OK);
    assert_string_equal(world_processes("calc"), "calc#1 up; "); /* it runs */
    rig_no_order();
}

static void restarts_go_one_after_the_other(void **state)
{
    struct bt_error err;

    (void)state;
    world_open("agents:\n  - {agentId: calc, command: [/bin/agent], instances: 2}\n");
    world_started("calc#1", a);
    world_started("calc#2", b);
    world_registers("calc#1", 11, a);
    world_registers("calc#2", 12, b);
    assert_int_equal(world_order(PROCESS_RESTART, "calc", "", false, &err), BT_OK);
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, a);
    rig_no_order();
    assert_string_equal(world_processes("calc"),
                        "calc#1 stopping stops; calc#2 up waits to restart; ");
    world_exit(a, 11, 0);
    world_pass(50);
    assert_string_equal(world_processes("calc"),
                        "calc#1 starting starts again; calc#2 up waits to restart; ");
    world_up("calc#1", 13, c);
    world_pass(50);
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, b);
    world_exit(b, 12, 0);
    world_pass(50);
    world_up("calc#2", 14, b);
    world_pass(50);
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 up; ");
}

static void an_order_at_once_does_not_wait_for_work(void **state)
{
    struct bt_error err;

    (void)state;
    world_open(ONE);
    world_up("calc#1", 11, a);
    (void)house_submit(world.h,
                       "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                       "'do','task':'t'}]}");
    assert_non_null(house_work(world.h, "calc", NULL));
    assert_int_equal(world_order(PROCESS_STOP, "calc", "calc#1", true, &err), BT_OK);
    world_cycle();
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, a);
}

static void an_order_that_cannot_be_carried_out_says_why(void **state)
{
    struct bt_error err;

    (void)state;
    world_open_only(ONE);
    assert_int_equal(world_order(PROCESS_STOP, "calc", "", false, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "another shard of this node starts its agents"));
    assert_int_equal(roster_deadline(world.roster), MSEC_NEVER);
    assert_int_equal(processes_start(&world.processes, &err), BT_OK);
    assert_int_equal(world_order(PROCESS_STOP, "nobody", "", false, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "agent 'nobody' is not in the configuration"));
    assert_int_equal(world_order(PROCESS_STOP, "calc", "calc#2", false, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "agent 'calc' has no process 'calc#2'"));
    engine_begin(world.h->engine, world.h->now, world.h->wall);
    engine_drain(world.h->engine);
    assert_int_equal(engine_end(world.h->engine, &err), BT_OK);
    assert_int_equal(world_order(PROCESS_STOP, "calc", "", false, &err), BT_UNAVAILABLE);
    assert_string_equal(err.msg, "the supervisor is stopping");
}

/* ---- how many ---- */

static void one_more_runs_when_steps_wait_and_one_less_when_none_do(void **state)
{
    (void)state;
    world_open("agents:\n  - agentId: calc\n    command: [/bin/agent]\n    capacity: 1\n"
               "    instances: {min: 1, max: 2, queue: 1, upMs: 1000, downMs: 5000}\n");
    world_up("calc#1", 11, a);
    for (int i = 0; i < 3; i++) {
        (void)house_submit(world.h,
                           "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                           "'do','task':'t'}]}");
    }
    world_pass(50);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    world_pass(900);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    world_pass(200);
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 starting; ");
    world_up("calc#2", 12, b);
    world_pass(3000); /* never more than its most */
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 up; ");
    for (int i = 0; i < 3; i++) {
        house_done(world.h, "calc", "'result':{'text':'1'}");
    }
    world_pass(50);
    for (int i = 0; i < 48; i++) {
        world_pass(100);
    }
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 up; ");
    world_pass(300);
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, b); /* the last one goes first */
    assert_string_equal(world_processes("calc"), "calc#1 up; calc#2 stopping stops; ");
    world_exit(b, 12, 0);
    world_pass(50);
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
}

/* The one without work goes, whatever its number, and the next one has the lowest that is free. */
static void the_one_without_work_goes_and_its_number_is_used_again(void **state)
{
    (void)state;
    world_open("agents:\n  - agentId: calc\n    command: [/bin/agent]\n    capacity: 1\n"
               "    instances: {min: 1, max: 2, queue: 1, upMs: 1000, downMs: 5000}\n");
    world_up("calc#1", 11, a);
    for (int i = 0; i < 2; i++) {
        (void)house_submit(world.h,
                           "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                           "'do','task':'t'}]}");
    }
    for (int i = 0; i < 12; i++) {
        world_pass(100);
    }
    world_up("calc#2", 12, b);
    assert_int_equal(processes_outstanding(&world.processes), 2);
    house_done(world.h, "calc", "'result':{'text':'1'}"); /* the older work, of calc#1 */
    for (int i = 0; i < 60; i++) {
        world_pass(100);
    }
    rig_ordered(PACKET_SIGNAL);
    assert_string_equal(rig.got.instance, a);
    world_exit(a, 11, 0);
    world_pass(100);
    assert_string_equal(world_processes("calc"), "calc#2 up; ");
    (void)house_submit(world.h,
                       "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                       "'do','task':'t'}]}");
    for (int i = 0; i < 13; i++) {
        world_pass(100);
    }
    world_started("calc#1", c);
}

/* ---- what others ask ---- */

static void the_hooks_tell_of_processes_and_end_them(void **state)
{
    struct process_hooks hooks;
    struct agent_process about;

    (void)state;
    world_open(ONE);
    world_up("calc#1", 11, a);
    hooks = processes_hooks(&world.processes);
    assert_true(hooks.is_ours(hooks.of, str_from(a)));
    assert_false(hooks.is_ours(hooks.of, STR_LIT("x")));
    assert_false(hooks.is_ours(hooks.of, STR_LIT("")));
    assert_true(hooks.about(hooks.of, STR_LIT("calc"), &about));
    assert_string_equal(about.why, "");
    assert_false(hooks.about(hooks.of, STR_LIT("nobody"), &about));
    hooks.kill(hooks.of, str_from(a));
    rig_ordered(PACKET_KILL_TREE);
    world_exit(a, 11, SIGKILL);
    assert_true(hooks.about(hooks.of, STR_LIT("calc"), &about));
    assert_non_null(strstr(about.why, "did not stop its work"));
    assert_non_null(strstr(about.log, "calc#1.log"));
    world_pass(2 * SECOND);
    world_up("calc#1", 12, b);
    hooks.lost(hooks.of, str_from(b)); /* it has the lease, and two seconds, to come back */
    assert_string_equal(world_processes("calc"), "calc#1 starting; ");
    assert_int_equal(spawn_deadline(rig.s), world.h->now + HOUSE_LEASE_MS + 2000);
}

/* ---- credentials, and processes of the daemon before ---- */

static const char *handed(const char *name)
{
    const size_t n = strlen(name);

    for (char *const *at = rig.got.handover; *at != NULL; at++) {
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '=') {
            return *at + n + 1;
        }
    }
    return NULL;
}

/* What it proves itself with is handed to it alone, and holds as long as it lives. */
static void a_process_has_a_credential_while_it_lives(void **state)
{
    const struct session_time time = {0, 1700000000000};
    struct sessions *sessions;
    struct auth_store *store;
    struct audit *audit;
    struct bt_error err;
    char id[80];

    (void)state;
    world_open(ONE);
    assert_int_equal(sessions_new(&sessions, &err), BT_OK);
    assert_int_equal(audit_open(rig.dir, time.wall, &audit, &err), BT_OK);
    assert_int_equal(auth_store_new(rig.dir, sessions, audit, time, &store, &err), BT_OK);
    world_started("calc#1", a);
    (void)snprintf(id, sizeof id, "process:%s", a);
    assert_string_equal(handed("credential"), id);
    assert_int_equal(strlen(handed("key")), 64);
    processes_credentials(&world.processes, store);
    const struct identity *who = sessions_identity(sessions, str_from(id), time.wall);
    assert_non_null(who);
    assert_int_equal(who->role, ROLE_AGENT);
    assert_int_equal(who->agents_n, 1);
    assert_string_equal(who->agents[0], "calc");
    world_registers("calc#1", 11, a);
    processes_credentials(&world.processes, store);
    assert_non_null(sessions_identity(sessions, str_from(id), time.wall));
    world_exit(a, 11, EXIT_3);
    processes_credentials(&world.processes, store);
    assert_null(sessions_identity(sessions, str_from(id), time.wall));
    auth_store_free(store);
    sessions_free(sessions);
    audit_close(audit);
}

static void a_process_of_the_daemon_before_goes_on(void **state)
{
    static const char instance[] = "0190F3C2-7A1B-7C3D-9E4F-0000000000AA";
    struct rig_child living = {instance, "calc#1", 77, 0};
    struct process_view v;
    struct bt_error err;

    (void)state;
    world_open(ONE);
    world_started("calc#1", a);
    living.hash = rig.got.hash;
    world_again(&living);
    (void)house_join_instance(world.h, "calc", instance, 1); /* it registers by itself */
    assert_int_equal(processes_start(&world.processes, &err), BT_OK);
    world_cycle();
    assert_string_equal(world_processes("calc"), "calc#1 starting; ");
    rig_no_order();
    processes_adopted(&world.processes);
    world_cycle();
    assert_string_equal(world_processes("calc"), "calc#1 up; ");
    assert_true(roster_view(world.roster, STR_LIT("calc"), 0, &v));
    assert_int_equal(v.pid, 77);
}

/* One that the daemon before started, and one that is started again. */
static void the_gateway_is_up_however_it_came_to_run(void **state)
{
    static const char instance[] = "0190F3C2-7A1B-7C3D-9E4F-0000000000AB";
    struct rig_child living = {instance, "baton-gateway", 77, 0};
    struct bt_error err;

    (void)state;
    world_open("gateway: {listen: '127.0.0.1:0'}\nagents: []\n");
    world_started("baton-gateway", a);
    living.hash = rig.got.hash;
    world_again(&living);
    assert_int_equal(processes_start(&world.processes, &err), BT_OK);
    world_cycle();
    assert_string_equal(world_processes("baton-gateway"), "baton-gateway up; ");
    rig_ordered(PACKET_REGISTERED);
    world_exit(instance, 77, EXIT_3);
    world_pass(2 * SECOND);
    world_started("baton-gateway", a);
    rig_report(PACKET_STARTED, a, 78, 0, "");
    world_cycle();
    assert_string_equal(world_processes("baton-gateway"), "baton-gateway up; ");
}

/* ---- a node with several shards ---- */

/* Where the others listen is known by the configuration, or by the ports that they had; one that
 * may listen anywhere is not known. */
static void starts_shut_out(const char *control)
{
    static const char *const user[] = {"user=7:8", NULL}; /* who cannot read where they listen */
    struct bt_error err;
    char yaml[256];

    world_shards = 3;
    (void)snprintf(yaml, sizeof yaml, "listen: {control: '%s'}\n" ONE, control);
    world_open_only(yaml);
    ((struct config_agent *)(uintptr_t)&world.config->agents[0])->apart = user;
    assert_int_equal(processes_start(&world.processes, &err), BT_OK);
    world_started("calc#1", a);
    assert_string_equal(handed("control"), engine_control_url(world.h->engine));
    assert_string_equal(handed("control:1"), engine_control_url(world.h->engine));
}

static void an_agent_of_a_node_is_told_where_all_of_its_shards_listen(void **state)
{
    (void)state;
    starts_shut_out("tcp://127.0.0.1:7000");
    assert_string_equal(handed("control:0"), "tcp://127.0.0.1:7000");
    assert_string_equal(handed("control:2"), "tcp://127.0.0.1:7002");
    world_close();
    starts_shut_out("tcp://127.0.0.1:0");
    assert_null(handed("control:0"));
    assert_null(handed("control:2"));
}

/* Its size is told, too: of a line with the instance and the agent for each that lives. */
static ino_t list_of_processes(off_t size)
{
    struct stat st = {.st_ino = 0};
    char path[128];

    (void)snprintf(path, sizeof path, "%s/agents.list", rig.dir);
    (void)stat(path, &st);
    assert_int_equal(st.st_size, size);
    return st.st_ino;
}

/* The other shards of the node read it, so it is not written for nothing. */
static void the_list_of_processes_is_written_when_one_begins_or_ends(void **state)
{
    const struct session_time time = {0, 1700000000000};
    struct sessions *sessions;
    struct auth_store *store;
    struct audit *audit;
    struct bt_error err;
    bool taken;
    ino_t at;

    (void)state;
    world_shards = 2;
    world_open(ONE);
    assert_int_equal(sessions_new(&sessions, &err), BT_OK);
    assert_int_equal(audit_open(rig.dir, time.wall, &audit, &err), BT_OK);
    assert_int_equal(auth_store_new(rig.dir, sessions, audit, time, &store, &err), BT_OK);
    assert_true(keeper_take(&world.keeper, 0, &taken));
    world_started("calc#1", a);
    processes_credentials(&world.processes, store);
    at = list_of_processes(UUID_TEXT_LEN + 6);
    assert_int_not_equal(at, 0);
    processes_credentials(&world.processes, store);
    assert_int_equal(list_of_processes(UUID_TEXT_LEN + 6), at);
    world_registers("calc#1", 11, a);
    world_exit(a, 11, EXIT_3);
    processes_credentials(&world.processes, store);
    assert_int_not_equal(list_of_processes(0), at);
    (void)close(world.keeper.lock);
    auth_store_free(store);
    sessions_free(sessions);
    audit_close(audit);
}

/* ---- agents that must not be started ---- */

static void an_agent_that_is_held_back_fails_at_once_with_the_reason(void **state)
{
    struct process_hooks hooks;
    struct agent_process about;
    struct config_agent *agent;
    struct bt_error err;
    const char *id;

    (void)state;
    world_open_only(TWO);
    agent = (struct config_agent *)(uintptr_t)&world.config->agents[0];
    agent->held_back = "its key is missing";
    engine_begin(world.h->engine, world.h->now, world.h->wall);
    processes_hold_back(&world.processes);
    assert_int_equal(engine_end(world.h->engine, &err), BT_OK);
    assert_int_equal(processes_start(&world.processes, &err), BT_OK);
    world_started("other#1", a);
    rig_no_order();
    id = house_submit(world.h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                               "'do','task':'t','maxRetries':0}]}");
    house_wait(world.h, 2 * SECOND);
    house_has(world.h, house_ok(world.h, "plan.get", "'planId':'%s'", id), "steps.0.error",
              "it was not started: its key is missing; correct it, then start the daemon again");
    hooks = processes_hooks(&world.processes);
    assert_true(hooks.about(hooks.of, STR_LIT("calc"), &about));
    assert_string_equal(about.why, "not started: its key is missing");
    assert_string_equal(about.log, "");
    assert_int_equal(world_order(PROCESS_START, "calc", "", false, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "agent 'calc' is not started: its key is missing; correct it"));
}

/* Texts for people and the core are cut between characters; a byte that is none becomes '?'. */
static void reasons_are_whole_characters(void **state)
{
    static const char *const letters[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    struct agent_process about;
    struct process_hooks hooks;
    struct config_agent *agent;
    char why[1024];

    (void)state;
    world_open_only(ONE);
    agent = (struct config_agent *)(uintptr_t)&world.config->agents[0];
    agent->held_back = why;
    hooks = processes_hooks(&world.processes);
    for (size_t i = 0; i < 4; i++) {
        const size_t n = strlen(letters[i]);
        for (size_t before = 0; before < 5; before++) {
            memset(why, 'y', before);
            for (size_t at = before; at + n < sizeof why; at += n) {
                memcpy(why + at, letters[i], n + 1);
            }
            assert_true(hooks.about(hooks.of, STR_LIT("calc"), &about));
            assert_true(utf8_valid(about.why, strlen(about.why)));
            assert_null(strchr(about.why, '?'));
            assert_true(strlen(about.why) + 2 * n >= sizeof about.why); /* and little is cut */
        }
    }
    (void)snprintf(why, sizeof why, "a\xff\xfe\xc3-\xe2\x82");
    assert_true(hooks.about(hooks.of, STR_LIT("calc"), &about));
    assert_string_equal(about.why, "not started: a??"
                                   "?-??");
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_processes_of_the_configuration_are_started),
        TEST(the_gateway_is_up_when_it_runs),
        TEST(a_process_that_ends_is_gone_at_once_and_comes_again),
        TEST(an_agent_whose_process_gave_up_fails_its_steps_with_the_reason),
        TEST(one_of_two_that_gave_up_leaves_the_other),
        TEST(an_agent_is_not_given_up_before_its_last_process),
        TEST(the_last_hope_may_end_well),
        TEST(one_that_ended_well_is_no_hope),
        TEST(a_group_that_gives_up_ends_the_daemon_when_it_may_not),
        TEST(a_process_is_stopped_after_its_work_and_started_again),
        TEST(what_does_not_run_is_started_by_an_order),
        TEST(restarts_go_one_after_the_other),
        TEST(an_order_at_once_does_not_wait_for_work),
        TEST(an_order_that_cannot_be_carried_out_says_why),
        TEST(one_more_runs_when_steps_wait_and_one_less_when_none_do),
        TEST(the_one_without_work_goes_and_its_number_is_used_again),
        TEST(the_hooks_tell_of_processes_and_end_them),
        TEST(a_process_has_a_credential_while_it_lives),
        TEST(a_process_of_the_daemon_before_goes_on),
        TEST(the_gateway_is_up_however_it_came_to_run),
        TEST(an_agent_of_a_node_is_told_where_all_of_its_shards_listen),
        TEST(the_list_of_processes_is_written_when_one_begins_or_ends),
        TEST(reasons_are_whole_characters),
        TEST(an_agent_that_is_held_back_fails_at_once_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
