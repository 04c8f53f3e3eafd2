/* Where a request of libbaton goes: which shard of a fleet, when that is asked anew, and daemons
 * that hang up or are none. */
#include <stdio.h>
#include <string.h>

#include "baton/client.h"
#include "protocol/base/clock.h"
#include "protocol/base/shard.h"
#include "protocol/wire/shard_route.h"
#include "tests/edge/client/fake.h"
#include "tests/support/cmocka.h"

#define ERROR(code, more)                                                                          \
    "'type':'error','ok':false,'error':{'code':'" code                                             \
    "','class':'UNKNOWN','message':'m','retryable':false" more "}"
/* Nobody listens there: it is for root. */
#define NOBODY "tcp://127.0.0.1:1"
#define OK "'type':'plan.submit.ok','ok':true,'planId':'p'"

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static struct fake fake;
static struct bt_client *client;
/* What shard 0 says of a request for shard 1, one after the other; the last one for ever. */
static const char *const *moves;
static _Atomic bool silent; /* shard 1 */

/* The shard whose key it is. */
static uint32_t shard_of(struct doc request)
{
    return (uint32_t)shard_of_request(STR_LIT("plan.submit"), request, FAKE_SHARDS);
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
        return f->room;
    }
    if (shard == 1) {
        return silent ? NULL : OK;
    }
    if (shard_of(request) == 0) {
        return OK;
    }
    if (moves[0] != NULL) {
        const char *said = *moves;
        moves += moves[1] != NULL;
        return said;
    }
    (void)snprintf(f->room, sizeof f->room, ERROR("MOVED", ",'details':{'shard':1,'control':'%s'}"),
                   f->url[1]);
    return f->room;
}

/* A client that knows that there are two shards. */
static void start(const char *const *moved)
{
    struct bt_error err;
    uint32_t n = 0;

    moves = moved;
    silent = false;
    fake_start(&fake, says);
    fake_is_fleet(&fake);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
    assert_int_equal(bt_client_shards(client, &n, &err), BT_OK);
    assert_int_equal(n, FAKE_SHARDS);
    assert_string_equal(fake.log, "0 fleet.map; ");
    fake.log[0] = 0;
}

static void stop(void)
{
    bt_client_close(client);
    fake_stop(&fake);
}

/* A plan whose key is of the shard. */
static enum bt_code submit(uint32_t shard, struct bt_error *err)
{
    char fields[64];

    for (int i = 0;; i++) {
        struct buf doc;
        bool found;
        (void)snprintf(fields, sizeof fields, "{\"clientKey\":\"k%d\"}", i);
        buf_init(&doc, 256);
        assert_int_equal(json_to_doc(str_from(fields), NULL, &doc, NULL), BT_OK);
        found = shard_of(doc_from_buf(&doc)) == shard;
        buf_done(&doc);
        if (found) {
            return bt_client_call(client, "plan.submit", fields, NULL, err);
        }
    }
}

static const char *const nowhere[] = {NULL};

static void a_shard_that_was_found_is_asked_at_once(void **state)
{
    struct bt_error err;

    (void)state;
    start(nowhere);
    assert_int_equal(submit(1, &err), BT_OK);
    assert_int_equal(submit(1, &err), BT_OK);
    assert_int_equal(submit(0, &err), BT_OK);
    assert_int_equal(submit(0, &err), BT_OK);
    assert_string_equal(fake.log, "0 plan.submit; 1 plan.submit; 1 plan.submit; "
                                  "0 plan.submit; 0 plan.submit; ");
    stop();
}

/* After 700 ms without a connection the seed is asked where it is now, as often as there is time.
 */
static void a_shard_that_nobody_reaches_is_asked_for_again(void **state)
{
    static const char *const dead_twice[] = {
        ERROR("MOVED", ",'details':{'shard':1,'control':'" NOBODY "'}"),
        ERROR("MOVED", ",'details':{'shard':1,'control':'" NOBODY "'}"), OK, NULL};
    static const char *const dead[] = {
        ERROR("MOVED", ",'details':{'shard':1,'control':'" NOBODY "'}"), NULL};
    struct bt_error err;
    msec began = clock_mono_ms();

    (void)state;
    start(dead_twice);
    assert_int_equal(submit(1, &err), BT_OK);
    assert_true(clock_mono_ms() - began >= 1600);
    assert_string_equal(fake.log, "0 plan.submit; 0 plan.submit; 0 plan.submit; ");
    stop();
    start(dead);
    bt_client_timeout(client, 1000);
    began = clock_mono_ms();
    assert_int_equal(submit(1, &err), BT_UNAVAILABLE);
    assert_true(clock_mono_ms() - began >= 1000);
    assert_non_null(strstr(err.msg, "the daemon at " NOBODY));
    stop();
}

static void a_shard_that_does_not_answer_is_asked_for_again_by_the_next_request(void **state)
{
    struct bt_error err;

    (void)state;
    start(nowhere);
    assert_int_equal(submit(1, &err), BT_OK);
    silent = true;
    bt_client_timeout(client, 300);
    assert_int_equal(submit(1, &err), BT_TIMEOUT);
    silent = false;
    bt_client_timeout(client, 5000);
    assert_int_equal(submit(1, &err), BT_OK);
    assert_string_equal(fake.log, "0 plan.submit; 1 plan.submit; 1 plan.submit; "
                                  "0 plan.submit; 1 plan.submit; ");
    stop();
}

