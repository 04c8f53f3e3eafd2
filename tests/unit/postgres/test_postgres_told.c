/*
 * What is sent to PostgreSQL: the file beside this one has every statement of an owner's life, of
 * its rides, and of those who look on. BATON_WRITE=1 writes it anew: read the difference.
 *
 *     ## two rows           what is done; below it what is sent; ";" is a Sync
 *     = OK                  and what it came to
 */
#include "tests/support/golden.h"
#include "tests/unit/postgres/postgres_world.h"

static struct buf told;

static void tell(enum bt_code code, const struct bt_error *err)
{
    buf_printf(&told, "= %s%s%s\n", bt_code_name(code), code != BT_OK ? ": " : "",
               code != BT_OK ? err->msg : "");
}

/* Moves what was sent since to the file. */
static void tell_sent(void)
{
    buf_add(&told, fake_pq.log.at, fake_pq.log.len);
    buf_clear(&fake_pq.log);
}

static void part(const char *title)
{
    buf_printf(&told, "## %s\n", title);
}

static void done(enum bt_code code, const struct bt_error *err)
{
    tell_sent();
    tell(code, err);
}

/* ---- an owner ---- */

static void open_told(const char *title, const struct journal_options *opt)
{
    struct journal *j = NULL;
    struct bt_error err;
    enum bt_code code;

    part(title);
    code = world_open(opt, &j, &err);
    done(code, &err);
    assert_true((j != NULL) == (code == BT_OK));
    if (j != NULL) {
        const uint32_t *maps;
        const uint32_t n = journal_maps(j, &maps);
        struct journal_rewound rewound = {0};
        const bool is_rewound = journal_rewound(j, &rewound);
        buf_printf(&told, "boot %" PRIu64 " seq %" PRIu64 " maps %u", journal_boot(j),
                   journal_last_seq(j), n);
        for (uint32_t i = 0; i < n; i++) {
            buf_printf(&told, " %u", maps[i]);
        }
        buf_printf(&told,
                   " strays %d rewound %d %" PRIu64 " %" PRIu64 " blob %" PRIu64 " note \"%s\"\n",
                   journal_has_strays(j), is_rewound, rewound.kept_seq, rewound.lost_seq,
                   journal_last_blob(j), j->note);
        journal_close(j);
        tell_sent();
    }
}

static void tell_options(void)
{
    struct journal_options opt = ONE;

    fake_pq.writes_down = fake_pq.writes_prepared = true;
    open_told("open", &ONE);
    fake_pq.writes_prepared = false;
    opt.durability = DURABILITY_PROCESS;
    open_told("open: durability process", &opt);
    opt.durability = DURABILITY_REPLICATED;
    fake_pq_answer("SHOW synchronous_standby_names", "''");
    open_told("open: replicated, no standby", &opt);
    fake_pq_answer("SHOW synchronous_standby_names", "'s1'");
    open_told("open: replicated", &opt);
    opt = ONE;
    opt.lease_ms = 0;
    open_told("open: lease 0", &opt);
    opt.lease_ms = PG_LEASE_MIN_MS - 1;
    open_told("open: lease 99", &opt);
    opt.lease_ms = PG_LEASE_MIN_MS + 1;
    open_told("open: lease 101", &opt);
}

