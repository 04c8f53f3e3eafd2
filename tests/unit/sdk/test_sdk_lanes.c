/* What an agent answers on its lanes. */
#include "tests/unit/sdk/runtime_world.h"

#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
    (void)state;
    world_start(&(struct world_how){.capacity = 2});
    return 0;
}

static struct str own_key(void)
{
    return str_from(world.rt->session_key);
}

/* ---- requests with the key ---- */

static enum bt_code greets(struct str key, uint64_t epoch, const char *process)
{
    const struct msg_lane_hello m = {
        .lane = 1, .epoch = epoch, .session_key = key, .process_id = str_from(process)};
    struct msg_lane_hello_ok ok;
    enum bt_code code = world_read(world_send(MSG_lane_hello, &m), MSG_lane_hello_ok, &ok);

    if (code == BT_OK) {
        assert_true(str_is(ok.process_id, world.rt->process_id));
        assert_int_equal(ok.nonce_a.len, 0);
    }
    return code;
}

static void a_lane_is_greeted_with_the_key_the_epoch_and_the_process(void **state)
{
    (void)state;
    assert_int_equal(strlen(world.rt->session_key), 64);
    assert_int_equal(greets(own_key(), world.epoch, ""), BT_OK);
    assert_int_equal(greets(own_key(), world.epoch, world.rt->process_id), BT_OK);
    assert_int_equal(greets(own_key(), world.epoch, world.rt->instance_id), BT_CONFLICT);
    assert_int_equal(world.cls, CLASS_PROTOCOL_ERROR);
    assert_int_equal(greets(own_key(), world.epoch + 1, ""), BT_CONFLICT);
    assert_int_equal(greets(own_key(), world.epoch - 1, ""), BT_CONFLICT);
}

static void a_key_counts_whole(void **state)
{
    char key[66];

    (void)state;
    (void)snprintf(key, sizeof key, "%s", world.rt->session_key);
    key[63] = key[63] == '0' ? '1' : '0';
    assert_int_equal(greets(str_from(key), world.epoch, ""), BT_UNAUTHORIZED);
    assert_int_equal(world.cls, CLASS_PERMISSION_DENIED);
    (void)snprintf(key, sizeof key, "%s", world.rt->session_key);
    key[0] = key[0] == '0' ? '1' : '0';
    assert_int_equal(greets(str_from(key), world.epoch, ""), BT_UNAUTHORIZED);
    (void)snprintf(key, sizeof key, "%sa", world.rt->session_key);
    assert_int_equal(greets(str_from(key), world.epoch, ""), BT_UNAUTHORIZED);
    key[63] = 0;
    assert_int_equal(greets(str_from(key), world.epoch, ""), BT_UNAUTHORIZED);
    assert_int_equal(greets(STR_LIT(""), world.epoch, ""), BT_UNAUTHORIZED);
}

/* Of each request, once with the key and once without. */
static void no_request_is_read_without_the_key(void **state)
{
    const struct str none = {NULL, 0};
    struct msg_step_execute step = world_step("echo", "p/1/a");
    struct msg_step_cancel cancel = {.session_key = none, .key = STR_LIT("p/1/a")};
    struct msg_step_query query = {.session_key = none, .key = STR_LIT("p/1/a")};
    struct msg_agent_ping ping = {.session_key = none};
    struct msg_agent_stats stats = {.session_key = none};
    struct msg_step_state st;
    struct msg_agent_stats_ok got;
    struct msg_step_result result;
    struct msg_empty empty;

    (void)state;
    step.session_key = none;
    assert_int_equal(world_read(world_send(MSG_step_execute, &step), MSG_step_result, &result),
                     BT_UNAUTHORIZED);
    assert_int_equal(world_read(world_send(MSG_step_cancel, &cancel), MSG_step_state, &st),
                     BT_UNAUTHORIZED);
    assert_int_equal(world_read(world_send(MSG_step_query, &query), MSG_step_state, &st),
                     BT_UNAUTHORIZED);
    assert_int_equal(world_read(world_send(MSG_agent_ping, &ping), MSG_empty, &empty),
                     BT_UNAUTHORIZED);
    assert_int_equal(world_read(world_send(MSG_agent_stats, &stats), MSG_agent_stats_ok, &got),
                     BT_UNAUTHORIZED);
    ping.session_key = stats.session_key = own_key();
    assert_int_equal(world_read(world_send(MSG_agent_ping, &ping), MSG_empty, &empty), BT_OK);
    assert_int_equal(world_read(world_send(MSG_agent_stats, &stats), MSG_agent_stats_ok, &got),
                     BT_OK);
    assert_int_equal(got.num_requests, 0);
    assert_int_equal(got.average_processing_time, 0);
}

