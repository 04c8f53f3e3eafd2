/* The bridge between a daemon and a stream that are both in memory: what is read, what is put, what
 * it waits for, and what it refuses. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baton/client.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/page.h"
#include "protocol/wire/doc.h"
#include "supervisor/bridge/bridge.h"
#include "supervisor/bridge/stream.h"
#include "tests/support/cmocka.h"

enum {
    EVENTS_MAX = 16,
    TEXT = 2048,
    LOG_MAX = 65536,
    FAILS_MAX = 8,
    PAUSE = 200,
    PAUSE_LONG = 2000,
    REPEAT = 60000,
    STOP_FD = 77
};

struct bt_client {
    int unused;
};
struct nats {
    int unused;
};
struct stream {
    int unused;
};

/* A failure of a call, the next time that it is called, and so many times. */
struct fail {
    const char *call;
    enum bt_code code;
    uint32_t times;
    const char *words; /* NULL = "away" */
};

static struct {
    struct bt_client client;
    struct nats nats;
    struct stream stream;
    uint32_t clients, servers, streams; /* opened, and not closed */
    uint32_t shards;                    /* of the fleet */
    uint64_t seqs[EVENTS_MAX];          /* of the daemon's events */
    const char *ids[EVENTS_MAX];        /* NULL: "e-SEQ" */
    uint32_t n, page_max;
    struct msg_seq_range deleted[4];
    uint32_t deleted_n;
    uint64_t next_seq, last_seq; /* of the answers, when not 0 */
    uint64_t history;            /* HISTORY_CHANGED: read again from there; 0 = no */
    struct buf events[EVENTS_MAX];
    uint32_t page_at, page_end;
    struct stream_at at;
    bool few; /* memory is short from here on */
    int left, begins_with;
    const char *goal;
    bool up, closed, closes; /* after a failed stream_settle */
    struct fail fails[FAILS_MAX];
    uint32_t fails_n;
    char log[LOG_MAX]; /* the calls */
    size_t log_n;
    msec now, stop_at;
    char said[TEXT * 4]; /* of the log of the program */
} world;

static struct options opt;
static struct bt_error err;

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(world.log + world.log_n, sizeof world.log - world.log_n, fmt, args);
    va_end(args);
    assert_true(n >= 0 && world.log_n + (size_t)n < sizeof world.log);
    world.log_n += (size_t)n;
}

static enum bt_code outcome(const char *call, struct bt_error *e)
{
    for (uint32_t i = 0; i < world.fails_n; i++) {
        struct fail *f = &world.fails[i];
        if (strcmp(f->call, call) == 0 && f->times > 0) {
            f->times--;
            return err_set(e, f->code, "%s: %s", call, f->words != NULL ? f->words : "away");
        }
    }
    return BT_OK;
}

static void let_fail(const char *call, enum bt_code code, uint32_t times)
{
    assert_true(world.fails_n < FAILS_MAX);
    world.fails[world.fails_n++] = (struct fail){.call = call, .code = code, .times = times};
}

/* ---- time ---- */

msec __wrap_clock_mono_ms(void);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

msec __wrap_clock_mono_ms(void)
{
    return world.now;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    assert_int_equal(n, 1);
    assert_int_equal(fds[0].fd, STOP_FD);
    assert_int_equal(fds[0].events, POLLIN);
    if (timeout > 0) {
        note("pause %d\n", timeout);
    }
    if (world.now + (msec)timeout >= world.stop_at) {
        world.now = world.now > world.stop_at ? world.now : world.stop_at;
        return 1;
    }
    world.now += (msec)timeout;
    return 0;
}

/* ---- memory ---- */

void *__real_realloc(void *at, size_t n);
void *__wrap_realloc(void *at, size_t n);

/* While an event is on its way, so many allocations succeed. */
void *__wrap_realloc(void *at, size_t n)
{
    return world.few && world.left-- <= 0 ? NULL : __real_realloc(at, n);
}

/* ---- the daemon ---- */

enum bt_code bt_client_open(const char *state_dir, struct bt_client **ret, struct bt_error *e)
{
    const enum bt_code code = outcome("client", e);

    assert_string_equal(state_dir, "state");
    if (code == BT_OK) {
        *ret = &world.client;
        world.clients++;
    }
    return code;
}

