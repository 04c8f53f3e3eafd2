/*
 * What a journal returns when it cannot do what it is asked for: after its end, without an
 * implementation, without a position left, and when a statement stops half way. SQLite's progress
 * handler stops the N-th operation of its machine, in whatever statement that is.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/journal/port.h"
#include "supervisor/journal/sqlite_internal.h"
#include "tests/unit/journal/journal_dump.h"

enum { DUMP_MAX = 4 * 1024 * 1024 };

/* ---- every function of the port ---- */

static bool no_plan(const struct journal_plan *p, void *self)
{
    (void)p;
    (void)self;
    return true;
}

static bool no_session(const struct journal_session *s, void *self)
{
    (void)s;
    (void)self;
    return true;
}

static bool no_message(const struct journal_message *m, void *self)
{
    (void)m;
    (void)self;
    return true;
}

static bool no_turn(const struct journal_turn *t, void *self)
{
    (void)t;
    (void)self;
    return true;
}

static bool no_schedule(const struct journal_schedule *s, void *self)
{
    (void)s;
    (void)self;
    return true;
}

static void no_start(struct str name, uint32_t place, uint64_t wall, void *self)
{
    (void)name;
    (void)place;
    (void)wall;
    (void)self;
}

static void no_agent(const struct journal_agent *a, void *self)
{
    (void)a;
    (void)self;
}

static bool no_row(const struct journal_row *r, void *self)
{
    (void)r;
    (void)self;
    return true;
}

static void no_problem(struct str text, void *self)
{
    (void)text;
    (void)self;
}

static enum bt_code put_plan(struct journal *j, struct bt_error *err)
{
    static const struct journal_plan p = {.plan_id = {{77}},
                                          .goal = {"g", 1},
                                          .client_key = {"new", 3},
                                          .session_id = {"s0", 2},
                                          .doc = "doc",
                                          .doc_len = 3,
                                          .created_wall = 5,
                                          .status = {"running", 7}};
    uint64_t ix;
    return journal_plan_add(j, &p, &ix, err);
}

static enum bt_code put_row(struct journal *j, struct bt_error *err)
{
    return journal_add_row(j, 3, err);
}

static enum bt_code put_message(struct journal *j, struct bt_error *err)
{
    static const struct journal_message m = {.role = {"user", 4}, .text = {"hello", 5}, .wall = 9};
    uint64_t n;
    return journal_message_add(j, STR_LIT("s0"), &m, &n, err);
}

static enum bt_code put_session(struct journal *j, struct bt_error *err)
{
    static const struct journal_session s = {.session_id = {"new", 3}, .updated_wall = 9};
    return journal_session_put(j, &s, err);
}

static enum bt_code put_turn(struct journal *j, struct bt_error *err)
{
    static const struct journal_turn t = {
        .turn_id = {{99}}, .session_id = {"s0", 2}, .client_key = {"k", 1}, .action = {"chat", 4}};
    return journal_turn_put(j, &t, err);
}

static enum bt_code put_schedule(struct journal *j, struct bt_error *err)
{
    static const struct journal_schedule s = {.name = {"n9", 2}, .rule = {"r", 1}, .doc = {"d", 1}};
    uint64_t ix;
    return journal_schedule_put(j, &s, &ix, err);
}

static enum bt_code put_agent(struct journal *j, struct bt_error *err)
{
    static const struct journal_agent a = {{"new", 3}, 9, {"card", 4}};
    return journal_agent_put(j, &a, err);
}

static enum bt_code drop_agent(struct journal *j, struct bt_error *err)
{
    bool found;
    return journal_agent_drop(j, STR_LIT("n0"), &found, err);
}

static enum bt_code put_blob(struct journal *j, struct bt_error *err)
{
    uint64_t id;
    return journal_blob_add(j, "bytes", 5, &id, err);
}

static enum bt_code put_status(struct journal *j, struct bt_error *err)
{
    return journal_plan_status(j, 1, STR_LIT("completed"), 7000, err);
}

