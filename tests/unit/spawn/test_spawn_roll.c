/* Rolling restarts, stops and removals of an agent's processes. */
#include <stdio.h>
#include <string.h>

#include "supervisor/spawn/roll.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

enum { MAX = 5 };

struct world {
    struct roll rolls[MAX];
    struct roll_process of[MAX];
    bool draining[MAX], gone[MAX], broken;
    uint32_t n;
    char trace[512];
};

static void make(struct world *w, uint32_t n)
{
    *w = (struct world){.n = n};
    for (uint32_t i = 0; i < n; i++) {
        w->of[i] = (struct roll_process){.roll = &w->rolls[i], .live = true, .up = true};
    }
}

static void note(struct world *w, char what, uint32_t ix)
{
    const size_t at = strlen(w->trace);

    (void)snprintf(w->trace + at, sizeof w->trace - at, "%c%c ", what, (char)('a' + ix));
}

static uint32_t up(const struct world *w)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        n += w->of[i].up ? 1 : 0;
    }
    return n;
}

/* Carries out all orders that are due. */
static uint32_t orders(struct world *w)
{
    static const char letters[] = "d-+x.!";
    struct roll_order order;
    uint32_t n = 0;

    while (roll_next(w->of, w->n, &order)) {
        struct roll_process *p = &w->of[order.ix];
        assert_true(n++ < 100);
        note(w, letters[order.type], order.ix);
        if (order.type == ROLL_ORDER_DRAIN || order.type == ROLL_ORDER_STOP) {
            p->up = false;
            w->draining[order.ix] = p->live;
        } else if (order.type == ROLL_ORDER_START) {
            assert_false(p->live);
            p->live = !w->broken;
            p->failed = w->broken;
            w->draining[order.ix] = false;
        } else if (order.type == ROLL_ORDER_REMOVE) {
            w->gone[order.ix] = true;
        }
    }
    return n;
}

/* What is told to end ends, what was started registers, work ends. */
static void settle(struct world *w)
{
    for (int turn = 0; turn < 100; turn++) {
        bool moved = orders(w) > 0;
        for (uint32_t i = 0; i < w->n && !moved; i++) {
            struct roll_process *p = &w->of[i];
            moved = p->busy > 0 || (p->live && !p->up);
            if (p->busy > 0) {
                p->busy--;
            } else if (w->draining[i] && w->rolls[i].phase == ROLL_STOPS) {
                p->live = false;
            } else if (p->live && !w->draining[i]) {
                p->up = true;
            }
        }
        if (!moved) {
            return;
        }
    }
    fail_msg("does not come to rest: %s", w->trace);
}

static void restarts_go_one_after_the_other(void **state)
{
    struct world w;

    (void)state;
    make(&w, 3);
    for (uint32_t i = 0; i < 3; i++) {
        w.rolls[i].intent = ROLL_RESTART;
    }
    settle(&w);
    assert_string_equal(w.trace, "da -a +a .a db -b +b .b dc -c +c .c ");
}

static void work_is_finished_first(void **state)
{
    struct world w;

    (void)state;
    make(&w, 1);
    w.of[0].busy = 2;
    w.rolls[0].intent = ROLL_RESTART;
    (void)orders(&w);
    assert_string_equal(w.trace, "da ");
    w.of[0].busy = 1;
    assert_int_equal(orders(&w), 0);
    w.of[0].busy = 0;
    (void)orders(&w);
    assert_string_equal(w.trace, "da -a ");
}

/* Its work is gone with it: it is not told to stop, also when the books still have the work. */
static void one_that_ends_while_it_drains_is_started_again_at_once(void **state)
{
    (void)state;
    for (uint32_t busy = 0; busy < 2; busy++) {
        struct world w;
        make(&w, 1);
        w.of[0].busy = 2;
        w.rolls[0].intent = ROLL_RESTART;
        (void)orders(&w);
        w.of[0].busy = busy;
        w.of[0].live = false;
        (void)orders(&w);
        assert_string_equal(w.trace, "da +a ");
    }
}

static void what_is_not_up_is_restarted_first_and_at_once(void **state)
{
    struct world w;

    (void)state;
    make(&w, 2);
    w.of[1] = (struct roll_process){.roll = &w.rolls[1]};
    w.rolls[0].intent = w.rolls[1].intent = ROLL_RESTART;
    (void)orders(&w);
    assert_string_equal(w.trace, "db +b ");
    w.of[1].up = true;
    settle(&w);
    assert_string_equal(w.trace, "db +b .b da -a +a .a ");
}

