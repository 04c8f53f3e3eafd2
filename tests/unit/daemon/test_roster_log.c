/* What becomes of the daemon's processes, as its log has it. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "tests/unit/daemon/roster_rig.h"

enum { EXIT_3 = 3 << 8, SECOND = 1000 };

static char a[UUID_TEXT_LEN + 1];
static char b[UUID_TEXT_LEN + 1];

static char logged[8192];

/* "info agent.scale agent=calc ...", with ID for instances. */
static void keep_line(enum log_level level, const char *event, const char *text, void *self)
{
    static const char *const names[] = {"err", "warn", "info", "debug"};
    size_t at = strlen(logged);

    (void)self;
    at += (size_t)snprintf(logged + at, sizeof logged - at, "%s %s ", names[level], event);
    while (*text != 0 && at + 4 < sizeof logged) {
        const bool is_id = strspn(text, "0123456789ABCDEF-") == UUID_TEXT_LEN;
        at += (size_t)snprintf(logged + at, sizeof logged - at, "%.*s", is_id ? 2 : 1,
                               is_id ? "ID" : text);
        text += is_id ? UUID_TEXT_LEN : 1;
    }
    (void)snprintf(logged + at, sizeof logged - at, "\n");
}

/* Lines of these events are exactly these; then none is. */
static void is_logged(const char *event, const char *want)
{
    char is[8192] = "";

    for (const char *line = logged; *line != 0; line = strchr(line, '\n') + 1) {
        const size_t at = strlen(is);
        const int n = (int)strcspn(line, "\n") + 1;
        if (strncmp(strchr(line, ' ') + 1, event, strlen(event)) == 0) {
            (void)snprintf(is + at, sizeof is - at, "%.*s", n, line);
        }
    }
    assert_string_equal(is, want);
    logged[0] = 0;
}

static void opens(const char *yaml)
{
    world_open(yaml);
    logged[0] = 0;
    log_setup(LOG_INFO, keep_line, NULL);
}

static void closes(void)
{
    log_setup(LOG_ERR, NULL, NULL);
    world_close();
}

static void work(int steps)
{
    for (int i = 0; i < steps; i++) {
        (void)house_submit(world.h,
                           "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':"
                           "'do','task':'t'}]}");
    }
}

static void more_and_fewer_processes(void **state)
{
    (void)state;
    opens("agents:\n  - agentId: calc\n    command: [/bin/agent]\n    capacity: 1\n"
          "    instances: {min: 1, max: 2, queue: 1, upMs: 1000, downMs: 5000}\n");
    world_up("calc#1", 11, a);
    work(3);
    world_pass(50);
    world_pass(900);
    is_logged("agent.scale", "");
    world_pass(200);
    is_logged("agent.scale", "info agent.scale agent=calc processes=1 more=1 queued=2 busy=1\n");
    world_up("calc#2", 12, b);
    world_pass(3000);
    is_logged("agent.scale", "");
    for (int i = 0; i < 3; i++) {
        house_done(world.h, "calc", "'result':{'text':'1'}");
    }
    for (int i = 0; i < 50; i++) {
        world_pass(100);
    }
    world_pass(300);
    is_logged("agent.scale", "info agent.scale agent=calc processes=2 more=-1 queued=0 busy=0\n");
    world_exit(b, 12, 0);
    world_pass(50);
    is_logged("agent.process",
              "info agent.process event=exited name=calc#2 pid=12 instance=ID exit code 0\n"
              "info agent.process event=removed name=calc#2\n");
    closes();
}

static void crashes_and_a_group_that_gives_up(void **state)
{
    (void)state;
    opens("policy: {restart: {backoffMinMs: 100, backoffMaxMs: 200}}\n"
          "groups:\n  - {name: g, strategy: one_for_all, intensity: 1, periodMs: 600000, "
          "escalate: notice}\n"
          "agents:\n  - {agentId: calc, command: [/bin/agent], group: g}\n");
    world_started("calc#1", a);
    rig_report(PACKET_STARTED, a, 11, 0, "");
    world_exit(a, 11, EXIT_3);
    world_pass(SECOND);
    is_logged("agent.process",
              "info agent.process event=started name=calc#1 pid=11 instance=ID \n"
              "warn agent.process event=exited name=calc#1 pid=11 instance=ID exit code 3\n"
              "warn agent.process event=group gave up name=g pid=0 instance= the group g had 1 "
              "crashes within 600000 ms; the last: calc#1: exit code 3\n"
              "warn agent.process event=gave up name=calc#1 pid=0 instance= the group g had 1 "
              "crashes within 600000 ms; the last: calc#1: exit code 3\n");
    closes();
}

