/* The node of a fleet, with processes, a clock and a database of the test's own: what it starts,
 * how often it beats, what it does when a shard ends, and how it stops. */
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "protocol/base/clock.h"
#include "supervisor/daemon.h"
#include "supervisor/node/node_internal.h"
#include "supervisor/notify.h"
#include "tests/support/children.h"

enum { LEASE = 6000, BEAT = 1000, SOON = 100, AGAIN = 1000, SHORT = 5000, TURN = 501, LOG = 65536 };
static const char PLACES[] =
    "[{\"shard\":0,\"control\":\"tcp://10.0.0.2:1\",\"events\":\"\",\"remote\":\"\"},"
    "{\"shard\":1,\"control\":\"tcp://10.0.0.2:2\",\"events\":\"\",\"remote\":\"\"}]";

struct journal_look {
    int unused;
};

static struct {
    msec now;
    int to_signals; /* the other end of what signalfd gave */
    struct journal_look look;
    uint32_t looks;      /* open */
    const char *failing; /* this call, so many times */
    enum bt_code code;
    uint32_t fails;
    struct journal_shard shards[4];
    uint32_t shards_n;
    struct journal_node nodes[2];
    uint32_t nodes_n;
    struct journal_owner owner;
    enum bt_code locked;
    char log[LOG];
    size_t log_n;
    char notified[1024];
    void (*at_each)(void); /* poll */
    msec stop_at;          /* SIGTERM comes then */
} world;

static char dir[64];
static struct node_options opt;
static char *args[80] = {(char[]){"batond"}, (char[]){"--config"}, (char[]){"x"}, NULL};

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    va_list list;
    int n;

    if (opt.lease_ms == 0) {
        return; /* it beats each ms */
    }
    va_start(list, fmt);
    n = vsnprintf(world.log + world.log_n, sizeof world.log - world.log_n, fmt, list);
    va_end(list);
    assert_true(n >= 0 && world.log_n + (size_t)n < sizeof world.log);
    world.log_n += (size_t)n;
}

