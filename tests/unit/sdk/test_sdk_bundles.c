/* Several steps in one request, and several results in one answer. */
#include "tests/unit/sdk/runtime_world.h"

#include <stdio.h>
#include <string.h>

#include "protocol/wire/bundle.h"

enum { PIPE = 7 };

/* The supervisor proves itself on a connection. */
static void prove(uint32_t pipe)
{
    struct lane_proof proof = {.lane = 1, .epoch = world.epoch};
    struct msg_lane_hello m = {.lane = 1, .epoch = world.epoch};
    char nonce[2 * AUTH_NONCE_BYTES + 1];
    char text[2 * AUTH_KEY_BYTES + 1];
    uint8_t bytes[AUTH_KEY_BYTES];
    struct msg_lane_hello_ok ok;

    auth_hex(proof.nonce_s, sizeof proof.nonce_s, nonce);
    m.nonce_s = str_from(nonce);
    assert_int_equal(world_read(world_send_by(world.rt->server, pipe, MSG_lane_hello, &m),
                                MSG_lane_hello_ok, &ok),
                     BT_OK);
    assert_true(auth_unhex(ok.nonce_a, proof.nonce_a, sizeof proof.nonce_a));
    assert_true(
        lane_proof_make(str_from(world.rt->session_key), LANE_SIDE_SUPERVISOR, &proof, bytes));
    auth_hex(bytes, sizeof bytes, text);
    m.proof = str_from(text);
    assert_int_equal(world_read(world_send_by(world.rt->server, pipe, MSG_lane_hello, &m),
                                MSG_lane_hello_ok, &ok),
                     BT_OK);
}

static int set_up(void **state)
{
    (void)state;
    world_start(&(struct world_how){.capacity = 8});
    prove(PIPE);
    return 0;
}

/* Sends n steps of a skill, with keys and tags from `first` on. */
static uint64_t sends_by(uint32_t pipe, const char *skill, uint64_t first, uint32_t n)
{
    struct buf frame;
    uint64_t request;

    buf_init(&frame, BUNDLE_BYTES_MAX);
    bundle_begin(&frame);
    for (uint32_t i = 0; i < n; i++) {
        char key[32];
        struct msg_step_execute m;
        struct bt_error err;
        struct buf body;
        (void)snprintf(key, sizeof key, "p/1/%u", (unsigned)first + i);
        m = world_step(skill, key);
        m.session_key = (struct str){NULL, 0};
        buf_init(&body, LIMIT_STEP_BYTES);
        assert_int_equal(msg_request(&body, WIRE_MSGPACK, STR_LIT("x"), (struct str){NULL, 0},
                                     MSG_step_execute, &m, &err),
                         BT_OK);
        assert_true(bundle_add(&frame, BUNDLE_ITEMS_MAX, first + i, buf_str(&body)));
        buf_done(&body);
    }
    request = world_send_raw((const char *)frame.at, frame.len, pipe);
    buf_done(&frame);
    return request;
}

static uint64_t sends(const char *skill, uint64_t first, uint32_t n)
{
    return sends_by(PIPE, skill, first, n);
}

/* The tags of an answer, as "1 2 "; each is the result of the step with that key. */
static const char *tags_of(uint64_t request)
{
    static char text[256];
    const struct str bytes = world_bytes(request);
    struct bundle_reader r;
    struct msg_step_result m;
    struct bt_error err;
    struct str body;
    uint64_t tag;
    int n = 0;

    text[0] = 0;
    assert_int_equal(bundle_open(&r, bytes, &err), BT_OK);
    while (bundle_next(&r, &tag, &body)) {
        char key[32];
        (void)snprintf(key, sizeof key, "p/1/%u", (unsigned)tag);
        assert_int_equal(world_read_bytes(body, MSG_step_result, &m), BT_OK);
        assert_true(str_is(m.key, key));
        n += snprintf(text + n, sizeof text - (size_t)n, "%u ", (unsigned)tag);
    }
    return text;
}

static void finish(struct bt_step *step)
{
    bt_step_done(step);
    world_cycle();
}

static void steps_of_one_request_are_answered_together(void **state)
{
    (void)state;
    assert_string_equal(tags_of(sends("echo", 1, 3)), "1 2 3 ");
}