void bt_client_close(struct bt_client *c)
{
    world.clients -= c != NULL ? 1 : 0;
}

enum bt_code bt_client_shards(struct bt_client *c, uint32_t *ret, struct bt_error *e)
{
    assert_ptr_equal(c, &world.client);
    *ret = world.shards;
    return outcome("shards", e);
}

static enum bt_code read_page(const char *of, const struct msg_events_read *q, uint32_t timeout_ms,
                              struct client_page *page, struct bt_error *e)
{
    const enum bt_code code = outcome("read", e);
    uint32_t n = 0;

    note("%s from %" PRIu64 " limit %" PRIu64 " wait %" PRIu64 " within %u after %.*s\n", of,
         q->from_seq, (uint64_t)q->limit, (uint64_t)q->wait_ms, timeout_ms,
         STR_ARG(q->after_event_id));
    page->deleted_n = 0;
    page->last_seq = world.last_seq != 0 ? world.last_seq
                     : world.n > 0       ? world.seqs[world.n - 1]
                                         : 0;
    if (code != BT_OK) {
        return code;
    }
    if (world.history > 0 && q->after_event_id.len > 0) {
        page->next_seq = world.history;
        return err_set(e, BT_HISTORY_CHANGED, "history changed");
    }
    world.page_at = 0;
    while (world.page_at < world.n && world.seqs[world.page_at] < q->from_seq) {
        world.page_at++;
    }
    world.page_end = world.page_at;
    while (world.page_end < world.n && n < q->limit && n < world.page_max) {
        world.page_end++;
        n++;
    }
    page->next_seq =
        world.page_end < world.n ? world.seqs[world.page_end - 1] + 1 : page->last_seq + 1;
    page->next_seq = world.next_seq != 0 ? world.next_seq : page->next_seq;
    page->deleted = world.deleted;
    page->deleted_n = world.deleted_n;
    page->last_event_id = n > 0 ? str_from("last-of-page") : (struct str){NULL, 0};
    if (q->wait_ms > 0) {
        world.now += q->wait_ms;
    }
    return BT_OK;
}

enum bt_code client_page_read(struct bt_client *c, const struct msg_events_read *query,
                              uint32_t timeout_ms, struct client_page *page, struct bt_error *e)
{
    assert_ptr_equal(c, &world.client);
    return read_page("read", query, timeout_ms, page, e);
}

enum bt_code client_page_of_shard(struct bt_client *c, uint32_t shard,
                                  const struct msg_events_read *query, uint32_t timeout_ms,
                                  struct client_page *page, struct bt_error *e)
{
    char of[TEXT];

    assert_ptr_equal(c, &world.client);
    (void)snprintf(of, sizeof of, "read of %u", shard);
    return read_page(of, query, timeout_ms, page, e);
}

bool client_page_next(struct client_page *page, struct doc *ret)
{
    const uint32_t i = world.page_at;
    char json[TEXT];
    char id[TEXT];

    (void)page;
    if (i >= world.page_end) {
        return false;
    }
    world.page_at++;
    (void)snprintf(id, sizeof id, "e-%" PRIu64, world.seqs[i]);
    (void)snprintf(json, sizeof json, "{\"eventId\":\"%s\",\"seq\":%" PRIu64 ",\"goal\":\"%s\"}",
                   world.ids[i] != NULL ? world.ids[i] : id, world.seqs[i],
                   world.goal != NULL ? world.goal : "<\\u2028");
    buf_done(&world.events[i]);
    buf_init(&world.events[i], 4096);
    assert_int_equal(json_to_doc(str_from(json), NULL, &world.events[i], NULL), BT_OK);
    *ret = doc_from_buf(&world.events[i]);
    world.few = world.begins_with >= 0;
    world.left = world.begins_with;
    return true;
}

void client_page_done(struct client_page *page)
{
    (void)page;
}

/* ---- the server ---- */

enum bt_code nats_open(const struct options *o, struct nats **ret, struct bt_error *e)
{
    const enum bt_code code = outcome("nats", e);

    note("connect\n");
    assert_ptr_equal(o, &opt);
    if (code == BT_OK) {
        *ret = &world.nats;
        world.servers++;
        world.closed = false;
    }
    return code;
}

