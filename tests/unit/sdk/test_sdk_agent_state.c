/* The rules of agents/sdk/agent_state.h, one test each; time is virtual. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "agents/sdk/agent_state.h"

struct world {
    struct agent_state s;
    struct agent_state_actions out;
    msec now;
};

static struct world w;

static void feed(struct agent_state_event ev)
{
    ev.now = w.now;
    w.out.n = 0;
    agent_state_handle(&w.s, &ev, &w.out);
}

static const struct agent_state_action *did(enum agent_state_action_type type)
{
    for (uint32_t i = 0; i < w.out.n; i++) {
        if (w.out.at[i].type == type) {
            return &w.out.at[i];
        }
    }
    return NULL;
}

/* Advances the clock to the next deadline and sends a tick. */
static void pass_to_deadline(void)
{
    msec at = agent_state_deadline(&w.s);
    assert_true(at != MSEC_NEVER);
    w.now = at > w.now ? at : w.now;
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
}

static void registered(uint64_t epoch)
{
    feed((struct agent_state_event){
        .type = AGENT_STATE_REGISTERED, .epoch = epoch, .lease_ms = 3000, .heartbeat_ms = 1000});
}

static int set_up(void **state)
{
    (void)state;
    w.now = 1000;
    agent_state_init(&w.s, 2);
    feed((struct agent_state_event){.type = AGENT_STATE_START});
    assert_non_null(did(DO_DIAL));
    feed((struct agent_state_event){.type = AGENT_STATE_UP});
    assert_non_null(did(DO_REGISTER));
    registered(7);
    return 0;
}

static void execute(const char *key, uint32_t attempt, uint64_t epoch, uint64_t request)
{
    feed((struct agent_state_event){.type = AGENT_STATE_EXECUTE,
                                    .key = str_from(key),
                                    .attempt = attempt,
                                    .epoch = epoch,
                                    .request = request});
}

static uint32_t start(const char *key, uint32_t attempt, uint64_t epoch, uint64_t request)
{
    execute(key, attempt, epoch, request);
    assert_non_null(did(DO_RUN));
    return did(DO_RUN)->slot;
}

static void finish(uint32_t slot, uint64_t bytes)
{
    feed((struct agent_state_event){.type = AGENT_STATE_FINISHED, .slot = slot, .bytes = bytes});
}

static void expect_refused(enum bt_code code, uint64_t request)
{
    const struct agent_state_action *a = did(DO_REFUSE);
    assert_non_null(a);
    assert_int_equal(a->code, code);
    assert_int_equal(a->request, request);
    assert_null(did(DO_RUN));
}

static void a_step_runs_and_its_lane_is_answered(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    finish(slot, 10);
    assert_non_null(did(DO_ANSWER_RESULT));
    assert_int_equal(did(DO_ANSWER_RESULT)->request, 100);
    assert_null(did(DO_RESULT)); /* the answer carried it; it is not sent twice */
}

static void a_running_attempt_is_joined_not_run_twice(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    execute("p/1/a", 1, 7, 101);
    expect_refused(BT_CONFLICT, 100);
    finish(slot, 10);
    assert_int_equal(did(DO_ANSWER_RESULT)->request, 101);
    assert_int_equal(w.s.running, 0);
}

static void a_done_attempt_is_answered_from_the_kept_result(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    finish(slot, 10);
    execute("p/1/a", 1, 7, 101);
    assert_null(did(DO_RUN));
    assert_int_equal(did(DO_ANSWER_RESULT)->request, 101);
    assert_int_equal(did(DO_ANSWER_RESULT)->slot, slot);
}

static void the_next_attempt_runs_and_settles_the_one_before(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    finish(slot, 10);
    (void)start("p/1/a", 2, 7, 101);
    assert_int_equal(did(DO_RELEASE)->slot, slot);
    assert_int_equal(agent_state_find(&w.s, STR_LIT("p/1/a"), 1), AGENT_STATE_NO_SLOT);
}

