/* What a spec of an agent process may be, what its process gets, and who is adopted. */
#include "tests/unit/spawn/spawn_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PID = 4711, START_BYTES_MAX = 60 * 1024 };

static int set_up(void **state)
{
    assert_int_equal(setenv("PATH", "/usr/bin", 1), 0);
    assert_int_equal(setenv("HOME", "/srv/me", 1), 0);
    assert_int_equal(unsetenv("LANG"), 0);
    assert_int_equal(setenv("SPAWN_TEST_OWN", "mine", 1), 0);
    return rig_open(state);
}

/* The entries of a list, joined by spaces. */
static const char *joined(char *const *list)
{
    static char text[4096];
    size_t n = 0;

    text[0] = 0;
    for (size_t i = 0; list[i] != NULL; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? " " : "", list[i]);
    }
    return text;
}

static void a_process_gets_what_its_spec_says_and_no_more(void **state)
{
    static const char *const argv[] = {"agent", "--x", "y z", NULL};
    static const char *const env[] = {"A=1", "SPAWN_TEST_OWN", "SPAWN_TEST_NONE", NULL};
    static const char *const handover[] = {"secret:K=v", NULL};
    static const char *const apart[] = {"seccomp=on", NULL};
    const struct spawn_options opt = {.path_first = "/opt/baton/bin", .shards = 3};
    struct spawn_spec spec = rig_spec("calc#1");
    char want[1024];

    (void)state;
    spec.agent_id = "calc";
    spec.argv = argv;
    spec.env = env;
    spec.settings = "{\"a\":1}";
    spec.capacity = 4;
    spec.cwd = "/tmp";
    spec.nofile = 99;
    spec.memory_bytes = 1 << 20;
    spec.log_bytes = 2000;
    spec.log_files = 3;
    spec.handover = handover;
    spec.apart = apart;
    rig_begin(&opt, NULL, 0);
    rig_set(&spec, 1);
    rig_started("calc#1");
    assert_string_equal(joined(rig.got.argv), "agent --x y z");
    (void)snprintf(want, sizeof want,
                   "BATON_INSTANCE_ID=%s PATH=/opt/baton/bin:/usr/bin HOME=/srv/me BATON_STATE=%s "
                   "BATON_AGENT_ID=calc BATON_SETTINGS={\"a\":1} BATON_CAPACITY=4 BATON_SHARDS=3 "
                   "A=1 SPAWN_TEST_OWN=mine",
                   rig.instance, rig.dir);
    assert_string_equal(joined(rig.got.env), want);
    assert_string_equal(joined(rig.got.handover), "secret:K=v");
    assert_string_equal(joined(rig.got.apart), "seccomp=on");
    assert_string_equal(rig.got.text, "/tmp");
    assert_int_equal(rig.got.nofile, 99);
    assert_int_equal(rig.got.memory_bytes, 1 << 20);
    assert_int_equal(rig.got.log_bytes, 2000);
    assert_int_equal(rig.got.log_files, 3);
}

static void what_a_spec_leaves_out_is_not_there(void **state)
{
    static const char *const env[] = {"PATH=/mine", "HOME", NULL};
    struct spawn_spec specs[] = {rig_spec("a#1"), rig_spec("b#1")};
    char want[1024];

    (void)state;
    specs[1].env = env; /* a spec's own wins over what is inherited */
    assert_int_equal(unsetenv("PATH"), 0);
    assert_int_equal(setenv("LANG", "C", 1), 0);
    rig_begin(&(struct spawn_options){.shards = 1}, NULL, 0);
    rig_set(specs, 2);
    rig_started("a#1");
    (void)snprintf(want, sizeof want,
                   "BATON_INSTANCE_ID=%s PATH=/usr/bin:/bin HOME=/srv/me LANG=C BATON_STATE=%s "
                   "BATON_AGENT_ID=agent",
                   rig.instance, rig.dir);
    assert_string_equal(joined(rig.got.env), want);
    assert_string_equal(rig.got.text, "");
    assert_int_equal(rig.got.nofile + rig.got.memory_bytes + rig.got.log_bytes, 0);
    assert_null(rig.got.handover[0]);
    assert_null(rig.got.apart[0]);
    rig_started("b#1");
    (void)snprintf(want, sizeof want,
                   "BATON_INSTANCE_ID=%s LANG=C BATON_STATE=%s BATON_AGENT_ID=agent PATH=/mine "
                   "HOME=/srv/me",
                   rig.instance, rig.dir);
    assert_string_equal(joined(rig.got.env), want);
}

