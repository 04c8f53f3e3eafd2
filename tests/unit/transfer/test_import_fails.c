/* Imports into a journal that cannot be read or written: what is told, and what is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transfer/transfer_world.h"

#define PLAN                                                                                       \
    "{'kind':'plan','planId':'" ID(                                                                \
        "01") "','bodyHash':'0123456789abcdef','createdMs':1,"                                     \
              "'endedMs':2,'documentBytes':1,'status':'completed','query':'g','clientKey':'k'}\n"  \
              "{'kind':'document','data':'gA=='}\n"                                                \
              "{'kind':'blob','n':1,'bytes':5,'data':'aGVsbG8='}\n"                                \
              "{'kind':'row','planSeq':1,'type':'plan_started','topic':'t','tsMs':5,'event':"      \
              "{" EVENT("01", "1") ",'xRef':1}}\n{'kind':'row','type':'plan_paused','topic':'t','" \
                                   "tsMs':5,'data':'gA=='}\n"
#define PLAN_END "{'kind':'end','planId':'" ID("01") "'}\n"
#define SESSION                                                                                    \
    "{'kind':'session','sessionId':'s','messages':2,'createdMs':1,'updatedMs':2,'summary':"        \
    "'aGVsbG8='}\n{'kind':'message','n':1,'role':'user','text':'hi','tsMs':1}\n"                   \
    "{'kind':'turn','turnId':'" ID(                                                                \
        "02") "','clientKey':'t','bodyHash':9,'asked':1,'answered':2,"                             \
              "'startedMs':10,'endedMs':11,'action':'plan','context':'aGVsbG8='}\n"                \
              "{'kind':'message','n':2,'role':'assistant','text':'ho','tsMs':2}\n"
#define SESSION_END "{'kind':'end','sessionId':'s'}\n"
#define SCHEDULE                                                                                   \
    "{'kind':'schedule','name':'n','createdMs':1,'documentBytes':1,'rule':'gA=='}\n"               \
    "{'kind':'document','bytes':'gA=='}\n"
#define SCHEDULE_END "{'kind':'end','name':'n'}\n"

static const struct {
    const char *lines, *end;
} things[] = {{PLAN, PLAN_END}, {SESSION, SESSION_END}, {SCHEDULE, SCHEDULE_END}};

enum { THINGS = sizeof things / sizeof things[0] };

struct outcome {
    enum bt_code code;
    enum transfer_result result;
    bool failed_write;
    struct bt_error err;
};

static struct outcome take(struct world *w, struct transfer *t, const char *lines, uint64_t before)
{
    const struct transfer_lines some = {
        .text = quoted(w, lines), .before = before, .now = 1, .wall = 1000};
    struct outcome o = {.code = BT_OK};

    o.code = transfer_import(t, w->j, &some, &o.result, &o.failed_write, &o.err);
    return o;
}

static struct outcome take_whole(struct world *w, struct transfer *t, size_t i)
{
    char lines[2048];

    (void)snprintf(lines, sizeof lines, "%s%s", things[i].lines, things[i].end);
    return take(w, t, lines, 0);
}

static bool is_here(struct world *w, size_t i)
{
    struct journal_plan p;
    struct journal_session s;
    struct journal_schedule schedule;

    return i == 0   ? journal_plan_by_id(w->j, id_of("01"), &p, NULL) == BT_OK
           : i == 1 ? journal_session(w->j, STR_LIT("s"), &s, NULL) == BT_OK
                    : journal_schedule_by_name(w->j, STR_LIT("n"), &schedule, NULL) == BT_OK;
}

static void sweep(struct world *w)
{
    struct bt_error err;
    bool more = true;

    for (int i = 0; i < 100 && more; i++) {
        assert_int_equal(journal_sweep(w->j, 100, &more, &err), BT_OK);
        keep(w);
    }
}

static void a_write_that_fails_is_told_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < THINGS; i++) {
        uint32_t n = 1;
        for (bool more = true; more; n++) {
            struct world w = {.slices = 0};
            struct transfer *t;
            struct bt_error err;
            open_journal(&w);
            watch(&w);
            assert_ok(transfer_new(&t, &err), err);
            fail_write_at = n;
            const struct outcome o = take_whole(&w, t, i);
            more = written >= n;
            fail_write_at = 0;
            assert_int_equal(o.code, more ? BT_IO : BT_OK);
            assert_int_equal(o.failed_write, more);
            if (more) {
                assert_string_equal(o.err.msg, "it cannot be written");
            } else {
                assert_int_equal(o.result, TRANSFER_DONE);
            }
            transfer_free(t);
            close_journal(&w);
        }
        assert_true(n > (i == 2 ? 2 : 5));
    }
}

static void what_cannot_be_read_refuses_the_import_and_leaves_nothing_of_the_plan(void **state)
{
    struct world *w = *state;
    struct transfer *t;
    struct bt_error err;

    watch(w);
    assert_ok(transfer_new(&t, &err), err);
    for (size_t i = 0; i < THINGS; i++) {
        bool more = true;
        uint32_t n = 1;
        for (; more; n++) {
            asked = 0;
            fail_at = n;
            struct outcome o = take_whole(w, t, i);
            more = asked >= n;
            fail_at = 0;
            assert_true(i == 1 || !o.failed_write); /* a write of a session reads it first */
            if (o.code == BT_OK) {
                /* an import that is over: the last reading is of nothing that counts */
                assert_int_equal(o.result, TRANSFER_DONE);
                assert_false(more);
                break;
            }
            assert_int_equal(o.code, BT_NOMEM);
            assert_string_equal(o.err.msg, "it cannot be read");
            keep(w);
            assert_true(i == 1 || !is_here(w, i)); /* a session keeps the messages that came */
            sweep(w);
        }
        assert_true(n > 1);
        keep(w);
        assert_true(is_here(w, i));
    }
    transfer_free(t);
}