static void an_old_or_foreign_epoch_is_refused(void **state)
{
    (void)state;
    execute("p/1/a", 1, 6, 100);
    expect_refused(BT_CONFLICT, 100);
    execute("p/1/a", 1, 8, 101);
    expect_refused(BT_CONFLICT, 101);
    feed((struct agent_state_event){.type = AGENT_STATE_HELLO, .epoch = 6, .request = 102});
    expect_refused(BT_CONFLICT, 102);
    feed((struct agent_state_event){.type = AGENT_STATE_HELLO, .epoch = 7, .request = 103});
    assert_non_null(did(DO_ANSWER_OK));
}

static void a_lane_may_greet_before_the_registration_is_answered(void **state)
{
    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_LOST});
    feed((struct agent_state_event){.type = AGENT_STATE_DOWN});
    pass_to_deadline();
    feed((struct agent_state_event){.type = AGENT_STATE_UP});
    assert_non_null(did(DO_REGISTER));
    feed((struct agent_state_event){.type = AGENT_STATE_HELLO, .epoch = 8, .request = 100});
    assert_non_null(did(DO_ANSWER_OK));
    (void)start("p/1/a", 1, 8, 101);
    execute("p/1/b", 1, 7, 102);
    expect_refused(BT_CONFLICT, 102);
}

static void over_capacity_is_busy(void **state)
{
    (void)state;
    (void)start("p/1/a", 1, 7, 100);
    (void)start("p/1/b", 1, 7, 101);
    execute("p/1/c", 1, 7, 102);
    expect_refused(BT_BUSY, 102);
}

static void the_lease_is_renewed_and_orders_are_obeyed(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    struct agent_state_order order = {.key = STR_LIT("p/1/a"), .grace_ms = 500};
    (void)state;
    pass_to_deadline();
    assert_non_null(did(DO_HEARTBEAT));
    feed((struct agent_state_event){
        .type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000, .orders = &order, .n = 1});
    assert_int_equal(did(DO_CANCEL)->slot, slot);
    pass_to_deadline();
    assert_true(w.s.slots[slot].overdue);
    finish(slot, 1); /* every lane request is answered, also after a cancel */
    assert_int_equal(did(DO_ANSWER_RESULT)->request, 100);
}

static void a_cancel_on_the_lane_flags_once_and_tells_the_state(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    feed((struct agent_state_event){
        .type = AGENT_STATE_CANCEL, .key = STR_LIT("p/1/a"), .grace_ms = 500, .request = 200});
    assert_int_equal(did(DO_CANCEL)->slot, slot);
    assert_int_equal(did(DO_ANSWER_STATE)->slot, slot);
    feed((struct agent_state_event){
        .type = AGENT_STATE_CANCEL, .key = STR_LIT("p/1/a"), .grace_ms = 500, .request = 201});
    assert_null(did(DO_CANCEL));
    assert_int_equal(agent_state_deadline(&w.s), w.now + 500);
    w.now += 499;
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    assert_null(did(DO_LOG));
    w.now += 1;
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    assert_int_equal(did(DO_LOG)->slot, slot); /* its worker is stuck */
    assert_true(agent_state_deadline(&w.s) > w.now);
    feed((struct agent_state_event){
        .type = AGENT_STATE_CANCEL, .key = STR_LIT("x"), .request = 202});
    assert_int_equal(did(DO_ANSWER_STATE)->slot, AGENT_STATE_NO_SLOT);
}

static void a_query_tells_running_done_and_unknown(void **state)
{
    uint32_t slot = start("p/1/a", 3, 7, 100);
    (void)state;
    feed((struct agent_state_event){
        .type = AGENT_STATE_QUERY, .key = STR_LIT("p/1/a"), .attempt = 3, .request = 200});
    assert_int_equal(did(DO_ANSWER_STATE)->slot, slot);
    feed((struct agent_state_event){
        .type = AGENT_STATE_QUERY, .key = STR_LIT("p/1/a"), .attempt = 2, .request = 201});
    assert_int_equal(did(DO_ANSWER_STATE)->slot, AGENT_STATE_NO_SLOT);
    feed((struct agent_state_event){
        .type = AGENT_STATE_QUERY, .key = STR_LIT("p/1/a"), .request = 202});
    assert_int_equal(did(DO_ANSWER_STATE)->slot, slot);
}

