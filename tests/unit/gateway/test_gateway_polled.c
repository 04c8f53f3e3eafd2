/* Agents over HTTP: steps that are asked for, their results, and what the daemon is told. */
#include "tests/unit/gateway/polled_world.h"

/* ---- steps ---- */

static void a_step_is_given_once_without_what_is_between_gateway_and_daemon(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    asks(0, 7, 10, "step.execute",
         STEP("k", 1, ",'deadlineMs':5000,'token':'t','sessionKey':'x','parameters':{'p':[1]}"));
    assert_int_equal(lanes.answers, 0); /* until there is a result */
    rig.s.now += 200;
    p->now = rig.s.now;
    h = poll_now("");
    expect_out(h, 200,
               "{'steps':[{'planId':'P','revision':1,'stepId':'s','stepIndex':0,'stepCount':1,"
               "'key':'k','attempt':1,'epoch':3,'deadlineMs':4800,'parameters':{'p':[1]}}],"
               "'cancel':[],'drain':false}");
    taken(h, false);
    expect_out(poll_now("{'inflight':[{'key':'k','attempt':1}]}"), 200,
               "{'steps':[],'cancel':[],'drain':false}");
}

static void a_time_that_is_over_is_a_millisecond_and_none_stays_none(void **state)
{
    (void)state;
    (void)registered(2);
    step(10, "late");
    asks(1, 7, 11, "step.execute", STEP("free", 1, ",'deadlineMs':0"));
    p->now = rig.s.now += 5000;
    {
        const char *out = out_of(ask("POST", AT "/poll?waitMs=0&max=2", ""));
        assert_non_null(strstr(out, "\"deadlineMs\":1}"));
        assert_non_null(strstr(out, "\"deadlineMs\":0}"));
    }
}

static void a_poll_takes_as_many_steps_as_it_says(void **state)
{
    struct http *h;
    char key[8];

    (void)state;
    (void)registered(4);
    for (uint64_t i = 0; i < 20; i++) {
        (void)snprintf(key, sizeof key, "k%u", (unsigned)i);
        step(10 + i, key);
    }
    h = ask("POST", AT "/poll?waitMs=0", "");
    assert_non_null(strstr(out_of(h), "\"k0\""));
    assert_null(strstr(out_of(h), "\"k1\"")); /* one */
    h = ask("POST", AT "/poll?waitMs=0&max=2", "");
    assert_non_null(strstr(out_of(h), "\"k2\""));
    assert_null(strstr(out_of(h), "\"k3\""));
    h = ask("POST", AT "/poll?waitMs=0&max=0", "");
    assert_non_null(strstr(out_of(h), "\"k3\""));
    assert_null(strstr(out_of(h), "\"k4\""));
    h = ask("POST", AT "/poll?waitMs=0&max=16", "");
    assert_non_null(strstr(out_of(h), "\"k19\""));
    h = ask("POST", AT "/poll?max=17", "");
    assert_int_equal(h->status, 400);
    assert_string_equal(rig.field, "max");
    assert_string_equal(rig.message, "max: expected a number up to 16");
    h = ask("POST", AT "/poll?waitMs=60001", "");
    assert_int_equal(h->status, 400);
    assert_string_equal(rig.field, "waitMs");
    h = ask("POST", AT "/poll?waitMs=60000", "");
    assert_int_equal(h->state, HTTP_WAITS);
}

static void a_poll_waits_for_a_step_or_until_its_time_is_over(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = ask("POST", AT "/poll", ""); /* half a minute */
    assert_int_equal(h->state, HTTP_WAITS);
    run(29999);
    assert_int_equal(h->state, HTTP_WAITS);
    run(1);
    expect_out(h, 200, "{'steps':[],'cancel':[],'drain':false}");
    taken(h, false);
    h = ask("POST", AT "/poll?waitMs=500", "");
    step(10, "k");
    assert_int_equal(h->state, HTTP_READY);
    assert_non_null(strstr(out_of(h), "\"k\""));
}

