/* The watch of libbaton, and what daemons may say to it: pages, holes, another history, silence,
 * and the events of two shards. */
#include <stdio.h>
#include <string.h>

#include "baton/client.h"
#include "protocol/base/clock.h"
#include "tests/edge/client/fake.h"
#include "tests/support/cmocka.h"

#define ID "0190F3C2-7A1B-7C3D-9E4F-000000000" /* and a digit of the shard, two of the number */
#define ERROR(code, more)                                                                          \
    "'type':'error','ok':false,'error':{'code':'" code                                             \
    "','class':'UNKNOWN','message':'m','retryable':false" more "}"

enum { EVENTS = 8 };

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static struct fake fake;
static struct bt_client *client;

/* The events of a shard are seqs from `first` on, with these times; a read brings `page` of them.
 */
static struct {
    uint64_t first, at_ms[EVENTS];
    uint32_t n, page;
} shards[FAKE_SHARDS];
static bool without_ids;
static const char *refusal; /* of the next read */
/* Of the last read. */
static uint64_t from_seq, limit, wait_ms;
static char after_id[64], plan_id[64];
static uint32_t reads;

static uint64_t number(struct doc request, const char *name)
{
    const struct doc v = doc_get(request, str_from(name));

    return v.ptr != NULL && doc_head(v).kind == DOC_UINT ? doc_head(v).u : 0;
}

static void text(char *to, size_t cap, struct doc request, const char *name)
{
    const struct str s = doc_string(doc_get(request, str_from(name)));

    (void)snprintf(to, cap, "%.*s", s.ptr != NULL ? (int)s.len : 0, s.ptr != NULL ? s.ptr : "");
}

static uint64_t last_of(uint32_t shard)
{
    return shards[shard].first + shards[shard].n - 1;
}

static void put_events(struct fake *f, uint32_t shard, uint64_t from)
{
    uint64_t at = from > shards[shard].first ? from : shards[shard].first;
    size_t n = (size_t)snprintf(f->room, sizeof f->room,
                                "'type':'events.read.ok','ok':true,'lastSeq':%llu,'events':[",
                                (unsigned long long)last_of(shard));

    for (uint32_t i = 0; i < shards[shard].page && at <= last_of(shard); i++, at++) {
        n += (size_t)snprintf(
            f->room + n, sizeof f->room - n,
            "%s{'seq':%llu,'type':'plan_started','planId':'P%u','eventId':'" ID "%u%02llu',"
            "'tsMs':%llu}",
            i == 0 ? "" : ",", (unsigned long long)at, shard, shard, (unsigned long long)at,
            (unsigned long long)shards[shard].at_ms[at - shards[shard].first]);
    }
    n += (size_t)snprintf(f->room + n, sizeof f->room - n, "],'nextSeq':%llu",
                          (unsigned long long)at);
    if (!without_ids) {
        (void)snprintf(f->room + n, sizeof f->room - n, ",'lastEventId':'" ID "%u%02llu'", shard,
                       (unsigned long long)at - 1);
    }
}

static const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes)
{
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));

    (void)n, (void)bytes;
    if (str_is(type, "fleet.map")) {
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'fleet.map.ok','ok':true,'shards':[{'shard':0,'control':'%s'},"
                       "{'shard':1,'control':'%s'}]",
                       f->url[0], f->url[1]);
    } else if (str_is(type, "supervisor.info")) {
        text(plan_id, sizeof plan_id, request, "planId");
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'supervisor.info.ok','ok':true,"
                       "'lastSeq':%llu",
                       (unsigned long long)last_of(shard));
    } else {
        from_seq = number(request, "fromSeq");
        limit = number(request, "limit");
        wait_ms = number(request, "waitMs");
        text(after_id, sizeof after_id, request, "afterEventId");
        text(plan_id, sizeof plan_id, request, "planId");
        reads++;
        if (refusal != NULL) {
            const char *it = refusal;
            refusal = NULL;
            return it;
        }
        put_events(f, shard, from_seq);
    }
    return f->room;
}

static void start(bool fleet)
{
    struct bt_error err;

    memset(shards, 0, sizeof shards);
    for (int i = 0; i < FAKE_SHARDS; i++) {
        shards[i].first = 1;
        shards[i].page = EVENTS;
    }
    without_ids = false;
    refusal = NULL;
    reads = 0;
    fake_start(&fake, says);
    if (fleet) {
        fake_is_fleet(&fake);
    }
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
}

static void stop(void)
{
    bt_client_close(client);
    fake_stop(&fake);
}

