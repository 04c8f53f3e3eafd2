/* An agent's program without a supervisor: arguments, settings, --card, --once. */
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/sdk/loop/program.h"
#include "agents/sdk/options.h"
#include "baton/agent.h"

static const char *const variables[] = {"BATON_AGENT_ID", "BATON_CREDENTIAL",  "BATON_SPAWNED",
                                        "BATON_CONNECT",  "BATON_CA",          "BATON_CERT",
                                        "BATON_CAPACITY", "BATON_INSTANCE_ID", "BATON_SETTINGS",
                                        "BATON_SHARDS",   "BATON_STATE",       "BATON_HANDOVER"};

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        (void)unsetenv(variables[i]);
    }
    return 0;
}

/* ---- arguments ---- */

static struct options opt;
static struct bt_error why;

/* Arguments separated by spaces. */
static enum bt_code reads(const char *line)
{
    static char text[9000];
    char *argv[24] = {NULL};
    int argc = 1;
    char *save = NULL;

    (void)snprintf(text, sizeof text, "%s", line);
    argv[0] = text;
    for (char *at = strtok_r(text, " ", &save); at != NULL; at = strtok_r(NULL, " ", &save)) {
        argv[argc++] = at;
    }
    why = (struct bt_error){.msg = ""};
    options_done(&opt);
    return options_read(&opt, argc, argv, &why);
}

static void expect_refused(const char *line, enum bt_code code, const char *words)
{
    if (reads(line) != code || strstr(why.msg, words) == NULL) {
        fail_msg("'%s': '%s'", line, why.msg);
    }
}

static int options_end(void **state)
{
    options_done(&opt);
    opt = (struct options){0};
    return clean(state);
}

static void without_arguments_it_runs_alone_and_listens_on_a_free_port(void **state)
{
    struct uuid first;

    (void)state;
    assert_int_equal(reads(""), BT_OK);
    first = opt.instance_id;
    assert_int_equal(opt.mode, OPTIONS_RUN);
    assert_string_equal(opt.listen, "tcp://127.0.0.1:0");
    assert_int_equal(opt.log_level, LOG_INFO);
    assert_true(opt.state == NULL && opt.agent_id == NULL && opt.credential == NULL &&
                opt.connect == NULL && opt.ca == NULL && opt.cert == NULL);
    assert_true(!opt.dial_in && !opt.spawned);
    assert_int_equal(opt.capacity + opt.shards + opt.seeds, 0);
    assert_string_equal(opt.process_id, "");
    assert_true(str_is(buf_str(&opt.settings_json), "{}"));
    assert_false(uuid_is_nil(first));
    assert_int_equal(reads(""), BT_OK);
    assert_false(uuid_eq(first, opt.instance_id)); /* each process is another one */
}

static void each_argument_has_its_place(void **state)
{
    (void)state;
    assert_int_equal(
        reads("--state /s --agent-id one --credential /c --listen tcp://127.0.0.1:9 --dial-in "
              "--instance-id 01900000-0000-7000-8000-000000000001 --capacity 3 --shards 2 "
              "--log-level debug"),
        BT_OK);
    assert_string_equal(opt.state, "/s");
    assert_string_equal(getenv("BATON_STATE"), "/s"); /* its programs look there too */
    assert_string_equal(opt.agent_id, "one");
    assert_string_equal(opt.credential, "/c");
    assert_string_equal(opt.listen, "tcp://127.0.0.1:9");
    assert_true(opt.dial_in);
    assert_int_equal(opt.capacity, 3);
    assert_int_equal(opt.shards, 2);
    assert_int_equal(opt.log_level, LOG_DEBUG);
    assert_int_equal(reads("--once work"), BT_OK);
    assert_int_equal(opt.mode, OPTIONS_ONCE);
    assert_string_equal(opt.once_skill, "work");
    assert_int_equal(reads("--help"), BT_OK);
    assert_int_equal(opt.mode, OPTIONS_HELP);
    assert_int_equal(reads("-h"), BT_OK);
    assert_int_equal(opt.mode, OPTIONS_HELP);
    assert_int_equal(reads("--version"), BT_OK);
    assert_int_equal(opt.mode, OPTIONS_VERSION);
    assert_int_equal(reads("--card"), BT_OK);
    assert_int_equal(opt.mode, OPTIONS_CARD);
}

