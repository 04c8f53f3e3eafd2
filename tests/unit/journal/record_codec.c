/* What comes back from a row is what run_apply needs, and no frame is ever over its cap. */
#include "tests/unit/journal/codec_bench.h"

#include <string.h>

#include "protocol/base/utf8.h"
#include "tests/support/random.h"

static struct str random_text(struct rng *r)
{
    static const uint32_t most[] = {1, 40, 3000, 19000};
    return (struct str){long_text, rng_below(r, most[rng_below(r, 4)])};
}

static struct record random_record(struct rng *r, const struct plan *plan, enum record_type type)
{
    struct record rec = {
        .type = type,
        .now = 1000000 + rng_below(r, 1000),
        .wall = 1700000000000 + rng_below(r, 100000),
        .step = rng_below(r, plan->n_steps),
        .attempt = 1 + rng_below(r, LIMIT_ATTEMPTS),
        .from_agent = rng_below(r, 2) == 0 ? AGENT_SUPERVISOR : rng_below(r, 3),
        .epoch = rng_next(r),
        .status = (enum step_status)(STEP_COMPLETED + rng_below(r, 4)),
        .reason = (enum step_reason)rng_below(r, STEP_REASON_COUNT),
        .error_class = (enum err_class)rng_below(r, CLASS_COUNT),
        .plan_status = (enum plan_status)(PLAN_COMPLETED + rng_below(r, 3)),
        .outcome = (enum plan_outcome)(1 + rng_below(r, PLAN_OUTCOME_COUNT - 1)),
        .failure = (enum plan_failure)rng_below(r, PLAN_FAILURE_COUNT),
        .review = (enum review_kind)rng_below(r, REVIEW_KIND_COUNT),
        .decision = (enum review_decision)rng_below(r, DECISION_COUNT),
        .delay_ms = rng_next(r) >> rng_below(r, 64),
        .duration_ms = rng_next(r) >> rng_below(r, 64),
        .result = {rng_next(r) >> 1, rng_next(r)},
        .usage = {rng_next(r) >> 1, rng_next(r) >> 20, rng_below(r, 2), rng_next(r) >> 1},
        .percent = rng_below(r, 100) / 100.0,
        .n = rng_next(r),
        .text = random_text(r),
    };
    if (rng_below(r, 4) != 0) {
        for (size_t i = 0; i < sizeof rec.instance.b; i++) {
            rec.instance.b[i] = (uint8_t)rng_next(r);
        }
    }
    rec.agent = plan->steps[rec.step].agent;
    return rec;
}

static bool about_step(enum record_type t)
{
    return t != REC_PLAN_GENERATED && t != REC_PLAN_STARTED && t != REC_PLAN_CANCELLING &&
           t != REC_PLAN_COMPLETED;
}

/* Exactly the fields that run_apply reads, and time. */
static void assert_same(const struct record *want, const struct record *got)
{
    enum record_type t = want->type;

    assert_int_equal(got->type, t);
    assert_int_equal(got->now, want->now);
    assert_int_equal(got->wall, want->wall);
    if (about_step(t)) {
        assert_int_equal(got->step, want->step);
        assert_int_equal(got->agent, want->agent);
    }
    if (about_step(t) && t != REC_HANDOFF) {
        assert_int_equal(got->attempt, want->attempt);
    }
    if (t == REC_STEP_STARTED || t == REC_STEP_ASSIGNED || t == REC_STEP_COMPLETED) {
        assert_true(uuid_eq(got->instance, want->instance));
        assert_true(got->epoch == want->epoch);
    }
    if (t == REC_STEP_RETRY || t == REC_STEP_UNKNOWN) {
        assert_true(got->delay_ms == want->delay_ms);
    }
    if (t == REC_STEP_WAITING) {
        assert_int_equal(got->review, want->review);
    }
    if (t == REC_REVIEW_DECIDED) {
        assert_int_equal(got->decision, want->decision);
    }
    if (t == REC_STEP_COMPLETED) {
        assert_int_equal(got->status, want->status);
        assert_int_equal(got->reason, want->reason);
        assert_int_equal(got->error_class, want->error_class);
        assert_true(got->result.id == want->result.id && got->result.len == want->result.len);
        assert_memory_equal(&got->usage, &want->usage, sizeof got->usage);
        assert_true(got->duration_ms == want->duration_ms);
    }
    if (t == REC_PLAN_COMPLETED) {
        assert_int_equal(got->plan_status, want->plan_status);
        assert_int_equal(got->outcome, want->outcome);
        assert_int_equal(got->failure, want->failure);
        assert_int_equal(got->step, want->step);
        assert_true(got->duration_ms == want->duration_ms);
    }
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

static void the_largest_of_every_kind_fits_a_frame(void **state)
{
    struct bench *b = *state;
    static char wide[LIMIT_ID_BYTES + 65];

    memset(wide, 'w', sizeof wide - 1);
    codec_plan_make(&b->p, CODEC_STEPS_MAX, LIMIT_ID_BYTES, (struct str){long_text, 8190}, 3);
    b->p.plan.session_id = (struct str){wide, LIMIT_ID_BYTES};
    b->card.name = (struct str){wide, 128};
    for (int t = 0; t < REC_COUNT; t++) {
        struct record rec = {
            .type = (enum record_type)t,
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
            .error_class = CLASS_DEPENDENCY_FAILED,
            .plan_status = PLAN_FAILED,
            .outcome = OUTCOME_FAILED,
            .failure = PLAN_FAILURE_STEP,
            .capacity = 64,
            .pid = UINT32_MAX,
            .delay_ms = UINT64_MAX,
            .duration_ms = UINT64_MAX,
            .result = {INT64_MAX, UINT64_MAX},
            .usage = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
            .n = UINT64_MAX,
            .text = {long_text, 19999},
        };
        struct record_extra x = extra_of(b, &rec);
        x.seq = UINT64_MAX;
        x.preview = rec.text;
        x.agent_id = (struct str){wide, LIMIT_ID_BYTES};
        x.agent_name = (struct str){wide, 128};
        x.version = (struct str){wide, 64};
        encode(b, &rec, &x);
    }
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
    assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
    row = row_of(b, &rec);
    row.type = STR_LIT("from_the_future");
    assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
    row.type = STR_LIT("agent_up");
    assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
    row.type = STR_LIT("plan_started"); /* the body says otherwise */
    assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
    row = row_of(b, &rec);
    b->p.plan.n_steps = 1;
    assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
    b->p.plan.n_steps = 2;
    b->p.steps[1].step_id = STR_LIT("other");
    assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
    for (size_t len = 0; len < b->body.len; len++) {
        row.body_len = len;
        assert_int_equal(record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, &err), BT_PROTOCOL);
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
        if (record_decode(&row, &b->p.plan, 1, 1, &b->arena, &got, NULL) == BT_OK) {
            assert_true(got.step == STEP_NONE || got.step < b->p.plan.n_steps);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_record_comes_back_with_what_run_apply_reads),
        TEST(the_largest_of_every_kind_fits_a_frame),
        TEST(plan_generated_lists_what_fits_and_says_when_it_is_cut),
        TEST(a_row_that_does_not_fit_is_refused),
        TEST(no_flipped_bit_makes_decode_misbehave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
