/*
 * agent_state against a supervisor with all faults of supervisors and networks: it repeats
 * attempts, cancels, queries, loses answers, stops answering, restarts. Invariants:
 * - An attempt runs at most once, and never more than `capacity` at a time.
 * - Every request is answered exactly once.
 * - The slots match the executions that run or are kept.
 * - At the end, with a supervisor that behaves, every finished result was delivered: on its lane,
 *   by step.result, or by a query.
 * - A stop ends it.
 * usage: test_sdk_agent_state_random [SEED]; a failure prints its seed.
 */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/agent_state.h"
#include "protocol/base/clock.h"

enum { KEYS = 24, ATTEMPTS = 4, REQUESTS = 4096, EVENTS = 3000, SEEDS = 60 };

struct attempt {
    bool ran, finished;
    uint32_t slot;
    bool told;    /* delivered to a supervisor that is still alive */
    bool settled; /* evicted or superseded: it will not be requested again */
};

struct world {
    struct agent_state s;
    msec now;
    uint64_t random;
    uint64_t seed;
    uint64_t epoch; /* of the newest registration that the supervisor made */
    struct attempt attempts[KEYS][ATTEMPTS];
    bool open[REQUESTS];
    uint32_t requests;
    enum agent_state_call asked;
    bool dialing, stopped, exited;
    int status;
};

static struct world w;

static uint32_t draw(uint32_t n)
{
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return (uint32_t)((w.random >> 11) % n);
}

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fail_msg("seed %llu: %s:%d: %s", (unsigned long long)w.seed, __FILE__, __LINE__,       \
                     #cond);                                                                       \
        }                                                                                          \
    } while (0)

static void feed(struct agent_state_event ev);

static struct attempt *attempt_of_row(uint32_t slot)
{
    for (uint32_t k = 0; k < KEYS; k++) {
        for (uint32_t a = 0; a < ATTEMPTS; a++) {
            struct attempt *at = &w.attempts[k][a];
            if (at->ran && !at->settled && at->slot == slot) {
                return at;
            }
        }
    }
    return NULL;
}

static void answered(uint64_t request)
{
    CHECK(request < w.requests && w.open[request]);
    w.open[request] = false;
}

/* DO_RUN follows AGENT_STATE_EXECUTE of (key, attempt), stored here. */
static uint32_t run_key, run_attempt;

static void on_run(const struct agent_state_action *a)
{
    struct attempt *at = &w.attempts[run_key][run_attempt - 1];

    CHECK(!at->ran);
    CHECK(w.s.running <= w.s.capacity);
    CHECK(attempt_of_row(a->slot) == NULL);
    *at = (struct attempt){.ran = true, .slot = a->slot};
}

static void perform(const struct agent_state_action *a)
{
    switch (a->type) {
    case DO_RUN:
        on_run(a);
        break;
    case DO_ANSWER_OK:
    case DO_REFUSE:
        answered(a->request);
        break;
    case DO_ANSWER_RESULT:
        answered(a->request);
        CHECK(w.s.slots[a->slot].state == SLOT_DONE);
        break;
    case DO_ANSWER_STATE:
        answered(a->request);
        break;
    case DO_RELEASE:
        CHECK(attempt_of_row(a->slot) != NULL);
        attempt_of_row(a->slot)->settled = true;
        break;
    case DO_REGISTER:
    case DO_HEARTBEAT:
    case DO_RESULT:
    case DO_PROGRESS:
    case DO_DRAIN:
    case DO_DEREGISTER:
        CHECK(w.asked == CALL_NONE); /* one at a time */
        w.asked = w.s.call;
        break;
    case DO_DIAL:
        w.asked = CALL_NONE;
        w.dialing = true;
        break;
    case DO_CANCEL:
        CHECK(w.s.slots[a->slot].state == SLOT_RUNNING);
        break;
    case DO_LOG:
        break;
    case DO_EXIT:
        w.exited = true;
        w.status = a->status;
        break;
    }
}

