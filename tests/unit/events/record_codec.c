/* What comes back from a row is what run_apply needs, and no frame is ever over its cap. */
#include "tests/unit/events/codec_bench.h"

#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"
#include "tests/support/random.h"
#include "tests/unit/core/run/flat_record.h"

static struct str random_text(struct rng *r)
{
    static const uint32_t most[] = {1, 40, 3000, 19000};
    return (struct str){long_text, rng_below(r, most[rng_below(r, 4)])};
}

static struct usage random_usage(struct rng *r)
{
    return (struct usage){rng_next(r) >> 1, rng_next(r) >> 20, rng_below(r, 2), rng_next(r) >> 1};
}

static bool step_is_optional(enum record_type t)
{
    return t == REC_REVIEW_DECIDED || t == REC_PLAN_MODIFIED || t == REC_RESULT_REJECTED ||
           t == REC_PLAN_COMPLETED || t == REC_SYNTHESIS_STARTED || t == REC_COMPENSATION_STARTED;
}

static bool never_about_a_step(enum record_type t)
{
    return t == REC_PLAN_GENERATED || t == REC_PLAN_STARTED || t == REC_PLAN_CANCELLING ||
           t == REC_PLAN_PAUSED || t == REC_PLAN_RESUMED || t == REC_PLANNING_STARTED ||
           t == REC_PLANNING_RETRY || t == REC_PLANNING_FAILED || t == REC_TEXT_DELTA ||
           t == REC_SYNTHESIS_RETRY || t == REC_SYNTHESIS_FINISHED || t == REC_REVIEW_VOIDED ||
           t == REC_SIGNAL_RECEIVED || t == REC_COMPENSATION_FINISHED;
}

static struct record random_record(struct rng *r, const struct plan *plan, enum record_type type)
{
    const bool none = never_about_a_step(type) || (step_is_optional(type) && rng_below(r, 2) == 0);
    struct flat_record rec = {
        .type = type,
        .now = 1000000 + rng_below(r, 1000),
        .wall = 1700000000000 + rng_below(r, 100000),
        .step = none ? STEP_NONE : rng_below(r, plan->n_steps),
        .attempt = rng_below(r, LIMIT_ATTEMPTS + 1),
        .agent = rng_below(r, CODEC_AGENTS),
        .from_agent = rng_below(r, 2) == 0 ? AGENT_SUPERVISOR : rng_below(r, CODEC_AGENTS),
        .epoch = rng_next(r),
        .status = (enum step_status)(STEP_COMPLETED + rng_below(r, 4)),
        .reason = (enum step_reason)rng_below(r, STEP_REASON_COUNT),
        .error_class = (enum err_class)rng_below(r, CLASS_COUNT),
        .plan_status = (enum plan_status)(PLAN_COMPLETED + rng_below(r, 3)),
        .outcome = (enum plan_outcome)(1 + rng_below(r, PLAN_OUTCOME_COUNT - 1)),
        .failure = (enum plan_failure)rng_below(r, PLAN_FAILURE_COUNT),
        .review = (enum review_kind)rng_below(r, REVIEW_KIND_COUNT),
        .decision = (enum review_decision)rng_below(r, DECISION_COUNT),
        .phase = (enum step_phase)rng_below(r, STEP_PHASE_COUNT),
        .pause = (enum pause_reason)rng_below(r, PAUSE_REASON_COUNT),
        .modify = (enum modify_kind)rng_below(r, MODIFY_KIND_COUNT),
        .handoff = (enum handoff_kind)rng_below(r, HANDOFF_KIND_COUNT),
        .fallback = (enum fallback_action)rng_below(r, FALLBACK_ACTION_COUNT),
        .asked = rng_below(r, 2) == 1,
        .stop = (enum step_stop)rng_below(r, STEP_STOP_COUNT),
        .doubt = rng_below(r, 2) == 0,
        .ok = rng_below(r, 2) == 0,
        .revision = 1 + rng_below(r, LIMIT_REVISIONS),
        .serial = 1 + rng_below(r, 999999999),
        .delay_ms = rng_next(r) >> rng_below(r, 64),
        .duration_ms = rng_next(r) >> rng_below(r, 64),
        .usage = random_usage(r),
        .percent = rng_below(r, 100) / 100.0,
        .n = rng_next(r),
        .text = random_text(r),
    };
    if (rng_below(r, 4) != 0) {
        rec.result = (struct blob_ref){.id = 1 + (rng_next(r) >> 2), .len = rng_next(r)};
        rec.result.truncated =
            (type == REC_STEP_COMPLETED || type == REC_STEP_CHECKING) && rng_below(r, 2) == 0;
        for (size_t i = 0; i < sizeof rec.instance.b; i++) {
            rec.instance.b[i] = (uint8_t)rng_next(r);
        }
    }
    return record_of_flat(&rec);
}

