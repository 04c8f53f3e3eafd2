/* Batches of spans: when they are sent, how often they are tried, what is dropped and counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "supervisor/gateway/egress.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "tests/support/cmocka.h"

enum {
    TRIES = 5,
    FIRST_WAIT_MS = 1000,
    WAIT_MAX_MS = 30000,
    BATCH_MS = 1000,
    BATCH_SPANS = 512,
    ROOM = 4 * BATCH_SPANS
};

/* ---- the way out, in the hands of a test ---- */

static struct {
    struct egress_spec last;
    uint32_t posts;
    enum bt_code answers; /* what a post itself says */
    bool has_body;
} out;

enum bt_code egress_post(struct egress *e, const struct egress_spec *spec, struct bt_error *err)
{
    (void)e;
    out.last = *spec;
    out.has_body = spec->body.len > 0;
    out.posts++;
    return out.answers == BT_OK ? BT_OK : err_set(err, out.answers, "no");
}

static void answered(unsigned status, uint64_t retry_after_ms)
{
    out.last.done(out.last.self, status, retry_after_ms, "why");
}

/* A plan that begins and ends: one span. */
static void plan_ends(struct traces *t, uint32_t nth)
{
    static const char *const types[] = {"plan_started", "plan_completed"};

    for (int i = 0; i < 2; i++) {
        struct buf event;
        char id[40];
        (void)snprintf(id, sizeof id, "0190F3C2-7A1B-7C3D-9E4F-%012u", nth);
        buf_init(&event, 4096);
        doc_put_map(&event, 5);
        doc_put_cstr(&event, "type");
        doc_put_cstr(&event, types[i]);
        doc_put_cstr(&event, "planId");
        doc_put_cstr(&event, id);
        doc_put_cstr(&event, "timestamp");
        doc_put_cstr(&event, i == 0 ? "2023-11-14T22:13:20.000Z" : "2023-11-14T22:13:21.000Z");
        doc_put_cstr(&event, "status");
        doc_put_cstr(&event, "completed");
        doc_put_cstr(&event, "goal");
        doc_put_cstr(&event, "g");
        traces_event(t, doc_from_buf(&event));
        buf_done(&event);
    }
}

/* They live as long as the process. */
static struct traces *kept[64];

static struct traces *open_traces(void)
{
    static size_t n;
    struct traces *t = traces_new(NULL, "http://127.0.0.1:4318/v1/traces");

    assert_true(t != NULL && n < sizeof kept / sizeof kept[0]);
    kept[n++] = t;
    memset(&out, 0, sizeof out);
    traces_run(t, 10000);
    return t;
}

/* One span is out. */
static msec send_one(struct traces *t)
{
    plan_ends(t, 1);
    assert_int_equal(traces_counts(t).waiting, 1);
    assert_int_equal(traces_deadline(t), 10000 + BATCH_MS);
    traces_run(t, 10000 + BATCH_MS - 1);
    assert_int_equal(out.posts, 0);
    traces_run(t, 10000 + BATCH_MS);
    assert_int_equal(out.posts, 1);
    return 10000 + BATCH_MS;
}

static void a_batch_is_sent_when_its_time_is_over_and_counted_when_it_was_taken(void **state)
{
    struct traces *t = open_traces();

    (void)state;
    (void)send_one(t);
    assert_true(out.has_body);
    assert_string_equal(out.last.url, "http://127.0.0.1:4318/v1/traces");
    assert_int_equal(traces_deadline(t), MSEC_NEVER); /* until it is answered */
    answered(200, 0);
    assert_int_equal(traces_counts(t).exported, 1);
    assert_int_equal(traces_counts(t).waiting, 0);
    assert_int_equal(traces_deadline(t), MSEC_NEVER);
}

static void a_full_batch_does_not_wait(void **state)
{
    struct traces *t = open_traces();

    (void)state;
    for (uint32_t i = 0; i < BATCH_SPANS - 1; i++) {
        plan_ends(t, i);
    }
    traces_run(t, 10000);
    assert_int_equal(out.posts, 0);
    plan_ends(t, BATCH_SPANS);
    traces_run(t, 10000);
    assert_int_equal(out.posts, 1);
}