static uint32_t count(const char *what)
{
    uint32_t n = 0;

    for (const char *at = strstr(world.log, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

/* ---- the system ---- */

msec __wrap_clock_mono_ms(void);
int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
void __wrap_notify_service_manager(const char *state);

msec __wrap_clock_mono_ms(void)
{
    return world.now;
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    int fds[2];

    assert_int_equal(fd, -1);
    assert_int_equal(flags, SFD_CLOEXEC | SFD_NONBLOCK);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        assert_int_equal(sigismember(set, SIGNALS[i]), 1);
    }
    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    world.to_signals = fds[1];
    return fds[0];
}

static void come(int signo)
{
    struct signalfd_siginfo info = {.ssi_signo = (uint32_t)signo};

    assert_int_equal(write(world.to_signals, &info, sizeof info), sizeof info);
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    assert_int_equal(n, 1);
    assert_int_equal(fds[0].events, POLLIN);
    world.now += (msec)timeout;
    if (world.at_each != NULL) {
        world.at_each();
    }
    if (world.stop_at > 0 && world.now >= world.stop_at) {
        world.stop_at = 0;
        come(SIGTERM);
    }
    return __real_poll(fds, n, 0);
}

void __wrap_notify_service_manager(const char *state)
{
    const size_t n = strlen(world.notified);

    (void)snprintf(world.notified + n, sizeof world.notified - n, "%s;", state);
}

/* ---- the database ---- */

static enum bt_code outcome(const char *call, struct bt_error *err)
{
    if (world.failing != NULL && strcmp(call, world.failing) == 0 && world.fails > 0) {
        world.fails--;
        return err_set(err, world.code, "%s: away", call);
    }
    return BT_OK;
}

enum bt_code journal_lock_dir(const char *path, struct bt_error *err)
{
    assert_string_equal(path, dir);
    return world.locked == BT_OK ? BT_OK : err_set(err, world.locked, "locked");
}

enum bt_code journal_look_open(const char *url, uint32_t lease_ms, uint32_t shard,
                               struct journal_look **ret, struct bt_error *err)
{
    const enum bt_code code = outcome("open", err);

    assert_string_equal(url, "postgresql://db");
    assert_int_equal(lease_ms, opt.lease_ms);
    assert_int_equal(shard, 0);
    note("open\n");
    if (code == BT_OK) {
        *ret = &world.look;
        world.looks++;
    }
    return code;
}

void journal_look_close(struct journal_look *l)
{
    world.looks -= l != NULL ? 1 : 0;
}

enum bt_code journal_look(struct journal_look *l, struct journal_owner *ret, struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    *ret = world.owner;
    return outcome("look", err);
}

enum bt_code journal_look_expand(struct journal_look *l, struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    note("expand\n");
    return outcome("expand", err);
}

enum bt_code journal_look_beat(struct journal_look *l, const char *node, const char *places,
                               const char *config, struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    note("beat at %" PRIu64 " %s %s %s\n", (uint64_t)world.now, node, places, config);
    return outcome("beat", err);
}

enum bt_code journal_look_drain(struct journal_look *l, const char *node, bool drain,
                                struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    note("drain %s %d\n", node, drain);
    return outcome("drain", err);
}

enum bt_code journal_look_shards(struct journal_look *l, struct journal_shard *ret, uint32_t max,
                                 uint32_t *ret_n, struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    assert_int_equal(max, SHARDS_MAX);
    memcpy(ret, world.shards, sizeof world.shards);
    *ret_n = world.shards_n;
    return outcome("shards", err);
}

enum bt_code journal_look_nodes(struct journal_look *l, struct journal_node *ret, uint32_t max,
                                uint32_t *ret_n, struct bt_error *err)
{
    const enum bt_code code = outcome("nodes", err);

    assert_ptr_equal(l, &world.look);
    assert_int_equal(max, NODES_MAX);
    *ret_n = code == BT_OK ? world.nodes_n : 0;
    for (uint32_t i = 0; i < *ret_n; i++) {
        ret[i] = world.nodes[i];
        ret[i].places = strdup(PLACES);
    }
    return code;
}

enum bt_code journal_look_move(struct journal_look *l, uint32_t shard, const char *node,
                               struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    note("move %u to %s at %" PRIu64 "\n", shard, node, (uint64_t)world.now);
    return outcome("move", err);
}

enum bt_code journal_look_leave(struct journal_look *l, const char *node, struct bt_error *err)
{
    assert_ptr_equal(l, &world.look);
    note("leave %s\n", node);
    return outcome("leave", err);
}

/* ---- the tests ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    if (dir[0] != 0) {
        (void)close(world.to_signals);
        assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        dir[0] = 0;
    }
    return 0;
}

/* A fleet of two shards, both led by another node, whose addresses are known. */
static int set_up(void **state)
{
    char path[96];
    int fd;

    (void)tear_down(state);
    memset(&world, 0, sizeof world);
    memset(&children, 0, sizeof children);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-node-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/token", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, "secret", 6) == 6);
    assert_int_equal(close(fd), 0);
    (void)snprintf(path, sizeof path, "%s/shards", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    world.now = 100000;
    world.shards_n = 2;
    for (uint32_t i = 0; i < 4; i++) {
        world.shards[i] = (struct journal_shard){
            .shard = i, .epoch = i + 1, .lease_left_ms = 1000, .node = "two", .led = true};
    }
    world.nodes_n = 2;
    world.nodes[0] = (struct journal_node){.node = "one", .alive = true};
    world.nodes[1] = (struct journal_node){.node = "two", .alive = true};
    opt = (struct node_options){.state_dir = dir,
                                .fleet_url = "postgresql://db",
                                .name = "one",
                                .remote = "",
                                .lease_ms = LEASE,
                                .shards = 2,
                                .config = "c0",
                                .ready_fd = -1};
    (void)setenv("NOTIFY_SOCKET", "/socket", 1);
    (void)unsetenv("BATON_STATE");
    return 0;
}

static int run_for(msec ms)
{
    world.stop_at = world.now + ms;
    return node_run(&opt, args);
}

static bool is_there(const char *name)
{
    char path[160];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &st) == 0;
}

static void each_shard_is_a_process_with_a_directory_of_its_own(void **state)
{
    char want[256];
    char path[96];
    struct stat st;

    (void)state;
    assert_int_equal(run_for(1), EXIT_STOPPED);
    assert_int_equal(children.n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(want, sizeof want,
                       "/proc/self/exe batond --config x --shard %u/2 --state %s/shards/%u [death "
                       "%d]",
                       i, dir, i, SIGKILL);
        assert_string_equal(children.ran[i], want);
        (void)snprintf(path, sizeof path, "%s/shards/%u/token", dir, i);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_nlink, 3); /* the node's token */
    }
    assert_string_equal(children.killed, "1001:15 1002:15 ");
}

static void the_descriptor_of_the_node_is_its_own(void **state)
{
    char *const was[] = {args[1], args[2]};
    char flag[] = "--ready-fd";
    char five[] = "5";
    char both[] = "--ready-fd=5";
    char other[] = "--ready-fds=5";

    (void)state;
    args[1] = flag;
    args[2] = five;
    args[3] = both;
    args[4] = other;
    args[5] = flag; /* without a value: it is told so */
    args[6] = NULL;
    (void)run_for(1);
    assert_ptr_equal(strstr(children.ran[0], "/proc/self/exe batond --ready-fds=5 --ready-fd "
                                             "--shard 0/2 "),
                     children.ran[0]);
    args[1] = was[0];
    args[2] = was[1];
    args[3] = NULL;
}

static void fifty_nine_arguments_are_passed_on_and_no_more(void **state)
{
    char *many[70];

    (void)state;
    for (size_t n = 59; n <= 60; n++) {
        for (size_t i = 0; i < n; i++) {
            many[i] = args[0];
        }
        many[n] = NULL;
        children.n = 0;
        world.stop_at = world.now + 1;
        (void)node_run(&opt, many);
        assert_int_equal(children.n, n == 59 ? 2 : 0);
    }
}

static void it_says_that_it_lives_six_times_in_a_lease(void **state)
{
    (void)state;
    (void)run_for(LEASE - 1);
    assert_int_equal(count("open\n"), 1);
    assert_int_equal(count("expand\n"), 1);
    assert_int_equal(count("drain one 0\n"), 1);
    assert_int_equal(count("beat at "), 6);
    assert_int_equal(count(" one [] c0\n"), 6);
    assert_int_equal(count("beat at 100000 "), 1);
    assert_int_equal(count("beat at 101002 "), 1); /* two turns of 501 ms */
    assert_int_equal(count("leave one\n"), 1);
    assert_int_equal(count("move"), 0);
}

/* It is opened again when anything has failed; what was begun is not begun again. */
static void a_database_that_is_away_is_asked_again(void **state)
{
    static const char *const CALLS[] = {"open",   "expand", "beat", "drain",
                                        "shards", "nodes",  "move"};

    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++) {
        (void)set_up(state);
        world.failing = CALLS[i];
        world.code = BT_UNAVAILABLE;
        world.fails = 1;
        if (i == 6) { /* it has two, and the other none */
            (void)snprintf(world.shards[0].node, sizeof world.shards[0].node, "one");
            (void)snprintf(world.shards[1].node, sizeof world.shards[1].node, "one");
        }
        assert_int_equal(run_for(3 * BEAT), EXIT_STOPPED);
        assert_int_equal(world.fails, 0);
        assert_int_equal(count("open\n"), 2);
        assert_int_equal(count("leave one\n"), 1);
        assert_int_equal(count("drain one 0\n"), i == 3 ? 2 : 1);
        assert_int_equal(world.looks, 0);
    }
    (void)set_up(state);
    world.failing = "open";
    world.code = BT_UNAVAILABLE;
    world.fails = UINT32_MAX;
    assert_int_equal(run_for(BEAT), EXIT_STOPPED);
    assert_int_equal(count("leave"), 0);
}

