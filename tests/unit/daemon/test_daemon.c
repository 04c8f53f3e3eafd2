/*
 * The daemon's start, cycle and end, in daemon_told.txt. BATON_WRITE=1 writes it anew: read the
 * difference.
 *
 *     ## What the case is about
 *       call          of a room, or of the world
 *     L level event   what it logs
 *     > order         to the spawner, whom the test plays
 *     < answer        to a request
 *     - text          what the test does
 *     = 0             the exit code
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/golden.h"
#include "tests/unit/daemon/daemon_rig.h"

#define AGENT "agents:\n- {agentId: calc, command: [/bin/true]}\n"
#define PLAN ",'plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'do it'}]}"

static void term(void)
{
    daemon_note("- SIGTERM");
    MUST(raise(SIGTERM) == 0);
}

/* The wait of this number is the last one but those of the end. */
static bool is_last(int n, int last)
{
    if (n == last) {
        term();
    }
    return n >= last;
}

/* ---- starts ---- */

static void with_ready(void)
{
    MUST(pipe(dw.ready) == 0 && dup2(dw.ready[1], 9) == 9 && close(dw.ready[1]) == 0);
}

static void ready_is_told(int n)
{
    char text[16] = "";

    if (n == 1) {
        MUST(read(dw.ready[0], text, sizeof text - 1) >= 0);
        daemon_note("- ready-fd: %.*s, then %s", (int)strcspn(text, "\n"), text,
                    read(dw.ready[0], text, 1) == 0 ? "closed" : "open");
        term();
    }
}

/* A service manager may start it so: the first descriptor is 0 then. */
static void without_input(void)
{
    MUST(close(STDIN_FILENO) == 0);
}

static void foreign(void)
{
    dw.foreign = true;
}

static void standby_stops(void)
{
    dw.standby_stops = true;
}

static void no_room(void)
{
    dw.room = JOURNAL_FULL;
}

static void room_comes(int n)
{
    if (n == 2) {
        daemon_note("- there is room");
        dw.room = JOURNAL_ROOM;
    }
    (void)is_last(n, 4);
}

static void waits_for_five_seconds(int n)
{
    (void)is_last(n, 9);
}

static void room_goes_at_the_end(int n)
{
    dw.room = JOURNAL_FULL;
    (void)is_last(n, 1);
}

/* ---- signals ---- */

static void hup_then_int(int n)
{
    if (n == 1) {
        daemon_note("- SIGHUP, twice");
        MUST(raise(SIGHUP) == 0 && kill(getpid(), SIGHUP) == 0);
    } else if (n == 3) {
        daemon_note("- SIGINT");
        MUST(raise(SIGINT) == 0);
    }
}

static void strays(int n)
{
    static const int all[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGIO};

    for (size_t i = 0; n == 1 && i < sizeof all / sizeof all[0]; i++) {
        MUST(raise(all[i]) == 0);
    }
    (void)is_last(n, 3);
}

/* Its process lives on: the stop waits for it. */
static void process_lives(int n)
{
    if (n == 1) {
        daemon_report(PACKET_STARTED, dw.instance, 77, 0);
    } else if (n == 3) {
        term();
    } else if (n == 8) {
        daemon_note("- the process ends");
        daemon_report(PACKET_EXITED, dw.instance, 77, SIGTERM);
    }
}

static void second_signal(int n)
{
    if (n == 1) {
        daemon_report(PACKET_STARTED, dw.instance, 77, 0);
    } else if (n == 3 || n == 6) {
        term();
    } else if (n == 5) {
        daemon_note("- SIGHUP");
        MUST(raise(SIGHUP) == 0);
    }
}

static void drain_twice(int n)
{
    if (n == 1 || n == 2) {
        daemon_ask("supervisor.drain", n == 1 ? ",'graceMs':7000" : ",'graceMs':9000");
    }
}

static void drain_with_the_usual_grace(int n)
{
    if (n == 1) {
        daemon_ask("supervisor.drain", "");
    }
}

static void group_gave_up(int n)
{
    if (n == 2) {
        (void)snprintf(dw.d->processes.escalated, sizeof dw.d->processes.escalated, "g gave up");
    }
}

