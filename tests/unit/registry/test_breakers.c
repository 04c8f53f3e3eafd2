/* Breakers of instances and agents in the registry. Two failures in a row open an instance, four an
 * agent. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "registry/registry_internal.h"

static const struct registry_limits guarded = {.agents = 4,
                                               .instances = 8,
                                               .lease_ms = 1000000,
                                               .suspect_ms = 900000,
                                               .epoch_base = 10,
                                               .breaker_failures = 2,
                                               .breaker_cooldown_ms = 100,
                                               .breaker_cooldown_max_ms = 400,
                                               .breaker_probe_ms = 50};

static int setup(void **state)
{
    void *mem = malloc(registry_size(&guarded));
    if (mem == NULL) {
        return -1;
    }
    *state = registry_init(mem, &guarded);
    return 0;
}

/* With a control lane, so it can be pinged. */
static uint32_t up(struct registry *r, uint32_t agent, uint8_t n, uint32_t capacity, msec now)
{
    const uint32_t slot = ready(r, agent, n, capacity, now);
    registry_lane_set(r, slot, REGISTRY_CONTROL_LANE, true);
    return slot;
}

static uint32_t result(struct registry *r, uint32_t slot, enum err_class cls, msec now)
{
    return registry_breaker_result(r, slot, view_of(r, slot).epoch, cls, now);
}

static void fail_times(struct registry *r, uint32_t slot, uint32_t n, msec now)
{
    for (uint32_t i = 0; i < n; i++) {
        (void)result(r, slot, CLASS_TIMEOUT, now);
    }
}

static enum breaker_state state_of(const struct registry *r, uint32_t slot)
{
    return view_of(r, slot).breaker.state;
}

static enum breaker_state agent_state(const struct registry *r, uint32_t agent)
{
    return registry_agent_view(r, agent).breaker.state;
}

static void an_open_instance_gets_no_work_and_the_others_do(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s0 = up(r, a, 1, 4, 1000);
    const uint32_t s1 = up(r, a, 2, 1, 1000);
    assert_int_equal(registry_select(r, a), s0);
    fail_times(r, s0, 1, 1000);
    assert_int_equal(registry_select(r, a), s0);
    fail_times(r, s0, 1, 1010);
    assert_int_equal(state_of(r, s0), BREAKER_OPEN);
    assert_int_equal(view_of(r, s0).breaker.retry_at, 1110);
    assert_int_equal(registry_select(r, a), s1);
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
    assert_int_equal(registry_breakers_opened(r), 1);
}

static void a_good_answer_or_a_failure_of_the_work_itself_ends_the_row(void **state)
{
    struct registry *r = *state;
    const uint32_t s = up(r, add(r, "a", 0), 1, 1, 1000);
    static const enum err_class fine[] = {CLASS_NONE, CLASS_VALIDATION_ERROR};
    for (size_t i = 0; i < 20; i++) {
        (void)result(r, s, CLASS_SERVICE_UNAVAILABLE, 1000);
        (void)result(r, s, fine[i % 2], 1000);
    }
    assert_int_equal(state_of(r, s), BREAKER_CLOSED);
    (void)result(r, s, CLASS_SERVICE_UNAVAILABLE, 1000);
    (void)result(r, s, CLASS_RATE_LIMITED, 1000);
    (void)result(r, s, CLASS_SERVICE_UNAVAILABLE, 1000);
    assert_int_equal(state_of(r, s), BREAKER_OPEN);
}

static void half_open_lets_exactly_one_attempt_out_and_its_success_closes(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 3, 1000);
    fail_times(r, s, 2, 1000);
    assert_int_equal(registry_deadline(r), 1100);
    assert_int_equal(registry_breaker_due(r, 1099), REGISTRY_NONE);
    assert_int_equal(registry_breaker_due(r, 1100), s);
    assert_int_equal(registry_breaker_due(r, 1100), REGISTRY_NONE);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(registry_breaker_probed(r, s, true, 1105), a);
    assert_int_equal(registry_select(r, a), s);
    const uint32_t lane = registry_take(r, s);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(result(r, s, CLASS_NONE, 1110), a);
    registry_release(r, s, lane);
    assert_int_equal(state_of(r, s), BREAKER_CLOSED);
    registry_take(r, s);
    assert_int_equal(registry_select(r, a), s);
}

