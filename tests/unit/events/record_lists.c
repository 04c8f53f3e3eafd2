/* How much of a list and of a text an event has: each cap at N and at N + 1. */
#include "tests/unit/events/codec_bench.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/wire/doc.h"

/* A text of n bytes, without wide characters. */
static struct str text_of(size_t n)
{
    static char all[20000];

    memset(all, 'x', sizeof all);
    return (struct str){all, n};
}

static void generated(struct bench *b, struct msg_ev_plan_generated *ret)
{
    const struct record rec = {.type = REC_PLAN_GENERATED, .wall = 1, .step = STEP_NONE};
    const struct record_extra x = extra_of(b, &rec);
    struct bt_error err;

    encode(b, &rec, &x);
    arena_reset(&b->arena);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_generated, ret, &err),
              err);
}

static void few_steps_have_longer_tasks_than_many(void **state)
{
    static const struct {
        uint32_t steps;
        size_t task, told;
    } cases[] = {{1, 320, 320}, {6, 320, 320}, {6, 321, 320}, {6, 1, 1},
                 {7, 120, 120}, {7, 121, 120}, {7, 320, 120}};
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msg_ev_plan_generated ev;
        codec_plan_make(&b->p, cases[i].steps, 3, text_of(cases[i].task), 2);
        generated(b, &ev);
        assert_int_equal(ev.steps_n, cases[i].steps);
        for (uint32_t k = 0; k < ev.steps_n; k++) {
            assert_int_equal(ev.steps[k].task.len, cases[i].told);
            assert_int_equal(ev.steps[k].step_index, k);
            assert_true(str_eq(ev.steps[k].step_id, b->p.steps[k].step_id));
            assert_true(str_eq(ev.steps[k].agent_id, b->p.steps[k].agent_id));
        }
        assert_int_equal(ev.steps_truncated, cases[i].told < cases[i].task);
    }
}

/* A task that is cut in one step only. */
static void one_task_that_is_cut_is_enough_to_say_so(void **state)
{
    struct bench *b = *state;
    struct msg_ev_plan_generated ev;

    codec_plan_make(&b->p, 3, 3, text_of(5), 2);
    generated(b, &ev);
    assert_false(ev.steps_truncated);
    b->p.steps[1].task = text_of(321);
    generated(b, &ev);
    assert_true(ev.steps_truncated);
}

/* Three quarters as many, until they fit. */
static void a_list_of_steps_is_shortened_until_the_frame_fits(void **state)
{
    static const struct {
        uint32_t steps, told;
        size_t id_len, task;
    } cases[] = {
        {64, 15, 10, 7000}, {65, 15, 10, 7000}, {64, 48, 4, 1},     {65, 48, 4, 1},
        {36, 36, 4, 1},     {37, 37, 4, 1},     {150, 11, 64, 900}, {1, 1, 64, 7000},
    };
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msg_ev_plan_generated ev;
        codec_plan_make(&b->p, cases[i].steps, cases[i].id_len, text_of(cases[i].task), 3);
        generated(b, &ev);
        if (ev.steps_n != cases[i].told) {
            fail_msg("%u steps: %u are told", cases[i].steps, ev.steps_n);
        }
        assert_int_equal(ev.estimated_steps, cases[i].steps);
        assert_int_equal(ev.steps_truncated, ev.steps_n < cases[i].steps || cases[i].task > 320);
    }
}

