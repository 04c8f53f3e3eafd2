/* Ends of connections and of processes: who does not answer a greeting, who does not stop, whose
 * registration has ended, and time that nobody had. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/dispatch/lanes.h"
#include "tests/support/house/house.h"

#define INSTANCE "0190F3C2-7A1B-7C3D-9E4F-0000000000AA"
#define ONE "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t'}]}"

/* Of an agent that the house does not play: its lanes answer nothing. Returns its epoch. */
static unsigned long long register_mute(struct house *h, const char *where)
{
    const char *answer = house_ok(
        h, "agent.register",
        "'card':{'agentId':'calc','name':'c','version':'1','skills':[{'id':'do','description':"
        "'D'}]},'capacity':1,%s,'protocol':[1],'instanceId':'" INSTANCE "',"
        "'sessionKey':'0123456789abcdef'",
        where);

    return strtoull(house_get(h, answer, "epoch"), NULL, 10);
}

static const char *beat(struct house *h, unsigned long long epoch)
{
    return house_ask(h, "agent.heartbeat", "'instanceId':'" INSTANCE "','epoch':%llu", epoch);
}

static void passes(struct house *h, msec ms)
{
    h->now += ms;
    h->wall += ms;
}

static void connect_all(struct house *h)
{
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        if (!fake_link_lane(h->link, i)->retired && !fake_link_lane(h->link, i)->up) {
            fake_lane_up(fake_link_lane(h->link, i));
        }
    }
    house_cycle_once(h);
}

static void who_does_not_answer_a_greeting_in_2_s_loses_the_place(void **state)
{
    struct house *h = house_open();
    const unsigned long long epoch = register_mute(h, "'dialIn':true");

    (void)state;
    connect_all(h);
    assert_int_equal(fake_link_lanes(h->link), 2);
    passes(h, LANES_GREETING_MS - 1);
    house_is(h, beat(h, epoch), "ok", "true");
    for (uint32_t i = 0; i < 2; i++) {
        assert_non_null(strstr(buf_cstr(&fake_link_lane(h->link, i)->sent), "hello"));
        assert_int_equal(fake_link_lane(h->link, i)->hung_up, 0);
    }
    passes(h, 1);
    house_is(h, beat(h, epoch), "ok", "true");
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(fake_link_lane(h->link, i)->hung_up, 1);
    }
    house_close(h);
}

/* It was dialed: nobody else can have its place. */
static void an_agent_that_was_dialed_keeps_its_connection(void **state)
{
    struct house *h = house_open();
    const unsigned long long epoch = register_mute(h, "'endpoint':'tcp://127.0.0.1:9'");

    (void)state;
    connect_all(h);
    passes(h, LANES_GREETING_MS);
    (void)beat(h, epoch);
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        assert_int_equal(fake_link_lane(h->link, i)->hung_up, 0);
    }
    house_close(h);
}

static void garbage_for_a_greeting_is_of_somebody_else(void **state)
{
    struct house *h = house_open();
    const unsigned long long epoch = register_mute(h, "'dialIn':true");

    (void)state;
    for (uint32_t i = 1; i <= 2 * LANES_UNREADABLE_MAX; i++) {
        connect_all(h);
        fake_lane_answer(fake_link_lane(h->link, 0), "\xc1garbage", 8);
        house_cycle_once(h);
        assert_int_equal(fake_link_lane(h->link, 0)->hung_up, i);
        fake_lane_down(fake_link_lane(h->link, 0), true);
        house_cycle_once(h);
    }
    house_is(h, beat(h, epoch), "ok", "true"); /* the instance is not the one to blame */
    house_close(h);
}

/* ---- processes ---- */

static void a_process_that_does_not_stop_in_its_grace_is_killed(void **state)
{
    (void)state;
    for (int ours = 0; ours < 2; ours++) {
        struct house *h = house_open();
        const struct house_agent *calc;
        const char *id;

        h->ours = ours == 1;
        calc = house_join(h, "calc", 1);
        id = house_submit(h, ONE);
        (void)house_work(h, "calc", NULL);
        (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
        house_wait(h, (msec)h->opt.cancel_grace_ms - 1);
        assert_string_equal(h->told, "");
        house_wait(h, 1);
        assert_string_equal(h->told, ours == 1 ? house_text(h, "kill %s; ", calc->instance) : "");
        house_close(h);
    }
}

static void of_an_instance_whose_lease_is_over_the_process_is_told(void **state)
{
    struct house *h = house_open();
    struct house_agent *calc = house_join(h, "calc", 1);

    (void)state;
    calc->silent = true;
    house_wait(h, HOUSE_LEASE_MS - 1);
    assert_string_equal(h->told, "");
    house_wait(h, 1);
    assert_string_equal(h->told, house_text(h, "lost %s; ", calc->instance));
    house_close(h);
}

/* The process is there, and has another epoch now. */
static void an_instance_that_comes_again_is_not_lost(void **state)
{
    struct house *h = house_open();
    const struct house_agent *calc = house_join(h, "calc", 1);

    (void)state;
    (void)house_join_instance(h, "calc", calc->instance, 1);
    house_cycle(h);
    assert_string_equal(h->told, "");
    house_close(h);
}

/* ---- time that nobody had ---- */

/* After how many milliseconds an instance that cannot be reached is told so, when nobody had time
 * for so many of them. */
static msec unreachable_after(msec excused)
{
    struct house *h = house_open();
    const unsigned long long epoch = register_mute(h, "'endpoint':'tcp://127.0.0.1:9'");
    msec after = 0;

    passes(h, 100);
    house_cycle_once(h);
    dispatch_excuse(h->engine, excused);
    for (after = 100; after < 60000; after += 100) {
        const char *answer = beat(h, epoch);
        if (strstr(answer, "GONE") != NULL) {
            house_has(h, answer, "error.message", "no lane could be opened to tcp://127.0.0.1:9");
            break;
        }
        passes(h, 100);
        house_cycle_once(h);
    }
    house_close(h);
    return after;
}

static void time_that_the_daemon_did_not_have_is_not_counted(void **state)
{
    const msec usual = unreachable_after(0);

    (void)state;
    assert_true(usual < 60000);
    assert_int_equal(unreachable_after(99), usual);
    assert_int_equal(unreachable_after(100), usual + 100);
    assert_int_equal(unreachable_after(5000), usual + 100); /* it has existed for 100 ms */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_answer_a_greeting_in_2_s_loses_the_place),
        cmocka_unit_test(an_agent_that_was_dialed_keeps_its_connection),
        cmocka_unit_test(garbage_for_a_greeting_is_of_somebody_else),
        cmocka_unit_test(a_process_that_does_not_stop_in_its_grace_is_killed),
        cmocka_unit_test(of_an_instance_whose_lease_is_over_the_process_is_told),
        cmocka_unit_test(an_instance_that_comes_again_is_not_lost),
        cmocka_unit_test(time_that_the_daemon_did_not_have_is_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
