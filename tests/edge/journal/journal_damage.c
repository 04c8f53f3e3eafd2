/* G22: a flipped bit is detected; its plan is quarantined; the others continue; no altered data is
 * ever returned. */
#include "tests/unit/journal/journal_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/base/log.h"
#include "tests/edge/journal/workload.h"
#include "tests/support/random.h"

enum { PLANS = 20, ROWS_PER_PLAN = 8, FLIPS = 500, ROW_FLIPS = 100, SESSIONS = 4 };

static char dir[64];
static char file[128];
static uint8_t *sound;
static size_t sound_len;
static const struct journal_options OPT = {.durability = DURABILITY_PROCESS};

static void no_log(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level;
    (void)event;
    (void)text;
    (void)self;
}

static void store(const uint8_t *bytes)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, sound_len, f), sound_len);
    assert_int_equal(fclose(f), 0);
}

/* One flipped bit must not make the name of another session. */
static char session_letter(uint64_t n)
{
    return "aceg"[n];
}

/* A turn with two messages in one of the sessions. */
static void talk(struct journal *j, uint64_t p)
{
    char session[32];
    char text[64];
    struct bt_error err;
    uint64_t n;
    struct journal_turn t = {
        .turn_id = uuid_new(), .asked = 2 * (p / SESSIONS) + 1, .plan = uuid_new()};
    struct journal_message m = {.role = STR_LIT("user"), .wall = p, .turn = t.turn_id};

    (void)snprintf(session, sizeof session, "session %c", session_letter(p % SESSIONS));
    (void)snprintf(text, sizeof text, "said in turn %02llu", (unsigned long long)p);
    m.text = t.client_key = str_from(text);
    t.session_id = str_from(session);
    assert_ok(journal_message_add(j, t.session_id, &m, &n, &err), err);
    assert_ok(journal_message_add(j, t.session_id, &m, &n, &err), err);
    assert_ok(journal_turn_put(j, &t, &err), err);
}

