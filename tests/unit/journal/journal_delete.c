/* The port's contract for deletion, tested on both implementations. */
#include "tests/unit/journal/journal_fixture.h"

#include <string.h>

static void expect_events(struct journal *j, uint64_t from, uint64_t plan, const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;
    assert_ok(journal_events(j, from, plan, 100, see_row, &s, &err), err);
    assert_string_equal(s.text, want);
}

static void end_plan(struct journal *j, uint64_t ix, msec wall)
{
    struct bt_error err;
    assert_ok(journal_plan_status(j, ix, STR_LIT("completed"), wall, &err), err);
}

static uint64_t add_blob(struct journal *j, const char *text)
{
    struct bt_error err;
    uint64_t id = 0;
    assert_ok(journal_blob_add(j, text, strlen(text), &id, &err), err);
    return id;
}

/* A public row that names a blob. */
static uint64_t add_naming(struct journal *j, uint64_t plan_ix, uint64_t plan_seq, uint64_t blob)
{
    struct bt_error err;
    struct journal_row row = {.seq = journal_next_seq(j),
                              .is_public = true,
                              .plan_ix = plan_ix,
                              .plan_seq = plan_seq,
                              .type = STR_LIT("plan_step_completed"),
                              .topic = STR_LIT("t"),
                              .wall = 1234,
                              .body = "r",
                              .body_len = 1,
                              .blobs = &blob,
                              .blobs_n = 1};
    assert_ok(journal_append(j, &row, &err), err);
    return row.seq;
}

static enum bt_code blob(struct journal *j, uint64_t id)
{
    struct bt_error err;
    struct buf out;
    enum bt_code code;

    buf_init(&out, 10000);
    code = journal_blob_get(j, id, &out, &err);
    buf_done(&out);
    return code;
}

/* Sweeps in slices of `budget`; returns how many it took. */
static uint32_t sweep(struct journal *j, uint32_t budget)
{
    struct bt_error err;
    bool more = true;
    uint32_t n = 0;

    for (; more; n++) {
        assert_true(n < 1000);
        assert_ok(journal_sweep(j, budget, &more, &err), err);
        commit(j);
    }
    return n;
}

static void delete_plan(struct journal *j, uint64_t ix)
{
    struct bt_error err;
    assert_ok(journal_plan_delete(j, ix, STR_LIT("on request"), 7000, &err), err);
}

static struct uuid id_of(struct journal *j, const char *key)
{
    struct journal_plan p;
    struct bt_error err;
    assert_ok(journal_plan_by_key(j, str_from(key), &p, &err), err);
    return p.plan_id;
}

static void a_deleted_plan_leaves_a_tombstone_and_no_rows(void **state)
{
    struct fixture *f = *state;
    struct seen s = {{0}};
    struct journal_plan p;
    struct journal_gone g;
    struct bt_error err;
    struct uuid id;
    uint64_t a = add_plan(f->j, "ka", "goal a");
    uint64_t b = add_plan(f->j, "kb", "goal b");

    id = id_of(f->j, "ka");
    add_event(f->j, a, 1, "a1");
    add_event(f->j, b, 1, "b1");
    add_event(f->j, a, 2, "a2");
    add_internal(f->j, a, "ai");
    add_event(f->j, b, 2, "b2");
    end_plan(f->j, a, 5000);
    commit(f->j);
    delete_plan(f->j, a);
    commit(f->j);
    assert_int_equal(journal_plan_by_id(f->j, id, &p, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("ka"), &p, &err), BT_CONFLICT);
    assert_int_equal(journal_plan_delete(f->j, a, STR_LIT("x"), 1, &err), BT_NOT_FOUND);
    (void)sweep(f->j, 1);
    for (int i = 0; i < 2; i++) {
        expect_events(f->j, 1, 0, "2:b1 4:b2 ");
        expect_events(f->j, 3, 0, "4:b2 ");
        expect_events(f->j, 1, a, "");
        expect_events(f->j, 1, b, "2:b1 4:b2 ");
        assert_ok(journal_gone_by_id(f->j, id, &g, &err), err);
        assert_int_equal(g.ix, a);
        assert_int_equal(g.rows, 3);
        assert_int_equal(g.created_wall, 1000);
        assert_int_equal(g.ended_wall, 5000);
        assert_int_equal(g.deleted_wall, 7000);
        assert_true(str_is(g.why, "on request"));
        assert_true(str_is(g.status, "completed"));
        p.plan_id = (struct uuid){{0}};
        assert_int_equal(journal_plan_by_key(f->j, STR_LIT("ka"), &p, &err), BT_CONFLICT);
        assert_true(uuid_eq(p.plan_id, id));
        memset(&s, 0, sizeof s);
        assert_ok(journal_plans(f->j, STR_LIT(""), STR_LIT(""), 0, 9, see_plan, &s, &err), err);
        assert_int_equal(s.n, 1);
        fixture_reopen(f);
    }
    assert_ok(journal_plan_by_key(f->j, STR_LIT("kb"), &p, &err), err);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT(""), &p, &err), BT_NOT_FOUND);
}

