/* libbaton and daemons on another host: which of several is asked, and when the next one is. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baton/client.h"
#include "protocol/base/clock.h"
#include "protocol/client/credential.h"
#include "tests/edge/client/fake_sessions.h"
#include "tests/support/cmocka.h"

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

/* Nobody listens there: it is for root. */
#define NOBODY "tls+tcp://localhost:1"

static struct fake fake;
static struct bt_client *client;
static char dir[64];
static char pem[96];
static char ca[96];
static char ci[96];
/* Which of the two nodes lead: the other one's storage is away. */
static _Atomic bool leads[FAKE_SHARDS];
/* Node 0 sends each plan there; "" = it keeps them. */
static char moved_to[96];

static const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes)
{
    const char *answer = fake_begins(f, request);

    (void)n, (void)bytes;
    if (answer != NULL) {
        return answer;
    }
    if (shard == 0 && moved_to[0] != 0) {
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'error','ok':false,'error':{'code':'MOVED','message':'m',"
                       "'retryable':true,'details':{'shard':1,'control':'%s'}}",
                       moved_to);
        return f->room;
    }
    (void)snprintf(f->room, sizeof f->room, "'type':'plan.get.ok','ok':true,'node':%u", shard);
    return leads[shard] ? f->room
                        : "'type':'error','ok':false,'error':{'code':'UNAVAILABLE','message':'m',"
                          "'retryable':true,'details':{'storage':'away'}}";
}

static const char *in_dir(const char *name, char ret[96])
{
    (void)snprintf(ret, 96, "%s/%s", dir, name);
    return ret;
}

static void append(const char *from, FILE *to)
{
    FILE *f = fopen(from, "re");
    int c;

    assert_non_null(f);
    while ((c = fgetc(f)) != EOF) {
        (void)fputc(c, to);
    }
    (void)fclose(f);
}

/* A certificate that is its own authority; false: there is no usable openssl here. */
static bool make_identity(void)
{
    char key[96];
    const char *argv[] = {"openssl",
                          "req",
                          "-x509",
                          "-newkey",
                          "ec",
                          "-pkeyopt",
                          "ec_paramgen_curve:prime256v1",
                          "-nodes",
                          "-days",
                          "2",
                          "-subj",
                          "/CN=localhost",
                          "-keyout",
                          key,
                          "-out",
                          ca,
                          "-batch",
                          NULL};
    int status = -1;
    pid_t child;
    FILE *f;

    (void)snprintf(dir, sizeof dir, "/tmp/baton-remote-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)in_dir("me.pem", pem);
    (void)in_dir("ca.crt", ca);
    (void)in_dir("ci", ci);
    (void)in_dir("key", key);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(STDERR_FILENO);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) {
        return false;
    }
    f = fopen(pem, "we");
    assert_non_null(f);
    append(ca, f);
    append(key, f);
    assert_int_equal(fclose(f), 0);
    return unlink(key) == 0 && chmod(pem, 0600) == 0;
}