static void a_shard_on_another_host_needs_a_connection_to_one(void **state)
{
    static const char *const far[] = {
        ERROR("MOVED", ",'details':{'shard':1,'control':'tls+tcp://192.0.2.1:5'}"), NULL};
    struct bt_error err;

    (void)state;
    start(far);
    assert_int_equal(submit(1, &err), BT_UNAVAILABLE);
    assert_string_equal(err.msg, "it is on another host, at tls+tcp://192.0.2.1:5: connect with "
                                 "--connect, a credential and a certificate");
    assert_int_equal(fake.n, 2);
    stop();
}

/* What only looks like it is an answer as any other. */
static void only_a_shard_and_its_address_are_followed(void **state)
{
    static char last[256];
    static char past[256];
    static const char *cases[] = {
        ERROR("MOVED", ""),
        ERROR("MOVED", ",'details':{'control':'" NOBODY "'}"),
        ERROR("MOVED", ",'details':{'shard':-1,'control':'" NOBODY "'}"),
        ERROR("MOVED", ",'details':{'shard':'1','control':'" NOBODY "'}"),
        past,
        ERROR("INTERNAL", ",'details':{'shard':1,'text':'MOVED'}"),
        "'type':'plan.submit.ok','ok':true,'error':'MOVED'",
    };
    struct bt_error err;

    (void)state;
    (void)snprintf(last, sizeof last,
                   ERROR("MOVED", ",'details':{'shard':%d,'control':'" NOBODY "'}"),
                   SHARDS_MAX - 1);
    (void)snprintf(past, sizeof past,
                   ERROR("MOVED", ",'details':{'shard':%d,'control':'" NOBODY "'}"), SHARDS_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const said[] = {cases[i], NULL};
        enum bt_code code;
        start(said);
        code = submit(1, &err);
        if (fake.n != 2 || code == BT_UNAVAILABLE || code == BT_TIMEOUT) {
            fail_msg("%s: %u requests, %s", cases[i], fake.n, err.msg);
        }
        stop();
    }
    const char *const said[] = {last, OK, NULL};
    start(said);
    assert_int_equal(submit(1, &err), BT_OK);
    assert_int_equal(fake.n, 3);
    stop();
}

/* ---- one daemon ---- */

static const char *const *answers; /* one after the other; the last one for ever */

static const char *says_in_turn(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                struct str *bytes)
{
    const char *said = *answers;

    (void)f, (void)n, (void)shard, (void)request, (void)bytes;
    answers += answers[1] != NULL;
    return said;
}

static void open_alone(const char *const *said)
{
    struct bt_error err;

    answers = said;
    fake_start(&fake, says_in_turn);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
}

/* Its outcome is unknown; the next call goes over another connection. */
static void a_daemon_that_hangs_up_has_gone_before_it_answered(void **state)
{
    static const char *const said[] = {OK, FAKE_HANGS_UP, OK, NULL};
    struct bt_error err;
    char want[128];

    (void)state;
    open_alone(said);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_OK);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAVAILABLE);
    (void)snprintf(want, sizeof want, "the daemon at %s went away before it answered", fake.url[0]);
    assert_string_equal(err.msg, want);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_OK);
    assert_int_equal(fake.n, 3);
    stop();
}

/* A plan has its key: it is sent again. */
static void a_plan_whose_daemon_hangs_up_is_sent_again(void **state)
{
    static const char *const said[] = {FAKE_HANGS_UP, OK, NULL};
    struct bt_error err;
    char id[BT_ID_LEN + 1];

    (void)state;
    open_alone(said);
    assert_int_equal(bt_submit(client, &(struct bt_submit){.goal = "g"}, id, NULL, &err), BT_OK);
    assert_string_equal(id, "p");
    assert_int_equal(fake.n, 2);
    stop();
}

static void a_program_that_is_no_daemon_is_named(void **state)
{
    static const char *const said[] = {FAKE_GARBAGE, OK, NULL};
    struct bt_error err;
    char *json = NULL;
    char want[128];

    (void)state;
    open_alone(said);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, &json, &err), BT_UNAVAILABLE);
    assert_null(json);
    (void)snprintf(want, sizeof want, "the program at %s is no daemon of Baton: ", fake.url[0]);
    assert_ptr_equal(strstr(err.msg, want), err.msg);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_OK);
    stop();
}

static void the_version_is_that_of_the_library(void **state)
{
    (void)state;
    assert_string_equal(bt_version(), BATON_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_that_was_found_is_asked_at_once),
        cmocka_unit_test(a_shard_that_nobody_reaches_is_asked_for_again),
        cmocka_unit_test(a_shard_that_does_not_answer_is_asked_for_again_by_the_next_request),
        cmocka_unit_test(a_shard_on_another_host_needs_a_connection_to_one),
        cmocka_unit_test(only_a_shard_and_its_address_are_followed),
        cmocka_unit_test(a_daemon_that_hangs_up_has_gone_before_it_answered),
        cmocka_unit_test(a_plan_whose_daemon_hangs_up_is_sent_again),
        cmocka_unit_test(a_program_that_is_no_daemon_is_named),
        cmocka_unit_test(the_version_is_that_of_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
