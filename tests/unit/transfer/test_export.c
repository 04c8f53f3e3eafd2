/* What a journal holds, as lines: each member of each line, in slices of any size, and the way back
 * into another journal; what an export asks for, and what goes wrong on its way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transfer/transfer_world.h"

/* ---- each line ---- */

static void a_plan_has_a_head_its_document_its_results_its_rows_and_an_end(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    const struct str document = doc(w, "{'goal':'g'}");
    const struct journal_plan p = {.plan_id = id_of("AB"),
                                   .session_id = STR_LIT("s"),
                                   .client_key = STR_LIT("k"),
                                   .body_hash = 0x123456789abcdef0 >> 4,
                                   .goal = STR_LIT("what is it"),
                                   .doc = document.ptr,
                                   .doc_len = document.len,
                                   .created_wall = 11,
                                   .status = STR_LIT("running"),
                                   .job = STR_LIT("planning"),
                                   .owner = STR_LIT("ann")};
    uint64_t blobs[2];
    struct bt_error err;
    uint64_t ix;
    char event[200];

    assert_ok(journal_plan_add(w->j, &p, &ix, &err), err);
    (void)put_blob(w, "of nobody", 9);
    blobs[0] = put_blob(w, "hello", 5);
    blobs[1] = put_blob(w, "", 0);
    (void)snprintf(event, sizeof event, EVENT("AB", "1") ",'xRef':%llu,'Ref':9,'n':%llu,'yRef':'z'",
                   (unsigned long long)blobs[0], (unsigned long long)blobs[0]);
    put_row(w, ix, 1, "plan_started", event, blobs, 1);
    (void)snprintf(event, sizeof event, "'resultRef':%llu,'xRef':%llu",
                   (unsigned long long)blobs[1], (unsigned long long)blobs[0]);
    put_row(w, ix, 0, "step_dispatched", event, blobs, 2);
    assert_ok(journal_plan_state(w->j, ix, STR_LIT("failed"), 22, STR_LIT("a note"), &err), err);
    keep(w);
    is_exported(w, &want,
                "{'kind':'plan','planId':'" ID(
                    "AB") "','sessionId':'s','clientKey':'k','bodyHash':"
                          "'0123456789abcdef','query':'what is "
                          "it','job':'planning','owner':'ann','createdMs':11,"
                          "'status':'failed','endedMs':22,'note':'a note','documentBytes':8}\n"
                          "{'kind':'document','data':'gaRnb2FsoWc='}\n"
                          "{'kind':'blob','n':1,'bytes':5,'data':'aGVsbG8='}\n"
                          "{'kind':'blob','n':2}\n"
                          "{'kind':'row','planSeq':1,'type':'plan_started','topic':'a/"
                          "topic','tsMs':5,'event':{"
                          "'type':'plan_started','planId':'" ID(
                              "AB") "','planSeq':1,'xRef':1,'Ref':9,'n':2,"
                                    "'yRef':'z'}}\n"
                                    "{'kind':'row','type':'step_dispatched','topic':'a/"
                                    "topic','tsMs':5,'event':{'resultRef':2,"
                                    "'xRef':1}}\n"
                                    "{'kind':'end','planId':'" ID("AB") "'}\n");
}

