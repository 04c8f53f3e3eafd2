/* Several shards in one database: journals of their own, and who may take which. */
#include "tests/unit/journal/journal_fixture.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/shard.h"
#include "supervisor/journal/owner.h"
#include "tests/support/pg_server/pg_server.h"

enum { LEASE = 2000, SHARDS = 4 };

static struct journal_look *look(uint32_t shard)
{
    struct journal_look *l = NULL;
    struct bt_error err;

    assert_ok(journal_look_open(pg_server_url(), LEASE, shard, &l, &err), err);
    return l;
}

static void make(uint32_t shards)
{
    struct journal_look *l;
    struct bt_error err;

    pg_server_clear();
    l = look(0);
    assert_ok(journal_look_init(l, shards, &err), err);
    journal_look_close(l);
}

static struct journal *lead(uint32_t shard, const char *node)
{
    const struct journal_options opt = {.lease_ms = LEASE, .node = node, .shard = shard};
    struct journal *j = NULL;
    struct bt_error err;

    assert_ok(journal_open(pg_server_url(), &opt, &j, &err), err);
    return j;
}

static void alive(const char *node)
{
    struct journal_look *l = look(0);
    struct bt_error err;

    assert_ok(journal_look_beat(l, node, "[]", "", &err), err);
    /* on a busy machine its lease would end before the test has looked */
    pg_server_run("UPDATE baton.nodes SET said = at, lease_until = at FROM (SELECT "
                  "clock_timestamp() + interval '1 minute' AS at) t",
                  NULL, 0);
    journal_look_close(l);
}

static int64_t wait_of(uint32_t shard, const char *node)
{
    struct journal_look *l = look(shard);
    struct bt_error err;
    int64_t ms = -1;

    assert_ok(journal_look_wait(l, node, &ms, &err), err);
    journal_look_close(l);
    return ms;
}

static enum bt_code move(uint32_t shard, const char *node)
{
    struct journal_look *l = look(0);
    struct bt_error err;
    const enum bt_code code = journal_look_move(l, shard, node, &err);

    journal_look_close(l);
    return code;
}

static void each_shard_is_a_journal_of_its_own(void **state)
{
    struct journal *j[2];
    uint64_t blob[2];
    struct bt_error err;

    (void)state;
    make(SHARDS);
    for (uint32_t i = 0; i < 2; i++) {
        j[i] = lead(i, "one");
        assert_int_equal(add_event(j[i], 0, 0, i == 0 ? "a" : "b"), 1); /* numbers of its own */
        assert_ok(journal_blob_add(j[i], "x", 1, &blob[i], &err), err);
        commit(j[i]);
    }
    assert_int_equal(blob[0] >> SHARD_BLOB_BITS, 0);
    assert_int_equal(blob[1] >> SHARD_BLOB_BITS, 1);
    for (uint32_t i = 0; i < 2; i++) {
        struct seen s = {{0}};
        journal_close(j[i]);
        j[i] = lead(i, "two");
        assert_ok(journal_events(j[i], 1, 0, 100, see_row, &s, &err), err);
        assert_string_equal(s.text, i == 0 ? "1:a " : "1:b ");
        assert_ok(journal_blob_add(j[i], "y", 1, &blob[i], &err), err);
        assert_int_equal(blob[i] >> SHARD_BLOB_BITS, i);
        journal_close(j[i]);
    }
}

static void a_shard_holds_what_is_in_its_own_tables(void **state)
{
    enum { BYTES = 2 * 1024 * 1024 };
    struct journal_size size[2];
    struct bt_error err;
    uint64_t id;
    char *bytes = calloc(1, BYTES);

    (void)state;
    assert_non_null(bytes);
    make(SHARDS);
    for (uint32_t i = 0; i < 2; i++) {
        struct journal *j = lead(i, "one");
        if (i == 1) {
            assert_ok(journal_blob_add(j, bytes, BYTES, &id, &err), err);
            commit(j);
        }
        assert_ok(journal_size(j, &size[i], &err), err);
        journal_close(j);
    }
    assert_in_range(size[0].used, 0, BYTES / 2);
    assert_in_range(size[1].used, BYTES, 2 * BYTES);
    assert_true(size[1].file >= size[1].used);
    free(bytes);
}

static void their_number_does_not_change_once_one_was_led(void **state)
{
    struct journal_look *l;
    struct journal_owner now;
    struct bt_error err;

    (void)state;
    make(1);
    l = look(0);
    assert_ok(journal_look_init(l, 2, &err), err); /* nobody has led yet */
    assert_ok(journal_look(l, &now, &err), err);
    assert_int_equal(now.shards, 2);
    assert_int_equal(journal_look_init(l, 1, &err), BT_CONFLICT);
    journal_close(lead(0, "one"));
    assert_int_equal(journal_look_init(l, 3, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "has 2 shards"));
    assert_ok(journal_look_init(l, 2, &err), err);
    assert_ok(journal_look_init(l, 0, &err), err);
    journal_look_close(l);
}

