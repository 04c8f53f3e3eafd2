/* Whose turn it is: plans at an agent, limits in flight, how long a step may wait. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/core/sched/test_core.h"

static struct rig *rig_limited(uint32_t all, uint32_t agent, uint32_t session)
{
    struct core_config config = rig_config();
    config.in_flight = all;
    config.in_flight_agent = agent;
    config.in_flight_session = session;
    config.sessions = 4;
    return rig_new_with(&config);
}

static bool runs(const struct rig *r, const char *step)
{
    return rig_status(r, step) == STEP_IN_PROGRESS;
}

/* "par: A0; A1; ..." */
static void submit_parallel(struct rig *r, char name, int n)
{
    char text[1024] = "par max=64:";
    for (int i = 0; i < n; i++) {
        char step[16];
        (void)snprintf(step, sizeof step, "%s %c%d", i == 0 ? "" : ";", name, i);
        (void)strncat(text, step, sizeof text - strlen(text) - 1);
    }
    rig_submit(r, text);
}

static void small_plans_start_within_one_round_of_a_big_one(void **state)
{
    struct rig *r = *state;
    char name[16];
    uint32_t started = 0;
    rig_up(r, "x", 1, 1);
    submit_parallel(r, 'B', 50);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "S%d", i);
        rig_submit(r, name);
    }
    assert_int_equal(core_agent_queued(rig_core(r), 0), 59);
    rig_ok(r, "B0");
    rig_ok(r, "B1"); /* the round: one of the big plan, then one of each other */
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "S%d", i);
        started += runs(r, name) ? 1 : 0;
        rig_ok(r, name);
    }
    assert_int_equal(started, 10);
    assert_true(runs(r, "B2"));
    assert_int_equal(core_agent_queued(rig_core(r), 0), 47);
}

static void the_plans_of_an_agent_take_turns_and_each_keeps_its_order(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "par: A; B; C");
    rig_submit(r, "par: D; E");
    rig_forget(r);
    rig_ok(r, "A");
    rig_ok(r, "B");
    rig_ok(r, "D");
    rig_ok(r, "C");
    RIG_TRACE(r, "[0] A#1 completed\n"
                 "[0] B#1 started i1\n"
                 "[0] B#1 handoff from supervisor\n"
                 "[0] dispatch B#1 i1/0\n"
                 "[0] B#1 completed\n"
                 "[0] D#1 started i1\n"
                 "[0] D#1 handoff from supervisor\n"
                 "[0] dispatch D#1 i1/0\n"
                 "[0] D#1 completed\n"
                 "[0] C#1 started i1\n"
                 "[0] C#1 handoff from supervisor\n"
                 "[0] dispatch C#1 i1/0\n"
                 "[0] C#1 completed\n"
                 "[0] plan completed/success\n"
                 "[0] run done\n"
                 "[0] E#1 started i1\n"
                 "[0] E#1 handoff from supervisor\n"
                 "[0] dispatch E#1 i1/0\n");
}

static void a_request_that_never_left_comes_before_all_others(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "par: A; B");
    rig_submit(r, "C");
    rig_submit(r, "D");
    rig_forget(r);
    rig_lost(r, "A", false);
    RIG_TRACE(r, "[0] A#1 assigned i1\n"
                 "[0] dispatch A#1 i1/0\n");
    rig_lane(r, 1, 0, false); /* ... also when its lane has gone with it */
    rig_lost(r, "A", false);
    rig_forget(r);
    rig_lane(r, 1, 0, true);
    assert_true(runs(r, "A"));
    rig_ok(r, "A"); /* it was its plan's turn, so the next is another's */
    assert_true(runs(r, "C"));
}

static void each_attempt_may_fail_to_leave_as_often(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=1)");
    for (int i = 0; i < 7; i++) {
        rig_lost(r, "A", false);
    }
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_until(r, 100);
    rig_lost(r, "A", false);
    assert_true(runs(r, "A"));
}

static void an_agent_has_no_more_in_flight_than_its_limit(void **state)
{
    struct rig *r = rig_limited(0, 2, 0);
    (void)state;
    rig_up(r, "x", 1, 4);
    rig_up(r, "y", 2, 4);
    rig_submit(r, "par: A; B; C; D@y");
    assert_true(runs(r, "A") && runs(r, "B") && runs(r, "D"));
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_ok(r, "D"); /* of another agent */
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_ok(r, "B");
    assert_true(runs(r, "C"));
    rig_free(r);
}