static int make_sound(void **state)
{
    struct journal *j;
    struct bt_error err;
    struct stat st;
    char text[64];
    uint64_t id;
    FILE *f;

    (void)state;
    log_setup(LOG_ERR, no_log, NULL);
    work_dir(dir);
    (void)snprintf(file, sizeof file, "%s/journal.db", dir);
    assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
    for (uint64_t p = 1; p <= PLANS; p++) {
        (void)snprintf(text, sizeof text, "plan document %02llu", (unsigned long long)p);
        (void)add_plan(j, text, text);
        for (uint64_t r = 1; r <= ROWS_PER_PLAN; r++) {
            (void)snprintf(text, sizeof text, "row %02llu of plan %02llu", (unsigned long long)r,
                           (unsigned long long)p);
            add_event(j, p, r, text);
        }
        (void)snprintf(text, sizeof text, "state of plan %02llu", (unsigned long long)p);
        assert_ok(journal_plan_status(j, p, str_from(text), 0, &err), err);
        (void)snprintf(text, sizeof text, "blob number %02llu", (unsigned long long)p);
        assert_ok(journal_blob_add(j, text, strlen(text), &id, &err), err);
        talk(j, p);
        commit(j);
    }
    journal_close(j);
    f = fopen(file, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    sound_len = (size_t)st.st_size;
    sound = malloc(sound_len);
    assert_non_null(sound);
    assert_int_equal(fread(sound, 1, sound_len, f), sound_len);
    (void)fclose(f);
    return 0;
}

static int forget_sound(void **state)
{
    (void)state;
    free(sound);
    fixture_remove_tree(dir);
    return 0;
}

struct survey {
    struct journal *j;
    uint64_t plan;
    uint64_t row;
    uint64_t event;
    uint64_t seq, damaged, damaged_seq; /* of events */
    bool replayed[PLANS + 1];
    uint32_t plans_ok;
    uint32_t plans_bad;
    uint64_t session;
    uint32_t messages_ok, messages_bad, turns_ok;
};

/* Every returned row is exactly what was written. */
static bool exact_row(const struct journal_row *row, void *self)
{
    struct survey *v = self;
    char want[64];

    v->row++;
    assert_int_equal(row->plan_ix, v->plan);
    (void)snprintf(want, sizeof want, "row %02llu of plan %02llu", (unsigned long long)v->row,
                   (unsigned long long)v->plan);
    assert_int_equal(row->body_len, strlen(want));
    assert_memory_equal(row->body, want, row->body_len);
    assert_int_equal(row->seq, (v->plan - 1) * ROWS_PER_PLAN + v->row);
    assert_true(str_is(row->type, "plan_started"));
    return true;
}

static bool exact_plan(const struct journal_plan *p, void *self)
{
    struct survey *v = self;
    char want[64];

    assert_true(p->ix >= 1 && p->ix <= PLANS);
    (void)snprintf(want, sizeof want, "plan document %02llu", (unsigned long long)p->ix);
    assert_true(str_is(p->goal, want) && str_is(p->client_key, want));
    assert_int_equal(p->doc_len, strlen(want));
    assert_memory_equal(p->doc, want, p->doc_len);
    (void)snprintf(want, sizeof want, "state of plan %02llu", (unsigned long long)p->ix);
    assert_true(str_is(p->status, want));
    v->plan = p->ix;
    v->row = 0;
    if (journal_replay(v->j, p->ix, exact_row, v, NULL) == BT_OK) {
        v->replayed[p->ix] = v->row == ROWS_PER_PLAN; /* a lost tail looks like a younger plan */
        v->plans_ok++;
    } else {
        v->plans_bad++;
    }
    return true;
}

static bool exact_event(const struct journal_row *row, void *self)
{
    struct survey *v = self;

    assert_true(row->seq > v->seq);
    assert_true(row->seq == v->seq + 1 || v->damaged > 0); /* nothing is left out in silence */
    v->seq = row->seq;
    if (row->damaged) {
        v->damaged++;
        v->damaged_seq = row->seq;
    } else {
        char want[64];
        (void)snprintf(want, sizeof want, "row %02llu of plan %02llu",
                       (unsigned long long)((row->seq - 1) % ROWS_PER_PLAN + 1),
                       (unsigned long long)((row->seq - 1) / ROWS_PER_PLAN + 1));
        assert_int_equal(row->body_len, strlen(want));
        assert_memory_equal(row->body, want, row->body_len);
        v->event++;
    }
    return true;
}

static bool exact_message(const struct journal_message *m, void *self)
{
    struct survey *v = self;
    uint64_t turn = (m->n - 1) / 2 * SESSIONS + (v->session > 0 ? v->session : SESSIONS);
    char want[64];

    (void)snprintf(want, sizeof want, "said in turn %02llu", (unsigned long long)turn);
    assert_true(m->damaged || (str_is(m->text, want) && str_is(m->role, "user")));
    v->messages_bad += m->damaged;
    v->messages_ok += !m->damaged;
    return true;
}

static bool exact_turn(const struct journal_turn *t, void *self)
{
    struct survey *v = self;
    assert_true(t->client_key.len == strlen("said in turn 01") && t->answered == 0);
    v->turns_ok++;
    return true;
}

static void survey_talk(struct survey *v)
{
    struct bt_error err;

    for (v->session = 0; v->session < SESSIONS; v->session++) {
        char id[32];
        (void)snprintf(id, sizeof id, "session %c", session_letter(v->session));
        if (journal_messages(v->j, str_from(id), 0, 1000, exact_message, v, &err) != BT_OK) {
            assert_true(strlen(err.msg) > 10);
        }
    }
    if (journal_turns_open(v->j, exact_turn, v, &err) != BT_OK) {
        assert_true(strlen(err.msg) > 10);
    }
}

/* Reads everything; false when the journal cannot be opened. */
static bool survey(struct survey *v)
{
    struct bt_error err;
    struct buf blob;
    char want[64];

    *v = (struct survey){0};
    if (journal_open_sqlite(dir, &OPT, &v->j, &err) != BT_OK) {
        assert_true(strlen(err.msg) > 10);
        return false;
    }
    buf_init(&blob, 1000);
    if (journal_plans_open(v->j, exact_plan, v, &err) != BT_OK ||
        journal_commit(v->j, &err) != BT_OK ||
        journal_events(v->j, 1, 0, UINT32_MAX, exact_event, v, &err) != BT_OK) {
        assert_true(strlen(err.msg) > 10);
    }
    for (uint64_t id = 1; id <= PLANS; id++) {
        buf_clear(&blob);
        if (journal_blob_get(v->j, id, &blob, &err) == BT_OK) {
            (void)snprintf(want, sizeof want, "blob number %02llu", (unsigned long long)id);
            assert_string_equal(buf_cstr(&blob), want);
        }
    }
    buf_done(&blob);
    survey_talk(v);
    journal_close(v->j);
    return true;
}

static void no_flipped_bit_crashes_or_gives_something_altered(void **state)
{
    struct rng r = rng_seeded(__func__);
    uint32_t refused = 0;
    uint32_t noticed = 0;
    uint32_t harmless = 0;
    uint32_t others_read = 0;

    (void)state;
    for (int i = 0; i < FLIPS; i++) {
        struct survey v;
        size_t at = rng_below(&r, (uint32_t)sound_len);
        uint8_t *bytes = sound;
        uint8_t was = bytes[at];
        bytes[at] ^= (uint8_t)(1u << rng_below(&r, 8));
        store(bytes);
        bytes[at] = was;
        if (!survey(&v)) {
            refused++;
        } else if (v.plans_ok == PLANS && v.event == PLANS * ROWS_PER_PLAN && v.damaged == 0) {
            harmless++;
        } else {
            noticed++;
            others_read += v.plans_ok > 0 || v.event > 0;
        }
    }
    (void)fprintf(stderr, "refused at open %u, noticed %u (others still read: %u), no effect %u\n",
                  refused, noticed, others_read, harmless);
    assert_true(others_read * 10 >= noticed * 7);
}

/* Of the whole file most bytes are free: each of the tables and indexes has a page of its own. Here
 * every flip hits a row that is read, so every one must be noticed, and cost that row alone. */
static void every_flip_in_a_row_is_noticed(void **state)
{
    struct rng r = rng_seeded(__func__);

    (void)state;
    for (int i = 0; i < ROW_FLIPS; i++) {
        struct survey v;
        char text[64];
        uint8_t *at;
        uint8_t was;
        (void)snprintf(text, sizeof text, "row %02u of plan %02u", 1 + rng_below(&r, ROWS_PER_PLAN),
                       1 + rng_below(&r, PLANS));
        at = memmem(sound, sound_len, text, strlen(text));
        assert_non_null(at);
        assert_null(memmem(at + 1, sound_len - (size_t)(at + 1 - sound), text, strlen(text)));
        at += rng_below(&r, (uint32_t)strlen(text));
        was = *at;
        *at ^= (uint8_t)(1u << rng_below(&r, 8));
        store(sound);
        *at = was;
        assert_true(survey(&v));
        assert_int_equal(v.damaged, 1);
        assert_int_equal(v.event, PLANS * ROWS_PER_PLAN - 1);
        assert_int_equal(v.plans_ok, PLANS - 1);
    }
}

static void flip_text(uint8_t *bytes, const char *text)
{
    uint8_t *at = memmem(bytes, sound_len, text, strlen(text));

    assert_non_null(at);
    while (at != NULL) { /* every copy: table and indexes */
        at[strlen(text) - 1] ^= 1;
        at = memmem(at, sound_len - (size_t)(at - bytes), text, strlen(text));
    }
    store(bytes);
}

static void only_the_plan_that_is_hit_is_lost(void **state)
{
    static const char *const HIT[] = {"row 03 of plan 07", "plan document 07", "blob number 07",
                                      "state of plan 07"};
    uint8_t *bytes = malloc(sound_len);

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof HIT / sizeof HIT[0]; i++) {
        struct survey v;
        struct bt_error err;
        struct buf report;
        memcpy(bytes, sound, sound_len);
        flip_text(bytes, HIT[i]);
        buf_init(&report, 10000);
        assert_int_equal(journal_inspect(dir, NULL, NULL, &report, &err), BT_IO);
        assert_non_null(strstr(buf_cstr(&report), "damaged"));
        buf_done(&report);
        assert_true(survey(&v));
        for (uint64_t p = 1; p <= PLANS; p++) {
            assert_int_equal(v.replayed[p], p != 7 || i == 2);
        }
        if (i == 1 || i == 3) { /* quarantined for good: the next start does not return it */
            struct seen s = {{0}};
            struct journal *j;
            assert_ok(journal_open_sqlite(dir, &OPT, &j, &err), err);
            assert_ok(journal_plans_open(j, see_plan, &s, &err), err);
            assert_int_equal(s.n, PLANS - 1);
            journal_close(j);
        }
    }
    free(bytes);
}

