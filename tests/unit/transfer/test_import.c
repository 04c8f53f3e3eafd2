/* Lines of a plan, a session and a schedule: taken whole or in pieces, and each wrong one is
 * refused with nothing left of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "supervisor/transfer/transfer.h"
#include "tests/support/cmocka.h"
#include "tests/unit/journal/journal_fixture.h"

#define ID "0190F3C2-7A1B-7C3D-9E4F-0123456789AB"
#define OTHER "0190F3C2-7A1B-7C3D-9E4F-0123456789AC"
#define PLAN                                                                                       \
    "{'kind':'plan','planId':'" ID "','bodyHash':'0123456789abcdef','createdMs':1,'endedMs':2,"    \
    "'documentBytes':1,'status':'completed','query':'g','sessionId':'s'}\n"
#define DOCUMENT "{'kind':'document','data':'gA=='}\n" /* {} in msgpack */
#define BLOB "{'kind':'blob','n':1,'bytes':5,'data':'aGVsbG8='}\n"
#define EVENT(more) "{'type':'plan_started','planId':'" ID "','planSeq':1" more "}"
#define ROW(event)                                                                                 \
    "{'kind':'row','planSeq':1,'type':'plan_started','topic':'plan/" ID                            \
    "','tsMs':5,'event':" event "}\n"
#define END "{'kind':'end','planId':'" ID "'}\n"
#define WHOLE PLAN DOCUMENT BLOB ROW(EVENT(",'xRef':1")) END

#define SESSION "{'kind':'session','sessionId':'s','messages':1,'createdMs':1,'updatedMs':2}\n"
#define MESSAGE "{'kind':'message','n':1,'role':'user','text':'hi','tsMs':1}\n"
#define SESSION_END "{'kind':'end','sessionId':'s'}\n"
#define SCHEDULE "{'kind':'schedule','name':'n','createdMs':1,'documentBytes':1,'rule':'gA=='}\n"
#define SCHEDULE_DOCUMENT "{'kind':'document','bytes':'gA=='}\n"

struct world {
    char dir[64];
    struct journal *j;
    struct transfer *t;
    msec now;
    struct bt_error err;
    char text[4096];
};

static int set_up(void **state)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/baton-import-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    assert_int_equal(journal_open_sqlite(w->dir, &opt, &w->j, &w->err), BT_OK);
    assert_int_equal(transfer_new(&w->t, &w->err), BT_OK);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    transfer_free(w->t);
    journal_close(w->j);
    fixture_remove_tree(w->dir);
    free(w);
    return 0;
}

