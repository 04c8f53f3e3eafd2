/* Lanes: both sides prove themselves on each connection; what leaves, and what it was to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/dispatch/lanes.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define DO "'skills':[{'id':'do','description':'D'}]"

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* Every connection of the agents ends; the rig makes new ones. */
static void reconnect(struct house *h)
{
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        if (!fake_link_lane(h->link, i)->retired && fake_link_lane(h->link, i)->up) {
            fake_lane_down(fake_link_lane(h->link, i), true);
        }
    }
    house_cycle(h);
}

/* ---- proofs ---- */

enum proves { RIGHT, OTHER_KEY, OTHER_LANE, NO_NONCE, NO_PROOF };

static struct {
    struct house *h;
    enum proves how;
    uint32_t first, second, wrong; /* hellos: for the agent's proof, with the supervisor's */
    struct lane_proof last;
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
} agent_side;

static const char *no_proof(struct house *h, const char *id)
{
    return house_text(h, "{'v':1,'id':'%s','ok':true,'type':'ok'}", id);
}

static const char *with_proof(struct house *h, const char *request)
{
    const char *key = agent_side.how == OTHER_KEY ? "0123456789abcdef9" : "0123456789abcdef1";
    struct lane_proof p = {.lane = strtoull(house_get(h, request, "lane"), NULL, 10),
                           .epoch = strtoull(house_get(h, request, "epoch"), NULL, 10)};
    uint8_t proof[AUTH_KEY_BYTES];
    char proof_hex[2 * AUTH_KEY_BYTES + 1];
    char nonce_hex[2 * AUTH_NONCE_BYTES + 1];

    assert_true(auth_unhex(str_from(house_get(h, request, "nonceS")), p.nonce_s, AUTH_NONCE_BYTES));
    memset(p.nonce_a, 7, sizeof p.nonce_a);
    agent_side.last = p;
    p.lane += agent_side.how == OTHER_LANE ? 1 : 0;
    assert_true(lane_proof_make(str_from(key), LANE_SIDE_AGENT, &p, proof));
    auth_hex(proof, sizeof proof, proof_hex);
    auth_hex(p.nonce_a, sizeof p.nonce_a, nonce_hex);
    nonce_hex[agent_side.how == NO_NONCE ? 0 : 2 * AUTH_NONCE_BYTES] = 0;
    return house_text(h, "{'v':1,'id':'%s','ok':true,'type':'ok','nonceA':'%s','proof':'%s'}",
                      house_get(h, request, "id"), nonce_hex, proof_hex);
}

static const char *prove(struct house_agent *agent, const char *request)
{
    struct house *h = agent_side.h;
    const char *proof;

    (void)agent;
    if (strstr(request, "lane.hello") == NULL) {
        return NULL;
    }
    house_is(h, request, "sessionKey", NULL); /* it was sent once, at the registration */
    proof = house_get(h, request, "proof");
    if (proof != NULL) {
        agent_side.second++;
        agent_side.wrong += !lane_proof_check(STR_LIT("0123456789abcdef1"), LANE_SIDE_SUPERVISOR,
                                              &agent_side.last, str_from(proof));
        return no_proof(h, house_get(h, request, "id"));
    }
    agent_side.first++;
    return agent_side.how == NO_PROOF ? no_proof(h, house_get(h, request, "id"))
                                      : with_proof(h, request);
}

/* An agent that proves; its connections are made anew with the rig's answers. */
static struct house *open_proving(enum proves how)
{
    struct house *h = house_open();
    struct house_agent *a;

    memset(&agent_side, 0, sizeof agent_side);
    agent_side.h = h;
    agent_side.how = how;
    a = house_join_as(h, "calc", 1, DO, ",'proof':true"); /* the rig itself proves nothing */
    a->tells = prove;
    reconnect(h);
    return h;
}