static bool proves;
static bool prove(void *self, struct str instance_id, struct str agent_id,
                  char ret_id[SPAWN_CREDENTIAL_BYTES], char ret_key[SPAWN_CREDENTIAL_BYTES])
{
    assert_ptr_equal(self, &proves);
    assert_true(instance_id.len == UUID_TEXT_LEN || instance_id.len == 0); /* 0: how long it is */
    assert_true(str_is(agent_id, "agent"));
    (void)snprintf(ret_id, SPAWN_CREDENTIAL_BYTES, "me");
    (void)snprintf(ret_key, SPAWN_CREDENTIAL_BYTES, "00ff");
    return proves;
}

/* It cannot read the state directory: it is told what it would find there. */
static void who_is_shut_out_is_told_where_the_supervisor_is(void **state)
{
    static const char *const user[] = {"user=1000", NULL};
    static const char *const paths[] = {"paths=/tmp", "network=none", NULL};
    static const char *const network[] = {"network=none", NULL};
    static const char *const shards[] = {"tcp://127.0.0.1:7001", "", "tcp://127.0.0.1:7003"};
    const struct spawn_prover prover = {.self = &proves, .prove = prove};
    struct spawn_spec specs[] = {rig_spec("a#1"), rig_spec("b#1"), rig_spec("c#1"),
                                 rig_spec("d#1")};

    (void)state;
    specs[0].apart = user;
    specs[1].apart = paths;
    specs[1].cwd = "/tmp";
    specs[2].apart = network;
    rig_begin(&(struct spawn_options){.shards = 3}, NULL, 0);
    assert_int_equal(spawn_introduce(rig.s, "tcp://127.0.0.1:7000", shards, &prover, &rig.err),
                     BT_OK);
    proves = true;
    rig_set(specs, 1);
    rig_started("a#1");
    assert_string_equal(joined(rig.got.handover),
                        "control=tcp://127.0.0.1:7000 control:0=tcp://127.0.0.1:7001 "
                        "control:2=tcp://127.0.0.1:7003 credential=me key=00ff");
    assert_string_equal(joined(rig.got.apart), "user=1000");
    assert_string_equal(rig.got.text, "/");
    proves = false;
    for (size_t i = 1; i < 4; i++) {
        enum spawn_put put;
        assert_int_equal(spawn_put(rig.s, &specs[i], rig.now, &put, &rig.err), BT_OK);
        assert_int_equal(put, SPAWN_PUT_ADDED);
    }
    rig_started("b#1");
    assert_string_equal(joined(rig.got.handover),
                        "control=tcp://127.0.0.1:7000 control:0=tcp://127.0.0.1:7001 "
                        "control:2=tcp://127.0.0.1:7003");
    assert_string_equal(joined(rig.got.apart),
                        "paths=/tmp network=none port=7000 port=7001 port=7003");
    assert_string_equal(rig.got.text, "/tmp");
    rig_started("c#1");
    assert_string_equal(joined(rig.got.handover), "");
    assert_string_equal(joined(rig.got.apart), "network=none port=7000 port=7001 port=7003");
    rig_started("d#1");
    assert_string_equal(joined(rig.got.apart), "");
}

/* ---- what is refused ---- */

static void refused(const struct spawn_spec *spec, enum bt_code code, const char *words)
{
    enum spawn_put put;

    assert_int_equal(spawn_put(rig.s, spec, rig.now, &put, &rig.err), code);
    if (code != BT_OK && strstr(rig.err.msg, words) == NULL) {
        fail_msg("'%s' does not say '%s'", rig.err.msg, words);
    }
}