static void each_variable_has_its_place(void **state)
{
    char text[UUID_TEXT_LEN + 1];

    (void)state;
    assert_int_equal(setenv("BATON_AGENT_ID", "one", 1), 0);
    assert_int_equal(setenv("BATON_CREDENTIAL", "/c", 1), 0);
    assert_int_equal(setenv("BATON_SPAWNED", "1", 1), 0);
    assert_int_equal(setenv("BATON_CA", "/ca", 1), 0);
    assert_int_equal(setenv("BATON_CERT", "/cert", 1), 0);
    assert_int_equal(setenv("BATON_CAPACITY", "64", 1), 0);
    assert_int_equal(setenv("BATON_SHARDS", "64", 1), 0);
    assert_int_equal(setenv("BATON_INSTANCE_ID", "01900000-0000-7000-8000-00000000000A", 1), 0);
    assert_int_equal(setenv("BATON_SETTINGS", "{\"a\": {\"b\": 1}}", 1), 0);
    assert_int_equal(reads(""), BT_OK);
    assert_string_equal(opt.agent_id, "one");
    assert_string_equal(opt.credential, "/c");
    assert_true(opt.spawned);
    assert_string_equal(opt.ca, "/ca");
    assert_string_equal(opt.cert, "/cert");
    assert_int_equal(opt.capacity, 64);
    assert_int_equal(opt.shards, 64);
    uuid_format(opt.instance_id, text);
    assert_string_equal(text, "01900000-0000-7000-8000-00000000000A");
    assert_true(str_is(buf_str(&opt.settings_json), "{\"a\":{\"b\":1}}"));
    /* an empty one is none */
    assert_int_equal(setenv("BATON_AGENT_ID", "", 1), 0);
    assert_int_equal(setenv("BATON_CAPACITY", "", 1), 0);
    assert_int_equal(reads("--log-level warn"), BT_OK);
    assert_null(opt.agent_id);
    assert_int_equal(opt.capacity, 0);
    assert_int_equal(setenv("BATON_SHARDS", "65", 1), 0);
    expect_refused("", BT_INVALID, "BATON_SHARDS '65': expected a number from 1 to 64");
    assert_int_equal(setenv("BATON_SHARDS", "1", 1), 0);
    assert_int_equal(setenv("BATON_INSTANCE_ID", "x", 1), 0);
    expect_refused("", BT_INVALID, "BATON_INSTANCE_ID 'x': expected a UUID");
}

static void numbers_have_a_least_and_a_most(void **state)
{
    (void)state;
    assert_int_equal(reads("--capacity 1 --shards 1"), BT_OK);
    assert_int_equal(reads("--capacity 64 --shards 64"), BT_OK);
    expect_refused("--capacity 65", BT_INVALID, "--capacity '65': expected a number from 1 to 64");
    expect_refused("--capacity 0", BT_INVALID, "expected a number from 1 to 64");
    expect_refused("--capacity -1", BT_INVALID, "expected a number from 1 to 64");
    expect_refused("--capacity 99999999999999999999", BT_INVALID, "expected a number");
    expect_refused("--capacity x", BT_INVALID, "expected a number");
    expect_refused("--shards 0", BT_INVALID, "--shards '0': expected a number from 1 to 64");
    expect_refused("--shards 65", BT_INVALID, "expected a number from 1 to 64");
    expect_refused("--shards +1", BT_INVALID, "expected a number");
    expect_refused("--shards :", BT_INVALID, "expected a number");
    expect_refused("--shards 9x", BT_INVALID, "expected a number");
    assert_int_equal(reads("--shards 9"), BT_OK);
}

