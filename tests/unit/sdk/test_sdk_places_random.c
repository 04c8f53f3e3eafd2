/*
 * Several sessions of one process (agents/sdk/shards) against supervisors that repeat, cancel and
 * lose what they ask. Whatever happens: all sessions together never run more than the places, a
 * step is refused for want of a place only when all are taken, and at the end every place is free.
 * The runtime's part (runtime_serve.c, runtime.c) is take and put here.
 * usage: test_sdk_places_random [SEED]; a failure prints its seed.
 */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/agent_state.h"

enum { SESSIONS_MAX = 4, PLACES_MAX = 6, KEYS = 16, EVENTS = 4000, SEEDS = 40 };

struct session {
    struct agent_state s;
    uint64_t epoch;
    uint64_t request;
    bool ran;  /* the event in hand */
    bool busy; /* it was refused with BUSY */
};

static struct {
    struct session at[SESSIONS_MAX];
    uint32_t sessions, places, taken;
    uint64_t random, seed;
    msec now;
} w;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fail_msg("seed %llu: %s:%d: %s", (unsigned long long)w.seed, __FILE__, __LINE__,       \
                     #cond);                                                                       \
        }                                                                                          \
    } while (0)

static uint32_t draw(uint32_t n)
{
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return (uint32_t)((w.random >> 11) % n);
}

static uint32_t running(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w.sessions; i++) {
        n += w.at[i].s.running;
    }
    return n;
}

static void feed(struct session *one, struct agent_state_event ev)
{
    struct agent_state_actions out = {.n = 0};

    ev.now = w.now;
    one->ran = one->busy = false;
    agent_state_handle(&one->s, &ev, &out);
    for (uint32_t i = 0; i < out.n; i++) {
        one->ran = one->ran || out.at[i].type == DO_RUN;
        one->busy = one->busy || (out.at[i].type == DO_REFUSE && out.at[i].code == BT_BUSY);
    }
}

static void execute(struct session *one)
{
    const bool place = w.taken < w.places;
    char key[32];

    (void)snprintf(key, sizeof key, "plan/1/s%u", draw(KEYS));
    w.taken += place ? 1 : 0;
    feed(one, (struct agent_state_event){.type = AGENT_STATE_EXECUTE,
                                         .request = one->request++,
                                         .key = str_from(key),
                                         .attempt = 1 + draw(6),
                                         .epoch = one->epoch - (draw(16) == 0 ? 1 : 0),
                                         .full = !place});
    CHECK(place || !one->ran);
    CHECK(!one->busy || !place);
    w.taken -= place && !one->ran ? 1 : 0;
}

static void finish(struct session *one)
{
    const uint32_t from = draw(AGENT_STATE_SLOTS);

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        const uint32_t slot = (from + i) % AGENT_STATE_SLOTS;
        if (one->s.slots[slot].state == SLOT_RUNNING) {
            w.taken--;
            feed(one, (struct agent_state_event){
                          .type = AGENT_STATE_FINISHED, .slot = slot, .bytes = draw(1000)});
            return;
        }
    }
}

static void come_up(struct session *one)
{
    feed(one, (struct agent_state_event){.type = AGENT_STATE_UP});
    feed(one, (struct agent_state_event){.type = AGENT_STATE_REGISTERED,
                                         .epoch = ++one->epoch,
                                         .lease_ms = 3000,
                                         .heartbeat_ms = 1000});
}

static void one_event(struct session *one)
{
    char key[32];

    switch (draw(8)) {
    case 0:
        (void)snprintf(key, sizeof key, "plan/1/s%u", draw(KEYS));
        feed(one, (struct agent_state_event){.type = AGENT_STATE_CANCEL,
                                             .request = one->request++,
                                             .key = str_from(key),
                                             .grace_ms = 100});
        break;
    case 1:
        if (draw(20) == 0) {
            feed(one, (struct agent_state_event){.type = AGENT_STATE_DOWN});
            come_up(one);
        }
        break;
    case 2:
    case 3:
        finish(one);
        break;
    default:
        execute(one);
        break;
    }
    w.now += draw(20);
}

static void play(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.seed = seed;
    w.random = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    w.sessions = 2 + draw(SESSIONS_MAX - 1);
    w.places = 1 + draw(PLACES_MAX);
    for (uint32_t i = 0; i < w.sessions; i++) {
        agent_state_init(&w.at[i].s, w.places);
        feed(&w.at[i], (struct agent_state_event){.type = AGENT_STATE_START});
        come_up(&w.at[i]);
    }
    for (uint32_t n = 0; n < EVENTS; n++) {
        one_event(&w.at[draw(w.sessions)]);
        CHECK(running() == w.taken && w.taken <= w.places);
    }
    for (uint32_t i = 0; i < w.sessions; i++) {
        while (w.at[i].s.running > 0) {
            finish(&w.at[i]);
        }
    }
    CHECK(w.taken == 0);
}

static void sessions_never_run_more_than_their_places(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        play(seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_never_run_more_than_their_places)};

    if (argc > 1) {
        play(strtoull(argv[1], NULL, 10));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
