/* Plans of libbaton, and what daemons may say to them: what is sent, what is sent again, which of
 * several plans goes alone, and how a wait ends. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "baton/client.h"
#include "protocol/base/shard.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"
#include "tests/edge/client/fake.h"
#include "tests/support/cmocka.h"

#define ERROR(code, more)                                                                          \
    "'type':'error','ok':false,'error':{'code':'" code                                             \
    "','class':'UNKNOWN','message':'m','retryable':false" more "}"
#define ACCEPTED "'type':'plan.submit.ok','ok':true,'planId':'P','status':'running'"

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

static struct fake fake;
static struct bt_client *client;

/* Answers to the requests in their order; the last one to all that follow. */
static const char *answers[8];
static uint32_t answers_n;
/* The fields of each request as JSON, without head and token. */
static char asked[FAKE_REQUESTS_MAX][4096];

static void note(uint32_t n, struct doc request)
{
    struct doc_cursor c = doc_cursor(request);
    struct doc_head head;
    struct buf json;
    uint32_t kept = 0;

    buf_init(&json, 2 * (size_t)LIMIT_STEP_BYTES);
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct doc value = doc_skip(&c);
        if (!str_is(name, "v") && !str_is(name, "id") && !str_is(name, "type") &&
            !str_is(name, "token")) {
            buf_add_cstr(&json, kept++ > 0 ? "," : "{");
            buf_printf(&json, "\"%.*s\":", STR_ARG(name));
            (void)!doc_to_json(value, false, &json, NULL);
        }
    }
    (void)snprintf(asked[n], sizeof asked[n], "%s%s", buf_cstr(&json), kept > 0 ? "}" : "{}");
    buf_done(&json);
}

static const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes)
{
    (void)f, (void)shard, (void)bytes;
    note(n, request);
    return answers[n < answers_n ? n : answers_n - 1];
}

static void open_with(const char *(*what)(struct fake *f, uint32_t n, uint32_t shard,
                                          struct doc request, struct str *bytes))
{
    struct bt_error err;

    fake_start(&fake, what);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
}

static void start(const char *one, const char *two, const char *three)
{
    answers[0] = one;
    answers[1] = two;
    answers[2] = three;
    answers_n = two == NULL ? 1 : three == NULL ? 2 : 3;
    open_with(says);
}

static void stop(void)
{
    bt_client_close(client);
    fake_stop(&fake);
}

/* ---- one plan ---- */

static void a_plan_is_sent_with_what_was_set_and_nothing_else(void **state)
{
    static const struct bt_submit all = {.goal = "g",
                                         .plan_json = "{\"steps\":[]}",
                                         .session_id = "s",
                                         .planner = "p",
                                         .client_key = "k",
                                         .policy_json = "{\"maxCostUsd\":1}",
                                         .constraints_json = "[\"c\"]",
                                         .dry_run = true,
                                         .lenient = true};
    static const struct bt_submit few = {.goal = "g", .client_key = "k"};
    char id[BT_ID_LEN + 1];
    struct bt_error err;
    char *json = NULL;

    (void)state;
    start(ACCEPTED, NULL, NULL);
    assert_int_equal(bt_submit(client, &all, id, &json, &err), BT_OK);
    assert_string_equal(id, "P");
    assert_string_equal(json, "{\"v\":1,\"type\":\"plan.submit.ok\",\"ok\":true,\"planId\":\"P\","
                              "\"status\":\"running\"}");
    bt_free(json);
    assert_string_equal(asked[0],
                        "{\"goal\":\"g\",\"sessionId\":\"s\",\"planner\":\"p\",\"clientKey\":\"k\","
                        "\"plan\":{\"steps\":[]},\"policy\":{\"maxCostUsd\":1},\"constraints\":"
                        "[\"c\"],\"dryRun\":true,\"lenient\":true}");
    assert_int_equal(bt_submit(client, &few, id, NULL, &err), BT_OK);
    assert_string_equal(asked[1], "{\"goal\":\"g\",\"clientKey\":\"k\"}");
    assert_string_equal(fake.log, "0 plan.submit; 0 plan.submit; ");
    stop();
}