static void a_new_poll_takes_the_place_of_the_oldest_when_there_are_as_many_as_steps(void **state)
{
    struct http *h[3];

    (void)state;
    (void)registered(2);
    for (int i = 0; i < 3; i++) {
        h[i] = ask("POST", AT "/poll", "");
    }
    expect_out(h[0], 200, "{'steps':[],'cancel':[],'drain':false}");
    assert_int_equal(h[1]->state, HTTP_WAITS);
    assert_int_equal(h[2]->state, HTTP_WAITS);
    step(10, "k");
    assert_int_equal(h[1]->state, HTTP_READY); /* the one that has waited longest */
    assert_int_equal(h[2]->state, HTTP_WAITS);
}

static void a_step_whose_answer_broke_off_is_given_again(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(2);
    step(10, "k");
    h = poll_now("");
    taken(h, true);
    h = poll_now("");
    assert_non_null(strstr(out_of(h), "\"k\""));
    taken(h, false);
    assert_null(strstr(out_of(poll_now("")), "\"k\""));
}

static void who_has_hung_up_gets_no_step_and_is_no_sign_of_life(void **state)
{
    struct http *gone;
    struct http *h;
    struct instance *in = registered(2);

    (void)state;
    gone = ask("POST", AT "/poll", "");
    h = ask("POST", AT "/poll", "");
    hang_up(gone);
    step(10, "k");
    expect_out(gone, 200, "{'steps':[],'cancel':[],'drain':false}");
    assert_non_null(strstr(out_of(h), "\"k\""));
    h = ask("POST", AT "/poll?waitMs=60000", "");
    run(1000);
    assert_int_equal(in->contact, rig.s.now); /* a poll that waits is one */
    hang_up(h);
    run(999);
    assert_int_equal(h->state, HTTP_WAITS);
    run(1); /* it is looked at each second */
    assert_int_equal(h->state, HTTP_READY);
    assert_int_equal(in->contact, rig.s.now - 1000);
}

static void what_an_agent_does_not_have_is_given_again_or_lost(void **state)
{
    const struct instance *in = registered(1);

    (void)state;
    step(10, "k");
    taken(poll_now(""), false);
    taken(poll_now("{'inflight':[{'key':'k','attempt':2}]}"), false); /* another attempt */
    assert_non_null(strstr(
        out_of(requests[requests_n - 1] != NULL ? &requests[requests_n - 1]->h : NULL), "\"k\""));
    taken(poll_now("{'inflight':[{'key':'k'}]}"), false); /* each attempt of the key */
    assert_null(strstr(out_of(&requests[requests_n - 1]->h), "\"stepId\""));
    assert_int_equal(in->works->state, WORK_OUT);
    taken(poll_now(""), false); /* who does one thing at a time does nothing while it asks */
    assert_non_null(strstr(out_of(&requests[requests_n - 1]->h), "\"stepId\""));
    taken(poll_now("{'inflight':7}"), false);
    assert_int_equal(requests[requests_n - 1]->h.status, 400);
    assert_string_equal(rig.field, "inflight");
}

static void
who_does_several_things_keeps_them_until_it_says_that_it_does_not_have_them(void **state)
{
    const struct instance *in = registered(2);

    (void)state;
    step(10, "k");
    taken(poll_now(""), false);
    taken(poll_now(""), false);
    assert_int_equal(in->works->state, WORK_OUT);
    taken(poll_now("{}"), false);
    assert_int_equal(in->works->state, WORK_OUT);
    taken(poll_now("{'inflight':[]}"), false);
    assert_non_null(strstr(out_of(&requests[requests_n - 1]->h), "\"stepId\""));
}

/* ---- results ---- */

static struct http *result(const char *key)
{
    char body[TEXT_BYTES];

    (void)snprintf(body, sizeof body, "{'key':'%s','attempt':1,'result':{'text':'done'}}", key);
    return ask("POST", AT "/result", body);
}

static void a_result_goes_over_the_lane_and_to_the_daemon_whose_receipt_is_the_answer(void **state)
{
    const struct instance *in = registered(1);
    struct http *h;

    (void)state;
    step(10, "k");
    taken(poll_now(""), false);
    h = result("k");
    assert_int_equal(h->state, HTTP_WAITS);
    expect_answer(10, "'type':'step.result'");
    expect_answer(10, "'id':'q10'");
    expect_answer(10, "'outcome':'completed','result':{'text':'done'");
    assert_true(rig.spec.reads);
    assert_int_equal(rig.spec.within_ms, 30000);
    assert_int_equal(rig.spec.answer, MSG_step_result_ok);
    assert_non_null(strstr(rig.fields, "\"epoch\":3"));
    assert_non_null(strstr(rig.fields, "\"instanceId\":\"" ID "\""));
    rig_answer_to(MSG_step_result, "{'accepted':false,'reason':'over the lane already'}");
    expect_out(h, 200, "{'accepted':true}");
    assert_null(in->works);
    assert_int_equal(lanes.answers, 1);
}