/* A revision has its new steps; so many and all of them. */
static void a_revision_counts_the_steps_that_it_does_not_tell(void **state)
{
    struct bench *b = *state;
    const struct record rec = {
        REC_INIT(REPLAN_FINISHED, revision, .ok = true, .revision = 2, .result = {7, 900, 0}),
        .step = 1};
    struct record_extra x;
    struct msg_ev_replan_finished ev;
    struct bt_error err;

    codec_plan_make(&b->p, 150, 64, text_of(900), 3);
    for (uint32_t i = 50; i < 150; i++) {
        b->p.steps[i].revision = i % 2 == 0 ? 2 : 3;
    }
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_replan_finished, &ev, &err),
              err);
    assert_int_equal(ev.new_steps, 100);
    assert_int_equal(ev.steps_n, 15);
    assert_true(ev.steps_truncated);
    assert_int_equal(ev.steps[0].step_index, 50);
    assert_int_equal(ev.steps[14].step_index, 64);

    x.revised = NULL; /* its plan is not at hand */
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_replan_finished, &ev, &err),
              err);
    assert_int_equal(ev.steps_n, 0);
    assert_int_equal(ev.new_steps, 0);
}

/* Half as long, until they fit; ids are never cut. */
static void texts_are_halved_until_the_frame_fits(void **state)
{
    struct bench *b = *state;
    static char wide[LIMIT_ID_BYTES];
    const struct str id = {wide, sizeof wide};
    struct msg_ev_plan_step_completed ev;
    struct bt_error err;

    memset(wide, 'w', sizeof wide);
    codec_plan_make(&b->p, 3, LIMIT_ID_BYTES, text_of(8), 2);
    struct record rec = {
        REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED, .result = {7, 900, 0}),
        .step = 1, .text = text_of(5000)};
    struct record_extra x = extra_of(b, &rec);
    x.preview = text_of(5000);
    encode(b, &rec, &x);
    assert_ok(
        msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_step_completed, &ev, &err),
        err);
    assert_int_equal(ev.error.len, 2048); /* 2048 and 1024, and the rest: 4096 are enough */
    assert_int_equal(ev.result.len, 1024);
    b->p.plan.session_id = id;
    b->p.steps[1].skill = id;
    rec.agent = 1;
    b->p.steps[1].agent_id = id;
    REC(&rec, step_completed)->error_class = CLASS_VERIFICATION_FAILED;
    REC(&rec, step_completed)->instance = uuid_new();
    rec.usage = (struct usage){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    REC(&rec, step_completed)->duration_ms = UINT64_MAX;
    x.details = (struct blob_ref){INT64_MAX, UINT64_MAX, 0, 0};
    x.state = x.details;
    REC(&rec, step_completed)->result = (struct blob_ref){INT64_MAX, UINT64_MAX, 1, UINT32_MAX};
    REC(&rec, step_completed)->epoch = UINT64_MAX;
    REC(&rec, step_completed)->reason = REASON_APPROVAL_TIMEOUT;
    REC(&rec, step_completed)->stop = STOP_ACKNOWLEDGED;
    encode(b, &rec, &x);
    assert_ok(
        msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_step_completed, &ev, &err),
        err);
    assert_int_equal(ev.error.len, 1024);
    assert_int_equal(ev.result.len, 1024);
    assert_int_equal(ev.skill.len, LIMIT_ID_BYTES);
}

static void a_document_is_whole_or_left_out(void **state)
{
    static const size_t lens[] = {1, 1024, 1025};
    struct bench *b = *state;

    codec_plan_make(&b->p, 3, 3, text_of(8), 2);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        uint8_t bytes[1025] = {1};
        struct record asks = {.type = REC_STEP_WAITING, .step = 1};
        struct record news = {.type = REC_STEP_PROGRESS, .step = 1};
        struct record_extra x = extra_of(b, &asks);
        struct record got;
        size_t want;
        if (lens[i] > 1) { /* a text: a head of three bytes, and itself */
            bytes[0] = 0xda;
            bytes[1] = (uint8_t)((lens[i] - 3) >> 8);
            bytes[2] = (uint8_t)(lens[i] - 3);
            memset(bytes + 3, 'x', lens[i] - 3);
        }
        REC(&asks, waiting)->serial = 1;
        REC(&asks, waiting)->data = (struct doc){bytes, lens[i]};
        REC(&news, progress)->data = (struct doc){bytes, lens[i]};
        want = lens[i] > 1024 ? 0 : lens[i];
        asks.text = news.text = text_of(5000);
        encode(b, &asks, &x);
        got = decode(b, &asks, 1, 1);
        assert_int_equal(REC(&got, waiting)->data.len, want);
        assert_true(got.text.len == 2048 || (want == 1024 && got.text.len == 1024));
        encode(b, &news, &x);
        got = decode(b, &news, 1, 1);
        assert_int_equal(REC(&got, progress)->data.len, want);
        assert_int_equal(got.text.len, 1024);
    }
}

