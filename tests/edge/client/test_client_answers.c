/* libbaton and what a daemon may say: another shard has it, nobody leads it, a part of a file, the
 * wrong file, nothing at all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baton/client.h"
#include "protocol/artifact/artifact.h"
#include "protocol/base/clock.h"
#include "protocol/client/credential.h"
#include "protocol/client/transfer.h"
#include "protocol/limits.h"
#include "tests/edge/client/fake.h"
#include "tests/support/cmocka.h"

#define ERROR(code, more)                                                                          \
    "'type':'error','ok':false,'error':{'code':'" code                                             \
    "','class':'UNKNOWN','message':'m','retryable':false" more "}"
#define HELLO "hello"
#define HELLO_SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

typedef const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                         struct str *bytes);

static struct fake fake;
static struct bt_client *client;

static void start(says *what)
{
    struct bt_error err;

    fake_start(&fake, what);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
}

static void stop(void)
{
    bt_client_close(client);
    fake_stop(&fake);
}

static uint64_t number(struct doc request, const char *name)
{
    const struct doc v = doc_get(request, str_from(name));

    return v.ptr != NULL && doc_head(v).kind == DOC_UINT ? doc_head(v).u : 0;
}

/* ---- one daemon ---- */

static const char *says_ok(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                           struct str *bytes)
{
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));
    const struct doc by = doc_get(request, STR_LIT("by"));

    (void)n, (void)shard, (void)bytes;
    (void)snprintf(f->room, sizeof f->room, "'type':'%.*s.ok','ok':true,'via':'%.*s'",
                   STR_ARG(type),
                   STR_ARG(by.ptr != NULL ? doc_string(doc_get(by, STR_LIT("via"))) : type));
    return f->room;
}

static void answered(const char *type, const char *fields, const char *want)
{
    struct bt_error err;
    char *json = NULL;

    assert_int_equal(bt_client_call(client, type, fields, &json, &err), BT_OK);
    assert_string_equal(json, want);
    bt_free(json);
}

static void who_decides_is_named_unless_the_program_says_it(void **state)
{
    (void)state;
    start(says_ok);
    answered("plan.get", "{\"planId\":\"x\"}",
             "{\"v\":1,\"type\":\"plan.get.ok\",\"ok\":true,\"via\":\"plan.get\"}");
    answered("review.decide", NULL,
             "{\"v\":1,\"type\":\"review.decide.ok\",\"ok\":true,\"via\":\"libbaton " BATON_VERSION
             "\"}");
    bt_client_via(client, "a page");
    answered("session.say", NULL,
             "{\"v\":1,\"type\":\"session.say.ok\",\"ok\":true,\"via\":\"a page\"}");
    answered("session.say", "{\"by\":{\"via\":\"me\"}}",
             "{\"v\":1,\"type\":\"session.say.ok\",\"ok\":true,\"via\":\"me\"}");
    stop();
}

static void fields_are_an_object(void **state)
{
    struct bt_error err;

    (void)state;
    start(says_ok);
    assert_int_equal(bt_client_call(client, "plan.get", "[1]", NULL, &err), BT_INVALID);
    assert_int_equal(bt_client_call(client, "plan.get", "{", NULL, &err), BT_INVALID);
    assert_string_equal(fake.log, ""); /* nothing was sent */
    stop();
}

static const char *says_invalid(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                struct str *bytes)
{
    (void)f, (void)n, (void)shard, (void)request, (void)bytes;
    return ERROR("GONE", ",'details':{'x':7}");
}

static void a_refusal_brings_its_error_object(void **state)
{
    struct bt_error err;
    char *json = NULL;

    (void)state;
    start(says_invalid);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, &json, &err), BT_GONE);
    assert_non_null(json);
    assert_ptr_equal(strstr(json, "{\"code\":\"GONE\""), json);
    assert_non_null(strstr(json, "\"details\":{\"x\":7}"));
    bt_free(json);
    stop();
}

static const char *says_nothing(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                struct str *bytes)
{
    (void)f, (void)shard, (void)request, (void)bytes;
    return n == 1 ? NULL : "'type':'plan.get.ok','ok':true";
}

static void an_answer_that_does_not_come_costs_one_call(void **state)
{
    struct bt_error err;

    (void)state;
    start(says_nothing);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_OK); /* connected */
    bt_client_timeout(client, 50);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_TIMEOUT);
    bt_client_timeout(client, 0);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_OK);
    stop();
}

