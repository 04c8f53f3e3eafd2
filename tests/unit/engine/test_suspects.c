/* Plans over which the daemon crashed: when they are recovered, and what is remembered of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/suspect.h"
#include "tests/support/cmocka.h"
#include "tests/unit/engine/engine_fixture.h"

enum { PLANS = 3 };

struct world {
    struct engine_world w;
    struct uuid ids[PLANS];
    char dir[32];
};

/* Plans of a daemon that is gone; the first cycle of the next one has begun. */
static void open_with_plans(struct world *t)
{
    static const char json[] =
        "{'steps':[{'stepId':'a','agentId':'calc','skill':'add','task':'add 2 and 3'}]}";
    struct bt_error err;

    engine_world_open(&t->w);
    for (int i = 0; i < PLANS; i++) {
        const struct submit_request request = {.plan = engine_world_doc(&t->w, json)};
        char id[UUID_TEXT_LEN + 1];
        engine_world_submit(&t->w, &request, id);
        assert_true(uuid_parse(str_from(id), &t->ids[i]));
    }
    assert_int_equal(engine_end(t->w.engine, &err), BT_OK);
    engine_world_restart(&t->w);
    (void)snprintf(t->dir, sizeof t->dir, "/tmp/test_suspects-XXXXXX");
    assert_non_null(mkdtemp(t->dir));
}

static void close_world(struct world *t)
{
    char path[64];

    (void)snprintf(path, sizeof path, "%s/faults", t->dir);
    faults_close(&t->w.engine->faults);
    (void)unlink(path);
    (void)rmdir(t->dir);
    engine_world_close(&t->w);
}

/* As the handler of the daemon before wrote it. */
static void crashed(struct world *t, struct uuid plan, int times)
{
    struct faults f;
    struct bt_error err;

    assert_int_equal(faults_open(t->dir, &f, &err), BT_OK);
    while (times-- > 0) {
        faults_add(&f, plan, 11, 1700000000000);
    }
    faults_close(&f);
}

static uint32_t faults_of(const struct world *t, struct uuid plan)
{
    return faults_count(&t->w.engine->faults, plan);
}

static uint64_t recover(struct world *t)
{
    struct bt_error err;
    uint64_t n = 0;

    assert_int_equal(faults_open(t->dir, &t->w.engine->faults, &err), BT_OK);
    if (engine_recover(t->w.engine, &n, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return n;
}

static bool is_open(const struct world *t, int i)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(t->ids[i], id);
    return open_plan_by_id(t->w.engine, str_from(id)) != NULL;
}

static void the_third_crash_over_a_plan_puts_it_aside_and_the_second_does_not(void **state)
{
    (void)state;
    for (int times = FAULTS_LIMIT - 1; times <= FAULTS_LIMIT; times++) {
        struct world t;
        struct journal_plan row;
        open_with_plans(&t);
        crashed(&t, t.ids[1], times);
        assert_int_equal(recover(&t), times < FAULTS_LIMIT ? PLANS : PLANS - 1);
        assert_true(is_open(&t, 0) && is_open(&t, 2)); /* it costs no other plan */
        assert_int_equal(is_open(&t, 1), times < FAULTS_LIMIT);
        assert_int_equal(journal_plan_by_id(t.w.journal, t.ids[1], &row, NULL), BT_OK);
        assert_int_equal(str_is(row.status, "quarantined"), times == FAULTS_LIMIT);
        close_world(&t);
    }
}

/* Recovering a plan gives it a run; runs are numbered in the order in which they come. */
static void suspects_are_recovered_after_all_others(void **state)
{
    struct world t;
    uint64_t runs[PLANS];

    (void)state;
    open_with_plans(&t);
    crashed(&t, t.ids[0], 1);
    assert_int_equal(recover(&t), PLANS);
    for (int i = 0; i < PLANS; i++) {
        char id[UUID_TEXT_LEN + 1];
        uuid_format(t.ids[i], id);
        runs[i] = open_plan_by_id(t.w.engine, str_from(id))->run;
    }
    assert_true(runs[1] < runs[2] && runs[2] < runs[0]);
    close_world(&t);
}

static void more_suspects_than_the_list_has_room_at_first_are_all_recovered(void **state)
{
    struct world t;

    (void)state;
    open_with_plans(&t);
    for (int i = 0; i < PLANS; i++) {
        crashed(&t, t.ids[i], 1);
    }
    assert_int_equal(recover(&t), PLANS);
    close_world(&t);
}

static void faults_of_plans_that_are_open_are_remembered_and_no_others(void **state)
{
    const struct uuid unknown = {{7}};
    struct world t;
    struct journal_plan row;
    struct bt_error err;

    (void)state;
    open_with_plans(&t);
    assert_int_equal(journal_plan_by_id(t.w.journal, t.ids[1], &row, &err), BT_OK);
    assert_int_equal(
        journal_plan_status(t.w.journal, row.ix, STR_LIT("failed"), 1700000000000, &err), BT_OK);
    assert_int_equal(journal_commit(t.w.journal, &err), BT_OK);
    crashed(&t, t.ids[0], 1);
    crashed(&t, t.ids[1], 2);
    crashed(&t, unknown, 1);
    (void)recover(&t);
    assert_int_equal(faults_of(&t, t.ids[0]), 1); /* two more would put it aside */
    assert_int_equal(faults_of(&t, t.ids[1]), 0);
    assert_int_equal(faults_of(&t, unknown), 0);
    assert_int_equal(t.w.engine->faults.n, 1);
    close_world(&t);
}

/* The file is why a plan is in quarantine: it is forgotten when that is durable. */
static void faults_are_forgotten_with_the_quarantine(void **state)
{
    struct world t;

    (void)state;
    open_with_plans(&t);
    crashed(&t, t.ids[2], FAULTS_LIMIT);
    assert_int_equal(recover(&t), PLANS - 1);
    assert_int_equal(faults_of(&t, t.ids[2]), 0);
    close_world(&t);
}

static void a_recovery_that_is_over_suspects_nobody(void **state)
{
    struct world t;

    (void)state;
    open_with_plans(&t);
    crashed(&t, t.ids[0], 1);
    (void)recover(&t);
    assert_true(uuid_is_nil(t.w.engine->mark.recovering));
    close_world(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_third_crash_over_a_plan_puts_it_aside_and_the_second_does_not),
        cmocka_unit_test(suspects_are_recovered_after_all_others),
        cmocka_unit_test(more_suspects_than_the_list_has_room_at_first_are_all_recovered),
        cmocka_unit_test(faults_of_plans_that_are_open_are_remembered_and_no_others),
        cmocka_unit_test(faults_are_forgotten_with_the_quarantine),
        cmocka_unit_test(a_recovery_that_is_over_suspects_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
