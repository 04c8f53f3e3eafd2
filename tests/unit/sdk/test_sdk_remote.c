/* An agent with a credential, and one of a supervisor on another host. The daemon is its own table
 * of sessions. */
#include "tests/unit/sdk/runtime_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/client/credential.h"
#include "protocol/client/seeds.h"
#include "supervisor/auth/sessions.h"

static const struct session_time at_start = {1000000, 5000000};
static const struct session_peer peer = {{"127.0.0.1:1", 11}, 1};
static const uint8_t right[AUTH_KEY_BYTES] = {1};
static const uint8_t other[AUTH_KEY_BYTES] = {2};
static struct sessions *sessions;
static struct seal seal; /* of the last request */
static uint32_t handshakes;
static char file[80];

/* The daemon has the credential "c" with this key. */
static void daemon_has(const uint8_t *key)
{
    struct credential *c = calloc(1, sizeof *c);

    assert_non_null(c);
    memcpy(c->who.id, "c", 2);
    memcpy(c->key, key, sizeof c->key);
    (void)sessions_set(sessions, c, 1, at_start);
}

/* The file that the agent was given. */
static void agent_has(const uint8_t *key, msec expires)
{
    struct credential c = {
        .who = {.id = "c", .role = ROLE_AGENT}, .created = 1, .expires = expires};
    struct bt_error err;

    memcpy(c.key, key, sizeof c.key);
    assert_int_equal(credential_write(file, &c, true, &err), BT_OK);
}

static int set_up(void **state)
{
    (void)state;
    handshakes = 0;
    (void)snprintf(file, sizeof file, "/tmp/baton-test-credential-%ld", (long)getpid());
    assert_int_equal(sessions_new(&sessions, NULL), BT_OK);
    daemon_has(right);
    agent_has(right, 0);
    return 0;
}

static int tear_down(void **state)
{
    sessions_free(sessions);
    (void)unlink(file);
    return world_end(state);
}

static void answer_handshake(const struct buf *sent)
{
    struct msg_reader r = {0};
    struct msg_auth_begin m;
    struct session_begun b;
    struct bt_error err;
    uint8_t nonce_c[AUTH_NONCE_BYTES];
    char sid[2 * AUTH_SID_BYTES + 1];
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];
    struct buf out;

    handshakes++;
    assert_int_equal(msg_reader_init(&r, sent->at, sent->len, LIMIT_CONTROL_BYTES, &err), BT_OK);
    assert_int_equal(msg_read(&r, MSG_auth_begin, &m, &err), BT_OK);
    assert_true(str_is(m.credential, "c"));
    assert_true(auth_unhex(m.nonce_c, nonce_c, sizeof nonce_c));
    assert_int_equal(
        sessions_begin(sessions, m.credential, nonce_c, peer.address, at_start, &b, &err), BT_OK);
    msg_reader_done(&r);
    auth_hex(b.sid, sizeof b.sid, sid);
    auth_hex(b.nonce_s, sizeof b.nonce_s, nonce_s);
    auth_hex(b.proof, sizeof b.proof, proof);
    buf_init(&out, 4096);
    assert_int_equal(msg_answer(&out, WIRE_MSGPACK, STR_LIT("auth"), MSG_auth_begin_ok,
                                &(struct msg_auth_begin_ok){.sid = str_from(sid),
                                                            .nonce_s = str_from(nonce_s),
                                                            .proof = str_from(proof)},
                                &err),
                     BT_OK);
    world_answer_raw((const char *)out.at, out.len);
    buf_done(&out);
}

/* The request that is outstanding, after its handshake when it has none yet. */
static void takes(enum msg_type type, struct str *ret_id)
{
    static char id[65];
    struct msg_reader r = {0};
    struct msg_envelope e;
    struct bt_error err = {.msg = ""};
    struct str body;

    assert_true(world_control()->outstanding);
    if (!seal_is_sealed(buf_str(&world_control()->sent))) {
        answer_handshake(&world_control()->sent);
    }
    assert_true(world_control()->outstanding);
    assert_int_equal(sessions_open(sessions, buf_str(&world_control()->sent), peer, at_start, &seal,
                                   &body, &err),
                     BT_OK);
    assert_int_equal(msg_reader_init(&r, body.ptr, body.len, LIMIT_CONTROL_BYTES, &err), BT_OK);
    assert_int_equal(msg_read(&r, MSG_envelope, &e, &err), BT_OK);
    assert_true(str_is(e.type, msg_wire_type(type)));
    assert_int_equal(e.token.len, 0); /* it proves itself otherwise */
    (void)snprintf(id, sizeof id, "%.*s", STR_ARG(e.id));
    *ret_id = str_from(id);
    msg_reader_done(&r);
}

static void answers(struct str id, enum msg_type type, const void *body)
{
    static const uint8_t room[SEAL_HEADER_BYTES] = {0};
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_CONTROL_BYTES);
    buf_add(&out, room, sizeof room);
    assert_int_equal(msg_answer(&out, WIRE_MSGPACK, id, type, body, &err), BT_OK);
    assert_true(sessions_seal(sessions, &seal, out.at, out.len - sizeof room));
    world_answer_raw((const char *)out.at, out.len);
    buf_done(&out);
}