static const struct agent_state_action *query(const char *key, uint32_t attempt)
{
    feed((struct agent_state_event){
        .type = AGENT_STATE_QUERY, .key = str_from(key), .attempt = attempt, .request = 300});
    return did(DO_ANSWER_STATE);
}

static void what_ran_and_is_not_kept_is_forgotten_and_not_unknown(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    assert_false(query("p/1/a", 2)->forgotten);
    finish(slot, 10);
    w.now += AGENT_STATE_KEEP_MS - 1;
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    assert_int_equal(query("p/1/a", 1)->slot, slot);
    w.now += AGENT_STATE_KEEP_MS;
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    assert_int_equal(query("p/1/a", 1)->slot, AGENT_STATE_NO_SLOT);
    assert_true(query("p/1/a", 1)->forgotten);
    assert_true(query("p/1/a", 0)->forgotten);
    assert_false(query("p/1/a", 2)->forgotten);
    assert_false(query("p/1/b", 1)->forgotten);
}

static void of_a_thousand_results_each_is_kept_or_forgotten(void **state)
{
    char key[32];
    int kept = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "p/1/s%d", i);
        finish(start(key, 1, 7, 100), 10);
    }
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "p/1/s%d", i);
        const struct agent_state_action *a = query(key, 1);
        assert_true(a->forgotten == (a->slot == AGENT_STATE_NO_SLOT));
        kept += a->forgotten ? 0 : 1;
        (void)snprintf(key, sizeof key, "p/2/s%d", i);
        assert_false(query(key, 1)->forgotten);
    }
    assert_int_equal(kept, AGENT_STATE_KEPT);
}

static void a_cancel_of_an_earlier_attempt_leaves_this_one_alone(void **state)
{
    uint32_t slot = start("p/1/a", 2, 7, 100);
    (void)state;
    feed((struct agent_state_event){
        .type = AGENT_STATE_CANCEL, .key = STR_LIT("p/1/a"), .attempt = 1, .request = 200});
    assert_null(did(DO_CANCEL));
    assert_int_equal(did(DO_ANSWER_STATE)->slot, AGENT_STATE_NO_SLOT);
    struct agent_state_order order = {.key = STR_LIT("p/1/a"), .attempt = 1};
    pass_to_deadline();
    assert_non_null(did(DO_HEARTBEAT));
    feed((struct agent_state_event){
        .type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000, .orders = &order, .n = 1});
    assert_null(did(DO_CANCEL));
    feed((struct agent_state_event){
        .type = AGENT_STATE_CANCEL, .key = STR_LIT("p/1/a"), .attempt = 2, .request = 201});
    assert_int_equal(did(DO_CANCEL)->slot, slot);
}

static void reconnect(uint64_t epoch)
{
    feed((struct agent_state_event){.type = AGENT_STATE_DOWN});
    while (did(DO_DIAL) == NULL) {
        pass_to_deadline();
    }
    feed((struct agent_state_event){.type = AGENT_STATE_UP});
    assert_non_null(did(DO_REGISTER));
    registered(epoch);
}

static void a_result_of_an_older_epoch_is_also_sent_by_control(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    reconnect(8);
    finish(slot, 10);
    assert_non_null(did(DO_ANSWER_RESULT)); /* answered, even if the sender is gone */
    assert_int_equal(did(DO_RESULT)->slot, slot);
    feed((struct agent_state_event){.type = AGENT_STATE_RESULT_OK, .accepted = true});
    assert_int_equal(w.s.slots[slot].undelivered, false);
}

