/* What a cycle of the engine reads and writes, over a journal that counts. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"
#include "tests/support/cmocka.h"
#include "tests/unit/engine/engine_fixture.h"

static const char plan_json[] = "{'description':'adds two numbers','successCriteria':['a sum'],"
                                "'steps':[{'stepId':'a','agentId':'calc','skill':'add',"
                                "'task':'add 2 and 3'}]}";

struct seen {
    char types[16][40];
    uint32_t n;
    char description[64];
};

static bool see(const struct journal_row *row, void *self)
{
    struct seen *s = self;
    const struct str text = row_text((struct doc){row->body, row->body_len}, "description");

    assert_true(s->n < 16 && row->type.len < sizeof s->types[0]);
    memcpy(s->types[s->n++], row->type.ptr, row->type.len);
    if (text.len > 0 && text.len < sizeof s->description) {
        memcpy(s->description, text.ptr, text.len);
    }
    return true;
}

static struct seen rows_of(struct engine_world *w)
{
    struct seen s = {.n = 0};
    struct bt_error err;

    assert_int_equal(journal_events(w->journal, 1, 0, UINT32_MAX, see, &s, &err), BT_OK);
    return s;
}

static void a_submit_reads_nothing_back_that_it_has_in_hand(void **state)
{
    struct engine_world w;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;
    struct seen s;

    (void)state;
    engine_world_open(&w);
    engine_world_submit(&w, plan_json, id);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    assert_int_equal(engine_world_reads, 0);
    s = rows_of(&w);
    assert_string_equal(s.description, "adds two numbers"); /* the document was looked at */
    engine_world_close(&w);
}

static void a_plan_that_was_taken_over_is_no_longer_the_submissions(void **state)
{
    struct engine_world w;
    struct open_plan twice = {.session = SESSION_SLOT_NONE};
    struct core_event ev = {.type = CORE_SUBMIT};
    enum core_reject reject = REJECT_NONE;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;

    (void)state;
    engine_world_open(&w);
    for (uint32_t i = 0; i < w.engine->runs_max; i++) {
        engine_world_submit(&w, plan_json, id);
        assert_non_null(open_plan_by_id(w.engine, str_from(id)));
    }
    /* No run is free: the plan stays the caller's. */
    twice.plan = calloc(1, sizeof *twice.plan);
    assert_non_null(twice.plan);
    ev.plan = twice.plan;
    twice.block = ev.block = open_plan_block(twice.plan);
    assert_int_equal(engine_submit(w.engine, &ev, &twice, (struct doc){NULL, 0}, &reject, &err),
                     BT_OK);
    assert_int_equal(reject, REJECT_TOO_MANY_RUNS);
    assert_ptr_equal(twice.plan, ev.plan);
    open_plan_done(&twice);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    engine_world_close(&w);
}

static bool dirty_at_end;
static uint64_t seq_at_end;

static enum bt_code end_turn(struct engine *engine, const struct open_plan *p,
                             const struct record *rec, struct str summary, struct bt_error *err)
{
    const struct record end = {.type = REC_TURN_END,
                               .now = engine_now(engine),
                               .wall = engine_wall(engine),
                               .text = STR_LIT("done")};
    struct record_extra x = {.session_id = STR_LIT("s"),
                             .turn_id = STR_LIT("0190F3C2-7A1B-7C3D-9E4F-0123456789AB"),
                             .action = STR_LIT("new_plan")};

    assert_non_null(p->plan);
    assert_int_equal(rec->type, REC_PLAN_COMPLETED);
    (void)summary;
    dirty_at_end = journal_dirty(engine_journal(engine));
    seq_at_end = journal_last_seq(engine_journal(engine));
    return engine_write_record(engine, &end, &x, err);
}

static void the_end_of_a_plan_is_passed_on_after_its_row_and_before_the_commit(void **state)
{
    struct core_event cancel = {.type = CORE_CANCEL, .text = STR_LIT("enough")};
    struct engine_world w;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;
    struct seen s;

    (void)state;
    engine_world_open(&w);
    engine_world_plan_ended = end_turn;
    dirty_at_end = false;
    engine_world_submit(&w, plan_json, id);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    engine_begin(w.engine, 1001, 1700000000001);
    cancel.run = open_plan_by_id(w.engine, str_from(id))->run;
    assert_int_equal(engine_feed(w.engine, &cancel, NULL, &err), BT_OK);
    assert_true(dirty_at_end);
    assert_true(seq_at_end > journal_committed_seq(w.journal));
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    s = rows_of(&w);
    assert_true(s.n >= 2);
    assert_string_equal(s.types[s.n - 1], "turn_end");
    assert_string_equal(s.types[s.n - 2], "plan_completed");
    assert_null(open_plan_by_id(w.engine, str_from(id)));
    engine_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submit_reads_nothing_back_that_it_has_in_hand),
        cmocka_unit_test(a_plan_that_was_taken_over_is_no_longer_the_submissions),
        cmocka_unit_test(the_end_of_a_plan_is_passed_on_after_its_row_and_before_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