static void a_node_takes_its_share_at_once_and_more_a_lease_later(void **state)
{
    struct journal *one[2];

    (void)state;
    make(SHARDS);
    alive("one");
    alive("two");
    assert_int_equal(wait_of(0, "one"), 0);
    one[0] = lead(0, "one");
    assert_int_equal(wait_of(1, "one"), 0); /* 1 of 2 */
    one[1] = lead(1, "one");
    assert_int_equal(wait_of(2, "one"), LEASE); /* 2 of 2: nobody has ever led it */
    assert_int_equal(wait_of(2, "two"), 0);
    pg_server_run("UPDATE baton.shards SET lease_until = clock_timestamp() - interval '1 second' "
                  "WHERE shard = 3",
                  NULL, 0);
    assert_in_range(wait_of(3, "one"), 1, LEASE - 900);
    pg_server_run("UPDATE baton.nodes SET lease_until = clock_timestamp() WHERE node = 'two'", NULL,
                  0);
    assert_int_equal(wait_of(2, "one"), 0); /* alone: all are its share */
    journal_close(one[0]);
    journal_close(one[1]);
}

static void a_shard_moves_to_the_node_that_is_named_and_its_leader_stores_nothing_more(void **state)
{
    struct journal *one;
    struct journal *two;
    struct bt_error err;

    (void)state;
    make(SHARDS);
    alive("one");
    alive("two");
    one = lead(3, "one");
    add_event(one, 0, 0, "a");
    commit(one);
    pg_server_run("UPDATE baton.shards SET backend = 0", NULL, 0); /* it is not ended: the fence */
    assert_int_equal(move(3, "three"), BT_NOT_FOUND);
    assert_int_equal(move(SHARDS, "two"), BT_NOT_FOUND);
    add_event(one, 0, 0, "b");
    commit(one); /* it leads still */
    assert_int_equal(move(3, "two"), BT_OK);
    assert_int_equal(wait_of(3, "two"), 0);
    assert_in_range(wait_of(3, "one"), 1, 2 * LEASE);
    add_event(one, 0, 0, "late");
    assert_int_equal(journal_commit(one, &err), BT_IO);
    two = lead(3, "two");
    {
        struct seen s = {{0}};
        assert_ok(journal_events(two, 1, 0, 100, see_row, &s, &err), err);
        assert_string_equal(s.text, "1:a 2:b ");
    }
    assert_int_equal(move(3, "two"), BT_OK); /* it has it already: nothing happens */
    add_event(two, 0, 0, "c");
    commit(two);
    journal_close(one);
    journal_close(two);
}

static void a_node_that_drains_leaves_shards_to_others(void **state)
{
    struct journal_look *l;
    struct bt_error err;

    (void)state;
    make(SHARDS);
    alive("one");
    alive("two");
    l = look(0);
    assert_ok(journal_look_drain(l, "one", true, &err), err);
    assert_int_equal(journal_look_drain(l, "three", true, &err), BT_NOT_FOUND);
    assert_int_equal(wait_of(0, "one"), LEASE);
    assert_int_equal(wait_of(0, "two"), 0);
    assert_ok(journal_look_drain(l, "one", false, &err), err);
    assert_int_equal(wait_of(0, "one"), 0);
    journal_look_close(l);
}

static enum bt_code grow(uint32_t shards, struct bt_error *err)
{
    struct journal_look *l = look(0);
    const enum bt_code code = journal_look_grow(l, shards, err);

    journal_look_close(l);
    return code;
}

static void add_plan_of_id(struct journal *j, struct uuid id, const char *key)
{
    struct journal_plan p = {.plan_id = id,
                             .client_key = str_from(key),
                             .goal = STR_LIT("g"),
                             .doc = "d",
                             .doc_len = 1,
                             .created_wall = 1,
                             .status = STR_LIT("pending")};
    struct bt_error err;
    uint64_t ix;

    assert_ok(journal_plan_add(j, &p, &ix, &err), err);
    commit(j);
}

static bool is_at_0(struct journal *j, struct uuid id)
{
    struct bt_error err;
    bool found = false;

    assert_ok(journal_key_is_at(j, 0, JOURNAL_KEY_PLAN,
                                (struct str){(const char *)id.b, sizeof id.b}, &found, &err),
              err);
    return found;
}

