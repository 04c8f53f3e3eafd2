/* The schedules in memory, beside a plain list: whatever is put, replaced, moved and removed, the
 * one that is due first stands first, each is found by its name, and a plan by its id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/schedule/schedule_internal.h"
#include "tests/support/memory.h"
#include "tests/support/random.h"

enum { NAMES = 60, STEPS = 4000, PLANS = 200 };

struct shadow {
    struct schedule *p; /* NULL = it is not there */
    msec due;
    uint32_t open;
};

struct shadow_plan {
    int of; /* -1 = not open */
    uint64_t ix;
};

static struct world {
    struct schedules s;
    struct shadow by[NAMES];
    struct shadow_plan plans[PLANS];
    uint64_t ix;
    struct rng random;
} w;

static struct str name_of(int i, char text[16])
{
    (void)snprintf(text, 16, "s%d", i);
    return str_from(text);
}

static const char *plan_of(int i)
{
    static char text[UUID_TEXT_LEN + 1];

    (void)snprintf(text, sizeof text, "0190f3c2-7a1b-7c3d-9e4f-%012x", (unsigned)i);
    return text;
}

static struct schedule *fresh(int i)
{
    char text[16];
    struct schedule *p;
    struct bt_error err;

    assert_int_equal(schedule_new(name_of(i, text), STR_LIT("ann"), &p, &err), BT_OK);
    assert_string_equal(p->name, text);
    assert_string_equal(p->owner, "ann");
    return p;
}

static void put(int i, msec due)
{
    struct shadow *mine = &w.by[i];
    struct schedule *p = fresh(i);
    struct bt_error err;

    p->due = due;
    if (mine->p == NULL) {
        p->ix = ++w.ix;
        assert_int_equal(table_add(&w.s, p, &err), BT_OK);
    } else {
        p->ix = mine->p->ix;
        p->open = mine->p->open;
        table_replace(&w.s, mine->p, p);
    }
    mine->p = p;
    mine->due = due;
}

static void take_out(int i)
{
    table_remove(&w.s, w.by[i].p);
    w.by[i] = (struct shadow){.p = NULL};
}

static void begin_plan(int plan, int i)
{
    struct bt_error err;

    assert_int_equal(table_open(&w.s, w.by[i].p, plan_of(plan), &err), BT_OK);
    w.plans[plan] = (struct shadow_plan){i, w.by[i].p->ix};
    w.by[i].open++;
}

/* The plan of one that was removed is nobody's, also when the name is there again. */
static void end_plan(int plan)
{
    const int i = w.plans[plan].of;
    const bool there = w.by[i].p != NULL && w.by[i].p->ix == w.plans[plan].ix;

    assert_ptr_equal(table_close(&w.s, str_from(plan_of(plan))), there ? w.by[i].p : NULL);
    assert_null(table_close(&w.s, str_from(plan_of(plan))));
    w.by[i].open -= there;
    w.plans[plan].of = -1;
}

static void check(void)
{
    msec first = MSEC_NEVER;
    uint32_t n = 0;
    uint32_t open = 0;

    for (int i = 0; i < NAMES; i++) {
        char text[16];
        assert_ptr_equal(table_find(&w.s, name_of(i, text)), w.by[i].p);
        if (w.by[i].p != NULL) {
            n++;
            first = w.by[i].due < first ? w.by[i].due : first;
            assert_int_equal(w.by[i].p->open, w.by[i].open);
            assert_ptr_equal(w.s.at[w.by[i].p->slot], w.by[i].p);
            assert_int_equal(w.s.heap[w.by[i].p->heap_at], w.by[i].p->slot);
        }
    }
    for (int i = 0; i < PLANS; i++) {
        open += w.plans[i].of >= 0;
    }
    assert_int_equal(w.s.n, n);
    assert_int_equal(w.s.open_n, open);
    assert_true(n == 0 || w.s.at[w.s.heap[0]]->due == first);
}

