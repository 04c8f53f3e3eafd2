/* Instances of agents over HTTP: registration, greetings on lanes, heartbeats, leases. */
#include "tests/unit/gateway/polled_world.h"

/* ---- registration ---- */

/* The text of a member of the last call. */
static const char *sent(const char *name)
{
    static char value[256];
    char key[64];
    const char *at;

    (void)snprintf(key, sizeof key, "\"%s\":\"", name);
    at = strstr(rig.fields, key);
    assert_non_null(at);
    (void)snprintf(value, sizeof value, "%s", at + strlen(key));
    value[strcspn(value, "\"")] = 0;
    return value;
}

static void an_agent_is_registered_with_a_key_and_lanes_that_are_dialed(void **state)
{
    struct http *h = ask("POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}");

    (void)state;
    assert_int_equal(h->state, HTTP_WAITS);
    assert_int_equal(rig.spec.type, MSG_agent_register);
    assert_int_equal(rig.spec.answer, MSG_agent_registered_ok);
    assert_true(rig.spec.reads);
    assert_string_equal(sent("instanceId"), ID);
    assert_string_equal(sent("processId"), ID);
    assert_int_equal(strlen(sent("sessionKey")), 64);
    assert_non_null(strstr(rig.fields, "\"dialIn\":true"));
    assert_non_null(strstr(rig.fields, "\"proof\":true"));
    assert_non_null(strstr(rig.fields, "\"capacity\":1"));
    assert_non_null(strstr(rig.fields, "\"agentId\":\"a\""));
    rig_answer_to(MSG_agent_register, REGISTERED(3, "'tcp://l0','tcp://l1'"));
    expect_out(h, 201, "{'instanceId':'" ID "','epoch':3,'leaseMs':30000,'heartbeatMs':10000}");
    assert_string_equal(buf_cstr(&h->location), "/v1/instances/" ID);
    assert_int_equal(lanes.n, 2);
    assert_string_equal(lanes.servers[0].url, "tcp://l0");
    assert_string_equal(lanes.servers[1].url, "tcp://l1");
    assert_int_equal(lanes.servers[0].limits.recv_max, LIMIT_STEP_BYTES);
    assert_int_equal(p->lanes_n, 2);
}

static void ids_are_made_up_or_are_those_of_the_agent(void **state)
{
    struct uuid id;

    (void)state;
    (void)ask("POST", "/v1/instances", "{" CARD "}");
    assert_true(uuid_parse(str_from(sent("instanceId")), &id));
    assert_false(p->first->returned); /* it was never there before */
    (void)ask("POST", "/v1/instances",
              "{" CARD ",'instanceId':'0190f3c2-7a1b-7c3d-9e4f-0123456789ab',"
              "'processId':'0190f3c2-7a1b-7c3d-9e4f-0123456789ac','capacity':64}");
    assert_string_equal(sent("instanceId"), ID);
    assert_string_equal(sent("processId"), "0190F3C2-7A1B-7C3D-9E4F-0123456789AC");
    assert_true(p->first->returned);
    assert_int_equal(p->first->capacity, 64);
}

