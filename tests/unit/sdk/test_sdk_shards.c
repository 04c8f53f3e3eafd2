/* Processes of an agent for a fleet of several shards: their options, their places, their ends. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/sdk/shards/shards.h"
#include "protocol/client/fleet_map.h"
#include "protocol/client/seeds.h"
#include "protocol/client/state.h"
#include "tests/support/cmocka.h"

static char dir[] = "/tmp/baton-shards-XXXXXX";

static int begin(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int end(void **state)
{
    char path[64];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/" FLEET_MAP_FILE, dir);
    (void)unlink(path);
    return rmdir(dir);
}

static int go; /* at its end when each shard has told its line */

/* Runs the parent in a process of its own: it ends with its children. When `lines` are there, it
 * gets the signal (0: none), and `go` ends. Returns its status; what was written is in ret. */
static int serve(struct options *o, uint32_t capacity,
                 int (*child)(const struct options *o, int to), uint32_t lines, int signal_parent,
                 char *ret, size_t cap)
{
    int ends[2];
    int goes[2];
    pid_t parent;
    int status = 0;
    size_t n = 0;
    ssize_t got;

    (void)alarm(30); /* who waits for a child for ever is ended */
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(goes), 0);
    (void)fflush(NULL);
    parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        struct bt_error err;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGINT, SIG_DFL); /* a shell has its background jobs ignore it */
        (void)close(ends[0]);
        (void)close(goes[1]);
        go = goes[0];
        if (shards_begin(o, capacity, &err) != BT_OK) {
            (void)dprintf(ends[1], "%s\n", err.msg);
            _exit(99);
        }
        _exit(child(o, ends[1]));
    }
    (void)close(ends[1]);
    (void)close(goes[0]);
    do {
        uint32_t seen = 0;
        got = read(ends[0], ret + n, cap - 1 - n);
        n += got > 0 ? (size_t)got : 0;
        ret[n] = 0;
        for (size_t i = 0; i < n; i++) {
            seen += ret[i] == '\n';
        }
        if (seen >= lines && goes[1] >= 0) {
            (void)(signal_parent != 0 && kill(parent, signal_parent));
            (void)close(goes[1]);
            goes[1] = -1;
        }
    } while (got > 0);
    (void)close(ends[0]);
    if (goes[1] >= 0) {
        (void)close(goes[1]);
    }
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFEXITED(status));
    (void)alarm(0);
    return WEXITSTATUS(status);
}

/* Until the parent takes SIGTERM and SIGINT itself. */
static void wait_for_parent(void)
{
    const uint64_t both = 1u << (SIGTERM - 1) | 1u << (SIGINT - 1);
    char path[64];
    char line[256];
    uint64_t caught = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)getppid());
    while ((caught & both) != both) {
        FILE *f = fopen(path, "re");
        while (f != NULL && fgets(line, sizeof line, f) != NULL) {
            caught = strncmp(line, "SigCgt:", 7) == 0 ? strtoull(line + 7, NULL, 16) : caught;
        }
        if (f != NULL) {
            (void)fclose(f);
        }
        (void)poll(NULL, 0, 1);
    }
}

static int tell(const struct options *o, int to)
{
    wait_for_parent();
    (void)dprintf(to, "%u %s %s %s\n", o->shard, o->connect != NULL ? o->connect : "-",
                  o->state != NULL ? o->state : "-", o->fleet != NULL ? o->fleet : "-");
    (void)pause();
    return 0;
}

static int tell_and_end(const struct options *o, int to)
{
    (void)dprintf(to, "%u %s %s %s\n", o->shard, o->connect != NULL ? o->connect : "-",
                  o->state != NULL ? o->state : "-", o->fleet != NULL ? o->fleet : "-");
    if (o->shard != 1) {
        (void)pause(); /* the end of the other one ends it */
    }
    (void)!read(go, &(char){0}, 1);
    return 7;
}

static void one_shard_is_this_process(void **state)
{
    struct options o = {.shards = 1};
    struct bt_error err;

    (void)state;
    assert_int_equal(shards_begin(&o, 3, &err), BT_OK);
    o.shards = 0;
    assert_int_equal(shards_begin(&o, 3, &err), BT_OK);
    assert_int_equal(o.shard, 0);
    assert_null(o.fleet);
    for (int i = 0; i < 100; i++) { /* nobody counts its places here */
        assert_true(shards_place_take());
    }
    shards_place_put();
}

static void each_shard_has_a_process_with_a_directory_of_its_own(void **state)
{
    struct options o = {.shards = 2, .state = dir};
    char got[1024];
    char want[256];

    (void)state;
    assert_int_equal(serve(&o, 1, tell_and_end, o.shards, 0, got, sizeof got), 7);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(want, sizeof want, "%d - %s/shards/%d %s\n", i, dir, i, dir);
        if (strstr(got, want) == NULL) {
            fail_msg("%s is not in %s", want, got);
        }
    }
}