static void agents_take_turns_when_they_share_the_limit_of_all(void **state)
{
    struct rig *r = rig_limited(1, 0, 0);
    (void)state;
    rig_up(r, "x", 1, 8);
    rig_up(r, "y", 2, 8);
    submit_parallel(r, 'B', 20);
    rig_submit(r, "par: Y1@y; Y2@y");
    assert_true(runs(r, "B0"));
    rig_ok(r, "B0"); /* x has waited longer */
    assert_true(runs(r, "B1"));
    rig_ok(r, "B1");
    assert_true(runs(r, "Y1"));
    rig_ok(r, "Y1");
    assert_true(runs(r, "B2"));
    rig_ok(r, "B2");
    assert_true(runs(r, "Y2"));
    rig_free(r);
}

static void a_session_has_no_more_in_flight_than_its_limit(void **state)
{
    struct rig *r = rig_limited(0, 0, 1);
    (void)state;
    rig_up(r, "x", 1, 8);
    rig_up(r, "y", 2, 8);
    rig_submit(r, "par session=1: A; B@y");
    rig_submit(r, "par session=1: C");
    rig_submit(r, "par session=2: D; E");
    assert_true(runs(r, "A") && runs(r, "D"));
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_ok(r, "D");
    assert_true(runs(r, "E"));
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_ok(r, "A");
    assert_true(runs(r, "B"));
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_ok(r, "B");
    assert_true(runs(r, "C"));
    rig_free(r);
}

static void what_a_session_holds_back_is_served_before_what_came_later(void **state)
{
    struct rig *r = rig_limited(0, 0, 1);
    (void)state;
    rig_up(r, "x", 1, 8);
    rig_submit(r, "session=1: A; A2"); /* A2 becomes ready in the event that frees the place */
    rig_submit(r, "session=1: B");
    rig_submit(r, "session=1: C");
    rig_ok(r, "A");
    assert_true(runs(r, "B"));
    rig_ok(r, "B");
    assert_true(runs(r, "C"));
    rig_ok(r, "C");
    assert_true(runs(r, "A2"));
    rig_free(r);
}

static void a_place_that_the_first_cannot_use_goes_to_the_next(void **state)
{
    struct rig *r = rig_limited(0, 0, 1);
    (void)state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "session=1: A@y");
    rig_submit(r, "session=1: B@x");
    rig_submit(r, "session=1: C@y");
    rig_submit(r, "session=1: E@y");
    rig_submit(r, "session=2: D@x"); /* takes the lane that B wants */
    assert_true(runs(r, "D"));
    rig_ok(r, "A");
    assert_true(runs(r, "C"));
    rig_ok(r, "D"); /* the lane is free, the session is not */
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_ok(r, "C"); /* B has been waiting longer than E */
    assert_true(runs(r, "B"));
    assert_int_equal(rig_status(r, "E"), STEP_READY);
    rig_free(r);
}

static void whose_place_came_free_is_next_at_its_agent(void **state)
{
    struct rig *r = rig_limited(0, 0, 1);
    (void)state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "session=1: A@y");
    rig_submit(r, "session=1: B@x"); /* its turn came, and the session had no place */
    rig_submit(r, "session=2: D@x");
    rig_submit(r, "session=3: E@x");
    rig_ok(r, "A");
    rig_ok(r, "D");
    assert_true(runs(r, "B"));
    rig_ok(r, "B");
    assert_true(runs(r, "E"));
    rig_free(r);
}

static void a_request_that_never_left_keeps_its_place_in_the_session(void **state)
{
    struct rig *r = rig_limited(0, 0, 1);
    (void)state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "session=1: A");
    rig_submit(r, "session=1: B");
    rig_lost(r, "A", false);
    assert_true(runs(r, "A"));
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_free(r);
}