static void tell_openings(void)
{
    struct journal_options opt = ONE;

    fake_pq.writes_down = true;
    opt.shard = 2;
    opt.shards = 1;
    opt.config = "c1";
    fake_pq.stored.pos = UINT64_C(7) << POS_K_BITS;
    fake_pq_answer("SELECT greatest((SELECT coalesce(max(ix)", "5");
    fake_pq_answer("SELECT greatest((SELECT coalesce(max(id)", "9");
    fake_pq_answer("SELECT coalesce(max(pos), 0) FROM rows", "7340032");
    fake_pq_answer(SHOWS_OVER, "1|'two'");
    fake_pq_answer("AND config <> ''", "1");
    open_told("open: shard 2, another configuration led before", &opt);
    fake_pq_answer("AND config <> ''", "0");
    open_told("open: the same configuration led before", &opt);
    fake_pq_answer(SHOWS_OVER, "1|'one'");
    open_told("open: this node led before", &opt);
    opt.shards = 3;
    open_told("open: another number of shards", &opt);
    opt.shards = 0;
    fake_pq_answer("SELECT coalesce(max(pos), 0) FROM rows", "7340033");
    open_told("open: rows after the position", &opt);
    fake_pq_answer("SELECT coalesce(max(pos), 0) FROM rows", "0");
    fake_pq_answer("SELECT coalesce(max(lost), 0) FROM baton.rewinds", "6");
    fake_pq_answer("SELECT min(kept) FROM baton.rewinds", "4");
    open_told("open: rewound", &opt);
    fake_pq_answer("SELECT count(*) FROM baton.shards", "4");
    fake_pq_answer("SELECT count(*) FROM baton.maps", "1");
    fake_pq_answer("SELECT coalesce(max(m.shards), 0)::int8 FROM baton.maps m WHERE m.shards < 4",
                   "2");
    fake_pq_answer("SELECT coalesce(max(m.shards), 0)::int8 FROM baton.maps m WHERE m.shards < 2",
                   "1");
    fake_pq_answer("FROM baton_s0.plans WHERE substr", "1");
    open_told("open: grown twice, with strays", &opt);
    fake_pq_answer("SELECT format FROM baton.fleet", "4");
    open_told("open: a newer format", &opt);
    fake_pq_answer("SELECT format FROM baton.fleet", "2");
    fake_pq_answer("SELECT tables FROM baton.fleet", "2");
    open_told("open: format 2", &opt);
    fake_pq_answer("SELECT format FROM baton.fleet", "1");
    fake_pq_answer("SELECT count(*) FROM pg_attribute", "0");
    open_told("open: format 1", &opt);
    fake_pq_answer("SELECT format FROM baton.fleet", "0");
    open_told("open: no tables", &opt);
    fake_pq_answer("SELECT owner, to_char(", "'two'|'10:11:12.345'|'f'");
    fake_pq_answer("SELECT format FROM baton.fleet", "3");
    fake_pq_answer("SELECT count(*) FROM pg_attribute", "1");
    fake_pq_answer("SELECT tables FROM baton.fleet", "3");
    fake_pq_answer("took_epoch = epoch + 1", NULL);
    fake_pq_answer("take", NULL);
    fake_pq_answer(SHOWS_OVER, NULL);
    open_told("open: it is owned", &opt);
    fake_pq.refused = 1;
    open_told("open: no connection", &opt);
}

static bool see_any(const struct journal_row *row, void *self)
{
    (void)row;
    (void)self;
    return true;
}

static bool see_plan(const struct journal_plan *p, void *self)
{
    (void)p;
    (void)self;
    return true;
}

static void tell_batches(void)
{
    struct bt_error err = {.msg = ""};
    struct journal *j = world_lead();
    struct journal_plan p;
    uint64_t id;

    fake_pq.writes_down = true;
    for (uint32_t n = 1; n <= 6; n += n == 1 ? 3 : 1) {
        buf_printf(&told, "## %u rows\n", n);
        assert_int_equal(add_rows(j, n, &err), BT_OK);
        done(journal_commit(j, &err), &err);
    }
    part("a blob: a turn without rows");
    done(journal_blob_add(j, "bytes", 5, &id, &err), &err);
    done(journal_commit(j, &err), &err);
    part("nothing: a turn without rows");
    done(journal_commit(j, &err), &err);
    part("a plan, and a read of a batch with 5 rows");
    done(add_plan(j, &err), &err);
    done(add_rows(j, 5, &err), &err);
    done(journal_plan_by_key(j, STR_LIT("key"), &p, &err), &err);
    part("a second read of it, with one more row");
    done(add_rows(j, 1, &err), &err);
    done(journal_plan_by_key(j, STR_LIT("key"), &p, &err), &err);
    done(journal_plan_by_key(j, STR_LIT("key"), &p, &err), &err);
    done(add_rows(j, 1, &err), &err);
    done(journal_commit(j, &err), &err);
    part("NULL, and bytes of all kinds");
    {
        const struct journal_plan no_key = {.plan_id = {{9}},
                                            .goal = STR_LIT("g\0\xff"),
                                            .doc = "doc",
                                            .doc_len = 3,
                                            .status = STR_LIT("pending")};
        done(journal_plan_add(j, &no_key, &id, &err), &err);
    }
    done(journal_commit(j, &err), &err);
    journal_close(j);
}