static void a_result_that_nobody_waits_for_is_what_the_daemon_says(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    h = result("old");
    rig_answer_to(MSG_step_result, "{'accepted':false,'reason':'late'}");
    expect_out(h, 200, "{'accepted':false,'reason':'late'}");
    h = result("old");
    rig_answer_to(MSG_step_result, "{'accepted':true}");
    expect_out(h, 200, "{'accepted':true}");
    h = result("old");
    rig_refuse_to(MSG_step_result, BT_INVALID);
    assert_int_equal(h->status, 400);
    assert_int_equal(lanes.answers, 0);
    h = ask("POST", AT "/result", "{'key':'k'}");
    assert_int_equal(h->status, 400);
    assert_string_equal(rig.field, "attempt");
}

static void a_result_after_a_cancel_counts_as_the_daemon_says(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(1);
    step(10, "k");
    taken(poll_now(""), false);
    asks(1, 7, 11, "step.cancel", "'key':'k','attempt':1");
    h = result("k");
    expect_answer(10, "'step.result'");
    rig_answer_to(MSG_step_result, "{'accepted':false,'reason':'cancelled'}");
    expect_out(h, 200, "{'accepted':false,'reason':'cancelled'}");
}

static void a_receipt_that_did_not_come_is_asked_for_again(void **state)
{
    static const enum bt_code passing[] = {BT_UNAVAILABLE, BT_TIMEOUT, BT_BUSY};
    const struct instance *in = registered(1);
    struct http *h = result("k");

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        rig_refuse_to(MSG_step_result, passing[i]);
        assert_int_equal(h->state, HTTP_WAITS);
        assert_true(in->registered);
        assert_int_equal(rig_open(MSG_step_result), 0);
        run(100);
        assert_int_equal(rig_open(MSG_step_result), 1);
    }
    rig_answer_to(MSG_step_result, "{'accepted':true}");
    expect_out(h, 200, "{'accepted':true}");
}

static void a_daemon_that_does_not_know_the_instance_gets_it_and_then_the_result(void **state)
{
    static const enum bt_code codes[] = {BT_NOT_FOUND, BT_CONFLICT};
    const struct instance *in = registered(1);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct http *h = result("k");
        rig_refuse_to(MSG_step_result, codes[i]);
        assert_false(in->registered);
        run(1);
        assert_int_equal(rig_open(MSG_step_result), 0);
        rig_answer_to(MSG_agent_register, REGISTERED(4, "'tcp://l2'"));
        assert_int_equal(rig_open(MSG_step_result), 1);
        rig_answer_to(MSG_step_result, "{'accepted':true}");
        expect_out(h, 200, "{'accepted':true}");
    }
}

static void a_sender_waits_half_a_minute_and_the_result_is_kept_for_ten_minutes(void **state)
{
    const struct instance *in = registered(1);
    struct http *h = result("k");

    (void)state;
    run(29999);
    assert_int_equal(h->state, HTTP_WAITS);
    run(1);
    assert_int_equal(h->state, HTTP_READY);
    assert_int_equal(h->status, 503);
    assert_int_equal(rig.code, BT_UNAVAILABLE);
    assert_int_equal(rig.retry_after_ms, 1000);
    assert_null(h->own);
    run(10 * 60 * 1000 - 30000);
    assert_non_null(in->works);
    run(1);
    assert_int_equal(rig_open(MSG_step_result), 0);
}

