/* When an owner renews its lease, how often it tries, and what it reads at once: the limits. */
#include "tests/unit/postgres/postgres_world.h"

enum { THIRD = LEASE / 3, TWO_THIRDS = LEASE * 2 / 3, CHECK = 60000, LOOK = 10000, SLICE = 20 };

static struct journal *begin(void)
{
    struct journal *j;

    world_begin();
    j = world_lead();
    fake_pq.writes_down = true;
    return j;
}

static void end(struct journal *j)
{
    journal_close(j);
    fake_pq_end();
}

static uint32_t sent(const char *what)
{
    const char *at = buf_cstr(&fake_pq.log);
    uint32_t n = 0;

    for (at = strstr(at, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void forget_sent(void)
{
    buf_clear(&fake_pq.log);
}

static void expect(enum bt_code code, enum bt_code want, const struct bt_error *err)
{
    if (code != want) {
        fail_msg("%s: %s", bt_code_name(code), code == BT_OK ? "" : err->msg);
    }
}

static void a_lease_is_renewed_when_a_third_of_it_has_gone(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    fake_pq.now += THIRD - 1;
    expect(journal_keep(j, &err), BT_OK, &err);
    expect(journal_hold(j, &err), BT_OK, &err);
    assert_int_equal(fake_pq.log.len, 0);
    fake_pq.now += 1;
    expect(journal_keep(j, &err), BT_OK, &err);
    assert_int_equal(sent("  fence 1 0 0\n"), 1);
    fake_pq.now += THIRD - 1; /* from then on */
    expect(journal_keep(j, &err), BT_OK, &err);
    assert_int_equal(sent("fence"), 1);
    fake_pq.now += 1;
    expect(journal_hold(j, &err), BT_OK, &err);
    assert_int_equal(sent("fence"), 2);
    end(j);
}

static void a_batch_is_stored_when_a_third_of_the_lease_has_gone(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq.now += THIRD - 1;
    expect(journal_hold(j, &err), BT_OK, &err);
    assert_int_equal(fake_pq.stored.rows, 0);
    fake_pq.now += 1;
    expect(journal_keep(j, &err), BT_OK, &err); /* the commit renews it */
    assert_int_equal(fake_pq.stored.rows, 0);
    expect(journal_hold(j, &err), BT_OK, &err);
    assert_int_equal(fake_pq.stored.rows, 1);
    forget_sent();
    expect(journal_keep(j, &err), BT_OK, &err); /* it has renewed it */
    assert_int_equal(fake_pq.log.len, 0);
    end(j);
}

static void an_open_batch_is_too_late_after_two_thirds(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq.now += TWO_THIRDS;
    expect(journal_keep(j, &err), BT_OK, &err);
    fake_pq.now += 1;
    expect(journal_keep(j, &err), BT_IO, &err);
    assert_non_null(strstr(err.msg, "answers too late for a lease of 3000 ms"));
    expect(journal_commit(j, &err), BT_IO, &err);
    assert_int_equal(fake_pq.stored.rows, 0);
    end(j);
}

/* A refusal that passes leaves the rest of the lease. */
static void a_renewal_that_is_refused_is_tried_again_until_two_thirds(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    fake_pq.now += TWO_THIRDS;
    fake_pq_fail(1, FAKE_PQ_ERROR, "55P03", 1);
    expect(journal_keep(j, &err), BT_OK, &err);
    fake_pq.now += 1;
    fake_pq_fail(1, FAKE_PQ_ERROR, "55P03", 1);
    expect(journal_keep(j, &err), BT_IO, &err);
    end(j);
    j = begin();
    fake_pq.now += TWO_THIRDS + 1;
    expect(journal_keep(j, &err), BT_OK, &err); /* renewed in time by the server's clock */
    fake_pq.now += THIRD;
    fake_pq_fail(1, FAKE_PQ_ERROR, "22012", 1);
    expect(journal_keep(j, &err), BT_IO, &err);
    expect(add_rows(j, 1, &err), BT_IO, &err);
    end(j);
}

/* The turn was sent before; its answer came after more than two thirds of the lease. */
static void effects_wait_for_a_renewal_when_the_turn_took_long(void **state)
{
    struct bt_error err;

    (void)state;
    for (uint32_t late = 0; late < 2; late++) {
        struct journal *j = begin();
        expect(add_rows(j, 1, &err), BT_OK, &err);
        fake_pq_fail_text("fence", FAKE_PQ_ERROR, "40001", 3);
        fake_pq.latency = TWO_THIRDS / 4 + late;
        expect(journal_commit(j, &err), BT_OK, &err);
        assert_int_equal(sent("  fence 1 0 1048576\n"), 4);
        assert_int_equal(sent("  fence 1 1048576 1048576\n"), late);
        forget_sent();
        fake_pq.latency = 0;
        expect(journal_keep(j, &err), BT_OK, &err);
        assert_int_equal(sent("fence"), late == 1 ? 0 : 1);
        end(j);
    }
}

static void who_loses_it_before_effects_does_nothing(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq.latency = TWO_THIRDS / 4 + 1;
    fake_pq_fail_text("fence", FAKE_PQ_ERROR, "40001", 3);
    fake_pq_fail(6, FAKE_PQ_ERROR, "22012", 1); /* the renewal, after four turns */
    expect(journal_commit(j, &err), BT_IO, &err);
    assert_non_null(strstr(err.msg, "another daemon has taken this journal over"));
    assert_int_equal(fake_pq.stored.rows, 1);
    expect(add_rows(j, 1, &err), BT_IO, &err);
    end(j);
}

/* The renewal takes a ride, whose answers take long, too. */
static void effects_wait_no_longer_than_two_thirds(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq.latency = TWO_THIRDS / 4 + 1;
    fake_pq_fail_text("fence", FAKE_PQ_ERROR, "40001", 3);
    fake_pq_fail(6, FAKE_PQ_LOST, NULL, 1);
    expect(journal_commit(j, &err), BT_IO, &err);
    assert_non_null(strstr(err.msg, "answers too late for a lease of 3000 ms"));
    assert_int_equal(fake_pq.stored.epoch, 2);
    assert_int_equal(fake_pq.stored.rows, 1);
    end(j);
}

static void a_poll_that_fails_is_a_connection_that_is_lost_but_for_a_signal(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct journal *j = begin();
        struct bt_error err;
        fake_pq.latency = 100;
        fake_pq.poll_errno = i == 0 ? EINTR : EBADF;
        expect(add_rows(j, 1, &err), BT_OK, &err);
        expect(journal_commit(j, &err), BT_OK, &err);
        assert_int_equal(fake_pq.connections, 1 + i);
        assert_int_equal(fake_pq.stored.rows, 1);
        end(j);
    }
}

static void answers_that_end_too_early_are_lost(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq.no_sync = true;
    expect(journal_commit(j, &err), BT_OK, &err);
    assert_int_equal(fake_pq.connections, 2);
    assert_int_equal(fake_pq.stored.rows, 1);
    end(j);
}

static void an_answer_counts_until_half_a_lease(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    fake_pq.latency = LEASE / 2;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    expect(journal_commit(j, &err), BT_OK, &err);
    assert_int_equal(fake_pq.connections, 1);
    end(j);
}

static bool count(void *self)
{
    uint32_t *n = self;

    (*n)++;
    return true;
}

static void the_caller_is_called_every_20_ms_after_250_ms(void **state)
{
    static const struct {
        uint64_t latency;
        uint32_t calls;
    } CASES[] = {{0, 0}, {249, 0}, {250, 1}, {269, 1}, {279, 1}, {280, 2}, {500, 13}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct journal *j = begin();
        struct bt_error err;
        uint32_t n = 0;
        journal_while_waiting(j, count, &n);
        fake_pq.latency = CASES[i].latency;
        expect(add_rows(j, 1, &err), BT_OK, &err);
        expect(journal_commit(j, &err), BT_OK, &err);
        if (n != CASES[i].calls) {
            fail_msg("%u calls in %u ms", n, (unsigned)CASES[i].latency);
        }
        journal_while_waiting(j, NULL, NULL);
        end(j);
    }
}

static bool until_zero(void *self)
{
    uint32_t *n = self;

    return --*n > 0;
}

static void a_ride_ends_when_the_caller_wants_no_more_of_it(void **state)
{
    struct journal *j = begin();
    struct bt_error err;
    uint32_t n = 5;

    (void)state;
    journal_while_waiting(j, until_zero, &n);
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq.refused = UINT32_MAX;
    fake_pq_fail(1, FAKE_PQ_LOST, NULL, 1);
    expect(journal_commit(j, &err), BT_IO, &err);
    assert_non_null(strstr(err.msg, "asked to stop"));
    assert_int_equal(n, 0);
    end(j);
}

static void
a_turn_is_sent_again_five_times_when_it_is_undone_and_eight_when_it_is_lost(void **state)
{
    static const struct {
        enum fake_pq_fault fault;
        uint32_t times;
        enum bt_code code;
    } CASES[] = {{FAKE_PQ_ERROR, 5, BT_OK},
                 {FAKE_PQ_ERROR, 6, BT_IO},
                 {FAKE_PQ_LOST, 8, BT_OK},
                 {FAKE_PQ_LOST, 9, BT_IO}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct journal *j = begin();
        struct bt_error err;
        expect(add_rows(j, 1, &err), BT_OK, &err);
        fake_pq_fail_text("fence", CASES[i].fault, "40P01", CASES[i].times);
        expect(journal_commit(j, &err), CASES[i].code, &err);
        assert_int_equal(fake_pq.stored.rows, CASES[i].code == BT_OK ? 1 : 0);
        end(j);
    }
}

static void five_rows_and_more_go_as_arrays_and_each_is_stored_once(void **state)
{
    static const uint32_t ROWS[] = {1, 4, 5, 63, 64, 65, 129, 200};
    struct journal *j = begin();
    struct bt_error err;
    uint64_t all = 0;

    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        forget_sent();
        expect(add_rows(j, ROWS[i], &err), BT_OK, &err);
        expect(journal_commit(j, &err), BT_OK, &err);
        all += ROWS[i];
        assert_int_equal(fake_pq.stored.rows, all);
        assert_int_equal(sent("unnest"), ROWS[i] > 4 ? 1 : 0);
    }
    end(j);
}

/* ---- reading ---- */

/* The statement's name on the server. */
static const char *name_of(enum sql which)
{
    static char name[16];

    (void)snprintf(name, sizeof name, "s%d", (int)which);
    return name;
}

static void a_long_result_is_read_in_pages_that_grow(void **state)
{
    static const struct {
        enum sql which;
        uint32_t rows, round_trips;
    } CASES[] = {
        {SQL_ROWS, 1, 1},     {SQL_ROWS, 63, 1},     {SQL_ROWS, 64, 2},     {SQL_ROWS, 65, 2},
        {SQL_ROWS, 319, 2},   {SQL_ROWS, 320, 3},    {SQL_ROWS, 575, 3},    {SQL_ROWS, 576, 4},
        {SQL_IX_ALL, 320, 3}, {SQL_IX_ALL, 1343, 3}, {SQL_IX_ALL, 1344, 4}, {SQL_IX_ALL, 22000, 6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct journal *j = begin();
        struct stmt *st = &sql_of(j)->stmt[CASES[i].which];
        char name[16];
        int64_t n = 0;
        (void)snprintf(name, sizeof name, "%s", name_of(CASES[i].which));
        fake_pq_pages(name, CASES[i].rows);
        for (int round = 0; round < 2; round++, n = 0) {
            forget_sent();
            stmt_bind_i64(st, 1, 1);
            if (CASES[i].which == SQL_ROWS) {
                stmt_bind_i64(st, 2, 2);
            }
            while (stmt_step(st) == STMT_ROW) {
                assert_int_equal(st->ops->col_i64(st, 0), n++);
            }
            assert_int_equal(n, CASES[i].rows);
            if (sent(";") != CASES[i].round_trips) {
                fail_msg("%u rows in %u round trips", CASES[i].rows, sent(";"));
            }
            stmt_reset(st);
        }
        end(j);
    }
}

static void a_column_is_of_8_4_or_1_bytes(void **state)
{
    struct journal *j = begin();
    struct stmt *st = &sql_of(j)->stmt[SQL_STATE_GET];

    (void)state;
    fake_pq_answer(name_of(SQL_STATE_GET), "7|'abcd'|'A'|'abc'|''");
    stmt_bind_i64(st, 1, 1);
    assert_int_equal(stmt_step(st), STMT_ROW);
    assert_int_equal(st->ops->col_i64(st, 0), 7);
    assert_int_equal(st->ops->col_i64(st, 1), 0x61626364);
    assert_int_equal(st->ops->col_i64(st, 2), 'A');
    assert_int_equal(st->ops->col_i64(st, 3), 0);
    assert_int_equal(st->ops->col_i64(st, 4), 0);
    assert_int_equal(stmt_col_blob(st, 3).len, 3);
    assert_memory_equal(stmt_col_blob(st, 3).ptr, "abc", 3);
    assert_false(stmt_nomem(st));
    assert_int_equal(stmt_step(st), STMT_DONE);
    stmt_reset(st);
    end(j);
}

static void a_read_fails_when_it_is_refused_or_its_journal_is_dead(void **state)
{
    struct journal *j = begin();
    struct stmt *st = &sql_of(j)->stmt[SQL_STATE_GET];
    const struct bt_error why = {.code = BT_IO, .msg = "dead"};

    (void)state;
    stmt_bind_i64(st, 1, 1);
    fake_pq_fail(1, FAKE_PQ_ERROR, "42P01", 1);
    assert_int_equal(stmt_step(st), STMT_ERROR);
    assert_int_equal(stmt_step(st), STMT_DONE);
    stmt_reset(st);
    journal_die(j, &why);
    forget_sent();
    assert_int_equal(stmt_step(st), STMT_ERROR);
    assert_int_equal(fake_pq.log.len, 0);
    end(j);
}

/* Plans 1 to n are read ahead. */
static void read_ahead(struct journal *j, size_t n)
{
    uint64_t ix[20];

    assert_true(n <= sizeof ix / sizeof ix[0]);
    for (size_t i = 0; i < n; i++) {
        ix[i] = i + 1;
    }
    forget_sent();
    sql_of(j)->engine->ahead(sql_of(j), ix, n);
}

/* Whether the statement of the plan has to be sent. */
static bool asks(struct journal *j, enum sql which, int64_t ix)
{
    struct stmt *st = &sql_of(j)->stmt[which];

    forget_sent();
    stmt_bind_i64(st, 1, ix);
    assert_int_equal(stmt_step(st), STMT_DONE);
    stmt_reset(st);
    return sent(";") > 0;
}

static bool asks_rows(struct journal *j, int64_t first, int64_t last, int64_t ix)
{
    struct stmt *st = &sql_of(j)->stmt[SQL_ROWS_PLAN];

    forget_sent();
    stmt_bind_i64(st, 1, first);
    stmt_bind_i64(st, 2, last);
    stmt_bind_i64(st, 3, ix);
    assert_int_equal(stmt_step(st), STMT_DONE);
    stmt_reset(st);
    return sent(";") > 0;
}

static void sixteen_plans_are_read_in_one_round_trip(void **state)
{
    struct journal *j = begin();

    (void)state;
    read_ahead(j, 17);
    assert_int_equal(sent(";"), 1);
    assert_int_equal(sent("\n"), 4 * 16 + 1);
    for (int64_t ix = 1; ix <= 17; ix++) {
        assert_true(asks(j, SQL_PLAN_DOC, ix) == (ix == 17));
        assert_true(asks(j, SQL_PLAN_GET, ix) == (ix == 17));
        assert_true(asks(j, SQL_STATE_GET, ix) == (ix == 17));
        assert_true(asks_rows(j, 1, 0, ix) == (ix == 17));
        assert_true(asks(j, SQL_STATE_GET, ix)); /* once */
    }
    read_ahead(j, 0);
    assert_int_equal(fake_pq.log.len, 0);
    end(j);
}

static void rows_that_were_read_ahead_count_for_all_of_a_plan_up_to_the_same_position(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    expect(journal_commit(j, &err), BT_OK, &err);
    read_ahead(j, 2);
    assert_true(asks_rows(j, 2, 1048576, 1));
    assert_true(asks_rows(j, 1, 1048577, 1));
    assert_false(asks_rows(j, 1, 1048576, 2));
    assert_false(asks_rows(j, 1, 1048576, 1));
    end(j);
}

static void what_a_write_changes_is_read_again(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    read_ahead(j, 3);
    fake_pq_answer(name_of(SQL_STATE_GET), NULL);
    {
        struct stmt *st = &sql_of(j)->stmt[SQL_STATE_DROP];
        stmt_bind_i64(st, 1, 3);
        expect(sql_run(sql_of(j), SQL_STATE_DROP, "test", &err), BT_OK, &err);
        st = &sql_of(j)->stmt[SQL_ROW_DROP];
        stmt_bind_i64(st, 1, 1);
        expect(sql_run(sql_of(j), SQL_ROW_DROP, "test", &err), BT_OK, &err);
    }
    assert_false(asks(j, SQL_PLAN_GET, 1));
    assert_true(asks(j, SQL_PLAN_GET, 3));
    end(j);
}

static void what_waits_is_sent_before_it_is_read_ahead(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    read_ahead(j, 1);
    assert_int_equal(sent("text BEGIN"), 1);
    assert_int_equal(sent(";"), 2);
    read_ahead(j, 1);
    assert_int_equal(sent(";"), 2);
    end(j);
    j = begin();
    fake_pq_fail(3, FAKE_PQ_ERROR, "42P01", 1);
    read_ahead(j, 2);
    for (int64_t ix = 1; ix <= 2; ix++) { /* none of them counts */
        assert_true(asks(j, SQL_PLAN_DOC, ix));
    }
    end(j);
}

/* ---- what is asked now and then ---- */

static void standbys_are_looked_for_every_minute_and_rewinds_every_ten_seconds(void **state)
{
    struct journal_options opt = ONE;
    struct journal *j = NULL;
    struct bt_error err;
    uint64_t began;
    uint32_t standbys = 0;
    uint32_t rewinds = 0;

    (void)state;
    opt.durability = DURABILITY_REPLICATED;
    world_begin();
    fake_pq_answer("SHOW synchronous_standby_names", "'s1'");
    expect(world_open(&opt, &j, &err), BT_OK, &err);
    fake_pq.writes_down = true;
    fake_pq.now += THIRD;
    expect(journal_keep(j, &err), BT_OK, &err); /* it has not looked since it began */
    began = fake_pq.now;
    while (fake_pq.now - began < 2 * CHECK) {
        forget_sent();
        fake_pq.now += THIRD;
        expect(journal_keep(j, &err), BT_OK, &err);
        standbys += sent("synchronous_standby_names");
        rewinds += sent("baton.rewinds");
        assert_true(sent("synchronous_standby_names") == ((fake_pq.now - began) % CHECK == 0));
        assert_true((sent("baton.rewinds") > 0) == ((fake_pq.now - began) % LOOK == 0));
    }
    assert_int_equal(standbys, 2);
    assert_int_equal(rewinds, 12);
    fake_pq_answer("SELECT coalesce(max(lost), 0)", "5");
    fake_pq_answer("SELECT min(kept)", "3");
    for (uint32_t i = 0; i < 20; i++) {
        fake_pq.now += THIRD;
        expect(journal_keep(j, &err), BT_OK, &err);
    }
    assert_int_equal(j->rewound.lost_seq, 5);
    assert_int_equal(j->rewound.kept_seq, 3);
    end(j);
}

static void a_key_has_1_to_512_bytes(void **state)
{
    struct journal *j = begin();
    struct bt_error err;
    char key[513];
    bool found;

    (void)state;
    memset(key, 'k', sizeof key);
    fake_pq_answer("baton_s2.schedules WHERE name", "1");
    for (size_t n = 511; n <= 513; n++) {
        found = n == 513;
        expect(journal_key_is_at(j, 2, JOURNAL_KEY_NAME, (struct str){key, n}, &found, &err), BT_OK,
               &err);
        assert_true(found == (n <= 512));
    }
    found = true;
    expect(journal_key_is_at(j, 2, JOURNAL_KEY_NAME, (struct str){key, 0}, &found, &err), BT_OK,
           &err);
    assert_false(found);
    expect(journal_key_is_at(j, 2, JOURNAL_KEY_NAME, (struct str){key, 1}, &found, &err), BT_OK,
           &err);
    assert_true(found);
    end(j);
}

static void eight_older_numbers_of_shards_are_kept(void **state)
{
    struct journal *j = NULL;
    struct bt_error err;
    const uint32_t *maps;

    (void)state;
    world_begin();
    fake_pq_answer("SELECT count(*) FROM baton.maps", "9");
    fake_pq_answer("FROM baton.maps m WHERE", "2");
    expect(world_open(&ONE, &j, &err), BT_OK, &err);
    assert_int_equal(journal_maps(j, &maps), 8);
    assert_int_equal(maps[7], 2);
    assert_false(journal_has_strays(j));
    end(j);
}

static void a_size_is_that_of_its_own_shard(void **state)
{
    struct journal_options opt = ONE;
    struct journal_size size = {0};
    struct journal *j = NULL;
    struct bt_error err;

    (void)state;
    opt.shard = 2;
    world_begin();
    fake_pq_answer("pg_total_relation_size", "1"); /* of another one */
    fake_pq_answer("c.relnamespace = 'baton_s2'::regnamespace", "1000");
    fake_pq_answer("sum(octet_length", "700");
    expect(world_open(&opt, &j, &err), BT_OK, &err);
    expect(journal_size(j, &size, &err), BT_OK, &err);
    assert_int_equal(size.file, 1000);
    assert_int_equal(size.used, 700);
    end(j);
}

static void an_owner_without_a_name_has_that_of_the_host(void **state)
{
    struct journal_options opt = ONE;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct journal *j = NULL;
        struct bt_error err;
        char host[PG_NODE_MAX + 1] = "";
        world_begin();
        opt.node = i == 0 ? NULL : "";
        assert_int_equal(gethostname(host, sizeof host), 0);
        expect(world_open(&opt, &j, &err), BT_OK, &err);
        assert_string_equal(((struct pg_journal *)j)->node, host);
        end(j);
    }
}

static void room_is_there_again_until_a_write_says_otherwise(void **state)
{
    struct journal *j = begin();
    struct bt_error err;

    (void)state;
    expect(add_rows(j, 1, &err), BT_OK, &err);
    fake_pq_fail(1, FAKE_PQ_ERROR, "53100", 1);
    expect(journal_commit(j, &err), BT_UNAVAILABLE, &err);
    assert_int_equal(journal_last_seq(j), 0);
    (void)journal_room(j);
    expect(add_rows(j, 1, &err), BT_OK, &err);
    expect(journal_commit(j, &err), BT_OK, &err);
    assert_int_equal(fake_pq.stored.rows, 1);
    end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_renewed_when_a_third_of_it_has_gone),
        cmocka_unit_test(a_batch_is_stored_when_a_third_of_the_lease_has_gone),
        cmocka_unit_test(an_open_batch_is_too_late_after_two_thirds),
        cmocka_unit_test(a_renewal_that_is_refused_is_tried_again_until_two_thirds),
        cmocka_unit_test(effects_wait_for_a_renewal_when_the_turn_took_long),
        cmocka_unit_test(who_loses_it_before_effects_does_nothing),
        cmocka_unit_test(effects_wait_no_longer_than_two_thirds),
        cmocka_unit_test(a_poll_that_fails_is_a_connection_that_is_lost_but_for_a_signal),
        cmocka_unit_test(answers_that_end_too_early_are_lost),
        cmocka_unit_test(an_answer_counts_until_half_a_lease),
        cmocka_unit_test(the_caller_is_called_every_20_ms_after_250_ms),
        cmocka_unit_test(a_ride_ends_when_the_caller_wants_no_more_of_it),
        cmocka_unit_test(
            a_turn_is_sent_again_five_times_when_it_is_undone_and_eight_when_it_is_lost),
        cmocka_unit_test(five_rows_and_more_go_as_arrays_and_each_is_stored_once),
        cmocka_unit_test(a_long_result_is_read_in_pages_that_grow),
        cmocka_unit_test(a_column_is_of_8_4_or_1_bytes),
        cmocka_unit_test(a_read_fails_when_it_is_refused_or_its_journal_is_dead),
        cmocka_unit_test(sixteen_plans_are_read_in_one_round_trip),
        cmocka_unit_test(rows_that_were_read_ahead_count_for_all_of_a_plan_up_to_the_same_position),
        cmocka_unit_test(what_a_write_changes_is_read_again),
        cmocka_unit_test(what_waits_is_sent_before_it_is_read_ahead),
        cmocka_unit_test(standbys_are_looked_for_every_minute_and_rewinds_every_ten_seconds),
        cmocka_unit_test(a_key_has_1_to_512_bytes),
        cmocka_unit_test(eight_older_numbers_of_shards_are_kept),
        cmocka_unit_test(a_size_is_that_of_its_own_shard),
        cmocka_unit_test(an_owner_without_a_name_has_that_of_the_host),
        cmocka_unit_test(room_is_there_again_until_a_write_says_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
