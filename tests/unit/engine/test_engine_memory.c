/* An engine that cannot have its memory, and one whose submissions the journal refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/suspect.h"
#include "supervisor/journal/port.h"
#include "tests/support/memory.h"
#include "tests/support/memory_journal/memory_journal.h"
#include "tests/unit/engine/engine_fixture.h"

static void an_engine_without_memory_is_none_and_keeps_nothing(void **state)
{
    static const struct engine_rule rules[] = {
        {.name = "calc", .n = 5, .per_ms = 1000},
        {.name = "other", .n = 1, .per_ms = 1000},
        {.name = "key", .of_key = true, .max = 1, .n = 2, .per_ms = 1000}};
    const struct engine_options opt = {.state_dir = "/nowhere",
                                       .control_url = "tcp://127.0.0.1:0",
                                       .events_url = "tcp://127.0.0.1:0",
                                       .defaults = plan_defaults_builtin(),
                                       .planner = "keyword",
                                       .heartbeat_ms = 1000,
                                       .lease_ms = 3000,
                                       .plans_max = 8,
                                       .agents_max = 8,
                                       .instances_max = 8,
                                       .result_max = LIMIT_RESULT_BYTES,
                                       .rules = rules,
                                       .n_rules = 3};
    struct journal *journal;
    struct link *link;
    struct bt_error err;
    bool failed = true;
    long failures = 0;

    (void)state;
    assert_int_equal(memory_journal_open(&journal, &err), BT_OK);
    for (long i = 0; failed && i < 100; i++) {
        struct engine *engine = (struct engine *)(void *)&err;
        const long before = memory_pieces;
        assert_int_equal(link_new(256, &link, &err), BT_OK);
        err.msg[0] = 0;
        memory_left = i;
        const enum bt_code code = engine_new(&opt, journal, link, &engine, &err);
        failed = memory_left < 0;
        memory_left = -1;
        failures += failed ? 1 : 0;
        if (failed) {
            assert_int_equal(code, BT_NOMEM);
            assert_int_equal(err.code, BT_NOMEM);
            assert_int_not_equal(err.msg[0], 0);
            assert_null(engine);
        } else {
            assert_int_equal(code, BT_OK);
            engine_free(engine);
        }
        link_free(link);
        assert_int_equal(memory_pieces, before);
    }
    assert_false(failed);
    assert_true(failures >= 3);
    journal_close(journal);
}

static enum bt_code refused_with;

static enum bt_code plan_refused(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                                 struct bt_error *err)
{
    (void)j;
    (void)p;
    (void)ret_ix;
    return err_set(err, refused_with, "the plan is not taken");
}

/* A key that was used before is the sender's matter; any other failure of a write is the end. */
static void a_plan_whose_key_is_taken_is_refused_and_the_engine_goes_on(void **state)
{
    static const enum bt_code codes[] = {BT_CONFLICT, BT_IO};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct submission_start how = {.body_hash = 1};
        char id[UUID_TEXT_LEN + 1];
        struct submission d;
        struct journal_ops odd;
        const struct journal_ops *all;
        struct engine_world w;
        struct bt_error err;
        engine_world_open(&w);
        const struct submit_request request = {
            .plan = engine_world_doc(&w, "{'steps':[{'stepId':'a','agentId':'calc','task':'1'}]}")};
        assert_int_equal(submission_init(&d, &err), BT_OK);
        assert_int_equal(submission_make(w.engine, &request, &d, &err), BT_OK);
        all = w.journal->ops;
        odd = *all;
        odd.plan_add = plan_refused;
        w.journal->ops = &odd;
        refused_with = codes[i];
        assert_int_equal(submission_start(w.engine, &how, &d, id, &err), codes[i]);
        assert_int_equal(w.engine->failed, codes[i] != BT_CONFLICT);
        w.journal->ops = all;
        submission_done(&d);
        engine_world_close(&w);
    }
}

/* Jobs of a plan are its own; those of a session are suspects by themselves. */
static void a_job_is_under_the_suspicion_of_its_plan(void **state)
{
    static const struct {
        enum job_kind kind;
        bool of_plan;
    } rows[] = {{JOB_PLANNING, true},
                {JOB_SYNTHESIS, true},
                {JOB_CONVERSE, false},
                {JOB_SUMMARY, false},
                {JOB_COMPENSATION, false}};
    const struct uuid own = {{1}};
    const struct uuid plan = {{0x01, 0x90, 0xF3, 0xC2, 0x7A, 0x1B, 0x7C, 0x3D, 0x9E, 0x4F, 1}};

    (void)state;
    assert_true(uuid_eq(suspect_of(own, NULL), own));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct job job = {.kind = rows[i].kind};
        char text[UUID_TEXT_LEN + 1];
        uuid_format(plan, text);
        (void)snprintf(job.of, sizeof job.of, "%s", text);
        assert_true(uuid_eq(suspect_of(own, &job), rows[i].of_plan ? plan : own));
        (void)snprintf(job.of, sizeof job.of, "no id");
        assert_true(uuid_eq(suspect_of(own, &job), own));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_without_memory_is_none_and_keeps_nothing),
        cmocka_unit_test(a_plan_whose_key_is_taken_is_refused_and_the_engine_goes_on),
        cmocka_unit_test(a_job_is_under_the_suspicion_of_its_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