static void names_are_of_1_to_80_safe_characters(void **state)
{
    static const char *const bad[] = {"", ".a", "a/b", "a b", "a\xC3\xA4", "a=b", "../a"};
    static const char *const good[] = {"a", "0", "_", "#", "-", "a.b", "Z#9"};
    char longest[SPAWN_NAME_MAX + 2];
    struct spawn_spec spec = rig_spec(NULL);

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(NULL, 0);
    refused(&spec, BT_INVALID, "a name is 1 to 80 of A-Z a-z 0-9 . _ # -");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spec.name = bad[i];
        refused(&spec, BT_INVALID, "a name is 1 to 80");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        spec.name = good[i];
        refused(&spec, BT_OK, "");
    }
    memset(longest, 'n', sizeof longest);
    longest[SPAWN_NAME_MAX + 1] = 0;
    spec.name = longest;
    refused(&spec, BT_INVALID, "a name is 1 to 80");
    longest[SPAWN_NAME_MAX] = 0;
    refused(&spec, BT_OK, "");
}

static void an_agent_id_has_1_to_64_bytes_and_a_command_a_word(void **state)
{
    static const char *const nothing[] = {NULL};
    static const char *const empty[] = {"", "x", NULL};
    char longest[LIMIT_ID_BYTES + 2];
    struct spawn_spec spec = rig_spec("a#1");

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(NULL, 0);
    spec.agent_id = NULL;
    refused(&spec, BT_INVALID, "the agent id must be 1 to 64 bytes");
    spec.agent_id = "";
    refused(&spec, BT_INVALID, "the agent id must be 1 to 64 bytes");
    memset(longest, 'n', sizeof longest);
    longest[LIMIT_ID_BYTES + 1] = 0;
    spec.agent_id = longest;
    refused(&spec, BT_INVALID, "the agent id must be 1 to 64 bytes");
    longest[LIMIT_ID_BYTES] = 0;
    refused(&spec, BT_OK, "");
    spec = rig_spec("b#1");
    spec.argv = nothing;
    refused(&spec, BT_INVALID, "agent process 'b#1': the command is empty");
    spec.argv = NULL;
    refused(&spec, BT_INVALID, "the command is empty");
    spec.argv = empty;
    refused(&spec, BT_INVALID, "the command is empty");
    spec = rig_spec("b#1");
    spec.group = "none";
    refused(&spec, BT_INVALID, "there is no group 'none'");
}

static void variables_of_baton_are_its_own(void **state)
{
    static const char *const names[] = {"BATON_STATE",    "BATON_INSTANCE_ID", "BATON_AGENT_ID",
                                        "BATON_SETTINGS", "BATON_CAPACITY",    "BATON_SPAWNED",
                                        "BATON_HANDOVER", "BATON_HIDE",        "BATON_SHARDS"};
    struct spawn_spec spec = rig_spec("a#1");
    char entry[64];
    const char *env[] = {"A=1", entry, NULL};

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(NULL, 0);
    spec.env = env;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(entry, sizeof entry, "%s=x", names[i]);
        refused(&spec, BT_INVALID, "is set by Baton itself");
        assert_non_null(strstr(rig.err.msg, names[i]));
        (void)snprintf(entry, sizeof entry, "%s", names[i]);
        refused(&spec, BT_INVALID, "is set by Baton itself");
    }
    (void)snprintf(entry, sizeof entry, "BATON_STATE_OF=x"); /* another name */
    refused(&spec, BT_OK, "");
}

