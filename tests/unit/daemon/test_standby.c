/* A daemon that waits until it may lead: the server of the journal, the clock and the signals are
 * the test's. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/owner.h"
#include "supervisor/signals.h"
#include "supervisor/standby.h"
#include "tests/support/cmocka.h"

enum { NOW = 1000000, STEPS_MAX = 16, TRACE = 4096 };

/* The answer of the server at each look; the last one stays. */
struct step {
    enum bt_code code; /* of the look */
    struct journal_owner is;
    enum bt_code opens; /* what an attempt to lead comes to */
    int64_t leave_ms;   /* to others */
};

static struct {
    struct step steps[STEPS_MAX];
    uint32_t n, at;
    char trace[TRACE];
    int signal_in; /* the wait of this number is ended by it */
    int signal;
    int waits;
    msec now;
    int pipe[2];
    uint64_t rewound_kept, rewound_lost;
} w;

static struct journal *const THE_JOURNAL = (struct journal *)&w;

msec __wrap_clock_mono_ms(void);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

msec __wrap_clock_mono_ms(void)
{
    return w.now;
}

static void note(const char *fmt, ...) BT_PRINTF(1, 2);
static void note(const char *fmt, ...)
{
    const size_t at = strlen(w.trace);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(w.trace + at, sizeof w.trace - at, fmt, args);
    va_end(args);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    const struct signalfd_siginfo info = {.ssi_signo = (uint32_t)w.signal};

    assert_int_equal(n, 1);
    assert_int_equal(fds[0].fd, w.pipe[0]);
    note("%d ", timeout);
    if (++w.waits == w.signal_in) {
        assert_int_equal(write(w.pipe[1], &info, sizeof info), sizeof info);
        return 1;
    }
    assert_true(w.waits < 100);
    w.now += (msec)timeout;
    return 0;
}

static const struct step *step(void)
{
    return &w.steps[w.at < w.n ? w.at : w.n - 1];
}

/* ---- the server ---- */

enum bt_code journal_lock_dir(const char *dir, struct bt_error *err)
{
    note("lock:%s ", dir);
    return strcmp(dir, "/locked") == 0 ? err_set(err, BT_CONFLICT, "it is locked") : BT_OK;
}

enum bt_code journal_look_open(const char *url, uint32_t lease_ms, uint32_t shard,
                               struct journal_look **ret, struct bt_error *err)
{
    note("connect:%s/%u/%u ", url, lease_ms, shard);
    if (step()->code != BT_OK) {
        w.at++;
        return err_set(err, w.steps[w.at - 1].code, "the server is away");
    }
    *ret = (struct journal_look *)&w;
    return BT_OK;
}

enum bt_code journal_look_expand(struct journal_look *l, struct bt_error *err)
{
    (void)err;
    assert_ptr_equal(l, &w);
    note("expand ");
    return BT_OK;
}

enum bt_code journal_look(struct journal_look *l, struct journal_owner *ret, struct bt_error *err)
{
    const struct step *s = step();

    assert_ptr_equal(l, &w);
    w.at++;
    *ret = s->is;
    return s->code == BT_OK ? BT_OK : err_set(err, s->code, "the server is away");
}

enum bt_code journal_look_beat(struct journal_look *l, const char *node, const char *places,
                               const char *config, struct bt_error *err)
{
    (void)l;
    (void)err;
    assert_string_equal(places, "");
    note("beat:%s/%s ", node, config);
    return BT_OK;
}

enum bt_code journal_look_rewound(struct journal_look *l, uint64_t kept_seq, uint64_t lost_seq,
                                  struct bt_error *err)
{
    (void)l;
    (void)err;
    note("rewound:%llu/%llu ", (unsigned long long)kept_seq, (unsigned long long)lost_seq);
    return BT_OK;
}

enum bt_code journal_look_wait(struct journal_look *l, const char *node, int64_t *ret_ms,
                               struct bt_error *err)
{
    (void)l;
    (void)err;
    note("share:%s ", node);
    *ret_ms = w.steps[w.at > w.n ? w.n - 1 : w.at - 1].leave_ms;
    return BT_OK;
}

void journal_look_close(struct journal_look *l)
{
    note(l != NULL ? "close " : "");
}

enum bt_code journal_open(const char *url, const struct journal_options *opt, struct journal **ret,
                          struct bt_error *err)
{
    const enum bt_code code = w.steps[w.at == 0 ? 0 : w.at > w.n ? w.n - 1 : w.at - 1].opens;

    (void)opt;
    note("open:%s ", url);
    *ret = code == BT_OK ? THE_JOURNAL : NULL;
    return code == BT_OK ? BT_OK : err_set(err, code, "it does not open");
}