static void what_cannot_be_read_is_refused_in_its_form_with_its_id(void **state)
{
    static const struct {
        const char *bytes;
        const char *words;
    } cases[] = {
        {"{\"v\":2,\"type\":\"agent.ping\",\"id\":\"r7\"}", "v: this agent speaks version 1 only"},
        {"{\"v\":0,\"type\":\"agent.ping\",\"id\":\"r7\"}", "v: this agent speaks version 1 only"},
        {"{\"v\":1,\"type\":\"plan.submit\",\"id\":\"r7\"}", "type 'plan.submit': an agent has no "
                                                             "such request"},
        {"{\"v\":1,\"type\":\"step.query\",\"id\":\"r7\"}", "key"},
        {"{\"v\":1,\"type\":\"step.execute\",\"id\":\"r7\"}", "planId"},
    };
    struct msg_envelope e;
    struct msg_empty none;
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t r = world_send_raw(cases[i].bytes, strlen(cases[i].bytes), 1);
        assert_int_equal(world_bytes(r).ptr[0], '{');
        assert_int_equal(world_read(r, MSG_empty, &none), BT_INVALID);
        assert_non_null(strstr(world.text, cases[i].words));
        assert_int_equal(world.cls, CLASS_PROTOCOL_ERROR);
        assert_int_equal(msg_read(&world.reader, MSG_envelope, &e, &err), BT_OK);
        assert_true(str_is(e.id, "r7"));
    }
    assert_int_equal(world_read(world_send_raw("{\"v\":", 5, 1), MSG_empty, &none), BT_INVALID);
    assert_int_equal(world_read(world_send_raw("\x93", 1, 1), MSG_empty, &none), BT_INVALID);
    assert_int_not_equal(world_bytes(world.request).ptr[0], '{');
}

/* ---- steps ---- */

static void a_result_names_its_attempt_and_its_instance(void **state)
{
    struct msg_step_execute m = world_step("echo", "p/1/a");
    struct msg_step_result got;

    (void)state;
    m.attempt = 3;
    assert_int_equal(world_read(world_send(MSG_step_execute, &m), MSG_step_result, &got), BT_OK);
    assert_true(str_is(got.outcome, "completed"));
    assert_true(str_is(got.result.text, "-"));
    assert_true(str_is(got.key, "p/1/a"));
    assert_true(str_is(got.instance_id, world.rt->instance_id));
    assert_int_equal(got.attempt, 3);
    assert_int_equal(got.epoch, world.epoch);
}

static void a_skill_that_is_not_there_is_named(void **state)
{
    struct msg_step_execute m = world_step("dance", "p/1/a");
    struct msg_step_result got;

    (void)state;
    assert_int_equal(world_read(world_send(MSG_step_execute, &m), MSG_step_result, &got),
                     BT_NOT_FOUND);
    assert_int_equal(world.cls, CLASS_TOOL_NOT_FOUND);
    assert_string_equal(world.text, "skill 'dance': this agent has no such skill");
    m.purpose = STR_LIT("gate");
    m.skill = STR_LIT("gate");
    assert_int_equal(world_read(world_send(MSG_step_execute, &m), MSG_step_result, &got),
                     BT_NOT_FOUND);
    assert_int_equal(world.cls, CLASS_TOOL_NOT_FOUND);
    m.purpose = STR_LIT("new");
    assert_int_equal(world_read(world_send(MSG_step_execute, &m), MSG_step_result, &got),
                     BT_INVALID);
}