static const char *says_a_part(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                               struct str *bytes);
static int file(void);

static const char *says_to_another(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                   struct str *bytes)
{
    f->other_id = n == 0;
    return says_a_part(f, n, shard, request, bytes);
}

static void an_answer_to_another_request_is_none(void **state)
{
    struct bt_error err;
    int fd;

    (void)state;
    start(says_to_another);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "answered another request"));
    stop();
    start(says_to_another); /* a transfer asks again */
    fd = file();
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_OK);
    assert_int_equal(fake.n, 4);
    (void)close(fd);
    stop();
}

/* Of a daemon that could not read it: the answer is given as it is. */
static void an_answer_without_an_id_is_given_as_it_is(void **state)
{
    struct bt_error err;
    char *json = NULL;

    (void)state;
    start(says_ok);
    fake.no_id = true;
    assert_int_equal(bt_client_call(client, "plan.get", NULL, &json, &err), BT_OK);
    assert_string_equal(json,
                        "{\"v\":1,\"type\":\"plan.get.ok\",\"ok\":true,\"via\":\"plan.get\"}");
    bt_free(json);
    stop();
}

static const char *says_away(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                             struct str *bytes)
{
    (void)f, (void)n, (void)shard, (void)request, (void)bytes;
    return ERROR("UNAVAILABLE", ",'details':{'storage':'away'}");
}

/* There is no other node to ask: the refusal stands. */
static void a_leader_without_its_server_says_so(void **state)
{
    struct bt_error err;
    char *json = NULL;

    (void)state;
    start(says_away);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, &json, &err), BT_UNAVAILABLE);
    assert_int_equal(fake.n, 1);
    assert_non_null(strstr(json, "\"storage\":\"away\""));
    bt_free(json);
    stop();
}

static void a_credential_is_read_before_it_is_used(void **state)
{
    struct credential c = {.who = {.id = "ci", .role = ROLE_ADMIN}, .created = 1, .expires = 2};
    struct bt_error err;
    char path[96];

    (void)state;
    start(says_ok);
    (void)snprintf(path, sizeof path, "%s/ci", fake.dir);
    for (int i = 0; i < 2; i++) { /* "" is none */
        struct bt_client *other = NULL;
        assert_int_equal(setenv("BATON_CREDENTIAL", i == 0 ? "" : path, 1), 0);
        assert_int_equal(bt_client_open(fake.dir, &other, &err), i == 0 ? BT_OK : BT_NOT_FOUND);
        bt_client_close(other);
    }
    assert_int_equal(unsetenv("BATON_CREDENTIAL"), 0);
    assert_int_equal(bt_client_credential(client, path, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "there is no such file of a credential"));
    assert_int_equal(credential_write(path, &c, false, &err), BT_OK);
    assert_int_equal(bt_client_credential(client, path, &err), BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, ": the credential ci has expired"));
    answered("plan.get", NULL,
             "{\"v\":1,\"type\":\"plan.get.ok\",\"ok\":true,\"via\":\"plan.get\"}");
    stop();
}

/* ---- a fleet ---- */

static bool knows_no_map;
static const char *says_map(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                            struct str *bytes)
{
    (void)n, (void)shard, (void)request, (void)bytes;
    (void)snprintf(f->room, sizeof f->room,
                   "'type':'fleet.map.ok','ok':true,'shards':[{'shard':0,'control':'%s'},"
                   "{'shard':1,'control':'%s'}]",
                   f->url[0], f->url[1]);
    return knows_no_map ? ERROR("INVALID", "") : f->room;
}

static void how_many_shards_is_asked_once_for_a_while(void **state)
{
    struct bt_error err;
    uint32_t shards = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        knows_no_map = i == 1; /* an older daemon: one */
        fake_start(&fake, says_map);
        fake_is_fleet(&fake);
        assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(bt_client_shards(client, &shards, &err), BT_OK);
            assert_int_equal(shards, i == 0 ? 2 : 1);
        }
        assert_string_equal(fake.log, "0 fleet.map; ");
        stop();
    }
}

static const char *moved(struct fake *f, uint32_t to)
{
    (void)snprintf(f->room, sizeof f->room,
                   ERROR("MOVED", ",'details':{'shard':%u,'control':'%s'}"), to, f->url[to]);
    return f->room;
}