static void a_gate_tells_32_of_what_is_missing(void **state)
{
    struct bench *b = *state;

    codec_plan_make(&b->p, 1, 3, text_of(8), 1);
    for (uint32_t n = 30; n <= 34; n++) {
        struct record rec = {.type = REC_GATE_FAILED, .step = 0};
        const struct record_extra x = extra_of(b, &rec);
        struct msg_ev_quality_gate_failed ev;
        struct buf data;
        struct bt_error err;
        buf_init(&data, 4096);
        doc_put_array(&data, n + 1);
        doc_put_u64(&data, 7); /* no text: it does not count */
        for (uint32_t i = 0; i < n; i++) {
            doc_put_cstr(&data, i == 0 ? "first" : "y");
        }
        REC(&rec, gate)->data = doc_from_buf(&data);
        encode(b, &rec, &x);
        assert_ok(
            msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_quality_gate_failed, &ev, &err),
            err);
        assert_int_equal(ev.missing_n, n < 32 ? n : 32);
        assert_true(str_is(ev.missing[0], "first"));
        assert_true(str_is(ev.missing[ev.missing_n - 1], "y"));
        buf_done(&data);
    }
}

/* Any one of what is known of a person. */
static void a_decision_says_who_made_it(void **state)
{
    const struct str x = STR_LIT("x");
    const struct {
        struct actor by;
        bool told;
    } cases[] = {
        {{.user = x}, true}, {{.via = x}, true},  {{.address = x}, true},
        {{.id = x}, true},   {{.host = x}, true}, {{.user = {NULL, 0}}, false},
    };
    struct bench *b = *state;

    codec_plan_make(&b->p, 1, 3, text_of(8), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct record rec = {
            REC_INIT(REVIEW_DECIDED, decided, .serial = 1, .by = cases[i].by), .step = 0};
        const struct record_extra extra = extra_of(b, &rec);
        struct msg_ev_review_decided ev;
        struct bt_error err;
        encode(b, &rec, &extra);
        assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_review_decided, &ev, &err),
                  err);
        assert_int_equal(msg_has(&ev, ev_review_decided, by), cases[i].told);
    }
}

static void a_wait_says_when_it_ends(void **state)
{
    static const struct plan_wait time = {.what = WAIT_FOR_TIME, .ms = 300};
    static const struct plan_wait date = {.what = WAIT_FOR_DATE, .until = 1700000000300};
    static const struct plan_wait signal = {.what = WAIT_FOR_SIGNAL, .signal = {"go", 2}};
    static const struct {
        const struct plan_wait *wait;
        msec delay;
        const char *kind, *until, *signal;
    } cases[] = {
        {NULL, 0, "timer", "1970-01-01T00:00:05.000Z", ""},
        {&time, 0, "timer", "1970-01-01T00:00:05.000Z", ""},
        {&time, 1, "timer", "1970-01-01T00:00:05.001Z", ""},
        {&date, 0, "until", "2023-11-14T22:13:20.300Z", ""},
        {&date, 700, "until", "2023-11-14T22:13:20.300Z", ""},
        {&signal, 0, "signal", "", "go"}, /* it waits for ever */
        {&signal, 1, "signal", "1970-01-01T00:00:05.001Z", "go"},
    };
    struct bench *b = *state;

    codec_plan_make(&b->p, 2, 3, text_of(8), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct record rec = {REC_INIT(WAIT_STARTED, timed, .delay_ms = cases[i].delay),
                                   .step = 1, .wall = 5000};
        const struct record_extra x = extra_of(b, &rec);
        struct msg_ev_wait_started ev;
        struct bt_error err;
        b->p.steps[1].wait = cases[i].wait;
        encode(b, &rec, &x);
        assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_wait_started, &ev, &err),
                  err);
        assert_true(str_is(ev.kind, cases[i].kind) && str_is(ev.until, cases[i].until));
        assert_true(str_is(ev.signal, cases[i].signal) && ev.delay_ms == cases[i].delay);
    }
}

