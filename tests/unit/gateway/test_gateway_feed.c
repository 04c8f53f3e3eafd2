/* The one read for all streams of a sender, without streams: what it asks for and when, what its
 * ring keeps, and who may follow it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/stream_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { NOW = 5000, AGAIN = STREAM_AGAIN_MS, PAUSE = 20, PAUSE_MANY = 50, MANY = 250 };

static void *slots[4];

void **caller_slot(struct caller *c, uint32_t shard)
{
    (void)c;
    return &slots[shard];
}

static struct feed *f;
static struct stream st;

static int begin(void **state)
{
    (void)state;
    rig_begin("");
    rig.s.now = NOW;
    f = feed_of(NULL, 2);
    assert_non_null(f);
    f->users = 1;
    ring_reset(&f->ring, 5, false);
    memset(&st, 0, sizeof st);
    st.h = &rig.h;
    st.feed = f;
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (slots[2] != NULL) {
        feed_release(f);
    }
    assert_null(slots[2]);
    rig_end();
    return 0;
}

static void asked(const char *fields)
{
    assert_int_equal(rig.spec.type, MSG_events_read);
    assert_int_equal(rig.spec.answer, MSG_events_read_ok);
    assert_true(rig.spec.reads && rig.spec.live);
    assert_int_equal(rig.spec.to_shard, 3);
    assert_string_equal(rig.fields, fields);
}

/* A page of events from..to. */
static void page(uint64_t from, uint64_t to, const char *more)
{
    struct buf text;
    struct buf doc;
    struct reply reply = {.ok = true};
    const struct call_spec spec = rig.spec;

    buf_init(&text, 1 << 20);
    buf_add_cstr(&text, "{\"events\":[");
    for (uint64_t i = from; i <= to; i++) {
        buf_printf(&text, "%s{\"seq\":%u,\"eventId\":\"e-%u\",\"type\":\"t\"}", i > from ? "," : "",
                   (unsigned)i, (unsigned)i);
    }
    buf_printf(&text, "],\"nextSeq\":%u%s}", (unsigned)to + 1, more);
    buf_init(&doc, 1 << 20);
    assert_int_equal(json_to_doc(buf_str(&text), NULL, &doc, NULL), BT_OK);
    reply.body = doc_from_buf(&doc);
    for (uint32_t i = 0; i < RIG_CALLS_MAX; i++) {
        rig.calls[i].open = false;
    }
    spec.done(spec.self, &reply);
    buf_done(&text);
    buf_done(&doc);
}

static void a_sender_has_one_for_each_shard(void **state)
{
    struct feed *other;

    (void)state;
    assert_ptr_equal(feed_of(NULL, 2), f);
    other = feed_of(NULL, 1);
    assert_ptr_not_equal(other, f);
    assert_int_equal(other->shard, 1);
    other->users = 2;
    feed_release(other);
    assert_non_null(slots[1]);
    feed_release(other);
    assert_null(slots[1]);
}

static void it_reads_on_and_one_read_is_out(void **state)
{
    (void)state;
    feed_read(f, NOW);
    asked("{\"fromSeq\":5,\"limit\":1000,\"waitMs\":20000}");
    assert_int_equal(rig.spec.wait_ms, 20000);
    feed_read(f, NOW + 100000);
    assert_int_equal(rig.asked, 1);
    page(5, 6, "");
    assert_int_equal(f->ring.end, 7);
    assert_int_equal(f->ring.n, 2);
    feed_read(f, NOW);
    assert_int_equal(rig.asked, 1); /* after a pause */
    feed_read(f, NOW + PAUSE - 1);
    assert_int_equal(rig.asked, 1);
    feed_read(f, NOW + PAUSE);
    asked("{\"fromSeq\":7,\"limit\":1000,\"waitMs\":20000}");
    page(9, 9, ""); /* the daemon leaves out what is not seen */
    assert_int_equal(f->ring.end, 10);
}

static void the_pause_is_longer_when_many_come(void **state)
{
    static const struct {
        uint64_t n;
        msec pause;
    } CASES[] = {{1, PAUSE}, {MANY - 1, PAUSE}, {MANY, PAUSE_MANY}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const uint32_t before = rig.asked;
        ring_reset(&f->ring, 5, false);
        f->again = 0;
        feed_read(f, NOW);
        assert_int_equal(rig.asked, before + 1);
        page(5, 4 + CASES[i].n, "");
        feed_read(f, NOW);
        feed_read(f, NOW + CASES[i].pause - 1);
        assert_int_equal(rig.asked, before + 1);
        feed_read(f, NOW + CASES[i].pause);
        assert_int_equal(rig.asked, before + 2);
        page(5, 4, ""); /* nothing: at once */
        feed_read(f, NOW + CASES[i].pause);
        assert_int_equal(rig.asked, before + 3);
        page(5, 4, "");
    }
}