static void is_ok(enum bt_code code, const struct bt_error *err)
{
    if (code != BT_OK) {
        fail_msg("%s", err->msg);
    }
}

static struct bt_watch *open_watch(const char *plan, uint64_t after)
{
    struct bt_watch *w = NULL;
    struct bt_error err;

    is_ok(bt_watch_open(client, plan, after, &w, &err), &err);
    return w;
}

static struct bt_watch *open_after(const char *vector)
{
    struct bt_watch *w = NULL;
    struct bt_error err;

    is_ok(bt_watch_open_after(client, vector, &w, &err), &err);
    return w;
}

static struct bt_event next(struct bt_watch *w, uint64_t seq)
{
    struct bt_event ev;
    struct bt_error err;

    is_ok(bt_watch_next(w, 1000, &ev, &err), &err);
    assert_int_equal(ev.seq, seq);
    return ev;
}

static void is_quiet(struct bt_watch *w)
{
    struct bt_event ev;
    struct bt_error err;

    assert_int_equal(bt_watch_next(w, 0, &ev, &err), BT_TIMEOUT);
    assert_string_equal(err.msg, "no event within 0 ms");
}

static void cursor_is(const struct bt_watch *w, const char *want)
{
    char cursor[4096];

    bt_watch_cursor(w, cursor, sizeof cursor);
    assert_string_equal(cursor, want);
}

/* ---- one daemon ---- */

static void a_watch_returns_each_event_of_its_pages_once(void **state)
{
    struct bt_watch *w;
    struct bt_event ev;

    (void)state;
    start(false);
    shards[0].n = 3;
    shards[0].page = 2;
    w = open_watch(NULL, 0);
    cursor_is(w, "S0=0");
    assert_false(bt_watch_is_current(w)); /* nothing was read yet */
    ev = next(w, 1);
    assert_int_equal(from_seq, 1);
    assert_int_equal(limit, 500);
    assert_string_equal(plan_id, "");
    assert_string_equal(ev.type, "plan_started");
    assert_string_equal(ev.plan_id, "P0");
    assert_string_equal(ev.json, "{\"seq\":1,\"type\":\"plan_started\",\"planId\":\"P0\","
                                 "\"eventId\":\"" ID "001\",\"tsMs\":0}");
    cursor_is(w, "S0=1:" ID "001");
    assert_false(bt_watch_is_current(w)); /* the page has another one */
    (void)next(w, 2);
    assert_true(bt_watch_is_current(w));
    assert_int_equal(reads, 1);
    (void)next(w, 3);
    assert_int_equal(from_seq, 3);
    assert_string_equal(after_id, ID "002");
    assert_int_equal(reads, 2);
    is_quiet(w);
    assert_int_equal(from_seq, 4);
    assert_string_equal(after_id, ID "003");
    assert_int_equal(bt_watch_filled(w), 3);
    cursor_is(w, "S0=3:" ID "003");
    bt_watch_close(w);
    stop();
}

static void a_watch_begins_where_it_is_told(void **state)
{
    struct bt_watch *w;

    (void)state;
    start(false);
    shards[0].n = 5;
    w = open_watch(NULL, UINT64_MAX); /* what is new */
    is_quiet(w);
    assert_int_equal(from_seq, 6);
    assert_string_equal(after_id, "");
    bt_watch_close(w);
    w = open_watch("P7", 3);
    assert_string_equal(plan_id, "P7"); /* of a fleet its shard is asked */
    (void)next(w, 4);
    assert_int_equal(from_seq, 4);
    assert_string_equal(plan_id, "P7");
    bt_watch_close(w);
    w = open_after("S0=4:" ID "004");
    (void)next(w, 5);
    assert_int_equal(from_seq, 5);
    assert_string_equal(after_id, ID "004");
    bt_watch_close(w);
    stop();
}

static void a_client_has_one_watch_at_a_time(void **state)
{
    struct bt_watch *w;
    struct bt_watch *other = NULL;
    struct bt_error err;

    (void)state;
    for (int fleet = 0; fleet < 2; fleet++) {
        start(fleet == 1);
        w = open_watch(NULL, 0);
        assert_int_equal(bt_watch_open(client, NULL, 0, &other, &err), BT_CONFLICT);
        assert_int_equal(bt_watch_open_after(client, "S0=1", &other, &err), BT_CONFLICT);
        assert_string_equal(err.msg, "a client has at most one watch at a time");
        bt_watch_close(w);
        bt_watch_close(NULL);
        bt_watch_close(open_watch(NULL, 0));
        stop();
    }
}