static void step(void)
{
    const int i = (int)rng_below(&w.random, NAMES);
    const int plan = (int)rng_below(&w.random, PLANS);
    const msec due = rng_below(&w.random, 20) == 0 ? MSEC_NEVER : rng_below(&w.random, 1000);

    if (w.plans[plan].of >= 0) {
        end_plan(plan);
    } else if (w.by[i].p == NULL || rng_below(&w.random, 8) == 0) {
        put(i, due);
    } else if (rng_below(&w.random, 8) == 0) {
        take_out(i);
    } else if (rng_below(&w.random, 2) == 0) {
        table_due(&w.s, w.by[i].p, due);
        w.by[i].due = due;
    } else {
        begin_plan(plan, i);
    }
}

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.random = rng_seeded("test_table");
    for (int i = 0; i < PLANS; i++) {
        w.plans[i].of = -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < w.s.n; i++) {
        schedule_free(w.s.at[i]);
    }
    for (uint32_t i = 0; i < w.s.open_n; i++) {
        free(w.s.open[i]);
    }
    free(w.s.at);
    free(w.s.heap);
    free(w.s.open);
    map_done(&w.s.by_name);
    map_done(&w.s.by_plan);
    return 0;
}

static void the_one_that_is_due_first_stands_first_whatever_is_done(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        step();
        check();
    }
}

/* Each comes off the front in the order of its time, whatever the order of their making. */
static void they_come_in_the_order_of_their_times(void **state)
{
    msec last = 0;

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        put(i, (msec)(i * 37 % NAMES) * 10);
    }
    for (uint32_t n = NAMES; n > 0; n--) {
        struct schedule *p = w.s.at[w.s.heap[0]];
        assert_int_equal(w.s.n, n);
        assert_true(p->due >= last);
        last = p->due;
        take_out((int)strtol(p->name + 1, NULL, 10));
    }
    assert_int_equal(last, (NAMES - 1) * 10);
}

static void a_new_one_has_no_time_no_end_and_a_seed_of_its_name(void **state)
{
    struct schedule *one = fresh(1);
    struct schedule *same = fresh(1);
    struct schedule *other = fresh(2);

    (void)state;
    assert_true(one->due == MSEC_NEVER && one->rule.end_ms == MSEC_NEVER);
    assert_true(one->seed == same->seed && one->seed != other->seed);
    assert_true(one->life == SCHEDULE_ACTIVE && one->reason == NULL);
    schedule_free(one);
    schedule_free(same);
    schedule_free(other);
    schedule_free(NULL);
}

/* Whether the allocation fails that is made after so many others. */
static bool failed_at(long n, enum bt_code code, const struct bt_error *err)
{
    const bool failed = memory_left < 0 && n >= 0;

    memory_left = -1;
    assert_int_equal(code, failed ? BT_NOMEM : BT_OK);
    assert_true(!failed || (err->code == BT_NOMEM && err->msg[0] != 0));
    return failed;
}

static void without_memory_nothing_is_there_and_the_next_one_is(void **state)
{
    struct schedule *p;
    struct bt_error err;
    int failures = 0;
    enum bt_code code;

    (void)state;
    memory_left = 0;
    code = schedule_new(STR_LIT("n"), STR_LIT(""), &p, &err);
    assert_true(failed_at(0, code, &err));
    assert_null(p);
    for (int i = 0; i < NAMES; i++) { /* the tables grow on the way */
        for (long n = 0;; n++) {
            p = fresh(i);
            p->ix = ++w.ix;
            memory_left = n;
            code = table_add(&w.s, p, &err); /* takes it over in any case */
            if (!failed_at(n, code, &err)) {
                break;
            }
            failures++;
            check();
        }
        w.by[i] = (struct shadow){.p = p, .due = MSEC_NEVER};
        check();
    }
    assert_true(failures > 6);
    failures = 0;
    for (int i = 0; i < PLANS; i++) {
        for (long n = 0;; n++) {
            memory_left = n;
            code = table_open(&w.s, w.by[i % NAMES].p, plan_of(i), &err);
            if (!failed_at(n, code, &err)) {
                break;
            }
            failures++;
            check();
        }
        w.plans[i] = (struct shadow_plan){i % NAMES, w.by[i % NAMES].p->ix};
        w.by[i % NAMES].open++;
        check();
    }
    assert_true(failures >= PLANS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_one_that_is_due_first_stands_first_whatever_is_done),
        TEST(they_come_in_the_order_of_their_times),
        TEST(without_memory_nothing_is_there_and_the_next_one_is),
        TEST(a_new_one_has_no_time_no_end_and_a_seed_of_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