static void a_failed_trial_waits_longer(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 1, 1000);
    fail_times(r, s, 2, 1000);
    (void)registry_breaker_due(r, 1100);
    (void)registry_breaker_probed(r, s, true, 1100);
    registry_release(r, s, registry_take(r, s));
    assert_int_equal(state_of(r, s), BREAKER_HALF_OPEN);
    assert_int_equal(result(r, s, CLASS_TIMEOUT, 1120), REGISTRY_NONE);
    assert_int_equal(state_of(r, s), BREAKER_OPEN);
    assert_int_equal(view_of(r, s).breaker.retry_at, 1320);
}

static void a_trial_that_was_called_off_makes_room_for_another(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 3, 1000);
    const uint32_t early = registry_take(r, s);
    fail_times(r, s, 2, 1000);
    (void)registry_breaker_due(r, 1100);
    (void)registry_breaker_probed(r, s, true, 1100);
    const uint32_t trial = registry_take(r, s);
    registry_release(r, s, early); /* an older attempt decides nothing */
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    (void)result(r, s, CLASS_CANCELLED, 1110);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_release(r, s, trial);
    assert_int_equal(registry_select(r, a), s);
}

static void a_probe_without_an_answer_is_a_failed_one(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 1, 1000);
    fail_times(r, s, 2, 1000);
    assert_int_equal(registry_breaker_due(r, 1100), s);
    assert_int_equal(registry_deadline(r), 1150);
    assert_int_equal(registry_breaker_due(r, 1150), REGISTRY_NONE);
    assert_int_equal(state_of(r, s), BREAKER_OPEN);
    assert_int_equal(registry_deadline(r), 1350);
    assert_int_equal(registry_breaker_probed(r, s, true, 1160), REGISTRY_NONE);
    assert_int_equal(registry_breaker_due(r, 1350), s);
    assert_int_equal(registry_breaker_probed(r, s, false, 1355), REGISTRY_NONE);
    assert_int_equal(registry_deadline(r), 1755);
}

static void who_cannot_be_asked_is_asked_later(void **state)
{
    struct registry *r = *state;
    const uint32_t s = ready(r, add(r, "a", 0), 1, 1, 1000);
    fail_times(r, s, 2, 1000);
    assert_int_equal(registry_breaker_due(r, 1100), REGISTRY_NONE);
    assert_int_equal(registry_deadline(r), 1200);
    registry_lane_set(r, s, REGISTRY_CONTROL_LANE, true);
    assert_int_equal(registry_breaker_due(r, 1200), s);
}

static void a_new_incarnation_starts_closed(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 1, 1000);
    fail_times(r, s, 2, 1000);
    assert_int_equal(up(r, a, 1, 1, 1010), s);
    assert_int_equal(state_of(r, s), BREAKER_CLOSED);
    assert_int_equal(registry_select(r, a), s);
    assert_int_equal(registry_breaker_due(r, 5000), REGISTRY_NONE);
}

static void failures_over_many_instances_open_the_agent(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    uint32_t slots[5];
    for (uint8_t i = 0; i < 5; i++) {
        slots[i] = up(r, a, i, 1, 1000);
    }
    for (uint8_t i = 0; i < 3; i++) {
        fail_times(r, slots[i], 1, 1000);
    }
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
    fail_times(r, slots[3], 1, 1000);
    assert_int_equal(agent_state(r, a), BREAKER_OPEN);
    assert_int_equal(registry_agent_view(r, a).breaker.retry_at, 1100);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(registry_breaker_due(r, 1100), slots[0]);
    assert_int_equal(registry_breaker_probed(r, slots[1], true, 1101), REGISTRY_NONE);
    assert_int_equal(registry_breaker_probed(r, slots[0], true, 1101), a);
    const uint32_t to = registry_select(r, a);
    assert_int_not_equal(to, REGISTRY_NONE);
    const uint32_t lane = registry_take(r, to);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(result(r, to, CLASS_NONE, 1110), a);
    registry_release(r, to, lane);
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
}

static void one_success_anywhere_ends_the_agents_row(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    uint32_t slots[4];
    for (uint8_t i = 0; i < 4; i++) {
        slots[i] = up(r, a, i, 1, 1000);
    }
    for (uint8_t i = 0; i < 3; i++) {
        fail_times(r, slots[i], 1, 1000);
    }
    (void)result(r, slots[3], CLASS_NONE, 1000);
    fail_times(r, slots[3], 1, 1000);
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
}