static void a_read_that_fails_is_tried_again(void **state)
{
    (void)state;
    feed_read(f, NOW);
    rig_refuse(BT_UNAVAILABLE, "away");
    assert_false(f->lost);
    assert_int_equal(f->changed, 0);
    feed_read(f, NOW);
    feed_read(f, NOW + AGAIN - 1);
    assert_int_equal(rig.asked, 1);
    feed_read(f, NOW + AGAIN);
    assert_int_equal(rig.asked, 2);
    rig_refuse(BT_UNAUTHORIZED, "no");
    assert_true(f->lost);
    rig.busy = BT_BUSY;
    feed_read(f, NOW + 2 * AGAIN);
    feed_read(f, NOW + 3 * AGAIN - 1);
    assert_int_equal(rig.asked, 2);
    feed_read(f, NOW + 3 * AGAIN);
    assert_int_equal(rig.asked, 3);
    assert_null(f->call);
    feed_read(f, NOW + 4 * AGAIN - 1);
    assert_int_equal(rig.asked, 3);
    feed_read(f, NOW + 4 * AGAIN);
    assert_int_equal(rig.asked, 4);
}

static void after_a_history_that_was_lost_nothing_is_read(void **state)
{
    struct reply reply = {.problem = {.code = BT_HISTORY_CHANGED}};
    struct buf doc;

    (void)state;
    feed_read(f, NOW);
    buf_init(&doc, 256);
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, "fromSeq");
    doc_put_u64(&doc, 3);
    reply.problem.details = doc_from_buf(&doc);
    assert_int_equal(stream_changed_from(&reply.problem), 3);
    rig.spec.done(rig.spec.self, &reply);
    buf_done(&doc);
    assert_int_equal(f->changed, 3);
    feed_read(f, NOW + 100 * AGAIN);
    assert_int_equal(rig.asked, 1);
    reply.problem.details = (struct doc){NULL, 0}; /* it does not say where */
    assert_int_equal(stream_changed_from(&reply.problem), 1);
}

static void of_a_fleet_a_read_says_what_was_before(void **state)
{
    (void)state;
    feed_read(f, NOW);
    page(5, 6, ",\"leader\":\"L\"");
    assert_string_equal(f->leader, "L");
    assert_string_equal(f->last_id, "e-6");
    feed_read(f, NOW);
    feed_read(f, NOW + PAUSE);
    asked("{\"fromSeq\":7,\"limit\":1000,\"waitMs\":20000,\"afterEventId\":\"e-6\"}");
    page(7, 6, ",\"leader\":\"L\",\"lastEventId\":\"e-x\""); /* nothing new */
    assert_string_equal(f->last_id, "e-6");
    feed_read(f, NOW + PAUSE);
    {
        struct reply reply = {.ok = true};
        struct buf doc;
        buf_init(&doc, 1024);
        assert_int_equal(
            json_to_doc(STR_LIT("{\"events\":[],\"nextSeq\":9,\"leader\":\"M\",\"lastEventId\":"
                                "\"e-8\"}"),
                        NULL, &doc, NULL),
            BT_OK);
        reply.body = doc_from_buf(&doc);
        rig.spec.done(rig.spec.self, &reply);
        buf_done(&doc);
    }
    assert_int_equal(f->ring.end, 9);
    assert_string_equal(f->leader, "M");
    assert_string_equal(f->last_id, "e-8");
}

/* ---- who follows ---- */

static void the_first_begins_it_where_it_is(void **state)
{
    (void)state;
    st.next_seq = 9;
    assert_false(feed_join(&st, 9)); /* it has something to catch up */
    assert_int_equal(f->followers, 0);
    (void)snprintf(st.last_id, sizeof st.last_id, "e-9");
    feed_read(f, NOW);
    st.next_seq = 10;
    assert_true(feed_join(&st, 9));
    assert_int_equal(rig.abandoned, 1); /* the read of before */
    assert_null(f->call);
    assert_int_equal(f->followers, 1);
    assert_int_equal(st.state, FOLLOWS);
    assert_int_equal(f->ring.floor, 10);
    assert_int_equal(f->ring.end, 10);
    assert_string_equal(f->last_id, "e-9");
    feed_read(f, NOW);
    asked("{\"fromSeq\":10,\"limit\":1000,\"waitMs\":20000}");
}