/* A pause and its end name a credential when somebody asked for them; a sign-off has its review. */
static void a_pause_says_whose_it_is(void **state)
{
    struct bench *b = *state;

    codec_plan_make(&b->p, 2, 3, text_of(8), 1);
    for (int reason = 0; reason < PAUSE_REASON_COUNT; reason++) {
        for (size_t by = 0; by < 2; by++) {
            struct record rec = {.type = REC_PLAN_PAUSED, .step = STEP_NONE};
            struct record_extra x = extra_of(b, &rec);
            const bool told = reason == PAUSE_REQUESTED && by > 0;
            const bool asks = reason == PAUSE_SIGNOFF || reason == PAUSE_PLANNING;
            struct msg_ev_plan_paused paused;
            struct msg_ev_plan_resumed resumed;
            struct bt_error err;
            *REC(&rec, pause) =
                (struct rec_pause){.reason = (enum pause_reason)reason, .serial = 4, .revision = 5};
            x.by = text_of(by);
            encode(b, &rec, &x);
            assert_ok(
                msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_paused, &paused, &err),
                err);
            assert_int_equal(msg_has(&paused, ev_plan_paused, by), told);
            assert_int_equal(paused.by.id.len, told ? 1 : 0);
            assert_int_equal(paused.review_id.len, asks ? UUID_TEXT_LEN + 3 : 0);
            assert_int_equal(paused.revision, asks ? 5 : 0);
            rec.type = REC_PLAN_RESUMED;
            encode(b, &rec, &x);
            assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_resumed, &resumed,
                                   &err),
                      err);
            assert_int_equal(msg_has(&resumed, ev_plan_resumed, by), told);
            assert_int_equal(resumed.by.id.len, told ? 1 : 0);
        }
    }
}

/* ---- the end of a plan ---- */

static struct run *run_of_plan(struct plan *plan)
{
    plan->replan.agent_id = STR_LIT("calc"); /* it may be replanned, and has phases */

    struct run *run;
    void *mem = calloc(1, run_size(plan));

    assert_non_null(mem);
    run = run_init(mem, plan);
    run->completed = 2;
    run->failed = 3;
    run->skipped = 4;
    run->cancelled = 5;
    run->superseded = 6;
    run->usage = (struct usage){10, 11, 12, 13};
    run->planning_usage = (struct usage){20, 21, 22, 23};
    run->revision = 7;
    run->replans = 8;
    run->fallbacks = 9;
    struct run_phases *phases = (struct run_phases *)(uintptr_t)run_phases(run);
    phases->replanning = (struct usage){30, 31, 32, 33};
    phases->synthesis = (struct usage){40, 41, 42, 43};
    return run;
}

static void usage_is(const struct msg_usage *u, uint64_t n)
{
    assert_int_equal(u->input_tokens, n);
    assert_int_equal(u->output_tokens, n + 1);
    assert_int_equal(u->cached_tokens, n + 2);
    assert_int_equal(u->cost_micros, n + 3);
}