static void an_agent_whose_instances_are_all_open_is_open(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s0 = up(r, a, 1, 1, 1000);
    const uint32_t s1 = up(r, a, 2, 1, 1000);
    fail_times(r, s0, 2, 1000);
    (void)result(r, s1, CLASS_NONE, 1010);
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
    fail_times(r, s1, 2, 1030);
    assert_int_equal(agent_state(r, a), BREAKER_OPEN);
    assert_int_equal(registry_agent_view(r, a).breaker.retry_at, 1100);
    assert_int_equal(registry_breaker_due(r, 1100), s0);
    assert_int_equal(agent_state(r, a), BREAKER_PROBING);
    assert_int_equal(registry_breaker_probed(r, s0, true, 1100), a);
    assert_int_equal(agent_state(r, a), BREAKER_HALF_OPEN);
    assert_int_equal(registry_select(r, a), s0);
    registry_remove(r, s0, 1110);
    registry_remove(r, s1, 1110);
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
}

/* A process that crashes again and again returns as another instance each time. */
static void crashes_of_incarnations_that_are_gone_open_the_agent(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    for (uint8_t i = 0; i < 4; i++) {
        assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
        const uint32_t s = up(r, a, i, 8, 1000);
        const uint64_t epoch = view_of(r, s).epoch;
        registry_remove(r, s, 1000);
        for (int attempt = 0; attempt < 8; attempt++) { /* one crash is one failure */
            (void)registry_breaker_result(r, s, epoch, CLASS_AGENT_CRASHED, 1000);
        }
    }
    assert_int_equal(agent_state(r, a), BREAKER_OPEN);
    assert_int_equal(registry_breaker_due(r, 1100), REGISTRY_NONE); /* no instance is there */
    assert_int_equal(registry_deadline(r), 1200);
    const uint32_t s = up(r, a, 9, 1, 1150);
    assert_int_equal(state_of(r, s), BREAKER_CLOSED);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    assert_int_equal(registry_breaker_due(r, 1200), s);
}

static void replies_that_are_lost_at_the_same_time_are_one_failure(void **state)
{
    struct registry *r = *state;
    const uint32_t s = up(r, add(r, "a", 0), 1, 8, 1000);
    for (int lane = 0; lane < 8; lane++) {
        (void)result(r, s, CLASS_REPLY_LOST, 1000);
    }
    (void)result(r, s, CLASS_AGENT_CRASHED, 1000);
    assert_int_equal(view_of(r, s).breaker.failures, 1);
    (void)result(r, s, CLASS_REPLY_LOST, 1001);
    assert_int_equal(state_of(r, s), BREAKER_OPEN);
}

static void a_crash_that_is_known_only_after_the_slot_was_given_away_counts(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t b = add(r, "b", 0);
    const uint32_t s = up(r, a, 1, 1, 1000);
    const uint64_t epoch = view_of(r, s).epoch;
    registry_remove(r, s, 1000);
    assert_int_equal(up(r, b, 2, 1, 1000), s);
    (void)registry_breaker_result(r, s, epoch, CLASS_REPLY_LOST, 1000);
    (void)registry_breaker_result(r, s, epoch - 1, CLASS_REPLY_LOST, 1000);
    (void)registry_breaker_result(r, 7, epoch, CLASS_REPLY_LOST, 1000);
    (void)registry_breaker_result(r, REGISTRY_NONE, epoch, CLASS_REPLY_LOST, 1000);
    assert_int_equal(registry_agent_view(r, a).breaker.failures, 1);
    assert_int_equal(registry_agent_view(r, b).breaker.failures, 0);
    assert_int_equal(view_of(r, s).breaker.failures, 0);
}

/* Nobody is asked again because of what changes nothing. */
static void a_result_that_allows_no_more_work_names_no_agent(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 1, 1000);
    const uint64_t epoch = view_of(r, s).epoch;

    assert_int_equal(registry_breaker_result(r, s, epoch, CLASS_NONE, 1000), REGISTRY_NONE);
    registry_remove(r, s, 1000);
    assert_int_equal(registry_breaker_result(r, s, epoch, CLASS_NONE, 1000), REGISTRY_NONE);
    assert_int_equal(registry_breaker_result(r, s, epoch, CLASS_AGENT_CRASHED, 1000),
                     REGISTRY_NONE);
    assert_int_equal(registry_agent_view(r, a).breaker.failures, 1);
}

static void an_agents_trial_that_left_with_its_instance_makes_room(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    uint32_t slots[4];
    for (uint8_t i = 0; i < 4; i++) {
        slots[i] = up(r, a, i, 1, 1000);
        fail_times(r, slots[i], 1, 1000);
    }
    assert_int_equal(registry_breaker_due(r, 1100), slots[0]);
    registry_remove(r, slots[0], 1101); /* the instance that was pinged has gone: no answer */
    assert_int_equal(registry_agent_view(r, a).breaker.retry_at, 1301);
    assert_int_equal(registry_breaker_due(r, 1301), slots[1]);
    assert_int_equal(registry_breaker_probed(r, slots[1], true, 1301), a);
    const uint32_t to = registry_select(r, a);
    registry_take(r, to);
    assert_int_equal(registry_select(r, a), REGISTRY_NONE);
    registry_remove(r, to, 1310);
    assert_int_not_equal(registry_select(r, a), REGISTRY_NONE);
}