/* ---- ends of shards ---- */

static msec started_again; /* when the third process was seen */
static msec ends_at;
static int ends_with;

static void end_the_first(void)
{
    if (ends_at > 0 && world.now >= ends_at) {
        children_end(CHILDREN_FIRST, ends_with);
        ends_at = 0;
    }
    if (started_again == 0 && children.n > 2) {
        started_again = world.now - TURN;
    }
}

static void a_shard_that_was_asked_to_stop_or_cannot_go_on_ends_its_node(void **state)
{
    static const struct {
        int status;
        bool ends;
    } CASES[] = {{EXIT_STOPPED << 8, true},
                 {EXIT_USAGE << 8, true},
                 {EXIT_ESCALATED << 8, true},
                 {EXIT_FAILURE_TO_START << 8, false},
                 {EXIT_LOCKED << 8, false},
                 {EXIT_JOURNAL_DEAD << 8, false},
                 {SIGKILL, false},
                 {SIGSEGV, false}};

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int code;
        (void)set_up(state);
        ends_at = world.now + TURN;
        ends_with = CASES[i].status;
        started_again = 0;
        world.at_each = end_the_first;
        code = run_for(20000);
        assert_int_equal(code, CASES[i].ends ? CASES[i].status >> 8 : EXIT_STOPPED);
        assert_int_equal(children.n, CASES[i].ends ? 2 : 3);
        assert_int_equal(world.stop_at > 0, CASES[i].ends);
        assert_non_null(strstr(children.killed, "1002:15 "));
    }
}