static void group_gave_up_in_a_stop(int n)
{
    if (n == 1) {
        daemon_report(PACKET_STARTED, dw.instance, 77, 0);
    } else if (n == 2) {
        term();
    } else if (n == 4) {
        group_gave_up(2);
    } else if (n == 6) {
        daemon_report(PACKET_EXITED, dw.instance, 77, SIGTERM);
    }
}

/* As the journal calls it while it waits for its server. */
static void meanwhile(void)
{
    daemon_note("- the journal waits: %s", dw.meanwhile(dw.meanwhile_self) ? "goes on" : "no more");
}

static void told_while_it_waits(int n)
{
    if (n == 1) {
        meanwhile();
        daemon_note("- SIGHUP");
        MUST(raise(SIGHUP) == 0);
        meanwhile();
    } else if (n == 3) {
        term();
        meanwhile();
        daemon_note("- SIGINT");
        MUST(raise(SIGINT) == 0);
        meanwhile();
    }
}

/* ---- agents ---- */

static void registers_as(const char *instance, const char *skill)
{
    char fields[512];

    (void)snprintf(fields, sizeof fields,
                   ",'card':{'agentId':'calc','name':'calc','version':'1','skills':[{'id':'%s',"
                   "'description':'Does a thing.'}]},'capacity':1,'endpoint':"
                   "'tcp://127.0.0.1:40000','protocol':[1],'instanceId':'%s',"
                   "'sessionKey':'0123456789abcdef1'",
                   skill, instance);
    daemon_ask("agent.register", fields);
}

static void registers(const char *instance)
{
    registers_as(instance, "do");
}

static void agent_comes(int n)
{
    if (n == 1) {
        daemon_report(PACKET_STARTED, dw.instance, 77, 0);
        registers(dw.instance);
    } else if (n == 3) {
        registers("0190F3C2-7A1B-7C3D-9E4F-000000000001");
    } else if (n == 5) {
        term();
    } else if (n == 7) {
        daemon_report(PACKET_EXITED, dw.instance, 77, SIGTERM);
    }
}

/* ---- plans ---- */

static void cancel(void)
{
    char fields[128];

    (void)snprintf(fields, sizeof fields, ",'planId':'%s'", dw.plan);
    daemon_ask("plan.cancel", fields);
}

static void a_plan_ends(int n)
{
    struct uuid id = uuid_new();

    if (n == 1) {
        daemon_ask("plan.submit", PLAN ",'clientKey':'k'");
    } else if (n == 3) {
        MUST(uuid_parse(str_from(dw.plan), &id));
        daemon_note("- its plan is %s, another is %s",
                    dw.retention.is_open(dw.retention.self, id) ? "open" : "not open",
                    dw.retention.is_open(dw.retention.self, uuid_new()) ? "open" : "not open");
        daemon_note("- it is %s",
                    dw.retention.is_read(dw.retention.self, id, 7) ? "read" : "not read");
        dw.retention.deleted(dw.retention.self, id);
        cancel();
    }
    (void)is_last(n, 6);
}

static void a_job_ends(int n)
{
    if (n == 1) {
        registers_as("0190F3C2-7A1B-7C3D-9E4F-000000000001", "plan");
    } else if (n == 3) {
        daemon_ask("plan.submit", ",'goal':'do something','planner':'agent:calc'");
    } else if (n == 5) {
        cancel();
    }
    (void)is_last(n, 12);
}

/* ---- input ---- */

static void many_requests(int n)
{
    for (int i = 0; n == 1 && i < 257; i++) {
        fake_link_request(dw.d->link, false, ++dw.requests, "{}", 2);
    }
    (void)is_last(n, 4);
}

static void large_requests(size_t bytes)
{
    char *text = calloc(1, bytes);

    MUST(text != NULL);
    for (int i = 0; i < 4; i++) {
        fake_link_request(dw.d->link, false, ++dw.requests, text, bytes);
    }
    free(text);
}