static void a_result_that_is_sent_again_takes_the_place_of_the_first(void **state)
{
    struct http *first;
    struct http *second;

    (void)state;
    (void)registered(1);
    first = result("k");
    second = result("k");
    assert_int_equal(first->status, 409);
    assert_int_equal(first->state, HTTP_READY);
    assert_null(first->own);
    assert_int_equal(second->state, HTTP_WAITS);
    taken(second, true); /* its client is gone: nobody is answered */
    rig_answer_to(MSG_step_result, "{'accepted':true}");
    assert_int_equal(second->state, HTTP_ANSWERED);
}

static void a_step_that_is_asked_for_again_has_its_result(void **state)
{
    (void)state;
    (void)registered(1);
    step(10, "k");
    step(11, "k"); /* on another connection: the first one is refused */
    expect_answer(10, "'CONFLICT'");
    taken(poll_now(""), false);
    (void)result("k");
    expect_answer(11, "'step.result'");
    asks(1, 7, 12, "step.execute", STEP("k", 1, ""));
    expect_answer(12, "'step.result'");
}

static void an_instance_has_room_for_so_many_attempts(void **state)
{
    const struct instance *in = registered(1);
    char key[8];

    (void)state;
    for (unsigned i = 0; i <= WORKS_MAX; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(lanes.answers, 0);
        step(10 + i, key);
    }
    expect_answer(10 + WORKS_MAX, "'BUSY'");
    assert_int_equal(result("more")->status, 503);
    assert_int_equal(rig.code, BT_BUSY);
    assert_int_equal(in->works_n, WORKS_MAX);
    p->bytes += POLLED_BYTES_MAX - 200; /* all instances together */
    work_remove(in->works);
    step(999, "last");
    expect_answer(999, "'BUSY'");
    p->bytes -= POLLED_BYTES_MAX - 200;
    step(999, "last");
    assert_int_equal(in->works_n, WORKS_MAX);
}

/* ---- cancels and questions ---- */

#define KEY "'key':'k','attempt':1"

static void an_attempt_that_nobody_has_is_cancelled_without_the_agent(void **state)
{
    const struct instance *in = registered(1);

    (void)state;
    step(10, "k");
    asks(1, 7, 11, "step.cancel", KEY ",'reason':'enough','graceMs':50");
    expect_answer(11, "'state':'done'");
    expect_answer(11, "'CANCELLED'");
    assert_int_equal(lanes.answers, 2); /* the step, and the cancel */
    assert_null(in->works);
}

static void an_order_to_cancel_reaches_the_agent_until_it_is_over(void **state)
{
    struct http *h;

    (void)state;
    (void)registered(2);
    step(10, "k");
    taken(poll_now(""), false);
    h = ask("POST", AT "/poll", "");
    asks(1, 7, 11, "step.cancel", KEY ",'reason':'enough','graceMs':50");
    expect_answer(11, "'state':'running'");
    expect_out(h, 200,
               "{'steps':[],'cancel':[{'key':'k','attempt':1,'reason':'enough','graceMs':50}],"
               "'drain':false}");
    asks(1, 7, 12, "step.cancel", KEY ",'reason':'other','graceMs':9"); /* the first one counts */
    h = ask("POST", AT "/heartbeat", "{'inflight':[{" KEY "}]}");
    expect_out(h, 200,
               "{'leaseMs':30000,'cancel':[{'key':'k','attempt':1,'reason':'enough',"
               "'graceMs':50}],'drain':false}");
    h = ask("POST", AT "/poll", "{'inflight':[{" KEY "}]}");
    assert_int_equal(h->state, HTTP_WAITS);              /* it is told */
    h = ask("POST", AT "/heartbeat", "{'inflight':[]}"); /* it has left it */
    expect_out(h, 200, "{'leaseMs':30000,'cancel':[],'drain':false}");
    expect_answer(10, "'CANCELLED'");
}