static enum bt_code put_state(struct journal *j, struct bt_error *err)
{
    return journal_plan_state(j, 1, STR_LIT("failed"), 8000, STR_LIT("note"), err);
}

static enum bt_code put_quarantine(struct journal *j, struct bt_error *err)
{
    return journal_quarantine(j, 1, STR_LIT("why"), err);
}

static enum bt_code put_start(struct journal *j, struct bt_error *err)
{
    return journal_start_put(j, STR_LIT("n9"), 1, 5, err);
}

static enum bt_code drop_starts(struct journal *j, struct bt_error *err)
{
    return journal_starts_drop(j, 9000, err);
}

static enum bt_code drop_agents(struct journal *j, struct bt_error *err)
{
    return journal_agents_drop(j, 9000, err);
}

static enum bt_code put_schedule_state(struct journal *j, struct bt_error *err)
{
    return journal_schedule_state(j, 1, STR_LIT("other"), err);
}

static enum bt_code drop_schedule(struct journal *j, struct bt_error *err)
{
    return journal_schedule_delete(j, 1, err);
}

static enum bt_code drop_plan(struct journal *j, struct bt_error *err)
{
    return journal_plan_delete(j, 2, STR_LIT("why"), 9, err); /* it has ended */
}

static enum bt_code drop_session(struct journal *j, struct bt_error *err)
{
    bool more;
    return journal_session_delete(j, STR_LIT("s1"), 9, &more, err);
}

static enum bt_code drop_rows(struct journal *j, struct bt_error *err)
{
    uint32_t n;
    return journal_rows_delete(j, 9000, 9, &n, err);
}

static enum bt_code drop_gone(struct journal *j, struct bt_error *err)
{
    uint32_t n;
    return journal_gone_expire(j, 9000, 9, &n, err);
}

static enum bt_code do_sweep(struct journal *j, struct bt_error *err)
{
    bool more;
    return journal_sweep(j, 9, &more, err);
}

static enum bt_code drop_blobs(struct journal *j, struct bt_error *err)
{
    uint64_t at = 0;
    return journal_blobs_unused(j, &at, 2, 9, err);
}

static enum bt_code forget(struct journal *j, struct bt_error *err)
{
    return journal_gone_forget(j, dump_plan_id(2), err);
}

typedef enum bt_code (*call)(struct journal *j, struct bt_error *err);
static const struct {
    const char *name;
    call write;
} writes[] = {{"plan_add", put_plan},
              {"append", put_row},
              {"message_add", put_message},
              {"session_put", put_session},
              {"turn_put", put_turn},
              {"schedule_put", put_schedule},
              {"agent_put", put_agent},
              {"agent_drop", drop_agent},
              {"blob_add", put_blob},
              {"plan_status", put_status},
              {"plan_state", put_state},
              {"quarantine", put_quarantine},
              {"start_put", put_start},
              {"starts_drop", drop_starts},
              {"agents_drop", drop_agents},
              {"schedule_state", put_schedule_state},
              {"schedule_delete", drop_schedule},
              {"plan_delete", drop_plan},
              {"session_delete", drop_session},
              {"rows_delete", drop_rows},
              {"gone_expire", drop_gone},
              {"sweep", do_sweep},
              {"blobs_unused", drop_blobs},
              {"gone_forget", forget}};
enum { WRITES = sizeof writes / sizeof writes[0] };

static const char *dump_of(struct journal *j, struct buf *out, uint32_t *fails)
{
    buf_init(out, DUMP_MAX);
    journal_dump(j, true, out, fails);
    buf_add_byte(out, 0);
    assert_int_equal(buf_check(out, NULL), BT_OK);
    return (const char *)out->at;
}

/* ---- a journal that has stopped ---- */

static void expect_stopped(const char *what, enum bt_code code, const struct bt_error *err)
{
    if (code != BT_IO ||
        strcmp(err->msg, "the journal has stopped after an error: the disk is gone") != 0) {
        fail_msg("%s: %d: %s", what, (int)code, err->msg);
    }
}