void nats_free(struct nats *n)
{
    world.servers -= n != NULL ? 1 : 0;
}

bool nats_is_up(const struct nats *n)
{
    assert_ptr_equal(n, &world.nats);
    return world.up;
}

bool nats_is_closed(const struct nats *n)
{
    assert_ptr_equal(n, &world.nats);
    return world.closed;
}

enum bt_code stream_new(const struct options *o, struct nats *n, struct stream **ret,
                        struct bt_error *e)
{
    const enum bt_code code = outcome("new", e);

    assert_ptr_equal(o, &opt);
    assert_ptr_equal(n, &world.nats);
    if (code == BT_OK) {
        *ret = &world.stream;
        world.streams++;
    }
    return code;
}

void stream_free(struct stream *s)
{
    world.streams -= s != NULL ? 1 : 0;
}

const char *stream_name(const struct stream *s)
{
    assert_ptr_equal(s, &world.stream);
    return "BATON_main";
}

enum bt_code stream_sync(struct stream *s, bool make, struct stream_at *ret, struct bt_error *e)
{
    assert_ptr_equal(s, &world.stream);
    note("sync %s\n", make ? "make" : "look");
    *ret = world.at;
    return outcome("sync", e);
}

enum bt_code stream_put(struct stream *s, const struct stream_event *ev, struct bt_error *e)
{
    const enum bt_code code = outcome("put", e);

    world.few = false;
    assert_ptr_equal(s, &world.stream);
    note("put %" PRIu64 " after %" PRIu64 " %.*s\n", ev->seq, ev->prev, (int)ev->n, ev->json);
    if (code == BT_OK) {
        world.at.seq = ev->seq;
        (void)snprintf(world.at.event_id, sizeof world.at.event_id, "e-%" PRIu64, ev->seq);
    }
    return code;
}

enum bt_code stream_settle(struct stream *s, struct bt_error *e)
{
    assert_ptr_equal(s, &world.stream);
    const enum bt_code code = outcome("settle", e);

    note("settle\n");
    world.closed = world.closes && code != BT_OK;
    return code;
}

/* ---- the tests ---- */

static void see_log(enum log_level level, const char *event, const char *text, void *self)
{
    const size_t n = strlen(world.said);

    (void)level;
    (void)self;
    (void)snprintf(world.said + n, sizeof world.said - n, "%s %s\n", event, text);
}

static void events(uint32_t n, const uint64_t *seqs)
{
    memcpy(world.seqs, seqs, n * sizeof *seqs);
    world.n = n;
}

/* A daemon with the events 1 to 3, and a stream that is new. */
static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    log_setup(LOG_INFO, see_log, NULL);
    events(3, (uint64_t[]){1, 2, 3});
    world.page_max = EVENTS_MAX;
    world.shards = 1;
    world.up = true;
    world.now = 1000;
    world.stop_at = 1000000;
    world.begins_with = -1;
    opt = (struct options){.state = "state", .name = "main", .once = true};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        buf_done(&world.events[i]);
    }
    assert_int_equal(world.clients, 0);
    assert_int_equal(world.servers, 0);
    assert_int_equal(world.streams, 0);
    return 0;
}