static void registers_with(struct str *lanes, uint32_t n)
{
    struct str id;

    takes(MSG_agent_register, &id);
    answers(id, MSG_agent_registered_ok,
            &(struct msg_agent_registered_ok){.epoch = ++world.epoch,
                                              .lease_ms = WORLD_LEASE_MS,
                                              .heartbeat_ms = WORLD_BEAT_MS,
                                              .lanes = lanes,
                                              .lanes_n = n});
    assert_true(world.rt->agent_state.registered);
}

static void beats(void)
{
    struct str id;

    world_pass(WORLD_BEAT_MS);
    takes(MSG_agent_heartbeat, &id);
    answers(id, MSG_agent_heartbeat_ok,
            &(struct msg_agent_heartbeat_ok){.lease_ms = WORLD_LEASE_MS});
    assert_true(world.rt->agent_state.registered);
}

static void begins(const struct world_how *how)
{
    struct bt_error err = {.msg = ""};

    if (world_begin(how, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void a_request_of_a_credential_is_sealed_after_one_handshake(void **state)
{
    (void)state;
    begins(&(struct world_how){.args = {"--credential", file}});
    world_up();
    registers_with(NULL, 0);
    beats();
    beats();
    assert_int_equal(handshakes, 1);
    assert_string_equal(world.rt->token, ""); /* it was not even read */
}

/* Its node gave the process a credential of its own. */
static void the_credential_of_the_process_is_used_where_no_file_is_given(void **state)
{
    static const char bytes[] = "credential=c\0key=01000000000000000000000000000000"
                                "00000000000000000000000000000000";
    char number[16];
    const int fd = memfd_create("handover", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    (void)snprintf(number, sizeof number, "%d", fd);
    assert_int_equal(setenv("BATON_HANDOVER", number, 1), 0);
    begins(&(struct world_how){.capacity = 1});
    world_up();
    registers_with(NULL, 0);
    beats();
    /* a supervisor of another node does not know it */
    world.rt->elsewhere = true;
    assert_int_equal(runtime_credential(world.rt, &(struct bt_error){0}), BT_OK);
    assert_string_equal(world.rt->credential.id, "");
    world.rt->elsewhere = false;
    assert_int_equal(runtime_credential(world.rt, &(struct bt_error){0}), BT_OK);
    assert_string_equal(world.rt->credential.id, "c");
}

static void after_a_forged_answer_it_is_not_registered(void **state)
{
    struct str id;

    (void)state;
    begins(&(struct world_how){.args = {"--credential", file}});
    world_up();
    registers_with(NULL, 0);
    world_pass(WORLD_BEAT_MS);
    takes(MSG_agent_heartbeat, &id);
    world_answer_raw("\x81\xa1x\x01", 4);
    /* unsealed: the session may have ended there. It shakes hands again, and asks again. */
    assert_true(world_control()->outstanding);
    assert_false(seal_is_sealed(buf_str(&world_control()->sent)));
    daemon_has(other);
    answer_handshake(&world_control()->sent); /* by who has another key */
    assert_false(world.rt->agent_state.registered);
    assert_false(world.rt->outstanding);
}

static void a_key_that_was_rotated_is_read_again(void **state)
{
    struct str id;

    (void)state;
    begins(&(struct world_how){.args = {"--credential", file}});
    world_up();
    registers_with(NULL, 0);
    daemon_has(other); /* which ends the session */
    agent_has(other, 0);
    world_pass(WORLD_BEAT_MS);
    assert_true(world_control()->outstanding);
    world_answer_raw("refused", 7);
    takes(MSG_agent_heartbeat, &id);
    answers(id, MSG_agent_heartbeat_ok,
            &(struct msg_agent_heartbeat_ok){.lease_ms = WORLD_LEASE_MS});
    assert_true(world.rt->agent_state.registered);
    assert_int_equal(handshakes, 2);
}

static void a_credential_that_has_expired_sends_nothing(void **state)
{
    (void)state;
    begins(&(struct world_how){.args = {"--credential", file}});
    agent_has(right, 2); /* long ago */
    world_up();
    assert_false(world_control()->outstanding);
    assert_int_equal(world_control()->sent.len, 0);
    assert_false(world.rt->outstanding);
    agent_has(right, 0);
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_true(world_control()->outstanding);
}

/* ---- another host ---- */

#define FILES "--credential", file, "--ca", "/ca", "--cert", "/cert"

static void another_host_is_dialed_with_tls_and_its_lanes_by_the_name_that_works(void **state)
{
    struct str lanes[] = {STR_LIT("tls+tcp://10.0.0.1:7501"), STR_LIT("tls+tcp://[::1]:7502"),
                          STR_LIT("7503")};
    struct link *l;

    (void)state;
    begins(&(struct world_how){.args = {"--connect", "tls+tcp://one.example:7100", FILES}});
    l = world.rt->link;
    assert_string_equal(world_control()->url, "tls+tcp://one.example:7100");
    assert_string_equal(world_control()->limits.ca_file, "/ca");
    assert_string_equal(world_control()->limits.cert_file, "/cert");
    assert_int_equal(world_control()->limits.recv_max, SEAL_HEADER_BYTES + LIMIT_CONTROL_BYTES);
    assert_int_equal(world.rt->look_at, MSEC_NEVER); /* there is no other one */
    world_up();
    registers_with(lanes, 3);
    assert_int_equal(world.rt->dialed_n, 3);
    assert_string_equal(fake_link_server(l, 0)->url, "tls+tcp://one.example:7501");
    assert_string_equal(fake_link_server(l, 1)->url, "tls+tcp://one.example:7502");
    assert_string_equal(fake_link_server(l, 2)->url, "tls+tcp://one.example:7503");
    assert_string_equal(fake_link_server(l, 0)->limits.ca_file, "/ca");
    assert_string_equal(fake_link_server(l, 0)->limits.cert_file, "/cert");
    beats();
}

/* The connection is there: only the registration is made again. */
static void a_lane_that_is_up_is_kept(void **state)
{
    (void)state;
    begins(&(struct world_how){.args = {"--connect", "tls+tcp://one.example:7100", FILES}});
    world_up();
    registers_with(NULL, 0);
    runtime_feed(world.rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_int_equal(fake_link_lanes(world.rt->link), 1);
    registers_with(NULL, 0);
    assert_int_equal(handshakes, 1);
}

/* Half open: it is up, and its request has no answer within the lease. */
static void a_lane_that_is_silent_for_a_lease_is_replaced(void **state)
{
    (void)state;
    begins(&(struct world_how){.args = {"--connect", "tls+tcp://one.example:7100", FILES}});
    world_up();
    registers_with(NULL, 0);
    world_pass(WORLD_BEAT_MS);
    assert_true(world_control()->outstanding);
    world_pass(WORLD_LEASE_MS);
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_int_equal(fake_link_lanes(world.rt->link), 2);
    assert_true(fake_link_lane(world.rt->link, 0)->retired);
    assert_false(world_control()->retired);
    assert_false(world.rt->outstanding);
    assert_string_equal(world_control()->url, "tls+tcp://one.example:7100");
    world_up();
    registers_with(NULL, 0);
}

#define TWO "tls+tcp://one.example:1,tls+tcp://two.example:2"

static void of_several_the_next_is_dialed_when_one_has_its_time(void **state)
{
    static const char *const urls[] = {"tls+tcp://one.example:1", "tls+tcp://two.example:2"};

    (void)state;
    begins(&(struct world_how){.args = {"--connect", TWO, FILES}});
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(world_control()->url, urls[i]);
        assert_int_equal(fake_link_lanes(world.rt->link), i + 1);
        assert_int_equal(world.rt->look_at, world_now + SEED_MS);
        world_pass(SEED_MS - 1);
        assert_int_equal(fake_link_lanes(world.rt->link), i + 1);
        world_pass(1);
        assert_true(fake_link_lane(world.rt->link, i)->retired);
    }
    assert_string_equal(world_control()->url, urls[0]); /* round again, with more patience */
    assert_int_equal(world.rt->look_at, world_now + 2 * SEED_MS);
    world_up();
    assert_int_equal(world.rt->look_at, MSEC_NEVER);
    assert_int_equal(world.rt->in_vain, 0);
    registers_with(NULL, 0);
    beats();
}

static void of_several_the_next_is_asked_when_one_does_not_answer(void **state)
{
    (void)state;
    begins(&(struct world_how){.args = {"--connect", TWO, FILES}});
    world_up();
    registers_with(NULL, 0);
    world_pass(WORLD_BEAT_MS);
    world_pass(WORLD_LEASE_MS);
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_string_equal(world_control()->url, "tls+tcp://two.example:2");
    world_up();
    registers_with(NULL, 0);
}

/* It leads no more, but its connection is there and it has said so: it says where to go. */
static void of_several_the_one_that_answers_is_kept(void **state)
{
    (void)state;
    begins(&(struct world_how){.args = {"--connect", TWO, FILES}});
    world_up();
    registers_with(NULL, 0);
    runtime_feed(world.rt, (struct agent_state_event){.type = AGENT_STATE_LOST});
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_int_equal(fake_link_lanes(world.rt->link), 1);
    registers_with(NULL, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_request_of_a_credential_is_sealed_after_one_handshake),
        T(the_credential_of_the_process_is_used_where_no_file_is_given),
        T(after_a_forged_answer_it_is_not_registered),
        T(a_key_that_was_rotated_is_read_again),
        T(a_credential_that_has_expired_sends_nothing),
        T(another_host_is_dialed_with_tls_and_its_lanes_by_the_name_that_works),
        T(a_lane_that_is_up_is_kept),
        T(a_lane_that_is_silent_for_a_lease_is_replaced),
        T(of_several_the_next_is_dialed_when_one_has_its_time),
        T(of_several_the_next_is_asked_when_one_does_not_answer),
        T(of_several_the_one_that_answers_is_kept),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