/* Within a batch that a read has sent: then it is rolled back. */
static void tell_closings(void)
{
    struct journal_plan p;

    for (uint32_t refused = 0; refused < 2; refused++) {
        struct bt_error err = {.msg = ""};
        struct journal *j;
        world_begin();
        j = world_lead();
        assert_int_equal(add_rows(j, 1, &err), BT_OK);
        assert_int_equal(journal_plan_by_key(j, STR_LIT("key"), &p, &err), BT_NOT_FOUND);
        fake_pq.writes_down = true;
        fake_pq_fail_text("ROLLBACK", FAKE_PQ_ERROR, "57014", refused);
        part(refused == 0 ? "close within a batch" : "close, and the rollback is refused");
        journal_close(j);
        tell_sent();
        fake_pq_end();
    }
}

static void tell_reads(void)
{
    struct bt_error err = {.msg = ""};
    struct journal *j = world_lead();
    struct journal_size size = {0};
    uint64_t parted = 0;
    bool found = true;
    static const char BYTES[] = "k'\\\xff";
    const struct str key = {BYTES, sizeof BYTES - 1};

    fake_pq.writes_down = true;
    part("reads");
    done(journal_events(j, 1, 0, 10, see_any, NULL, &err), &err);
    done(journal_plans_open(j, see_plan, NULL, &err), &err);
    sql_of(j)->engine->ahead(sql_of(j), (uint64_t[]){7, 8}, 2);
    tell_sent();
    for (int kind = JOURNAL_KEY_SESSION; kind <= JOURNAL_KEY_NAME; kind++) {
        done(journal_key_is_at(j, 3, (enum journal_key)kind, key, &found, &err), &err);
        buf_printf(&told, "found %d\n", found);
    }
    part("size: small, with more counted than the files have");
    fake_pq_answer("pg_total_relation_size", "1000");
    fake_pq_answer("pg_relation_size('rows')", "33554432");
    fake_pq_answer("sum(octet_length", "2000");
    done(journal_size(j, &size, &err), &err);
    buf_printf(&told, "file %" PRIu64 " used %" PRIu64 "\n", size.file, size.used);
    part("size: a sample");
    fake_pq_answer("pg_relation_size('rows')", "67108864");
    fake_pq_answer("sum(octet_length", "300");
    done(journal_size(j, &size, &err), &err);
    buf_printf(&told, "file %" PRIu64 " used %" PRIu64 "\n", size.file, size.used);
    part("rewinds");
    fake_pq_answer("SELECT coalesce(min(kept), 0)", "4");
    done(journal_parted(j, 9, &parted, &err), &err);
    buf_printf(&told, "parted %" PRIu64 "\n", parted);
    j->rewound = (struct journal_rewound){.kept_seq = 4, .lost_seq = 6};
    done(journal_rewound_told(j, &err), &err);
    journal_close(j);
}

/* ---- another connection ---- */

