/* What a cycle of the engine reads and writes, over a journal that counts. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/conditions.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/revision.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"
#include "tests/support/cmocka.h"
#include "tests/unit/engine/engine_fixture.h"

static const char plan_json[] = "{'description':'adds two numbers','successCriteria':['a sum'],"
                                "'steps':[{'stepId':'a','agentId':'calc','skill':'add',"
                                "'task':'add 2 and 3'}]}";

static const char pending_json[] = "{'goal':'add some numbers'}";

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

static void submit(struct engine_world *w, char ret_id[UUID_TEXT_LEN + 1])
{
    const struct submit_request request = {.plan = engine_world_doc(w, plan_json)};

    engine_world_submit(w, &request, ret_id);
}

static void a_submit_reads_nothing_back_that_it_has_in_hand(void **state)
{
    struct engine_world w;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;
    struct seen s;

    (void)state;
    engine_world_open(&w);
    submit(&w, id);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    assert_int_equal(engine_world_reads, 0);
    s = rows_of(&w);
    assert_string_equal(s.description, "adds two numbers"); /* the document was looked at */
    engine_world_close(&w);
}

/* The plan of a planner's answer, as dispatch makes it. */
static void make_planned(struct engine_world *w, struct new_revision *ret)
{
    const struct engine_options *opt = engine_options(w->engine);
    struct problem problems[8];
    struct problems list = {.at = problems, .cap = 8};
    struct plan_request request = {.plan = engine_world_doc(w, plan_json),
                                   .pending = engine_world_doc(w, pending_json),
                                   .defaults = &opt->defaults,
                                   .registry = engine_registry(w->engine)};
    struct plan *plan = NULL;
    struct buf document;
    struct bt_error err;

    buf_init(&document, LIMIT_STEP_BYTES);
    if (plan_read_request(&request, &w->arena, &plan, &list, &document, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(plan_resolve(plan, engine_registry(w->engine), engine_now(w->engine), &err),
                     BT_OK);
    assert_int_equal(revision_keep(w->engine, plan, &document, ret, &err), BT_OK);
    buf_done(&document);
}

static void a_planners_plan_is_recorded_without_reading_it_back(void **state)
{
    const struct submit_request request = {.goal = STR_LIT("add some numbers"),
                                           .planner = STR_LIT("agent:calc")};
    struct core_event ev = {.type = CORE_PLANNED};
    enum core_reject reject = REJECT_NONE;
    struct new_revision revision = {.plan = NULL};
    struct engine_world w;
    struct plan *before;
    struct open_plan *p;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;
    struct seen s;

    (void)state;
    engine_world_open(&w);
    engine_world_jobs = true;
    engine_world_submit(&w, &request, id);
    p = open_plan_by_id(w.engine, str_from(id));
    assert_non_null(p);
    before = p->plan;
    make_planned(&w, &revision);
    ev.run = p->run;
    CORE_EV(&ev, planned)->next = (struct core_new_plan){
        .plan = revision.plan, .block = revision.block, .document = revision.document};
    assert_int_equal(engine_revise(w.engine, &ev, &revision, &reject, &err), BT_OK);
    assert_int_equal(reject, REJECT_NONE);
    assert_ptr_equal(
        p->plan, CORE_EV(&ev, planned)->next.plan); /* taken over, and what was before given back */
    assert_ptr_equal(revision.plan, before);
    new_revision_done(&revision);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    assert_int_equal(engine_world_reads, 0);
    s = rows_of(&w);
    assert_string_equal(s.description, "adds two numbers");
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
        submit(&w, id);
        assert_non_null(open_plan_by_id(w.engine, str_from(id)));
    }
    /* No run is free: the plan stays the caller's. */
    twice.plan = plan_pack(&(struct plan){.revision = 1}, NULL);
    assert_non_null(twice.plan);
    twice.block = open_plan_block(twice.plan);
    CORE_EV(&ev, submit)->plan = twice.plan;
    CORE_EV(&ev, submit)->block = twice.block;
    assert_int_equal(engine_submit(w.engine, &ev, &twice, (struct doc){NULL, 0}, &reject, &err),
                     BT_OK);
    assert_int_equal(reject, REJECT_TOO_MANY_RUNS);
    assert_ptr_equal(twice.plan, CORE_EV(&ev, submit)->plan);
    open_plan_done(&twice);
    assert_int_equal(engine_end(w.engine, &err), BT_OK);
    engine_world_close(&w);
}

static bool dirty_at_end;
static uint64_t seq_at_end;

static enum bt_code end_turn(struct engine *engine, const struct open_plan *p,
                             const struct record *rec, struct str summary, size_t not_done,
                             struct bt_error *err)
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
    (void)not_done;
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
    submit(&w, id);
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

/* The verdicts of one cycle: 1024, and what more is asked for waits for the next. */
static void a_cycle_answers_so_many_conditions(void **state)
{
    (void)state;
    for (uint32_t n = 1024; n <= 1025; n++) {
        struct engine_world w;
        const struct core_cmd asked = {.type = CMD_CONDITION, .run = 999};
        engine_world_open(&w);
        for (uint32_t i = 0; i < n; i++) {
            engine_condition_asked(w.engine, &asked);
        }
        engine_conditions_answer(w.engine);
        assert_int_equal(engine_conditions_wait(w.engine), n > 1024);
        engine_conditions_answer(w.engine);
        assert_false(engine_conditions_wait(w.engine));
        engine_world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submit_reads_nothing_back_that_it_has_in_hand),
        cmocka_unit_test(a_planners_plan_is_recorded_without_reading_it_back),
        cmocka_unit_test(a_plan_that_was_taken_over_is_no_longer_the_submissions),
        cmocka_unit_test(a_cycle_answers_so_many_conditions),
        cmocka_unit_test(the_end_of_a_plan_is_passed_on_after_its_row_and_before_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