static void what_became_of_an_attempt_is_said_when_it_is_asked_for(void **state)
{
    struct instance *in = registered(2);

    (void)state;
    asks(1, 7, 11, "step.query", KEY);
    expect_answer(11, "'key':'k','state':'unknown'");
    step(10, "k");
    asks(1, 7, 12, "step.query", KEY);
    expect_answer(12, "'state':'running'");
    taken(poll_now(""), false);
    asks(1, 7, 13, "step.query", "'key':'k'");
    expect_answer(13, "'state':'running'");
    (void)result("k");
    asks(1, 7, 14, "step.query", KEY);
    expect_answer(14, "'state':'done'");
    expect_answer(14, "'text':'done'");
    in->returned = true; /* another gateway may have given it: who has it will say so */
    asks(1, 7, 15, "step.query", "'key':'q','attempt':1");
    expect_answer(15, "'state':'running'");
    (void)ask("POST", AT "/heartbeat", "{'inflight':[]}");
    asks(1, 7, 16, "step.query", "'key':'q','attempt':1");
    expect_answer(16, "'state':'forgotten'");
    asks(1, 7, 17, "step.query", "'key':'q','attempt':1");
    expect_answer(17, "'state':'unknown'"); /* it has been told */
}

static void a_lost_attempt_that_comes_again_is_given(void **state)
{
    struct instance *in = registered(2);

    (void)state;
    in->returned = true;
    asks(1, 7, 11, "step.query", KEY);
    (void)ask("POST", AT "/heartbeat", "{'inflight':[]}");
    assert_int_equal(in->works->state, WORK_LOST);
    step(12, "k");
    assert_non_null(strstr(out_of(poll_now("")), "\"k\""));
}

static void a_lost_attempt_that_the_agent_has_after_all_is_out(void **state)
{
    struct instance *in = registered(2);

    (void)state;
    in->returned = true;
    asks(1, 7, 11, "step.query", KEY);
    (void)ask("POST", AT "/heartbeat", "{'inflight':[]}");
    (void)ask("POST", AT "/heartbeat", "{'inflight':[{" KEY "},{'key':'new','attempt':2}]}");
    assert_int_equal(in->works->state, WORK_OUT);
    assert_int_equal(in->works_n, 2); /* what it says that it has is known from now on */
    assert_string_equal(in->works->next->key, "new");
}

static void a_lost_attempt_is_forgotten_after_ten_minutes(void **state)
{
    struct instance *in = registered(2);

    (void)state;
    in->returned = true;
    asks(1, 7, 11, "step.query", KEY);
    (void)ask("POST", AT "/heartbeat", "{'inflight':[]}");
    for (int i = 0; i < 60; i++) {
        (void)ask("POST", AT "/heartbeat", "");
        run(10000);
    }
    assert_int_equal(in->works_n, 1);
    run(1);
    assert_int_equal(in->works_n, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_given_once_without_what_is_between_gateway_and_daemon),
        TEST(a_time_that_is_over_is_a_millisecond_and_none_stays_none),
        TEST(a_poll_takes_as_many_steps_as_it_says),
        TEST(a_poll_waits_for_a_step_or_until_its_time_is_over),
        TEST(a_new_poll_takes_the_place_of_the_oldest_when_there_are_as_many_as_steps),
        TEST(a_step_whose_answer_broke_off_is_given_again),
        TEST(who_has_hung_up_gets_no_step_and_is_no_sign_of_life),
        TEST(what_an_agent_does_not_have_is_given_again_or_lost),
        TEST(who_does_several_things_keeps_them_until_it_says_that_it_does_not_have_them),
        TEST(a_result_goes_over_the_lane_and_to_the_daemon_whose_receipt_is_the_answer),
        TEST(a_result_that_nobody_waits_for_is_what_the_daemon_says),
        TEST(a_result_after_a_cancel_counts_as_the_daemon_says),
        TEST(a_receipt_that_did_not_come_is_asked_for_again),
        TEST(a_daemon_that_does_not_know_the_instance_gets_it_and_then_the_result),
        TEST(a_sender_waits_half_a_minute_and_the_result_is_kept_for_ten_minutes),
        TEST(a_result_that_is_sent_again_takes_the_place_of_the_first),
        TEST(a_step_that_is_asked_for_again_has_its_result),
        TEST(an_instance_has_room_for_so_many_attempts),
        TEST(an_attempt_that_nobody_has_is_cancelled_without_the_agent),
        TEST(an_order_to_cancel_reaches_the_agent_until_it_is_over),
        TEST(what_became_of_an_attempt_is_said_when_it_is_asked_for),
        TEST(a_lost_attempt_that_comes_again_is_given),
        TEST(a_lost_attempt_that_the_agent_has_after_all_is_out),
        TEST(a_lost_attempt_is_forgotten_after_ten_minutes),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