/* All that are started end after so long. */
static msec life;
static uint32_t seen;
static msec born[CHILDREN_MAX];

static void live_so_long(void)
{
    for (; seen < children.n; seen++) {
        born[seen] = world.now - 1; /* the clock goes on by turns of 1 ms here */
    }
    for (uint32_t i = 0; i < seen; i++) {
        if (born[i] > 0 && world.now - born[i] == life) {
            children_end(CHILDREN_FIRST + (pid_t)i, SIGKILL);
        }
    }
}

static void who_dies_soon_three_times_waits_longer(void **state)
{
    static const struct {
        msec life, third, fourth; /* pauses before the third life and the fourth */
    } CASES[] = {{1, SOON, AGAIN}, {SHORT - 1, SOON, AGAIN}, {SHORT, SOON, SOON}};

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        (void)set_up(state);
        opt.shards = world.shards_n = 1;
        opt.lease_ms = 0; /* turns of 1 ms */
        life = CASES[i].life;
        seen = 0;
        memset(born, 0, sizeof born);
        world.at_each = live_so_long;
        world.failing = "none";
        assert_int_equal(run_for(3 * life + 2 * SOON + AGAIN + 10), EXIT_STOPPED);
        live_so_long();
        assert_true(children.n >= 4);
        assert_int_equal(born[1] - born[0], life + SOON);
        assert_int_equal(born[2] - born[1], life + CASES[i].third);
        assert_int_equal(born[3] - born[2], life + CASES[i].fourth);
    }
}

static void a_shard_that_cannot_be_started_is_tried_again_a_second_later(void **state)
{
    char path[96];

    (void)state;
    children.refused_at = 1;
    (void)run_for(AGAIN - 1);
    assert_int_equal(children.n, 1);
    (void)set_up(state);
    children.refused_at = 1;
    (void)run_for(2 * AGAIN);
    assert_int_equal(children.n, 2);
    assert_non_null(strstr(children.ran[1], "--shard 0/2"));
    (void)set_up(state);
    (void)snprintf(path, sizeof path, "%s/token", dir); /* nothing to give on */
    assert_int_equal(unlink(path), 0);
    (void)run_for(3 * AGAIN);
    assert_int_equal(children.n, 0);
    (void)set_up(state);
    (void)snprintf(path, sizeof path, "%s/shards/0", dir); /* no directory */
    assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    (void)run_for(AGAIN);
    assert_int_equal(children.n, 1);
}

/* ---- signals ---- */

static msec hup_at;

static void hang_up(void)
{
    if (hup_at > 0 && world.now >= hup_at) {
        hup_at = 0;
        come(SIGHUP);
    }
}

static void a_hang_up_goes_to_the_shards(void **state)
{
    static const char *const GATEWAY[] = {"/bin/gateway", "--all", NULL};

    (void)state;
    opt.gateway = GATEWAY;
    world.at_each = hang_up;
    hup_at = world.now + BEAT;
    (void)run_for(2 * BEAT);
    assert_string_equal(children.killed, "1001:1 1002:1 1001:15 1002:15 1003:15 ");
}

