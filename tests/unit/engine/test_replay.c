/* What a plan's rows make of it after a kill is what it was: the bytes of the runs of all open
 * plans, their state and schedules, for each thing that a plan can do but act at an agent. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/engine_internal.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define WAIT(id, more) "{'stepId':'" id "','wait':{'signal':'go'}" more "}"

enum { PLANS_MAX = 8 };

struct kept {
    char id[UUID_TEXT_LEN + 1];
    void *run;
    size_t size;
    struct blob_ref state;
};

static void since(msec *io, msec from)
{
    *io -= *io == 0 || *io == MSEC_NEVER ? 0 : from;
}

/* The monotonic clock of a new start is another one: times count from the plan's own beginning. */
static void count_from_its_start(struct run *run)
{
    const msec from = run->started;

    since(&run->started, from);
    since(&run->deadline, from);
    since(&run->review_deadline, from);
    for (uint32_t i = 0; i < run->n_steps; i++) {
        struct run_step *s = &run->steps[i];
        since(&s->started, from);
        since(&s->deadline, from);
        since(&s->limit, from);
        since(&s->attempt_end, from);
    }
}

static void *copy_of(const struct open_plan *p, size_t *ret_size)
{
    const struct run *run = core_block_run(p->block);
    void *copy = malloc(*ret_size = run_bytes(run));

    assert_non_null(copy);
    memcpy(copy, run, *ret_size);
    count_from_its_start(copy);
    return copy;
}

/* Kills the daemon and starts it again; every open plan must be as it was. Returns how many are
 * open. */
static uint32_t comes_back_as_it_was(struct house *h)
{
    struct kept kept[PLANS_MAX];
    uint32_t n = 0;

    for (struct open_plan *p = NULL; (p = open_plan_next(h->engine, p)) != NULL; n++) {
        struct kept *k = &kept[n];
        assert_true(n < PLANS_MAX);
        memcpy(k->id, p->id, sizeof k->id);
        k->run = copy_of(p, &k->size);
        k->state = open_plan_more(p)->state;
    }
    house_restart(h);
    for (uint32_t i = 0; i < n; i++) {
        const struct open_plan *p = open_plan_by_id(h->engine, str_from(kept[i].id));
        assert_non_null(p);
        size_t size;
        void *run = copy_of(p, &size);
        assert_int_equal(size, kept[i].size);
        assert_memory_equal(run, kept[i].run, size);
        free(run);
        assert_memory_equal(&open_plan_more(p)->state, &kept[i].state, sizeof kept[i].state);
        free(kept[i].run);
    }
    return n;
}

static struct house *with(const char *steps)
{
    struct house *h = house_open();

    house_join(h, "calc", 4);
    (void)house_submit(h, "'plan':{'goal':'g','steps':[%s]}", steps);
    house_wait(h, 1);
    return h;
}

static void steps_with_conditions_come_back_as_they_were(void **state)
{
    struct house *h = with(STEP("a", ",'dependsOn':[]") "," WAIT(
        "t",
        ",'when':{'results.a.data.n':"
        "{'gt':3}}") "," WAIT("f", ",'when':{'results.a.data.n':{'lt':3}}") "," WAIT("w",
                                                                                     ",'dependsOn':"
                                                                                     "['f']"));

    (void)state;
    house_done(h, "calc", "'result':{'data':{'n':5}}");
    house_wait(h, 1);
    assert_int_equal(comes_back_as_it_was(h), 1);
    house_close(h);
}

static void items_come_back_as_they_were(void **state)
{
    struct house *h = with("{'stepId':'m','task':'each','forEach':[1,2],'steps':[" STEP(
        "x", "") "," WAIT("w", ",'dependsOn':['x']") "]}");

    (void)state;
    house_done(h, "calc", "'result':{'data':1}");
    house_done(h, "calc", "'result':{'data':2}");
    house_wait(h, 1);
    assert_int_equal(comes_back_as_it_was(h), 2);
    house_close(h);
}