/* "ok more", "ok done", or the code of the refusal; "'" stands for '"'. */
static const char *take_of(struct world *w, const char *lines, struct transfer_lines some)
{
    static const char *const results[] = {"ok more", "ok exists", "ok wait", "ok done"};
    enum transfer_result result = TRANSFER_MORE;
    bool failed = true;
    enum bt_code code;

    (void)snprintf(w->text, sizeof w->text, "%s", lines);
    for (char *at = w->text; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    some.text = str_from(w->text);
    some.now = w->now;
    some.wall = 1000;
    code = transfer_import(w->t, w->j, &some, &result, &failed, &w->err);
    assert_false(failed);
    assert_int_equal(journal_commit(w->j, &(struct bt_error){.code = BT_OK}), BT_OK);
    return code == BT_OK ? results[result] : bt_code_name(code);
}

static const char *take(struct world *w, const char *lines, uint64_t before)
{
    return take_of(w, lines, (struct transfer_lines){.before = before});
}

/* What a deletion has left goes, as retention lets it go. */
static void sweep(struct world *w)
{
    bool more = true;

    for (int i = 0; i < 100 && more; i++) {
        assert_int_equal(journal_sweep(w->j, 100, &more, &w->err), BT_OK);
        assert_int_equal(journal_commit(w->j, &w->err), BT_OK);
    }
    assert_false(more);
}

/* The status of the plan; "" = it is not there. */
static const char *status(struct world *w)
{
    static char text[32];
    struct journal_plan p;
    struct uuid id;

    assert_true(uuid_parse(STR_LIT(ID), &id));
    text[0] = 0;
    if (journal_plan_by_id(w->j, id, &p, NULL) == BT_OK) {
        (void)snprintf(text, sizeof text, "%.*s", STR_ARG(p.status));
    }
    return text;
}

static void is_refused(struct world *w, const char *lines, const char *says)
{
    assert_string_equal(take(w, lines, 0), "INVALID");
    if (strstr(w->err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\" of %s", w->err.msg, says, lines);
    }
    assert_string_equal(status(w), "");
    sweep(w);
}

static void a_plan_is_taken_whole_or_line_by_line(void **state)
{
    static const char *const lines[] = {PLAN, DOCUMENT, BLOB, ROW(EVENT(",'xRef':1")), END};
    struct world *w = *state;

    for (uint64_t i = 0; i < 5; i++) {
        assert_string_equal(take(w, lines[i], i), i < 4 ? "ok more" : "ok done");
        assert_string_equal(status(w), i < 2 ? "" : i < 4 ? JOURNAL_IMPORTING : "completed");
    }
    assert_string_equal(take(w, WHOLE, 0), "ok exists");
    assert_string_equal(status(w), "completed");
}

static void an_import_goes_on_only_where_it_is(void **state)
{
    struct world *w = *state;

    assert_string_equal(take(w, DOCUMENT, 1), "CONFLICT"); /* none is under way */
    assert_string_equal(take(w, PLAN DOCUMENT BLOB, 0), "ok more");
    assert_string_equal(take(w, END, 2), "CONFLICT");
    assert_string_equal(take(w, END, 4), "CONFLICT");
    assert_string_equal(status(w), JOURNAL_IMPORTING);
    assert_string_equal(take(w, END, 3), "ok done");
    assert_string_equal(take(w, END, 4), "CONFLICT"); /* it is over */
}

static void another_import_waits_and_drops_the_one_that_was_given_up(void **state)
{
    struct world *w = *state;

    w->now = 50;
    assert_string_equal(take(w, PLAN, 0), "ok more");
    w->now = 70;
    assert_string_equal(take(w, DOCUMENT BLOB, 1), "ok more");
    w->now = 70 + TRANSFER_SILENCE_MS - 1;
    assert_string_equal(take(w, SESSION MESSAGE SESSION_END, 0), "ok wait");
    assert_string_equal(take(w, WHOLE, 0), "ok wait"); /* the same one, too */
    assert_string_equal(status(w), JOURNAL_IMPORTING);
    w->now++;
    assert_string_equal(take(w, SESSION MESSAGE SESSION_END, 0), "ok done");
    assert_string_equal(take(w, ROW(EVENT(",'xRef':1")), 3), "CONFLICT");
    assert_string_equal(status(w), "");
    assert_string_equal(take(w, WHOLE, 0), "ok wait"); /* what is left of the first is removed */
    sweep(w);
    assert_string_equal(take(w, WHOLE, 0), "ok done");
}

static void lines_of_another_one_do_not_go_into_the_import_under_way(void **state)
{
    const struct transfer_lines others[] = {
        {.plan_id = STR_LIT(OTHER)}, {.plan_id = STR_LIT("x")}, {.session = STR_LIT(ID)},
        {.session = STR_LIT("s")},   {.name = STR_LIT(ID)},
    };
    const struct {
        const char *first, *rest;
        struct transfer_lines own;
    } imports[] = {
        {PLAN, DOCUMENT END, {.plan_id = STR_LIT(ID)}},
        {SESSION, MESSAGE SESSION_END, {.session = STR_LIT("s")}},
        {SCHEDULE, SCHEDULE_DOCUMENT END, {.name = STR_LIT("n")}},
    };
    struct world *w = *state;

    for (size_t i = 0; i < 3; i++) {
        struct transfer_lines some = imports[i].own;
        assert_string_equal(take_of(w, imports[i].first, some), "ok more");
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
            if (i != 1 || others[k].session.len != 1) {
                some = others[k];
                some.before = 1;
                assert_string_equal(take_of(w, imports[i].rest, some), "CONFLICT");
            }
        }
        for (size_t k = 0; k < 3; k++) {
            some = imports[k].own;
            some.before = 1;
            if (k != i) {
                assert_string_equal(take_of(w, imports[i].rest, some), "CONFLICT");
            }
        }
        some = imports[i].own;
        some.before = 1;
        assert_string_equal(take_of(w, imports[i].rest, some), "ok done");
    }
}