static const char *says_shard_1_has_it(struct fake *f, uint32_t n, uint32_t shard,
                                       struct doc request, struct str *bytes)
{
    (void)n, (void)request, (void)bytes;
    return shard == 0 ? moved(f, 1) : "'type':'plan.get.ok','ok':true,'text':'MOVED'";
}

static void a_request_follows_to_the_shard_that_has_it(void **state)
{
    (void)state;
    start(says_shard_1_has_it);
    answered("plan.get", NULL, "{\"v\":1,\"type\":\"plan.get.ok\",\"ok\":true,\"text\":\"MOVED\"}");
    assert_string_equal(fake.log, "0 plan.get; 1 plan.get; ");
    stop();
}

static const char *says_the_other_one(struct fake *f, uint32_t n, uint32_t shard,
                                      struct doc request, struct str *bytes)
{
    (void)n, (void)request, (void)bytes;
    return moved(f, 1 - shard);
}

static void shards_that_send_it_in_circles_get_it_four_times(void **state)
{
    struct bt_error err;

    (void)state;
    start(says_the_other_one);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "moved 3 times"));
    assert_string_equal(fake.log, "0 plan.get; 1 plan.get; 0 plan.get; 1 plan.get; ");
    stop();
}

static const char *says_nobody_leads(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                     struct str *bytes)
{
    (void)f, (void)shard, (void)request, (void)bytes;
    return n < 2 ? ERROR("MOVED", ",'details':{'shard':1}") : "'type':'plan.get.ok','ok':true";
}

static void a_shard_that_nobody_leads_is_waited_for(void **state)
{
    struct bt_error err;

    (void)state;
    start(says_nobody_leads);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_OK);
    assert_int_equal(fake.n, 3);
    stop();
}

static const char *says_nobody_ever_leads(struct fake *f, uint32_t n, uint32_t shard,
                                          struct doc request, struct str *bytes)
{
    (void)f, (void)n, (void)shard, (void)request, (void)bytes;
    return ERROR("MOVED", ",'details':{'shard':1}");
}

static void a_shard_that_nobody_leads_is_waited_for_as_long_as_the_call_has(void **state)
{
    struct bt_error err;

    (void)state;
    start(says_nobody_ever_leads);
    bt_client_timeout(client, 1000);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAVAILABLE);
    assert_string_equal(err.msg, "nobody leads shard 1 now");
    assert_in_range(fake.n, 2, 11); /* every 100 ms */
    stop();
}

/* One plan on each; shard 1 is silent about its own when the test says so. */
static bool one_is_away;
static const char *says_its_plans(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                  struct str *bytes)
{
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));

    (void)n, (void)bytes;
    if (str_is(type, "fleet.map")) {
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'fleet.map.ok','ok':true,'shards':[{'shard':0,'control':'%s'},"
                       "{'shard':1,'control':'%s'}]",
                       f->url[0], one_is_away ? "" : f->url[1]);
    } else {
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'plan.list.ok','ok':true,'plans':[{'planId':'of %u'}]", shard);
    }
    return f->room;
}

static void a_list_is_of_all_shards_and_names_who_is_missing(void **state)
{
    struct bt_error err;
    char *json = NULL;

    (void)state;
    fake_start(&fake, says_its_plans);
    fake_is_fleet(&fake);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
    for (int i = 0; i < 2; i++) {
        one_is_away = i == 1;
        assert_int_equal(bt_client_call(client, "plan.list", NULL, &json, &err), BT_OK);
        assert_non_null(strstr(json, "of 0"));
        assert_true((strstr(json, "of 1") != NULL) == !one_is_away);
        bt_free(json);
        bt_client_close(client);
        assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
    }
    one_is_away = false;
    stop();
}

static void a_directory_without_a_fleet_asks_for_no_map(void **state)
{
    struct bt_error err;

    (void)state;
    start(says_its_plans);
    assert_int_equal(bt_client_call(client, "plan.list", NULL, NULL, &err), BT_OK);
    assert_string_equal(fake.log, "0 plan.list; ");
    stop();
}

/* ---- files ---- */

static int file(void)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/file", fake.dir);
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static char fetched_for[64];
static const char *has_file = HELLO;
static uint64_t says_len = 5;
static const char *says_a_part(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                               struct str *bytes)
{
    const uint64_t offset = number(request, "offset");

    (void)n, (void)shard;
    *bytes = (struct str){has_file + offset, strlen(has_file) - offset < 2 ? 1 : 2};
    (void)snprintf(f->room, sizeof f->room, "'type':'artifact.read.ok','ok':true,'len':%llu",
                   (unsigned long long)says_len);
    return f->room;
}