#define STOPPED(call)                                                                              \
    do {                                                                                           \
        err.msg[0] = 0;                                                                            \
        const enum bt_code code = (call);                                                          \
        expect_stopped(#call, code, &err);                                                         \
    } while (0)

static void a_journal_that_has_stopped_refuses_everything_and_says_why(void **state)
{
    struct fixture *f = *state;
    struct journal *j = f->j;
    struct journal_plan p;
    struct journal_session s;
    struct journal_turn t;
    struct journal_gone g;
    struct journal_schedule sc;
    struct journal_size size;
    struct journal_scrub scrub = {0};
    struct journal_backup backup = {.done = true};
    struct journal_place place = {0};
    struct bt_error why;
    struct bt_error err;
    struct buf out;
    const struct uuid id = dump_plan_id(0);
    char owner[8] = "x";
    bool yes = true;
    uint64_t one = 7;
    uint32_t n = 7;

    journal_fill(j);
    (void)err_set(&why, BT_IO, "the disk is gone");
    journal_die(j, &why);
    for (size_t i = 0; i < WRITES; i++) {
        err.msg[0] = 0;
        expect_stopped(writes[i].name, writes[i].write(j, &err), &err);
    }
    STOPPED(journal_plan_by_id(j, id, &p, &err));
    STOPPED(journal_plan_head(j, id, &p, &err));
    STOPPED(journal_plan_by_key(j, STR_LIT("key0"), &p, &err));
    STOPPED(journal_plan_owner(j, 1, owner, sizeof owner, &err));
    assert_string_equal(owner, "");
    STOPPED(journal_blob_owned(j, 1, STR_LIT("ann"), &yes, &err));
    assert_false(yes);
    STOPPED(journal_plans(j, STR_LIT(""), STR_LIT(""), 0, 9, no_plan, NULL, &err));
    STOPPED(journal_plans_between(j, id, id, 9, no_plan, NULL, &err));
    STOPPED(journal_jobs(j, STR_LIT(""), 0, 9, no_plan, NULL, &err));
    STOPPED(journal_plans_open(j, no_plan, NULL, &err));
    STOPPED(journal_plans_ended(j, 0, 0, 9, no_plan, NULL, &err));
    STOPPED(journal_gone_by_id(j, dump_plan_id(2), &g, &err));
    STOPPED(journal_session(j, STR_LIT("s0"), &s, &err));
    STOPPED(journal_sessions(j, 9, no_session, NULL, &err));
    STOPPED(journal_sessions_idle(j, 9000, 9, no_session, NULL, &err));
    STOPPED(journal_messages(j, STR_LIT("s0"), 0, 9, no_message, NULL, &err));
    STOPPED(journal_turn(j, dump_turn_id(0), &t, &err));
    STOPPED(journal_turn_by_key(j, STR_LIT("s0"), STR_LIT("turn0"), &t, &err));
    STOPPED(journal_turn_of_plan(j, id, &t, &err));
    STOPPED(journal_turns_open(j, no_turn, NULL, &err));
    STOPPED(journal_schedule_by_name(j, STR_LIT("n0"), &sc, &err));
    STOPPED(journal_schedules(j, 0, no_schedule, NULL, &err));
    STOPPED(journal_starts(j, 0, no_start, NULL, &err));
    STOPPED(journal_agents(j, no_agent, NULL, &err));
    STOPPED(journal_events(j, 1, 0, 9, no_row, NULL, &err));
    STOPPED(journal_last_row(j, 1, true, no_row, NULL, &err));
    STOPPED(journal_replay(j, 1, no_row, NULL, &err));
    STOPPED(journal_replay_on(j, 1, &place, no_row, NULL, &err));
    buf_init(&out, 100);
    STOPPED(journal_blob_get(j, 1, &out, &err));
    buf_done(&out);
    STOPPED(journal_commit(j, &err));
    STOPPED(journal_scrub(j, &scrub, 100, no_problem, NULL, &err));
    assert_false(scrub.done);
    STOPPED(journal_size(j, &size, &err));
    STOPPED(journal_plan_blobs(j, 1, 0, &one, 1, &n, &err));
    assert_int_equal(n, 0);
    n = 7;
    STOPPED(journal_plan_heirs(j, 1, &one, 1, &n, &err));
    assert_int_equal(n, 0);
    n = 7;
    STOPPED(journal_imports(j, &one, 1, &n, &err));
    assert_int_equal(n, 0);
    STOPPED(journal_backup_begin(j, "/nowhere/copy", &err));
    STOPPED(journal_backup_step(j, 9, &backup, &err));
    assert_false(backup.done);
    STOPPED(journal_keep(j, &err));
    STOPPED(journal_hold(j, &err));
    yes = true;
    STOPPED(journal_key_is_at(j, 0, JOURNAL_KEY_SESSION, STR_LIT("s0"), &yes, &err));
    assert_false(yes);
    STOPPED(journal_rewound_told(j, &err));
    STOPPED(journal_parted(j, 1, &one, &err));
    assert_int_equal(one, 1);
    journal_copy_log(j);
}

static void what_an_implementation_does_not_have_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct journal *j = f->j;
    struct journal_ops less = *j->ops;
    const struct journal_ops *all = j->ops;
    struct journal_scrub scrub = {0};
    struct bt_error err;
    bool yes = true;
    uint64_t one = 7;
    uint32_t n = 7;

    journal_fill(j);
    less.keep = less.hold = NULL;
    less.scrub = NULL;
    less.plan_heirs = NULL;
    less.imports = NULL;
    less.key_is_at = NULL;
    less.rewound_told = NULL;
    less.parted = NULL;
    less.backup_begin = NULL;
    less.copy_log = NULL;
    less.space = NULL;
    j->ops = &less;
    assert_ok(journal_keep(j, &err), err);
    assert_ok(journal_hold(j, &err), err);
    assert_ok(journal_scrub(j, &scrub, 1, no_problem, NULL, &err), err);
    assert_true(scrub.done);
    assert_ok(journal_plan_heirs(j, 1, &one, 1, &n, &err), err);
    assert_int_equal(n, 0);
    n = 7;
    assert_ok(journal_imports(j, &one, 1, &n, &err), err);
    assert_int_equal(n, 0);
    assert_ok(journal_key_is_at(j, 0, JOURNAL_KEY_SESSION, STR_LIT("s0"), &yes, &err), err);
    assert_false(yes);
    j->rewound = (struct journal_rewound){3, 5};
    {
        struct journal_rewound was;
        assert_true(journal_rewound(j, &was));
        assert_true(was.kept_seq == 3 && was.lost_seq == 5);
        assert_ok(journal_rewound_told(j, &err), err);
        assert_false(journal_rewound(j, &was));
    }
    assert_ok(journal_parted(j, 9, &one, &err), err);
    assert_int_equal(one, 1);
    assert_int_equal(journal_backup_begin(j, "/nowhere", &err), BT_INVALID);
    assert_string_equal(err.msg, "this journal has no file to copy");
    journal_copy_log(j);
    j->storage_low = true;
    assert_int_equal(journal_room(j), JOURNAL_LOW);
    assert_true(journal_storage_low(j));
    j->storage_full = true;
    assert_int_equal(journal_room(j), JOURNAL_FULL);
    j->storage_full = j->storage_low = false;
    assert_int_equal(journal_room(j), JOURNAL_ROOM);
    assert_false(journal_storage_low(j));
    j->ops = all;
}