static void start(const char *before)
{
    const struct credential c = fake_credential(FAKE_KEY);
    char urls[256];
    struct bt_error err;

    if (dir[0] == 0 && !make_identity()) {
        skip();
    }
    leads[0] = leads[1] = true;
    moved_to[0] = 0;
    fake_sessions_open();
    fake_start_tls(&fake, pem, ca, says);
    fake_seals(&fake);
    (void)unlink(ci);
    assert_int_equal(credential_write(ci, &c, false, &err), BT_OK);
    (void)snprintf(urls, sizeof urls, "%s%s,%s", before, fake.url[0], fake.url[1]);
    const struct bt_connection to = {.url = urls, .credential = ci, .ca = ca, .cert = pem};
    if (bt_client_connect(&to, &client, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void stop(void)
{
    bt_client_close(client);
    fake_stop(&fake);
    fake_sessions_close();
}

/* The node that answered; -1: the storage is away. */
static int asked(void)
{
    struct bt_error err;
    char *json = NULL;
    const enum bt_code code = bt_client_call(client, "plan.get", NULL, &json, &err);
    int node = -1;

    if (code == BT_OK) {
        node = strstr(json, "\"node\":1") != NULL;
    } else if (code != BT_UNAVAILABLE || strstr(json, "\"storage\":\"away\"") == NULL) {
        fail_msg("%s", err.msg);
    }
    bt_free(json);
    return node;
}

static void the_first_that_answers_is_asked_and_gets_no_token(void **state)
{
    (void)state;
    start("");
    assert_int_equal(asked(), 0);
    assert_int_equal(asked(), 0);
    assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 0 plan.get; ");
    assert_false(fake_had_token);
    stop();
}

/* On a busy machine a handshake may take longer than a node is waited for: then it is asked again.
 */
static void is_found(int node)
{
    for (int i = 0; i < 20; i++) {
        if (asked() == node) {
            return;
        }
        (void)poll(NULL, 0, 100);
    }
    fail_msg("node %d was not found: %s", node, fake.log);
}

/* Whether all that was asked since `began` was answered without such a wait. */
static bool was_quick(msec began)
{
    return clock_mono_ms() - began < 600;
}

/* One whose storage is away is left for the next one, and that one is asked from then on. */
static void who_leads_is_found_behind_one_whose_storage_is_away(void **state)
{
    const msec began = clock_mono_ms();

    (void)state;
    start("");
    leads[0] = false;
    is_found(1);
    if (was_quick(began)) {
        assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 1 plan.get; ");
    }
    fake.log[0] = 0;
    assert_int_equal(asked(), 1);
    assert_string_equal(fake.log, "1 plan.get; ");
    leads[1] = false;
    leads[0] = true;
    is_found(0);
    stop();
}

/* The answer of the first one stands; the other one is asked again after a second. */
static void when_none_leads_all_are_asked_once_in_a_second(void **state)
{
    msec began = clock_mono_ms();

    (void)state;
    start("");
    leads[0] = leads[1] = false;
    assert_int_equal(asked(), -1);
    if (was_quick(began)) {
        assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 1 plan.get; ");
        fake.log[0] = 0;
        assert_int_equal(asked(), -1);
        if (was_quick(began)) {
            assert_null(strstr(fake.log, "1 plan.get"));
            assert_non_null(strstr(fake.log, "0 plan.get"));
        }
        while (clock_mono_ms() - began < 1700) { /* a second after the last of them */
            (void)poll(NULL, 0, 10);
        }
        began = clock_mono_ms();
        fake.log[0] = 0;
        assert_int_equal(asked(), -1);
        if (was_quick(began)) {
            assert_non_null(strstr(fake.log, "0 plan.get"));
            assert_non_null(strstr(fake.log, "1 plan.get"));
        }
    }
    leads[1] = true;
    is_found(1);
    stop();
}

/* After 700 ms without a connection. */
static void who_does_not_listen_is_left_for_the_next(void **state)
{
    const msec began = clock_mono_ms();

    (void)state;
    start(NOBODY ",");
    is_found(0);
    assert_true(clock_mono_ms() - began >= 700);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(asked(), 0); /* it is not left again */
    }
    assert_null(strstr(fake.log, "1 "));
    stop();
}

static void who_is_alone_and_does_not_answer_is_named_with_what_may_be_wrong(void **state)
{
    const struct bt_connection to = {.url = NOBODY, .credential = ci, .ca = ca, .cert = pem};
    struct bt_client *c = NULL;
    struct bt_error err;

    (void)state;
    start("");
    assert_int_equal(bt_client_connect(&to, &c, &err), BT_OK);
    bt_client_timeout(c, 300);
    assert_int_equal(bt_client_call(c, "plan.get", NULL, NULL, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "the daemon at " NOBODY " does not answer: no daemon listens"));
    bt_client_close(c);
    stop();
}

/* As the client itself: with its certificate and its credential. */
static void a_shard_elsewhere_is_reached_in_the_same_way(void **state)
{
    (void)state;
    start("");
    (void)snprintf(moved_to, sizeof moved_to, "%s", fake.url[1]);
    assert_int_equal(asked(), 1);
    assert_string_equal(fake.log, "0 auth.begin; 0 plan.get; 1 auth.begin; 1 plan.get; ");
    assert_false(fake_had_token);
    assert_int_equal(asked(), 1);
    stop();
}

static int remove_identity(void **state)
{
    (void)state;
    (void)unlink(pem);
    (void)unlink(ca);
    (void)unlink(ci);
    return dir[0] == 0 ? 0 : rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_answers_is_asked_and_gets_no_token),
        cmocka_unit_test(who_leads_is_found_behind_one_whose_storage_is_away),
        cmocka_unit_test(when_none_leads_all_are_asked_once_in_a_second),
        cmocka_unit_test(who_does_not_listen_is_left_for_the_next),
        cmocka_unit_test(who_is_alone_and_does_not_answer_is_named_with_what_may_be_wrong),
        cmocka_unit_test(a_shard_elsewhere_is_reached_in_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, remove_identity);
}