static void others_join_when_the_ring_has_what_they_lack(void **state)
{
    (void)state;
    st.next_seq = 10;
    assert_true(feed_join(&st, 9));
    feed_read(f, NOW);
    page(10, 13, "");
    st.state = CATCHES_UP;
    st.next_seq = 9;
    assert_false(feed_join(&st, 20)); /* before its floor */
    st.next_seq = 10;
    assert_true(feed_join(&st, 20));
    assert_int_equal(st.place, f->ring.first);
    st.next_seq = 13;
    assert_true(feed_join(&st, 20));
    assert_int_equal(st.place, f->ring.first + 3);
    assert_int_equal(f->followers, 3);
    st.state = CATCHES_UP;
    st.next_seq = 14;
    assert_false(feed_join(&st, 14)); /* the daemon has one that the ring has not yet */
    assert_int_equal(st.state, CATCHES_UP);
    assert_true(feed_join(&st, 13));
}

static void one_of_another_history_looks_again(void **state)
{
    (void)state;
    (void)snprintf(st.leader, sizeof st.leader, "L");
    st.next_seq = 10;
    assert_true(feed_join(&st, 9));
    assert_true(f->ring.ids);
    feed_read(f, NOW);
    st.state = CATCHES_UP;
    (void)snprintf(st.leader, sizeof st.leader, "M");
    assert_false(feed_join(&st, 9));
    assert_int_equal(st.again, NOW + AGAIN);
    assert_int_equal(rig.abandoned, 1);
    feed_read(f, NOW);
    asked("{\"fromSeq\":10,\"limit\":1000,\"waitMs\":0}"); /* without waiting */
    assert_int_equal(rig.spec.wait_ms, 0);
    page(10, 9, ",\"leader\":\"M\"");
    assert_true(feed_join(&st, 9));
    feed_read(f, NOW);
    asked("{\"fromSeq\":10,\"limit\":1000,\"waitMs\":20000}");
}

static void a_ring_keeps_so_many_events(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 9; i++) {
        feed_read(f, NOW + i * PAUSE_MANY);
        feed_read(f, NOW + (i + 1) * PAUSE_MANY);
        page(5 + 1000 * (uint64_t)i, 1004 + 1000 * (uint64_t)i, "");
    }
    assert_int_equal(f->ring.n, RING_EVENTS_MAX);
    assert_int_equal(ring_next(&f->ring), 9000);
    assert_int_equal(f->ring.floor, 9005 - RING_EVENTS_MAX);
    assert_int_equal(ring_get(&f->ring, f->ring.first)->seq, f->ring.floor);
    assert_null(ring_get(&f->ring, f->ring.first - 1));
    assert_null(ring_get(&f->ring, 9000));
    assert_int_equal(ring_find(&f->ring, 1), f->ring.first);
    assert_int_equal(ring_find(&f->ring, 9004), 8999);
    assert_int_equal(ring_find(&f->ring, 9005), 9000);
}

static void a_place_is_a_number_and_perhaps_an_id(void **state)
{
    static const char ID[] = "01890a5d-ac96-774b-bcce-b302099a8057";
    static const struct {
        const char *text;
        bool is;
        uint64_t seq;
    } CASES[] = {{"7", true, 7},
                 {"7:01890a5d-ac96-774b-bcce-b302099a8057", true, 7},
                 {"0", true, 0},
                 {"9223372036854775806", true, INT64_MAX - 1},
                 {"9223372036854775807", false, 0},
                 {"", false, 0},
                 {"x", false, 0},
                 {"7:", false, 0},
                 {"7:x", false, 0},
                 {":01890a5d-ac96-774b-bcce-b302099a8057", false, 0}};
    struct event_place at;
    struct buf out;

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        memset(&at, 'x', sizeof at);
        assert_true(event_place_read(str_from(CASES[i].text), &at) == CASES[i].is);
        if (CASES[i].is) {
            assert_int_equal(at.seq, CASES[i].seq);
            assert_string_equal(at.id, i == 1 ? ID : "");
            buf_init(&out, 256);
            event_place_put(&at, &out);
            assert_string_equal(buf_cstr(&out), CASES[i].text);
            buf_done(&out);
        }
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_sender_has_one_for_each_shard),
        T(it_reads_on_and_one_read_is_out),
        T(the_pause_is_longer_when_many_come),
        T(a_read_that_fails_is_tried_again),
        T(after_a_history_that_was_lost_nothing_is_read),
        T(of_a_fleet_a_read_says_what_was_before),
        T(the_first_begins_it_where_it_is),
        T(others_join_when_the_ring_has_what_they_lack),
        T(one_of_another_history_looks_again),
        T(a_ring_keeps_so_many_events),
        T(a_place_is_a_number_and_perhaps_an_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