/* The fields of records that run_apply, run_revise and a recovery read, beside type, time and step.
 */
enum {
    ATTEMPT = 1,
    AGENT = 2,
    INSTANCE = 4, /* and epoch */
    PHASE = 8,
    USAGE = 16,
    DELAY = 32,
    CLASS = 64,
    RESULT = 128,
    REVISION = 256,
    FROM = 512,
    TEXT = 1024, /* as much of it as fits */
    NUMBER = 2048,
    TRANSCRIPT = 8192,
    ROUND = 16384, /* of 32 bits */
    END = 4096,    /* how the plan ends, or will */
};

static const uint32_t READ[REC_COUNT] = {
    [REC_PLANNING_STARTED] = ATTEMPT | DELAY,
    [REC_PLANNING_RETRY] = ATTEMPT | NUMBER | RESULT | USAGE | TEXT,
    [REC_PLANNING_FAILED] = ATTEMPT | USAGE | TEXT,
    [REC_PLAN_GENERATED] = RESULT | USAGE,
    [REC_STEP_STARTED] = ATTEMPT | INSTANCE | AGENT,
    [REC_HANDOFF] = ATTEMPT | AGENT | FROM | USAGE,
    [REC_STEP_PROGRESS] = ATTEMPT | TEXT,
    [REC_STEP_RETRY] = ATTEMPT | AGENT | DELAY | CLASS | USAGE | TEXT,
    [REC_STEP_WAITING] = ATTEMPT | AGENT | DELAY | CLASS | USAGE | TEXT,
    [REC_REVIEW_DECIDED] = RESULT | TEXT,
    [REC_VERIFICATION_FAILED] = ATTEMPT | AGENT | USAGE | TEXT,
    [REC_GATE_STARTED] = ATTEMPT | DELAY,
    [REC_GATE_PASSED] = ATTEMPT | USAGE | TEXT,
    [REC_GATE_FAILED] = ATTEMPT | USAGE | TEXT,
    [REC_GATE_ERROR] = ATTEMPT | USAGE | TEXT,
    [REC_FALLBACK_USED] = ATTEMPT | DELAY | CLASS | AGENT | USAGE | TEXT,
    [REC_REPLAN_STARTED] = ATTEMPT | DELAY | CLASS | USAGE | REVISION | TEXT,
    [REC_REPLAN_FINISHED] = ATTEMPT | REVISION | RESULT | USAGE | TEXT,
    [REC_STEP_COMPLETED] = ATTEMPT | INSTANCE | AGENT | CLASS | RESULT | USAGE | TEXT,
    [REC_PLAN_MODIFIED] = ATTEMPT | REVISION | RESULT | USAGE | TEXT,
    [REC_PLAN_PAUSED] = DELAY | TEXT,
    [REC_PLAN_RESUMED] = TEXT,
    [REC_PLAN_CANCELLING] = DELAY | TEXT,
    [REC_SYNTHESIS_STARTED] = DELAY | END | TEXT,
    [REC_TEXT_DELTA] = NUMBER | TEXT,
    [REC_SYNTHESIS_RETRY] = REVISION | RESULT | USAGE | TEXT,
    [REC_SYNTHESIS_FINISHED] = RESULT | USAGE | TEXT,
    [REC_COMPENSATION_STARTED] = END | TEXT,
    [REC_COMPENSATION_FINISHED] = ROUND | USAGE | TEXT,
    [REC_PLAN_COMPLETED] = END,
    [REC_STEP_ASSIGNED] = ATTEMPT | INSTANCE | AGENT | PHASE,
    [REC_STEP_CHECKING] = ATTEMPT | AGENT | PHASE | DELAY | RESULT | USAGE,
    [REC_STEP_CONDITION] = TEXT,
    [REC_STEP_CHILD] = ATTEMPT | ROUND,
    [REC_STEP_ROUND] = ATTEMPT | ROUND | DELAY | RESULT | USAGE | TEXT,
    [REC_STEP_CALLS] = ATTEMPT | ROUND | AGENT | TRANSCRIPT | USAGE,
    [REC_STEP_TURN] = ATTEMPT | ROUND | AGENT | TRANSCRIPT | USAGE,
    [REC_WAIT_STARTED] = DELAY,
    [REC_SIGNAL_RECEIVED] = TEXT,
    [REC_RESULT_REJECTED] = ATTEMPT | INSTANCE | PHASE | USAGE | TEXT,
    [REC_STEP_UNKNOWN] = ATTEMPT | DELAY,
};