static void more_steps_than_the_capacity_are_busy_and_may_be_tried_again(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_step_execute b = world_step("later", "p/1/b");
    struct msg_step_execute c = world_step("later", "p/1/c");
    struct msg_step_result got;
    uint64_t first;
    uint64_t second;

    (void)state;
    first = world_send(MSG_step_execute, &a);
    second = world_send(MSG_step_execute, &b);
    assert_int_equal(world_read(world_send(MSG_step_execute, &c), MSG_step_result, &got), BT_BUSY);
    assert_int_equal(world.cls, CLASS_SERVICE_UNAVAILABLE);
    assert_false(world_is_answered(first));
    bt_step_done(world.later); /* b */
    world_cycle();
    assert_false(world_is_answered(first));
    assert_int_equal(world_read(second, MSG_step_result, &got), BT_OK);
    (void)world_send(MSG_step_execute, &c);
    assert_false(world_is_answered(world.request));
}

static void the_newest_request_of_an_attempt_is_answered_and_none_is_left_open(void **state)
{
    struct msg_step_execute m = world_step("later", "p/1/a");
    struct msg_step_result got;
    uint64_t first;
    uint64_t second;

    (void)state;
    first = world_send(MSG_step_execute, &m);
    second = world_send(MSG_step_execute, &m);
    assert_int_not_equal(world_read(first, MSG_step_result, &got), BT_OK);
    assert_false(world_is_answered(second));
    bt_step_done(world.later);
    world_cycle();
    assert_int_equal(world_read(second, MSG_step_result, &got), BT_OK);
    assert_int_equal(world.rt->stats.requests, 1);
    /* and from what is kept, when it has ended */
    assert_int_equal(world_read(world_send(MSG_step_execute, &m), MSG_step_result, &got), BT_OK);
    assert_int_equal(world.rt->stats.requests, 1);
    for (uint64_t i = 0; i < RUNTIME_REQUESTS; i++) {
        assert_false(world.rt->requests[i].open);
    }
}

static struct msg_step_state asks(const char *key, uint64_t attempt)
{
    const struct msg_step_query m = {
        .session_key = own_key(), .key = str_from(key), .attempt = attempt};
    struct msg_step_state got;

    assert_int_equal(world_read(world_send(MSG_step_query, &m), MSG_step_state, &got), BT_OK);
    assert_true(str_is(got.key, key));
    return got;
}

static void a_query_tells_what_became_of_an_attempt(void **state)
{
    struct msg_step_execute m = world_step("later", "p/1/a");
    struct msg_step_state got;

    (void)state;
    assert_true(str_is(asks("p/1/a", 1).state, "unknown"));
    (void)world_send(MSG_step_execute, &m);
    got = asks("p/1/a", 1);
    assert_true(str_is(got.state, "running"));
    assert_false(msg_has(&got, step_state, result));
    assert_true(str_is(asks("p/1/a", 2).state, "unknown"));
    bt_step_reply_text(world.later, "done at last");
    bt_step_done(world.later);
    world_cycle();
    got = asks("p/1/a", 1);
    assert_true(str_is(got.state, "done"));
    assert_true(msg_has(&got, step_state, result));
    assert_true(str_is(got.result.result.text, "done at last"));
    assert_int_equal(got.result.attempt, 1);
    m.attempt = 2;
    (void)world_send(MSG_step_execute, &m);
    assert_true(str_is(asks("p/1/a", 1).state, "forgotten"));
    assert_true(str_is(asks("p/1/a", 0).state, "running"));
}