static void a_session_has_its_messages_each_with_the_turn_that_it_began(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    const struct journal_session s = {.session_id = STR_LIT("s"),
                                      .created_wall = 1,
                                      .updated_wall = 2,
                                      .messages = 3,
                                      .summarized = 2,
                                      .summary = put_blob(w, "sum", 3),
                                      .agent_calls = 4,
                                      .tool_calls = 5,
                                      .owner = STR_LIT("ann")};
    const struct journal_message m[] = {
        {.role = STR_LIT("user"),
         .text = STR_LIT("hi"),
         .cut = true,
         .turn = id_of("01"),
         .plan = id_of("AB"),
         .wall = 6},
        {.role = STR_LIT("assistant"), .text = STR_LIT("ho"), .turn = id_of("01"), .wall = 7},
        {.role = STR_LIT("user"), .text = STR_LIT("and"), .turn = id_of("02"), .wall = 8}};
    const struct journal_turn t[] = {{.turn_id = id_of("01"),
                                      .session_id = STR_LIT("s"),
                                      .client_key = STR_LIT("k"),
                                      .body_hash = 9,
                                      .asked = 1,
                                      .answered = 2,
                                      .started_wall = 10,
                                      .ended_wall = 11,
                                      .plan = id_of("AB"),
                                      .action = STR_LIT("plan"),
                                      .context_blob = put_blob(w, "ctx", 3)},
                                     {.turn_id = id_of("02"),
                                      .session_id = STR_LIT("s"),
                                      .asked = 3,
                                      .started_wall = 12,
                                      .action = STR_LIT("plan")}}; /* it is open */
    struct bt_error err;
    uint64_t n;

    for (size_t i = 0; i < 3; i++) {
        assert_ok(journal_message_add(w->j, STR_LIT("s"), &m[i], &n, &err), err);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_ok(journal_turn_put(w->j, &t[i], &err), err);
    }
    assert_ok(journal_session_put(w->j, &s, &err), err);
    keep(w);
    is_exported(
        w, &want,
        "{'kind':'session','sessionId':'s','createdMs':1,'updatedMs':2,'messages':3,'summarized':2,"
        "'agentCalls':4,'owner':'ann','toolCalls':5,'summary':'c3Vt'}\n"
        "{'kind':'message','n':1,'role':'user','cut':1,'turnId':'" ID("01") "','planId':'" ID(
            "AB") "','tsMs':6,'text':'hi'}\n"
                  "{'kind':'turn','turnId':'" ID(
                      "01") "','clientKey':'k','bodyHash':9,'asked':1,'answered':2,"
                            "'startedMs':10,'endedMs':11,'planId':'" ID(
                                "AB") "','action':'plan','context':'Y3R4'}\n"
                                      "{'kind':'message','n':2,'role':'assistant','turnId':'" ID(
                                          "01") "','tsMs':7,'text':'ho'}\n"
                                                "{'kind':'message','n':3,'role':'user','turnId':"
                                                "'" ID("02") "','tsMs':8,'text':'and'}\n"
                                                             "{'kind':'end','sessionId':'s'}\n");
}

static void a_schedule_has_its_rule_its_document_and_an_end(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;

    put_schedule(w, "n", doc(w, "{'goal':'g'}"));
    put_schedule(w, "o", doc(w, "{}"));
    keep(w);
    is_exported(w, &want,
                "{'kind':'schedule','name':'n','owner':'ann','createdMs':11,'bodyHash':77,'rule':"
                "'gaRjcm9upkBkYWlseQ==','documentBytes':8}\n"
                "{'kind':'document','name':'n','bytes':'gaRnb2FsoWc='}\n"
                "{'kind':'end','name':'n'}\n"
                "{'kind':'schedule','name':'o','owner':'ann','createdMs':11,'bodyHash':77,'rule':"
                "'gaRjcm9upkBkYWlseQ==','documentBytes':1}\n"
                "{'kind':'document','name':'o','bytes':'gA=='}\n"
                "{'kind':'end','name':'o'}\n");
}

/* ---- and back ---- */

static void fill(struct world *w)
{
    const uint64_t ix = put_plan(w, "01", large(w, 500 * 1024), 1, 10, "");
    char *bytes = arena_alloc(&w->arena, 700 * 1024);
    uint64_t blobs[3];
    char members[128];

    assert_non_null(bytes);
    for (size_t i = 0; i < 700 * 1024; i++) {
        bytes[i] = (char)(i * 31 % 251);
    }
    blobs[0] = put_blob(w, bytes, 700 * 1024);
    blobs[1] = put_blob(w, bytes, 96 * 1024); /* just one line */
    blobs[2] = put_blob(w, "", 0);
    for (uint64_t i = 0; i < 3; i++) {
        (void)snprintf(members, sizeof members, EVENT("01", "%llu") ",'xRef':%llu",
                       (unsigned long long)i + 1, (unsigned long long)blobs[i]);
        put_row(w, ix, i + 1, "plan_started", members, &blobs[i], 1);
    }
    const uint64_t rows = put_plan(w, "02", doc(w, "{}"), 1, 11, "");
    for (uint64_t i = 1; i <= 1001; i++) {
        put_event(w, rows, i, "02");
    }
    (void)put_plan(w, "03", large(w, 96 * 1024 - 12), 1, 11, "");
    for (int i = 0; i < 3; i++) {
        const char *const ids[] = {"s", "s1", "r"};
        for (int k = 0; k < 40; k++) {
            put_message(w, ids[i], arena_str(&w->arena, large(w, 12 * 1024)).ptr + 6);
        }
        put_session(w, ids[i], i < 2 ? 20 : 19, 40);
    }
    put_schedule(w, "n", large(w, 600 * 1024));
    put_schedule(w, "m", doc(w, "{}"));
    keep(w);
}