static void run(enum bt_code want, const char *says)
{
    const enum bt_code code = bridge_run(&opt, STOP_FD, &err);

    if (code != want) {
        fail_msg("%s: %s\n%s", bt_code_name(code), code != BT_OK ? err.msg : "", world.log);
    }
    if (want != BT_OK && strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
}

static void expect_log(const char *want)
{
    if (strcmp(world.log, want) != 0) {
        fail_msg("is:\n%s\nwant:\n%s", world.log, want);
    }
}

static uint32_t count(const char *what)
{
    uint32_t n = 0;

    for (const char *at = strstr(world.log, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

#define E(n) "{\"eventId\":\"e-" #n "\",\"seq\":" #n ",\"goal\":\"<\\u2028\"}"

static void once_copies_what_the_daemon_has(void **state)
{
    (void)state;
    run(BT_OK, NULL);
    expect_log("connect\nsync make\n"
               "read from 1 limit 1 wait 0 within 5000 after \n"
               "read from 1 limit 1000 wait 0 within 5000 after \n"
               "put 1 after 0 " E(1) "\nput 2 after 1 " E(2) "\nput 3 after 2 " E(3) "\n"
                                                                                     "settle\n");
}

static void it_goes_on_behind_what_the_stream_has(void **state)
{
    (void)state;
    world.at = (struct stream_at){.seq = 2, .event_id = "e-2"};
    run(BT_OK, NULL);
    expect_log("connect\nsync make\n"
               "read from 2 limit 1 wait 0 within 5000 after \n"
               "read from 3 limit 1000 wait 0 within 5000 after e-2\n"
               "put 3 after 2 " E(3) "\nsettle\n");
}

static void pages_follow_each_other_and_are_settled_at_the_end(void **state)
{
    (void)state;
    world.page_max = 2;
    run(BT_OK, NULL);
    expect_log("connect\nsync make\n"
               "read from 1 limit 1 wait 0 within 5000 after \n"
               "read from 1 limit 1000 wait 0 within 5000 after \n"
               "put 1 after 0 " E(1) "\nput 2 after 1 " E(
                   2) "\n"
                      "read from 3 limit 1000 wait 0 within 5000 after last-of-page\n"
                      "put 3 after 2 " E(3) "\nsettle\n");
}

static void then_it_waits_for_events_until_it_is_stopped(void **state)
{
    (void)state;
    opt.once = false;
    world.stop_at = world.now + 2500;
    run(BT_OK, NULL);
    assert_int_equal(count("read from 4 limit 1000 wait 1000 within 6000 after "), 3);
    assert_int_equal(count("settle"), 4);
    assert_int_equal(count("sync"), 1);
    (void)tear_down(state);
    (void)set_up(state);
    opt.once = false;
    world.stop_at = 0;
    run(BT_OK, NULL);
    assert_int_equal(count("put"), 0); /* it was told before */
}

static void a_shard_is_read_by_its_number(void **state)
{
    (void)state;
    world.shards = opt.shards = 4;
    opt.shard = 2;
    run(BT_OK, NULL);
    assert_int_equal(count("read of 2 from 1 "), 2);
    opt.shards = 3;
    run(BT_INVALID, "--shard: the fleet has 4 shards, not 3");
    opt.shards = 0;
    run(BT_INVALID, "--shard: the fleet has 4 shards, not 1");
    world.shards = 1;
    opt.shards = 1;
    run(BT_OK, NULL);
}

static void ranges_that_were_deleted_are_gone_over(void **state)
{
    (void)state;
    events(3, (uint64_t[]){3, 4, 9});
    world.deleted[0] = (struct msg_seq_range){.from_seq = 1, .to_seq = 1};
    world.deleted[1] = (struct msg_seq_range){.from_seq = 2, .to_seq = 2};
    world.deleted[2] = (struct msg_seq_range){.from_seq = 5, .to_seq = 8};
    world.deleted[3] = (struct msg_seq_range){.from_seq = 10, .to_seq = 12};
    world.deleted_n = 4;
    world.last_seq = 12;
    run(BT_OK, NULL);
    assert_int_equal(count("put"), 3);
    assert_int_equal(count("put 3 after 0 "), 1);
    assert_int_equal(count("put 4 after 3 "), 1);
    assert_int_equal(count("put 9 after 4 "), 1);
}

static void a_range_that_began_before_counts_from_here_on(void **state)
{
    (void)state;
    events(1, (uint64_t[]){6});
    world.at = (struct stream_at){.seq = 3, .event_id = ""};
    world.deleted[0] = (struct msg_seq_range){.from_seq = 1, .to_seq = 2}; /* long ago */
    world.deleted[1] = (struct msg_seq_range){.from_seq = 2, .to_seq = 5};
    world.deleted_n = 2;
    run(BT_OK, NULL);
    assert_int_equal(count("put 6 after 3 "), 1);
}

static void a_gap_that_nobody_deleted_is_not_put(void **state)
{
    (void)state;
    events(3, (uint64_t[]){1, 2, 5});
    run(BT_CONFLICT, "the daemon does not show the events 3 to 4, which were not deleted");
    assert_int_equal(count("put"), 2);
    (void)tear_down(state);
    (void)set_up(state);
    world.next_seq = 6;
    run(BT_CONFLICT, "does not show the events 4 to 5");
    assert_int_equal(count("put"), 3);
    assert_int_equal(count("settle"), 0);
}

static void a_stream_of_another_journal_is_refused(void **state)
{
    (void)state;
    world.at = (struct stream_at){.seq = 3, .event_id = "e-3"};
    run(BT_OK, NULL);
    world.at.seq = 4;
    run(BT_CONFLICT, "the stream BATON_main ends with event 4, and the daemon has 3");
    world.at = (struct stream_at){.seq = 3, .event_id = "other"};
    run(BT_CONFLICT, "event 3 is e-3 in the daemon and other in the stream BATON_main");
    world.at.event_id[0] = 0; /* nothing to compare */
    run(BT_OK, NULL);
    assert_int_equal(count("put"), 0);
}

static void an_event_that_was_deleted_is_not_compared(void **state)
{
    (void)state;
    events(2, (uint64_t[]){1, 4});
    world.deleted[0] = (struct msg_seq_range){.from_seq = 2, .to_seq = 3};
    world.deleted_n = 1;
    world.at = (struct stream_at){.seq = 2, .event_id = "e-2"};
    run(BT_OK, NULL);
    assert_int_equal(count("put 4 after 2 "), 1);
}

static void of_a_failover_it_is_said_from_where_on(void **state)
{
    static const char SAYS[] = "a failover lost events that the stream BATON_main has, from event 2"
                               " on, and their numbers are used again";

    (void)state;
    world.history = 2;
    world.at = (struct stream_at){.seq = 3, .event_id = "e-3"};
    run(BT_CONFLICT, SAYS); /* read_next */
    world.at = (struct stream_at){.seq = 3, .event_id = "other"};
    run(BT_CONFLICT, SAYS);
    assert_int_equal(count("read from 4 limit 1 wait 0 within 5000 after other\n"), 1);
    world.at = (struct stream_at){.seq = 4, .event_id = "e-4"};
    run(BT_CONFLICT, SAYS);
    world.history = 1; /* it knows of none */
    run(BT_CONFLICT, "the stream BATON_main ends with event 4, and the daemon has 3");
}

/* The text, and then what JavaScript takes for the end of a line. */
static void an_event_that_there_is_no_memory_for_is_not_put(void **state)
{
    static char goal[1024];
    int fails = 0;

    (void)state;
    for (size_t n = 0; n + 7 < sizeof goal;) {
        n += (size_t)snprintf(goal + n, sizeof goal - n, "\\u2028");
    }
    for (int left = 0; left < 20; left++) {
        enum bt_code code;
        (void)tear_down(state);
        (void)set_up(state);
        world.goal = goal;
        world.begins_with = left;
        code = bridge_run(&opt, STOP_FD, &err);
        world.few = false;
        if (code == BT_OK) {
            assert_int_equal(count("put"), 3);
            assert_true(fails >= 2);
            return;
        }
        assert_int_equal(code, BT_NOMEM);
        assert_int_equal(count("put"), 0);
        fails++;
    }
    fail_msg("it fails with all the memory that it wants");
}

/* ---- waiting ---- */

static void once_it_does_not_wait(void **state)
{
    static const char *const CALLS[] = {"client", "shards", "nats", "new",
                                        "sync",   "read",   "put",  "settle"};

    (void)state;
    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++) {
        (void)set_up(state);
        let_fail(CALLS[i], BT_UNAVAILABLE, 1);
        run(BT_UNAVAILABLE, CALLS[i]);
        assert_int_equal(count("pause"), 0);
        assert_int_equal(world.clients + world.servers + world.streams, 0);
        for (size_t k = 0; k < EVENTS_MAX; k++) {
            buf_done(&world.events[k]);
        }
    }
}

static void what_passes_is_waited_for(void **state)
{
    static const struct {
        enum bt_code code;
        int pause;
    } CASES[] = {
        {BT_UNAVAILABLE, PAUSE}, {BT_TIMEOUT, PAUSE}, {BT_BUSY, PAUSE}, {BT_LIMIT, PAUSE_LONG}};
    char text[TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        (void)set_up(state);
        opt.once = false;
        world.stop_at = world.now + 10000;
        let_fail("put", CASES[i].code, 2);
        run(BT_OK, NULL);
        (void)snprintf(text, sizeof text, "pause %d\n", CASES[i].pause);
        assert_int_equal(count("pause"), 2);
        assert_int_equal(count(text), 2);
        assert_int_equal(count("sync"), 3); /* it is asked where the stream ends */
        assert_int_equal(count("put 1 after 0"), 3);
        assert_int_equal(count("put 3 after 2"), 1);
        for (size_t k = 0; k < EVENTS_MAX; k++) {
            buf_done(&world.events[k]);
        }
    }
}

static void what_does_not_pass_ends_it(void **state)
{
    static const enum bt_code CODES[] = {BT_CONFLICT, BT_UNAUTHORIZED, BT_INVALID, BT_NOMEM, BT_IO};

    (void)state;
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
        (void)set_up(state);
        opt.once = false;
        let_fail("sync", CODES[i], 1);
        run(CODES[i], "sync: away");
        assert_int_equal(count("pause"), 0);
    }
}

/* Another bridge was faster: once more, also with --once. */
static void a_stream_that_has_changed_is_read_again(void **state)
{
    (void)state;
    let_fail("put", BT_BUSY, 1);
    run(BT_OK, NULL);
    assert_int_equal(count("pause 200\n"), 1);
    assert_int_equal(count("sync"), 2);
}

static void a_pause_ends_when_it_is_stopped(void **state)
{
    (void)state;
    opt.once = false;
    world.stop_at = world.now + PAUSE;
    let_fail("client", BT_UNAVAILABLE, UINT32_MAX);
    run(BT_OK, NULL);
    assert_int_equal(count("pause"), 1);
}

static void a_connection_that_is_lost_between_two_events_is_seen(void **state)
{
    (void)state;
    world.up = false;
    run(BT_UNAVAILABLE, "BATON_main: the connection to the server is lost");
    assert_int_equal(count("settle"), 0);
}

/* libnats has given up. */
static void a_connection_that_is_closed_is_opened_anew(void **state)
{
    (void)state;
    for (uint32_t closes = 0; closes < 2; closes++) {
        (void)set_up(state);
        opt.once = false;
        world.stop_at = world.now + 3000;
        world.closes = closes == 1;
        let_fail("settle", BT_UNAVAILABLE, 1);
        run(BT_OK, NULL);
        assert_int_equal(count("connect"), 1 + closes);
        assert_int_equal(count("sync"), 2);
        assert_int_equal(world.clients + world.servers + world.streams, 0);
        for (size_t k = 0; k < EVENTS_MAX; k++) {
            buf_done(&world.events[k]);
        }
    }
}

/* ---- what is said ---- */

static uint32_t said(const char *what)
{
    uint32_t n = 0;

    for (const char *at = strstr(world.said, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void a_trouble_is_told_when_it_is_new_and_every_minute(void **state)
{
    (void)state;
    opt.once = false;
    let_fail("client", BT_UNAVAILABLE, UINT32_MAX);
    world.stop_at = world.now + REPEAT;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.waits why=\"client: away\""), 1);
    world.said[0] = 0;
    world.stop_at = world.now + REPEAT + PAUSE;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.waits"), 2);
    world.said[0] = 0;
    world.fails[0].times = 2;
    let_fail("sync", BT_UNAVAILABLE, 2);
    let_fail("put", BT_BUSY, 1);
    let_fail("settle", BT_LIMIT, 1);
    world.stop_at = world.now + 3000;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.waits"), 3);
    assert_int_equal(said("why=\"sync: away\""), 1);
    assert_int_equal(said("why=\"settle: away\""), 1);
    assert_int_equal(said("bridge.ends last=3"), 1);
}

/* After it went on it is a new one. */
static void a_trouble_of_before_is_told_again(void **state)
{
    (void)state;
    opt.once = false;
    let_fail("settle", BT_UNAVAILABLE, 2);
    world.stop_at = world.now + 2000;
    run(BT_OK, NULL);
    assert_int_equal(said("why=\"settle: away\""), 2);
}

static void what_was_sent_is_told_every_minute(void **state)
{
    (void)state;
    opt.once = false;
    world.stop_at = world.now + REPEAT - 1000;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.state"), 0);
    assert_int_equal(said("bridge.begins stream=BATON_main after=0 of=3"), 1);
    world.at = (struct stream_at){.seq = 0, .made = true};
    world.said[0] = 0;
    world.stop_at = world.now + 3 * REPEAT;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.state stream=BATON_main last=3 of=3 sent=3"), 1);
    assert_int_equal(said("bridge.begins stream=BATON_main made=true after=0"), 1);
}

static void ranges_that_were_deleted_are_told(void **state)
{
    (void)state;
    world.deleted[0] = (struct msg_seq_range){.from_seq = 4, .to_seq = 6};
    world.deleted_n = 1;
    world.last_seq = 6;
    run(BT_OK, NULL);
    assert_int_equal(said("bridge.deleted ranges=1 up_to=6"), 1);
}

static void the_fleet_is_waited_for_but_for_once_and_status(void **state)
{
    uint32_t n = 9;

    (void)state;
    world.shards = 4;
    opt.once = false;
    let_fail("client", BT_UNAVAILABLE, 2);
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_OK);
    assert_int_equal(n, 4);
    assert_int_equal(count("pause 200\n"), 2);
    let_fail("shards", BT_UNAVAILABLE, 1);
    opt.once = true;
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_UNAVAILABLE);
    let_fail("shards", BT_UNAVAILABLE, 1);
    opt.once = false;
    opt.status = true;
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_UNAVAILABLE);
    opt.status = false;
    let_fail("client", BT_UNAUTHORIZED, 1);
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_UNAUTHORIZED);
    let_fail("client", BT_UNAVAILABLE, UINT32_MAX);
    world.stop_at = world.now + 3 * PAUSE;
    assert_int_equal(bridge_shards(&opt, STOP_FD, &n, &err), BT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(count("pause 200\n"), 5);
}