static void rounds_come_back_as_they_were(void **state)
{
    struct house *h = with(STEP(
        "r", ",'repeat':{'until':{'results.r.data.done':{'eq':true}},'max':3,'delayMs':60000}"));

    (void)state;
    house_done(h, "calc", "'result':{'data':{'done':false}}");
    house_wait(h, 1);
    assert_in_range(comes_back_as_it_was(h), 1, 2);
    house_close(h);
}

static void plans_inside_come_back_as_they_were(void **state)
{
    struct house *h = with("{'stepId':'p','task':'in','plan':{'document':{'steps':[" STEP(
        "x", "") "," WAIT("w", ",'dependsOn':['x']") "]}}}");

    (void)state;
    house_done(h, "calc", "'result':{'data':1}");
    house_wait(h, 1);
    assert_int_equal(comes_back_as_it_was(h), 2);
    house_close(h);
}

static void waits_for_times_and_dates_come_back_as_they_were(void **state)
{
    struct house *h = with("{'stepId':'t','wait':{'forMs':86400000},'dependsOn':[]},"
                           "{'stepId':'d','wait':{'until':'2100-01-01T00:00:00Z'},'dependsOn':[]}");

    (void)state;
    assert_int_equal(comes_back_as_it_was(h), 1);
    house_close(h);
}

static void signals_come_back_taken_or_kept(void **state)
{
    struct house *h = with(WAIT("a", "") ",{'stepId':'t','wait':{'forMs':60000},'dependsOn':['a']}"
                                         "," WAIT("b", ",'dependsOn':['t']"));
    const char *id = open_plan_next(h->engine, NULL)->id;

    (void)state;
    (void)house_ok(h, "plan.signal", "'planId':'%s','name':'go','data':{'n':1}", id);
    (void)house_ok(h, "plan.signal", "'planId':'%s','name':'go','clientKey':'k'", id);
    house_wait(h, 1);
    assert_int_equal(comes_back_as_it_was(h), 1);
    house_close(h);
}

static void what_can_be_undone_comes_back_as_it_was(void **state)
{
    struct house *h = with(
        STEP("a", ",'effects':'idempotent','compensate':{'skill':'do','task':'undo'}") "," WAIT(
            "w", ",'dependsOn':['a']"));

    (void)state;
    house_done(h, "calc", "'result':{'data':1}");
    house_wait(h, 1);
    assert_int_equal(comes_back_as_it_was(h), 1);
    house_close(h);
}

static void the_state_of_a_plan_comes_back_as_it_was(void **state)
{
    struct house *h = with(STEP("a", "") "," WAIT("w", ",'dependsOn':['a']"));

    (void)state;
    house_done(h, "calc", "'result':{'data':1,'state':{'seen':7}}");
    house_wait(h, 1);
    assert_true(open_plan_more(open_plan_next(h->engine, NULL))->state.id != 0);
    assert_int_equal(comes_back_as_it_was(h), 1);
    house_close(h);
}

static void schedules_come_back_as_they_were(void **state)
{
    struct house *h = house_open();
    char *before;

    (void)state;
    (void)house_ok(h, "schedule.put",
                   "'name':'s','everyMs':1000,'plan':{'steps':[" WAIT("w", "") "]}");
    house_wait(h, 2500);
    before = strdup(house_ok(h, "schedule.list", " "));
    assert_non_null(before);
    assert_in_range(comes_back_as_it_was(h), 1, PLANS_MAX);
    assert_string_equal(house_ok(h, "schedule.list", " "), before);
    free(before);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_with_conditions_come_back_as_they_were),
        cmocka_unit_test(items_come_back_as_they_were),
        cmocka_unit_test(rounds_come_back_as_they_were),
        cmocka_unit_test(plans_inside_come_back_as_they_were),
        cmocka_unit_test(waits_for_times_and_dates_come_back_as_they_were),
        cmocka_unit_test(signals_come_back_taken_or_kept),
        cmocka_unit_test(what_can_be_undone_comes_back_as_it_was),
        cmocka_unit_test(the_state_of_a_plan_comes_back_as_it_was),
        cmocka_unit_test(schedules_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