/* Events that were deleted: the page names where it goes on. */
static void a_hole_is_passed_over_with_the_id_behind_it(void **state)
{
    struct bt_watch *w;

    (void)state;
    start(false);
    shards[0].first = 20;
    w = open_watch(NULL, 3);
    is_quiet(w);
    assert_int_equal(from_seq, 4);
    cursor_is(w, "S0=19:" ID "019");
    is_quiet(w);
    assert_int_equal(from_seq, 20);
    assert_string_equal(after_id, ID "019");
    without_ids = true; /* the event before it cannot be read */
    shards[0].first = 30;
    is_quiet(w);
    cursor_is(w, "S0=29");
    assert_int_equal(bt_watch_filled(w), 0);
    bt_watch_close(w);
    stop();
}

/* A failover lost events: the reader is told once, and goes on from there. */
static void another_history_is_said_once(void **state)
{
    static const struct {
        const char *says;
        uint64_t from;
        const char *cursor;
    } cases[] = {
        {ERROR("HISTORY_CHANGED", ",'details':{'fromSeq':5}"), 5, "S0=4"},
        {ERROR("HISTORY_CHANGED", ",'details':{'fromSeq':'x'}"), 1, "S0=0"},
        {ERROR("HISTORY_CHANGED", ",'details':{'fromSeq':0}"), 1, "S0=0"},
        {ERROR("HISTORY_CHANGED", ""), 1, "S0=0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_watch *w;
        struct bt_event ev;
        struct bt_error err;
        start(false);
        w = open_after("S0=70:" ID "007");
        refusal = cases[i].says;
        assert_int_equal(bt_watch_next(w, 0, &ev, &err), BT_HISTORY_CHANGED);
        cursor_is(w, cases[i].cursor);
        shards[0].first = cases[i].from;
        shards[0].n = 1;
        (void)next(w, cases[i].from);
        assert_int_equal(from_seq, cases[i].from);
        assert_string_equal(after_id, "");
        bt_watch_close(w);
        stop();
    }
}

static void a_refusal_ends_the_call_and_an_absent_daemon_does_not(void **state)
{
    struct bt_watch *w;
    struct bt_event ev;
    struct bt_error err;
    msec began;

    (void)state;
    start(false);
    w = open_watch(NULL, 0);
    refusal = ERROR("GONE", "");
    assert_int_equal(bt_watch_next(w, 0, &ev, &err), BT_GONE);
    refusal = ERROR("UNAVAILABLE", "");
    began = clock_mono_ms();
    is_quiet(w);
    assert_int_equal(reads, 2);
    shards[0].n = 1;
    (void)next(w, 1);
    assert_int_equal(reads, 3);
    assert_true(clock_mono_ms() - began >= 200); /* it waits a moment before it asks again */
    bt_watch_close(w);
    stop();
}

static void a_read_waits_in_the_daemon_for_as_long_as_the_call_has(void **state)
{
    struct bt_watch *w;
    struct bt_event ev;
    struct bt_error err;

    (void)state;
    start(false);
    w = open_watch(NULL, 0);
    is_quiet(w);
    assert_int_equal(wait_ms, 0);
    assert_int_equal(bt_watch_next(w, 150, &ev, &err), BT_TIMEOUT);
    assert_in_range(wait_ms, 1, 150);
    assert_in_range(reads, 2, 5); /* it was answered at once: there was no place to wait in */
    shards[0].n = 1;
    is_ok(bt_watch_next(w, 60000, &ev, &err), &err);
    assert_int_equal(wait_ms, 10000);
    bt_watch_close(w);
    stop();
}

/* ---- two shards ---- */

static void events_of_all_shards_come_oldest_first(void **state)
{
    struct bt_watch *w;
    struct bt_event ev;

    (void)state;
    start(true);
    shards[0].n = 2;
    shards[1].n = 3;
    shards[0].at_ms[0] = 10;
    shards[0].at_ms[1] = 40;
    shards[1].at_ms[0] = 10; /* of the same time: the first shard's */
    shards[1].at_ms[1] = 30;
    shards[1].at_ms[2] = 20; /* it waits for the one before it */
    w = open_watch(NULL, 0);
    assert_false(bt_watch_is_current(w));
    ev = next(w, 1);
    assert_string_equal(ev.plan_id, "P0");
    assert_string_equal(ev.json, "{\"seq\":1,\"type\":\"plan_started\",\"planId\":\"P0\","
                                 "\"eventId\":\"" ID "001\",\"tsMs\":10,\"shard\":0}");
    cursor_is(w, "S0=1:" ID "001;S1=0"); /* what was read, and not returned, does not count */
    assert_string_equal(next(w, 1).plan_id, "P1");
    assert_string_equal(next(w, 2).plan_id, "P1");
    ev = next(w, 3);
    assert_non_null(strstr(ev.json, "\"shard\":1}"));
    assert_false(bt_watch_is_current(w)); /* one is in hand */
    assert_string_equal(next(w, 2).plan_id, "P0");
    assert_true(bt_watch_is_current(w));
    cursor_is(w, "S0=2:" ID "002;S1=3:" ID "103");
    is_quiet(w);
    assert_int_equal(bt_watch_filled(w), 5);
    bt_watch_close(w);
    stop();
}

static void a_vector_names_the_place_in_each_shard(void **state)
{
    static const char *const wrong[] = {
        "",        "7",
        "S0",      "S0=",
        "S0=x",    "S=1",
        "S0=-1",   "S0=1:xy",
        "S0=1:",   "S0=1;",
        "S0=1 ",   "s0=1",
        "S0=1,2",  "S0=1;S1=0:1",
        "S:=1",    "S/=1",
        "S0=1;;",  "S0:1",
        "S0=:1",   "S0=/",
        "S0=1;S1", "S0=1:" ID "001x",
    };
    struct bt_watch *w;
    struct bt_error err;

    (void)state;
    start(true);
    shards[0].n = shards[1].n = 3;
    shards[0].at_ms[0] = shards[0].at_ms[1] = shards[0].at_ms[2] = 50;
    w = open_after("S1=2:" ID "102;S0=1");
    cursor_is(w, "S0=1;S1=2:" ID "102");
    assert_string_equal(next(w, 3).plan_id, "P1");
    assert_string_equal(next(w, 2).plan_id, "P0");
    bt_watch_close(w);
    w = open_after("S1=2"); /* the other one from its beginning */
    cursor_is(w, "S0=0;S1=2");
    bt_watch_close(w);
    w = open_watch(NULL, UINT64_MAX);
    cursor_is(w, "S0=3;S1=3");
    is_quiet(w);
    bt_watch_close(w);
    assert_int_equal(bt_watch_open(client, NULL, 7, &w, &err), BT_INVALID);
    assert_string_equal(err.msg, "this fleet has 2 shards, each with its own numbers: give a "
                                 "vector, S0=12;S1=40");
    assert_int_equal(bt_watch_open_after(client, "S2=1", &w, &err), BT_INVALID);
    assert_string_equal(err.msg, "'S2=1': names shard 2, and the last one is shard 1");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(bt_watch_open_after(client, wrong[i], &w, &err), BT_INVALID);
        assert_non_null(strstr(err.msg, "': expected the numbers of shards, S0=12;S1=40"));
    }
    stop();
}