static void eight_mib(int n)
{
    if (n == 1) {
        large_requests(4 * 1024 * 1024);
    } else if (n == 5) {
        large_requests(4 * 1024 * 1024 - 1);
    }
    (void)is_last(n, 8);
}

static void slow_requests(int n)
{
    dw.event_ms = n <= 3 ? 25 : n <= 6 ? 49 : 0;
    for (int i = 0; (n == 1 || n == 4) && i < 3; i++) {
        fake_link_request(dw.d->link, false, ++dw.requests, "{}", 2);
    }
    (void)is_last(n, 8);
}

static void answers_are_full(int n)
{
    dw.full = n == 1;
    if (n == 1) {
        daemon_ask("supervisor.info", "");
    }
    (void)is_last(n, 4);
}

/* ---- waits ---- */

static void deadlines(int n)
{
    if (n <= RIG_DUE) {
        daemon_note("- deadline %d is in %d ms", n, n * 100);
    }
    for (int i = 0; i < RIG_DUE; i++) {
        dw.due[i] = i == n - 1 ? dw.now + (msec)n * 100 : MSEC_NEVER;
    }
    (void)is_last(n, RIG_DUE + 2);
}

static void behind(int n)
{
    dw.behind = n == 1;
    (void)is_last(n, 3);
}

static void late(int n)
{
    dw.late_ms = n == 2 ? 250 : n == 4 ? 251 : 0;
    (void)is_last(n, 6);
}

static void stalled(int n)
{
    dw.stalled = n >= 2 && n < 5;
    dw.due[1] = dw.due[2] = dw.now + 300;
    if (n == 3) {
        daemon_report(PACKET_STARTED, dw.instance, 77, 0);
    }
    if (n == 7) {
        daemon_report(PACKET_EXITED, dw.instance, 77, 0);
    }
    (void)is_last(n, 6);
}

static void stalled_in_a_stop(int n)
{
    dw.stalled = n >= 2;
    if (n == 1) {
        daemon_report(PACKET_STARTED, dw.instance, 77, 0);
    } else if (n == 3) {
        term();
    } else if (n == 5) {
        daemon_report(PACKET_EXITED, dw.instance, 77, SIGTERM);
    }
}

/* ---- ends ---- */

static void other_owner(int n)
{
    dw.other_owner = n == 2;
    if (n == 2) {
        daemon_note("- another daemon leads");
        daemon_ask("supervisor.info", "");
    }
    (void)is_last(n, 5);
}

static void rewound(int n)
{
    dw.rewound = n == 1 ? (struct journal_rewound){40, 47} : (struct journal_rewound){0, 0};
    (void)is_last(n, 3);
}

static void wedged(int n)
{
    dw.canary_age = n == 2 ? 2999 : n >= 3 ? 3000 : 0;
    (void)is_last(n, 40);
}

static void wedged_but_it_moves(int n)
{
    dw.canary_age = n >= 2 && n < 12 ? 3000 : 0;
    dw.reaper_ns = (uint64_t)n;
    (void)is_last(n, 14);
}

static void wedged_without_a_processor(int n)
{
    dw.canary_age = n >= 2 ? 3000 : 0;
    dw.waited_ms = (uint64_t)n * 1000;
    (void)is_last(n, 14);
}

/* ---- a shard ---- */

#define FLEET "fleet: {url: \"postgresql://db/baton\", node: one, leaseMs: 4000}\n"

static int agents_lock = -1;

static void agents_taken(void)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/agents.lock", rig.dir);
    agents_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    MUST(agents_lock >= 0 && flock(agents_lock, LOCK_EX) == 0);
}

static void agents_are_left(int n)
{
    if (n == 3) {
        registers("0190F3C2-7A1B-7C3D-9E4F-000000000001");
    } else if (n == 5) {
        daemon_note("- the shard with the agents ends");
        MUST(close(agents_lock) == 0);
    }
    (void)is_last(n, 9);
}

/* It looks for them no more, or not yet, and does not wake for that. */
static void agents_are_not_looked_for(int n)
{
    (void)is_last(n, 4);
}

static void full_and_taken(void)
{
    agents_taken();
    no_room();
}