static void assert_same_text(const struct flat_record *want, const struct flat_record *got)
{
    assert_true(got->text.len <= want->text.len);
    assert_true(got->text.len > 0 || want->text.len == 0);
    assert_memory_equal(got->text.ptr, want->text.ptr, got->text.len);
}

static void assert_same_numbers(const struct flat_record *want, const struct flat_record *got,
                                uint32_t what)
{
    assert_true((what & ATTEMPT) == 0 || got->attempt == want->attempt);
    assert_true((what & AGENT) == 0 || got->agent == want->agent);
    assert_true((what & INSTANCE) == 0 ||
                (uuid_eq(got->instance, want->instance) && got->epoch == want->epoch));
    assert_true((what & PHASE) == 0 || got->phase == want->phase);
    assert_true((what & USAGE) == 0 || memcmp(&got->usage, &want->usage, sizeof got->usage) == 0);
    assert_true((what & DELAY) == 0 || got->delay_ms == want->delay_ms);
    assert_true((what & CLASS) == 0 || got->error_class == want->error_class);
    assert_true((what & RESULT) == 0 ||
                (got->result.id == want->result.id && got->result.len == want->result.len &&
                 got->result.truncated == want->result.truncated));
    assert_true((what & TRANSCRIPT) == 0 ||
                (got->result.id == want->result.id && got->result.len == want->result.len &&
                 got->serial == want->serial));
    assert_true((what & REVISION) == 0 || got->revision == want->revision);
    assert_true((what & FROM) == 0 || got->from_agent == want->from_agent);
    assert_true((what & NUMBER) == 0 || got->n == want->n);
    assert_true((what & ROUND) == 0 || got->n == (uint32_t)want->n);
    assert_true((what & END) == 0 ||
                (got->plan_status == want->plan_status && got->outcome == want->outcome &&
                 got->failure == want->failure));
}