/* A full disk, or too much to do: the result is not wrong. */
static void a_result_that_cannot_be_taken_now_is_kept_and_sent_again(void **state)
{
    static const enum bt_code for_now[] = {BT_UNAVAILABLE, BT_BUSY, BT_TIMEOUT};
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    reconnect(8);
    finish(slot, 10);
    for (size_t i = 0; i < 3; i++) {
        const msec refused = w.now;
        assert_int_equal(did(DO_RESULT)->slot, slot);
        feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = for_now[i]});
        assert_null(did(DO_RESULT)); /* not at once */
        assert_true(w.s.registered);
        while (did(DO_RESULT) == NULL) {
            assert_true(w.now <= refused + AGENT_STATE_RESULT_AGAIN_MS);
            pass_to_deadline();
            if (did(DO_HEARTBEAT) != NULL) {
                feed(
                    (struct agent_state_event){.type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000});
            }
        }
        assert_int_equal(w.now - refused, AGENT_STATE_RESULT_AGAIN_MS);
    }
    feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = BT_LIMIT});
    assert_null(did(DO_RESULT));
    assert_false(w.s.slots[slot].undelivered); /* this one would be refused each time */
}

static void a_result_that_cannot_be_taken_holds_a_drain_for_a_while_only(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    const msec from = w.now;
    (void)state;
    reconnect(8);
    finish(slot, 10);
    feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = BT_UNAVAILABLE});
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    while (did(DO_DEREGISTER) == NULL) {
        if (did(DO_RESULT) != NULL) {
            feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = BT_UNAVAILABLE});
        } else if (w.s.call != CALL_NONE) {
            feed((struct agent_state_event){.type = AGENT_STATE_CALL_OK});
        }
        if (did(DO_DEREGISTER) == NULL && w.s.call == CALL_NONE) {
            pass_to_deadline();
        }
        assert_true(w.now < from + 60000);
    }
    assert_true(w.now >= from + AGENT_STATE_OFFLINE_MS);
}

static void a_result_from_the_time_without_a_supervisor_waits_for_registration(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_DOWN});
    finish(slot, 10);
    assert_null(did(DO_RESULT));
    while (did(DO_DIAL) == NULL) {
        pass_to_deadline();
    }
    feed((struct agent_state_event){.type = AGENT_STATE_UP});
    registered(8);
    assert_int_equal(did(DO_RESULT)->slot, slot);
    feed((struct agent_state_event){
        .type = AGENT_STATE_LOST}); /* unknown: sent again after the next one */
    while (did(DO_DIAL) == NULL) {
        pass_to_deadline();
    }
    feed((struct agent_state_event){.type = AGENT_STATE_UP});
    registered(9);
    assert_int_equal(did(DO_RESULT)->slot, slot);
}

static void a_result_after_the_last_sign_of_life_is_told_again(void **state)
{
    uint32_t early = start("p/1/a", 1, 7, 100);
    uint32_t late;
    (void)state;
    finish(early, 10);
    pass_to_deadline();
    feed((struct agent_state_event){.type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000});
    late = start("p/1/b", 1, 7, 101);
    finish(late, 10); /* answered on a lane whose supervisor ends now */
    reconnect(8);
    assert_int_equal(did(DO_RESULT)->slot, late);
    feed((struct agent_state_event){.type = AGENT_STATE_RESULT_OK, .accepted = true});
    assert_null(did(DO_RESULT)); /* the early one was delivered before */
}

static void a_result_that_a_query_fetched_is_not_pushed(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_DOWN});
    finish(slot, 10);
    feed((struct agent_state_event){
        .type = AGENT_STATE_QUERY, .key = STR_LIT("p/1/a"), .request = 1});
    reconnect(8);
    assert_null(did(DO_RESULT));
}

static void a_repeated_request_of_the_new_epoch_makes_the_push_needless(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    reconnect(8);
    execute("p/1/a", 1, 8, 101);
    finish(slot, 10);
    assert_int_equal(did(DO_ANSWER_RESULT)->request, 101);
    assert_null(did(DO_RESULT));
}