static void what_is_no_json_is_named_and_not_sent(void **state)
{
    static const struct {
        struct bt_submit s;
        const char *names;
    } cases[] = {{{.plan_json = "{"}, "plan: "},
                 {{.goal = "g", .policy_json = "x"}, "policy: "},
                 {{.goal = "g", .constraints_json = "[1"}, "constraints: "}};
    char id[BT_ID_LEN + 1];
    struct bt_error err;

    (void)state;
    start(ACCEPTED, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(bt_submit(client, &cases[i].s, id, NULL, &err), BT_INVALID);
        assert_ptr_equal(strstr(err.msg, cases[i].names), err.msg);
    }
    assert_string_equal(fake.log, "");
    stop();
}

/* With the key of the library the repetition is the same plan. */
static void a_plan_whose_answer_is_lost_is_sent_three_times_with_one_key(void **state)
{
    static const struct bt_submit s = {.goal = "g"};
    char id[BT_ID_LEN + 1];
    struct bt_error err;
    struct uuid key;

    (void)state;
    start(ERROR("UNAVAILABLE", ""), ERROR("TIMEOUT", ""), ACCEPTED);
    assert_int_equal(bt_submit(client, &s, id, NULL, &err), BT_OK);
    assert_int_equal(fake.n, 3);
    assert_string_equal(asked[0], asked[1]);
    assert_string_equal(asked[1], asked[2]);
    assert_true(uuid_parse((struct str){strstr(asked[0], "Key\":\"") + 6, UUID_TEXT_LEN}, &key));
    assert_int_equal(bt_submit(client, &s, id, NULL, &err), BT_OK);
    assert_string_not_equal(asked[3], asked[2]); /* another plan has another one */
    stop();
    start(ERROR("UNAVAILABLE", ""), NULL, NULL);
    assert_int_equal(bt_submit(client, &s, id, NULL, &err), BT_UNAVAILABLE);
    assert_int_equal(fake.n, 3);
    stop();
    start(ERROR("LIMIT", ""), NULL, NULL); /* a refusal stands */
    assert_int_equal(bt_submit(client, &s, id, NULL, &err), BT_LIMIT);
    assert_int_equal(fake.n, 1);
    stop();
    start("'type':'plan.submit.ok','ok':true", NULL, NULL);
    assert_int_equal(bt_submit(client, &s, id, NULL, &err), BT_PROTOCOL);
    assert_string_equal(err.msg, "the answer to plan.submit has no planId");
    stop();
}

static void a_plan_is_cancelled_with_its_reason(void **state)
{
    struct bt_error err;

    (void)state;
    start("'type':'plan.cancel.ok','ok':true", "'type':'plan.cancel.ok','ok':true",
          ERROR("CONFLICT", ""));
    assert_int_equal(bt_cancel(client, "P", "because", &err), BT_OK);
    assert_int_equal(bt_cancel(client, "P", NULL, &err), BT_OK);
    assert_int_equal(bt_cancel(client, "P", NULL, &err), BT_CONFLICT);
    assert_string_equal(asked[0], "{\"planId\":\"P\",\"reason\":\"because\"}");
    assert_string_equal(asked[1], "{\"planId\":\"P\"}");
    assert_string_equal(fake.log, "0 plan.cancel; 0 plan.cancel; 0 plan.cancel; ");
    stop();
}

/* A shard with an address for other hosts only; and who decides is named with this host. */
static void a_client_of_this_host_does_not_go_to_another_one(void **state)
{
    char want[400];
    char host[256] = "";
    struct bt_error err;

    (void)state;
    start(ERROR("MOVED", ",'details':{'shard':1,'control':'tls+tcp://192.0.2.1:1'}"), NULL, NULL);
    assert_int_equal(bt_client_call(client, "plan.get", NULL, NULL, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "it is on another host, at tls+tcp://192.0.2.1:1: connect"));
    stop();
    start("'type':'review.decide.ok','ok':true", NULL, NULL);
    assert_int_equal(bt_client_call(client, "review.decide", NULL, NULL, &err), BT_OK);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(want, sizeof want, "\"host\":\"%.64s\"", host);
    assert_non_null(strstr(asked[0], want));
    stop();
}