static void come_int(void)
{
    world.at_each = NULL;
    come(SIGINT);
}

static void an_interrupt_ends_it_too(void **state)
{
    (void)state;
    world.at_each = come_int;
    children_end(1, 0); /* a child of somebody else */
    assert_int_equal(node_run(&opt, args), EXIT_STOPPED);
    assert_string_equal(world.notified, "READY=1\nSTATUS=serving;STOPPING=1\nSTATUS=draining;");
    assert_false(is_there("endpoints.json"));
    assert_true(is_there("fleet.json"));
}

static void end_late(void)
{
    if (world.now >= 100000 + 5 * BEAT && children.on_term < 0) {
        children.on_term = 0;
        children_end(CHILDREN_FIRST, SIGKILL);
        come(SIGTERM); /* the second one has it again */
        children_end(CHILDREN_FIRST + 1, SIGKILL);
    }
}

static void nothing_is_started_while_it_stops(void **state)
{
    (void)state;
    children.on_term = -1;
    world.at_each = end_late;
    world.stop_at = world.now + BEAT;
    assert_int_equal(node_run(&opt, args), EXIT_STOPPED);
    assert_int_equal(children.n, 2);
    assert_true(world.now >= 100000 + 5 * BEAT);
    assert_true(count("beat") >= 5); /* it says that it lives until then */
    assert_int_equal(strncmp(world.notified, "READY=1\nSTATUS=serving;STOPPING=1\n", 34), 0);
    assert_null(strstr(strstr(world.notified, "STOPPING") + 1, "STOPPING"));
}

/* ---- the fleet ---- */

static void it_is_ready_when_each_shard_has_a_leader_and_an_address(void **state)
{
    char text[16] = "";
    int fds[2];

    (void)state;
    for (uint32_t led = 0; led < 2; led++) {
        (void)set_up(state);
        assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
        opt.ready_fd = fds[1];
        world.shards[1].led = led == 1;
        (void)run_for(3 * BEAT);
        assert_int_equal(read(fds[0], text, sizeof text), led == 1 ? 6 : -1);
        assert_true(led == 0 || memcmp(text, "ready\n", 6) == 0);
        assert_int_equal(read(fds[0], text, sizeof text), led == 1 ? 0 : -1); /* once, and closed */
        assert_true((strstr(world.notified, "READY=1\nSTATUS=serving;") != NULL) == (led == 1));
        (void)close(fds[0]);
        if (led == 0) {
            (void)close(fds[1]);
        }
    }
}

static void a_shard_is_given_away_once_in_a_lease(void **state)
{
    (void)state;
    (void)snprintf(world.shards[0].node, sizeof world.shards[0].node, "one");
    (void)snprintf(world.shards[1].node, sizeof world.shards[1].node, "one");
    (void)run_for(2 * LEASE + BEAT);
    assert_int_equal(count("move 1 to two at 100000\n"), 1);
    assert_int_equal(count("move"), 3);
    assert_int_equal(count("move 1 to two at 106012\n"), 1);
}

static void grow(void)
{
    world.shards_n = world.now > 100000 + BEAT ? 3 : 2;
}

static void a_fleet_that_grows_has_a_process_more(void **state)
{
    (void)state;
    world.at_each = grow;
    (void)run_for(4 * BEAT);
    assert_int_equal(children.n, 3);
    assert_non_null(strstr(children.ran[2], "--shard 2/3 "));
    assert_non_null(strstr(children.killed, "1003:15"));
}

static uint32_t gateways;

static void end_gateways(void)
{
    static uint32_t known;

    known = gateways == 0 ? 2 : known;
    for (; known < children.n; known++) {
        gateways++;
        born[gateways] = world.now - 1;
        children_end(CHILDREN_FIRST + (pid_t)known, 256);
    }
}