/* Who asks for the plan is told what became of it. */
static void is_put_aside(uint64_t ix)
{
    sqlite3_stmt *row = NULL;
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT status, note FROM plan_state WHERE ix = ?", -1, &row, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_bind_int64(row, 1, (sqlite3_int64)ix), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(row, 0), "quarantined");
    assert_string_equal((const char *)sqlite3_column_text(row, 1),
                        "the state of the plan is damaged");
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Its row of states is gone altogether: no page says so, only the numbers of the others do. */
static void a_plan_without_a_state_is_put_aside(void **state)
{
    static const uint64_t LOST[] = {1, 7, PLANS};

    (void)state;
    for (size_t i = 0; i < sizeof LOST / sizeof LOST[0]; i++) {
        struct survey v;
        sqlite3 *db = NULL;
        char sql[80];
        store(sound);
        (void)snprintf(sql, sizeof sql, "DELETE FROM plan_state WHERE ix = %llu",
                       (unsigned long long)LOST[i]);
        assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_changes(db), 1);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        assert_true(survey(&v));
        for (uint64_t p = 1; p <= PLANS; p++) {
            assert_int_equal(v.replayed[p], p != LOST[i]);
        }
        is_put_aside(LOST[i]);
    }
}

/* What is before and after the row is given, and a marker in its place: of all, and of its plan. */
static void a_damaged_row_costs_its_own_event(void **state)
{
    static const uint64_t HIT = 6 * ROWS_PER_PLAN + 3;
    uint8_t *bytes = malloc(sound_len);
    struct survey v = {0};
    struct bt_error err;

    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, sound, sound_len);
    flip_text(bytes, "row 03 of plan 07");
    assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
    assert_ok(journal_events(v.j, 1, 0, UINT32_MAX, exact_event, &v, &err), err);
    assert_int_equal(v.event, PLANS * ROWS_PER_PLAN - 1);
    assert_int_equal(v.damaged, 1);
    assert_int_equal(v.damaged_seq, HIT);
    v.seq = 6 * ROWS_PER_PLAN;
    v.event = v.damaged = 0;
    assert_ok(journal_events(v.j, 1, 7, UINT32_MAX, exact_event, &v, &err), err);
    assert_int_equal(v.event, ROWS_PER_PLAN - 1);
    assert_int_equal(v.damaged, 1);
    assert_int_equal(v.damaged_seq, HIT);
    v = (struct survey){.j = v.j, .seq = HIT - 1}; /* pages begin and end with it */
    assert_ok(journal_events(v.j, HIT, 0, 1, exact_event, &v, &err), err);
    assert_true(v.damaged == 1 && v.event == 0);
    journal_close(v.j);
    free(bytes);
}

