/*
 * Random histories of a group. Crashes at rest are compared with a small model of OTP's supervisor:
 * the same members are stopped and started in the same order, and it gives up at the same crash.
 * Crashes, stops and starts at any moment are held against invariants.
 */
#include "tests/support/random.h"
#include "tests/unit/spawn/group_rig.h"

/* ---- OTP's supervisor, as its manual describes it ---- */

struct otp_child {
    enum policy_restart restart;
    bool alive, deleted; /* a temporary child that ended is deleted */
};

struct otp {
    enum group_strategy strategy;
    struct otp_child children[RIG_MAX];
    uint32_t n;
    msec restarts[64]; /* the latest first */
    uint32_t restarts_n;
    uint32_t max_restarts;
    msec max_seconds_ms;
    bool terminated;
    char trace[RIG_TRACE];
};

static void otp_note(struct otp *o, char what, uint32_t ix)
{
    const size_t at = strlen(o->trace);

    (void)snprintf(o->trace + at, sizeof o->trace - at, "%c%c ", what, (char)('a' + ix));
}

static void otp_terminate_from(struct otp *o, uint32_t first, bool for_good)
{
    for (uint32_t i = o->n; i-- > first;) {
        struct otp_child *c = &o->children[i];
        if (c->alive) {
            otp_note(o, '-', i);
            c->alive = false;
            c->deleted = c->restart == POLICY_TEMPORARY && !for_good;
        }
    }
}

static void otp_start_from(struct otp *o, uint32_t first)
{
    for (uint32_t i = first; i < o->n; i++) {
        if (!o->children[i].alive && !o->children[i].deleted) {
            otp_note(o, '+', i);
            o->children[i].alive = true;
        }
    }
}

/* More than max_restarts within the period: the supervisor terminates its children and itself. */
static bool otp_add_restart(struct otp *o, msec now)
{
    uint32_t kept = 0;
    msec all[64] = {now};

    for (uint32_t i = 0; i < o->restarts_n && kept < 62; i++) {
        if (now - o->restarts[i] < o->max_seconds_ms) {
            all[++kept] = o->restarts[i];
        }
    }
    memcpy(o->restarts, all, sizeof all);
    o->restarts_n = kept + 1;
    return o->restarts_n <= o->max_restarts;
}

static void otp_exit(struct otp *o, uint32_t ix, bool normal, msec now)
{
    struct otp_child *c = &o->children[ix];

    c->alive = false;
    if (c->restart == POLICY_TEMPORARY) {
        c->deleted = true;
        return;
    }
    if (c->restart == POLICY_TRANSIENT && normal) {
        return;
    }
    if (!otp_add_restart(o, now)) {
        o->terminated = true;
        otp_terminate_from(o, 0, true);
        return;
    }
    if (o->strategy == GROUP_ONE_FOR_ONE) {
        otp_note(o, '+', ix);
        c->alive = true;
        return;
    }
    otp_terminate_from(o, o->strategy == GROUP_ONE_FOR_ALL ? 0 : ix + 1, false);
    otp_start_from(o, o->strategy == GROUP_ONE_FOR_ALL ? 0 : ix);
}

static void at_rest_it_is_otp(void **state)
{
    struct rng rng = rng_seeded("spawn group otp");

    (void)state;
    for (int run = 0; run < 2000; run++) {
        const uint32_t n = 1 + (uint32_t)rng_below(&rng, RIG_MAX);
        enum policy_restart restart[RIG_MAX];
        struct otp otp = {.strategy = (enum group_strategy)rng_below(&rng, GROUP_STRATEGY_COUNT),
                          .n = n};
        struct rig r;

        for (uint32_t i = 0; i < n; i++) {
            restart[i] = (enum policy_restart)rng_below(&rng, POLICY_RESTART_COUNT);
            otp.children[i].restart = restart[i];
        }
        rig_init(&r, otp.strategy, restart, n);
        r.group.set.intensity = 1 + (uint32_t)rng_below(&rng, 6);
        r.group.set.backoff_min_ms = r.group.set.backoff_max_ms = 1;
        otp.max_restarts = r.group.set.intensity - 1; /* Baton counts crashes, OTP restarts */
        otp.max_seconds_ms = r.group.set.period_ms;
        rig_settle(&r);
        otp_start_from(&otp, 0);
        for (int k = 0; k < 40 && !otp.terminated; k++) {
            const uint32_t ix = (uint32_t)rng_below(&rng, n);
            const bool normal = rng_below(&rng, 3) == 0;

            r.now += rng_below(&rng, 4) == 0 ? 1 + rng_below(&rng, 12000) : rng_below(&rng, 50);
            if (!otp.children[ix].alive) {
                continue;
            }
            otp_exit(&otp, ix, normal, r.now);
            rig_end(&r, ix, normal);
            rig_settle(&r);
            assert_string_equal(r.trace, otp.trace);
            assert_int_equal(r.gave_up, otp.terminated);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(policy_is_live(&r.children[i]), otp.children[i].alive);
            }
        }
    }
}