static void a_silent_supervisor_is_dialed_anew(void **state)
{
    (void)state;
    pass_to_deadline();
    assert_non_null(did(DO_HEARTBEAT));
    pass_to_deadline(); /* no answer within the lease */
    assert_int_equal(w.now, 1000 + 1000 + 3000);
    pass_to_deadline();
    assert_non_null(did(DO_DIAL));
    pass_to_deadline(); /* no supervisor there either: retries later */
    pass_to_deadline();
    assert_non_null(did(DO_DIAL));
}

static void a_fenced_instance_registers_again(void **state)
{
    (void)state;
    pass_to_deadline();
    feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = BT_CONFLICT});
    pass_to_deadline();
    assert_non_null(did(DO_REGISTER));
}

static void a_refused_card_or_token_ends_with_2(void **state)
{
    static const enum bt_code fatal[] = {BT_UNAUTHORIZED, BT_INVALID, BT_PROTOCOL};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        agent_state_init(&w.s, 1);
        feed((struct agent_state_event){.type = AGENT_STATE_START});
        feed((struct agent_state_event){.type = AGENT_STATE_UP});
        feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = fatal[i]});
        assert_int_equal(did(DO_EXIT)->status, 2);
    }
    agent_state_init(&w.s, 1);
    feed((struct agent_state_event){.type = AGENT_STATE_START});
    feed((struct agent_state_event){.type = AGENT_STATE_UP});
    feed((struct agent_state_event){.type = AGENT_STATE_REFUSED, .code = BT_BUSY});
    assert_null(did(DO_EXIT));
    pass_to_deadline();
    assert_non_null(did(DO_REGISTER));
}

static void sigterm_drains_and_the_last_step_ends_it(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    assert_non_null(did(DO_DRAIN));
    feed((struct agent_state_event){.type = AGENT_STATE_CALL_OK});
    execute("p/1/b", 1, 7, 101);
    expect_refused(BT_BUSY, 101); /* it has not begun it, so no attempt is used up */
    finish(slot, 10);
    assert_null(did(DO_DEREGISTER)); /* the answer's bytes must leave first */
    pass_to_deadline();
    assert_non_null(did(DO_DEREGISTER));
    feed((struct agent_state_event){.type = AGENT_STATE_CALL_OK});
    assert_int_equal(did(DO_EXIT)->status, 0);
}

/* Refused or lost: who wants to go goes. */
static void a_deregistration_that_fails_ends_it_all_the_same(void **state)
{
    static const enum agent_state_event_type answers[] = {AGENT_STATE_REFUSED, AGENT_STATE_LOST,
                                                          AGENT_STATE_DOWN};

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        (void)set_up(state);
        feed((struct agent_state_event){.type = AGENT_STATE_STOP});
        feed((struct agent_state_event){.type = AGENT_STATE_CALL_OK});
        while (did(DO_DEREGISTER) == NULL) {
            pass_to_deadline();
        }
        feed((struct agent_state_event){.type = answers[i], .code = BT_NOT_FOUND});
        assert_non_null(did(DO_EXIT));
        assert_int_equal(did(DO_EXIT)->status, 0);
    }
}

/* The supervisor knows what it has ordered itself. */
static void a_drain_order_is_obeyed_and_not_reported(void **state)
{
    (void)state;
    (void)start("p/1/a", 1, 7, 100);
    pass_to_deadline();
    assert_non_null(did(DO_HEARTBEAT));
    feed((struct agent_state_event){
        .type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000, .drain = true});
    assert_null(did(DO_DRAIN));
    for (int i = 0; i < 4; i++) {
        pass_to_deadline();
        assert_null(did(DO_DRAIN));
        feed((struct agent_state_event){
            .type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000, .drain = true});
    }
    execute("p/1/b", 1, 7, 101);
    expect_refused(BT_BUSY, 101);
}