static void what_is_no_argument_is_named(void **state)
{
    (void)state;
    expect_refused("--what 1", BT_INVALID, "unknown argument '--what'; see --help");
    expect_refused("--state", BT_INVALID,
                   "argument '--state': unknown, or its value is missing; see --help");
    expect_refused("word", BT_INVALID, "argument 'word': not expected; see --help");
    expect_refused("word again", BT_INVALID, "argument 'word': not expected; see --help");
    expect_refused("--log-level loud", BT_INVALID, "expected err, warn, info or debug");
    expect_refused("--instance-id 00000000-0000-0000-0000-000000000000", BT_INVALID,
                   "expected a UUID");
    expect_refused("--instance-id x", BT_INVALID, "--instance-id 'x': expected a UUID");
    /* the first wrong one is told */
    expect_refused("--capacity 0 --what 1", BT_INVALID, "--capacity");
}

static void another_host_needs_a_credential_an_authority_and_a_certificate(void **state)
{
    static const char url[] = "--connect tls+tcp://one.example:7100 ";
    char line[512];

    (void)state;
    (void)snprintf(line, sizeof line, "%s--credential /c --ca /a --cert /e", url);
    assert_int_equal(reads(line), BT_OK);
    assert_true(opt.dial_in);
    assert_int_equal(opt.seeds, 1);
    assert_string_equal(opt.connect, "tls+tcp://one.example:7100");
    assert_string_equal(opt.ca, "/a");
    assert_string_equal(opt.cert, "/e");
    (void)snprintf(line, sizeof line, "%s--ca /a --cert /e", url);
    expect_refused(line, BT_INVALID, "--connect needs --credential FILE, --ca FILE and --cert");
    (void)snprintf(line, sizeof line, "%s--credential /c --cert /e", url);
    expect_refused(line, BT_INVALID, "--connect needs");
    (void)snprintf(line, sizeof line, "%s--credential /c --ca /a", url);
    expect_refused(line, BT_INVALID, "--connect needs");
    expect_refused("--connect tcp://127.0.0.1:1 --credential /c --ca /a --cert /e", BT_INVALID,
                   "--connect: ");
    (void)snprintf(line, sizeof line, "%s--card", url);
    assert_int_equal(reads(line), BT_OK); /* it dials nobody */
    assert_false(opt.dial_in);
    assert_int_equal(setenv("BATON_CONNECT", "tls+tcp://a.example:1,tls+tcp://b.example:2", 1), 0);
    assert_int_equal(reads("--credential /c --ca /a --cert /e"), BT_OK);
    assert_int_equal(opt.seeds, 2);
}

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void settings_are_a_json_object_of_a_mebibyte_at_most(void **state)
{
    enum { CAP = 1024 * 1024 };
    char path[] = "/tmp/baton-settings-XXXXXX";
    char line[128];
    char *big = malloc(CAP + 1);
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0 && big != NULL);
    assert_int_equal(close(fd), 0);
    (void)snprintf(line, sizeof line, "--settings %s", path);
    write_file(path, "{\"a\": [1, 2]}", 13);
    assert_int_equal(setenv("BATON_SETTINGS", "{\"b\":1}", 1), 0);
    assert_int_equal(reads(line), BT_OK);
    assert_true(str_is(buf_str(&opt.settings_json), "{\"a\":[1,2]}"));
    write_file(path, "[1]", 3);
    expect_refused(line, BT_INVALID, "expected a JSON object");
    assert_non_null(strstr(why.msg, path));
    write_file(path, "{", 1);
    expect_refused(line, BT_INVALID, path);
    memset(big, ' ', CAP + 1);
    memcpy(big, "{}", 2);
    write_file(path, big, CAP);
    assert_int_equal(reads(line), BT_OK);
    write_file(path, big, CAP + 1);
    expect_refused(line, BT_LIMIT, path);
    expect_refused("--settings /does/not/exist", BT_NOT_FOUND, "--settings /does/not/exist");
    expect_refused("--settings /tmp", BT_IO, "--settings /tmp");
    free(big);
    assert_int_equal(unlink(path), 0);
}

