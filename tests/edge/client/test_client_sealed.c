/* libbaton with a credential: over a fake daemon that has the daemon's own table of sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baton/client.h"
#include "protocol/client/credential.h"
#include "protocol/limits.h"
#include "supervisor/auth/sessions.h"
#include "tests/edge/client/fake.h"
#include "tests/support/cmocka.h"

enum { NOW = 1000, KEY = 7 };

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static const struct session_time at = {NOW, NOW};
static struct fake fake;
static struct bt_client *client;
static struct sessions *sessions;
static struct seal seal; /* of the request that is answered */
/* The session ends before this request is opened; 0 = never. */
static uint32_t ends_at;
static bool ends_always;
static bool had_token;

static struct credential credential(int key)
{
    struct credential c = {.who = {.id = "ci", .role = ROLE_ADMIN}, .created = 1};

    memset(c.key, key, sizeof c.key);
    return c;
}

static void know(void)
{
    struct credential *c = calloc(1, sizeof *c);

    *c = credential(KEY);
    (void)sessions_set(sessions, NULL, 0, at);
    (void)sessions_set(sessions, c, 1, at);
}

/* ---- the daemon, in its thread ---- */

static bool opens(struct fake *f, struct str bytes, struct str *ret_body)
{
    const struct session_peer peer = {STR_LIT("127.0.0.1:1"), 1};
    struct bt_error err;

    if (!seal_is_sealed(bytes)) {
        return false;
    }
    if (f->n == ends_at || ends_always) {
        know();
    }
    if (sessions_open(sessions, bytes, peer, at, &seal, ret_body, &err) != BT_OK) {
        *ret_body = STR_LIT("\x80"); /* msgpack: {} */
        return false;
    }
    return true;
}

static void seals(struct fake *f, struct buf *io_answer)
{
    struct buf out;

    (void)f;
    buf_init(&out, SEAL_HEADER_BYTES + LIMIT_STEP_BYTES);
    for (int i = 0; i < SEAL_HEADER_BYTES; i++) {
        buf_add_byte(&out, 0);
    }
    buf_add(&out, io_answer->at, io_answer->len);
    if (!sessions_seal(sessions, &seal, out.at, io_answer->len)) {
        abort();
    }
    buf_clear(io_answer);
    buf_add(io_answer, out.at, out.len);
    buf_done(&out);
}

static const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes)
{
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));
    uint8_t nonce[AUTH_NONCE_BYTES];
    struct session_begun b;
    char sid[2 * AUTH_SID_BYTES + 1];
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];

    (void)n, (void)shard, (void)bytes;
    had_token = had_token || doc_get(request, STR_LIT("token")).ptr != NULL;
    f->no_id = type.ptr == NULL;
    if (type.ptr == NULL) {
        return "'type':'error','ok':false,'error':{'code':'UNAUTHORIZED','class':'UNKNOWN',"
               "'message':'m','retryable':false}";
    }
    if (!str_is(type, "auth.begin")) {
        return "'type':'plan.get.ok','ok':true,'x':1";
    }
    if (!auth_unhex(doc_string(doc_get(request, STR_LIT("nonceC"))), nonce, sizeof nonce) ||
        sessions_begin(sessions, doc_string(doc_get(request, STR_LIT("credential"))), nonce,
                       STR_LIT("127.0.0.1:1"), at, &b, NULL) != BT_OK) {
        abort();
    }
    auth_hex(b.sid, sizeof b.sid, sid);
    auth_hex(b.nonce_s, sizeof b.nonce_s, nonce_s);
    auth_hex(b.proof, sizeof b.proof, proof);
    (void)snprintf(f->room, sizeof f->room,
                   "'type':'auth.begin.ok','ok':true,'sid':'%s','nonceS':'%s','proof':'%s'", sid,
                   nonce_s, proof);
    return f->room;
}

/* ---- */

static void start(int key)
{
    const struct credential c = credential(key);
    struct bt_error err;
    char path[96];

    ends_at = 0;
    ends_always = had_token = false;
    assert_int_equal(sessions_new(&sessions, &err), BT_OK);
    know();
    fake_start(&fake, says);
    fake.opens = opens;
    fake.seals = seals;
    (void)snprintf(path, sizeof path, "%s/ci", fake.dir);
    assert_int_equal(credential_write(path, &c, false, &err), BT_OK);
    assert_int_equal(setenv("BATON_CREDENTIAL", key % 2 == 0 ? path : "", 1), 0);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
    assert_int_equal(unsetenv("BATON_CREDENTIAL"), 0);
    if (key % 2 != 0) {
        assert_int_equal(bt_client_credential(client, path, &err), BT_OK);
    }
}

static void stop(void)
{
    bt_client_close(client);
    fake_stop(&fake);
    sessions_free(sessions);
}

static void answered(void)
{
    struct bt_error err;
    char *json = NULL;

    if (bt_client_call(client, "plan.get", NULL, &json, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(json, "{\"v\":1,\"type\":\"plan.get.ok\",\"ok\":true,\"x\":1}");
    bt_free(json);
}

static void a_session_is_begun_once_and_every_request_is_sealed(void **state)
{
    (void)state;
    start(KEY);
    answered();
    answered();
    assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 0 plan.get; ");
    assert_int_equal(sessions_count(sessions), 1);
    assert_false(had_token); /* the key is never sent, and the token is not even read */
    stop();
}

/* The daemon was started again: the request was refused unread. */
static void a_session_that_has_ended_is_begun_again(void **state)
{
    (void)state;
    start(KEY);
    answered();
    ends_at = 2;
    answered();
    assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 0 ; 0 auth.begin; 0 plan.get; ");
    stop();
}

static void a_daemon_that_takes_no_session_is_asked_three_times(void **state)
{
    struct bt_error err;

    (void)state;
    start(KEY);
    ends_always = true;
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAUTHORIZED);
    assert_int_equal(fake.n, 6);
    assert_non_null(strstr(err.msg, "the daemon at tcp://127.0.0.1:"));
    assert_non_null(strstr(err.msg, "it does not take the credential ci"));
    ends_always = false;
    answered(); /* the next call begins anew */
    stop();
}

static void a_daemon_with_another_key_is_told_nothing(void **state)
{
    struct bt_error err;

    (void)state;
    start(KEY + 1);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, "the daemon at tcp://127.0.0.1:"));
    assert_string_equal(fake.log, "0 auth.begin; ");
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_begun_once_and_every_request_is_sealed),
        cmocka_unit_test(a_session_that_has_ended_is_begun_again),
        cmocka_unit_test(a_daemon_that_takes_no_session_is_asked_three_times),
        cmocka_unit_test(a_daemon_with_another_key_is_told_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