static enum bt_code open_fails(struct journal *j, journal_plan_fn fn, void *self,
                               struct bt_error *err)
{
    (void)j;
    (void)fn;
    (void)self;
    return err_set(err, BT_NOMEM, "no memory for a plan");
}

static void the_reason_of_a_failure_reaches_who_asks_and_needs_nobody(void **state)
{
    struct fixture *f = *state;
    struct journal_ops odd = *f->j->ops;
    const struct journal_ops *all = f->j->ops;
    struct bt_error err = {.msg = ""};

    odd.plans_open = open_fails;
    f->j->ops = &odd;
    assert_int_equal(journal_plans_open(f->j, no_plan, NULL, &err), BT_NOMEM);
    assert_string_equal(err.msg, "no memory for a plan");
    assert_int_equal(journal_plans_open(f->j, no_plan, NULL, NULL), BT_NOMEM);
    f->j->ops = all;
}

/* ---- positions ---- */

static void a_journal_without_a_position_left_refuses_rows(void **state)
{
    struct fixture *f = *state;
    struct journal *j = f->j;
    struct journal_row row = {
        .plan_ix = 1, .type = STR_LIT("t"), .topic = STR_LIT("t"), .body = "b", .body_len = 1};
    struct bt_error err;

    (void)add_plan(j, "", "goal");
    j->pos = (uint64_t)7 << POS_K_BITS | (POS_K_MAX - 1);
    assert_ok(journal_append(j, &row, &err), err); /* the last one that follows seq 7 */
    assert_int_equal(journal_append(j, &row, &err), BT_LIMIT);
    assert_string_equal(err.msg, "the journal has no position left after seq 7");
    row.is_public = true;
    row.plan_seq = 1;
    row.seq = journal_next_seq(j);
    assert_int_equal(row.seq, 8);
    assert_ok(journal_append(j, &row, &err), err);
    j->pos = (SEQ_MAX - 1) << POS_K_BITS;
    row.seq = journal_next_seq(j);
    row.plan_seq = 2;
    assert_ok(journal_append(j, &row, &err), err); /* the last of all */
    row.seq = journal_next_seq(j);
    row.plan_seq = 3;
    assert_int_equal(journal_append(j, &row, &err), BT_LIMIT);
}