static void orders(void **state)
{
    struct bt_error err;

    (void)state;
    opens("agents:\n  - {agentId: calc, command: [/bin/agent]}\n");
    world_up("calc#1", 11, a);
    assert_int_equal(world_order(PROCESS_RESTART, "calc", "", true, &err), BT_OK);
    world_pass(50);
    world_exit(a, 11, 0);
    world_pass(50);
    rig_ordered(PACKET_SIGNAL);
    world_up("calc#1", 12, b);
    world_pass(100);
    is_logged("agent.process",
              "info agent.process event=started name=calc#1 pid=11 instance=ID \n"
              "info agent.process event=up name=calc#1 pid=11 instance=ID \n"
              "info agent.process event=exited name=calc#1 pid=11 instance=ID exit code 0\n"
              "info agent.process event=restarted name=calc#1 pid=12 instance=ID exit code 0\n"
              "info agent.process event=up name=calc#1 pid=12 instance=ID \n"
              "info agent.process event=renewed name=calc#1\n");
    assert_int_equal(world_order(PROCESS_STOP, "calc", "calc#1", true, &err), BT_OK);
    world_pass(50);
    world_exit(b, 12, 0);
    world_pass(100);
    is_logged("agent.process",
              "info agent.process event=exited name=calc#1 pid=12 instance=ID exit code 0\n"
              "info agent.process event=at rest name=calc#1\n");
    closes();
}

/* The other one is not restarted. */
static void a_restart_whose_new_process_is_given_up(void **state)
{
    struct bt_error err;

    (void)state;
    opens("policy: {restart: {intensity: 1, periodMs: 600000, backoffMinMs: 100, backoffMaxMs: "
          "200}}\nagents:\n  - {agentId: calc, command: [/bin/agent], instances: 2}\n");
    world_started("calc#1", a);
    world_started("calc#2", b);
    world_registers("calc#1", 11, a);
    world_registers("calc#2", 12, b);
    logged[0] = 0;
    assert_int_equal(world_order(PROCESS_RESTART, "calc", "", true, &err), BT_OK);
    world_pass(50);
    world_exit(a, 11, 0);
    world_pass(50);
    rig_ordered(PACKET_SIGNAL);
    world_started("calc#1", a);
    rig_report(PACKET_STARTED, a, 13, 0, "");
    world_exit(a, 13, EXIT_3);
    world_pass(SECOND);
    is_logged("agent.process",
              "info agent.process event=exited name=calc#1 pid=11 instance=ID exit code 0\n"
              "info agent.process event=restarted name=calc#1 pid=13 instance=ID exit code 0\n"
              "warn agent.process event=exited name=calc#1 pid=13 instance=ID exit code 3\n"
              "warn agent.process event=gave up name=calc#1 pid=0 instance= 1 crashes within "
              "600000 ms; the last: exit code 3\n"
              "warn agent.process event=halted name=calc#1 its new process was given up; the other "
              "processes of the agent keep what they run\n");
    closes();
}

static void the_gateway(void **state)
{
    (void)state;
    opens("policy: {restart: {intensity: 1, periodMs: 600000, backoffMinMs: 100, backoffMaxMs: "
          "200}}\ngateway: {listen: \"127.0.0.1:0\"}\n");
    world_started("baton-gateway", a);
    rig_report(PACKET_STARTED, a, 11, 0, "");
    world_cycle();
    rig_ordered(PACKET_REGISTERED);
    world_exit(a, 11, EXIT_3);
    world_pass(SECOND);
    assert_non_null(strstr(logged,
                           "err gateway.gave_up the HTTP API is not started again: 1 crashes "
                           "within 600000 ms; the last: exit code 3; its log is "
                           "log/baton-gateway.log of the state directory\n"));
    is_logged("agent.process",
              "info agent.process event=started name=baton-gateway pid=11 instance=ID \n"
              "info agent.process event=up name=baton-gateway pid=11 instance=ID \n"
              "warn agent.process event=exited name=baton-gateway pid=11 instance=ID exit code 3\n"
              "warn agent.process event=gave up name=baton-gateway pid=0 instance= 1 crashes "
              "within 600000 ms; the last: exit code 3\n");
    closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_and_fewer_processes),
        cmocka_unit_test(crashes_and_a_group_that_gives_up),
        cmocka_unit_test(orders),
        cmocka_unit_test(a_restart_whose_new_process_is_given_up),
        cmocka_unit_test(the_gateway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