static void a_process_has_512_arguments_and_some_499_variables(void **state)
{
    static const char *list[PACKET_LIST_MAX + 2];
    struct spawn_spec spec = rig_spec("a#1");
    const size_t most = PACKET_LIST_MAX - 3 - 9 - 1; /* beside what it inherits, and Baton's own */

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(NULL, 0);
    for (size_t i = 0; i <= PACKET_LIST_MAX; i++) {
        list[i] = "A=1";
    }
    spec.argv = list;
    refused(&spec, BT_LIMIT, "more than 502 arguments or variables");
    list[PACKET_LIST_MAX] = NULL;
    refused(&spec, BT_OK, "");
    spec = rig_spec("b#1");
    spec.env = list;
    list[most + 1] = NULL;
    refused(&spec, BT_LIMIT, "more than 502 arguments or variables");
    list[most] = NULL;
    refused(&spec, BT_OK, "");
}

static void what_a_process_gets_has_60_kib_at_most(void **state)
{
    static char settings[START_BYTES_MAX + 1];
    struct spawn_spec spec = rig_spec("a#1");
    struct buf out;
    size_t most;

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(NULL, 0);
    memset(settings, 'x', sizeof settings - 1);
    spec.settings = settings;
    refused(&spec, BT_LIMIT, "arguments, variables and settings must fit in 61440 bytes");
    settings[1] = 0;
    refused(&spec, BT_OK, "");
    /* The packet says how much room there is; the instance is not counted. */
    buf_init(&out, PACKET_BYTES);
    rig_started("a#1");
    packet_encode(&rig.got, &out);
    most = START_BYTES_MAX + 1 - (out.len - UUID_TEXT_LEN - strlen(rig.got.env[0]));
    buf_done(&out);
    settings[1] = 'x';
    settings[most] = 0;
    spec.name = "a#2";
    refused(&spec, BT_OK, "");
    settings[most] = 'x';
    settings[most + 1] = 0;
    spec.name = "a#3";
    refused(&spec, BT_LIMIT, "must fit in 61440 bytes");
}

static void children_are_set_once_and_each_name_once(void **state)
{
    const struct spawn_spec twice[] = {rig_spec("a#1"), rig_spec("b#1"), rig_spec("a#1")};

    (void)state;
    rig_begin(NULL, NULL, 0);
    assert_int_equal(spawn_set_children(rig.s, twice, 3, rig.now, &rig.err), BT_INVALID);
    assert_string_equal(rig.err.msg, "agent process 'a#1': the name is there twice");
    assert_int_equal(spawn_count(rig.s), 0);
    rig_no_order();
    rig_set(twice, 2);
    assert_int_equal(spawn_count(rig.s), 2);
    assert_int_equal(spawn_set_children(rig.s, twice, 2, rig.now, &rig.err), BT_CONFLICT);
    assert_int_equal(spawn_index(rig.s, STR_LIT("b#1")), 1);
    assert_int_equal(spawn_index(rig.s, STR_LIT("c#1")), 2);
}

static void there_are_1024_processes_and_no_more(void **state)
{
    static struct spawn_spec specs[LIMIT_PROCESSES + 1];
    static char names[LIMIT_PROCESSES + 1][16];
    enum spawn_put put;

    (void)state;
    for (size_t i = 0; i <= LIMIT_PROCESSES; i++) {
        (void)snprintf(names[i], sizeof names[i], "a#%zu", i);
        specs[i] = rig_spec(names[i]);
    }
    rig_begin(NULL, NULL, 0);
    assert_int_equal(spawn_set_children(rig.s, specs, LIMIT_PROCESSES + 1, rig.now, &rig.err),
                     BT_LIMIT);
    assert_string_equal(rig.err.msg, "1025 agent processes: at most 1024");
    rig_set(specs, LIMIT_PROCESSES);
    assert_int_equal(spawn_put(rig.s, &specs[LIMIT_PROCESSES], rig.now, &put, &rig.err), BT_LIMIT);
    assert_string_equal(rig.err.msg, "agent process 'a#1024': there are 1024 already");
    assert_int_equal(spawn_count(rig.s), LIMIT_PROCESSES);
}

/* ---- adoption ---- */

#define FIRST "01900000-0000-7000-8000-000000000001"
#define SECOND "01900000-0000-7000-8000-000000000002"