static const struct daemon_case cases[] = {
    {.starts = true,
     .title = "A start, a cycle and an end: every call.",
     .yaml = AGENT,
     .cycles = true,
     .waits = true},
    {.starts = true,
     .title = "Requests are served when somebody is told so.",
     .args = "--ready-fd 9",
     .before = with_ready,
     .at = ready_is_told},
    {.starts = true,
     .title = "Users that may connect, and those that may follow.",
     .yaml = "allowUids: [1234, 1235]\n" AGENT},
    {.starts = true,
     .title = "For other hosts transport threads are many.",
     .yaml = "listen: {remote: \"tls+tcp://127.0.0.1:0\", cert: /etc/hosts, ca: /etc/hosts}\nauth: "
             "required\n"},
    {.starts = true, .title = "Durability.", .args = "--durability process"},
    {.title = "Without a standard input it is the same.", .yaml = AGENT, .before = without_input},
    {.starts = true, .title = "A journal of another configuration.", .before = foreign},
    {.starts = true, .title = "A standby that is stopped.", .before = standby_stops},
    {.starts = true,
     .title = "A disk that is full at the start: it recovers when there is room.",
     .yaml = AGENT,
     .before = no_room,
     .at = room_comes,
     .waits = true},
    {.title = "A recovery that fails when there is room.",
     .yaml = AGENT,
     .before = no_room,
     .at = room_comes,
     .fails = "engine_recover",
     .with = BT_IO},
    {.title = "Agents that cannot be started when there is room.",
     .yaml = AGENT,
     .before = no_room,
     .at = room_comes,
     .fails = "processes_start"},
    {.starts = true,
     .title = "After a commit without room five seconds pass.",
     .yaml = AGENT,
     .full = "full",
     .at = waits_for_five_seconds,
     .waits = true},
    {.title = "SIGHUP is no stop, SIGINT is.", .at = hup_then_int},
    {.title = "Stray signals end nothing.", .at = strays, .waits = true},
    {.lives = true,
     .title = "A stop waits for a process.",
     .yaml = AGENT,
     .at = process_lives,
     .waits = true},
    {.lives = true,
     .title = "A second signal does not wait, SIGHUP is none.",
     .yaml = AGENT,
     .at = second_signal,
     .waits = true},
    {.title = "A drain that is asked for is one stop, with the first grace.", .at = drain_twice},
    {.title = "A drain without a grace has that of the configuration.",
     .yaml = "policy: {shutdownGraceMs: 1234}\n",
     .at = drain_with_the_usual_grace},
    {.title = "A group that may not give up.", .at = group_gave_up},
    {.lives = true,
     .title = "A group that gives up in a stop changes nothing.",
     .yaml = AGENT,
     .at = group_gave_up_in_a_stop},
    {.title = "What it is told while the journal waits.", .at = told_while_it_waits},
    {.lives = true, .title = "Processes that register.", .yaml = AGENT, .at = agent_comes},
    {.title = "A plan, its end and its deletion.", .yaml = AGENT, .at = a_plan_ends},
    {.title = "A job is no plan.", .yaml = AGENT, .at = a_job_ends},
    {.title = "256 events are a cycle.", .at = many_requests},
    {.title = "8 MiB are a cycle.", .at = eight_mib},
    {.title = "50 ms are a cycle.", .at = slow_requests},
    {.title = "Nothing is taken while answers wait.", .at = answers_are_full},
    {.title = "It waits until the first deadline.", .at = deadlines, .waits = true},
    {.title = "It does not wait while it is behind.", .at = behind, .waits = true},
    {.title = "It is late: that is nobody's silence.", .at = late},
    {.lives = true,
     .title = "On a full disk processes wait.",
     .yaml = AGENT,
     .at = stalled,
     .waits = true},
    {.lives = true,
     .title = "On a full disk a stop goes on.",
     .yaml = AGENT,
     .at = stalled_in_a_stop,
     .waits = true},
    {.title = "A disk that is full at the end.", .at = room_goes_at_the_end},
    {.title = "Addresses that cannot be removed.", .fails = "state_endpoints_remove"},
    {.title = "A commit fails.", .fails = "engine_end", .fails_at = 3, .with = BT_IO},
    {.title = "A commit has no room.",
     .fails = "engine_end",
     .fails_at = 3,
     .with = BT_UNAVAILABLE},
    {.title = "Retention fails.", .fails = "retention_cycle", .with = BT_IO},
    {.title = "The record of a stop fails.",
     .fails = "engine_system_record",
     .fails_at = 2,
     .with = BT_IO},
    {.title = "Another daemon leads.", .at = other_owner, .cycles = true},
    {.title = "History that was lost is told.", .at = rewound},
    {.title = "It cannot be told.", .at = rewound, .fails = "engine_write_record", .with = BT_IO},
    {.title = "Nobody knows that it was told.", .at = rewound, .fails = "journal_rewound_told"},
    {.title = "The transport is stuck.", .at = wedged, .waits = true},
    {.title = "A transport that moves is not.", .at = wedged_but_it_moves},
    {.title = "Without a processor it may be late.", .at = wedged_without_a_processor},
    {.starts = true,
     .title = "A shard without the agents of its node, and then with them.",
     .yaml = FLEET AGENT,
     .before = agents_taken,
     .at = agents_are_left,
     .args = "--state DIR/shards/1 --shard 1/2",
     .waits = true},
    {.title = "A shard that has the agents at once.",
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "A shard whose agents cannot be started ends; its node starts it again.",
     .before = agents_taken,
     .at = agents_are_left,
     .fails = "processes_start",
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "A spawner that cannot be reached ends it, too.",
     .before = agents_taken,
     .at = agents_are_left,
     .fails = "spawn_awake",
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "And one that does not answer.",
     .before = agents_taken,
     .at = agents_are_left,
     .fails = "spawn_greet",
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "A shard that stops looks for no agents.",
     .before = agents_taken,
     .at = agents_are_not_looked_for,
     .waits = true,
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "Nor does one that has not recovered.",
     .before = full_and_taken,
     .at = agents_are_not_looked_for,
     .waits = true,
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "The spawner of a shard cannot be made.",
     .fails = "spawn_new",
     .yaml = FLEET AGENT,
     .args = "--state DIR/shards/1 --shard 1/2"},
    {.title = "A server that is away at the start.",
     .yaml = FLEET,
     .args = "--shard 0/1",
     .fails = "standby_open",
     .with = BT_IO},
    {.title = "Another daemon has the directory.", .fails = "standby_open", .with = BT_CONFLICT},
    {.title = "A conflict of another room.", .fails = "engine_new", .with = BT_CONFLICT},
    {.title = "An error of the disk is no lost server.", .fails = "engine_new", .with = BT_IO},
};