static void is_in(int fd, const char *want)
{
    char have[64] = "";

    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(read(fd, have, sizeof have - 1), strlen(want));
    assert_string_equal(have, want);
}

static void a_file_comes_in_parts_and_goes_on_where_it_broke(void **state)
{
    struct bt_error err;
    int fd;

    (void)state;
    start(says_a_part);
    fd = file();
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_OK);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    is_in(fd, HELLO);
    assert_int_equal(fake.n, 3);
    assert_int_equal(ftruncate(fd, 3), 0);
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_OK);
    assert_int_equal(fake.n, 4);
    is_in(fd, HELLO);
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_OK);
    assert_int_equal(fake.n, 4); /* all of it is there: nothing is asked */
    (void)close(fd);
    stop();
}

static void a_file_that_was_changed_leaves_nothing(void **state)
{
    struct bt_error err;
    int fd;

    (void)state;
    start(says_a_part);
    fd = file();
    has_file = "jello"; /* another checksum */
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_INVALID);
    is_in(fd, "");
    has_file = "hello!"; /* another length */
    says_len = 6;
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "has 6 bytes, its result says 5"));
    is_in(fd, "");
    has_file = HELLO;
    says_len = 5;
    assert_int_equal(bt_client_artifact(client, "file:///x", 4, HELLO_SUM, fd, &err), BT_INVALID);
    is_in(fd, "");
    (void)close(fd);
    stop();
}

static const char *says_gone(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                             struct str *bytes)
{
    if (n == 0) {
        return ERROR("BUSY", "");
    }
    return n == 1 ? says_a_part(f, n, shard, request, bytes) : ERROR("GONE", "");
}

static void a_daemon_that_is_busy_is_asked_again_and_one_without_the_file_is_not(void **state)
{
    struct bt_error err;
    msec began;
    int fd;

    (void)state;
    start(says_gone);
    fd = file();
    began = clock_mono_ms();
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_GONE);
    assert_true(clock_mono_ms() - began >= 250); /* not at once */
    assert_int_equal(fake.n, 3);
    is_in(fd, "he"); /* what came stays for another time */
    (void)close(fd);
    stop();
}

/* So many bytes are there; of the end what the test says. */
static uint64_t there;
static uint32_t wrong_ends;
static const char *takes_parts(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                               struct str *bytes)
{
    const struct doc part = doc_get(request, STR_LIT("bytes"));

    (void)n, (void)shard, (void)bytes;
    if (part.ptr != NULL && doc_head(part).str.len > LIMIT_ARTIFACT_PART) {
        return ERROR("LIMIT", "");
    }
    if (part.ptr != NULL && number(request, "offset") == there) {
        there += doc_head(part).str.len;
    } else if (part.ptr == NULL && number(request, "len") != there) {
        return ERROR("INTERNAL", "");
    } else if (part.ptr == NULL && wrong_ends > 0) {
        wrong_ends--;
        there = 0;
        return ERROR("INVALID", "");
    }
    (void)snprintf(f->room, sizeof f->room, "'type':'artifact.store.ok','ok':true,'offset':%llu%s",
                   (unsigned long long)there, part.ptr == NULL ? ",'uri':'file:///x'" : "");
    return f->room;
}

static enum bt_code put(uint64_t len, uint64_t before, uint32_t wrong)
{
    const struct transfer_file f = {.instance_id = STR_LIT("i"),
                                    .key = STR_LIT("k"),
                                    .attempt = 1,
                                    .name = STR_LIT("f"),
                                    .bytes = len,
                                    .sha256 = STR_LIT(HELLO_SUM)};
    const int fd = file();
    struct bt_error err;
    struct buf uri;
    enum bt_code code;

    there = before;
    wrong_ends = wrong;
    fake.n = 0;
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    buf_init(&uri, 64);
    code = transfer_put(client, &f, fd, &uri, &err);
    assert_string_equal(buf_cstr(&uri), code == BT_OK ? "file:///x" : "");
    buf_done(&uri);
    (void)close(fd);
    return code;
}