static void a_second_sigterm_ends_at_once(void **state)
{
    (void)state;
    (void)start("p/1/a", 1, 7, 100);
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    assert_int_equal(did(DO_EXIT)->status, 1);
}

static void who_has_ended_does_nothing_more(void **state)
{
    static const enum agent_state_event_type all[] = {
        AGENT_STATE_TICK,   AGENT_STATE_UP,    AGENT_STATE_DOWN,
        AGENT_STATE_LOST,   AGENT_STATE_HELLO, AGENT_STATE_EXECUTE,
        AGENT_STATE_CANCEL, AGENT_STATE_QUERY, AGENT_STATE_STOP};

    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    assert_non_null(did(DO_EXIT));
    w.now += 1000000;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        feed((struct agent_state_event){
            .type = all[i], .key = STR_LIT("p/1/a"), .attempt = 1, .epoch = 7, .request = 9});
        assert_int_equal(w.out.n, 0);
        assert_true(agent_state_deadline(&w.s) == MSEC_NEVER);
    }
}

static void a_drain_order_then_sigterm_still_finishes_the_step(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    pass_to_deadline();
    feed((struct agent_state_event){
        .type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000, .drain = true});
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    assert_null(did(DO_EXIT));
    finish(slot, 1);
    assert_non_null(did(DO_ANSWER_RESULT));
}

static void draining_without_a_supervisor_waits_a_while_for_results_only(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_DOWN});
    feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    finish(slot, 1);
    assert_null(did(DO_EXIT));
    while (did(DO_EXIT) == NULL) {
        pass_to_deadline();
    }
    assert_int_equal(w.now, 1000 + AGENT_STATE_OFFLINE_MS);
}

static void kept_results_are_capped_by_number_bytes_and_age(void **state)
{
    char key[32];
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        (void)snprintf(key, sizeof key, "p/1/s%u", i);
        finish(start(key, 1, 7, i), 10);
        w.now++;
        assert_true(w.s.kept <= AGENT_STATE_KEPT);
    }
    assert_int_equal(agent_state_find(&w.s, STR_LIT("p/1/s100"), 0), AGENT_STATE_NO_SLOT);
    assert_int_not_equal(agent_state_find(&w.s, STR_LIT("p/1/s199"), 0), AGENT_STATE_NO_SLOT);
    finish(start("p/1/big", 1, 7, 900), AGENT_STATE_KEPT_BYTES - 20);
    assert_true(w.s.kept_bytes <= AGENT_STATE_KEPT_BYTES);
    assert_int_not_equal(agent_state_find(&w.s, STR_LIT("p/1/big"), 0), AGENT_STATE_NO_SLOT);
    w.now += AGENT_STATE_KEEP_MS - 1; /* until then it is the answer to the same key */
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    assert_int_not_equal(agent_state_find(&w.s, STR_LIT("p/1/big"), 0), AGENT_STATE_NO_SLOT);
    w.now++;
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    assert_int_equal(w.s.kept, 0);
    assert_int_equal(w.s.kept_bytes, 0);
}

static void progress_travels_no_faster_than_allowed(void **state)
{
    uint32_t slot = start("p/1/a", 1, 7, 100);
    (void)state;
    feed((struct agent_state_event){.type = AGENT_STATE_PROGRESS, .slot = slot});
    assert_int_equal(did(DO_PROGRESS)->slot, slot);
    feed((struct agent_state_event){.type = AGENT_STATE_CALL_OK});
    feed((struct agent_state_event){.type = AGENT_STATE_PROGRESS, .slot = slot});
    assert_null(did(DO_PROGRESS));
    pass_to_deadline();
    assert_non_null(did(DO_PROGRESS));
    assert_int_equal(w.now, 1000 + AGENT_STATE_PROGRESS_MS);
}