static void a_cancel_is_of_its_attempt_and_its_grace_is_counted(void **state)
{
    enum { GRACE_MS = 500 };
    struct msg_step_execute m = world_step("later", "p/1/a");
    struct msg_step_cancel cancel = {
        .session_key = own_key(), .key = STR_LIT("p/1/a"), .attempt = 2, .grace_ms = GRACE_MS};
    struct msg_step_state got;

    (void)state;
    (void)world_send(MSG_step_execute, &m);
    assert_int_equal(world_read(world_send(MSG_step_cancel, &cancel), MSG_step_state, &got), BT_OK);
    assert_true(str_is(got.state, "unknown"));
    assert_true(str_is(got.key, "p/1/a"));
    assert_int_equal(world.told, 0);
    cancel.attempt = 1;
    assert_int_equal(world_read(world_send(MSG_step_cancel, &cancel), MSG_step_state, &got), BT_OK);
    assert_true(str_is(got.state, "running"));
    assert_int_equal(world.told, 1);
    assert_true(bt_step_cancelled(world.later));
    world_pass(GRACE_MS - 1);
    assert_false(world.rt->agent_state.slots[0].overdue);
    world_pass(1);
    assert_true(world.rt->agent_state.slots[0].overdue);
    assert_int_equal(world.told, 1);
}

static void counters_tell_what_ran_how_long_and_the_last_error(void **state)
{
    enum { MS = 1000000 };
    struct msg_agent_stats ask = {.session_key = own_key()};
    struct msg_step_execute m = world_step("slow", "p/1/a");
    struct msg_agent_stats_ok got;
    char text[LIMIT_KEY_BYTES * 4];
    struct bt_error err;
    struct buf p;

    (void)state;
    buf_init(&p, 4096);
    assert_int_equal(json_to_doc(STR_LIT("{\"ms\":30}"), NULL, &p, &err), BT_OK);
    m.parameters = doc_from_buf(&p);
    (void)world_send(MSG_step_execute, &m);
    memset(text, 'x', sizeof text);
    buf_clear(&p);
    doc_put_map(&p, 1);
    doc_put_cstr(&p, "text");
    doc_put_str(&p, (struct str){text, sizeof text});
    m = world_step("fail", "p/1/b");
    m.parameters = doc_from_buf(&p);
    (void)world_send(MSG_step_execute, &m);
    assert_int_equal(world_read(world_send(MSG_agent_stats, &ask), MSG_agent_stats_ok, &got),
                     BT_OK);
    assert_int_equal(got.num_requests, 2);
    assert_int_equal(got.num_errors, 1);
    assert_int_equal(got.processing_time, 30 * MS);
    assert_int_equal(got.average_processing_time, 15 * MS);
    assert_int_equal(got.last_error.len, 500);
    assert_int_equal(got.started.len, CLOCK_ISO_LEN);
    buf_done(&p);
}

/* There are never so many requests; each lane would still get an answer. */
static void a_request_without_a_place_is_answered_with_nothing(void **state)
{
    struct msg_agent_ping ping = {.session_key = own_key()};

    (void)state;
    for (uint64_t i = 0; i < RUNTIME_REQUESTS; i++) {
        world.rt->requests[i].open = true;
    }
    assert_int_equal(world_bytes(world_send(MSG_agent_ping, &ping)).len, 0);
    world.rt->requests[RUNTIME_REQUESTS - 1].open = false;
    assert_int_not_equal(world_bytes(world_send(MSG_agent_ping, &ping)).len, 0);
}

/* ---- places that sessions with other shards share ---- */

bool __wrap_shards_place_take(void);
void __wrap_shards_place_put(void);
static int places_taken;
static bool no_place;

bool __wrap_shards_place_take(void)
{
    places_taken += no_place ? 0 : 1;
    return !no_place;
}

void __wrap_shards_place_put(void)
{
    places_taken--;
}

