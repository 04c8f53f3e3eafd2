/* What comes back from a row is what run_apply needs, and no frame is ever over its cap. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/guard.h"
#include "protocol/wire/msg.h"
#include "supervisor/journal/record_codec.h"
#include "tests/support/random.h"
#include "tests/unit/journal/codec_plan.h"

static char long_text[20000];

struct bench {
    struct codec_plan p;
    struct arena arena;
    struct buf body;
    struct buf topic;
    void *registry_mem;
    struct registry *reg;
    struct msg_card card;
};

static int bench_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    struct registry_limits lim = {
        .agents = 8, .instances = 8, .lease_ms = 3000, .suspect_ms = 1000};

    assert_non_null(b);
    memset(long_text, 'e', sizeof long_text - 1);
    for (size_t i = 0; i + 3 < sizeof long_text; i += 7) {
        memcpy(long_text + i, "\xe2\x82\xac", 3); /* a euro sign, to be cut between */
    }
    buf_init(&b->body, 64 * 1024);
    buf_init(&b->topic, 1024);
    b->registry_mem = calloc(1, registry_size(&lim));
    assert_non_null(b->registry_mem);
    b->reg = registry_init(b->registry_mem, &lim);
    (void)registry_agent_add(b->reg, STR_LIT("files"), 0);
    (void)registry_agent_add(b->reg, STR_LIT("sql-agent"), 0);
    (void)registry_agent_add(b->reg, STR_LIT("calc"), 0);
    b->card = (struct msg_card){.agent_id = STR_LIT("sql-agent"), .name = STR_LIT("The SQL agent")};
    registry_agent_card(b->reg, 1, &b->card);
    *state = b;
    return 0;
}

static int bench_down(void **state)
{
    struct bench *b = *state;
    arena_done(&b->arena);
    buf_done(&b->body);
    buf_done(&b->topic);
    free(b->registry_mem);
    free(b);
    return 0;
}

static struct record_extra extra_of(const struct bench *b, const struct record *rec)
{
    return (struct record_extra){.seq = 77,
                                 .plan_seq = 5,
                                 .event_id = uuid_new(),
                                 .handoff_id = uuid_new(),
                                 .plan = record_about(rec->type) == ABOUT_PLAN ? &b->p.plan : NULL,
                                 .preview = STR_LIT("the preview"),
                                 .summary = {12, 3456},
                                 .agent_id = STR_LIT("files"),
                                 .agent_name = STR_LIT("Files"),
                                 .version = STR_LIT("1.2"),
                                 .plans_recovered = 3};
}

static struct journal_row row_of(const struct bench *b, const struct record *rec)
{
    return (struct journal_row){.seq = 77,
                                .is_public = record_is_public(rec->type),
                                .plan_ix = 1,
                                .plan_seq = 5,
                                .type = str_from(record_wire_type(rec->type)),
                                .topic = buf_str(&b->topic),
                                .wall = rec->wall,
                                .body = b->body.at,
                                .body_len = b->body.len};
}

static void encode(struct bench *b, const struct record *rec, const struct record_extra *x)
{
    struct bt_error err;

    assert_ok(record_encode(rec, x, b->reg, &b->body, &b->topic, &err), err);
    assert_true(b->topic.len + 1 + b->body.len <= LIMIT_EVENT_BYTES);
    assert_ok(guard_check(b->body.at, b->body.len, NULL, &err), err);
    assert_true(utf8_valid((const char *)b->topic.at, b->topic.len));
}

static struct record decode(struct bench *b, const struct record *rec, msec mono, msec wall)
{
    struct journal_row row = row_of(b, rec);
    struct record got;
    struct bt_error err;

    arena_reset(&b->arena);
    assert_ok(record_decode(&row, &b->p.plan, mono, wall, &b->arena, &got, &err), err);
    return got;
}

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

static void topic_is(struct bench *b, struct record rec, const char *fmt)
{
    struct record_extra x = extra_of(b, &rec);
    char id[UUID_TEXT_LEN + 1];
    char want[256];

    uuid_format(b->p.plan.plan_id, id);
    (void)snprintf(want, sizeof want, "%.*s%s%s", (int)strcspn(fmt, "@"), fmt,
                   strchr(fmt, '@') != NULL ? id : "",
                   strchr(fmt, '@') != NULL ? strchr(fmt, '@') + 1 : "");
    encode(b, &rec, &x);
    assert_string_equal(buf_cstr(&b->topic), want);
}