/* Without it one of two imports with large plans never finds the moment between two of the other.
 */
static void who_waits_first_is_next_while_it_asks(void **state)
{
    static const char second[] = SESSION MESSAGE SESSION_END;
    static const char third[] = SCHEDULE SCHEDULE_DOCUMENT END;
    struct world *w = *state;

    assert_string_equal(take(w, PLAN, 0), "ok more");
    w->now = 10;
    assert_string_equal(take(w, second, 0), "ok wait");
    assert_string_equal(take(w, third, 0), "ok wait");
    assert_string_equal(take(w, DOCUMENT END, 1), "ok done");
    assert_string_equal(take(w, third, 0), "ok wait"); /* it is not its turn */
    w->now = 10 + TRANSFER_TURN_MS - 1;
    assert_string_equal(take(w, third, 0), "ok wait");
    assert_string_equal(take(w, second, 0), "ok done");
    assert_string_equal(take(w, third, 0), "ok done");
    /* one that asks no more */
    assert_string_equal(take(w, SESSION, 0), "ok more");
    assert_string_equal(take(w, WHOLE, 0), "ok wait");
    assert_string_equal(take(w, MESSAGE SESSION_END, 1), "ok exists");
    w->now += TRANSFER_TURN_MS - 1;
    assert_string_equal(take(w, second, 0), "ok wait");
    w->now++;
    assert_string_equal(take(w, second, 0), "ok exists");
}

static void a_wrong_head_is_refused_by_what_is_wrong_with_it(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"'planId':'" ID "'", "'planId':'x'", "planId: expected"},
        {"'planId':'" ID "'", "'x':1", "planId: expected"},
        {"0123456789abcdef", "0123456789abcde", "bodyHash: expected 16"},
        {"0123456789abcdef", "0123456789abcdef0", "bodyHash: expected 16"},
        {"0123456789abcdef", "0123456789abcdeF", "bodyHash: expected 16"},
        {"'endedMs':2", "'endedMs':0", "only ended plans"},
        {"'endedMs':2", "'endedMs':9223372036854775808", "only ended plans"},
        {"completed", "running", "only ended plans"},
        {"completed", "importing", "only ended plans"},
        {"'documentBytes':1", "'documentBytes':0", "documentBytes: expected 1 to 8388608"},
        {"'documentBytes':1", "'documentBytes':8388609", "documentBytes: expected 1 to 8388608"},
        {"'createdMs':1", "'createdMs':9223372036854775808", "documentBytes"},
        {"'sessionId':'s'",
         "'sessionId':'12345678901234567890123456789012345678901234567890123456789012345'",
         "too long"},
        {"'sessionId':'s'",
         "'owner':'12345678901234567890123456789012345678901234567890123456789012345'", "too long"},
        {"'sessionId':'s'", "'job':'12345678901234567'", "too long"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = strstr(WHOLE, cases[i].from);
        char lines[2048];
        assert_non_null(at);
        (void)snprintf(lines, sizeof lines, "%.*s%s%s", (int)(strlen(WHOLE) - strlen(at)), WHOLE,
                       cases[i].to, at + strlen(cases[i].from));
        is_refused(w, lines, cases[i].says);
    }
    assert_string_equal(take(w, WHOLE, 0), "ok done");
}

static void names_may_have_64_bytes_and_each_end_is_one(void **state)
{
    static const char *const ends[] = {"completed", "planned", "failed", "cancelled",
                                       "quarantined"};
    struct world *w = *state;
    char lines[2048];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(
            lines, sizeof lines,
            "{'kind':'plan','planId':'" ID "','bodyHash':'0123456789abcdef','endedMs':1,"
            "'documentBytes':1,'status':'%s','job':'1234567890123456','sessionId':"
            "'1234567890123456789012345678901234567890123456789012345678901234','owner':"
            "'1234567890123456789012345678901234567890123456789012345678901234'}\n" DOCUMENT END,
            ends[i]);
        lines[strcspn(lines, "A")] = (char)('0' + i); /* an id of its own */
        lines[(size_t)(strstr(lines, "'end'") - lines) + strcspn(strstr(lines, "'end'"), "A")] =
            (char)('0' + i);
        assert_string_equal(take(w, lines, 0), "ok done");
    }
}