/* Every call of a start that may fail. */
static const char *const starts[] = {"signalfd",
                                     "signals_open",
                                     "standby_open",
                                     "spawn_begin",
                                     "link_new",
                                     "audit_open",
                                     "sessions_new",
                                     "auth_store_new",
                                     "engine_new",
                                     "roster_new",
                                     "calloc of the roster",
                                     "processes_open",
                                     "dispatch_new",
                                     "api_new",
                                     "sweep_new",
                                     "retention_new",
                                     "schedules_new",
                                     "link_canary_start",
                                     "engine_recover",
                                     "schedules_load",
                                     "reload_schedules",
                                     "engine_system_record",
                                     "engine_end",
                                     "spawn_greet",
                                     "state_endpoints_write",
                                     "processes_start",
                                     "calloc of the daemon"};

static void test_what_a_daemon_does_is_told(void **state)
{
    char *was = golden_read(TOLD);
    struct buf out;

    (void)state;
    buf_init(&out, GOLDEN_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        daemon_tell(&cases[i], &out);
    }
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        char title[128];
        const struct daemon_case is = {.title = title, .yaml = AGENT, .fails = starts[i]};
        (void)snprintf(title, sizeof title, "A start, and %s fails.", starts[i]);
        daemon_tell(&is, &out);
    }
    assert_int_equal(buf_check(&out, NULL), BT_OK);
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_daemon_does_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