static void a_living_process_of_the_same_spec_is_adopted_and_others_are_killed(void **state)
{
    struct spawn_spec specs[] = {rig_spec("a#1"), rig_spec("b#1")};
    struct rig_child found[] = {{FIRST, "a#1", PID, 0}, {SECOND, "b#1", PID + 1, 7}};
    struct spawn_info info;
    uint32_t before;

    (void)state;
    specs[0].env = (const char *const[]){"BATON_X=1", NULL};
    specs[0].cwd = "/tmp";
    rig_begin(NULL, NULL, 0);
    rig_set(specs, 1);
    rig_started("a#1");
    found[0].hash = rig.got.hash;
    spawn_abandon(rig.s);
    (void)close(rig.conn);
    /* PATH, HOME and LANG are the terminal's; the state directory is the same */
    assert_int_equal(setenv("PATH", "/other", 1), 0);
    assert_int_equal(setenv("HOME", "/other", 1), 0);
    assert_int_equal(setenv("LANG", "C", 1), 0);
    rig_begin(NULL, found, 2);
    before = spawn_changes(rig.s);
    rig_set(specs, 2);
    assert_true(spawn_changes(rig.s) > before);
    rig_event(SPAWN_ADOPTED, "a#1");
    assert_int_equal(rig.ev.pid, PID);
    assert_string_equal(rig.ev.instance_id, FIRST);
    assert_int_equal(rig.ev.restarts, 0);
    rig_ordered(PACKET_KILL_TREE);
    assert_string_equal(rig.got.instance, SECOND);
    rig_started("b#1"); /* its spec is another one */
    rig_no_order();
    spawn_describe(rig.s, 0, &info);
    assert_int_equal(info.pid, PID);
    assert_int_equal(info.state, POLICY_STARTING);
    assert_string_equal(info.name, "a#1");
    assert_string_equal(info.agent_id, "agent");
    assert_null(info.group);
    assert_true(spawn_registered(rig.s, STR_LIT(FIRST), rig.now));
    rig_event(SPAWN_UP, "a#1");
    rig_ordered(PACKET_REGISTERED);
    rig_report(PACKET_EXITED, SECOND, PID + 1, 9, "");
    rig_no_event(); /* nobody's */
}

static void each_part_of_a_spec_makes_it_another_one(void **state)
{
    static const char *const argv[] = {"/bin/agent", "--other", NULL};
    static const char *const env[] = {"A=1", NULL};
    static const char *const path[] = {"PATH=/x", NULL};
    static const char *const list[] = {"seccomp=on", NULL};
    struct spawn_spec base = rig_spec("a#1");
    struct spawn_spec others[9];

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        others[i] = base;
    }
    others[0].argv = argv;
    others[1].env = env;
    others[2].env = path;
    others[3].settings = "{}";
    others[4].capacity = 2;
    others[5].cwd = "/tmp";
    others[6].nofile = 100;
    others[7].memory_bytes = 100;
    others[8].apart = list;
    rig_begin(NULL, NULL, 0);
    rig_set(NULL, 0);
    for (size_t i = 0; i < 10; i++) {
        enum spawn_put put = SPAWN_PUT_ADDED;
        assert_int_equal(spawn_put(rig.s, i == 0 ? &base : &others[i - 1], rig.now, &put, &rig.err),
                         BT_OK);
        assert_int_equal(put, i == 0 ? SPAWN_PUT_ADDED : SPAWN_PUT_STALE);
        if (i == 0) {
            rig_started("a#1");
            rig_report(PACKET_STARTED, rig.instance, PID, 0, "");
        }
    }
    for (size_t i = 0; i < 9; i++) { /* each differs from the one before it, and from the first */
        enum spawn_put put;
        assert_int_equal(spawn_put(rig.s, &base, rig.now, &put, &rig.err), BT_OK);
        assert_int_equal(put, SPAWN_PUT_STALE);
        assert_int_equal(spawn_put(rig.s, &base, rig.now, &put, &rig.err), BT_OK);
        assert_int_equal(put, SPAWN_PUT_SAME);
        assert_int_equal(spawn_put(rig.s, &others[i], rig.now, &put, &rig.err), BT_OK);
        assert_int_equal(put, SPAWN_PUT_STALE);
    }
}