uint64_t journal_boot(const struct journal *j)
{
    assert_ptr_equal(j, THE_JOURNAL);
    return 7;
}

/* ---- one daemon ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.now = NOW;
    log_setup(LOG_ERR, NULL, NULL);
    return pipe(w.pipe);
}

static int tear_down(void **state)
{
    (void)state;
    (void)close(w.pipe[0]);
    (void)close(w.pipe[1]);
    return 0;
}

static void add(const struct step *s)
{
    assert_true(w.n < STEPS_MAX);
    w.steps[w.n] = *s;
    w.steps[w.n].is.format_known = 3;
    w.n++;
}

#define LEADS(ms)                                                                                  \
    {                                                                                              \
        .is = {                                                                                    \
            .node = "other",                                                                       \
            .shards = 1,                                                                           \
            .epoch = 1,                                                                            \
            .seq = 5,                                                                              \
            .format = 3,                                                                           \
            .lease_left_ms = (ms)                                                                  \
        }                                                                                          \
    }
#define FREE                                                                                       \
    {                                                                                              \
        .is = {.node = "other", .shards = 1, .epoch = 1, .seq = 5, .format = 3 }                   \
    }
#define AWAY                                                                                       \
    {                                                                                              \
        .code = BT_UNAVAILABLE                                                                     \
    }

static enum bt_code stands_by(const struct step *steps, size_t n, uint32_t shards,
                              const struct journal_options *more, bool *ret_stop,
                              struct bt_error *err)
{
    struct journal_options opt =
        more != NULL ? *more : (struct journal_options){.node = "me", .config = "hash"};
    const struct standby_options by = {.state_dir = "/state",
                                       .fleet_url = "pg",
                                       .journal = &opt,
                                       .shards = shards,
                                       .signals = w.pipe[0]};
    struct journal *j = NULL;
    enum bt_code code;

    for (size_t i = 0; i < n; i++) {
        add(&steps[i]);
    }
    code = standby_open(&by, &j, ret_stop, err);
    assert_true((j == THE_JOURNAL) == (code == BT_OK && !*ret_stop));
    return code;
}

static void leads(const struct step *steps, size_t n, uint32_t shards, const char *trace)
{
    struct bt_error err;
    bool stop;

    assert_int_equal(stands_by(steps, n, shards, NULL, &stop, &err), BT_OK);
    assert_false(stop);
    assert_string_equal(w.trace, trace);
}

static void without_a_fleet_the_journal_is_that_of_the_directory(void **state)
{
    const struct journal_options opt = {.node = ""};
    const struct standby_options by = {
        .state_dir = "/state", .fleet_url = "", .journal = &opt, .signals = -1};
    struct journal *j = NULL;
    struct bt_error err;
    bool stop = true;

    (void)state;
    assert_int_equal(standby_open(&by, &j, &stop, &err), BT_OK);
    assert_ptr_equal(j, THE_JOURNAL);
    assert_false(stop);
    assert_string_equal(w.trace, "open:/state ");
}

static void a_directory_that_another_daemon_has_is_none_to_wait_in(void **state)
{
    const struct journal_options opt = {.node = "me"};
    const struct standby_options by = {
        .state_dir = "/locked", .fleet_url = "pg", .journal = &opt, .signals = -1};
    struct journal *j = NULL;
    struct bt_error err;
    bool stop = true;

    (void)state;
    assert_int_equal(standby_open(&by, &j, &stop, &err), BT_CONFLICT);
    assert_string_equal(w.trace, "lock:/locked ");
    assert_false(stop);
    assert_null(j);
}

static void who_finds_nobody_leading_leads_at_once(void **state)
{
    const struct step steps[] = {FREE};

    (void)state;
    leads(steps, 1, 0, "lock:/state connect:pg/3000/0 expand beat:me/hash open:pg close ");
}

static void a_journal_without_tables_has_no_nodes(void **state)
{
    const struct step steps[] = {{.is = {.format = 0}}};

    (void)state;
    leads(steps, 1, 1, "lock:/state connect:pg/3000/0 expand open:pg close ");
}

static void it_looks_three_times_in_a_lease_and_when_the_lease_is_over(void **state)
{
    const struct step steps[] = {LEADS(3000), LEADS(991), LEADS(990), LEADS(500), LEADS(1), FREE};

    (void)state;
    leads(steps, 6, 0,
          "lock:/state connect:pg/3000/0 expand beat:me/hash 1000 beat:me/hash 1000 beat:me/hash "
          "1000 beat:me/hash 510 beat:me/hash 11 beat:me/hash open:pg close ");
}

static void of_several_shards_it_looks_ten_times_and_leaves_them_to_others(void **state)
{
    struct step steps[] = {LEADS(3000), LEADS(100), FREE, FREE, FREE};
    const struct journal_options opt = {.node = "me", .shard = 2, .lease_ms = 2000};
    struct bt_error err;
    bool stop;

    (void)state;
    steps[2].leave_ms = 5000;
    steps[3].leave_ms = 50;
    for (size_t i = 0; i < 5; i++) {
        steps[i].is.shards = 4;
    }
    assert_int_equal(stands_by(steps, 5, 4, &opt, &stop, &err), BT_OK);
    assert_string_equal(w.trace, "lock:/state connect:pg/2000/2 expand 200 110 share:me 200 "
                                 "share:me 50 share:me open:pg close ");
}

static void who_was_slower_looks_again_at_once(void **state)
{
    struct step steps[] = {FREE, FREE};

    (void)state;
    steps[0].opens = BT_CONFLICT;
    leads(steps, 2, 0,
          "lock:/state connect:pg/3000/0 expand beat:me/hash open:pg 10 beat:me/hash open:pg "
          "close ");
}

/* The owner has lost the server, too: it has a lease's time to go on. */
static void after_the_server_was_away_its_owner_has_a_lease_to_come_back(void **state)
{
    const struct step steps[] = {AWAY, LEADS(700), AWAY, AWAY, FREE, FREE, FREE, FREE};

    (void)state;
    leads(steps, 8, 0,
          "lock:/state connect:pg/3000/0 1000 connect:pg/3000/0 expand beat:me/hash 710 close 1000 "
          "connect:pg/3000/0 1000 connect:pg/3000/0 expand beat:me/hash 1000 beat:me/hash 1000 "
          "beat:me/hash 1000 beat:me/hash open:pg close ");
}