/* ---- the wait ---- */

static void a_wait_ends_with_each_end_of_a_plan(void **state)
{
    static const char *const ends[] = {"completed", "failed", "cancelled", "quarantined"};
    char answer[100];
    struct bt_error err;
    char *json;

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(answer, sizeof answer, "'type':'plan.result.ok','ok':true,'status':'%s'",
                       ends[i]);
        start("'type':'plan.result.ok','ok':true,'status':'running'",
              "'type':'events.read.ok','ok':true,'events':[],'nextSeq':1,'lastSeq':0", answer);
        json = NULL;
        assert_int_equal(bt_wait(client, "P", 0, &json, &err), BT_OK);
        assert_non_null(strstr(json, ends[i]));
        bt_free(json);
        assert_string_equal(fake.log, "0 plan.result; 0 events.read; 0 plan.result; ");
        assert_string_equal(asked[0], "{\"planId\":\"P\"}");
        assert_string_equal(asked[1], "{\"fromSeq\":1,\"planId\":\"P\",\"types\":"
                                      "[\"plan_completed\"],\"limit\":1,\"waitMs\":2000}");
        stop();
    }
}

static const char *says_running(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                                struct str *bytes)
{
    (void)f, (void)shard, (void)bytes;
    note(n, request);
    return str_is(doc_string(doc_get(request, STR_LIT("type"))), "events.read")
               ? "'type':'events.read.ok','ok':true,'events':[],'nextSeq':1,'lastSeq':0"
               : "'type':'plan.result.ok','ok':true,'status':'running'";
}

static void a_wait_has_its_time_and_waits_for_no_refusal(void **state)
{
    struct bt_error err;
    char *json = NULL;

    (void)state;
    open_with(says_running);
    assert_int_equal(bt_wait(client, "P", 400, &json, &err), BT_TIMEOUT);
    assert_string_equal(err.msg, "plan P has not ended within 400 ms; it goes on");
    assert_null(json);
    assert_in_range(fake.n, 3, 50); /* it looks again every 20 ms when it is answered at once */
    stop();
    start(ERROR("NOT_FOUND", ""), NULL, NULL);
    assert_int_equal(bt_wait(client, "P", 0, &json, &err), BT_NOT_FOUND);
    assert_int_equal(fake.n, 1);
    stop();
    start(ERROR("UNAVAILABLE", ""), ERROR("TIMEOUT", ""),
          "'type':'plan.result.ok','ok':true,'status':'failed'");
    assert_int_equal(bt_wait(client, "P", 0, &json, &err), BT_OK); /* it comes back */
    bt_free(json);
    stop();
}

/* ---- several plans ---- */

enum { MOST = LIMIT_PLANS_AT_ONCE + 2 };

static struct bt_submit plans[MOST];
static struct bt_submitted results[MOST];
static char keys[MOST][8];

static void plans_with_keys(uint32_t n)
{
    memset(plans, 0, sizeof plans);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%u", i);
        plans[i] = (struct bt_submit){.goal = "g", .client_key = keys[i]};
    }
}

static enum bt_code submit(uint32_t n, struct bt_error *err)
{
    return bt_submit_many(client, plans, n, results, err);
}

static void forget(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bt_free(results[i].json);
        results[i].json = NULL;
    }
}