static void an_open_plan_is_not_deleted(void **state)
{
    struct fixture *f = *state;
    struct journal_plan p;
    struct bt_error err;
    uint64_t ix = add_plan(f->j, "k", "g");

    commit(f->j);
    assert_int_equal(journal_plan_delete(f->j, ix, STR_LIT("x"), 1, &err), BT_CONFLICT);
    assert_int_equal(journal_plan_delete(f->j, 77, STR_LIT("x"), 1, &err), BT_NOT_FOUND);
    assert_false(journal_dirty(f->j));
    assert_ok(journal_plan_by_key(f->j, STR_LIT("k"), &p, &err), err);
}

static void no_number_of_what_was_deleted_is_used_again(void **state)
{
    struct fixture *f = *state;
    uint64_t ix = add_plan(f->j, "k", "g");
    uint64_t last = add_blob(f->j, "result");

    add_event(f->j, 0, 0, "s");
    add_naming(f->j, ix, 1, last);
    end_plan(f->j, ix, 10);
    commit(f->j);
    delete_plan(f->j, ix);
    commit(f->j);
    (void)sweep(f->j, 100);
    expect_events(f->j, 1, 0, "1:s ");
    fixture_reopen(f);
    assert_int_equal(journal_next_seq(f->j), 3);
    assert_int_equal(blob(f->j, last), BT_NOT_FOUND);
    assert_int_equal(add_blob(f->j, "other"), last + 1);
    assert_int_equal(add_plan(f->j, "k2", "g"), ix + 1);
    assert_int_equal(add_event(f->j, 0, 0, "t"), 3);
    commit(f->j);
    expect_events(f->j, 1, 0, "1:s 3:t ");
    expect_events(f->j, 2, 0, "3:t ");
}

static void the_key_of_a_deleted_plan_is_never_taken_again(void **state)
{
    struct fixture *f = *state;
    struct journal_plan again = {.plan_id = uuid_new(),
                                 .client_key = STR_LIT("k"),
                                 .goal = STR_LIT("g"),
                                 .status = STR_LIT("running")};
    struct bt_error err;
    uint64_t ix = add_plan(f->j, "k", "g");
    uint64_t other;

    end_plan(f->j, ix, 10);
    commit(f->j);
    delete_plan(f->j, ix);
    commit(f->j);
    (void)sweep(f->j, 10);
    fixture_reopen(f);
    assert_int_equal(journal_plan_add(f->j, &again, &other, &err), BT_CONFLICT);
    assert_false(journal_dirty(f->j));
}

static void a_blob_goes_with_the_last_plan_that_names_it(void **state)
{
    struct fixture *f = *state;
    uint64_t a = add_plan(f->j, "a", "g");
    uint64_t b = add_plan(f->j, "b", "g");
    uint64_t own = add_blob(f->j, "of a");
    uint64_t shared = add_blob(f->j, "of both");

    add_naming(f->j, a, 1, own);
    add_naming(f->j, a, 2, shared);
    add_naming(f->j, a, 3, shared);
    add_naming(f->j, b, 1, shared);
    end_plan(f->j, a, 10);
    end_plan(f->j, b, 10);
    commit(f->j);
    delete_plan(f->j, a);
    commit(f->j);
    (void)sweep(f->j, 1);
    assert_int_equal(blob(f->j, own), BT_NOT_FOUND);
    assert_int_equal(blob(f->j, shared), BT_OK);
    delete_plan(f->j, b);
    commit(f->j);
    (void)sweep(f->j, 1);
    assert_int_equal(blob(f->j, shared), BT_NOT_FOUND);
}