/* The oldest request that is kept takes what is there, whichever it brought. */
static void results_answer_the_oldest_request(void **state)
{
    const uint64_t first = sends("later", 1, 1);
    struct bt_step *slow = world.later;
    uint64_t second;

    (void)state;
    assert_false(world_is_answered(first));
    second = sends("echo", 2, 1);
    assert_string_equal(tags_of(first), "2 ");
    assert_false(world_is_answered(second));
    finish(slow);
    assert_string_equal(tags_of(second), "1 ");
    assert_int_equal(world.rt->trunk.kept_n, 0);
    assert_int_equal(world.rt->trunk.answers.len, 0);
}

static void register_again(uint64_t pipes)
{
    const struct msg_agent_registered_ok ok = {.epoch = ++world.epoch,
                                               .lease_ms = WORLD_LEASE_MS,
                                               .heartbeat_ms = WORLD_BEAT_MS,
                                               .pipes = pipes};

    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_heartbeat));
    world_refuse(BT_CONFLICT);
    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_register));
    world_answer(MSG_agent_registered_ok, &ok);
}

/* So many wait that a pipe is left for new steps. */
static void keeps(uint32_t n)
{
    uint64_t requests[BUNDLE_PIPES + 1];
    struct bt_step *first = NULL;

    for (uint32_t i = 0; i <= n; i++) {
        requests[i] = sends("later", 100 + i, 1);
        first = i == 0 ? world.later : first;
    }
    for (uint32_t i = 1; i <= n; i++) {
        assert_false(world_is_answered(requests[i]));
    }
    assert_string_equal(tags_of(requests[0]), "");
    assert_int_equal(world.rt->trunk.kept_n, n);
    finish(first);
    if (n > 0) {
        assert_string_equal(tags_of(requests[1]), "100 ");
    }
}

static void one_pipe_of_four_is_left_for_new_steps(void **state)
{
    (void)state;
    keeps(BUNDLE_PIPES - 1);
}

static void one_pipe_of_those_that_the_supervisor_has_is_left(void **state)
{
    (void)state;
    register_again(3);
    prove(PIPE);
    keeps(2);
}

static void with_one_pipe_no_request_is_kept_and_results_go_with_the_next(void **state)
{
    struct bt_step *slow;

    (void)state;
    register_again(1);
    prove(PIPE);
    assert_string_equal(tags_of(sends("later", 1, 1)), "");
    slow = world.later;
    finish(slow);
    assert_string_equal(tags_of(sends("later", 2, 1)), "1 ");
}

static void a_supervisor_with_more_pipes_has_four_that_count(void **state)
{
    (void)state;
    register_again(BUNDLE_PIPES + 1);
    prove(PIPE);
    keeps(BUNDLE_PIPES - 1);
}

/* In one look at what came there may be more requests than pipes. */
static void requests_that_come_at_once_are_answered_from_the_oldest_on(void **state)
{
    struct buf frame;
    uint64_t first = world.request + 1;

    (void)state;
    buf_init(&frame, BUNDLE_BYTES_MAX);
    bundle_begin(&frame);
    for (uint32_t i = 0; i < BUNDLE_PIPES + 2; i++) {
        fake_server_request(world.rt->server, PIPE, ++world.request, frame.at, frame.len);
    }
    buf_done(&frame);
    world_cycle();
    for (uint64_t i = first; i <= world.request; i++) {
        assert_int_equal(world_is_answered(i), i <= world.request - (BUNDLE_PIPES - 1));
    }
}

static void a_bundle_of_a_stranger_is_neither_kept_nor_run(void **state)
{
    const uint64_t r = sends_by(PIPE + 1, "later", 1, 1);

    (void)state;
    assert_int_equal(world_bytes(r).len, 0);
    assert_null(world.later);
    assert_int_equal(world.rt->trunk.kept_n, 0);
}

static void a_bundle_that_is_cut_is_answered_with_nothing(void **state)
{
    static const char cut[] = {(char)BUNDLE_MARK, 1, 0, 1, 0};

    (void)state;
    assert_int_equal(world_bytes(world_send_raw(cut, sizeof cut, PIPE)).len, 0);
    assert_int_equal(world.rt->trunk.kept_n, 0);
}