static void what_is_wrong_in_a_registration_is_named(void **state)
{
    static const struct {
        const char *body, *field;
    } all[] = {{"{}", "card"},
               {"{" CARD ",'capacity':0}", "capacity"},
               {"{" CARD ",'capacity':65}", "capacity"},
               {"{" CARD ",'instanceId':'x'}", "instanceId"},
               {"{" CARD ",'instanceId':'00000000-0000-0000-0000-000000000000'}", "instanceId"},
               {"{" CARD ",'processId':'x'}", "processId"},
               {"{" CARD ",'endpoint':'tcp://x'}", ""},
               {"{" CARD ",'dialIn':true}", ""},
               {"{" CARD ",'bundle':2}", ""},
               {"{" CARD ",'sessionKey':'x'}", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(ask("POST", "/v1/instances", all[i].body)->status, 400);
        assert_string_equal(rig.field, all[i].field);
        assert_int_equal(rig.asked, 0);
    }
    assert_null(p->first);
}

static void a_registration_that_is_refused_leaves_nothing(void **state)
{
    struct http *h = ask("POST", "/v1/instances", "{" CARD "}");

    (void)state;
    rig_refuse_to(MSG_agent_register, BT_UNAVAILABLE);
    assert_int_equal(h->status, 503);
    assert_int_equal(h->state, HTTP_READY);
    assert_null(h->own);
    assert_null(p->first);
    rig.busy = BT_BUSY;
    h = ask("POST", "/v1/instances", "{" CARD "}");
    assert_int_equal(h->status, 503);
    assert_int_equal(rig.code, BT_BUSY);
    assert_null(p->first);
    rig.busy = BT_OK;
    lanes.fails = BT_INVALID;
    h = ask("POST", "/v1/instances", "{" CARD "}");
    rig_answer_to(MSG_agent_register, REGISTERED(3, "'tcp://l0'"));
    assert_int_equal(h->status, 503);
    assert_null(p->first);
}

static void an_instance_belongs_to_who_registered_it(void **state)
{
    struct http *h;
    struct http *first = ask("POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}");

    (void)state;
    h = ask("POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}");
    assert_int_equal(h->status, 409); /* it is about to be */
    assert_string_equal(rig.field, "instanceId");
    rig_answer_to(MSG_agent_register, REGISTERED(3, "'tcp://l0'"));
    assert_int_equal(first->status, 201);
    h = ask_as(stranger, "POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}");
    assert_int_equal(h->status, 409);
    h = ask_as(stranger, "POST", AT "/poll", "");
    assert_int_equal(h->status, 404);
    h = ask_as(stranger, "POST", AT "/heartbeat", "");
    assert_int_equal(h->status, 404);
    assert_string_equal(rig.message, POLLED_NOT_HERE);
    h = ask("POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}"); /* once more */
    assert_int_equal(h->state, HTTP_WAITS);
    assert_true(lanes.servers[0].retired);
    rig_answer_to(MSG_agent_register, REGISTERED(4, "'tcp://l1'"));
    assert_int_equal(h->status, 201);
    assert_int_equal(p->n, 1);
}

static void so_many_agents_and_lanes_have_room_and_no_more(void **state)
{
    char answer[TEXT_BYTES] = "{'epoch':3,'leaseMs':5000,'heartbeatMs':1000,'lanes':[";
    struct http *h = NULL;

    (void)state;
    for (int i = 0; i < 4; i++) {
        (void)snprintf(answer + strlen(answer), sizeof answer - strlen(answer), "%s't%d'",
                       i > 0 ? "," : "", i);
    }
    (void)snprintf(answer + strlen(answer), sizeof answer - strlen(answer), "]}");
    for (int i = 0; i < POLLED_INSTANCES_MAX; i++) {
        h = ask("POST", "/v1/instances", "{" CARD "}");
        rig_answer_to(MSG_agent_register, answer);
        assert_int_equal(h->status, 201);
        if (i == POLLED_INSTANCES_MAX - 2) { /* one lane of 1,024 is taken already */
            p->lanes_n++;
        }
        if (i == POLLED_INSTANCES_MAX - 2) {
            h = ask("POST", "/v1/instances", "{" CARD "}");
            rig_answer_to(MSG_agent_register, answer);
            assert_int_equal(h->status, 503);
            assert_string_equal(rig.message, "the gateway has as many lanes of agents as it may");
            p->lanes_n--;
        }
    }
    assert_int_equal(p->lanes_n, POLLED_LANES_MAX);
    h = ask("POST", "/v1/instances", "{" CARD "}");
    assert_int_equal(h->status, 503);
    assert_string_equal(rig.message, "the gateway has as many agents as it may: at most 256");
    assert_int_equal(p->n, POLLED_INSTANCES_MAX);
}

static void an_instance_has_as_many_lanes_as_it_can_take_and_one_more(void **state)
{
    char answer[TEXT_BYTES] = "{'epoch':3,'leaseMs':5000,'heartbeatMs':1000,'lanes':[";
    struct http *h = ask("POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}");

    (void)state;
    for (int i = 0; i <= LIMIT_CAPACITY; i++) {
        (void)snprintf(answer + strlen(answer), sizeof answer - strlen(answer), "%s't%d'",
                       i > 0 ? "," : "", i);
    }
    (void)snprintf(answer + strlen(answer), sizeof answer - strlen(answer), "]}");
    rig_answer_to(MSG_agent_register, answer);
    assert_int_equal(h->status, 201);
    assert_int_equal(p->lanes_n, LIMIT_CAPACITY + 1);
    assert_string_equal(lanes.servers[LIMIT_CAPACITY].url, "t64");
}

/* ---- greetings ---- */

#define NONCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The text of a member of the last answer on a lane. */
static void answered(const char *name, char ret[128])
{
    char key[64];
    const char *at;

    (void)snprintf(key, sizeof key, "\"%s\":\"", name);
    at = strstr(lanes.answer, key);
    assert_non_null(at);
    (void)snprintf(ret, 128, "%s", at + strlen(key));
    ret[strcspn(ret, "\"")] = 0;
}

static void hello(uint32_t pipe, uint64_t request, unsigned epoch, const char *proof)
{
    char members[TEXT_BYTES];

    (void)snprintf(members, sizeof members, "'lane':0,'epoch':%u,'nonceS':'" NONCE "'%s%s%s", epoch,
                   proof != NULL ? ",'proof':'" : "", proof != NULL ? proof : "",
                   proof != NULL ? "'" : "");
    asks(0, pipe, request, "lane.hello", members);
}

static void both_sides_of_a_lane_prove_that_they_have_the_key(void **state)
{
    struct lane_proof proof = {.lane = 0, .epoch = 3};
    uint8_t mac[AUTH_KEY_BYTES];
    char key[80];
    char text[128];
    char hex[2 * AUTH_KEY_BYTES + 1];

    (void)state;
    (void)ask("POST", "/v1/instances", "{" CARD ",'instanceId':'" ID "'}");
    (void)snprintf(key, sizeof key, "%s", sent("sessionKey"));
    rig_answer_to(MSG_agent_register, REGISTERED(3, "'tcp://l0'"));
    asks(0, 9, 1, "step.execute", STEP("k", 1, ""));
    expect_answer(1, "'UNAUTHORIZED'");
    hello(9, 2, 3, NULL);
    expect_answer(2, "'processId':'" ID "'");
    assert_true(auth_unhex(STR_LIT(NONCE), proof.nonce_s, sizeof proof.nonce_s));
    answered("nonceA", text);
    assert_true(auth_unhex(str_from(text), proof.nonce_a, sizeof proof.nonce_a));
    answered("proof", text);
    assert_true(lane_proof_check(str_from(key), LANE_SIDE_AGENT, &proof, str_from(text)));
    assert_true(lane_proof_make(str_from(key), LANE_SIDE_SUPERVISOR, &proof, mac));
    auth_hex(mac, sizeof mac, hex);
    asks(0, 9, 3, "agent.ping", "");
    expect_answer(3, "'UNAUTHORIZED'"); /* not yet */
    hello(9, 4, 4, hex);                /* of another epoch */
    expect_answer(4, "'UNAUTHORIZED'");
    hello(8, 5, 3, hex); /* of another connection */
    expect_answer(5, "'UNAUTHORIZED'");
    hex[0] = hex[0] == '0' ? '1' : '0';
    hello(9, 6, 3, hex);
    expect_answer(6, "'UNAUTHORIZED'");
    hex[0] = 0;
    auth_hex(mac, sizeof mac, hex);
    hello(9, 7, 3, hex);
    expect_answer(7, "'processId'");
    asks(0, 9, 8, "agent.ping", "");
    assert_null(strstr(lanes.answer, "UNAUTHORIZED"));
    asks(0, 8, 9, "agent.ping", "");
    expect_answer(9, "'UNAUTHORIZED'");
    asks(0, 9, 10, "agent.stats", "");
    expect_answer(10, "an agent over HTTP has no such request");
    expect_answer(10, "'INVALID'");
    asks(0, 9, 11, "step.cancel", "'attempt':1");
    expect_answer(11, "key");
    hello(9, 12, 3, NULL); /* it begins anew */
    asks(0, 9, 13, "agent.ping", "");
    expect_answer(13, "'UNAUTHORIZED'");
    asks(0, 9, 14, "lane.hello", "'lane':0,'epoch':3,'nonceS':'00'");
    expect_answer(14, "64 hexadecimal digits");
}

/* ---- heartbeats ---- */

static void the_daemon_hears_of_an_instance_as_often_as_it_says(void **state)
{
    struct instance *in = registered(2);

    (void)state;
    step(10, "out");
    taken(poll_now(""), false);
    step(11, "queued");
    run(BEAT_MS - 1);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 0);
    run(1);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 1);
    assert_int_equal(rig.spec.within_ms, 5000);
    assert_true(rig.spec.reads);
    assert_string_equal(rig.fields, "{\"instanceId\":\"" ID "\",\"epoch\":3,\"inflight\":[{\"key\":"
                                    "\"out\",\"attempt\":1},{\"key\":\"queued\",\"attempt\":1}]}");
    run(BEAT_MS);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 1); /* one at a time */
    rig_answer_to(MSG_agent_heartbeat,
                  "{'leaseMs':5000,'cancel':[{'key':'out','attempt':1,'reason':'r','graceMs':4},"
                  "{'key':'none'}]}");
    assert_true(in->works->cancelled);
    assert_string_equal(in->works->reason, "r");
    assert_int_equal(in->works->grace_ms, 4);
    assert_false(in->works->next->cancelled);
    run(BEAT_MS - 1);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 0);
    run(1);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 1);
}