static void a_batch_that_is_not_committed_deletes_nothing(void **state)
{
    struct fixture *f = *state;
    struct journal_gone g;
    struct bt_error err;
    struct uuid id;
    bool more;
    uint64_t ix = add_plan(f->j, "k", "g");
    uint64_t b = add_blob(f->j, "result");

    id = id_of(f->j, "k");
    add_naming(f->j, ix, 1, b);
    add_event(f->j, 0, 0, "s");
    end_plan(f->j, ix, 10);
    commit(f->j);
    delete_plan(f->j, ix);
    assert_ok(journal_sweep(f->j, 100, &more, &err), err);
    fixture_reopen(f);
    assert_true(uuid_eq(id_of(f->j, "k"), id));
    assert_int_equal(journal_gone_by_id(f->j, id, &g, &err), BT_NOT_FOUND);
    assert_int_equal(blob(f->j, b), BT_OK);
    expect_events(f->j, 1, 0, "1:r 2:s ");
}

static void the_sweep_goes_on_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    bool more;
    uint64_t ix = add_plan(f->j, "k", "g");
    uint64_t first = add_blob(f->j, "0");

    for (uint64_t i = 1; i <= 40; i++) {
        add_naming(f->j, ix, i, i == 1 ? first : add_blob(f->j, "x"));
    }
    add_event(f->j, 0, 0, "end");
    end_plan(f->j, ix, 10);
    commit(f->j);
    delete_plan(f->j, ix);
    commit(f->j);
    assert_ok(journal_sweep(f->j, 10, &more, &err), err);
    assert_true(more);
    commit(f->j);
    fixture_reopen(f);
    assert_true(sweep(f->j, 10) >= 3);
    expect_events(f->j, 1, 0, "41:end ");
    assert_int_equal(blob(f->j, first), BT_NOT_FOUND);
    assert_int_equal(blob(f->j, first + 39), BT_NOT_FOUND);
}