/* Exactly the fields that run_apply reads, and time. */
static void assert_same(const struct record *wanted, const struct record *gotten)
{
    const struct flat_record wanted_flat = flat_record(wanted);
    const struct flat_record gotten_flat = flat_record(gotten);
    const struct flat_record *want = &wanted_flat;
    const struct flat_record *got = &gotten_flat;
    const enum record_type t = want->type;

    assert_int_equal(got->type, t);
    assert_int_equal(got->now, want->now);
    assert_int_equal(got->wall, want->wall);
    assert_int_equal(got->step, want->step);
    assert_same_numbers(want, got, READ[t]);
    if ((READ[t] & TEXT) != 0 || (t == REC_HANDOFF && want->handoff == HANDOFF_AGENT)) {
        assert_same_text(want, got);
    }
    assert_true((t != REC_SIGNAL_RECEIVED && t != REC_STEP_COMPLETED) ||
                (got->serial == want->serial && got->result.id == want->result.id &&
                 got->result.len == want->result.len));
    assert_true(t != REC_HANDOFF || got->handoff == want->handoff);
    assert_true(t != REC_STEP_WAITING || got->review == want->review);
    assert_true(t != REC_FALLBACK_USED || got->fallback == want->fallback);
    assert_true((t != REC_FALLBACK_USED && t != REC_STEP_RETRY) || got->asked == want->asked);
    assert_true((t != REC_REPLAN_FINISHED && t != REC_SYNTHESIS_FINISHED) || got->ok == want->ok);
    assert_true(t != REC_COMPENSATION_FINISHED ||
                (got->ok == want->ok && got->serial == want->serial));
    assert_true(t != REC_PLANNING_FAILED || got->failure == want->failure);
    assert_true(t != REC_PLAN_MODIFIED || got->modify == want->modify);
    assert_true((t != REC_PLAN_PAUSED && t != REC_PLAN_RESUMED) || got->pause == want->pause);
    if (t == REC_REVIEW_DECIDED) {
        assert_int_equal(got->decision, want->decision);
        assert_int_equal(got->review, want->review);
        assert_int_equal(got->attempt, want->attempt);
        assert_true(got->n == want->n); /* the digest */
    }
    if (t == REC_REVIEW_DECIDED || t == REC_STEP_WAITING || t == REC_REVIEW_VOIDED ||
        (t == REC_PLAN_PAUSED && (want->pause == PAUSE_SIGNOFF || want->pause == PAUSE_PLANNING))) {
        assert_int_equal(got->serial, want->serial);
        assert_int_equal(t != REC_STEP_WAITING ? got->revision : 0,
                         t != REC_STEP_WAITING ? want->revision : 0);
    }
    if (t == REC_STEP_COMPLETED) {
        assert_int_equal(got->status, want->status);
        assert_int_equal(got->reason, want->reason);
        assert_int_equal(got->stop, want->stop);
        assert_int_equal(got->doubt, want->doubt);
        assert_true(got->duration_ms == want->duration_ms);
    }
    assert_true(t != REC_PLAN_COMPLETED || got->duration_ms == want->duration_ms);
}

static void every_record_comes_back_with_what_run_apply_reads(void **state)
{
    struct bench *b = *state;
    struct rng r = rng_seeded(__func__);
    const struct str task = {long_text, 8000};

    for (int round = 0; round < 3000; round++) {
        enum record_type t = (enum record_type)rng_below(&r, REC_COUNT);
        struct record rec;
        struct record got;
        struct record_extra x;
        if (round % 100 == 0) {
            codec_plan_make(
                &b->p, 1 + rng_below(&r, CODEC_STEPS_MAX), rng_below(&r, 65),
                (struct str){long_text, utf8_cut(long_text, task.len, rng_below(&r, 8000))}, 3);
        }
        b->p.plan.job = (enum job_kind)rng_below(&r, 2 * JOB_KIND_COUNT);
        if (b->p.plan.job >= JOB_KIND_COUNT) {
            b->p.plan.job = JOB_NONE;
        }
        rec = random_record(&r, &b->p.plan, t);
        rec.text.len = utf8_cut(long_text, sizeof long_text - 1, rec.text.len);
        x = extra_of(b, &rec);
        x.preview = rec.text;
        encode(b, &rec, &x);
        if (record_about(t) == ABOUT_PLAN) {
            got = decode(b, &rec, rec.now + 500, rec.wall + 500);
            assert_same(&rec, &got);
        }
    }
}

static struct flat_record largest(enum record_type t)
{
    return (struct flat_record){
        .type = t,
        .now = 1,
        .wall = UINT64_MAX / 2,
        .step = 199,
        .agent = 1,
        .attempt = 100,
        .from_agent = 1,
        .instance = uuid_new(),
        .epoch = UINT64_MAX,
        .status = STEP_SKIPPED,
        .reason = REASON_ON_FAILURE_SKIP,
        .error_class = CLASS_VERIFICATION_FAILED,
        .plan_status = PLAN_FAILED,
        .outcome = OUTCOME_FAILED,
        .failure = PLAN_FAILURE_MAX_REPLANS_STEP,
        .review = REVIEW_UNKNOWN_OUTCOME,
        .pause = PAUSE_SIGNOFF,
        .modify = MODIFY_CONVERSATION_ONLY,
        .handoff = HANDOFF_FALLBACK,
        .fallback = FALLBACK_AGENT,
        .stop = STOP_ACKNOWLEDGED,
        .doubt = true,
        .ok = true,
        .revision = 1,
        .capacity = 64,
        .pid = UINT32_MAX,
        .delay_ms = UINT64_MAX,
        .duration_ms = UINT64_MAX,
        .result = {INT64_MAX, UINT64_MAX, 0},
        .usage = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
        .n = UINT64_MAX,
        .text = {long_text, 19999},
    };
}