static void hand_over(const char *bytes, size_t n)
{
    char number[16];
    const int fd = memfd_create("handover", MFD_CLOEXEC);

    assert_true(fd > 2);
    assert_int_equal(write(fd, bytes, n), n);
    (void)snprintf(number, sizeof number, "%d", fd);
    assert_int_equal(setenv("BATON_HANDOVER", number, 1), 0);
}

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void the_credential_of_the_process_is_taken_whole_or_refused(void **state)
{
    static const char whole[] = "credential=me\0key=" KEY;
    static const char no_key[] = "credential=me";
    static const char cut[] = "credential=me\0key=0001";
    char longest[256];
    int n;

    (void)state;
    hand_over(whole, sizeof whole);
    assert_int_equal(reads(""), BT_OK);
    assert_string_equal(opt.process_id, "me");
    assert_int_equal(opt.process_key[0], 0);
    assert_int_equal(opt.process_key[31], 31);
    hand_over(no_key, sizeof no_key);
    assert_int_equal(reads(""), BT_OK);
    assert_string_equal(opt.process_id, "");
    hand_over(cut, sizeof cut);
    expect_refused("", BT_INVALID, "the credential of this process is damaged");
    for (int more = 0; more < 2; more++) {
        n = snprintf(longest, sizeof longest, "credential=%0*d%ckey=" KEY, LIMIT_ID_BYTES + more, 0,
                     0);
        hand_over(longest, (size_t)n + 1);
        assert_int_equal(reads(""), more == 0 ? BT_OK : BT_INVALID);
    }
}

/* ---- the program ---- */

struct run {
    int status;
    char out[8192];
    char err[2048];
};

static int inits;
static bool init_fails;
static char found[512];

static enum bt_code init(struct bt_agent_init *i, void **ret_self, struct bt_error *err)
{
    inits++;
    (void)snprintf(found, sizeof found, "%s|%s|%g|%g|%g|%g|%d|%d|%d|%s|%s",
                   bt_agent_setting_string(i, "name", "none"),
                   bt_agent_setting_string(i, "n", "no text"), bt_agent_setting_number(i, "n", -9),
                   bt_agent_setting_number(i, "u", -9), bt_agent_setting_number(i, "f", -9),
                   bt_agent_setting_number(i, "name", -9), bt_agent_setting_bool(i, "yes", false),
                   bt_agent_setting_bool(i, "no", true), bt_agent_setting_bool(i, "n", true),
                   bt_agent_secret(i, "TEST_PROGRAM_SECRET") != NULL ? "secret" : "none",
                   bt_agent_settings_json(i));
    *ret_self = found;
    if (init_fails) {
        return err_set(err, BT_INVALID, "name: expected another one");
    }
    return bt_agent_add_skill(i, &(struct bt_skill){.id = "added", .run = NULL, .effects = "none"},
                              err);
}

static void echo(struct bt_step *step, void *self)
{
    bt_step_reply_text(step, "%s %s", bt_step_param_string(step, "text", "-"),
                       self == NULL ? "" : (const char *)self);
}

static void give_up(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_fail(step, "TIMEOUT", false, "no");
}

static void done(void *self)
{
    (void)printf("done %s\n", self == NULL ? "nothing" : "something");
}

static const struct bt_skill skills[] = {{.id = "echo", .run = echo}, {.id = "no", .run = give_up}};
static const struct bt_agent_def plain = {.agent_id = "one",
                                          .version = "1.2",
                                          .description = "Says it again",
                                          .skills = skills,
                                          .skill_count = 2,
                                          .done = done};

static void take(int fd, char *ret, size_t cap)
{
    const ssize_t n = pread(fd, ret, cap - 1, 0);

    assert_true(n >= 0);
    ret[n] = 0;
    assert_int_equal(close(fd), 0);
}

/* The program in a child: it prints, and hides itself. */
static struct run runs(const struct bt_agent_def *def, const char *line, const char *in)
{
    static struct run r;
    char text[512];
    char *argv[16] = {text};
    int argc = 1;
    char *save = NULL;
    const int out = memfd_create("out", 0);
    const int err = memfd_create("err", 0);
    const int from = memfd_create("in", 0);
    pid_t pid;