/* A whole page is gone: so are the rows on it, and no others. */
static void a_lost_page_costs_the_events_on_it(void **state)
{
    uint8_t *bytes = malloc(sound_len);
    struct survey v = {0};
    struct bt_error err;
    uint8_t *at;
    size_t page;

    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, sound, sound_len);
    at = memmem(bytes, sound_len, "row 03 of plan 07", strlen("row 03 of plan 07"));
    assert_non_null(at);
    page = (size_t)(at - bytes) / 4096 * 4096;
    memset(bytes + page, 0xA5, 4096);
    store(bytes);
    assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
    assert_ok(journal_events(v.j, 1, 0, UINT32_MAX, exact_event, &v, &err), err);
    assert_int_equal(v.event + v.damaged, PLANS * ROWS_PER_PLAN);
    assert_true(v.damaged > 1 && v.damaged < 120); /* of about 40 bytes each */
    assert_int_equal(v.seq, PLANS * ROWS_PER_PLAN);
    journal_close(v.j);
    free(bytes);
}

static bool jumping_event(const struct journal_row *row, void *self)
{
    struct survey *v = self;

    assert_true(row->seq > v->seq);
    assert_true(row->damaged == (row->seq == 17 || row->seq == 18 || row->seq == 30));
    v->seq = row->seq;
    v->damaged += row->damaged;
    v->event += !row->damaged;
    return true;
}

