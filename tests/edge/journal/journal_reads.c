/*
 * How often the daemon's rooms ask the journal a question while plans run: each costs a round trip
 * where the journal is a server. Counted are SELECTs of SQLite; requests of clients that read come
 * on top.
 */
#include "tests/support/house/house.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/journal/journal_fixture.h"

enum { PLANS = 40, SUBMIT_MAX = 1, END_MAX = 2 };

static unsigned reads;

static int count_read(unsigned kind, void *self, void *statement, void *text)
{
    (void)kind;
    (void)self;
    (void)text;
    reads += strncmp(sqlite3_sql(statement), "SELECT", 6) == 0;
    return 0;
}

/* Called by SQLite for each file that it opens. */
static int trace(sqlite3 *db, const char **ret_error, const void *api)
{
    (void)ret_error;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_read, NULL);
}

static unsigned reads_since(unsigned *io_before)
{
    const unsigned n = reads - *io_before;

    *io_before = reads;
    return n;
}

static void the_journal_is_asked_once_for_a_plan_and_never_for_a_step(void **state)
{
    char dir[] = "/tmp/journal_reads.XXXXXX";
    unsigned before = 0;
    struct house *h;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(sqlite3_auto_extension((void (*)(void))trace), SQLITE_OK);
    h = house_open_in(dir);
    assert_false(h->dead);
    (void)house_join(h, "calc", PLANS);
    assert_true(reads_since(&before) > 0); /* of the start: they are counted */
    for (unsigned i = 0; i < PLANS; i++) {
        (void)house_submit(h,
                           "'clientKey':'key %u','plan':{'goal':'Two steps.','steps':["
                           "{'stepId':'a','agentId':'calc','skill':'do','task':'Read it.'},"
                           "{'stepId':'b','agentId':'calc','skill':'do',"
                           "'task':'Add {{results.a}}.','dependsOn':['a']}]}",
                           i);
    }
    assert_in_range(reads_since(&before), 0, SUBMIT_MAX * PLANS);
    for (unsigned i = 0; i < PLANS; i++) {
        house_done(h, "calc", "'result':{'text':'5050'}");
    }
    assert_int_equal(house_seen(h, "plan_step_completed"), PLANS);
    assert_int_equal(reads_since(&before), 0);
    for (unsigned i = 0; i < PLANS; i++) {
        house_done(h, "calc", "'result':{'text':'5050'}");
    }
    assert_int_equal(house_seen(h, "plan_completed"), PLANS);
    assert_in_range(reads_since(&before), 0, END_MAX * PLANS);
    house_close(h);
    assert_int_equal(sqlite3_cancel_auto_extension((void (*)(void))trace), 1);
    fixture_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_journal_is_asked_once_for_a_plan_and_never_for_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