/* The hash of a spec that is shut out, of a daemon with so many shards at this address. */
static uint64_t hash_at(uint32_t shards, const char *control)
{
    static const char *const apart[] = {"user=1000", "network=none", NULL};
    static const char *const urls[] = {"tcp://127.0.0.1:7001", "tcp://127.0.0.1:7002"};
    struct spawn_spec spec = rig_spec("a#1");
    uint64_t hash;

    spec.apart = apart;
    rig_begin(&(struct spawn_options){.shards = shards}, NULL, 0);
    assert_int_equal(spawn_introduce(rig.s, control, shards > 1 ? urls : NULL,
                                     &(struct spawn_prover){.self = NULL}, &rig.err),
                     BT_OK);
    rig_set(&spec, 1);
    rig_started("a#1");
    hash = rig.got.hash;
    spawn_abandon(rig.s);
    rig.s = NULL;
    (void)close(rig.conn);
    rig.conn = -1;
    return hash;
}

/* The agents of a node are found by the next one, which has another address of its own. */
static void the_address_of_one_of_several_shards_makes_no_other_spec(void **state)
{
    (void)state;
    assert_true(hash_at(2, "tcp://127.0.0.1:7100") == hash_at(2, "tcp://127.0.0.1:7200"));
    assert_true(hash_at(1, "tcp://127.0.0.1:7100") != hash_at(1, "tcp://127.0.0.1:7200"));
}

/* ---- changes while it runs ---- */