static void the_plan_hands_a_step_over_once_and_only_to_its_first_agent(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_up(r, "y", 2, 1);
    rig_submit(r, "fallbacks=1: A; B(alt=y)");
    rig_ok(r, "A"); /* from x to x */
    rig_forget(r);
    rig_fail(r, "B", CLASS_TOOL_NOT_FOUND, "no such tool");
    rig_until(r, 1);
    RIG_TRACE(r, "[0] B#1 fallback alternative_agent +0 TOOL_NOT_FOUND: no such tool\n"
                 "[0] B#1 handoff from x to y fallback\n"
                 "[0] B#2 assigned i2\n"
                 "[0] dispatch B#2 i2/0\n");
}

static void a_lost_reply_gives_its_place_back(void **state)
{
    struct rig *r = rig_limited(1, 1, 1);
    (void)state;
    rig_up(r, "x", 1, 2);
    rig_submit(r, "par: A; B");
    rig_lost(r, "A", true);
    assert_int_equal(rig_status(r, "A"), STEP_UNKNOWN);
    assert_true(runs(r, "B"));
    rig_state(r, "A", true); /* it runs after all: nobody is stopped for that */
    assert_true(runs(r, "A") && runs(r, "B"));
    rig_free(r);
}

static void a_step_that_waits_for_a_lane_too_long_fails(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A");
    rig_submit(r, "B(queue=300)");
    rig_forget(r);
    rig_until(r, 299);
    assert_int_equal(rig_status(r, "B"), STEP_READY);
    rig_until(r, 300);
    RIG_TRACE(r, "[300] B#0 failed TIMEOUT: Queue timeout after 300ms\n"
                 "[300] plan failed/failed step: Queue timeout after 300ms\n"
                 "[300] run done\n");
}

static void every_wait_for_a_lane_is_timed_anew(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=3 queue=300)");
    rig_until(r, 500);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_submit(r, "B");
    rig_until(r, 899); /* A waits since 600 */
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_until(r, 900);
    assert_int_equal(rig_status(r, "A"), STEP_FAILED);
}

static void the_limit_of_a_step_counts_while_it_waits(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    rig_submit(r, "A(retries=3 limit=1000)");
    rig_until(r, 500);
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_submit(r, "B");
    rig_forget(r);
    rig_until(r, 1000);
    RIG_TRACE(r, "[1000] A#1 failed TIMEOUT: Step limit of 1000ms reached\n"
                 "[1000] plan failed/failed step: Step limit of 1000ms reached\n"
                 "[1000] run done\n");
}

/* ---- on hold ---- */

static void a_pause_keeps_the_order_of_those_that_wait(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "par: A; B; C; D; E; F; G");
    rig_plan_event(r, CORE_PAUSE, run, "");
    assert_int_equal(core_agent_queued(rig_core(r), 0), 0);
    rig_ok(r, "A");
    rig_plan_event(r, CORE_RESUME, run, "");
    for (const char *name = "BCDEFG"; *name != '\0'; name++) {
        const char step[] = {*name, '\0'};
        assert_true(runs(r, step));
        rig_ok(r, step);
    }
}

static void what_is_parked_keeps_its_limit_and_loses_its_wait_for_a_lane(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 1);
    const uint64_t run = rig_submit(r, "A(retries=3 queue=300 limit=5000)");
    rig_fail(r, "A", CLASS_SERVICE_UNAVAILABLE, "down");
    rig_plan_event(r, CORE_PAUSE, run, "");
    rig_until(r, 4999);
    assert_int_equal(rig_status(r, "A"), STEP_BACKOFF);
    rig_forget(r);
    rig_until(r, 5000);
    RIG_TRACE(r, "[5000] A#1 failed TIMEOUT: Step limit of 5000ms reached\n"
                 "[5000] plan failed/failed step: Step limit of 5000ms reached\n"
                 "[5000] run done\n");
}

static void a_replan_is_asked_while_all_others_wait_but_not_in_a_pause(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 2);
    const uint64_t run =
        rig_submit(r, "par max=2 replan=p cooldown=10 replantime=9000: A(replan); B; C");
    rig_fail(r, "A", CLASS_PERMISSION_DENIED, "no");
    rig_until(r, 10);
    assert_int_equal(core_agent_queued(rig_core(r), 1), 1);
    rig_plan_event(r, CORE_PAUSE, run, "");
    assert_int_equal(core_agent_queued(rig_core(r), 1), 0);
    rig_up(r, "p", 2, 1);
    rig_plan_event(r, CORE_RESUME, run, "");
    assert_int_equal(core_agent_queued(rig_core(r), 1), 0);
    assert_int_equal(core_step_wait(rig_core(r), run, 0).kind, WAIT_NOTHING); /* it is asked */
    assert_int_equal(rig_status(r, "C"), STEP_READY);
}