static void ended_plans_are_listed_the_oldest_end_first(void **state)
{
    struct fixture *f = *state;
    struct seen s = {{0}};
    struct bt_error err;
    uint64_t a = add_plan(f->j, "", "a");
    uint64_t b = add_plan(f->j, "", "b");

    (void)add_plan(f->j, "", "open");
    end_plan(f->j, a, 200);
    end_plan(f->j, b, 100);
    commit(f->j);
    assert_ok(journal_plans_ended(f->j, 0, 0, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "2:b/completed 1:a/completed ");
    memset(&s, 0, sizeof s);
    assert_ok(journal_plans_ended(f->j, 0, 0, 1, see_plan, &s, &err), err);
    assert_string_equal(s.text, "2:b/completed ");
    memset(&s, 0, sizeof s);
    assert_ok(journal_plans_ended(f->j, 100, 2, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "1:a/completed ");
    memset(&s, 0, sizeof s);
    assert_ok(journal_plans_ended(f->j, 200, 0, 9, see_plan, &s, &err), err);
    assert_int_equal(s.n, 1);
}

static void rows_of_no_plan_go_by_their_time(void **state)
{
    struct fixture *f = *state;
    struct bt_error err;
    uint32_t n;

    add_event(f->j, 0, 0, "x"); /* at 1234 */
    add_event(f->j, 1, 1, "p");
    add_event(f->j, 0, 0, "y");
    add_event(f->j, 0, 0, "newest");
    commit(f->j);
    assert_ok(journal_rows_delete(f->j, 1234, 9, &n, &err), err);
    assert_int_equal(n, 0);
    assert_ok(journal_rows_delete(f->j, 1235, 1, &n, &err), err);
    assert_int_equal(n, 1);
    commit(f->j);
    expect_events(f->j, 1, 0, "2:p 3:y 4:newest ");
    assert_ok(journal_rows_delete(f->j, 1235, 9, &n, &err), err);
    assert_int_equal(n, 1);
    commit(f->j);
    fixture_reopen(f);
    expect_events(f->j, 1, 0, "2:p 4:newest ");
}

static void say(struct journal *j, const char *session, const char *text, msec wall)
{
    struct journal_message m = {.role = STR_LIT("user"), .text = str_from(text), .wall = wall};
    struct bt_error err;
    uint64_t n;
    assert_ok(journal_message_add(j, str_from(session), &m, &n, &err), err);
}

static bool count_message(const struct journal_message *m, void *self)
{
    assert_false(m->damaged);
    ++*(uint32_t *)self;
    return true;
}

static void delete_session(struct journal *j, const char *session)
{
    struct bt_error err;
    bool more = true;

    for (int n = 0; more; n++) {
        assert_true(n < 100);
        assert_ok(journal_session_delete(j, str_from(session), 1, &more, &err), err);
        commit(j);
    }
}

static void a_session_goes_with_its_turns_and_messages(void **state)
{
    struct fixture *f = *state;
    struct journal_turn t = {.turn_id = uuid_new(),
                             .session_id = STR_LIT("s"),
                             .client_key = STR_LIT("k"),
                             .asked = 1,
                             .started_wall = 5,
                             .action = STR_LIT("a")};
    struct journal_session s;
    struct journal_turn got;
    struct bt_error err;
    uint32_t n = 0;
    bool more;

    say(f->j, "s", "hello", 10);
    say(f->j, "other", "stays", 11);
    t.context_blob = add_blob(f->j, "wish");
    assert_ok(journal_turn_put(f->j, &t, &err), err);
    commit(f->j);
    assert_int_equal(journal_session_delete(f->j, STR_LIT("s"), 9, &more, &err), BT_CONFLICT);
    assert_int_equal(journal_session_delete(f->j, STR_LIT("none"), 9, &more, &err), BT_NOT_FOUND);
    t.ended_wall = 20;
    assert_ok(journal_turn_put(f->j, &t, &err), err);
    for (int i = 0; i < 30; i++) {
        say(f->j, "s", "more", 20);
    }
    commit(f->j);
    delete_session(f->j, "s");
    assert_int_equal(journal_session(f->j, STR_LIT("s"), &s, &err), BT_NOT_FOUND);
    assert_int_equal(journal_turn(f->j, t.turn_id, &got, &err), BT_NOT_FOUND);
    say(f->j, "s", "a new one of the same id", 30); /* before the sweep */
    commit(f->j);
    (void)sweep(f->j, 4);
    fixture_reopen(f);
    assert_ok(journal_session(f->j, STR_LIT("s"), &s, &err), err);
    assert_int_equal(s.messages, 1);
    assert_ok(journal_messages(f->j, STR_LIT("s"), 0, 99, count_message, &n, &err), err);
    assert_int_equal(n, 1);
    assert_ok(journal_messages(f->j, STR_LIT("other"), 0, 99, count_message, &n, &err), err);
    assert_int_equal(n, 2);
    t.turn_id = uuid_new();
    assert_ok(journal_turn_put(f->j, &t, &err), err); /* the key is free again */
}

static void blobs_that_nothing_names_go_and_others_stay(void **state)
{
    struct fixture *f = *state;
    struct journal_session s = {.session_id = STR_LIT("s"), .created_wall = 1};
    struct journal_turn t = {.turn_id = uuid_new(),
                             .session_id = STR_LIT("s"),
                             .started_wall = 5,
                             .ended_wall = 6,
                             .action = STR_LIT("a")};
    struct bt_error err;
    uint64_t ix = add_plan(f->j, "k", "g");
    uint64_t unused = add_blob(f->j, "late");
    uint64_t named = add_blob(f->j, "named");
    uint64_t after = 0;
    uint64_t last;

    s.summary = add_blob(f->j, "summary");
    t.context_blob = add_blob(f->j, "wish");
    assert_ok(journal_session_put(f->j, &s, &err), err);
    assert_ok(journal_turn_put(f->j, &t, &err), err);
    add_naming(f->j, ix, 1, named);
    commit(f->j);
    last = journal_last_blob(f->j);
    (void)add_blob(f->j, "newer");
    commit(f->j);
    while (after < last) {
        assert_ok(journal_blobs_unused(f->j, &after, last, 2, &err), err);
        commit(f->j);
    }
    assert_int_equal(blob(f->j, unused), BT_NOT_FOUND);
    assert_int_equal(blob(f->j, named), BT_OK);
    assert_int_equal(blob(f->j, s.summary), BT_OK);
    assert_int_equal(blob(f->j, t.context_blob), BT_OK);
    assert_int_equal(blob(f->j, last + 1), BT_OK);
}

static void deleted_plans_are_no_damage_at_a_start(void **state)
{
    struct fixture *f = *state;
    struct seen s = {{0}};
    struct bt_error err;

    for (int i = 0; i < 10; i++) {
        uint64_t ix = add_plan(f->j, "", "g");
        if (i != 4) {
            end_plan(f->j, ix, 10);
        }
    }
    commit(f->j);
    for (uint64_t ix = 1; ix <= 10; ix++) {
        if (ix != 5 && ix != 2) {
            delete_plan(f->j, ix);
        }
    }
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_plans_open(f->j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "5:g/running ");
    commit(f->j);
}

static void what_is_deleted_is_free_for_new_rows(void **state)
{
    struct fixture *f = *state;
    struct journal_size full;
    struct journal_size now;
    struct bt_error err;
    static char big[100000];
    uint64_t ix = 0;

    memset(big, 'x', sizeof big - 1);
    for (int i = 0; i < 20; i++) {
        ix = add_plan(f->j, "", "g");
        add_naming(f->j, ix, 1, add_blob(f->j, big));
        end_plan(f->j, ix, 10);
    }
    commit(f->j);
    assert_ok(journal_size(f->j, &full, &err), err);
    assert_true(full.used > 20 * sizeof big - 20);
    for (; ix > 0; ix--) {
        delete_plan(f->j, ix);
    }
    commit(f->j);
    (void)sweep(f->j, 7);
    assert_ok(journal_size(f->j, &now, &err), err);
    assert_true(now.used < full.used / 4);
    if (f->kind != KIND_POSTGRES) { /* which uses the room again when its vacuum has been there */
        assert_true(now.file <= full.file + 8 * 4096);
    }
}

static void tombstones_expire_by_their_time_and_free_their_keys(void **state)
{
    struct fixture *f = *state;
    struct journal_plan p;
    struct bt_error err;
    uint32_t n;

    for (int i = 0; i < 3; i++) {
        static const char *const keys[] = {"k1", "k2", "k3"};
        const uint64_t ix = add_plan(f->j, keys[i], "g");
        end_plan(f->j, ix, 10);
        commit(f->j);
        assert_ok(journal_plan_delete(f->j, ix, STR_LIT("x"), 7000 + (msec)i, &err), err);
        commit(f->j);
    }
    (void)sweep(f->j, 100);
    assert_ok(journal_gone_expire(f->j, 7000, 9, &n, &err), err);
    assert_int_equal(n, 0);
    assert_ok(journal_gone_expire(f->j, 9000, 1, &n, &err), err);
    assert_int_equal(n, 1);
    assert_ok(journal_gone_expire(f->j, 7002, 9, &n, &err), err); /* not the third one */
    assert_int_equal(n, 1);
    commit(f->j);
    fixture_reopen(f);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("k1"), &p, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("k2"), &p, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("k3"), &p, &err), BT_CONFLICT);
    assert_int_equal(add_plan(f->j, "k1", "g"), 4); /* its number is not used again */
    commit(f->j);
}