static void the_gateway_begins_when_the_fleet_is_ready_and_again_when_it_ends(void **state)
{
    static const char *const GATEWAY[] = {"/bin/gateway", "--all", NULL};
    char want[160];

    (void)state;
    opt.gateway = GATEWAY;
    world.shards[1].led = false;
    (void)run_for(2 * BEAT);
    assert_int_equal(children.n, 2); /* never ready */
    (void)set_up(state);
    opt.gateway = GATEWAY;
    (void)run_for(2 * BEAT);
    assert_int_equal(children.n, 3);
    (void)snprintf(want, sizeof want, "/bin/gateway /bin/gateway --all [BATON_STATE=%s] [death %d]",
                   dir, SIGTERM);
    assert_string_equal(children.ran[2], want);
    assert_string_equal(children.killed, "1001:15 1002:15 1003:15 ");
    (void)set_up(state);
    opt.gateway = GATEWAY;
    opt.lease_ms = 0;
    gateways = 0;
    world.at_each = end_gateways;
    (void)run_for(3 * SOON + 2 * AGAIN);
    assert_true(gateways >= 4);
    assert_in_range(born[2] - born[1], SOON, SOON + 2);
    assert_in_range(born[3] - born[2], SOON, SOON + 2);
    assert_in_range(born[4] - born[3], AGAIN, AGAIN + 2);
}

static void a_directory_has_one_node(void **state)
{
    (void)state;
    world.locked = BT_CONFLICT;
    assert_int_equal(run_for(BEAT), EXIT_LOCKED);
    assert_int_equal(children.n, 0);
}

/* ---- before ---- */

static void come_hup_then_term(void)
{
    come(world.now < 104000 ? SIGHUP : SIGTERM);
}

static void shards_are_counted_when_the_server_answers(void **state)
{
    struct bt_error err;
    uint32_t n = 9;
    bool stop = true;

    (void)state;
    assert_int_equal(node_count_shards("postgresql://db", LEASE, &n, &stop, &err), BT_OK);
    assert_int_equal(n, 1); /* no tables */
    assert_false(stop);
    world.owner.shards = 4;
    world.failing = "look";
    world.code = BT_UNAVAILABLE;
    world.fails = 3;
    assert_int_equal(node_count_shards("postgresql://db", LEASE, &n, &stop, &err), BT_OK);
    assert_int_equal(n, 4);
    assert_int_equal(world.now, 103000);
    assert_string_equal(world.notified,
                        "READY=1\nSTATUS=standby: PostgreSQL does not answer;"); /* once */
    world.code = BT_INVALID;
    world.fails = 1;
    assert_int_equal(node_count_shards("postgresql://db", LEASE, &n, &stop, &err), BT_INVALID);
    assert_int_equal(world.now, 103000);
    world.failing = "open";
    world.code = BT_UNAVAILABLE;
    world.fails = UINT32_MAX;
    world.at_each = come_hup_then_term; /* only an end ends it */
    assert_int_equal(node_count_shards("postgresql://db", LEASE, &n, &stop, &err), BT_OK);
    assert_true(stop);
    assert_int_equal(world.now, 104000);
    assert_int_equal(world.looks, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_shard_is_a_process_with_a_directory_of_its_own),
        TEST(the_descriptor_of_the_node_is_its_own),
        TEST(fifty_nine_arguments_are_passed_on_and_no_more),
        TEST(it_says_that_it_lives_six_times_in_a_lease),
        TEST(a_database_that_is_away_is_asked_again),
        TEST(a_shard_that_was_asked_to_stop_or_cannot_go_on_ends_its_node),
        TEST(who_dies_soon_three_times_waits_longer),
        TEST(a_shard_that_cannot_be_started_is_tried_again_a_second_later),
        TEST(a_hang_up_goes_to_the_shards),
        TEST(an_interrupt_ends_it_too),
        TEST(nothing_is_started_while_it_stops),
        TEST(it_is_ready_when_each_shard_has_a_leader_and_an_address),
        TEST(a_shard_is_given_away_once_in_a_lease),
        TEST(a_fleet_that_grows_has_a_process_more),
        TEST(the_gateway_begins_when_the_fleet_is_ready_and_again_when_it_ends),
        TEST(a_directory_has_one_node),
        TEST(shards_are_counted_when_the_server_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