static void check_rows(void)
{
    uint32_t running = 0;
    uint32_t kept = 0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        running += w.s.slots[i].state == SLOT_RUNNING;
        kept += w.s.slots[i].state == SLOT_DONE;
        bytes += w.s.slots[i].state == SLOT_DONE ? w.s.slots[i].bytes : 0;
    }
    CHECK(running == w.s.running && running <= w.s.capacity);
    CHECK(kept == w.s.kept && kept <= AGENT_STATE_KEPT);
    CHECK(bytes == w.s.kept_bytes);
}

static void feed(struct agent_state_event ev)
{
    struct agent_state_actions out = {.n = 0};

    ev.now = w.now;
    agent_state_handle(&w.s, &ev, &out);
    for (uint32_t i = 0; i < out.n; i++) {
        perform(&out.at[i]);
    }
    check_rows();
}

static uint64_t new_request(void)
{
    w.open[w.requests] = true;
    return w.requests++;
}

static void name_key(uint32_t key, char ret[32])
{
    (void)snprintf(ret, 32, "plan/1/s%u", key);
}

/* ---- the supervisor's actions ---- */

static void execute(void)
{
    char key[32];
    uint64_t stale = draw(8) == 0 ? 1 : 0;

    run_key = draw(KEYS);
    run_attempt = 1 + draw(ATTEMPTS);
    /* A supervisor never returns to an attempt after it has started a later one. */
    for (uint32_t a = run_attempt; a < ATTEMPTS; a++) {
        run_attempt = w.attempts[run_key][a].ran ? a + 1 : run_attempt;
    }
    if (w.attempts[run_key][run_attempt - 1].settled) {
        return;
    }
    name_key(run_key, key);
    feed((struct agent_state_event){.type = AGENT_STATE_EXECUTE,
                                    .request = new_request(),
                                    .key = str_from(key),
                                    .attempt = run_attempt,
                                    .epoch = w.epoch - stale});
}

static void ask_about(enum agent_state_event_type type)
{
    char key[32];

    name_key(draw(KEYS), key);
    feed((struct agent_state_event){.type = type,
                                    .request = new_request(),
                                    .key = str_from(key),
                                    .attempt = draw(2) == 0 ? 0 : 1 + draw(ATTEMPTS),
                                    .grace_ms = draw(1000)});
}

static void answer_heartbeat(void)
{
    char key[32];
    struct agent_state_order order = {.grace_ms = draw(500)};

    name_key(draw(KEYS), key);
    order.key = str_from(key);
    feed((struct agent_state_event){
        .type = AGENT_STATE_HEARTBEAT_OK, .lease_ms = 3000, .orders = &order, .n = draw(2)});
}

/* Answers the outstanding request; sometimes rejects it. */
static void answer_ask(bool behave)
{
    enum agent_state_call asked = w.asked;

    w.asked = CALL_NONE;
    if (asked == CALL_NONE) {
        return;
    }
    if (!behave && draw(12) == 0) {
        feed((struct agent_state_event){.type = AGENT_STATE_REFUSED,
                                        .code = draw(2) == 0 ? BT_CONFLICT : BT_BUSY});
    } else if (asked == CALL_REGISTER) {
        w.epoch++;
        feed((struct agent_state_event){.type = AGENT_STATE_REGISTERED,
                                        .epoch = w.epoch,
                                        .lease_ms = 3000,
                                        .heartbeat_ms = 500});
    } else if (asked == CALL_HEARTBEAT) {
        answer_heartbeat();
    } else if (asked == CALL_RESULT) {
        feed((struct agent_state_event){.type = AGENT_STATE_RESULT_OK, .accepted = draw(2) == 0});
    } else {
        feed((struct agent_state_event){.type = AGENT_STATE_CALL_OK});
    }
}