struct idle {
    char text[64];
    uint32_t most; /* it asks for no more then */
    uint32_t n;
};

static bool see_idle(const struct journal_session *s, void *self)
{
    struct idle *seen = self;

    strncat(seen->text, s->session_id.ptr, s->session_id.len);
    return ++seen->n < seen->most;
}

static void expect_idle(struct journal *j, msec before, uint32_t limit, uint32_t most,
                        const char *want)
{
    struct idle seen = {.most = most};
    struct bt_error err;

    assert_ok(journal_sessions_idle(j, before, limit, see_idle, &seen, &err), err);
    assert_string_equal(seen.text, want);
}

static void idle_sessions_are_listed_up_to_a_time_a_number_or_a_word(void **state)
{
    struct fixture *f = *state;

    say(f->j, "b", "x", 20);
    say(f->j, "a", "x", 10);
    say(f->j, "c", "x", 30);
    commit(f->j);
    expect_idle(f->j, 10, 9, 9, "");
    expect_idle(f->j, 11, 9, 9, "a");
    expect_idle(f->j, 31, 9, 9, "abc");
    expect_idle(f->j, 31, 3, 9, "abc");
    expect_idle(f->j, 31, 2, 9, "ab");
    expect_idle(f->j, 31, 0, 9, "");
    expect_idle(f->j, 31, 9, 1, "a");
    say(f->j, "a", "y", 40);
    commit(f->j);
    expect_idle(f->j, 41, 9, 9, "bca");
}