static void both_sides_prove_that_they_have_the_key_before_work_is_sent(void **state)
{
    struct house *h = open_proving(RIGHT);
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    house_says(h, house_work(h, "calc", NULL), "sessionKey=-; stepId=a");
    assert_int_equal(agent_side.first, 2); /* the control lane, and the work lane */
    assert_int_equal(agent_side.second, 2);
    assert_int_equal(agent_side.wrong, 0);
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

static void who_does_not_prove_itself_gets_no_work(void **state)
{
    (void)state;
    for (enum proves how = OTHER_KEY; how <= NO_PROOF; how++) {
        struct house *h = open_proving(how);
        (void)house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
        assert_null(house_work(h, "calc", NULL));
        assert_true(agent_side.first > 0);
        assert_int_equal(agent_side.second, 0); /* nor does it learn a proof */
        agent_side.how = RIGHT;
        reconnect(h);
        assert_non_null(house_work(h, "calc", NULL));
        house_close(h);
    }
}

static void each_connection_is_proved_anew(void **state)
{
    struct house *h = open_proving(RIGHT);

    (void)state;
    agent_side.how = OTHER_KEY; /* what was proved before counts for nothing */
    reconnect(h);
    assert_int_equal(agent_side.first, 4);
    assert_int_equal(agent_side.second, 2);
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    assert_null(house_work(h, "calc", NULL));
    house_close(h);
}

static void where_credentials_are_required_an_instance_proves(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.auth_required = true;
    h = house_open_with(&opt);
    (void)house_as(h, "agent");
    house_refused(h, "INVALID", "proof: this daemon wants agents that prove themselves",
                  "agent.register",
                  "'card':{'agentId':'calc','name':'c','version':'1'," DO "},'capacity':1,"
                  "'endpoint':'tcp://127.0.0.1:4711','sessionKey':'0123456789abcdef',"
                  "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA'");
    (void)house_ok(h, "agent.register",
                   "'card':{'agentId':'calc','name':'c','version':'1'," DO "},'capacity':1,"
                   "'endpoint':'tcp://127.0.0.1:4711','sessionKey':'0123456789abcdef',"
                   "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','proof':true");
    house_close(h);
}

/* ---- a process that names itself, or does not ---- */

static const char *named; /* in the answer to lane.hello; NULL = it does not say */

static const char *name_itself(struct house_agent *agent, const char *request)
{
    (void)agent;
    if (strstr(request, "lane.hello") == NULL) {
        return NULL;
    }
    return named;
}

/* "unknown" of the very process that was asked means that it never ran; of any other one that
 * nobody knows. */
static void only_the_process_that_was_asked_can_tell_that_it_never_ran(void **state)
{
    static const char *const answers[] = {
        "{\"v\":1,\"id\":\"hello\",\"ok\":true,\"type\":\"ok\",\"processId\":"
        "\"0190F3C2-7A1B-7C3D-9E4F-0000000000CC\"}",
        "{\"v\":1,\"id\":\"hello\",\"ok\":true,\"type\":\"ok\"}",
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct house *h = house_open();
        const char *id;
        house_join_as(h, "calc", 1, DO, ",'processId':'0190F3C2-7A1B-7C3D-9E4F-0000000000CC'")
            ->tells = name_itself;
        named = answers[i];
        reconnect(h);
        id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'effects':'unsafe'") "]}");
        (void)house_work(h, "calc", NULL);
        house_hang_up(h, "calc", true);
        house_wait(h, 10000);
        house_says(h, view(h, id),
                   i == 0 ? "status=running; steps.0.status=in_progress; steps.0.attempts=2"
                          : "status=waiting; steps.0.status=waiting; "
                            "steps.0.reason=unknown_outcome; steps.0.attempts=1");
        house_close(h);
    }
}

/* ---- what leaves in the cycle that gives it work ---- */

static void arrives(struct house *h, const char *type, const char *fields)
{
    const char *request = house_text(h, "{'v':1,'type':'%s','id':'q','token':'%s',%s}", type,
                                     HOUSE_TOKEN, house_text(h, "%s", fields));

    fake_link_request(h->link, false, ++h->requests, request, strlen(request));
}

/* The answer of the work, in the cycle of what arrives next: another step becomes due with it. */
static void answers(struct house *h)
{
    const char *work = house_work(h, "calc", NULL);
    const char *answer = house_text(
        h,
        "{'v':1,'id':'%s','ok':true,'type':'step.result','key':'%s','attempt':%s,'epoch':%s,"
        "'outcome':'completed','result':{'text':'x'}}",
        house_get(h, work, "id"), house_get(h, work, "key"), house_get(h, work, "attempt"),
        house_get(h, work, "epoch"));

    fake_lane_answer(house_lane(h, "calc", NULL), answer, strlen(answer));
}

static void an_instance_that_leaves_in_the_same_cycle_gets_nothing(void **state)
{
    struct house *h = house_open();
    const struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "]}");
    answers(h);
    arrives(
        h, "agent.deregister",
        house_text(h, "'instanceId':'%s','epoch':%llu", a->instance, (unsigned long long)a->epoch));
    house_cycle(h);
    assert_null(house_work(h, "calc", NULL));
    house_says(h, view(h, id), "status=running; steps.0.status=completed");
    house_join(h, "calc", 1); /* another instance does it, as if nothing had been */
    house_wait(h, 1000);
    house_says(h, house_work(h, "calc", NULL), "stepId=b");
    house_done(h, "calc", "'result':{'text':'y'}");
    house_says(h, view(h, id), "status=completed; steps.1.result=y");
    house_close(h);
}