static void ride(const char *title, void (*change)(void))
{
    struct bt_error err = {.msg = ""};
    struct journal *j;

    part(title);
    world_begin();
    j = world_lead();
    assert_int_equal(add_rows(j, 1, &err), BT_OK);
    assert_int_equal(journal_commit(j, &err), BT_OK);
    fake_pq.writes_down = true;
    assert_int_equal(add_rows(j, 1, &err), BT_OK);
    fake_pq_fail(1, FAKE_PQ_LOST, NULL, 1);
    change();
    done(journal_commit(j, &err), &err);
    buf_printf(&told, "at %" PRIu64 " epoch %" PRIu64 " rows %" PRIu64 "\n", fake_pq.now % 1000000,
               fake_pq.stored.epoch, fake_pq.stored.rows);
    done(add_rows(j, 1, &err), &err);
    done(journal_commit(j, &err), &err);
    journal_close(j);
    tell_sent();
    fake_pq_end();
}

static void nothing(void)
{
}

static void is_refused(void)
{
    fake_pq.refused = 9;
}

static void is_away(void)
{
    fake_pq.refused = UINT32_MAX;
    fake_pq.writes_down = false;
}

static void is_slow(void)
{
    fake_pq.latency = LEASE / 2 + 1;
    fake_pq.writes_down = false;
}

static void is_behind(void)
{
    fake_pq.stored.pos = 0;
}

static void is_at_no_position(void)
{
    fake_pq.stored.pos = UINT64_C(3) << POS_K_BITS;
}

static void is_owned(void)
{
    fake_pq.stored.epoch++;
    fake_pq_answer("CASE WHEN took_epoch = epoch", "2|1048576");
}

static void is_owned_from_before(void)
{
    fake_pq.stored.epoch++;
    fake_pq_answer("CASE WHEN took_epoch = epoch", "2|1048575");
}

static void is_of_an_older_epoch(void)
{
    fake_pq.stored.epoch = 0;
    fake_pq_answer("CASE WHEN took_epoch = epoch", "0|1048576");
}

static void has_no_shard(void)
{
    fake_pq.stored.epoch++;
    fake_pq_answer("CASE WHEN took_epoch = epoch", NULL);
}

static void has_a_newer_format(void)
{
    fake_pq_answer("SELECT format::int8", "4");
}

static void loses_each_take(void)
{
    fake_pq_fail_text("SET epoch = epoch + 1, owner", FAKE_PQ_UNANSWERED, NULL, 10);
}

static void loses_the_settings(void)
{
    fake_pq_fail_text("set_config", FAKE_PQ_LOST, NULL, 1);
}

static void loses_the_format(void)
{
    fake_pq_fail_text("SELECT format::int8", FAKE_PQ_LOST, NULL, 1);
}

static void loses_the_end_of_the_backend(void)
{
    fake_pq_fail_text("count(pg_terminate_backend", FAKE_PQ_UNANSWERED, NULL, 1);
}

static void tell_rides(void)
{
    ride("a ride: at once", nothing);
    ride("a ride: refused nine times", is_refused);
    ride("a ride: refused for ever", is_away);
    ride("a ride: no answers", is_slow);
    ride("a ride: behind what was acknowledged", is_behind);
    ride("a ride: at another position", is_at_no_position);
    ride("a ride: another owner", is_owned);
    ride("a ride: another owner, from before the last turn", is_owned_from_before);
    ride("a ride: an older epoch", is_of_an_older_epoch);
    ride("a ride: no such shard", has_no_shard);
    ride("a ride: a newer format", has_a_newer_format);
    ride("a ride: the answers to ten takes are lost", loses_each_take);
    ride("a ride: the settings are lost", loses_the_settings);
    ride("a ride: the format is lost", loses_the_format);
    ride("a ride: the end of the backend is lost", loses_the_end_of_the_backend);
}

/* ---- those who look ---- */

static void tell_owner(struct journal_look *l)
{
    struct journal_owner o;
    struct bt_error err = {.msg = ""};

    done(journal_look(l, &o, &err), &err);
    buf_printf(&told,
               "node \"%s\" shards %u epoch %" PRIu64 " seq %" PRIu64 " left %" PRId64
               " connected %d format %d %d tables %d server \"%s\" standbys \"%s\"\n",
               o.node, o.shards, o.epoch, o.seq, o.lease_left_ms, o.connected, o.format,
               o.format_known, o.tables, o.server, o.standbys);
}

