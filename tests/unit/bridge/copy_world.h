/* A daemon and a stream in memory, between which the bridge is; calls that fail, and a clock of the
 * test's own. Of one test program. */
#ifndef TESTS_BRIDGE_COPY_WORLD_H
#define TESTS_BRIDGE_COPY_WORLD_H

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

static inline void let_fail(const char *call, enum bt_code code, uint32_t times)
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

static inline void events(uint32_t n, const uint64_t *seqs)
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

static inline void run(enum bt_code want, const char *says)
{
    const enum bt_code code = bridge_run(&opt, STOP_FD, &err);

    if (code != want) {
        fail_msg("%s: %s\n%s", bt_code_name(code), code != BT_OK ? err.msg : "", world.log);
    }
    if (want != BT_OK && strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
}

static inline void expect_log(const char *want)
{
    if (strcmp(world.log, want) != 0) {
        fail_msg("is:\n%s\nwant:\n%s", world.log, want);
    }
}

static inline uint32_t count(const char *what)
{
    uint32_t n = 0;

    for (const char *at = strstr(world.log, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

#endif