static void several_plans_are_one_request_with_an_answer_each(void **state)
{
    struct bt_error err;

    (void)state;
    plans_with_keys(3);
    start("'type':'plans.submit.ok','ok':true,'answers':[{'ok':true,'planId':'A'},"
          "{'ok':false,'error':{'code':'LIMIT','message':'too large'}},"
          "{'ok':true,'planId':'C','x':1}]",
          NULL, NULL);
    assert_int_equal(submit(3, &err), BT_LIMIT);
    assert_string_equal(err.msg, "plan 2: too large");
    assert_string_equal(fake.log, "0 plans.submit; ");
    assert_string_equal(asked[0], "{\"plans\":[{\"goal\":\"g\",\"clientKey\":\"k0\"},"
                                  "{\"goal\":\"g\",\"clientKey\":\"k1\"},"
                                  "{\"goal\":\"g\",\"clientKey\":\"k2\"}]}");
    assert_string_equal(results[0].plan_id, "A");
    assert_int_equal(results[0].err.code, BT_OK);
    assert_string_equal(results[0].json, "{\"ok\":true,\"planId\":\"A\"}");
    assert_string_equal(results[1].plan_id, "");
    assert_int_equal(results[1].err.code, BT_LIMIT);
    assert_string_equal(results[1].err.msg, "too large");
    assert_string_equal(results[1].json, "{\"code\":\"LIMIT\",\"message\":\"too large\"}");
    assert_string_equal(results[2].plan_id, "C");
    forget(3);
    stop();
}

static void no_plan_is_no_request_and_one_is_sent_by_itself(void **state)
{
    struct bt_error err;

    (void)state;
    plans_with_keys(1);
    start(ACCEPTED, NULL, NULL);
    assert_int_equal(submit(0, &err), BT_OK);
    assert_string_equal(fake.log, "");
    assert_int_equal(submit(1, &err), BT_OK);
    assert_string_equal(fake.log, "0 plan.submit; ");
    assert_string_equal(results[0].plan_id, "P");
    assert_non_null(results[0].json);
    forget(1);
    stop();
}

/* What may be right by itself: another shard has it, nobody answered about it, no answer at all. */
static void what_the_answer_leaves_open_is_sent_by_itself(void **state)
{
    static const char *const open[] = {
        "{'ok':false,'error':{'code':'MOVED','message':'m'}}",
        "{'ok':false,'error':{'code':'UNAVAILABLE','message':'m'}}",
        "{'ok':false,'error':{'code':'TIMEOUT','message':'m'}}",
        "{'ok':true}",
        "{'ok':true,'planId':'1234567890123456789012345678901234567'}",
        "{'ok':false,'error':{'code':'what?'}}"};
    char answer[300];
    struct bt_error err;

    (void)state;
    plans_with_keys(2);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        (void)snprintf(answer, sizeof answer,
                       "'type':'plans.submit.ok','ok':true,'answers':[{'ok':true,'planId':'A'},%s]",
                       open[i]);
        start(answer, ACCEPTED, NULL);
        if (i == 5) { /* a code that is not known is a refusal */
            assert_int_not_equal(submit(2, &err), BT_OK);
            assert_string_equal(fake.log, "0 plans.submit; ");
        } else {
            assert_int_equal(submit(2, &err), BT_OK);
            assert_string_equal(fake.log, "0 plans.submit; 0 plan.submit; ");
            assert_string_equal(asked[1], "{\"goal\":\"g\",\"clientKey\":\"k1\"}");
            assert_string_equal(results[1].plan_id, "P");
        }
        assert_string_equal(results[0].plan_id, "A");
        forget(2);
        stop();
    }
}

static void a_daemon_that_knows_no_such_request_gets_each_plan(void **state)
{
    struct bt_error err;

    (void)state;
    plans_with_keys(MOST);
    start("'type':'error','ok':false,'error':{'code':'INVALID','class':'UNKNOWN','message':"
          "'unknown request type','retryable':false}",
          ACCEPTED, NULL);
    assert_int_equal(submit(3, &err), BT_OK);
    assert_string_equal(fake.log, "0 plans.submit; 0 plan.submit; 0 plan.submit; 0 plan.submit; ");
    forget(3);
    stop();
    start(ERROR("LIMIT", ""), ACCEPTED, NULL); /* together too much */
    assert_int_equal(submit(2, &err), BT_OK);
    assert_string_equal(fake.log, "0 plans.submit; 0 plan.submit; 0 plan.submit; ");
    forget(2);
    stop();
    start(ERROR("UNAUTHORIZED", ""), NULL, NULL); /* it is so for each */
    assert_int_equal(submit(2, &err), BT_UNAUTHORIZED);
    assert_string_equal(err.msg, "plan 1: m");
    assert_string_equal(fake.log, "0 plans.submit; ");
    assert_int_equal(results[1].err.code, BT_UNAUTHORIZED);
    assert_null(results[1].json);
    stop();
}