static void the_end_of_a_plan_has_its_sums(void **state)
{
    struct bench *b = *state;
    const struct record rec = {REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_FAILED,
                                        .outcome = OUTCOME_FAILED, .failure = PLAN_FAILURE_STEP),
                               .step = 1, .text = STR_LIT("Step execution timeout")};
    struct record fallback = {.type = REC_FALLBACK_USED, .step = 1};
    struct record_extra x;
    struct msg_ev_plan_completed ev;
    struct msg_ev_fallback_used used;
    struct bt_error err;

    codec_plan_make(&b->p, 40, 3, text_of(8), 1);
    b->p.steps[1].rules->policy.timeout_ms = 60000;
    x = extra_of(b, &rec);
    struct run *run = run_of_plan(&b->p.plan);
    x.run = run;
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_completed, &ev, &err),
              err);
    assert_int_equal(ev.counts.total, 34);
    assert_int_equal(ev.counts.completed, 2);
    assert_int_equal(ev.counts.failed, 3);
    assert_int_equal(ev.counts.skipped, 4);
    assert_int_equal(ev.counts.cancelled, 5);
    assert_int_equal(ev.counts.superseded, 6);
    usage_is(&ev.usage, 10);
    usage_is(&ev.usage_planning, 20);
    usage_is(&ev.usage_replanning, 30);
    usage_is(&ev.usage_synthesis, 40);
    assert_true(ev.revision == 7 && ev.replans == 8 && ev.fallbacks == 9);
    const struct record back = decode(b, &rec, 1, 1);
    assert_memory_equal(&back.usage, &run->usage, sizeof back.usage);
    assert_true(str_is(ev.failure_reason, "Step 2 failed: Step execution timeout"));
    assert_true(str_is(ev.hint, "no result after 60 s (timeoutMs: 60000); set timeoutMs of the "
                                "step, or stepTimeoutMs of the policy"));
    assert_false(ev.dry_run);
    b->p.plan.dry_run = true;
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_completed, &ev, &err),
              err);
    assert_true(ev.dry_run);
    encode(b, &fallback, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_fallback_used, &used, &err),
              err);
    assert_int_equal(used.fallbacks_used, 9);
    free(run);
}

/* The first 16 of them; of more their number, too. */
static void the_end_of_a_plan_names_what_is_not_whole(void **state)
{
    struct bench *b = *state;
    const struct record rec = {REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_COMPLETED,
                                        .outcome = OUTCOME_SUCCESS),
                               .step = STEP_NONE};
    uint32_t readers[40];

    codec_plan_make(&b->p, 40, 3, text_of(8), 1);
    struct run *run = run_of_plan(&b->p.plan);
    for (uint32_t i = 0; i < 40; i++) {
        readers[i] = i;
    }
    for (uint32_t n = 0; n <= 18; n += n == 1 ? 14 : 1) { /* 0, 1, 15 to 18 */
        struct record_extra x = extra_of(b, &rec);
        struct msg_ev_plan_completed ev;
        struct bt_error err;
        x.run = run;
        for (uint32_t i = 0; i < 40; i++) { /* results of the last steps, readers at the first */
            run->steps[i].status = STEP_COMPLETED;
            run->steps[i].result = (struct blob_ref){i + 1, 5, i >= 40 - n, 5};
        }
        x.readers = (struct aggregate_readers){readers, n > 0 ? n - 1 : 0};
        encode(b, &rec, &x);
        arena_reset(&b->arena);
        assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_completed, &ev, &err),
                  err);
        assert_int_equal(ev.truncated_steps_n, n < 16 ? n : 16);
        assert_int_equal(ev.truncated_steps_total, n > 16 ? n : 0);
        assert_int_equal(ev.context_truncated_steps_n, x.readers.n < 16 ? x.readers.n : 16);
        assert_int_equal(ev.context_truncated_steps_total, x.readers.n > 16 ? x.readers.n : 0);
        for (uint32_t i = 0; i < ev.truncated_steps_n; i++) {
            assert_true(str_eq(ev.truncated_steps[i], b->p.steps[40 - n + i].step_id));
        }
        for (uint32_t i = 0; i < ev.context_truncated_steps_n; i++) {
            assert_true(str_eq(ev.context_truncated_steps[i], b->p.steps[i].step_id));
        }
    }
    free(run);
}