static void what_goes_out_comes_in_and_goes_out_the_same_in_parts_of_any_size(void **state)
{
    static const uint32_t parts[] = {1, 7, 5000};
    struct world *w = *state;
    char *lines;

    fill(w);
    lines = strdup(all(w));
    assert_non_null(lines);
    assert_true(w->slices > 12);
    assert_int_equal(count(lines, "\"kind\":\"plan\""), 3);
    assert_int_equal(count(lines, "\"kind\":\"session\""), 3);
    assert_int_equal(count(lines, "\"kind\":\"schedule\""), 2);
    assert_int_equal(count(lines, "\"kind\":\"row\""), 1004);
    assert_int_equal(count(lines, "\"kind\":\"message\""), 120);
    assert_int_equal(count(lines, "\"kind\":\"document\""), 6 + 1 + 1 + 7 + 1);
    assert_int_equal(count(lines, "\"kind\":\"blob\""), 8 + 1 + 1);
    assert_true(strstr(lines, "\"sessionId\":\"r\"") < strstr(lines, "\"sessionId\":\"s\""));
    for (size_t i = 0; i < 3; i++) {
        struct world other = {.slices = 0};
        open_journal(&other);
        import(&other, lines, parts[i]);
        const char *again = all(&other);
        const char *differs = again;
        for (const char *at = lines; *at != 0 && *at == *differs; at++) {
            differs++;
        }
        if (strcmp(again, lines) != 0) {
            fail_msg("it differs from \"%.80s\" on", differs);
        }
        close_journal(&other);
    }
    world_now = w;
    free(lines);
}

/* ---- what is asked for ---- */

static void an_export_takes_what_ended_or_was_updated_since_then(void **state)
{
    struct world *w = *state;

    (void)put_plan(w, "01", doc(w, "{}"), 1, 10, "");
    (void)put_plan(w, "02", doc(w, "{}"), 1, 10, "");
    (void)put_plan(w, "03", doc(w, "{}"), 1, 0, ""); /* it has not ended */
    (void)put_plan(w, "04", doc(w, "{}"), 1, 1, "");
    put_message(w, "s", "x");
    put_session(w, "s", 10, 1);
    put_schedule(w, "n", doc(w, "{}"));
    keep(w);
    for (msec since = 0; since <= 11; since++) {
        const struct transfer_want want = {.since = since};
        const char *lines = exported(w, &want);
        assert_int_equal(count(lines, "\"kind\":\"plan\""), since <= 1 ? 3 : since <= 10 ? 2 : 0);
        assert_int_equal(count(lines, "\"kind\":\"session\""), since <= 10);
        assert_int_equal(count(lines, "\"kind\":\"schedule\""), 1);
    }
}

static void what_is_in_memory_or_comes_in_just_now_is_not_given(void **state)
{
    struct world *w = *state;
    struct bt_error err;
    uint64_t ix;

    (void)put_plan(w, "01", doc(w, "{}"), 1, 10, "");
    ix = put_plan(w, "02", doc(w, "{}"), 1, 11, "");
    (void)put_plan(w, "03", doc(w, "{}"), 1, 12, "");
    assert_ok(journal_plan_state(w->j, ix, STR_LIT(JOURNAL_IMPORTING), 11, STR_LIT(""), &err), err);
    keep(w);
    (void)snprintf(w->open, sizeof w->open, "03");
    assert_int_equal(count(all(w), "\"kind\":\"plan\""), 1);
    assert_non_null(strstr(buf_cstr(&w->text), ID("01")));
    w->open[0] = 0;
    assert_int_equal(count(all(w), "\"kind\":\"plan\""), 2);
}

