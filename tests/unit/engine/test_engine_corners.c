/* What is rare in an engine: plans that are many more than have room, a plan whose first rows are
 * lost, cycles that are slow, other defaults. */
#include <stdio.h>
#include <string.h>

#include "supervisor/engine/engine_internal.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

static struct house *open_house(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    return h;
}

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

/* ---- children without room ---- */

/* A plan with so many plans inside, none of which waits for another; their tasks begin so. */
static const char *submit_inside(struct house *h, char name, int n, int at_once)
{
    const char *steps = "";

    for (int i = 0; i < n; i++) {
        steps = house_text(h,
                           "%s%s{'stepId':'%c%d','task':'in','dependsOn':[],'plan':{'document':"
                           "{'steps':[{'stepId':'%c%d','agentId':'calc','skill':'do','task':"
                           "'do it'}]}}}",
                           steps, i > 0 ? "," : "", name, i, name, i);
    }
    return house_submit(h, "'plan':{'goal':'g','policy':{'maxConcurrency':%d},'steps':[%s]}",
                        at_once, steps);
}

/* It has begun, and ends. */
static void does(struct house *h, char name, int i)
{
    const char *step = house_text(h, "%c%d", name, i);

    if (house_work(h, "calc", step) == NULL) {
        fail_msg("%s has not begun", step);
    }
    house_answer(h, "calc", step, "'outcome':'completed','result':{'text':'ok'}");
    house_wait(h, 2);
}

/* Sixteen wait and nine of them are begun before others come: all in the order of their coming. */
static void children_wait_for_room_in_the_order_in_which_they_came(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *first;
    const char *second;

    (void)state;
    opt.plans_max = 2;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    first = submit_inside(h, 'a', 18, 18);
    house_wait(h, 1);
    for (int i = 1; i <= 9; i++) { /* a0 has its place until the end */
        does(h, 'a', i);
    }
    second = submit_inside(h, 'b', 40, 40);
    house_wait(h, 1);
    for (int i = 10; i < 18; i++) {
        assert_null(house_work(h, "calc", "b0"));
        does(h, 'a', i);
    }
    for (int i = 0; i < 40; i++) {
        does(h, 'b', i);
    }
    house_says(h, view(h, second), "status=completed; counts.completed=40");
    house_says(h, view(h, first), "status=running; counts.completed=17");
    does(h, 'a', 0);
    house_says(h, view(h, first), "status=completed; counts.completed=18");
    house_close(h);
}

/* The next child of a plan that has just had the room waits behind that of another plan. */
static void a_child_that_comes_later_overtakes_nobody(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.plans_max = 2;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    (void)submit_inside(h, 'a', 4, 2);
    (void)submit_inside(h, 'b', 2, 1);
    house_wait(h, 1);
    assert_null(house_work(h, "calc", "b0"));
    does(h, 'a', 0); /* the core asks for a2 now */
    assert_non_null(house_work(h, "calc", "b0"));
    assert_null(house_work(h, "calc", "a2"));
    does(h, 'a', 1);
    assert_non_null(house_work(h, "calc", "a2"));
    does(h, 'b', 0);
    assert_null(house_work(h, "calc", "b1"));
    does(h, 'a', 2);
    does(h, 'a', 3);
    does(h, 'b', 1);
    house_close(h);
}