static void a_heartbeat_that_cannot_be_sent_comes_half_a_second_later(void **state)
{
    (void)state;
    (void)registered(1);
    rig.busy = BT_BUSY;
    run(BEAT_MS);
    rig.busy = BT_OK;
    run(499);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 0);
    run(1);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 1);
}

static void what_the_daemon_has_forgotten_registers_again_with_the_same_key(void **state)
{
    const struct instance *in = registered(1);
    char key[80];

    (void)state;
    (void)snprintf(key, sizeof key, "%s", in->session_key);
    run(BEAT_MS);
    rig_refuse_to(MSG_agent_heartbeat, BT_NOT_FOUND);
    run(0);
    assert_int_equal(rig_open(MSG_agent_register), 1);
    assert_string_equal(sent("sessionKey"), key);
    assert_true(lanes.servers[0].retired);
    rig_refuse_to(MSG_agent_register, BT_UNAVAILABLE);
    run(499);
    assert_int_equal(rig_open(MSG_agent_register), 0);
    run(1);
    assert_int_equal(rig_open(MSG_agent_register), 1);
    rig_answer_to(MSG_agent_register, REGISTERED(4, "'tcp://l5'"));
    assert_int_equal(in->epoch, 4);
    assert_true(in->registered);
    run(BEAT_MS);
    assert_int_equal(rig_open(MSG_agent_heartbeat), 1);
}