static void a_journal_that_nobody_had_is_taken_when_the_server_is_back(void **state)
{
    struct step steps[] = {AWAY, FREE};

    (void)state;
    steps[1].is.node[0] = 0;
    leads(steps, 2, 0,
          "lock:/state connect:pg/3000/0 1000 connect:pg/3000/0 expand beat:me/hash open:pg "
          "close ");
}

static void an_attempt_without_the_server_is_made_again(void **state)
{
    struct step steps[] = {FREE, FREE};

    (void)state;
    steps[0].opens = BT_UNAVAILABLE;
    leads(steps, 2, 0,
          "lock:/state connect:pg/3000/0 expand beat:me/hash open:pg 1000 beat:me/hash open:pg "
          "close ");
}

/* Another server has the journal, and lacks what the one before had. */
static void events_that_are_gone_are_written_down(void **state)
{
    struct step steps[] = {LEADS(500), LEADS(500), LEADS(500), LEADS(500), FREE};

    (void)state;
    steps[0].is.seq = 9;
    steps[1].is.seq = 8; /* of the same owner: those up to 8 are as they were */
    steps[2].is.epoch = 3;
    steps[2].is.seq = 4; /* it was taken meanwhile: nobody knows */
    steps[3].is.epoch = 2;
    steps[3].is.seq = 6;
    steps[4].is.epoch = 2;
    steps[4].is.seq = 6;
    leads(steps, 5, 0,
          "lock:/state connect:pg/3000/0 expand beat:me/hash 510 beat:me/hash rewound:8/9 510 "
          "beat:me/hash rewound:0/8 510 beat:me/hash rewound:0/4 510 beat:me/hash open:pg close ");
}