static void settings_count_at_once_and_another_spec_from_the_next_process_on(void **state)
{
    struct spawn_spec spec = rig_spec("a#1");
    struct spawn_info info;
    enum spawn_put put;

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    rig_up("a#1", PID);
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    assert_int_equal(put, SPAWN_PUT_SAME);
    spec.policy.grace_ms = 70;
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    assert_int_equal(put, SPAWN_PUT_SETTINGS);
    spec.log_files = 7;
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    assert_int_equal(put, SPAWN_PUT_SETTINGS);
    spec.capacity = 9;
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    assert_int_equal(put, SPAWN_PUT_STALE);
    spawn_describe(rig.s, 0, &info);
    assert_true(info.stale);
    rig_no_order(); /* the one that runs stays */
    assert_int_equal(spawn_stop_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_ordered(PACKET_SIGNAL);
    rig_pass(70);
    rig_ordered(PACKET_KILL_TREE);
    rig_report(PACKET_EXITED, rig.instance, PID, 9, "");
    rig_event(SPAWN_EXITED, "a#1");
    spec.capacity = 10; /* parked: an operator stopped it */
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    rig_no_order();
    assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_started("a#1");
    assert_non_null(strstr(joined(rig.got.env), "BATON_CAPACITY=10"));
    assert_int_equal(rig.got.log_files, 7);
    spawn_describe(rig.s, 0, &info);
    assert_false(info.stale);
}

static void a_child_that_failed_is_tried_again_with_another_spec(void **state)
{
    struct spawn_spec spec = rig_spec("a#1");
    enum spawn_put put;

    (void)state;
    spec.policy.intensity = 1;
    rig_begin(NULL, NULL, 0);
    rig_set(&spec, 1);
    rig_started("a#1");
    rig_report(PACKET_START_FAILED, rig.instance, 0, 0, "no such program");
    rig_event(SPAWN_EXITED, "a#1");
    rig_event(SPAWN_GAVE_UP, "a#1");
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    rig_no_order();
    spec.cwd = "/tmp";
    assert_int_equal(spawn_put(rig.s, &spec, rig.now, &put, &rig.err), BT_OK);
    rig_started("a#1");
}

static void a_child_that_is_removed_stops_and_is_forgotten_then(void **state)
{
    const struct spawn_spec specs[] = {rig_spec("a#1"), rig_spec("b#1")};
    char first[UUID_TEXT_LEN + 1];
    enum spawn_put put;

    (void)state;
    rig_begin(NULL, NULL, 0);
    rig_set(specs, 2);
    rig_started("a#1");
    (void)snprintf(first, sizeof first, "%s", rig.instance);
    rig_started("b#1");
    assert_int_equal(spawn_remove_child(rig.s, STR_LIT("none"), rig.now, &rig.err), BT_NOT_FOUND);
    assert_int_equal(spawn_remove_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_ordered(PACKET_SIGNAL);
    assert_int_equal(spawn_count(rig.s), 2);
    rig_report(PACKET_EXITED, first, PID, 0, "");
    rig_event(SPAWN_EXITED, "a#1");
    assert_int_equal(spawn_count(rig.s), 1);
    assert_int_equal(spawn_index(rig.s, STR_LIT("b#1")), 0);
    /* one that comes back while it stops is not forgotten */
    assert_int_equal(spawn_remove_child(rig.s, STR_LIT("b#1"), rig.now, &rig.err), BT_OK);
    rig_ordered(PACKET_SIGNAL);
    assert_int_equal(spawn_put(rig.s, &specs[1], rig.now, &put, &rig.err), BT_OK);
    rig_report(PACKET_EXITED, rig.instance, PID, 0, "");
    assert_int_equal(spawn_count(rig.s), 1);
    rig_started("b#1");
}

/* ---- groups ---- */

static void members_of_a_group_start_one_after_the_other_and_stop_the_other_way(void **state)
{
    const struct spawn_group_spec group = {.name = "g",
                                           .set = {.intensity = 2,
                                                   .period_ms = 30000,
                                                   .backoff_min_ms = 100,
                                                   .backoff_max_ms = 5000,
                                                   .stable_ms = 30000}};
    struct spawn_spec specs[] = {rig_spec("b#1"), rig_spec("a#1"), rig_spec("a#10"),
                                 rig_spec("a#9")};
    static const char *const order[] = {"a#1", "a#9", "a#10", "b#1"};
    char instances[4][UUID_TEXT_LEN + 1];
    struct spawn_info info;

    (void)state;
    rig_begin(NULL, NULL, 0);
    assert_int_equal(spawn_set_groups(rig.s, &group, 1, &rig.err), BT_OK);
    for (size_t i = 0; i < 4; i++) {
        specs[i].group = "g";
        specs[i].place = i == 0 ? 2 : 1;
    }
    rig_set(specs, 4);
    for (size_t i = 0; i < 4; i++) {
        rig_started(order[i]);
        rig_no_order();
        (void)snprintf(instances[i], sizeof instances[i], "%s", rig.instance);
        rig_report(PACKET_STARTED, rig.instance, PID, 0, "");
        rig_no_order();
        assert_true(spawn_registered(rig.s, str_from(rig.instance), rig.now));
        rig_ordered(PACKET_REGISTERED);
    }
    spawn_describe(rig.s, 0, &info);
    assert_string_equal(info.group, "g");
    spawn_stop_all(rig.s, 0, rig.now);
    for (size_t i = 4; i-- > 0;) {
        rig_ordered(PACKET_SIGNAL);
        assert_string_equal(rig.got.instance, instances[i]);
        rig_no_order();
        rig_report(PACKET_EXITED, instances[i], PID, 0, "");
    }
    assert_true(spawn_is_idle(rig.s));
}

static void a_supervisor_has_64_groups_and_a_group_that_is_gone_lets_its_members_go(void **state)
{
    static struct spawn_group_spec groups[SPAWN_GROUPS_MAX + 1];
    static char names[SPAWN_GROUPS_MAX + 1][16];
    struct spawn_spec spec = rig_spec("a#1");
    struct spawn_info info;

    (void)state;
    for (size_t i = 0; i <= SPAWN_GROUPS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "g%zu", i);
        groups[i] = (struct spawn_group_spec){.name = names[i], .set = {.intensity = 1}};
    }
    rig_begin(NULL, NULL, 0);
    assert_int_equal(spawn_set_groups(rig.s, groups, SPAWN_GROUPS_MAX, &rig.err), BT_OK);
    assert_int_equal(spawn_set_groups(rig.s, groups, SPAWN_GROUPS_MAX + 1, &rig.err), BT_LIMIT);
    assert_string_equal(rig.err.msg, "more than 64 groups of agents");
    spec.group = "g63";
    rig_set(&spec, 1);
    rig_up("a#1", PID);
    spawn_describe(rig.s, 0, &info);
    assert_string_equal(info.group, "g63");
    assert_int_equal(spawn_set_groups(rig.s, groups, 3, &rig.err), BT_OK);
    spawn_describe(rig.s, 0, &info);
    assert_null(info.group);
    rig_report(PACKET_EXITED, rig.instance, PID, 3 << 8, "");
    rig_event(SPAWN_EXITED, "a#1");
    rig_pass(100); /* by its own rule */
    rig_started("a#1");
}

static void a_group_that_gives_up_says_so_for_all_its_members(void **state)
{
    const struct spawn_group_spec group = {.name = "g",
                                           .set = {.intensity = 1, .period_ms = 30000}};
    struct spawn_spec specs[] = {rig_spec("a#1"), rig_spec("b#1")};
    struct spawn_info info;

    (void)state;
    specs[0].group = specs[1].group = "g";
    rig_begin(NULL, NULL, 0);
    assert_int_equal(spawn_set_groups(rig.s, &group, 1, &rig.err), BT_OK);
    rig_set(specs, 2);
    rig_started("a#1");
    rig_report(PACKET_EXITED, rig.instance, PID, 3 << 8, "");
    rig_event(SPAWN_EXITED, "a#1");
    rig_event(SPAWN_GROUP_GAVE_UP, "g");
    assert_string_equal(rig.ev.reason, "the group g had 1 crashes within 30000 ms; the last: a#1: "
                                       "exit code 3");
    rig_event(SPAWN_GAVE_UP, "a#1");
    rig_event(SPAWN_GAVE_UP, "b#1");
    rig_no_event();
    for (size_t i = 0; i < 2; i++) {
        spawn_describe(rig.s, i, &info);
        assert_int_equal(info.state, POLICY_FAILED);
    }
    assert_int_equal(spawn_start_child(rig.s, STR_LIT("a#1"), rig.now, &rig.err), BT_OK);
    rig_started("a#1");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, rig_close)
    const struct CMUnitTest tests[] = {
        T(a_process_gets_what_its_spec_says_and_no_more),
        T(what_a_spec_leaves_out_is_not_there),
        T(who_is_shut_out_is_told_where_the_supervisor_is),
        T(names_are_of_1_to_80_safe_characters),
        T(an_agent_id_has_1_to_64_bytes_and_a_command_a_word),
        T(variables_of_baton_are_its_own),
        T(a_process_has_512_arguments_and_some_499_variables),
        T(what_a_process_gets_has_60_kib_at_most),
        T(children_are_set_once_and_each_name_once),
        T(there_are_1024_processes_and_no_more),
        T(a_living_process_of_the_same_spec_is_adopted_and_others_are_killed),
        T(each_part_of_a_spec_makes_it_another_one),
        T(the_address_of_one_of_several_shards_makes_no_other_spec),
        T(settings_count_at_once_and_another_spec_from_the_next_process_on),
        T(a_child_that_failed_is_tried_again_with_another_spec),
        T(a_child_that_is_removed_stops_and_is_forgotten_then),
        T(members_of_a_group_start_one_after_the_other_and_stop_the_other_way),
        T(a_supervisor_has_64_groups_and_a_group_that_is_gone_lets_its_members_go),
        T(a_group_that_gives_up_says_so_for_all_its_members),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