static void a_batch_is_tried_five_times_and_waits_twice_as_long_each_time(void **state)
{
    struct traces *t = open_traces();
    msec now;

    (void)state;
    now = send_one(t);
    for (uint32_t i = 1; i < TRIES; i++) {
        const msec wait = (msec)FIRST_WAIT_MS << (i - 1);
        answered(503, 0);
        assert_int_equal(traces_counts(t).failures, i);
        assert_int_equal(traces_counts(t).waiting, 1);
        assert_int_equal(traces_deadline(t), now + wait);
        traces_run(t, now + wait - 1);
        assert_int_equal(out.posts, i);
        now += wait;
        traces_run(t, now);
        assert_int_equal(out.posts, i + 1);
    }
    assert_int_equal(traces_counts(t).dropped, 0);
    answered(503, 0);
    assert_int_equal(traces_counts(t).dropped, 1);
    assert_int_equal(traces_counts(t).waiting, 0);
    traces_run(t, now + WAIT_MAX_MS);
    assert_int_equal(out.posts, TRIES);
    plan_ends(t, 2); /* the next one has all its tries */
    traces_run(t, now + WAIT_MAX_MS + BATCH_MS);
    answered(503, 0);
    assert_int_equal(traces_counts(t).dropped, 1);
}

static void what_may_pass_is_tried_again_and_the_rest_is_dropped(void **state)
{
    static const struct {
        unsigned status;
        bool again;
    } all[] = {{0, true},    {429, true},  {502, true},  {503, true},  {504, true},
               {400, false}, {401, false}, {404, false}, {500, false}, {301, false}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct traces *t = open_traces();
        (void)send_one(t);
        answered(all[i].status, 0);
        assert_int_equal(traces_counts(t).dropped, all[i].again ? 0 : 1);
        assert_int_equal(traces_counts(t).waiting, all[i].again ? 1 : 0);
    }
}

static void the_collector_says_when_again_up_to_half_a_minute(void **state)
{
    static const struct {
        uint64_t asked;
        msec waits;
    } all[] = {{FIRST_WAIT_MS - 1, FIRST_WAIT_MS},
               {FIRST_WAIT_MS + 1, FIRST_WAIT_MS + 1},
               {WAIT_MAX_MS, WAIT_MAX_MS},
               {WAIT_MAX_MS + 1, WAIT_MAX_MS}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct traces *t = open_traces();
        const msec now = send_one(t);
        answered(429, all[i].asked);
        assert_int_equal(traces_deadline(t), now + all[i].waits);
    }
}

static void what_cannot_be_sent_at_all_is_dropped(void **state)
{
    struct traces *t = open_traces();

    (void)state;
    out.answers = BT_INVALID;
    (void)send_one(t);
    assert_int_equal(traces_counts(t).dropped, 1);
    assert_int_equal(traces_counts(t).waiting, 0);
}

static void four_batches_wait_and_what_comes_then_is_dropped(void **state)
{
    struct traces *t = open_traces();

    (void)state;
    for (uint32_t i = 0; i < ROOM; i++) {
        plan_ends(t, i);
    }
    assert_int_equal(traces_counts(t).waiting, ROOM);
    assert_int_equal(traces_counts(t).dropped, 0);
    plan_ends(t, ROOM);
    assert_int_equal(traces_counts(t).waiting, ROOM);
    assert_int_equal(traces_counts(t).dropped, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_sent_when_its_time_is_over_and_counted_when_it_was_taken),
        cmocka_unit_test(a_full_batch_does_not_wait),
        cmocka_unit_test(a_batch_is_tried_five_times_and_waits_twice_as_long_each_time),
        cmocka_unit_test(what_may_pass_is_tried_again_and_the_rest_is_dropped),
        cmocka_unit_test(the_collector_says_when_again_up_to_half_a_minute),
        cmocka_unit_test(what_cannot_be_sent_at_all_is_dropped),
        cmocka_unit_test(four_batches_wait_and_what_comes_then_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