static void a_file_is_sent_in_the_largest_parts_and_from_where_the_daemon_is(void **state)
{
    (void)state;
    start(takes_parts);
    assert_int_equal(put(0, 0, 0), BT_OK);
    assert_int_equal(fake.n, 1);
    assert_int_equal(put(LIMIT_ARTIFACT_PART, 0, 0), BT_OK);
    assert_int_equal(fake.n, 2);
    assert_int_equal(put(LIMIT_ARTIFACT_PART + 1, 0, 0), BT_OK);
    assert_int_equal(fake.n, 3);
    assert_int_equal(there, LIMIT_ARTIFACT_PART + 1);
    assert_int_equal(put(LIMIT_ARTIFACT_PART + 1, LIMIT_ARTIFACT_PART, 0), BT_OK);
    assert_int_equal(fake.n, 3); /* the first part was there already: it is told so */
    stop();
}

static void another_checksum_is_tried_once_more_from_the_beginning(void **state)
{
    (void)state;
    start(takes_parts);
    assert_int_equal(put(5, 0, 1), BT_OK);
    assert_int_equal(fake.n, 4);
    assert_int_equal(put(5, 0, 2), BT_INVALID);
    assert_int_equal(fake.n, 4);
    stop();
}

/* What this host cannot read or write is its own trouble. */
static void a_file_of_this_host_that_fails_is_named(void **state)
{
    const struct transfer_file f = {.instance_id = STR_LIT("i"),
                                    .key = STR_LIT("k"),
                                    .name = STR_LIT("f"),
                                    .bytes = 5,
                                    .sha256 = STR_LIT(HELLO_SUM)};
    struct bt_error err;
    struct buf uri;
    int fd;

    (void)state;
    start(says_a_part);
    assert_int_not_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, -1, &err), BT_OK);
    assert_non_null(strstr(err.msg, "the file for the artifact"));
    assert_int_equal(fake.n, 0);
    fd = open(fake.dir, O_RDONLY | O_CLOEXEC);
    assert_int_not_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_OK);
    assert_non_null(strstr(err.msg, "reading the file for the artifact"));
    (void)close(fd);
    (void)close(file());
    {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/file", fake.dir);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    assert_int_not_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_OK);
    assert_ptr_equal(strstr(err.msg, "on this host"), err.msg);
    assert_int_equal(fake.n, 1);
    buf_init(&uri, 64);
    assert_int_not_equal(transfer_put(client, &f, fd, &uri, &err),
                         BT_OK); /* it has no five bytes */
    assert_non_null(strstr(err.msg, "reading the artifact on this host"));
    assert_int_equal(fake.n, 1);
    buf_done(&uri);
    (void)close(fd);
    stop();
}

/* An agent that registers again is not known until it has; a client's file that is not found is. */
static const char *says_not_found(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                  struct str *bytes)
{
    return n == 0 ? ERROR("NOT_FOUND", "") : says_a_part(f, n, shard, request, bytes);
}

static const char *says_fetched(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                struct str *bytes)
{
    (void)says_not_found(f, n, shard, request, bytes);
    if (n == 0) {
        return ERROR("NOT_FOUND", "");
    }
    (void)snprintf(f->room, sizeof f->room,
                   "'type':'artifact.fetch.ok','ok':true,'len':5,'for':"
                   "'%.*s %.*s %llu'",
                   STR_ARG(doc_string(doc_get(request, STR_LIT("instanceId")))),
                   STR_ARG(doc_string(doc_get(request, STR_LIT("key")))),
                   (unsigned long long)number(request, "attempt"));
    (void)snprintf(fetched_for, sizeof fetched_for, "%s", strstr(f->room, "'for':") + 6);
    return f->room;
}

static void an_agent_fetches_for_its_step_and_waits_until_it_is_known(void **state)
{
    const struct transfer_file f = {.uri = STR_LIT("file:///x"),
                                    .instance_id = STR_LIT("i"),
                                    .key = STR_LIT("k"),
                                    .attempt = 3,
                                    .bytes = 5,
                                    .sha256 = STR_LIT(HELLO_SUM)};
    struct bt_error err;
    int fd;

    (void)state;
    start(says_not_found);
    fd = file();
    assert_int_equal(bt_client_artifact(client, "file:///x", 5, HELLO_SUM, fd, &err), BT_NOT_FOUND);
    assert_int_equal(fake.n, 1);
    (void)close(fd);
    stop();
    start(says_fetched);
    fd = file();
    assert_int_equal(transfer_get(client, &f, fd, &err), BT_OK);
    is_in(fd, HELLO);
    assert_string_equal(fake.log, "0 artifact.fetch; 0 artifact.fetch; 0 artifact.fetch; "
                                  "0 artifact.fetch; ");
    assert_string_equal(fetched_for, "'i k 3'");
    (void)close(fd);
    stop();
}