/* The jobs of a plan may end a minute later than it, and lie in one another. */
static void one_plan_goes_out_with_the_jobs_inside_it(void **state)
{
    struct world *w = *state;
    struct transfer_want want = {.one = true, .id = id_of("01")};
    const msec ended = 1000;

    (void)put_plan(w, "F0", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, 99, "planning");
    want.ix = put_plan(w, "01", doc(w, "{}"), 100, ended, "");
    (void)put_plan(w, "02", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, 100, "planning");
    (void)put_plan(w, "03", doc(w, "{'child':{'of':'" ID("01") "'}}"), 1, ended + 60000, "child");
    (void)put_plan(w, "04", doc(w, "{'errand':{'of':'" ID("03") "'}}"), 1, 500, "planning");
    (void)put_plan(w, "F1", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, ended + 60001, "replan");
    (void)put_plan(w, "F2", doc(w, "{'errand':{'of':'" ID("F3") "'}}"), 1, 500, "planning");
    (void)put_plan(w, "F3", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, 500, "");
    (void)put_plan(w, "F4", doc(w, "{}"), 1, 500, "planning");
    put_message(w, "s", "x");
    put_schedule(w, "n", doc(w, "{}"));
    keep(w);
    const char *lines = exported(w, &want);
    assert_int_equal(count(lines, "\"kind\":\"plan\""), 5);
    for (int i = 1; i <= 4; i++) {
        char head[80];
        (void)snprintf(head, sizeof head, "{\"kind\":\"plan\",\"planId\":\"" ID("%02d") "\"", i);
        assert_int_equal(count(lines, head), 1);
    }
    assert_non_null(
        strstr(lines, ID("F2"))); /* a job that another one inside had, without one of its own */
    assert_ptr_equal(strstr(lines, "{\"kind\":\"plan\",\"planId\":\"" ID("01")), lines); /* first */
    assert_int_equal(count(lines, "session") + count(lines, "schedule"), 0);
    want.alone = true;
    assert_int_equal(count(exported(w, &want), "\"kind\":\"plan\""), 1);
    assert_int_equal(count(buf_cstr(&w->text), "\"kind\":\"end\""), 1);
}

static void a_cursor_is_one_of_an_earlier_answer(void **state)
{
    static const struct {
        const char *cursor;
        bool ok;
    } cases[] = {
        {"x", false},
        {"p", false},
        {"p.1.1.3.0", false},
        {"p.1.1.3.0.0x", false},
        {"p.1.1.3.0.0.", false},
        {"p.1.1.3.0.0", true},
        {"p.9223372036854775807.1.3.0.0", true},
        {"p.9223372036854775808.1.3.0.0", false},
        {"p.1.9223372036854775807.3.0.0", true},
        {"p.1.9223372036854775808.3.0.0", false},
        {"p.1.1.4.0.0", false},
        {"p.1.1.3.9223372036854775806.0", true},
        {"p.1.1.3.9223372036854775807.0", false},
        {"c.0.0.1", true},
        {"c.0.0.0", false},
        {"c.1.0.2", false},
        {"c.9223372036854775806.0.1", true},
        {"c.9223372036854775807.0.1", false},
        {"c.1.8388608.1", true},
        {"c.1.8388609.1", false},
        {"c.1.0", false},
        {"c.1.0.1x", false},
        {"s.1.18446744073709551615.s", true},
        {"s.1.18446744073709551615.", true},
        {"s.9223372036854775807.18446744073709551615.s", true},
        {"s.9223372036854775808.18446744073709551615.s", false},
        {"s.1.1", false},
        {"s.1.18446744073709551615."
         "1234567890123456789012345678901234567890123456789012345678901234",
         true},
        {"s.1.18446744073709551615."
         "12345678901234567890123456789012345678901234567890123456789012345",
         false},
    };
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    const struct transfer_hooks hooks = {w, is_open};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char cursor[TRANSFER_CURSOR_MAX];
        struct bt_error err;
        (void)snprintf(cursor, sizeof cursor, "%s", cases[i].cursor);
        const enum bt_code code = transfer_export(w->j, &hooks, &want, cursor, &w->text, &err);
        if (code != (cases[i].ok ? BT_OK : BT_INVALID)) {
            fail_msg("%s: %s", cases[i].cursor, bt_code_name(code));
        }
        assert_true(code == BT_OK || strstr(err.msg, "of an earlier answer") != NULL);
    }
}

/* ---- what goes wrong ---- */

/* The first slice of an export, whose cursor is left. */
static void begin_export(struct world *w, char cursor[TRANSFER_CURSOR_MAX])
{
    const struct transfer_want want = {.one = false};
    const struct transfer_hooks hooks = {w, is_open};
    struct bt_error err;

    buf_clear(&w->text);
    cursor[0] = 0;
    assert_ok(transfer_export(w->j, &hooks, &want, cursor, &w->text, &err), err);
    assert_int_not_equal(cursor[0], 0);
}

static void is_conflict(struct world *w, char cursor[TRANSFER_CURSOR_MAX], const char *says)
{
    const struct transfer_want want = {.one = false};
    const struct transfer_hooks hooks = {w, is_open};
    struct bt_error err;

    buf_clear(&w->text);
    if (transfer_export(w->j, &hooks, &want, cursor, &w->text, &err) != BT_CONFLICT) {
        fail_msg("it goes on, instead of \"%s\", to %s", says, cursor);
    }
    assert_non_null(strstr(err.msg, says));
}