static void questions_count_as_in_flight(void **state)
{
    struct rig *r = rig_limited(0, 0, 1);
    (void)state;
    rig_up(r, "x", 1, 4);
    rig_up(r, "v", 2, 4);
    rig_submit(r, "session=1: A(verify=v check=5000)");
    rig_submit(r, "session=1: B");
    rig_ok(r, "A"); /* B was there before the question */
    assert_true(runs(r, "B"));
    assert_int_equal(core_agent_queued(rig_core(r), 1), 1);
    rig_submit(r, "session=1: C");
    rig_ok(r, "B");
    assert_int_equal(core_agent_queued(rig_core(r), 1), 0);
    assert_int_equal(rig_status(r, "C"), STEP_READY);
    rig_verdict(r, "A", true, "");
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED);
    assert_true(runs(r, "C"));
    rig_free(r);
}

static void a_question_in_a_queue_is_answered_by_its_deadline(void **state)
{
    struct rig *r = *state;
    rig_up(r, "x", 1, 4);
    rig_submit(r, "A(verify=v check=700 open queue=100)");
    rig_ok(r, "A");
    rig_until(r, 699);
    assert_int_equal(rig_status(r, "A"), STEP_CHECKING);
    rig_until(r, 700);
    assert_int_equal(rig_status(r, "A"), STEP_COMPLETED); /* it was to be taken as yes */
}

/* ---- anything goes ---- */

enum { SEEDS = 40, PLANS = 12, EVENTS = 400 };

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % below;
}

/* Plans with random limits, estimates and timeouts; their steps are P<plan>S<step>. */
struct crowd {
    struct rig *r;
    uint64_t random;
    uint32_t plans;
    uint32_t steps[PLANS];
    uint64_t runs[PLANS];
    bool paused[PLANS];
};

static void submit_random(struct crowd *c)
{
    char text[1536];
    uint64_t *random = &c->random;
    const uint32_t n = 1 + draw(random, 8);
    int at = snprintf(text, sizeof text, "par max=%u session=%u budget=%u:", 1 + draw(random, 6),
                      draw(random, 4), draw(random, 2) * 400);
    for (uint32_t i = 0; i < n; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s P%uS%u@%c(continue retries=2 est=%u queue=%u limit=%u timeout=%u%s)",
                       i == 0 ? "" : ";", c->plans, i, 'x' + (int)draw(random, 3),
                       draw(random, 3) * 40, draw(random, 4) == 0 ? 700 : 0,
                       draw(random, 4) == 0 ? 2500 : 0, draw(random, 3) == 0 ? 400 : 0,
                       draw(random, 3) == 0 ? " verify=z check=600 open" : "");
    }
    c->steps[c->plans] = n;
    c->runs[c->plans++] = rig_submit(c->r, text);
}

/* Not one whose request never left and that waits for a lane again. */
static bool is_out(struct rig *r, const char *step)
{
    const struct core_event about = rig_about(r, CORE_RESULT, step);
    return runs(r, step) && core_step_wait(rig_core(r), about.run, about.step).kind == WAIT_NOTHING;
}

/* Registers all anew: attempts that were called off or timed out give their lanes back. */
static void all_up(struct rig *r)
{
    rig_up(r, "x", 1, 2);
    rig_up(r, "y", 2, 1);
    rig_up(r, "z", 3, 3);
}

/* The n-th step that an instance has; how many there are. */
static uint32_t running(const struct crowd *c, uint32_t n, char *name, size_t size)
{
    uint32_t found = 0;
    for (uint32_t p = 0; p < c->plans; p++) {
        for (uint32_t s = 0; s < c->steps[p]; s++) {
            char at[32];
            (void)snprintf(at, sizeof at, "P%uS%u", p, s);
            if (is_out(c->r, at) && found++ == n) {
                (void)snprintf(name, size, "%s", at);
            }
        }
    }
    return found;
}

static void answer(struct crowd *c, const char *step)
{
    if (rig_status(c->r, step) == STEP_CHECKING) {
        rig_verdict(c->r, step, draw(&c->random, 3) > 0, "not enough");
    } else {
        rig_ok(c->r, step);
    }
}

