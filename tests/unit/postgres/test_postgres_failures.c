/*
 * What each failure of each statement comes to: the file beside this one has the outcomes of an
 * owner's work, of an opening and of looks when the n-th statement is refused, cannot be sent, is
 * lost, or is not answered. BATON_WRITE=1 writes it anew: read the difference.
 *
 *      commit IO "..." | epoch 1 pos 3.0 rows 3 ...      calls that fail, and what is stored
 *      7:812/b1b2b3b4 8:812/c1c2c3c4       so with the 7th and the 8th statement; the length and
 *                                          the hash of what was sent
 */
#include "tests/support/golden.h"
#include "tests/unit/postgres/postgres_world.h"

enum { STATEMENTS_MAX = 400 };
static struct buf told;

static uint32_t hash_of(const struct buf *b)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < b->len; i++) {
        h = (h ^ b->at[i]) * 16777619u;
    }
    return h;
}

static struct buf outcome; /* of a case */
static char before[1024];  /* of the case before */
static char message[BT_ERROR_MSG_MAX];

/* What is no success; a sentence that is the same as the one before is left out. */
static void tell_step(const char *what, enum bt_code code, const struct bt_error *err)
{
    if (code != BT_OK) {
        buf_printf(&outcome, " %s %s", what, bt_code_name(code));
        if (strcmp(message, err->msg) != 0) {
            buf_printf(&outcome, " \"%s\"", err->msg);
            (void)snprintf(message, sizeof message, "%s", err->msg);
        }
    }
}

/* Cases with one outcome are one paragraph. */
static void tell_case(uint32_t n)
{
    const struct fake_pq_state *s = &fake_pq.stored;

    buf_printf(&outcome, " | epoch %" PRIu64 " pos %" PRIu64 ".%u rows %" PRIu64 " mark %" PRIx64,
               s->epoch, pos_seq(s->pos), (unsigned)(s->pos & POS_K_MAX), s->rows, s->mark);
    buf_printf(&outcome, " at %" PRIu64, fake_pq.now % 1000000);
    if (strcmp(before, buf_cstr(&outcome)) != 0) {
        (void)snprintf(before, sizeof before, "%s", buf_cstr(&outcome));
        buf_printf(&told, "\n%s\n", before);
    }
    buf_printf(&told, " %u:%zu/%08" PRIx32, n, fake_pq.log.len, hash_of(&fake_pq.log));
    buf_clear(&outcome);
    buf_clear(&fake_pq.log);
    message[0] = 0;
}

static void part_of_cases(const char *what, const char *fails)
{
    buf_printf(&told, "\n## %s, and %s", what, fails);
    before[0] = 0;
}

static bool see_plan(const struct journal_plan *p, void *self)
{
    (void)p;
    (void)self;
    return true;
}

/* An owner's work: it goes on after a failure as its caller might. */
static void work(struct journal *j)
{
    struct bt_error err = {.msg = ""};
    struct journal_plan p;
    struct journal_size size;
    uint64_t id;

    tell_step("rows", add_rows(j, 2, &err), &err);
    tell_step("read", journal_plan_by_key(j, STR_LIT("k"), &p, &err), &err);
    tell_step("row", add_rows(j, 1, &err), &err);
    tell_step("commit", journal_commit(j, &err), &err);
    tell_step("blob", journal_blob_add(j, "x", 1, &id, &err), &err);
    tell_step("commit", journal_commit(j, &err), &err);
    fake_pq.now += LEASE / 3;
    tell_step("keep", journal_keep(j, &err), &err);
    tell_step("rows", add_rows(j, 5, &err), &err);
    tell_step("commit", journal_commit(j, &err), &err);
    tell_step("size", journal_size(j, &size, &err), &err);
    tell_step("plan", add_plan(j, &err), &err);
    tell_step("commit", journal_commit(j, &err), &err);
    fake_pq.now += LEASE / 3;
    tell_step("plans", journal_plans_open(j, see_plan, NULL, &err), &err);
    tell_step("row", add_rows(j, 1, &err), &err);
    tell_step("commit", journal_commit(j, &err), &err);
}

static const struct failure {
    const char *name, *state;
    enum fake_pq_fault fault;
    uint32_t times;
} FAILURES[] = {
    {"22012", "22012", FAKE_PQ_ERROR, 1},
    {"53100", "53100", FAKE_PQ_ERROR, 1},
    {"53200", "53200", FAKE_PQ_ERROR, 1},
    {"57014", "57014", FAKE_PQ_ERROR, 1},
    {"55P03", "55P03", FAKE_PQ_ERROR, 2},
    {"40001", "40001", FAKE_PQ_ERROR, 1},
    {"40P01 twice", "40P01", FAKE_PQ_ERROR, 2},
    {"25006", "25006", FAKE_PQ_ERROR, 1},
    {"XX001", "XX001", FAKE_PQ_ERROR, 1},
    {"unsent", NULL, FAKE_PQ_UNSENT, 1},
    {"lost", NULL, FAKE_PQ_LOST, 1},
    {"lost twice", NULL, FAKE_PQ_LOST, 2},
    {"unanswered", NULL, FAKE_PQ_UNANSWERED, 1},
    {"silent", NULL, FAKE_PQ_SILENT, 1},
};

static void tell_failures(void)
{
    for (size_t i = 0; i < sizeof FAILURES / sizeof FAILURES[0]; i++) {
        const struct failure *f = &FAILURES[i];
        bool seen = true;
        part_of_cases("an owner's work", f->name);
        for (uint32_t n = 1; seen; n++) {
            struct journal *j;
            world_begin();
            j = world_lead();
            fake_pq.writes_down = true;
            fake_pq_fail(n, f->fault, f->state, f->times);
            work(j);
            journal_close(j);
            seen = fake_pq_failed();
            tell_case(n);
            fake_pq_end();
            assert_true(n < STATEMENTS_MAX);
        }
    }
}