static void a_supervisor_is_looked_for_less_often_the_longer_it_is_away(void **state)
{
    msec away = 0;
    uint32_t looks = 0;

    (void)state;
    assert_int_equal(agent_state_look_wait(0), 2);
    assert_int_equal(agent_state_look_wait(23), 2);
    assert_int_equal(agent_state_look_wait(24), 3);
    assert_int_equal(agent_state_look_wait(799), 99);
    assert_int_equal(agent_state_look_wait(800), 100);
    assert_int_equal(agent_state_look_wait(MSEC_NEVER), 100);
    for (; away < 1000; looks++) {
        away += agent_state_look_wait(away);
    }
    assert_true(looks <= 50); /* a hundred in the first second would be one each 10 ms */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_step_runs_and_its_lane_is_answered, set_up),
        cmocka_unit_test_setup(a_running_attempt_is_joined_not_run_twice, set_up),
        cmocka_unit_test_setup(a_done_attempt_is_answered_from_the_kept_result, set_up),
        cmocka_unit_test_setup(the_next_attempt_runs_and_settles_the_one_before, set_up),
        cmocka_unit_test_setup(an_old_or_foreign_epoch_is_refused, set_up),
        cmocka_unit_test_setup(a_lane_may_greet_before_the_registration_is_answered, set_up),
        cmocka_unit_test_setup(over_capacity_is_busy, set_up),
        cmocka_unit_test_setup(the_lease_is_renewed_and_orders_are_obeyed, set_up),
        cmocka_unit_test_setup(a_cancel_on_the_lane_flags_once_and_tells_the_state, set_up),
        cmocka_unit_test_setup(a_query_tells_running_done_and_unknown, set_up),
        cmocka_unit_test_setup(what_ran_and_is_not_kept_is_forgotten_and_not_unknown, set_up),
        cmocka_unit_test_setup(of_a_thousand_results_each_is_kept_or_forgotten, set_up),
        cmocka_unit_test_setup(a_cancel_of_an_earlier_attempt_leaves_this_one_alone, set_up),
        cmocka_unit_test_setup(a_result_of_an_older_epoch_is_also_sent_by_control, set_up),
        cmocka_unit_test_setup(a_result_that_cannot_be_taken_now_is_kept_and_sent_again, set_up),
        cmocka_unit_test_setup(a_result_that_cannot_be_taken_holds_a_drain_for_a_while_only,
                               set_up),
        cmocka_unit_test_setup(a_result_from_the_time_without_a_supervisor_waits_for_registration,
                               set_up),
        cmocka_unit_test_setup(a_result_after_the_last_sign_of_life_is_told_again, set_up),
        cmocka_unit_test_setup(a_result_that_a_query_fetched_is_not_pushed, set_up),
        cmocka_unit_test_setup(a_repeated_request_of_the_new_epoch_makes_the_push_needless, set_up),
        cmocka_unit_test_setup(a_silent_supervisor_is_dialed_anew, set_up),
        cmocka_unit_test_setup(a_fenced_instance_registers_again, set_up),
        cmocka_unit_test_setup(a_refused_card_or_token_ends_with_2, set_up),
        cmocka_unit_test_setup(sigterm_drains_and_the_last_step_ends_it, set_up),
        cmocka_unit_test_setup(a_second_sigterm_ends_at_once, set_up),
        cmocka_unit_test_setup(a_deregistration_that_fails_ends_it_all_the_same, set_up),
        cmocka_unit_test_setup(a_drain_order_is_obeyed_and_not_reported, set_up),
        cmocka_unit_test_setup(who_has_ended_does_nothing_more, set_up),
        cmocka_unit_test_setup(a_drain_order_then_sigterm_still_finishes_the_step, set_up),
        cmocka_unit_test_setup(draining_without_a_supervisor_waits_a_while_for_results_only,
                               set_up),
        cmocka_unit_test_setup(kept_results_are_capped_by_number_bytes_and_age, set_up),
        cmocka_unit_test_setup(progress_travels_no_faster_than_allowed, set_up),
        cmocka_unit_test(a_supervisor_is_looked_for_less_often_the_longer_it_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