/* ---- statements that stop ---- */

struct stops {
    uint64_t at, ops; /* the operation that stops; how many there were */
};

static int on_progress(void *self)
{
    struct stops *s = self;
    return ++s->ops == s->at;
}

static uint64_t next_stop(uint64_t at)
{
    return at + 1 + at / 12;
}

static void count_line(enum log_level level, const char *event, const char *text, void *self)
{
    uint32_t *lines = self;

    (void)event;
    (void)text;
    *lines += level <= LOG_WARN;
}

/* A reading that could not be finished says so, with its code, or in the log where a list leaves
 * out what it cannot read: nothing is taken for missing. */
static void a_reading_that_stops_half_way_is_an_error_and_the_next_one_is_right(void **state)
{
    struct fixture *f = *state;
    struct sqlite_journal *s = sqlite_of(f->j);
    struct buf sound;
    uint32_t fails;
    bool stopped = true;

    journal_fill(f->j);
    recent_clear(&f->j->recent);
    const char *all = dump_of(f->j, &sound, &fails);
    if (fails > 0) {
        (void)fprintf(stderr, "%s", all);
        fail_msg("%u readings fail", fails);
    }
    for (uint64_t at = 1; stopped; at = next_stop(at)) {
        struct stops stop = {.at = at};
        uint32_t lines = 0;
        struct buf got;
        log_setup(LOG_INFO, count_line, &lines);
        sqlite3_progress_handler(s->db, 1, on_progress, &stop);
        (void)dump_of(f->j, &got, &fails);
        sqlite3_progress_handler(s->db, 0, NULL, NULL);
        log_setup(LOG_INFO, NULL, NULL);
        stopped = stop.ops >= at;
        if (stopped ? fails + lines == 0 && strcmp((const char *)got.at, all) != 0
                    : fails + lines > 0) {
            const char *is = (const char *)got.at;
            size_t n = 0;
            while (is[n] != 0 && is[n] == all[n]) {
                n++;
            }
            fail_msg("operation %llu of %llu: %u failures: %.200s", (unsigned long long)at,
                     (unsigned long long)stop.ops, fails, is + n);
        }
        buf_done(&got);
        (void)dump_of(f->j, &got, &fails);
        if (f->j->dead || strcmp((const char *)got.at, (const char *)sound.at) != 0) {
            fail_msg("after operation %llu the journal says something else",
                     (unsigned long long)at);
        }
        buf_done(&got);
    }
    buf_done(&sound);
}