static void the_largest_of_every_kind_fits_a_frame(void **state)
{
    struct bench *b = *state;
    static char wide[LIMIT_ID_BYTES + 65];
    struct buf data;

    memset(wide, 'w', sizeof wide - 1);
    codec_plan_make(&b->p, CODEC_STEPS_MAX, LIMIT_ID_BYTES, (struct str){long_text, 8190}, 3);
    b->p.plan.session_id = (struct str){wide, LIMIT_ID_BYTES};
    b->p.plan.replan.agent_id = (struct str){wide, LIMIT_ID_BYTES};
    b->p.steps[199].rules->gate_with = (struct str){wide, LIMIT_ID_BYTES};
    b->card.name = (struct str){wide, 128};
    for (int t = 0; t < REC_COUNT; t++) {
        struct flat_record flat = largest((enum record_type)t);
        buf_init(&data, 64 * 1024);
        doc_put_array(&data, 64);
        for (int i = 0; i < 64; i++) {
            doc_put_str(&data, (struct str){long_text, t == REC_GATE_FAILED ? 300 : 12});
        }
        flat.data = doc_from_buf(&data);
        const struct record rec = record_of_flat(&flat);
        struct record_extra x = extra_of(b, &rec);
        x.seq = UINT64_MAX;
        x.preview = rec.text;
        x.parent = uuid_new();
        x.agent_id = (struct str){wide, LIMIT_ID_BYTES};
        x.agent_name = (struct str){wide, 128};
        x.version = (struct str){wide, 64};
        encode(b, &rec, &x);
        buf_done(&data);
    }
}

/* The results that an agent gets in part; those that it gets whole are not named. */
static void a_step_says_which_results_were_cut(void **state)
{
    enum { PICKS = 11, SHOWN = 8 };
    struct bench *b = *state;
    struct record rec = {.type = REC_STEP_STARTED, .wall = 1, .step = 12};
    struct context_pick picks[PICKS];
    struct msg_ev_plan_step_started ev;
    struct record_extra x;
    struct bt_error err;

    codec_plan_make(&b->p, 13, 3, STR_LIT("a task"), 3);
    for (uint32_t i = 0; i < PICKS; i++) {
        picks[i] = (struct context_pick){.step = i, .bytes = i % 2 == 0 ? 70 : 69, .whole = 70};
    }
    x = extra_of(b, &rec);
    x.context = picks;
    x.context_left_out = 3;
    x.context_n = PICKS;
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_step_started, &ev, &err),
              err);
    assert_int_equal(ev.context_left_out, 3);
    assert_int_equal(ev.context_truncated_n, PICKS / 2);
    assert_int_equal(ev.context_cuts, PICKS / 2);
    for (uint32_t i = 0; i < ev.context_truncated_n; i++) {
        assert_true(str_eq(ev.context_truncated[i].step_id, b->p.plan.steps[2 * i + 1].step_id));
        assert_int_equal(ev.context_truncated[i].bytes, 69);
        assert_int_equal(ev.context_truncated[i].of, 70);
    }
    assert_true(record_context_truncated(&x));
    for (uint32_t i = 0; i < PICKS; i++) { /* more than are named, and counted all the same */
        picks[i].bytes = i == 0 ? 70 : 69;
    }
    x.context_left_out = 0;
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_step_started, &ev, &err),
              err);
    assert_int_equal(ev.context_truncated_n, SHOWN);
    assert_int_equal(ev.context_cuts, PICKS - 1);
    assert_true(record_context_truncated(&x));
    x.context_n = 1;
    assert_false(record_context_truncated(&x));
    x.context_left_out = 1;
    assert_true(record_context_truncated(&x));
}