static void elsewhere_each_shard_has_a_port_of_its_own(void **state)
{
    struct options o = {.shards = 3, .connect = "tls+tcp://a:100,tls+tcp://b:65533", .seeds = 2};
    char got[1024];

    (void)state;
    assert_int_equal(serve(&o, 1, tell_and_end, o.shards, 0, got, sizeof got), 7);
    assert_non_null(strstr(got, "0 tls+tcp://a:100,tls+tcp://b:65533 - -\n"));
    assert_non_null(strstr(got, "1 tls+tcp://a:101,tls+tcp://b:65534 - -\n"));
    assert_non_null(strstr(got, "2 tls+tcp://a:102,tls+tcp://b:65535 - -\n"));
    o = (struct options){.shards = 4, .connect = "tls+tcp://b:65533", .seeds = 1};
    (void)serve(&o, 1, tell_and_end, 99, 0, got, sizeof got);
    assert_non_null(strstr(got, "--connect tls+tcp://b:65533: shard 3 would have port 65536"));
}

static void a_signal_ends_all_and_their_code_is_the_first_ones(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT};
    char got[1024];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct options o = {.shards = 2, .state = dir};
        /* A process that a signal ended has no code: it counts as one that crashed. */
        assert_int_equal(serve(&o, 1, tell, 2, signals[i], got, sizeof got), 70);
    }
}

static int take_all(const struct options *o, int to)
{
    static char text[16];
    size_t n = 0;

    if (o->shard == 0) { /* takes what there is, and gives one back */
        while (shards_place_take()) {
            text[n++] = '+';
        }
        text[n++] = '\n';
        shards_place_put();
        (void)!write(to, text, n);
        (void)pause();
        return 0;
    }
    (void)!read(go, &(char){0}, 1); /* the other one has given a place back */
    n = shards_place_take();
    (void)dprintf(to, "%s\n", n == 1 && !shards_place_take() ? "one" : "none");
    return 0;
}

static void all_shards_have_the_places_together(void **state)
{
    struct options o = {.shards = 2, .state = dir};
    char got[256];

    (void)state;
    (void)serve(&o, 3, take_all, 1, 0, got, sizeof got);
    assert_non_null(strstr(got, "+++\n"));
    assert_null(strstr(got, "++++"));
    assert_non_null(strstr(got, "one\n"));
}

/* ---- another node ---- */

static bool leads(const char *map, const char *fleet, uint32_t shard, char *ret)
{
    const struct options o = {.fleet = fleet, .shard = shard};
    char path[64];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/" FLEET_MAP_FILE, dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(map, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return shards_elsewhere(&o, ret);
}

static void a_shard_is_elsewhere_when_another_node_of_this_host_leads_it(void **state)
{
#define MAP(members) "{\"version\":1,\"shards\":[{\"shard\":0," members "}]}"
    static const char *const none[] = {
        MAP("\"control\":\"ipc:///x\",\"events\":\"ipc:///y\",\"here\":true"),
        MAP("\"control\":\"ipc:///x\",\"events\":\"ipc:///y\",\"remote\":\"tls+tcp://a:1\""),
        MAP("\"control\":\"ipc:///x\",\"events\":\"\""), /* auth is required */
        MAP("\"control\":\"\",\"events\":\"ipc:///y\""), "no map"};
    static char map[STATE_URL_MAX + 200];
    char ret[STATE_URL_MAX + 1] = "";

    (void)state;
    assert_true(leads(MAP("\"control\":\"ipc:///x\",\"events\":\"ipc:///y\""), dir, 0, ret));
    assert_string_equal(ret, "ipc:///x");
    assert_false(leads(MAP("\"control\":\"ipc:///x\",\"events\":\"ipc:///y\""), dir, 1, ret));
    assert_false(leads(MAP("\"control\":\"ipc:///x\",\"events\":\"ipc:///y\""), NULL, 0, ret));
    assert_false(leads(MAP("\"control\":\"ipc:///x\",\"events\":\"ipc:///y\""), "/none", 0, ret));
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_false(leads(none[i], dir, 0, ret));
    }
    for (int more = 0; more < 2; more++) {
        (void)snprintf(map, sizeof map, MAP("\"control\":\"%0*d\",\"events\":\"ipc:///y\""),
                       STATE_URL_MAX + more, 0);
        assert_true(leads(map, dir, 0, ret) == (more == 0));
        assert_int_equal(strlen(ret), STATE_URL_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_shard_is_this_process),
        cmocka_unit_test(each_shard_has_a_process_with_a_directory_of_its_own),
        cmocka_unit_test(elsewhere_each_shard_has_a_port_of_its_own),
        cmocka_unit_test(a_signal_ends_all_and_their_code_is_the_first_ones),
        cmocka_unit_test(all_shards_have_the_places_together),
        cmocka_unit_test(a_shard_is_elsewhere_when_another_node_of_this_host_leads_it),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