static void toggle_pause(struct crowd *c, uint32_t plan)
{
    rig_plan_event(c->r, c->paused[plan] ? CORE_RESUME : CORE_PAUSE, c->runs[plan], "");
    c->paused[plan] = !c->paused[plan];
}

static void one_event(struct crowd *c)
{
    char name[32];
    const uint32_t what = draw(&c->random, 10);
    const uint32_t n = running(c, 0, name, sizeof name);
    if (c->plans > 0 && draw(&c->random, 16) == 0) {
        toggle_pause(c, draw(&c->random, c->plans));
    }
    if (what == 0 || n == 0) {
        rig_until(c->r, rig_now(c->r) + 1 + draw(&c->random, 300));
        if (draw(&c->random, 4) == 0) {
            all_up(c->r);
        }
        return;
    }
    (void)running(c, draw(&c->random, n), name, sizeof name);
    if (what < 6) {
        answer(c, name);
    } else if (what < 8) {
        rig_fail(c->r, name, CLASS_SERVICE_UNAVAILABLE, "down");
    } else {
        rig_lost(c->r, name, what == 8);
    }
}

static void one_seed(uint64_t seed)
{
    struct crowd c = {.random = seed};
    char name[32];
    const uint32_t all = draw(&c.random, 5);
    const uint32_t agent = draw(&c.random, 3);
    c.r = rig_limited(all, agent, draw(&c.random, 3));
    print_message("seed %u\n", (unsigned)seed);
    all_up(c.r);
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (c.plans < PLANS && draw(&c.random, 4) == 0) {
            submit_random(&c);
        }
        one_event(&c);
        rig_forget(c.r);
    }
    for (uint32_t i = 0; i < c.plans; i++) {
        if (c.paused[i]) {
            toggle_pause(&c, i);
        }
    }
    /* Nothing is forgotten: when all that is out answers, everything comes to its end. */
    for (uint32_t i = 0; core_runs_open(rig_core(c.r)) > 0; i++) {
        assert_true(i < 500);
        if (running(&c, 0, name, sizeof name) > 0) {
            answer(&c, name);
        } else {
            rig_until(c.r, rig_now(c.r) + 1000);
            all_up(c.r);
        }
        rig_forget(c.r);
    }
    rig_free(c.r);
}

static void whatever_happens_counts_and_rings_hold_and_all_plans_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        one_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(small_plans_start_within_one_round_of_a_big_one),
        CORE_TEST(the_plans_of_an_agent_take_turns_and_each_keeps_its_order),
        CORE_TEST(a_request_that_never_left_comes_before_all_others),
        CORE_TEST(each_attempt_may_fail_to_leave_as_often),
        cmocka_unit_test(an_agent_has_no_more_in_flight_than_its_limit),
        cmocka_unit_test(agents_take_turns_when_they_share_the_limit_of_all),
        cmocka_unit_test(a_session_has_no_more_in_flight_than_its_limit),
        cmocka_unit_test(what_a_session_holds_back_is_served_before_what_came_later),
        cmocka_unit_test(a_place_that_the_first_cannot_use_goes_to_the_next),
        cmocka_unit_test(whose_place_came_free_is_next_at_its_agent),
        cmocka_unit_test(a_request_that_never_left_keeps_its_place_in_the_session),
        CORE_TEST(the_plan_hands_a_step_over_once_and_only_to_its_first_agent),
        cmocka_unit_test(a_lost_reply_gives_its_place_back),
        CORE_TEST(a_step_that_waits_for_a_lane_too_long_fails),
        CORE_TEST(every_wait_for_a_lane_is_timed_anew),
        CORE_TEST(the_limit_of_a_step_counts_while_it_waits),
        CORE_TEST(a_pause_keeps_the_order_of_those_that_wait),
        CORE_TEST(what_is_parked_keeps_its_limit_and_loses_its_wait_for_a_lane),
        CORE_TEST(a_replan_is_asked_while_all_others_wait_but_not_in_a_pause),
        cmocka_unit_test(questions_count_as_in_flight),
        CORE_TEST(a_question_in_a_queue_is_answered_by_its_deadline),
        cmocka_unit_test(whatever_happens_counts_and_rings_hold_and_all_plans_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