static bool at_once(const void *self)
{
    (void)self;
    return true;
}

static void a_transfer_that_is_stopped_asks_nothing_more(void **state)
{
    const struct transfer_file f = {
        .uri = STR_LIT("file:///x"), .bytes = 5, .sha256 = STR_LIT(HELLO_SUM), .stop = at_once};
    struct bt_error err;
    int fd;

    (void)state;
    start(says_a_part);
    fd = file();
    assert_int_equal(transfer_get(client, &f, fd, &err), BT_CANCELLED);
    assert_int_equal(fake.n, 0);
    (void)close(fd);
    stop();
}

/* ---- another host ---- */

static void to_another_host_everything_is_needed(void **state)
{
    static const struct {
        struct bt_connection to;
        const char *says;
    } cases[] = {
        {{.url = NULL}, "expected tls+tcp://HOST:PORT"},
        {{.url = "tls+tcp://192.0.2.1:1"}, "needs a credential, a certificate"},
        {{.url = "tls+tcp://192.0.2.1:1", .credential = "/c", .ca = "/a"}, "needs a credential"},
        {{.url = "tls+tcp://192.0.2.1:1", .credential = "/c", .cert = "/a"}, "needs a credential"},
        {{.url = "tls+tcp://192.0.2.1:1", .ca = "/c", .cert = "/a"}, "needs a credential"},
        {{.url = "tls+tcp://192.0.2.1:0", .credential = "/c", .ca = "/a", .cert = "/b"}, "address"},
        {{.url = "tls+tcp://192.0.2.1:1,tls+tcp://0.0.0.0:1",
          .credential = "/c",
          .ca = "/a",
          .cert = "/b"},
         "address"},
        {{.url = "tls+tcp://192.0.2.1:1", .credential = "/no/such", .ca = "/a", .cert = "/b"},
         "/no/such"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_client *c = NULL;
        struct bt_error err;
        assert_int_not_equal(bt_client_connect(&cases[i].to, &c, &err), BT_OK);
        if (strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("%zu: \"%s\" does not say \"%s\"", i, err.msg, cases[i].says);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_decides_is_named_unless_the_program_says_it),
        cmocka_unit_test(fields_are_an_object),
        cmocka_unit_test(a_refusal_brings_its_error_object),
        cmocka_unit_test(an_answer_that_does_not_come_costs_one_call),
        cmocka_unit_test(an_answer_to_another_request_is_none),
        cmocka_unit_test(an_answer_without_an_id_is_given_as_it_is),
        cmocka_unit_test(a_leader_without_its_server_says_so),
        cmocka_unit_test(a_credential_is_read_before_it_is_used),
        cmocka_unit_test(how_many_shards_is_asked_once_for_a_while),
        cmocka_unit_test(a_request_follows_to_the_shard_that_has_it),
        cmocka_unit_test(shards_that_send_it_in_circles_get_it_four_times),
        cmocka_unit_test(a_shard_that_nobody_leads_is_waited_for),
        cmocka_unit_test(a_shard_that_nobody_leads_is_waited_for_as_long_as_the_call_has),
        cmocka_unit_test(a_list_is_of_all_shards_and_names_who_is_missing),
        cmocka_unit_test(a_directory_without_a_fleet_asks_for_no_map),
        cmocka_unit_test(a_file_comes_in_parts_and_goes_on_where_it_broke),
        cmocka_unit_test(a_file_that_was_changed_leaves_nothing),
        cmocka_unit_test(a_daemon_that_is_busy_is_asked_again_and_one_without_the_file_is_not),
        cmocka_unit_test(a_file_is_sent_in_the_largest_parts_and_from_where_the_daemon_is),
        cmocka_unit_test(another_checksum_is_tried_once_more_from_the_beginning),
        cmocka_unit_test(a_file_of_this_host_that_fails_is_named),
        cmocka_unit_test(an_agent_fetches_for_its_step_and_waits_until_it_is_known),
        cmocka_unit_test(a_transfer_that_is_stopped_asks_nothing_more),
        cmocka_unit_test(to_another_host_everything_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