static void count_problem(struct str text, void *self)
{
    (void)text;
    ++*(uint32_t *)self;
}

/* A range that was deleted, and rows that are gone without a trace, next to it and elsewhere. */
static void what_was_deleted_is_no_damage_and_what_is_lost_beside_it_is(void **state)
{
    struct survey v = {0};
    struct bt_error err;
    struct journal_scrub at = {.table = 0};
    sqlite3 *db = NULL;
    uint32_t problems = 0;

    (void)state;
    store(sound);
    assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
    for (uint64_t ix = 1; ix <= 2; ix++) { /* rows 1 to 2 * ROWS_PER_PLAN */
        bool more = true;
        assert_ok(journal_plan_status(v.j, ix, STR_LIT("completed"), 1, &err), err);
        assert_ok(journal_commit(v.j, &err), err);
        assert_ok(journal_plan_delete(v.j, ix, STR_LIT("test"), 2, &err), err);
        assert_ok(journal_commit(v.j, &err), err);
        while (more) {
            assert_ok(journal_sweep(v.j, 1000, &more, &err), err);
            assert_ok(journal_commit(v.j, &err), err);
        }
    }
    journal_close(v.j);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "DELETE FROM rows WHERE pos >> 20 IN (17, 18, 30)", NULL, NULL, NULL),
        SQLITE_OK);
    (void)sqlite3_close(db);
    assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
    assert_ok(journal_events(v.j, 1, 0, UINT32_MAX, jumping_event, &v, &err), err);
    assert_int_equal(v.damaged, 3);
    assert_int_equal(v.event, (PLANS - 2) * ROWS_PER_PLAN - 3);
    assert_int_equal(v.seq, PLANS * ROWS_PER_PLAN);
    while (!at.done) {
        assert_ok(journal_scrub(v.j, &at, 1000000, count_problem, &problems, &err), err);
    }
    assert_int_equal(problems, 0);
    journal_close(v.j);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE gaps SET last = last + 1; UPDATE gone SET rows = 99; "
                                  "UPDATE chains SET rows = 99 WHERE ix = 3",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
    assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
    at = (struct journal_scrub){.table = 0};
    while (!at.done) {
        assert_ok(journal_scrub(v.j, &at, 1000000, count_problem, &problems, &err), err);
    }
    assert_int_equal(problems, 5); /* two gaps, two tombstones, one chain */
    journal_close(v.j);
}

/* The ranges of plans that were deleted, changed by `sql`: the plans that are there go on, their
 * numbers are not used again, and deletion goes on. */
