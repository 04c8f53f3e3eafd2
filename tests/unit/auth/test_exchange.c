/* The client's side of a request: when a handshake comes first, and when it comes again. The peer
 * is the daemon's own table of sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/client/exchange.h"
#include "protocol/wire/msg.h"
#include "supervisor/auth/sessions.h"

static const struct session_time at_start = {1000000, 5000000};
static const struct session_peer peer = {{"127.0.0.1:1", 11}, 1};
static const uint8_t right[AUTH_KEY_BYTES] = {1};
static const uint8_t wrong[AUTH_KEY_BYTES] = {2};

struct rig {
    struct sessions *sessions;
    struct exchange x;
    struct buf out, answer;
    struct str body; /* of the last answer */
    bool more;
    struct bt_error err;
};

/* One credential, "c"; none of that name when key is NULL. */
static void have(struct rig *r, const uint8_t *key)
{
    struct credential *c = calloc(1, sizeof *c);

    assert_non_null(c);
    if (key != NULL) {
        memcpy(c->who.id, "c", 2);
        memcpy(c->key, key, sizeof c->key);
    }
    (void)sessions_set(r->sessions, c, key != NULL ? 1 : 0, at_start);
}

static void arrange(struct rig *r)
{
    *r = (struct rig){.sessions = NULL};
    assert_int_equal(sessions_new(&r->sessions, NULL), BT_OK);
    buf_init(&r->out, LIMIT_CONTROL_BYTES);
    buf_init(&r->answer, LIMIT_CONTROL_BYTES);
    have(r, right);
    exchange_set(&r->x, "c", right);
    exchange_start(&r->x);
}

static void done(struct rig *r)
{
    sessions_free(r->sessions);
    buf_done(&r->out);
    buf_done(&r->answer);
}

static void answer_begin(struct rig *r)
{
    struct msg_reader reader = {0};
    struct msg_auth_begin m;
    struct session_begun b;
    uint8_t nonce_c[AUTH_NONCE_BYTES];
    char sid[2 * AUTH_SID_BYTES + 1];
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];
    struct msg_auth_begin_ok ok = {0};

    assert_int_equal(msg_reader_init(&reader, r->out.at, r->out.len, LIMIT_CONTROL_BYTES, NULL),
                     BT_OK);
    assert_int_equal(msg_read(&reader, MSG_auth_begin, &m, &r->err), BT_OK);
    assert_true(auth_unhex(m.nonce_c, nonce_c, sizeof nonce_c));
    assert_int_equal(
        sessions_begin(r->sessions, m.credential, nonce_c, peer.address, at_start, &b, NULL),
        BT_OK);
    msg_reader_done(&reader);
    auth_hex(b.sid, sizeof b.sid, sid);
    auth_hex(b.nonce_s, sizeof b.nonce_s, nonce_s);
    auth_hex(b.proof, sizeof b.proof, proof);
    ok.sid = str_from(sid);
    ok.nonce_s = str_from(nonce_s);
    ok.proof = str_from(proof);
    assert_int_equal(
        msg_answer(&r->answer, WIRE_MSGPACK, STR_LIT("auth"), MSG_auth_begin_ok, &ok, NULL), BT_OK);
}

/* What the daemon answers to what is in `out`: the body of a request again, sealed; a refusal
 * without a seal when it does not know the session. */
static void serve(struct rig *r)
{
    static const uint8_t room[SEAL_HEADER_BYTES] = {0};
    struct seal seal;
    struct str body;

    buf_clear(&r->answer);
    if (!seal_is_sealed(buf_str(&r->out))) {
        answer_begin(r);
    } else if (sessions_open(r->sessions, buf_str(&r->out), peer, at_start, &seal, &body, NULL) ==
               BT_OK) {
        buf_add(&r->answer, room, sizeof room);
        buf_add_str(&r->answer, body);
        assert_true(sessions_seal(r->sessions, &seal, r->answer.at, body.len));
    } else {
        buf_add_str(&r->answer, STR_LIT("refused"));
    }
}

/* One request and its answer: what it says, and whether there is more to send. */
static enum bt_code once(struct rig *r)
{
    buf_clear(&r->out);
    assert_int_equal(exchange_next(&r->x, STR_LIT("hello"), &r->out, &r->err), BT_OK);
    serve(r);
    return exchange_take(&r->x, buf_str(&r->answer), &r->body, &r->more, &r->err);
}

static void shakes_hands(struct rig *r)
{
    assert_int_equal(once(r), BT_OK);
    assert_true(r->more);
}