static void who_is_not_wanted_any_more_is_gone(void **state)
{
    static const enum bt_code codes[] = {BT_UNAUTHORIZED, BT_INVALID, BT_LIMIT};
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/poll", "");
    run(BEAT_MS);
    rig_refuse_to(MSG_agent_heartbeat, BT_UNAUTHORIZED);
    assert_null(p->first);
    assert_int_equal(h->status, 401); /* and its poll says why */
    assert_int_equal(h->state, HTTP_READY);
    for (size_t i = 0; i < 3; i++) {
        (void)registered(1);
        run(BEAT_MS);
        rig_refuse_to(MSG_agent_heartbeat, BT_GONE);
        run(0);
        rig_refuse_to(MSG_agent_register, codes[i]);
        assert_null(p->first);
    }
}

static void orders_of_the_daemon_drain_an_instance(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/poll", "");
    run(BEAT_MS);
    rig_answer_to(MSG_agent_heartbeat, "{'leaseMs':5000,'drain':true}");
    expect_out(h, 200, "{'steps':[],'cancel':[],'drain':true}");
    taken(h, false);
    asks(0, 7, 10, "step.execute", STEP("k", 1, ""));
    expect_answer(10, "this instance drains");
    h = ask("POST", AT "/poll", "");
    assert_int_equal(h->state, HTTP_WAITS); /* it is told once */
    run(BEAT_MS);
    rig_answer_to(MSG_agent_heartbeat, "{'leaseMs':5000}");
    expect_out(ask("POST", AT "/heartbeat", ""), 200,
               "{'leaseMs':30000,'cancel':[],'drain':true}"); /* it stays so */
}