static void tell_failed_openings(void)
{
    static const struct failure *const OF[] = {&FAILURES[0], &FAILURES[1], &FAILURES[9],
                                               &FAILURES[10], &FAILURES[13]};
    const struct journal_options opt = {
        .lease_ms = LEASE, .node = "one", .config = "c", .durability = DURABILITY_REPLICATED};

    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
        bool seen = true;
        part_of_cases("open", OF[i]->name);
        for (uint32_t n = 1; seen; n++) {
            struct journal *j = NULL;
            struct bt_error err = {.msg = ""};
            enum bt_code code;
            world_begin();
            fake_pq_answer("SHOW synchronous_standby_names", "'s1'");
            fake_pq_answer(SHOWS_OVER, "1|'two'");
            fake_pq.writes_down = true;
            fake_pq_fail(n, OF[i]->fault, OF[i]->state, 1);
            code = world_open(&opt, &j, &err);
            seen = fake_pq_failed();
            tell_step("open", code, &err);
            journal_close(j);
            tell_case(n);
            fake_pq_end();
            assert_true(n < STATEMENTS_MAX);
        }
    }
}

typedef enum bt_code (*look_fn)(struct journal_look *l, struct bt_error *err);

static enum bt_code owner(struct journal_look *l, struct bt_error *err)
{
    struct journal_owner o;

    return journal_look(l, &o, err);
}

static enum bt_code shards(struct journal_look *l, struct bt_error *err)
{
    struct journal_shard s;
    uint32_t n;

    return journal_look_shards(l, &s, 1, &n, err);
}

static enum bt_code nodes(struct journal_look *l, struct bt_error *err)
{
    struct journal_node node = {.places = NULL};
    uint32_t n;
    const enum bt_code code = journal_look_nodes(l, &node, 1, &n, err);

    free(node.places);
    return code;
}

static enum bt_code waits(struct journal_look *l, struct bt_error *err)
{
    int64_t ms;

    return journal_look_wait(l, "one", &ms, err);
}

static enum bt_code moves(struct journal_look *l, struct bt_error *err)
{
    return journal_look_move(l, 1, "one", err);
}

static enum bt_code drains(struct journal_look *l, struct bt_error *err)
{
    return journal_look_drain(l, "one", true, err);
}

static enum bt_code beats(struct journal_look *l, struct bt_error *err)
{
    return journal_look_beat(l, "one", "[]", "c", err);
}

static enum bt_code notes(struct journal_look *l, struct bt_error *err)
{
    return journal_look_rewound(l, 1, 2, err);
}

static enum bt_code makes(struct journal_look *l, struct bt_error *err)
{
    return journal_look_init(l, 2, err);
}

static enum bt_code grows(struct journal_look *l, struct bt_error *err)
{
    fake_pq_answer("SELECT count(*) FROM baton.shards WHERE epoch > 0", "1");
    return journal_look_grow(l, 2, err);
}

static void tell_failed_looks(void)
{
    static const struct {
        const char *name;
        look_fn fn;
    } LOOKS[] = {{"look", owner},
                 {"shards", shards},
                 {"nodes", nodes},
                 {"wait", waits},
                 {"move", moves},
                 {"drain", drains},
                 {"beat", beats},
                 {"rewound", notes},
                 {"init", makes},
                 {"expand", journal_look_expand},
                 {"finalize", journal_look_finalize},
                 {"grow", grows}};

    for (size_t i = 0; i < 2 * sizeof LOOKS / sizeof LOOKS[0]; i++) {
        const bool lost = i % 2 == 1;
        bool seen = true;
        part_of_cases(LOOKS[i / 2].name, lost ? "lost" : "42P01");
        for (uint32_t n = 1; seen; n++) {
            struct journal_look *l = NULL;
            struct bt_error err = {.msg = ""};
            enum bt_code code;
            world_begin();
            fake_pq_answer("current_setting('server_version')", "'17.1'|''|'t'|'f'");
            fake_pq_answer("SELECT f.format, encode(s.owner", "2|'two'|7|9437184|15|'t'|2");
            fake_pq_answer("AND owner <> $1 AND EXISTS", "'t'|1");
            fake_pq_answer("string_agg", "''");
            fake_pq_answer("encode(s.owner, 'escape'), coalesce(", NULL);
            fake_pq_answer("SELECT encode(n.node, 'escape'), ", NULL);
            assert_int_equal(journal_look_open(URL, LEASE, 1, &l, &err), BT_OK);
            fake_pq.writes_down = true;
            fake_pq_fail(n, lost ? FAKE_PQ_LOST : FAKE_PQ_ERROR, "42P01", 1);
            code = LOOKS[i / 2].fn(l, &err);
            seen = fake_pq_failed();
            tell_step(LOOKS[i / 2].name, code, &err);
            journal_look_close(l);
            tell_case(n);
            fake_pq_end();
            assert_true(n < STATEMENTS_MAX);
        }
    }
}

static void what_a_failure_comes_to_is_as_it_is_told(void **state)
{
    char *was = golden_read(TOLD);

    (void)state;
    buf_init(&told, GOLDEN_MAX - 1);
    buf_init(&outcome, sizeof before - 1);
    tell_failed_openings();
    tell_failures();
    tell_failed_looks();
    assert_int_equal(told.bad, BT_OK);
    assert_int_equal(outcome.bad, BT_OK);
    buf_done(&outcome);
    buf_add_byte(&told, '\n');
    golden_keep(TOLD, was, buf_cstr(&told));
    buf_done(&told);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_failure_comes_to_is_as_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