/* A plan that was imported into the only shard has an id of elsewhere. */
static void a_fleet_of_one_shard_grows_and_no_daemon_of_one_takes_it(void **state)
{
    const struct journal_options of_one = {.lease_ms = LEASE, .node = "one", .shards = 1};
    const struct uuid stray = shard_put(uuid_new(), 2);
    struct journal *j = NULL;
    const uint32_t *maps;
    struct bt_error err;

    (void)state;
    make(1);
    assert_ok(journal_open(pg_server_url(), &of_one, &j, &err), err);
    add_plan_of_id(j, shard_put(uuid_new(), 0), "key");
    assert_false(journal_has_strays(j));
    pg_server_run("UPDATE baton.shards SET backend = 0", NULL, 0); /* it is not ended: the fence */
    assert_ok(grow(SHARDS, &err), err);
    add_event(j, 0, 0, "late");
    assert_int_equal(journal_commit(j, &err), BT_IO);
    journal_close(j);
    assert_int_equal(journal_open(pg_server_url(), &of_one, &j, &err), BT_IO);
    assert_non_null(strstr(err.msg, "the fleet has grown: it has 4 shards"));
    pg_server_run("UPDATE baton.shards SET lease_until = clock_timestamp()", NULL, 0);
    j = lead(0, "one");
    assert_int_equal(journal_maps(j, &maps), 1);
    assert_int_equal(maps[0], 1);
    assert_false(journal_has_strays(j)); /* nobody asks about ids */
    add_plan_of_id(j, stray, "stray");
    journal_close(j);
    j = lead(1, "one");
    assert_true(journal_has_strays(j));
    assert_true(is_at_0(j, stray));
    assert_false(is_at_0(j, shard_put(uuid_new(), 2)));
    journal_close(j);
}

static void a_fleet_that_grows_fences_its_leaders_and_finds_keys_of_before(void **state)
{
    struct journal *one;
    struct journal *seven;
    const uint32_t *maps;
    struct bt_error err;
    bool found = false;

    (void)state;
    make(SHARDS);
    assert_int_equal(grow(8, &err), BT_CONFLICT); /* nobody has led: init */
    alive("one");
    one = lead(3, "one");
    add_plan_of_id(one, uuid_new(), "key");
    assert_int_equal(journal_maps(one, &maps), 0);
    pg_server_run("UPDATE baton.shards SET backend = 0", NULL, 0); /* it is not ended: the fence */
    assert_int_equal(grow(SHARDS, &err), BT_INVALID);
    assert_ok(grow(8, &err), err);
    assert_in_range(wait_of(3, "two"), 1, 2 * LEASE); /* its own node takes it again */
    assert_int_equal(wait_of(3, "one"), 0);
    add_event(one, 0, 0, "late"); /* decided with the older number */
    assert_int_equal(journal_commit(one, &err), BT_IO);
    journal_close(one);
    seven = lead(7, "one");
    assert_int_equal(journal_maps(seven, &maps), 1);
    assert_int_equal(maps[0], SHARDS);
    assert_ok(journal_key_is_at(seven, 3, JOURNAL_KEY_CLIENT, STR_LIT("key"), &found, &err), err);
    assert_true(found);
    assert_ok(journal_key_is_at(seven, 3, JOURNAL_KEY_CLIENT, STR_LIT("k'\\"), &found, &err), err);
    assert_false(found);
    assert_ok(journal_key_is_at(seven, 3, JOURNAL_KEY_NAME, STR_LIT("key"), &found, &err), err);
    assert_false(found);
    journal_close(seven);
    /* nothing of before is left: the older number counts no more */
    pg_server_run("TRUNCATE baton_s3.plans, baton_s3.plan_state", NULL, 0);
    seven = lead(7, "one");
    assert_int_equal(journal_maps(seven, &maps), 0);
    journal_close(seven);
}

static void the_format_rises_when_all_that_live_know_it(void **state)
{
    struct journal_look *l;
    struct journal_owner now;
    struct bt_error err;

    (void)state;
    make(SHARDS);
    l = look(0);
    pg_server_run("UPDATE baton.fleet SET format = 2", NULL, 0);
    alive("one");
    pg_server_run("INSERT INTO baton.nodes(node, lease_until) VALUES('old', clock_timestamp() + "
                  "interval '1 minute')",
                  NULL, 0);
    assert_int_equal(journal_look_finalize(l, &err), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "old (an older program)"));
    assert_ok(journal_look(l, &now, &err), err);
    assert_int_equal(now.format, 2);
    assert_int_equal(grow(8, &err), BT_CONFLICT);
    pg_server_run("UPDATE baton.nodes SET lease_until = clock_timestamp() WHERE node = 'old'", NULL,
                  0);
    assert_ok(journal_look_finalize(l, &err), err);
    assert_ok(journal_look(l, &now, &err), err);
    assert_int_equal(now.format, now.format_known);
    journal_look_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shard_is_a_journal_of_its_own),
        cmocka_unit_test(a_shard_holds_what_is_in_its_own_tables),
        cmocka_unit_test(their_number_does_not_change_once_one_was_led),
        cmocka_unit_test(a_node_takes_its_share_at_once_and_more_a_lease_later),
        cmocka_unit_test(
            a_shard_moves_to_the_node_that_is_named_and_its_leader_stores_nothing_more),
        cmocka_unit_test(a_node_that_drains_leaves_shards_to_others),
        cmocka_unit_test(a_fleet_that_grows_fences_its_leaders_and_finds_keys_of_before),
        cmocka_unit_test(a_fleet_of_one_shard_grows_and_no_daemon_of_one_takes_it),
        cmocka_unit_test(the_format_rises_when_all_that_live_know_it),
    };

    if (!pg_server_installed()) {
        return pg_server_skip("shards of a fleet");
    }
    pg_server_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