/* ---- leases ---- */

static void an_agent_that_does_not_ask_leaves_after_its_lease(void **state)
{
    (void)state;
    (void)registered(1);
    run(LEASE_MS);
    assert_non_null(p->first);
    run(1);
    assert_null(p->first);
    assert_int_equal(rig_open(MSG_agent_deregister), 1);
    assert_string_equal(rig.fields, "{\"instanceId\":\"" ID "\",\"epoch\":3}");
    assert_true(lanes.servers[0].retired);
    rig_answer_to(MSG_agent_deregister, "{}");
}

static void each_request_of_an_agent_is_a_sign_of_life(void **state)
{
    static const struct {
        const char *method, *target, *body;
    } all[] = {{"POST", AT "/poll?waitMs=0", ""},
               {"POST", AT "/heartbeat", ""},
               {"POST", AT "/progress", "{'key':'k','attempt':1}"},
               {"GET", AT "/artifacts?key=k&attempt=1&uri=u", ""}};

    (void)state;
    (void)registered(1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        run(LEASE_MS - 10);
        (void)ask(all[i].method, all[i].target, all[i].body);
        assert_non_null(p->first);
    }
    assert_int_equal(forwarded, 1);
}

static void a_poll_keeps_the_lease_while_its_client_is_there(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/poll?waitMs=60000", "");
    for (msec ms = 0; ms < LEASE_MS + 1000; ms += 1000) {
        run(1000);
    }
    assert_non_null(p->first);
    hang_up(h);
    run(LEASE_MS);
    assert_non_null(p->first);
    run(1);
    assert_null(p->first);
}

static void an_agent_with_a_result_that_the_daemon_does_not_have_stays(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/result", "{'key':'k','attempt':1,'result':{'text':'x'}}");
    run(LEASE_MS + 1);
    assert_non_null(p->first);
    rig_answer_to(MSG_step_result, "{'accepted':true}");
    run(1);
    assert_null(p->first);
    assert_int_equal(h->status, 503); /* it was told at the end of its wait */
}

static void a_lease_is_as_long_as_the_gateway_was_told(void **state)
{
    struct polled *other;
    struct bt_error err;

    (void)state;
    assert_int_equal(p->lease_ms, 30000);
    assert_int_equal(polled_new(NULL, 500, &other, &err), BT_OK);
    assert_int_equal(other->lease_ms, 500);
    assert_int_equal(polled_deadline(other), MSEC_NEVER);
    free(other);
    (void)registered(1);
    assert_int_equal(polled_deadline(p), NOW + 100);
}

/* ---- what goes to the daemon as it is ---- */