static void topics_follow_the_protocol(void **state)
{
    struct bench *b = *state;

    codec_plan_make(&b->p, 2, 2, STR_LIT("t"), 3);
    topic_is(b, (struct record){.type = REC_PLAN_STARTED}, "plan/chat_1/@/plan_started");
    topic_is(b, (struct record){.type = REC_HANDOFF, .step = 1, .from_agent = AGENT_SUPERVISOR},
             "handoff/chat_1/@/supervisor/sql-agent");
    topic_is(b, (struct record){.type = REC_HANDOFF, .step = 0, .from_agent = 1},
             "handoff/chat_1/@/sql-agent/files");
    b->p.plan.session_id = STR_LIT("");
    topic_is(b, (struct record){.type = REC_PLAN_STARTED}, "plan/-/@/plan_started");
    topic_is(b, (struct record){.type = REC_AGENT_DOWN}, "agent/files/agent_down");
    topic_is(b, (struct record){.type = REC_SUPERVISOR_STARTED}, "system/supervisor_started");
    topic_is(b, (struct record){.type = REC_STEP_ASSIGNED}, "");
}

static void bad_utf8_in_a_text_is_repaired_not_refused(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_STEP_RETRY, .attempt = 1, .text = {"a\xff\0b", 4}};
    struct record_extra x;
    struct record got;

    codec_plan_make(&b->p, 1, 2, STR_LIT("t"), 1);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    got = decode(b, &rec, 1, 0);
    assert_true(str_is(got.text, "a??b"));
}

static void time_is_rebased_and_never_below_zero(void **state)
{
    struct bench *b = *state;
    struct record rec = {.type = REC_PLAN_STARTED, .now = 5000, .wall = 100000};
    struct record_extra x;

    codec_plan_make(&b->p, 1, 2, STR_LIT("t"), 1);
    x = extra_of(b, &rec);
    encode(b, &rec, &x);
    assert_int_equal(decode(b, &rec, 900, 100300).now, 600);
    assert_int_equal(decode(b, &rec, 200, 100300).now, 0);  /* the machine was started later */
    assert_int_equal(decode(b, &rec, 200, 99000).now, 200); /* the wall clock was set back */
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

static void review_ids_come_back(void **state)
{
    struct bench *b = *state;
    struct uuid plan = uuid_new();
    struct uuid got;
    struct str step;
    uint32_t attempt;
    const char *const bad[] = {"", "x", "//1", "/a/1", "-/a/1"};

    buf_clear(&b->body);
    review_id_format(plan, STR_LIT("a/b"), 100, &b->body);
    assert_true(review_id_parse(buf_str(&b->body), &got, &step, &attempt));
    assert_true(uuid_eq(got, plan) && str_is(step, "a/b") && attempt == 100);
    for (size_t cut = 1; cut < b->body.len; cut++) {
        struct str s = {(char *)b->body.at, b->body.len - cut};
        if (cut > 2) {
            assert_false(review_id_parse(s, &got, &step, &attempt) && str_is(step, "a/b"));
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(review_id_parse(str_from(bad[i]), &got, &step, &attempt));
    }
}

static void failure_reasons_read_as_documented(void **state)
{
    struct bench *b = *state;
    const struct {
        struct record rec;
        const char *want;
    } cases[] = {
        {{.failure = PLAN_FAILURE_STEP, .step = 2, .text = STR_LIT("no such table")},
         "Step 3 failed: no such table"},
        {{.failure = PLAN_FAILURE_TIMEOUT,
          .step = STEP_NONE,
          .text = STR_LIT("Execution timeout after 9ms")},
         "Execution timeout after 9ms"},
        {{.failure = PLAN_FAILURE_TIMEOUT, .step = STEP_NONE}, "Execution timeout after 100000ms"},
        {{.failure = PLAN_FAILURE_NOTHING_COMPLETED, .step = STEP_NONE}, "No step completed"},
        {{.plan_status = PLAN_CANCELLED, .text = STR_LIT("enough")}, "Cancelled: enough"},
        {{.plan_status = PLAN_COMPLETED, .step = STEP_NONE}, ""},
    };

    codec_plan_make(&b->p, 3, 2, STR_LIT("t"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&b->body);
        plan_failure_reason(&cases[i].rec, &b->p.plan, &b->body);
        assert_string_equal(buf_cstr(&b->body), cases[i].want);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_up, bench_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_record_comes_back_with_what_run_apply_reads),
        TEST(the_largest_of_every_kind_fits_a_frame),
        TEST(plan_generated_lists_what_fits_and_says_when_it_is_cut),
        TEST(topics_follow_the_protocol),
        TEST(bad_utf8_in_a_text_is_repaired_not_refused),
        TEST(time_is_rebased_and_never_below_zero),
        TEST(a_row_that_does_not_fit_is_refused),
        TEST(no_flipped_bit_makes_decode_misbehave),
        TEST(review_ids_come_back),
        TEST(failure_reasons_read_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