static void a_wrong_line_is_refused_and_nothing_of_the_plan_stays(void **state)
{
    static const struct {
        const char *lines, *says;
    } cases[] = {
        {DOCUMENT, "expected the first line"},
        {PLAN BLOB, "the plan's document has 0 bytes, expected 1"},
        {PLAN DOCUMENT DOCUMENT BLOB, "the plan's document has 2 bytes, expected 1"},
        {PLAN "{'kind':'document','data':'wQ=='}\n" BLOB, ""}, /* no msgpack */
        {PLAN "{'kind':'document','data':'?'}\n" BLOB, "data"},
        {PLAN DOCUMENT BLOB DOCUMENT, "\"document\" is no line of a plan"},
        {PLAN DOCUMENT "{'kind':'x'}\n", "\"x\" is no line of a plan"},
        {PLAN DOCUMENT "{'kind':'blob','n':2,'bytes':5,'data':'aGVsbG8='}\n", "expected result 1"},
        {PLAN DOCUMENT BLOB BLOB, "expected result 2"},
        {PLAN DOCUMENT "{'kind':'blob','n':1,'bytes':4,'data':'aGVsbG8='}\n", "more bytes"},
        {PLAN DOCUMENT "{'kind':'blob','n':1,'bytes':6,'data':'aGVsbG8='}\n"
                       "{'kind':'blob','n':1,'bytes':7,'data':'aA=='}\n",
         "expected result 1"},
        {PLAN DOCUMENT "{'kind':'blob','n':1,'bytes':6,'data':'aGVsbG8='}\n" ROW(EVENT("")),
         "expected the rest of result 1"},
        {PLAN DOCUMENT "{'kind':'blob','n':1,'bytes':6,'data':'aGVsbG8='}\n" END,
         "not the end of this plan"},
        {PLAN DOCUMENT ROW("[1]"), "not one of this plan"},
        {PLAN DOCUMENT ROW(EVENT(",'seq':7")), "seq is the journal's own"},
        {PLAN DOCUMENT ROW(EVENT(",'xRef':1")), "names a result that was not given"},
        {PLAN DOCUMENT BLOB ROW(EVENT(",'xRef':2")), "names a result that was not given"},
        {PLAN DOCUMENT ROW("{'type':'plan_started','planId':'" OTHER "','planSeq':1}"),
         "not one of this plan"},
        {PLAN DOCUMENT ROW("{'type':'plan_paused','planId':'" ID "','planSeq':1}"),
         "not one of this plan"},
        {PLAN DOCUMENT ROW("{'type':'plan_started','planId':'" ID "','planSeq':2}"),
         "not one of this plan"},
        {PLAN DOCUMENT ROW(EVENT("")) ROW(EVENT("")), "planSeq: expected 2"},
        {PLAN DOCUMENT "{'kind':'row','planSeq':1,'type':'x','tsMs':5,'event':{}}\n",
         "\"x\" is not known here"},
        {PLAN DOCUMENT "{'kind':'row','planSeq':1,'type':'plan_started','tsMs':9223372036854775808,"
                       "'event':" EVENT("") "}\n",
         "expected the rest"},
        {PLAN DOCUMENT "{'kind':'end','planId':'" OTHER "'}\n", "not the end of this plan"},
        {PLAN DOCUMENT "{'kind':'end'}\n", "not the end of this plan"},
        {PLAN "not JSON\n", ""},
        {PLAN PLAN, "\"plan\" is no line of a plan"},
        {SESSION SESSION MESSAGE SESSION_END, "\"session\" is no line of a session"},
        {SCHEDULE SCHEDULE SCHEDULE_DOCUMENT END, "\"schedule\" is no line of a schedule"},
        {SESSION MESSAGE MESSAGE, "expected message 2"},
        {SESSION "{'kind':'message','n':1,'role':'system','text':'x'}\n", "expected message 1"},
        {SESSION SESSION_END, "messages of the session are missing"},
        {SESSION MESSAGE "{'kind':'turn','turnId':'" ID "'}\n", "a turn that has ended"},
        {SESSION MESSAGE "{'kind':'x'}\n", "\"x\" is no line of a session"},
        {"{'kind':'session','sessionId':''}\n", "sessionId: expected 1 to 64 bytes"},
        {"{'kind':'session','sessionId':'"
         "12345678901234567890123456789012345678901234567890123456789012345'}\n",
         "sessionId: expected 1 to 64 bytes"},
        {SCHEDULE END, "is not whole"},
        {SCHEDULE SCHEDULE_DOCUMENT SCHEDULE_DOCUMENT END, "is not whole"},
        {SCHEDULE "{'kind':'x'}\n", "\"x\" is no line of a schedule"},
        {"{'kind':'schedule','name':'','documentBytes':1,'rule':'gA=='}\n", "name: expected 1 to"},
        {"{'kind':'schedule','name':'a b','documentBytes':1,'rule':'gA=='}\n", "name: expected 1"},
        {"{'kind':'schedule','name':'-a','documentBytes':1,'rule':'gA=='}\n",
         "name: expected 1 to"},
        {"{'kind':'schedule','name':'a/b','documentBytes':1,'rule':'gA=='}\n", "name: expected 1"},
        {"{'kind':'schedule','name':'ann:a','documentBytes':1,'rule':'gA=='}\n", "name: expected"},
        {"{'kind':'schedule','name':'ann:a','owner':'bob','documentBytes':1,'rule':'gA=='}\n",
         "name: expected 1 to 64 of A-Z"},
        {"{'kind':'schedule','name':'ann:','owner':'ann','documentBytes':1,'rule':'gA=='}\n",
         "name: expected 1 to 64 of A-Z"},
        {"{'kind':'schedule','name':'ann:a:b','owner':'ann','documentBytes':1,'rule':'gA=='}\n",
         "name: expected 1 to 64 of A-Z"},
        {"{'kind':'schedule','name':'n','documentBytes':0,'rule':'gA=='}\n", "documentBytes"},
        {"{'kind':'schedule','name':'n','documentBytes':1,'rule':'wQ=='}\n", ""},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        is_refused(w, cases[i].lines, cases[i].says);
    }
    assert_string_equal(take(w, WHOLE, 0), "ok done");
}