static void an_instance_that_comes_again_in_the_same_cycle_gets_it_in_its_new_epoch(void **state)
{
    struct house *h = house_open();
    const struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "]}");
    answers(h);
    arrives(h, "agent.register",
            house_text(h,
                       "'card':{'agentId':'calc','name':'calc','version':'1'," DO "},"
                       "'capacity':1,'endpoint':'%s','protocol':[1],'instanceId':'%s',"
                       "'sessionKey':'0123456789abcdef1'",
                       a->url, a->instance));
    house_cycle(h);
    house_wait(h, 1000);
    house_says(h, house_work(h, "calc", NULL), "stepId=b");
    assert_true(strtoull(house_get(h, house_work(h, "calc", NULL), "epoch"), NULL, 10) > a->epoch);
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

static void what_is_called_off_while_its_instance_leaves_is_over(void **state)
{
    struct house *h = house_open();
    const struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    assert_non_null(house_work(h, "calc", NULL));
    arrives(h, "plan.cancel", house_text(h, "'planId':'%s'", id));
    arrives(
        h, "agent.deregister",
        house_text(h, "'instanceId':'%s','epoch':%llu", a->instance, (unsigned long long)a->epoch));
    house_cycle(h);
    house_wait(h, (msec)h->opt.cancel_grace_ms);
    house_says(h, view(h, id), "status=cancelled");
    house_close(h);
}

/* The step is due in the cycle of what arrives, and is not any more when that cycle ends. */
static void what_is_skipped_in_the_cycle_that_gives_it_is_not_sent(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "]}");
    answers(h);
    arrives(h, "plan.modify", house_text(h, "'planId':'%s','kind':'skip_steps','stepId':'b'", id));
    house_cycle(h);
    assert_null(house_work(h, "calc", NULL));
    house_says(h, view(h, id), "status=completed; steps.1.status=skipped");
    house_close(h);
}

/* ---- before anybody knows who they are ---- */

static void listeners_bound_what_strangers_hold(void **state)
{
    struct house *h = house_open();

    (void)state;
    for (int events = 0; events < 2; events++) {
        const struct link_limits *lim = fake_link_limits(h->link, events != 0);
        assert_int_equal(lim->recv_max, events != 0 ? LIMIT_EVENT_BYTES : LIMIT_STEP_BYTES);
        assert_int_equal(lim->peers.unfinished_bytes, 32 * 1024 * 1024);
        assert_int_equal(lim->peers.unfinished_ms, 15000);
        assert_in_range(lim->peers.peers, 1, 8192);
    }
    house_close(h);
}

/* ---- an agent that dials ---- */

static void lanes_that_an_agent_dials_are_named_to_it(void **state)
{
    struct house *h = house_open();
    const char *answer;

    (void)state;
    answer = house_ok(h, "agent.register",
                      "'card':{'agentId':'calc','name':'c','version':'1'," DO
                      "},'capacity':2,'dialIn':true,'protocol':[1],"
                      "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA',"
                      "'sessionKey':'0123456789abcdef'");
    house_says(h, answer, "lanes.#=3; lanes.0=~tcp://; pipes=-");
    assert_int_equal(fake_link_lanes(h->link), 3); /* all at once: it costs no dialer */
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(fake_link_lane(h->link, i)->dials);
        house_is(h, answer,
                 i == 0   ? "lanes.0"
                 : i == 1 ? "lanes.1"
                          : "lanes.2",
                 fake_link_lane(h->link, i)->url);
    }
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_prove_that_they_have_the_key_before_work_is_sent),
        cmocka_unit_test(who_does_not_prove_itself_gets_no_work),
        cmocka_unit_test(each_connection_is_proved_anew),
        cmocka_unit_test(where_credentials_are_required_an_instance_proves),
        cmocka_unit_test(only_the_process_that_was_asked_can_tell_that_it_never_ran),
        cmocka_unit_test(an_instance_that_leaves_in_the_same_cycle_gets_nothing),
        cmocka_unit_test(an_instance_that_comes_again_in_the_same_cycle_gets_it_in_its_new_epoch),
        cmocka_unit_test(what_is_called_off_while_its_instance_leaves_is_over),
        cmocka_unit_test(what_is_skipped_in_the_cycle_that_gives_it_is_not_sent),
        cmocka_unit_test(listeners_bound_what_strangers_hold),
        cmocka_unit_test(lanes_that_an_agent_dials_are_named_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