static void tell_fleet(struct journal_look *l, uint32_t max)
{
    struct journal_shard s[2] = {{0}};
    struct journal_node n[2] = {{.places = NULL}};
    struct bt_error err = {.msg = ""};
    uint32_t count = 9;

    done(journal_look_shards(l, s, max, &count, &err), &err);
    buf_printf(&told, "%u: %u %" PRIu64 " %" PRIu64 " %" PRId64 " \"%s\" \"%s\" %d\n", count,
               s[0].shard, s[0].epoch, s[0].seq, s[0].lease_left_ms, s[0].node, s[0].moves_to,
               s[0].led);
    done(journal_look_nodes(l, n, max, &count, &err), &err);
    buf_printf(&told, "%u: \"%s\" %d %d \"%s\" \"%s\" %d \"%s\"\n", count, n[0].node, n[0].alive,
               n[0].draining, n[0].places != NULL ? n[0].places : "", n[0].version, n[0].knows,
               n[0].config);
    free(n[0].places);
}

static void tell_fleets(struct journal_look *l)
{
    static const char SHARD[] = "encode(s.owner, 'escape'), coalesce(";
    static const char NODE[] = "SELECT encode(n.node, 'escape'), ";

    part("shards and nodes");
    fake_pq_answer(SHARD, "2|5|9437184|700|'two'|'three'");
    fake_pq_answer(NODE, "'two'|'t'|'f'|'[]'|'1.2'|3|'c'");
    tell_fleet(l, 2);
    fake_pq_answer(SHARD, "2|5|9437184|1|'two'|''");
    fake_pq_answer(NODE, "'two'|'f'|'t'|'[1]'|''|2|''");
    tell_fleet(l, 1);
    fake_pq_answer(SHARD, "2|5|9437184|0|'two'|''");
    tell_fleet(l, 0);
    fake_pq_answer(SHARD, NULL);
    fake_pq_answer(NODE, NULL);
    tell_fleet(l, 2);
    fake_pq_answer(SHARD, "2|5|9437184|0|'two'|''");
    tell_fleet(l, 2);
}

static void tell_nodes(struct journal_look *l)
{
    struct bt_error err = {.msg = ""};
    int64_t ms = -1;

    part("nodes");
    fake_pq_answer("AS ms FROM baton.moves", "1234");
    done(journal_look_wait(l, "a\xff", &ms, &err), &err);
    buf_printf(&told, "ms %" PRId64 "\n", ms);
    fake_pq_answer("AS ms FROM baton.moves", NULL);
    done(journal_look_wait(l, "one", &ms, &err), &err);
    buf_printf(&told, "ms %" PRId64 "\n", ms);
    done(journal_look_beat(l, "one", "[2]", "conf", &err), &err);
    done(journal_look_leave(l, "one", &err), &err);
    fake_pq_answer("AND owner <> $1 AND EXISTS", "'t'|1");
    done(journal_look_move(l, 2, "two", &err), &err);
    fake_pq_answer("AND owner <> $1 AND EXISTS", "'f'|0");
    done(journal_look_move(l, 2, "two", &err), &err);
    fake_pq_answer("SET draining", "1");
    done(journal_look_drain(l, "two", true, &err), &err);
    done(journal_look_drain(l, "two", false, &err), &err);
    fake_pq_answer("SET draining", NULL);
    done(journal_look_drain(l, "two", true, &err), &err);
    done(journal_look_rewound(l, 3, 5, &err), &err);
}

static void grow(struct journal_look *l, const char *what, uint32_t shards)
{
    struct bt_error err = {.msg = ""};

    buf_printf(&told, "## %s to %u\n", what, shards);
    done(strcmp(what, "grow") == 0 ? journal_look_grow(l, shards, &err)
                                   : journal_look_init(l, shards, &err),
         &err);
}