    (void)snprintf(text, sizeof text, "mine %s", line);
    (void)strtok_r(text, " ", &save);
    for (char *at = strtok_r(NULL, " ", &save); at != NULL; at = strtok_r(NULL, " ", &save)) {
        argv[argc++] = at;
    }
    assert_true(out >= 0 && err >= 0 && from >= 0);
    assert_int_equal(write(from, in, strlen(in)), strlen(in));
    assert_int_equal(lseek(from, 0, SEEK_SET), 0);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int status;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)alarm(60);
        (void)dup2(from, 0);
        (void)dup2(out, 1);
        (void)dup2(err, 2);
        status = bt_agent_main(def, argc, argv);
        (void)fflush(NULL);
        _exit(status);
    }
    assert_int_equal(waitpid(pid, &r.status, 0), pid);
    assert_true(WIFEXITED(r.status));
    r.status = WEXITSTATUS(r.status);
    take(out, r.out, sizeof r.out);
    take(err, r.err, sizeof r.err);
    assert_int_equal(close(from), 0);
    return r;
}

static void says(struct run r, int status, const char *out, const char *err)
{
    if (r.status != status || strstr(r.out, out) == NULL || strstr(r.err, err) == NULL) {
        fail_msg("%d\n%s\n%s", r.status, r.out, r.err);
    }
}

static void the_program_tells_what_it_is(void **state)
{
    const struct bt_agent_def bare = {.agent_id = "one", .skills = skills, .skill_count = 1};

    (void)state;
    says(runs(&plain, "--help", ""), 0,
         "mine: a Baton agent. Says it again\n\nUsage: mine [OPTION]...\nOptions:\n", "");
    says(runs(&bare, "--help", ""), 0, "mine: a Baton agent\n", "");
    says(runs(&plain, "--version", ""), 0, "mine 1.2 (baton " BATON_VERSION ")\n", "");
    says(runs(&bare, "--version", ""), 0, "mine 0 (baton", "");
    says(runs(&plain, "--card", ""), 0, "\"agentId\":\"one\"", "");
    says(runs(&plain, "--card", ""), 0, "}\ndone nothing\n", "");
    says(runs(&plain, "--card --agent-id two", ""), 0, "\"agentId\":\"two\"", "");
    says(runs(&plain, "--card --agent-id .x", ""), 2, "", "agent id '.x'");
    says(runs(&plain, "--what 1", ""), 2, "", "mine: unknown argument '--what'");
    assert_string_equal(runs(&plain, "--help", "").err, "");
}

static void one_step_runs_from_the_input_and_its_outcome_is_the_status(void **state)
{
    (void)state;
    says(runs(&plain, "--once echo", "{\"parameters\":{\"text\":\"hi\"}}"), 0,
         "\"outcome\":\"completed\",\"result\":{\"text\":\"hi \"}}\ndone nothing\n", "");
    says(runs(&plain, "--once no", "{}"), 1, "\"class\":\"TIMEOUT\"", "");
    says(runs(&plain, "--once what", "{}"), 2, "",
         "mine: --once what: this agent has no such skill; see --card");
    says(runs(&plain, "--once echo", "{"), 2, "", "mine: ");
    says(runs(&plain, "--once echo", "[]"), 2, "", "mine: ");
}