static void a_step_has_a_place_while_it_runs_and_no_other_request_keeps_one(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_step_execute b = world_step("later", "p/1/b");
    struct msg_step_execute c = world_step("echo", "p/1/c");
    struct msg_step_result got;

    (void)state;
    places_taken = 0;
    (void)world_send(MSG_step_execute, &a);
    assert_int_equal(places_taken, 1);
    (void)world_send(MSG_step_execute, &a); /* the same attempt */
    assert_int_equal(places_taken, 1);
    (void)world_send(MSG_step_execute, &b);
    assert_int_equal(places_taken, 2);
    (void)world_send(MSG_step_execute, &c); /* more than the capacity */
    assert_int_equal(places_taken, 2);
    bt_step_done(world.later);
    world_cycle();
    assert_int_equal(places_taken, 1);
    (void)world_send(MSG_step_execute, &c); /* done at once */
    assert_int_equal(places_taken, 1);
    no_place = true;
    b.attempt = 2;
    assert_int_equal(world_read(world_send(MSG_step_execute, &b), MSG_step_result, &got), BT_BUSY);
    no_place = false;
    assert_int_equal(places_taken, 1);
}

/* ---- proofs ---- */

struct side {
    struct lane_proof proof;
    char nonce[2 * AUTH_NONCE_BYTES + 1];
    char text[2 * AUTH_KEY_BYTES + 1];
};

static uint64_t says(uint32_t pipe, uint64_t lane, uint64_t epoch, const char *nonce,
                     const char *proof)
{
    const struct msg_lane_hello m = {
        .lane = lane, .epoch = epoch, .nonce_s = str_from(nonce), .proof = str_from(proof)};

    return world_send_by(world.rt->server, pipe, MSG_lane_hello, &m);
}

/* The first hello of the supervisor, and the proof that its second one needs. */
static struct side begins(uint32_t pipe, uint64_t lane)
{
    struct side s = {.proof = {.lane = lane, .epoch = world.epoch}};
    struct msg_lane_hello_ok ok;
    uint8_t proof[AUTH_KEY_BYTES];

    memset(s.proof.nonce_s, (int)(pipe % 251 + 1), sizeof s.proof.nonce_s);
    auth_hex(s.proof.nonce_s, sizeof s.proof.nonce_s, s.nonce);
    assert_int_equal(world_read(says(pipe, lane, world.epoch, s.nonce, ""), MSG_lane_hello_ok, &ok),
                     BT_OK);
    assert_true(str_is(ok.process_id, world.rt->process_id));
    assert_true(auth_unhex(ok.nonce_a, s.proof.nonce_a, sizeof s.proof.nonce_a));
    assert_true(lane_proof_check(own_key(), LANE_SIDE_AGENT, &s.proof, ok.proof));
    assert_true(lane_proof_make(own_key(), LANE_SIDE_SUPERVISOR, &s.proof, proof));
    auth_hex(proof, sizeof proof, s.text);
    return s;
}

static enum bt_code proves(uint32_t pipe, const struct side *s)
{
    struct msg_lane_hello_ok ok;

    return world_read(says(pipe, s->proof.lane, s->proof.epoch, s->nonce, s->text),
                      MSG_lane_hello_ok, &ok);
}

static void admits(uint32_t pipe)
{
    const struct side s = begins(pipe, 1);

    assert_int_equal(proves(pipe, &s), BT_OK);
}

static bool is_admitted(uint32_t pipe)
{
    const struct msg_agent_ping ping = {.session_key = {NULL, 0}};
    struct msg_empty none;

    return world_read(world_send_by(world.rt->server, pipe, MSG_agent_ping, &ping), MSG_empty,
                      &none) == BT_OK;
}

static void a_connection_that_was_proved_needs_no_key_and_no_other_one_is(void **state)
{
    (void)state;
    assert_false(is_admitted(7));
    admits(7);
    assert_true(is_admitted(7));
    assert_true(is_admitted(7));
    assert_false(is_admitted(8));
}

