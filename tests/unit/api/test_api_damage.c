/* An event that cannot be read any more: it has a marker in its place, the same each time. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"
#include "tests/unit/journal/journal_fixture.h"

#define ONE                                                                                        \
    "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'do a'}]}"

enum { BAD = 5 };

static char dir[64];

/* A plan has ended, and the journal has lost what the event BAD was. */
static struct house *open_world(void)
{
    struct house *h;
    char sql[128];
    char path[96];
    sqlite3 *db;

    (void)snprintf(dir, sizeof dir, "/tmp/house_damage_XXXXXX");
    assert_non_null(mkdtemp(dir));
    h = house_open_in(dir);
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'5'}");
    house_close(h);
    (void)snprintf(path, sizeof path, "%s/journal.db", dir);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    (void)snprintf(sql, sizeof sql, "UPDATE rows SET crc = crc + 1 WHERE pos >> 20 = %d", BAD);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    h = house_open_in(dir);
    assert_false(h->dead);
    return h;
}

static void close_world(struct house *h)
{
    house_close(h);
    fixture_remove_tree(dir);
}

static void what_cannot_be_read_has_a_marker_in_its_place(void **state)
{
    struct house *h = open_world();
    const char *first = house_ok(h, "events.read", "'fromSeq':1,'limit':8");

    (void)state;
    house_says(h, first,
               "events.#=8; events.3.seq=4; events.4.seq=5; events.4.type=event_damaged; "
               "events.4.lastSeq=5; events.4.reason=~cannot be read in the journal any more; "
               "events.4.eventId=00000000-0000-0000-0000-000000000005; events.5.seq=6; nextSeq=9; "
               "deleted=-; lastEventId=*");
    assert_string_equal(house_ok(h, "events.read", "'fromSeq':1,'limit':8"), first);
    close_world(h);
}

/* It has no id: who reads up to it names none, and goes on behind it. */
static void a_page_that_ends_with_it_has_no_id_to_go_on_from(void **state)
{
    struct house *h = open_world();

    (void)state;
    house_says(h, house_ok(h, "events.read", "'fromSeq':4,'limit':2"),
               "events.#=2; events.0.seq=4; events.1.type=event_damaged; nextSeq=6; "
               "lastEventId=-");
    house_says(h, house_ok(h, "events.read", "'fromSeq':5,'limit':2"),
               "events.#=2; events.0.seq=5; events.0.type=event_damaged; events.1.seq=6; "
               "nextSeq=7; lastEventId=*");
    house_says(h, house_ok(h, "events.read", "'fromSeq':6,'limit':1"), "events.0.seq=6; nextSeq=7");
    close_world(h);
}

/* Whatever type it had, and whoever may have been meant to see it. */
static void it_is_shown_to_all_and_with_every_type(void **state)
{
    struct house *h = open_world();

    (void)state;
    house_says(h, house_ok(h, "events.read", "'fromSeq':1,'types':['plan_completed']"),
               "events.#=2; events.0.type=event_damaged; events.1.type=plan_completed");
    (void)house_as(h, "submitter");
    house_says(h, house_ok(h, "events.read", "'fromSeq':5,'limit':1"),
               "events.#=1; events.0.type=event_damaged; events.0.seq=5");
    close_world(h);
}

static void a_check_of_the_journal_names_it(void **state)
{
    struct house *h = open_world();
    const char *part = house_ok(h, "supervisor.scrub", " ");
    long found = 0;

    (void)state;
    for (int n = 0; n < 1000; n++) {
        const char *problems = house_get(h, part, "problems.#");
        const char *cursor = house_get(h, part, "cursor");
        found += problems != NULL ? strtol(problems, NULL, 10) : 0;
        if (problems != NULL && strtol(problems, NULL, 10) > 0) {
            house_has(h, part, "problems.0", "5");
        }
        if (cursor == NULL) {
            break;
        }
        part = house_ok(h, "supervisor.scrub", "'cursor':'%s'", cursor);
    }
    assert_int_equal(found, 1);
    close_world(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_has_a_marker_in_its_place),
        cmocka_unit_test(a_page_that_ends_with_it_has_no_id_to_go_on_from),
        cmocka_unit_test(it_is_shown_to_all_and_with_every_type),
        cmocka_unit_test(a_check_of_the_journal_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