static void plan_generated_lists_what_fits_and_says_when_it_is_cut(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_PLAN_GENERATED, .wall = 1, .step = STEP_NONE};
    struct record_extra x;
    struct msg_ev_plan_generated ev;
    struct bt_error err;

    codec_plan_make(&b->p, 3, 4, STR_LIT("a short task"), 3);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_generated, &ev, &err),
              err);
    assert_int_equal(ev.steps_n, 3);
    assert_false(ev.steps_truncated);
    assert_true(str_is(ev.steps[1].agent_name, "The SQL agent"));
    assert_true(str_is(ev.steps[2].agent_name, "calc"));
    assert_true(str_is(ev.steps[2].task, "a short task"));

    codec_plan_make(&b->p, 150, 10, (struct str){long_text, 7000}, 3);
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_generated, &ev, &err),
              err);
    assert_true(ev.steps_truncated);
    assert_true(ev.steps_n > 5 && ev.steps_n < 150);
    assert_int_equal(ev.estimated_steps, 150);
}

static void a_revision_tells_its_new_steps_and_no_others(void **state)
{
    struct bench *b = *state;
    struct record rec = {
        REC_INIT(REPLAN_FINISHED, revision, .ok = true, .revision = 2, .result = {7, 900, 0}),
        .step = 1, .text = STR_LIT("another way")};
    struct record_extra x;
    struct msg_ev_replan_finished ev;
    struct msg_ev_plan_modified modified;
    struct bt_error err;

    codec_plan_make(&b->p, 5, 3, STR_LIT("a task"), 3);
    b->p.plan.revision = 2;
    b->p.steps[3].revision = 2;
    b->p.steps[4].revision = 2;
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_replan_finished, &ev, &err),
              err);
    assert_true(ev.ok && ev.new_steps == 2 && ev.steps_n == 2 && !ev.steps_truncated);
    assert_int_equal(ev.steps[0].step_index, 3);
    assert_int_equal(ev.plan_ref, 7);
    assert_true(str_is(ev.reason, "another way"));

    rec.type = REC_PLAN_MODIFIED;
    REC(&rec, revision)->modify = MODIFY_INSERT;
    encode(b, &rec, &x);
    assert_ok(
        msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_modified, &modified, &err),
        err);
    assert_true(str_is(modified.kind, "insert") && modified.new_steps == 2);
    assert_true(str_is(modified.reasoning, "another way"));
}

static void a_gate_tells_what_is_missing(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_GATE_FAILED, .step = 0, .text = STR_LIT("not enough")};
    struct record_extra x;
    struct msg_ev_quality_gate_failed ev;
    struct buf data;
    struct bt_error err;

    codec_plan_make(&b->p, 1, 3, STR_LIT("a task"), 1);
    b->p.steps[0].rules->gate_with = STR_LIT("calc");
    b->p.steps[0].rules->gate_agent = 2;
    buf_init(&data, 100);
    doc_put_array(&data, 3);
    doc_put_cstr(&data, "sources");
    doc_put_u64(&data, 7);
    doc_put_cstr(&data, "dates");
    REC(&rec, gate)->data = doc_from_buf(&data);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_ok(
        msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_quality_gate_failed, &ev, &err),
        err);
    assert_int_equal(ev.missing_n, 2); /* 7 is no text */
    assert_true(str_is(ev.missing[0], "sources") && str_is(ev.missing[1], "dates"));
    assert_true(str_is(ev.agent_id, "calc") && str_is(ev.reason, "not enough"));
    assert_int_equal(decode(b, &rec, 1, 1).agent, 2);
    buf_done(&data);
}

/* What a plan is asked for is nobody's news: no topic, no sequence, and yet all that a replay
 * needs.
 */
static void rows_of_a_job_are_internal(void **state)
{
    struct bench *b = *state;
    struct record rec = {REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_FAILED,
                                  .error_class = CLASS_TIMEOUT, .result = {7, 8, 0}),
                         .now = 5,
                         .wall = 6,
                         .step = 1,
                         .attempt = 2,
                         .agent = 2,
                         .text = STR_LIT("too late")};
    struct record_extra x;
    struct journal_row row;
    struct record got;
    struct bt_error err;

    codec_plan_make(&b->p, 2, 3, STR_LIT("a task"), 3);
    b->p.plan.job = JOB_PLANNING;
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_false(record_row_is_public(&rec, &b->p.plan));
    assert_int_equal(b->topic.len, 0);
    got = decode(b, &rec, 5, 6);
    assert_same(&rec, &got);
    row = row_of(b, &rec);
    row.is_public = true;
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    row.is_public = false;
    b->p.plan.job = JOB_NONE; /* an ordinary plan's are public */
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    rec.type = REC_AGENT_UP;
    assert_true(record_row_is_public(&rec, NULL));
}