static void a_proof_counts_once_for_its_lane_its_epoch_and_its_connection(void **state)
{
    struct side s = begins(7, 1);
    struct msg_lane_hello_ok ok;

    (void)state;
    assert_int_equal(proves(8, &s), BT_UNAUTHORIZED); /* which has not begun */
    s.proof.lane = 2;
    assert_int_equal(proves(7, &s), BT_UNAUTHORIZED);
    s.proof.lane = 1;
    s.proof.epoch++;
    assert_int_equal(proves(7, &s), BT_UNAUTHORIZED);
    s.proof.epoch--;
    s.text[0] = s.text[0] == '0' ? '1' : '0';
    assert_int_equal(proves(7, &s), BT_UNAUTHORIZED);
    assert_false(is_admitted(7));
    s = begins(7, 1);
    assert_int_equal(proves(7, &s), BT_OK);
    assert_int_equal(proves(7, &s), BT_UNAUTHORIZED);
    assert_int_equal(world_read(says(9, 1, world.epoch, "abc", ""), MSG_lane_hello_ok, &ok),
                     BT_INVALID);
    assert_string_equal(world.text, "nonceS: expected 64 hexadecimal digits");
}

/* The supervisor has proved itself; its registration is another one. */
static void a_proof_does_not_replace_the_epoch(void **state)
{
    struct side s;

    (void)state;
    world.epoch++;
    s = begins(7, 1);
    world.epoch--;
    assert_int_equal(proves(7, &s), BT_CONFLICT);
    assert_true(is_admitted(7));
}

static void strangers_take_no_place_of_a_connection_that_was_proved(void **state)
{
    (void)state;
    admits(7);
    for (uint32_t i = 0; i < RUNTIME_PIPES + 40; i++) {
        (void)begins(1000 + i, 1);
    }
    assert_true(is_admitted(7));
}

static void the_stranger_that_is_silent_longest_gives_its_place(void **state)
{
    struct side first = begins(1000, 1);
    struct side second = begins(1001, 1);

    (void)state;
    for (uint32_t i = 2; i < RUNTIME_PIPES; i++) {
        (void)begins(1000 + i, 1);
    }
    (void)begins(7, 1); /* one more than there are places */
    assert_int_equal(proves(1001, &second), BT_OK);
    assert_int_equal(proves(1000, &first), BT_UNAUTHORIZED);
}

static void of_peers_the_one_that_is_silent_longest_gives_its_place(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < RUNTIME_PIPES; i++) {
        admits(1000 + i);
    }
    assert_true(is_admitted(1000)); /* silent longest is 1001 now */
    admits(7);
    assert_true(is_admitted(1000));
    assert_false(is_admitted(1001));
    assert_true(is_admitted(1002));
    assert_true(is_admitted(7));
}

static void a_connection_that_begins_again_keeps_one_place(void **state)
{
    struct side other = begins(8, 1);

    (void)state;
    for (uint32_t i = 0; i < 2 * RUNTIME_PIPES; i++) {
        (void)begins(7, 1);
    }
    assert_int_equal(proves(8, &other), BT_OK);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, world_end)
    const struct CMUnitTest tests[] = {
        T(a_lane_is_greeted_with_the_key_the_epoch_and_the_process),
        T(a_key_counts_whole),
        T(no_request_is_read_without_the_key),
        T(what_cannot_be_read_is_refused_in_its_form_with_its_id),
        T(a_result_names_its_attempt_and_its_instance),
        T(a_skill_that_is_not_there_is_named),
        T(more_steps_than_the_capacity_are_busy_and_may_be_tried_again),
        T(the_newest_request_of_an_attempt_is_answered_and_none_is_left_open),
        T(a_query_tells_what_became_of_an_attempt),
        T(a_cancel_is_of_its_attempt_and_its_grace_is_counted),
        T(counters_tell_what_ran_how_long_and_the_last_error),
        T(a_request_without_a_place_is_answered_with_nothing),
        T(a_step_has_a_place_while_it_runs_and_no_other_request_keeps_one),
        T(a_connection_that_was_proved_needs_no_key_and_no_other_one_is),
        T(a_proof_counts_once_for_its_lane_its_epoch_and_its_connection),
        T(a_proof_does_not_replace_the_epoch),
        T(strangers_take_no_place_of_a_connection_that_was_proved),
        T(the_stranger_that_is_silent_longest_gives_its_place),
        T(of_peers_the_one_that_is_silent_longest_gives_its_place),
        T(a_connection_that_begins_again_keeps_one_place),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