static void enabling_an_agent_closes_its_breakers(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s0 = up(r, a, 1, 1, 1000);
    const uint32_t s1 = up(r, a, 2, 1, 1000);
    fail_times(r, s0, 2, 1000);
    fail_times(r, s1, 2, 1000);
    registry_agent_enable(r, a, false);
    assert_int_equal(state_of(r, s0), BREAKER_OPEN);
    registry_agent_enable(r, a, true);
    assert_int_equal(agent_state(r, a), BREAKER_CLOSED);
    assert_int_equal(state_of(r, s1), BREAKER_CLOSED);
    assert_int_equal(registry_select(r, a), s0);
    assert_int_equal(registry_breaker_due(r, 9000), REGISTRY_NONE);
}

static void without_a_number_of_failures_there_are_no_breakers(void **state)
{
    (void)state;
    struct registry *r = registry_init(malloc(registry_size(&small)), &small);
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 2, 1000);
    fail_times(r, s, 1000, 1000);
    (void)registry_breaker_probed(r, s, true, 1000);
    registry_release(r, s, registry_take(r, s));
    assert_int_equal(state_of(r, s), BREAKER_CLOSED);
    assert_int_equal(registry_select(r, a), s);
    assert_int_equal(registry_deadline(r), 1200);
    free(r);
}

static void the_block_may_be_copied(void **state)
{
    struct registry *r = *state;
    const uint32_t a = add(r, "a", 0);
    const uint32_t s = up(r, a, 1, 1, 1000);
    fail_times(r, s, 2, 1000);
    struct registry *copy = malloc(registry_size(&guarded));
    memcpy(copy, r, registry_size(&guarded));
    registry_remove(r, s, 1000);
    assert_int_equal(state_of(copy, s), BREAKER_OPEN);
    assert_int_equal(registry_breaker_due(copy, 1100), s);
    assert_int_equal(registry_breaker_probed(copy, s, true, 1100), a);
    free(copy);
}

/* ---- random histories: the entries must agree with a scan ---- */

static void counts_hold(const struct registry *r, uint32_t seed, uint32_t turn)
{
    msec earliest = MSEC_NEVER;
    uint32_t listed = 0;
    uint32_t waiting = 0;
    for (uint32_t ix = 0; ix < guarded.instances + guarded.agents; ix++) {
        const struct breaker_entry *entry = &registry_breaker_entries(r)[ix];
        const bool waits = entry->b.state == BREAKER_OPEN || entry->b.state == BREAKER_PROBING;
        waiting += waits ? 1 : 0;
        earliest = entry->b.until < earliest ? entry->b.until : earliest;
        if (waits != (entry->list != REGISTRY_NONE)) {
            fail_msg("seed %u turn %u: row %u waits in no list", seed, turn, ix);
        }
    }
    for (uint32_t l = 0; l < BREAKER_LISTS; l++) {
        for (uint32_t ix = r->breaker_first[l]; ix != REGISTRY_NONE;
             ix = registry_breaker_entries(r)[ix].next) {
            listed++;
        }
    }
    for (uint32_t a = 0; a < registry_agents(r); a++) {
        uint32_t n_not_closed = 0;
        for (uint32_t s = 0; s < registry_instances(r); s++) {
            struct instance_view v;
            n_not_closed += registry_instance_view(r, s, &v) && v.agent == a &&
                                    v.breaker.state != BREAKER_CLOSED
                                ? 1
                                : 0;
        }
        if (n_not_closed != registry_agent_entries(r)[a].n_not_closed) {
            fail_msg("seed %u turn %u: agent %u has %u open instances", seed, turn, a,
                     n_not_closed);
        }
    }
    if (listed != waiting || earliest != registry_breaker_deadline(r)) {
        fail_msg("seed %u turn %u: a deadline is lost", seed, turn);
    }
}

static uint32_t chance(uint32_t *x, uint32_t n)
{
    *x = *x * 1664525u + 1013904223u;
    return (*x >> 12) % n;
}