static void planning_says_who_is_asked_for_what(void **state)
{
    struct bench *b = *state;
    struct record rec = {REC_INIT(PLANNING_STARTED, timed, .delay_ms = 30000), .step = STEP_NONE,
                         .attempt = 1, .agent = 1};
    struct record_extra x;
    struct msg_ev_planning_started started;
    struct msg_ev_plan_generated made;
    struct bt_error err;

    codec_plan_make(&b->p, 2, 3, STR_LIT("count the users"), 3);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_ok(
        msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_planning_started, &started, &err),
        err);
    assert_true(str_is(started.goal, "count the users") && str_is(started.agent_id, "sql-agent"));
    assert_true(str_is(started.planner, "file") && started.timeout_ms == 30000);

    rec = (struct record){REC_INIT(PLAN_GENERATED, revision, .revision = 1, .result = {9, 90, 0}),
                          .step = STEP_NONE};
    x = extra_of(b, &rec);
    x.description = STR_LIT("two steps");
    x.success_criteria = STR_LIT("a number");
    x.estimated_tokens = 1234;
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_generated, &made, &err),
              err);
    assert_true(made.plan_ref == 9 && made.plan_len == 90 && made.steps_n == 2);
    assert_true(str_is(made.description, "two steps") && str_is(made.success_criteria, "a number"));
    assert_int_equal(made.estimated_tokens, 1234);
    const struct record back = decode(b, &rec, 1, 1);
    assert_int_equal(REC(&back, revision)->revision,
                     1); /* the plan that was asked for is the first */
}

static void a_turn_stands_under_its_session(void **state)
{
    struct bench *b = *state;
    struct record rec = {REC_INIT(TURN_END, turn_end, .duration_ms = 70), .step = STEP_NONE,
                         .text = STR_LIT("Done.")};
    struct record_extra x = extra_of(b, &rec);
    struct msg_ev_turn_end ev;
    struct bt_error err;

    x.session_id = STR_LIT("chat-1");
    x.turn_id = STR_LIT("t7");
    x.action = STR_LIT("new_plan");
    x.turn_plan_id = STR_LIT("p9");
    x.outcome = STR_LIT("partial");
    encode(b, &rec, &x);
    assert_true(str_is(buf_str(&b->topic), "session/chat-1/turn_end"));
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_turn_end, &ev, &err), err);
    assert_true(str_is(ev.turn_id, "t7") && str_is(ev.message, "Done.") && ev.duration_ms == 70);
    assert_true(str_is(ev.action, "new_plan") && str_is(ev.turn_plan_id, "p9"));
    assert_true(str_is(ev.outcome, "partial"));
}

/* An agent that was not granted cannot come back from a row as if it were. */
static void an_agent_that_the_plan_does_not_know_is_refused(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_STEP_ASSIGNED, .step = 0, .attempt = 2, .agent = 2};
    struct record_extra x;
    struct journal_row row;
    struct record got;
    struct bt_error err;

    codec_plan_make(&b->p, 1, 3, STR_LIT("a task"), 1);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_int_equal(decode(b, &rec, 1, 1).agent, 2);
    row = row_of(b, &rec);
    b->p.plan.agents.n = 2;
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
}

static void a_row_that_does_not_fit_is_refused(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_STEP_STARTED, .step = 1, .attempt = 1};
    struct record_extra x;
    struct journal_row row;
    struct record got;
    struct bt_error err;

    codec_plan_make(&b->p, 2, 3, STR_LIT("t"), 1);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    row = row_of(b, &rec);
    row.seq = 78;
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    row = row_of(b, &rec);
    row.type = STR_LIT("from_the_future");
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    row.type = STR_LIT("agent_up");
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    row.type = STR_LIT("plan_started"); /* the body says otherwise */
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    row = row_of(b, &rec);
    b->p.plan.n_steps = 1;
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    b->p.plan.n_steps = 2;
    b->p.steps[1].step_id = STR_LIT("other");
    assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    for (size_t len = 0; len < b->body.len; len++) {
        row.body_len = len;
        assert_int_equal(record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, &err),
                         BT_PROTOCOL);
    }
}