/* A plan was stored as completed, although its import was refused. */
static void lines_after_the_end_are_refused_and_the_end_is_not_taken(void **state)
{
    struct journal_schedule row;
    struct world *w = *state;

    is_refused(w, WHOLE END, "lines after the end");
    is_refused(w, WHOLE "\n", "lines after the end");
    is_refused(w, SCHEDULE SCHEDULE_DOCUMENT END END, "lines after the end");
    assert_int_equal(journal_schedule_by_name(w->j, STR_LIT("n"), &row, &w->err), BT_NOT_FOUND);
}

static void a_result_comes_in_parts(void **state)
{
    static const char lines[] =
        PLAN DOCUMENT "{'kind':'blob','n':1,'bytes':6,'data':'aGVsbG8='}\n"
                      "{'kind':'blob','n':1,'bytes':6,'data':'IQ=='}\n" ROW(EVENT(",'xRef':1")) END;

    assert_string_equal(take(*state, lines, 0), "ok done");
}

static void a_session_that_is_here_gets_what_it_lacks_and_else_it_exists(void **state)
{
    struct journal_session s;
    struct world *w = *state;

    assert_string_equal(take(w, SESSION MESSAGE SESSION_END, 0), "ok done");
    assert_string_equal(take(w, SESSION MESSAGE SESSION_END, 0), "ok exists"); /* the same again */
    assert_string_equal(
        take(w, SESSION "{'kind':'message','n':1,'role':'user','text':'ho','tsMs':1}\n", 0),
        "CONFLICT");
    assert_string_equal(
        take(w,
             "{'kind':'session','sessionId':'s','messages':2,'updatedMs':9}\n" MESSAGE
             "{'kind':'message','n':2,'role':'assistant','text':'x','tsMs':2}\n" SESSION_END,
             0),
        "ok done");
    assert_int_equal(journal_session(w->j, STR_LIT("s"), &s, &w->err), BT_OK);
    assert_int_equal(s.messages, 2);
    assert_int_equal(s.updated_wall, 9);
    assert_string_equal(take(w, SESSION MESSAGE SESSION_END, 0), "ok exists"); /* an older copy */
    assert_int_equal(journal_session(w->j, STR_LIT("s"), &s, &w->err), BT_OK);
    assert_int_equal(s.messages, 2);
    assert_int_equal(s.updated_wall, 9);
}