static void what_no_wait_changes_ends_it(void **state)
{
    static const struct {
        int format;
        enum durability durability;
        const char *standbys;
        uint32_t shards, mine;
        enum bt_code code;
        const char *says;
    } cases[] = {
        {4, DURABILITY_POWER, "", 1, 0, BT_INVALID, "format 4"},
        {3, DURABILITY_REPLICATED, "", 1, 0, BT_INVALID, "synchronous_standby_names"},
        {3, DURABILITY_REPLICATED, "x", 1, 0, BT_OK, ""},
        {3, DURABILITY_POWER, "", 4, 3, BT_IO, "4 shards now, and this process was started for 3"},
        {3, DURABILITY_POWER, "", 2, 0, BT_IO, "2 shards now, and this process was started for 1"},
        {3, DURABILITY_POWER, "", 4, 4, BT_OK, ""},
        {3, DURABILITY_POWER, "", 1, 0, BT_OK, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct step s = FREE;
        const struct journal_options opt = {.node = "me", .durability = cases[i].durability};
        struct bt_error err = {.msg = ""};
        bool stop;
        (void)tear_down(state);
        assert_int_equal(set_up(state), 0);
        s.is.format = cases[i].format;
        s.is.shards = cases[i].shards;
        (void)snprintf(s.is.standbys, sizeof s.is.standbys, "%s", cases[i].standbys);
        assert_int_equal(stands_by(&s, 1, cases[i].mine, &opt, &stop, &err), cases[i].code);
        assert_non_null(strstr(err.msg, cases[i].says));
        assert_false(stop);
    }
}

static void a_signal_to_end_ends_the_wait_and_no_other(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    const struct step steps[] = {LEADS(3000), LEADS(3000), FREE};

    for (size_t i = 0; i < 3; i++) {
        struct bt_error err;
        bool stop = false;
        (void)tear_down(state);
        assert_int_equal(set_up(state), 0);
        w.signal = signals[i];
        w.signal_in = 2;
        assert_int_equal(stands_by(steps, 3, 0, NULL, &stop, &err), BT_OK);
        assert_int_equal(stop, i < 2);
        assert_int_equal(w.waits, 2);
        assert_int_equal(strstr(w.trace, "open:") == NULL, i < 2);
        assert_non_null(strstr(w.trace, "close "));
    }
}

/* The system's name of this host; NULL = it has none. */
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

static void a_node_without_a_name_has_that_of_its_host(void **state)
{
    static const char longest[] =
        "a-host-whose-name-has-as-many-characters-as-the-system-allows-64";
    const struct step s = FREE;
    const struct journal_options opts[] = {{.node = ""}, {.node = NULL}};
    struct bt_error err;
    char want[300];
    bool stop;

    (void)state;
    assert_int_equal(strlen(longest), JOURNAL_NODE_MAX);
    for (size_t i = 0; i < 4; i++) {
        host_name = i < 2 ? longest : NULL;
        assert_int_equal(stands_by(&s, 1, 0, &opts[i % 2], &stop, &err), BT_OK);
        (void)snprintf(want, sizeof want, "beat:%s/ ", i < 2 ? longest : "unknown");
        assert_non_null(strstr(w.trace, want));
    }
}

/* ---- the service manager ---- */

static int listener(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)unlink(path);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static const char *told(int fd)
{
    static char text[600];
    const ssize_t n = recv(fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = 0;
    return text;
}

static void the_service_manager_is_told_each_thing_once(void **state)
{
    const struct step steps[] = {AWAY, LEADS(500), LEADS(500), AWAY, FREE, FREE, FREE, FREE};
    char path[64];
    struct bt_error err;
    bool stop;
    int fd;

    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/baton-standby-%d", (int)getpid());
    fd = listener(path);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    assert_int_equal(stands_by(steps, 8, 0, NULL, &stop, &err), BT_OK);
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_string_equal(told(fd), "READY=1\nSTATUS=standby: the server is away");
    assert_string_equal(told(fd), "READY=1\nSTATUS=standby: the node \"other\" leads");
    assert_string_equal(told(fd), "READY=1\nSTATUS=standby: the server is away");
    assert_string_equal(told(fd), "READY=1\nSTATUS=standby: the server is back: its owner goes on, "
                                  "or this node leads after a lease");
    assert_string_equal(told(fd), "");
    (void)close(fd);
    (void)unlink(path);
}

static void of_several_shards_it_says_which_one_is_led(void **state)
{
    struct step steps[] = {LEADS(500), FREE};
    const struct journal_options opt = {.node = "me", .shard = 3};
    char path[64];
    struct bt_error err;
    bool stop;
    int fd;

    (void)state;
    steps[0].is.shards = steps[1].is.shards = 4;
    (void)snprintf(path, sizeof path, "/tmp/baton-standby-%d", (int)getpid());
    fd = listener(path);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    assert_int_equal(stands_by(steps, 2, 4, &opt, &stop, &err), BT_OK);
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_string_equal(told(fd), "READY=1\nSTATUS=standby: the node \"other\" leads shard 3");
    (void)close(fd);
    (void)unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_fleet_the_journal_is_that_of_the_directory),
        TEST(a_directory_that_another_daemon_has_is_none_to_wait_in),
        TEST(who_finds_nobody_leading_leads_at_once),
        TEST(a_journal_without_tables_has_no_nodes),
        TEST(it_looks_three_times_in_a_lease_and_when_the_lease_is_over),
        TEST(of_several_shards_it_looks_ten_times_and_leaves_them_to_others),
        TEST(who_was_slower_looks_again_at_once),
        TEST(after_the_server_was_away_its_owner_has_a_lease_to_come_back),
        TEST(a_journal_that_nobody_had_is_taken_when_the_server_is_back),
        TEST(an_attempt_without_the_server_is_made_again),
        TEST(events_that_are_gone_are_written_down),
        TEST(what_no_wait_changes_ends_it),
        TEST(a_signal_to_end_ends_the_wait_and_no_other),
        TEST(a_node_without_a_name_has_that_of_its_host),
        TEST(the_service_manager_is_told_each_thing_once),
        TEST(of_several_shards_it_says_which_one_is_led),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