/* Whether the value of the member is a word of a table, or an id that the plan has. */
static bool is_known_word(enum record_type t, struct str key)
{
    static const char *const known[] = {"type",        "stepId",  "failedStepId", "instanceId",
                                        "reviewId",    "action",  "class",        "decision",
                                        "errorClass",  "outcome", "phase",        "stop",
                                        "failureKind", "reason"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (str_is(key, known[i])) {
            return true;
        }
    }
    return (str_is(key, "kind") && t != REC_WAIT_STARTED) ||
           (str_is(key, "status") && t != REC_COMPENSATION_FINISHED);
}

static void a_word_that_its_table_does_not_have_is_refused(void **state)
{
    struct bench *b = *state;
    struct rng r = rng_seeded(__func__);

    codec_plan_make(&b->p, 5, 6, STR_LIT("a task to do"), 3);
    for (int i = 0; i < 30 * REC_COUNT; i++) {
        const enum record_type t = (enum record_type)(i % REC_COUNT);
        struct record rec = random_record(&r, &b->p.plan, t);
        const struct record_extra x = extra_of(b, &rec);
        struct doc_cursor c;
        struct doc_head head;
        if (record_about(t) != ABOUT_PLAN) {
            continue;
        }
        rec.text.len = 0;
        encode(b, &rec, &x);
        c = doc_cursor(doc_from_buf(&b->body));
        (void)doc_next(&c, &head);
        for (uint32_t n = head.n; n > 0; n--) {
            const struct str key = doc_string(doc_skip(&c));
            const struct str word = doc_string(doc_skip(&c));
            struct record got;
            if (word.len > 0 && is_known_word(t, key)) {
                uint8_t *at = b->body.at + ((const uint8_t *)word.ptr - b->body.at);
                const uint8_t was = *at;
                struct journal_row row = row_of(b, &rec);
                *at = '?';
                arena_reset(&b->arena);
                assert_int_equal(
                    record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, NULL),
                    BT_PROTOCOL);
                *at = was;
            }
        }
    }
}

static void no_flipped_bit_makes_decode_misbehave(void **state)
{
    struct bench *b = *state;
    struct rng r = rng_seeded(__func__);

    codec_plan_make(&b->p, 5, 6, STR_LIT("a task to do"), 3);
    for (int i = 0; i < 20000; i++) {
        struct record rec =
            random_record(&r, &b->p.plan, (enum record_type)rng_below(&r, REC_COUNT));
        struct record_extra x = extra_of(b, &rec);
        struct journal_row row;
        struct record got;
        if (record_about(rec.type) != ABOUT_PLAN) {
            continue;
        }
        rec.text.len = rng_below(&r, 2) * 9;
        encode(b, &rec, &x);
        b->body.at[rng_below(&r, (uint32_t)b->body.len)] ^= (uint8_t)(1u << rng_below(&r, 8));
        row = row_of(b, &rec);
        arena_reset(&b->arena);
        if (record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, &got, NULL) == BT_OK) {
            assert_true(got.step == STEP_NONE || got.step < b->p.plan.n_steps);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_record_comes_back_with_what_run_apply_reads),
        TEST(the_largest_of_every_kind_fits_a_frame),
        TEST(a_step_says_which_results_were_cut),
        TEST(plan_generated_lists_what_fits_and_says_when_it_is_cut),
        TEST(a_revision_tells_its_new_steps_and_no_others),
        TEST(a_gate_tells_what_is_missing),
        TEST(rows_of_a_job_are_internal),
        TEST(planning_says_who_is_asked_for_what),
        TEST(a_turn_stands_under_its_session),
        TEST(an_agent_that_the_plan_does_not_know_is_refused),
        TEST(a_row_that_does_not_fit_is_refused),
        TEST(a_word_that_its_table_does_not_have_is_refused),
        TEST(no_flipped_bit_makes_decode_misbehave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