static void a_random_turn(struct registry *r, uint32_t *x, uint64_t lanes[8], msec now)
{
    const uint32_t s = chance(x, 8);
    const uint32_t what = chance(x, 8);
    struct instance_view v;
    const bool live = registry_instance_view(r, s, &v);
    if (what == 0 && chance(x, 8) == 0) {
        const uint32_t slot = up(r, chance(x, 2), (uint8_t)chance(x, 8), 3, now);
        lanes[slot] = 0;
    } else if (what == 1 && chance(x, 16) == 0 && live) {
        registry_remove(r, s, now);
    } else if (what == 2 && live && lanes[s] != 0) {
        const uint32_t lane = (lanes[s] & 1) != 0 ? 0 : (lanes[s] & 2) != 0 ? 1 : 2;
        registry_release(r, s, lane);
        lanes[s] &= ~(UINT64_C(1) << lane);
    } else if (what == 3 && live) {
        (void)registry_breaker_probed(r, s, chance(x, 3) != 0, now);
    } else if (what == 4) {
        const uint32_t to = registry_select(r, chance(x, 2));
        if (to != REGISTRY_NONE) {
            lanes[to] |= UINT64_C(1) << registry_take(r, to);
        }
    } else if (live) {
        (void)registry_breaker_result(r, s, v.epoch - chance(x, 20) / 19,
                                      chance(x, 4) == 0 ? CLASS_NONE : CLASS_TIMEOUT, now);
    }
}

/* Takes the one attempt that a half-open instance gets, and checks that it gets no second one. */
static uint32_t try_out(struct registry *r, uint64_t lanes[8], uint32_t slot)
{
    const uint32_t agent = view_of(r, slot).agent;
    if (state_of(r, slot) != BREAKER_HALF_OPEN || registry_select(r, agent) != slot) {
        return 0;
    }
    lanes[slot] |= UINT64_C(1) << registry_take(r, slot);
    assert_int_equal(state_of(r, slot), BREAKER_TRIAL);
    assert_int_not_equal(registry_select(r, agent), slot);
    return 1;
}

static void random_histories_keep_counts_and_deadlines(void **state)
{
    struct registry *r = *state;
    const uint32_t seed = 4711;
    uint32_t x = seed;
    uint64_t lanes[8] = {0};
    uint32_t probes = 0;
    uint32_t trials = 0;
    msec now = 1000;
    (void)add(r, "a", 0);
    (void)add(r, "b", 0);
    for (uint32_t i = 0; i < 100000; i++) {
        now += chance(&x, 12);
        const bool due = registry_breaker_deadline(r) <= now;
        uint32_t slot;
        while ((slot = registry_breaker_due(r, now)) != REGISTRY_NONE) {
            assert_true(due);
            assert_true(view_of(r, slot).control_up);
            probes++;
            if (chance(&x, 2) == 0) {
                (void)registry_breaker_probed(r, slot, true, now);
                trials += try_out(r, lanes, slot);
            }
        }
        assert_true(registry_breaker_deadline(r) > now);
        a_random_turn(r, &x, lanes, now);
        counts_hold(r, seed, i);
    }
    assert_true(probes > 1000 && trials > 100 && registry_breakers_opened(r) > 1000);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, registry_teardown)
    const struct CMUnitTest tests[] = {
        RULE(an_open_instance_gets_no_work_and_the_others_do),
        RULE(a_good_answer_or_a_failure_of_the_work_itself_ends_the_row),
        RULE(half_open_lets_exactly_one_attempt_out_and_its_success_closes),
        RULE(a_failed_trial_waits_longer),
        RULE(a_trial_that_was_called_off_makes_room_for_another),
        RULE(a_probe_without_an_answer_is_a_failed_one),
        RULE(who_cannot_be_asked_is_asked_later),
        RULE(a_new_incarnation_starts_closed),
        RULE(failures_over_many_instances_open_the_agent),
        RULE(one_success_anywhere_ends_the_agents_row),
        RULE(an_agent_whose_instances_are_all_open_is_open),
        RULE(crashes_of_incarnations_that_are_gone_open_the_agent),
        RULE(replies_that_are_lost_at_the_same_time_are_one_failure),
        RULE(a_crash_that_is_known_only_after_the_slot_was_given_away_counts),
        RULE(a_result_that_allows_no_more_work_names_no_agent),
        RULE(an_agents_trial_that_left_with_its_instance_makes_room),
        RULE(enabling_an_agent_closes_its_breakers),
        cmocka_unit_test(without_a_number_of_failures_there_are_no_breakers),
        RULE(the_block_may_be_copied),
        RULE(random_histories_keep_counts_and_deadlines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