/* What is inside a child needs room of its own: one place more at each depth. */
static void a_child_of_a_child_has_room_when_no_child_has(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *id;

    (void)state;
    opt.plans_max = 1;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'p','task':'in','plan':{'document':{'steps':[{"
           "'stepId':'q','task':'in','plan':{'document':{'steps':[" STEP("x", "") "]}}}]}}}]}");
    house_wait(h, 1);
    house_is(h, house_work(h, "calc", NULL), "task", "do x");
    house_done(h, "calc", "'result':{'text':'ok'}");
    house_wait(h, 2);
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

/* Nobody waits for the room that a cancelled plan's child would have had. */
static void who_waits_for_room_and_is_cancelled_is_never_begun(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *first;
    const char *second;

    (void)state;
    opt.plans_max = 2;
    h = house_open_with(&opt);
    house_join(h, "calc", 8);
    first = submit_inside(h, 'a', 2, 2);
    house_wait(h, 1);
    second = submit_inside(h, 'b', 2, 2);
    house_wait(h, 1);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", second);
    house_wait(h, 1);
    house_says(h, view(h, second), "status=cancelled");
    does(h, 'a', 0);
    does(h, 'a', 1);
    assert_null(house_work(h, "calc", NULL));
    house_says(h, view(h, first), "status=completed");
    house_close(h);
}

/* ---- a plan whose first rows are lost ---- */

static enum bt_code lose_row(struct journal *j, uint64_t pos, const struct journal_row *row,
                             struct bt_error *err)
{
    (void)j, (void)pos, (void)row, (void)err;
    return BT_OK;
}

/* Its document is there: the plan begins, and its event describes it as a submission's does. */
static void a_plan_without_rows_begins_and_is_described_from_its_document(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    h->ops.append = lose_row;
    id = house_submit(
        h, "'plan':{'goal':'g','description':'what it is about','steps':[" STEP("a", "") "]}");
    house_restart(h);
    house_join(h, "calc", 4);
    house_wait(h, 1);
    house_says(h, house_event(h, "plan_generated"),
               house_text(h, "planId=%s; description=what it is about; query=g; planSeq=1", id));
    house_done(h, "calc", "'result':{'text':'5'}");
    house_wait(h, 1);
    house_says(h, view(h, id), "status=completed");
    house_close(h);
}

/* ---- who may ask ---- */

/* Other hosts have contexts of their own, which this one does not have then. */
static void other_hosts_take_no_place_of_this_one(void **state)
{
    (void)state;
    for (int remote = 0; remote < 2; remote++) {
        struct engine_options opt = house_options();
        struct house *h;
        opt.remote_url = remote == 1 ? "tls+tcp://127.0.0.1:0" : "";
        h = house_open_with(&opt);
        assert_int_equal(fake_link_server(h->link, 0)->contexts,
                         remote == 1 ? ENGINE_CONTEXTS - ENGINE_REMOTE_CONTEXTS : ENGINE_CONTEXTS);
        if (remote == 1) {
            assert_int_equal(fake_link_server(h->link, 1)->contexts, ENGINE_REMOTE_CONTEXTS);
        }
        house_close(h);
    }
}

/* ---- slow cycles, other defaults ---- */

static void a_cycle_counts_in_each_row_that_it_exceeds(void **state)
{
    static const uint64_t us[] = {5000, 5001, 20000, 20001, 100000, 100001, 7};
    struct house *h = open_house();
    const struct engine_stats *n = &h->engine->stats;

    (void)state;
    *(struct engine_stats *)(uintptr_t)n = (struct engine_stats){0};
    for (size_t i = 0; i < sizeof us / sizeof us[0]; i++) {
        engine_cycle_took(h->engine, us[i]);
    }
    assert_int_equal(n->cycles_over_5ms, 5);
    assert_int_equal(n->cycles_over_20ms, 3);
    assert_int_equal(n->cycles_over_100ms, 1);
    assert_int_equal(n->longest_cycle_us, 100001);
    house_close(h);
}

static void new_defaults_are_those_of_the_plans_that_follow(void **state)
{
    struct house *h = open_house();
    struct plan_defaults other = plan_defaults_builtin();
    const char *before;
    const char *after;

    (void)state;
    other.max_fallbacks = 77;
    before = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    engine_set_defaults(h->engine, &other, "agent:calc");
    after = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]}");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','document':true", before),
               "document.policy.maxFallbacks=5");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s','document':true", after),
               "document.policy.maxFallbacks=77");
    house_refused(h, "INVALID", "calc", "plan.submit", "'goal':'something to plan'");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_wait_for_room_in_the_order_in_which_they_came),
        cmocka_unit_test(a_child_that_comes_later_overtakes_nobody),
        cmocka_unit_test(a_child_of_a_child_has_room_when_no_child_has),
        cmocka_unit_test(who_waits_for_room_and_is_cancelled_is_never_begun),
        cmocka_unit_test(a_plan_without_rows_begins_and_is_described_from_its_document),
        cmocka_unit_test(other_hosts_take_no_place_of_this_one),
        cmocka_unit_test(a_cycle_counts_in_each_row_that_it_exceeds),
        cmocka_unit_test(new_defaults_are_those_of_the_plans_that_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