/* What was given up goes with the next import; what was stored of it is not taken for a plan. */
static void an_import_whose_plan_is_gone_begins_again(void **state)
{
    struct world *w = *state;
    struct transfer *t;
    struct bt_error err;
    struct journal_plan p;

    assert_ok(transfer_new(&t, &err), err);
    assert_int_equal(take(w, t, PLAN, 0).code, BT_OK);
    keep(w);
    assert_ok(journal_plan_by_id(w->j, id_of("01"), &p, &err), err);
    assert_true(str_is(p.status, JOURNAL_IMPORTING));
    assert_true(p.ended_wall == 2 && str_is(p.goal, "g") && str_is(p.client_key, "k"));
    assert_ok(journal_plan_delete(w->j, p.ix, STR_LIT("why"), 20, &err), err);
    keep(w);
    assert_int_equal(take(w, t, PLAN_END, 5).code, BT_CONFLICT); /* it was deleted meanwhile */
    struct outcome o = take_whole(w, t, 0);
    assert_int_equal(o.code, BT_OK);
    assert_int_equal(o.result, TRANSFER_WAIT);
    keep(w);
    sweep(w);
    o = take_whole(w, t, 0);
    assert_int_equal(o.result, TRANSFER_DONE);
    keep(w);
    transfer_free(t);

    /* A new daemon knows nothing of an import that was under way: its plan goes first. */
    assert_ok(journal_plan_by_id(w->j, id_of("01"), &p, &err), err);
    assert_ok(journal_plan_state(w->j, p.ix, STR_LIT(JOURNAL_IMPORTING), 2, STR_LIT(""), &err),
              err);
    keep(w);
    assert_ok(transfer_new(&t, &err), err);
    o = take_whole(w, t, 0);
    assert_int_equal(o.code, BT_OK);
    assert_int_equal(o.result, TRANSFER_WAIT);
    keep(w);
    assert_false(is_here(w, 0));
    sweep(w);
    o = take_whole(w, t, 0);
    assert_int_equal(o.result, TRANSFER_DONE);
    keep(w);
    transfer_free(t);
}

static void a_key_that_another_plan_or_turn_has_is_a_conflict(void **state)
{
    struct world *w = *state;
    const struct journal_plan other = {.plan_id = id_of("77"),
                                       .client_key = STR_LIT("k"),
                                       .doc = "\x80",
                                       .doc_len = 1,
                                       .status = STR_LIT("running")};
    const struct journal_turn turn = {.turn_id = id_of("78"),
                                      .session_id = STR_LIT("s"),
                                      .client_key = STR_LIT("t"),
                                      .ended_wall = 1,
                                      .action = STR_LIT("plan")};
    struct transfer *t;
    struct bt_error err;
    uint64_t ix;

    assert_ok(journal_plan_add(w->j, &other, &ix, &err), err);
    assert_ok(journal_turn_put(w->j, &turn, &err), err);
    keep(w);
    assert_ok(transfer_new(&t, &err), err);
    for (size_t i = 0; i < 2; i++) {
        const struct outcome o = take_whole(w, t, i);
        assert_int_equal(o.code, BT_CONFLICT);
        assert_false(o.failed_write);
        keep(w);
    }
    assert_false(is_here(w, 0));
    transfer_free(t);
}

static void lines_and_names_are_forgotten_with_the_import_that_they_were_of(void **state)
{
    struct world *w = *state;
    struct transfer *t;
    struct bt_error err;

    assert_ok(transfer_new(&t, &err), err);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < THINGS; i++) {
            const struct outcome o = take_whole(w, t, i);
            assert_int_equal(o.code, BT_OK);
            assert_int_equal(o.result, round == 0 ? TRANSFER_DONE : TRANSFER_EXISTS);
            assert_string_equal(transfer_schedule(t), round == 0 && i == 2 ? "n" : "");
            keep(w);
        }
    }
    transfer_free(t);
    transfer_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_fails_is_told_as_one),
        TEST(what_cannot_be_read_refuses_the_import_and_leaves_nothing_of_the_plan),
        TEST(an_import_whose_plan_is_gone_begins_again),
        TEST(a_key_that_another_plan_or_turn_has_is_a_conflict),
        TEST(lines_and_names_are_forgotten_with_the_import_that_they_were_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