/* ---- at any moment ---- */

/* Before a start: nothing that must come to rest runs, and those before it were ready once. */
static void check_order(const struct rig *r, const struct group_order *order)
{
    assert_true(order->ix < r->n);
    if (order->type == GROUP_ORDER_STOP) {
        assert_true(policy_is_live(&r->children[order->ix]) ||
                    r->children[order->ix].state == POLICY_HELD);
        return;
    }
    assert_int_equal(r->group.state, GROUP_RUNS);
    assert_false(policy_is_live(&r->children[order->ix]));
    assert_true(r->now >= r->members[order->ix].not_before);
    assert_false(r->members[order->ix].parked);
    for (uint32_t i = 0; i < r->n; i++) {
        assert_false(r->members[i].down && policy_is_live(&r->children[i]));
        assert_true(i >= order->ix || r->members[i].ready || r->members[i].parked ||
                    r->members[i].ended);
    }
}

static void carry_out(struct rig *r)
{
    struct group_order order;
    int n = 0;

    while (group_next(&r->group, r->members, r->n, r->now, &order)) {
        assert_true(n++ < 100);
        check_order(r, &order);
        rig_child(r, order.ix,
                  &(struct policy_event){.type = order.type == GROUP_ORDER_START ? POLICY_ON_START
                                                                                 : POLICY_ON_STOP,
                                         .now = r->now,
                                         .grace_ms = order.grace_ms});
    }
}

static void random_event(struct rig *r, struct rng *rng)
{
    const uint32_t ix = (uint32_t)rng_below(rng, r->n);
    const struct policy_child *child = &r->children[ix];

    r->now += rng_below(rng, 3) == 0 ? rng_below(rng, 3000) : 0;
    switch (rng_below(rng, 8)) {
    case 0:
    case 1:
    case 2:
        if (child->state == POLICY_STARTING) {
            rig_send(r, ix, POLICY_ON_REGISTERED, false);
        }
        break;
    case 3:
    case 4:
        if (policy_is_live(child)) {
            rig_end(r, ix, rng_below(rng, 2) == 0);
        }
        break;
    case 5:
        rig_send(r, ix, rng_below(rng, 2) == 0 ? POLICY_ON_LOST : POLICY_ON_KILL, false);
        break;
    case 6:
        if (rng_below(rng, 2) == 0) {
            group_park(r->members, ix);
            rig_send(r, ix, POLICY_ON_STOP, false);
        } else {
            group_start(&r->group, r->members, r->n, ix);
            r->gave_up = false;
        }
        break;
    default:
        rig_send(r, ix, POLICY_ON_TICK, false);
        break;
    }
    r->trace[0] = 0;
    carry_out(r);
}

/* Whatever happened: when all obey, all that is wanted is up, or the group has given up and nothing
 * runs; and after a stop nothing runs. */
static void at_any_moment_the_rules_hold(void **state)
{
    struct rng rng = rng_seeded("spawn group");

    (void)state;
    for (int run = 0; run < 1000; run++) {
        const uint32_t n = 1 + (uint32_t)rng_below(&rng, RIG_MAX);
        enum policy_restart restart[RIG_MAX];
        struct rig r;

        for (uint32_t i = 0; i < n; i++) {
            restart[i] = (enum policy_restart)rng_below(&rng, POLICY_RESTART_COUNT);
        }
        rig_init(&r, (enum group_strategy)rng_below(&rng, GROUP_STRATEGY_COUNT), restart, n);
        carry_out(&r);
        for (int i = 0; i < 300; i++) {
            random_event(&r, &rng);
        }
        rig_settle(&r);
        for (uint32_t i = 0; i < n; i++) {
            const struct group_member *m = &r.members[i];
            const bool wanted = !m->parked && !m->ended && r.group.state == GROUP_RUNS;
            assert_int_equal(r.children[i].state == POLICY_UP, wanted);
            assert_int_equal(policy_is_live(&r.children[i]), wanted);
        }
        group_stop(&r.group, rng_below(&rng, 2) == 0 ? MSEC_NEVER : r.now + rng_below(&rng, 5000));
        rig_settle(&r);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(r.children[i].state, POLICY_STOPPED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_rest_it_is_otp),
        cmocka_unit_test(at_any_moment_the_rules_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