static void says_hello(struct rig *r)
{
    assert_true(exchange_is_open(&r->x));
    assert_int_equal(once(r), BT_OK);
    assert_false(r->more);
    assert_true(str_is(r->body, "hello"));
}

static void a_request_follows_its_handshake_and_the_next_one_needs_none(void **state)
{
    struct rig r;

    (void)state;
    arrange(&r);
    assert_false(exchange_is_open(&r.x));
    shakes_hands(&r);
    says_hello(&r);
    exchange_start(&r.x);
    says_hello(&r);
    done(&r);
}

static void a_session_that_ended_there_is_begun_again(void **state)
{
    struct rig r;

    (void)state;
    arrange(&r);
    shakes_hands(&r);
    sessions_free(r.sessions); /* a restart of the daemon */
    assert_int_equal(sessions_new(&r.sessions, NULL), BT_OK);
    have(&r, right);
    assert_int_equal(once(&r), BT_OK);
    assert_true(r.more);
    assert_false(exchange_is_open(&r.x));
    shakes_hands(&r);
    says_hello(&r);
    done(&r);
}

/* Two refusals are the end of a session; the third is that of the credential. */
static void what_is_refused_three_times_is_over(void **state)
{
    struct rig r;

    (void)state;
    arrange(&r);
    for (int request = 0; request < 2; request++) { /* each has its own tries */
        exchange_start(&r.x);
        for (int i = 1; i <= 3; i++) {
            have(&r, right);
            shakes_hands(&r);
            have(&r, NULL); /* revoked between handshake and request */
            assert_int_equal(once(&r), i < 3 ? BT_OK : BT_UNAUTHORIZED);
            assert_int_equal(r.more, i < 3);
        }
        assert_non_null(strstr(r.err.msg, "does not take the credential c"));
    }
    done(&r);
}

/* The credential with another key than the peer's. */
static void is_not_taken(struct rig *r)
{
    arrange(r);
    exchange_set(&r->x, "c", wrong);
    exchange_start(&r->x);
    assert_int_equal(once(r), BT_UNAUTHORIZED);
    assert_false(r->more);
    assert_false(exchange_is_open(&r->x));
}

static void a_peer_without_the_key_gets_no_request(void **state)
{
    struct rig r;

    (void)state;
    is_not_taken(&r);
    done(&r);
}

static void a_denial_names_the_credential_and_proves_nothing(void **state)
{
    struct rig r;
    struct seal seal;

    (void)state;
    is_not_taken(&r);
    buf_clear(&r.out);
    assert_int_equal(exchange_deny(&r.x, &r.out, &r.err), BT_OK);
    assert_int_equal(r.out.len, SEAL_HEADER_BYTES);
    assert_int_equal(
        sessions_open(r.sessions, buf_str(&r.out), peer, at_start, &seal, &r.body, &r.err),
        BT_UNAUTHORIZED);
    assert_true(str_is(sessions_claimed(r.sessions, &seal), "c"));
    assert_int_equal(sessions_count(r.sessions), 0);
    exchange_set(&r.x, "c", right);
    exchange_start(&r.x);
    shakes_hands(&r);
    says_hello(&r);
    done(&r);
}

static void another_key_ends_the_session(void **state)
{
    struct rig r;

    (void)state;
    arrange(&r);
    shakes_hands(&r);
    exchange_set(&r.x, "c", right);
    assert_false(exchange_is_open(&r.x));
    done(&r);
}

static enum bt_code take(struct rig *r, struct str answer)
{
    assert_int_equal(exchange_next(&r->x, STR_LIT("hello"), &r->out, &r->err), BT_OK);
    return exchange_take(&r->x, answer, &r->body, &r->more, &r->err);
}

/* Bytes that are no answer, before and after the handshake. */
static void garbage_is_no_answer(void **state)
{
    struct rig r;

    (void)state;
    arrange(&r);
    assert_int_not_equal(take(&r, STR_LIT("\xc1")), BT_OK);
    assert_false(r.more);
    assert_false(exchange_is_open(&r.x));
    shakes_hands(&r);
    assert_int_equal(take(&r, STR_LIT("")), BT_OK);
    assert_true(r.more);
    assert_false(exchange_is_open(&r.x));
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_follows_its_handshake_and_the_next_one_needs_none),
        cmocka_unit_test(a_session_that_ended_there_is_begun_again),
        cmocka_unit_test(what_is_refused_three_times_is_over),
        cmocka_unit_test(a_peer_without_the_key_gets_no_request),
        cmocka_unit_test(a_denial_names_the_credential_and_proves_nothing),
        cmocka_unit_test(another_key_ends_the_session),
        cmocka_unit_test(garbage_is_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