static void one_that_does_not_come_up_halts_the_others(void **state)
{
    struct world w;

    (void)state;
    make(&w, 3);
    w.broken = true;
    for (uint32_t i = 0; i < 3; i++) {
        w.rolls[i].intent = ROLL_RESTART;
    }
    settle(&w);
    assert_string_equal(w.trace, "da -a +a !a ");
    assert_int_equal(up(&w), 2);
}

static void removals_and_stops_begin_at_once(void **state)
{
    struct world w;

    (void)state;
    make(&w, 3);
    w.rolls[0].intent = ROLL_REMOVE;
    w.rolls[1].intent = ROLL_STOP;
    settle(&w);
    assert_string_equal(w.trace, "da -a db -b xa .b ");
    assert_true(w.gone[0]);
    w.rolls[2].intent = ROLL_RESTART; /* the last one: there is no other to wait for */
    settle(&w);
    assert_int_equal(up(&w), 1);
}

/* One that is to end is none to wait for, and one that comes up is. */
static void a_restart_waits_for_those_that_stay(void **state)
{
    static const enum roll_intent ends[] = {ROLL_REMOVE, ROLL_STOP};
    struct world w;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        make(&w, 2);
        w.rolls[1].intent = ends[i];
        (void)orders(&w);
        w.rolls[0].intent = ROLL_RESTART;
        (void)orders(&w);
        assert_string_equal(w.trace, "db -b da -a ");
    }
    make(&w, 2);
    w.of[1].up = false;
    w.rolls[0].intent = ROLL_RESTART;
    assert_int_equal(orders(&w), 0);
    w.of[1].up = true;
    (void)orders(&w);
    assert_string_equal(w.trace, "da -a ");
}

/* With two or more that are to stay, one is up at any moment, whatever is restarted when. */
static void capacity_is_never_zero(void **state)
{
    struct rng rng = rng_seeded("spawn roll");

    (void)state;
    for (int run = 0; run < 2000; run++) {
        struct world w;
        make(&w, 2 + (uint32_t)rng_below(&rng, MAX - 1));
        for (int k = 0; k < 60; k++) {
            const uint32_t ix = (uint32_t)rng_below(&rng, w.n);
            struct roll_process *p = &w.of[ix];
            if (rng_below(&rng, 3) == 0 && w.rolls[ix].intent == ROLL_KEEP) {
                w.rolls[ix].intent = ROLL_RESTART;
            } else if (p->busy > 0) {
                p->busy--;
            } else if (p->up && rng_below(&rng, 2) == 0) {
                p->busy = 2;
            } else if (w.draining[ix] && w.rolls[ix].phase == ROLL_STOPS) {
                p->live = false;
            } else if (p->live && !w.draining[ix]) {
                p->up = true;
            }
            w.trace[0] = 0;
            (void)orders(&w);
            assert_true(up(&w) >= 1);
        }
        settle(&w);
        assert_int_equal(up(&w), w.n);
    }
}

static void what_a_process_does_has_a_name_until_nobody_wants_anything_of_it(void **state)
{
    static const char *const names[] = {"waits to restart", "drains", "stops", "starts again"};
    static const enum roll_phase phases[] = {ROLL_WAITS, ROLL_DRAINS, ROLL_STOPS, ROLL_STARTS};

    (void)state;
    for (uint32_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        struct roll roll = {.intent = ROLL_RESTART, .phase = phases[i]};
        assert_string_equal(roll_phase_name(&roll), names[i]);
        roll.intent = ROLL_KEEP;
        assert_string_equal(roll_phase_name(&roll), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarts_go_one_after_the_other),
        cmocka_unit_test(work_is_finished_first),
        cmocka_unit_test(one_that_ends_while_it_drains_is_started_again_at_once),
        cmocka_unit_test(what_is_not_up_is_restarted_first_and_at_once),
        cmocka_unit_test(one_that_does_not_come_up_halts_the_others),
        cmocka_unit_test(removals_and_stops_begin_at_once),
        cmocka_unit_test(a_restart_waits_for_those_that_stay),
        cmocka_unit_test(capacity_is_never_zero),
        cmocka_unit_test(what_a_process_does_has_a_name_until_nobody_wants_anything_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