/* Without ids when they do not fit: a number or an id that was cut would be another one. */
static void a_cursor_that_does_not_fit_has_no_ids(void **state)
{
    static const char whole[] = "S0=1:" ID "001;S1=1:" ID "101";
    char cursor[sizeof whole + 1];
    struct bt_watch *w;

    (void)state;
    start(true);
    shards[0].n = shards[1].n = 1;
    w = open_watch(NULL, 0);
    (void)next(w, 1);
    (void)next(w, 1);
    bt_watch_cursor(w, cursor, sizeof whole);
    assert_string_equal(cursor, whole);
    bt_watch_cursor(w, cursor, sizeof whole - 1);
    assert_string_equal(cursor, "S0=1;S1=1");
    bt_watch_close(w);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_returns_each_event_of_its_pages_once),
        cmocka_unit_test(a_watch_begins_where_it_is_told),
        cmocka_unit_test(a_client_has_one_watch_at_a_time),
        cmocka_unit_test(a_hole_is_passed_over_with_the_id_behind_it),
        cmocka_unit_test(another_history_is_said_once),
        cmocka_unit_test(a_refusal_ends_the_call_and_an_absent_daemon_does_not),
        cmocka_unit_test(a_read_waits_in_the_daemon_for_as_long_as_the_call_has),
        cmocka_unit_test(events_of_all_shards_come_oldest_first),
        cmocka_unit_test(a_vector_names_the_place_in_each_shard),
        cmocka_unit_test(a_cursor_that_does_not_fit_has_no_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