/* What an encoder makes is made once more for each try. */
static void a_frame_that_is_made_again_has_its_sentences_once(void **state)
{
    struct bench *b = *state;
    struct record end = {REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_FAILED,
                                  .outcome = OUTCOME_FAILED, .failure = PLAN_FAILURE_STEP),
                         .step = 0, .text = STR_LIT("Step execution timeout")};
    struct record asks = {REC_INIT(STEP_WAITING, waiting, .serial = 4), .step = 1};
    struct record_extra x;
    struct msg_ev_plan_completed ev;
    struct bt_error err;
    uint8_t bytes[1024] = {0xda, 0x03, 0xfd}; /* a text of 1021 bytes */
    uint32_t readers[16];

    memset(bytes + 3, 'x', sizeof bytes - 3);
    codec_plan_make(&b->p, 40, LIMIT_ID_BYTES, text_of(8), 1);
    struct run *run = run_of_plan(&b->p.plan);
    for (uint32_t i = 0; i < 16; i++) {
        readers[i] = i;
        run->steps[i].status = STEP_COMPLETED;
        run->steps[i].result = (struct blob_ref){i + 1, 5, 1, 5};
    }
    x = extra_of(b, &end);
    x.run = run;
    x.preview = text_of(5000);
    x.readers = (struct aggregate_readers){readers, 16};
    encode(b, &end, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_completed, &ev, &err),
              err);
    assert_int_equal(ev.summary.len, 512); /* it was made again */
    assert_true(str_is(ev.failure_reason, "Step 1 failed: Step execution timeout"));
    assert_true(str_is(ev.hint, "no result after 5 s (timeoutMs: 5000); set timeoutMs of the step, "
                                "or stepTimeoutMs of the policy"));
    x = extra_of(b, &asks);
    asks.text = text_of(5000);
    b->p.plan.session_id = b->p.steps[1].agent_id = b->p.steps[1].step_id;
    asks.attempt = 100;
    REC(&asks, waiting)->data = (struct doc){bytes, sizeof bytes};
    REC(&asks, waiting)->error_class = CLASS_VERIFICATION_FAILED;
    REC(&asks, waiting)->delay_ms = UINT64_MAX;
    asks.usage = (struct usage){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    x.details = (struct blob_ref){INT64_MAX, UINT64_MAX, 0, 0};
    encode(b, &asks, &x);
    const struct record got = decode(b, &asks, 1, 1);
    assert_int_equal(REC(&got, waiting)->serial, 4);
    assert_int_equal(REC(&got, waiting)->data.len, sizeof bytes);
    free(run);
}

static void the_first_result_of_a_context_counts(void **state)
{
    struct bench *b = *state;
    const struct record rec = {.type = REC_STEP_STARTED, .step = 1};
    const struct context_pick picks[] = {{.step = 0, .bytes = 69, .whole = 70}};
    struct record_extra x = extra_of(b, &rec);
    struct record got;

    codec_plan_make(&b->p, 2, 3, text_of(8), 1);
    x.context = picks;
    x.context_n = 1;
    assert_true(record_context_truncated(&x));
    encode(b, &rec, &x);
    got = decode(b, &rec, 1, 1);
    assert_true(REC(&got, assigned)->context_truncated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(few_steps_have_longer_tasks_than_many),
        TEST(one_task_that_is_cut_is_enough_to_say_so),
        TEST(a_list_of_steps_is_shortened_until_the_frame_fits),
        TEST(a_revision_counts_the_steps_that_it_does_not_tell),
        TEST(texts_are_halved_until_the_frame_fits),
        TEST(a_document_is_whole_or_left_out),
        TEST(a_gate_tells_32_of_what_is_missing),
        TEST(a_decision_says_who_made_it),
        TEST(a_wait_says_when_it_ends),
        TEST(a_pause_says_whose_it_is),
        TEST(the_end_of_a_plan_has_its_sums),
        TEST(the_end_of_a_plan_names_what_is_not_whole),
        TEST(a_frame_that_is_made_again_has_its_sentences_once),
        TEST(the_first_result_of_a_context_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