static void the_state_is_one_line(void **state)
{
    char line[TEXT * 2] = "";
    FILE *out = fmemopen(line, sizeof line - 1, "w");

    (void)state;
    assert_non_null(out);
    world.at = (struct stream_at){.seq = 2, .messages = 5, .bytes = 700, .event_id = "e-2"};
    assert_int_equal(bridge_status(&opt, out, &err), BT_OK);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(line, "BATON_main: up to event 2 of 3, 1 behind; 5 messages, 700 bytes\n");
    expect_log("connect\nsync look\nread from 2 limit 1 wait 0 within 5000 after \n");
    out = fmemopen(line, sizeof line - 1, "w");
    assert_non_null(out);
    let_fail("sync", BT_NOT_FOUND, 1);
    assert_int_equal(bridge_status(&opt, out, &err), BT_NOT_FOUND);
    world.at.seq = 4;
    assert_int_equal(bridge_status(&opt, out, &err), BT_CONFLICT);
    assert_int_equal(ftell(out), 0);
    assert_int_equal(fclose(out), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(once_copies_what_the_daemon_has),
        TEST(it_goes_on_behind_what_the_stream_has),
        TEST(pages_follow_each_other_and_are_settled_at_the_end),
        TEST(then_it_waits_for_events_until_it_is_stopped),
        TEST(a_shard_is_read_by_its_number),
        TEST(ranges_that_were_deleted_are_gone_over),
        TEST(a_range_that_began_before_counts_from_here_on),
        TEST(a_gap_that_nobody_deleted_is_not_put),
        TEST(a_stream_of_another_journal_is_refused),
        TEST(an_event_that_was_deleted_is_not_compared),
        TEST(of_a_failover_it_is_said_from_where_on),
        TEST(an_event_that_there_is_no_memory_for_is_not_put),
        TEST(once_it_does_not_wait),
        TEST(what_passes_is_waited_for),
        TEST(what_does_not_pass_ends_it),
        TEST(a_stream_that_has_changed_is_read_again),
        TEST(a_pause_ends_when_it_is_stopped),
        TEST(a_connection_that_is_lost_between_two_events_is_seen),
        TEST(a_connection_that_is_closed_is_opened_anew),
        TEST(a_trouble_is_told_when_it_is_new_and_every_minute),
        TEST(a_trouble_of_before_is_told_again),
        TEST(what_was_sent_is_told_every_minute),
        TEST(ranges_that_were_deleted_are_told),
        TEST(the_fleet_is_waited_for_but_for_once_and_status),
        TEST(the_state_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