static void what_goes_while_it_is_given_ends_the_export(void **state)
{
    struct world *w = *state;
    char cursor[TRANSFER_CURSOR_MAX];
    struct bt_error err;
    uint64_t ix;
    bool more;

    ix = put_plan(w, "01", large(w, 500 * 1024), 1, 10, "");
    (void)put_plan(w, "02", doc(w, "{}"), 1, 11, "");
    keep(w);
    begin_export(w, cursor);
    assert_ok(journal_plan_delete(w->j, ix, STR_LIT("why"), 20, &err), err);
    keep(w);
    is_conflict(w, cursor, "a plan was deleted while it was exported");

    assert_int_equal(count(all(w), "\"kind\":\"plan\""), 1);
    for (int k = 0; k < 40; k++) {
        put_message(w, "s", large(w, 12 * 1024).ptr + 6);
    }
    put_session(w, "s", 20, 40);
    keep(w);
    begin_export(w, cursor);
    assert_int_equal(cursor[0], 's');
    assert_ok(journal_session_delete(w->j, STR_LIT("s"), 1000, &more, &err), err);
    keep(w);
    is_conflict(w, cursor, "a session was deleted while it was exported");

    put_schedule(w, "n", large(w, 600 * 1024));
    put_schedule(w, "o", doc(w, "{}"));
    keep(w);
    begin_export(w, cursor);
    assert_int_equal(cursor[0], 'c');
    struct journal_schedule row;
    assert_ok(journal_schedule_by_name(w->j, STR_LIT("n"), &row, &err), err);
    assert_ok(journal_schedule_delete(w->j, row.ix, &err), err);
    keep(w);
    is_conflict(w, cursor, "a schedule was deleted while it was exported");
}

/* What is damaged is named in its place, and all the others are given. */
static void a_damaged_part_costs_its_plan_or_session_alone(void **state)
{
    struct world *w = *state;
    uint32_t damaged = 0;
    uint32_t ended = 0;
    bool failed = true;

    fill(w);
    watch(w);
    (void)all(w);
    fail_with = BT_IO;
    for (uint32_t n = 1; n <= asked && failed && n < 45; n++) {
        const struct transfer_want want = {.one = false};
        struct bt_error err;
        uint32_t reads = asked;
        asked = 0;
        fail_at = n;
        const enum bt_code code = export_want(w, &want, &err);
        failed = asked >= n;
        asked = reads;
        fail_at = 0;
        if (code != BT_OK) {
            assert_int_equal(code, BT_IO);
            assert_string_equal(err.msg, "it cannot be read");
            ended++;
            continue;
        }
        const char *lines = buf_cstr(&w->text);
        assert_int_equal(count(lines, "\"kind\":\"end\"") + count(lines, "\"kind\":\"damaged\""),
                         8);
        damaged += count(lines, "\"kind\":\"damaged\"");
        assert_true(count(lines, "\"why\":\"it cannot be read\"") ==
                    count(lines, "\"kind\":\"damaged\""));
    }
    assert_true(damaged > 10);
    assert_true(ended > 0);
}

static void an_export_that_cannot_read_says_why_and_the_next_one_can(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    struct bt_error err;
    uint32_t reads;
    char *lines;

    fill(w);
    watch(w);
    lines = strdup(all(w));
    assert_non_null(lines);
    reads = asked;
    for (uint32_t n = 1; n <= reads; n += n < 40 ? 1 : 37) {
        asked = 0;
        fail_at = n;
        assert_int_equal(export_want(w, &want, &err), BT_NOMEM);
        assert_string_equal(err.msg, "it cannot be read");
        assert_int_equal(err.code, BT_NOMEM);
        fail_at = 0;
    }
    assert_string_equal(all(w), lines);
    free(lines);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plan_has_a_head_its_document_its_results_its_rows_and_an_end),
        TEST(a_session_has_its_messages_each_with_the_turn_that_it_began),
        TEST(a_schedule_has_its_rule_its_document_and_an_end),
        TEST(what_goes_out_comes_in_and_goes_out_the_same_in_parts_of_any_size),
        TEST(an_export_takes_what_ended_or_was_updated_since_then),
        TEST(what_is_in_memory_or_comes_in_just_now_is_not_given),
        TEST(one_plan_goes_out_with_the_jobs_inside_it),
        TEST(a_cursor_is_one_of_an_earlier_answer),
        TEST(what_goes_while_it_is_given_ends_the_export),
        TEST(a_damaged_part_costs_its_plan_or_session_alone),
        TEST(an_export_that_cannot_read_says_why_and_the_next_one_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
