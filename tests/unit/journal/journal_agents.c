/* Agents that the journal remembers. Only SQLite has them. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>
#include <string.h>

static void remember(struct journal *j, unsigned number, uint64_t seen)
{
    char id[32];
    struct bt_error err;

    (void)snprintf(id, sizeof id, "agent-%u", number);
    const struct journal_agent a = {.id = str_from(id), .seen_wall = seen, .card = STR_LIT("card")};
    assert_ok(journal_agent_put(j, &a, &err), err);
}

struct known {
    uint32_t n;
    char first[32], last[32];
};

static void note(const struct journal_agent *a, void *self)
{
    struct known *k = self;

    if (k->n++ == 0) {
        (void)snprintf(k->first, sizeof k->first, "%.*s", STR_ARG(a->id));
    }
    (void)snprintf(k->last, sizeof k->last, "%.*s", STR_ARG(a->id));
}

static struct known known(struct journal *j)
{
    struct known k = {.n = 0};
    struct bt_error err;

    commit(j);
    assert_ok(journal_agents(j, note, &k, &err), err);
    return k;
}

static void the_one_not_seen_for_longest_goes_when_there_are_too_many(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    struct known k;

    for (unsigned i = 0; i < JOURNAL_AGENTS_MAX; i++) {
        remember(j, i, 1000 + i);
    }
    k = known(j);
    assert_int_equal(k.n, JOURNAL_AGENTS_MAX);
    assert_string_equal(k.last, "agent-0");
    remember(j, 0, 5000); /* seen again: not one more */
    k = known(j);
    assert_int_equal(k.n, JOURNAL_AGENTS_MAX);
    assert_string_equal(k.first, "agent-0");
    remember(j, JOURNAL_AGENTS_MAX, 6000);
    k = known(j);
    assert_int_equal(k.n, JOURNAL_AGENTS_MAX);
    assert_string_equal(k.first, "agent-1024");
    assert_string_equal(k.last, "agent-2");
}

static void those_last_seen_before_a_time_go(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    struct bt_error err;

    remember(j, 1, 999);
    remember(j, 2, 1000);
    assert_ok(journal_agents_drop(j, 1000, &err), err);
    const struct known k = known(j);
    assert_int_equal(k.n, 1);
    assert_string_equal(k.first, "agent-2");
}

#define SQLITE(test) cmocka_unit_test_setup_teardown(test, fixture_sqlite, fixture_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQLITE(the_one_not_seen_for_longest_goes_when_there_are_too_many),
        SQLITE(those_last_seen_before_a_time_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