static void settings_are_read_by_their_kind_or_fall_back(void **state)
{
    const struct bt_agent_def def = {
        .agent_id = "one", .skills = skills, .skill_count = 1, .init = init, .done = done};
    struct program p;
    struct bt_error err;
    char name[] = "agent";
    char card[] = "--version";
    char *argv[] = {name, NULL};

    (void)state;
    (void)card;
    assert_int_equal(setenv("BATON_SETTINGS",
                            "{\"name\":\"x\",\"n\":-3,\"u\":7,\"f\":2.5,\"yes\":true,\"no\":false}",
                            1),
                     0);
    assert_int_equal(setenv("TEST_PROGRAM_SECRET", "s", 1), 0);
    init_fails = true;
    assert_int_equal(program_begin(&p, &def, 1, argv, false, &err), BT_INVALID);
    assert_string_equal(err.msg, "settings: name: expected another one");
    assert_string_equal(found, "x|no text|-3|7|2.5|-9|1|0|1|secret|{\"name\":\"x\",\"n\":-3,"
                               "\"u\":7,\"f\":2.5,\"yes\":true,\"no\":false}");
    assert_false(p.made); /* done() is not called for what init() did not make */
    program_end(&p);
    init_fails = false;
    assert_int_equal(program_begin(&p, &def, 1, argv, false, &err), BT_INVALID);
    assert_string_equal(err.msg, "settings: skill 'added': has no run function");
    program_end(&p);
    (void)unsetenv("BATON_SETTINGS");
    init_fails = true;
    assert_int_equal(program_begin(&p, &def, 1, argv, false, &err), BT_INVALID);
    assert_string_equal(found, "none|no text|-9|-9|-9|-9|0|1|1|none|{}");
    program_end(&p);
    init_fails = false;
    assert_int_equal(inits, 3);
}

static void the_capacity_is_that_of_the_argument_else_of_the_agent_else_one(void **state)
{
    static const struct {
        uint32_t def, opt, want;
    } cases[] = {{0, 0, 1}, {5, 0, 5}, {5, 7, 7}, {64, 0, 64}, {65, 0, 64}, {1, 64, 64}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bt_agent_def def = {.capacity = cases[i].def};
        const struct program p = {.def = &def, .opt = {.capacity = cases[i].opt}};
        assert_int_equal(program_capacity(&p), cases[i].want);
    }
}

static void a_loop_of_the_programs_own_serves_one_shard(void **state)
{
    struct program p;
    struct bt_error err;
    char name[] = "agent";
    char shards[] = "--shards";
    char two[] = "2";
    char one[] = "1";
    char *argv[] = {name, shards, two, NULL};

    (void)state;
    assert_int_equal(program_begin(&p, &plain, 3, argv, false, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "serves one shard"));
    program_end(&p);
    argv[2] = one;
    assert_int_equal(program_begin(&p, &plain, 3, argv, false, &err), BT_OK);
    assert_true(p.made);
    program_end(&p);
    argv[2] = two;
    assert_int_equal(setenv("BATON_SPAWNED", "1", 1), 0); /* its node sets it for whoever can */
    assert_int_equal(program_begin(&p, &plain, 3, argv, false, &err), BT_OK);
    assert_int_equal(p.opt.shards, 1);
    program_end(&p);
}

static void an_agent_without_skills_does_not_run(void **state)
{
    const struct bt_agent_def def = {.agent_id = "one"};
    const struct bt_agent_def nameless = {.skills = skills, .skill_count = 1};

    (void)state;
    says(runs(&def, "--card", ""), 2, "", "mine: the agent 'one' has no skills");
    says(runs(&def, "", ""), 2, "", "mine: the agent 'one' has no skills");
    says(runs(&nameless, "--card", ""), 2, "", "give --agent-id ID");
    says(runs(&nameless, "--card --agent-id x", ""), 0, "\"agentId\":\"x\"", "");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, options_end)
    const struct CMUnitTest tests[] = {
        T(without_arguments_it_runs_alone_and_listens_on_a_free_port),
        T(each_argument_has_its_place),
        T(each_variable_has_its_place),
        T(numbers_have_a_least_and_a_most),
        T(what_is_no_argument_is_named),
        T(another_host_needs_a_credential_an_authority_and_a_certificate),
        T(settings_are_a_json_object_of_a_mebibyte_at_most),
        T(the_credential_of_the_process_is_taken_whole_or_refused),
        T(the_program_tells_what_it_is),
        T(one_step_runs_from_the_input_and_its_outcome_is_the_status),
        T(settings_are_read_by_their_kind_or_fall_back),
        T(the_capacity_is_that_of_the_argument_else_of_the_agent_else_one),
        T(a_loop_of_the_programs_own_serves_one_shard),
        T(an_agent_without_skills_does_not_run),
    };
#undef T

    return cmocka_run_group_tests(tests, clean, NULL);
}