static void a_session_goes_out_with_all_its_numbers(void **state)
{
    static const char *const members[] = {"'createdMs':11", "'updatedMs':22",      "'messages':1",
                                          "'summarized':1", "'agentCalls':33",     "'toolCalls':44",
                                          "'owner':'ann'",  "'summary':'aGVsbG8='"};
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    char cursor[TRANSFER_CURSOR_MAX] = "";
    struct buf lines;

    assert_string_equal(
        take(w,
             "{'kind':'session','sessionId':'s','messages':1,'createdMs':11,'updatedMs':22,"
             "'summarized':1,'agentCalls':33,'toolCalls':44,'owner':'ann','summary':'aGVsbG8='}"
             "\n" MESSAGE SESSION_END,
             0),
        "ok done");
    buf_init(&lines, TRANSFER_SLICE_MAX);
    for (int i = 0; i < 10 && (i == 0 || cursor[0] != 0); i++) {
        assert_int_equal(transfer_export(w->j, NULL, &want, cursor, &lines, &w->err), BT_OK);
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", members[i]);
        for (char *at = text; (at = strchr(at, '\'')) != NULL;) {
            *at = '"';
        }
        if (strstr(buf_cstr(&lines), text) == NULL) {
            fail_msg("%s is not in %s", text, buf_cstr(&lines));
        }
    }
    buf_done(&lines);
}

static void a_schedule_comes_paused_and_one_that_is_here_stays(void **state)
{
    struct journal_schedule row;
    struct world *w = *state;

    assert_string_equal(take(w, SCHEDULE SCHEDULE_DOCUMENT END, 0), "ok done");
    assert_string_equal(transfer_schedule(w->t), "n");
    assert_int_equal(journal_schedule_by_name(w->j, STR_LIT("n"), &row, &w->err), BT_OK);
    assert_non_null(memmem(row.state.ptr, row.state.len, "paused", 6));
    assert_string_equal(take(w, SCHEDULE SCHEDULE_DOCUMENT END, 0), "ok exists");
    assert_string_equal(transfer_schedule(w->t), "");
    assert_string_equal(
        take(w,
             "{'kind':'schedule','documentBytes':1,'rule':'gA==','name':"
             "'1234567890123456789012345678901234567890123456789012345678901234','owner':"
             "'1234567890123456789012345678901234567890123456789012345678901234'}"
             "\n" SCHEDULE_DOCUMENT END,
             0),
        "ok done");
    is_refused(w,
               "{'kind':'schedule','documentBytes':1,'rule':'gA==','name':'o','owner':"
               "'12345678901234567890123456789012345678901234567890123456789012345'}\n",
               "owner: expected at most 64 bytes");
    is_refused(w,
               "{'kind':'schedule','documentBytes':1,'rule':'gA==','name':"
               "'12345678901234567890123456789012345678901234567890123456789012345'}\n",
               "name: expected at most 64 bytes");
    assert_string_equal(take(w,
                             "{'kind':'schedule','documentBytes':1,'rule':'gA==','name':'ann:n-1.a_"
                             "b','owner':'ann'}\n" SCHEDULE_DOCUMENT END,
                             0),
                        "ok done");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plan_is_taken_whole_or_line_by_line),
        TEST(an_import_goes_on_only_where_it_is),
        TEST(another_import_waits_and_drops_the_one_that_was_given_up),
        TEST(lines_of_another_one_do_not_go_into_the_import_under_way),
        TEST(who_waits_first_is_next_while_it_asks),
        TEST(a_wrong_head_is_refused_by_what_is_wrong_with_it),
        TEST(names_may_have_64_bytes_and_each_end_is_one),
        TEST(a_wrong_line_is_refused_and_nothing_of_the_plan_stays),
        TEST(lines_after_the_end_are_refused_and_the_end_is_not_taken),
        TEST(a_result_comes_in_parts),
        TEST(a_session_that_is_here_gets_what_it_lacks_and_else_it_exists),
        TEST(a_session_goes_out_with_all_its_numbers),
        TEST(a_schedule_comes_paused_and_one_that_is_here_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