static void progress_goes_to_the_daemon_with_the_epoch(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/progress", "{'key':'k','attempt':1,'percent':50}");
    assert_int_equal(h->state, HTTP_WAITS);
    assert_int_equal(rig.spec.type, MSG_step_progress);
    assert_non_null(strstr(rig.fields, "\"epoch\":3"));
    rig_answer_to(MSG_step_progress, "{}");
    expect_out(h, 200, "{'leaseMs':30000,'cancel':[],'drain':false}");
    h = ask("POST", AT "/progress", "{'key':'k','attempt':1}");
    rig_refuse_to(MSG_step_progress, BT_NOT_FOUND);
    assert_int_equal(h->status, 404);
    assert_int_equal(h->state, HTTP_READY);
    rig.busy = BT_BUSY;
    h = ask("POST", AT "/progress", "{'key':'k','attempt':1}");
    assert_int_equal(h->status, 503);
    h = ask("POST", AT "/progress", "{'key':'k'}");
    assert_int_equal(h->status, 400);
    assert_string_equal(rig.field, "attempt");
}

static void who_drains_says_so_to_the_daemon_first(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/drain", "");
    rig_refuse_to(MSG_agent_drain, BT_UNAVAILABLE);
    assert_int_equal(h->status, 503);
    assert_false(p->first->draining);
    h = ask("POST", AT "/drain", "");
    rig_answer_to(MSG_agent_drain, "{}");
    assert_int_equal(h->status, 200);
    assert_true(p->first->draining);
    expect_out(poll_now(""), 200, "{'steps':[],'cancel':[],'drain':true}");
}

static void a_result_that_waits_is_told_when_the_instance_is_gone(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/result", "{'key':'k','attempt':1,'result':{'text':'x'}}");
    run(BEAT_MS);
    rig_refuse_to(MSG_agent_heartbeat, BT_UNAUTHORIZED);
    assert_int_equal(h->status, 401);
    assert_int_equal(h->state, HTTP_READY);
    assert_null(h->own);
    assert_int_equal(rig_open(MSG_step_result), 0);
}

static void who_leaves_is_gone_when_the_daemon_says_so(void **state)
{
    struct http *h;
    struct http *waits;

    (void)state;
    (void)registered(1);
    waits = ask("POST", AT "/poll", "");
    h = ask("DELETE", AT, "");
    rig_refuse_to(MSG_agent_deregister, BT_UNAVAILABLE);
    assert_int_equal(h->status, 503);
    assert_non_null(p->first);
    h = ask("DELETE", AT, "");
    rig_answer_to(MSG_agent_deregister, "{}");
    expect_out(h, 200, "{}");
    assert_null(p->first);
    assert_int_equal(waits->status, 404);
    assert_int_equal(ask("POST", AT "/poll", "")->status, 404);
    assert_int_equal(ask("POST", "/v1/instances/x/poll", "")->status, 404);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_agent_is_registered_with_a_key_and_lanes_that_are_dialed),
        TEST(ids_are_made_up_or_are_those_of_the_agent),
        TEST(what_is_wrong_in_a_registration_is_named),
        TEST(a_registration_that_is_refused_leaves_nothing),
        TEST(an_instance_belongs_to_who_registered_it),
        TEST(so_many_agents_and_lanes_have_room_and_no_more),
        TEST(an_instance_has_as_many_lanes_as_it_can_take_and_one_more),
        TEST(both_sides_of_a_lane_prove_that_they_have_the_key),
        TEST(the_daemon_hears_of_an_instance_as_often_as_it_says),
        TEST(a_heartbeat_that_cannot_be_sent_comes_half_a_second_later),
        TEST(what_the_daemon_has_forgotten_registers_again_with_the_same_key),
        TEST(who_is_not_wanted_any_more_is_gone),
        TEST(orders_of_the_daemon_drain_an_instance),
        TEST(an_agent_that_does_not_ask_leaves_after_its_lease),
        TEST(each_request_of_an_agent_is_a_sign_of_life),
        TEST(a_poll_keeps_the_lease_while_its_client_is_there),
        TEST(an_agent_with_a_result_that_the_daemon_does_not_have_stays),
        TEST(a_lease_is_as_long_as_the_gateway_was_told),
        TEST(progress_goes_to_the_daemon_with_the_epoch),
        TEST(who_drains_says_so_to_the_daemon_first),
        TEST(a_result_that_waits_is_told_when_the_instance_is_gone),
        TEST(who_leaves_is_gone_when_the_daemon_says_so),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