/* One after another: a look-up ends, whatever it found. */
static void tombstones_are_forgotten_one_by_one(void **state)
{
    struct fixture *f = *state;
    struct journal_plan p;
    struct bt_error err;
    struct uuid ids[2];

    for (int i = 0; i < 2; i++) {
        static const char *const keys[] = {"k1", "k2"};
        const uint64_t ix = add_plan(f->j, keys[i], "g");
        ids[i] = id_of(f->j, keys[i]);
        end_plan(f->j, ix, 10);
        commit(f->j);
        assert_int_equal(journal_gone_forget(f->j, ids[i], &err), BT_NOT_FOUND);
        assert_ok(journal_plan_delete(f->j, ix, STR_LIT("x"), 7000, &err), err);
        commit(f->j);
        assert_int_equal(journal_gone_forget(f->j, ids[i], &err), BT_BUSY);
    }
    (void)sweep(f->j, 100);
    for (int i = 0; i < 2; i++) {
        assert_ok(journal_gone_forget(f->j, ids[i], &err), err);
        assert_int_equal(journal_gone_forget(f->j, ids[i], &err), BT_NOT_FOUND);
    }
    commit(f->j);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("k1"), &p, &err), BT_NOT_FOUND);
    assert_int_equal(journal_plan_by_key(f->j, STR_LIT("k2"), &p, &err), BT_NOT_FOUND);
}

#define STORED(name) cmocka_unit_test_setup_teardown(name, fixture_sqlite, fixture_done)
#define BOTH(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, fixture_sqlite, fixture_done),                           \
        cmocka_unit_test_setup_teardown(name, fixture_memory, fixture_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_deleted_plan_leaves_a_tombstone_and_no_rows),
        BOTH(an_open_plan_is_not_deleted),
        BOTH(no_number_of_what_was_deleted_is_used_again),
        BOTH(the_key_of_a_deleted_plan_is_never_taken_again),
        BOTH(a_blob_goes_with_the_last_plan_that_names_it),
        BOTH(a_batch_that_is_not_committed_deletes_nothing),
        BOTH(the_sweep_goes_on_after_a_restart),
        BOTH(ended_plans_are_listed_the_oldest_end_first),
        BOTH(rows_of_no_plan_go_by_their_time),
        BOTH(a_session_goes_with_its_turns_and_messages),
        BOTH(blobs_that_nothing_names_go_and_others_stay),
        BOTH(deleted_plans_are_no_damage_at_a_start),
        BOTH(what_is_deleted_is_free_for_new_rows),
        BOTH(tombstones_expire_by_their_time_and_free_their_keys),
        /* The journal in memory lists them in any order, and forgets none. */
        STORED(idle_sessions_are_listed_up_to_a_time_a_number_or_a_word),
        STORED(tombstones_are_forgotten_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