static void answers_that_are_not_one_for_each_plan_are_none(void **state)
{
    static const char *const wrong[] = {"[{'ok':true,'planId':'A'}]",
                                        "[{'ok':true,'planId':'A'},{'ok':true,'planId':'B'},"
                                        "{'ok':true,'planId':'C'}]",
                                        "{'a':1,'b':2}", "7"};
    char answer[300];
    struct bt_error err;

    (void)state;
    plans_with_keys(2);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(answer, sizeof answer, "'type':'plans.submit.ok','ok':true,'answers':%s",
                       wrong[i]);
        start(answer, NULL, NULL);
        assert_int_equal(submit(2, &err), BT_PROTOCOL);
        assert_non_null(strstr(err.msg, "is not one for each plan"));
        assert_string_equal(results[0].plan_id, "");
        stop();
    }
}

/* Each of many plans would wait as long. */
static void where_nobody_answers_nobody_is_asked_again(void **state)
{
    struct bt_error err;

    (void)state;
    plans_with_keys(MOST);
    start(ERROR("UNAVAILABLE", ""), NULL, NULL);
    assert_int_equal(submit(MOST, &err), BT_UNAVAILABLE);
    assert_string_equal(fake.log, "0 plans.submit; 0 plans.submit; 0 plans.submit; ");
    for (uint32_t i = 0; i < MOST; i++) {
        assert_int_equal(results[i].err.code, BT_UNAVAILABLE);
        assert_null(results[i].json);
    }
    stop();
    start("'type':'plans.submit.ok','ok':true,'answers':[{'ok':true},{'ok':true},{'ok':true}]",
          ERROR("UNAVAILABLE", ""), NULL);
    assert_int_equal(submit(3, &err), BT_UNAVAILABLE);
    assert_int_equal(fake.n, 1 + 3); /* the first one by itself, three times */
    assert_int_equal(results[2].err.code, BT_UNAVAILABLE);
    forget(3);
    stop();
}

static const char *takes_all(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                             struct str *bytes)
{
    const struct doc list = doc_get(request, STR_LIT("plans"));
    size_t at;

    (void)shard, (void)bytes;
    note(n, request);
    if (list.ptr == NULL) {
        return ACCEPTED;
    }
    at =
        (size_t)snprintf(f->room, sizeof f->room, "'type':'plans.submit.ok','ok':true,'answers':[");
    for (uint32_t i = 0; i < doc_head(list).n; i++) {
        at += (size_t)snprintf(f->room + at, sizeof f->room - at, "%s{'ok':true,'planId':'%u.%u'}",
                               i > 0 ? "," : "", n, i);
    }
    (void)snprintf(f->room + at, sizeof f->room - at, "]");
    return f->room;
}

static void so_many_plans_are_one_request_and_more_are_two(void **state)
{
    struct bt_error err;

    (void)state;
    plans_with_keys(MOST);
    open_with(takes_all);
    assert_int_equal(submit(LIMIT_PLANS_AT_ONCE, &err), BT_OK);
    assert_string_equal(fake.log, "0 plans.submit; ");
    forget(LIMIT_PLANS_AT_ONCE);
    assert_int_equal(submit(MOST, &err), BT_OK);
    assert_string_equal(fake.log, "0 plans.submit; 0 plans.submit; 0 plans.submit; ");
    assert_string_equal(results[0].plan_id, "1.0");
    assert_string_equal(results[LIMIT_PLANS_AT_ONCE - 1].plan_id, "1.63");
    assert_string_equal(results[LIMIT_PLANS_AT_ONCE].plan_id, "2.0");
    assert_string_equal(results[LIMIT_PLANS_AT_ONCE + 1].plan_id, "2.1");
    forget(MOST);
    stop();
}