static void finish_some(void)
{
    uint32_t from = draw(AGENT_STATE_SLOTS);

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        uint32_t slot = (from + i) % AGENT_STATE_SLOTS;
        if (w.s.slots[slot].state == SLOT_RUNNING) {
            CHECK(attempt_of_row(slot) != NULL);
            attempt_of_row(slot)->finished = true;
            feed((struct agent_state_event){.type = AGENT_STATE_FINISHED,
                                            .slot = slot,
                                            .bytes = draw(100) == 0 ? 4000000 : draw(2000)});
            return;
        }
    }
}

static void progress(void)
{
    uint32_t slot = draw(AGENT_STATE_SLOTS);

    if (w.s.slots[slot].state == SLOT_RUNNING) {
        feed((struct agent_state_event){.type = AGENT_STATE_PROGRESS, .slot = slot});
    }
}

static void connect_up(void)
{
    if (w.dialing) {
        w.dialing = false;
        feed((struct agent_state_event){.type = AGENT_STATE_UP});
    }
}

static void break_up(void)
{
    w.asked = CALL_NONE; /* its answer never comes */
    feed((struct agent_state_event){.type = draw(2) == 0 ? AGENT_STATE_DOWN : AGENT_STATE_LOST});
}

static void pass_time(void)
{
    msec due = agent_state_deadline(&w.s);
    bool to_due = draw(2) == 0 && due != MSEC_NEVER && due > w.now;

    w.now = to_due ? due : w.now + draw(400);
    if (w.s.call != CALL_NONE && w.s.call_deadline <= w.now) {
        w.asked = CALL_NONE;
    }
    feed((struct agent_state_event){.type = AGENT_STATE_TICK});
}

static void one_event(void)
{
    switch (draw(12)) {
    case 0:
    case 1:
    case 2:
        execute();
        break;
    case 3:
        ask_about(AGENT_STATE_QUERY);
        break;
    case 4:
        ask_about(AGENT_STATE_CANCEL);
        break;
    case 5:
    case 6:
        finish_some();
        break;
    case 7:
        progress();
        break;
    case 8:
    case 9:
        answer_ask(false);
        break;
    case 10:
        connect_up();
        break;
    default:
        if (draw(15) == 0) {
            break_up();
        } else {
            pass_time();
        }
        break;
    }
}

/* No more faults: the supervisor answers, time passes. */
static void settle(void)
{
    for (int i = 0; i < 2000 && !w.exited; i++) {
        connect_up();
        answer_ask(true);
        finish_some();
        w.now += 50;
        feed((struct agent_state_event){.type = AGENT_STATE_TICK});
    }
}

static void check_end(bool stopped)
{
    CHECK(w.s.running == 0);
    CHECK(stopped == w.exited && w.status == 0);
    for (uint32_t i = 0; i < w.requests; i++) {
        CHECK(!w.open[i]);
    }
    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        CHECK(w.s.slots[i].state != SLOT_DONE || !w.s.slots[i].undelivered);
    }
}

static void one_life(uint64_t seed)
{
    bool stop;

    memset(&w, 0, sizeof w);
    w.seed = seed;
    w.random = seed * 0x9E3779B97F4A7C15u | 1;
    w.now = 1000;
    stop = draw(2) == 0;
    agent_state_init(&w.s, 1 + draw(5));
    feed((struct agent_state_event){.type = AGENT_STATE_START});
    for (int i = 0; i < EVENTS; i++) {
        one_event();
    }
    if (stop) {
        feed((struct agent_state_event){.type = AGENT_STATE_STOP});
    }
    settle();
    check_end(stop);
}

static uint64_t first_seed;
static uint32_t lives = SEEDS;

static void whatever_happens_the_promises_hold(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < lives; i++) {
        one_life(first_seed + i);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_happens_the_promises_hold)};

    first_seed = clock_mono_ns() % 1000000000;
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        lives = 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