static void a_damaged_range_of_deleted_plans_costs_nothing(void **state)
{
    static const char *const HITS[] = {
        "UPDATE gaps SET last = last + 1 WHERE kind = 1",
        "UPDATE gaps SET last = 1 << 50 WHERE kind = 1",
        "UPDATE gaps SET last = -1 WHERE kind = 1",
        "UPDATE gaps SET first = first + 1 WHERE kind = 1",
        "UPDATE gaps SET crc = crc + 1",
        "UPDATE gaps SET last = 1 << 60 WHERE kind = 0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof HITS / sizeof HITS[0]; i++) {
        static const uint64_t gone[] = {3, 4, PLANS};
        struct survey v = {0};
        struct bt_error err;
        sqlite3 *db = NULL;
        bool more = true;
        store(sound);
        assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
        for (size_t k = 0; k < 3; k++) {
            assert_ok(journal_plan_status(v.j, gone[k], STR_LIT("completed"), 1, &err), err);
            assert_ok(journal_plan_delete(v.j, gone[k], STR_LIT("test"), 2, &err), err);
        }
        while (more) {
            assert_ok(journal_sweep(v.j, 1000, &more, &err), err);
        }
        assert_ok(journal_commit(v.j, &err), err);
        journal_close(v.j);
        assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, HITS[i], NULL, NULL, NULL), SQLITE_OK);
        (void)sqlite3_close(db);
        assert_ok(journal_open_sqlite(dir, &OPT, &v.j, &err), err);
        assert_ok(journal_plans_open(v.j, exact_plan, &v, &err), err);
        assert_int_equal(v.plans_ok, PLANS - 3);
        assert_false(journal_dirty(v.j)); /* nothing is in quarantine */
        assert_true(journal_last_seq(v.j) <= PLANS * ROWS_PER_PLAN);
        assert_int_equal(add_plan(v.j, "next", "next"), PLANS + 1);
        assert_ok(journal_plan_status(v.j, 2, STR_LIT("completed"), 1, &err), err);
        assert_ok(journal_plan_delete(v.j, 2, STR_LIT("beside it"), 2, &err), err);
        assert_ok(journal_commit(v.j, &err), err);
        journal_close(v.j);
    }
}

static void only_the_message_the_turn_and_the_session_that_are_hit_are_lost(void **state)
{
    static const char *const HIT[] = {"said in turn 07", "session g"};
    uint8_t *bytes = malloc(sound_len);

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof HIT / sizeof HIT[0]; i++) {
        struct survey v;
        struct bt_error err;
        struct buf report;
        memcpy(bytes, sound, sound_len);
        flip_text(bytes, HIT[i]);
        buf_init(&report, 100000);
        assert_int_equal(journal_inspect(dir, NULL, NULL, &report, &err), BT_IO);
        assert_non_null(strstr(buf_cstr(&report), i == 0 ? "message 3 of" : "session \"session f"));
        buf_done(&report);
        assert_true(survey(&v));
        assert_int_equal(v.plans_ok, PLANS);
        assert_int_equal(v.messages_bad, i == 0 ? 2 : 0);
        assert_int_equal(v.messages_ok, i == 0 ? 2 * PLANS - 2 : 2 * PLANS - 2 * PLANS / SESSIONS);
        assert_int_equal(v.turns_ok, i == 0 ? PLANS - 1 : PLANS - PLANS / SESSIONS);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flipped_bit_crashes_or_gives_something_altered),
        cmocka_unit_test(every_flip_in_a_row_is_noticed),
        cmocka_unit_test(only_the_plan_that_is_hit_is_lost),
        cmocka_unit_test(a_plan_without_a_state_is_put_aside),
        cmocka_unit_test(a_damaged_row_costs_its_own_event),
        cmocka_unit_test(a_lost_page_costs_the_events_on_it),
        cmocka_unit_test(what_was_deleted_is_no_damage_and_what_is_lost_beside_it_is),
        cmocka_unit_test(a_damaged_range_of_deleted_plans_costs_nothing),
        cmocka_unit_test(only_the_message_the_turn_and_the_session_that_are_hit_are_lost),
    };
    return cmocka_run_group_tests(tests, make_sound, forget_sound);
}