/* Of a fleet: the plans of each shard together, by their keys. */
static const char *takes_all_of_a_shard(struct fake *f, uint32_t n, uint32_t shard,
                                        struct doc request, struct str *bytes)
{
    if (str_is(doc_string(doc_get(request, STR_LIT("type"))), "fleet.map")) {
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'fleet.map.ok','ok':true,'shards':[{'shard':0,'control':'%s'},"
                       "{'shard':1,'control':'%s'}]",
                       f->url[0], f->url[1]);
        return f->room;
    }
    (void)takes_all(f, n, shard, request, bytes);
    for (char *at = f->room; (at = strstr(at, "'planId':'")) != NULL;) {
        at += 10;
        *at = (char)('0' + shard);
    }
    return f->room;
}

static void plans_of_a_fleet_go_to_the_shards_of_their_keys(void **state)
{
    struct bt_error err;
    uint32_t on[2] = {0, 0};

    (void)state;
    plans_with_keys(16);
    fake_start(&fake, takes_all_of_a_shard);
    fake_is_fleet(&fake);
    assert_int_equal(bt_client_open(fake.dir, &client, &err), BT_OK);
    assert_int_equal(submit(16, &err), BT_OK);
    for (int i = 0; i < 16; i++) {
        const uint32_t want = (uint32_t)shard_of_key(str_from(keys[i]), 2);
        assert_int_equal(results[i].plan_id[0] - '0', want);
        on[want]++;
    }
    assert_true(on[0] > 1 && on[1] > 1);
    assert_non_null(strstr(fake.log, "0 plans.submit; "));
    assert_non_null(strstr(fake.log, "1 plans.submit; "));
    assert_null(strstr(fake.log, "plan.submit"));
    forget(16);
    stop();
}

/* A plan that is no JSON, and one too large for company. */
static void a_plan_that_cannot_go_with_others_holds_none_of_them(void **state)
{
    static char large[LIMIT_CONTROL_BYTES + 64];
    struct bt_error err;

    (void)state;
    plans_with_keys(4);
    plans[1].plan_json = "{";
    (void)snprintf(large, sizeof large, "{\"t\":\"%0*d\"}", LIMIT_CONTROL_BYTES, 7);
    plans[2].plan_json = large;
    open_with(takes_all);
    assert_int_equal(submit(4, &err), BT_INVALID);
    assert_ptr_equal(strstr(err.msg, "plan 2: plan: "), err.msg);
    assert_string_equal(results[0].plan_id, "P"); /* alone, before the large one */
    assert_string_equal(results[1].plan_id, "");
    assert_string_equal(results[2].plan_id, "P");
    assert_string_equal(results[3].plan_id, "P");
    assert_string_equal(fake.log, "0 plan.submit; 0 plan.submit; 0 plan.submit; ");
    forget(4);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_sent_with_what_was_set_and_nothing_else),
        cmocka_unit_test(what_is_no_json_is_named_and_not_sent),
        cmocka_unit_test(a_plan_whose_answer_is_lost_is_sent_three_times_with_one_key),
        cmocka_unit_test(a_plan_is_cancelled_with_its_reason),
        cmocka_unit_test(a_client_of_this_host_does_not_go_to_another_one),
        cmocka_unit_test(a_wait_ends_with_each_end_of_a_plan),
        cmocka_unit_test(a_wait_has_its_time_and_waits_for_no_refusal),
        cmocka_unit_test(several_plans_are_one_request_with_an_answer_each),
        cmocka_unit_test(no_plan_is_no_request_and_one_is_sent_by_itself),
        cmocka_unit_test(what_the_answer_leaves_open_is_sent_by_itself),
        cmocka_unit_test(a_daemon_that_knows_no_such_request_gets_each_plan),
        cmocka_unit_test(answers_that_are_not_one_for_each_plan_are_none),
        cmocka_unit_test(where_nobody_answers_nobody_is_asked_again),
        cmocka_unit_test(so_many_plans_are_one_request_and_more_are_two),
        cmocka_unit_test(plans_of_a_fleet_go_to_the_shards_of_their_keys),
        cmocka_unit_test(a_plan_that_cannot_go_with_others_holds_none_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
