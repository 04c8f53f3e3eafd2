/* libbaton with a credential: over a fake daemon that has the daemon's own table of sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baton/client.h"
#include "protocol/client/credential.h"
#include "tests/edge/client/fake_sessions.h"
#include "tests/support/cmocka.h"

enum { KEY = FAKE_KEY };

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static struct fake fake;
static struct bt_client *client;

static const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes)
{
    const char *answer = fake_begins(f, request);

    (void)n, (void)shard, (void)bytes;
    return answer != NULL ? answer : "'type':'plan.get.ok','ok':true,'x':1";
}

static void start(int key)
{
    const struct credential c = fake_credential(key);
    struct bt_error err;
    char path[96];

    fake_sessions_open();
    fake_start(&fake, says);
    fake_seals(&fake);
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
    fake_sessions_close();
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
    assert_int_equal(sessions_count(fake_sessions), 1);
    assert_false(fake_had_token); /* the key is never sent, and the token is not even read */
    stop();
}

/* The daemon was started again: the request was refused unread. */
static void a_session_that_has_ended_is_begun_again(void **state)
{
    (void)state;
    start(KEY);
    answered();
    fake_ends_at = 2;
    answered();
    assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 0 ; 0 auth.begin; 0 plan.get; ");
    stop();
}

static void a_daemon_that_takes_no_session_is_asked_three_times(void **state)
{
    struct bt_error err;

    (void)state;
    start(KEY);
    fake_ends_always = true;
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAUTHORIZED);
    assert_int_equal(fake.n, 6);
    assert_non_null(strstr(err.msg, "the daemon at tcp://127.0.0.1:"));
    assert_non_null(strstr(err.msg, "it does not take the credential ci"));
    fake_ends_always = false;
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