/* Its name, its rule and its document are three readings: each of them may be the one that stops.
 */
static void a_schedule_is_read_whole_or_not_at_all(void **state)
{
    struct fixture *f = *state;
    bool stopped = true;

    journal_fill(f->j);
    for (uint64_t at = 1; stopped; at++) {
        struct stops stop = {.at = at};
        struct journal_schedule got = {.name = {NULL, 0}};
        struct bt_error err = {.msg = ""};
        sqlite3_progress_handler(sqlite_of(f->j)->db, 1, on_progress, &stop);
        const enum bt_code code = journal_schedule_by_name(f->j, STR_LIT("n0"), &got, &err);
        sqlite3_progress_handler(sqlite_of(f->j)->db, 0, NULL, NULL);
        stopped = stop.ops >= at;
        if (stopped ? code == BT_OK || code == BT_NOT_FOUND || err.msg[0] == 0
                    : code != BT_OK || !str_is(got.name, "n0") || got.doc.len == 0) {
            fail_msg("operation %llu of %llu: %d: %s", (unsigned long long)at,
                     (unsigned long long)stop.ops, (int)code, err.msg);
        }
        assert_true(stopped || at > 10);
    }
}

/* Nothing of the batch is there afterwards, and what was there before is. */
static void a_write_that_stops_half_way_takes_its_batch_back(void **state)
{
    struct fixture *f = *state;
    struct buf sound;
    uint32_t fails;

    journal_fill(f->j);
    fixture_reopen(f);
    (void)dump_of(f->j, &sound, &fails);
    for (size_t i = 0; i < WRITES; i++) {
        bool stopped = true;
        for (uint64_t at = 1; stopped; at = 2 * at) {
            struct stops stop = {.at = at};
            struct bt_error err = {.msg = ""};
            struct buf got;
            sqlite3_progress_handler(sqlite_of(f->j)->db, 1, on_progress, &stop);
            const enum bt_code code = writes[i].write(f->j, &err);
            sqlite3_progress_handler(sqlite_of(f->j)->db, 0, NULL, NULL);
            stopped = stop.ops >= at;
            if (stopped ? code == BT_OK || err.msg[0] == 0 || err.code != code : code != BT_OK) {
                fail_msg("%s, operation %llu: %d: %s", writes[i].name, (unsigned long long)at,
                         (int)code, err.msg);
            }
            fixture_reopen(f);
            (void)dump_of(f->j, &got, &fails);
            if (strcmp((const char *)got.at, (const char *)sound.at) != 0) {
                fail_msg("%s, operation %llu: something is left", writes[i].name,
                         (unsigned long long)at);
            }
            buf_done(&got);
        }
    }
    buf_done(&sound);
}

#define ON(test, kind)                                                                             \
    {                                                                                              \
#test "[" #kind "]", test, fixture_##kind, fixture_done, NULL                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(a_journal_that_has_stopped_refuses_everything_and_says_why, memory),
        ON(what_an_implementation_does_not_have_changes_nothing, memory),
        ON(the_reason_of_a_failure_reaches_who_asks_and_needs_nobody, memory),
        ON(a_journal_without_a_position_left_refuses_rows, memory),
        ON(a_reading_that_stops_half_way_is_an_error_and_the_next_one_is_right, sqlite),
        ON(a_schedule_is_read_whole_or_not_at_all, sqlite),
        ON(a_write_that_stops_half_way_takes_its_batch_back, sqlite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