static void tell_growth(struct journal_look *l)
{
    struct bt_error err = {.msg = ""};

    fake_pq_answer("SELECT count(*) FROM baton.shards WHERE epoch > 0", "0");
    grow(l, "init", 0);
    grow(l, "init", 1);
    grow(l, "init", 3);
    fake_pq_answer("SELECT count(*) FROM baton.shards", "2");
    fake_pq_answer("SELECT count(*) FROM baton.shards WHERE epoch > 0", "0");
    grow(l, "init", 1);
    grow(l, "grow", 4);
    fake_pq_answer("SELECT count(*) FROM baton.shards WHERE epoch > 0", "1");
    grow(l, "init", 2);
    grow(l, "init", 3);
    grow(l, "grow", 2);
    fake_pq_answer("SELECT count(*) FROM baton.maps", "7");
    grow(l, "grow", 4);
    fake_pq_answer("SELECT count(*) FROM baton.maps", "8");
    grow(l, "grow", 3);
    fake_pq_answer("SELECT count(*) FROM baton.maps", "0");
    fake_pq_answer("SELECT format FROM baton.fleet", "2");
    grow(l, "grow", 3);
    part("finalize: all know it");
    fake_pq_answer("string_agg", "''");
    done(journal_look_finalize(l, &err), &err);
    part("finalize: one does not");
    fake_pq_answer("string_agg", "'old (1.0)'");
    done(journal_look_finalize(l, &err), &err);
}

static void expand(struct journal_look *l, const char *title, const char *format,
                   const char *tables)
{
    static char row[64];
    struct bt_error err = {.msg = ""};

    part(title);
    (void)snprintf(row, sizeof row, "'17.1'|'s1'|'t'|'%s'", tables);
    fake_pq_answer("current_setting('server_version')", row);
    fake_pq_answer("SELECT f.format, encode(s.owner", format);
    tell_owner(l);
    done(journal_look_expand(l, &err), &err);
}

static void tell_looks(void)
{
    struct journal_look *l = NULL;
    struct bt_error err = {.msg = ""};

    fake_pq.writes_down = true;
    part("look: no address of a server");
    done(journal_look_open("/dir", LEASE, 0, &l, &err), &err);
    part("look: refused");
    fake_pq.refused = 1;
    done(journal_look_open(URL, 0, 0, &l, &err), &err);
    part("look: lease 0");
    done(journal_look_open(URL, 0, 1, &l, &err), &err);
    fake_pq_answer("AS ms FROM baton.moves", NULL);
    tell_nodes(l);
    journal_look_close(l);
    journal_look_close(NULL);
    part("look");
    done(journal_look_open(URL, LEASE, 1, &l, &err), &err);
    fake_pq_answer("current_setting('server_version')", "'17.1'|''|'f'|'f'");
    tell_owner(l);
    done(journal_look_expand(l, &err), &err);
    expand(l, "look: format 2, and no tables of 3", "2|'two'|7|9437184|1500|'t'|2", "f");
    expand(l, "look: format 2, and tables of 3", "2|'two'|7|9437184|1500|'f'|2", "t");
    expand(l, "look: format 3", "3|'two'|7|9437184|0|'f'|2", "t");
    expand(l, "look: a newer format", "4|'two'|7|9437184|0|'f'|2", "t");
    expand(l, "look: no such shard", NULL, "t");
    expand(l, "look: no tables at all", "0|''|0|0|0|'f'|1", "f");
    tell_fleets(l);
    tell_nodes(l);
    tell_growth(l);
    journal_look_close(l);
}

static void what_is_sent_is_as_it_is_told(void **state)
{
    static void (*const PARTS[])(void) = {tell_options, tell_openings, tell_batches, tell_reads,
                                          tell_looks};
    char *was = golden_read(TOLD);

    (void)state;
    buf_init(&told, GOLDEN_MAX - 1);
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        world_begin();
        PARTS[i]();
        fake_pq_end();
    }
    tell_closings();
    tell_rides();
    assert_int_equal(told.bad, BT_OK);
    golden_keep(TOLD, was, buf_cstr(&told));
    buf_done(&told);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_as_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