/* Its connection has ended: results go by one that is there. */
static void results_are_not_sent_to_a_connection_that_has_ended(void **state)
{
    struct bt_step *slow;
    uint64_t dead;
    uint64_t alive;

    (void)state;
    prove(PIPE + 1);
    dead = sends_by(PIPE + 1, "later", 1, 1);
    slow = world.later;
    alive = sends("later", 2, 1);
    fake_pipe_closed(PIPE + 1);
    finish(slow);
    assert_int_equal(world_bytes(dead).len, 0); /* which frees its place */
    assert_string_equal(tags_of(alive), "1 ");
}

/* It registered again: who asked before is gone, and asks for results in other ways. */
static void a_registration_ends_what_was_kept_before(void **state)
{
    const struct msg_step_result_ok taken = {.accepted = true};
    struct bt_step *slow;
    uint64_t old;
    uint64_t next;

    (void)state;
    old = sends("later", 1, 1);
    slow = world.later;
    register_again(0);
    assert_string_equal(tags_of(old), "");
    assert_int_equal(world.rt->trunk.kept_n, 0);
    finish(slow);
    assert_int_not_equal(world.rt->trunk.answers.len, 0);
    world_answer(MSG_step_result_ok, &taken);
    register_again(0);
    assert_int_equal(world.rt->trunk.answers.len, 0);
    prove(PIPE);
    next = sends("echo", 2, 1);
    assert_string_equal(tags_of(next), "2 ");
}

/* A request of the new epoch may come before the answer to the registration. */
static void a_request_that_overtakes_the_registration_is_kept(void **state)
{
    const uint64_t before = sends("later", 1, 1);

    (void)state;
    runtime_trunk_registered(world.rt, 0, world.epoch); /* of the same epoch */
    assert_false(world_is_answered(before));
    assert_int_equal(world.rt->trunk.kept_n, 1);
    runtime_trunk_registered(world.rt, 0, world.epoch + 1);
    assert_true(world_is_answered(before));
}

static void requests_of_a_server_that_is_gone_are_dropped_and_others_stay(void **state)
{
    (void)state;
    (void)sends("later", 1, 1);
    (void)sends("later", 2, 1);
    runtime_trunk_drop(world.rt, NULL);
    assert_int_equal(world.rt->trunk.kept_n, 2);
    runtime_trunk_drop(world.rt, world.rt->server);
    assert_int_equal(world.rt->trunk.kept_n, 0);
    assert_false(world_is_answered(world.request));
}

/* One that cannot be read does not cost the others of its bundle. */
static void a_body_that_cannot_be_read_is_refused_alone(void **state)
{
    struct bundle_reader r;
    struct msg_step_result m;
    struct bt_error err;
    struct buf frame;
    struct str body;
    uint64_t tag;
    uint64_t request;

    (void)state;
    buf_init(&frame, BUNDLE_BYTES_MAX);
    bundle_begin(&frame);
    assert_true(bundle_add(&frame, BUNDLE_ITEMS_MAX, 5, STR_LIT("{}")));
    request = world_send_raw((const char *)frame.at, frame.len, PIPE);
    buf_done(&frame);
    assert_int_equal(bundle_open(&r, world_bytes(request), &err), BT_OK);
    assert_true(bundle_next(&r, &tag, &body));
    assert_int_equal(tag, 5);
    assert_int_equal(world_read_bytes(body, MSG_step_result, &m), BT_INVALID);
    assert_false(bundle_next(&r, &tag, &body));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, world_end)
    const struct CMUnitTest tests[] = {
        T(steps_of_one_request_are_answered_together),
        T(results_answer_the_oldest_request),
        T(one_pipe_of_four_is_left_for_new_steps),
        T(one_pipe_of_those_that_the_supervisor_has_is_left),
        T(with_one_pipe_no_request_is_kept_and_results_go_with_the_next),
        T(a_supervisor_with_more_pipes_has_four_that_count),
        T(requests_that_come_at_once_are_answered_from_the_oldest_on),
        T(a_bundle_of_a_stranger_is_neither_kept_nor_run),
        T(a_bundle_that_is_cut_is_answered_with_nothing),
        T(results_are_not_sent_to_a_connection_that_has_ended),
        T(a_registration_ends_what_was_kept_before),
        T(a_request_that_overtakes_the_registration_is_kept),
        T(requests_of_a_server_that_is_gone_are_dropped_and_others_stay),
        T(a_body_that_cannot_be_read_is_refused_alone),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
